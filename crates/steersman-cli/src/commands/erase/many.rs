//! `erase --subject`, `--tenant` and `--where`: erases what a person or a tenant has, or all sessions that match.

use super::EraseArgs;
use crate::cli::{Drive, Global};
use crate::commands::sessions;
use crate::error::{CommandError, Exit};
use crate::place::Place;
use crate::printer::{Printer, typed, yellow};
use crate::store::{ErasedContents, sweep};
use crate::words::{count, filter, quoted};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use steersman::Scope;
use steersman::runtime::erase::{ErasedMany, erased_lines};
use steersman::runtime::load::Load;
use steersman::runtime::store::{SessionQuery, StoreError};
use steersman::views::filter::Filter;
use steersman_machine::stored::ids::Name;

/// The sessions that are meant, with everything else of a scope.
enum Meant {
    Scope(Scope),
    /// All sessions that match.
    Where(String),
}

impl Meant {
    fn of(args: &EraseArgs) -> Result<Self, CommandError> {
        if let Some(filter) = &args.filter {
            return Ok(Self::Where(filter.clone()));
        }
        let name = |given: Option<&str>, what: &str| match given {
            Some("") => Err(CommandError::usage(format!("{what} has no name"))
                .hint("in a store without tenants: --subject NAME alone, or --where FILTER")),
            given => Ok(given.map(Name::from)),
        };
        Ok(Self::Scope(Scope {
            tenant: name(args.tenant.as_deref(), "the tenant")?.unwrap_or_default(),
            subject: name(args.subject.as_deref(), "the subject")?,
        }))
    }

    /// Returns the owner in words.
    fn told(&self) -> String {
        match self {
            Self::Where(_) => String::new(),
            Self::Scope(Scope { tenant, subject }) => match subject {
                Some(subject) if tenant.is_empty() => format!(" of subject `{subject}`"),
                Some(subject) => format!(" of subject `{subject}` of tenant `{tenant}`"),
                None => format!(" of tenant `{tenant}`"),
            },
        }
    }

    /// Returns the command that does it.
    fn typed(&self, args: &EraseArgs) -> String {
        let mut command = "steersman erase".to_owned();
        match self {
            Self::Where(text) => {
                let _ = write!(command, " --where {}", filter(text));
                command += if args.memory { " --memory" } else { "" };
                command += if args.alone { " --alone" } else { "" };
            }
            Self::Scope(Scope { tenant, subject }) => {
                for (option, name) in [("subject", subject.as_deref()), ("tenant", Some(&**tenant))]
                {
                    if let Some(name) = name.filter(|name| !name.is_empty()) {
                        let _ = write!(command, " --{option} {}", quoted(name));
                    }
                }
            }
        }
        command + " --yes"
    }

    /// Erases, or finds what would be erased if `apply` is false.
    async fn erase(
        &self,
        args: &EraseArgs,
        place: &Place,
        apply: bool,
    ) -> Result<ErasedMany, CommandError> {
        match self {
            Self::Scope(of) => Ok(place.steersman.erase_scope(of, apply).await?),
            Self::Where(text) => {
                let filter = Filter::parse(Some(text))?;
                let found = sessions::select(place, &filter).await?;
                let ids = found.into_iter().map(|info| info.id).collect();
                let with = (!args.alone, args.memory);
                Ok(place.steersman.erase_sessions(ids, with, apply).await?)
            }
        }
    }
}

pub(super) async fn run(
    args: &EraseArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let meant = Meant::of(args)?;
    let place = Place::required(global, &Drive::default()).await?;
    if args.yes {
        return carry_out(&meant, args, place, printer).await;
    }
    let found = meant.erase(args, &place, false).await?;
    if printer.is_json() {
        printer.json(&document(&meant, &found, false))?;
    }
    let all = told(&found);
    if all.is_empty() {
        printer.talk(format!("Nothing{} is here to erase.", meant.told()));
    } else {
        printer.talk(format!("{all}{} would be erased, for good.", meant.told()));
    }
    left(&found, &place, printer).await?;
    if !all.is_empty() {
        printer.talk(format!("Next:  {}", typed(&meant.typed(args))));
    }
    Ok(Exit::Answered)
}

async fn carry_out(
    meant: &Meant,
    args: &EraseArgs,
    place: Place,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let done = meant.erase(args, &place, true).await?;
    let (mut lines, mut verifies) = (0, true);
    for id in &done.sessions {
        let info = place.steersman.info(id).await?;
        let load = Load::new(place.store().clone(), info.id, info.salt);
        let report = load.inspect().await?;
        lines += report.lines as u64;
        verifies &= report.damaged.is_empty();
    }
    left(&done, &place, printer).await?;
    let contents = contents(&place, &done).await?;
    let file = place.file.clone();
    place.close();
    let swept = sweep(&file, contents).await?;
    if printer.is_json() {
        let mut document = document(meant, &done, true);
        document["verifies"] = verifies.into();
        document["deleted"] = swept.deleted().into();
        document["shared"] = swept.shared().into();
        printer.json(&document)?;
    }
    printer.talk(match told(&done) {
        all if all.is_empty() => format!("Nothing{} was left to erase.", meant.told()),
        all => format!(
            "Erased {all}{}. Everything still verifies: {}.",
            meant.told(),
            count(lines, "line")
        ),
    });
    if swept.deleted() > 0 {
        printer.talk(format!(
            "Deleted {} that nothing names any more.",
            count(swept.deleted(), "blob")
        ));
    }
    let again = meant.typed(args);
    swept.tell(&file, &again, printer)?;
    printer.talk("Ids, keys, and names of tenants and subjects stay. Copies of the store (backups) still hold all of it.");
    if !verifies {
        return Err(CommandError::store("a line does not verify any more")
            .hint("`steersman fsck` says which"));
    }
    if done.left.is_empty() {
        return Ok(Exit::Answered);
    }
    printer.next(
        &again,
        "erases the rest, once nothing is open or driven there",
    );
    Ok(Exit::Failed)
}

/// Names the sessions that are not erased.
async fn left(all: &ErasedMany, place: &Place, printer: &Printer) -> Result<(), CommandError> {
    for one in &all.left {
        let short = place.short(&one.session).await?;
        let (word, why) = (one.why.word(), &one.why);
        printer.talk(yellow(&format!("{short}  {word}: {why}")));
    }
    if all.left.iter().any(|one| one.why.word() == "open") {
        printer.talk("What is open is not erased: let it come to its end, or end it with `steersman cancel`.");
    }
    Ok(())
}

/// Returns the contents that are to be deleted, with the lines whose references to them do not count.
async fn contents(place: &Place, done: &ErasedMany) -> Result<ErasedContents, CommandError> {
    let sum = &done.sum;
    let mut contents: BTreeSet<[u8; 32]> = sum.contents.iter().chain(&sum.large).copied().collect();
    if contents.is_empty() {
        return Ok(ErasedContents::default());
    }
    let all = erased(place).await?;
    contents.retain(|hash| !all.bound.contains(hash));
    Ok(ErasedContents {
        contents,
        lines: all.contents.lines,
    })
}

/// Contents that erased lines of a store name.
#[derive(Default)]
pub(crate) struct ErasedAll {
    pub(crate) contents: ErasedContents,
    /// Hashes of the definitions that sessions are bound to.
    bound: BTreeSet<[u8; 32]>,
}

/// Finds what only erased lines of the store name. Sessions that cannot be read are passed over: all that they name stays.
pub(crate) async fn erased(place: &Place) -> Result<ErasedAll, CommandError> {
    let mut all = ErasedAll::default();
    for info in place.store().sessions(&SessionQuery::default()).await? {
        let found = match erased_lines(place.store(), &info).await {
            Ok(found) => found,
            Err(error @ StoreError::Io { .. }) => return Err(error.into()),
            Err(_) => continue,
        };
        all.bound.extend(found.bound);
        all.contents.contents.extend(found.contents);
        all.contents.lines.insert(info.id, found.lines);
    }
    let bound = &all.bound;
    all.contents.contents.retain(|hash| !bound.contains(hash));
    Ok(all)
}

fn document(meant: &Meant, all: &ErasedMany, is_done: bool) -> Json {
    let left = all.left.iter().map(|one| {
        json!({
            "session": &*one.session,
            "status": one.why.word(),
            "why": one.why.to_string(),
        })
    });
    let mut document = json!({
        "sessions": all.sessions.iter().map(|id| &**id).collect::<Vec<_>>(),
        "left": left.collect::<Vec<_>>(),
        "texts": all.sum.texts,
        "artifacts": all.sum.contents.len(),
        "memories": all.memories,
        "erased": is_done,
    });
    if let Meant::Scope(of) = meant {
        document["tenant"] = (&*of.tenant).into();
        document["subject"] = of.subject.as_deref().into();
        let holdings = serde_json::to_value(all.holdings).unwrap_or_default();
        let holdings = holdings.as_object().into_iter().flatten();
        for (name, number) in holdings {
            document[name] = number.clone();
        }
    }
    document
}

/// Returns what is erased in words; empty if it is nothing.
fn told(all: &ErasedMany) -> String {
    let sessions = all.sessions.len() as u64;
    let own = &all.holdings;
    let numbers = [
        (sessions, "session", "sessions"),
        (all.sum.texts, "text", "texts"),
        (all.memories, "memory", "memories"),
        (own.events, "event", "events"),
        (own.tokens, "token", "tokens"),
        (own.webhooks, "webhook", "webhooks"),
        (own.schedules, "schedule", "schedules"),
        (own.credentials, "credential", "credentials"),
        (
            own.conversations,
            "head of a conversation",
            "heads of conversations",
        ),
    ];
    let numbers = numbers.into_iter().filter(|(n, ..)| *n > 0);
    let told = numbers.map(|(n, one, many)| match n {
        1 => format!("1 {one}"),
        n => format!("{} {many}", crate::words::digits(n)),
    });
    told.collect::<Vec<_>>().join(", ")
}
