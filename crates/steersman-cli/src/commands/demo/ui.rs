//! `demo --ui`: sessions that show each screen of the console, in a store of their own, and the console over them. A script answers for the
//! models, and the tools are commands of this computer that touch nothing.

use crate::browser;
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, bold, dim, yellow};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use tokio::signal::unix::{SignalKind, signal};

const FILES: &[(&str, &str)] = &[
    (
        "steersman.yaml",
        include_str!("../../../tour/steersman.yaml"),
    ),
    ("script.yaml", include_str!("../../../tour/script.yaml")),
];

const SAID: &str = "My kettle (order 4711) arrived broken. I want my money back.";

pub(super) async fn run(print: bool, printer: &Printer) -> Result<Exit, CommandError> {
    if !cfg!(feature = "serve") {
        return Err(
            CommandError::usage("this program was built without its server")
                .hint("build it with its default features"),
        );
    }
    let tour = Tour {
        program: std::env::current_exe()?,
        folder: super::folder("tour", FILES)?,
    };
    let shown = tour.show(print, printer).await;
    // It held the definition, the script and the store.
    let _ = std::fs::remove_dir_all(&tour.folder);
    shown
}

/// The program and the folder of the tour.
struct Tour {
    program: PathBuf,
    folder: PathBuf,
}

impl Tour {
    async fn show(&self, print: bool, printer: &Printer) -> Result<Exit, CommandError> {
        printer.talk(format!(
            "{} No key, no network: a script answers for the models.",
            bold(&format!("Steersman {}.", env!("CARGO_PKG_VERSION")))
        ));
        self.play()?;
        let mut int = signal(SignalKind::interrupt())?;
        let mut term = signal(SignalKind::terminate())?;
        let mut server = self.serve()?;
        let url = self.address(&server)?;
        if printer.is_json() {
            printer.json(&json!({ "url": url, "seconds": 60 }))?;
        } else if print {
            printer.data(&url)?;
        } else if let Err(why) = browser::open(&url, Some(&self.folder)) {
            printer.complain(yellow(&why));
            printer.data(&url)?;
        } else {
            printer.talk(format!("The console is at {}.", server.at));
        }
        printer.talk(dim("Ctrl-C ends it. The sessions are gone then."));
        let id = server.child.id();
        let mut ended = tokio::task::spawn_blocking(move || server.child.wait());
        let status = tokio::select! {
            status = &mut ended => status,
            _ = int.recv() => stopped(id, ended).await,
            _ = term.recv() => stopped(id, ended).await,
        };
        let status = status.map_err(|error| CommandError::store(error.to_string()))??;
        if status.success() || status.code() == Some(Exit::Interrupted as i32) {
            return Ok(Exit::Answered);
        }
        Err(CommandError::new(
            Exit::Failed,
            format!("the demo's server ended with {status}"),
        ))
    }

    /// Makes the sessions: one that went on in several ways, one that was refused, and one for each kind of question.
    fn play(&self) -> Result<(), CommandError> {
        let told = self.begins("desk")?;
        let session = text(&told, "session")?;
        let answered = self.act(&["approve", session, "--as", "manager"])?;
        let line = answered["line"].as_u64().unwrap_or_default();
        self.act(&["send", session, "Thank you."])?;
        let at = |line: u64| format!("{session}@{line}");
        let voucher = "Offer a voucher of 50 instead.";
        self.act(&["fork", &at(6), "--label", "voucher", "--say", voucher])?;
        let why = "Ask first how it broke.";
        self.act(&["fork", &at(4), "--label", "why", "--say", why])?;
        let thanks = "Thanks a lot.";
        self.act(&["rewind", &at(line), "--label", "again", "--say", thanks])?;
        self.act(&["rerun", &at(4), "--say", voucher])?;
        let refused = self.begins("desk")?;
        let refused = text(&refused, "session")?;
        let reason = "The kettle was used for a year.";
        self.act(&["reject", refused, "--as", "manager", "--say", reason])?;
        for entry in ["wirer", "mailer", "chooser", "desk"] {
            self.begins(entry)?;
        }
        Ok(())
    }

    fn begins(&self, entry: &str) -> Result<Json, CommandError> {
        let script = self.folder.join("script.yaml");
        let (folder, script) = (path(&self.folder)?, path(&script)?);
        let wanted = ["run", folder, "--entry", entry, "--input", SAID];
        self.act(&[&wanted[..], &["--script-all", script]].concat())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .args(["--json", "--quiet"])
            .current_dir(&self.folder)
            .env("STEERSMAN_STORE", self.folder.join("store.db"))
            .env_remove("STEERSMAN_SERVER")
            .env_remove("STEERSMAN_TOKEN")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end, and returns the last document that it prints. Some sessions are there to wait, and a rerun to differ.
    fn act(&self, args: &[&str]) -> Result<Json, CommandError> {
        let output = self.command(args).output()?;
        let told = String::from_utf8_lossy(&output.stdout);
        let last = told.lines().last().unwrap_or_default();
        let wanted = [Exit::Waits, Exit::Doubt, Exit::Differs].map(|exit| Some(exit as i32));
        if output.status.success() || wanted.contains(&output.status.code()) {
            return Ok(serde_json::from_str(last).unwrap_or_default());
        }
        let why = String::from_utf8_lossy(&output.stderr);
        Err(CommandError::new(
            Exit::Failed,
            format!(
                "the demo failed: `{}` ended with {}: {}",
                args.join(" "),
                output.status,
                why.trim()
            ),
        ))
    }

    fn serve(&self) -> Result<Server, CommandError> {
        let args = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--script-all",
            "script.yaml",
        ];
        let mut child = self.command(&args).stdout(Stdio::piped()).spawn()?;
        let mut first = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut first)?;
        }
        let told: Json = serde_json::from_str(&first).unwrap_or_default();
        match text(&told, "address") {
            Ok(at) => Ok(Server {
                at: at.to_owned(),
                child,
            }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Returns the address of the console, with a code in place of the token.
    fn address(&self, server: &Server) -> Result<String, CommandError> {
        let told = self.act(&["--server", &server.at, "ui", "--print"]);
        Ok(text(&told?, "url")?.to_owned())
    }
}

/// The server of the tour.
struct Server {
    at: String,
    child: Child,
}

type Waited = tokio::task::JoinHandle<std::io::Result<ExitStatus>>;

/// Ends the server, and waits for its end.
async fn stopped(
    id: u32,
    ended: Waited,
) -> Result<std::io::Result<ExitStatus>, tokio::task::JoinError> {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        // A terminal sends its signal to the server, too, so it may have ended.
        let _ = kill_process(pid, Signal::TERM);
    }
    ended.await
}

fn text<'a>(told: &'a Json, name: &str) -> Result<&'a str, CommandError> {
    told[name].as_str().ok_or_else(|| {
        let why = format!("the demo failed: a command did not tell its `{name}`: {told}");
        CommandError::new(Exit::Failed, why)
    })
}

fn path(path: &Path) -> Result<&str, CommandError> {
    path.to_str()
        .ok_or_else(|| CommandError::usage(format!("`{}` is no text", path.display())))
}
