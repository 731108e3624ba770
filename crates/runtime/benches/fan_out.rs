//! How long a fan-out of children delays its owner (`product.md` 5); run with
//! `cargo bench -p crew-runtime`.
//!
//! The model answers at once, so the figures are the host's own time: from the
//! owner's last event with its spawns to the first poll of its next request,
//! and to the first requests of all children.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::unwrap_used, reason = "a bench stops when its world is broken")]
#![expect(dead_code, reason = "the world is made for tests")]

#[path = "../tests/support/models.rs"]
mod models;
#[path = "../tests/support/world.rs"]
mod world;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::models::{Fake, calls, report, spawn, text};
use crate::world::World;

const ROUNDS: usize = 15;

#[derive(Clone, Copy, Default)]
struct Times {
    asked: Option<Instant>,
    owner: Option<Instant>,
    children: usize,
    last_child: Option<Instant>,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(64)
        .enable_all()
        .build()
        .unwrap();
    println!("children  owner's next request (median, worst)  all children asked (median)");
    for children in [1, 100, 200] {
        let mut owner = Vec::new();
        let mut all = Vec::new();
        for _ in 0..ROUNDS {
            let (to_owner, to_all) = runtime.block_on(round(children));
            owner.push(to_owner);
            all.push(to_all);
        }
        owner.sort();
        all.sort();
        let (median, worst) = (owner[ROUNDS / 2], owner[ROUNDS - 1]);
        println!("{children:8}  {median:>12.2?} {worst:>12.2?} {:>24.2?}", all[ROUNDS / 2]);
    }
}

async fn round(children: usize) -> (Duration, Duration) {
    let world = World::new();
    world.define("one", "tools: read, bash, edit, write, grep\n");
    std::fs::write(world.cwd.join("AGENTS.md"), "A rule.\n".repeat(1000)).unwrap();
    let times: Arc<Mutex<Times>> = Arc::default();
    let noted = Arc::clone(&times);
    let model = Fake::new(move |asked, mut sink| {
        let noted = Arc::clone(&noted);
        Box::pin(async move {
            let now = Instant::now();
            match (asked.is_owner, asked.nth) {
                (true, 0) => {
                    let spawns: Vec<_> = (0..children).map(|_| spawn("one")).collect();
                    let reply = calls(&spawns);
                    noted.lock().unwrap().asked = Some(Instant::now());
                    sink(reply);
                }
                (true, 1) => {
                    noted.lock().unwrap().owner = Some(now);
                    sink(text("end"));
                }
                (true, _) => sink(text("end")),
                (false, _) => {
                    {
                        let mut noted = noted.lock().unwrap();
                        noted.children += 1;
                        noted.last_child = Some(now);
                    }
                    sink(calls(&[report("done")]));
                }
            }
        })
    });
    let mut running = world.open(model).await;
    running.prompt("go").await;
    running.until_rest().await;
    running.quit().await;
    let times = *times.lock().unwrap();
    assert_eq!(times.children, children);
    let asked = times.asked.unwrap();
    (times.owner.unwrap() - asked, times.last_child.unwrap() - asked)
}
