//! Lists of sessions.

use super::append::name;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use std::fmt::Write as _;
use steersman_machine::stored::ids::{Name, Time};
use steersman_runtime::store::{NewSession, SessionId, SessionInfo, SessionQuery, SessionState};

/// State of the lists by which sessions are found: trusted, or damaged
/// ([`Store::damaged_lists`](steersman_runtime::store::Store::damaged_lists)) and read with care.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    Whole,
    /// Something is damaged: tables are read without their indexes, and unreadable rows are left out.
    Damaged,
}

impl Trust {
    /// Returns the SQL that follows a table's name to choose an index.
    pub(super) fn index(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Damaged => "NOT INDEXED",
        }
    }
    /// Like `index`, for a table without row ids, which is stored in an index itself.
    fn index_of(self, table: &str) -> String {
        match self {
            Self::Whole => String::new(),
            Self::Damaged => format!("INDEXED BY sqlite_autoindex_{table}_1"),
        }
    }
}

/// Returns a session that prevents a new one: the session with the same id, otherwise the one of the same tenant and network with
/// the same key.
pub(super) fn rival(conn: &Connection, new: &NewSession) -> rusqlite::Result<Option<SessionId>> {
    conn.prepare_cached(
        "SELECT id FROM session WHERE id = ?1 UNION ALL
         SELECT id FROM session WHERE network = ?2 AND key = ?3 AND tenant = ?4 LIMIT 1",
    )?
    .query_row(
        params![
            &*new.id,
            &*new.network,
            new.key.as_deref(),
            &*new.scope.tenant
        ],
        |row| name(row, 0),
    )
    .optional()
}

pub(super) fn sessions(
    conn: &Connection,
    query: &SessionQuery,
    trust: Trust,
) -> rusqlite::Result<Vec<SessionInfo>> {
    let (select, values) = select(conn, query, trust)?;
    let mut statement = conn.prepare_cached(&select)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        match info(conn, row) {
            Ok(info) => found.push(info),
            Err(_) if trust == Trust::Damaged => {}
            Err(e) => return Err(e),
        }
    }
    Ok(found)
}

/// Returns the statement that finds the sessions of a query, and its values.
fn select(
    conn: &Connection,
    query: &SessionQuery,
    trust: Trust,
) -> rusqlite::Result<(String, Vec<Value>)> {
    let index = trust.index();
    let mut filter = String::from("1");
    let mut values: Vec<Value> = Vec::new();
    let text = |t: &str| Value::Text(t.to_owned());
    if let Some(prefix) = &query.prefix {
        // the bounds let the index be used: the last Unicode character sorts after all others
        filter += " AND id BETWEEN ? AND ? AND substr(id, 1, length(?)) = ?";
        let last = format!("{prefix}{}", char::MAX);
        values.extend([text(prefix), Value::Text(last), text(prefix), text(prefix)]);
    }
    if let Some(network) = &query.network {
        filter += " AND network = ?";
        values.push(text(network));
    }
    if let Some(key) = &query.key {
        filter += " AND key = ?";
        values.push(text(key));
    }
    if let Some((name, value)) = &query.label {
        let _ = write!(
            filter,
            " AND no IN (SELECT no FROM label {} WHERE name = ? AND value = ?)",
            trust.index_of("label")
        );
        values.extend([text(name), text(value)]);
    }
    if !query.status.is_empty() {
        let marks = vec!["?"; query.status.len()].join(", ");
        let _ = write!(filter, " AND status IN ({marks})");
        values.extend(query.status.iter().map(|s| text(s)));
    }
    if query.inbox {
        let _ = write!(filter, " AND no IN (SELECT no FROM inbox {index})");
    }
    if let Some(since) = query.since {
        filter += " AND updated >= ?";
        values.push(Value::Integer(since.0));
    }
    if let Some(scope) = &query.scope {
        filter += " AND tenant = ?";
        values.push(text(&scope.tenant));
        if let Some(subject) = &scope.subject {
            filter += " AND subject = ?";
            values.push(text(subject));
        }
    } else if trust == Trust::Whole && is_by_time(query) {
        // The index by time begins with the tenant. Most stores have one.
        let tenants = tenants(conn)?;
        if tenants.len() == 1 || (query.since.is_some() && tenants.len() < TENANTS) {
            let marks = vec!["?"; tenants.len()].join(", ");
            let _ = write!(filter, " AND tenant IN ({marks})");
            values.extend(tenants.iter().map(|tenant| text(tenant)));
        }
    }
    if let Some(worker) = query.worker {
        let _ = write!(
            filter,
            " AND no IN (SELECT no FROM seat {index} WHERE worker = ?)"
        );
        values.push(Value::Integer(worker as i64));
    }
    if let Some((updated, id)) = &query.after {
        filter += " AND (updated, no) < (?, (SELECT no FROM session WHERE id = ?))";
        values.extend([Value::Integer(updated.0), text(id)]);
    }
    values.push(Value::Integer(
        query.limit.map_or(-1, |l| i64::try_from(l).unwrap_or(-1)),
    ));
    let select = format!(
        "SELECT no, id, network, key, created, status, updated, definition, micros, tokens, model_calls, waits, outcome,
         salt, tenant, subject, last, moved FROM session {index} WHERE {filter} ORDER BY updated DESC, no DESC LIMIT ?"
    );
    Ok((select, values))
}

/// Returns true if the index by time finds the sessions of a query, or a page of them, faster than anything else.
fn is_by_time(query: &SessionQuery) -> bool {
    let SessionQuery {
        prefix,
        key,
        label,
        inbox,
        worker,
        ..
    } = query;
    let has_other =
        prefix.is_some() || key.is_some() || label.is_some() || *inbox || worker.is_some();
    let is_page = query.limit.is_some() && query.status.is_empty();
    !has_other && (is_page || query.since.is_some())
}

/// Maximum number of tenants that a query names.
const TENANTS: usize = 1000;

/// Returns the tenants that have sessions, at most [`TENANTS`]. It reads one row of an index for each.
fn tenants(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    conn.prepare_cached(
        "WITH RECURSIVE own (tenant) AS (
             SELECT min(tenant) FROM session
             UNION ALL SELECT (SELECT min(tenant) FROM session WHERE tenant > own.tenant) FROM own WHERE own.tenant IS NOT NULL
         )
         SELECT tenant FROM own WHERE tenant IS NOT NULL LIMIT ?1",
    )?
    .query_map([TENANTS as i64], |row| row.get(0))?
    .collect()
}

fn info(conn: &Connection, row: &rusqlite::Row<'_>) -> rusqlite::Result<SessionInfo> {
    let no: i64 = row.get(0)?;
    Ok(SessionInfo {
        id: name(row, 1)?,
        network: name(row, 2)?,
        scope: super::accounts::scope(row, 14)?,
        key: row.get::<_, Option<String>>(3)?.map(Into::into),
        salt: row.get(13)?,
        created: Time(row.get(4)?),
        head: super::append::head(conn, no)?,
        state: SessionState {
            status: name(row, 5)?,
            updated: Time(row.get(6)?),
            definition: name(row, 7)?,
            micros: row.get::<_, i64>(8)? as u64,
            tokens: row.get::<_, i64>(9)? as u64,
            model_calls: row.get::<_, i64>(10)? as u64,
            waits: name(row, 11)?,
            outcome: name(row, 12)?,
            last: name(row, 16)?,
            moved: row.get::<_, Option<Name>>(17)?,
        },
        labels: conn
            .prepare_cached("SELECT name, value FROM label WHERE no = ?1 ORDER BY name")?
            .query_map([no], |r| Ok((name(r, 0)?, name(r, 1)?)))?
            .collect::<rusqlite::Result<_>>()?,
        owner: None,
        left: super::seat::left(conn, no)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use steersman_machine::stored::ids::Time;

    /// The steps of a query's plan. The store has sessions of these tenants.
    fn plan(tenants: &[&str], query: &SessionQuery) -> Vec<String> {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(super::super::schema::TABLES).unwrap();
        for (no, tenant) in tenants.iter().enumerate() {
            conn.execute(
                "INSERT INTO session VALUES (?1, ?1, ?2, NULL, 'n', NULL, x'', 0, '', ?1, '', 0, 0, 0, '', '', '', NULL)",
                params![no as i64, tenant],
            )
            .unwrap();
        }
        let (select, values) = select(&conn, query, Trust::Whole).unwrap();
        let mut statement = conn
            .prepare(&format!("EXPLAIN QUERY PLAN {select}"))
            .unwrap();
        let steps = statement.query_map(params_from_iter(values), |row| row.get(3));
        steps.unwrap().collect::<rusqlite::Result<_>>().unwrap()
    }

    #[test]
    fn a_page_of_the_list_reads_only_its_rows() {
        let page = SessionQuery {
            limit: Some(50),
            ..SessionQuery::default()
        };
        let search = "SEARCH session USING INDEX session_updated (tenant=?)";
        assert_eq!(plan(&["", ""], &page), [search]);
        let changed = SessionQuery {
            since: Some(Time(7)),
            ..page.clone()
        };
        let search = "SEARCH session USING INDEX session_updated (tenant=? AND updated>?)";
        assert_eq!(plan(&["", ""], &changed), [search]);
        assert_eq!(plan(&["", "a"], &changed)[0], search);
        let all = SessionQuery {
            status: vec!["running".into()],
            ..SessionQuery::default()
        };
        assert_eq!(plan(&["", ""], &all)[0], "SCAN session");
        let named = SessionQuery {
            prefix: Some("ab".to_owned()),
            ..page
        };
        let search = "SEARCH session USING INDEX sqlite_autoindex_session_1 (id>? AND id<?)";
        assert_eq!(plan(&["", ""], &named)[0], search);
    }
}
