//! Budgets that sessions share: which of them count a call, and the wait of a call that does not fit.
//!
//! The attempt itself draws from them ([`Shares`]). One that does not fit fails with the code `limit` and, if the budget says so, with
//! the time after which it is tried again. The call is then held until that time, or until a person lets it through.

use super::budget::Bill;
use super::draft::{Draft, NewHold};
use super::{Job, OutState, Stop};
use crate::budgets::{Share, Shares};
use crate::model::{BoundModel, Transport};
use steersman_machine::network::ANYBODY;
use steersman_machine::network::budget::BudgetOf;
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::commit::{Release, Why};
use steersman_machine::stored::ids::{Digest, Id};
use steersman_machine::stored::outcome::{Failure, Retry};

impl Job<'_, '_> {
    /// Returns the budgets that count a call of a model. A rerun that is not live is no work of the sessions that share a budget: it
    /// neither draws from it nor waits for it.
    pub(super) fn shares(
        &self,
        id: Id,
        bound: &BoundModel,
        transport: &Transport,
        bill: Bill,
    ) -> Result<Shares, Stop> {
        let network = self.network();
        let branch = self.d.effects.outs()[&id].branch;
        let snapshot = &self.d.branches.live()[&branch].snapshot;
        let labels = &snapshot.labels;
        let mut shares = Vec::new();
        let counts = !(snapshot.dry && self.d.ledger.is_dry_rerun());
        for (name, def) in network.budgets.iter().filter(|_| counts) {
            let share = match &def.of {
                BudgetOf::Network => Share::of_network(name, def, network),
                BudgetOf::Key => {
                    let part = |text: &Option<String>| text.clone().unwrap_or_default();
                    let (url, key) = (part(&transport.url), part(&transport.key));
                    let of = format!("one key of `{}`", bound.provider);
                    Share::new(name, def, &["key", &bound.provider, &url, &key], of)
                }
                BudgetOf::Label(label) => {
                    let Some(body) = labels.get(label).copied() else {
                        continue;
                    };
                    let value = self.ask(|cx| cx.bodies.text(body))?;
                    if value.is_empty() {
                        continue;
                    }
                    Share::of_label(name, def, label, &value)
                }
            };
            shares.push(share);
        }
        let record = self.d.ledger.effect(id);
        let let_through = record.is_some_and(|record| record.let_through);
        let store = self.seen.engine.store().clone();
        Ok(Shares::new(store, shares, bill.most(), let_through))
    }

    /// Holds a call that does not fit into a budget, if its failure says when to try again. Returns false if the call fails.
    pub(super) fn waits_for_period(&mut self, id: Id, failure: &Failure) -> Result<bool, Stop> {
        let (Some(FailureCode::Limit), Retry::After(millis)) = (failure.known(), failure.retry)
        else {
            return Ok(false);
        };
        let mut draft = self.draft(self.d.effects.outs()[&id].branch);
        if let Some(over) = self.outage_over(id) {
            draft.note(over);
        }
        self.d.effects.was_not_made(id);
        self.d.effects.holds(id);
        self.seen.permits.give_slot(id);
        self.give_back_reserved(&mut draft);
        let ask = format!("{}. Make the call now all the same?", failure.message);
        draft.hold(NewHold {
            effect: id,
            why: Why::Budget,
            digest: Digest::of(b"shared"),
            by: vec![ANYBODY.into()],
            ask: Some(&ask),
            due: Some(self.seen.now.plus(millis)),
            about: None,
        });
        self.retry_queued();
        self.write(draft)?;
        Ok(true)
    }

    /// Lets a call try again that waited for the end of a period.
    pub(super) fn period_is_over(&mut self, id: Id) -> Result<(), Stop> {
        let mut draft = self.draft(self.d.effects.outs()[&id].branch);
        self.draws_again(&mut draft, id, Decider::Timeout);
        self.write(draft)
    }

    /// Returns the calls that wait because they did not fit into a budget that sessions share: this one, or all.
    pub(super) fn held_by_periods(&self, effect: Option<Id>) -> Vec<Id> {
        let outs = self.d.effects.outs().iter();
        let held = outs.filter(|(id, out)| {
            let hold = self.d.ledger.hold(**id, Why::Budget);
            let is_shared = hold.is_some_and(|hold| hold.due.is_some());
            let is_meant = effect.is_none_or(|wanted| wanted == **id);
            is_meant && is_shared && matches!(out.state, OutState::Held)
        });
        held.map(|(id, _)| *id).collect()
    }

    /// Lets a call that did not fit into a budget draw from it again.
    pub(super) fn draws_again(&mut self, draft: &mut Draft, id: Id, by: Decider) {
        draft.note(Self::released(id, Why::Budget, Release::Go, by));
        self.d.effects.readies(id);
        draft.ready.push(id);
    }
}
