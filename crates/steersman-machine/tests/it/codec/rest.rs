//! Lines with forms that are rare in real sessions, or that no writer uses yet.

use super::lines::{ann, branches, digest, id, name, text};
use steersman_machine::stored::by::{By, Decider};
use steersman_machine::stored::commit::{
    About, Admission, Admitted, AgentFact, CallChange, CallChanged, CallFact, Change, Commit,
    Counter, DraftStands, Hold, Hooked, LedgerEntry, LogLine, Moment, Opening, Probing, Push,
    Release, Searching, Stepped, Text, Why,
};
use steersman_machine::stored::ids::{Body, Id, Line, Time};
use steersman_machine::stored::interaction::{
    Cause, Choice, Earlier, EarlierCall, End, How, Interaction, Origin, Reduce, Route, Write,
};
use steersman_machine::stored::parts::{Part, Reference};

/// The lines, with their names.
pub(super) fn rest() -> Vec<(&'static str, LogLine)> {
    vec![
        ("holds", holds()),
        ("texts", texts()),
        ("stacks", stacks()),
        ("adopted", adopted()),
        ("entries", entries()),
        ("search", search()),
        ("steps", steps()),
        ("hooks", hooks()),
        ("earlier", earlier()),
        ("uses", uses()),
    ]
}

fn line(n: u64, commit: Option<Commit>, ledger: Vec<LedgerEntry>, texts: &[&str]) -> LogLine {
    LogLine {
        n: Line(n),
        at: Time(1_790_000_000_000),
        prev: Line(n - 1),
        branch: Id::MAIN,
        commit,
        ledger,
        bodies: texts.iter().map(|one| text(one)).collect(),
    }
}

/// A hold of each kind that a person ends, and each way to end a hold.
fn holds() -> LogLine {
    let effect = id(60, 2);
    let whys = [
        Why::Approval,
        Why::Input,
        Why::Doubt,
        Why::Budget,
        Why::Repeat,
    ];
    let holds = whys.map(|why| {
        LedgerEntry::Hold(Hold {
            effect,
            why,
            digest: digest("send_money"),
            by: vec![name("user"), name("supervisor")],
            ask: Some(Body::new(Line(61), 0)),
            due: Some(Time(1_790_000_000_000)),
            about: Some(About::Equal(id(20, 1))),
        })
    });
    let hows = [
        Release::Go,
        Release::Edited,
        Release::Refused,
        Release::Outcome,
        Release::GivenUp,
        Release::Cancelled,
        Release::Expired,
    ];
    let released = hows.map(|how| LedgerEntry::Released {
        effect,
        why: Why::Approval,
        how,
        about: Some(About::Parameter(name("password"))),
        by: Decider::Timeout,
        body: Some(Body::new(Line(61), 1)),
    });
    LogLine {
        n: Line(61),
        at: Time(0),
        prev: Line(60),
        branch: Id::MAIN,
        commit: None,
        ledger: holds.into_iter().chain(released).collect(),
        bodies: vec![text("Send 500 to 1234324?"), text("wrong account")],
    }
}

/// Each kind of text: empty, in a file, erased, and one whose length needs two bytes.
fn texts() -> LogLine {
    LogLine {
        n: Line::MAX,
        at: Time(0),
        prev: Line(1),
        branch: Id::MAIN,
        commit: Some(Commit::default()),
        ledger: Vec::new(),
        bodies: vec![
            text(""),
            Text::Blob {
                hash: [7; 32],
                len: 1 << 40,
            },
            Text::Erased { hash: [8; 32] },
            text(&"long enough for two bytes of length ".repeat(9)),
            Text::Parts(
                [
                    Part::Text(0),
                    Part::Artifact(chart()),
                    Part::Text(1),
                    Part::Text(2),
                ]
                .into(),
            ),
            Text::Parts([].into()),
        ],
    }
}

/// A picture that a message or result refers to.
pub(super) fn chart() -> Reference {
    Reference {
        name: name("charts/sales.png"),
        media: name("image/png"),
        hash: [6; 32],
        len: 48_213,
    }
}

/// A conversation that was held elsewhere.
fn earlier() -> LogLine {
    let (agent, n) = (id(1, 0), 1);
    let body = |k| Body::new(Line(n), k);
    let looked = EarlierCall {
        label: name("call_1"),
        name: name("look_up"),
        args: body(1),
        result: body(2),
    };
    let said = [
        Earlier::User(body(0)),
        Earlier::Assistant {
            text: None,
            calls: vec![looked],
        },
        Earlier::Assistant {
            text: Some(body(3)),
            calls: Vec::new(),
        },
    ];
    let pushes = said.map(|said| Push {
        agent,
        prev: Line::NONE,
        what: Interaction::Earlier(said),
    });
    let commit = Commit {
        pushes: pushes.into(),
        ..Commit::default()
    };
    let texts = ["Where is 4711?", r#"{"n":4711}"#, "sent", "It was sent."];
    line(n, Some(commit), Vec::new(), &texts)
}

/// Origins, choices and ends of rare kinds.
fn stacks() -> LogLine {
    let (agent, n) = (id(7, 2), 110);
    let body = Body::new(Line(n), 0);
    let reflects = |tool| Origin::Reflect { of: id(8, 1), tool };
    let origins = [Origin::Net, reflects(None), reflects(Some(name("look")))];
    let said = origins.map(|from| Interaction::UserMessage { from, body });
    let task = |goal| Choice::Task {
        task: name("order"),
        agent: name("clerk"),
        goal,
    };
    let choices = vec![
        Choice::Enter {
            state: name("collect"),
            reset: true,
        },
        Choice::Speak {
            role: name("host"),
            member: name("clerk"),
        },
        Choice::Say {
            role: name("host"),
            member: name("clerk"),
            body,
        },
        task(None),
        task(Some(name("return"))),
        Choice::Restate(None),
        Choice::Restate(Some(body)),
        Choice::Answer(body),
    ];
    let routes = choices.into_iter().map(|chosen| {
        Interaction::Route(Route {
            effect: None,
            chosen,
            refused: None,
            writes: Vec::new(),
            read: None,
        })
    });
    let rounds = Interaction::Finished {
        end: End::Task,
        cause: Cause::Rounds,
        body: None,
        code: None,
        writes: Vec::new(),
    };
    let pushes = said.into_iter().chain(routes).chain([rounds]);
    let pushes = pushes.map(|what| Push {
        agent,
        prev: Line(9),
        what,
    });
    let changed = |what| CallChange {
        agent,
        call: id(9, 1),
        what,
    };
    let commit = Commit {
        parent: Line(n - 1),
        opening: Some(Opening {
            scope: None,
            dry: false,
            label: None,
            of: None,
        }),
        admitted: vec![Admission {
            kind: Admitted::Rebound,
            id: None,
            message: Some(name("m7")),
            by: None,
            body: Some(body),
        }],
        pushes: pushes.collect(),
        calls: vec![
            changed(CallChanged::Met(1, None)),
            changed(CallChanged::Awaits(0, body)),
        ],
        changes: vec![Change::Grew(agent, 4_000)],
        ..Commit::default()
    };
    line(n, Some(commit), Vec::new(), &["Nothing new."])
}

/// Facts of adopted agents and calls that [`super::facts`] and [`super::lines`] leave out.
fn adopted() -> LogLine {
    use AgentFact as F;
    let said = Body::new(Line(43), 0);
    let write = Write {
        scope: id(1, 0),
        name: name("plan"),
        value: None,
        reduce: Reduce::Last,
        expires: None,
    };
    let mut facts = vec![
        F::Acted(name("desk"), How::Failed, None),
        F::Calls {
            name: name("look"),
            ok: 1,
            failed: 0,
            args: None,
            result: Some(said),
        },
        F::Why(said),
        F::At(name("collect")),
        F::Place(name("collect"), 3, Some(name("host")), Line(44)),
        F::Place(name("close"), 0, None, Line(44)),
        F::Settled,
        F::Over(name("clerk")),
        F::Goal(name("order"), Some(said)),
        F::Goal(name("return"), None),
        F::TaskDone(name("greet")),
        F::Before(name("notes"), Some(said)),
        F::Before(name("weather"), None),
        F::Prepared,
        F::Unread(said),
        F::SaidUnread,
        F::Heard(12),
        F::Summed(name("talk"), 9),
        F::Bare,
        F::Used(name("look"), 4),
        F::Sums(name("compact"), 9, 6, Some(said), None),
        F::Sums(name("spill"), 9, 6, None, Some(11)),
        F::Weighs(40_000, 2_000, 300, Line(44)),
        F::Exchange(800),
        F::Spoke(id(42, 1)),
        F::SentBack(name("pay"), 2),
    ];
    let counters = [
        Counter::Restated,
        Counter::Extracted,
        Counter::Summed,
        Counter::Compacted,
    ];
    facts.extend(counters.map(|counter| F::Count(counter, 2)));
    let drafts = [
        (None, DraftStands::Open),
        (Some(said), DraftStands::Accepted),
        (Some(said), DraftStands::Revise),
        (Some(said), DraftStands::Criticised),
    ];
    facts.extend(drafts.map(|(text, stands)| F::Draft(text, Cause::Answer, stands)));
    let mut line = branches();
    let commit = line.commit.as_mut().expect("it has one");
    let adoption = commit.adoption.as_mut().expect("it adopts");
    adoption.agents[0].facts = facts;
    adoption.calls[0].facts = vec![
        CallFact::Met(2, Some(said)),
        CallFact::Write(write, None),
        CallFact::Gave(said),
    ];
    line
}

/// The newest exchanges in which an adopted agent called a tool.
fn uses() -> LogLine {
    let mut line = adopted();
    let adoption = line.commit.as_mut().and_then(|c| c.adoption.as_mut());
    let agent = &mut adoption.expect("it adopts").agents[0];
    agent.facts = vec![AgentFact::UsedIn(name("look"), vec![3, 4])];
    line
}

/// Ledger entries with the optional parts that the other lines leave out, and entries that golden logs never store.
fn entries() -> LogLine {
    let (n, effect) = (111, id(20, 1));
    let text = Body::new(Line(n), 0);
    let probe = |what| LedgerEntry::Probe {
        effect: id(n, 0),
        of: effect,
        what,
    };
    let released = |by| LedgerEntry::Released {
        effect,
        why: Why::Doubt,
        how: Release::GivenUp,
        about: None,
        by,
        body: None,
    };
    let ledger = vec![
        LedgerEntry::Accepted {
            message: name("e9"),
            by: None,
            parent: None,
        },
        LedgerEntry::Late {
            effect,
            attempt: 2,
            body: Some(text),
        },
        LedgerEntry::Done {
            effect,
            attempt: 2,
            kept: None,
        },
        probe(Probing::Said {
            attempt: 1,
            happened: None,
            said: text,
        }),
        probe(Probing::Failed {
            attempt: 2,
            why: text,
            again: None,
        }),
        LedgerEntry::Hold(Hold {
            effect,
            why: Why::Doubt,
            digest: digest("pay"),
            by: vec![name("any")],
            ask: None,
            due: None,
            about: None,
        }),
        released(Decider::Rule),
        released(Decider::Probe),
        LedgerEntry::Paused {
            paused: false,
            by: By::default(),
        },
    ];
    line(n, None, ledger, &["the outcome came too late"])
}

/// Each step of a search.
fn search() -> LogLine {
    let n = 112;
    let text = Body::new(Line(n), 0);
    let began = |agent, at| Searching::Began {
        agent,
        branch: Id::MAIN,
        at,
        plan: text,
    };
    let scored = |value, why| Searching::Scored {
        branch: id(90, 0),
        at: Line(95),
        value,
        why,
    };
    let steps = vec![
        began(None, Line(88)),
        began(Some(id(4, 0)), Line::NONE),
        Searching::Tried {
            branch: id(90, 0),
            number: 1,
        },
        Searching::Judged {
            branch: id(91, 0),
            of: id(90, 0),
            at: Line(95),
        },
        Searching::Stood {
            branch: id(90, 0),
            at: Line(95),
            over: true,
            calls: 3,
            tokens: 9_000,
            micros: 1_200,
        },
        scored(Some(name("0.75")), None),
        scored(None, Some(text)),
        Searching::Over {
            winner: Some((id(90, 0), Line(95))),
            why: name("enough"),
        },
        Searching::Over {
            winner: None,
            why: name("stopped"),
        },
        Searching::Without(text),
    ];
    let steps = steps.into_iter().map(|what| LedgerEntry::Search {
        search: id(89, 2),
        what,
    });
    line(n, None, steps.collect(), &["{\"breadth\":3}"])
}

/// Work inside a tool: steps, waits, requests of its server, and a step that is in doubt.
fn steps() -> LogLine {
    let (n, effect) = (113, id(20, 1));
    let text = |k| Body::new(Line(n), k);
    let step = |nth, name: &str, what| LedgerEntry::Step {
        effect,
        attempt: 2,
        nth,
        name: name.into(),
        what,
    };
    let hold = |why, by, ask, about| {
        LedgerEntry::Hold(Hold {
            effect,
            why,
            digest: digest("pay"),
            by,
            ask,
            due: Some(Time(1_790_000_360_000)),
            about: Some(about),
        })
    };
    let waits = |event| About::Wait {
        nth: 3,
        name: name("settled"),
        event,
    };
    let ended = |why, how, by, body| LedgerEntry::Released {
        effect,
        why,
        how,
        about: None,
        by,
        body,
    };
    let unknown = About::Step {
        nth: 2,
        name: name("charge"),
    };
    let ledger = vec![
        step(1, "reserve", Stepped::Began),
        step(1, "reserve", Stepped::Done(text(0))),
        step(2, "charge", Stepped::Began),
        step(2, "charge", Stepped::Failed(text(1))),
        hold(Why::Wait, Vec::new(), None, waits(None)),
        ended(Why::Wait, Release::Go, Decider::Timeout, None),
        hold(Why::Wait, Vec::new(), None, waits(Some(text(2)))),
        ended(
            Why::Wait,
            Release::Outcome,
            Decider::Event(name("e17")),
            Some(text(2)),
        ),
        hold(
            Why::Elicited,
            vec![name("user")],
            Some(text(3)),
            About::Fields(text(4)),
        ),
        ended(Why::Elicited, Release::Outcome, ann().into(), Some(text(5))),
        hold(Why::Doubt, vec![name("any")], Some(text(3)), unknown),
        hold(
            Why::Repeat,
            vec![name("user")],
            Some(text(3)),
            About::Recorded(id(12, 0)),
        ),
    ];
    let texts = [
        "{\"reservation\":\"r1\"}",
        "{\"code\":\"declined\",\"message\":\"no funds\"}",
        "{\"event\":\"settled\",\"fields\":{\"id\":\"r1\"}}",
        "Which account?",
        "{\"type\":\"object\",\"properties\":{\"account\":{\"type\":\"string\"}}}",
        "{\"account\":\"1234\"}",
    ];
    line(n, None, ledger, &texts)
}

/// Changes by hooks, one for each moment.
fn hooks() -> LogLine {
    let n = 114;
    let hooked = |at, effect| {
        Change::Hooked(Hooked {
            agent: id(1, 0),
            effect,
            at,
            hook: name("redact"),
            change: Body::new(Line(n), 0),
        })
    };
    let (model, call) = (Some(id(20, 0)), Some(id(20, 1)));
    let commit = Commit {
        parent: Line(n - 1),
        changes: vec![
            hooked(Moment::BeforeModel, model),
            hooked(Moment::AfterModel, model),
            hooked(Moment::BeforeCall, call),
            hooked(Moment::AfterCall, call),
            hooked(Moment::Finish, None),
        ],
        ..Commit::default()
    };
    line(
        n,
        Some(commit),
        Vec::new(),
        &["{\"instructions\":\"Be brief.\"}"],
    )
}
