//! A server in place of a store: its address, its token, and what it answers.

use crate::address::{Address, SessionName};
use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::place::{meant, shortest};
use crate::words::operand;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;
use steersman::views::screen::{Ask, ListAsk, ListScreen, Screen};
use steersman_client::{
    Client, Error, Problem, ProblemCode, SessionsListQuery, ViewsListScreenQuery, ViewsScreenQuery,
};
use url::{Host, Url};

/// Name of the file with the token that `serve` makes for an empty store.
pub(crate) const TOKEN_FILE: &str = "server.token";
/// Name of the variable with the token.
const TOKEN: &str = "STEERSMAN_TOKEN";
/// Name of the variable with the address.
pub(crate) const SERVER: &str = "STEERSMAN_SERVER";

/// The address on which `serve` listens by itself.
pub(crate) const HERE: &str = "http://127.0.0.1:7410";
/// Time for which a request is sent again while no server answers.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time for which a stream of events is opened again, such as while a server is started again.
pub(crate) const RESTART: Duration = Duration::from_secs(10);

/// The commands that work on a server.
const AT_SERVER: &[&str] = &[
    "run",
    "sessions",
    "show",
    "log",
    "context",
    "effects",
    "graph",
    "why",
    "artifacts",
    "memory",
    "diff",
    "pending",
    "send",
    "answer",
    "approve",
    "reject",
    "resolve",
    "cancel",
    "pause",
    "resume",
    "hold",
    "release",
    "retry",
    "fork",
    "join",
    "adopt",
    "rewind",
    "export",
    "ui",
];

/// The commands that need neither a store nor a server.
const ALONE: &[&str] = &[
    "demo",
    "new",
    "check",
    "test",
    "simulate",
    "import",
    "schema",
    "lsp",
    "explain",
    "completions",
    "example_service",
];

/// Returns true if a command works on a server.
pub(crate) fn works_at_server(command: &str) -> bool {
    AT_SERVER.contains(&command)
}

/// Refuses a command that does not work on a server, if one was named. A command that needs no sessions runs as always where only the
/// environment names a server.
pub(crate) fn fits(command: &str, global: &Global) -> Result<(), CommandError> {
    let Some(url) = global.server() else {
        return Ok(());
    };
    let is_typed = std::env::var(SERVER).ok().as_deref() != Some(url);
    let is_alone = ALONE.contains(&command);
    if works_at_server(command) || (is_alone && !is_typed) {
        return Ok(());
    }
    let command = command.replace('_', "-");
    let error = CommandError::usage(if is_alone {
        format!("`{command}` works without a server")
    } else {
        format!("`{command}` works on a store")
    });
    Err(error.hint(if is_typed {
        "leave out --server"
    } else {
        "leave out STEERSMAN_SERVER: env -u STEERSMAN_SERVER steersman ..."
    }))
}

/// A server that a command asks in place of a store.
pub(crate) struct Remote {
    pub(crate) client: Client,
    /// Its address.
    pub(crate) url: String,
}

impl Global {
    /// Returns the address of the server that was named, if one was.
    pub(crate) fn server(&self) -> Option<&str> {
        self.server.as_deref().filter(|url| !url.is_empty())
    }
}

impl Remote {
    /// Returns the server that was named, if one was. Nothing is sent.
    pub(crate) fn of(global: &Global) -> Result<Option<Self>, CommandError> {
        let Some(typed) = global.server() else {
            return Ok(None);
        };
        let (url, is_here) = address(typed)?;
        let token = token(global, is_here)?;
        let client = Client::new(&url, &token)?.patience(PATIENCE);
        Ok(Some(Self { client, url }))
    }

    /// Returns the server that was named, otherwise the one that listens on this computer where `serve` does by itself. Nothing is sent.
    pub(crate) fn or_here(global: &Global) -> Result<Self, CommandError> {
        if let Some(remote) = Self::of(global)? {
            return Ok(remote);
        }
        let token = token(global, true)?;
        let client = Client::new(HERE, &token)?.patience(PATIENCE);
        Ok(Self {
            client,
            url: HERE.to_owned(),
        })
    }

    /// Returns the server with requests that are sent again for this time while it does not answer.
    pub(crate) fn patient(&self, patience: Duration) -> Self {
        Self {
            client: self.client.clone().patience(patience),
            url: self.url.clone(),
        }
    }

    /// Returns the id of the session that a name means.
    pub(crate) async fn session(&self, name: &SessionName) -> Result<String, CommandError> {
        let mut query = SessionsListQuery {
            limit: Some(5),
            ..SessionsListQuery::default()
        };
        match name {
            SessionName::Last => query.limit = Some(1),
            SessionName::Label(label, value) => query.label = Some(format!("{label}:{value}")),
            SessionName::Prefix(prefix) => query.prefix = Some(prefix.clone()),
        }
        let found = self.client.sessions().list(&query).await?.items;
        let found = found.into_iter().map(|row| row.session).collect();
        meant(name, found, String::as_str, &self.url)
    }

    /// Returns a session's id as people type it: its shortest unique beginning.
    pub(crate) async fn short(&self, id: &str) -> Result<String, CommandError> {
        let query = SessionsListQuery {
            prefix: id.get(..6).map(str::to_owned),
            limit: Some(200),
            ..SessionsListQuery::default()
        };
        let alike = self.client.sessions().list(&query).await?.items;
        Ok(shortest(id, alike.iter().map(|row| &*row.session)).to_owned())
    }

    /// Asks for the screen of a command about an address.
    pub(crate) async fn screen<S: Screen>(
        &self,
        address: &Address,
        ask: &Ask,
    ) -> Result<S, CommandError> {
        let session = self.session(&address.session).await?;
        self.screen_of(&session, ask).await
    }

    /// Asks for the screen of a command about a session.
    pub(crate) async fn screen_of<S: Screen>(
        &self,
        session: &str,
        ask: &Ask,
    ) -> Result<S, CommandError> {
        let query = ViewsScreenQuery {
            branch: ask.branch.clone(),
            line: ask.line.clone(),
            of: ask.of.clone(),
            form: ask.form.clone(),
            after: ask.after,
            most: ask.most.map(|most| most as u64),
        };
        let views = self.client.views();
        let answer = views.screen(session, S::NAME, &query).await?;
        self.read(answer)
    }

    /// Asks for the screen of a command about all sessions.
    pub(crate) async fn list<S: ListScreen>(&self, ask: &ListAsk) -> Result<S, CommandError> {
        let query = ViewsListScreenQuery {
            where_: ask.filter.clone(),
            limit: ask.limit.map(|limit| limit as u64),
            by: ask.by.clone(),
            reruns: ask.reruns,
        };
        let answer = self.client.views().list_screen(S::NAME, &query).await?;
        self.read(answer)
    }

    /// Reads an answer of the server.
    pub(crate) fn read<T: DeserializeOwned>(&self, answer: Json) -> Result<T, CommandError> {
        serde_json::from_value(answer).map_err(|why| {
            CommandError::store(format!(
                "the answer of {} has another form than this program reads: {why}",
                self.url
            ))
            .hint("use the version of steersman that serves it")
        })
    }
}

/// Checks the address of a server. Also returns true if it is this computer. A token is sent with every request, so over networks only
/// https is used.
fn address(typed: &str) -> Result<(String, bool), CommandError> {
    let form = "it looks like https://desk.example or http://127.0.0.1:7410";
    let wrong = |why: &str| CommandError::usage(format!("--server: {why}")).hint(form);
    let url = Url::parse(typed).map_err(|_| wrong("this is not the address of a server"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(
            "the address of a server begins with https:// or http://",
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("an address holds no password")
            .hint(format!("the token of the server is given in {TOKEN}")));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("the address of a server ends with its path"));
    }
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => return Err(wrong("this names no computer")),
    };
    if url.scheme() == "http" && !is_here {
        return Err(CommandError::usage(
            "--server: over http the token could be read by others on the way; http is for this computer alone",
        )
        .hint("use https://, or a tunnel: ssh -L 7410:127.0.0.1:7410 HOST, then http://127.0.0.1:7410"));
    }
    let url = url.as_str().trim_end_matches('/').to_owned();
    Ok((url, is_here))
}

/// The file that the token was read from.
static FROM: OnceLock<String> = OnceLock::new();

/// Returns the token: that of the environment. For a server on this computer, also that of the file next to the store.
fn token(global: &Global, is_here: bool) -> Result<String, CommandError> {
    if let Some(token) = std::env::var_os(TOKEN).filter(|token| !token.is_empty()) {
        return token
            .into_string()
            .map_err(|_| CommandError::usage(format!("{TOKEN} is not plain text")));
    }
    let make = "`steersman token new`, where the server runs, makes one";
    if !is_here {
        return Err(CommandError::usage(format!(
            "there is no token for the server: {TOKEN} is not set"
        ))
        .hint(make));
    }
    let store = locate::store(global.store.as_deref())?;
    let file = crate::store::folder(&store)?.map(|folder| folder.join(TOKEN_FILE));
    let read = |file: &Path| match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommandError::usage(format!(
            "`{}`: {error}",
            locate::shown(file)
        ))),
    };
    if let Some(token) = file.as_deref().map(read).transpose()?.flatten() {
        let _ = FROM.set(file.as_deref().map_or_else(String::new, locate::shown));
        return Ok(token);
    }
    let place = file.map_or_else(String::new, |file| {
        format!(", and there is no `{}`", locate::shown(&file))
    });
    Err(CommandError::usage(format!(
        "there is no token for the server: {TOKEN} is not set{place}"
    ))
    .hint(make)
    .hint("the file is next to the store of the server: --store FILE names it"))
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        match error {
            Error::Problem(problem) => Self::of_problem(&problem),
            Error::Address(why) => Self::usage(why),
            Error::Unreachable { url, why } => {
                Self::store(format!("no server answers at {url} ({why})"))
                    .hint("begin one with `steersman serve`, or name another: --server URL")
            }
            other => Self::store(other.to_string()),
        }
    }
}

impl CommandError {
    /// Returns the error of a problem that the server told, with the exit code that a store would give.
    fn of_problem(problem: &Problem) -> Self {
        use ProblemCode as Code;
        let exit = match problem.code {
            Code::Body
            | Code::Query
            | Code::Cursor
            | Code::Id
            | Code::RoleNotYours
            | Code::Session
            | Code::Branch
            | Code::Line
            | Code::Question
            | Code::Effect
            | Code::Artifact
            | Code::Definition
            | Code::Job
            | Code::Search
            | Code::Memory
            | Code::Repeated
            | Code::TooLarge
            | Code::Media
            | Code::Refused => Exit::Usage,
            Code::FaultyDefinition => Exit::Definition,
            Code::Internal | Code::Failed => Exit::Failed,
            _ => Exit::Store,
        };
        let error = Self::new(exit, problem.detail.clone());
        match problem.code {
            Code::Token => error
                .hint(match FROM.get() {
                    Some(file) => {
                        format!("it is that of `{file}`; {TOKEN} or --store names another")
                    }
                    None => format!("it is that of {TOKEN}"),
                })
                .hint("`steersman token new`, where the server runs, makes one"),
            Code::Memory => error.hint(format!(
                "{} lists what there is",
                operand("steersman memory")
            )),
            Code::Session => error.hint("`steersman sessions` lists those that there are"),
            Code::Path => error
                .hint("--server names the server alone, without a path such as `/v1`")
                .hint("or this server is older than this program: use the same version"),
            _ => {
                // Advice that names a route is for programs.
                let help = problem.help.as_deref().unwrap_or_default().lines();
                let help = help.filter(|line| !line.starts_with("GET ") && !line.is_empty());
                help.fold(error, Self::hint)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_in_clear_to_this_computer_alone() {
        for (typed, expected) in [
            (
                "http://127.0.0.1:7410",
                Some(("http://127.0.0.1:7410", true)),
            ),
            ("http://127.9.9.9:1/", Some(("http://127.9.9.9:1", true))),
            (
                "http://localhost:7410/",
                Some(("http://localhost:7410", true)),
            ),
            ("http://[::1]:7410", Some(("http://[::1]:7410", true))),
            (
                "https://desk.example",
                Some(("https://desk.example", false)),
            ),
            (
                "https://desk.example/a/",
                Some(("https://desk.example/a", false)),
            ),
            ("http://desk.example", None),
            ("http://127.0.0.1.example", None),
            ("http://10.0.0.1:7410", None),
            ("http://0.0.0.0:7410", None),
            ("ftp://127.0.0.1", None),
            ("127.0.0.1:7410", None),
            ("https://stm_x_y@desk.example", None),
            ("https://desk.example?a=b", None),
            ("", None),
        ] {
            let read = address(typed).ok();
            let read = read.as_ref().map(|(url, is_here)| (&**url, *is_here));
            assert_eq!(read, expected, "{typed}");
        }
        let error = address("https://stm_x_secret@desk.example").unwrap_err();
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }
}
