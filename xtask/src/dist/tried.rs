//! Installs what was made in every way that the documents name, and runs it. A release that nobody installed is none.

use super::forms::{SUMS, architecture};
use super::tree::EXPECTED;
use super::{Made, Places, VERSION, at, build, copied, machine, said};
use crate::say;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Most time from an archive to the first answer that a new user gets.
const FIRST_ANSWER: Duration = Duration::from_mins(1);

/// An answer that a scripted model gives without any tool, since an empty root has no programs.
const SCRIPT: &str = "desk: [ At your service. ]\n";

/// Tries all files of a release.
pub(super) fn all(made: &[Made], places: &Places) -> Result<(), String> {
    said(
        Command::new("sha256sum")
            .current_dir(&places.out)
            .args(["--quiet", "--check", SUMS]),
    )?;
    let here = build::this_machine()?;
    for one in made {
        complete(one)?;
        if machine(&one.target) == machine(&here) {
            installs(one, places)?;
            refuses(one, places)?;
        }
        let Some(runner) = Runner::of(one, &here)? else {
            continue;
        };
        debian_root(one, &runner, places)?;
        image_root(one, &runner, places)?;
        say(&format!(
            "== {}: package and image run in empty roots",
            one.target
        ));
    }
    Ok(())
}

/// The archive and the package have each file that people look for.
fn complete(made: &Made) -> Result<(), String> {
    let archive = said(Command::new("tar").arg("-tzf").arg(&made.archive))?;
    let package = said(
        Command::new("dpkg-deb")
            .arg("--contents")
            .arg(&made.package),
    )?;
    for file in EXPECTED {
        let in_archive = format!("steersman-{VERSION}-{}/{file}", made.target);
        let in_package = format!("./usr/{file}").replace("site-functions", "vendor-completions");
        if !archive.lines().any(|line| line == in_archive) {
            return Err(format!("{} has no {in_archive}", made.archive.display()));
        }
        if !package.lines().any(|line| line.ends_with(&in_package)) {
            return Err(format!("{} has no {in_package}", made.package.display()));
        }
    }
    let field = |name: &str| {
        said(
            Command::new("dpkg-deb")
                .arg("--field")
                .arg(&made.package)
                .arg(name),
        )
    };
    let (version, of) = (field("Version")?, field("Architecture")?);
    if version == VERSION && of == architecture(&made.target) {
        Ok(())
    } else {
        Err(format!(
            "{} says it is {version} for {of}",
            made.package.display()
        ))
    }
}

/// Runs the install script as the documents say.
fn install(from: &str, prefix: &Path, places: &Places) -> Command {
    let mut script = Command::new("sh");
    script.arg(places.out.join("install.sh"));
    script.args(["--from", from, "--prefix"]).arg(prefix);
    script
}

/// Installs from the folder and from an address, and gets a first answer.
fn installs(made: &Made, places: &Places) -> Result<(), String> {
    let begun = Instant::now();
    let prefix = places.work.join("prefix");
    said(&mut install(
        &places.out.display().to_string(),
        &prefix,
        places,
    ))?;
    if let Some(file) = EXPECTED.iter().find(|file| !prefix.join(file).exists()) {
        return Err(format!("the install script left out {file}"));
    }
    first_answer(&prefix.join("bin/steersman"), places)?;
    let took = begun.elapsed();
    say(&format!(
        "== {}: from the archive to the first answer: {:.1} s",
        made.target,
        took.as_secs_f64()
    ));
    if took > FIRST_ANSWER {
        return Err(format!(
            "the first answer took longer than {FIRST_ANSWER:?}"
        ));
    }
    // A second installation takes the place of the first one.
    let script = prefix.join("share/bash-completion/completions/steersman");
    fs::write(&script, "old").map_err(at(&script))?;
    said(&mut install(&served(&places.out)?, &prefix, places))?;
    said(Command::new("bash").arg("-n").arg(&script))?;
    let script = fs::read_to_string(&script).map_err(at(&script))?;
    if script.contains("_steersman") {
        Ok(())
    } else {
        Err("the install script does not replace what an older one installed".into())
    }
}

/// The steps of the README, with a model that reads a script.
fn first_answer(program: &Path, places: &Places) -> Result<(), String> {
    let home = places.work.join("home");
    fs::create_dir_all(&home).map_err(at(&home))?;
    let run = |folder: &Path, words: &[&str]| {
        let mut command = Command::new(program);
        command.current_dir(folder).env("HOME", &home).args(words);
        command
    };
    let desk = home.join("desk");
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
    if !answer.contains("Anna gets 150.00.") {
        return Err(format!("the first session answers: {answer}"));
    }
    said(&mut run(&home, &["demo"])).map(|_| ())
}

/// Damages a folder with an archive and its checksum.
type Damage<'a> = &'a dyn Fn(&Path) -> Result<(), String>;

/// The install script refuses damaged and unnamed archives, and then leaves the prefix as it was.
fn refuses(made: &Made, places: &Places) -> Result<(), String> {
    let name = made.archive.file_name().unwrap_or_default();
    let damage: [(&str, Damage<'_>); 3] = [
        ("a flipped bit", &|folder| {
            let archive = folder.join(name);
            let mut bytes = fs::read(&archive).map_err(at(&archive))?;
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&archive, bytes).map_err(at(&archive))
        }),
        ("an archive without a checksum", &|folder| {
            let sums = folder.join(SUMS);
            let text = fs::read_to_string(&sums).map_err(at(&sums))?;
            let name = name.to_string_lossy();
            let others = text.lines().filter(|line| !line.ends_with(&*name));
            let others: Vec<&str> = others.collect();
            fs::write(&sums, others.join("\n") + "\n").map_err(at(&sums))
        }),
        ("a missing archive", &|folder| {
            let archive = folder.join(name);
            fs::remove_file(&archive).map_err(at(&archive))
        }),
    ];
    for (what, does) in damage {
        let folder = places.work.join("damaged");
        copied(&made.archive, &folder.join(name))?;
        copied(&places.out.join(SUMS), &folder.join(SUMS))?;
        does(&folder)?;
        let prefix = places.work.join("untouched");
        if said(&mut install(&folder.display().to_string(), &prefix, places)).is_ok() {
            return Err(format!("the install script accepts {what}"));
        }
        if prefix.exists() {
            return Err(format!("the install script installs in spite of {what}"));
        }
    }
    Ok(())
}

/// The way to run a program of a target in a root of its own.
enum Runner {
    Itself,
    /// Through an emulator, which is a static program itself.
    Emulator(PathBuf),
}

impl Runner {
    /// Returns none, and says why, if nothing can run the program here.
    fn of(made: &Made, here: &str) -> Result<Option<Self>, String> {
        let not = |why: &str| {
            say(&format!(
                "== {}: not run in an empty root: {why}",
                made.target
            ));
            Ok(None)
        };
        if !made.is_static {
            return not("its program needs the libraries of the system");
        }
        if said(Command::new("id").arg("-u"))? != "0" {
            return not("only root may change the root of a process");
        }
        if machine(&made.target) == machine(here) {
            return Ok(Some(Self::Itself));
        }
        let emulator = format!("/usr/bin/qemu-{}-static", machine(&made.target));
        if Path::new(&emulator).exists() {
            Ok(Some(Self::Emulator(emulator.into())))
        } else {
            not("the package `qemu-user-static` of the system runs it")
        }
    }

    /// Runs the program in a root that has nothing else, up to the first answer of a scripted model.
    fn answers(&self, root: &Path) -> Result<(), String> {
        if let Self::Emulator(emulator) = self {
            copied(emulator, &root.join("emulator"))?;
        }
        let script = root.join("hello.yaml");
        fs::write(&script, SCRIPT).map_err(at(&script))?;
        let run = |words: &[&str]| {
            let mut chroot = Command::new("chroot");
            chroot
                .env_clear()
                .env("PATH", "/usr/bin:/usr/sbin:/bin:/sbin")
                .env("HOME", "/");
            chroot.arg(root);
            if matches!(self, Self::Emulator(_)) {
                chroot.arg("/emulator");
            }
            said(chroot.arg("/usr/bin/steersman").args(words))
        };
        let version = run(&["--version"])?;
        if version != format!("steersman {VERSION}") {
            return Err(format!("the program says that it is `{version}`"));
        }
        run(&["new", "desk"])?;
        run(&["check", "desk"])?;
        run(&["test", "desk"])?;
        let words = [
            "run",
            "desk",
            "--script-all",
            "hello.yaml",
            "--input",
            "Hello",
        ];
        let answer = run(&words)?;
        if answer.contains("At your service.") {
            Ok(())
        } else {
            Err(format!(
                "the program in {} answers: {answer}",
                root.display()
            ))
        }
    }
}

/// Makes an empty folder.
fn emptied(folder: PathBuf) -> Result<PathBuf, String> {
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(at(&folder))?;
    }
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    Ok(folder)
}

/// Installs the Debian package in a root that has only an empty list of packages, and removes it.
fn debian_root(made: &Made, runner: &Runner, places: &Places) -> Result<(), String> {
    let root = emptied(places.work.join("debian"))?;
    let database = root.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        let folder = database.join(folder);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
    }
    let status = database.join("status");
    fs::write(&status, "").map_err(at(&status))?;
    let dpkg = |words: &[&str]| {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", root.display()))
            .arg("--force-architecture");
        dpkg.args(["--log=/dev/null"]).args(words);
        dpkg
    };
    said(dpkg(&["--install"]).arg(&made.package))?;
    runner.answers(&root)?;
    said(&mut dpkg(&["--remove", "steersman"]))?;
    if root.join("usr").exists() {
        return Err("dpkg leaves files behind when it removes the package".into());
    }
    Ok(())
}

/// Unpacks the image as an engine for containers does, and runs its program.
fn image_root(made: &Made, runner: &Runner, places: &Places) -> Result<(), String> {
    let layout = emptied(places.work.join("layout"))?;
    said(
        Command::new("tar")
            .arg("-xf")
            .arg(&made.image)
            .arg("-C")
            .arg(&layout),
    )?;
    let read = |path: &Path| -> Result<serde_json::Value, String> {
        let text = fs::read(path).map_err(at(path))?;
        serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))
    };
    let blob = |descriptor: &serde_json::Value| {
        let digest = descriptor["digest"].as_str().unwrap_or_default();
        layout.join("blobs").join(digest.replace(':', "/"))
    };
    let manifest = read(&blob(&read(&layout.join("index.json"))?["manifests"][0]))?;
    let config = read(&blob(&manifest["config"]))?;
    let entry = config["config"]["Entrypoint"][0].as_str();
    if entry != Some("/usr/bin/steersman") || config["architecture"] != architecture(&made.target) {
        return Err(format!("the image is not one of {}: {config}", made.target));
    }
    let root = emptied(places.work.join("container"))?;
    for layer in manifest["layers"].as_array().into_iter().flatten() {
        said(
            Command::new("tar")
                .arg("-xf")
                .arg(blob(layer))
                .arg("-C")
                .arg(&root),
        )?;
    }
    runner.answers(&root)
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
        Err(_) => stream.write_all(b"HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n"),
    }
}
