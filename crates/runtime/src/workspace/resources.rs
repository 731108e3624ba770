//! What prompts of a directory are made from: context files, skills, prompt
//! files. Read once for each opening of an owner; its children inherit it.

use std::path::Path;

use crew_store::context_files::{self, ContextFile};
use crew_store::paths::project_dir;
use crew_store::resources::Sources;
use crew_store::skills::{self, Skill};
use crew_store::system_prompt::{PromptFolders, addendum, custom_base};

use super::Workspace;
use crate::causes::with_causes;

/// The parts.
#[derive(Debug)]
pub(super) struct Resources {
    pub(super) context_files: Vec<ContextFile>,
    pub(super) skills: Vec<Skill>,
    pub(super) custom_base: Option<String>,
    pub(super) addendum: Vec<String>,
}

impl Workspace {
    /// Reads the resources of a directory, with warnings for people; fails when
    /// a prompt file is there and cannot be read (`host.md` 5.2).
    pub(super) fn resources(&self, cwd: &Path) -> Result<(Resources, Vec<String>), String> {
        let (config, wish) = (&self.config, &self.config.prompt);
        let (context_files, mut warnings) = if wish.no_context_files {
            (Vec::new(), Vec::new())
        } else {
            context_files::load(&config.agent_dir, cwd)
        };
        let (project, trusted) = (project_dir(cwd), self.trusts(cwd));
        let found = skills::discover(&Sources {
            cwd: cwd.to_owned(),
            project_dir: project.clone(),
            agent_dir: config.agent_dir.clone(),
            home: config.home.clone(),
            trusted,
            discover: !wish.no_skills,
            user_list: config.settings.skills.user.clone(),
            project_list: config.settings.skills.project.clone(),
            paths: wish.skills.clone(),
        });
        warnings.extend(found.warnings);
        let folders = PromptFolders {
            project: trusted.then_some(project.as_path()),
            agent_dir: &config.agent_dir,
            cwd,
            home: config.home.as_deref(),
        };
        let text = |error: crew_store::error::Error| with_causes(&error);
        let resources = Resources {
            context_files,
            skills: found.skills,
            custom_base: custom_base(wish.system.as_deref(), folders).map_err(text)?,
            addendum: addendum(&wish.append, folders).map_err(text)?,
        };
        let warnings = warnings
            .into_iter()
            .map(|warning| format!("{}: {}", warning.path, warning.message))
            .collect();
        Ok((resources, warnings))
    }
}
