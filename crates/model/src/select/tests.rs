use std::collections::BTreeMap;

use super::*;

const MODELS: &str = r#"{"providers":{
    "fake":{"api":"a","baseUrl":"b","models":[{"id":"m1","reasoning":true},{"id":"m2","name":"Second One"},
        {"id":"odd/x[1m]"},{"id":"odd/x1"},{"id":"v:low"},
        {"id":"alias-20250101"},{"id":"alias-1"},{"id":"alias-2"}]},
    "other":{"api":"a","baseUrl":"b","models":[{"id":"m1"},{"id":"zai/glm"},{"id":"only-here"}]},
    "zai":{"models":[{"id":"glm"}]},
    "fake/deep":{"api":"a","baseUrl":"b","models":[{"id":"m1"}]}}}"#;

fn catalog() -> Catalog {
    let (catalog, error) = Catalog::build(Some(("models.json", MODELS)));
    assert_eq!(error, None);
    catalog
}

/// Chooses with credentials for the providers in `with_key`.
fn choose(text: &str, provider: Option<&str>, with_key: &[&str]) -> Result<Selected, SelectError> {
    let query = Query { text, provider, thinking: None };
    resolve_model(query, &catalog(), &|provider| with_key.contains(&provider))
}

fn chosen(text: &str, with_key: &[&str]) -> String {
    match choose(text, None, with_key) {
        Ok(selected) => selected.model.reference(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn exact_names_come_before_parts() {
    // host.md 1.7.3, 11.103, 11.104.
    let check = |text: &str, with_key: &[&str], expected: &str| {
        assert_eq!(chosen(text, with_key), expected, "{text}");
    };
    check("fake/m1", &[], "fake/m1");
    check("FAKE/M1", &[], "fake/m1");
    check("fake/deep/m1", &[], "fake/deep/m1");
    check("fake/odd/x[1m]", &[], "fake/odd/x[1m]");
    check("odd/x[1m]", &[], "fake/odd/x[1m]");
    check("m2", &[], "fake/m2");
    check("only", &[], "other/only-here");
    check("second", &[], "fake/m2");
    check("fake/second", &[], "fake/m2");
    check("zai/glm", &["zai", "other"], "zai/glm");
    check("zai/glm", &["other"], "other/zai/glm");
    check("zai/glm", &[], "zai/glm");
    check("alias", &[], "fake/alias-2");
    check("alias-20", &[], "fake/alias-20250101");
}

#[test]
fn of_several_providers_the_one_with_credentials_wins() {
    // host.md 1.7.4.
    assert_eq!(chosen("m1", &["other"]), "other/m1");
    let ambiguous = |with_key: &[&str], expected: &[&str], is_usable: bool| {
        let Err(SelectError::Ambiguous { candidates, usable, .. }) = choose("m1", None, with_key)
        else {
            panic!("m1 is ambiguous");
        };
        assert_eq!(
            (candidates, usable),
            (expected.iter().map(|e| (*e).to_owned()).collect(), is_usable)
        );
    };
    ambiguous(&[], &["fake/m1", "other/m1", "fake/deep/m1"], false);
    ambiguous(&["fake", "other"], &["fake/m1", "other/m1"], true);
}

#[test]
fn a_level_suffix_counts_only_when_the_whole_text_matches_nothing() {
    // host.md 1.7.3.
    let check = |text: &str, expected: &str, level: Option<ThinkingLevel>| {
        let selected = choose(text, None, &["fake"]).unwrap();
        assert_eq!((selected.model.reference().as_str(), selected.thinking), (expected, level));
    };
    check("fake/m1:high", "fake/m1", Some(ThinkingLevel::High));
    check("fake/v:low", "fake/v:low", None);
    check("fake/v:low:low", "fake/v:low", Some(ThinkingLevel::Low));
    check("second:off", "fake/m2", Some(ThinkingLevel::Off));
    assert!(matches!(choose("second:loud", None, &[]), Err(SelectError::NotFound { .. })));
}

#[test]
fn an_unknown_id_of_a_known_provider_is_accepted_with_a_warning() {
    // host.md 1.7.5.
    let check = |text: &str, expected: &str, reasons: bool| {
        let selected = choose(text, None, &[]).unwrap();
        assert_eq!(selected.model.reference(), expected);
        assert_eq!(selected.model.reasoning, reasons, "{text}");
        let warning = SelectWarning::UnknownModel { model: expected.to_owned() };
        assert_eq!(selected.warnings, [warning]);
    };
    check("other/new", "other/new", false);
    check("other/new:high", "other/new", true);
    check("other/new:off", "other/new", false);
    check("openrouter/vendor/next:free", "openrouter/vendor/next:free", true);
    let query = Query { text: "new", provider: Some("OTHER"), thinking: Some(ThinkingLevel::Low) };
    let selected = resolve_model(query, &catalog(), &|_| false).unwrap();
    assert_eq!(selected.model.reference(), "other/new");
    assert!(selected.model.reasoning);
    assert!(choose("nobody/new", None, &[]).is_err());
    assert!(choose("other/", None, &[]).is_err());
    assert!(choose("", None, &[]).is_err());
}

#[test]
fn a_named_provider_bounds_the_search() {
    let check = |text: &str, provider: &str, expected: &str| {
        let selected = choose(text, Some(provider), &[]).unwrap();
        assert_eq!(selected.model.reference(), expected);
    };
    check("m1", "other", "other/m1");
    check("other/m1", "other", "other/m1");
    check("zai/glm", "other", "other/zai/glm");
    check("only", "Other", "other/only-here");
    check("crew", "demo", "demo/crew");
    assert_eq!(
        choose("m1", Some("nobody"), &[]),
        Err(SelectError::UnknownProvider { provider: "nobody".to_owned() })
    );
}

#[test]
fn the_scripted_model_is_taken_by_its_full_name_only() {
    // host.md 1.7.1, product.md P-3.
    let all = |_: &str| true;
    let catalog = catalog();
    assert_eq!(chosen("demo/crew", &[]), "demo/crew");
    for text in ["crew", "scripted", "demo", "demo/cre", "demo/*", "demo/other"] {
        let chosen = choose(text, None, &["demo"]);
        assert!(chosen.is_err(), "{text}: {chosen:?}");
        assert_eq!(scope([text], &catalog, &all).models, [], "{text}");
    }
    assert_eq!(scope(["demo/crew"], &catalog, &all).models.len(), 1);
    let demo_only = |provider: &str| provider == "demo";
    let startup = startup_model(StartupInputs::default(), &catalog, &demo_only).unwrap();
    assert_eq!(startup, Startup::default());
    let saved = StartupInputs { saved: Some(("demo", "crew")), ..StartupInputs::default() };
    assert_eq!(startup_model(saved, &catalog, &demo_only).unwrap(), Startup::default());
    let session = StartupInputs { session: Some(("demo", "crew")), ..StartupInputs::default() };
    let startup = startup_model(session, &catalog, &demo_only).unwrap();
    assert_eq!(startup.model.unwrap().reference(), "demo/crew");
    assert_eq!(cycle_model(None, &[], &catalog, &demo_only, true), None);
}

fn scoped(patterns: &[&str], with_key: &[&str]) -> (Vec<String>, Vec<SelectWarning>) {
    let usable = |provider: &str| with_key.contains(&provider);
    let scope = scope(patterns.iter().copied(), &catalog(), &usable);
    let name = |scoped: &Scoped| match scoped.thinking {
        Some(level) => format!("{}:{}", scoped.model.reference(), level.word()),
        None => scoped.model.reference(),
    };
    (scope.models.iter().map(name).collect(), scope.warnings)
}

#[test]
fn patterns_make_the_scope() {
    // host.md 1.7.6.
    let check = |patterns: &[&str], expected: &[&str]| {
        let (models, warnings) = scoped(patterns, &["fake"]);
        assert_eq!(models, expected, "{patterns:?}");
        assert_eq!(warnings, [], "{patterns:?}");
    };
    check(&["fake/m?"], &["fake/m1", "fake/m2"]);
    check(&["M2", " ", "*/M*"], &["fake/m2", "fake/m1"]);
    check(&["fake/m*:high"], &["fake/m1:high", "fake/m2:high"]);
    check(&["fake/m2:low", "m1"], &["fake/m2:low", "fake/m1"]);
    // An exact id with brackets is no glob.
    check(&["odd/x[1m]"], &["fake/odd/x[1m]"]);
    check(&["fake/odd/x[1m]:low"], &["fake/odd/x[1m]:low"]);
    check(&["odd/x[123]"], &["fake/odd/x1"]);
}

#[test]
fn a_scope_warns_of_what_it_could_not_take_as_meant() {
    // host.md 1.7.6.
    let pattern = |pattern: &str| pattern.to_owned();
    let (models, warnings) = scoped(&["m1"], &["fake", "other"]);
    assert_eq!(models, ["fake/m1", "other/m1"]);
    let several = SelectWarning::SeveralProviders { pattern: pattern("m1"), models };
    assert_eq!(warnings, [several]);
    let (models, warnings) = scoped(&["nothing*", "nix"], &["fake"]);
    assert!(models.is_empty());
    let none = |text: &str| SelectWarning::NoMatch { pattern: pattern(text) };
    assert_eq!(warnings, [none("nothing*"), none("nix")]);
    let (models, warnings) = scoped(&["only-here"], &["fake"]);
    assert!(models.is_empty());
    let unusable = SelectWarning::NoCredentials {
        pattern: pattern("only-here"),
        models: vec![pattern("other/only-here")],
    };
    assert_eq!(warnings, [unusable]);
}

fn started(inputs: StartupInputs<'_>, with_key: &[&str]) -> (String, Vec<SelectWarning>) {
    let usable = |provider: &str| with_key.contains(&provider);
    let startup = startup_model(inputs, &catalog(), &usable).unwrap();
    let model = startup.model.map_or("none".to_owned(), |model| model.reference());
    (model, startup.warnings)
}

#[test]
fn a_session_starts_with_the_first_model_that_is_asked_for() {
    // host.md 1.7.1.
    let all = ["fake", "other", "google"];
    let catalog = catalog();
    let usable = |provider: &str| all.contains(&provider);
    let two = scope(["other/only-here:high", "fake/m2"], &catalog, &usable).models;
    let query = Some(Query { text: "fake/m1", ..Query::default() });
    let none = StartupInputs::default();
    let saved = Some(("fake", "m2"));
    let check = |inputs: StartupInputs<'_>, with_key: &[&str], expected: &str| {
        assert_eq!(started(inputs, with_key), (expected.to_owned(), vec![]));
    };
    check(StartupInputs { query, scope: &two, saved, ..none }, &all, "fake/m1");
    check(StartupInputs { scope: &two, saved, ..none }, &all, "fake/m2");
    check(
        StartupInputs { scope: &two, saved: Some(("fake", "m1")), ..none },
        &all,
        "other/only-here",
    );
    check(StartupInputs { scope: &two, ..none }, &all, "other/only-here");
    let session = Some(("other", "m1"));
    check(StartupInputs { scope: &two, saved, session, ..none }, &all, "other/m1");
    check(StartupInputs { saved, ..none }, &all, "fake/m2");
    check(StartupInputs { saved, ..none }, &["google"], "google/gemini-3.8-flash");
    check(none, &["zai"], "zai/glm");
    check(none, &[], "none");
}

#[test]
fn a_session_whose_model_is_gone_says_what_is_used_instead() {
    // host.md 1.7.1.
    let check = |session, with_key: &[&str], used: Option<&str>| {
        let inputs = StartupInputs { session: Some(session), ..StartupInputs::default() };
        let (model, warnings) = started(inputs, with_key);
        assert_eq!(model, used.unwrap_or("none"));
        let (provider, id) = session;
        let warning = SelectWarning::SessionModelReplaced {
            wanted: format!("{provider}/{id}"),
            used: used.map(str::to_owned),
        };
        assert_eq!(warnings, [warning]);
    };
    check(("fake", "gone"), &["fake"], Some("fake/m1"));
    check(("other", "m1"), &["fake"], Some("fake/m1"));
    check(("other", "m1"), &[], None);
}

#[test]
fn cycling_wraps_within_the_scope_or_all_usable_models() {
    let catalog = catalog();
    let usable = |provider: &str| provider == "other";
    let next = |current: &str, scope: &[Scoped], forward: bool| {
        let current = catalog.get("other", current);
        let cycled = cycle_model(current.as_deref(), scope, &catalog, &usable, forward)?;
        Some((cycled.model.id.clone(), cycled.is_scoped))
    };
    let to = |id: &str, is_scoped| Some((id.to_owned(), is_scoped));
    assert_eq!(next("m1", &[], true), to("zai/glm", false));
    assert_eq!(next("only-here", &[], true), to("m1", false));
    assert_eq!(next("m1", &[], false), to("only-here", false));
    let one = scope(["other/m1"], &catalog, &usable).models;
    assert_eq!(next("m1", &one, true), None);
    assert_eq!(next("only-here", &one, true), to("m1", true));
}

#[test]
fn thinking_levels_follow_their_order_of_precedence() {
    // host.md 1.7.2, 3.9.2, 3.9.3.
    use ThinkingLevel::{High, Low, Medium, Minimal, Off, Xhigh};
    let catalog = catalog();
    let thinks = catalog.get("fake", "m1").unwrap();
    let plain = catalog.get("fake", "m2").unwrap();
    let per_model = BTreeMap::from([("fake/m1".to_owned(), Minimal)]);
    let mut inputs = ThinkingInputs {
        flag: Some(Xhigh),
        pattern: Some(Low),
        session: Some(Off),
        per_model: Some(&per_model),
        saved: Some(High),
    };
    assert_eq!(startup_thinking(None, inputs), Off);
    assert_eq!(startup_thinking(Some(&plain), inputs), Off);
    assert_eq!(startup_thinking(Some(&thinks), inputs), High);
    inputs.flag = None;
    assert_eq!(startup_thinking(Some(&thinks), inputs), Low);
    assert_eq!(switch_thinking(&thinks, inputs), Low);
    inputs.pattern = None;
    assert_eq!(startup_thinking(Some(&thinks), inputs), Off);
    assert_eq!(switch_thinking(&thinks, inputs), Minimal);
    inputs.session = None;
    assert_eq!(startup_thinking(Some(&thinks), inputs), Minimal);
    inputs.per_model = None;
    assert_eq!(startup_thinking(Some(&thinks), inputs), High);
    inputs.saved = None;
    assert_eq!(startup_thinking(Some(&thinks), inputs), Medium);
    inputs.session = Some(Low);
    assert_eq!(switch_thinking(&thinks, inputs), Low);
    assert_eq!(cycle_level(&thinks, High), Some(Off));
    assert_eq!(cycle_level(&thinks, Off), Some(Minimal));
    assert_eq!(cycle_level(&thinks, Xhigh), Some(Off));
    assert_eq!(cycle_level(&plain, Off), None);
}

#[test]
fn the_list_holds_usable_models_and_marks_the_scripted_one() {
    // host.md 1.5.2, product.md P-3.
    let catalog = catalog();
    let usable = |provider: &str| provider == "other" || provider == "demo";
    let names = |search: Option<&str>| -> Vec<String> {
        let rows = list_models(&catalog, &usable, search);
        let name = |row: ListRow| {
            let mark = if row.scripted { " scripted" } else { "" };
            format!("{}/{}{mark}", row.provider, row.id)
        };
        rows.into_iter().map(name).collect()
    };
    let all = ["demo/crew scripted", "other/m1", "other/only-here", "other/zai/glm"];
    assert_eq!(names(None), all);
    assert_eq!(names(Some("OTHER here")), ["other/only-here"]);
    assert_eq!(names(Some("nothing")), [""; 0]);
    let row = &list_models(&catalog, &|provider| provider == "fake", Some("fake/m1"))[0];
    assert_eq!((row.context_window, row.max_tokens), (128_000, 16_384));
    assert_eq!((row.thinking, row.images), (true, false));
}
