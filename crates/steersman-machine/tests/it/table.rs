//! The table of phases and events, as a snapshot, with the function that judges each kind of offer.

use std::fmt::Write as _;
use steersman_machine::network::join::JoinOn;
use steersman_machine::snapshot::{Phase, Snapshot};
use steersman_machine::stored::by::By;
use steersman_machine::stored::commit::Binding;
use steersman_machine::stored::ids::{Body, Digest, Id, Line};
use steersman_machine::stored::outcome::Outcome;
use steersman_machine::tick::effect::{Cancelled, OfferKind, Offered, Opened, Said, Start};
use steersman_machine::tick::history::ChatHistory;
use steersman_machine::tick::table::{Event, judge, rule};

const PHASES: [Phase; 4] = [
    Phase::Resting,
    Phase::Thinking,
    Phase::Routing,
    Phase::Calling,
];
const EVENTS: [Event; 9] = [
    Event::Message,
    Event::Decision,
    Event::CallOutcome,
    Event::ParentCall,
    Event::Join,
    Event::CallChanged,
    Event::CallAnew,
    Event::Cancel,
    Event::Interrupt,
];

#[test]
fn the_table_reads_as_it_is() {
    let mut page = String::new();
    write!(page, "{:<12}", "").expect("a string takes it");
    for phase in PHASES {
        write!(page, "{:<20}", format!("{phase:?}")).expect("a string takes it");
    }
    for event in EVENTS {
        write!(page, "\n{:<12}", format!("{event:?}")).expect("a string takes it");
        for phase in PHASES {
            let rule = format!("{:?}", rule(phase, event));
            write!(page, "{rule:<20}").expect("a string takes it");
        }
    }
    page.push_str("\n\nWho judges what is offered, beside or without a phase:");
    for offered in offers() {
        let judge = judge(&offered);
        let events: Vec<String> = judge.events.iter().map(|e| format!("{e:?}")).collect();
        let events = events.join(", ");
        write!(page, "\n{:<12}{events:<24}{}", judge.offer, judge.asked)
            .expect("a string takes it");
    }
    let page: Vec<&str> = page.lines().map(str::trim_end).collect();
    insta::assert_snapshot!(page.join("\n"));
}

/// Each event comes from an offer, except the call of a parent.
#[test]
fn every_event_is_offered_or_comes_about_within_a_tick() {
    let offers = offers();
    let offered: Vec<Event> = offers
        .iter()
        .flat_map(|offer| judge(offer).events)
        .copied()
        .collect();
    for event in EVENTS {
        let within = event == Event::ParentCall;
        let times = offered.iter().filter(|e| **e == event).count();
        assert_eq!(times, usize::from(!within), "{event:?}");
    }
}

/// Each offer of `offers` has another kind, and they are in the order of their kinds.
#[test]
fn offers_have_one_order() {
    let kinds: Vec<OfferKind> = offers().iter().map(Offered::kind).collect();
    assert!(kinds.is_sorted_by(|a, b| a < b), "{kinds:?}");
}

/// One offer of each kind, in the order in which a tick takes them. A new kind does not compile in `judge`; the printed
/// names show if it is missing here.
fn offers() -> Vec<Offered> {
    let said = || Said {
        id: "m".into(),
        text: "".into(),
        to: None,
        by: By::default(),
        sender: None,
        came: Vec::new(),
        sets: Vec::new(),
    };
    vec![
        Offered::Edit {
            writes: Vec::new(),
            by: "user".into(),
        },
        Offered::Start(Start {
            agent: None,
            args: None,
            message: None,
            came: Vec::new(),
            history: ChatHistory::default(),
            binding: Binding {
                digest: Digest::of(b""),
                source: [0; 32],
                network: "n".into(),
                entry: "e".into(),
                values: Body::new(Line(1), 0),
                machine: 1,
            },
            values: "".into(),
        }),
        Offered::Opened(Opened::default()),
        Offered::Adopt {
            call: None,
            branch: Id::MAIN,
            at: Line::NONE,
            from: Box::new(Snapshot::empty()),
            known: Vec::new(),
        },
        Offered::NotAdopted {
            call: (Id::MAIN, Id::MAIN),
            branch: Id::MAIN,
            why: "gone".into(),
        },
        Offered::Outcome {
            effect: Id::MAIN,
            attempt: 1,
            outcome: Outcome::Leaf(String::new()),
        },
        Offered::Edited {
            effect: Id::MAIN,
            args: "".into(),
            by: "user".into(),
            approver: "user".into(),
        },
        Offered::Anew {
            effect: Id::MAIN,
            by: None,
        },
        Offered::Clock,
        Offered::Ended {
            call: (Id::MAIN, Id::MAIN),
            ends: Vec::new(),
        },
        Offered::Join {
            branches: Vec::new(),
            on: JoinOn::All,
            then: None,
        },
        Offered::Interrupt {
            message: said(),
            known: Vec::new(),
            shown: Vec::new(),
        },
        Offered::Cancel {
            what: Cancelled::All,
            by: "user".into(),
            known: Vec::new(),
            shown: Vec::new(),
        },
        Offered::Message(said()),
    ]
}
