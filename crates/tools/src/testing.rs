//! A small world for the tests of this crate: a working directory, a folder
//! for full outputs, a host.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crew_base::json::Raw;
use crew_base::tool::{ToolOutcome, ToolProgress};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::context::{ShellConfig, ToolContext};
use crate::host::{GroupGuard, Host, HostConfig};
use crate::toolbox::Toolbox;

pub(crate) struct World {
    folder: tempfile::TempDir,
    pub(crate) host: Arc<Host>,
    pub(crate) cancel: CancellationToken,
    pub(crate) updates: Arc<Mutex<Vec<ToolProgress>>>,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(None)
    }

    pub(crate) fn guarded(guard: Arc<dyn GroupGuard>) -> World {
        World::with(Some(guard))
    }

    fn with(guard: Option<Arc<dyn GroupGuard>>) -> World {
        let folder = tempfile::tempdir().unwrap();
        for name in ["cwd", "tmp", "home"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let host = Host::new(HostConfig { tmp: folder.path().join("tmp"), guard });
        World { folder, host, cancel: CancellationToken::new(), updates: Arc::default() }
    }

    pub(crate) fn cwd(&self) -> PathBuf {
        fs::canonicalize(self.folder.path().join("cwd")).unwrap()
    }

    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.cwd().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.cwd().join(name)).unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub(crate) fn context(&self) -> ToolContext {
        let updates = Arc::clone(&self.updates);
        ToolContext {
            cwd: self.cwd(),
            home: Some(self.folder.path().join("home")),
            session: "s".into(),
            env: vec![("PI_SESSION_ID".to_owned(), "s".to_owned())],
            shell: ShellConfig::default(),
            results: Vec::new(),
            images: true,
            cancel: self.cancel.clone(),
            progress: Arc::new(move |update| updates.lock().unwrap().push(update)),
            host: Arc::clone(&self.host),
        }
    }

    pub(crate) async fn call(&self, name: &str, arguments: Value) -> ToolOutcome {
        self.call_in(self.context(), name, arguments).await
    }

    pub(crate) async fn call_in(
        &self,
        context: ToolContext,
        name: &str,
        arguments: Value,
    ) -> ToolOutcome {
        let arguments = Raw::of(&arguments);
        Toolbox::builtin().run(context, name, &arguments).await
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.host.kill_all();
    }
}
