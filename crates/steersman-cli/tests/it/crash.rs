//! `kill -9` at random moments, then resume: the session ends as an undisturbed one, and no effect is repeated against
//! its class.
//!
//! Each example below is killed in a random step. `STEERSMAN_KILLS=200` makes a long campaign. `STEERSMAN_SEED=random`
//! draws other moments each time, `STEERSMAN_SEED=N` those of a run that failed; the seed is printed. A moment is a
//! share of the time that the undisturbed run took, so the same seed kills at about the same point, but not exactly
//! there.

use crate::world::{Service, World};
use serde_json::Value as Json;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A small generator of random numbers. The same seed gives the same numbers on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }
}

impl Random {
    /// Takes the seed from `STEERSMAN_SEED`, and prints it.
    pub(crate) fn seeded() -> Self {
        Self(drawn())
    }
}

/// A number that the environment may set: the default is small, a campaign sets a large one.
pub(crate) fn count(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |n| n.parse().unwrap())
}

fn drawn() -> u64 {
    let seed = match std::env::var("STEERSMAN_SEED").as_deref() {
        Err(_) => 1,
        Ok("random") => std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_nanos() as u64,
        Ok(seed) => seed.parse().unwrap(),
    };
    println!("STEERSMAN_SEED={seed}");
    seed
}

/// An example, and what the campaign must know of it.
struct Example {
    name: &'static str,
    /// Name of the service that it calls.
    service: Option<&'static str>,
    /// Commands, each with its exit code if no process is killed.
    steps: &'static [(&'static [&'static str], i32)],
    /// Role of the person who approves.
    role: &'static str,
    /// The steps are a conversation, which the user continues after a kill.
    talk: bool,
    /// Counts the entries of the service of which there must be one in the end, after any kill.
    once: fn(&Service) -> usize,
    /// Files that must be as after an undisturbed run.
    files: &'static [&'static str],
}

const SUPPORT: Example = Example {
    name: "support",
    service: Some("support"),
    steps: &[
        (
            &[
                "run",
                "support",
                "--script-all",
                "support/script.yaml",
                "--input",
                "My kettle (order 4711) arrived broken. I want my money back.",
            ],
            5,
        ),
        (&["approve", "last", "--as", "supervisor"], 0),
    ],
    role: "supervisor",
    talk: false,
    once: Service::refunds,
    files: &[],
};

const REACT: Example = Example {
    name: "react",
    service: None,
    steps: &[(
        &[
            "run",
            "react",
            "--script-all",
            "react/script.yaml",
            "--input",
            "Why was the shop down last night?",
        ],
        6,
    )],
    role: "user",
    talk: false,
    once: |_| 1,
    files: &[],
};

const INVOICE: Example = Example {
    name: "invoice",
    service: Some("invoice"),
    steps: &[
        (
            &[
                "send",
                "invoice",
                "--event",
                "mail_received",
                r#"{"message_id":"m1","from":"ap@acme.example"}"#,
                "--file",
                "pdf=invoice/mail/invoice-4711.pdf",
                "--script-all",
                "invoice/script.yaml",
            ],
            0,
        ),
        (&["run", "--resume", "last"], 5),
        (&["approve", "last", "--as", "finance-approver"], 0),
    ],
    role: "finance-approver",
    talk: false,
    once: |service| {
        let booked = service.booked();
        // An approval and a doubt are two questions; each is sent once.
        for kind in ["mail", "chat"] {
            let said = booked.iter().filter(|entry| entry["kind"] == kind);
            let mut said: Vec<String> = said.map(|entry| entry["text"].to_string()).collect();
            let all = said.len();
            said.sort_unstable();
            said.dedup();
            assert_eq!(
                said.len(),
                all,
                "a notification has a key, and is sent once: {booked:?}"
            );
        }
        service.postings().len()
    },
    files: &[],
};

/// A conversation over several processes, each of which may be killed. A transfer has an idempotency key, so it is sent
/// again when it is in doubt.
const BANK: Example = Example {
    name: "bank",
    service: Some("bank"),
    steps: &[
        (
            &[
                "run",
                "bank",
                "--script-all",
                "bank/script.yaml",
                "--input",
                "Hello",
            ],
            0,
        ),
        (&["send", "last", "Transfer money", "--id", "m1"], 0),
        (&["send", "last", "seldo", "--id", "m2"], 5),
        (&["answer", "last", "monkey"], 0),
        (&["send", "last", "Checking", "--id", "m3"], 0),
        (&["send", "last", "To account ID 1234324", "--id", "m4"], 0),
        (&["send", "last", "500", "--id", "m5"], 5),
        (&["approve", "last"], 0),
    ],
    role: "user",
    talk: true,
    once: Service::transfers,
    files: &[],
};

/// Many short tools with a model call after each. No tool changes anything outside.
const REFLECT: Example = Example {
    name: "react-reflect",
    service: None,
    steps: &[(
        &[
            "run",
            "react-reflect",
            "--entry",
            "careful",
            "--script-all",
            "react-reflect/careful.yaml",
            "--input",
            "What is the reversed founding year of the publisher of QST less 8?",
        ],
        0,
    )],
    role: "user",
    talk: false,
    once: |_| 1,
    files: &[],
};

/// A router that asks a judge, and a person who is asked in the middle.
const DEBATE: Example = Example {
    name: "debate",
    service: None,
    steps: &[
        (
            &[
                "run",
                "debate",
                "--script-all",
                "debate/script.yaml",
                "--input",
                "Debate libraries that lend tools.",
            ],
            5,
        ),
        (&["answer", "last", "And who pays for what breaks?"], 0),
    ],
    role: "user",
    talk: true,
    once: |_| 1,
    files: &[],
};

/// Tools edit files under an idempotency key. After a kill the files end up as after an undisturbed run.
const CODER: Example = Example {
    name: "coder",
    service: None,
    steps: &[(
        &[
            "run",
            "coder",
            "--script-all",
            "coder/script.yaml",
            "--input",
            "The tests fail. Mend it.",
        ],
        0,
    )],
    role: "user",
    talk: false,
    once: |_| 1,
    files: &[
        "coder/project/src/leap.sh",
        "coder/project/src/days.sh",
        "coder/project/tests/run.sh",
    ],
};

/// The parts of a session that are compared: status, answer, state and outcome, and path, phase and stack of each
/// agent.
fn essence(world: &World) -> Json {
    let (_, shown) = world.json(&["show", "last"]);
    let agents: Vec<Json> = shown["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| serde_json::json!([a["path"], a["phase"], a["stack"]]))
        .collect();
    serde_json::json!({
        "status": shown["status"],
        "answer": shown["answer"],
        "state": shown["state"],
        "outcome": shown["outcome"],
        "agents": agents,
    })
}

/// Returns true if the process was killed before the session and its first message were on disk.
fn nothing_was_promised(world: &World) -> bool {
    if world.json_lines(&["sessions"]).is_empty() {
        return true;
    }
    let (_, shown) = world.json(&["show", "last"]);
    shown["line"] == 0 && shown["inbox"] == 0
}

pub(crate) fn spawn(world: &World, args: &[&str]) -> Child {
    world
        .command(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills a process after this time. False if it ended earlier.
pub(crate) fn kill_after(mut child: Child, after: Duration) -> bool {
    let began = Instant::now();
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if began.elapsed() >= after {
            child.kill().unwrap();
            child.wait().unwrap();
            return true;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Types what an operator types until the session rests: resumes, approves, and resolves a doubt as the service has
/// booked it.
fn drive_on(world: &World, example: &Example, service: Option<&Service>) {
    for _ in 0..20 {
        let ran = world.run(&["run", "--resume", "last", "--json"]);
        let told: Json = serde_json::from_str(ran.out.lines().last().unwrap_or("null")).unwrap();
        match ran.code {
            // An answer, or a limit that forced one.
            Some(0 | 6) => return,
            Some(5) => {
                let done = world.run(&["approve", "last", "--as", example.role]);
                assert!(matches!(done.code, Some(0 | 5 | 7)), "{done:?}");
            }
            Some(7) => {
                let paid = service.is_some_and(|s| (example.once)(s) > 0);
                assert!(
                    !paid,
                    "what the service has booked is found by the probe: {told}"
                );
                let done = world.run(&["resolve", "last", "--as", example.role, "--not-performed"]);
                assert!(matches!(done.code, Some(0)), "{done:?}");
            }
            _ => panic!("{ran:?}"),
        }
    }
    panic!("it does not come to rest");
}

/// Tokens that a session says it has spent.
fn spent(world: &World) -> u64 {
    let (_, shown) = world.json(&["show", "last"]);
    shown["tokens"].as_u64().unwrap()
}

impl Example {
    fn world(&self) -> (World, Option<Service>) {
        let mut world = World::example(self.name);
        let service = self
            .service
            .map(|name| Service::start(&mut world, name, None));
        (world, service)
    }

    fn play(&self, world: &World, steps: usize) {
        for (args, code) in &self.steps[..steps] {
            let ran = world.run(args);
            assert_eq!(ran.code, Some(*code), "{args:?}: {ran:?}");
        }
    }

    /// Types what a user types after a kill: resumes, sends the message again that may not have arrived (under the same
    /// id, so that it is taken once), and continues the conversation.
    fn talk_on(&self, world: &World, step: usize) {
        let resumed = world.run(&["run", "--resume", "last"]);
        assert!(matches!(resumed.code, Some(0 | 5)), "{resumed:?}");
        let (args, code) = self.steps[step];
        let asked = || !world.json_lines(&["pending"]).is_empty();
        if args.contains(&"--id") || (step > 0 && asked()) {
            let ran = world.run(args);
            let was_heard = ran.err.contains("It was accepted before");
            assert!(was_heard || ran.code == Some(code), "{args:?}: {ran:?}");
        }
        for (args, code) in &self.steps[step + 1..] {
            let ran = world.run(args);
            assert_eq!(ran.code, Some(*code), "{args:?}: {ran:?}");
        }
    }

    fn dies_at_random_and_ends_as_undisturbed(&self) {
        let mut random = Random::seeded();
        let (calm, service) = self.world();
        let mut spans = Vec::new();
        for (args, code) in self.steps {
            let began = Instant::now();
            let ran = calm.run(args);
            assert_eq!(ran.code, Some(*code), "{args:?}: {ran:?}");
            spans.push(began.elapsed());
        }
        let once = |service: &Option<Service>| service.as_ref().map_or(1, self.once);
        assert_eq!(once(&service), 1);
        let wanted = essence(&calm);
        let left = |world: &World| -> Vec<String> {
            let read = |file| std::fs::read_to_string(world.folder.join(file)).unwrap();
            self.files.iter().map(read).collect()
        };
        // A killed run makes at least the model calls of an undisturbed one, so it has spent at least as much.
        let least = spent(&calm);
        assert!(least > 0);

        let kills = count("STEERSMAN_KILLS", 8);
        let (mut killed, mut n) = (0, 0);
        while killed < kills && n < 10 * kills {
            n += 1;
            let (world, service) = self.world();
            let step = random.below(self.steps.len() as u64) as usize;
            self.play(&world, step);
            let (args, _) = self.steps[step];
            let after = Duration::from_micros(random.below(spans[step].as_micros() as u64));
            let in_time = kill_after(spawn(&world, args), after);
            // The load of the computer changes how long a step takes.
            spans[step] = if in_time {
                spans[step] + spans[step] / 32
            } else {
                after.max(Duration::from_millis(1))
            };
            let what = format!("kill {n}, after {after:?} of {args:?}");
            if nothing_was_promised(&world) {
                assert!(service.is_none() || once(&service) == 0, "{what}");
                continue;
            }
            killed += u64::from(in_time);
            if self.talk {
                self.talk_on(&world, step);
            } else {
                drive_on(&world, self, service.as_ref());
            }
            assert_eq!(essence(&world), wanted, "{what}");
            assert_eq!(once(&service), 1, "{what}");
            assert_eq!(left(&world), left(&calm), "{what}");
            let told = spent(&world);
            assert!(told >= least, "spend is under-reported: {told} < {least}");
        }
        assert_eq!(
            killed, kills,
            "of {n} sessions, so many were killed while they ran"
        );
    }
}

#[test]
fn support_ends_as_undisturbed_and_pays_once() {
    SUPPORT.dies_at_random_and_ends_as_undisturbed();
}

#[test]
fn bank_ends_as_undisturbed_and_sends_once() {
    BANK.dies_at_random_and_ends_as_undisturbed();
}

#[test]
fn react_ends_as_undisturbed() {
    REACT.dies_at_random_and_ends_as_undisturbed();
}

#[test]
fn react_reflect_ends_as_undisturbed() {
    REFLECT.dies_at_random_and_ends_as_undisturbed();
}

#[test]
fn debate_ends_as_undisturbed() {
    DEBATE.dies_at_random_and_ends_as_undisturbed();
}

#[test]
fn coder_ends_as_undisturbed_and_edits_once() {
    CODER.dies_at_random_and_ends_as_undisturbed();
}

#[test]
fn invoice_ends_as_undisturbed_and_posts_once() {
    INVOICE.dies_at_random_and_ends_as_undisturbed();
}

/// Three agents search at once with an MCP server that dies with the program, and a person redirects the lead. After a
/// kill the session ends as an undisturbed one, and with the same report.
#[test]
fn research_ends_as_undisturbed() {
    const SAID: &str = "Should our town change its street lamps to LED?";
    const RUN: &[&str] = &[
        "run",
        "research",
        "--script-all",
        "research/script.yaml",
        "--input",
        SAID,
    ];
    const REDIRECT: &[&str] = &["send", "last", "--interrupt", "No. Say what it costs."];
    let mut random = Random::seeded();
    let kills = count("STEERSMAN_KILLS", 8);
    let calm = World::example("research");
    let began = Instant::now();
    assert_eq!(calm.run(RUN).code, Some(5));
    let to_question = began.elapsed();
    let began = Instant::now();
    assert_eq!(calm.run(REDIRECT).code, Some(0));
    let to_answer = began.elapsed();
    let wanted = essence(&calm);
    let report = calm.run(&["artifacts", "last", "report.md"]).out;
    assert!(report.contains("harbour"), "{report}");
    let least = spent(&calm);
    assert!(least > 0);
    let (mut killed, mut n) = (0, 0);
    while killed < kills && n < 10 * kills {
        n += 1;
        let world = World::example("research");
        let first_half = random.below(2) == 0;
        let (args, span) = if first_half {
            (RUN, to_question)
        } else {
            assert_eq!(world.run(RUN).code, Some(5));
            (REDIRECT, to_answer)
        };
        let after = Duration::from_micros(random.below(span.as_micros() as u64));
        let in_time = kill_after(spawn(&world, args), after);
        if nothing_was_promised(&world) {
            continue;
        }
        killed += u64::from(in_time);
        // The redirect is typed again only if the question is still open: a redirect that was taken has closed it.
        let resumed = world.run(&["run", "--resume", "last"]);
        if resumed.code == Some(5) {
            let redirected = world.run(REDIRECT);
            assert_eq!(redirected.code, Some(0), "{redirected:?}");
        } else {
            assert_eq!(resumed.code, Some(0), "{resumed:?}");
        }
        let what = format!("kill {n}, after {after:?} of {args:?}");
        assert_eq!(essence(&world), wanted, "{what}");
        let written = world.run(&["artifacts", "last", "report.md"]);
        assert_eq!(written.out, report, "{what}");
        let told = spent(&world);
        assert!(told >= least, "spend is under-reported: {told} < {least}");
    }
    assert_eq!(
        killed, kills,
        "of {n} sessions, so many were killed while they ran"
    );
}
