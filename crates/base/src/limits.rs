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

const _: () = assert!(GREP_LINE_UNITS_MAX < TOOL_BYTES_MAX);
const _: () = assert!(ACTIVITY_CHARS_MAX <= EXCERPT_CHARS_MAX);
