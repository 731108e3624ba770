//! The checks of `host.md` 10, by number.
//!
//! Owns the table. Read `files` for sessions on disk, `equal` for what both
//! make of one file, `client` for Pi's own client, `running` for runs that go
//! wrong and `config` for settings and credentials.

mod client;
mod config;
mod equal;
mod files;
mod rich;
mod running;

use super::Check;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        number: "10.1",
        title: "Pi continues a session of ours",
        run: files::pi_continues_ours,
    },
    Check {
        number: "10.2",
        title: "we continue a session of Pi, a rich one too",
        run: files::ours_continues_pi,
    },
    Check {
        number: "10.3",
        title: "both see the same conversation in one file and send it alike",
        run: equal::same_conversation,
    },
    Check {
        number: "10.4",
        title: "a file that goes back and forth keeps its lines",
        run: files::round_trip,
    },
    Check {
        number: "10.5",
        title: "data that a program does not know survives",
        run: files::unknown_data,
    },
    Check { number: "10.6", title: "Pi exports a session of ours", run: files::export },
    Check { number: "10.7", title: "Pi's client drives us", run: client::drives_us },
    Check {
        number: "10.8",
        title: "a plain reply gives the same events",
        run: client::same_events,
    },
    Check { number: "10.9", title: "a retry looks the same", run: running::retry },
    Check { number: "10.10", title: "an abort looks the same", run: running::abort },
    Check { number: "10.11", title: "lines are framed alike", run: running::framing },
    Check { number: "10.12", title: "settings of both survive", run: config::settings },
    Check { number: "10.13", title: "a stored credential serves both", run: config::credential },
    Check { number: "10.14", title: "Pi opens a session with subagents", run: files::subagents },
];
