//! Follows a way of keys through the tables of the format: what may be written at its end.

use super::outline::Step;
use crate::keys::file::File;
use crate::keys::{Key, LongType, Refers, Section, Space, Table, Ty};

/// The types and names that the format allows at the end of a way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Typed {
    /// The types that a value may have, without choices.
    pub types: Vec<&'static Ty>,
    /// The key that the value belongs to, with its section. Values in the lists and maps of a key belong to it, too.
    pub key: Option<(&'static Table, &'static Key)>,
    /// The meaning of the names in the value, unless the type is a section.
    pub refers: Option<Refers>,
}

/// Returns what the format allows at the end of a way from the root of a file.
pub(crate) fn at(path: &[Step]) -> Typed {
    path.iter().fold(root(), |at, step| at.then(step))
}

/// Returns what the root of a file may be.
pub(crate) fn root() -> Typed {
    Typed {
        types: vec![const { &Ty::Table(File::table) }],
        key: None,
        refers: None,
    }
}

impl Typed {
    /// Returns what the value of a key is.
    pub(crate) fn of(table: &'static Table, key: &'static Key) -> Self {
        Self {
            types: key.ty.alternatives(),
            key: Some((table, key)),
            refers: key.refers,
        }
    }

    /// Returns what the format allows one step further.
    pub(crate) fn then(&self, step: &Step) -> Self {
        match step {
            Step::Key(name) => self.entry(name),
            Step::Item(_) => self.item(),
        }
    }

    fn entry(&self, name: &str) -> Self {
        for table in self.tables() {
            if let Some(key) = table.key(name) {
                return Self::of(table, key);
            }
        }
        let inner = self.types.iter().find_map(|ty| match ty {
            Ty::Map(of) | Ty::Names(of) => Some(*of),
            _ => None,
        });
        self.within(inner)
    }

    fn item(&self) -> Self {
        let inner = self.types.iter().find_map(|ty| match ty {
            Ty::List(of) => Some(*of),
            Ty::Type => Some(*ty),
            _ => None,
        });
        self.within(inner)
    }

    fn within(&self, inner: Option<&'static Ty>) -> Self {
        match inner {
            Some(ty) => Self {
                types: ty.alternatives(),
                ..self.clone()
            },
            // values in free data belong to its key
            None => Self {
                types: self.data(),
                key: self.key,
                refers: None,
            },
        }
    }

    fn data(&self) -> Vec<&'static Ty> {
        let data = self
            .types
            .iter()
            .filter(|ty| matches!(ty, Ty::Data | Ty::Any));
        data.copied().collect()
    }

    /// Returns the sections that the value may be.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &'static Table> {
        self.types.iter().filter_map(|ty| match ty {
            Ty::Table(table) => Some(table()),
            Ty::Type => Some(LongType::table()),
            _ => None,
        })
    }

    /// Returns the map of named entries that the value may be.
    pub(crate) fn is_map(&self) -> bool {
        let map = |ty: &&Ty| matches!(ty, Ty::Map(_) | Ty::Names(_));
        self.types.iter().any(map)
    }

    /// Returns what the names in a text here mean. In the short form of a section, a text is the value of its key.
    pub(crate) fn names(&self) -> Option<Space> {
        for table in self.tables() {
            if let Some(key) = table.short.and_then(|short| table.key(short))
                && let Some(Refers::Names(space)) = key.refers
            {
                return Some(space);
            }
        }
        match self.refers {
            Some(Refers::Names(space)) => Some(space),
            Some(Refers::Declares(_)) | None => None,
        }
    }
}
