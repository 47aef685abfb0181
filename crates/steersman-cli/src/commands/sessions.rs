//! `sessions`: lists sessions, newest first.

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::filter::{Field, Filter};
use crate::locate;
use crate::place::{Place, shortest};
use crate::printer::{Printer, dim, typed};
use crate::words::{ago, count, digits, money, table};
use steersman::runtime::session::Settled;
use steersman::runtime::store::{SessionInfo, SessionQuery};
use steersman::views::list::SessionRow;
pub(crate) use steersman::views::list::status;

pub(crate) const LISTED: &str = "List sessions";

/// List sessions, newest first.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionsArgs {
    /// Only those that match: `status = waits and updated > -7d and vendor = Acme`.
    #[arg(long = "where", value_name = "FILTER")]
    filter: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 20)]
    limit: usize,
    /// All of them.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

pub(crate) async fn run(
    args: SessionsArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let filter = Filter::parse(args.filter.as_deref())?;
    let Some(place) = Place::existing(global).await? else {
        return none(global, printer);
    };
    let all = place.store().sessions(&SessionQuery::default()).await?;
    if all.is_empty() {
        return none(global, printer);
    }
    let now = place.now();
    let found = select(&place, &filter).await?;
    let limit = if args.all { found.len() } else { args.limit };
    if printer.is_json() {
        let inbox = SessionQuery {
            inbox: true,
            ..SessionQuery::default()
        };
        let inbox = place.store().sessions(&inbox).await?;
        for info in found.iter().take(limit) {
            let mut document = serde_json::to_value(SessionRow::from(info)).unwrap_or_default();
            document["inbox"] = inbox.iter().any(|other| other.id == info.id).into();
            printer.json(&document)?;
        }
        return Ok(Exit::Answered);
    }
    let rows: Vec<Vec<String>> = found
        .iter()
        .take(limit)
        .map(|info| {
            vec![
                shortest(&info.id, all.iter().map(|i| &*i.id)).to_owned(),
                info.network.to_string(),
                status_with_place(info, now),
                ago(now, info.state.updated.0),
                info.head.to_string(),
                digits(info.state.tokens),
                money(info.state.micros),
                labels(info),
            ]
        })
        .collect();
    let heading = [
        "SESSION", "NETWORK", "STATUS", "UPDATED", "LINE", "TOKENS", "COST", "LABELS",
    ];
    for (i, row) in table(&heading, &rows).into_iter().enumerate() {
        printer.data(if i == 0 { dim(&row) } else { row })?;
    }
    if found.len() > limit {
        printer.talk(format!(
            "{} more: {}",
            count((found.len() - limit) as u64, "session"),
            typed("steersman sessions --all")
        ));
    } else if let Some(first) = rows.first() {
        printer.next(format!("steersman show {}", first[0]), "");
    }
    Ok(Exit::Answered)
}

fn none(global: &Global, printer: &Printer) -> Result<Exit, CommandError> {
    let file = locate::store(global.store.as_deref())?;
    printer.talk(format!("No sessions in {} yet.", locate::shown(&file)));
    printer.next("steersman run", "");
    Ok(Exit::Answered)
}

/// Returns the labels as text: `order=4711 vendor=Acme`.
pub(crate) fn labels(info: &SessionInfo) -> String {
    each_label(info).join(" ")
}

pub(crate) fn each_label(info: &SessionInfo) -> Vec<String> {
    info.labels
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

/// Returns the names of all labels of these sessions.
pub(crate) fn label_names(all: &[SessionInfo]) -> impl Iterator<Item = &str> {
    all.iter()
        .flat_map(|info| info.labels.iter().map(|(name, _)| &**name))
}

/// Returns the sessions that match a filter, newest first.
pub(crate) async fn select(
    place: &Place,
    filter: &Filter,
) -> Result<Vec<SessionInfo>, CommandError> {
    let all = place.store().sessions(&SessionQuery::default()).await?;
    filter.known_among(label_names(&all))?;
    let now = place.now();
    let mut found = Vec::new();
    for info in all {
        let failed = failed(place, filter, &info).await?;
        if filter.holds(now, |name| value(&info, now, failed.as_deref(), name))? {
            found.push(info);
        }
    }
    Ok(found)
}

/// Returns the code of the failure that ended a session, if the filter asks for it. Lists do not hold it.
async fn failed(
    place: &Place,
    filter: &Filter,
    info: &SessionInfo,
) -> Result<Option<String>, CommandError> {
    if !filter.mentions("failed") || &*info.state.status != "failed" {
        return Ok(None);
    }
    let seen = place.engine().inspect(&info.id).await?;
    Ok(match seen.settled {
        Settled::Failed { code, .. } => Some(code.to_string()),
        _ => None,
    })
}

/// Returns the value of a filter's name in a session. `failed` is the value of the name `failed`.
fn value(info: &SessionInfo, now: i64, failed: Option<&str>, name: &str) -> Option<Field> {
    match name {
        "failed" => Some(Field::Text(failed?.to_owned())),
        other => field(info, now, other),
    }
}

/// Returns the value of a filter's name in a session, as far as lists hold it.
pub(crate) fn field(info: &SessionInfo, now: i64, name: &str) -> Option<Field> {
    Some(match name {
        "status" => Field::Text(status(info).to_owned()),
        "network" => Field::Text(info.network.to_string()),
        // The filter may give the name or the digest.
        "definition" => Field::Any(vec![
            info.network.to_string(),
            info.state.definition.to_string(),
        ]),
        "digest" => Field::Text(info.state.definition.to_string()),
        "updated" => Field::Time(info.state.updated.0),
        "age" => Field::Span(now.saturating_sub(info.created.0)),
        "created" => Field::Time(info.created.0),
        "cost" => Field::Number(info.state.micros as f64 / 1e6),
        "tokens" => Field::Number(info.state.tokens as f64),
        "calls" => Field::Number(info.state.model_calls as f64),
        label => Field::Text(
            info.labels
                .iter()
                .find(|(name, _)| **name == *label)?
                .1
                .to_string(),
        ),
    })
}

/// Returns the status for a row of the list, with the place that does not answer and the time since then.
fn status_with_place(info: &SessionInfo, now: i64) -> String {
    let row = SessionRow::from(info);
    match row.places.first() {
        Some(waits) => format!(
            "{} for {}, parked {}",
            row.status,
            waits.place,
            ago(now, waits.since.0)
        ),
        None => row.status,
    }
}
