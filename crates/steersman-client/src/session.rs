//! A session, as everyday use needs it.

use crate::Client;
use crate::call::Given;
use crate::error::Error;
use crate::follow::{Events, Follow};
use crate::generated::{
    Answer, Approve, ArtifactRow, Problem, ProblemCode, Question, Receipt, Reject, Say, Turn,
    TurnOrReceipt, ViewsArtifactQuery, ViewsArtifactsQuery,
};
use serde_json::Value;

/// A session of a server.
#[derive(Clone, Debug)]
pub struct Session {
    client: Client,
    id: String,
    role: Option<String>,
}

impl Session {
    pub(crate) fn new(client: Client, id: &str) -> Self {
        let id = id.to_owned();
        let role = None;
        Self { client, id, role }
    }

    /// Returns the session with a role of the token in which everything is said and decided. Without one it is the token's only
    /// role, otherwise the user.
    #[must_use]
    pub fn acting_as(&self, role: &str) -> Self {
        let role = Some(role.to_owned());
        Self {
            role,
            ..self.clone()
        }
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Says something.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn say(&self, text: &str) -> Result<Receipt, Error> {
        let say = Say {
            text: Some(text.to_owned()),
            role: self.role.clone(),
            ..Say::default()
        };
        let sessions = self.client.sessions();
        sessions
            .say(&self.id, &say, &Given::default())
            .await?
            .receipt()
    }

    /// Says something, and waits until the session settles after it, however long that takes.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn ask(&self, text: &str) -> Result<Turn, Error> {
        let receipt = self.say(text).await?;
        if receipt.line.is_none() {
            self.taken(&receipt.message).await?;
        }
        self.settled().await
    }

    /// Waits until a line takes a message.
    async fn taken(&self, message: &str) -> Result<(), Error> {
        let mut events = self.follow(Follow::default().kinds(&["accepted", "refused"]));
        while let Some(event) = events.next().await {
            let event = event?;
            if event.text("message") != message {
                continue;
            }
            if event.kind == "accepted" {
                break;
            }
            return Err(Error::Problem(Box::new(Problem {
                code: ProblemCode::Refused,
                detail: event.text("why").to_owned(),
                diagnostics: None,
                help: None,
                status: 422,
                title: "The session refused it".to_owned(),
                kind: "urn:steersman:problem:refused".to_owned(),
            })));
        }
        Ok(())
    }

    /// Tells the events of the session.
    pub fn follow(&self, wanted: Follow) -> Events {
        Events::new(self.client.clone(), &self.id, wanted)
    }

    /// Waits until the session settles: it answered, asks, waits, or stopped.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn settled(&self) -> Result<Turn, Error> {
        let settled = Follow::until_settled().kinds(&["settled"]);
        let mut events = self.follow(settled.from("now"));
        let mut last = Value::Null;
        while let Some(event) = events.next().await {
            let event = event?;
            if event.kind == "settled" {
                last = serde_json::to_value(event).unwrap_or_default();
            }
        }
        let told = last.to_string();
        last["session"] = self.id.clone().into();
        let line = events
            .cursor()
            .split('.')
            .next()
            .and_then(|n| n.parse::<u64>().ok());
        last["line"] = line.unwrap_or_default().into();
        serde_json::from_value(last)
            .map_err(|why| Error::invalid(200, "text/event-stream", why, told.as_bytes()))
    }

    /// Lists what the session waits for.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn questions(&self) -> Result<Vec<Question>, Error> {
        let questions = self.client.questions();
        Ok(questions.of_session(&self.id).await?.items)
    }

    /// Allows a held call to run once, with the arguments that were shown. [`QuestionsApi::approve`](crate::QuestionsApi::approve)
    /// may change some of them.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn approve(&self, question: &str) -> Result<Receipt, Error> {
        let approve = Approve {
            role: self.role.clone(),
            ..Approve::default()
        };
        let questions = self.client.questions();
        let given = Given::default();
        questions
            .approve(&self.id, question, &approve, &given)
            .await?
            .receipt()
    }

    /// Refuses a held call. The model reads the reason.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn reject(&self, question: &str, reason: &str) -> Result<Receipt, Error> {
        let reject = Reject {
            role: self.role.clone(),
            reason: Some(reason.to_owned()),
        };
        let questions = self.client.questions();
        let given = Given::default();
        questions
            .reject(&self.id, question, &reject, &given)
            .await?
            .receipt()
    }

    /// Answers a question.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn answer(&self, question: &str, text: &str) -> Result<Receipt, Error> {
        let answer = Answer {
            role: self.role.clone(),
            text: Some(text.to_owned()),
            ..Answer::default()
        };
        let questions = self.client.questions();
        let given = Given::default();
        questions
            .answer(&self.id, question, &answer, &given)
            .await?
            .receipt()
    }

    /// Lists all versions of the artifacts of the current branch.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn artifacts(&self) -> Result<Vec<ArtifactRow>, Error> {
        let query = ViewsArtifactsQuery::default();
        Ok(self.client.views().artifacts(&self.id, &query).await?.items)
    }

    /// Returns the content of an artifact: of its newest version, unless one is named.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn artifact(&self, name: &str, version: Option<u64>) -> Result<Vec<u8>, Error> {
        let query = ViewsArtifactQuery {
            version,
            ..ViewsArtifactQuery::default()
        };
        self.client.views().artifact(&self.id, name, &query).await
    }
}

impl TurnOrReceipt {
    /// Returns the receipt. A turn comes only to a request that waits for one.
    ///
    /// # Errors
    /// It is a turn.
    pub fn receipt(self) -> Result<Receipt, Error> {
        match self {
            Self::Receipt(receipt) => Ok(*receipt),
            Self::Turn(turn) => {
                let why = "a receipt was expected";
                let told = turn.cursor.as_bytes();
                Err(Error::invalid(200, "application/json", why, told))
            }
        }
    }
}
