//! `sessions: { keep: .. }`: a session is erased so long after its end, once, by a process that drives all.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use steersman::runtime::Boxed;
use steersman::runtime::clock::{Clock, System, Virtual};
use steersman::runtime::engine::Happened;
use steersman::runtime::store::IMMEDIATELY;
use steersman::{By, Network, Rerun, SessionInfo, StartOptions, Steersman, Turn};
use steersman_machine::stored::ids::Time;
use tokio_util::sync::CancellationToken;

const DAY: i64 = 86_400_000;
/// 28 November 2026, 10:30 in UTC.
const NOW: i64 = 1_795_861_800_000;

const DESK: &str = r"
name: desk
sessions: { keep: 90d }
labels: { said: '{{ answer }}' }
agents: { desk: { system: You note., tools: [ask] } }
";
const SCRIPT: &str = "desk: [ Noted., Noted again. ]";
const ASKS: &str = "desk: [ { call: { ask: { question: Which? } } }, Noted. ]";

/// A calendar that a test sets, and real short waits between two looks into the store.
#[derive(Clone)]
struct Calendar(Virtual);

impl Clock for Calendar {
    fn now(&self) -> Time {
        self.0.now()
    }
    fn sleep_until(&self, until: Time) -> Boxed<'static, ()> {
        self.0.sleep_until(until)
    }
    fn sleep(&self, millis: u64) -> Boxed<'static, ()> {
        System.sleep(millis)
    }
}

fn calendar() -> Calendar {
    Calendar(Virtual::at(Time(NOW)))
}

fn program(calendar: &Calendar, script: &str) -> steersman::Setup {
    Steersman::options()
        .script_all(script)
        .clock(Arc::new(calendar.clone()))
}

fn network(text: &str) -> Network {
    Network::from_yaml(text).build().unwrap()
}

/// Drives the store until nothing is left to do. Returns the number of sessions that were erased, and of those that were driven.
async fn until_idle(steersman: &Steersman) -> (usize, usize) {
    let (stop, told) = (CancellationToken::new(), Arc::new(Mutex::new((0, 0))));
    let (stopped, told_to) = (stop.clone(), told.clone());
    let driven = steersman.run_all_told(stop, move |what| {
        let mut told = told_to.lock().unwrap();
        match what {
            Happened::Erased(ids) => told.0 += ids.len(),
            Happened::Taken(_) => told.1 += 1,
            Happened::Failed(id, why) => panic!("{id}: {why}"),
            Happened::Idle => stopped.cancel(),
            _ => {}
        }
    });
    driven.await.unwrap();
    *told.lock().unwrap()
}

async fn starts(steersman: &Steersman, text: &str) -> (Arc<str>, Turn) {
    let options = StartOptions {
        say: Some("I like tea.".into()),
        ..StartOptions::default()
    };
    let started = steersman.start_with(&network(text), options).await;
    let session = started.unwrap();
    let turn = session.settled().await.unwrap();
    let id = session.id().into();
    session.stop().await;
    (id, turn)
}

async fn info(steersman: &Steersman, id: &str) -> SessionInfo {
    steersman.info(id).await.unwrap()
}

async fn is_erased(steersman: &Steersman, id: &str) -> bool {
    let report = steersman.verify(id).await.unwrap();
    assert!(report.damaged.is_empty());
    assert!(report.erased == 0 || info(steersman, id).await.labels.is_empty());
    report.erased > 0
}

#[tokio::test]
async fn a_session_is_erased_after_its_time_and_a_message_begins_it_anew() {
    let calendar = calendar();
    let steersman = program(&calendar, SCRIPT).in_memory();
    let (id, _) = starts(&steersman, DESK).await;
    let (other, _) = starts(&steersman, &DESK.replace("sessions: { keep: 90d }", "")).await;
    let end = NOW + 90 * DAY;
    assert_eq!(info(&steersman, &id).await.left.wants, Some(Time(end)));
    assert_eq!(info(&steersman, &other).await.left.wants, None);

    calendar.0.set(Time(end - 1));
    assert_eq!(until_idle(&steersman).await, (0, 0));
    // It goes on, so its time begins again.
    let session = steersman.session(&id).await.unwrap();
    assert!(session.ask("And milk.").await.unwrap().answer().is_some());
    session.stop().await;
    calendar.0.set(Time(end + DAY));
    assert_eq!(until_idle(&steersman).await, (0, 0));
    assert!(!is_erased(&steersman, &id).await);

    let end = end - 1 + 90 * DAY;
    assert_eq!(info(&steersman, &id).await.left.wants, Some(Time(end)));
    calendar.0.set(Time(end));
    assert_eq!(until_idle(&steersman).await, (1, 0));
    assert!(is_erased(&steersman, &id).await);
    assert!(
        !is_erased(&steersman, &other).await,
        "its definition keeps it"
    );
    assert_eq!(info(&steersman, &id).await.left.wants, None, "once");
    calendar.0.set(Time(end + 900 * DAY));
    assert_eq!(until_idle(&steersman).await, (0, 0));
}

#[tokio::test]
async fn a_session_that_waits_is_never_erased() {
    let calendar = calendar();
    let steersman = program(&calendar, ASKS).in_memory();
    let (id, turn) = starts(&steersman, DESK).await;
    let Turn::Asks(questions) = turn else {
        panic!("{turn:?}");
    };
    assert_eq!(info(&steersman, &id).await.left.wants, None);
    calendar.0.set(Time(NOW + 900 * DAY));
    assert_eq!(until_idle(&steersman).await, (0, 0));
    assert!(!is_erased(&steersman, &id).await);
    let session = steersman.session(&id).await.unwrap();
    session
        .answer(&questions[0], "This.", By::user())
        .await
        .unwrap();
    assert!(session.settled().await.unwrap().answer().is_some());
    session.stop().await;
    let end = NOW + 990 * DAY;
    assert_eq!(info(&steersman, &id).await.left.wants, Some(Time(end)));
    calendar.0.set(Time(end));
    assert_eq!(until_idle(&steersman).await, (1, 0));
    assert!(is_erased(&steersman, &id).await);
}

/// A session that has ended may be wanted at a time for another reason. Nothing but `keep` erases it.
#[tokio::test]
async fn a_value_that_expires_erases_no_session() {
    const MINUTES: i64 = 30 * 60_000;
    let desk = "name: desk
state: { mark: { type: string, optional: true, expires: 30m } }
tools: { note: { description: Notes., parameters: { text: string }, set: { mark: \"{{ args.text }}\" } } }
agents: { desk: { system: You note., tools: [note] } }
";
    let kept = format!("{desk}sessions: {{ keep: 90d }}\n");
    for (text, keeps) in [(desk, false), (&kept, true)] {
        let calendar = calendar();
        let script = "desk: [ { call: { note: { text: tea } } }, Noted. ]";
        let steersman = program(&calendar, script).in_memory();
        let (id, _) = starts(&steersman, text).await;
        let wants = async || info(&steersman, &id).await.left.wants;
        assert_eq!(wants().await, Some(Time(NOW + MINUTES)));
        calendar.0.set(Time(NOW + MINUTES));
        assert_eq!(until_idle(&steersman).await, (0, 1), "{text}");
        assert!(!is_erased(&steersman, &id).await, "{text}");
        let end = keeps.then_some(Time(NOW + MINUTES + 90 * DAY));
        assert_eq!(wants().await, end);
        calendar.0.set(Time(NOW + 900 * DAY));
        until_idle(&steersman).await;
        assert_eq!(is_erased(&steersman, &id).await, keeps);
    }
}

/// The lines of a rerun have the times of its recording, and its time begins when it was made.
#[tokio::test]
async fn a_rerun_is_kept_from_its_own_end_on() {
    let calendar = calendar();
    let steersman = program(&calendar, SCRIPT).in_memory();
    let (id, _) = starts(&steersman, DESK).await;
    calendar.0.set(Time(NOW + 89 * DAY));
    for live in [false, true] {
        let wanted = Rerun {
            live,
            ..Rerun::default()
        };
        let rerun = steersman.rerun(&id, wanted).await.unwrap().session;
        let end = Some(Time(NOW + 179 * DAY));
        assert_eq!(info(&steersman, &rerun).await.left.wants, end, "{live}");
    }
    calendar.0.set(Time(NOW + 90 * DAY));
    assert_eq!(until_idle(&steersman).await, (1, 0), "only the recording");
    calendar.0.set(Time(NOW + 179 * DAY));
    assert_eq!(until_idle(&steersman).await, (2, 0));
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("steersman-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Many sessions of a file are erased in portions; one whose owner died in between, too.
#[tokio::test]
async fn many_sessions_are_erased_also_by_the_next_process() {
    let calendar = calendar();
    let folder = folder("kept-many");
    let file = folder.join("sessions.db");
    let first = program(&calendar, SCRIPT).open(&file).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..70 {
        ids.push(starts(&first, DESK).await.0);
    }
    calendar.0.set(Time(NOW + 90 * DAY));
    // A process owns one of them when its time comes, and dies.
    let worker = first.engine().worker().await.unwrap().clone();
    let claim = first
        .engine()
        .store()
        .claim(&ids[0], &worker)
        .await
        .unwrap();
    let second = program(&calendar, SCRIPT).open(&file).await.unwrap();
    assert_eq!(until_idle(&second).await, (69, 0));
    assert!(!is_erased(&second, &ids[0]).await, "somebody owns it");
    drop(claim);
    first.stop().await;
    drop(first);
    assert_eq!(info(&second, &ids[0]).await.left.wants, Some(IMMEDIATELY));
    // It is driven first, as after any death of an owner; then it is erased.
    assert_eq!(until_idle(&second).await, (1, 1));
    for id in &ids {
        assert!(is_erased(&second, id).await);
    }
    second.stop().await;
    drop(second);
    std::fs::remove_dir_all(folder).unwrap();
}
