//! `show`: a session on one page: the story of its branches, its state, effects and agents, and what it waits for.

mod facts;

use crate::asked;
use crate::cli::{Global, Look, Times};
use crate::commands::branching::take_over;
use crate::commands::log;
use crate::error::{CommandError, Exit};
use crate::place::{Place, Sight};
use crate::printer::{Printer, bold, dim, green, red, typed, yellow};
use crate::tell::remedy::remedy;
use crate::tell::row::{Form, day_of, print};
use crate::words::{ago, count, digits, erased, money, width, wrap};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman::runtime::rerun::rerun_of;
use steersman::views::cause::Reason;
use steersman::views::context;
use steersman::views::page::{BranchRow, Page, Subject};
use steersman::views::story::Row;
use steersman_machine::network::Network;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Id, Line, Name};

pub(crate) const LISTED: &str = "Show a session: its branches, state, effects and agents";

/// Show a session: its branches, state, effects and agents.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    look: Look,
    #[command(flatten)]
    times: Times,
    /// All rows, and long messages in full.
    #[arg(long)]
    full: bool,
}

/// Number of rows that are shown from the beginning and the end of a branch; rows between are only counted.
const HEAD: usize = 20;
const TAIL: usize = 60;

pub(crate) async fn run(
    args: ShowArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let place = Place::to_look(global).await?;
    let seen = Seen::of(&place, &args.look.address).await?;
    if printer.is_json() {
        printer.json(&seen.document())?;
        return Ok(Exit::Answered);
    }
    let form = Form {
        width: width(),
        short: !args.full,
        times: args.times.are_shown(),
    };
    let screen = seen.screen(&place, form);
    for row in screen.rows() {
        printer.data(seen.sight.known.masked(&row))?;
    }
    screen.next(printer);
    Ok(Exit::Answered)
}

/// Returns a session as one document.
pub(crate) async fn document(place: &Place, address: &str) -> Result<Json, CommandError> {
    Ok(Seen::of(place, address).await?.document())
}

/// The data of a page.
struct Seen {
    sight: Sight,
    line: Option<Line>,
    bound: BTreeMap<Line, Arc<Network>>,
}

impl Seen {
    async fn of(place: &Place, address: &str) -> Result<Self, CommandError> {
        let mut sight = place.look(address).await?;
        let line = sight.line()?;
        sight.inspection = sight.known.mask_inspection(sight.inspection);
        Ok(Self {
            bound: sight.log.bound(&*sight.reader).await?,
            sight,
            line,
        })
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            seen: &self.sight.inspection,
            log: &self.sight.log,
            bound: &self.bound,
            known: &self.sight.known,
            branch: self.sight.branch(),
            alone: self.sight.named().is_some(),
            line: self.line,
        }
    }

    fn document(&self) -> Json {
        let mut document = serde_json::to_value(self.subject().page()).unwrap_or_default();
        self.sight.known.mask(&mut document);
        document
    }

    fn screen<'a>(&'a self, place: &'a Place, form: Form) -> Screen<'a> {
        let subject = self.subject();
        Screen {
            place,
            form,
            story: subject.story(),
            page: subject.page(),
            subject,
            short: &self.sight.short,
            name: self.sight.name(),
        }
    }
}

struct Screen<'a> {
    place: &'a Place,
    form: Form,
    subject: Subject<'a>,
    page: Page,
    story: BTreeMap<Id, Vec<Row>>,
    short: &'a str,
    /// The session as people type it, with the branch if one was named.
    name: String,
}

impl Screen<'_> {
    /// Returns the cost, as far as it is known.
    fn cost(&self) -> String {
        match self.page.micros {
            spent if self.subject.knows_cost() => format!("cost {}", money(spent)),
            0 => "cost unknown".to_owned(),
            spent => format!(
                "cost {} and more: the price of a model is unknown",
                money(spent)
            ),
        }
    }

    fn rows(&self) -> Vec<String> {
        if let Some(line) = self.subject.line {
            return self.rows_at(line);
        }
        let (row, now) = (&self.page.row, self.place.now());
        let digest = match &*row.definition {
            "" => String::new(),
            digest => format!(" {digest}"),
        };
        let head = format!("{}   {}{digest}   ", self.short, row.network);
        let stands = format!("{}, changed {}   ", row.status, ago(now, row.updated.0));
        let spent = format!(
            "{}, {} tokens, {}",
            count(row.model_calls, "model call"),
            digits(row.tokens),
            self.cost(),
        );
        let all = [&head, &stands, &spent].map(|part| part.chars().count());
        // A narrow screen gets the numbers on a row of their own.
        let between = if all.iter().sum::<usize>() > self.form.width {
            "\n"
        } else {
            "   "
        };
        let mut rows: Vec<String> = format!(
            "{}   {}{digest}   {}, changed {}{between}{spent}",
            bold(self.short),
            row.network,
            status(&row.status),
            ago(now, row.updated.0),
        )
        .lines()
        .map(str::to_owned)
        .collect();
        let mut remark = |text: &str| {
            rows.extend(wrap(text, self.form.width).iter().map(|part| dim(part)));
        };
        if self.page.lost.tokens > 0 {
            remark(&format!(
                "{} of these tokens went into answers that nobody got: calls that were cut or broke off, and what a process that \
                 died had set aside, spent or not",
                digits(self.page.lost.tokens)
            ));
        }
        if self.page.unbelievable > 0 {
            remark(&format!(
                "{}: the provider reported an impossible number of tokens, so the maximum is counted",
                count(self.page.unbelievable, "call")
            ));
        }
        if self.page.models.len() > 1 {
            let each = self.page.models.iter().map(|by| {
                let calls = count(by.calls, "call");
                format!("{} ({calls}, cost {})", by.model, money(by.micros))
            });
            remark(&format!(
                "answered by {}",
                each.collect::<Vec<_>>().join(", ")
            ));
        }
        if let Some(at) = self.page.erased_at {
            remark(&format!(
                "{}, as its definition says (sessions: {{ keep: .. }})",
                erased(now, at.0)
            ));
        }
        if let Some(owner) = &row.owner {
            rows.push(format!("process {owner} drives it now"));
        }
        rows.push(String::new());
        rows.extend(self.tree());
        rows.push(String::new());
        rows.extend(self.facts());
        let elsewhere =
            asked::elsewhere_in(self.subject.log, self.subject.seen, self.subject.pending());
        for pending in self.subject.pending() {
            rows.extend(asked::frame(pending, &elsewhere, now, self.form.width));
        }
        rows
    }

    /// Renders the page of a line, without anything that came after it.
    fn rows_at(&self, at: Line) -> Vec<String> {
        let calls = self.page.models.iter().map(|by| by.calls).sum();
        let tokens = self.page.models.iter().map(|by| by.tokens);
        let tokens = tokens.fold(0, u64::saturating_add);
        let made = self.subject.made().map_or_else(String::new, |made| {
            format!("   {}", ago(self.place.now(), made.0))
        });
        let mut rows = vec![format!(
            "{}   {}{made}   then {}, {} tokens",
            bold(&format!("{}@{at}", self.name)),
            self.page.row.network,
            count(calls, "model call"),
            digits(tokens),
        )];
        rows.push(String::new());
        rows.extend(self.tree());
        rows.push(String::new());
        rows.extend(self.facts());
        rows
    }

    /// Draws the branches, each under the line where it was forked.
    fn tree(&self) -> Vec<String> {
        let mut rows = Vec::new();
        for branch in self.page.branches.iter().filter(|b| b.from.is_none()) {
            self.branch(branch, "", &mut rows);
        }
        rows
    }

    /// Returns the marks in the title of a branch.
    fn marks(&self, branch: &BranchRow) -> Vec<String> {
        let mut marks = Vec::new();
        if let Some(from) = &branch.from {
            let word = if branch.rewound {
                "rewound to"
            } else {
                "forked at"
            };
            marks.push(format!("{word} @{}", from.line));
        }
        if branch.dry {
            marks.push("dry".into());
        }
        if let Some(at) = branch.adopted {
            marks.push(format!("adopted up to @{at}"));
        }
        if let Some(at) = branch.joined {
            marks.push(format!("joined at @{at}"));
        }
        match branch.left_after {
            Some(after) if branch.cancelled => marks.push(format!("cancelled after @{after}")),
            Some(after) => marks.push(format!("left behind after @{after}")),
            None if branch.cancelled => marks.push("cancelled".into()),
            None if branch.is_open() => marks.push("open".into()),
            None => {}
        }
        if let Some(upto) = branch.upto
            && branch.id != self.subject.branch.id
        {
            marks.push(format!("up to @{upto}"));
        }
        if branch.id == self.subject.seen.current && self.page.branches.len() > 1 {
            marks.push("current".into());
        }
        marks
    }

    fn branch(&self, branch: &BranchRow, margin: &str, rows: &mut Vec<String>) {
        let mut title = bold(&branch.name());
        let marks = self.marks(branch);
        if !marks.is_empty() {
            title = format!("{title}   {}", dim(&marks.join(", ")));
        }
        rows.push(format!("{margin}{title}"));
        let empty = Vec::new();
        let own = self.story.get(&branch.id).unwrap_or(&empty);
        let mut children: Vec<&BranchRow> = self
            .page
            .branches
            .iter()
            .filter(|b| self.story.contains_key(&b.id))
            .filter(|b| self.above(b) == Some(branch.id))
            .collect();
        children.sort_by_key(|b| b.from.map(|from| from.line));
        let mut children = children.into_iter().peekable();
        let form = Form {
            width: self.form.width.saturating_sub(margin.len()),
            ..self.form
        };
        let mut day = None;
        let (head, tail) = if self.form.short && own.len() > HEAD + TAIL + 1 {
            (HEAD, own.len() - TAIL)
        } else {
            (own.len(), own.len())
        };
        for (i, row) in own.iter().enumerate() {
            while let Some(child) =
                children.next_if(|c| c.from.is_some_and(|from| from.line < row.line))
            {
                rows.push(format!("{margin}  |\\"));
                self.branch(child, &format!("{margin}  | "), rows);
                rows.push(format!("{margin}  |"));
            }
            if i == head && tail > head {
                rows.push(dim(&format!(
                    "{margin}  ... {} rows more: steersman show {} --full",
                    digits((tail - head) as u64),
                    self.name
                )));
            }
            if i < head || i >= tail {
                let of_row = day_of(row.at).filter(|_| self.form.times);
                if of_row.is_some() && of_row != day {
                    rows.extend(of_row.iter().map(|day| dim(&format!("{margin}{day}"))));
                    day = of_row;
                }
                rows.extend(print(row, form).into_iter().map(|r| format!("{margin}{r}")));
            }
        }
        for child in children {
            rows.push(format!("{margin}  |\\"));
            self.branch(child, &format!("{margin}  | "), rows);
        }
    }

    /// Returns the branch under which another is drawn: the one from which it was forked, or the nearest ancestor with rows.
    fn above(&self, branch: &BranchRow) -> Option<Id> {
        let mut above = branch.from?.branch;
        while !self.story.contains_key(&above) {
            let Some(next) = self.page.branches.iter().find(|b| b.id == above)?.from else {
                break;
            };
            above = next.branch;
        }
        Some(above)
    }

    /// Returns the cause and remedy if the branch stopped, and the commands that help.
    fn remedy(&self) -> Option<(String, Vec<String>)> {
        let (seen, branch) = (self.subject.seen, self.subject.branch);
        if branch.id == seen.current {
            remedy(&seen.settled, Reason::of(seen).as_ref(), self.short)
        } else {
            remedy(&seen.settled_on(branch), None, self.short)
        }
    }

    /// Returns all lines that led to the head of the branch.
    fn path(&self) -> Vec<&Arc<LogLine>> {
        let Subject {
            log, branch, seen, ..
        } = self.subject;
        log.history(branch, &seen.branches)
    }

    /// Returns the tool of the newest effect, if a model called it and was asked before its first call: only then is the command that
    /// names the tool of use.
    fn called(&self, path: &[&Arc<LogLine>]) -> Option<&Name> {
        let mut effects = self.page.effects.iter().rev();
        effects.find_map(|effect| {
            let line = context::first_call_of_model(path, &effect.tool)?;
            context::is_known(path, Some(line)).then_some(&effect.tool)
        })
    }

    fn next(&self, printer: &Printer) {
        let (short, name) = (self.short, &self.name);
        if let Some(line) = self.subject.line {
            printer.talk("");
            let mut rows = vec![(
                format!("steersman log {name}@{line}"),
                "each line from there on",
            )];
            if context::is_known(&self.path(), Some(line)) {
                let command = format!("steersman context {name}@{line}");
                rows.insert(0, (command, "what the model saw there"));
            }
            for (command, why) in rows {
                printer.talk(format!("{}   {}", typed(&command), dim(why)));
            }
            return;
        }
        let mut rows: Vec<(String, String)> = Vec::new();
        for waits in self.subject.pending() {
            let commands = asked::commands(short, waits).into_iter();
            rows.extend(commands.map(|c| (c, String::new())));
        }
        if let Some((sentence, commands)) = self.remedy() {
            printer.talk("");
            printer.talk(sentence);
            let commands = commands.into_iter();
            rows.extend(commands.map(|command| (command, String::new())));
        }
        if self.page.row.status == "interrupted" {
            let seen = self.subject.seen;
            let of = rerun_of(&seen.info).filter(|_| seen.ledger.is_dry_rerun());
            rows.push(match of {
                Some(of) => (
                    format!("steersman rerun {of}"),
                    "begins it again: a rerun that is not live does not go on".to_owned(),
                ),
                None => (
                    format!("steersman run --resume {short}"),
                    "continues where it stopped".to_owned(),
                ),
            });
        }
        let path = self.path();
        if let Some(tool) = self.called(&path) {
            rows.push((
                format!("steersman context {name}@{tool}"),
                format!("what the model saw before it called {tool}"),
            ));
        } else if context::is_known(&path, None) {
            rows.push((
                format!("steersman context {name}"),
                "what the model saw".to_owned(),
            ));
        }
        rows.push((format!("steersman log {name}"), log::SHOWS.to_owned()));
        printer.talk("");
        for branch in self.subject.seen.branches.iter().filter(|b| !b.superseded) {
            if branch.id == self.subject.seen.current || branch.snapshot.scope.is_some() {
                continue;
            }
            if self.subject.alone && branch.id != self.subject.branch.id {
                continue;
            }
            let known = self.subject.seen.ledger.branch(branch.id);
            if known.is_some_and(|known| known.adopted.is_some()) {
                continue;
            }
            if let Some((command, why)) = take_over(self.subject.seen, branch, short) {
                printer.talk(format!("{}   {}", typed(&command), dim(&why)));
            }
        }
        for (command, why) in rows {
            // Styling an empty text would add invisible characters to a line that people copy.
            printer.talk(match &*why {
                "" => typed(&command),
                why => format!("{}   {}", typed(&command), dim(why)),
            });
        }
    }
}

fn status(word: &str) -> String {
    match word {
        "answered" => green(word),
        "failed" | "doubt" => red(word),
        _ => yellow(word),
    }
}
