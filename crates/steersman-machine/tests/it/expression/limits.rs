//! No definition and no answer of a model can make an evaluation panic, run long or take all memory.

use serde_json::{Value as Json, json};
use std::thread;
use std::time::Duration;
use steersman_machine::values::expression::{
    EvalKind, Expr, Names, OUTPUT, Template, filters, tests, to_json,
};

/// Limit for one evaluation on a slow and busy machine. Most take a hundredth of it.
const PATIENCE: Duration = Duration::from_secs(20);

#[expect(clippy::disallowed_types, reason = "a test asks how long it took")]
fn soon<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let begun = std::time::Instant::now();
    let result = run();
    let took = begun.elapsed();
    assert!(took < PATIENCE, "{what}: {took:?}");
    result
}

/// Runs `run` with the default stack size of a thread.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(2 << 20).spawn(run);
    let joined = thread.expect("a thread starts").join();
    joined.expect("it does not panic");
}

fn numbers() -> Vec<Json> {
    vec![
        json!(i64::MIN),
        json!(i64::MIN + 1),
        json!(-1),
        json!(0),
        json!(3),
        json!(10_000),
        json!(10_001),
        json!(i64::MAX),
        json!(10_000_000_000_000_000_000_u64),
        json!(u64::MAX),
        json!(1e308),
        json!(-1e308),
        json!(-0.0),
        json!(5e-324),
        json!(0.5),
    ]
}

/// Expressions for numbers that JSON cannot hold.
const BEYOND: &[&str] = &[
    "170141183460469231731687303715884105727",
    "340282366920938463463374607431768211455",
    "('-170141183460469231731687303715884105728' | int)",
    "('inf' | float)",
    "('-inf' | float)",
    "('nan' | float)",
    "(1e308 | int)",
];

fn inputs() -> Vec<Json> {
    vec![
        json!("Some text, and more.\n".repeat(50)),
        json!((0..300).collect::<Vec<_>>()),
        json!(
            (0..100)
                .map(|n| json!({ "a": n, "b": "x" }))
                .collect::<Vec<_>>()
        ),
        json!({ "a": 1, "b": [2, 3] }),
        json!("17"),
        json!(null),
    ]
}

#[test]
fn no_number_makes_a_filter_a_test_or_a_function_panic() {
    let numbers = numbers();
    let mut shapes: Vec<String> = Vec::new();
    for name in filters() {
        for args in ["n", "n, m", "n, s", "s, n", "n, m, n"] {
            shapes.push(format!("x | {name}({args})"));
            shapes.push(format!("n | {name}({args})"));
        }
        for by in [
            "width",
            "precision",
            "base",
            "indent",
            "count",
            "default",
            "maxsplit",
        ] {
            shapes.push(format!("x | {name}({by}=n)"));
            shapes.push(format!("n | {name}({by}=m)"));
        }
        shapes.push(format!("[n, m] | {name}"));
        shapes.push(format!("[n, m] | map('{name}', n) | list"));
        shapes.push(format!("n | {name}"));
    }
    for name in tests() {
        shapes.push(format!("n is {name}(m)"));
        shapes.push(format!("n is {name}"));
        shapes.push(format!("[n, m] | select('{name}', n) | list"));
    }
    for op in ["+", "-", "*", "/", "//", "%", "**", "~", "<", "==", "in"] {
        shapes.push(format!("n {op} m"));
    }
    for other in [
        "-n",
        "x[n]",
        "x[n:]",
        "x[:n]",
        "x[::n]",
        "x[n:m:n]",
        "range(n)",
        "range(n, m)",
        "range(n, m, n)",
        "range(n, m, 6148914691236517205)",
        "range(m, n, -6148914691236517205)",
        "dict(a=n)",
    ] {
        shapes.push(other.to_owned());
    }
    let exprs: Vec<Expr> = shapes
        .iter()
        .map(|shape| Expr::parse(shape).unwrap_or_else(|e| panic!("{shape}: {e}")))
        .collect();
    let inputs = inputs();
    for (at, n) in numbers.iter().enumerate() {
        // Each shape is evaluated with each number, and with some of the other inputs.
        for (k, x) in inputs.iter().enumerate() {
            let m = &numbers[(at + 4 * k) % numbers.len()];
            let scope = Names::from_json(json!({ "x": x, "n": n, "m": m, "s": "s" }));
            for expr in exprs
                .iter()
                .skip((at + k) % inputs.len())
                .step_by(inputs.len())
            {
                let value = soon(&expr.source, || expr.eval(&scope));
                let _ = value.map(|value| to_json(&value));
            }
        }
    }
    let scope = Names::from_json(json!({ "x": inputs[1], "s": "s" }));
    for beyond in BEYOND {
        for shape in &shapes {
            let source = format!("{{% set n = {beyond} %}}{{% set m = n %}}{{{{ {shape} }}}}");
            let template = Template::parse(&source).unwrap_or_else(|e| panic!("{source}: {e}"));
            let _ = soon(&source, || template.render(&scope));
        }
    }
}

#[test]
fn a_number_that_is_too_large_is_refused_by_name() {
    let scope = Names::from_json(json!({
        "l": [1, 2, 3], "t": "text", "huge": 10_000_000_000_000_000_000_u64, "min": i64::MIN, "max": i64::MAX,
    }));
    for source in [
        "l | slice(huge)",
        "l | batch(huge, 0)",
        "l | batch(max)",
        "t | indent(huge)",
        "t | indent(min)",
        "t | indent(width=huge)",
        "2.5 | round(min)",
        "2.5 | round(1e300)",
        "t | split('e', max)",
        "l | map('round', huge) | list",
        "l | slice(340282366920938463463374607431768211455)",
    ] {
        let error = Expr::parse(source).unwrap().eval(&scope).unwrap_err();
        assert_eq!(error.kind, EvalKind::Failed, "{source}: {error}");
        assert!(
            error.message.contains("numbers here are at most 10000"),
            "{source}: {error}"
        );
    }
    let value = |source: &str| {
        let value = Expr::parse(source).unwrap().eval(&scope).unwrap();
        to_json(&value).unwrap()
    };
    // A number that is a value, not a size, has no such limit.
    assert_eq!(
        value("none | default(huge)"),
        json!(10_000_000_000_000_000_000_u64)
    );
    assert_eq!(value("l[:huge]"), json!([1, 2, 3]));
    assert_eq!(
        value("range(-9223372036854775807, 9223372036854775807, 6148914691236517205)"),
        json!([
            -9_223_372_036_854_775_807_i64,
            -3_074_457_345_618_258_602_i64,
            3_074_457_345_618_258_603_i64
        ])
    );
    assert_eq!(value("huge is even"), json!(true));
    assert_eq!(
        value("('-170141183460469231731687303715884105728' | int) < 0"),
        json!(true)
    );
    let error = Expr::parse("-('-170141183460469231731687303715884105728' | int)").unwrap();
    assert!(
        error
            .eval(&scope)
            .unwrap_err()
            .message
            .contains("too large")
    );
}

#[test]
fn objects_are_compared_in_the_time_that_they_take_to_read() {
    let object = |n: i64| -> Json {
        let fields = (0..n).map(|k| (format!("k{k}"), json!(k)));
        Json::Object(fields.collect())
    };
    let turned = |n: i64| -> Json {
        let fields = (0..n).rev().map(|k| (format!("k{k}"), json!(k)));
        Json::Object(fields.collect())
    };
    let scope =
        Names::from_json(json!({ "a": object(40_000), "b": turned(40_000), "c": object(39_999) }));
    for (source, holds) in [
        ("a == b", true),
        ("a != b", false),
        ("a == c", false),
        ("a in [c, b]", true),
        ("[a] == [b]", true),
        ("'k39999' in a", true),
        ("'k39999' in c", false),
    ] {
        let given = soon(source, || Expr::parse(source).unwrap().holds(&scope));
        assert_eq!(given.unwrap(), holds, "{source}");
    }
    // Too large a comparison is an error, within the same time.
    let scope = Names::from_json(json!({ "a": object(300_000), "b": turned(300_000) }));
    for source in ["a == b", "[a, b] | unique", "a in [b, b]"] {
        let error = soon(source, || {
            Expr::parse(source).unwrap().eval(&scope).unwrap_err()
        });
        assert_eq!(error.kind, EvalKind::Fuel, "{source}: {error}");
    }
}

/// Each of these reads or makes a large amount in one step. Such steps count too, so the evaluation ends soon.
#[test]
fn templates_that_read_or_make_too_much_end_soon() {
    let scope = Names::from_json(json!({
        "X": "abcdefghi ".repeat(90_000), "Y": format!("{}b", "a".repeat(900_000)), "C": "\u{1}".repeat(900_000),
        "N": "\n".repeat(900_000), "L": (0..100_000).collect::<Vec<_>>(),
        "B": std::iter::once("A".repeat(900_000)).chain((0..5_000).map(|n| format!("B{n}"))).collect::<Vec<_>>(),
    }));
    let in_a_loop = |body: &str| {
        format!(
            "{{% set x = X %}}{{% set l = L %}}{{% for i in range(100000) %}}{body}{{% endfor %}}"
        )
    };
    let doubled = format!("{{% set x = [X] %}}{}", "{% set x = [x, x] %}".repeat(60));
    let mut sources: Vec<String> = [
        "{% if x is lower %}{% endif %}",
        "{% if X is lower %}{% endif %}",
        "{% if x is startingwith(x) %}{% endif %}",
        "{% set y = x[0:1] %}",
        "{% set y = l[0:1] %}",
        "{% set y = x ~ 1 %}",
        "{% set y = x + x %}",
        "{% set y = X %}",
        "{% if x == X %}{% endif %}",
        "{% if 'z' in x %}{% endif %}",
        "{% if -1 in l %}{% endif %}",
        "{% for k in l %}{% break %}{% endfor %}",
        "{% for a, b in [l, l] | zip(l) %}{% endfor %}",
        "{% set y %}{{ x }}{% endset %}",
        "{% filter upper %}{{ x }}{% endfilter %}",
    ]
    .map(in_a_loop)
    .into();
    for name in filters() {
        // A filter that reads no input costs one step, so it runs until the steps of the loop are used up.
        let text = format!("{{% set y = x | {name} %}}{{% set y = x | string %}}");
        let list = format!("{{% set y = l | {name} %}}{{% set y = l | list %}}");
        sources.extend([in_a_loop(&text), in_a_loop(&list)]);
    }
    for more in [
        "{{ range(20000) | map('string') | map('replace', '1', X) | list }}",
        "{{ range(100000) | map(attribute='a', default=X) | list }}",
        "{{ L | select('in', L) | list }}",
        "{{ Y | trim('c' ~ Y) }}",
        "{{ N | indent(9999) }}",
        "{{ X | replace('', X) }}",
        "{{ [C, C, C, C, C, C, C, C, C] }}",
        "{{ B | sort | length }}",
        "{{ B | unique | list | length }}",
        "{{ L | zip(L, L, L, L, L, L, L, L, L, L, L, L) | list | length }}",
    ] {
        sources.push(more.to_owned());
    }
    for end in [
        "{{ x }}",
        "{{ x == x }}",
        "{{ x | tojson }}",
        "{{ x in [x] }}",
        "{{ [x, x] | unique | length }}",
        "{{ 'a' ~ x }}",
        "{{ state[x] }}",
    ] {
        sources.push(format!("{doubled}{end}"));
    }
    for source in &sources {
        let template = Template::parse(source).unwrap_or_else(|e| panic!("{source}: {e}"));
        let ended = soon(source, || template.render(&scope)).map(|text| text.len());
        assert!(ended.is_err(), "{source}: {ended:?}");
    }
}

/// Usual prompts stay far below the limits.
#[test]
fn what_people_write_is_far_from_the_limits() {
    let scope = Names::from_json(json!({
        "doc": "A line of a document, as long as lines are.\n".repeat(20_000),
        "rows": (0..2_000).map(|n| json!({ "id": n, "name": format!("name {}", n % 50), "tags": ["a", "b"] })).collect::<Vec<_>>(),
    }));
    let renders = |source: &str| {
        let text = Template::parse(source).unwrap().render(&scope);
        text.unwrap_or_else(|e| panic!("{source}: {e}")).len()
    };
    assert!(
        renders("{% if doc %}{{ doc }}{{ doc | trim }}{{ doc | length }}{% endif %}") > 1_700_000
    );
    assert!(
        renders(
            "{% for row in rows %}{{ loop.index }}. {{ row.name }}: {{ row.tags | join(', ') }}\n{% endfor %}"
        ) > 20_000
    );
    assert!(
        renders("{{ rows | sort(attribute='name') | map(attribute='id') | join(',') }}") > 5_000
    );
    assert!(
        renders(
            "{% for name, group in rows | groupby('name') %}{{ name }}: {{ group | length }} {% endfor %}"
        ) > 500
    );
    assert!(renders("{{ rows }}{{ rows | tojson }}") > 100_000);
    assert!(
        renders(
            "{{ rows | selectattr('id', 'lt', 100) | list | length }}{{ rows | unique | list | length }}"
        ) > 3
    );
    assert!(renders("{% for line in doc | lines %}{{ line | trim }}{% endfor %}") > 800_000);
    // An evaluation may make exactly the maximal output, and no more.
    let whole = Names::from_json(json!({ "text": "x".repeat(OUTPUT / 8) }));
    let eight = Template::parse(&"{{ text }}".repeat(8)).unwrap();
    assert_eq!(eight.render(&whole).unwrap().len(), OUTPUT);
    let nine = Template::parse(&"{{ text }}".repeat(9)).unwrap();
    assert_eq!(nine.render(&whole).unwrap_err().kind, EvalKind::Size);
}

#[test]
fn values_that_nest_without_end_are_refused_where_they_are_made() {
    on_a_small_stack(|| {
        for (first, around) in [
            ("[]", "[x]"),
            ("{}", "{'a': x}"),
            ("{}", "dict(a=x)"),
            ("[]", "[x] + [x]"),
            ("[[]]", "[x] | list"),
            ("[[]]", "[x] | batch(1)"),
            ("[[]]", "[x] | zip([x])"),
            ("{}", "{'a': x} | items"),
            ("{}", "{'a': x} | chain({'b': 1})"),
        ] {
            let around = format!("{{% set x = {around} %}}");
            let source = format!("{{% set x = {first} %}}{}", around.repeat(10_000));
            let error = Template::parse(&source).unwrap().render(&Names::default());
            let error = error.unwrap_err();
            assert!(
                error.message.contains("nest more than 100 deep"),
                "{around}: {error}"
            );
        }
        // Repeated filters over a flat value add no depth.
        for (first, around) in [
            ("[1, 2]", "x | reverse"),
            ("{'a': 1}", "x | chain({'b': 2})"),
        ] {
            let around = format!("{{% set x = {around} %}}");
            let source = format!("{{% set x = {first} %}}{}{{{{ x }}}}", around.repeat(2_000));
            Template::parse(&source)
                .unwrap()
                .render(&Names::default())
                .unwrap();
        }
        let mut deep = json!(1);
        for _ in 0..120 {
            deep = json!([deep]);
        }
        let scope = Names::from_json(json!({ "deep": deep }));
        for source in [
            "{{ deep }}",
            "{{ [deep] }}",
            "{{ deep == deep }}",
            "{{ [deep, deep] | unique | list }}",
        ] {
            Template::parse(source).unwrap().render(&scope).unwrap();
        }
        let maps = format!("[deep] | map({}'string')", "'map', ".repeat(100));
        assert!(Expr::parse(&maps).unwrap().eval(&scope).is_err());
    });
}

/// Blocks: their opening and closing tags.
const BLOCKS: &[(&str, &str)] = &[
    ("{% if 1 %}", "{% endif %}"),
    ("{% if 1 %}{% else %}", "{% endif %}"),
    ("{% for a in [1] %}", "{% endfor %}"),
    ("{% for a in [] %}{% else %}", "{% endfor %}"),
    ("{% with a = 1 %}", "{% endwith %}"),
    ("{% set a %}", "{% endset %}"),
    ("{% filter upper %}", "{% endfilter %}"),
    ("{% autoescape true %}", "{% endautoescape %}"),
    ("{% macro a() %}", "{% endmacro %}"),
    ("{% call a() %}", "{% endcall %}"),
];

/// Expressions: a prefix, the part that is repeated, and a suffix.
const PARTS: &[(&str, &str, &str)] = &[
    ("", "not ", "a"),
    ("", "-", "1"),
    ("", "- ", "a"),
    ("a", " | upper", ""),
    ("a", ".b", ""),
    ("a", "[0]", ""),
    ("a", "[0:1]", ""),
    ("a", "()", ""),
    ("a", " is odd", ""),
    ("a", " is not odd", ""),
    ("1", " + 1", ""),
    ("1", " - 1", ""),
    ("1", " - -1", ""),
    ("1", " * 1", ""),
    ("2", " ** 2", ""),
    ("1", " ~ 1", ""),
    ("1", " < 1", ""),
    ("1", " == 1", ""),
    ("1", " in 1", ""),
    ("1", " not in 1", ""),
    ("1", " and 1", ""),
    ("1", " or 1", ""),
    ("1", " and not 1", ""),
    ("", "a if b else ", "c"),
    ("1", " if 1", ""),
    ("", "(", ""),
    ("", "[", ""),
    ("", "{'a': ", ""),
    ("", "a(", ""),
    ("", "a[", ""),
    ("", "a | map(", ""),
    ("", "not (", ""),
    ("", "-(", ""),
    ("", "- - - - -(", ""),
    ("", "not not not not [not ", ""),
    ("", "(a if b else ", "c"),
    ("'a'", " 'a'", ""),
    ("[1", ", 1", "]"),
    ("range(1", ", 1", ")"),
    ("a", " is in -", "1"),
    ("a", " is in [", ""),
    ("", "(not -", "1"),
];

/// Everything that a template can repeat, up to two megabytes of it, is refused or evaluated without a stack overflow.
#[test]
fn no_construct_exhausts_the_stack_however_often_it_stands() {
    let times = |n: usize, part: &str| part.repeat(n.min((2 << 20) / part.len()));
    let many = 100_000;
    on_a_small_stack(move || {
        let mut templates = vec![
            format!("{{% if 0 %}}{}{{% endif %}}", times(many, "{% elif 0 %}")),
            format!("{{%if 0%}}{}{{%endif%}}", times(many, "{%elif 0%}x")),
            // Within the limit of one block and of the parser's own count, but too deep together.
            format!(
                "{}{}",
                times(140, "{% if 0 %}{% elif 0 %}{% elif 0 %}"),
                times(140, "{% endif %}")
            ),
            format!(
                "{{% filter {}upper %}}{{% endfilter %}}",
                times(many, "upper | ")
            ),
            format!("{{% set {}a{} = 1 %}}", times(many, "("), times(many, ")")),
            format!(
                "{{% for {}a{} in x %}}{{% endfor %}}",
                times(many, "("),
                times(many, ")")
            ),
            format!("{{% set a{} = 1 %}}", times(many, ".b")),
            format!(
                "{{% for a in x %}}{}{{% endfor %}}",
                times(many, "{% else %}")
            ),
        ];
        for (open, close) in BLOCKS.iter().copied() {
            templates.push(format!("{}{}", times(many, open), times(many, close)));
            templates.push(times(many, open));
        }
        let mut parts = Vec::new();
        for (before, part, behind) in PARTS.iter().copied() {
            for n in [400, 1_900, many] {
                let inside = format!("{before}{}{behind}", times(n, part));
                // The same with all brackets closed.
                let closed: String = inside
                    .chars()
                    .rev()
                    .filter_map(|c| match c {
                        '(' if !part.contains(')') => Some(')'),
                        '[' if !part.contains(']') && before != "[1" => Some(']'),
                        '{' => Some('}'),
                        _ => None,
                    })
                    .collect();
                parts.push(format!("{inside}1{closed}"));
                parts.push(inside);
            }
        }
        // A long expression inside the deepest blocks, valid and with a syntax error.
        let (open, close) = ("{% if 1 %}".repeat(98), "{% endif %}".repeat(98));
        for part in &parts {
            let _ = soon(part, || {
                Expr::parse(part).map(|expr| expr.eval(&Names::default()))
            });
            templates.push(format!("{{{{ {part} }}}}"));
            if part.len() < 20_000 {
                templates.push(format!("{open}{{{{ {part} }}}}{close}"));
                templates.push(format!("{open}{{{{ {part} ? }}}}{close}"));
                templates.push(format!("{{% set a = {part} %}}"));
            }
        }
        for source in &templates {
            let _ = soon(source, || {
                Template::parse(source).map(|t| t.render(&Names::default()))
            });
        }
        for source in &templates[..8] {
            let error = Template::parse(source).map(|_| ()).unwrap_err();
            assert!(error.range.end <= source.len());
        }
        let error = Template::parse(&templates[0]).unwrap_err();
        assert_eq!(error.message, "nested more than 100 deep");
    });
    // Only nesting is refused, not repetition.
    let flat = "{% if 0 %}{% elif 0 %}{% elif 1 %}x{% else %}y{% endif %}".repeat(1_000);
    assert!(Template::parse(&flat).is_ok());
    let chain = format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(90));
    assert!(Template::parse(&chain).is_ok());
    let list = format!("[{}]", vec!["not -1"; 400].join(", "));
    assert!(Expr::parse(&list).is_ok());
}
