//! The timeline for a terminal: one row for each lane, a column for each stretch of time.

use crate::printer::{cyan, dim, green, red, yellow};
use crate::words::length;
use steersman::views::timeline::{Axis, Lane, Span, Timeline, What};

/// Widest name of a lane.
const NAME: usize = 24;
/// Width of a column of sums.
const SUM: usize = 8;
/// Narrowest screen on which each lane has its sums.
const WITH_SUMS: usize = 90;
/// Distance of two marks of the scale.
const MARKS: usize = 16;

/// The sums at the end of a lane.
const SUMS: [What; 3] = [What::Model, What::Tool, What::Wait];

/// Returns the rows of the lanes, below a scale.
pub(crate) fn rows(timeline: &Timeline, axis: &Axis, width: usize) -> Vec<String> {
    let names: Vec<String> = timeline.lanes.iter().map(name).collect();
    let longest = names.iter().map(|name| name.chars().count()).max();
    let named = longest.unwrap_or(0).min(NAME).min(width / 3);
    let sums = if width < WITH_SUMS {
        0
    } else {
        SUMS.len() * SUM
    };
    let wide = width.saturating_sub(named + 2 + sums).max(10);
    let mut rows = vec![dim(&scale(timeline, axis, (named, wide), sums > 0))];
    for (lane, name) in timeline.lanes.iter().zip(names) {
        let name: String = name.chars().take(named).collect();
        let mut row = format!("{name:named$}  {}", bar(lane, axis, wide));
        if sums > 0 {
            for what in SUMS {
                row += &dim(&format!("{:>SUM$}", time(lane.sum(what))));
            }
        }
        rows.push(row.trim_end().to_owned());
    }
    rows
}

fn name(lane: &Lane) -> String {
    format!("{}{}", "  ".repeat(lane.depth), lane.title())
}

/// Returns a length of time; empty for none.
fn time(millis: u64) -> String {
    match millis {
        0 => String::new(),
        millis => length(millis),
    }
}

/// Returns the row above the lanes: the time since the beginning, and `//` where time is shortened.
fn scale(timeline: &Timeline, axis: &Axis, (named, wide): (usize, usize), sums: bool) -> String {
    let mut row = vec![' '; wide];
    let mut put = |at: usize, text: &str| {
        let fits = at + text.len() <= wide;
        let free = fits && row[at..at + text.len()].iter().all(|c| *c == ' ');
        if free {
            for (k, c) in text.chars().enumerate() {
                row[at + k] = c;
            }
        }
    };
    for stretch in axis.stretches.iter().filter(|stretch| stretch.shortened) {
        let middle = f64::midpoint(stretch.left, stretch.right);
        put(column(middle, wide).saturating_sub(1), "//");
    }
    let mut told = String::new();
    for at in (0..wide).step_by(MARKS) {
        let moment = axis.moment(at as f64 / wide as f64);
        let since = format!("|{}", length(timeline.begins.until(moment)));
        // Rounded as they are, two marks can be equal.
        if since != told {
            put(at, &since);
        }
        told = since;
    }
    let row: String = row.into_iter().collect();
    let mut row = format!("{:named$}  {row}", "");
    if sums {
        row.extend(SUMS.map(|what| format!("{:>SUM$}", what.word())));
    }
    row.trim_end().to_owned()
}

/// Returns the column of a place.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places are from 0 to 1"
)]
fn column(place: f64, wide: usize) -> usize {
    ((place * wide as f64) as usize).min(wide.saturating_sub(1))
}

/// Returns the bar of a lane. Where several spans share a column, the tool is shown before the model, the wait and the agent that
/// was called.
fn bar(lane: &Lane, axis: &Axis, wide: usize) -> String {
    let mut cells = vec![(0, ' '); wide];
    for span in &lane.spans {
        let (rank, sign) = match span.what {
            What::Unowned => (5, 'x'),
            What::Tool => (4, '='),
            What::Model => (3, '#'),
            What::Wait => (2, '.'),
            What::Agent => (1, '-'),
        };
        let (first, last) = columns(span, axis, wide);
        for cell in &mut cells[first..=last] {
            *cell = (*cell).max((rank, sign));
        }
        if span.failed {
            cells[last] = (6, '!');
        }
    }
    let mut row = String::new();
    let mut at = 0;
    while at < cells.len() {
        let sign = cells[at].1;
        let end = cells[at..].iter().position(|cell| cell.1 != sign);
        let end = end.map_or(cells.len(), |end| at + end);
        let run = sign.to_string().repeat(end - at);
        row += &match sign {
            '#' => cyan(&run),
            '=' => green(&run),
            '.' => yellow(&run),
            '-' | 'x' => dim(&run),
            '!' => red(&run),
            _ => run,
        };
        at = end;
    }
    row
}

/// Returns the first and the last column of a span. The shortest span has one.
fn columns(span: &Span, axis: &Axis, wide: usize) -> (usize, usize) {
    let (left, right) = (axis.place(span.from), axis.place(span.to));
    let first = column(left, wide);
    // A span that ends where a column begins does not touch it.
    let last = column((right - 1e-9).max(left), wide);
    (first, last.max(first))
}

/// Returns the legend.
pub(crate) fn legend() -> String {
    format!(
        "{} model   {} tool   {} agent that it called   {} wait   {} failed   {} no process drove it   // time that is shortened",
        cyan("#"),
        green("="),
        dim("-"),
        yellow("."),
        red("!"),
        dim("x")
    )
}
