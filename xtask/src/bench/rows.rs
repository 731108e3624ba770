//! The rows of `product.md` 5 that a run of the whole program can show.
//!
//! Each row is a function that starts the program a few times and returns
//! medians. An owner's model is scripted to spawn children, a child's to read
//! a file some times and then to report; every child has a number, which its
//! report carries back to the owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::provider::{Block, Exchange, Reply, Request, has, number_behind};
use super::session::long_session;
use super::tasks;
use super::terminal;
use super::world::{World, binary};
use super::{Measured, median};
use crate::bench::process::{Ran, measure, status_kb};
use crate::run::Outcome;

pub(super) type Rows = Outcome<Vec<Measured>>;
type Row = fn() -> Rows;

/// Names and measurements, in the order of the budget table.
pub(crate) const ROWS: &[(&str, Row)] = &[
    ("version", version),
    ("print", print),
    ("turns", turns),
    ("spawn", spawn),
    ("children-100", || children(100)),
    ("children-200", || children(200)),
    ("children-1000", || children(1000)),
    ("tasks-1", || tasks::tasks(1)),
    ("tasks-10", || tasks::tasks(10)),
    ("tasks-32", || tasks::tasks(32)),
    ("delivery", delivery),
    ("deltas", deltas),
    ("resume", resume),
    ("idle", idle),
    ("terminal", terminal::terminal),
];

fn version() -> Rows {
    let pid = AtomicU32::new(0);
    let mut walls = Vec::new();
    for _ in 0..21 {
        let mut command = std::process::Command::new(binary());
        command.arg("--version");
        let ran = measure(&mut command, false, &pid)?;
        expect(ran.stdout.contains(char::is_numeric), "a version is printed")?;
        walls.push(ms(ran.wall));
    }
    Ok(vec![row("crew --version: wall", median(walls), "ms", 5.0)])
}

fn print() -> Rows {
    let world = World::new(Arc::default(), Box::new(|_| say(Duration::ZERO)))?;
    let (mut walls, mut peaks) = (Vec::new(), Vec::new());
    for round in 0..14 {
        let watch = round >= 9;
        let ran = world.run(&["-p", "hello"], watch)?;
        expect(ran.stdout.contains("done"), "the answer is printed")?;
        if watch {
            peaks.push(mb(ran.peak_kb));
        } else {
            walls.push(ms(ran.wall));
        }
    }
    Ok(vec![
        row("print, one prompt: wall to exit", median(walls), "ms", 25.0),
        row("print, one prompt: peak memory", median(peaks), "MB", 16.0),
    ])
}

fn turns() -> Rows {
    const TURNS: usize = 200;
    let (mut per_turn, mut growth) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let script = |request: &Request| match request.results {
            TURNS.. => say(Duration::ZERO),
            _ => call(Duration::ZERO),
        };
        let world = World::new(Arc::default(), Box::new(script))?;
        world.run(&["-p", "go"], false)?;
        let exchanges = world.provider.take();
        expect(exchanges.len() == TURNS + 1, "every turn is one request")?;
        let own: Vec<f64> = exchanges
            .windows(2)
            .map(|pair| ms(pair[1].arrived.saturating_duration_since(pair[0].sent)))
            .collect();
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        per_turn.push(mean(&own));
        growth.push(mean(&own[TURNS - 50..]) / mean(&own[..50]));
    }
    Ok(vec![
        row("200 tool turns: own time per turn", median(per_turn), "ms", 0.5),
        note("200 tool turns: last 50 / first 50", median(growth), "x"),
    ])
}

fn spawn() -> Rows {
    let mut rows = Vec::new();
    for (count, budget) in [(1, 3.0), (100, 3.0), (200, 5.0)] {
        let mut times = Vec::new();
        for _ in 0..5 {
            let waits = Waits { owner: Duration::ZERO, child: Duration::from_millis(300) };
            let done = crew_run(count, 0, waits, false)?;
            let next = done.owner.get(1).ok_or("the owner asked only once")?;
            times.push(ms(next.arrived.saturating_duration_since(done.spawned)));
        }
        let what = format!("crew_spawn to the owner's next request, {count} children");
        rows.push(row(&what, median(times), "ms", budget));
    }
    Ok(rows)
}

fn children(count: usize) -> Rows {
    const TOOL_TURNS: usize = 5;
    let latency = Duration::from_millis(50);
    let waits = Waits { owner: latency, child: latency };
    let alone = crew_run(1, TOOL_TURNS, waits, true)?;
    let (mut walls, mut cpus, mut requests, mut peaks) = (vec![], vec![], vec![], vec![]);
    for round in 0..6 {
        let watch = round >= 4;
        let done = crew_run(count, TOOL_TURNS, waits, watch)?;
        if watch {
            let own = done.ran.peak_kb.saturating_sub(alone.ran.peak_kb);
            peaks.push(mb(own) / (count - 1).max(1) as f64);
            continue;
        }
        let last = done.last_result(count)?;
        walls.push(last.saturating_duration_since(done.spawned).as_secs_f64());
        cpus.push(ms(done.ran.cpu) / count as f64);
        requests.push(done.requests_with_news() as f64);
    }
    let (wall, most) = match count {
        100 => (Some(0.45), Some(5.0)),
        200 => (Some(0.7), None),
        _ => (Some(3.0), None),
    };
    let what = |part: &str| format!("{count} children of five turns: {part}");
    Ok(vec![
        Measured::new(what("to the last result"), median(walls), "s", wall),
        row(&what("CPU per child"), median(cpus), "ms", 1.5),
        row(&what("memory per child"), median(peaks), "MB", 0.3),
        Measured::new(what("owner requests with news"), median(requests), "", most),
    ])
}

fn delivery() -> Rows {
    let mut rows = Vec::new();
    for (count, rounds, budget) in [(1, 9, 3.0), (100, 3, 10.0)] {
        let mut times = Vec::new();
        for _ in 0..rounds {
            let waits = Waits { owner: Duration::ZERO, child: Duration::from_millis(50) };
            let done = crew_run(count, 0, waits, false)?;
            for child in &done.children {
                let number = child.number.ok_or("a child without a number")?;
                let carried = done.carrier(number)?;
                times.push(ms(carried.saturating_duration_since(child.sent)));
            }
        }
        let what = format!("report to the owner's request, {count} children");
        rows.push(row(&what, median(times), "ms", budget));
    }
    Ok(rows)
}

fn deltas() -> Rows {
    let script = |_: &Request| Reply::at_once(vec![Block::Deltas(20_000)]);
    let world = World::new(Arc::default(), Box::new(script))?;
    let (mut walls, mut cpus) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let ran = world.run(&["-p", "go"], false)?;
        expect(ran.stdout.len() >= 20_000 * 5, "all deltas are printed")?;
        walls.push(ran.wall.as_secs_f64());
        cpus.push(ran.cpu.as_secs_f64());
    }
    Ok(vec![
        row("20,000 text deltas: wall", median(walls), "s", 0.15),
        row("20,000 text deltas: CPU", median(cpus), "s", 0.2),
    ])
}

fn resume() -> Rows {
    const BYTES: usize = 50_000_000;
    let mut rows = Vec::new();
    for (compacted, name) in [(true, "with checkpoints"), (false, "all of it context")] {
        let world = World::new(Arc::default(), Box::new(|_| say(Duration::ZERO)))?;
        let cwd = world.path("project");
        let file = world.path("long.jsonl");
        let text = long_session(BYTES, &cwd.to_string_lossy(), compacted);
        let path = file.to_string_lossy().into_owned();
        let (mut first, mut peaks) = (Vec::new(), Vec::new());
        for round in 0..5 {
            world.write("long.jsonl", &text)?;
            let watch = round >= 3;
            let ran = world.run(&["--session", &path, "-p", "go on"], watch)?;
            let exchanges = world.provider.take();
            let request = exchanges.first().ok_or("no request was made")?;
            if watch {
                peaks.push(mb(ran.peak_kb));
            } else {
                let wait = request.arrived.saturating_duration_since(ran.started);
                first.push(wait.as_secs_f64());
            }
        }
        let what = |part: &str| format!("resume of 50 MB, {name}: {part}");
        rows.push(row(&what("to first request"), median(first), "s", 0.3));
        rows.push(row(&what("peak memory"), median(peaks), "MB", 150.0));
    }
    Ok(rows)
}

fn idle() -> Rows {
    const MORE: usize = 200;
    let mut sizes = Vec::new();
    for count in [1, MORE + 1] {
        let pid: Arc<AtomicU32> = Arc::default();
        let size = Arc::new(AtomicU64::new(0));
        let (at, noted) = (Arc::clone(&pid), Arc::clone(&size));
        let script = crew_script(count, 0, Waits::default(), move |_| {
            let now = status_kb(at.load(Ordering::Relaxed), "VmRSS:").unwrap_or(0);
            noted.store(now, Ordering::Relaxed);
        });
        let world = World::new(pid, script)?;
        world.run(&["-p", "go"], false)?;
        sizes.push(size.load(Ordering::Relaxed));
    }
    let each = mb(sizes[1].saturating_sub(sizes[0])) / MORE as f64;
    Ok(vec![row("one more subagent open and idle", each, "MB", 0.1)])
}

/// How long the models of owner and children think.
#[derive(Clone, Copy, Default)]
struct Waits {
    owner: Duration,
    child: Duration,
}

/// A finished run with children.
struct CrewRun {
    ran: Ran,
    /// When the answer with all calls of `crew_spawn` was written.
    spawned: Instant,
    owner: Vec<Exchange>,
    /// The exchanges in which children reported.
    children: Vec<Exchange>,
}

/// Lets the owner spawn `count` children at once, each of `tool_turns` turns
/// and a report; errors unless every child reported.
fn crew_run(count: usize, tool_turns: usize, waits: Waits, watch: bool) -> Outcome<CrewRun> {
    let script = crew_script(count, tool_turns, waits, |_| {});
    let world = World::new(Arc::default(), script)?;
    let ran = world.run(&["-p", "go"], watch)?;
    let (mut children, owner): (Vec<_>, Vec<_>) =
        world.provider.take().into_iter().partition(|exchange| exchange.child);
    let spawned = owner.first().ok_or("the owner made no request")?.sent;
    let wanted = count * (tool_turns + 1);
    expect(children.len() == wanted, "each child makes its requests")?;
    // The last request of a child is the one it reports in.
    children.reverse();
    let mut seen = std::collections::BTreeSet::new();
    children.retain(|child| seen.insert(child.number));
    expect(children.len() == count, "each child reports once")?;
    Ok(CrewRun { ran, spawned, owner, children })
}

impl CrewRun {
    /// Returns when the owner's request arrived that first carried a child's
    /// report.
    fn carrier(&self, number: usize) -> Outcome<Instant> {
        let mark = mark(number);
        let carrier = self.owner.iter().find(|exchange| has(&exchange.body, mark.as_bytes()));
        carrier
            .map(|exchange| exchange.arrived)
            .ok_or_else(|| format!("the report of child {number} never reached the owner"))
    }

    /// Returns when the owner's request arrived that carried the last report.
    fn last_result(&self, count: usize) -> Outcome<Instant> {
        let mut last = self.spawned;
        for number in 0..count {
            last = last.max(self.carrier(number)?);
        }
        Ok(last)
    }

    /// Counts the owner's requests that carried a report for the first time.
    fn requests_with_news(&self) -> usize {
        let numbers = self.children.iter().filter_map(|child| child.number);
        let carriers = numbers.filter_map(|number| self.carrier(number).ok());
        carriers.collect::<std::collections::BTreeSet<_>>().len()
    }
}

/// Returns the script of owner and children; `on_owner` sees every request of
/// the owner.
fn crew_script(
    count: usize,
    tool_turns: usize,
    waits: Waits,
    on_owner: impl Fn(&Request) + Send + Sync + 'static,
) -> Box<super::provider::Script> {
    Box::new(move |request| {
        if request.child {
            if request.results < tool_turns {
                return call(waits.child);
            }
            let number = number_behind(&request.body, b"goal-").unwrap_or(usize::MAX);
            let report = json!({"outcome": "completed", "report": mark(number)});
            return Reply::after(waits.child, vec![Block::Call("crew_report", report)]);
        }
        on_owner(request);
        if request.results > 0 {
            return say(waits.owner);
        }
        Reply::after(waits.owner, (0..count).map(spawn_call).collect())
    })
}

pub(super) fn spawn_call(number: usize) -> Block {
    let task = json!({
        "goal": format!("goal-{number:05}"), "context": [], "instructions": ["Read the notes."],
    });
    let arguments = json!({"subagent": "scout", "brief": format!("child {number}"), "task": task});
    Block::Call("crew_spawn", arguments)
}

fn mark(number: usize) -> String {
    format!("mark-{number:05}.")
}

pub(super) fn say(wait: Duration) -> Reply {
    Reply::after(wait, vec![Block::Text("done")])
}

pub(super) fn call(wait: Duration) -> Reply {
    Reply::after(wait, vec![Block::Call("read", json!({"path": "notes.txt"}))])
}

pub(super) fn row(what: &str, value: f64, unit: &'static str, budget: f64) -> Measured {
    Measured::new(what, value, unit, Some(budget))
}

pub(super) fn note(what: &str, value: f64, unit: &'static str) -> Measured {
    Measured::new(what, value, unit, None)
}

pub(super) fn expect(holds: bool, what: &str) -> Outcome {
    if holds {
        return Ok(());
    }
    Err(format!("expected that {what}"))
}

pub(super) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

pub(super) fn mb(kb: u64) -> f64 {
    kb as f64 / 1000.0
}
