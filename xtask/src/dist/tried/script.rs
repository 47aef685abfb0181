//! The install script, as the documents name its ways, up to the first answer that a new user gets.

use super::super::forms::{self, SUMS};
use super::super::tree::{EXPECTED, plain, write};
use super::super::{Made, Places, at, copied, emptied, said};
use super::holds;
use crate::say;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{chown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Most time from an archive to the first answer that a new user gets.
const FIRST_ANSWER: Duration = Duration::from_mins(1);

/// The programs that the script needs, as the documents say, and those that every system has for files and texts.
const TOOLS: [&str; 17] = [
    "sh",
    "tar",
    "gzip",
    "sha256sum",
    "wget",
    "cp",
    "cut",
    "dirname",
    "find",
    "grep",
    "id",
    "mkdir",
    "mktemp",
    "mv",
    "rm",
    "uname",
    "wc",
];

/// A user who owns nothing.
const NOBODY: u32 = 65534;

/// Runs the install script as the documents say.
fn install(from: &str, prefix: &Path, places: &Places) -> Command {
    let mut script = Command::new("sh");
    script.arg(places.out.join("install.sh"));
    script.args(["--from", from, "--prefix"]).arg(prefix);
    script
}

/// Installs from the folder over an older version and gets a first answer; then installs from an address, with the other program
/// that the script may fetch with, and nothing more than it needs.
pub(super) fn installs(made: &Made, places: &Places) -> Result<(), String> {
    let begun = Instant::now();
    let prefix = emptied(places.work.join("prefix"))?;
    let folder = places.out.display().to_string();
    said(&mut install(&folder, &prefix, places))?;
    has_all(&prefix)?;
    first_answer(&prefix.join("bin/steersman"), places)?;
    let took = begun.elapsed();
    if took > FIRST_ANSWER {
        return Err(format!(
            "the first answer took {took:?}, longer than {FIRST_ANSWER:?}"
        ));
    }
    holds(
        made,
        &format!(
            "from the archive to the first answer: {:.1} s",
            took.as_secs_f64()
        ),
    );
    let tools = emptied(places.work.join("tools"))?;
    for tool in TOOLS {
        let path = said(Command::new("sh").args(["-c", &format!("command -v {tool}")]))?;
        symlink(path, tools.join(tool)).map_err(at(&tools))?;
    }
    for from in [folder, served(&places.out)?] {
        let prefix = emptied(places.work.join("over-older"))?;
        older(made, &prefix, places)?;
        said(install(&from, &prefix, places).env("PATH", &tools))?;
        has_all(&prefix)?;
        let differs = said(Command::new("diff").arg("-r").arg(&made.tree).arg(&prefix));
        differs.map_err(|why| format!("an installation over an older one is another: {why}"))?;
    }
    holds(
        made,
        "the script installs from a folder and from an address, over an older version",
    );
    Ok(())
}

fn has_all(prefix: &Path) -> Result<(), String> {
    match EXPECTED.iter().find(|file| !prefix.join(file).exists()) {
        None => Ok(()),
        Some(file) => Err(format!("the install script left out {file}")),
    }
}

/// Installs an older version, which has a page that the new one lacks.
fn older(made: &Made, prefix: &Path, places: &Places) -> Result<(), String> {
    let whole = emptied(places.work.join("older"))?;
    let tree = whole.join(format!("steersman-0.0.1-{}", made.target));
    for (path, text) in [
        ("bin/steersman", "#!/bin/sh\necho steersman 0.0.1\n"),
        ("share/man/man1/steersman-gone.1", ".TH gone 1\n"),
        ("share/man/man1/steersman.1", ".TH steersman 1\n"),
        ("share/doc/steersman/README.md", "Old.\n"),
        ("share/doc/steersman/OLD.md", "Old.\n"),
    ] {
        let file = tree.join(path);
        fs::create_dir_all(file.parent().unwrap_or(&tree)).map_err(at(&file))?;
        write(&file, text)?;
    }
    plain(&tree)?;
    let release = emptied(whole.join("release"))?;
    forms::archive(&tree, "0", &release, 1)?;
    forms::summed(&release)?;
    let from = release.display().to_string();
    let told = said(&mut install(&from, prefix, places))?;
    if told.contains("steersman 0.0.1") {
        Ok(())
    } else {
        Err(format!(
            "the install script says, of an older version: {told}"
        ))
    }
}

/// The steps of the README, with a model that reads a script.
fn first_answer(program: &Path, places: &Places) -> Result<(), String> {
    let home = emptied(places.work.join("home"))?;
    let run = |folder: &Path, words: &[&str]| {
        let mut command = Command::new(program);
        command.current_dir(folder).env("HOME", &home).args(words);
        command
    };
    let desk = home.join("desk");
    said(&mut run(&home, &["demo"]))?;
    said(&mut run(&home, &["new", "desk"]))?;
    said(&mut run(&desk, &["check"]))?;
    said(&mut run(&desk, &["test"]))?;
    let asks = [
        "run",
        "--script-all",
        "script.yaml",
        "--input",
        "Send 150 to anna",
    ];
    let waits = run(&desk, &asks).output().map_err(|e| e.to_string())?;
    if waits.status.code() != Some(5) {
        return Err(format!(
            "the first session does not ask for an approval: {waits:?}"
        ));
    }
    let answer = said(&mut run(&desk, &["approve", "last"]))?;
    if answer.contains("Anna gets 150.00.") {
        Ok(())
    } else {
        Err(format!("the first session answers: {answer}"))
    }
}

/// Damages a folder with an archive and its checksum.
type Damage<'a> = &'a dyn Fn(&Path) -> Result<(), String>;

/// The install script refuses damaged and unnamed archives, and then leaves the prefix as it was.
pub(super) fn refuses(made: &Made, places: &Places) -> Result<(), String> {
    let name = made.archive.file_name().unwrap_or_default();
    let unsummed = |folder: &Path| {
        let sums = folder.join(SUMS);
        let text = fs::read_to_string(&sums).map_err(at(&sums))?;
        let name = name.to_string_lossy();
        let others = text.lines().filter(|line| !line.ends_with(&*name));
        let others: Vec<&str> = others.collect();
        write(&sums, &(others.join("\n") + "\n"))
    };
    let damage: [(&str, Damage<'_>); 5] = [
        ("a flipped bit", &|folder| {
            let archive = folder.join(name);
            let mut bytes = fs::read(&archive).map_err(at(&archive))?;
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&archive, bytes).map_err(at(&archive))
        }),
        ("a cut archive", &|folder| {
            let archive = folder.join(name);
            let bytes = fs::read(&archive).map_err(at(&archive))?;
            fs::write(&archive, &bytes[..bytes.len() / 2]).map_err(at(&archive))
        }),
        ("an archive without a checksum", &unsummed),
        ("a missing archive", &|folder| {
            let archive = folder.join(name);
            fs::remove_file(&archive).map_err(at(&archive))
        }),
        ("missing checksums", &|folder| {
            let sums = folder.join(SUMS);
            fs::remove_file(&sums).map_err(at(&sums))
        }),
    ];
    let untouched = emptied(places.work.join("untouched"))?;
    let prefix = untouched.join("prefix");
    older(made, &prefix, places)?;
    let before = untouched.join("before");
    said(Command::new("cp").arg("-a").args([&prefix, &before]))?;
    for (what, does) in damage {
        let folder = emptied(places.work.join("damaged"))?;
        copied(&made.archive, &folder.join(name))?;
        copied(&places.out.join(SUMS), &folder.join(SUMS))?;
        does(&folder)?;
        for from in [folder.display().to_string(), served(&folder)?] {
            if said(&mut install(&from, &prefix, places)).is_ok() {
                return Err(format!("the install script accepts {what} from {from}"));
            }
            said(Command::new("diff").arg("-r").args([&before, &prefix])).map_err(|why| {
                format!("the install script changes files in spite of {what}: {why}")
            })?;
        }
    }
    holds(
        made,
        "the script refuses damaged archives, and changes nothing then",
    );
    Ok(())
}

/// A user without rights installs into the folder of their own, and cannot install anywhere else.
pub(super) fn serves_a_user(places: &Places) -> Result<(), String> {
    // Not below the folder of the work, which other users may not be able to enter.
    let home = std::env::temp_dir().join(format!("steersman-user-{}", std::process::id()));
    let home = emptied(home)?;
    chown(&home, Some(NOBODY), Some(NOBODY)).map_err(at(&home))?;
    let from = served(&places.out)?;
    let user = |words: &[&str]| {
        let mut user = Command::new("setpriv");
        user.arg(format!("--reuid={NOBODY}"))
            .arg(format!("--regid={NOBODY}"))
            .args(["--clear-groups", "env", "-i", "PATH=/usr/bin:/bin"])
            .arg(format!("HOME={}", home.display()))
            .args(words)
            .current_dir(&home);
        user
    };
    // The script comes through a pipe.
    let script = places.out.join("install.sh");
    let piped = |words: &[&str]| -> Result<String, String> {
        let words = [&["sh", "-s", "--", "--from", &from], words].concat();
        let script = fs::File::open(&script).map_err(at(&script))?;
        said(user(&words).stdin(Stdio::from(script)))
    };
    piped(&[])?;
    let local = home.join(".local");
    has_all(&local)?;
    let program = local.join("bin/steersman").display().to_string();
    said(&mut user(&[&program, "demo"]))?;
    let system = places.work.join("not-theirs");
    let system = emptied(system)?;
    if piped(&["--prefix", &system.display().to_string()]).is_ok() {
        return Err("the install script says that it installed where it may not write".into());
    }
    fs::remove_dir_all(&home).map_err(at(&home))?;
    say("== the script installs into the folder of a user without rights");
    Ok(())
}

/// Serves the files of a folder on loopback as long as this process runs. Returns the address.
fn served(folder: &Path) -> Result<String, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| e.to_string())?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let folder = folder.to_owned();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that leaves is told by its own end.
            drop(serve(&stream, &folder));
        }
    });
    Ok(format!("http://{address}"))
}

fn serve(mut stream: &TcpStream, folder: &Path) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let asked = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = asked.split(' ').nth(1).unwrap_or_default();
    let name = Path::new(path).file_name().unwrap_or_default();
    match fs::read(folder.join(name)) {
        Ok(bytes) => {
            let length = bytes.len();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            stream.write_all(head.as_bytes())?;
            stream.write_all(&bytes)
        }
        Err(_) => stream
            .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
    }
}
