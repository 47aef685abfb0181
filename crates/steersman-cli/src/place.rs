//! The store and the engine that a command uses.

use crate::address::{Address, SessionName};
use crate::cli::{Drive, Durability, Global};
use crate::clock::FileClock;
use crate::error::CommandError;
use crate::exports::{Exporter, Exports};
use crate::locate;
use crate::play::{Leaving, lets_go};
use crate::printer::{Printer, dim, yellow};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use steersman::runtime::engine::{BranchView, Engine, Inspection};
use steersman::runtime::store::{SessionInfo, SessionQuery, Store};
use steersman::runtime::tap::Tap;
use steersman::views::log::Log;
use steersman::views::reader::Stored;
use steersman::views::screen::{self, Seen};
pub(crate) use steersman::views::screen::{branch_at, branch_name, line, shortest};
use steersman::{Network, Steersman};

/// A store with the engine over it.
pub(crate) struct Place {
    pub(crate) steersman: Steersman,
    pub(crate) file: PathBuf,
    /// Time that a command waits while a model does not answer.
    pub(crate) wait: Duration,
    driven: Driven,
}

/// Everything that drives sessions in this process, and what sends their spans. A command ends only after these are stopped, also on an
/// error.
#[derive(Clone, Debug, Default)]
pub(crate) struct Driven(Arc<Mutex<Vec<Steersman>>>, Exports);

impl Driven {
    fn add(&self, steersman: &Steersman) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(steersman.clone());
    }

    fn take(&self) -> Vec<Steersman> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *all)
    }

    /// Releases all sessions that are still driven. Effects that began and must not be repeated are awaited, unless the
    /// user does not want to wait.
    pub(crate) async fn let_go(&self, printer: &Printer) -> Result<(), CommandError> {
        let all = self.take();
        let driven = all.iter().flat_map(|one| one.engine().all_driven());
        let driven: Vec<_> = driven.collect();
        if !driven.is_empty() {
            let stopped = futures::future::join_all(all.iter().map(Steersman::stop));
            lets_go(&driven, stopped, &mut Leaving::listen()?, printer, false).await;
        }
        self.1.flush().await;
        Ok(())
    }
}

/// The default for [`Place::wait`] if a person is at the terminal.
const WAIT: Duration = Duration::from_mins(1);

impl Place {
    /// Opens the store, and creates it if it does not exist.
    pub(crate) async fn open(global: &Global, drive: &Drive) -> Result<Self, CommandError> {
        Self::to_serve(global, drive, &[], None).await
    }

    /// Like [`Place::open`], for a process that begins sessions of these definitions; the tap is told what happens to all sessions that are driven here.
    pub(crate) async fn to_serve(
        global: &Global,
        drive: &Drive,
        definitions: &[Network],
        tap: Option<Arc<dyn Tap>>,
    ) -> Result<Self, CommandError> {
        let file = locate::store(global.store.as_deref())?;
        if let Some(folder) = crate::store::folder(&file)? {
            std::fs::create_dir_all(&folder).map_err(|e| {
                CommandError::store(format!("`{}`: {e}", folder.display()))
                    .hint("name another place: --store FILE")
            })?;
        }
        let mut setup = Steersman::options().durability(match drive.durability {
            Durability::Output => steersman::Durability::Commit,
            Durability::Step => steersman::Durability::Step,
        });
        if let Some(script) = drive.script.as_ref().or(drive.script_all.as_ref()) {
            let option = if drive.script.is_some() {
                "--script"
            } else {
                "--script-all"
            };
            // Check the script before a message is accepted that nothing could answer.
            let shown = script.display();
            let looked = std::fs::metadata(script).map_err(|e| match e.kind() {
                std::io::ErrorKind::NotFound => {
                    CommandError::usage(format!("there is no script `{shown}`")).hint(format!(
                        "{option} names a YAML file with answers by agent, as seen from here; without it models are asked"
                    ))
                }
                _ => CommandError::usage(format!("the script `{shown}` cannot be read: {e}"))
                    .hint(format!("{option} names a YAML file that you may read")),
            })?;
            if looked.is_dir() {
                return Err(
                    CommandError::usage(format!("the script `{shown}` is a folder")).hint(format!(
                        "{option} names a YAML file in it, with answers by agent"
                    )),
                );
            }
            setup = if drive.script.is_some() {
                setup.script_file(script)
            } else {
                setup.script_all_file(script)
            };
            if !definitions.is_empty() {
                setup = (setup.answers_for(definitions))
                    .map_err(|fault| CommandError::usage(fault.to_string()))?;
            }
        }
        let printer = Printer::new(global);
        let wait = match drive.wait {
            Some(wait) => wait,
            None if printer.can_ask() => WAIT,
            None => Duration::ZERO,
        };
        setup = setup.heard_by(move |sentence| printer.talk(dim(sentence)));
        if let Some(clock) = &drive.clock {
            setup = setup.clock(Arc::new(FileClock::new(clock)?));
        }
        let exporter = Exporter::of_environment()?;
        setup = exporter.taps(setup);
        if let Some(tap) = tap {
            setup = setup.tap(tap);
        }
        let steersman = setup.open(&file).await?;
        global.driven.add(&steersman);
        global
            .driven
            .1
            .begin(exporter, &steersman, Printer::new(global));
        Ok(Self {
            steersman,
            file,
            wait,
            driven: global.driven.clone(),
        })
    }

    /// Opens the store for reading, if it exists; works on read-only media and creates nothing. A store that was named must
    /// exist.
    pub(crate) async fn existing(global: &Global) -> Result<Option<Self>, CommandError> {
        if global.store.is_none() && !locate::store(None)?.exists() {
            return Ok(None);
        }
        Self::to_look(global).await.map(Some)
    }

    /// Opens a store that must exist, for reading.
    pub(crate) async fn to_look(global: &Global) -> Result<Self, CommandError> {
        Self::looked_at(locate::existing(global)?, global).await
    }

    async fn looked_at(file: PathBuf, global: &Global) -> Result<Self, CommandError> {
        let steersman = Steersman::options().open_to_look(&file).await?;
        if let Some(doubt) = steersman.doubt() {
            let driven =
                "Nothing is driven until a person accepts it: steersman doctor --accept-store";
            Printer::new(global).talk(yellow(&format!("{doubt}. {driven}")));
        }
        Ok(Self {
            steersman,
            file,
            wait: Duration::ZERO,
            driven: Driven::default(),
        })
    }

    /// Opens a store that must exist, for changes.
    pub(crate) async fn required(global: &Global, drive: &Drive) -> Result<Self, CommandError> {
        locate::existing(global)?;
        Self::open(global, drive).await
    }

    /// Closes the store of a command that drove nothing, so that it can be opened exclusively.
    pub(crate) fn close(self) {
        self.driven.take();
    }

    /// Stops waiting for effects that began, because the user does not want to wait.
    pub(crate) fn is_left_at_once(&self) {
        self.driven.take();
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.steersman.engine()
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.engine().store()
    }

    /// Returns a reader of a session that masks its secrets.
    pub(crate) fn reader(&self, session: &str) -> Stored {
        Stored::masked(self.engine(), session)
    }

    /// Reads the log of a session, with its secrets masked.
    pub(crate) async fn log(&self, session: &str) -> Result<Log, CommandError> {
        Ok(Log::read(&self.reader(session)).await?)
    }

    pub(crate) fn now(&self) -> i64 {
        self.engine().clock().now().0
    }

    /// Finds the session that a name means.
    pub(crate) async fn session(&self, name: &SessionName) -> Result<SessionInfo, CommandError> {
        let mut query = SessionQuery {
            limit: Some(5),
            ..SessionQuery::default()
        };
        match name {
            SessionName::Last => query.limit = Some(1),
            SessionName::Label(label, value) => {
                query.label = Some((label.as_str().into(), value.as_str().into()));
            }
            SessionName::Prefix(prefix) => query.prefix = Some(prefix.clone()),
        }
        let found = self.store().sessions(&query).await?;
        meant(name, found, |info| &*info.id, &locate::shown(&self.file))
    }

    /// Returns the session's id as people type it: its shortest unique beginning.
    pub(crate) async fn short(&self, id: &str) -> Result<String, CommandError> {
        Ok(screen::short(self.engine(), id).await?)
    }

    /// Reads a session without owning it; also returns the index of the branch that the address names.
    pub(crate) async fn inspect(
        &self,
        address: &Address,
    ) -> Result<(Inspection, usize), CommandError> {
        let info = self.session(&address.session).await?;
        let inspection = self.engine().inspect(&info.id).await?;
        let at = branch_at(&inspection, address.branch.as_deref())?;
        Ok((inspection, at))
    }
}

impl Place {
    /// Reads the target of an address, without owning the session.
    pub(crate) async fn look(&self, address: &Address) -> Result<Seen, CommandError> {
        let info = self.session(&address.session).await?;
        Ok(Seen::read(self.engine(), &info.id, address.branch.as_deref()).await?)
    }
}

/// Returns a session as people type it, with this branch.
pub(crate) fn typed_as(short: &str, branch: Option<&BranchView>) -> String {
    match branch {
        Some(branch) => format!("{short}:{}", branch_name(branch)),
        None => short.to_owned(),
    }
}

/// Returns the session that a name means, among the first of those that it may mean. `place` is where these are.
pub(crate) fn meant<T>(
    name: &SessionName,
    mut found: Vec<T>,
    id: impl Fn(&T) -> &str,
    place: &str,
) -> Result<T, CommandError> {
    if let SessionName::Prefix(prefix) = name
        && let Some(at) = found.iter().position(|session| id(session) == *prefix)
    {
        return Ok(found.swap_remove(at));
    }
    match found.len() {
        1 => Ok(found.swap_remove(0)),
        0 => Err(CommandError::usage(match name {
            SessionName::Last => "there are no sessions yet".to_owned(),
            SessionName::Label(..) => format!("no session has the label `{name}`"),
            SessionName::Prefix(_) => format!("there is no session `{name}`"),
        })
        .hint(format!("`steersman sessions` lists those in {place}"))),
        _ => {
            let ids: Vec<&str> = found.iter().map(id).collect();
            Err(
                CommandError::usage(format!("`{name}` means more than one session"))
                    .hint(ids.join(", ")),
            )
        }
    }
}
