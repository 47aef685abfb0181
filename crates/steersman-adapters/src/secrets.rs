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
        Ok(file) => return read_keys(&path, file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(fail(error)),
    }
    fs::create_dir_all(folder).map_err(fail)?;
    let mut key = [0_u8; 32];
    getrandom::fill(&mut key).map_err(|error| fail(std::io::Error::other(error)))?;
    let text = hex(&key);
    // Written to another file and linked into place: no process ever reads half a key, and the first of two wins.
    let aside = folder.join(format!("{KEY_FILE}.{}", &text[..8]));
    let made = (|| {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&aside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::hard_link(&aside, &path)?;
        fs::File::open(folder)?.sync_all()
    })();
    drop(fs::remove_file(&aside));
    match made {
        Ok(()) => Ok(Sealer::new(&key)),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let file = regular::read(&path).map_err(fail)?;
            read_keys(&path, file)
        }
        Err(error) => Err(fail(error)),
    }
}

fn read_keys(path: &Path, file: fs::File) -> Result<Sealer, KeyError> {
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
    let mut text = String::new();
    let read = file.take(FILE_MAX as u64 + 1).read_to_string(&mut text);
    match read {
        Ok(size) if size > FILE_MAX => Err(KeyError::Damaged(path.to_owned())),
        Ok(_) => Sealer::parse(&text).ok_or_else(|| KeyError::Damaged(path.to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(KeyError::Damaged(path.to_owned()))
        }
        Err(error) => Err(fail(error)),
    }
}
