//! Stores by their addresses: `sqlite:FILE`, `memory:`, or the path of a file, which means SQLite.
//!
//! A kind of store is a row of `KINDS`: its scheme, and the [`Site`] of an address. Everything else about it is in its own files.

use crate::sqlite::SqliteSite;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steersman_machine::stored::ids::{Line, Name, Time};
use steersman_runtime::Boxed;
use steersman_runtime::beside::Kept;
use steersman_runtime::seal::KeyId;
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{Lists, SessionId, SessionQuery, Store, StoreError};

/// Makes the site of the rest of an address, after its scheme.
type MakeSite = fn(&str) -> Arc<dyn Site>;

/// Schemes of addresses.
const KINDS: &[(&str, MakeSite)] = &[
    ("sqlite", |file| Arc::new(SqliteSite::new(file))),
    ("memory", |_| Arc::new(Memory)),
];

/// Returns the site of an address.
///
/// # Errors
/// [`UnknownKind`] if the address has a scheme (`SCHEME://`) that no kind of store has.
pub fn at(address: &Path) -> Result<Arc<dyn Site>, UnknownKind> {
    let scheme = address.to_str().and_then(|text| text.split_once(':'));
    let Some((scheme, rest)) = scheme else {
        return Ok(Arc::new(SqliteSite::new(address)));
    };
    if let Some((_, site)) = KINDS.iter().find(|(known, _)| *known == scheme) {
        return Ok(site(rest.strip_prefix("//").unwrap_or(rest)));
    }
    if rest.starts_with("//") {
        return Err(UnknownKind(scheme.to_owned()));
    }
    Ok(Arc::new(SqliteSite::new(address)))
}

/// No kind of store has this scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKind(pub String);

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<String> = KINDS
            .iter()
            .map(|(scheme, _)| format!("`{scheme}:`"))
            .collect();
        let (kind, known) = (&self.0, known.join(", "));
        write!(f, "there is no kind of store `{kind}:`; known are {known}")
    }
}

impl std::error::Error for UnknownKind {}

/// A place where a store is kept, open or not.
pub trait Site: Send + Sync {
    /// Opens the store, and makes it if there is none. If `read_only` is set, the store must exist and is never written.
    ///
    /// # Errors
    /// The store cannot be opened, is of another program, or was written by a newer version.
    fn open(&self, read_only: bool) -> Result<Arc<dyn KeptStore>, StoreError>;

    /// Returns the shortest address of the store; the path of a file.
    fn address(&self) -> PathBuf;

    /// Returns true if the store exists.
    fn exists(&self) -> bool;

    /// Returns the folder in which the store is, with the key that seals its secrets. `None` means that nothing of it outlives
    /// the process.
    fn folder(&self) -> Option<PathBuf>;

    /// Accepts the store as it is, on a person's word. Returns the doubt that was accepted, if there was one.
    ///
    /// # Errors
    /// [`StoreError::Io`] while another process has the store open.
    fn accept(&self, at: Time) -> Result<Option<StoreError>, StoreError>;

    /// Finds contents that nothing names any more, and deletes them if `delete` is set. What only erased lines name counts as named
    /// by nothing.
    ///
    /// # Errors
    /// [`StoreError::Io`] if contents are to be deleted while another process has the store open.
    fn collect_garbage(&self, delete: bool, erased: &ErasedContents)
    -> Result<Garbage, StoreError>;

    /// Deletes contents that one session names, unless something else names them. `passed` are erased lines of other sessions.
    ///
    /// # Errors
    /// [`StoreError::Io`] while another process has the store open.
    fn forget(
        &self,
        session: &str,
        contents: &[[u8; 32]],
        passed: &Passed,
    ) -> Result<Forgot, StoreError>;

    /// Removes overwritten data. Returns false if a reader keeps a part of it until the next call.
    ///
    /// # Errors
    /// The store cannot be written.
    fn flush(&self) -> Result<bool, StoreError>;
}

/// An open store with everything that its maintenance needs.
pub trait KeptStore: Store + Care {}

impl<S: Store + Care> KeptStore for S {}

/// Maintenance of an open store.
pub trait Care: Send + Sync {
    /// Returns the reason why the store is open for reading only until a person accepts it, if there is one.
    fn doubt(&self) -> Option<&StoreError>;

    /// Returns true if an effect of class `unsafe` ever began in the store.
    fn has_begun_unsafe(&self) -> Boxed<'static, Result<bool, StoreError>>;

    /// Checks that the system lets this user write to the store.
    ///
    /// # Errors
    /// The system refuses it.
    fn may_be_written(&self) -> std::io::Result<()>;

    /// Returns the faults in the structure of the store, in words.
    fn check_structure(&self) -> Boxed<'_, Result<Vec<String>, StoreError>>;

    /// Returns the keys that the store needs, with the number of texts that each of them sealed.
    fn sealed_with(&self) -> Boxed<'static, Result<SealedWith, StoreError>>;

    /// Returns the numbers of all sessions with their ids, or a description of the damage because of which a session is not
    /// found by its id.
    fn ids(&self) -> Boxed<'static, Result<Ids, StoreError>>;

    /// Returns the data that is kept about a session apart from its log.
    fn beside(&self, session: &str) -> Boxed<'static, Result<Beside, StoreError>>;

    /// Copies the store into a new file while it is in use. Returns the size of the copy in bytes.
    fn backup(&self, to: &Path) -> Boxed<'static, Result<u64, StoreError>>;
}

/// Blobs without references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Garbage {
    /// Number of blobs without references.
    pub blobs: u64,
    /// Total size of these blobs, in bytes.
    pub bytes: u64,
    /// Number of blobs with references.
    pub kept: u64,
    /// Number of contents that erased lines name, and that stay because something else names them, too.
    pub shared: u64,
}

/// Data that a store keeps about a session apart from its log, for checking that the log is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Inbox messages that were consumed: the log accepted each.
    pub consumed: Vec<Name>,
    /// Lines after the last one of the log that are named by a checkpoint or a wait.
    pub beyond: Vec<(&'static str, Line)>,
    /// Index entries of the session.
    pub kept: Kept,
}

/// Sessions by number: their ids, or a description of the damage.
pub type Ids = Vec<(i64, Result<SessionId, String>)>;

/// Keys with the number of texts that each of them sealed.
pub type SealedWith = BTreeMap<KeyId, u64>;

/// Result of deleting contents that a session named.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Forgot {
    /// Number of deleted blobs; the overwritten data is unreadable once it is removed ([`Site::flush`]).
    pub deleted: u64,
    /// Number of blobs that stay because something else refers to them.
    pub shared: u64,
}

/// Contents of artifacts that erased lines name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErasedContents {
    /// The erased lines.
    pub lines: Passed,
    /// Hashes of the contents that they name. Nothing else than such a line, another line, a message or a memory names them.
    pub contents: BTreeSet<[u8; 32]>,
}

/// Lines by session whose references do not count.
pub type Passed = BTreeMap<SessionId, BTreeSet<Line>>;

/// The site of stores in memory: each opening makes a new store, which ends with its last user.
struct Memory;

impl Site for Memory {
    fn open(&self, _: bool) -> Result<Arc<dyn KeptStore>, StoreError> {
        Ok(Arc::new(MemoryStore::new()))
    }
    fn address(&self) -> PathBuf {
        "memory:".into()
    }
    fn exists(&self) -> bool {
        true
    }
    fn folder(&self) -> Option<PathBuf> {
        None
    }
    fn accept(&self, _: Time) -> Result<Option<StoreError>, StoreError> {
        Ok(None)
    }
    fn collect_garbage(&self, _: bool, _: &ErasedContents) -> Result<Garbage, StoreError> {
        Ok(Garbage::default())
    }
    fn forget(&self, _: &str, _: &[[u8; 32]], _: &Passed) -> Result<Forgot, StoreError> {
        Ok(Forgot::default())
    }
    fn flush(&self) -> Result<bool, StoreError> {
        Ok(true)
    }
}

impl Care for MemoryStore {
    fn doubt(&self) -> Option<&StoreError> {
        None
    }
    fn has_begun_unsafe(&self) -> Boxed<'static, Result<bool, StoreError>> {
        // It cannot be copied, so nobody asks for more.
        Box::pin(async { Ok(false) })
    }
    fn may_be_written(&self) -> std::io::Result<()> {
        Ok(())
    }
    fn check_structure(&self) -> Boxed<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    fn sealed_with(&self) -> Boxed<'static, Result<SealedWith, StoreError>> {
        // Its key ends with the process, like the store.
        Box::pin(async { Ok(SealedWith::new()) })
    }
    fn ids(&self) -> Boxed<'static, Result<Ids, StoreError>> {
        let store = self.clone();
        Box::pin(async move {
            let all = store.sessions(&SessionQuery::default()).await?;
            let ids = all.into_iter().zip(1..);
            Ok(ids.map(|(info, no)| (no, Ok(info.id))).collect())
        })
    }
    fn beside(&self, session: &str) -> Boxed<'static, Result<Beside, StoreError>> {
        let (store, prefix) = (self.clone(), session.to_owned());
        Box::pin(async move {
            let query = SessionQuery {
                prefix: Some(prefix.clone()),
                ..SessionQuery::default()
            };
            let mut found = store.sessions(&query).await?.into_iter();
            let Some(info) = found.find(|info| *info.id == *prefix) else {
                return Err(StoreError::NoSession(prefix.into()));
            };
            let kept = Kept {
                wants: info.left.wants,
                place: info.left.place,
                ..Kept::default()
            };
            Ok(Beside {
                kept,
                ..Beside::default()
            })
        })
    }
    fn backup(&self, to: &Path) -> Boxed<'static, Result<u64, StoreError>> {
        let place = to.display().to_string();
        let why = "a store in memory has no file to copy";
        let source = Arc::new(std::io::Error::other(why));
        Box::pin(async move { Err(StoreError::Io { place, source }) })
    }
}

#[cfg(test)]
mod tests {
    use super::at;
    use std::path::{Path, PathBuf};

    #[test]
    fn an_address_without_a_scheme_is_a_file() {
        let folder = |address: &str| at(Path::new(address)).unwrap().folder();
        assert_eq!(folder("memory:"), None);
        for (address, of) in [
            ("sessions.db", "."),
            ("here/sessions.db", "here"),
            ("sqlite:here/sessions.db", "here"),
            ("sqlite:///there/sessions.db", "/there"),
            ("./memory:", "."),
            ("C:\\here", "."),
        ] {
            assert_eq!(folder(address), Some(PathBuf::from(of)), "{address}");
        }
        let unknown = at(Path::new("postgres://host/db")).err().unwrap();
        assert_eq!(
            unknown.to_string(),
            "there is no kind of store `postgres:`; known are `sqlite:`, `memory:`"
        );
    }
}
