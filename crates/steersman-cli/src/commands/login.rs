//! `login`: a person signs in at an MCP server, with a browser that is sent back to this computer.

use crate::cli::{Drive, Global};
use crate::commands::check;
use crate::error::{CommandError, Exit};
use crate::place::Place;
use crate::printer::{Printer, dim};
use crate::words::table;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use steersman::machine::view::iso;
use steersman::{Network, Scope, SignIn, SignedIn};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const LISTED: &str = "Sign in at an MCP server (OAuth); list and end sign-ins";

/// Sign in at an MCP server that wants it: one with `oauth` in the definition. Without a server, list the sign-ins.
///
/// It prints an address to open in a browser, and waits until the browser is sent back to this computer. The tokens are sealed in the store.
/// Only sessions of this tenant and subject use them, and only at this server.
#[derive(Debug, clap::Args)]
pub(crate) struct LoginArgs {
    /// The server, as the definition names it.
    #[arg(value_name = "SERVER")]
    name: Option<String>,
    /// A definition, or a folder with a steersman.yaml.
    #[arg(long, value_name = "PATH", default_value = ".")]
    definition: PathBuf,
    /// The tenant whose sessions use the sign-in. Without one it is the store itself.
    #[arg(
        long,
        value_name = "TENANT",
        default_value = "",
        hide_default_value = true
    )]
    tenant: String,
    /// The person or thing whose sessions alone use the sign-in.
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// Port of this computer to which the browser is sent back [default: a free one].
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        hide_default_value = true,
        requires = "name"
    )]
    port: u16,
    /// Read the address to which the browser is sent back from standard input: the browser is on another computer.
    #[arg(long, requires = "name")]
    paste: bool,
    /// Sign out: delete the tokens, and give them back to the authorization server.
    #[arg(long, requires = "name", conflicts_with_all = ["port", "paste"])]
    forget: bool,
}

/// Time for a person to sign in.
const PATIENCE: Duration = Duration::from_mins(15);
/// Time for a browser to send its request.
const REQUEST: Duration = Duration::from_secs(2);
/// Maximum number of bytes of a request, and of an address that is pasted.
const REQUEST_MAX: u64 = 16 << 10;
/// Path to which the browser is sent back.
const PATH: &str = "/signed-in";

pub(crate) async fn run(
    args: LoginArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let network = check::right(&args.definition, printer)?;
    let scope = Scope {
        tenant: args.tenant.as_str().into(),
        subject: args.subject.as_deref().map(Into::into),
    };
    let Some(server) = &args.name else {
        return list(&network, &scope, global, printer).await;
    };
    let servers = &network.checked().mcp;
    match servers.get(&**server) {
        Some(declared) if declared.oauth().is_some() => {}
        Some(_) => {
            return Err(CommandError::usage(format!(
                "`{server}` wants no sign-in in the definition"
            ))
            .hint("write `oauth: person` at the server, if it wants one"));
        }
        None => {
            let known: Vec<&str> = servers.keys().map(|name| &**name).collect();
            let known = known.join(", ");
            return Err(CommandError::usage(format!(
                "the definition has no MCP server `{server}`"
            ))
            .hint(format!(
                "it has {}",
                if known.is_empty() { "none" } else { &known }
            )));
        }
    }
    if args.forget {
        return forget(server, &network, &scope, global, printer).await;
    }
    let place = Place::open(global, &Drive::default()).await?;
    let listener = TcpListener::bind(("127.0.0.1", args.port)).await;
    let listener = listener.map_err(|error| {
        let port = args.port;
        CommandError::new(Exit::Failed, format!("port {port} cannot be used: {error}"))
            .hint("another one: --port PORT")
    })?;
    let redirect = format!("http://{}{PATH}", listener.local_addr()?);
    let sign_in = place.steersman.sign_in(&network, server, &scope, &redirect);
    let sign_in = sign_in.await.map_err(failed)?;
    if printer.is_json() {
        printer.json(&json!({ "server": server, "address": sign_in.address() }))?;
    } else {
        printer.talk(format!(
            "Sign in at `{server}` with this address, in a browser:"
        ));
        printer.whole(sign_in.address())?;
    }
    if args.paste {
        printer.talk("Then paste the address to which the browser was sent, though its page cannot be shown:");
    } else {
        printer.talk("Waiting for the browser. On another computer: --paste. Ctrl-C ends this.");
    }
    let signs_in = async {
        if args.paste {
            pasted(sign_in).await
        } else {
            redirected(&listener, sign_in).await
        }
    };
    let signed = tokio::time::timeout(PATIENCE, signs_in).await;
    signed.unwrap_or_else(|_| {
        let minutes = PATIENCE.as_secs() / 60;
        Err(CommandError::new(
            Exit::Failed,
            format!("nobody signed in within {minutes} minutes"),
        ))
    })?;
    let all = place.steersman.signed_in(&network, &scope).await?;
    let Some(signed) = all.iter().find(|signed| *signed.server == **server) else {
        return Ok(Exit::Answered);
    };
    if printer.is_json() {
        printer.json(&shown(signed))?;
    }
    let scopes = match &*signed.scopes.join(" ") {
        "" => String::new(),
        scopes => format!(", with {scopes}"),
    };
    printer.talk(format!("Signed in at `{server}`{scopes}."));
    printer.next(
        "steersman approve SESSION",
        "lets a call that waits for it go on",
    );
    Ok(Exit::Answered)
}

fn failed(error: steersman::Error) -> CommandError {
    match error {
        steersman::Error::Refused(why) => CommandError::new(Exit::Failed, why),
        error => error.into(),
    }
}

/// Waits until the browser is sent back, finishes the sign-in, and tells the person at the browser.
async fn redirected(listener: &TcpListener, sign_in: SignIn) -> Result<(), CommandError> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let asked = tokio::time::timeout(REQUEST, asked(&mut stream)).await;
        let Some(target) = asked.ok().flatten() else {
            continue;
        };
        // A browser also asks for an icon, and any page may send it here.
        if !target.starts_with(PATH) || !sign_in.is_answered_by(&target) {
            page(&mut stream, "404 Not Found", "There is nothing here.").await;
            continue;
        }
        let finished = sign_in.finish(&target).await;
        let (status, told) = match &finished {
            Ok(()) => ("200 OK", "You are signed in. You can close this page."),
            Err(_) => (
                "400 Bad Request",
                "The sign-in failed. The terminal says why.",
            ),
        };
        page(&mut stream, status, told).await;
        return finished.map_err(|why| CommandError::new(Exit::Failed, why));
    }
}

/// Reads a request. Returns its path and query.
async fn asked(stream: &mut TcpStream) -> Option<String> {
    let mut head = BufReader::new(stream.take(REQUEST_MAX));
    let mut first = String::new();
    head.read_line(&mut first).await.ok()?;
    // The rest is read, too: a connection that is closed before may be reset, and the page is lost.
    let mut line = String::new();
    while head.read_line(&mut line).await.ok()? > 2 {
        line.clear();
    }
    let mut words = first.split_ascii_whitespace();
    let is_get = words.next() == Some("GET");
    words.next().filter(|_| is_get).map(str::to_owned)
}

async fn page(stream: &mut TcpStream, status: &str, told: &str) {
    let body = format!("<!doctype html><title>Steersman</title><p>{told}</p>\n");
    let head = "content-type: text/html; charset=utf-8\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close";
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {length}\r\n\r\n{body}");
    // A browser that is gone needs no page.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// Reads the address to which the browser was sent, and finishes the sign-in.
async fn pasted(sign_in: SignIn) -> Result<(), CommandError> {
    let mut lines = BufReader::new(tokio::io::stdin().take(REQUEST_MAX)).lines();
    while let Some(line) = lines.next_line().await? {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let finished = sign_in.finish(line).await;
        return finished.map_err(|why| CommandError::new(Exit::Failed, why));
    }
    Err(CommandError::usage("no address was pasted"))
}

async fn forget(
    server: &str,
    network: &Network,
    scope: &Scope,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let place = Place::required(global, &Drive::default()).await?;
    let signed_out = place.steersman.sign_out(network, server, scope).await;
    let (was_there, why) = signed_out.map_err(failed)?;
    if printer.is_json() {
        printer.json(&json!({ "server": server, "forgotten": was_there, "still_valid": why }))?;
    }
    if !was_there {
        printer.talk(format!("Nobody had signed in at `{server}`."));
    } else if let Some(why) = why {
        printer.talk(format!("Signed out of `{server}` here, but: {why}."));
    } else {
        printer.talk(format!("Signed out of `{server}`."));
    }
    Ok(Exit::Answered)
}

fn shown(signed: &SignedIn) -> serde_json::Value {
    json!({
        "server": signed.server,
        "by": by(signed),
        "stands": stands(signed),
        "issuer": signed.issuer,
        "scopes": signed.scopes,
        "until": signed.until.map(|at| iso(at, "UTC")),
        "wants": signed.wants,
    })
}

fn by(signed: &SignedIn) -> &'static str {
    if signed.by_program {
        "program"
    } else {
        "person"
    }
}

/// Returns the state of a sign-in in a word or two.
fn stands(signed: &SignedIn) -> &'static str {
    match signed {
        signed if !signed.wants.is_empty() => "wants more",
        signed if signed.is_valid => "signed in",
        signed if signed.by_program => "by itself",
        _ => "signed out",
    }
}

async fn list(
    network: &Network,
    scope: &Scope,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let servers = network.checked().mcp.values();
    if servers.filter(|server| server.oauth().is_some()).count() == 0 {
        printer.talk("No MCP server of this definition wants a sign-in.");
        return Ok(Exit::Answered);
    }
    let all = match Place::existing(global).await? {
        Some(place) => place.steersman.signed_in(network, scope).await?,
        None => {
            steersman::Steersman::in_memory()
                .signed_in(network, scope)
                .await?
        }
    };
    if printer.is_json() {
        for signed in &all {
            printer.json(&shown(signed))?;
        }
        return Ok(Exit::Answered);
    }
    let row = |signed: &SignedIn| {
        vec![
            signed.server.to_string(),
            stands(signed).to_owned(),
            signed
                .until
                .map_or_else(|| "-".to_owned(), |at| iso(at, "UTC")),
            signed.issuer.clone().unwrap_or_else(|| "-".to_owned()),
            signed.scopes.join(" "),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let heading = ["SERVER", "STANDS", "UNTIL", "AT", "SCOPES"];
    for (n, row) in table(&heading, &rows).into_iter().enumerate() {
        printer.data(if n == 0 { dim(&row) } else { row })?;
    }
    let open = all
        .iter()
        .find(|of| !of.by_program && stands(of) != "signed in");
    if let Some(open) = open {
        printer.next(format!("steersman login {}", open.server), "signs in");
    }
    Ok(Exit::Answered)
}
