//! Which tools a session offers (`host.md` 6.2.2, `crew.md` ISO).

use crew_base::definition::Definition;
use crew_base::tool::ToolDefinition;
use crew_engine::api;
use crew_engine::api::task::TASK_TOOL;
use crew_tools::Toolbox;

use super::ToolWish;

/// The owner's tools in a fixed order: built-in ones, then its own, which are
/// those of the crew and `task`, as far as it may delegate.
pub(super) fn owner_tools(
    toolbox: &Toolbox,
    defaults: &[String],
    wish: &ToolWish,
    own: Vec<ToolDefinition>,
) -> Vec<ToolDefinition> {
    let all: Vec<String> = toolbox
        .names()
        .into_iter()
        .map(str::to_owned)
        .chain(own.iter().map(|tool| tool.name.clone()))
        .collect();
    let mut names: Vec<String> = if wish.no_tools {
        Vec::new()
    } else if let Some(only) = &wish.only {
        all.iter()
            .filter(|name| only.iter().any(|pattern| matches(pattern, name)))
            .cloned()
            .collect()
    } else {
        let is_default = |name: &&String| {
            api::is_owner_tool(name)
                || *name == TASK_TOOL
                || (!wish.no_builtin && defaults.contains(name))
        };
        all.iter().filter(is_default).cloned().collect()
    };
    for change in &wish.changes {
        match change.split_at_checked(1) {
            Some(("+", name))
                if all.iter().any(|known| known == name)
                    && !names.iter().any(|known| known == name) =>
            {
                names.push(name.to_owned());
            }
            Some(("-", name)) => names.retain(|known| known != name),
            _ => {}
        }
    }
    names.retain(|name| !is_excluded(wish, name));
    let mut tools = toolbox.definitions(&names);
    tools.extend(own.into_iter().filter(|tool| names.contains(&tool.name)));
    tools
}

/// A child's tools: its allowlist without owner tools, `task` if it may call
/// it, and the report.
pub(super) fn child_tools(
    toolbox: &Toolbox,
    definition: &Definition,
    wish: &ToolWish,
    task: Option<ToolDefinition>,
) -> Vec<ToolDefinition> {
    let names: Vec<&String> =
        definition.tools.iter().filter(|name| !is_excluded(wish, name)).collect();
    let mut tools = toolbox.definitions(&names);
    tools.extend(task.filter(|tool| !is_excluded(wish, &tool.name)));
    tools.push(api::report_tool());
    tools
}

/// Names of the tools that no session has (`product.md` P-14g).
pub(super) fn excluded(toolbox: &Toolbox, wish: &ToolWish) -> Vec<String> {
    let names = toolbox.names().into_iter().chain([TASK_TOOL]);
    names.filter(|name| is_excluded(wish, name)).map(str::to_owned).collect()
}

fn is_excluded(wish: &ToolWish, name: &str) -> bool {
    wish.exclude.iter().any(|pattern| matches(pattern, name))
}

/// A plain name, or a pattern in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => {
            let Some(rest) = name.strip_prefix(head) else { return false };
            (0..=rest.len())
                .filter(|at| rest.is_char_boundary(*at))
                .any(|at| matches(tail, &rest[at..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(wish: &ToolWish) -> String {
        let defaults = ["read", "bash", "edit", "write"].map(str::to_owned);
        let task = ToolDefinition { name: TASK_TOOL.into(), ..api::report_tool() };
        let own = api::owner_tools().into_iter().chain([task]).collect();
        let tools = owner_tools(&Toolbox::builtin(), &defaults, wish, own);
        let names: Vec<_> = tools.into_iter().map(|tool| tool.name).collect();
        names.join(" ")
    }

    // host.md 6.2.2, product.md P-14g.
    #[test]
    fn options_choose_the_owners_tools() {
        let crew = "crew_list crew_status crew_spawn crew_respond crew_done crew_abort task";
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let check = |wish: ToolWish, expected: &str| assert_eq!(names(&wish), expected);
        check(ToolWish::default(), &format!("read bash edit write {crew}"));
        check(ToolWish { no_tools: true, ..ToolWish::default() }, "");
        check(ToolWish { no_builtin: true, ..ToolWish::default() }, crew);
        let only = Some(list(&["read", "crew_s*"]));
        check(ToolWish { only, ..ToolWish::default() }, "read crew_status crew_spawn");
        let changes = list(&["+grep", "-bash", "-crew_list", "-task"]);
        let rest = crew.replace("crew_list ", "").replace(" task", "");
        check(ToolWish { changes, ..ToolWish::default() }, &format!("read edit write grep {rest}"));
        let exclude = list(&["crew_*", "write", "ta*k"]);
        check(ToolWish { exclude, ..ToolWish::default() }, "read bash edit");
    }
}
