//! Changes of modes, in the words of people.

use steersman_machine::commit::{Fired, Turned};
use steersman_machine::ids::{Id, Name};

/// Why a mode changed; `name` knows what was called.
pub(crate) fn why(why: Option<&Turned>, name: impl Fn(Id) -> Option<Name>) -> String {
    let called = |call: Id| name(call).map_or_else(|| call.to_string(), |name| name.to_string());
    let fired = |n: u32, fired: &Fired, of: &str| match fired {
        Fired::Call(call) => format!("after {}", called(*call)),
        Fired::Calls(1) => "after 1 model call".to_owned(),
        Fired::Calls(calls) => format!("after {calls} model calls"),
        Fired::Held => format!("exit {n}{of} holds"),
    };
    match why {
        Some(Turned::Exit(n, why)) => fired(*n, why, ""),
        Some(Turned::Everywhere(n, why)) => fired(*n, why, " of all modes"),
        Some(Turned::Said(call)) => format!("{} says so", called(*call)),
        Some(Turned::Anew) => "anew".to_owned(),
        None => String::new(),
    }
}
