//! What the id of a model tells about its generation (`host.md` 3.9, 9.5.3,
//! 9.5.4).

/// Traits of one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traits {
    /// Thinks by level, not by budget.
    pub(super) thinks_by_level: bool,
    /// Calls and their results carry ids.
    pub(super) call_ids: bool,
    /// Images of results stand inside the results.
    pub(super) nested_images: bool,
}

/// Reads the traits off a model id, which may have a path before it.
pub(super) fn traits(id: &str) -> Traits {
    let id = id.rsplit('/').next().unwrap_or(id).to_ascii_lowercase();
    let gemini = id.strip_prefix("gemini-");
    let generation = gemini.and_then(number);
    let latest = ["flash-latest", "flash-lite-latest"];
    let by_level = match (gemini, generation) {
        (Some(rest), Some(3)) => rest.contains("pro") || rest.contains("flash"),
        (Some(_), Some(generation)) => generation > 3,
        (Some(rest), None) => latest.contains(&rest),
        (None, _) => id.strip_prefix("gemma-").and_then(number) == Some(4),
    };
    let third = generation.is_some_and(|generation| generation >= 3);
    let relayed = id.starts_with("claude-") || id.starts_with("gpt-oss-");
    Traits {
        thinks_by_level: by_level,
        call_ids: third || relayed,
        nested_images: third || gemini.is_none(),
    }
}

/// The whole number at the start of a text.
fn number(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_the_generation() {
        let check = |id: &str, expected: (bool, bool, bool)| {
            let got = traits(id);
            let got = (got.thinks_by_level, got.call_ids, got.nested_images);
            assert_eq!(got, expected, "{id}");
        };
        check("gemini-2.5-pro", (false, false, false));
        check("gemini-2.0-flash", (false, false, false));
        check("gemini-3-pro-preview", (true, true, true));
        check("gemini-3.1-flash", (true, true, true));
        check("google/gemini-3-flash", (true, true, true));
        check("gemini-3-nano", (false, true, true));
        check("gemini-4-nano", (true, true, true));
        check("gemini-10-pro", (true, true, true));
        check("gemini-flash-latest", (true, false, false));
        check("gemini-flash-lite-latest", (true, false, false));
        check("gemini-pro-latest", (false, false, false));
        check("gemma-4-27b", (true, false, true));
        check("gemma-3-27b", (false, false, true));
        check("claude-x", (false, true, true));
        check("gpt-oss-120b", (false, true, true));
        check("m1", (false, false, true));
    }
}
