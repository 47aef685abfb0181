//! `demo`: a session dies in the middle of a payment and continues. Only the model and the money are simulated: the service
//! and the session are separate processes, and the session is killed with SIGKILL.

mod ui;

use crate::cli::Global;
use crate::commands::example_service::left_out;
use crate::commands::log;
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::printer::{Printer, bold, dim, green, red, typed};
use crate::words::{count, screen};
use serde_json::{Value as Json, json};
use std::fs::DirBuilder;
use std::io::{BufRead, BufReader, IsTerminal};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use steersman::runtime::inbox::random_id;

pub(crate) const LISTED: &str =
    "Watch a session die in the middle of a payment and go on. No key, no network";

/// Watch a session die in the middle of a payment and go on. No key, no network.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Open the console over sessions that show each of its screens, in a store of their own. Ctrl-C ends it, and nothing of it is left.
    #[arg(long)]
    ui: bool,
    /// With --ui: print the address, and start no browser.
    #[arg(long, requires = "ui")]
    print: bool,
}

const SAID: &str = "My kettle (order 4711) arrived broken. I want my money back.";

/// The definition of `examples/support`.
const FILES: &[(&str, &str)] = &[
    ("steersman.yaml", include_str!("../../demo/steersman.yaml")),
    (
        "prompts/desk.md",
        include_str!("../../demo/prompts/desk.md"),
    ),
    (
        "prompts/policy.md",
        include_str!("../../demo/prompts/policy.md"),
    ),
    ("script.yaml", include_str!("../../demo/script.yaml")),
];

/// Number of characters of a session's id that are typed; enough to be unique in practice.
const ENOUGH: usize = 6;
/// Maximum time of each wait before the demo gives up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between the payment and the kill, so that the last row on the screen can be read.
const READABLE: Duration = Duration::from_millis(400);
/// Pause before and after the kill, if a person looks on.
const PAUSE: Duration = Duration::from_millis(2_500);

pub(crate) async fn run(
    args: DemoArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if args.ui {
        return ui::run(args.print, printer).await;
    }
    if !cfg!(feature = "examples") {
        return Err(left_out());
    }
    let stage = Stage::set(global, printer)?;
    let outcome = stage.play();
    // The folder held a definition, a script and the shop's book; the session stays in the store.
    let _ = std::fs::remove_dir_all(&stage.folder);
    outcome
}

/// The programs, the folder and the store of the demo.
struct Stage<'a> {
    printer: &'a Printer,
    program: PathBuf,
    folder: PathBuf,
    store: PathBuf,
    quiet: bool,
}

/// Makes a folder with these files. It is new and its owner's alone, because the program runs what its definition names.
fn folder(of: &str, files: &[(&str, &str)]) -> std::io::Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("steersman-{of}-{}", random_id()));
    DirBuilder::new().mode(0o700).create(&folder)?;
    for (path, text) in files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(folder)
}

impl<'a> Stage<'a> {
    fn set(global: &Global, printer: &'a Printer) -> Result<Self, CommandError> {
        let folder = folder("demo", FILES)?;
        let site = crate::store::site(&locate::store(global.store.as_deref())?)?;
        let mut store = site.address();
        // The address of a store that is kept is a path. The demo runs in a folder of its own.
        if site.folder().is_some() {
            store = std::path::absolute(store)?;
        }
        Ok(Self {
            printer,
            program: std::env::current_exe()?,
            folder,
            store,
            quiet: global.quiet,
        })
    }

    fn play(&self) -> Result<Exit, CommandError> {
        let printer = self.printer;
        printer.talk(format!(
            "{} No key, no network: the model is a script, the shop a process on loopback.",
            bold(&format!("Steersman {}.", env!("CARGO_PKG_VERSION")))
        ));
        printer.talk("A desk and a sub-agent settle a complaint. In the middle of the payment the process is killed.\n");

        let service = Service::start(self)?;
        self.typed(&format!("steersman run support --input \"{SAID}\""));
        let (status, told) = self.act(
            &service,
            &[
                "run",
                text(&self.folder)?,
                "--script-all",
                text(&self.folder.join("script.yaml"))?,
                "--input",
                SAID,
            ],
        )?;
        let session = told["session"].as_str().unwrap_or_default();
        let session: String = session.chars().take(ENOUGH).collect();
        if status.code() != Some(Exit::Waits as i32) || session.is_empty() {
            return Err(self.unexpected("the desk should ask for an approval", status));
        }

        printer.talk("");
        self.typed(&format!("steersman approve {session} --as supervisor"));
        let mut dying = self.spawn(&service, &["approve", &session, "--as", "supervisor"])?;
        let booked = service.wait_for_booking(&mut dying);
        std::thread::sleep(READABLE);
        self.pause("       The money has left. Now the process is killed.");
        // `kill` sends SIGKILL: the process cannot write another byte.
        let killed = dying.kill();
        let _ = dying.wait();
        booked?;
        killed?;
        printer.talk(red(
            "    x  killed (SIGKILL) after the payment left, before its answer came\n",
        ));

        self.pause("       The next process knows that the refund began, and not how it ended.\n");
        self.typed(&format!("steersman run --resume {session}"));
        let (status, told) = self.act(&service, &["run", "--resume", &session])?;
        if status.code() != Some(Exit::Answered as i32) {
            return Err(self.unexpected("the session should go on and answer", status));
        }
        self.sum_up(&session, &told, &service)
    }

    /// Reports the payments in the shop's own book, next to the intended ones.
    fn sum_up(&self, session: &str, told: &Json, service: &Service) -> Result<Exit, CommandError> {
        let printer = self.printer;
        let done = service.booked();
        let (intended, repeated) = (1, done.saturating_sub(1));
        if printer.is_json() {
            printer.json(&json!({
                "session": session,
                "answer": told["answer"],
                "intended": intended,
                "done": done,
                "repeated": repeated,
            }))?;
        } else {
            printer.data(format!(
                "{intended} intended, {done} done, {repeated} repeated"
            ))?;
        }
        let verdict = format!(
            "The shop's own book holds {} for the one that was intended.",
            count(done as u64, "refund")
        );
        let right = done == intended;
        printer.talk(if right {
            green(&verdict)
        } else {
            red(&verdict)
        });
        printer.talk("");
        for (command, why) in [
            ("steersman show last", "all of it on one page"),
            (
                "steersman context last@refund",
                "what the model saw before it called refund",
            ),
            ("steersman log last", log::SHOWS),
            ("steersman new desk", "a definition of your own"),
        ] {
            printer.talk(format!(
                "  {}   {}",
                typed(&format!("{command:<30}")),
                dim(why)
            ));
        }
        Ok(if right { Exit::Answered } else { Exit::Failed })
    }

    /// Gives a person at a terminal time to read what happens next. A program gets neither the text nor the pause.
    fn pause(&self, text: &str) {
        if std::io::stderr().is_terminal() && !self.quiet {
            self.printer.talk(dim(text));
            std::thread::sleep(PAUSE);
        }
    }

    fn typed(&self, command: &str) {
        self.printer.talk(format!("$ {}", bold(command)));
    }

    fn unexpected(&self, wanted: &str, status: ExitStatus) -> CommandError {
        CommandError::new(
            Exit::Failed,
            format!("the demo failed: {wanted}, but the process ended with {status}"),
        )
        .hint(format!(
            "look at it: steersman show last --store {}",
            self.store.display()
        ))
    }

    fn command(&self, service: &Service, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .arg("--json")
            .env("STEERSMAN_STORE", &self.store)
            .env("SHOP_URL", &service.address)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if self.quiet {
            command.arg("--quiet");
        }
        command
    }

    fn spawn(&self, service: &Service, args: &[&str]) -> Result<Child, CommandError> {
        Ok(self.command(service, args).spawn()?)
    }

    /// Runs a command to its end: relays its messages, and parses the last document that it prints.
    fn act(&self, service: &Service, args: &[&str]) -> Result<(ExitStatus, Json), CommandError> {
        let styled = self.printer.is_styled();
        let mut child = self
            .command(service, args)
            .args(["--color", if styled { "always" } else { "never" }])
            .args(screen(std::io::stderr()).map(|columns| format!("--columns={columns}")))
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(talk) = child.stderr.take() {
            for row in BufReader::new(talk).lines() {
                let row = row?;
                // The shop and the script are removed with the demo, so nothing can be sent to the session.
                if row.contains("steersman send") {
                    continue;
                }
                if styled {
                    self.printer.relay(&row);
                } else {
                    self.printer.talk(row);
                }
            }
        }
        let output = child.wait_with_output()?;
        let told = String::from_utf8_lossy(&output.stdout);
        let last = told.lines().last().unwrap_or_default();
        Ok((
            output.status,
            serde_json::from_str(last).unwrap_or(Json::Null),
        ))
    }
}

fn text(path: &Path) -> Result<&str, CommandError> {
    path.to_str()
        .ok_or_else(|| CommandError::usage(format!("`{}` is no text", path.display())))
}

/// The shop, as a separate process.
struct Service {
    child: Child,
    address: String,
    book: PathBuf,
}

impl Service {
    fn start(stage: &Stage<'_>) -> Result<Self, CommandError> {
        let book = stage.folder.join("book.jsonl");
        let mut child = Command::new(&stage.program)
            .args([
                "example-service",
                "support",
                "--port",
                "0",
                "--stall",
                "--book",
            ])
            .arg(&book)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let mut address = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut address)?;
        }
        let address = address.trim().to_owned();
        let service = Self {
            child,
            address,
            book,
        };
        if service.address.is_empty() {
            return Err(CommandError::new(
                Exit::Failed,
                "the demo's shop did not start",
            ));
        }
        Ok(service)
    }

    fn booked(&self) -> usize {
        std::fs::read_to_string(&self.book).map_or(0, |book| book.lines().count())
    }

    /// Waits until the payment is in the shop's book. The shop does not answer the request.
    fn wait_for_booking(&self, dying: &mut Child) -> Result<(), CommandError> {
        let began = Instant::now();
        while self.booked() == 0 {
            if let Some(status) = dying.try_wait()? {
                return Err(CommandError::new(
                    Exit::Failed,
                    format!("the demo failed: the process ended ({status}) before it paid"),
                ));
            }
            if began.elapsed() > PATIENCE {
                return Err(CommandError::new(
                    Exit::Failed,
                    "the demo's payment did not arrive",
                ));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
