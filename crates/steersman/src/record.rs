//! Regression tests and training trajectories made from recorded sessions.

mod test;
mod yaml;

use crate::testing::Report;
use crate::{Error, Network, Steersman};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::stored::interaction::{Call, Interaction, calls_of_answer};
use steersman_runtime::branches;
use steersman_runtime::engine::{BranchView, Inspection};
use steersman_runtime::known::Known;

/// A session that was read whole, with the secrets that must not appear in what is made from it.
struct Read {
    seen: Inspection,
    lines: Vec<Arc<LogLine>>,
    known: Arc<Known>,
}

impl Read {
    async fn of(steersman: &Steersman, id: &str) -> Result<Self, Error> {
        let seen = steersman.engine().inspect(id).await?;
        let lines = steersman.engine().feed(id, Line::NONE).lines().await?;
        let known = Arc::new(steersman.engine().secrets_in(&seen, &lines).await?);
        Ok(Self { seen, lines, known })
    }

    /// Returns the session with the values of its secrets masked.
    fn veiled(mut self) -> Self {
        self.seen = self.seen.veiled(&self.known);
        self
    }

    fn current(&self) -> Result<&BranchView, Error> {
        let branch = self.seen.current_branch();
        branch.ok_or_else(|| Error::Refused("this session has not begun".to_owned()))
    }

    fn text(&self, body: steersman_machine::stored::ids::Body) -> String {
        self.seen.history.text(body).to_string()
    }

    fn json(&self, body: steersman_machine::stored::ids::Body) -> Json {
        let text = self.text(body);
        serde_json::from_str(&text).unwrap_or(Json::String(text))
    }
}

impl Steersman {
    /// Makes a regression test of a session, in the form of a test file: the answers of its models, the outcomes of its
    /// tools, what people did, and the result. The test is run first; if it fails, it is refused with the failures. Values
    /// of secrets that the session knows read `(secret)` in it.
    ///
    /// # Errors
    /// [`Error::Refused`] if a test cannot express what happened (doubts, cancels, decisions of routing models, searches),
    /// or if the recorded outcome of a tool differs from what its raw answer would give.
    pub async fn record_test(&self, id: &str, name: &str) -> Result<String, Error> {
        let read = Read::of(self, id).await?.veiled();
        let mut test = test::recorded(&read)?;
        read.known.mask(&mut test);
        let mut document = json!({ "tests": { name: test } });
        let network = self.definition_of(id, &[]).await?;
        let report = tried(&network, name, &document).await?;
        if report.failures.is_empty() {
            // A test file without `name` belongs to the main definition of its folder.
            if read.seen.values.file.is_some() {
                document["name"] = network.name().into();
            }
            let missed = read.known.misses().map(|why| format!("# {why}\n"));
            return Ok(format!(
                "# Recorded from session {id}.\n{}{}",
                missed.unwrap_or_default(),
                yaml::document(&document)
            ));
        }
        let mapped = test::mapped(&read, &document["tests"][name]);
        let failures = report.failures.join("; ");
        if mapped.is_empty() {
            return Err(Error::Refused(format!(
                "a test of it would not hold: {failures}"
            )));
        }
        // The failures are a consequence of the mapped results.
        Err(Error::Refused(format!(
            "a test of it would not hold: of {} the log holds what models saw, and not the raw answer, from which `result`, `set` \
             or `then` made it. Write the test by hand, with the raw answers under `tools:`. What failed without them: {failures}",
            mapped.join(", ")
        )))
    }

    /// Returns what each agent was shown, called and answered, block by block: one JSON object for each model call (the
    /// schema is `docs/reference/trajectories.md`). `reward` returns the value of a branch; `None` means that it is
    /// unknown. Values of secrets that the session knows read `(secret)`.
    ///
    /// # Errors
    /// As the store reports them.
    pub async fn trajectories(
        &self,
        id: &str,
        reward: impl Fn(&Inspection, &BranchView) -> Option<f64>,
    ) -> Result<Vec<Json>, Error> {
        let read = Read::of(self, id).await?;
        let branches = &read.seen.branches;
        let rewards: BTreeMap<Id, f64> = branches
            .iter()
            .filter_map(|branch| Some((branch.id, reward(&read.seen, branch)?)))
            .collect();
        let read = read.veiled();
        let branches = &read.seen.branches;
        // Siblings are the branches that begin at one line, and the branch that they left.
        let mut groups: BTreeMap<(Id, Line), Vec<Id>> = BTreeMap::new();
        for branch in branches {
            if let Some(from) = branch.from {
                groups
                    .entry(from)
                    .or_insert_with(|| vec![from.0])
                    .push(branch.id);
            }
        }
        let mut blocks = Vec::new();
        for branch in branches {
            let group = branch.from.and_then(|from| groups.get(&from));
            let of = group.into_iter().flatten().filter_map(|id| rewards.get(id));
            let of: Vec<f64> = of.copied().collect();
            let reward = rewards.get(&branch.id).copied();
            let mean = (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64);
            let advantage = reward.zip(mean).map(|(reward, mean)| reward - mean);
            blocks.extend(read.blocks(branch, reward, advantage));
        }
        for block in &mut blocks {
            read.known.mask(block);
        }
        Ok(blocks)
    }
}

impl Read {
    /// Returns the model calls that the branch itself made.
    fn blocks(
        &self,
        branch: &BranchView,
        reward: Option<f64>,
        advantage: Option<f64>,
    ) -> Vec<Json> {
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
                    messages.extend(self.message(pushed));
                    continue;
                };
                let behind = stack[at..].iter().take_while(|(n, _)| n == line);
                let calls = calls_of_answer(behind.map(|(_, pushed)| pushed));
                let calls: Vec<Json> = calls.map(|call| self.call(call)).collect();
                let answer = json!({
                    "role": "assistant",
                    "content": text.map(|body| self.text(body)),
                    "tool_calls": calls,
                });
                let own = self
                    .lines
                    .iter()
                    .any(|l| l.n == *line && l.branch == branch.id);
                if own {
                    blocks.push(json!({
                        "session": &*self.seen.info.id,
                        "branch": branch.label.as_deref().map_or_else(|| branch.id.to_string(), str::to_owned),
                        "parent": branch.from.map(|(from, at)| format!("{from}@{at}")),
                        "agent": branches::path(&branch.snapshot, agent.id),
                        "line": line.0,
                        "effect": effect.to_string(),
                        "messages": messages,
                        "answer": answer,
                        "reward": reward,
                        "advantage": advantage,
                    }));
                }
                messages.push(answer);
                at += calls.len();
            }
        }
        blocks.sort_by_key(|block| block["line"].as_u64());
        blocks
    }

    fn call(&self, call: &Call) -> Json {
        json!({
            "id": call.label.as_deref().map_or_else(|| call.id.to_string(), str::to_owned),
            "type": "function",
            "function": { "name": call.seen.as_ref().unwrap_or(&call.name), "arguments": self.text(call.args) },
        })
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
                    Some(call) if call.chain.is_none() && call.is_of_engine() => {
                        json!({ "role": "user", "content": content })
                    }
                    call => {
                        let first = call.and_then(|call| call.chain).unwrap_or(result.call);
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
            Interaction::Call(_) | Interaction::Route(_) | Interaction::Finished { .. } => {
                return None;
            }
        })
    }

    fn label_of(&self, id: Id) -> String {
        let label = self.called(id).and_then(|call| call.label.clone());
        label.map_or_else(|| id.to_string(), |label| label.to_string())
    }

    /// Finds the call with this id.
    fn called(&self, id: Id) -> Option<&Call> {
        let line = self.lines.iter().find(|line| line.n == id.line());
        let commit = line.and_then(|line| line.commit.as_ref());
        let mut pushes = commit.into_iter().flat_map(|commit| &commit.pushes);
        pushes.find_map(|push| match &push.what {
            Interaction::Call(call) if call.id == id => Some(call),
            _ => None,
        })
    }
}

/// Runs the test `name` of this document under the definition.
async fn tried(network: &Network, name: &str, document: &Json) -> Result<Report, Error> {
    let mut stored: Json = serde_json::from_str(&network.checked().source)
        .map_err(|e| Error::Refused(format!("the definition cannot be read: {e}")))?;
    stored["definition"]["tests"] = document["tests"].clone();
    let made = steersman_definition::compile_stored(&stored.to_string());
    let mut made = made.map_err(Error::Refused)?;
    made.network.natives = network.checked().natives.clone();
    Ok(Box::pin(crate::testing::run(&network.with_compiled(made), name)).await)
}
