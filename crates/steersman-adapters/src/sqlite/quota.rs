//! Limits that workers share.

use super::SqliteStore;
use super::writer::Said;
use rusqlite::{Connection, OptionalExtension, params};
use steersman_machine::stored::ids::Time;
use steersman_runtime::Boxed;
use steersman_runtime::store::{Drawn, Limit, Pause, Quotas, StoreError, WINDOWS};

/// **Stored**: the beginning of a pause's name. It contains a space, and names of limits contain none.
const PAUSE: &str = "pause ";
/// **Stored**: the beginning of the name of a window that is not the last one of its limit. A number follows, which is greater the later
/// the window was drawn from, and the name of the limit.
const BEFORE: &str = "before ";

/// A window of a limit that is not the one that was drawn from last.
struct Before {
    /// The name in its row.
    name: String,
    number: u64,
    window: Drawn,
}

/// Draws `wanted` units of a window of a limit, or as many as are left in it.
fn draw(conn: &Connection, limit: &Limit, wanted: u64, opens: Time) -> Said<Drawn> {
    let window = match last(conn, limit)? {
        Some(last) if last.opens == opens => last,
        last => {
            let before = before(conn, limit)?;
            let known = before.iter().find(|before| before.window.opens == opens);
            if let Some(last) = last {
                let number = before.last().map_or(1, |before| before.number + 1);
                note(
                    conn,
                    limit,
                    &format!("{BEFORE}{number} {}", limit.rate),
                    last,
                )?;
                // The new last one is kept, too.
                let left = before.iter().filter(|before| before.window.opens != opens);
                let left: Vec<&Before> = left.collect();
                let over = (left.len() + 2).saturating_sub(WINDOWS);
                for before in left.into_iter().take(over) {
                    forget(conn, limit, &before.name)?;
                }
            }
            if let Some(known) = known {
                forget(conn, limit, &known.name)?;
            }
            known.map_or(Drawn { units: 0, opens }, |known| known.window)
        }
    };
    let units = wanted.min(limit.most.saturating_sub(window.units));
    let window = Drawn {
        units: window.units + units,
        opens,
    };
    note(conn, limit, &limit.rate, window)?;
    Ok(Ok(Drawn { units, opens }))
}

/// Gives drawn units back to their window, if it is still known.
fn give_back(conn: &Connection, limit: &Limit, drawn: Drawn) -> Said<()> {
    let less = |window: Drawn| Drawn {
        units: window.units.saturating_sub(drawn.units),
        ..window
    };
    match last(conn, limit)? {
        Some(last) if last.opens == drawn.opens => note(conn, limit, &limit.rate, less(last))?,
        _ => {
            let before = before(conn, limit)?.into_iter();
            let mut known = before.filter(|before| before.window.opens == drawn.opens);
            if let Some(before) = known.next() {
                note(conn, limit, &before.name, less(before.window))?;
            }
        }
    }
    Ok(Ok(()))
}

/// Returns the window of a limit that was drawn from last.
fn last(conn: &Connection, limit: &Limit) -> rusqlite::Result<Option<Drawn>> {
    conn.prepare_cached("SELECT used, opens FROM quota WHERE place = ?1 AND rate = ?2")?
        .query_row(params![limit.place, &*limit.rate], |row| {
            Ok(Drawn {
                units: row.get::<_, i64>(0)? as u64,
                opens: Time(row.get(1)?),
            })
        })
        .optional()
}

/// Returns the windows of a limit before the last one, in the order in which they were drawn from.
fn before(conn: &Connection, limit: &Limit) -> rusqlite::Result<Vec<Before>> {
    let mut found = Vec::new();
    let mut rows = conn.prepare_cached(
        "SELECT rate, used, opens FROM quota WHERE place = ?1 AND substr(rate, 1, length(?2)) = ?2",
    )?;
    let mut rows = rows.query(params![limit.place, BEFORE])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let Some((number, rate)) = name[BEFORE.len()..].split_once(' ') else {
            continue;
        };
        if let (Ok(number), true) = (number.parse(), *rate == *limit.rate) {
            let window = Drawn {
                units: row.get::<_, i64>(1)? as u64,
                opens: Time(row.get(2)?),
            };
            found.push(Before {
                name,
                number,
                window,
            });
        }
    }
    found.sort_by_key(|before| before.number);
    Ok(found)
}

/// Returns what was used of a window of a limit.
fn used(conn: &Connection, limit: &Limit, opens: Time) -> rusqlite::Result<u64> {
    let last = last(conn, limit)?.filter(|last| last.opens == opens);
    if let Some(last) = last {
        return Ok(last.units);
    }
    let before = before(conn, limit)?.into_iter();
    let mut known = before.filter(|before| before.window.opens == opens);
    Ok(known.next().map_or(0, |before| before.window.units))
}

/// Stores the use of a window of a limit under a name.
fn note(conn: &Connection, limit: &Limit, name: &str, used: Drawn) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO quota (place, rate, opens, used) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![
        limit.place,
        name,
        used.opens.0,
        i64::try_from(used.units).unwrap_or(i64::MAX)
    ])
    .map(drop)
}

/// Removes a window.
fn forget(conn: &Connection, limit: &Limit, name: &str) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM quota WHERE place = ?1 AND rate = ?2")?
        .execute(params![limit.place, name])
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
        opens: Time,
    ) -> Boxed<'a, Result<Drawn, StoreError>> {
        let limit = limit.clone();
        self.write(move |conn, _| draw(conn, &limit, wanted, opens))
    }

    fn drawn<'a>(&'a self, limit: &'a Limit, opens: Time) -> Boxed<'a, Result<u64, StoreError>> {
        let limit = limit.clone();
        self.read(move |conn| used(conn, &limit, opens))
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
