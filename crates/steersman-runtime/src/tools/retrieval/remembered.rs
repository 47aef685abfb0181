//! Search over memories: the passages of a scope's memories, and the memories that fit a query.

use super::corpus::{Kept, Passages, Piece};
use super::{IndexError, Retrieval, split};
use crate::store::{Memory, Store, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use steersman_machine::view::rating::Rating;

/// Characters of a query that are used; more do not improve the result.
const QUERY: usize = 4_000;
/// Passages looked at for each wanted memory: one memory may have many that fit.
const LOOKED_AT: usize = 16;
/// Maximum number of bytes of a memory that are shown if there is no full text, and so no best passage.
const SHOWN: usize = 800;

/// The full-text index over the memories of one scope.
pub(crate) struct Remembered {
    passages: Passages,
    /// The numbers of the passages of each memory, by its id.
    known: BTreeMap<u64, Vec<u64>>,
    /// The id of the memory of each passage, by the passage's number.
    of: HashMap<u64, u64>,
}

impl Remembered {
    fn new(retrieval: &dyn Retrieval) -> Result<Self, IndexError> {
        Ok(Self {
            passages: Passages::new(retrieval)?,
            known: BTreeMap::new(),
            of: HashMap::new(),
        })
    }

    /// Removes memories that are not in the list any more.
    fn forget(&mut self, memories: &[Memory]) -> Result<(), IndexError> {
        let now: BTreeSet<u64> = memories.iter().map(|memory| memory.id).collect();
        let gone: Vec<u64> = self
            .known
            .keys()
            .copied()
            .filter(|id| !now.contains(id))
            .collect();
        for id in gone {
            let numbers = self.known.remove(&id).unwrap_or_default();
            self.passages.remove(&numbers)?;
            for number in numbers {
                self.of.remove(&number);
            }
        }
        Ok(())
    }

    fn add(&mut self, news: Vec<(u64, Vec<(Piece, String)>)>) -> Result<(), IndexError> {
        let counts: Vec<(u64, usize)> = news.iter().map(|(id, own)| (*id, own.len())).collect();
        let pieces = news.into_iter().flat_map(|(_, own)| own).collect();
        let mut numbers = self.passages.add(pieces)?.into_iter();
        for (id, count) in counts {
            let own: Vec<u64> = numbers.by_ref().take(count).collect();
            self.of.extend(own.iter().map(|number| (*number, id)));
            self.known.insert(id, own);
        }
        Ok(())
    }
}

/// Returns the pieces of a memory, each with the words by which it is found.
fn pieces(memory: &Memory, text: &str) -> Vec<(Piece, String)> {
    let markdown = &*memory.media == "text/markdown";
    let passages = split::passages(text, markdown).into_iter().enumerate();
    let about = format!("{} {}", memory.name, memory.tags.join(" "));
    let pieces = passages.map(|(k, passage)| {
        let words = format!("{about}\n{}\n{}", passage.heading, passage.text);
        let piece = Piece {
            from: String::new(),
            text: passage.text.into(),
            rank: (u64::MAX - memory.id, k as u64),
        };
        (piece, words)
    });
    pieces.collect()
}

/// Sources of a search over memories.
pub(crate) struct Sources<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) kept: &'a Kept,
    pub(crate) retrieval: Option<&'a dyn Retrieval>,
}

async fn content(from: &Sources<'_>, memory: &Memory) -> Result<Option<String>, StoreError> {
    let content = from.store.blob(&memory.hash).await?;
    Ok(content.map(|content| String::from_utf8_lossy(&content).into_owned()))
}

/// Returns the memories that fit the query best, each with its best passage. `memories` must hold all memories of the scope: the
/// index drops those that are not in it.
pub(crate) async fn search<E: From<StoreError> + From<IndexError>>(
    from: &Sources<'_>,
    scope: &str,
    memories: Vec<Memory>,
    query: &str,
    most: usize,
) -> Result<Vec<(Memory, String)>, E> {
    let query: String = query.chars().take(QUERY).collect();
    let scored = match from.retrieval {
        Some(retrieval) => by_index::<E>(from, retrieval, scope, &memories, &query, most).await?,
        None => by_words(from, &memories, &query).await?,
    };
    let mut by_id: HashMap<u64, Memory> = memories.into_iter().map(|m| (m.id, m)).collect();
    let mut found: Vec<(f64, (Memory, String))> = Vec::new();
    for (id, (score, text)) in scored {
        let Some(memory) = by_id.remove(&id) else {
            continue;
        };
        let weight = Rating::weight(memory.rating().map(|rated| rated.rating));
        found.push((score * weight, (memory, text)));
    }
    // Among equal scores the newer memory comes first.
    found.sort_by(|(a, this), (b, that)| b.total_cmp(a).then_with(|| that.0.id.cmp(&this.0.id)));
    found.truncate(most);
    Ok(found.into_iter().map(|(_, found)| found).collect())
}

type Scored = BTreeMap<u64, (f64, String)>;

async fn by_index<E: From<StoreError> + From<IndexError>>(
    from: &Sources<'_>,
    retrieval: &dyn Retrieval,
    scope: &str,
    memories: &[Memory],
    query: &str,
    most: usize,
) -> Result<Scored, E> {
    let shared = from.kept.remembered(scope.into());
    let mut kept = shared.lock().await;
    // If something fails halfway, the index is lost and built again the next time.
    let mut all = match kept.take() {
        Some(all) => all,
        None => Remembered::new(retrieval)?,
    };
    all.forget(memories)?;
    let mut news = Vec::new();
    for memory in memories
        .iter()
        .filter(|memory| !all.known.contains_key(&memory.id))
    {
        let text = content(from, memory).await?.unwrap_or_default();
        news.push((memory.id, pieces(memory, &text)));
    }
    all.add(news)?;
    // Ratings change the order of the results, so more are looked at than are returned.
    let looked_at = most.max(8) * LOOKED_AT;
    let numbers = all.passages.index.find(query, looked_at, &|_| false)?;
    let mut scored = Scored::new();
    for (number, score) in numbers {
        let (Some(id), Some(piece)) = (all.of.get(&number), all.passages.pieces.get(&number))
        else {
            continue;
        };
        let better = scored.get(id).is_none_or(|(known, _)| score > *known);
        if better {
            scored.insert(*id, (score, piece.text.to_string()));
        }
    }
    *kept = Some(all);
    Ok(scored)
}

/// Returns as much of a memory as is shown where no passage of it fits best.
pub(crate) fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN)]
}

/// Scores memories without full text: by the number of query words that they contain.
async fn by_words(
    from: &Sources<'_>,
    memories: &[Memory],
    query: &str,
) -> Result<Scored, StoreError> {
    let query = query.to_lowercase();
    let words: BTreeSet<&str> = query.split_whitespace().collect();
    let mut scored = Scored::new();
    for memory in memories {
        let Some(text) = content(from, memory).await? else {
            continue;
        };
        let about = format!("{} {}\n{text}", memory.name, memory.tags.join(" ")).to_lowercase();
        let has = words.iter().filter(|word| about.contains(**word)).count();
        if has > 0 {
            scored.insert(memory.id, (has as f64, beginning(&text).to_owned()));
        }
    }
    Ok(scored)
}
