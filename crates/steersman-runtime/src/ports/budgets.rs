//! Budgets that sessions share: a model call draws the most that it may use from the store before it is made, and gives back what
//! it did not use after it.
//!
//! Each amount of a budget has one window of [`Quotas`](crate::store::Quotas) for each period, which opens when the period begins. So
//! two processes never draw more together than the budget has in a period, whatever their clocks say. A process that dies during a call
//! gives nothing back: what the call may have used counts until the period is over.

use crate::store::{Drawn, Limit, SessionQuery, Store, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;
use steersman_definition::schedule;
use steersman_machine::network::Network;
use steersman_machine::network::budget::{BudgetDef, BudgetOf, OnSpent, counted};
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::ids::{Name, Time};
use steersman_machine::stored::outcome::{Failure, Retry};
use steersman_machine::values::price::{digits, money};
use steersman_machine::view::iso;

/// A call that waits for the end of a period tries again after this many milliseconds, if the period is longer: calls of other
/// sessions may have given something back, and another version of the definition may allow more.
const LOOK: u64 = 15 * 60_000;

/// The beginning of the sentence of a call that does not fit, before the name of the budget.
const SPENT: &str = "The budget `";

/// Returns the name of the budget over sessions that a call waits for, by the text of its wait
/// ([`Pending::text`](crate::pending::Pending::text)). `None` if it waits for a limit of its own session.
pub fn named_in(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix(SPENT)?.split_once('`')?;
    Some(name)
}

/// The use of budgets by a model call.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// Number of calls: 0 if the call was not made.
    pub(crate) calls: u64,
    /// Tokens in and out.
    pub(crate) tokens: u64,
    /// Cost, in millionths of the currency.
    pub(crate) micros: u64,
}

/// A budget that counts a call.
pub(crate) struct Share {
    name: Name,
    def: BudgetDef,
    /// The sessions that the budget counts, in words: `all sessions of \`desk\``.
    of: String,
    place: [u8; 32],
}

/// The budgets that count a call, and the most that it may use.
pub(crate) struct Shares {
    store: Arc<dyn Store>,
    all: Vec<Share>,
    most: Used,
    /// A person let the call through: it draws what is there.
    let_through: bool,
}

/// The amounts that a call has drawn from each budget.
#[derive(Default)]
pub(crate) struct Taken(Vec<(Limit, Drawn, Amount)>);

/// The amounts of a budget.
#[derive(Copy, Clone)]
enum Amount {
    Cost,
    Tokens,
    Calls,
}

/// A period of a budget.
struct Period {
    begins: Time,
    ends: Time,
}

impl Share {
    /// Returns the share of a budget. `counted`: what tells apart the things that have the budget, each by itself. It may contain a
    /// key: only its hash is kept.
    pub(crate) fn new(name: &Name, def: &BudgetDef, counted: &[&str], of: String) -> Self {
        let mut hash = blake3::Hasher::new();
        for part in ["budget", name].iter().chain(counted) {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        Self {
            name: name.clone(),
            def: def.clone(),
            of,
            place: *hash.finalize().as_bytes(),
        }
    }

    /// Returns the share of a budget for all sessions of a network.
    pub(crate) fn of_network(name: &Name, def: &BudgetDef, network: &Network) -> Self {
        let of = format!("all sessions of `{}`", network.name);
        Self::new(name, def, &["network", &network.name], of)
    }

    /// Returns the share of a budget for the sessions with a value of a label.
    pub(crate) fn of_label(name: &Name, def: &BudgetDef, label: &str, value: &str) -> Self {
        let of = format!("the label {label} = `{value}`");
        Self::new(name, def, &["label", label, value], of)
    }

    /// Returns the limits that the budget has in each period.
    fn limits(&self) -> impl Iterator<Item = (Limit, Amount)> {
        let def = &self.def;
        let amounts = [
            (def.cost, Amount::Cost),
            (def.tokens, Amount::Tokens),
            (def.calls, Amount::Calls),
        ];
        amounts.into_iter().filter_map(move |(most, amount)| {
            let limit = Limit {
                place: self.place,
                rate: amount.rate().into(),
                most: most?,
            };
            Some((limit, amount))
        })
    }

    /// Returns the period of a time.
    fn period(&self, now: Time) -> Option<Period> {
        let times = self.def.per.begins(&self.def.timezone);
        Some(Period {
            begins: schedule::last(&times, now)?,
            ends: schedule::next(&times, now)?,
        })
    }

    /// Returns the failure of a call that does not fit. `left`: what could be drawn.
    fn spent(
        &self,
        limit: &Limit,
        amount: Amount,
        (wanted, left): (u64, u64),
        ends: Time,
        now: Time,
    ) -> Failure {
        let message = format!(
            "{SPENT}{}` does not allow the call: {} per {} for {}, {} left, up to {} needed. The next {} begins {}",
            self.name,
            amount.words(limit.most),
            self.def.per.word(),
            self.of,
            amount.words(left),
            amount.words(wanted),
            self.def.per.word(),
            iso(ends, &self.def.timezone),
        );
        let retry = match self.def.then {
            OnSpent::Wait => Retry::After(now.until(ends).clamp(1, LOOK)),
            OnSpent::Fail => Retry::Never,
        };
        Failure {
            retry,
            ..Failure::new(FailureCode::Limit, message)
        }
    }
}

/// The use of a budget in the period of a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetUse {
    /// Name of the budget.
    pub budget: Name,
    /// The sessions or calls that are counted, in words: ``all sessions of `desk` ``, ``the label customer = `4711` ``.
    pub of: String,
    /// The period: `hour`, `day`, `week` or `month`.
    pub per: &'static str,
    /// Begin of the period.
    pub begins: Time,
    /// End of the period.
    pub ends: Time,
    /// The amounts.
    pub amounts: Vec<AmountUse>,
}

/// The use of one amount of a budget. Calls that run have drawn the most that they may use; that counts as used until they are over.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct AmountUse {
    /// The unit: `cost`, in millionths of the currency; `tokens`; `calls`.
    pub unit: &'static str,
    /// Units that are used.
    pub used: u64,
    /// Units in one period.
    pub most: u64,
}

impl AmountUse {
    /// Returns what is used, and the whole, in words: `12.30 of 20.00`, `3 of 40 calls`.
    pub fn words(&self) -> String {
        let amount = Amount::ALL.into_iter().find(|one| one.rate() == self.unit);
        let amount = amount.unwrap_or(Amount::Calls);
        let used = match amount {
            Amount::Cost => money(self.used),
            Amount::Tokens | Amount::Calls => digits(self.used),
        };
        format!("{used} of {}", amount.words(self.most))
    }
}

/// Returns the use of the budgets of a network at a time: of those for the network, and of those for a label, by each value that a
/// session of the store has. Budgets for keys are left out, because only a session knows the key that a call uses.
///
/// # Errors
/// Errors of the store.
pub async fn uses(
    store: &dyn Store,
    network: &Network,
    now: Time,
) -> Result<Vec<BudgetUse>, StoreError> {
    let mut all = Vec::new();
    let labels = network
        .budgets
        .values()
        .any(|def| matches!(def.of, BudgetOf::Label(_)));
    let sessions = if labels {
        store.sessions(&SessionQuery::default()).await?
    } else {
        Vec::new()
    };
    for (name, def) in &network.budgets {
        let shares = match &def.of {
            BudgetOf::Network => vec![Share::of_network(name, def, network)],
            BudgetOf::Key => Vec::new(),
            BudgetOf::Label(label) => {
                let labels = sessions.iter().flat_map(|info| &info.labels);
                let values = labels.filter(|(name, _)| name == label);
                let values: BTreeSet<&str> = values.map(|(_, value)| &**value).collect();
                let values = values.into_iter().filter(|value| !value.is_empty());
                values
                    .map(|value| Share::of_label(name, def, label, value))
                    .collect()
            }
        };
        for share in shares {
            let Some(period) = share.period(now) else {
                continue;
            };
            let mut amounts = Vec::new();
            for (limit, amount) in share.limits() {
                amounts.push(AmountUse {
                    unit: amount.rate(),
                    used: store.drawn(&limit, period.begins).await?,
                    most: limit.most,
                });
            }
            all.push(BudgetUse {
                budget: share.name.clone(),
                of: share.of.clone(),
                per: share.def.per.word(),
                begins: period.begins,
                ends: period.ends,
                amounts,
            });
        }
    }
    Ok(all)
}

impl Shares {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        all: Vec<Share>,
        most: Used,
        let_through: bool,
    ) -> Self {
        Self {
            store,
            all,
            most,
            let_through,
        }
    }

    /// Returns the most that the call may use.
    pub(crate) fn most(&self) -> Used {
        self.most
    }

    /// Draws the most that the call may use from each budget; from one that is smaller, all of it. If one of them has less left,
    /// nothing stays drawn.
    pub(crate) async fn take(&self, now: Time) -> Result<Taken, Failure> {
        let mut taken = Taken::default();
        for share in &self.all {
            let Some(period) = share.period(now) else {
                self.settle(taken, Used::default()).await;
                return Err(unknown(&share.name, &"its period has no bounds"));
            };
            for (limit, amount) in share.limits() {
                let wanted = amount.of(self.most).min(limit.most);
                let drawn = match self.store.draw(&limit, wanted, period.begins).await {
                    Ok(drawn) => drawn,
                    Err(error) => {
                        self.settle(taken, Used::default()).await;
                        return Err(unknown(&share.name, &error));
                    }
                };
                let refused = drawn.units < wanted && !self.let_through;
                let failure = refused.then(|| {
                    let asked = (amount.of(self.most), drawn.units);
                    share.spent(&limit, amount, asked, period.ends, now)
                });
                taken.0.push((limit, drawn, amount));
                if let Some(failure) = failure {
                    self.settle(taken, Used::default()).await;
                    return Err(failure);
                }
            }
        }
        Ok(taken)
    }

    /// Gives back what a call drew and did not use. If it used more, draws the rest, as far as it is there.
    pub(crate) async fn settle(&self, taken: Taken, used: Used) {
        for (limit, drawn, amount) in taken.0 {
            let used = amount.of(used);
            // A store that does not answer keeps the drawn amount until the period is over.
            if used < drawn.units {
                let units = drawn.units - used;
                let _ = self.store.give_back(&limit, Drawn { units, ..drawn }).await;
            } else if used > drawn.units {
                let more = used - drawn.units;
                let _ = self.store.draw(&limit, more, drawn.opens).await;
            }
        }
    }
}

impl Amount {
    const ALL: [Self; 3] = [Self::Cost, Self::Tokens, Self::Calls];

    /// **Stored**: the name of the limit at its place.
    fn rate(self) -> &'static str {
        match self {
            Self::Cost => "cost",
            Self::Tokens => "tokens",
            Self::Calls => "calls",
        }
    }

    fn of(self, used: Used) -> u64 {
        match self {
            Self::Cost => used.micros,
            Self::Tokens => used.tokens,
            Self::Calls => used.calls,
        }
    }

    fn words(self, n: u64) -> String {
        match self {
            Self::Cost => money(n),
            Self::Tokens => counted(n, "token"),
            Self::Calls => counted(n, "call"),
        }
    }
}

/// Returns the failure of a call if it is not known what is left of its budget: it is not made then.
fn unknown(name: &Name, error: &dyn std::fmt::Display) -> Failure {
    let message = format!("what is left of the budget `{name}` is not known: {error}");
    Failure::new(FailureCode::Limited, message)
}
