//! Shared by the acting commands: a session of a server, and acts that are given to it there.

use crate::address::Address;
use crate::asked;
use crate::cli::{Drive, Global, Own, Which};
use crate::commands::act::{noted, only, waits};
use crate::commands::orders::{IN_INBOX, ordered};
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, dim, yellow};
use crate::remote::Remote;
use crate::source::about;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use steersman::Content;
use steersman::runtime::pending::{Pending, PendingKind};
use steersman::views::screen::{Ask, WaitsScreen};
use steersman_client::{File, Receipt, Stands};

/// The session of a server that a command acts on, with what it waits for.
pub(crate) struct There {
    pub(crate) remote: Remote,
    pub(crate) seen: WaitsScreen,
    /// The branch that the address names.
    pub(crate) branch: Option<String>,
}

impl There {
    /// Finds a session of the server that was named; `None` if none was. With `branches`, the address may name a branch.
    pub(crate) async fn find(
        session: &str,
        global: &Global,
        own: &Own,
        branches: bool,
    ) -> Result<Option<Self>, CommandError> {
        let Some(remote) = Remote::of(global)? else {
            return Ok(None);
        };
        drives_nothing(own)?;
        let address = Address::parse(session)?;
        if address.line.is_some() || (address.branch.is_some() && !branches) {
            return Err(
                CommandError::usage(format!("`{session}` names more than a session"))
                    .hint("this acts on it as it stands: leave `@LINE`, and where it acts on the whole, `:BRANCH` out"),
            );
        }
        let ask = Ask {
            branch: address.branch.clone(),
            ..Ask::default()
        };
        let seen = remote.screen(&address, &ask).await?;
        Ok(Some(Self {
            remote,
            seen,
            branch: address.branch,
        }))
    }

    /// Finds a branch of a session, and a line of it.
    pub(crate) async fn at(
        address: &str,
        global: &Global,
        own: &Own,
    ) -> Result<Option<Self>, CommandError> {
        let Some(remote) = Remote::of(global)? else {
            return Ok(None);
        };
        drives_nothing(own)?;
        let address = Address::parse(address)?;
        let seen = remote
            .screen(&address, &about(&address, Ask::default()))
            .await?;
        Ok(Some(Self {
            remote,
            seen,
            branch: address.branch,
        }))
    }

    /// Finds the session of an order.
    pub(crate) async fn of(
        which: &Which,
        global: &Global,
        own: &Own,
    ) -> Result<Option<Self>, CommandError> {
        match &which.session {
            Some(session) => Self::find(session, global, own, false).await,
            None if global.server().is_some() => Err(on_a_store("--where")),
            None => Ok(None),
        }
    }

    /// Reports an order after which nothing goes on by itself. `word` is the word for a session that took it, `end` the command that ends
    /// it.
    pub(crate) fn ordered(
        &self,
        receipt: &Receipt,
        word: &str,
        end: Option<&str>,
        printer: &Printer,
    ) -> Result<Exit, CommandError> {
        let (status, text) = match receipt.fate {
            Stands::Taken | Stands::Known => (word, word),
            Stands::Waits => ("inbox", receipt.why.as_deref().unwrap_or_default()),
            _ => ("inbox", IN_INBOX),
        };
        let names = (self.id(), &*self.seen.short);
        ordered(printer, names, (status, text), end)
    }

    /// Returns the id of the session.
    pub(crate) fn id(&self) -> &str {
        &self.seen.session
    }

    /// Finds the open question: by its effect if one is given, otherwise the only one of these kinds.
    pub(crate) async fn pending(
        &self,
        effect: Option<&str>,
        kinds: &[PendingKind],
        what: &str,
    ) -> Result<&Pending, CommandError> {
        match only(&self.seen.pending, self.id(), effect, kinds, what) {
            Ok(pending) => Ok(pending),
            Err(error) => {
                let kinds: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
                let ask = Ask {
                    of: effect.map(str::to_owned),
                    form: Some(kinds.join(",")),
                    ..Ask::default()
                };
                let seen: WaitsScreen = self.remote.screen_of(self.id(), &ask).await?;
                Err(seen.decided.into_iter().fold(error, CommandError::hint))
            }
        }
    }

    /// Tells what people should know of other branches before they decide about an effect.
    pub(crate) fn warn(&self, pending: &Pending, printer: &Printer) {
        let elsewhere = self.seen.elsewhere();
        for told in elsewhere.get(&pending.effect).into_iter().flatten() {
            printer.talk(yellow(&format!("Also: {told}.")));
        }
    }

    /// Returns true if the server took the act.
    pub(crate) fn took(receipt: &Receipt) -> bool {
        receipt.fate == Stands::Taken
    }

    /// Tells who takes an act.
    pub(crate) fn taken_by(&self, printer: &Printer) {
        if let Some(owner) = &self.seen.owner {
            printer.talk(dim(&format!(
                "process {owner} drives this session and takes it"
            )));
        }
    }

    /// Reports the fate of an act.
    pub(crate) fn noted(&self, receipt: &Receipt, printer: &Printer) -> Result<Exit, CommandError> {
        let (session, short) = (self.id(), &*self.seen.short);
        match receipt.fate {
            Stands::Taken => noted(printer, session, short, "taken"),
            Stands::Known => noted(printer, session, short, "known"),
            Stands::Waits => {
                let why = receipt.why.as_deref().unwrap_or_default();
                waits(printer, session, &self.seen.name, why)
            }
            _ => noted(printer, session, short, "inbox"),
        }
    }

    /// Reports an act of which the process that drives the session is told.
    pub(crate) fn report(
        &self,
        receipt: &Receipt,
        printer: &Printer,
    ) -> Result<Exit, CommandError> {
        self.taken_by(printer);
        self.noted(receipt, printer)
    }
}

/// Refuses options for driving a session in this process.
pub(crate) fn drives_nothing(own: &Own) -> Result<(), CommandError> {
    let name = match own {
        Own { no_run: true, .. } => Some("--no-run"),
        own => driving(&own.drive),
    };
    match name {
        Some(name) => Err(on_a_store(name)),
        None => Ok(()),
    }
}

/// Returns the option for driving a session that was given.
pub(crate) fn driving(drive: &Drive) -> Option<&'static str> {
    let given = [
        ("--script", drive.script.is_some()),
        ("--script-all", drive.script_all.is_some()),
        ("--clock", drive.clock.is_some()),
        ("--wait", drive.wait.is_some()),
    ];
    let mut given = given.into_iter();
    given.find_map(|(name, is_given)| is_given.then_some(name))
}

/// Returns the error for an option that only a store has.
pub(crate) fn on_a_store(name: &str) -> CommandError {
    CommandError::usage(format!("{name} works on a store")).hint(format!(
        "leave {name} out, or leave out --server (STEERSMAN_SERVER)"
    ))
}

/// Returns files as requests have them; `None` if there are none.
pub(crate) fn files(contents: &[Content]) -> Option<Vec<File>> {
    let files = contents.iter().map(|content| File {
        name: content.name.clone(),
        media_type: Some(content.media.clone()),
        base64: Some(STANDARD.encode(&content.bytes)),
        text: None,
    });
    let files: Vec<File> = files.collect();
    (!files.is_empty()).then_some(files)
}

/// Returns the error for a repetition that was not meant, or for `--repeat` where nothing is repeated.
pub(crate) fn repeats(
    pending: &Pending,
    session: &str,
    (repeat, edits): (bool, bool),
) -> Option<CommandError> {
    // With edited arguments it is not a repetition; the edited call is judged as a new one.
    let command = asked::approval(session, pending);
    match &pending.repeats {
        Some(before) if !edits && !repeat => {
            let message = format!("it would be done again: an equal call is {before}");
            Some(CommandError::usage(message).hint(format!(
                "`{command}` if that is meant; `steersman effects {session}` shows both"
            )))
        }
        None if repeat => Some(
            CommandError::usage("it repeats nothing").hint(format!("`{command}` lets it begin")),
        ),
        _ => None,
    }
}
