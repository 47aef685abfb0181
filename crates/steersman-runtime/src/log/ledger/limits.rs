//! The amounts in the ledger: what a session may spend, and what it has spent.

use super::{Amount, Ledger, answers};
use steersman_machine::stored::commit::{LedgerEntry, LogLine};

/// Folds an entry into the amount that is spent, and into the slice.
fn draws(entry: &LedgerEntry, spent: &mut Amount, slice: &mut Amount) {
    match entry {
        LedgerEntry::Escrow { tokens, micros } => {
            *slice = slice.plus(Amount::new(*tokens, *micros));
        }
        LedgerEntry::Spend { tokens, micros, .. } => {
            let paid = Amount::new(*tokens, *micros);
            (*spent, *slice) = (spent.plus(paid), slice.less(paid));
        }
        LedgerEntry::Settle { tokens, micros } => {
            let unknown = Amount::new(*tokens, *micros);
            (*spent, *slice) = (spent.plus(unknown), Amount::default());
        }
        _ => {}
    }
}

impl Ledger {
    /// Returns the amount that is spent and the slice, as they are after these entries.
    pub(crate) fn spent_after(&self, entries: &[LedgerEntry]) -> (Amount, Amount) {
        let (mut spent, mut slice) = (self.spent, self.slice);
        for entry in entries {
            draws(entry, &mut spent, &mut slice);
        }
        (spent, slice)
    }

    /// Folds an entry about money or tokens.
    pub(super) fn limits(&mut self, line: &LogLine, entry: &LedgerEntry) {
        draws(entry, &mut self.spent, &mut self.slice);
        match entry {
            LedgerEntry::Spend {
                effect,
                tokens,
                micros,
            } => {
                if !answers(line, *effect) {
                    self.lost = self.lost.plus(Amount::new(*tokens, *micros));
                }
                self.calls += 1;
            }
            LedgerEntry::Settle { tokens, micros } => {
                // The slice of an owner that died: the real amount is unknown.
                self.lost = self.lost.plus(Amount::new(*tokens, *micros));
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
