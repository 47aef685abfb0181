//! The tables of codes, and the page of the guides that lists the failures of models.

use std::collections::BTreeMap;
use steersman_machine::stored::codes::{Caught, Code, FailureCode, http, http_class, is_http};
use steersman_machine::stored::interaction::How;
use steersman_machine::stored::outcome::{Failure, Retry};

#[test]
fn each_text_names_one_code() {
    for code in Code::ALL {
        assert_eq!(Code::named(code.text()), Some(*code));
    }
    for code in FailureCode::ALL {
        assert_eq!(FailureCode::named(code.text()), Some(*code));
    }
    for other in ["http_404", "mcp_-32000", "out_of_stock", "Refused", ""] {
        assert_eq!(Code::named(other), None, "{other}");
    }
}

/// A code that `failed` catches closes its call as failed or cancelled.
#[test]
fn what_failed_is_caught_as_a_failure() {
    for code in Code::ALL {
        if code.caught() == Caught::Failed {
            let closes = matches!(code.how(), How::Failed | How::Cancelled);
            assert!(closes, "{code}");
        }
    }
}

#[test]
fn codes_of_http_have_classes() {
    assert_eq!(http(404), "http_404");
    assert_eq!(http_class("http_404").as_deref(), Some("http_4xx"));
    for other in ["http_40", "http_", "failed", "mcp_-32000"] {
        assert_eq!(http_class(other), None, "{other}");
    }
    for (code, known) in [
        ("http_404", true),
        ("http_4xx", true),
        ("http_999", false),
        ("http_4x", false),
        ("failed", false),
    ] {
        assert_eq!(is_http(code), known, "{code}");
    }
}

/// A failure code that the engine does not know counts as a paid answer, does not count against the place, and no other
/// model is asked.
#[test]
fn an_unknown_failure_is_possible() {
    let failure = Failure {
        code: "out_of_coffee".into(),
        ..Failure::new(FailureCode::Timeout, "no answer")
    };
    assert_eq!(failure.known(), None);
    assert!(failure.was_asked() && !failure.may_fall_back());
    assert_eq!(failure.place(), FailureCode::BadResponse.place());
}

/// The guide lists each code once, and says if the call is tried again and if another model is asked.
#[test]
fn the_guide_lists_the_failures_of_models() {
    let page = include_str!("../../../../docs/guides/models.md");
    let (_, table) = page
        .split_once("| code | meaning | tried again | another model |\n|---|---|---|---|\n")
        .expect("the table");
    let mut listed = BTreeMap::new();
    for line in table.lines().take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [codes, _, again, another] = cells[..] else {
            panic!("{line}");
        };
        for code in codes.split(',').map(|code| code.trim().trim_matches('`')) {
            let says = (again != "no", another != "no");
            assert_eq!(listed.insert(code, says), None, "{code} is listed twice");
        }
    }
    let known = FailureCode::ALL.iter().map(|code| {
        let again = code.retry() != Retry::Never;
        (code.text(), (again, code.may_fall_back()))
    });
    assert_eq!(listed, known.collect::<BTreeMap<_, _>>());
}
