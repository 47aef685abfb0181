//! Lines that together hold every stored form.

use steersman_machine::stored::by::By;
use steersman_machine::stored::commit::{
    Admission, Admitted, AdoptedAgent, AdoptedCall, AdoptedCell, Adoption, AgentFact, Binding,
    CallChange, CallChanged, CallFact, CellFact, Change, Commit, Counter, Kind, LedgerEntry,
    LogLine, Made, Opening, Period, Push, Text, Turned, Usage, Want, Watermark, Wished,
};
use steersman_machine::stored::engine::{Asked, Caller, Extracted, Judged};
use steersman_machine::stored::ids::{Body, Digest, Id, Line, Name, Time};
use steersman_machine::stored::interaction::{
    Artifact, Call, CallResult, Cause, Choice, Class, Covers, End, How, Interaction, Number,
    Origin, Reduce, Route, Summary, Target, Write,
};

pub(crate) const SALT: [u8; 16] = [3; 16];

pub(super) fn id(n: u64, k: u32) -> Id {
    Id::new(Line(n), k)
}

pub(super) fn name(text: &str) -> Name {
    text.into()
}

/// A person whose identity is known.
pub(super) fn ann() -> By {
    By {
        role: name("approver"),
        who: Some(name("ann@example.org")),
    }
}

pub(super) fn text(text: &str) -> Text {
    Text::Here(text.into())
}

pub(super) fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn line(n: u64, commit: Commit) -> LogLine {
    LogLine {
        n: Line(n),
        at: Time(1_790_000_000_000),
        prev: Line(n - 1),
        branch: Id::MAIN,
        commit: Some(commit),
        ledger: Vec::new(),
        bodies: Vec::new(),
    }
}

fn push(agent: Id, prev: u64, what: Interaction) -> Push {
    Push {
        agent,
        prev: Line(prev),
        what,
    }
}

const HASH: usize = 32;
const DIGEST: usize = 16;
/// Bytes of the names: the tool, the provider's id of the call, the model as bound and as served, and the stop reason.
const NAMES: usize = "lookup".len()
    + "call_abc123".len()
    + "openai/gpt-5-mini".len()
    + "gpt-5-mini-2026-08-01".len()
    + "stop".len();

/// The lines of one round of a tool loop around line `at`, each with the bytes of its names, digests and hash: an
/// answer with a call of a `read` tool, the same with an `unsafe` tool that begins, and the outcome of the tool.
#[expect(clippy::too_many_lines, reason = "a log written out by hand")]
pub(crate) fn tool_loop(at: u64) -> Vec<(&'static str, LogLine, usize)> {
    let root = id(1, 0);
    let answer = |class| {
        let call = Call {
            id: id(at, 0),
            name: name("lookup"),
            by: Caller::Model,
            seen: None,
            target: Target::Tool(class),
            label: Some(name("call_abc123")),
            args: Body::new(Line(at), 1),
            number: Number { call: 7, step: 0 },
        };
        let said = Interaction::AssistantMessage {
            effect: id(at - 1, 0),
            text: Some(Body::new(Line(at), 0)),
            opaque: None,
            partial: false,
        };
        let commit = Commit {
            parent: Line(at - 1),
            admitted: vec![Admission {
                kind: Admitted::Outcome,
                id: Some(id(at - 1, 0)),
                message: None,
                by: None,
                body: None,
            }],
            pushes: vec![
                push(root, at - 1, said),
                push(root, at, Interaction::Call(call)),
            ],
            wished: vec![Wished {
                id: id(at, 0),
                agent: root,
                what: Want::Call(id(at, 0)),
                args: None,
                due: None,
            }],
            usage: vec![Usage {
                effect: Some(id(at - 1, 0)),
                model: Some(name("openai/gpt-5-mini")),
                input: 12_345,
                served: Some(name("gpt-5-mini-2026-08-01")),
                cached: 12_000,
                cache_write: 0,
                output: 80,
                reasoning: 16,
                micros: Some(4_200),
                request: Some(digest("request")),
                render: 1,
                prefix: 48_000,
                broke: None,
                finish: Some(name("stop")),
                took: 1_850,
                first: Some(420),
            }],
            ..Commit::default()
        };
        let mut line = line(at, commit);
        line.bodies = vec![text("Let me look that up."), text("{\"order\":4711}")];
        line.ledger = vec![LedgerEntry::Spend {
            effect: id(at - 1, 0),
            tokens: 12_425,
            micros: 4_200,
        }];
        line
    };
    let mut acts = answer(Class::Unsafe);
    acts.ledger.push(LedgerEntry::Started {
        effect: id(at, 0),
        attempt: 1,
        epoch: 3,
        digest: digest("lookup 4711"),
        class: Class::Unsafe,
    });
    let result = Interaction::Result(CallResult {
        call: id(at - 1, 0),
        how: How::Done,
        body: Some(Body::new(Line(at), 0)),
        code: None,
        writes: Vec::new(),
        artifacts: Vec::new(),
        by: None,
    });
    let mut outcome = line(
        at,
        Commit {
            parent: Line(at - 1),
            admitted: vec![Admission {
                kind: Admitted::Outcome,
                id: Some(id(at - 1, 0)),
                message: None,
                by: None,
                body: None,
            }],
            pushes: vec![push(root, at - 1, result)],
            wished: vec![Wished {
                id: id(at, 0),
                agent: root,
                what: Want::Step,
                args: None,
                due: None,
            }],
            ..Commit::default()
        },
    );
    outcome.bodies = vec![text("{\"status\":\"sent\"}")];
    vec![
        (
            "a model's answer",
            answer(Class::Read),
            HASH + 2 * DIGEST + NAMES,
        ),
        ("an answer that acts", acts, HASH + 3 * DIGEST + NAMES),
        ("a tool's outcome", outcome, HASH + DIGEST),
    ]
}

/// Lines that hold every variant of every enum and every optional field, set and unset.
pub(crate) fn every() -> Vec<(&'static str, LogLine)> {
    let mut lines = vec![
        ("loop_1_start", start()),
        ("loop_2_answer", loop_answer()),
        ("loop_3_result", loop_result()),
        ("interactions", interactions()),
        ("calls_and_results", calls_and_results()),
        ("branches", branches()),
        ("ledger", ledger()),
        ("orders", super::orders()),
        ("outside", super::outside()),
        ("money", money()),
    ];
    lines.extend(super::later());
    lines.extend(super::rest::rest());
    let tool_loop = tool_loop(1_000).into_iter();
    lines.extend(
        tool_loop
            .zip(["tool_1", "tool_2", "tool_3"])
            .map(|((_, l, _), n)| (n, l)),
    );
    lines
}

fn write(k: u32, n: u64, reduce: Reduce) -> Write {
    Write {
        scope: id(1, 0),
        name: name("plan"),
        value: (k > 0).then(|| Body::new(Line(n), k)),
        reduce,
        expires: (k > 1).then_some(60_000),
    }
}

fn start() -> LogLine {
    let mut line = line(
        1,
        Commit {
            admitted: vec![Admission {
                kind: Admitted::Start,
                id: None,
                message: Some(name("m1")),
                by: None,
                body: Some(Body::new(Line(1), 1)),
            }],
            made: vec![Made {
                agent: id(1, 0),
                def: name("desk"),
                kind: Kind::Model,
                parent: None,
                named: None,
                mode: Some(name("plain")),
                state: vec![write(2, 1, Reduce::Last)],
            }],
            pushes: vec![push(
                id(1, 0),
                0,
                Interaction::UserMessage {
                    from: Origin::Outside(By::default()),
                    body: Body::new(Line(1), 0),
                },
            )],
            wished: vec![Wished {
                id: id(1, 1),
                agent: id(1, 0),
                what: Want::Step,
                args: None,
                due: None,
            }],
            binding: Some(Binding {
                digest: digest("definition"),
                source: [5; 32],
                network: name("desk"),
                entry: name("desk"),
                values: Body::new(Line(1), 3),
                machine: 1,
            }),
            changes: vec![
                Change::Label(name("vendor"), Some(Body::new(Line(1), 4))),
                Change::Label(name("old"), None),
            ],
            ..Commit::default()
        },
    );
    line.ledger = vec![
        LedgerEntry::Claimed {
            epoch: 1,
            mark: 0x1234_5678_9abc_def0,
            owner: name("web-1:4711"),
            build: name("0.1.0"),
            // That of the kept bytes: they stay as they are when the revision grows.
            revision: 1,
        },
        LedgerEntry::Accepted {
            message: name("m1"),
            by: Some(ann()),
            parent: Some(name(
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            )),
        },
        LedgerEntry::Escrow {
            tokens: 100_000,
            micros: 250_000,
        },
    ];
    line.bodies = vec![
        text("Where is my order?"),
        text("{\"from\":\"web\"}"),
        text("[\"ask\"]"),
        text("{}"),
        text("Acme"),
    ];
    line
}

fn loop_answer() -> LogLine {
    let (_, mut line, _) = tool_loop(2).remove(0);
    line.commit.as_mut().expect("made above").admitted[0].id = Some(id(1, 1));
    line.commit.as_mut().expect("made above").usage[0].effect = Some(id(1, 1));
    line
}

fn loop_result() -> LogLine {
    tool_loop(3).remove(2).1
}

fn interactions() -> LogLine {
    let agent = id(7, 2);
    let body = Body::new(Line(9), 0);
    let origins = [
        Origin::Outside(ann()),
        Origin::Call(id(8, 1)),
        Origin::Agent(id(2, 0)),
        Origin::Released(id(2, 1)),
        Origin::Route,
        Origin::Continuation,
        Origin::Correction,
        Origin::Limit,
        Origin::Conclude,
    ];
    let said = origins.map(|from| Interaction::UserMessage { from, body });
    let choices = [
        Choice::Agents(vec![name("a"), name("b")]),
        Choice::Finish,
        Choice::Stay,
    ];
    let routes = choices.map(|chosen| {
        Interaction::Route(Route {
            effect: Some(id(8, 3)),
            chosen,
            refused: Some(body),
            writes: vec![write(0, 9, Reduce::Last)],
            read: Some(body),
        })
    });
    let causes = [
        Cause::Answer,
        Cause::Tool,
        Cause::Released,
        Cause::Routed,
        Cause::Leaf,
        Cause::Limit,
        Cause::Failed,
        Cause::Cancelled,
        Cause::Deadlock,
        Cause::NoRule,
    ];
    let ends = [End::Draft, End::Turn, End::Task].into_iter().cycle();
    let finished = causes
        .into_iter()
        .zip(ends)
        .map(|(cause, end)| Interaction::Finished {
            end,
            cause,
            body: Some(body),
            code: Some(name("model_calls")),
            writes: vec![write(2, 9, Reduce::Merge)],
        });
    let partial = Interaction::AssistantMessage {
        effect: id(8, 0),
        text: None,
        opaque: Some(body),
        partial: true,
    };
    let summaries = [Covers::Exchanges(3, 40), Covers::Scope(Line(2), Line(8))];
    let summaries = summaries.map(|covers| {
        Interaction::Summary(Summary {
            effect: id(8, 4),
            policy: name("compact"),
            covers,
            body,
        })
    });
    let all = said.into_iter().chain([partial]).chain(summaries);
    let all = all.chain(routes).chain(finished);
    let mut line = line(
        9,
        Commit {
            parent: Line(8),
            pushes: all.map(|what| push(agent, 8, what)).collect(),
            edits: vec![
                write(1, 9, Reduce::Append),
                write(1, 9, Reduce::Sum),
                write(1, 9, Reduce::Max),
            ],
            changes: vec![
                Change::Mode(agent, name("plan"), Turned::Anew),
                Change::Watermark(Watermark {
                    agent,
                    policy: name("keep_exchanges"),
                    exchanges: 4_000,
                }),
            ],
            ..Commit::default()
        },
    );
    line.at = Time(-1);
    line.bodies = vec![text("Grüße, 世界"), text("1"), text("{\"a\":1}")];
    line
}

fn calls_and_results() -> LogLine {
    let agent = id(2, 0);
    let targets = [
        Target::Tool(Class::Pure),
        Target::Tool(Class::Idempotent),
        Target::Agent(id(12, 0)),
        Target::Person(name("boss")),
        Target::Wait,
        Target::Branches(vec![id(12, 1), id(12, 2)]),
        Target::Unknown,
    ];
    let calls = targets.into_iter().enumerate().map(|(k, target)| {
        Interaction::Call(Call {
            id: id(12, k as u32 + 3),
            name: name("do"),
            by: Caller::Chain(id(11, 0)),
            seen: Some(name("make")),
            target,
            label: None,
            args: Body::new(Line(12), 0),
            number: Number { call: 7, step: 2 },
        })
    });
    let asked = Asked {
        limit: name("tokens"),
        per: Period::Session,
        all: true,
    };
    let callers = [
        Caller::Model,
        Caller::Router,
        Caller::Person,
        Caller::Before(name("notes")),
        Caller::Extract(Extracted::Message),
        Caller::Extract(Extracted::Turn),
        Caller::Judge(Judged::Draft(id(11, 1))),
        Caller::Judge(Judged::Result(id(11, 2), name("look"))),
        Caller::Judge(Judged::Args(id(11, 3), name("pay"))),
        Caller::More(asked),
        Caller::Hook(name("before_model")),
        Caller::State(name("collect")),
        Caller::Schedule(name("daily")),
    ];
    let made = callers.into_iter().enumerate().map(|(k, by)| {
        Interaction::Call(Call {
            id: id(12, k as u32 + 20),
            name: name("do"),
            by,
            seen: None,
            target: Target::Wait,
            label: None,
            args: Body::new(Line(12), 0),
            number: Number { call: 8, step: 0 },
        })
    });
    let hows = [
        How::Done,
        How::Simulated,
        How::Failed,
        How::Refused,
        How::Cancelled,
        How::Unknown,
        How::NotInThisBranch,
        How::Finished,
        How::Released,
        How::Limit,
        How::Expired,
        How::DoneBefore,
    ];
    let results = hows.map(|how| {
        Interaction::Result(CallResult {
            call: id(11, 700_000),
            how,
            body: None,
            code: Some(name("http_404")),
            writes: vec![write(1, 12, Reduce::Last)],
            artifacts: vec![report()],
            by: Some(ann().into()),
        })
    });
    let mut line = line(
        12,
        Commit {
            pushes: calls
                .chain(made)
                .chain(results)
                .map(|what| push(agent, 0, what))
                .collect(),
            wished: vec![Wished {
                id: id(12, 40),
                agent,
                what: Want::Call(id(12, 3)),
                args: Some(Body::new(Line(12), 0)),
                due: Some(Time(1_790_000_360_000)),
            }],
            ..Commit::default()
        },
    );
    line.bodies = vec![text("{}"), text("true")];
    line
}

pub(super) fn branches() -> LogLine {
    let kinds = [
        Admitted::Opened,
        Admitted::Rewound,
        Admitted::Adopted,
        Admitted::Edited,
        Admitted::Clock,
        Admitted::Ended,
        Admitted::Join,
        Admitted::Interrupt,
        Admitted::Cancel,
        Admitted::Message,
    ];
    let admitted = kinds.map(|kind| Admission {
        kind,
        id: Some(id(30, 1)),
        message: None,
        by: Some(ann()),
        body: None,
    });
    let mut line = line(
        50,
        Commit {
            parent: Line(21),
            opening: Some(Opening {
                scope: Some(id(4, 0)),
                dry: true,
                label: Some(name("why")),
                of: Some((1, 3)),
            }),
            adoption: Some(adoption()),
            admitted: admitted.to_vec(),
            calls: vec![
                CallChange {
                    agent: id(4, 0),
                    call: id(29, 0),
                    what: CallChanged::Began(vec![id(30, 1), id(30, 2)]),
                },
                CallChange {
                    agent: id(4, 0),
                    call: id(29, 0),
                    what: CallChanged::Ended(Body::new(Line(50), 1)),
                },
                CallChange {
                    agent: id(4, 0),
                    call: id(29, 0),
                    what: CallChanged::Chose(id(30, 1), Line(31)),
                },
                CallChange {
                    agent: id(4, 0),
                    call: id(29, 1),
                    what: CallChanged::Met(2, Some(Body::new(Line(50), 1))),
                },
                CallChange {
                    agent: id(4, 0),
                    call: id(29, 2),
                    what: CallChanged::Edited {
                        by: ann(),
                        approver: name("boss"),
                    },
                },
            ],
            made: vec![Made {
                agent: id(50, 1),
                def: name("critic"),
                kind: Kind::Routed,
                parent: Some(id(4, 0)),
                named: Some(name("strict")),
                mode: None,
                state: Vec::new(),
            }],
            usage: vec![Usage {
                broke: Some(name("system")),
                ..Usage::default()
            }],
            ..Commit::default()
        },
    );
    line.prev = Line(21);
    line.branch = id(50, 0);
    line.bodies = vec![text("{\"steps\":3}"), text("[]"), text("[1]")];
    line
}

fn report() -> Artifact {
    Artifact {
        scope: id(1, 0),
        call: id(9, 4),
        name: name("report"),
        media: name("text/plain"),
        hash: [6; 32],
        len: 70_000,
    }
}

/// An adoption with every fact of agents, calls and cells.
fn adoption() -> Adoption {
    use CallFact as C;
    let said = Body::new(Line(43), 0);
    let call = AdoptedCall {
        owner: id(4, 0),
        call: Call {
            id: id(40, 3),
            name: name("do"),
            by: Caller::Model,
            seen: None,
            target: Target::Wait,
            label: None,
            args: said,
            number: Number { call: 9, step: 0 },
        },
        opened: Time(1_790_000_000_000),
        opened_at: 12,
        digest: digest("do"),
        facts: vec![
            C::Edited(said),
            C::Due(Time(1_790_000_360_000)),
            C::Begun,
            C::Approved,
            C::Chooser(id(41, 0)),
            C::Ends(said),
            C::Chosen(id(30, 2), Line(44)),
            C::Met(1, None),
            C::Awaits(0, said),
            C::Approver(name("boss")),
            C::Closed(How::Done, digest("done")),
            C::Write(write(2, 50, Reduce::Append), Some(Line(43))),
            C::Artifact(report()),
        ],
    };
    Adoption {
        branch: id(30, 1),
        at: Line(44),
        agents: vec![AdoptedAgent {
            id: id(4, 0),
            def: name("critic"),
            kind: Kind::Routed,
            path: [1, 3].into(),
            facts: super::facts::agent_facts(),
        }],
        calls: vec![call],
        cells: vec![
            AdoptedCell {
                scope: id(1, 0),
                name: name("plan"),
                facts: vec![
                    CellFact::Set(Body::new(Line(50), 0), Line(43)),
                    CellFact::Expires(Time(1_790_000_360_000)),
                ],
            },
            AdoptedCell {
                scope: id(1, 0),
                name: name("seen"),
                facts: Vec::new(),
            },
        ],
        artifacts: vec![report()],
        watermarks: vec![Watermark {
            agent: id(4, 0),
            policy: name("spill"),
            exchanges: 2,
        }],
    }
}

/// A cost of the session in an adoption.
fn money() -> LogLine {
    let mut line = branches();
    let adoption = line.commit.as_mut().and_then(|c| c.adoption.as_mut());
    let facts = &mut adoption.expect("it adopts").agents[0].facts;
    *facts = vec![AgentFact::CountBelow(
        Period::Session,
        Counter::Micros,
        1 << 40,
    )];
    line
}

fn ledger() -> LogLine {
    let effect = id(20, 1);
    LogLine {
        n: Line(100),
        at: Time(0),
        prev: Line(36),
        branch: id(20, 7),
        commit: None,
        ledger: vec![
            LedgerEntry::Settle {
                tokens: 4_000,
                micros: 0,
            },
            LedgerEntry::Done {
                effect,
                attempt: 1,
                kept: Some(Body::new(Line(100), 0)),
            },
            LedgerEntry::NotPerformed { effect, attempt: 2 },
            LedgerEntry::Unknown { effect, attempt: 3 },
            LedgerEntry::Late {
                effect,
                attempt: 3,
                body: None,
            },
            LedgerEntry::Again {
                effect,
                at: Time(1_790_000_000_000),
            },
            LedgerEntry::Opened {
                branch: id(100, 0),
                from: Id::MAIN,
                at: Line(36),
            },
            LedgerEntry::Ended(id(20, 7)),
            LedgerEntry::Superseded {
                branch: Id::MAIN,
                after: Line(36),
            },
            LedgerEntry::Current(id(100, 0)),
            LedgerEntry::Adopted {
                branch: id(20, 7),
                at: Line(35),
            },
            LedgerEntry::Listed(effect),
            LedgerEntry::WouldAsk(effect),
            LedgerEntry::Paused {
                paused: true,
                by: ann(),
            },
        ],
        bodies: vec![text("{\"how\":\"done\"}")],
    }
}
