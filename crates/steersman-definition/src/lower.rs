//! Builds the network from a merged tree. Items that do not fit are reported and skipped. The caller never gets the network
//! of a definition with errors.

mod agent;
mod builtin;
mod context;
mod file;
mod grades;
mod knowledge;
mod limits;
mod mcp;
mod memory;
mod modes;
mod reflect;
mod route;
mod search;
mod tests;
mod tool;
mod values;

pub(super) use values::constant_misfit;

use super::diagnostic::{Diagnostic, Place};
use super::grade::Grade;
use super::keys;
use super::keys::Section;
use super::keys::file::File;
use super::keys::kinds::{self, each};
use super::load::{Merged, prompt_path, resolve};
use super::meant::{self, Meant, ROOTS};
use super::site::{Args, Code, Scope, Site, Wants};
use super::source::{Files, Kind, Node, Scalar, Sources, Span, Style, Value};
use super::test::Test;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::{Expr, Template};

/// Result of lowering.
pub(crate) struct Lowered {
    /// The network; digest and source are set later.
    pub network: Network,
    /// The places that the checks need for their diagnostics.
    pub facts: Facts,
}

/// Data that lowering collects in addition to the network.
#[derive(Default)]
pub(crate) struct Facts {
    /// Tests of the definition, by name.
    pub tests: BTreeMap<String, Test>,
    /// Grades of the definition, by name.
    pub grades: BTreeMap<String, Grade>,
    /// All expressions and templates.
    pub sites: Vec<Site>,
    /// Places of expressions and templates that cannot be read, with the names in scope there.
    pub unread: Vec<(Span, Scope)>,
    /// Declarations of tools, agents and people, by name.
    pub declared: BTreeMap<Name, Declared>,
    /// Uses of tools and agents: the agent, the name it uses, the place.
    pub offers: Vec<(Name, Name, Span)>,
    /// Places where state entries are declared, by agent and name.
    pub states: BTreeMap<(Name, Name), Span>,
    /// Places where parameters are declared, by tool or agent and name.
    pub parameters: BTreeMap<(Name, Name), Span>,
    /// Places where config values are declared.
    pub config: BTreeMap<Name, Span>,
    /// Writes of state: the tool or agent that writes, the entry, the place.
    pub writes: Vec<(Name, Name, Span)>,
    /// Arguments given to tools and agents: the callee, the parameter, the value.
    pub arguments: Vec<(Name, Name, Node)>,
    /// Texts of the files that the definition names, by path.
    pub files: BTreeMap<String, Arc<str>>,
    /// Paths of test scripts, each with the files that name it.
    pub scripts: BTreeMap<String, BTreeSet<String>>,
    /// Places of `by: user`, written or implied.
    pub by_user: Vec<Span>,
    /// Tools that choose among branches, with the place that names each.
    pub choosers: Vec<(Name, Span)>,
    /// Reviewers, with the place that names each.
    pub reviewers: Vec<(Name, Span)>,
    /// Tools and agents that judge branches, with the place that names each.
    pub judges: Vec<(Name, Span)>,
    /// Agents that answer by a search, with the place of the search.
    pub searches: Vec<(Name, Span)>,
    /// Tools and agents with `approve`, with the place of the key.
    pub approves: Vec<(Name, Span)>,
    /// Events and schedules that may begin a session, with the place of each.
    pub starts: Vec<(Name, Span)>,
    /// Members that a routing model may choose: the routed agent, the member, the place.
    pub chosen: Vec<(Name, Name, Span)>,
    /// Tools that run ahead of turns: the agent, the tool, the place.
    pub ahead: Vec<(Name, Name, Span)>,
    /// State entries filled by extraction: the agent, the entry, the place.
    pub filled: Vec<(Name, Name, Span)>,
    /// Built-in tools that agents are offered.
    builtins: BTreeSet<BuiltIn>,
    /// Agents that carry out a task of a route. They get the tools `done` and `need_help`.
    desk: BTreeSet<Name>,
    /// Agents that may hand off to others. They get the tool `handoff`.
    peers: BTreeSet<Name>,
    /// Tools of MCP servers that the definition names: server and tool.
    remote: BTreeSet<(Name, Name)>,
    /// Names of all state entries.
    entries: BTreeSet<Name>,
    /// Total size in bytes of the defaults of all state entries.
    defaults: usize,
}

/// A declared name. Tools, agents and people share one namespace.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    /// The sort of item that has this name.
    pub sort: Sort,
    /// Place of the name.
    pub span: Span,
    /// Place of the whole item, from its name to its end.
    pub item: Span,
}

/// The sorts of named items.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Tool,
    Agent,
    Person,
}

impl Sort {
    fn words(self) -> &'static str {
        match self {
            Self::Tool => "a tool",
            Self::Agent => "an agent",
            Self::Person => "a person",
        }
    }
}

pub(crate) struct Lower<'a> {
    files: &'a Files,
    sources: &'a mut Sources,
    merged: &'a Merged,
    /// The merged definition.
    file: File<'a>,
    found: &'a mut Vec<Diagnostic>,
    out: Facts,
}

/// Lowers a merged definition. `worth` is an expression from outside the definition that scores branches.
pub(crate) fn lower(
    files: &Files,
    sources: &mut Sources,
    merged: &Merged,
    found: &mut Vec<Diagnostic>,
    worth: Option<&str>,
) -> Lowered {
    let mut lower = Lower {
        files,
        sources,
        merged,
        file: merged.file(),
        found,
        out: Facts::default(),
    };
    lower.declare();
    lower.floors();
    let network = lower.network();
    if let Some(score) = worth {
        lower.worth(network.entry.first(), score);
    }
    Lowered {
        network,
        facts: lower.out,
    }
}

/// Words reserved by the engine, in addition to the names of its tools ([`BuiltIn::reserves`]).
pub(super) const RESERVED: [&str; 4] = ["finish", "stay", "user", "all"];
impl Lower<'_> {
    fn place(&self, span: Span) -> Option<Place> {
        self.sources.place(span)
    }
    fn say(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// Returns true if a key within the span is wrong.
    fn is_broken(&self, span: Span) -> bool {
        self.merged.broken.within(span)
    }

    /// Collects the names of tools, agents and people, before any name is looked up.
    fn declare(&mut self) {
        let file = self.file;
        let tools = each(file.tools()).map(|(key, tool)| (key, tool.0.span, Sort::Tool));
        let agents = each(file.agents()).map(|(key, agent)| {
            let person = agent.person().map(|_| Sort::Person);
            (key, agent.0.span, person.unwrap_or(Sort::Agent))
        });
        for (key, span, sort) in tools.chain(agents) {
            let at = self.place(key.span);
            if RESERVED.contains(&&*key.name) || BuiltIn::reserves(&key.name) {
                self.say(Diagnostic::reserved_name(at, &key.name));
                continue;
            }
            if let Some(first) = self.out.declared.get(&key.name) {
                let first = self.place(first.span);
                self.say(Diagnostic::one_namespace(at, &key.name, first));
                continue;
            }
            let start = if span.file == key.span.file {
                key.span.start
            } else {
                span.start
            };
            let declared = Declared {
                sort,
                span: key.span,
                item: Span { start, ..span },
            };
            self.out.declared.insert(key.name.clone(), declared);
        }
        let entries = file.all_state().map(|(key, _)| key.name.clone());
        self.out.entries = entries.collect();
    }

    /// Returns the name in a node if it names an item of the wanted sort; otherwise reports it.
    fn named(&mut self, node: &Node, wanted: Sort) -> Option<Name> {
        let name = node.as_text()?.clone();
        if name.contains('.') && wanted == Sort::Tool {
            return self.remote(node).filter(|(_, all)| !all).map(|_| name);
        }
        let (_, word) = wanted
            .words()
            .split_once(' ')
            .expect("an article and a noun");
        self.declared(node, word, wanted.words(), |sort| sort == wanted)
    }

    /// Returns the name in a node if it names an agent or a person, which a route may lead to; otherwise reports it.
    fn member(&mut self, node: &Node) -> Option<Name> {
        let wanted = format!(
            "an agent (`agents: {{ NAME: {{ run: {} }} }}`)",
            node.as_text()?
        );
        self.declared(node, "agent", &wanted, |sort| sort != Sort::Tool)
    }

    /// Returns the name in a node if it names an item of a sort that fits; otherwise reports it. `word` is the noun for an unknown
    /// name, `wanted` the words for a name of another sort.
    fn declared(
        &mut self,
        node: &Node,
        word: &str,
        wanted: &str,
        fits: impl Fn(Sort) -> bool,
    ) -> Option<Name> {
        let name = node.as_text()?;
        match self.out.declared.get(name) {
            Some(declared) if fits(declared.sort) => return Some(name.clone()),
            Some(declared) => {
                let (is, declared) = (declared.sort.words(), self.place(declared.span));
                let at = self.place(node.span);
                self.say(Diagnostic::wrong_sort(at, name, is, wanted, declared));
            }
            None => self.unknown(node, word, fits),
        }
        None
    }

    /// Returns the name of a person, or `user`.
    fn person(&mut self, node: &Node) -> Option<Name> {
        match node.as_text() {
            Some(name) if &**name == "user" => Some(name.clone()),
            _ => self.named(node, Sort::Person),
        }
    }

    fn unknown(&mut self, node: &Node, words: &str, fits: impl Fn(Sort) -> bool) {
        let Some(name) = node.as_text() else {
            return;
        };
        let unread = |section, sort| self.merged.unread(section) && fits(sort);
        if unread("tools", Sort::Tool)
            || unread("agents", Sort::Agent)
            || unread("agents", Sort::Person)
        {
            return;
        }
        let known = self
            .out
            .declared
            .iter()
            .filter(|(_, declared)| fits(declared.sort))
            .map(|(name, _)| &**name);
        let near = self.sources.near(name, known).map(str::to_owned);
        let at = self.place(node.span);
        self.say(Diagnostic::unknown_name(at, words, name, near.as_deref()));
    }

    /// Parses an expression and records it as a site.
    fn expr(&mut self, node: &Node, wants: Wants, scope: &Scope) -> Option<Expr> {
        let scalar = node.scalar().filter(|scalar| scalar.kind != Kind::Null)?;
        match Expr::parse(&scalar.text) {
            Ok(expr) => {
                self.out.sites.push(Site {
                    code: Code::Expr(expr.clone()),
                    node: node.clone(),
                    wants,
                    scope: scope.clone(),
                });
                Some(expr)
            }
            // a text that was cut at a `#` was reported already
            Err(_) if self.is_broken(node.span) => None,
            Err(error) => {
                self.out.unread.push((node.span, scope.clone()));
                let diagnostic = if let Some(meant) = meant::expression(&scalar.text) {
                    self.foreign_operator(node, &scalar.text, "expression", meant)
                } else {
                    let at = self.place(self.sources.locate(node, error.range));
                    Diagnostic::expression_syntax(at, &error.message)
                };
                self.say(diagnostic);
                None
            }
        }
    }

    /// Returns a diagnostic for an operator of another language. Its changes are left out if the file has the text in another form.
    fn foreign_operator(&self, node: &Node, text: &str, what: &str, meant: Meant) -> Diagnostic {
        let locator = self.sources.locator(node);
        let place = |range: Range<usize>| self.place(locator.at(range));
        let changes = meant.changes.into_iter().map(|(range, with)| {
            let at = place(range.clone())?;
            (at.excerpt() == &text[range]).then_some((at, with))
        });
        let changes: Option<Vec<_>> = changes.collect();
        let operator = &text[meant.at.clone()];
        let changes = changes.unwrap_or_default();
        Diagnostic::foreign_operator(
            place(meant.at.clone()),
            what,
            operator,
            &meant.advice,
            changes,
        )
    }

    /// Parses a condition; an absent one is `true`.
    fn condition(&mut self, of: Option<kinds::Expr<'_>>, scope: &Scope) -> Option<Expr> {
        match of {
            Some(when) => self.expr(&when, Wants::Condition, scope),
            None => Some(always()),
        }
    }

    /// Parses a condition that may be absent.
    fn when(&mut self, of: Option<kinds::Expr<'_>>, scope: &Scope) -> Option<Expr> {
        of.and_then(|when| self.expr(&when, Wants::Condition, scope))
    }

    /// Parses a template and records it as a site unless it is plain text.
    fn template(&mut self, node: &Node, wants: Wants, scope: &Scope) -> Option<Template> {
        let scalar = node.scalar().filter(|scalar| scalar.kind != Kind::Null)?;
        match Template::parse(&scalar.text) {
            Ok(template) => {
                self.single_braces(node, &scalar.text, scope);
                if template.text().is_none() {
                    self.out.sites.push(Site {
                        code: Code::Template(template.clone()),
                        node: node.clone(),
                        wants,
                        scope: scope.clone(),
                    });
                } else if is_path(&scalar.text) {
                    let at = self.place(node.span);
                    self.say(Diagnostic::path_as_text(at, &scalar.text));
                }
                Some(template)
            }
            Err(_) if self.is_broken(node.span) => None,
            Err(error) => {
                self.out.unread.push((node.span, scope.clone()));
                let diagnostic = if let Some((open, end)) = unclosed(&scalar.text) {
                    let at = self.place(self.sources.locate(node, open.clone()));
                    Diagnostic::unclosed(at, &scalar.text[open], end)
                } else if let Some(meant) = meant::template(&scalar.text) {
                    self.foreign_operator(node, &scalar.text, "template", meant)
                } else {
                    let at = self.place(self.sources.locate(node, error.range));
                    Diagnostic::template_syntax(at, &error.message)
                };
                self.say(diagnostic);
                None
            }
        }
    }

    /// Warns of names in single braces, as other frameworks write them: they are plain text here.
    fn single_braces(&mut self, node: &Node, text: &str, scope: &Scope) {
        for range in in_single_braces(text) {
            let path = text[range.start + 1..range.end - 1].trim();
            let meant = match path.split_once('.') {
                Some((root, _)) if ROOTS.contains(&root) => path.to_owned(),
                None if self.out.entries.contains(path) => format!("state.{path}"),
                None if self.is_parameter(scope, path) => format!("args.{path}"),
                _ => continue,
            };
            let at = self.place(self.sources.locate(node, range));
            self.say(Diagnostic::single_braces(at, &meant));
        }
    }

    /// Returns true if `args` has a field of this name.
    fn is_parameter(&self, scope: &Scope, name: &str) -> bool {
        match &scope.args {
            Args::Tool(tool) => match self.file.tool(tool).and_then(keys::tool::Tool::parameters) {
                Some(kinds::Or::One(types)) => types.get(name).is_some(),
                _ => false,
            },
            Args::Agent(agent) | Args::Router(agent) => {
                let parameters = self
                    .file
                    .agent(agent)
                    .and_then(keys::agent::Agent::parameters);
                parameters.is_some_and(|types| types.get(name).is_some())
            }
            Args::None => false,
        }
    }

    /// Parses a template of a text that may be absent.
    fn text_of(&mut self, of: Option<kinds::Template<'_>>, scope: &Scope) -> Option<Template> {
        of.and_then(|text| self.template(&text, Wants::Text, scope))
    }

    /// Reports keys that have no meaning without certain other keys (the table of a section names them), if all of these are
    /// absent. A misspelling of one of them counts as present, because it is reported itself.
    fn meaningful_keys<'n, S: Section<'n>>(&mut self, of: S) {
        let entries = of.node().entries();
        for (key, _) in entries {
            let with = S::table().key(&key.name).and_then(|known| known.with);
            if let Some((others, place)) = with {
                self.means_with(of, &key.name, others, place);
            }
        }
    }

    /// Reports a key that has a meaning only together with one of `others`.
    fn means_with<'n>(&mut self, of: impl Section<'n>, key: &str, others: &[&str], place: &str) {
        if !others.iter().any(|other| is_meant(of.node(), other)) {
            self.meaningless(of, key, place);
        }
    }

    /// Reports a key that has no meaning in this place, if it is written.
    fn meaningless<'n, S: Section<'n>>(&mut self, of: S, key: &str, place: &str) {
        debug_assert!(S::table().key(key).is_some(), "`{key}` is a key of it");
        let mut written = of.node().entries().iter();
        if let Some((key, _)) = written.find(|(name, _)| &*name.name == key) {
            let at = self.place(key.span);
            self.say(Diagnostic::type_key(at, &key.name, place));
        }
    }

    /// Returns the path of a named file, relative to the main folder, and its text.
    fn text_of_file(&mut self, node: &Node) -> Option<(String, Arc<str>)> {
        let name = node.as_text()?;
        let from = self.sources.path(node.span).map_or("", |path| &**path);
        let at = self.place(node.span);
        let Some(path) = resolve(from, name) else {
            self.say(Diagnostic::outside_folder(at, name));
            return None;
        };
        let Some(text) = self.files.text(&path).cloned() else {
            let near = self
                .sources
                .near(&path, self.files.paths())
                .map(str::to_owned);
            self.say(Diagnostic::no_file(at, name, near.as_deref()));
            return None;
        };
        if text.len() > super::source::MAX_BYTES {
            let what = format!("`{path}` has {} KiB", text.len() / 1024);
            let most = format!("at most {} KiB are read", super::source::MAX_BYTES / 1024);
            self.say(Diagnostic::too_big(at, what, most));
            return None;
        }
        self.out.files.insert(path.clone(), text.clone());
        Some((path, text))
    }

    /// Parses a prompt: a template, or the content of the file that the node names.
    fn prompt(&mut self, of: Option<kinds::Prompt<'_>>, scope: &Scope) -> Option<Template> {
        let node = of?.0;
        if prompt_path(node).is_none() {
            return self.template(node, Wants::Prefix, scope);
        }
        let (path, text) = self.text_of_file(node)?;
        let file = self.sources.add(&path, &text);
        let span = Span {
            file,
            start: 0,
            end: text.len() as u32,
        };
        let style = Style::Plain;
        let kind = Kind::Text;
        let value = Value::Scalar(Scalar { text, style, kind });
        let mut template = self.template(&Node { span, value }, Wants::Prefix, scope)?;
        template.file = Some(path.into());
        Some(template)
    }
}

/// Returns true if a plain text looks like an expression: `args.order`.
fn is_path(text: &str) -> bool {
    let mut parts = text.split('.');
    let root = parts.next().is_some_and(|root| ROOTS.contains(&root));
    root && text.contains('.') && parts.all(is_word)
}

/// Returns true if a text is a name in an expression.
fn is_word(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// Returns the ranges of names in single braces, with the braces: `{order}`, `{state.order}`.
fn in_single_braces(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let found = text.match_indices('{').filter_map(|(start, _)| {
        let end = start + text[start..].find('}')? + 1;
        let path = text[start + 1..end - 1].trim();
        // `{{ x }}` is code, and `${x}` is of another language
        let before = start.checked_sub(1).map(|at| bytes[at]);
        let double = matches!(before, Some(b'{' | b'$')) || bytes.get(end) == Some(&b'}');
        (!double && path.split('.').all(is_word)).then_some(start..end)
    });
    found.collect()
}

/// Returns the expression `true`.
fn always() -> Expr {
    Expr::parse("true").expect("a constant is an expression")
}

/// Returns true if the key is present, or a near miss of it, which was reported already as an unknown key.
fn is_meant(node: &Node, key: &str) -> bool {
    let mut written = node.entries().iter();
    node.get(key).is_some()
        || written
            .any(|(name, _)| steersman_machine::values::near::near(&name.name, [key]).is_some())
}

/// Returns the innermost statement of a template that is not closed, and the statement that closes it.
fn unclosed(text: &str) -> Option<(Range<usize>, &'static str)> {
    let mut open = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find("{%").map(|k| at + k) {
        let end = start + text[start..].find("%}")? + 2;
        let inner = text[start + 2..end - 2].trim_matches(['-', '+', ' ', '\n', '\t']);
        let word = inner.split_whitespace().next().unwrap_or_default();
        let closed_by = match word {
            "if" => Some("endif"),
            "for" => Some("endfor"),
            "with" => Some("endwith"),
            "filter" => Some("endfilter"),
            "set" if !inner.contains('=') => Some("endset"),
            _ => None,
        };
        match closed_by {
            Some(by) => open.push((start..end, by)),
            None if open.last().is_some_and(|(_, by)| *by == word) => drop(open.pop()),
            None => {}
        }
        at = end;
    }
    open.pop()
}
