//! Effort words and the level they give (TASK-SPAWN-12).

use crew_base::model::ThinkingLevel;

/// `effort` of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// `lo`.
    Low,
    /// `med`.
    Medium,
    /// `hi`.
    High,
}

impl Effort {
    /// The effort of a word; exact.
    pub fn parse(word: &str) -> Option<Effort> {
        match word {
            "lo" => Some(Effort::Low),
            "med" => Some(Effort::Medium),
            "hi" => Some(Effort::High),
            _ => None,
        }
    }
}

/// The level for a model that supports `levels`, in rising order. Nothing for
/// a model without levels; the error says that the model starts above the cap.
pub fn level(
    effort: Effort,
    levels: &[ThinkingLevel],
    cap: ThinkingLevel,
) -> Result<Option<ThinkingLevel>, String> {
    let levels: Vec<_> =
        levels.iter().copied().filter(|level| *level != ThinkingLevel::Off).collect();
    let Some(lowest) = levels.first().copied() else { return Ok(None) };
    if lowest > cap {
        return Err(format!(
            "the model thinks at `{}` at least, which is above `task.maxEffort` (`{}`)",
            lowest.word(),
            cap.word()
        ));
    }
    let wanted = match effort {
        Effort::Low => lowest,
        Effort::Medium => levels[(levels.len() - 1) / 2],
        Effort::High => levels.last().copied().unwrap_or(lowest),
    };
    let capped = levels.iter().copied().rfind(|level| *level <= wanted.min(cap));
    Ok(Some(capped.unwrap_or(lowest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ThinkingLevel::{High, Low, Max, Medium, Minimal, Off, Xhigh};

    // TASK-SPAWN-12; task.md 12 row 23.
    #[test]
    fn effort_picks_a_level_below_the_cap() {
        let check = |effort, levels: &[ThinkingLevel], cap, expected: Option<ThinkingLevel>| {
            assert_eq!(level(effort, levels, cap), Ok(expected), "{effort:?} {levels:?} {cap:?}");
        };
        let four = [Off, Minimal, Low, Medium, High];
        check(Effort::Low, &four, Max, Some(Minimal));
        check(Effort::Medium, &four, Max, Some(Low));
        check(Effort::High, &four, Max, Some(High));
        check(Effort::High, &four, Low, Some(Low));
        check(Effort::Medium, &[Off, Low, High, Xhigh], Max, Some(High));
        check(Effort::High, &[Off, Minimal, High], Medium, Some(Minimal));
        check(Effort::High, &[Off], Max, None);
        let error = level(Effort::High, &[Off, High], Low).unwrap_err();
        assert!(error.contains("`high`") && error.contains("`low`"), "{error}");
    }
}
