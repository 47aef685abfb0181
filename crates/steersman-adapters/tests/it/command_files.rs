//! Commands that read artifacts and make them: their private folders, what becomes an artifact, and what is left behind.

use crate::tools::{env, network, run, run_of_t, shown, with_artifact};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use steersman_adapters::command::CommandTools;
use steersman_machine::network::Network;
use steersman_machine::view::mapping::Raw;
use steersman_runtime::toolset::{ToolRun, Toolset};
use tokio_util::sync::CancellationToken;

/// A network whose tool `t` takes an artifact and a text, and has these lines.
fn tool(lines: &str) -> Arc<Network> {
    network(&format!(
        r"
agents: {{ a: {{ system: Do., tools: [t] }} }}
tools:
  t:
    description: Does it.
    parameters: {{ doc: {{ type: artifact, optional: true }}, x: optional string }}
    timeout: 20s
    {lines}
"
    ))
}

/// A shell script as a tool of this class. `$DOC` is the artifact, and `$OUT` the file to write.
fn script(class: &str, out: &str, save: &str, script: &str) -> Arc<Network> {
    let command = serde_json::to_string(&["sh", "-c", script]).unwrap();
    tool(&format!(
        "effect: {class}\n    command: {command}\n    env: {{ DOC: \"{{{{ args.doc }}}}\", OUT: \"{out}\" }}\n    {save}"
    ))
}

/// A folder for temporary files, which is removed when this is dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("steersman-files-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn tools(&self) -> CommandTools {
        let path = std::env::var("PATH").unwrap();
        let folder = self.0.display().to_string();
        CommandTools::default().with_env(env(&[("PATH", &path), ("TMPDIR", &folder)]))
    }

    /// The folder of all private folders.
    fn all(&self) -> PathBuf {
        let own = std::fs::metadata(&self.0).unwrap();
        let user = std::os::unix::fs::MetadataExt::uid(&own);
        self.0.join(format!("steersman-{user}"))
    }

    /// Names of the private folders and their locks.
    fn left(&self) -> Vec<String> {
        let all = std::fs::read_dir(self.all()).into_iter().flatten();
        let names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn attempt(network: &Arc<Network>, args: Json) -> ToolRun {
    let mut attempt = run_of_t(network, json!({ "args": args }), &env(&[]));
    attempt.folder = Path::new("/").into();
    attempt.artifacts = with_artifact("in/rows.csv", "text/csv", b"b,2\na,1\n").await;
    attempt
}

async fn once(temporary: &Temporary, network: &Arc<Network>, args: Json) -> Raw {
    let raw = run(&temporary.tools(), &attempt(network, args).await).await;
    assert_eq!(
        temporary.left(),
        Vec::<String>::new(),
        "nothing is left behind"
    );
    raw
}

/// Name, media type and content of what was made, behind the result.
fn made(raw: &Raw) -> (Json, Vec<(String, String, String)>) {
    let Raw::Made { result, made, .. } = raw else {
        panic!("{raw:?}");
    };
    let of = made.iter().map(|content| {
        let text = String::from_utf8_lossy(&content.bytes).into_owned();
        (content.name.clone(), content.media.clone(), text)
    });
    (result.clone(), of.collect())
}

fn one(raw: &Raw) -> (Json, String, String, String) {
    let (result, mut made) = made(raw);
    assert_eq!(made.len(), 1, "{made:?}");
    let (name, media, text) = made.remove(0);
    (result, name, media, text)
}

#[tokio::test]
async fn an_artifact_is_a_file_that_only_its_owner_may_read() {
    let temporary = Temporary::new("read");
    let script = script(
        "read",
        "",
        "retry: 0",
        r#"cat "$DOC"; echo "$DOC" | sed 's/.*steersman-[0-9]*.[0-9]*-[0-9]*//'; stat -c %a "$DOC" "$(dirname "$(dirname "$(dirname "$DOC")")")"; cat"#,
    );
    let raw = once(&temporary, &script, json!({ "doc": "in/rows.csv" })).await;
    assert_eq!(
        shown(&raw),
        r#"done: "b,2\na,1\n/in/doc/rows.csv\n600\n700""#
    );
    // An argument in the vector is a path, too, and so is one that is read with all others.
    let all = tool("effect: read\n    command: [cat, \"{{ args.doc }}\"]");
    let raw = once(&temporary, &all, json!({ "doc": "in/rows.csv" })).await;
    assert_eq!(shown(&raw), r#"done: "b,2\na,1""#);
    let all = tool("effect: read\n    command: [echo, \"{{ args | tojson }}\"]");
    let raw = once(&temporary, &all, json!({ "doc": "in/rows.csv", "x": "y" })).await;
    let shown_args = shown(&raw);
    assert!(
        shown_args.contains("/in/doc/rows.csv") && shown_args.contains(r#""x":"y""#),
        "{shown_args}"
    );
    // Without an artifact there is no folder.
    let raw = once(&temporary, &all, json!({ "x": "y" })).await;
    assert_eq!(shown(&raw), r#"done: {"x":"y"}"#);
}

#[tokio::test]
async fn an_artifact_that_is_not_there_starts_nothing() {
    let temporary = Temporary::new("missing");
    let network = tool("effect: unsafe\n    command: [cat, \"{{ args.doc }}\"]");
    let raw = once(&temporary, &network, json!({ "doc": "other.csv" })).await;
    assert!(
        matches!(&raw, Raw::NotPerformed(fault) if fault.message.starts_with("`args.doc`: ")),
        "{raw:?}"
    );
}

#[tokio::test]
async fn what_a_program_prints_or_writes_becomes_the_named_artifact() {
    let temporary = Temporary::new("save");
    let doc = json!({ "doc": "in/rows.csv", "x": "y" });
    let prints = script(
        "read",
        "",
        r#"save: "out/{{ args.doc }}""#,
        r#"sort "$DOC""#,
    );
    let raw = once(&temporary, &prints, doc.clone()).await;
    let name = || "out/in/rows.csv".to_owned();
    let sorted = || "a,1\nb,2\n".to_owned();
    assert_eq!(
        one(&raw),
        (json!(name()), name(), "text/csv".into(), sorted())
    );
    let save = r#"save: { name: "{{ args.x }}", media: application/x-rows }"#;
    let writes = script(
        "read",
        "{{ save }}",
        save,
        r#"sort "$DOC" > "$OUT"; echo '{"rows":2}'"#,
    );
    let raw = once(&temporary, &writes, doc.clone()).await;
    let told = (
        json!({ "rows": 2 }),
        "y".to_owned(),
        "application/x-rows".to_owned(),
        sorted(),
    );
    assert_eq!(one(&raw), told);
    // Without a media type the content says whether it is a text. What is printed besides may be an artifact as well.
    let binary = script(
        "read",
        "{{ save }}",
        "save: blob",
        r#"printf 'a\000\377' > "$OUT""#,
    );
    let (result, name, media, _) = one(&once(&temporary, &binary, doc.clone()).await);
    assert_eq!(
        (result, &*name, &*media),
        (json!("blob"), "blob", "application/octet-stream")
    );
    let both = script(
        "read",
        "{{ save }}",
        "save: a.txt",
        r#"echo x > "$OUT"; printf 'a\377'"#,
    );
    let (_, all) = made(&once(&temporary, &both, doc.clone()).await);
    let names: Vec<&str> = all.iter().map(|(name, ..)| &**name).collect();
    assert_eq!(names, ["a.txt", "t-21.1.bin"]);
}

#[tokio::test]
async fn what_cannot_be_an_artifact_is_told_and_not_kept() {
    let temporary = Temporary::new("unfit");
    let run = |class: &'static str, out: &'static str, save: &'static str, text: &'static str| {
        let temporary = &temporary;
        async move {
            let args = json!({ "doc": "in/rows.csv", "x": "../../up.txt" });
            shown(&once(temporary, &script(class, out, save, text), args).await)
        }
    };
    let out = "{{ save }}";
    // A name that leads out starts nothing.
    assert_eq!(
        run("unsafe", "", r#"save: "{{ args.x }}""#, "echo x").await,
        "not performed: failed: `save`: `../../up.txt` is no name of an artifact: it is a path below one folder, without `.`, `..` and empty parts"
    );
    assert_eq!(
        run("read", out, "save: a.txt", "true").await,
        "failed: misfit: it wrote no file at `{{ save }}`"
    );
    let carried = "failed: misfit: it was carried out, so do not call it again; but what it gave does not fit: ";
    assert_eq!(
        run("unsafe", out, "save: a.txt", "true").await,
        format!("{carried}it wrote no file at `{{{{ save }}}}`")
    );
    // Neither a link nor a pipe is followed or waited for.
    assert!(
        run("read", out, "save: a.txt", r#"ln -s /etc/passwd "$OUT""#)
            .await
            .starts_with("failed: misfit: the file that it wrote cannot be read")
    );
    assert_eq!(
        run("read", out, "save: a.txt", r#"mkfifo "$OUT""#).await,
        "failed: misfit: what it made at `{{ save }}` is no file"
    );
    let large = r#"head -c 33554433 /dev/zero > "$OUT""#;
    assert_eq!(
        run("read", out, "save: a.txt", large).await,
        "failed: misfit: the file that it wrote has 33554433 bytes, more than 32 MiB"
    );
    assert_eq!(
        run("read", "", "save: a.txt", "head -c 33554433 /dev/zero").await,
        "failed: misfit: what it printed has 33554433 bytes, more than 32 MiB"
    );
    // A program that fails makes nothing.
    assert_eq!(
        run("read", out, "save: a.txt", r#"echo x > "$OUT"; exit 3"#).await,
        "not performed: failed 3: exit code 3"
    );
}

#[tokio::test]
async fn a_program_that_is_cut_leaves_no_folder() {
    let temporary = Temporary::new("cut");
    let network = script(
        "read",
        "{{ save }}",
        "save: a.txt",
        "echo x > \"$OUT\"; exec sleep 60",
    );
    let mut attempt = attempt(&network, json!({ "doc": "in/rows.csv" })).await;
    let mut short = (*attempt.network).clone();
    short.tools.get_mut("t").unwrap().timeout = 300;
    let cancel = CancellationToken::new();
    let tools = temporary.tools();
    let running = tools.run(&attempt, &cancel);
    cancel.cancel();
    assert!(matches!(running.await, Raw::NotPerformed(_)));
    attempt.network = Arc::new(short);
    let raw = tools.run(&attempt, &CancellationToken::new()).await;
    assert!(matches!(raw, Raw::Unknown(_)), "{raw:?}");
    // A program that was killed has its folder for a moment; the next attempt sweeps what is left.
    let next = script("read", "", "save: a.txt", "echo x");
    once(&temporary, &next, json!({})).await;
}

/// A folder without a holder of its lock is left by a dead process. One whose program still runs has a holder.
#[tokio::test]
async fn the_next_attempt_removes_what_a_dead_process_left() {
    let temporary = Temporary::new("dead");
    let next = script("read", "", "save: a.txt", "echo x");
    once(&temporary, &next, json!({})).await;
    let leave = |name: &str| {
        std::fs::create_dir_all(temporary.all().join(name).join("in/doc")).unwrap();
        std::fs::write(temporary.all().join(name).join("in/doc/a"), "x").unwrap();
        let lock = temporary.all().join(format!("{name}.lock"));
        std::fs::write(&lock, "").unwrap();
        lock
    };
    leave("1-1");
    let lock = leave("1-2");
    // A program holds the lock as its standard input, as one does that outlived its steersman.
    let input = std::fs::File::open(lock).unwrap();
    input.try_lock().unwrap();
    let mut orphan = std::process::Command::new("sleep")
        .arg("60")
        .stdin(input)
        .spawn()
        .unwrap();
    let network = &next;
    run(&temporary.tools(), &attempt(network, json!({})).await).await;
    let mut left = temporary.left();
    left.sort();
    assert_eq!(left, ["1-2", "1-2.lock"]);
    orphan.kill().unwrap();
    orphan.wait().unwrap();
    once(&temporary, &next, json!({})).await;
}

#[tokio::test]
async fn a_folder_of_somebody_else_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let temporary = Temporary::new("open");
    std::fs::create_dir(temporary.all()).unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(temporary.all(), open).unwrap();
    let network = script("read", "", "save: a.txt", "echo x");
    let raw = run(&temporary.tools(), &attempt(&network, json!({})).await).await;
    assert!(
        matches!(&raw, Raw::NotPerformed(fault) if fault.message.contains("no folder that only you may read")),
        "{raw:?}"
    );
}

/// Attempts that run at once have folders of their own, and none sweeps that of another.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn attempts_at_once_do_not_meet() {
    let temporary = Temporary::new("many");
    let network = script(
        "read",
        "{{ save }}",
        "save: \"{{ args.x }}.txt\"",
        r#"cat "$DOC" > "$OUT""#,
    );
    let tools = Arc::new(temporary.tools());
    let mut running = tokio::task::JoinSet::new();
    for n in 0..40 {
        let args = json!({ "doc": "in/rows.csv", "x": n.to_string() });
        let (attempt, tools) = (attempt(&network, args).await, tools.clone());
        running.spawn(async move {
            let raw = tools.run(&attempt, &CancellationToken::new()).await;
            let (_, name, _, text) = one(&raw);
            assert_eq!((&*name, &*text), (&*format!("{n}.txt"), "b,2\na,1\n"));
        });
    }
    let all = tokio::time::timeout(Duration::from_mins(1), running.join_all());
    all.await.expect("they end");
    assert_eq!(temporary.left(), Vec::<String>::new());
}
