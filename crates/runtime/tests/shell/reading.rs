//! What stands in files is read beside the loop, as of the moment it was asked
//! for; moves in the tree read there too.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::pin::pin;
use std::process::Command as Process;
use std::task::{Context, Poll, Waker};

use crew_base::id::EntryId;
use crew_base::json::Raw;
use crew_engine::api::{BranchWish, Command, MoveEnd, Refusal, SessionUpdate, Update};
use crew_runtime::{Answer, Notice, Query, QueryError, State};

use crate::models::{Fake, last_of, text};
use crate::world::{Running, World};

async fn state(running: &Running) -> Box<State> {
    match running.handle.ask(&Running::owner(), Query::State).await {
        Ok(Answer::State(state)) => state,
        other => panic!("{other:?}"),
    }
}

async fn entries(running: &Running) -> Vec<Raw> {
    match running.handle.ask(&Running::owner(), Query::Entries { since: None }).await {
        Ok(Answer::Entries { entries, .. }) => entries,
        other => panic!("{other:?}"),
    }
}

/// The entry of a message of the person.
async fn said(running: &Running, text: &str) -> EntryId {
    let of = |entry: &Raw| {
        let value = entry.value();
        let is_it = value["message"]["content"][0]["text"] == text;
        is_it.then(|| EntryId::new(value["id"].as_str().unwrap()))
    };
    entries(running).await.iter().find_map(of).unwrap_or_else(|| panic!("nobody said {text}"))
}

/// A pipe in the place of the session's file: whoever opens it for reading waits
/// until this is dropped. The session goes on writing to its file.
struct Blocked(PathBuf);

impl Blocked {
    fn new(path: PathBuf) -> Blocked {
        fs::rename(&path, path.with_extension("aside")).unwrap();
        let made = Process::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        Blocked(path)
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // Without a reader that waits this fails; one will come.
        let only_write = || {
            let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
            fs::OpenOptions::new().write(true).custom_flags(flags).open(&self.0)
        };
        let begun = std::time::Instant::now();
        while only_write().is_err() && begun.elapsed() < std::time::Duration::from_secs(10) {
            std::thread::yield_now();
        }
        // Opened for both ends this never waits, and lets every reader go.
        let both = fs::OpenOptions::new().read(true).write(true).open(&self.0);
        let _ = fs::rename(self.0.with_extension("aside"), &self.0);
        drop(both);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loop_goes_on_while_a_file_is_read() {
    let world = World::new();
    let mut running = world.open(Fake::replies(|_| text("answered"))).await;
    running.prompt("one").await;
    running.until_rest().await;
    let path = state(&running).await.file.unwrap();
    let blocked = Blocked::new(path);
    let handle = running.handle.clone();
    let asking =
        tokio::spawn(
            async move { handle.ask(&Running::owner(), Query::Entries { since: None }).await },
        );
    // A whole run takes place meanwhile.
    running.prompt("two").await;
    running.until_rest().await;
    assert!(!asking.is_finished());
    assert_eq!(state(&running).await.messages, 5);
    // The reader is let go and finds no file.
    drop(blocked);
    assert!(matches!(asking.await.unwrap(), Err(QueryError::Store(_))));
    running.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_shows_the_moment_it_was_asked_for() {
    for in_memory in [false, true] {
        let mut world = World::new();
        world.in_memory = in_memory;
        let mut running = world.open(Fake::replies(|_| text("answered"))).await;
        running.prompt("one").await;
        running.until_rest().await;
        let before = entries(&running).await.len();
        let handle = running.handle.clone();
        let owner = Running::owner();
        let mut asking = pin!(handle.ask_in_place(&owner, Query::Entries { since: None }));
        // The question is sent with the first poll.
        let mut context = Context::from_waker(Waker::noop());
        let early = asking.as_mut().poll(&mut context);
        running.prompt("two").await;
        let (answer, place) = match early {
            Poll::Ready(answered) => answered,
            Poll::Pending => asking.await,
        };
        let Ok(Answer::Entries { entries: shown, leaf }) = answer else { panic!("{answer:?}") };
        assert_eq!(shown.len(), before);
        assert_eq!(leaf.unwrap().as_str(), shown.last().unwrap().value()["id"]);
        // All that came before the question has been taken by then.
        assert!(running.updates.has_reached(place));
        running.until_rest().await;
        assert!(entries(&running).await.len() > before);
        running.quit().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_has_its_place_behind_what_was_told_before() {
    let world = World::new();
    let mut running = world.open(Fake::replies(|_| text("answered"))).await;
    running.prompt("one").await;
    running.until_rest().await;
    let named = Command::Control(
        Running::owner(),
        crew_engine::api::Control::Name(Some("later".to_owned())),
    );
    running.handle.send(named);
    let (_, place) = running.handle.ask_in_place(&Running::owner(), Query::Tree).await;
    assert!(!running.updates.has_reached(place));
    let mut names = 0;
    while !running.updates.has_reached(place) {
        let notice = running.next().await.unwrap();
        names += usize::from(format!("{notice:?}").contains("SessionInfoChanged"));
    }
    assert_eq!(names, 1);
    running.quit().await;
}

/// Goes to an entry and gives the end that was told.
async fn go(
    running: &mut Running,
    to: EntryId,
    summary: Option<BranchWish>,
) -> (Result<(), Refusal>, MoveEnd) {
    let session = Running::owner();
    let command = Command::Navigate { session, to, summary, label: None };
    let sent = running.handle.send(command);
    let end = running
        .until_update(|update| {
            let SessionUpdate::MoveEnd(end) = update else { return None };
            Some(end.clone())
        })
        .await;
    let answer = running
        .until(|notice| {
            let Notice::Update(Update::Answered { command, result }) = notice else { return None };
            (*command == sent).then(|| result.clone())
        })
        .await;
    (answer, end)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_reads_the_file_and_the_next_request_holds_the_other_branch() {
    // host.md 2.8.2, 2.8.3
    let world = World::new();
    let model = Fake::replies(|asked| {
        let is_summary = last_of(&asked.request).contains("<conversation>");
        text(if is_summary { "NOTES" } else { "answered" })
    });
    let mut running = world.open(model.clone()).await;
    for prompt in ["first way", "second way"] {
        running.prompt(prompt).await;
        running.until_rest().await;
    }
    let second = said(&running, "second way").await;
    let (answer, end) = go(&mut running, second, Some(BranchWish::default())).await;
    assert_eq!(answer, Ok(()));
    let MoveEnd::Moved(moved) = end else { panic!("{end:?}") };
    assert_eq!(moved.draft.as_deref(), Some("second way"));
    // What was left is summarised: the answer, not the message written anew.
    assert!(last_of(&model.asked()[2]).contains("Assistant: answered"));
    running.prompt("third way").await;
    running.until_rest().await;
    let last = format!("{:?}", model.asked().last().unwrap());
    assert!(last.contains("NOTES") && last.contains("first way"), "{last}");
    assert!(!last.contains("second way"), "{last}");
    let nowhere = go(&mut running, EntryId::new("nowhere"), None).await;
    assert!(matches!(nowhere, (Err(Refusal::MoveFailed(_)), MoveEnd::Failed(_))), "{nowhere:?}");
    running.quit().await;
}
