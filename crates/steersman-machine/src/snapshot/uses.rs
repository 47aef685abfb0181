//! In how many exchanges an agent called its tools.

use crate::ids::Name;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A count for each of a few names, in their order. An agent has few tools, and every branch on which it calls one has a
/// table of its own: so it lies in one piece, as long as it must be, and is shared until it changes. Stored as a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses(Arc<Vec<(Name, u32)>>);

impl Uses {
    /// How often it was this one; 0 of what was never counted.
    pub fn get(&self, name: &Name) -> u32 {
        self.place(name).map_or(0, |at| self.0[at].1)
    }

    /// It was so often this one.
    pub fn set(&mut self, name: Name, times: u32) {
        let place = self.place(&name);
        let all = Arc::make_mut(&mut self.0);
        match place {
            Ok(at) => all[at].1 = times,
            Err(at) => {
                all.reserve_exact(1);
                all.insert(at, (name, times));
            }
        }
    }

    /// All that were counted, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, u32)> {
        self.0.iter().map(|(name, times)| (name, *times))
    }

    fn place(&self, name: &Name) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.cmp(name))
    }
}

impl Serialize for Uses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Uses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sorted = BTreeMap::<Name, u32>::deserialize(deserializer)?;
        Ok(Self(Arc::new(sorted.into_iter().collect())))
    }
}
