//! Limits of what clients may use at once, and how often.

use crate::problem::{Code, Problem};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use steersman::machine::stored::ids::Name;

/// The limits of a server. Exceeding one is answered with a sentence that names it.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of bytes of a body.
    pub body: usize,
    /// Maximum number of bytes of a body that may carry files.
    pub files: usize,
    /// Maximum time of a request, apart from streams.
    pub request: Duration,
    /// Maximum time in which the head of a request arrives.
    pub head: Duration,
    /// Maximum time in which a client takes no byte of what is sent to it.
    pub stalled: Duration,
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of streams.
    pub streams: usize,
    /// Maximum number of streams of one token.
    pub streams_each: usize,
    /// Interval at which the token of a stream is looked at again. A stream ends once its token was revoked or has expired.
    pub recheck: Duration,
    /// Maximum number of requests with a body longer than `body` that are carried out at once.
    pub large: usize,
    /// Maximum number of such requests of one token.
    pub large_each: usize,
    /// Maximum number of answers longer than `body` that are being sent at once.
    pub answers: usize,
    /// Maximum number of such answers to one token.
    pub answers_each: usize,
    /// Maximum number of requests of one token that are carried out at once.
    pub at_once: usize,
    /// Number of requests a second of one token, on average.
    pub rate: u32,
    /// Number of requests that one token may send at once after a pause.
    pub burst: u32,
    /// Number of requests a second from one address that may fail to name a valid token. Further ones are told to wait; those that name a
    /// valid token are carried out.
    pub failures: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 1 << 20,
            files: 48 << 20,
            request: Duration::from_secs(75),
            head: Duration::from_secs(10),
            stalled: Duration::from_mins(1),
            connections: 10_000,
            streams: 2_000,
            streams_each: 16,
            recheck: Duration::from_secs(15),
            large: 8,
            large_each: 4,
            answers: 32,
            answers_each: 4,
            at_once: 64,
            rate: 50,
            burst: 200,
            failures: 5,
        }
    }
}

/// Maximum number of tokens and of addresses that are remembered. Those that use nothing are forgotten first.
const REMEMBERED: usize = 10_000;

/// The streams and requests that are open now.
#[derive(Debug, Default)]
pub(crate) struct Used(Mutex<Uses>);

#[derive(Debug, Default)]
struct Uses {
    /// The places of all tokens, by [`What`].
    all: Places,
    tokens: HashMap<Name, Use>,
    failures: HashMap<IpAddr, Bucket>,
}

#[derive(Debug)]
struct Use {
    /// The places of the token, by [`What`].
    own: Places,
    bucket: Bucket,
}

/// Numbers of things that are in use.
type Places = [usize; 4];

/// A bucket of requests: each takes one, and they come back with time.
#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn full(most: u32, now: Instant) -> Self {
        Self {
            left: f64::from(most),
            at: now,
        }
    }

    /// Lets back in what has come since, at most `most`.
    fn fill(&mut self, rate: u32, most: u32, now: Instant) {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + since * f64::from(rate)).min(f64::from(most));
        self.at = now;
    }

    fn take(&mut self) -> bool {
        let takes = self.left >= 1.0;
        if takes {
            self.left -= 1.0;
        }
        takes
    }
}

/// A thing that is in use until this is dropped.
#[derive(Debug)]
pub(crate) struct Using {
    used: Arc<Used>,
    token: Name,
    what: What,
}

/// The kinds of things that are in use.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum What {
    Request,
    Large,
    Answer,
    Stream,
}

impl Drop for Using {
    fn drop(&mut self) {
        let mut uses = self.used.lock();
        uses.all[self.what as usize] -= 1;
        if let Some(one) = uses.tokens.get_mut(&self.token) {
            one.own[self.what as usize] -= 1;
        }
    }
}

impl Used {
    fn lock(&self) -> MutexGuard<'_, Uses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a request of a token.
    ///
    /// # Errors
    /// The token has too many requests at once, or sends them too fast.
    pub(crate) fn request(
        self: &Arc<Self>,
        token: &Name,
        limits: &Limits,
    ) -> Result<Using, Problem> {
        let now = Instant::now();
        let mut uses = self.lock();
        let one = of(&mut uses.tokens, token, limits, now);
        one.bucket.fill(limits.rate, limits.burst, now);
        if one.own[What::Request as usize] >= limits.at_once {
            let most = limits.at_once;
            let why = format!("a token may have {most} requests at once");
            return Err(Problem::new(Code::Rate, why).help("wait until one of them is answered"));
        }
        if !one.bucket.take() {
            let why = format!(
                "a token may send {} requests a second, and {} at once after a pause",
                limits.rate, limits.burst
            );
            return Err(Problem::new(Code::Rate, why).help("send the same again later"));
        }
        Ok(self.using(&mut uses, token, What::Request))
    }

    /// Begins a request of a token whose body is large.
    ///
    /// # Errors
    /// The token or the server has too many of them.
    pub(crate) fn large(self: &Arc<Self>, token: &Name, limits: &Limits) -> Result<Using, Problem> {
        let most = (limits.large_each, limits.large);
        let few = self.few(token, limits, What::Large, most);
        few.map_err(|()| {
            let why = format!(
                "a token may have {} requests at once whose body is longer than {} bytes, and the server {}",
                limits.large_each, limits.body, limits.large
            );
            Problem::new(Code::Rate, why).help("wait until one of them is answered")
        })
    }

    /// Begins to send a large answer to a token.
    ///
    /// # Errors
    /// The token or the server has too many of them.
    pub(crate) fn answer(
        self: &Arc<Self>,
        token: &Name,
        limits: &Limits,
    ) -> Result<Using, Problem> {
        let most = (limits.answers_each, limits.answers);
        let few = self.few(token, limits, What::Answer, most);
        few.map_err(|()| {
            let why = format!(
                "a token may have {} answers under way that are longer than {} bytes, and the server {}",
                limits.answers_each, limits.body, limits.answers
            );
            Problem::new(Code::Rate, why).help("read one of them to its end first")
        })
    }

    /// Takes a place of which a token and the server have few.
    fn few(
        self: &Arc<Self>,
        token: &Name,
        limits: &Limits,
        what: What,
        (each, all): (usize, usize),
    ) -> Result<Using, ()> {
        let mut uses = self.lock();
        let own = of(&mut uses.tokens, token, limits, Instant::now()).own[what as usize];
        if own >= each || uses.all[what as usize] >= all {
            return Err(());
        }
        Ok(self.using(&mut uses, token, what))
    }

    /// Begins a stream of a token.
    ///
    /// # Errors
    /// The token or the server has too many streams.
    pub(crate) fn stream(
        self: &Arc<Self>,
        token: &Name,
        limits: &Limits,
    ) -> Result<Using, Problem> {
        let mut uses = self.lock();
        if uses.all[What::Stream as usize] >= limits.streams {
            let most = limits.streams;
            let why = format!("the server has its {most} streams already");
            return Err(Problem::new(Code::Streams, why));
        }
        let one = of(&mut uses.tokens, token, limits, Instant::now());
        if one.own[What::Stream as usize] >= limits.streams_each {
            let most = limits.streams_each;
            let why = format!("a token may have {most} streams");
            return Err(Problem::new(Code::Streams, why).help("close one of them first"));
        }
        Ok(self.using(&mut uses, token, What::Stream))
    }

    /// Counts a place of a token that is known.
    fn using(self: &Arc<Self>, uses: &mut Uses, token: &Name, what: What) -> Using {
        uses.all[what as usize] += 1;
        if let Some(one) = uses.tokens.get_mut(token) {
            one.own[what as usize] += 1;
        }
        Using {
            used: self.clone(),
            token: token.clone(),
            what,
        }
    }

    /// Returns true if an address has failed too often to name a valid token.
    pub(crate) fn is_guessing(&self, from: IpAddr, limits: &Limits) -> bool {
        let now = Instant::now();
        let mut uses = self.lock();
        let Some(bucket) = uses.failures.get_mut(&from) else {
            return false;
        };
        bucket.fill(limits.failures, limits.failures, now);
        bucket.left < 1.0
    }

    /// Counts a request that named no valid token.
    pub(crate) fn failed(&self, from: IpAddr, limits: &Limits) {
        let now = Instant::now();
        let mut uses = self.lock();
        forget(&mut uses.failures, |bucket| {
            bucket.fill(limits.failures, limits.failures, now);
            bucket.left < f64::from(limits.failures)
        });
        let bucket = uses.failures.entry(from);
        let bucket = bucket.or_insert_with(|| Bucket::full(limits.failures, now));
        bucket.fill(limits.failures, limits.failures, now);
        bucket.take();
    }
}

fn of<'a>(
    tokens: &'a mut HashMap<Name, Use>,
    token: &Name,
    limits: &Limits,
    now: Instant,
) -> &'a mut Use {
    forget(tokens, |one| {
        one.bucket.fill(limits.rate, limits.burst, now);
        one.own != Places::default() || one.bucket.left < f64::from(limits.burst)
    });
    tokens.entry(token.clone()).or_insert_with(|| Use {
        own: Places::default(),
        bucket: Bucket::full(limits.burst, now),
    })
}

/// Forgets entries that are as if new, once there are too many.
fn forget<K: Hash + Eq, V>(all: &mut HashMap<K, V>, mut keeps: impl FnMut(&mut V) -> bool) {
    if all.len() >= REMEMBERED {
        all.retain(|_, value| keeps(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_own_limits_and_they_come_back() {
        let limits = Limits {
            at_once: 2,
            burst: 3,
            rate: 0,
            streams: 2,
            streams_each: 1,
            large: 2,
            large_each: 1,
            ..Limits::default()
        };
        let used = Arc::new(Used::default());
        let (a, b): (Name, Name) = ("a".into(), "b".into());
        let first = used.request(&a, &limits).unwrap();
        let _second = used.request(&a, &limits).unwrap();
        assert!(used.request(&a, &limits).is_err(), "two at once");
        drop(first);
        let third = used.request(&a, &limits).unwrap();
        drop(third);
        assert!(used.request(&a, &limits).is_err(), "three of a burst");
        used.request(&b, &limits).unwrap();

        let large = used.large(&a, &limits).unwrap();
        assert!(used.large(&a, &limits).is_err(), "one of a token");
        let _other = used.large(&b, &limits).unwrap();
        drop(large);
        let c: Name = "c".into();
        let _third = used.large(&c, &limits).unwrap();
        assert!(used.large(&a, &limits).is_err(), "two of the server");

        let stream = used.stream(&a, &limits).unwrap();
        assert!(used.stream(&a, &limits).is_err());
        let _other = used.stream(&b, &limits).unwrap();
        drop(stream);
        used.stream(&a, &limits).unwrap();
    }

    #[test]
    fn an_address_that_guesses_tokens_has_to_wait() {
        let limits = Limits::default();
        let (used, from) = (Used::default(), IpAddr::from([127, 0, 0, 1]));
        for _ in 0..limits.failures {
            assert!(!used.is_guessing(from, &limits));
            used.failed(from, &limits);
        }
        assert!(used.is_guessing(from, &limits));
        assert!(!used.is_guessing(IpAddr::from([127, 0, 0, 2]), &limits));
    }
}
