//! Credentials for servers, and schedules of networks.

use super::SqliteStore;
use super::accounts::{most, time};
use super::append::name;
use super::writer::Said;
use rusqlite::{Connection, OptionalExtension, Row, params};
use steersman_machine::stored::ids::Time;
use steersman_runtime::Boxed;
use steersman_runtime::store::{
    Credential, CredentialOf, Credentials, Holdings, Schedule, ScheduleId, Schedules, Scope,
    StoreError, bounds,
};

fn credential(conn: &Connection, of: &CredentialOf) -> rusqlite::Result<Option<Credential>> {
    conn.prepare_cached(
        "SELECT version, sealed, until FROM credential WHERE server = ?1 AND tenant = ?2 AND subject IS ?3",
    )?
    .query_row(
        params![&*of.server, &*of.scope.tenant, of.scope.subject.as_deref()],
        |row| {
            Ok(Credential {
                version: row.get::<_, i64>(0)? as u64,
                sealed: row.get(1)?,
                until: time(row, 2)?,
            })
        },
    )
    .optional()
}

fn put_credential(
    conn: &Connection,
    of: &CredentialOf,
    before: u64,
    new: &Credential,
) -> Said<bool> {
    if let Err(e) = bounds::credential(of, new) {
        return Ok(Err(e));
    }
    let known = credential(conn, of)?;
    if known.map_or(0, |known| known.version) != before {
        return Ok(Ok(false));
    }
    delete_credential(conn, of)?;
    conn.prepare_cached(
        "INSERT INTO credential (server, tenant, subject, version, sealed, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        &*of.server,
        &*of.scope.tenant,
        of.scope.subject.as_deref(),
        new.version as i64,
        &*new.sealed,
        new.until.map(|until| until.0),
    ])?;
    Ok(Ok(true))
}

fn delete_credential(conn: &Connection, of: &CredentialOf) -> rusqlite::Result<bool> {
    let gone = conn
        .prepare_cached(
            "DELETE FROM credential WHERE server = ?1 AND tenant = ?2 AND subject IS ?3",
        )?
        .execute(params![
            &*of.server,
            &*of.scope.tenant,
            of.scope.subject.as_deref()
        ])?;
    Ok(gone == 1)
}

impl Credentials for SqliteStore {
    fn credential<'a>(
        &'a self,
        of: &'a CredentialOf,
    ) -> Boxed<'a, Result<Option<Credential>, StoreError>> {
        let of = of.clone();
        self.read(move |conn| credential(conn, &of))
    }

    fn put_credential<'a>(
        &'a self,
        of: &'a CredentialOf,
        before: u64,
        new: Credential,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        let of = of.clone();
        self.write(move |conn, _| put_credential(conn, &of, before, &new))
    }

    fn drop_credential<'a>(&'a self, of: &'a CredentialOf) -> Boxed<'a, Result<bool, StoreError>> {
        let of = of.clone();
        self.write(move |conn, _| Ok(Ok(delete_credential(conn, &of)?)))
    }
}

/// Counts what a scope has apart from its sessions and memories, and deletes it if `delete` is true.
pub(super) fn holdings(conn: &Connection, of: &Scope, delete: bool) -> rusqlite::Result<Holdings> {
    const OWN: &str = "tenant = ?1 AND (?2 IS NULL OR subject = ?2)";
    const WHOLE: &str = "tenant = ?1 AND ?2 IS NULL";
    let lead = format!("tenant = ?1 AND session IN (SELECT id FROM session WHERE {OWN})");
    let of = (&*of.tenant, of.subject.as_deref());
    let run = |table: &str, is_meant: &str| -> rusqlite::Result<u64> {
        let from = format!("FROM {table} WHERE {is_meant}");
        if delete {
            let gone = conn
                .prepare_cached(&format!("DELETE {from}"))?
                .execute(of)?;
            return Ok(gone as u64);
        }
        let count: i64 = conn
            .prepare_cached(&format!("SELECT count(*) {from}"))?
            .query_row(of, |row| row.get(0))?;
        Ok(count as u64)
    };
    let hooks = format!("hook IN (SELECT no FROM webhook WHERE {WHOLE})");
    run("delivered", &hooks)?;
    Ok(Holdings {
        tokens: run("token", OWN)?,
        events: run("event", OWN)?,
        conversations: run("conversation", &lead)?,
        credentials: run("credential", OWN)?,
        webhooks: run("webhook", WHOLE)?,
        schedules: run("schedule", WHOLE)?,
    })
}

const SCHEDULE: &str = "SELECT tenant, network, name, digest, next, last, missed FROM schedule";
/// Selects one schedule by its id.
const ONE: &str = "WHERE tenant = ?1 AND network = ?2 AND name = ?3";

fn schedule(row: &Row<'_>) -> rusqlite::Result<Schedule> {
    Ok(Schedule {
        id: ScheduleId {
            tenant: name(row, 0)?,
            network: name(row, 1)?,
            name: name(row, 2)?,
        },
        digest: row.get(3)?,
        next: time(row, 4)?,
        last: time(row, 5)?,
        missed: row.get::<_, i64>(6)? as u64,
    })
}

fn put_schedule(conn: &Connection, new: &Schedule) -> Said<bool> {
    if let Err(e) = bounds::schedule(&new.id) {
        return Ok(Err(e));
    }
    let id = &new.id;
    let made = conn
        .prepare_cached(
            "INSERT INTO schedule (tenant, network, name, digest, next, last, missed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (tenant, network, name) DO UPDATE SET digest = ?4, next = ?5, last = ?6, missed = ?7
             WHERE digest IS NOT ?4",
        )?
        .execute(params![
            &*id.tenant,
            &*id.network,
            &*id.name,
            new.digest,
            new.next.map(|at| at.0),
            new.last.map(|at| at.0),
            i64::try_from(new.missed).unwrap_or(i64::MAX),
        ])?;
    Ok(Ok(made == 1))
}

impl Schedules for SqliteStore {
    fn put_schedule(&self, schedule: Schedule) -> Boxed<'_, Result<bool, StoreError>> {
        self.write(move |conn, _| put_schedule(conn, &schedule))
    }

    fn drop_schedule<'a>(&'a self, id: &'a ScheduleId) -> Boxed<'a, Result<bool, StoreError>> {
        let id = id.clone();
        self.write(move |conn, _| {
            let gone = conn
                .prepare_cached(&format!("DELETE FROM schedule {ONE}"))?
                .execute([&*id.tenant, &*id.network, &*id.name])?;
            Ok(Ok(gone == 1))
        })
    }

    fn schedules(
        &self,
        by: Option<Time>,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Schedule>, StoreError>> {
        self.read(move |conn| {
            let due = match by {
                None => "WHERE ?1 IS NULL ORDER BY tenant, network, name LIMIT ?2",
                Some(_) => "WHERE next <= ?1 ORDER BY next, tenant, network, name LIMIT ?2",
            };
            conn.prepare_cached(&format!("{SCHEDULE} {due}"))?
                .query_map(params![by.map(|by| by.0), most(limit)], schedule)?
                .collect()
        })
    }

    fn move_schedule<'a>(
        &'a self,
        id: &'a ScheduleId,
        at: Time,
        next: Option<Time>,
        missed: u64,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        let id = id.clone();
        self.write(move |conn, _| {
            let moved = conn
                .prepare_cached(&format!(
                    "UPDATE schedule SET last = ?4, next = ?5, missed = missed + ?6 {ONE} AND next = ?4"
                ))?
                .execute(params![
                    &*id.tenant,
                    &*id.network,
                    &*id.name,
                    at.0,
                    next.map(|next| next.0),
                    i64::try_from(missed).unwrap_or(i64::MAX),
                ])?;
            Ok(Ok(moved == 1))
        })
    }
}
