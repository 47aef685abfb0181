//! `top`: the fleet of a store, live on a terminal; elsewhere one table.

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::place::Place;
use crate::play::Leaving;
use crate::printer::{Printer, bold, dim, red, yellow};
use crate::words::{count, digits, duration, height, line as one_line, money, span, table, width};
use std::io::{IsTerminal, Write as _};
use std::time::{Duration, Instant};
use steersman::runtime::store::SessionQuery;
use steersman::views::top::{Fleet, NetworkRow, SlowRow, StuckRow, Top, WaitRow};
use steersman_machine::stored::ids::{Line, Time};

pub(crate) const LISTED: &str =
    "Watch all sessions of the store: statuses, rates, cost, waits, slow calls";

/// Watch all sessions of the store: statuses, rates, cost, what waits for whom, slow calls. Without a terminal it prints one
/// table.
#[derive(Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// Time between two refreshes, at least 250ms.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    every: Duration,
    /// End after so many refreshes.
    #[arg(long, value_name = "N")]
    refreshes: Option<u64>,
    /// Count reruns in sums, too.
    #[arg(long)]
    reruns: bool,
}

/// Shortest time between two refreshes.
const SHORTEST: Duration = Duration::from_millis(250);
/// Time after which all sessions are read again.
const ALL: Duration = Duration::from_secs(20);
/// Begins and ends the other screen of a terminal, and goes to its top.
const OTHER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const BACK: &str = "\u{1b}[?25h\u{1b}[?1049l";
const HOME: &str = "\u{1b}[H\u{1b}[J";

pub(crate) async fn run(
    args: TopArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if args.every < SHORTEST {
        return Err(CommandError::usage("`--every` is shorter than 250ms")
            .hint("a terminal that is drawn more often cannot be read"));
    }
    let Some(place) = Place::existing(global).await? else {
        let file = locate::store(global.store.as_deref())?;
        printer.talk(format!("No sessions in {} yet.", locate::shown(&file)));
        printer.next("steersman run", "");
        return Ok(Exit::Answered);
    };
    let mut fleet = Fleet::counting(args.reruns);
    let is_live = std::io::stdout().is_terminal() && !printer.is_json();
    if !is_live {
        look(&place, &mut fleet, true).await?;
        measure(&place, &mut fleet).await?;
        let top = fleet.top(Time(place.now()));
        if printer.is_json() {
            printer.view(&top)?;
            return Ok(Exit::Answered);
        }
        for row in rows(&top, &fleet, place.now(), None) {
            printer.data(row)?;
        }
        return Ok(Exit::Answered);
    }
    let mut leaving = Leaving::listen()?;
    control(OTHER)?;
    let watched = watch(&args, &place, printer, &mut fleet, &mut leaving).await;
    control(BACK)?;
    watched?;
    Ok(Exit::Answered)
}

/// Writes a sequence for the terminal.
fn control(sequence: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(sequence.as_bytes())?;
    out.flush()
}

/// Draws the fleet until the person leaves.
async fn watch(
    args: &TopArgs,
    place: &Place,
    printer: &Printer,
    fleet: &mut Fleet,
    leaving: &mut Leaving,
) -> Result<(), CommandError> {
    let (mut drawn, mut all) = (0, None::<Instant>);
    loop {
        let (is_first, is_old) = (all.is_none(), all.is_none_or(|all| all.elapsed() >= ALL));
        if is_old {
            all = Some(Instant::now());
        }
        look(place, fleet, is_old).await?;
        if is_first {
            measure(place, fleet).await?;
        }
        let top = fleet.top(Time(place.now()));
        let height = height();
        control(HOME)?;
        for row in rows(&top, fleet, place.now(), Some(height))
            .iter()
            .take(height)
        {
            printer.data(row)?;
        }
        drawn += 1;
        if args.refreshes == Some(drawn) {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = leaving.wanted() => return Ok(()),
            () = tokio::time::sleep(args.every) => {}
        }
    }
}

/// Reads what changed, or all sessions.
async fn look(place: &Place, fleet: &mut Fleet, all: bool) -> Result<(), CommandError> {
    if let Some(queries) = fleet.changed().filter(|_| !all) {
        for query in queries {
            fleet.update(place.store().sessions(&query).await?);
        }
    } else {
        let query = SessionQuery::default();
        fleet.replace(place.store().sessions(&query).await?);
    }
    for (session, head) in fleet.unknown(Time(place.now())) {
        let before = Line(head.0.saturating_sub(1));
        let lines = place.engine().feed(&session, before).lines().await?;
        if let Some(last) = lines.last() {
            fleet.heard(&session, head, last.at);
        }
    }
    Ok(())
}

/// Number of lines that are read first to find those of the last minute.
const LINES: u64 = 64;

/// Reads from the logs what the sessions spent in the last minute.
async fn measure(place: &Place, fleet: &mut Fleet) -> Result<(), CommandError> {
    let now = Time(place.now());
    for (session, head) in fleet.recent(now) {
        let mut most = LINES;
        loop {
            let before = Line(head.0.saturating_sub(most));
            let lines = place.engine().feed(&session, before).lines().await?;
            let reaches_back = lines
                .first()
                .is_none_or(|line| now.0.saturating_sub(line.at.0) >= MINUTE);
            if reaches_back || before == Line::NONE {
                let known = lines.iter().filter(|line| line.n <= head);
                fleet.spent(known.map(|line| &**line), now);
                break;
            }
            most = most.saturating_mul(4);
        }
    }
    Ok(())
}

/// A minute in milliseconds.
const MINUTE: i64 = 60_000;

/// Number of rows that each table has at most, if the screen is high enough for all of them.
const EACH: usize = 10;
/// Rows of the screen that are no rows of tables: sums, headings and blank lines.
const OTHERS: usize = 16;

/// Heading of the table of networks.
const NETWORKS: [&str; 7] = [
    "NETWORK",
    "SESSIONS",
    "RUNNING",
    "WAITING",
    "FAILED OR LIMIT",
    "TOKENS",
    "COST",
];

/// Returns the fleet as rows for a screen of this height; `None` means that it has no end.
fn rows(top: &Top, fleet: &Fleet, now: i64, height: Option<usize>) -> Vec<String> {
    let each = height.map_or(EACH, |height| {
        (height.saturating_sub(OTHERS) / 4).clamp(1, EACH)
    });
    let all = &top.all;
    let statuses = top.statuses.iter();
    let statuses: Vec<String> = statuses
        .map(|(status, count)| format!("{} {status}", digits(*count)))
        .collect();
    let left_out = match top.reruns {
        0 => String::new(),
        n => format!("; {} not counted: --reruns", count(n, "rerun")),
    };
    let wide = width();
    let mut rows = vec![
        one_line(
            &format!(
                "{}: {}{left_out}",
                count(all.sessions, "session"),
                statuses.join(", ")
            ),
            wide,
        ),
        one_line(
            &format!(
                "{} calls, {} tokens, cost {};  now {} calls/min, {} tokens/min, {:.4}/h",
                digits(all.model_calls),
                digits(all.tokens),
                money(all.micros),
                digits(top.rates.model_calls),
                digits(top.rates.tokens),
                top.rates.cost,
            ),
            wide,
        ),
    ];
    if let Some(first) = rows.first_mut() {
        *first = bold(first);
    }
    let short = |id: &str| fleet.short(id).to_owned();
    let networks = |row: &NetworkRow| {
        vec![
            row.network.to_string(),
            digits(row.sums.sessions),
            digits(row.running),
            digits(row.waiting),
            digits(row.failed),
            digits(row.sums.tokens),
            money(row.sums.micros),
        ]
    };
    section(
        &mut rows,
        &NETWORKS,
        (&top.networks, networks),
        each,
        str::to_owned,
    );
    let waits = |row: &WaitRow| {
        vec![
            count(row.sessions, "session"),
            quiet(now, row.since),
            short(&row.first),
            row.what.clone(),
        ]
    };
    section(
        &mut rows,
        &["WAITING", "LONGEST", "SESSION", "WHY"],
        (&top.waits, waits),
        each,
        str::to_owned,
    );
    let slow = |row: &SlowRow| {
        vec![
            short(&row.session),
            quiet(now, row.since),
            format!("@{}", row.line),
            row.owner.clone().unwrap_or_default(),
            row.network.to_string(),
        ]
    };
    let heading = ["SLOW SESSION", "SILENT FOR", "LINE", "PROCESS", "NETWORK"];
    section(&mut rows, &heading, (&top.slow, slow), each, yellow);
    let stuck = |row: &StuckRow| {
        vec![
            short(&row.session),
            row.network.to_string(),
            row.why.clone(),
        ]
    };
    section(
        &mut rows,
        &["STUCK SESSION", "NETWORK", "WHY"],
        (&top.stuck, stuck),
        each,
        red,
    );
    rows
}

/// Renders the time since then.
fn quiet(now: i64, then: Time) -> String {
    span(now.saturating_sub(then.0))
}

/// Adds a table with at most so many rows, and says how many more there are. Adds nothing if it has no row.
fn section<T>(
    rows: &mut Vec<String>,
    heading: &[&str],
    (all, row): (&[T], impl Fn(&T) -> Vec<String>),
    most: usize,
    paint: fn(&str) -> String,
) {
    if all.is_empty() {
        return;
    }
    let shown: Vec<Vec<String>> = all.iter().take(most).map(row).collect();
    rows.push(String::new());
    for (k, row) in table(heading, &shown).into_iter().enumerate() {
        rows.push(match k {
            0 => dim(&row),
            _ => paint(&row),
        });
    }
    if all.len() > most {
        rows.push(dim(&format!("{} more", digits((all.len() - most) as u64))));
    }
}
