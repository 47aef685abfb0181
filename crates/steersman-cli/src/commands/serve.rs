//! `serve`: serves the sessions of a store over HTTP, and drives them.

use crate::cli::{Drive, Global};
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const LISTED: &str = "Serve the sessions of a store over HTTP, and drive them";

/// Serve the sessions of a store over HTTP, and drive them.
///
/// If the store has no token, the server makes one that allows everything, and writes it to `server.token` in the folder of the store. SIGHUP
/// makes it read the definitions again; sessions keep the one that they began under.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// The definitions whose sessions may be started [default: the definition here, if there is one].
    #[arg(value_name = "DEFINITION")]
    definitions: Vec<PathBuf>,
    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7410")]
    listen: SocketAddr,
    /// A name under which the server is reached, besides those of this computer.
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// A web page that may send requests, such as `https://desk.example`.
    #[arg(long, value_name = "ORIGIN")]
    origin: Vec<String>,
    /// A network that webhooks may reach although it is not public, such as `10.1.0.0/16`.
    #[arg(long, value_name = "CIDR")]
    webhooks_may_reach: Vec<String>,
    /// Time for which the server waits at its end for effects that have begun and must not be repeated.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = crate::words::duration)]
    drain: Duration,
    /// Show metrics at this address, as `GET /metrics` in the OpenMetrics format. They need no token.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Open the console in a browser. The address has a code in place of a token.
    #[arg(long)]
    open: bool,
    /// Serve the console from a folder, to work on it; `none` serves no console.
    #[arg(long, value_name = "DIR|none")]
    console: Option<PathBuf>,
    #[command(flatten)]
    drive: Drive,
}

#[cfg(not(feature = "serve"))]
pub(crate) async fn run(
    args: ServeArgs,
    _global: &Global,
    _printer: &Printer,
) -> Result<Exit, CommandError> {
    drop(args);
    Err(
        CommandError::usage("this program was built without its server")
            .hint("build it with its default features"),
    )
}

#[cfg(feature = "serve")]
pub(crate) use with_server::{paths, read, run, trouble};

#[cfg(feature = "serve")]
mod with_server {
    use super::{CommandError, Exit, Global, Printer, ServeArgs};
    use crate::browser;
    use crate::commands::check;
    use crate::commands::run_all::erased;
    use crate::locate;
    use crate::place::Place;
    use crate::printer::{dim, yellow};
    use crate::remote::{HERE, TOKEN_FILE};
    use crate::words::count;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use serde_json::json;
    use std::collections::BTreeSet;
    use std::io::Write as _;
    use std::net::SocketAddr;
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use steersman::adapters::webhook::{Network as Reachable, Reach};
    use steersman::runtime::tap::Tap;
    use steersman::{Happened, Network, Scope};
    use steersman_machine::stored::by::USER;
    use steersman_machine::stored::ids::Name;
    use steersman_server::{
        Console, Limits, Metrics, NewToken, Options, Permission, Server, make_token, serve,
        serve_metrics,
    };
    use tokio::net::{TcpListener, TcpSocket};
    use tokio::signal::unix::{Signal, SignalKind, signal};
    use tokio::time::timeout;

    /// Number of files that the store, tools and webhooks may have open. Connections of clients leave them to these.
    const OTHER_FILES: u64 = 512;

    /// The signals of a server.
    struct Signals {
        int: Signal,
        term: Signal,
        hup: Signal,
    }

    impl Signals {
        fn listen() -> std::io::Result<Self> {
            Ok(Self {
                int: signal(SignalKind::interrupt())?,
                term: signal(SignalKind::terminate())?,
                hup: signal(SignalKind::hangup())?,
            })
        }

        /// Waits for a signal. Returns true if it is a wish to stop, false if it is one to read the definitions again.
        async fn next(&mut self) -> bool {
            tokio::select! {
                _ = self.int.recv() => true,
                _ = self.term.recv() => true,
                _ = self.hup.recv() => false,
            }
        }

        /// Waits for a wish to stop.
        async fn stop(&mut self) {
            while !self.next().await {}
        }
    }

    pub(crate) async fn run(
        args: ServeArgs,
        global: &Global,
        printer: &Printer,
    ) -> Result<Exit, CommandError> {
        is_named(&args)?;
        let webhooks_may_reach = reach(&args.webhooks_may_reach)?;
        let console = console(&args)?;
        let paths = paths(&args.definitions);
        let definitions = read(&paths, printer)?;
        let mut signals = Signals::listen()?;
        let metrics = args.metrics.map(|address| (address, Metrics::new()));
        let tap = metrics.clone().map(|(_, metrics)| metrics as Arc<dyn Tap>);
        let place = Place::to_serve(global, &args.drive, &definitions, tap).await?;
        let listener = bound(args.listen, "--listen")?;
        let address = listener.local_addr()?;
        let token = first_token(&place, &definitions).await?;
        let number = definitions.len() as u64;
        let limits = limits(printer);
        let requests = printer.clone();
        let server = Server::new(
            place.steersman.clone(),
            Options {
                definitions,
                hosts: (args.host.iter().cloned())
                    .chain([args.listen.ip().to_string()])
                    .collect(),
                origins: args.origin.clone(),
                limits,
                webhooks_may_reach,
                log: Some(Arc::new(move |line| requests.talk(dim(&line.to_string())))),
                metrics: metrics.as_ref().map(|(_, metrics)| metrics.clone()),
                console,
                ..Options::default()
            },
        );
        let counted = counted(&server, metrics).await?;
        let serving = server.clone();
        let drain = args.drain;
        let mut serving = tokio::spawn(async move { serve(&serving, listener, drain).await });
        let (delivering, troubles) = (server.clone(), printer.clone());
        let mut delivering = tokio::spawn(async move {
            let told = |why: String| troubles.complain(yellow(&why));
            delivering.deliver(told).await;
        });
        let (driving, troubles) = (server.clone(), printer.clone());
        let mut driving = tokio::spawn(async move {
            let told = |what| hears(&troubles, &what);
            driving.drive(told).await
        });
        announce(
            printer,
            &place,
            (address, counted),
            number,
            token.as_deref(),
        )?;
        name_console(&args, (&server, address), &place, token.as_deref(), printer)?;
        let driven = loop {
            tokio::select! {
                biased;
                stops = signals.next() => {
                    if stops {
                        break None;
                    }
                    reload(&server, &paths, printer);
                }
                driven = &mut driving => break Some(driven),
            }
        };
        server.stop();
        // A server that cannot drive is not ready, so it ends as well.
        let driven = if let Some(driven) = driven {
            driven
        } else {
            printer.talk("Stops.");
            let stopping = async {
                let driven = (&mut driving).await;
                (&mut serving).await.ok();
                (&mut delivering).await.ok();
                driven
            };
            let ended = tokio::select! {
                () = signals.stop() => {
                    place.is_left_at_once();
                    return Ok(Exit::Interrupted);
                }
                ended = timeout(drain, stopping) => ended,
            };
            let Ok(driven) = ended else {
                place.is_left_at_once();
                printer.talk(yellow(
                    "Something that had begun did not end in time: it is in doubt.",
                ));
                return Ok(Exit::Answered);
            };
            driven
        };
        driven.map_err(|error| CommandError::store(error.to_string()))??;
        if printer.is_json() {
            printer.json(&json!({ "status": "stopped" }))?;
        }
        printer.talk("Stopped. Nothing is lost.");
        Ok(Exit::Answered)
    }

    /// Returns the limits of the server: as many connections as there is room for among the files that the process may have open. It may
    /// then have as many open as the connections need, if the system lets it.
    fn limits(printer: &Printer) -> Limits {
        let mut limits = Limits::default();
        let wanted = limits.connections as u64 + OTHER_FILES;
        let open = getrlimit(Resource::Nofile);
        if open.current.is_some_and(|current| current < wanted) {
            let most = open.maximum.unwrap_or(wanted);
            let raised = Rlimit {
                current: Some(wanted.min(most)),
                maximum: open.maximum,
            };
            // What stays as it is leaves room for fewer connections.
            setrlimit(Resource::Nofile, raised).ok();
        }
        let may = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let room = may.saturating_sub(OTHER_FILES.min(may / 2));
        if room < limits.connections as u64 {
            limits.connections = usize::try_from(room).unwrap_or(usize::MAX).max(1);
            printer.talk(dim(&format!(
                "At most {} connections at once: the system allows this process {may} open files (`ulimit -n`).",
                limits.connections
            )));
        }
        limits
    }

    /// Serves the metrics at their address, and returns it.
    async fn counted(
        server: &Server,
        metrics: Option<(SocketAddr, Arc<Metrics>)>,
    ) -> Result<Option<SocketAddr>, CommandError> {
        let Some((address, metrics)) = metrics else {
            return Ok(None);
        };
        let listener = bound(address, "--metrics")?;
        let (server, address) = (server.clone(), listener.local_addr()?);
        tokio::spawn(async move { serve_metrics(&server, metrics, listener).await });
        Ok(Some(address))
    }

    /// Returns true if the arguments want no console.
    fn is_none(console: &Path) -> bool {
        console == Path::new("none")
    }

    /// Returns the console that the arguments name.
    fn console(args: &ServeArgs) -> Result<Option<Console>, CommandError> {
        match &args.console {
            None => Ok(Some(Console::Embedded)),
            Some(none) if is_none(none) && args.open => Err(CommandError::usage(
                "--open opens the console, and --console none serves none",
            )),
            Some(none) if is_none(none) => Ok(None),
            Some(folder) if folder.join("index.html").is_file() => {
                Ok(Some(Console::Folder(folder.to_owned())))
            }
            Some(folder) => Err(CommandError::usage(format!(
                "--console: there is no `{}`",
                folder.join("index.html").display()
            ))
            .hint("a folder like crates/steersman-server/console, or `none`")),
        }
    }

    /// Names the console, and opens it in a browser if the arguments say so. If the token is not known here, the page asks for one.
    fn name_console(
        args: &ServeArgs,
        (server, address): (&Server, SocketAddr),
        place: &Place,
        made: Option<&str>,
        printer: &Printer,
    ) -> Result<(), CommandError> {
        if args.console.as_deref().is_some_and(is_none) {
            return Ok(());
        }
        printer.talk(format!("Console: http://{address}/"));
        // A store in memory has no file that holds a token.
        if crate::store::folder(&place.file)?.is_some() {
            let at = format!("http://{address}");
            let command = if at == HERE {
                "steersman ui".to_owned()
            } else {
                format!("steersman --server {at} ui")
            };
            printer.next(&command, "opens it in a browser");
        }
        if !args.open {
            return Ok(());
        }
        let folder = crate::store::folder(&place.file)?;
        let token = match &folder {
            Some(folder) => std::fs::read_to_string(folder.join(TOKEN_FILE)).ok(),
            None => made.map(str::to_owned),
        };
        let code = token.and_then(|token| server.code_for(token.trim()));
        let url = browser::address(&format!("http://{address}"), code.as_deref());
        if let Err(why) = browser::open(&url, folder.as_deref()) {
            printer.complain(yellow(&format!("{why}; open http://{address}/ yourself")));
        }
        Ok(())
    }

    /// Refuses an address that others reach, unless the arguments say under which name they do.
    fn is_named(args: &ServeArgs) -> Result<(), CommandError> {
        if args.listen.ip().is_loopback() || !args.host.is_empty() {
            return Ok(());
        }
        Err(CommandError::usage(format!(
            "`{}` can be reached from other computers, and no --host says under which name",
            args.listen
        ))
        .hint("name it: --host desk.example; and put a proxy with TLS in front of it"))
    }

    /// Reads the networks that webhooks may reach.
    fn reach(networks: &[String]) -> Result<Reach, CommandError> {
        let read = networks.iter().map(|text| text.parse::<Reachable>());
        read.collect::<Result<Reach, String>>()
            .map_err(|why| CommandError::usage(format!("--webhooks-may-reach: {why}")))
    }

    /// Warns of values without which no session of a definition can begin: the clients of the server cannot set them.
    fn unset(definitions: &[Network], printer: &Printer) {
        for network in definitions {
            let config = network.checked().config.iter();
            for (name, config) in config.filter(|(_, config)| config.default.is_none()) {
                let Some(env) = &config.env else { continue };
                if std::env::var_os(&**env).is_none() {
                    let of = network.name();
                    printer.complain(yellow(&format!(
                        "warning: no session of `{of}` can begin, because `config.{name}` has no value: set {env}"
                    )));
                }
            }
        }
    }

    /// Returns the definitions to serve: those that were named, otherwise the one here.
    pub(crate) fn paths(named: &[PathBuf]) -> Vec<PathBuf> {
        let here = PathBuf::from(".");
        match named {
            [] if locate::definition(&here).is_ok() => vec![here],
            named => named.to_vec(),
        }
    }

    /// Reads definitions, and reports their errors and what they lack here.
    pub(crate) fn read(paths: &[PathBuf], printer: &Printer) -> Result<Vec<Network>, CommandError> {
        let definitions = paths.iter().map(|path| check::right(path, printer));
        let definitions: Vec<Network> = definitions.collect::<Result<_, _>>()?;
        unset(&definitions, printer);
        Ok(definitions)
    }

    /// Reads the definitions again. If one has errors, nothing changes.
    fn reload(server: &Server, paths: &[PathBuf], printer: &Printer) {
        match read(paths, printer) {
            Ok(definitions) => {
                let number = count(definitions.len() as u64, "definition");
                server.define(definitions);
                printer.talk(format!(
                    "Read {number} again: new sessions begin under them."
                ));
            }
            Err(error) => printer.complain(yellow(&format!(
                "{error}{}nothing was changed",
                if error.message.is_empty() { "" } else { "; " }
            ))),
        }
    }

    /// Tells what went wrong, and which sessions were erased because their time is over.
    fn hears(printer: &Printer, what: &Happened) {
        if let Happened::Erased(ids) = what {
            printer.talk(dim(&erased(ids.len())));
        }
        if let Some(trouble) = trouble(what) {
            printer.complain(yellow(&trouble));
        }
    }

    /// Returns what went wrong, if something did.
    pub(crate) fn trouble(what: &Happened) -> Option<String> {
        match what {
            Happened::Failed(id, why) => Some(format!("session {id} is not driven: {why}")),
            Happened::Unscheduled(id, why) => {
                Some(format!("schedule {} of {}: {why}", id.name, id.network))
            }
            Happened::Damaged(what) => Some(format!("{what}; what is found goes on")),
            _ => None,
        }
    }

    /// Makes a token that may do everything, if the store has none. Returns the place of its text.
    async fn first_token(
        place: &Place,
        definitions: &[Network],
    ) -> Result<Option<String>, CommandError> {
        let store = place.store();
        if !store.tokens("", None, 1).await?.is_empty() {
            return Ok(None);
        }
        let people = definitions
            .iter()
            .flat_map(|network| network.checked().people.values());
        let roles: BTreeSet<Name> = people.map(|person| person.role.clone()).collect();
        let new = NewToken {
            scope: Scope::default(),
            allows: Permission::ALL.to_vec(),
            roles: [USER.into()].into_iter().chain(roles).collect(),
            note: "made by `steersman serve` for an empty store".into(),
            ..NewToken::default()
        };
        let (text, _) = make_token(&**store, place.engine().clock().now(), new).await?;
        match crate::store::folder(&place.file)? {
            Some(folder) => {
                let file = folder.join(TOKEN_FILE);
                write(&file, &text).map_err(|error| {
                    CommandError::store(format!("`{}`: {error}", file.display()))
                })?;
                Ok(Some(locate::shown(&file)))
            }
            // Nothing of the store outlives the process, and neither does the token.
            None => Ok(Some(text)),
        }
    }

    /// Writes a secret into a file that only its owner can read.
    fn write(file: &Path, text: &str) -> std::io::Result<()> {
        let mut options = std::fs::OpenOptions::new();
        let mut open = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(file)?;
        // The file may have been there, with other rights.
        open.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        writeln!(open, "{text}")
    }

    /// Number of connections that wait to be accepted. Of more that come at once, each would wait for a second.
    const BACKLOG: u32 = 1024;

    /// Listens on an address that an option names.
    fn bound(address: SocketAddr, option: &str) -> Result<TcpListener, CommandError> {
        let listen = || {
            let socket = if address.is_ipv4() {
                TcpSocket::new_v4()?
            } else {
                TcpSocket::new_v6()?
            };
            // A server that is started again takes the address of the one before.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            socket.listen(BACKLOG)
        };
        listen().map_err(|error: std::io::Error| {
            CommandError::usage(format!("`{address}`: {error}")).hint(format!(
                "another address: {option} 127.0.0.1:0 takes a free port"
            ))
        })
    }

    fn announce(
        printer: &Printer,
        place: &Place,
        (address, metrics): (SocketAddr, Option<SocketAddr>),
        definitions: u64,
        token: Option<&str>,
    ) -> Result<(), CommandError> {
        if printer.is_json() {
            printer.json(&json!({
                "status": "serving",
                "address": format!("http://{address}"),
                "metrics": metrics.map(|metrics| format!("http://{metrics}/metrics")),
                "definitions": definitions,
                "token": token,
            }))?;
        }
        printer.talk(format!(
            "Serves {} at http://{address}, and {}. Ctrl-C stops it.",
            locate::shown(&place.file),
            count(definitions, "definition"),
        ));
        if let Some(metrics) = metrics {
            printer.talk(format!("Metrics: http://{metrics}/metrics"));
        }
        match token {
            Some(token) => printer.talk(format!("The token that may do everything: {token}")),
            None => printer.next("steersman token new", "makes a token"),
        }
        Ok(())
    }
}
