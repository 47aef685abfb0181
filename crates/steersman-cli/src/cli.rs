//! The command tree: the arguments of all commands, without their behaviour.

mod drive;
mod look;
mod search;
mod time;

use crate::place::Driven;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use drive::{Drive, Durability};
pub(crate) use look::{Artifacts, Context, Format, Graph, Memory, MemoryAct, Why};
pub(crate) use search::Search;
use std::path::PathBuf;
use steersman::runtime::store::bounds;
pub(crate) use time::{Diff, Export, Rerun, Test};

/// The groups of the help, in the order in which people need the commands.
pub(crate) const GROUPS: &[(&str, &[(&str, &str)])] = &[
    (
        "Begin",
        &[
            (
                "demo",
                "Watch a session die in the middle of a payment and go on. No key, no network",
            ),
            ("new", "Write a small definition to start from"),
            ("check", "Check a definition and say what it can do"),
            ("run", "Talk to a definition, or go on with a session"),
        ],
    ),
    (
        "Look",
        &[
            ("sessions", "List sessions"),
            (
                "show",
                "Show a session: its branches, state, effects and agents",
            ),
            ("log", "Show a session line by line; -f follows it"),
            ("context", "Show what the model saw at a line"),
            (
                "effects",
                "Show what a session did to the world, or may have done",
            ),
            (
                "graph",
                "Draw a definition, or where a session stands in it",
            ),
            ("why", "Say why an agent acted, from what was recorded"),
            ("artifacts", "List, show, save and rate what a session made"),
            (
                "memory",
                "Show what agents remember over sessions; rate it, forget it",
            ),
            ("diff", "Say how two sessions or branches differ"),
            (
                "pending",
                "Show what waits for a person, an event or time, in all sessions",
            ),
        ],
    ),
    (
        "Act",
        &[
            (
                "send",
                "Send a message to a session, or an event to a network",
            ),
            ("answer", "Answer a question"),
            ("approve", "Let a held call run, with exactly its arguments"),
            ("reject", "Keep a held call from running"),
            ("resolve", "Say what became of an effect that is in doubt"),
            (
                "cancel",
                "Cancel a call, an agent, or all of a session, or of all that match",
            ),
            (
                "pause",
                "Let nothing new begin in a session, or in all that match",
            ),
            ("resume", "End a pause, and go on"),
            (
                "hold",
                "Keep effects of a tool from beginning, in a session or in all that match",
            ),
            ("release", "Let them begin again"),
            ("retry", "Try again what failed"),
        ],
    ),
    (
        "Time",
        &[
            (
                "fork",
                "Try something else from a line on, beside the session; dry unless --live",
            ),
            ("join", "Let a session hear what its branches came to"),
            ("adopt", "Go on with what a branch came to"),
            (
                "rewind",
                "Go back to a line; what came after stays readable",
            ),
            (
                "rerun",
                "Run sessions again with something changed, dry, and say what differs",
            ),
            (
                "search",
                "Try branches from a line on, judge them, and show the tree; dry unless --live",
            ),
        ],
    ),
    (
        "Ship",
        &[
            ("test", "Run the tests of a definition, offline"),
            ("import", "Make a definition of what another program reads"),
            (
                "export",
                "Print sessions as documents or as trajectories, or write their artifacts",
            ),
            (
                "migrate",
                "Bind values of `config` anew, in sessions that match",
            ),
        ],
    ),
    (
        "Keep",
        &[
            (
                "gc",
                "Delete large texts and definitions that nothing names any more",
            ),
            ("fsck", "Verify every line of every session"),
            ("backup", "Copy the store while it is in use"),
            ("erase", "Erase what was said; all else still verifies"),
            (
                "doctor",
                "Say what is there: keys, models, the store, versions",
            ),
            (
                "schema",
                "Print the JSON Schema of definitions, for editors",
            ),
            ("explain", "Explain the code of a diagnostic"),
            ("completions", "Print completions for a shell"),
        ],
    ),
];

/// Runs multi-agent LLM systems as durable state machines.
#[derive(Debug, Parser)]
#[command(
    name = "steersman",
    version,
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Global {
    /// Where sessions are kept [default: .steersman/sessions.db here or above, else your data folder].
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "STEERSMAN_STORE",
        hide_env_values = true
    )]
    pub(crate) store: Option<PathBuf>,
    /// Print data as JSON, one document or one a line.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say only what went wrong.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// When to use colours. They carry nothing that the text lacks.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    /// What the command drives sessions with.
    #[arg(skip)]
    pub(crate) driven: Driven,
}

/// When to use colours.
#[derive(Copy, Clone, Debug, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch a session die in the middle of a payment and go on. No key, no network.
    Demo,
    /// Write a small definition to start from: one tool, a guard, an approval and a test.
    New(New),
    /// Check a definition and say what it can do. Exit code 3 if it has errors.
    Check(Check),
    /// Talk to a definition, or go on with a session.
    Run(Run),
    /// List sessions, newest first.
    Sessions(Sessions),
    /// Show a session: its branches, state, effects and agents.
    Show(Look),
    /// Show a session line by line.
    Log(Log),
    /// Show what the model saw at a line.
    Context(Context),
    /// Show what a session did to the world, or may have done.
    Effects(Look),
    /// Draw a definition, or where a session stands in it.
    Graph(Graph),
    /// Say why an agent acted, from what was recorded. No model is asked, and nothing is evaluated again.
    Why(Why),
    /// List, show, save and rate what a session made.
    Artifacts(Artifacts),
    /// Show what agents remember over sessions; rate it, forget it.
    Memory(Memory),
    /// Show what waits for a person, an event or time, in all sessions.
    Pending(Pending),
    /// Send a message to a session, or an event to a network.
    Send(Send),
    /// Answer a question.
    Answer(Answer),
    /// Let a held call run, once, with exactly its arguments.
    Approve(Approve),
    /// Keep a held call from running. The reason goes to the model.
    Reject(Reject),
    /// Say what became of an effect that is in doubt.
    Resolve(Resolve),
    /// Cancel a call, an agent, a branch (SESSION:BRANCH), or all that is open in a session, or in all that match.
    Cancel(Cancel),
    /// Let nothing new begin, until `resume`. What runs ends; what comes in is taken.
    Pause(Order),
    /// End a pause, and go on.
    Resume(Order),
    /// Keep effects from beginning, until `release`: of one tool, else of all that may change the world.
    Hold(Hold),
    /// Let effects begin again that `hold` keeps.
    Release(Hold),
    /// Try again what failed: an attempt that is waited for, or the model call that ended the session.
    Retry(Retry),
    /// Try something else from a line on, beside the session. Dry unless --live: effects are simulated.
    Fork(Fork),
    /// Run a session again from its recording, with another definition, model or message; dry unless --live. Exit code 8
    /// if the outcome differs.
    Rerun(Rerun),
    /// Say how two sessions or branches differ: what they came to first. Exit code 8 if the outcome differs.
    Diff(Diff),
    /// Let a session hear what its branches came to.
    Join(Join),
    /// Go on with what a branch came to. Refused where something would be lost.
    Adopt(Adopt),
    /// Go back to a line. What came after is left behind, and stays readable.
    Rewind(Rewind),
    /// Try branches from a line on, beside the session, and judge them. Dry unless --live; Ctrl-C leaves it resumable.
    Search(Box<Search>),
    /// Make a definition of what another program reads.
    Import(Import),
    /// Bind values of `config` anew, where nothing of a session is open.
    Migrate(Migrate),
    /// Delete large texts and definitions that nothing names any more. Tells what it would do unless --yes.
    Gc(Gc),
    /// Verify every line of every session, and say what is damaged. Exit code 4 if something is.
    Fsck(Fsck),
    /// Copy the store while it is in use. The copy holds no key.
    Backup(Backup),
    /// Erase what was said in a session, at a line or by an effect. All else still verifies.
    Erase(Erase),
    /// Say what is there: keys, models, the store, versions. Exit code 1 if something is missing.
    Doctor(Doctor),
    /// Print completions for a shell.
    Completions(Completions),
    /// Run the tests of a definition, offline. Exit code 8 if one fails.
    Test(Test),
    /// Print sessions as documents, or as trajectories to train on, or write their artifacts.
    Export(Export),
    /// Print the JSON Schema of definitions, for editors.
    Schema,
    /// Explain the code of a diagnostic.
    Explain(Explain),
    /// Serve what an example calls, on loopback.
    #[command(hide = true)]
    ExampleService(ExampleService),
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// Name of the folder and of the network: small letters, digits, hyphens.
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// A definition, or a folder with a steersman.yaml.
    #[arg(default_value = ".")]
    pub(crate) definition: PathBuf,
    /// Ask its MCP servers what they offer, and check the names of their tools.
    #[arg(long)]
    pub(crate) servers: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// A definition, or a folder with a steersman.yaml [default: here].
    pub(crate) definition: Option<PathBuf>,
    /// Say this, drive the session until it rests or waits, and end. `-` reads it from standard input.
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) input: Option<String>,
    /// Attach a file to what is said with --input, under a name or under its own.
    #[arg(long, value_name = "[NAME=]PATH", requires = "input")]
    pub(crate) file: Vec<String>,
    /// Go on with a session after a stop or a crash. With a definition beside it: only if it is bound to that one.
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["entry", "seed"])]
    pub(crate) resume: Option<String>,
    /// Go on under the definition as it is now, if that knows all that the session has and nothing of it is open.
    #[arg(long, requires = "resume")]
    pub(crate) rebind: bool,
    /// Drive every session of the store, until Ctrl-C: messages, events, timers, and what a dead process left.
    #[arg(long, conflicts_with_all = ["definition", "resume", "rebind", "input", "entry", "seed"])]
    pub(crate) all: bool,
    /// The agent to talk to, if the definition has several entries.
    #[arg(long, value_name = "AGENT")]
    pub(crate) entry: Option<String>,
    /// Seed of what is drawn at random in the session.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Stop after each line: Enter goes to the next one, `c` goes on without stops, `q` leaves it paused, any other text is
    /// said there. Reads standard input, a terminal or not; its end is a `q`.
    #[arg(long, conflicts_with = "all")]
    pub(crate) step: bool,
    /// Tell all that routers read for each decision, too.
    #[arg(long, short, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) drive: Drive,
}

#[derive(Debug, Args)]
pub(crate) struct Sessions {
    /// Only those that match: `status = waits and updated > -7d and vendor = Acme`.
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: usize,
    /// All of them.
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Look {
    /// SESSION[:BRANCH][@LINE]: a unique prefix, `last`, or a label `vendor=Acme`; a line `12`, `-2`, or a tool's name.
    #[arg(default_value = "last")]
    pub(crate) address: String,
}

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// SESSION[:BRANCH][@LINE]; with a line it begins there.
    #[arg(default_value = "last")]
    pub(crate) address: String,
    /// Go on as lines come in, until Ctrl-C.
    #[arg(long, short)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Pending {
    /// Only those that match, as in `sessions`; also `for = ROLE` and `kind = approval`.
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// All of them, not the first twenty.
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Send {
    /// The session, or one of its branches: SESSION:BRANCH; with --event a session, or a definition: a folder or a file.
    pub(crate) to: String,
    /// The message; `-` reads it from standard input. With --event the payload, a JSON object.
    pub(crate) text: Option<String>,
    /// Send an event of this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) event: Option<String>,
    /// Cancel what is open and say this instead.
    #[arg(long, conflicts_with = "event")]
    pub(crate) interrupt: bool,
    /// Attach a file under a name, or under its own; with --event it is the content of a field that is an artifact.
    #[arg(long, value_name = "[NAME=]PATH")]
    pub(crate) file: Vec<String>,
    /// An id; the same id is accepted once [default: a random one, of an event the one that its definition says].
    #[arg(long, value_parser = message_id)]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) act: Act,
}

/// How an act on a session is carried out.
#[derive(Clone, Debug, Args)]
pub(crate) struct Act {
    /// The role in which you act.
    #[arg(long = "as", value_name = "ROLE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) role: Option<String>,
    #[command(flatten)]
    pub(crate) own: Own,
}

/// Whether a session that nobody owns is driven.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Own {
    /// Only put it into the inbox; whoever owns the session next takes it.
    #[arg(long)]
    pub(crate) no_run: bool,
    #[command(flatten)]
    pub(crate) drive: Drive,
}

/// Which sessions: one, or all that match.
#[derive(Clone, Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub(crate) struct Which {
    /// The session.
    #[arg(group = "which")]
    pub(crate) session: Option<String>,
    /// All that match: `status = waits and vendor = Acme and age > -7d`. Says first how many they are.
    #[arg(long = "where", value_name = "FILTER", group = "which")]
    pub(crate) filter: Option<String>,
    /// Do not ask.
    #[arg(long, conflicts_with = "session")]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Order {
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) own: Own,
}

#[derive(Debug, Args)]
pub(crate) struct Hold {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Only of this tool, whatever its class [default: all tools that are `idempotent` or `unsafe`].
    #[arg(long, value_name = "TOOL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) tool: Option<String>,
    #[command(flatten)]
    pub(crate) act: Act,
}

#[derive(Debug, Args)]
pub(crate) struct Retry {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Only this effect, by its id: `--effect 21.1`.
    #[arg(long, value_name = "ID", conflicts_with = "filter")]
    pub(crate) effect: Option<String>,
    #[command(flatten)]
    pub(crate) own: Own,
}

#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// SESSION[:BRANCH][@LINE]: where the branch begins [default: the last line].
    pub(crate) address: String,
    /// Say this there first.
    #[arg(long, value_name = "TEXT")]
    pub(crate) say: Option<String>,
    /// A name for the branch.
    #[arg(long, value_name = "NAME", value_parser = branch_label)]
    pub(crate) label: Option<String>,
    /// Let effects touch the world there.
    #[arg(long)]
    pub(crate) live: bool,
    #[command(flatten)]
    pub(crate) own: Own,
}

#[derive(Debug, Args)]
pub(crate) struct Rewind {
    /// SESSION[:BRANCH]@LINE: where to go back to.
    pub(crate) address: String,
    /// Say this there first.
    #[arg(long, value_name = "TEXT")]
    pub(crate) say: Option<String>,
    /// A name for the branch that begins there.
    #[arg(long, value_name = "NAME", value_parser = branch_label)]
    pub(crate) label: Option<String>,
    #[command(flatten)]
    pub(crate) own: Own,
}

#[derive(Debug, Args)]
pub(crate) struct Join {
    /// The session.
    pub(crate) session: String,
    /// The branches, by label or id.
    #[arg(required = true, num_args = 1..)]
    pub(crate) branches: Vec<String>,
    /// When it is over: `all`, `any`, how many must end, or an expression over `done`, `failed`, `open` and `answers`.
    #[arg(long, value_name = "WHEN", default_value = "all")]
    pub(crate) on: steersman::JoinOn,
    /// A tool that runs on what they came to.
    #[arg(long, value_name = "TOOL")]
    pub(crate) then: Option<String>,
    /// Its arguments: a JSON object whose texts are templates over `result` [default: what it reads of it by name].
    #[arg(long, value_name = "JSON", requires = "then")]
    pub(crate) args: Option<String>,
    #[command(flatten)]
    pub(crate) own: Own,
}

#[derive(Debug, Args)]
pub(crate) struct Adopt {
    /// SESSION:BRANCH[@LINE]: the branch, and up to which of its lines [default: all that was not simulated].
    pub(crate) address: String,
    #[command(flatten)]
    pub(crate) own: Own,
}

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    pub(crate) which: Which,
    /// A value of `config`, as JSON or text. May be given more than once.
    #[arg(long, required = true, value_name = "KEY=VALUE")]
    pub(crate) config: Vec<String>,
    /// The role in which you act.
    #[arg(long = "as", value_name = "ROLE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) role: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// Do it.
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Fsck {
    /// Only this session.
    pub(crate) session: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to be made. One that exists is left as it is.
    pub(crate) to: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Erase {
    /// SESSION[@LINE]: all that was said in it, or at one line.
    pub(crate) address: String,
    /// Only arguments and result of this effect: `--effect 21.1`.
    #[arg(long, value_name = "ID")]
    pub(crate) effect: Option<String>,
    /// Also forget what it saved to memory, which is kept otherwise.
    #[arg(long, conflicts_with = "effect")]
    pub(crate) memory: bool,
    /// Do it. It cannot be undone.
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// A definition, or a folder with a steersman.yaml: also what its models mean here.
    pub(crate) definition: Option<PathBuf>,
    /// Drive a store again that opens for reading only: a copy, one that was moved or restored, one that lost lines.
    #[arg(long)]
    pub(crate) accept_store: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// The session.
    pub(crate) session: String,
    /// The question, if several are open, and the answer.
    #[arg(required = true, num_args = 1..=2, value_name = "[QUESTION] TEXT")]
    pub(crate) rest: Vec<String>,
    #[command(flatten)]
    pub(crate) act: Act,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The session.
    pub(crate) session: String,
    /// The held effect, if several are open: by its id, or by its tool. `12.1@13` is exactly what `pending` listed.
    pub(crate) effect: Option<String>,
    /// Do again what was done before, or may have been: what would do that begins by this word alone.
    #[arg(long, conflicts_with = "edit")]
    pub(crate) repeat: bool,
    /// Run it with another argument: `--edit cents=1200`. Only those that the definition lets be changed.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) edit: Vec<String>,
    #[command(flatten)]
    pub(crate) act: Act,
}

#[derive(Debug, Args)]
pub(crate) struct Reject {
    /// The session.
    pub(crate) session: String,
    /// The held effect, if several are open.
    pub(crate) effect: Option<String>,
    /// Why; the model sees it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) say: Option<String>,
    #[command(flatten)]
    pub(crate) act: Act,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct Resolve {
    /// The session.
    pub(crate) session: String,
    /// The effect in doubt, if several are.
    pub(crate) effect: Option<String>,
    /// It happened; the tool's result as JSON or text, if it is known.
    #[arg(long, group = "what", value_name = "RESULT", num_args = 0..=1, default_missing_value = "null", require_equals = true)]
    pub(crate) done: Option<String>,
    /// It did not happen; it may run again.
    #[arg(long, group = "what")]
    pub(crate) not_performed: bool,
    /// Nobody will know; the model is told that it may have happened.
    #[arg(long, group = "what")]
    pub(crate) fail: bool,
    #[command(flatten)]
    pub(crate) act: Act,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    #[command(flatten)]
    pub(crate) which: Which,
    /// A call or an agent by its id (`21.1`) or name [default: all that is open].
    #[arg(conflicts_with = "filter")]
    pub(crate) what: Option<String>,
    #[command(flatten)]
    pub(crate) act: Act,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    #[command(subcommand)]
    pub(crate) from: ImportFrom,
}

/// What is imported.
#[derive(Debug, Subcommand)]
pub(crate) enum ImportFrom {
    /// Make a definition of a configuration of aiwaves agents, version 1. What is not carried over is told on stderr.
    Aiwaves {
        /// Its JSON file.
        file: PathBuf,
        /// Name of the network [default: the file's; of a `config.json` its folder's].
        #[arg(long)]
        name: Option<String>,
        /// Write the definition into this file instead of stdout. Overwrites nothing.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The code: `E0302`.
    pub(crate) code: String,
}

#[derive(Debug, Args)]
pub(crate) struct ExampleService {
    /// Which example.
    pub(crate) name: String,
    /// Port on loopback; 0 takes a free one. The address is printed once it listens.
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// The first refund is booked but never answered: what a slow bank looks like from here.
    #[arg(long)]
    pub(crate) stall: bool,
    /// Break the connection on some postings of `invoice`: after booking those that end with 7, and once before booking those
    /// that end with 8.
    #[arg(long)]
    pub(crate) faulty: bool,
    /// Book what comes in in this file, so that it outlives the service.
    #[arg(long, value_name = "FILE")]
    pub(crate) book: Option<PathBuf>,
    /// The folder of notes of `research`, which speaks MCP on standard input and output.
    #[arg(long, value_name = "FOLDER", default_value = "notes")]
    pub(crate) notes: PathBuf,
}

/// Returns the command tree, with the grouped list in its help.
pub(crate) fn command() -> clap::Command {
    use clap::CommandFactory;
    use std::fmt::Write;
    let mut list = String::new();
    for (group, commands) in GROUPS {
        let _ = writeln!(list, "\x1b[1m{group}\x1b[0m");
        for (name, about) in *commands {
            let _ = writeln!(list, "  {name:<11} {about}");
        }
        list.push('\n');
    }
    Cli::command().help_template(format!(
        "{{about}}\n\n\x1b[1mUsage:\x1b[0m {{usage}}\n\n{list}\x1b[1mOptions\x1b[0m\n{{options}}{{after-help}}"
    ))
    .after_help("First: steersman demo. Each command tells more with --help.")
}

/// Parses a branch label. It must be distinct from ids and numbers, and fit between `:` and `@` of an address.
fn branch_label(text: &str) -> Result<String, String> {
    bounds::unfit_label(text).map_or_else(|| Ok(text.to_owned()), Err)
}

/// Parses a message id. It is stored as long as the session and printed, so control characters are refused.
fn message_id(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        return Err("an id has no control characters".into());
    }
    match bounds::id("message id", text) {
        Ok(()) => Ok(text.to_owned()),
        Err(why) => Err(why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_one_group() {
        let tree = command();
        tree.clone().debug_assert();
        let mut shown: Vec<&str> = tree
            .get_subcommands()
            .filter(|c| !c.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, commands)| commands.iter().map(|(name, _)| *name))
            .collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(shown, grouped);
    }
}
