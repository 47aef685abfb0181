//! The example `coder`: its tools stay in their folder, and an edit that is repeated is made once.

use crate::world::{World, examples};
use serde_json::Value as Json;
use std::process::Command;

const SAID: &str = "The tests fail. Mend it.";

fn mended(world: &World, file: &str) -> String {
    std::fs::read_to_string(world.folder.join("coder/project").join(file)).unwrap()
}

fn original(file: &str) -> String {
    std::fs::read_to_string(examples().join("coder/project").join(file)).unwrap()
}

/// Runs a tool of the example as the program starts it, and returns its result.
fn tool(world: &World, args: &[&str], env: &[(&str, &str)]) -> Json {
    let mut command = Command::new("sh");
    command.args(args).current_dir(world.folder.join("coder"));
    let output = command.envs(env.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    let out = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e} in {out}"))
}

/// Runs the example with an editor that makes these calls and then stops. Returns what `show` tells.
fn edits(world: &World, calls: &str) -> Json {
    let script = format!(
        "planner: [ {{ call: {{ make_plan: {{ steps: [ Try it. ] }} }} }}, Planned. ]\neditor: [ {calls}, I stop., I stop. ]\n"
    );
    world.write("said.yaml", &script);
    let ran = world.run(&["run", "coder", "--script-all", "said.yaml", "--input", SAID]);
    assert_ne!(ran.code, Some(0), "nothing is done: {ran:?}");
    let (_, shown) = world.json(&["show", "last"]);
    shown
}

#[test]
fn what_the_readme_says_was_changed_was() {
    let world = World::example("coder");
    let ran = world.run(&[
        "run",
        "coder",
        "--script-all",
        "coder/script.yaml",
        "--input",
        SAID,
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let readme = std::fs::read_to_string(examples().join("coder/README.md")).unwrap();
    let diff = readme.split("```diff\n").nth(1).unwrap();
    let diff = diff.split("```").next().unwrap();
    let (mut was, mut is) = (String::new(), String::new());
    let mut changed = Vec::new();
    for line in diff.lines() {
        if let Some(file) = line.strip_prefix("--- project/") {
            (was, is) = (original(file), mended(&world, file));
            changed.push(file.to_owned());
        } else if let Some(gone) = line.strip_prefix('-') {
            was = was.replacen(gone, "", 1);
            assert!(!is.contains(gone), "{gone} is still there");
        } else if let Some(new) = line.strip_prefix('+').filter(|l| !l.starts_with("++")) {
            is = is.replacen(new, "", 1);
            assert_eq!(was, is, "nothing else was changed");
        }
    }
    assert_eq!(changed, ["src/leap.sh", "src/days.sh"]);
    let tests = Command::new("sh")
        .arg("tests/run.sh")
        .current_dir(world.folder.join("coder/project"))
        .output()
        .unwrap();
    assert_eq!(tests.stdout, b"all passed\n");
}

#[test]
fn an_edit_is_made_once_for_each_key() {
    let world = World::example("coder");
    let edit = |key: &str, old: &str, new: &str| {
        let env = [("IDEMPOTENCY_KEY", key), ("OLD", old), ("NEW", new)];
        tool(
            &world,
            &["tools/edit.sh", "project", "src/days.sh", "tests"],
            &env,
        )
    };
    // The new text contains the old one, so a second replacement would change the file again.
    assert_eq!(
        edit("k1", "4 | 6 | 11)", "4 | 6 | 11) :; 4 | 6 | 11)")["changed"],
        true
    );
    let once = mended(&world, "src/days.sh");
    assert_eq!(
        edit("k1", "4 | 6 | 11)", "4 | 6 | 11) :; 4 | 6 | 11)")["changed"],
        true
    );
    assert_eq!(mended(&world, "src/days.sh"), once);
    // The tool died before it replaced the file: the text that is stored under the key is put in place.
    std::fs::write(
        world.folder.join("coder/project/src/days.sh"),
        original("src/days.sh"),
    )
    .unwrap();
    edit("k1", "4 | 6 | 11)", "4 | 6 | 11) :; 4 | 6 | 11)");
    assert_eq!(mended(&world, "src/days.sh"), once);
    // The file was replaced, the outcome was lost, and a person edited the file since.
    let theirs = format!("{once}# mine\n");
    std::fs::write(world.folder.join("coder/project/src/days.sh"), &theirs).unwrap();
    assert_eq!(
        edit("k1", "4 | 6 | 11)", "4 | 6 | 11) :; 4 | 6 | 11)")["changed"],
        false
    );
    assert_eq!(mended(&world, "src/days.sh"), theirs);
    std::fs::write(world.folder.join("coder/project/src/days.sh"), &once).unwrap();
    assert_eq!(edit("k2", "no such text", "x")["changed"], false);
    assert_eq!(
        edit("k3", "echo", "printf")["changed"],
        false,
        "the text occurs more than once"
    );
    assert_eq!(edit("k4", "", "x")["changed"], false);
    assert_eq!(mended(&world, "src/days.sh"), once);
    // Several lines, with characters that are special to a shell or to awk.
    let new = "# \\n \"$HOME\" & %s 'x' `id`\n  *) echo 31 ;;\nesac";
    assert_eq!(edit("k5", "  *) echo 31 ;;\nesac", new)["changed"], true);
    assert!(mended(&world, "src/days.sh").ends_with(&format!("{new}\n")));
}

#[test]
fn nothing_outside_of_the_folder_and_no_test_is_edited_or_read() {
    let world = World::example("coder");
    world.write("secret.txt", "echo 30\n");
    let project = world.folder.join("coder/project");
    std::os::unix::fs::symlink(&world.folder, project.join("src/out")).unwrap();
    std::os::unix::fs::symlink(world.folder.join("secret.txt"), project.join("src/link.sh"))
        .unwrap();
    std::fs::write(project.join(".hidden"), "echo 30\n").unwrap();
    for path in [
        "../../secret.txt",
        "src/../../../secret.txt",
        "src/out/secret.txt",
        "src/link.sh",
        ".hidden",
        "/etc/hostname",
        "tests/run.sh",
        "src",
        "src/none.sh",
        "-n",
    ] {
        let shown = edits(
            &world,
            &format!(
                "{{ call: {{ edit_file: {{ path: \"{path}\", old: echo 30, new: echo 99 }} }} }}"
            ),
        );
        assert_eq!(shown["state"]["files"], serde_json::json!([]), "{path}");
    }
    assert_eq!(
        std::fs::read_to_string(world.folder.join("secret.txt")).unwrap(),
        "echo 30\n"
    );
    assert_eq!(mended(&world, "tests/run.sh"), original("tests/run.sh"));
    for path in [
        "src/out/secret.txt",
        "src/link.sh",
        ".hidden",
        "../script.yaml",
    ] {
        let script = format!(
            "planner: [ {{ call: {{ read_file: {{ path: \"{path}\" }} }} }}, No., No. ]\neditor: []\n"
        );
        world.write("said.yaml", &script);
        world.run(&["run", "coder", "--script-all", "said.yaml", "--input", SAID]);
        let told = world.run(&["log", "last"]).out;
        assert!(!told.contains("echo 30"), "{path}: {told}");
        assert!(
            told.contains("no path within")
                || told.contains("outside")
                || told.contains("there is no file"),
            "{path}: {told}"
        );
    }
}

/// `CODER_FOLDER` and `CODER_COMMAND` name another project: the agents work on it, and not on that of the example.
#[test]
fn a_folder_of_ones_own_is_bound() {
    let mut world = World::example("coder");
    let own = world.folder.join("mine");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("greet.sh"), "echo Helo\n").unwrap();
    world.set("CODER_FOLDER", own.to_str().unwrap());
    world.set(
        "CODER_COMMAND",
        "test \"$(sh greet.sh)\" = Hello && echo \"it \\\"greets\\\"\"",
    );
    world.write(
        "said.yaml",
        r"
planner: [ { call: { run_command: {} } }, { call: { make_plan: { steps: [ Spell it. ] } } }, Planned. ]
editor:
  - call: { edit_file: { path: greet.sh, old: Helo, new: Hello } }
  - call: { run_command: {} }
  - call: { finish_work: { summary: It was misspelt. } }
  - Done.
",
    );
    let ran = world.run(&["run", "coder", "--script-all", "said.yaml", "--input", SAID]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        std::fs::read_to_string(own.join("greet.sh")).unwrap(),
        "echo Hello\n"
    );
    assert_eq!(mended(&world, "src/days.sh"), original("src/days.sh"));
    assert!(ran.err.contains("it \"greets\""), "{ran:?}");
}
