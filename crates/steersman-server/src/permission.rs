//! The permissions of tokens.

use utoipa::ToSchema;

/// Declares the permissions, in the order in which lists name them.
macro_rules! permissions {
    ($($(#[$doc:meta])+ $name:ident = $word:literal;)+) => {
        /// Something that a token may allow.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Permission {
            $($(#[$doc])+ $name,)+
        }

        impl Permission {
            /// All permissions.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the word that tokens store.
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)+ }
            }
        }
    };
}

permissions! {
    /// Looks at sessions, events and views. The values of secrets that a session knows are masked in all texts.
    Read = "read";
    /// Looks at contexts exactly as models got them, and at everything else unmasked.
    Context = "context";
    /// Starts sessions, and sends messages.
    Write = "write";
    /// Sends events, such as those of a payment: sessions take them for true.
    Events = "events";
    /// Decides questions, in the roles of the token.
    Decide = "decide";
    /// Pauses, resumes, holds, releases, retries and cancels.
    Operate = "operate";
    /// Forks, rewinds, joins and adopts branches.
    Time = "time";
    /// Looks at memories and changes them.
    Memory = "memory";
    /// Makes, lists and revokes tokens and webhooks of the same tenant.
    Admin = "admin";
}

impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

impl std::str::FromStr for Permission {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|known| known.word() == text);
        found.copied().ok_or_else(|| {
            let all: Vec<&str> = Self::ALL.iter().map(|known| known.word()).collect();
            format!("`{text}` is no permission; they are: {}", all.join(", "))
        })
    }
}
