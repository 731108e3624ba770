//! Errors of adapters as one text on their way through the engine, which knows
//! no error types. How it is worded for people is the binary's.

use std::error::Error;

/// The error and everything that led to it, joined by colons; a cause that the
/// text before it already tells is left out.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot write the session")]
    struct Outer(#[source] io::Error);

    #[test]
    fn the_cause_is_told_once() {
        let full = Outer(io::Error::other("no space left"));
        assert_eq!(with_causes(&full), "cannot write the session: no space left");
    }
}
