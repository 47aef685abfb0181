//! `context`: shows what the model saw and compares it with what was sent; shows where each part comes from, what changed
//! since the previous call, and how much stayed the same.

use crate::address::Address;
use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, bold, cyan, dim, typed, yellow};
use crate::source::Source;
use crate::words::{arguments, digits, money};
use steersman::views::context::{
    Caches, Change, Context, ContextError, Explanation, Origins, Piece,
};
use steersman::views::screen::{Ask, Called, ContextScreen, ShownContext};
use steersman_machine::context::{Content, FilePart};

pub(crate) const LISTED: &str = "Show what the model saw at a line";

/// Show what the model saw at a line.
#[derive(Debug, clap::Args)]
pub(crate) struct ContextArgs {
    /// SESSION[:BRANCH][@LINE]: as in `show`; with a line the model call there, else the newest that was answered.
    #[arg(default_value = "last")]
    address: String,
    /// Only this model call, by its id `21.1`, or the calls of this agent, by its name. `AGENT#compact` and the like select the
    /// questions that the engine asked for the agent.
    #[arg(value_name = "CALL|AGENT", conflicts_with = "cache")]
    whose: Option<String>,
    /// Say of each part where it comes from, and what is not there and why.
    #[arg(long, conflicts_with_all = ["diff", "cache"])]
    why: bool,
    /// Say what changed since this agent's call before, how much stayed the same, and what broke that.
    #[arg(long, conflicts_with = "cache")]
    diff: bool,
    /// Say of each model call how much of it was as in the call before, what its provider had cached, and what broke it.
    #[arg(long)]
    cache: bool,
}

/// Number of characters of a segment that are shown next to its origin.
const EXCERPT: usize = 44;

pub(crate) async fn run(
    args: ContextArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let source = Source::to_look(global).await?;
    let form = match (args.cache, args.why, args.diff) {
        (true, ..) => "cache",
        (_, true, _) => "why",
        (.., true) => "diff",
        _ => "whole",
    };
    let ask = Ask {
        of: args.whose.clone(),
        form: Some(form.to_owned()),
        ..Ask::default()
    };
    let address = Address::parse(&args.address)?;
    let screen: ContextScreen = source.screen(&address, ask).await?;
    let name = &screen.name;
    match &screen.context {
        ShownContext::Cache(caches) => shown(printer, caches, || cache(printer, caches)),
        ShownContext::Why(explained, line) => {
            shown(printer, explained, || why(printer, name, *line, explained))
        }
        ShownContext::Diff(change) => shown(printer, change, || diff(printer, name, change)),
        ShownContext::Whole(context, others) => shown(printer, context, || {
            whole(printer, name, context)?;
            if !others.is_empty() {
                let others = Called::told(others);
                printer.talk(dim(&format!("Other model calls: {others}")));
            }
            Ok(())
        }),
    }
}

/// Prints a view as JSON, or for people with `rows`.
fn shown(
    printer: &Printer,
    view: &impl serde::Serialize,
    rows: impl FnOnce() -> Result<(), CommandError>,
) -> Result<Exit, CommandError> {
    if printer.is_json() {
        printer.view(view)?;
    } else {
        rows()?;
    }
    Ok(Exit::Answered)
}

impl From<ContextError> for CommandError {
    fn from(error: ContextError) -> Self {
        match error {
            ContextError::Engine(error) => error.into(),
            ContextError::Unrendered(_) => Self::new(Exit::Failed, error.to_string()),
            ContextError::NotBegun | ContextError::First => Self::usage(error.to_string()),
        }
    }
}

// ---- the whole context ---------------------------------------------------------------------------------------

fn whole(printer: &Printer, short: &str, context: &Context) -> Result<(), CommandError> {
    let at = context.answered.unwrap_or(context.wished);
    printer.data(format!(
        "{}   {}",
        typed(&format!("{short}@{at} {}", context.name)),
        dim(&sizes(context))
    ))?;
    for segment in &context.segments {
        content(printer, &segment.content, "")?;
        if let Some(hooked) = &segment.hooked {
            let by: Vec<String> = hooked.by.iter().map(|name| format!("`{name}`")).collect();
            let by = by.join(", ");
            match &hooked.unedited {
                Some(unedited) => content(printer, unedited, &format!(" before hook {by}"))?,
                None => printer.data(dim(&format!("  added by hook {by}")))?,
            }
        }
    }
    printer.talk("");
    match context.as_sent {
        Some(true) => printer.talk(dim("As it was sent: the digest matches.")),
        Some(false) => printer.talk(yellow(
            "This version renders it otherwise than it was sent: the digest differs.",
        )),
        None => printer.talk(dim("Not sent yet, or no answer came.")),
    }
    let mut contents = context.segments.iter().map(|segment| &segment.content);
    if let Some(Content::File(file)) = contents.find(|of| matches!(of, Content::File(_))) {
        printer.next(
            format!("steersman artifacts {short} {}", short_digest(file)),
            "prints the file; --save FILE keeps it",
        );
    }
    Ok(())
}

fn sizes(context: &Context) -> String {
    let mut parts = vec![format!("{} bytes", digits(context.bytes))];
    if let Some(usage) = &context.usage {
        if let Some(model) = &usage.model {
            parts.insert(0, model.to_string());
        }
        parts.push(format!(
            "{} tokens in ({} cached), {} out",
            digits(usage.input),
            digits(usage.cached),
            digits(usage.output)
        ));
        if let Some(micros) = usage.micros.filter(|micros| *micros > 0) {
            parts.push(format!("costs {}", money(micros)));
        }
        match &usage.broke {
            // This process rendered no earlier request to compare with.
            None if usage.prefix == 0 => {}
            None => parts.push(format!(
                "{} bytes as in the call before",
                digits(usage.prefix)
            )),
            Some(part) => parts.push(format!(
                "{} bytes as before, then {part} changed",
                digits(usage.prefix)
            )),
        }
    }
    parts.join(", ")
}

/// Prints a content; `note` follows its name.
fn content(printer: &Printer, content: &Content, note: &str) -> Result<(), CommandError> {
    let head = |name: &str| format!("\n{}{}", cyan(name), dim(note));
    match content {
        Content::System(text) => {
            printer.data(head("system"))?;
            printer.data(indent(text))
        }
        Content::Tools(tools) => {
            printer.data(head("tools"))?;
            for tool in tools {
                printer.data(format!("  {}  {}", bold(&tool.name), tool.description))?;
                printer.data(dim(&format!("    {}", tool.parameters)))?;
            }
            Ok(())
        }
        Content::User(text) => {
            printer.data(head("user"))?;
            printer.data(indent(text))
        }
        Content::File(file) => {
            printer.data(head("file"))?;
            printer.data(format!(
                "  {}  {}, {} bytes, {}",
                bold(&file.name),
                file.media,
                digits(file.len),
                dim(&short_digest(file))
            ))
        }
        Content::Assistant { text, calls, .. } => {
            printer.data(head("assistant"))?;
            if let Some(text) = text {
                printer.data(indent(text))?;
            }
            for call in calls {
                printer.data(format!(
                    "  calls {}({})",
                    bold(&call.name),
                    arguments(&call.args)
                ))?;
            }
            Ok(())
        }
        Content::Result {
            name, text, error, ..
        } => {
            let name = if *error {
                format!("result of {name}, an error")
            } else {
                format!("result of {name}")
            };
            printer.data(head(&name))?;
            printer.data(indent(text))
        }
    }
}

/// Returns the beginning of a file's digest, which is enough for `artifacts`.
fn short_digest(file: &FilePart) -> String {
    let mut digest = file.digest();
    digest.truncate("blake3:".len() + 16);
    digest
}

fn indent(text: &str) -> String {
    let rows: Vec<String> = text.lines().map(|l| format!("  {l}")).collect();
    rows.join("\n")
}

// ---- origins -------------------------------------------------------------------------------------------------

fn why(
    printer: &Printer,
    short: &str,
    line: u64,
    explained: &Explanation,
) -> Result<(), CommandError> {
    let name = &explained.name;
    printer.data(typed(&format!("{short}@{line} {name}")))?;
    for segment in &explained.segments {
        let Piece { part, bytes, says } = &segment.piece;
        printer.data(format!(
            "{} {:>9}  {says:EXCERPT$}  {}",
            cyan(&format!("{part:8}")),
            digits(*bytes),
            dim(&from(segment))
        ))?;
    }
    if !explained.absent.is_empty() {
        printer.data(format!("\n{}", cyan("not there")))?;
    }
    for absent in &explained.absent {
        let (first, last) = absent.lines;
        printer.data(format!(
            "  {:24}  {:20}  {}",
            absent.what,
            format!("{} at {}", absent.policy, absent.at),
            dim(&span(first.0, last.0))
        ))?;
    }
    Ok(())
}

fn span(first: u64, last: u64) -> String {
    if first == last {
        format!("@{first}")
    } else {
        format!("@{first} to @{last}")
    }
}

/// Describes the origin of a segment.
fn from(origin: &Origins) -> String {
    let mut parts = vec![match &origin.template {
        Some(template) => template.clone(),
        None => "engine".to_owned(),
    }];
    for read in &origin.reads {
        let row = match read.line {
            0 => String::new(),
            row => format!(" (line {row})"),
        };
        let written = read
            .written
            .map_or_else(String::new, |n| format!(", set @{n}"));
        parts.push(format!("reads {}{row}{written}", read.path));
    }
    if let Some((first, last)) = origin.lines.first().zip(origin.lines.last()) {
        parts.push(span(first.0, last.0));
    }
    if let Some(policy) = &origin.policy {
        parts.push(format!("{} by {} at {}", policy.is, policy.name, policy.at));
    }
    parts.join(", ")
}

// ---- differences ---------------------------------------------------------------------------------------------

fn diff(printer: &Printer, short: &str, change: &Change) -> Result<(), CommandError> {
    let Change {
        name, before, now, ..
    } = change;
    printer.data(typed(&format!("{short}@{before} to @{now} {name}")))?;
    for piece in &change.same {
        printer.data(dim(&row('=', piece)))?;
    }
    let share = share(change.prefix, change.bytes);
    let broke = match &change.broke {
        Some(broke) => yellow(&format!("then {broke} changed")),
        None => "then it only grew".to_owned(),
    };
    printer.data(format!(
        "  --- {} of {} bytes as before ({share} %), {broke}",
        digits(change.prefix),
        digits(change.bytes)
    ))?;
    for piece in &change.gone {
        printer.data(dim(&row('-', piece)))?;
    }
    for piece in &change.came {
        printer.data(cyan(&row('+', piece)))?;
    }
    Ok(())
}

fn row(sign: char, Piece { part, bytes, says }: &Piece) -> String {
    format!("  {sign} {part:8} {:>9}  {says}", digits(*bytes))
}

/// Returns the percentage, rounded down.
fn share(prefix: u64, all: u64) -> u64 {
    prefix.saturating_mul(100).checked_div(all).unwrap_or(0)
}

fn cache(printer: &Printer, caches: &Caches) -> Result<(), CommandError> {
    printer.data(bold(&format!(
        "{:>6}  {:16}  {:>10}  {:>10}  {:>4}  {:>9}  {:>9}  {}",
        "line", "agent", "bytes", "as before", "%", "tokens", "cached", "broken by"
    )))?;
    for call in &caches.calls {
        printer.data(format!(
            "{:>6}  {:16}  {:>10}  {:>10}  {:>4}  {:>9}  {:>9}  {}",
            format!("@{}", call.line),
            call.agent,
            digits(call.bytes),
            digits(call.prefix),
            share(call.prefix, call.bytes),
            digits(call.input),
            digits(call.cached),
            call.broke.as_deref().map_or_else(String::new, yellow)
        ))?;
    }
    printer.data(dim(&format!(
        "{:>6}  {:16}  {:>10}  {:>10}  {:>4}  {:>9}  {:>9}",
        "",
        "all",
        digits(caches.bytes),
        digits(caches.prefix),
        share(caches.prefix, caches.bytes),
        digits(caches.input),
        digits(caches.cached)
    )))
}
