//! The segments of a request as a persistent vector: a clone and a segment at the end cost the same at any length.

use super::{Content, FilePart, Segment};
use crate::stored::ids::Digest;
use imbl::Vector;
use imbl::shared_ptr::DefaultSharedPtr;
use std::ops::Index;
use std::sync::Arc;

/// The segments of a request, in order. A clone shares them, and each knows the digest and size of everything up to it.
#[derive(Clone, Debug, Default)]
pub struct Segments(Vector<Linked>);

/// A segment with its link.
#[derive(Clone, Debug)]
struct Linked {
    segment: Arc<Segment>,
    link: Link,
}

/// Digest and size of all segments up to and including one of them.
#[derive(Copy, Clone, Debug)]
struct Link {
    digest: Digest,
    /// Size of these segments in bytes.
    bytes: u64,
    /// The files among them.
    files: Files,
}

/// Sizes of files together.
#[derive(Copy, Clone, Debug, Default)]
struct Files {
    bytes: u64,
    tokens: u64,
}

impl Segments {
    /// Appends a segment.
    pub fn push(&mut self, segment: Arc<Segment>) {
        let before = self.0.last().map(|last| last.link);
        let mut chained = [0; 32];
        let chained = match before {
            Some(link) => {
                chained[..16].copy_from_slice(&link.digest.0);
                chained[16..].copy_from_slice(&segment.digest.0);
                &chained[..]
            }
            None => &segment.digest.0,
        };
        let mut files = before.map_or_else(Files::default, |link| link.files);
        if let Content::File(file) = &segment.content {
            files.bytes = files.bytes.saturating_add(file.len);
            files.tokens = files.tokens.saturating_add(file.tokens());
        }
        let link = Link {
            digest: Digest::of(chained),
            bytes: before.map_or(0, |link| link.bytes) + segment.len,
            files,
        };
        self.0.push_back(Linked { segment, link });
    }

    /// Removes all segments but the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        // Usually few segments go. Splitting the vector costs more than that.
        if self.0.len().saturating_sub(len) > 16 {
            self.0.truncate(len);
        }
        while self.0.len() > len {
            self.0.pop_back();
        }
    }

    /// Returns the number of segments.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no segments.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the segment at this place. `None` if there are fewer.
    pub fn get(&self, at: usize) -> Option<&Arc<Segment>> {
        self.0.get(at).map(|linked| &linked.segment)
    }

    /// Returns the last segment.
    pub fn last(&self) -> Option<&Arc<Segment>> {
        self.0.last().map(|linked| &linked.segment)
    }

    /// Iterates over the segments, in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter(self.0.iter())
    }

    /// Iterates over the segments from this place on, in order. What is before costs nothing.
    pub fn since(&self, at: usize) -> impl Iterator<Item = &Arc<Segment>> {
        (at..self.len()).filter_map(|at| self.get(at))
    }

    /// Returns the size of all segments in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes_of(self.len())
    }

    /// Returns the files among the segments, in order.
    pub fn files(&self) -> impl Iterator<Item = &FilePart> {
        let all = if self.has_files() { self.len() } else { 0 };
        self.iter()
            .take(all)
            .filter_map(|segment| match &segment.content {
                Content::File(file) => Some(file),
                _ => None,
            })
    }

    /// Returns true if there are files among the segments.
    pub fn has_files(&self) -> bool {
        self.file_tokens() > 0
    }

    /// Returns the size of the contents of all files in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.0.last().map_or(0, |last| last.link.files.bytes)
    }

    /// Returns the number of tokens that all files count as ([`FileKind::tokens`](crate::network::FileKind::tokens)).
    pub fn file_tokens(&self) -> u64 {
        self.0.last().map_or(0, |last| last.link.files.tokens)
    }

    /// Returns the size of the first `count` segments in bytes; of all if there are fewer.
    pub(super) fn bytes_of(&self, count: usize) -> u64 {
        let last = count.min(self.len()).checked_sub(1);
        let last = last.and_then(|last| self.0.get(last));
        last.map_or(0, |last| last.link.bytes)
    }

    /// Returns the chained digest of the first `count` segments. Two requests with the same digest begin with the same segments.
    /// `None` if there are fewer, and for 0.
    pub fn chain(&self, count: usize) -> Option<Digest> {
        let last = self.0.get(count.checked_sub(1)?)?;
        Some(last.link.digest)
    }

    /// Returns the segments without their content.
    pub(super) fn bare(&self) -> Self {
        let bare = |linked: &Linked| Linked {
            segment: Arc::new(Segment {
                part: linked.segment.part,
                content: Content::User(String::new()),
                digest: linked.segment.digest,
                len: linked.segment.len,
            }),
            link: linked.link,
        };
        Self(self.0.iter().map(bare).collect())
    }
}

/// Iterator over segments.
pub struct Iter<'a>(imbl::vector::Iter<'a, Linked, DefaultSharedPtr>);

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Arc<Segment>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|linked| &linked.segment)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl std::fmt::Debug for Iter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Iter({} left)", self.0.len())
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|linked| &linked.segment)
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Segments {
    type Item = &'a Arc<Segment>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<Arc<Segment>> for Segments {
    fn from_iter<I: IntoIterator<Item = Arc<Segment>>>(all: I) -> Self {
        let mut segments = Self::default();
        all.into_iter().for_each(|segment| segments.push(segment));
        segments
    }
}

impl Index<usize> for Segments {
    type Output = Arc<Segment>;

    fn index(&self, at: usize) -> &Self::Output {
        &self.0[at].segment
    }
}

impl PartialEq for Segments {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(a, b)| a == b)
    }
}
