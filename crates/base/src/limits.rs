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

const _: () = assert!(GREP_LINE_UNITS_MAX < TOOL_BYTES_MAX);
const _: () = assert!(ACTIVITY_CHARS_MAX <= EXCERPT_CHARS_MAX);
