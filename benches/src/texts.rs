//! The texts of the workloads and the rule of the stub model. `peers/` has the same in Python, JavaScript and Rust.

const FILL: &str = "the quick brown fox jumps over the lazy dog ";

/// Repeats the fill text after a stem, up to so many bytes.
pub(crate) fn pad(stem: &str, length: usize) -> String {
    let mut text = stem.to_owned();
    while text.len() < length {
        text.push_str(FILL);
    }
    text.truncate(length);
    text
}

/// The system prompt.
pub(crate) fn system() -> String {
    pad(
        "You are a careful research agent. Use the lookup tool. ",
        400,
    )
}

/// User message `i`.
pub(crate) fn user(i: usize) -> String {
    user_of(i, 200)
}

/// User message `i` with so many bytes.
pub(crate) fn user_of(i: usize, length: usize) -> String {
    pad(&format!("Request {i:06}: "), length)
}

/// Final answer `i`.
pub(crate) fn answer(i: usize) -> String {
    pad(&format!("Answer {i:06}: "), 200)
}

/// Result `n` of the tool.
pub(crate) fn result(n: usize) -> String {
    pad(&format!("result {n:06}: "), 300)
}

/// Arguments of call `n` of the tool.
pub(crate) fn arguments(n: usize) -> String {
    format!("{{\"key\":\"k{n:06}\",\"n\":{n}}}")
}

/// The label of call `n`.
pub(crate) fn label(n: usize) -> String {
    format!("call_{n:06}")
}

/// An answer of the stub model.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Calls `lookup` with this number.
    Call(usize),
    /// Ends with this answer.
    Final(usize),
}

/// Decides from the last message alone: a loop of `turns` model turns has `turns - 1` calls.
pub(crate) fn decide(last: &str, turns: usize) -> Reply {
    let number = |stem: &str| -> Option<usize> { last.strip_prefix(stem)?.get(..6)?.parse().ok() };
    match (number("result "), number("Request ")) {
        (Some(n), _) => after(n + 1, n + 1, turns),
        (None, request) => after(0, request.unwrap_or(0), turns),
    }
}

/// The reply to message `k` of a loop; `answer` is the number of its final answer.
pub(crate) fn after(k: usize, answer: usize, turns: usize) -> Reply {
    if k + 1 < turns {
        Reply::Call(k)
    } else {
        Reply::Final(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_of_three_turns_has_two_calls() {
        assert_eq!(decide(&user(7), 3), Reply::Call(0));
        assert_eq!(decide(&result(0), 3), Reply::Call(1));
        assert_eq!(decide(&result(1), 3), Reply::Final(2));
        assert_eq!(decide(&user(7), 1), Reply::Final(7));
    }

    #[test]
    fn texts_have_their_length() {
        let lengths = [system(), user(1), answer(1), result(1), user_of(1, 9_000)];
        let lengths = lengths.map(|text| text.len());
        assert_eq!(lengths, [400, 200, 200, 300, 9_000]);
    }
}
