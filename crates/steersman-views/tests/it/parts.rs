//! Messages and results of several parts, in a log that another program wrote: they are told, masked and erased.

use crate::world::{SECRET, engine, last, paid};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_machine::stored::codec;
use steersman_machine::stored::commit::{Commit, LogLine, Push, Text};
use steersman_machine::stored::engine::Caller;
use steersman_machine::stored::ids::{Bodies as _, Body, Id, Line, Time};
use steersman_machine::stored::interaction::{
    Call, CallResult, Class, How, Interaction, Number, Origin, Target,
};
use steersman_machine::stored::parts::{Part, Reference};
use steersman_runtime::engine::Engine;
use steersman_runtime::erase::What;
use steersman_runtime::store::{Batch, Row, Worker};
use steersman_views::event::{Cursor, Event, Teller};
use steersman_views::reader::{Reader as _, Stored};

fn photo() -> Reference {
    Reference {
        name: format!("{SECRET}.png").into(),
        media: "image/png".into(),
        hash: [7; 32],
        len: 1_200,
    }
}

/// Appends a line with a message of three parts, and with a call whose result has two. Returns its number.
async fn with_parts(engine: &Engine, id: &str) -> Line {
    let store = engine.store();
    let claim = store.claim(id, &Worker::nameless()).await.unwrap();
    let seen = engine.inspect(id).await.unwrap();
    let snapshot = &seen.current_branch().unwrap().snapshot;
    let root = snapshot.root_agent().unwrap();
    let n = last(engine, id).await.next();
    let prev = snapshot.line;
    let row = store.rows(id, prev, prev, 1).await.unwrap().remove(0);
    let hash = codec::stored_hash(&row.bytes).unwrap();
    let call = Id::new(n, 0);
    let body = |k| Body::new(n, k);
    let push = |prev, what| Push {
        agent: root.id,
        prev,
        what,
    };
    let said = Interaction::UserMessage {
        from: Origin::Outside("user".into()),
        body: body(2),
    };
    let called = Interaction::Call(Call {
        id: call,
        name: "note".into(),
        by: Caller::Router,
        seen: None,
        target: Target::Tool(Class::Read),
        label: None,
        args: body(3),
        number: Number { call: 90, step: 0 },
    });
    let result = Interaction::Result(CallResult {
        call,
        how: How::Done,
        body: Some(body(5)),
        code: None,
        writes: Vec::new(),
        artifacts: Vec::new(),
        by: None,
    });
    let line = LogLine {
        n,
        at: Time(1),
        prev,
        branch: seen.current,
        commit: Some(Commit {
            parent: prev,
            pushes: vec![
                push(root.stack.last, said),
                push(n, called),
                push(n, result),
            ],
            ..Commit::default()
        }),
        ledger: Vec::new(),
        bodies: vec![
            Text::Here(format!("The pin is {SECRET}.").into()),
            Text::Here("Keep it.".into()),
            Text::Parts([Part::Text(0), Part::Artifact(photo()), Part::Text(1)].into()),
            Text::Here("{}".into()),
            Text::Here("Noted as a picture.".into()),
            Text::Parts([Part::Text(4), Part::Artifact(photo())].into()),
        ],
    };
    let (bytes, _) = codec::encode(&line, &hash, &claim.salt);
    let row = Row {
        n,
        bytes: bytes.into(),
    };
    let batch = Batch {
        rows: vec![row],
        urgent: true,
        ..Batch::default()
    };
    store.append(&claim, batch).await.unwrap();
    let before = claim.before.clone();
    store.release(claim, before).await.unwrap();
    n
}

async fn told(reader: Stored, n: Line) -> Vec<Json> {
    let mut teller = Teller::new(Arc::new(reader));
    let all = teller.after(Cursor::START, usize::MAX).await.unwrap();
    let of_line = all.iter().filter(|event| event.line == Some(n));
    of_line.map(Event::to_json).collect()
}

#[tokio::test]
async fn parts_are_told_masked_and_erased() {
    let engine = engine();
    let session = paid(&engine).await;
    let id = session.id().to_owned();
    session.stop().await;
    let n = with_parts(&engine, &id).await;

    let plain = told(Stored::plain(&engine, &id), n).await;
    let stands = format!("(artifact {SECRET}.png: image/png, 1200 bytes)");
    let artifact = json!({ "artifact": {
        "name": format!("{SECRET}.png"), "media": "image/png", "len": 1200, "hash": "07".repeat(32),
    } });
    let text = |text: &str| json!({ "text": text });
    let [heard, called, ended] = &plain[..] else {
        panic!("{plain:?}");
    };
    let pin = format!("The pin is {SECRET}.");
    assert_eq!(heard["text"], format!("{pin}\n{stands}\nKeep it."));
    let parts = json!([text(&pin), artifact, text("Keep it.")]);
    assert_eq!(heard["parts"], parts);
    assert_eq!(called["event"], "called");
    assert_eq!(ended["text"], format!("Noted as a picture.\n{stands}"));
    assert_eq!(
        ended["parts"],
        json!([text("Noted as a picture."), artifact])
    );

    let reader = Stored::plain(&engine, &id);
    let line = reader.line(n).await.unwrap();
    assert!(reader.text(Body::new(n, 2)).contains(&stands));

    let masked = Stored::masked(&engine, &id);
    let shown = told(masked, n).await;
    assert!(
        !Json::from(shown.clone()).to_string().contains(SECRET),
        "{shown:?}"
    );
    assert_eq!(shown[0]["parts"][1]["artifact"]["name"], "(secret).png");
    let masked = Stored::masked(&engine, &id);
    let read = masked.line(n).await.unwrap();
    assert_ne!(read.bodies[2], line.bodies[2]);

    // The call is erased with the list and with the text in it; the message stays.
    let call = Id::new(n, 0);
    let erased = engine.erase(&id, What::Effect(call), true).await.unwrap();
    assert_eq!(erased.texts, 3, "arguments, list and text");
    let left = told(Stored::plain(&engine, &id), n).await;
    assert_eq!(left[0], plain[0]);
    assert_eq!(left[2]["text"], "[erased]");
    assert_eq!(left[2].get("parts"), None);
    let row = engine.store().rows(&id, n, n, 1).await.unwrap().remove(0);
    let bytes = String::from_utf8_lossy(&row.bytes).into_owned();
    assert!(!bytes.contains("Noted"), "the text in the list is gone too");

    engine.erase(&id, What::Line(n), true).await.unwrap();
    let left = told(Stored::plain(&engine, &id), n).await;
    assert_eq!(left[0]["text"], "[erased]");
    let row = engine.store().rows(&id, n, n, 1).await.unwrap().remove(0);
    assert!(!String::from_utf8_lossy(&row.bytes).contains(SECRET));
}
