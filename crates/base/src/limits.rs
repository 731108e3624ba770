//! Named bounds of everything that could grow (`style.md` 8).

/// Lines of output one tool result may hold (`host.md` 4.1.2).
pub const TOOL_LINES_MAX: usize = 2000;
/// Bytes of output one tool result may hold (`host.md` 4.1.2).
pub const TOOL_BYTES_MAX: usize = 51_200;
/// UTF-16 units of one line that `grep` shows (`host.md` 4.1.2).
pub const GREP_LINE_UNITS_MAX: usize = 500;
/// Bytes of one server-sent event (`dependencies.md` 1).
pub const SSE_EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// UTF-16 units of a provider error body that are kept (`host.md` 9.1.9).
pub const ERROR_BODY_UNITS_MAX: usize = 4000;
/// Age after which a queued delivery is dropped (`crew.md` DEL-10).
pub const DELIVERY_AGE_MS_MAX: u64 = 86_400_000;
/// Owner requests between two reminders (`crew.md` CTX-18).
pub const REMINDER_REQUESTS: u32 = 10;
/// Characters of the last text quoted in an error (`crew.md` RES-13).
pub const EXCERPT_CHARS_MAX: usize = 500;
/// Activity rows kept for each subagent (`crew.md` ACT-1).
pub const ACTIVITY_ROWS_MAX: usize = 10;
/// Characters of an activity target or summary (`crew.md` ACT-15).
pub const ACTIVITY_CHARS_MAX: usize = 500;
/// Time the host waits at quit for work that was cancelled.
pub const SHUTDOWN_GRACE_MS: u64 = 2_000;
/// Bytes of a definition, a skill, a prompt template or `pi-crew.json`.
pub const RESOURCE_BYTES_MAX: u64 = 1024 * 1024;
/// Values one front matter may hold, aliases unfolded (`dependencies.md` 3).
pub const FRONT_MATTER_NODES_MAX: usize = 4096;
/// Folders searched for skills below one root (`host.md` 5.3.3).
pub const SKILL_FOLDERS_MAX: usize = 5000;
/// Folders between a root and a skill (`host.md` 5.3.3).
pub const SKILL_DEPTH_MAX: usize = 16;
/// Time a command of a configured value may take (`host.md` 1.6.1).
pub const VALUE_COMMAND_MS_MAX: u64 = 10_000;
/// Bytes a command of a configured value may print.
pub const VALUE_OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// Bytes of one line of a session file; longer ones are skipped with a warning.
pub const SESSION_LINE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes read in search of a session header when listing (`host.md` 2.2.8).
pub const SESSION_HEADER_BYTES_MAX: usize = 1024 * 1024;
/// Warnings told about one session file; the rest is counted.
pub const SESSION_WARNINGS_MAX: usize = 20;
/// Bytes of text kept for searching one listed session (`host.md` 2.8.11).
pub const SESSION_SEARCH_BYTES_MAX: usize = 64 * 1024;
/// Bytes of one context file that enter the prompt (`host.md` 5.1).
pub const CONTEXT_FILE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of piped standard input, and of one attached file (`host.md` 6.1.5).
pub const ATTACHMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Notices that wait for a face before the streams of the attached session are
/// no longer read (`host.md` 7.1.5).
pub const FACE_NOTICES_MAX: usize = 1024;
/// Notices that still wait when those streams are read again.
pub const FACE_NOTICES_RESUME: usize = 512;
/// Batches of one stream that wait for the engine before it is read on.
pub const STREAM_BATCHES_MAX: usize = 64;
/// Sessions prepared at the same moment, so that a fan-out takes no processor
/// from its owner (`product.md` 5).
pub const PREPARATIONS_MAX: usize = 2;
/// Events taken while a deadline has passed, before it is served.
pub const EVENTS_BEFORE_TICK_MAX: usize = 64;
/// Time a cancelled tool has to end before it is abandoned.
pub const TOOL_CANCEL_MS_MAX: u64 = 5_000;
/// Time a stream is kept after its last event, to end by itself.
pub const STREAM_END_MS_MAX: u64 = 1_000;
/// Helpers started again after they were ended by others.
pub const GUARD_STARTS_MAX: usize = 4;
/// Reminders of one ladder of a `task` child (`task.md` 1.6).
pub const TASK_REMINDERS_MAX: u32 = 3;
/// Submissions of one prompt that the session drops (`task.md` EXEC-3).
pub const SUBMISSIONS_MAX: u32 = 4;
/// Submissions of the first prompt to a busy session (`task.md` EXEC-4).
pub const BUSY_SUBMISSIONS_MAX: u32 = 3;
/// Time a session has to become idle after it dropped a prompt (`task.md` EXEC-3).
pub const DROP_IDLE_MS_MAX: u64 = 5_000;
/// Corrections of one submission against its schema (`task.md` YIELD-12).
pub const YIELD_CORRECTIONS_MAX: u32 = 3;
/// Refusals of empty submissions in a row (`task.md` YIELD-7).
pub const YIELD_EMPTIES_MAX: u32 = 3;
/// Refused `yield` calls in a row that end a child (`task.md` EXEC-26).
pub const YIELD_REFUSALS_MAX: u32 = 6;
/// Requests allowed after a budget stop (`task.md` EXEC-17).
pub const BUDGET_GRACE_REQUESTS: u32 = 5;
/// Results that may make a yield invalid before the child ends as stale
/// (`task.md` OP-22).
pub const INVALIDATIONS_MAX: u32 = 25;
/// Issues of one schema check that are told.
pub const SCHEMA_ISSUES_MAX: usize = 200;
/// Bytes of an output schema.
pub const OUTPUT_SCHEMA_BYTES_MAX: usize = 256 * 1024;
/// Depth to which one output schema is unfolded.
pub const SCHEMA_DEPTH_MAX: usize = 64;
/// Values one unfolded output schema may hold.
pub const SCHEMA_NODES_MAX: usize = 20_000;
/// Time a `task` child has to end all it started (`task.md` SESS-11).
pub const TASK_CLEANUP_MS_MAX: u64 = 10_000;
/// Bytes of a `task` result that are kept (`task.md` 1.6).
pub const TASK_OUTPUT_BYTES_MAX: usize = 500_000;
/// Lines of a `task` result that are kept (`task.md` 1.6).
pub const TASK_OUTPUT_LINES_MAX: usize = 5_000;
/// Characters of a preview (`task.md` DELIV-5).
pub const PREVIEW_CHARS_MAX: usize = 5_000;
/// Characters a preview keeps at least when it is cut at a line (`task.md` DELIV-6).
pub const PREVIEW_CHARS_MIN: usize = 2_500;
/// Characters of a result that has no file (`task.md` OP-16).
pub const INLINE_CHARS_MAX: usize = 50_000;
/// Time between two progress snapshots of a call (`task.md` SESS-10).
pub const TASK_PROGRESS_MS: u64 = 150;
/// Characters of a child id made from a name (`task.md` TASK-SPAWN-16).
pub const TASK_NAME_CHARS_MAX: usize = 48;
/// Characters of one field of an approval view (`task.md` DISP-4).
pub const APPROVAL_CHARS_MAX: usize = 2_000;
/// Items of a batch when the setting is not there (`task.md` OP-9).
pub const TASK_BATCH_ITEMS: usize = 16;
/// Bytes of a diff from which a commit message is made (`task.md` ISO-9).
pub const DIFF_BYTES_MAX: usize = 48 * 1024;
/// Characters of a commit message that a model wrote (`task.md` ISO-9).
pub const COMMIT_LINE_CHARS_MAX: usize = 120;
/// Undo steps of the editor.
pub const UNDO_STEPS_MAX: usize = 500;
/// Bytes of one command line of an RPC client.
pub const RPC_LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Command lines read ahead of the one being handled.
pub const RPC_LINES_AHEAD_MAX: usize = 16;
/// Lines that wait for standard output before an RPC client's session is
/// slowed (`host.md` 7.1.5).
pub const RPC_LINES_OUT_MAX: usize = 256;
/// Bytes of such lines.
pub const RPC_BYTES_OUT_MAX: usize = 1024 * 1024;
/// Lines that wait for standard output before no more commands are read.
pub const RPC_RESPONSES_OUT_MAX: usize = 4096;
/// Output of a person's command that waits for standard output before the
/// command is slowed.
pub const RPC_SHELL_BYTES_MAX: usize = 64 * 1024;

const _: () = assert!(FACE_NOTICES_RESUME < FACE_NOTICES_MAX);
const _: () = assert!(GREP_LINE_UNITS_MAX < TOOL_BYTES_MAX);
const _: () = assert!(ACTIVITY_CHARS_MAX <= EXCERPT_CHARS_MAX);
const _: () = assert!(PREVIEW_CHARS_MIN < PREVIEW_CHARS_MAX);
const _: () = assert!(PREVIEW_CHARS_MAX < INLINE_CHARS_MAX);
const _: () = assert!(YIELD_CORRECTIONS_MAX < YIELD_REFUSALS_MAX);
