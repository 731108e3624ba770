//! Calls of `task` played by hand.

use std::sync::Arc;

use crew_base::entry::EntryBody;
use crew_base::id::SessionId;
use crew_base::message::{Message, ToolResultMessage};
use crew_engine::api::task::Lease;
use crew_engine::api::task::isolation::{Integration, Merged, Prepared};
use crew_engine::{Event, TaskWork};
use serde_json::{Value, json};

use super::Play;

impl Play {
    pub(super) fn take_work(&mut self, work: TaskWork) {
        self.worked.push(work.clone());
        match work_done(self, &work) {
            Some(event) if self.is_obedient => self.coming.push_back(event),
            Some(_) | None => self.works.push(work),
        }
    }

    /// Does the oldest work that waits; tells whether there was any.
    pub fn works(&mut self) -> bool {
        if self.works.is_empty() {
            return false;
        }
        let work = self.works.remove(0);
        if let Some(event) = work_done(self, &work) {
            self.event(event);
        }
        true
    }

    /// A session calls `task` with one item for each text, named `k1`, `k2`…
    pub fn call_task(&mut self, session: &SessionId, tasks: &[&str]) {
        let name = |at: usize| format!("k{}", at + 1);
        let item = |(at, task): (usize, &&str)| json!({"name": name(at), "task": task});
        let items: Vec<_> = tasks.iter().enumerate().map(item).collect();
        self.call(session, &[("task", json!({"context": "shared", "tasks": items}))]);
    }

    /// The session of a `task` child.
    pub fn task_child(&self, id: &str) -> SessionId {
        let plan = self.task_plans.iter().rev().find(|plan| plan.id == id);
        plan.expect("the child was opened").session.clone()
    }

    /// A child hands in data.
    pub fn yields(&mut self, child: &SessionId, data: Value) {
        self.call(child, &[("yield", json!({ "data": data }))]);
    }

    /// The oldest background command of a child ends.
    pub fn job_ends(&mut self, child: &SessionId, output: &str) {
        let own = |work: &TaskWork| matches!(work, TaskWork::StartJob { session, .. } if session == child);
        let at = self.works.iter().position(own).expect("a command runs");
        if let TaskWork::StartJob { session, job, .. } = self.works.remove(at) {
            let output = output.to_owned();
            self.event(Event::JobEnded { session, job, exit_code: Some(0), output });
        }
    }

    /// The newest result of `task` in a session.
    pub fn task_result(&self, session: &SessionId) -> Option<&ToolResultMessage> {
        self.entries(session).iter().rev().find_map(|entry| match &entry.body {
            EntryBody::Message { message: Message::ToolResult(result) }
                if result.tool_name == "task" =>
            {
                Some(result)
            }
            _ => None,
        })
    }
}

/// How work ends in a host that works; nothing for what the test ends itself
/// or what ends in nothing.
fn work_done(play: &Play, work: &TaskWork) -> Option<Event> {
    Some(match work {
        TaskWork::ReadSetup { run, .. } => {
            Event::TaskSetup { run: *run, setup: Arc::new(play.setup.clone()) }
        }
        TaskWork::Lease { run, folder, .. } => Event::TaskLeased {
            run: *run,
            lease: Ok(Lease {
                folder: folder.clone().unwrap_or_else(|| "/tmp/fresh".to_owned()),
                is_temporary: folder.is_none(),
                taken: Vec::new(),
            }),
        },
        TaskWork::Isolate(plan) => Event::TaskIsolated {
            session: plan.child.clone(),
            result: Ok(Prepared { cwd: format!("/copies/{}", plan.id), handle: 1 }),
        },
        TaskWork::WriteArtifact { session, write } => Event::ArtifactWritten {
            session: session.clone(),
            path: Ok(format!("{}/{}", write.folder, write.text_name)),
        },
        TaskWork::Describe { session, .. } => Event::TaskDescribed {
            session: session.clone(),
            diff: Ok(Some(format!("+ work of {session}"))),
        },
        TaskWork::Integrate { session, .. } => Event::TaskIntegrated {
            session: session.clone(),
            result: Ok(Integration { merged: Merged::Nothing, ..Integration::default() }),
        },
        TaskWork::Ask { .. }
        | TaskWork::StartJob { .. }
        | TaskWork::Discard { .. }
        | TaskWork::EndLease { .. } => return None,
    })
}
