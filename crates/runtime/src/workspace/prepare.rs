//! Owners and children: file, model, prompt, tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crew_base::entry::{Header, HeaderKind, SESSION_VERSION};
use crew_base::id::{EntryId, SessionId};
use crew_base::model::{ModelSpec, ThinkingLevel};
use crew_base::time::Time;
use crew_base::tool::ToolDefinition;
use crew_engine::api::task::{Approval, TASK_TOOL, forwards};
use crew_engine::api::{self, Loaded, OpenChild, Prompt};
use crew_engine::{OpenPlan, Opened, Source};
use crew_model::select::{
    self, Query, StartupInputs, ThinkingInputs, scope, startup_model, startup_thinking,
};
use crew_store::definitions::split_model;
use crew_store::paths::{child_folder, session_file_name};
use crew_store::session::copy::copy_branch;
use crew_store::session::log::{Plan, SessionLog};
use crew_store::session::open::{Opened as OpenedLog, open};
use crew_store::skills::{self, Skill};
use crew_store::system_prompt::{PromptInput, ToolHint, sections};

use super::selection::{child_tools, owner_tools};
use super::{Parent, Prepared, Scope, SessionPlace, Workspace};
use crate::causes::with_causes;

impl Workspace {
    /// Prepares a session; the error is for people or, for a child, for its
    /// owner (`crew.md` TOOL-25).
    pub(crate) fn prepare(
        &self,
        plan: OpenPlan,
        parent: Option<Parent>,
        now: Time,
    ) -> Result<Prepared, String> {
        match plan {
            OpenPlan::Owner { session, source: Source::New { name } } => {
                let cwd = self.config.cwd.clone();
                let log = self.new_owner_log(&session, &cwd, None, now);
                self.owner(OwnerLog { log, cwd, name, is_new: true, context: None }, Vec::new())
            }
            OpenPlan::Owner { session, source: Source::Under { parent } } => {
                let cwd = self.config.cwd.clone();
                let log = self.new_owner_log(&session, &cwd, Some(Path::new(&parent)), now);
                let new = OwnerLog { log, cwd, name: None, is_new: true, context: None };
                self.owner(new, Vec::new())
            }
            OpenPlan::Owner { session, source: Source::File(path) } => {
                self.resume(&session, Path::new(&path), None, now)
            }
            OpenPlan::Owner { session, source: Source::FileHere(path) } => {
                let here = self.config.cwd.clone();
                self.resume(&session, Path::new(&path), Some(here), now)
            }
            OpenPlan::Owner { session, source: Source::Branch { file, leaf } } => {
                self.branch(&session, Path::new(&file), Until::Entry(leaf), now)
            }
            OpenPlan::Owner { session, source: Source::Copy { file } } => {
                self.branch(&session, Path::new(&file), Until::Last, now)
            }
            OpenPlan::Child(open) => {
                let parent = parent.ok_or("its owner session is no longer open")?;
                self.child(&open, &parent, now)
            }
            OpenPlan::Task(open) => {
                let parent = parent.ok_or("the calling session is no longer open")?;
                self.task_child(&open, &parent, now)
            }
        }
    }

    pub(super) fn header(
        session: &SessionId,
        cwd: &Path,
        parent: Option<&Path>,
        now: Time,
    ) -> Header {
        Header {
            kind: HeaderKind::Session,
            version: SESSION_VERSION,
            id: session.clone(),
            timestamp: now.iso(),
            cwd: cwd.to_string_lossy().into_owned(),
            parent_session: parent.map(|path| path.to_string_lossy().into_owned()),
        }
    }

    fn new_owner_log(
        &self,
        session: &SessionId,
        cwd: &Path,
        parent: Option<&Path>,
        now: Time,
    ) -> SessionLog {
        let header = Self::header(session, cwd, parent, now);
        let path = match &self.config.sessions {
            SessionPlace::Folder(folder) => Some(folder.file(&header)),
            SessionPlace::Memory => None,
        };
        SessionLog::create(Plan { header, path, lock: true })
    }

    /// A stored session, in its own directory or in another one.
    fn resume(
        &self,
        session: &SessionId,
        path: &Path,
        here: Option<PathBuf>,
        now: Time,
    ) -> Result<Prepared, String> {
        let fresh = Self::header(session, &self.config.cwd, None, now);
        let OpenedLog { log, context, warnings } =
            open(path, fresh, true).map_err(|error| with_causes(&error))?;
        let cwd = here.unwrap_or_else(|| PathBuf::from(&log.header().cwd));
        let warnings = warnings
            .into_iter()
            .map(|warning| format!("{}: {}", warning.path, warning.message))
            .collect();
        let is_new = log.index().entries().is_empty();
        self.owner(OwnerLog { log, cwd, name: None, is_new, context: Some(context) }, warnings)
    }

    /// Copies a branch of another session (`host.md` 2.8.4).
    fn branch(
        &self,
        session: &SessionId,
        file: &Path,
        until: Until,
        now: Time,
    ) -> Result<Prepared, String> {
        let text = |error: crew_store::error::Error| with_causes(&error);
        let fresh = Self::header(session, &self.config.cwd, None, now);
        let source = open(file, fresh, false).map_err(text)?.log;
        let cwd = PathBuf::from(&source.header().cwd);
        let header = Self::header(session, &cwd, Some(file), now);
        let path = match &self.config.sessions {
            SessionPlace::Folder(folder) => {
                let beside = file.parent().unwrap_or(&folder.path);
                Some(beside.join(session_file_name(&header)))
            }
            SessionPlace::Memory => None,
        };
        let leaf = match &until {
            Until::Last => source.last(),
            Until::Entry(leaf) => leaf.as_ref(),
        };
        let log = copy_branch(&source, leaf, Plan { header, path, lock: true }).map_err(text)?;
        let context = log.project(log.last()).map_err(text)?;
        let is_new = log.index().entries().is_empty();
        self.owner(OwnerLog { log, cwd, name: None, is_new, context: Some(context) }, Vec::new())
    }

    fn owner(&self, owner: OwnerLog, mut warnings: Vec<String>) -> Result<Prepared, String> {
        let OwnerLog { log, cwd, name, is_new, context } = owner;
        if !cwd.is_dir() {
            return Err(format!(
                "the working directory of the session does not exist: {}",
                cwd.display()
            ));
        }
        let loaded_model = context.as_ref().and_then(|context| context.model.clone());
        let level = context.as_ref().and_then(|context| context.thinking_level.clone());
        let has_messages = context.as_ref().is_some_and(|context| !context.messages.is_empty());
        let session = loaded_model
            .as_ref()
            .filter(|_| has_messages)
            .map(|(provider, model)| (provider.as_str(), model.as_str()));
        let (model, thinking) = self.owner_model(session, level.as_deref(), &mut warnings)?;
        let config = &self.config;
        let (resources, found) = self.resources(&cwd)?;
        warnings.extend(found);
        let mut scope = Scope {
            project: cwd.clone(),
            cwd,
            approval: Arc::default(),
            resources: Arc::new(resources),
        };
        let (setup, told) = self.setup(&scope, false);
        warnings.extend(told);
        // A crew below a crew is bounded like nested tasks (C064).
        let may_spawn = config.depth == 0 || setup.settings.depth_allows(config.depth);
        let mut own = if may_spawn { api::owner_tools() } else { Vec::new() };
        own.extend(self.task_tool(&setup, config.depth, None));
        scope.approval = Arc::new(setup.approval);
        let defaults = &config.settings.default_tools;
        let tools = owner_tools(&config.toolbox, defaults, &config.tools, own);
        let rules = if tools.iter().any(|tool| api::is_owner_tool(&tool.name)) {
            api::OWNER_GUIDELINES.map(str::to_owned).to_vec()
        } else {
            Vec::new()
        };
        let skills = &scope.resources.skills;
        let prompt = self
            .prompt(&scope, PromptParts { tools, rules, role: None, skills, is_forwarded: false });
        let loaded = Loaded {
            leaf: log.last().cloned(),
            taken: log.index().taken(),
            has_level_entry: level.is_some(),
            context: context.map(|context| context.messages).unwrap_or_default(),
        };
        let file = log.path().map(|path| path.to_string_lossy().into_owned());
        let opened = Opened {
            file,
            model,
            is_fallback: false,
            fallbacks: Vec::new(),
            thinking,
            prompt,
            loaded,
            is_new,
            name,
            approval: Approval::clone(&scope.approval),
        };
        Ok(Prepared { opened, log, scope: Arc::new(scope), is_owner: true, warnings })
    }

    /// Model and level of an owner (`host.md` 1.7.1, 1.7.2).
    fn owner_model(
        &self,
        session: Option<(&str, &str)>,
        session_level: Option<&str>,
        warnings: &mut Vec<String>,
    ) -> Result<(Option<Arc<ModelSpec>>, ThinkingLevel), String> {
        let (config, settings) = (&self.config, &self.config.settings);
        let usable = |provider: &str| config.credentials.is_configured(provider);
        let patterns = config.model.scope.iter().map(String::as_str);
        let scope = scope(patterns, &config.catalog, &usable);
        warnings.extend(scope.warnings.iter().map(ToString::to_string));
        let query = config.model.model.as_deref().map(|text| Query {
            text,
            provider: config.model.provider.as_deref(),
            thinking: config.model.thinking,
        });
        let saved = settings.default_provider.as_deref().zip(settings.default_model.as_deref());
        let inputs = StartupInputs { query, scope: &scope.models, session, saved };
        let startup = startup_model(inputs, &config.catalog, &usable)
            .map_err(|error: select::SelectError| error.to_string())?;
        warnings.extend(startup.warnings.iter().map(ToString::to_string));
        let thinking = startup_thinking(
            startup.model.as_deref(),
            ThinkingInputs {
                flag: config.model.thinking,
                pattern: startup.thinking,
                session: session.and(session_level).and_then(ThinkingLevel::parse),
                per_model: Some(&settings.model_thinking_levels),
                saved: settings.default_thinking_level,
            },
        );
        let model = startup.model.map(|model| config.catalog.for_level(&model, thinking));
        Ok((model, thinking))
    }

    fn child(&self, open: &OpenChild, parent: &Parent, now: Time) -> Result<Prepared, String> {
        let definition = &open.definition;
        let (model, thinking) = self.child_model(open)?;
        let scope = Arc::clone(&parent.scope);
        let header = Self::header(&open.session, &scope.cwd, parent.file.as_deref(), now);
        let path = match (&self.config.sessions, &parent.file) {
            (SessionPlace::Memory, _) | (_, None) => None,
            (SessionPlace::Folder(folder), Some(file)) => {
                let folder = child_folder(Some(file), &folder.path);
                Some(folder.join(session_file_name(&header)))
            }
        };
        let log = SessionLog::create(Plan { header, path, lock: false });
        let names_task = definition.tools.iter().any(|tool| tool == TASK_TOOL);
        let task = names_task.then(|| self.crew_task_tool(&scope, &definition.name)).flatten();
        let tools = child_tools(&self.config.toolbox, definition, &self.config.tools, task);
        let found = &scope.resources.skills;
        let (skills, unknown) = skills::for_child(found, definition.skills.as_deref());
        let warnings = unknown
            .into_iter()
            .map(|name| {
                format!("{}: there is no skill named {name}; it is left out", open.subagent)
            })
            .collect();
        let rules = vec![api::CHILD_GUIDELINE.to_owned()];
        let role = Some(definition.prompt.trim()).filter(|role| !role.is_empty());
        let prompt = self.prompt(
            &scope,
            PromptParts { tools, rules, role, skills: &skills, is_forwarded: false },
        );
        let file = log.path().map(|path| path.to_string_lossy().into_owned());
        let opened = Opened {
            file,
            model: Some(model),
            is_fallback: false,
            fallbacks: Vec::new(),
            thinking,
            prompt,
            loaded: Loaded::default(),
            is_new: true,
            name: Some(open.title.clone()),
            approval: Approval::default(),
        };
        Ok(Prepared { opened, log, scope, is_owner: false, warnings })
    }

    /// Model and level of a child: the configured one exactly, else its
    /// owner's (`crew.md` MOD-1 to MOD-4, MOD-11).
    fn child_model(&self, open: &OpenChild) -> Result<(Arc<ModelSpec>, ThinkingLevel), String> {
        let config = &self.config;
        let model = match (&open.definition.model, &open.owner_model) {
            (Some(text), _) => {
                let found =
                    split_model(text).and_then(|(provider, id)| config.catalog.get(provider, id));
                found.ok_or_else(|| {
                    format!(
                        "the model \"{text}\" of the subagent definition \"{}\" does not exist; \
                         it must be given as provider/model-id",
                        open.definition.name
                    )
                })?
            }
            (None, Some(model)) => Arc::clone(model),
            (None, None) => {
                return Err("neither the definition nor the owner session has a model".to_owned());
            }
        };
        if !config.credentials.is_configured(&model.provider) {
            return Err(format!(
                "there is no credential for the provider \"{}\" of the model \"{}\"",
                model.provider,
                model.reference()
            ));
        }
        let thinking = startup_thinking(
            Some(&model),
            ThinkingInputs {
                flag: None,
                pattern: open.definition.thinking,
                session: None,
                per_model: Some(&config.settings.model_thinking_levels),
                saved: config.settings.default_thinking_level,
            },
        );
        Ok((config.catalog.for_level(&model, thinking), thinking))
    }

    pub(super) fn prompt(&self, scope: &Scope, parts: PromptParts<'_>) -> Prompt {
        let PromptParts { tools, rules, role, skills, is_forwarded } = parts;
        let resources = &scope.resources;
        let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
        let context_files = resources.context_files.iter();
        let context_files = context_files
            .filter(|file| !is_forwarded || forwards(&file.path.to_string_lossy()))
            .cloned()
            .collect();
        let mut addendum = resources.addendum.clone();
        addendum.extend(role.map(str::to_owned));
        let input = PromptInput {
            custom_base: resources.custom_base.clone(),
            addendum,
            tools: tools.iter().map(hint).collect(),
            extra_rules: rules,
            context_files,
            skills: skills::prompt_section(skills, &names),
            cwd: &scope.cwd,
        };
        let sections = sections(&input).0;
        let kept = |(name, text): (String, Option<String>)| text.map(|text| (name, text));
        Prompt { sections: sections.into_iter().filter_map(kept).collect(), tools }
    }
}

/// What the prompts of sessions of one directory differ in.
pub(super) struct PromptParts<'a> {
    pub(super) tools: Vec<ToolDefinition>,
    pub(super) rules: Vec<String>,
    pub(super) role: Option<&'a str>,
    pub(super) skills: &'a [Skill],
    /// Context files are handed on by a calling session (`task.md`
    /// TASK-SPAWN-4).
    pub(super) is_forwarded: bool,
}

/// Where a copied branch ends.
enum Until {
    /// With the last entry of the file.
    Last,
    /// With this one; without one nothing is copied.
    Entry(Option<EntryId>),
}

/// An owner's log and where it came from.
struct OwnerLog {
    log: SessionLog,
    cwd: PathBuf,
    name: Option<String>,
    is_new: bool,
    context: Option<crew_store::session::project::Projection>,
}

/// A tool as the prompt names it: the first sentence of its description.
fn hint(tool: &ToolDefinition) -> ToolHint<'_> {
    let text = tool.description.as_str();
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    ToolHint { name: &tool.name, hint: &text[..end] }
}
