//! Sessions that begin with a conversation that was held elsewhere.

use serde_json::json;
use std::sync::Arc;
use steersman::runtime::store::Store;
use steersman::runtime::store::memory::MemoryStore;
use steersman::{
    ChatHistory, Cursor, EventKind, Fork, Network, Rerun, StartOptions, Steersman, Turn, agent,
};

fn network() -> Network {
    Network::builder("desk")
        .agent(agent("desk").system("You help."))
        .entry("desk")
        .build()
        .unwrap()
}

fn history() -> ChatHistory {
    let call = json!({ "id": "call_1", "type": "function", "function": { "name": "track", "arguments": "{}" } });
    let said = [
        json!({ "role": "system", "content": "You are somebody else." }),
        json!({ "role": "user", "content": "Where is 4711?" }),
        json!({ "role": "assistant", "content": null, "tool_calls": [call] }),
        json!({ "role": "tool", "tool_call_id": "call_1", "content": "on its way" }),
        json!({ "role": "assistant", "content": "It left yesterday." }),
    ];
    ChatHistory::from_messages(said).unwrap()
}

/// A process over a store. Its model answers with all that it was asked.
fn process(store: &Arc<dyn Store>) -> Steersman {
    Steersman::options()
        .script_all("desk: [ One., Two., Three., Four. ]")
        .over_shared(store.clone(), &[1; 32])
}

/// Returns the roles and texts that the newest model call of a session had.
async fn saw(steersman: &Steersman, id: &str) -> String {
    let network = network();
    let seen = steersman.inspect(id).await.unwrap();
    let current = seen.branches.iter().find(|b| b.id == seen.ledger.current);
    let branch = current.unwrap();
    let cx = steersman::machine::view::Cx {
        network: network.checked(),
        bodies: &*seen.history,
    };
    let root = branch.snapshot.root.unwrap();
    let mut cache = steersman::machine::context::RenderCache::default();
    let request = steersman::machine::context::request(
        &cx,
        &*seen.history,
        &branch.snapshot,
        root,
        &mut cache,
    );
    format!(
        "{:?}",
        request
            .unwrap()
            .segments
            .iter()
            .map(|s| &s.content)
            .collect::<Vec<_>>()
    )
}

#[tokio::test]
async fn a_history_is_kept_over_processes_branches_and_reruns() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let steersman = process(&store);
    let options = StartOptions {
        history: history(),
        ..StartOptions::default()
    };
    let session = steersman.start_with(&network(), options).await.unwrap();
    let id = session.id().to_owned();
    let before = session.settled().await.unwrap();
    assert!(
        before.answer().is_none(),
        "nothing is asked before the first message"
    );
    let Turn::Answer(answer) = session.ask("When?").await.unwrap() else {
        panic!("it answers");
    };
    assert_eq!(answer.text(), "One.");
    steersman.stop().await;

    let steersman = process(&store);
    steersman.register(&network());
    let session = steersman.session(&id).await.unwrap();
    let _ = session.ask("Sure?").await.unwrap();
    let seen = saw(&steersman, &id).await;
    let wanted = [
        "Where is 4711?",
        "on its way",
        "It left yesterday.",
        "When?",
        "One.",
    ];
    let places: Vec<usize> = wanted.iter().map(|text| seen.find(text).unwrap()).collect();
    assert!(places.is_sorted(), "{seen}");
    assert!(!seen.contains("somebody else"), "{seen}");

    let mut events = session.events(Cursor::START).until_settled();
    let mut earlier = Vec::new();
    while let Some(event) = events.next().await {
        if let EventKind::Earlier {
            by_agent,
            text,
            calls,
        } = event.unwrap().kind
        {
            earlier.push((by_agent, text.to_string(), calls.len()));
        }
    }
    assert_eq!(
        earlier,
        [
            (false, "Where is 4711?".to_owned(), 0),
            (true, String::new(), 1),
            (true, "It left yesterday.".to_owned(), 0),
        ]
    );

    let fork = Fork {
        say: Some("And by ship?".into()),
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    let _ = session.settled().await.unwrap();
    let again = steersman.rerun(&id, Rerun::default()).await.unwrap();
    assert_eq!((again.live_calls, again.diverged), (0, None));
    assert!(
        saw(&steersman, &again.session)
            .await
            .contains("It left yesterday.")
    );
    let test = steersman.record_test(&id, "kept").await;
    let test = test.unwrap_or_else(|e| e.to_string());
    assert!(
        test.contains("history") && test.contains("on its way"),
        "{test}"
    );
}
