//! The screen of `effects`.

use super::{Ask, Screen, ScreenError, Seen};
use crate::effects::{Effect, Effects, Sum};
use crate::shown;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use steersman_machine::stored::ids::{Id, Name};
use steersman_runtime::pending::{Pending, PendingKind};

/// The effects of a session on the world.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EffectsScreen {
    /// The session as people type it.
    pub short: String,
    /// The same, with the branch if one was named.
    pub name: String,
    /// True if only the effects of a branch are shown.
    pub is_branch: bool,
    /// The effects, in the order in which they were wished.
    pub effects: Vec<EffectRow>,
    /// Sums by tool.
    pub sums: BTreeMap<Name, Sum>,
    /// Questions to people whether an effect happened.
    pub doubts: Vec<Pending>,
}

/// An effect.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EffectRow {
    /// Its id.
    #[serde(serialize_with = "shown::text", deserialize_with = "shown::read::text")]
    pub id: Id,
    /// The class of its tool.
    pub class: String,
    /// Its status in words, with how far its steps came and what it repeats.
    pub status: String,
    /// The number of attempts, if they are counted.
    pub attempts: Option<u32>,
    /// The tool.
    pub tool: Name,
    /// The arguments as JSON.
    pub args: String,
    /// True if it is not known whether it happened, if it waits, or if it repeats an equal one.
    pub is_remarkable: bool,
    /// True if a probe or a person is to settle whether it happened.
    pub is_in_doubt: bool,
    /// True if it may have happened, and no branch waits for it any more.
    pub is_left: bool,
    /// The effect as one document.
    pub document: Json,
}

impl EffectRow {
    fn of(effect: &Effect, seen: &Seen) -> Self {
        let status = [Some(effect.word()), effect.course(), effect.repetition()];
        let status: Vec<String> = status.into_iter().flatten().collect();
        Self {
            id: effect.id,
            class: effect.class.word().to_owned(),
            status: status.join(", "),
            // Attempts of harmless tools are not counted, except those of probes.
            attempts: (effect.attempts > 0 || effect.counts()).then_some(effect.attempts),
            tool: effect.tool.clone(),
            args: effect.args.clone(),
            is_remarkable: effect.is_open() || effect.repeats.is_some(),
            is_in_doubt: effect.is_in_doubt(),
            is_left: seen.inspection.is_left_in_doubt(effect.id),
            document: serde_json::to_value(effect).unwrap_or_default(),
        }
    }
}

impl Screen for EffectsScreen {
    const NAME: &'static str = "effects";

    async fn of(seen: Seen, _: &Ask) -> Result<Self, ScreenError> {
        let only = seen.named().map(|branch| branch.id);
        let mut effects = Effects::of(&seen.log.lines, &seen.log.texts, None);
        effects.driven(seen.inspection.info.owner.is_some());
        let pending = &seen.inspection.pending;
        for held in pending.iter().filter(|p| p.kind == PendingKind::Hold) {
            effects.held(held.effect);
        }
        effects.under(seen.inspection.network.as_deref());
        let shown: Vec<&Effect> = effects
            .all()
            .filter(|effect| only.is_none_or(|branch| effect.branch == branch))
            .collect();
        let doubts = pending.iter().filter(|p| p.kind == PendingKind::Doubt);
        Ok(Self {
            short: seen.short.clone(),
            name: seen.name(),
            is_branch: only.is_some(),
            sums: Effects::sums(shown.iter().copied()),
            effects: shown
                .iter()
                .map(|effect| EffectRow::of(effect, &seen))
                .collect(),
            doubts: doubts.cloned().collect(),
        })
    }
}
