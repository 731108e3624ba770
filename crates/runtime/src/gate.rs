//! Back-pressure: when streams are not read (`host.md` 3.1.9, 7.1.5).
//!
//! A slow face stops the streams of the attached session, never the loop, its
//! commands or the children; a slow loop stops every stream that is ahead of
//! it. A stream that is not polled leaves its bytes in the socket. Must never
//! drop or reorder anything.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crew_base::id::SessionId;
use crew_base::limits::{FACE_NOTICES_MAX, FACE_NOTICES_RESUME, STREAM_BATCHES_MAX};

/// A place in the order of notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u64);

/// Counts what waits for the face and stops streams when it is too much.
#[derive(Default)]
pub(crate) struct Gate {
    waiting: AtomicUsize,
    /// Notices ever told, and taken.
    told: AtomicU64,
    taken: AtomicU64,
    /// Mirror of the state, so that an open gate costs one load.
    closed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// The face asked never to be waited for, or is gone.
    loose: bool,
    attached: Option<SessionId>,
    stopped: Vec<Waker>,
}

impl Gate {
    /// One more notice waits.
    pub(crate) fn told(&self) {
        self.told.fetch_add(1, Ordering::SeqCst);
        if self.waiting.fetch_add(1, Ordering::SeqCst) + 1 < FACE_NOTICES_MAX {
            return;
        }
        let mut state = self.lock();
        // Counted again, because the face may have read all of it meanwhile.
        if !state.loose && self.waiting.load(Ordering::SeqCst) >= FACE_NOTICES_MAX {
            self.set(&mut state, true);
        }
    }

    /// The face took one. Invariant: the one take that reaches the lower bound
    /// always comes here with the lock, so that no closing is missed.
    pub(crate) fn taken(&self) {
        self.taken.fetch_add(1, Ordering::SeqCst);
        if self.waiting.fetch_sub(1, Ordering::SeqCst) == FACE_NOTICES_RESUME + 1 {
            self.set(&mut self.lock(), false);
        }
    }

    /// The place between what was told and what will be.
    pub(crate) fn place(&self) -> Place {
        Place(self.told.load(Ordering::SeqCst))
    }

    /// The place behind what the face has taken.
    pub(crate) fn reached(&self) -> Place {
        Place(self.taken.load(Ordering::SeqCst))
    }

    /// Whether the face has taken all that was told before a place.
    pub(crate) fn has_reached(&self, place: Place) -> bool {
        self.taken.load(Ordering::SeqCst) >= place.0
    }

    /// Stops no stream any more.
    pub(crate) fn loosen(&self) {
        let mut state = self.lock();
        state.loose = true;
        self.set(&mut state, false);
    }

    /// Another session is shown; what the former one held back goes on.
    pub(crate) fn attach(&self, session: Option<&SessionId>) {
        let mut state = self.lock();
        if state.attached.as_ref() != session {
            state.attached = session.cloned();
            state.stopped.drain(..).for_each(Waker::wake);
        }
    }

    /// Whether a session is to produce nothing now.
    pub(crate) fn stops(&self, session: &SessionId) -> bool {
        self.closed.load(Ordering::SeqCst) && self.lock().stops(session)
    }

    fn stops_with(&self, session: &SessionId, waker: &Waker) -> bool {
        if !self.closed.load(Ordering::SeqCst) {
            return false;
        }
        let mut state = self.lock();
        let stops = state.stops(session);
        if stops && !state.stopped.iter().any(|known| known.will_wake(waker)) {
            state.stopped.push(waker.clone());
        }
        stops
    }

    fn set(&self, state: &mut State, closed: bool) {
        state.closed = closed;
        self.closed.store(closed, Ordering::SeqCst);
        if !closed {
            state.stopped.drain(..).for_each(Waker::wake);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn stops(&self, session: &SessionId) -> bool {
        self.closed && self.attached.as_ref() == Some(session)
    }
}

/// Counts the batches of one stream that the loop has not taken.
#[derive(Default)]
pub(crate) struct Lane {
    waiting: AtomicUsize,
    stopped: Mutex<Option<Waker>>,
}

impl Lane {
    /// One more batch waits.
    pub(crate) fn sent(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    /// The loop took one.
    pub(crate) fn taken(&self) {
        if self.waiting.fetch_sub(1, Ordering::SeqCst) == STREAM_BATCHES_MAX
            && let Some(waker) = self.lock().take()
        {
            waker.wake();
        }
    }

    fn stops_with(&self, waker: &Waker) -> bool {
        let is_full = || self.waiting.load(Ordering::SeqCst) >= STREAM_BATCHES_MAX;
        if !is_full() {
            return false;
        }
        *self.lock() = Some(waker.clone());
        // Once more: the last take may have come before the waker was there.
        is_full()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that is polled only while nothing stops it.
pub(crate) struct Gated {
    pub(crate) stream: Pin<Box<dyn Future<Output = ()> + Send>>,
    pub(crate) session: SessionId,
    pub(crate) gate: Arc<Gate>,
    pub(crate) lane: Arc<Lane>,
}

impl Future for Gated {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker();
        if self.gate.stops_with(&self.session, waker) || self.lane.stops_with(waker) {
            return Poll::Pending;
        }
        self.stream.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use std::task::Wake;

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    struct Polled(Arc<AtomicU32>);

    impl Future for Polled {
        type Output = ();

        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Poll::Pending
        }
    }

    struct Setup {
        gate: Arc<Gate>,
        lane: Arc<Lane>,
        polls: Arc<AtomicU32>,
        woken: Arc<Woken>,
        gated: Gated,
    }

    impl Setup {
        fn new(session: &str) -> Setup {
            let (gate, lane): (Arc<Gate>, Arc<Lane>) = Default::default();
            let polls = Arc::new(AtomicU32::new(0));
            let gated = Gated {
                stream: Box::pin(Polled(Arc::clone(&polls))),
                session: session.into(),
                gate: Arc::clone(&gate),
                lane: Arc::clone(&lane),
            };
            gate.attach(Some(&"owner".into()));
            Setup { gate, lane, polls, woken: Arc::default(), gated }
        }

        /// Whether the stream was polled.
        fn poll(&mut self) -> bool {
            let before = self.polls.load(Ordering::SeqCst);
            let waker = Waker::from(Arc::clone(&self.woken));
            let _ = Pin::new(&mut self.gated).poll(&mut Context::from_waker(&waker));
            self.polls.load(Ordering::SeqCst) > before
        }

        fn woken(&self) -> u32 {
            self.woken.0.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn a_full_face_stops_the_attached_session_until_it_has_drained() {
        // host.md 7.1.5
        let mut owner = Setup::new("owner");
        (1..FACE_NOTICES_MAX).for_each(|_| owner.gate.told());
        assert!(owner.poll());
        owner.gate.told();
        assert!(!owner.poll());
        for _ in FACE_NOTICES_RESUME + 1..FACE_NOTICES_MAX {
            owner.gate.taken();
        }
        assert!(!owner.poll());
        assert_eq!(owner.woken(), 0);
        owner.gate.taken();
        assert_eq!(owner.woken(), 1);
        assert!(owner.poll());
    }

    #[test]
    fn children_go_on_and_a_detached_session_too() {
        let mut child = Setup::new("child");
        (0..FACE_NOTICES_MAX).for_each(|_| child.gate.told());
        assert!(child.poll());
        let mut owner = Setup::new("owner");
        (0..FACE_NOTICES_MAX).for_each(|_| owner.gate.told());
        assert!(!owner.poll());
        owner.gate.attach(None);
        assert_eq!(owner.woken(), 1);
        assert!(owner.poll());
    }

    #[test]
    fn a_face_that_slows_nothing_never_closes_the_gate() {
        // terminal.md TERM-32
        let mut owner = Setup::new("owner");
        (0..FACE_NOTICES_MAX).for_each(|_| owner.gate.told());
        assert!(!owner.poll());
        owner.gate.loosen();
        assert_eq!(owner.woken(), 1);
        (0..FACE_NOTICES_MAX).for_each(|_| owner.gate.told());
        assert!(owner.poll());
    }

    #[test]
    fn a_stream_waits_for_a_loop_that_is_behind() {
        let mut child = Setup::new("child");
        (0..STREAM_BATCHES_MAX).for_each(|_| child.lane.sent());
        assert!(!child.poll());
        child.lane.taken();
        assert_eq!(child.woken(), 1);
        assert!(child.poll());
    }
}
