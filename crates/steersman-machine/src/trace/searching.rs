//! Progress of a search in traces.

use super::{Trace, quoted};
use crate::stored::commit::Searching;
use crate::stored::ids::{Bodies, Id};

impl Trace {
    pub(super) fn searching(&self, search: Id, what: &Searching, bodies: &dyn Bodies) -> String {
        let what = match what {
            Searching::Began {
                agent,
                branch,
                at,
                plan,
            } => {
                let agent = agent.map_or_else(|| "a person".to_owned(), |id| id.to_string());
                let (branch, plan) = (self.branch(*branch), quoted(bodies, *plan));
                format!("began for {agent} on {branch} at {at} {plan}")
            }
            Searching::Tried { branch, number } => {
                format!("tries {} as {number}", self.branch(*branch))
            }
            Searching::Judged { branch, of, at } => {
                let (branch, of) = (self.branch(*branch), self.branch(*of));
                format!("judges {of} at {at} on {branch}")
            }
            Searching::Stood {
                branch, at, over, ..
            } => {
                let word = if *over { "ended" } else { "stands" };
                format!("{} {word} at {at}", self.branch(*branch))
            }
            Searching::Scored {
                branch,
                at,
                value,
                why,
            } => {
                let value = value.as_deref().unwrap_or("nothing");
                let why = why.map(|why| format!(" {}", quoted(bodies, why)));
                let branch = self.branch(*branch);
                format!(
                    "{branch} at {at} is worth {value}{}",
                    why.unwrap_or_default()
                )
            }
            Searching::Over { winner, why } => match winner {
                Some((branch, at)) => format!("over, {why}: {} at {at}", self.branch(*branch)),
                None => format!("over, {why}"),
            },
            Searching::Without(why) => format!("without, {}", quoted(bodies, *why)),
        };
        format!("search {search} {what}")
    }
}
