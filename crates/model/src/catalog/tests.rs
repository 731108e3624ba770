use std::collections::BTreeSet;

use super::*;

fn build(text: &str) -> Catalog {
    let (catalog, error) = Catalog::build(Some(("models.json", text)));
    assert_eq!(error, None);
    catalog
}

fn model(text: &str, provider: &str, id: &str) -> Arc<ModelSpec> {
    build(text).get(provider, id).expect("the model is there")
}

fn error(text: &str) -> String {
    let (catalog, error) = Catalog::build(Some(("/a/models.json", text)));
    // Built-in providers keep working (host.md 1.5.2).
    assert!(catalog.provider_default("anthropic").is_some());
    assert!(catalog.provider("x").is_none(), "nothing of the file is used");
    error.expect("the file is refused").to_string()
}

#[test]
fn our_own_table_is_complete_and_consistent() {
    let catalog = build(r#"{"providers":{}}"#);
    let references: BTreeSet<_> = catalog.models().iter().map(|m| m.reference()).collect();
    assert_eq!(references.len(), catalog.models().len());
    assert!(references.len() >= 30);
    let formats = [
        ("anthropic", Api::AnthropicMessages),
        ("openai", Api::OpenaiResponses),
        ("google", Api::GoogleGenerativeAi),
        ("openrouter", Api::OpenaiCompletions),
        ("deepseek", Api::OpenaiCompletions),
        ("groq", Api::OpenaiCompletions),
        ("xai", Api::OpenaiResponses),
        ("mistral", Api::OpenaiCompletions),
    ];
    for (provider, api) in formats {
        let known = catalog.provider(provider).unwrap();
        let default = known.default_model.as_deref().unwrap();
        assert_eq!(catalog.get(provider, default).unwrap().api, api);
        assert!(!known.env.is_empty());
    }
    for model in catalog.models().iter().filter(|model| !is_scripted(model)) {
        let reference = model.reference();
        assert_ne!(model.api, Api::Unsupported, "{reference}");
        assert!(model.base_url.starts_with("https://"), "{reference}");
        assert!(model.rates.input > 0.0 && model.rates.output > model.rates.input);
        assert!(model.max_tokens <= model.context_window, "{reference}");
        let levels = model.supported_levels();
        assert!(!levels.is_empty(), "{reference}");
    }
}

#[test]
fn the_snapshot_of_our_table_is_dated() {
    let table: Value = serde_json::from_str(BUILTIN).unwrap();
    let date = table["snapshot"].as_str().unwrap();
    assert_eq!(date.len(), "2026-11-30".len());
}

#[test]
fn the_scripted_model_is_always_there_and_comes_last() {
    // product.md P-3.
    let catalog = build(
        r#"{"providers":{"demo":{"baseUrl":"http://x","api":"openai-completions",
            "models":[{"id":"crew"},{"id":"own"}]}}}"#,
    );
    assert_eq!(catalog.models().last().unwrap().reference(), "demo/crew");
    assert!(is_scripted(&catalog.get("demo", "crew").unwrap()));
    assert!(!is_scripted(&catalog.get("demo", "own").unwrap()));
    let plain = Catalog::build(None).0;
    let demo = plain.get(DEMO_PROVIDER, DEMO_MODEL).unwrap();
    assert_eq!((demo.name.as_str(), demo.context_window), ("scripted demo", 200_000));
    assert_eq!(plain.unknown_model("demo", "other"), None);
}

#[test]
fn comments_trailing_commas_and_a_byte_order_mark_are_read() {
    // host.md 1.5.1, 11.96.
    let text = "\u{feff}// top\n{\"providers\":{\"x\":{\"baseUrl\":\"http://h/v1//\", // why\n\
        \"api\":\"openai-completions\",\"models\":[{\"id\":\"a//b\",},],},},}";
    let spec = model(text, "x", "a//b");
    assert_eq!(spec.base_url, "http://h/v1");
}

#[test]
fn a_model_gets_the_defaults() {
    // host.md 1.5.6.
    let text = r#"{"$schema":"s","providers":{"x":{"baseUrl":"http://h","apiKey":"$K","authHeader":true,
        "api":"openai-completions","headers":{"a":"1"},
        "models":[{"id":"m","headers":{"b":"$B"},"name":null}]}}}"#;
    let spec = model(text, "x", "m");
    assert_eq!((spec.name.as_str(), spec.reasoning, spec.images), ("m", false, false));
    assert_eq!((spec.context_window, spec.max_tokens), (128_000, 16_384));
    assert_eq!(spec.rates, Default::default());
    assert_eq!((spec.sampling_params.clone(), spec.compat.clone()), (None, None));
    let headers = [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "$B".to_owned())];
    assert_eq!(spec.headers, headers);
    assert!(spec.auth_header);
    let catalog = build(text);
    let provider = catalog.provider("x").unwrap();
    assert_eq!(provider.api_key.as_deref(), Some("$K"));
}

#[test]
fn a_violation_names_path_and_reason_and_disables_the_file() {
    // host.md 1.5.2 to 1.5.6.
    let check = |inner: &str, expected: &str| {
        let text = format!(r#"{{"providers":{{"x":{inner}}}}}"#);
        let message = error(&text);
        assert!(message.starts_with("/a/models.json: "), "{message}");
        assert!(message.contains(expected), "{message} lacks {expected}");
    };
    check(r#"{"baseUrl":""}"#, "`providers.x.baseUrl` must be a non-empty string");
    check(r#"{"apiKey":7}"#, "`providers.x.apiKey` must be a non-empty string");
    check(r#"{"name":"n"}"#, "`providers.x` must set at least one of baseUrl");
    check("[]", "`providers.x` must be an object");
    check(r#"{"apiKey":"k","authHeader":"yes"}"#, "authHeader` must be true or false");
    check(r#"{"headers":{"a":1}}"#, "`providers.x.headers.a` must be a string");
    check(r#"{"apiKey":"k","oauth":"other"}"#, "oauth` must be \"radius\"");
    check(r#"{"models":[{"name":"n"}]}"#, "`providers.x.models[0].id` is missing");
    check(r#"{"models":[{"id":"m"}]}"#, "`providers.x.models[0]` has no `api`");
    check(r#"{"api":"a","models":[{"id":"m"}]}"#, "has no `baseUrl`");
    let one = |field: &str, expected: &str| {
        let head = r#"{"api":"a","baseUrl":"b","models":[{"id":"m","#;
        check(&format!("{head}{field}}}]}}"), expected);
    };
    one(r#""contextWindow":0"#, "models[0].contextWindow` must be a number above 0");
    one(r#""maxTokens":"9""#, "maxTokens` must be a number above 0");
    one(r#""input":["audio"]"#, "models[0].input[0]` must be \"text\" or \"image\"");
    one(r#""thinkingLevelMap":{"low":1}"#, "thinkingLevelMap.low` must be a string or null");
    one(r#""cost":{"input":"1"}"#, "cost.input` must be a number");
    one(r#""cost":{"tiers":[{"input":1}]}"#, "cost.tiers[0].inputTokensAbove` is missing");
    one(r#""compat":[]"#, "compat` must be an object");
    one(r#""samplingParamsByThinkingLevel":{"low":1}"#, "ThinkingLevel.low` must be an object");
}

#[test]
fn a_file_that_is_no_json_is_refused_without_being_quoted() {
    // C113.
    let check = |text: &str, expected: &str| {
        let message = error(text);
        assert!(message.contains(expected), "{message} lacks {expected}");
        assert!(!message.contains("sk-secret"), "{message}");
    };
    check("{\"providers\":{\n\"x\":sk-secret}}", "line 2");
    check("{\"providers\":{'x':{}}}", "not valid");
    check("{\"providers\":{\"x\":{\"apiKey\":\"sk-secret\" \"a\":1}}}", "not valid");
    check("{}", "`providers` is missing");
    check("", "must be an object");
    check("[]", "must be an object");
}

#[test]
fn a_built_in_provider_is_changed_for_all_its_models() {
    // host.md 1.5.5, 1.5.8.
    let text = r#"{"providers":{"anthropic":{"baseUrl":"http://proxy/","compat":{"supportsTemperature":true,"n":1}},
        "openai":{"headers":{"team":"t"},"models":[{"id":"new"}]},
        "meta":{"models":[{"id":"l","baseUrl":"http://m"}]}}}"#;
    let catalog = build(text);
    for model in catalog.models_of("anthropic") {
        assert_eq!(model.base_url, "http://proxy");
        assert_eq!(model.compat.as_ref().unwrap().value()["n"], 1);
    }
    // The model's own switches lie over those of the provider.
    let opus = catalog.get("anthropic", "claude-opus-5-5").unwrap();
    assert_eq!(opus.compat.as_ref().unwrap().value()["supportsTemperature"], false);
    let new = catalog.get("openai", "new").unwrap();
    assert_eq!(new.base_url, "https://api.openai.com/v1");
    assert_eq!((new.api, new.headers.len()), (Api::OpenaiResponses, 1));
    assert!(catalog.models_of("openai").count() > 3);
    assert_eq!(catalog.get("meta", "l").unwrap().api, Api::OpenaiCompletions);
}

#[test]
fn an_entry_with_an_existing_id_replaces_that_model() {
    // host.md 1.5.6.
    let text = r#"{"providers":{"google":{"models":[{"id":"gemini-2.5-pro","contextWindow":7}]}}}"#;
    let spec = model(text, "google", "gemini-2.5-pro");
    assert_eq!((spec.context_window, spec.reasoning), (7, false));
    assert_eq!(spec.api, Api::GoogleGenerativeAi);
    let same = build(text);
    assert_eq!(same.models_of("google").filter(|m| m.id == "gemini-2.5-pro").count(), 1);
}

#[test]
fn overrides_merge_objects_per_key_and_come_last() {
    // host.md 1.5.7, 1.5.8.
    let text = r#"{"providers":{"x":{"api":"openai-completions","baseUrl":"http://h",
        "compat":{"a":1,"openRouterRouting":{"only":["p"],"sort":"price"}},
        "models":[{"id":"m","reasoning":true,"thinkingLevelMap":{"low":null},"headers":{"h":"1"},
            "cost":{"input":1,"output":2},"samplingParams":{"top_p":0.5},
            "compat":{"b":1,"openRouterRouting":{"sort":"speed"}},
            "inputLimits":{"images":{"maxPerMessage":1,"resize":{"maxWidth":5}}}}],
        "modelOverrides":{"gone":{"name":"no"},"m":{"name":"M","thinkingLevelMap":{"max":"max"},
            "cost":{"output":4},"samplingParams":{"seed":1},"compat":{"c":1},"headers":{"i":"2"},
            "inputLimits":{"images":{"resize":{"maxHeight":6}}}}}}}}"#;
    let catalog = build(text);
    let spec = catalog.get("x", "m").unwrap();
    assert_eq!(spec.name, "M");
    assert_eq!(spec.thinking_levels.get("low"), Some(&None));
    assert_eq!(spec.thinking_levels.get("max"), Some(&Some("max".to_owned())));
    assert_eq!((spec.rates.input, spec.rates.output), (1.0, 4.0));
    assert_eq!(spec.sampling_params.as_ref().unwrap().text(), r#"{"top_p":0.5,"seed":1}"#);
    assert_eq!(
        spec.compat.as_ref().unwrap().text(),
        r#"{"a":1,"openRouterRouting":{"only":["p"],"sort":"speed"},"b":1,"c":1}"#
    );
    assert_eq!(spec.headers, [("i".to_owned(), "2".to_owned())]);
    assert_eq!(
        catalog.model_json(&spec)["inputLimits"].to_string(),
        r#"{"images":{"maxPerMessage":1,"resize":{"maxWidth":5,"maxHeight":6}}}"#
    );
}

#[test]
fn price_tiers_are_read() {
    // host.md 1.5.11.
    let text = r#"{"providers":{"x":{"api":"a","baseUrl":"b","models":[{"id":"m","cost":{"input":1,"output":2,
        "tiers":[{"inputTokensAbove":1000,"input":3,"output":4,"cacheRead":0,"cacheWrite":0.5}]}}]}}}"#;
    let spec = model(text, "x", "m");
    let [(above, rates)] = spec.rates.tiers.as_slice() else {
        panic!("one tier");
    };
    assert_eq!((*above, rates.output, rates.cache_write), (1000, 4.0, 0.5));
    // Other kinds load and say so when used (1.5.13).
    assert_eq!((spec.api, spec.api_word.as_str()), (Api::Unsupported, "a"));
}

#[test]
fn sampling_parameters_of_a_level_lie_over_the_models_own() {
    let text = r#"{"providers":{"x":{"api":"a","baseUrl":"b","models":[{"id":"m","samplingParams":{"a":1,"b":2},
        "samplingParamsByThinkingLevel":{"high":{"b":3}}}]}}}"#;
    let catalog = build(text);
    let spec = catalog.get("x", "m").unwrap();
    let at = |level| {
        let spec = catalog.for_level(&spec, level);
        spec.sampling_params.as_ref().unwrap().text().to_owned()
    };
    assert_eq!(at(ThinkingLevel::High), r#"{"a":1,"b":3}"#);
    assert_eq!(at(ThinkingLevel::Low), r#"{"a":1,"b":2}"#);
}

#[test]
fn an_unknown_model_copies_the_default_or_the_defaults() {
    // host.md 1.7.5.
    let catalog = Catalog::build(None).0;
    let like = catalog.provider_default("openai").unwrap();
    let unknown = catalog.unknown_model("openai", "o-next").unwrap();
    assert_eq!(unknown.reference(), "openai/o-next");
    assert_eq!((unknown.name.as_str(), unknown.context_window), ("o-next", like.context_window));
    let bare = catalog.unknown_model("cerebras", "m").unwrap();
    assert_eq!((bare.api, bare.context_window), (Api::OpenaiCompletions, 128_000));
    assert_eq!(catalog.unknown_model("meta", "m"), None);
    assert_eq!(catalog.unknown_model("nobody", "m"), None);
}

#[test]
fn the_model_object_has_plain_numbers_and_no_secrets() {
    // host.md 7.3.10, 0.6.
    let text = r#"{"providers":{"x":{"api":"openai-completions","baseUrl":"http://me:pw@h/v1","apiKey":"sk-1",
        "headers":{"X-Team":"core","Authorization":"Bearer sk-2","X-Api-Key":"sk-3","y":"$Y","z":"!cat z"},
        "models":[{"id":"m","input":["text","image"],"reasoning":true,"thinkingLevelMap":{"off":null},
            "cost":{"input":3,"output":2.5},"promptCache":{"k":1}}]}}}"#;
    let catalog = build(text);
    let spec = catalog.get("x", "m").unwrap();
    let json = catalog.model_json(&spec).to_string();
    assert_eq!(
        json,
        concat!(
            r#"{"id":"m","name":"m","provider":"x","api":"openai-completions","baseUrl":"http://h/v1","#,
            r#""reasoning":true,"thinkingLevelMap":{"off":null},"input":["text","image"],"#,
            r#""cost":{"input":3,"output":2.5,"cacheRead":0,"cacheWrite":0},"contextWindow":128000,"#,
            r#""maxTokens":16384,"headers":{"X-Team":"core"},"promptCache":{"k":1}}"#
        )
    );
}
