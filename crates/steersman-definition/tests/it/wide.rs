//! Definitions of the largest size: the work of `check` is proportional to the size of a file.

#![expect(
    clippy::semicolon_if_nothing_returned,
    clippy::type_complexity,
    reason = "closures that write one line each, in tables"
)]

use std::fmt::Write as _;
use steersman_definition::{Diagnostic, Files, compile};

/// Almost as many values as a file may hold. A key counts as a value, and an item has about twice the values that are
/// counted here.
const MOST: usize = 24_000;

/// A large definition, with the name of its kind.
struct Wide {
    name: &'static str,
    text: String,
}

/// The concatenated texts of `part` for 0 to `n` - 1.
fn many(n: usize, mut part: impl FnMut(&mut String, usize)) -> String {
    let mut text = String::new();
    for k in 0..n {
        part(&mut text, k);
    }
    text
}

/// A list of names in brackets.
fn listed(n: usize, name: impl Fn(usize) -> String) -> String {
    let names: Vec<String> = (0..n).map(name).collect();
    format!("[{}]", names.join(", "))
}

macro_rules! line {
    ($to:expr, $($arg:tt)*) => { writeln!($to, $($arg)*).expect("a text takes it") };
}

/// Definitions of each kind, with about `values` values each.
fn all(values: usize) -> Vec<Wide> {
    let mut all = Vec::new();
    let groups: [fn(usize, &mut dyn FnMut(&'static str, String)); 7] =
        [tools_a, tools_b, agents_a, agents_b, routes, modes, other];
    for group in groups {
        group(values, &mut |name, text| all.push(Wide { name, text }));
    }
    all
}

/// Tools, the state that they write, and references to them.
fn tools_a(values: usize, add: &mut dyn FnMut(&'static str, String)) {
    let n = values / 4;
    add("tools that are unknown and near", {
        let n = values / 8;
        let tools = many(n, |t, k| {
            line!(t, "  tool_number_{k}: {{ description: D., result: R }}")
        });
        let names = listed(n, |k| format!("tool_numbr_{k}"));
        format!("tools:\n{tools}agents:\n  a: {{ system: S., tools: {names} }}\nentry: a\n")
    });
    add("tools that are unknown and alike", {
        let n = values / 8;
        let tools = many(n, |t, k| {
            line!(
                t,
                "  tool_number_that_is_long_{k}: {{ description: D., result: R }}"
            )
        });
        let names = listed(n, |k| format!("x_{k}_unlike"));
        format!("tools:\n{tools}agents:\n  a: {{ system: S., tools: {names} }}\nentry: a\n")
    });
    add("tools with a wrong key", {
        let tools = many(n, |t, k| {
            line!(t, "  t{k}: {{ description: D., reslt: R }}")
        });
        format!("tools:\n{tools}agents:\n  a: {{ system: S. }}\nentry: a\n")
    });
    add("tools with two wrong values", {
        let tools = many(values / 5, |t, k| {
            line!(
                t,
                "  t{k}: {{ description: D., effect: unsfe, timeout: x, parallel: no }}"
            )
        });
        format!("tools:\n{tools}agents:\n  a: {{ system: S. }}\nentry: a\n")
    });
    add("tools that nothing leads to", {
        let tools = many(n, |t, k| {
            line!(t, "  t{k}: {{ description: D., result: R }}")
        });
        format!("tools:\n{tools}agents:\n  a: {{ system: S. }}\nentry: a\n")
    });
    add("writers of one entry", {
        let n = values / 6;
        let tools = many(n, |t, k| {
            line!(
                t,
                "  t{k}: {{ description: D., set: {{ x: \"1\" }}, result: R }}"
            )
        });
        let names = listed(n, |k| format!("t{k}"));
        format!(
            "state: {{ x: {{ type: string, default: '' }} }}\ntools:\n{tools}agents:\n  a: {{ system: S., tools: {names} }}\nentry: a\n"
        )
    });
    add("writers of an entry each", {
        let n = values / 11;
        let state = many(n, |t, k| {
            line!(t, "  x{k}: {{ type: string, optional: true }}")
        });
        let tools = many(n, |t, k| {
            line!(
                t,
                "  t{k}: {{ description: D., set: {{ x{k}: \"{{{{ state.x{} or '' }}}}\" }}, result: R }}",
                (k + 1) % n
            )
        });
        let names = listed(n, |k| format!("t{k}"));
        format!(
            "state:\n{state}tools:\n{tools}agents:\n  a: {{ system: S., tools: {names} }}\nentry: a\n"
        )
    });
}

/// More tools, and expressions that read state.
fn tools_b(values: usize, add: &mut dyn FnMut(&'static str, String)) {
    add("unknown entries of state", {
        let n = values / 8;
        let state = many(n, |t, k| {
            line!(t, "  entry_{k}: {{ type: string, optional: true }}")
        });
        let tools = many(n, |t, k| {
            line!(
                t,
                "  t{k}: {{ description: D., result: \"{{{{ state.entri_{k} }}}}\" }}"
            )
        });
        let names = listed(n, |k| format!("t{k}"));
        format!(
            "state:\n{state}tools:\n{tools}agents:\n  a: {{ system: S., tools: {names} }}\nentry: a\n"
        )
    });
    add("tools that follow each other", {
        let n = values / 8;
        let tools = many(n, |t, k| {
            line!(
                t,
                "  t{k}: {{ description: D., then: {{ tool: t{} }} }}",
                (k + 1).min(n - 1)
            )
        });
        format!(
            "tools:\n{tools}  last: {{ description: D., result: R }}\nagents:\n  a: {{ system: S., tools: [t0] }}\nentry: a\n"
        )
    });
    add("tools whose guards read what others did", {
        let n = values / 8;
        let tools = many(n, |t, k| {
            line!(
                t,
                "  t{k}: {{ description: D., requires: calls.t{}.ok > 0, result: R }}",
                (k + 1) % n
            )
        });
        let names = listed(n, |k| format!("t{k}"));
        format!("tools:\n{tools}agents:\n  a: {{ system: S., tools: {names} }}\nentry: a\n")
    });
    add("unsafe tools with an approval each", {
        let n = values / 9;
        let tools = many(n, |t, k| {
            line!(
                t,
                "  t{k}: {{ description: D., effect: unsafe, approve: \"true\", http: {{ url: \"http://127.0.0.1/\" }}, on_doubt: ask }}"
            )
        });
        let names = listed(n, |k| format!("t{k}"));
        format!("tools:\n{tools}agents:\n  a: {{ system: S., tools: {names} }}\nentry: a\n")
    });
    add("parameters of one tool", {
        let fields = many(values / 3, |t, k| {
            line!(t, "      p{k}: {{ type: string, description: D. }}")
        });
        format!(
            "tools:\n  t:\n    description: D.\n    parameters:\n{fields}    result: \"{{{{ args.p1 }}}}\"\nagents:\n  a: {{ system: S., tools: [t] }}\nentry: a\n"
        )
    });
    add("reads of parameters", {
        let n = values / 5;
        let fields = many(n, |t, k| line!(t, "      p{k}: string"));
        let reads = many(n, |t, k| {
            line!(t, "      - {{ that: args.p{k} != 'x', else: E. }}")
        });
        format!(
            "tools:\n  t:\n    description: D.\n    parameters:\n{fields}    requires:\n{reads}    result: R\nagents:\n  a: {{ system: S., tools: [t] }}\nentry: a\n"
        )
    });
}

/// Agents that call other agents.
fn agents_a(values: usize, add: &mut dyn FnMut(&'static str, String)) {
    add("agents that share writers", {
        let (agents, tools) = (values / 60, 50);
        let tool = many(tools, |t, k| {
            line!(
                t,
                "  t{k}: {{ description: D., set: {{ x: \"1\" }}, result: R }}"
            )
        });
        let names = listed(tools, |k| format!("t{k}"));
        let agent = many(agents, |t, k| {
            line!(
                t,
                "  a{k}: {{ description: D., system: S., tools: {names} }}"
            )
        });
        let below = listed(agents, |k| format!("a{k}"));
        format!(
            "state: {{ x: {{ type: string, default: '' }} }}\ntools:\n{tool}agents:\n{agent}  top: {{ system: S., tools: {below} }}\nentry: top\n"
        )
    });
    add("agents in a chain", {
        let n = values / 6;
        let agents = many(n, |t, k| {
            let below = if k + 1 < n {
                format!("[a{}]", k + 1)
            } else {
                "[]".to_owned()
            };
            line!(
                t,
                "  a{k}: {{ description: D., system: \"{{{{ state.x }}}}\", tools: {below} }}"
            );
        });
        format!("state: {{ x: {{ type: string, default: '' }} }}\nagents:\n{agents}entry: a0\n")
    });
    add("agents in a chain with state of their own", {
        let n = values / 10;
        let agents = many(n, |t, k| {
            let below = if k + 1 < n {
                format!("[a{}]", k + 1)
            } else {
                "[]".to_owned()
            };
            line!(
                t,
                "  a{k}: {{ description: D., state: {{ x{}: {{ type: string, optional: true }} }}, system: \"{{{{ state.x{} }}}}\", tools: {below} }}",
                k % 7,
                (k + 1) % 7
            );
        });
        format!("agents:\n{agents}entry: a0\n")
    });
    add("agents in a circle", {
        let n = values / 6;
        let agents = many(n, |t, k| {
            line!(
                t,
                "  a{k}: {{ description: D., system: S., tools: [a{}] }}",
                (k + 1) % n
            )
        });
        format!("agents:\n{agents}entry: a0\n")
    });
    add("agents in circles of two", {
        let n = values / 8;
        let agents = many(n, |t, k| {
            line!(
                t,
                "  a{k}: {{ description: D., system: S., tools: [a{}] }}",
                k ^ 1
            )
        });
        let below = listed(n, |k| format!("a{k}"));
        format!("agents:\n{agents}  top: {{ system: S., tools: {below} }}\nentry: top\n")
    });
}

/// Agents that all call each other, and reviewers.
fn agents_b(values: usize, add: &mut dyn FnMut(&'static str, String)) {
    add("agents that all call all", {
        let n = values.isqrt();
        let below = listed(n, |k| format!("a{k}"));
        let agents = many(n, |t, k| {
            line!(
                t,
                "  a{k}: {{ description: D., system: S., tools: {below} }}"
            )
        });
        format!("agents:\n{agents}entry: a0\n")
    });
    add("reviewers in a row", {
        let n = values / 7;
        let agents = many(n, |t, k| {
            line!(
                t,
                "  a{k}: {{ description: D., parameters: {{ draft: string }}, system: S., reflect: {{ by: a{} }} }}",
                (k + 1).min(n - 1)
            );
        });
        format!("agents:\n{agents}  top: {{ system: S., reflect: {{ by: a0 }} }}\nentry: top\n")
    });
}

/// States, exits, tasks and rules.
fn routes(values: usize, add: &mut dyn FnMut(&'static str, String)) {
    add("states", {
        let n = values / 14;
        let states = many(n, |t, k| {
            line!(
                t,
                "        s{k}: {{ scene: S., speakers: [b, c], exits: [ {{ when: \"true\", to: s{} }}, {{ after_messages: 2, to: finish }} ] }}",
                (k + 1) % n
            )
        });
        format!(
            "agents:\n  b: {{ description: D., system: S. }}\n  c: {{ description: D., system: S. }}\n  a:\n    route:\n      start: s0\n      states:\n{states}entry: a\n"
        )
    });
    add("states that nothing leads to", {
        let n = values / 8;
        let states = many(n, |t, k| {
            line!(
                t,
                "        s{k}: {{ scene: S., speakers: [b], exits: [ {{ after_messages: 2, to: finish }} ] }}"
            )
        });
        format!(
            "agents:\n  b: {{ description: D., system: S. }}\n  a:\n    route:\n      start: s0\n      states:\n{states}entry: a\n"
        )
    });
    add("exits of one state", {
        let exits = many(values / 4, |t, k| {
            line!(t, "            - {{ when: \"state.x == '{k}'\", to: s1 }}")
        });
        format!(
            "state: {{ x: {{ type: string, default: '' }} }}\nagents:\n  b: {{ description: D., system: S. }}\n  a:\n    route:\n      start: s0\n      states:\n        s1: {{ scene: S., speakers: [b], exits: [ {{ after_messages: 2, to: finish }} ] }}\n        s0:\n          scene: S.\n          speakers: [b]\n          exits:\n{exits}entry: a\n"
        )
    });
    add("exits to unknown states", {
        let states = many(values / 11, |t, k| {
            line!(
                t,
                "        state_{k}: {{ scene: S., speakers: [b], exits: [ {{ after_messages: 2, to: stat_{k} }} ] }}"
            )
        });
        format!(
            "agents:\n  b: {{ description: D., system: S. }}\n  a:\n    route:\n      start: s0\n      states:\n{states}entry: a\n"
        )
    });
    add("tasks in a row", {
        let n = values / 12;
        let agents = many(n, |t, k| {
            line!(t, "  b{k}: {{ description: D., system: S. }}")
        });
        let tasks = many(n, |t, k| {
            let after = if k > 0 {
                format!("[t{}]", k - 1)
            } else {
                "[]".to_owned()
            };
            line!(
                t,
                "        t{k}: {{ agent: b{k}, after: {after}, done: state.x is not none }}"
            );
        });
        format!(
            "state: {{ x: {{ type: string, optional: true }} }}\nagents:\n{agents}  d: {{ description: D., system: S. }}\n  a:\n    route:\n      default: d\n      tasks:\n{tasks}entry: a\n"
        )
    });
    add("rules", {
        let n = values / 8;
        let agents = many(n, |t, k| {
            line!(t, "  b{k}: {{ description: D., system: S. }}")
        });
        let rules = many(n, |t, k| {
            line!(t, "        - {{ when: \"state.x == '{k}'\", to: b{k} }}")
        });
        format!(
            "state: {{ x: {{ type: string, default: '' }} }}\nagents:\n{agents}  a:\n    route:\n      rules:\n{rules}      default: b0\nentry: a\n"
        )
    });
}

/// An agent with many modes, and tools that set its mode.
fn modes(values: usize, add: &mut dyn FnMut(&'static str, String)) {
    add("modes", {
        let n = values / 10;
        let modes = many(n, |t, k| {
            line!(
                t,
                "      m{k}: {{ system: S., tools: [t], exits: [ {{ after_tool: t, to: m{} }} ] }}",
                (k + 1) % n
            )
        });
        format!(
            "tools:\n  t: {{ description: D., result: R }}\nagents:\n  a:\n    start: m0\n    modes:\n{modes}entry: a\n"
        )
    });
    add("modes that tools say", {
        let n = values / 10;
        let tools = many(n, |t, k| {
            line!(t, "  t{k}: {{ description: D., mode: m{} }}", (k + 1) % n)
        });
        let modes = many(n, |t, k| {
            line!(t, "      m{k}: {{ system: S., tools: [t{k}] }}")
        });
        format!("tools:\n{tools}agents:\n  a:\n    start: m0\n    modes:\n{modes}entry: a\n")
    });
    add("modes that have all tools of their agent", {
        let tools = many(values / 5, |t, k| {
            line!(t, "  t{k}: {{ description: D., result: R }}")
        });
        let names = listed(values / 5, |k| format!("t{k}"));
        let modes = many(values / 5, |t, k| line!(t, "      m{k}: {{ system: S. }}"));
        format!(
            "tools:\n{tools}agents:\n  a:\n    tools: {names}\n    start: m0\n    modes:\n{modes}entry: a\n"
        )
    });
}

/// Models and the other sections.
fn other(values: usize, add: &mut dyn FnMut(&'static str, String)) {
    add("models", {
        let models = many(values / 4, |t, k| {
            line!(t, "  m{k}: {{ provider: openai, model: x{k} }}")
        });
        format!(
            "models:\n{models}agents:\n  a: {{ system: S., model: m0, limits: {{ cost: 1 }} }}\nentry: a\n"
        )
    });
    add("models that stand in for others", {
        let n = values / 6;
        let models = many(n, |t, k| {
            line!(
                t,
                "  m{k}: {{ provider: openai, model: x{k}, fallback: [m{}] }}",
                (k + 1).min(n - 1)
            )
        });
        format!("models:\n{models}agents:\n  a: {{ system: S., model: m0 }}\nentry: a\n")
    });
    add("config", {
        let config = many(values / 6, |t, k| {
            line!(t, "  c{k}: {{ type: integer, default: 1 }}")
        });
        let tools = many(values / 8, |t, k| {
            line!(
                t,
                "  t{k}: {{ description: D., result: \"{{{{ config.d{k} }}}}\" }}"
            )
        });
        format!("config:\n{config}tools:\n{tools}agents:\n  a: {{ system: S. }}\nentry: a\n")
    });
    add("keys that stand twice", {
        let tools = many(values / 3, |t, k| line!(t, "  t{}: {{ result: R }}", k / 2));
        format!("tools:\n{tools}agents:\n  a: {{ system: S. }}\nentry: a\n")
    });
    add("tests", {
        let tests = many(values / 6, |t, k| {
            line!(
                t,
                "  t{k}: [ {{ user: Hello. }}, {{ expect: {{ answer: Hi. }} }} ]"
            )
        });
        format!("agents:\n  a: {{ system: S. }}\nentry: a\ntests:\n{tests}")
    });
    add("long expressions", {
        let sum = listed(2 * values, |_| "state.x".to_owned());
        format!(
            "state: {{ x: {{ type: string, default: '' }} }}\nagents:\n  a: {{ system: \"{{{{ {sum} }}}}\" }}\nentry: a\n"
        )
    });
    add("expressions in one template", {
        let reads = many(2 * values, |t, k| {
            write!(t, "{{{{ state.y{k} }}}}").expect("a text takes it")
        });
        format!(
            "state: {{ x: {{ type: string, default: '' }} }}\nagents:\n  a: {{ system: \"{reads}\" }}\nentry: a\n"
        )
    });
    add("a name of a megabyte", {
        let long = "x".repeat(40 * values);
        format!(
            "tools:\n  {long}: {{ description: D., result: R }}\nagents:\n  a: {{ system: S., tools: [y{long}] }}\nentry: a\n"
        )
    });
    add("long names", {
        let n = values / 24;
        let tools = many(n, |t, k| {
            line!(
                t,
                "  t{}_{k}: {{ description: D., result: R }}",
                "x".repeat(900)
            )
        });
        let names = listed(n, |k| format!("u{}_{k}", "x".repeat(900)));
        format!("tools:\n{tools}agents:\n  a: {{ system: S., tools: {names} }}\nentry: a\n")
    });
}

fn found(wide: &Wide) -> Vec<Diagnostic> {
    compile(&Files::new("steersman.yaml", wide.text.as_str())).1
}

fn of<'a>(name: &str, all: &'a [Wide]) -> &'a Wide {
    all.iter()
        .find(|wide| wide.name == name)
        .expect("it is in the list")
}

fn count(found: &[Diagnostic], code: &str) -> usize {
    found.iter().filter(|d| d.code == code).count()
}

#[test]
fn what_is_said_grows_with_what_is_written() {
    for wide in all(2_000) {
        let found = found(&wide);
        let values = wide.text.len() / 10;
        assert!(
            found.len() <= values,
            "{}: {} diagnostics",
            wide.name,
            found.len()
        );
        for diagnostic in &found {
            let said =
                diagnostic.message.len() + diagnostic.notes.iter().map(String::len).sum::<usize>();
            assert!(said < 4_000, "{}: {said} bytes in one", wide.name);
        }
    }
}

#[test]
fn many_writers_of_one_entry_are_one_warning() {
    let wide = all(2_000);
    let found = found(of("writers of one entry", &wide));
    assert_eq!(count(&found, "W0402"), 1);
    insta::assert_snapshot!(found[0].to_string());
    let found = self::found(of("agents that share writers", &wide));
    assert_eq!(count(&found, "W0402"), 1);
}

#[test]
fn circles_are_told_once_each() {
    let wide = all(2_000);
    let told = |name| count(&found(of(name, &wide)), "W0202");
    assert_eq!(told("agents in a circle"), 1);
    assert_eq!(told("agents in circles of two"), 2_000 / 8 / 2);
    assert_eq!(told("agents that all call all"), 1);
    assert_eq!(told("agents in a chain"), 0);
}

#[test]
fn modes_that_repeat_all_tools_of_their_agent_are_bounded() {
    let wide = all(MOST);
    let found = found(of("modes that have all tools of their agent", &wide));
    assert_eq!(count(&found, "E0102"), 1, "{found:?}");
}

/// `cargo xtask long wide` runs it. A pass whose work grows with the square of a file may report little, so that no other test here
/// notices it.
#[test]
#[ignore = "measures: run it in release, on a machine that does nothing else"]
#[expect(clippy::disallowed_types, reason = "a measurement prints its figures")]
fn any_definition_that_fits_into_a_file_is_checked_within_two_seconds() {
    let mut slow = Vec::new();
    for wide in all(MOST) {
        let at = std::time::Instant::now();
        let found = found(&wide);
        let took = at.elapsed();
        let refused = count(&found, "E0102");
        println!(
            "{:>6} ms  {:>6} diagnostics  {}{}",
            took.as_millis(),
            found.len(),
            wide.name,
            if refused > 0 {
                "  (refused: too big)"
            } else {
                ""
            }
        );
        if took.as_secs() >= 2 {
            slow.push(wide.name);
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}
