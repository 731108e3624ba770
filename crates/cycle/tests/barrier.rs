//! The completion barrier under every order of finish, deliver, inject and
//! yield (`task.md` 7), against a naive reference.

use std::collections::{BTreeMap, BTreeSet};

use crew_base::id::{Ids, RunId};
use crew_base::json::{Raw, from_text};
use crew_base::message::{Message, ToolCall};
use crew_base::session::RunEnd;
use crew_base::time::Time;
use crew_cycle::budget::Budget;
use crew_cycle::schema::OutputSchema;
use crew_cycle::yielded::Yields;
use crew_cycle::{Act, Driver, Limits, Outcome, Purpose};
use serde_json::{Value, json};

const SEEDS: u64 = 10_000;
const STEPS_MAX: u32 = 400;

/// How far the result of a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    Running,
    Finished,
    /// It stands in the conversation, or a `wait` returned it.
    Seen,
}

/// A child session in a few strokes, and what must be true of its yields.
struct Play {
    driver: Driver<Yields>,
    rng: Ids,
    now: Time,
    /// A turn runs: `Some(stopped)`.
    turn: Option<bool>,
    jobs: BTreeMap<String, Job>,
    /// Results handed over and not recorded yet.
    on_the_way: Vec<Message>,
    waits: BTreeMap<RunId, BTreeSet<String>>,
    names: u64,
    /// Whether the newest terminal yield still counts.
    counts: bool,
    /// Nothing was pending when it was accepted.
    was_free: bool,
    notices: u32,
    reminders: u32,
    outcome: Option<Outcome>,
    trace: Vec<String>,
}

impl Play {
    fn new(seed: u64) -> Play {
        let limits = Limits { budget: Budget::new(Some(12), true), ..Limits::default() };
        let mut play = Play {
            driver: Driver::new(Time(0), Yields::new(OutputSchema::none()), limits),
            rng: Ids::new(seed),
            now: Time(0),
            turn: None,
            jobs: BTreeMap::new(),
            on_the_way: Vec::new(),
            waits: BTreeMap::new(),
            names: 0,
            counts: false,
            was_free: false,
            notices: 0,
            reminders: 0,
            outcome: None,
            trace: Vec::new(),
        };
        play.driver.begin("do it".to_owned());
        play.take();
        play
    }

    fn has(&self, state: Job) -> bool {
        self.jobs.values().any(|job| *job == state)
    }

    /// BARRIER-1, naively.
    fn is_pending(&self) -> bool {
        let watched = |id: &String| self.waits.values().any(|ids| ids.contains(id));
        self.jobs.iter().any(|(id, job)| *job != Job::Seen && !watched(id))
    }

    fn take(&mut self) {
        for act in self.driver.take_acts() {
            match act {
                Act::Submit(submission) => {
                    assert_eq!(self.turn, None, "only an idle child is prompted");
                    match submission.purpose {
                        Purpose::First => {}
                        Purpose::Notice => {
                            self.notices += 1;
                            assert_eq!(self.notices, 1, "BARRIER-4");
                            assert!(self.counts && self.has(Job::Running), "BARRIER-4");
                        }
                        Purpose::Reminder(_) => {
                            self.reminders += 1;
                            assert!(!self.counts, "an accepted yield is not reminded of");
                        }
                        Purpose::Results => assert!(self.has(Job::Finished), "BARRIER-6"),
                    }
                    self.trace.push(format!("prompt {:?}", submission.purpose));
                    self.turn = Some(false);
                    let messages = submission.messages.iter().map(|one| one.message(self.now));
                    self.on_the_way.extend(messages);
                }
                Act::StopTurn => {
                    assert!(self.turn.replace(true).is_some(), "a turn runs");
                }
                Act::Recover => panic!("nobody is busy"),
                Act::Ended(outcome) => {
                    self.check_end(&outcome);
                    assert!(self.outcome.replace(outcome).is_none(), "it ends once");
                }
            }
        }
    }

    /// BARRIER-7, BARRIER-8, BARRIER-9.
    fn check_end(&self, outcome: &Outcome) {
        match outcome {
            Outcome::Accepted => {
                assert!(self.counts, "only a yield that counts ends it well");
                assert!(self.was_free || !self.is_pending(), "nothing pending is left behind");
            }
            Outcome::Stale | Outcome::Missing { .. } => assert!(!self.counts),
            Outcome::Aborted { .. } | Outcome::Failed(_) => {}
            Outcome::ModelError { .. } => panic!("no request fails here"),
        }
    }

    /// What was handed over enters the conversation.
    fn inject(&mut self) {
        for message in std::mem::take(&mut self.on_the_way) {
            if let Message::Custom(custom) = &message
                && custom.custom_type == "task-job"
            {
                let result = Raw::parse(&custom.content.text()).expect("a result").value();
                let id = result["job_id"].as_str().expect("a job").to_owned();
                let before = self.jobs.insert(id.clone(), Job::Seen);
                assert_eq!(before, Some(Job::Finished), "{id} enters once");
                self.counts = false;
                self.was_free = false;
            }
            self.driver.message(&message);
            self.take();
        }
    }

    fn message(&mut self, value: &Value) {
        self.driver.message(&from_text::<Message>(&value.to_string()).expect("a message"));
        self.take();
    }

    fn answer(&mut self, call: Option<(&str, &str)>) {
        self.inject();
        let mut content = vec![json!({"type": "text", "text": "words"})];
        content.extend(call.map(
            |(id, tool)| json!({"type": "toolCall", "id": id, "name": tool, "arguments": {}}),
        ));
        let stop = if call.is_some() { "toolUse" } else { "stop" };
        self.message(&json!({"role": "assistant", "content": content, "stopReason": stop}));
    }

    fn name(&mut self, word: &str) -> String {
        self.names += 1;
        format!("{word}{}", self.names)
    }

    /// The turn goes on or settles behind tool results, as an agent does it.
    fn results_end(&mut self, id: &str, tool: &str) {
        self.message(&json!({"role": "toolResult", "toolCallId": id, "toolName": tool,
            "content": [{"type": "text", "text": "ok"}]}));
        let boundary = self.driver.boundary();
        self.take();
        assert!(boundary.stops || self.turn == Some(false), "a stopped turn goes nowhere");
        self.on_the_way.extend(boundary.messages.iter().map(|one| one.message(self.now)));
        if boundary.stops {
            self.settle(RunEnd::Aborted);
        } else if self.rng.below(2) == 0 {
            self.inject();
        }
    }

    fn settle(&mut self, end: RunEnd) {
        for run in std::mem::take(&mut self.waits).into_keys() {
            self.driver.cancel_wait(run);
        }
        self.inject();
        self.turn = None;
        self.driver.settled(self.now, &end);
        self.take();
    }

    fn yields(&mut self) {
        let id = self.name("y");
        self.answer(Some((&id, "yield")));
        let arguments = match self.rng.below(6) {
            0 => json!({"data": 1, "error": "both"}),
            1 => json!({"type": ["part"], "data": 1}),
            _ => json!({"data": {"n": self.names}}),
        };
        let call = ToolCall {
            id: id.as_str().into(),
            name: "yield".into(),
            arguments: Raw::of(&arguments),
            thought_signature: None,
            namespace: None,
            arguments_error: None,
        };
        let was_free = !self.is_pending();
        let outcome = self.driver.call(&call);
        if outcome.terminate {
            self.counts = true;
            self.was_free = was_free;
        }
        self.trace.push(format!("yield {}: {outcome:?}", self.counts));
        self.take();
        self.results_end(&id, "yield");
    }

    fn works(&mut self) {
        let id = self.name("w");
        self.answer(Some((&id, "bash")));
        if self.rng.below(2) == 0 && self.turn == Some(false) {
            let job = self.name("job");
            self.driver.job_started(&job, "make");
            self.jobs.insert(job, Job::Running);
        }
        self.results_end(&id, "bash");
    }

    fn waits(&mut self) {
        let id = self.name("v");
        self.answer(Some((&id, "wait")));
        let run = RunId(self.names);
        let watched: BTreeSet<_> = self
            .jobs
            .iter()
            .filter(|(_, job)| **job != Job::Seen)
            .map(|(id, _)| id.clone())
            .collect();
        match self.driver.wait(run, &Raw::empty_object()) {
            Some(outcome) => self.acknowledged(&outcome.joined_text()),
            None => {
                self.waits.insert(run, watched);
                self.trace.push("waits".to_owned());
                return;
            }
        }
        self.results_end(&id, "wait");
    }

    fn acknowledged(&mut self, text: &str) {
        let results = Raw::parse(text).expect("a list").value();
        for result in results.as_array().expect("a list") {
            let id = result["job_id"].as_str().expect("a job").to_owned();
            let before = self.jobs.insert(id.clone(), Job::Seen);
            assert_eq!(before, Some(Job::Finished), "{id} is returned once");
        }
    }

    fn finishes(&mut self) {
        let running = self.jobs.iter().filter(|(_, job)| **job == Job::Running);
        let running: Vec<_> = running.map(|(id, _)| id.clone()).collect();
        let Some(id) = running.get(self.rng.below(running.len() as u64) as usize) else { return };
        self.trace.push(format!("{id} ends"));
        self.jobs.insert(id.clone(), Job::Finished);
        let answers = self.driver.job_ended(id, Some(0), "out");
        for (run, outcome) in answers {
            assert!(self.waits.remove(&run).is_some(), "somebody waits");
            self.acknowledged(&outcome.joined_text());
            self.take();
            self.results_end("v", "wait");
        }
        self.take();
    }

    /// One thing happens.
    fn step(&mut self) {
        let is_waiting = !self.waits.is_empty();
        match self.turn {
            None => self.finishes(),
            Some(_) if is_waiting || self.rng.below(4) == 0 => self.finishes(),
            Some(_) => match self.rng.below(8) {
                0 | 1 => {
                    self.answer(None);
                    self.trace.push("stops".to_owned());
                    let end = if self.turn == Some(true) { RunEnd::Aborted } else { RunEnd::Ended };
                    self.settle(end);
                }
                2 | 3 => self.yields(),
                4 => self.waits(),
                _ => self.works(),
            },
        }
    }
}

// BARRIER-1 to BARRIER-9, EXEC-13; task.md 12 rows 40 to 45, 88 to 90.
#[test]
fn every_interleaving_ends_with_what_the_last_yield_is_worth() {
    let (mut ends, mut notices, mut reminders) = (BTreeMap::new(), 0, 0);
    for seed in 0..SEEDS {
        let mut play = Play::new(seed);
        for step in 0.. {
            if play.outcome.is_some() {
                break;
            }
            assert!(step < STEPS_MAX, "seed {seed} does not end: {:#?}", play.trace);
            play.step();
        }
        let word = format!("{:?}", play.outcome.expect("it ended"));
        let word = word.split([' ', '(']).next().unwrap_or_default().to_owned();
        *ends.entry(word).or_insert(0) += 1;
        notices += play.notices;
        reminders += play.reminders;
    }
    // That it did what it is for.
    for word in ["Accepted", "Stale", "Missing", "Aborted"] {
        assert!(ends.get(word).is_some_and(|count| *count > 20), "{word}: {ends:?}");
    }
    assert!(notices > 500 && reminders > 5_000, "{notices} {reminders} {ends:?}");
}
