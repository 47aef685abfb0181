//! The future of a write.

use super::{Inner, SqliteStore};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use steersman_runtime::store::StoreError;
use tokio::sync::oneshot;

/// A queued write. Its first poll writes it, if nobody else does.
pub(super) struct Queued<T> {
    result: oneshot::Receiver<Result<T, StoreError>>,
    inner: Arc<Inner>,
    /// True until somebody waits for an urgent write.
    helps: bool,
}

impl<T> Queued<T> {
    /// `helps`: the write is urgent.
    pub(super) fn new(
        result: oneshot::Receiver<Result<T, StoreError>>,
        inner: Arc<Inner>,
        helps: bool,
    ) -> Self {
        Self {
            result,
            inner,
            helps,
        }
    }
}

impl<T> Future for Queued<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if std::mem::take(&mut self.helps)
            && let Some(writer) = &self.inner.writer
        {
            writer.help();
        }
        let result = Pin::new(&mut self.result).poll(cx);
        result.map(|result| result.unwrap_or_else(|_| Err(SqliteStore::gone(&self.inner.path))))
    }
}

impl<T> Drop for Queued<T> {
    fn drop(&mut self) {
        if self.helps
            && let Some(writer) = &self.inner.writer
        {
            writer.call();
        }
    }
}
