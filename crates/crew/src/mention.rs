//! Mentions of subagents in what the person wrote, as models see them.
//!
//! Owns the expansion of `@crew:name` (`crew.md` MEN-1 to MEN-6, MEN-11). Must
//! never touch what is stored or shown: requests alone carry the result.

use crew_base::message::{Block, Content, Message, TextBlock, UserMessage};

/// The text with each mention replaced by `<pi-crew subagent="NAME" />`
/// (`crew.md` MEN-1 to MEN-4); `None` when there is none.
pub fn expand(text: &str) -> Option<String> {
    let mut kept = String::new();
    let mut copied = 0;
    // Candidates of one run of text share its end: looking for it again for
    // each of them would take quadratic time.
    let mut run_end = 0;
    let mut candidate_end = 0;
    for (at, _) in text.match_indices(MARKER) {
        let start = at + MARKER.len();
        if start > run_end {
            let rest = &text[start..];
            let run = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
            run_end = start + run.len();
            candidate_end = start + run.trim_end_matches(CLOSING).len();
        }
        let name = &text[start..start + name_bytes(&text[start..])];
        let is_whole = start + name.len() == candidate_end;
        if name.is_empty() || !is_whole || !may_begin_after(&text[..at]) {
            continue;
        }
        kept.push_str(&text[copied..at]);
        kept.push_str("<pi-crew subagent=\"");
        kept.push_str(name);
        kept.push_str("\" />");
        copied = candidate_end;
    }
    if copied == 0 {
        return None;
    }
    kept.push_str(&text[copied..]);
    Some(kept)
}

/// A user message with the mentions of its text parts expanded, all else equal
/// (`crew.md` MEN-5); `None` for other messages and when there is no mention.
pub fn outgoing(message: &Message) -> Option<Message> {
    let Message::User(user) = message else {
        return None;
    };
    let content = match &user.content {
        Content::Text(text) => Content::Text(expand(text)?),
        Content::Blocks(blocks) => Content::Blocks(expand_blocks(blocks)?),
    };
    Some(Message::User(UserMessage { content, timestamp: user.timestamp }))
}

fn expand_blocks(blocks: &[Block]) -> Option<Vec<Block>> {
    let mut expanded: Option<Vec<Block>> = None;
    for (at, block) in blocks.iter().enumerate() {
        let Block::Text(old) = block else { continue };
        let Some(text) = expand(&old.text) else {
            continue;
        };
        expanded.get_or_insert_with(|| blocks.to_vec())[at] =
            Block::Text(TextBlock { text, text_signature: old.text_signature.clone() });
    }
    expanded
}

fn name_bytes(rest: &str) -> usize {
    rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'-').count()
}

fn may_begin_after(before: &str) -> bool {
    before.chars().next_back().is_none_or(|c| c.is_whitespace() || OPENING.contains(&c))
}

const MARKER: &str = "@crew:";

/// `crew.md` MEN-2.
const OPENING: [char; 11] = ['(', '[', '{', '<', '"', '\'', '`', '*', ',', ';', ':'];

/// `crew.md` MEN-3.
const CLOSING: [char; 14] = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '>', '"', '\'', '`', '*'];

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::json::from_text;

    /// `«name»` stands for the expansion of `name`.
    fn check(input: &str, expected: &str) {
        let expected = expected.replace('«', "<pi-crew subagent=\"").replace('»', "\" />");
        let want = (expected != input).then_some(expected);
        assert_eq!(expand(input), want, "{input:?}");
    }

    // MEN-1, MEN-2, MEN-4, MEN-6; rows 92 and 94.
    #[test]
    fn mentions_are_expanded_and_punctuation_is_kept() {
        check("ask @crew:scout, then (@crew:worker).", "ask «scout», then («worker»).");
        check("@crew:nobody-knows", "«nobody-knows»");
        check("x\n@crew:a-1B", "x\n«a-1B»");
        check("[@crew:a] {@crew:b} <@crew:c>", "[«a»] {«b»} <«c»>");
        check("\"@crew:a\" '@crew:b' `@crew:c` *@crew:d*", "\"«a»\" '«b»' `«c»` *«d»*");
        check(";@crew:a :@crew:b ,@crew:c", ";«a» :«b» ,«c»");
        check("@crew:a!? @crew:b: @crew:c; @crew:-", "«a»!? «b»: «c»; «-»");
        check("**@crew:a**\u{2003}@crew:b\u{a0}@crew:c", "**«a»**\u{2003}«b»\u{a0}«c»");
        check("```\n@crew:a\n```", "```\n«a»\n```");
        check("ä @crew:a…", "ä @crew:a…");
    }

    // MEN-2, MEN-3; row 93.
    #[test]
    fn what_is_not_wholly_a_mention_stays() {
        for text in [
            "",
            "plain",
            "@crew:",
            "@crew: scout",
            "@crew:.",
            "@crew:foo_bar",
            "@crew:foo.bar",
            "@crew:foo/bar",
            "me@crew:scout",
            "x-@crew:scout",
            "/@crew:a",
            ".@crew:a",
            ")@crew:a",
            "@Crew:scout",
            "@crew:été",
            "@crew:a@b",
            "@@crew:a",
            "ü@crew:a",
            "@crew:a(b)",
            "@crew:a\u{0}",
            "@crew",
        ] {
            check(text, text);
        }
    }

    // MEN-3, OP-25: names may hold commas, so the first is no mention.
    #[test]
    fn a_failed_candidate_does_not_hide_the_next_one() {
        check("@crew:a,@crew:b", "@crew:a,«b»");
        check("@crew:@crew:a.", "@crew:«a».");
        check("@crew:a_(@crew:b) @crew:c", "@crew:a_(«b») «c»");
    }

    // MEN-5, MEN-7: only text parts of user messages; the source stays.
    #[test]
    fn only_text_parts_of_user_messages_change() {
        let stored = concat!(
            r#"{"role":"user","content":[{"type":"text","text":"@crew:a","textSignature":"s"},"#,
            r#"{"type":"image","data":"@crew:a","mimeType":"image/png"},{"type":"novel","text":"@crew:a"},"#,
            r#"{"type":"text","text":"none"}],"timestamp":7}"#
        );
        let message: Message = from_text(stored).unwrap();
        let sent = serde_json::to_string(&outgoing(&message).unwrap()).unwrap();
        let tag = r#"<pi-crew subagent=\"a\" />"#;
        assert_eq!(sent, stored.replacen("@crew:a", tag, 1));
        assert_eq!(serde_json::to_string(&message).unwrap(), stored);

        let plain: Message =
            from_text(r#"{"role":"user","content":"@crew:a","timestamp":7}"#).unwrap();
        let sent = serde_json::to_string(&outgoing(&plain).unwrap()).unwrap();
        assert_eq!(sent, format!(r#"{{"role":"user","content":"{tag}","timestamp":7}}"#));
    }

    // MEN-5; row 95.
    #[test]
    fn other_messages_stay() {
        for text in [
            r#"{"role":"assistant","content":"@crew:scout","stopReason":"stop"}"#,
            r#"{"role":"toolResult","toolCallId":"c","content":"@crew:scout"}"#,
            r#"{"role":"custom","customType":"x","content":"@crew:scout","display":true}"#,
            r#"{"role":"system","content":"@crew:scout"}"#,
            r#"{"role":"bashExecution","command":"@crew:scout"}"#,
            r#"{"role":"user","content":"me@crew:scout"}"#,
            r#"{"role":"user","content":[]}"#,
        ] {
            let message: Message = from_text(text).unwrap();
            assert_eq!(outgoing(&message), None, "{text}");
        }
    }

    // MEN-11: the same bytes each time, and what was expanded is not again.
    #[test]
    fn expansion_is_pure_and_settles() {
        let first = expand("see @crew:a and (@crew:b)").unwrap();
        assert_eq!(expand("see @crew:a and (@crew:b)").as_deref(), Some(&*first));
        assert_eq!(expand(&first), None);
    }

    #[test]
    fn megabytes_of_hostile_text_are_one_pass() {
        for part in
            ["@crew:,", "@crew:a,", "@crew:", "@crew:(", "@crew:_", "\u{0}@", "@crew:a\u{1b}"]
        {
            let text = part.repeat(1_000_000 / part.len());
            let expanded = expand(&text).unwrap_or_default();
            assert!(expanded.matches("<pi-crew").count() <= 1, "{part:?}");
        }
        let text = "@crew:a ".repeat(125_000);
        assert_eq!(expand(&text).unwrap().matches("<pi-crew").count(), 125_000);
    }
}
