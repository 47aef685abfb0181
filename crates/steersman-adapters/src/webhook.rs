//! Webhooks as Standard Webhooks 1.0.0 describes them: secrets, signatures, and requests to addresses that strangers name.
//!
//! ```text
//!   address --parse--> host --resolve--> addresses --[Reach]--> connect --> POST, signed --> status
//! ```
//!
//! An address comes from a client of a server, so a request must reach nothing that only the server reaches. A name is resolved for each connection, and only
//! addresses that the [`Reach`] allows are connected to: what was checked is what is used. Redirects are not followed, and no proxy is used.

use crate::transport::{describe, provider};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use ring::hmac::{HMAC_SHA256, Key, sign};
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use zeroize::Zeroizing;

/// The beginning of every secret, by which people and scanners recognise one.
const MARK: &str = "whsec_";
/// Number of random bytes of a secret.
const SECRET: usize = 32;
/// Maximum number of bytes of an address.
pub const ADDRESS: usize = 2_000;

/// Makes a secret: `whsec_` and 32 random bytes in base64.
#[must_use]
pub fn secret() -> Zeroizing<String> {
    let mut bytes = Zeroizing::new([0_u8; SECRET]);
    getrandom::fill(&mut *bytes).expect("the operating system gives random bytes");
    Zeroizing::new(format!("{MARK}{}", STANDARD.encode(*bytes)))
}

/// Returns the header `webhook-signature`: a signature with each of these secrets. `time` is the time of the attempt in seconds since 1970.
/// `None` if a text is not a secret.
#[must_use]
pub fn signature(secrets: &[Zeroizing<String>], id: &str, time: i64, body: &str) -> Option<String> {
    let told = format!("{id}.{time}.{body}");
    let signed = secrets.iter().map(|secret| {
        let key = STANDARD.decode(secret.strip_prefix(MARK)?).ok();
        let key = Zeroizing::new(key?);
        let tag = sign(&Key::new(HMAC_SHA256, &key), told.as_bytes());
        Some(format!("v1,{}", STANDARD.encode(tag)))
    });
    let signed: Vec<String> = signed.collect::<Option<_>>()?;
    Some(signed.join(" "))
}

/// A network that webhooks may reach although it is not public: `10.1.0.0/16`, or one address.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one = || text.parse::<IpAddr>().map(IpNet::from);
        let net = text.parse::<IpNet>().or_else(|_| one());
        net.map(Self).map_err(|_| {
            format!("`{text}` is not a network; write an address and a length: `10.1.0.0/16`")
        })
    }
}

/// Which addresses requests may reach: public ones, and those of networks that the operator names.
#[derive(Clone, Debug, Default)]
pub struct Reach(Arc<[Network]>);

impl FromIterator<Network> for Reach {
    fn from_iter<T: IntoIterator<Item = Network>>(networks: T) -> Self {
        Self(networks.into_iter().collect())
    }
}

/// Networks of version 4 that are not public: those of a host, a link, private networks and carriers, and reserved ones.
const PRIVATE: [([u8; 4], u8); 15] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// Parts of `2000::/3`, the public networks of version 6, that are not public or lead elsewhere: protocols and tunnels (`2001::/23`,
/// `2002::/16`), and documentation.
const NOT_PUBLIC: [(u128, u32); 4] = [
    (0x2001_u128 << 112, 23),
    (0x2001_0db8_u128 << 96, 32),
    (0x2002_u128 << 112, 16),
    (0x3fff_u128 << 112, 20),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let of = |(net, len): &([u8; 4], u8)| {
        let mask = u32::MAX << (32 - u32::from(*len));
        (address.to_bits() ^ u32::from_be_bytes(*net)) & mask == 0
    };
    !PRIVATE.iter().any(of)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    const NAT64: u128 = 0x0064_ff9b << 96;
    let bits = address.to_bits();
    // Such an address is one of version 4 in another form.
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    if bits >> 32 == NAT64 >> 32 {
        return is_public_v4(Ipv4Addr::from_bits(bits as u32));
    }
    bits >> 125 == 1
        && !NOT_PUBLIC
            .iter()
            .any(|(net, len)| (bits ^ net) >> (128 - len) == 0)
}

impl Reach {
    /// Returns true if the operator names a network of this address.
    fn names(&self, address: IpAddr) -> bool {
        // `::ffff:10.0.0.1` is `10.0.0.1`.
        let address = address.to_canonical();
        self.0.iter().any(|network| network.0.contains(&address))
    }

    /// Returns true if a request may reach this address. One without TLS reaches only networks that the operator names.
    fn allows(&self, address: IpAddr, is_secure: bool) -> bool {
        let is_public = match address {
            IpAddr::V4(address) => is_public_v4(address),
            IpAddr::V6(address) => is_public_v6(address),
        };
        self.names(address) || (is_secure && is_public)
    }

    /// Reads the address of a webhook. A name is not resolved yet: it may lead elsewhere later, so [`Poster::post`] does that for each connection.
    ///
    /// # Errors
    /// The fault of the address, and its remedy.
    pub fn address(&self, text: &str) -> Result<Target, String> {
        if text.len() > ADDRESS {
            return Err(format!("an address has at most {ADDRESS} bytes"));
        }
        let url: Url = text
            .parse()
            .map_err(|_| "it is not an address; write `https://desk.example/told`".to_owned())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("`{}` is not sent; `https` is", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(
                "an address of a webhook has no user, no password and no fragment".to_owned(),
            );
        }
        let is_secure = url.scheme() == "https";
        let host = match url.host() {
            None => return Err("it names no host".to_owned()),
            Some(url::Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(url::Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(url::Host::Domain(_)) => None,
        };
        if host.is_some_and(|host| !self.allows(host, is_secure)) {
            return Err(refusal(is_secure));
        }
        // A name may lead into such a network. Without one, nothing could be reached.
        if !is_secure && self.0.is_empty() {
            return Err(refusal(is_secure));
        }
        Ok(Target(url))
    }
}

fn refusal(is_secure: bool) -> String {
    let why = if is_secure {
        "it leads to an address that is not public"
    } else {
        "`http` reaches only networks that the operator of the server names; use `https`"
    };
    format!("{why} (`--webhooks-may-reach CIDR` names a network)")
}

/// The address of a webhook.
#[derive(Clone, Debug)]
pub struct Target(Url);

/// A signed message.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// Id of the message, the same in each attempt: letters, digits, `-` and `_`.
    pub id: &'a str,
    /// Time of the attempt in seconds since 1970.
    pub time: i64,
    /// Value of `webhook-signature`.
    pub signature: &'a str,
    /// The body, as it was signed.
    pub body: String,
}

/// The reason why a message was not sent, or has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPosted {
    /// The name leads to addresses that requests must not reach alone.
    Refused(String),
    /// The connection failed.
    Failed(String),
}

/// A host has no address that may be reached.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unreachable(String);

/// Sends messages to addresses within a [`Reach`]. Clones share connections.
#[derive(Clone, Debug)]
pub struct Poster(Arc<Clients>);

#[derive(Debug)]
struct Clients {
    reach: Reach,
    plain: OnceLock<Client>,
    secure: OnceLock<Client>,
}

impl Poster {
    /// Creates a poster that connects to what a [`Reach`] allows.
    #[must_use]
    pub fn new(reach: Reach) -> Self {
        Self(Arc::new(Clients {
            reach,
            plain: OnceLock::new(),
            secure: OnceLock::new(),
        }))
    }

    /// Returns the addresses that may be reached.
    #[must_use]
    pub fn reach(&self) -> &Reach {
        &self.0.reach
    }

    /// Sends a message once, and returns the status of the answer. There is no time limit: drop the future to give up.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn post(&self, to: &Target, message: Message<'_>) -> Result<u16, NotPosted> {
        let Target(url) = to;
        let client = self.client(url.scheme() == "https");
        let client = client.map_err(NotPosted::Failed)?;
        let post = client
            .post(url.clone())
            .header("content-type", "application/json")
            .header("webhook-id", message.id)
            .header("webhook-timestamp", message.time)
            .header("webhook-signature", message.signature)
            .body(message.body);
        match post.send().await {
            Ok(response) => Ok(response.status().as_u16()),
            Err(error) => {
                let mut source: Option<&(dyn Error + 'static)> = Some(&error);
                while let Some(cause) = source {
                    if let Some(Unreachable(why)) = cause.downcast_ref() {
                        return Err(NotPosted::Refused(why.clone()));
                    }
                    source = cause.source();
                }
                Err(NotPosted::Failed(describe(error)))
            }
        }
    }

    /// Returns the client for addresses with or without TLS. Certificates of the system are loaded for TLS alone.
    fn client(&self, is_secure: bool) -> Result<&Client, String> {
        let kept = if is_secure {
            &self.0.secure
        } else {
            &self.0.plain
        };
        if let Some(client) = kept.get() {
            return Ok(client);
        }
        provider();
        let mut builder = Client::builder()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .user_agent(concat!("steersman/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(Resolver {
                reach: self.0.reach.clone(),
                is_secure,
            }));
        if !is_secure {
            builder = builder.tls_certs_only(std::iter::empty());
        }
        let client = builder.build().map_err(describe)?;
        Ok(kept.get_or_init(|| client))
    }
}

/// Resolves names to addresses that may be reached.
struct Resolver {
    reach: Reach,
    is_secure: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, is_secure) = (self.reach.clone(), self.is_secure);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let mut found: Vec<SocketAddr> = found.collect();
            found.retain(|address| reach.allows(address.ip(), is_secure));
            if found.is_empty() {
                return Err(Unreachable(refusal(is_secure)).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(networks: &[&str]) -> Reach {
        networks.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_signature_is_that_of_the_specification() {
        // The secret, the message and the signature of its example libraries' tests.
        let secret = Zeroizing::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let (id, time) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330);
        let one = signature(
            std::slice::from_ref(&secret),
            id,
            time,
            "{\"test\": 2432232314}",
        );
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(one.as_deref(), Some(expected));
        let two = [super::secret(), secret];
        let both = signature(&two, id, time, "{\"test\": 2432232314}").unwrap();
        assert!(both.ends_with(&format!(" {expected}")), "{both}");
        let wrong = [Zeroizing::new("MfKQ".to_owned())];
        assert_eq!(signature(&wrong, id, time, ""), None);
    }

    #[test]
    fn secrets_are_long_and_differ() {
        let (one, other) = (secret(), secret());
        assert_ne!(*one, *other);
        let bytes = STANDARD.decode(one.strip_prefix(MARK).unwrap()).unwrap();
        assert_eq!(bytes.len(), SECRET);
    }

    #[test]
    fn only_public_addresses_are_reached() {
        let none = Reach::default();
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.31.255.255",
            "192.168.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "64:ff9b::a00:1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2001::1",
            "fc00::1",
            "fe80::1",
            "ff02::1",
        ] {
            let address = private.parse().unwrap();
            assert!(!none.allows(address, true), "{private}");
        }
        for public in [
            "1.1.1.1",
            "172.32.0.1",
            "2606:4700::1111",
            "64:ff9b::101:101",
        ] {
            let address = public.parse().unwrap();
            assert!(none.allows(address, true), "{public}");
            assert!(!none.allows(address, false), "{public} without TLS");
        }
        let some = reach(&["10.1.0.0/16", "::1"]);
        for (address, is_allowed) in [
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("::1", true),
            ("10.2.0.0", false),
            ("::2", false),
        ] {
            let parsed = address.parse().unwrap();
            assert_eq!(some.allows(parsed, false), is_allowed, "{address}");
        }
        assert!("10.1".parse::<Network>().is_err());
    }

    #[test]
    fn addresses_that_can_never_be_reached_are_refused_at_once() {
        let (none, some) = (Reach::default(), reach(&["127.0.0.0/8"]));
        for right in ["https://desk.example/told?of=1", "https://1.1.1.1:8443/"] {
            assert!(none.address(right).is_ok(), "{right}");
        }
        for wrong in [
            "desk.example",
            "ftp://desk.example",
            "https://",
            "https://ann:secret@desk.example",
            "https://desk.example/#part",
            "http://desk.example",
            "https://127.0.0.1/",
            // The number of 127.0.0.1, and other ways to write it.
            "https://2130706433/",
            "https://0x7f.1/",
            "https://[::ffff:127.0.0.1]/",
            "https://[fe80::1]/",
        ] {
            assert!(none.address(wrong).is_err(), "{wrong}");
        }
        assert!(
            none.address(&format!("https://a.example/{}", "x".repeat(ADDRESS)))
                .is_err()
        );
        assert!(some.address("http://127.0.0.1:80/").is_ok());
        assert!(some.address("http://1.1.1.1/").is_err());
    }

    #[tokio::test]
    async fn a_name_that_leads_home_is_refused_when_it_is_resolved() {
        let poster = Poster::new(Reach::default());
        let to = poster.reach().address("https://localhost:1/").unwrap();
        let message = Message {
            id: "a",
            time: 1,
            signature: "v1,",
            body: String::new(),
        };
        let posted = poster.post(&to, message).await;
        let Err(NotPosted::Refused(why)) = posted else {
            panic!("{posted:?}");
        };
        assert!(why.contains("not public"), "{why}");
    }
}
