//! Rows 19 to 34 of `crew.md` 21: what is accepted, what gets the follow-up,
//! what fails.

use crew_base::json::{Raw, from_text};
use crew_base::message::Message;
use crew_base::session::RunEnd;
use crew_cycle::report::Report;
use crew_cycle::{Cycle, Verdict};

/// Feeds a script: `text`, `report`, `bad report`, `read`, joined by `+` for
/// one answer; an ending in parentheses sets the stop reason.
fn feed(cycle: &mut Cycle, answer: &str) {
    let (body, stop) = match answer.split_once('(') {
        Some((body, stop)) => (body.trim(), stop.trim_end_matches(')')),
        None => (answer, "stop"),
    };
    let mut blocks = Vec::new();
    let mut results = Vec::new();
    for (n, part) in body.split('+').filter(|part| !part.is_empty()).enumerate() {
        let (name, arguments, is_error) = match part {
            "report" => ("crew_report", r#"{"outcome":"completed","report":"R"}"#, false),
            "bad report" => ("crew_report", r#"{"outcome":"completed","report":" "}"#, true),
            "read" => ("read", "{}", false),
            text => {
                blocks.push(format!(r#"{{"type":"text","text":"{text}"}}"#));
                continue;
            }
        };
        blocks.push(format!(
            r#"{{"type":"toolCall","id":"c{n}","name":"{name}","arguments":{arguments}}}"#
        ));
        results.push(format!(
            r#"{{"role":"toolResult","toolCallId":"c{n}","toolName":"{name}","content":[],"isError":{is_error}}}"#
        ));
    }
    let error = if stop == "error" { r#","errorMessage":"provider said no""# } else { "" };
    let answer = format!(
        r#"{{"role":"assistant","content":[{}],"stopReason":"{stop}"{error}}}"#,
        blocks.join(",")
    );
    cycle.message(&from_text::<Message>(&answer).expect("a message"));
    if stop != "error" && stop != "aborted" {
        for result in results {
            cycle.message(&from_text::<Message>(&result).expect("a message"));
        }
    }
}

fn check(script: &[&str], expected: &str) {
    let mut cycle = Cycle::default();
    let mut verdicts = Vec::new();
    for answer in script {
        if *answer == "|" {
            verdicts.push(match cycle.judge(&RunEnd::Ended) {
                Verdict::Accepted(report) => {
                    assert_eq!(report, Report::Completed { report: "R".into() });
                    "accepted".to_owned()
                }
                Verdict::FollowUp => "follow-up".to_owned(),
                Verdict::Failed(text) => format!("failed: {text}"),
                Verdict::Aborted(_) => "aborted".to_owned(),
            });
        } else {
            feed(&mut cycle, answer);
        }
    }
    assert_eq!(verdicts.join(", "), expected, "{script:?}");
}

#[test]
fn a_lone_good_report_is_accepted() {
    check(&["report", "|"], "accepted");
    check(&["working+report", "|"], "accepted"); // row 33
    check(&["read", "read", "report", "|"], "accepted"); // RES-9
    check(&["bad report", "report", "|"], "accepted"); // row 26
}

#[test]
fn a_report_beside_another_call_is_never_accepted() {
    check(&["report+read", "text", "|"], "follow-up"); // row 19
    check(&["report+read", "report", "|"], "accepted"); // row 20
    check(&["report+report", "|"], "follow-up"); // row 21
}

#[test]
fn one_follow_up_then_the_contract_is_broken() {
    check(&["text", "|", "report", "|"], "follow-up, accepted");
    check(
        &["first", "|", "second", "|"],
        "follow-up, failed: the subagent ended twice without a valid `crew_report` call: \
         its result contract was not met\nIts last text was: second",
    );
    check(&["cut(length)", "|"], "follow-up"); // row 31
    check(&["|", "report", "|"], "follow-up, accepted"); // RES-18
}

#[test]
fn provider_errors_end_at_once_whatever_came_before() {
    check(&["text", "(error)", "|"], "failed: provider said no\nIts last text was: text"); // row 29
    check(
        &["text", "|", "(error)", "|"],
        "follow-up, failed: provider said no\nIts last text was: text",
    ); // row 30
    check(&["report+read", "(error)", "|"], "failed: provider said no"); // row 32
    check(&["report", "half(aborted)", "|"], "aborted");
}

#[test]
fn an_early_report_counts_only_as_the_last_message() {
    check(&["report", "text", "|"], "follow-up");
    assert!(Report::read(&Raw::empty_object()).is_err());
}
