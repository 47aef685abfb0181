//! Passages found by embeddings: the requests, the ranking, and servers that do not answer.

use crate::listener::{Frame, Listener, Reply};
use crate::tools::env;
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steersman_adapters::catalog::Catalog;
use steersman_adapters::fts::FullText;
use steersman_definition::{Files, compile};
use steersman_machine::network::Network;
use steersman_machine::stored::ids::Time;
use steersman_runtime::clock::{Clock, System, Virtual};
use steersman_runtime::engine::{Engine, Options, Parts, StartOptions};
use steersman_runtime::model::scripted::{Script, ScriptedModel};
use steersman_runtime::model::{BoundModel, Model, Models, ModelsError};
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::{Session, Settled};
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::{Boxed, Env};

/// Answers from a script, and embeddings from a server.
struct Mixed(ScriptedModel, Catalog);

impl Models for Mixed {
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        _env: &'a Env,
        _folder: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>> {
        let bound = network.models.iter().map(|(name, def)| BoundModel {
            name: name.clone(),
            provider: if &**name == "near" {
                "compatible"
            } else {
                "scripted"
            }
            .into(),
            model: def.named().map(str::to_owned),
            ..BoundModel::default()
        });
        Box::pin(std::future::ready(Ok(bound.collect())))
    }

    fn model(&self, bound: &BoundModel) -> Result<Arc<dyn Model>, ModelsError> {
        match &*bound.provider {
            "scripted" => self.0.model(bound),
            _ => self.1.model(bound),
        }
    }
}

/// A folder with a document of three passages.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("steersman-near-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let text = "# A\nThe bakery opens at dawn.\n# B\nA walrus eats clams.\n# C\nOrder INV-4711 was sent.\n";
        std::fs::write(folder.join("notes.md"), text).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

async fn session(folder: &Folder, url: &str, answers: usize) -> Session {
    session_by(Arc::new(System), folder, url, answers).await
}

async fn session_by(clock: Arc<dyn Clock>, folder: &Folder, url: &str, answers: usize) -> Session {
    let yaml = format!(
        "name: near
secrets: {{ pin: {{ env: PIN }} }}
models:
  default: scripted
  near: {{ provider: compatible, url: \"{url}\", model: mini, key: \"{{{{ secrets.pin }}}}\" }}
embeddings: near
agents: {{ clerk: {{ system: You help., knowledge: [notes.md] }} }}
"
    );
    let (network, found) = compile(&Files::new("near.yaml", yaml));
    let network = network.unwrap_or_else(|| panic!("{found:?}"));
    let script = json!({ "clerk": vec!["{{ request.last }}"; answers] });
    let script = ScriptedModel::new(Script::parse(&script).unwrap());
    let engine = Engine::new(Parts {
        store: Arc::new(MemoryStore::new()),
        clock,
        models: Arc::new(Mixed(script, Catalog::default())),
        toolsets: Vec::new(),
        sealer: Sealer::ephemeral(),
        options: Options {
            env: env(&[("PIN", "sesame-42")]),
            retrieval: Some(Arc::new(FullText)),
            ..Options::default()
        },
    });
    let options = StartOptions {
        folder: Some(folder.0.display().to_string()),
        ..StartOptions::default()
    };
    engine.start(Arc::new(network), options).await.unwrap()
}

async fn told(session: &Session, say: &str) -> String {
    session.say(say).await.unwrap();
    let settled = session.settled().await.unwrap();
    let Settled::Answered { text, .. } = &*settled else {
        panic!("{settled:?}");
    };
    text.to_string()
}

fn vectors(list: &[[f64; 2]]) -> Reply {
    let data = list
        .iter()
        .enumerate()
        .map(|(index, vector)| json!({ "index": index, "embedding": vector }));
    let data: Vec<Json> = data.collect();
    Reply::json(
        200,
        &json!({ "data": data, "usage": { "prompt_tokens": 9 } }).to_string(),
    )
}

#[tokio::test]
async fn passages_are_ranked_by_how_near_they_are_and_by_their_rare_words() {
    let folder = Folder::new("rank");
    let listener = Listener::new(vec![
        vectors(&[[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]]),
        vectors(&[[0.1, 2.0]]),
        vectors(&[[1.0, 0.2]]),
    ])
    .await;
    let session = session(&folder, &listener.url, 2).await;
    let found = told(&session, "Which animal dines on shellfish?").await;
    let first = found.lines().nth(1).unwrap();
    assert_eq!(first, "1. notes.md, \"B\":", "{found}");
    // By vectors alone the bakery would come first.
    let found = told(&session, "inv-4711?").await;
    assert_eq!(found.lines().nth(1), Some("1. notes.md, \"C\":"), "{found}");
    assert!(!found.contains("full text"), "{found}");
    let requests = listener.requests();
    assert_eq!(requests.len(), 3, "passages are sent once");
    assert!(
        requests[0].line.starts_with("POST /v1/embeddings "),
        "{}",
        requests[0].line
    );
    assert_eq!(
        requests[0].header("authorization"),
        Some("Bearer sesame-42")
    );
    let sent = requests[0].json();
    assert_eq!(sent["model"], "mini");
    assert_eq!(sent["input"].as_array().unwrap().len(), 3);
    assert_eq!(requests[2].json()["input"], json!(["inv-4711?"]));
}

#[tokio::test]
async fn a_server_that_fails_is_told_of_and_words_find_it() {
    let folder = Folder::new("fails");
    let replies = vec![
        (
            Reply::json(500, r#"{"error":{"message":"out of order"}}"#),
            "out of order",
        ),
        (
            Reply::json(
                501,
                r#"{"error":{"code":501,"message":"no embeddings here","type":"not_supported_error"}}"#,
            ),
            "no embeddings here",
        ),
        (
            Reply::with(200, &[("content-type", "text/html")], "<html>"),
            "the answer has no embeddings",
        ),
        (vectors(&[[1.0, 0.0]]), "1 embeddings came for 3 texts"),
        (Reply(vec![Frame::Cut]), "embeddings could not be had"),
    ];
    let (replies, reasons): (Vec<Reply>, Vec<&str>) = replies.into_iter().unzip();
    let listener = Listener::new(replies).await;
    let session = session(&folder, &listener.url, reasons.len()).await;
    for reason in reasons {
        let found = told(&session, "And the walrus?").await;
        assert!(
            found.contains("1. notes.md, \"B\":\n> A walrus eats clams."),
            "{found}"
        );
        assert!(
            found.contains("(found by full text alone, as embeddings could not be had: "),
            "{found}"
        );
        assert!(found.contains(reason), "{reason}: {found}");
        assert!(!found.contains("sesame"), "{found}");
    }
}

#[tokio::test]
async fn vectors_of_another_length_are_made_anew() {
    let folder = Folder::new("length");
    let listener = Listener::new(vec![
        vectors(&[[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]]),
        Reply::json(200, r#"{"data":[{"embedding":[1,2,3]}]}"#),
        vectors(&[[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]]),
        vectors(&[[0.0, 1.0]]),
    ])
    .await;
    let session = session(&folder, &listener.url, 2).await;
    let found = told(&session, "walrus").await;
    assert!(found.contains("different lengths"), "{found}");
    let found = told(&session, "walrus").await;
    assert!(
        !found.contains("full text") && found.contains("1. notes.md, \"B\":"),
        "{found}"
    );
}

#[tokio::test]
async fn a_search_that_is_cut_keeps_its_vectors() {
    let folder = Folder::new("cut");
    let passages: Vec<String> = (0..40).map(|n| format!("# {n}\nPassage {n}.\n")).collect();
    let text = passages.concat();
    std::fs::write(folder.0.join("notes.md"), text).unwrap();
    let of = |count: usize| vectors(&vec![[1.0, 0.0]; count]);
    let replies = vec![of(32), Reply(vec![Frame::Stall]), of(8), of(1)];
    let listener = Listener::new(replies).await;
    let clock = Virtual::at(Time(0));
    let session = session_by(Arc::new(clock.clone()), &folder, &listener.url, 1).await;
    session.say("walrus").await.unwrap();
    while listener.requests().len() < 2 {
        tokio::task::yield_now().await;
    }
    // The timeout of the tool, the time that a cut tool has to report, and the delay before the next attempt.
    for millis in [60_000, 2_000, 60_000] {
        clock.advance(millis);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    let settled = session.settled().await.unwrap();
    let Settled::Answered { text: found, .. } = &*settled else {
        panic!("{settled:?}");
    };
    assert!(!found.contains("full text"), "{found}");
    let requests = listener.requests();
    let sent = requests.iter().map(super::listener::Recorded::json);
    let sent: Vec<usize> = sent
        .map(|sent| sent["input"].as_array().unwrap().len())
        .collect();
    assert_eq!(sent, [32, 8, 8, 1]);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_of() {
    let folder = Folder::new("nobody");
    let session = session(&folder, "http://127.0.0.1:9/v1", 1).await;
    let found = told(&session, "walrus").await;
    assert!(
        found.contains("A walrus eats clams.") && found.contains("unreachable"),
        "{found}"
    );
}

/// Against a real model behind a real server: `scripts/real-embeddings.sh`.
mod real_embeddings {
    use super::*;

    #[tokio::test]
    #[ignore = "needs STEERSMAN_REAL_EMBEDDINGS: scripts/real-embeddings.sh"]
    async fn what_is_meant_is_found_in_other_words_and_identifiers_as_they_are() {
        let url = std::env::var("STEERSMAN_REAL_EMBEDDINGS");
        let url = url.expect("STEERSMAN_REAL_EMBEDDINGS is set: scripts/real-embeddings.sh");
        let folder = Folder::new("real");
        let session = session(&folder, &url, 3).await;
        for (query, heading) in [
            ("Which animal dines on shellfish?", "B"),
            ("When can I buy bread in the morning?", "A"),
            ("inv-4711", "C"),
        ] {
            let found = told(&session, query).await;
            let first = found.lines().nth(1).unwrap();
            assert_eq!(
                first,
                format!("1. notes.md, \"{heading}\":"),
                "{query}: {found}"
            );
            assert!(!found.contains("full text"), "{found}");
        }
    }
}

#[tokio::test]
async fn no_secret_is_sent_with_what_is_to_be_compared() {
    let folder = Folder::new("secret");
    let text = "# A\nThe door opens with sesame-42.\n# B\nA walrus eats clams.\n";
    std::fs::write(folder.0.join("notes.md"), text).unwrap();
    let listener = Listener::new(vec![
        vectors(&[[1.0, 0.0], [0.0, 1.0]]),
        vectors(&[[1.0, 0.2]]),
    ])
    .await;
    let session = session(&folder, &listener.url, 1).await;
    told(&session, "Is it sesame-42?").await;
    let requests = listener.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        let sent = request.json()["input"].to_string();
        assert!(!sent.contains("sesame-42"), "{sent}");
    }
    assert_eq!(requests[1].json()["input"], json!(["Is it (secret)?"]));
}
