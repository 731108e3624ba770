//! Server-sent events, cut anywhere. What must hold is in `checks`.

#![no_main]
#![expect(dead_code, reason = "each target uses its part of the checks")]

#[path = "../checks/model.rs"]
mod checks;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| checks::sse(data));
