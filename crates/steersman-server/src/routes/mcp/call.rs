//! A call of a tool: it says something to a session, or goes on with one, and waits for the end of the turn.

use super::ARTIFACT;
use super::tools::{Arguments, Input};
use crate::Permission;
use crate::ask::{Asked, KEY};
use crate::caller::Caller;
use crate::conversation::Went;
use crate::problem::{Code, Problem};
use crate::protocol::mcp::{Call, Decision, Form, Outcome, Progress, decision, form};
use crate::protocol::turn::{MCP, Open};
use crate::token::random;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, ContentBlock,
    ElicitRequest, ElicitRequestParams, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, MetaObject, ProgressNotificationParam, ProtocolVersion, RequestMetaObject,
    Resource, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use serde_json::{Value, json};
use std::time::Duration;
use steersman::machine::stored::ids::{Line, Name};
use steersman::runtime::inbox::{Message as Boxed, Wanted};
use steersman::runtime::store::SessionId;
use steersman::runtime::trace::TraceParent;
use steersman::{Act, Events, Network, PendingId, PendingKind, StartOptions};
use tokio::time::{Instant, timeout_at};

/// Maximum time for which a call waits. Many clients give a call up after a minute.
const WAIT: Duration = Duration::from_secs(50);
/// Maximum time for which a call waits for a person who has a form before them.
const PERSON: Duration = Duration::from_mins(10);
/// Maximum number of times that one call asks the person at the client.
const ROUNDS: usize = 16;
/// The key of `_meta` under which a call that is sent again is the same call.
const IDEMPOTENCY: &str = "dev.steersman/idempotency-key";
/// The key of `_meta` with the tokens that the turn used.
const USAGE: &str = "dev.steersman/usage";

/// Carries out a call.
pub(super) async fn call(
    caller: &Caller,
    network: Network,
    entry: Name,
    params: CallToolRequestParams,
    cx: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, Problem> {
    let input = Input::of(network.checked().agent(&entry));
    let input = input.read(params.arguments.as_ref())?;
    let calling = Calling {
        caller,
        asked: asked(&cx.meta)?,
        seal: seal(caller, &params).await?,
        attaches: input.session.is_some() && input.message.is_none(),
        until: Instant::now() + patience(caller),
        network,
        entry,
        cx,
    };
    let (session, line, after) = match &params.request_state {
        Some(state) => {
            let responses = params.input_responses.unwrap_or_default();
            let (session, line) = calling.opened(state).await?;
            let acts = calling.decided(&session, &responses).await?;
            if acts.is_empty() {
                return calling.ends(session, line).await;
            }
            let after = calling.decide(&session, acts).await?;
            (session, line, after.max(line))
        }
        None => match calling.placed(input).await? {
            (session, Some(Went::Taken(line))) => (session, line, line),
            (session, Some(Went::Waits(why))) => {
                let open = caller.open(&session).await?;
                let outcome = calling.form(&session).waits(&why, &open);
                return Ok(result(&outcome).into());
            }
            (session, None) => return Ok(result(&calling.form(&session).works()).into()),
        },
    };
    calling.answers(session, line, after).await
}

/// A call that is carried out.
struct Calling<'a> {
    caller: &'a Caller,
    network: Network,
    entry: Name,
    asked: Asked,
    /// The digest by which a request is recognised that goes on with another one.
    seal: blake3::Hash,
    cx: &'a RequestContext<RoleServer>,
    /// The time until which the call waits, unless a person is asked meanwhile.
    until: Instant,
    /// True if the call says nothing, and follows whatever is said in the session last.
    attaches: bool,
}

/// A turn that a call follows.
struct Following {
    call: Call,
    events: Events,
    /// Number of the last progress that the client has.
    told: f64,
}

impl Calling<'_> {
    fn form(&self, session: &SessionId) -> Form {
        Form {
            session: session.clone(),
            roles: self.caller.deciding(),
            page: self.caller.page(session),
        }
    }

    /// Says what the arguments say, in the session that they name or in a new one. A call that says nothing finds the last turn. `None`
    /// if no process has taken the message so far.
    async fn placed(&self, input: Arguments) -> Result<(SessionId, Option<Went>), Problem> {
        let caller = self.caller;
        // The result tells what the session says. A token that does not allow the call learns nothing of it, not even whether it is there.
        caller.needs(Permission::Read)?;
        if input.message.is_some() {
            caller.needs(Permission::Write)?;
        }
        let Some(session) = &input.session else {
            return self.begins(input).await;
        };
        let session = caller.of_definition(&self.network, session).await?;
        let Some(message) = &input.message else {
            let went = match caller.hears(&session, self.until).await {
                Ok(()) => Some(Went::Taken(caller.last(&session).await?)),
                Err(problem) if problem.code() == Code::Late.told().0 => None,
                Err(problem) => return Err(problem),
            };
            return Ok((session, went));
        };
        let id = self.message_id(&session).await?;
        if self.asked.key.is_some()
            && let Some(line) = caller.took(&session, &id).await?
        {
            return Ok((session, Some(Went::Taken(line))));
        }
        let (act, says) = self.says(&session, message).await?;
        let acts = vec![(id, act)];
        match caller.takes(&session, acts, says, &self.asked).await {
            Ok(went) => Ok((session, Some(went))),
            Err(problem) if problem.code() == Code::Late.told().0 => Ok((session, None)),
            Err(problem) => Err(problem),
        }
    }

    /// Starts a session.
    async fn begins(&self, input: Arguments) -> Result<(SessionId, Option<Went>), Problem> {
        let caller = self.caller;
        caller.needs(Permission::Write)?;
        let message = self.message_id("").await?;
        let fields = json!({ "entry": self.entry, "message": input.message, "args": input.args });
        let same = Boxed::from(Wanted::Event {
            event: "mcp".into(),
            fields: fields.to_string(),
        });
        let by = caller.by(None)?;
        let options = StartOptions {
            agent: Some(self.entry.clone()),
            args: input.args,
            say: input.message,
            message_id: Some(message.as_str().into()),
            event: Some(same),
            by: by.named().cloned(),
            ..StartOptions::default()
        };
        let (session, _) = caller.begin(&self.network, &self.asked, options).await?;
        let line = caller.decided(&session, Line::NONE, &message, self.until);
        let line = line.await?;
        Ok((session, line.map(Went::Taken)))
    }

    /// Returns the act that says something: the answer of the only open question to the client, otherwise a message. The second is true
    /// for a message.
    async fn says(&self, session: &str, message: &str) -> Result<(Act, bool), Problem> {
        let (caller, roles) = (self.caller, self.caller.deciding());
        let open = caller.open(session).await?;
        let mut mine = (open.iter())
            .filter(|open| open.kind == PendingKind::Question && open.role(&roles).is_some());
        if let (Some(only), None) = (mine.next(), mine.next()) {
            let by = caller.by(only.role(&roles).map(|role| &**role))?;
            return Ok((Act::answer(only.id, message, by), false));
        }
        let by = caller.by(None)?;
        Ok((Act::say(message, Some(by), None), true))
    }

    /// Returns the id of a message that begins a turn: the same for the same key in the same session.
    async fn message_id(&self, session: &str) -> Result<String, Problem> {
        let Some(key) = &self.asked.key else {
            return Ok(format!("{MCP}{}", random::<16>()));
        };
        let over = json!([session, key]).to_string();
        let digest = self.caller.keyed("mcp message", &over).await?;
        Ok(format!("{MCP}{}", &digest.to_hex()[..32]))
    }

    /// Follows a turn to its end, and asks the person at the client what that person may decide.
    async fn answers(
        &self,
        session: SessionId,
        mut line: Line,
        mut after: Line,
    ) -> Result<CallToolResponse, Problem> {
        let (mut told, mut until) = (0.0, self.until);
        for round in 0.. {
            let mut following = self.follows(&session, line, after, told).await?;
            self.waits(&mut following, until).await?;
            told = following.told;
            if self.attaches && round < ROUNDS {
                // The message that waited was said meanwhile.
                let last = self.caller.last(&session).await?;
                if last > line {
                    (line, after) = (last, last);
                    continue;
                }
            }
            let forms = following.call.forms();
            if forms.is_empty() || round == ROUNDS || !self.has_forms() {
                return Ok(result_of(&session, &following.call).into());
            }
            if self.is_stateless() {
                return Ok(self.wants(&session, line, &forms).into());
            }
            let mut acts = Vec::new();
            for open in forms {
                let Some(given) = self.asks(open).await else {
                    break;
                };
                acts.extend(self.act(&session, open, &given).await?);
            }
            if acts.is_empty() {
                return Ok(result_of(&session, &following.call).into());
            }
            after = self.decide(&session, acts).await?.max(after);
            until = Instant::now() + patience(self.caller);
        }
        unreachable!("the last round returns")
    }

    /// Returns the result of a turn as it stands, and asks nobody.
    async fn ends(&self, session: SessionId, line: Line) -> Result<CallToolResponse, Problem> {
        let mut following = self.follows(&session, line, line, 0.0).await?;
        self.waits(&mut following, self.until).await?;
        Ok(result_of(&session, &following.call).into())
    }

    async fn follows(
        &self,
        session: &SessionId,
        line: Line,
        after: Line,
        told: f64,
    ) -> Result<Following, Problem> {
        let caller = self.caller;
        let turn = caller.turn(&self.network, session, line).await?;
        Ok(Following {
            call: Call::new(self.form(session), turn),
            events: caller.follows(session, line).settled_after(after),
            told,
        })
    }

    /// Waits for the end of a turn, until a time at most, and tells its progress. A client that went away ends the waiting alone.
    async fn waits(&self, following: &mut Following, until: Instant) -> Result<(), Problem> {
        while following.call.turn().end.is_none() {
            let next = tokio::select! {
                next = timeout_at(until, following.events.next()) => next,
                () = self.cx.ct.cancelled() => return Ok(()),
                () = self.caller.server.stopping().cancelled() => return Ok(()),
            };
            let Ok(Some(event)) = next else { return Ok(()) };
            for progress in following.call.event(&event?) {
                if progress.progress > following.told {
                    following.told = progress.progress;
                    self.tells(progress).await;
                }
            }
        }
        Ok(())
    }

    async fn tells(&self, progress: Progress) {
        if let Some(token) = self.cx.meta.get_progress_token() {
            let told = ProgressNotificationParam::new(token, progress.progress);
            let told = told.with_message(progress.message);
            // Nobody may listen any more.
            self.cx.peer.notify_progress(told).await.ok();
        }
    }

    /// Returns true if the client shows forms to a person.
    fn has_forms(&self) -> bool {
        let capabilities = self.cx.client_capabilities();
        let forms = capabilities.and_then(|all| all.elicitation);
        forms.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }

    /// Returns true if each request of the client stands alone, so that the server cannot ask in between.
    fn is_stateless(&self) -> bool {
        self.cx.protocol_version() >= Some(ProtocolVersion::V_2026_07_28)
    }

    /// Returns the result that asks the client for the answers to these questions, with which it sends the same call again.
    fn wants(&self, session: &str, line: Line, forms: &[&Open]) -> InputRequiredResult {
        let requests = forms.iter().filter_map(|open| {
            let request = InputRequest::Elicitation(ElicitRequest::new(elicited(open)?));
            Some((open.id.to_string(), request))
        });
        let requests: InputRequests = requests.collect();
        let state = format!("{session}/{line}/{}", self.sealed(session, line));
        InputRequiredResult::new(Some(requests), Some(state))
    }

    /// Returns the digest that ties a place of a session to this call.
    fn sealed(&self, session: &str, line: Line) -> String {
        let mut over = blake3::Hasher::new_keyed(self.seal.as_bytes());
        over.update(format!("{session}/{line}").as_bytes());
        over.finalize().to_hex()[..32].to_owned()
    }

    /// Reads the state with which a call is sent again: the session and the line of the turn.
    async fn opened(&self, state: &str) -> Result<(SessionId, Line), Problem> {
        let wrong = || {
            let why = "`requestState` does not belong to this call";
            Problem::new(Code::Body, why)
                .help("send the arguments and the state as they were; or send `session` alone")
        };
        let mut parts = state.split('/');
        let (Some(session), Some(line), Some(seal), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        let line = Line(line.parse().map_err(|_| wrong())?);
        // The seal holds nothing secret that a slow comparison could give away: it is keyed by the store.
        if seal != self.sealed(session, line) {
            return Err(wrong());
        }
        let session = self.caller.of_definition(&self.network, session).await?;
        Ok((session, line))
    }

    /// Asks the person at the client over the connection. `None` if there is no answer.
    async fn asks(&self, open: &Open) -> Option<Value> {
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(elicited(open)?));
        let options = PeerRequestOptions::with_timeout(PERSON);
        let sent = self.cx.peer.send_request_with_option(request, options);
        let answered = async { sent.await.ok()?.await_response().await.ok() };
        let answer = tokio::select! {
            answer = answered => answer?,
            () = self.cx.ct.cancelled() => return None,
            () = self.caller.server.stopping().cancelled() => return None,
        };
        match answer {
            ClientResult::ElicitResult(given) => serde_json::to_value(given).ok(),
            _ => None,
        }
    }

    /// Returns the acts of what a person gave in forms.
    async fn decided(
        &self,
        session: &str,
        responses: &InputResponses,
    ) -> Result<Vec<(String, Act)>, Problem> {
        let open = self.caller.open(session).await?;
        let mut acts = Vec::new();
        for (id, given) in responses {
            let id: Option<PendingId> = id.parse().ok();
            // A question that is not asked any more was decided elsewhere.
            if let Some(open) = open.iter().find(|open| Some(open.id) == id) {
                acts.extend(self.act(session, open, given).await?);
            }
        }
        Ok(acts)
    }

    /// Returns the act of what a person gave in a form, with its id: the same for the same decision.
    async fn act(
        &self,
        session: &str,
        open: &Open,
        given: &Value,
    ) -> Result<Option<(String, Act)>, Problem> {
        let caller = self.caller;
        caller.needs(Permission::Decide)?;
        let roles = caller.deciding();
        let (Some(role), Some(decision)) = (open.role(&roles), decision(open, given)) else {
            return Ok(None);
        };
        let over = format!("{session} {} {decision:?}", open.id);
        let digest = caller.keyed("mcp decision", &over).await?;
        let by = caller.by(Some(role))?;
        let act = match decision {
            Decision::Approve => Act::approve(open.id, by),
            Decision::Reject(reason) => Act::reject(open.id, reason.as_deref(), by),
            Decision::Answer(text) => Act::answer(open.id, &text, by),
        };
        Ok(Some((format!("mcp-form/{}", &digest.to_hex()[..32]), act)))
    }

    /// Carries out decisions. Returns the line that took the last one, or the last line of the session if somebody else decided meanwhile.
    async fn decide(&self, session: &str, acts: Vec<(String, Act)>) -> Result<Line, Problem> {
        let caller = self.caller;
        match caller.takes(session, acts, false, &self.asked).await {
            Ok(Went::Taken(line)) => Ok(line),
            Err(problem) if problem.code() != Code::Refused.told().0 => Err(problem),
            Ok(Went::Waits(_)) | Err(_) => {
                Ok(caller.steersman.engine().store().head(session).await?)
            }
        }
    }
}

/// Returns the time for which a call waits.
fn patience(caller: &Caller) -> Duration {
    let limits = &caller.server.options().limits;
    WAIT.min(limits.request.mul_f64(0.8))
}

/// Returns the request for a form.
fn elicited(open: &Open) -> Option<ElicitRequestParams> {
    let (message, schema) = form(open)?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: serde_json::from_value(schema).ok()?,
    })
}

/// Reads what the metadata of a request says: a key that recognises a repetition, and the trace that it belongs to.
fn asked(meta: &RequestMetaObject) -> Result<Asked, Problem> {
    let key = match meta.get(IDEMPOTENCY) {
        None | Some(Value::Null) => None,
        Some(Value::String(key)) if (1..=KEY).contains(&key.len()) => Some(key.clone()),
        Some(_) => {
            let why = format!("`_meta[\"{IDEMPOTENCY}\"]` is a text of 1 to {KEY} bytes");
            return Err(Problem::new(Code::Body, why));
        }
    };
    Ok(Asked {
        key,
        trace: meta.get_traceparent().and_then(TraceParent::parse),
        ..Asked::default()
    })
}

/// Returns the digest of a call: its tool and its arguments.
async fn seal(caller: &Caller, params: &CallToolRequestParams) -> Result<blake3::Hash, Problem> {
    let arguments = params.arguments.clone().map(Value::Object);
    let arguments = steersman::machine::values::types::canonical(&arguments.unwrap_or_default());
    let over = json!([params.name, arguments]).to_string();
    caller.keyed("mcp call", &over).await
}

/// Returns the result of a turn, with links to what it made.
fn result_of(session: &str, call: &Call) -> CallToolResult {
    let mut result = result(&call.outcome());
    result.content.extend(call.artifacts().iter().map(|made| {
        let link = Resource::new(format!("{ARTIFACT}{session}/{}", made.name), &*made.name);
        let link = link.with_mime_type(&*made.media).with_size(made.len);
        ContentBlock::resource_link(link)
    }));
    let usage = &call.turn().usage;
    let mut meta = MetaObject::new();
    meta.insert(
        USAGE.to_owned(),
        json!({
            "input_tokens": usage.input,
            "cached_tokens": usage.cached,
            "output_tokens": usage.output,
            "reasoning_tokens": usage.reasoning,
        }),
    );
    result.meta = Some(meta);
    result
}

fn result(outcome: &Outcome) -> CallToolResult {
    let texts = [&outcome.text, &outcome.handle].into_iter();
    let texts = texts.filter(|text| !text.is_empty());
    let texts = texts.map(|text| ContentBlock::text(text.clone())).collect();
    let mut result = if outcome.is_error {
        CallToolResult::error(texts)
    } else {
        CallToolResult::success(texts)
    };
    result.structured_content = Some(outcome.structured.clone());
    result
}
