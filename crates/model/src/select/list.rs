//! The rows of `--list-models` as data; a face lays them out.

use crew_base::model::ModelSpec;

use super::Usable;
use crate::catalog::{Catalog, is_scripted};

/// One model of the list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListRow {
    /// Provider id.
    pub provider: String,
    /// Model id.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Window in tokens.
    pub context_window: u64,
    /// Most tokens of one answer.
    pub max_tokens: u64,
    /// Whether it can think.
    pub thinking: bool,
    /// Whether it takes images.
    pub images: bool,
    /// Whether it is the scripted model, to be marked as such.
    pub scripted: bool,
}

/// Models of providers with credentials and the scripted one, by provider and
/// id. `search` keeps rows that hold each of its words in provider, id or
/// name, without regard to case.
pub fn list_models(catalog: &Catalog, usable: Usable<'_>, search: Option<&str>) -> Vec<ListRow> {
    let search = search.unwrap_or("").to_lowercase();
    let hit = |model: &ModelSpec| {
        let text = format!("{} {}", model.reference(), model.name).to_lowercase();
        search.split_whitespace().all(|word| text.contains(word))
    };
    let models = catalog.models().iter();
    let mut rows: Vec<ListRow> = models
        .filter(|model| is_scripted(model) || usable(&model.provider))
        .filter(|model| hit(model))
        .map(|model| row(model))
        .collect();
    rows.sort();
    rows
}

fn row(model: &ModelSpec) -> ListRow {
    ListRow {
        provider: model.provider.clone(),
        id: model.id.clone(),
        name: model.name.clone(),
        context_window: model.context_window,
        max_tokens: model.max_tokens,
        thinking: model.reasoning,
        images: model.images,
        scripted: is_scripted(model),
    }
}
