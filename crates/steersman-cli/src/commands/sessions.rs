//! `sessions`: lists sessions, newest first.

use crate::cli::Global;
use crate::commands::schedule;
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::place::{Place, shortest};
use crate::printer::{Printer, dim, typed, yellow};
use crate::words::{ago, count, digits, erased, list, money, table, width};
use jiff::Timestamp;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use steersman::runtime::engine::Engine;
use steersman::runtime::store::{SessionInfo, SessionQuery};
use steersman::views::cause::{self, Reason, Sums};
use steersman::views::filter::{self, Filter};
pub(crate) use steersman::views::list::status;
use steersman::views::list::{SessionRow, may_expire};
use steersman_machine::stored::ids::{Line, Name, Time};

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
    let filter = Filter::parse(args.filter.as_deref())?;
    let Some(place) = Place::existing(global).await? else {
        return none(global, printer);
    };
    let all = place.store().sessions(&SessionQuery::default()).await?;
    if all.is_empty() {
        if args.filter.is_none() {
            schedules(&place, printer).await?;
        }
        return none(global, printer);
    }
    let now = place.now();
    let found = select(&place, &filter).await?;
    let reruns = args.reruns || filter.names_reruns();
    let limit = if args.all { found.len() } else { args.limit };
    if let Some(by) = args.by {
        return sums(&place, found, by, reruns, printer).await;
    }
    let inbox = SessionQuery {
        inbox: true,
        ..SessionQuery::default()
    };
    let inbox = place.store().sessions(&inbox).await?;
    let (mut shown, mut keeps) = (Vec::new(), Keeps::new());
    for info in found.iter().take(limit) {
        let has_mail = inbox.iter().any(|other| other.id == info.id);
        let at = erased_at(&place, info, &mut keeps).await?;
        shown.push((info, Seen::of(&place, info, (has_mail, at)).await?));
    }
    if printer.is_json() {
        for (info, seen) in &shown {
            let mut document = serde_json::to_value(SessionRow::from(*info)).unwrap_or_default();
            document["inbox"] = seen.has_mail.into();
            if let Some(at) = seen
                .erased_at
                .and_then(|at| Timestamp::from_millisecond(at.0).ok())
            {
                document["erased_at"] = at.to_string().into();
            }
            document["reason"] = serde_json::to_value(&seen.reason).unwrap_or_default();
            document["stuck"] = seen.stuck.as_deref().into();
            printer.json(&document)?;
        }
        return Ok(Exit::Answered);
    }
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|(info, seen)| cells(info, seen, (&all, now)))
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
    for told in places(&shown) {
        printer.data(told)?;
    }
    let (counted, left_out) = cause::work(found.clone(), reruns);
    printer.talk(dim(&summary(&counted, left_out)));
    if args.filter.is_none() {
        schedules(&place, printer).await?;
    }
    let stuck = shown
        .iter()
        .filter(|(_, seen)| seen.stuck.is_some())
        .count();
    if stuck > 0 {
        let are = if stuck == 1 { "is" } else { "are" };
        printer.talk(yellow(&format!(
            "{} {are} stuck.",
            count(stuck as u64, "session")
        )));
        printer.next("steersman doctor", "names them, each with what helps");
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

/// Returns the cells of a session. `all` are the sessions of the store, `now` is the time.
fn cells(info: &SessionInfo, seen: &Seen, (all, now): (&[SessionInfo], i64)) -> Vec<String> {
    vec![
        shortest(&info.id, all.iter().map(|i| &*i.id)).to_owned(),
        info.network.to_string(),
        status(info).to_owned(),
        seen.why(info, now),
        ago(now, info.state.updated.0),
        format!("@{}", info.head),
        digits(info.state.tokens),
        money(info.state.micros),
        came_to(info),
        labels(info),
    ]
}

/// Prints the schedules of the store, if there are any. They are no sessions, so `--json` leaves them to `schedule`.
async fn schedules(place: &Place, printer: &Printer) -> Result<(), CommandError> {
    let all = place.steersman.schedules().await?;
    if all.is_empty() || printer.is_json() {
        return Ok(());
    }
    printer.data("")?;
    schedule::print(place, &all, printer).await
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
fn places(shown: &[(&SessionInfo, Seen)]) -> Vec<String> {
    let mut places: BTreeMap<Name, u64> = BTreeMap::new();
    for (info, _) in shown {
        if let Some(waits) = SessionRow::from(*info).places.into_iter().next() {
            *places.entry(waits.place).or_default() += 1;
        }
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

/// The reason of a session's state, as far as lists do not hold it.
struct Seen {
    reason: Option<Reason>,
    stuck: Option<String>,
    /// True if messages are in its inbox.
    has_mail: bool,
    /// Time at which its texts are erased.
    erased_at: Option<Time>,
}

impl Seen {
    async fn of(
        place: &Place,
        info: &SessionInfo,
        (has_mail, erased_at): (bool, Option<Time>),
    ) -> Result<Self, CommandError> {
        Ok(Self {
            has_mail,
            // A message in the inbox continues it.
            erased_at: erased_at.filter(|_| !has_mail),
            reason: reason(place, info).await?,
            stuck: stuck(place.engine(), info).await?,
        })
    }

    fn why(&self, info: &SessionInfo, now: i64) -> String {
        if cause::is_left_rerun(info) {
            return "left: a rerun goes on only if it is live".to_owned();
        }
        let reason = self.reason.as_ref().map(Reason::told);
        reason
            .or_else(|| self.stuck.clone())
            .or_else(|| Some(erased(now, self.erased_at?.0)))
            .unwrap_or_else(|| cause::waits(info))
    }
}

/// The definitions that keep sessions for a time only (true) or for ever, by digest.
type Keeps = BTreeMap<String, bool>;

/// Returns the time at which the texts of a session are erased.
async fn erased_at(
    place: &Place,
    info: &SessionInfo,
    known: &mut Keeps,
) -> Result<Option<Time>, CommandError> {
    let digest = info.state.definition.to_string();
    if !may_expire(info) || known.get(&digest) == Some(&false) {
        return Ok(None);
    }
    let seen = place.engine().inspect(&info.id).await?;
    let keeps = seen
        .network
        .as_ref()
        .is_some_and(|network| network.keep.is_some());
    known.insert(digest, keeps);
    Ok(seen.expires_at())
}

/// Returns the first cause of a failure or limit that ended a session.
async fn reason(place: &Place, info: &SessionInfo) -> Result<Option<Reason>, CommandError> {
    if !matches!(status(info), "failed" | "limit") {
        return Ok(None);
    }
    Ok(Reason::of(&place.engine().inspect(&info.id).await?))
}

/// Returns why a session is stuck, if it is.
pub(crate) async fn stuck(
    engine: &Engine,
    info: &SessionInfo,
) -> Result<Option<String>, CommandError> {
    let now = engine.clock().now();
    let mut last = None;
    if cause::may_be_silent(info, now) {
        let before = info.head.0.saturating_sub(1);
        let lines = engine.feed(&info.id, Line(before)).lines().await?;
        last = lines.last().map(|line| line.at);
    }
    Ok(cause::stuck(info, last, now))
}

/// Returns the sums of a list in one line: `5 sessions: 3 answered, 2 failed; 0.0120, 4,211 tokens`.
fn summary<'a>(
    counted: impl IntoIterator<Item = &'a SessionInfo> + Clone,
    reruns: usize,
) -> String {
    let mut sums = Sums::default();
    for info in counted.clone() {
        sums.add(info);
    }
    let by = counted.into_iter();
    let by = by.map(|info| (info, status(info).to_owned()));
    let by = Sums::by(by);
    let by: Vec<String> = by
        .iter()
        .map(|(status, sums)| format!("{} {status}", digits(sums.sessions)))
        .collect();
    let mut told = count(sums.sessions, "session");
    if !by.is_empty() {
        told = format!("{told}: {}", by.join(", "));
    }
    told = format!(
        "{told}; cost {}, {} tokens",
        money(sums.micros),
        digits(sums.tokens)
    );
    if reruns > 0 {
        told = format!(
            "{told}; {} not counted: --reruns",
            count(reruns as u64, "rerun")
        );
    }
    told
}

/// Prints sums by status, code or network.
async fn sums(
    place: &Place,
    found: Vec<SessionInfo>,
    by: By,
    reruns: bool,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let (counted, reruns) = cause::work(found, reruns);
    let mut named = Vec::new();
    for info in &counted {
        named.push((
            info,
            match by {
                By::Status => status(info).to_owned(),
                By::Network => info.network.to_string(),
                By::Code => match reason(place, info).await? {
                    Some(reason) => reason.code.to_string(),
                    None => continue,
                },
            },
        ));
    }
    let sums = Sums::by(named.iter().cloned());
    if printer.is_json() {
        for (name, sums) in &sums {
            let mut document = serde_json::to_value(sums).unwrap_or_default();
            document[by.word()] = name.as_str().into();
            printer.json(&document)?;
        }
        return Ok(Exit::Answered);
    }
    let rows: Vec<Vec<String>> = sums
        .iter()
        .map(|(name, sums)| {
            vec![
                name.clone(),
                digits(sums.sessions),
                digits(sums.model_calls),
                digits(sums.tokens),
                money(sums.micros),
            ]
        })
        .collect();
    let title = by.word().to_uppercase();
    let heading = [&*title, "SESSIONS", "CALLS", "TOKENS", "COST"];
    for (i, row) in table(&heading, &rows).into_iter().enumerate() {
        printer.data(if i == 0 { dim(&row) } else { row })?;
    }
    let counted = named.iter().map(|(info, _)| *info);
    printer.talk(dim(&summary(counted, reruns)));
    Ok(Exit::Answered)
}

fn none(global: &Global, printer: &Printer) -> Result<Exit, CommandError> {
    let file = locate::store(global.store.as_deref())?;
    printer.talk(format!("No sessions in {} yet.", locate::shown(&file)));
    printer.next("steersman run", "");
    Ok(Exit::Answered)
}

/// Returns what a session that ended came to, as its definition declares it: `paid=true cents=3990`.
fn came_to(info: &SessionInfo) -> String {
    if !matches!(status(info), "answered" | "failed" | "limit" | "cancelled") {
        return String::new();
    }
    let outcome: Option<Json> = serde_json::from_str(&info.state.outcome).ok();
    let values = outcome.iter().filter_map(Json::as_object).flatten();
    let known = values.filter(|(_, value)| !value.is_null());
    let told = known.map(|(name, value)| match value {
        Json::String(text) => format!("{name}={text}"),
        value => format!("{name}={value}"),
    });
    told.collect::<Vec<_>>().join(" ")
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

/// Returns the sessions that match a filter, newest first.
pub(crate) async fn select(
    place: &Place,
    filter: &Filter,
) -> Result<Vec<SessionInfo>, CommandError> {
    Ok(filter::select(place.engine(), filter, &SessionQuery::default()).await?)
}
