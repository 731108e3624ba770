use super::*;

const MODELS: &str = r#"{"providers":{
    "local":{"api":"openai-completions","baseUrl":"http://h","apiKey":"$LOCAL_KEY","models":[{"id":"m"}]},
    "plain":{"api":"openai-completions","baseUrl":"http://h","models":[{"id":"m"}]},
    "bear":{"api":"anthropic-messages","baseUrl":"http://h","apiKey":"k-bear","authHeader":true,
        "headers":{"x-team":"core"},"models":[{"id":"m","headers":{"x-team":"$TEAM"}}]},
    "head":{"api":"openai-completions","baseUrl":"http://h","headers":{"Authorization":"Basic $TEAM"},
        "models":[{"id":"m"}]}}}"#;

struct Case {
    credentials: Credentials,
    catalog: Arc<Catalog>,
}

impl Case {
    fn new(auth: &str, variables: &[(&str, &str)]) -> Case {
        let (case, warnings) = Case::with_warnings(MODELS, auth, variables);
        assert_eq!(warnings, []);
        case
    }

    fn with_warnings(
        models: &str,
        auth: &str,
        variables: &[(&str, &str)],
    ) -> (Case, Vec<AuthWarning>) {
        let (catalog, error) = Catalog::build(Some(("models.json", models)));
        assert_eq!(error, None);
        let catalog = Arc::new(catalog);
        let variables: BTreeMap<String, String> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let (credentials, warnings) = Credentials::new(AuthConfig {
            catalog: Arc::clone(&catalog),
            auth_path: "/a/auth.json".to_owned(),
            auth_text: Some(auth.to_owned()),
            environment: Arc::new(move |name| variables.get(name).cloned()),
            clock: Arc::new(|| Time(1_000_000)),
        });
        let case = Case { credentials, catalog };
        (case, warnings)
    }

    fn model(&self, provider: &str) -> Arc<ModelSpec> {
        self.catalog.provider_default(provider).unwrap()
    }

    /// Key and whether it is a bearer token.
    async fn key(&self, provider: &str) -> (String, bool) {
        let credential = self.credentials.resolve(&self.model(provider)).await;
        let credential = credential.map_err(|error| error.message).unwrap();
        (credential.key().unwrap().to_owned(), credential.bearer)
    }

    async fn error(&self, provider: &str) -> String {
        let resolved = self.credentials.resolve(&self.model(provider)).await;
        let Err(error) = resolved else {
            panic!("{provider} has a credential");
        };
        assert_eq!(error.kind, ModelErrorKind::Credential);
        error.message
    }
}

#[tokio::test]
async fn the_first_source_that_has_a_key_counts() {
    // host.md 1.4.7.
    let check = async |auth: &str, given: Option<&str>, variables: &[(&str, &str)], key: &str| {
        let case = Case::new(auth, variables);
        if let Some(given) = given {
            case.credentials.give_key("local", given);
        }
        assert!(case.credentials.is_configured("local"), "{key}");
        assert_eq!(case.key("local").await, (key.to_owned(), false));
    };
    let stored = r#"{"local":{"type":"api_key","key":"k-stored"}}"#;
    let variables = [("LOCAL_KEY", "k-env")];
    check(stored, Some("$given"), &variables, "$given").await;
    check(stored, None, &variables, "k-stored").await;
    check("{}", None, &variables, "k-env").await;
    // An entry without a key leaves the word to the next source.
    check(r#"{"local":{"type":"api_key"}}"#, None, &variables, "k-env").await;
    // Its variables win over those of the process (1.4.5).
    let own = r#"{"local":{"type":"api_key","env":{"LOCAL_KEY":"k-own"}}}"#;
    check(own, None, &variables, "k-own").await;
}

#[tokio::test]
async fn the_variables_of_a_provider_are_tried_in_order() {
    // host.md 1.4, table of variables.
    let check = async |variables: &[(&str, &str)], key: &str, bearer: bool| {
        let case = Case::new("{}", variables);
        assert_eq!(case.key("anthropic").await, (key.to_owned(), bearer));
    };
    check(&[("ANTHROPIC_API_KEY", "k")], "k", false).await;
    check(&[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_AUTH_TOKEN", "t")], "t", true).await;
    check(&[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_AUTH_TOKEN", "")], "k", false).await;
    // A key of models.json comes before the environment.
    let models = r#"{"providers":{"openai":{"apiKey":"k-file"}}}"#;
    let (case, _) = Case::with_warnings(models, "{}", &[("OPENAI_API_KEY", "k-env")]);
    assert_eq!(case.key("openai").await.0, "k-file");
}

#[tokio::test]
async fn a_missing_key_is_told_with_what_to_do() {
    // host.md 9.1.13, 11.97.
    let case = Case::new("{}", &[]);
    let check = async |provider: &str, words: &[&str]| {
        assert!(!case.credentials.is_configured(provider));
        let message = case.error(provider).await;
        for word in words {
            assert!(message.contains(word), "{message} lacks {word}");
        }
    };
    check("google", &["No API key for google/", "GEMINI_API_KEY", "/a/auth.json"]).await;
    check("local", &["local", "LOCAL_KEY", "models.json"]).await;
    check("plain", &["No API key for plain/m", "apiKey", "/a/auth.json"]).await;
    let stored = Case::new(r#"{"plain":{"type":"api_key","key":"$NOPE"}}"#, &[]);
    assert!(!stored.credentials.is_configured("plain"));
    assert!(stored.error("plain").await.contains("NOPE"));
}

#[tokio::test]
async fn only_the_models_own_provider_is_asked() {
    // crew.md MOD-8.
    let auth = r#"{"openai":{"type":"api_key","key":"k-openai"}}"#;
    let case = Case::new(auth, &[("OPENAI_API_KEY", "k-env")]);
    assert!(!case.error("plain").await.contains("k-"));
    assert!(case.credentials.is_configured("openai"));
    assert!(!case.credentials.is_configured("plain"));
    assert!(!case.credentials.is_configured("nobody"));
}

#[tokio::test]
async fn headers_are_resolved_in_order_and_may_authorise_alone() {
    // host.md 1.5.9, 1.5.10.
    let case = Case::new("{}", &[("TEAM", "t1")]);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let bear = case.credentials.resolve(&case.model("bear")).await.ok().unwrap();
    let bearer = pair("Authorization", "Bearer k-bear");
    assert_eq!(bear.headers, [bearer, pair("x-team", "core"), pair("x-team", "t1")]);
    let head = case.credentials.resolve(&case.model("head")).await.ok().unwrap();
    assert_eq!(head.headers, [pair("Authorization", "Basic t1")]);
    assert_eq!(head.key(), None);
    assert!(case.credentials.is_configured("head"));
    let unset = Case::new("{}", &[]);
    assert!(!unset.credentials.is_configured("head"));
    assert!(unset.error("bear").await.contains("`x-team`"));
    assert!(unset.error("bear").await.contains("TEAM"));
}

#[tokio::test]
async fn a_command_of_auth_json_runs_once_for_all() {
    // host.md 1.4.4, C107.
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let check = async |ending: &str, provider: &str| {
        std::fs::write(&log, "").unwrap();
        let command = format!("!echo x >> {}; sleep 0.1; {ending}", log.display());
        let auth = serde_json::json!({"plain": {"type": "api_key", "key": command}});
        let case = Case::new(&auth.to_string(), &[]);
        assert!(case.credentials.is_configured(provider));
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "", "asking runs nothing");
        let model = case.model(provider);
        let (a, b, c) = tokio::join!(
            case.credentials.resolve(&model),
            case.credentials.resolve(&model),
            case.credentials.resolve(&model)
        );
        let outcomes = [a.is_ok(), b.is_ok(), c.is_ok()];
        case.credentials.reload(Arc::clone(&case.catalog), Some(&auth.to_string()));
        let after = case.credentials.resolve(&model).await.is_ok();
        assert_eq!(outcomes, [after; 3]);
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "x\n");
        after
    };
    assert!(check("echo k", "plain").await);
    assert!(!check("exit 1", "plain").await);
}

#[tokio::test]
async fn a_command_of_models_json_runs_for_each_request() {
    // host.md 1.5.9, 11.98.
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let command = format!("!echo x >> {0}; wc -l < {0}", log.display());
    let models = serde_json::json!({"providers": {"x": {"api": "openai-completions",
        "baseUrl": "http://h", "apiKey": command, "models": [{"id": "m"}]}}});
    let (case, _) = Case::with_warnings(&models.to_string(), "{}", &[]);
    assert!(case.credentials.is_configured("x"));
    assert_eq!(case.key("x").await.0, "1");
    assert_eq!(case.key("x").await.0, "2");
    let models = models.to_string().replace(&command, "!exit 7");
    let (case, _) = Case::with_warnings(&models, "{}", &[]);
    assert!(case.error("x").await.contains("`exit 7`"));
}

#[tokio::test]
async fn a_stored_token_is_a_bearer_until_it_expires() {
    // host.md 1.4.1, 1.4.6.
    let token = |expires: u64| {
        format!(
            r#"{{"openai":{{"type":"oauth","access":"tok-1","refresh":"ref-1","expires":{expires},"x":1}}}}"#
        )
    };
    let fresh = Case::new(&token(1_000_001), &[]);
    assert_eq!(fresh.key("openai").await, ("tok-1".to_owned(), true));
    assert!(fresh.credentials.is_configured("openai"));
    let stale = Case::new(&token(1_000_000), &[("OPENAI_API_KEY", "k")]);
    assert!(!stale.credentials.is_configured("openai"));
    let message = stale.error("openai").await;
    assert!(message.contains("openai") && message.contains("expired"), "{message}");
    assert!(!message.contains("tok-1") && !message.contains("ref-1"));
    // host.md 1.7.4.
    assert!(stale.credentials.is_configured_without_stored("openai"));
}

#[tokio::test]
async fn what_cannot_be_read_of_auth_json_is_told_and_left_out() {
    // host.md 1.4.3, C113.
    let check = |auth: &str, expected: &str| {
        let (_, warnings) = Case::with_warnings(MODELS, auth, &[]);
        let [warning] = warnings.as_slice() else {
            panic!("one warning for {auth}: {warnings:?}");
        };
        let text = warning.to_string();
        assert!(text.contains("/a/auth.json") && text.contains(expected), "{text}");
        assert!(!format!("{text} {warning:?}").contains("sk-"), "{text}");
    };
    check("{\n \"openai\": sk-1 }", "line 2");
    check(r#"["sk-1"]"#, "not an object");
    check(r#"{"openai":"sk-1"}"#, "`openai`");
    check(r#"{"openai":{"key":"sk-1"}}"#, "`type`");
    check(r#"{"openai":{"type":"api_key","key":["sk-1"]}}"#, "`key`");
    check(r#"{"openai":{"type":"api_key","key":"sk-1","env":{"A":1}}}"#, "`env`");
    check(r#"{"openai":{"type":"oauth","refresh":"sk-1"}}"#, "`access`");
    let auth = r#"{"openai":{"type":"?"},"google":{"type":"api_key","key":"k-g"}}"#;
    let (case, warnings) = Case::with_warnings(MODELS, auth, &[]);
    assert_eq!(warnings.len(), 1);
    assert_eq!(case.key("google").await.0, "k-g");
}

#[tokio::test]
async fn a_reload_that_does_not_parse_keeps_the_last_good_file() {
    let auth = r#"{"openai":{"type":"api_key","key":"k-1"}}"#;
    let case = Case::new(auth, &[]);
    let reload =
        |text: Option<&str>| case.credentials.reload(Arc::clone(&case.catalog), text).len();
    assert_eq!(reload(Some("{")), 1);
    assert_eq!(case.key("openai").await.0, "k-1");
    assert_eq!(reload(Some("\u{feff}{}")), 0);
    assert!(!case.credentials.is_configured("openai"));
    assert_eq!(reload(None), 0);
}

#[tokio::test]
async fn the_scripted_model_needs_no_credential() {
    // product.md P-3.
    let case = Case::new("{}", &[]);
    assert!(case.credentials.is_configured("demo"));
    assert!(case.credentials.resolve(&case.model("demo")).await.is_ok());
}
