//! Fields that the server of a tool asks a person for. A JSON Schema describes them: an object whose properties are texts, numbers,
//! yes or no, choices, and lists of choices. The Model Context Protocol allows no others in a form.

use serde_json::{Map, Value as Json};

/// Maximum number of bytes of the schema of a question.
pub const SCHEMA: usize = 32 << 10;
/// Maximum number of bytes of the message of a question.
pub const MESSAGE: usize = 8 << 10;
/// Maximum number of fields of a question.
const MOST: usize = 64;

/// Words that name a secret. Such a field is never asked for.
const SECRET: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "token",
    "credential",
    "credentials",
    "otp",
    "pin",
    "cvv",
    "cvc",
    "ssn",
];

/// Names of secrets of more than one word, without what stands between the words.
const SECRETS: [&str; 8] = [
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "onetimecode",
    "securitycode",
    "cardnumber",
    "creditcard",
];

/// The fields of a question, in the order of the schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields(Vec<Field>);

#[derive(Clone, Debug, PartialEq)]
struct Field {
    name: String,
    schema: Json,
    required: bool,
}

impl Fields {
    /// Reads the schema of a question. A schema without properties asks for a word of consent alone.
    ///
    /// # Errors
    /// The reason why no person can be asked for these fields, as the end of a sentence.
    pub fn read(schema: &str) -> Result<Self, String> {
        if schema.len() > SCHEMA {
            return Err(format!(
                "the description of its fields has more than {SCHEMA} bytes"
            ));
        }
        let schema: Json = serde_json::from_str(schema).unwrap_or_default();
        let nothing = Map::new();
        let properties = match &schema["properties"] {
            Json::Null => &nothing,
            Json::Object(properties) => properties,
            _ => return Err("its fields are not described as an object".to_owned()),
        };
        if properties.len() > MOST {
            return Err(format!("it wants more than {MOST} fields"));
        }
        let required = schema["required"].as_array();
        let is_required = |name: &str| {
            required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)))
        };
        let mut fields = Vec::new();
        for (name, schema) in properties {
            if !matches!(
                schema["type"].as_str(),
                Some("string" | "number" | "integer" | "boolean" | "array")
            ) {
                return Err(format!("its field `{name}` has a type that no form has"));
            }
            fields.push(Field {
                name: name.clone(),
                schema: schema.clone(),
                required: is_required(name),
            });
        }
        Ok(Self(fields))
    }

    /// Returns the name of the first field that looks like a secret, by its name, title, description or format.
    pub fn secret(&self) -> Option<&str> {
        let secret = self.0.iter().find(|field| field.is_secret());
        secret.map(|field| field.name.as_str())
    }

    /// Describes the fields for people, one each: `when (date, may be left out)`.
    pub fn described(&self) -> Vec<String> {
        self.0.iter().map(Field::described).collect()
    }

    /// Returns the values of the only field, if it is a choice of one.
    pub fn options(&self) -> Vec<String> {
        match &self.0[..] {
            [only] if !only.is_list() => only.choices().into_iter().map(|one| one.value).collect(),
            _ => Vec::new(),
        }
    }

    /// Reads what a person answered: a JSON object with the fields; for a single field its value is enough. Fields that are left
    /// out have their defaults.
    ///
    /// # Errors
    /// A sentence for people that says what does not fit.
    pub fn given(&self, text: &str) -> Result<Json, String> {
        let text = text.trim();
        let object = serde_json::from_str::<Map<String, Json>>(text).ok();
        match (&self.0[..], object) {
            ([only], Some(object)) if object.contains_key(&only.name) || object.is_empty() => {
                self.filled(object)
            }
            ([only], _) => {
                let value = only.typed(text);
                self.filled(Map::from_iter([(only.name.clone(), value)]))
            }
            (_, Some(object)) => self.filled(object),
            ([], None) => Err("no field is asked for: approve or reject the question".to_owned()),
            (_, None) => Err(format!(
                "the answer is a JSON object with the fields {}",
                self.described().join(", ")
            )),
        }
    }

    /// Returns the object of a person who consents and gives no field.
    ///
    /// # Errors
    /// A sentence for people: a field is required and has no default.
    pub fn defaults(&self) -> Result<Json, String> {
        self.filled(Map::new())
    }

    fn filled(&self, given: Map<String, Json>) -> Result<Json, String> {
        if let Some(name) = given
            .keys()
            .find(|name| self.0.iter().all(|f| f.name != **name))
        {
            return Err(format!("no field `{name}` is asked for"));
        }
        let mut all = Map::new();
        for field in &self.0 {
            let default = field.schema.get("default");
            let default = || default.filter(|default| !default.is_null()).cloned();
            let value = given.get(&field.name).filter(|value| !value.is_null());
            match value.cloned().or_else(default) {
                Some(value) => {
                    let fits = field.fits(value);
                    let value = fits.map_err(|why| format!("`{}`: {why}", field.name))?;
                    all.insert(field.name.clone(), value);
                }
                None if field.required => {
                    return Err(format!("the field {} is missing", field.described()));
                }
                None => {}
            }
        }
        Ok(Json::Object(all))
    }
}

/// A value that may be chosen, and its name for people.
struct Choice {
    value: String,
    title: Option<String>,
}

impl Field {
    fn text(&self, key: &str) -> Option<&str> {
        self.schema[key].as_str()
    }

    fn is_list(&self) -> bool {
        self.text("type") == Some("array")
    }

    fn is_secret(&self) -> bool {
        let is_free = self.text("type") != Some("boolean") && self.choices().is_empty();
        let named = [Some(self.name.as_str()), self.text("title")];
        is_free
            && (self.text("format") == Some("password")
                || self.schema["writeOnly"] == true
                || named
                    .into_iter()
                    .flatten()
                    .any(|name| names_secret(name, true))
                || self
                    .text("description")
                    .is_some_and(|said| names_secret(said, false)))
    }

    /// Returns the values that may be chosen. Empty: any value of the type.
    fn choices(&self) -> Vec<Choice> {
        let of = if self.is_list() {
            &self.schema["items"]
        } else {
            &self.schema
        };
        let titled = of["oneOf"].as_array().or(of["anyOf"].as_array());
        if let Some(titled) = titled {
            let choices = titled.iter().filter_map(|one| {
                Some(Choice {
                    value: one["const"].as_str()?.to_owned(),
                    title: one["title"].as_str().map(str::to_owned),
                })
            });
            return choices.collect();
        }
        let names = of["enumNames"].as_array();
        let plain = of["enum"].as_array().into_iter().flatten().enumerate();
        let choices = plain.filter_map(|(at, value)| {
            let title = names.and_then(|names| names.get(at)?.as_str());
            Some(Choice {
                value: value.as_str()?.to_owned(),
                title: title.map(str::to_owned),
            })
        });
        choices.collect()
    }

    fn described(&self) -> String {
        let choices: Vec<String> = self.choices().into_iter().map(|one| one.value).collect();
        let kind = match self.text("type") {
            Some("array") => format!("any of {}", choices.join(" ")),
            _ if !choices.is_empty() => choices.join(" | "),
            Some("string") => self.text("format").unwrap_or("text").to_owned(),
            Some("integer") => "whole number".to_owned(),
            Some("boolean") => "yes or no".to_owned(),
            _ => "number".to_owned(),
        };
        let default = match &self.schema["default"] {
            Json::Null if self.required => String::new(),
            Json::Null => ", may be left out".to_owned(),
            Json::String(text) => format!(", else {text}"),
            default => format!(", else {default}"),
        };
        format!("{} ({kind}{default})", self.name)
    }

    /// Reads a value that a person typed without quotes.
    fn typed(&self, text: &str) -> Json {
        let read = || serde_json::from_str(text).unwrap_or_else(|_| text.into());
        match self.text("type") {
            Some("string") => match serde_json::from_str(text) {
                Ok(Json::String(quoted)) => quoted.into(),
                _ => text.into(),
            },
            Some("boolean") => match text.to_ascii_lowercase().as_str() {
                "yes" | "y" | "true" => true.into(),
                "no" | "n" | "false" => false.into(),
                _ => text.into(),
            },
            Some("array") if !text.starts_with('[') => {
                let parts = text
                    .split(',')
                    .map(str::trim)
                    .filter(|part| !part.is_empty());
                parts.map(Json::from).collect()
            }
            _ => read(),
        }
    }

    /// Returns the value as the server gets it: a choice may be named by its title.
    fn fits(&self, value: Json) -> Result<Json, String> {
        let bound = |key: &str| self.schema[key].as_f64();
        let few = |count: usize| bound("minLength").is_some_and(|least| (count as f64) < least);
        let many = |count: usize| bound("maxLength").is_some_and(|most| count as f64 > most);
        match (self.text("type"), value) {
            (Some("string"), Json::String(text)) => {
                let count = text.chars().count();
                match self.chosen(&text)? {
                    Some(value) => Ok(value.into()),
                    None if few(count) => Err("the text is too short".to_owned()),
                    None if many(count) => Err("the text is too long".to_owned()),
                    None => self.formatted(text),
                }
            }
            (Some("integer"), Json::Number(number)) if !number.is_f64() => self.between(number),
            (Some("number"), Json::Number(number)) => self.between(number),
            (Some("boolean"), value @ Json::Bool(_)) => Ok(value),
            (Some("array"), Json::Array(list)) => {
                let (least, most) = (bound("minItems"), bound("maxItems"));
                if least.is_some_and(|least| (list.len() as f64) < least) {
                    return Err("too few are chosen".to_owned());
                }
                if most.is_some_and(|most| list.len() as f64 > most) {
                    return Err("too many are chosen".to_owned());
                }
                let chosen = list.into_iter().map(|one| -> Result<Json, String> {
                    let Json::String(text) = one else {
                        return Err(format!("{one} is not one of the choices"));
                    };
                    let chosen = self.chosen(&text)?;
                    Ok(chosen.unwrap_or(text).into())
                });
                let chosen: Result<Vec<Json>, String> = chosen.collect();
                chosen.map(Json::Array)
            }
            (_, value) => Err(format!("{value} does not fit {}", self.described())),
        }
    }

    /// Returns the chosen value, by value or title. `None`: there is nothing to choose from.
    fn chosen(&self, text: &str) -> Result<Option<String>, String> {
        let choices = self.choices();
        if choices.is_empty() {
            return Ok(None);
        }
        let by_value = choices.iter().find(|one| one.value == text);
        let by_title = || {
            choices
                .iter()
                .find(|one| one.title.as_deref() == Some(text))
        };
        if let Some(chosen) = by_value.or_else(by_title) {
            return Ok(Some(chosen.value.clone()));
        }
        let all: Vec<&str> = choices.iter().map(|one| one.value.as_str()).collect();
        Err(format!("it is one of: {}", all.join(", ")))
    }

    fn between(&self, number: serde_json::Number) -> Result<Json, String> {
        let value = number.as_f64().unwrap_or(f64::NAN);
        for (key, ends) in [("minimum", "at least"), ("maximum", "at most")] {
            let bound = &self.schema[key];
            let beyond = |bound: f64| {
                if key == "minimum" {
                    value < bound
                } else {
                    value > bound
                }
            };
            if bound.as_f64().is_some_and(beyond) {
                return Err(format!("it is {ends} {bound}"));
            }
        }
        Ok(Json::Number(number))
    }

    /// Checks the form of a text as far as a typing mistake is likely.
    fn formatted(&self, text: String) -> Result<Json, String> {
        let of_date = |text: &str| {
            let parts: Vec<&str> = text.split('-').collect();
            let digits =
                |part: &str, len| part.len() == len && part.bytes().all(|b| b.is_ascii_digit());
            matches!(parts[..], [y, m, d] if digits(y, 4) && digits(m, 2) && digits(d, 2))
        };
        let fits = match self.text("format") {
            Some("email") => {
                let parts = text.split_once('@');
                parts
                    .is_some_and(|(who, at)| !who.is_empty() && !at.is_empty() && !at.contains('@'))
            }
            Some("uri") => text
                .split_once(':')
                .is_some_and(|(scheme, _)| !scheme.is_empty()),
            Some("date") => of_date(&text),
            Some("date-time") => text.split_once('T').is_some_and(|(date, _)| of_date(date)),
            _ => true,
        };
        if fits {
            return Ok(text.into());
        }
        let form = self.text("format").unwrap_or("text");
        Err(format!("`{text}` is no {form}"))
    }
}

/// Returns true if a text names a secret. `alone`: a single word is enough, as in the name of a field.
fn names_secret(text: &str, alone: bool) -> bool {
    let mut words = vec![String::new()];
    let mut small = false;
    for c in text.chars() {
        if !c.is_alphanumeric() || (small && c.is_uppercase()) {
            words.push(String::new());
        }
        small = c.is_lowercase();
        if c.is_alphanumeric() {
            words
                .last_mut()
                .expect("there is one")
                .extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    let named = |word: &String| SECRET.iter().any(|secret| word == secret);
    let joined = words.concat();
    let strong = ["password", "passphrase"];
    let several = SECRETS.iter().any(|secret| joined.contains(secret));
    let certain = words.iter().any(|word| strong.contains(&word.as_str()));
    several || certain || (alone && words.iter().any(named))
}

#[cfg(test)]
mod tests {
    use super::Fields;
    use serde_json::json;

    fn fields(properties: serde_json::Value, required: &[&str]) -> Fields {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        Fields::read(&schema.to_string()).unwrap()
    }

    #[test]
    fn a_single_field_takes_its_value_and_several_an_object() {
        let when = fields(
            json!({ "when": { "type": "string", "format": "date" } }),
            &["when"],
        );
        assert_eq!(when.described(), ["when (date)"]);
        assert_eq!(
            when.given("2026-12-24").unwrap(),
            json!({ "when": "2026-12-24" })
        );
        assert_eq!(
            when.given(r#"{"when":"2026-12-24"}"#).unwrap(),
            json!({ "when": "2026-12-24" })
        );
        assert_eq!(
            when.given("Monday").unwrap_err(),
            "`when`: `Monday` is no date"
        );
        assert_eq!(
            when.defaults().unwrap_err(),
            "the field when (date) is missing"
        );
        let two = fields(
            json!({
                "seats": { "type": "integer", "minimum": 1, "maximum": 4 },
                "window": { "type": "boolean", "default": true },
            }),
            &["seats"],
        );
        assert_eq!(
            two.given(r#"{"seats":2}"#).unwrap(),
            json!({ "seats": 2, "window": true })
        );
        assert_eq!(
            two.given(r#"{"seats":9}"#).unwrap_err(),
            "`seats`: it is at most 4"
        );
        assert_eq!(
            two.given("2").unwrap_err(),
            "the answer is a JSON object with the fields seats (whole number), window (yes or no, else true)"
        );
        assert_eq!(
            two.given(r#"{"seats":2,"row":1}"#).unwrap_err(),
            "no field `row` is asked for"
        );
    }

    #[test]
    fn choices_have_titles() {
        let one = fields(
            json!({ "size": { "type": "string", "oneOf": [
                { "const": "s", "title": "Small" }, { "const": "l", "title": "Large" },
            ] } }),
            &["size"],
        );
        assert_eq!(one.options(), ["s", "l"]);
        assert_eq!(one.given("Large").unwrap(), json!({ "size": "l" }));
        assert_eq!(one.given("xl").unwrap_err(), "`size`: it is one of: s, l");
        let many = fields(
            json!({ "tags": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] }, "maxItems": 1 } }),
            &[],
        );
        assert_eq!(many.given("a").unwrap(), json!({ "tags": ["a"] }));
        assert_eq!(
            many.given("a, b").unwrap_err(),
            "`tags`: too many are chosen"
        );
        assert_eq!(many.defaults().unwrap(), json!({}));
    }

    #[test]
    fn secrets_are_found_by_their_names() {
        let secret = |name: &str, more: serde_json::Value| {
            let mut field = json!({ "type": "string" });
            field
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            let fields = fields(
                serde_json::Map::from_iter([(name.to_owned(), field)]).into(),
                &[],
            );
            fields.secret().is_some()
        };
        for name in [
            "password",
            "userPassword",
            "api_key",
            "Access-Key",
            "pin",
            "githubToken",
        ] {
            assert!(secret(name, json!({})), "{name}");
        }
        for name in ["name", "opinion", "shipping", "key", "tokens_left"] {
            assert!(!secret(name, json!({})), "{name}");
        }
        assert!(secret("x", json!({ "title": "Your passphrase" })));
        assert!(secret(
            "x",
            json!({ "description": "The password of the shop." })
        ));
        assert!(!secret("x", json!({ "description": "A token of thanks." })));
        assert!(!secret("secret", json!({ "enum": ["yes", "no"] })));
    }
}
