//! No command outlives a host, however that ends (`product.md` P-14b,
//! `host.md` 4.3.8, C056).

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crew_base::id::Ids;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::Test;
use crate::processes::{marked, within};

pub(crate) const TESTS: [Test; 7] = [
    ("a_killed_host_leaves_no_command_of_any_kind", a_killed_host_leaves_no_command_of_any_kind),
    ("a_host_killed_around_the_start_leaves_none", a_host_killed_around_the_start_leaves_none),
    ("signals_for_the_host_do_not_end_the_helper", signals_for_the_host_do_not_end_the_helper),
    ("the_helper_is_gone_when_the_host_ended", the_helper_is_gone_when_the_host_ended),
    ("the_helper_holds_no_stream_of_the_host", the_helper_holds_no_stream_of_the_host),
    ("the_helper_is_no_command_of_an_outer_host", the_helper_is_no_command_of_an_outer_host),
    ("a_helper_that_was_killed_is_replaced", a_helper_that_was_killed_is_replaced),
];

const LIMIT: Duration = Duration::from_secs(3);

/// A host in a process group of its own.
struct Host {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    marker: String,
}

impl Host {
    fn new(marker_variable: Option<&str>) -> Host {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("host").stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        match marker_variable {
            Some(value) => command.env("CREW_COMMAND", value),
            None => command.env_remove("CREW_COMMAND"),
        };
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut host = Host { process, input, output, marker: String::new() };
        host.marker = host.line();
        host
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
        assert_eq!(self.line(), "done");
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    fn helper(&self) -> Pid {
        let helper = helper_of(self.process.id()).expect("the helper runs");
        Pid::from_raw(helper).unwrap()
    }

    fn kill(&mut self) {
        kill_process(self.pid(), Signal::KILL).unwrap();
        self.process.wait().unwrap();
    }

    fn has_left_nothing(&self) -> bool {
        within(LIMIT, || marked(&self.marker) == 0)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The process id of the helper of a host.
pub(crate) fn helper_of(host: u32) -> Option<i32> {
    let is_helper = |pid: &i32| {
        let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace());
        let parent = fields.and_then(|mut fields| fields.nth(1)?.parse().ok());
        words.contains(crew_runtime::guard::ARGUMENT) && parent == Some(host)
    };
    let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).find(is_helper)
}

fn lives(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

fn a_killed_host_leaves_no_command_of_any_kind() {
    let check = |command: &str, processes: usize| {
        let mut host = Host::new(None);
        host.say(&format!("start {command}"));
        let marker = host.marker.clone();
        let all_there = within(Duration::from_secs(10), || marked(&marker) == processes);
        assert!(all_there, "{command}: {}", marked(&marker));
        let helper = host.helper();
        let begun = Instant::now();
        host.kill();
        assert!(host.has_left_nothing(), "{command}");
        assert!(within(LIMIT, || !lives(helper)), "{command}");
        assert!(begun.elapsed() < LIMIT);
    };
    check("sleep 600", 1);
    check("sleep 600 & sleep 600 & sleep 600; true", 4);
    check("setsid sleep 600 & sleep 600; true", 3);
    // Job control gives each job a process group of its own.
    check("set -m; sleep 600 & sleep 600 & wait", 3);
    check("(sleep 600 &) ; while :; do sleep 0.01; done & wait", 4);
}

fn a_host_killed_around_the_start_leaves_none() {
    let mut ids = Ids::new(5);
    for _ in 0..10 {
        let mut host = Host::new(None);
        writeln!(host.input, "start sleep 600 & setsid sleep 600 & sleep 600").unwrap();
        std::thread::sleep(Duration::from_micros(ids.below(20_000)));
        host.kill();
        assert!(host.has_left_nothing());
    }
}

fn signals_for_the_host_do_not_end_the_helper() {
    // From the terminal, to the foreground process group.
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let mut host = Host::new(None);
        host.say("run sleep 600 &");
        assert_eq!(marked(&host.marker), 1);
        kill_process_group(host.pid(), signal).unwrap();
        host.process.wait().unwrap();
        assert!(host.has_left_nothing(), "{signal:?}");
    }
    // By name, as a session manager does.
    let mut host = Host::new(None);
    host.say("run sleep 600 &");
    let helper = host.helper();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        kill_process(helper, signal).unwrap();
    }
    host.kill();
    assert!(host.has_left_nothing());
    assert!(within(LIMIT, || !lives(helper)));
}

fn the_helper_is_gone_when_the_host_ended() {
    let mut host = Host::new(None);
    host.say("run sleep 600 &");
    let helper = host.helper();
    writeln!(host.input, "quit").unwrap();
    assert!(host.process.wait().unwrap().success());
    assert!(!lives(helper));
    assert_eq!(marked(&host.marker), 0);
}

fn the_helper_holds_no_stream_of_the_host() {
    let mut host = Host::new(None);
    host.say("run sleep 600 &");
    let helper = host.helper();
    // Whatever it held it would hold now.
    kill_process(helper, Signal::STOP).unwrap();
    host.kill();
    let (ended, has_ended) = channel();
    let output = host.process.stdout.take();
    assert!(output.is_none());
    let mut rest = Vec::new();
    std::thread::scope(|scope| {
        let output = &mut host.output;
        let rest = &mut rest;
        scope.spawn(move || ended.send(output.read_to_end(rest)).unwrap());
        let result = has_ended.recv_timeout(LIMIT);
        // In any case, so that a failure does not hang.
        kill_process(helper, Signal::CONT).unwrap();
        assert!(result.is_ok(), "somebody holds the output of the host open");
    });
    assert!(rest.is_empty());
    assert!(host.has_left_nothing());
}

fn the_helper_is_no_command_of_an_outer_host() {
    let host = Host::new(Some("0123.4567"));
    let helper = host.helper().as_raw_nonzero();
    let environment = fs::read(format!("/proc/{helper}/environ")).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains("CREW_COMMAND="));
}

fn a_helper_that_was_killed_is_replaced() {
    let mut host = Host::new(None);
    host.say("run sleep 600 &");
    let helper = host.helper();
    kill_process(helper, Signal::KILL).unwrap();
    host.say("run sleep 600 &");
    assert_ne!(host.helper(), helper);
    assert_eq!(marked(&host.marker), 2);
    host.kill();
    assert!(host.has_left_nothing());
}
