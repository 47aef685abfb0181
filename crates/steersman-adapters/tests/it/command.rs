//! Tools that are programs: their arguments, environment and output, and programs that misbehave.

use crate::tools::{env, network, run, run_of_t, shown};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use steersman_adapters::command::CommandTools;
use steersman_machine::network::Network;
use steersman_machine::view::artifact::Content;
use steersman_machine::view::mapping::Raw;
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

/// A shell script as a tool of this class. Only the definition of this tool asks for a shell: nothing else runs one.
fn script(class: &str, script: &str) -> Arc<Network> {
    let command = serde_json::to_string(&["sh", "-c", script]).unwrap();
    tool(&format!(
        "effect: {class}\n    timeout: 10s\n    command: {command}"
    ))
}

/// A temporary folder, which is removed when this is dropped.
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
    let mut run_of = run_of_t(
        network,
        json!({ "args": { "x": x } }),
        &env(&[("TOKEN", "tok-123456")]),
    );
    run_of.folder = folder.into();
    run(&CommandTools::default(), &run_of).await
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
    let mut run_of = run_of_t(
        &network,
        json!({ "args": { "x": null } }),
        &env(&[("TOKEN", "tok-123456")]),
    );
    run_of.folder = folder.0.as_path().into();
    let tools = CommandTools::default()
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
    // The folder of a definition was moved.
    let gone = folder.0.join("gone");
    let raw = at(
        &gone,
        &tool("effect: unsafe\n    command: [echo, hello]"),
        Json::Null,
    )
    .await;
    assert!(
        shown(&raw).contains("the folder of the definition")
            && shown(&raw).contains("is not there"),
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
        (
            r#"echo '{"wei": 12345678901234567890123, "n": 18446744073709551615}'"#,
            r#"done: {"wei":"12345678901234567890123","n":18446744073709551615}"#,
        ),
        (
            "echo -12345678901234567890123",
            "done: \"-12345678901234567890123\"",
        ),
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
    let (told, made) = made(once(&network).await);
    assert!(
        told.starts_with(
            "(it printed 1073741824 bytes, more than are kept: the first 8388608 are the artifact `t-21.1.txt`, the rest \
             is lost; it begins:)\nxxx"
        ),
        "{told}"
    );
    assert!(told.len() < 3_000, "it is not spilled again");
    assert_eq!((&*made.name, &*made.media), ("t-21.1.txt", "text/plain"));
    assert!(made.bytes.len() == 8 << 20 && made.bytes.iter().all(|byte| *byte == b'x'));
}

/// Returns the text of a result, and its only artifact.
fn made(raw: Raw) -> (String, Content) {
    match raw {
        Raw::Made {
            result: Json::String(told),
            mut made,
            ..
        } if made.len() == 1 => (told, made.remove(0)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_is_no_text_is_kept_as_it_came() {
    let (told, content) = made(once(&script("read", r"printf 'a\000\377b'")).await);
    assert_eq!(
        told,
        "(what it printed is no text (UTF-8); its 4 bytes are the artifact `t-21.1.bin`)"
    );
    assert_eq!(&*content.bytes, b"a\0\xffb");
    assert_eq!(&*content.media, "application/octet-stream");
    // A text in another encoding is shown as well as possible, and its bytes are kept.
    let (told, content) = made(once(&script("read", r"printf 'Z\374rich\n'")).await);
    assert_eq!(
        told,
        "(what it printed is no text (UTF-8); its 7 bytes are the artifact `t-21.1.bin`; it begins:)\nZ\u{fffd}rich"
    );
    assert_eq!(&*content.bytes, b"Z\xfcrich\n");
    // An output that is cut within a character is still text.
    let long = "head -c 8388607 /dev/zero | tr '\\0' 'x'; printf '\\303\\274'";
    let (told, content) = made(once(&script("read", long)).await);
    assert!(told.starts_with("(it printed 8388609 bytes"), "{told}");
    assert_eq!(&*content.media, "text/plain");
}

/// A named pipe `alive` in the folder. A watched program writes `begun` into it and keeps it open, and so do all programs
/// that inherit it. The reader gets to the end of the pipe when all of them are gone.
struct Watch {
    begun: tokio::sync::oneshot::Receiver<String>,
    gone: tokio::task::JoinHandle<()>,
}

impl Watch {
    /// The beginning of a script that is watched.
    const BEGIN: &str = "exec 9> alive; echo begun >&9; ";

    fn new(folder: &Path) -> Self {
        use std::io::{BufRead as _, Read as _};
        let pipe = folder.join("alive");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let (tell, begun) = tokio::sync::oneshot::channel();
        let gone = tokio::task::spawn_blocking(move || {
            let mut pipe = std::io::BufReader::new(std::fs::File::open(pipe).unwrap());
            let mut line = String::new();
            pipe.read_line(&mut line).unwrap();
            tell.send(line).ok();
            pipe.read_to_end(&mut Vec::new()).unwrap();
        });
        Self { begun, gone }
    }

    async fn gone(self) {
        let gone = tokio::time::timeout(Duration::from_secs(20), self.gone).await;
        gone.expect("it still runs").unwrap();
    }
}

fn watched(class: &str, timeout: &str, then: &str) -> Arc<Network> {
    let command = [Watch::BEGIN, then].concat();
    let command = serde_json::to_string(&["sh", "-c", &command]).unwrap();
    tool(&format!(
        "effect: {class}\n    timeout: {timeout}\n    command: {command}"
    ))
}

#[tokio::test]
async fn a_program_that_hangs_is_killed_with_all_it_started() {
    let folder = Folder::new("hangs");
    let watch = Watch::new(&folder.0);
    let network = watched(
        "unsafe",
        "2s",
        "trap '' TERM; sleep 1000 & wait; sleep 1000",
    );
    let raw = at(&folder.0, &network, Json::Null).await;
    assert_eq!(
        shown(&raw),
        "unknown: timeout again after 0: not finished within 2s; it was killed"
    );
    watch.gone().await;
}

#[tokio::test]
async fn children_that_outlive_their_program_are_killed_and_hold_nothing_up() {
    let folder = Folder::new("outlive");
    let watch = Watch::new(&folder.0);
    let network = watched("read", "10s", "sleep 1000 & echo begun");
    let begun = Instant::now();
    assert_eq!(
        shown(&at(&folder.0, &network, Json::Null).await),
        "done: \"begun\""
    );
    assert!(
        begun.elapsed() < Duration::from_secs(9),
        "the child held the pipe open"
    );
    watch.gone().await;
}

#[tokio::test]
async fn a_cancelled_program_is_killed() {
    let folder = Folder::new("cancelled");
    let mut watch = Watch::new(&folder.0);
    let network = watched("unsafe", "60s", "sleep 1000");
    let mut run = run_of_t(&network, json!({}), &env(&[("TOKEN", "x")]));
    run.folder = folder.0.as_path().into();
    let cancel = CancellationToken::new();
    let task = tokio::spawn({
        let (run, cancel, tools) = (run.clone(), cancel.clone(), CommandTools::default());
        async move { tools.run(&run, &cancel).await }
    });
    assert_eq!((&mut watch.begun).await.unwrap(), "begun\n");
    cancel.cancel();
    assert_eq!(
        shown(&task.await.unwrap()),
        "unknown: cancelled: cancelled while it ran; it was killed"
    );
    watch.gone().await;
    let raw = CommandTools::default().run(&run, &cancel).await;
    assert_eq!(
        shown(&raw),
        "not performed: cancelled: cancelled before it began"
    );
}

#[test]
fn secrets_have_no_meaning_in_the_vector() {
    let yaml = "secrets: { token: { env: TOKEN } }\nagents: { a: { system: Do., tools: [t] } }\n\
                tools: { t: { description: Does it., effect: read, command: [echo, \"{{ secrets.token }}\"] } }";
    let files = steersman_definition::Files::new("t.yaml", yaml);
    let (network, diagnostics) = steersman_definition::compile(&files);
    assert!(network.is_none());
    let codes: Vec<&str> = diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["E0310"], "{diagnostics:?}");
}
