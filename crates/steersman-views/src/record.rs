//! Sessions as tests and as trajectories for training.

mod test;

use serde::Serialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Body, Id, Line};
use steersman_machine::stored::interaction::{Call, Earlier, Interaction, calls_of_answer};
use steersman_machine::tick::history::Said;
use steersman_runtime::branches;
use steersman_runtime::engine::{BranchView, Engine, EngineError, Inspection};
use steersman_runtime::known::Known;

/// Maximum number of bytes of an artifact that a test may have: what a person still reads in a file of tests.
const CONTENT: u64 = 64 << 10;

/// The reason why a test cannot express what happened in a session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoTest(String);

/// A model call of a trajectory. The schema is `docs/reference/trajectories.md`.
#[derive(Clone, Debug, Serialize)]
pub struct Block {
    /// Id of the session.
    pub session: String,
    /// The label or id of the branch that made the call.
    pub branch: String,
    /// The branch and line at which that branch began; `None` for `main`.
    pub parent: Option<String>,
    /// The agent, by names from the root down.
    pub agent: String,
    /// The line that took the answer.
    pub line: u64,
    /// The id of the model call.
    pub effect: String,
    /// The messages on the agent's stack before the answer.
    pub messages: Vec<Json>,
    /// The answer, with its calls.
    pub answer: Json,
    /// The value of the branch, if it is known.
    pub reward: Option<f64>,
    /// `reward` minus the mean reward of a group: the branch, the others that began at the same line, and the branch that they
    /// began from. Members without a reward do not count. `None` on `main`, and without a `reward`.
    pub advantage: Option<f64>,
}

impl Block {
    fn mask(&mut self, known: &Known) {
        for text in [&mut self.branch, &mut self.agent] {
            *text = known.masked(text);
        }
        self.messages.iter_mut().for_each(|m| known.mask(m));
        known.mask(&mut self.answer);
    }
}

/// Returns the mean reward of each group: the branches that begin at one line, and the branch that they begin from.
fn means(branches: &[BranchView], rewards: &BTreeMap<Id, f64>) -> BTreeMap<(Id, Line), f64> {
    let mut groups: BTreeMap<(Id, Line), Vec<f64>> = BTreeMap::new();
    for branch in branches {
        if let Some(from) = branch.from {
            let of = |id| rewards.get(&id).copied();
            let group = groups
                .entry(from)
                .or_insert_with(|| Vec::from_iter(of(from.0)));
            group.extend(of(branch.id));
        }
    }
    groups.retain(|_, all| !all.is_empty());
    let mean = |all: Vec<f64>| all.iter().sum::<f64>() / all.len() as f64;
    groups
        .into_iter()
        .map(|(from, all)| (from, mean(all)))
        .collect()
}

/// A session that was read whole, with the secrets that must not appear in its tests and trajectories.
pub struct Recorded {
    seen: Inspection,
    lines: Vec<Arc<LogLine>>,
    known: Arc<Known>,
    /// Contents of the artifacts that calls made, by hash; see [`Recorded::with_artifacts`].
    contents: BTreeMap<[u8; 32], Arc<[u8]>>,
}

impl Recorded {
    /// Reads a session.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn read(engine: &Engine, id: &str) -> Result<Self, EngineError> {
        let seen = engine.inspect(id).await?;
        let lines = engine.feed(id, Line::NONE).lines().await?;
        let known = Arc::new(engine.secrets_in(&seen, &lines).await?);
        Ok(Self {
            seen,
            lines,
            known,
            contents: BTreeMap::new(),
        })
    }

    /// Reads the contents of the artifacts that calls made, which tests have.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn with_artifacts(mut self, engine: &Engine) -> Result<Self, EngineError> {
        let commits = self.lines.iter().filter_map(|line| line.commit.as_ref());
        let pushes = commits.flat_map(|commit| &commit.pushes);
        let results = pushes.filter_map(|push| match &push.what {
            Interaction::Result(result) => Some(&result.artifacts),
            _ => None,
        });
        for artifact in results.flatten().filter(|artifact| artifact.len <= CONTENT) {
            if let Some(content) = engine.store().blob(&artifact.hash).await? {
                self.contents.insert(artifact.hash, content);
            }
        }
        Ok(self)
    }

    /// Returns the session with the values of its secrets masked.
    #[must_use]
    pub fn masked(mut self) -> Self {
        self.seen = self.known.mask_inspection(self.seen);
        self
    }

    fn current(&self) -> Result<&BranchView, NoTest> {
        let branch = self.seen.current_branch();
        branch.ok_or_else(|| NoTest("this session has not begun".to_owned()))
    }

    fn line(&self, n: Line) -> Option<&LogLine> {
        let at = self.lines.binary_search_by_key(&n, |line| line.n).ok()?;
        Some(&self.lines[at])
    }

    fn text(&self, body: Body) -> String {
        self.seen.history.text(body).to_string()
    }

    fn json(&self, body: Body) -> Json {
        let text = self.text(body);
        serde_json::from_str(&text).unwrap_or(Json::String(text))
    }

    /// Returns the session as it was when it was read.
    pub fn seen(&self) -> &Inspection {
        &self.seen
    }

    /// Returns the secrets that the session knows.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// Makes a test of the session: the answers of its models, the outcomes of its tools, what people did, and the result. Values of
    /// secrets are masked if the session is [masked](Self::masked).
    ///
    /// # Errors
    /// A test cannot express what happened.
    pub fn test(&self) -> Result<Json, NoTest> {
        let mut test = test::recorded(self)?;
        self.known.mask(&mut test);
        Ok(test)
    }

    /// Returns the tools of the test whose definition has `result`, `set`, `then` or `on_error`. For these a test needs the raw answers, and the
    /// log holds only the results that models saw.
    pub fn mapped(&self, test: &Json) -> Vec<String> {
        test::mapped(self, test)
    }

    /// Returns one block for each model call that has an answer: the messages that the agent saw, its answer and its calls. `reward`
    /// returns the value of a branch; `None` means that it is unknown. Values of secrets read `(secret)`.
    #[must_use]
    pub fn trajectories(
        self,
        reward: impl Fn(&Inspection, &BranchView) -> Option<f64>,
    ) -> Vec<Block> {
        let branches = &self.seen.branches;
        let rewards: BTreeMap<Id, f64> = branches
            .iter()
            .filter_map(|branch| Some((branch.id, reward(&self.seen, branch)?)))
            .collect();
        let read = self.masked();
        let means = means(&read.seen.branches, &rewards);
        let mut blocks = Vec::new();
        for branch in &read.seen.branches {
            let reward = rewards.get(&branch.id).copied();
            let mean = branch.from.and_then(|from| means.get(&from));
            let advantage = reward.zip(mean).map(|(reward, mean)| reward - mean);
            blocks.extend(read.blocks(branch, reward, advantage));
        }
        for block in &mut blocks {
            block.mask(&read.known);
        }
        blocks
    }

    /// Returns the model calls that the branch itself made.
    fn blocks(
        &self,
        branch: &BranchView,
        reward: Option<f64>,
        advantage: Option<f64>,
    ) -> Vec<Block> {
        let mut blocks = Vec::new();
        for agent in branch.snapshot.agents.values() {
            let stack = self.seen.stack(branch, agent.id);
            let mut messages: Vec<Json> = Vec::new();
            let mut at = 0;
            while let Some((line, pushed)) = stack.get(at) {
                at += 1;
                let Interaction::AssistantMessage {
                    effect,
                    text,
                    partial: false,
                    ..
                } = pushed
                else {
                    match pushed {
                        Interaction::Earlier(earlier) => messages.extend(self.earlier(earlier)),
                        _ => messages.extend(self.message(pushed)),
                    }
                    continue;
                };
                let following = stack[at..].iter().take_while(|(n, _)| n == line);
                let calls = calls_of_answer(following.map(|(_, pushed)| pushed));
                let calls: Vec<Json> = calls.map(|call| self.call(call)).collect();
                let answer = json!({
                    "role": "assistant",
                    "content": text.map(|body| self.text(body)),
                    "tool_calls": calls,
                });
                if self.line(*line).is_some_and(|l| l.branch == branch.id) {
                    let label = branch.label.as_deref();
                    blocks.push(Block {
                        session: self.seen.info.id.to_string(),
                        branch: label.map_or_else(|| branch.id.to_string(), str::to_owned),
                        parent: branch.from.map(|(from, at)| format!("{from}@{at}")),
                        agent: branches::path(&branch.snapshot, agent.id),
                        line: line.0,
                        effect: effect.to_string(),
                        messages: messages.clone(),
                        answer: answer.clone(),
                        reward,
                        advantage,
                    });
                }
                messages.push(answer);
                at += calls.len();
            }
        }
        blocks.sort_by_key(|block| block.line);
        blocks
    }

    fn call(&self, call: &Call) -> Json {
        json!({
            "id": call.label.as_deref().map_or_else(|| call.id.to_string(), str::to_owned),
            "type": "function",
            "function": { "name": call.called(), "arguments": self.text(call.args) },
        })
    }

    /// Returns a message of a conversation that was held elsewhere, with the results of its calls.
    fn earlier(&self, earlier: &Earlier) -> Vec<Json> {
        Said::of(earlier, |body| self.text(body).into()).messages()
    }

    fn message(&self, pushed: &Interaction) -> Option<Json> {
        Some(match pushed {
            Interaction::UserMessage { body, .. } => {
                json!({ "role": "user", "content": self.text(*body) })
            }
            Interaction::Result(result) => {
                let content = result.body.map(|body| self.text(body)).unwrap_or_default();
                match self.called(result.call) {
                    // The engine made this call, not a model.
                    Some(call) if call.chain().is_none() && call.is_of_engine() => {
                        json!({ "role": "user", "content": content })
                    }
                    call => {
                        let first = call.and_then(Call::chain).unwrap_or(result.call);
                        json!({ "role": "tool", "tool_call_id": self.label_of(first), "content": content })
                    }
                }
            }
            Interaction::Summary(summary) => {
                json!({ "role": "user", "content": self.text(summary.body) })
            }
            Interaction::AssistantMessage { text, .. } => {
                json!({ "role": "assistant", "content": text.map(|body| self.text(body)), "tool_calls": [] })
            }
            Interaction::Call(_)
            | Interaction::Route(_)
            | Interaction::Earlier(_)
            | Interaction::Finished { .. } => return None,
        })
    }

    fn label_of(&self, id: Id) -> String {
        let label = self.called(id).and_then(|call| call.label.clone());
        label.map_or_else(|| id.to_string(), |label| label.to_string())
    }

    /// Finds the call with this id.
    fn called(&self, id: Id) -> Option<&Call> {
        let line = self.line(id.line());
        let commit = line.and_then(|line| line.commit.as_ref());
        let mut pushes = commit.into_iter().flat_map(|commit| &commit.pushes);
        pushes.find_map(|push| match &push.what {
            Interaction::Call(call) if call.id == id => Some(call),
            _ => None,
        })
    }
}
