//! The transitions: one input in, effects out.
//!
//! `step` holds the session run and its requests, `step::tools` the tool
//! batches, `step::compacting` and `step::recovery` what is done about a context
//! that grew too long. Invariant: after each step the phase is never `Boundary`, because
//! the engine answers a boundary before it does anything else.

mod answers;
mod compacting;
mod control;
mod moving;
mod recovery;
mod stop;
mod summarising;
mod tools;

use compacting::Manual;
pub use control::Control;

use std::collections::VecDeque;
use std::sync::Arc;

use crew_base::entry::EntryBody;
use crew_base::id::{Ids, RunId, SessionId};
use crew_base::message::{CustomMessage, Message, SharedMessage};
use crew_base::model::{CacheRetention, ModelRequest, ModelSpec, ThinkingLevel, ToolChoice};
use crew_base::session::{DeliveryId, ResultMessage, RunEnd};
use crew_base::time::Time;

use crate::answer::Answer;
use crate::compaction::{CompactionOverrides, CompactionSettings};
use crate::effect::{Effect, Update};
use crate::input::{Input, Loaded};
use crate::phase::{After, Phase, Stream, Then, TurnEnd};
use crate::prompt::Prompt;
use crate::queue::{Queue, QueueMode, Queued};
use crate::record::{Outgoing, Record};
use crate::retry::RetrySettings;

/// What the host's settings say about a session.
#[derive(Clone, Debug)]
pub struct Settings {
    /// For typed steering messages.
    pub steering: QueueMode,
    /// For follow-ups.
    pub follow_up: QueueMode,
    /// For failed requests.
    pub retry: RetrySettings,
    /// For contexts that grow too long.
    pub compaction: CompactionSettings,
    /// Where the sizes of these differ.
    pub compaction_overrides: CompactionOverrides,
    /// Tokens of the window that the summary of a branch leaves free
    /// (`branchSummary.reserveTokens`).
    pub branch_reserve_tokens: u64,
    /// Prompt cache wish.
    pub cache: CacheRetention,
    /// Rewrites messages for the wire only.
    pub outgoing: Outgoing,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            steering: QueueMode::OneAtATime,
            follow_up: QueueMode::OneAtATime,
            retry: RetrySettings::default(),
            compaction: CompactionSettings::default(),
            compaction_overrides: CompactionOverrides::default(),
            branch_reserve_tokens: 16_384,
            cache: CacheRetention::Short,
            outgoing: |_| None,
        }
    }
}

/// One session.
#[derive(Debug)]
pub struct Agent {
    session: SessionId,
    settings: Settings,
    model: Option<Arc<ModelSpec>>,
    thinking: ThinkingLevel,
    /// Models that are asked when the one in use gives up, in order.
    fallbacks: VecDeque<(Arc<ModelSpec>, ThinkingLevel)>,
    wanted: Prompt,
    record: Record,
    queue: Queue,
    phase: Phase,
    held: Vec<CustomMessage>,
    after_run: Vec<Message>,
    /// Messages of the running loop run.
    added: Vec<SharedMessage>,
    /// Retries made since the last good answer.
    attempt: u32,
    /// A compaction that is to come once what runs has ended.
    manual: Option<Manual>,
    /// A compaction after an overflow was made for the same message.
    recovered: bool,
    /// A compaction failed or was cancelled; none starts by itself before the
    /// next whole answer.
    gave_up: bool,
    /// The run that starts was aborted before its first request.
    aborted_early: bool,
    /// The tool that the next turn's requests must call.
    forced_tool: Option<String>,
    /// Off for subagents (`product.md` P-14h).
    compacts_after_runs: bool,
    /// The level that the branch implies which was gone to, until a run begins.
    branch_level: Option<ThinkingLevel>,
}

/// What a step works with.
pub(crate) struct Step<'a> {
    pub(crate) now: Time,
    pub(crate) ids: &'a mut Ids,
    pub(crate) out: Vec<Effect>,
}

impl Step<'_> {
    fn update(&mut self, update: Update) {
        self.out.push(Effect::Update(update));
    }
}

impl Agent {
    /// A session over what was loaded; `loaded` is empty for a new one.
    pub fn new(session: SessionId, loaded: Loaded, settings: Settings) -> Agent {
        let record = Record::new(loaded, settings.outgoing);
        Agent {
            session,
            settings,
            model: None,
            thinking: ThinkingLevel::Off,
            fallbacks: VecDeque::new(),
            wanted: Prompt::default(),
            record,
            queue: Queue::default(),
            phase: Phase::Idle,
            held: Vec::new(),
            after_run: Vec::new(),
            added: Vec::new(),
            attempt: 0,
            manual: None,
            recovered: false,
            gave_up: false,
            aborted_early: false,
            forced_tool: None,
            compacts_after_runs: true,
            branch_level: None,
        }
    }

    /// Sets model and thinking level for the next request without a record;
    /// the level is clamped to the model.
    pub fn use_model(&mut self, model: Arc<ModelSpec>, thinking: ThinkingLevel) {
        self.thinking = model.clamp(thinking);
        self.model = Some(model);
    }

    /// The prompt that the next request shall show (`host.md` 2.7.3).
    pub fn want_prompt(&mut self, prompt: Prompt) {
        self.wanted = prompt;
    }

    /// Models to be asked in this order when requests to the one in use fail
    /// for good, each once (`task.md` TASK-SPAWN-13).
    pub fn fall_back_on(&mut self, models: Vec<(Arc<ModelSpec>, ThinkingLevel)>) {
        self.fallbacks = models.into();
    }

    /// Makes the first turn of the next run call this tool, where the model
    /// can be made to: its request and the retries of it (`task.md` EXEC-8).
    pub fn force_tool(&mut self, tool: Option<&str>) {
        self.forced_tool = tool.map(str::to_owned);
    }

    /// The model in use.
    pub fn model(&self) -> Option<&Arc<ModelSpec>> {
        self.model.as_ref()
    }

    /// The thinking level in use.
    pub fn thinking(&self) -> ThinkingLevel {
        self.thinking
    }

    /// The context.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Whether nothing runs.
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    /// What it waits for, if it is not at work itself.
    pub fn waiting(&self) -> Option<crate::phase::Waiting> {
        self.phase.waiting()
    }

    /// Whether results of the crew wait for a place.
    pub fn has_results(&self) -> bool {
        self.queue.has_results()
    }

    /// Takes the results that wait back out (`product.md` P-14c): all, or those
    /// behind one that could not be recorded.
    pub fn take_results(&mut self, behind: Option<DeliveryId>) -> Vec<ResultMessage> {
        self.queue.take_results(behind)
    }

    /// Removes the typed messages that wait: texts of steering and follow-up.
    pub fn clear_queue(&mut self) -> (Vec<String>, Vec<String>) {
        self.queue.clear()
    }

    /// When to send [`Input::Tick`].
    pub fn deadline(&self) -> Option<Time> {
        match &self.phase {
            Phase::Backoff(backoff) => Some(backoff.until),
            Phase::Compacting(_) | Phase::Moving(_) => self.phase.summary_due(),
            Phase::Streaming(stream) => stream.resend_at,
            Phase::Idle | Phase::Boundary(_) | Phase::Tools(_) => None,
        }
    }

    /// The entries every new session starts with (`host.md` 2.4.2): model and
    /// thinking level for a new file, the level alone for an old one that
    /// never recorded any.
    pub fn open(&mut self, now: Time, ids: &mut Ids, is_new: bool, has_level: bool) -> Vec<Effect> {
        let mut step = Step { now, ids, out: Vec::new() };
        if is_new && let Some(model) = self.model.clone() {
            let (provider, model_id) = (model.provider.clone(), model.id.clone());
            self.note(&mut step, EntryBody::ModelChange { provider, model_id }, None);
        }
        if is_new || !has_level {
            let thinking_level = self.thinking.word().to_owned();
            self.note(&mut step, EntryBody::ThinkingLevelChange { thinking_level }, None);
        }
        step.out.retain(|effect| !matches!(effect, Effect::Update(_)));
        step.out
    }

    /// Takes one input; total, never fails.
    #[must_use]
    pub fn step(&mut self, now: Time, ids: &mut Ids, input: Input) -> Vec<Effect> {
        let mut step = Step { now, ids, out: Vec::new() };
        match input {
            Input::Prompt(messages) => {
                let starting = messages.into_iter().map(Queued::Typed).collect();
                self.start(&mut step, starting);
            }
            Input::Results(results) => self.results(&mut step, results),
            Input::Wake => {
                if self.is_idle() && self.queue.has_results() {
                    let waiting = self.queue.take_results(None);
                    self.start(&mut step, waiting.into_iter().map(Queued::Result).collect());
                }
            }
            Input::Steer(message) => {
                self.queue.steer(Queued::Typed(message));
                step.update(self.queue.update());
            }
            Input::FollowUp(message) => {
                self.queue.follow_up(message);
                step.update(self.queue.update());
            }
            Input::InjectAfterRun(message) => {
                if self.is_idle() {
                    self.add(&mut step, Queued::Typed(message));
                } else {
                    self.after_run.push(message);
                }
            }
            Input::Inject(message) => {
                if self.is_idle() {
                    self.add(&mut step, Queued::Typed(Message::Custom(message)));
                } else {
                    self.held.push(message);
                }
            }
            Input::Note { body, delivery } => self.note(&mut step, body, delivery),
            Input::Proceed(status) => self.proceed(&mut step, status),
            Input::Model { run, events } => self.model_events(&mut step, run, events),
            Input::ToolProgress { run, progress } => self.tool_progress(&mut step, run, progress),
            Input::ToolEnded { run, outcome } => self.tool_ended(&mut step, run, outcome),
            Input::AppendFailed { entry, error } => self.append_failed(&mut step, &entry, error),
            Input::AppendLost { entry, error } => self.append_lost(&mut step, &entry, error),
            Input::Compact { instructions } => self.compact(&mut step, instructions),
            Input::Navigate { to, summary, label } => self.navigate(&mut step, to, summary, label),
            Input::BranchRead { run, result } => self.branch_read(&mut step, run, result),
            Input::Abort => {
                self.drop_manual(&mut step);
                self.abort(&mut step);
            }
            Input::Tick => self.tick(&mut step),
        }
        step.out
    }

    fn results(&mut self, step: &mut Step<'_>, results: Vec<ResultMessage>) {
        let queued = results.into_iter().map(Queued::Result);
        if self.is_idle() {
            let starting = queued.collect();
            self.start(step, starting);
        } else {
            queued.for_each(|result| self.queue.steer(result));
        }
    }

    fn start(&mut self, step: &mut Step<'_>, starting: Vec<Queued>) {
        if !crew_base::invariant!(self.is_idle(), "a run starts only while idle") {
            return;
        }
        self.attempt = 0;
        self.recovered = false;
        let Some(due) = self.due_by_threshold() else {
            self.begin_loop(step, starting);
            return;
        };
        let is_typed = |queued: &Queued| matches!(queued, Queued::Typed(_));
        let (typed, results): (Vec<_>, Vec<_>) = starting.into_iter().partition(is_typed);
        results.into_iter().for_each(|result| self.queue.steer(result));
        self.begin_compaction(step, due, After::Start(typed), None);
    }

    fn begin_loop(&mut self, step: &mut Step<'_>, starting: Vec<Queued>) {
        self.added.clear();
        step.update(Update::AgentStart);
        self.phase = Phase::Boundary(Then::Start(starting));
        step.out.push(Effect::Boundary);
    }

    fn proceed(&mut self, step: &mut Step<'_>, status: Vec<CustomMessage>) {
        let phase = std::mem::replace(&mut self.phase, Phase::Idle);
        let Phase::Boundary(then) = phase else {
            self.phase = phase;
            return;
        };
        match then {
            Then::Start(starting) => {
                step.update(Update::TurnStart);
                self.note_level(step);
                self.patch_prompt(step);
                self.add_status(step, status);
                for queued in starting {
                    self.add(step, queued);
                }
                if std::mem::take(&mut self.aborted_early) {
                    self.give_up_retries(step, "the retry was cancelled");
                    self.abort_unasked(step);
                    return;
                }
                let steered = self.queue.take_steering(self.settings.steering);
                self.enter(step, steered);
                self.request(step, false);
            }
            Then::TurnEnded(end) => {
                self.add_status(step, status);
                match end {
                    TurnEnd::Tools => self.next_turn(step, true),
                    TurnEnd::Stop => self.next_turn(step, false),
                    TurnEnd::Failed => self.end_loop(step, false),
                    TurnEnd::Aborted => self.end_loop(step, true),
                }
            }
        }
    }

    fn add_status(&mut self, step: &mut Step<'_>, status: Vec<CustomMessage>) {
        for message in status {
            self.add(step, Queued::Typed(Message::Custom(message)));
        }
    }

    /// Starts the next turn with what waits, or ends the loop run
    /// (`host.md` 3.1.6, 3.1.7).
    fn next_turn(&mut self, step: &mut Step<'_>, wants_more: bool) {
        let mut entering = self.queue.take_steering(self.settings.steering);
        if entering.is_empty() && !wants_more {
            entering = self.queue.take_follow_up(self.settings.follow_up);
            if entering.is_empty() {
                self.end_loop(step, false);
                return;
            }
        }
        self.patch_prompt(step);
        step.update(Update::TurnStart);
        let after_results = wants_more && entering.is_empty();
        self.enter(step, entering);
        self.request(step, after_results);
    }

    /// Queued messages enter the record; typed ones leave the shown list first.
    fn enter(&mut self, step: &mut Step<'_>, entering: Vec<Queued>) {
        if entering.iter().any(|queued| matches!(queued, Queued::Typed(_))) {
            step.update(self.queue.update());
        }
        for queued in entering {
            self.add(step, queued);
        }
    }

    fn patch_prompt(&mut self, step: &mut Step<'_>) {
        if let Some(patch) = self.record.prompt().patch_to(&self.wanted, step.now) {
            self.add(step, Queued::Typed(Message::System(patch)));
        }
    }

    /// Records one message and tells it.
    fn add(&mut self, step: &mut Step<'_>, queued: Queued) -> SharedMessage {
        let (message, delivery) = match queued {
            Queued::Typed(message) => (message, None),
            Queued::Result(result) => (Message::Custom(result.message), Some(result.delivery)),
        };
        if let Message::User(_) = message {
            self.recovered = false;
        }
        let (entry, shared) = self.record.append_message(step.now, step.ids, message, delivery);
        step.out.push(Effect::Append(entry));
        if let Some(delivery) = delivery {
            step.out.push(Effect::Entered(delivery));
        }
        step.update(Update::MessageStart(Arc::clone(&shared)));
        step.update(Update::MessageEnd(Arc::clone(&shared)));
        self.added.push(Arc::clone(&shared));
        shared
    }

    fn note(&mut self, step: &mut Step<'_>, body: EntryBody, delivery: Option<DeliveryId>) {
        let entry = self.record.append(step.now, step.ids, body, delivery);
        step.out.push(Effect::Append(entry.clone()));
        step.out.extend(delivery.map(Effect::Entered));
        step.update(Update::EntryAppended(entry));
    }

    pub(super) fn request(&mut self, step: &mut Step<'_>, after_results: bool) {
        let Some(model) = self.model.clone() else {
            self.fail(step, "no model is selected".to_owned());
            return;
        };
        let answer = Answer::new(&model, self.thinking, step.now);
        let run = self.send(step, model);
        self.phase = Phase::Streaming(Stream {
            run,
            answer,
            announced: false,
            after_results,
            written: self.record.unconfirmed(),
            resends: 0,
            resend_at: None,
        });
    }

    pub(super) fn send(&self, step: &mut Step<'_>, model: Arc<ModelSpec>) -> RunId {
        let run = step.ids.run();
        let request = ModelRequest {
            session: self.session.clone(),
            messages: self.record.wire(),
            thinking: self.thinking,
            cache: self.settings.cache,
            tool_choice: self.forced_tool.clone().map_or(ToolChoice::Auto, ToolChoice::Named),
            model,
        };
        step.out.push(Effect::StartModel { run, request });
        run
    }

    /// Ends the turn: what was held enters, then the boundary.
    fn end_turn(
        &mut self,
        step: &mut Step<'_>,
        message: SharedMessage,
        results: Vec<SharedMessage>,
        end: TurnEnd,
    ) {
        self.forced_tool = None;
        step.update(Update::TurnEnd { message, results });
        for held in std::mem::take(&mut self.held) {
            self.add(step, Queued::Typed(Message::Custom(held)));
        }
        let goes_on = match end {
            TurnEnd::Tools => true,
            TurnEnd::Stop => !self.queue.is_empty(),
            TurnEnd::Failed | TurnEnd::Aborted => false,
        };
        match self.due_by_threshold().filter(|_| goes_on) {
            Some(due) => self.begin_compaction(step, due, After::Turn(end), None),
            None => self.boundary(step, Then::TurnEnded(end)),
        }
    }

    fn boundary(&mut self, step: &mut Step<'_>, then: Then) {
        self.phase = Phase::Boundary(then);
        step.out.push(Effect::Boundary);
    }

    fn end_loop(&mut self, step: &mut Step<'_>, aborted: bool) {
        let messages = std::mem::take(&mut self.added);
        step.update(Update::AgentEnd { messages, will_retry: false });
        if aborted {
            self.settle(step, RunEnd::Aborted);
            return;
        }
        match self.due_after_loop() {
            Some(due) => self.begin_compaction(step, due, After::Loop, None),
            None => self.go_on(step),
        }
    }

    /// Ends the session run, or starts another loop run with what waits
    /// (`host.md` 3.1.8, 3.4.6).
    fn go_on(&mut self, step: &mut Step<'_>) {
        if self.queue.is_empty() {
            self.settle(step, RunEnd::Ended);
        } else {
            self.restart(step);
        }
    }

    /// Starts another loop run with what waits.
    fn restart(&mut self, step: &mut Step<'_>) {
        let mut starting = self.queue.take_steering(self.settings.steering);
        if starting.is_empty() {
            starting = self.queue.take_follow_up(self.settings.follow_up);
        }
        step.update(self.queue.update());
        self.begin_loop(step, starting);
    }

    fn settle(&mut self, step: &mut Step<'_>, end: RunEnd) {
        self.phase = Phase::Idle;
        self.forced_tool = None;
        self.add_held(step);
        step.update(Update::AgentSettled { aborted: end == RunEnd::Aborted });
        self.rest(step, end);
    }

    /// What was held while something ran enters now.
    fn add_held(&mut self, step: &mut Step<'_>) {
        let held = std::mem::take(&mut self.held).into_iter().map(Message::Custom);
        for message in held.chain(std::mem::take(&mut self.after_run)) {
            self.add(step, Queued::Typed(message));
        }
    }

    fn tick(&mut self, step: &mut Step<'_>) {
        if let Phase::Backoff(backoff) = &self.phase
            && step.now >= backoff.until
        {
            self.begin_loop(step, Vec::new());
        } else if let Phase::Streaming(stream) = &self.phase {
            if stream.resend_at.is_some_and(|at| step.now >= at) {
                self.send_again(step);
            }
        } else {
            self.summary_tick(step);
        }
    }
}
