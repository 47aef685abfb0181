//! `show`: a session on one page: the story of its branches, its state, effects and agents, and what it waits for.

mod facts;

use crate::address::Address;
use crate::asked;
use crate::cli::{Global, Look, Times};
use crate::commands::branching::takes_over;
use crate::commands::log;
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, bold, dim, green, red, typed, yellow};
use crate::source::Source;
use crate::tell::remedy::advised;
use crate::tell::row::{Form, day_of, print};
use crate::words::{ago, count, digits, erased, money, width, wrap};
use std::collections::BTreeMap;
use steersman::views::page::{BranchRow, Page, Told};
use steersman::views::screen::{Ask, ShowScreen};
use steersman_machine::stored::ids::{Id, Line};

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

pub(crate) async fn run(
    args: ShowArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let source = Source::to_look(global).await?;
    let address = Address::parse(&args.look.address)?;
    let ask = |form: Option<&str>| Ask {
        form: form.map(str::to_owned),
        ..Ask::default()
    };
    let first = match (printer.is_json(), args.full) {
        (true, _) => ShowScreen::DOCUMENT,
        (false, true) => ShowScreen::FULL,
        (false, false) => ShowScreen::BEGINNING,
    };
    let mut shown: ShowScreen = source.screen(&address, ask(Some(first))).await?;
    if let Some(document) = &shown.document {
        printer.json(document)?;
        return Ok(Exit::Answered);
    }
    let form = Form {
        width: width(),
        short: !args.full,
        times: args.times.are_shown(),
    };
    let mut told = Vec::new();
    if shown.begins {
        let beginning = Screen::of(&shown, form);
        told = beginning.tree();
        for row in beginning.head().iter().chain(&told) {
            printer.data(row)?;
        }
        shown = source.screen(&address, ask(None)).await?;
    }
    let screen = Screen::of(&shown, form);
    for row in screen.rows(&told) {
        printer.data(row)?;
    }
    screen.next(printer);
    Ok(Exit::Answered)
}

struct Screen<'a> {
    form: Form,
    shown: &'a ShowScreen,
    page: Page,
    story: BTreeMap<Id, &'a Told>,
}

impl<'a> Screen<'a> {
    fn of(shown: &'a ShowScreen, form: Form) -> Self {
        let story = shown.story.iter();
        Self {
            form,
            shown,
            page: shown.page(),
            story: story.map(|of| (of.branch, &of.told)).collect(),
        }
    }
}

impl Screen<'_> {
    /// Returns the cost, as far as it is known.
    fn cost(&self) -> String {
        match self.page.micros {
            spent if self.shown.knows_cost => format!("cost {}", money(spent)),
            0 => "cost unknown".to_owned(),
            spent => format!(
                "cost {} and more: the price of a model is unknown",
                money(spent)
            ),
        }
    }

    /// Returns all rows, or those after the head and these first rows of the tree, if they were printed.
    fn rows(&self, told: &[String]) -> Vec<String> {
        if let Some(line) = self.shown.line {
            return self.rows_at(line);
        }
        let tree = self.tree();
        let mut rows = match (tree.strip_prefix(told), told) {
            (_, []) => [self.head(), tree].concat(),
            (Some(rest), _) => rest.to_vec(),
            (None, _) => {
                let changed = "the session has changed meanwhile, so it is shown again:";
                [vec![String::new(), dim(changed)], self.head(), tree].concat()
            }
        };
        rows.push(String::new());
        rows.extend(self.facts());
        let elsewhere = self.shown.elsewhere();
        for pending in &self.shown.pending {
            rows.extend(asked::frame(
                pending,
                &elsewhere,
                self.shown.now,
                self.form.width,
            ));
        }
        rows
    }

    /// Returns the rows above the tree.
    fn head(&self) -> Vec<String> {
        let (row, now, short) = (&self.page.row, self.shown.now, &*self.shown.short);
        let digest = match &*row.definition {
            "" => String::new(),
            digest => format!(" {digest}"),
        };
        let head = format!("{short}   {}{digest}   ", row.network);
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
            bold(short),
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
        rows
    }

    /// Renders the page of a line, without anything that came after it.
    fn rows_at(&self, at: Line) -> Vec<String> {
        let calls = self.page.models.iter().map(|by| by.calls).sum();
        let tokens = self.page.models.iter().map(|by| by.tokens);
        let tokens = tokens.fold(0, u64::saturating_add);
        let made = self.shown.made.map_or_else(String::new, |made| {
            format!("   {}", ago(self.shown.now, made.0))
        });
        let mut rows = vec![format!(
            "{}   {}{made}   then {}, {} tokens",
            bold(&format!("{}@{at}", self.shown.name)),
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
            let by = branch.by.as_ref();
            let by = by.map_or_else(String::new, |by| format!(" by {by}"));
            marks.push(format!("{word} @{}{by}", from.line));
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
            && branch.id != self.shown.branch
        {
            marks.push(format!("up to @{upto}"));
        }
        if branch.id == self.shown.current && self.page.branches.len() > 1 {
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
        let own = self.story.get(&branch.id);
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
        let first = own.map_or(0, |told| told.first.len());
        let left_out = own.map_or(0, |told| told.left_out);
        for (i, row) in own.iter().flat_map(|told| told.rows()).enumerate() {
            if i == first && left_out > 0 {
                let shown = own.and_then(|told| told.first.last());
                while let Some(child) = children.next_if(|c| {
                    let from = c.from.map(|from| from.line);
                    from <= shown.map(|row| row.line)
                }) {
                    self.child(child, margin, rows);
                }
                rows.push(dim(&format!(
                    "{margin}  ... {} rows more: steersman show {} --full",
                    digits(left_out as u64),
                    self.shown.name
                )));
            }
            while let Some(child) =
                children.next_if(|c| c.from.is_some_and(|from| from.line < row.line))
            {
                self.child(child, margin, rows);
            }
            let of_row = day_of(row.at).filter(|_| self.form.times);
            if of_row.is_some() && of_row != day {
                rows.extend(of_row.iter().map(|day| dim(&format!("{margin}{day}"))));
                day = of_row;
            }
            rows.extend(print(row, form).into_iter().map(|r| format!("{margin}{r}")));
        }
        for child in children {
            rows.push(format!("{margin}  |\\"));
            self.branch(child, &format!("{margin}  | "), rows);
        }
    }

    /// Draws a branch between the rows of the one that it left.
    fn child(&self, child: &BranchRow, margin: &str, rows: &mut Vec<String>) {
        rows.push(format!("{margin}  |\\"));
        self.branch(child, &format!("{margin}  | "), rows);
        rows.push(format!("{margin}  |"));
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

    fn next(&self, printer: &Printer) {
        let (short, name) = (&*self.shown.short, &self.shown.name);
        if let Some(line) = self.shown.line {
            printer.talk("");
            let mut rows = vec![(
                format!("steersman log {name}@{line}"),
                "each line from there on",
            )];
            if self.shown.has_context {
                let command = format!("steersman context {name}@{line}");
                rows.insert(0, (command, "what the model saw there"));
            }
            for (command, why) in rows {
                printer.talk(format!("{}   {}", typed(&command), dim(why)));
            }
            return;
        }
        let mut rows: Vec<(String, String)> = Vec::new();
        for waits in &self.shown.pending {
            let commands = asked::commands(short, waits).into_iter();
            rows.extend(commands.map(|c| (c, String::new())));
        }
        if let Some(stop) = &self.shown.stop {
            let (sentence, commands) = advised(stop, short);
            printer.talk("");
            printer.talk(sentence);
            let commands = commands.into_iter();
            rows.extend(commands.map(|command| (command, String::new())));
        }
        if self.page.row.status == "interrupted" {
            rows.push(match &self.shown.reruns {
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
        if let Some(tool) = &self.shown.called {
            rows.push((
                format!("steersman context {name}@{tool}"),
                format!("what the model saw before it called {tool}"),
            ));
        } else if self.shown.has_context {
            rows.push((
                format!("steersman context {name}"),
                "what the model saw".to_owned(),
            ));
        }
        rows.push((format!("steersman log {name}"), log::SHOWS.to_owned()));
        printer.talk("");
        for other in &self.shown.others {
            let (command, why) = takes_over(other, short);
            printer.talk(format!("{}   {}", typed(&command), dim(&why)));
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
