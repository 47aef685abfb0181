//! Scores of branches: by an expression immediately, by a tool in a task of its own, or by an agent on a branch of its own.

use super::super::parts::Judging;
use super::super::{Aside, Job, Stop};
use crate::artifact::Artifacts;
use crate::toolset::ToolRun;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_machine::network::search::{Plan, Scorer};
use steersman_machine::search;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::{LedgerEntry, Searching};
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::stored::interaction::Cause;
use steersman_machine::tick::effect::{Judge, Opened, ToolWork};
use steersman_machine::view::mapping::Raw;

impl Job<'_, '_> {
    /// Begins the judgement of a node.
    pub(super) fn judge(&mut self, id: Id, plan: &Plan, of: (Id, Line)) -> Result<(), Stop> {
        let (snapshot, _) = self.node(id, of)?;
        let judging = match failed(&snapshot) {
            Some(why) => Judging::Known(Err(format!("it ended: {why}"))),
            None => self.begin_judging(id, plan, of, &snapshot)?,
        };
        self.d.searches.judges(id, of, judging);
        self.busy();
        Ok(())
    }

    fn begin_judging(
        &mut self,
        id: Id,
        plan: &Plan,
        of: (Id, Line),
        snapshot: &Snapshot,
    ) -> Result<Judging, Stop> {
        let answer = self.ask(|cx| search::answer(cx, snapshot))?;
        let by = match &plan.score {
            None => {
                let worth = answer.map(|_| 1.0).ok_or("it came to no answer".to_owned());
                return Ok(Judging::Known(worth));
            }
            Some(Scorer::Expr(expr)) => {
                let worth = self.ask(|cx| search::score(cx, snapshot, snapshot.now, expr))?;
                return Ok(Judging::Known(worth));
            }
            Some(by) => by.clone(),
        };
        let state = search::state(snapshot);
        let args = search::judged(self.network(), &by, answer.as_deref(), &state);
        match by {
            Scorer::Tool(name) => {
                Ok(self.run_judge(id, of, &name, &args.to_string().into(), snapshot))
            }
            Scorer::Agent(name) => {
                let known = self.d.ledger.search(id);
                let begun = known.and_then(|known| {
                    let mut judged = known.judged.iter();
                    judged
                        .find(|(_, judged)| *judged == of)
                        .map(|(branch, _)| *branch)
                });
                if let Some(branch) = begun {
                    return Ok(Judging::Agent(branch));
                }
                let opened = Opened {
                    dry: true,
                    judge: Some(Judge { agent: name, args }),
                    ..Opened::default()
                };
                let what = |branch| Searching::Judged {
                    branch,
                    of: of.0,
                    at: of.1,
                };
                let opened = self.open_searched(id, of, opened, what)?;
                Ok(match opened {
                    Ok(branch) => Judging::Agent(branch),
                    Err(why) => Judging::Known(Err(why)),
                })
            }
            Scorer::Expr(_) => Ok(Judging::Known(
                Err("an expression is not a tool".to_owned()),
            )),
        }
    }

    /// Runs a judging tool in a task of its own, within the slots of the tool and the rate of its place.
    fn run_judge(
        &mut self,
        id: Id,
        of: (Id, Line),
        tool: &Name,
        args: &Arc<str>,
        snapshot: &Snapshot,
    ) -> Judging {
        let Some(def) = self.tool_def(tool) else {
            return Judging::Known(Err(format!("there is no tool `{tool}`")));
        };
        let (class, timeout) = (def.effect, def.timeout);
        let agent = snapshot.top().unwrap_or(Id::MAIN);
        let effect = Id::new(of.1, 0);
        let store = self.seen.engine.store().clone();
        let run = ToolRun {
            network: self.network().clone(),
            session: self.d.who.session().clone(),
            part: self.d.who.claim().scope.clone(),
            mark: self.mark_of(effect),
            effect,
            attempt: 1,
            work: ToolWork {
                makes: tool.clone(),
                tool: tool.clone(),
                class,
                args: args.clone(),
                approve: Vec::new(),
                inputs: Vec::new(),
            },
            folder: self.d.bound.values().folder(),
            artifacts: Artifacts::new(store, snapshot.clone(), agent)
                .and_coming(self.seen.past.coming()),
            steps: None,
            trace: None,
            writes: None,
            scope: self.scope_in(
                &self.seen.reader,
                snapshot.clone(),
                agent,
                (Some(args.clone()), &[]),
            ),
        };
        self.begins_aside(id, 1, Aside::Judge(of), class, Ok((run, timeout)));
        Judging::Tool
    }

    /// Records the score that a tool gave.
    pub(in super::super) fn judged(&mut self, id: Id, of: (Id, Line), raw: Raw) {
        let worth = match raw {
            Raw::Done(value) | Raw::Made { result: value, .. } => search::worth(&value),
            Raw::NotPerformed(fault) | Raw::Unknown(fault) | Raw::Failed(fault) => {
                Err(format!("{}: {}", fault.code, fault.message))
            }
        };
        self.d.searches.judged(id, of, worth);
    }

    /// Writes the scores of all judged nodes in one line, once no tool runs any more.
    pub(super) fn note_judged(&mut self, id: Id) -> Result<(), Stop> {
        let Some(known) = self.d.ledger.search(id).cloned() else {
            return Ok(());
        };
        let judging = self.d.searches.take_judged(id);
        if judging.is_empty() {
            return Ok(());
        }
        let mut draft = self.draft(known.branch);
        let mut done = Vec::new();
        for ((branch, at), judging) in judging {
            let worth = match judging {
                Judging::Tool => continue,
                Judging::Known(worth) => worth,
                Judging::Agent(judge) => {
                    done.push(judge);
                    self.verdict(judge)?
                }
            };
            let (value, why) = match worth {
                Ok(value) => (Some(json!(value).to_string().into()), None),
                Err(why) => {
                    let cut: String = why.chars().take(WHY).collect();
                    let why = if cut.len() < why.len() {
                        format!("{cut}...")
                    } else {
                        cut
                    };
                    (None, Some(draft.body(&why)))
                }
            };
            draft.ledger.push(LedgerEntry::Search {
                search: id,
                what: Searching::Scored {
                    branch,
                    at,
                    value,
                    why,
                },
            });
        }
        for judge in done {
            self.supersede(&mut draft, judge, None);
        }
        self.write(draft)
    }

    /// Returns the score that an agent gave on its branch.
    fn verdict(&mut self, judge: Id) -> Result<Result<f64, String>, Stop> {
        let at = self.d.ledger.branch(judge).map_or(Line::NONE, |b| b.commit);
        let snapshot = self.snapshot_at(judge, at)?;
        let answer = self.ask(|cx| search::answer(cx, &snapshot))?;
        if let Some(why) = failed(&snapshot) {
            let said = answer.map_or_else(String::new, |said| format!(": {said}"));
            return Ok(Err(format!("who judges ended: {why}{said}")));
        }
        Ok(match answer {
            Some(answer) => search::worth(&Json::from(&*answer)),
            None => Err("who judges gave no answer".to_owned()),
        })
    }
}

/// Maximum number of characters of a reason that are kept.
const WHY: usize = 500;

/// Returns the cause if the branch's top agent failed, was cancelled or was in a deadlock. Such a branch gets no score.
fn failed(snapshot: &Snapshot) -> Option<&'static str> {
    let top = snapshot.top().and_then(|top| snapshot.agents.get(&top))?;
    let (_, cause) = top.turn.ended?;
    let bad = matches!(cause, Cause::Failed | Cause::Cancelled | Cause::Deadlock);
    let rests = top.phase == steersman_machine::snapshot::Phase::Resting;
    (bad && rests).then(|| steersman_machine::stored::words::cause_word(cause))
}
