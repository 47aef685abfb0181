//! The quotas of the stores in memory.

use super::{Drawn, Limit, Pause};
use std::collections::BTreeMap;
use steersman_machine::stored::ids::{Name, Time};

/// The units that were drawn of each limit in its newest window, and the pauses.
#[derive(Default)]
pub(super) struct Windows {
    /// The newest window of each limit, by place and rate.
    drawn: BTreeMap<([u8; 32], Name), Drawn>,
    /// The end of each pause, by place and model.
    pauses: BTreeMap<([u8; 32], Name), Time>,
}

impl Windows {
    pub(super) fn draw(&mut self, limit: &Limit, wanted: u64, now: Time) -> Drawn {
        let new = Drawn {
            units: 0,
            opens: now,
        };
        let key = (limit.place, limit.rate.clone());
        let used = self.drawn.entry(key).or_insert(new);
        if limit.is_over(used.opens, now) {
            *used = new;
        }
        let units = wanted.min(limit.most.saturating_sub(used.units));
        used.units += units;
        Drawn {
            units,
            opens: used.opens,
        }
    }

    pub(super) fn used(&self, limit: &Limit, now: Time) -> u64 {
        let used = self.drawn.get(&(limit.place, limit.rate.clone()));
        let used = used.filter(|used| !limit.is_over(used.opens, now));
        used.map_or(0, |used| used.units)
    }

    pub(super) fn give_back(&mut self, limit: &Limit, drawn: Drawn) {
        let used = self.drawn.get_mut(&(limit.place, limit.rate.clone()));
        if let Some(used) = used.filter(|used| used.opens == drawn.opens) {
            used.units = used.units.saturating_sub(drawn.units);
        }
    }

    pub(super) fn pause(&mut self, pause: Pause) {
        let known = self.pauses.entry((pause.place, pause.model));
        let until = known.or_insert(pause.until);
        *until = (*until).max(pause.until);
    }

    pub(super) fn pauses(&mut self, now: Time) -> Vec<Pause> {
        self.pauses.retain(|_, until| *until > now);
        let pauses = self.pauses.iter();
        let pauses = pauses.map(|((place, model), until)| Pause {
            place: *place,
            model: model.clone(),
            until: *until,
        });
        pauses.collect()
    }
}
