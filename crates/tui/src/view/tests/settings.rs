//! `/settings`: keys go through values, and what changed is read again when the
//! picker is left (`host.md` 8.3).

use super::world::World;
use crate::request::{Reply, Request, SettingOffer, SettingOrigin};

fn offer(key: &str, value: &str, choices: &[&str], origin: SettingOrigin) -> SettingOffer {
    SettingOffer {
        key: key.to_owned(),
        what: format!("what {key} decides"),
        value: value.to_owned(),
        choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
        origin,
    }
}

fn offers(icons: &str) -> Vec<SettingOffer> {
    vec![
        offer("crew.icons", icons, &["emoji", "symbols", "ascii"], SettingOrigin::User),
        offer("retry.enabled", "true", &["false", "true"], SettingOrigin::Project),
        offer("crew.motion", "true", &["false", "true"], SettingOrigin::Default),
    ]
}

fn listed(icons: &str) -> Reply {
    Reply::Settings { offers: offers(icons), problem: None }
}

fn open() -> World {
    let mut world = World::new(100, 30);
    world.type_text("/settings");
    world.keys("Enter");
    assert!(world.requests().iter().any(|request| matches!(request, Request::Settings)));
    world.reply(listed("emoji"));
    world
}

fn set(world: &mut World) -> Vec<(String, String)> {
    let set = |request| {
        let Request::Set { key, value } = request else { return None };
        Some((key, value))
    };
    world.requests().into_iter().filter_map(set).collect()
}

fn reloads(world: &mut World) -> bool {
    world.requests().iter().any(|request| matches!(request, Request::Reload))
}

#[test]
fn rows_say_the_value_and_who_set_it() {
    let mut world = open();
    let row = world.row_with("› crew.icons").unwrap();
    assert!(row.trim_end().ends_with("emoji   yours"), "{row}");
    let row = world.row_with("retry.enabled").unwrap();
    assert!(row.trim_end().ends_with("true   project"), "{row}");
    assert!(world.row_with("what crew.icons decides").is_some());
    world.keys("Down");
    let why = "what retry.enabled decides; this project's .pi/settings.json sets it";
    assert!(world.row_with(why).is_some());
}

#[test]
fn keys_go_through_the_values_of_a_row() {
    let check = |keys: &str, expected: &[(&str, &str)]| {
        let mut world = open();
        world.keys(keys);
        let expected: Vec<_> =
            expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        assert_eq!(set(&mut world), expected, "{keys}");
        assert!(world.view.is_full(), "{keys}");
    };
    check("Enter", &[("crew.icons", "symbols")]);
    check("Right", &[("crew.icons", "symbols")]);
    check("Left", &[("crew.icons", "ascii")]);
    check("Down Down Enter", &[("crew.motion", "false")]);
    // Set by the project: never changed.
    check("Down Enter", &[]);
    check("Down Left", &[]);
    // Letters search.
    check("m o t i Enter", &[("crew.motion", "false")]);
}

#[test]
fn leaving_reads_again_only_what_changed() {
    let mut world = open();
    world.keys("Esc");
    assert!(!world.view.is_full());
    assert!(!reloads(&mut world));

    let mut world = open();
    world.reply(listed("ascii"));
    assert!(!reloads(&mut world), "not before it is left");
    world.keys("Esc");
    assert!(reloads(&mut world));

    // There and back again.
    let mut world = open();
    world.reply(listed("ascii"));
    world.reply(listed("emoji"));
    world.keys("Esc");
    assert!(!reloads(&mut world));
}

#[test]
fn a_busy_owner_puts_the_reload_off_and_that_is_told() {
    let mut world = World::new(100, 30);
    world.run_starts();
    world.type_text("/settings");
    world.keys("Enter");
    world.reply(listed("emoji"));
    world.reply(listed("ascii"));
    world.keys("Esc");
    assert!(!reloads(&mut world));
    world.settle();
    let told = |line: &String| line.contains("the settings are kept; they count after /reload");
    assert!(world.printed.iter().any(told), "{:?}", world.printed);
}

#[test]
fn what_was_not_written_is_told_in_the_picker() {
    let mut world = open();
    world.keys("Enter");
    let problem = "crew.icons was not kept: \u{1b}[31mno room".to_owned();
    world.reply(Reply::Settings { offers: offers("emoji"), problem: Some(problem) });
    let row = world.row_with("crew.icons was not kept").unwrap();
    assert!(!row.contains('\u{1b}'), "{row:?}");
    assert!(world.view.is_full());
    world.keys("Esc");
    assert!(!reloads(&mut world));
}

#[test]
fn thoughts_follow_the_setting_that_is_read_after_the_start() {
    // The settings are read, and read again, when the face is there already.
    let mut world = World::new(100, 30);
    world.view.setup.thinking = false;
    world.keys("C-t");
    world.settle();
    assert!(world.printed.contains(&"thoughts are shown".to_owned()), "{:?}", world.printed);
    assert!(world.view.setup.thinking);
    world.view.setup.thinking = false;
    assert!(!world.view.look().thinking);
}
