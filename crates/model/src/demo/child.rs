//! The children's scripts: a few commands, then a lone `crew_report`
//! (`crew.md` RES-8). What was done follows from the conversation alone, so a
//! prompt out of turn (a person's words, the follow-up of RES-14) is answered
//! with a report on what is known.

use serde_json::json;

use super::command::{self, Source};
use super::errand::{COUNT_TOP, DECISION, Errand, MEASURE};
use super::facts;
use super::finding::{clean, quoted, quoted_paths, report};
use super::look;
use super::reply::{Pace, Reply};
use super::view::{Call, Item, Outcome, View};

/// Answers to one prompt, after which the script falls silent.
const ANSWERS_MAX: usize = 5;

/// The next answer of a child, and its pace.
pub(super) fn reply(view: &View) -> (Reply, Pace) {
    let child = Child { view };
    if child.answers_since_prompt() >= ANSWERS_MAX {
        return (Reply::text("demo/crew has nothing to add."), pace(150));
    }
    match child.errand() {
        Some(Errand::Languages) => (child.languages(), pace(180)),
        Some(Errand::Sizes) => (child.sizes(), pace(320)),
        Some(Errand::Review) => (child.review(), pace(250)),
        None => (completed(FOREIGN), pace(150)),
    }
}

fn pace(first_ms: u64) -> Pace {
    Pace { first_ms, piece_ms: 24 }
}

/// A child's conversation.
struct Child<'a> {
    view: &'a View,
}

/// How far a command is.
enum Run<'a> {
    /// It has to be asked for.
    Due,
    /// It ended, or was cut off without a result.
    Over(Option<&'a Outcome>),
}

impl<'a> Child<'a> {
    fn prompts(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.view.items.iter().filter_map(|item| match item {
            Item::User(text) => Some(text.as_str()),
            Item::Answer(_) | Item::Result(_) | Item::Crew(_) => None,
        })
    }

    fn errand(&self) -> Option<Errand> {
        self.prompts().find_map(Errand::of_prompt)
    }

    /// The path that a message beginning with this sentence names.
    fn asked_path(&self, sentence: &str) -> Option<String> {
        let rest = self.prompts().filter_map(|prompt| prompt.strip_prefix(sentence)).last()?;
        quoted_paths(rest).into_iter().next()
    }

    fn answers_since_prompt(&self) -> usize {
        let newest = self.view.items.iter().rev();
        let since = newest.take_while(|item| !matches!(item, Item::User(_)));
        since.filter(|item| matches!(item, Item::Answer(_))).count()
    }

    /// The state of a call with this argument; a tool that is not offered is
    /// over at once.
    fn run(&self, tool: &str, argument: &str, value: &str) -> Run<'a> {
        let is_it = |call: &&Call| call.name == tool && call.arguments[argument] == value;
        let calls = self.view.items.iter().filter_map(|item| match item {
            Item::Answer(calls) => Some(calls),
            Item::User(_) | Item::Result(_) | Item::Crew(_) => None,
        });
        let Some(call) = calls.flatten().find(is_it) else {
            return if self.view.offers(tool) { Run::Due } else { Run::Over(None) };
        };
        let mut results = self.view.items.iter().filter_map(|item| match item {
            Item::Result(outcome) => Some(outcome),
            Item::User(_) | Item::Answer(_) | Item::Crew(_) => None,
        });
        Run::Over(results.find(|outcome| outcome.call == call.id))
    }

    fn shell(&self, command: &str) -> Run<'a> {
        self.run("bash", "command", command)
    }

    /// Runs what is due of these commands; `Err` is the answer that does so.
    fn texts<const N: usize>(
        &self,
        says: &str,
        commands: [String; N],
    ) -> Result<[&'a str; N], Reply> {
        let mut reply = Reply::text(says);
        let mut texts = [""; N];
        for (text, command) in texts.iter_mut().zip(&commands) {
            match self.shell(command) {
                Run::Due => reply.call("bash", json!({"command": command, "timeout": 20})),
                Run::Over(outcome) => *text = outcome.map_or("", |outcome| &outcome.text),
            }
        }
        if reply.calls.is_empty() { Ok(texts) } else { Err(reply) }
    }

    fn languages(&self) -> Reply {
        if let Some(follow_up) = self.measured() {
            return follow_up;
        }
        self.languages_found().unwrap_or_else(|call| call)
    }

    fn languages_found(&self) -> Result<Reply, Reply> {
        let ask = |says, source| {
            let [kinds, entries] =
                self.texts(says, [command::census(source), command::entries(source)])?;
            let mut entries = facts::paths(entries);
            // A library is entered, but nothing starts there.
            entries.sort_by_key(|path| path.ends_with("lib.rs"));
            Ok::<_, Reply>((facts::census(kinds), entries))
        };
        let (mut census, mut entries) =
            ask("I count the files that git knows, and look for entry points.", Source::Git)?;
        let mut scope = "the files that git knows";
        if census.total == 0 {
            scope = "the folder tree, six levels deep";
            (census, entries) = ask("Git lists nothing here; I walk the tree.", Source::Find)?;
        }
        let mut found = Vec::new();
        let mut gaps = Vec::new();
        if census.total == 0 {
            gaps.push(format!("No file was counted: {}", self.trouble()));
        } else {
            let kinds: Vec<_> =
                census.main(6).map(|(name, files)| format!("{name} {files}")).collect();
            let total = census.total;
            found.push(format!("Languages by files: {} ({total} files in all)", kinds.join(", ")));
        }
        match entries.get(..entries.len().min(4)) {
            Some(near) if !near.is_empty() => {
                found.push(format!("Entry points: {}", quoted(near)));
            }
            _ => gaps.push("No file has the usual name of an entry point".to_owned()),
        }
        let found = if found.is_empty() { gaps.clone() } else { found };
        Ok(completed(&report(&[
            ("Scope", &[format!("Names of files only: {scope}")]),
            ("Findings", &found),
            ("Relationships", &[]),
            ("Open questions or gaps", &gaps),
            (
                "Where to start",
                &entries.iter().take(1).map(|path| format!("`{path}`")).collect::<Vec<_>>(),
            ),
        ])))
    }

    /// The second cycle of the first scout; `None` while it was not asked for.
    fn measured(&self) -> Option<Reply> {
        let path = self.asked_path(MEASURE);
        let command = match &path {
            Some(path) => command::measure(path),
            None if self.prompts().any(|prompt| prompt.starts_with(COUNT_TOP)) => {
                command::count_top()
            }
            None => return None,
        };
        let says = "I count.";
        let number = match self.texts(says, [command]) {
            Ok([text]) => facts::number(text),
            Err(call) => return Some(call),
        };
        let finding = match (number, path) {
            (Some(lines), Some(path)) => {
                format!("`{path}` has {}", counted(lines, "line", "lines"))
            }
            (Some(entries), None) => {
                format!("The top folder has {}", counted(entries, "entry", "entries"))
            }
            (None, _) => format!("It could not be counted: {}", self.trouble()),
        };
        Some(completed(&report(&[("Findings", &[finding])])))
    }

    fn sizes(&self) -> Reply {
        self.sizes_found().unwrap_or_else(|call| call)
    }

    fn sizes_found(&self) -> Result<Reply, Reply> {
        let says = "I weigh the files that git knows, and read the history.";
        let [sizes, commits] =
            self.texts(says, [command::sizes(Source::Git), command::commits()])?;
        let mut sizes = facts::sizes(sizes);
        if sizes.is_empty() {
            let says = "Git lists nothing here; I walk the tree.";
            let [walked] = self.texts(says, [command::sizes(Source::Find)])?;
            sizes = facts::sizes(walked);
        }
        let commits = facts::commits(commits);
        let mut found = Vec::new();
        let mut gaps = Vec::new();
        if sizes.is_empty() {
            gaps.push(format!("No file was weighed: {}", self.trouble()));
        } else {
            let weighed = sizes.iter().take(4);
            let weighed: Vec<_> =
                weighed.map(|(bytes, path)| format!("`{path}` {}", facts::size(*bytes))).collect();
            found.push(format!("Largest files: {}", weighed.join(", ")));
        }
        for (at, commit) in commits.iter().take(3).enumerate() {
            let label = if at == 0 { "Newest commit" } else { "Before it" };
            let (hash, date) = (&commit.hash, &commit.date);
            found.push(format!("{label}: `{hash}` of {date}, {}", clean(&commit.subject)));
        }
        if commits.is_empty() {
            found.push("Recent commits: none, git has no history of this folder".to_owned());
        }
        Ok(completed(&report(&[
            ("Scope", &["Sizes of files and the newest commits".to_owned()]),
            ("Findings", &found),
            ("Relationships", &[]),
            ("Open questions or gaps", &gaps),
            (
                "Where to start",
                &sizes.iter().take(1).map(|(_, path)| format!("`{path}`")).collect::<Vec<_>>(),
            ),
        ])))
    }

    fn review(&self) -> Reply {
        let asked = match self.asked_path(DECISION) {
            Some(path) => return self.reviewed(&path),
            None => self.prompts().count() > 1,
        };
        let candidates = match self.candidates() {
            Ok(candidates) => candidates,
            Err(call) => return call,
        };
        match candidates.as_slice() {
            // Another answer than the script's own: there is no second question.
            _ if asked => completed(&format!(
                "{NO_DEFECT}\n\n## Findings\n\n- No file was named to review, so none was read"
            )),
            [] => completed(&format!(
                "{NO_DEFECT}\n\n## Findings\n\n- There is no source file to review: {}",
                self.trouble()
            )),
            [only] => needs_input(
                &format!("## Findings\n\n- One candidate: `{only}`"),
                &format!("Only `{only}` can be reviewed. Shall I read it, or end here?"),
            ),
            [first, .., last] => needs_input(
                &format!("## Findings\n\n- Two candidates: `{first}` and `{last}`"),
                &format!("Shall I review `{first}` or `{last}`?"),
            ),
        }
    }

    fn candidates(&self) -> Result<Vec<String>, Reply> {
        let says = "I look for something worth a review.";
        let [listed] = self.texts(says, [command::candidates(Source::Git)])?;
        let listed = facts::paths(listed);
        if !listed.is_empty() {
            return Ok(two(listed));
        }
        let says = "Git lists no source here; I walk the tree.";
        let [walked] = self.texts(says, [command::candidates(Source::Find)])?;
        Ok(two(facts::paths(walked)))
    }

    fn reviewed(&self, path: &str) -> Reply {
        let outcome = match self.run("read", "path", path) {
            Run::Over(outcome) => outcome,
            Run::Due => {
                let mut reply = Reply::text(format!("I read `{path}`."));
                reply.call("read", json!({"path": path}));
                return reply;
            }
        };
        let Some(outcome) = outcome.filter(|outcome| !outcome.is_error) else {
            let trouble = outcome.map_or("the tool gave no result".into(), |o| clean(&o.text));
            return completed(&format!(
                "{NO_DEFECT}\n\n## Findings\n\n- `{path}` could not be read: {trouble}"
            ));
        };
        let seen = observations(path, &look::file(&outcome.text, outcome.is_cut));
        let scope = [format!("Reviewed: `{path}`"), "Skipped: every other file".to_owned()];
        let text = report(&[("Findings", &seen), ("Reviewed and skipped", &scope)]);
        completed(&format!("{NO_DEFECT}\n\n{text}"))
    }

    /// Why there are no facts, as well as the results tell.
    fn trouble(&self) -> String {
        if !self.view.offers("bash") {
            return "the tool `bash` is missing here".to_owned();
        }
        let failed = self.view.items.iter().rev().find_map(|item| match item {
            Item::Result(outcome) => outcome.is_error.then_some(outcome),
            Item::User(_) | Item::Answer(_) | Item::Crew(_) => None,
        });
        failed.map_or("the commands found nothing".to_owned(), |outcome| clean(&outcome.text))
    }
}

/// The nearest source, and as the other choice a readme or the next source.
fn two(candidates: Vec<String>) -> Vec<String> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let (readmes, sources): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|path| name(path).starts_with("README"));
    let readme = readmes.into_iter().next();
    let mut sources = sources.into_iter();
    let first = sources.next();
    first.into_iter().chain(readme.or(sources.next())).collect()
}

fn observations(path: &str, look: &look::Look) -> Vec<String> {
    let Some((number, chars)) = look.longest else {
        return vec![format!("`{path}` shows no line at all")];
    };
    let part = if look.is_cut { "the first " } else { "" };
    let (lines, blank) = (look.lines, look.blank);
    let mut seen = vec![
        format!(
            "`{path}`: {part}{} read, {blank} of them blank; the longest is line {number} with {}",
            counted(lines as u64, "line", "lines"),
            counted(chars as u64, "character", "characters"),
        ),
        match look.test {
            Some(line) => format!("It declares a test in line {line}"),
            None => "It declares no test that the script knows by sight".to_owned(),
        },
    ];
    if let Some((lines, first)) = look.unfinished {
        let lines = counted(lines as u64, "line says", "lines say");
        seen.push(format!("{lines} that work is unfinished, the first is line {first}"));
    }
    seen
}

fn counted(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

fn completed(report: &str) -> Reply {
    let mut reply = Reply::default();
    reply.call("crew_report", json!({"outcome": "completed", "report": report}));
    reply
}

fn needs_input(report: &str, needs: &str) -> Reply {
    let mut reply = Reply::default();
    let arguments = json!({"outcome": "needs_input", "report": report, "needs": needs});
    reply.call("crew_report", arguments);
    reply
}

const NO_DEFECT: &str = "No actionable defects found.";

const FOREIGN: &str = "This subagent is played by the scripted model demo/crew, which knows only \
the errands of its own tour. Nothing was done; give the definition a real model.";
