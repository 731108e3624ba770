//! What faces see of a running child (SESS-10, OBS-6).

use std::collections::VecDeque;

use serde_json::{Value, json};

use crew_base::message::{AssistantMessage, StopReason, Usage};
use crew_base::text::is_blank;

const RECENT_TOOLS_MAX: usize = 5;
const RECENT_LINES_MAX: usize = 8;
const LINE_CHARS_MAX: usize = 200;

/// Where an item is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// It waits for a slot.
    #[default]
    Pending,
    /// Its child works.
    Running,
    /// It ended well.
    Completed,
    /// It failed.
    Failed,
    /// It was ended or gave up.
    Aborted,
}

impl Stage {
    /// The word in snapshots.
    pub fn word(self) -> &'static str {
        match self {
            Stage::Pending => "pending",
            Stage::Running => "running",
            Stage::Completed => "completed",
            Stage::Failed => "failed",
            Stage::Aborted => "aborted",
        }
    }
}

/// What one child did so far.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Where it is.
    pub stage: Stage,
    /// Completed answers.
    pub requests: u32,
    /// Tokens and cost of all answers, compactions and own children.
    pub usage: Usage,
    /// Any usage was reported.
    pub has_usage: bool,
    /// Context size of the latest answer.
    pub context_tokens: Option<u64>,
    tokens: u64,
    running_tools: Vec<(String, String)>,
    recent_tools: VecDeque<String>,
    recent_lines: VecDeque<String>,
}

impl Progress {
    /// Input, output and cache writes of its answers (1.2 `tokens`).
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// An answer was recorded; those that failed cost, too.
    pub fn answer(&mut self, answer: &AssistantMessage) {
        let usage = &answer.usage;
        self.spent(usage);
        self.tokens += usage.input + usage.output + usage.cache_write;
        if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
            return;
        }
        self.requests += 1;
        let size = answer.usage.sum();
        self.context_tokens = Some(size).filter(|size| *size > 0).or(self.context_tokens);
        for line in answer.text().lines().filter(|line| !is_blank(line)) {
            let line = crew_base::text::excerpt(line, LINE_CHARS_MAX);
            push(&mut self.recent_lines, line, RECENT_LINES_MAX);
        }
    }

    /// Something beside the answers cost this much.
    pub fn spent(&mut self, usage: &Usage) {
        self.usage.add(usage);
        self.has_usage |= *usage != Usage::default();
    }

    /// A tool started; `call` names the call.
    pub fn tool_started(&mut self, call: &str, tool: &str) {
        self.running_tools.push((call.to_owned(), tool.to_owned()));
        push(&mut self.recent_tools, tool.to_owned(), RECENT_TOOLS_MAX);
    }

    /// It ended.
    pub fn tool_ended(&mut self, call: &str) {
        self.running_tools.retain(|(known, _)| known != call);
    }

    /// The snapshot of one item.
    pub fn json(&self, index: usize, id: Option<&str>, agent: &str) -> Value {
        json!({
            "index": index, "id": id, "agent": agent, "status": self.stage.word(),
            "requests": self.requests, "tokens": self.tokens(), "cost": self.usage.cost.total,
            "currentTool": self.running_tools.last().map(|(_, tool)| tool),
            "recentTools": self.recent_tools, "recentOutput": self.recent_lines,
        })
    }
}

fn push(list: &mut VecDeque<String>, text: String, max: usize) {
    if list.len() == max {
        list.pop_front();
    }
    list.push_back(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::json::from_text;
    use crew_base::message::Message;

    fn answer(text: &str, stop: &str) -> AssistantMessage {
        let message = json!({"role": "assistant", "stopReason": stop,
            "content": [{"type": "text", "text": text}],
            "usage": {"input": 10, "output": 2, "cacheRead": 40, "cacheWrite": 3}});
        let message: Message = from_text(&message.to_string()).unwrap();
        message.as_assistant().unwrap().clone()
    }

    // SESS-10, OBS-6, 1.2 `tokens`.
    #[test]
    fn the_last_tools_and_lines_are_shown() {
        let mut progress = Progress::default();
        for n in 0..7 {
            progress.tool_started(&format!("c{n}"), &format!("t{n}"));
        }
        (0..6).for_each(|n| progress.tool_ended(&format!("c{n}")));
        let lines: Vec<_> = (0..10).map(|n| format!("line {n}\n\n")).collect();
        progress.answer(&answer(&lines.concat(), "stop"));
        progress.answer(&answer("cut", "aborted"));
        let json = progress.json(1, Some("kid"), "scout");
        assert_eq!(json["currentTool"], "t6");
        assert_eq!(json["recentTools"], json!(["t2", "t3", "t4", "t5", "t6"]));
        assert_eq!(json["recentOutput"].as_array().unwrap().len(), 8);
        assert_eq!((&json["requests"], &json["tokens"]), (&json!(1), &json!(30)));
        assert_eq!(progress.context_tokens, Some(55));
    }
}
