//! Times of schedules: the rules, the two changes of the clock in two zones, and what is said of mistakes.

use steersman_definition::schedule::{COUNTED, between, last, next};
use steersman_definition::{Files, compile};
use steersman_machine::network::schedule::{Rule, Times};
use steersman_machine::stored::ids::Time;
use steersman_machine::view::iso;

fn cron(expression: &str, timezone: &str) -> Times {
    Times {
        rule: Rule::Cron(expression.to_owned()),
        timezone: timezone.to_owned(),
    }
}

fn every(millis: u64) -> Times {
    Times {
        rule: Rule::Every(millis),
        timezone: "UTC".to_owned(),
    }
}

fn at(text: &str) -> Time {
    let at: jiff::Timestamp = text.parse().expect("a time");
    Time(at.as_millisecond())
}

/// The times from one moment to another one, as the zone tells them.
fn all(times: &Times, from: &str, to: &str) -> Vec<String> {
    let (mut now, to) = (at(from), at(to));
    let mut found = Vec::new();
    while let Some(time) = next(times, now).filter(|time| *time <= to) {
        found.push(iso(time, &times.timezone));
        now = time;
    }
    found
}

/// Each row: the expression, the zone, the day in UTC, and all times of that day.
#[test]
fn changes_of_the_clock_in_two_zones() {
    let rows: &[(&str, &str, &str, &[&str])] = &[
        // Berlin skips 02:00 to 03:00: a fixed time in the gap comes right after it.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-29",
            &["2026-03-29T03:00:00+02:00"],
        ),
        (
            "30 3 * * *",
            "Europe/Berlin",
            "2026-03-29",
            &["2026-03-29T03:30:00+02:00"],
        ),
        // A rule with `*` has no time in the gap.
        (
            "30 * * * *",
            "Europe/Berlin",
            "2026-03-29 short",
            &[
                "2026-03-29T01:30:00+01:00",
                "2026-03-29T03:30:00+02:00",
                "2026-03-29T04:30:00+02:00",
            ],
        ),
        // Berlin repeats 02:00 to 03:00: a fixed time comes once.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-25",
            &["2026-10-25T02:30:00+02:00"],
        ),
        // A rule with `*` comes in both hours.
        (
            "30 * * * *",
            "Europe/Berlin",
            "2026-10-25 short",
            &[
                "2026-10-25T02:30:00+02:00",
                "2026-10-25T02:30:00+01:00",
                "2026-10-25T03:30:00+01:00",
            ],
        ),
        // New York changes on other days, at other hours of UTC.
        (
            "30 2 * * *",
            "America/New_York",
            "2026-03-08",
            &["2026-03-08T03:00:00-04:00"],
        ),
        (
            "15 1 * * *",
            "America/New_York",
            "2026-11-01",
            &["2026-11-01T01:15:00-04:00"],
        ),
        (
            "15 * * * *",
            "America/New_York",
            "2026-11-01 late",
            &[
                "2026-11-01T01:15:00-04:00",
                "2026-11-01T01:15:00-05:00",
                "2026-11-01T02:15:00-05:00",
            ],
        ),
    ];
    let mut wrong = Vec::new();
    for (expression, zone, day, wanted) in rows {
        let (from, to) = match day.split_once(' ') {
            None => (format!("{day}T00:00:00Z"), format!("{day}T23:59:59Z")),
            Some((day, "short")) => (format!("{day}T00:00:00Z"), format!("{day}T02:59:59Z")),
            Some((day, _)) => (format!("{day}T05:00:00Z"), format!("{day}T07:59:59Z")),
        };
        let found = all(&cron(expression, zone), &from, &to);
        if found != *wanted {
            wrong.push(format!("{expression} {zone} {day}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Going forward and looking back find the same times, around each change of the clock.
#[test]
fn looking_back_finds_the_times_that_came() {
    for zone in ["Europe/Berlin", "America/New_York"] {
        for expression in [
            "30 2 * * *",
            "15 1 * * *",
            "*/20 * * * *",
            "0 0 1 * *",
            "30 6 * * 1-5",
        ] {
            let times = cron(expression, zone);
            for day in ["2026-03-07", "2026-03-28", "2026-10-24", "2026-10-31"] {
                let start = at(&format!("{day}T00:00:00Z"));
                let end = start.plus(2 * 86_400_000);
                let (mut now, mut count) = (start, 0);
                while let Some(time) = next(&times, now).filter(|time| *time < end) {
                    let told = iso(time, zone);
                    assert_eq!(last(&times, time), Some(time), "{expression} {told}");
                    assert_eq!(
                        last(&times, Time(time.0 + 59_000)),
                        Some(time),
                        "{expression} {told}"
                    );
                    assert!(time > now, "{expression} {told}");
                    (now, count) = (time, count + 1);
                }
                let first = next(&times, start).unwrap();
                assert_eq!(
                    between(&times, first, end),
                    count,
                    "{expression} {zone} {day}"
                );
            }
        }
    }
}

#[test]
fn a_span_has_its_multiples_and_counts_have_a_bound() {
    let hour = every(3_600_000);
    assert_eq!(
        all(&hour, "2026-11-28T10:00:00Z", "2026-11-28T12:59:59Z").len(),
        2
    );
    assert_eq!(
        next(&hour, at("2026-11-28T10:00:00Z")),
        Some(at("2026-11-28T11:00:00Z"))
    );
    assert_eq!(
        last(&hour, at("2026-11-28T10:59:59Z")),
        Some(at("2026-11-28T10:00:00Z"))
    );
    assert_eq!(
        last(&hour, at("2026-11-28T10:00:00Z")),
        Some(at("2026-11-28T10:00:00Z"))
    );
    let day = (at("2026-11-27T10:00:00Z"), at("2026-11-28T10:00:00Z"));
    assert_eq!(between(&hour, day.0, day.1), 24);
    assert_eq!(
        between(&every(1_000), Time(0), at("2026-11-28T10:00:00Z")),
        COUNTED
    );
    assert_eq!(next(&every(u64::MAX), Time(0)), None);
    assert_eq!(next(&hour, Time(i64::MAX)), None);
}

/// Each mistake, with a part of what is said.
#[test]
fn mistakes_are_named_with_their_field() {
    let rows = [
        ("cron: \"30 25 * * *\"", "`25` is no hour (0-23)"),
        ("cron: \"61 6 * * *\"", "`61` is no minute (0-59)"),
        (
            "cron: \"30 6 * * funday\"",
            "`funday` is no day of the week (0-7)",
        ),
        ("cron: \"30 6 * *\"", "it has 4 fields"),
        ("cron: \"0 30 6 * * *\"", "it has 6 fields"),
        ("cron: daily", "it has 1 field"),
        ("at: tomorrow", "a time on the clock of the zone"),
        ("at: 2026-12-24 25:00", "a time on the clock of the zone"),
        ("cron: \"0 0 31 2 *\"", "is not a time that ever comes"),
        ("every: 10ms", "`10ms` is not a span of at least `1s`"),
        ("every: hourly", "hourly"),
        (
            "cron: \"30 6 * * *\", timezone: Berlin",
            "`Berlin` is not a zone of the IANA database",
        ),
        ("every: 1h, cron: \"30 6 * * *\"", "cron"),
        ("timezone: UTC", "every"),
    ];
    let mut wrong = Vec::new();
    for (written, wanted) in rows {
        let text = format!(
            "schedules:\n  nightly: {{ {written}, start: {{ message: Go. }} }}\nagents: {{ desk: {{ system: You answer. }} }}\n"
        );
        let (_, found) = compile(&Files::new("steersman.yaml", text.as_str()));
        let told: Vec<String> = found.iter().map(|found| found.render(false)).collect();
        if !matches!(&told[..], [one] if one.contains(wanted) && one.contains("steersman.yaml:2:"))
        {
            wrong.push(format!("{written}: {told:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn templates_see_the_schedule_alone() {
    let text = |value: &str| {
        format!(
            "state: {{ n: {{ type: integer, default: 1 }} }}\nschedules:\n  nightly: {{ every: 1h, start: {{ message: \"{value}\" }} }}\nagents: {{ desk: {{ system: You answer. }} }}\n"
        )
    };
    let compiled = |value: &str| {
        let (network, found) = compile(&Files::new("steersman.yaml", text(value).as_str()));
        let told: Vec<String> = found.iter().map(|found| found.render(false)).collect();
        (network.is_some(), told.join("\n"))
    };
    let (is_right, told) =
        compiled("{{ schedule.date }} {{ schedule.missed + 1 }} {{ schedule.name }}");
    assert!(is_right && told.is_empty(), "{told}");
    for (value, wanted) in [("{{ state.n }}", "state"), ("{{ schedule.day }}", "day")] {
        let (is_right, told) = compiled(value);
        assert!(!is_right && told.contains(wanted), "{value}: {told}");
    }
}

/// A single time comes once. One that the zone skips comes after the gap, and one that it repeats is the first.
#[test]
fn a_single_time_comes_once() {
    for (time, zone, comes) in [
        (
            "2026-12-24 18:00",
            "Europe/Berlin",
            "2026-12-24T18:00:00+01:00",
        ),
        ("2026-12-24T18:00:30", "UTC", "2026-12-24T18:00:30+00:00"),
        (
            "2026-03-29 02:30",
            "Europe/Berlin",
            "2026-03-29T03:30:00+02:00",
        ),
        (
            "2026-10-25 02:30",
            "Europe/Berlin",
            "2026-10-25T02:30:00+02:00",
        ),
    ] {
        let times = Times {
            rule: Rule::At(time.to_owned()),
            timezone: zone.to_owned(),
        };
        let found = all(&times, "2026-01-01T00:00:00Z", "2030-01-01T00:00:00Z");
        assert_eq!(found, [comes], "{time} in {zone}");
        let due = next(&times, at("2026-01-01T00:00:00Z")).expect("it comes");
        assert_eq!(next(&times, due), None);
        assert_eq!(last(&times, due), Some(due));
        assert_eq!(last(&times, Time(due.0 - 1)), None);
        assert_eq!(between(&times, due, Time(due.0 + 9)), 1);
    }
}
