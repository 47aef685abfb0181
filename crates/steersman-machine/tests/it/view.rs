//! The values of names, as an agent's expressions see them.

use serde_json::{Value as Json, json};
use steersman_machine::stored::commit::Kind;
use steersman_machine::stored::ids::{Id, Time};
use steersman_machine::stored::interaction::Origin;
use steersman_machine::values::expression::{EvalKind, Expr, Template, to_json};
use steersman_machine::view::{Trace, Transport, View};
use steersman_testkit::log::Log;

const DEFINITION: &str = r#"
timezone: Europe/Oslo
config:
  limit: { type: integer, default: 100 }
  unbound: { type: string, default: here }
  base: { type: string, live: true, env: BASE }
secrets:
  key: { env: KEY }
state:
  token: { type: secret, optional: true }
  balance: { type: integer, optional: true }
  note: { type: string, default: hello }
tools:
  look: { description: Looks., parameters: { what: string, deep: optional boolean }, effect: read, command: [echo, "{{ args.what }}"] }
agents:
  desk:
    description: The desk.
    system: You help.
    tools: [look, helper]
  helper:
    description: Helps.
    parameters: { task: string, hint: optional string, tries: { type: integer, default: 3 } }
    state: { note: { type: string, default: inner }, own: optional string }
    system: You help.
entry: desk
"#;

fn log() -> (Log, Id, Id) {
    let mut log = Log::new(DEFINITION);
    let desk = log.start("desk", "Hello there");
    log.line(|l| {
        l.write(desk, "note", r#""outer""#);
        l.answer(desk, None);
        let call = l.call(desk, "look", r#"{"what":"x"}"#);
        l.result(desk, call, "seen");
        let bad = l.call(desk, "look", "{}");
        l.failed(desk, bad, "failed", "failed: no");
    });
    let helper = log.line(|l| {
        let helper = l.id();
        l.made(helper, &"helper".into(), Kind::Model, Some(desk));
        l.answer(desk, None);
        let (call, body) = l.agent_call(desk, "helper", helper, r#"{"task":"sum"}"#);
        l.said(helper, Origin::Call(call), body);
        helper
    });
    (log, desk, helper)
}

fn read(log: &Log, agent: Id, source: &str) -> Json {
    let view = View::new(&log.cx(), &log.snapshot, Some(agent));
    let value = Expr::parse(source).expect("it parses").eval_lenient(&view);
    to_json(&value.unwrap_or_else(|e| panic!("{source}: {e}"))).expect("plain values")
}

#[test]
fn names_mean_what_the_format_says() {
    let (log, desk, helper) = log();
    let cases = [
        (desk, "state.note", json!("outer")),
        (desk, "state.balance", Json::Null),
        (desk, "state.balance is none", json!(true)),
        (desk, "state.token is none", json!(true)),
        (
            desk,
            "state",
            json!({ "token": null, "balance": null, "note": "outer" }),
        ),
        (desk, "config.limit", json!(250)),
        (desk, "config.unbound", json!("here")),
        (desk, "calls.look.ok", json!(1)),
        (desk, "calls.look.failed", json!(1)),
        (desk, "calls.look.args.what", json!("x")),
        (desk, "calls.look.result", json!("seen")),
        (
            desk,
            "calls.helper",
            json!({ "ok": 0, "failed": 0, "args": null, "result": null }),
        ),
        (desk, "calls.helper.ok > 0", json!(false)),
        (desk, "args.message", json!("Hello there")),
        (
            desk,
            "message",
            json!({ "text": "Hello there", "from": "user", "artifacts": [] }),
        ),
        (desk, "agent", json!("desk")),
        (desk, "mode is none", json!(true)),
        (desk, "branch.name", json!("main")),
        (desk, "branch.index is none", json!(true)),
        (desk, "route.count", json!(0)),
        (desk, "route.last.agent == 'x'", json!(false)),
        (desk, "now.date", json!("2023-11-14")),
        (desk, "now.time", json!("23:13")),
        (desk, "now.weekday", json!("Tuesday")),
        (desk, "now.iso", json!("2023-11-14T23:13:20+01:00")),
        (helper, "state.note", Json::Null),
        (helper, "state.own", Json::Null),
        (helper, "state.balance", Json::Null),
        (helper, "args.task", json!("sum")),
        (helper, "args.hint", Json::Null),
        (helper, "args.tries", json!(3)),
        (
            helper,
            "message",
            json!({ "text": r#"{"task":"sum"}"#, "from": "desk", "artifacts": [] }),
        ),
        (helper, "calls.look.ok", json!(0)),
    ];
    for (agent, source, expected) in cases {
        assert_eq!(read(&log, agent, source), expected, "{source}");
    }
    for source in [
        "state.nothing",
        "config.nothing",
        "calls.nothing.ok",
        "args.nothing",
        "now.year",
        "nothing",
        "config.base",
        "secrets.none",
    ] {
        let view = View::new(&log.cx(), &log.snapshot, Some(desk));
        let error = Expr::parse(source).unwrap().eval(&view).unwrap_err();
        assert_eq!(error.kind, EvalKind::Undefined, "{source}");
    }
}

#[test]
fn the_time_is_that_of_the_tick() {
    let (log, desk, _) = log();
    let view = View::new(&log.cx(), &log.snapshot, Some(desk)).at(Time(0));
    let iso = Expr::parse("now.iso").unwrap().eval(&view).unwrap();
    assert_eq!(iso.as_str(), Some("1970-01-01T01:00:00+01:00"));
}

struct Opened;
impl Transport for Opened {
    fn secret(&self, name: &str) -> Result<Option<String>, String> {
        Ok(Some(format!("the {name}")))
    }
    fn live(&self, _: &str) -> Option<Json> {
        Some("http://x".into())
    }
    fn open(&self, sealed: &Json) -> Option<Json> {
        (sealed["$sealed"] == "t").then(|| "opened".into())
    }
}

#[test]
fn secrets_resolve_in_transport_fields_alone() {
    let (mut log, desk, _) = log();
    log.line(|l| l.write(desk, "token", r#"{"$sealed":"t"}"#));
    let template =
        Template::parse("{{ config.base }} {{ secrets.key }} {{ state.token }}").unwrap();
    let view = View::new(&log.cx(), &log.snapshot, Some(desk));
    assert!(template.render(&view).is_err());
    for part in [
        "{{ secrets.key }}",
        "{{ state.token }}",
        "{{ secrets.key ~ '' }}",
    ] {
        let error = Template::parse(part).unwrap().render(&view).unwrap_err();
        assert_eq!(error.kind, EvalKind::Sealed, "{part}");
    }
    let view = view.transport(&Opened);
    assert_eq!(template.render(&view).unwrap(), "http://x the key opened");
    let view = view.with(
        "args",
        json!({ "password": { "$sealed": "t" }, "other": { "$sealed": "u" } }),
    );
    let json = Template::parse("{{ args }}").unwrap().value(&view).unwrap();
    assert_eq!(json["password"], "opened");
    // A secret that cannot be opened stays sealed. Rendering it is an error, never an empty text.
    let error = Template::parse("{{ args.other }}")
        .unwrap()
        .render(&view)
        .unwrap_err();
    assert_eq!(error.kind, EvalKind::Sealed);
}

#[test]
fn reads_are_traced_by_entry() {
    let (mut log, desk, _) = log();
    let template =
        Template::parse("{{ state['no' ~ 'te'] }} {{ calls.look.ok }} {{ args.message }}").unwrap();
    let reads = {
        let trace = Trace::default();
        let view = View::new(&log.cx(), &log.snapshot, Some(desk)).traced(&trace);
        template.render(&view).unwrap();
        trace.take()
    };
    let paths: Vec<String> = reads
        .iter()
        .map(|r| format!("{}.{}", r.root, r.entry.as_deref().unwrap_or("*")))
        .collect();
    assert_eq!(paths, ["state.note", "calls.look", "args.*"]);
    let unchanged = |log: &Log| {
        View::new(&log.cx(), &log.snapshot, Some(desk)).unchanged(&reads, &Trace::default())
    };
    assert!(unchanged(&log));
    log.line(|l| l.write(desk, "balance", "7"));
    assert!(unchanged(&log), "an entry that was not read");
    log.line(|l| l.write(desk, "note", r#""outer""#));
    assert!(unchanged(&log), "the same value again");
    log.line(|l| l.write(desk, "note", r#""other""#));
    assert!(!unchanged(&log));
}
