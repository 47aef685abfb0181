//! `sessions`: lists sessions, newest first.

use crate::cli::Global;
use crate::commands::schedule;
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::place::Place;
use crate::printer::{Printer, dim, typed, yellow};
use crate::source::Source;
use crate::words::{ago, count, digits, erased, list, money, table, width};
use std::collections::BTreeMap;
use steersman::runtime::store::{SessionInfo, SessionQuery};
use steersman::views::filter::{self, Filter};
use steersman::views::screen::{ListAsk, SessionLine, SessionsScreen, Summary, labels_of};
use steersman_machine::stored::ids::Name;

pub(crate) const LISTED: &str = "List sessions";

/// List sessions, newest first.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionsArgs {
    /// Only those that match: `status = waits and updated > -7d and vendor = Acme`, `outcome.refunded = true or cost > 1`.
    #[arg(long = "where", value_name = "FILTER")]
    filter: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 20)]
    limit: usize,
    /// All of them.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Only sums, by status, by the code of the failure or limit, or by network.
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["limit", "all"])]
    by: Option<By>,
    /// Count reruns in sums, too.
    #[arg(long)]
    reruns: bool,
}

/// The name by which sessions are summed up.
#[derive(Copy, Clone, Debug, clap::ValueEnum)]
enum By {
    /// The status.
    Status,
    /// The code of the failure or limit; sessions without one are left out.
    Code,
    /// The network.
    Network,
}

impl By {
    fn word(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Code => "code",
            Self::Network => "network",
        }
    }
}

pub(crate) async fn run(
    args: SessionsArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    Filter::parse(args.filter.as_deref())?;
    let Some(source) = Source::existing(global).await? else {
        let place = locate::shown(&locate::store(global.store.as_deref())?);
        return Ok(none(&place, printer));
    };
    let ask = ListAsk {
        filter: args.filter.clone(),
        limit: (!args.all).then_some(args.limit),
        by: args.by.map(|by| by.word().to_owned()),
        reruns: args.reruns.then_some(true),
    };
    let screen: SessionsScreen = source.list(&ask).await?;
    if screen.is_empty {
        schedules(&screen, printer)?;
        return Ok(none(&source.shown(), printer));
    }
    if let Some(by) = args.by {
        return sums(&screen, by, printer);
    }
    if printer.is_json() {
        for row in &screen.rows {
            printer.json(&row.document)?;
        }
        return Ok(Exit::Answered);
    }
    let rows: Vec<Vec<String>> = screen
        .rows
        .iter()
        .map(|row| cells(row, screen.now))
        .collect();
    let left_out = |column: usize| match column {
        WHY | OUTCOMES | LABELS => rows.iter().all(|row| row[column].is_empty()),
        UPDATED | LINE | TOKENS => width() < ALL_COLUMNS,
        _ => false,
    };
    let heading = [
        "SESSION", "NETWORK", "STATUS", "WHY", "UPDATED", "LINE", "TOKENS", "COST", "OUTCOME",
        "LABELS",
    ];
    let heading = kept(heading, left_out);
    let cells = rows.iter().map(|row| kept(row.iter().cloned(), left_out));
    for (i, row) in list(&heading, &cells.collect::<Vec<_>>())
        .into_iter()
        .enumerate()
    {
        printer.data(if i == 0 { dim(&row) } else { row })?;
    }
    for told in places(&screen.rows) {
        printer.data(told)?;
    }
    printer.talk(dim(&summary(&screen.summary)));
    schedules(&screen, printer)?;
    let stuck = screen.rows.iter().filter(|row| row.stuck.is_some()).count();
    if stuck > 0 {
        let are = if stuck == 1 { "is" } else { "are" };
        printer.talk(yellow(&format!(
            "{} {are} stuck.",
            count(stuck as u64, "session")
        )));
        printer.next("steersman doctor", "names them, each with what helps");
    }
    let more = screen.found.saturating_sub(screen.rows.len());
    if more > 0 {
        printer.talk(format!(
            "{} more: {}",
            count(more as u64, "session"),
            typed("steersman sessions --all")
        ));
    } else if let Some(first) = rows.first() {
        printer.next(format!("steersman show {}", first[0]), "");
    }
    Ok(Exit::Answered)
}

/// Returns the cells of a session. `now` is the time.
fn cells(row: &SessionLine, now: i64) -> Vec<String> {
    vec![
        row.short.clone(),
        row.network.to_string(),
        row.status.clone(),
        why(row, now),
        ago(now, row.updated),
        format!("@{}", row.line),
        digits(row.tokens),
        money(row.micros),
        row.outcome.clone(),
        row.labels.join(" "),
    ]
}

/// Prints the schedules of the store, if there are any. They are no sessions, so `--json` leaves them to `schedule`.
fn schedules(screen: &SessionsScreen, printer: &Printer) -> Result<(), CommandError> {
    if screen.schedules.is_empty() || printer.is_json() {
        return Ok(());
    }
    printer.data("")?;
    schedule::print_rows(&screen.schedules, printer)
}

/// Columns of the list that may be left out.
const WHY: usize = 3;
const UPDATED: usize = 4;
const LINE: usize = 5;
const TOKENS: usize = 6;
const OUTCOMES: usize = 8;
const LABELS: usize = 9;
/// Narrowest screen on which the list has all columns.
const ALL_COLUMNS: usize = 80;

/// Returns the cells of a row without those of columns that are left out.
fn kept<T>(row: impl IntoIterator<Item = T>, left_out: impl Fn(usize) -> bool) -> Vec<T> {
    let row = row.into_iter().enumerate();
    row.filter(|(column, _)| !left_out(*column))
        .map(|(_, cell)| cell)
        .collect()
}

/// Names each place that does not answer in full, with the number of sessions that wait for it.
fn places(rows: &[SessionLine]) -> Vec<String> {
    let mut places: BTreeMap<&Name, u64> = BTreeMap::new();
    for place in rows.iter().filter_map(|row| row.place.as_ref()) {
        *places.entry(place).or_default() += 1;
    }
    let told = places.into_iter().map(|(place, waiting)| {
        format!(
            "{place} does not answer: {} {}",
            count(waiting, "session"),
            if waiting == 1 { "waits" } else { "wait" }
        )
    });
    told.collect()
}

/// Returns the reason of a session's state.
fn why(row: &SessionLine, now: i64) -> String {
    if row.is_left {
        return "left: a rerun goes on only if it is live".to_owned();
    }
    let reason = row.reason.clone().or_else(|| row.stuck.clone());
    reason
        .or_else(|| Some(erased(now, row.erased_at?)))
        .unwrap_or_else(|| row.waits.clone())
}

/// Returns the sums of a list in one line: `5 sessions: 3 answered, 2 failed; 0.0120, 4,211 tokens`.
fn summary(of: &Summary) -> String {
    let by = of.by_status.iter();
    let by: Vec<String> = by
        .map(|(status, sessions)| format!("{} {status}", digits(*sessions)))
        .collect();
    let mut told = count(of.sessions, "session");
    if !by.is_empty() {
        told = format!("{told}: {}", by.join(", "));
    }
    told = format!(
        "{told}; cost {}, {} tokens",
        money(of.micros),
        digits(of.tokens)
    );
    if of.reruns > 0 {
        told = format!(
            "{told}; {} not counted: --reruns",
            count(of.reruns as u64, "rerun")
        );
    }
    told
}

/// Prints sums by status, code or network.
fn sums(screen: &SessionsScreen, by: By, printer: &Printer) -> Result<Exit, CommandError> {
    if printer.is_json() {
        for row in &screen.sums {
            let mut document = serde_json::to_value(&row.sums).unwrap_or_default();
            document[by.word()] = row.name.as_str().into();
            printer.json(&document)?;
        }
        return Ok(Exit::Answered);
    }
    let rows: Vec<Vec<String>> = screen
        .sums
        .iter()
        .map(|row| {
            vec![
                row.name.clone(),
                digits(row.sums.sessions),
                digits(row.sums.model_calls),
                digits(row.sums.tokens),
                money(row.micros),
            ]
        })
        .collect();
    let title = by.word().to_uppercase();
    let heading = [&*title, "SESSIONS", "CALLS", "TOKENS", "COST"];
    for (i, row) in table(&heading, &rows).into_iter().enumerate() {
        printer.data(if i == 0 { dim(&row) } else { row })?;
    }
    printer.talk(dim(&summary(&screen.summary)));
    Ok(Exit::Answered)
}

fn none(place: &str, printer: &Printer) -> Exit {
    printer.talk(format!("No sessions in {place} yet."));
    printer.next("steersman run", "");
    Exit::Answered
}

/// Returns the labels as text: `order=4711 vendor=Acme`.
pub(crate) fn labels(info: &SessionInfo) -> String {
    labels_of(info).join(" ")
}

/// Returns the sessions that match a filter, newest first.
pub(crate) async fn select(
    place: &Place,
    filter: &Filter,
) -> Result<Vec<SessionInfo>, CommandError> {
    Ok(filter::select(place.engine(), filter, &SessionQuery::default()).await?)
}
