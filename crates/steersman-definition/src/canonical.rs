//! The canonical form of a definition, which is stored, digested and compiled again later. It has no comments, styles or
//! map order. Files are included by their text; tests are not part of it.
//!
//! Fields, parameters and tasks keep their order, because a model sees them in this order. States, modes and handoffs keep it
//! too, because the first entry is the start. Hooks keep it, because each gets what the one before it gave.

use super::keys::file::File;
use super::keys::{LongType, Section, Table, Ty};
use super::load::{Merged, prompt_path, resolve};
use super::source::{Key, Node, Sources, Value};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Builds the stored form: `{ "definition": .., "files": { path: text } }`.
pub(crate) fn source(
    name: &str,
    merged: &Merged,
    sources: &Sources,
    files: &BTreeMap<String, Arc<str>>,
) -> Json {
    let canon = Canon { sources };
    let mut definition = Map::new();
    definition.insert("steersman".into(), Json::from(1));
    definition.insert("name".into(), Json::from(name));
    for key in File::table().keys {
        let node = merged.file().0.get(key.name);
        let node = node.filter(|_| !["name", "tests", "grades"].contains(&key.name));
        let value = node.map_or(Json::Null, |node| canon.value(node, &key.ty));
        if !value.is_null() {
            definition.insert(key.name.into(), value);
        }
    }
    let files: Map<String, Json> = files
        .iter()
        .map(|(path, text)| (path.clone(), Json::from(&**text)))
        .collect();
    let mut root = Map::new();
    root.insert("definition".into(), Json::Object(definition));
    root.insert("files".into(), Json::Object(files));
    Json::Object(root)
}

/// Returns the text to digest: the stored form without the values of `live` config, which may change under a session.
pub(crate) fn digested(source: &Json) -> String {
    let mut source = source.clone();
    let config = source
        .pointer_mut("/definition/config")
        .and_then(Json::as_object_mut);
    for value in config.into_iter().flat_map(|config| config.values_mut()) {
        let live = value.get("live") == Some(&Json::Bool(true));
        if let Some(map) = value.as_object_mut().filter(|_| live) {
            map.remove("default");
            map.remove("env");
        }
    }
    source.to_string()
}

struct Canon<'a> {
    sources: &'a Sources,
}

impl Canon<'_> {
    fn map(&self, entries: &[(Key, Node)], ty: &'static Ty) -> Json {
        let (of, ordered) = match ty {
            Ty::Names(of) | Ty::Map(of) => (*of, is_ordered(of)),
            _ => (&Ty::Any, false),
        };
        let mut map: Vec<(String, Json)> = entries
            .iter()
            .map(|(key, node)| (key.name.to_string(), self.value(node, of)))
            .collect();
        if !ordered {
            map.sort_by(|a, b| a.0.cmp(&b.0));
        }
        Json::Object(map.into_iter().collect())
    }

    fn table(&self, node: &Node, table: &'static Table) -> Json {
        let mut map: Vec<(String, Json)> = node
            .entries()
            .iter()
            .filter(|(key, _)| &*key.name != "override")
            .filter_map(|(key, node)| {
                let ty = &table.key(&key.name)?.ty;
                Some((key.name.to_string(), self.value(node, ty)))
            })
            .collect();
        map.sort_by(|a, b| a.0.cmp(&b.0));
        Json::Object(map.into_iter().collect())
    }

    fn value(&self, node: &Node, ty: &'static Ty) -> Json {
        let text = || {
            node.as_text()
                .map_or(Json::Null, |text| Json::from(&**text))
        };
        match ty {
            Ty::Integer(_) | Ty::Number | Ty::Money | Ty::Boolean | Ty::Any | Ty::Data => {
                node.to_json()
            }
            Ty::Path | Ty::Documents => self.path(node),
            Ty::Prompt if prompt_path(node).is_some() => self.path(node),
            Ty::Text
            | Ty::Name
            | Ty::Duration
            | Ty::Size
            | Ty::Rate(_)
            | Ty::Expr
            | Ty::Template
            | Ty::Prompt
            | Ty::Word(_) => text(),
            Ty::Type => match &node.value {
                Value::Map(_) => self.table(node, LongType::table()),
                Value::List(items) => items.iter().map(|node| self.value(node, ty)).collect(),
                Value::Scalar(_) => text(),
            },
            Ty::List(of) => node
                .items()
                .iter()
                .map(|node| self.value(node, of))
                .collect(),
            Ty::Map(_) | Ty::Names(_) => self.map(node.entries(), ty),
            Ty::Table(table) => self.table(node, table()),
            Ty::Or(_) => match ty.chosen(node) {
                Some(ty) => self.value(node, ty),
                None => node.to_json(),
            },
        }
    }

    /// Returns a path relative to the main folder, because the stored form is one file.
    fn path(&self, node: &Node) -> Json {
        let text = node.as_text().map_or("", |text| &**text);
        let from = self.sources.path(node.span).map_or("", |path| &**path);
        Json::from(resolve(from, text).unwrap_or_else(|| text.to_owned()))
    }
}

/// Returns true if the order of a map with such values has a meaning: models see it, the first entry is the start, or hooks are asked in it.
fn is_ordered(of: &Ty) -> bool {
    match of {
        Ty::Type => true,
        Ty::Table(table) => table().ordered,
        // only `handoff` is a map of lists of names
        Ty::List(of) => matches!(of, Ty::Name),
        _ => false,
    }
}
