//! The text of `--help`, in our words and order. A test keeps it in step with
//! the options.

/// Printed by `--help`.
pub(crate) const HELP: &str = "\
crew: a coding agent for the terminal, with subagents that work beside you

  crew -p \"PROMPT\"           answer on stdout, then exit
  crew -p @FILE \"PROMPT\"     the same with files or images; piped input comes first
  crew -c -p \"PROMPT\"        go on with the last session of this directory
  crew --mode json \"PROMPT\"  events as JSON lines
  crew demo [DIR]            see a crew at work, without key and network

Model
  --model NAME[:LEVEL]       provider/id, or a part of an id or name
  --provider NAME            look for --model at this provider only
  --api-key KEY              key for the chosen model, kept in memory
  --thinking LEVEL           off, minimal, low, medium, high, xhigh, max
  --models LIST              models to choose from; patterns with *, ?, [
  --list-models [WORDS]      show the models that can be used

Session
  -c, --continue             go on with the last session of this directory
  --session PATH|ID          go on with this session
  --session-id ID            the session of exactly this id, made if missing
  --session-dir DIR          keep sessions here
  --no-session               keep nothing
  -n, --name NAME            name a new session
  -r, --resume               choose a session of this directory
  --fork PATH|ID             go on with a copy of this session, in this directory
  --export FILE|ID [OUT]     write a session as an HTML page
  --with-children            with --export: its subagents' sessions too

Tools and prompt
  -t, --tools LIST           names or * patterns: only these; +NAME, -NAME: change
                             the default
  -xt, --exclude-tools LIST  never these, for subagents too
  -nt, --no-tools            none at all
  -nbt, --no-builtin-tools   only those of the crew
  --system-prompt TEXT       text or file in place of our prompt
  --append-system-prompt T   text or file added to it, may be repeated
  --skill PATH               one more skill, may be repeated
  -ns, --no-skills           only those of --skill
  --prompt-template PATH     one more template, may be repeated
  -np, --no-prompt-templates no others
  -nc, --no-context-files    no AGENTS.md and the like

Running
  -p, --print                print mode; also when stdin or stdout is no terminal
  --mode MODE                text, json or rpc
  --plain                    interactive without screen control: lines in, lines out
  --crew-wait SECONDS        wait at most this long for subagents; 0: not at all
  -a, --approve              trust the .pi folder of this directory, this time
  -na, --no-approve          do not
  --offline                  no network but for model requests
  --verbose                  tell on stderr what is going on
  -h, --help                 this text
  -v, --version              the version

Accepted without effect: -e/--extension, -ne/--no-extensions, --no-mcp,
--theme, --use-theme, --no-themes, --tui-mode.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use crate::args::words::Table;
    use clap::CommandFactory;

    #[test]
    fn the_help_names_every_option_and_fits_a_screen() {
        let names = |option: &str| {
            HELP.match_indices(option).any(|(at, _)| {
                let next = HELP[at + option.len()..].chars().next();
                next.is_none_or(|c| !c.is_alphanumeric() && c != '-')
            })
        };
        for name in Table::of(&Args::command()).names() {
            assert!(names(&format!("--{name}")), "--{name}");
        }
        assert!(HELP.lines().all(|line| line.chars().count() <= 85), "a line is too long");
        assert!(HELP.contains("demo"));
    }
}
