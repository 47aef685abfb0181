//! A session that was read for a screen.

use super::{Ask, LineName, Refusal, ScreenError, ShowScreen, branch_at, branch_name, line};
use crate::log::Log;
use crate::reader::Stored;
use std::sync::Arc;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::Line;
use steersman_runtime::engine::{BranchView, Engine, EngineError, Inspection};
use steersman_runtime::known::Known;
use steersman_runtime::store::SessionQuery;

/// Minimum length of a shown session id. The two characters that name the store are the same for most sessions.
const SHORT: usize = 6;

/// Number of lines from which on a session is long.
const LONG: u64 = 20_000;
/// Number of lines that the beginning of a long session has.
const FIRST: usize = 256;

/// Returns the shortest beginning of `id`, at least six characters, that no other id of `all` has.
pub fn shortest<'a, 'b>(id: &'a str, all: impl Iterator<Item = &'b str>) -> &'a str {
    let shared = all
        .filter(|other| *other != id)
        .map(|other| {
            id.bytes()
                .zip(other.bytes())
                .take_while(|(a, b)| a == b)
                .count()
        })
        .max()
        .unwrap_or(0);
    &id[..(shared + 1).max(SHORT).min(id.len())]
}

/// Returns the session's id as people type it: its shortest unique beginning.
///
/// # Errors
/// Errors of the store.
pub async fn short(engine: &Engine, id: &str) -> Result<String, EngineError> {
    let query = SessionQuery {
        prefix: Some(id[..SHORT.min(id.len())].to_owned()),
        ..SessionQuery::default()
    };
    let alike = engine.store().sessions(&query).await?;
    Ok(shortest(id, alike.iter().map(|s| &*s.id)).to_owned())
}

/// A session that was read: its branches, its log with the secrets masked, and its name as people type it.
pub struct Seen {
    /// The engine that reads it.
    pub engine: Engine,
    /// The session as it is on disk.
    pub inspection: Inspection,
    /// Its log, masked.
    pub log: Log,
    /// The reader of the log.
    pub reader: Arc<Stored>,
    /// The secrets that the session knows.
    pub known: Arc<Known>,
    /// The index of the branch.
    pub at: usize,
    /// True if the branch was named.
    pub is_named: bool,
    /// The session as people type it.
    pub short: String,
    /// True if the log has only the first lines of the session.
    pub begins: bool,
}

impl Seen {
    /// Reads a session, without owning it; a branch by its label or id, otherwise the current one.
    ///
    /// # Errors
    /// The session has no such branch; errors of the store.
    pub async fn read(
        engine: &Engine,
        session: &str,
        branch: Option<&str>,
    ) -> Result<Self, ScreenError> {
        Self::read_for(engine, session, branch, false).await
    }

    /// Reads a session for what is asked: of a long one only the first lines, if only its beginning is asked for
    /// ([`BEGINNING`](super::ShowScreen::BEGINNING)).
    ///
    /// # Errors
    /// As [`Seen::read`].
    pub async fn read_asked(
        engine: &Engine,
        session: &str,
        ask: &Ask,
    ) -> Result<Self, ScreenError> {
        let of_all = ask.branch.is_none() && ask.line.is_none();
        let of_beginning = of_all && ask.form.as_deref() == Some(ShowScreen::BEGINNING);
        Self::read_for(engine, session, ask.branch.as_deref(), of_beginning).await
    }

    async fn read_for(
        engine: &Engine,
        session: &str,
        branch: Option<&str>,
        of_beginning: bool,
    ) -> Result<Self, ScreenError> {
        let inspection = engine.inspect(session).await?;
        let at = branch_at(&inspection, branch)?;
        let reader = Arc::new(Stored::masked(engine, &inspection.info.id));
        let begins = of_beginning && inspection.info.head.0 > LONG;
        let log = if begins {
            Log::begins(&*reader, FIRST).await?
        } else {
            Log::read(&*reader).await?
        };
        let known = reader.masks().await?;
        let short = short(engine, &inspection.info.id).await?;
        Ok(Self {
            engine: engine.clone(),
            inspection,
            log,
            reader,
            known,
            at,
            is_named: branch.is_some(),
            short,
            begins,
        })
    }

    /// Returns the branch.
    pub fn branch(&self) -> &BranchView {
        &self.inspection.branches[self.at]
    }

    /// Returns the branch, if it was named.
    pub fn named(&self) -> Option<&BranchView> {
        self.is_named.then(|| self.branch())
    }

    /// Returns the name as people type it: the session, with the branch if it was named.
    pub fn name(&self) -> String {
        match self.named() {
            Some(branch) => format!("{}:{}", self.short, branch_name(branch)),
            None => self.short.clone(),
        }
    }

    /// Returns all lines that led to the head of the branch, oldest first.
    pub fn path(&self) -> Vec<&Arc<LogLine>> {
        self.log.history(self.branch(), &self.inspection.branches)
    }

    /// Returns the line that is asked for, on the path of the branch.
    ///
    /// # Errors
    /// There is no such line.
    pub fn line(&self, ask: &Ask) -> Result<Option<Line>, Refusal> {
        line(named_line(ask)?.as_ref(), &self.path())
    }

    /// Returns the inspection without secrets.
    pub(super) fn masked(self) -> Self {
        Self {
            inspection: self.known.mask_inspection(self.inspection),
            ..self
        }
    }
}

/// Reads the name of the line that is asked for.
pub(super) fn named_line(ask: &Ask) -> Result<Option<LineName>, Refusal> {
    ask.line.as_deref().map(LineName::parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_short_as_they_can_be() {
        let all = ["aak7wqabcd", "aak7wqxyz0", "aam3xd0000", "mine"];
        assert_eq!(shortest("aak7wqabcd", all.into_iter()), "aak7wqa");
        assert_eq!(shortest("aam3xd0000", all.into_iter()), "aam3xd");
        assert_eq!(shortest("mine", all.into_iter()), "mine");
    }
}
