//! Secrets where they are used: declared ones from the environment or a file, live `config`, and the keys that seal secrets for
//! the store.

use crate::regular;
use minijinja::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use steersman_machine::network::Network;
use steersman_machine::stored::ids::hex;
use steersman_machine::values::expression::{Scope, from_json};
use steersman_runtime::seal::{KEYS, KeyId, Sealer, in_words};
use steersman_runtime::secrets::{SecretError, read};
use steersman_runtime::{Env, bind};
use zeroize::Zeroizing;

/// Environment variable that holds the sealing keys, as the key file does.
pub const KEY_VARIABLE: &str = "STEERSMAN_KEY";
/// Name of the key file in the folder of the store. It holds keys of 64 hexadecimal digits, one in a line: the first seals and
/// opens, the others only open.
pub const KEY_FILE: &str = "key";
/// Most bytes of the key file.
const FILE_MAX: usize = 4096;

/// The scope of transport fields: the names of another scope, with the present values of `secrets` and live `config`.
pub struct Opened<S> {
    inner: S,
    secrets: Value,
    live: BTreeMap<String, Value>,
}

impl<S> Opened<S> {
    /// Resolves all secrets and live values that the network declares.
    pub fn new(inner: S, network: &Network, env: &Env, folder: &Path) -> Result<Self, SecretError> {
        let mut secrets = BTreeMap::new();
        for (name, secret) in &network.secrets {
            let value = read(name, secret, env, folder)?;
            secrets.insert(
                name.to_string(),
                value.map_or_else(|| Value::from(()), Value::from),
            );
        }
        // A live value that is missing or does not parse leaves its name undefined: reading it is an error.
        let live = network.config.iter().filter(|(_, config)| config.live);
        let live = live.filter_map(|(name, config)| {
            let value = bind::read(name, config, env).ok()?;
            Some((name.to_string(), from_json(value)))
        });
        Ok(Self {
            inner,
            secrets: Value::from(secrets),
            live: live.collect(),
        })
    }
}

impl<S: Scope> Scope for Opened<S> {
    fn root(&self, name: &str) -> Option<Value> {
        match name {
            "secrets" => Some(self.secrets.clone()),
            "config" if !self.live.is_empty() => {
                let mut all = self.live.clone();
                if let Some(bound) = self.inner.root("config")
                    && let Ok(names) = bound.try_iter()
                {
                    for name in names {
                        if let (Some(key), Ok(value)) = (name.as_str(), bound.get_item(&name)) {
                            all.entry(key.to_owned()).or_insert(value);
                        }
                    }
                }
                Some(Value::from(all))
            }
            name => self.inner.root(name),
        }
    }

    fn path(&self, root: &str, steps: &[&str]) -> Option<(Value, usize)> {
        match (root, steps.first()) {
            ("secrets", _) => Some((self.secrets.clone(), 0)),
            ("config", Some(name)) if self.live.contains_key(*name) => {
                Some((self.live[*name].clone(), 1))
            }
            _ => self.inner.path(root, steps),
        }
    }
}

/// Reason why there are no sealing keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The variable does not hold keys.
    #[error("STEERSMAN_KEY does not hold 1 to {KEYS} keys of 64 hexadecimal digits")]
    Variable,
    /// The key file is missing, and it is needed.
    #[error(
        "the key file {} is not there, and the store holds secrets that it sealed (with {}): restore it, or set STEERSMAN_KEY to \
         its digits; to go on without those secrets, set STEERSMAN_KEY to others",
        .path.display(),
        in_words(.wanted)
    )]
    Lost {
        /// Path of the file.
        path: PathBuf,
        /// The keys that sealed what the store holds.
        wanted: Vec<KeyId>,
    },
    /// The file does not hold keys.
    #[error(
        "the key file {} is damaged: it does not hold 1 to {KEYS} keys of 64 hexadecimal digits, one in a line; restore it, what \
         its keys sealed cannot be opened otherwise",
        .0.display()
    )]
    Damaged(PathBuf),
    /// Other users can read the file.
    #[error("the key file {} can be read by others (mode {mode:o}): run chmod 600 on it", .path.display())]
    Open {
        /// Path of the file.
        path: PathBuf,
        /// Mode of the file.
        mode: u32,
    },
    /// The operating system refuses access.
    #[error("the key file {} cannot be used: {source}", .path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The keys come from the variable, and the file is not read.
    #[error(
        "the keys come from STEERSMAN_KEY, which no program can change for others: put the keys in another order there"
    )]
    Set,
    /// The file is missing, so there is no key to exchange.
    #[error("there is no key file {} yet: the first value that is sealed makes it", .0.display())]
    NoneYet(PathBuf),
    /// The file has as many keys as it can have.
    #[error(
        "the key file {} holds {KEYS} keys, and no more can be read: remove the line of one that opens nothing any more",
        .0.display()
    )]
    Full(PathBuf),
    /// The file does not have the key that is to seal.
    #[error("the key file {} has no key {wanted}: it has {}", .path.display(), in_words(.here))]
    Unknown {
        /// Path of the file.
        path: PathBuf,
        /// The id as it was given.
        wanted: String,
        /// The keys of the file.
        here: Vec<KeyId>,
    },
}

/// A change of the key file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// A new key seals, and all others open what they sealed.
    New,
    /// A new key only opens. Once all processes have read it, one after the other may seal with it.
    Prepare,
    /// The key with this id seals, and all others open what they sealed.
    To(String),
}

/// Returns true if no key is given and none was made yet, so that [`sealer`] would make one.
pub fn would_be_made(folder: &Path, env: &Env) -> bool {
    env(KEY_VARIABLE).is_none() && matches!(folder.join(KEY_FILE).try_exists(), Ok(false))
}

/// Returns the sealer of a store, with the keys from `STEERSMAN_KEY`, otherwise from the file `key` in the folder of the store. The
/// file is made with one key and mode 0600 at first use. Two processes that make it at the same time get the same key.
pub fn sealer(folder: &Path, env: &Env) -> Result<Sealer, KeyError> {
    if let Some(text) = env(KEY_VARIABLE) {
        return Sealer::parse(&text).ok_or(KeyError::Variable);
    }
    let path = folder.join(KEY_FILE);
    let fail = |source| KeyError::File {
        path: path.clone(),
        source,
    };
    match regular::read(&path) {
        Ok(file) => return read_keys(&path, &file).map(|(sealer, _)| sealer),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(fail(error)),
    }
    fs::create_dir_all(folder).map_err(fail)?;
    let key = new_key().map_err(fail)?;
    // The first of two processes wins.
    match put(folder, &key, |aside| fs::hard_link(aside, &path)) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(fail(error)),
        _ => {
            let file = regular::read(&path).map_err(fail)?;
            read_keys(&path, &file).map(|(sealer, _)| sealer)
        }
    }
}

/// Changes which key of the file `key` in the folder of the store seals. Returns the keys as the file has them then. Processes that
/// have read the file keep the keys that they have.
///
/// # Errors
/// The file is left as it is.
pub fn rotate(folder: &Path, env: &Env, how: &Rotation) -> Result<Sealer, KeyError> {
    if env(KEY_VARIABLE).is_some() {
        return Err(KeyError::Set);
    }
    let path = folder.join(KEY_FILE);
    let fail = |source| KeyError::File {
        path: path.clone(),
        source,
    };
    let file = locked(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => KeyError::NoneYet(path.clone()),
        _ => fail(error),
    })?;
    let (known, text) = read_keys(&path, &file)?;
    let mut keys: Vec<Zeroizing<String>> = text
        .split_whitespace()
        .map(|key| key.to_owned().into())
        .collect();
    if let Rotation::To(wanted) = how {
        let id = |key: &str| Sealer::parse(key).and_then(|sealer| sealer.keys().next());
        let at = keys
            .iter()
            .position(|key| id(key).is_some_and(|id| id.to_string() == *wanted));
        let at = at.ok_or_else(|| KeyError::Unknown {
            path: path.clone(),
            wanted: wanted.clone(),
            here: known.keys().collect(),
        })?;
        keys[..=at].rotate_right(1);
    } else {
        if keys.len() >= KEYS {
            return Err(KeyError::Full(path));
        }
        let at = if *how == Rotation::New { 0 } else { keys.len() };
        keys.insert(at, new_key().map_err(fail)?);
    }
    let mut text = Zeroizing::new(String::new());
    for key in &keys {
        text.push_str(key);
        text.push('\n');
    }
    put(folder, &text, |aside| fs::rename(aside, &path)).map_err(fail)?;
    Sealer::parse(&text).ok_or(KeyError::Damaged(path))
}

/// Opens the key file while no other process changes it.
fn locked(path: &Path) -> std::io::Result<fs::File> {
    loop {
        let file = regular::read(path)?;
        file.lock()?;
        // Another process may have put a new file in its place before the lock was ours.
        if file.metadata()?.ino() == fs::metadata(path)?.ino() {
            return Ok(file);
        }
    }
}

/// Returns the digits of a new key.
fn new_key() -> std::io::Result<Zeroizing<String>> {
    let mut key = Zeroizing::new([0_u8; 32]);
    getrandom::fill(&mut *key).map_err(std::io::Error::other)?;
    Ok(hex(&*key).into())
}

/// Writes a key file next to its place, and lets `place` put it there: no process ever reads half a key.
fn put(
    folder: &Path,
    text: &str,
    place: impl Fn(&Path) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let aside = folder.join(format!("{KEY_FILE}.{}", &new_key()?[..8]));
    let put = (|| {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&aside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        place(&aside)?;
        fs::File::open(folder)?.sync_all()
    })();
    drop(fs::remove_file(&aside));
    put
}

/// Returns the keys of a key file, and its text.
fn read_keys(path: &Path, file: &fs::File) -> Result<(Sealer, Zeroizing<String>), KeyError> {
    let fail = |source| KeyError::File {
        path: path.to_owned(),
        source,
    };
    let mode = file.metadata().map_err(fail)?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyError::Open {
            path: path.to_owned(),
            mode,
        });
    }
    let mut text = Zeroizing::new(String::new());
    let read = file.take(FILE_MAX as u64 + 1).read_to_string(&mut text);
    match read {
        Ok(size) if size > FILE_MAX => Err(KeyError::Damaged(path.to_owned())),
        Ok(_) => match Sealer::parse(&text) {
            Some(sealer) => Ok((sealer, text)),
            None => Err(KeyError::Damaged(path.to_owned())),
        },
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(KeyError::Damaged(path.to_owned()))
        }
        Err(error) => Err(fail(error)),
    }
}
