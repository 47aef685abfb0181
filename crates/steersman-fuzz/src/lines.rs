//! Stored lines. For any bytes:
//!
//! * decoding ends without a panic, and accepts only bytes that the line encodes to again;
//! * with the right hash the line verifies, and after the erasure of each of its texts it still does, with nothing else changed;
//! * a kept outcome that can be read is written to a text that reads the same.

use crate::{Target, seeds};
use steersman_machine::snapshot::checkpoint;
use steersman_machine::stored::codec;
use steersman_machine::stored::commit::Text;

pub(crate) const TARGET: Target = Target {
    name: "lines",
    check,
    seeds: || {
        let lines = seeds::files("crates/steersman-machine/tests/compat", "hex");
        let mut all: Vec<Vec<u8>> = lines.iter().map(|digits| seeds::unhex(digits)).collect();
        let kept = seeds::files("crates/steersman-machine/tests/compat", "jsonl");
        let kept = kept
            .iter()
            .flat_map(|file| file.split(|byte| *byte == b'\n'));
        all.extend(kept.map(<[u8]>::to_vec));
        all
    },
    words: &["\u{0}", "\u{1}", "\u{7f}", "null", "\"version\":1,"],
    mutations: 60_000,
};

const PREV: codec::Hash = [9; 32];
const SALT: [u8; 16] = [3; 16];
/// Number of bytes of the hash at the end of a line.
const HASH: usize = 32;

fn check(data: &[u8]) {
    let _ = codec::peek(data);
    let _ = codec::verify(data, &PREV, &SALT);
    let _ = codec::erase(data, 0, &SALT);
    let _ = checkpoint::decode_snapshot(data, &SALT);
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(kept) = codec::kept_outcome(text)
    {
        let again = codec::kept_outcome(&codec::keep_outcome(&kept));
        assert_eq!(again, Ok(kept), "a kept outcome is read as it was written");
    }
    let Ok((line, stored)) = codec::decode(data) else {
        return;
    };
    assert_eq!(codec::stored_hash(data), Some(stored));
    assert_eq!(codec::peek(data), Ok((line.n, line.prev, line.branch)));
    let (bytes, hash) = codec::encode(&line, &PREV, &SALT);
    let len = data.len() - HASH;
    assert_eq!(bytes[..bytes.len() - HASH], data[..len], "{line:?}");
    let verified = codec::verify(&bytes, &PREV, &SALT);
    assert_eq!(verified, Ok((line.clone(), hash)), "the hash is right");
    for k in 0..line.bodies.len() {
        let erased = codec::erase(&bytes, k as u32, &SALT).expect("a text of the line is erased");
        let (left, same) = codec::verify(&erased, &PREV, &SALT).expect("it still verifies");
        assert_eq!(same, hash);
        assert_eq!((&left.commit, &left.ledger), (&line.commit, &line.ledger));
        for (at, (left, was)) in left.bodies.iter().zip(&line.bodies).enumerate() {
            let gone = matches!(left, Text::Erased { .. });
            assert!(
                if at == k { gone } else { left == was },
                "text {at} of {line:?}"
            );
        }
    }
}
