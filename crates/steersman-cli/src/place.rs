//! The store and the engine that a command uses.

use crate::address::{Address, LineName, SessionName};
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
use steersman::runtime::known::Known;
use steersman::runtime::store::{SessionInfo, SessionQuery, Store};
use steersman::runtime::tap::Tap;
use steersman::views::log::Log;
use steersman::views::reader::Stored;
use steersman::{Network, Steersman};
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::Line;
use steersman_machine::values::near;

/// Minimum length of a shown session id. The two characters that name the store are the same for most sessions.
const SHORT: usize = 6;

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
            limit: Some(2),
            ..SessionQuery::default()
        };
        match name {
            SessionName::Last => query.limit = Some(1),
            SessionName::Label(label, value) => {
                query.label = Some((label.as_str().into(), value.as_str().into()));
            }
            SessionName::Prefix(prefix) => query.prefix = Some(prefix.clone()),
        }
        let mut found = self.store().sessions(&query).await?;
        if let SessionName::Prefix(prefix) = name
            && let Some(at) = found.iter().position(|s| *s.id == **prefix)
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
            .hint(format!(
                "`steersman sessions` lists those in {}",
                locate::shown(&self.file)
            ))),
            _ => {
                query.limit = Some(5);
                let found = self.store().sessions(&query).await?;
                let ids: Vec<&str> = found.iter().map(|s| &*s.id).collect();
                Err(
                    CommandError::usage(format!("`{name}` means more than one session"))
                        .hint(ids.join(", ")),
                )
            }
        }
    }

    /// Returns the session's id as people type it: its shortest unique beginning.
    pub(crate) async fn short(&self, id: &str) -> Result<String, CommandError> {
        let query = SessionQuery {
            prefix: Some(id[..SHORT.min(id.len())].to_owned()),
            ..SessionQuery::default()
        };
        let alike = self.store().sessions(&query).await?;
        Ok(shortest(id, alike.iter().map(|s| &*s.id)).to_owned())
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

/// The target of an address, for reading: a session's log, a branch, possibly a line.
pub(crate) struct Sight {
    pub(crate) address: Address,
    pub(crate) inspection: Inspection,
    pub(crate) log: Log,
    pub(crate) reader: Arc<Stored>,
    /// The secrets that the session knows.
    pub(crate) known: Arc<Known>,
    /// The index of the branch.
    pub(crate) at: usize,
    /// The session as people type it.
    pub(crate) short: String,
}

impl Place {
    /// Reads the target of an address, without owning the session.
    pub(crate) async fn look(&self, text: &str) -> Result<Sight, CommandError> {
        let address = Address::parse(text)?;
        let (inspection, at) = self.inspect(&address).await?;
        let reader = Arc::new(self.reader(&inspection.info.id));
        let log = Log::read(&*reader).await?;
        let known = reader.masks().await?;
        let short = self.short(&inspection.info.id).await?;
        Ok(Sight {
            address,
            inspection,
            log,
            reader,
            known,
            at,
            short,
        })
    }
}

impl Sight {
    pub(crate) fn branch(&self) -> &BranchView {
        &self.inspection.branches[self.at]
    }

    /// Returns the branch, if the address names one.
    pub(crate) fn named(&self) -> Option<&BranchView> {
        self.address.branch.as_ref().map(|_| self.branch())
    }

    /// Returns the name as people type it: the session, with the branch if the address names one.
    pub(crate) fn name(&self) -> String {
        typed_as(&self.short, self.named())
    }

    /// Returns all lines that led to the head of the branch, oldest first.
    pub(crate) fn path(&self) -> Vec<&Arc<LogLine>> {
        self.log.history(self.branch(), &self.inspection.branches)
    }

    /// Returns the line that the address names, on the path of the branch.
    pub(crate) fn line(&self) -> Result<Option<Line>, CommandError> {
        line(self.address.line.as_ref(), &self.path())
    }
}

/// Returns a session as people type it, with this branch.
pub(crate) fn typed_as(short: &str, branch: Option<&BranchView>) -> String {
    match branch {
        Some(branch) => format!("{short}:{}", branch_name(branch)),
        None => short.to_owned(),
    }
}

/// Returns the shortest beginning of `id`, at least [`SHORT`] characters, that no other id of `all` has.
pub(crate) fn shortest<'a>(id: &'a str, all: impl Iterator<Item = &'a str>) -> &'a str {
    let shared = all
        .filter(|other| *other != id)
        .map(|other| {
            id.bytes()
                .zip(other.bytes())
                .take_while(|(a, b)| a == b)
                .count()
        })
        .max()
        .unwrap_or(0);
    &id[..(shared + 1).max(SHORT).min(id.len())]
}

/// Maximum number of branches without a label, or of names, that an error lists.
const UNNAMED: usize = 10;

/// Returns the index of a branch in an inspection: by label, by id, otherwise the current one.
pub(crate) fn branch_at(
    inspection: &Inspection,
    name: Option<&str>,
) -> Result<usize, CommandError> {
    let found = inspection.branches.iter().position(|b| match name {
        None => b.id == inspection.current,
        Some(name) => b.label.as_deref() == Some(name) || b.id.to_string() == name,
    });
    found.ok_or_else(|| {
        // A search opens many branches without a label.
        let mut unnamed = 0;
        let few = inspection.branches.iter().filter(|b| {
            unnamed += usize::from(b.label.is_none());
            b.label.is_some() || unnamed <= UNNAMED
        });
        let mut names: Vec<String> = few.map(branch_name).collect();
        if unnamed > UNNAMED {
            names.push(format!("and {} more", unnamed - UNNAMED));
        }
        CommandError::usage(format!(
            "session `{}` has no branch `{}`",
            inspection.info.id,
            name.unwrap_or("current")
        ))
        .hint(format!("it has: {}", names.join(", ")))
    })
}

/// Returns the label of a branch, otherwise its id.
pub(crate) fn branch_name(branch: &BranchView) -> String {
    branch
        .label
        .as_ref()
        .map_or_else(|| branch.id.to_string(), ToString::to_string)
}

/// Returns the line that an address names, among the lines that led to the head of its branch, oldest first. All commands find lines
/// here, so that an address means the same line in each of them.
pub(crate) fn line(
    name: Option<&LineName>,
    path: &[&Arc<LogLine>],
) -> Result<Option<Line>, CommandError> {
    let Some(name) = name else { return Ok(None) };
    let lines: Vec<Line> = path.iter().map(|l| l.n).collect();
    let found = match name {
        LineName::Number(n) => lines.iter().copied().find(|l| l.0 == *n),
        LineName::Back(back) => usize::try_from(*back)
            .ok()
            .and_then(|back| lines.iter().rev().nth(back).copied()),
        LineName::First(tool) => Log::first_call_of(path, tool),
    };
    let Some(line) = found else {
        let what = match name {
            LineName::Number(n) => return Err(no_line(*n, &lines)),
            LineName::Back(n) => format!("this branch has no {n} lines before its last"),
            LineName::First(tool) => {
                let what = format!("nothing on this branch called `{tool}`");
                return Err(CommandError::usage(what).hint(hint(tool, path)));
            }
        };
        return Err(CommandError::usage(what).hint(match lines.last() {
            Some(last) => format!("its lines go from {} to {last}", lines[0]),
            None => "it has no lines yet".to_owned(),
        }));
    };
    Ok(Some(line))
}

/// Returns a hint for a name that no call has: the one that was probably meant, otherwise all.
fn hint(typed: &str, path: &[&Arc<LogLine>]) -> String {
    let called = Log::called_in(path);
    let ends_so = |name: &&str| name.rsplit('.').next() == Some(typed);
    let near = called.iter().copied().find(ends_so);
    let near = near.or_else(|| near::near(typed, called.iter().copied()));
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if called.is_empty() => "nothing was called there".to_owned(),
        None => {
            let called: Vec<&str> = called.into_iter().take(UNNAMED).collect();
            format!("called were: {}", called.join(", "))
        }
    }
}

/// Returns the error for a line number that is not on the branch. Numbers are unique in the session, so the lines of a
/// branch have gaps.
fn no_line(n: u64, lines: &[Line]) -> CommandError {
    let error = CommandError::usage(format!("there is no line {n} on this branch"));
    let before = lines.iter().rev().find(|line| line.0 < n);
    let after = lines.iter().find(|line| line.0 > n);
    match (before, after) {
        (Some(before), Some(after)) => error
            .hint(format!("it goes from line {before} to line {after}: what lies between is on another branch, or nowhere"))
            .hint("a line of another branch: SESSION:BRANCH@LINE; `steersman show` draws them"),
        _ => error.hint(match (lines.first(), lines.last()) {
            (Some(first), Some(last)) => format!("its lines go from {first} to {last}"),
            _ => "it has no lines yet".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_short_as_they_can_be() {
        let all = ["aak7wqabcd", "aak7wqxyz0", "aam3xd0000", "mine"];
        assert_eq!(shortest("aak7wqabcd", all.into_iter()), "aak7wqa");
        assert_eq!(shortest("aam3xd0000", all.into_iter()), "aam3xd");
        assert_eq!(shortest("mine", all.into_iter()), "mine");
    }
}
