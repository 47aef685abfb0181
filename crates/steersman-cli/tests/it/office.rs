//! Many invoices at once: begun by events, parked, driven by a process that is killed again and again, decided by people in
//! other processes, escalated by a clock, left in doubt by a service that breaks connections. In the end each posting is
//! there exactly once, none that nobody approved, and `pending` and `effects` explain all of it.
//!
//! `STEERSMAN_SESSIONS=300` makes it long; `STEERSMAN_SEED` as in [`crate::crash`].

use crate::crash::{Random, count, kill_after, spawn};
use crate::world::{Service, World};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// What a model does that copies what it reads: the PDFs of this office hold the fields of their invoices as JSON.
const SCRIPT: &str = r#"
extract:
  - call: { pdf__read_text: { pdf: invoice.pdf } }
  - "{{ request.last }}"
"#;

const APPROVER: &str = "finance-approver";
const HEAD: &str = "finance-head";

/// What is to become of an invoice.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// Below the limit: nobody is asked.
    Small,
    /// The approver lets it pass.
    Approved,
    /// The approver says no.
    Rejected,
    /// The approver is silent, the head of finance lets it pass.
    Escalated,
    /// Everybody is silent.
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

/// The last digit of each number, by which the service is faulty, has nothing to do with its fate.
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

    /// An event comes in, some of them twice.
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

    /// Drives all sessions until nothing of any goes on by itself. The process dies at random, later each time.
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

    /// Whether something goes on as soon as somebody drives it.
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

    /// Somebody decides in a process of their own. It lies in the inbox until whoever drives takes it.
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
        // twice: the second one meets nothing that is open any more
        let again = self.world.run(&args);
        assert!(matches!(again.code, Some(0 | 2)), "{again:?}");
    }

    /// What an operator does at a doubt: looks into the book, and says what stands there.
    fn settle_doubts(&mut self) -> usize {
        let pending = self.pending();
        let doubts: Vec<&Json> = pending.iter().filter(|p| p["kind"] == "doubt").collect();
        let posted = self.service.postings();
        for doubt in &doubts {
            let session = doubt["session"].as_str().unwrap();
            let (_, shown) = self.world.json(&["show", session]);
            let number = shown["state"]["invoice"]["number"].as_str().unwrap();
            // A posting that was under way when its sender died may come to the book behind the probe: the operator sees it.
            let done = format!(r#"--done={{"id":"L-{number}","number":"{number}"}}"#);
            let is_there = posted.iter().any(|known| known == number);
            let how = if is_there { &done } else { "--not-performed" };
            let args = ["resolve", session, "--as", APPROVER, how, "--no-run"];
            let resolved = self.world.run(&args);
            assert_eq!(resolved.code, Some(0), "{resolved:?}");
        }
        doubts.len()
    }

    /// Drives on, settling doubts, until nothing but approvals waits.
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
    // three days later
    office.world.write("clock.yaml", "2026-01-08T09:00:01Z");
    doubts += office.drive_on();
    for n in of(Fate::Escalated) {
        office.decide(n, "approve", HEAD);
    }
    doubts += office.drive_on();
    // and two more
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
        "each sender hears once"
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
        "each is told once of each question"
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
