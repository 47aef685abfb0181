//! Acts are given to a session by its id, whichever process drives the session.

use steersman::{Act, By, Content, Fate, Network, Session, Steersman, Turn};

const DEFINITION: &str = r#"
steersman: 1
name: desk
tools:
  pay:
    description: Pays.
    parameters: { cents: integer }
    effect: idempotent
    command: [echo, "paid {{ args.cents }}"]
    approve: args.cents > 10
agents: { desk: { system: You settle., tools: [pay] } }
"#;

const SCRIPT: &str = r#"
desk:
  - { call: { pay: { cents: 50 } } }
  - "{{ request.last }}"
  - Seen.
"#;

/// A session that asks for an approval and that no process drives, with the act that approves.
async fn left() -> (Steersman, String, Act) {
    let network = Network::from_yaml(DEFINITION).build().unwrap();
    let steersman = Steersman::options().script_all(SCRIPT).in_memory();
    let session = steersman.start(&network).await.unwrap();
    let Turn::Asks(questions) = session.ask("Pay.").await.unwrap() else {
        panic!("it asks");
    };
    let approval = Act::approve(&questions[0], By::user());
    let id = session.id().to_owned();
    session.stop().await;
    (steersman, id, approval)
}

async fn answer(session: &Session) -> String {
    match session.settled().await.unwrap() {
        Turn::Answer(answer) => answer.text().trim().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_act_is_in_the_inbox_until_a_process_drives_the_session() {
    let (steersman, id, approval) = left().await;
    let receipt = steersman.deliver(&id, approval).await.unwrap();
    assert_eq!(receipt.fate, Fate::Lies);
    assert_eq!(steersman.pending(&id).await.unwrap().len(), 1);

    let found = steersman.session_for(&id, &receipt.id).await.unwrap();
    let (session, fate) = found;
    assert!(matches!(fate, Fate::Taken(_)), "{fate:?}");
    assert_eq!(answer(&session).await, "paid 50");

    // The session is driven here now, so the receipt tells the fate of the act.
    let said = Act::say("And this?", None, None).with_id("m1");
    let receipt = steersman.deliver(&id, said.clone()).await.unwrap();
    assert!(matches!(receipt.fate, Fate::Taken(_)), "{receipt:?}");
    assert_eq!(answer(&session).await, "Seen.");
    let receipt = steersman.deliver(&id, said).await.unwrap();
    assert_eq!((&*receipt.id, receipt.fate), ("m1", Fate::Known));
}

#[tokio::test]
async fn an_order_is_taken_and_nothing_of_the_session_runs() {
    let (steersman, id, approval) = left().await;
    steersman.deliver(&id, approval).await.unwrap();
    let head = steersman.info(&id).await.unwrap().head;
    let receipt = steersman.order(&id, Act::pause()).await.unwrap();
    assert!(
        matches!(receipt.fate, Fate::Taken(line) if line > head),
        "{receipt:?}"
    );
    let seen = steersman.inspect(&id).await.unwrap();
    assert!(seen.ledger.paused);
    assert!(seen.info.owner.is_none());

    let session = steersman.session(&id).await.unwrap();
    session.act(Act::resume()).await.unwrap();
    assert_eq!(answer(&session).await, "paid 50");
}

#[tokio::test]
async fn files_of_a_message_are_stored_with_it() {
    let (steersman, id, approval) = left().await;
    let session = steersman.session(&id).await.unwrap();
    session.act(approval).await.unwrap();
    assert_eq!(answer(&session).await, "paid 50");
    let file = Content {
        name: "bill.txt".into(),
        media: "text/plain".into(),
        bytes: b"50 cents".to_vec().into(),
    };
    let act = Act::say("See.", Some(By::role("clerk")), None).with_files(&[file]);
    session.act(act).await.unwrap();
    assert_eq!(answer(&session).await, "Seen.");
    let artifacts = session.artifacts().await.unwrap();
    assert!(artifacts.find("bill.txt", None).is_ok());
}

#[tokio::test]
async fn what_would_be_refused_is_known_before_it_is_sent() {
    let (steersman, id, approval) = left().await;
    let seen = steersman.inspect(&id).await.unwrap();
    assert_eq!(approval.refusal(&seen), None);
    let gone = "9.1".parse().unwrap();
    let refusal = Act::adopt(gone, None).refusal(&seen);
    assert_eq!(refusal.as_deref(), Some("there is no branch 9.1"));
}

#[tokio::test]
async fn an_answer_is_shown_nowhere() {
    let (steersman, id, _) = left().await;
    let question = steersman.pending(&id).await.unwrap().remove(0);
    let act = Act::answer(&question, "hunter2", By::user());
    assert!(!format!("{act:?}").contains("hunter2"));
    let receipt = steersman.deliver(&id, act).await.unwrap();
    let (_, inbox) = steersman.engine().store().inbox(&id).await.unwrap();
    let [only] = &inbox[..] else {
        panic!("{inbox:?}");
    };
    assert_eq!(only.id, receipt.id);
    let bytes = String::from_utf8_lossy(&only.bytes);
    assert!(!bytes.contains("hunter2"), "it is sealed");
}
