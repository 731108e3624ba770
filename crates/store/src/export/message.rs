//! What messages look like: prompts, answers, system prompts, shell commands
//! (`host.md` 2.7, 8.16).

use crew_base::message::{
    AssistantMessage, BashExecutionMessage, Block, Message, StopReason, SystemMessage,
    ThinkingBlock,
};

use super::Done;
use super::markup::{Html, Style, count, duration};
use super::page::spent;
use super::survey::Sum;
use super::transcript::{Look, Transcript};
use crate::json_text::pretty;

impl Transcript<'_> {
    /// Writes a message; `following` are the places that come next, among them
    /// maybe the results of its calls.
    pub(super) fn message(
        &mut self,
        html: &mut Html<'_>,
        place: usize,
        message: Message,
        following: &[usize],
    ) -> Done {
        match message {
            Message::User(message) => {
                let headline = if self.is_child() { "Prompt" } else { "You" };
                self.begin(html, Look { class: "user", headline }, place)?;
                self.content(html, &message.content)?;
                self.end(html)
            }
            Message::System(message) => {
                self.begin_note(html, place)?;
                html.put("Prompt and tools of the model changed</p>\n")?;
                self.prompt_patch(html, &message)
            }
            Message::Assistant(message) => self.answer(html, place, &message, following),
            Message::ToolResult(message) => self.lone_result(html, place, &message),
            Message::BashExecution(message) => self.shell(html, place, &message),
            Message::Custom(message) => self.custom_message(html, place, &message),
            // Not stored; a file that has them gets at least their text.
            Message::BranchSummary(message) => self.stray_summary(html, place, &message.summary),
            Message::CompactionSummary(message) => {
                self.stray_summary(html, place, &message.summary)
            }
        }
    }

    fn stray_summary(&self, html: &mut Html<'_>, place: usize, summary: &str) -> Done {
        self.begin(html, Look { class: "summary", headline: "Summary" }, place)?;
        html.block(Style::Prose, summary)?;
        self.end(html)
    }

    fn answer(
        &mut self,
        html: &mut Html<'_>,
        place: usize,
        message: &AssistantMessage,
        following: &[usize],
    ) -> Done {
        let (class, headline) = match message.stop_reason {
            StopReason::Error => ("answer failed", "Model · failed"),
            StopReason::Aborted => ("answer failed", "Model · aborted"),
            StopReason::Length => ("answer", "Model · cut at the output limit"),
            StopReason::Stop | StopReason::ToolUse | StopReason::Pending | StopReason::Deferred => {
                ("answer", "Model")
            }
        };
        self.begin(html, Look { class, headline }, place)?;
        let mut results = self.results(message, following)?;
        for block in &message.content {
            match block {
                Block::Text(block) => html.block(Style::Prose, &block.text)?,
                Block::Thinking(block) => thinking(html, block)?,
                Block::ToolCall(call) => self.call(html, place, call, results.take(&call.id))?,
                Block::Image(image) => html.image(image)?,
                Block::Other(raw) => {
                    html.folded("Other content", Style::Code, &pretty(raw.text()))?;
                }
            }
        }
        if let Some(error) = &message.error_message {
            html.put("<div class=\"wrong\">")?;
            html.block(Style::Prose, error)?;
            html.put("</div>\n")?;
        }
        html.put("<p class=\"meta\">")?;
        html.inline(&ending(message))?;
        html.put("</p>\n")?;
        self.end(html)
    }

    /// What a system message changes (`host.md` 2.7.2).
    pub(super) fn prompt_patch(&self, html: &mut Html<'_>, message: &SystemMessage) -> Done {
        html.put("<details class=\"prompt\"><summary>System prompt")?;
        let tools = message.tools_added.len();
        if tools > 0 {
            html.text(&format!(" · {}", count(tools, "tool")))?;
        }
        html.put("</summary>\n")?;
        let content = message.content.text();
        if !content.is_empty() {
            html.block(Style::Prose, &content)?;
        }
        for (name, text) in &message.sections.0 {
            html.put("<h4>")?;
            html.inline(name)?;
            match text {
                None => html.put(" (removed)</h4>\n")?,
                Some(text) => {
                    html.put("</h4>\n")?;
                    html.block(Style::Prose, text)?;
                }
            }
        }
        for tool in &message.tools_removed {
            html.put("<h4>")?;
            html.inline(&tool.name)?;
            html.put(" (tool removed)</h4>\n")?;
        }
        for tool in &message.tools_added {
            html.put("<h4>")?;
            html.inline(&tool.name)?;
            html.put(" (tool)</h4>\n")?;
            html.block(Style::Prose, &tool.description)?;
            html.folded("Parameters", Style::Code, &pretty(tool.parameters.text()))?;
        }
        html.put("</details>\n")
    }

    fn shell(&self, html: &mut Html<'_>, place: usize, message: &BashExecutionMessage) -> Done {
        let failed = message.cancelled || message.exit_code.is_some_and(|code| code != 0);
        let class = if failed { "user failed" } else { "user" };
        self.begin(html, Look { class, headline: "Shell command" }, place)?;
        html.block(Style::Code, &format!("$ {}", message.command))?;
        if message.output.is_empty() {
            html.put("<p class=\"note\">No output.</p>\n")?;
        } else {
            html.foldable("Output", Style::Code, &message.output)?;
        }
        let mut facts = Vec::new();
        if message.cancelled {
            facts.push("cancelled".to_owned());
        }
        facts.extend(message.exit_code.map(|code| format!("exit code {code}")));
        if message.truncated {
            facts.push("output cut".to_owned());
        }
        facts.extend(message.full_output_path.iter().map(|path| format!("all of it in {path}")));
        if message.exclude_from_context == Some(true) {
            facts.push("not shown to the model".to_owned());
        }
        html.put("<p class=\"meta\">")?;
        html.inline(&facts.join(" · "))?;
        html.put("</p>\n")?;
        self.end(html)
    }
}

/// All text of some blocks, in paragraphs.
pub(super) fn joined(blocks: &[Block]) -> String {
    blocks.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n\n")
}

fn thinking(html: &mut Html<'_>, block: &ThinkingBlock) -> Done {
    if block.thinking.trim().is_empty() {
        // Nothing to read, but a reader should know that there was more.
        return html.put("<p class=\"note\">Thinking that the provider does not show.</p>\n");
    }
    html.folded("Thinking", Style::Prose, &block.thinking)
}

fn ending(message: &AssistantMessage) -> String {
    let model = message.response_model.as_deref().unwrap_or(&message.model);
    let mut facts = vec![format!("{}/{model}", message.provider)];
    facts.extend(message.thinking_level.iter().map(|level| format!("thinking {level}")));
    facts.push(spent(&Sum::of(&message.usage)));
    facts.extend(message.duration_ms.map(duration));
    facts.join(" · ")
}
