//! Against a real model behind a real server: `scripts/real-model.sh`, then
//! `STEERSMAN_REAL_MODEL=http://127.0.0.1:18080/v1` and `--ignored`. `cargo xtask ci` starts the server.
//!
//! The model has 135 million parameters: these tests look at shape and control flow, never at wording.

use crate::messages::messages;
use crate::request::{
    Seen, ask, ask_seen, assistant, chat, params, request, result, system, two_tools, user,
};
use crate::tools::{env, network};
use crate::whole;
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use steersman_adapters::catalog::Catalog;
use steersman_adapters::chat::Chat;
use steersman_machine::context::{Content, Request};
use steersman_machine::network::{CallStyle, ToolChoice};
use steersman_machine::stored::outcome::{Answer, Retry};
use steersman_runtime::model::{Delta, Model, Models};

fn url() -> String {
    let url = std::env::var("STEERSMAN_REAL_MODEL");
    url.expect("STEERSMAN_REAL_MODEL is set: scripts/real-model.sh")
}

fn server() -> Chat {
    chat(&url())
}

fn short(contents: Vec<Content>, tokens: u64) -> Request {
    Request {
        params: params(&[
            ("max_tokens", json!(tokens)),
            ("temperature", json!(0.0)),
            ("seed", json!(1)),
        ]),
        ..request(contents)
    }
}

#[tokio::test]
#[ignore = "needs STEERSMAN_REAL_MODEL: scripts/real-model.sh"]
async fn it_chats_and_streams() {
    let url = url();
    let models: [Box<dyn Model>; 2] = [Box::new(chat(&url)), Box::new(messages(&url))];
    for model in models {
        chats(&*model).await;
    }
}

async fn chats(chat: &dyn Model) {
    let seen = Seen::default();
    let asked = short(vec![system("You are brief."), user("Say hello.")], 24);
    let answer = ask_seen(chat, asked, &seen).await.unwrap();
    let text = answer.text.unwrap();
    assert_eq!(seen.text(), text);
    let pieces = seen
        .0
        .lock()
        .unwrap()
        .iter()
        .filter(|delta| matches!(delta, Delta::Text(_)))
        .count();
    assert!(pieces > 1, "it streams: {pieces} pieces");
    assert!(
        answer.usage.input > 5 && answer.usage.output > 1,
        "{:?}",
        answer.usage
    );
    // A second call with the same beginning may find it cached, and says so.
    let again = ask(
        chat,
        short(vec![system("You are brief."), user("Say hello.")], 2),
    )
    .await
    .unwrap();
    assert!(again.cut, "two tokens are no answer");
    assert!(again.usage.cached <= again.usage.input);
}

#[tokio::test]
#[ignore = "needs STEERSMAN_REAL_MODEL: scripts/real-model.sh"]
async fn its_output_has_the_asked_form() {
    let chat = server();
    let schema = json!({ "type": "object", "required": ["name", "kind"], "additionalProperties": false,
        "properties": { "name": { "type": "string", "maxLength": 20 }, "kind": { "enum": ["cat", "dog"] } } });
    let asked = Request {
        output: Some(schema.to_string().into()),
        ..short(
            vec![user(
                "My dog is called Rex. Which animal is it, and what is its name?",
            )],
            64,
        )
    };
    let answer = ask(&chat, asked).await.unwrap();
    let value = serde_json::from_str::<Json>(&answer.text.unwrap()).expect("it parses");
    assert!(
        value["name"].is_string() && ["cat", "dog"].contains(&value["kind"].as_str().unwrap()),
        "{value}"
    );
}

/// Returns true if an answer is a call of one of the two tools with arguments of its schema.
fn is_call(answer: &Answer) -> bool {
    let [call] = &answer.asks[..] else {
        return false;
    };
    let args = serde_json::from_str::<Json>(&call.args).expect("arguments parse");
    match call.name.as_str() {
        "get_weather" => args["city"].is_string(),
        "add" => args["a"].is_i64() && args["b"].is_i64(),
        _ => false,
    }
}

#[tokio::test]
#[ignore = "needs STEERSMAN_REAL_MODEL: scripts/real-model.sh"]
async fn its_server_says_whether_it_has_tools_and_calls_come_either_way() {
    let chat = server();
    let auto = Request {
        calls: CallStyle::Auto,
        choice: ToolChoice::Any,
        ..short(
            vec![
                system("You call tools."),
                two_tools(),
                user("What is 1 plus 2?"),
            ],
            96,
        )
    };
    let answer = ask(&chat, auto).await.unwrap();
    println!("auto: {answer:?}");
    assert!(
        is_call(&answer) || answer.misfit.is_some(),
        "a call, or word that there is none: {answer:?}"
    );

    // With structured output a call always comes, whatever the model is.
    let structured = |choice: ToolChoice, text: &str| Request {
        calls: CallStyle::Structured,
        choice,
        ..short(vec![system("You call tools."), two_tools(), user(text)], 96)
    };
    for text in ["What is 1 plus 2?", "How is the weather in Paris?"] {
        let answer = ask(&chat, structured(ToolChoice::Any, text)).await.unwrap();
        assert!(is_call(&answer) && answer.misfit.is_none(), "{answer:?}");
    }
    let one = ask(
        &chat,
        structured(ToolChoice::Tool("add".into()), "What is 4 plus 5?"),
    )
    .await
    .unwrap();
    assert_eq!(one.asks[0].name, "add");
    // A model that may answer calls or answers, and both are read from the JSON.
    let free = ask(&chat, structured(ToolChoice::Auto, "Hello!"))
        .await
        .unwrap();
    assert!(
        is_call(&free) || free.text.is_some_and(|text| !text.starts_with('{')),
        "{:?}",
        free.asks
    );
}

#[tokio::test]
#[ignore = "needs STEERSMAN_REAL_MODEL: scripts/real-model.sh"]
async fn a_tool_loop_closes() {
    let chat = server();
    let mut contents = vec![
        system("You call tools, then answer."),
        two_tools(),
        user("What is 1 plus 2?"),
    ];
    let step = |contents: &[Content], choice: ToolChoice| Request {
        calls: CallStyle::Structured,
        choice,
        ..short(contents.to_vec(), 96)
    };
    let answer = ask(&chat, step(&contents, ToolChoice::Tool("add".into())))
        .await
        .unwrap();
    assert!(is_call(&answer), "{answer:?}");
    contents.push(assistant(
        None,
        &[("c1", "add", &answer.asks[0].args)],
        None,
    ));
    contents.push(result("c1", "add", "3", false));
    let last = ask(&chat, step(&contents, ToolChoice::None)).await.unwrap();
    // A model whose tools are off should answer. One that is so small may call all the same: that is a call, which the
    // machine refuses, and never a text with its JSON.
    let said = last
        .text
        .as_deref()
        .is_some_and(|text| !text.starts_with('{'));
    assert!(said || !last.asks.is_empty(), "{last:?}");
}

#[tokio::test]
#[ignore = "needs STEERSMAN_REAL_MODEL: scripts/real-model.sh"]
async fn too_long_a_conversation_is_an_overflow() {
    let chat = server();
    let failure = ask(&chat, short(vec![user(&"many words ".repeat(5000))], 4))
        .await
        .unwrap_err();
    assert_eq!(
        (failure.code.as_str(), failure.retry),
        ("context_overflow", Retry::Never),
        "{failure:?}"
    );
}

#[tokio::test]
#[ignore = "needs STEERSMAN_REAL_MODEL: scripts/real-model.sh"]
async fn two_clients_at_once_get_their_own_answers() {
    let chat = server();
    let asked = |word: &str| {
        let schema = json!({ "type": "object", "properties": { "word": { "const": word } }, "required": ["word"] });
        Request {
            output: Some(schema.to_string().into()),
            ..short(vec![user(&format!("Say {word}."))], 32)
        }
    };
    let (one, two) = tokio::join!(ask(&chat, asked("left")), ask(&chat, asked("right")));
    assert!(one.unwrap().text.unwrap().contains("left"));
    assert!(two.unwrap().text.unwrap().contains("right"));
}

#[tokio::test]
#[ignore = "needs STEERSMAN_REAL_MODEL: scripts/real-model.sh"]
async fn local_finds_it_and_says_what_it_cannot() {
    let url = url();
    let said = Arc::new(Mutex::new(String::new()));
    let heard = said.clone();
    let catalog = Catalog::default().with_local([url.clone()]);
    let catalog = catalog.heard_by(move |sentence| *heard.lock().unwrap() += sentence);
    let network = network("models: { default: local }\nagents: { a: { system: Hi. } }");
    let bound = catalog
        .resolve(&network, &env(&[]), Path::new("."))
        .await
        .unwrap();
    assert_eq!(
        (&*bound[0].provider, bound[0].url.as_deref()),
        ("compatible", Some(url.as_str()))
    );
    let said = said.lock().unwrap().clone();
    println!("{said}");
    assert!(
        said.contains(&url) && said.contains(bound[0].model.as_deref().unwrap()),
        "{said}"
    );
}

/// Whole sessions: each ends in an answer, a limit or a typed failure, and a tool ran. They use structured output, since a
/// model of this size makes no call where nothing forces it to.
#[tokio::test]
#[ignore = "needs STEERSMAN_REAL_MODEL: scripts/real-model.sh"]
async fn sessions_run_to_an_end_and_tools_run() {
    let url = url();
    let yaml = r#"
config: { url: { type: string, env: MODEL_URL, live: true } }
models: { default: { url: "{{ config.url }}", temperature: 0, max_tokens: 128, calls: structured, params: { seed: 1 } } }
tools:
  add:
    description: Adds two numbers.
    parameters: { a: integer, b: integer }
    effect: pure
    command: [sh, -c, "echo $(( $1 + $2 ))", sh, "{{ args.a }}", "{{ args.b }}"]
agents:
  adder:
    system: You add numbers with the tool. Then you answer with the sum.
    tools: [add]
    limits: { model_calls: { max: 4, on_limit: answer } }
"#;
    let engine = whole::engine(env(&[("MODEL_URL", &url)]));
    let mut tools = 0;
    for say in [
        "What is 17 plus 25?",
        "Add 3 and 4.",
        "Use the tool: 10 + 5",
    ] {
        let session = whole::start(&engine, yaml, say).await;
        let settled = session.settled().await.unwrap();
        let letters = whole::letters(&engine, &session).await;
        println!("{say} -> {}: {letters}: {settled:?}", settled.word());
        assert!(
            ["answered", "limit", "failed"].contains(&settled.word()),
            "{settled:?}"
        );
        assert!(
            letters.starts_with('U') && letters.ends_with('F'),
            "{letters}"
        );
        let word = |word| letters.split(' ').filter(|letter| *letter == word).count();
        assert_eq!(word("TC"), word("TR"), "every call is closed: {letters}");
        tools += word("TR");
    }
    assert!(tools > 0, "no tool ran");
}
