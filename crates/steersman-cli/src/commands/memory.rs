//! `memory`: lists, searches, shows, rates and forgets memories that agents keep across sessions.

use crate::address::Address;
use crate::cli::{Drive, Global};
use crate::error::{CommandError, Exit};
use crate::place::Place;
use crate::printer::{Printer, bold, dim, typed};
use crate::store::{self, Passed};
use crate::words::{ago, bytes, left, operand, table};
use serde_json::{Value as Json, json};
use steersman::runtime::memory::MemoryError;
use steersman::runtime::store::{Memory, MemoryQuery, Rated};
use steersman::views::list::MemoryRow;
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
            list(&place, query, all, printer).await
        }
        MemoryAct::Search { query, most } => {
            search(&place, scope, &query.join(" "), most, printer).await
        }
        MemoryAct::Show { id } => show(&place, id, printer).await,
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
            if printer.is_json() {
                printer.json(&json!({ "memory": id, "rating": rating }))?;
            }
            printer.talk(format!("Rated memory {id} {rating} of {BEST}."));
            Ok(Exit::Answered)
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

async fn list(
    place: &Place,
    query: MemoryQuery,
    every: bool,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let scope = query.scope.clone();
    let memories = place.engine().memories(query).await?;
    if printer.is_json() {
        for memory in &memories {
            printer.json(&document(memory))?;
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
    let now = place.now();
    let shown = if every { memories.len() } else { FEW };
    let rows: Vec<Vec<String>> = memories
        .iter()
        .take(shown)
        .map(|memory| {
            vec![
                memory.id.to_string(),
                memory.name.to_string(),
                memory.scope.to_string(),
                bytes(memory.len),
                ago(now, memory.at.0),
                memory.by.to_string(),
                rated(memory),
                memory.until.map_or_else(String::new, |at| left(now, at.0)),
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
    printer.next(format!("steersman memory show {}", memories[0].id), "");
    Ok(Exit::Answered)
}

/// Searches one scope, or every scope if none is named.
async fn search(
    place: &Place,
    scope: Option<&str>,
    query: &str,
    most: usize,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let mut scopes: Vec<String> = if let Some(scope) = scope {
        vec![scope.to_owned()]
    } else {
        let all = place.engine().memories(MemoryQuery::default()).await?;
        all.iter().map(|memory| memory.scope.to_string()).collect()
    };
    scopes.sort();
    scopes.dedup();
    let mut any = false;
    for scope in &scopes {
        let found = place
            .engine()
            .search_memories(None, scope, query, most)
            .await;
        for found in found.map_err(refused)? {
            any = true;
            if printer.is_json() {
                let mut document = document(&found.memory);
                document["text"] = found.text.into();
                printer.json(&document)?;
                continue;
            }
            printer.data(about(&found.memory))?;
            for line in found.text.lines().filter(|line| !line.trim().is_empty()) {
                printer.data(format!("  {line}"))?;
            }
        }
    }
    if !any && !printer.is_json() {
        printer.talk("Nothing that is remembered has these words.");
    }
    Ok(Exit::Answered)
}

fn about(memory: &Memory) -> String {
    let rated = match rated(memory) {
        rated if rated.is_empty() || memory.replaced.is_some() => rated,
        rated => format!("rated {rated}"),
    };
    let rated = match &*rated {
        "" => rated,
        rated => format!(", {rated}"),
    };
    let (id, name, scope) = (memory.id, &memory.name, &memory.scope);
    format!("{id}  {}   {}", bold(name), dim(&format!("{scope}{rated}")))
}

async fn show(place: &Place, id: u64, printer: &Printer) -> Result<Exit, CommandError> {
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
    let text = String::from_utf8_lossy(&content);
    if printer.is_json() {
        let mut document = document(&memory);
        document["text"] = Json::from(&*text);
        printer.json(&document)?;
        return Ok(Exit::Answered);
    }
    printer.talk(about(&memory));
    let mut facts = vec![
        format!("saved {} by {}", ago(place.now(), memory.at.0), memory.by),
        format!("network {}", memory.network),
    ];
    if let Some(session) = &memory.session {
        facts.push(format!("session {}", place.short(session).await?));
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
            printer.talk(about(memory));
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
fn rated(memory: &Memory) -> String {
    if let Some(by) = memory.replaced {
        return format!("replaced by {by}");
    }
    let rated = memory.rating();
    rated.map_or_else(String::new, |rated| {
        format!("{} by {}", rated.rating, rated.by)
    })
}

fn document(memory: &Memory) -> Json {
    serde_json::to_value(MemoryRow::from(memory)).unwrap_or_default()
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
