//! Context policies over random histories: each request follows the rules of every provider and does not depend on
//! earlier renders.

use crate::random::asked;
use serde_json::{Value as Json, json};
use steersman_machine::context::{Content, RenderCache, Request, purpose};
use steersman_machine::questions::Purpose;
use steersman_machine::stored::engine::COMPACT;
use steersman_testkit::log::Log;
use steersman_testkit::story::{Manner, Story, definition, opaque_with_calls};

/// Number of definitions with random policies.
const DEFINITIONS: u64 = 60;
/// Number of histories for each definition, unless `STEERSMAN_RANDOM_SESSIONS` asks for more in total.
const HISTORIES: u64 = 40;

/// The rules of a provider for a conversation.
struct Rules {
    provider: &'static str,
    /// All results come directly after their calls, with nothing in between.
    right_behind: bool,
    /// Turns of user and model alternate, and a user begins. The encoder joins neighbours of one side.
    alternate: bool,
    /// Opaque content goes back to the provider unchanged, with exactly the calls that it came with, or not at all.
    as_it_was: bool,
}

const PROVIDERS: [Rules; 4] = [
    Rules {
        provider: "OpenAI chat completions",
        right_behind: true,
        alternate: false,
        as_it_was: false,
    },
    Rules {
        provider: "OpenAI Responses",
        right_behind: false,
        alternate: false,
        as_it_was: true,
    },
    Rules {
        provider: "Anthropic Messages",
        right_behind: true,
        alternate: true,
        as_it_was: true,
    },
    Rules {
        provider: "Gemini",
        right_behind: true,
        alternate: true,
        as_it_was: true,
    },
];

/// Violations of these rules in a request.
fn faults(rules: &Rules, request: &Request) -> Vec<String> {
    let mut faults = Vec::new();
    let mut fault = |what: String| faults.push(format!("{}: {what}", rules.provider));
    let (mut owed, mut seen): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for segment in &request.segments {
        match &segment.content {
            Content::System(_) | Content::Tools(_) | Content::File(_) => {}
            Content::User(text) => {
                if rules.right_behind && !owed.is_empty() {
                    fault(format!("a message between a call and its result: {text}"));
                }
                if text.trim().is_empty() && rules.alternate {
                    fault("an empty message".to_owned());
                }
            }
            Content::Assistant {
                text,
                calls,
                opaque,
            } => {
                if rules.right_behind && !owed.is_empty() {
                    fault(format!("no result for {owed:?}"));
                }
                if text.is_none() && calls.is_empty() && opaque.is_none() {
                    fault("an answer that says nothing".to_owned());
                }
                for call in calls {
                    if seen.contains(&call.label) {
                        fault(format!("two calls are {}", call.label));
                    }
                    if !serde_json::from_str::<Json>(&call.args).is_ok_and(|args| args.is_object())
                    {
                        fault(format!("arguments that are no object: {}", call.args));
                    }
                    seen.push(call.label.clone());
                    owed.push(call.label.clone());
                }
                if let Some(opaque) = opaque.as_ref().filter(|_| rules.as_it_was) {
                    let kept: Json = serde_json::from_str(opaque).expect("as it was put in");
                    let given: Vec<Json> = calls
                        .iter()
                        .map(|c| {
                            json!([c.name, serde_json::from_str::<Json>(&c.args).expect("JSON")])
                        })
                        .collect();
                    if kept["calls"] != Json::Array(given) {
                        fault(format!("{opaque} goes back with other calls"));
                    }
                }
            }
            Content::Result { label, .. } => {
                let expected = if rules.right_behind {
                    owed.first()
                        .is_some_and(|first| first == label)
                        .then_some(0)
                } else {
                    owed.iter().position(|l| l == label)
                };
                match expected {
                    Some(at) => drop(owed.remove(at)),
                    None => fault(format!("a result without its call: {label}")),
                }
            }
        }
    }
    if !owed.is_empty() {
        fault(format!("no result for {owed:?} at the end"));
    }
    let turns = turns(request);
    if rules.alternate {
        if turns.first() != Some(&"user") {
            fault("no user begins".to_owned());
        }
        if turns.windows(2).any(|two| two[0] == two[1]) {
            fault("two turns of one side".to_owned());
        }
    }
    faults
}

/// Turns as encoders of alternating providers make them: neighbours of one side are joined, and a user begins.
fn turns(request: &Request) -> Vec<&'static str> {
    let mut turns: Vec<&str> = Vec::new();
    for segment in &request.segments {
        let side = match &segment.content {
            Content::System(_) | Content::Tools(_) => continue,
            Content::User(_) | Content::File(_) | Content::Result { .. } => "user",
            Content::Assistant { .. } => "assistant",
        };
        if turns.is_empty() && side == "assistant" {
            turns.push("user");
        }
        if turns.last() != Some(&side) {
            turns.push(side);
        }
    }
    turns
}

/// 2,400 histories under 60 sets of policies, with parallel calls, exchanges of the engine, corrections, partial
/// messages, refusals, opaque content and rewinds, and with summaries that arrive, fail or are pending.
#[test]
fn random_histories_under_random_policies_are_valid_and_do_not_depend_on_what_was_rendered_before()
{
    const MANNER: Manner = Manner {
        opaque: opaque_with_calls,
        rough: false,
    };
    let (mut requests, mut stale, mut sums, mut compacted) = (0_u32, 0_u32, 0_u32, 0_u32);
    let histories = asked("STEERSMAN_RANDOM_SESSIONS", 0) / DEFINITIONS;
    let histories = histories.max(HISTORIES);
    for of in 0..DEFINITIONS {
        let mut log = Log::of(definition(of));
        for n in 0..histories {
            let seed = of * histories + n;
            let mut story = Story::new(log, seed, MANNER);
            let steps = 6 + story.dice.below(18);
            for at in 0..steps {
                story.step();
                if story.dice.below(4) > 0 && at + 1 < steps {
                    continue;
                }
                let mut cache = std::mem::take(&mut story.cache);
                let (warm, cold) = (
                    story.ask(&mut cache),
                    story.ask(&mut RenderCache::default()),
                );
                story.cache = cache;
                assert_eq!(
                    warm.digest, cold.digest,
                    "seed {seed}, step {at}: {:#?}\n{:#?}",
                    warm.segments, cold.segments
                );
                assert_eq!(
                    warm.purpose,
                    purpose(&story.log.cx(), &story.log.snapshot, story.desk)
                );
                for rules in &PROVIDERS {
                    let faults = faults(rules, &cold);
                    assert!(
                        faults.is_empty(),
                        "seed {seed}, step {at}: {faults:#?}\n{:#?}",
                        cold.segments
                    );
                }
                requests += 1;
                sums += u32::from(warm.purpose != Purpose::Answer);
            }
            let marks = story.log.snapshot.watermarks.keys();
            stale += u32::from(marks.filter(|(_, policy)| policy.contains('/')).count() > 0);
            let state = story.log.snapshot.agent(story.desk);
            compacted += u32::from(
                state
                    .context
                    .sums
                    .get(COMPACT)
                    .is_some_and(|sum| sum.covered > 0),
            );
            assert_eq!(story.cache.differed(), 0);
            log = story.log;
        }
    }
    // The test is empty if no history reaches a boundary or a summary.
    assert!(
        requests > 6_000 && stale > 600 && sums > 200 && compacted > 200,
        "{requests} requests, {stale} histories with boundaries, {sums} for summaries, {compacted} compacted"
    );
}
