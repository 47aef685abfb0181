//! All that a person or a tenant has is erased, and nothing of others.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use steersman::runtime::Boxed;
use steersman::runtime::store::layer::Layer;
use steersman::runtime::store::memory::MemoryStore;
use steersman::runtime::store::{
    Batch, Claim, Conversation, Holdings, Log as _, MemoryQuery, Store, StoreError, Token,
};
use steersman::{
    By, ErasedMany, Network, Obstacle, Scope, SessionQuery, StartOptions, Steersman, Turn,
};
use steersman_machine::stored::ids::{Line, Time};

const DESK: &str = r"
name: desk
labels: { said: '{{ answer }}' }
agents: { desk: { system: You note., tools: [memory, ask] } }
";

/// Saves a memory and answers; the second session of a person asks.
const SCRIPT: &str = r#"
desk:
  - call: { memory_save: { name: taste, content: "Likes tea." } }
  - Noted.
"#;

fn network() -> Network {
    Network::from_yaml(DESK).build().unwrap()
}

fn scope(tenant: &str, subject: Option<&str>) -> Scope {
    Scope {
        tenant: tenant.into(),
        subject: subject.map(Into::into),
    }
}

/// A session of a scope that came to its end, and is released.
async fn talks(whole: &Steersman, of: &Scope) -> Arc<str> {
    let options = StartOptions {
        say: Some("I like tea.".into()),
        ..StartOptions::default()
    };
    let own = whole.scoped(of.clone());
    let session = own.start_with(&network(), options).await.unwrap();
    assert!(session.settled().await.unwrap().answer().is_some());
    let id = session.id().into();
    session.stop().await;
    id
}

/// Everything that a person has: two sessions, each with a memory, a token and the head of a conversation.
async fn moves_in(whole: &Steersman, of: &Scope) -> Vec<Arc<str>> {
    let ids = vec![talks(whole, of).await, talks(whole, of).await];
    let subject = of.subject.as_deref().unwrap_or_default();
    let name = format!("{}-{subject}", of.tenant);
    let store = whole.engine().store();
    let token = Token {
        name: name.clone().into(),
        hash: [1; 32],
        scope: of.clone(),
        allows: vec!["read".into()],
        roles: Vec::new(),
        definitions: Vec::new(),
        made: Time(1),
        expires: None,
        revoked: None,
        used: None,
        note: "".into(),
    };
    assert!(store.put_token(token).await.unwrap());
    let mut digest = [0; 32];
    for (at, byte) in name.bytes().enumerate() {
        digest[at % 32] ^= byte;
    }
    let head = Conversation {
        tenant: of.tenant.clone(),
        digest,
        session: ids[0].clone(),
        line: Line(2),
        at: Time(1),
    };
    store.put_conversation(head).await.unwrap();
    ids
}

async fn memories(whole: &Steersman, of: &Scope) -> usize {
    let own = whole.scoped(of.clone());
    own.memories(MemoryQuery::default()).await.unwrap().len()
}

/// The number of texts of a session that are erased.
async fn erased(whole: &Steersman, id: &str) -> u64 {
    let report = whole.verify(id).await.unwrap();
    assert!(report.damaged.is_empty());
    report.erased
}

fn holdings(n: u64) -> Holdings {
    Holdings {
        tokens: n,
        conversations: n,
        ..Holdings::default()
    }
}

async fn goes_alone(whole: Steersman) {
    let (ann, bob) = (scope("acme", Some("ann")), scope("acme", Some("bob")));
    let other = scope("other", Some("ann"));
    let own = moves_in(&whole, &ann).await;
    let mut others = moves_in(&whole, &bob).await;
    others.extend(moves_in(&whole, &other).await);
    let meant = whole.erase_scope(&ann, false).await.unwrap();
    assert_eq!(meant.sessions.len(), 2);
    assert_eq!((meant.memories, meant.holdings), (2, holdings(1)));
    assert!(meant.sum.texts > 0 && meant.left.is_empty());
    assert_eq!(memories(&whole, &ann).await, 2, "it was only asked");
    for id in &own {
        assert_eq!(erased(&whole, id).await, 0);
    }

    let done = whole.erase_scope(&ann, true).await.unwrap();
    assert_eq!(done, meant);
    let all = whole.sessions(&SessionQuery::default()).await.unwrap();
    let texts = erased(&whole, &own[0]).await + erased(&whole, &own[1]).await;
    assert_eq!(texts, done.sum.texts);
    for info in &all {
        let is_own = own.contains(&info.id);
        assert_eq!(info.labels.is_empty(), is_own, "{info:?}");
        assert_eq!(info.scope == ann, is_own, "it stays in lists");
    }
    for id in &others {
        assert_eq!(erased(&whole, id).await, 0);
    }
    assert_eq!(memories(&whole, &ann).await, 0);
    assert_eq!(memories(&whole, &bob).await, 2);
    assert_eq!(memories(&whole, &other).await, 2);
    let store = whole.engine().store();
    assert_eq!(store.holdings(&bob, false).await.unwrap(), holdings(1));
    assert_eq!(store.holdings(&other, false).await.unwrap(), holdings(1));
    let again = whole.erase_scope(&ann, true).await.unwrap();
    assert_eq!((again.sum.texts, again.memories), (0, 0));
    assert!(again.sessions.is_empty());

    // A part of the store cannot erase what it does not see.
    let bobs = whole.scoped(bob.clone());
    let none = bobs.erase_scope(&other, true).await.unwrap();
    assert_eq!(none, ErasedMany::default());
    // The whole tenant: what is left of it.
    let done = whole.erase_scope(&scope("acme", None), true).await.unwrap();
    assert_eq!((done.sessions.len(), done.memories), (2, 2));
    assert_eq!(done.holdings, holdings(1));
    assert_eq!(memories(&whole, &other).await, 2);
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("steersman-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[tokio::test]
async fn what_a_person_has_goes_and_nothing_of_others() {
    let options = || Steersman::options().script_all(SCRIPT);
    goes_alone(options().in_memory()).await;
    let folder = folder("erased-person");
    goes_alone(options().open(folder.join("sessions.db")).await.unwrap()).await;
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn what_is_driven_or_open_stays_and_is_erased_later() {
    let ann = scope("", Some("ann"));
    let folder = folder("erased-busy");
    let file = folder.join("sessions.db");
    let script = "desk: [ { call: { ask: { question: Which? } } }, Noted. ]";
    let options = || Steersman::options().script_all(script);
    let here = options().open(&file).await.unwrap();
    let elsewhere = options().open(&file).await.unwrap();
    let start = || StartOptions {
        say: Some("Go.".into()),
        ..StartOptions::default()
    };
    let own = elsewhere.scoped(ann.clone());
    let driven = own.start_with(&network(), start()).await.unwrap();
    let Turn::Asks(questions) = driven.settled().await.unwrap() else {
        panic!("it asks");
    };
    let why = async || {
        let done = here.erase_scope(&ann, true).await.unwrap();
        assert!(done.sessions.is_empty() && done.left.len() == 1, "{done:?}");
        assert_eq!(*done.left[0].session, *driven.id());
        done.left[0].why.clone()
    };
    assert!(matches!(why().await, Obstacle::Busy(_)));
    elsewhere.stop().await;
    assert!(matches!(why().await, Obstacle::Open(_)), "it asks");
    let again = options().open(&file).await.unwrap();
    let session = again.session(driven.id()).await.unwrap();
    let answered = session.answer(&questions[0], "This.", By::user()).await;
    answered.unwrap();
    assert!(session.settled().await.unwrap().answer().is_some());
    assert!(matches!(why().await, Obstacle::Busy(_)));
    // The process that drives it lets it go, because it rests.
    let done = again.erase_scope(&ann, true).await.unwrap();
    assert_eq!((done.sessions.len(), done.left.len()), (1, 0), "{done:?}");
    again.stop().await;
    drop((here, elsewhere, again));
    std::fs::remove_dir_all(folder).unwrap();
}

/// A store whose process dies after so many batches.
struct Dies {
    below: MemoryStore,
    batches: AtomicI64,
}

impl Layer for Dies {
    fn below(&self) -> &dyn Store {
        &self.below
    }
    fn append(&self, claim: &Claim, batch: Batch) -> Boxed<'static, Result<(), StoreError>> {
        if self.batches.fetch_sub(1, Ordering::SeqCst) > 0 {
            return self.below.append(claim, batch);
        }
        Box::pin(async {
            Err(StoreError::Io {
                place: "the test".into(),
                source: Arc::new(std::io::Error::other("the process was killed")),
            })
        })
    }
}

#[tokio::test]
async fn after_each_interruption_no_session_is_erased_in_part_and_the_rest_is_done() {
    let ann = scope("acme", Some("ann"));
    let mut interrupted = 0;
    for batches in 0.. {
        let below = MemoryStore::new();
        let options = || Steersman::options().script_all(SCRIPT);
        let whole = options().over(below.clone(), &[7; 32]);
        let own = moves_in(&whole, &ann).await;
        whole.stop().await;
        let dies = Dies {
            below: below.clone(),
            batches: AtomicI64::new(batches),
        };
        let dying = options().over(dies, &[7; 32]);
        let is_done = dying.erase_scope(&ann, true).await.is_ok();
        interrupted += u32::from(!is_done);
        drop(dying);

        let whole = options().over(below, &[7; 32]);
        let before = [erased(&whole, &own[0]).await, erased(&whole, &own[1]).await];
        for id in &own {
            // Nobody finds a list entry of a session whose texts are gone.
            let info = whole.info(id).await.unwrap();
            let is_gone = erased(&whole, id).await > 0;
            assert_eq!(info.labels.is_empty(), is_gone, "{info:?}");
            assert_eq!(info.state.last.contains("Noted"), !is_gone, "{info:?}");
        }
        assert_eq!(memories(&whole, &ann).await, 0, "memories go first");
        let store = whole.engine().store();
        assert_eq!(store.holdings(&ann, false).await.unwrap(), holdings(0));

        whole.erase_scope(&ann, true).await.unwrap();
        let after = [erased(&whole, &own[0]).await, erased(&whole, &own[1]).await];
        for (before, after) in before.into_iter().zip(after) {
            assert!(after > 0 && (before == 0 || before == after));
        }
        for id in &own {
            let info = whole.info(id).await.unwrap();
            assert!(info.labels.is_empty() && !info.state.last.contains("Noted"));
            let seen = whole.inspect(id).await.unwrap();
            assert_eq!(seen.settled.word(), "answered");
        }
        if is_done {
            break;
        }
    }
    assert!(interrupted >= 4, "{interrupted}");
}

#[tokio::test]
async fn an_erased_session_goes_on_when_somebody_speaks() {
    let ann = scope("acme", Some("ann"));
    let script = SCRIPT.to_owned() + "  - Hello again.\n";
    let whole = Steersman::options().script_all(script).in_memory();
    let own = talks(&whole, &ann).await;
    whole.erase_scope(&ann, true).await.unwrap();
    let session = whole.session(&own).await.unwrap();
    let turn = session.ask("Hello?").await.unwrap();
    assert!(turn.answer().is_some(), "{turn:?}");
}
