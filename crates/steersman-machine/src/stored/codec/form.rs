//! The versions of the form of lines, and the functions that read their heads.
//!
//! The frame of a line (version, number, lengths, texts, hash) is the same in all versions, and every head begins with the
//! previous line and the branch. So the same code finds, verifies and erases texts in lines of all known versions. A new
//! version changes only the rest of the head. To add one, raise `VERSION`, and move the structs of the previous version here,
//! under names of their own, with a function that converts them to the new ones. Lines are never rewritten: those of an old
//! version stay in the log, and later lines are chained to them by hash.

use super::near;
use crate::stored::commit::{Commit, LedgerEntry};
use crate::stored::ids::{Id, Line};
use serde::Deserialize;

/// Content of a head, in the types of the newest version.
#[derive(Deserialize)]
pub(super) struct Head {
    pub(super) prev: Line,
    pub(super) branch: Id,
    pub(super) commit: Option<Commit>,
    pub(super) ledger: Vec<LedgerEntry>,
}

/// A version of the form of lines.
pub(super) struct Form {
    pub(super) version: u8,
    /// Reads the head of the line with this number.
    pub(super) head: fn(&[u8], Line) -> postcard::Result<Head>,
}

/// All versions that this program reads. It writes the last one.
pub(super) const FORMS: &[Form] = &[Form {
    version: super::VERSION,
    head: |bytes, n| near::read(bytes, n),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::codec::{self, CodecError, framed, verify_by};
    use crate::stored::commit::{LogLine, Text};
    use crate::stored::ids::{Name, Time};
    use serde::Serialize;

    const SALT: [u8; 16] = [5; 16];

    /// A head of an invented version: the commit comes last, and there is one more field.
    #[derive(Serialize, Deserialize)]
    struct OtherHead {
        prev: Line,
        branch: Id,
        mood: Option<Name>,
        ledger: Vec<LedgerEntry>,
        commit: Option<Commit>,
    }

    fn accepted(message: Name) -> LedgerEntry {
        LedgerEntry::Accepted {
            message,
            by: None,
            parent: None,
        }
    }

    fn read_other(bytes: &[u8], n: Line) -> postcard::Result<Head> {
        let other: OtherHead = near::read(bytes, n)?;
        // The additional field becomes an entry of the ledger.
        let mood = other.mood.map(accepted);
        Ok(Head {
            prev: other.prev,
            branch: other.branch,
            commit: other.commit,
            ledger: other.ledger.into_iter().chain(mood).collect(),
        })
    }

    fn both() -> [Form; 2] {
        let head: fn(&[u8], Line) -> postcard::Result<Head> = |bytes, n| near::read(bytes, n);
        [
            Form { version: 1, head },
            Form {
                version: 2,
                head: read_other,
            },
        ]
    }

    fn line(n: u64) -> LogLine {
        LogLine {
            n: Line(n),
            at: Time(0),
            prev: Line(n - 1),
            branch: Id::MAIN,
            commit: Some(Commit::default()),
            ledger: vec![LedgerEntry::Current(Id::MAIN)],
            bodies: vec![Text::Here("a text".into())],
        }
    }

    /// A line of the second version follows one of the first. A reader that knows both versions reads it and checks the hash
    /// chain. A reader that knows only the first refuses it, with an error that says that the line is newer.
    #[test]
    fn two_versions_live_in_one_log() {
        let old = line(7);
        let (bytes_of_old, hash) = codec::encode(&old, &[0; 32], &SALT);
        let new = line(8);
        let head = OtherHead {
            prev: new.prev,
            branch: new.branch,
            mood: Some("calm".into()),
            ledger: new.ledger.clone(),
            commit: new.commit.clone(),
        };
        let head = near::write(&head, new.n, Vec::new()).unwrap();
        let (bytes, hash_of_new) = framed(2, &head, &new, &hash, &SALT);

        let forms = both();
        let read = |bytes: &[u8], prev| verify_by(&forms, bytes, prev, &SALT);
        assert_eq!(read(&bytes_of_old, &[0; 32]), Ok((old, hash)));
        let mut expected = new.clone();
        expected.ledger.push(accepted("calm".into()));
        assert_eq!(read(&bytes, &hash), Ok((expected, hash_of_new)));
        assert_eq!(
            read(&bytes, &[0; 32]),
            Err(CodecError::Hash(Line(8))),
            "after another line"
        );
        // The hash covers the version, so a changed version number is found.
        let mut forged = bytes.clone();
        forged[0] = 1;
        assert_eq!(read(&forged, &hash), Err(CodecError::Hash(Line(8))));

        assert_eq!(codec::decode(&bytes), Err(CodecError::Version(2)));
        let refused = codec::verify(&bytes, &hash, &SALT);
        assert!(refused.is_err_and(|why| why.is_newer()));
        // Number, previous line and branch can be read all the same.
        assert_eq!(codec::peek(&bytes), Ok((Line(8), Line(7), Id::MAIN)));
    }
}
