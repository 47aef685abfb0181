//! Indexed texts: the passages of one transcript, or of the documents of one agent.

use super::documents::{self, Mark};
use super::remembered::Remembered;
use super::{Index, IndexError, Retrieval, split};
use crate::past::Past;
use crate::store::{SessionId, StoreError};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use steersman_machine::context::{History, Spoken, Transcript};
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::Hooked;
use steersman_machine::stored::ids::{Bodies, Body, Id, Line};
use steersman_machine::stored::interaction::{Interaction, Number};
use steersman_machine::stored::parts::Parts;
use steersman_machine::view::Cx;

/// Maximum number of indexes of each kind that are kept in a process.
const KEPT: usize = 64;

/// Maximum number of passages of all documents of an agent.
const PASSAGES: usize = 50_000;

/// A passage that can be found.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// The place of the passage, for readers.
    pub(super) from: String,
    pub(super) text: Arc<str>,
    /// Among pieces with the same score, the one with the lower rank comes first: in a transcript, the newer one.
    pub(super) rank: (u64, u64),
}

/// Passages, and an index over them.
pub(super) struct Passages {
    pub(super) index: Box<dyn Index>,
    pub(super) pieces: BTreeMap<u64, Piece>,
    /// Vectors of pieces, each of length 1, by the model that made them.
    pub(super) vectors: BTreeMap<u64, Arc<[f32]>>,
    pub(super) embedded_by: String,
    next: u64,
}

impl Passages {
    pub(super) fn new(retrieval: &dyn Retrieval) -> Result<Self, IndexError> {
        Ok(Self {
            index: retrieval.index()?,
            pieces: BTreeMap::new(),
            vectors: BTreeMap::new(),
            embedded_by: String::new(),
            next: 0,
        })
    }

    /// Adds pieces, each with the words by which it is found. Returns their numbers.
    pub(super) fn add(&mut self, pieces: Vec<(Piece, String)>) -> Result<Vec<u64>, IndexError> {
        let first = self.next;
        let numbered: Vec<(u64, &str)> = (first..)
            .zip(&pieces)
            .map(|(number, (_, words))| (number, &**words))
            .collect();
        self.index.add(&numbered)?;
        self.next += pieces.len() as u64;
        let added = (first..).zip(pieces.into_iter().map(|(piece, _)| piece));
        self.pieces.extend(added);
        Ok((first..self.next).collect())
    }

    pub(super) fn remove(&mut self, numbers: &[u64]) -> Result<(), IndexError> {
        self.index.remove(numbers)?;
        for number in numbers {
            self.pieces.remove(number);
            self.vectors.remove(number);
        }
        Ok(())
    }
}

/// The indexed part of a transcript.
pub(super) struct Said {
    pub(super) passages: Passages,
    transcript: Transcript,
    /// The passages of each text.
    known: BTreeMap<Body, Vec<u64>>,
}

impl Said {
    pub(super) fn new(retrieval: &dyn Retrieval) -> Result<Self, IndexError> {
        Ok(Self {
            passages: Passages::new(retrieval)?,
            transcript: Transcript::default(),
            known: BTreeMap::new(),
        })
    }

    /// Indexes the conversation up to a line. Returns true if the index contains texts that are not on this branch, so that a
    /// new index is needed.
    pub(super) fn follow(&mut self, asked: &Asked<'_>) -> Result<bool, SearchError> {
        let reading = Reading::of(asked.past);
        let cx = Cx {
            network: asked.network,
            bodies: &reading,
        };
        self.transcript
            .follow(&cx, &reading, asked.snapshot, asked.agent);
        let all = self.transcript.upto(asked.upto);
        reading.fault()?;
        let now: BTreeSet<Body> = all.iter().map(|spoken| spoken.body).collect();
        if self.known.keys().any(|body| !now.contains(body)) {
            return Ok(true);
        }
        let mut pieces = Vec::new();
        let mut owners = Vec::new();
        for spoken in all
            .iter()
            .filter(|spoken| !self.known.contains_key(&spoken.body))
        {
            // An erased text is empty.
            let text = asked.past.stored(spoken.body)?.unwrap_or_default();
            let cut = cut(spoken, &text);
            owners.push((spoken.body, cut.len()));
            pieces.extend(cut);
        }
        let mut numbers = self.passages.add(pieces)?.into_iter();
        for (body, count) in owners {
            let own = numbers.by_ref().take(count).collect();
            self.known.insert(body, own);
        }
        Ok(false)
    }

    /// Returns the passages that the agent's prompt contains anyway, and those with the same text.
    pub(super) fn seen(&self, asked: &Asked<'_>) -> Result<BTreeSet<u64>, SearchError> {
        let reading = Reading::of(asked.past);
        let cx = Cx {
            network: asked.network,
            bodies: &reading,
        };
        let seen = self
            .transcript
            .seen(&cx, &reading, asked.snapshot, asked.agent);
        reading.fault()?;
        let mut texts: BTreeSet<Arc<str>> = BTreeSet::new();
        for body in &seen {
            if let Some(text) = asked.past.stored(*body)? {
                let spoken = Spoken {
                    body: *body,
                    line: body.line(),
                    number: Number::default(),
                    behind: 0,
                    who: "".into(),
                    said: true,
                };
                texts.extend(cut(&spoken, &text).into_iter().map(|(piece, _)| piece.text));
            }
        }
        let own = seen
            .iter()
            .filter_map(|body| self.known.get(body))
            .flatten();
        let mut numbers: BTreeSet<u64> = own.copied().collect();
        let pieces = self.passages.pieces.iter();
        let same = pieces.filter(|(_, piece)| texts.contains(&piece.text));
        numbers.extend(same.map(|(number, _)| *number));
        Ok(numbers)
    }
}

/// Returns the passages of a text of the conversation.
fn cut(spoken: &Spoken, text: &str) -> Vec<(Piece, String)> {
    let words = Transcript::words(spoken, text);
    let passages = split::passages(&words, false).into_iter().enumerate();
    // The result of a call is ordered between the message before the call and the next message, whenever it came.
    let (behind, call) = if spoken.said {
        (2 * u64::from(spoken.behind) + 2, 0)
    } else {
        (2 * u64::from(spoken.behind) + 1, spoken.number.call)
    };
    let order = behind << 32 | u64::from(call);
    let pieces = passages.map(|(k, passage)| {
        let piece = Piece {
            from: Transcript::place(spoken),
            text: passage.text.as_str().into(),
            rank: (u64::MAX - order, k as u64),
        };
        (piece, passage.text)
    });
    pieces.collect()
}

/// The agent that searches, and the range of its search.
pub(super) struct Asked<'a> {
    pub(super) network: &'a Network,
    pub(super) past: &'a Past,
    pub(super) snapshot: &'a Snapshot,
    pub(super) agent: Id,
    pub(super) upto: Line,
}

/// The indexed part of an agent's documents.
pub(super) struct Documents {
    pub(super) passages: Passages,
    files: BTreeMap<String, (Mark, Vec<u64>)>,
}

impl Documents {
    pub(super) fn new(retrieval: &dyn Retrieval) -> Result<Self, IndexError> {
        Ok(Self {
            passages: Passages::new(retrieval)?,
            files: BTreeMap::new(),
        })
    }

    /// Indexes files that are new or have changed since the last call, and drops those that are gone.
    pub(super) fn read(&mut self, folder: &Path, paths: &[Arc<str>]) -> Result<(), SearchError> {
        let now = documents::list(folder, paths).map_err(SearchError::Documents)?;
        let gone: Vec<String> = self
            .files
            .iter()
            .filter(|(file, (mark, _))| now.get(*file) != Some(mark))
            .map(|(file, _)| file.clone())
            .collect();
        for file in gone {
            if let Some((_, numbers)) = self.files.remove(&file) {
                self.passages.remove(&numbers)?;
            }
        }
        for (file, mark) in now {
            if self.files.contains_key(&file) {
                continue;
            }
            let read = documents::passages(folder, &file).map_err(SearchError::Documents)?;
            if self.passages.pieces.len() + read.len() > PASSAGES {
                let why = format!(
                    "the documents have more than {PASSAGES} passages; take some out of `knowledge`"
                );
                return Err(SearchError::Documents(why));
            }
            let pieces = read.into_iter().enumerate().map(|(k, passage)| {
                let (from, words) = if passage.heading.is_empty() {
                    (file.clone(), passage.text.clone())
                } else {
                    let from = format!("{file}, \"{}\"", passage.heading);
                    (from, format!("{}\n{}", passage.heading, passage.text))
                };
                let piece = Piece {
                    from,
                    text: passage.text.into(),
                    rank: (0, k as u64),
                };
                (piece, words)
            });
            let numbers = self.passages.add(pieces.collect())?;
            self.files.insert(file, (mark, numbers));
        }
        Ok(())
    }
}

/// Reason why a search failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SearchError {
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Documents(String),
}

/// The past with read faults of its own: they do not appear in [`Past::fault`], which the driver checks before it acts.
struct Reading<'a> {
    past: &'a Past,
    fault: RefCell<Option<StoreError>>,
}

impl<'a> Reading<'a> {
    fn of(past: &'a Past) -> Self {
        Self {
            past,
            fault: RefCell::default(),
        }
    }

    fn fault(&self) -> Result<(), StoreError> {
        self.fault.take().map_or(Ok(()), Err)
    }

    fn note(&self, fault: StoreError) {
        self.fault.borrow_mut().get_or_insert(fault);
    }
}

impl Bodies for Reading<'_> {
    fn parts(&self, body: Body) -> Parts {
        match self.past.stored_parts(body) {
            Ok(parts) => parts.unwrap_or_else(|| Parts::One("".into())),
            Err(fault) => {
                self.note(fault);
                Parts::One("".into())
            }
        }
    }
}

impl History for Reading<'_> {
    fn pushes(&self, agent: Id, line: Line) -> (Arc<[Interaction]>, Line) {
        self.past.pushed(agent, line).unwrap_or_else(|fault| {
            self.note(fault);
            (Arc::default(), Line::NONE)
        })
    }

    fn hooked(&self, effect: Id) -> Vec<Hooked> {
        self.past.hooked(effect)
    }
}

/// Key of a transcript: the session, its owner's mark, the branch, and the agent.
pub(super) type SaidKey = (SessionId, u64, Id, Id);
/// Key of documents: their folder, and their paths.
pub(super) type DocumentsKey = (Arc<Path>, Vec<Arc<str>>);

type Shared<T> = Arc<tokio::sync::Mutex<Option<T>>>;

/// The indexes of this process.
#[derive(Default)]
pub(crate) struct Kept {
    said: Mutex<Newest<SaidKey, Shared<Said>>>,
    documents: Mutex<Newest<DocumentsKey, Shared<Documents>>>,
    remembered: Mutex<Newest<Arc<str>, Shared<Remembered>>>,
}

impl Kept {
    /// Drops the transcripts of a session that was erased.
    pub(crate) fn forget(&self, session: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.0.retain(|((of, ..), _)| &**of != session);
    }

    pub(super) fn said(&self, key: SaidKey) -> Shared<Said> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.get(key)
    }

    /// Returns the index of a memory scope.
    pub(super) fn remembered(&self, scope: Arc<str>) -> Shared<Remembered> {
        let mut remembered = self
            .remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        remembered.get(scope)
    }

    pub(super) fn documents(&self, key: DocumentsKey) -> Shared<Documents> {
        let mut documents = self
            .documents
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        documents.get(key)
    }
}

/// The values that were used last, the newest at the end.
struct Newest<K, V>(Vec<(K, V)>);

impl<K, V> Default for Newest<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: PartialEq, V: Clone + Default> Newest<K, V> {
    fn get(&mut self, key: K) -> V {
        let known = self.0.iter().position(|(known, _)| *known == key);
        let value = known.map_or_else(V::default, |at| self.0.remove(at).1);
        if self.0.len() >= KEPT {
            self.0.remove(0);
        }
        self.0.push((key, value.clone()));
        value
    }
}
