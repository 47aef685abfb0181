//! Makes a command of an act of a plan, according to the current state of the session.

use crate::desk::SAME;
use crate::judge::Finding;
use crate::plan::{Act, Random, Step};
use crate::play::{LINK, Message, World, is_done, is_unknown, words};
use crate::server::What;
use serde_json::Value as Json;

impl World {
    fn say(&mut self, session: usize, random: &mut Random) -> String {
        let steps = self.wishes.steps(session, random);
        format!("m{} do {steps}", self.messages.len() + 1)
    }

    pub(crate) fn typed(
        &mut self,
        step: &Step,
        random: &mut Random,
    ) -> Result<Vec<String>, Finding> {
        let session = step.session;
        let id = self.sessions[session].clone();
        let mut typed = match step.act {
            Act::Send => self.send(session, random)?,
            Act::Approve | Act::Edit | Act::Reject | Act::Resolve => {
                self.answer(step.act, session, random)?
            }
            Act::Fork | Act::Rewind | Act::Search | Act::Rerun => {
                self.elsewhere(step.act, session, random)?
            }
            Act::Adopt | Act::Join => self.branches(step.act, session, random)?,
            Act::Cancel => match random.below(4) {
                0 | 1 => vec!["cancel".to_owned(), id],
                2 => vec!["cancel".to_owned(), self.branch(session, random)?],
                _ => vec!["cancel".to_owned(), id, self.effect(session, random)?],
            },
            Act::Pause => words(&["pause", &id]),
            Act::Resume => words(&["resume", &id]),
            Act::Hold => self.held("hold", session, random),
            Act::Release => self.release(session, random)?,
            Act::Retry if random.percent(50) => words(&["retry", &id]),
            Act::Retry => {
                let effect = self.failed(session, random)?;
                words(&["retry", &id, "--effect", &effect])
            }
            Act::Migrate => {
                let value = format!("limit={}", random.below(90) + 11);
                words(&["migrate", &id, "--config", &value])
            }
            Act::Erase => self.erase(session, random)?,
            Act::Gc => words(&["gc", "--yes"]),
        };
        let drives = !matches!(
            step.act,
            Act::Send | Act::Pause | Act::Hold | Act::Rerun | Act::Migrate | Act::Erase | Act::Gc
        );
        if drives && random.percent(15) {
            typed.push("--no-run".to_owned());
        }
        if step.linked {
            typed.extend(words(&["--store", LINK]));
        }
        Ok(typed)
    }

    fn send(&mut self, session: usize, random: &mut Random) -> Result<Vec<String>, Finding> {
        let again: Vec<Vec<String>> = self
            .messages
            .iter()
            .filter(|m| m.session == session)
            .map(|m| m.typed.clone())
            .collect();
        if let (Some(before), true) = (random.of(&again), random.percent(8)) {
            return Ok(before.clone());
        }
        let text = self.say(session, random);
        let to = if random.percent(15) {
            self.branch(session, random)?
        } else {
            self.sessions[session].clone()
        };
        let id = format!("m{}", self.messages.len() + 1);
        let mut typed = words(&["send", &to, &text, "--id", &id]);
        if random.percent(10) {
            typed.push("--interrupt".to_owned());
        }
        if random.percent(20) {
            typed.push("--no-run".to_owned());
        }
        self.messages.push(Message {
            id,
            session,
            acknowledged: false,
            typed: typed.clone(),
        });
        Ok(typed)
    }

    /// The command that answers a hold.
    fn answer(
        &mut self,
        act: Act,
        session: usize,
        random: &mut Random,
    ) -> Result<Vec<String>, Finding> {
        // A person may type an answer twice. The second is for the hold that they saw, and not for a new one.
        let before = self.answers.iter().rfind(|(of, _)| *of == session);
        if let (Some((_, typed)), true) = (before, random.percent(12)) {
            return Ok(typed.clone());
        }
        let typed = self.new_answer(act, session, random)?;
        self.answers.push((session, typed.clone()));
        // A double click sends both answers before the first one is taken.
        if random.percent(25) {
            let mut first = typed.clone();
            first.push("--no-run".to_owned());
            self.acts_between(first)?;
        }
        Ok(typed)
    }

    fn new_answer(
        &mut self,
        act: Act,
        session: usize,
        random: &mut Random,
    ) -> Result<Vec<String>, Finding> {
        let shown = self.show(session)?;
        let kinds: &[&str] = match act {
            Act::Edit => &["approval"],
            Act::Resolve => &["doubt"],
            _ => &["approval", "repeat", "budget"],
        };
        let holds = shown["holds"].as_array().cloned().unwrap_or_default();
        let open: Vec<Json> = holds
            .into_iter()
            .filter(|hold| {
                hold["kind"]
                    .as_str()
                    .is_some_and(|kind| kinds.contains(&kind))
            })
            .collect();
        let id = self.sessions[session].clone();
        if act == Act::Resolve {
            // An effect that failed as unknown has no hold, and any person may resolve it.
            let unknown = shown["effects"].as_array().cloned().unwrap_or_default();
            let is_held = |e: &Json| open.iter().any(|hold| hold["effect"] == e["effect"]);
            let unknown = unknown.into_iter().filter(|e| e["standing"] == "unknown");
            let unknown: Vec<Json> = unknown.filter(|e| !is_held(e)).collect();
            let all: Vec<Json> = open.into_iter().chain(unknown).collect();
            return Ok(match random.of(&all) {
                Some(doubt) => self.resolve(session, doubt, random),
                None => words(&["resolve", &id, "--fail"]),
            });
        }
        let verb = if act == Act::Reject {
            "reject"
        } else {
            "approve"
        };
        let Some(hold) = random.of(&open) else {
            // With an id: without one, the command might answer a hold that opened meanwhile and that nobody saw.
            return Ok(words(&[verb, &id, "1.0"]));
        };
        Ok(match act {
            Act::Reject => self.reject(session, hold),
            Act::Edit => {
                let cents = self.wishes.other_amount(random);
                self.approve(session, hold, Some(cents))
            }
            _ => self.approve(session, hold, None),
        })
    }

    /// The command that approves a hold. What it allows is recorded before it is typed.
    pub(crate) fn approve(
        &mut self,
        session: usize,
        hold: &Json,
        cents: Option<u64>,
    ) -> Vec<String> {
        let tool = hold["tool"].as_str().unwrap_or_default();
        let mut typed = self.decides("approve", session, hold);
        // A hold that names an equal call is approved as a repetition, unless the arguments are edited.
        let repeats = cents.is_none() && hold["repeats"].is_string();
        if repeats {
            typed.push("--repeat".to_owned());
        }
        if let Some(mut what) = What::read(tool, &hold["args"]) {
            if let Some(cents) = cents {
                typed.extend(words(&["--edit", &format!("cents={cents}")]));
                what.cents = cents;
            }
            if repeats {
                *self.words.entry(what.clone()).or_default() += 1;
            }
            if hold["kind"] == "approval" {
                self.approved.insert(what);
            }
        }
        typed
    }

    pub(crate) fn reject(&mut self, session: usize, hold: &Json) -> Vec<String> {
        let mut typed = self.decides("reject", session, hold);
        typed.extend(words(&["--say", "no"]));
        typed
    }

    fn decides(&self, verb: &str, session: usize, hold: &Json) -> Vec<String> {
        // A doubt without a hold is named by its effect.
        let id = hold["id"].as_str().or(hold["effect"].as_str());
        let mut typed = words(&[verb, &self.sessions[session], id.unwrap_or_default()]);
        if let Some(role) = hold["for"][0].as_str() {
            let role = if role == "any" { "user" } else { role };
            typed.extend(words(&["--as", role]));
        }
        typed
    }

    /// The command that resolves a doubt, in most cases as the journal of the server says.
    pub(crate) fn resolve(&self, session: usize, doubt: &Json, random: &mut Random) -> Vec<String> {
        let mut typed = self.decides("resolve", session, doubt);
        let what = What::read(doubt["tool"].as_str().unwrap_or_default(), &doubt["args"]);
        typed.push(match what.and_then(|what| self.happened(session, &what)) {
            _ if random.percent(15) => "--fail".to_owned(),
            Some(false) => "--not-performed".to_owned(),
            Some(true) => "--done={\"ok\":true}".to_owned(),
            None => "--fail".to_owned(),
        });
        typed
    }

    /// Returns true if a call with an unknown outcome was performed. `None` if only some of several equal calls were.
    fn happened(&self, session: usize, what: &What) -> Option<bool> {
        let same = self.effects.iter().filter(|((of, _), effect)| {
            let tool = effect["tool"].as_str().unwrap_or_default();
            *of == session && What::read(tool, &effect["args"]).as_ref() == Some(what)
        });
        let standing = |effect: &Json| effect["standing"].as_str().unwrap_or_default().to_owned();
        let standing: Vec<String> = same.map(|(_, effect)| standing(effect)).collect();
        let done = standing.iter().filter(|s| is_done(s)).count();
        let unknown = standing.iter().filter(|s| is_unknown(s)).count();
        let more = self.server.performed(what).saturating_sub(done);
        match (more, unknown) {
            (0, _) => Some(false),
            (more, unknown) if more >= unknown => Some(true),
            _ => None,
        }
    }

    /// A place of the session or of a branch: its head or a few lines back.
    fn place(&mut self, session: usize, random: &mut Random) -> Result<String, Finding> {
        let of = if random.percent(20) {
            self.branch(session, random)?
        } else {
            self.sessions[session].clone()
        };
        Ok(match random.below(6) {
            0 => format!("{of}@head"),
            n => format!("{of}@-{n}"),
        })
    }

    fn elsewhere(
        &mut self,
        act: Act,
        session: usize,
        random: &mut Random,
    ) -> Result<Vec<String>, Finding> {
        let place = self.place(session, random)?;
        let text = self.say(session, random);
        self.labels += 1;
        let label = format!("b{}", self.labels);
        let mut typed = match act {
            Act::Fork => words(&["fork", &place, "--say", &text, "--label", &label]),
            Act::Rewind => words(&["rewind", &place, "--label", &label]),
            Act::Search => words(&["search", &place, "--say", &text, "--n", "2", "--score", "1"]),
            _ => words(&["rerun", &place]),
        };
        match act {
            Act::Fork if random.percent(SAME) => typed.push("--live".to_owned()),
            Act::Rewind if random.percent(60) => typed.extend(words(&["--say", &text])),
            Act::Rerun if random.percent(50) => typed.extend(words(&["--say", &text])),
            Act::Search => {
                if random.percent(50) {
                    typed.push("--adopt".to_owned());
                }
                if random.percent(SAME) {
                    typed.push("--live".to_owned());
                }
            }
            _ => {}
        }
        Ok(typed)
    }

    /// A branch of the session, as it is typed; the session itself if it lists none.
    fn branch(&mut self, session: usize, random: &mut Random) -> Result<String, Finding> {
        let shown = self.show(session)?;
        let id = &self.sessions[session];
        let branches = shown["branches"].as_array().cloned().unwrap_or_default();
        let names: Vec<String> = branches
            .iter()
            .filter_map(|b| b["label"].as_str().or_else(|| b["id"].as_str()))
            .map(str::to_owned)
            .collect();
        Ok(match random.of(&names) {
            Some(name) => format!("{id}:{name}"),
            None => id.clone(),
        })
    }

    fn branches(
        &mut self,
        act: Act,
        session: usize,
        random: &mut Random,
    ) -> Result<Vec<String>, Finding> {
        if act == Act::Adopt && self.stalled == 0 && random.percent(60) {
            return self.adopts_new(session, random);
        }
        let one = self.branch(session, random)?;
        if act == Act::Adopt {
            return Ok(words(&["adopt", &one]));
        }
        let one = self.other_branch(session, random)?.unwrap_or(one);
        let other = self.branch(session, random)?;
        let name = |typed: &str| {
            typed
                .split_once(':')
                .map_or("main", |(_, name)| name)
                .to_owned()
        };
        let on = *random.of(&["all", "any", "1"]).unwrap_or(&"all");
        let id = self.sessions[session].clone();
        let mut typed = words(&["join", &id, &name(&one)]);
        if one != other {
            typed.push(name(&other));
        }
        typed.extend(words(&["--on", on]));
        Ok(typed)
    }

    /// A branch that is neither current nor superseded, if there is one.
    fn other_branch(
        &mut self,
        session: usize,
        random: &mut Random,
    ) -> Result<Option<String>, Finding> {
        let shown = self.show(session)?;
        let branches = shown["branches"].as_array().into_iter().flatten();
        let others = branches.filter(|b| b["id"] != shown["current"] && b["superseded"] != true);
        let names: Vec<&str> = others
            .filter_map(|b| b["label"].as_str().or_else(|| b["id"].as_str()))
            .collect();
        let id = &self.sessions[session];
        Ok(random.of(&names).map(|name| format!("{id}:{name}")))
    }

    /// An effect that failed or is unknown; any effect if there is none.
    fn failed(&mut self, session: usize, random: &mut Random) -> Result<String, Finding> {
        let shown = self.show(session)?;
        let effects = shown["effects"].as_array().into_iter().flatten();
        let failed =
            effects.filter(|e| matches!(e["standing"].as_str(), Some("failed" | "unknown")));
        let failed: Vec<String> = failed
            .filter_map(|e| e["effect"].as_str().map(str::to_owned))
            .collect();
        match random.of(&failed) {
            Some(effect) => Ok(effect.clone()),
            None => self.effect(session, random),
        }
    }

    fn held(&self, verb: &str, session: usize, random: &mut Random) -> Vec<String> {
        let id = &*self.sessions[session];
        match random.below(3) {
            0 => words(&[verb, id, "--tool", "pay"]),
            1 => words(&[verb, id, "--tool", "mail"]),
            _ => words(&[verb, id]),
        }
    }

    /// The command that releases a tool or all tools, in most cases what is held.
    fn release(&mut self, session: usize, random: &mut Random) -> Result<Vec<String>, Finding> {
        let any = self.held("release", session, random);
        if random.percent(20) {
            return Ok(any);
        }
        let shown = self.show(session)?;
        let orders = shown["orders"].as_array().into_iter().flatten();
        let held = orders.filter_map(|order| order.as_str()?.strip_suffix(" is held"));
        let held: Vec<String> = held.map(str::to_owned).collect();
        Ok(match random.of(&held) {
            Some(tool) if !tool.contains(' ') => {
                words(&["release", &self.sessions[session], "--tool", tool])
            }
            Some(_) => words(&["release", &self.sessions[session]]),
            None => any,
        })
    }

    /// Adopts a branch that is forked now: the adoption of an older one is refused if the current branch went on since.
    fn adopts_new(&mut self, session: usize, random: &mut Random) -> Result<Vec<String>, Finding> {
        let text = self.say(session, random);
        self.labels += 1;
        let (id, label) = (&self.sessions[session], format!("b{}", self.labels));
        let place = format!("{id}@head");
        let adopts = words(&["adopt", &format!("{id}:{label}")]);
        self.acts_between(words(&["fork", &place, "--say", &text, "--label", &label]))?;
        Ok(adopts)
    }

    /// One of the last effects of the session, as it is typed.
    fn effect(&mut self, session: usize, random: &mut Random) -> Result<String, Finding> {
        let shown = self.show(session)?;
        let effects = shown["effects"].as_array().cloned().unwrap_or_default();
        let last = effects.len().saturating_sub(4);
        let found = random
            .of(&effects[last..])
            .and_then(|e| e["effect"].as_str());
        Ok(found.unwrap_or("1.0").to_owned())
    }

    fn erase(&mut self, session: usize, random: &mut Random) -> Result<Vec<String>, Finding> {
        let shown = self.show(session)?;
        let id = self.sessions[session].clone();
        let line = 1 + random.below(shown["line"].as_u64().unwrap_or(1));
        Ok(match random.below(4) {
            0 => words(&["erase", &id, "--yes"]),
            1 => words(&["erase", &format!("{id}@{line}"), "--yes"]),
            _ => {
                let effect = self.effect(session, random)?;
                words(&["erase", &id, "--effect", &effect, "--yes"])
            }
        })
    }
}
