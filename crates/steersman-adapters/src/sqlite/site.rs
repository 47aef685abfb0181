//! The site of a SQLite store: how the store at an address is opened, accepted, cleaned and checked.

use super::{SqliteOptions, SqliteStore, accept, collect_garbage, flush, forget};
use crate::stores::{
    Beside, Care, ErasedContents, Forgot, Garbage, Ids, KeptStore, Passed, SealedWith, Site,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steersman_machine::stored::ids::Time;
use steersman_runtime::Boxed;
use steersman_runtime::store::StoreError;

/// The path of a store's file. The file need not exist.
pub(crate) struct SqliteSite(PathBuf);

impl SqliteSite {
    pub(crate) fn new(file: impl Into<PathBuf>) -> Self {
        Self(file.into())
    }
}

impl Site for SqliteSite {
    fn open(&self, read_only: bool) -> Result<Arc<dyn KeptStore>, StoreError> {
        let options = SqliteOptions {
            read_only,
            ..SqliteOptions::default()
        };
        Ok(Arc::new(SqliteStore::open_with(&self.0, &options)?))
    }
    fn address(&self) -> PathBuf {
        self.0.clone()
    }
    fn exists(&self) -> bool {
        self.0.exists()
    }
    fn folder(&self) -> Option<PathBuf> {
        let folder = self.0.parent().filter(|f| !f.as_os_str().is_empty());
        Some(folder.unwrap_or(Path::new(".")).to_owned())
    }
    fn accept(&self, at: Time) -> Result<Option<StoreError>, StoreError> {
        accept(&self.0, at)
    }
    fn collect_garbage(
        &self,
        delete: bool,
        erased: &ErasedContents,
    ) -> Result<Garbage, StoreError> {
        collect_garbage(&self.0, delete, erased)
    }
    fn forget(
        &self,
        session: &str,
        contents: &[[u8; 32]],
        passed: &Passed,
    ) -> Result<Forgot, StoreError> {
        forget(&self.0, session, contents, passed)
    }
    fn flush(&self) -> Result<bool, StoreError> {
        flush(&self.0)
    }
}

impl Care for SqliteStore {
    fn doubt(&self) -> Option<&StoreError> {
        Self::doubt(self)
    }
    fn has_begun_unsafe(&self) -> Boxed<'static, Result<bool, StoreError>> {
        Self::has_begun_unsafe(self)
    }
    fn may_be_written(&self) -> std::io::Result<()> {
        Self::may_be_written(self)
    }
    fn check_structure(&self) -> Boxed<'_, Result<Vec<String>, StoreError>> {
        Box::pin(Self::check_structure(self))
    }
    fn sealed_with(&self) -> Boxed<'static, Result<SealedWith, StoreError>> {
        Self::sealed_with(self)
    }
    fn ids(&self) -> Boxed<'static, Result<Ids, StoreError>> {
        Self::ids(self)
    }
    fn beside(&self, session: &str) -> Boxed<'static, Result<Beside, StoreError>> {
        Self::beside(self, session)
    }
    fn backup(&self, to: &Path) -> Boxed<'static, Result<u64, StoreError>> {
        Self::backup(self, to)
    }
}
