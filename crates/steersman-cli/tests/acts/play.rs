//! Plays a sequence: makes a command of each act that fits the current state of the session, types it, kills processes
//! as planned, and checks the invariants.

use crate::desk::{self, Wishes};
use crate::judge::{self, Finding};
use crate::plan::{ACTS, Act, At, Coverage, Drivers, Kill, Plan, Random, Step, When};
use crate::process::{Ended, Process, nap};
use crate::server::{Fault, Point, Server, What};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time to wait for a command while another process runs. After it the next act is typed.
const PATIENCE: Duration = Duration::from_millis(150);

/// Time in which a second process would take over a session. A process that is refused ends much sooner.
const TAKES_OVER: Duration = Duration::from_millis(500);

/// A symbolic link to the store.
pub(crate) const LINK: &str = ".steersman/linked.db";

/// The result of a sequence.
pub(crate) struct Played {
    pub(crate) finding: Option<Finding>,
    /// Commands and kills in order, one row each.
    pub(crate) story: Vec<String>,
    pub(crate) covered: Coverage,
    pub(crate) sums: Sums,
}

#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) acts: u64,
    pub(crate) kills: u64,
    pub(crate) messages: u64,
    pub(crate) performed: u64,
    pub(crate) allowed_again: u64,
}

/// A message that a person sent under an id.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) session: usize,
    pub(crate) acknowledged: bool,
    pub(crate) typed: Vec<String>,
}

/// The state of a sequence while it is played: its folder, server, processes and sessions.
pub(crate) struct World {
    pub(crate) folder: PathBuf,
    pub(crate) server: Server,
    pub(crate) sessions: Vec<String>,
    owners: Vec<Process>,
    /// Commands that were typed and may still run.
    open: Vec<(Option<Act>, Process)>,
    /// Acts until the stalled call continues.
    pub(crate) stalled: u32,
    pub(crate) wishes: Wishes,
    pub(crate) messages: Vec<Message>,
    /// Commands that answered holds, each with its session.
    pub(crate) answers: Vec<(usize, Vec<String>)>,
    /// The number of times that a person allowed an equal call to run again.
    pub(crate) words: BTreeMap<What, usize>,
    /// Calls that a person approved, with the arguments of the approval.
    pub(crate) approved: BTreeSet<What>,
    /// Effects as `show` told them, by session and id. Arguments that are erased later stay here.
    pub(crate) effects: BTreeMap<(usize, String), Json>,
    pub(crate) labels: u32,
    pub(crate) story: Vec<String>,
    pub(crate) covered: Coverage,
    pub(crate) sums: Sums,
}

impl Drop for World {
    fn drop(&mut self) {
        for owner in self.owners.drain(..) {
            owner.kill();
        }
        for (_, process) in self.open.drain(..) {
            process.kill();
        }
        if std::env::var_os("STEERSMAN_KEEP").is_none() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// Plays a plan, and checks the invariants after each act and at the end.
pub(crate) fn play(plan: &Plan) -> Played {
    let mut world = World::new();
    let finding = world.play(plan).err();
    let calls = world.server.calls();
    world.sums.performed = calls.iter().filter(|call| call.performed).count() as u64;
    world.sums.messages = world.messages.iter().filter(|m| m.acknowledged).count() as u64;
    world.sums.allowed_again = world.words.values().sum::<usize>() as u64;
    Played {
        finding,
        story: std::mem::take(&mut world.story),
        covered: std::mem::take(&mut world.covered),
        sums: world.sums,
    }
}

pub(crate) fn words(text: &[&str]) -> Vec<String> {
    text.iter().map(|word| (*word).to_owned()).collect()
}

impl World {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let folder = std::env::temp_dir().join(format!(
            "steersman-acts-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        ));
        std::fs::create_dir_all(folder.join("home")).unwrap();
        std::fs::create_dir_all(folder.join(".steersman")).unwrap();
        std::os::unix::fs::symlink("sessions.db", folder.join(LINK)).unwrap();
        let server = Server::start();
        std::fs::write(folder.join("steersman.yaml"), desk::definition(server.port)).unwrap();
        Self {
            folder,
            server,
            sessions: Vec::new(),
            owners: Vec::new(),
            open: Vec::new(),
            stalled: 0,
            wishes: Wishes::default(),
            messages: Vec::new(),
            answers: Vec::new(),
            words: BTreeMap::new(),
            approved: BTreeSet::new(),
            effects: BTreeMap::new(),
            labels: 0,
            story: Vec::new(),
            covered: Coverage::default(),
            sums: Sums::default(),
        }
    }

    fn play(&mut self, plan: &Plan) -> Result<(), Finding> {
        for _ in 0..plan.sessions {
            let begun = self.run(&words(&["run", ".", "--input", "hello do", "--json"]))?;
            let id = begun.json()["session"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            if id.is_empty() {
                return Err(Finding::new("no session began", &begun));
            }
            self.sessions.push(id);
        }
        let mut before = None;
        for (at, step) in plan.steps.iter().enumerate() {
            self.keep_driven(plan.drivers);
            if at == 0 && plan.drivers == Drivers::Nobody {
                match plan.number % 3 {
                    0 => self.kill_probing(step.session)?,
                    1 => self.resume_driven(step.session)?,
                    _ => self.adopt_searched(step.session)?,
                }
            }
            if let Some(next) = plan.steps.get(at + 1) {
                self.prepare(next, true)?;
            }
            self.prepare(step, false)?;
            self.step(step)?;
            if let Some(before) = before {
                let row: &mut [u32; ACTS.len()] = &mut self.covered.pairs[Act::number(before)];
                row[step.act.number()] += 1;
            }
            before = Some(step.act);
            judge::along_the_way(self)?;
        }
        self.end_stall();
        self.reap(true)?;
        while let Some(owner) = self.owners.pop() {
            self.kill(owner, "what drives all")?;
        }
        self.server.settle();
        self.server.no_faults();
        judge::at_the_end(self)
    }

    /// Starts driving processes until there are as many as the plan wants.
    fn keep_driven(&mut self, drivers: Drivers) {
        let wanted = match drivers {
            Drivers::Nobody => 0,
            Drivers::One => 1,
            Drivers::Two => 2,
        };
        while self.owners.len() < wanted {
            let typed = words(&["run", "--all"]);
            self.tell(&typed, "&");
            self.owners.push(Process::spawn(&self.folder, &typed));
        }
    }

    fn tell(&mut self, typed: &[String], how: &str) {
        let quoted: Vec<String> = typed
            .iter()
            .map(|word| {
                let plain = |c: char| c.is_alphanumeric() || "-.:=@_/".contains(c);
                if word.chars().all(plain) {
                    word.clone()
                } else {
                    format!("'{word}'")
                }
            })
            .collect();
        let row = format!("steersman {} {how}", quoted.join(" "));
        self.story.push(row.trim_end().to_owned());
    }

    /// An act that answers needs a hold. In most cases a message is sent here that makes one: before the preceding act
    /// (`ahead`), or directly before the act.
    fn prepare(&mut self, next: &Step, ahead: bool) -> Result<(), Finding> {
        let wanted = match next.act {
            Act::Approve | Act::Edit | Act::Reject => "approval",
            Act::Resolve => "doubt",
            _ => return Ok(()),
        };
        let mut random = Random::new(next.salt);
        if self.stalled > 0 || random.percent(15) || random.percent(50) != ahead {
            return Ok(());
        }
        let session = next.session;
        let shown = self.show(session)?;
        let holds = shown["holds"].as_array();
        let waits = |hold: &Json| hold["kind"] == wanted;
        if holds.is_some_and(|holds| holds.iter().any(waits)) {
            return Ok(());
        }
        let cents = self.wishes.amount(wanted == "approval");
        if wanted == "doubt" {
            self.fault(if random.percent(50) {
                Fault::Lies
            } else {
                Fault::Refuses
            });
        }
        let number = self.messages.len() + 1;
        let pay = format!("pay:s{session}:{cents}");
        // Two equal calls may wait at once. The person who answers one may or may not know of the other.
        let text = if wanted == "approval" && random.percent(40) {
            format!("m{number} do {pay}+{pay}")
        } else {
            format!("m{number} do {pay}")
        };
        let (to, id) = (self.sessions[session].clone(), format!("m{number}"));
        let typed = words(&["send", &to, &text, "--id", &id]);
        self.messages.push(Message {
            id,
            session,
            acknowledged: false,
            typed: typed.clone(),
        });
        self.acts_between(typed)
    }

    /// Kills a process while its probe looks up how a call ended. The next process must run the probe again, and ask no
    /// person.
    fn kill_probing(&mut self, session: usize) -> Result<(), Finding> {
        self.fault(Fault::Lies);
        let sender = self.send_and_stall(session, Point::Probed);
        self.kill(sender, "while it looks up how a call ended")?;
        let to = self.sessions[session].clone();
        self.acts_between(words(&["run", "--resume", &to]))?;
        judge::probed(&self.show(session)?)
    }

    /// Resumes a session while the process that drives it lives and its call is on the way. The second process must not
    /// drive: its probe would find that nothing happened yet, and the call would be made twice.
    fn resume_driven(&mut self, session: usize) -> Result<(), Finding> {
        let sender = self.send_and_stall(session, Point::Called);
        let typed = words(&["run", "--resume", &self.sessions[session]]);
        self.tell(&typed, "&");
        let mut second = Process::spawn(&self.folder, &typed);
        let begun = Instant::now();
        while !second.is_over() && begun.elapsed() < TAKES_OVER {
            nap();
        }
        self.end_stall();
        for process in [sender, second] {
            let ended = process.wait();
            self.ended(None, ended)?;
        }
        Ok(())
    }

    /// Adopts the branches of a search that goes on: one of them has ended, the other waits for the model. The search decides
    /// which of its branches stay, so the adoption must be refused, and the search must reach its end.
    fn adopt_searched(&mut self, session: usize) -> Result<(), Finding> {
        // Each of the two branches asks the model three times.
        self.server.arm(Point::Model, 5);
        let id = self.sessions[session].clone();
        let text = "m0 do big big";
        let typed = words(&[
            "search", &id, "--say", text, "--n", "2", "--score", "1", "--adopt",
        ]);
        let searcher = self.spawn_and_stall(&typed);
        let shown = self.show(session)?;
        let branches = shown["branches"].as_array().into_iter().flatten();
        let searched = branches.filter(|branch| branch["id"] != shown["current"]);
        let searched: Vec<String> = searched
            .filter_map(|branch| Some(format!("{id}:{}", branch["id"].as_str()?)))
            .collect();
        for branch in searched {
            self.acts_between(words(&["adopt", &branch]))?;
        }
        self.end_stall();
        self.ended(None, searcher.wait())
    }

    /// Starts a process that sends a message and makes the call that it asks for. Returns when the call stalls at the point.
    fn send_and_stall(&mut self, session: usize, point: Point) -> Process {
        self.server.arm(point, 0);
        let number = self.messages.len() + 1;
        let cents = self.wishes.amount(false);
        let text = format!("m{number} do wire:s{session}:{cents}");
        let (to, id) = (self.sessions[session].clone(), format!("m{number}"));
        let typed = words(&["send", &to, &text, "--id", &id]);
        self.messages.push(Message {
            id,
            session,
            acknowledged: false,
            typed: typed.clone(),
        });
        self.spawn_and_stall(&typed)
    }

    /// Starts a process, and returns when one of its calls stalls at the point that is armed.
    fn spawn_and_stall(&mut self, typed: &[String]) -> Process {
        self.tell(typed, "&");
        let mut process = Process::spawn(&self.folder, typed);
        while !self.server.is_stalled() && !process.is_over() && !process.hangs() {
            nap();
        }
        self.server.disarm();
        process
    }

    /// Types a command that prepares an act. It is not an act of the plan.
    pub(crate) fn acts_between(&mut self, typed: Vec<String>) -> Result<(), Finding> {
        self.tell(&typed, "");
        let ended = self.run(&typed)?;
        self.ended(None, ended)
    }

    fn fault(&mut self, fault: Fault) {
        let how = match fault {
            Fault::Lies => "is performed, and answered with an error",
            Fault::Refuses => "is not performed, and answered with an error",
            // The call that is denied may then be a second attempt of one that was performed.
            Fault::Denies => {
                self.server.fault(Fault::Lies);
                "is performed, and answered with an error; the one behind it is denied"
            }
        };
        self.server.fault(fault);
        self.story.push(format!("# the next call of a tool {how}"));
    }

    // ---- one step

    fn step(&mut self, step: &Step) -> Result<(), Finding> {
        let mut random = Random::new(step.salt);
        if let Some(kill) = step.kill.filter(|kill| kill.when == When::Before) {
            self.kill_before(step, kill)?;
        }
        let typed = self.typed(step, &mut random)?;
        if let Some(fault) = step.fault {
            self.fault(fault);
        }
        self.sums.acts += 1;
        if let Some((point, after, acts)) = step.stall
            && self.stalled == 0
        {
            self.server.arm(point, after);
            self.stalled = 1 + acts;
            self.story
                .push(format!("# a call stalls: {point:?}, after {after} others"));
        }
        if let Some(kill) = step.kill.filter(|kill| kill.when == When::Inside) {
            self.end_stall();
            self.kill_inside(step, &typed, kill)?;
        } else {
            self.tell(&typed, if step.together { "&" } else { "" });
            let process = Process::spawn(&self.folder, &typed);
            self.attend(step, process)?;
        }
        if let Some(kill) = step.kill.filter(|kill| kill.when == When::After) {
            self.kill_after(step, kill)?;
        }
        self.stalled = self.stalled.saturating_sub(1);
        if self.stalled == 0 {
            self.end_stall();
        }
        self.reap(false)
    }

    fn end_stall(&mut self) {
        self.stalled = 0;
        self.server.disarm();
        if self.server.is_stalled() {
            self.story.push("# what was stalled goes on".to_owned());
            self.server.release();
        }
    }

    /// Waits for a process to end. Leaves it open if it hangs, if a call is stalled, or if other processes run and
    /// `PATIENCE` is over.
    fn attend(&mut self, step: &Step, mut process: Process) -> Result<(), Finding> {
        let begun = Instant::now();
        while !step.together && !process.is_over() {
            let busy = !self.owners.is_empty() || !self.open.is_empty();
            if self.server.is_stalled() || (busy && begun.elapsed() > PATIENCE) || process.hangs() {
                break;
            }
            nap();
        }
        if process.is_over() {
            let ended = process.wait();
            return self.ended(Some(step.act), ended);
        }
        self.open.push((Some(step.act), process));
        Ok(())
    }

    /// Takes the results of commands that have ended. With `wait` it waits for all of them.
    fn reap(&mut self, wait: bool) -> Result<(), Finding> {
        for (act, mut process) in std::mem::take(&mut self.open) {
            if wait || process.is_over() || process.hangs() {
                let ended = process.wait();
                self.ended(act, ended)?;
            } else {
                self.open.push((act, process));
            }
        }
        Ok(())
    }

    // ---- kills

    /// Kills the process that drives, before the act is typed.
    fn kill_before(&mut self, step: &Step, kill: Kill) -> Result<(), Finding> {
        self.end_stall();
        let victim = self.owners.pop().unwrap_or_else(|| {
            let typed = words(&["run", "--resume", &self.sessions[step.session]]);
            self.tell(&typed, "&");
            Process::spawn(&self.folder, &typed)
        });
        self.doom(step, victim, None, kill)
    }

    /// Kills the process that drives, after the act was typed.
    fn kill_after(&mut self, step: &Step, kill: Kill) -> Result<(), Finding> {
        self.kill_before(step, kill)
    }

    /// Kills the process of the act, or the one that drives meanwhile.
    fn kill_inside(&mut self, step: &Step, typed: &[String], kill: Kill) -> Result<(), Finding> {
        if let At::Call(point, after) = kill.at {
            self.server.arm(point, after);
        }
        let actor = Process::spawn(&self.folder, typed);
        match self.owners.pop() {
            Some(owner) if kill.owner => {
                self.tell(typed, "&");
                self.doom(step, owner, Some(actor), kill)
            }
            other => {
                self.owners.extend(other);
                self.tell(typed, "&");
                self.doom(step, actor, None, kill)
            }
        }
    }

    /// Kills the victim when it reaches the point. If it does not, kills it when it has printed nothing for some time,
    /// unless it has ended.
    fn doom(
        &mut self,
        step: &Step,
        mut victim: Process,
        mut actor: Option<Process>,
        kill: Kill,
    ) -> Result<(), Finding> {
        let begun = Instant::now();
        let before = victim.rows();
        if let At::Call(point, after) = kill.at
            && kill.when != When::Inside
        {
            self.server.arm(point, after);
        }
        let patience = match kill.at {
            At::Micros(micros) => Duration::from_micros(micros),
            // With a slow disk or on a busy machine a call comes late.
            At::Call(..) => Duration::from_millis(250),
            At::Row(_) => Duration::from_millis(60),
        };
        let mut last = (Instant::now(), victim.rows());
        let reached = loop {
            let told = victim.rows();
            if told != last.1 {
                last = (Instant::now(), told);
            }
            let come = match kill.at {
                At::Call(..) => self.server.is_stalled(),
                At::Row(n) => told >= before + n,
                At::Micros(_) => begun.elapsed() >= patience,
            };
            if come || victim.is_over() || last.0.elapsed() > patience {
                break come;
            }
            nap();
        };
        let how = match (reached, kill.at) {
            (true, At::Call(point, after)) => {
                format!("at the call: {point:?}, after {after} others")
            }
            (true, At::Row(n)) => format!("when it has told {n} rows"),
            (true, At::Micros(micros)) => format!("after {micros} us"),
            (false, _) => "when nothing happens any more".to_owned(),
        };
        if victim.is_over() {
            let act = (kill.when == When::Inside && actor.is_none()).then_some(step.act);
            let ended = victim.wait();
            self.ended(act, ended)?;
            self.story
                .push("#   (it ended before it was killed)".to_owned());
        } else {
            let when = kill.when as usize;
            self.covered.kills[step.act.number()][when] += 1;
            let message = self.messages.len();
            self.kill(victim, &how)?;
            // A sender that does not know if its message arrived sends it again under the same id; it is taken once.
            if kill.when == When::Inside
                && step.act == Act::Send
                && actor.is_none()
                && step.salt.is_multiple_of(2)
                && let Some(last) = self.messages.get(message.wrapping_sub(1))
            {
                let typed = last.typed.clone();
                self.tell(&typed, "");
                let ended = self.run(&typed)?;
                self.ended(Some(Act::Send), ended)?;
            }
        }
        self.server.disarm();
        if let Some(actor) = actor.take() {
            self.attend(step, actor)?;
        }
        Ok(())
    }

    fn kill(&mut self, process: Process, how: &str) -> Result<(), Finding> {
        self.story.push(format!(
            "kill -9  # steersman {} {how}",
            process.typed.join(" ")
        ));
        let ended = process.kill();
        self.server.settle();
        self.sums.kills += u64::from(ended.killed);
        judge::output(&ended)
    }

    // ---- results

    /// Runs a command to its end, without a kill.
    pub(crate) fn run(&mut self, typed: &[String]) -> Result<Ended, Finding> {
        let ended = Process::spawn(&self.folder, typed).wait();
        judge::output(&ended)?;
        Ok(ended)
    }

    /// Checks and records a command that has ended.
    fn ended(&mut self, act: Option<Act>, ended: Ended) -> Result<(), Finding> {
        judge::output(&ended)?;
        let taken = !matches!(ended.code, None | Some(2 | 4));
        if let Some(act) = act {
            let sum = &mut self.covered.taken[act.number()];
            *sum = (sum.0 + u32::from(taken), sum.1 + 1);
        }
        if let Some(code) = ended.code {
            let why = ended.err.lines().find(|row| row.starts_with("error:"));
            let why = why.map(|why| format!(" {why}")).unwrap_or_default();
            self.story.push(format!("#   exit {code}{why}"));
        }
        let id = ended.typed.iter().position(|word| word == "--id");
        if let (true, Some(id)) = (taken, id.and_then(|at| ended.typed.get(at + 1))) {
            for message in self.messages.iter_mut().filter(|m| m.id == *id) {
                message.acknowledged = true;
            }
        }
        Ok(())
    }

    /// A session as `show --json` tells it. Its effects are recorded.
    pub(crate) fn show(&mut self, session: usize) -> Result<Json, Finding> {
        let id = self.sessions[session].clone();
        let ended = self.run(&words(&["show", &id, "--json"]))?;
        if ended.code.is_none_or(|code| matches!(code, 2 | 4)) {
            return Err(Finding::new("a session cannot be shown", &ended));
        }
        let shown = ended.json();
        for effect in shown["effects"].as_array().into_iter().flatten() {
            let key = (
                session,
                effect["effect"].as_str().unwrap_or_default().to_owned(),
            );
            let known = self.effects.entry(key).or_insert_with(|| effect.clone());
            // An effect that was erased since keeps its arguments here.
            if What::read("", &effect["args"]).is_some() || known["args"] == effect["args"] {
                *known = effect.clone();
            } else {
                for key in ["standing", "attempts", "repeated"] {
                    known[key] = effect[key].clone();
                }
            }
        }
        Ok(shown)
    }
}

/// Returns true if an effect with this standing happened.
pub(crate) fn is_done(standing: &str) -> bool {
    standing == "done" || standing.starts_with("done (")
}

/// Returns true if an effect with this standing may have happened.
pub(crate) fn is_unknown(standing: &str) -> bool {
    standing.starts_with("unknown") || matches!(standing, "in doubt" | "running")
}
