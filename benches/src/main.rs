//! The workloads of the benchmarks: on the library, on a bare loop, and on raw storage. `cargo xtask bench` starts this program
//! once for each figure. The page `benches/README.md` defines the work.

mod bare;
mod limit;
mod meter;
mod ours;
mod scale;
mod served;
mod stubd;
mod texts;
mod visitors;

use ours::Work;
use serde_json::{Value as Json, json};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// The allocator of the program `steersman`. graph-flow is measured with it, too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USE: &str = "use: steersman-bench ours WORKLOAD N [--store NAME] [--dir DIR] [--url URL] [--bytes N] [--follow]
       steersman-bench bare WORKLOAD N --url URL [--bytes N]
       steersman-bench scale parked|lines N --dir DIR
       steersman-bench server pages|messages|streams|lines|ready SHARE --program FILE
       steersman-bench visit WHAT ADDRESS TOKEN ..
       steersman-bench limit
       steersman-bench stubd [PORT]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(line)) => {
            print(&line);
            ExitCode::SUCCESS
        }
        Err(why) => {
            complain(&*why);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "the driver reads the result")]
fn print(line: &Json) {
    println!("{line}");
}

#[expect(clippy::print_stderr, reason = "the driver shows the error")]
fn complain(why: &dyn Error) {
    eprintln!("{why}");
}

/// Runs one command. Returns its figures as one JSON document.
fn run(words: &[&str]) -> Result<Option<Json>, Box<dyn Error>> {
    match *words {
        ["stubd", ref rest @ ..] => {
            let port = rest.first().map_or(Ok(0), |port| port.parse())?;
            stubd::serve(port)?;
            Ok(None)
        }
        ["limit"] => {
            let folder = fresh_folder()?;
            let cases = limit::run(&folder, 1)?;
            std::fs::remove_dir_all(&folder)?;
            Ok(Some(
                json!({ "sqlite": rusqlite::version(), "cases": cases }),
            ))
        }
        ["scale", what, count, "--dir", folder] => {
            let count = count.parse()?;
            let figures = runtime()?.block_on(scale::run(what, count, folder.as_ref()))?;
            Ok(Some(figures))
        }
        ["server", what, share, "--program", program] => {
            let share = share.parse::<usize>()?.max(1);
            let figures = runtime()?.block_on(served::run(what, share, program))?;
            Ok(Some(figures))
        }
        ["visit", ref words @ ..] => {
            let saw = runtime()?.block_on(visitors::run(words));
            Ok(Some(saw.map_err(|e| e.to_string())?))
        }
        [kind @ ("ours" | "bare"), workload, n, ref rest @ ..] => {
            let (mut work, given) = read(workload, n.parse()?, rest)?;
            if given.is_none() {
                work.folder = fresh_folder()?;
            }
            std::fs::create_dir_all(&work.folder)?;
            let figures = runtime()?.block_on(work.run(kind == "bare"))?;
            if given.is_none() {
                std::fs::remove_dir_all(&work.folder)?;
            }
            Ok(Some(figures))
        }
        _ => Err(USE.into()),
    }
}

/// Reads the options of a workload. Returns the work and the folder, if one is given.
fn read(
    workload: &str,
    n: usize,
    rest: &[&str],
) -> Result<(Work, Option<PathBuf>), Box<dyn Error>> {
    let mut work = Work::new(workload, n);
    let mut given = None;
    let mut rest = rest.iter();
    while let Some(option) = rest.next() {
        if *option == "--follow" {
            work.follows = true;
            continue;
        }
        let value = rest.next().ok_or(USE)?;
        match *option {
            "--store" => (*value).clone_into(&mut work.store),
            "--url" => (*value).clone_into(&mut work.url),
            "--bytes" => work.bytes = value.parse()?,
            "--dir" => {
                work.folder = value.into();
                given = Some(value.into());
            }
            _ => return Err(USE.into()),
        }
    }
    Ok((work, given))
}

/// A runtime with two workers, as the program has on two cores.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build()
}

/// A new folder for stores, below `BENCH_DATA`, else below the folder for temporary files.
fn fresh_folder() -> std::io::Result<PathBuf> {
    let base = std::env::var_os("BENCH_DATA").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = base.join(format!("ours-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
