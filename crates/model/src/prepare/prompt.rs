//! Folds system messages into one prompt and tool set (`host.md` 2.7.2, 9.1.1).

use crew_base::message::SystemMessage;
use crew_base::text::is_blank;
use crew_base::tool::ToolDefinition;

use super::convert::mended;

/// Prompt and tools while patches are replayed.
#[derive(Default)]
pub(super) struct Head<'a> {
    texts: Vec<String>,
    sections: Vec<(&'a str, &'a str)>,
    tools: Vec<ToolDefinition>,
}

impl<'a> Head<'a> {
    /// Applies one patch: removals of tools before additions.
    pub(super) fn apply(&mut self, patch: &'a SystemMessage) {
        let text = patch.content.text();
        if !is_blank(&text) {
            self.texts.push(text);
        }
        for (name, text) in &patch.sections.0 {
            let known = self.sections.iter().position(|(known, _)| known == name);
            match (known, text) {
                (Some(at), Some(text)) => self.sections[at].1 = text,
                (None, Some(text)) => self.sections.push((name, text)),
                (Some(at), None) => {
                    self.sections.remove(at);
                }
                (None, None) => {}
            }
        }
        let removed = |tool: &ToolDefinition| {
            let mut names = patch.tools_removed.iter();
            names.any(|removed| removed.name == tool.name)
        };
        self.tools.retain(|tool| !removed(tool));
        for added in &patch.tools_added {
            let tool = ToolDefinition { parameters: mended(&added.parameters), ..added.clone() };
            match self.tools.iter_mut().find(|known| known.name == tool.name) {
                Some(known) => *known = tool,
                None => self.tools.push(tool),
            }
        }
    }

    /// The prompt and the tools.
    pub(super) fn finish(self) -> (String, Vec<ToolDefinition>) {
        let sections = self.sections.into_iter();
        let sections = sections.filter(|(_, text)| !is_blank(text));
        let mut parts = self.texts;
        parts.extend(sections.map(|(name, text)| tagged(name, text)));
        (parts.join("\n\n"), self.tools)
    }
}

/// The text of a section inside a tag of its own name; `preamble` is bare.
fn tagged(name: &str, text: &str) -> String {
    let trimmed = text.trim();
    let opened = trimmed
        .strip_prefix('<')
        .and_then(|rest| rest.strip_prefix(name))
        .is_some_and(|rest| rest.starts_with(['>', ' ', '\n']));
    if name == "preamble" || opened && trimmed.ends_with(&format!("</{name}>")) {
        return text.to_owned();
    }
    format!("<{name}>\n{text}\n</{name}>")
}
