//! Ratings of artifacts: an agent or a person rates a version.
//!
//! A rating is a write of state, in the scope of the artifact. The name of its entry begins with a sign that no declared entry
//! may have. So it never collides with a declared entry, and lists of state do not show it. All rules of writes hold for
//! ratings: they take effect when an exchange closes, follow branches, are undone by a rewind, conflict in an adoption and are
//! erased with the line that brought them. The entry names the version by the hash of its content, because the number of a
//! version is valid only within one branch.

use crate::snapshot::Snapshot;
use crate::stored::bounds::cut;
use crate::stored::ids::{Id, Name, hex};
use crate::stored::interaction::Artifact;
use crate::stored::outcome::NewWrite;
use crate::values::types::Misfit;
use serde_json::{Value as Json, json};

/// The lowest rating.
pub const WORST: u8 = 1;
/// The highest rating.
pub const BEST: u8 = 5;
/// Maximum size, in bytes, of a reason. A longer one is cut.
pub const REASON: usize = 1 << 10;

/// First character of a rating's entry. Names of declared entries begin with a letter.
const SIGN: char = '@';
/// Number of hexadecimal digits of the content's hash in an entry's name.
const DIGITS: usize = 16;

/// The party that rates: an agent or a person.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Rater {
    /// An agent of the session.
    Agent,
    /// A person, who outranks every agent.
    Person,
}

impl Rater {
    const fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Person => "person",
        }
    }
}

/// The rating of one version of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rating {
    /// The rating, from [`WORST`] to [`BEST`].
    pub rating: u8,
    /// Reason for the rating.
    pub reason: Option<String>,
    /// The agent, by the name of its definition, or the person.
    pub by: String,
    /// Tells if `by` names an agent or a person.
    pub rater: Rater,
}

impl Rating {
    /// Returns the factor for the rank of a found item: 1 for a rating of 3 and for no rating, 0.5 to 1.5 for the others.
    pub fn weight(rating: Option<u8>) -> f64 {
        // 0.5, 0.75, 1, 1.25, 1.5
        f64::from(rating.unwrap_or(3) + 1) / 4.0
    }

    /// Returns the rating in words: `rated 4 of 5 by ann: well sourced`.
    pub fn told(&self) -> String {
        let reason = self.reason.as_deref().map_or_else(String::new, |reason| {
            format!(": {}", reason.replace(char::is_control, " "))
        });
        let by = self.by.replace(char::is_control, " ");
        format!("rated {} of {BEST} by {by}{reason}", self.rating)
    }
}

/// Returns a reason as it is stored: trimmed and cut to [`REASON`]. `None` means that it is blank.
pub fn reason_of(reason: &str) -> Option<String> {
    let reason = reason.trim();
    (!reason.is_empty()).then(|| cut(reason, REASON).into_owned())
}

/// Returns true if an entry of state is a rating.
pub fn is_rating(entry: &str) -> bool {
    entry.starts_with(SIGN)
}

/// Returns the name of the artifact that an entry of state rates. `None` means that the entry is not a rating.
pub fn rated(entry: &str) -> Option<&str> {
    let rates = is_rating(entry).then(|| entry.splitn(3, '/').nth(2));
    rates.flatten()
}

/// Returns the version that an entry rates, in words, with a mark if an agent rated it: `report.md`, `report.md, version 1, by an
/// agent`. `None` means that the entry is not a rating, or that no stored version has its hash.
pub fn told_in(snapshot: &Snapshot, scope: Id, entry: &str) -> Option<String> {
    let mut parts = entry.strip_prefix(SIGN)?.splitn(3, '/');
    let (rater, digits, name) = (parts.next()?, parts.next()?, parts.next()?);
    let versions = snapshot.artifacts.get(&(scope, name.into()))?;
    let of = |version: &Artifact| hex(&version.hash)[..DIGITS] == *digits;
    let place = versions.iter().rposition(of)?;
    let version = match place + 1 {
        newest if newest == versions.len() => String::new(),
        older => format!(", version {older}"),
    };
    let by = match rater {
        rater if rater == Rater::Agent.word() => ", by an agent",
        _ => "",
    };
    Some(format!("{name}{version}{by}"))
}

/// Returns a stored rating in words: `2 of 5: thin`.
pub fn told_value(value: &Json) -> Option<String> {
    let rating = read(value, Rater::Agent)?;
    let reason = rating.reason.map_or_else(String::new, |reason| {
        format!(": {}", reason.replace(char::is_control, " "))
    });
    Some(format!("{} of {BEST}{reason}", rating.rating))
}

/// Returns an entry of state in words.
pub fn told_entry(entry: &str) -> String {
    rated(entry).map_or_else(
        || format!("state.{entry}"),
        |artifact| format!("the rating of `{artifact}`"),
    )
}

fn entry(rater: Rater, hash: &[u8; 32], name: &str) -> String {
    let digits = &hex(hash)[..DIGITS];
    format!("{SIGN}{}/{digits}/{name}", rater.word())
}

/// Returns the write that rates a version of an artifact.
pub fn write(artifact: &Artifact, rating: &Rating) -> NewWrite {
    let Rating {
        rating: stars,
        reason,
        by,
        rater,
    } = rating;
    let entry = entry(*rater, &artifact.hash, &artifact.name);
    let reason = reason.as_deref().and_then(reason_of);
    NewWrite {
        // The name includes the scope, because a writer also sees artifacts of other scopes.
        name: format!("{SIGN}{}{entry}", artifact.scope),
        value: Some(json!({ "rating": stars, "reason": reason, "by": by })),
        seal: false,
    }
}

/// Returns the rating of a version: the last rating by a person, or else the last by an agent.
pub fn of(snapshot: &Snapshot, artifact: &Artifact) -> Option<Rating> {
    let of = |rater| {
        let entry = Name::from(entry(rater, &artifact.hash, &artifact.name));
        let cell = snapshot.cell(artifact.scope, &entry)?;
        read(&cell.value.0, rater)
    };
    of(Rater::Person).or_else(|| of(Rater::Agent))
}

fn read(value: &Json, rater: Rater) -> Option<Rating> {
    let rating = value.get("rating")?.as_u64()?;
    let rating = u8::try_from(rating).ok()?;
    let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
    (WORST..=BEST).contains(&rating).then(|| Rating {
        rating,
        reason: text("reason"),
        by: text("by").unwrap_or_default(),
        rater,
    })
}

/// Returns the scope and the entry to which a rating is written. `name` is the name that [`write`] made.
pub(crate) fn place(
    snapshot: &Snapshot,
    name: &str,
    value: Option<&Json>,
) -> Result<(Id, Name), Misfit> {
    let gone = || Misfit::new("rates an artifact that does not exist");
    let rest = name.strip_prefix(SIGN).ok_or_else(gone)?;
    let (scope, rest) = rest.split_once(SIGN).ok_or_else(gone)?;
    let scope: Id = scope.parse().map_err(|()| gone())?;
    let mut parts = rest.splitn(3, '/');
    let rater = match parts.next() {
        Some("agent") => Rater::Agent,
        Some("person") => Rater::Person,
        _ => return Err(gone()),
    };
    let (Some(digits), Some(artifact)) = (parts.next(), parts.next()) else {
        return Err(gone());
    };
    let versions = snapshot.artifacts.get(&(scope, artifact.into()));
    let mut versions = versions.into_iter().flatten();
    let version = versions
        .find(|version| hex(&version.hash)[..DIGITS] == *digits)
        .ok_or_else(gone)?;
    if value.is_some_and(|value| read(value, rater).is_none()) {
        return Err(Misfit::new(format!(
            "is not a rating from {WORST} to {BEST}"
        )));
    }
    Ok((scope, entry(rater, &version.hash, artifact).into()))
}
