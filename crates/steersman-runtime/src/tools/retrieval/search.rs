//! One search: its query, its results, and the method.

use super::Retrieval;
use super::corpus::{Asked, Documents, Kept, Passages, Piece, Said, SearchError};
use crate::Boxed;
use crate::model::{Embed, Model, Transport};
use crate::past::Past;
use crate::secrets::mask_text;
use crate::toolset::{ToolRun, Toolset};
use serde_json::Value as Json;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::network::notes::{DOCUMENTS, FEW, Findings, MOST, Passage, TRANSCRIPT};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::view::mapping::{Fault, Raw};
use tokio_util::sync::CancellationToken;

/// Maximum number of texts in one request for embeddings.
const BATCH: usize = 32;
/// Maximum number of passages that are embedded for one search: the others are left to the next one.
const EMBEDDED: usize = 256;
/// Weight, next to the cosine, of the share of the query's words that a passage contains. Chosen by measurement.
const COVERED: f64 = 0.4;
/// Maximum number of characters of a query that are used. More do not improve the result.
const QUERY: usize = 4_000;

/// A model that makes vectors.
pub(crate) struct Embedder {
    /// The model's label and its address: vectors of different models do not compare.
    pub(crate) label: String,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) transport: Transport,
    /// Secrets that are masked in texts before they leave this process, as in everything that a model sees.
    pub(crate) secrets: Vec<String>,
}

/// A search for a call of `notes_search`: it holds what its agent may search, and runs once.
pub(crate) struct Search {
    /// `None` if the engine has no full text.
    pub(crate) retrieval: Option<Arc<dyn Retrieval>>,
    pub(crate) indexed: Arc<Kept>,
    pub(crate) past: Arc<Past>,
    pub(crate) snapshot: Snapshot,
    pub(crate) agent: Id,
    /// The branch of the call.
    pub(crate) branch: Id,
    /// Mark of the session's owner: another owner builds a new index.
    pub(crate) mark: u64,
    /// Later parts of the conversation are not searched.
    pub(crate) upto: Line,
    /// Passages that the agent's prompt contains anyway are left out.
    pub(crate) unseen: bool,
    /// Set if the definition names a model for embeddings: the model, or the reason why it cannot be used.
    pub(crate) embedder: Option<Result<Embedder, String>>,
}

/// The arguments of a search.
#[derive(Clone, Debug)]
struct Wanted {
    query: String,
    documents: bool,
    transcript: bool,
    most: usize,
}

impl Wanted {
    fn of(args: &str) -> Self {
        let args: Json = serde_json::from_str(args).unwrap_or_default();
        let source = args["source"].as_str();
        let query = args["query"].as_str().unwrap_or_default();
        let most = args["most"].as_u64().unwrap_or(u64::from(FEW));
        Self {
            query: query.chars().take(QUERY).collect(),
            documents: source != Some(TRANSCRIPT),
            transcript: source != Some(DOCUMENTS),
            most: most.clamp(1, u64::from(MOST)) as usize,
        }
    }
}

impl Toolset for Search {
    fn has(&self, _network: &Network, _tool: &str) -> bool {
        true
    }

    fn run<'a>(&'a self, run: &'a ToolRun, _cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        Box::pin(async move {
            let Some(retrieval) = &self.retrieval else {
                let message = "this program searches nothing: its engine was made without `Options::retrieval`";
                return Raw::NotPerformed(Fault::new(Code::Failed, message));
            };
            match self.findings(retrieval, run).await {
                Ok(found) => Raw::Done(serde_json::to_value(found).expect("findings are JSON")),
                Err(error) => Raw::NotPerformed(Fault {
                    again: matches!(error, SearchError::Store(_)).then_some(0),
                    ..Fault::new(Code::Failed, error.to_string())
                }),
            }
        })
    }
}

impl Search {
    async fn findings(
        &self,
        retrieval: &Arc<dyn Retrieval>,
        run: &ToolRun,
    ) -> Result<Findings, SearchError> {
        let wanted = Wanted::of(&run.work.args);
        let mut found: Vec<Vec<(Piece, f64)>> = Vec::new();
        let mut methods = Vec::new();
        if wanted.documents && !self.documents_of(run).is_empty() {
            let (best, method) = self.in_documents(retrieval, run, &wanted).await?;
            found.push(best);
            methods.push(method);
        }
        if wanted.transcript {
            let (best, method) = self.in_transcript(retrieval, run, &wanted).await?;
            found.push(best);
            methods.push(method);
        }
        let near = methods.iter().all(|method| matches!(method, Method::Near));
        let note = methods.into_iter().find_map(|method| match method {
            Method::Instead(why) => Some(format!(
                "found by full text alone, as embeddings could not be had: {why}"
            )),
            Method::Words | Method::Near => None,
        });
        let mut best = if near && !found.is_empty() {
            let mut all: Vec<(Piece, f64)> = found.into_iter().flatten().collect();
            sort(&mut all);
            all
        } else {
            in_turn(found)
        };
        best.truncate(wanted.most);
        let passages = best.into_iter().map(|(piece, _)| Passage {
            from: piece.from,
            text: piece.text.to_string(),
        });
        Ok(Findings {
            passages: passages.collect(),
            note,
        })
    }

    fn documents_of(&self, run: &ToolRun) -> Vec<Arc<str>> {
        let model = run.network.in_force(self.snapshot.agent(self.agent));
        model.map_or_else(Vec::new, |model| model.knowledge.clone())
    }

    async fn in_documents(
        &self,
        retrieval: &Arc<dyn Retrieval>,
        run: &ToolRun,
        wanted: &Wanted,
    ) -> Result<(Vec<(Piece, f64)>, Method), SearchError> {
        let paths = self.documents_of(run);
        let key = (run.folder.clone(), paths.clone());
        let shared = self.kept().documents(key);
        let mut kept = shared.lock_owned().await;
        let (folder, retrieval) = (run.folder.clone(), retrieval.clone());
        // Files are read and indexed on a thread that may block. An index whose reading failed is not kept.
        let read = tokio::task::spawn_blocking(move || {
            let mut documents = match kept.take() {
                Some(documents) => documents,
                None => Documents::new(&*retrieval)?,
            };
            documents.read(&folder, &paths)?;
            *kept = Some(documents);
            Ok::<_, SearchError>(kept)
        });
        let mut kept = joined(read).await?;
        let documents = kept.as_mut().expect("it was put there");
        self.best(&mut documents.passages, wanted, BTreeSet::new())
            .await
    }

    async fn in_transcript(
        &self,
        retrieval: &Arc<dyn Retrieval>,
        run: &ToolRun,
        wanted: &Wanted,
    ) -> Result<(Vec<(Piece, f64)>, Method), SearchError> {
        let key = (run.session.clone(), self.mark, self.branch, self.agent);
        let shared = self.kept().said(key);
        let mut kept = shared.lock_owned().await;
        let (past, snapshot) = (self.past.clone(), self.snapshot.clone());
        let (network, retrieval) = (run.network.clone(), retrieval.clone());
        let (agent, upto, unseen) = (self.agent, self.upto, self.unseen);
        let read = tokio::task::spawn_blocking(move || {
            let asked = Asked {
                network: &network,
                past: &past,
                snapshot: &snapshot,
                agent,
                upto,
            };
            let mut said = match kept.take() {
                Some(said) => said,
                None => Said::new(&*retrieval)?,
            };
            if said.follow(&asked)? {
                said = Said::new(&*retrieval)?;
                said.follow(&asked)?;
            }
            let seen = if unseen {
                said.seen(&asked)?
            } else {
                BTreeSet::new()
            };
            *kept = Some(said);
            Ok::<_, SearchError>((kept, seen))
        });
        let (mut kept, seen) = joined(read).await?;
        let said = kept.as_mut().expect("it was put there");
        self.best(&mut said.passages, wanted, seen).await
    }

    fn kept(&self) -> &Kept {
        &self.indexed
    }

    /// Returns the best passages, by vectors and words or by words alone.
    async fn best(
        &self,
        passages: &mut Passages,
        wanted: &Wanted,
        without: BTreeSet<u64>,
    ) -> Result<(Vec<(Piece, f64)>, Method), SearchError> {
        let embedded = match &self.embedder {
            None => None,
            Some(Err(why)) => Some(Err(why.clone())),
            Some(Ok(_)) if passages.pieces.is_empty() || wanted.query.trim().is_empty() => None,
            Some(Ok(embedder)) => Some(embedded(embedder, passages, &wanted.query).await),
        };
        Ok(match embedded {
            None => (by_words(passages, wanted, &without)?, Method::Words),
            Some(Err(why)) => (by_words(passages, wanted, &without)?, Method::Instead(why)),
            Some(Ok(query)) => (near(passages, wanted, &without, &query)?, Method::Near),
        })
    }
}

/// The method of a search.
enum Method {
    /// Words, since the definition names no model for embeddings.
    Words,
    /// Vectors and words.
    Near,
    /// Words, since vectors were not available, for this reason.
    Instead(String),
}

async fn joined<T>(
    read: tokio::task::JoinHandle<Result<T, SearchError>>,
) -> Result<T, SearchError> {
    match read.await {
        Ok(read) => read,
        Err(panic) => Err(SearchError::Documents(format!(
            "the search broke off: {panic}"
        ))),
    }
}

fn by_words(
    passages: &mut Passages,
    wanted: &Wanted,
    without: &BTreeSet<u64>,
) -> Result<Vec<(Piece, f64)>, SearchError> {
    // More are found than wanted, so that ties are always resolved in the same way.
    let most = wanted.most * 4;
    let found = passages
        .index
        .find(&wanted.query, most, &|number| without.contains(&number))?;
    let mut best = pieces(passages, found);
    best.truncate(wanted.most);
    Ok(best)
}

/// Scores passages by cosine and by the share of the query's words that they contain.
fn near(
    passages: &mut Passages,
    wanted: &Wanted,
    without: &BTreeSet<u64>,
    query: &[f32],
) -> Result<Vec<(Piece, f64)>, SearchError> {
    let covered: BTreeMap<u64, f64> = passages
        .index
        .coverage(&wanted.query)?
        .into_iter()
        .collect();
    let scored = passages
        .vectors
        .iter()
        .filter(|(number, _)| !without.contains(number))
        .map(|(number, vector)| {
            let covered = covered.get(number).copied().unwrap_or_default();
            (*number, dot(query, vector) + COVERED * covered)
        });
    let mut best = pieces(passages, scored.collect());
    best.truncate(wanted.most);
    Ok(best)
}

fn pieces(passages: &Passages, found: Vec<(u64, f64)>) -> Vec<(Piece, f64)> {
    let known = |(number, score)| Some((passages.pieces.get(&number)?.clone(), score));
    let mut all: Vec<(Piece, f64)> = found.into_iter().filter_map(known).collect();
    sort(&mut all);
    // Equal texts are returned once.
    let mut texts = BTreeSet::new();
    all.retain(|(piece, _)| texts.insert(piece.text.clone()));
    all
}

/// Sorts by score, the best first; ties are always resolved in the same way.
fn sort(all: &mut [(Piece, f64)]) {
    all.sort_by(|(a, score), (b, other)| {
        let best = other.partial_cmp(score).unwrap_or(Ordering::Equal);
        let place = |piece: &Piece| (piece.rank.0, piece.rank.1);
        best.then_with(|| place(a).0.cmp(&place(b).0))
            .then_with(|| a.from.cmp(&b.from))
            .then_with(|| place(a).1.cmp(&place(b).1))
    });
}

/// Merges lists whose scores do not compare: the best of each, then the second of each, and so on.
fn in_turn(found: Vec<Vec<(Piece, f64)>>) -> Vec<(Piece, f64)> {
    let mut all = Vec::new();
    let mut lists: Vec<_> = found.into_iter().map(Vec::into_iter).collect();
    loop {
        let before = all.len();
        all.extend(lists.iter_mut().filter_map(Iterator::next));
        if all.len() == before {
            return all;
        }
    }
}

/// Gives every passage its vector. Returns the vector of the query. The vectors that came before an error or a cancel are kept.
async fn embedded(
    embedder: &Embedder,
    passages: &mut Passages,
    query: &str,
) -> Result<Vec<f32>, String> {
    if passages.embedded_by != embedder.label {
        passages.vectors.clear();
        passages.embedded_by.clone_from(&embedder.label);
    }
    let missing = passages.pieces.iter();
    let missing = missing.filter(|(number, _)| !passages.vectors.contains_key(number));
    let missing: Vec<(u64, Arc<str>)> = missing
        .map(|(number, piece)| (*number, piece.text.clone()))
        .collect();
    for batch in missing[..missing.len().min(EMBEDDED)].chunks(BATCH) {
        let texts = batch.iter().map(|(_, text)| text.clone()).collect();
        let vectors = asked(embedder, texts).await?;
        let own = batch.iter().map(|(number, _)| *number).zip(vectors);
        passages
            .vectors
            .extend(own.map(|(number, vector)| (number, vector.into())));
    }
    if missing.len() > EMBEDDED {
        let (left, all) = (missing.len() - EMBEDDED, passages.pieces.len());
        return Err(format!("{left} of {all} passages have no vector yet"));
    }
    let query = asked(embedder, vec![query.into()]).await?.remove(0);
    let len = query.len();
    if passages.vectors.values().any(|vector| vector.len() != len) {
        passages.vectors.clear();
        return Err("the server gave vectors of different lengths".to_owned());
    }
    Ok(query)
}

/// Asks for vectors; returns one of length 1 for each text.
async fn asked(embedder: &Embedder, texts: Vec<Arc<str>>) -> Result<Vec<Vec<f32>>, String> {
    let count = texts.len();
    let masked = texts.into_iter().map(|text| {
        if embedder
            .secrets
            .iter()
            .any(|secret| text.contains(&**secret))
        {
            let mut text = text.to_string();
            mask_text(&mut text, &embedder.secrets);
            return text.into();
        }
        text
    });
    let embed = Embed {
        texts: masked.collect(),
        transport: embedder.transport.clone(),
    };
    let vectors = embedder.model.embed(&embed).await;
    let vectors = vectors.map_err(|failure| format!("{} ({})", failure.message, failure.code))?;
    if vectors.len() != count || vectors.iter().any(Vec::is_empty) {
        return Err("the server did not give one vector for each text".to_owned());
    }
    Ok(vectors.into_iter().map(unit).collect())
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let len = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if len > 0.0 && len.is_finite() {
        for x in &mut vector {
            *x /= len;
        }
    }
    vector
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    f64::from(a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>())
}
