//! Counts of the exchanges in which an agent called each of its tools.

use crate::stored::ids::Name;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A count for each name, sorted by name. An agent uses few tools, but every branch on which it calls one has its own table. So
/// the table is one allocation of exact size, and clones share it until one of them changes. It is stored as a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses(Arc<Vec<(Name, u32)>>);

impl Uses {
    /// Returns the count of this name; 0 if it was never counted.
    pub fn get(&self, name: &Name) -> u32 {
        self.place(name).map_or(0, |at| self.0[at].1)
    }

    /// Sets the count of this name.
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

    /// Iterates over all counts, in the order of their names.
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
