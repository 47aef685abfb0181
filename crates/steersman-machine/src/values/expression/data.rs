//! JSON values whose texts may be templates.

use super::{EvalError, Scope, SyntaxError, Template};
use serde_json::Value as Json;

/// JSON whose texts may be templates: `json:`, `set:`, `args:`. A text that is exactly one `{{ expr }}` yields the typed value.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// JSON without templates.
    Plain(Json),
    /// A text that is a template.
    Template(Template),
    /// A list with a template somewhere in it.
    List(Vec<Data>),
    /// An object with a template somewhere in it.
    Map(Vec<(String, Data)>),
}

impl Data {
    /// Parses the templates in JSON. Keys are plain text. JSON without templates stays as it is. The range of an error counts
    /// bytes of the text that has the fault.
    pub fn parse(json: Json) -> Result<Self, SyntaxError> {
        Ok(match json {
            Json::String(text) if has_template(&text) => Self::Template(Template::parse(&text)?),
            Json::Array(list) => {
                let list: Vec<Self> = list
                    .into_iter()
                    .map(Self::parse)
                    .collect::<Result<_, _>>()?;
                if list.iter().all(|d| matches!(d, Self::Plain(_))) {
                    Self::Plain(list.into_iter().filter_map(Self::plain).collect())
                } else {
                    Self::List(list)
                }
            }
            Json::Object(fields) => {
                let fields: Vec<(String, Self)> = fields
                    .into_iter()
                    .map(|(k, v)| Ok((k, Self::parse(v)?)))
                    .collect::<Result<_, SyntaxError>>()?;
                if fields.iter().all(|(_, d)| matches!(d, Self::Plain(_))) {
                    let plain = fields
                        .into_iter()
                        .filter_map(|(k, d)| Some((k, d.plain()?)));
                    Self::Plain(Json::Object(plain.collect()))
                } else {
                    Self::Map(fields)
                }
            }
            plain => Self::Plain(plain),
        })
    }

    fn plain(self) -> Option<Json> {
        match self {
            Self::Plain(json) => Some(json),
            Self::Template(_) | Self::List(_) | Self::Map(_) => None,
        }
    }

    /// Returns the JSON as it was written. [`Data::parse`] of it gives the same data.
    pub fn source(&self) -> Json {
        match self {
            Self::Plain(json) => json.clone(),
            Self::Template(template) => Json::from(&*template.source),
            Self::List(list) => list.iter().map(Self::source).collect(),
            Self::Map(map) => Json::Object(
                map.iter()
                    .map(|(name, data)| (name.clone(), data.source()))
                    .collect(),
            ),
        }
    }

    /// Evaluates the data. If the value of an object's field is exactly one `{{ expr }}` and evaluates to null, the field is left
    /// out. In a list, or as the whole value, it is `null`.
    pub fn eval(&self, scope: &dyn Scope) -> Result<Json, EvalError> {
        Ok(match self {
            Self::Plain(json) => json.clone(),
            Self::Template(template) => template.value(scope)?,
            Self::List(list) => list
                .iter()
                .map(|d| d.eval(scope))
                .collect::<Result<_, _>>()?,
            Self::Map(fields) => {
                let mut out = serde_json::Map::new();
                for (name, data) in fields {
                    if let Some(value) = data.eval_field(scope)? {
                        out.insert(name.clone(), value);
                    }
                }
                Json::Object(out)
            }
        })
    }

    /// Evaluates the data as a field, a query parameter or an argument. `None` means that it is left out.
    pub fn eval_field(&self, scope: &dyn Scope) -> Result<Option<Json>, EvalError> {
        let value = self.eval(scope)?;
        Ok(match self {
            Self::Template(template) if value.is_null() && template.single().is_some() => None,
            _ => Some(value),
        })
    }

    /// Returns all templates in the data, in order.
    pub fn templates(&self) -> Vec<&Template> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Template(template) => vec![template],
            Self::List(list) => list.iter().flat_map(Self::templates).collect(),
            Self::Map(fields) => fields.iter().flat_map(|(_, d)| d.templates()).collect(),
        }
    }
}

fn has_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}

/// Evaluates named arguments. An argument that is exactly one `{{ expr }}` and evaluates to null is left out.
pub(crate) fn arguments<'a>(
    args: impl IntoIterator<Item = &'a (crate::stored::ids::Name, Data)>,
    scope: &dyn Scope,
) -> Result<serde_json::Map<String, Json>, EvalError> {
    let mut out = serde_json::Map::new();
    for (name, data) in args {
        if let Some(value) = data.eval_field(scope)? {
            out.insert(name.to_string(), value);
        }
    }
    Ok(out)
}
