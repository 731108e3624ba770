//! Whether a call of a tool may run at all (DISP-2 to DISP-4, OBS-3).

use std::collections::BTreeMap;

use crew_base::limits::APPROVAL_CHARS_MAX;
use crew_base::text::{excerpt, is_blank};

use crate::arguments::Request;

/// `approval.mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Only reading needs no question.
    AlwaysAsk,
    /// Reading and writing need none.
    Write,
    /// Nothing needs one.
    #[default]
    Yolo,
}

/// `approval.tools.<tool>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Never ask.
    Allow,
    /// Never run.
    Deny,
    /// Always ask.
    Prompt,
}

/// What a tool can do, in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Look.
    Read,
    /// Change files.
    Write,
    /// Anything.
    Exec,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It runs.
    Run,
    /// Somebody is asked.
    Ask,
    /// It does not run; the text names the policy and nothing else.
    Refuse(String),
}

/// The approval settings in force for one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approval {
    /// `approval.mode`.
    pub mode: Mode,
    /// `approval.tools`.
    pub tools: BTreeMap<String, Policy>,
    /// Somebody can answer: neither print nor JSON mode nor a child.
    pub can_ask: bool,
}

impl Approval {
    /// Decides about one call. `deny` wins in every mode.
    pub fn decide(&self, tool: &str, tier: Tier) -> Decision {
        let policy = self.tools.get(tool).copied();
        let automatic = match self.mode {
            Mode::AlwaysAsk => Tier::Read,
            Mode::Write => Tier::Write,
            Mode::Yolo => Tier::Exec,
        };
        match policy {
            Some(Policy::Deny) => refuse(tool, "deny"),
            Some(Policy::Allow) => Decision::Run,
            Some(Policy::Prompt) if self.can_ask => Decision::Ask,
            Some(Policy::Prompt) => refuse(tool, "prompt"),
            None if tier <= automatic => Decision::Run,
            None if self.can_ask => Decision::Ask,
            None => Decision::Refuse(format!(
                "`{tool}` needs an approval that nobody can give here (approval.mode)"
            )),
        }
    }

    /// The same for a child: nothing needs a question, and nobody could answer
    /// one (SESS-3).
    pub fn for_child(&self) -> Approval {
        Approval { mode: Mode::Yolo, tools: self.tools.clone(), can_ask: false }
    }
}

fn refuse(tool: &str, word: &str) -> Decision {
    Decision::Refuse(format!("`{tool}` is refused by policy (approval.tools.{tool}: {word})"))
}

/// What the person is shown (DISP-4). Agents are named with defaults resolved.
pub fn view(request: &Request, default_agent: &str) -> String {
    let cut = |text: &str| excerpt(text, APPROVAL_CHARS_MAX);
    let mut lines = Vec::new();
    let agent = |item: &crate::arguments::Item| {
        item.agent.clone().unwrap_or_else(|| default_agent.to_owned())
    };
    if request.items.len() > 1 {
        let mut counts: Vec<(String, usize)> = Vec::new();
        for item in &request.items {
            let name = agent(item);
            match counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => counts.push((name, 1)),
            }
        }
        let counts: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        lines.push(format!("Agents: {}", cut(&counts.join(", "))));
    }
    if let Some(first) = request.items.first() {
        lines.push(format!("Agent: {}", cut(&agent(first))));
        if let Some(name) = &first.name {
            lines.push(format!("Name: {}", cut(name)));
        }
        lines.push(format!("Task: {}", cut(&first.task)));
    }
    if let Some(context) = request.context.as_deref().filter(|text| !is_blank(text)) {
        lines.push(format!("Context: {}", cut(context)));
    }
    if request.items.len() > 1 {
        lines.push(format!("and {} more", request.items.len() - 1));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;
    use crate::settings::Settings;
    use crew_base::json::Raw;
    use serde_json::json;

    fn approval(mode: Mode, policy: Option<Policy>, can_ask: bool) -> Approval {
        let tools = policy.map(|policy| ("task".to_owned(), policy)).into_iter().collect();
        Approval { mode, tools, can_ask }
    }

    // DISP-3, OP-14, OBS-3; task.md 12 row 1.
    #[test]
    fn policy_comes_before_mode_and_deny_before_all() {
        let check = |mode, policy, can_ask, tier, expected: &str| {
            let decision = match approval(mode, policy, can_ask).decide("task", tier) {
                Decision::Run => "run",
                Decision::Ask => "ask",
                Decision::Refuse(_) => "refuse",
            };
            assert_eq!(decision, expected, "{mode:?} {policy:?} {can_ask} {tier:?}");
        };
        check(Mode::Yolo, None, false, Tier::Exec, "run");
        check(Mode::Yolo, Some(Policy::Deny), true, Tier::Exec, "refuse");
        check(Mode::Yolo, Some(Policy::Prompt), true, Tier::Exec, "ask");
        check(Mode::Yolo, Some(Policy::Prompt), false, Tier::Exec, "refuse");
        check(Mode::Write, None, true, Tier::Write, "run");
        check(Mode::Write, None, true, Tier::Exec, "ask");
        check(Mode::AlwaysAsk, None, true, Tier::Write, "ask");
        check(Mode::AlwaysAsk, None, true, Tier::Read, "run");
        check(Mode::AlwaysAsk, None, false, Tier::Exec, "refuse");
        check(Mode::AlwaysAsk, Some(Policy::Allow), false, Tier::Exec, "run");
        let child = approval(Mode::AlwaysAsk, None, true).for_child();
        assert_eq!(child.decide("bash", Tier::Exec), Decision::Run);
    }

    // DISP-4.
    #[test]
    fn the_view_counts_agents_and_cuts_long_fields() {
        let long = "x".repeat(3000);
        let call = json!({"context": long, "tasks": [
            {"name": "A", "task": "first"}, {"agent": "scout", "task": "t"}, {"task": "t"}]});
        let request = arguments::read(&Raw::of(&call), &Settings::default()).unwrap();
        let text = view(&request, "task");
        for part in ["2 task, 1 scout", "Name: A", "Task: first", "and 2 more", "Context: xxx"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() < 2_100));
    }
}
