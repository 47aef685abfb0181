//! The table of phases and events, printed; and that every row of it is what ticks do.

use std::fmt::Write as _;
use steersman_machine::snapshot::Phase;
use steersman_machine::table::{Event, rule};

const PHASES: [Phase; 4] = [
    Phase::Resting,
    Phase::Thinking,
    Phase::Routing,
    Phase::Calling,
];
const EVENTS: [Event; 8] = [
    Event::Message,
    Event::Decision,
    Event::CallOutcome,
    Event::ParentCall,
    Event::Join,
    Event::CallChanged,
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
    let page: Vec<&str> = page.lines().map(str::trim_end).collect();
    insta::assert_snapshot!(page.join("\n"));
}
