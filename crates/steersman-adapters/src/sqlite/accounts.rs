//! Tokens, webhooks with their cursors, and heads of conversations.

use super::SqliteStore;
use super::append::{find, name};
use super::writer::Said;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::sync::Arc;
use steersman_machine::stored::ids::{Line, Name, Time};
use steersman_runtime::Boxed;
use steersman_runtime::store::{
    Accounts, CONVERSATION, Conversation, Delivered, Holdings, Scope, SessionId, StoreError, Token,
    Webhook, WebhookId, bounds,
};

const WEBHOOK: &str = "SELECT tenant, name, url, kinds, only, secrets, made, failing FROM webhook";
const TOKEN: &str = "SELECT name, hash, tenant, subject, allows, roles, definitions, made, expires, revoked, used, note FROM token";

/// Encodes names for a column.
fn list<T: AsRef<str>>(names: &[T]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    serde_json::Value::from(names).to_string()
}

/// Reads names from a column. A list that cannot be read is an error, because a shorter list may allow more.
fn listed(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<Arc<str>>> {
    let names: Vec<String> = serde_json::from_str(row.get_ref(column)?.as_str()?)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(e)))?;
    Ok(names.into_iter().map(Arc::from).collect())
}

/// Reads a time that may be absent.
pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Time>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Time))
}

/// Reads the tenant and, from the next column, the subject.
pub(super) fn scope(row: &Row<'_>, column: usize) -> rusqlite::Result<Scope> {
    Ok(Scope {
        tenant: name(row, column)?,
        subject: row.get::<_, Option<Arc<str>>>(column + 1)?,
    })
}

fn token(row: &Row<'_>) -> rusqlite::Result<Token> {
    Ok(Token {
        name: name(row, 0)?,
        hash: row.get(1)?,
        scope: scope(row, 2)?,
        allows: listed(row, 4)?,
        roles: listed(row, 5)?,
        definitions: listed(row, 6)?,
        made: Time(row.get(7)?),
        expires: time(row, 8)?,
        revoked: time(row, 9)?,
        used: time(row, 10)?,
        note: row.get(11)?,
    })
}

fn put_token(conn: &Connection, token: &Token) -> Said<bool> {
    if let Err(e) = bounds::token(token) {
        return Ok(Err(e));
    }
    let made = conn
        .prepare_cached(
            "INSERT INTO token (name, hash, tenant, subject, allows, roles, definitions, made, expires, revoked, used, note)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            &*token.name,
            token.hash,
            &*token.scope.tenant,
            token.scope.subject.as_deref(),
            list(&token.allows),
            list(&token.roles),
            list(&token.definitions),
            token.made.0,
            token.expires.map(|at| at.0),
            token.revoked.map(|at| at.0),
            token.used.map(|at| at.0),
            &*token.note,
        ])?;
    Ok(Ok(made == 1))
}

fn webhook(row: &Row<'_>) -> rusqlite::Result<Webhook> {
    Ok(Webhook {
        id: WebhookId {
            tenant: name(row, 0)?,
            name: name(row, 1)?,
        },
        url: row.get(2)?,
        kinds: listed(row, 3)?,
        only: row.get(4)?,
        secrets: listed(row, 5)?,
        made: Time(row.get(6)?),
        failing: row.get(7)?,
    })
}

fn put_webhook(conn: &Connection, hook: &Webhook) -> Said<bool> {
    if let Err(e) = bounds::webhook(hook) {
        return Ok(Err(e));
    }
    let is_new = hook_no(conn, &hook.id)?.is_none();
    conn.prepare_cached(
        "INSERT INTO webhook (tenant, name, url, kinds, only, secrets, made, failing) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (tenant, name) DO UPDATE
         SET url = ?3, kinds = ?4, only = ?5, secrets = ?6, made = ?7, failing = ?8",
    )?
    .execute(params![
        &*hook.id.tenant,
        &*hook.id.name,
        &*hook.url,
        list(&hook.kinds),
        hook.only.as_deref(),
        list(&hook.secrets),
        hook.made.0,
        hook.failing.as_deref(),
    ])?;
    Ok(Ok(is_new))
}

fn mark_webhook(
    conn: &Connection,
    hook: &WebhookId,
    made: Time,
    failing: Option<&str>,
) -> Said<bool> {
    if let Err(e) = bounds::failing(hook, failing) {
        return Ok(Err(e));
    }
    let marked = conn
        .prepare_cached(
            "UPDATE webhook SET failing = ?4 WHERE tenant = ?1 AND name = ?2 AND made = ?3",
        )?
        .execute(params![&*hook.tenant, &*hook.name, made.0, failing])?;
    Ok(Ok(marked == 1))
}

/// Returns the number of a webhook.
fn hook_no(conn: &Connection, hook: &WebhookId) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT no FROM webhook WHERE tenant = ?1 AND name = ?2")?
        .query_row([&*hook.tenant, &*hook.name], |row| row.get(0))
        .optional()
}

fn drop_webhook(conn: &Connection, hook: &WebhookId) -> Said<bool> {
    let Some(no) = hook_no(conn, hook)? else {
        return Ok(Ok(false));
    };
    conn.prepare_cached("DELETE FROM delivered WHERE hook = ?1")?
        .execute([no])?;
    conn.prepare_cached("DELETE FROM webhook WHERE no = ?1")?
        .execute([no])?;
    Ok(Ok(true))
}

fn delivered(conn: &Connection, hook: i64, session: i64) -> rusqlite::Result<Delivered> {
    let cursor = conn
        .prepare_cached("SELECT line, events FROM delivered WHERE hook = ?1 AND no = ?2")?
        .query_row([hook, session], |row| {
            Ok(Delivered {
                line: Line(row.get::<_, i64>(0)? as u64),
                events: row.get(1)?,
            })
        })
        .optional()?;
    Ok(cursor.unwrap_or_default())
}

fn move_delivered(
    conn: &Connection,
    hook: &WebhookId,
    session: &str,
    from: Delivered,
    to: Delivered,
) -> Said<bool> {
    let of_tenant = "SELECT no FROM session WHERE id = ?1 AND tenant = ?2";
    let no: Option<i64> = conn
        .prepare_cached(of_tenant)?
        .query_row([session, &*hook.tenant], |row| row.get(0))
        .optional()?;
    let (Some(no), Some(hook)) = (no, hook_no(conn, hook)?) else {
        return Ok(Ok(false));
    };
    if delivered(conn, hook, no)? != from {
        return Ok(Ok(false));
    }
    conn.prepare_cached(
        "INSERT OR REPLACE INTO delivered (hook, no, line, events) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![hook, no, to.line.0 as i64, to.events])?;
    Ok(Ok(true))
}

/// Returns the sessions with events after the cursor: those with a line after it, and those where a part of the last line was
/// delivered.
fn behind(conn: &Connection, hook: &WebhookId, limit: i64) -> rusqlite::Result<Vec<SessionId>> {
    conn.prepare_cached(
        "SELECT session.id FROM webhook JOIN session ON session.tenant = webhook.tenant
         LEFT JOIN delivered ON delivered.hook = webhook.no AND delivered.no = session.no
         WHERE webhook.tenant = ?1 AND webhook.name = ?2 AND EXISTS (
             SELECT 1 FROM line
             WHERE key > (session.no << 28) + ifnull(line, 0) - (ifnull(line, 0) > 0 AND events < ?3)
                   AND key <= (session.no << 28) + ?4
         ) ORDER BY session.no LIMIT ?5",
    )?
    .query_map(
        params![&*hook.tenant, &*hook.name, u32::MAX, Line::MAX.0 as i64, limit],
        |row| name(row, 0),
    )?
    .collect()
}

fn put_conversation(conn: &Connection, head: &Conversation) -> Said<()> {
    conn.prepare_cached("DELETE FROM conversation WHERE at < ?1")?
        .execute([head.at.minus(CONVERSATION).0])?;
    conn.prepare_cached(
        "INSERT OR REPLACE INTO conversation (tenant, digest, session, line, at) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        &*head.tenant,
        head.digest,
        &*head.session,
        head.line.0 as i64,
        head.at.0
    ])?;
    Ok(Ok(()))
}

impl Accounts for SqliteStore {
    fn digest_key(&self) -> Boxed<'_, Result<[u8; 32], StoreError>> {
        self.read(|conn| conn.query_row("SELECT key FROM store", [], |row| row.get(0)))
    }

    fn token<'a>(&'a self, name: &'a str) -> Boxed<'a, Result<Option<Token>, StoreError>> {
        let name = name.to_owned();
        self.read(move |conn| {
            conn.prepare_cached(&format!("{TOKEN} WHERE name = ?1"))?
                .query_row([name], token)
                .optional()
        })
    }

    fn put_token(&self, token: Token) -> Boxed<'_, Result<bool, StoreError>> {
        self.write(move |conn, _| put_token(conn, &token))
    }

    fn tokens<'a>(
        &'a self,
        tenant: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Token>, StoreError>> {
        let (tenant, after) = (tenant.to_owned(), after.map(str::to_owned));
        self.read(move |conn| {
            let page = "WHERE tenant = ?1 AND (?2 IS NULL OR name > ?2) ORDER BY name LIMIT ?3";
            conn.prepare_cached(&format!("{TOKEN} {page}"))?
                .query_map(params![tenant, after, most(limit)], token)?
                .collect()
        })
    }

    fn revoke<'a>(
        &'a self,
        tenant: &'a str,
        name: &'a str,
        at: Time,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        let (tenant, name) = (tenant.to_owned(), name.to_owned());
        self.write(move |conn, _| {
            let found = conn
                .prepare_cached(
                    "UPDATE token SET revoked = ifnull(revoked, ?3) WHERE tenant = ?1 AND name = ?2",
                )?
                .execute(params![tenant, name, at.0])?;
            Ok(Ok(found == 1))
        })
    }

    fn used<'a>(&'a self, name: &'a str, hour: Time) -> Boxed<'a, Result<(), StoreError>> {
        let name = name.to_owned();
        self.write(move |conn, _| {
            conn.prepare_cached(
                "UPDATE token SET used = ?2 WHERE name = ?1 AND (used IS NULL OR used < ?2)",
            )?
            .execute(params![name, hour.0])?;
            Ok(Ok(()))
        })
    }

    fn webhooks<'a>(&'a self, tenant: &'a str) -> Boxed<'a, Result<Vec<Webhook>, StoreError>> {
        let tenant = tenant.to_owned();
        self.read(move |conn| {
            conn.prepare_cached(&format!("{WEBHOOK} WHERE tenant = ?1 ORDER BY name"))?
                .query_map([tenant], webhook)?
                .collect()
        })
    }

    fn all_webhooks<'a>(
        &'a self,
        after: Option<&'a WebhookId>,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Webhook>, StoreError>> {
        let (tenant, name) = after
            .map(|after| (after.tenant.to_string(), after.name.to_string()))
            .unzip();
        self.read(move |conn| {
            let page =
                "WHERE ?1 IS NULL OR (tenant, name) > (?1, ?2) ORDER BY tenant, name LIMIT ?3";
            conn.prepare_cached(&format!("{WEBHOOK} {page}"))?
                .query_map(params![tenant, name, most(limit)], webhook)?
                .collect()
        })
    }

    fn mark_webhook<'a>(
        &'a self,
        hook: &'a WebhookId,
        made: Time,
        failing: Option<Arc<str>>,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        let hook = hook.clone();
        self.write(move |conn, _| mark_webhook(conn, &hook, made, failing.as_deref()))
    }

    fn put_webhook(&self, webhook: Webhook) -> Boxed<'_, Result<bool, StoreError>> {
        self.write(move |conn, _| put_webhook(conn, &webhook))
    }

    fn drop_webhook<'a>(&'a self, hook: &'a WebhookId) -> Boxed<'a, Result<bool, StoreError>> {
        let hook = hook.clone();
        self.write(move |conn, _| drop_webhook(conn, &hook))
    }

    fn delivered<'a>(
        &'a self,
        hook: &'a WebhookId,
        session: &'a str,
    ) -> Boxed<'a, Result<Delivered, StoreError>> {
        let (hook, session) = (hook.clone(), session.to_owned());
        self.read(
            move |conn| match (hook_no(conn, &hook)?, find(conn, &session)?) {
                (Some(hook), Some((no, _))) => delivered(conn, hook, no),
                _ => Ok(Delivered::default()),
            },
        )
    }

    fn move_delivered<'a>(
        &'a self,
        hook: &'a WebhookId,
        session: &'a str,
        from: Delivered,
        to: Delivered,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        let (hook, session) = (hook.clone(), session.to_owned());
        self.write(move |conn, _| move_delivered(conn, &hook, &session, from, to))
    }

    fn behind<'a>(
        &'a self,
        hook: &'a WebhookId,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<SessionId>, StoreError>> {
        let hook = hook.clone();
        self.read(move |conn| behind(conn, &hook, most(limit)))
    }

    fn conversation<'a>(
        &'a self,
        tenant: &'a str,
        digest: [u8; 32],
    ) -> Boxed<'a, Result<Option<(SessionId, Line)>, StoreError>> {
        let tenant: Name = tenant.into();
        self.read(move |conn| {
            conn.prepare_cached(
                "SELECT session, line FROM conversation WHERE tenant = ?1 AND digest = ?2",
            )?
            .query_row(params![&*tenant, digest], |row| {
                Ok((name(row, 0)?, Line(row.get::<_, i64>(1)? as u64)))
            })
            .optional()
        })
    }

    fn put_conversation(&self, head: Conversation) -> Boxed<'_, Result<(), StoreError>> {
        self.write(move |conn, _| put_conversation(conn, &head))
    }
    fn holdings<'a>(
        &'a self,
        of: &'a Scope,
        delete: bool,
    ) -> Boxed<'a, Result<Holdings, StoreError>> {
        let of = of.clone();
        if !delete {
            return self.read(move |conn| super::registers::holdings(conn, &of, false));
        }
        self.write(move |conn, _| Ok(Ok(super::registers::holdings(conn, &of, true)?)))
    }
}

/// Converts a limit for SQLite.
pub(super) fn most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
