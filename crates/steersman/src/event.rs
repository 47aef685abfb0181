//! Events: messages from outside that are not chat, addressed to a network.

use crate::{Error, Network, Steersman, files};
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use steersman_machine::network::{EventDef, StartDef};
use steersman_machine::stored::ids::{Digest, Name};
use steersman_machine::values::expression::{Names, Template};
use steersman_machine::values::types::{canonical, misfit};
use steersman_machine::view::artifact::Content;
use steersman_runtime::engine::{EngineError, StartOptions};
use steersman_runtime::inbox::{Message, Wanted};
use steersman_runtime::session::Fate;
use steersman_runtime::store::{
    BoxedEvent, Scope, SessionId, SessionQuery, StoreCode, StoreError, session_id,
};

/// The fate of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The event was accepted before with the same fields; nothing was done. Holds the session, if the event was addressed
    /// to one.
    Known(Option<String>),
    /// The event started this session.
    Started(String),
    /// The event was put into the inbox of this session.
    Session(String),
    /// The event was offered to the waits of the network. If no wait takes it, it stays in the event box.
    Offered,
}

impl Steersman {
    /// Sends an event to a network. As the definition says, it goes to the session of its key, starts a session, or is
    /// offered to the waits that match. Each id is accepted once.
    ///
    /// # Errors
    /// [`Error::Refused`] if the network declares no such event, its fields do not fit, or an event with its id and other
    /// fields was accepted before.
    pub async fn event(&self, network: &Network, name: &str, fields: &Json) -> Result<Sent, Error> {
        let sent = self.event_to(network, name, fields, None).await?;
        if let Sent::Started(id) = &sent {
            self.session(id).await?;
        }
        Ok(sent)
    }

    /// Like [`Steersman::event`], but only stores the event: a session that it starts is run by the process that drives the
    /// store.
    ///
    /// # Errors
    /// As [`Steersman::event`].
    pub async fn post(&self, network: &Network, name: &str, fields: &Json) -> Result<Sent, Error> {
        self.event_to(network, name, fields, None).await
    }

    /// Like [`Steersman::post`], with a target for events that the definition does not route: if it declares neither `session:` nor
    /// `start:` for the event, and the argument `session` is given, the event goes into the inbox of that session.
    ///
    /// # Errors
    /// As [`Steersman::event`].
    pub async fn event_to(
        &self,
        network: &Network,
        name: &str,
        fields: &Json,
        session: Option<&str>,
    ) -> Result<Sent, Error> {
        let checked = check(network.checked(), name, fields)?;
        let CheckedEvent { def, id, .. } = &checked;
        if let Some(key) = &def.session {
            let key = render(key, name, &checked.fields)?;
            return self.by_key(network, name, &checked, &key).await;
        }
        if let Some(start) = &def.start {
            return self.begin(network, name, start, &checked, None).await;
        }
        if let Some(session) = session {
            return self.put_into(network, session, name, &checked).await;
        }
        let now = self.engine().clock().now();
        let fields: Arc<str> = checked.fields.to_string().into();
        let message = checked.message(name);
        self.engine().keep(&checked.contents).await?;
        let id: Name = message_id(network.name(), name, id);
        let accepted = self
            .engine()
            .deliver_event(BoxedEvent {
                id: id.clone(),
                scope: self.scope(),
                message: message.encode(id, now).bytes,
                network: network.name().into(),
                event: name.into(),
                fields,
                at: now,
                until: now.plus(def.keep),
            })
            .await;
        Ok(if once(name, &checked.id, accepted)? {
            Sent::Offered
        } else {
            Sent::Known(None)
        })
    }

    /// Returns the scope of what this handle sends.
    fn scope(&self) -> Scope {
        self.engine().scope().cloned().unwrap_or_default()
    }

    /// Puts the event into the inbox of the session with this key. If there is none, starts one if the definition allows it.
    async fn by_key(
        &self,
        network: &Network,
        name: &str,
        checked: &CheckedEvent<'_>,
        key: &str,
    ) -> Result<Sent, Error> {
        let query = SessionQuery {
            scope: Some(self.scope()),
            network: Some(network.name().into()),
            key: Some(key.into()),
            limit: Some(1),
            ..SessionQuery::default()
        };
        let found = self.engine().store().sessions(&query).await?;
        match (found.first(), &checked.def.start) {
            (Some(session), _) => self.put_into(network, &session.id, name, checked).await,
            (None, Some(start)) => self.begin(network, name, start, checked, Some(key)).await,
            (None, None) => Err(Error::Refused(format!(
                "no session of `{}` has the key `{key}`, and event `{name}` begins none",
                network.name()
            ))),
        }
    }

    /// Puts the event into the inbox of a session.
    async fn put_into(
        &self,
        network: &Network,
        session: &str,
        name: &str,
        checked: &CheckedEvent<'_>,
    ) -> Result<Sent, Error> {
        self.engine().keep(&checked.contents).await?;
        let id = message_id(network.name(), name, &checked.id);
        let message = checked.message(name);
        let receipt = self.engine().deliver_as(session, id, message).await;
        match once(name, &checked.id, receipt)?.fate {
            Fate::Known => Ok(Sent::Known(Some(session.to_owned()))),
            Fate::Refused(why) => Err(Error::Refused(why)),
            Fate::Taken(_) | Fate::Waits(_) | Fate::Lies => Ok(Sent::Session(session.to_owned())),
        }
    }

    /// Starts a session with the event. If the session exists already, puts the event into its inbox.
    async fn begin(
        &self,
        network: &Network,
        name: &str,
        start: &StartDef,
        checked: &CheckedEvent<'_>,
        key: Option<&str>,
    ) -> Result<Sent, Error> {
        let id = &checked.id;
        let names = Names::from_json(json!({ "event": checked.fields }));
        let refused = |e| Error::Refused(format!("event `{name}`: {e}"));
        let mut args = Map::new();
        for (parameter, data) in &start.args {
            let value = data.eval(&names).map_err(refused)?;
            args.insert(parameter.to_string(), value);
        }
        let message = start.message.as_ref().map(|m| m.render(&names));
        let say = message.transpose().map_err(refused)?;
        // The session's id is derived from the event's id, so that a second delivery finds the session.
        let known = format!("{} {name} {id}", network.name());
        let session = session_of(&self.scope(), &known);
        let options = StartOptions {
            id: Some(session.clone()),
            message_id: Some(message_id(network.name(), name, id)),
            event: Some(checked.message(name)),
            agent: start.agent.clone(),
            args: (!args.is_empty()).then_some(Json::Object(args)),
            say,
            key: key.map(Into::into),
            files: checked.contents.clone(),
            ..StartOptions::default()
        };
        match self.create(network, options).await {
            Ok(session) => Ok(Sent::Started(session.to_string())),
            Err(Error::Engine(EngineError::Store(StoreError::Conflict(other)))) => {
                // This event started it before, or another event created the session of this key first.
                let put = self.put_into(network, &other, name, checked).await;
                match put {
                    // The session is somebody else's, so it is not named.
                    Err(Error::Engine(EngineError::Store(StoreError::NoSession(_)))) => Err(
                        Error::Engine(EngineError::Store(StoreError::Conflict(other))),
                    ),
                    put => put,
                }
            }
            Err(error) => Err(error),
        }
    }
}

/// A checked event.
struct CheckedEvent<'a> {
    def: &'a EventDef,
    /// Its id, rendered from its fields.
    id: String,
    /// Its fields, with artifacts replaced by their names.
    fields: Json,
    /// The contents of its artifacts.
    contents: Vec<Content>,
}

impl CheckedEvent<'_> {
    /// Returns the inbox message that carries the event.
    fn message(&self, name: &str) -> Message {
        let event = Wanted::Event {
            event: name.into(),
            fields: self.fields.to_string(),
        };
        Message::from(event).with(&self.contents)
    }
}

/// An event for one session.
#[derive(Clone, Debug)]
pub struct EventMessage {
    /// The message id; the session accepts it once.
    pub id: Name,
    /// The inbox message that carries the event.
    pub message: Message,
    /// The contents of its artifacts. Store them before the message is sent ([`Engine::keep`]).
    ///
    /// [`Engine::keep`]: steersman_runtime::engine::Engine::keep
    pub contents: Vec<Content>,
}

/// Checks an event for one session. A field that is declared as an artifact is an object of `name`, `media_type`, and
/// `text` or `base64`.
///
/// # Errors
/// [`Error::Refused`] if the network declares no such event, or its fields do not fit.
pub fn event_message(
    network: &steersman_machine::network::Network,
    name: &str,
    fields: &Json,
) -> Result<EventMessage, Error> {
    let checked = check(network, name, fields)?;
    Ok(EventMessage {
        id: message_id(&network.name, name, &checked.id),
        message: checked.message(name),
        contents: checked.contents,
    })
}

/// Finds the declaration of an event, checks the fields against it and renders the event's id.
fn check<'a>(
    network: &'a steersman_machine::network::Network,
    name: &str,
    fields: &Json,
) -> Result<CheckedEvent<'a>, Error> {
    let def = network.events.get(name).ok_or_else(|| {
        let known: Vec<&str> = network.events.keys().map(|k| &**k).collect();
        Error::Refused(format!(
            "`{}` has no event `{name}`; it has: {}",
            network.name,
            if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            }
        ))
    })?;
    let named = files::taken_out(&def.fields, fields);
    let (fields, contents) =
        named.map_err(|why| Error::Refused(format!("event `{name}`: {why}")))?;
    fits(def, name, &fields).map_err(Error::Refused)?;
    // The canonical form makes everything derived from the fields, such as the id, equal for equal values.
    let fields = canonical(&fields);
    let id = render(&def.id, name, &fields)?;
    if id.trim().is_empty() {
        let why = format!(
            "event `{name}`: its id (`{}`) is empty, so it could not be distinguished from the next event",
            def.id.source
        );
        return Err(Error::Refused(why));
    }
    Ok(CheckedEvent {
        def,
        id,
        fields,
        contents,
    })
}

fn render(template: &Template, name: &str, fields: &Json) -> Result<String, Error> {
    let names = Names::from_json(json!({ "event": fields }));
    template
        .render(&names)
        .map_err(|e| Error::Refused(format!("event `{name}`: {e}")))
}

/// Replaces the error for a repeated id with other fields by one that explains it.
fn once<T>(name: &str, id: &str, done: Result<T, EngineError>) -> Result<T, Error> {
    done.map_err(|error| match error {
        EngineError::Store(StoreError::Repeated(_)) => Error::Refused(format!(
            "event `{name}` with the id `{id}` was accepted before, with other fields; nothing was done: what says something \
             else needs an id of its own"
        )),
        error => error.into(),
    })
}

/// Returns the message id of an event, the same in a session's inbox and in the event box of the store. It begins with the
/// network's name, because all networks share the box.
fn message_id(network: &str, name: &str, id: &str) -> Name {
    format!("{network} event {name} {id}").into()
}

fn fits(def: &EventDef, name: &str, fields: &Json) -> Result<(), String> {
    let Some(given) = fields.as_object() else {
        return Err(format!("the payload of event `{name}` is not an object"));
    };
    for (field, ty) in &def.fields {
        match given.get(&**field) {
            None if ty.optional || ty.default.is_some() => {}
            None => return Err(format!("event `{name}` lacks the field `{field}`")),
            Some(value) => {
                if let Some(why) = misfit(ty, value) {
                    return Err(format!("event `{name}`: {}", why.under(field)));
                }
            }
        }
    }
    match given
        .keys()
        .find(|key| !def.fields.iter().any(|(field, _)| **field == ***key))
    {
        Some(unknown) => Err(format!("event `{name}` has no field `{unknown}`")),
        None => Ok(()),
    }
}

/// Derives the id of a session from its scope and a text.
fn session_of(scope: &Scope, text: &str) -> SessionId {
    let mut text = text.to_owned();
    if *scope != Scope::default() {
        // The zero byte keeps apart what cannot be a part of a name.
        let subject = scope.subject.as_deref().unwrap_or_default();
        text = format!("{}\0{subject}\0{text}", scope.tenant);
    }
    let digest = Digest::of(text.as_bytes());
    let bytes = digest.0.first_chunk().expect("a digest has 16 bytes");
    session_id(StoreCode::ALONE, bytes)
}
