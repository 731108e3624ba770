//! Responses as lines of JSON (`host.md` 7.2.1).
//!
//! Pure. Data is JSON text already, so that opaque parts keep theirs.

use crew_base::json::Raw;
use serde::Serialize;

/// Whom a response is for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ticket {
    /// As the client gave it.
    pub(super) id: Option<Raw>,
    /// The command's type.
    pub(super) kind: String,
}

/// What a command gives back: JSON text, or nothing; else why it failed.
pub(super) type Reply = Result<Option<String>, String>;

impl Ticket {
    /// The line of the response, with its line feed.
    pub(super) fn line(&self, reply: &Reply) -> String {
        let mut line = String::from("{");
        if let Some(id) = &self.id {
            line.push_str("\"id\":");
            line.push_str(id.text());
            line.push(',');
        }
        line.push_str("\"type\":\"response\",\"command\":");
        line.push_str(&json(&self.kind));
        match reply {
            Ok(data) => {
                line.push_str(",\"success\":true");
                if let Some(data) = data {
                    line.push_str(",\"data\":");
                    line.push_str(data);
                }
            }
            Err(error) => {
                line.push_str(",\"success\":false,\"error\":");
                line.push_str(&json(error));
            }
        }
        line.push_str("}\n");
        line
    }
}

/// A value as JSON text.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("what we answer holds nothing that JSON refuses")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_have_the_documented_shape() {
        // host.md 7.2.1, 7.2.3
        let check = |id: Option<&str>, reply: Reply, expected: &str| {
            let id = id.map(|id| Raw::parse(id).unwrap());
            let ticket = Ticket { id, kind: "x".to_owned() };
            assert_eq!(ticket.line(&reply), format!("{expected}\n"));
        };
        check(None, Ok(None), r#"{"type":"response","command":"x","success":true}"#);
        check(
            Some("\"1\""),
            Ok(Some("null".to_owned())),
            r#"{"id":"1","type":"response","command":"x","success":true,"data":null}"#,
        );
        check(
            Some("\"1\""),
            Err("a \"b\"\n".to_owned()),
            r#"{"id":"1","type":"response","command":"x","success":false,"error":"a \"b\"\n"}"#,
        );
    }
}
