//! The branch and the line of an address. All commands find them here, so that an address means the same in each of them.

use super::{Missing, Refusal};
use crate::log::Log;
use std::fmt;
use std::sync::Arc;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::Line;
use steersman_machine::values::near;
use steersman_runtime::engine::{BranchView, Inspection};

/// The ways to name a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineName {
    /// By its number.
    Number(u64),
    /// Counted back from the last line; 0 is the last.
    Back(u64),
    /// The first line that calls this tool or agent.
    First(String),
}

impl LineName {
    /// Reads a line as people type it behind the `@` of an address.
    ///
    /// # Errors
    /// It has the form of a number, and is none.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let bad = || Refusal::new(Missing::Form, format!("`@{text}` is no line"));
        if text == "head" {
            Ok(Self::Back(0))
        } else if let Some(back) = text.strip_prefix('-') {
            back.parse().map(Self::Back).map_err(|_| bad())
        } else if text.starts_with(|c: char| c.is_ascii_digit()) {
            text.parse().map(Self::Number).map_err(|_| bad())
        } else {
            Ok(Self::First(text.to_owned()))
        }
    }
}

impl fmt::Display for LineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => n.fmt(f),
            Self::Back(0) => f.write_str("head"),
            Self::Back(n) => write!(f, "-{n}"),
            Self::First(tool) => f.write_str(tool),
        }
    }
}

/// Maximum number of branches without a label, or of names, that an error lists.
const UNNAMED: usize = 10;

/// Returns the index of a branch in an inspection: by label, by id, otherwise the current one.
///
/// # Errors
/// The session has no such branch.
pub fn branch_at(inspection: &Inspection, name: Option<&str>) -> Result<usize, Refusal> {
    let found = inspection.branches.iter().position(|b| match name {
        None => b.id == inspection.current,
        Some(name) => b.label.as_deref() == Some(name) || b.id.to_string() == name,
    });
    found.ok_or_else(|| {
        // A search opens many branches without a label.
        let mut unnamed = 0;
        let few = inspection.branches.iter().filter(|b| {
            unnamed += usize::from(b.label.is_none());
            b.label.is_some() || unnamed <= UNNAMED
        });
        let mut names: Vec<String> = few.map(branch_name).collect();
        if unnamed > UNNAMED {
            names.push(format!("and {} more", unnamed - UNNAMED));
        }
        let what = format!(
            "session `{}` has no branch `{}`",
            inspection.info.id,
            name.unwrap_or("current")
        );
        Refusal::new(Missing::Branch, what).hint(format!("it has: {}", names.join(", ")))
    })
}

/// Returns the label of a branch, otherwise its id.
pub fn branch_name(branch: &BranchView) -> String {
    branch
        .label
        .as_ref()
        .map_or_else(|| branch.id.to_string(), ToString::to_string)
}

/// Returns the line that an address names, among the lines that led to the head of its branch, oldest first.
///
/// # Errors
/// There is no such line.
pub fn line(name: Option<&LineName>, path: &[&Arc<LogLine>]) -> Result<Option<Line>, Refusal> {
    let Some(name) = name else { return Ok(None) };
    let lines: Vec<Line> = path.iter().map(|l| l.n).collect();
    let found = match name {
        LineName::Number(n) => lines.iter().copied().find(|l| l.0 == *n),
        LineName::Back(back) => usize::try_from(*back)
            .ok()
            .and_then(|back| lines.iter().rev().nth(back).copied()),
        LineName::First(tool) => Log::first_call_of(path, tool),
    };
    let Some(line) = found else {
        let what = match name {
            LineName::Number(n) => return Err(no_line(*n, &lines)),
            LineName::Back(n) => format!("this branch has no {n} lines before its last"),
            LineName::First(tool) => {
                let what = format!("nothing on this branch called `{tool}`");
                return Err(Refusal::new(Missing::Line, what).hint(hint(tool, path)));
            }
        };
        return Err(Refusal::new(Missing::Line, what).hint(match lines.last() {
            Some(last) => format!("its lines go from {} to {last}", lines[0]),
            None => "it has no lines yet".to_owned(),
        }));
    };
    Ok(Some(line))
}

/// Returns a hint for a name that no call has: the one that was probably meant, otherwise all.
fn hint(typed: &str, path: &[&Arc<LogLine>]) -> String {
    let called = Log::called_in(path);
    let ends_so = |name: &&str| name.rsplit('.').next() == Some(typed);
    let near = called.iter().copied().find(ends_so);
    let near = near.or_else(|| near::near(typed, called.iter().copied()));
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if called.is_empty() => "nothing was called there".to_owned(),
        None => {
            let called: Vec<&str> = called.into_iter().take(UNNAMED).collect();
            format!("called were: {}", called.join(", "))
        }
    }
}

/// Returns the refusal of a line number that is not on the branch. Numbers are unique in the session, so the lines of a
/// branch have gaps.
fn no_line(n: u64, lines: &[Line]) -> Refusal {
    let error = Refusal::new(
        Missing::Line,
        format!("there is no line {n} on this branch"),
    );
    let before = lines.iter().rev().find(|line| line.0 < n);
    let after = lines.iter().find(|line| line.0 > n);
    match (before, after) {
        (Some(before), Some(after)) => error
            .hint(format!("it goes from line {before} to line {after}: what lies between is on another branch, or nowhere"))
            .hint("a line of another branch: SESSION:BRANCH@LINE; `steersman show` draws them"),
        _ => error.hint(match (lines.first(), lines.last()) {
            (Some(first), Some(last)) => format!("its lines go from {first} to {last}"),
            _ => "it has no lines yet".to_owned(),
        }),
    }
}
