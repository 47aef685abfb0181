//! What a recording answers once it is no longer followed line by line: each outcome once, in the recorded order, to
//! whoever asks the same.

use crate::clock::Clock;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steersman_machine::effect::{Answer, Mapped};
use steersman_machine::ids::{Digest, Id, Name, Time};

/// What an outcome was the answer to, whatever its ids were.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    /// A tool, by the digest of its name and arguments.
    Tool(Digest),
    /// A person, and the question.
    Person(Name, Arc<str>),
    /// A wait, by its name and arguments.
    Wait(Name, Arc<str>),
}

/// Something that was said from outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Heard {
    pub(crate) text: String,
    /// Their role, if it is not the user.
    pub(crate) by: Option<Name>,
}

/// Outcomes that are left of a recording.
#[derive(Default)]
pub(crate) struct Recorded {
    left: Mutex<Left>,
    /// A question without an answer ends its block.
    questions_end: bool,
    /// The time of whoever reruns it, which is not that of the recording.
    clock: Option<Arc<dyn Clock>>,
    given: AtomicU64,
    /// Model calls that are asked, each once however often it is tried.
    live: Mutex<BTreeSet<Id>>,
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

    /// When lists show that it moved: they show sessions by when that was, and in a rerun it is another time.
    pub(crate) fn listed_at(&self) -> Option<Time> {
        Some(self.clock.as_ref()?.now())
    }

    pub(crate) fn questions_end(&self) -> bool {
        self.questions_end
    }

    /// The next outcome of the same.
    pub(crate) fn take(&self, asked: &Asked) -> Option<Mapped> {
        self.left().outcomes.get_mut(asked)?.pop_front()
    }

    /// The next answer to the same request, if one of these models gave it. Nobody pays for it again.
    pub(crate) fn answer(&self, request: Digest, labels: &[Name]) -> Option<Answer> {
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

    /// A model is asked, since nothing on record is the answer.
    pub(crate) fn asked_live(&self, effect: Id) {
        self.lives().insert(effect);
    }

    fn lives(&self) -> MutexGuard<'_, BTreeSet<Id>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was said next.
    pub(crate) fn next_heard(&self) -> Option<Heard> {
        self.left().heard.pop_front()
    }

    /// Model calls that were answered from here, and that were not.
    pub(crate) fn counted(&self) -> (u64, u64) {
        (
            self.given.load(Ordering::Relaxed),
            self.lives().len() as u64,
        )
    }
}
