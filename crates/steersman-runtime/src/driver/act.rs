//! Messages of people and programs: read from the inbox, checked against what is open, turned into offers or ledger lines.

use super::branches::{Acted, said, sets};
use super::draft::{Draft, Note, Offer};
use super::{Answered, Heard, Job, OutState, Say, Stop, Want, What};
use crate::branches::unjoinable;
use crate::engine::EngineError;
use crate::inbox::{Begin, Message, Resolution, Wanted};
use crate::ledger::Record;
use crate::pending::{PendingId, may};
use crate::session::Fate;
use crate::store::InboxMessage;
use crate::toolset::Given;
use serde_json::{Map, Value as Json};
use steersman_machine::network::Then;
use steersman_machine::network::join::JoinOn;
use steersman_machine::stored::by::{By, Decider};
use steersman_machine::stored::codes::{Code, FailureCode};
use steersman_machine::stored::commit::{LedgerEntry, Release, Why};
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::stored::outcome::NewArtifact;
use steersman_machine::tick::allowed;
use steersman_machine::tick::effect::{Offered, Said, Start, Work};
use steersman_machine::tick::history::ChatHistory;
use steersman_machine::values::expression::Data;
use steersman_machine::view::mapping::{Fault, Raw};

/// Parses the tool that follows a join, with its arguments as given.
/// Checks that an answer is one of the options of its question, if it has any.
fn is_option(options: &[String], text: &str) -> Result<(), String> {
    if options.is_empty() || options.iter().any(|option| option == text) {
        return Ok(());
    }
    Err(format!("the answer is one of: {}", options.join(", ")))
}

fn follows(tool: Option<Name>, args: Option<&str>) -> Result<Option<Then>, String> {
    let Some(tool) = tool else {
        return match args {
            Some(_) => Err("arguments are given without a tool that follows".to_owned()),
            None => Ok(None),
        };
    };
    let Some(args) = args else {
        return Ok(Some(Then { tool, args: None }));
    };
    let given: Map<String, Json> = steersman_machine::values::json::read(args)
        .map_err(|e| format!("the arguments of `{tool}` are not a JSON object: {e}"))?;
    let given = given.into_iter().map(|(name, value)| {
        let data = Data::parse(value).map_err(|e| format!("`{name}`: {}", e.message))?;
        Ok((name.into(), data))
    });
    let args = Some(given.collect::<Result<_, String>>()?);
    Ok(Some(Then { tool, args }))
}

impl Job<'_, '_> {
    /// Reads the messages that arrived since the last read, oldest first. They are judged next.
    pub(super) fn read_inbox(&mut self) -> Result<(), Stop> {
        let Answered::Inbox(mail, messages) = self.wants(Want::Inbox)? else {
            unreachable!("an answer is of the kind that was asked for");
        };
        let (mail, messages) = (*mail, messages.clone());
        self.d.mail.was_read();
        let messages = messages.into_iter().map(Heard::Mail);
        let all = messages.chain([Heard::MailRead(mail)]);
        self.d.course.hears(all);
        Ok(())
    }

    /// Judges messages of the inbox until one has done more than make an offer.
    pub(super) fn judge_inbox(&mut self, first: InboxMessage) -> Result<(), Stop> {
        let orders = self.out.orders.len();
        let mut next = Some(first);
        while let Some(message) = next {
            self.judge_mail(message)?;
            let goes_on = self.out.batches.len() == self.made
                && self.out.orders.len() == orders
                && self.seen.answers.known.is_empty()
                && self.follows().is_none();
            next = if goes_on {
                self.d.course.take_mail()
            } else {
                None
            };
        }
        Ok(())
    }

    fn judge_mail(&mut self, message: InboxMessage) -> Result<(), Stop> {
        if self.d.mail.knows(&message.id) || self.d.ledger.accepted(&message.id) {
            return Ok(());
        }
        if self.is_to_begin() {
            // The first line decides which messages are valid: the rest is read after it.
            self.d.course.leaves_mail();
            return Ok(());
        }
        self.busy();
        // A time may have been due before the message arrived, while nobody owned the session. Its effects come first.
        let came = message.at.min(self.seen.now);
        // While the session is stopped after a line, due times are not handled.
        if !self.is_between_steps() && self.next_due().is_some_and(|due| due <= came) {
            self.d.course.leaves_mail();
            self.time_passed(came);
            self.d.mail.waits_for_time();
            return Ok(());
        }
        self.d.mail.judges(&message);
        match Message::decode(&message) {
            Ok(wanted) => self.act(message, wanted),
            // No message can be judged without the one that begins the session.
            Err(error) if self.d.bound.network().is_none() => Err(EngineError::from(error).into()),
            Err(error) => {
                // It stays in the inbox, where lists show it, and does not stop other messages.
                self.waits(message.id, error.to_string());
                Ok(())
            }
        }
    }

    /// A message stays in the inbox, where it is on disk: its sender is told what it waits for.
    pub(super) fn waits(&mut self, id: Name, why: String) {
        self.d.mail.waits(&id, &why);
        self.out.told.push(Say::Waits(id, why));
    }

    /// Returns true if anything was committed. Before that, only the message that begins the session is taken.
    fn has_commit(&self) -> bool {
        let main = self.d.ledger.branch(Id::MAIN);
        main.is_some_and(|main| main.commit.is_some())
    }

    /// Returns true if the first message is offered and was not taken yet.
    pub(super) fn is_to_begin(&self) -> bool {
        let main = self.d.branches.live().get(&Id::MAIN);
        !self.has_commit() && main.is_some_and(|main| !main.offers.is_empty())
    }

    fn act(&mut self, message: InboxMessage, mut wanted: Message) -> Result<(), Stop> {
        let came = wanted.came();
        let (by, branch) = (wanted.by.unwrap_or_default(), wanted.branch);
        if let Wanted::Start(begin) = wanted.wanted {
            return self.begin_session(message, *begin, by, came);
        }
        if self.d.bound.network().is_none() || !self.has_commit() {
            return self.refuse(message, "the session has not begun");
        }
        let acted = match wanted.wanted {
            Wanted::Start(_) => Ok(()),
            Wanted::Say { text, to } => {
                let said = Said {
                    to,
                    by,
                    came,
                    ..said(&message, text)
                };
                self.say(&message, said, branch)
            }
            Wanted::SayWith { text, state } => match sets(state) {
                Ok(sets) => {
                    let said = Said {
                        by,
                        came,
                        sets,
                        ..said(&message, text)
                    };
                    self.say(&message, said, branch)
                }
                Err(why) => Err(why),
            },
            Wanted::Sent { text, to, from } => {
                let said = Said {
                    to: Some(to),
                    sender: Some(from),
                    ..said(&message, text)
                };
                self.say(&message, said, branch)
            }
            Wanted::Interrupt(text) => {
                let said = Said {
                    by,
                    came,
                    ..said(&message, text)
                };
                self.offer_message(&message, branch, What::Interrupt(said))
            }
            Wanted::Answer { of, sealed } => self.answer(&message, of, &sealed, by)?,
            Wanted::Approve { of, args } => self.approve(&message, of, by, args)?,
            Wanted::Reject { of, reason } => self.reject(&message, of, &by, reason)?,
            Wanted::Resolve { of, how } => self.resolve(&message, of, &by, how)?,
            Wanted::Cancel(what) => self.cancel(&message, &what, &by, branch),
            Wanted::Event { .. } => {
                self.d.mail.events_wait([message.clone()]);
                Ok(())
            }
            Wanted::Pause(paused) => self.pause(&message, paused, by)?,
            Wanted::Hold { tool, held } => self.order(&message, tool, held, by)?,
            Wanted::Retry(effect) => self.retry(&message, effect, by)?,
            Wanted::Rebind(config) => self.rebind(&message, config)?,
            Wanted::Redefine(order) => self.redefine(&message, &order)?,
            Wanted::Fork {
                at,
                label,
                say,
                live,
            } => self.fork(&message, branch, at, label, say, live)?,
            Wanted::Rewind { at, label, say } => self.rewind(&message, branch, at, label, say)?,
            Wanted::Join {
                branches,
                on,
                then,
                args,
            } => match self.joinable(&branches)? {
                Some(why) => Err(why),
                None => self.offer_join(&message, branches, &on, then, args.as_deref()),
            },
            Wanted::Adopt { branch, at } => self.adopt(&message, branch, at)?,
            Wanted::Search { at, say, plan } => {
                self.begin_search(&message, branch, at, say, &plan)?
            }
            Wanted::StopSearch(of) => self.stop_searches(&message, of)?,
            Wanted::Current(branch) => self.make_current(&message, branch)?,
            Wanted::Edit(writes) => self.edit(&message, writes, by),
            Wanted::Outcome { effect, .. } => Err(format!(
                "an outcome of {effect} came from outside, but this process runs its effects itself"
            )),
        };
        match acted {
            Ok(()) => Ok(()),
            Err(why) => self.refuse(message, &why),
        }
    }

    /// Returns why the root cannot wait for these branches; `None` if it can.
    fn joinable(&self, branches: &[Id]) -> Result<Option<String>, Stop> {
        let found = self.ask(|cx| {
            let snapshots = self
                .d
                .branches
                .live()
                .iter()
                .map(|(id, b)| (*id, &b.snapshot));
            unjoinable(cx, &self.d.ledger, &snapshots.collect(), branches)
        })?;
        Ok(found)
    }

    fn offer_join(
        &mut self,
        message: &InboxMessage,
        branches: Vec<Id>,
        on: &str,
        then: Option<Name>,
        args: Option<&str>,
    ) -> Acted {
        let on: JoinOn = on.parse()?;
        let then = follows(then, args)?;
        on.fits(branches.len())?;
        let offered = Offered::Join { branches, on, then };
        self.offer_message(message, None, What::Offer(Box::new(offered)))
    }

    /// Begins a session with the binding that was chosen when it was started.
    fn begin_session(
        &mut self,
        message: InboxMessage,
        begin: Begin,
        by: By,
        came: Vec<NewArtifact>,
    ) -> Result<(), Stop> {
        if self.d.bound.network().is_some() {
            return self.refuse(message, "the session has begun already");
        }
        self.bind(&begin.binding, &begin.values)?;
        let args = begin
            .args
            .as_deref()
            .map(steersman_machine::values::json::read);
        let args = match args.transpose() {
            Ok(args) => args,
            Err(e) => {
                let why = format!("the arguments are not JSON: {e}");
                return self.refuse(message, &why);
            }
        };
        let history = begin.history.as_deref().map(ChatHistory::read);
        let history = match history.transpose() {
            Ok(history) => history.unwrap_or_default(),
            Err(e) => {
                let why = format!("the history cannot be read: {e}");
                return self.refuse(message, &why);
            }
        };
        let said = begin.say.map(|text| Said {
            by,
            ..said(&message, text)
        });
        let start = Start {
            history,
            agent: begin.agent,
            args,
            message: said,
            came,
            binding: begin.binding,
            values: begin.values.into(),
        };
        let what = What::Offer(Box::new(Offered::Start(start)));
        self.offer_message(&message, Some(Id::MAIN), what).ok();
        Ok(())
    }

    /// Removes a message from the inbox and tells its sender why.
    pub(super) fn refuse(&mut self, message: InboxMessage, why: &str) -> Result<(), Stop> {
        let mut draft = self.draft(self.d.ledger.current);
        draft.refuse(&message, why);
        self.receipt(&mut draft, &message.id, Fate::Refused(why.to_owned()));
        self.write(draft)
    }

    pub(super) fn accept_with(
        &mut self,
        message: &InboxMessage,
        entries: Vec<LedgerEntry>,
    ) -> Result<(), Stop> {
        let mut draft = self.draft(self.d.ledger.current);
        draft.ledger.extend(entries);
        self.accepted(&mut draft, message);
        self.write(draft)
    }

    /// Records that this line takes a message.
    pub(super) fn accepted(&mut self, draft: &mut Draft, message: &InboxMessage) {
        draft.accept(message);
        draft.urgent = true;
        self.receipt(draft, &message.id, Fate::Taken(draft.n));
    }

    pub(super) fn offer_message(
        &mut self,
        message: &InboxMessage,
        branch: Option<Id>,
        what: What,
    ) -> Acted {
        let branch = branch.unwrap_or(self.d.ledger.current);
        if !self.d.branches.live().contains_key(&branch) {
            return Err(gone(branch));
        }
        let mut offer = Offer::new(what);
        offer.message = Some(message.clone());
        self.offer(branch, offer);
        Ok(())
    }

    fn say(&mut self, message: &InboxMessage, said: Said, branch: Option<Id>) -> Acted {
        // A message to a question is its answer, whichever way it came.
        if let Some((role, options)) = said.to.and_then(|to| self.open_question(to)) {
            if said.sender.is_some() {
                return Err("an agent does not answer what a person is asked".to_owned());
            }
            may(self.network(), std::slice::from_ref(role), &said.by.role)?;
            is_option(options, &said.text)?;
        }
        let what = What::Offer(Box::new(Offered::Message(said)));
        self.offer_message(message, branch, what)
    }

    /// Returns who is asked by an open question, and its options.
    fn open_question(&self, effect: Id) -> Option<(&Name, &[String])> {
        let out = self.d.effects.out(effect)?;
        match &out.wish.work {
            Work::Ask { to, options, .. } if !matches!(out.state, OutState::Over) => {
                Some((to, options))
            }
            _ => None,
        }
    }

    fn edit(
        &mut self,
        message: &InboxMessage,
        writes: Vec<(Name, Option<String>)>,
        by: By,
    ) -> Acted {
        let writes = sets(writes)?;
        let offered = Offered::Edit { writes, by };
        self.offer_message(message, None, What::Offer(Box::new(offered)))
    }

    // ---- holds and questions

    /// Returns the kind of the open hold that the caller saw. Fails if another kind is wanted, if the hold is over, or if `by`
    /// may not answer it.
    fn seen(&self, of: PendingId, by: &str, whys: &[Why]) -> Result<Why, String> {
        let effect = of.effect;
        let open = self.d.ledger.effect(effect).and_then(Record::open_hold);
        let (at, hold) = open.ok_or_else(|| not_open(effect))?;
        if !whys.contains(&hold.why) {
            let waits = word(hold.why);
            return Err(format!("{effect} waits for something else: {waits}"));
        }
        if of.hold != Some(at) {
            let waits = word(hold.why);
            return Err(format!(
                "{of} is over: {effect} waits for {waits} since then ({effect}@{at})"
            ));
        }
        may(self.network(), &hold.by, by)?;
        // If an answer is already offered, that answer decides.
        match self.d.effects.out(effect) {
            Some(out) if matches!(out.state, OutState::Over) => Err(not_open(effect)),
            _ => Ok(hold.why),
        }
    }

    fn answer(
        &mut self,
        message: &InboxMessage,
        of: PendingId,
        sealed: &str,
        by: By,
    ) -> Result<Acted, Stop> {
        let effect = of.effect;
        let Some(out) = self.d.effects.out(effect) else {
            return Ok(Err(not_open(effect)));
        };
        if let Some((to, options)) = self.open_question(effect) {
            if let Err(why) = may(self.network(), std::slice::from_ref(to), &by.role) {
                return Ok(Err(why));
            }
            let text = match self.seen.engine.sealer().open_text(sealed) {
                Ok(text) => text.to_string(),
                Err(e) => return Ok(Err(e.to_string())),
            };
            if let Err(why) = is_option(options, &text) {
                return Ok(Err(why));
            }
            self.offer_raw(
                effect,
                Raw::Done(text.into()),
                Vec::new(),
                Some(message),
                Some(by),
            );
            return Ok(Ok(()));
        }
        let why = match self.seen(of, &by.role, &[Why::Input, Why::Elicited]) {
            Ok(why) => why,
            Err(refused) => return Ok(Err(refused)),
        };
        // If this machine's key cannot open the secret, the tool would run without it: the question stays open.
        let text = match self.seen.engine.sealer().open_text(sealed) {
            Ok(text) => text.to_string(),
            Err(error) => return Ok(Err(error.to_string())),
        };
        if why == Why::Elicited {
            return self.answers_question(message, effect, &by, &text);
        }
        let branch = out.branch;
        let about = self
            .d
            .ledger
            .hold(effect, Why::Input)
            .and_then(|h| h.about.as_ref()?.parameter().cloned());
        if let Some(parameter) = about {
            self.d.effects.gives(effect, parameter, sealed.to_owned());
        }
        let mut draft = self.draft(branch);
        self.accepted(&mut draft, message);
        self.go(
            &mut draft,
            effect,
            Why::Input,
            by.into(),
            Some(sealed.to_owned()),
        )?;
        self.write(draft)?;
        Ok(Ok(()))
    }

    fn approve(
        &mut self,
        message: &InboxMessage,
        of: PendingId,
        by: By,
        args: Option<String>,
    ) -> Result<Acted, Stop> {
        let effect = of.effect;
        let kinds = [Why::Repeat, Why::Approval, Why::Budget, Why::Elicited];
        let why = match self.seen(of, &by.role, &kinds) {
            Ok(why) => why,
            Err(refused) => return Ok(Err(refused)),
        };
        if why == Why::Elicited {
            return match args {
                Some(fields) => self.answers_question(message, effect, &by, &fields),
                None => self.accepts_question(message, effect, &by),
            };
        }
        if why == Why::Approval
            && let Some(changed) = self.changed(effect)?
        {
            self.ask_anew(Some(message), effect, Some(by), Some(changed));
            return Ok(Ok(()));
        }
        let more = match (args, why) {
            (None, _) => None,
            (Some(args), Why::Approval) => {
                return self.approve_edited(message, effect, by, &args);
            }
            (Some(args), Why::Budget) => match self.allowed_more(effect, &args) {
                Ok(more) => Some(more),
                Err(refused) => return Ok(Err(refused)),
            },
            (Some(_), _) => return Ok(Err("only an approval may change arguments".to_owned())),
        };
        let Some(out) = self.d.effects.out(effect) else {
            return Ok(Err(not_open(effect)));
        };
        let mut draft = self.draft(out.branch);
        self.accepted(&mut draft, message);
        match why {
            Why::Budget => self.granted(&mut draft, effect, by, more),
            Why::Approval
            | Why::Repeat
            | Why::Input
            | Why::Doubt
            | Why::Outage
            | Why::Wait
            | Why::Elicited => {
                self.go(&mut draft, effect, why, by.into(), None)?;
            }
        }
        self.write(draft)?;
        Ok(Ok(()))
    }

    /// Lets an effect run after a decision: its requirements are checked again, then it passes to its next gate.
    pub(super) fn go(
        &mut self,
        draft: &mut Draft,
        effect: Id,
        why: Why,
        by: Decider,
        text: Option<String>,
    ) -> Result<(), Stop> {
        let Some(out) = self.d.effects.out(effect) else {
            return Ok(());
        };
        let snapshot = &self.d.branches.live()[&out.branch].snapshot;
        let (owner, call) = (out.wish.agent, out.wish.call());
        let args: Json = out
            .tool()
            .and_then(|t| serde_json::from_str(&t.args).ok())
            .unwrap_or_default();
        let judged = match call {
            Some(call) => self.ask(|cx| allowed(cx, snapshot, owner, call, &args))?,
            None => Ok(()),
        };
        match judged {
            Ok(()) => self.pass(draft, effect, why, by, text),
            Err(refusal) => {
                let (how, by) = match why {
                    // A doubt ends with `Go`: the effect did not happen. It does not begin now either, because a requirement is
                    // not met.
                    Why::Doubt => (Release::Go, by),
                    Why::Approval
                    | Why::Input
                    | Why::Budget
                    | Why::Repeat
                    | Why::Outage
                    | Why::Wait
                    | Why::Elicited => (Release::Refused, Decider::Rule),
                };
                draft.note(Self::released(effect, why, how, by));
                self.answer_fault(effect, Code::Refused, &refusal.text);
                Ok(())
            }
        }
    }

    fn reject(
        &mut self,
        message: &InboxMessage,
        of: PendingId,
        by: &By,
        reason: Option<String>,
    ) -> Result<Acted, Stop> {
        let effect = of.effect;
        let kinds = [
            Why::Repeat,
            Why::Approval,
            Why::Budget,
            Why::Input,
            Why::Elicited,
        ];
        let why = match self.seen(of, &by.role, &kinds) {
            Ok(why) => why,
            Err(refused) => return Ok(Err(refused)),
        };
        if why == Why::Elicited {
            return self.question_over(message, effect, by, &Given::Declined, reason);
        }
        if !self.d.effects.outs().contains_key(&effect) {
            return Ok(Err(not_open(effect)));
        }
        let released = Note::Released {
            effect,
            why,
            how: Release::Refused,
            by: by.clone().into(),
            text: reason.clone(),
        };
        let said = reason.unwrap_or_else(|| format!("rejected by {}", by.role));
        let raw = match why {
            Why::Repeat => {
                let (code, text) = match self.held_about(effect, why) {
                    Some(equal) => self.instead_of(equal, Some(&said))?,
                    None => (
                        Code::InDoubt,
                        format!(
                            "it is not done again ({said}): the same call may have happened before"
                        ),
                    ),
                };
                Raw::NotPerformed(Fault::new(code, text))
            }
            Why::Budget => {
                self.fail(effect, FailureCode::Limit, &said);
                if let Some(offer) = self.last_offer(effect) {
                    offer.notes.push(released);
                    offer.message = Some(message.clone());
                }
                return Ok(Ok(()));
            }
            Why::Approval | Why::Input | Why::Doubt | Why::Outage | Why::Wait | Why::Elicited => {
                let said = match self.held_about(effect, why) {
                    // A rejection does not undo the equal effect: the model is told about it.
                    Some(equal) => format!("{said}. {}", self.what_came(equal)?),
                    None => said,
                };
                Raw::NotPerformed(Fault::new(Code::Rejected, said))
            }
        };
        self.offer_raw(effect, raw, vec![released], Some(message), Some(by.clone()));
        Ok(Ok(()))
    }

    pub(super) fn last_offer(&mut self, effect: Id) -> Option<&mut Offer> {
        let branch = self.d.effects.out(effect)?.branch;
        self.d.branches.last_offer(branch)
    }

    fn resolve(
        &mut self,
        message: &InboxMessage,
        of: PendingId,
        by: &By,
        how: Resolution,
    ) -> Result<Acted, Stop> {
        let effect = of.effect;
        // An effect that no branch waits for never runs again: only its doubt can be resolved.
        let open = self.d.ledger.effect(effect).and_then(Record::open_hold);
        let left =
            open.filter(|_| of.hold.is_none() && !self.d.effects.outs().contains_key(&effect));
        let of = PendingId {
            hold: of.hold.or(left.map(|(at, _)| at)),
            ..of
        };
        if let Err(refused) = self.seen(of, &by.role, &[Why::Doubt]) {
            return Ok(Err(refused));
        }
        let ended = match how {
            Resolution::Done { .. } => Release::Outcome,
            Resolution::NotPerformed => Release::Go,
            Resolution::Fail => Release::GivenUp,
        };
        let released = Self::released(effect, Why::Doubt, ended, by.clone().into());
        let Some(out) = self.d.effects.out(effect) else {
            // Its branch no longer waits; the ledger still records the answer.
            return self.resolve_left(message, effect, released, how);
        };
        match how {
            Resolution::Done { result } => {
                let result = match steersman_machine::values::json::read(&result) {
                    Ok(result) => result,
                    Err(e) => return Ok(Err(format!("the result is not JSON: {e}"))),
                };
                let raw = Raw::Done(result);
                if let Some(why) = self.unfit(effect, &raw)? {
                    return Ok(Err(why));
                }
                self.offer_raw(effect, raw, vec![released], Some(message), Some(by.clone()));
            }
            Resolution::NotPerformed => {
                let mut draft = self.draft(out.branch);
                self.accepted(&mut draft, message);
                self.go(&mut draft, effect, Why::Doubt, by.clone().into(), None)?;
                self.write(draft)?;
            }
            Resolution::Fail => {
                let raw = Raw::Unknown(Fault::new(Code::InDoubt, "nobody knows"));
                self.offer_raw(effect, raw, vec![released], Some(message), Some(by.clone()));
            }
        }
        Ok(Ok(()))
    }

    /// Settles, by a person's word, the doubt of an effect that no branch waits for.
    fn resolve_left(
        &mut self,
        message: &InboxMessage,
        effect: Id,
        released: Note,
        how: Resolution,
    ) -> Result<Acted, Stop> {
        let mut at_work = self
            .d
            .effects
            .at_work()
            .range((effect, 0)..=(effect, u32::MAX));
        if how == Resolution::NotPerformed && at_work.any(|(_, world)| *world) {
            return Ok(Err(format!(
                "{effect} was told to stop and has not ended yet: its tool says how it ended; resolve it then, if it is in doubt still"
            )));
        }
        let kept = match how {
            Resolution::Done { result } => match steersman_machine::values::json::read(&result) {
                Ok(result) => {
                    let raw = Raw::Done(result);
                    if let Some(why) = self.unfit(effect, &raw)? {
                        return Ok(Err(why));
                    }
                    Some(self.kept(effect, &raw)?)
                }
                Err(e) => return Ok(Err(format!("the result is not JSON: {e}"))),
            },
            Resolution::NotPerformed | Resolution::Fail => None,
        };
        let mut draft = self.draft(self.d.ledger.current);
        self.keep_notes(&mut draft, vec![released], kept.as_deref());
        self.accepted(&mut draft, message);
        self.write(draft)?;
        Ok(Ok(()))
    }

    /// Offers an outcome to the branch of its effect. `raw` is what a person, an event or the world gave.
    pub(super) fn offer_raw(
        &mut self,
        effect: Id,
        raw: Raw,
        notes: Vec<Note>,
        message: Option<&InboxMessage>,
        by: Option<By>,
    ) {
        let Some((branch, attempt)) = self.d.effects.offers_outcome(effect) else {
            return;
        };
        let mut offer = Offer::new(What::Raw {
            effect,
            attempt,
            raw,
            by,
            simulated: false,
        });
        offer.notes = notes;
        offer.message = message.cloned();
        self.offer(branch, offer);
    }
}

/// Returns the reason why nothing can be offered to a branch that has no ticks.
pub(super) fn gone(branch: Id) -> String {
    format!("branch {branch} has no ticks any more")
}

/// Returns the reason why nothing can be done to an effect that is not open.
pub(super) fn not_open(effect: Id) -> String {
    format!("nothing is open under {effect}")
}

/// Returns the thing that a hold of this kind waits for, for messages.
pub(super) fn word(why: Why) -> &'static str {
    match why {
        Why::Approval => "an approval",
        Why::Input => "a secret",
        Why::Doubt => "somebody to say whether it happened",
        Why::Budget => "more budget",
        Why::Repeat => "a word on doing it again",
        Why::Outage => "an answer of its place",
        Why::Wait => "an event or a time",
        Why::Elicited => "fields that its server asks for",
    }
}
