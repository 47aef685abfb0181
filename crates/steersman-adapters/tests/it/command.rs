//! Tools that are programs: what they get, and what becomes of those that misbehave.

use crate::tools::{env, network, run, run_of, shown};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use steersman_adapters::command::CommandTools;
use steersman_machine::mapping::Raw;
use steersman_machine::network::Network;
use steersman_runtime::toolset::Toolset;
use tokio_util::sync::CancellationToken;

/// A network whose tool `t` has these lines.
fn tool(lines: &str) -> Arc<Network> {
    network(&format!(
        r"
secrets: {{ token: {{ env: TOKEN }} }}
agents: {{ a: {{ system: Do., tools: [t] }} }}
tools:
  t:
    description: Does it.
    parameters: {{ x: optional any }}
    {lines}
"
    ))
}

/// A shell script as a tool of this class. The shell is the tool's own choice: nothing else runs one.
fn script(class: &str, script: &str) -> Arc<Network> {
    let command = serde_json::to_string(&["sh", "-c", script]).unwrap();
    tool(&format!(
        "effect: {class}\n    timeout: 10s\n    command: {command}"
    ))
}

/// A folder of its own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("steersman-command-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn at(folder: &Path, network: &Arc<Network>, x: Json) -> Raw {
    let run_of = run_of(
        network,
        json!({ "args": { "x": x } }),
        &env(&[("TOKEN", "tok-123456")]),
    );
    run(&CommandTools::at(folder), &run_of).await
}

async fn once(network: &Arc<Network>) -> Raw {
    at(&std::env::temp_dir(), network, Json::Null).await
}

#[tokio::test]
async fn arguments_are_no_shell_words() {
    let network = tool(
        r#"effect: read
    command: [printf, "%s|", "{{ args.x }}", "a b; echo $HOME", "n={{ args.x }}"]"#,
    );
    let got = |x: Json| {
        let network = network.clone();
        async move { shown(&at(&std::env::temp_dir(), &network, x).await) }
    };
    assert_eq!(
        got(json!("$(id) `id` 'q'")).await,
        r#"done: "$(id) `id` 'q'|a b; echo $HOME|n=$(id) `id` 'q'|""#
    );
    assert_eq!(
        got(json!({ "k": [1] })).await,
        r#"done: "{\"k\":[1]}|a b; echo $HOME|n={\"k\":[1]}|""#
    );
    // An argument that is exactly an unset value is left out.
    assert_eq!(got(Json::Null).await, r#"done: "a b; echo $HOME|n=|""#);
}

#[tokio::test]
async fn a_program_sees_its_folder_its_path_and_what_env_passes() {
    let folder = Folder::new("sees");
    let network = tool(
        r#"effect: idempotent
    env: { TOKEN: "{{ secrets.token }}", X: "{{ args.x }}" }
    command: [sh, -c, "pwd; env | grep -v ^_= | grep -v ^PWD= | grep -v ^SHLVL= | grep -v ^OLDPWD= | sort; cat"]"#,
    );
    let run_of = run_of(
        &network,
        json!({ "args": { "x": null } }),
        &env(&[("TOKEN", "tok-123456")]),
    );
    let tools = CommandTools::at(&folder.0)
        .with_env(env(&[("PATH", "/usr/bin:/bin"), ("HOME", "/home/secret")]));
    let Raw::Done(Json::String(text)) = run(&tools, &run_of).await else {
        panic!()
    };
    let folder = folder.0.display().to_string();
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        [
            folder.as_str(),
            "IDEMPOTENCY_KEY=k7wq.ab.21.1",
            "PATH=/usr/bin:/bin",
            "TOKEN=tok-123456"
        ]
    );
}

#[tokio::test]
async fn a_program_of_the_definition_is_found_in_its_folder() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("own");
    let path = folder.0.join("tools/hello");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "#!/bin/sh\necho '{\"hello\": true}'\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let network = tool("effect: read\n    command: [./tools/hello]");
    assert_eq!(
        shown(&at(&folder.0, &network, Json::Null).await),
        r#"done: {"hello":true}"#
    );
    let missing = tool("effect: unsafe\n    command: [./tools/missing]");
    let raw = at(&folder.0, &missing, Json::Null).await;
    assert!(
        shown(&raw).starts_with("not performed: failed: "),
        "{raw:?}"
    );
    assert!(
        shown(&raw).contains("cannot be started: No such file"),
        "{raw:?}"
    );
}

#[tokio::test]
async fn output_is_json_if_it_parses() {
    for (printed, expected) in [
        ("printf '[1, 2]'", "done: [1,2]"),
        ("echo 7", "done: 7"),
        ("echo text; echo more", "done: \"text\\nmore\""),
        ("true", "done: \"\""),
        ("printf '\\377'", "done: \"\u{fffd}\""),
    ] {
        assert_eq!(shown(&once(&script("read", printed)).await), expected);
    }
}

#[tokio::test]
async fn a_failed_program_is_a_failure_or_unknown_by_its_class() {
    let failing = "echo out; echo 'no such account' >&2; exit 3";
    assert_eq!(
        shown(&once(&script("read", failing)).await),
        "not performed: failed 3: exit code 3: no such account"
    );
    assert_eq!(
        shown(&once(&script("unsafe", failing)).await),
        "unknown: failed 3: exit code 3: no such account"
    );
    assert_eq!(
        shown(&once(&script("unsafe", "kill -9 $$")).await),
        "unknown: failed: killed by signal 9"
    );
    let long =
        "i=0; while [ $i -lt 20000 ]; do echo line-$i-tok-123456 >&2; i=$((i+1)); done; exit 1";
    let told = shown(&once(&script("read", long)).await);
    assert!(
        told.len() < 2200 && told.contains("line-19999-(secret)") && !told.contains("tok-"),
        "{told}"
    );
}

#[tokio::test]
async fn a_program_that_prints_a_gigabyte_is_cut_and_said() {
    let network = script("read", "head -c 1073741824 /dev/zero | tr '\\0' 'x'");
    let network = Arc::new(match Arc::try_unwrap(network) {
        Ok(mut network) => {
            network.tools.get_mut("t").unwrap().timeout = 300_000;
            network
        }
        Err(_) => unreachable!("nobody else has it"),
    });
    let Raw::Done(Json::String(text)) = once(&network).await else {
        panic!()
    };
    let cut = (1 << 30) - (8 << 20);
    assert_eq!(
        text.len(),
        (8 << 20) + format!("\n(cut: {cut} more bytes were printed)").len()
    );
    assert!(text.ends_with(&format!("x\n(cut: {cut} more bytes were printed)")));
}

/// Waits until the process that wrote its id into this file is gone.
#[cfg(target_os = "linux")]
async fn gone(file: &Path) {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let pid = std::fs::read_to_string(file).expect("it wrote its id");
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    match pidfd_open(pid, PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => {}
        Err(error) => panic!("{error}"),
        Ok(process) => {
            let process = tokio::io::unix::AsyncFd::register(process).unwrap();
            let ended = tokio::time::timeout(Duration::from_secs(20), process.readable()).await;
            ended.expect("it still runs").unwrap().retain_ready();
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_that_hangs_is_killed_with_all_it_started() {
    let folder = Folder::new("hangs");
    let network = tool(
        r#"effect: unsafe
    timeout: 2s
    command: [sh, -c, "sleep 1000 & echo $! > child; echo $$ > self; trap '' TERM; wait; sleep 1000"]"#,
    );
    let raw = at(&folder.0, &network, Json::Null).await;
    assert_eq!(
        shown(&raw),
        "unknown: timeout again after 0: not finished within 2s; it was killed"
    );
    gone(&folder.0.join("self")).await;
    gone(&folder.0.join("child")).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn children_that_outlive_their_program_are_killed_and_hold_nothing_up() {
    let folder = Folder::new("outlive");
    let network = script("read", "sleep 1000 & echo $! > child; echo begun");
    let begun = Instant::now();
    assert_eq!(
        shown(&at(&folder.0, &network, Json::Null).await),
        "done: \"begun\""
    );
    assert!(
        begun.elapsed() < Duration::from_secs(9),
        "the child held the pipe open"
    );
    gone(&folder.0.join("child")).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_cancelled_program_is_killed() {
    let folder = Folder::new("cancelled");
    let network = script("unsafe", "echo $$ > self; echo begun > begun; sleep 1000");
    let begun = folder.0.join("begun");
    let made = std::process::Command::new("mkfifo").arg(&begun).status();
    assert!(made.unwrap().success());
    let run = run_of(&network, json!({}), &env(&[("TOKEN", "x")]));
    let cancel = CancellationToken::new();
    let task = tokio::spawn({
        let (run, cancel, tools) = (run.clone(), cancel.clone(), CommandTools::at(&folder.0));
        async move { tools.run(&run, &cancel).await }
    });
    let own = folder.0.join("self");
    // Opening the other end of the pipe waits for the program.
    let begun = tokio::task::spawn_blocking(move || std::fs::read_to_string(begun));
    assert_eq!(begun.await.unwrap().unwrap(), "begun\n");
    cancel.cancel();
    assert_eq!(
        shown(&task.await.unwrap()),
        "unknown: cancelled: cancelled while it ran; it was killed"
    );
    gone(&own).await;
    let raw = CommandTools::at(&folder.0).run(&run, &cancel).await;
    assert_eq!(
        shown(&raw),
        "not performed: cancelled: cancelled before it began"
    );
}

#[tokio::test]
async fn secrets_have_no_meaning_in_the_vector() {
    let (network, diagnostics) = {
        let yaml = "secrets: { token: { env: TOKEN } }\nagents: { a: { system: Do., tools: [t] } }\n\
                    tools: { t: { description: Does it., command: [echo, \"{{ secrets.token }}\"] } }";
        steersman_machine::definition::compile(&steersman_machine::definition::Files::new(
            "t.yaml", yaml,
        ))
    };
    // Found by `check`; and if it were not, it would still not run.
    let Some(network) = network else {
        assert!(!diagnostics.is_empty());
        return;
    };
    let raw = once(&Arc::new(network)).await;
    assert!(
        matches!(raw, Raw::NotPerformed(_)) && !shown(&raw).contains("tok-"),
        "{raw:?}"
    );
}
