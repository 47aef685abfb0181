//! Masks secrets in texts from outside: a service may return a secret that it was sent.
//!
//! A text that is shortened before it is masked may end within a secret, and no search finds the remaining half. So texts are
//! only shortened by a [`Mask`], which removes the secrets first, and also possible parts of a secret at the ends of a text.

use std::sync::Arc;

/// Replaces a secret.
const PLACEHOLDER: &str = "(secret)";
/// Shortest text that is masked, in bytes: a shorter one would blank out ordinary words.
const SHORTEST: usize = 4;

/// The secrets to mask. It has no `Debug`, since it holds them.
#[derive(Clone, Default)]
pub(crate) struct Mask(Arc<[String]>);

impl Mask {
    /// Creates a mask for these texts.
    pub(crate) fn of(texts: impl IntoIterator<Item = String>) -> Self {
        let texts = texts.into_iter().filter(|text| text.len() >= SHORTEST);
        Self(texts.collect())
    }

    /// Creates a mask for the keys of a model, also in their JSON form.
    pub(crate) fn of_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let forms = keys.into_iter().flat_map(|key| {
            let json = serde_json::Value::from(key).to_string();
            [key.to_owned(), json[1..json.len() - 1].to_owned()]
        });
        Self::of(forms)
    }

    /// Masks a complete text.
    pub(crate) fn all(&self, text: &str) -> String {
        let mut hit = Hits::default();
        for secret in self.0.iter() {
            hit.whole(text, secret);
        }
        hit.replaced(text)
    }

    /// Masks a text that may have been cut at its ends before: a window of an output, the beginning of a body, the output of a
    /// program that was killed.
    pub(crate) fn piece(&self, text: &str) -> String {
        // A cut within a character leaves replacement characters. They are not compared with secrets.
        let inner = text.trim_matches('\u{fffd}');
        let from = text.len() - text.trim_start_matches('\u{fffd}').len();
        let mut hit = Hits::default();
        for secret in self.0.iter() {
            hit.whole(text, secret);
            hit.at_the_ends(inner, from, secret);
        }
        hit.replaced(text)
    }

    /// Returns the first `max` bytes of a masked text, cut at a character, with `...` where it was cut.
    pub(crate) fn first(&self, text: &str, max: usize) -> String {
        // The window is long enough to contain every secret that begins within `max`.
        let window = text.floor_char_boundary(max.saturating_add(self.longest()));
        let masked = self.piece(&text[..window]);
        if window == text.len() && masked.len() <= max {
            return masked;
        }
        let end = masked.floor_char_boundary(max);
        format!("{}...", &masked[..end])
    }

    /// Returns the last `max` bytes of a masked text, cut at a character, with `...` where it was cut.
    pub(crate) fn last(&self, text: &str, max: usize) -> String {
        let from = text
            .len()
            .saturating_sub(max.saturating_add(self.longest()));
        let window = text.ceil_char_boundary(from);
        let masked = self.piece(&text[window..]);
        if window == 0 && masked.len() <= max {
            return masked;
        }
        let begin = masked.ceil_char_boundary(masked.len().saturating_sub(max));
        format!("...{}", &masked[begin..])
    }

    /// Returns the length of a secret's beginning at the end of these bytes, if the rest of the secret was not kept.
    pub(crate) fn begun(&self, bytes: &[u8]) -> usize {
        let begun = |secret: &String| {
            let secret = secret.as_bytes();
            let from = bytes.len().saturating_sub(secret.len() - 1);
            longest_border(&secret[..secret.len() - 1], &bytes[from..])
        };
        let begun = self.0.iter().map(begun).max().unwrap_or(0);
        if begun < SHORTEST { 0 } else { begun }
    }

    fn longest(&self) -> usize {
        self.0.iter().map(String::len).max().unwrap_or(0)
    }
}

/// Ranges of a text to mask. They may overlap: then their union is masked.
#[derive(Default)]
struct Hits(Vec<(usize, usize)>);

impl Hits {
    /// Adds every occurrence of a secret, also overlapping ones.
    fn whole(&mut self, text: &str, secret: &str) {
        // Most texts contain no secret, and this test is fast.
        if !text.contains(secret) {
            return;
        }
        let secret = secret.as_bytes();
        matches(secret, text.as_bytes(), |end| {
            self.0.push((end - secret.len(), end));
        });
    }

    /// Adds the end of a secret at the beginning of the text, its beginning at the end of the text, or the whole text if it is
    /// a part of the secret. `from` is the offset of `text` in the whole text.
    fn at_the_ends(&mut self, text: &str, from: usize, secret: &str) {
        let (text, secret) = (text.as_bytes(), secret.as_bytes());
        if text.len() < SHORTEST {
            return;
        }
        if text.len() < secret.len() && memchr::memmem::find(secret, text).is_some() {
            self.0.push((from, from + text.len()));
            return;
        }
        let near = text.len().min(secret.len() - 1);
        let ends = longest_border(&text[..near], &secret[1..]);
        if ends >= SHORTEST {
            self.0.push((from, from + ends));
        }
        let begins = longest_border(&secret[..secret.len() - 1], &text[text.len() - near..]);
        if begins >= SHORTEST {
            self.0.push((from + text.len() - begins, from + text.len()));
        }
    }

    fn replaced(mut self, text: &str) -> String {
        if self.0.is_empty() {
            return text.to_owned();
        }
        self.0.sort_unstable();
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (from, to) in self.0 {
            if from >= done {
                out.push_str(&text[done..from]);
                out.push_str(PLACEHOLDER);
            }
            done = done.max(to);
        }
        out.push_str(&text[done..]);
        out
    }
}

/// Returns the length of the longest prefix of `of` with which `text` ends.
fn longest_border(of: &[u8], text: &[u8]) -> usize {
    if of.is_empty() {
        return 0;
    }
    matches(of, text, |_| {})
}

/// Reports the end of each occurrence of a pattern in a text, and returns the length of the pattern's prefix at the end of the
/// text. By Knuth, Morris and Pratt: each byte is looked at once, for any pattern.
fn matches(pattern: &[u8], text: &[u8], mut at: impl FnMut(usize)) -> usize {
    let mut back = vec![0; pattern.len()];
    let mut len = 0;
    for k in 1..pattern.len() {
        while len > 0 && pattern[k] != pattern[len] {
            len = back[len - 1];
        }
        len += usize::from(pattern[k] == pattern[len]);
        back[k] = len;
    }
    let mut len = 0;
    for (k, byte) in text.iter().enumerate() {
        while len > 0 && (len == pattern.len() || *byte != pattern[len]) {
            len = back[len - 1];
        }
        len += usize::from(*byte == pattern[len]);
        if len == pattern.len() {
            at(k + 1);
        }
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-SECRET-0123456789-END";

    fn mask() -> Mask {
        Mask::of([KEY.to_owned()])
    }

    /// Returns true if four consecutive characters of the key are in a text.
    fn leaks(text: &str, key: &str) -> bool {
        key.as_bytes()
            .windows(SHORTEST)
            .any(|part| memchr::memmem::find(text.as_bytes(), part).is_some())
    }

    #[test]
    fn wherever_a_text_is_cut_nothing_of_a_secret_is_left() {
        for before in 0..80 {
            for after in 0..80 {
                let text = format!("{}{KEY}{}", ".".repeat(before), "~".repeat(after));
                for max in [1, 40, 60] {
                    let told = [mask().first(&text, max), mask().last(&text, max)];
                    assert!(told.iter().all(|told| !leaks(told, KEY)), "{told:?}");
                    assert!(told.iter().all(|told| told.len() <= max + 3), "{told:?}");
                }
            }
        }
    }

    #[test]
    fn a_window_of_any_place_and_length_tells_nothing_of_a_secret() {
        let text = format!("ab{KEY}cd{KEY}");
        for from in 0..text.len() {
            for to in from..=text.len() {
                let told = mask().piece(&text[from..to]);
                assert!(!leaks(&told, KEY), "{from}..{to}: {told}");
                let kept = to - mask().begun(&text.as_bytes()[from..to]);
                let told = mask().all(&text[from..kept.max(from)]);
                assert!(from > 0 || !leaks(&told, KEY), "{from}..{to}: {told}");
            }
        }
    }

    #[test]
    fn what_overlaps_is_taken_out_as_a_whole() {
        let mask = Mask::of(["abcdefgh".to_owned(), "efghijkl".to_owned()]);
        assert_eq!(mask.all("-abcdefghijkl-"), "-(secret)-");
        let mask = Mask::of(["abababab".to_owned()]);
        assert_eq!(mask.all("abababababab."), "(secret).");
        // A character cut in two, as in a window of bytes.
        let mask = Mask::of(["äöüßéè".to_owned()]);
        assert_eq!(mask.piece("\u{fffd}öüßéè: no"), "\u{fffd}(secret): no");
        assert_eq!(mask.piece("no: äöüß\u{fffd}"), "no: (secret)\u{fffd}");
        // Too short to be masked.
        let mask = Mask::of(["no".to_owned()]);
        assert_eq!(mask.all("no"), "no");
    }

    #[test]
    fn what_is_short_is_told_as_it_is() {
        assert_eq!(mask().first("all of it", 9), "all of it");
        assert_eq!(mask().first("all of it", 8), "all of i...");
        assert_eq!(mask().first("ääää", 3), "ä...");
        assert_eq!(mask().last("all of it", 9), "all of it");
        assert_eq!(mask().last("all of it", 5), "...of it");
        assert_eq!(mask().last("ääää", 3), "...ä");
        assert_eq!(mask().first("", 3), "");
    }
}
