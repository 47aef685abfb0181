//! A process of the program under test: its output, its exit code, and whether it was killed.

use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A command that takes longer counts as hanging.
const LONG: Duration = Duration::from_mins(2);

/// The program under test.
pub(crate) fn program() -> PathBuf {
    match std::env::var_os("STEERSMAN_PROGRAM") {
        Some(path) => path.into(),
        None => env!("CARGO_BIN_EXE_steersman").into(),
    }
}

#[derive(Default)]
struct Told {
    text: String,
    rows: usize,
}

pub(crate) struct Process {
    child: Child,
    pub(crate) typed: Vec<String>,
    told: Arc<Mutex<Told>>,
    out: Arc<Mutex<Told>>,
    readers: Vec<JoinHandle<()>>,
    begun: Instant,
}

/// The result of a process.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) typed: Vec<String>,
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) killed: bool,
    pub(crate) hangs: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// The last line of standard output, as JSON; null if it is not JSON.
    pub(crate) fn json(&self) -> Json {
        let last = self.out.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_default()
    }
}

impl Process {
    pub(crate) fn spawn(folder: &Path, typed: &[String]) -> Self {
        let mut child = Command::new(program())
            .args(typed)
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", folder.join("home"))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (told, out) = (Arc::default(), Arc::default());
        let readers = vec![
            reader(child.stdout.take().unwrap(), &out),
            reader(child.stderr.take().unwrap(), &told),
        ];
        Self {
            child,
            typed: typed.to_vec(),
            told,
            out,
            readers,
            begun: Instant::now(),
        }
    }

    /// Rows that it has printed so far, on both streams.
    pub(crate) fn rows(&self) -> usize {
        self.told.lock().unwrap().rows + self.out.lock().unwrap().rows
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Returns true if it has run for longer than any command takes.
    pub(crate) fn hangs(&self) -> bool {
        self.begun.elapsed() > LONG
    }

    /// Waits until the process ends. Kills it if it hangs.
    pub(crate) fn wait(mut self) -> Ended {
        while !self.is_over() {
            if self.hangs() {
                let waits = waits(self.child.id());
                self.child.kill().unwrap();
                let mut ended = self.ended(false, true);
                ended.err.push_str(&waits);
                return ended;
            }
            nap();
        }
        self.ended(false, false)
    }

    /// Kills it, with SIGKILL.
    pub(crate) fn kill(mut self) -> Ended {
        let was_over = self.is_over();
        if !was_over {
            self.child.kill().unwrap();
        }
        self.ended(!was_over, false)
    }

    fn ended(mut self, killed: bool, hangs: bool) -> Ended {
        let status = self.child.wait().unwrap();
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        let text = |told: &Mutex<Told>| told.lock().unwrap().text.clone();
        Ended {
            code: status.code(),
            killed: killed || (status.code().is_none() && !hangs),
            hangs,
            out: text(&self.out),
            err: text(&self.told),
            typed: self.typed,
        }
    }
}

/// The calls in which the threads of a process wait, and its open files.
fn waits(process: u32) -> String {
    let names = |folder: &str| {
        let listed = std::fs::read_dir(format!("/proc/{process}/{folder}"));
        listed.into_iter().flatten().flatten().map(|e| e.path())
    };
    let threads = names("task").map(|thread| {
        let said = ["comm", "wchan", "syscall"].map(|file| {
            let said = std::fs::read_to_string(thread.join(file)).unwrap_or_default();
            said.trim().to_owned()
        });
        said.join(" ")
    });
    let open =
        names("fd").filter_map(|fd| Some(std::fs::read_link(fd).ok()?.display().to_string()));
    threads
        .chain(open)
        .fold(String::new(), |text, row| text + "# " + &row + "\n")
}

/// The pause of a loop that polls.
pub(crate) fn nap() {
    std::thread::sleep(Duration::from_micros(300));
}

fn reader(from: impl Read + Send + 'static, to: &Arc<Mutex<Told>>) -> JoinHandle<()> {
    let to = to.clone();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(from);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let mut told = to.lock().unwrap();
            told.text.push_str(&String::from_utf8_lossy(&line));
            told.rows += 1;
            line.clear();
        }
    })
}
