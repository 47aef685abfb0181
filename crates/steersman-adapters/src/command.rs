//! Tools that are programs: an argument vector without a shell, with bounds for time and output, a controlled environment and
//! folder.
//!
//! The program leads its own process group. The group is killed when time is up, when the call is cancelled, and when the
//! program ends and leaves children. A child that leaves the group on purpose (`setsid`) is not killed; it cannot keep the call
//! open, since output is not read for longer than a short time after the program's end.
//!
//! A program that reads or makes artifacts gets files in a private folder, which goes with the attempt.

mod files;
mod folder;

use crate::masked::Mask;
use files::{Files, Given};
use serde_json::Value as Json;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use steersman_machine::network::{Network, Source};
use steersman_machine::stored::bounds::{ARTIFACT, PREVIEW};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::interaction::Class;
use steersman_machine::values::expression::{Scope, Template};
use steersman_machine::values::json;
use steersman_machine::view::artifact::Content;
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::toolset::{ToolRun, Toolset};
use steersman_runtime::{Boxed, Env, process_env};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

/// Maximum number of bytes of standard output that are kept, from its beginning.
pub(crate) const OUTPUT_MAX: usize = 8 << 20;
/// Maximum number of bytes from the end of standard error that a fault quotes.
const TOLD_MAX: usize = 2000;
/// Time to read the rest of the output after the program and its group are gone.
const DRAIN: Duration = Duration::from_millis(500);

/// Runs the tools with `command:`, in the folder of their definition.
pub struct CommandTools {
    env: Env,
}

impl Default for CommandTools {
    fn default() -> Self {
        Self { env: process_env() }
    }
}

impl CommandTools {
    /// Sets the environment from which `PATH` is read, instead of the process environment.
    pub fn with_env(self, env: Env) -> Self {
        Self { env }
    }

    fn build(
        &self,
        run: &ToolRun,
        argv: &[Template],
        env: &[(String, Template)],
        files: &Files,
    ) -> Result<Command, String> {
        let given = Given::new(&*run.scope, files);
        // Other users can read a program's arguments, so secrets must not be in them.
        let open = Visible(&given);
        let mut words = Vec::new();
        for (index, template) in argv.iter().enumerate() {
            words.extend(
                text(template, &open).map_err(|error| format!("`command[{index}]`: {error}"))?,
            );
        }
        let mut words = words.into_iter();
        let program = words.next().filter(|program| !program.is_empty());
        let program = program.ok_or("`command` names no program")?;
        let mut command = if program.contains('/') {
            Command::new(run.folder.join(&program))
        } else {
            Command::new(&program)
        };
        let path = (self.env)("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
        command
            .args(words)
            .current_dir(&run.folder)
            .env_clear()
            .env("PATH", path);
        if run.work.class == Class::Idempotent {
            let key = format!("{}.{:x}.{}", run.session, run.mark, run.effect);
            command.env("IDEMPOTENCY_KEY", key);
        }
        for (name, template) in env {
            let value = text(template, &given).map_err(|error| format!("`env.{name}`: {error}"))?;
            if let Some(value) = value {
                if value.contains('\0') {
                    return Err(format!("`env.{name}`: the value holds a zero byte"));
                }
                command.env(name, value);
            }
        }
        command
            .stdin(files.input()?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        Ok(command)
    }

    async fn attempt(&self, run: &ToolRun, mask: &Mask, cancel: &CancellationToken) -> Raw {
        let tool = run.network.tools.get(&run.work.tool);
        let Some((tool, argv, env, save)) = tool.and_then(|tool| match &tool.source {
            Source::Command { argv, env, save } => Some((tool, argv, env, save.as_deref())),
            _ => None,
        }) else {
            return Raw::NotPerformed(Fault::new(Code::Failed, "this is not a program".to_owned()));
        };
        if cancel.is_cancelled() {
            return Raw::NotPerformed(Fault::new(
                Code::Cancelled,
                "cancelled before it began".to_owned(),
            ));
        }
        let temporary = (self.env)("TMPDIR").filter(|path| !path.is_empty());
        let temporary = temporary.unwrap_or_else(|| "/tmp".to_owned());
        let files = match Files::of(run, &tool.parameters, save, temporary.into()).await {
            Ok(files) => files,
            Err(message) => return Raw::NotPerformed(Fault::new(Code::Failed, message)),
        };
        let mut command = match self.build(run, argv, env, &files) {
            Ok(command) => command,
            Err(message) => return Raw::NotPerformed(Fault::new(Code::Failed, message)),
        };
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let program = command
                    .as_std()
                    .get_program()
                    .to_string_lossy()
                    .into_owned();
                // A folder that is missing is told like a program that is missing.
                let folder = &run.folder;
                let message = if folder.is_dir() {
                    format!("`{program}` cannot be started: {error}")
                } else {
                    format!(
                        "`{program}` cannot be started: the folder of the definition, {}, is not there; put it back",
                        folder.display()
                    )
                };
                return Raw::NotPerformed(Fault::new(Code::Failed, message));
            }
        };
        let limit = Duration::from_millis(tool.timeout.max(1));
        let kept = if files.keeps_output() {
            ARTIFACT
        } else {
            OUTPUT_MAX
        };
        let running = tokio::time::timeout(limit, finish(child, kept));
        match cancel.run_until_cancelled(running).await {
            Some(Ok(Ok(end))) if end.status.success() => end.result(run, mask, files).await,
            Some(Ok(Ok(end))) => end.fault(run, mask),
            Some(Ok(Err(error))) => Raw::Unknown(Fault::new(
                Code::Failed,
                format!("waiting for the program failed: {error}"),
            )),
            Some(Err(_)) => Raw::Unknown(Fault {
                again: Some(0),
                ..Fault::new(
                    Code::Timeout,
                    format!("not finished within {limit:?}; it was killed"),
                )
            }),
            None => Raw::Unknown(Fault::new(
                Code::Cancelled,
                "cancelled while it ran; it was killed".to_owned(),
            )),
        }
    }
}

impl Toolset for CommandTools {
    fn has(&self, network: &Network, tool: &str) -> bool {
        let tool = network.tools.get(tool);
        tool.is_some_and(|tool| matches!(tool.source, Source::Command { .. }))
    }

    fn run<'a>(&'a self, run: &'a ToolRun, cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        Box::pin(async move {
            let mask = Mask::of(steersman_runtime::secrets::texts(
                &run.network,
                &run.work.tool,
                &*run.scope,
            ));
            let raw = Box::pin(self.attempt(run, &mask, cancel)).await;
            raw.map_fault(|fault| Fault {
                message: mask.all(&fault.message),
                ..fault
            })
        })
    }
}

/// A scope without `secrets`, for argument vectors, which other users can read.
pub(crate) struct Visible<'a>(pub(crate) &'a dyn Scope);

impl Scope for Visible<'_> {
    fn root(&self, name: &str) -> Option<minijinja::Value> {
        (name != "secrets").then(|| self.0.root(name)).flatten()
    }
    fn path(&self, root: &str, steps: &[&str]) -> Option<(minijinja::Value, usize)> {
        (root != "secrets")
            .then(|| self.0.path(root, steps))
            .flatten()
    }
}

/// Renders a template as text for a program; `None` if its value is null.
pub(crate) fn text(template: &Template, scope: &dyn Scope) -> Result<Option<String>, String> {
    let value = template.value(scope).map_err(|error| error.to_string())?;
    Ok(match value {
        Json::Null => None,
        Json::String(text) => Some(text),
        other => Some(other.to_string()),
    })
}

/// The exit status of a program, and the kept parts of its output.
struct End {
    status: ExitStatus,
    out: Kept,
    err: Kept,
}

/// Kills a process group when dropped, so that a cancelled future kills it, too.
struct Group(Option<rustix::process::Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Usually nothing is left to kill; that is not an error.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// Waits for the program, and reads both outputs meanwhile.
async fn finish(mut child: Child, most: usize) -> std::io::Result<End> {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let group = Group(id.and_then(rustix::process::Pid::from_raw));
    let (mut out, mut err) = (Kept::first(most), Kept::last(TOLD_MAX * 2));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let status = {
        let reading = async { tokio::join!(out.read(stdout), err.read(stderr)) };
        tokio::pin!(reading);
        let (status, read) = tokio::select! {
            status = child.wait() => (status, false),
            _ = &mut reading => (child.wait().await, true),
        };
        drop(group);
        if !read {
            // Other holders of the pipes are gone now, so the output can be read to its end.
            let _ = tokio::time::timeout(DRAIN, reading).await;
        }
        status?
    };
    Ok(End { status, out, err })
}

/// The kept part of an output: its beginning or its end. The rest is read and dropped, so that a program with endless output is
/// neither blocked nor able to fill the memory.
struct Kept {
    bytes: Vec<u8>,
    max: usize,
    /// True if the end of the output is kept, false if its beginning.
    end: bool,
    /// Number of bytes that were dropped.
    dropped: u64,
    finished: bool,
}

impl Kept {
    fn first(max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            max,
            end: false,
            dropped: 0,
            finished: false,
        }
    }

    fn last(max: usize) -> Self {
        Self {
            end: true,
            ..Self::first(max)
        }
    }

    async fn read(&mut self, from: Option<impl AsyncRead + Unpin>) {
        if let Some(mut from) = from.filter(|_| !self.finished) {
            let mut piece = vec![0; 64 << 10];
            while let Ok(len @ 1..) = from.read(&mut piece).await {
                self.add(&piece[..len]);
            }
        }
        self.finished = true;
    }

    fn add(&mut self, piece: &[u8]) {
        if self.end {
            self.bytes.extend_from_slice(piece);
            let over = self.bytes.len().saturating_sub(self.max);
            self.bytes.drain(..over);
            self.dropped += over as u64;
        } else {
            let room = (self.max - self.bytes.len()).min(piece.len());
            self.bytes.extend_from_slice(&piece[..room]);
            self.dropped += (piece.len() - room) as u64;
        }
    }

    /// Drops the beginning of a secret at the end of the kept part, because masking finds only whole secrets.
    fn drop_begun_secret(&mut self, mask: &Mask) {
        if self.dropped > 0 && !self.end {
            let half = mask.begun(&self.bytes);
            self.bytes.truncate(self.bytes.len() - half);
            self.dropped += half as u64;
        }
    }

    /// Returns the kept part if it is UTF-8, otherwise `None`. If the rest was dropped, the cut may be within a character.
    fn is_text(&self) -> Option<&str> {
        match std::str::from_utf8(&self.bytes) {
            Ok(text) => Some(text),
            Err(error) if self.dropped > 0 && error.error_len().is_none() => {
                std::str::from_utf8(&self.bytes[..error.valid_up_to()]).ok()
            }
            Err(_) => None,
        }
    }
}

/// Returns a text without the line break at its end.
fn without_newline(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

impl End {
    /// Returns the outcome of an attempt whose program ended in another way than well.
    fn fault(self, run: &ToolRun, mask: &Mask) -> Raw {
        let class = run.work.class;
        let fault = Fault {
            status: self.status.code().map(i64::from),
            ..Fault::new(Code::Failed, self.message(mask))
        };
        // A program that failed may have done a part or all of its work before.
        if class.is_free() {
            Raw::NotPerformed(fault)
        } else {
            Raw::Unknown(fault)
        }
    }

    /// Returns the result of a program that succeeded, with the artifact that `save` of the tool makes of it.
    async fn result(self, run: &ToolRun, mask: &Mask, files: Files) -> Raw {
        if files.keeps_output() {
            return files.of_output(run, self.out.bytes, self.out.dropped);
        }
        let printed = self.printed(run, mask);
        files.with_written(run, printed).await
    }

    /// Returns what a program printed: as JSON, otherwise as text. Output that is neither, or more than is kept, becomes an
    /// artifact, and the result describes it.
    fn printed(mut self, run: &ToolRun, mask: &Mask) -> Raw {
        self.out.drop_begun_secret(mask);
        let (kept, dropped) = (self.out.bytes.len() as u64, self.out.dropped);
        let text = self.out.is_text();
        if let Some(text) = text.filter(|_| dropped == 0) {
            let text = without_newline(text);
            return Raw::Done(json::read(text).unwrap_or_else(|_| text.into()));
        }
        let (end, media) = match text {
            Some(_) => ("txt", "text/plain"),
            None => ("bin", "application/octet-stream"),
        };
        let name = format!("{}.{end}", run.work.makes);
        let mut told = match text {
            Some(_) => String::new(),
            None => "what it printed is no text (UTF-8); ".to_owned(),
        };
        if dropped > 0 {
            let all = kept + dropped;
            told = format!(
                "{told}it printed {all} bytes, more than are kept: the first {kept} are the artifact `{name}`, the rest is lost"
            );
        } else {
            told = format!("{told}its {kept} bytes are the artifact `{name}`");
        }
        // A few characters in another encoding leave the rest readable.
        let begin = &self.out.bytes[..self.out.bytes.len().min(PREVIEW)];
        let told = if begin.contains(&0) {
            format!("({told})")
        } else {
            let begin = mask.piece(&String::from_utf8_lossy(begin));
            format!("({told}; it begins:)\n{}", without_newline(&begin))
        };
        let content = Content {
            name,
            media: media.to_owned(),
            bytes: self.out.bytes.into(),
        };
        Raw::Made {
            result: Json::from(told),
            made: vec![content],
            writes: Vec::new(),
            mode: None,
        }
    }

    fn message(&self, mask: &Mask) -> String {
        use std::os::unix::process::ExitStatusExt as _;
        let mut message = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "it ended without a code".to_owned(),
        };
        // The kept part may begin within a secret, and a program that was killed may have ended within one.
        let said = mask.piece(&String::from_utf8_lossy(&self.err.bytes));
        let said = said.trim();
        if !said.is_empty() {
            message = format!("{message}: {}", mask.last(said, TOLD_MAX));
        }
        message
    }
}
