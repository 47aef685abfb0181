//! Ratings of artifacts by agents. A rating is a write of state, so the call needs no effect.

use super::refuse;
use crate::snapshot::{OpenCall, Snapshot};
use crate::stored::codes::Code;
use crate::stored::interaction::How;
use crate::stored::outcome::Mapped;
use crate::view::rating::{self, BEST, Rater, Rating, WORST};
use crate::view::{Cx, artifact, mapping};
use serde_json::Value as Json;

/// Returns the result of a call of `artifact_rate`.
pub(crate) fn rate(cx: &Cx<'_>, snapshot: &Snapshot, open: &OpenCall) -> Mapped {
    let args = mapping::arguments(cx, snapshot, open);
    let text = |key: &str| args.get(key).and_then(Json::as_str);
    let number = |key: &str| args.get(key).and_then(Json::as_u64);
    let name = text("name").unwrap_or_default();
    let Some(versions) = artifact::find(snapshot, Some(open.owner), name) else {
        let known = artifact::seen(snapshot, Some(open.owner));
        let known: Vec<&str> = known.iter().map(|seen| &*seen.name).collect();
        let there = match &known[..] {
            [] => "there are none".to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        return failed(format!("there is no artifact `{name}`; {there}"));
    };
    let newest = versions.len();
    let wanted = number("version").map_or(Some(newest), |n| usize::try_from(n).ok());
    let version = wanted.and_then(|n| Some((n, versions.get(n.checked_sub(1)?)?)));
    let Some((number_of, version)) = version else {
        return failed(format!("`{name}` has versions 1 to {newest}"));
    };
    let stars = number("rating").and_then(|n| u8::try_from(n).ok());
    let Some(stars) = stars.filter(|n| (WORST..=BEST).contains(n)) else {
        return failed(format!("`args.rating` is from {WORST} to {BEST}"));
    };
    let rating = Rating {
        rating: stars,
        reason: text("reason").map(str::to_owned),
        by: snapshot.agent(open.owner).def.to_string(),
        rater: Rater::Agent,
    };
    let mut shown = format!("Rated version {number_of} of `{name}` {stars} of {BEST}.");
    if let Some(over) = rating::of(snapshot, version).filter(|r| r.rater == Rater::Person) {
        shown = format!(
            "{shown} A person's rating counts before it: {}.",
            over.told()
        );
    }
    Mapped {
        writes: vec![rating::write(version, &rating)],
        ..Mapped::plain(How::Done, None, shown)
    }
}

fn failed(why: String) -> Mapped {
    refuse(Code::Failed, format!("failed: {why}"))
}
