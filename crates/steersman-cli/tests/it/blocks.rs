//! Every block of a document is checked by a test, or the page says in its source why not: `<!-- not run: WHY -->` on the line
//! before the block.

use crate::docs::{Block, blocks};
use crate::readme::split;
use crate::world::{self, World};
use std::collections::BTreeSet;
use std::path::PathBuf;
use steersman_definition::{Files, compile};

/// Beginning of a comment that says why the next block is not run.
const NOT_RUN: &str = "<!-- not run: ";

/// Pages whose console blocks other tests run, and compare with what is printed. `docs.rs`, `import.rs`, `python.rs` and
/// `search.rs` have these tests.
const PLAYED: [&str; 18] = [
    "concepts/search",
    "guides/artifacts",
    "guides/batches",
    "guides/first-definition",
    "guides/grading",
    "guides/import",
    "guides/knowledge",
    "guides/mcp",
    "guides/mcp-server",
    "guides/models",
    "guides/operating",
    "guides/parallel",
    "guides/patterns",
    "guides/people",
    "guides/simulation",
    "guides/testing",
    "guides/tools",
    "guides/reruns",
];

/// Pages whose Rust other tests build, and compare with the page: `built.rs`, `service.rs` and `guide.rs` of the library.
const BUILT: [&str; 3] = ["guides/building", "guides/embedding", "guides/testing"];

/// Blocks of one kind that other tests compare with what runs: `service.rs` and `guide.rs` of the library, `served.rs`,
/// `agui_clients.rs`, `clients.rs`, `mcp_server.rs`, `openai_clients.rs` and `opentelemetry.rs`.
const COMPARED: [(&str, &str); 23] = [
    ("guides/clients", "python"),
    ("guides/clients", "rust"),
    ("guides/clients", "ts"),
    ("guides/clients", "yaml"),
    ("guides/embedding", "http"),
    ("guides/embedding", "toml"),
    ("guides/embedding", "yaml"),
    ("guides/front-ends", "js"),
    ("guides/front-ends", "yaml"),
    ("guides/serving", "http"),
    ("guides/serving", "json"),
    ("guides/serving", "python"),
    ("guides/serving", "yaml"),
    ("guides/serving-a2a", "http"),
    ("guides/serving-a2a", "json"),
    ("guides/serving-a2a", "yaml"),
    ("guides/serving-mcp", "json"),
    ("guides/serving-mcp", "yaml"),
    ("guides/serving-operating", "http"),
    ("guides/serving-operating", "json"),
    ("guides/serving-operating", "yaml"),
    ("guides/tracing", "text"),
    ("guides/tracing", "yaml"),
];

/// The pages that people read, without decisions and tables that programs write.
fn pages() -> Vec<(String, PathBuf)> {
    let root = world::root();
    let mut pages = vec![root.join("README.md"), root.join("SECURITY.md")];
    pages.extend(world::files(&root.join("docs")));
    let pages = pages.into_iter().filter_map(|page| {
        let name = page.strip_prefix(&root).ok()?.to_str()?.to_owned();
        let name = name.strip_prefix("docs/").unwrap_or(&name);
        let name = name.strip_suffix(".md")?.to_owned();
        let written = name.starts_with("decisions/") || name == "reference/commands";
        (!written).then_some((name, page))
    });
    pages.collect()
}

/// Returns what is wrong with a block; `None` if it is checked here or by another test.
fn fault(world: &World, page: &str, block: &Block) -> Option<String> {
    match &*block.fence {
        fence if COMPARED.contains(&(page, fence)) => None,
        "console" => (!PLAYED.contains(&page)).then(|| "no test plays it".to_owned()),
        "rust" | "rust,ignore" => (!BUILT.contains(&page)).then(|| "no test builds it".to_owned()),
        // A block for a named file is used by the commands below it.
        _ if block.file.is_some() => (!PLAYED.contains(&page) && page != "guides/embedding")
            .then(|| "nothing uses this file".to_owned()),
        "yaml" => sound(&block.text),
        "json" => {
            let fault = serde_json::from_str::<serde_json::Value>(&block.text).err();
            fault.map(|fault| fault.to_string())
        }
        "sh" | "text" => typed(world, &block.text),
        "ini" => typed(world, &block.text.replace("ExecStart=/usr/local/bin/", "")),
        _ => Some("no test reads it".to_owned()),
    }
}

/// Returns what is wrong with a definition.
fn sound(text: &str) -> Option<String> {
    let (network, found) = compile(&Files::new("steersman.yaml", text));
    let found: Vec<String> = found.iter().map(|d| d.render(false)).collect();
    network.is_none().then(|| found.join("\n"))
}

/// Returns what is wrong with commands: the program must take all arguments of each. A block without a command of ours is not
/// checked by that.
fn typed(world: &World, text: &str) -> Option<String> {
    let commands = text.lines().flat_map(|line| {
        let line = line.strip_prefix("$ ").unwrap_or(line);
        let line = line.split("   ").next().unwrap_or(line);
        let line = line.split(" #").next().unwrap_or(line);
        let line = line.split(" > ").next().unwrap_or(line);
        let commands = line.split(['|', '&']).map(str::trim);
        commands.filter(|command| command.starts_with("steersman "))
    });
    let commands: Vec<&str> = commands.collect();
    if commands.is_empty() {
        return Some("no command of ours is in it".to_owned());
    }
    let wrong = commands.iter().filter_map(|command| {
        let words = split(command);
        let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        // The help is printed in place of the command, once all arguments before it were understood.
        let ran = world.run(&[&args[..], &["--help"]].concat());
        (ran.code != Some(0)).then(|| format!("{command}\n{}", ran.err))
    });
    let wrong: Vec<String> = wrong.collect();
    (!wrong.is_empty()).then(|| wrong.join("\n"))
}

/// The guide to a first definition shows the error of its guard, before it is mended.
#[test]
fn the_error_in_the_first_definition_is_what_check_says() {
    let page = world::root().join("docs/guides/first-definition.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = blocks(&page);
    let error = blocks.iter().find(|b| b.text.starts_with("error[E0305]"));
    let error = error.expect("the page shows it");
    let after = |b: &&Block| b.line > error.line && b.text.starts_with("steersman: 1\n");
    let whole = blocks.iter().find(after).expect("the whole follows");
    // The guard of the whole definition is a list, in place of which the author began with one line.
    let mut text = String::new();
    let mut indent = None;
    for line in whole.text.lines() {
        if indent.is_some_and(|indent| line.starts_with(indent)) {
            continue;
        }
        indent = None;
        let mut line = line.to_owned();
        if line.trim() == "requires:" {
            line.push_str(" args.cents <= state.paid");
            indent = Some("      ");
        }
        text.push_str(&line);
        text.push('\n');
    }
    let (_, found) = compile(&Files::new("steersman.yaml", text));
    let found: Vec<String> = found.iter().map(|d| d.render(false)).collect();
    let shown = error.text.trim_end();
    assert!(
        found.iter().any(|found| found.trim_end() == shown),
        "{}",
        found.join("\n")
    );
}

#[test]
fn every_block_of_a_document_is_checked_or_says_why_not() {
    let world = World::new();
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for (name, page) in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for block in blocks(&text) {
            // The number is that of the first line; before it is the fence, and before that the reason.
            let before = block.line.checked_sub(3).and_then(|at| lines.get(at));
            let reason = before.and_then(|line| line.strip_prefix(NOT_RUN));
            let fault = fault(&world, &name, &block);
            seen.insert(block.fence.clone());
            match (reason, fault) {
                (None, Some(fault)) => wrong.push(format!("{name}:{} {fault}", block.line)),
                (Some(_), None) => wrong.push(format!("{name}:{} is checked", block.line)),
                (Some(reason), Some(_)) if !reason.ends_with(" -->") || reason.len() < 12 => {
                    wrong.push(format!("{name}:{} gives no reason", block.line));
                }
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(seen.len() > 5, "{seen:?}");
}
