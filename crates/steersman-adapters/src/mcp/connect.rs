//! The identity of a connection to a server, and how a connection is made.

use super::access::{Access, Grant};
use super::client::{Client, Watched};
use super::outcome::causes;
use super::pipe::{Pipe, Said};
use super::stream::Heard;
use super::{Live, NoConnection};
use crate::command::{Visible, text};
use crate::masked::Mask;
use crate::transport::Clients;
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ErrorCode, ProtocolVersion};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, RoleClient};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use steersman_machine::network::{McpAt, McpDef};
use steersman_machine::stored::codes::Code;
use steersman_machine::values::expression::{Scope, Template};
use steersman_runtime::Env;
use steersman_runtime::store::Scope as Part;
use tokio::process::Command;

/// Number of connections made in this process.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// Variables that a server's process inherits, in addition to those of its definition: what programs need to run, and nothing
/// secret.
const PASSED: [&str; 8] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TMPDIR",
];

/// Identity of a connection: address or program, and the credentials. Equal values share a connection. Holds secrets; never
/// stored, never shown.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Http {
        url: String,
        headers: Vec<(String, String)>,
        /// The sign-in whose tokens the connection uses.
        grant: Option<Grant>,
    },
    Process {
        argv: Vec<String>,
        env: Vec<(String, String)>,
        folder: PathBuf,
    },
}

impl Place {
    /// Opens the templates of a server's definition. Errors contain names and the kind of error, no values.
    pub(super) fn of(
        server: &McpDef,
        (scope, part): (&dyn Scope, &Part),
        folder: &Path,
        process: &Env,
    ) -> Result<Self, String> {
        match &server.at {
            McpAt::Http {
                url,
                headers,
                oauth,
            } => Ok(Self::Http {
                url: url
                    .render_url(scope)
                    .map_err(|error| format!("`url`: {error}"))?,
                headers: texts("headers", headers, scope)?,
                grant: oauth
                    .as_ref()
                    .map(|oauth| Grant::of(&server.name, oauth, (scope, part)))
                    .transpose()?,
            }),
            McpAt::Command { argv, env } => {
                let mut words = Vec::new();
                for (index, template) in argv.iter().enumerate() {
                    // Other users can read a program's arguments, so secrets must not be in them.
                    let word = text(template, &Visible(scope))
                        .map_err(|error| format!("`command[{index}]`: {error}"))?;
                    words.extend(word);
                }
                let mut all: Vec<(String, String)> = PASSED
                    .iter()
                    .filter_map(|name| Some(((*name).to_owned(), process(name)?)))
                    .collect();
                all.extend(texts("env", env, scope)?);
                Ok(Self::Process {
                    argv: words,
                    env: all,
                    folder: folder.to_owned(),
                })
            }
        }
    }

    /// Connects, and initializes the session as the protocol requires.
    pub(super) async fn connect(
        &self,
        (clients, access): (&Clients, Option<Arc<Access>>),
        limit: Duration,
        mask: &Mask,
    ) -> Result<Live, NoConnection> {
        if let Some(access) = &access {
            access.begins();
        }
        let with = (clients, &access);
        let (said, changes) = (Said::default(), Arc::<AtomicU64>::default());
        let greets = async {
            let by = ClientLifecycleMode::Initialize;
            let greeted = self.greets(with, (&said, &changes), by).await?;
            if !greeted.as_ref().is_err_and(wants_no_greeting) {
                return Ok(greeted);
            }
            let by = ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            };
            let found = self.greets(with, (&said, &changes), by).await?;
            // The first error says more if the server does not speak this version either.
            Ok::<_, NoConnection>(if found.is_ok() { found } else { greeted })
        };
        let Ok(service) = tokio::time::timeout(limit, greets).await else {
            let tail = said.last_words(mask).await;
            let message = format!(
                "the server did not greet within {limit:?} (`start_timeout` allows more){tail}"
            );
            return Err(NoConnection {
                message: mask.first(&message, 4_000),
                again: Some(0),
                code: Code::Failed,
            });
        };
        match service? {
            Ok(service) => Ok(Live {
                service,
                said,
                number: CONNECTIONS.fetch_add(1, Ordering::Relaxed),
                changes,
                access,
            }),
            Err(error) => Err(match access.as_deref().and_then(Access::lack) {
                Some(lack) => NoConnection {
                    code: lack.code(),
                    again: (!lack.is_of_person).then_some(0),
                    message: mask.first(&lack.message, 4_000),
                },
                None => no_greeting(&error, &said, mask).await,
            }),
        }
    }
}

type Greeted = Result<RunningService<RoleClient, Client>, ClientInitializeError>;

impl Place {
    /// Opens a transport, and begins the conversation in this way.
    async fn greets(
        &self,
        (clients, access): (&Clients, &Option<Arc<Access>>),
        (said, changes): (&Said, &Arc<AtomicU64>),
        by: ClientLifecycleMode,
    ) -> Result<Greeted, NoConnection> {
        let client = Client::default();
        Ok(match self {
            Self::Http { url, headers, .. } => {
                let with = (clients, access.clone());
                let transport = http(url, headers, with).map_err(permanent)?;
                let watched = Watched::new(transport, changes.clone(), &client);
                rmcp::serve_client_with_lifecycle(client, watched, by).await
            }
            Self::Process { argv, env, folder } => {
                let command = command(argv, env, folder).map_err(permanent)?;
                let pipe = Pipe::start(command, said.clone()).map_err(permanent)?;
                let watched = Watched::new(pipe, changes.clone(), &client);
                rmcp::serve_client_with_lifecycle(client, watched, by).await
            }
        })
    }
}

/// Returns true if a server refused the greeting in a way that servers do which speak only versions without one (from 2026-07-28
/// on).
fn wants_no_greeting(error: &ClientInitializeError) -> bool {
    let ClientInitializeError::JsonRpcError(error) = error else {
        return false;
    };
    matches!(
        error.code,
        ErrorCode::METHOD_NOT_FOUND
            | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
            | ErrorCode::INVALID_REQUEST
            | ErrorCode::INVALID_PARAMS
    )
}

/// Makes the reason for a fault that another attempt would not mend.
fn permanent(message: String) -> NoConnection {
    NoConnection {
        message,
        again: None,
        code: Code::Failed,
    }
}

/// Returns the reason why a session could not be initialized. No tool was called yet.
async fn no_greeting(error: &ClientInitializeError, said: &Said, mask: &Mask) -> NoConnection {
    let tail = said.last_words(mask).await;
    let message = match error {
        ClientInitializeError::ConnectionClosed(_) => {
            format!("the server ended before it greeted{tail}")
        }
        // The end of the process may be noticed by a failed write or by the end of its output.
        ClientInitializeError::TransportError { error, .. }
            if error.error.is::<std::io::Error>() =>
        {
            format!("the server ended before it greeted{tail}")
        }
        ClientInitializeError::TransportError { error, .. } => {
            format!("no connection: {}{tail}", causes(&*error.error, mask))
        }
        ClientInitializeError::JsonRpcError(error) => {
            format!("the server refused the greeting: {}{tail}", error.message)
        }
        other => format!("the server does not greet as the protocol requires: {other}{tail}"),
    };
    NoConnection {
        message: mask.first(&message, 4_000),
        again: Some(0),
        code: Code::Failed,
    }
}

fn http(
    url: &str,
    headers: &[(String, String)],
    (clients, access): (&Clients, Option<Arc<Access>>),
) -> Result<StreamableHttpClientTransport<Heard>, String> {
    let parsed =
        Url::parse(url).map_err(|error| format!("`url` is not a valid address: {error}"))?;
    if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
        return Err("`url` begins with neither http:// nor https://".to_owned());
    }
    let client = clients.of(&parsed)?;
    // A server that forgot the session may have done the request: the library must not send it again.
    let mut config =
        StreamableHttpClientTransportConfig::with_uri(url).reinit_on_expired_session(false);
    for (name, value) in headers {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`headers.{name}` is not a valid name of a header"))?;
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("`headers.{name}`: the value is not allowed in a header"))?;
        value.set_sensitive(true);
        config.custom_headers.insert(key, value);
    }
    Ok(StreamableHttpClientTransport::with_client(
        Heard { client, access },
        config,
    ))
}

fn command(argv: &[String], env: &[(String, String)], folder: &Path) -> Result<Command, String> {
    let (program, words) = argv.split_first().ok_or("`command` names no program")?;
    let mut command = if program.contains('/') {
        Command::new(folder.join(program))
    } else {
        Command::new(program)
    };
    if let Some((name, _)) = env.iter().find(|(_, value)| value.contains('\0')) {
        return Err(format!("`env.{name}`: the value holds a zero byte"));
    }
    command
        .args(words)
        .current_dir(folder)
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    Ok(command)
}

/// Renders values by name; unset values are left out.
fn texts(
    field: &str,
    templates: &[(String, Template)],
    scope: &dyn Scope,
) -> Result<Vec<(String, String)>, String> {
    let mut all = Vec::new();
    for (name, template) in templates {
        let value = text(template, scope).map_err(|error| format!("`{field}.{name}`: {error}"))?;
        all.extend(value.map(|value| (name.clone(), value)));
    }
    Ok(all)
}
