//! Networks that are built in Rust alone: those that the guide shows, and what the builder refuses.

use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;
use steersman::build::{
    Context, ContextRender, Exit, Limits, Mode, ModeExit, Model, Reflect, Route, State, ToolUse,
    Type,
};
use steersman::{DefinitionError, Network, Steersman, Turn, agent, declare, tool};

#[derive(Deserialize, JsonSchema)]
struct Search {
    query: String,
}

async fn search(search: Search) -> Result<String, String> {
    Ok(format!("one page about {}", search.query))
}

fn devops() -> Result<Network, DefinitionError> {
    let dba = agent("dba")
        .describe("Supports people with PostgreSQL databases.")
        .system("You know PostgreSQL. Answer questions on schemas, indexes and extensions alone.");
    let security = agent("security")
        .describe("Supports people with the security of PostgreSQL.")
        .system("You know PostgreSQL. Answer questions on encryption and access alone.");
    let haiku = Model::from("anthropic").model("claude-3-5-haiku-latest");
    Network::builder("devops")
        .model("default", haiku.max_tokens(1000))
        .agent(agent("team").route(Route::new().pick([&dba, &security])))
        .agent(dba)
        .agent(security)
        .entry("team")
        .limits(Limits::new().agent_calls(2))
        .build()
}

fn react() -> Result<Network, DefinitionError> {
    let search = tool("search", 1, search).read().describe("Finds pages.");
    let conclude = declare("conclude")
        .describe("Gives the answer to the user's question.")
        .parameter("answer", "string")
        .set("answer", "{{ args.answer }}");
    let reason = agent("reason").system("Say in one sentence what has to be found out next.");
    let act = agent("act")
        .system("Do what was said last, or conclude if the question is answered.")
        .tools([search.name(), conclude.name()]);
    let reasoning = State::new()
        .speakers([&reason])
        .exits([Exit::new().after_messages(1).to("acting")]);
    let acting = State::new().speakers([&act]).exits([
        Exit::new().when("state.answer is not none").to("finish"),
        Exit::new().after_messages(1).to("reasoning"),
    ]);
    let states = Route::new()
        .state("reasoning", reasoning)
        .state("acting", acting);
    Network::builder("react")
        .state("answer", "optional string")
        .tool(search)
        .declare(conclude)
        .agent(agent("react").route(states))
        .agent(reason)
        .agent(act)
        .entry("react")
        .build()
}

fn traveller() -> Result<Network, DefinitionError> {
    let choose = declare("choose")
        .describe("Takes a flight.")
        .parameter("flight", "string")
        .parameter("price", Type::from("integer").minimum(1.0))
        .set("flight", "{{ args.flight }}");
    let book = declare("book")
        .describe("Books a seat on the flight.")
        .parameter("seat", Type::new().pattern("[1-9][0-9]?[A-F]").ty("string"))
        .approve("true")
        .simulate("booked, as it seems")
        .command(["echo", "{{ state.flight }} {{ args.seat }}"]);
    let finder = agent("finder")
        .describe("Finds flights.")
        .system("List the flights on the page that fit what is asked.");
    let critic = agent("critic")
        .parameter("draft", "string")
        .system("Accept if the flight is on the date that was asked for; else say what is wrong.");
    let search = Mode::new()
        .system("Find the cheapest flight. Try several dates on branches, and take the best.")
        .tools([
            ToolUse::new().agent(&finder),
            ToolUse::from("fork").max(2).join("all"),
            ToolUse::from("choose"),
        ])
        .exits([ModeExit::new().after_tool("choose").to("seat")]);
    let seat = Mode::new()
        .system("The flight is {{ state.flight }}. Book the seat that the user wants.")
        .tools(["book"]);
    Network::builder("traveller")
        .state("flight", "optional string")
        .declare(choose)
        .declare(book)
        .agent(
            agent("traveller")
                .mode("search", search)
                .mode("seat", seat)
                .reflect(Reflect::new().by(&critic).rounds(2))
                .model_calls(15),
        )
        .agent(finder)
        .agent(critic)
        .entry("traveller")
        .build()
}

async fn asked(network: &Network, script: &str, text: &str) -> Turn {
    let steersman = Steersman::options().script_all(script).in_memory();
    let session = steersman.start(network).await.unwrap();
    session.ask(text).await.unwrap()
}

#[tokio::test]
async fn a_router_network_of_two_agents_is_built_and_answers() {
    let network = devops().unwrap_or_else(|e| panic!("{e}"));
    let script = "{ team: [ dba, finish ], dba: [ Add an index. ] }";
    let turn = asked(&network, script, "My query is slow.").await;
    assert_eq!(turn.answer().unwrap().text(), "Add an index.");
}

#[tokio::test]
async fn a_loop_of_reasoning_and_acting_is_built_as_states_and_ends_with_an_answer() {
    let network = react().unwrap_or_else(|e| panic!("{e}"));
    let script = "
reason: [ I look for owls., I know enough. ]
act:
  - { call: { search: { query: owls } } }
  - There is a page.
  - { call: { conclude: { answer: They fly at night. } } }
  - They fly at night.
";
    let turn = asked(&network, script, "When do owls fly?").await;
    assert_eq!(turn.answer().unwrap().text(), "They fly at night.");
}

#[tokio::test]
async fn an_agent_with_modes_sub_agents_a_reviewer_and_branches_is_built_and_books() {
    let network = traveller().unwrap_or_else(|e| panic!("{e}"));
    let script = "
traveller:
  - { call: { fork: { branches: [ Look on Monday., Look on Tuesday. ] } } }
  - { call: { choose: { flight: AK456, price: 370 } } }
  - { call: { book: { seat: 12A } } }
  - Booked.
traveller@b1: [ { call: { finder: { message: Monday } } }, \"AK456 is 370.\" ]
traveller@b2: [ \"None.\" ]
finder: [ AK456 costs 370. ]
critic: [ { accept: true }, { accept: true }, { accept: true } ]
";
    let steersman = Steersman::options().script_all(script).in_memory();
    let session = steersman.start(&network).await.unwrap();
    let turn = session.ask("To Anchorage, please.").await.unwrap();
    let Turn::Asks(questions) = turn else {
        panic!("a person approves the booking: {turn:?}")
    };
    let approved = session.approve(&questions[0], steersman::By::user()).await;
    approved.unwrap();
    let turn = session.settled().await.unwrap();
    assert_eq!(turn.answer().unwrap().text(), "Booked.");
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the code of a function in this file, from its head to its end.
fn function(name: &str) -> String {
    let all = include_str!("built.rs");
    let from = all.find(&format!("fn {name}()")).expect("it is here");
    let to = from + all[from..].find("\n}\n").expect("it ends") + 3;
    all[from..to].to_owned()
}

/// Returns the number of lines of code: without blank lines, and without lines that are only a text.
fn lines(code: &str) -> usize {
    let lines = code.lines().map(str::trim);
    let is_text = |line: &str| {
        line.starts_with('"') && line.trim_end_matches(&[',', ')', ';'][..]).ends_with('"')
    };
    lines
        .filter(|line| !line.is_empty() && !is_text(line))
        .count()
}

/// The guide shows these functions, and their sizes next to those of other programs.
#[test]
fn the_guide_shows_what_is_built_here_and_counts_its_lines() {
    let guide = std::fs::read_to_string(root().join("docs/guides/building.md")).unwrap();
    for (name, most) in [("devops", 33), ("react", 40), ("traveller", 59)] {
        let code = function(name);
        assert!(guide.contains(&code), "the guide does not show\n{code}");
        let n = lines(&code);
        assert!(
            guide.contains(&format!("| `{name}` | {n} |")),
            "`{name}` has {n} lines"
        );
        assert!(n <= most, "`{name}` has {n} lines");
    }
    assert!(!guide.contains("json!"));
}

/// A definition in Rust may name files that are given in Rust.
#[test]
fn a_network_in_rust_imports_definitions_and_prompts_that_are_given_as_texts() {
    let network = Network::builder("desk")
        .file(
            "shared.yaml",
            "agents: { helper: { description: Helps., system: You help. } }",
        )
        .file("desk.md", "You are the desk.")
        .import(["shared.yaml"])
        .agent(agent("desk").system("desk.md").tools(["helper"]))
        .entry("desk")
        .build()
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(network.checked().agents.contains_key("helper"));
}

#[tokio::test]
async fn a_context_says_how_messages_look_to_a_model() {
    let render = ContextRender::new().user("{{ message.from }} asks: {{ message.text }}");
    let desk = agent("desk")
        .system("You help.")
        .context(Context::new().render(render));
    let network = Network::builder("desk").agent(desk).build();
    let network = network.unwrap_or_else(|e| panic!("{e}"));
    let turn = asked(
        &network,
        r#"{ desk: [ "{{ request.last }}" ] }"#,
        "Where is 4711?",
    )
    .await;
    assert_eq!(turn.answer().unwrap().text(), "user asks: Where is 4711?");
}
