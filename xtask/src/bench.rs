//! `cargo xtask bench`: runs the workloads on Steersman, on its peers and on raw storage, several times in turn, and writes the
//! tables and plots of `docs/reference/benchmarks.md` from the results.

mod drawn;
mod figures;
mod install;
mod large;
mod matrix;
mod page;
mod plot;
mod results;
mod run;
mod server;
mod size;
mod worse;

use crate::tidy::root;
use matrix::{PEERS, Peer, WORKLOADS};
use results::Raw;
use std::path::PathBuf;
use std::process::Command;

pub(crate) const USE: &str = "bench [--peer NAME]... [--workload W]... [--reps N] [--dir DIR] [--add] [--scale] [--size] [--server] [--tables-only] [--try]";

/// The words after `cargo xtask bench`.
struct Options {
    peers: Vec<String>,
    workloads: Vec<String>,
    repetitions: usize,
    /// Folder of programs, data and raw results. Its file system decides the cost of a sync.
    work: PathBuf,
    /// Keeps the raw results of earlier runs.
    adds: bool,
    scale: bool,
    size: bool,
    server: bool,
    tables_only: bool,
    /// Does a tenth of the work once, and a hundredth of the scale, on a build without optimisation, to see that everything
    /// works. Writes the page and the plots into the work folder.
    tries: bool,
}

impl Options {
    fn read(words: &[&str]) -> Result<Self, String> {
        let mut options = Self {
            peers: Vec::new(),
            workloads: Vec::new(),
            repetitions: 3,
            work: root().join("target/bench"),
            adds: false,
            scale: false,
            size: false,
            server: false,
            tables_only: false,
            tries: false,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .ok_or_else(|| format!("{word} takes a value; use: {USE}"))
            };
            match *word {
                "--peer" => options.peers.push((*value()?).to_owned()),
                "--workload" => options.workloads.push((*value()?).to_owned()),
                "--reps" => {
                    let number = value()?.parse().ok().filter(|number| *number > 0);
                    options.repetitions = number.ok_or("--reps takes a number from 1")?;
                }
                "--dir" => {
                    options.work = std::path::absolute(value()?).map_err(|e| e.to_string())?;
                }
                "--add" => options.adds = true,
                "--scale" => options.scale = true,
                "--size" => options.size = true,
                "--server" => options.server = true,
                "--tables-only" => options.tables_only = true,
                "--try" => options.tries = true,
                other => return Err(format!("`{other}` is not an option of `bench`; use: {USE}")),
            }
        }
        let names = PEERS.map(|peer| peer.name);
        known(&options.peers, &names, "peer")?;
        known(&options.workloads, &WORKLOADS, "workload")?;
        Ok(options)
    }

    fn peers(&self) -> Vec<&'static Peer> {
        let wanted =
            |peer: &&Peer| self.peers.is_empty() || self.peers.iter().any(|name| name == peer.name);
        PEERS.iter().filter(wanted).collect()
    }
}

fn known(wanted: &[String], names: &[&str], what: &str) -> Result<(), String> {
    match wanted.iter().find(|name| !names.contains(&name.as_str())) {
        Some(other) => Err(format!("`{other}` is not a {what}: {}", names.join(", "))),
        None => Ok(()),
    }
}

/// Runs `cargo xtask bench` with the words that follow it.
pub(crate) fn bench(words: &[&str]) -> Result<(), String> {
    let options = Options::read(words)?;
    let raw = |name: &str| options.work.join(format!("{name}.jsonl"));
    let is_matrix = !options.scale && !options.size && !options.server;
    if !options.tables_only {
        let peers = if is_matrix {
            options.peers()
        } else {
            Vec::new()
        };
        std::fs::create_dir_all(&options.work)
            .map_err(|e| format!("{}: {e}", options.work.display()))?;
        let about = install::about(&peers, !options.tries);
        // The size is that of a program which is built for this.
        if is_matrix || options.scale || options.server {
            let places = install::install(&options.work, &peers, !options.tries)?;
            if is_matrix {
                let mut raw = Raw::begin(&raw("results"), &about, options.adds)?;
                let amount = if options.tries {
                    (1, 10)
                } else {
                    (options.repetitions, 1)
                };
                run::matrix(&places, &peers, &options.workloads, amount, &mut raw)?;
            }
            if options.scale {
                let mut raw = Raw::begin(&raw("scale"), &about, false)?;
                run::scale(&places, if options.tries { 100 } else { 1 }, &mut raw)?;
            }
            if options.server {
                let mut raw = Raw::begin(&raw("server"), &about, false)?;
                let share = if options.tries { 50 } else { 1 };
                server::measure(&places, !options.tries, share, &mut raw)?;
            }
        }
        if options.size {
            let mut raw = Raw::begin(&raw("size"), &about, false)?;
            size::measure(&options.work, !options.tries, &mut raw)?;
        }
    }
    let into = if options.tries {
        options.work.join("page")
    } else {
        root().join("docs/reference")
    };
    page::write(&options.work, &into)
}

/// The output of a command; empty if it fails.
fn said(program: &str, args: &[&str]) -> String {
    let out = Command::new(program)
        .current_dir(root())
        .args(args)
        .output();
    let out = out.ok().filter(|out| out.status.success());
    out.map_or_else(String::new, |out| {
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_select_peers_and_workloads() {
        let options = Options::read(&["--peer", "limit", "--workload", "W1", "--reps", "2"]);
        let options = options.expect("they are known");
        assert_eq!((options.peers().len(), options.repetitions), (1, 2));
        assert!(Options::read(&["--peer", "nobody"]).is_err());
        assert!(Options::read(&["--reps", "0"]).is_err());
    }
}
