//! The names of a definition: where each is declared and where it is used, in keys, values and expressions.

use super::outline::{Part, Spot, Step};
use super::typed::{self, Typed};
use crate::keys::test::Answer;
use crate::keys::{Refers, Section, Space, Ty};
use crate::load::{prompt_path, resolve};
use crate::source::{Files, Node, Sources, Span, Style, Value, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// The thing that a name means. Two names with equal meanings are the same thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Meaning {
    /// The sort, without distinctions within one namespace.
    pub space: Space,
    /// The tool, agent or event that it belongs to; empty for names of the whole definition.
    pub owner: Arc<str>,
    pub name: Arc<str>,
}

/// A place where a name is written.
#[derive(Clone, Debug)]
pub(crate) struct Occurrence {
    pub meaning: Meaning,
    /// The sort as the table of keys says, with distinctions.
    pub space: Space,
    pub file: Arc<str>,
    pub range: Range<usize>,
    pub declares: bool,
    /// The declared item, for its description.
    pub item: Option<Node>,
}

/// All names of the files of a definition.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub all: Vec<Occurrence>,
    /// The way of keys to each text, by file and offset of the text.
    pub ways: BTreeMap<(Arc<str>, usize), Vec<Step>>,
    /// Files that are no valid YAML, so that names in them are not known.
    pub broken: BTreeSet<Arc<str>>,
}

impl Names {
    /// Collects the names in all files of a definition.
    pub(crate) fn of(files: &Files) -> Self {
        let mut names = Self::default();
        let mut scripts = BTreeSet::new();
        for path in files.paths() {
            let Some(text) = files.text(path) else {
                continue;
            };
            let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
            if !matches!(ending, "yaml" | "yml") {
                names.prompt(path, text);
                continue;
            }
            let mut sources = Sources::default();
            let Some(node) = parse(&mut sources, path, text, &mut Vec::new()) else {
                names.broken.insert(path.into());
                continue;
            };
            let tests = path != files.main() && node.get("tests").is_none();
            if tests && scripts.contains(path) {
                continue;
            }
            let mut walk = Walk::of(&mut names, path, text, &mut scripts);
            walk.value(&node, &typed::root());
        }
        for path in scripts {
            names.script(&path, files);
        }
        names.settle();
        names
    }

    /// Collects the names in a file of scripted answers.
    fn script(&mut self, path: &str, files: &Files) {
        let Some(text) = files.text(path) else {
            return;
        };
        let mut sources = Sources::default();
        let Some(node) = parse(&mut sources, path, text, &mut Vec::new()) else {
            self.broken.insert(path.into());
            return;
        };
        let mut scripts = BTreeSet::new();
        let mut walk = Walk::of(self, path, text, &mut scripts);
        walk.answers(&node);
    }

    /// Collects the names in the templates of a prompt file.
    fn prompt(&mut self, path: &str, text: &Arc<str>) {
        if !matches!(path.rsplit_once('.'), Some((_, "md" | "txt" | "j2"))) {
            return;
        }
        let mut scripts = BTreeSet::new();
        let mut walk = Walk::of(self, path, text, &mut scripts);
        walk.template(0..text.len());
    }

    /// Gives names their meaning that depends on declarations elsewhere.
    fn settle(&mut self) {
        let all = std::mem::take(&mut self.all);
        let roles: BTreeSet<Arc<str>> = all
            .iter()
            .filter(|at| at.declares && at.space == Space::Agent)
            .filter(|at| at.item.as_ref().is_some_and(is_its_own_role))
            .map(|at| at.meaning.name.clone())
            .collect();
        let (declared, used): (Vec<_>, Vec<_>) = all.into_iter().partition(|at| at.declares);
        self.all = declared;
        for at in &mut self.all {
            at.meaning.space = namespace(at.space);
        }
        for mut at in used {
            let space = match at.space {
                Space::Role if roles.contains(&at.meaning.name) => Space::Agent,
                space => space,
            };
            at.meaning = self.meaning(space, &at.meaning.owner, at.meaning.name.clone());
            self.all.push(at);
        }
    }

    /// Returns the declarations.
    pub(crate) fn declared(&self) -> impl Iterator<Item = &Occurrence> {
        self.all.iter().filter(|at| at.declares)
    }

    /// Returns what is written at an offset of a file.
    pub(crate) fn at(&self, file: &str, offset: usize) -> Option<&Occurrence> {
        let here = |at: &&Occurrence| {
            *at.file == *file && at.range.start <= offset && offset <= at.range.end
        };
        self.all.iter().find(here)
    }

    /// Returns the names of one sort that are declared, with the items; those of an owner if the sort has owners.
    pub(crate) fn of_sort(&self, space: Space, owner: &str) -> Vec<&Occurrence> {
        let mut seen = BTreeSet::new();
        let fits = move |at: &&Occurrence| {
            let person = at
                .item
                .as_ref()
                .is_some_and(|item| item.get("person").is_some());
            let sort = match space {
                Space::Callable | Space::Offer | Space::Open => {
                    matches!(at.space, Space::Tool | Space::Agent)
                }
                Space::Person => at.space == Space::Agent && person,
                Space::StateValue => at.space == Space::State,
                Space::Start => at.space == Space::Place || at.space == Space::Agent,
                other => at.space == other,
            };
            sort && (at.meaning.owner.is_empty() || *at.meaning.owner == *owner)
        };
        let declared = self.declared().filter(fits);
        let mut all: Vec<&Occurrence> = declared.collect();
        all.sort_by_key(|at| at.meaning.name.clone());
        all.retain(|at| seen.insert(at.meaning.name.clone()));
        all
    }

    /// Returns the meanings that are renamed together: a task without `agent` has the name of its agent.
    pub(crate) fn together(&self, meaning: &Meaning) -> Vec<Meaning> {
        let mut all = vec![meaning.clone()];
        let tasks = self.declared().filter(|at| {
            let own = at
                .item
                .as_ref()
                .is_some_and(|item| item.get("agent").is_none());
            at.space == Space::Task && own && at.meaning.name == meaning.name
        });
        let tasks: Vec<Meaning> = tasks.map(|at| at.meaning.clone()).collect();
        let agent = Meaning {
            space: Space::Callable,
            owner: "".into(),
            name: meaning.name.clone(),
        };
        if tasks.contains(meaning) {
            all.push(agent);
        } else if *meaning != agent {
            return all;
        }
        all.extend(tasks);
        all
    }
}

/// Returns true if an agent is a person whose role is not named, so that it is the person's name.
fn is_its_own_role(agent: &Node) -> bool {
    agent
        .get("person")
        .is_some_and(|person| person.get("role").is_none())
}

/// Returns the namespace of a sort.
fn namespace(space: Space) -> Space {
    match space {
        Space::Tool | Space::Agent | Space::Person | Space::Offer | Space::Open => Space::Callable,
        Space::StateValue => Space::State,
        other => other,
    }
}

/// Returns true if names of a sort belong to a tool, an agent or an event.
fn has_owner(space: Space) -> bool {
    use Space::{Field, Mode, Parameter, Place, Start, Task};
    matches!(space, Parameter | Field | Mode | Place | Task | Start)
}

struct Walk<'a> {
    names: &'a mut Names,
    path: Arc<str>,
    text: Arc<str>,
    /// The enclosing tool, agent or event.
    owner: Arc<str>,
    way: Vec<Step>,
    /// Files of scripted answers that tests name.
    scripts: &'a mut BTreeSet<String>,
}

impl<'a> Walk<'a> {
    fn of(
        names: &'a mut Names,
        path: &str,
        text: &Arc<str>,
        scripts: &'a mut BTreeSet<String>,
    ) -> Self {
        Self {
            names,
            path: path.into(),
            text: text.clone(),
            owner: Arc::from(""),
            way: Vec::new(),
            scripts,
        }
    }
}

impl Walk<'_> {
    fn value(&mut self, node: &Node, typed: &Typed) {
        match &node.value {
            Value::Map(entries) => self.map(entries, typed),
            Value::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.way.push(Step::Item(at));
                    self.value(item, &typed.then(&Step::Item(at)));
                    self.way.pop();
                }
            }
            Value::Scalar(_) => self.scalar(node, typed),
        }
    }

    fn map(&mut self, entries: &[(crate::source::Key, Node)], typed: &Typed) {
        let is_section = typed.tables().next().is_some();
        let named = typed.refers.filter(|_| typed.is_map() && !is_section);
        for (key, node) in entries {
            let step = Step::Key(key.name.to_string());
            let then = typed.then(&step);
            self.way.push(step);
            let known = then.key.filter(|_| is_section);
            let script = known.is_some_and(|(table, key)| {
                key.name == "script" && matches!(table.name, "Test" | "Step")
            });
            if let (Some(refers), false) = (named, key.span == Span::NONE) {
                let (space, declares) = match refers {
                    Refers::Declares(space) => (space, true),
                    Refers::Names(space) => (space, false),
                };
                let item = declares.then(|| node.clone());
                self.note(space, &key.name, key.span.range(), declares, item);
            }
            let before = self.owner.clone();
            if let Some(Refers::Declares(Space::Tool | Space::Agent | Space::Event)) = named {
                self.owner = key.name.clone();
            }
            if script && node.scalar().is_none() {
                self.answers(node);
            } else {
                if script {
                    let path = node.as_text().and_then(|path| resolve(&self.path, path));
                    self.scripts.extend(path);
                }
                self.inside(node, &then, named.is_some());
            }
            self.owner = before;
            self.way.pop();
        }
    }

    /// Visits the value of an entry. The names of a map are its keys; its values have names of their own only if they are lists
    /// of names (`handoff`).
    fn inside(&mut self, node: &Node, typed: &Typed, named: bool) {
        let keeps = matches!(typed.types.as_slice(), [Ty::List(Ty::Name)]);
        let refers = typed.refers.filter(|_| !named || keeps);
        let typed = Typed {
            refers,
            ..typed.clone()
        };
        self.value(node, &typed);
    }

    /// Visits scripted answers by agent.
    fn answers(&mut self, node: &Node) {
        for (agent, answers) in node.entries() {
            self.note(Space::Agent, &agent.name, agent.span.range(), false, None);
            self.way.push(Step::Key(agent.name.to_string()));
            self.any_answer(answers);
            self.way.pop();
        }
    }

    fn any_answer(&mut self, answers: &Node) {
        for (at, answer) in answers.items().iter().enumerate() {
            self.way.push(Step::Item(at));
            self.answer(answer);
            self.way.pop();
        }
    }

    fn answer(&mut self, node: &Node) {
        for (key, value) in node.entries() {
            self.way.push(Step::Key(key.name.to_string()));
            if &*key.name == "any" {
                self.any_answer(value);
            } else if let Some(known) = Answer::table().key(&key.name) {
                self.value(value, &Typed::of(Answer::table(), known));
            }
            self.way.pop();
        }
    }

    fn scalar(&mut self, node: &Node, typed: &Typed) {
        let Some(text) = node.as_text().cloned() else {
            return;
        };
        let range = node.span.range();
        // an alias is another way to the same text, and comes later
        let place = (self.path.clone(), range.start);
        let way = self.way.clone();
        self.names.ways.entry(place).or_insert(way);
        if let Some(space) = typed.names() {
            return self.name_in(node, &text, space);
        }
        if typed.refers == Some(Refers::Declares(Space::Role)) {
            return self.note(Space::Role, &text, range, true, None);
        }
        let is_expr = |ty: &&'static Ty| matches!(ty, Ty::Expr);
        let holds = |ty: &&'static Ty| {
            matches!(ty, Ty::Template | Ty::Prompt | Ty::Data) && prompt_path(node).is_none()
        };
        // a section in its short form is a condition (`requires`, `approve`) or a text
        if typed.types.iter().any(is_expr) {
            self.expression(range);
        } else if typed.types.iter().any(holds) {
            self.template(range);
        }
    }

    /// Notes the name in a text that names something.
    fn name_in(&mut self, node: &Node, text: &Arc<str>, space: Space) {
        let quoted = usize::from(node.scalar().is_some_and(|s| s.style == Style::Quoted));
        let from = node.span.start as usize + quoted;
        let written = self.text.get(from..from + text.len());
        if written != Some(&**text) {
            return;
        }
        if space == Space::StateValue {
            if let Some(name) = text.strip_prefix("state.") {
                let start = from + "state.".len();
                self.note(Space::State, name, start..start + name.len(), false, None);
            }
            return;
        }
        let skip = match space {
            Space::Open => text.rfind(' ').map_or(0, |at| at + 1),
            _ => 0,
        };
        let name = text[skip..].split('#').next().unwrap_or_default();
        let start = from + skip;
        if let Some((server, _)) = name.split_once('.') {
            self.note(
                Space::Server,
                server,
                start..start + server.len(),
                false,
                None,
            );
        } else {
            self.note(space, name, start..start + name.len(), false, None);
        }
    }

    /// Notes the names in the parts of a template that are code.
    fn template(&mut self, range: Range<usize>) {
        let text = self.text.clone();
        for part in code(&text, range) {
            self.expression(part);
        }
    }

    /// Notes the names in an expression.
    fn expression(&mut self, range: Range<usize>) {
        let text = self.text.clone();
        for (space, at) in roots(&text, range) {
            self.note(space, &text[at.clone()], at, false, None);
        }
    }

    fn note(
        &mut self,
        space: Space,
        name: &str,
        range: Range<usize>,
        declares: bool,
        item: Option<Node>,
    ) {
        let quote = self.text.get(range.clone()).and_then(|t| t.chars().next());
        let range = match quote {
            Some('"' | '\'') if range.len() == name.len() + 2 => range.start + 1..range.end - 1,
            _ => range,
        };
        let owner = if has_owner(space) {
            self.owner.clone()
        } else {
            "".into()
        };
        let meaning = Meaning {
            space: namespace(space),
            owner,
            name: name.into(),
        };
        self.names.all.push(Occurrence {
            meaning,
            space,
            file: self.path.clone(),
            range,
            declares,
            item,
        });
    }
}

/// Returns the ranges of code in a template: what stands in `{{ }}` and `{% %}`, up to the end if it is not closed.
pub(crate) fn code(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut at = range.start;
    let part = |at: usize| text.get(at..range.end).unwrap_or_default();
    while let Some(open) = ["{{", "{%", "{#"]
        .iter()
        .filter_map(|sign| part(at).find(sign))
        .min()
    {
        let from = at + open + 2;
        let (close, is_code) = match text.as_bytes().get(from - 1) {
            Some(b'{') => ("}}", true),
            Some(b'%') => ("%}", true),
            _ => ("#}", false),
        };
        let end = part(from).find(close).map_or(range.end, |end| from + end);
        if is_code {
            parts.push(from..end);
        }
        at = (end + 2).min(range.end);
    }
    parts
}

/// Returns the names behind the roots of an expression: `pay` in `calls.pay.ok`. Texts in quotes are passed over.
fn roots(text: &str, range: Range<usize>) -> Vec<(Space, Range<usize>)> {
    let mut found = Vec::new();
    let code = text.get(range.clone()).unwrap_or_default();
    // the quotes of the scalar itself are not those of a text
    let outer = code.starts_with(['"', '\'']).then(|| &code[..1]);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut quote = None;
    let mut at = 0;
    while let Some(c) = code[at..].chars().next() {
        let width = c.len_utf8();
        if let Some(open) = quote {
            if c == open {
                quote = None;
            }
            at += width;
        } else if matches!(c, '"' | '\'') {
            let is_outer = outer.is_some_and(|outer| outer.starts_with(c));
            if !is_outer {
                quote = Some(c);
            }
            at += width;
        } else if is_word(c) {
            let len = code[at..]
                .find(|c: char| !is_word(c))
                .unwrap_or(code.len() - at);
            let word = &code[at..at + len];
            let field = code[..at].ends_with('.');
            let name = code[at + len..].strip_prefix('.').map_or("", |rest| {
                &rest[..rest.find(|c: char| !is_word(c)).unwrap_or(rest.len())]
            });
            let space = match word {
                "state" => Some(Space::State),
                "calls" | "before" => Some(Space::Callable),
                "config" => Some(Space::Config),
                "secrets" => Some(Space::Secret),
                "args" => Some(Space::Parameter),
                "event" => Some(Space::Field),
                "outcome" => Some(Space::Outcome),
                _ => None,
            };
            at += len;
            if let Some(space) = space.filter(|_| !field && !name.is_empty()) {
                let start = range.start + at + 1;
                found.push((space, start..start + name.len()));
                at += 1 + name.len();
            }
        } else {
            at += width;
        }
    }
    found
}

/// Returns the sort and range of the name at an offset, from the lines of a text.
pub(crate) fn in_spot(
    spot: &Spot,
    typed: &Typed,
    text: &str,
    offset: usize,
) -> Option<(Space, Range<usize>)> {
    let range = spot.range.clone();
    let is_section = typed.tables().next().is_some();
    if spot.part == Part::Key
        && let Some(Refers::Declares(space) | Refers::Names(space)) = typed.refers
        && typed.is_map()
        && !is_section
    {
        return Some((space, range));
    }
    if let Some(space) = typed.names() {
        let start = match space {
            Space::StateValue => range.start + "state.".len(),
            _ => range.start,
        };
        return (start <= range.end).then_some((space, start..range.end));
    }
    let found = roots(text, range);
    found
        .into_iter()
        .find(|(_, at)| at.start <= offset && offset <= at.end)
}

impl Names {
    /// Returns the meaning of a name of a sort.
    pub(crate) fn meaning(&self, space: Space, owner: &str, name: Arc<str>) -> Meaning {
        let owned = if has_owner(space) { owner } else { "" };
        let mut meaning = Meaning {
            space: namespace(space),
            owner: owned.into(),
            name,
        };
        if space == Space::Start {
            meaning.space = Space::Place;
            if !self.declared().any(|at| at.meaning == meaning) {
                meaning.space = Space::Callable;
                meaning.owner = "".into();
            }
        }
        meaning
    }

    /// Keeps what was known of files that cannot be read now.
    pub(crate) fn keep(&mut self, before: Self) {
        let broken = &self.broken;
        let all = before.all.into_iter();
        self.all.extend(all.filter(|at| broken.contains(&at.file)));
        let ways = before.ways.into_iter();
        self.ways
            .extend(ways.filter(|((file, _), _)| broken.contains(file)));
    }
}
