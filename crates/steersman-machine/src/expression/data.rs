//! JSON with templates in its texts.

use super::{EvalError, Scope, SyntaxError, Template};
use serde_json::Value as Json;

/// JSON with templates in its texts: `json:`, `set:`, `args:`. A text that is exactly one `{{ expr }}` yields the typed value.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// As it is.
    Plain(Json),
    /// A text with a template in it.
    Template(Template),
    /// A list.
    List(Vec<Data>),
    /// An object.
    Map(Vec<(String, Data)>),
}

impl Data {
    /// Parses the templates in JSON; keys are plain text. What holds no template stays as it is. The error's range
    /// counts in the text that is broken.
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

    /// As it was written: [`Data::parse`] of it gives the same again.
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

    /// Its value. A field of an object that is exactly one `{{ expr }}` of an unset optional is left out; standing
    /// alone or in a list it is `null`.
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

    /// Its value as a field, query or argument: none where it is left out.
    pub fn eval_field(&self, scope: &dyn Scope) -> Result<Option<Json>, EvalError> {
        let value = self.eval(scope)?;
        Ok(match self {
            Self::Template(template) if value.is_null() && template.single().is_some() => None,
            _ => Some(value),
        })
    }

    /// All templates in it, in order.
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

/// Named arguments, each evaluated; those that are left out are absent.
pub(crate) fn arguments<'a>(
    args: impl IntoIterator<Item = &'a (crate::ids::Name, Data)>,
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
