//! The help of every command: the short one of `-h`, and the long one of `--help` where it differs.

use crate::world::World;
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
