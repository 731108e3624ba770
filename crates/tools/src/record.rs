//! The record of who last saw and who last wrote which file, one for all
//! sessions of the process (`product.md` P-14).
//!
//! A change counts as a session's own when it was made by its tools, or fell
//! into the run time of one of its commands and of no other session's command.
//! In doubt a change is somebody else's: that costs one more reading, the
//! opposite would cost somebody's work. Changes by a process that a command
//! left behind count as somebody else's too.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crew_base::id::SessionId;

/// File times come from the clock tick, which may lie this far back.
const CLOCK_SLACK: Duration = Duration::from_millis(20);
/// Files of a session that are looked at around a command.
const WATCHED_FILES_MAX: usize = 1000;
/// Ended commands whose run time is remembered.
const SPANS_MAX: usize = 1000;

/// Who saw and wrote what.
#[derive(Default)]
pub(crate) struct Record {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    files: HashMap<PathBuf, FileRecord>,
    spans: Vec<Span>,
    spans_made: u64,
    writes_made: u64,
}

#[derive(Default)]
struct FileRecord {
    last_write: Option<(SessionId, u64)>,
    seen: HashMap<SessionId, Seen>,
}

/// A file as one session knows it.
#[derive(Clone)]
struct Seen {
    stamp: Stamp,
    writes_made: u64,
    stale: bool,
}

/// Tells one state of a file from another.
#[derive(Clone, PartialEq)]
pub(crate) struct Stamp {
    modified: (i64, i64),
    bytes: u64,
    device: u64,
    inode: u64,
}

impl Stamp {
    /// Taken from an open file, so that it belongs to what is read.
    pub(crate) fn of(data: &Metadata) -> Stamp {
        Stamp {
            modified: (data.mtime(), data.mtime_nsec()),
            bytes: data.len(),
            device: data.dev(),
            inode: data.ino(),
        }
    }
}

struct Span {
    id: u64,
    session: SessionId,
    start: SystemTime,
    end: Option<SystemTime>,
}

impl Span {
    fn holds(&self, moment: SystemTime) -> bool {
        let start = self.start.checked_sub(CLOCK_SLACK).unwrap_or(self.start);
        start <= moment && self.end.is_none_or(|end| moment <= end)
    }
}

/// Names a running command in the record.
#[derive(Clone, Copy)]
pub(crate) struct SpanId(u64);

impl Record {
    /// Notes that a session read a file, in part or whole.
    pub(crate) fn saw(&self, session: &SessionId, real: PathBuf, stamp: Stamp) {
        let mut state = self.lock();
        let writes_made = state.writes_made;
        let seen = Seen { stamp, writes_made, stale: false };
        let file = state.files.entry(real).or_default();
        file.seen.insert(session.clone(), seen);
    }

    /// Notes that a session wrote a file.
    pub(crate) fn wrote(&self, session: &SessionId, real: PathBuf, stamp: Stamp) {
        let mut state = self.lock();
        state.writes_made += 1;
        let writes_made = state.writes_made;
        let file = state.files.entry(real).or_default();
        file.last_write = Some((session.clone(), writes_made));
        let seen = Seen { stamp, writes_made, stale: false };
        file.seen.insert(session.clone(), seen);
    }

    /// Whether somebody else changed the file since the session last read or
    /// wrote it. A file it never touched, or that is gone, is free.
    pub(crate) fn changed_by_others(&self, session: &SessionId, real: &Path) -> bool {
        let Ok(data) = fs::metadata(real) else {
            return false;
        };
        let state = self.lock();
        let Some(file) = state.files.get(real) else {
            return false;
        };
        let Some(seen) = file.seen.get(session) else {
            return false;
        };
        let overwritten = file
            .last_write
            .as_ref()
            .is_some_and(|(writer, no)| writer != session && *no > seen.writes_made);
        let differs = seen.stamp != Stamp::of(&data);
        overwritten || seen.stale || (differs && !state.own_change(session, &data))
    }

    /// Notes that a command of a session starts. Changes of others up to now
    /// are marked, so that the command's own changes cannot hide them.
    pub(crate) fn command_started(&self, session: &SessionId) -> SpanId {
        self.look(session, true);
        let mut state = self.lock();
        state.spans_made += 1;
        let id = state.spans_made;
        state.spans.push(Span {
            id,
            session: session.clone(),
            start: SystemTime::now(),
            end: None,
        });
        SpanId(id)
    }

    /// Notes that it ended, and takes over what it changed.
    pub(crate) fn command_ended(&self, id: SpanId) {
        let session = {
            let mut state = self.lock();
            let Some(span) = state.spans.iter_mut().find(|span| span.id == id.0) else {
                return;
            };
            span.end = Some(SystemTime::now());
            let session = span.session.clone();
            state.drop_old_spans();
            session
        };
        self.look(&session, false);
    }

    /// Forgets what a session knew.
    pub(crate) fn forget(&self, session: &SessionId) {
        let mut state = self.lock();
        for file in state.files.values_mut() {
            file.seen.remove(session);
        }
        state.files.retain(|_, file| !file.seen.is_empty());
    }

    /// Compares the session's files with the disk: own changes are taken over,
    /// others are marked when `mark` is set.
    fn look(&self, session: &SessionId, mark: bool) {
        let paths: Vec<PathBuf> = {
            let state = self.lock();
            let files = state.files.iter();
            files
                .filter(|(_, file)| file.seen.contains_key(session))
                .map(|(path, _)| path.clone())
                .take(WATCHED_FILES_MAX)
                .collect()
        };
        for path in paths {
            let Ok(data) = fs::metadata(&path) else {
                continue;
            };
            let stamp = Stamp::of(&data);
            let mut state = self.lock();
            let own = state.own_change(session, &data);
            let seen = state.files.get_mut(&path).and_then(|f| f.seen.get_mut(session));
            let Some(seen) = seen.filter(|seen| !seen.stale && seen.stamp != stamp) else {
                continue;
            };
            if own {
                seen.stamp = stamp;
            } else {
                seen.stale = mark;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The change time is used and not the modification time, which commands
    /// such as `mv` and `cp -p` set to a moment of the past.
    fn own_change(&self, session: &SessionId, data: &Metadata) -> bool {
        let nanos = u32::try_from(data.ctime_nsec()).unwrap_or(0);
        let Ok(seconds) = u64::try_from(data.ctime()) else {
            return false;
        };
        let moment = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos);
        let mut own = false;
        for span in self.spans.iter().filter(|span| span.holds(moment)) {
            if span.session != *session {
                return false;
            }
            own = true;
        }
        own
    }

    /// An ended command matters while one that overlapped it still runs.
    fn drop_old_spans(&mut self) {
        let running = self.spans.iter().filter(|s| s.end.is_none());
        let oldest = running.map(|span| span.start).min();
        let now = SystemTime::now();
        self.spans.retain(|span| match (span.end, oldest) {
            (None, _) => true,
            (Some(end), Some(oldest)) => end >= oldest || is_recent(end, now),
            (Some(end), None) => is_recent(end, now),
        });
        let surplus = self.spans.len().saturating_sub(SPANS_MAX);
        let mut dropped = 0;
        self.spans.retain(|span| {
            let drop = span.end.is_some() && dropped < surplus;
            dropped += usize::from(drop);
            !drop
        });
    }
}

fn is_recent(end: SystemTime, now: SystemTime) -> bool {
    const RECENT: Duration = Duration::from_secs(10);
    now.duration_since(end).is_ok_and(|age| age < RECENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        _folder: tempfile::TempDir,
        file: PathBuf,
        record: Record,
    }

    impl World {
        fn new() -> World {
            let folder = tempfile::tempdir().unwrap();
            let file = fs::canonicalize(folder.path()).unwrap().join("f");
            fs::write(&file, "one").unwrap();
            World { _folder: folder, file, record: Record::default() }
        }

        fn stamp(&self) -> Stamp {
            Stamp::of(&fs::metadata(&self.file).unwrap())
        }

        fn saw(&self, session: &str) {
            self.record.saw(&session.into(), self.file.clone(), self.stamp());
        }

        fn write(&self, session: &str, text: &str) {
            fs::write(&self.file, text).unwrap();
            self.record.wrote(&session.into(), self.file.clone(), self.stamp());
        }

        fn refused(&self, session: &str) -> bool {
            self.record.changed_by_others(&session.into(), &self.file)
        }
    }

    #[test]
    fn the_second_of_two_sessions_that_read_a_file_is_refused() {
        // product.md P-14, C139
        let world = World::new();
        world.saw("a");
        world.saw("b");
        assert!(!world.refused("a"));
        world.write("a", "two");
        assert!(!world.refused("a"));
        assert!(world.refused("b"));
        world.saw("b");
        assert!(!world.refused("b"));
    }

    #[test]
    fn a_change_of_a_person_is_noticed_and_untouched_files_are_free() {
        let world = World::new();
        assert!(!world.refused("a"));
        world.saw("a");
        fs::write(&world.file, "longer").unwrap();
        assert!(world.refused("a"));
        assert!(!world.refused("stranger"));
        world.record.forget(&"a".into());
        assert!(!world.refused("a"));
    }

    #[test]
    fn a_write_of_another_session_is_noticed_even_with_an_equal_stamp() {
        let world = World::new();
        world.saw("a");
        world.record.wrote(&"b".into(), world.file.clone(), world.stamp());
        assert!(world.refused("a"));
    }

    #[test]
    fn what_the_own_command_changed_is_known() {
        let world = World::new();
        world.saw("a");
        let span = world.record.command_started(&"a".into());
        fs::write(&world.file, "changed by sed").unwrap();
        assert!(!world.refused("a"), "while it runs");
        world.record.command_ended(span);
        assert!(!world.refused("a"), "after it ended");
    }

    #[test]
    fn a_command_of_another_session_at_the_same_time_makes_it_doubtful() {
        let world = World::new();
        world.saw("a");
        let own = world.record.command_started(&"a".into());
        let other = world.record.command_started(&"b".into());
        fs::write(&world.file, "who was it").unwrap();
        world.record.command_ended(own);
        world.record.command_ended(other);
        assert!(world.refused("a"));
    }

    #[test]
    fn an_own_command_does_not_hide_an_earlier_change_of_a_person() {
        let world = World::new();
        world.saw("a");
        fs::write(&world.file, "by a person").unwrap();
        std::thread::sleep(CLOCK_SLACK * 2);
        let span = world.record.command_started(&"a".into());
        fs::write(&world.file, "by a person, then sed").unwrap();
        world.record.command_ended(span);
        assert!(world.refused("a"));
    }
}
