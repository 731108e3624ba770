//! The device: raw mode, size, and one thread each for reading and writing.
//!
//! Everything that was changed is undone by [`Terminal::leave`], by dropping,
//! and by the panic hook.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use crew_tui::screen::{Screen, Size};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

/// Size where the terminal does not tell.
const SIZE: Size = Size { columns: 80, rows: 24 };

/// Modes as they were before, for the panic hook.
static BEFORE: OnceLock<Termios> = OnceLock::new();
static IS_FULL: AtomicBool = AtomicBool::new(false);

/// An open terminal in raw mode.
pub(super) struct Terminal {
    before: Termios,
    is_raw: bool,
    /// Lines in and out, no modes of ours (TERM-57).
    pub(super) is_plain: bool,
}

impl Terminal {
    /// Takes the terminal over.
    pub(super) fn open() -> io::Result<Terminal> {
        let before = tcgetattr(io::stdin())?;
        let _ = BEFORE.set(before.clone());
        let mut terminal = Terminal { before, is_raw: false, is_plain: false };
        terminal.enter()?;
        restore_on_panic();
        Ok(terminal)
    }

    /// The terminal as it is, for line mode.
    pub(super) fn plain() -> io::Result<Terminal> {
        Ok(Terminal { before: tcgetattr(io::stdin())?, is_raw: false, is_plain: true })
    }

    /// Raw mode: every byte as it comes. What was typed before stays.
    pub(super) fn enter(&mut self) -> io::Result<()> {
        if self.is_plain {
            return Ok(());
        }
        let mut raw = self.before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        self.is_raw = true;
        Ok(())
    }

    /// The modes that were there before.
    pub(super) fn leave(&mut self) {
        if std::mem::take(&mut self.is_raw) {
            // A terminal that is gone has no modes.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
        }
    }

    /// Columns and rows at this moment.
    pub(super) fn size(&self) -> Size {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Size { columns: usize::from(size.ws_col), rows: usize::from(size.ws_row) }
            }
            Ok(_) | Err(_) => SIZE,
        }
    }

    /// Tells the panic hook which screen is shown.
    pub(super) fn shows(&self, is_full: bool) {
        IS_FULL.store(is_full, Ordering::Relaxed);
    }

    /// What was typed before anything was drawn (TERM-18).
    pub(super) fn typed_ahead(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut chunk = [0; 4096];
        while is_readable() {
            match rustix::io::read(io::stdin(), &mut chunk) {
                Ok(0) | Err(_) => break,
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            }
        }
        bytes
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

fn is_readable() -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&now)), Ok(ready) if ready > 0)
}

/// A panic of the face resets the terminal before it is told. Panics of tasks
/// end as failed runs and must not write over the screen.
fn restore_on_panic() {
    let face = std::thread::current().id();
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() != face {
            return;
        }
        let bytes = Screen::panic_bytes(IS_FULL.load(Ordering::Relaxed));
        let _ = io::stdout().write_all(bytes).and_then(|()| io::stdout().flush());
        if let Some(before) = BEFORE.get() {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
        tell(panic);
    }));
}

/// The thread that reads. It can be held, so that another program may have the
/// keys.
pub(super) struct Input {
    state: Arc<(Mutex<Hold>, Condvar)>,
    wake: UnixStream,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hold {
    #[default]
    Reading,
    /// Asked to stop reading.
    Asked,
    /// Reads no more.
    Held,
}

impl Input {
    /// Starts reading. The channel closes when the terminal is gone.
    pub(super) fn start() -> io::Result<(Input, mpsc::UnboundedReceiver<Vec<u8>>)> {
        let (wake, woken) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        let state: Arc<(Mutex<Hold>, Condvar)> = Arc::default();
        let (sender, bytes) = mpsc::unbounded_channel();
        let shared = Arc::clone(&state);
        std::thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || read(&shared, &woken, &sender))?;
        Ok((Input { state, wake }, bytes))
    }

    /// Waits until nothing is read any more.
    pub(super) fn hold(&mut self) {
        let (lock, changed) = &*self.state;
        let mut hold = lock.lock().unwrap_or_else(PoisonError::into_inner);
        if *hold == Hold::Reading {
            *hold = Hold::Asked;
            let _ = self.wake.write_all(b"x");
            while *hold == Hold::Asked {
                let waited = changed.wait_timeout(hold, std::time::Duration::from_millis(500));
                let (next, result) = waited.unwrap_or_else(PoisonError::into_inner);
                hold = next;
                // A reader that is gone will not answer.
                if result.timed_out() {
                    break;
                }
            }
        }
    }

    /// Reads again.
    pub(super) fn release(&mut self) {
        let (lock, changed) = &*self.state;
        *lock.lock().unwrap_or_else(PoisonError::into_inner) = Hold::Reading;
        changed.notify_all();
    }
}

fn read(
    state: &(Mutex<Hold>, Condvar),
    woken: &UnixStream,
    sender: &mpsc::UnboundedSender<Vec<u8>>,
) {
    let stdin = io::stdin();
    let mut chunk = [0; 4096];
    loop {
        {
            let (lock, changed) = state;
            let mut hold = lock.lock().unwrap_or_else(PoisonError::into_inner);
            if *hold == Hold::Asked {
                *hold = Hold::Held;
                changed.notify_all();
            }
            while *hold == Hold::Held {
                hold = changed.wait(hold).unwrap_or_else(PoisonError::into_inner);
            }
        }
        let mut fds = [
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN),
        ];
        if poll(&mut fds, None).is_err() {
            continue;
        }
        let (keys, wakes) = (fds[0].revents(), fds[1].revents());
        if wakes.contains(PollFlags::IN) {
            let _ = (&mut &*woken).read(&mut chunk);
            continue;
        }
        if keys.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            match rustix::io::read(&stdin, &mut chunk) {
                Ok(0) => return,
                Ok(count) => {
                    if sender.send(chunk[..count].to_vec()).is_err() {
                        return;
                    }
                }
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(_) => return,
            }
        }
    }
}

/// The thread that writes: one frame at a time, so that a terminal that takes
/// no bytes delays drawing only (TERM-32).
pub(super) struct Output {
    frames: std::sync::mpsc::Sender<Vec<u8>>,
    /// One message for each frame that was written, whether it went well.
    pub(super) written: mpsc::UnboundedReceiver<io::Result<()>>,
    waiting: usize,
}

impl Output {
    /// Starts writing to the terminal.
    pub(super) fn start() -> io::Result<Output> {
        let (frames, queue) = std::sync::mpsc::channel::<Vec<u8>>();
        let (done, written) = mpsc::unbounded_channel();
        let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        std::thread::Builder::new().name("screen".to_owned()).spawn(move || {
            for frame in queue {
                let result = stdout.write_all(&frame);
                if done.send(result).is_err() {
                    return;
                }
            }
        })?;
        Ok(Output { frames, written, waiting: 0 })
    }

    /// Whether the last frame is still being written.
    pub(super) fn is_busy(&self) -> bool {
        self.waiting > 0
    }

    /// Writes bytes behind what is being written.
    pub(super) fn write(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() && self.frames.send(bytes).is_ok() {
            self.waiting += 1;
        }
    }

    /// One frame was written.
    pub(super) fn was_written(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// Waits until everything is written, at most for a while.
    pub(super) async fn drain(&mut self) {
        let limit = std::time::Duration::from_millis(1_000);
        let all = async {
            while self.waiting > 0 && self.written.recv().await.is_some() {
                self.waiting -= 1;
            }
        };
        let _ = tokio::time::timeout(limit, all).await;
    }
}
