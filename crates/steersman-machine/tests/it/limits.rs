//! Every limit, at every place and with every span: reached, never reached, or refused by the check. The results are
//! one table, so that a combination that nothing enforces is visible.

use std::fmt::Write as _;
use std::sync::Arc;
use steersman_definition::summary::Beside;
use steersman_definition::{Compiled, Files, compile, compile_with_tests};
use steersman_testkit::replay::twice;

/// Three agents, one below the other. The clerk serves its first call in the turns of *One* and *Two*, and is called
/// again with *Three*. In each turn a helper looks something up for ten minutes.
fn definition(top: &str, lead: &str, clerk: &str) -> String {
    let answers = |answer: &str, times: usize| vec![answer; times].join(", ");
    let lead_says = answers("{ call: { clerk: { name: c, message: go } } }, Well.", 8);
    let turn = "{ call: { helper: { message: go } } }, Well.";
    let clerk_says = format!(
        "{turn}, {turn}, {{ call: {{ finish: {{ result: Done. }} }} }}, {}",
        answers(turn, 8)
    );
    let helper_says = answers("{ call: { look: {} } }, Seen.", 12);
    let looks = answers("{ after: 10m, result: a }", 12);
    format!(
        "
tools: {{ look: {{ description: Looks., effect: read, native: 1 }} }}
agents:
  lead:
    system: S.
    tools: [ {{ agent: clerk, named: true }} ]
    limits: {{ {lead} }}
  clerk:
    description: C.
    system: S.
    turns: dialogue
    tools: [ helper, finish ]
    limits: {{ {clerk} }}
  helper: {{ description: H., system: S., tools: [ look ] }}
entry: lead
limits: {{ {top} }}
tests:
  spans:
    script: {{ lead: [ {lead_says} ], clerk: [ {clerk_says} ], helper: [ {helper_says} ] }}
    tools: {{ look: [ {looks} ] }}
    steps:
      - {{ say: One. }}
      - {{ advance: 10m }}
      - {{ say: Two. }}
      - {{ advance: 10m }}
      - {{ say: Stop. }}
      - {{ say: Three. }}
      - {{ advance: 10m }}
"
    )
}

/// The agent that reached the limit and the message that it was answering, or the codes with which the check refuses
/// the limit.
fn reached(key: &str, text: &str) -> String {
    let (compiled, found) = compile_with_tests(&Files::new("limits.yaml", text), None);
    let Some(Compiled { network, tests, .. }) = compiled else {
        let said = found.iter().filter(|d| d.is_error()).map(|d| d.code);
        return format!("refused {}", said.collect::<Vec<_>>().join(" "));
    };
    let ran = twice(&Arc::new(network), &tests["spans"]).expect("it runs as before");
    let limit = format!("limit {key} ");
    let mut message = "";
    for line in ran.world.printed.lines() {
        if let Some(said) = line.split("U(\"").nth(1).or(line.split("UR(\"").nth(1)) {
            message = said.split('.').next().unwrap_or_default();
        }
        if line.contains(&limit) {
            let who = line.trim().split([' ', ':']).nth(1);
            return format!("{} in {message}", who.unwrap_or_default());
        }
    }
    "never".to_owned()
}

/// The limits that count something, with four amounts each: less than a turn of the clerk, more than a turn, more than
/// a task, more than the session.
const COUNTED: [(&str, [&str; 4]); 5] = [
    ("model_calls", ["3", "7", "11", "100"]),
    ("agent_calls", ["1", "2", "3", "100"]),
    ("ticks", ["5", "10", "15", "100"]),
    ("tokens", ["8", "20", "32", "10000"]),
    ("wall_time", ["5m", "15m", "25m", "31m"]),
];

#[test]
fn a_limit_is_enforced_wherever_it_may_stand() {
    let mut page = String::new();
    for (key, sizes) in COUNTED {
        for place in ["clerk", "lead", "top"] {
            for per in ["answer", "task", "session"] {
                write!(page, "{key:<12}{place:<6}{per:<8}").expect("a string takes it");
                for max in sizes {
                    let limit = format!("{key}: {{ max: {max}, per: {per}, on_limit: fail }}");
                    let at = |wanted| if place == wanted { limit.as_str() } else { "" };
                    let text = definition(at("top"), at("lead"), at("clerk"));
                    let got = format!("{max}: {}", reached(key, &text));
                    write!(page, " {got:<22}").expect("a string takes it");
                }
                page.push('\n');
            }
        }
    }
    let page: Vec<&str> = page.lines().map(str::trim_end).collect();
    insta::assert_snapshot!(page.join("\n"));
}

/// A limit without spans or outcomes is refused if one is given.
#[test]
fn what_nothing_would_enforce_is_refused() {
    let mut page = String::new();
    let spans = ["parallel", "depth", "same_call", "corrections"];
    let spans = spans.map(|key| {
        ["answer", "task", "session"].map(|per| format!("{key}: {{ max: 3, per: {per} }}"))
    });
    let outcomes = [
        "parallel: { max: 3, on_limit: fail }",
        "depth: { max: 3, on_limit: fail }",
        "tokens: { max: 3, on_limit: answer }",
        "tokens: { max: 3, on_limit: finish }",
        "tokens: { max: 3, per: answer, on_limit: finish }",
        "tokens: { max: 3, on_limit: fail }",
        "tokens: 3",
        "cost: { max: 3, on_limit: answer }",
        "cost: { max: 0.5, per: answer, on_limit: finish }",
        "cost: 0.0025",
        "cost: 0.00001",
        "cost: -1",
        "cost: cheap",
    ]
    .map(str::to_owned);
    for limit in spans.into_iter().flatten().chain(outcomes) {
        let checked = |text: &str| {
            let (_, found) = compile(&Files::new("limits.yaml", text));
            let said = found.iter().filter(|d| d.is_error()).map(|d| {
                let note = d.notes.join("; ");
                format!("{} {} ({note})", d.code, d.message)
            });
            let said = said.collect::<Vec<_>>().join(" ");
            if said.is_empty() {
                "may stand".to_owned()
            } else {
                said
            }
        };
        let agent = checked(&definition("", &limit, ""));
        let top = checked(&definition(&limit, "", ""));
        if agent == top {
            writeln!(page, "{limit}\n    {agent}").expect("a string takes it");
        } else {
            writeln!(page, "{limit}\n    agent: {agent}\n    top: {top}")
                .expect("a string takes it");
        }
    }
    for limit in [
        "agent_calls: { max: 3, on_limit: answer }",
        "parallel: 3",
        "corrections: 3",
    ] {
        let text = format!(
            "agents: {{ a: {{ route: {{ sequence: [b] }}, limits: {{ {limit} }} }}, b: {{ description: B., system: S. }} }}"
        );
        let (_, found) = compile(&Files::new("limits.yaml", text));
        let found: Vec<String> = found
            .iter()
            .map(|d| format!("{} {}", d.code, d.message))
            .collect();
        writeln!(page, "of a routed agent, {limit}\n    {}", found.join(" "))
            .expect("a string takes it");
    }
    insta::assert_snapshot!(page);
}

/// `check` says of reviewers whether their calls are among those of the limit, or in addition. Where it says that they are among them,
/// a run makes no more calls than the limit allows, and the last one.
#[test]
fn what_check_counts_in_a_limit_is_in_it() {
    let works = |call: &str| format!("{{ call: {{ {call}: {{}} }} }}");
    for (reviewed, works, made) in [
        // A draft stands at a limit, so there is no last call.
        ("main", "One.".to_owned(), 4),
        ("look", works("look"), 5),
        ("pay", works("pay"), 5),
    ] {
        for place in ["main", "top", "nowhere"] {
            let reflect = |of: &str| {
                let rounds = if of == reviewed {
                    ", reflect: { by: critic, rounds: 9 }"
                } else {
                    ""
                };
                rounds.to_owned()
            };
            let limit = |at: &str| {
                let limits = if at == place {
                    "limits: { model_calls: 4 }"
                } else {
                    ""
                };
                limits.to_owned()
            };
            let text = format!(
                "
tools:
  look: {{ description: Looks., effect: read, native: 1{} }}
  pay: {{ description: Pays., effect: unsafe, native: 1{} }}
agents:
  main: {{ system: S., tools: [ look, pay ]{}, {} }}
  critic: {{ description: C., system: You judge., limits: {{ model_calls: 2 }} }}
entry: main
{}
tests:
  one:
    script: {{ main: [ {works}, {works}, Last. ], critic: [ {{ revise: More. }}, {{ revise: More. }} ] }}
    tools: {{ look: [ a, b ] }}
    steps: [ {{ say: Go. }} ]
    expect: [ {{ model_calls: all, is: {made} }} ]
",
                reflect("look"),
                reflect("pay"),
                reflect("main"),
                limit("main"),
                limit("top"),
            );
            let (compiled, found) = compile_with_tests(&Files::new("limits.yaml", text), None);
            let Some(Compiled { network, tests, .. }) = compiled else {
                panic!("{found:?}");
            };
            let told = Beside::all(&network);
            let of: Vec<&str> = told.iter().map(|one| &*one.of).collect();
            assert_eq!(of, [reviewed]);
            assert_eq!(told[0].counted, place != "nowhere", "{reviewed} {place}");
            if told[0].counted {
                let ran = twice(&Arc::new(network), &tests["one"]).expect("it runs as before");
                let printed = &ran.world.printed;
                assert!(ran.failures.is_empty(), "{:?}\n{printed}", ran.failures);
            }
        }
    }
}

/// Uses of tokens in a session: the sum, and the greatest of one call.
fn used(at_once: usize, max: u64) -> (u64, u64) {
    let calls = vec!["{ clerk: { message: go } }"; at_once].join(", ");
    // The longest answers of both are 34 tokens long.
    let look = format!("{{ call: {{ look: {{ what: {} }} }} }}", "x".repeat(121));
    let (looks, last) = (vec![look; 8].join(", "), "x".repeat(136));
    let results = vec!["a"; 8 * at_once].join(", ");
    let text = format!(
        "
tools: {{ look: {{ description: Looks., parameters: {{ what: string }}, effect: read, native: 1 }} }}
agents:
  lead:
    system: S.
    tools: [ clerk ]
    limits: {{ parallel: {at_once}, tokens: {{ max: {max}, per: task, on_limit: answer }} }}
  clerk: {{ description: C., system: S., tools: [ look ] }}
entry: lead
tests:
  together:
    script: {{ lead: [ {{ call: [ {calls} ] }}, {last} ], clerk: [ {looks}, Well. ] }}
    tools: {{ look: [ {results} ] }}
    steps: [ {{ say: Go. }} ]
"
    );
    let (compiled, found) = compile_with_tests(&Files::new("limits.yaml", text), None);
    let Some(Compiled { network, tests, .. }) = compiled else {
        panic!("{found:?}")
    };
    let ran = twice(&Arc::new(network), &tests["together"]).expect("it runs as before");
    let commits = ran.world.lines().iter();
    let usage = commits
        .filter_map(|line| line.commit.as_ref())
        .flat_map(|c| &c.usage);
    let each: Vec<u64> = usage.map(|usage| usage.input + usage.output).collect();
    (
        each.iter().sum(),
        each.into_iter().max().unwrap_or_default(),
    )
}

/// A limit of an agent reserves nothing for calls that run. Each agent under it begins a call only while the sum is below the limit, so agents that work at the
/// same time exceed it by less than one call of each, and `answer` adds one last call. The guide to models states this bound.
#[test]
fn agents_at_once_exceed_a_limit_of_tokens_by_less_than_one_call_each() {
    for at_once in 1..=5 {
        let mut nearest = u64::MAX;
        for max in 1..=60 {
            let (sum, most) = used(at_once, max);
            let bound = max - 1 + (at_once as u64 + 1) * most;
            assert!(
                sum <= bound,
                "{at_once} agents, at most {max}: {sum} of {bound}"
            );
            nearest = nearest.min(bound - sum);
        }
        assert_eq!(
            nearest, 0,
            "{at_once} agents: no limit is exceeded by so much"
        );
    }
}
