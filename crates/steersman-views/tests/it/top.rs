//! The fleet of a store: sums, rates, waits, slow and stuck sessions, and that changes alone give the same as all sessions.

use crate::world::{engine, paid};
use steersman_machine::stored::ids::{Line, Time};
use steersman_runtime::store::{Left, Scope, SessionInfo, SessionState};
use steersman_views::log::Log;
use steersman_views::reader::Stored;
use steersman_views::screen::shortest;
use steersman_views::top::{Fleet, Top};

fn session(
    id: &str,
    network: &str,
    status: &str,
    updated: i64,
    owner: Option<&str>,
) -> SessionInfo {
    SessionInfo {
        id: id.into(),
        network: network.into(),
        scope: Scope::default(),
        key: None,
        created: Time(0),
        salt: [0; 16],
        head: Line(4),
        state: SessionState {
            status: status.into(),
            updated: Time(updated),
            micros: 1_000_000,
            tokens: 100,
            model_calls: 2,
            ..SessionState::default()
        },
        labels: Vec::new(),
        owner: owner.map(Into::into),
        left: Left::default(),
    }
}

/// Spends more in a session: a call of 60 tokens for half a unit of money.
fn calls(info: &mut SessionInfo) {
    info.state.model_calls += 1;
    info.state.tokens += 60;
    info.state.micros += 500_000;
}

fn told(top: &Top) -> String {
    serde_json::to_string(top).unwrap()
}

#[test]
fn sums_and_rates_are_those_of_the_last_minute() {
    let mut fleet = Fleet::default();
    let mut busy = session("a", "desk", "running", 10, Some("7"));
    let other = session("b", "clerk", "answered", 20, None);
    fleet.replace(vec![busy.clone(), other]);
    let top = fleet.top(Time(1_000));
    assert_eq!((top.all.sessions, top.all.tokens), (2, 200));
    assert_eq!(top.rates.model_calls, 0);
    let statuses = [("answered".to_owned(), 1), ("running".to_owned(), 1)];
    assert_eq!(top.statuses, statuses);

    calls(&mut busy);
    fleet.update(vec![busy.clone()]);
    let top = fleet.top(Time(31_000));
    // One call in half a minute is one in the last minute, not two.
    assert_eq!((top.rates.model_calls, top.rates.tokens), (1, 60));
    assert_eq!(top.rates.cost.round() as u64, 30);
    let networks: Vec<&str> = top.networks.iter().map(|row| &*row.network).collect();
    assert_eq!(networks, ["desk", "clerk"], "the largest cost comes first");

    // A minute later the rates are those of the last minute alone.
    fleet.top(Time(62_000));
    let top = fleet.top(Time(122_000));
    assert_eq!(top.rates.tokens, 0);
    // A clock that is set back, and an erased session, give no wrong rates.
    fleet.replace(Vec::new());
    let top = fleet.top(Time(5_000));
    assert_eq!((top.all.sessions, top.rates.cost.round() as u64), (0, 0));
    assert!(top.networks.is_empty());
}

#[tokio::test]
async fn the_first_look_counts_the_lines_of_the_last_minute() {
    let engine = engine();
    let session = paid(&engine).await;
    let log = Log::read(&Stored::masked(&engine, session.id()))
        .await
        .unwrap();
    let lines = || log.lines.iter().map(|line| &**line);
    let (first, last) = (log.lines[0].at, log.lines[log.lines.len() - 1].at);
    let mut used = 0;
    for line in lines() {
        used += line.commit.as_ref().map_or(0, |c| c.usage.len() as u64);
    }
    assert!(used > 0);

    let mut fleet = Fleet::default();
    fleet.spent(lines(), last);
    assert_eq!(fleet.top(last).rates.model_calls, used);
    assert_eq!(fleet.top(last.plus(60_000)).rates.model_calls, 0);
    // Lines of another time do not count.
    let mut fleet = Fleet::default();
    fleet.spent(lines(), last.plus(60_000));
    assert_eq!(fleet.top(last.plus(60_000)).rates.model_calls, 0);
    let before = Time(first.0 - 1);
    fleet.spent(lines(), before);
    assert_eq!(fleet.top(before).rates.model_calls, 0);
}

#[test]
fn waits_slow_and_stuck_sessions_are_named() {
    let mut fleet = Fleet::default();
    let late = session("dead", "desk", "running", 50, None);
    let mut slow = session("slow", "desk", "running", 40, Some("7"));
    let quick = session("quick", "desk", "running", 30, Some("7"));
    fleet.replace(vec![late, slow.clone(), quick]);
    // The session that has been at work longest comes first, and one without an owner is not at work.
    assert!(fleet.unknown(Time(1_000)).is_empty(), "no call is slow yet");
    let now = Time(100_000);
    let unknown = fleet.unknown(now);
    assert_eq!(
        unknown,
        [("quick".into(), Line(4)), ("slow".into(), Line(4))]
    );
    fleet.heard("quick", Line(4), Time(99_000));
    fleet.heard("slow", Line(4), Time(60_000));
    assert!(fleet.unknown(now).is_empty());
    let top = fleet.top(now);
    let named: Vec<&str> = top.slow.iter().map(|row| &*row.session).collect();
    assert_eq!(named, ["slow"]);
    assert_eq!(
        (top.slow[0].line, top.slow[0].since),
        (Line(4), Time(60_000))
    );
    let stuck: Vec<&str> = top.stuck.iter().map(|row| &*row.session).collect();
    assert_eq!(stuck, ["dead"]);
    // It writes a line: it is looked up again.
    slow.head = Line(5);
    fleet.update(vec![slow]);
    assert_eq!(fleet.unknown(now), [("slow".into(), Line(5))]);
}

/// Changes give the same fleet as reading all sessions.
#[test]
fn changes_and_all_sessions_give_the_same() {
    let all = |round: i64| -> Vec<SessionInfo> {
        let one = |k: i64| {
            let is_changed = k % 7 == round % 7;
            let status = if is_changed { "running" } else { "answered" };
            let owner = is_changed.then_some("7");
            let updated = if is_changed { round } else { 0 };
            let network = if k % 2 == 0 { "even" } else { "odd" };
            let mut info = session(
                &format!("session{}", k * k * 31),
                network,
                status,
                updated,
                owner,
            );
            info.state.tokens += u64::from(is_changed);
            info
        };
        (0..100).map(one).collect()
    };
    let (mut changed, mut read) = (Fleet::default(), Fleet::default());
    assert!(changed.changed().is_none(), "it knows nothing yet");
    changed.replace(all(0));
    for round in 1..20 {
        let (before, now) = (all(round - 1), all(round));
        let differ = before
            .iter()
            .zip(&now)
            .filter(|(before, now)| before != now);
        changed.update(differ.map(|(_, now)| now.clone()).collect());
        read.replace(now);
        let [since, running] = changed.changed().unwrap();
        assert!(since.since.unwrap() <= Time(round));
        assert_eq!(running.status, ["running".into()]);
        assert_eq!(
            told(&changed.top(Time(0))),
            told(&read.top(Time(0))),
            "{round}"
        );
    }
    assert_eq!(changed.sessions().count(), 100);
    let ids = || changed.sessions().map(|info| &*info.id);
    for id in ids() {
        assert_eq!(changed.short(id), shortest(id, ids()));
    }
}
