//! `fsck`: verifies every line of every session, and reports what is damaged, where, and what to do.

use crate::address::Address;
use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::place::shortest;
use crate::printer::{Printer, dim, green, red, yellow};
use crate::store::{self, Kept};
use crate::words::count;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::Arc;
use steersman::Steersman;
use steersman::runtime::beside::differs;
use steersman::runtime::bind;
use steersman::runtime::engine::Engine;
use steersman::runtime::erase::erased_artifacts;
use steersman::runtime::inbox::{self, DecodeError};
use steersman::runtime::ledger::Ledger;
use steersman::runtime::load::{Load, Report};
use steersman::runtime::past::{DEFAULT_BOUND, Past};
use steersman::runtime::store::{
    InboxMessage, MemoryQuery, SessionInfo, SessionQuery, Store, StoreError,
};
use steersman_machine::stored::ids::{Bodies, Id, Line, Name};
use steersman_machine::stored::interaction::Doubtful;
use steersman_machine::view::artifact::is_from_outside;

pub(crate) const LISTED: &str = "Verify every line of every session";

/// Verify every line of every session, and say what is damaged. Exit code 4 if something is.
#[derive(Debug, clap::Args)]
pub(crate) struct FsckArgs {
    /// Only this session.
    session: Option<String>,
}

/// The faults of a session.
#[derive(Default)]
struct Found {
    /// Damage, with its place.
    damaged: Vec<String>,
    /// Intact data that only a newer version can read.
    newer: Vec<String>,
    /// Checkpoints that differ from the lines that they were made from.
    stale: Vec<String>,
    /// Data stored outside the log that disagrees with the log.
    beside: Vec<String>,
    /// Branches that cannot be loaded, each from a line on.
    affected: Vec<String>,
    report: Report,
}

pub(crate) async fn run(
    args: FsckArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let file = locate::existing(global)?;
    let store = store::look(&file)?;
    let mut structure = store.check_structure().await?;
    let (all, nameless) = sessions(&store).await?;
    structure.extend(nameless);
    let copied = match store.doubt() {
        Some(StoreError::Unaccepted { was, why, .. }) => match was {
            Doubtful::Copied => Some(why),
            Doubtful::Lost => {
                structure.push(why.clone());
                None
            }
        },
        _ => None,
    };
    let wanted = wanted(&args, &all)?;
    let (mut bad, mut lines, mut newer) = (structure.len(), 0, 0);
    // The zero key is enough, because sealed values are not opened.
    let engine = Steersman::options().over_shared(store.clone(), &[0; 32]);
    let engine = engine.engine();
    let mut beside = 0;
    for what in &structure {
        printer.complain(red(&format!("{}: {what}", locate::shown(&file))));
    }
    for (i, info) in wanted.iter().enumerate() {
        if std::io::stderr().is_terminal() {
            printer.status(&format!("{} of {}", i + 1, wanted.len()));
        }
        let found = check(&store, info, engine).await.unwrap_or_else(unread);
        if std::io::stderr().is_terminal() {
            printer.clear_status();
        }
        lines += found.report.lines;
        bad += found.damaged.len();
        beside += found.beside.len();
        newer += found.newer.len();
        let short = shortest(&info.id, all.iter().map(|i| &*i.id));
        print_found(printer, info, short, &found)?;
    }
    if let Some(why) = copied {
        printer.talk(yellow(&format!(
            "{} opens for reading only: {why}.",
            locate::shown(&file)
        )));
    }
    let memories = memories(&store, printer, &args).await?;
    bad += memories;
    if printer.is_json() {
        printer.json(&json!({
            "sessions": wanted.len(),
            "lines": lines,
            "damaged": bad,
            "newer": newer,
            "beside": beside,
            "structure": structure,
            "accepted": store.doubt().is_none(),
        }))?;
    }
    let sum = format!(
        "{}, {}",
        count(wanted.len() as u64, "session"),
        count(lines, "line")
    );
    if bad == 0 && beside > 0 {
        return Err(CommandError::store(format!(
            "{sum}: the logs verify, but data that is stored outside them differs from them in {}",
            count(beside as u64, "place")
        ))
        .hint("nothing is lost: a session that is driven uses its log: steersman run --resume SESSION")
        .hint("until then lists, events and timers may not find it"));
    }
    if bad == 0 {
        printer.talk(green(&format!("{sum}: all that is there verifies.")));
        if newer > 0 {
            printer.talk(yellow(&format!(
                "{} written by a newer version of this program: use that one.",
                count(newer as u64, "place")
            )));
        }
        if !store.has_begun_unsafe().await? {
            printer.talk(dim(
                "What is missing at the end of a log without a trace cannot be seen: compare with a backup.",
            ));
        }
        return Ok(Exit::Answered);
    }
    let error = CommandError::store(format!("{sum}: {} damaged", count(bad as u64, "place")))
        .hint("keep a copy of the file as it is before anything else: cp, not `steersman backup`");
    if store.doubt().is_some() {
        return Err(error
            .hint("restore the store from a backup, or go on with what is here")
            .hint("nothing is driven before you know what happened meanwhile and say so: steersman doctor --accept-store"));
    }
    Err(error
        .hint("sessions that are not named here are whole; a branch that is not affected can be driven")
        .hint("restore the store from a backup, or go on without the sessions named here"))
}

/// Returns the sessions that can be found, and descriptions of invalid ids.
async fn sessions(store: &Kept) -> Result<(Vec<SessionInfo>, Vec<String>), CommandError> {
    let ids = store.ids().await?;
    let nameless: Vec<String> = ids
        .iter()
        .filter_map(|(no, id)| Some(format!("session number {no}: {}", id.as_ref().err()?)))
        .collect();
    if nameless.is_empty() {
        return Ok((store.sessions(&SessionQuery::default()).await?, nameless));
    }
    let mut found = Vec::new();
    for id in ids.into_iter().filter_map(|(_, id)| id.ok()) {
        let query = SessionQuery {
            prefix: Some(id.to_string()),
            ..SessionQuery::default()
        };
        let alike = store.sessions(&query).await?;
        found.extend(alike.into_iter().filter(|info| info.id == id));
    }
    Ok((found, nameless))
}

/// Returns the faults of a session that could not be read to its end.
fn unread(error: CommandError) -> Found {
    Found {
        damaged: vec![error.message],
        ..Found::default()
    }
}

/// Reports memories whose content is missing or does not fit its hash. Returns their number.
async fn memories(store: &Kept, printer: &Printer, args: &FsckArgs) -> Result<usize, CommandError> {
    if args.session.is_some() {
        return Ok(0);
    }
    let mut bad = 0;
    for memory in store.memories(MemoryQuery::default()).await? {
        let what = match store.blob(&memory.hash).await {
            Ok(Some(_)) => continue,
            Ok(None) => "its content is missing".to_owned(),
            Err(StoreError::Corrupt { what, .. }) => what,
            Err(error) => return Err(error.into()),
        };
        bad += 1;
        printer.complain(red(&format!(
            "memory {} of scope `{}`: {what}",
            memory.id, memory.scope
        )));
    }
    Ok(bad)
}

fn wanted(args: &FsckArgs, all: &[SessionInfo]) -> Result<Vec<SessionInfo>, CommandError> {
    let Some(name) = &args.session else {
        return Ok(all.to_vec());
    };
    let address = Address::parse(name)?;
    let name = address.session.to_string();
    let found: Vec<SessionInfo> = all
        .iter()
        .filter(|info| name == "last" || info.id.starts_with(&name))
        .take(if name == "last" { 1 } else { usize::MAX })
        .cloned()
        .collect();
    if found.is_empty() {
        return Err(CommandError::usage(format!("there is no session `{name}`"))
            .hint("`steersman sessions` lists those that there are"));
    }
    Ok(found)
}

async fn check(store: &Kept, info: &SessionInfo, engine: &Engine) -> Result<Found, CommandError> {
    let shared: Arc<dyn Store> = store.clone();
    let load = Load::new(shared.clone(), info.id.clone(), info.salt);
    let report = load.inspect().await?;
    let mut found = Found {
        damaged: report
            .damaged
            .iter()
            .map(|d| format!("line {}: {}", d.line, d.what))
            .collect(),
        newer: report.newer.iter().map(|n| format!("line {n}")).collect(),
        affected: report
            .affected
            .iter()
            .map(|(branch, line)| format!("branch {branch} from line {line} on"))
            .collect(),
        report,
        ..Found::default()
    };
    let is_log_whole = found.damaged.is_empty() && found.newer.is_empty();
    messages(&store.inbox(&info.id).await?.1, &mut found);
    if is_log_whole {
        whole(store, info, &load, &mut found).await?;
    }
    if found.damaged.is_empty() && found.newer.is_empty() {
        found.beside = beside(store, info, engine).await?;
    }
    Ok(found)
}

/// Reports inbox messages that are damaged or from a newer version.
fn messages(stored: &[InboxMessage], found: &mut Found) {
    for error in inbox::unread(stored) {
        match &error {
            DecodeError::Corrupt(_) => found.damaged.push(error.to_string()),
            DecodeError::Newer(id, _) => found.newer.push(format!("inbox message `{id}`")),
        }
    }
}

/// Compares the data that is stored outside an intact log with the log. A session that is driven meanwhile is skipped,
/// because it may change between two reads.
async fn beside(
    store: &Kept,
    info: &SessionInfo,
    engine: &Engine,
) -> Result<Vec<String>, CommandError> {
    if info.owner.is_some() || store.head(&info.id).await? == Line::NONE {
        return Ok(Vec::new());
    }
    // The process that drives the session reports why it cannot be inspected.
    let Ok(inspection) = engine.inspect(&info.id).await else {
        return Ok(Vec::new());
    };
    let kept = store.beside(&info.id).await?.kept;
    let feed = engine.feed(&info.id, Line::NONE);
    let found = differs(&inspection, feed, &kept).await?;
    if store.head(&info.id).await? != info.head {
        return Ok(Vec::new());
    }
    Ok(found)
}

/// For a session whose lines all verify: checks that no lines are missing at the end, and that data outside of the log fits
/// it.
async fn whole(
    store: &Kept,
    info: &SessionInfo,
    load: &Load,
    found: &mut Found,
) -> Result<(), CommandError> {
    match load.stale_checkpoints().await {
        Ok(stale) => {
            let stale = stale.into_iter();
            found.stale = stale
                .map(|line| format!("checkpoint at line {line}"))
                .collect();
        }
        Err(error @ StoreError::Corrupt { .. }) => found.damaged.push(error.to_string()),
        Err(error) => return Err(error.into()),
    }
    let head = store.head(&info.id).await?;
    let status = &info.state.status;
    if head == Line::NONE && !status.is_empty() {
        found.damaged.push(format!(
            "its lines are missing: lists show it as `{status}`"
        ));
    }
    let (ledger, _) = load.cold().ledger(head).await?;
    let beside = store.beside(&info.id).await?;
    let lost = beside.consumed.iter().filter(|id| !ledger.accepted(id));
    let lost = lost.count() as u64;
    if lost > 0 {
        found.damaged.push(format!(
            "behind line {head}: {} {} taken by a line that is missing",
            count(lost, "message"),
            if lost == 1 { "was" } else { "were" }
        ));
    }
    for (what, line) in beside.beyond {
        found.damaged.push(format!(
            "behind line {head}: {what} names line {line}, which is missing"
        ));
    }
    bound(store, info, load, &ledger, found).await?;
    let missing = contents(store, load, &ledger, found).await?;
    if missing.is_empty() {
        return Ok(());
    }
    let shared: Arc<dyn Store> = store.clone();
    let erased = erased_artifacts(&shared, info).await?;
    for (call, name, why) in missing {
        if !erased.artifacts.contains(&(call, name)) {
            found.damaged.push(why);
        }
    }
    Ok(())
}

/// Checks that the definition and the server manifest that a session is bound to are stored.
async fn bound(
    store: &Kept,
    info: &SessionInfo,
    load: &Load,
    ledger: &Ledger,
    found: &mut Found,
) -> Result<(), CommandError> {
    for (_, branch) in ledger.branches().filter(|(_, b)| b.superseded.is_none()) {
        let snapshot = load.cold().snapshot(branch.head).await?.snapshot;
        let Some(binding) = &snapshot.binding else {
            continue;
        };
        let shared: Arc<dyn Store> = store.clone();
        let (id, head) = (info.id.clone(), branch.head);
        let past = Past::new(shared, id, info.salt, head, DEFAULT_BOUND);
        past.read(binding.values.line()).await?;
        let manifest = bind::manifest(&info.id, binding, &past.text(binding.values));
        // Loading the session reports unreadable values.
        let manifest = manifest.ok().flatten().map(|hash| hash.0);
        let named = [
            ("its definition", Some(binding.source)),
            ("what its MCP servers offered", manifest),
        ];
        for (what, hash) in named {
            let Some(hash) = hash else { continue };
            let why = match store.blob(&hash).await {
                Ok(Some(_)) => continue,
                Ok(None) => "is missing from the store",
                Err(StoreError::Corrupt { .. }) => "does not fit its hash",
                Err(error) => return Err(error.into()),
            };
            found.damaged.push(format!("{what} {why}"));
            return Ok(());
        }
    }
    Ok(())
}

/// Checks that the contents of artifacts on all branches exist and fit their hashes. Returns the missing ones, because they
/// may have been erased.
async fn contents(
    store: &Kept,
    load: &Load,
    ledger: &Ledger,
    found: &mut Found,
) -> Result<Vec<(Id, Name, String)>, CommandError> {
    let mut seen = BTreeSet::new();
    let mut missing = Vec::new();
    for (_, branch) in ledger.branches() {
        let snapshot = load.cold().snapshot(branch.head).await?.snapshot;
        for versions in snapshot.artifacts.values() {
            for (k, version) in versions.iter().enumerate() {
                if !seen.insert((version.call, version.hash)) {
                    continue;
                }
                let whose = if is_from_outside(version.call) {
                    format!("which came in with line {}", version.call.line())
                } else {
                    format!("of call {}", version.call)
                };
                let (name, k) = (&version.name, k + 1);
                let what = |why| format!("artifact `{name}`, version {k}, {whose}: {why}");
                match store.blob(&version.hash).await {
                    Ok(Some(_)) => {}
                    Ok(None) => {
                        let why = what("its content is missing from the store");
                        missing.push((version.call, name.clone(), why));
                    }
                    Err(StoreError::Corrupt { .. }) => {
                        found
                            .damaged
                            .push(what("its content does not fit its hash"));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
    Ok(missing)
}

fn print_found(
    printer: &Printer,
    info: &SessionInfo,
    short: &str,
    found: &Found,
) -> Result<(), CommandError> {
    if printer.is_json() {
        let clean = found.damaged.is_empty()
            && found.newer.is_empty()
            && found.stale.is_empty()
            && found.beside.is_empty();
        return printer.json(&json!({
            "session": &*info.id,
            "lines": found.report.lines,
            "erased": found.report.erased,
            "clean": clean,
            "damaged": found.damaged,
            "affected": found.affected,
            "newer": found.newer,
            "stale": found.stale,
            "beside": found.beside,
        }));
    }
    for what in &found.damaged {
        printer.data(red(&format!("{short}  {what}")))?;
    }
    for what in &found.affected {
        printer.data(format!("{short}  cannot be driven: {what}"))?;
    }
    for what in &found.beside {
        printer.data(yellow(&format!("{short}  {what}")))?;
    }
    for what in &found.newer {
        printer.data(yellow(&format!(
            "{short}  {what} was written by a newer version"
        )))?;
    }
    for what in &found.stale {
        printer.data(yellow(&format!(
            "{short}  {what} differs from the fold of its lines; it is not used"
        )))?;
    }
    Ok(())
}
