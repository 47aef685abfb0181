//! Expressions and templates: their values and their errors.

mod limits;

use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use steersman_machine::values::expression::ast::{NodeKind, StmtKind};
use steersman_machine::values::expression::{
    Data, EvalKind, Expr, Names, Template, filters, partials, tests, to_json,
};

fn scope() -> Names {
    Names::from_json(json!({
        "state": {
            "balance": null, "name": "Ada", "done": false, "count": 3, "price": 2.5, "tags": ["a", "b"],
            "invoice": { "vendor": "Acme", "total": 1200, "lines": [{ "n": 1 }, { "n": 2 }] },
            "token": { "$sealed": "1.aa.bb.cc" }, "big": 9_007_199_254_740_993_i64, "none": null,
            "empty": [], "people": [{ "name": "Bo", "age": 30 }, { "name": "Al", "age": 25 }],
        },
        "args": { "cents": 900, "to": "a/b c", "limit": "1000" },
        "config": { "limit": 1000 },
        "calls": { "pay": { "ok": 0 } },
    }))
}

fn holds(source: &str) -> Json {
    let expr = Expr::parse(source).unwrap_or_else(|e| panic!("{source}: {e}"));
    let value = expr
        .eval(&scope())
        .unwrap_or_else(|e| panic!("{source}: {e}"));
    to_json(&value).expect("plain values")
}

fn refused(source: &str) -> (EvalKind, String) {
    let expr = Expr::parse(source).unwrap_or_else(|e| panic!("{source}: {e}"));
    match expr.eval(&scope()) {
        Ok(value) => panic!("{source} gives {value:?}"),
        Err(e) => {
            assert!(e.range.end <= source.len(), "{source}: {:?}", e.range);
            (e.kind, e.message)
        }
    }
}

fn renders(source: &str) -> Result<String, (EvalKind, String)> {
    let template = Template::parse(source).unwrap_or_else(|e| panic!("{source}: {e}"));
    template.render(&scope()).map_err(|e| (e.kind, e.message))
}

#[test]
fn expressions_give() {
    let cases: &[(&str, Json)] = &[
        ("args.cents <= config.limit", json!(true)),
        ("1 == 1.0", json!(true)),
        ("2 < 2.5", json!(true)),
        ("state.big == 9007199254740993", json!(true)),
        ("state.big == 9007199254740992.0", json!(false)),
        ("0.1 + 0.2 == 0.3", json!(false)),
        ("state.price * 2", json!(5.0)),
        ("7 // 2", json!(3)),
        ("-7 // 2", json!(-4)),
        ("-7 % 3", json!(2)),
        ("2 ** 10", json!(1024)),
        ("7 / 2", json!(3.5)),
        ("'a' + 'b'", json!("ab")),
        ("[1] + [2, 3]", json!([1, 2, 3])),
        ("'x' ~ 1 ~ true", json!("x1true")),
        ("state.name == 'Ada' and not state.done", json!(true)),
        ("state.balance is none", json!(true)),
        (
            "state.balance is not none and state.balance > 10",
            json!(false),
        ),
        ("state.balance == none", json!(true)),
        ("state.name != none", json!(true)),
        ("state.token is not none", json!(true)),
        ("calls.pay.ok > 0", json!(false)),
        ("'a' in state.tags", json!(true)),
        ("'z' not in state.tags", json!(true)),
        ("'d' in state.name", json!(true)),
        ("'vendor' in state.invoice", json!(true)),
        ("state.invoice.total", json!(1200)),
        ("state['invoice'].lines[1].n", json!(2)),
        ("state.tags[-1]", json!("b")),
        ("state.tags[:1]", json!(["a"])),
        ("state.name[::-1]", json!("adA")),
        ("1 < 2 < 3", json!(true)),
        ("1 < 2 < 2", json!(false)),
        ("'big' if args.cents > 500 else 'small'", json!("big")),
        ("state.tags | length", json!(2)),
        ("args.cents | cents", json!("9.00")),
        ("-5 | cents", json!("-0.05")),
        ("(0.1 + 0.2) | close(0.3, 0.0001)", json!(true)),
        (
            "state.people | map(attribute='name') | sort | join(', ')",
            json!("Al, Bo"),
        ),
        (
            "state.people | selectattr('age', 'gt', 26) | map(attribute='name') | list",
            json!(["Bo"]),
        ),
        ("state.people | sum(attribute='age')", json!(55)),
        ("[3, 1, 2] | sort(reverse=true)", json!([3, 2, 1])),
        ("[1, 2] | max", json!(2)),
        ("state.nothing | default('x')", json!("x")),
        ("state.balance | default(0)", json!(0)),
        ("state.nothing is defined", json!(false)),
        ("state.count is odd", json!(true)),
        (
            "state.invoice == { 'vendor': 'Acme', 'total': 1200, 'lines': [{'n': 1}, {'n': 2}] }",
            json!(true),
        ),
        ("range(3) | list", json!([0, 1, 2])),
        ("dict(a=1).a", json!(1)),
        ("true", json!(true)),
    ];
    for (source, expected) in cases {
        assert_eq!(holds(source), *expected, "{source}");
    }
}

/// Guards must not pass silently. Each of these is true, false or undefined in plain minijinja, and an error here.
#[test]
fn unlike_kinds_are_errors() {
    let cases = [
        ("1000000000 > '1000'", EvalKind::Unlike),
        ("args.cents > args.limit", EvalKind::Unlike),
        ("state.balance <= 10", EvalKind::Unset),
        ("args.cents > state.balance", EvalKind::Unset),
        ("state.tags.length", EvalKind::Unlike),
        ("calls.transfer.ok > 0", EvalKind::Undefined),
        ("state.count == '3'", EvalKind::Unlike),
        ("state.count != '3'", EvalKind::Unlike),
        ("state.done == 0", EvalKind::Unlike),
        ("true < false", EvalKind::Unlike),
        ("[1] < [2]", EvalKind::Unlike),
        ("state.name + 1", EvalKind::Unlike),
        ("1 + '1'", EvalKind::Unlike),
        ("'a' * 3", EvalKind::Unlike),
        ("true + 1", EvalKind::Unlike),
        ("-state.name", EvalKind::Unlike),
        ("state.balance + 1", EvalKind::Unset),
        ("state.balance | cents", EvalKind::Unset),
        ("state.balance.x is none", EvalKind::Unset),
        ("state.balance ~ ''", EvalKind::Unset),
        ("1 in state.tags", EvalKind::Unlike),
        ("[1, 'a'] == ['a', 1]", EvalKind::Unlike),
        ("[1, 'a'] | sort", EvalKind::Failed),
        ("[1, 'a'] | max", EvalKind::Failed),
        ("[1, 'a'] | sum", EvalKind::Failed),
        ("['a', 1] | unique | list", EvalKind::Failed),
        (
            "state.people | selectattr('age', 'gt', '26')",
            EvalKind::Failed,
        ),
        ("state.price | cents", EvalKind::Failed),
        ("state.nothing", EvalKind::Undefined),
        ("nothing", EvalKind::Undefined),
        ("not state.nothing", EvalKind::Undefined),
        ("state.nothing or true", EvalKind::Undefined),
        ("state.nothing is none", EvalKind::Undefined),
        ("state.nothing.x", EvalKind::Undefined),
        ("state.name.first", EvalKind::Unlike),
        ("1 / 0", EvalKind::Failed),
        ("1 % 0", EvalKind::Failed),
        (
            "9223372036854775807 * 9223372036854775807",
            EvalKind::Failed,
        ),
        ("state.name is odd", EvalKind::Unlike),
        ("state.name is gt 3", EvalKind::Unlike),
    ];
    for (source, kind) in cases {
        assert_eq!(refused(source).0, kind, "{source}: {}", refused(source).1);
    }
    let (_, message) = refused("args.cents > args.limit");
    assert_eq!(
        message,
        "`args.cents` is a number and `args.limit` is text: unlike kinds are not compared"
    );
}

#[test]
fn a_secret_may_only_be_tested_for_none() {
    let cases = [
        "state.token",
        "state.token == 'x'",
        "state.token == none",
        "state.token in state.tags",
        "state.token | length",
        "state.token ~ ''",
        "not state.token",
        "state.token and true",
        "state.token is string",
        "state.token['$sealed']",
        "state.token | default('x')",
        "[state.token] | map('string') | list",
    ];
    for source in cases {
        if source == "state.token" {
            // A secret may be passed on as a sealed value.
            assert_eq!(holds(source), json!({ "$sealed": "1.aa.bb.cc" }));
            continue;
        }
        let (kind, why) = refused(source);
        assert!(
            kind == EvalKind::Sealed || why.contains("secret"),
            "{source}: {why}"
        );
    }
    assert_eq!(
        renders("{{ state.token }}").unwrap_err().0,
        EvalKind::Sealed
    );
    assert_eq!(
        renders("{{ [state.token, 1] }}").unwrap(),
        r#"["(sealed)",1]"#
    );
    assert!(
        !renders("{{ {'t': state.token} | tojson }}")
            .unwrap()
            .contains("aa")
    );
}

#[test]
fn templates_render() {
    let cases = [
        ("plain", "plain"),
        ("a {{ state.count }} b", "a 3 b"),
        ("[{{ state.balance }}]", "[]"),
        ("[{{ state.balance.deep.er }}]", "[]"),
        ("[{{ state.balance | cents }}]", "[]"),
        ("[{{ state.balance or '?' }}]", "[?]"),
        ("[{{ state.balance | default('?') }}]", "[?]"),
        ("{{ state.invoice.lines }}", r#"[{"n":1},{"n":2}]"#),
        (
            "{{ state.invoice | tojson }}",
            r#"{"vendor":"Acme","total":1200,"lines":[{"n":1},{"n":2}]}"#,
        ),
        ("{% if state.nothing %}a{% else %}b{% endif %}", "b"),
        (
            "{% for p in state.people %}{{ loop.index }}{{ p.name }}{% if not loop.last %},{% endif %}{% endfor %}",
            "1Bo,2Al",
        ),
        (
            "{% for p in state.people if p.age > 26 %}{{ p.name }}{% endfor %}",
            "Bo",
        ),
        (
            "{% for x in state.empty %}x{% else %}none{% endfor %}",
            "none",
        ),
        ("{% for x in state.balance %}x{% endfor %}", ""),
        (
            "{% for k in state.invoice %}{{ k }} {% endfor %}",
            "vendor total lines ",
        ),
        (
            "{% for k, v in state.invoice | items %}{{ k }}={{ v }};{% endfor %}",
            r#"vendor=Acme;total=1200;lines=[{"n":1},{"n":2}];"#,
        ),
        (
            "{% for n in range(9) %}{% if n == 3 %}{% break %}{% endif %}{{ n }}{% endfor %}",
            "012",
        ),
        (
            "{% for n in range(4) %}{% if n is odd %}{% continue %}{% endif %}{{ n }}{% endfor %}",
            "02",
        ),
        (
            "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
            "2",
        ),
        (
            "{% set x = 1 %}{% for n in [1] %}{% set x = 2 %}{% endfor %}{{ x }}",
            "1",
        ),
        ("{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}", "3"),
        (
            "{% set t %}<{{ state.name }}>{% endset %}{{ t }}{{ t }}",
            "<Ada><Ada>",
        ),
        (
            "{% filter upper | replace('A', 'X') %}ada{% endfilter %}",
            "XDX",
        ),
        ("{% set a, b = [1, 2] %}{{ b }}", "2"),
        ("{# note #}x", "x"),
        ("{{ 1.0 }} {{ 2.5 }} {{ true }}", "1.0 2.5 true"),
    ];
    for (source, expected) in cases {
        assert_eq!(
            renders(source).unwrap_or_else(|e| panic!("{source}: {e:?}")),
            expected,
            "{source}"
        );
    }
    for source in [
        "{{ state.nothing }}",
        "{{ nothing }}",
        "{{ state.nothing.x }}",
        "{% for x in 3 %}{% endfor %}",
        "{{ state.balance + 1 }}",
    ] {
        assert!(renders(source).is_err(), "{source}");
    }
}

#[test]
fn a_single_expression_keeps_its_type() {
    let value = |source: &str| Template::parse(source).unwrap().value(&scope()).unwrap();
    assert_eq!(value("{{ state.count }}"), json!(3));
    assert_eq!(value(" {{ state.count }}"), json!(" 3"));
    assert_eq!(value("{{ state.invoice }}")["total"], json!(1200));
    assert_eq!(value("{{ none }}"), Json::Null);
    assert_eq!(value("{{ state.balance.x }}"), Json::Null);
    assert_eq!(value("{{ state.big }}"), json!(9_007_199_254_740_993_i64));
    assert!(
        Template::parse("{{ state.nothing }}")
            .unwrap()
            .value(&scope())
            .is_err()
    );
}

#[test]
fn data_leaves_out_what_is_unset() {
    let data = Data::parse(json!({
        "user": "{{ state.name }}", "balance": "{{ state.balance }}", "text": "b{{ state.balance }}",
        "list": ["{{ state.balance }}", "{{ state.count }}"], "plain": { "null": null, "n": 1 },
    }))
    .unwrap();
    assert_eq!(
        data.eval(&scope()).unwrap(),
        json!({ "user": "Ada", "text": "b", "list": [null, 3], "plain": { "null": null, "n": 1 } })
    );
    assert!(matches!(
        Data::parse(json!({ "a": [1, "x"] })).unwrap(),
        Data::Plain(_)
    ));
    assert!(Data::parse(json!({ "a": "{{ 1 +" })).is_err());
}

#[test]
fn urls_are_encoded_behind_the_host() {
    let scope = Names::from_json(json!({
        "base": "http://127.0.0.1:8090/v1", "id": "a/b c?d", "q": "ü&x", "safe": "x/y",
    }));
    let url = |source: &str| Template::parse(source).unwrap().render_url(&scope).unwrap();
    assert_eq!(
        url("{{ base }}/accounts/{{ id }}"),
        "http://127.0.0.1:8090/v1/accounts/a%2Fb%20c%3Fd"
    );
    assert_eq!(
        url("{{ base }}?q={{ q }}"),
        "http://127.0.0.1:8090/v1?q=%C3%BC%26x"
    );
    assert_eq!(
        url("{{ base }}/{{ safe | raw }}"),
        "http://127.0.0.1:8090/v1/x/y"
    );
}

#[test]
fn endless_and_huge_templates_are_errors() {
    let endless = "{% for a in range(1000) %}{% for b in range(1000) %}{% for c in range(1000) %}{{ a }}{% endfor %}{% endfor %}{% endfor %}";
    assert_eq!(renders(endless).unwrap_err().0, EvalKind::Fuel);
    let doubling = format!(
        "{{% set x = 'abcdefgh' %}}{}",
        "{% set x = x ~ x %}".repeat(60)
    );
    assert!(matches!(
        renders(&doubling).unwrap_err().0,
        EvalKind::Size | EvalKind::Fuel
    ));
    let lists = format!("{{% set x = [1] %}}{}", "{% set x = x + x %}".repeat(60));
    assert!(matches!(
        renders(&lists).unwrap_err().0,
        EvalKind::Size | EvalKind::Fuel
    ));
    assert!(renders("{{ range(10000000000) }}").is_err());
    let square = format!(
        "{{% set x = '{}' %}}{{{{ x | replace('a', x) | replace('a', x) }}}}",
        "a".repeat(10_000)
    );
    assert!(renders(&square).is_err());
    assert!(renders("{{ 'a' | indent(1000000000) }}").is_err());
}

#[test]
fn deep_and_long_sources_are_refused_without_a_crash() {
    let deep = format!("{}1{}", "(".repeat(5_000), ")".repeat(5_000));
    assert!(Expr::parse(&deep).is_err());
    let long = vec!["1"; 100_000].join(" + ");
    assert!(Expr::parse(&long).is_err());
    let nested = format!(
        "{}x{}",
        "{% if true %}".repeat(3_000),
        "{% endif %}".repeat(3_000)
    );
    assert!(Template::parse(&nested).is_err());
    let chain = format!("a{}", ".b".repeat(50_000));
    assert!(Expr::parse(&chain).is_err());
    let not = format!("{}true", "not ".repeat(1_500));
    assert!(Expr::parse(&not).is_err());
    assert!(Expr::parse(&vec!["1"; 50].join(" + ")).is_ok());
}

#[test]
fn what_is_not_carried_out_is_refused_by_name() {
    let cases = [
        ("{% include 'x' %}", "there are `steersman/speaker`"),
        ("{% include 'task' %}", "there is no partial `task`"),
        ("{% include name %}", "in quotes"),
        (
            "{% include 'steersman/task' ignore missing %}",
            "ignore missing",
        ),
        ("{% import 'x' as y %}", "import"),
        ("{% extends 'x' %}", "extends"),
        ("{% block a %}{% endblock %}", "block"),
        ("{% macro a() %}{% endmacro %}", "macros"),
        ("{% autoescape true %}{% endautoescape %}", "autoescape"),
        ("{% do range(3) %}", "do"),
        ("{{ x | uper }}", "did you mean `upper`?"),
        ("{{ x is strng }}", "did you mean `string`?"),
        ("{{ x.upper() }}", "| upper"),
        ("{{ now() }}", "no function `now`"),
        ("{% for a in x recursive %}{% endfor %}", "recursive"),
        ("{{ f(*a) }}", ""),
        ("{{ 1 + }}", ""),
        ("{% if %}", ""),
        ("{{ x", ""),
    ];
    for (source, part) in cases {
        let error = Template::parse(source)
            .err()
            .unwrap_or_else(|| panic!("{source} parses"));
        assert!(error.message.contains(part), "{source}: {error}");
        assert!(error.range.end <= source.len(), "{source}");
    }
    let braces = Expr::parse("{{ state.done }}").unwrap_err();
    assert!(braces.message.contains("without"), "{braces}");
}

#[test]
fn spans_name_the_whole_part() {
    let source = "state.balance is not none and args.cents <= state.invoice.total";
    let expr = Expr::parse(source).unwrap();
    let NodeKind::And(left, right) = &expr.node().kind else {
        panic!()
    };
    assert_eq!(&source[left.span.range()], "state.balance is not none");
    assert_eq!(
        &source[right.span.range()],
        "args.cents <= state.invoice.total"
    );
    let NodeKind::Compare { rest, .. } = &right.kind else {
        panic!()
    };
    assert_eq!(&source[rest[0].1.span.range()], "state.invoice.total");
    assert_eq!(rest[0].1.path().unwrap().join("/"), "state/invoice/total");

    let source = "Hi {{ state.name | uper }}";
    let error = Template::parse(source).unwrap_err();
    assert_eq!(&source[error.range], "uper");

    let source = "a\n{{ state.tags[0] | upper }} b";
    let template = Template::parse(source).unwrap();
    let StmtKind::Emit(node) = &template.body()[1].kind else {
        panic!()
    };
    assert_eq!(&source[node.span.range()], "state.tags[0] | upper");
}

/// Every filter and test that parses is implemented.
#[test]
fn every_filter_and_test_exists() {
    for name in filters() {
        let expr = Expr::parse(&format!("x | {name}")).unwrap();
        let scope = Names::from_json(json!({ "x": "abc" }));
        if let Err(e) = expr.eval(&scope) {
            assert!(
                !e.message.contains("unknown") && !e.message.contains("no filter"),
                "{name}: {e}"
            );
        }
    }
    for name in tests() {
        let expr = Expr::parse(&format!("x is {name}")).unwrap();
        let scope = Names::from_json(json!({ "x": 3 }));
        if let Err(e) = expr.eval(&scope) {
            assert!(!e.message.contains("there is no test"), "{name}: {e}");
        }
    }
}

/// The texts of partials never change, because the digest of a definition that includes one does not cover it. A
/// changed snapshot means that sessions send other texts; give a better text a new name instead.
#[test]
fn partials_never_change() {
    let mut shown = String::new();
    for partial in partials() {
        let mut source = String::new();
        for name in partial.reads {
            let value = match *name {
                "facts" => {
                    "{% set facts = {'city': 'Oslo', 'day': none, 'people': 2} %}".to_owned()
                }
                name => format!(
                    "{{% set {name} %}}\n THE {} \n{{% endset %}}",
                    name.to_uppercase()
                ),
            };
            source.push_str(&value);
        }
        write!(source, "{{% include \"{}\" %}}", partial.name).unwrap();
        let template = Template::parse(&source).unwrap();
        let text = template.render(&Names::default()).unwrap();
        writeln!(shown, "== {}\n{text}", partial.name).unwrap();
        // A partial reads exactly the names that it declares.
        for missing in partial.reads {
            let without = partial.reads.iter().filter(|name| *name != missing);
            let sets: Vec<String> = without
                .map(|name| format!("{{% set {name} = 'x' %}}"))
                .collect();
            let sets = sets.concat();
            let source = format!("{sets}{{% include \"{}\" %}}", partial.name);
            let error = Template::parse(&source)
                .unwrap()
                .render(&Names::default())
                .unwrap_err();
            assert!(error.message.contains(missing), "{}: {error}", partial.name);
            assert!(source[error.range.clone()].contains("include"), "{error}");
        }
    }
    let none = "{% set facts = {'day': none} %}{% include 'steersman/facts' %}";
    let none = Template::parse(none)
        .unwrap()
        .render(&Names::default())
        .unwrap();
    writeln!(shown, "== steersman/facts, none of them known\n{none}").unwrap();
    insta::assert_snapshot!(shown);
}

#[test]
fn what_a_partial_sets_ends_with_it_and_what_stands_around_it_stays() {
    let source = "a {% set task = 'b' %}{% include 'steersman/task' %} {{ task }} {% for task in ['c', 'd'] %}[{% include \"steersman/task\" %}]{% endfor %}";
    let text = Template::parse(source)
        .unwrap()
        .render(&Names::default())
        .unwrap();
    assert_eq!(text, "a Your task:\nb b [Your task:\nc][Your task:\nd]");
}

/// The page about templates lists each partial with the names that it reads.
#[test]
fn the_reference_has_each_partial() {
    let page = include_str!("../../../../docs/reference/expressions.md");
    for partial in partials() {
        let reads: Vec<String> = partial
            .reads
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        let reads = if reads.is_empty() {
            "–".to_owned()
        } else {
            reads.join(", ")
        };
        let row = format!("| `{}` | {reads} | {} |\n", partial.name, partial.about);
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn a_result_that_is_no_number_is_not_called_too_large() {
    for (source, why) in [
        ("(-8) ** 0.5", "the result is not a number"),
        ("(0 - 8) ** 0.5", "the result is not a number"),
        ("10.0 ** 400", "the number is too large"),
        ("10 ** 400", "the number is too large"),
    ] {
        let (kind, message) = refused(source);
        assert_eq!(kind, EvalKind::Failed, "{source}");
        assert!(message.contains(why), "{source}: {message}");
    }
}
