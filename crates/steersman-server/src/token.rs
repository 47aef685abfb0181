//! Tokens: `stm_`, eight characters that are the name, `_`, and 32 characters that are the secret.

use crate::permission::Permission;
use std::sync::Arc;
use steersman::Scope;
use steersman::machine::stored::ids::{Name, Time};
use steersman::runtime::store::{Store, StoreError, Token};

/// The beginning of every token, by which people and scanners recognise one.
const MARK: &str = "stm_";
/// Number of characters of the name.
const NAME: usize = 8;
/// Number of characters of the secret: 160 random bits.
const SECRET: usize = 32;
/// The alphabet of names and secrets.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Milliseconds of an hour. The last use of a token is recorded by the hour.
const HOUR: i64 = 3_600_000;

/// A wanted token.
#[derive(Clone, Debug, Default)]
pub struct NewToken {
    /// The tenant, and the subject whose sessions alone the token may use.
    pub scope: Scope,
    /// The permissions.
    pub allows: Vec<Permission>,
    /// Roles in which its owner may act.
    pub roles: Vec<Name>,
    /// Names of the definitions that it may start. Empty means all.
    pub definitions: Vec<Name>,
    /// Time after which it is invalid.
    pub expires: Option<Time>,
    /// Note for people.
    pub note: Arc<str>,
}

/// Makes a token and stores it. Returns its text, which cannot be read again, and its row.
///
/// # Errors
/// Errors of the store.
pub async fn make_token(
    store: &dyn Store,
    now: Time,
    new: NewToken,
) -> Result<(String, Token), StoreError> {
    loop {
        let (name, secret) = (random::<NAME>(), random::<SECRET>());
        let token = Token {
            name: name.as_str().into(),
            hash: hash(&store.digest_key().await?, &secret).into(),
            scope: new.scope.clone(),
            allows: new.allows.iter().map(|one| one.word().into()).collect(),
            roles: new.roles.clone(),
            definitions: new.definitions.clone(),
            made: now,
            expires: new.expires,
            revoked: None,
            used: None,
            note: new.note.clone(),
        };
        // The name may be taken, once in 2^40.
        if store.put_token(token.clone()).await? {
            return Ok((format!("{MARK}{name}_{secret}"), token));
        }
    }
}

/// Returns the token that this text is, if it is valid now.
pub(crate) async fn valid(
    store: &dyn Store,
    now: Time,
    text: &str,
) -> Result<Option<Token>, StoreError> {
    let Some((name, secret)) = parts(text) else {
        return Ok(None);
    };
    let given = hash(&store.digest_key().await?, secret);
    let Some(token) = store.token(name).await? else {
        return Ok(None);
    };
    // This comparison takes the same time wherever the hashes differ.
    let is_right = given == blake3::Hash::from_bytes(token.hash);
    if !is_right || !lives(&token, now) {
        return Ok(None);
    }
    if !is_used(&token, now) {
        store.used(name, hour(now)).await?;
    }
    Ok(Some(token))
}

/// Returns true if it is recorded that a token was used in this hour.
pub(crate) fn is_used(token: &Token, now: Time) -> bool {
    token.used == Some(hour(now))
}

fn hour(now: Time) -> Time {
    Time(now.0 - now.0.rem_euclid(HOUR))
}

/// Returns true if a token was not revoked and has not expired.
pub(crate) fn lives(token: &Token, now: Time) -> bool {
    token.revoked.is_none() && token.expires.is_none_or(|end| now < end)
}

/// Returns the name and the secret of a token's text.
fn parts(text: &str) -> Option<(&str, &str)> {
    let (name, secret) = text.strip_prefix(MARK)?.split_once('_')?;
    let fits = |part: &str, len| part.len() == len && part.bytes().all(|b| LETTERS.contains(&b));
    (fits(name, NAME) && fits(secret, SECRET)).then_some((name, secret))
}

fn hash(key: &[u8; 32], secret: &str) -> blake3::Hash {
    blake3::keyed_hash(key, secret.as_bytes())
}

/// Returns a random text of the alphabet.
pub(crate) fn random<const N: usize>() -> String {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    let letters = bytes.iter().map(|byte| LETTERS[usize::from(byte % 32)]);
    letters.map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_of_the_form_are_looked_up() {
        let (name, secret) = (random::<NAME>(), random::<SECRET>());
        let right = format!("{MARK}{name}_{secret}");
        assert_eq!(parts(&right), Some((name.as_str(), secret.as_str())));
        for wrong in [
            String::new(),
            format!("{name}_{secret}"),
            format!("{MARK}{name}"),
            format!("{right}x"),
            format!(
                "{MARK}{name}_{}",
                secret.to_uppercase().replace(char::is_numeric, "A")
            ),
            format!("{MARK}{}_{secret}", "ä".repeat(4)),
        ] {
            assert_eq!(parts(&wrong), None, "{wrong}");
        }
    }
}
