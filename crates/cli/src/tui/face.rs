//! The loop: keys, notices, signals, timers and ends of longer work come in;
//! commands and frames go out.
//!
//! A frame is drawn when something changed and its time has come (TERM-28),
//! and never while the one before is still being written (TERM-32).

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crew_base::id::{Ids, SessionId};
use crew_base::message::Message;
use crew_engine::Source;
use crew_engine::api::{Command, CommandId};
use crew_model::select::Scoped;
use crew_runtime::{Handle, Notice, Place, Updates};
use crew_tools::Host;
use crew_tui::draw;
use crew_tui::keys::{Decoder, Input as Typed};
use crew_tui::plain::Plain;
use crew_tui::request::{Reply, Request};
use crew_tui::screen::Screen;
use crew_tui::view::{self, View};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::asks::Asked;
use super::clipboard;
use super::colours::Colours;
use super::coming::Coming;
use super::facts::Totals;
use super::moves::Move;
use super::reload::Reloaded;
use super::start::{self, now};
use super::terminal::{Input, Output, Terminal};
use crate::args::Options;
use crate::config::Config;
use crate::drive::signals::{Signals, Stop};
use crate::error::Error;
use crate::herdr::{Herdr, Pane};

/// Least time between two frames, by what asked for the later one (TERM-28).
pub(super) const KEY_FRAME: Duration = Duration::from_millis(16);
pub(super) const STREAM_FRAME: Duration = Duration::from_millis(34);
const MOTION_FRAME: Duration = Duration::from_millis(80);
pub(super) const CREW_FRAME: Duration = Duration::from_millis(250);
/// How long a changing size must rest before all is drawn (TERM-25).
const RESIZE_REST: Duration = Duration::from_millis(100);
/// Between two questions for figures (TERM-29).
const FACTS_EVERY: Duration = Duration::from_millis(250);
/// The same when something has ended that no later news will tell about.
const FACTS_SOON: Duration = Duration::from_millis(50);
/// How long an orderly end may take.
const END_MAX: Duration = Duration::from_millis(4_000);

/// Everything that the program needs beside the face, once it is there.
pub(super) struct Ready {
    pub(super) handle: Handle,
    pub(super) host: Arc<Host>,
    pub(super) config: Arc<Config>,
    pub(super) options: Arc<Options>,
    /// Models to cycle through.
    pub(super) scope: Vec<Scoped>,
    /// For new sessions.
    pub(super) ids: Ids,
}

/// The running face.
pub(super) struct Face {
    pub(super) view: View,
    pub(super) terminal: Terminal,
    pub(super) screen: Screen,
    pub(super) input: Input,
    pub(super) output: Output,
    pub(super) ready: Option<Ready>,
    /// Ends of work beside the loop.
    pub(super) done: mpsc::UnboundedSender<Done>,
    pub(super) moving: Option<Move>,
    /// The session that will be shown next.
    pub(super) coming: Option<Coming>,
    pub(super) opening: Option<(CommandId, Source)>,
    pub(super) waiting: BTreeMap<CommandId, Waiting>,
    pub(super) totals: Totals,
    /// The working directory of the shown session.
    pub(super) cwd: PathBuf,
    pub(super) file: Option<PathBuf>,
    /// Prompts of the command line that are still to be sent.
    pub(super) prompts: VecDeque<Message>,
    /// Colours of code.
    pub(super) colours: Colours,
    decoder: Decoder,
    /// Line mode, if that is wanted.
    plain: Option<Plain>,
    due: Option<Instant>,
    drawn: Instant,
    pub(super) facts_asked: Option<Instant>,
    /// Something ended since the last figures.
    pub(super) facts_wanted: bool,
    resized: Option<Instant>,
    pub(super) end: Option<End>,
    pub(super) updates: Option<Updates>,
    /// Whether figures are being gathered.
    pub(super) asking: Asking,
    drawn_size: crew_tui::screen::Size,
    /// Tells the sidebar of Herdr, inside of it.
    pub(super) herdr: Option<Herdr>,
    /// What waits for the answer to a question of the program.
    pub(super) asked: Asked,
    /// The title that the terminal was given last.
    title: String,
    /// What the person said about the project since the start.
    pub(super) said_trust: Option<bool>,
    /// What a request leads to that has to be waited for.
    pub(super) later: Option<Later>,
}

/// What is waited for.
pub(super) enum Later {
    /// A copy up to a message, or of everything.
    Copy(Option<crew_base::id::EntryId>),
    /// Another program has the terminal.
    EditOutside(String),
    /// The shell has the terminal.
    Suspend,
    /// The key of this provider is typed on the bare terminal.
    Login(String),
    /// Files were read again.
    Reloaded(Box<Result<Reloaded, Error>>),
}

/// How the program ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) code: u8,
    pub(super) at_once: bool,
}

/// What follows from the answer to a command of the program itself.
pub(super) enum Waiting {
    /// What runs is stopped before a move.
    Settle,
    /// A move goes on.
    Move,
    /// Nothing.
    Nothing,
}

/// Work beside the loop that has ended.
pub(super) enum Done {
    /// The face is told.
    Reply(Reply),
    /// Figures, and the totals they were made with.
    Facts(Box<crew_tui::request::Facts>, Box<Totals>),
    /// The program was configured, or could not be with these options.
    Loaded(Box<Result<Loaded, (Error, Options)>>),
    /// Files were read again, or why not.
    Reloaded(Box<Result<Reloaded, Error>>),
    /// Entries of the session that is shown now.
    Shown(Box<crew_tui::request::Shown>, Place),
}

/// The second half of the start.
pub(super) struct Loaded {
    pub(super) config: Config,
    pub(super) options: Options,
    pub(super) found: crew_tui::request::Found,
    pub(super) widget_tools: bool,
    pub(super) keys: crew_tui::keys::Bindings,
}

/// Whether figures are being gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    /// No.
    Not,
    /// Yes.
    Once,
    /// Yes, and once more after that.
    Again,
}

/// Shows the face until it ends; yields the exit code.
pub(super) async fn show(options: Options, terminal: Terminal) -> Result<u8, Error> {
    let place = crate::config::Place::read()?;
    let setup = start::setup(&place);
    let theme = setup.theme;
    let drawn_size = terminal.size();
    let view = View::new(setup, drawn_size, now());
    let (done, mut all_done) = mpsc::unbounded_channel();
    let output = Output::start().map_err(Error::Terminal)?;
    let plain = terminal.is_plain.then(Plain::default);
    let typed_ahead = if plain.is_some() { Vec::new() } else { terminal.typed_ahead() };
    let screen = Screen::new(theme);
    let (input, mut keys) = Input::start().map_err(Error::Terminal)?;
    let cwd = place.cwd.clone();
    let mut face = Face {
        view,
        terminal,
        screen,
        input,
        output,
        ready: None,
        done,
        moving: None,
        coming: None,
        opening: None,
        waiting: BTreeMap::new(),
        totals: Totals::default(),
        cwd,
        file: None,
        prompts: VecDeque::new(),
        colours: Colours::default(),
        decoder: Decoder::default(),
        plain,
        due: None,
        drawn: Instant::now(),
        facts_asked: None,
        facts_wanted: false,
        resized: None,
        end: None,
        updates: None,
        asking: Asking::Not,
        drawn_size,
        herdr: Pane::of(&place.environment).map(|pane| Herdr::start(pane, now().0)),
        asked: Asked::Nothing,
        title: String::new(),
        said_trust: None,
        later: None,
    };
    face.begin(&typed_ahead);
    face.load(options, place);
    face.run(&mut keys, &mut all_done).await?;
    face.finish().await
}

async fn next_notice(updates: &mut Option<Updates>) -> Option<Notice> {
    match updates {
        Some(updates) => updates.next().await,
        None => std::future::pending().await,
    }
}

async fn next_stop(signals: &mut Option<Signals>, early: &mut Early) -> Stop {
    match signals {
        Some(signals) => match signals.next().await {
            Some(stop) => stop,
            None => std::future::pending().await,
        },
        None => early.next().await,
    }
}

/// Signals before the host is there.
struct Early {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Early {
    fn listen() -> std::io::Result<Early> {
        Ok(Early {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Stop {
        tokio::select! {
            _ = self.interrupt.recv() => Stop::Interrupt,
            _ = self.terminate.recv() => Stop::Terminate,
            _ = self.hang_up.recv() => Stop::HangUp,
        }
    }
}

impl Face {
    /// What was typed before the face was there, and the first frame.
    fn begin(&mut self, typed_ahead: &[u8]) {
        self.type_ahead(typed_ahead);
        if self.plain.is_none() {
            self.output.write(clipboard::TITLE_KEPT.to_vec());
            let start = self.screen.start();
            self.output.write(start);
        }
        self.draw();
    }

    /// Takes one thing after the other until the face has ended.
    async fn run(
        &mut self,
        keys: &mut mpsc::UnboundedReceiver<Vec<u8>>,
        all_done: &mut mpsc::UnboundedReceiver<Done>,
    ) -> Result<(), Error> {
        let mut winch = signal(SignalKind::window_change()).map_err(Error::Runtime)?;
        // Until the host is there nothing but the terminal has to be left behind.
        let mut early = Early::listen().map_err(Error::Runtime)?;
        let mut signals: Option<Signals> = None;
        loop {
            self.serve().await;
            if self.end.is_some() {
                return Ok(());
            }
            let wake = self.wake();
            let hears = self.updates.is_some();
            tokio::select! {
                biased;
                stop = next_stop(&mut signals, &mut early) => self.stop(stop),
                bytes = keys.recv() => match bytes {
                    Some(bytes) => self.keys(&bytes),
                    None => self.input_ended(),
                },
                _ = winch.recv() => self.size_changed(),
                Some(result) = self.output.written.recv() => self.was_written(&result),
                Some(done) = all_done.recv() => self.finished(done, &mut signals)?,
                notice = next_notice(&mut self.updates), if hears => self.notices(notice),
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {
                    self.ticked();
                }
            }
            self.draw_when_due();
        }
    }

    fn type_ahead(&mut self, bytes: &[u8]) {
        let mut inputs = Vec::new();
        self.decoder.feed(now(), bytes, &mut inputs);
        self.view.type_ahead(inputs);
    }

    /// Reads configuration beside the loop; asks about the project first.
    fn load(&mut self, options: Options, place: crate::config::Place) {
        match start::trust_question(&options, &place) {
            Ok(Some(files)) => {
                self.view.ask_trust(files, true);
                self.asked = Asked::TrustAtStart(Box::new(options), Box::new(place));
                self.want(KEY_FRAME);
            }
            Ok(None) => self.load_now(options),
            Err(error) => {
                let _ = self.done.send(Done::Loaded(Box::new(Err((error, options)))));
            }
        }
    }

    /// The moment at which something is to be done without news.
    fn wake(&mut self) -> Option<Instant> {
        let due = self.due.filter(|_| !self.output.is_busy());
        let view = self.view.deadline().map(instant);
        let decoder = self.decoder.deadline().map(instant);
        let motion = self.view.is_moving().then(|| self.drawn + MOTION_FRAME);
        let motion = motion.filter(|_| !self.output.is_busy());
        let facts = self.facts_due();
        let resized = self.resized.map(|at| at + RESIZE_REST);
        [due, view, decoder, motion, facts, resized].into_iter().flatten().min()
    }

    fn facts_due(&self) -> Option<Instant> {
        if self.asking != Asking::Not || self.view.session().is_none() {
            return None;
        }
        let after = |pause| self.facts_asked.map_or_else(Instant::now, |at| at + pause);
        let moving = self.view.wants_facts() && self.view.is_moving();
        let moving = moving.then(|| after(FACTS_EVERY));
        let news = self.facts_wanted.then(|| after(FACTS_SOON));
        [moving, news, self.totals.due()].into_iter().flatten().min()
    }

    fn ticked(&mut self) {
        let (at, time) = (Instant::now(), now());
        let mut typed = Vec::new();
        self.decoder.settle(time, &mut typed);
        typed.into_iter().for_each(|typed| self.typed(typed));
        let acts = self.view.deadline().is_some_and(|deadline| deadline <= time);
        view::tick(&mut self.view, time);
        if acts || self.view.is_moving() && at >= self.drawn + MOTION_FRAME {
            self.due = Some(at);
        }
        if self.resized.is_some_and(|resized| at >= resized + RESIZE_REST) {
            self.resized = None;
            self.due = Some(at);
        }
        if self.facts_due().is_some_and(|due| at >= due) {
            self.ask_facts();
        }
    }

    /// A frame is wanted, not sooner after the last one than this.
    pub(super) fn want(&mut self, after: Duration) {
        let at = self.drawn + after;
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    fn draw_when_due(&mut self) {
        let is_due = self.due.is_some_and(|due| Instant::now() >= due);
        if is_due && !self.output.is_busy() {
            self.draw();
        }
    }

    fn draw(&mut self) {
        self.due = None;
        self.drawn = Instant::now();
        let size = self.terminal.size();
        if size != self.drawn_size {
            self.drawn_size = size;
            view::resize(&mut self.view, size);
        }
        view::tick(&mut self.view, now());
        if let Some(plain) = &mut self.plain {
            let text = plain.take(&mut self.view);
            self.output.write(text.into_bytes());
            return;
        }
        self.view.refresh_reader();
        let resizing = self.resized.is_some();
        let prints = if resizing { Vec::new() } else { view::take_final(&mut self.view) };
        let picture = if resizing { draw::draw_editor(&self.view) } else { draw::draw(&self.view) };
        self.terminal.shows(picture.is_full);
        let mut bytes = self.screen.frame(size, &prints, &picture);
        let title = self.view.title();
        if title != self.title {
            bytes.extend(clipboard::title(&title));
            self.title = title;
        }
        self.output.write(bytes);
    }

    fn size_changed(&mut self) {
        if self.terminal.size() != self.drawn_size {
            self.resized = Some(Instant::now());
            self.want(KEY_FRAME);
        }
    }

    fn was_written(&mut self, result: &std::io::Result<()>) {
        self.output.was_written();
        if result.is_err() {
            self.stop(Stop::HangUp);
        }
    }

    /// The end of the lines leaves in order; a terminal that is gone does not.
    fn input_ended(&mut self) {
        if self.plain.is_some() {
            self.end.get_or_insert(End { code: 0, at_once: false });
        } else {
            self.stop(Stop::HangUp);
        }
    }

    fn keys(&mut self, bytes: &[u8]) {
        if let Some(plain) = &mut self.plain {
            let commands = plain.feed(&mut self.view, now(), bytes);
            commands.into_iter().for_each(|command| self.send(command));
            self.want(KEY_FRAME);
            return;
        }
        let mut typed = Vec::new();
        self.decoder.feed(now(), bytes, &mut typed);
        typed.into_iter().for_each(|typed| self.typed(typed));
    }

    fn typed(&mut self, typed: Typed) {
        if let Some(command) = view::key(&mut self.view, now(), typed) {
            self.send(command);
        }
        self.want(KEY_FRAME);
    }

    /// Does what has to be waited for.
    async fn do_later(&mut self) {
        match self.later.take() {
            Some(Later::Copy(entry)) => self.move_to_copy(entry).await,
            Some(Later::EditOutside(text)) => self.edit_outside(text).await,
            Some(Later::Suspend) => self.suspend().await,
            Some(Later::Login(provider)) => self.ask_key(&provider).await,
            Some(Later::Reloaded(reloaded)) => self.reloaded(*reloaded).await,
            None => {}
        }
    }

    /// Serves what the face asks for.
    async fn serve(&mut self) {
        self.do_later().await;
        loop {
            let requests = view::take_requests(&mut self.view);
            if requests.is_empty() {
                return;
            }
            if requests.iter().any(|request| !matches!(request, Request::Highlight(_))) {
                self.want(KEY_FRAME);
            }
            for request in requests {
                self.request(request);
                self.do_later().await;
            }
        }
    }

    /// A signal from outside asks nothing (TERM-27).
    fn stop(&mut self, stop: Stop) {
        self.end.get_or_insert(End { code: stop.exit_code(), at_once: false });
    }

    /// Resets everything; the region is gone.
    pub(super) fn restore(&mut self) {
        self.restore_with(&[]);
    }

    pub(super) fn restore_with(&mut self, last: &[crew_tui::markdown::Line]) {
        if self.plain.is_some() {
            let text: String = last.iter().map(|line| format!("{}\n", line.row.text())).collect();
            self.output.write(format!("\n{text}").into_bytes());
            return;
        }
        let size = self.terminal.size();
        let mut bytes = self.screen.end(size, last);
        bytes.extend_from_slice(clipboard::TITLE_BACK);
        self.title.clear();
        self.output.write(bytes);
    }

    /// The end: the region goes, what was stopped and how to come back is
    /// said, everything is ended (TERM-27).
    async fn finish(mut self) -> Result<u8, Error> {
        let end = self.end.unwrap_or(End { code: 0, at_once: true });
        let last = if end.at_once { Vec::new() } else { self.last_lines().await };
        // What became final goes above the last lines.
        let mut lines = match self.plain {
            Some(_) => Vec::new(),
            None => view::take_last(&mut self.view),
        };
        lines.extend(last);
        self.restore_with(&lines);
        self.output.drain().await;
        self.terminal.leave();
        if let Some(herdr) = self.herdr.take() {
            herdr.finish().await;
        }
        let Some(ready) = self.ready.take() else { return Ok(end.code) };
        if !end.at_once {
            ready.handle.send(Command::Quit);
            if let Some(mut updates) = self.updates.take() {
                let all = async { while updates.next().await.is_some() {} };
                let _ = tokio::time::timeout(END_MAX, all).await;
            }
        }
        let host = Arc::clone(&ready.host);
        let _ = tokio::task::spawn_blocking(move || host.kill_all()).await;
        Ok(end.code)
    }

    /// The session a source leads to is opened.
    pub(super) fn open(&mut self, session: SessionId, source: Source) {
        let Some(ready) = &self.ready else { return };
        let command = Command::Open { session, source: source.clone(), adopts: None };
        let id = ready.handle.send(command);
        self.opening = Some((id, source));
        self.waiting.insert(id, Waiting::Nothing);
    }
}

/// The moment of the async clock that a time means.
fn instant(time: crew_base::time::Time) -> Instant {
    Instant::now() + Duration::from_millis(time.since(now()))
}
