//! Files of the agent folder that both programs write: settings and
//! credentials (`host.md` 10.12, 10.13).

use serde_json::{Value, json};

use crate::interop::Setup;
use crate::interop::host::Host;
use crate::interop::log::difference;
use crate::interop::rpc::Rpc;
use crate::interop::world::World;
use crate::run::Outcome;

/// `host.md` 10.12.
pub(crate) fn settings(setup: &Setup) -> Outcome {
    let world = World::new(setup)?;
    let mut expected = world.read_json("agent/settings.json")?;
    expected["interopUnknown"] = json!({"kept": [1, null, "two"]});
    world.write_json("agent/settings.json", &expected)?;
    let mut ours = Rpc::start(&world, Host::Crew, &["--model", "fake/m1"])?;
    let mut theirs = Rpc::start(&world, Host::Pi, &["--model", "fake/m1"])?;
    // Both have read the file before either writes.
    ours.call(json!({"type": "get_state"}))?;
    theirs.call(json!({"type": "get_state"}))?;
    theirs.call(json!({"type": "set_steering_mode", "mode": "all"}))?;
    ours.call(json!({"type": "set_follow_up_mode", "mode": "all"}))?;
    ours.call(json!({"type": "set_auto_compaction", "enabled": false}))?;
    theirs.call(json!({"type": "set_auto_retry", "enabled": false}))?;
    ours.stop()?;
    theirs.stop()?;
    expected["steeringMode"] = json!("all");
    expected["followUpMode"] = json!("all");
    expected["compaction"]["enabled"] = json!(false);
    expected["retry"]["enabled"] = json!(false);
    let found = world.read_json("agent/settings.json")?;
    match difference(&found, &expected) {
        Some(found) => Err(format!("found (first) and expected (second): {found}")),
        None => Ok(()),
    }
}

/// `host.md` 10.13.
pub(crate) fn credential(setup: &Setup) -> Outcome {
    for host in Host::BOTH {
        let world = World::new(setup)?;
        let stored = json!({"fake": {"type": "api_key", "key": "!printf k2"}});
        world.write_json("agent/auth.json", &stored)?;
        set_private(&world)?;
        host.run(&world, &["-p", "--model", "fake/m1", "say hi"])?;
        let requests = world.server.take();
        let sent: Vec<Value> =
            requests.iter().map(|request| request.authorization.as_str().into()).collect();
        if sent != ["Bearer k2"] {
            return Err(format!("{} sent {}", host.name(), Value::from(sent)));
        }
        let kept = world.read_json("agent/auth.json")?;
        if kept != stored {
            return Err(format!("{} left {kept}", host.name()));
        }
        let mode = mode(&world)?;
        if mode != PRIVATE {
            return Err(format!("{} left the mode {mode:o}", host.name()));
        }
    }
    Ok(())
}

const PRIVATE: u32 = 0o600;

#[cfg(unix)]
fn set_private(world: &World) -> Outcome {
    use std::os::unix::fs::PermissionsExt as _;
    let permissions = std::fs::Permissions::from_mode(PRIVATE);
    std::fs::set_permissions(world.path("agent/auth.json"), permissions)
        .map_err(|error| format!("cannot set the mode: {error}"))
}

#[cfg(unix)]
fn mode(world: &World) -> Outcome<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    let read = std::fs::metadata(world.path("agent/auth.json"));
    let read = read.map_err(|error| format!("cannot read the mode: {error}"))?;
    Ok(read.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn set_private(_: &World) -> Outcome {
    Ok(())
}

#[cfg(not(unix))]
fn mode(_: &World) -> Outcome<u32> {
    Ok(PRIVATE)
}
