//! Values that fit a JSON Schema, more or less.

use super::dice::Dice;
use serde_json::{Map, Value as Json, json};

/// Depth at which no further objects and lists are made.
const DEEP: usize = 6;

/// Numbers or texts of one origin that are kept at most.
const KEPT: usize = 96;

/// Texts and numbers that mean something in a definition or a conversation: values next to them decide whether conditions hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    numbers: Vec<i64>,
    texts: Vec<String>,
    /// Those of a conversation.
    said: Vec<String>,
}

impl Values {
    /// Learns the numbers in a text, and those next to them.
    pub(super) fn learn_numbers(&mut self, text: &str) {
        let digits = text.split(|c: char| !c.is_ascii_digit());
        for number in digits.filter_map(|digits| digits.parse::<i64>().ok()) {
            for near in [number, number.saturating_add(1), number - 1] {
                if !self.numbers.contains(&near) && self.numbers.len() < KEPT {
                    self.numbers.push(near);
                }
            }
        }
    }

    /// Learns the texts and numbers in a value.
    pub(super) fn learn(&mut self, json: &Json) {
        match json {
            Json::String(text) => {
                let is_short = !text.is_empty() && text.len() <= 60;
                if is_short && self.texts.len() < KEPT && !self.texts.contains(text) {
                    self.texts.push(text.clone());
                }
            }
            Json::Number(number) => self.learn_numbers(&number.to_string()),
            Json::Array(all) => all.iter().for_each(|one| self.learn(one)),
            Json::Object(all) => all.values().for_each(|one| self.learn(one)),
            Json::Null | Json::Bool(_) => {}
        }
    }

    /// Returns these values and the words of a conversation.
    pub(super) fn and_said<'a>(&self, texts: impl Iterator<Item = &'a str>) -> Self {
        let mut values = self.clone();
        let is_part = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        for text in texts {
            let words = text.split(|c| !is_part(c));
            let words = words.map(|word| word.trim_matches('.'));
            let words = words.filter(|word| (2..=24).contains(&word.len()));
            values.said.extend(words.take(KEPT).map(str::to_owned));
        }
        let old = values.said.len().saturating_sub(KEPT);
        values.said.drain(..old);
        values
    }

    pub(super) fn number(&self, dice: &mut Dice) -> i64 {
        let said = dice.pick(&self.said);
        let said = said.and_then(|word| word.parse().ok());
        match dice.below(8) {
            0..3 if said.is_some() => said.unwrap_or_default(),
            0..5 => dice.pick(&self.numbers).copied().unwrap_or(1),
            5 => i64::try_from(dice.below(10)).unwrap_or_default(),
            6 => i64::try_from(dice.below(1_000_000)).unwrap_or_default(),
            _ => *dice.pick(&[0, -1, i64::MAX, i64::MIN]).unwrap_or(&0),
        }
    }

    pub(super) fn text(&self, dice: &mut Dice) -> String {
        let said = dice.pick(&self.said);
        match dice.below(8) {
            0..3 if said.is_some() => said.cloned().unwrap_or_default(),
            0..5 => {
                let known = dice.pick(&self.texts).cloned();
                known.unwrap_or_else(|| format!("text {}", dice.below(5)))
            }
            5 => format!("text {}", dice.below(5)),
            6 => String::new(),
            _ => "\u{202e}{{ 1 }} <b>\u{0}\"".to_owned(),
        }
    }

    /// Returns a value for a schema. One in twenty parts does not fit if `lies`.
    pub(super) fn fitting(&self, dice: &mut Dice, schema: &Json, lies: bool) -> Json {
        self.part(dice, schema, schema, lies, 0)
    }

    fn part(&self, dice: &mut Dice, root: &Json, schema: &Json, lies: bool, deep: usize) -> Json {
        if lies && dice.percent(5) {
            return self.any(dice, deep);
        }
        let schema = match schema["$ref"].as_str().and_then(|at| at.strip_prefix('#')) {
            Some(at) => root.pointer(at).unwrap_or(&Json::Null),
            None => schema,
        };
        if let Some(one) = schema.get("const") {
            return one.clone();
        }
        if let Some(of) = schema["enum"].as_array() {
            return dice.pick(of).cloned().unwrap_or_default();
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            if let Some(of) = schema[key].as_array()
                && let Some(one) = dice.pick(of)
            {
                return self.part(dice, root, one, lies, deep + 1);
            }
        }
        let kind = match &schema["type"] {
            Json::String(kind) => Some(kind.as_str()),
            Json::Array(kinds) => dice.pick(kinds).and_then(Json::as_str),
            _ if schema.get("properties").is_some() => Some("object"),
            _ => None,
        };
        match kind {
            Some("object") if deep < DEEP => {
                let mut object = Map::new();
                let required = schema["required"].as_array();
                let required: Vec<&str> = required
                    .into_iter()
                    .flatten()
                    .filter_map(Json::as_str)
                    .collect();
                for (name, of) in schema["properties"].as_object().into_iter().flatten() {
                    if required.contains(&name.as_str()) || dice.percent(60) {
                        object.insert(name.clone(), self.part(dice, root, of, lies, deep + 1));
                    }
                }
                Json::Object(object)
            }
            Some("object") => json!({}),
            Some("array") => {
                let least = schema["minItems"].as_u64().unwrap_or(0).min(8);
                let n = if deep < DEEP { dice.below(3) } else { 0 };
                let items = (0..n.max(least))
                    .map(|_| self.part(dice, root, &schema["items"], lies, deep + 1));
                items.collect()
            }
            Some("integer" | "number") => self.bounded(dice, schema).into(),
            Some("boolean") => dice.percent(50).into(),
            Some("null") => Json::Null,
            Some("string") => self.text(dice).into(),
            _ => self.any(dice, deep),
        }
    }

    fn bounded(&self, dice: &mut Dice, schema: &Json) -> i64 {
        let number = self.number(dice);
        let least = schema["minimum"].as_i64().unwrap_or(i64::MIN);
        let most = schema["maximum"].as_i64().unwrap_or(i64::MAX);
        number.max(least).min(most)
    }

    /// Returns any value.
    pub(super) fn any(&self, dice: &mut Dice, deep: usize) -> Json {
        match dice.below(if deep < DEEP { 7 } else { 5 }) {
            0 => Json::Null,
            1 => dice.percent(50).into(),
            2 => self.number(dice).into(),
            3 | 4 => self.text(dice).into(),
            5 => json!([self.any(dice, deep + 1)]),
            _ => json!({ self.text(dice): self.any(dice, deep + 1) }),
        }
    }
}
