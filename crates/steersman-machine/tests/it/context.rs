//! The neutral request: everything that a model sees.

use arbtest::arbitrary::{self, Unstructured};
use arbtest::arbtest;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use steersman_machine::context::{
    self, Content, RENDER_VERSION, RenderCache, Request, due_watermarks, explain, request,
};
use steersman_machine::network::{Does, ToolChoice};
use steersman_machine::questions::Purpose;
use steersman_machine::stored::engine::{Caller, Judged};
use steersman_machine::stored::ids::Id;
use steersman_machine::stored::interaction::{Call, Class, End, How, Interaction, Origin, Target};
use steersman_testkit::log::{Log, result};
use steersman_testkit::random;

pub(super) const DEFINITION: &str = r#"
timezone: Europe/Oslo
models: { default: { provider: compatible, model: m, url: "http://localhost", temperature: 0, params: { seed: 7 } } }
state:
  note: { type: string, default: none yet }
  other: { type: integer, default: 0 }
  token: { type: secret, optional: true }
tools:
  look:
    description: Looks at a thing.
    parameters: { what: { type: string, description: The thing. }, deep: optional boolean, times: { type: integer, minimum: 1, default: 1 } }
    effect: read
    command: [echo, "{{ args.what }}"]
  told:
    description: Is told as text.
    parameters: { n: integer }
    effect: read
    command: [echo]
    render: { call: "I look at {{ args.n }}.", result: "{{ result.x }} of {{ state.note }}" }
  noted:
    description: Shows with the note.
    parameters: { n: integer }
    effect: read
    command: [echo]
    render: { result: "{{ result }} ({{ state.note }}, {{ args.n }})" }
  login:
    description: Logs in.
    parameters: { user: string, password: { type: secret, ask: "Your password?" } }
    effect: read
    command: [login]
    set: { token: "{{ result }}" }
  after: { description: Follows., parameters: { got: any }, effect: pure, set: { other: 1 } }
agents:
  desk:
    description: The desk.
    system: "You help. Note: {{ state.note }}."
    tools:
      - look
      - { tool: noted, as: see, args: { n: 3 } }
      - told
      - login
      - { agent: helper, named: true }
      - { agent: reader, view: shared }
      - { tool: after, when: state.other > 0 }
    context: { now: "It is {{ now.date }}.", keep_exchanges: 4 }
  helper:
    description: Helps.
    parameters: { task: string }
    system: "You do {{ args.task }}."
    output: { fields: { sum: integer, why: optional string } }
  reader: { description: Reads along., parameters: { message: string }, system: You read. }
entry: desk
"#;

pub(super) fn ask(log: &Log, agent: Id, cache: &mut RenderCache) -> Request {
    request(&log.cx(), log, &log.snapshot, agent, cache).expect("templates render")
}

pub(super) fn full(log: &Log, agent: Id) -> Request {
    ask(log, agent, &mut RenderCache::default())
}

/// A request as text that people can read.
pub(super) fn print(request: &Request) -> String {
    let mut out = String::new();
    for segment in &request.segments {
        let _ = write!(out, "{:?}: ", segment.part);
        match &segment.content {
            Content::System(text) => writeln!(out, "system {text:?}"),
            Content::Tools(tools) => {
                let names: Vec<&str> = tools.iter().map(|t| &*t.name).collect();
                writeln!(out, "tools {names:?}")
            }
            Content::User(text) => writeln!(out, "user {text:?}"),
            Content::File(file) => writeln!(out, "file {} {} {}", file.name, file.media, file.len),
            Content::Assistant { text, calls, .. } => {
                let _ = write!(out, "assistant {:?}", text.as_deref().unwrap_or(""));
                for call in calls {
                    let _ = write!(out, " {}:{}({})", call.label, call.name, call.args);
                }
                writeln!(out)
            }
            Content::Result {
                label,
                name,
                text,
                error,
            } => {
                let mark = if *error { "error" } else { "result" };
                writeln!(out, "{mark} {label}:{name} {text:?}")
            }
        }
        .expect("a text takes all");
    }
    out
}

/// Rules of all providers: the results of a message's calls come directly after it and in order, and there are no other
/// results.
pub(super) fn valid(request: &Request) {
    let mut owed: Vec<(String, String)> = Vec::new();
    for segment in &request.segments {
        match &segment.content {
            Content::Assistant {
                text,
                calls,
                opaque,
            } => {
                assert!(
                    owed.is_empty(),
                    "a call without its result\n{}",
                    print(request)
                );
                assert!(
                    text.is_some() || !calls.is_empty() || opaque.is_some(),
                    "an empty message"
                );
                owed = calls
                    .iter()
                    .rev()
                    .map(|c| (c.label.clone(), c.name.clone()))
                    .collect();
                let mut labels: Vec<&String> = calls.iter().map(|c| &c.label).collect();
                labels.sort();
                labels.dedup();
                assert_eq!(labels.len(), calls.len(), "one label twice");
                for call in calls {
                    assert!(serde_json::from_str::<Json>(&call.args).is_ok_and(|a| a.is_object()));
                }
            }
            Content::Result { label, name, .. } => {
                let call = owed
                    .pop()
                    .unwrap_or_else(|| panic!("an orphan result\n{}", print(request)));
                assert_eq!((&call.0, &call.1), (label, name));
            }
            Content::System(_) | Content::Tools(_) | Content::User(_) | Content::File(_) => {
                assert!(
                    owed.is_empty(),
                    "something between call and result\n{}",
                    print(request)
                );
            }
        }
    }
    assert!(owed.is_empty(), "a call without its result at the end");
}

#[test]
fn a_request_in_the_order_of_its_parts() {
    let mut log = Log::new(DEFINITION);
    let desk = log.start("desk", "Look at it.");
    log.line(|l| l.write(desk, "note", r#""fine""#));
    let (a, b) = log.line(|l| {
        l.answer(desk, Some("I look."));
        (
            l.call(desk, "look", r#"{"what":"x"}"#),
            l.call(desk, "noted", r#"{"n":3}"#),
        )
    });
    log.line(|l| l.result(desk, b, "seen"));
    log.line(|l| l.failed(desk, a, "http_404", "http_404: not there"));
    log.line(|l| {
        l.answer(desk, Some("Not there."));
        l.finished(desk, End::Turn);
    });
    log.line(|l| l.say(desk, "And now?"));
    let request = full(&log, desk);
    valid(&request);
    assert_eq!(
        print(&request),
        r#"System: system "You help. Note: fine."
Tools: tools ["look", "see", "told", "login", "helper", "reader"]
History: user "Look at it."
History: assistant "I look." call.3002:look({"what":"x"}) call.3003:noted({"n":3})
History: error call.3002:look "http_404: not there"
History: result call.3003:noted "seen (fine, 3)"
History: assistant "Not there."
History: user "And now?"
Now: user "It is 2023-11-14."
"#
    );
    assert_eq!(
        request.params.to_vec(),
        [
            ("seed".to_owned(), json!(7)),
            ("temperature".to_owned(), json!(0.0))
        ]
    );
    assert_eq!((request.choice, request.output), (ToolChoice::Auto, None));
    // Other bytes need a new version of the renderer, because old requests could not be reproduced.
    assert_eq!(RENDER_VERSION, 1);
    assert_eq!(
        request.digest.to_string(),
        "1871ee4e0d04e6383d12f9724f209902"
    );
}

/// The question of a judgement is not made by `context.now`, after which it stands.
#[test]
fn the_question_of_a_judgement_is_explained_by_its_own_template() {
    let mut log = Log::new(
        r#"
models: { default: { provider: compatible, model: m, url: "http://localhost" } }
tools:
  spend:
    description: Spends.
    parameters: { n: integer }
    effect: unsafe
    command: [echo]
    reflect: { prompt: "Is {{ args.n }} right?" }
agents:
  desk: { system: You pay., tools: [spend], context: { now: "It is {{ now.date }}." } }
"#,
    );
    let desk = log.start("desk", "Pay.");
    let spend = log.line(|l| {
        l.answer(desk, None);
        let target = Target::Tool(Class::Unsafe);
        let spend = l.call_to(desk, "spend", r#"{"n":9}"#, target, None).0;
        let (id, args, number) = (l.id(), l.text("{}"), l.number());
        let judge = Call {
            number,
            id,
            name: "reflect".into(),
            by: Caller::Judge(Judged::Args(spend, "spend".into())),
            seen: None,
            target: Target::Tool(Class::Read),
            label: None,
            args,
        };
        l.push(desk, Interaction::Call(judge));
        spend
    });
    let explained = explain(&log.cx(), &log, &log.snapshot, desk).expect("templates render");
    let text = print(&explained.request);
    assert!(
        text.contains("Now: user \"It is 2023-11-14.\"\nNow: user \"Is 9 right?"),
        "{text}"
    );
    let [.., now, question] = &explained.origins[..] else {
        panic!("{:?}", explained.origins)
    };
    assert_eq!(now.template.as_deref(), Some("agents.desk.context.now"));
    assert_eq!(
        question.template.as_deref(),
        Some("tools.spend.reflect.prompt")
    );
    assert_eq!(question.lines, [spend.line()]);
    // The arguments are those of the call on that line, so they are not listed as reads of the state.
    assert!(question.reads.is_empty());
    assert_eq!(explained.origins.len(), explained.request.segments.len());
}

#[test]
fn tools_are_told_without_what_the_model_may_not_fill_in() {
    let mut log = Log::new(DEFINITION);
    let desk = log.start("desk", "Hello");
    let request = full(&log, desk);
    let Content::Tools(tools) = &request.segments[1].content else {
        panic!()
    };
    let schema = |n: usize| serde_json::from_str::<Json>(&tools[n].parameters).unwrap();
    assert_eq!(
        schema(0),
        json!({
            "type": "object",
            "properties": {
                "what": { "type": "string", "description": "The thing." },
                "deep": { "type": "boolean" },
                "times": { "type": "integer", "minimum": 1, "default": 1 },
            },
            "required": ["what"],
            "additionalProperties": false,
        })
    );
    assert_eq!(
        (&*tools[1].name, schema(1)["properties"].clone()),
        ("see", json!({}))
    );
    assert_eq!(
        schema(3)["properties"],
        json!({ "user": { "type": "string" } })
    );
    assert_eq!(
        (&*tools[4].name, schema(4)["required"].clone()),
        ("helper", json!(["name", "task"]))
    );
    log.line(|l| l.write(desk, "other", "1"));
    let Content::Tools(tools) = &full(&log, desk).segments[1].content else {
        panic!()
    };
    assert_eq!(
        tools.last().unwrap().name,
        "after",
        "offered while its `when` holds"
    );
}

#[test]
fn a_called_agent_sees_its_arguments() {
    let mut log = Log::new(DEFINITION);
    let desk = log.start("desk", "Hello");
    let helper = log.line(|l| {
        l.answer(desk, None);
        let helper = l.id();
        l.made(
            helper,
            &"helper".into(),
            steersman_machine::stored::commit::Kind::Model,
            Some(desk),
        );
        let (call, args) = l.agent_call(desk, "helper", helper, r#"{"task":"sum 1..10"}"#);
        l.said(helper, Origin::Call(call), args);
        helper
    });
    let request = full(&log, helper);
    assert_eq!(
        print(&request),
        "System: system \"You do sum 1..10.\"\nHistory: user \"sum 1..10\"\n"
    );
    let output: Json = serde_json::from_str(&request.output.unwrap()).unwrap();
    assert_eq!(output["properties"]["sum"], json!({ "type": "integer" }));
    assert_eq!(output["required"], json!(["sum"]));
    assert_eq!(request.choice, ToolChoice::Auto);
}

#[test]
fn a_shared_view_shows_what_the_caller_saw() {
    let mut log = Log::new(DEFINITION);
    let desk = log.start("desk", "What is it?");
    let look = log.line(|l| {
        l.answer(desk, Some("I look."));
        l.call(desk, "look", r#"{"what":"x"}"#)
    });
    log.line(|l| l.result(desk, look, "a house"));
    let reader = log.line(|l| {
        l.answer(desk, None);
        let reader = l.id();
        l.made(
            reader,
            &"reader".into(),
            steersman_machine::stored::commit::Kind::Model,
            Some(desk),
        );
        let (call, args) = l.agent_call(desk, "reader", reader, r#"{"message":"Check it."}"#);
        l.said(reader, Origin::Call(call), args);
        reader
    });
    assert_eq!(
        print(&full(&log, reader)),
        r#"System: system "You read."
History: user "What desk has seen so far, for information:\nuser: What is it?\nassistant: I look.\nassistant called: look {\"what\":\"x\"}\nlook: a house"
History: user "Check it."
"#
    );
}

/// An exchange that the engine opened is one user message. A chain of tools is one call with the last result.
#[test]
fn an_exchange_of_the_engine_is_one_message_and_a_chain_is_one_call() {
    let mut log = Log::new(DEFINITION);
    let desk = log.start("desk", "Go");
    let first = log.line(|l| {
        l.answer(desk, None);
        l.call(desk, "look", r#"{"what":"x"}"#)
    });
    let second = log.line(|l| {
        l.result(desk, first, "raw");
        l.chained(desk, "after", r#"{"got":1}"#, Some(first))
    });
    log.line(|l| l.result(desk, second, "the last"));
    log.line(|l| {
        l.answer(desk, Some("Done."));
        l.finished(desk, End::Turn);
    });
    let wait = log.line(|l| {
        l.call_to(desk, "join", "{}", Target::Branches(Vec::new()), None)
            .0
    });
    let then = log.line(|l| {
        l.result(desk, wait, "both");
        l.chained(desk, "after", "{}", Some(wait))
    });
    log.line(|l| l.result(desk, then, "joined"));
    let request = full(&log, desk);
    valid(&request);
    let text = print(&request);
    assert!(
        text.contains(
            "assistant \"\" call.2002:look({\"what\":\"x\"})\nHistory: result call.2002:look \"the last\""
        ),
        "{text}"
    );
    assert!(text.contains("History: user \"[after] joined\""), "{text}");
    assert!(!text.contains("raw") && !text.contains("both"), "{text}");
}

#[test]
fn calls_with_a_rendering_of_their_own_are_told_as_text() {
    let mut log = Log::new(DEFINITION);
    let desk = log.start("desk", "Go");
    let (told, look) = log.line(|l| {
        l.answer(desk, Some("So."));
        (
            l.call(desk, "told", r#"{"n":4}"#),
            l.call(desk, "look", r#"{"what":"y"}"#),
        )
    });
    log.line(|l| {
        l.result(desk, told, r#"{"x":"four"}"#);
        l.result(desk, look, "seen");
    });
    let request = full(&log, desk);
    valid(&request);
    let text = print(&request);
    assert!(
        text.contains("assistant \"So.\\nI look at 4.\" call.2003:look({\"what\":\"y\"})\nHistory: result call.2003:look \"seen\"\nHistory: user \"[told] four of none yet\""),
        "{text}"
    );
}

#[test]
fn what_is_erased_or_unreadable_stays_valid() {
    let mut log = Log::new(DEFINITION);
    let desk = log.start("desk", "My name is Ada.");
    let call = log.line(|l| {
        l.answer(desk, Some("Hi Ada."));
        l.call(desk, "look", r#"{"what":"Ada"}"#)
    });
    log.line(|l| l.result(desk, call, "Ada is there"));
    let odd = log.line(|l| {
        l.answer(desk, None);
        l.call(desk, "look", "{not json")
    });
    log.line(|l| {
        let body = l.text("refused: not JSON");
        l.push(
            desk,
            Interaction::Result(result(
                odd,
                How::Refused,
                Some(body),
                Some("refused".into()),
            )),
        );
    });
    for line in 1..=3 {
        for k in 0..log.lines[line - 1].bodies.len() {
            let body = steersman_machine::stored::ids::Body::new(
                steersman_machine::stored::ids::Line(line as u64),
                k as u32,
            );
            if line > 1 || k > 0 {
                log.erase(body);
            }
        }
    }
    let request = full(&log, desk);
    valid(&request);
    let text = print(&request);
    assert!(!text.contains("Ada"), "{text}");
    assert!(
        text.contains("[erased]") && text.contains(r#"({"unreadable":"{not json"})"#),
        "{text}"
    );
}

#[test]
fn the_last_call_has_tools_off_and_a_broken_prefix_is_named() {
    let mut log = Log::new(DEFINITION);
    let desk = log.start("desk", "Go");
    let mut cache = RenderCache::default();
    let first = ask(&log, desk, &mut cache);
    assert_eq!((first.prefix, first.broke.as_deref()), (0, None));
    let call = log.line(|l| {
        l.answer(desk, None);
        l.call(desk, "look", r#"{"what":"x"}"#)
    });
    log.line(|l| l.result(desk, call, "seen"));
    // after a rest the cache compares by whole segments
    cache = cache.at_rest();
    let second = ask(&log, desk, &mut cache);
    let shared: u64 = first.segments.iter().take(3).map(|s| s.len).sum();
    assert_eq!(
        (second.prefix, second.broke.as_deref()),
        (shared, Some("now"))
    );
    log.line(|l| l.write(desk, "note", r#""new""#));
    let third = ask(&log, desk, &mut cache);
    assert_eq!(third.broke.as_deref(), Some("system"));
    assert!(third.prefix < second.segments[0].len);
    log.line(|l| {
        let body = l.text("Answer now.");
        l.said(desk, Origin::Limit, body);
    });
    let last = ask(&log, desk, &mut cache);
    assert_eq!(last.choice, ToolChoice::None);
    assert!(print(&last).contains("Answer now."));
}

/// `keep_exchanges: 4` drops exchanges in chunks of two. It never splits an exchange, and keeps the message that is
/// being answered.
#[test]
fn old_exchanges_leave_in_chunks() {
    let mut log = Log::new(DEFINITION);
    let desk = log.start("desk", "Do many things.");
    let mut cache = RenderCache::default();
    let mut breaks = 0;
    for n in 0..40 {
        exchange(&mut log, desk, n);
        let request = ask(&log, desk, &mut cache);
        valid(&request);
        let shown = print(&request).matches("result ").count();
        assert!(
            (n + 1).min(4) <= shown && shown <= 6,
            "{shown} exchanges after {n}"
        );
        assert!(
            print(&request).contains("user \"Do many things.\""),
            "the question stays"
        );
        assert!(
            print(&request).contains(&format!("seen {n}")),
            "the newest exchange is shown"
        );
        breaks += u32::from(request.broke.as_deref() == Some("history"));
        assert_eq!(request.digest, full(&log, desk).digest);
    }
    assert_eq!(
        breaks, 18,
        "one in two calls keeps the prefix here, 24 in 25 with the default of 50"
    );
}

pub(super) fn exchange(log: &mut Log, agent: Id, n: usize) {
    let call = log.line(|l| {
        l.answer(agent, None);
        l.call(agent, "look", &format!(r#"{{"what":"{n}"}}"#))
    });
    log.line(|l| l.result(agent, call, &format!("seen {n}")));
    for mark in due_watermarks(&log.cx(), &log.snapshot, agent) {
        log.line(|l| l.watermark(mark));
    }
}

/// With a window the cost of a turn does not grow: each request reads the same number of entries from the log.
#[test]
fn turn_2000_reads_as_much_as_turn_100() {
    let mut log = Log::new(DEFINITION);
    let desk = log.start("desk", "Do many things.");
    let mut cache = RenderCache::default();
    let mut reads = Vec::new();
    for n in 0..2_000 {
        exchange(&mut log, desk, n);
        let before = log.reads.get();
        let request = ask(&log, desk, &mut cache);
        reads.push((log.reads.get() - before, request.segments.len()));
    }
    let most = |range: std::ops::Range<usize>| reads[range].iter().max().copied().unwrap();
    assert_eq!(most(90..110), most(1_980..2_000));
    assert!(most(90..110).0 < 12, "only the new exchange is read");
    assert_eq!(cache.differed(), 0);
    // A render without a cache reads the window, not the whole log.
    let before = log.reads.get();
    full(&log, desk);
    assert!(log.reads.get() - before < 80);
}

/// An incremental render equals a full one, over random stacks with rewinds.
#[test]
fn incremental_equals_full() {
    arbtest(|u| {
        let mut log = Log::new(DEFINITION);
        let desk = log.start("desk", "Begin.");
        let mut cache = RenderCache::default();
        let mut saved = vec![log.snapshot.clone()];
        let mut open: Vec<(Id, bool)> = Vec::new();
        for _ in 0..u.int_in_range(1..=40)? {
            step(u, &mut log, desk, &mut open, &mut saved)?;
            if u.ratio(3, 4)? {
                let (warm, cold) = (ask(&log, desk, &mut cache), full(&log, desk));
                valid(&cold);
                assert_eq!(print(&warm), print(&cold));
                assert_eq!(
                    (warm.digest, warm.segments, warm.choice),
                    (cold.digest, cold.segments, cold.choice)
                );
            }
        }
        Ok(())
    })
    .budget_ms(2_000);
}

pub(super) fn step(
    u: &mut Unstructured<'_>,
    log: &mut Log,
    desk: Id,
    open: &mut Vec<(Id, bool)>,
    saved: &mut Vec<steersman_machine::snapshot::Snapshot>,
) -> arbitrary::Result<()> {
    let names = ["look", "noted", "told", "nobody"];
    match u.int_in_range(0..=9)? {
        // A result, perhaps followed by a chained call.
        0..=3 if !open.is_empty() => {
            let (call, chains) = open.remove(u.choose_index(open.len())?);
            let (failed, chain) = (u.ratio(1, 4)?, chains && u.ratio(1, 3)?);
            let next = log.line(|l| {
                if failed {
                    l.failed(desk, call, "failed", "failed: no");
                } else {
                    l.result(desk, call, r#"{"x":1}"#);
                }
                chain.then(|| l.chained(desk, "after", r#"{"got":1}"#, Some(call)))
            });
            // Only the first call of a chain gets a chained call here.
            open.extend(next.map(|id| (id, false)));
        }
        0..=3 => {
            let calls = u.int_in_range(0..=3)?;
            let chosen: Vec<usize> = (0..calls)
                .map(|_| u.choose_index(names.len()))
                .collect::<Result<_, _>>()?;
            let text = u.ratio(1, 2)? || calls == 0;
            let ids = log.line(|l| {
                l.answer(desk, text.then_some("Well."));
                let ids: Vec<Id> = chosen
                    .iter()
                    .map(|n| l.call(desk, names[*n], r#"{"n":1,"what":"w"}"#))
                    .collect();
                if ids.is_empty() {
                    l.finished(desk, End::Turn);
                }
                ids
            });
            open.extend(ids.into_iter().map(|id| (id, true)));
        }
        4 if open.is_empty() => {
            log.line(|l| l.say(desk, "Go on."));
        }
        5 if open.is_empty() => {
            let call = log.line(|l| {
                l.call_to(desk, "join", "{}", Target::Tool(Class::Pure), None)
                    .0
            });
            open.push((call, true));
        }
        6 => {
            let text = format!("\"{}\"", u.int_in_range(0..=2)?);
            log.line(|l| l.write(desk, "note", &text));
        }
        7 => {
            let number = u.int_in_range(0..=1)?.to_string();
            log.line(|l| l.write(desk, "other", &number));
        }
        8 if open.is_empty() => saved.push(log.snapshot.clone()),
        9 if u.ratio(1, 3)? => {
            log.snapshot = saved[u.choose_index(saved.len())?].clone();
            open.clear();
        }
        _ => {}
    }
    for mark in due_watermarks(&log.cx(), &log.snapshot, desk) {
        log.line(|l| l.watermark(mark));
    }
    Ok(())
}

/// Random sessions with forks, rewinds, adoptions, cancels and chains: after each line the request of the agent that
/// moved is valid for a provider and does not depend on earlier renders.
#[test]
fn contexts_of_random_sessions_are_valid() {
    let (mut marks, mut asked, mut filled, mut summed) = (0, 0, 0, 0);
    for seed in 0..30 {
        // `random_sessions_keep_every_rule` reports sessions that fail.
        let Ok(world) = random::played(seed, 60) else {
            continue;
        };
        let mut caches: BTreeMap<(Id, Id), RenderCache> = BTreeMap::new();
        for line in world.lines().iter().filter(|l| l.commit.is_some()) {
            let snapshot = world.after(line.n);
            marks += line.commit.as_ref().map_or(0, |c| c.watermarks().count());
            for (id, agent) in &snapshot.agents {
                let thinks = matches!(world.cx().network.agent(&agent.def).does, Does::Model(_));
                // A router is asked for a decision, a summary or an extraction.
                let purpose = context::purpose(&world.cx(), &snapshot, *id);
                let asks = agent.stack.owed.is_some() || purpose == Purpose::Extract;
                if agent.stack.last != line.n || !(thinks || asks) {
                    continue;
                }
                filled += u32::from(purpose == Purpose::Extract);
                summed += u32::from(purpose == Purpose::Summary);
                let cache = caches.entry((line.branch, *id)).or_default();
                let ask = |cache: &mut RenderCache| {
                    request(&world.cx(), &world, &snapshot, *id, cache).expect("templates render")
                };
                let (warm, cold) = (ask(cache), ask(&mut RenderCache::default()));
                valid(&cold);
                assert_eq!(
                    print(&warm),
                    print(&cold),
                    "seed {seed}, line {}, agent {id}",
                    line.n
                );
                assert_eq!(warm.digest, cold.digest);
                asked += 1;
            }
        }
    }
    assert!(
        asked > 300 && marks > 10 && filled > 20 && summed > 5,
        "{asked} contexts, {marks} boundaries, {filled} for state entries, {summed} for summaries"
    );
}
