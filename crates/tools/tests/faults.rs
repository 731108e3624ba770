//! Faults of tools that show from outside only: working directories, and
//! memory over many or huge outputs (`faults.md`; the table is in
//! `docs/testing.md`).

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crew_base::json::Raw;
use crew_base::tool::ToolOutcome;
use crew_tools::{Host, HostConfig, ShellConfig, ToolContext, Toolbox};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

struct World {
    folder: tempfile::TempDir,
    host: Arc<Host>,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        for name in ["owner", "child", "tmp"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let host = Host::new(HostConfig { tmp: folder.path().join("tmp"), guard: None });
        World { folder, host }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    async fn call(&self, cwd: &Path, name: &str, arguments: Value) -> ToolOutcome {
        let context = ToolContext {
            cwd: cwd.to_owned(),
            home: None,
            session: "child".into(),
            env: Vec::new(),
            shell: ShellConfig::default(),
            results: Vec::new(),
            images: false,
            cancel: CancellationToken::new(),
            progress: Arc::new(|_| {}),
            host: Arc::clone(&self.host),
        };
        Toolbox::builtin().run(context, name, &Raw::of(&arguments)).await
    }
}

/// Memory of this process now, and its highest so far.
fn memory_kb(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

// C140: a session with a directory of its own touches nothing of another's.
#[tokio::test]
async fn every_tool_works_in_the_directory_of_its_session() {
    let world = World::new();
    for side in ["owner", "child"] {
        fs::write(world.at(side).join("same.txt"), format!("text of the {side}\n")).unwrap();
    }
    let child = world.at("child");
    let text = async |name: &str, arguments: Value| {
        let outcome = world.call(&child, name, arguments).await;
        assert!(!outcome.is_error, "{name}: {}", outcome.joined_text());
        outcome.joined_text()
    };
    let shown = async |name: &str, arguments: Value| {
        let text = text(name, arguments).await;
        assert!(text.contains("child") && !text.contains("owner"), "{name}: {text}");
    };
    let absolute = child.join("same.txt");
    shown("read", json!({"path": "same.txt"})).await;
    shown("read", json!({"path": absolute})).await;
    shown("bash", json!({"command": "cat same.txt; pwd"})).await;
    shown("grep", json!({"pattern": "text of"})).await;
    shown("grep", json!({"pattern": "text of", "path": child})).await;
    for pattern in [json!({"pattern": "*.txt"}), json!({"pattern": "*.txt", "path": "."})] {
        assert_eq!(text("find", pattern).await.trim(), "same.txt");
    }
    assert_eq!(text("ls", json!({})).await.trim(), "same.txt");
    let edit =
        |path: Value| json!({"path": path, "edits": [{"oldText": "text", "newText": "Text"}]});
    text("edit", edit(json!("same.txt"))).await;
    text("bash", json!({"command": "sed -i s/Text/text/ same.txt"})).await;
    text("edit", edit(json!(absolute))).await;
    text("write", json!({"path": "sub/new.txt", "content": "x"})).await;
    assert_eq!(fs::read_to_string(&absolute).unwrap(), "Text of the child\n");
    assert!(child.join("sub/new.txt").exists());
    let owner: Vec<_> = fs::read_dir(world.at("owner")).unwrap().collect();
    assert_eq!(owner.len(), 1);
    let kept = fs::read_to_string(world.at("owner").join("same.txt")).unwrap();
    assert_eq!(kept, "text of the owner\n");
}

// C085, C086: one test, since both look at the memory of the whole process.
#[tokio::test]
async fn output_costs_no_memory_however_much_there_is() {
    let world = World::new();
    let owner = world.at("owner");
    let print = |megabytes: usize| json!({"command": format!("head -c {megabytes}M /dev/zero | tr '\\0' x")});
    for _ in 0..4 {
        world.call(&owner, "bash", print(1)).await;
    }
    let before = memory_kb("VmRSS:");
    for _ in 0..60 {
        let outcome = world.call(&owner, "bash", print(1)).await;
        assert!(outcome.joined_text().len() < 60_000);
    }
    let grown = memory_kb("VmRSS:").saturating_sub(before);
    assert!(grown < 50_000, "{grown} kB for 60 outputs of a megabyte");
    let before = memory_kb("VmHWM:");
    let outcome = world.call(&owner, "bash", print(96)).await;
    let grown = memory_kb("VmHWM:").saturating_sub(before);
    assert!(grown < 64_000, "{grown} kB for one output of 96 megabytes");
    let path = outcome.details.unwrap().value()["fullOutputPath"].as_str().unwrap().to_owned();
    assert_eq!(fs::metadata(path).unwrap().len(), 96 << 20);
}
