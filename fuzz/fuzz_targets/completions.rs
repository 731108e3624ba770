//! A response of the OpenAI Chat Completions format. What must hold is in `checks`.

#![no_main]
#![expect(dead_code, reason = "each target uses its part of the checks")]

#[path = "../checks/model.rs"]
mod checks;

use crew_base::model::Api;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| checks::response(Api::OpenaiCompletions, data));
