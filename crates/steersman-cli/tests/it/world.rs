//! A folder, a home and services for each test, and filters that replace what differs from run to run.

use serde_json::Value as Json;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// A desk that looks something up and pays; each payment that is made is a line of `book`.
pub(crate) const PAYS: &str = r#"name: desk
tools:
  look: { description: Looks., parameters: { what: string }, effect: read, command: [echo, "{{ args.what }}"] }
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, simulate: pretended, command: [sh, -c, "echo paid >> book; echo ok"] }
agents:
  desk: { system: You settle., tools: [look, pay] }
"#;

/// A folder and an environment that hold nothing of the user of this machine.
pub(crate) struct World {
    pub(crate) folder: PathBuf,
    env: Vec<(String, String)>,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Standard output and standard error, as a person at a terminal sees them.
    pub(crate) fn all(&self) -> String {
        [&*self.out, &*self.err].join("\n")
    }
}

/// Time after which a command counts as stuck.
const PATIENCE: Duration = Duration::from_mins(4);

/// Runs a command. Panics if it does not end.
pub(crate) fn ran(command: &mut Command) -> Ran {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id().to_string();
    let (ended, waits) = mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        let late = waits.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout);
        if late {
            let _ = Command::new("kill").args(["-KILL", &id]).status();
        }
        late
    });
    let output = child.wait_with_output().unwrap();
    drop(ended);
    assert!(
        !watch.join().unwrap(),
        "{command:?} did not end within {PATIENCE:?}: {output:?}"
    );
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

impl World {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = std::env::temp_dir().join(format!(
            "steersman-it-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        ));
        std::fs::create_dir_all(folder.join("home")).unwrap();
        std::fs::create_dir_all(folder.join(".steersman")).unwrap();
        Self {
            folder,
            env: Vec::new(),
        }
    }

    /// A world with a copy of a folder of `examples/`.
    pub(crate) fn example(name: &str) -> Self {
        let world = Self::new();
        copy(&examples().join(name), &world.folder.join(name));
        world
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.env.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_steersman"), args)
    }

    /// A command of another program, in the same folder and environment.
    pub(crate) fn program(&self, name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(name);
        command
            .args(args)
            .current_dir(&self.folder)
            .env_clear()
            // A definition may start our program by its name, as if it were installed.
            .env("PATH", path())
            .env("HOME", self.folder.join("home"))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        for (name, value) in &self.env {
            command.env(name, value);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        ran(&mut self.command(args))
    }

    /// Runs a line in a shell where our program is on the path.
    pub(crate) fn shell(&self, typed: &str) -> Ran {
        ran(&mut self.program("sh", &["-c", typed]))
    }

    /// Runs it with `--json` and reads the last document.
    pub(crate) fn json(&self, args: &[&str]) -> (Option<i32>, Json) {
        let mut args = args.to_vec();
        args.push("--json");
        let ran = self.run(&args);
        let last = ran.out.lines().last().unwrap_or("null");
        (
            ran.code,
            serde_json::from_str(last).unwrap_or_else(|e| panic!("{e} in {ran:?}")),
        )
    }

    /// All documents of a run with `--json`.
    pub(crate) fn json_lines(&self, args: &[&str]) -> Vec<Json> {
        let mut args = args.to_vec();
        args.push("--json");
        let ran = self.run(&args);
        ran.out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// All lines of a session, each with everything that it holds.
    pub(crate) fn lines(&self, session: &str) -> Vec<Json> {
        let (_, mut whole) = self.json(&["export", session]);
        match whole["log"].take() {
            Json::Array(lines) => lines,
            other => panic!("no lines in {other}"),
        }
    }

    /// Replaces what differs from run to run by a name for it.
    pub(crate) fn filter(&self, text: &str) -> String {
        let mut text = text.replace(&*self.folder.to_string_lossy(), "FOLDER");
        let listed = self.run(&["sessions", "--all", "--json"]).out;
        for line in listed.lines() {
            let session: Json = serde_json::from_str(line).unwrap();
            let id = session["session"].as_str().unwrap();
            text = text.replace(id, "SESSION");
            // Short forms of the id, the longest first.
            for end in (4..id.len()).rev() {
                text = replace_word(&text, &id[..end], "aaSESS");
            }
        }
        settled(&text)
    }

    /// Exit code, stdout and stderr on one page.
    pub(crate) fn page(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        self.filter(&format!(
            "$ steersman {}\nexit {}\n----- stdout\n{}----- stderr\n{}",
            args.join(" "),
            ran.code.map_or("none".into(), |c| c.to_string()),
            ran.out,
            ran.err
        ))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        end_all_in(&self.folder);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Kills all processes that work in this folder: tools outlive a program that is killed.
fn end_all_in(folder: &Path) {
    let (Ok(folder), Ok(processes)) = (folder.canonicalize(), std::fs::read_dir("/proc")) else {
        return;
    };
    for process in processes.flatten() {
        let works_here = std::fs::read_link(process.path().join("cwd"));
        if works_here.is_ok_and(|at| at.starts_with(&folder)) {
            let id = process.file_name();
            let _ = Command::new("kill").arg("-KILL").arg(id).status();
        }
    }
}

#[test]
fn what_was_started_in_a_world_ends_with_it() {
    let world = World::new();
    let mut shell = Command::new("sh")
        .args(["-c", "until test -e go; do sleep 0.02; done"])
        .current_dir(&world.folder)
        .spawn()
        .unwrap();
    drop(world);
    assert!(!shell.wait().unwrap().success());
}

/// The search path of programs, with ours first, as if it were installed.
fn path() -> std::ffi::OsString {
    let ours = Path::new(env!("CARGO_BIN_EXE_steersman")).parent().unwrap();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(ours.to_owned()).chain(std::env::split_paths(&others));
    std::env::join_paths(all).unwrap()
}

/// The service of an example, killed when it goes out of scope.
pub(crate) struct Service {
    child: Child,
    pub(crate) book: PathBuf,
}

impl Service {
    pub(crate) fn support(world: &mut World, stall: bool) -> Self {
        Self::start(world, "support", stall.then_some("--stall"))
    }

    pub(crate) fn bank(world: &mut World) -> Self {
        Self::start(world, "bank", None)
    }

    pub(crate) fn invoice(world: &mut World, faulty: bool) -> Self {
        Self::start(world, "invoice", faulty.then_some("--faulty"))
    }

    pub(crate) fn start(world: &mut World, name: &str, how: Option<&str>) -> Self {
        let address_in = match name {
            "bank" => "BANK_URL",
            "support" => "SHOP_URL",
            "invoice" => "ERP_URL",
            other => panic!("`{other}` has no service"),
        };
        let book = world.folder.join("book.jsonl");
        let mut args = vec!["example-service", name, "--book", "book.jsonl"];
        args.extend(how);
        let mut child = world.command(&args).stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        world.set(address_in, address.trim());
        Self { child, book }
    }

    pub(crate) fn refunds(&self) -> usize {
        self.booked().len()
    }

    /// All that was booked, oldest first.
    pub(crate) fn booked(&self) -> Vec<Json> {
        let book = std::fs::read_to_string(&self.book).unwrap_or_default();
        // The last line may be incomplete.
        let whole = book
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        let lines = whole.map(serde_json::from_str);
        lines.collect::<Result<_, _>>().unwrap()
    }

    /// The number of transfers that were made.
    pub(crate) fn transfers(&self) -> usize {
        let booked = self.booked();
        let made = booked.iter().filter(|entry| entry["kind"] == "transfer");
        made.count()
    }

    /// The numbers of the postings that were booked, in order.
    pub(crate) fn postings(&self) -> Vec<String> {
        let booked = self.booked();
        let postings = booked.iter().filter(|entry| entry["kind"] == "posting");
        let numbers = postings.map(|entry| entry["number"].as_str().unwrap().to_owned());
        numbers.collect()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

pub(crate) fn examples() -> PathBuf {
    root().join("examples")
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// All files below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else {
        return all;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all
}

/// Replaces figures by names, and brings rows that have no fixed order into one order.
pub(crate) fn settled(text: &str) -> String {
    canonical(&figures(text))
}

/// The desk looks up the order and asks for the policy at once. Either of the two may end first, and one line may take
/// both. Here the policy comes first, and the numbers of lines and ids are left out.
fn canonical(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(unnumbered).collect();
    for i in 1..lines.len() {
        if lines[i - 1].contains("find_order = ") && lines[i].contains("  policy  ") {
            lines.swap(i - 1, i);
        }
    }
    lines
        .join("\n")
        .replace("U A TC AC TR AR", "U A TC AC AR TR")
        + "\n"
}

/// Replaces the numbers of lines (`@5`, `abcd@5`) and ids (`5.0`, also inside of a word): both differ if one line took
/// two outcomes.
fn unnumbered(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (ahead, behind) = rest.split_at(at);
        out.push_str(ahead);
        let number = behind.trim_start_matches(|c: char| c.is_ascii_digit());
        let kth = number.strip_prefix('.').and_then(|kth| {
            let rest = kth.strip_prefix(|c: char| c.is_ascii_digit())?;
            let longer = rest.strip_prefix('.').unwrap_or(rest);
            (!longer.starts_with(|c: char| c.is_ascii_digit())
                && !rest.starts_with(char::is_alphabetic))
            .then_some(rest)
        });
        let alone = !out.ends_with(|c: char| c.is_alphanumeric() || c == '.');
        match kth {
            _ if out.ends_with('@') => {
                out.push('N');
                rest = number;
            }
            Some(after) if alone => {
                out.push('E');
                rest = after;
            }
            _ => {
                out.push_str(&behind[..behind.len() - number.len()]);
                rest = number;
            }
        }
    }
    out.push_str(rest);
    // The title of a frame is padded with strokes, and a number with blanks.
    match out.split_once("+- ") {
        Some((indent, title)) if indent.trim().is_empty() => {
            let title = title.trim_end_matches(['-', '+']);
            format!("{:-<85}+", format!("{indent}+- {title}"))
        }
        _ => out.replace("   @N", "@N").trim_end().to_owned(),
    }
}

pub(crate) fn replace_word(text: &str, word: &str, by: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let before = rest[..at].chars().next_back();
        let after = rest[at + word.len()..].chars().next();
        out.push_str(&rest[..at]);
        let alone =
            !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric);
        out.push_str(if alone { by } else { word });
        rest = &rest[at + word.len()..];
    }
    out + rest
}

/// Replaces durations, ports, digests of definitions, ages, sizes in bytes, and counts of lines: these differ if one
/// line took two outcomes.
fn figures(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        for i in 0..words.len() {
            let next = words
                .get(i + 1)
                .map(|w| w.trim_end_matches([',', '.', ')']).to_owned());
            let number = words[i].chars().all(|c| c.is_ascii_digit() || c == ',');
            if !words[i].is_empty()
                && number
                && let Some("ms" | "s" | "min" | "h" | "tokens" | "bytes" | "in" | "lines") =
                    next.as_deref()
            {
                words[i] = "N".into();
                // A duration of 900 ms in one run may be 1 s in another.
                if let Some(mark) = words[i + 1].strip_prefix("s")
                    && mark.chars().all(|c| ",.)".contains(c))
                    && words.get(i + 2).is_none_or(|word| !word.starts_with("ago"))
                {
                    words[i + 1] = format!("ms{mark}");
                }
            }
            if let Some((before, _)) = words[i].split_once("127.0.0.1:") {
                words[i] = format!("{before}127.0.0.1:PORT");
            }
            let bare = words[i].trim_end_matches(':');
            let digest = bare.len() == 6
                && bare
                    .chars()
                    .all(|c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase())
                && bare.chars().any(|c| c.is_ascii_digit());
            if digest {
                words[i] = words[i].replace(bare, "DIGEST");
            }
        }
        let line = words.join(" ").replace("N s ago", "just now");
        // Text at the right end is padded by the width of the rest.
        let line = match line.rfind("done, N ") {
            Some(at) => format!("{}  {}", line[..at].trim_end(), &line[at..]),
            // The width of the column depends on the age.
            None if line.contains("just now") || line.contains("  UPDATED  ") => narrow(&line),
            None => line,
        };
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n") + "\n"
}

/// Separates columns by two blanks.
fn narrow(line: &str) -> String {
    let cells = line.split("  ").map(str::trim);
    let cells: Vec<&str> = cells.filter(|cell| !cell.is_empty()).collect();
    cells.join("  ")
}
