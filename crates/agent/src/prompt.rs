//! The system prompt as sections and tools, and the patches that lead to it
//! (`host.md` 2.7.2, 2.7.3).

use crew_base::message::{Content, Sections, SystemMessage, ToolName};
use crew_base::time::Time;
use crew_base::tool::ToolDefinition;

/// Sections and tools in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    /// Name and text in order of first insertion.
    pub sections: Vec<(String, String)>,
    /// In order of addition.
    pub tools: Vec<ToolDefinition>,
}

impl Prompt {
    /// Whether a tool of this name is offered.
    pub fn offers(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// Replays one system message.
    pub(crate) fn apply(&mut self, message: &SystemMessage) {
        for (name, text) in &message.sections.0 {
            let at = self.sections.iter().position(|(known, _)| known == name);
            match (at, text) {
                (Some(at), Some(text)) => self.sections[at].1.clone_from(text),
                (Some(at), None) => drop(self.sections.remove(at)),
                (None, Some(text)) => self.sections.push((name.clone(), text.clone())),
                (None, None) => {}
            }
        }
        self.tools.retain(|tool| !message.tools_removed.iter().any(|gone| gone.name == tool.name));
        for tool in &message.tools_added {
            self.tools.retain(|known| known.name != tool.name);
            self.tools.push(tool.clone());
        }
    }

    /// The patch that turns `self` into `wanted`, if they differ.
    pub(crate) fn patch_to(&self, wanted: &Prompt, timestamp: Time) -> Option<SystemMessage> {
        let mut sections = Vec::new();
        for (name, text) in &wanted.sections {
            let is_same = |(known, old): &(String, String)| known == name && old == text;
            if !self.sections.iter().any(is_same) {
                sections.push((name.clone(), Some(text.clone())));
            }
        }
        for (name, _) in &self.sections {
            if !wanted.sections.iter().any(|(known, _)| known == name) {
                sections.push((name.clone(), None));
            }
        }
        let tools_added: Vec<_> =
            wanted.tools.iter().filter(|tool| !self.tools.contains(tool)).cloned().collect();
        let tools_removed: Vec<_> = self
            .tools
            .iter()
            .filter(|tool| !wanted.tools.contains(tool))
            .map(|tool| ToolName { name: tool.name.clone() })
            .collect();
        if sections.is_empty() && tools_added.is_empty() && tools_removed.is_empty() {
            return None;
        }
        Some(SystemMessage {
            content: Content::default(),
            sections: Sections(sections),
            tools_added,
            tools_removed,
            timestamp,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::json::Raw;

    fn tool(name: &str, description: &str) -> ToolDefinition {
        ToolDefinition {
            name: name.into(),
            description: description.into(),
            parameters: Raw::empty_object(),
            constrained_sampling: None,
        }
    }

    #[test]
    fn a_patch_leads_from_any_prompt_to_any_other() {
        let old = Prompt {
            sections: vec![("preamble".into(), "a".into()), ("skills".into(), "s".into())],
            tools: vec![tool("read", "1"), tool("bash", "1")],
        };
        let new = Prompt {
            sections: vec![("preamble".into(), "b".into()), ("cwd".into(), "c".into())],
            tools: vec![tool("bash", "2"), tool("edit", "1")],
        };
        let patch = old.patch_to(&new, Time(1)).unwrap();
        // A changed definition is listed in both lists (host.md 2.7.3).
        assert_eq!(patch.tools_removed.len(), 2);
        assert_eq!(patch.tools_added.len(), 2);
        let mut replayed = old;
        replayed.apply(&patch);
        assert_eq!(replayed.sections.len(), 2);
        assert!(replayed.patch_to(&new, Time(2)).is_none());
    }
}
