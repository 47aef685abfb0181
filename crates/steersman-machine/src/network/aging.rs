//! What becomes of calls, results and whole conversations that grow old.

use super::Name;
use crate::expression::Template;

/// How long a tool's calls and results are shown whole, and what becomes of them then.
#[derive(Clone, Debug, PartialEq)]
pub struct Aging {
    /// So many of the newest exchanges show them whole, at least.
    pub horizon: u32,
    /// Only exchanges with this tool are counted, else all of the agent.
    pub own: bool,
    /// What becomes of them.
    pub beyond: Beyond,
    /// The text instead of the result; none: a sentence of the engine's.
    pub stub: Option<Template>,
    /// Arguments that are `...`.
    pub elide: Vec<Name>,
    /// The model that writes the summary.
    pub model: Name,
}

/// What becomes of what lies beyond a horizon.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// Call and result are left out.
    Drop,
    /// A text stands in the result's place.
    Stub,
    /// A model sums the results up.
    Summary,
    /// Arguments are left out; the result stays.
    Elide,
}

impl Aging {
    /// How far a boundary lies behind before it moves. Each move costs what stands behind the boundary, which is written to
    /// the cache anew, each exchange that is still shown costs a tenth of its tokens: where cached input costs a tenth and to
    /// write it a quarter more, this many is the cheapest. One at a horizon of one, so that boundary is exact.
    pub fn chunk(&self) -> u32 {
        chunk(self.horizon)
    }
}

/// The chunk of a horizon of so many exchanges.
fn chunk(horizon: u32) -> u32 {
    // `2 * (1.25 - 0.1) / 0.1` for each exchange that a move sends anew. Rather one too many: beyond the cheapest the bill grows
    // slowly, below it fast.
    let square = 23_u64.saturating_mul(u64::from(horizon.saturating_sub(1)));
    let root = square.isqrt();
    let up = root.saturating_add(u64::from(root * root < square));
    u32::try_from(up).unwrap_or(u32::MAX).max(1)
}

/// When a conversation is summed up, and by whom.
#[derive(Clone, Debug, PartialEq)]
pub struct Compact {
    /// From so many tokens of a request on.
    pub when_tokens: u64,
    /// The model that writes the summary.
    pub model: Name,
    /// The newest exchanges, which it leaves alone.
    pub keep_exchanges: u32,
    /// What the model is told; none: built in.
    pub prompt: Option<Template>,
}

#[cfg(test)]
mod tests {
    use super::chunk;

    #[test]
    fn chunks_are_the_cheapest_where_cached_input_costs_a_tenth_and_new_input_a_quarter_more() {
        let chunks = [1, 2, 3, 4, 10, 50].map(chunk);
        assert_eq!(chunks, [1, 5, 7, 9, 15, 34]);
        // Tokens a turn, with results of one token: the new one in full, the others at a tenth, all that is shown in full
        // where the boundary moved.
        let cost_of = |written: f64, horizon: u32, chunk: u32| {
            let (h, c) = (f64::from(horizon), f64::from(chunk));
            let fresh = h + c - 1.0;
            let all: f64 = (0..chunk).map(|k| h + f64::from(k)).sum();
            (written * fresh + 0.1 * (all - fresh)) / c
        };
        // Where it costs nothing more to write to the cache, they are nearly so.
        for (written, near) in [(1.25, 1.002), (1.0, 1.01)] {
            let cost = |horizon, chunk| cost_of(written, horizon, chunk);
            for horizon in [1, 2, 3, 4, 10, 50] {
                let best = (1..200).map(|c| cost(horizon, c)).fold(f64::MAX, f64::min);
                let ours = cost(horizon, chunk(horizon));
                assert!(ours <= best * near, "{horizon}: {ours} and {best}");
            }
        }
    }
}

/// How a call and its result look in the context.
#[derive(Clone, Debug, PartialEq)]
pub struct Render {
    /// Instead of the call as made: a text.
    pub call: Option<Template>,
    /// Instead of the result as shown.
    pub result: Option<Template>,
    /// A result of more bytes than this becomes an artifact; its call gets its beginning and a reference.
    pub spill: usize,
    /// How long it is shown whole, and what becomes of it then; none: for ever.
    pub age: Option<Aging>,
}

impl Default for Render {
    fn default() -> Self {
        Self {
            call: None,
            result: None,
            spill: crate::bounds::SPILL,
            age: None,
        }
    }
}
