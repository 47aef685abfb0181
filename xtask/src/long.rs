//! Campaigns that are too long for CI. CI runs a short form of each.

use crate::{run, say};
use std::time::Instant;

/// A test together with the settings of its long form.
struct Campaign {
    name: &'static str,
    /// The property that the campaign tests, in words.
    shows: &'static str,
    cargo: &'static [&'static str],
    set: &'static [(&'static str, &'static str)],
}

const ALL: [Campaign; 11] = [
    Campaign {
        name: "random-sessions",
        shows: "the machine over 100,000 random sessions: fold, replay and codec agree",
        cargo: &[
            "test",
            "--release",
            "-p",
            "steersman-machine",
            "--test",
            "it",
            "--",
            "random::",
            "apart::",
            "policies::",
        ],
        set: &[("STEERSMAN_RANDOM_SESSIONS", "100000")],
    },
    Campaign {
        name: "reruns",
        shows: "unchanged reruns of 100,000 random sessions ask no model and have no differences",
        cargo: &[
            "test",
            "--release",
            "-p",
            "steersman-runtime",
            "--test",
            "it",
            "recorded::",
        ],
        set: &[("STEERSMAN_RANDOM_SESSIONS", "100000")],
    },
    Campaign {
        name: "sequences",
        shows: "2,000 random sequences of people's commands with kills: a new owner drives each session to its rest",
        cargo: &[
            "test",
            "--release",
            "-p",
            "steersman-runtime",
            "--test",
            "it",
            "sequences::",
        ],
        set: &[("STEERSMAN_SEQUENCES", "2000")],
    },
    Campaign {
        name: "simulate",
        shows: "20,000 simulated sessions with lies, faults, crashes and people: everything that must hold holds",
        cargo: &[
            "test",
            "--release",
            "-p",
            "steersman",
            "--test",
            "it",
            "simulation::",
        ],
        set: &[("STEERSMAN_SIMULATIONS", "20000")],
    },
    Campaign {
        name: "wide",
        shows: "the largest definitions that fit into a file: each is checked within 2 s",
        cargo: &[
            "test",
            "--release",
            "-p",
            "steersman-definition",
            "--test",
            "it",
            "wide::any_definition",
            "--",
            "--ignored",
        ],
        set: &[],
    },
    Campaign {
        name: "kills",
        shows: "each example, killed 200 times at random moments, ends as it does without kills",
        cargo: &[
            "test",
            "--release",
            "-p",
            "steersman-cli",
            "--test",
            "it",
            "crash::",
        ],
        set: &[("STEERSMAN_KILLS", "200")],
    },
    Campaign {
        name: "office",
        shows: "300 invoices with kills, doubts and people: every posting once",
        cargo: &[
            "test",
            "--release",
            "-p",
            "steersman-cli",
            "--test",
            "it",
            "office::",
        ],
        set: &[("STEERSMAN_SESSIONS", "300")],
    },
    Campaign {
        name: "acts",
        shows: "random acts of people with kills before, inside and after them: every pair of acts 50 times",
        cargo: &["test", "--release", "-p", "steersman-cli", "--test", "acts"],
        set: &[("STEERSMAN_ACTS", "900")],
    },
    Campaign {
        name: "serve-kills",
        shows: "a server is killed 200 times under 50 clients: they miss no event and get none twice, and every payment is made once",
        cargo: &[
            "test",
            "--release",
            "-p",
            "steersman-cli",
            "--test",
            "it",
            "serve_kills::",
        ],
        set: &[("STEERSMAN_SERVE_KILLS", "200")],
    },
    Campaign {
        name: "serve-hostile",
        shows: "hostile requests in 100 passes, thousands of connections and slow clients: each is answered or cut off, and memory stays flat",
        cargo: &[
            "test",
            "--release",
            "-p",
            "steersman-cli",
            "--test",
            "it",
            "serve_hostile::",
        ],
        set: &[("STEERSMAN_SERVE_HOSTILE", "100")],
    },
    Campaign {
        name: "soak",
        shows: "sessions of all kinds for 30 minutes in one process: memory, handles and the WAL do not grow",
        cargo: &["test", "--release", "-p", "steersman", "--test", "soak"],
        set: &[(SOAK, "30")],
    },
];

/// The variable that has the minutes of the soak.
const SOAK: &str = "STEERSMAN_SOAK";

/// Runs what the words after `long` say: the named campaigns, or all. `fuzz`, `dist` and `soak` take words of their own.
pub(crate) fn all(words: &[&str]) -> Result<(), String> {
    match words {
        ["fuzz", rest @ ..] => crate::fuzz::campaign(rest),
        ["dist", rest @ ..] => crate::dist::dist(rest),
        ["soak", minutes] if minutes.parse::<f64>().is_ok() => {
            let soak = ALL.iter().find(|campaign| campaign.name == "soak");
            let soak = soak.expect("the soak is a campaign");
            soak.run(&[(SOAK, *minutes)])
        }
        [] => {
            run_campaigns(&[])?;
            crate::fuzz::campaign(&[])?;
            crate::dist::dist(&[])
        }
        names => run_campaigns(names),
    }
}

impl Campaign {
    fn run(&self, set: &[(&str, &str)]) -> Result<(), String> {
        let begun = Instant::now();
        say(&format!("== {}: {}", self.name, self.shows));
        let mut cargo = crate::cargo();
        cargo.args(self.cargo);
        if !self.cargo.contains(&"--") {
            cargo.arg("--");
        }
        cargo.arg("--nocapture");
        run(cargo.envs(set.iter().copied()))
            .map_err(|why| format!("{} failed: {why}", self.name))?;
        say(&format!(
            "== {}: {} s",
            self.name,
            begun.elapsed().as_secs()
        ));
        Ok(())
    }
}

/// Runs the named campaigns; all of [`ALL`] if no name is given.
fn run_campaigns(names: &[&str]) -> Result<(), String> {
    if let Some(other) = names
        .iter()
        .find(|name| ALL.iter().all(|c| c.name != **name))
    {
        let known: Vec<&str> = ALL.iter().map(|campaign| campaign.name).collect();
        return Err(format!(
            "`{other}` is not a campaign; the campaigns are {}, dist, fuzz",
            known.join(", ")
        ));
    }
    let wanted = ALL
        .iter()
        .filter(|c| names.is_empty() || names.contains(&c.name));
    for campaign in wanted {
        campaign.run(campaign.set)?;
    }
    Ok(())
}
