//! External programs that tests talk to. Scripts of this repository install them; this module starts them and stops them at
//! the end of the run.
//!
//! Tests against them are `#[ignore]`d in a plain test run, so that no test passes without testing anything. Here each of them
//! runs, or the run fails; only `--without NAME` leaves one out.

use crate::{run, say, tidy};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// An external program with its tests.
pub(crate) struct Counterpart {
    pub(crate) name: &'static str,
    kind: Kind,
    tests: Tests,
    /// Budget of its tests, not counting the installation.
    pub(crate) budget: Duration,
}

/// The way a counterpart is installed and started.
enum Kind {
    /// A script that runs a server on a given port; tests find the server's address in an environment variable.
    Server {
        script: &'static str,
        variable: &'static str,
        health: &'static str,
    },
    /// A script that installs programs and prints their folder; tests find the folder in an environment variable.
    Folder {
        script: &'static str,
        variable: &'static str,
    },
    /// A script that installs a program and prints its path.
    Program { script: &'static str },
    /// The right to mount file systems.
    Mounts,
}

/// The tests that run against a counterpart.
enum Tests {
    /// Ignored tests: the module that holds them, as a filter on their names.
    Ignored(&'static str),
    /// The program itself, run with these arguments.
    Itself(&'static [&'static str]),
}

const ALL: [Counterpart; 22] = [
    Counterpart {
        name: "cargo-deny",
        kind: Kind::Program {
            script: "scripts/cargo-deny.sh",
        },
        tests: Tests::Itself(&["deny", "check", "bans", "licenses", "sources"]),
        budget: Duration::from_secs(20),
    },
    Counterpart {
        name: "real-model",
        kind: Kind::Server {
            script: "scripts/real-model.sh",
            variable: "STEERSMAN_REAL_MODEL",
            health: "/health",
        },
        tests: Tests::Ignored("real::"),
        budget: Duration::from_mins(1),
    },
    Counterpart {
        name: "real-embeddings",
        kind: Kind::Server {
            script: "scripts/real-embeddings.sh",
            variable: "STEERSMAN_REAL_EMBEDDINGS",
            health: "/health",
        },
        tests: Tests::Ignored("real_embeddings::"),
        budget: Duration::from_secs(30),
    },
    Counterpart {
        name: "mock-server",
        kind: Kind::Server {
            script: "scripts/mock-server.sh",
            variable: "STEERSMAN_MOCK_SERVER",
            health: "/v1/models",
        },
        tests: Tests::Ignored("aimock::"),
        budget: Duration::from_secs(30),
    },
    Counterpart {
        name: "provider-sdks",
        kind: Kind::Folder {
            script: "scripts/provider-sdks.sh",
            variable: "STEERSMAN_PROVIDER_SDKS",
        },
        tests: Tests::Ignored("provider_sdks::"),
        budget: Duration::from_mins(4),
    },
    Counterpart {
        name: "mcp-servers",
        kind: Kind::Folder {
            script: "scripts/mcp-servers.sh",
            variable: "STEERSMAN_MCP_SERVERS",
        },
        tests: Tests::Ignored("reference::"),
        budget: Duration::from_secs(30),
    },
    Counterpart {
        name: "pytest-lsp",
        kind: Kind::Folder {
            script: "scripts/pytest-lsp.sh",
            variable: "STEERSMAN_PYTEST_LSP",
        },
        tests: Tests::Ignored("pytest_lsp::"),
        budget: Duration::from_mins(1),
    },
    Counterpart {
        name: "opentelemetry",
        kind: Kind::Folder {
            script: "scripts/opentelemetry-proto.sh",
            variable: "STEERSMAN_OPENTELEMETRY",
        },
        tests: Tests::Ignored("opentelemetry::"),
        budget: Duration::from_secs(30),
    },
    Counterpart {
        name: "openai-clients",
        kind: Kind::Folder {
            script: "scripts/openai-clients.sh",
            variable: "STEERSMAN_OPENAI",
        },
        tests: Tests::Ignored("openai_clients::"),
        budget: Duration::from_mins(1),
    },
    Counterpart {
        name: "agui-client",
        kind: Kind::Folder {
            script: "scripts/agui-client.sh",
            variable: "STEERSMAN_AGUI",
        },
        tests: Tests::Ignored("agui_clients::"),
        budget: Duration::from_mins(1),
    },
    Counterpart {
        name: "mcp-clients",
        kind: Kind::Folder {
            script: "scripts/mcp-clients.sh",
            variable: "STEERSMAN_MCP_CLIENTS",
        },
        tests: Tests::Ignored("mcp_clients::"),
        budget: Duration::from_mins(1),
    },
    Counterpart {
        name: "mcp-conformance",
        kind: Kind::Folder {
            script: "scripts/mcp-conformance.sh",
            variable: "STEERSMAN_MCP_CONFORMANCE",
        },
        tests: Tests::Ignored("mcp_conformance::"),
        budget: Duration::from_mins(1),
    },
    Counterpart {
        name: "a2a-sdk",
        kind: Kind::Folder {
            script: "scripts/a2a-sdk.sh",
            variable: "STEERSMAN_A2A",
        },
        tests: Tests::Ignored("a2a_sdk::"),
        budget: Duration::from_secs(30),
    },
    Counterpart {
        name: "python-client",
        kind: Kind::Folder {
            script: "scripts/python-client.sh",
            variable: "STEERSMAN_PYTHON_CLIENT",
        },
        tests: Tests::Ignored("python_client::"),
        budget: Duration::from_mins(1),
    },
    Counterpart {
        name: "typescript-client",
        kind: Kind::Folder {
            script: "scripts/typescript.sh",
            variable: "STEERSMAN_TYPESCRIPT",
        },
        tests: Tests::Ignored("typescript_client::"),
        budget: Duration::from_mins(1),
    },
    Counterpart {
        name: "chromium",
        kind: Kind::Folder {
            script: "scripts/chromium.sh",
            variable: "STEERSMAN_CHROMIUM",
        },
        tests: Tests::Ignored("chromium::"),
        budget: Duration::from_mins(5),
    },
    Counterpart {
        name: "console-marks",
        kind: Kind::Folder {
            script: "scripts/chromium.sh",
            variable: "STEERSMAN_CHROMIUM",
        },
        tests: Tests::Ignored("console_marks::alone::"),
        budget: Duration::from_mins(3),
    },
    Counterpart {
        name: "firefox",
        kind: Kind::Folder {
            script: "scripts/firefox.sh",
            variable: "STEERSMAN_FIREFOX",
        },
        tests: Tests::Ignored("firefox::"),
        budget: Duration::from_mins(2),
    },
    Counterpart {
        name: "schemathesis",
        kind: Kind::Folder {
            script: "scripts/schemathesis.sh",
            variable: "STEERSMAN_SCHEMATHESIS",
        },
        tests: Tests::Ignored("schemathesis::"),
        budget: Duration::from_mins(4),
    },
    Counterpart {
        name: "standardwebhooks",
        kind: Kind::Folder {
            script: "scripts/standardwebhooks.sh",
            variable: "STEERSMAN_STANDARDWEBHOOKS",
        },
        tests: Tests::Ignored("webhook_clients::"),
        budget: Duration::from_secs(30),
    },
    Counterpart {
        name: "python",
        kind: Kind::Program {
            script: "scripts/python.sh",
        },
        tests: Tests::Ignored("python::"),
        budget: Duration::from_secs(30),
    },
    Counterpart {
        name: "disks",
        kind: Kind::Mounts,
        tests: Tests::Ignored("disk::"),
        budget: Duration::from_secs(30),
    },
];

/// Maximum time until a server is installed, started and answers.
const PATIENCE: Duration = Duration::from_mins(10);

/// Returns the names that `--without` accepts.
pub(crate) fn names() -> Vec<&'static str> {
    ALL.iter().map(|one| one.name).collect()
}

/// Returns true if `--without` accepts this name.
pub(crate) fn is_known(name: &str) -> bool {
    ALL.iter().any(|one| one.name == name)
}

/// Counterparts being installed and started in parallel with the stages that do not need them.
pub(crate) struct Counterparts(JoinHandle<Result<Ready, String>>);

impl Counterparts {
    /// Begins to install and start the wanted counterparts, one after the other, because some share installed files.
    pub(crate) fn start(wanted: impl Fn(&str) -> bool) -> Self {
        let wanted: Vec<&'static Counterpart> = ALL.iter().filter(|one| wanted(one.name)).collect();
        Self(thread::spawn(move || {
            let mut ready = Ready(Vec::new());
            for one in wanted {
                let begun = Instant::now();
                let running = one.begin().map_err(|why| {
                    format!(
                        "{}: {why}; `--without {}` leaves it out",
                        one.name, one.name
                    )
                })?;
                say(&format!(
                    "== {} is ready after {} s",
                    one.name,
                    begun.elapsed().as_secs()
                ));
                ready.0.push((one, running));
            }
            Ok(ready)
        }))
    }

    /// Waits until all counterparts are ready. Reaps the scripts here and not earlier, because the system charges a child's
    /// processor time to the stage that reaps it.
    pub(crate) fn ready(self) -> Result<Ready, String> {
        let joined = self.0.join();
        let mut ready = joined.map_err(|_| "starting the counterparts panicked".to_owned())??;
        for (one, running) in &mut ready.0 {
            if let (Kind::Folder { script, .. } | Kind::Program { script }, Some(process)) =
                (&one.kind, &mut running.process)
            {
                let status = process.0.wait().map_err(|e| format!("{script}: {e}"))?;
                if !status.success() {
                    return Err(format!("{}: {script} ended with {status}", one.name));
                }
            }
        }
        Ok(ready)
    }
}

/// Counterparts that are ready. Dropping this value stops their servers.
pub(crate) struct Ready(Vec<(&'static Counterpart, Running)>);

impl Ready {
    pub(crate) fn all(&self) -> impl Iterator<Item = &'static Counterpart> {
        self.0.iter().map(|(one, _)| *one)
    }

    /// Runs the tests of one counterpart.
    pub(crate) fn test(&self, one: &Counterpart) -> Result<(), String> {
        let found = self.0.iter().find(|(other, _)| other.name == one.name);
        let (_, running) = found.ok_or_else(|| format!("{} was not started", one.name))?;
        match one.tests {
            Tests::Itself(words) => {
                say(&format!("== {}: {}", one.name, words.join(" ")));
                run(Command::new(&running.value).args(words))
            }
            Tests::Ignored(module) => {
                // The selection of packages is that of the stage `tests`, so nothing is built again.
                let test = |words: &[&str]| {
                    let mut cargo = crate::cargo();
                    cargo.args([
                        "test",
                        "--workspace",
                        "--test",
                        "it",
                        "--",
                        "--ignored",
                        module,
                    ]);
                    if let Some(variable) = one.variable() {
                        cargo.env(variable, &running.value);
                    }
                    cargo.args(words);
                    cargo
                };
                let listed = test(&["--list"]).current_dir(tidy::root()).output();
                let listed = listed.map_err(|e| format!("cargo could not be started: {e}"))?;
                let listed = String::from_utf8_lossy(&listed.stdout);
                if !listed.lines().any(|line| line.ends_with(": test")) {
                    return Err(format!("no ignored test of `{module}` was found"));
                }
                say(&format!("== {}: ignored tests in {module}", one.name));
                run(&mut test(&[]))
            }
        }
    }
}

/// A ready counterpart.
struct Running {
    /// Its address, folder or path.
    value: String,
    /// Process of its script; a server runs, another has printed its result.
    process: Option<Process>,
}

impl Running {
    fn at(value: String) -> Self {
        Self {
            value,
            process: None,
        }
    }
}

/// A process that is killed on drop.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // killing fails if the process has ended already, which is fine
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Counterpart {
    fn variable(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Server { variable, .. } | Kind::Folder { variable, .. } => Some(variable),
            Kind::Program { .. } | Kind::Mounts => None,
        }
    }

    /// Installs and starts the counterpart. If its environment variable is set already, uses that value as it is.
    fn begin(&self) -> Result<Running, String> {
        if let Some(value) = self.variable().and_then(|name| std::env::var(name).ok()) {
            return Ok(Running::at(value));
        }
        match self.kind {
            Kind::Server { script, health, .. } => serve(script, health),
            Kind::Folder { script, .. } | Kind::Program { script } => output_of(script),
            Kind::Mounts => may_mount()
                .then(|| Running::at(String::new()))
                .ok_or_else(|| "this user cannot mount a file system".to_owned()),
        }
    }
}

/// Runs a script of this repository until it has printed its result.
fn output_of(script: &str) -> Result<Running, String> {
    let child = Command::new("bash")
        .arg(script)
        .current_dir(tidy::root())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{script} could not be started: {e}"))?;
    let mut process = Process(child);
    let mut printed = String::new();
    let read = process
        .0
        .stdout
        .take()
        .map(|mut out| out.read_to_string(&mut printed));
    match read {
        Some(Ok(_)) if !printed.trim().is_empty() => Ok(Running {
            value: printed.trim().to_owned(),
            process: Some(process),
        }),
        _ => Err(format!("{script} printed no result")),
    }
}

/// Starts a server on a free port and waits until it answers.
fn serve(script: &str, health: &str) -> Result<Running, String> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
    let port = free.map_err(|e| format!("no port is free: {e}"))?.port();
    let log = std::env::temp_dir().join(format!("steersman-counterpart-{port}.log"));
    let file = std::fs::File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let both = file.try_clone().map_err(|e| e.to_string())?;
    let child = Command::new("bash")
        .args([script, &port.to_string()])
        .current_dir(tidy::root())
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(both)
        .spawn()
        .map_err(|e| format!("{script} could not be started: {e}"))?;
    let mut server = Process(child);
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if answers(port, health) {
            return Ok(Running {
                value: format!("http://127.0.0.1:{port}/v1"),
                process: Some(server),
            });
        }
        if let Ok(Some(status)) = server.0.try_wait() {
            return Err(format!(
                "{script} ended with {status}; see {}",
                log.display()
            ));
        }
        thread::sleep(Duration::from_millis(200));
    }
    Err(format!("{script} does not answer; see {}", log.display()))
}

/// Returns true if a server answers a request with status 200.
fn answers(port: u16, path: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else {
        return false;
    };
    let request = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
    let mut head = [0; 12];
    stream
        .set_read_timeout(Some(Duration::from_secs(2)))
        .is_ok()
        && stream.write_all(request.as_bytes()).is_ok()
        && stream.read_exact(&mut head).is_ok()
        && head.ends_with(b" 200")
}

/// Returns true if this user may mount and unmount a file system.
fn may_mount() -> bool {
    let at = std::env::temp_dir().join(format!("steersman-mount-{}", std::process::id()));
    if std::fs::create_dir(&at).is_err() {
        return false;
    }
    let done = |command: &mut Command| command.output().is_ok_and(|o| o.status.success());
    let mounted = done(
        Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(&at),
    );
    let free = !mounted || done(Command::new("umount").arg(&at));
    // an empty folder left in the temporary folder does no harm
    drop(std::fs::remove_dir(&at));
    mounted && free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_not_waited_for_when_it_has_printed_its_result() {
        let script = std::env::temp_dir().join(format!("steersman-script-{}", std::process::id()));
        std::fs::write(&script, "echo /somewhere").unwrap();
        let running = output_of(script.to_str().unwrap()).unwrap();
        std::fs::remove_file(&script).unwrap();
        assert_eq!(running.value, "/somewhere");
        // An ended process has its entry until it is waited for.
        let process = running.process.unwrap();
        assert!(std::path::Path::new(&format!("/proc/{}", process.0.id())).exists());
    }
}
