//! Limits that workers share.

use super::SqliteStore;
use super::writer::Said;
use rusqlite::{Connection, OptionalExtension, params};
use steersman_machine::stored::ids::Time;
use steersman_runtime::Boxed;
use steersman_runtime::store::{Drawn, Limit, Pause, Quotas, StoreError};

/// **Stored**: the beginning of a pause's name. It contains a space, and names of limits contain none.
const PAUSE: &str = "pause ";

/// Draws `wanted` units of a limit, or as many as are left in its window. A new window begins if the last one is over.
fn draw(conn: &Connection, limit: &Limit, wanted: u64, now: Time) -> Said<Drawn> {
    let new = Drawn {
        units: 0,
        opens: now,
    };
    let used = used(conn, limit)?.filter(|used| !limit.is_over(used.opens, now));
    let used = used.unwrap_or(new);
    let units = wanted.min(limit.most.saturating_sub(used.units));
    let used = Drawn {
        units: used.units + units,
        ..used
    };
    note(conn, limit, used)?;
    Ok(Ok(Drawn { units, ..used }))
}

/// Gives drawn units back, if their window is still the newest.
fn give_back(conn: &Connection, limit: &Limit, drawn: Drawn) -> Said<()> {
    if let Some(used) = used(conn, limit)?.filter(|used| used.opens == drawn.opens) {
        let units = used.units.saturating_sub(drawn.units);
        note(conn, limit, Drawn { units, ..used })?;
    }
    Ok(Ok(()))
}

/// Returns what was used of a limit in its newest window.
fn used(conn: &Connection, limit: &Limit) -> rusqlite::Result<Option<Drawn>> {
    conn.prepare_cached("SELECT used, opens FROM quota WHERE place = ?1 AND rate = ?2")?
        .query_row(params![limit.place, &*limit.rate], |row| {
            Ok(Drawn {
                units: row.get::<_, i64>(0)? as u64,
                opens: Time(row.get(1)?),
            })
        })
        .optional()
}

/// Stores the use of a limit in its newest window.
fn note(conn: &Connection, limit: &Limit, used: Drawn) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO quota (place, rate, opens, used) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![
        limit.place,
        &*limit.rate,
        used.opens.0,
        i64::try_from(used.units).unwrap_or(i64::MAX)
    ])
    .map(drop)
}

fn pause(conn: &Connection, pause: &Pause) -> Said<()> {
    conn.prepare_cached(
        "INSERT INTO quota (place, rate, opens, used) VALUES (?1, ?2, ?3, 0)
         ON CONFLICT (place, rate) DO UPDATE SET opens = max(opens, excluded.opens)",
    )?
    .execute(params![
        pause.place,
        format!("{PAUSE}{}", pause.model),
        pause.until.0
    ])?;
    Ok(Ok(()))
}

fn pauses(conn: &Connection, now: Time) -> rusqlite::Result<Vec<Pause>> {
    conn.prepare_cached(
        "SELECT place, substr(rate, length(?1) + 1), opens FROM quota
         WHERE substr(rate, 1, length(?1)) = ?1 AND opens > ?2 ORDER BY place, rate",
    )?
    .query_map(params![PAUSE, now.0], |row| {
        Ok(Pause {
            place: row.get(0)?,
            model: row.get::<_, String>(1)?.into(),
            until: Time(row.get(2)?),
        })
    })?
    .collect()
}

impl Quotas for SqliteStore {
    fn draw<'a>(
        &'a self,
        limit: &'a Limit,
        wanted: u64,
        now: Time,
    ) -> Boxed<'a, Result<Drawn, StoreError>> {
        let limit = limit.clone();
        self.write(move |conn, _| draw(conn, &limit, wanted, now))
    }

    fn drawn<'a>(&'a self, limit: &'a Limit, now: Time) -> Boxed<'a, Result<u64, StoreError>> {
        let limit = limit.clone();
        self.read(move |conn| {
            let used = used(conn, &limit)?.filter(|used| !limit.is_over(used.opens, now));
            Ok(used.map_or(0, |used| used.units))
        })
    }

    fn give_back<'a>(
        &'a self,
        limit: &'a Limit,
        drawn: Drawn,
    ) -> Boxed<'a, Result<(), StoreError>> {
        let limit = limit.clone();
        self.write(move |conn, _| give_back(conn, &limit, drawn))
    }

    fn pause(&self, given: Pause) -> Boxed<'_, Result<(), StoreError>> {
        self.write(move |conn, _| pause(conn, &given))
    }

    fn pauses(&self, now: Time) -> Boxed<'_, Result<Vec<Pause>, StoreError>> {
        self.read(move |conn| pauses(conn, now))
    }
}
