//! A session file. What must hold is in `checks`.

#![no_main]
#![expect(dead_code, reason = "each target uses its part of the checks")]

#[path = "../checks/store.rs"]
mod checks;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| checks::session(data));
