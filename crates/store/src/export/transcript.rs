//! The entries of one session in reading order: the active branch, with every
//! other branch folded where it leaves (`host.md` 2.6.7, 2.8.1).
//!
//! Shows each entry exactly once, also those of a damaged tree. What an entry
//! looks like is said in `entry`. No recursion: a session may be a chain of a
//! hundred thousand entries.

use crew_base::id::EntryId;

use super::Done;
use super::children::Children;
use super::markup::{Html, count};
use super::survey::{Edit, Survey};
use super::view::View;
use crate::session::index::{Kind, Role};
use crate::session::tree::Tree;

/// A session on its way to a page.
pub(super) struct Transcript<'a> {
    pub(super) view: View<'a>,
    pub(super) survey: &'a Survey,
    pub(super) children: &'a Children,
    /// Keeps the anchors of several sessions apart; empty for the owner.
    prefix: String,
    shown: Vec<bool>,
}

impl<'a> Transcript<'a> {
    pub(super) fn new(
        view: View<'a>,
        survey: &'a Survey,
        children: &'a Children,
        prefix: String,
    ) -> Transcript<'a> {
        let shown = vec![false; view.index.entries().len()];
        Transcript { view, survey, children, prefix, shown }
    }

    /// Writes all entries; `path` is the active branch.
    pub(super) fn write(&mut self, html: &mut Html<'_>, path: &[usize]) -> Done {
        let tree = Tree::of(self.view.index);
        let mut on_path = vec![false; self.shown.len()];
        for place in path {
            on_path[*place] = true;
        }
        for root in tree.roots.iter().filter(|root| !on_path[**root]) {
            self.branch(html, &tree, *root)?;
        }
        for (at, place) in path.iter().enumerate() {
            self.once(html, *place, &path[at + 1..])?;
            for child in tree.nodes[*place].children.iter().filter(|child| !on_path[**child]) {
                self.branch(html, &tree, *child)?;
            }
        }
        let lost: Vec<usize> = (0..self.shown.len()).filter(|place| !self.shown[*place]).collect();
        self.fold(html, "Entries outside the tree", &lost)
    }

    fn branch(&mut self, html: &mut Html<'_>, tree: &Tree, root: usize) -> Done {
        let mut order = Vec::new();
        let mut waiting = vec![root];
        while let Some(place) = waiting.pop() {
            order.push(place);
            waiting.extend(tree.nodes[place].children.iter().rev());
        }
        self.fold(html, "Another branch", &order)
    }

    fn fold(&mut self, html: &mut Html<'_>, label: &str, order: &[usize]) -> Done {
        if order.is_empty() {
            return Ok(());
        }
        let entries = self.view.index.entries();
        let is_prompt = |place: &&usize| entries[**place].kind == Kind::Message(Role::User);
        let prompts = order.iter().filter(is_prompt).count();
        let words = format!(
            "{label} · {} · {}",
            count(order.len(), "entry").replace("entrys", "entries"),
            count(prompts, "prompt")
        );
        html.between("<details class=\"branch\"><summary>", &words, "</summary>\n")?;
        for (at, place) in order.iter().enumerate() {
            if at > 0 {
                self.continued(html, *place, order[at - 1])?;
            }
            self.once(html, *place, &order[at + 1..])?;
        }
        html.put("</details>\n")
    }

    /// Says where an entry goes on from when that is not the one above it.
    fn continued(&self, html: &mut Html<'_>, place: usize, above: usize) -> Done {
        let parent = self.view.index.entries()[place].parent_id.as_ref();
        let parent = parent.and_then(|id| self.view.index.position(id));
        match parent.filter(|parent| *parent != above) {
            None => Ok(()),
            Some(parent) => html.between(
                "<p class=\"note\">This goes on from <a href=\"#",
                &self.anchor(parent),
                "\">an earlier entry</a>:</p>\n",
            ),
        }
    }

    /// Writes an entry unless it stands on the page already; `following` are the
    /// entries that come next.
    fn once(&mut self, html: &mut Html<'_>, place: usize, following: &[usize]) -> Done {
        if self.is_shown(place) {
            return Ok(());
        }
        self.mark_shown(place);
        self.entry(html, place, following)
    }

    pub(super) fn is_shown(&self, place: usize) -> bool {
        self.shown[place]
    }

    pub(super) fn mark_shown(&mut self, place: usize) {
        self.shown[place] = true;
    }

    /// Anchor of an entry: its id when that is unique and needs no escaping,
    /// else its place.
    pub(super) fn anchor(&self, place: usize) -> String {
        let id = &self.view.index.entries()[place].id;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_unique = self.view.index.position(id) == Some(place);
        let prefix = &self.prefix;
        if is_unique && !id.as_str().is_empty() && id.as_str().bytes().all(is_plain) {
            format!("{prefix}e.{id}")
        } else {
            format!("{prefix}n.{place}")
        }
    }

    /// Whether this is a child of the session that the page is about.
    pub(super) fn is_child(&self) -> bool {
        !self.prefix.is_empty()
    }

    /// Writes a link to an entry, or its id when there is no such entry.
    pub(super) fn link(&self, html: &mut Html<'_>, id: &EntryId) -> Done {
        match self.view.index.position(id) {
            None => html.inline(id.as_str()),
            Some(place) => {
                html.between("<a href=\"#", &self.anchor(place), "\">")?;
                html.inline(id.as_str())?;
                html.put("</a>")
            }
        }
    }

    /// Opens the frame of an entry; its kind gives class and headline.
    pub(super) fn begin(&self, html: &mut Html<'_>, look: Look, place: usize) -> Done {
        let entry = &self.view.index.entries()[place];
        let is_dropped = self.survey.edits.get(&entry.id) == Some(&Edit::Dropped);
        html.put("<section class=\"entry ")?;
        html.put(look.class)?;
        html.put(if is_dropped { " left-out\" id=\"" } else { "\" id=\"" })?;
        let anchor = self.anchor(place);
        html.between("", &anchor, "\">\n<h3>")?;
        html.between("<a class=\"anchor\" href=\"#", &anchor, "\">#</a>")?;
        html.put(look.headline)?;
        html.time(entry.time)?;
        self.badges(html, place)?;
        html.put("</h3>\n")
    }

    /// Writes the label of an entry and what became of it in the context.
    pub(super) fn badges(&self, html: &mut Html<'_>, place: usize) -> Done {
        let id = &self.view.index.entries()[place].id;
        if let Some(label) = self.view.index.labels().get(id) {
            html.put("<span class=\"badge\">")?;
            html.inline(&label.text)?;
            html.put("</span>")?;
        }
        html.put(match self.survey.edits.get(id) {
            None => "",
            Some(Edit::Dropped) => "<span class=\"badge\">left out of the model’s context</span>",
            Some(Edit::Replaced) => "<span class=\"badge\">changed in the model’s context</span>",
        })
    }

    /// Closes the frame of an entry.
    pub(super) fn end(&self, html: &mut Html<'_>) -> Done {
        html.put("</section>\n")
    }
}

/// How the frame of an entry looks.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub(super) class: &'static str,
    pub(super) headline: &'static str,
}
