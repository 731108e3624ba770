//! A shell command in a few words.
//!
//! Owns the steps and the summary of a command (`crew.md` ACT-17, ACT-18).
//! Must never run, check or understand more of a command than that. Read
//! `shell/scan` for how it is cut into words.

mod scan;

use crew_base::limits::ACTIVITY_CHARS_MAX;
use crew_base::text::sanitise_block;

use super::redaction::{cap_at, is_sensitive_key, redact, redact_words, url_form, with_tilde};

/// The first step of a command, redacted, and how many there are (`crew.md`
/// ACT-17); empty when nothing in it names an executable.
pub fn shell_summary(command: &str) -> String {
    summarise(command, None)
}

/// As [`shell_summary`], with `~` for the home directory (`crew.md` ACT-14).
pub(super) fn summarise(command: &str, home: Option<&str>) -> String {
    // Escape sequences hold `;`, so they go before the steps are told apart.
    let script = scan::scan(&sanitise_block(&command.replace('\r', "\n")));
    let Some(words) = script.first else {
        return String::new();
    };
    let steps =
        if script.steps > 1 { format!(" · {} steps", script.steps) } else { String::new() };
    let room = ACTIVITY_CHARS_MAX.saturating_sub(steps.chars().count());
    format!("{}{steps}", cap_at(&segment_summary(&words, home), room))
}

/// `crew.md` ACT-18, for words that start with the executable.
fn segment_summary(words: &[String], home: Option<&str>) -> String {
    let Some((executable, arguments)) = words.split_first() else {
        return String::new();
    };
    let name = executable.rsplit(['/', '\\']).next().unwrap_or(executable);
    let count = match name {
        "cd" | "git" => 1,
        "npm" | "pnpm" | "yarn" | "bun" => script_arguments(arguments),
        "gh" => 2,
        "curl" | "wget" => {
            let shown = redact(&with_tilde(executable, home));
            return first_url(arguments)
                .map_or(shown.clone(), |url| format!("{shown} {}", redact(&url)));
        }
        _ => 0,
    };
    let shown: Vec<String> =
        words.iter().take(1 + count).map(|word| with_tilde(word, home)).collect();
    redact_words(&shown)
}

fn script_arguments(arguments: &[String]) -> usize {
    let runs = arguments.first().is_some_and(|word| matches!(word.as_str(), "run" | "exec" | "x"));
    let is_shown = arguments.get(1).is_some_and(|word| !is_sensitive_key(word));
    if runs && is_shown { 2 } else { 1 }
}

fn first_url(arguments: &[String]) -> Option<String> {
    arguments.iter().find_map(|word| url_form(word.strip_prefix("--url=").unwrap_or(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, expected: &str) {
        assert_eq!(shell_summary(command), expected, "{command:?}");
    }

    // Row 84: ACT-17.
    #[test]
    fn the_first_step_and_the_number_of_steps_are_shown() {
        check("API_TOKEN=x npm test && npm run lint", "npm test · 2 steps");
        check("ls", "ls");
        check("a; b & c && d | e || f\ng |& h", "a · 8 steps");
        check("a;\n\n;b;", "a · 2 steps");
        check("echo 'a;b' \"c|d\" e\\;f", "echo");
        check("echo \"a\\\"; b\" 'c\\'; d", "echo · 2 steps");
        check("cargo \\\n test", "cargo");
        check("a\r\nb\rc", "a · 3 steps");
        check("", "");
        check(" ;; & \n", "");
    }

    // ACT-17: these do not split.
    #[test]
    fn redirections_do_not_split() {
        check("make 2>&1", "make");
        check("make >& log", "make");
        check("make &> log", "make");
        check("make &>> log", "make");
        check("make >| log", "make");
        check("make 0<&3 <&-", "make");
        check("make 2>&1 | tee log && ls", "make · 3 steps");
        check("make &>log & ls", "make · 2 steps");
        check("2>/dev/null git >log status", "git status");
        check("make <<< 'a;b'", "make");
        check("diff <(a; b) <(c)", "diff");
    }

    // ACT-17: a here document, a comment and a substitution are no steps.
    #[test]
    fn text_inside_a_command_is_no_step() {
        check("cat <<'EOF' > f\nit's; a\n\tEOF\nls", "cat · 2 steps");
        check("cat <<-END\na\nb", "cat");
        check("# don't\nls # a; b\npwd", "ls · 2 steps");
        check("echo a#b; ls", "echo · 2 steps");
        check("echo $(a; b) `c | d` ${x:-;}", "echo");
        check(
            "git commit -m \"$(cat <<'EOF'\ndon't; do\nEOF\n)\" && git push",
            "git commit · 2 steps",
        );
        check("echo $((1<<2))\nls", "echo · 2 steps");
        check("(cd a && ls)", "cd a · 2 steps");
        check("printf $'it\\'s; a'", "printf");
    }

    // ACT-18.
    #[test]
    fn little_of_a_step_is_shown() {
        check("rm -rf /", "rm");
        check("A=1 B='x y' C=$(echo hush | cat) D+=2 E=(f g) make all", "make");
        check("TOKEN=hush; make", "make · 2 steps");
        check("TOKEN=hush", "");
        check("cd src/app", "cd src/app");
        check("cd", "cd");
        check("git -C x status", "git -C");
        check("/usr/bin/git status -s", "/usr/bin/git status");
        check("npm install left", "npm install");
        for name in ["npm", "pnpm", "yarn", "bun"] {
            check(&format!("{name} test x"), &format!("{name} test"));
            for verb in ["run", "exec", "x"] {
                check(&format!("{name} {verb} lint y"), &format!("{name} {verb} lint"));
                check(&format!("{name} {verb} api-key y"), &format!("{name} {verb}"));
            }
        }
        check("npm run", "npm run");
        check("gh pr view 12", "gh pr view");
        check("gh --token 'a b c' pr", "gh --token=***");
        check("gh --token=hush pr", "gh --token=*** pr");
        check("'my tool' x", "my tool");
        check("\"$(cat hush)\" x", "$(…)");
        check("cd \"a\nb\"", "cd a b");
    }

    // Row 85: ACT-12, ACT-18.
    #[test]
    fn downloads_show_the_bare_url_only() {
        let url = "'https://bob:hush@h.example:8080/a/b?key=hush#x'";
        check(
            &format!("curl -H 'Authorization: Bearer hush' {url}"),
            "curl https://h.example:8080/a/b",
        );
        check(&format!("wget -q {url} https://other/"), "wget https://h.example:8080/a/b");
        check("curl --url=https://u@h/p -u a:hush", "curl https://h/p");
        check("curl -u a:hush example.com", "curl");
    }

    // Row 87: ACT-8.
    #[test]
    fn control_bytes_do_not_reach_the_screen() {
        check("\u{1b}[1;31mls\u{1b}[0m", "ls");
        check("\u{1b}]0;a;b\u{7}cd \u{0}x\u{85}", "cd x");
        check("ls\u{9b}31;1m; pwd", "ls · 2 steps");
    }

    #[test]
    fn unbalanced_quotes_and_groups_end_with_the_text() {
        for text in
            ["echo 'a; b", "echo \"a; b", "echo `a; b", "echo $(a; b", "echo ${a; b", "echo \\"]
        {
            check(text, "echo");
        }
        check("cat <<", "cat");
        check("cat <", "cat");
        check("a &", "a");
        check("a |", "a");
        check("'", "");
    }

    #[test]
    fn megabytes_of_hostile_commands_are_one_pass() {
        let parts = [
            "'", "\"", "`", "$(", "${", "\"$(", "<<a\n", "<(", "\\", ";a", "a=", "# '\n", "&>",
            "\u{1b}[", "a \"b\" ", "<<'", "$'", "((",
        ];
        for part in parts {
            let text = part.repeat(1_000_000 / part.len());
            assert!(shell_summary(&text).chars().count() <= ACTIVITY_CHARS_MAX, "{part:?}");
            let shown = shell_summary(&format!("gh {}", &text[..200_000]));
            assert!(shown.chars().count() <= ACTIVITY_CHARS_MAX, "{part:?}");
        }
    }

    // ACT-15: the number of steps is not cut off.
    #[test]
    fn a_long_first_step_keeps_the_number_of_steps() {
        let shown = shell_summary(&format!("cd {}; ls", "a".repeat(2 * ACTIVITY_CHARS_MAX)));
        assert_eq!(shown.chars().count(), ACTIVITY_CHARS_MAX);
        assert!(shown.ends_with("a… · 2 steps"));
    }
}
