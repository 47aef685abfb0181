//! `doctor`: reports what is present and what is missing. It never prints a key, and changes nothing.
//!
//! Each kind of thing has a section; each check is a [`Finding`]. A new kind of check gets a new section, which [`run`]
//! calls.

use crate::cli::Global;
use crate::commands::check;
use crate::commands::pending::listed;
use crate::commands::servers::renamed;
use crate::error::{CommandError, Exit};
use crate::place::shortest;
use crate::printer::{Printer, bold, dim, green, red, yellow};
use crate::words::{count, span};
use crate::{locate, store};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use steersman::runtime::bind;
use steersman::runtime::budgets::{self, AmountUse};
use steersman::runtime::clock::{Clock as _, System};
use steersman::runtime::model::Models;
use steersman::runtime::pending::PendingKind;
use steersman::runtime::process_env;
use steersman::runtime::seal::{KeyId, in_words};
use steersman::runtime::store::{SessionInfo, SessionQuery};
use steersman::views::cause;
use steersman::{Network, Steersman};
use steersman_adapters::catalog::Catalog;
use steersman_adapters::reach::reach;
use steersman_adapters::secrets::{KEY_FILE, KEY_VARIABLE, sealer, would_be_made};
use steersman_adapters::stores::SealedWith;
use steersman_machine::network::budget::BudgetOf;
use steersman_machine::network::manifest::Manifest;
use steersman_machine::network::{Network as CheckedNetwork, Provider, Source};
use steersman_machine::stored::ids::Time;
use steersman_machine::view::iso;

pub(crate) const LISTED: &str = "Say what is there: keys, models, the store, versions";

/// Say what is there: keys, models, the store, versions. Exit code 1 if something is missing.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// A definition, or a folder with a steersman.yaml: also what its models mean here.
    definition: Option<PathBuf>,
    /// Answers of models that the definition calls `scripted`, from a file: they need no other model.
    #[arg(long, value_name = "FILE", requires = "definition")]
    script: Option<PathBuf>,
    /// Answers of all models from a file: the definition needs no model.
    #[arg(
        long,
        value_name = "FILE",
        requires = "definition",
        conflicts_with = "script"
    )]
    script_all: Option<PathBuf>,
    /// Drive a store again that opens for reading only: a copy, one that was moved or restored, one that lost lines.
    #[arg(long)]
    accept_store: bool,
}

/// The smallest definition, used to find out which model `auto` chooses.
const SMALLEST: &str = "steersman: 1\nname: doctor\nagents: { desk: { system: You help. } }\n";

/// The smallest definition that asks for a server of models on this computer.
const LOCAL_MODEL: &str = "steersman: 1\nname: doctor\nmodels: { default: local }\nagents: { desk: { system: You help. } }\n";

/// The result of a check.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Health {
    Well,
    /// Sufficient, or not needed.
    Note,
    Bad,
}

/// The result of one check, with its text.
struct Finding {
    about: &'static str,
    health: Health,
    text: String,
    /// Advice on what to do.
    hint: Option<String>,
}

/// The findings, in the order of the checks.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, about: &'static str, health: Health, text: impl Into<String>) -> &mut Self {
        self.0.push(Finding {
            about,
            health,
            text: text.into(),
            hint: None,
        });
        self
    }

    fn hint(&mut self, hint: impl Into<String>) {
        if let Some(last) = self.0.last_mut() {
            last.hint = Some(hint.into());
        }
    }
}

pub(crate) async fn run(
    args: DoctorArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if args.accept_store {
        return accept(global, printer).await;
    }
    let mut findings = Findings::default();
    versions(&mut findings);
    let file = locate::store(global.store.as_deref())?;
    kept(&mut findings, &file).await;
    sealing(&mut findings, &file).await;
    keys(&mut findings);
    models(&mut findings, &args).await?;
    if let Some(path) = args.definition.as_deref() {
        programs(&mut findings, path);
        servers(&mut findings, path, global).await?;
        spent(&mut findings, path, &file).await?;
    }
    tell(printer, &findings)?;
    let bad = findings.0.iter().any(|f| f.health == Health::Bad);
    Ok(if bad { Exit::Failed } else { Exit::Answered })
}

/// Reports the programs of `command` in the definition's folder that cannot be started.
fn programs(findings: &mut Findings, path: &Path) {
    // A definition with errors is reported with its models.
    let Ok(network) = check::load(path) else {
        return;
    };
    for missing in check::missing_programs(&network) {
        findings.add("tools", Health::Bad, missing);
    }
}

/// Accepts the store as it is, on a person's word.
async fn accept(global: &Global, printer: &Printer) -> Result<Exit, CommandError> {
    let file = locate::existing(global)?;
    let shown = locate::shown(&file);
    let doubt = Steersman::accept_store(&file).await.map_err(|error| {
        CommandError::from(error)
            .hint("nothing was accepted; no other process may have the store open meanwhile")
    })?;
    if printer.is_json() {
        printer.json(&json!({
            "store": file.display().to_string(),
            "accepted": doubt.is_some(),
            "why": doubt.as_ref().map(ToString::to_string),
        }))?;
    }
    match doubt {
        None => printer.talk(format!(
            "There is nothing to accept: {shown} is driven as it is."
        )),
        Some(doubt) => {
            printer.talk(format!("{doubt}."));
            printer.talk(format!(
                "Accepted. {shown} is driven from now on, and the next line of each of its sessions says so."
            ));
        }
    }
    Ok(Exit::Answered)
}

fn tell(printer: &Printer, findings: &Findings) -> Result<(), CommandError> {
    for finding in &findings.0 {
        let word = match finding.health {
            Health::Well => "ok",
            Health::Note => "note",
            Health::Bad => "missing",
        };
        if printer.is_json() {
            printer.json(&json!({
                "about": finding.about,
                "health": word,
                "text": finding.text,
                "hint": finding.hint,
            }))?;
            continue;
        }
        let painted = match finding.health {
            Health::Well => green(&format!("{word:<8}")),
            Health::Note => yellow(&format!("{word:<8}")),
            Health::Bad => red(&format!("{word:<8}")),
        };
        printer.data(format!("{:<9}{painted}{}", finding.about, finding.text))?;
        if let Some(hint) = &finding.hint {
            printer.data(dim(&format!("{:<17}{hint}", "")))?;
        }
    }
    let bad = findings.0.iter().filter(|f| f.health == Health::Bad);
    match bad.count() {
        0 => printer.talk(bold("All that is needed is there.")),
        missing => printer.talk(red(&format!("{} missing.", count(missing as u64, "thing")))),
    }
    Ok(())
}

fn versions(findings: &mut Findings) {
    findings.add(
        "program",
        Health::Well,
        format!(
            "steersman {}, machine {}",
            env!("CARGO_PKG_VERSION"),
            bind::MACHINE_VERSION
        ),
    );
}

/// Reports the use of the budgets of a definition, and the sessions that wait for them.
async fn spent(
    findings: &mut Findings,
    definition: &Path,
    file: &Path,
) -> Result<(), CommandError> {
    let network = Network::from_path(locate::definition(definition)?)?
        .build()
        .map_err(steersman::Error::from)?;
    let network = network.checked();
    if network.budgets.is_empty() || !store::site(file).is_ok_and(|site| site.exists()) {
        return Ok(());
    }
    let store = store::look(file)?;
    let now = System.now();
    for used in budgets::uses(&*store, network, now).await? {
        let amounts: Vec<String> = used.amounts.iter().map(AmountUse::words).collect();
        let zone = &network.budgets[&used.budget].timezone;
        let text = format!(
            "`{}` for {}: {} used this {}; the next one begins {}",
            used.budget,
            used.of,
            amounts.join(", "),
            used.per,
            iso(used.ends, zone)
        );
        let is_spent = used.amounts.iter().any(|amount| amount.used >= amount.most);
        let health = if is_spent { Health::Note } else { Health::Well };
        findings.add("budget", health, text);
    }
    for (name, _) in network
        .budgets
        .iter()
        .filter(|(_, def)| def.of == BudgetOf::Key)
    {
        let text = format!(
            "`{name}` is counted for each key by itself; a call that waits for it says what is left"
        );
        findings.add("budget", Health::Well, text);
    }
    let sessions = store.sessions(&SessionQuery::default()).await?;
    for name in network.budgets.keys() {
        let waits = |info: &&SessionInfo| {
            let pending = listed(info).unwrap_or_default();
            let mut calls = pending.iter().filter(|p| p.kind == PendingKind::Budget);
            calls.any(|p| budgets::named_in(&p.text) == Some(name))
        };
        let waiting = sessions.iter().filter(waits).count() as u64;
        if waiting > 0 {
            let wait = if waiting == 1 { "waits" } else { "wait" };
            let text = format!("{} {wait} for `{name}`", count(waiting, "session"));
            findings
                .add("budget", Health::Note, text)
                .hint(format!(
                    "steersman release --budget {name} --where \"network = {}\" lets these calls through",
                    network.name
                ));
        }
    }
    Ok(())
}

/// Checks that the store exists, that its structure is intact, and that it is writable.
async fn kept(findings: &mut Findings, file: &Path) {
    let shown = locate::shown(file);
    if !store::site(file).is_ok_and(|site| site.exists()) {
        let parent = file.parent().unwrap_or(Path::new("."));
        findings.add(
            "store",
            Health::Note,
            format!(
                "{shown} is not there yet; the first session makes it in {}",
                parent.display()
            ),
        );
        return;
    }
    let store = match store::look(file) {
        Ok(store) => store,
        Err(error) => {
            findings
                .add("store", Health::Bad, error.to_string())
                .hint("name another with --store FILE, or restore it from a backup");
            return;
        }
    };
    match store.check_structure().await {
        Ok(faults) if faults.is_empty() => {}
        Ok(faults) => findings
            .add(
                "store",
                Health::Bad,
                format!("{shown}: {}", faults.join("; ")),
            )
            .hint("`steersman fsck` says which sessions are touched"),
        Err(error) => {
            findings.add("store", Health::Bad, error.to_string());
        }
    }
    match store.sessions(&SessionQuery::default()).await {
        Ok(sessions) => {
            let owned = sessions.iter().filter(|s| s.owner.is_some()).count() as u64;
            let all = count(sessions.len() as u64, "session");
            findings.add(
                "store",
                Health::Well,
                format!("{shown}: {all}, {owned} driven now"),
            );
            stuck(findings, &sessions);
        }
        Err(error) => {
            findings.add("store", Health::Bad, error.to_string());
        }
    }
    if let Some(doubt) = store.doubt() {
        findings
            .add("store", Health::Bad, doubt.to_string())
            .hint("once you know what happened meanwhile: steersman doctor --accept-store");
    }
    if let Err(error) = store.may_be_written() {
        findings
            .add(
                "store",
                Health::Note,
                format!("{shown} can only be read: {error}"),
            )
            .hint("looking works; nothing can be driven here");
    }
}

/// Maximum number of stuck sessions that are named.
const NAMED: usize = 10;

/// Names the sessions that do not move although nobody is asked, each with what helps.
fn stuck(findings: &mut Findings, sessions: &[SessionInfo]) {
    let now = Time(jiff::Timestamp::now().as_millisecond());
    let found = sessions.iter().filter_map(|info| {
        // Here the store is only looked at, so the last line of a driven session is not known.
        let why = cause::stuck(info, None, now);
        let long = || {
            let since = now.0.saturating_sub(info.state.updated.0);
            let long = format!("at work since {}, which is long", span(since));
            cause::may_be_silent(info, now).then_some(long)
        };
        Some((info, why.or_else(long)?))
    });
    let found: Vec<_> = found.collect();
    for (info, why) in found.iter().take(NAMED) {
        let short = shortest(&info.id, sessions.iter().map(|info| &*info.id));
        let helps = if info.owner.is_some() {
            format!(
                "steersman sessions says whether it is silent, steersman show {short} what runs"
            )
        } else {
            format!("steersman run --resume {short}, or steersman run --all")
        };
        findings
            .add("sessions", Health::Note, format!("{short}: {why}"))
            .hint(helps);
    }
    if found.len() > NAMED {
        let more = count((found.len() - NAMED) as u64, "session");
        findings
            .add("sessions", Health::Note, format!("{more} more are stuck"))
            .hint("steersman sessions --all names all");
    }
}

/// Reports the keys that seal secrets, and what the store needs of them. Keys are named by their ids, never shown.
async fn sealing(findings: &mut Findings, file: &Path) {
    let Ok(Some(folder)) = store::folder(file) else {
        findings.add("sealing", Health::Well, "the key ends with the process");
        return;
    };
    let env = process_env();
    let needed = needed(file).await;
    let shown = locate::shown(&folder.join(KEY_FILE));
    if would_be_made(&folder, &env) {
        if needed.is_empty() {
            findings
                .add(
                    "sealing",
                    Health::Note,
                    format!("{shown} is not there; nothing needs it yet"),
                )
                .hint("it is made at first use, readable by you alone");
        } else {
            let keys: Vec<KeyId> = needed.into_keys().collect();
            let keys = in_words(&keys);
            findings
                .add(
                    "sealing",
                    Health::Bad,
                    format!("{shown} is not there, and the store holds secrets that it sealed (with {keys})"),
                )
                .hint("restore it, or set STEERSMAN_KEY to its digits; nothing is driven before");
        }
        return;
    }
    let is_set = env(KEY_VARIABLE).is_some();
    // Keys exist, so this creates none.
    let sealer = match sealer(&folder, &env) {
        Ok(sealer) => sealer,
        Err(error) => {
            findings.add("sealing", Health::Bad, error.to_string());
            if is_set {
                findings.hint("unset it to use the key file next to the store");
            }
            return;
        }
    };
    let place = if is_set {
        KEY_VARIABLE.to_owned()
    } else {
        format!("{shown}, readable by you alone; no backup holds it")
    };
    for (at, key) in sealer.keys().enumerate() {
        let sealed = needed.get(&key).copied().unwrap_or(0);
        let (health, text) = match (at, sealed) {
            (0, _) => (Health::Well, format!("key {key} seals: {place}")),
            (_, 0) => (
                Health::Note,
                format!("key {key} opens nothing in this store"),
            ),
            _ => (
                Health::Well,
                format!("key {key} opens {}", count(sealed, "older value")),
            ),
        };
        findings.add("sealing", health, text);
    }
    for (key, sealed) in needed {
        if sealer.keys().all(|known| known != key) {
            findings
                .add(
                    "sealing",
                    Health::Bad,
                    format!("key {key} is not here; it sealed {} of the store", count(sealed, "value")),
                )
                .hint("add its digits after those of the key that seals; what it sealed is not used before");
        }
    }
}

/// Returns the keys that the store needs, with the number of values that each sealed.
async fn needed(file: &Path) -> SealedWith {
    match store::look(file) {
        Ok(store) => store.sealed_with().await.unwrap_or_default(),
        // The section of the store reports its errors.
        Err(_) => SealedWith::new(),
    }
}

/// Reports which keys of models are set, never their values.
fn keys(findings: &mut Findings) {
    let env = process_env();
    for name in Catalog::keys() {
        let set = env(name).is_some_and(|value| !value.trim().is_empty());
        let text = format!("{name} is {}", if set { "set" } else { "not set" });
        let health = if set { Health::Well } else { Health::Note };
        findings.add("key", health, text);
    }
}

/// Reports the models that a definition uses here, or the model that `auto` chooses, and whether their servers answer.
async fn models(findings: &mut Findings, args: &DoctorArgs) -> Result<(), CommandError> {
    let definition = args.definition.as_deref();
    let network = match definition {
        Some(path) => Network::from_path(locate::definition(path)?)?
            .build()
            .map_err(steersman::Error::from)?,
        None => Network::from_yaml(SMALLEST)
            .build()
            .map_err(steersman::Error::from)?,
    };
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let hears = heard.clone();
    let catalog = Catalog::default().heard_by(move |sentence| {
        if let Ok(mut heard) = hears.lock() {
            heard.push(sentence.to_owned());
        }
    });
    let folder = network.folder().unwrap_or(Path::new(".")).to_owned();
    let env = process_env();
    let network = network.checked();
    let named = bind::config(network, &env, &BTreeMap::new())
        .and_then(|config| bind::named_models(network, &config, &BTreeMap::new()));
    let resolved = match named {
        Ok(mut named) => {
            scripts(findings, args, &mut named);
            if named.models.is_empty() {
                return Ok(());
            }
            catalog.resolve(&named, &env, &folder).await
        }
        Err(error) => {
            findings.add("model", Health::Bad, error.to_string());
            return Ok(());
        }
    };
    let sentences = heard.lock().map(|heard| heard.clone()).unwrap_or_default();
    for sentence in sentences {
        findings.add("model", Health::Well, sentence);
    }
    let bound = match resolved {
        Ok(bound) => bound,
        Err(error) => {
            let health = if definition.is_some() {
                Health::Bad
            } else {
                Health::Note
            };
            findings
                .add("model", health, error.to_string())
                .hint("without a model: --script-all FILE, or `steersman demo`");
            return local(findings).await;
        }
    };
    for model in bound {
        let name = model.model.as_deref().unwrap_or("its own");
        let what = format!("`{}` is {} {name}", model.name, model.provider);
        let url = match catalog.address(&model, network, &env, &folder) {
            Ok(Some(url)) => url,
            Ok(None) => {
                findings.add("model", Health::Well, what);
                continue;
            }
            Err(error) => {
                findings.add("model", Health::Bad, format!("{what}; {}", error.message));
                continue;
            }
        };
        match reach(&url).await {
            Ok(status) => {
                findings.add(
                    "model",
                    Health::Well,
                    format!("{what}; its server answers ({status})"),
                );
            }
            Err(why) => findings
                .add(
                    "model",
                    Health::Bad,
                    format!("{what}; its server does not answer: {why}"),
                )
                .hint("is there a network, or is the address wrong?"),
        }
    }
    Ok(())
}

/// Takes the models out of a definition that answer from a script which was given, and reports them.
fn scripts(findings: &mut Findings, args: &DoctorArgs, network: &mut CheckedNetwork) {
    let Some(script) = args.script.as_ref().or(args.script_all.as_ref()) else {
        return;
    };
    let shown = script.display();
    match std::fs::metadata(script) {
        Ok(found) if !found.is_dir() => {}
        Ok(_) => {
            findings.add(
                "model",
                Health::Bad,
                format!("the script `{shown}` is a folder"),
            );
        }
        Err(error) => {
            let text = format!("the script `{shown}` cannot be read: {error}");
            findings.add("model", Health::Bad, text);
        }
    }
    network.models.retain(|name, model| {
        let answers = args.script_all.is_some() || model.provider == Provider::Scripted;
        if answers {
            let text = format!("`{name}` answers from {shown}");
            findings.add("model", Health::Well, text);
        }
        !answers
    });
}

/// Reports the server of models on this computer that `--model local` would take. No other command looks for one unasked.
async fn local(findings: &mut Findings) -> Result<(), CommandError> {
    let network = Network::from_yaml(LOCAL_MODEL)
        .build()
        .map_err(steersman::Error::from)?;
    let catalog = Catalog::default();
    let env = process_env();
    let found = catalog.resolve(network.checked(), &env, Path::new("."));
    match found.await {
        Ok(bound) => {
            for model in bound {
                let name = model.model.as_deref().unwrap_or("its own");
                let url = model.url.as_deref().unwrap_or_default();
                let what = format!("{url} on this computer serves {name}");
                findings
                    .add("model", Health::Note, what)
                    .hint("take it: --model local, or `models: { default: local }`");
            }
        }
        Err(error) => drop(findings.add("model", Health::Note, error.message)),
    }
    Ok(())
}

/// Reports whether the MCP servers of a definition answer, which of their tools are used, and whether models accept those.
async fn servers(
    findings: &mut Findings,
    definition: &Path,
    global: &Global,
) -> Result<(), CommandError> {
    let network = Network::from_path(locate::definition(definition)?)?
        .build()
        .map_err(steersman::Error::from)?;
    let mut manifest = Manifest::default();
    // A store that cannot be opened is reported by itself.
    let asker = super::servers::asker(&network, global).await;
    let asker = asker.unwrap_or_else(|_| Steersman::in_memory());
    for answer in asker.servers(&network).await? {
        let name = answer.server;
        let refresh = match network.checked().mcp.get(&name) {
            Some(server) if server.follows => "follow",
            _ => "pinned",
        };
        let listing = match answer.offers {
            Ok(listing) => listing,
            Err(fault) => {
                findings
                    .add("mcp", Health::Bad, format!("`{name}`: {}", fault.message))
                    .hint("no session of this definition begins without it");
                continue;
            }
        };
        let about = match &*listing.about {
            "" => String::new(),
            about => format!(" ({about})"),
        };
        let only = Manifest {
            servers: [(name.clone(), listing.clone())].into(),
        };
        let classes = match network.checked().with_manifest(&only) {
            Ok(_) if listing.tools.is_empty() => String::new(),
            Ok(bound) => format!(" ({})", classes(&bound, &name)),
            Err(_) => String::new(),
        };
        let tools = count(listing.tools.len() as u64, "tool");
        let text = format!("`{name}` answers{about}: {tools} taken{classes}; refresh: {refresh}");
        if listing.tools.is_empty() {
            findings
                .add("mcp", Health::Note, text)
                .hint("`tools` of the server takes none of what it offers");
        } else {
            findings.add("mcp", Health::Well, text);
        }
        for listed in &listing.tools {
            let tool = format!("{name}.{}", listed.name);
            if let Some(seen) = renamed(&tool) {
                findings
                    .add(
                        "mcp",
                        Health::Note,
                        format!("a model sees `{tool}` as `{seen}`"),
                    )
                    .hint("another name: `{ tool: .., as: NAME }` in the `tools` of the agent");
            }
        }
        manifest.servers.insert(name, listing);
    }
    for why in network
        .checked()
        .with_manifest(&manifest)
        .err()
        .into_iter()
        .flatten()
    {
        findings
            .add("mcp", Health::Bad, why)
            .hint("`steersman check --servers` lists what there is");
    }
    Ok(())
}

/// Counts the tools of a server by class: `2 read, 1 unsafe`.
fn classes(network: &CheckedNetwork, server: &str) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in network.tools.values() {
        if let Source::Mcp { server: of, .. } = &tool.source
            && **of == *server
        {
            *counts.entry(tool.effect.word()).or_default() += 1;
        }
    }
    let told: Vec<String> = counts
        .into_iter()
        .map(|(class, of)| format!("{of} {class}"))
        .collect();
    told.join(", ")
}
