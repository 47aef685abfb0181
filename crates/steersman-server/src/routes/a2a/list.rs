//! The list of tasks.

use super::{Agent, Failed, Fault, fault, is_task};
use crate::Permission;
use crate::problem::Problem;
use serde::Deserialize;
use serde_json::{Value, json};
use std::cmp::Reverse;
use steersman::SessionQuery;
use steersman::machine::stored::ids::{Line, Time};
use steersman::runtime::store::SessionId;
use steersman::views::reader::{PAGE, Reader as _, Stored};

/// Number of tasks of a page, unless the client wants another.
const ROWS: usize = 50;
/// Maximum number of tasks of a page.
const MOST: usize = 100;
/// Maximum number of sessions whose tasks are listed: those that changed last.
const SESSIONS: usize = 200;

/// The parameters of the list. Unknown fields are ignored, as the protocol says.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct List {
    context_id: String,
    status: Option<String>,
    page_size: Option<usize>,
    page_token: String,
    status_timestamp_after: Option<String>,
    include_artifacts: bool,
}

/// A task of the list: the time of its last line, its place, and its document.
struct Row {
    at: Time,
    session: SessionId,
    line: Line,
    task: Value,
}

impl Row {
    /// Returns the place of the task in the list.
    fn place(&self) -> (Reverse<Time>, SessionId, Line) {
        (Reverse(self.at), self.session.clone(), self.line)
    }
}

impl Agent {
    /// Lists the tasks of this agent that the token sees, newest first.
    pub(super) async fn list(&self, list: List) -> Result<Value, Failed> {
        let caller = &self.caller;
        caller.needs(Permission::Read)?;
        let size = match list.page_size {
            None | Some(0) => ROWS,
            Some(size @ 1..=MOST) => size,
            Some(_) => {
                let why = format!("`pageSize` is at most {MOST}");
                return Err(fault(Fault::Params, why));
            }
        };
        let after = list.after()?;
        let since = list.since()?;
        let mut rows = Vec::new();
        for session in self.sessions(&list.context_id).await? {
            rows.extend(self.rows(&session).await?);
        }
        let state = list.status.as_deref();
        let state = state.filter(|state| *state != "TASK_STATE_UNSPECIFIED");
        rows.retain(|row| {
            let fits = state.is_none_or(|state| row.task["status"]["state"] == state);
            fits && since.is_none_or(|since| row.at >= since)
        });
        rows.sort_by_cached_key(Row::place);
        let total = rows.len();
        if let Some(after) = after {
            rows.retain(|row| row.place() > after);
        }
        let is_more = rows.len() > size;
        rows.truncate(size);
        let last = rows.last().filter(|_| is_more);
        let next = last.map(|row| format!("{}.{}.{}", row.at.0, row.session, row.line));
        let tasks = rows.into_iter().map(|mut row| {
            if !list.include_artifacts
                && let Some(task) = row.task.as_object_mut()
            {
                task.remove("artifacts");
            }
            row.task
        });
        let tasks: Vec<Value> = tasks.collect();
        Ok(json!({
            "pageSize": tasks.len(),
            "tasks": tasks,
            "nextPageToken": next.unwrap_or_default(),
            "totalSize": total,
        }))
    }

    async fn sessions(&self, context: &str) -> Result<Vec<SessionId>, Failed> {
        let caller = &self.caller;
        if !context.is_empty() {
            let found = caller.of_definition(&self.network, context).await;
            // A session that does not exist has no tasks, like one that is not visible.
            return Ok(found.into_iter().collect());
        }
        let query = SessionQuery {
            network: Some(self.network.name().into()),
            limit: Some(SESSIONS),
            ..SessionQuery::default()
        };
        let found = caller.steersman.sessions(&query).await;
        let found = found.map_err(|error| Failed::from(Problem::from(error)))?;
        Ok(found.into_iter().map(|info| info.id).collect())
    }

    /// Returns the tasks of a session.
    async fn rows(&self, session: &SessionId) -> Result<Vec<Row>, Failed> {
        let reader = Stored::plain(self.caller.steersman.engine(), session);
        let (mut after, mut rows) = (Line::NONE, Vec::new());
        loop {
            let lines = reader.lines(after, PAGE).await;
            let lines = lines.map_err(|error| Failed::from(Problem::from(error)))?;
            let Some(last) = lines.last() else {
                return Ok(rows);
            };
            after = last.n;
            for line in lines.iter().filter(|line| line.ledger.iter().any(is_task)) {
                let task = self.made(session, line.n).await?;
                rows.push(Row {
                    at: task.at().unwrap_or(Time(0)),
                    session: session.clone(),
                    line: line.n,
                    task: task.document(),
                });
            }
        }
    }
}

impl List {
    /// Returns the place after which the page begins.
    fn after(&self) -> Result<Option<(Reverse<Time>, SessionId, Line)>, Failed> {
        if self.page_token.is_empty() {
            return Ok(None);
        }
        let read = || {
            let mut parts = self.page_token.split('.');
            let (at, session, line) = (parts.next()?, parts.next()?, parts.next()?);
            let place = (
                Reverse(Time(at.parse().ok()?)),
                session.into(),
                Line(line.parse().ok()?),
            );
            parts.next().is_none().then_some(place)
        };
        let why = "`pageToken` is `nextPageToken` of another page";
        read().map(Some).ok_or_else(|| fault(Fault::Params, why))
    }

    fn since(&self) -> Result<Option<Time>, Failed> {
        let Some(text) = &self.status_timestamp_after else {
            return Ok(None);
        };
        let at: jiff::Timestamp = text.parse().map_err(|_| {
            fault(
                Fault::Params,
                "`statusTimestampAfter` is a time like 2026-01-31T09:30:00Z",
            )
        })?;
        Ok(Some(Time(at.as_millisecond())))
    }
}
