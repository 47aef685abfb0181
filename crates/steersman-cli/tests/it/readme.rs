//! The READMEs of the examples: each command of a console block is run, and must print what the block shows.

use crate::docs::blocks;
use crate::world::{self, Service, World, examples, replace_word};
use std::path::Path;
use std::process::Stdio;

/// Runs a line of a README (`steersman ...`, or a program of the page: `python3 ...`), with quotes as in a shell. Returns
/// what it prints.
fn typed(world: &World, line: &str) -> String {
    let words = split(line);
    let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    let mut command = match &*words[0] {
        "steersman" => world.command(&args),
        "python3" => world.program("python3", &args),
        _ => panic!("only our program and those of the page are typed: {line}"),
    };
    // One file for both streams, so that their rows are in the order in which people see them.
    let both = world.folder.join("both.txt");
    let file = std::fs::File::create(&both).unwrap();
    command
        .stdout(Stdio::from(file.try_clone().unwrap()))
        .stderr(Stdio::from(file))
        .status()
        .unwrap();
    let shown = std::fs::read_to_string(&both).unwrap();
    std::fs::remove_file(&both).unwrap();
    shown
}

/// A transcript without what differs from run to run. Its session is the first one that it names.
fn settled(text: &str, session: &mut Option<String>) -> String {
    let named = text.lines().find_map(|line| {
        let (_, named) = line
            .split_once("   session ")
            .or_else(|| line.split_once("It began session "))?;
        named.split([' ', '.']).next()
    });
    if let Some(named) = named {
        *session = Some(named.to_owned());
    }
    match session {
        Some(session) => world::settled(&replace_word(text, session, "aaSESS")),
        None => world::settled(text),
    }
}

pub(crate) fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = None;
    for c in line.chars() {
        match c {
            '"' | '\'' if quoted.is_none() => quoted = Some(c),
            c if quoted == Some(c) => quoted = None,
            ' ' if quoted.is_none() => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|w| !w.is_empty());
    words
}

/// The commands of a console block, each with the output below it.
fn commands(block: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push((command.to_owned(), String::new()));
        } else {
            let shown = &mut found.last_mut().expect("a command comes first").1;
            shown.push_str(line);
            shown.push('\n');
        }
    }
    found
}

/// Like [`settled`], but with sorted rows: agents that work at once may be told in any order.
fn in_any_order(text: &str, session: &mut Option<String>) -> String {
    let text = settled(text, session);
    let mut rows: Vec<&str> = text.lines().map(str::trim).collect();
    rows.sort_unstable();
    rows.join("\n")
}

/// Plays a page from its top: writes the files that it names, runs its commands, and compares their output.
pub(crate) fn transcript_is_true(readme: &Path, world: &World) {
    shows(readme, world, settled);
}

/// Like [`transcript_is_true`] for a page on which agents work at once.
pub(crate) fn transcript_is_true_in_any_order(readme: &Path, world: &World) {
    shows(readme, world, in_any_order);
}

fn shows(readme: &Path, world: &World, settled: fn(&str, &mut Option<String>) -> String) {
    let text = std::fs::read_to_string(readme).unwrap();
    let (mut updated, mut behind) = (String::new(), text.as_str());
    let mut wrong = Vec::new();
    let (mut written, mut now) = (None, None);
    for block in blocks(&text) {
        let fence = &*block.fence;
        if let ("yaml" | "json" | "markdown" | "python" | "text", Some(file)) = (fence, &block.file)
        {
            world.write(file, &block.text);
        }
        if block.fence != "console" {
            continue;
        }
        for (command, shown) in commands(&block.text) {
            let real = typed(world, &command);
            let old = format!("$ {command}\n{shown}");
            let at = behind.find(&old).expect("it was read from there") + old.len();
            if settled(&real, &mut now) != settled(&shown, &mut written) {
                wrong.push(format!("$ {command}\n{real}\ninstead of\n{shown}"));
            }
            // A page is written again as a whole, so that its ids and digests are of one run.
            updated.push_str(&behind[..at - old.len()]);
            updated.extend(["$ ", command.as_str(), "\n", real.trim_end(), "\n"]);
            if shown.ends_with("\n\n") {
                updated.push('\n');
            }
            behind = &behind[at..];
        }
    }
    assert!(
        !updated.is_empty(),
        "nothing was run in {}",
        readme.display()
    );
    updated.push_str(behind);
    if wrong.is_empty() {
        return;
    }
    if std::env::var_os("INSTA_UPDATE").is_some_and(|v| v == "always") {
        std::fs::write(readme, updated).unwrap();
        return;
    }
    panic!("{} is not true:\n{}", readme.display(), wrong.join("\n\n"));
}

#[test]
fn the_readme_of_support_is_true() {
    let mut world = World::example("support");
    let _service = Service::support(&mut world, false);
    transcript_is_true(&examples().join("support/README.md"), &world);
}

#[test]
fn the_readme_of_bank_is_true() {
    let mut world = World::example("bank");
    let _service = Service::bank(&mut world);
    transcript_is_true(&examples().join("bank/README.md"), &world);
}

#[test]
fn the_readme_of_invoice_is_true() {
    let mut world = World::example("invoice");
    let _service = Service::invoice(&mut world, false);
    transcript_is_true(&examples().join("invoice/README.md"), &world);
}

#[test]
fn the_readme_of_react_is_true() {
    let world = World::example("react");
    transcript_is_true(&examples().join("react/README.md"), &world);
}

#[test]
fn the_readme_of_react_reflect_is_true() {
    let world = World::example("react-reflect");
    transcript_is_true(&examples().join("react-reflect/README.md"), &world);
}

#[test]
fn the_readme_of_debate_is_true() {
    let world = World::example("debate");
    transcript_is_true(&examples().join("debate/README.md"), &world);
}

#[test]
fn the_readme_of_coder_is_true() {
    let world = World::example("coder");
    transcript_is_true(&examples().join("coder/README.md"), &world);
}

#[test]
fn the_readme_of_planner_is_true() {
    let world = World::example("planner");
    transcript_is_true(&examples().join("planner/README.md"), &world);
}

#[test]
fn the_readme_of_search_is_true() {
    let world = World::example("search");
    transcript_is_true(&examples().join("search/README.md"), &world);
}

#[test]
fn the_readme_of_research_is_true() {
    let world = World::example("research");
    shows(&examples().join("research/README.md"), &world, in_any_order);
}

#[test]
fn every_definition_has_the_editor_comment() {
    for file in world::files(&examples()) {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let is_definition = file.extension().is_some_and(|e| e == "yaml")
            && (text.contains("\nagents:") || text.contains("\ntests:"));
        if is_definition {
            let first = text.lines().next().unwrap_or_default();
            let Some(schema) = first.strip_prefix("# yaml-language-server: $schema=") else {
                panic!("{} does not begin with the editor comment", file.display());
            };
            let schema = file.parent().unwrap().join(schema);
            assert!(schema.is_file(), "{} does not exist", schema.display());
        }
    }
}
