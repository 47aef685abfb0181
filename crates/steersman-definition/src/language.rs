//! Answers to the questions of an editor: what may be written at a place, what stands there, where a name is declared and used.
//!
//! A text that is being typed is seldom valid. So what is at a place is read from the lines of the text (`outline`), and what
//! may be written there follows from the tables of keys (`typed`). Names, types and scopes come from the last text that could
//! be read (`names`, and the passes of this crate).

mod hover;
mod names;
mod offer;
mod outline;
mod typed;

use crate::diagnostic::{Diagnostic, Place};
use crate::keys::{Space, is_name};
use crate::load::Merged;
use crate::lower::{Lowered, RESERVED};
use crate::site::{Args, Scope};
use crate::source::{Files, Sources};
use crate::{check, pass};
use names::{Meaning, Names, Occurrence};
use outline::{Part, Spot, Step};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use steersman_machine::stored::built_in::BuiltIn;
use typed::Typed;

/// A definition that is being written.
#[derive(Default)]
pub struct Language {
    files: Files,
    found: Vec<Diagnostic>,
    /// The passes of the last definition whose files have trees.
    read: Option<Read>,
    names: Names,
    scopes: Scopes,
}

struct Read {
    sources: Sources,
    merged: Merged,
    lowered: Lowered,
}

/// The texts that may be written at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// The range of bytes that each of them replaces.
    pub range: Range<usize>,
    /// The texts, in the order in which lists show them.
    pub all: Vec<Completion>,
}

/// Something that may be written at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The text that is shown in a list.
    pub label: String,
    /// The sort of the text.
    pub sort: Sort,
    /// A few words about it, such as its type.
    pub detail: String,
    /// More about it, as Markdown; may be empty.
    pub doc: String,
    /// The text that is written.
    pub text: String,
}

/// The sorts of completions.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A key of the format.
    Key,
    /// A word that a key takes, or a type.
    Word,
    /// A name that the definition declares.
    Name,
    /// A name in an expression.
    Variable,
    /// A filter or test of expressions.
    Function,
}

/// A text about a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// The text, as Markdown.
    pub text: String,
    /// The range of bytes that it is about.
    pub range: Range<usize>,
}

/// A definition that was checked, for [`Language::take`]. The check needs nothing of a [`Language`], so another thread can do it.
pub struct Checked {
    files: Files,
    found: Vec<Diagnostic>,
    names: Names,
    read: Option<(Read, Scopes)>,
}

/// The names in scope at each expression, by file and way of keys.
type Scopes = BTreeMap<(Arc<str>, Vec<Step>), Scope>;

impl Checked {
    /// Checks a definition.
    pub fn of(files: Files) -> Self {
        let passed = pass(&files, None, None);
        let names = Names::of(&files);
        let read = passed.done.map(|(merged, lowered)| {
            let sources = passed.sources;
            let scopes = scopes(&names, &sources, &lowered);
            let read = Read {
                sources,
                merged,
                lowered,
            };
            (read, scopes)
        });
        Self {
            files,
            found: passed.found,
            names,
            read,
        }
    }
}

/// Returns the scope of each expression.
fn scopes(names: &Names, sources: &Sources, lowered: &Lowered) -> Scopes {
    let facts = &lowered.facts;
    let sites = facts.sites.iter().map(|site| (site.node.span, &site.scope));
    let all = sites.chain(facts.unread.iter().map(|(span, scope)| (*span, scope)));
    let mut scopes = BTreeMap::new();
    for (span, scope) in all {
        let Some(file) = sources.path(span) else {
            continue;
        };
        let place = (file.clone(), span.start as usize);
        let way = names.ways.get(&place).cloned();
        let key = (place.0, way.unwrap_or_default());
        scopes.entry(key).or_insert_with(|| scope.clone());
    }
    scopes
}

impl Language {
    /// Takes the files of a definition and reads the names in them. Of files that cannot be read, the names from before are
    /// kept. Diagnostics and scopes stay as they are.
    pub fn look(&mut self, files: Files) {
        let mut names = Names::of(&files);
        names.keep(std::mem::take(&mut self.names));
        self.names = names;
        self.files = files;
    }

    /// Takes a definition that was checked. If it could not be read, types and scopes from before are kept.
    pub fn take(&mut self, checked: Checked) {
        let Checked {
            files,
            found,
            mut names,
            read,
        } = checked;
        names.keep(std::mem::take(&mut self.names));
        (self.files, self.found, self.names) = (files, found, names);
        if let Some((read, scopes)) = read {
            (self.read, self.scopes) = (Some(read), scopes);
        }
    }

    /// Returns the diagnostics of the files.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.found
    }

    /// Returns the files that were read last.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Returns what may be written at an offset of a file that has this text now.
    pub fn complete(&self, file: &str, text: &str, offset: usize) -> Completions {
        offer::complete(self, file, text, offset)
    }

    /// Returns what is known about the place at an offset of a file that has this text now.
    pub fn hover(&self, file: &str, text: &str, offset: usize) -> Option<Hover> {
        hover::hover(self, file, text, offset)
    }

    /// Returns the places where the name at an offset is declared. A state entry may be declared by several agents.
    pub fn definition(&self, file: &str, text: &str, offset: usize) -> Vec<Place> {
        let Some((meaning, _)) = self.meaning(file, text, offset) else {
            return Vec::new();
        };
        let declared = self.names.declared().filter(|at| at.meaning == meaning);
        declared.filter_map(|at| self.place(at)).collect()
    }

    /// Returns all places where the name at an offset is declared and used.
    pub fn references(&self, file: &str, text: &str, offset: usize) -> Vec<Place> {
        let Some((meaning, _)) = self.meaning(file, text, offset) else {
            return Vec::new();
        };
        let all = self.names.all.iter().filter(|at| at.meaning == meaning);
        all.filter_map(|at| self.place(at)).collect()
    }

    /// Returns the range of the name at an offset, if it can be renamed.
    ///
    /// # Errors
    /// Says why it cannot.
    pub fn renameable(
        &self,
        file: &str,
        text: &str,
        offset: usize,
    ) -> Result<Range<usize>, String> {
        let known = self.meaning(file, text, offset);
        let (meaning, range) = known.ok_or("no name is here that the definition declares")?;
        let declared = self.names.declared().any(|at| at.meaning == meaning);
        if !declared {
            return Err(format!(
                "`{}` is not declared in this definition",
                meaning.name
            ));
        }
        if !matches!(
            meaning.space,
            Space::Callable | Space::State | Space::Model | Space::Config | Space::Secret
        ) {
            return Err(
                "tools, agents, people, state, models, config values and secrets can be renamed"
                    .to_owned(),
            );
        }
        if let Some(broken) = self.names.broken.iter().next() {
            return Err(format!(
                "`{broken}` is not valid YAML now, so not all uses are known: repair it first"
            ));
        }
        Ok(range)
    }

    /// Returns all places that change when the name at an offset is replaced by a new one.
    ///
    /// # Errors
    /// Says why it cannot be renamed, or not to this name.
    pub fn rename(
        &self,
        file: &str,
        text: &str,
        offset: usize,
        new: &str,
    ) -> Result<Vec<Place>, String> {
        self.renameable(file, text, offset)?;
        let (meaning, _) = self
            .meaning(file, text, offset)
            .ok_or("no name is here that the definition declares")?;
        if !is_name(new) {
            return Err(format!(
                "`{new}` is no name: a letter from a to z, then letters, digits and `_`, at most 48"
            ));
        }
        let callable = meaning.space == Space::Callable;
        if callable && (RESERVED.contains(&new) || BuiltIn::reserves(new)) {
            return Err(format!("the engine uses the name `{new}` itself"));
        }
        let together = self.names.together(&meaning);
        for meaning in &together {
            let taken = Meaning {
                name: new.into(),
                ..meaning.clone()
            };
            if self.names.declared().any(|at| at.meaning == taken) {
                return Err(format!("`{new}` is declared already"));
            }
        }
        let all = self.names.all.iter();
        let all = all.filter(|at| together.contains(&at.meaning));
        let mut places: Vec<Place> = all.filter_map(|at| self.place(at)).collect();
        places.sort_by_key(|at| (at.path.clone(), at.span.start));
        places.dedup();
        Ok(places)
    }

    /// Returns the place of a name in the present text of its file.
    fn place(&self, at: &Occurrence) -> Option<Place> {
        let text = self.files.text(&at.file)?;
        let name = &*at.meaning.name;
        let mut span = at.range.clone();
        if text.get(span.clone()) != Some(name) {
            // the text has changed since, and cannot be read now: the nearest line that begins with the key
            let keys = text.match_indices(name).filter(|(k, _)| {
                let line = text[..*k].rfind('\n').map_or(0, |n| n + 1);
                let alone = text[line..*k].trim_start_matches([' ', '"']).is_empty();
                alone
                    && text[k + name.len()..]
                        .trim_start_matches('"')
                        .starts_with(':')
            });
            let nearest = keys.min_by_key(|(k, _)| k.abs_diff(at.range.start));
            let (start, _) = nearest.filter(|_| at.declares)?;
            span = start..start + name.len();
        }
        Some(Place {
            path: at.file.clone(),
            text: text.clone(),
            span,
        })
    }

    /// Returns what the name at an offset means, and its range.
    fn meaning(&self, file: &str, text: &str, offset: usize) -> Option<(Meaning, Range<usize>)> {
        let current = self.files.text(file).is_some_and(|known| **known == *text);
        if current && !self.names.broken.contains(file) {
            let at = self.names.at(file, offset)?;
            return Some((at.meaning.clone(), at.range.clone()));
        }
        let spot = outline::spot(text, offset)?;
        let typed = typed::at(&spot.path);
        let (space, range) = names::in_spot(&spot, &typed, text, offset)?;
        let name = Arc::from(text.get(range.clone())?);
        Some((self.names.meaning(space, owner(&spot.path), name), range))
    }

    /// Returns the names that may follow a path in the expression at a place.
    fn offered(&self, file: &str, way: &[Step], path: &[&str]) -> Vec<check::Offered> {
        let Some(read) = &self.read else {
            return Vec::new();
        };
        let known = self.scopes.get(&(file.into(), way.to_vec()));
        let scope = known.cloned().unwrap_or_else(|| likely(way));
        check::offered(&read.sources, &read.merged, &read.lowered, &scope, path)
    }
}

/// Returns the scope of an expression that was not there when the definition was read.
fn likely(way: &[Step]) -> Scope {
    let owner: Arc<str> = owner(way).into();
    let args = match way.first() {
        Some(Step::Key(key)) if key == "tools" => Args::Tool(owner),
        Some(Step::Key(key)) if key == "agents" => Args::Agent(owner),
        _ => Args::None,
    };
    Scope {
        args,
        result: true,
        ..Scope::default()
    }
}

/// Returns the tool, agent or event that a way leads into; empty if it leads into none.
fn owner(way: &[Step]) -> &str {
    match way {
        [Step::Key(section), Step::Key(name), ..]
            if matches!(section.as_str(), "tools" | "agents" | "events") =>
        {
            name
        }
        _ => "",
    }
}

/// Returns the code at an offset, from its beginning up to the offset: an expression, or what stands in the braces of a template.
fn code_before<'t>(spot: &Spot, typed: &Typed, text: &'t str, offset: usize) -> Option<&'t str> {
    use crate::keys::Ty;
    if spot.part != Part::Value {
        return None;
    }
    let start = spot.range.start;
    if typed.types.iter().any(|ty| matches!(ty, Ty::Expr)) {
        return text.get(start..offset);
    }
    let holds = |ty: &&&Ty| matches!(ty, Ty::Template | Ty::Prompt | Ty::Data);
    typed.types.iter().find(holds)?;
    in_braces(text, start..offset)
}

/// Returns what stands behind the last braces of a template that are not closed.
fn in_braces(text: &str, range: Range<usize>) -> Option<&str> {
    let end = range.end;
    let last = names::code(text, range).pop()?;
    (last.end == end && !text[last.clone()].ends_with(['}', '%'])).then(|| &text[last])
}

/// Returns true if a file is YAML by its name; any other file of a definition is a prompt.
fn is_yaml(file: &str) -> bool {
    matches!(file.rsplit_once('.'), Some((_, "yaml" | "yml")))
}
