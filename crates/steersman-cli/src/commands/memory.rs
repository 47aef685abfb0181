//! `memory`: lists, searches, shows, rates and forgets memories that agents keep across sessions.

use crate::address::Address;
use crate::cli::{Drive, Global};
use crate::commands::there::on_a_store;
use crate::error::{CommandError, Exit};
use crate::place::Place;
use crate::printer::{Printer, bold, dim, typed};
use crate::remote::Remote;
use crate::store::{self, Passed};
use crate::words::{ago, bytes, left, operand, table};
use serde_json::{Value as Json, json};
use steersman::runtime::memory::MemoryError;
use steersman::runtime::store::{Memory, MemoryQuery, Rated};
use steersman::views::list::MemoryRow;
use steersman_client::{MemoriesListMemoriesQuery, MemoriesSearchMemoriesQuery, MemoryRating};
use steersman_machine::view::rating::BEST;

pub(crate) const LISTED: &str = "Show what agents remember over sessions; rate it, forget it";

/// Show what agents remember over sessions; rate it, forget it.
#[derive(Debug, clap::Args)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    act: Option<MemoryAct>,
    /// Only of this scope.
    #[arg(long, value_name = "SCOPE", global = true)]
    scope: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum MemoryAct {
    /// List what is remembered, newest first.
    List {
        /// Only what this session saved.
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
        /// All of it, not the first twenty.
        #[arg(long)]
        all: bool,
        /// Also what another memory stands in the place of.
        #[arg(long)]
        replaced: bool,
    },
    /// Find what fits these words, as agents of the scope would.
    Search {
        /// The words.
        #[arg(required = true)]
        query: Vec<String>,
        /// At most so many.
        #[arg(long, value_name = "N", default_value_t = 10)]
        most: usize,
    },
    /// Print one.
    Show {
        /// Its number.
        id: u64,
    },
    /// Rate one, from 1 to 5. What a person says outranks what agents say.
    Rate {
        /// Its number.
        id: u64,
        /// The rating.
        #[arg(value_parser = clap::value_parser!(u8).range(1..=5))]
        rating: u8,
        /// Why.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// The role in which you act.
        #[arg(long = "as", value_name = "ROLE")]
        role: Option<String>,
    },
    /// Forget some: by number, of a session, or all of a scope. Tells what it would do unless --yes.
    Forget {
        /// Their numbers.
        ids: Vec<u64>,
        /// All that this session saved.
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
        /// Do it. It cannot be undone.
        #[arg(long)]
        yes: bool,
    },
}

/// Maximum number of rows of a list without `--all`.
const FEW: usize = 20;

pub(crate) async fn run(
    args: MemoryArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let scope = args.scope.as_deref();
    let act = args.act.unwrap_or(MemoryAct::List {
        session: None,
        all: false,
        replaced: false,
    });
    if let (Some(_), MemoryAct::Show { .. } | MemoryAct::Rate { .. }) = (scope, &act) {
        return Err(CommandError::usage("a number names one memory")
            .hint("leave --scope out: numbers are those of the store"));
    }
    if let Some(remote) = Remote::of(global)? {
        return Box::pin(at_server(&remote, scope, act, printer)).await;
    }
    let place = match &act {
        MemoryAct::Rate { .. } | MemoryAct::Forget { .. } => {
            Place::required(global, &Drive::default()).await?
        }
        _ => Place::to_look(global).await?,
    };
    match act {
        MemoryAct::List {
            session,
            all,
            replaced,
        } => {
            let query = MemoryQuery {
                current: !replaced,
                ..query(&place, scope, session.as_deref()).await?
            };
            let memories = place.engine().memories(query).await?;
            let rows: Vec<MemoryRow> = memories.iter().map(MemoryRow::from).collect();
            list(&rows, scope, all, place.now(), printer)
        }
        MemoryAct::Search { query, most } => {
            let found = search(&place, scope, &query.join(" "), most).await?;
            tell_found(&found, printer)
        }
        MemoryAct::Show { id } => {
            let (row, text) = one(&place, id).await?;
            let short = match &row.session {
                Some(session) => Some(place.short(session).await?),
                None => None,
            };
            show(&row, &text, short.as_deref(), place.now(), printer)
        }
        MemoryAct::Rate {
            id,
            rating,
            reason,
            role,
        } => {
            let rated = Rated {
                rating,
                reason: reason.map(Into::into),
                by: role.as_deref().unwrap_or("user").into(),
            };
            let done = place.engine().rate_memory(id, rated).await;
            done.map_err(refused)?;
            is_rated(id, rating, printer)
        }
        MemoryAct::Forget { ids, session, yes } => {
            if ids.is_empty() && session.is_none() && scope.is_none() {
                return Err(CommandError::usage("which memories are to be forgotten?")
                    .hint("numbers, --session SESSION, or all of a --scope SCOPE"));
            }
            let query = query(&place, scope, session.as_deref()).await?;
            let mut meant = place.engine().memories(query).await?;
            if !ids.is_empty() {
                meant.retain(|memory| ids.contains(&memory.id));
                let missing = ids.iter().find(|id| !meant.iter().any(|m| m.id == **id));
                if let Some(id) = missing {
                    return Err(refused(MemoryError::Unknown(*id)));
                }
            }
            forget(place, &meant, yes, printer).await
        }
    }
}

async fn query(
    place: &Place,
    scope: Option<&str>,
    session: Option<&str>,
) -> Result<MemoryQuery, CommandError> {
    let session = match session {
        None => None,
        Some(name) => Some(place.session(&Address::parse(name)?.session).await?.id),
    };
    Ok(MemoryQuery {
        scope: scope.map(Into::into),
        session,
        ..MemoryQuery::default()
    })
}

/// Carries out an act at a server.
async fn at_server(
    remote: &Remote,
    scope: Option<&str>,
    act: MemoryAct,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let memories = remote.client.memories();
    let now = now();
    match act {
        MemoryAct::List {
            session,
            all,
            replaced,
        } => {
            let session = match session {
                Some(name) => Some(remote.session(&Address::parse(&name)?.session).await?),
                None => None,
            };
            let mut query = MemoriesListMemoriesQuery {
                scope: scope.map(str::to_owned),
                session,
                replaced: replaced.then_some(true),
                after: None,
                limit: Some(200),
            };
            let mut rows: Vec<MemoryRow> = Vec::new();
            loop {
                let mut page = memories.list_memories(&query).await?;
                let items: Vec<MemoryRow> = remote.read(page["items"].take())?;
                rows.extend(items);
                query.after = page["next"].as_u64();
                if query.after.is_none() {
                    break;
                }
            }
            list(&rows, scope, all, now, printer)
        }
        MemoryAct::Search { query, most } => {
            let query = MemoriesSearchMemoriesQuery {
                query: Some(query.join(" ")),
                scope: scope.map(str::to_owned),
                limit: Some(most as u64),
            };
            let mut found = memories.search_memories(&query).await?;
            let found: Vec<Json> = remote.read(found["items"].take())?;
            let found = found.into_iter().map(|one| read(remote, one));
            tell_found(&found.collect::<Result<Vec<_>, _>>()?, printer)
        }
        MemoryAct::Show { id } => {
            let (row, text) = read(remote, memories.get_memory(id).await?)?;
            let short = match &row.session {
                Some(session) => Some(remote.short(session).await?),
                None => None,
            };
            show(&row, &text, short.as_deref(), now, printer)
        }
        MemoryAct::Rate {
            id,
            rating,
            reason,
            role,
        } => {
            let rate = MemoryRating {
                role,
                rating: rating.into(),
                reason,
            };
            memories.rate_memory(id, &rate).await?;
            is_rated(id, rating, printer)
        }
        MemoryAct::Forget { .. } => Err(on_a_store("`memory forget`")),
    }
}

/// Reads a memory with a text of it.
fn read(remote: &Remote, mut one: Json) -> Result<(MemoryRow, String), CommandError> {
    let text = one["text"].take();
    let text = text.as_str().unwrap_or_default().to_owned();
    Ok((remote.read(one)?, text))
}

/// Returns the time of this computer, in milliseconds since 1970.
fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

fn is_rated(id: u64, rating: u8, printer: &Printer) -> Result<Exit, CommandError> {
    if printer.is_json() {
        printer.json(&json!({ "memory": id, "rating": rating }))?;
    }
    printer.talk(format!("Rated memory {id} {rating} of {BEST}."));
    Ok(Exit::Answered)
}

fn list(
    memories: &[MemoryRow],
    scope: Option<&str>,
    every: bool,
    now: i64,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if printer.is_json() {
        for memory in memories {
            printer.view(memory)?;
        }
        return Ok(Exit::Answered);
    }
    if memories.is_empty() {
        printer.talk(match scope {
            Some(scope) => format!("Nothing is remembered in scope `{scope}`."),
            None => "Nothing is remembered.".to_owned(),
        });
        return Ok(Exit::Answered);
    }
    let shown = if every { memories.len() } else { FEW };
    let rows: Vec<Vec<String>> = memories
        .iter()
        .take(shown)
        .map(|memory| {
            vec![
                memory.memory.to_string(),
                memory.name.to_string(),
                memory.scope.to_string(),
                bytes(memory.bytes),
                ago(now, memory.saved),
                memory.by.to_string(),
                rated(memory),
                memory.until.map_or_else(String::new, |at| left(now, at)),
            ]
        })
        .collect();
    let heading = [
        "MEMORY", "NAME", "SCOPE", "SIZE", "SAVED", "BY", "RATED", "KEPT FOR",
    ];
    for (i, row) in table(&heading, &rows).into_iter().enumerate() {
        printer.data(if i == 0 { dim(&row) } else { row })?;
    }
    if memories.len() > shown {
        let more = memories.len() - shown;
        printer.talk(dim(&format!("{more} more: --all")));
    }
    printer.next(format!("steersman memory show {}", memories[0].memory), "");
    Ok(Exit::Answered)
}

/// Searches one scope, or every scope if none is named.
async fn search(
    place: &Place,
    scope: Option<&str>,
    query: &str,
    most: usize,
) -> Result<Vec<(MemoryRow, String)>, CommandError> {
    let mut scopes: Vec<String> = if let Some(scope) = scope {
        vec![scope.to_owned()]
    } else {
        let all = place.engine().memories(MemoryQuery::default()).await?;
        all.iter().map(|memory| memory.scope.to_string()).collect()
    };
    scopes.sort();
    scopes.dedup();
    let mut all = Vec::new();
    for scope in &scopes {
        let found = place
            .engine()
            .search_memories(None, scope, query, most)
            .await;
        let found = found.map_err(refused)?.into_iter();
        all.extend(found.map(|found| (MemoryRow::from(&found.memory), found.text)));
    }
    Ok(all)
}

fn tell_found(found: &[(MemoryRow, String)], printer: &Printer) -> Result<Exit, CommandError> {
    for (memory, text) in found {
        if printer.is_json() {
            printer.json(&document(memory, text))?;
            continue;
        }
        printer.data(about(memory))?;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            printer.data(format!("  {line}"))?;
        }
    }
    if found.is_empty() && !printer.is_json() {
        printer.talk("Nothing that is remembered has these words.");
    }
    Ok(Exit::Answered)
}

fn about(memory: &MemoryRow) -> String {
    let rated = match rated(memory) {
        rated if rated.is_empty() || memory.replaced_by.is_some() => rated,
        rated => format!("rated {rated}"),
    };
    let rated = match &*rated {
        "" => rated,
        rated => format!(", {rated}"),
    };
    let (id, name, scope) = (memory.memory, &memory.name, &memory.scope);
    format!("{id}  {}   {}", bold(name), dim(&format!("{scope}{rated}")))
}

/// Returns a memory with its content.
async fn one(place: &Place, id: u64) -> Result<(MemoryRow, String), CommandError> {
    let query = MemoryQuery {
        id: Some(id),
        ..MemoryQuery::default()
    };
    let found = place.engine().memories(query).await?;
    let Some(memory) = found.into_iter().next() else {
        return Err(refused(MemoryError::Unknown(id)));
    };
    let content = place.engine().memory_content(&memory).await?;
    let content = content.ok_or_else(|| {
        CommandError::store(format!("the content of memory {id} is not in the store"))
            .hint("`steersman fsck` says what else is missing")
    })?;
    let text = String::from_utf8_lossy(&content).into_owned();
    Ok((MemoryRow::from(&memory), text))
}

/// Prints a memory. `session` is the one that saved it, as people type it.
fn show(
    memory: &MemoryRow,
    text: &str,
    session: Option<&str>,
    now: i64,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if printer.is_json() {
        printer.json(&document(memory, text))?;
        return Ok(Exit::Answered);
    }
    printer.talk(about(memory));
    let mut facts = vec![
        format!("saved {} by {}", ago(now, memory.saved), memory.by),
        format!("network {}", memory.network),
    ];
    if let Some(session) = session {
        facts.push(format!("session {session}"));
    }
    if !memory.tags.is_empty() {
        facts.push(format!("tagged {}", memory.tags.join(", ")));
    }
    if let Some(reason) = memory.rating().and_then(|rated| rated.reason.as_ref()) {
        facts.push(format!("rated so because: {reason}"));
    }
    printer.talk(dim(&facts.join(", ")));
    printer.data(text.lines().collect::<Vec<_>>().join("\n"))?;
    Ok(Exit::Answered)
}

async fn forget(
    place: Place,
    meant: &[Memory],
    yes: bool,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let all = match meant.len() {
        1 => "1 memory".to_owned(),
        n => format!("{n} memories"),
    };
    if !yes || meant.is_empty() {
        if printer.is_json() {
            printer.json(&json!({ "memories": meant.len(), "forgotten": false }))?;
        }
        for memory in meant.iter().take(FEW) {
            printer.talk(about(&MemoryRow::from(memory)));
        }
        printer.talk(format!("{all} would be forgotten, for good."));
        if !meant.is_empty() {
            printer.talk(format!("{} does it.", typed("The same command with --yes")));
        }
        return Ok(Exit::Answered);
    }
    let ids: Vec<u64> = meant.iter().map(|memory| memory.id).collect();
    let gone = place.store().forget_memories(ids).await?;
    let hashes: Vec<[u8; 32]> = meant.iter().map(|memory| memory.hash).collect();
    let path = place.file.clone();
    place.close();
    let forgotten = store::forget(&path, "", hashes, Passed::new()).await?;
    if printer.is_json() {
        printer.json(&json!({ "memories": gone, "forgotten": true }))?;
    }
    printer.talk(format!("Forgot {all}."));
    forgotten.tell(&path, "steersman gc --yes", printer)?;
    printer.talk("Sessions that found them keep what they were shown, and copies of the store (backups) still hold them.");
    Ok(Exit::Answered)
}

/// Returns the rating that counts, or the memory that stands in its place.
fn rated(memory: &MemoryRow) -> String {
    if let Some(by) = memory.replaced_by {
        return format!("replaced by {by}");
    }
    let rated = memory.rating();
    rated.map_or_else(String::new, |rated| {
        format!("{} by {}", rated.rating, rated.by)
    })
}

/// Returns a memory with a text of it as one document.
fn document(memory: &MemoryRow, text: &str) -> Json {
    let mut document = serde_json::to_value(memory).unwrap_or_default();
    document["text"] = text.into();
    document
}

fn refused(error: MemoryError) -> CommandError {
    match error {
        MemoryError::Store(error) => error.into(),
        MemoryError::Unknown(_) => CommandError::usage(error.to_string()).hint(format!(
            "{} lists what there is",
            operand("steersman memory")
        )),
        other => CommandError::usage(other.to_string()),
    }
}
