//! What the tools of one process share: the record of files, the queues per
//! file and the commands that were started. Read `record`, `slots` and
//! `process::commands` for the parts.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crew_base::id::SessionId;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use crate::process::commands::Commands;
use crate::record::{Record, SpanId};
use crate::slots::Slots;

/// Pipes of processes left behind that are read so that their writers go on.
const DRAINED_PIPES_MAX: usize = 64;

/// Learns which process groups live, to end them after a death of the host
/// (`product.md` P-14b). Called from any thread; must not block for long. Told
/// of the end late, when it is certain: the number of a group may by then
/// belong to others, so a guard ends commands by marker (`kill_marked`).
pub trait GroupGuard: Send + Sync {
    /// A command started. All markers of a host start with [`Host::marker`].
    fn started(&self, group: i32, marker: &str);
    /// No process of that command is left.
    fn ended(&self, group: i32, marker: &str);
    /// No command starts any more, and all were ended; may block for a moment.
    fn finish(&self);
}

/// How to build a [`Host`].
#[derive(Clone)]
pub struct HostConfig {
    /// Folder for full outputs (`host.md` 4.1.9).
    pub tmp: PathBuf,
    /// Told about every command.
    pub guard: Option<Arc<dyn GroupGuard>>,
}

/// One per process.
pub struct Host {
    pub(crate) tmp: PathBuf,
    pub(crate) record: Record,
    pub(crate) slots: Slots,
    pub(crate) commands: Commands,
    drained: Arc<AtomicUsize>,
}

impl Host {
    /// Starts with nothing recorded.
    pub fn new(config: HostConfig) -> Arc<Host> {
        Arc::new(Host {
            tmp: config.tmp,
            record: Record::default(),
            slots: Slots::default(),
            commands: Commands::new(config.guard),
            drained: Arc::default(),
        })
    }

    /// The part that the markers of all commands of this host share; a guard
    /// can end them all with `kill_marked(&[Target::marked(marker)])`.
    pub fn marker(&self) -> &str {
        self.commands.marker()
    }

    /// Ends what the commands of a session left behind or still run, and
    /// forgets what it read (`product.md` P-14f). Ends within two seconds.
    pub async fn end_session(self: &Arc<Self>, session: &SessionId) {
        let host = Arc::clone(self);
        let session = session.clone();
        let work = move || {
            host.commands.kill_session(&session);
            host.record.forget(&session);
        };
        // A panic in there leaves nothing to do for the caller.
        let _ = tokio::task::spawn_blocking(work).await;
    }

    /// Ends every process of every command; no command starts afterwards
    /// (`host.md` 4.3.8). Blocks for at most two seconds.
    pub fn kill_all(&self) {
        self.commands.kill_all();
    }

    /// Notes in the record that a command of a session starts.
    pub(crate) async fn command_started(self: &Arc<Self>, session: &SessionId) -> CommandSpan {
        let host = Arc::clone(self);
        let session = session.clone();
        let work = move || host.record.command_started(&session);
        CommandSpan { host: Arc::clone(self), id: tokio::task::spawn_blocking(work).await.ok() }
    }

    /// Reads the pipe of a process that outlived its command to nowhere, so
    /// that its next line of output does not end it.
    pub(crate) fn drain(&self, mut pipe: Receiver) {
        let count = Arc::clone(&self.drained);
        if count.fetch_add(1, Ordering::Relaxed) >= DRAINED_PIPES_MAX {
            count.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        tokio::spawn(async move {
            let mut buffer = vec![0; 4096];
            while pipe.read(&mut buffer).await.is_ok_and(|n| n > 0) {}
            count.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// The run time of a command in the record; ends with this value at the latest.
pub(crate) struct CommandSpan {
    host: Arc<Host>,
    id: Option<SpanId>,
}

impl CommandSpan {
    /// Notes the end of the command.
    pub(crate) async fn end(mut self) {
        let host = Arc::clone(&self.host);
        if let Some(id) = self.id.take() {
            // The record answers for itself.
            let _ = tokio::task::spawn_blocking(move || host.record.command_ended(id)).await;
        }
    }
}

impl Drop for CommandSpan {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.host.record.command_ended(id);
        }
    }
}

/// Creates `<tmp>/<prefix>-<16 hex>.log`, mode 0600, never following a link
/// (`host.md` 4.1.9).
pub(crate) fn create_log(tmp: &Path, prefix: &str) -> io::Result<(File, PathBuf)> {
    let path = tmp.join(format!("{prefix}-{}.log", random_hex()));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    Ok((file, path))
}

/// Sixteen random hex digits; the hasher's keys come from the system.
pub(crate) fn random_hex() -> String {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u8(0);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_log_is_private_and_new() {
        // host.md 4.1.9
        let folder = tempfile::tempdir().unwrap();
        let (file, path) = create_log(folder.path(), "crew-bash").unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(name.len(), "crew-bash-0123456789abcdef.log".len());
        assert_ne!(create_log(folder.path(), "crew-bash").unwrap().1, path);
    }
}
