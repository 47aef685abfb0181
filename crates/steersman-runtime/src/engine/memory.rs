//! Long-term memory: texts that agents save and find again in later sessions.
//!
//! ```text
//!   memory_save --> store: number, scope, name, tags, content (a blob)
//!   memory_search --> memories of the scope --> Index: full text, over their passages --> x rating --> the best
//! ```
//!
//! Indexes are derived, and are kept in memory as long as the engine lives.

use crate::Boxed;
use crate::artifact::ArtifactError;
use crate::engine::{Engine, EngineError};
use crate::past::Past;
use crate::retrieval::IndexError;
use crate::secrets::{mask_text, readable};
use crate::store::{Memory, MemoryQuery, NewMemory, Rated, Scope, StoreError};
use crate::tools::artifact;
use crate::tools::retrieval::remembered::{self, Sources};
use crate::toolset::{ToolRun, Toolset};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::network::notes::{FEW, Findings, MOST, Passage};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_machine::view::memory;
use steersman_machine::view::memory::CONTENT;
use steersman_machine::view::rating::{BEST, WORST, reason_of};
use steersman_machine::view::{Cx, iso};
use tokio_util::sync::CancellationToken;

/// A memory that a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The whole memory.
    pub memory: Memory,
    /// The passage of it that matches best.
    pub text: String,
}

/// Reasons for which a memory cannot be saved, read or rated.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The request, or the memory to save, is not valid.
    #[error("{0}")]
    Unfit(String),
    /// No memory has this number.
    #[error("there is no memory {0}")]
    Unknown(u64),
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An error of the index.
    #[error(transparent)]
    Index(#[from] IndexError),
}

impl Engine {
    /// Saves a memory and returns its number. An invalid memory is refused, and so is one that replaces a memory that its scope
    /// does not have. If a memory with this key exists, its number is
    /// returned and nothing changes.
    ///
    /// # Errors
    /// [`MemoryError::Unfit`], and errors of the store.
    pub async fn save_memory(&self, new: NewMemory) -> Result<u64, MemoryError> {
        let tags: Vec<&str> = new.tags.iter().map(|tag| &**tag).collect();
        let unfit = memory::unfit_scope(&new.scope)
            .map(|why| format!("`{}` is no scope: {why}", new.scope.escape_debug()));
        let unfit = unfit.or_else(|| memory::unfit(&new.name, &tags));
        let unfit = unfit.or_else(|| unfit_content(&new.content));
        if let Some(why) = unfit {
            return Err(MemoryError::Unfit(why));
        }
        for id in &new.replaces {
            let query = MemoryQuery {
                part: Some(new.part.clone()),
                scope: Some(new.scope.clone()),
                id: Some(*id),
                ..MemoryQuery::default()
            };
            if self.memories(query).await?.is_empty() {
                return Err(MemoryError::Unknown(*id));
            }
        }
        Ok(self.store().remember(new).await?)
    }

    /// Returns the memories that match, newest first. `query.now` is set here.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn memories(&self, query: MemoryQuery) -> Result<Vec<Memory>, StoreError> {
        let now = self.clock().now();
        self.store().memories(MemoryQuery { now, ..query }).await
    }

    /// Returns the content of a memory, or `None` if it is no longer in the store.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn memory_content(&self, memory: &Memory) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.store().blob(&memory.hash).await
    }

    /// Returns the memories of a scope that match a query best, at most `most`: by full text, or by words if the engine has no
    /// full text. Ratings raise or lower a memory's place. `part` is the tenant, and the subject if one is given; `None` means
    /// all tenants.
    ///
    /// # Errors
    /// Errors of the store and of the index.
    pub async fn search_memories(
        &self,
        part: Option<&Scope>,
        scope: &str,
        query: &str,
        most: usize,
    ) -> Result<Vec<Found>, MemoryError> {
        let part = part.or(self.scope());
        let query_of = MemoryQuery {
            part: part.cloned(),
            scope: Some(scope.into()),
            current: true,
            ..MemoryQuery::default()
        };
        let memories = self.memories(query_of).await?;
        // Each part has an index of its own. A search in all tenants uses that of the part without tenant and subject.
        let index = match part {
            Some(part) if *part != Scope::default() => format!("{part:?} {scope}"),
            _ => scope.to_owned(),
        };
        let from = Sources {
            store: &**self.store(),
            kept: &self.0.indexed,
            retrieval: self.0.options.retrieval.as_deref(),
        };
        let found = remembered::search::<MemoryError>(&from, &index, memories, query, most).await?;
        let found = found.into_iter();
        Ok(found.map(|(memory, text)| Found { memory, text }).collect())
    }

    /// Rates a memory as a person. This takes precedence over ratings by agents.
    ///
    /// # Errors
    /// [`MemoryError::Unknown`], [`MemoryError::Unfit`] if the rating is out of range, and errors of the store.
    pub async fn rate_memory(&self, id: u64, rated: Rated) -> Result<(), MemoryError> {
        self.rate_as(id, rated, true).await
    }

    async fn rate_as(&self, id: u64, rated: Rated, person: bool) -> Result<(), MemoryError> {
        if !(WORST..=BEST).contains(&rated.rating) {
            let why = format!("a rating is from {WORST} to {BEST}");
            return Err(MemoryError::Unfit(why));
        }
        let reason = rated.reason.as_deref().and_then(reason_of);
        let rated = Rated {
            reason: reason.map(Arc::from),
            ..rated
        };
        if self.store().rate_memory(id, rated, person).await? {
            Ok(())
        } else {
            Err(MemoryError::Unknown(id))
        }
    }
}

fn unfit_content(content: &[u8]) -> Option<String> {
    if content.len() > CONTENT {
        let most = CONTENT >> 10;
        return Some(format!(
            "the content has {} bytes; a memory has at most {most} KiB",
            content.len()
        ));
    }
    match std::str::from_utf8(content) {
        Err(_) => Some("the content is not text; only texts can be memories".to_owned()),
        Ok(text) if text.trim().is_empty() => Some("the content is empty".to_owned()),
        Ok(_) => None,
    }
}

/// Runs the built-in set `memory` for one call.
pub(crate) struct MemoryTools {
    pub(crate) engine: Engine,
    /// The tenant and the subject of the session.
    pub(crate) part: Scope,
    pub(crate) past: Arc<Past>,
    /// Snapshot of the branch at the start of the call.
    pub(crate) snapshot: Snapshot,
    pub(crate) agent: Id,
    pub(crate) does: BuiltIn,
}

impl Toolset for MemoryTools {
    fn has(&self, _network: &Network, _tool: &str) -> bool {
        true
    }

    fn run<'a>(&'a self, run: &'a ToolRun, _cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        Box::pin(async move {
            let args: Json = serde_json::from_str(&run.work.args).unwrap_or_default();
            let done = match self.scope(run) {
                Err(why) => Err(MemoryError::Unfit(why)),
                Ok(scope) => match self.does {
                    BuiltIn::MemorySave => self.save(run, &args, &scope).await,
                    BuiltIn::MemoryRead => self.read(run, &args, &scope).await,
                    BuiltIn::MemoryRate => self.rate(&args, &scope).await,
                    _ => self.search(run, &args, &scope).await,
                },
            };
            match done {
                Ok(result) => Raw::Done(result),
                // It is unknown whether the memory was written. A repetition under the same key writes it once.
                Err(MemoryError::Store(error)) if !run.work.class.is_free() => {
                    Raw::Unknown(Fault::new(Code::Failed, error.to_string()))
                }
                Err(error) => Raw::NotPerformed(Fault {
                    again: matches!(error, MemoryError::Store(_)).then_some(0),
                    ..Fault::new(Code::Failed, error.to_string())
                }),
            }
        })
    }
}

impl MemoryTools {
    fn scope(&self, run: &ToolRun) -> Result<String, String> {
        let cx = Cx {
            network: &run.network,
            bodies: &*self.past,
        };
        memory::scope(&cx, &self.snapshot)
    }

    async fn save(&self, run: &ToolRun, args: &Json, scope: &str) -> Result<Json, MemoryError> {
        let text = |key: &str| args[key].as_str().filter(|text| !text.is_empty());
        let name = text("name").unwrap_or_default();
        let (content, media) = match (text("content"), text("artifact")) {
            (Some(content), None) => (content.to_owned(), "text/plain".to_owned()),
            (None, Some(artifact)) => from_artifact(run, artifact).await?,
            _ => {
                let why = "give either `content` or the name of an `artifact`, and not both";
                return Err(MemoryError::Unfit(why.to_owned()));
            }
        };
        // Another session may read the memory, and does not know the secrets of this one.
        let secrets = readable(&run.network, &run.work.tool, &*run.scope);
        let known = self.engine.secrets_of(&run.session).await;
        let known = known.map_err(|error| match error {
            EngineError::Store(error) => MemoryError::Store(error),
            other => MemoryError::Unfit(other.to_string()),
        })?;
        let masked = |mut text: String| {
            mask_text(&mut text, &secrets);
            known.masked(&text)
        };
        let now = self.engine.clock().now();
        let tags = args["tags"].as_array().into_iter().flatten();
        let tags = tags
            .filter_map(Json::as_str)
            .map(str::to_owned)
            .map(&masked);
        let new = NewMemory {
            key: format!("{}/{:x}/{}", run.session, run.mark, run.effect).into(),
            part: self.part.clone(),
            scope: scope.into(),
            name: masked(name.to_owned()).into(),
            tags: tags.map(Arc::from).collect(),
            media: media.into(),
            content: masked(content).into_bytes().into(),
            session: Some(run.session.clone()),
            effect: Some(run.effect),
            network: run.network.name.clone(),
            by: self.snapshot.agent(self.agent).def.clone(),
            at: now,
            until: run.network.memory.keep.map(|keep| now.plus(keep)),
            replaces: args["replaces"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Json::as_u64)
                .collect(),
        };
        let told: Vec<String> = new.replaces.iter().map(ToString::to_string).collect();
        let id = self.engine.save_memory(new).await?;
        let mut result = format!("Remembered as {id}, in scope `{scope}`.");
        if !told.is_empty() {
            result = format!("{result} It stands in the place of {}.", told.join(", "));
        }
        Ok(json!(result))
    }

    async fn search(&self, run: &ToolRun, args: &Json, scope: &str) -> Result<Json, MemoryError> {
        let most = args["most"].as_u64().unwrap_or(u64::from(FEW));
        let most = most.clamp(1, u64::from(MOST)) as usize;
        let Some(query) = args["query"].as_str() else {
            return self.newest(run, scope, most).await;
        };
        if query.split_whitespace().next().is_none() {
            let why = "`args.query` has no word in it";
            return Err(MemoryError::Unfit(why.to_owned()));
        }
        let found = self
            .engine
            .search_memories(Some(&self.part), scope, query, most)
            .await?;
        let passages = found.into_iter().map(|found| Passage {
            from: origin(&found.memory, run),
            text: found.text,
        });
        Ok(findings(passages.collect(), None))
    }

    /// Returns the newest memories of the scope, each with its beginning.
    async fn newest(&self, run: &ToolRun, scope: &str, most: usize) -> Result<Json, MemoryError> {
        let query = MemoryQuery {
            part: Some(self.part.clone()),
            scope: Some(scope.into()),
            current: true,
            ..MemoryQuery::default()
        };
        let mut passages = Vec::new();
        for memory in self.engine.memories(query).await?.into_iter().take(most) {
            let content = self
                .engine
                .memory_content(&memory)
                .await?
                .unwrap_or_default();
            let text = String::from_utf8_lossy(&content);
            passages.push(Passage {
                from: origin(&memory, run),
                text: remembered::beginning(&text).to_owned(),
            });
        }
        Ok(findings(passages, None))
    }

    async fn read(&self, run: &ToolRun, args: &Json, scope: &str) -> Result<Json, MemoryError> {
        let memory = self.one(args, scope).await?;
        let gone = || MemoryError::Unfit(format!("the content of memory {} is gone", memory.id));
        let content = self.engine.memory_content(&memory).await?;
        let content = content.ok_or_else(gone)?;
        let text = String::from_utf8_lossy(&content);
        let number = |key: &str| args[key].as_u64().and_then(|n| usize::try_from(n).ok());
        let (text, note) = artifact::lines(&text, number("from"), number("lines"), memory::READ);
        let passage = Passage {
            from: origin(&memory, run),
            text,
        };
        Ok(findings(vec![passage], note))
    }

    async fn rate(&self, args: &Json, scope: &str) -> Result<Json, MemoryError> {
        let memory = self.one(args, scope).await?;
        let stars = args["rating"].as_u64().and_then(|n| u8::try_from(n).ok());
        let rated = Rated {
            rating: stars.unwrap_or_default(),
            reason: args["reason"].as_str().map(Arc::from),
            by: self.by(),
        };
        let mut result = format!("Rated {} of {BEST}.", rated.rating);
        self.engine.rate_as(memory.id, rated, false).await?;
        if let Some(person) = memory.by_people {
            result = format!(
                "{result} A person's rating counts before it: {}.",
                person.rating
            );
        }
        Ok(json!(result))
    }

    fn by(&self) -> Name {
        self.snapshot.agent(self.agent).def.clone()
    }

    /// Returns the memory that the arguments name. A memory of another scope is not found.
    async fn one(&self, args: &Json, scope: &str) -> Result<Memory, MemoryError> {
        let id = args["id"].as_u64().unwrap_or_default();
        let query = MemoryQuery {
            part: Some(self.part.clone()),
            scope: Some(scope.into()),
            id: Some(id),
            ..MemoryQuery::default()
        };
        let found = self.engine.memories(query).await?;
        found.into_iter().next().ok_or(MemoryError::Unknown(id))
    }
}

fn findings(passages: Vec<Passage>, note: Option<String>) -> Json {
    let found = Findings { passages, note };
    serde_json::to_value(found).expect("findings are JSON")
}

/// Returns the origin of a memory. A model learns only whether the session that saved it is its own.
fn origin(memory: &Memory, run: &ToolRun) -> String {
    let Memory {
        id,
        name,
        by,
        scope,
        ..
    } = memory;
    let date = iso(memory.at, &run.network.timezone);
    let date = date.get(..10).unwrap_or(&date);
    let session = match memory.session.as_deref() {
        Some(session) if *session == *run.session => "this session",
        _ => "another session",
    };
    let tags = match &memory.tags[..] {
        [] => String::new(),
        tags => format!(", tagged {}", tags.join(", ")),
    };
    let rated = memory.rating();
    let rated = rated.map_or_else(String::new, |r| format!(", rated {} of {BEST}", r.rating));
    format!("memory {id}, {name}, saved {date} by {by} in {session}, scope {scope}{tags}{rated}")
}

async fn from_artifact(run: &ToolRun, name: &str) -> Result<(String, String), MemoryError> {
    let failed = |error: ArtifactError| match error {
        ArtifactError::Store(error) => MemoryError::Store(error),
        other => MemoryError::Unfit(other.to_string()),
    };
    let version = run.artifacts.find(name, None).map_err(failed)?;
    if version.len > CONTENT as u64 {
        let most = CONTENT >> 10;
        return Err(MemoryError::Unfit(format!(
            "`{name}` has {} bytes; a memory has at most {most} KiB",
            version.len
        )));
    }
    let content = run.artifacts.content(&version).await.map_err(failed)?;
    let text = String::from_utf8(content.to_vec()).map_err(|_| {
        let why = format!(
            "`{name}` is not text but {}; only texts can be memories",
            version.media
        );
        MemoryError::Unfit(why)
    })?;
    Ok((text, version.media))
}
