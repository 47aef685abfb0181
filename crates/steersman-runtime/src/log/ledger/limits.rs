//! The amounts in the ledger: what a session may spend, and what it has spent.

use super::{Amount, Ledger, answers};
use steersman_machine::stored::commit::{LedgerEntry, LogLine};

impl Ledger {
    /// Folds an entry about money or tokens.
    pub(super) fn limits(&mut self, line: &LogLine, entry: &LedgerEntry) {
        match entry {
            LedgerEntry::Escrow { tokens, micros } => {
                self.slice = self.slice.plus(Amount::new(*tokens, *micros));
            }
            LedgerEntry::Spend {
                effect,
                tokens,
                micros,
            } => {
                let paid = Amount::new(*tokens, *micros);
                if !answers(line, *effect) {
                    self.lost = self.lost.plus(paid);
                }
                self.spent = self.spent.plus(paid);
                self.slice = self.slice.less(paid);
                self.calls += 1;
            }
            LedgerEntry::Settle { tokens, micros } => {
                // The slice of an owner that died: the real amount is unknown.
                let unknown = Amount::new(*tokens, *micros);
                self.spent = self.spent.plus(unknown);
                self.lost = self.lost.plus(unknown);
                self.slice = Amount::default();
            }
            LedgerEntry::More {
                effect,
                tokens,
                micros,
                granted,
            } => {
                let amount = Amount::new(*tokens, *micros);
                if *granted {
                    self.granted = self.granted.plus(amount);
                    self.record(line, *effect).let_through |= amount.is_zero();
                } else {
                    self.record(line, *effect).wants = amount;
                }
            }
            LedgerEntry::Unbelievable { .. } => self.unbelievable += 1,
            _ => {}
        }
    }
}
