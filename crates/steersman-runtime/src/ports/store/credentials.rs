//! The credentials port: sealed tokens by which the runtime uses servers on behalf of a tenant or a subject.

use super::{Scope, StoreError};
use crate::Boxed;
use std::sync::Arc;
use steersman_machine::stored::ids::{Name, Time};

/// Sealed credentials for servers, by server, tenant and subject.
pub trait Credentials: Send + Sync + 'static {
    /// Returns the credential of exactly this server, tenant and subject.
    fn credential<'a>(
        &'a self,
        of: &'a CredentialOf,
    ) -> Boxed<'a, Result<Option<Credential>, StoreError>>;

    /// Stores a credential in place of the one with version `before`; 0 means that there is none. Returns false, and changes
    /// nothing, if the store has another version: another process has renewed it.
    fn put_credential<'a>(
        &'a self,
        of: &'a CredentialOf,
        before: u64,
        new: Credential,
    ) -> Boxed<'a, Result<bool, StoreError>>;

    /// Deletes a credential. Returns false if there is none.
    fn drop_credential<'a>(&'a self, of: &'a CredentialOf) -> Boxed<'a, Result<bool, StoreError>>;
}

/// The server that a credential is for, and those on whose behalf it is used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CredentialOf {
    /// Name of the server: its address, without anything that a session could choose.
    pub server: Name,
    /// The tenant, and the subject if the credential is that of one person.
    pub scope: Scope,
}

/// A sealed credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Version of the credential, from 1. Each renewal has a greater one.
    pub version: u64,
    /// The credential, sealed by [`Sealer::seal_text`](crate::seal::Sealer::seal_text).
    pub sealed: Arc<str>,
    /// Time after which it must be renewed, if that is known.
    pub until: Option<Time>,
}
