//! The facts in the boxes of agents, tools and people: only settings that allow, forbid or limit what these do.

use super::Fact;
use crate::words::{count, money, span};
use std::fmt::Write as _;
use steersman_machine::network::search::{Method, Plan, Scorer};
use steersman_machine::network::{
    AgentDef, Approve, Does, ModelAgent, Network, OnTimeout, PersonDef, Reflect, Requires, Silence,
    Source, ToolDef, ToolUse, Turns, Wait, WaitOn,
};
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::{Expr, Template};
use steersman_machine::values::types::{Parameters, TypeKind};

/// Returns a text in one line.
pub(super) fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn when(expr: &Expr) -> String {
    flat(&expr.source)
}

/// Returns true if an expression always holds.
pub(super) fn always(expr: &Expr) -> bool {
    expr.source.trim() == "true"
}

fn words(template: &Template) -> String {
    flat(&template.source)
}

/// Renders a span of time.
pub(super) fn time(millis: u64) -> String {
    span(i64::try_from(millis).unwrap_or(i64::MAX))
}

/// Describes the kind of an agent, for the text next to its name.
pub(super) fn note(def: &AgentDef) -> String {
    match &def.does {
        Does::Model(_) => {
            let mut models: Vec<&str> = Vec::new();
            for model in def.models() {
                if !models.contains(&&*model.model) {
                    models.push(&model.model);
                }
            }
            format!("model {}", models.join(", "))
        }
        Does::Run { tool, .. } => format!("runs {tool}"),
        Does::Route(_) => "routed".to_owned(),
    }
}

/// Describes a person, for the text next to the name.
pub(super) fn person_note(person: &PersonDef) -> String {
    if person.role == person.name {
        "person".to_owned()
    } else {
        format!("person, role {}", person.role)
    }
}

pub(super) fn person(person: &PersonDef) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(timeout) = person.timeout {
        let then = match (&person.on_timeout, &person.instead) {
            (_, Some(instead)) => format!(", then {instead} acts instead"),
            (Some(Silence::Answer(text) | Silence::Say(text)), None) => {
                format!(", then {}", words(text))
            }
            (None, None) => String::new(),
        };
        facts.push(Fact::new("time", format!("{}{then}", time(timeout))));
    }
    if let Some(reach) = &person.reach {
        facts.push(Fact::new("told by", reach.to_string()));
    }
    facts
}

/// Returns the facts that decide what an agent may do.
pub(super) fn agent(network: &Network, def: &AgentDef) -> Vec<Fact> {
    let mut facts = Vec::new();
    match &def.does {
        Does::Model(model) => {
            if *model.net != *"chat" {
                facts.push(Fact::new("net", model.net.to_string()));
            }
            turns(def, &mut facts);
            of_model(network, model, &mut facts);
            output(def, &mut facts);
        }
        Does::Run { tool: name, .. } => {
            if let Some(def) = network.tools.get(name) {
                tool(def, None, &mut facts);
            }
        }
        Does::Route(_) => {}
    }
    facts
}

/// Returns the facts that hold for an agent in every mode.
pub(super) fn of_all_modes(def: &AgentDef) -> Vec<Fact> {
    let mut facts = Vec::new();
    turns(def, &mut facts);
    output(def, &mut facts);
    facts
}

/// Returns the facts of an agent in one mode.
pub(super) fn of_mode(network: &Network, model: &ModelAgent) -> Vec<Fact> {
    let mut facts = Vec::new();
    if *model.net != *"chat" {
        facts.push(Fact::new("net", model.net.to_string()));
    }
    of_model(network, model, &mut facts);
    facts
}

fn turns(def: &AgentDef, facts: &mut Vec<Fact>) {
    match def.turns {
        Some(Turns::Once) => facts.push(Fact::new("turns", "once")),
        Some(Turns::Dialogue) => facts.push(Fact::new("turns", "dialogue")),
        Some(Turns::Task) => facts.push(Fact::new("turns", "task")),
        None => {}
    }
}

/// Adds the facts about an agent's answer.
fn output(def: &AgentDef, facts: &mut Vec<Fact>) {
    if let Some(into) = def.output.as_ref().and_then(|output| output.into.as_ref()) {
        facts.push(Fact::new("output", format!("state.{into}")));
    }
    if let Some(reflect) = &def.reflect {
        facts.push(Fact::new("judged", judged(reflect)));
    }
}

/// Describes the judge, the number of rounds, and the condition.
fn judged(reflect: &Reflect) -> String {
    let by = reflect.by.as_deref().unwrap_or("itself");
    let mut text = format!(
        "by {by}, {} at most",
        count(u64::from(reflect.rounds), "round")
    );
    if !always(&reflect.when) {
        let _ = write!(text, ", if {}", when(&reflect.when));
    }
    text
}

/// Adds the facts of a search: its method, the source of its values, and its budget.
fn search(plan: &Plan, facts: &mut Vec<Fact>) {
    let mut how = format!("{}, n {}", plan.method.word(), plan.n);
    if plan.method != Method::BestOf {
        let _ = write!(how, ", width {}", plan.width);
    }
    let _ = write!(how, ", depth {}", plan.depth);
    facts.push(Fact::new("search", how));
    let worth = match &plan.score {
        None => "1 for every answer".to_owned(),
        Some(Scorer::Expr(expr)) => when(expr),
        Some(Scorer::Tool(name)) => format!("as tool {name} says"),
        Some(Scorer::Agent(name)) => format!("as {name} says"),
    };
    let enough = plan
        .enough
        .map_or_else(String::new, |enough| format!(", {enough} is enough"));
    facts.push(Fact::new("worth", format!("{worth}{enough}")).of_tool());
    let budget = [
        plan.calls.map(|calls| count(calls, "model call")),
        plan.tokens.map(|tokens| count(tokens, "token")),
        plan.micros.map(money),
    ];
    let budget: Vec<String> = budget.into_iter().flatten().collect();
    if !budget.is_empty() {
        facts.push(Fact::new("budget", budget.join(", ")).of_tool());
    }
}

fn of_model(network: &Network, model: &ModelAgent, facts: &mut Vec<Fact>) {
    if let Some(plan) = &model.search {
        search(plan, facts);
    }
    for before in &model.before {
        let text = format!("{}, ahead of every turn", before.tool);
        facts.push(Fact::new("before", text));
    }
    // The tools of a server are listed at its place among the others.
    let mut next = 0;
    for (place, used) in model.tools.iter().enumerate() {
        for server in model.servers.iter().filter(|s| s.at == place) {
            facts.push(Fact::new("tools", format!("all of {}", server.server)));
        }
        next = place + 1;
        let steersman_machine::network::Offer::Tool(name) = &used.of else {
            continue;
        };
        if used.implied {
            continue;
        }
        if let Some(def) = network.tools.get(name) {
            tool(def, Some(used), facts);
        }
    }
    for server in model.servers.iter().filter(|s| s.at >= next) {
        facts.push(Fact::new("tools", format!("all of {}", server.server)));
    }
}

/// The word before the names of built-in tools.
const BUILT_IN: &str = "built in";

/// Adds the facts of a tool, its conditions included. Built-in tools without further facts share one row.
fn tool(def: &ToolDef, used: Option<&ToolUse>, facts: &mut Vec<Fact>) {
    let at = facts.len();
    rows_of_tool(def, used, facts);
    if facts.len() > at + 1 || facts[at].word != BUILT_IN {
        return;
    }
    // The rows after a tool tell if it has facts of its own.
    let mut alone = facts
        .windows(2)
        .map(|rows| rows[0].word == BUILT_IN && !rows[1].of_tool);
    if let Some(before) = alone.position(|alone| alone) {
        let more = facts.remove(at);
        let _ = write!(facts[before].text, ", {}", more.text);
    }
}

fn rows_of_tool(def: &ToolDef, used: Option<&ToolUse>, facts: &mut Vec<Fact>) {
    let seen = used.map_or(&def.name, |used| &used.seen);
    let named = if *seen == def.name {
        seen.to_string()
    } else {
        format!("{seen} ({})", def.name)
    };
    let does = does(&def.source);
    let class = match &def.source {
        Source::BuiltIn(_) => String::new(),
        _ => format!(", {}", def.effect.word()),
    };
    let word = match &def.source {
        Source::BuiltIn(_) => BUILT_IN,
        _ => "tool",
    };
    facts.push(Fact::new(word, format!("{named}{class}{does}")));
    if let Some(offered) = used.and_then(|used| used.when.as_ref()) {
        facts.push(Fact::new("offered", format!("if {}", when(offered))).of_tool());
    }
    if let Parameters::Fields(fields) = &def.parameters {
        let secrets = fields.iter().filter(|(_, ty)| ty.kind == TypeKind::Secret);
        for (name, _) in secrets {
            facts.push(Fact::new("asks", format!("user for {name}")).of_tool());
        }
    }
    let own = used.map_or(&[][..], |used| &used.requires);
    let needs = needs(def.requires.iter().chain(own));
    facts.extend(needs.into_iter().map(Fact::of_tool));
    let own = used.map_or(&[][..], |used| &used.approve);
    for approve in def.approve.iter().chain(own) {
        facts.push(Fact::new("approved", approved(approve)).of_tool());
    }
    if let Some(reflect) = &def.reflect {
        facts.push(Fact::new("judged", judged(reflect)).of_tool());
    }
    if let Some(then) = &def.then {
        facts.push(Fact::new("then", then.tool.to_string()).of_tool());
    }
    if let Some(mode) = &def.mode {
        facts.push(Fact::new("then mode", words(mode)).of_tool());
    }
}

pub(super) fn needs<'a>(requires: impl Iterator<Item = &'a Requires>) -> Vec<Fact> {
    requires
        .map(|requires| Fact::new("needs", when(&requires.that)))
        .collect()
}

fn approved(approve: &Approve) -> String {
    let mut text = String::from("by ");
    for (k, asked) in approve.line().enumerate() {
        if k > 0 {
            text.push_str(", then ");
        }
        text.push_str(&asked.by);
        if let Some(timeout) = asked.timeout {
            let _ = write!(text, " ({})", time(timeout));
        }
        match asked.on_timeout {
            OnTimeout::Approve if asked.timeout.is_some() => text.push_str(", then approved"),
            _ => {}
        }
    }
    if !always(&approve.when) {
        let _ = write!(text, ", if {}", when(&approve.when));
    }
    text
}

/// Describes what a tool does, if its class does not show it; otherwise empty.
fn does(source: &Source) -> String {
    match source {
        Source::Wait(wait) => format!(", waits for {}", waits(wait)),
        Source::Ask(person) => format!(", asks {person}"),
        Source::Send(agent) => format!(", tells {agent}"),
        Source::Mcp { server, .. } => format!(", of {server}"),
        Source::State => ", sets state".to_owned(),
        Source::BuiltIn(BuiltIn::AskUser) => " (asks user)".to_owned(),
        Source::BuiltIn(_) | Source::Http(_) | Source::Command { .. } | Source::Native { .. } => {
            String::new()
        }
    }
}

fn waits(wait: &Wait) -> String {
    let parts = |parts: &[Wait], word: &str| {
        let parts: Vec<String> = parts.iter().map(waits).collect();
        parts.join(word)
    };
    let on = match &wait.on {
        WaitOn::Event { event, .. } => format!("event {event}"),
        WaitOn::Time(span) => words(span),
        WaitOn::Until(moment) => words(moment),
        WaitOn::Branches(_) => "branches".to_owned(),
        WaitOn::Ticks(ticks) => format!("{ticks} commits"),
        WaitOn::When(expr) => when(expr),
        WaitOn::Any(of) => parts(of, " or "),
        WaitOn::All(of) => parts(of, " and "),
    };
    match wait.timeout {
        Some(timeout) => format!("{on} ({})", time(timeout)),
        None => on,
    }
}

/// Returns the agents that judge the work of an agent, each with a label.
pub(super) fn judges(network: &Network, def: &AgentDef) -> Vec<(Name, String)> {
    let mut judges: Vec<(Name, String)> = Vec::new();
    let mut one = |by: Option<&Name>, what: String| {
        if let Some(by) = by
            && !judges.iter().any(|(b, w)| b == by && *w == what)
        {
            judges.push((by.clone(), what));
        }
    };
    let answer = def.reflect.as_ref();
    one(
        answer.and_then(|reflect| reflect.by.as_ref()),
        "has its answer judged".to_owned(),
    );
    let mut tool = |name: &Name| {
        let reflect = network
            .tools
            .get(name)
            .and_then(|tool| tool.reflect.as_ref());
        one(
            reflect.and_then(|reflect| reflect.by.as_ref()),
            format!("has {name} judged"),
        );
    };
    for used in def.offers() {
        if let steersman_machine::network::Offer::Tool(name) = &used.of {
            tool(name);
        }
    }
    for plan in def.models().filter_map(|model| model.search.as_ref()) {
        if let Some(Scorer::Agent(name)) = &plan.score {
            one(Some(name), "has branches judged".to_owned());
        }
    }
    judges
}

/// Returns the people that an agent's tools ask, each with the purpose.
pub(super) fn asked(network: &Network, def: &AgentDef) -> Vec<(String, String)> {
    let mut asked: Vec<(String, String)> = Vec::new();
    let mut one = |person: &str, what: String| {
        if network.people.contains_key(person)
            && !asked.iter().any(|(p, w)| p == person && *w == what)
        {
            asked.push((person.to_owned(), what));
        }
    };
    let mut of_tool = |tool: &ToolDef, more: &[Approve]| {
        for approve in tool.approve.iter().chain(more) {
            let mut before = None;
            for step in approve.line() {
                let late = before.map_or_else(String::new, |before| {
                    format!(", if {before} does not answer")
                });
                one(&step.by, format!("approval of {}{late}", tool.name));
                before = Some(&step.by);
            }
        }
        if let Source::Ask(person) = &tool.source {
            one(person, tool.name.to_string());
        }
    };
    match &def.does {
        Does::Model(_) => {
            for used in def.offers() {
                if let steersman_machine::network::Offer::Tool(name) = &used.of
                    && let Some(tool) = network.tools.get(name)
                {
                    of_tool(tool, &used.approve);
                }
            }
        }
        Does::Run { tool, .. } => {
            if let Some(tool) = network.tools.get(tool) {
                of_tool(tool, &[]);
            }
        }
        Does::Route(_) => {}
    }
    asked
}
