//! Artifacts: writing, reading, listing and searching; large results; invalid names.

use schemars::JsonSchema;
use serde::Deserialize;
use steersman::build::{Class, Save};
use steersman::runtime::artifact::Artifacts;
use steersman::{Network, Rerun, Session, StartOptions, Steersman, Turn, agent, declare, tool};

#[derive(Deserialize, JsonSchema)]
struct Lines {
    lines: usize,
}

/// A network of two agents: the desk has tools that return as many lines as they are asked for, the editor has the
/// built-in tools.
fn network() -> Network {
    let text = |l: Lines| async move {
        let lines: Vec<String> = (1..=l.lines)
            .map(|n| format!("line {n} of the page"))
            .collect();
        Ok::<_, String>(lines.join("\n"))
    };
    let list = |l: Lines| async move {
        Ok::<_, String>((0..l.lines).map(|n| vec![n; 3]).collect::<Vec<_>>())
    };
    Network::builder("press")
        .tool(tool("fetch", 1, text).describe("Fetches a page.").pure())
        .tool(tool("rows", 1, list).describe("Rows of a table.").pure())
        .agent(agent("desk").system("You write.").tools(["fetch", "rows"]))
        .agent(agent("editor").system("You edit.").tools(["artifacts"]))
        .key("entry", serde_json::json!(["desk", "editor"]))
        .build()
        .unwrap()
}

async fn begin(entry: &str, script: &str) -> (Session, String) {
    let steersman = Steersman::options()
        .script_all(format!("{entry}:\n{script}"))
        .in_memory();
    let start = StartOptions {
        agent: Some(entry.into()),
        ..StartOptions::default()
    };
    let session = steersman.start_with(&network(), start).await.unwrap();
    let Turn::Answer(answer) = session.ask("Go.").await.unwrap() else {
        panic!("it answers");
    };
    (session, answer.text().to_owned())
}

/// Name, version, media type and content of all artifacts of a session.
async fn made(session: &Session) -> Vec<(String, usize, String, String)> {
    let artifacts: Artifacts = session.artifacts().await.unwrap();
    let mut made = Vec::new();
    for version in artifacts.versions() {
        let content = artifacts.content(&version).await.unwrap();
        let text = String::from_utf8_lossy(&content).into_owned();
        made.push((version.name, version.version, version.media, text));
    }
    made
}

#[tokio::test]
async fn what_is_kept_has_versions_and_is_read_by_lines() {
    let (session, told) = begin(
        "editor",
        r#"
        - call: { artifact_write: { name: notes/plan.md, content: "one\ntwo\nthree\n" } }
        - call: { artifact_write: { name: notes/plan.md, content: "one\nTwo\nthree\nfour\n" } }
        - call: { artifact_read: { name: notes/plan.md, from: 2, lines: 2 } }
        - call: { artifact_write: { name: seen, content: "{{ request.last }}" } }
        - call: { artifact_read: { name: notes/plan.md, version: 1 } }
        - call: { artifact_write: { name: seen, content: "{{ request.last }}" } }
        - call: { artifact_search: { query: "TWO" } }
        - call: { artifact_write: { name: seen, content: "{{ request.last }}" } }
        - call: { artifact_list: {} }
        - "{{ request.last }}"
        "#,
    )
    .await;
    let made = made(&session).await;
    let seen: Vec<&str> = made
        .iter()
        .filter(|m| m.0 == "seen")
        .map(|m| &*m.3)
        .collect();
    insta::assert_snapshot!(format!("{}\n---\n{told}", seen.join("\n---\n")));
    assert_eq!(made[0].3, "one\ntwo\nthree\n");
}

#[tokio::test]
async fn what_is_not_there_or_has_no_name_is_told() {
    let (session, told) = begin(
        "editor",
        r#"
        - call: { artifact_read: { name: plan.md } }
        - call: { artifact_write: { name: a, content: "{{ request.last }}" } }
        - call: { artifact_read: { name: a, version: 7 } }
        - call: { artifact_write: { name: a, content: "{{ request.last }}" } }
        - call: { artifact_read: { name: a, from: 9 } }
        - call: { artifact_write: { name: ../../etc/passwd, content: x } }
        - call: { artifact_write: { name: a, content: "{{ request.last }}" } }
        - call: { artifact_search: { query: "  " } }
        - "{{ request.last }}"
        "#,
    )
    .await;
    let made = made(&session).await;
    let seen: Vec<&str> = made.iter().map(|m| &*m.3).collect();
    insta::assert_snapshot!(format!("{}\n---\n{told}", seen.join("\n---\n")));
    assert!(made.iter().all(|m| m.0 == "a"), "{made:?}");
}

#[tokio::test]
async fn a_large_result_becomes_an_artifact_that_can_be_read() {
    let (session, told) = begin(
        "desk",
        r#"
        - call: { fetch: { lines: 10 } }
        - call: { artifact_read: { name: none } }
        - call: { fetch: { lines: 2000 } }
        - call: { artifact_read: { name: fetch-3.txt, from: 1990 } }
        - "{{ request.last }}"
        "#,
    )
    .await;
    let made = made(&session).await;
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(made[0].3.lines().count(), 2000);
    assert!(told.contains("line 2000 of the page"), "{told}");
}

#[tokio::test]
async fn json_that_is_large_has_lines() {
    let (session, told) = begin(
        "desk",
        r#"
        - call: { rows: { lines: 3000 } }
        - "{{ request.last }}"
        "#,
    )
    .await;
    let made = made(&session).await;
    assert_eq!(&*made[0].2, "application/json");
    let kept: serde_json::Value = serde_json::from_str(&made[0].3).unwrap();
    assert_eq!(kept[2999], serde_json::json!([2999, 2999, 2999]));
    let preview = told.replace(&made[0].0, "NAME");
    assert!(preview.len() < 3_000, "{preview}");
    insta::assert_snapshot!(preview.lines().last().unwrap());
}

/// The program runs once: a rerun takes its artifact from the record.
#[tokio::test]
async fn a_command_reads_an_artifact_and_makes_one_which_a_rerun_has_without_running_it() {
    let runs = std::env::temp_dir().join(format!("steersman-runs-{}", std::process::id()));
    let _ = std::fs::remove_file(&runs);
    let script = format!(
        r#"echo run >> "{}"; sort -o "$OUT" "$1"; wc -l < "$OUT""#,
        runs.display()
    );
    let sort = declare("sort_rows")
        .describe("Sorts rows.")
        .parameter("table", "artifact")
        .effect(Class::Unsafe)
        .command(["sh", "-c", &script, "sort", "{{ args.table }}"])
        .env("OUT", "{{ save }}")
        .save(
            Save::new()
                .name("sorted/{{ args.table }}")
                .media("text/x-rows"),
        )
        .result("{{ result }} rows in sorted/{{ args.table }}");
    let desk = agent("desk")
        .system("You sort.")
        .tools(["artifacts", "sort_rows"]);
    let network = Network::builder("rows")
        .declare(sort)
        .agent(desk)
        .build()
        .unwrap();
    let steersman = Steersman::options()
        .script_all(
            r#"desk:
            - call: { artifact_write: { name: rows.csv, content: "b\na\n" } }
            - call: { sort_rows: { table: rows.csv } }
            - call: { artifact_read: { name: sorted/rows.csv } }
            - "{{ request.last }}""#,
        )
        .in_memory();
    let session = steersman.start(&network).await.unwrap();
    let turn = session.ask("Sort.").await.unwrap();
    let told = turn.answer().unwrap().text().to_owned();
    assert!(told.contains("a\nb"), "{told}");
    let sorted = |made: Vec<(String, usize, String, String)>| {
        made.into_iter().find(|of| of.0 == "sorted/rows.csv")
    };
    let expected = (
        "sorted/rows.csv".to_owned(),
        1,
        "text/x-rows".to_owned(),
        "a\nb\n".to_owned(),
    );
    assert_eq!(sorted(made(&session).await), Some(expected.clone()));
    let again = steersman
        .rerun(session.id(), Rerun::default())
        .await
        .unwrap();
    let again = steersman.session(&again.session).await.unwrap();
    assert_eq!(sorted(made(&again).await), Some(expected));
    let ran = std::fs::read_to_string(&runs).unwrap();
    assert_eq!(ran.lines().count(), 1, "the program ran once");
    std::fs::remove_file(runs).unwrap();
}
