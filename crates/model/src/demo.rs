//! The built-in scripted model `demo/crew` (`product.md` P-2, P-3).
//!
//! A pure function from a request to an answer, streamed at the speed of
//! somebody who thinks: it knows nothing but the messages and tools of the
//! request, so all it reports was found by real tools. Must never read a file,
//! the environment or the network. Read `demo::owner` and `demo::child` for the
//! script, `demo::errand` for what is handed out.

mod child;
mod command;
mod errand;
mod facts;
mod finding;
mod look;
mod owner;
mod reply;
mod round;
mod summary;
mod view;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crew_base::message::{StopReason, Usage};
use crew_base::model::{ModelEvent, ModelRequest};

use crate::assembly::{Assembly, Kind};
use crate::{Model, ModelSink};
use reply::{CALL_PIECES_MAX, Pace, Reply, TEXT_PIECES_MAX, pieces};
use view::View;

/// Answers every request by the script of `product.md` P-2.
#[derive(Clone, Copy, Debug)]
pub struct Demo {
    delays_percent: u32,
}

impl Demo {
    /// 100 streams at the speed meant for people, 0 without any delay.
    pub fn new(delays_percent: u32) -> Demo {
        Demo { delays_percent }
    }

    async fn pause(self, ms: u64) {
        let scaled = ms * u64::from(self.delays_percent) / 100;
        if scaled > 0 {
            tokio::time::sleep(Duration::from_millis(scaled)).await;
        }
    }

    async fn answer(self, request: ModelRequest, mut sink: ModelSink) {
        let view = View::of(&request.messages);
        let (reply, pace) = answer_to(&view);
        let mut assembly = Assembly::new(&request);
        self.pause(pace.first_ms).await;
        sink(vec![ModelEvent::Started]);
        if !reply.text.is_empty() {
            self.block(&mut assembly, None, &reply.text, pace, &mut sink).await;
        }
        for call in &reply.calls {
            let arguments = call.arguments.to_string();
            self.block(&mut assembly, Some(&call.name), &arguments, pace, &mut sink).await;
        }
        let mut events = Vec::new();
        assembly.count(estimate(&view, &reply), &mut events);
        let stop = if reply.calls.is_empty() { StopReason::Stop } else { StopReason::ToolUse };
        assembly.finish(stop, None, &mut events);
        sink(events);
    }

    /// Streams one text block, or with a name one call.
    async fn block(
        self,
        assembly: &mut Assembly,
        tool: Option<&str>,
        text: &str,
        pace: Pace,
        sink: &mut ModelSink,
    ) {
        let mut events = Vec::new();
        let (index, pieces_max) = match tool {
            None => (assembly.open(Kind::Text, &mut events), TEXT_PIECES_MAX),
            Some(name) => (assembly.open_call("", name, &mut events), CALL_PIECES_MAX),
        };
        for piece in pieces(text, pieces_max) {
            assembly.append(index, piece, &mut events);
            sink(std::mem::take(&mut events));
            self.pause(pace.piece_ms).await;
        }
        assembly.close(index, &mut events);
        sink(events);
    }
}

impl Model for Demo {
    fn stream(
        &self,
        request: ModelRequest,
        sink: ModelSink,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.answer(request, sink))
    }
}

/// Which script speaks follows from the tools alone.
fn answer_to(view: &View) -> (Reply, Pace) {
    if view.offers("crew_report") {
        child::reply(view)
    } else if view.offers("crew_spawn") {
        (owner::reply(view), Pace::OWNER)
    } else {
        (Reply::text(WITHOUT_TOOLS), Pace::OWNER)
    }
}

/// Four characters for a token; a script costs nothing.
fn estimate(view: &View, reply: &Reply) -> Usage {
    let input = (view.chars / 4) as u64;
    let output = (reply.chars() / 4).max(1) as u64;
    Usage { input, output, total_tokens: input + output, ..Usage::default() }
}

const WITHOUT_TOOLS: &str = "This is demo/crew, a scripted model: it has no answers of its own. \
Its tour needs the crew tools, and this request offers none of them.";

#[cfg(test)]
mod tests;
