//! `run`: talks to a definition, or continues a session.

use crate::address::Address;
use crate::cli::{Drive, Global};
use crate::commands::there::on_a_store;
use crate::commands::{changed, check, run_there};
use crate::error::{CommandError, Exit};
use crate::place::Place;
use crate::play::{self, Ended, Leaving, Play};
use crate::printer::{Printer, yellow};
use crate::prompt::{Prompt, Typed};
use crate::remote::Remote;
use crate::step::Keys;
use crate::{asked, attach, words};
use clap::builder::NonEmptyStringValueParser;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;
use steersman::runtime::pending::{Pending, PendingKind};
use steersman::runtime::session::Settled;
use steersman::runtime::store::MAX_VALUE;
use steersman::{Act, By, ChatHistory, Error, Resolution, Session, StartOptions};
use steersman_machine::stored::ids::{Line, Name};
use steersman_machine::values::types::TypeKind;
use steersman_runtime::files;

/// Maximum size, in bytes, of a file with a history. What is kept of it is bounded by [`ChatHistory::read`].
const HISTORY_FILE: usize = 8 << 20;

pub(crate) const LISTED: &str = "Talk to a definition, or go on with a session";

/// Talk to a definition, or go on with a session.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// A definition, or a folder with a steersman.yaml [default: here].
    pub(super) definition: Option<PathBuf>,
    /// Say this, drive the session until it rests or waits, and end. `-` reads it from standard input.
    #[arg(long, short, value_name = "TEXT")]
    pub(super) input: Option<String>,
    /// Attach a file to what is said with --input, under a name or under its own.
    #[arg(long, value_name = "[NAME=]PATH", requires = "input")]
    pub(super) file: Vec<String>,
    /// Continue a session after a stop or a crash. If a definition is named too: only if the session is bound to it.
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["entry", "seed"])]
    pub(super) resume: Option<String>,
    /// Go on under the definition as it is now, if that knows all that the session has and nothing of it is open.
    #[arg(long, requires = "resume")]
    pub(super) rebind: bool,
    /// Drive every session of the store, until Ctrl-C: messages, events, timers, and what a dead process left.
    #[arg(long, conflicts_with_all = ["definition", "resume", "rebind", "input", "entry", "seed"])]
    all: bool,
    /// With --all: end as soon as no session has anything to do, with one line of progress. Exit code 1 if a session failed.
    #[arg(long, requires = "all")]
    pub(crate) until_idle: bool,
    /// The agent to talk to, if the definition has several entries.
    #[arg(long, value_name = "AGENT")]
    pub(super) entry: Option<String>,
    /// Begin with a conversation that was held elsewhere: a JSON array of chat messages, or one message a line.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "all"])]
    pub(super) history: Option<PathBuf>,
    /// Give a value of `config`, before the environment and the default. May be given more than once.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with_all = ["resume", "all"])]
    pub(super) set: Vec<String>,
    /// Ask this model instead of the one that the definition names for `default`, or for the name before `=`. `local` is any model
    /// of a server on this computer: Ollama, llama.cpp, vLLM.
    #[arg(long, value_name = "[NAME=]MODEL", conflicts_with_all = ["resume", "all"])]
    pub(super) model: Vec<String>,
    /// The role in which you talk and decide [default: user].
    #[arg(long = "as", value_name = "ROLE", value_parser = NonEmptyStringValueParser::new(), conflicts_with = "all")]
    pub(super) role: Option<String>,
    /// Seed of what is drawn at random in the session.
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Stop after each line: Enter goes to the next one, `c` goes on without stops, `q` leaves it paused, any other text is
    /// said there. Reads standard input, a terminal or not; its end is a `q`.
    #[arg(long, conflicts_with = "all")]
    pub(super) step: bool,
    /// Tell all that routers read for each decision, too; with --until-idle, each line of each session.
    #[arg(long, short, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// With --all: begin each row with its time of day [default: on a terminal of at least 80 columns].
    #[arg(long, requires = "all")]
    pub(crate) times: bool,
    #[command(flatten)]
    pub(crate) drive: Drive,
}

pub(crate) async fn run(
    args: RunArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if args.all && global.server().is_some() {
        return Err(on_a_store("--all"));
    }
    if args.all {
        return Box::pin(crate::commands::run_all::run(args, global, printer)).await;
    }
    if args.resume.is_none() && args.input.is_none() && !printer.can_ask() {
        return Err(
            CommandError::usage("there is no terminal to talk to, and no --input")
                .hint("steersman run --input \"...\", or --input - to read it from standard input"),
        );
    }
    let input = match args.input.as_deref() {
        Some("-") if !args.step => Some(standard_input()?.trim_end().to_owned()),
        other => other.map(str::to_owned),
    };
    if input.as_ref().is_some_and(|input| input.trim().is_empty()) {
        return Err(CommandError::usage("there is nothing to say")
            .hint("steersman run --input \"...\", or --input - to read it from standard input"));
    }
    if args.step && args.input.as_deref() == Some("-") {
        return Err(
            CommandError::usage("--step reads standard input, and so does --input -")
                .hint("give the text itself: --input \"...\""),
        );
    }
    if let Some(remote) = Remote::of(global)? {
        return Box::pin(run_there::run(&remote, &args, input, printer)).await;
    }
    if let Some(name) = &args.resume {
        return Box::pin(resume(name, input, &args, global, printer)).await;
    }
    let definition = args.definition.clone().unwrap_or_else(|| ".".into());
    let network = check::required(&definition, printer)?;
    if let Some(entry) = &args.entry
        && !network.checked().entry.iter().any(|e| **e == **entry)
    {
        return Err(
            CommandError::usage(format!("`{entry}` is no entry of `{}`", network.name()))
                .hint(format!("there is: {}", network.checked().entry.join(", "))),
        );
    }
    let history = history(args.history.as_deref(), printer)?;
    let place = Place::open(global, &args.drive).await?;
    let options = StartOptions {
        history,
        agent: args.entry.as_deref().map(Into::into),
        say: input.clone(),
        files: attach::to_message(&args.file)?,
        seed: args.seed,
        by: args.role.as_deref().map(Into::into),
        config: config(&args.set, &network)?,
        models: models(&args.model, &network),
        ..StartOptions::default()
    };
    let leaving = Leaving::listen()?;
    let start = async {
        if args.step {
            place.steersman.start_stepping(&network, options).await
        } else {
            place.steersman.start_with(&network, options).await
        }
    };
    let servers: Vec<&str> = network.checked().mcp.keys().map(|name| &**name).collect();
    let session = play::meanwhile(printer, &starts(&servers), start).await?;
    let mut play = Play::new(
        &place,
        printer,
        session.driven(),
        leaving,
        Line::NONE,
        None,
        args.verbose,
    )
    .await?;
    play.keys = args.step.then(|| Keys::new(printer));
    converse(
        &place,
        printer,
        (&mut play, &session),
        &by(&args),
        input.is_some() || !printer.can_ask(),
    )
    .await?
    .finish(play)
    .await
}

/// Returns the person at the terminal.
fn by(args: &RunArgs) -> By {
    args.role.as_deref().map_or_else(By::user, By::role)
}

/// Returns the values of `--set`, each of the type that the definition declares.
fn config(
    given: &[String],
    network: &steersman::Network,
) -> Result<BTreeMap<Name, Json>, CommandError> {
    let declared = &network.checked().config;
    let mut values = BTreeMap::new();
    for given in given {
        let Some((name, text)) = given.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(CommandError::usage(format!("`--set {given}` has no value"))
                .hint("--set NAME=VALUE"));
        };
        let Some(config) = declared.get(name) else {
            let known: Vec<&str> = declared.keys().map(|name| &**name).collect();
            let known = match &known[..] {
                [] => "the definition has no `config`".to_owned(),
                known => format!("there is: {}", known.join(", ")),
            };
            return Err(CommandError::usage(format!(
                "`{name}` is no value of `config` in `{}`",
                network.name()
            ))
            .hint(known));
        };
        let value = match config.ty.kind {
            TypeKind::String { .. } => Json::from(text),
            _ => words::value(text),
        };
        if values.insert(name.into(), value).is_some() {
            return Err(CommandError::usage(format!(
                "`--set {name}` is given twice"
            )));
        }
    }
    Ok(values)
}

/// Reads the conversation that precedes the session.
fn history(path: Option<&Path>, printer: &Printer) -> Result<ChatHistory, CommandError> {
    let Some(path) = path else {
        return Ok(ChatHistory::default());
    };
    let shown = path.display();
    let bytes = files::named(path, HISTORY_FILE).map_err(|error| {
        CommandError::usage(match error.kind() {
            ErrorKind::FileTooLarge => format!("`{shown}` has more than {HISTORY_FILE} bytes"),
            _ => format!("`{shown}` cannot be read: {error}"),
        })
    })?;
    let text = String::from_utf8(bytes).map_err(|_| {
        CommandError::usage(format!("`{shown}` is not UTF-8 text"))
            .hint("convert it, for example with iconv")
    })?;
    let history = ChatHistory::read(&text).map_err(|unfit| {
        CommandError::usage(format!("`{shown}`, {unfit}")).hint(unfit.fix.clone())
    })?;
    let left_out = history.left_out();
    if left_out > 0 {
        let them = words::count(left_out as u64, "system message");
        printer.talk(yellow(&format!(
            "{them} of `{shown}` left out: the definition has the system prompt"
        )));
    }
    Ok(history)
}

/// Returns the names of models that `--model` gives, by the name in the definition.
fn models(given: &[String], network: &steersman::Network) -> BTreeMap<Name, String> {
    let declared = &network.checked().models;
    let of = |given: &String| match given.split_once('=') {
        // A name at a provider may contain `=`.
        Some((name, model)) if declared.contains_key(name) => (name.into(), model.to_owned()),
        _ => ("default".into(), given.clone()),
    };
    given.iter().map(of).collect()
}

async fn resume(
    name: &str,
    input: Option<String>,
    args: &RunArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let contents = attach::to_message(&args.file)?;
    let place = Place::required(global, &args.drive).await?;
    let address = Address::parse(name)?;
    let info = place.session(&address.session).await?;
    let short = place.short(&info.id).await?;
    let seen = place.engine().inspect(&info.id).await?;
    match &args.definition {
        given if args.rebind => {
            changed::rebind(&place, &seen, &short, given.as_deref(), printer).await?;
        }
        Some(given) => changed::is_bound_to(&place, &seen, &short, given, printer)?,
        None => changed::tell(&place, &seen, "--rebind", printer),
    }
    let is_paused = seen.ledger.paused;
    let bound = seen.network.clone();
    let servers = bound.iter().flat_map(|network| network.mcp.keys());
    let servers: Vec<&str> = servers.map(|name| &**name).collect();
    drop(seen);
    let began = Instant::now();
    let leaving = Leaving::listen()?;
    let take = async {
        if args.step {
            place.steersman.session_stepping(&info.id).await
        } else {
            place.steersman.session(&info.id).await
        }
    };
    let session = play::meanwhile(printer, &starts(&servers), take).await?;
    let mut play = Play::new(
        &place,
        printer,
        session.driven(),
        leaving,
        info.head,
        Some(began),
        args.verbose,
    )
    .await?;
    if args.step {
        play.keys = Some(Keys::new(printer));
        // A person who steps through the lines sees everything that begins, so the pause can end.
        if is_paused {
            session.resume().await?;
        }
    }
    if let Some(input) = &input {
        let said = Act::say(input, Some(by(args)), None);
        session.act(said.with_files(&contents)).await?;
    }
    converse(
        &place,
        printer,
        (&mut play, &session),
        &by(args),
        input.is_some() || !printer.can_ask(),
    )
    .await?
    .finish(play)
    .await
}

/// Names what a session waits for before its first line.
fn starts(servers: &[&str]) -> String {
    match servers {
        [] => "Starts".to_owned(),
        servers => format!("Starts the servers {}", servers.join(", ")),
    }
}

/// Reads standard input, up to the size limit of a message.
pub(crate) fn standard_input() -> Result<String, CommandError> {
    let mut bytes = Vec::new();
    let most = MAX_VALUE as u64 + 1;
    std::io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_VALUE {
        return Err(CommandError::usage(format!(
            "standard input holds more than the {MAX_VALUE} bytes of a message"
        ))
        .hint("put it into a file, and let a tool read the parts that matter"));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        CommandError::usage("standard input is not UTF-8 text")
            .hint("convert it, for example with iconv")
    })?;
    Ok(text)
}

/// The end of a conversation.
enum Over {
    /// The session came to rest or was interrupted. The result has not been reported yet.
    ToReport(Ended),
    /// The person at the terminal left.
    Left,
}

impl Over {
    async fn finish(self, play: Play<'_>) -> Result<Exit, CommandError> {
        match self {
            Self::ToReport(ended) => play.report(ended).await,
            Self::Left => play.leave().await,
        }
    }
}

/// Drives the session until it rests; with a person at the terminal, repeatedly.
async fn converse(
    place: &Place,
    printer: &Printer,
    (play, session): (&mut Play<'_>, &Session),
    by: &By,
    once: bool,
) -> Result<Over, CommandError> {
    let mut prompt = Prompt::default();
    let you = by
        .shown()
        .map_or_else(|| "you".to_owned(), ToString::to_string);
    let question = format!("{you:<10}> ");
    play.typed_here = (!once).then_some(you);
    loop {
        let settled = match play.settle().await? {
            Ended::Settled(settled) => settled,
            Ended::Interrupted => return Ok(Over::ToReport(Ended::Interrupted)),
        };
        if once {
            return Ok(Over::ToReport(Ended::Settled(settled)));
        }
        match &*settled {
            Settled::Answered { .. } | Settled::Empty | Settled::Limit { .. } => {
                let typed = tokio::select! {
                    biased;
                    () = play.told_to_leave() => {
                        prompt.give_back(printer);
                        return Ok(Over::Left);
                    }
                    typed = prompt.line(&question) => typed?,
                };
                match typed {
                    Typed::Line(text) if text.trim().is_empty() => {}
                    Typed::Line(text) => {
                        session.act(Act::say(&text, Some(by.clone()), None)).await?;
                    }
                    Typed::Left => return Ok(Over::Left),
                }
            }
            Settled::Asks(all) | Settled::Doubt(all) => {
                let mine: Vec<&Pending> =
                    all.iter().filter(|p| asked::is_for(p, &by.role)).collect();
                if mine.is_empty() {
                    return Ok(Over::ToReport(Ended::Settled(settled.clone())));
                }
                let mut acted = false;
                let elsewhere = asked::elsewhere(place, session.id(), all).await?;
                for pending in mine {
                    for row in asked::frame(pending, &elsewhere, place.now(), words::talk_width()) {
                        printer.talk(row);
                    }
                    acted |= tokio::select! {
                        biased;
                        () = play.told_to_leave() => {
                            prompt.give_back(printer);
                            return Ok(Over::Left);
                        }
                        acted = ask(&mut prompt, printer, session, (pending, by)) => acted?,
                    };
                }
                if !acted {
                    return Ok(Over::ToReport(Ended::Settled(settled.clone())));
                }
            }
            Settled::Waits(_) | Settled::Failed { .. } | Settled::Cancelled | Settled::Paused => {
                return Ok(Over::ToReport(Ended::Settled(settled.clone())));
            }
        }
    }
}

/// Asks the person at the terminal. Returns false for "later".
async fn ask(
    prompt: &mut Prompt,
    printer: &Printer,
    session: &Session,
    (pending, by): (&Pending, &By),
) -> Result<bool, CommandError> {
    let (of, by) = (pending.id(), by.clone());
    let question = match pending.kind {
        PendingKind::Approval if !pending.edit.is_empty() => {
            "  [a]pprove  [r]eject  [e]dit  [l]ater > "
        }
        PendingKind::Approval | PendingKind::Repeat | PendingKind::Budget => {
            "  [a]pprove  [r]eject  [l]ater > "
        }
        PendingKind::Doubt => "  it [d]id happen  it did [n]ot  nobody [k]nows  [l]ater > ",
        PendingKind::Question if pending.hold.is_some() => {
            "  answer, approve or reject (empty: later) > "
        }
        PendingKind::Question => "  answer (empty: later) > ",
        PendingKind::Input => "  hidden (empty: later) > ",
        PendingKind::Event
        | PendingKind::Timer
        | PendingKind::Again
        | PendingKind::Hold
        | PendingKind::Outage => {
            return Ok(false);
        }
    };
    if pending.kind == PendingKind::Input {
        return match prompt.hidden(question).await? {
            Typed::Line(text) if !text.is_empty() => {
                session.answer(of, &text, by).await?;
                Ok(true)
            }
            Typed::Line(_) | Typed::Left => Ok(false),
        };
    }
    loop {
        let Typed::Line(typed) = prompt.line(question).await? else {
            return Ok(false);
        };
        let typed = typed.trim();
        let by = by.clone();
        let acted = match (pending.kind, typed) {
            (PendingKind::Question, "") => return Ok(false),
            (PendingKind::Question, "approve") if pending.hold.is_some() => {
                session.approve(of, by).await
            }
            (PendingKind::Question, "reject") if pending.hold.is_some() => {
                session.act(Act::reject(of, None, by)).await
            }
            (PendingKind::Question, text) => session.answer(of, text, by).await,
            (_, "l" | "later" | "") => return Ok(false),
            (PendingKind::Doubt, "d") => {
                let Some(result) = gave(prompt, pending).await? else {
                    return Ok(false);
                };
                session.resolve(of, Resolution::Done { result }, by).await
            }
            (PendingKind::Doubt, "n") => session.resolve(of, Resolution::NotPerformed, by).await,
            (PendingKind::Doubt, "k") => session.resolve(of, Resolution::Fail, by).await,
            (
                PendingKind::Approval | PendingKind::Repeat | PendingKind::Budget,
                "a" | "approve",
            ) => session.approve(of, by).await,
            (PendingKind::Approval | PendingKind::Repeat | PendingKind::Budget, "r" | "reject") => {
                let Typed::Line(reason) = prompt.line("  why > ").await? else {
                    return Ok(false);
                };
                let reason = Some(reason.trim()).filter(|r| !r.is_empty());
                session.act(Act::reject(of, reason, by)).await
            }
            (PendingKind::Approval, "e" | "edit") if !pending.edit.is_empty() => {
                let Some(args) = edited(prompt, pending).await? else {
                    return Ok(false);
                };
                session.approve_edited(of, &args, by).await
            }
            _ => {
                printer.talk(yellow("  one of the letters, please"));
                continue;
            }
        };
        match acted {
            Err(Error::Refused(why)) => printer.talk(yellow(&format!("  refused: {why}"))),
            acted => return Ok(acted.map(|()| true)?),
        }
    }
}

/// Asks for the result of a call that happened, if the definition needs it. `None` means "later".
async fn gave(prompt: &mut Prompt, pending: &Pending) -> Result<Option<String>, CommandError> {
    if pending.needs.is_empty() {
        return Ok(Some("null".to_owned()));
    }
    let needs = pending.needs.join(", ");
    let question = format!("  its result with {needs}, as JSON (empty: later) > ");
    let Typed::Line(typed) = prompt.line(&question).await? else {
        return Ok(None);
    };
    let typed = typed.trim();
    Ok((!typed.is_empty()).then(|| words::value(typed).to_string()))
}

/// Asks for new arguments one by one; an empty line keeps the old value.
async fn edited(prompt: &mut Prompt, pending: &Pending) -> Result<Option<Json>, CommandError> {
    let old: Json = pending
        .args
        .as_deref()
        .and_then(|a| serde_json::from_str(a).ok())
        .unwrap_or_default();
    let mut new = serde_json::Map::new();
    for name in &pending.edit {
        let Typed::Line(typed) = prompt
            .line(&format!("  {name} (now {}) > ", old[&**name]))
            .await?
        else {
            return Ok(None);
        };
        let typed = typed.trim();
        if !typed.is_empty() {
            new.insert(name.to_string(), words::value(typed));
        }
    }
    Ok(Some(Json::Object(new)))
}

impl Play<'_> {
    /// The person at the terminal leaves; reports the status of the session at rest.
    async fn leave(mut self) -> Result<Exit, CommandError> {
        let short = self.short.clone();
        let settled = self.session.settled().await?;
        let printer = self.printer().clone();
        if !self.let_go().await? {
            return self.report(Ended::Interrupted).await;
        }
        printer.next(
            format!("steersman run --resume {short}"),
            "goes on where you left",
        );
        Ok(match play::exit(&settled) {
            Exit::Waits => Exit::Waits,
            Exit::Doubt => Exit::Doubt,
            _ => Exit::Answered,
        })
    }
}
