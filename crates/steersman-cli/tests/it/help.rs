//! The help of every command: the short one of `-h`, and the long one of `--help` where it differs.

use crate::world::{self, World};
use insta::assert_snapshot;
use std::fmt::Write as _;

/// The commands that a help page lists, in its order: rows that begin with two spaces and a name.
fn listed(help: &str) -> Vec<String> {
    let rows = help.lines().filter_map(|row| row.strip_prefix("  "));
    let names = rows.filter_map(|row| row.split(' ').next());
    let names = names.filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()));
    names.map(str::to_owned).collect()
}

/// The rows under `Commands:`, of a command that has commands of its own.
fn commands_of(help: &str) -> Vec<String> {
    let Some((_, list)) = help.split_once("\nCommands:\n") else {
        return Vec::new();
    };
    listed(list.split("\n\n").next().unwrap_or_default())
}

/// Adds the help of a command and of its own commands to the page.
fn add(world: &World, command: &[&str], page: &mut String) {
    let help = |flag| {
        let ran = world.run(&[command, &[flag]].concat());
        assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{command:?}");
        ran.out
    };
    let (short, long) = (help("-h"), help("--help"));
    let name = command.join(" ");
    writeln!(page, "$ steersman {name} -h\n{short}").unwrap();
    if long != short {
        writeln!(page, "$ steersman {name} --help\n{long}").unwrap();
    }
    for below in commands_of(&short) {
        add(world, &[command, &[&below]].concat(), page);
    }
}

#[test]
fn each_command_explains_its_arguments() {
    let world = World::new();
    let mut names = listed(&world.run(&["--help"]).out);
    assert!(names.len() > 40, "{names:?}");
    names.push("example-service".to_owned());
    let mut page = String::new();
    for name in &names {
        add(&world, &[name], &mut page);
    }
    assert_snapshot!(page);
}

/// Adds a heading and the long help of a command, then those of its own commands.
fn add_to_reference(world: &World, command: &[&str], page: &mut String) {
    let help = world.run(&[command, &["--help"]].concat()).out;
    // The page has the options of every command at its top.
    let own = help.split("\nEverywhere:\n").next().unwrap_or_default();
    let name = command.join(" ");
    let own: Vec<&str> = own.lines().map(str::trim_end).collect();
    let own = own.join("\n");
    write!(page, "\n### {name}\n\n```text\n{}\n```\n", own.trim_end()).unwrap();
    for below in commands_of(&help) {
        add_to_reference(world, &[command, &[&below]].concat(), page);
    }
}

/// `INSTA_UPDATE=always` writes the page again.
#[test]
fn the_reference_of_commands_is_the_help() {
    let world = World::new();
    let help = world.run(&["--help"]).out;
    let (groups, everywhere) = help.split_once("\nOptions\n").expect("options come last");
    let everywhere = everywhere.split("\n\n").next().unwrap_or_default();
    let mut page = format!(
        "# Commands\n\n\
         This page is what `steersman COMMAND --help` prints. A test compares it with the program.\n\n\
         `SESSION` is `last`, the beginning of an id, or a label (`vendor=Acme`); `SESSION:BRANCH` is a branch, \
         `SESSION@LINE` a line.\n[Exit codes](environment.md#exit-codes) are the same for all commands.\n\n\
         Every command takes these options:\n\n```text\n{everywhere}\n```\n"
    );
    for row in groups.lines().skip(3) {
        match row.strip_prefix("  ").and_then(|row| row.split(' ').next()) {
            Some(name) => add_to_reference(&world, &[name], &mut page),
            None if row.is_empty() => {}
            None => write!(page, "\n## {row}\n").unwrap(),
        }
    }
    let path = world::root().join("docs/reference/commands.md");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|v| v == "always") {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/reference/commands.md is not what the program prints: run this test with INSTA_UPDATE=always"
    );
}
