//! `rerun --where`: reruns many sessions, with a table of the changes and a report.

use super::{Changes, Grades, Idle, RerunArgs, Spot, calls, not_repeated, sentence, with_idle};
use crate::commands::{diff, sessions};
use crate::error::{CommandError, Exit};
use crate::grading::Sheet;
use crate::place::{Place, shortest};
use crate::printer::{Printer, bold, dim, green, plain, red, yellow};
use crate::words::{count, digits, line, money, table};
use futures::stream::{self, StreamExt as _};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use steersman::runtime::store::SessionInfo;
use steersman::views::cause;
use steersman::views::filter::Filter;
use steersman::views::rerun::{Reran, Verdict, differs};
use steersman::{Diff, Rerunned};

/// One rerun of one session, with its result.
struct SessionRerun {
    session: String,
    short: String,
    ran: Result<(Rerunned, Diff), String>,
    /// The values of `--set` that changed nothing in it.
    idle: Vec<Idle>,
}

/// All results, in the order of the table. `None` is that of a session that could not be rerun.
const RESULTS: [Option<Verdict>; 6] = [
    Some(Verdict::Same),
    Some(Verdict::Partial),
    Some(Verdict::Differs),
    Some(Verdict::Leaf),
    Some(Verdict::Failed),
    None,
];

fn word(result: Option<Verdict>) -> &'static str {
    result.map_or("error", Verdict::word)
}

impl SessionRerun {
    fn result(&self) -> Option<Verdict> {
        let ran = self.ran.as_ref().ok();
        ran.map(|(ran, found)| Verdict::of(ran, found))
    }

    fn micros(&self) -> u64 {
        self.ran.as_ref().map_or(0, |(ran, _)| ran.micros)
    }

    /// Returns the number of live model calls, and of those that the recording answered.
    fn calls(&self) -> (u64, u64) {
        let ran = self.ran.as_ref();
        ran.map_or((0, 0), |(ran, _)| (ran.live_calls, ran.recorded_calls))
    }

    /// Returns the tokens of the session and of the rerun, including those of recorded answers.
    fn tokens(&self) -> (u64, u64) {
        let ran = self.ran.as_ref();
        ran.map_or((0, 0), |(_, found)| (found.tokens.a, found.tokens.b))
    }

    /// Returns true if the result differs, or is not known.
    fn differs(&self) -> bool {
        let ran = self.ran.as_ref();
        ran.map_or(true, |(ran, found)| differs(ran, found))
    }

    /// Returns the last column of the table: what differs, what was not repeated, or why there is no result.
    fn detail(&self) -> String {
        match &self.ran {
            Ok((ran, found)) => {
                let told = match Verdict::of(ran, found) {
                    Verdict::Leaf => ran.leaf.clone(),
                    Verdict::Partial => not_repeated(ran),
                    Verdict::Same if ran.live_calls == 0 => Some("nobody was asked".to_owned()),
                    Verdict::Same | Verdict::Differs | Verdict::Failed => None,
                };
                told.unwrap_or_else(|| diff::short(found))
            }
            Err(why) => why.clone(),
        }
    }

    /// Returns the row of the table, with at most so many characters in its last column.
    fn row(&self, most: usize) -> [String; 7] {
        let (live, recorded) = self.calls();
        [
            self.short.clone(),
            word(self.result()).to_owned(),
            live.to_string(),
            recorded.to_string(),
            from_to(self.tokens()),
            money(self.micros()),
            line(&self.detail(), most),
        ]
    }

    fn document(&self) -> Json {
        match &self.ran {
            Ok((ran, found)) => with_idle(Reran::of(ran, found, &self.session, None), &self.idle),
            Err(why) => json!({ "of": self.session, "result": word(None), "error": why }),
        }
    }

    /// Renders the report page of the session.
    fn page(&self) -> String {
        let mut page = format!("# {}: {}\n\n", self.session, word(self.result()));
        let (ran, found) = match &self.ran {
            Ok(ran) => ran,
            Err(why) => {
                let _ = writeln!(page, "It could not be rerun: {why}");
                return page;
            }
        };
        let _ = writeln!(page, "Rerun: `{}`. {}.\n", ran.session, sentence(ran));
        let _ = writeln!(
            page,
            "{}. Price: {}.\n\n```text",
            calls(ran),
            money(ran.micros)
        );
        for row in diff::rows(found, &self.short, "rerun") {
            let _ = writeln!(page, "{}", plain(&row));
        }
        if let Some(left_out) = not_repeated(ran) {
            let _ = writeln!(page, "{left_out}");
        }
        page.push_str("```\n");
        page
    }
}

/// The reason why no more sessions were rerun.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Stopped {
    Not,
    Cost,
    Interrupt,
}

pub(super) async fn run(
    args: &RerunArgs,
    filter: &str,
    changes: &Changes,
    place: &Place,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if args
        .cost
        .is_some_and(|cost| !cost.is_finite() || cost < 0.0)
    {
        return Err(CommandError::usage("--cost is not an amount of money").hint("--cost 5.00"));
    }
    if let Some(folder) = &args.report {
        prepare(folder)?;
    }
    let filter = Filter::parse(Some(filter))?;
    let mut found = sessions::select(place, &filter).await?;
    (found, _) = cause::work(found, filter.names_reruns());
    let matching = found.len();
    found.retain(|info| info.head.is_some());
    if found.len() < matching {
        let new = count((matching - found.len()) as u64, "session");
        printer.talk(format!(
            "{new} left out: nothing was recorded yet (status `new`)."
        ));
    }
    let all = found.len();
    found.truncate(args.limit.unwrap_or(all));
    if found.is_empty() {
        return Err(CommandError::usage("no session matches: nothing was rerun")
            .hint("steersman sessions --where FILTER lists those that do; reruns themselves are left out"));
    }
    all_can_be_set(changes, place, &found).await?;
    let grades = graded_by(args, changes, &found, place, printer).await?;
    let mut sheet = match &grades {
        Some(grades) => Some(grades.sheet(args)?),
        None => None,
    };
    if let Some(folder) = &args.report {
        make(folder)?;
    }
    let (reruns, stopped) = rerun_all(args, changes, place, &found, printer).await?;
    print(&reruns, printer)?;
    say_idle(changes, &reruns, printer);
    let is_done = stopped != Stopped::Interrupt;
    if let (Some(grades), Some(sheet), true) = (&grades, &mut sheet, is_done) {
        measure(grades, sheet, &reruns, args, place, printer).await?;
    }
    if let Some(folder) = &args.report {
        report(folder, &reruns, stopped, args)?;
        if let Some(sheet) = &sheet {
            write(&folder.join("grades.json"), sheet.measured())?;
        }
        let summary = folder.join("summary.md");
        printer.talk(format!("Report: {}", summary.display()));
    }
    let done = format!(
        "{} of {} were made",
        reruns.len(),
        count(found.len() as u64 * u64::from(args.repeat), "rerun")
    );
    match stopped {
        Stopped::Interrupt => {
            printer.complain(format!("{}: {done}.", yellow("interrupted")));
            return Ok(Exit::Interrupted);
        }
        Stopped::Cost => printer.complain(format!(
            "{} at the limit of {}: {done}.",
            yellow("stopped"),
            args.cost.unwrap_or_default()
        )),
        Stopped::Not => {}
    }
    if let Some(sheet) = sheet {
        return sheet.finish(&args.grading, printer);
    }
    Ok(if reruns.iter().any(SessionRerun::differs) {
        Exit::Differs
    } else {
        Exit::Answered
    })
}

/// Says which values of `--set` changed nothing in any session, with the reason in the first.
fn say_idle(changes: &Changes, reruns: &[SessionRerun], printer: &Printer) {
    let Some(first) = reruns.first() else {
        return;
    };
    let is_idle = |one: &SessionRerun, path: &str| one.idle.iter().any(|idle| idle.path == path);
    for Idle { path, why } in &first.idle {
        if reruns.iter().all(|one| is_idle(one, path)) {
            let (all, short) = (count(reruns.len() as u64, "rerun"), &first.short);
            let text = format!("{why} ({short}; the same in all {all})");
            changes.warn_once(path, &text, printer);
        }
    }
}

/// Returns the grades by which the sessions are measured, if `--grade` was given. They must be of one network.
async fn graded_by(
    args: &RerunArgs,
    changes: &Changes,
    found: &[SessionInfo],
    place: &Place,
    printer: &Printer,
) -> Result<Option<Grades>, CommandError> {
    let first = &found[0];
    let other = found.iter().find(|info| info.network != first.network);
    if let (true, Some(other)) = (args.grading.grade, other) {
        let what = format!(
            "--grade measures sessions of one definition, and these are of `{}` and `{}`",
            first.network, other.network
        );
        return Err(CommandError::usage(what)
            .hint(format!("--where \"definition = {} and ..\"", first.network)));
    }
    Grades::of(args, changes, &first.id, place, printer).await
}

/// Measures all reruns, in the order of the table.
async fn measure(
    grades: &Grades,
    sheet: &mut Sheet<'_>,
    reruns: &[SessionRerun],
    args: &RerunArgs,
    place: &Place,
    printer: &Printer,
) -> Result<(), CommandError> {
    let runs = reruns.iter().map(|rerun| async move {
        match &rerun.ran {
            Ok((ran, _)) => grades.measure(ran, &rerun.session, place).await,
            Err(why) => Ok(grades.unmeasured(&rerun.session, why)),
        }
    });
    let mut measured = stream::iter(runs).buffered(usize::from(args.parallel));
    while let Some(graded) = measured.next().await {
        sheet.add(graded?, printer)?;
    }
    Ok(())
}

/// The hint for a `--report` that cannot be used.
const REPORT: &str = "the report is a folder with a page for each session: --report nightly/";

/// Refuses a folder that cannot hold the report, before any money is spent.
fn prepare(folder: &Path) -> Result<(), CommandError> {
    let named = folder.display();
    if folder.exists() && !folder.is_dir() {
        let what = format!("--report: `{named}` is a file, not a folder");
        return Err(CommandError::usage(what).hint(REPORT));
    }
    let there = std::fs::read_dir(folder);
    if there.is_ok_and(|mut entries| entries.next().is_some()) {
        let what = format!("--report: there is something in `{named}` already");
        return Err(CommandError::usage(what)
            .hint("nothing is overwritten: name another folder, or delete that one first"));
    }
    Ok(())
}

fn make(folder: &Path) -> Result<(), CommandError> {
    std::fs::create_dir_all(folder).map_err(|e| {
        let named = folder.display();
        let what = format!("--report: the folder `{named}` cannot be made: {e}");
        CommandError::usage(what).hint(REPORT)
    })
}

/// Refuses a value that cannot be set in one of the definitions, before anything runs. Each definition is checked once.
async fn all_can_be_set(
    changes: &Changes,
    place: &Place,
    found: &[SessionInfo],
) -> Result<(), CommandError> {
    let mut seen = BTreeSet::new();
    for info in found {
        if changes.is_plain() || !seen.insert((&info.network, &info.state.definition)) {
            continue;
        }
        changes.network(&info.id, place).await.map_err(|error| {
            let more = found.len() > 1;
            let narrow = format!(
                "nothing was rerun; --where \"definition = {}\" leaves out the sessions of other definitions",
                info.network
            );
            if more { error.hint(narrow) } else { error }
        })?;
    }
    Ok(())
}

async fn rerun_all(
    args: &RerunArgs,
    changes: &Changes,
    place: &Place,
    found: &[SessionInfo],
    printer: &Printer,
) -> Result<(Vec<SessionRerun>, Stopped), CommandError> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is finite and not below 0; a larger value than `u64` holds becomes the largest one"
    )]
    let limit = args.cost.map(|cost| (cost * 1e6).round() as u64);
    let spent = AtomicU64::new(0);
    let jobs = found
        .iter()
        .flat_map(|info| (0..args.repeat).map(move |_| info));
    let one = |info: &SessionInfo| {
        let all = found.iter().map(|info| &*info.id);
        let (session, short) = (info.id.to_string(), shortest(&info.id, all).to_owned());
        let spent = &spent;
        async move {
            // Running reruns are completed, so the limit may be exceeded by their cost. A limit of 0 stops nothing before the first
            // rerun that costs money.
            let over = limit.is_some_and(|limit| spent.load(Ordering::Relaxed) >= limit);
            if over && spent.load(Ordering::Relaxed) > 0 {
                return None;
            }
            let ran = rerun(args, changes, (place, printer), &session).await;
            let (ran, idle) = match ran {
                Ok((ran, found, idle)) => (Ok((ran, found)), idle),
                Err(why) => (Err(why), Vec::new()),
            };
            Some(SessionRerun {
                session,
                short,
                ran,
                idle,
            })
        }
    };
    let mut running = stream::iter(jobs.map(one)).buffer_unordered(usize::from(args.parallel));
    let total = found.len() * args.repeat as usize;
    let (mut reruns, mut stopped) = (Vec::new(), Stopped::Not);
    let stop = tokio::signal::ctrl_c();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            next = running.next() => match next {
                None => break,
                Some(None) => stopped = Stopped::Cost,
                Some(Some(one)) => {
                    let price = spent.fetch_add(one.micros(), Ordering::Relaxed) + one.micros();
                    let (n, price) = (reruns.len() + 1, money(price));
                    printer.talk(dim(&format!("{n}/{total}  {}  {}  {price} so far", one.short, word(one.result()))));
                    reruns.push(one);
                }
            },
            _ = &mut stop => {
                stopped = Stopped::Interrupt;
                break;
            }
        }
    }
    drop(running);
    reruns.sort_by(|a, b| a.session.cmp(&b.session));
    Ok((reruns, stopped))
}

async fn rerun(
    args: &RerunArgs,
    changes: &Changes,
    (place, printer): (&Place, &Printer),
    id: &str,
) -> Result<(Rerunned, Diff, Vec<Idle>), String> {
    let told = |error: CommandError| error.to_string();
    let spot = Spot::find(id, place).await.map_err(told)?;
    let (changed, mut idle) = changes
        .rerun(args, &spot, place, printer)
        .await
        .map_err(told)?;
    let ran = place.steersman.rerun(id, changed).await;
    let ran = ran.map_err(|e| e.to_string())?;
    let found = place.steersman.diff((id, None), (&ran.session, None)).await;
    let found = found.map_err(|e| e.to_string())?;
    idle.extend(changes.without_effect(&ran, &found, &idle));
    Ok((ran, found, idle))
}

/// Returns the tokens of all sessions, and of all reruns.
fn all_tokens(reruns: &[SessionRerun]) -> (u64, u64) {
    let each = reruns.iter().map(SessionRerun::tokens);
    each.fold((0, 0), |(was, is), (a, b)| {
        (was.saturating_add(a), is.saturating_add(b))
    })
}

fn all_micros(reruns: &[SessionRerun]) -> u64 {
    reruns
        .iter()
        .map(SessionRerun::micros)
        .fold(0, u64::saturating_add)
}

/// Renders a value, and the new value if it differs.
fn from_to((was, is): (u64, u64)) -> String {
    if was == is {
        digits(was)
    } else {
        format!("{} -> {}", digits(was), digits(is))
    }
}

fn totals(reruns: &[SessionRerun]) -> BTreeMap<&'static str, u64> {
    let count = |result| reruns.iter().filter(|one| one.result() == result).count() as u64;
    RESULTS
        .iter()
        .map(|result| (word(*result), count(*result)))
        .collect()
}

fn print(reruns: &[SessionRerun], printer: &Printer) -> Result<(), CommandError> {
    let totals = totals(reruns);
    let micros = all_micros(reruns);
    if printer.is_json() {
        for one in reruns {
            printer.json(&one.document())?;
        }
        return printer.json(&json!({ "totals": totals, "cost": micros as f64 / 1e6 }));
    }
    let rows: Vec<Vec<String>> = reruns.iter().map(|one| one.row(70).into()).collect();
    let heading = [
        "SESSION", "RESULT", "ASKED", "RECORDED", "TOKENS", "PRICE", "WHAT",
    ];
    for (i, row) in table(&heading, &rows).into_iter().enumerate() {
        printer.data(if i == 0 { dim(&row) } else { row })?;
    }
    let told = RESULTS
        .into_iter()
        .filter(|result| totals[word(*result)] > 0);
    let told: Vec<String> = told
        .map(|result| {
            let text = format!("{} {}", totals[word(result)], word(result));
            match result {
                Some(Verdict::Same) => green(&text),
                _ => red(&text),
            }
        })
        .collect();
    let (told, tokens) = (told.join(", "), from_to(all_tokens(reruns)));
    printer.data(format!("{told}, {}, {tokens} tokens", bold(&money(micros))))
}

fn write(path: &Path, text: String) -> Result<(), CommandError> {
    std::fs::write(path, text).map_err(|e| {
        let what = format!("the report `{}` cannot be written: {e}", path.display());
        CommandError::usage(what)
    })
}

fn report(
    folder: &Path,
    reruns: &[SessionRerun],
    stopped: Stopped,
    args: &RerunArgs,
) -> Result<(), CommandError> {
    let write = |name: String, text: String| write(&folder.join(name), text);
    let (totals, micros) = (totals(reruns), all_micros(reruns));
    let (price, tokens) = (money(micros), from_to(all_tokens(reruns)));
    let spent = format!("Price: {price}. Tokens: {tokens}.");
    let mut summary = heading(args, &totals, &spent, stopped);
    summary.push_str(
        "\n| session | result | asked | recorded | tokens | price | what |\n|---|---|---|---|---|---|---|\n",
    );
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let mut documents = Vec::new();
    for one in reruns {
        let n = seen.entry(&one.session).or_default();
        *n += 1;
        let name = match *n {
            1 => one.session.clone(),
            n => format!("{}-{n}", one.session),
        };
        let [short, numbers @ .., what] = one.row(120);
        let (numbers, what) = (numbers.join(" | "), what.replace('|', "\\|"));
        let _ = writeln!(summary, "| [{short}]({name}.md) | {numbers} | {what} |");
        write(format!("{name}.md"), one.page())?;
        write(format!("{name}.json"), format!("{:#}\n", one.document()))?;
        documents.push(one.document());
    }
    write("summary.md".into(), summary)?;
    let document = json!({
        "totals": totals,
        "cost": micros as f64 / 1e6,
        "stopped": match stopped {
            Stopped::Not => Json::Null,
            Stopped::Cost => "cost".into(),
            Stopped::Interrupt => "interrupted".into(),
        },
        "sessions": documents,
    });
    write("summary.json".into(), format!("{document:#}\n"))
}

/// Renders the beginning of the summary: the changes and the totals.
fn heading(
    args: &RerunArgs,
    totals: &BTreeMap<&str, u64>,
    spent: &str,
    stopped: Stopped,
) -> String {
    let mut summary = String::from("# What would change\n\n");
    for set in &args.set {
        let _ = writeln!(summary, "- set `{set}`");
    }
    if let Some(model) = &args.model {
        let _ = writeln!(summary, "- model `{model}`");
    }
    if let Some(definition) = &args.definition {
        let _ = writeln!(summary, "- definition `{}`", definition.display());
    }
    summary.push_str("\n| result | sessions |\n|---|---|\n");
    for word in RESULTS.map(word) {
        let _ = writeln!(summary, "| {word} | {} |", totals[word]);
    }
    let _ = writeln!(summary, "\n{spent}");
    summary.push_str(match stopped {
        Stopped::Not => "",
        Stopped::Cost => "\nThe limit of cost was reached: not all sessions were rerun.\n",
        Stopped::Interrupt => "\nIt was interrupted: not all sessions were rerun.\n",
    });
    summary
}
