//! What authorises one request. Has no `Debug`: it must never reach a log.

/// The resolved credential of the model's own provider.
#[derive(Clone, Default)]
pub struct Credential {
    key: Option<String>,
    /// The key goes into `Authorization: Bearer`, whatever the API's habit.
    pub bearer: bool,
    /// Configured headers with resolved values, provider ones before those of
    /// the model; later ones replace earlier ones of the same name.
    pub headers: Vec<(String, String)>,
}

impl Credential {
    /// Joins a key, if there is one, with the configured headers.
    pub fn new(key: Option<String>, bearer: bool, headers: Vec<(String, String)>) -> Credential {
        Credential { key: key.filter(|key| !key.is_empty()), bearer, headers }
    }

    /// The key.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Whether a request can be authorised with this (`host.md` 9.1.13).
    pub fn authorises(&self) -> bool {
        self.key.is_some() || self.headers.iter().any(|(name, _)| is_secret_header(name))
    }

    /// Replaces every secret in a text that came from outside (C113).
    pub fn redact(&self, text: &str) -> String {
        // Shorter values would tear holes into ordinary words.
        const SECRET_BYTES_MIN: usize = 6;
        let headers = self.headers.iter().filter(|(name, _)| is_secret_header(name));
        let values = headers.map(|(_, value)| value.trim());
        let bare = |value: &str| value.split_whitespace().last().unwrap_or("").to_owned();
        let mut secrets: Vec<String> = values.map(bare).collect();
        secrets.extend(self.key.as_deref().map(|key| key.trim().to_owned()));
        secrets.retain(|secret| secret.len() >= SECRET_BYTES_MIN);
        // The longest first, so that a secret inside another leaves no rest.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let mut text = text.to_owned();
        for secret in secrets {
            text = text.replace(&secret, "[secret]");
            // The form in which a JSON body repeats it.
            let quoted = serde_json::to_string(&secret).expect("a string is JSON");
            text = text.replace(&quoted[1..quoted.len() - 1], "[secret]");
        }
        text
    }
}

/// Whether a header by its name carries something secret.
fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = ["authorization", "key", "token", "secret", "cookie"];
    ends.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_repeats_secrets_loses_them() {
        // C113.
        let headers = vec![
            ("Authorization".to_owned(), "Bearer tok-abcdef".to_owned()),
            ("X-Team".to_owned(), "visible".to_owned()),
        ];
        let credential = Credential::new(Some("sk-live\"1234".into()), false, headers);
        let text = credential.redact(r#"bad key sk-live\"1234 or Bearer tok-abcdef for visible"#);
        assert_eq!(text, "bad key [secret] or Bearer [secret] for visible");
    }

    #[test]
    fn a_key_or_an_auth_header_authorises() {
        let check = |key: Option<&str>, header: &str, expected: bool| {
            let headers = vec![(header.to_owned(), "x".to_owned())];
            let credential = Credential::new(key.map(Into::into), false, headers);
            assert_eq!(credential.authorises(), expected, "{key:?} {header}");
        };
        check(None, "x-team", false);
        check(Some(""), "x-team", false);
        check(Some("k"), "x-team", true);
        check(None, "api-key", true);
        check(None, "authorization", true);
    }
}
