//! Many invoices at once. Events start the sessions, a process that is killed again and again drives them, people
//! decide in other processes, a clock escalates, and a service that breaks connections leaves doubts. In the end each
//! approved posting exists exactly once and no other one, and `pending` and `effects` agree with that.
//!
//! `STEERSMAN_SESSIONS=300` makes a long campaign; `STEERSMAN_SEED` is as in [`crate::crash`].

use crate::crash::{Random, count, kill_after, spawn};
use crate::world::{Service, World};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// A model that copies what it reads: the PDFs of this office hold the fields of their invoices as JSON.
const SCRIPT: &str = r#"
extract:
  - call: { pdf__read_text: { pdf: invoice.pdf } }
  - "{{ request.last }}"
"#;

const APPROVER: &str = "finance-approver";
const HEAD: &str = "finance-head";

/// The decision of people on an invoice.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// It is below the limit: nobody is asked.
    Small,
    /// The approver approves it.
    Approved,
    /// The approver rejects it.
    Rejected,
    /// The approver does not decide, and the head of finance approves it.
    Escalated,
    /// Nobody decides.
    Expired,
}

fn fate(n: u64) -> Fate {
    match n % 12 {
        0 | 1 => Fate::Small,
        2..=7 => Fate::Approved,
        8 => Fate::Rejected,
        9 | 10 => Fate::Escalated,
        _ => Fate::Expired,
    }
}

/// The number of an invoice. Its last digit, by which the service is faulty, does not depend on the fate.
fn number(n: u64) -> String {
    (1_000 + n).to_string()
}

fn pdf(n: u64) -> String {
    let cents = if fate(n) == Fate::Small {
        5_000
    } else {
        240_000
    };
    let fields = json!({
        "vendor": "Acme",
        "number": number(n),
        "total": cents,
        "lines": [{ "text": "Paper", "cents": cents }],
    });
    format!("%PDF-1.4\nstream\nBT ({fields}) Tj ET\nendstream\n%%EOF\n")
}

struct Office {
    world: World,
    service: Service,
    random: Random,
    kills: u64,
}

impl Office {
    fn open() -> Self {
        let mut world = World::example("invoice");
        let service = Service::invoice(&mut world, true);
        world.write("script.yaml", SCRIPT);
        world.write("clock.yaml", "2026-01-05T09:00:00Z");
        Self {
            world,
            service,
            random: Random::seeded(),
            kills: 0,
        }
    }

    /// Sends the event of an invoice, for every fifth one twice.
    fn receive(&self, n: u64) {
        self.world.write("invoice.pdf", &pdf(n));
        let mail = json!({ "message_id": format!("m{n}"), "from": format!("ap{n}@acme.example") });
        let mail = mail.to_string();
        let args = [
            "send",
            "invoice",
            "--event",
            "mail_received",
            &mail,
            "--file",
            "pdf=invoice.pdf",
            "--script-all",
            "script.yaml",
            "--clock",
            "clock.yaml",
        ];
        let (code, sent) = self.world.json(&args);
        assert_eq!(
            (code, &sent["status"]),
            (Some(0), &json!("started")),
            "{sent}"
        );
        if n.is_multiple_of(5) {
            let (code, sent) = self.world.json(&args);
            assert_eq!(
                (code, &sent["status"]),
                (Some(0), &json!("known")),
                "{sent}"
            );
        }
    }

    fn sessions(&self) -> Vec<Json> {
        self.world.json_lines(&["sessions", "--all"])
    }

    fn pending(&self) -> Vec<Json> {
        self.world.json_lines(&["pending"])
    }

    /// Drives all sessions until none goes on by itself. The process is killed at a random moment, later in each round.
    fn drive(&mut self) {
        let args = ["run", "--all", "--clock", "clock.yaml"];
        for round in 0..200 {
            let most = 200 + 200 * round;
            let after = Duration::from_millis(50 + self.random.below(most));
            let child = spawn(&self.world, &args);
            self.kills += u64::from(kill_after(child, after));
            if !self.is_busy() {
                return;
            }
        }
        panic!("it does not come to rest: {:?}", self.sessions());
    }

    /// Returns true if a session would go on if it were driven.
    fn is_busy(&self) -> bool {
        let clock = std::fs::read_to_string(self.world.folder.join("clock.yaml")).unwrap();
        let by_itself = |pending: &Json| {
            let is_due = pending["due"]
                .as_str()
                .is_some_and(|due| due <= clock.trim());
            is_due || matches!(pending["kind"].as_str(), Some("again" | "interrupted"))
        };
        let sessions = self.sessions();
        let mut sessions = sessions.iter();
        sessions.any(|session| session["inbox"] == true || session["line"] == 0)
            || self.pending().iter().any(by_itself)
    }

    /// A person decides in another process. The decision is in the inbox until a process that drives takes it.
    fn decide(&self, n: u64, how: &str, role: &str) {
        let session = format!("number={}", number(n));
        let wrong = if role == APPROVER { HEAD } else { APPROVER };
        if n.is_multiple_of(3) {
            let refused = self.world.run(&[how, &session, "--as", wrong, "--no-run"]);
            assert_eq!(refused.code, Some(2), "the wrong role: {refused:?}");
        }
        let args = [
            how,
            &session,
            "--as",
            role,
            "--no-run",
            "--clock",
            "clock.yaml",
        ];
        let done = self.world.run(&args);
        assert_eq!(done.code, Some(0), "{done:?}");
        // A second decision finds nothing open.
        let again = self.world.run(&args);
        assert!(matches!(again.code, Some(0 | 2)), "{again:?}");
    }

    /// Resolves doubts as an operator does: as the book of the service says. Returns their number.
    fn settle_doubts(&mut self) -> usize {
        let pending = self.pending();
        let doubts: Vec<&Json> = pending.iter().filter(|p| p["kind"] == "doubt").collect();
        let posted = self.service.postings();
        for doubt in &doubts {
            let session = doubt["session"].as_str().unwrap();
            let (_, shown) = self.world.json(&["show", session]);
            let number = shown["state"]["invoice"]["number"].as_str().unwrap();
            // A posting whose sender died may arrive in the book after the probe ran: the operator sees it.
            let done = format!(r#"--done={{"id":"L-{number}","number":"{number}"}}"#);
            let is_there = posted.iter().any(|known| known == number);
            let how = if is_there { &done } else { "--not-performed" };
            // A message of a clock that is ahead is not due for a process with another clock.
            let args = ["resolve", session, "--as", APPROVER, how, "--no-run"];
            let resolved = self
                .world
                .run(&[&args[..], &["--clock", "clock.yaml"]].concat());
            assert_eq!(resolved.code, Some(0), "{resolved:?}");
        }
        doubts.len()
    }

    /// Drives and settles doubts until only approvals wait. Returns the number of doubts.
    fn drive_on(&mut self) -> usize {
        let mut doubts = 0;
        for _ in 0..20 {
            self.drive();
            match self.settle_doubts() {
                0 => return doubts,
                some => doubts += some,
            }
        }
        panic!("there is no end of doubts");
    }
}

#[test]
fn every_invoice_is_posted_as_it_was_decided_and_none_twice() {
    let sessions = count("STEERSMAN_SESSIONS", 12);
    let mut office = Office::open();
    let all: Vec<u64> = (0..sessions).collect();
    let of = |wanted: Fate| all.iter().copied().filter(move |n| fate(*n) == wanted);
    for n in &all {
        office.receive(*n);
    }
    let mut doubts = office.drive_on();
    let parked = office.pending();
    let asked = all.iter().filter(|n| fate(**n) != Fate::Small).count();
    assert_eq!(parked.len(), asked, "{parked:?}");
    for n in of(Fate::Approved) {
        office.decide(n, "approve", APPROVER);
    }
    for n in of(Fate::Rejected) {
        office.decide(n, "reject", APPROVER);
    }
    doubts += office.drive_on();
    // Three days later.
    office.world.write("clock.yaml", "2026-01-08T09:00:01Z");
    doubts += office.drive_on();
    for n in of(Fate::Escalated) {
        office.decide(n, "approve", HEAD);
    }
    doubts += office.drive_on();
    // Two more days later.
    office.world.write("clock.yaml", "2026-01-10T09:00:02Z");
    doubts += office.drive_on();

    assert_eq!(office.pending(), Vec::<Json>::new());
    let posted = office.service.postings();
    let wanted = all
        .iter()
        .filter(|n| !matches!(fate(**n), Fate::Rejected | Fate::Expired));
    let wanted: BTreeSet<String> = wanted.map(|n| number(*n)).collect();
    assert_eq!(posted.iter().cloned().collect::<BTreeSet<_>>(), wanted);
    assert_eq!(posted.len(), wanted.len(), "twice: {posted:?}");
    let booked = office.service.booked();
    let mail = booked.iter().filter(|entry| entry["kind"] == "mail");
    let told: BTreeSet<&str> = mail
        .clone()
        .map(|mail| mail["to"].as_str().unwrap())
        .collect();
    assert_eq!(
        (mail.count(), told.len()),
        (all.len(), all.len()),
        "each sender gets one mail"
    );

    // A doubt is a question of its own, to the approver.
    let told = |who: &str, of_doubt: bool| {
        let chat = booked.iter().filter(|entry| entry["kind"] == "chat");
        let is_doubt = |entry: &&Json| {
            let text = entry["text"].as_str().unwrap();
            text.contains("may have happened")
        };
        let told = chat.filter(|entry| entry["to"] == who && is_doubt(entry) == of_doubt);
        told.count()
    };
    let escalated = of(Fate::Escalated).chain(of(Fate::Expired)).count();
    assert_eq!(
        (told("approver", false), told("head_of_finance", false)),
        (asked, escalated),
        "each person is told once of each question"
    );
    assert_eq!(
        (told("approver", true), told("head_of_finance", true)),
        (doubts, 0),
        "and once of each doubt"
    );

    let listed = office.sessions();
    assert_eq!(listed.len(), all.len());
    for n in &all {
        let session = format!("number={}", number(*n));
        let (_, shown) = office.world.json(&["show", &session]);
        let status = if wanted.contains(&number(*n)) {
            "posted"
        } else {
            "rejected"
        };
        assert_eq!(
            (&shown["status"], &shown["outcome"]["status"]),
            (&json!("answered"), &json!(status)),
            "{shown}"
        );
        let effects = office.world.json_lines(&["effects", &session]);
        let done = |tool: &str| {
            let of = effects.iter().filter(|effect| effect["tool"] == tool);
            let word = |effect: &Json| effect["standing"].as_str().unwrap().to_owned();
            of.filter(|effect| word(effect).starts_with("done")).count()
        };
        assert_eq!(
            done("post_to_ledger"),
            usize::from(status == "posted"),
            "{effects:?}"
        );
        assert_eq!(done("notify"), 1, "{effects:?}");
    }
    assert_eq!(office.world.run(&["fsck"]).code, Some(0));
    println!(
        "{} kills, {doubts} doubts were settled by a person",
        office.kills
    );
}
