//! Explanation of a request: the origin of each segment, the parts that are left out, and the reasons.

use super::history::{head, is_error};
use super::policies::{self, Age};
use super::shown::is_of_engine;
use super::units::{Chain, Unit, Units, What};
use super::{Content, History, RenderCache, Request, render};
use crate::network::{AgentDef, Beyond, ContextRender, Does, ModelAgent, Part};
use crate::questions::{Purpose, judgement};
use crate::snapshot::{OpenCall, Snapshot};
use crate::stored::engine::{COMPACT, Judged, KEEP_EXCHANGES};
use crate::stored::ids::{Body, Id, Line, Name};
use crate::stored::interaction::Earlier;
use crate::values::expression::{EvalError, Template};
use crate::view::{Cx, Read, Trace, View};
use std::sync::Arc;

/// A request with the origins of its segments.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The explained request.
    pub request: Request,
    /// Origin of each segment, in order.
    pub origins: Vec<Origin>,
    /// Parts of the agent's stack that are not in the request.
    pub absent: Vec<Absent>,
}

/// Origin of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The template that made the segment, by its keys (`agents.desk.system`) or its file. `None` means a text of the engine, or
    /// an unchanged text of the conversation.
    pub template: Option<String>,
    /// Variables that the template read.
    pub reads: Vec<Variable>,
    /// Lines of the log that the segment shows.
    pub lines: Vec<Line>,
    /// Policy that changed the segment: its name, its boundary, and the replacement (`stub`, `summary`, `elide`).
    pub aged: Option<(Name, u32, &'static str)>,
}

/// A variable that a template read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name of the variable, with at most one level below the root: `state.plan`, `calls.pay`, `now`.
    pub path: String,
    /// First row of the template that contains the name, from 1. 0 if no row does.
    pub row: usize,
    /// Line of the log that gave the variable its value. `None` means a default, the clock, or a value of the binding.
    pub written: Option<Line>,
}

/// A part of the stack that is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Name of the part: a tool for its call, or `exchanges N to M`.
    pub what: String,
    /// Policy that left the part out.
    pub policy: Name,
    /// Boundary of the policy.
    pub mark: u32,
    /// First and last line of the part.
    pub lines: (Line, Line),
}

/// Returns the request of [`super::request`] and the origin of each of its segments.
///
/// It fails as that function does.
pub fn explain(
    cx: &Cx<'_>,
    history: &dyn History,
    snapshot: &Snapshot,
    agent: Id,
) -> Result<Explained, EvalError> {
    let mut cache = RenderCache::default();
    if super::purpose(cx, snapshot, agent) != Purpose::Answer {
        let request = super::request(cx, history, snapshot, agent, &mut cache)?;
        let origins = vec![Origin::default(); request.segments.len()];
        let absent = Vec::new();
        return Ok(Explained {
            request,
            origins,
            absent,
        });
    }
    cache.belongs_to(snapshot, agent);
    let request = render(cx, history, snapshot, agent, &mut cache)?;
    let def = cx.network.agent(&snapshot.agent(agent).def);
    let model = cx.network.in_force(snapshot.agent(agent));
    let model = model.expect("only a model-driven agent makes calls for answers");
    let all = All {
        cx,
        snapshot,
        agent,
        def,
        model,
        cache: &cache,
    };
    let mut of_history = all.history(&request).into_iter();
    // The question of an open judgement is the last segment.
    let question = judgement::open(snapshot, agent).map(|open| all.question(open));
    let others = request.segments.len() - usize::from(question.is_some());
    let origins = request.segments.iter().take(others);
    let origins = origins.map(|segment| match segment.part {
        Part::System => all.system(),
        Part::History => of_history.next().unwrap_or_default(),
        Part::Now => all.now(),
        Part::Tools => Origin {
            template: Some(all.key("tools", |model| &model.tools)),
            ..Origin::default()
        },
    });
    let mut origins: Vec<Origin> = origins.chain(question).collect();
    let absent = all.absent(history);
    let request = super::hooked::edited(cx, history, snapshot, agent, request);
    let request = super::files::bounded(cx, snapshot, agent, request);
    origins.resize(request.segments.len(), Origin::default());
    Ok(Explained {
        request,
        origins,
        absent,
    })
}

/// Input of an explanation.
struct All<'a> {
    cx: &'a Cx<'a>,
    snapshot: &'a Snapshot,
    agent: Id,
    def: &'a AgentDef,
    model: &'a ModelAgent,
    cache: &'a RenderCache,
}

impl All<'_> {
    /// Returns the path of a setting in the definition, as `agents.AGENT.KEY` or `agents.AGENT.modes.MODE.KEY`. The second form
    /// means that the setting of the agent's mode differs from that of the agent.
    fn key<T: PartialEq>(&self, key: &str, part: impl Fn(&ModelAgent) -> &T) -> String {
        let agent = &self.def.name;
        let mode = self.def.mode(self.snapshot.agent(self.agent).mode.as_ref());
        let own = match (&self.def.does, mode) {
            (Does::Model(all), Some(mode)) if part(all) != part(&mode.model) => Some(&mode.name),
            _ => None,
        };
        match own {
            Some(mode) => format!("agents.{agent}.modes.{mode}.{key}"),
            None => format!("agents.{agent}.{key}"),
        }
    }

    fn system(&self) -> Origin {
        let kept = self.cache.system.as_ref();
        let reads = kept.map_or(&[][..], |kept| &kept.reads);
        let key = self.key("system", |model| &model.system);
        match &self.model.system {
            Some(template) => self.made(template, key, reads),
            None => Origin::default(),
        }
    }

    fn now(&self) -> Origin {
        let key = self.key("context.now", |model| &model.context.now);
        let Some(template) = &self.model.context.now else {
            return Origin::default();
        };
        let trace = Trace::default();
        let view = View::new(self.cx, self.snapshot, Some(self.agent)).traced(&trace);
        // The request contains its text, so the template does not fail here.
        let _ = template.render(&view);
        self.made(template, key, &trace.take())
    }

    /// Returns the origin of the question about the arguments of a call.
    fn question(&self, open: &OpenCall) -> Origin {
        let Some(Judged::Args(call, tool)) = open.call.judged() else {
            return Origin::default();
        };
        let (trace, args) = (
            Trace::default(),
            judgement::judged_args(self.cx, self.snapshot, open.owner, *call),
        );
        let view = View::new(self.cx, self.snapshot, Some(self.agent));
        let view = view
            .with("args", judgement::json_or_text(&args))
            .traced(&trace);
        // The engine's own question replaces a template that fails.
        let prompt = judgement::prompt(self.cx, tool);
        let prompt = prompt.filter(|prompt| prompt.render(&view).is_ok());
        let key = format!("tools.{tool}.reflect.prompt");
        let made = prompt.map(|prompt| self.made(prompt, key, &trace.take()));
        Origin {
            lines: vec![call.line()],
            ..made.unwrap_or_default()
        }
    }

    /// Returns the origins of the segments of the history, in order.
    fn history(&self, request: &Request) -> Vec<Origin> {
        let segments = request
            .segments
            .iter()
            .filter(|s| s.part == Part::History)
            .count();
        let units: Vec<&Arc<Unit>> = self
            .cache
            .units
            .list
            .iter()
            .filter(|u| u.kept.is_some())
            .collect();
        let mut of_units = Vec::new();
        for unit in units {
            let kept = unit.kept.as_ref().expect("filtered a moment ago");
            for (n, segment) in kept.0.iter().enumerate() {
                of_units.push(match unit.what {
                    What::Message { body, .. } if n > 0 => file_of(body),
                    _ => self.origin(unit, &segment.content, &kept.1),
                });
            }
        }
        let pinned = self.cache.units.pinned.iter();
        let pinned = pinned.flat_map(|(body, (shown, reads))| {
            let message = Origin {
                lines: vec![body.line()],
                ..self.formed("user", |render| &render.user, reads)
            };
            let files = shown.iter().skip(1).map(move |_| file_of(*body));
            std::iter::once(message).chain(files)
        });
        let covered = policies::sum(self.snapshot.agent(self.agent), COMPACT).covered;
        let summary = self.cache.summary.iter();
        let summary = summary.filter(|(_, kept)| kept.segment.is_some());
        let summary = summary.map(|(body, kept)| Origin {
            lines: vec![body.line()],
            aged: Some((COMPACT.into(), covered, "summary")),
            ..self.formed("summary", |render| &render.summary, &kept.reads)
        });
        let mut all: Vec<Origin> = summary.chain(pinned).chain(of_units).collect();
        // Segments of the caller's context come first.
        while all.len() < segments {
            all.insert(0, Origin::default());
        }
        all
    }

    fn mark(&self, policy: &str) -> u32 {
        policies::mark(self.snapshot, self.agent, &policy.into())
    }

    fn origin(&self, unit: &Unit, content: &Content, reads: &[Read]) -> Origin {
        let calls = match &unit.what {
            What::Message { .. } | What::Summary(_) | What::Earlier(_) => {
                return Origin {
                    lines: lines(unit).0.into_iter().collect(),
                    ..self.of_message(unit, content, reads)
                };
            }
            What::Answer { calls, .. } | What::Engine(calls) => calls,
        };
        let named = |label: &str| {
            calls.iter().zip(0..).find(|(chain, _)| {
                let ours = chain.first.own_label();
                chain.first.label.as_deref() == Some(label) || ours == label
            })
        };
        let age = |n: usize| unit.ages.get(n).copied().unwrap_or(Age::Fresh);
        match content {
            Content::Result { label, .. } => match named(label) {
                Some((chain, n)) => self.result(chain, age(n), reads),
                None => Origin::default(),
            },
            Content::Assistant { .. } => {
                let elided = calls.iter().enumerate().find_map(|(n, chain)| {
                    let (aging, policy) = self.aging(chain, age(n))?;
                    (!aging.elide.is_empty()).then(|| (policy.clone(), self.mark(&policy), "elide"))
                });
                Origin {
                    lines: lines(unit).0.into_iter().collect(),
                    aged: elided,
                    ..self.formed("assistant", |render| &render.assistant, reads)
                }
            }
            _ => Origin {
                lines: [lines(unit).0, lines(unit).1]
                    .into_iter()
                    .flatten()
                    .collect(),
                ..Origin::default()
            },
        }
    }

    fn aging(&self, chain: &Chain, age: Age) -> Option<(&crate::network::Aging, Name)> {
        let tool = self.cx.network.tools.get(&chain.first.name)?;
        let aging = tool.render.age.as_ref().filter(|_| age != Age::Fresh)?;
        Some((aging, policies::horizon_of(&chain.first.name, aging)))
    }

    fn result(&self, chain: &Chain, age: Age, reads: &[Read]) -> Origin {
        let line = chain.result.as_ref().and_then(|r| r.body).map(Body::line);
        let (tool, key) = (
            &chain.first.name,
            format!("tools.{}.render", chain.first.name),
        );
        let render = self.cx.network.tools.get(tool).map(|tool| &tool.render);
        let origin = match (self.aging(chain, age), render) {
            (Some((aging, policy)), _) if aging.beyond != Beyond::Elide => {
                let word = match age {
                    Age::Told(_) => "summary",
                    Age::Fresh | Age::Stale => "stub",
                };
                let stub = aging.stub.as_ref().filter(|_| word == "stub");
                let made = stub.map(|stub| self.made(stub, format!("{key}.stub"), reads));
                Origin {
                    aged: Some((policy.clone(), self.mark(&policy), word)),
                    ..made.unwrap_or_default()
                }
            }
            // A failure is shown as it came.
            _ if chain.result.as_ref().is_some_and(is_error) => Origin::default(),
            (_, Some(render)) => match &render.result {
                Some(template) => self.made(template, format!("{key}.result"), reads),
                None => self.formed("result", |render| &render.result, reads),
            },
            _ => self.formed("result", |render| &render.result, reads),
        };
        Origin {
            lines: line.into_iter().collect(),
            ..origin
        }
    }

    /// Returns the origin of a message, a summary, or a part of an answer from before the session.
    fn of_message(&self, unit: &Unit, content: &Content, reads: &[Read]) -> Origin {
        match (&unit.what, content) {
            (What::Message { from, .. }, _) if is_of_engine(from) => {
                self.formed("engine", |render| &render.engine, reads)
            }
            (What::Summary(_), _) => self.formed("summary", |render| &render.summary, reads),
            (_, Content::Assistant { .. }) => {
                self.formed("assistant", |render| &render.assistant, reads)
            }
            (_, Content::Result { .. }) => self.formed("result", |render| &render.result, reads),
            _ => self.formed("user", |render| &render.user, reads),
        }
    }

    /// Returns the origin of a segment that `context.render` made, if it has a template for this kind.
    fn formed(
        &self,
        kind: &str,
        of: impl Fn(&ContextRender) -> &Option<Template>,
        reads: &[Read],
    ) -> Origin {
        let key = format!("context.render.{kind}");
        let key = self.key(&key, |model| of(&model.context.render));
        let template = of(&self.model.context.render).as_ref();
        template.map_or_else(Origin::default, |template| self.made(template, key, reads))
    }

    /// Returns the origin of a segment that a template made.
    fn made(&self, template: &Template, key: String, reads: &[Read]) -> Origin {
        let view = View::new(self.cx, self.snapshot, Some(self.agent));
        let reads = reads.iter().map(|read| {
            let path = match &read.entry {
                Some(entry) => format!("{}.{entry}", read.root),
                None => read.root.to_string(),
            };
            let mut rows = template.source.lines();
            let row = rows.position(|row| row.contains(&path));
            Variable {
                path,
                row: row.map_or(0, |at| at + 1),
                written: view.written(&read.root, read.entry.as_deref()),
            }
        });
        let named = template.file.as_ref();
        Origin {
            reads: reads.collect(),
            template: Some(named.map_or(key, ToString::to_string)),
            ..Origin::default()
        }
    }

    /// Returns the parts of the stack that are not shown: whole exchanges, and calls of tools with `beyond: drop`.
    fn absent(&self, history: &dyn History) -> Vec<Absent> {
        let mut units = Units::default();
        let whole = super::units::Head {
            before: 0,
            ..head(self.snapshot, self.agent)
        };
        units.follow(history, &whole);
        let covered = policies::sum(self.snapshot.agent(self.agent), COMPACT).covered;
        let kept = self.mark(KEEP_EXCHANGES);
        let mut absent = Vec::new();
        for (policy, from, to) in [(COMPACT, 0, covered), (KEEP_EXCHANGES, covered, kept)] {
            let gone = units
                .list
                .iter()
                .filter(|u| u.closes > from && u.closes <= to);
            let (mut first, mut last) = (None, None);
            for unit in gone {
                let (begins, ends) = lines(unit);
                first = first.or(begins);
                last = ends.or(last);
            }
            if let Some((first, last)) = first.zip(last) {
                absent.push(Absent {
                    what: match from + 1 {
                        only if only == to => format!("exchange {to}"),
                        from => format!("exchanges {from} to {to}"),
                    },
                    policy: policy.into(),
                    mark: to,
                    lines: (first, last),
                });
            }
        }
        for unit in &self.cache.units.list {
            let (What::Answer { calls, .. } | What::Engine(calls)) = &unit.what else {
                continue;
            };
            for (chain, age) in unit.aged(calls) {
                if let Some((aging, policy)) = self.aging(chain, age)
                    && aging.beyond == Beyond::Drop
                {
                    let line = chain.first.id.line();
                    let result = chain.result.as_ref().and_then(|r| r.body);
                    absent.push(Absent {
                        what: chain.first.name.to_string(),
                        mark: self.mark(&policy),
                        policy,
                        lines: (line, result.map_or(line, Body::line)),
                    });
                }
            }
        }
        absent
    }
}

/// Returns the origin of a file that came with a message.
fn file_of(message: Body) -> Origin {
    Origin {
        lines: vec![message.line()],
        ..Origin::default()
    }
}

/// Returns the first and the last line of a unit.
fn lines(unit: &Unit) -> (Option<Line>, Option<Line>) {
    let (text, calls) = match &unit.what {
        What::Message { body, .. } | What::Summary(body) | What::Earlier(Earlier::User(body)) => {
            (Some(*body), &[][..])
        }
        What::Earlier(Earlier::Assistant { text, calls }) => (
            text.or_else(|| calls.first().map(|call| call.args)),
            &[][..],
        ),
        What::Answer {
            text,
            opaque,
            calls,
        } => (text.or(*opaque), &calls[..]),
        What::Engine(calls) => (None, &calls[..]),
    };
    let said = text.map(Body::line);
    let begins = said.or(calls.first().map(|chain| chain.first.id.line()));
    let results = calls.iter().filter_map(|c| c.result.as_ref()?.body);
    let ends = results.map(Body::line).max().or(begins);
    (begins, ends)
}
