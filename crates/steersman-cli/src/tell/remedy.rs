//! Commands that help after a stop.

use steersman::runtime::session::Settled;
use steersman::views::cause::Reason;
use steersman::views::remedy::{Act, Advice, advice};

/// Returns the command of an act, for a session as people type it.
pub(crate) fn command(act: Act, session: &str) -> String {
    match act {
        Act::Doctor => "steersman doctor".to_owned(),
        Act::Retry => format!("steersman retry {session}"),
        Act::Resume => format!("steersman run --resume {session}"),
        Act::Rebind => format!("steersman run --resume {session} --rebind"),
        Act::RebindAndSay => format!("steersman run --resume {session} --rebind --input \"...\""),
        Act::Say => format!("steersman send {session} \"...\""),
        Act::Fork => format!("steersman fork {session} --say \"...\""),
        Act::Context => format!("steersman context {session}"),
        Act::Show => format!("steersman show {session}"),
        Act::Pending => "steersman pending".to_owned(),
    }
}

/// Returns the sentences of an advice, and the commands that help.
pub(crate) fn advised(advice: &Advice, session: &str) -> (String, Vec<String>) {
    let commands = advice.acts.iter().map(|act| command(*act, session));
    (advice.sentence.clone(), commands.collect())
}

/// Returns for a session that stopped the cause and remedy as sentences, and the commands that help; nothing for another one.
/// `first`: what failed first, if that is known.
pub(crate) fn remedy(
    settled: &Settled,
    first: Option<&Reason>,
    session: &str,
) -> Option<(String, Vec<String>)> {
    Some(advised(&advice(settled, first)?, session))
}
