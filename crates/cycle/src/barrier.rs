//! Background jobs of a child and what they hold back (`task.md` 7, OBS-8).
//!
//! Owns which jobs run, whose results wait, and the calls of `wait`. Must
//! never start or end a process; read `driver` for what a pending job does to
//! a yield.

use serde_json::{Value, json};

use crew_base::id::RunId;
use crew_base::json::Raw;
use crew_base::tool::ToolOutcome;

use crate::contract::Synthetic;

/// Entry type of a background result (`task.md` OBS-7).
pub const RESULT_TYPE: &str = "task-job";
/// Entry type of the notice of pending work (`task.md` OBS-7).
pub const NOTICE_TYPE: &str = "task-pending";
/// The tool that waits for jobs.
pub const WAIT_TOOL: &str = "wait";

/// The jobs of one child, in the order they started.
#[derive(Clone, Debug, Default)]
pub struct Jobs {
    jobs: Vec<Job>,
    waits: Vec<Wait>,
}

#[derive(Clone, Debug)]
struct Job {
    id: String,
    label: String,
    state: State,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    /// Its process lives.
    Running,
    /// Its result waits for a place.
    Finished(Value),
    /// The result was handed to the session and is not recorded yet.
    Delivered(Value),
}

#[derive(Clone, Debug)]
struct Wait {
    run: RunId,
    ids: Vec<String>,
}

impl State {
    fn is_delivered(&self) -> bool {
        matches!(self, State::Delivered(_))
    }
}

impl Jobs {
    /// A job began; `label` is what people call it, for instance its command.
    pub fn started(&mut self, id: &str, label: &str) {
        let state = State::Running;
        self.jobs.push(Job { id: id.to_owned(), label: label.to_owned(), state });
    }

    /// A job ended. Answers the calls of `wait` that this completes.
    pub fn finished(
        &mut self,
        id: &str,
        exit_code: Option<i64>,
        output: &str,
    ) -> Vec<(RunId, ToolOutcome)> {
        let result = json!({"job_id": id, "exit_code": exit_code, "output": output});
        let running = self.jobs.iter_mut().find(|job| job.id == id && job.state == State::Running);
        if let Some(job) = running {
            job.state = State::Finished(result);
        }
        self.answer_waits()
    }

    /// Ids and labels of the jobs whose process lives.
    pub fn running(&self) -> impl Iterator<Item = (&str, &str)> {
        let running = self.jobs.iter().filter(|job| job.state == State::Running);
        running.map(|job| (job.id.as_str(), job.label.as_str()))
    }

    /// Whether work is pending that no running `wait` watches (BARRIER-1).
    pub fn is_pending(&self) -> bool {
        self.jobs.iter().any(|job| !self.is_watched(&job.id))
    }

    fn is_watched(&self, id: &str) -> bool {
        self.waits.iter().any(|wait| wait.ids.iter().any(|watched| watched == id))
    }

    /// Whether a result waits to be delivered.
    pub fn has_results(&self) -> bool {
        let waiting =
            |job: &Job| matches!(job.state, State::Finished(_)) && !self.is_watched(&job.id);
        self.jobs.iter().any(waiting)
    }

    /// Takes the results that wait, as messages; they count as delivered.
    pub fn deliver(&mut self) -> Vec<Synthetic> {
        let mut taken = Vec::new();
        let watched: Vec<_> = self.jobs.iter().map(|job| self.is_watched(&job.id)).collect();
        for (job, is_watched) in self.jobs.iter_mut().zip(watched) {
            if is_watched {
                continue;
            }
            let State::Finished(result) = &job.state else { continue };
            let (result, text) = (result.clone(), result.to_string());
            job.state = State::Delivered(result);
            taken.push(Synthetic { custom_type: Some(RESULT_TYPE), text });
        }
        taken
    }

    /// The result in this message stands in the conversation. Tells whether it
    /// was one of a known job.
    pub fn injected(&mut self, text: &str) -> bool {
        let Some(result) = Raw::parse(text) else { return false };
        let Some(id) = result.value()["job_id"].as_str().map(str::to_owned) else { return false };
        let known = self.jobs.len();
        self.jobs.retain(|job| job.id != id || !job.state.is_delivered());
        self.jobs.len() < known
    }

    /// The child is idle: results that were handed over and were not recorded
    /// wait again, so that none holds the end back for ever.
    pub fn take_back(&mut self) {
        for job in &mut self.jobs {
            if let State::Delivered(result) = &job.state {
                job.state = State::Finished(result.clone());
            }
        }
    }

    /// A call of `wait`: the outcome, or nothing until the jobs have ended.
    /// Refuses unknown ids by name.
    pub fn wait(&mut self, run: RunId, arguments: &Raw) -> Option<ToolOutcome> {
        let ids = match self.wait_ids(&arguments.value()) {
            Ok(ids) => ids,
            Err(text) => return Some(ToolOutcome::error(text)),
        };
        self.waits.push(Wait { run, ids });
        self.answer_waits().pop().map(|(_, outcome)| outcome)
    }

    fn wait_ids(&self, arguments: &Value) -> Result<Vec<String>, String> {
        let waitable = || self.jobs.iter().filter(|job| !job.state.is_delivered());
        let Some(given) = arguments.get("job_ids").filter(|given| !given.is_null()) else {
            return Ok(waitable().map(|job| job.id.clone()).collect());
        };
        let texts: Option<Vec<String>> = given
            .as_array()
            .and_then(|ids| ids.iter().map(|id| id.as_str().map(str::to_owned)).collect());
        let Some(ids) = texts else {
            return Err("`job_ids` must be a list of job ids".to_owned());
        };
        if let Some(unknown) = ids.iter().find(|id| !waitable().any(|job| job.id == **id)) {
            let known: Vec<_> = waitable().map(|job| job.id.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!("no job `{unknown}` can be waited for; there are: {known}"));
        }
        Ok(ids)
    }

    /// A call of `wait` was cancelled; what it watched counts again.
    pub fn cancel_wait(&mut self, run: RunId) -> bool {
        let known = self.waits.len();
        self.waits.retain(|wait| wait.run != run);
        self.waits.len() < known
    }

    /// Answers every `wait` whose jobs have all ended, and acknowledges them.
    fn answer_waits(&mut self) -> Vec<(RunId, ToolOutcome)> {
        let mut answers = Vec::new();
        let waits = std::mem::take(&mut self.waits);
        for wait in waits {
            let is_running = |id: &String| {
                self.jobs.iter().any(|job| job.id == *id && job.state == State::Running)
            };
            if wait.ids.iter().any(is_running) {
                self.waits.push(wait);
                continue;
            }
            let results: Vec<_> = wait
                .ids
                .iter()
                .filter_map(|id| self.jobs.iter().find(|job| job.id == *id))
                .filter_map(|job| match &job.state {
                    State::Finished(result) => Some(result.clone()),
                    State::Running | State::Delivered(_) => None,
                })
                .collect();
            self.jobs.retain(|job| {
                !matches!(job.state, State::Finished(_)) || !wait.ids.contains(&job.id)
            });
            answers.push((wait.run, ToolOutcome::text(Value::Array(results).to_string())));
        }
        answers
    }

    /// The one notice of pending work (BARRIER-4); lists each job by id and label.
    pub fn notice(&self) -> Synthetic {
        let lines: Vec<_> = self.running().map(|(id, label)| format!("- {id}: {label}")).collect();
        Synthetic {
            custom_type: Some(NOTICE_TYPE),
            text: format!(
                "Your `yield` is noted, but background jobs of yours still run:\n{}\nTheir results \
                 reach you as messages. A result that arrives after a `yield` makes it invalid; \
                 look at it and call `yield` again. End jobs that nobody needs any more, or stop \
                 here and wait.",
                lines.join("\n")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Raw {
        Raw::empty_object()
    }

    // task.md 12 row 45; BARRIER-1: every step of a result on its way counts.
    #[test]
    fn a_job_is_pending_until_its_result_stands_in_the_conversation() {
        let mut jobs = Jobs::default();
        assert!(!jobs.is_pending());
        jobs.started("j1", "sleep 1");
        assert!(jobs.is_pending() && !jobs.has_results());
        assert!(jobs.finished("j1", Some(3), "out").is_empty());
        assert!(jobs.is_pending() && jobs.has_results());
        let text = jobs.deliver().remove(0).text;
        assert_eq!(text, r#"{"job_id":"j1","exit_code":3,"output":"out"}"#);
        assert!(jobs.is_pending() && !jobs.has_results(), "delivered, not injected");
        assert!(jobs.injected(&text));
        assert!(!jobs.is_pending());
        assert!(!jobs.injected(&text), "it enters once");
    }

    // task.md 12 row 44; OBS-8.
    #[test]
    fn waiting_acknowledges_and_suppresses() {
        let mut jobs = Jobs::default();
        jobs.started("a", "x");
        jobs.started("b", "y");
        let only_a = Raw::of(&json!({"job_ids": ["a"]}));
        assert!(jobs.wait(RunId(1), &only_a).is_none());
        assert!(jobs.is_pending(), "b is not watched");
        assert!(jobs.wait(RunId(2), &all()).is_none());
        assert!(!jobs.is_pending(), "both are watched");
        let answers = jobs.finished("a", Some(0), "A");
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].0, RunId(1));
        assert_eq!(answers[0].1.joined_text(), r#"[{"job_id":"a","exit_code":0,"output":"A"}]"#);
        assert!(jobs.cancel_wait(RunId(2)));
        assert!(jobs.is_pending(), "nobody watches b any more");
        jobs.finished("b", None, "");
        assert_eq!(
            jobs.wait(RunId(3), &all()).map(|outcome| outcome.joined_text()).as_deref(),
            Some(r#"[{"job_id":"b","exit_code":null,"output":""}]"#)
        );
        assert!(!jobs.is_pending());
        assert_eq!(jobs.wait(RunId(4), &all()).unwrap().joined_text(), "[]");
    }

    #[test]
    fn an_unknown_job_is_refused_by_name() {
        let mut jobs = Jobs::default();
        jobs.started("a", "x");
        let outcome = jobs.wait(RunId(1), &Raw::of(&json!({"job_ids": ["z"]}))).unwrap();
        assert!(outcome.is_error && outcome.joined_text().contains("`z`"));
        let outcome = jobs.wait(RunId(1), &Raw::of(&json!({"job_ids": "a"}))).unwrap();
        assert!(outcome.is_error);
        assert!(jobs.is_pending());
    }

    #[test]
    fn a_result_that_was_not_recorded_waits_again() {
        let mut jobs = Jobs::default();
        jobs.started("a", "x");
        jobs.finished("a", Some(0), "A");
        let text = jobs.deliver().remove(0).text;
        jobs.take_back();
        assert!(jobs.has_results());
        assert_eq!(jobs.deliver()[0].text, text);
    }
}
