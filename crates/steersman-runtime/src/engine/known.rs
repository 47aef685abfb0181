//! Masks the secrets of a session in data that people or programs read from its log.
//!
//! A log holds secrets sealed. But their values may also occur in clear text, if a user or a model said them. So this module opens
//! every sealed text of the log and the inbox, reads the secrets that the definition declares, and replaces each occurrence of
//! their values with `(secret)`. A value that was never sealed or declared as a secret cannot be found.

use crate::engine::{Engine, EngineError, Inspection};
use crate::load::rerun_of;
use crate::seal::{KeyId, SealError, Sealer, sealed_in};
use crate::secrets::{self, encoded};
use crate::store::StoreError;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::context::History;
use steersman_machine::snapshot::{Cell, Snapshot, Value};
use steersman_machine::stored::codec::Skimmed;
use steersman_machine::stored::commit::{Change, Commit, Hooked, LogLine, Text};
use steersman_machine::stored::ids::{Bodies, Body, Id, Line, Name};
use steersman_machine::stored::interaction::{Interaction, Target};
use steersman_machine::stored::parts::Parts;

/// Text that replaces a secret.
pub const PLACEHOLDER: &str = "(secret)";
/// Fewest bytes of a secret that is searched for anywhere in a text.
pub(crate) const ANYWHERE: usize = 6;
/// Fewest bytes of a secret that is searched for as a word of its own. A shorter secret is not searched for, because it would be
/// found by chance.
pub(crate) const AS_WORD: usize = 4;

/// The opened secrets of a session. Never stored and never logged; dropped once the output that they mask is written.
#[derive(Clone)]
pub struct Known {
    sealer: Sealer,
    /// Sealed texts that were seen before. `None` for one that was opened, and for one whose form this program does not know.
    seen: BTreeMap<String, Option<Closed>>,
    /// Secrets in every encoding, the longest first, because one may be part of another.
    texts: Vec<String>,
    /// Declared secrets that cannot be read here.
    unread: Vec<Name>,
}

/// Reason why a sealed text was not opened.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Closed {
    /// This process does not have the key that it names.
    OtherKey(KeyId),
    /// It does not fit the key that it names.
    Damaged,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Known({} texts)", self.texts.len())
    }
}

impl Engine {
    /// Returns the secrets that a session knows at present: all that are sealed in its log and its inbox, on any branch, and all
    /// that its definition declares.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn secrets_of(&self, id: &str) -> Result<Known, EngineError> {
        let seen = self.inspect(id).await?;
        let lines = self.feed(id, Line::NONE).lines().await?;
        self.secrets_in(&seen, &lines).await
    }

    /// Returns the secrets that a session knows, for a session that was read already. A rerun also knows those of the session that it
    /// repeats: what people gave is recorded there, and models may repeat it here.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn secrets_in(
        &self,
        seen: &Inspection,
        lines: &[Arc<LogLine>],
    ) -> Result<Known, EngineError> {
        let mut known = self.secrets_of_one(seen, lines).await?;
        let mut read = BTreeSet::from([seen.info.id.to_string()]);
        let mut next = rerun_of(&seen.info).map(str::to_owned);
        while let Some(of) = next.take().filter(|of| read.insert(of.clone())) {
            let seen = match self.inspect(&of).await {
                Ok(seen) => seen,
                Err(EngineError::Store(StoreError::NoSession(_))) => break,
                Err(error) => return Err(error),
            };
            let lines = self.feed(&of, Line::NONE).lines().await?;
            known.and(&self.secrets_of_one(&seen, &lines).await?);
            next = rerun_of(&seen.info).map(str::to_owned);
        }
        Ok(known)
    }

    async fn secrets_of_one(
        &self,
        seen: &Inspection,
        lines: &[Arc<LogLine>],
    ) -> Result<Known, EngineError> {
        let newer;
        let seen = if lines.last().is_some_and(|last| last.n > seen.info.head) {
            // One of these lines may be the binding, with secrets that the definition declares.
            newer = self.inspect(&seen.info.id).await?;
            &newer
        } else {
            seen
        };
        let mut known = Known::none(self);
        if let Some(network) = &seen.network {
            let folder = seen.values.folder();
            for (name, secret) in &network.secrets {
                match secrets::read(name, secret, &self.0.options.env, &folder) {
                    Ok(Some(text)) => known.add(&text),
                    Ok(None) => {}
                    Err(_) => known.unread.push(name.clone()),
                }
            }
        }
        for message in &seen.inbox {
            known.learn(&String::from_utf8_lossy(&message.bytes));
        }
        for line in lines {
            known.learn_line(line, self).await?;
        }
        known.sort();
        Ok(known)
    }
}

impl Known {
    /// Returns a value that knows no secret yet.
    pub fn none(engine: &Engine) -> Self {
        Self {
            sealer: engine.sealer().clone(),
            seen: BTreeMap::new(),
            texts: Vec::new(),
            unread: Vec::new(),
        }
    }

    /// Adds the secrets that are sealed in a line.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn learn_line(&mut self, line: &LogLine, engine: &Engine) -> Result<(), EngineError> {
        let texts = line.bodies.iter().filter_map(|text| match text {
            Text::Here(text) => Some(Skimmed::Here(text)),
            Text::Blob { hash, .. } => Some(Skimmed::Blob(*hash)),
            // The texts of a list of parts are texts of the line.
            Text::Erased { .. } | Text::Parts(_) => None,
        });
        self.learn_texts(texts, engine).await
    }

    /// Adds the secrets that are sealed in these texts.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn learn_texts(
        &mut self,
        texts: impl Iterator<Item = Skimmed<'_>>,
        engine: &Engine,
    ) -> Result<(), EngineError> {
        let before = self.texts.len();
        for text in texts {
            match text {
                Skimmed::Here(text) => self.learn(text),
                Skimmed::Blob(hash) => {
                    if let Some(bytes) = engine.store().blob(&hash).await? {
                        self.learn(&String::from_utf8_lossy(&bytes));
                    }
                }
            }
        }
        if self.texts.len() != before {
            self.sort();
        }
        Ok(())
    }

    /// Adds the secrets of another session.
    pub fn and(&mut self, other: &Self) {
        self.texts.extend(other.texts.iter().cloned());
        let seen = other.seen.iter();
        self.seen
            .extend(seen.map(|(text, closed)| (text.clone(), *closed)));
        self.unread.extend(other.unread.iter().cloned());
        self.sort();
    }

    fn learn(&mut self, text: &str) {
        for sealed in sealed_in(text) {
            if self.seen.contains_key(sealed) {
                continue;
            }
            let closed = match self.sealer.open_text(sealed) {
                Ok(plain) => {
                    self.add_opened(&plain);
                    None
                }
                Err(SealError::OtherKey { wanted, .. }) => Some(Closed::OtherKey(wanted)),
                Err(SealError::Damaged(_)) => Some(Closed::Damaged),
                Err(SealError::NotSealed | SealError::Newer) => None,
            };
            self.seen.insert(sealed.to_owned(), closed);
        }
    }

    /// Adds the text of a sealed value: a JSON value, or a text. A text of digits is both, and a number may be written in
    /// another way than the text.
    fn add_opened(&mut self, plain: &str) {
        match serde_json::from_str(plain) {
            Ok(json) => {
                if matches!(json, Json::Number(_)) {
                    self.add(plain);
                }
                self.add_json(&json);
            }
            Err(_) => self.add(plain),
        }
    }

    fn add_json(&mut self, json: &Json) {
        match json {
            Json::String(text) => self.add(text),
            Json::Number(number) => self.add(&number.to_string()),
            Json::Array(list) => list.iter().for_each(|json| self.add_json(json)),
            Json::Object(fields) => fields.values().for_each(|json| self.add_json(json)),
            Json::Null | Json::Bool(_) => {}
        }
    }

    fn add(&mut self, text: &str) {
        let text = text.trim();
        if text.len() < AS_WORD {
            return;
        }
        let escaped = Json::from(text).to_string();
        self.texts.extend([
            escaped[1..escaped.len() - 1].to_owned(),
            encoded(text, b"-._~", false),
            encoded(text, b"*-._", true),
            text.to_owned(),
        ]);
    }

    fn sort(&mut self) {
        self.texts
            .sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.texts.dedup();
        self.unread.sort();
        self.unread.dedup();
    }

    /// Returns true if a text contains the value of a secret.
    pub fn occurs_in(&self, text: &str) -> bool {
        self.texts.iter().any(|secret| find(text, secret).is_some())
    }

    /// Returns a text with [`PLACEHOLDER`] in place of each secret. JSON stays valid JSON.
    pub fn masked(&self, text: &str) -> String {
        let contained: Vec<&str> = self
            .texts
            .iter()
            .filter(|secret| find(text, secret).is_some())
            .map(String::as_str)
            .collect();
        if contained.is_empty() {
            return text.to_owned();
        }
        if text.starts_with(['{', '['])
            && let Ok(mut json) = serde_json::from_str(text)
        {
            self.mask_data(&mut json);
            return json.to_string();
        }
        // Placeholders of an earlier masking stay as they are, even if a secret is the word `secret`.
        let parts = text
            .split(PLACEHOLDER)
            .map(|part| without(part, &contained));
        parts.collect::<Vec<_>>().join(PLACEHOLDER)
    }

    /// Returns the length of the beginning of a streamed text that may be shown masked: whatever follows, no secret reaches over its
    /// end.
    pub fn safe_cut(&self, text: &str) -> usize {
        // The longest secret is the first one.
        let longest = self.texts.first().map_or(0, String::len);
        let mut cut = (text.len() + 1).saturating_sub(longest.max(1));
        loop {
            while !text.is_char_boundary(cut) {
                cut -= 1;
            }
            let over = self.texts.iter().flat_map(|secret| {
                let hits = text.match_indices(secret.as_str());
                hits.map(|(at, found)| (at, at + found.len()))
            });
            let over = over.filter(|(from, to)| *from < cut && cut < *to);
            match over.map(|(from, _)| from).min() {
                Some(from) => cut = from,
                None => return cut,
            }
        }
    }

    /// Masks the secrets in all texts and keys of a JSON document that was rendered from a log. Its numbers stay, because they are
    /// counts, lines and prices.
    pub fn mask(&self, json: &mut Json) {
        self.mask_in(json, false);
    }

    /// Masks the secrets in JSON that came from people, models or tools. Numbers are masked too, because they may be secrets.
    pub fn mask_data(&self, json: &mut Json) {
        self.mask_in(json, true);
    }

    fn mask_in(&self, json: &mut Json, numbers: bool) {
        match json {
            Json::String(text) => {
                if self.occurs_in(text) {
                    *text = self.masked(text);
                }
            }
            Json::Number(number) => {
                if numbers && self.texts.contains(&number.to_string()) {
                    *json = PLACEHOLDER.into();
                }
            }
            Json::Array(list) => list.iter_mut().for_each(|json| self.mask_in(json, numbers)),
            Json::Object(fields) => {
                fields
                    .values_mut()
                    .for_each(|json| self.mask_in(json, numbers));
                let named = fields.keys().filter(|name| self.occurs_in(name));
                for name in named.cloned().collect::<Vec<_>>() {
                    if let Some(value) = fields.remove(&name) {
                        fields.insert(free_name(fields, self.masked(&name)), value);
                    }
                }
            }
            Json::Null | Json::Bool(_) => {}
        }
    }

    /// Masks the secrets in the state of a branch.
    pub fn mask_snapshot(&self, snapshot: &mut Snapshot) {
        let changed = snapshot.state.iter().filter_map(|(key, cell)| {
            let mut value = (*cell.value.0).clone();
            self.mask_data(&mut value);
            let changed = value != *cell.value.0;
            changed.then(|| {
                let value = Value::new(value);
                (
                    key.clone(),
                    Cell {
                        value,
                        ..cell.clone()
                    },
                )
            })
        });
        let changed: Vec<_> = changed.collect();
        for (key, cell) in changed {
            snapshot.state.insert(key, cell);
        }
    }

    /// Masks the secrets in a body. Of a list of parts, only the names and media types of artifacts are masked: each text of the list is
    /// also a body of its line, and is masked there.
    #[must_use]
    pub fn mask_parts(&self, parts: Parts) -> Parts {
        match parts {
            Parts::One(text) if self.occurs_in(&text) => Parts::One(self.masked(&text).into()),
            parts => parts.reworded(|word| self.word(word).unwrap_or_else(|| word.clone())),
        }
    }

    /// Returns a word without its secrets; `None` if it has none.
    fn word(&self, word: &Name) -> Option<Name> {
        self.occurs_in(word).then(|| self.masked(word).into())
    }

    /// Masks the secrets in the words of a line that models and tools chose: names and media types of artifacts, also where parts of its
    /// texts refer to them, names of agents and branches, and names of tools that do not exist. The texts themselves are read and masked
    /// elsewhere.
    pub fn mask_line(&self, line: &mut Arc<LogLine>) {
        if self.texts.is_empty() {
            return;
        }
        if line
            .bodies
            .iter()
            .any(|text| matches!(text, Text::Parts(_)))
        {
            for text in &mut Arc::make_mut(line).bodies {
                if let Text::Parts(parts) = text
                    && let Parts::Several(masked) = self.mask_parts(Parts::Several(parts.clone()))
                {
                    *parts = masked;
                }
            }
        }
        let Some(mut commit) = line.commit.clone() else {
            return;
        };
        let mut is_changed = false;
        for word in chosen(&mut commit) {
            if let Some(masked) = self.word(word) {
                *word = masked;
                is_changed = true;
            }
        }
        if is_changed {
            Arc::make_mut(line).commit = Some(commit);
        }
    }

    /// Returns why secrets may be missed: sealed values whose key is not here or that are damaged, or declared secrets that cannot
    /// be read here. `None` means that none is missed, except secrets of fewer than four bytes, which are never searched for.
    pub fn misses(&self) -> Option<String> {
        let mut why = Vec::new();
        let mut closed: BTreeMap<Closed, usize> = BTreeMap::new();
        for reason in self.seen.values().flatten() {
            *closed.entry(*reason).or_default() += 1;
        }
        for (reason, count) in closed {
            why.push(match (reason, count) {
                (Closed::OtherKey(key), 1) => {
                    format!("1 sealed value needs key {key}, which is not here")
                }
                (Closed::OtherKey(key), n) => {
                    format!("{n} sealed values need key {key}, which is not here")
                }
                (Closed::Damaged, 1) => "1 sealed value is damaged".to_owned(),
                (Closed::Damaged, n) => format!("{n} sealed values are damaged"),
            });
        }
        for name in &self.unread {
            why.push(format!("secret `{name}` cannot be read here"));
        }
        (!why.is_empty()).then(|| why.join(", "))
    }
}

/// Returns the words of a commit that models and tools chose.
fn chosen(commit: &mut Commit) -> Vec<&mut Name> {
    let mut words: Vec<&mut Name> = Vec::new();
    words.extend(
        commit
            .made
            .iter_mut()
            .filter_map(|made| made.named.as_mut()),
    );
    words.extend(commit.opening.iter_mut().filter_map(|of| of.label.as_mut()));
    for push in &mut commit.pushes {
        match &mut push.what {
            Interaction::Result(result) => {
                let made = result.artifacts.iter_mut();
                words.extend(made.flat_map(|made| [&mut made.name, &mut made.media]));
            }
            Interaction::Call(call) if call.target == Target::Unknown => {
                words.push(&mut call.name);
                words.extend(&mut call.seen);
            }
            _ => {}
        }
    }
    for change in &mut commit.changes {
        if let Change::Artifact(made) = change {
            words.extend([&mut made.name, &mut made.media]);
        }
    }
    words
}

/// Returns this name, followed by a number if the object already has a field of this name.
fn free_name(fields: &serde_json::Map<String, Json>, name: String) -> String {
    if !fields.contains_key(&name) {
        return name;
    }
    let numbered = (2_u32..).map(|n| format!("{name} {n}"));
    let mut free = numbered.filter(|name| !fields.contains_key(name));
    free.next().expect("an object has fewer than 2^32 fields")
}

/// Replaces these secrets in a text. They must be sorted with the longest first.
fn without(text: &str, secrets: &[&str]) -> String {
    let Some((secret, rest)) = secrets.split_first() else {
        return text.to_owned();
    };
    let mut out = String::new();
    let mut left = text;
    while let Some(at) = find(left, secret) {
        out.push_str(&without(&left[..at], rest));
        out.push_str(PLACEHOLDER);
        left = &left[at + secret.len()..];
    }
    out.push_str(&without(left, rest));
    out
}

/// Returns the position of a secret in a text. A short secret is found only as a word of its own.
fn find(text: &str, secret: &str) -> Option<usize> {
    if secret.len() >= ANYWHERE {
        return text.find(secret);
    }
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let mut hits = text.match_indices(secret);
    let found = hits.find(|(at, _)| {
        !is_word(text[..*at].chars().next_back())
            && !is_word(text[at + secret.len()..].chars().next())
    });
    found.map(|(at, _)| at)
}

/// A history whose texts are masked.
struct Masked {
    under: Arc<dyn History + Send + Sync>,
    known: Arc<Known>,
}

impl Bodies for Masked {
    fn parts(&self, body: Body) -> Parts {
        self.known.mask_parts(self.under.parts(body))
    }
}

impl History for Masked {
    fn pushes(&self, agent: Id, line: Line) -> (Arc<[Interaction]>, Line) {
        self.under.pushes(agent, line)
    }

    fn hooked(&self, effect: Id) -> Vec<Hooked> {
        self.under.hooked(effect)
    }
}

impl Known {
    /// Returns a session as it may be shown to others: texts and state are masked. The requests that a model received cannot be
    /// reconstructed from it.
    #[must_use]
    pub fn mask_inspection(self: &Arc<Self>, mut seen: Inspection) -> Inspection {
        if self.texts.is_empty() {
            return seen;
        }
        for branch in &mut seen.branches {
            self.mask_snapshot(&mut branch.snapshot);
        }
        seen.history = Arc::new(Masked {
            under: seen.history,
            known: self.clone(),
        });
        if let Some(branch) = seen.current_branch() {
            seen.settled = seen.settled_on(branch);
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use steersman_machine::stored::commit::{Kind, Made, Opening, Push};
    use steersman_machine::stored::engine::Caller;
    use steersman_machine::stored::ids::Time;
    use steersman_machine::stored::interaction::{Artifact, Call, Number};
    use steersman_machine::stored::parts::{Part, Reference};

    fn known(secrets: &[&str]) -> Known {
        let sealer = Sealer::new(&[7; 32]);
        let mut known = Known {
            sealer: sealer.clone(),
            seen: BTreeMap::new(),
            texts: Vec::new(),
            unread: Vec::new(),
        };
        for secret in secrets {
            known.learn(&format!("x {} y", sealer.seal(&json!(secret))));
        }
        known.sort();
        known
    }

    #[test]
    fn a_secret_is_found_in_every_form() {
        let known = known(&["a b\"c-%", "pin 7", "1234", "abc", "secret", "a b\"c-%d"]);
        for (text, masked) in [
            ("it is a b\"c-%, yes", "it is (secret), yes"),
            (r#"{"x":"a b\"c-%"}"#, r#"{"x":"(secret)"}"#),
            ("?q=a%20b%22c-%25&r", "?q=(secret)&r"),
            ("q=a+b%22c-%25", "q=(secret)"),
            ("a b\"c-%d", "(secret)"),
            ("1234, 12345 and 01234", "(secret), 12345 and 01234"),
            ("abc", "abc"),
            ("(secret) secret", "(secret) (secret)"),
        ] {
            assert_eq!(known.masked(text), masked);
            assert_eq!(known.masked(&known.masked(text)), masked, "twice");
        }
        let mut json = json!({ "a b\"c-%": [1234, "1234 a", true], "n": 12345 });
        known.mask(&mut json);
        assert_eq!(json["(secret)"], json!([1234, "(secret) a", true]));
        known.mask_data(&mut json);
        assert_eq!(
            json,
            json!({ "(secret)": ["(secret)", "(secret) a", true], "n": 12345 })
        );
        assert_eq!(known.masked(r#"{"pin": 1234}"#), r#"{"pin":"(secret)"}"#);
    }

    #[test]
    fn a_streamed_text_is_cut_before_what_may_become_a_secret() {
        let known = known(&["hunter2!", "letmein"]);
        let longest = known.texts[0].len();
        assert_eq!(known.safe_cut(""), 0);
        assert_eq!(known.safe_cut("short"), 0);
        for text in [
            "say hunter2! to nobody at all",
            "näme letmein, please, and hunter2!",
        ] {
            for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
                let (mut shown, mut held) = (String::new(), String::new());
                for piece in [&text[..end], &text[end..], &" ".repeat(longest)] {
                    held.push_str(piece);
                    let cut = known.safe_cut(&held);
                    shown.push_str(&known.masked(&held[..cut]));
                    held.drain(..cut);
                }
                assert!(!known.occurs_in(&shown), "{shown}");
                assert!(shown.starts_with(&known.masked(text)), "{end}: {shown}");
            }
        }
    }

    #[test]
    fn a_text_of_digits_is_masked_as_it_is_written() {
        let sealer = Sealer::new(&[7; 32]);
        let mut known = known(&[]);
        known.learn(&sealer.seal_text("12345678901234567890123"));
        known.learn(&sealer.seal(&json!({ "pin": [477_110] })).to_string());
        // Flags are no secrets: their words are everywhere.
        for flag in [json!(true), json!(null), json!([false])] {
            known.learn(&sealer.seal(&flag).to_string());
        }
        known.sort();
        assert_eq!(
            known.masked("it is 12345678901234567890123, or 477110"),
            "it is (secret), or (secret)"
        );
        assert_eq!(known.masked("true, null, false"), "true, null, false");
    }

    #[test]
    fn fields_whose_names_are_secret_stay_apart() {
        let known = known(&["password", "passphrase"]);
        let mut json = json!({ "password": 1, "passphrase": 2, "other": 3 });
        known.mask(&mut json);
        assert_eq!(json, json!({ "(secret)": 1, "(secret) 2": 2, "other": 3 }));
    }

    #[test]
    fn a_secret_in_a_word_that_a_model_chose_is_masked_wherever_it_is() {
        let known = known(&["password"]);
        let part = |name: &str| {
            Part::Artifact(Reference {
                name: name.into(),
                media: name.into(),
                hash: [7; 32],
                len: 9,
            })
        };
        let parts = [Part::Text(0), part("my-password.png"), part("other.png")];
        let masked = [Part::Text(0), part("my-(secret).png"), part("other.png")];
        let several = |parts: &[Part]| Parts::Several(parts.into());
        assert_eq!(known.mask_parts(several(&parts)), several(&masked));
        let one = |text: &str| Parts::One(text.into());
        assert_eq!(known.mask_parts(one("a password")), one("a (secret)"));
        let mut line = Arc::new(LogLine {
            n: Line(7),
            at: Time(0),
            prev: Line(6),
            branch: Id::MAIN,
            commit: None,
            ledger: Vec::new(),
            bodies: vec![Text::Here("Look.".into()), Text::Parts(parts.into())],
        });
        known.mask_line(&mut line);
        assert_eq!(line.bodies[1], Text::Parts(masked.into()));

        let commit = |word: &str| {
            let artifact = || Artifact {
                scope: Id::new(Line(1), 0),
                call: Id::new(Line(2), 0),
                name: word.into(),
                media: word.into(),
                hash: [7; 32],
                len: 9,
            };
            let call = Call {
                id: Id::new(Line(2), 0),
                name: word.into(),
                by: Caller::Model,
                seen: Some(word.into()),
                target: Target::Unknown,
                label: None,
                args: Body::new(Line(2), 0),
                number: Number::default(),
            };
            Commit {
                opening: Some(Opening {
                    scope: None,
                    dry: false,
                    label: Some(word.into()),
                    of: None,
                }),
                made: vec![Made {
                    agent: Id::new(Line(1), 0),
                    def: "desk".into(),
                    kind: Kind::Model,
                    parent: None,
                    named: Some(word.into()),
                    mode: None,
                    state: Vec::new(),
                }],
                pushes: vec![Push {
                    agent: Id::new(Line(1), 0),
                    prev: Line::NONE,
                    what: Interaction::Call(call),
                }],
                changes: vec![Change::Artifact(artifact())],
                ..Commit::default()
            }
        };
        Arc::make_mut(&mut line).commit = Some(commit("my-password"));
        known.mask_line(&mut line);
        assert_eq!(line.commit, Some(commit("my-(secret)")));
    }

    #[test]
    fn texts_sealed_with_another_key_are_reported() {
        let mut known = known(&["password"]);
        assert_eq!(known.misses(), None);
        let other = Sealer::new(&[8; 32]);
        let theirs = other.seal(&json!("other-password"));
        known.learn(&theirs.to_string());
        known.learn(&theirs.to_string());
        let key = other.keys().next().unwrap();
        assert_eq!(
            known.misses().unwrap(),
            format!("1 sealed value needs key {key}, which is not here")
        );
        let twice = known.clone();
        known.and(&twice);
        assert_eq!(known.misses(), twice.misses(), "the same values");
        let mut damaged = known.sealer.seal_text("password");
        damaged.replace_range(40..41, if &damaged[40..41] == "0" { "1" } else { "0" });
        known.learn(&damaged);
        assert!(
            known
                .misses()
                .unwrap()
                .ends_with(", 1 sealed value is damaged")
        );
        assert!(!format!("{known:?}").contains("password"));
    }
}
