//! The `task` tool in a workspace: what a dispatch goes by, the tool as
//! sessions are offered it, and the sessions of its children (`task.md` 1.5,
//! SESS-1 to SESS-7, TASK-SPAWN-13).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crew_base::definition::Warning;
use crew_base::model::{ModelSpec, ThinkingLevel};
use crew_base::time::Time;
use crew_base::tool::ToolDefinition;
use crew_engine::Opened;
use crew_engine::api::Loaded;
use crew_engine::api::task::{
    Agent, Approval, BASH_TOOL, OpenTask, Setup, Spawns, Standing, TASK_TOOL, bash_definition,
    catalogue, definition, effort, is_offered, wait_definition,
};
use crew_model::select::{Query, ThinkingInputs, resolve_model, startup_thinking};
use crew_store::paths::{expand, project_dir};
use crew_store::session::log::{Plan, SessionLog};
use crew_store::settings::file::{SettingsFiles, settings_path};
use crew_store::settings::task::TaskSettings;
use crew_store::skills;

use super::prepare::PromptParts;
use super::selection::excluded;
use super::{Parent, Prepared, Scope, Workspace};
use crate::work::copies::Place;

/// The section of the child part (SESS-7).
const PART_SECTION: &str = "task-child";

impl Workspace {
    /// Settings, approval and agents of this moment, with warnings that were
    /// not told before. Nobody can be asked in a child (OBS-3).
    pub(crate) fn setup(&self, scope: &Scope, is_child: bool) -> (Setup, Vec<String>) {
        let (settings, warnings) = self.task_settings(&scope.project);
        let found = self.find_definitions(&scope.project);
        let TaskSettings { mut task, approval, .. } = settings;
        let limits = self.config.task_output;
        task.output_bytes_max = limits.bytes_max.unwrap_or(task.output_bytes_max);
        task.output_lines_max = limits.lines_max.unwrap_or(task.output_lines_max);
        let approval = Approval { can_ask: self.config.can_ask && !is_child, ..approval };
        let project = found.discovery.folders.first().filter(|folder| Path::new(folder).is_dir());
        let setup = Setup {
            settings: task,
            approval,
            agents: found.agents,
            project_agents: project.filter(|_| self.trusts(&scope.project)).cloned(),
            excluded_tools: excluded(&self.config.toolbox, &self.config.tools),
        };
        (setup, self.untold(warnings))
    }

    /// Where isolated copies are to lie, as set at this moment (OBS-13).
    pub(crate) fn copies_place(&self, scope: &Scope, marker: String) -> Place {
        let base = self.task_settings(&scope.project).0.worktree_base;
        let home = self.config.home.as_deref();
        Place {
            base: base.map(|base| expand(&base, home, &scope.project)),
            agent_dir: self.config.agent_dir.clone(),
            marker,
        }
    }

    fn task_settings(&self, project: &Path) -> (TaskSettings, Vec<Warning>) {
        let user = settings_path(&self.config.agent_dir);
        let shared = Some(settings_path(&project_dir(project)));
        let shared = shared.filter(|path| self.trusts(project) && path.exists());
        // What is wrong with a whole file was told at the start.
        SettingsFiles::load(&user, shared.as_deref()).0.task()
    }

    fn untold(&self, warnings: Vec<Warning>) -> Vec<String> {
        let Ok(mut told) = self.told.lock() else { return Vec::new() };
        let texts = warnings.into_iter().map(|w| format!("{}: {}", w.path, w.message));
        texts.filter(|text| told.insert(text.clone())).collect()
    }

    /// The tool for a session of that depth and policy; none where it may not
    /// delegate (DISP-1, MEET-1).
    pub(super) fn task_tool(
        &self,
        setup: &Setup,
        depth: u32,
        spawns: Option<Spawns>,
    ) -> Option<ToolDefinition> {
        let settings = &setup.settings;
        let standing =
            Standing { depth, spawns: spawns.unwrap_or_else(|| settings.spawns.clone()) };
        if !is_offered(&standing, settings) {
            return None;
        }
        Some(definition(settings, &described(setup, &standing.spawns)))
    }

    /// The tool for a crew child whose list names it: that is its permission,
    /// and `spawns` only narrows the agents (MEET-1).
    pub(super) fn crew_task_tool(&self, scope: &Scope, agent: &str) -> Option<ToolDefinition> {
        let (setup, _) = self.setup(scope, true);
        let named = self::agent(&setup, agent);
        let spawns = named.and_then(|agent| agent.spawns).unwrap_or(Spawns::All);
        self.task_tool(&setup, self.config.depth + 1, Some(spawns))
    }

    /// Prepares a child of a call. Its transcript lies where the call's lease
    /// is, also when the calling session is kept in memory (OBS-4, OBS-12).
    pub(super) fn task_child(
        &self,
        open: &OpenTask,
        parent: &Parent,
        now: Time,
    ) -> Result<Prepared, String> {
        let mut warnings = Vec::new();
        let chosen = self.task_model(open, &mut warnings)?;
        let parent_scope = &parent.scope;
        let cwd = open.cwd.as_ref().map_or_else(|| parent_scope.cwd.clone(), PathBuf::from);
        let (setup, told) = self.setup(parent_scope, true);
        warnings.extend(told);
        let scope = Scope {
            cwd,
            project: parent_scope.project.clone(),
            approval: Arc::new(setup.approval.clone()),
            resources: Arc::clone(&parent_scope.resources),
        };
        let session_parent = open.parent_file.as_deref().map(Path::new);
        let header = Self::header(&open.session, &scope.cwd, session_parent, now);
        let path = PathBuf::from(&open.file);
        let log = SessionLog::create(Plan { header, path: Some(path), lock: false });
        let tools = self.task_child_tools(open, &setup);
        let found = &scope.resources.skills;
        let (skills, unknown) = skills::for_child(found, open.definition.skills.as_deref());
        let lacks = |name| format!("{}: there is no skill named {name}; it is left out", open.id);
        warnings.extend(unknown.into_iter().map(lacks));
        let mut prompt = self.prompt(
            &scope,
            PromptParts {
                tools,
                rules: Vec::new(),
                role: None,
                skills: &skills,
                is_forwarded: true,
            },
        );
        let part = format!("<{PART_SECTION}>\n{}\n</{PART_SECTION}>", open.prompt_part.trim_end());
        let at = prompt.sections.len().saturating_sub(1);
        prompt.sections.insert(at, (PART_SECTION.to_owned(), part));
        let opened = Opened {
            file: Some(open.file.clone()),
            model: Some(chosen.model),
            is_fallback: chosen.is_fallback,
            fallbacks: chosen.fallbacks,
            thinking: chosen.thinking,
            prompt,
            loaded: Loaded::default(),
            is_new: true,
            name: None,
            approval: Approval::default(),
        };
        Ok(Prepared { opened, log, scope: Arc::new(scope), is_owner: false, warnings })
    }

    /// The tools that the call granted, in its order (SESS-4).
    fn task_child_tools(&self, open: &OpenTask, setup: &Setup) -> Vec<ToolDefinition> {
        let wait = wait_definition();
        let tool = |name: &String| {
            if *name == open.yield_tool.name {
                Some(open.yield_tool.clone())
            } else if *name == wait.name {
                Some(wait.clone())
            } else if name == TASK_TOOL {
                let own = agent(setup, &open.definition.name);
                let spawns = own.and_then(|agent| agent.spawns).unwrap_or(Spawns::Off);
                let agents = || described(setup, &spawns);
                open.may_delegate.then(|| definition(&setup.settings, &agents()))
            } else {
                let known = self.config.toolbox.get(name)?.definition();
                Some(if name == BASH_TOOL { bash_definition(known) } else { known.clone() })
            }
        };
        open.tools.iter().filter_map(tool).collect()
    }

    /// The first usable selector, else the parent's model (TASK-SPAWN-13), and
    /// the level: effort before a level in the selector before that of the
    /// definition before what the model has by itself (TASK-SPAWN-12).
    fn task_model(&self, open: &OpenTask, warnings: &mut Vec<String>) -> Result<Chosen, String> {
        let config = &self.config;
        let usable = |provider: &str| config.credentials.is_configured(provider);
        let mut selected = Vec::new();
        for selector in &open.models {
            let query = Query { text: selector, provider: None, thinking: None };
            let reason = match resolve_model(query, &config.catalog, &usable) {
                Ok(found) if !found.warnings.is_empty() => "the model is not known".to_owned(),
                Ok(found) if usable(&found.model.provider) => {
                    selected.push((found.model, found.thinking));
                    continue;
                }
                Ok(_) => "its provider has no credential".to_owned(),
                Err(error) => error.to_string(),
            };
            warnings.push(format!("{}: the model {selector} is not used: {reason}", open.id));
        }
        let is_fallback = selected.is_empty() && !open.models.is_empty();
        let mut selected = selected.into_iter();
        let (model, suffix) = match selected.next() {
            Some(selected) => selected,
            None => (self.parent_model(open)?, None),
        };
        let (model, thinking) = self.task_level(open, &model, suffix)?;
        let mut fallbacks = Vec::new();
        for (model, suffix) in selected {
            match self.task_level(open, &model, suffix) {
                Ok(fallback) => fallbacks.push(fallback),
                Err(reason) => warnings.push(format!(
                    "{}: the model {} is no fallback: {reason}",
                    open.id,
                    model.reference()
                )),
            }
        }
        Ok(Chosen { model, thinking, is_fallback, fallbacks })
    }

    /// A model with the level it is asked at; refused when the effort of the
    /// call is not to be had below its ceiling (TASK-SPAWN-12).
    fn task_level(
        &self,
        open: &OpenTask,
        model: &Arc<ModelSpec>,
        suffix: Option<ThinkingLevel>,
    ) -> Result<(Arc<ModelSpec>, ThinkingLevel), String> {
        let config = &self.config;
        let level = match open.effort {
            Some(effort) => effort::level(effort, &model.supported_levels(), open.max_effort)?,
            None => None,
        };
        let thinking = startup_thinking(
            Some(model),
            ThinkingInputs {
                flag: level,
                pattern: suffix.or(open.definition.thinking),
                session: None,
                per_model: Some(&config.settings.model_thinking_levels),
                saved: config.settings.default_thinking_level,
            },
        );
        Ok((config.catalog.for_level(model, thinking), thinking))
    }

    fn parent_model(&self, open: &OpenTask) -> Result<Arc<ModelSpec>, String> {
        let Some(model) = &open.parent_model else {
            return Err("neither the agent nor the calling session has a usable model".to_owned());
        };
        if !self.config.credentials.is_configured(&model.provider) {
            return Err(format!(
                "there is no credential for the provider \"{}\" of the model \"{}\"",
                model.provider,
                model.reference()
            ));
        }
        Ok(Arc::clone(model))
    }
}

/// The agent of that name at this moment.
fn agent(setup: &Setup, name: &str) -> Option<Agent> {
    catalogue(setup.agents.clone()).into_iter().find(|agent| agent.name() == name)
}

/// Agents that may be spawned under a policy, with what they are for.
fn described(setup: &Setup, spawns: &Spawns) -> Vec<(String, String)> {
    let disabled = &setup.settings.disabled_agents;
    catalogue(setup.agents.clone())
        .iter()
        .filter(|agent| spawns.allows(agent.name()))
        .filter(|agent| !disabled.iter().any(|name| name == agent.name()))
        .map(|agent| (agent.name().to_owned(), agent.definition.description.clone()))
        .collect()
}

/// The model and the level of a child.
struct Chosen {
    model: Arc<ModelSpec>,
    thinking: ThinkingLevel,
    /// The selected model was not usable.
    is_fallback: bool,
    /// The other usable ones, in order (TASK-SPAWN-13).
    fallbacks: Vec<(Arc<ModelSpec>, ThinkingLevel)>,
}
