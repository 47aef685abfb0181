//! Schedules: each time begins at most one session, in whichever process, and what was missed is counted.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use steersman::runtime::Boxed;
use steersman::runtime::clock::{Clock, System, Virtual};
use steersman::runtime::engine::Happened;
use steersman::runtime::inbox::{Message, Occasion, Wanted};
use steersman::runtime::store::{Schedule, SessionInfo, SessionQuery};
use steersman::{Network, StartOptions, Steersman};
use steersman_machine::stored::ids::{Line, Time};
use tokio_util::sync::CancellationToken;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// 28 November 2026, 10:30 in UTC.
const NOW: i64 = 1_795_861_800_000;

const CLERK: &str = r#"
name: clerk
timezone: Europe/Berlin
config: { folder: { env: FOLDER, default: here } }
schedules:
  hourly: { every: 1h, start: { message: "Look. {{ schedule.missed }} were missed before {{ schedule.time }}." } }
agents: { clerk: { system: You look. } }
"#;

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

fn network(text: &str) -> Network {
    Network::from_yaml(text).build().unwrap()
}

fn calendar() -> Calendar {
    Calendar(Virtual::at(Time(NOW)))
}

fn program(calendar: &Calendar) -> steersman::Setup {
    let script = "clerk: [ Nothing new. ]";
    Steersman::options()
        .script_all(script)
        .clock(Arc::new(calendar.clone()))
}

/// A folder for a store that two programs share.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("steersman-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// What schedules did until no session had anything to do.
#[derive(Default)]
struct Told {
    begun: Vec<Occasion>,
    failed: Vec<String>,
}

/// Drives the store until nothing is left to do.
async fn until_idle(steersman: &Steersman) -> Told {
    let (stop, told) = (
        CancellationToken::new(),
        Arc::new(Mutex::new(Told::default())),
    );
    let (stopped, told_to) = (stop.clone(), told.clone());
    let driven = steersman.engine().run_all_told(stop, move |what| {
        let mut told = told_to.lock().unwrap();
        match what {
            Happened::Scheduled(_, _, occasion) => told.begun.push(occasion),
            Happened::Unscheduled(_, why) => told.failed.push(why.to_string()),
            Happened::Idle => stopped.cancel(),
            _ => {}
        }
    });
    driven.await.unwrap();
    std::mem::take(&mut *told.lock().unwrap())
}

async fn sessions(steersman: &Steersman) -> Vec<SessionInfo> {
    let all = SessionQuery::default();
    let found = steersman.engine().store().sessions(&all).await;
    found.unwrap()
}

async fn only(steersman: &Steersman) -> Schedule {
    let all = steersman.schedules().await.unwrap();
    let [one] = &all[..] else {
        panic!("{all:?}");
    };
    one.clone()
}

fn hourly(due: i64, missed: u32) -> Occasion {
    Occasion {
        schedule: "hourly".into(),
        due: Time(due),
        missed,
    }
}

#[tokio::test]
async fn a_machine_that_slept_a_day_begins_one_session_and_counts_the_others() {
    let calendar = calendar();
    let steersman = program(&calendar).in_memory();
    let kept = steersman.schedule(&network(CLERK)).await.unwrap();
    let first = NOW + HOUR / 2;
    assert_eq!(kept[0].next, Some(Time(first)));
    assert!(
        until_idle(&steersman).await.begun.is_empty(),
        "nothing is due"
    );

    calendar.0.set(Time(first));
    assert_eq!(until_idle(&steersman).await.begun, [hourly(first, 0)]);
    let next = only(&steersman).await;
    assert_eq!(
        (next.last, next.next, next.missed),
        (Some(Time(first)), Some(Time(first + HOUR)), 0)
    );

    calendar.0.set(Time(first + DAY + 5));
    assert_eq!(
        until_idle(&steersman).await.begun,
        [hourly(first + DAY, 23)]
    );
    let next = only(&steersman).await;
    assert_eq!(next.last, Some(Time(first + DAY)));
    assert_eq!(next.next, Some(Time(first + DAY + HOUR)));
    assert_eq!(next.missed, 23);
    assert!(until_idle(&steersman).await.begun.is_empty());
    assert_eq!(sessions(&steersman).await.len(), 2);

    // The session says what it is told, in the zone of the schedule.
    let newest = sessions(&steersman).await.remove(0);
    let mut lines = steersman.engine().feed(&newest.id, Line::NONE);
    let lines = format!("{:?}", lines.lines().await.unwrap());
    assert!(lines.contains("23 were missed before 12:00"), "{lines}");
}

#[tokio::test]
async fn two_programs_over_one_store_begin_each_session_once() {
    let calendar = calendar();
    let file = folder("schedules-two").join("sessions.db");
    let one = program(&calendar).open(&file).await.unwrap();
    let other = program(&calendar).open(&file).await.unwrap();
    let text = CLERK.replace(
        "agents:",
        "  often: { every: 1m, start: { message: Look. } }\nagents:",
    );
    one.schedule(&network(&text)).await.unwrap();
    let (mut begun, mut missed) = (Vec::new(), 0);
    for round in 1..=4_i64 {
        calendar.0.set(Time(NOW + round * 17 * 60_000));
        let (first, second) = tokio::join!(until_idle(&one), until_idle(&other));
        for told in [first, second] {
            assert!(told.failed.is_empty(), "{:?}", told.failed);
            missed += told
                .begun
                .iter()
                .map(|one| u64::from(one.missed))
                .sum::<u64>();
            begun.extend(told.begun.into_iter().map(|one| (one.schedule, one.due)));
        }
    }
    let count = begun.len();
    begun.sort();
    begun.dedup();
    assert_eq!(begun.len(), count, "each of them once");
    assert_eq!(sessions(&one).await.len(), count);
    assert_eq!(count, 4 + 1, "{begun:?}");
    let all = one.schedules().await.unwrap();
    assert_eq!(all[1].missed, 4 * 17 - 4, "{all:?}");
    assert!(missed <= all[1].missed);
}

/// A process dies after it counted what was missed, and after it began the session.
#[tokio::test]
async fn an_occurrence_survives_a_death_between_any_two_writes() {
    let calendar = calendar();
    let steersman = program(&calendar).in_memory();
    let before = steersman.schedule(&network(CLERK)).await.unwrap().remove(0);
    let store = steersman.engine().store().clone();
    let due = NOW + HOUR / 2 + 3 * HOUR;
    calendar.0.set(Time(due));
    let moved = store.move_schedule(&before.id, before.next.unwrap(), Some(Time(due)), 3);
    assert!(moved.await.unwrap(), "it died after this write");
    assert_eq!(until_idle(&steersman).await.begun, [hourly(due, 0)]);
    let after = only(&steersman).await;
    assert_eq!((after.missed, after.next), (3, Some(Time(due + HOUR))));

    // It died before it moved the schedule on: the session is there already.
    let back = Schedule {
        next: Some(Time(due)),
        ..after.clone()
    };
    assert!(store.drop_schedule(&back.id).await.unwrap());
    assert!(store.put_schedule(back).await.unwrap());
    assert!(until_idle(&steersman).await.begun.is_empty());
    assert_eq!(only(&steersman).await, after);
    assert_eq!(sessions(&steersman).await.len(), 1);
}

#[tokio::test]
async fn a_schedule_goes_on_when_its_definition_changes_and_begins_anew_when_its_times_do() {
    let calendar = calendar();
    let steersman = program(&calendar).in_memory();
    steersman.schedule(&network(CLERK)).await.unwrap();
    let due = NOW + HOUR / 2;
    calendar.0.set(Time(due + 2 * HOUR));
    until_idle(&steersman).await;
    calendar.0.set(Time(due + 4 * HOUR));
    let before = only(&steersman).await;

    let other_text = CLERK.replace("You look.", "You look twice.");
    steersman.schedule(&network(&other_text)).await.unwrap();
    let after = only(&steersman).await;
    assert_ne!(after.digest, before.digest);
    assert_eq!(
        (after.next, after.last, after.missed),
        (before.next, before.last, 2)
    );

    let other_times = CLERK.replace("every: 1h", "cron: \"45 * * * *\"");
    steersman.schedule(&network(&other_times)).await.unwrap();
    let after = only(&steersman).await;
    assert_eq!(after.next, Some(Time(due + 4 * HOUR + 45 * 60_000)));
    assert_eq!((after.last, after.missed), (before.last, 2));

    // A schedule that the definition no longer has is deleted, and only that.
    let daily = CLERK.replace("hourly: { every: 1h", "daily: { cron: \"@daily\"");
    steersman.schedule(&network(&daily)).await.unwrap();
    assert_eq!(&*only(&steersman).await.id.name, "daily");
    assert_eq!(steersman.unschedule("other").await.unwrap(), 0);
    assert_eq!(steersman.unschedule("clerk").await.unwrap(), 1);
    assert!(steersman.schedules().await.unwrap().is_empty());
}

/// A session that cannot begin is told once, tried again, and others are not delayed.
#[tokio::test]
async fn a_session_that_cannot_begin_is_tried_again_until_it_can() {
    let calendar = calendar();
    let text = CLERK.replace(", default: here", "");
    let kept = Arc::new(Mutex::new(None::<String>));
    let env = kept.clone();
    let steersman = program(&calendar)
        .env(move |name| {
            (name == "FOLDER")
                .then(|| env.lock().unwrap().clone())
                .flatten()
        })
        .in_memory();
    steersman.schedule(&network(&text)).await.unwrap();
    let due = NOW + HOUR / 2;
    calendar.0.set(Time(due));
    let told = until_idle(&steersman).await;
    assert_eq!(told.failed.len(), 1, "{:?}", told.failed);
    assert!(told.failed[0].contains("folder"), "{:?}", told.failed);
    assert_eq!(
        only(&steersman).await.next,
        Some(Time(due)),
        "it is not lost"
    );
    *kept.lock().unwrap() = Some("there".to_owned());
    let told = until_idle(&steersman).await;
    assert_eq!(told.begun, [hourly(due, 0)]);
    assert!(told.failed.is_empty());
}

/// The message that begins a session names its occasion.
#[tokio::test]
async fn the_message_that_begins_a_session_names_the_occasion() {
    let calendar = calendar();
    let steersman = program(&calendar).in_memory();
    let network = network(CLERK);
    let due = hourly(NOW, 7);
    let options = StartOptions {
        say: Some("Look.".to_owned()),
        occasion: Some(due.clone()),
        ..StartOptions::default()
    };
    let id = steersman
        .engine()
        .create(network.checked().clone(), options)
        .await
        .unwrap();
    let (_, messages) = steersman.engine().store().inbox(&id).await.unwrap();
    let message = Message::decode(&messages[0]).unwrap();
    let Wanted::Start(begin) = message.wanted else {
        panic!("it begins the session");
    };
    assert_eq!(begin.occasion, Some(due));
}
