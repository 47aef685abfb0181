//! A session as a client may see it: its log, its branches, and the values to mask.

use crate::caller::Caller;
use crate::permission::Permission;
use crate::problem::{Code, Problem};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman::machine::network::Network;
use steersman::machine::snapshot::Snapshot;
use steersman::machine::stored::commit::LogLine;
use steersman::machine::stored::ids::Line;
use steersman::runtime::engine::{BranchView, Inspection};
use steersman::runtime::known::Known;
use steersman::views::log::Log;
use steersman::views::page::{Page, Subject};
use steersman::views::reader::Stored;
use steersman::views::story::Row;
use tokio::sync::OwnedSemaphorePermit;

/// A session that was read.
pub(crate) struct Sight {
    pub(crate) seen: Inspection,
    pub(crate) log: Log,
    pub(crate) reader: Arc<Stored>,
    pub(crate) bound: BTreeMap<Line, Arc<Network>>,
    pub(crate) known: Arc<Known>,
    /// The index of the branch that is looked at.
    at: usize,
    /// True if the client named the branch.
    is_named: bool,
    _place: OwnedSemaphorePermit,
}

impl Caller {
    /// Reads a session that the token sees; a branch by its label or id, otherwise the current one.
    pub(crate) async fn look(&self, session: &str, branch: Option<&str>) -> Result<Sight, Problem> {
        let info = self.session(session).await?;
        let place = self.room().await?;
        let engine = self.steersman.engine();
        let seen = engine.inspect(&info.id).await?;
        let reader = Arc::new(if self.may(Permission::Context) {
            Stored::plain(engine, &info.id)
        } else {
            Stored::masked(engine, &info.id)
        });
        let log = Log::read(&*reader).await?;
        let bound = log.bound(&*reader).await?;
        let known = reader.masks().await?;
        let seen = if self.may(Permission::Context) {
            seen
        } else {
            known.mask_inspection(seen)
        };
        let at = branch_at(&seen, branch)?;
        Ok(Sight {
            seen,
            log,
            reader,
            bound,
            known,
            at,
            is_named: branch.is_some(),
            _place: place,
        })
    }

    /// Waits for a place among the requests that have much of the store in memory.
    pub(crate) async fn room(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let place = self.server.looking().acquire_owned().await;
        place.map_err(|_| Problem::new(Code::Stopping, "the server stops"))
    }

    /// Returns a view as JSON, with the secrets of the session masked unless the token may see them.
    pub(crate) fn shown(&self, view: &impl Serialize, known: &Known) -> Result<Value, Problem> {
        let mut view = serde_json::to_value(view)
            .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        if !self.may(Permission::Context) {
            known.mask(&mut view);
        }
        Ok(view)
    }
}

impl Sight {
    /// Returns the branch that is looked at.
    pub(crate) fn branch(&self) -> &BranchView {
        &self.seen.branches[self.at]
    }

    /// The session, as of a line if one is given. `alone` leaves other branches out.
    fn subject(&self, line: Option<Line>, alone: bool) -> Subject<'_> {
        Subject {
            seen: &self.seen,
            log: &self.log,
            bound: &self.bound,
            known: &self.known,
            branch: self.branch(),
            alone,
            line,
        }
    }

    /// Returns the page of the session, as of a line if one is given.
    pub(crate) fn page(&self, line: Option<Line>) -> Page {
        self.subject(line, self.is_named).page()
    }

    /// Returns the state of the branch, as of a line if one is given.
    pub(crate) fn snapshot(&self, line: Option<Line>) -> Snapshot {
        self.subject(line, self.is_named).snapshot()
    }

    /// Returns what happened on the branch, in the order of its lines.
    pub(crate) fn story(&self) -> Vec<Row> {
        let told = self.subject(None, true).story(None).into_values();
        let mut rows: Vec<Row> = told.flat_map(|told| told.first).collect();
        rows.sort_by_key(|row| row.line);
        rows
    }

    /// Returns all lines that led to the head of the branch, oldest first, up to a line if one is given.
    pub(crate) fn path(&self, upto: Option<Line>) -> Vec<&Arc<LogLine>> {
        let mut path = self.log.history(self.branch(), &self.seen.branches);
        path.retain(|line| upto.is_none_or(|upto| line.n <= upto));
        path
    }

    /// Checks that a line is on the path of the branch.
    pub(crate) fn line(&self, n: Option<u64>) -> Result<Option<Line>, Problem> {
        let Some(n) = n else {
            return Ok(None);
        };
        if self.path(None).iter().any(|line| line.n == Line(n)) {
            return Ok(Some(Line(n)));
        }
        let why = format!("the branch has no line {n}");
        Err(Problem::new(Code::Line, why).help("GET /v1/sessions/{session}/lines lists them"))
    }
}

/// Returns the index of a branch: by label or by id, otherwise the current one.
pub(crate) fn branch_at(seen: &Inspection, name: Option<&str>) -> Result<usize, Problem> {
    let found = seen.branches.iter().position(|branch| match name {
        None => branch.id == seen.current,
        Some(name) => branch.label.as_deref() == Some(name) || branch.id.to_string() == name,
    });
    match (found, name) {
        (Some(at), _) => Ok(at),
        (None, Some(name)) => Err(Problem::no_branch(name)),
        (None, None) => Err(Problem::new(Code::Branch, "the session has not begun")),
    }
}
