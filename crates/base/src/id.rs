//! Identifiers and the generator that makes them.
//!
//! Every id of the product comes from [`Ids`], which the engine seeds once, so
//! that a run can be replayed (`style.md` 3).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::time::Time;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps the text of an id.
            pub fn new(text: impl Into<Arc<str>>) -> $name {
                $name(text.into())
            }

            /// The text of the id.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> $name {
                $name::new(text)
            }
        }
    };
}

text_id! {
    /// A session: a UUIDv7 in lower case, or a custom id (`host.md` 2.1.4).
    SessionId
}
text_id! {
    /// An entry of a session file, unique in it (`host.md` 2.1.5).
    EntryId
}
text_id! {
    /// A subagent: `<definition>-<8 hex digits>` (`crew.md` LIFE-2).
    SubagentId
}
text_id! {
    /// A tool call, as the provider or the decoder named it.
    CallId
}

/// One piece of started work outside the engine: a stream, a tool, an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

/// Seeded source of ids and random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Ids {
    state: u64,
    runs: u64,
    last_session_ms: u64,
    session_counter: u16,
}

impl Ids {
    /// Starts a generator; equal seeds give equal ids.
    pub fn new(seed: u64) -> Ids {
        Ids { state: seed, runs: 0, last_session_ms: 0, session_counter: 0 }
    }

    /// The next 64 random bits.
    pub fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A random number below `bound`, zero when `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.random() % bound }
    }

    /// The next run id; never repeated by one generator.
    pub fn run(&mut self) -> RunId {
        self.runs += 1;
        RunId(self.runs)
    }

    /// A UUIDv7, monotonic within the process (`host.md` 2.1.4).
    pub fn session(&mut self, now: Time) -> SessionId {
        let ms = now.0.max(self.last_session_ms);
        if ms == self.last_session_ms {
            self.session_counter = self.session_counter.saturating_add(1).min(0x0FFF);
        } else {
            self.session_counter = (self.random() & 0x07FF) as u16;
        }
        self.last_session_ms = if self.session_counter == 0x0FFF { ms + 1 } else { ms };
        let tail = self.random();
        SessionId::new(format!(
            "{:08x}-{:04x}-7{:03x}-{:04x}-{:012x}",
            ms >> 16,
            ms & 0xFFFF,
            self.session_counter,
            0x8000 | (tail >> 48 & 0x3FFF),
            tail & 0xFFFF_FFFF_FFFF,
        ))
    }

    /// `n` random hex digits, at most 16.
    pub fn hex(&mut self, digits: usize) -> String {
        let text = format!("{:016x}", self.random());
        text[..digits.min(text.len())].to_owned()
    }

    /// An entry id that `taken` does not hold; it is added there.
    pub fn entry(&mut self, taken: &mut TakenEntryIds) -> EntryId {
        const TRIES_MAX: usize = 100;
        for _ in 0..TRIES_MAX {
            let number = (self.random() >> 32) as u32;
            if taken.numbers.insert(number) {
                return EntryId::new(format!("{number:08x}"));
            }
        }
        EntryId::new(format!("{}{}", self.hex(16), self.hex(16)))
    }
}

/// The eight-digit entry ids one session file already uses.
#[derive(Clone, Debug, Default)]
pub struct TakenEntryIds {
    numbers: BTreeSet<u32>,
}

impl TakenEntryIds {
    /// Marks an id as used; ids of another form cannot clash and are ignored.
    pub fn take(&mut self, id: &EntryId) {
        if id.as_str().len() == 8
            && let Ok(number) = u32::from_str_radix(id.as_str(), 16)
        {
            self.numbers.insert(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_version_seven_and_grow_within_one_millisecond() {
        let mut ids = Ids::new(7);
        let mut last = ids.session(Time(1_796_046_183_871));
        assert_eq!(&last.as_str()[14..15], "7");
        for _ in 0..5000 {
            let next = ids.session(Time(1_796_046_183_871));
            assert!(next > last, "{next} after {last}");
            assert_eq!(next.as_str().len(), 36);
            last = next;
        }
    }

    #[test]
    fn an_entry_id_is_never_given_twice() {
        let mut taken = TakenEntryIds::default();
        let first = Ids::new(1).entry(&mut taken);
        let second = Ids::new(1).entry(&mut taken);
        assert_ne!(first, second);
    }
}
