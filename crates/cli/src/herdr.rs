//! Tells the Herdr sidebar how many subagents are at work (`crew.md` 17).
//!
//! Owns the count and the one request that is on its way. Sidebar metadata
//! only: must never report an agent's lifecycle or a session's identity, never
//! fail aloud, and never be waited for longer than a moment. Outside of Herdr
//! there is no value of this type.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use crew_base::id::SessionId;
use crew_engine::api::{CrewUpdate, Status, UpdateKind};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::config::Environment;

/// No other integration uses it (HERDR-9).
const SOURCE: &str = "crew:subagents";
/// Between two reports of the same count (HERDR-5, OP-3).
const RENEW_EVERY: Duration = Duration::from_secs(30);
/// For one report, and for what is left to say at the end (HERDR-8).
const REPORT_MAX: Duration = Duration::from_millis(500);
/// More of an answer is not read.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Where reports go (HERDR-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pane {
    /// The pane this program runs in.
    id: String,
    /// The socket of the server.
    socket: PathBuf,
}

impl Pane {
    /// The pane that the environment names; `None` outside of Herdr.
    pub(crate) fn of(environment: &Environment) -> Option<Pane> {
        let is_on = environment.get("HERDR_ENV").is_some_and(|value| value == "1");
        let id = environment.get("HERDR_PANE_ID").filter(|_| is_on)?;
        let socket = PathBuf::from(environment.get("HERDR_SOCKET_PATH")?);
        Some(Pane { id, socket })
    }

    /// One request (HERDR-9).
    fn request(&self, seq: u64, count: usize) -> Value {
        let text = match count {
            0 => Value::Null,
            1 => json!("1 subagent"),
            _ => json!(format!("{count} subagents")),
        };
        json!({
            "id": format!("{SOURCE}:{seq}"),
            "method": "pane.report_metadata",
            "params": {
                "pane_id": self.id, "source": SOURCE, "seq": seq, "tokens": {"crew": text},
            },
        })
    }

    /// Says it and waits for the answer, which changes nothing; silent when
    /// nobody listens (HERDR-8).
    async fn report(&self, seq: u64, count: usize) {
        let line = format!("{}\n", self.request(seq, count));
        let exchange = async {
            let mut stream = UnixStream::connect(&self.socket).await?;
            stream.write_all(line.as_bytes()).await?;
            let mut answer = stream.take(ANSWER_BYTES_MAX);
            let mut piece = [0; 1024];
            loop {
                let read = answer.read(&mut piece).await?;
                if read == 0 || piece[..read].contains(&b'\n') {
                    return std::io::Result::Ok(());
                }
            }
        };
        let _ = timeout(REPORT_MAX, exchange).await;
    }
}

/// Which subagents are at work, of all owners of the process (HERDR-2).
#[derive(Debug, Default)]
struct AtWork(BTreeSet<SessionId>);

impl AtWork {
    /// The count after one update.
    fn take(&mut self, update: &CrewUpdate) -> usize {
        let is_gone = matches!(update.kind, UpdateKind::Closed);
        if update.status == Status::Running && !is_gone {
            self.0.insert(update.session.clone());
        } else {
            self.0.remove(&update.session);
        }
        self.0.len()
    }
}

/// Reports until it is finished or dropped.
pub(crate) struct Herdr {
    at_work: AtWork,
    /// Holds the newest count only (HERDR-4).
    count: watch::Sender<usize>,
    reports: JoinHandle<()>,
}

impl Herdr {
    /// Starts reporting; says nothing while nobody is at work. Sequence numbers
    /// go on from those of an earlier program in the same pane, because they
    /// begin with milliseconds since 1970.
    pub(crate) fn start(pane: Pane, first_seq: u64) -> Herdr {
        let (count, counts) = watch::channel(0);
        let reports = tokio::spawn(report_all(pane, first_seq, counts));
        Herdr { at_work: AtWork::default(), count, reports }
    }

    /// Takes what happened to one subagent.
    pub(crate) fn take(&mut self, update: &CrewUpdate) {
        let count = self.at_work.take(update);
        self.count.send_if_modified(|known| std::mem::replace(known, count) != count);
    }

    /// Clears what was reported, within a moment (HERDR-7).
    pub(crate) async fn finish(self) {
        drop(self.count);
        let mut reports = self.reports;
        if timeout(REPORT_MAX, &mut reports).await.is_err() {
            reports.abort();
        }
    }
}

/// One report after the other; while one is on its way only the newest count
/// is remembered.
async fn report_all(pane: Pane, first_seq: u64, mut counts: watch::Receiver<usize>) {
    let (mut seq, mut said) = (first_seq, 0);
    let mut renew_at = None;
    loop {
        let has_ended = counts.has_changed().is_err();
        let count = if has_ended { 0 } else { *counts.borrow_and_update() };
        let is_due = renew_at.is_some_and(|at| Instant::now() >= at) && !has_ended;
        if count != said || is_due {
            pane.report(seq, count).await;
            (seq, said) = (seq + 1, count);
            renew_at = (count > 0).then(|| Instant::now() + RENEW_EVERY);
            continue;
        }
        if has_ended {
            return;
        }
        tokio::select! {
            _ = counts.changed() => {}
            () = tokio::time::sleep_until(renew_at.unwrap_or_else(Instant::now)),
                if renew_at.is_some() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncBufReadExt, BufReader};
    use tokio::net::UnixListener;

    /// A server that follows the public schema: one line in, one line back.
    struct Server {
        listener: UnixListener,
        pane: Pane,
        _folder: tempfile::TempDir,
    }

    impl Server {
        fn start() -> Server {
            let folder = tempfile::tempdir().unwrap();
            let socket = folder.path().join("herdr.sock");
            let listener = UnixListener::bind(&socket).unwrap();
            Server { listener, pane: Pane { id: "w1:p2".into(), socket }, _folder: folder }
        }

        /// The next request, and its connection, still to be answered.
        async fn hear(&self) -> (Value, BufReader<UnixStream>) {
            let (stream, _) = self.listener.accept().await.unwrap();
            let (mut stream, mut line) = (BufReader::new(stream), String::new());
            stream.read_line(&mut line).await.unwrap();
            (serde_json::from_str(&line).unwrap(), stream)
        }

        /// The next request, answered at once: its token.
        async fn answer(&self) -> Value {
            let (request, stream) = self.hear().await;
            reply(&request, stream).await;
            token(&request)
        }

        /// Nobody wants to say anything for this long.
        async fn is_left_alone(&self, time: Duration) -> bool {
            timeout(time, self.listener.accept()).await.is_err()
        }
    }

    async fn reply(request: &Value, mut stream: BufReader<UnixStream>) {
        let line = format!("{}\n", json!({"id": request["id"], "result": {"type": "ok"}}));
        stream.write_all(line.as_bytes()).await.unwrap();
    }

    fn token(request: &Value) -> Value {
        request["params"]["tokens"]["crew"].clone()
    }

    fn update(owner: &str, child: &str, status: Status, kind: UpdateKind) -> CrewUpdate {
        CrewUpdate {
            owner: owner.into(),
            session: child.into(),
            subagent: "scout-1".into(),
            definition: "scout".into(),
            brief: "look".into(),
            model: None,
            status,
            kind,
        }
    }

    fn spawned(child: &str) -> CrewUpdate {
        update("A", child, Status::Running, UpdateKind::Spawned)
    }

    fn environment(values: &[(&str, &str)]) -> Environment {
        Environment::of(values.iter().map(|(name, value)| ((*name).into(), (*value).into())))
    }

    // HERDR-1, row 96: without a pane nothing is made that could report.
    #[test]
    fn there_is_no_reporting_outside_of_herdr() {
        let all = [("HERDR_ENV", "1"), ("HERDR_PANE_ID", "w1:p2"), ("HERDR_SOCKET_PATH", "/s")];
        let pane = Pane { id: "w1:p2".into(), socket: "/s".into() };
        assert_eq!(Pane::of(&environment(&all)), Some(pane));
        for missing in 0..all.len() {
            let rest: Vec<_> =
                (0..all.len()).filter(|at| *at != missing).map(|at| all[at]).collect();
            assert_eq!(Pane::of(&environment(&rest)), None, "{rest:?}");
        }
        for (name, value) in
            [("HERDR_ENV", "true"), ("HERDR_PANE_ID", ""), ("HERDR_SOCKET_PATH", "")]
        {
            let mut changed = all;
            changed.iter_mut().filter(|(known, _)| *known == name).for_each(|pair| pair.1 = value);
            assert_eq!(Pane::of(&environment(&changed)), None, "{name}");
        }
    }

    // HERDR-2: of all owners, and only what is in flight.
    #[test]
    fn those_that_wait_for_their_owner_do_not_count() {
        let mut at_work = AtWork::default();
        let settled = |status| {
            let usage = crew_base::message::Usage::default();
            update("A", "c1", status, UpdateKind::Settled { text: String::new(), usage })
        };
        assert_eq!(at_work.take(&spawned("c1")), 1);
        assert_eq!(at_work.take(&update("B", "c2", Status::Running, UpdateKind::Spawned)), 2);
        assert_eq!(at_work.take(&settled(Status::NeedsInput)), 1);
        assert_eq!(at_work.take(&update("A", "c1", Status::Running, UpdateKind::Responded)), 2);
        assert_eq!(at_work.take(&settled(Status::Completed)), 1);
        assert_eq!(at_work.take(&update("A", "c1", Status::Completed, UpdateKind::Closed)), 1);
        assert_eq!(at_work.take(&update("B", "c2", Status::Aborted, UpdateKind::Closed)), 0);
    }

    // HERDR-3, HERDR-4, HERDR-9, row 97.
    #[tokio::test]
    async fn while_a_report_is_on_its_way_only_the_newest_count_is_kept() {
        let server = Server::start();
        let mut herdr = Herdr::start(server.pane.clone(), 70);
        herdr.take(&spawned("c1"));
        let (first, stream) = server.hear().await;
        let expected = json!({
            "id": "crew:subagents:70", "method": "pane.report_metadata",
            "params": {"pane_id": "w1:p2", "source": "crew:subagents", "seq": 70,
                       "tokens": {"crew": "1 subagent"}},
        });
        assert_eq!(first, expected);
        herdr.take(&spawned("c2"));
        herdr.take(&spawned("c3"));
        reply(&first, stream).await;
        let (second, stream) = server.hear().await;
        reply(&second, stream).await;
        assert_eq!((token(&second), &second["params"]["seq"]), (json!("3 subagents"), &json!(71)));
        assert!(server.is_left_alone(Duration::from_millis(50)).await);
    }

    // HERDR-5, HERDR-6.
    #[tokio::test(start_paused = true)]
    async fn a_count_is_renewed_until_it_is_zero() {
        let server = Server::start();
        let mut herdr = Herdr::start(server.pane.clone(), 1);
        herdr.take(&spawned("c1"));
        assert_eq!(server.answer().await, "1 subagent");
        let before = Instant::now();
        // The same count again is no news.
        herdr.take(&update("A", "c1", Status::Running, UpdateKind::Responded));
        assert_eq!(server.answer().await, "1 subagent");
        assert!(before.elapsed() >= RENEW_EVERY, "{:?}", before.elapsed());
        herdr.take(&update("A", "c1", Status::Aborted, UpdateKind::Closed));
        assert_eq!(server.answer().await, Value::Null);
        assert!(server.is_left_alone(RENEW_EVERY * 3).await);
    }

    // HERDR-7, row 98: the count that waits is replaced by one clear.
    #[tokio::test]
    async fn the_end_clears_once_and_says_nothing_else() {
        let server = Server::start();
        let mut herdr = Herdr::start(server.pane.clone(), 1);
        herdr.take(&spawned("c1"));
        let (first, stream) = server.hear().await;
        herdr.take(&spawned("c2"));
        let end = tokio::spawn(herdr.finish());
        reply(&first, stream).await;
        assert_eq!(server.answer().await, Value::Null);
        end.await.unwrap();
        assert!(server.is_left_alone(Duration::from_millis(50)).await);
        // What never said anything has nothing to clear.
        Herdr::start(server.pane.clone(), 1).finish().await;
        assert!(server.is_left_alone(Duration::from_millis(50)).await);
    }

    // HERDR-8: neither a socket that is not there nor one that never answers.
    #[tokio::test]
    async fn a_broken_server_costs_a_moment_at_the_end_and_no_more() {
        let server = Server::start();
        let nowhere = Pane { socket: "/nonexistent/herdr.sock".into(), ..server.pane.clone() };
        for pane in [server.pane.clone(), nowhere] {
            let mut herdr = Herdr::start(pane, 1);
            herdr.take(&spawned("c1"));
            tokio::task::yield_now().await;
            let before = Instant::now();
            herdr.finish().await;
            assert!(before.elapsed() < REPORT_MAX * 2, "{:?}", before.elapsed());
        }
    }
}
