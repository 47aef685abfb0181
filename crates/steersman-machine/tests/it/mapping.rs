//! Mapping of the raw outcome of a tool, person or wait to the result, its writes and the next call.

use serde_json::{Value as Json, json};
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::ids::Id;
use steersman_machine::stored::interaction::{Class, How, Target};
use steersman_machine::stored::outcome::{Mapped, NewWrite};
use steersman_machine::view::mapping::{self, Fault, Raw};
use steersman_testkit::log::Log;

const DEFINITION: &str = r#"
state:
  token:   { type: secret, optional: true }
  balance: { type: integer, optional: true }
  status:  { enum: [open, closed], default: open }
  tags:    { items: string, default: [], reduce: append }
  raw:     { type: any, optional: true }
tools:
  login:
    description: Logs in.
    parameters: { user: string }
    effect: read
    command: [login]
    set: { token: "{{ result.auth.token }}", raw: "{{ result }}" }
    result: "Logged in. {{ result.auth.token }} {{ result.note }}"
    then: { tool: after, args: { got: "{{ result }}" } }
  after: { description: Follows., parameters: { got: any }, effect: pure, set: { status: closed } }
  balance:
    description: The balance.
    effect: read
    command: [balance]
    set: { balance: "{{ result.cents }}" }
    on_error:
      http_404: { result: "Nothing at {{ error.status }}." }
      http_4xx: { result: "Not so: {{ error.code }}." }
      failed: { result: Failed., set: { balance: "{{ none }}" } }
      empty: { result: Empty. }
  pay:
    description: Pays.
    parameters: { cents: integer, to: optional string }
    effect: unsafe
    command: [pay]
    simulate: { paid: "{{ args.cents }}", to: "{{ args.to }}" }
    on_error: { "*": { result: "{{ error.code }}!" , set: { status: closed } } }
  login_again: { description: Logs in again., effect: read, command: [login], set: { token: again } }
  plain: { description: Plain., effect: pure, command: [plain], set: { tags: "{{ result }}" } }
  wait_for: { description: Waits., parameters: { t: string }, wait: { event: e, match: { t: "{{ args.t }}" }, timeout: 1h, on_timeout: "No answer to {{ args.t }}." }, result: "{{ result.text }}" }
  wait_bare: { description: Waits., wait: { time: 1h } }
events: { e: { fields: { t: string, text: string }, id: "{{ event.t }}" } }
agents:
  desk: { system: You help., tools: [login, login_again, balance, pay, plain, wait_for, wait_bare, after] }
entry: desk
"#;

/// A log with one open call: the log, the agent and the call.
fn open(name: &str, args: &str, target: Target) -> (Log, Id, Id) {
    let mut log = Log::new(DEFINITION);
    let desk = log.start("desk", "Hello");
    let call = log.line(|l| {
        l.answer(desk, None);
        l.call_to(desk, name, args, target, None).0
    });
    (log, desk, call)
}

fn map(name: &str, args: &str, target: Target, raw: Raw) -> Mapped {
    let (log, desk, call) = open(name, args, target);
    mapping::map(&log.cx(), &log.snapshot, desk, call, &raw)
}

fn tool(name: &str, raw: Raw) -> Mapped {
    map(name, "{}", Target::Tool(Class::Read), raw)
}

fn fails(code: &str) -> Raw {
    Raw::NotPerformed(Fault {
        status: code.strip_prefix("http_").and_then(|s| s.parse().ok()),
        ..Fault::new(code, "so it is")
    })
}

fn write(name: &str, value: Json, seal: bool) -> NewWrite {
    NewWrite {
        name: name.into(),
        value: (!value.is_null()).then_some(value),
        seal,
    }
}

/// A token that is written to a secret entry is sealed there, and is masked everywhere else.
#[test]
fn a_token_written_to_a_secret_is_sealed_and_masked() {
    let result = json!({ "auth": { "token": "s3cr3t-t0ken" }, "note": "use s3cr3t-t0ken", "n": 1 });
    let mapped = tool("login", Raw::Done(result));
    assert_eq!(mapped.how, How::Done);
    let (token, others): (Vec<_>, Vec<_>) = mapped.writes.iter().partition(|w| w.name == "token");
    assert_eq!(token, [&write("token", json!("s3cr3t-t0ken"), true)]);
    let masked = json!({ "auth": { "token": "(sealed)" }, "note": "use (sealed)", "n": 1 });
    assert_eq!(others, [&write("raw", masked.clone(), false)]);
    assert_eq!(
        mapped.shown.as_deref(),
        Some("Logged in. (sealed) use (sealed)")
    );
    assert_eq!(
        mapped.then,
        Some(("after".to_owned(), json!({ "got": masked })))
    );
    let rest = format!("{:?}", (&mapped.shown, &mapped.then, &others));
    assert!(!rest.contains("s3cr3t"));
}

/// Writes of a tool itself follow those of its `set`, and are checked like these.
#[test]
fn a_tool_writes_more_than_its_set_says() {
    let made = |writes: &[(&str, Json)]| Raw::Made {
        result: json!({ "cents": 900 }),
        made: Vec::new(),
        writes: writes
            .iter()
            .map(|(n, v)| ((*n).to_owned(), v.clone()))
            .collect(),
        mode: None,
    };
    let mapped = tool(
        "balance",
        made(&[("token", json!("s3cr3t")), ("balance", json!(null))]),
    );
    assert_eq!(mapped.shown.as_deref(), Some(r#"{"cents":900}"#));
    assert_eq!(
        mapped.writes,
        [
            write("balance", json!(900), false),
            write("token", json!("s3cr3t"), true),
            write("balance", json!(null), false),
        ]
    );
    for (name, value) in [("balanse", json!(1)), ("balance", json!("much"))] {
        let mapped = tool("login_again", made(&[(name, value)]));
        assert_eq!(
            (mapped.how, mapped.code.as_deref()),
            (How::Failed, Some("misfit"))
        );
        assert!(mapped.writes.is_empty());
    }
}

#[test]
fn a_result_is_shown_as_it_is_and_writes() {
    let mapped = tool("balance", Raw::Done(json!({ "cents": 900 })));
    assert_eq!(mapped.shown.as_deref(), Some(r#"{"cents":900}"#));
    assert_eq!(mapped.writes, [write("balance", json!(900), false)]);
    assert_eq!(
        tool("plain", Raw::Done(json!("words"))).shown.as_deref(),
        Some("words")
    );
    assert_eq!(
        tool("plain", Raw::Done(json!("words"))).writes,
        [write("tags", json!("words"), false)]
    );
    assert_eq!(
        tool("unknown", Raw::Done(json!([1]))).shown.as_deref(),
        Some("[1]")
    );
}

#[test]
fn what_does_not_fit_is_named_and_writes_nothing() {
    let mapped = tool("balance", Raw::Done(json!({ "cents": "900" })));
    // `failed` of `on_error` catches a misfit.
    assert_eq!(
        (mapped.how, mapped.code.as_deref()),
        (How::Failed, Some("misfit"))
    );
    let mapped = tool("plain", Raw::Done(json!({ "no": 1 })));
    assert_eq!(mapped.writes, []);
    assert_eq!(
        mapped.shown.as_deref(),
        Some("misfit: `state.tags` is an object, must be text")
    );
    let mapped = tool("plain", Raw::Done(json!(["a", 1])));
    assert_eq!(
        mapped.shown.as_deref(),
        Some("misfit: `state.tags[1]` is an integer, must be text")
    );
    let large = tool("plain", Raw::Done(json!("x".repeat(300 << 10))));
    assert!(large.shown.unwrap().contains("more than 64 KiB"));
    let missing = tool("login", Raw::Done(json!({ "auth": {} })));
    assert!(
        missing
            .shown
            .unwrap()
            .contains("`result.auth.token` is not defined")
    );
    assert_eq!(missing.writes, []);
}

#[test]
fn the_most_specific_code_wins() {
    let shown = |code| tool("balance", fails(code)).shown.unwrap();
    assert_eq!(shown("http_404"), "Nothing at 404.");
    assert_eq!(shown("http_422"), "Not so: http_422.");
    assert_eq!(shown("http_500"), "Failed.");
    assert_eq!(shown("timeout"), "Failed.");
    assert_eq!(shown("refused"), "refused: so it is");
    let failed = tool("balance", fails("failed"));
    assert_eq!(failed.writes, [write("balance", Json::Null, false)]);
    assert_eq!(
        tool("balance", Raw::Done(Json::Null)).shown.as_deref(),
        Some("Empty.")
    );
    assert_eq!(
        tool("balance", Raw::Done(json!([]))).code.as_deref(),
        Some("empty")
    );
    let unsafe_tool = |code| {
        map(
            "pay",
            r#"{"cents":5}"#,
            Target::Tool(Class::Unsafe),
            fails(code),
        )
    };
    for (code, how) in [
        ("refused", How::Refused),
        ("rejected", How::Refused),
        ("expired", How::Expired),
        ("failed", How::Failed),
        ("limit", How::Limit),
        ("in_doubt", How::Refused),
    ] {
        let mapped = unsafe_tool(code);
        assert_eq!((mapped.how, mapped.shown), (how, Some(format!("{code}!"))));
        assert_eq!(mapped.writes, [write("status", json!("closed"), false)]);
    }
    // The model sees the result of the earlier call, and no state changes.
    let elsewhere = unsafe_tool("done_before");
    assert_eq!(
        (elsewhere.how, elsewhere.shown.as_deref()),
        (How::DoneBefore, Some("so it is"))
    );
    assert_eq!(elsewhere.writes, []);
}

#[test]
fn nobody_knows() {
    let fault = || Raw::Unknown(Fault::new("timeout", "no answer in 60s"));
    let doubt = map(
        "pay",
        r#"{"cents":5}"#,
        Target::Tool(Class::Unsafe),
        fault(),
    );
    assert_eq!(
        (doubt.how, doubt.code.as_deref()),
        (How::Unknown, Some("in_doubt"))
    );
    let harmless = tool("plain", fault());
    assert_eq!(
        (harmless.how, harmless.code.as_deref()),
        (How::Failed, Some("timeout"))
    );
    assert_eq!(harmless.shown.as_deref(), Some("timeout: no answer in 60s"));
}

#[test]
fn waits_end_with_a_payload_or_what_stands_in_its_place() {
    let done = map(
        "wait_for",
        r#"{"t":"7"}"#,
        Target::Wait,
        Raw::Done(json!({ "t": "7", "text": "yes" })),
    );
    assert_eq!(done.shown.as_deref(), Some("yes"));
    let late = map("wait_for", r#"{"t":"7"}"#, Target::Wait, fails("timeout"));
    assert_eq!((late.how, late.code.as_deref()), (How::Done, None));
    assert_eq!(late.shown.as_deref(), Some("No answer to 7."));
    let bare = map("wait_bare", "{}", Target::Wait, fails("timeout"));
    assert_eq!(
        (bare.how, bare.code.as_deref()),
        (How::Expired, Some("timeout"))
    );
}

#[test]
fn dry_mode_answers_from_simulate() {
    let (log, desk, call) = open("pay", r#"{"cents":5}"#, Target::Tool(Class::Unsafe));
    let mapped = mapping::simulate(&log.cx(), &log.snapshot, desk, call).unwrap();
    assert_eq!(
        (mapped.how, mapped.shown.as_deref()),
        (How::Simulated, Some(r#"{"paid":5}"#))
    );
    let (log, desk, call) = open("balance", "{}", Target::Tool(Class::Read));
    assert_eq!(
        mapping::simulate(&log.cx(), &log.snapshot, desk, call),
        None
    );
}

#[test]
fn a_person_is_named() {
    let (log, desk, call) = open("ask", r#"{"question":"?"}"#, Target::Person("user".into()));
    let mapped = mapping::answer(&log.cx(), &log.snapshot, desk, call, "blue", &"user".into());
    assert_eq!(
        (
            mapped.how,
            mapped.shown.as_deref(),
            mapped.by.as_ref().map(Decider::word)
        ),
        (How::Done, Some("blue"), Some("user"))
    );
}
