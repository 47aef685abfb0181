//! Hooks of a recording: they answer what the line has, so that none of them runs.

use crate::past::Past;
use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex, PoisonError};
use steersman_machine::network::Network;
use steersman_machine::network::hooks::{At, Edits, Hook};
use steersman_machine::stored::commit::{Commit, Hooked, LogLine, Moment};
use steersman_machine::stored::ids::{Bodies, Name};

const ALL: &[Moment] = &[
    Moment::BeforeModel,
    Moment::AfterModel,
    Moment::BeforeCall,
    Moment::AfterCall,
    Moment::Finish,
];

/// The changes of the line that is made again, as JSON.
#[derive(Clone, Default)]
pub(super) struct Changes(Arc<Mutex<Vec<(Hooked, Json)>>>);

impl Changes {
    /// Takes the changes of a line.
    pub(super) fn follow(&self, past: &Past, line: &LogLine) {
        let hooked = line.commit.iter().flat_map(Commit::hooked);
        let read = |hooked: &Hooked| {
            let change = serde_json::from_str(&past.text(hooked.change)).ok()?;
            Some((hooked.clone(), change))
        };
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *changes = hooked.filter_map(read).collect();
    }

    /// Returns the network with the recorded hooks in place of its own. A hook that the recording has in another version, or not at
    /// all, is asked.
    pub(super) fn of_recording(&self, network: &Arc<Network>, old: &Network) -> Arc<Network> {
        if network.hooks.is_empty() {
            return network.clone();
        }
        let mut recording = (**network).clone();
        for hook in network.hooks.iter().filter(|hook| old.hooks.contains(hook)) {
            let recorded = RecordedHook {
                name: hook.name.clone(),
                version: hook.version.clone(),
                changes: self.clone(),
            };
            let recorded: Arc<dyn Hook> = Arc::new(recorded);
            recording.natives.hooks.insert(hook.name.clone(), recorded);
        }
        Arc::new(recording)
    }
}

struct RecordedHook {
    name: Name,
    version: String,
    changes: Changes,
}

impl Hook for RecordedHook {
    fn version(&self) -> String {
        self.version.clone()
    }

    fn moments(&self) -> &[Moment] {
        ALL
    }

    fn run(&self, at: &At, _: u64, value: Json) -> Result<Json, String> {
        let changes = self.changes.0.lock();
        let changes = changes.unwrap_or_else(PoisonError::into_inner);
        let mut own = changes
            .iter()
            .filter(|(hooked, _)| hooked.hook == self.name && hooked.at == at.moment);
        if at.moment == Moment::BeforeModel {
            let found = own.find(|(hooked, _)| hooked.effect == at.effect);
            let edits: Edits = match found.map(|(_, edits)| serde_json::from_value(edits.clone())) {
                Some(Ok(edits)) => edits,
                Some(Err(_)) | None => return Ok(value),
            };
            if let Some(why) = edits.failed {
                return Err(why);
            }
            let request = serde_json::from_value(value).map_err(|e| e.to_string())?;
            return Ok(json!(edits.applied(request)));
        }
        match own.find(|(_, change)| change["was"] == value) {
            Some((_, change)) => match change["failed"].as_str() {
                Some(why) => Err(why.to_owned()),
                None => Ok(change["is"].clone()),
            },
            None => Ok(value),
        }
    }
}
