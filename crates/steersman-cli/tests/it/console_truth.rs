//! The console in Chromium (`scripts/chromium.sh`) next to what is true: contexts as a model's server received them, and effects as the
//! program tells them.

use crate::browser::Browser;
use crate::console::{Desk, asks};
use crate::killed::{answer, chats};
use crate::served::{Served, provider};
use crate::world::World;
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

const OFFICE: &str = r#"
steersman: 1
name: office
models: { default: { provider: compatible, url: "URL", model: recorded } }
state: { order: { type: string, optional: true } }
tools:
  find_order:
    description: Looks up an order.
    parameters: { order: string }
    effect: read
    command: [echo, "a kettle, \"large\" & <blue>"]
    set: { order: "{{ args.order }}" }
agents:
  desk: { system: "Order {{ state.order | default('unknown') }}.\nBe short.", tools: [find_order] }
  lead: { system: You lead., tools: [desk] }
  talker: { system: You talk. }
entry: [desk, lead, talker]
"#;

/// A model's server that records what it is asked, and answers in turn. Returns its address.
fn recorded(answers: Vec<Json>) -> (String, Receiver<Json>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (tell, asked) = channel();
    std::thread::spawn(move || {
        let mut answers = answers.into_iter();
        for (stream, body) in chats(&listener) {
            let said = answers.next().expect("no more is asked");
            let end = if said["tool_calls"].is_null() {
                "stop"
            } else {
                "tool_calls"
            };
            let choice = json!({ "index": 0, "message": said, "finish_reason": end });
            let usage = json!({ "prompt_tokens": 90, "completion_tokens": 2 });
            let told = json!({ "choices": [choice], "usage": usage }).to_string();
            if tell.send(serde_json::from_slice(&body).unwrap()).is_err() {
                return;
            }
            answer(stream, &told);
        }
    });
    (url, asked)
}

fn says(text: &str) -> Json {
    json!({ "role": "assistant", "content": text })
}

fn calls(name: &str, args: &Json) -> Json {
    let function = json!({ "name": name, "arguments": args.to_string() });
    json!({
        "role": "assistant",
        "content": "I look. ",
        "tool_calls": [{ "id": format!("call-{name}"), "type": "function", "function": function }],
    })
}

/// The texts of a request, each with its role, and the tools that it offers.
fn sent(body: &Json) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for message in body["messages"].as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        if let Some(text) = message["content"].as_str() {
            texts.push((role.to_owned(), text.to_owned()));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            let text = |of: &str| function[of].as_str().unwrap();
            texts.push((
                "call".to_owned(),
                format!("{}({})", text("name"), text("arguments")),
            ));
        }
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        let function = &tool["function"];
        texts.push((
            "tool".to_owned(),
            json!([
                function["name"],
                function["description"],
                function["parameters"]
            ])
            .to_string(),
        ));
    }
    texts.sort();
    texts
}

/// The same of the segments that the console shows.
fn shown(context: &Json) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    let mut add = |role: &str, text: &str| texts.push((role.to_owned(), text.to_owned()));
    for segment in context["segments"].as_array().unwrap() {
        let (kind, value) = segment["content"]
            .as_object()
            .unwrap()
            .iter()
            .next()
            .unwrap();
        match &**kind {
            "System" => add("system", value.as_str().unwrap()),
            "User" => add("user", value.as_str().unwrap()),
            "Assistant" => {
                if let Some(text) = value["text"].as_str() {
                    add("assistant", text);
                }
                for call in value["calls"].as_array().into_iter().flatten() {
                    let text = |of: &str| call[of].as_str().unwrap();
                    add("call", &format!("{}({})", text("name"), text("args")));
                }
            }
            "Result" => add("tool", value["text"].as_str().unwrap()),
            "Tools" => {
                for tool in value.as_array().unwrap() {
                    let parameters: Json =
                        serde_json::from_str(tool["parameters"].as_str().unwrap()).unwrap();
                    add(
                        "tool",
                        &json!([tool["name"], tool["description"], parameters]).to_string(),
                    );
                }
            }
            other => panic!("{other}"),
        }
    }
    texts.sort();
    texts
}

mod chromium {
    use super::*;

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn each_context_on_the_screen_is_what_the_models_server_received() {
        provider();
        let answers = vec![
            calls("find_order", &json!({ "order": "4711" })),
            says("It is a kettle. \u{202e}"),
            says("You are welcome."),
            calls("desk", &json!({ "message": "Find it." })),
            calls("find_order", &json!({ "order": "12" })),
            says("Found."),
            says("It is found.\n\n```\ncode\n```"),
            says("One."),
            says("Two."),
            says("Three."),
        ];
        let (url, asked) = recorded(answers);
        let world = World::new();
        world.write("steersman.yaml", &OFFICE.replace("URL", &url));
        let served = Served::with(&world, &["--quiet", "--listen", "127.0.0.1:0"]);
        let mut page = Browser::chromium(&world);
        let opened = world.run(&["--server", &served.at, "ui", "--print"]);
        page.goes_to(opened.out.trim());
        page.wait("document.querySelector('.rail')");
        // The page keeps the copied text: a browser without a window has no clipboard.
        page.value("navigator.clipboard.writeText = async (text) => { window.copied = text; }");
        for (entry, turns, count) in [("desk", 2, 3), ("lead", 1, 4), ("talker", 3, 3)] {
            let start = json!({ "definition": "office", "entry": entry, "message": "Which one? Größe <b> \"x\"" });
            let session = asks(&served, Method::POST, "/v1/sessions", Some(&start));
            let session = session["session"].as_str().unwrap();
            for _ in 1..turns {
                let say = json!({ "text": "Thank you.\r\nAnd again?" });
                asks(
                    &served,
                    Method::POST,
                    &format!("/v1/sessions/{session}/messages"),
                    Some(&say),
                );
            }
            let contexts = asks(
                &served,
                Method::GET,
                &format!("/v1/sessions/{session}/contexts"),
                None,
            );
            let contexts = contexts["items"].as_array().unwrap();
            assert_eq!(contexts.len(), count, "{contexts:#?}");
            for context in contexts {
                let effect = context["effect"].as_str().unwrap();
                page.value("window.copied = undefined");
                page.value(&format!(
                    "location.hash = {}",
                    json!(format!("#/s/{session}/contexts/{effect}"))
                ));
                page.wait(&format!(
                    "document.querySelector('.segments') && document.querySelector('.calls-table tr.active a')?.hash.includes({})",
                    json!(format!("/contexts/{effect}"))
                ));
                page.clicks("Copy JSON");
                page.wait("window.copied");
                let copied = page.value("window.copied");
                let copied: Json = serde_json::from_str(copied.as_str().unwrap()).unwrap();
                let body = asked.recv().unwrap();
                assert_eq!(shown(&copied), sent(&body), "{entry} {effect}");
                shares_add_up(&mut page, &served, &copied, context);
            }
        }
        assert_eq!(page.faults, Vec::<String>::new());
    }

    /// The kept parts on the screen are those of the call before, to the byte.
    fn shares_add_up(page: &mut Browser, served: &Served, copied: &Json, context: &Json) {
        let session = page.value("location.hash.split('/')[2]");
        let of = format!(
            "/v1/sessions/{}/contexts/{}?show=diff",
            session.as_str().unwrap(),
            context["effect"].as_str().unwrap()
        );
        let change = tokio::runtime::Runtime::new()
            .unwrap()
            .block_on(served.json(Method::GET, &of, None));
        // The first call of an agent has none before it.
        let prefix = change.1["prefix"].as_u64().unwrap_or(0);
        if prefix > 0 {
            page.wait("document.querySelector('.segment.kept, .segment.part')");
        }
        let shares =
            page.value("[...document.querySelectorAll('.segment')].map((one) => one.classList[1])");
        let mut upto = 0;
        for (share, segment) in shares
            .as_array()
            .unwrap()
            .iter()
            .zip(copied["segments"].as_array().unwrap())
        {
            let from = upto;
            upto += segment["bytes"].as_u64().unwrap();
            let expected = if upto <= prefix {
                "kept"
            } else if from >= prefix {
                "new"
            } else {
                "part"
            };
            assert_eq!(share, expected, "{from} to {upto} of {prefix}");
        }
        assert_eq!(upto, copied["bytes"].as_u64().unwrap());
    }

    /// The table of effects, row by row: line, call, class, standing, attempts.
    fn table(page: &mut Browser) -> Json {
        page.value(
            "[...document.querySelectorAll('table.effects tbody tr')].map((row) => [
                Number(row.querySelector('td.num a').textContent.slice(1)),
                row.querySelector('.main code').textContent.split('(')[0],
                row.querySelector('.class').textContent,
                row.querySelector('.standing').textContent,
                Number(row.querySelector('.attempts').textContent.replace('–', '0')),
            ])",
        )
    }

    /// The same, as the program tells it.
    fn told(world: &World, session: &str) -> Json {
        let rows = world.json_lines(&["effects", session]).into_iter();
        let rows = rows.map(|row| {
            json!([
                row["line"],
                row["tool"],
                row["class"],
                row["standing"],
                row["attempts"]
            ])
        });
        rows.collect()
    }

    impl Desk {
        fn shows_effects(&mut self, session: &str, tool: &str, standing: &str) {
            self.goes(&format!("#/s/{session}/effects"));
            self.page.wait(&format!(
                "[...document.querySelectorAll('table.effects tbody tr')].some((one) =>
                    one.querySelector('.main code').textContent.startsWith({}) && one.querySelector('.standing').textContent === {})",
                json!(tool),
                json!(standing)
            ));
            assert_eq!(
                table(&mut self.page),
                told(&self.world, session),
                "{session}"
            );
        }
    }

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn effects_stand_as_the_program_tells_them_also_after_a_kill() {
        let mut desk = Desk::open();
        let [pays, wires, logs_in, _] = [0, 1, 2, 3].map(|at| desk.session(at).to_owned());
        desk.shows_effects(&pays, "pay", "waits for approval");
        desk.shows_effects(&wires, "wire", "in doubt");
        desk.shows_effects(&logs_in, "login", "waits for input");
        desk.goes(&format!("#/s/{pays}/effects"));
        desk.page.wait("document.querySelector('.effects')");
        let approve = json!({ "as": "manager" });
        let question = desk.asks(&format!("/v1/sessions/{pays}/questions"));
        let question = question["items"][0]["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/sessions/{pays}/questions/{question}/approve");
        asks(&desk.served, Method::POST, &path, Some(&approve));
        desk.shows_effects(&pays, "pay", "done");

        // The server dies while the money is being wired.
        let start = json!({ "definition": "refund", "entry": "wirer", "message": "Wire it." });
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let begun = desk.served.json(Method::POST, "/v1/sessions", Some(start));
        let (status, begun) = runtime.block_on(begun);
        assert_eq!(status, 201, "{begun}");
        let session = begun["session"].as_str().unwrap().to_owned();
        desk.goes(&format!("#/s/{session}/effects"));
        desk.page.wait("document.querySelector('table.effects')");
        let at = desk.served.at.trim_start_matches("http://").to_owned();
        desk.served.kill();
        desk.served = Served::listening(&desk.world, &at);
        desk.page.wait("document.querySelector('.live.is')");
        desk.page.faults.clear();
        desk.shows_effects(&session, "wire", "in doubt");
        desk.page.clicks("It happened…");
        desk.page.clicks("Say that wire happened");
        desk.page.wait("![...document.querySelectorAll('table.effects .standing')].some((one) => one.textContent === 'in doubt')");
        let ended = told(&desk.world, &session);
        assert_eq!(table(&mut desk.page), ended);
        assert!(
            ended[0][3].as_str().unwrap().starts_with("done (says "),
            "{ended}"
        );
        desk.stays_clean();
    }
}
