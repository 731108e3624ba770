//! Slash commands (`host.md` 8.2, 8.4; TERM-20). Unknown words are sent as
//! text: they may be templates or skills.

use crew_base::id::SubagentId;
use crew_base::model::ThinkingLevel;
use crew_engine::api::{AbortOrigin, Command, Control};

use super::full::Full;
use super::full::picker::Kind;
use super::{Receiver, Sent, View};
use crate::format;
use crate::request::Request;
use crate::theme::{MUTED, WARNING};
use crate::transcript::item::Item;

/// A command of ours: name, arguments, what it does.
pub(crate) const COMMANDS: [(&str, &str, &str); 29] = [
    ("allow", "", "run the tool that waits for your word"),
    ("clone", "", "copy this session and go on in the copy"),
    ("compact", "[instructions]", "summarise the context now"),
    ("copy", "", "copy the last reply"),
    ("crew", "[answer|steer|stop|close|read ID]", "crew board, or act on a subagent"),
    ("export", "[--crew] [path]", "write this session as .html, .md or .jsonl"),
    ("fork", "", "go on from an earlier message in a new session"),
    ("help", "", "keys and commands"),
    ("hotkeys", "", "keys that work here and now"),
    ("login", "[provider]", "store the key of a provider"),
    ("logout", "[provider]", "forget the stored key of a provider"),
    ("model", "[reference]", "choose the model"),
    ("name", "[name]", "name this session"),
    ("new", "", "start a new session"),
    ("pi-crew-abort", "[id]", "stop a subagent"),
    ("queue", "", "take queued messages back"),
    ("quit", "", "leave"),
    ("redraw", "", "print the session again at this width"),
    ("refuse", "", "do not run the tool that waits for your word"),
    ("reload", "", "read settings, models, keys and resources again"),
    ("resume", "", "open another session"),
    ("scrollback", "", "same as /redraw"),
    ("session", "", "what this session holds and costs"),
    ("settings", "", "change settings"),
    ("thinking", "[level]", "thinking level"),
    ("transcript", "", "read the whole session"),
    ("tree", "", "all branches of this session"),
    ("trust", "", "decide about this project's files"),
    ("edit", "", "the draft in an external editor"),
];

/// Commands that are not built yet; they are not offered.
const UNBUILT: [&str; 5] = ["scoped-models", "import", "changelog", "debug", "share"];

impl View {
    /// Runs a command; `None` means that the text is none of ours.
    pub(super) fn slash(&mut self, text: &str) -> Option<Option<Command>> {
        let rest = text.strip_prefix('/')?;
        let (name, argument) = match rest.split_once(char::is_whitespace) {
            Some((name, argument)) => (name, argument.trim()),
            None => (rest, ""),
        };
        if UNBUILT.contains(&name) && argument.is_empty() {
            self.take_draft();
            self.live.print(&format!("/{name} is not built yet"), MUTED);
            return Some(None);
        }
        let known = COMMANDS.iter().find(|(known, _, _)| *known == name)?;
        // Built-ins are matched on the whole input (host.md 8.4).
        if known.1.is_empty() && !argument.is_empty() {
            return None;
        }
        let name = known.0;
        let argument = argument.to_owned();
        self.take_draft();
        Some(self.run_slash(name, &argument))
    }

    fn run_slash(&mut self, name: &str, argument: &str) -> Option<Command> {
        match name {
            "allow" => self.answer_approval(true),
            "refuse" => self.answer_approval(false),
            "quit" => return self.want_quit(),
            "hotkeys" | "help" => self.show(Full::Keys { top: 0 }),
            "model" if argument.is_empty() => self.open_picker(Kind::Models { all: false }),
            "model" => {
                self.ask(Request::UseModel { reference: argument.to_owned(), save: false });
            }
            "thinking" => return self.slash_thinking(argument),
            "new" => self.ask(Request::New),
            "resume" => self.open_picker(Kind::Sessions { all: false, named: false }),
            "fork" => self.open_picker(Kind::Forks),
            "tree" => self.open_tree(),
            "clone" => self.ask(Request::Clone),
            "name" => return self.slash_name(argument),
            "compact" => {
                let session = self.session.clone()?;
                let instructions = (!argument.is_empty()).then(|| argument.to_owned());
                let command = Command::Compact(session, instructions);
                return self.command(command, Sent::Other("compact".to_owned()));
            }
            "copy" => self.copy_reply(),
            "export" => {
                let words = argument.split_whitespace();
                let with_crew = words.clone().any(|word| word == "--crew");
                let path = argument.replace("--crew", "").trim().to_owned();
                let path = Some(path).filter(|path| !path.is_empty());
                self.ask(Request::Export { path, with_crew });
            }
            "session" => self.ask(Request::Session),
            "settings" => self.open_picker(Kind::Settings),
            "login" | "logout" if self.is_busy() || self.shell.is_some() => {
                self.live.print(&format!("/{name} has to wait until the owner is idle"), WARNING);
            }
            "login" => self.ask(Request::Login(argument.to_owned())),
            "logout" => self.ask(Request::Logout(argument.to_owned())),
            "trust" => self.ask(Request::Trust),
            "reload" if self.is_busy() || self.shell.is_some() => {
                self.live.print("/reload has to wait until the owner is idle", WARNING);
            }
            "reload" => self.ask(Request::Reload),
            "redraw" | "scrollback" => self.print_again(),
            "transcript" => self.open_transcript(),
            "queue" => self.take_back(),
            "edit" => self.ask(Request::EditOutside(String::new())),
            "pi-crew-abort" if argument.is_empty() => self.ask_stop(),
            "pi-crew-abort" => return self.crew_deed("stop", argument),
            _ => return self.slash_crew(argument),
        }
        None
    }

    fn slash_thinking(&mut self, argument: &str) -> Option<Command> {
        if argument.is_empty() {
            return self.next_thinking();
        }
        let Some(level) = ThinkingLevel::parse(argument) else {
            let words: Vec<_> = ThinkingLevel::ALL.iter().map(|level| level.word()).collect();
            let text =
                format!("no thinking level is called {argument}; there are {}", words.join(", "));
            self.live.print(&text, WARNING);
            return None;
        };
        let session = self.session.clone()?;
        let command = Command::Control(session, Control::Thinking(level));
        self.command(command, Sent::Other("thinking".to_owned()))
    }

    /// The next level that the model supports (Shift+Tab).
    pub(super) fn next_thinking(&mut self) -> Option<Command> {
        let levels = self.facts.model.as_ref().map(|model| model.levels.clone())?;
        if levels.len() < 2 {
            self.live.print("this model has no thinking levels", MUTED);
            return None;
        }
        let current = self.facts.thinking.unwrap_or(ThinkingLevel::Off);
        let at = levels.iter().position(|level| *level == current).unwrap_or(0);
        let level = levels[(at + 1) % levels.len()];
        let session = self.session.clone()?;
        let command = Command::Control(session, Control::Thinking(level));
        self.command(command, Sent::Other("thinking".to_owned()))
    }

    fn slash_name(&mut self, argument: &str) -> Option<Command> {
        if argument.is_empty() {
            let text = match &self.name {
                Some(name) => format!("this session is called \"{name}\""),
                None => "this session has no name; /name NAME gives it one".to_owned(),
            };
            self.live.print(&text, MUTED);
            return None;
        }
        let session = self.session.clone()?;
        let name = crew_base::text::sanitise_inline(argument);
        let command = Command::Control(session, Control::Name(Some(name)));
        self.command(command, Sent::Other("name".to_owned()))
    }

    fn slash_crew(&mut self, argument: &str) -> Option<Command> {
        let (deed, rest) = match argument.split_once(char::is_whitespace) {
            Some((deed, rest)) => (deed, rest.trim()),
            None => (argument, ""),
        };
        match (deed, rest) {
            ("", _) => {
                self.open_board();
                None
            }
            ("stop", "all") => {
                let session = self.session.clone()?;
                let command = Command::AbortCrew(session, AbortOrigin::Person);
                self.command(command, Sent::Other("stop all".to_owned()))
            }
            ("answer" | "steer", rest) => {
                let (id, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                let id = self.resolve(id)?;
                let text = text.trim().to_owned();
                match (deed, text.is_empty()) {
                    ("answer", true) => self.receive_as(Receiver::Answer(id)),
                    (_, true) => self.receive_as(Receiver::Steer(id)),
                    ("answer", false) => {
                        let session = self.session.clone()?;
                        let to = SubagentId::new(id.as_str());
                        let command = Command::Respond(session, to, text.clone());
                        return self.command(command, Sent::Answer { subagent: id, text });
                    }
                    (_, false) => return self.steer(&id, &text),
                }
                None
            }
            ("stop" | "close" | "read", id) => self.crew_deed(deed, id),
            _ => {
                let text = "/crew knows answer ID TEXT, steer ID TEXT, stop ID or all, close ID, \
                            read ID";
                self.live.print(text, WARNING);
                None
            }
        }
    }

    fn crew_deed(&mut self, deed: &str, id: &str) -> Option<Command> {
        if deed == "read" {
            let gone = self.crew.ended.iter().find(|one| one.id == id).cloned();
            let one = match gone {
                Some(gone) => gone,
                None => {
                    let id = self.resolve(id)?;
                    self.crew.get(&id)?.clone()
                }
            };
            self.read_subagent(&one, None);
            return None;
        }
        let id = self.resolve(id)?;
        if deed == "stop" { self.stop_subagent(&id) } else { self.close_subagent(&id) }
    }

    /// The open subagent whose id begins with a text; else says which ones
    /// there are (TERM-20).
    fn resolve(&mut self, text: &str) -> Option<String> {
        let ids: Vec<String> = self.crew.matching(text).iter().map(|one| one.id.clone()).collect();
        match ids.as_slice() {
            [id] => return Some(id.clone()),
            [] => {
                let text = format!("no open subagent has an id that begins with \"{text}\"");
                self.live.print(&text, WARNING);
            }
            several => {
                let text = format!("\"{text}\" fits {}", several.join(", "));
                self.live.print(&text, WARNING);
            }
        }
        None
    }

    /// Copies the last reply as Markdown (TERM-48).
    pub(super) fn copy_reply(&mut self) {
        match self.live.last_answer().map(str::to_owned) {
            Some(text) => self.ask(Request::Copy { what: "the last reply".to_owned(), text }),
            None => self.live.print("there is no reply yet", MUTED),
        }
    }

    /// Copies the nth code block of the last reply.
    pub(super) fn copy_code(&mut self, number: usize) {
        let blocks = self.live.last_answer().map(code_blocks).unwrap_or_default();
        match blocks.get(number.saturating_sub(1)) {
            Some(text) => {
                let what = format!("code block {number}");
                self.ask(Request::Copy { what, text: text.clone() });
            }
            None => {
                let text =
                    format!("the last reply has {}", format::count(blocks.len(), "code block"));
                self.live.print(&text, MUTED);
            }
        }
    }

    /// Prints the whole session again below a rule (TERM-25a).
    pub(super) fn print_again(&mut self) {
        self.live.print("── printed again ──", MUTED);
        let look = self.look();
        self.live.print_again(&look, usize::MAX);
    }

    /// A problem that stopped nothing.
    pub(super) fn warn(&mut self, text: &str) {
        self.live.add(Item::Notice(format!("warning: {text}")));
    }
}

fn code_blocks(text: &str) -> Vec<String> {
    use crate::markdown::{Chunk, Chunker};
    let mut chunker = Chunker::default();
    let mut chunks = chunker.push(text);
    chunks.extend(chunker.finish());
    let mut blocks: Vec<String> = Vec::new();
    let mut open = false;
    for chunk in chunks {
        match chunk {
            Chunk::FenceOpen(_) => {
                blocks.push(String::new());
                open = true;
            }
            Chunk::Code(line) if open => {
                if let Some(block) = blocks.last_mut() {
                    block.push_str(&line);
                    block.push('\n');
                }
            }
            Chunk::FenceClose => open = false,
            Chunk::Code(_) | Chunk::Block(_) | Chunk::Blank => {}
        }
    }
    blocks
}
