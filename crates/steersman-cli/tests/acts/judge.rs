//! The invariants. They hold after any sequence of acts and kills.

use crate::plan::Random;
use crate::play::{World, is_done, is_unknown, words};
use crate::process::Ended;
use crate::server::What;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// A violation of an invariant.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// Names the invariant. The text is the same each time, so that findings can be compared.
    pub(crate) what: String,
    /// The evidence: the output of a command, or the figures that differ.
    pub(crate) seen: String,
}

impl Finding {
    pub(crate) fn new(what: &str, ended: &Ended) -> Self {
        let code = ended
            .code
            .map_or("none".to_owned(), |code| code.to_string());
        Self {
            what: what.to_owned(),
            seen: format!(
                "$ steersman {}\nexit {code}\n{}{}",
                ended.typed.join(" "),
                ended.out,
                ended.err
            ),
        }
    }

    fn of(what: impl Into<String>, seen: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            seen: seen.into(),
        }
    }
}

/// The documented exit codes.
const CODES: [i32; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 130];

/// A process ends, does not panic, and has a documented exit code unless it was killed.
pub(crate) fn output(ended: &Ended) -> Result<(), Finding> {
    if ended.hangs {
        return Err(Finding::new("a command does not end", ended));
    }
    if ended.err.contains("panicked at") || ended.out.contains("panicked at") {
        return Err(Finding::new("a command panics", ended));
    }
    match ended.code {
        Some(code) if !CODES.contains(&code) => {
            Err(Finding::new("an exit code is not documented", ended))
        }
        None if !ended.killed => Err(Finding::new("a command dies by itself", ended)),
        _ => Ok(()),
    }
}

/// Holds at any time. An unsafe call is performed once, and again only if a person allowed it. A large payment is
/// performed only if a person approved it with the same arguments.
pub(crate) fn along_the_way(world: &World) -> Result<(), Finding> {
    let mut performed: BTreeMap<What, usize> = BTreeMap::new();
    for call in world
        .server
        .calls()
        .into_iter()
        .filter(|call| call.performed)
    {
        if call.what.tool != "mail" {
            *performed.entry(call.what).or_default() += 1;
        }
    }
    for (what, times) in performed {
        let allowed = 1 + world.words.get(&what).copied().unwrap_or(0);
        if times > allowed {
            return Err(Finding::of(
                "an unsafe effect was performed twice without a person's word",
                format!("{what}: {times} times, {allowed} allowed"),
            ));
        }
        let dear = what.tool == "pay" && what.cents >= crate::desk::DEAR;
        if dear && !world.approved.contains(&what) {
            return Err(Finding::of(
                "a call was performed that nobody approved with these arguments",
                what.to_string(),
            ));
        }
    }
    Ok(())
}

/// Holds at the end. All sessions come to rest, answer a message and agree with the journal of the server, and `fsck`
/// finds no damage.
pub(crate) fn at_the_end(world: &mut World) -> Result<(), Finding> {
    for session in 0..world.sessions.len() {
        rest(world, session)?;
    }
    drive_reruns(world)?;
    along_the_way(world)?;
    for session in 0..world.sessions.len() {
        answers(world, session)?;
    }
    let fsck = world.run(&words(&["fsck"]))?;
    if fsck.code != Some(0) {
        return Err(Finding::new("fsck finds damage", &fsck));
    }
    for session in 0..world.sessions.len() {
        let shown = world.show(session)?;
        let mut whole = world
            .run(&words(&["export", &world.sessions[session].clone()]))?
            .json();
        let lines: Vec<Json> = match whole["log"].take() {
            Json::Array(lines) => lines,
            other => return Err(Finding::of("export has no lines", other.to_string())),
        };
        messages(world, session, &shown, &lines)?;
        orders(world, session, &lines)?;
        left_behind(&shown, &lines)?;
        books(world, session)?;
    }
    Ok(())
}

// ---- rest

/// Commands after which a session must have come to rest.
const ROUNDS: usize = 60;

/// Ends all orders, settles all holds, and drives the session until nothing is open.
fn rest(world: &mut World, session: usize) -> Result<(), Finding> {
    let id = world.sessions[session].clone();
    let mut random = Random::new(session as u64);
    let mut last = String::new();
    // True if the last command drove the session.
    let mut driven = false;
    for _ in 0..ROUNDS {
        let shown = world.show(session)?;
        let Some(typed) = next(world, session, &shown, driven, &mut random) else {
            return Ok(());
        };
        driven = typed[0] == "run";
        world
            .story
            .push(format!("steersman {}  # to rest", typed.join(" ")));
        let ended = world.run(&typed)?;
        last = format!("{}\n{}{}", typed.join(" "), ended.out, ended.err);
        along_the_way(world)?;
        if typed[0] == "run" {
            probed(&world.show(session)?)?;
        }
    }
    let shown = world.show(session)?;
    let open = format!(
        "{}, {}, inbox {}",
        shown["status"], shown["holds"], shown["inbox"]
    );
    Err(Finding::of(
        "a session does not come to rest",
        format!("{id} after {ROUNDS} commands: {open}; the last: {last}"),
    ))
}

/// No person is asked about a doubt that a probe can settle.
pub(crate) fn probed(shown: &Json) -> Result<(), Finding> {
    let idle = shown["orders"].as_array().is_none_or(Vec::is_empty);
    let holds = shown["holds"].as_array().into_iter().flatten();
    // No probe runs for a call that no branch waits for any more.
    let mut asked = holds
        .filter(|hold| hold["kind"] == "doubt" && hold["tool"] == "wire" && hold["left"] != true);
    match asked.next() {
        Some(hold) if idle => Err(Finding::of(
            "a person is asked what a probe can tell",
            hold.to_string(),
        )),
        _ => Ok(()),
    }
}

fn next(
    world: &mut World,
    session: usize,
    shown: &Json,
    driven: bool,
    random: &mut Random,
) -> Option<Vec<String>> {
    let id = world.sessions[session].clone();
    let empty = Vec::new();
    let orders = shown["orders"].as_array().unwrap_or(&empty);
    if let Some(order) = orders.iter().find_map(Json::as_str) {
        return Some(match order.strip_suffix(" is held") {
            None => words(&["resume", &id]),
            Some(tool) if !tool.contains(' ') => words(&["release", &id, "--tool", tool]),
            _ => words(&["release", &id]),
        });
    }
    let holds = shown["holds"].as_array().unwrap_or(&empty);
    for hold in holds {
        return Some(match hold["kind"].as_str() {
            Some("approval" | "repeat") if random.percent(50) => world.reject(session, hold),
            Some("approval" | "repeat" | "budget") => world.approve(session, hold, None),
            // First drive the session: its probe may settle the doubt.
            Some("doubt") if hold["tool"] == "wire" && !driven => words(&["run", "--resume", &id]),
            Some("doubt") => world.resolve(session, hold, random),
            // Events go to the current branch only, so a wait on another branch is cancelled. For the current branch an
            // event is sent after a run, which may have taken one from the inbox.
            Some("event") if hold["branch"] != shown["current"] => {
                words(&["cancel", &format!("{id}:{}", hold["branch"].as_str()?)])
            }
            Some("event") if driven => arrival(&hold["args"], random),
            _ => continue,
        });
    }
    let status = shown["status"].as_str().unwrap_or_default();
    let rests = matches!(status, "answered" | "failed" | "limit" | "cancelled");
    let open = !rests || !holds.is_empty() || shown["inbox"] != 0;
    open.then(|| words(&["run", "--resume", &id]))
}

/// The command that sends the event that a call waits for. Its `nr` is new, so a second equal wait gets an event too.
fn arrival(key: &Json, random: &mut Random) -> Vec<String> {
    let mut fields = key.clone();
    fields["nr"] = random.next().to_string().into();
    words(&["send", ".", "--event", "arrived", &fields.to_string()])
}

/// Sessions that the plan did not begin are reruns. Each can be driven on, even if its process was killed.
fn drive_reruns(world: &mut World) -> Result<(), Finding> {
    let listed = world.run(&words(&["sessions", "--all", "--json"]))?;
    for line in listed.out.lines() {
        let session: Json = serde_json::from_str(line).unwrap_or_default();
        let id = session["session"].as_str().unwrap_or_default().to_owned();
        if world.sessions.contains(&id) {
            continue;
        }
        let driven = world.run(&words(&["run", "--resume", &id]))?;
        if matches!(driven.code, Some(2..=4)) {
            return Err(Finding::new("a rerun cannot be driven on", &driven));
        }
    }
    Ok(())
}

/// A session that rests answers a message.
fn answers(world: &mut World, session: usize) -> Result<(), Finding> {
    let id = world.sessions[session].clone();
    let sent = world.run(&words(&["send", &id, "last do", "--id", "last", "--json"]))?;
    let answer = sent.json()["answer"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if sent.code == Some(0) && answer == "Done last." {
        return Ok(());
    }
    Err(Finding::new("a session that rests does not answer", &sent))
}

// ---- what a session tells, compared with the journal of the server

fn rows(line: &Json) -> impl Iterator<Item = &str> {
    let rows = line["rows"].as_array();
    rows.into_iter().flatten().filter_map(Json::as_str)
}

/// Every acknowledged message was taken exactly once, or `pending` lists it.
fn messages(
    world: &mut World,
    session: usize,
    shown: &Json,
    lines: &[Json],
) -> Result<(), Finding> {
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    for row in lines.iter().flat_map(rows) {
        if let Some(id) = row.strip_prefix("ledger accepted ") {
            *taken.entry(id).or_default() += 1;
        }
        if let Some(id) = row.strip_prefix("ledger  accepted ") {
            *taken.entry(id).or_default() += 1;
        }
    }
    let mut missing = Vec::new();
    for message in world.messages.iter().filter(|m| m.session == session) {
        match taken.get(&*message.id).copied().unwrap_or(0) {
            0 if message.acknowledged => missing.push(message.id.clone()),
            0 | 1 => {}
            times => {
                return Err(Finding::of(
                    "a message was taken twice",
                    format!("{} {times} times", message.id),
                ));
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let pending = world.run(&words(&["pending", "--all", "--json"]))?;
    let listed = pending
        .out
        .lines()
        .filter_map(|line| serde_json::from_str::<Json>(line).ok())
        .filter(|row| row["kind"] == "inbox" && row["session"] == shown["session"])
        .count();
    if missing.len() <= listed {
        return Ok(());
    }
    Err(Finding::of(
        "an acknowledged message was neither taken nor is it listed",
        format!("{missing:?}; pending lists {listed}"),
    ))
}

/// No effect started that an order forbade.
fn orders(world: &World, session: usize, lines: &[Json]) -> Result<(), Finding> {
    let calls = world.server.calls();
    let mut paused = false;
    let mut barred: BTreeSet<String> = BTreeSet::new();
    for line in lines {
        let before = (paused, barred.clone());
        for row in rows(line) {
            let Some(entry) = row.strip_prefix("ledger").map(str::trim) else {
                continue;
            };
            match entry.split(' ').collect::<Vec<_>>()[..] {
                ["paused", ..] => paused = true,
                ["resumed", ..] => paused = false,
                ["barred", tool, ..] => drop(barred.insert(tool.to_owned())),
                ["unbarred", tool, ..] => drop(barred.remove(tool)),
                ["started", effect, ..] => {
                    let known = world.effects.get(&(session, effect.to_owned()));
                    let tool = known.and_then(|e| e["tool"].as_str()).unwrap_or_default();
                    let held = before.1.contains("*") || before.1.contains(tool);
                    let what = known.and_then(|e| What::read(tool, &e["args"]));
                    let arrived = what.is_some_and(|what| calls.iter().any(|c| c.what == what));
                    let attempts = known.and_then(|e| e["attempts"].as_u64());
                    let once = attempts == Some(1);
                    if arrived && once && before.0 && paused {
                        let seen = format!("{effect} {tool} in line {}", line["line"]);
                        return Err(Finding::of("an effect began in a paused session", seen));
                    }
                    if arrived && once && held {
                        let seen = format!("{effect} {tool} in line {}", line["line"]);
                        return Err(Finding::of("an effect began that was held", seen));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// A branch that was current and no longer is must be superseded.
fn left_behind(shown: &Json, lines: &[Json]) -> Result<(), Finding> {
    let mut was: BTreeSet<String> = BTreeSet::from(["main".to_owned()]);
    for row in lines.iter().flat_map(rows) {
        if let Some(name) = row.strip_prefix("ledger").map(str::trim)
            && let Some(name) = name.strip_prefix("current ")
        {
            was.insert(name.to_owned());
        }
    }
    for branch in shown["branches"].as_array().into_iter().flatten() {
        let id = branch["id"].as_str().unwrap_or_default();
        let label = branch["label"].as_str().unwrap_or(id);
        let once = was.contains(id) || was.contains(label);
        let is_current = shown["current"] == id || shown["current"] == label;
        if once && !is_current && branch["superseded"] != true {
            return Err(Finding::of(
                "a future that was left goes on",
                format!("{branch}; current is {}", shown["current"]),
            ));
        }
    }
    Ok(())
}

/// Sums of what a session tells of equal calls.
#[derive(Default)]
struct Said {
    attempts: u64,
    done: usize,
    unknown: usize,
    effects: Vec<String>,
}

impl Said {
    fn add(&mut self, effect: &Json) {
        let standing = effect["standing"].as_str().unwrap_or_default();
        self.attempts += effect["attempts"].as_u64().unwrap_or(0);
        // The probe looks up by arguments. Asked about a repetition, it may find the first call instead.
        let is_found = standing == "done (says probe)" && !effect["repeats"].is_null();
        self.done += usize::from(is_done(standing) && !is_found);
        self.unknown += usize::from(is_unknown(standing) || is_found);
        self.effects.push(effect.to_string());
    }
}

/// The effects of a session agree with the journal of the tool server.
fn books(world: &World, session: usize) -> Result<(), Finding> {
    let calls = world.server.calls();
    let to = format!("s{session}");
    let mut told: BTreeMap<What, Said> = BTreeMap::new();
    // The arguments of an effect that was erased before it was shown are unknown: it may be any call of its tool.
    let mut erased: BTreeMap<&str, Said> = BTreeMap::new();
    for ((of, _), effect) in &world.effects {
        let tool = effect["tool"].as_str().unwrap_or_default();
        match What::read(tool, &effect["args"]) {
            _ if *of != session => {}
            Some(what) => told.entry(what).or_default().add(effect),
            None => erased.entry(tool).or_default().add(effect),
        }
    }
    let mut seen: BTreeMap<&What, (usize, usize)> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.what.to == to) {
        let (arrived, performed) = seen.entry(&call.what).or_default();
        *arrived += 1;
        *performed += usize::from(call.performed);
    }
    let none = Said::default();
    for (what, (arrived, performed)) in &seen {
        let known = told.get(what).unwrap_or(&none);
        let hidden = erased.get(&*what.tool).unwrap_or(&none);
        let told = || {
            let told = known.effects.join("\n");
            format!("{what}: arrived {arrived} times, performed {performed} times; told:\n{told}")
        };
        if *arrived as u64 > known.attempts + hidden.attempts {
            return Err(Finding::of(
                "a call began of which no attempt is on record",
                told(),
            ));
        }
        let may_be = known.done + known.unknown + hidden.done + hidden.unknown;
        if what.tool != "mail" && *performed > may_be {
            return Err(Finding::of(
                "an effect happened that is told not to have",
                told(),
            ));
        }
    }
    for (what, known) in &told {
        let performed = seen.get(what).map_or(0, |(_, performed)| *performed);
        if known.done > performed {
            return Err(Finding::of(
                "an effect is told to be done that was never performed",
                format!(
                    "{what}: performed {performed} times; told:\n{}",
                    known.effects.join("\n")
                ),
            ));
        }
    }
    keys(world, session)
}

/// All attempts of an idempotent effect have the same key.
fn keys(world: &World, session: usize) -> Result<(), Finding> {
    let mut keys: BTreeMap<What, BTreeSet<String>> = BTreeMap::new();
    for call in world.server.calls() {
        if let (Some(key), true) = (call.key, call.what.to == format!("s{session}")) {
            keys.entry(call.what).or_default().insert(key);
        }
    }
    for (what, keys) in keys {
        let begun = world.effects.iter().filter(|((of, _), effect)| {
            let tool = effect["tool"].as_str().unwrap_or_default();
            let args = What::read(tool, &effect["args"]);
            let same = args.map_or(tool == what.tool, |args| args == what);
            *of == session && same && effect["attempts"].as_u64().is_some_and(|n| n > 0)
        });
        let begun = begun.count();
        if keys.len() > begun {
            return Err(Finding::of(
                "an idempotent effect has more than one key",
                format!("{what}: {begun} effects, keys {keys:?}"),
            ));
        }
    }
    Ok(())
}
