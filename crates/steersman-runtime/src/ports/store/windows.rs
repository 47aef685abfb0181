//! The quotas of the stores in memory.

use super::{Drawn, Limit, Pause, WINDOWS};
use std::collections::BTreeMap;
use steersman_machine::stored::ids::{Name, Time};

/// The units that were drawn of each limit, and the pauses.
#[derive(Default)]
pub(super) struct Windows {
    /// The last windows of each limit, by place and rate: the one that was drawn from last is at the end.
    drawn: BTreeMap<([u8; 32], Name), Vec<Drawn>>,
    /// The end of each pause, by place and model.
    pauses: BTreeMap<([u8; 32], Name), Time>,
}

impl Windows {
    pub(super) fn draw(&mut self, limit: &Limit, wanted: u64, opens: Time) -> Drawn {
        let key = (limit.place, limit.rate.clone());
        let windows = self.drawn.entry(key).or_default();
        let known = windows.iter().position(|window| window.opens == opens);
        let mut window = known.map_or(Drawn { units: 0, opens }, |at| windows.remove(at));
        let units = wanted.min(limit.most.saturating_sub(window.units));
        window.units += units;
        windows.push(window);
        if windows.len() > WINDOWS {
            windows.remove(0);
        }
        Drawn { units, opens }
    }

    pub(super) fn used(&self, limit: &Limit, opens: Time) -> u64 {
        let windows = self.drawn.get(&(limit.place, limit.rate.clone()));
        let mut windows = windows.into_iter().flatten();
        let window = windows.find(|window| window.opens == opens);
        window.map_or(0, |window| window.units)
    }

    pub(super) fn give_back(&mut self, limit: &Limit, drawn: Drawn) {
        let windows = self.drawn.get_mut(&(limit.place, limit.rate.clone()));
        let mut windows = windows.into_iter().flatten();
        if let Some(window) = windows.find(|window| window.opens == drawn.opens) {
            window.units = window.units.saturating_sub(drawn.units);
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
