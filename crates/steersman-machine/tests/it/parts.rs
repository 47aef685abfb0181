//! Messages and results of several parts: texts, and artifacts between them.

use std::sync::Arc;
use steersman_machine::context::{Content, RenderCache, request};
use steersman_machine::network::Network;
use steersman_machine::stored::bounds::PARTS;
use steersman_machine::stored::codec;
use steersman_machine::stored::commit::Text;
use steersman_machine::stored::ids::{Bodies, Body, Id};
use steersman_machine::stored::interaction::{Class, How, Interaction, Origin};
use steersman_machine::stored::outcome::{Mapped, NewArtifact, Outcome};
use steersman_machine::stored::parts::{NewPart, Part, Parts, Reference};
use steersman_machine::tick::effect::Offered;
use steersman_testkit::log::{Log, result};
use steersman_testkit::net::{Draft, offers};
use steersman_testkit::world::{Fault, Held, World};

const MAIN: Id = Id::MAIN;

const DEFINITION: &str = "
models: { default: scripted }
tools:
  look: { description: Looks., parameters: { a: string }, effect: read, native: 1 }
agents:
  desk: { description: The desk., system: You help., tools: [look] }
entry: desk
";

fn photo() -> Reference {
    Reference {
        name: "photo.png".into(),
        media: "image/png".into(),
        hash: [7; 32],
        len: 1_200,
    }
}

/// The same picture, as an outcome refers to it.
fn new_photo() -> NewArtifact {
    NewArtifact {
        name: "photo.png".into(),
        media: "image/png".into(),
        hash: [7; 32],
        len: 1_200,
        content: None,
    }
}

/// Texts of the conversation in a request.
fn seen(log: &Log, agent: Id) -> Vec<String> {
    let request = request(
        &log.cx(),
        log,
        &log.snapshot,
        agent,
        &mut RenderCache::default(),
    );
    let request = request.expect("it renders");
    let texts = request.segments.iter().filter_map(|s| match &s.content {
        Content::User(text) | Content::Result { text, .. } => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn a_model_reads_the_names_of_artifacts_where_they_stand() {
    let mut log = Log::new(DEFINITION);
    let desk = log.start("desk", "Hello.");
    let message = log.line(|l| {
        let (what, how) = (l.text("What is this?"), l.text("Be brief."));
        let parts = [
            Part::Text(what.k()),
            Part::Artifact(photo()),
            Part::Text(how.k()),
        ];
        let body = l.parts(parts);
        l.said(desk, Origin::Outside("user".into()), body);
        body
    });
    let call = log.line(|l| {
        l.answer(desk, None);
        l.call(desk, "look", r#"{"a":"photo.png"}"#)
    });
    log.line(|l| {
        let body = l.parts([Part::Artifact(photo())]);
        l.push(
            desk,
            Interaction::Result(result(call, How::Done, Some(body), None)),
        );
    });
    let stands = "(artifact photo.png: image/png, 1200 bytes)";
    let whole = format!("What is this?\n{stands}\nBe brief.");
    assert_eq!(seen(&log, desk), ["Hello.", &whole, stands]);
    // The parts themselves are there, for what sends the content to a model.
    let Parts::Several(parts) = log.parts(message) else {
        panic!("it has three parts");
    };
    assert_eq!(parts[1], Part::Artifact(photo()));
    assert_eq!(
        log.parts(message).artifacts().collect::<Vec<_>>(),
        [&photo()]
    );
    // One of its texts is erased, then the list.
    log.erase(Body::new(message.line(), 0));
    let left = format!("[erased]\n{stands}\nBe brief.");
    assert_eq!(seen(&log, desk), ["Hello.", &left, stands]);
    log.erase(message);
    assert_eq!(seen(&log, desk), ["Hello.", "[erased]", stands]);
}

/// An agent with a tool.
fn network() -> Network {
    Draft::new("parts")
        .agent("a", offers(&["look"], &[]))
        .native("look", Class::Read)
        .build()
}

/// Lets the agent call `look` on a branch, which gives this.
fn looks(w: &mut World, branch: Id, gives: Mapped) -> Result<(), Fault> {
    w.thinks(branch, "a", "", &[("look", serde_json::json!({}))])?;
    let effect = w.find(branch, &Held::Ready, "look").expect("it runs");
    let outcome = Offered::Outcome {
        effect,
        attempt: 1,
        outcome: Outcome::Mapped(gives),
    };
    w.offer(branch, vec![outcome])?;
    Ok(())
}

/// The body of the newest result on a branch, and the names of the artifacts that the call made.
fn gave(w: &World, branch: Id) -> (Body, Vec<String>) {
    let agent = w.agent(branch, "a").expect("it began");
    let stack = w.stack(w.at(branch), agent);
    let result = stack.iter().rev().find_map(|i| match i {
        Interaction::Result(result) => Some(result),
        _ => None,
    });
    let result = result.expect("there is a result");
    let made = result.artifacts.iter().map(|a| a.name.to_string());
    (result.body.expect("it has a text"), made.collect())
}

fn with_photo(shown: &str) -> Mapped {
    Mapped {
        more: vec![
            NewPart::Artifact(new_photo()),
            NewPart::Text("As wanted.".to_owned()),
        ],
        artifacts: vec![new_photo()],
        ..Mapped::plain(How::Done, None, shown)
    }
}

#[test]
fn an_outcome_with_parts_becomes_a_result_with_parts() -> Result<(), Fault> {
    let mut w = World::new(Arc::new(network()));
    w.say(MAIN, "Go.")?;
    looks(&mut w, MAIN, with_photo("Here."))?;
    let (body, made) = gave(&w, MAIN);
    assert_eq!(made, ["photo.png"]);
    let told = "Here.\n(artifact photo.png: image/png, 1200 bytes)\nAs wanted.";
    assert_eq!(*w.text(body), *told);
    let given = with_photo("Here.");
    assert_eq!(given.told(), told);
    assert_eq!(w.of_outcome(body), (given.shown, given.more));
    // The line is stored and read.
    let line = w.line(body.line());
    let (bytes, hash) = codec::encode(line, &[0; 32], &[1; 16]);
    assert_eq!(
        codec::verify(&bytes, &[0; 32], &[1; 16]),
        Ok((line.clone(), hash))
    );
    // An outcome of an artifact alone.
    let alone = Mapped {
        shown: None,
        more: vec![NewPart::Artifact(new_photo())],
        ..Mapped::plain(How::Done, None, "")
    };
    looks(&mut w, MAIN, alone)?;
    let (body, _) = gave(&w, MAIN);
    let parts = [Part::Artifact(photo())];
    assert_eq!(w.parts(body), Parts::Several(parts.into()));
    Ok(())
}

#[test]
fn parts_come_along_when_a_branch_is_adopted_or_rewound() -> Result<(), Fault> {
    let mut w = World::new(Arc::new(network()));
    w.say(MAIN, "Go.")?;
    let branch = w.fork(w.branch(MAIN).head, None, None, false)?;
    looks(&mut w, branch, with_photo("Here."))?;
    let there = gave(&w, branch);
    w.adopt(branch)?;
    assert_eq!(gave(&w, MAIN), there);
    let at = w.branch(MAIN).head;
    looks(&mut w, MAIN, Mapped::plain(How::Done, None, "Nothing."))?;
    let back = w.rewind(at, None, None)?;
    assert_eq!(gave(&w, back), there);
    assert!(w.text(there.0).contains("photo.png"));
    Ok(())
}

/// Two results are the same for the limit `same_call` only if their parts are, in the same order.
#[test]
fn results_are_the_same_if_their_parts_are() -> Result<(), Fault> {
    let mut w = World::new(Arc::new(network()));
    w.say(MAIN, "Go.")?;
    let mut times = |gives: Mapped| -> Result<u32, Fault> {
        looks(&mut w, MAIN, gives)?;
        let agent = w.agent(MAIN, "a").expect("it began");
        let same = w.at(MAIN).agent(agent).counters.same;
        Ok(same.expect("an exchange was closed").1)
    };
    let with = |more: Vec<NewPart>| Mapped {
        more,
        ..Mapped::plain(How::Done, None, "Here.")
    };
    let [picture, words] = [
        NewPart::Artifact(new_photo()),
        NewPart::Text("As wanted.".to_owned()),
    ];
    let other = NewPart::Artifact(NewArtifact {
        hash: [8; 32],
        ..new_photo()
    });
    let parts = with(vec![picture.clone(), words.clone()]);
    assert_eq!(times(parts.clone())?, 1);
    assert_eq!(times(parts)?, 2);
    assert_eq!(times(with(vec![other, words.clone()]))?, 1, "another one");
    assert_eq!(times(with(vec![words, picture]))?, 1, "another order");
    assert_eq!(times(with(Vec::new()))?, 1, "one text");
    assert_eq!(times(with(Vec::new()))?, 2);
    Ok(())
}

/// A text that is too large becomes an artifact; what follows it stays. A list that is too long is cut, and says so.
#[test]
fn parts_are_bounded() -> Result<(), Fault> {
    let mut w = World::new(Arc::new(network()));
    w.say(MAIN, "Go.")?;
    looks(&mut w, MAIN, with_photo(&"long ".repeat(10_000)))?;
    let (body, made) = gave(&w, MAIN);
    assert_eq!(made, ["photo.png", "look-1.txt"]);
    let text = w.text(body);
    assert!(
        text.len() < 4_000 && text.contains("`look-1.txt`"),
        "{text}"
    );
    assert!(text.ends_with("(artifact photo.png: image/png, 1200 bytes)\nAs wanted."));
    let many = Mapped {
        more: vec![NewPart::Artifact(new_photo()); 100],
        ..Mapped::plain(How::Done, None, "All of them:")
    };
    looks(&mut w, MAIN, many)?;
    let (body, _) = gave(&w, MAIN);
    let Some(Text::Parts(parts)) = w.line(body.line()).bodies.last() else {
        panic!("it has parts");
    };
    assert_eq!(parts.len(), PARTS);
    assert!(
        w.text(body).ends_with("\n(70 more parts)"),
        "{}",
        w.text(body)
    );
    Ok(())
}
