//! The fleet of a store at a glance: statuses, rates, cost, what waits for whom, and calls that are slow.
//!
//! A [`Fleet`] keeps what lists say of each session. A reader of the store gives it all sessions once, then those that changed,
//! and asks for a [`Top`] as often as it draws one. Rates are sums of the last minute: of the lines of the log at first, and of what
//! sessions spent since then.

use crate::cause::{Sums, is_rerun, stuck, waits};
use crate::list::status;
use crate::screen::shortest;
use crate::shown;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Line, Name, Time};
use steersman_runtime::store::{SessionId, SessionInfo, SessionQuery};

/// Span over which rates are measured, in milliseconds.
const WINDOW: i64 = 60_000;
/// Maximum number of sessions at work whose last line is looked up: those that have been at work longest.
const LOOKED_AT: usize = 32;
/// Time without a line after which a session at work is told as slow, in milliseconds.
const SLOW: i64 = 5_000;
/// Time by which the clocks of two processes may differ, in milliseconds. Sessions that changed so recently are read again.
const SKEW: u64 = 5_000;

/// The sessions of a store, as lists show them.
#[derive(Default)]
pub struct Fleet {
    sessions: BTreeMap<SessionId, Seen>,
    /// Amounts that were spent in the last [`WINDOW`], each with the time at which it was seen.
    past: VecDeque<(Time, Spent)>,
    /// Amount that all sessions had spent when the fleet was looked at last.
    known: Option<Spent>,
    /// The last change that is known.
    newest: Option<Time>,
    /// True if reruns count, too.
    reruns: bool,
}

/// A session.
struct Seen {
    info: SessionInfo,
    /// Text of its waits; empty if it waits for nothing.
    waits: String,
    /// Its last line that was looked up, and the time of that line.
    last: Option<(Line, Time)>,
}

#[derive(Copy, Clone, Default)]
struct Spent {
    model_calls: u64,
    tokens: u64,
    micros: u64,
}

/// The fleet at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Top {
    /// All sessions together. Sums, statuses and networks leave reruns out, unless they were asked for.
    pub all: Sums,
    /// Number of reruns that were left out.
    pub reruns: u64,
    /// Number of sessions of each status, the largest first.
    pub statuses: Vec<(String, u64)>,
    /// Spending now.
    pub rates: Rates,
    /// The networks, those with the largest cost first.
    pub networks: Vec<NetworkRow>,
    /// Waits of the sessions, the largest number of sessions first.
    pub waits: Vec<WaitRow>,
    /// Sessions at work whose last line is old: a model, a tool or a program does not answer. The slowest come first.
    pub slow: Vec<SlowRow>,
    /// Sessions that do not move although nobody is asked, those that have stood longest first.
    pub stuck: Vec<StuckRow>,
}

/// Spending in the last minute.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Model calls in the last minute.
    pub model_calls: u64,
    /// Tokens in the last minute.
    pub tokens: u64,
    /// Money in an hour, if it goes on as in the last minute, in the currency of the prices.
    pub cost: f64,
}

/// A network in the fleet.
#[derive(Clone, Debug, Serialize)]
pub struct NetworkRow {
    /// Name of the network.
    pub network: Name,
    /// Number of its sessions that a process drives.
    pub running: u64,
    /// Number of its sessions that wait for somebody or something.
    pub waiting: u64,
    /// Number of its sessions that failed or reached a limit.
    pub failed: u64,
    /// Sums over its sessions.
    #[serde(flatten)]
    pub sums: Sums,
}

/// Something that sessions wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitRow {
    /// Their wait, in words: `approval by supervisor`.
    pub what: String,
    /// Number of sessions.
    pub sessions: u64,
    /// Time since which the first of them waits.
    #[serde(serialize_with = "shown::time")]
    pub since: Time,
    /// The session that has waited longest.
    pub first: SessionId,
}

/// A session at work whose last line is old.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlowRow {
    /// Id of the session.
    pub session: SessionId,
    /// Name of its network.
    pub network: Name,
    /// Its last line.
    #[serde(serialize_with = "shown::line")]
    pub line: Line,
    /// Time of its last line.
    #[serde(serialize_with = "shown::time")]
    pub since: Time,
    /// The process that drives it.
    pub owner: Option<String>,
}

/// A session that does not move although nobody is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StuckRow {
    /// Id of the session.
    pub session: SessionId,
    /// Name of its network.
    pub network: Name,
    /// The reason, in words.
    pub why: String,
}

impl Fleet {
    /// Returns the queries that find what changed since the last call of [`Fleet::update`]: sessions whose status changed, and
    /// those that are at work. `None` means that all sessions are wanted ([`Fleet::replace`]).
    pub fn changed(&self) -> Option<[SessionQuery; 2]> {
        let newest = self.newest?;
        let since = Time(newest.0.saturating_sub_unsigned(SKEW));
        Some([
            SessionQuery {
                since: Some(since),
                ..SessionQuery::default()
            },
            SessionQuery {
                status: vec!["running".into()],
                ..SessionQuery::default()
            },
        ])
    }

    /// Returns an empty fleet. If `reruns` is true, reruns count in sums, too.
    pub fn counting(reruns: bool) -> Self {
        Self {
            reruns,
            ..Self::default()
        }
    }

    /// Takes all sessions of the store, in place of those that are known. Call it now and then: no query finds a session that was
    /// erased, or one whose owner died.
    pub fn replace(&mut self, all: Vec<SessionInfo>) {
        let before = std::mem::take(&mut self.sessions);
        self.update(all);
        for (id, seen) in before {
            if let Some(now) = self.sessions.get_mut(&id) {
                now.last = seen.last;
            }
        }
    }

    /// Takes sessions that changed.
    pub fn update(&mut self, changed: Vec<SessionInfo>) {
        for info in changed {
            self.newest = self.newest.max(Some(info.state.updated));
            let known = self.sessions.remove(&info.id);
            let last = known.as_ref().and_then(|known| known.last);
            let waits = match known {
                Some(known) if known.info.state.waits == info.state.waits => known.waits,
                _ => waits(&info),
            };
            let id = info.id.clone();
            self.sessions.insert(id, Seen { info, waits, last });
        }
    }

    /// Returns the sessions at work that may be slow and whose last line is not known, with the number of that line.
    pub fn unknown(&self, now: Time) -> Vec<(SessionId, Line)> {
        let work = self.at_work().into_iter();
        let unknown = work.filter(|seen| {
            // The last line is not older than the status.
            let may_be_slow = now.0.saturating_sub(seen.info.state.updated.0) >= SLOW;
            may_be_slow && seen.last.is_none_or(|(line, _)| line != seen.info.head)
        });
        unknown
            .map(|seen| (seen.info.id.clone(), seen.info.head))
            .collect()
    }

    /// Takes the time of a session's last line.
    pub fn heard(&mut self, session: &str, line: Line, at: Time) {
        if let Some(seen) = self.sessions.get_mut(session) {
            seen.last = Some((line, at));
        }
    }

    /// Returns the sessions that may have spent something in the last minute, each with its last line. Give the lines of that minute to
    /// [`Fleet::spent`] before the first [`Fleet::top`].
    pub fn recent(&self, now: Time) -> Vec<(SessionId, Line)> {
        let recent = self.sessions.values().filter(|seen| {
            status(&seen.info) == "running" || is_recent(seen.info.state.updated, now)
        });
        recent
            .map(|seen| (seen.info.id.clone(), seen.info.head))
            .collect()
    }

    /// Takes lines of a session. What they spent in the last minute counts for the rates.
    pub fn spent<'a>(&mut self, lines: impl IntoIterator<Item = &'a LogLine>, now: Time) {
        for line in lines {
            if !is_recent(line.at, now) {
                continue;
            }
            let usage = line.commit.iter().flat_map(|commit| &commit.usage);
            let mut spent = Spent::default();
            for used in usage {
                spent.model_calls += 1;
                spent.tokens += used.tokens();
                spent.micros += used.micros.unwrap_or_default();
            }
            self.past.push_back((line.at, spent));
        }
    }

    /// Returns all sessions, as lists show them.
    pub fn sessions(&self) -> impl Iterator<Item = &SessionInfo> {
        self.sessions.values().map(|seen| &seen.info)
    }

    /// Returns a session's id as people type it: its shortest beginning that no other session has.
    pub fn short<'a>(&self, id: &'a str) -> &'a str {
        use std::ops::Bound::{Excluded, Unbounded};
        // The ids before and after it in their order share the longest beginnings with it.
        let before = self.sessions.range::<str, _>((Unbounded, Excluded(id)));
        let after = self.sessions.range::<str, _>((Excluded(id), Unbounded));
        let neighbours = [
            before.map(|(id, _)| id).next_back(),
            after.map(|(id, _)| id).next(),
        ];
        shortest(id, neighbours.into_iter().flatten().map(|id| &**id))
    }

    fn at_work(&self) -> Vec<&Seen> {
        let all = self.sessions.values();
        let mut work: Vec<&Seen> = all.filter(|seen| status(&seen.info) == "running").collect();
        work.sort_by_key(|seen| seen.info.state.updated);
        work.truncate(LOOKED_AT);
        work
    }

    /// Returns the fleet as it is now.
    pub fn top(&mut self, now: Time) -> Top {
        let (mut top, mut spent) = (Top::default(), Sums::default());
        let mut statuses: BTreeMap<&str, u64> = BTreeMap::new();
        let mut networks: BTreeMap<&Name, NetworkRow> = BTreeMap::new();
        let mut waiting: BTreeMap<&str, WaitRow> = BTreeMap::new();
        let mut standing: Vec<(Time, StuckRow)> = Vec::new();
        for seen in self.sessions.values() {
            let (info, status) = (&seen.info, status(&seen.info));
            spent.add(info);
            if !seen.waits.is_empty() {
                let since = info.state.updated;
                let row = waiting.entry(&seen.waits).or_insert_with(|| WaitRow {
                    what: seen.waits.clone(),
                    sessions: 0,
                    since,
                    first: info.id.clone(),
                });
                row.sessions += 1;
                if since < row.since {
                    (row.since, row.first) = (since, info.id.clone());
                }
            }
            let last = seen.last.map(|(_, at)| at);
            if let Some(why) = stuck(info, last, now) {
                let (session, network) = (info.id.clone(), info.network.clone());
                let row = StuckRow {
                    session,
                    network,
                    why,
                };
                standing.push((info.state.updated, row));
            }
            if is_rerun(info) && !self.reruns {
                top.reruns += 1;
                continue;
            }
            top.all.add(info);
            *statuses.entry(status).or_default() += 1;
            let row = networks.entry(&info.network).or_insert_with(|| NetworkRow {
                network: info.network.clone(),
                running: 0,
                waiting: 0,
                failed: 0,
                sums: Sums::default(),
            });
            row.sums.add(info);
            row.running += u64::from(status == "running");
            row.waiting += u64::from(matches!(status, "waits" | "doubt"));
            row.failed += u64::from(matches!(status, "failed" | "limit"));
        }
        top.statuses = statuses
            .into_iter()
            .map(|(status, count)| (status.to_owned(), count))
            .collect();
        top.statuses.sort_by_key(|(_, count)| Reverse(*count));
        top.networks = networks.into_values().collect();
        let dearest = |row: &NetworkRow| Reverse((row.sums.micros, row.sums.sessions));
        top.networks.sort_by_key(dearest);
        top.waits = waiting.into_values().collect();
        top.waits.sort_by_key(|row| Reverse(row.sessions));
        standing.sort_by_key(|(since, _)| *since);
        top.stuck = standing.into_iter().map(|(_, row)| row).collect();
        top.slow = self.slow(now);
        top.rates = self.rates(&spent, now);
        top
    }

    fn slow(&self, now: Time) -> Vec<SlowRow> {
        let work = self.at_work().into_iter();
        let slow = work.filter_map(|seen| {
            let (line, since) = seen.last?;
            (now.0.saturating_sub(since.0) >= SLOW).then(|| SlowRow {
                session: seen.info.id.clone(),
                network: seen.info.network.clone(),
                line,
                since,
                owner: seen.info.owner.clone(),
            })
        });
        let mut slow: Vec<SlowRow> = slow.collect();
        slow.sort_by_key(|row| row.since);
        slow
    }

    /// Returns what was spent within the window, and moves the window on.
    fn rates(&mut self, all: &Sums, now: Time) -> Rates {
        let spent = Spent {
            model_calls: all.model_calls,
            tokens: all.tokens,
            micros: all.micros,
        };
        // Erased sessions take what they spent with them.
        if let Some(known) = self.known.replace(spent) {
            let since = Spent {
                model_calls: spent.model_calls.saturating_sub(known.model_calls),
                tokens: spent.tokens.saturating_sub(known.tokens),
                micros: spent.micros.saturating_sub(known.micros),
            };
            self.past.push_back((now, since));
        }
        self.past.retain(|(at, _)| is_recent(*at, now));
        let mut sum = Spent::default();
        for (_, spent) in &self.past {
            sum.model_calls += spent.model_calls;
            sum.tokens += spent.tokens;
            sum.micros += spent.micros;
        }
        Rates {
            model_calls: sum.model_calls,
            tokens: sum.tokens,
            cost: sum.micros as f64 * 60.0 / 1e6,
        }
    }
}

/// Returns true for a time in the last minute. A time after now is not: a clock was set back.
fn is_recent(at: Time, now: Time) -> bool {
    (0..WINDOW).contains(&now.0.saturating_sub(at.0))
}
