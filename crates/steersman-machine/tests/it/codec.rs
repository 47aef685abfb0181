//! Lines as bytes: stored lines stay readable, damaged bytes are refused, and lines are small.

mod facts;
mod lines;
mod parts;
mod rest;

use lines::{SALT, every, tool_loop};
use serde_json::json;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use steersman_machine::snapshot::{Snapshot, checkpoint};
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::codec::{self, CodecError, Hash};
use steersman_machine::stored::commit::{
    About, AgentFact, CallFact, Change, Commit, Fired, Hold, LedgerEntry, LogLine, Probing,
    Reaching, Recorded, Release, Text, Turned, Why,
};
use steersman_machine::stored::ids::{Body, Digest, Id, Line, Name, Time};
use steersman_machine::stored::interaction::{
    Artifact, Class, Doubtful, How, Reduce, Write as StateWrite,
};
use steersman_machine::stored::outcome::{Mapped, NewArtifact, NewWrite};
use steersman_machine::stored::parts::NewPart;
use steersman_machine::view::artifact::came_with;
use steersman_testkit::schema::{Written, describe};

const PREV: Hash = [9; 32];

fn encoded(line: &LogLine) -> Vec<u8> {
    codec::encode(line, &PREV, &SALT).0
}

/// Returns a line of these texts, without a commit and ledger entries.
fn line_of(bodies: Vec<Text>) -> LogLine {
    LogLine {
        n: Line(3),
        at: Time(0),
        prev: Line(2),
        branch: Id::MAIN,
        commit: None,
        ledger: Vec::new(),
        bodies,
    }
}

#[test]
fn every_line_comes_back() {
    for (name, line) in every() {
        let (bytes, hash) = codec::encode(&line, &PREV, &SALT);
        assert_eq!(codec::decode(&bytes), Ok((line.clone(), hash)), "{name}");
        assert_eq!(
            codec::verify(&bytes, &PREV, &SALT),
            Ok((line.clone(), hash)),
            "{name}"
        );
        assert_eq!(codec::stored_hash(&bytes), Some(hash), "{name}");
        let place = (line.n, line.prev, line.branch);
        assert_eq!(codec::peek(&bytes), Ok(place), "{name}");
    }
}

/// Everything except texts, names and hashes takes at most 120 bytes, and everything except texts at most 260.
#[test]
fn lines_of_a_tool_loop_are_small() {
    for at in [100, 10_000, 100_000_000] {
        for (name, line, fixed) in tool_loop(at) {
            let texts: usize = line
                .bodies
                .iter()
                .map(|t| match t {
                    Text::Here(t) => t.len(),
                    Text::Blob { .. } | Text::Erased { .. } | Text::Parts(_) => 0,
                })
                .sum();
            let beside = encoded(&line).len() - texts;
            assert!(
                beside <= fixed + 120,
                "{name} at {at}: {} bytes",
                beside - fixed
            );
            assert!(beside <= 260, "{name} at {at}: {beside} bytes");
        }
    }
}

#[test]
fn a_line_verifies_in_its_own_place_only() {
    for (name, line) in every() {
        let bytes = encoded(&line);
        let refused = Err(CodecError::Hash(line.n));
        assert_eq!(
            codec::verify(&bytes, &[8; 32], &SALT),
            refused,
            "{name}: other line before"
        );
        assert_eq!(
            codec::verify(&bytes, &PREV, &[8; 16]),
            refused,
            "{name}: other session"
        );
    }
}

#[test]
fn what_is_cut_or_longer_is_refused() {
    for (name, line) in every() {
        let mut bytes = encoded(&line);
        for len in 0..bytes.len() {
            assert!(codec::decode(&bytes[..len]).is_err(), "{name} cut at {len}");
            let _ = codec::peek(&bytes[..len]);
        }
        bytes.push(0);
        assert_eq!(
            codec::decode(&bytes),
            Err(CodecError::Trailing(1)),
            "{name}"
        );
        bytes.pop();
        bytes[0] = 2;
        assert_eq!(codec::decode(&bytes), Err(CodecError::Version(2)), "{name}");
    }
}

#[test]
fn every_flipped_bit_is_found() {
    for (name, line) in every() {
        let good = encoded(&line);
        // In long lines only one bit of each byte is flipped.
        let step = if good.len() < 200 { 1 } else { 9 };
        for bit in (0..good.len() * 8).step_by(step) {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(
                codec::verify(&bytes, &PREV, &SALT).is_err(),
                "{name}, bit {bit}"
            );
            let _ = codec::decode(&bytes);
            let _ = codec::peek(&bytes);
        }
    }
}

/// Ids and line numbers are read back, however far they are from the number of the line, also if they are larger.
#[test]
fn ids_come_back_from_any_distance() {
    arbtest::arbtest(|u| {
        let mut line = |low| u.int_in_range(low..=Line::MAX.0).map(Line);
        let (n, prev, at) = (line(1)?, line(0)?, line(0)?);
        let (far, near) = (line(1)?, Line(n.0.saturating_sub(3).max(1)));
        let k = u.int_in_range(0..=(1 << 20) - 1)?;
        let line = LogLine {
            n,
            at: Time(0),
            prev,
            branch: Id::new(far, k),
            commit: None,
            ledger: vec![
                LedgerEntry::Opened {
                    branch: Id::new(near, k % 9),
                    from: Id::MAIN,
                    at,
                },
                LedgerEntry::Current(Id::MAIN),
            ],
            bodies: Vec::new(),
        };
        assert_eq!(
            codec::decode(&encoded(&line)).map(|(line, _)| line),
            Ok(line)
        );
        Ok(())
    });
}

#[test]
fn an_erased_text_leaves_a_tombstone_that_verifies() {
    for (name, line) in every() {
        let (bytes, hash) = codec::encode(&line, &PREV, &SALT);
        let mut all = bytes.clone();
        for k in 0..line.bodies.len() as u32 {
            let one = codec::erase(&bytes, k, &SALT).unwrap();
            all = codec::erase(&all, k, &SALT).unwrap();
            for erased in [&one, &all] {
                let (left, same) = codec::verify(erased, &PREV, &SALT).expect(name);
                assert_eq!(same, hash, "{name}");
                assert!(
                    matches!(left.bodies[k as usize], Text::Erased { .. }),
                    "{name}"
                );
                assert_eq!(
                    (&left.commit, &left.ledger),
                    (&line.commit, &line.ledger),
                    "{name}"
                );
                let twice = codec::erase(erased, k, &SALT).unwrap();
                assert_eq!(twice, **erased, "{name}: a second erasure changes nothing");
            }
            if let Text::Here(text) = &line.bodies[k as usize]
                && text.len() > 8
            {
                let hay = String::from_utf8_lossy(&one).into_owned();
                assert!(!hay.contains(&**text), "{name}: the text is gone");
            }
        }
        let none = line.bodies.len() as u32;
        assert_eq!(
            codec::erase(&bytes, none, &SALT),
            Err(CodecError::NoText(none))
        );
    }
}

/// Equal texts leave unequal tombstones, so a tombstone does not show which texts were equal.
#[test]
fn tombstones_tell_nothing_of_each_other() {
    let text = |t: &str| Text::Here(t.into());
    let line = line_of(vec![text("the same"), text("the same")]);
    let bytes = encoded(&line);
    let erased = codec::erase(&codec::erase(&bytes, 0, &SALT).unwrap(), 1, &SALT).unwrap();
    let (left, _) = codec::decode(&erased).unwrap();
    assert_ne!(left.bodies[0], left.bodies[1]);
}

#[test]
fn long_texts_spill_and_values_stay() {
    let long = |len: usize| Text::Here("x".repeat(len).into());
    let value = StateWrite {
        scope: Id::new(Line(1), 0),
        name: "plan".into(),
        value: Some(Body::new(Line(5), 1)),
        reduce: Reduce::Last,
        expires: None,
    };
    let mut line = LogLine {
        n: Line(5),
        at: Time(0),
        prev: Line(4),
        branch: Id::MAIN,
        commit: Some(Commit {
            edits: vec![value],
            ..Commit::default()
        }),
        ledger: Vec::new(),
        bodies: vec![long(16 * 1024), long(40_000), long(16 * 1024 + 1)],
    };
    let blobs = codec::spill(&mut line);
    assert_eq!(blobs.len(), 1);
    let (hash, text) = &blobs[0];
    assert_eq!(*hash, *blake3::hash(text.as_bytes()).as_bytes());
    assert_eq!(
        line.bodies[2],
        Text::Blob {
            hash: *hash,
            len: 16 * 1024 + 1
        }
    );
    assert!(matches!(&line.bodies[..2], [Text::Here(_), Text::Here(_)]));
    // The line has the same hash, wherever its texts are.
    let whole = LogLine {
        bodies: vec![long(16 * 1024), long(40_000), long(16 * 1024 + 1)],
        ..line.clone()
    };
    let hash_of = |line: &LogLine| codec::encode(line, &PREV, &SALT).1;
    assert_eq!(hash_of(&whole), hash_of(&line));
    // Many short texts that do not fit together.
    let mut line = LogLine {
        commit: None,
        bodies: (0..40).map(|_| long(15_000)).collect(),
        ..line
    };
    let blobs = codec::spill(&mut line);
    assert!(!blobs.is_empty() && blobs.len() < 40);
    assert!(encoded(&line).len() <= steersman_machine::stored::bounds::MAX_LINE);
}

#[test]
fn a_snapshot_comes_back_or_is_discarded() {
    let snapshot = every()
        .into_iter()
        .filter(|(name, _)| name.starts_with("loop"))
        .fold(Snapshot::empty(), |s, (_, line)| {
            steersman_machine::snapshot::fold::fold(s, &line)
        });
    assert!(!snapshot.agents.is_empty());
    let bytes = checkpoint::encode_snapshot(&snapshot, snapshot.line, &PREV, &SALT);
    let read = checkpoint::decode_snapshot(&bytes, &SALT);
    assert_eq!(read, Some((snapshot.clone(), snapshot.line, PREV)));
    assert_eq!(checkpoint::decode_snapshot(&bytes, &[0; 16]), None);
    for at in 0..bytes.len() {
        assert_eq!(checkpoint::decode_snapshot(&bytes[..at], &SALT), None);
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        assert_eq!(checkpoint::decode_snapshot(&flipped, &SALT), None);
    }
}

fn compat(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/compat/v1")
        .join(file)
}

/// The content of a fixture. A missing fixture is written from `now`, except in CI.
#[expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test reads and writes its fixtures"
)]
fn fixture(file: &str, now: &str) -> String {
    let path = compat(file);
    if let Ok(text) = std::fs::read_to_string(&path) {
        return text;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "{} is missing",
        path.display()
    );
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, now).unwrap();
    now.to_owned()
}

/// Stored lines of the first version are read as the lines that were written. The fixtures never change.
#[test]
fn lines_of_the_first_version_are_read_for_ever() {
    for (name, line) in every() {
        let mut now = String::new();
        for row in encoded(&line).chunks(32) {
            for b in row {
                write!(now, "{b:02x}").unwrap();
            }
            now.push('\n');
        }
        let digits = fixture(&format!("{name}.hex"), &now).replace('\n', "");
        let bytes: Vec<u8> = (0..digits.len() / 2)
            .map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap())
            .collect();
        let (then, _) = codec::verify(&bytes, &PREV, &SALT)
            .unwrap_or_else(|e| panic!("{name} of the first version: {e}"));
        assert_eq!(then, line, "{name}");
    }
}

/// An owner with a higher revision makes its line, and so all lines after it, too new: no later line is read without
/// it.
#[test]
fn the_line_of_a_newer_owner_is_newer() {
    let claims = |revision| {
        let (_, mut line) = every().remove(0);
        let claimed = line.ledger.iter_mut().find_map(|entry| match entry {
            LedgerEntry::Claimed { revision, .. } => Some(revision),
            _ => None,
        });
        *claimed.expect("the first line claims") = revision;
        (line.n, encoded(&line))
    };
    let (_, ours) = claims(codec::REVISION);
    assert!(codec::verify(&ours, &PREV, &SALT).is_ok());
    let (n, newer) = claims(codec::REVISION + 1);
    let why = codec::verify(&newer, &PREV, &SALT).unwrap_err();
    assert!(why.is_newer(), "{why}");
    let told = format!("revision {} of build 0.1.0", codec::REVISION + 1);
    assert!(why.to_string().contains(&told), "{why}");
    // At another place in the chain it is damage: a line that does not verify has no revision that can be trusted.
    assert_eq!(
        codec::verify(&newer, &[8; 32], &SALT),
        Err(CodecError::Hash(n))
    );
}

/// The form of lines is positional: only new variants at the end of an enum are allowed, and they need a new revision.
#[test]
fn the_form_of_lines_only_grows_at_the_ends_of_enums() {
    let now = describe::<(Line, Id, Option<Commit>, Vec<LedgerEntry>, Vec<Text>)>();
    let of_now: std::collections::BTreeSet<&str> = now.lines().collect();
    for revision in 1..=codec::REVISION {
        let then = fixture(&format!("lines.{revision}.txt"), &now);
        for line in then.lines() {
            assert!(
                of_now.contains(line),
                "revision {revision} of lines had\n  {line}\nwhich is gone, so stored lines could not be read. New \
                 variants go at the end; any other change needs a new version next to the old one"
            );
        }
        if revision == codec::REVISION {
            assert_eq!(then, now, "an enum grew: raise `codec::REVISION`");
        }
    }
}

/// Each variant of each enum in a line, and each optional field both set and unset, is in a line with a fixture. A
/// variant that is added without such a line fails here.
#[test]
fn every_variant_and_option_has_kept_bytes() {
    let mut written = Written::default();
    for (_, line) in every() {
        written.add(&(line.prev, line.branch, &line.commit, &line.ledger));
        written.add(&line.bodies);
    }
    let all = describe::<(Line, Id, Option<Commit>, Vec<LedgerEntry>, Vec<Text>)>();
    let none = Written::default().lacks(&all);
    assert!(none.contains(&"enum Stepped 1 Done".to_owned()), "{none:?}");
    let lacks = written.lacks(&all);
    assert!(
        lacks.is_empty(),
        "no line of `every` has\n  {}",
        lacks.join("\n  ")
    );
}

/// A checkpoint is a cache, so its form may change. A new form needs a new version, so that old checkpoints are
/// discarded.
#[test]
fn the_form_of_checkpoints_has_its_version() {
    let now = format!(
        "version {}\n{}",
        checkpoint::SNAPSHOT_VERSION,
        describe::<Snapshot>()
    );
    insta::assert_snapshot!("checkpoint", now);
}

/// Stored outcomes of effects that no branch took: with all fields set, with all unset, and with each way to end.
#[test]
fn kept_outcomes_of_the_first_version_are_read_for_ever() {
    let full = Mapped {
        how: How::Done,
        code: Some("http_409".to_owned()),
        shown: Some("Paid.".to_owned()),
        more: vec![
            NewPart::Artifact(NewArtifact {
                content: None,
                name: "receipt.png".into(),
                media: "image/png".into(),
                hash: [6; 32],
                len: 48_213,
            }),
            NewPart::Text("Keep it.".to_owned()),
        ],
        writes: vec![
            NewWrite {
                name: "balance".to_owned(),
                value: Some(json!({ "$sealed": "1.0.0.0" })),
                seal: false,
            },
            NewWrite {
                name: "plan".to_owned(),
                value: None,
                seal: false,
            },
        ],
        artifacts: vec![NewArtifact {
            content: None,
            name: "report".into(),
            media: "text/plain".into(),
            hash: [7; 32],
            len: 3,
        }],
        then: Some(("look".to_owned(), json!({ "at": 95 }))),
        by: Some(lines::ann().into()),
        mode: None,
    };
    // `mode` is written only if it is set.
    let says = Mapped {
        mode: Some("plan".to_owned()),
        ..full.clone()
    };
    assert_eq!(codec::kept_outcome(&codec::keep_outcome(&says)), Ok(says));
    let ends = [
        How::Done,
        How::Simulated,
        How::Failed,
        How::Refused,
        How::Cancelled,
        How::Unknown,
        How::NotInThisBranch,
        How::Finished,
        How::Released,
        How::Limit,
        How::Expired,
        How::DoneBefore,
    ];
    let bare = |how| Mapped {
        shown: None,
        ..Mapped::plain(how, None, "")
    };
    let every: Vec<Mapped> = std::iter::once(full).chain(ends.map(bare)).collect();
    let now: Vec<String> = every.iter().map(codec::keep_outcome).collect();
    let then = fixture("kept.jsonl", &now.join("\n"));
    let read: Vec<Mapped> = then
        .lines()
        .map(|line| codec::kept_outcome(line).unwrap())
        .collect();
    assert_eq!(read, every[..read.len()]);
    // An outcome of a newer program is refused; its unknown parts are never ignored.
    let first = then.lines().next().unwrap();
    for newer in [
        first.replacen("\"version\":1", "\"version\":2", 1),
        first.replacen('{', "{\"region\":\"eu\",", 1),
        first.replace("\"Done\"", "\"Undone\""),
    ] {
        assert!(codec::kept_outcome(&newer).is_err(), "{newer}");
    }
}

/// Orders of persons, and a refused message.
fn orders() -> LogLine {
    let barred = |tool: Option<&str>, barred| LedgerEntry::Barred {
        tool: tool.map(Into::into),
        barred,
        by: lines::ann(),
    };
    let refused = LedgerEntry::Refused {
        message: "m9".into(),
        why: Body::new(Line(102), 0),
    };
    LogLine {
        n: Line(102),
        at: Time(0),
        prev: Line(101),
        branch: Id::MAIN,
        commit: None,
        ledger: vec![barred(Some("refund"), true), barred(None, false), refused],
        bodies: vec![Text::Here("there is no branch 7.3".into())],
    }
}

/// The first line of an owner after a person accepted the store.
fn accepted() -> LogLine {
    let accepted = |was| LedgerEntry::StoreAccepted { at: Time(7), was };
    LogLine {
        n: Line(200),
        at: Time(0),
        prev: Line(102),
        branch: Id::MAIN,
        commit: None,
        ledger: vec![accepted(Doubtful::Copied), accepted(Doubtful::Lost)],
        bodies: Vec::new(),
    }
}

/// Lines with forms that were added later.
fn later() -> [(&'static str, LogLine); 7] {
    [
        ("states", states()),
        ("work", work()),
        ("modes", modes()),
        ("accepted", accepted()),
        ("recorded", recorded()),
        ("outage", outage()),
        ("limits", limits()),
    ]
}

/// A model did not answer, and then answered again.
fn outage() -> LogLine {
    let effect = Id::new(Line(20), 1);
    let place = Some(About::Place(
        "openai/gpt-5-mini at https://api.openai.com/v1".into(),
    ));
    let hold = Hold {
        effect,
        why: Why::Outage,
        digest: Digest([7; 16]),
        by: vec![Name::from("any")],
        ask: Some(Body::new(Line(105), 0)),
        due: Some(Time(1_790_000_000_000)),
        about: place.clone(),
    };
    let released = LedgerEntry::Released {
        effect,
        why: Why::Outage,
        how: Release::Go,
        about: place,
        by: Decider::Place,
        body: None,
    };
    LogLine {
        n: Line(105),
        at: Time(0),
        prev: Line(104),
        branch: Id::MAIN,
        commit: None,
        ledger: vec![
            LedgerEntry::Outage {
                effect,
                since: Time(1_789_000_000_000),
            },
            LedgerEntry::Hold(hold),
            released,
        ],
        bodies: vec![Text::Here("connection refused".into())],
    }
}

/// More budget was asked for and granted, and a provider reported an impossible usage.
fn limits() -> LogLine {
    let effect = Id::new(Line(20), 1);
    let more = |granted| LedgerEntry::More {
        effect,
        tokens: 8_235,
        micros: 0,
        granted,
    };
    let unbelievable = |micros| LedgerEntry::Unbelievable {
        effect,
        input: u64::MAX,
        output: 7,
        micros,
    };
    LogLine {
        n: Line(105),
        at: Time(0),
        prev: Line(104),
        branch: Id::MAIN,
        commit: None,
        ledger: vec![
            more(false),
            more(true),
            unbelievable(None),
            unbelievable(Some(u64::MAX)),
        ],
        bodies: Vec::new(),
    }
}

/// Effects of the session that this session reruns.
fn recorded() -> LogLine {
    let hows = [Recorded::Done, Recorded::InDoubt, Recorded::GivenUp];
    let known = hows.map(|how| LedgerEntry::Recorded {
        effect: Id::new(Line(20), 1),
        at: Line(22),
        digest: Digest([7; 16]),
        class: Class::Unsafe,
        how,
    });
    LogLine {
        n: Line(104),
        at: Time(0),
        prev: Line(103),
        branch: Id::MAIN,
        commit: None,
        ledger: known.into(),
        bodies: Vec::new(),
    }
}

/// Every reason for a change of mode, and a mode that a call asks for.
fn modes() -> LogLine {
    let mut line = lines::branches();
    let commit = line.commit.as_mut().expect("it has one");
    let agent = Id::new(Line(4), 0);
    commit.changes = vec![
        Change::Mode(
            agent,
            Name::from("plan"),
            Turned::Everywhere(2, Fired::Call(agent)),
        ),
        Change::Mode(
            agent,
            Name::from("plan"),
            Turned::Exit(1, Fired::Calls(300)),
        ),
        Change::Mode(agent, Name::from("plan"), Turned::Exit(3, Fired::Held)),
        Change::Mode(agent, Name::from("plan"), Turned::Said(agent)),
        Change::Mode(agent, Name::from("plan"), Turned::Anew),
        Change::Asked(agent, agent, Name::from("plan")),
    ];
    let adoption = commit.adoption.as_mut().expect("it adopts");
    adoption.calls[0].facts = vec![CallFact::Mode(Name::from("plan"))];
    line
}

/// States of nets.
fn states() -> LogLine {
    let mut line = lines::branches();
    let commit = line.commit.as_mut().expect("it has one");
    commit.changes = vec![Change::State(Id::new(Line(4), 0), Name::from("action"))];
    let facts = &mut commit.adoption.as_mut().expect("it adopts").agents[0].facts;
    *facts = vec![
        AgentFact::State(Name::from("reflection")),
        AgentFact::Missed(Name::from("look"), Some(Body::new(Line(43), 0))),
        AgentFact::Missed(Name::from("look"), None),
        AgentFact::Turn(Line(43)),
    ];
    line
}

/// Work of states.
fn work() -> LogLine {
    let mut line = lines::branches();
    let commit = line.commit.as_mut().expect("it has one");
    let facts = &mut commit.adoption.as_mut().expect("it adopts").agents[0].facts;
    *facts = vec![
        AgentFact::Steps(Name::from("collect"), 2),
        AgentFact::Gave(true, None, Some(Body::new(Line(43), 0))),
        AgentFact::Gave(false, Some(Name::from("failed")), None),
    ];
    line
}

/// Artifacts that came with a message, people who are notified, and probes.
fn outside() -> LogLine {
    let with = Body::new(Line(103), 0);
    let artifact = Artifact {
        scope: Id::new(Line(1), 0),
        call: came_with(with),
        name: "invoice.pdf".into(),
        media: "application/pdf".into(),
        hash: [7; 32],
        len: 1_200,
    };
    let reach = |what| LedgerEntry::Reach {
        effect: Id::new(Line(103), 0),
        of: Id::new(Line(20), 1),
        role: "approver".into(),
        what,
    };
    let probe = |what| LedgerEntry::Probe {
        effect: Id::new(Line(103), 1),
        of: Id::new(Line(20), 2),
        what,
    };
    let started = Reaching::Started {
        tool: "page".into(),
        attempt: 2,
    };
    LogLine {
        n: Line(103),
        at: Time(0),
        prev: Line(102),
        branch: Id::MAIN,
        commit: Some(Commit {
            changes: vec![Change::Artifact(artifact)],
            ..Commit::default()
        }),
        ledger: vec![
            reach(started),
            reach(Reaching::Done),
            probe(Probing::Started {
                tool: "payments".into(),
                attempt: 1,
            }),
            probe(Probing::Failed {
                attempt: 1,
                why: Body::new(Line(103), 0),
                again: Some(Time(1_790_000_000_000)),
            }),
            probe(Probing::Said {
                attempt: 2,
                happened: Some(false),
                said: Body::new(Line(103), 0),
            }),
            reach(Reaching::Failed(Body::new(Line(103), 1))),
        ],
        bodies: vec![
            Text::Here("Here it is.".into()),
            Text::Here("no line".into()),
        ],
    }
}
