//! Outcomes that a rerun takes from its recording after the two have diverged: each outcome once, in the recorded order, for an
//! equal request.

use crate::clock::Clock;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steersman_machine::stored::by::By;
use steersman_machine::stored::ids::{Digest, Id, Name, Time};
use steersman_machine::stored::outcome::{Answer, Mapped};

/// A request, without its ids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    /// A tool, by the digest of its name and arguments.
    Tool(Digest),
    /// A person, and the question.
    Person(Name, Arc<str>),
    /// A wait, by its name and arguments.
    Wait(Name, Arc<str>),
}

/// A message from outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Heard {
    pub(crate) text: String,
    /// Role and identity of the sender.
    pub(crate) by: By,
}

/// The outcomes of a recording that the rerun has not used yet.
#[derive(Default)]
pub(crate) struct Recorded {
    left: Mutex<Left>,
    taken: Mutex<Taken>,
    /// True if a question without a recorded answer ends the branch as a leaf (`Cause::Leaf`); false if the person is
    /// asked.
    questions_end: bool,
    /// The clock of the process that makes the rerun; its time is not that of the recording.
    clock: Option<Arc<dyn Clock>>,
    /// Number of model calls that were answered from the recording.
    given: AtomicU64,
    /// Model calls that were made, each counted once regardless of its attempts.
    live: Mutex<BTreeSet<Id>>,
}

/// Outcomes and answers that effects took, by effect and request. A job that is done again takes the same.
#[derive(Default)]
struct Taken {
    outcomes: BTreeMap<(Id, Asked), Mapped>,
    answers: BTreeMap<(Id, Digest), Answer>,
}

#[derive(Default)]
pub(crate) struct Left {
    pub(crate) outcomes: BTreeMap<Asked, VecDeque<Mapped>>,
    pub(crate) answers: BTreeMap<Digest, VecDeque<Answer>>,
    pub(crate) heard: VecDeque<Heard>,
}

impl Recorded {
    pub(crate) fn new(left: Left, questions_end: bool, clock: Arc<dyn Clock>) -> Self {
        Self {
            left: Mutex::new(left),
            questions_end,
            clock: Some(clock),
            ..Self::default()
        }
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time of change that lists show for a rerun: the real time, because a rerun's own clock shows the time of its
    /// recording.
    pub(crate) fn listed_at(&self) -> Option<Time> {
        Some(self.clock.as_ref()?.now())
    }

    pub(crate) fn questions_end(&self) -> bool {
        self.questions_end
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next outcome of the same request for an effect.
    pub(crate) fn take(&self, effect: Id, asked: &Asked) -> Option<Mapped> {
        let mut taken = self.taken();
        let key = (effect, asked.clone());
        if let Some(outcome) = taken.outcomes.get(&key) {
            return Some(outcome.clone());
        }
        let outcome = self.left().outcomes.get_mut(asked)?.pop_front()?;
        taken.outcomes.insert(key, outcome.clone());
        Some(outcome)
    }

    /// Takes the next answer that one of these models gave to the same request. It costs nothing.
    pub(crate) fn answer(&self, effect: Id, request: Digest, labels: &[Name]) -> Option<Answer> {
        let mut taken = self.taken();
        let key = (effect, request);
        if let Some(answer) = taken.answers.get(&key) {
            return Some(answer.clone());
        }
        let answer = self.next_answer(request, labels)?;
        taken.answers.insert(key, answer.clone());
        Some(answer)
    }

    fn next_answer(&self, request: Digest, labels: &[Name]) -> Option<Answer> {
        let mut left = self.left();
        let answers = left.answers.get_mut(&request)?;
        let same = |answer: &Answer| {
            let model = answer.usage.model.as_ref();
            model.is_some_and(|model| labels.contains(model))
        };
        let at = answers.iter().position(same)?;
        self.given.fetch_add(1, Ordering::Relaxed);
        answers.remove(at)
    }

    /// Counts a model call that the recording does not answer.
    pub(crate) fn asked_live(&self, effect: Id) {
        self.live_calls().insert(effect);
    }

    fn live_calls(&self) -> MutexGuard<'_, BTreeSet<Id>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next message.
    pub(crate) fn next_heard(&self) -> Option<Heard> {
        self.left().heard.pop_front()
    }

    /// Returns the number of model calls that were answered from the recording, and of those that were not.
    pub(crate) fn counted(&self) -> (u64, u64) {
        (
            self.given.load(Ordering::Relaxed),
            self.live_calls().len() as u64,
        )
    }
}
