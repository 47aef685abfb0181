//! The form of a conversation in a model's context: templates for its parts, shortening of old calls and results, and when a whole
//! conversation is summarized.

use super::Name;
use crate::values::expression::Template;

/// Horizon of a tool: the number of exchanges that show its calls and results whole, and their form beyond it.
#[derive(Clone, Debug, PartialEq)]
pub struct Aging {
    /// Least number of the newest exchanges that show the tool's calls and results whole.
    pub horizon: u32,
    /// True if only exchanges with this tool are counted; false if all exchanges of the agent are.
    pub own: bool,
    /// Form of the calls and results beyond the horizon.
    pub beyond: Beyond,
    /// Text in place of the result. `None` means a sentence of the engine.
    pub stub: Option<Template>,
    /// Names of arguments that are shown as `...` beyond the horizon.
    pub elide: Vec<Name>,
    /// The model that writes the summary; used with [`Beyond::Summary`] only.
    pub model: Name,
}

/// Form of calls and results that are beyond a horizon.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// Call and result are left out.
    Drop,
    /// A text takes the place of the result.
    Stub,
    /// A summary by a model takes the place of the results.
    Summary,
    /// Arguments are elided; the result stays.
    Elide,
}

impl Aging {
    /// Number of exchanges that may pile up beyond the horizon before the boundary moves. Each move writes everything after the
    /// boundary to the provider's cache again; until then each exchange that is still shown costs a tenth of its tokens. If
    /// cached input costs a tenth and writing to the cache costs a quarter more than plain input, this number is the cheapest.
    /// A horizon of one gives one, so the boundary is then exact.
    pub fn chunk(&self) -> u32 {
        chunk(self.horizon)
    }
}

/// Returns the chunk ([`Aging::chunk`]) of a horizon of this many exchanges.
fn chunk(horizon: u32) -> u32 {
    // `2 * (1.25 - 0.1) / 0.1 = 23` for each exchange that a move sends again. Round up: above the optimum the cost grows
    // slowly, below it fast.
    let square = 23_u64.saturating_mul(u64::from(horizon.saturating_sub(1)));
    let root = square.isqrt();
    let up = root.saturating_add(u64::from(root * root < square));
    u32::try_from(up).unwrap_or(u32::MAX).max(1)
}

/// Settings for the summary of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Compact {
    /// Estimated size of a request, in tokens, from which on the conversation is summarized.
    pub when_tokens: u64,
    /// The model that writes the summary.
    pub model: Name,
    /// Number of the newest exchanges that are never summarized.
    pub keep_exchanges: u32,
    /// Prompt of the model that writes the summary. `None` means the built-in prompt.
    pub prompt: Option<Template>,
}

#[cfg(test)]
mod tests {
    use super::chunk;

    #[test]
    fn chunks_are_near_the_cheapest_for_two_prices_of_cache_writes() {
        let chunks = [1, 2, 3, 4, 10, 50].map(chunk);
        assert_eq!(chunks, [1, 5, 7, 9, 15, 34]);
        // Tokens per turn if each result is one token: the new one costs its full price, the others a tenth, and everything shown
        // costs its full price in the turn in which the boundary moves.
        let cost_of = |written: f64, horizon: u32, chunk: u32| {
            let (h, c) = (f64::from(horizon), f64::from(chunk));
            let fresh = h + c - 1.0;
            let all: f64 = (0..chunk).map(|k| h + f64::from(k)).sum();
            (written * fresh + 0.1 * (all - fresh)) / c
        };
        // If writing to the cache costs nothing more, the chunks are within 1 % of the optimum.
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

/// Templates for the parts of a conversation, by kind. `None` shows a part as it is in the log. What a tool says itself
/// ([`Render::call`], [`Render::result`]) goes ahead of what its caller says here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContextRender {
    /// Text in place of a message to the agent: of a person, of its caller or of another agent.
    pub user: Option<Template>,
    /// Text in place of a message of the engine.
    pub engine: Option<Template>,
    /// Text in place of the text of an answer. Its calls stay.
    pub assistant: Option<Template>,
    /// Text in place of a summary of the conversation.
    pub summary: Option<Template>,
    /// Text in place of a call of a tool, an agent or a person.
    pub call: Option<Template>,
    /// Text in place of the result of a call.
    pub result: Option<Template>,
}

/// Form of a call and its result in the context.
#[derive(Clone, Debug, PartialEq)]
pub struct Render {
    /// Text in place of the call. `None` shows the call as it was made.
    pub call: Option<Template>,
    /// Text in place of the result. `None` shows the result of the tool.
    pub result: Option<Template>,
    /// Results of more bytes than this become artifacts. The context then shows the beginning of the result and a reference.
    pub spill: usize,
    /// Rules for old calls and results. `None` means that they are always shown whole.
    pub age: Option<Aging>,
}

impl Default for Render {
    fn default() -> Self {
        Self {
            call: None,
            result: None,
            spill: crate::stored::bounds::SPILL,
            age: None,
        }
    }
}
