//! Runs the matrix. Each figure is a process of its own; the repetition is the outermost loop, so that slow drift of the computer
//! meets all peers alike.

use super::matrix::{Kind, Peer, Places, Run, WORKLOADS};
use super::results::Raw;
use crate::say;
use serde_json::{Value as Json, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longest time of one run.
const LONGEST: Duration = Duration::from_mins(25);
/// A run that took longer than this once is not repeated.
const SLOW: Duration = Duration::from_mins(7);
/// Runs in a row of the workloads that measure one turn of a new process.
const IN_A_ROW: usize = 3;

/// The model server, which ends with this value.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(places: &Places) -> Result<Self, String> {
        let mut command = Command::new(&places.ours);
        let mut process = command
            .arg("stubd")
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("the model server does not start: {e}"))?;
        let out = process.stdout.take().expect("its output is piped");
        let mut url = String::new();
        let read = BufReader::new(out).read_line(&mut url);
        read.map_err(|e| e.to_string())?;
        Ok(Self {
            process,
            url: url.trim().to_owned(),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the workloads of the peers so often, and writes each result as it comes. A `share` of 10 does a tenth of the work.
pub(crate) fn matrix(
    places: &Places,
    peers: &[&Peer],
    workloads: &[String],
    (repetitions, share): (usize, usize),
    raw: &mut Raw,
) -> Result<(), String> {
    let server = Server::start(places)?;
    let mut slow: Vec<(&str, Run)> = Vec::new();
    for repetition in 0..repetitions {
        for workload in WORKLOADS {
            if !workloads.is_empty() && !workloads.iter().any(|wanted| wanted == workload) {
                continue;
            }
            for peer in peers {
                for mut run in peer.runs(workload) {
                    run.n = run.n.div_ceil(share);
                    if slow.contains(&(peer.name, run.clone())) {
                        continue;
                    }
                    let begun = Instant::now();
                    repeated(places, &server, peer, &run, repetition, raw)?;
                    if begun.elapsed() > SLOW {
                        slow.push((peer.name, run));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Runs one cell of the matrix once, or a few times in a row if it is short.
fn repeated(
    places: &Places,
    server: &Server,
    peer: &Peer,
    run: &Run,
    repetition: usize,
    raw: &mut Raw,
) -> Result<(), String> {
    let data = places.work.join("data");
    let kept = places.kept(peer, run);
    let in_folder = match run.workload {
        "W3" if peer.resumes(run.store) => {
            let _ = fs::remove_dir_all(&kept);
            true
        }
        "W5" if !kept.is_dir() => return Ok(()),
        workload => workload == "W5",
    };
    let times = if matches!(run.workload, "W5" | "W6") {
        IN_A_ROW
    } else {
        1
    };
    for _ in 0..times {
        let _ = fs::remove_dir_all(&data);
        fs::create_dir_all(&data).map_err(|e| format!("{}: {e}", data.display()))?;
        let mut command = places.command(peer, run);
        if in_folder {
            command.arg("--dir").arg(&kept);
        }
        if run.workload.starts_with("W7") {
            let part = run
                .stream
                .map_or(String::new(), |(pieces, _)| format!("/p{pieces}"));
            command.args(["--url", &format!("{}{part}/v1", server.url)]);
        }
        if let (Some((_, bytes)), Kind::Ours(_)) = (run.stream, peer.kind) {
            command.args(["--bytes", &bytes.to_string()]);
        }
        let figures = one(&mut command, &data, LONGEST);
        let mut line = json!({
            "peer": peer.name, "w": run.workload, "store": run.store, "n": run.n, "rep": repetition, "load": load(),
        });
        if let Some((pieces, bytes)) = run.stream {
            line["case"] = json!(format!("{pieces} pieces, {bytes} bytes"));
            (line["pieces"], line["bytes"]) = (pieces.into(), bytes.into());
        }
        let told = match figures {
            // Each case of raw storage is a line of its own.
            Ok(Json::Object(figures)) if figures.contains_key("cases") => {
                for case in figures["cases"].as_array().into_iter().flatten() {
                    let mut line = line.clone();
                    for (key, value) in case.as_object().into_iter().flatten() {
                        line[key] = value.clone();
                    }
                    raw.write(&line)?;
                }
                say(&format!("{repetition} {}", run.workload));
                continue;
            }
            Ok(Json::Object(figures)) => {
                let own = ["peer", "w", "store", "n"];
                let figures = figures
                    .into_iter()
                    .filter(|(key, _)| !own.contains(&key.as_str()));
                let line = line.as_object_mut().expect("a line is an object");
                line.extend(figures);
                line.get("steps_per_s")
                    .map_or_else(|| "done".to_owned(), |rate| format!("{rate} steps/s"))
            }
            Ok(other) => format!("no figures: {other}"),
            Err(why) => {
                line["error"] = why.clone().into();
                why
            }
        };
        let case = line["case"].as_str().unwrap_or_default().to_owned();
        say(&format!(
            "{repetition} {} {} {} {case} {told}",
            run.workload, peer.name, run.store
        ));
        raw.write(&line)?;
    }
    let _ = fs::remove_dir_all(&data);
    Ok(())
}

/// Runs a program. Returns the last line of its output that is a JSON object.
pub(crate) fn one(command: &mut Command, data: &Path, longest: Duration) -> Result<Json, String> {
    let text = |e: std::io::Error| format!("it does not run: {e}");
    let errors = data.join("errors.txt");
    let output = data.join("output.txt");
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or(Duration::ZERO).as_secs_f64();
    command
        .env("BENCH_DATA", data)
        .env("BENCH_T0", now.to_string());
    command.stdout(File::create(&output).map_err(text)?);
    command.stderr(File::create(&errors).map_err(text)?);
    let mut process = command.spawn().map_err(text)?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = process.try_wait().map_err(text)? {
            break status;
        }
        if begun.elapsed() > longest {
            process.kill().map_err(text)?;
            process.wait().map_err(text)?;
            return Err(format!("over {} s", longest.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let printed = fs::read_to_string(&output).unwrap_or_default();
    let mut lines = printed.lines().rev();
    let figures = lines.find_map(|line| serde_json::from_str(line).ok().filter(Json::is_object));
    let told = fs::read_to_string(&errors).unwrap_or_default();
    let last = told.trim().lines().last().unwrap_or_default();
    match figures {
        Some(figures) if status.success() => Ok(figures),
        _ => Err(without_folders(&format!("{status}: {last}"))),
    }
}

/// An error without folders of this computer: of a path only its last part stays.
fn without_folders(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.find('/') {
        Some(at) if word.matches('/').count() > 1 => {
            let name = word.rsplit('/').next().unwrap_or_default();
            format!("{}{name}", &word[..at])
        }
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The load average of the last minute.
fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().and_then(|first| first.parse().ok());
    first.unwrap_or(0.0)
}

/// Sizes of the scale section: parked sessions, live sessions, and lines of one session.
const PARKED: [usize; 4] = [100, 1_000, 10_000, 100_000];
const LIVE: [usize; 3] = [100, 1_000, 10_000];
const LINES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// Runs the scale section; `share` of 100 does a hundredth of the work.
pub(crate) fn scale(places: &Places, share: usize, raw: &mut Raw) -> Result<(), String> {
    let folder = places.work.join("scale");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let data = places.work.join("data");
    for (what, sizes) in [("parked", &PARKED[..]), ("live", &LIVE), ("lines", &LINES)] {
        for size in sizes
            .iter()
            .map(|size| size / share)
            .filter(|size| *size > 0)
        {
            fs::create_dir_all(&data).map_err(|e| format!("{}: {e}", data.display()))?;
            let mut command = Command::new(&places.ours);
            if what == "live" {
                command.args(["ours", "W2", &size.to_string(), "--store", "sqlite-commit"]);
            } else {
                command
                    .args(["scale", what, &size.to_string(), "--dir"])
                    .arg(&folder);
            }
            let mut figures = one(&mut command, &data, LONGEST * 3)?;
            figures["w"] = what.into();
            figures["n"] = size.into();
            say(&format!("{figures}"));
            raw.write(&figures)?;
            let _ = fs::remove_dir_all(&data);
        }
    }
    fs::remove_dir_all(&folder).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::without_folders;

    #[test]
    fn errors_name_no_folders() {
        let text = "File \"/tmp/bench/py/common.py\", line 3: 4 steps/s";
        assert_eq!(
            without_folders(text),
            "File \"common.py\", line 3: 4 steps/s"
        );
    }
}
