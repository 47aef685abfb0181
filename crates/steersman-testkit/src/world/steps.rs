//! The acts of people and the passing of time in a test.

use super::ledger::released;
use super::{Fault, Held, Seen, Took, World, fault};
use serde_json::Value as Json;
use std::convert::Infallible;
use steersman_machine::network::Then;
use steersman_machine::network::join::JoinOn;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::stored::by::{By, Decider};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::commit::{
    About, Admission, Admitted, Binding, Commit, LedgerEntry, Release, Why,
};
use steersman_machine::stored::ids::{Body, Digest, Id, Line, Name};
use steersman_machine::stored::outcome::{Came, NewArtifact, NewWrite, Outcome};
use steersman_machine::tick::effect::{
    Cancelled, Judge, Offered, Opened, Said, Start, ToolWork, Work,
};
use steersman_machine::tick::wait;
use steersman_machine::tick::wait::{Meets, deadline};
use steersman_machine::tick::{allowed, asked_at, changed};
use steersman_machine::view::mapping;
use steersman_machine::view::mapping::Raw;

impl World {
    /// Returns a message with the next message id.
    pub fn said(&mut self, text: &str) -> Said {
        self.messages += 1;
        Said {
            id: format!("m{}", self.messages).into(),
            text: text.into(),
            to: None,
            by: By::default(),
            sender: None,
            came: Vec::new(),
            sets: Vec::new(),
        }
    }

    /// Begins the session with this agent or the entry, and with a message if one is given.
    pub fn start(&mut self, agent: Option<Name>, message: Option<&str>) -> Result<Took, Fault> {
        let entry = agent
            .clone()
            .or_else(|| self.network.entry.first().cloned());
        let Some(entry) = entry else {
            return fault("the network has no entry");
        };
        let message = message.map(|text| self.said(text));
        let start = Start {
            agent,
            args: None,
            message,
            came: Vec::new(),
            history: self.history.clone(),
            binding: Binding {
                digest: self.network.digest,
                source: [0; 32],
                network: self.network.name.clone(),
                entry,
                values: Body::new(Line(1), 0),
                machine: 1,
            },
            values: "{}".into(),
        };
        self.offer(Id::MAIN, vec![Offered::Start(start)])
    }

    /// Binds a branch again, under this digest.
    pub fn rebind(&mut self, branch: Id, digest: Digest) {
        let at = self.at(branch);
        let bound = at.binding.as_deref().expect("the branch has begun");
        let rebound = Admission {
            kind: Admitted::Rebound,
            id: None,
            message: None,
            by: None,
            body: None,
        };
        let commit = Commit {
            parent: at.line,
            admitted: vec![rebound],
            binding: Some(Binding {
                digest,
                ..bound.clone()
            }),
            ..Commit::default()
        };
        self.own_line(branch, Some(commit), Vec::new());
    }

    /// Sends a message to the agent that has the floor on a branch; the first message begins the session.
    pub fn say(&mut self, branch: Id, text: &str) -> Result<Took, Fault> {
        if self.at(branch).root.is_none() {
            return self.start(None, Some(text));
        }
        let said = self.said(text);
        self.offer(branch, vec![Offered::Message(said)])
    }

    /// Sends a message that brings files.
    pub fn bring(&mut self, branch: Id, text: &str, came: &[NewArtifact]) -> Result<Took, Fault> {
        let said = Said {
            came: came.to_vec(),
            ..self.said(text)
        };
        self.offer(branch, vec![Offered::Message(said)])
    }

    /// Sends a message of a person who sets entries of state with it.
    pub fn say_with(
        &mut self,
        branch: Id,
        text: &str,
        by: &str,
        sets: &[NewWrite],
    ) -> Result<Took, Fault> {
        let said = Said {
            by: by.into(),
            sets: sets.to_vec(),
            ..self.said(text)
        };
        self.offer(branch, vec![Offered::Message(said)])
    }

    /// Edits state as a person.
    pub fn edit_state(&mut self, branch: Id, writes: &[NewWrite], by: &str) -> Result<Took, Fault> {
        let (writes, by) = (writes.to_vec(), by.into());
        self.offer(branch, vec![Offered::Edit { writes, by }])
    }

    /// Sends a message to one agent.
    pub fn say_to(&mut self, branch: Id, to: Id, text: &str) -> Result<Took, Fault> {
        let said = Said {
            to: Some(to),
            ..self.said(text)
        };
        self.offer(branch, vec![Offered::Message(said)])
    }

    /// Sends a message that cancels the open exchange.
    pub fn interrupt(&mut self, branch: Id, text: &str) -> Result<Took, Fault> {
        let message = self.said(text);
        let known = self.known(self.at(branch));
        let shown = Vec::new();
        self.offer(
            branch,
            vec![Offered::Interrupt {
                message,
                known,
                shown,
            }],
        )
    }

    /// Cancels something as the user.
    pub fn cancel(&mut self, branch: Id, what: Cancelled) -> Result<Took, Fault> {
        let known = self.known(self.at(branch));
        self.offer(
            branch,
            vec![Offered::Cancel {
                what,
                by: "user".into(),
                known,
                shown: Vec::new(),
            }],
        )
    }

    /// Forks at a line, as a person, with a first message if one is given.
    pub fn fork(
        &mut self,
        at: Line,
        name: Option<&str>,
        say: Option<&str>,
        dry: bool,
    ) -> Result<Id, Fault> {
        let say = say.map(|text| self.said(text));
        let opened = Opened {
            dry,
            label: name.map(Name::from),
            say,
            known: self.known(&self.after(at)),
            ..Opened::default()
        };
        let branch = self.open(at, opened)?;
        self.follow()?;
        Ok(branch)
    }

    /// Lets an agent judge a branch at a line, on a branch of its own.
    pub fn judge(&mut self, at: Line, agent: &str, args: serde_json::Value) -> Result<Id, Fault> {
        let agent = Name::from(agent);
        let opened = Opened {
            dry: true,
            judge: Some(Judge { agent, args }),
            known: self.known(&self.after(at)),
            ..Opened::default()
        };
        let branch = self.open(at, opened)?;
        self.follow()?;
        self.pump()?;
        Ok(branch)
    }

    /// Goes back to a line of the current branch, as a person. The branch that is left is superseded.
    pub fn rewind(&mut self, at: Line, name: Option<&str>, say: Option<&str>) -> Result<Id, Fault> {
        let say = say.map(|text| self.said(text));
        let opened = Opened {
            rewound: true,
            label: name.map(Name::from),
            say,
            known: self.known(&self.after(at)),
            ..Opened::default()
        };
        let left = self.current;
        let branch = self.open(at, opened)?;
        self.supersede(left);
        self.current = branch;
        self.follow()?;
        Ok(branch)
    }

    /// Joins branches into the current one, as a person.
    pub fn join(
        &mut self,
        branches: Vec<Id>,
        on: JoinOn,
        then: Option<Then>,
    ) -> Result<Took, Fault> {
        let joined = Offered::Join { branches, on, then };
        let took = self.offer_once(self.current, vec![joined])?;
        self.ends()?;
        self.follow()?;
        Ok(took)
    }

    /// Adopts a branch into the current one, as a person.
    pub fn adopt(&mut self, branch: Id) -> Result<Took, Fault> {
        let took = self.adopt_into(self.current, None, branch, self.branch(branch).head)?;
        self.follow()?;
        Ok(took)
    }

    /// Returns the oldest outstanding effect on the branch that has this hold and belongs to `name`: a call of this tool, a question to
    /// this person, or a wait for this event.
    pub fn find(&self, branch: Id, held: &Held, name: &str) -> Option<Id> {
        let found = self.out.iter().find(|(id, out)| {
            let call = self.at(branch).call_of(**id);
            let named = match &out.wish.work {
                Work::Ask { to, .. } => **to == *name,
                Work::Event { any } => any.iter().any(|one| *one.event == *name),
                _ => false,
            };
            out.branch == branch
                && std::mem::discriminant(&out.held) == std::mem::discriminant(held)
                && (named || call.is_some_and(|c| *c.call.name == *name))
        });
        found.map(|(id, _)| *id)
    }

    fn tool_of(&self, effect: Id) -> Result<ToolWork, Fault> {
        match self.out.get(&effect).map(|o| &o.wish.work) {
            Some(Work::Tool(tool) | Work::Simulate(tool)) => Ok(tool.clone()),
            _ => fault(format!("{effect} is not a tool's effect that is out")),
        }
    }

    fn accept(&mut self) -> LedgerEntry {
        self.messages += 1;
        super::ledger::accepted(format!("m{}", self.messages).into())
    }

    /// Asks for the call of a held effect again, if something that it reads has changed since its question: the answer is refused.
    fn still_asked(&mut self, effect: Id, by: &str) -> Result<(), Fault> {
        let (branch, ..) = self.place(effect)?;
        let then = self.after(self.asked_at(effect));
        let changed = changed(&self.cx(), &then, self.at(branch), effect);
        let Some(changed) = changed.first() else {
            return Ok(());
        };
        self.note(LedgerEntry::Released {
            effect,
            why: Why::Approval,
            how: Release::Cancelled,
            about: None,
            by: Decider::Rule,
            body: None,
        });
        let by = Some(by.into());
        self.offer(branch, vec![Offered::Anew { effect, by }])?;
        fault(format!("the question is over: {changed}"))
    }

    /// Returns the line whose snapshot the question of an effect showed.
    pub(super) fn asked_at(&self, effect: Id) -> Line {
        let at = asked_at(effect, |n| Ok::<_, Infallible>(self.line(n)));
        at.unwrap_or_else(|never| match never {})
    }

    /// Approves an effect as it is. The preconditions are checked again.
    pub fn approve(&mut self, effect: Id, by: &str) -> Result<(), Fault> {
        self.still_asked(effect, by)?;
        let tool = self.tool_of(effect)?;
        let (branch, owner, call) = self.place(effect)?;
        let accepted = self.accept();
        let released = released(effect, Why::Approval, Release::Go, by, None);
        let call_args = self.at(branch).call(owner, call).map(|open| {
            let args = mapping::arguments(&self.cx(), self.at(branch), open);
            Json::Object(args)
        });
        let args = call_args.unwrap_or_default();
        if let Err(refusal) = allowed(&self.cx(), self.at(branch), owner, call, &args) {
            self.note(accepted);
            self.note(released);
            let raw = Raw::NotPerformed(mapping::Fault::new(refusal.code, refusal.text));
            return self.gives(effect, &raw);
        }
        let mut ledger = vec![accepted, released];
        let asked = self.asked(effect)?;
        let mut approved = self.out[&effect].approved.clone();
        approved.push(asked);
        let next = super::ledger::hold(effect, &tool, &approved);
        if let Some(out) = self.out.get_mut(&effect) {
            out.approved = approved;
        }
        if let Some(hold) = next.filter(|hold| hold.why == Why::Approval) {
            // Another person must approve as well.
            ledger.push(LedgerEntry::Hold(hold));
        } else if tool.inputs.is_empty() {
            if !tool.class.is_free() {
                ledger.push(self.start_effect(effect, &tool));
            }
            self.hold(effect, Held::Ready);
            self.ready.push_back(effect);
        } else {
            self.hold(effect, Held::Input(0));
        }
        self.ledger_line(branch, ledger);
        Ok(())
    }

    /// Returns the person who is asked to approve an effect now.
    fn asked(&self, effect: Id) -> Result<Name, Fault> {
        let tool = self.tool_of(effect)?;
        let asked = tool.next_approval(&self.out[&effect].approved);
        let asked = asked.ok_or_else(|| Fault(format!("nobody is asked to approve {effect}")))?;
        Ok(asked.by.clone())
    }

    /// Judges the arguments that an approver gives, as the driver does before it takes the decision: those that may not run are
    /// refused to the approver.
    pub fn may_run(&self, effect: Id, args: &Json) -> Result<(), Fault> {
        let (branch, owner, call) = self.place(effect)?;
        let judged = allowed(&self.cx(), self.at(branch), owner, call, args);
        judged.map_err(|refusal| Fault(refusal.text))
    }

    /// Approves an effect with other arguments.
    pub fn edit(&mut self, effect: Id, args: &Json, by: &str) -> Result<Took, Fault> {
        self.still_asked(effect, by)?;
        let (branch, ..) = self.place(effect)?;
        let accepted = self.accept();
        self.note(accepted);
        self.note(released(effect, Why::Approval, Release::Edited, by, None));
        let args = args.to_string().into();
        let by = by.into();
        let approver = self.asked(effect)?;
        self.offer(
            branch,
            vec![Offered::Edited {
                effect,
                args,
                by,
                approver,
            }],
        )
    }

    /// Rejects an effect, with a reason.
    pub fn reject(&mut self, effect: Id, reason: &str, by: &str) -> Result<(), Fault> {
        let (branch, owner, call) = self.place(effect)?;
        let accepted = self.accept();
        self.note(accepted);
        self.note(released(effect, Why::Approval, Release::Refused, by, None));
        let raw = Raw::NotPerformed(mapping::Fault::new(Code::Rejected, reason));
        let mut mapped = mapping::map(&self.cx(), self.at(branch), owner, call, &raw);
        mapped.by = Some(By::from(by).into());
        self.mapped(effect, mapped)
    }

    /// Answers a question, or gives a secret that is asked for.
    pub fn answer(&mut self, effect: Id, text: &str, by: &str) -> Result<(), Fault> {
        let (branch, owner, call) = self.place(effect)?;
        let accepted = self.accept();
        if let Held::Input(k) = self.out[&effect].held {
            let tool = self.tool_of(effect)?;
            let parameter = About::Parameter(tool.inputs[k].0.clone());
            let released = released(effect, Why::Input, Release::Go, by, Some(parameter));
            let mut ledger = vec![accepted, released];
            if k + 1 < tool.inputs.len() {
                self.hold(effect, Held::Input(k + 1));
            } else {
                if !tool.class.is_free() {
                    ledger.push(self.start_effect(effect, &tool));
                }
                self.hold(effect, Held::Ready);
                self.ready.push_back(effect);
            }
            self.ledger_line(branch, ledger);
            return Ok(());
        }
        self.note(accepted);
        let mapped = mapping::answer(&self.cx(), self.at(branch), owner, call, text, &by.into());
        self.mapped(effect, mapped)
    }

    /// Settles a doubt. With a result, the effect happened; with `None`, it did not happen and runs again.
    pub fn resolve(&mut self, effect: Id, happened: Option<&Json>, by: &str) -> Result<(), Fault> {
        let tool = self.tool_of(effect)?;
        let (branch, ..) = self.place(effect)?;
        let released = |how| released(effect, Why::Doubt, how, by, None);
        if let Some(result) = happened {
            self.seen.insert(effect, Seen::Started(1));
            self.note(released(Release::Outcome));
            return self.gives(effect, &Raw::Done(result.clone()));
        }
        let ledger = vec![released(Release::Go), self.start_effect(effect, &tool)];
        self.ledger_line(branch, ledger);
        self.hold(effect, Held::Ready);
        self.ready.push_back(effect);
        Ok(())
    }

    /// Gives a doubt up: the call closes, and the model reads that it may have happened.
    pub fn give_up(&mut self, effect: Id, by: &str) -> Result<(), Fault> {
        let (branch, owner, call) = self.place(effect)?;
        self.note(released(effect, Why::Doubt, Release::GivenUp, by, None));
        let raw = Raw::Unknown(mapping::Fault::new(Code::InDoubt, "nobody knows"));
        let mapped = mapping::map(&self.cx(), self.at(branch), owner, call, &raw);
        self.mapped(effect, mapped)
    }

    /// Offers an event to the first wait on the branch that takes it. Returns false if none does.
    pub fn event(&mut self, branch: Id, name: &str, fields: &Json) -> Result<bool, Fault> {
        let here = self.out.iter().filter(|(_, out)| out.branch == branch);
        let mut waits = here.filter(|(_, out)| matches!(out.wish.work, Work::Event { .. }));
        let found = waits.find_map(|(id, _)| {
            match wait::event(&self.cx(), self.at(branch), *id, name, fields) {
                Meets::Nothing => None,
                Meets::Part => Some((*id, None)),
                Meets::Over(raw) => Some((*id, Some(raw))),
            }
        });
        let Some((effect, over)) = found else {
            return Ok(false);
        };
        let accepted = self.accept();
        self.note(accepted);
        if let Some(raw) = over {
            self.gives(effect, &raw)?;
        } else {
            let came = Came::Event {
                event: name.to_owned(),
                fields: fields.clone(),
                came: Vec::new(),
            };
            self.outcome(effect, Outcome::Came(came))?;
        }
        Ok(true)
    }

    /// Moves the clock by `millis` milliseconds. Everything that becomes due meanwhile happens in the order of its time, each with all
    /// its consequences.
    pub fn advance(&mut self, millis: u64) -> Result<(), Fault> {
        self.pass(millis, true)
    }

    /// Moves the clock. Effects that can run then are played only if `pump` is true.
    pub fn pass(&mut self, millis: u64, pump: bool) -> Result<(), Fault> {
        let end = self.now.plus(millis);
        loop {
            let due = |id: &Id| {
                let out = &self.out[id];
                match &out.held {
                    Held::Later(at, _) => Some(*at),
                    Held::Told => None,
                    _ => out.wish.due,
                }
            };
            let effect = self
                .out
                .keys()
                .filter_map(|id| Some((due(id)?, Some(*id), Id::MAIN)))
                .min();
            let clock = self
                .branches
                .iter()
                .filter(|(_, b)| !b.superseded)
                .filter_map(|(id, b)| Some((deadline(&self.cx(), &b.snapshot)?, None, *id)))
                .min();
            let next = effect.into_iter().chain(clock).min();
            let Some((at, effect, branch)) = next.filter(|(at, ..)| *at <= end) else {
                break;
            };
            self.now = self.now.max(at);
            if let Some(effect) = effect {
                self.due(effect)?;
            } else {
                let took = self.offer(branch, vec![Offered::Clock])?;
                if took.line.is_none() {
                    return fault(format!("time passed on {branch} and nothing happened"));
                }
            }
            if pump {
                self.pump()?;
            }
        }
        self.now = end;
        Ok(())
    }

    /// Ends an effect whose time has come.
    fn due(&mut self, effect: Id) -> Result<(), Fault> {
        let raw = match &self.out[&effect].held {
            Held::Later(_, raw) => raw.clone(),
            Held::Timer | Held::Event => {
                let branch = self.out[&effect].branch;
                match wait::due(&self.cx(), self.at(branch), effect) {
                    Meets::Over(raw) => raw,
                    Meets::Part => return self.outcome(effect, Outcome::Came(Came::Time)),
                    Meets::Nothing => return fault(format!("{effect} is due and is not a wait")),
                }
            }
            Held::Approval => {
                Raw::NotPerformed(mapping::Fault::new(Code::Expired, "nobody decided"))
            }
            Held::Question | Held::Input(_) => Raw::NotPerformed(mapping::Fault::new(
                Code::Timeout,
                "nobody answered in time",
            )),
            Held::Ready | Held::Doubt | Held::Told => {
                return fault(format!("{effect} is due and waits for nothing"));
            }
        };
        self.gives(effect, &raw)
    }

    /// Returns everything on a branch that waits for the outside, as tests name it: `approval TOOL`, `question ROLE`, `doubt
    /// TOOL`, `input TOOL`, `event NAME`. Sorted.
    pub fn open_now(&self, branch: Id) -> Vec<String> {
        let mut open: Vec<String> = self
            .out
            .values()
            .filter(|out| out.branch == branch)
            .filter_map(|out| {
                let tool = match &out.wish.work {
                    Work::Tool(tool) => tool.tool.to_string(),
                    Work::Ask { to, .. } => to.to_string(),
                    Work::Event { any } => {
                        let names: Vec<&str> = any.iter().map(|one| &*one.event).collect();
                        names.join(" or ")
                    }
                    _ => String::new(),
                };
                match out.held {
                    Held::Approval => Some(format!("approval {tool}")),
                    Held::Question => Some(format!("question {tool}")),
                    Held::Doubt => Some(format!("doubt {tool}")),
                    Held::Input(_) => Some(format!("input {tool}")),
                    Held::Event => Some(format!("event {tool}")),
                    Held::Ready | Held::Timer | Held::Told | Held::Later(..) => None,
                }
            })
            .collect();
        open.sort();
        open
    }

    /// Returns the digest of all lines; it is equal for equal sessions.
    pub fn digest(&self) -> Digest {
        Digest::of(format!("{:?}", self.lines()).as_bytes())
    }
}

impl World {
    /// Restarts the process: checks that all lines fold to the snapshots of their branches. Effects that had begun begin again;
    /// questions to people stay open.
    pub fn restart(&mut self) -> Result<(), Fault> {
        let mut snapshots: Vec<Snapshot> = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            let before = match line.prev.0.checked_sub(1) {
                Some(k) => snapshots[k as usize].clone(),
                None => Snapshot::empty(),
            };
            snapshots.push(fold(before, line));
        }
        for branch in self.branches.values() {
            if branch.head.is_some() {
                let folded = &snapshots[branch.head.0 as usize - 1];
                if *folded != branch.snapshot {
                    return fault(format!(
                        "branch {} folds to something else",
                        branch.snapshot.branch
                    ));
                }
            }
        }
        for (effect, out) in &mut self.out {
            if out.held == Held::Ready && !self.ready.contains(effect) {
                self.ready.push_back(*effect);
            }
        }
        Ok(())
    }
}
