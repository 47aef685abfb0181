//! Stored values of the runtime that are not lines: inbox messages and binding values. Values of the first version stay
//! readable, and values of a newer program are told apart from damaged ones.

use crate::world::{World, answered};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use steersman_machine::network::manifest::{Listed, Listing, Manifest};
use steersman_machine::stored::by::By;
use steersman_machine::stored::codec;
use steersman_machine::stored::commit::{Binding, LedgerEntry, LogLine};
use steersman_machine::stored::ids::{Body, Digest, Id, Line, Time, hex, unhex};
use steersman_runtime::bind::{ManifestHash, Values};
use steersman_runtime::conformance::{SALT, story};
use steersman_runtime::inbox::{
    Begin, CancelWhat, DecodeError, File, Message, Occasion, RawOutcome, Redefinition, Resolution,
    Wanted,
};
use steersman_runtime::load::Load;
use steersman_runtime::model::BoundModel;
use steersman_runtime::pending::PendingId;
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::Fate;
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{
    Batch, InboxMessage, Needs, NewSession, Row, Scope, StoreError, Worker,
};
use steersman_runtime::store::{Inbox as _, Log as _};
use steersman_testkit::schema::describe;

/// One message of each kind, with every field set.
fn every() -> Vec<Message> {
    let of: PendingId = "7.3@9".parse().unwrap();
    let id = of.effect;
    let text = || Some("{}".to_owned());
    let all = [
        vec![Wanted::Start(Box::new(begin()))],
        vec![
            Wanted::Say {
                text: "Hello.".to_owned(),
                to: Some(id),
            },
            Wanted::Sent {
                text: "Hello.".to_owned(),
                to: id,
                from: Id::new(Line(2), 1),
            },
            Wanted::Interrupt("Stop.".to_owned()),
            Wanted::Event {
                event: "paid".into(),
                fields: "{}".to_owned(),
            },
            Wanted::Pause(true),
            Wanted::Current(Id::MAIN),
            Wanted::Edit(vec![("mood".into(), text()), ("plan".into(), None)]),
            Wanted::Hold {
                tool: Some("refund".into()),
                held: true,
            },
            Wanted::Retry(Some(id)),
            Wanted::Rebind(vec![("limit".into(), "3".to_owned())]),
            Wanted::Redefine(Box::new(Redefinition {
                binding: begin().binding,
                values: "{}".to_owned(),
            })),
        ],
        answers(of),
        branches(id),
        [
            CancelWhat::Effect(id),
            CancelWhat::Agent(id),
            CancelWhat::Branch,
            CancelWhat::Session,
        ]
        .map(Wanted::Cancel)
        .into(),
        [
            RawOutcome::Here("{}".to_owned()),
            RawOutcome::Blob {
                hash: [6; 32],
                len: 70_000,
            },
        ]
        .map(|raw| Wanted::Outcome {
            effect: id,
            attempt: 2,
            raw,
        })
        .into(),
        vec![Wanted::SayWith {
            text: "Hello.".to_owned(),
            state: vec![("mood".into(), text()), ("plan".into(), None)],
        }],
    ];
    let all = all.into_iter().flatten();
    all.map(|wanted| Message {
        by: Some(By::role("clerk").known_as("ann@example.org")),
        parent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        branch: Some(Id::new(Line(5), 0)),
        files: vec![File {
            name: "bill".into(),
            media: "text/plain".into(),
            hash: [5; 32],
            len: 9,
        }],
        wanted,
    })
    .collect()
}

/// The answers of people.
fn answers(of: PendingId) -> Vec<Wanted> {
    vec![
        Wanted::Answer {
            of,
            sealed: "1.0.0.0".to_owned(),
        },
        Wanted::Approve {
            of,
            args: Some("{}".to_owned()),
        },
        Wanted::Reject {
            of,
            reason: Some("No.".to_owned()),
        },
        Wanted::Resolve {
            of,
            how: Resolution::Done {
                result: "null".to_owned(),
            },
        },
        Wanted::Resolve {
            of,
            how: Resolution::NotPerformed,
        },
        Wanted::Resolve {
            of,
            how: Resolution::Fail,
        },
    ]
}

/// The requests about branches.
fn branches(branch: Id) -> Vec<Wanted> {
    let (label, say) = (Some("b1".into()), Some("Else?".to_owned()));
    vec![
        Wanted::Fork {
            at: Some(Line(4)),
            label: label.clone(),
            say: say.clone(),
            live: true,
        },
        Wanted::Rewind {
            at: Line(4),
            label,
            say: say.clone(),
        },
        Wanted::Join {
            branches: vec![branch],
            on: "done >= 2".to_owned(),
            then: Some("sum".into()),
            args: Some("{}".to_owned()),
        },
        Wanted::Adopt {
            branch,
            at: Some(Line(9)),
        },
        Wanted::Search {
            at: Some(Line(4)),
            say,
            plan: "{}".to_owned(),
        },
        Wanted::StopSearch(Some(branch)),
    ]
}

fn begin() -> Begin {
    Begin {
        binding: Binding {
            digest: Digest([3; 16]),
            source: [4; 32],
            network: "desk".into(),
            entry: "main".into(),
            values: Body::new(Line(1), 0),
            machine: 1,
        },
        values: "{}".to_owned(),
        agent: Some("main".into()),
        args: Some("{}".to_owned()),
        say: Some("Hello.".to_owned()),
        history: Some("[]".to_owned()),
        state: vec![("mood".into(), "1".to_owned())],
        scope: Scope {
            tenant: "acme".into(),
            subject: Some("ann".into()),
        },
        occasion: Some(Occasion {
            schedule: "nightly".into(),
            due: Time(7),
            missed: 2,
        }),
    }
}

fn values() -> Values {
    Values {
        config: [("limit".into(), json!(10_000))].into(),
        models: vec![BoundModel {
            name: "default".into(),
            provider: "openai".into(),
            model: Some("gpt".to_owned()),
            url: Some("http://127.0.0.1:1".to_owned()),
            key_env: Some("KEY".to_owned()),
            stateful: true,
            price: None,
        }],
        seed: 9_007_199_254_740_991,
        folder: Some("/srv/desk".to_owned()),
        file: None,
        manifest: None,
        nets: std::collections::BTreeMap::new(),
    }
}

fn encoded(message: &Message) -> InboxMessage {
    message.encode("m1".into(), Time(5))
}

/// Returns the text of a fixture. A fixture that is missing is written, but not in CI.
fn fixture(file: &str, now: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat/v1");
    let path = folder.join(file);
    if let Ok(text) = std::fs::read_to_string(&path) {
        return text;
    }
    assert!(std::env::var_os("CI").is_none(), "{file} is missing");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(&path, now).unwrap();
    now.to_owned()
}

/// Stored bytes are read as the messages that they were written from. A fixture is never changed.
#[test]
fn messages_of_the_first_version_are_read_for_ever() {
    let now: Vec<String> = every().iter().map(|m| hex(&encoded(m).bytes)).collect();
    let then = fixture("messages.hex", &now.join("\n"));
    let then = then.lines().map(|line| InboxMessage {
        id: "m1".into(),
        at: Time(5),
        bytes: unhex(line).unwrap().into(),
    });
    let read: Vec<Message> = then.map(|m| Message::decode(&m).unwrap()).collect();
    assert_eq!(read, every()[..read.len()]);
    assert_eq!(read.len(), every().len(), "every kind has bytes");
}

/// Ids of keys and digests never change: recorded calls are found by them.
#[test]
fn sealed_texts_of_the_first_version_are_opened_for_ever() {
    let sealer = Sealer::new(&[7; 32]);
    let plain = ["", "pin 4711", "pässword"];
    let now = plain.map(|text| sealer.seal_text(text));
    let then = fixture("sealed.txt", &now.join("\n"));
    let then: Vec<&str> = then.lines().collect();
    let opened = then.iter().map(|text| sealer.open_text(text).unwrap());
    let opened: Vec<String> = opened.map(|text| text.to_string()).collect();
    assert_eq!(opened, plain);
    let lasts = |text: &str| {
        let parts: Vec<&str> = text.split('.').collect();
        [0, 1, 3].map(|at| parts[at].to_owned())
    };
    for (then, now) in then.iter().zip(&now) {
        assert_eq!(lasts(then), lasts(now));
    }
}

#[test]
fn the_form_of_messages_only_grows_at_the_ends_of_enums() {
    let now = describe::<Message>();
    let then = fixture("messages.txt", &now);
    for line in then.lines() {
        assert!(now.lines().any(|l| l == line), "it was\n  {line}");
    }
}

#[test]
fn binding_values_of_the_first_version_are_read_for_ever() {
    let now = serde_json::to_string_pretty(&values()).unwrap();
    let then = fixture("values.json", &now);
    let read: Values = serde_json::from_str(&then).unwrap();
    assert_eq!(read, values());
    // A field of a newer program is an error: if it were ignored, it would be lost silently.
    let newer = then.replacen('{', "{ \"region\": \"eu\",", 1);
    assert!(serde_json::from_str::<Values>(&newer).is_err());
}

#[test]
fn values_that_name_a_manifest_and_manifests_are_read_for_ever() {
    let listed = Listed {
        name: "search".to_owned(),
        description: "Searches.".to_owned(),
        input: json!({ "type": "object", "properties": { "query": { "type": "string" } } }),
        output: Some(json!({ "type": "object" })),
        reads: true,
        idempotent: true,
    };
    let listing = Listing {
        about: "web 1".to_owned(),
        tools: vec![listed],
    };
    let manifest = Manifest {
        servers: [("web".into(), listing)].into(),
    };
    let then = fixture("manifest.json", &manifest.text());
    assert_eq!(Manifest::read(&then).unwrap(), manifest);
    // A session is bound to the hash of these bytes.
    assert_eq!(manifest.text(), then);
    let values = Values {
        manifest: Some(ManifestHash::of(&then)),
        ..values()
    };
    let now = serde_json::to_string_pretty(&values).unwrap();
    let then = fixture("values-with-manifest.json", &now);
    assert_eq!(serde_json::from_str::<Values>(&then).unwrap(), values);
    let damaged = then.replace("\"manifest\": \"", "\"manifest\": \"x");
    assert!(serde_json::from_str::<Values>(&damaged).is_err());
}

#[test]
fn values_that_name_a_file_are_read_for_ever() {
    let file = Some("desk.yaml".to_owned());
    let values = Values { file, ..values() };
    let now = serde_json::to_string_pretty(&values).unwrap();
    let then = fixture("values-with-file.json", &now);
    assert_eq!(serde_json::from_str::<Values>(&then).unwrap(), values);
}

#[test]
fn values_that_name_nets_are_read_for_ever() {
    let nets = [("checked".into(), "2".to_owned())].into();
    let values = Values { nets, ..values() };
    let now = serde_json::to_string_pretty(&values).unwrap();
    let then = fixture("values-with-nets.json", &now);
    assert_eq!(serde_json::from_str::<Values>(&then).unwrap(), values);
}

#[test]
fn what_a_newer_program_wrote_is_told_from_what_is_damaged() {
    for message in every() {
        let good = encoded(&message);
        assert_eq!(Message::decode(&good), Ok(message.clone()));
        for bit in 0..good.bytes.len() * 8 {
            let mut bytes = good.bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let damaged = InboxMessage {
                bytes: bytes.into(),
                ..good.clone()
            };
            let read = Message::decode(&damaged);
            assert_eq!(read, Err(DecodeError::Corrupt("m1".into())), "bit {bit}");
        }
        for len in 0..good.bytes.len() {
            let cut = InboxMessage {
                bytes: good.bytes[..len].into(),
                ..good.clone()
            };
            assert!(matches!(
                Message::decode(&cut),
                Err(DecodeError::Corrupt(_) | DecodeError::Newer(..))
            ));
        }
        let elsewhere = InboxMessage {
            id: "m2".into(),
            ..good
        };
        assert!(Message::decode(&elsewhere).is_err());
    }
    for bytes in newer("m1") {
        let message = InboxMessage {
            id: "m1".into(),
            at: Time(5),
            bytes: bytes.into(),
        };
        let read = Message::decode(&message);
        assert!(matches!(read, Err(DecodeError::Newer(..))), "{read:?}");
    }
}

/// Returns two valid lines of a newer program: one with a ledger entry of an unknown kind, and one of another version.
fn newer_lines(n: Line, prev: Line, before: &codec::Hash) -> [Vec<u8>; 2] {
    let line = LogLine {
        n,
        at: Time(0),
        prev,
        branch: Id::MAIN,
        commit: None,
        ledger: vec![LedgerEntry::Current(Id::MAIN)],
        bodies: Vec::new(),
    };
    let (bytes, _) = codec::encode(&line, before, &SALT);
    // A line ends with the kind of the entry, its branch, the number of texts (none), and the hash.
    let kind = bytes.len() - 32 - 3;
    [(kind, 99), (0, 2)].map(|(at, is)| {
        let mut bytes = bytes.clone();
        bytes[at] = is;
        let end = bytes.len() - 32;
        let mut key = [0; 32];
        key[..16].copy_from_slice(&SALT);
        key[16..24].copy_from_slice(&n.0.to_le_bytes());
        key[24..].copy_from_slice(&u64::MAX.to_le_bytes());
        let over = [before, &bytes[..end]].concat();
        let hash = blake3::keyed_hash(&key, &over);
        bytes[end..].copy_from_slice(hash.as_bytes());
        bytes
    })
}

/// Returns a store with a session `a` of these rows, and a reader of it.
async fn kept(rows: impl Iterator<Item = (Line, Vec<u8>)>) -> (MemoryStore, Load) {
    let store = MemoryStore::new();
    let new = NewSession {
        id: "a".into(),
        network: "desk".into(),
        scope: Scope::default(),
        key: None,
        salt: SALT,
        created: Time(1),
        first: None,
        said: None,
        needs: Needs::default(),
    };
    store.create(new).await.unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    let rows = rows.map(|(n, bytes)| Row {
        n,
        bytes: bytes.into(),
    });
    let batch = Batch {
        rows: rows.collect(),
        ..Batch::default()
    };
    store.append(&claim, batch).await.unwrap();
    let load = Load::new(Arc::new(store.clone()), "a".into(), SALT);
    (store, load)
}

/// Each line verifies, but the last one passes over the line before it, as that of an owner does who does not know of another one.
#[tokio::test]
async fn a_line_that_passes_over_another_is_damage() {
    let told = story(5, None);
    let on_main: Vec<_> = told
        .iter()
        .filter(|(line, _)| line.branch == Id::MAIN)
        .collect();
    let [.., (known, bytes), (passed, _)] = on_main[..] else {
        panic!("main has two lines");
    };
    let (n, before) = (Line(100), codec::stored_hash(bytes).unwrap());
    let line = LogLine {
        n,
        at: Time(9),
        prev: known.n,
        branch: Id::MAIN,
        commit: None,
        ledger: vec![LedgerEntry::Claimed {
            epoch: 2,
            mark: 1,
            owner: "another".into(),
            build: "0".into(),
            revision: codec::REVISION,
        }],
        bodies: Vec::new(),
    };
    let (stray, _) = codec::encode(&line, &before, &SALT);
    let rows = told.iter().map(|(line, bytes)| (line.n, bytes.clone()));
    let report = kept(rows.clone()).await.1.inspect().await.unwrap();
    assert!(report.damaged.is_empty(), "{report:?}");
    let rows = rows.chain([(n, stray)]);
    let report = kept(rows).await.1.inspect().await.unwrap();
    let [damage] = &report.damaged[..] else {
        panic!("{report:?}");
    };
    assert_eq!(damage.line, n);
    let names = [known.n, passed.n].map(|n| format!("line {n}"));
    assert!(
        names.iter().all(|name| damage.what.contains(name)),
        "{}",
        damage.what
    );
    assert_eq!(report.affected, [(Id::MAIN, n)]);
}

/// A line of a newer program is not reported as damage: people who read of damage restore a backup, and lose that line.
#[tokio::test]
async fn a_line_of_a_newer_program_is_no_damage() {
    for kind in 0..2 {
        let told = story(5, None);
        let (last, bytes) = told.last().unwrap();
        let before = codec::stored_hash(bytes).unwrap();
        let n = last.n.next();
        let newer = newer_lines(n, last.n, &before);
        let rows = told.iter().map(|(line, bytes)| (line.n, bytes.clone()));
        let (store, load) = kept(rows.chain([(n, newer[kind].clone())])).await;
        for refused in [
            load.snapshot(n).await.map(drop).unwrap_err(),
            load.ledger(n).await.map(drop).unwrap_err(),
        ] {
            let newer =
                matches!(&refused, StoreError::Newer { place, .. } if place.contains("line 6"));
            assert!(newer, "{kind}: {refused}");
        }
        let report = load.inspect().await.unwrap();
        assert_eq!((report.newer, report.damaged), (vec![n], vec![]), "{kind}");
        assert_eq!(report.affected, [(Id::MAIN, n)]);
        // A flipped bit in it is damage.
        for byte in [0, 3, newer[kind].len() - 34, newer[kind].len() - 1] {
            assert!(store.damage("a", n, byte));
            let report = load.inspect().await.unwrap();
            let damaged = report.damaged.iter().map(|d| d.line).collect::<Vec<_>>();
            let told = (damaged, report.newer);
            // A line of another version cannot be checked.
            let wanted = match kind {
                0 => (vec![n], vec![]),
                _ => (vec![], vec![n]),
            };
            assert_eq!(told, wanted, "{kind}, byte {byte}");
            assert!(store.damage("a", n, byte));
        }
    }
}

/// A message that cannot be read stays in the inbox and is reported. Nothing waits for it.
#[tokio::test]
async fn a_message_that_cannot_be_read_keeps_nothing_up() {
    let world = World::new(json!({ "main": ["One.", "Two."] }));
    let session = world
        .start("agents: { main: { system: You talk. } }", "Go.")
        .await;
    session.settled().await.unwrap();
    drop(session);
    let world = world.killed().await;
    let [unknown, _] = newer("n1");
    for id in ["n1", "n2"] {
        let message = InboxMessage {
            id: id.into(),
            at: Time(5),
            bytes: unknown.as_slice().into(),
        };
        assert!(world.store.deliver("session", message).await.unwrap());
    }
    let session = world.open().await;
    session.say("On.").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Two.");
    let seen = world.engine.inspect("session").await.unwrap();
    let ids: Vec<&str> = seen.inbox.iter().map(|m| &*m.id).collect();
    assert_eq!(ids, ["n1", "n2"]);
    // The second has the checksum for the id of the first, so it is damaged.
    assert!(matches!(&seen.unread[0], DecodeError::Newer(id, _) if **id == *"n1"));
    assert_eq!(seen.unread[1], DecodeError::Corrupt("n2".into()));
    // The next owner skips them as well.
    drop(session);
    let world = world.killed().await;
    let session = world.open().await;
    session.settled().await.unwrap();
    assert_eq!(
        world.engine.inspect("session").await.unwrap().unread.len(),
        2
    );
    // A sender that waits for such a message reads that it waits in the inbox.
    drop(session);
    let world = world.killed().await;
    let (session, fate) = world
        .engine
        .open_for("session", &"n1".into())
        .await
        .unwrap();
    assert!(
        matches!(&fate, Fate::Waits(why) if why.contains("newer")),
        "{fate:?}"
    );
    assert_eq!(session.fate_of(&"n1".into()).await, fate);
}

/// Two messages of a newer program: one of an unknown kind, and one of another version.
pub(crate) fn newer(id: &str) -> [Vec<u8>; 2] {
    let with_sum = |mut bytes: Vec<u8>| {
        let mut over = (id.len() as u64).to_le_bytes().to_vec();
        over.extend_from_slice(id.as_bytes());
        over.extend_from_slice(&bytes);
        bytes.extend_from_slice(&blake3::hash(&over).as_bytes()[..8]);
        bytes
    };
    [with_sum(vec![1, 99, 1, 2]), with_sum(vec![2, 0, 0])]
}
