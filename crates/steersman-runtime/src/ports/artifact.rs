//! The artifacts of a session, as agents and tools read them.

use crate::retrieval::{IndexError, Retrieval};
use crate::store::{Coming, Store, StoreError};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::context::Request;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::ids::{Id, hex};
use steersman_machine::stored::interaction::Artifact;
use steersman_machine::stored::outcome::NewWrite;
use steersman_machine::view::artifact;
use steersman_machine::view::rating;
use steersman_machine::view::rating::{BEST, Rater, Rating, WORST};

/// Maximum number of characters of one line. The rest of a longer line counts as further lines, so that every text can be read in
/// pieces.
const LINE: usize = 2_000;
/// Maximum number of artifacts that a search returns.
const FOUND: usize = 10;
/// Maximum number of lines that a search shows of each artifact.
const LINES_FOUND: usize = 5;
/// Maximum number of characters that are shown of a found line or a preview.
const SHOWN: usize = 200;
/// Largest artifact that is searched, in bytes.
const SEARCHED: u64 = 4 << 20;

/// The artifacts that an agent sees in one snapshot.
#[derive(Clone)]
pub struct Artifacts {
    store: Arc<dyn Store>,
    coming: Coming,
    snapshot: Snapshot,
    agent: Option<Id>,
}

/// One version of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The name under which the agent sees the artifact.
    pub name: String,
    /// Number of the version, from 1.
    pub version: usize,
    /// Media type, such as `text/plain`.
    pub media: String,
    /// Length of the content, in bytes.
    pub len: u64,
    /// blake3 hash of the content.
    pub hash: [u8; 32],
    /// The call that made it.
    pub call: Id,
    /// The rating by a person, otherwise by an agent. `None` means that nobody rated this version.
    pub rating: Option<Rating>,
}

/// Reasons for which an artifact cannot be read or rated.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// No artifact has this name.
    #[error("there is no artifact `{name}`; {}", there(.known))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// Names of the artifacts that exist.
        known: Vec<String>,
    },
    /// The artifact has fewer versions.
    #[error("`{name}` has no version {version}: the newest is {versions}")]
    NoVersion {
        /// Name of the artifact.
        name: String,
        /// The version that was asked for.
        version: usize,
        /// Number of versions that exist.
        versions: usize,
    },
    /// Several contents have a digest that begins like this one.
    #[error("several artifacts have a digest like `{0}`; give more of its digits")]
    Digests(String),
    /// The content was erased. Holds the name of the artifact.
    #[error("the content of `{0}` was erased")]
    Erased(String),
    /// A rating is not valid. Holds the message.
    #[error("{0}")]
    Unfit(String),
    /// The artifacts cannot be indexed for a search.
    #[error(transparent)]
    Index(IndexError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn there(known: &[String]) -> String {
    match known {
        [] => "there are none".to_owned(),
        known => format!("there are {}", known.join(", ")),
    }
}

impl Artifacts {
    /// Returns the artifacts that an agent sees in a snapshot. `None` means the view of the session's root agent.
    pub fn new(store: Arc<dyn Store>, snapshot: Snapshot, agent: impl Into<Option<Id>>) -> Self {
        Self {
            store,
            coming: Coming::default(),
            snapshot,
            agent: agent.into(),
        }
    }

    /// Also reads contents that are not on disk yet.
    pub(crate) fn and_coming(self, coming: &Coming) -> Self {
        Self {
            coming: coming.clone(),
            ..self
        }
    }

    /// Returns a request with the contents of its files. A file whose content was erased stays without one.
    pub(crate) async fn filled(&self, request: &Request) -> Result<Request, StoreError> {
        let hashes = request.segments.files().map(|file| file.hash);
        let hashes: BTreeSet<[u8; 32]> = hashes.collect();
        let mut contents = BTreeMap::new();
        for hash in hashes {
            let content = self.blob(&hash).await?;
            contents.insert(hash, content);
        }
        let content = |hash: &[u8; 32]| contents.get(hash).cloned().flatten();
        Ok(request.clone().with_contents(content))
    }

    async fn blob(&self, hash: &[u8; 32]) -> Result<Option<Arc<[u8]>>, StoreError> {
        match self.coming.get(hash) {
            Some(bytes) => Ok(Some(bytes)),
            None => self.store.blob(hash).await,
        }
    }

    /// Returns all versions of all artifacts, by name, and by version from the oldest.
    pub fn versions(&self) -> Vec<Version> {
        let seen = artifact::seen(&self.snapshot, self.agent);
        let versions = seen.iter().flat_map(|seen| {
            let numbered = seen.versions.iter().enumerate();
            numbered.map(|(k, version)| self.about(&seen.name, k + 1, version))
        });
        versions.collect()
    }

    /// Returns the newest version of each artifact, by name.
    pub fn newest(&self) -> Vec<Version> {
        let seen = artifact::seen(&self.snapshot, self.agent);
        let newest = seen.iter().filter_map(|seen| {
            let last = seen.versions.last()?;
            Some(self.about(&seen.name, seen.versions.len(), last))
        });
        newest.collect()
    }

    /// Returns one version of the artifact with this name. `None` as the version means the newest.
    ///
    /// # Errors
    /// [`ArtifactError::Unknown`] and [`ArtifactError::NoVersion`].
    pub fn find(&self, name: &str, version: Option<usize>) -> Result<Version, ArtifactError> {
        let Some(versions) = artifact::find(&self.snapshot, self.agent, name) else {
            let known = artifact::seen(&self.snapshot, self.agent);
            return Err(ArtifactError::Unknown {
                name: name.to_owned(),
                known: known.into_iter().map(|seen| seen.name).collect(),
            });
        };
        let wanted = version.unwrap_or(versions.len());
        let found = wanted.checked_sub(1).and_then(|k| versions.get(k));
        let found = found.ok_or_else(|| ArtifactError::NoVersion {
            name: name.to_owned(),
            version: wanted,
            versions: versions.len(),
        })?;
        Ok(self.about(name, wanted, found))
    }

    /// Like [`Self::find`]; the name may also be `blake3:` with the beginning of the digest of a content, in hexadecimal digits.
    ///
    /// # Errors
    /// As of [`Self::find`]; [`ArtifactError::Digests`] if several contents have such a digest.
    pub fn find_any(&self, name: &str, version: Option<usize>) -> Result<Version, ArtifactError> {
        let found = self.find(name, version);
        let digits = name.strip_prefix("blake3:").map(str::to_ascii_lowercase);
        let (Err(ArtifactError::Unknown { .. }), Some(digits)) = (&found, digits) else {
            return found;
        };
        let mut same = self.versions();
        same.retain(|one| {
            let is_wanted = version.is_none_or(|wanted| one.version == wanted);
            is_wanted && hex(&one.hash).starts_with(&digits)
        });
        let Some(newest) = same.pop() else {
            return found;
        };
        if same.iter().any(|other| other.hash != newest.hash) {
            return Err(ArtifactError::Digests(name.to_owned()));
        }
        Ok(newest)
    }

    /// Returns all versions with their contents, in the order of [`Artifacts::versions`]. The content is `None` if it was erased.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn contents(&self) -> Result<Vec<(Version, Option<Arc<[u8]>>)>, ArtifactError> {
        let mut all = Vec::new();
        for version in self.versions() {
            let content = self.blob(&version.hash).await?;
            all.push((version, content));
        }
        Ok(all)
    }

    /// Returns the write of state with which a person rates a version. An edit by that person carries this write.
    ///
    /// # Errors
    /// [`ArtifactError::Unknown`], [`ArtifactError::NoVersion`], and [`ArtifactError::Unfit`] if the rating is out of range.
    pub fn rated(
        &self,
        name: &str,
        version: Option<usize>,
        rating: u8,
        reason: Option<&str>,
        by: &str,
    ) -> Result<NewWrite, ArtifactError> {
        let found = self.find(name, version)?;
        if !(WORST..=BEST).contains(&rating) {
            return Err(ArtifactError::Unfit(format!(
                "a rating is from {WORST} to {BEST}, not {rating}"
            )));
        }
        let versions = artifact::find(&self.snapshot, self.agent, name);
        let of = versions.and_then(|versions| versions.get(found.version - 1));
        let of = of.expect("it was found");
        let rating = Rating {
            rating,
            reason: reason.map(str::to_owned),
            by: by.to_owned(),
            rater: Rater::Person,
        };
        Ok(rating::write(of, &rating))
    }

    fn about(&self, name: &str, version: usize, of: &Artifact) -> Version {
        Version {
            name: name.to_owned(),
            version,
            media: of.media.to_string(),
            len: of.len,
            hash: of.hash,
            call: of.call,
            rating: rating::of(&self.snapshot, of),
        }
    }

    /// Returns the content of a version.
    ///
    /// # Errors
    /// [`ArtifactError::Erased`], and errors of the store.
    pub async fn content(&self, version: &Version) -> Result<Arc<[u8]>, ArtifactError> {
        let content = self.blob(&version.hash).await?;
        content.ok_or_else(|| ArtifactError::Erased(version.name.clone()))
    }
}

/// An artifact that a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundArtifact {
    /// Newest version of the artifact.
    pub version: Version,
    /// The lines with the most words of the query, at most five, in their order: line number from 1, and the beginning of the
    /// line. Empty if no line has a word of the query, for example if only the name matches.
    pub lines: Vec<(usize, String)>,
}

impl Artifacts {
    /// Returns the beginning of a version in one line of about 200 characters. Returns `None` if the content is not text, is
    /// larger than 4 MiB, or was erased.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn preview(&self, version: &Version) -> Result<Option<String>, ArtifactError> {
        let Some(text) = self.text(version).await? else {
            return Ok(None);
        };
        let mut words = String::new();
        for word in text.split_whitespace() {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(word);
            if words.len() > 4 * SHOWN {
                break;
            }
        }
        let more = words.chars().nth(SHOWN).is_some();
        let shown = shown_line(&words);
        Ok((!shown.is_empty()).then(|| if more { format!("{shown} ..") } else { shown }))
    }

    async fn text(&self, version: &Version) -> Result<Option<String>, ArtifactError> {
        if version.len > SEARCHED {
            return Ok(None);
        }
        match self.content(version).await {
            Ok(content) => Ok(std::str::from_utf8(&content).ok().map(str::to_owned)),
            Err(ArtifactError::Erased(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the artifacts that match a query best, at most ten: by full text if there is an index, otherwise by how many of
    /// the words they have. Ratings raise or lower an artifact's place. Artifacts with equal scores are sorted by name.
    ///
    /// # Errors
    /// Errors of the store, and [`ArtifactError::Index`].
    pub async fn search(
        &self,
        query: &str,
        retrieval: Option<&dyn Retrieval>,
    ) -> Result<Vec<FoundArtifact>, ArtifactError> {
        let lower = query.to_lowercase();
        let words: BTreeSet<&str> = lower.split_whitespace().collect();
        let mut texts = Vec::new();
        for version in self.newest() {
            let text = self.text(&version).await?.unwrap_or_default();
            texts.push((version, text));
        }
        let mut found = Vec::new();
        let scores = scores(&texts, query, &words, retrieval)?;
        for ((version, text), score) in texts.into_iter().zip(scores) {
            if score > 0.0 {
                let rating = version.rating.as_ref().map(|rating| rating.rating);
                let lines = best_lines(&text, &words);
                let one = FoundArtifact { version, lines };
                found.push((score * Rating::weight(rating), one));
            }
        }
        found.sort_by(|(a, this), (b, that)| {
            let names = || this.version.name.cmp(&that.version.name);
            b.total_cmp(a).then_with(names)
        });
        found.truncate(FOUND);
        Ok(found.into_iter().map(|(_, found)| found).collect())
    }
}

/// Returns a score for each text. 0 means that the text does not match.
fn scores(
    texts: &[(Version, String)],
    query: &str,
    words: &BTreeSet<&str>,
    retrieval: Option<&dyn Retrieval>,
) -> Result<Vec<f64>, ArtifactError> {
    let named = |version: &Version, text: &str| format!("{}\n{text}", version.name);
    let Some(retrieval) = retrieval else {
        let score = |(version, text): &(Version, String)| {
            let text = named(version, text).to_lowercase();
            words.iter().filter(|word| text.contains(**word)).count() as f64
        };
        return Ok(texts.iter().map(score).collect());
    };
    let all: Vec<String> = texts.iter().map(|(v, text)| named(v, text)).collect();
    let numbered: Vec<(u64, &str)> = (0..).zip(all.iter().map(|text| &**text)).collect();
    let found = retrieval.index().and_then(|mut index| {
        index.add(&numbered)?;
        index.find(query, texts.len().max(1), &|_| false)
    });
    let mut scores = vec![0.0; texts.len()];
    for (number, score) in found.map_err(ArtifactError::Index)? {
        if let Some(known) = usize::try_from(number).ok().and_then(|n| scores.get_mut(n)) {
            // A word that all texts have gives a score of 0, but the texts match all the same.
            *known = score.max(f64::MIN_POSITIVE);
        }
    }
    Ok(scores)
}

/// Returns the lines with the most words of the query, in their order.
fn best_lines(text: &str, words: &BTreeSet<&str>) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, usize, &str)> = Vec::new();
    for (k, line) in text.lines().flat_map(pieces).enumerate() {
        let lower = line.to_lowercase();
        let has = words.iter().filter(|word| lower.contains(**word)).count();
        if has > 0 {
            lines.push((has, k + 1, line));
        }
    }
    lines.sort_by_key(|(has, number, _)| (Reverse(*has), *number));
    lines.truncate(LINES_FOUND);
    lines.sort_by_key(|(_, number, _)| *number);
    let shown = lines.into_iter();
    shown
        .map(|(_, number, line)| (number, shown_line(line)))
        .collect()
}

/// Splits a line into pieces of at most [`LINE`] characters.
pub(crate) fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        match text.char_indices().nth(LINE) {
            Some((at, _)) => {
                let (piece, behind) = text.split_at(at);
                rest = Some(behind);
                Some(piece)
            }
            None => Some(text),
        }
    })
}

/// Returns a line as it can be shown: shortened, and without characters that move a cursor or hide text.
fn shown_line(line: &str) -> String {
    let line: String = line.trim().chars().take(SHOWN).collect();
    line.replace(char::is_control, " ")
}
