//! The end of a move in the session tree on the wire (`host.md` 2.8.2, 7.3.12).
//!
//! Pure, as all of `rpc::wire`.

use crew_engine::api::MoveEnd;
use serde::Serialize;

/// Fields of `crew_tree_move_end`; also the data of the answer to
/// `crew_navigate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MoveWire {
    /// Where the session stands; `null` before everything, absent when it did
    /// not move.
    #[serde(skip_serializing_if = "Option::is_none")]
    leaf_id: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_entry_id: Option<String>,
    cancelled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
}

impl From<&MoveEnd> for MoveWire {
    fn from(end: &MoveEnd) -> MoveWire {
        match end {
            MoveEnd::Moved(moved) => MoveWire {
                leaf_id: Some(moved.leaf.as_ref().map(ToString::to_string)),
                text: moved.draft.clone(),
                summary_entry_id: moved.summary.as_ref().map(|entry| entry.id.to_string()),
                ..MoveWire::default()
            },
            MoveEnd::Cancelled => MoveWire { cancelled: true, ..MoveWire::default() },
            MoveEnd::Failed(error) => {
                MoveWire { error_message: Some(error.clone()), ..MoveWire::default() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_engine::api::Moved;

    #[test]
    fn the_place_before_everything_is_null_and_no_move_has_no_place() {
        let check = |end: MoveEnd, expected: &str| {
            assert_eq!(serde_json::to_string(&MoveWire::from(&end)).unwrap(), expected);
        };
        let moved = |leaf: Option<&str>, draft: Option<&str>| {
            let (leaf, draft) = (leaf.map(Into::into), draft.map(str::to_owned));
            MoveEnd::Moved(Box::new(Moved { leaf, draft, summary: None }))
        };
        check(moved(Some("a"), None), r#"{"leafId":"a","cancelled":false}"#);
        check(moved(None, Some("t")), r#"{"leafId":null,"text":"t","cancelled":false}"#);
        check(MoveEnd::Cancelled, r#"{"cancelled":true}"#);
        let failed = MoveEnd::Failed("no".to_owned());
        check(failed, r#"{"cancelled":false,"errorMessage":"no"}"#);
    }
}
