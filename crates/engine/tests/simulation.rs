//! The seeded simulation (`style.md` 9) at a size for every test run; `cargo
//! xtask sim --seeds N` runs more of it, `--seed S` replays one.

use crew_testkit::sim;

/// Seeds in each thread, and threads.
const SEEDS: u64 = 400;
const THREADS: u64 = 4;

#[test]
fn every_interleaving_keeps_the_invariants() {
    let mut total = sim::Summary::default();
    std::thread::scope(|scope| {
        let start = |thread: u64| scope.spawn(move || run(thread * SEEDS..(thread + 1) * SEEDS));
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        for thread in threads {
            total.add(&thread.join().expect("the simulation does not panic"));
        }
    });
    // That it did what it is for: work, faults and ends in the middle.
    assert!(total.spawned > 4 * SEEDS && total.delivered > 4 * SEEDS, "{total}");
    assert!(total.faults > SEEDS && total.quits > SEEDS / 2, "{total}");
    assert!(total.moves > SEEDS, "{total}");
    assert!(total.task_children > 2 * SEEDS && total.task_results > 2 * SEEDS, "{total}");
}

/// Seeds that once showed a fault of the product or of the simulator.
#[test]
fn seeds_that_failed_before_stay_clean() {
    for seed in [5, 138, 2438, 4285, 9362, 11_281, 24_116, 96_192] {
        run(seed..seed + 1);
    }
}

fn run(seeds: std::ops::Range<u64>) -> sim::Summary {
    let mut total = sim::Summary::default();
    for seed in seeds {
        match sim::run(seed) {
            Ok(summary) => total.add(&summary),
            Err(failure) => panic!("seed {seed}: {failure}"),
        }
    }
    total
}
