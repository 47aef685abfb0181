//! What a model streams besides text: the pieces of a call's arguments, and the usage of each call.

use steersman::machine::stored::commit::Usage;
use steersman::machine::stored::ids::Name;
use steersman::machine::stored::outcome::{Answer, Ask, Failure, Retry};
use steersman::runtime::Boxed;
use steersman::runtime::model::{Delta, Model, ModelCall, Sink};
use steersman::{Cursor, EventKind, Network, Steersman};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

/// A model that streams a call in pieces. After each piece it waits until the reader has it. Its first attempt breaks off after
/// one piece.
struct Typist {
    seen: Mutex<mpsc::Receiver<()>>,
}

impl Typist {
    async fn streams(&self, call: &ModelCall, sink: &dyn Sink) -> Result<Answer, Failure> {
        let usage = Usage {
            input: 7,
            output: 5,
            ..Usage::default()
        };
        if call.position > 0 {
            return Ok(Answer {
                text: Some("Noted.".to_owned()),
                usage,
                ..Answer::default()
            });
        }
        let name = Some("note".to_owned());
        let pieces = [(name, r#"{"text":"#), (None, r#" "mi"#), (None, r#"lk"}"#)];
        let mut seen = self.seen.lock().await;
        for (name, piece) in pieces {
            sink.delta(Delta::Call(0, name, piece.to_owned()));
            seen.recv().await;
            if call.attempt == 1 {
                return Err(Failure {
                    code: "provider_error".into(),
                    message: "the line broke".into(),
                    retry: Retry::After(0),
                });
            }
        }
        let ask = Ask {
            name: "note".to_owned(),
            label: None,
            args: r#"{"text": "milk"}"#.to_owned(),
            misfit: None,
        };
        Ok(Answer {
            asks: vec![ask],
            usage,
            ..Answer::default()
        })
    }
}

impl Model for Typist {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a dyn Sink,
        _cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        Box::pin(self.streams(call, sink))
    }

    fn label(&self) -> Name {
        "typist".into()
    }
}

#[tokio::test]
async fn pieces_of_arguments_and_the_usage_of_each_call_are_events() {
    let network = Network::from_yaml(
        "
state: { note: optional string }
tools: { note: { description: Notes., parameters: { text: string }, set: { note: '{{ args.text }}' } } }
agents: { desk: { system: You note., tools: [note] } }
",
    );
    let (saw, seen) = mpsc::channel(1);
    let seen = Mutex::new(seen);
    let steersman = Steersman::options()
        .model("default", Typist { seen })
        .in_memory();
    let session = steersman.start(&network.build().unwrap()).await.unwrap();
    // A reader that masks secrets gets no piece of arguments: a secret could be cut anywhere in them.
    let mut masked = session.events(Cursor::START).masked();
    let mut events = session.ask_streaming("Milk, please.").await.unwrap();
    let mut told = Vec::new();
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        if let EventKind::Arguments { .. } = &event.kind {
            assert!(event.is_provisional());
            saw.send(()).await.unwrap();
        }
        told.push(match event.kind {
            EventKind::Arguments {
                attempt,
                nth,
                name,
                text,
                ..
            } => format!("{attempt}.{nth} {} {text}", name.as_deref().unwrap_or("-")),
            EventKind::Withdrawn { attempt, .. } => format!("withdrawn {attempt}"),
            EventKind::Called {
                name, arguments, ..
            } => format!("called {name} {arguments}"),
            EventKind::Used { input, output, .. } => format!("used {input} {output}"),
            EventKind::Settled(_) => "settled".to_owned(),
            _ => continue,
        });
    }
    let wanted = [
        r#"1.0 note {"text":"#,
        "withdrawn 1",
        r#"2.0 note {"text":"#,
        r#"2.0 -  "mi"#,
        r#"2.0 - lk"}"#,
        "used 7 5",
        r#"called note {"text":"milk"}"#,
        "used 7 5",
        "settled",
    ];
    assert_eq!(told, wanted);
    let mut seen_masked = Vec::new();
    while let Some(event) = masked.next().await {
        let kind = event.unwrap().kind;
        let is_last = matches!(&kind, EventKind::Said { text, .. } if &**text == "Noted.");
        seen_masked.push(kind);
        if is_last {
            break;
        }
    }
    let has = |wanted: fn(&EventKind) -> bool| seen_masked.iter().any(wanted);
    assert!(has(|kind| matches!(kind, EventKind::Called { .. })));
    assert!(!has(|kind| matches!(kind, EventKind::Arguments { .. })));
}
