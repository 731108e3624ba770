//! What must hold for any line of a client: a command or a refusal with a
//! reason, whose response is one line of JSON (`host.md` 7.1.1, 7.2.1, 7.2.2).
//!
//! The face is part of a program and has no library, so its two pure files are
//! taken by path.

#[path = "../../crates/cli/src/rpc/request.rs"]
mod request;
#[path = "../../crates/cli/src/rpc/response.rs"]
mod response;

/// One line of standard input.
pub(crate) fn line(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (ticket, reply) = match request::parse(&text) {
        Ok(request) => (request.ticket, Ok(None)),
        Err(refused) => {
            assert!(!refused.error.is_empty());
            (refused.ticket, Err(refused.error))
        }
    };
    let answer = ticket.line(&reply);
    let body = answer.strip_suffix('\n').expect("a response ends its line");
    assert!(!body.contains('\n'), "and is one line: {body}");
    let value: serde_json::Value = serde_json::from_str(body).expect("and is JSON");
    assert_eq!(value["success"], serde_json::json!(reply.is_ok()));
}
