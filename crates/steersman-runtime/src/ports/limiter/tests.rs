use super::*;
use crate::clock::Virtual;

fn ask(session: &str, rate: &str, tokens: u64) -> Ask {
    Ask {
        session: session.into(),
        model: "m".into(),
        rate: (!rate.is_empty()).then(|| Rate::parse(rate).expect("a rate")),
        tokens,
        unbroken: false,
    }
}

fn clock() -> Virtual {
    Virtual::at(Time(1_000_000))
}

/// Polls a caller once. Returns `None` if it has to wait.
fn now_or_never(
    limiter: &Arc<Limiter>,
    ask: Ask,
    clock: &Virtual,
) -> Option<Result<Permit, Refused>> {
    use futures::FutureExt;
    limiter.acquire(ask, clock).now_or_never()
}

fn through(limiter: &Arc<Limiter>, ask: Ask, clock: &Virtual) -> bool {
    matches!(now_or_never(limiter, ask, clock), Some(Ok(_)))
}

#[test]
fn within_any_span_there_are_no_more_than_the_rate_says() {
    let (limiter, clock) = (Arc::<Limiter>::default(), clock());
    let mut grants: Vec<i64> = Vec::new();
    for _ in 0..400 {
        while through(&limiter, ask("a", "5/s", 0), &clock) {
            grants.push(clock.now().0);
        }
        clock.advance(37);
    }
    for (at, first) in grants.iter().enumerate() {
        let within = grants[at..]
            .iter()
            .take_while(|other| **other < first + 1_000);
        assert!(within.count() <= 5, "from {first}");
    }
    // In 14.8 s, 74 calls are possible at this rate.
    assert!(grants.len() >= 70, "{}", grants.len());
}

#[test]
fn tokens_are_estimated_before_and_corrected_afterwards() {
    let (limiter, clock) = (Arc::<Limiter>::default(), clock());
    let rate = "1000 tokens/min";
    let take = |tokens| now_or_never(&limiter, ask("a", rate, tokens), &clock);
    let Some(Ok(first)) = take(900) else {
        panic!("there is room");
    };
    assert!(take(200).is_none(), "not in addition to 900");
    first.end(clock.now(), Ended::Answered(Some(100)));
    let Some(Ok(second)) = take(200) else {
        panic!("800 of the first were given back");
    };
    // The call took more than the quota. The real amount counts.
    second.end(clock.now(), Ended::Answered(Some(950)));
    assert!(take(1).is_none());
    clock.advance(60_000);
    // An amount above the quota is let through alone.
    assert!(matches!(take(5_000), Some(Ok(_))));
    assert!(take(1).is_none());
}

/// Servers may report any number; nothing bounds it before it comes here.
#[test]
fn what_servers_tell_is_never_too_large_to_count() {
    let (limiter, clock) = (Arc::<Limiter>::default(), clock());
    let take = || now_or_never(&limiter, ask("a", "1000 tokens/min", 400), &clock);
    let (Some(Ok(first)), Some(Ok(second))) = (take(), take()) else {
        panic!("there is room for two");
    };
    first.end(clock.now(), Ended::Answered(Some(u64::MAX)));
    second.end(clock.now(), Ended::Answered(Some(u64::MAX)));
    assert!(take().is_none());
    clock.advance(60_000);
    assert!(matches!(take(), Some(Ok(_))));
}

#[test]
fn what_failed_or_was_put_off_took_no_tokens() {
    let (limiter, clock) = (Arc::<Limiter>::default(), clock());
    let take = || now_or_never(&limiter, ask("a", "1000 tokens/min", 1_000), &clock);
    let Some(Ok(first)) = take() else { panic!() };
    first.end(clock.now(), Ended::Failed);
    let Some(Ok(second)) = take() else { panic!() };
    second.end(clock.now(), Ended::Pause(0));
    assert!(matches!(take(), Some(Ok(_))));
}

#[tokio::test]
async fn sessions_take_turns_however_much_one_of_them_asks() {
    let (limiter, clock) = (Arc::<Limiter>::default(), clock());
    let mut order = Vec::new();
    let greedy = (0..6).map(|n| ("greedy", n));
    let others = [("modest", 0), ("other", 0)];
    let mut waiting: Vec<_> = greedy
        .chain(others)
        .map(|(session, n)| {
            let asked = limiter.acquire(ask(session, "1/s", 0), &clock);
            (format!("{session} {n}"), Box::pin(asked))
        })
        .collect();
    while !waiting.is_empty() {
        let mut left = Vec::new();
        // A caller may have been woken more than once by callers that left.
        for _ in 0..2 {
            for (name, mut asked) in std::mem::take(&mut waiting) {
                match futures::poll!(&mut asked) {
                    std::task::Poll::Ready(Ok(_)) => order.push(name),
                    std::task::Poll::Ready(Err(why)) => panic!("{name}: {why:?}"),
                    std::task::Poll::Pending => left.push((name, asked)),
                }
            }
            waiting = std::mem::take(&mut left);
        }
        clock.advance(1_000);
    }
    assert_eq!(
        order,
        [
            "greedy 0", "greedy 1", "modest 0", "other 0", "greedy 2", "greedy 3", "greedy 4",
            "greedy 5"
        ]
    );
}

#[tokio::test]
async fn who_goes_away_while_it_waits_keeps_nobody() {
    let (limiter, clock) = (Arc::<Limiter>::default(), clock());
    assert!(through(&limiter, ask("a", "1/s", 0), &clock));
    let mut first = Box::pin(limiter.acquire(ask("a", "1/s", 0), &clock));
    let mut second = Box::pin(limiter.acquire(ask("b", "1/s", 0), &clock));
    assert!(futures::poll!(&mut first).is_pending());
    assert!(futures::poll!(&mut second).is_pending());
    clock.advance(1_000);
    drop(first);
    assert!(matches!(
        futures::poll!(&mut second),
        std::task::Poll::Ready(Ok(_))
    ));
    drop(second);
    assert!(limiter.lock().lanes.is_empty());
}

#[test]
fn what_the_server_says_is_left_is_obeyed() {
    let (limiter, clock) = (Arc::<Limiter>::default(), clock());
    let Some(Ok(permit)) = now_or_never(&limiter, ask("a", "", 10), &clock) else {
        panic!()
    };
    let left = |left, millis| Some(Left { left, millis });
    permit.told(clock.now(), left(2, 30_000), left(50, 5_000));
    assert!(through(&limiter, ask("a", "", 40), &clock));
    assert!(
        !through(&limiter, ask("a", "", 40), &clock),
        "10 tokens are left"
    );
    assert!(through(&limiter, ask("a", "", 10), &clock));
    assert!(
        !through(&limiter, ask("a", "", 0), &clock),
        "no request is left"
    );
    let other = Ask {
        model: "other".into(),
        ..ask("a", "", 40)
    };
    assert!(
        through(&limiter, other, &clock),
        "another model has its own"
    );
    clock.advance(30_000);
    assert!(through(&limiter, ask("a", "", 40), &clock));
    // Longer than the limiter waits.
    permit.told(clock.now(), left(0, 120_000), None);
    let refused = now_or_never(&limiter, ask("a", "", 1), &clock);
    assert!(matches!(refused, Some(Err(Refused::Long(120_000)))));
}

#[test]
fn behind_a_pause_calls_begin_slowly() {
    let (limiter, clock) = (Arc::<Limiter>::default(), clock());
    let Some(Ok(permit)) = now_or_never(&limiter, ask("a", "", 0), &clock) else {
        panic!()
    };
    permit.end(clock.now(), Ended::Pause(7_000));
    let mut began = Vec::new();
    for millis in (0..10_000_i64).step_by(10) {
        while began.len() < 30 && through(&limiter, ask("a", "", 0), &clock) {
            began.push(millis);
        }
        clock.advance(10);
    }
    assert_eq!(began[0], 7_000);
    let at_once = began.iter().filter(|at| **at < 7_100).count();
    assert_eq!(at_once, 1, "{began:?}");
    assert_eq!(began.len(), 30, "and then as fast as before: {began:?}");
    assert!(began[20] < 9_000);
}

#[test]
fn the_breaker_opens_lets_one_through_and_closes() {
    let (limiter, clock) = (Arc::<Limiter>::default(), clock());
    let call = || now_or_never(&limiter, ask("a", "", 0), &clock);
    let fail = |permit: Option<Result<Permit, Refused>>| {
        let Some(Ok(permit)) = permit else {
            panic!("{permit:?}")
        };
        permit.end(clock.now(), Ended::Failed);
    };
    for _ in 0..FAILURES - 1 {
        fail(call());
    }
    // One answer of any kind restarts the count.
    let Some(Ok(permit)) = call() else { panic!() };
    permit.end(clock.now(), Ended::Answered(None));
    for _ in 0..FAILURES {
        fail(call());
    }
    assert!(matches!(call(), Some(Err(Refused::Open(OPEN)))));
    clock.advance(OPEN);
    let Some(Ok(probe)) = call() else { panic!() };
    assert!(
        matches!(call(), Some(Err(Refused::Open(PROBE)))),
        "one probe at a time"
    );
    // A cancelled probe shows nothing, so another call becomes the probe.
    drop(probe);
    fail(call());
    let Some(Err(Refused::Open(longer))) = call() else {
        panic!()
    };
    assert_eq!(longer, 2 * OPEN);
    clock.advance(2 * OPEN);
    let Some(Ok(probe)) = call() else { panic!() };
    probe.end(clock.now(), Ended::Answered(Some(3)));
    let (one, two) = (call(), call());
    assert!(matches!((&one, &two), (Some(Ok(_)), Some(Ok(_)))));
    let past = Ask {
        unbroken: true,
        ..ask("a", "", 0)
    };
    for _ in 0..2 * FAILURES {
        fail(now_or_never(&limiter, past.clone(), &clock));
    }
    assert!(matches!(call(), Some(Ok(_))));
}

#[test]
fn a_clock_that_is_set_back_keeps_nobody_for_longer_than_the_span() {
    let (limiter, clock) = (Arc::<Limiter>::default(), clock());
    assert!(through(&limiter, ask("a", "1/s", 0), &clock));
    clock.set(Time(0));
    assert!(!through(&limiter, ask("a", "1/s", 0), &clock));
    clock.advance(1_000);
    assert!(through(&limiter, ask("a", "1/s", 0), &clock));
}

/// A breaker, a pause and a server's statement last as long as they were meant to, even if the clock is set back.
#[test]
fn a_clock_that_is_set_back_prolongs_no_wait() {
    for ends in [
        vec![Ended::Failed; FAILURES as usize],
        vec![Ended::Pause(OPEN)],
    ] {
        let (limiter, clock) = (Arc::<Limiter>::default(), clock());
        clock.advance(1_000_000_000);
        let ask = || ask("a", "100/s", 0);
        for ended in ends {
            let Some(Ok(permit)) = now_or_never(&limiter, ask(), &clock) else {
                panic!("it is let through");
            };
            permit.end(clock.now(), ended);
        }
        assert!(!through(&limiter, ask(), &clock));
        clock.set(Time(0));
        assert!(!through(&limiter, ask(), &clock), "no shorter either");
        clock.advance(OPEN);
        assert!(through(&limiter, ask(), &clock));
    }
}

/// A caller that already waits checks again after the time that its wait was meant to take.
#[tokio::test]
async fn who_waits_while_the_clock_is_set_back_waits_no_longer() {
    let (limiter, clock) = (Arc::<Limiter>::default(), clock());
    clock.advance(1_000_000_000);
    assert!(through(&limiter, ask("a", "1/s", 0), &clock));
    let waits = limiter.acquire(ask("a", "1/s", 0), &clock);
    tokio::pin!(waits);
    assert!(futures::poll!(&mut waits).is_pending());
    clock.set(Time(0));
    assert!(futures::poll!(&mut waits).is_pending());
    clock.advance(1_000);
    while futures::poll!(&mut waits).is_pending() {
        clock.advance(100);
        assert!(clock.now() < Time(10_000), "it waits for the clock");
    }
}

#[test]
fn places_are_told_apart() {
    let (limiters, clock) = (Limiters::default(), clock());
    let one = limiters.of(&["openai", "https://a", "key"], &clock);
    let same = limiters.of(&["openai", "https://a", "key"], &clock);
    assert!(Arc::ptr_eq(&one, &same));
    for other in [
        ["openai", "https://a", "yek"],
        ["openai", "https://ak", "ey"],
    ] {
        assert!(!Arc::ptr_eq(&one, &limiters.of(&other, &clock)));
    }
}

/// Uses more places than are remembered. Returns the number that is remembered then.
fn crowd(limiters: &Limiters, clock: &Virtual) -> usize {
    for n in 0..2 * PLACES {
        limiters.of(&["crowd", &n.to_string()], clock);
    }
    limiters.0.lock().expect("nobody panicked").len()
}

#[test]
fn a_place_is_remembered_as_long_as_a_call_there_would_wait() {
    type Use = fn(Permit, Time, Left);
    let hour = 3_600_000;
    let none_left = Left {
        left: 0,
        millis: hour,
    };
    let uses: [(&str, Use); 4] = [
        ("1/h", |permit, now, _| {
            permit.end(now, Ended::Answered(None));
        }),
        ("", |permit, now, left| permit.told(now, Some(left), None)),
        ("", |permit, now, left| permit.told(now, None, Some(left))),
        ("", |permit, now, left| {
            permit.end(now, Ended::Pause(left.millis));
        }),
    ];
    for (rate, then) in uses {
        let (limiters, clock) = (Limiters::default(), clock());
        let place = |clock: &Virtual| limiters.of(&["openai", "https://a", "key"], clock);
        let one = place(&clock);
        let Some(Ok(permit)) = now_or_never(&one, ask("a", rate, 1), &clock) else {
            panic!("there is room");
        };
        then(permit, clock.now(), none_left);
        let known = Arc::downgrade(&one);
        drop(one);
        assert!(crowd(&limiters, &clock) <= PLACES + 1);
        assert!(
            !through(&place(&clock), ask("a", rate, 1), &clock),
            "it is not forgotten: {rate}"
        );
        clock.advance(hour);
        assert!(crowd(&limiters, &clock) <= PLACES);
        assert!(known.upgrade().is_none(), "it is forgotten: {rate}");
    }
}

/// Polls a parked caller once.
fn called(seat: &mut crate::Boxed<'_, Permit>) -> Option<Permit> {
    use futures::FutureExt;
    seat.now_or_never()
}

fn seat<'a>(
    limiter: &'a Arc<Limiter>,
    session: &str,
    parked: i64,
    clock: &'a Virtual,
) -> crate::Boxed<'a, Permit> {
    let since = Since {
        parked: Time(parked),
        tries: 0,
    };
    Box::pin(limiter.wait(ask(session, "", 0), since, clock))
}

#[test]
fn while_nobody_answers_those_who_are_parked_try_in_turn() {
    let (limiter, clock) = (Arc::<Limiter>::default(), clock());
    for _ in 0..FAILURES {
        let Some(Ok(permit)) = now_or_never(&limiter, ask("a", "", 0), &clock) else {
            panic!("the breaker is still closed");
        };
        permit.end(clock.now(), Ended::Failed);
    }
    // They join in another order than they were parked.
    let mut second = seat(&limiter, "b", 2, &clock);
    assert!(called(&mut second).is_none());
    let mut first = seat(&limiter, "a", 1, &clock);
    assert!(called(&mut first).is_none());
    assert_eq!(limiter.parked(), 2);
    clock.advance(OPEN);
    // A caller that is not parked is never the probe.
    let other = now_or_never(&limiter, ask("c", "", 0), &clock);
    assert!(matches!(other, Some(Err(Refused::Open(_)))));
    assert!(called(&mut second).is_none());
    let permit = called(&mut first).expect("it was parked first");
    permit.end(clock.now(), Ended::Failed);
    // It has tried. The other one tries next, and follows it once the place answers.
    let since = Since {
        parked: Time(1),
        tries: 1,
    };
    let mut first: crate::Boxed<'_, Permit> =
        Box::pin(limiter.wait(ask("a", "", 0), since, &clock));
    assert!(called(&mut first).is_none());
    clock.advance(2 * OPEN);
    assert!(called(&mut first).is_none());
    let permit = called(&mut second).expect("it has not tried");
    let mut third = seat(&limiter, "d", 3, &clock);
    assert!(called(&mut third).is_none(), "one tries at a time");
    permit.end(clock.now(), Ended::Answered(None));
    clock.advance(RAMP);
    assert!(called(&mut third).is_none());
    drop(called(&mut first).expect("it was parked first"));
    clock.advance(RAMP);
    assert!(called(&mut third).is_some());
    assert_eq!(limiter.parked(), 0);
}
