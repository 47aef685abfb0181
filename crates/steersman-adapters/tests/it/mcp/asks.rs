//! Questions of servers while their tools run, as the port of a tool sees them.

use super::http::{EVENTS, json_of, read, status};
use super::{Diary, call, of, scripted};
use crate::tools::shown;
use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex};
use steersman_adapters::mcp::McpTools;
use steersman_machine::network::Network;
use steersman_machine::stored::ids::Name;
use steersman_machine::view::mapping::Fault;
use steersman_runtime::Boxed;
use steersman_runtime::fields::Fields;
use steersman_runtime::toolset::{
    Given, Leave, Question, StepBegun, StepEnd, Steps, ToolRun, Toolset as _,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A person who answers questions, and what was asked.
pub(crate) struct Person {
    answers: fn(&Question, &Json) -> Given,
    fields: Json,
    asked: Mutex<Vec<Question>>,
    steps: Mutex<Vec<String>>,
}

impl Person {
    fn new(fields: Json, answers: fn(&Question, &Json) -> Given) -> Arc<Self> {
        Arc::new(Self {
            answers,
            fields,
            asked: Mutex::default(),
            steps: Mutex::default(),
        })
    }

    /// Answers every question with the same fields.
    fn gives(fields: Json) -> Arc<Self> {
        Self::new(fields, |_, fields| Given::Fields(fields.clone()))
    }

    fn declines() -> Arc<Self> {
        Self::new(Json::Null, |_, _| Given::Declined)
    }

    /// Gives these fields, and consents to the defaults of all others.
    pub(crate) fn consents(fields: Json) -> Arc<Self> {
        Self::new(fields, |question, fields| {
            let wanted = Fields::read(&question.schema).unwrap();
            Given::Fields(wanted.given(&fields.to_string()).unwrap())
        })
    }

    fn asked(&self) -> Vec<Question> {
        self.asked.lock().unwrap().clone()
    }
}

struct Begun(Arc<Person>, Name);

impl StepBegun for Begun {
    fn end(self: Box<Self>, end: StepEnd) -> Boxed<'static, Result<(), Fault>> {
        let how = if end.is_ok() { "done" } else { "failed" };
        self.0
            .steps
            .lock()
            .unwrap()
            .push(format!("{} {how}", self.1));
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Steps for Person {
    fn begin(self: Arc<Self>, name: Name) -> Boxed<'static, Leave> {
        let begun = Box::new(Begun(self, name));
        Box::pin(std::future::ready(Leave::Begin(begun)))
    }

    fn wait(self: Arc<Self>, _: Name, _: u64) -> Boxed<'static, Result<(), Fault>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn ask(self: Arc<Self>, question: Question) -> Boxed<'static, Result<Given, Fault>> {
        let given = match question.declined {
            None => (self.answers)(&question, &self.fields),
            Some(_) => Given::Declined,
        };
        self.asked.lock().unwrap().push(question);
        Box::pin(std::future::ready(Ok(given)))
    }
}

/// A call that this person is asked for.
fn asks(network: &Arc<Network>, person: &Arc<Person>) -> ToolRun {
    ToolRun {
        steps: Some(person.clone()),
        ..call(network)
    }
}

async fn said(tools: &McpTools, network: &Arc<Network>, person: &Arc<Person>) -> String {
    let run = asks(network, person);
    shown(&tools.run(&run, &CancellationToken::new()).await)
}

#[tokio::test]
async fn a_person_answers_in_the_middle_of_a_call() {
    let diary = Diary::new("asks");
    let tools = McpTools::default();
    let network = scripted(&diary, "", "books", "");
    let anna = Person::gives(json!({ "when": "2026-12-24", "seats": 2 }));
    assert_eq!(
        said(&tools, &network, &anna).await,
        r#"done: "booked when:2026-12-24,seats:2""#
    );
    let [asked] = &anna.asked()[..] else {
        panic!("one question");
    };
    assert_eq!(asked.message, "Which day?");
    assert!(!asked.parks && asked.declined.is_none());
    let schema: Json = serde_json::from_str(&asked.schema).unwrap();
    assert_eq!(schema["required"], json!(["when"]));
    assert_eq!(schema["properties"]["seats"]["default"], 1);
    let ben = Person::declines();
    assert_eq!(said(&tools, &network, &ben).await, r#"done: "declined""#);
    assert!(
        anna.steps.lock().unwrap().is_empty(),
        "a connection has no steps"
    );
}

#[tokio::test]
async fn a_form_for_a_secret_and_an_address_are_declined() {
    let diary = Diary::new("secrets");
    let tools = McpTools::default();
    for (tool, why) in [
        ("logs_in", "nobody is asked: `password` looks like a secret"),
        (
            "sends_away",
            "nobody is sent to an address that a server names",
        ),
    ] {
        let person = Person::gives(json!({}));
        let said = said(&tools, &scripted(&diary, "", tool, ""), &person).await;
        assert_eq!(said, r#"done: "declined""#);
        let asked = person.asked().remove(0);
        let declined = asked.declined.unwrap();
        assert!(declined.starts_with(why), "{declined}");
    }
}

#[tokio::test]
async fn what_a_server_asks_tells_no_secret() {
    let diary = Diary::new("masked");
    let more = "env: { SECRET: \"{{ secrets.token }}\" }";
    let network = scripted(&diary, "", "tells", more);
    let person = Person::gives(json!({}));
    said(&McpTools::default(), &network, &person).await;
    let asked = person.asked().remove(0);
    assert!(asked.message.starts_with("Is it "), "{}", asked.message);
    assert!(!asked.message.contains("tok-123456"), "{}", asked.message);
}

/// A server that speaks no version with a greeting.
#[tokio::test]
async fn a_call_of_requests_that_stand_alone_brings_what_was_asked_for() {
    let diary = Diary::new("alone");
    let tools = McpTools::default();
    let network = scripted(&diary, "alone", "reserves", "");
    let person = Person::gives(json!({ "when": "2026-12-24", "seats": 1 }));
    let said = said(&tools, &network, &person).await;
    assert!(
        said.starts_with(r#"done: "booked when:2026-12-24,seats:1"#),
        "{said}"
    );
    let asked = person.asked().remove(0);
    assert!(asked.parks, "nothing runs while a person is asked");
    assert_eq!(*person.steps.lock().unwrap(), ["request 1 done"]);
    assert_eq!((diary.lines("asked"), diary.lines("asked again")), (2, 1));
    // It is the greeting that fails, and only once for each connection.
    assert_eq!(diary.lines("started"), 2);
}

/// A server over HTTP with two tools that ask for their own name, each on the stream of its call.
async fn asking_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (answers, _) = watch::channel(Vec::<Json>::new());
    let answers = Arc::new(answers);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, answers.clone()));
        }
    });
    url
}

async fn serve(mut stream: TcpStream, answers: Arc<watch::Sender<Vec<Json>>>) {
    while let Some((method, _, message)) = read(&mut stream).await {
        let id = &message["id"];
        let answer = |result: Json| json!({ "jsonrpc": "2.0", "id": id, "result": result });
        let reply = match (method.as_str(), message["method"].as_str()) {
            ("GET", _) => status("405 Method Not Allowed"),
            (_, Some("initialize")) => json_of(&answer(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "asking", "version": "1" },
            }))),
            (_, Some("tools/call")) => {
                let tool = message["params"]["name"].as_str().unwrap();
                let question = json!({ "jsonrpc": "2.0", "id": tool, "method": "elicitation/create", "params": {
                    "message": format!("{tool}?"),
                    "requestedSchema": { "type": "object", "properties": { "x": { "type": "string" } } },
                } });
                let event = format!("event: message\ndata: {question}\n\n");
                let events = [EVENTS, event.as_bytes()].concat();
                if stream.write_all(&events).await.is_err() {
                    return;
                }
                let mut came = answers.subscribe();
                let is_own = |all: &Vec<Json>| all.iter().any(|one| one["id"] == tool);
                let all = came.wait_for(is_own).await.unwrap().clone();
                let own = all.iter().find(|one| one["id"] == tool).unwrap();
                let text = own["result"]["content"]["x"].as_str().unwrap_or("nothing");
                let result = answer(json!({ "content": [{ "type": "text", "text": text }] }));
                let event = format!("event: message\ndata: {result}\n\n");
                let _ = stream.write_all(event.as_bytes()).await;
                return;
            }
            (_, None) if message["result"].is_object() => {
                answers.send_modify(|all| all.push(message.clone()));
                status("202 Accepted")
            }
            _ => status("202 Accepted"),
        };
        if stream.write_all(&reply).await.is_err() {
            return;
        }
    }
}

/// Calls that run side by side on one connection: each question goes to the person of its own call.
#[tokio::test]
async fn a_question_over_http_belongs_to_the_call_on_whose_stream_it_comes() {
    let url = asking_server().await;
    let tools = McpTools::default();
    let network = |tool: &str| of(&format!("url: {url}\n    effect: read"), tool);
    let (one, two) = (network("one"), network("two"));
    let (anna, ben) = (
        Person::gives(json!({ "x": "anna" })),
        Person::gives(json!({ "x": "ben" })),
    );
    let (first, second) = tokio::join!(said(&tools, &one, &anna), said(&tools, &two, &ben));
    assert_eq!((&*first, &*second), (r#"done: "anna""#, r#"done: "ben""#));
    assert_eq!(anna.asked()[0].message, "one?");
    assert_eq!(ben.asked()[0].message, "two?");
}
