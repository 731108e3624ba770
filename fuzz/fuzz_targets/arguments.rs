//! The arguments of a tool call as a model wrote them. What must hold is in `checks`.

#![no_main]
#![expect(dead_code, reason = "each target uses its part of the checks")]

#[path = "../checks/model.rs"]
mod checks;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| checks::arguments(data));
