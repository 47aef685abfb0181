//! The screen of `show`.

use super::{Ask, Screen, ScreenError, Seen, branch_name};
use crate::cause::Reason;
use crate::context;
use crate::effects::Effects;
use crate::elsewhere::{self, Elsewhere};
use crate::page::{Ends, Page, Subject, Told};
use crate::remedy::{Advice, advice};
use crate::shown;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use steersman_machine::stored::by::By;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_runtime::branches::refusal;
use steersman_runtime::engine::{BranchView, Inspection};
use steersman_runtime::inbox::Wanted;
use steersman_runtime::pending::Pending;
use steersman_runtime::rerun::rerun_of;

/// A session on one page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowScreen {
    /// The time at which it was read, in milliseconds since 1970.
    pub now: i64,
    /// The session as people type it.
    pub short: String,
    /// The same, with the branch if one was named.
    pub name: String,
    /// The page: in brief, unless it was asked for as a document.
    pub page: Page,
    /// True if this is only the beginning of a long session: the head of the page, and the first rows of its first branch.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub begins: bool,
    /// The page as one document, if it was asked for ([`DOCUMENT`](Self::DOCUMENT)).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub document: Option<Json>,
    /// Money spent, in millionths of the currency.
    pub micros: u64,
    /// Money spent by the models of the page, in their order.
    pub by_model: Vec<u64>,
    /// True if the cost of every call is known.
    pub knows_cost: bool,
    /// The story of each branch that the page shows; of a long one the ends, unless all of it was asked for ([`FULL`](Self::FULL)).
    pub story: Vec<BranchStory>,
    /// The branch of the page.
    #[serde(serialize_with = "shown::text", deserialize_with = "shown::read::text")]
    pub branch: Id,
    /// The current branch.
    #[serde(serialize_with = "shown::text", deserialize_with = "shown::read::text")]
    pub current: Id,
    /// True if the page is of one branch alone.
    pub alone: bool,
    /// The line up to which the page goes; `None` means the present.
    #[serde(
        serialize_with = "shown::maybe_line",
        deserialize_with = "shown::read::maybe_line"
    )]
    pub line: Option<Line>,
    /// The time of the last commit that the page shows.
    #[serde(
        serialize_with = "shown::optional_time",
        deserialize_with = "shown::read::optional_time"
    )]
    pub made: Option<Time>,
    /// Everything that waits.
    pub pending: Vec<Pending>,
    /// Effects on other branches that people should know before they decide, by the effect of the question.
    pub elsewhere: BTreeMap<String, Vec<String>>,
    /// If the branch stopped: the cause, and what to do.
    pub stop: Option<Advice>,
    /// For a rerun that is not live: the session that it reruns.
    pub reruns: Option<String>,
    /// True if a context can be shown for the line, or for the branch if no line is named.
    pub has_context: bool,
    /// The tool of the newest effect, if a model called it and was asked before its first call.
    pub called: Option<Name>,
    /// Other branches with which the session can go on.
    pub others: Vec<TakeOver>,
}

/// The story of a branch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BranchStory {
    /// The branch.
    #[serde(serialize_with = "shown::text", deserialize_with = "shown::read::text")]
    pub branch: Id,
    /// The rows that the page shows.
    #[serde(flatten)]
    pub told: Told,
}

/// The way in which a session goes on with another branch. An adoption is refused if the current branch has changed since the fork; a
/// rewind leaves those changes behind, but is refused after a simulated effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeOver {
    /// The name of the branch.
    pub branch: String,
    /// True if the branch is adopted; false if the session is rewound to its end.
    pub adopts: bool,
    /// For a rewind: the line after which the current branch is left behind, if the two have one in common.
    #[serde(
        serialize_with = "shown::maybe_line",
        deserialize_with = "shown::read::maybe_line"
    )]
    pub leaves: Option<Line>,
}

impl TakeOver {
    /// Returns how the session goes on with a branch; `None` if it cannot.
    pub fn of(seen: &Inspection, branch: &BranchView) -> Option<Self> {
        let name = branch_name(branch);
        let adopt = Wanted::Adopt {
            branch: branch.id,
            at: None,
        };
        if refusal(seen, &adopt.by(By::user())).is_none() {
            return Some(Self {
                branch: name,
                adopts: true,
                leaves: None,
            });
        }
        let back = Wanted::Rewind {
            at: branch.head,
            label: None,
            say: None,
        };
        let back = back.by(By::user()).on(Some(branch.id));
        if branch.snapshot.first_simulated.is_some() || refusal(seen, &back).is_some() {
            return None;
        }
        Some(Self {
            branch: name,
            adopts: false,
            leaves: seen.ledger.common(branch.id, seen.current),
        })
    }
}

impl ShowScreen {
    /// The form in which the page is one document, for programs: with everything, and without the story.
    pub const DOCUMENT: &'static str = "document";
    /// The form in which the whole story is told.
    pub const FULL: &'static str = "full";
    /// The form for a first look: of a long session its beginning, which is there long before the rest; of others the whole page in brief.
    pub const BEGINNING: &'static str = "beginning";
    /// The rows of a story in every other form.
    const ENDS: Ends = Ends {
        first: 20,
        last: 60,
    };

    /// Returns the page, with the money that a document has as a fraction.
    pub fn page(&self) -> Page {
        let mut page = self.page.clone();
        page.micros = self.micros;
        for (model, micros) in page.models.iter_mut().zip(&self.by_model) {
            model.micros = *micros;
        }
        page
    }

    /// Returns what people should know of other branches before they decide, by the effect.
    pub fn elsewhere(&self) -> Elsewhere {
        let each = self.elsewhere.iter();
        let each = each.filter_map(|(effect, told)| Some((effect.parse().ok()?, told.clone())));
        each.collect()
    }
}

impl Screen for ShowScreen {
    const NAME: &'static str = "show";

    async fn of(seen: Seen, ask: &Ask) -> Result<Self, ScreenError> {
        let line = seen.line(ask)?;
        let mut seen = seen.masked();
        if seen.begins && !knows_head(&seen) {
            let (engine, session) = (seen.engine.clone(), seen.inspection.info.id.clone());
            seen = Seen::read(&engine, &session, None).await?.masked();
        }
        let bound = seen.log.bound(&*seen.reader).await?;
        let (inspection, branch) = (&seen.inspection, seen.branch());
        let subject = Subject {
            seen: inspection,
            log: &seen.log,
            bound: &bound,
            known: &seen.known,
            branch,
            alone: seen.is_named,
            line,
        };
        let form = ask.form.as_deref();
        // Each reads every line, so they do it at the same time.
        let (story, effects, page) = std::thread::scope(|threads| {
            let story = threads.spawn(|| match form {
                Some(Self::DOCUMENT) => BTreeMap::new(),
                Some(Self::FULL) => subject.story(None),
                _ => subject.story(Some(Self::ENDS)),
            });
            let effects = subject.effects();
            let page = subject.brief(&effects);
            let story = story.join().unwrap_or_else(|panic| resume_unwind(panic));
            (story, effects, page)
        });
        let story = if seen.begins {
            beginning(story, inspection)
        } else {
            story
        };
        let document = (form == Some(Self::DOCUMENT)).then(|| {
            let mut whole = page.clone();
            subject.fill(&mut whole, &effects);
            serde_json::to_value(whole).unwrap_or_default()
        });
        let pending: Vec<Pending> = subject.pending().cloned().collect();
        let elsewhere = elsewhere::told(&seen.log, inspection, &pending);
        let path = seen.path();
        let stop = if branch.id == inspection.current {
            advice(&inspection.settled, Reason::of(inspection).as_ref())
        } else {
            advice(&inspection.settled_on(branch), None)
        };
        let reruns = rerun_of(&inspection.info).filter(|_| inspection.ledger.is_dry_rerun());
        Ok(Self {
            now: seen.engine.clock().now().0,
            short: seen.short.clone(),
            name: seen.name(),
            micros: page.micros,
            by_model: page.models.iter().map(|model| model.micros).collect(),
            knows_cost: subject.knows_cost(),
            story: story
                .into_iter()
                .map(|(branch, told)| BranchStory { branch, told })
                .collect(),
            branch: branch.id,
            current: inspection.current,
            alone: seen.is_named,
            line,
            made: subject.made(),
            elsewhere: elsewhere
                .into_iter()
                .map(|(effect, told)| (effect.to_string(), told))
                .collect(),
            stop,
            reruns: reruns.map(ToString::to_string),
            has_context: context::is_known(&path, line),
            called: called(&effects, &path),
            others: others(&subject),
            begins: seen.begins,
            page,
            document,
            pending,
        })
    }
}

/// Returns true if the first lines of a session say all that the head of its page needs: whether the cost of every call is known.
fn knows_head(seen: &Seen) -> bool {
    let bound = BTreeMap::new();
    let subject = Subject {
        seen: &seen.inspection,
        log: &seen.log,
        bound: &bound,
        known: &seen.known,
        branch: seen.branch(),
        alone: false,
        line: None,
    };
    subject.all_are_priced() || !subject.knows_cost()
}

/// Returns the first rows of the first branch, up to the first line that another branch left.
fn beginning(story: BTreeMap<Id, Told>, seen: &Inspection) -> BTreeMap<Id, Told> {
    let forked = seen.branches.iter().filter_map(|branch| branch.from);
    let upto = forked.map(|(_, line)| line).min();
    let mut story: BTreeMap<Id, Told> = story
        .into_iter()
        .filter(|(branch, _)| *branch == Id::MAIN)
        .collect();
    for told in story.values_mut() {
        told.begins(upto);
    }
    story
}

/// Returns the tool of the newest effect, if a model called it and was asked before its first call: only then is the address that names
/// the tool of use.
fn called(effects: &Effects, path: &[&Arc<LogLine>]) -> Option<Name> {
    let mut effects = effects.all().rev();
    effects.find_map(|effect| {
        let line = context::first_call_of_model(path, &effect.tool)?;
        context::is_known(path, Some(line)).then(|| effect.tool.clone())
    })
}

/// Returns the other branches with which the session can go on.
fn others(subject: &Subject<'_>) -> Vec<TakeOver> {
    let seen = subject.seen;
    let open = seen.branches.iter().filter(|branch| {
        let is_other = branch.id != seen.current && branch.snapshot.scope.is_none();
        let is_shown = !subject.alone || branch.id == subject.branch.id;
        let known = seen.ledger.branch(branch.id);
        let is_adopted = known.is_some_and(|known| known.adopted.is_some());
        !branch.superseded && is_other && is_shown && !is_adopted
    });
    open.filter_map(|branch| TakeOver::of(seen, branch))
        .collect()
}
