//! Models in Rust: the engine applies rates, prices and fallbacks to them.

use std::sync::{Arc, Mutex};
use steersman::machine::context::Content as Part;
use steersman::machine::stored::commit::Usage;
use steersman::machine::stored::ids::{Name, Time};
use steersman::machine::stored::outcome::{Answer, Failure, Retry};
use steersman::runtime::Boxed;
use steersman::runtime::clock::Virtual;
use steersman::runtime::model::{Model, ModelCall, Sink};
use steersman::{Content, Limiters, Network, Steersman, Turn};
use tokio_util::sync::CancellationToken;

/// A model that answers with its name, or reports that its key is refused.
struct Echo(&'static str, bool);

impl Model for Echo {
    fn call<'a>(
        &'a self,
        _call: &'a ModelCall,
        _sink: &'a dyn Sink,
        _cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        let refused = Failure {
            code: "unauthorized".into(),
            message: "the key was revoked".into(),
            retry: Retry::Never,
        };
        let answer = Answer {
            text: Some(format!("I am {}.", self.0)),
            usage: Usage {
                input: 1_000,
                output: 100,
                ..Usage::default()
            },
            ..Answer::default()
        };
        Box::pin(std::future::ready(if self.1 {
            Ok(answer)
        } else {
            Err(refused)
        }))
    }

    fn label(&self) -> Name {
        self.0.into()
    }
}

const DEFINITION: &str = "
steersman: 1
name: own
models:
  default: { fallback: [spare] }
  spare:   { rate: 1/h, price: { input: 1, output: 10 } }
agents: { clerk: { system: You talk. } }
";

fn program(limiters: &Limiters, clock: &Virtual) -> Steersman {
    Steersman::options()
        .model("default", Echo("one", false))
        .model("spare", Echo("two", true))
        .limiters(limiters)
        .clock(Arc::new(clock.clone()))
        .in_memory()
}

#[tokio::test]
async fn programs_bring_models_and_share_one_limiter() {
    let network = Network::from_yaml(DEFINITION).build().unwrap();
    let (limiters, clock) = (Limiters::default(), Virtual::at(Time(0)));
    let (first, second) = (program(&limiters, &clock), program(&limiters, &clock));
    let session = first.start(&network).await.unwrap();
    match session.ask("Who are you?").await.unwrap() {
        Turn::Answer(answer) => assert_eq!(answer.text(), "I am two."),
        other => panic!("{other:?}"),
    }
    let seen = first.engine().inspect(session.id()).await.unwrap();
    assert_eq!(seen.ledger.spent.micros, 2_000);
    // The rate of the hour is used up: the session of the other program waits, and its log says so.
    let session = second.start(&network).await.unwrap();
    let turn = session.ask("And you?").await.unwrap();
    assert!(matches!(turn, Turn::Waits(_)), "{turn:?}");
    clock.advance(3_600_000);
    loop {
        match session.settled().await.unwrap() {
            Turn::Answer(answer) => break assert_eq!(answer.text(), "I am two."),
            // The session has not looked at the clock yet.
            Turn::Waits(_) => tokio::task::yield_now().await,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_model_that_nobody_brings_is_missed_at_the_start() {
    let network = Network::from_yaml(DEFINITION).build().unwrap();
    let program = Steersman::options()
        .model("default", Echo("one", true))
        .in_memory();
    let error = program.start(&network).await.err().unwrap().to_string();
    assert!(error.contains("model `spare`"), "{error}");
}

/// A model that notes what its requests have behind the user's text, and refuses its key or answers.
struct Looks(&'static str, bool, Arc<Mutex<Vec<String>>>);

impl Model for Looks {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        let parts = call.request.segments.iter();
        let parts = parts.filter_map(|segment| match &segment.content {
            Part::File(file) => {
                let content = file.content.as_deref().map(String::from_utf8_lossy);
                Some(format!("{}={content:?}", file.name))
            }
            Part::User(text) => text.lines().last().map(str::to_owned),
            _ => None,
        });
        let parts: Vec<String> = parts.collect();
        let noted = format!("{}: {}", self.0, parts.join(", "));
        self.2.lock().unwrap().push(noted);
        let answers = self.1;
        Box::pin(async move { Echo(self.0, answers).call(call, sink, cancel).await })
    }

    fn label(&self) -> Name {
        self.0.into()
    }
}

#[tokio::test]
async fn a_model_gets_the_contents_of_the_files_that_it_takes() {
    let definition = "
steersman: 1
name: eyes
models:
  default: { takes: [image, pdf], fallback: [spare] }
  spare: { takes: { kinds: image, instead: 'no {{ name }}' } }
agents: { clerk: { system: You look. } }
";
    let network = Network::from_yaml(definition).build().unwrap();
    let noted = Arc::new(Mutex::new(Vec::new()));
    let program = Steersman::options()
        .model("default", Looks("one", false, noted.clone()))
        .model("spare", Looks("two", true, noted.clone()))
        .in_memory();
    let session = program.start(&network).await.unwrap();
    let file = |name: &str, media: &str| Content {
        name: name.to_owned(),
        media: media.to_owned(),
        bytes: name.as_bytes().into(),
    };
    let (cat, terms) = (
        file("cat.png", "image/png"),
        file("terms.pdf", "application/pdf"),
    );
    session
        .say_with("Look.", &[cat.clone(), terms])
        .await
        .unwrap();
    let turn = session.settled().await.unwrap();
    assert!(matches!(turn, Turn::Answer(_)), "{turn:?}");
    let attached =
        "[Attached: `cat.png` (image/png, 7 bytes), `terms.pdf` (application/pdf, 9 bytes)]";
    assert_eq!(
        std::mem::take(&mut *noted.lock().unwrap()),
        [
            format!("one: {attached}, cat.png=Some(\"cat.png\"), terms.pdf=Some(\"terms.pdf\")"),
            format!("two: {attached}, cat.png=Some(\"cat.png\"), no terms.pdf"),
        ]
    );
    // A content that is gone from the store is gone from the next request.
    let store = program.engine().store().clone();
    store.drop_blobs(vec![cat.version().hash]).await.unwrap();
    let _ = session.ask("Again.").await.unwrap();
    let noted = noted.lock().unwrap();
    assert_eq!(
        noted.last().unwrap(),
        &format!("two: {attached}, cat.png=None, no terms.pdf, Again.")
    );
}
