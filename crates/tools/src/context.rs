//! What a call may use, and the trait of a tool. Owns no behaviour.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use crew_base::id::SessionId;
use crew_base::tool::{ToolDefinition, ToolOutcome, ToolProgress};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::host::Host;

/// Takes what a running tool shows so far; called from any thread.
pub type ProgressSink = Arc<dyn Fn(ToolProgress) + Send + Sync>;

/// A running call; yields exactly one outcome.
pub type ToolFuture = Pin<Box<dyn Future<Output = ToolOutcome> + Send>>;

/// What one call may use.
#[derive(Clone)]
pub struct ToolContext {
    /// Working directory of the session, absolute.
    pub cwd: PathBuf,
    /// For a leading `~`.
    pub home: Option<PathBuf>,
    /// The session that calls.
    pub session: SessionId,
    /// Variables of `host.md` 1.2.6 for commands.
    pub env: Vec<(String, String)>,
    /// How commands are started.
    pub shell: ShellConfig,
    /// Whether the model takes images (`host.md` 4.2.7).
    pub images: bool,
    /// Folders with results of `task` children, in the order in which an
    /// `agent://` address is looked up (`task.md` ART-9).
    pub results: Vec<PathBuf>,
    /// Ends the call.
    pub cancel: CancellationToken,
    /// Where partial results go.
    pub progress: ProgressSink,
    /// The one of the process.
    pub host: Arc<Host>,
}

/// How commands are started (`host.md` 4.3.1).
#[derive(Clone, Debug, Default)]
pub struct ShellConfig {
    /// Setting `shellPath`.
    pub path: Option<PathBuf>,
    /// Setting `shellCommandPrefix`.
    pub prefix: Option<String>,
    /// `<agent-dir>/bin`, put in front of the search path.
    pub bin_dir: Option<PathBuf>,
}

/// One tool.
pub trait Tool: Send + Sync {
    /// Name, description and schema.
    fn definition(&self) -> &ToolDefinition;

    /// Mends known slips of models before validation (`host.md` 4.4.1).
    fn repair(&self, arguments: Value) -> Value {
        arguments
    }

    /// Runs with arguments that fit the schema.
    fn run(&self, context: ToolContext, arguments: Value) -> ToolFuture;
}
