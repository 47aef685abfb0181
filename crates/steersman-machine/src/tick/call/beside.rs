//! The data that a call reads apart from its arguments: state, counts, artifacts. The question of an approval shows them, and the
//! tool acts on them, so an approval counts only while they are as they were when the call was asked for.

use super::judge::use_of;
use super::wish::shown;
use crate::network::{Approve, Http, Source, ToolDef};
use crate::snapshot::{OpenCall, Snapshot};
use crate::stored::bounds;
use crate::stored::commit::{Admitted, CallChanged, LogLine, Want};
use crate::stored::ids::{Id, Line, Name};
use crate::stored::interaction::Artifact;
use crate::values::expression::ast;
use crate::values::expression::{Template, shown_json, to_json};
use crate::view::{Cx, View, artifact, mapping};
use imbl::Vector;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;

/// Names whose values are no part of the session, and `args`, which are recorded with the call.
const ELSEWHERE: [&str; 5] = ["args", "now", "config", "secrets", "session"];
/// Maximum number of characters of a value that is told.
const TOLD: usize = 40;

/// A thing that a call reads apart from its arguments and that has changed since the call was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The thing: `state.order`, or an artifact.
    pub name: String,
    /// The value when the call was asked for, in words for people.
    pub was: String,
    /// The present value.
    pub is: String,
}

/// A sentence for people, without its end.
impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, was, is } = self;
        // Secrets, and long values with an equal beginning, look equal.
        if was == is {
            return write!(f, "{name} has changed");
        }
        write!(f, "{name} was {was} and is {is} now")
    }
}

/// Returns what the call of an effect reads apart from its arguments and what has changed between two snapshots: in the conditions and
/// questions of its approvals, in the templates of its tool, and in the artifacts that it names.
pub fn changed(cx: &Cx<'_>, then: &Snapshot, now: &Snapshot, effect: Id) -> Vec<Changed> {
    let Some(open) = now.call_of(effect) else {
        return Vec::new();
    };
    let Some(tool) = cx.network.tools.get(&open.call.name) else {
        return Vec::new();
    };
    let own = use_of(cx, then, open).map_or(&[][..], |used| &used.approve);
    let approvals: Vec<&Approve> = tool.approve.iter().chain(own).collect();
    let mut found = Vec::new();
    let views = [then, now].map(|snapshot| View::new(cx, snapshot, Some(open.owner)));
    for (root, entry) in names(tool, &approvals) {
        let [was, is] = views.each_ref().map(|view| {
            let value = view.untraced(root, entry);
            value.map_or(Json::Null, |value| to_json(&value).unwrap_or_default())
        });
        compare(&mut found, root, entry, &was, &is);
    }
    for name in artifacts(cx, then, open, tool, &approvals) {
        let [was, is] = [then, now]
            .map(|snapshot| artifact::find(snapshot, Some(open.owner), &name).map(version));
        if was.map(|(_, hash)| hash) != is.map(|(_, hash)| hash) {
            let [was, is] = [was, is].map(|version| {
                version.map_or_else(|| "absent".to_owned(), |(n, _)| format!("version {n}"))
            });
            let name = format!("the artifact {name}");
            found.push(Changed { name, was, is });
        }
    }
    found
}

/// Returns the number and the hash of the last version.
fn version(versions: &Vector<Artifact>) -> (usize, Option<[u8; 32]>) {
    (versions.len(), versions.last().map(|last| last.hash))
}

/// Adds a value that has changed; of a whole name the entries that have.
fn compare(found: &mut Vec<Changed>, root: &str, entry: Option<&str>, was: &Json, is: &Json) {
    if was == is {
        return;
    }
    if let (None, Json::Object(before), Json::Object(after)) = (entry, was, is) {
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names {
            let value = |of: &serde_json::Map<String, Json>| of.get(name).cloned();
            let [was, is] = [before, after].map(|of| value(of).unwrap_or_default());
            compare(found, root, Some(name), &was, &is);
        }
        return;
    }
    let changed = Changed {
        name: entry.map_or_else(|| root.to_owned(), |entry| format!("{root}.{entry}")),
        was: told(was),
        is: told(is),
    };
    if !found.contains(&changed) {
        found.push(changed);
    }
}

/// Returns a value in words for people. A sealed secret is not told.
fn told(value: &Json) -> String {
    match value {
        Json::Null => "none".to_owned(),
        value => bounds::beginning(&shown_json(value).to_string(), TOLD).into_owned(),
    }
}

/// Returns the names that the approvals and the tool read, each with the entry below it.
fn names<'a>(tool: &'a ToolDef, approvals: &[&'a Approve]) -> Vec<(&'a str, Option<&'a str>)> {
    let mut found = Vec::new();
    for approve in approvals.iter().flat_map(|approve| approve.line()) {
        approve.when.node().reads(&mut found);
        if let Some(ask) = &approve.ask {
            read(ask, &mut found);
        }
    }
    for template in templates(&tool.source) {
        read(template, &mut found);
    }
    found.retain(|(root, _)| !ELSEWHERE.contains(root));
    found.sort_unstable();
    found.dedup();
    found
}

fn read<'a>(template: &'a Template, found: &mut Vec<(&'a str, Option<&'a str>)>) {
    ast::expressions(template.body(), &mut |node| node.reads(found));
}

/// Returns the templates that an attempt of a tool renders. A function in Rust has none; it reads the session as it was when its
/// call was asked for.
fn templates(source: &Source) -> Vec<&Template> {
    match source {
        Source::Http(http) => {
            let Http {
                url,
                method: _,
                query,
                headers,
                json,
                form,
                file,
                save,
                key_header: _,
                outcomes: _,
                rate: _,
            } = &**http;
            let data = [query, json, form].into_iter().flatten();
            let headers = headers.iter().map(|(_, template)| template);
            let others = [file, save].into_iter().flatten();
            let data = data.flat_map(|data| data.templates());
            [url]
                .into_iter()
                .chain(headers)
                .chain(others)
                .chain(data)
                .collect()
        }
        Source::Command { argv, env, save } => {
            let env = env.iter().map(|(_, template)| template);
            let save = save.iter().map(|save| &save.name);
            argv.iter().chain(env).chain(save).collect()
        }
        Source::State
        | Source::Native { .. }
        | Source::Wait(_)
        | Source::Ask(_)
        | Source::Send(_)
        | Source::BuiltIn(_)
        | Source::Mcp { .. } => Vec::new(),
    }
}

/// Returns the artifacts that a call names: in its arguments, in what its approvals show, as the file that it sends.
fn artifacts(
    cx: &Cx<'_>,
    then: &Snapshot,
    open: &OpenCall,
    tool: &ToolDef,
    approvals: &[&Approve],
) -> BTreeSet<String> {
    let args = mapping::arguments(cx, then, open);
    let given = args.values().filter_map(Json::as_str).map(str::to_owned);
    let show = approvals.iter().flat_map(|approve| approve.line());
    let show = show.flat_map(|approve| &approve.show);
    let show = show.filter_map(|name: &Name| shown(cx, then, open.owner, &args, name));
    let file = match &tool.source {
        Source::Http(http) => http.file.as_ref(),
        _ => None,
    };
    let view = View::new(cx, then, Some(open.owner)).with("args", Json::Object(args.clone()));
    let file = file.and_then(|file| file.render(&view).ok());
    let all = given.chain(show).chain(file);
    all.filter(|name| artifact::find(then, Some(open.owner), name).is_some())
        .collect()
}

/// Returns the line whose snapshot the question of an effect showed: the line that wished the effect. An effect that a person approved
/// with other arguments has the line of the effect whose question that person answered. `line` reads the log.
///
/// # Errors
/// The line cannot be read.
pub fn asked_at<L: Deref<Target = LogLine>, E>(
    effect: Id,
    mut line: impl FnMut(Line) -> Result<L, E>,
) -> Result<Line, E> {
    let mut effect = effect;
    loop {
        let at = line(effect.line())?;
        let Some(commit) = &at.commit else {
            return Ok(effect.line());
        };
        let wished = commit.wished.iter().find(|wished| wished.id == effect);
        let of = wished.and_then(|wished| Some((wished.agent, wished.what.call()?)));
        let edited = commit.calls.iter().any(|changed| {
            Some((changed.agent, changed.call)) == of
                && matches!(changed.what, CallChanged::Edited { .. })
        });
        if !edited {
            return Ok(effect.line());
        }
        let admitted = commit.admitted.iter();
        let admitted = admitted.filter(|admission| admission.kind == Admitted::Edited);
        let mut before = None;
        for old in admitted.filter_map(|admission| admission.id) {
            let at = line(old.line())?;
            let mut wished = at.commit.iter().flat_map(|commit| &commit.wished);
            let same =
                |agent, what: Want| Some((agent, what)) == of.map(|(a, c)| (a, Want::Call(c)));
            if wished.any(|wished| wished.id == old && same(wished.agent, wished.what)) {
                before = Some(old);
            }
        }
        match before {
            Some(before) => effect = before,
            None => return Ok(effect.line()),
        }
    }
}
