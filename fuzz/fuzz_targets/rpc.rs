//! A line of an RPC client. What must hold is in `checks`.

#![no_main]

#[path = "../checks/rpc.rs"]
mod checks;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| checks::line(data));
