//! `check`: reports errors in a definition, or what it can do.

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::printer::{Printer, bold, dim, typed};
use crate::words::{count, digits, span};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use steersman::Network;
use steersman::runtime::bind::{self, Values};
use steersman::runtime::process_env;
use steersman_definition::summary::Beside;
use steersman_definition::{Diagnostic, Severity, Shown};
use steersman_machine::network;
use steersman_machine::network::budget::{BudgetOf, OnSpent};
use steersman_machine::network::schedule::{Rule, Times};
use steersman_machine::network::{
    AgentDef, Approve, Does, Limit, Limits, Offer, OnLimit, Source, ToolDef, ToolUse,
};
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::commit::Period;
use steersman_machine::stored::ids::{Digest, Name};
use steersman_machine::stored::interaction::Class;
use steersman_machine::view::memory::told_scope;

pub(crate) const LISTED: &str = "Check a definition and say what it can do";

/// Check a definition and say what it can do. Exit code 3 if it has errors.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// A definition, or a folder with a steersman.yaml.
    #[arg(default_value = ".")]
    definition: PathBuf,
    /// Ask its MCP servers what they offer, and check the names of their tools.
    #[arg(long)]
    servers: bool,
}

pub(crate) async fn run(
    args: CheckArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let network = match load(&args.definition) {
        Ok(network) => network,
        Err(Refused::Unreadable(error)) => return Err(error),
        Err(Refused::Wrong(error)) => {
            let diagnostics = error.diagnostics;
            if printer.is_json() {
                let shown = Shown::of(&diagnostics);
                printer.json(&json!({
                    "ok": false,
                    "diagnostics": all(shown.first),
                    "more": shown.more,
                    "tools": error.in_rust,
                }))?;
                return Ok(Exit::Definition);
            }
            complain(printer, &diagnostics, &error.in_rust);
            return Ok(Exit::Definition);
        }
    };
    if args.servers {
        return super::servers::run(&network, global, printer).await;
    }
    let checked = network.checked();
    let warnings = from_here(&args.definition, network.warnings().to_vec());
    let told = Shown::of(&warnings);
    let programs = missing_programs(&network);
    if printer.is_json() {
        printer.json(&json!({
            "ok": true,
            "network": network.name(),
            "digest": digest(checked).map(|digest| digest.to_string()),
            "agents": checked.agents.keys().collect::<Vec<_>>(),
            "people": checked.people.keys().collect::<Vec<_>>(),
            "tools": named(checked).map(|t| (t.name.to_string(), t.effect.word())).collect::<BTreeMap<_, _>>(),
            "schedules": schedules(checked).collect::<BTreeMap<_, _>>(),
            "budgets": budgets(checked).collect::<BTreeMap<_, _>>(),
            "tests": network.tests().collect::<Vec<_>>(),
            "diagnostics": all(told.first),
            "more": told.more,
            "missing": programs,
        }))?;
        return Ok(Exit::Answered);
    }
    if printer.is_quiet() {
        return Ok(Exit::Answered);
    }
    for diagnostic in told.first {
        printer.excerpt(format!("{diagnostic}\n"));
    }
    if let Some(rest) = told.rest() {
        printer.complain(format!("{rest}.\n"));
    }
    for missing in &programs {
        printer.complain(format!("warning: {missing}\n"));
    }
    let all_reached = !warnings.iter().any(Diagnostic::is_of_reach);
    for row in proved(checked, network.tests().count(), all_reached) {
        printer.data(row)?;
    }
    let place = shown(&args.definition);
    let mut next = vec![format!("steersman run{place}")];
    if network.tests().next().is_some() {
        next.insert(0, format!("steersman test{place}"));
    }
    printer.talk(format!(
        "Next:  {}",
        next.iter()
            .map(|c| typed(c))
            .collect::<Vec<_>>()
            .join("   ")
    ));
    Ok(Exit::Answered)
}

/// Returns a definition's path as an argument of the next command; empty for the current folder.
fn shown(path: &Path) -> String {
    if path == Path::new(".") {
        String::new()
    } else {
        format!(" {}", path.display())
    }
}

/// The reason why there is no network.
pub(crate) enum Refused {
    Unreadable(CommandError),
    Wrong(steersman::DefinitionError),
}

/// Reads and checks a definition.
pub(crate) fn load(path: &Path) -> Result<Network, Refused> {
    let file = locate::definition(path).map_err(Refused::Unreadable)?;
    Network::from_path(file)
        .map_err(|e| Refused::Unreadable(e.into()))?
        .build()
        .map_err(|mut error| {
            error.diagnostics = from_here(path, error.diagnostics);
            Refused::Wrong(error)
        })
}

/// Returns the diagnostics of the definition at a path with the paths of its files as a person would type them here.
fn from_here(definition: &Path, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let folder = if definition.is_dir() {
        Some(definition)
    } else {
        definition.parent()
    };
    match folder {
        Some(folder) if !folder.as_os_str().is_empty() && folder != Path::new(".") => {
            let path = |path: &str| folder.join(path).display().to_string();
            found.into_iter().map(|d| d.with_paths(&path)).collect()
        }
        _ => found,
    }
}

/// Loads a definition for a command that needs it without errors. Errors and warnings are reported.
pub(crate) fn required(path: &Path, printer: &Printer) -> Result<Network, CommandError> {
    let network = right(path, printer)?;
    let warnings = from_here(path, network.warnings().to_vec());
    let shown = Shown::of(&warnings);
    for diagnostic in shown.first {
        if diagnostic.severity == Severity::Warning && !printer.is_quiet() {
            printer.excerpt(format!("{diagnostic}\n"));
        }
    }
    if let Some(rest) = shown.rest() {
        printer.talk(format!("{rest}.\n"));
    }
    Ok(network)
}

/// Loads a definition for a command that only reads it. Errors are reported; warnings are left to `check`.
pub(crate) fn right(path: &Path, printer: &Printer) -> Result<Network, CommandError> {
    match load(path) {
        Ok(network) => Ok(network),
        Err(Refused::Unreadable(error)) => Err(error),
        Err(Refused::Wrong(error)) => {
            complain(printer, &error.diagnostics, &error.in_rust);
            Err(CommandError::new(Exit::Definition, ""))
        }
    }
}

/// Returns all that the terminal shows of diagnostics: each part by itself, and as the Language Server Protocol has it.
fn all(diagnostics: &[Diagnostic]) -> Vec<Json> {
    let one = |d: &Diagnostic| {
        let mut json = d.json();
        json["uri"] = json!(d.at.as_ref().map(|at| uri(&at.path)));
        json["lsp"] = d.lsp(&uri);
        json["actions"] = d.lsp_action(&uri).into_iter().collect();
        json
    };
    diagnostics.iter().map(one).collect()
}

/// Returns the address of a file, as editors name it.
fn uri(path: &str) -> String {
    let full = std::path::absolute(path).ok();
    let uri = full.and_then(|full| url::Url::from_file_path(full).ok());
    uri.map_or_else(|| path.to_owned(), Into::into)
}

fn complain(printer: &Printer, diagnostics: &[Diagnostic], tools: &[String]) {
    let shown = Shown::of(diagnostics);
    for diagnostic in shown.first {
        printer.excerpt(format!("{diagnostic}\n"));
    }
    if let Some(rest) = shown.rest() {
        printer.complain(format!("{rest}.\n"));
    }
    for tool in tools {
        printer.complain(format!("error: {tool}\n"));
    }
    let of = |wanted: Severity| diagnostics.iter().filter(|d| d.severity == wanted).count() as u64;
    let errors = of(Severity::Error) + tools.len() as u64;
    let mut sums = vec![count(errors, "error")];
    if of(Severity::Warning) > 0 {
        sums.push(count(of(Severity::Warning), "warning"));
    }
    printer.complain(format!("{}. Nothing was run.", sums.join(", ")));
    if let Some(first) = diagnostics.iter().find(|d| d.severity == Severity::Error) {
        printer.talk(format!(
            "{} tells more.",
            bold(&format!("steersman explain {}", first.code))
        ));
    }
}

/// Returns the digest of the binding that a session gets if it starts here and now. The session lists show the same digest.
/// `None` means that a value is missing, or that MCP servers would have to be asked.
fn digest(network: &network::Network) -> Option<Digest> {
    // The digest covers the servers' offers, which are unknown here.
    if !network.mcp.is_empty() {
        return None;
    }
    let config = bind::config(network, &process_env(), &BTreeMap::new()).ok()?;
    let values = Values {
        config,
        ..Values::default()
    };
    let entry = network.entry.first()?.clone();
    Some(bind::binding(network, entry, &values).digest)
}

/// Describes the scope of the memory, and how long memories are kept.
fn memory(network: &network::Network) -> String {
    let kept = network.memory.keep.map(|keep| {
        let keep = i64::try_from(keep).unwrap_or(i64::MAX);
        format!(", kept {}", span(keep))
    });
    let scope = told_scope(network);
    format!("scope {scope}{}", kept.unwrap_or_default())
}

/// Returns the tools that a definition names, without those that are offered implicitly.
fn named(network: &network::Network) -> impl Iterator<Item = &ToolDef> {
    let offered = network.agents.values().flat_map(AgentDef::offers);
    let offered: Vec<&ToolUse> = offered.collect();
    let implied = move |tool: &ToolDef| {
        let of = |used: &&&ToolUse| matches!(&used.of, Offer::Tool(name) if *name == tool.name);
        let mut uses = offered.iter().filter(of).peekable();
        uses.peek().is_some() && uses.all(|used| used.implied)
    };
    network.tools.values().filter(move |tool| !implied(tool))
}

/// Returns the programs of `command` that are paths from the definition's folder and cannot be started, each with the reason. A program
/// that is looked for in PATH may be there when it is needed.
pub(crate) fn missing_programs(network: &Network) -> Vec<String> {
    let Some(folder) = network.folder() else {
        return Vec::new();
    };
    let tools = network.checked().tools.values().filter_map(|tool| {
        let Source::Command { argv, .. } = &tool.source else {
            return None;
        };
        let program = &*argv.first()?.source;
        let is_path = program.contains('/') && !program.contains('{');
        let why = startable(&folder.join(program)).err().filter(|_| is_path)?;
        Some(format!(
            "`{program}`, the program of the tool `{}`, {why}",
            tool.name
        ))
    });
    tools.collect()
}

/// Checks that a file is there and may be run.
fn startable(path: &Path) -> Result<(), &'static str> {
    let Ok(data) = std::fs::metadata(path) else {
        return Err("is not there");
    };
    if data.is_dir() {
        return Err("is a folder");
    }
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&data.permissions()) & 0o111 == 0 {
        return Err("may not be run: chmod +x makes it a program");
    }
    Ok(())
}

/// Renders one screen with everything that the check proved.
fn proved(network: &network::Network, tests: usize, all_reached: bool) -> Vec<String> {
    let mut parts = vec![
        count(network.agents.len() as u64, "agent"),
        count(named(network).count() as u64, "tool"),
    ];
    if !network.people.is_empty() {
        parts.push(match network.people.len() {
            1 => "1 person".to_owned(),
            n => format!("{n} people"),
        });
    }
    let mut rows = vec![format!(
        "{}{}: {}. {} names known, all typed.",
        bold(&network.name),
        digest(network).map_or_else(String::new, |digest| format!(" {}", digest.short())),
        parts.join(", "),
        if all_reached {
            "All reachable, all"
        } else {
            "Not all reachable; all"
        }
    )];
    let mut row = |name: &str, text: String| rows.push(format!("  {name:<11} {text}"));
    row("entry", network.entry.join(", "));
    for class in [Class::Unsafe, Class::Idempotent, Class::Read, Class::Pure] {
        let of: Vec<String> = named(network)
            .filter(|t| t.effect == class)
            .map(|t| format!("{}{}", t.name, approved(&t.approve)))
            .collect();
        if !of.is_empty() {
            row(class.word(), of.join(", "));
        }
    }
    if network.tools.contains_key(BuiltIn::MemorySave.name()) {
        row("memory", memory(network));
    }
    if let Some(keep) = network.keep {
        let keep = span(i64::try_from(keep).unwrap_or(i64::MAX));
        row("sessions", format!("erased {keep} after their end"));
    }
    let under = format!("\n{:14}", "");
    row("worst case", worst(network).join(&under));
    for (name, config) in &network.config {
        let value = match (&config.env, &config.default) {
            (Some(env), _) if std::env::var_os(env).is_some() => format!("from {env}"),
            (Some(env), Some(default)) => format!("{default} (default; {env} is not set)"),
            (Some(env), None) => format!("missing: set {env}"),
            (None, Some(default)) => default.to_string(),
            (None, None) => "missing".to_owned(),
        };
        let how = if config.live {
            "read live, outside the digest"
        } else {
            "bound at the start"
        };
        row("config", format!("{name} = {value}   {}", dim(how)));
    }
    for (name, secret) in &network.secrets {
        let place = match &secret.source {
            network::SecretSource::Env(variable) => {
                let set = std::env::var_os(variable).is_some();
                format!("{variable} is {}set", if set { "" } else { "not " })
            }
            network::SecretSource::File(file) => file.clone(),
        };
        row("secret", format!("{name}: {place}"));
    }
    for (name, server) in &network.mcp {
        let at = match &server.at {
            network::McpAt::Http { oauth: Some(_), .. } => "over HTTP, with a sign-in",
            network::McpAt::Http { .. } => "over HTTP",
            network::McpAt::Command { .. } => "a process",
        };
        let asked = "names of its tools are checked by `check --servers` and when a session starts";
        row("server", format!("{name}: {at}   {}", dim(asked)));
    }
    for (name, times) in schedules(network) {
        let how = "once `steersman schedule` has stored it";
        row("schedule", format!("{name}: {times}   {}", dim(how)));
    }
    for (name, most) in budgets(network) {
        row("budget", format!("{name}: {most}"));
    }
    if tests > 0 {
        row("tests", tests.to_string());
    }
    let native = in_rust(network);
    if !native.is_empty() {
        row(
            "in Rust",
            format!(
                "{} (run by the program that registers them)",
                native.join(", ")
            ),
        );
    }
    rows
}

/// Returns what a program must register to run the network.
fn in_rust(network: &network::Network) -> Vec<String> {
    let tools = network.tools.values();
    let tools = tools.filter(|tool| matches!(tool.source, Source::Native { .. }));
    let tools = tools.map(|tool| tool.name.to_string());
    let nets = network.nets_in_rust().into_iter();
    let nets = nets.map(|net| format!("net {net}"));
    let routers = network.routers_in_rust().into_keys();
    let routers = routers.map(|agent| format!("router of {agent}"));
    let hooks = network.hooks.iter();
    let hooks = hooks.map(|hook| format!("hook {}", hook.name));
    tools.chain(nets).chain(routers).chain(hooks).collect()
}

/// Returns the schedules by name: the times, and the agent that begins.
fn schedules(network: &network::Network) -> impl Iterator<Item = (&Name, String)> {
    network.schedules.iter().map(|(name, schedule)| {
        let Times { rule, timezone } = &schedule.times;
        let zone = match rule {
            Rule::Every(_) => String::new(),
            Rule::Cron(_) | Rule::At(_) => format!(" ({timezone})"),
        };
        let agent = schedule.start.agent.as_ref().or(network.entry.first());
        let begins = agent.map_or_else(String::new, |agent| format!(", begins with {agent}"));
        (name, format!("{rule}{zone}{begins}"))
    })
}

/// Returns the budgets by name: the amounts, what they count, and what happens when they are used up.
fn budgets(network: &network::Network) -> impl Iterator<Item = (&Name, String)> {
    network.budgets.iter().map(|(name, budget)| {
        let of = match &budget.of {
            BudgetOf::Network => "of all sessions".to_owned(),
            BudgetOf::Key => "under each API key".to_owned(),
            BudgetOf::Label(label) => format!("of each value of the label `{label}`"),
        };
        let then = match budget.then {
            OnSpent::Wait => "then calls wait for the next one",
            OnSpent::Fail => "then calls fail",
        };
        let (most, per, zone) = (budget.most(), budget.per.word(), &budget.timezone);
        (name, format!("{most} a {per} ({zone}) {of}, {then}"))
    })
}

fn approved(approve: &[Approve]) -> String {
    let Some(first) = approve.first() else {
        return String::new();
    };
    let line: Vec<&str> = first.line().map(|asked| &*asked.by).collect();
    let line = line.join(", then ");
    match &*first.when.source {
        "true" => format!(" (approved by {line})"),
        when => format!(" (approved by {line} when {when})"),
    }
}

fn per(per: Period) -> &'static str {
    match per {
        Period::Answer => "an answer",
        Period::Task => "a task",
        Period::Session => "a session",
    }
}

/// Describes the upper bounds of one answer, as far as limits set them.
fn worst(network: &network::Network) -> Vec<String> {
    let entries: Vec<&AgentDef> = network
        .agents
        .values()
        .filter(|a| network.entry.contains(&a.name))
        .collect();
    // The default limit of a router counts only its own questions, which says nothing of its members.
    let counts = |agent: &&&AgentDef| {
        let written = agent.limits_in(None).model_calls.written;
        matches!(agent.does, Does::Model(_)) || written || network.limits.model_calls.written
    };
    // Entries with equal limits share one row.
    let mut calls: Vec<(String, String)> = entries
        .iter()
        .filter(counts)
        .map(|agent| (agent.name.to_string(), model_calls(agent, network)))
        .collect();
    let alike = calls.windows(2).all(|two| two[0].1 == two[1].1);
    let calls: Vec<String> = match calls.len() {
        n if n > 1 && alike => {
            let names: Vec<&str> = calls.iter().map(|(name, _)| name.as_str()).collect();
            vec![format!("{} each: {}", names.join(", "), calls[0].1)]
        }
        1 => calls.drain(..).map(|(_, told)| told).collect(),
        _ => calls
            .iter()
            .map(|(name, told)| format!("{name}: {told}"))
            .collect(),
    };
    let told = |of: fn(&Limits) -> Option<Limit>, words: &dyn Fn(u64) -> String| {
        let all = of(&network.limits);
        let own = entries
            .iter()
            .filter_map(|agent| Some((&agent.name, of(agent.limits_in(None))?)));
        let own: Vec<(&Name, Limit)> = own.collect();
        let told = |limit: Limit| format!("{} {}", words(limit.max), per(limit.per));
        let ends_before =
            |all: &Limit| entries.len() == 1 && own.iter().any(|(_, own)| covers(own, all));
        let all = all.filter(|all| !ends_before(all)).map(told);
        let own = own.iter().map(|(name, limit)| match entries.len() {
            1 => told(*limit),
            _ => format!("{name}: {}", told(*limit)),
        });
        own.chain(all).collect::<Vec<_>>()
    };
    let mut spent = told(|l| l.tokens, &|max| format!("{} tokens", digits(max)));
    if spent.is_empty() {
        spent.push("no limit of tokens".to_owned());
    }
    let money = steersman_machine::values::price::money;
    spent.extend(told(|l| l.cost, &|max| format!("costs {}", money(max))));
    spent.extend(told(|l| l.wall_time, &|max| {
        span(i64::try_from(max).unwrap_or(i64::MAX))
    }));
    let beside = Beside::all(network);
    let beside = beside.iter().map(ToString::to_string);
    calls
        .into_iter()
        .chain([spent.join("; ")])
        .chain(beside)
        .collect()
}

/// Returns true if a limit is always reached before another one that counts no more: it is not greater, and not for a shorter period.
fn covers(limit: &Limit, other: &Limit) -> bool {
    let length = |period| match period {
        Period::Answer => 0,
        Period::Task => 1,
        Period::Session => 2,
    };
    limit.max <= other.max && length(limit.per) >= length(other.per)
}

/// Describes the limits of model calls of an entry: its own, and that of the session, if they count.
fn model_calls(agent: &AgentDef, network: &network::Network) -> String {
    let own = agent.limits_in(None).model_calls;
    let all = network.limits.model_calls;
    let told = |limit: Limit, of: &str| {
        let then = match limit.then {
            OnLimit::Answer => "then a forced answer",
            OnLimit::Fail => "then it fails",
            OnLimit::Finish => "then it ends",
            OnLimit::Ask => "then a person is asked",
        };
        format!(
            "{} {}{of}, {then}",
            count(limit.max, "model call"),
            per(limit.per)
        )
    };
    // The session's limit counts the calls of all agents.
    if all.written && covers(&all, &own) {
        return told(all, "");
    }
    // A default limit counts only the calls of the agent itself.
    let below = network
        .agents
        .values()
        .any(|b| matches!(b.does, Does::Model(_)) && b.name != agent.name);
    let own = told(
        own,
        if below && !own.written {
            " of each agent"
        } else {
            ""
        },
    );
    if all.written {
        format!("{own}; of all agents {}", told(all, ""))
    } else {
        own
    }
}
