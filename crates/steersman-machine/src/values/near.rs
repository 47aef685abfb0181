//! Suggestions for wrong names: the most similar known name.
//!
//! The work is bounded for each compilation, not for each name. A definition with thousands of wrong names gets suggestions
//! only for the first of them, and is checked as fast as one with few wrong names.

use std::cell::Cell;

/// Maximum length of names that are compared, in characters. Names of a definition are never longer.
const LONGEST: usize = 64;

/// Maximum number of edits between the written name and a suggestion.
const EDITS: usize = 3;

/// Work that one compilation may do for suggestions: the number of names that are read, plus the number of computed cells of
/// the tables that compare two names. This is enough for dozens of wrong names among thousands of known ones, and for thousands
/// of wrong names among dozens.
pub(crate) const WORK: u64 = 5_000_000;

/// Finds similar names until its work is used up.
#[derive(Clone, Debug)]
pub struct Nearby {
    left: Cell<u64>,
}

impl Default for Nearby {
    fn default() -> Self {
        Self {
            left: Cell::new(WORK),
        }
    }
}

/// Returns the most similar of a few names, if one is similar enough.
pub fn near<'a>(name: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    Nearby::default().nearest(name, among)
}

impl Nearby {
    /// Returns the name in `among` that is most similar to `name`, if one is similar enough.
    pub fn nearest<'a>(
        &self,
        name: &str,
        among: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        let written = Letters::of(name)?;
        let most = (name.chars().count() / 3).clamp(1, EDITS);
        let mut best: Option<(usize, &str)> = None;
        for known in among {
            if !self.pays(1) {
                return None;
            }
            // An edit changes the length by one character at most, and a character has four bytes at most.
            if known.len().abs_diff(name.len()) > 4 * most || known == name {
                continue;
            }
            let Some(letters) = Letters::of(known) else {
                continue;
            };
            if letters.len.abs_diff(written.len) > most {
                continue;
            }
            let within = best.map_or(most, |(distance, _)| distance);
            let (found, cells) = distance(written.as_slice(), letters.as_slice(), within);
            if !self.pays(cells) {
                return None;
            }
            if let Some(distance) = found {
                best = Some(best.map_or((distance, known), |best| best.min((distance, known))));
            }
        }
        best.map(|(_, known)| known)
    }

    /// Subtracts `work` from the remaining work. If less is left, sets that to 0 and returns false.
    fn pays(&self, work: u64) -> bool {
        let left = self.left.get().checked_sub(work);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Returns the work done so far.
    #[cfg(test)]
    fn done(&self) -> u64 {
        WORK - self.left.get()
    }
}

/// The letters of a name in lower case; at most [`LONGEST`].
struct Letters {
    all: [char; LONGEST],
    len: usize,
}

impl Letters {
    fn of(name: &str) -> Option<Self> {
        let mut letters = Self {
            all: ['\0'; LONGEST],
            len: 0,
        };
        for c in name.chars().flat_map(char::to_lowercase) {
            *letters.all.get_mut(letters.len)? = c;
            letters.len += 1;
        }
        Some(letters)
    }
    fn as_slice(&self) -> &[char] {
        &self.all[..self.len]
    }
}

/// Returns the number of edits between two names if it is at most `most`, and the number of computed cells. A swap of two
/// neighbouring letters counts as one edit. Only cells near the diagonal are computed, because all others are greater than
/// `most`.
fn distance(a: &[char], b: &[char], most: usize) -> (Option<usize>, u64) {
    const FAR: u8 = u8::MAX / 2;
    const EMPTY: [u8; LONGEST + 1] = [FAR; LONGEST + 1];
    let far = |edits: usize| u8::try_from(edits).unwrap_or(FAR).min(FAR);
    let (mut older, mut old, mut row) = (EMPTY, EMPTY, EMPTY);
    for (j, cell) in old.iter_mut().enumerate().take(most + 1) {
        *cell = far(j);
    }
    let mut cells = 0;
    for i in 1..=a.len() {
        let first = i.saturating_sub(most).max(1);
        row[first - 1] = if i <= most { far(i) } else { FAR };
        let mut least = row[first - 1];
        for j in first..=(i + most).min(b.len()) {
            let differs = u8::from(a[i - 1] != b[j - 1]);
            let mut best = (old[j] + 1).min(row[j - 1] + 1).min(old[j - 1] + differs);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(older[j - 2] + 1);
            }
            row[j] = best.min(FAR);
            least = least.min(best);
            cells += 1;
        }
        // A swap skips one row, so the search ends only after two rows without a cell of at most `most`.
        let before = old.iter().copied().min().unwrap_or(FAR);
        if usize::from(least) > most && usize::from(before) > most {
            return (None, cells);
        }
        older = old;
        old = row;
        row = EMPTY;
    }
    let found = usize::from(old[b.len()]);
    ((found <= most).then_some(found), cells)
}

#[cfg(test)]
mod tests {
    use super::near;
    use super::{Letters, Nearby, WORK, distance};

    #[test]
    fn the_nearest_name_is_found() {
        let known = ["balance", "deposit", "ledger", "send_money"];
        for (written, meant) in [
            ("balnace", Some("balance")),
            ("sned_money", Some("send_money")),
            ("ledgers", Some("ledger")),
            ("DEPOSIT", Some("deposit")),
            ("withdraw", None),
            ("balance", None),
        ] {
            assert_eq!(near(written, known), meant, "{written}");
        }
    }

    #[test]
    fn distances_are_those_of_the_whole_table() {
        let of = |a: &str, b: &str| {
            let (a, b) = (Letters::of(a).unwrap(), Letters::of(b).unwrap());
            distance(a.as_slice(), b.as_slice(), 3).0
        };
        assert_eq!(of("abcdef", "abcdef"), Some(0));
        assert_eq!(of("abcdef", "badcef"), Some(2));
        assert_eq!(of("abcdef", "bcdefg"), Some(2));
        assert_eq!(of("abcdef", "abc"), Some(3));
        assert_eq!(of("abcdef", "ab"), None);
        assert_eq!(of("abcdef", "uvwxyz"), None);
        assert_eq!(of("kitten", "sitting"), Some(3));
    }

    #[test]
    fn the_work_is_bounded_for_all_names_together() {
        let known: Vec<String> = (0..5_000).map(|k| format!("tool_number_{k}")).collect();
        let nearby = Nearby::default();
        let among = || known.iter().map(String::as_str);
        let found = |k: usize| {
            let near = nearby.nearest(&format!("tool_numbr_{k}"), among());
            near.map(str::to_owned)
        };
        assert_eq!(found(17).as_deref(), Some("tool_number_17"));
        let each = nearby.done();
        assert!(each < 100 * 5_000, "{each}");
        let all = (0..5_000).filter(|k| found(*k).is_some()).count();
        assert!((5..5_000).contains(&all), "{all}");
        assert_eq!(nearby.done(), WORK);
        let long = "x".repeat(1 << 20);
        assert_eq!(near(&long, [&*format!("{long}y")]), None);
    }
}
