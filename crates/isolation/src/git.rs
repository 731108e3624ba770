//! Runs the program `git` (`task.md` OBS-13): no hooks, no pager, no prompt, no
//! editor, nothing of the `GIT_*` variables, in a process group of its own.
//!
//! Must never run a shell and never wait for anything that a person would have
//! to answer. Output goes through unnamed files, so that no thread is needed to
//! read it and no size of it can block.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::bytes::shown;
use crate::error::{Error, Result, io_error};

/// Bytes of git's complaints that are read.
const COMPLAINT_BYTES_MAX: u64 = 16 * 1024;
/// Longest pause between two looks at a running git.
const PAUSE_MAX: Duration = Duration::from_millis(10);

/// Variable that marks the commands of a host, so that they end with it
/// (`product.md` P-14b).
const MARKER_VARIABLE: &str = "CREW_COMMAND";

/// How git is run.
#[derive(Clone, Copy)]
pub(crate) struct Git<'a> {
    /// Folder for unnamed files.
    pub(crate) scratch: &'a Path,
    /// Asked again and again; true ends the running git.
    pub(crate) cancel: &'a dyn Fn() -> bool,
    /// Marks the processes as the host's own.
    pub(crate) marker: Option<&'a str>,
}

/// One call of git that is being put together.
pub(crate) struct Call<'a> {
    git: Git<'a>,
    action: &'static str,
    command: Command,
    input: Vec<u8>,
    from: Option<File>,
    to: Option<File>,
}

/// A git that ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) out: Vec<u8>,
    /// Complaints, safe to show.
    pub(crate) said: String,
}

impl Ended {
    /// The one line of the output.
    pub(crate) fn line(&self) -> String {
        String::from_utf8_lossy(&self.out).trim_end().to_owned()
    }
}

impl<'a> Git<'a> {
    /// A call in `dir`; `action` says in an error what could not be done.
    pub(crate) fn call(&self, action: &'static str, dir: &Path) -> Call<'a> {
        let mut command = Command::new("git");
        command.current_dir(dir).process_group(0);
        for name in CLEARED {
            command.env_remove(name);
        }
        command.envs(SET.iter().copied());
        if let Some(marker) = self.marker {
            command.env(MARKER_VARIABLE, marker);
        }
        for setting in SETTINGS {
            command.arg("-c").arg(setting);
        }
        Call { git: *self, action, command, input: Vec::new(), from: None, to: None }
    }

    /// The same for what writes into the person's repository: a git that is
    /// killed there leaves locks behind.
    pub(crate) fn certain(&self) -> Git<'a> {
        Git { cancel: &|| false, ..*self }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        (self.cancel)()
    }

    /// Fails when the caller cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

impl Call<'_> {
    /// The repository, instead of a search for it.
    pub(crate) fn git_dir(mut self, git_dir: &Path) -> Self {
        self.command.env("GIT_DIR", git_dir);
        self
    }

    pub(crate) fn work_tree(mut self, work_tree: &Path) -> Self {
        self.command.env("GIT_WORK_TREE", work_tree);
        self
    }

    pub(crate) fn index(mut self, index: &Path) -> Self {
        self.command.env("GIT_INDEX_FILE", index);
        self
    }

    /// A setting on top of the fixed ones; before the arguments.
    pub(crate) fn setting(mut self, setting: &str) -> Self {
        self.command.arg("-c").arg(setting);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn input(mut self, input: Vec<u8>) -> Self {
        self.input = input;
        self
    }

    /// Takes the input from a file, from where it stands.
    pub(crate) fn from(mut self, file: File) -> Self {
        self.from = Some(file);
        self
    }

    /// Sends the output to a file; [`Ended::out`] stays empty.
    pub(crate) fn to(mut self, file: File) -> Self {
        self.to = Some(file);
        self
    }

    /// Runs it; any exit code but 0 is an error.
    pub(crate) fn run(self) -> Result<Ended> {
        let action = self.action;
        let ended = self.end()?;
        if ended.status.success() {
            return Ok(ended);
        }
        let said = match ended.said.is_empty() {
            true => format!("it ended with {}", ended.status),
            false => ended.said,
        };
        Err(Error::Git { action, said })
    }

    /// Runs it; every exit code is an answer.
    pub(crate) fn end(mut self) -> Result<Ended> {
        self.git.check()?;
        let scratch = self.git.scratch;
        let fresh = || tempfile::tempfile_in(scratch).map_err(io_error("write", scratch));
        let own = |file: &File| file.try_clone().map_err(io_error("write", scratch));
        let mut complaints = fresh()?;
        self.command.stdin(match self.from.take() {
            Some(file) => file.into(),
            None if self.input.is_empty() => Stdio::null(),
            None => {
                let mut input = fresh()?;
                let written = input.write_all(&self.input);
                let ready = written.and_then(|()| input.seek(SeekFrom::Start(0)));
                ready.map_err(io_error("write", scratch))?;
                input.into()
            }
        });
        let mut out = match self.to.take() {
            Some(file) => {
                self.command.stdout(file);
                None
            }
            None => {
                let file = fresh()?;
                self.command.stdout(own(&file)?);
                Some(file)
            }
        };
        self.command.stderr(own(&complaints)?);
        let child = self.command.spawn().map_err(|source| Error::NoGit { source })?;
        let status = self.wait(child)?;
        let read = |file: &mut File, most: u64| -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(0))?;
            file.take(most).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let said = read(&mut complaints, COMPLAINT_BYTES_MAX).map_err(io_error("read", scratch))?;
        let out = out.as_mut().map(|file| read(file, u64::MAX)).transpose();
        let out = out.map_err(io_error("read", scratch))?.unwrap_or_default();
        Ok(Ended { status, out, said: shown(&said) })
    }

    fn wait(&self, mut child: Child) -> Result<ExitStatus> {
        let mut pause = Duration::from_micros(300);
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if self.git.is_cancelled() => {
                    end_group(&mut child);
                    return Err(Error::Cancelled);
                }
                Ok(None) => {}
                Err(source) => {
                    end_group(&mut child);
                    return Err(Error::NoGit { source });
                }
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// Ends git and what it started. The number is ours: nobody waited for it yet.
fn end_group(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // The group may be gone already; then there is nothing to end.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

/// Settings that keep the person's programs and habits out; their filters stay.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.safecrlf=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "color.ui=false",
    "submodule.recurse=false",
    "i18n.commitEncoding=UTF-8",
    "apply.whitespace=nowarn",
    "apply.ignoreWhitespace=no",
];

const SET: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("LANGUAGE", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", ":"),
    ("GIT_SEQUENCE_EDITOR", ":"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_ASKPASS", "true"),
    ("SSH_ASKPASS", "true"),
];

/// Variables of git that could lead it elsewhere or change what it says. Those
/// that name the person stay.
const CLEARED: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INDEX_VERSION",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_DEFAULT_HASH",
    "GIT_DEFAULT_REF_FORMAT",
    "GIT_REF_FORMAT",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_DATE",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_DIFF_PATH_COUNTER",
    "GIT_DIFF_PATH_TOTAL",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_ATTR_SOURCE",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REFLOG_ACTION",
    "GIT_REF_PARANOIA",
    "GIT_TEMPLATE_DIR",
    "GIT_EXEC_PATH",
    "GIT_FLUSH",
    "GIT_MERGE_VERBOSITY",
    "GIT_ADVICE",
    "GIT_TRACE",
    "GIT_TRACE2",
    "GIT_TRACE2_EVENT",
    "GIT_TRACE2_PERF",
    "GIT_TRACE_CURL",
    "GIT_TRACE_FSMONITOR",
    "GIT_TRACE_PACKET",
    "GIT_TRACE_PACK_ACCESS",
    "GIT_TRACE_PACKFILE",
    "GIT_TRACE_PERFORMANCE",
    "GIT_TRACE_REFS",
    "GIT_TRACE_SETUP",
    "GIT_TRACE_SHALLOW",
];

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_cancel_ends_git_and_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let began = Instant::now();
        let pid = folder.path().join("pid");
        let cancel = || std::fs::read(&pid).is_ok_and(|text| text.ends_with(b"\n"));
        let git = Git { scratch: folder.path(), cancel: &cancel, marker: None };
        // An alias is the one way to make git itself run for long.
        let alias = format!("alias.long=!echo $$ > '{}'; exec sleep 60", pid.display());
        let ended = git.call("wait", folder.path()).setting(&alias).arg("long").end();
        assert!(matches!(ended, Err(Error::Cancelled)));
        assert!(began.elapsed() < Duration::from_secs(20));
        let shell: i32 = std::fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
        let shell = Pid::from_raw(shell).unwrap();
        // The kill was sent; a zombie counts as gone.
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", shell.as_raw_nonzero()));
        while state().is_ok_and(|text| !text.contains(") Z ")) {
            assert!(began.elapsed() < Duration::from_secs(20), "the command lives");
            std::thread::yield_now();
        }
    }
}
