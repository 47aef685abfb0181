//! Reconstruction of the offers to a tick from the line that it made. A line names the inputs that were taken and holds the
//! interactions that were pushed, so most offers can be reconstructed. The machine checks the result: the same offers must make
//! the same line.

use crate::past::{ERASED, Past};
use crate::store::StoreError;
use serde_json::Value as Json;
use std::sync::Arc;
use steersman_machine::questions::verdict::said_again;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::by::{By, Decider};
use steersman_machine::stored::commit::{Admitted, Binding, Commit, LogLine, Moment, Want};
use steersman_machine::stored::ids::{Bodies, Body, Id, Name};
use steersman_machine::stored::interaction::{
    Call, CallResult, Choice, Interaction, Origin, Route, calls_of_answer,
};
use steersman_machine::stored::outcome::{
    Answer, Ask, Failure, Mapped, NewArtifact, NewWrite, Outcome, Retry,
};
use steersman_machine::tick::effect::{Offered, Said, Start};
use steersman_machine::tick::history::{self, ChatHistory};
use steersman_machine::tick::hooks;

/// The binding and the values with which a session began, for reconstructing its first line.
pub(crate) struct Began<'a> {
    pub(crate) binding: &'a Binding,
    pub(crate) values: &'a str,
}

/// Returns candidates for the offers of a line: the first one that makes the line again is the right one. Empty if they cannot be
/// reconstructed.
pub(crate) fn offers(
    past: &Past,
    before: &Snapshot,
    line: &LogLine,
    began: Option<&Began<'_>>,
) -> Result<Vec<Vec<Offered>>, StoreError> {
    let Some(commit) = &line.commit else {
        return Ok(Vec::new());
    };
    if commit.opening.as_ref().is_some_and(|_| line.prev.is_some()) || commit.adoption.is_some() {
        return Ok(Vec::new());
    }
    if before.root.is_none() {
        let start = began.and_then(|began| start(past, commit, began));
        return Ok(start.map(begun).unwrap_or_default());
    }
    let recorded = RecordedLine {
        past,
        before,
        line,
        commit,
    };
    let mut all: Vec<Vec<Offered>> = vec![Vec::new()];
    for admission in &commit.admitted {
        let found = match (admission.kind, admission.id) {
            (Admitted::Outcome, Some(effect)) => recorded.outcomes(effect)?,
            (Admitted::Clock, _) => vec![Offered::Clock],
            (Admitted::Message, to) => {
                let id = admission.message.clone().unwrap_or_default();
                recorded
                    .said(id, to)
                    .into_iter()
                    .map(Offered::Message)
                    .collect()
            }
            _ => Vec::new(),
        };
        if found.is_empty() || all.len() * found.len() > MOST {
            return Ok(Vec::new());
        }
        all = all
            .iter()
            .flat_map(|before| {
                found.iter().map(|offered| {
                    let mut offers = before.clone();
                    offers.push(offered.clone());
                    offers
                })
            })
            .collect();
    }
    Ok(all)
}

/// Maximum number of candidates that are tried for a line.
const MOST: usize = 64;

/// Number of texts of a line that are tried as the text of a judgement.
const JUDGED: usize = 8;

/// A recorded line, and the state before it.
struct RecordedLine<'a> {
    past: &'a Past,
    before: &'a Snapshot,
    line: &'a LogLine,
    commit: &'a Commit,
}

impl RecordedLine<'_> {
    fn text(&self, body: Body) -> String {
        self.past.text(body).to_string()
    }

    /// Candidates for the outcome of an effect.
    fn outcomes(&self, effect: Id) -> Result<Vec<Offered>, StoreError> {
        let Some(out) = self.before.effects.get(&effect) else {
            return Ok(Vec::new());
        };
        let outcomes = match out.what {
            Want::Step => self.decisions(effect, out.agent),
            Want::Call(call) => self.ended(effect, call)?,
        };
        let offered = |outcome| Offered::Outcome {
            effect,
            attempt: 1,
            outcome,
        };
        Ok(outcomes.into_iter().map(offered).collect())
    }

    fn ended(&self, effect: Id, call: Id) -> Result<Vec<Outcome>, StoreError> {
        let mut found = Vec::new();
        for (k, push) in self.commit.pushes.iter().enumerate() {
            let Interaction::Result(result) = &push.what else {
                continue;
            };
            if result.call != call {
                continue;
            }
            let next = self.commit.pushes.get(k + 1);
            let mapped = self.past.mapped_of(self.line, result, next)?;
            let open = self.before.call_of(effect);
            let Some(usage) = self.usage(effect) else {
                found.push(Outcome::Mapped(mapped));
                continue;
            };
            // A model answered: its text has to be parsed again, the stored result is not enough.
            let texts = match open.map(|open| &open.call) {
                // The answer failed because it was not JSON; any other text that is not JSON fails in the same way.
                Some(call) if call.is_extraction() => {
                    vec![Some(extracted(&mapped)), None, Some("?".to_owned())]
                }
                Some(call) if call.asks_itself() => self.judgements(&mapped),
                _ => Vec::new(),
            };
            found.extend(texts.into_iter().map(|text| {
                Outcome::Answer(Answer {
                    text,
                    usage: usage.clone(),
                    ..Answer::default()
                })
            }));
        }
        Ok(found)
    }

    /// Candidates for the answer that led to this judgement; usually one of the texts that came in with the line.
    fn judgements(&self, mapped: &Mapped) -> Vec<Option<String>> {
        let shown = mapped.shown.as_deref().unwrap_or_default();
        let bodies = (0..).zip(&self.line.bodies).take(JUDGED);
        let texts = bodies.map(|(k, _)| Some(self.text(Body::new(self.line.n, k))));
        let again = said_again(mapped.code.as_deref(), shown);
        texts.chain(again.map(Some)).chain([None]).collect()
    }

    fn usage(&self, effect: Id) -> Option<steersman_machine::stored::commit::Usage> {
        let mut usage = self.commit.usage.iter();
        usage.find(|u| u.effect == Some(effect)).cloned()
    }

    fn decisions(&self, effect: Id, agent: Id) -> Vec<Outcome> {
        let mine = self.commit.pushes.iter().filter(|push| push.agent == agent);
        let mine: Vec<&Interaction> = mine.map(|push| &push.what).collect();
        let Some(usage) = self.usage(effect) else {
            return failed(self, &mine).into_iter().collect();
        };
        let answer = |text: Option<String>| Answer {
            text,
            usage: usage.clone(),
            ..Answer::default()
        };
        let mut found = Vec::new();
        for (k, pushed) in mine.iter().enumerate() {
            match pushed {
                Interaction::AssistantMessage {
                    effect: of,
                    text,
                    opaque,
                    ..
                } if *of == effect => {
                    let was = self
                        .past
                        .before_hooks(self.line, Moment::AfterModel, effect);
                    let was = was.and_then(|was| hooks::answer(was, answer(None)));
                    if let Some(was) = was {
                        found.push(Answer {
                            opaque: opaque.map(|b| self.text(b)),
                            ..was
                        });
                        continue;
                    }
                    let calls = calls_of_answer(mine[k + 1..].iter().copied());
                    found.push(Answer {
                        opaque: opaque.map(|b| self.text(b)),
                        asks: calls.map(|call| self.asked(call)).collect(),
                        ..answer(text.map(|b| self.text(b)))
                    });
                }
                Interaction::Summary(summary) if summary.effect == effect => {
                    found.push(answer(Some(self.text(summary.body))));
                    // If the model gave no summary, the text holds the reason.
                    found.push(answer(None));
                }
                Interaction::Route(route) if route.effect == Some(effect) => {
                    let words = self.words(route).into_iter();
                    found.extend(words.map(|word| answer(Some(word))));
                    found.extend(self.called(route).map(|ask| Answer {
                        asks: vec![ask],
                        ..answer(None)
                    }));
                    found.push(answer(None));
                }
                _ => {}
            }
        }
        found.into_iter().map(Outcome::Answer).collect()
    }

    fn asked(&self, call: &Call) -> Ask {
        Ask {
            name: call.called().to_string(),
            label: call.label.as_ref().map(ToString::to_string),
            args: match self
                .past
                .before_hooks(self.line, Moment::BeforeCall, call.id)
            {
                Some(was) => was.to_string(),
                None => self.text(call.args),
            },
            misfit: None,
        }
    }

    /// Returns the unusable answer of a routing model, if the reason quotes it.
    fn quoted(&self, route: &Route) -> Option<String> {
        let why = self.text(route.refused?);
        let (quoted, _) = why.strip_prefix('`')?.rsplit_once("` cannot be used. ")?;
        Some(quoted.to_owned())
    }

    /// Returns the tool call by which a routing model may have made this choice.
    fn called(&self, route: &Route) -> Option<Ask> {
        let (name, args) = if let Choice::Answer(body) = &route.chosen {
            let summary = serde_json::json!({ "summary": self.text(*body) });
            ("done".to_owned(), summary.to_string())
        } else {
            let quoted = self.quoted(route)?;
            let (name, args) = quoted.split_once(' ')?;
            (name.to_owned(), args.to_owned())
        };
        Some(Ask {
            name,
            args,
            label: None,
            misfit: None,
        })
    }

    /// Candidates for the answer of a routing model that led to this choice.
    fn words(&self, route: &Route) -> Vec<String> {
        if route.refused.is_some() {
            return self.quoted(route).into_iter().collect();
        }
        let read: Json = route
            .read
            .and_then(|body| serde_json::from_str(&self.text(body)).ok())
            .unwrap_or_default();
        let mut words: Vec<String> = Vec::new();
        if let Some(exit) = read.get("exit").filter(|exit| exit.is_number()) {
            words.push(exit.to_string());
        }
        match &route.chosen {
            Choice::Agents(names) => words.extend(names.first().map(ToString::to_string)),
            Choice::Finish | Choice::Restate(None) => words.push("finish".into()),
            Choice::Stay => words.push("0".into()),
            Choice::Enter { .. } => words.extend((1..=9).map(|n: u32| n.to_string())),
            Choice::Speak { role, .. } => words.push(role.to_string()),
            Choice::Say { .. } => {}
            Choice::Task { task, agent, goal } => {
                words.extend(goal.iter().map(ToString::to_string));
                words.extend([task.to_string(), agent.to_string()]);
            }
            Choice::Restate(Some(body)) | Choice::Answer(body) => words.push(self.text(*body)),
        }
        words.dedup();
        let Some(reason) = read.get("reason").filter(|reason| reason.is_string()) else {
            return words;
        };
        let reasoned = |word: String| {
            let name: Json = word
                .parse::<u64>()
                .map_or_else(|_| word.clone().into(), Json::from);
            serde_json::json!({ "name": name, "reason": reason }).to_string()
        };
        words.into_iter().map(reasoned).collect()
    }

    /// Returns the whole text of a result. If it has several parts, or the whole text cannot be read, returns the stored text; the past
    /// records the fault.
    fn whole(&self, result: &CallResult) -> Option<Arc<str>> {
        let body = result.body?;
        let whole = self.past.whole(result).ok();
        let text = whole.and_then(|(text, more, _)| text.filter(|_| more.is_empty()));
        Some(text.unwrap_or_else(|| self.text(body)).into())
    }

    /// Reconstructs a message, or the answer to a question.
    fn said(&self, id: Name, to: Option<Id>) -> Option<Said> {
        let question = to.and_then(|to| {
            self.before
                .call_of(to)
                .map(|open| open.call.id)
                .or(Some(to))
        });
        self.commit.pushes.iter().find_map(|push| match &push.what {
            Interaction::UserMessage { from, body } => {
                let (by, sender) = match from {
                    Origin::Outside(by) => (by.clone(), None),
                    Origin::Agent(sender) => (By::default(), Some(*sender)),
                    _ => return None,
                };
                let (text, came) = attached(self.past, self.commit, *body);
                Some(Said {
                    id: id.clone(),
                    text: text.into(),
                    to,
                    by,
                    sender,
                    came,
                    sets: self.sets()?,
                })
            }
            Interaction::Result(result) if Some(result.call) == question => Some(Said {
                id: id.clone(),
                text: self.whole(result)?,
                to,
                by: person(result),
                sender: None,
                came: Vec::new(),
                sets: Vec::new(),
            }),
            _ => None,
        })
    }
}

impl RecordedLine<'_> {
    /// Returns the entries of state that were set with the message of this line: its edits, unless they are entries that expired.
    /// `None` if a value cannot be read.
    fn sets(&self) -> Option<Vec<NewWrite>> {
        let mut admitted = self.commit.admitted.iter();
        if admitted.any(|admission| admission.kind == Admitted::Clock) {
            return Some(Vec::new());
        }
        let edits = self.commit.edits.iter().map(|edit| {
            let value = edit
                .value
                .map(|body| serde_json::from_str(&self.text(body)));
            Some(NewWrite {
                name: edit.name.to_string(),
                value: value.transpose().ok()?,
                seal: false,
            })
        });
        edits.collect()
    }
}

/// Returns the failure of a model that failed for good, from the end of its agent.
fn failed(recorded: &RecordedLine<'_>, mine: &[&Interaction]) -> Option<Outcome> {
    mine.iter().find_map(|pushed| match pushed {
        Interaction::Finished {
            code: Some(code),
            body: Some(body),
            ..
        } => Some(Outcome::Failed(Failure {
            code: code.to_string(),
            message: recorded.text(*body),
            retry: Retry::Never,
        })),
        _ => None,
    })
}

/// Returns the answer of an extraction, from the entries that it wrote.
fn extracted(mapped: &Mapped) -> String {
    let written = mapped.writes.iter();
    let written = written.filter_map(|w| Some((w.name.clone(), w.value.clone()?)));
    Json::Object(written.collect()).to_string()
}

/// Returns the text of a body, and the artifacts that came with it.
pub(crate) fn attached(past: &Past, commit: &Commit, body: Body) -> (String, Vec<NewArtifact>) {
    let text = past.text(body).to_string();
    let came: Vec<NewArtifact> = commit
        .came()
        .filter(|artifact| artifact.call == steersman_machine::view::artifact::came_with(body))
        .map(|artifact| NewArtifact {
            name: artifact.name.to_string(),
            media: artifact.media.to_string(),
            hash: artifact.hash,
            len: artifact.len,
            content: None,
        })
        .collect();
    if came.is_empty() {
        return (text, came);
    }
    let said = text
        .rfind("[Attached: ")
        .map(|at| text[..at].trim_end_matches('\n').to_owned());
    (said.unwrap_or(text), came)
}

/// Candidates for the beginning of a session: with its first message, or with a message that came right after it.
fn begun(start: Start) -> Vec<Vec<Offered>> {
    let mut candidates = vec![vec![Offered::Start(start.clone())]];
    if let Some(message) = start.message.clone() {
        let alone = Start {
            message: None,
            ..start
        };
        candidates.push(vec![Offered::Start(alone), Offered::Message(message)]);
    }
    candidates
}

/// Reconstructs the start of a session: with arguments, with a message, or with neither.
fn start(past: &Past, commit: &Commit, began: &Began<'_>) -> Option<Start> {
    let root = commit.made.first()?;
    let mut args = None;
    let mut message = None;
    let mut came = Vec::new();
    let mut admitted = commit.admitted.iter();
    let id = admitted.find_map(|a| a.message.clone());
    let begins = commit
        .admitted
        .first()
        .is_some_and(|a| a.kind == Admitted::Start);
    let said = commit.pushes.iter().filter(|push| push.agent == root.agent);
    let bodies: Vec<_> = said
        .filter_map(|push| match &push.what {
            Interaction::UserMessage {
                from: Origin::Outside(by),
                body,
            } => Some((by.clone(), *body)),
            _ => None,
        })
        .collect();
    let mut bodies = bodies.into_iter();
    // Arguments are pushed before all messages.
    let messages = commit.admitted.iter().filter(|a| a.message.is_some());
    if begins && bodies.len() > messages.count() {
        let (_, body) = bodies.next()?;
        let text = past.text(body);
        if *text == *ERASED {
            return None;
        }
        came = attached(past, commit, body).1;
        args = Some(serde_json::from_str(&text).ok()?);
    }
    if let Some(id) = id {
        let (by, body) = bodies.next()?;
        let (text, files) = attached(past, commit, body);
        message = Some(Said {
            id,
            text: text.into(),
            to: None,
            by,
            sender: None,
            came: files,
            sets: Vec::new(),
        });
    }
    Some(Start {
        history: history(past, commit, root.agent)?,
        agent: Some(root.def.clone()),
        args,
        message,
        came,
        binding: began.binding.clone(),
        values: began.values.into(),
    })
}

/// Reconstructs the conversation that precedes a session. `None` if a text of it was erased.
fn history(past: &Past, commit: &Commit, root: Id) -> Option<ChatHistory> {
    let mut is_erased = false;
    let mut text = |body: Body| {
        let text = past.text(body);
        is_erased |= *text == *ERASED;
        text
    };
    let pushes = commit.pushes.iter().filter(|push| push.agent == root);
    let said = pushes.filter_map(|push| match &push.what {
        Interaction::Earlier(earlier) => Some(history::Said::of(earlier, &mut text)),
        _ => None,
    });
    let said = said.collect();
    (!is_erased).then(|| ChatHistory::of_said(said))
}

/// Returns the person who gave the result of a question.
fn person(result: &CallResult) -> By {
    let by = result.by.as_ref().and_then(Decider::person);
    by.cloned().unwrap_or_default()
}
