//! `token`: makes, lists and revokes the tokens with which clients use `serve`.

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;

pub(crate) const LISTED: &str = "Make, list and revoke tokens for clients of `serve`";

/// Make, list and revoke tokens for clients of `serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    act: TokenAct,
    /// The tenant. Without one it is the store itself.
    #[arg(
        long,
        value_name = "TENANT",
        default_value = "",
        global = true,
        hide_default_value = true
    )]
    tenant: String,
}

#[derive(Debug, clap::Subcommand)]
enum TokenAct {
    /// Make a token, and print it. It cannot be printed again.
    New {
        /// The permissions, separated by commas: read, context, write, decide, operate, time, memory, events, admin.
        #[arg(
            long,
            value_name = "WHAT",
            value_delimiter = ',',
            default_value = "read,write,decide"
        )]
        allow: Vec<String>,
        /// A role in which its owner may act.
        #[arg(long = "role", value_name = "ROLE")]
        roles: Vec<String>,
        /// A definition that it may start [default: all].
        #[arg(long = "definition", value_name = "NAME")]
        definitions: Vec<String>,
        /// The person or thing whose sessions alone it sees.
        #[arg(long, value_name = "SUBJECT")]
        subject: Option<String>,
        /// Time for which the token is valid.
        #[arg(long, value_name = "DURATION", value_parser = crate::words::duration)]
        expires: Option<std::time::Duration>,
        /// A note for people.
        #[arg(
            long,
            value_name = "TEXT",
            default_value = "",
            hide_default_value = true
        )]
        note: String,
    },
    /// List tokens, without their secrets.
    List,
    /// Revoke a token: it is invalid from now on.
    Revoke {
        /// Its name: the first eight characters after `stm_`.
        name: String,
    },
}

#[cfg(not(feature = "serve"))]
pub(crate) async fn run(
    args: TokenArgs,
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
pub(crate) use with_server::run;

#[cfg(feature = "serve")]
mod with_server {
    use super::{CommandError, Exit, Global, Printer, TokenAct, TokenArgs};
    use crate::cli::Drive;
    use crate::place::Place;
    use crate::printer::dim;
    use crate::words::table;
    use serde_json::json;
    use steersman::Scope;
    use steersman::machine::view::iso;
    use steersman::runtime::store::Token;
    use steersman_machine::stored::ids::{Name, Time};
    use steersman_server::{NewToken, make_token};

    /// Number of tokens that are read at a time.
    const PAGE: usize = 200;

    pub(crate) async fn run(
        args: TokenArgs,
        global: &Global,
        printer: &Printer,
    ) -> Result<Exit, CommandError> {
        let tenant: Name = args.tenant.into();
        match args.act {
            TokenAct::New {
                allow,
                roles,
                definitions,
                subject,
                expires,
                note,
            } => {
                let allows = allow.iter().map(|word| word.trim().parse());
                let allows: Result<Vec<_>, String> = allows.collect();
                let names = |all: Vec<String>| all.into_iter().map(Into::into).collect();
                let place = Place::open(global, &Drive::default()).await?;
                let now = place.engine().clock().now();
                let new = NewToken {
                    scope: Scope {
                        tenant,
                        subject: subject.map(Into::into),
                    },
                    allows: allows.map_err(CommandError::usage)?,
                    roles: names(roles),
                    definitions: names(definitions),
                    expires: expires.map(|after| now.plus(after.as_millis() as u64)),
                    note: note.into(),
                };
                let (text, token) = make_token(&**place.store(), now, new).await?;
                if printer.is_json() {
                    printer.json(&json!({ "token": text, "name": token.name }))?;
                } else {
                    printer.whole(text)?;
                }
                printer.talk("It cannot be printed again.");
                let revoke = format!("steersman token revoke {}", token.name);
                printer.next(revoke, "makes it invalid");
                Ok(Exit::Answered)
            }
            TokenAct::List => list(&tenant, global, printer).await,
            TokenAct::Revoke { name } => {
                let place = Place::required(global, &Drive::default()).await?;
                let name = name.trim_start_matches("stm_");
                let now = place.engine().clock().now();
                if !place.store().revoke(&tenant, name, now).await? {
                    return Err(CommandError::usage(format!("there is no token `{name}`"))
                        .hint("`steersman token list` lists them; tokens of a tenant: --tenant"));
                }
                printer.talk("Revoked: it is invalid from now on.");
                Ok(Exit::Answered)
            }
        }
    }

    async fn list(tenant: &str, global: &Global, printer: &Printer) -> Result<Exit, CommandError> {
        let place = Place::to_look(global).await?;
        let (mut tokens, mut after): (Vec<Token>, Option<Name>) = (Vec::new(), None);
        loop {
            let page = place.store().tokens(tenant, after.as_deref(), PAGE).await?;
            after = page.last().map(|token| token.name.clone());
            let is_last = page.len() < PAGE;
            tokens.extend(page);
            if is_last {
                break;
            }
        }
        if printer.is_json() {
            for token in &tokens {
                printer.json(&json!({
                    "name": token.name,
                    "tenant": token.scope.tenant,
                    "subject": token.scope.subject,
                    "allows": token.allows,
                    "roles": token.roles,
                    "definitions": token.definitions,
                    "made": iso(token.made, "UTC"),
                    "expires": token.expires.map(|at| iso(at, "UTC")),
                    "revoked": token.revoked.map(|at| iso(at, "UTC")),
                    "used": token.used.map(|at| iso(at, "UTC")),
                    "note": token.note,
                }))?;
            }
            return Ok(Exit::Answered);
        }
        if tokens.is_empty() {
            printer.talk("There are no tokens.");
            printer.next("steersman token new", "makes one");
            return Ok(Exit::Answered);
        }
        let now = place.engine().clock().now();
        let rows: Vec<Vec<String>> = tokens.iter().map(|token| row(token, now)).collect();
        let heading = ["NAME", "STANDS", "SUBJECT", "ROLES", "ALLOWS", "NOTE"];
        for (n, row) in table(&heading, &rows).into_iter().enumerate() {
            printer.data(if n == 0 { dim(&row) } else { row })?;
        }
        Ok(Exit::Answered)
    }

    fn row(token: &Token, now: Time) -> Vec<String> {
        let stands = match (token.revoked, token.expires) {
            (Some(_), _) => "revoked",
            (None, Some(end)) if end <= now => "expired",
            _ if token.used.is_some() => "in use",
            _ => "unused",
        };
        let subject = token.scope.subject.as_deref().unwrap_or("-");
        vec![
            token.name.to_string(),
            stands.to_owned(),
            subject.to_owned(),
            token.roles.join(","),
            token.allows.join(","),
            token.note.to_string(),
        ]
    }
}
