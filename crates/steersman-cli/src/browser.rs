//! Starts a browser with the console.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program that opens files with the program of the person's choice.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};
/// Name of the file that leads to the console.
const FILE: &str = "console.html";

/// Returns the address of the console of a server. A code stands for a token, once and within a minute.
pub(crate) fn address(server: &str, code: Option<&str>) -> String {
    let server = server.trim_end_matches('/');
    match code {
        Some(code) => format!("{server}/#c={code}"),
        None => format!("{server}/"),
    }
}

/// Opens an address in a browser. It goes there by a file that only its owner can read, because others see the arguments of programs.
pub(crate) fn open(url: &str, folder: Option<&Path>) -> Result<(), String> {
    let file = folder.map_or_else(std::env::temp_dir, Path::to_owned);
    let file =
        leads(&file.join(FILE), url).map_err(|error| format!("no browser opens: {error}"))?;
    let mut command = Command::new(OPENER);
    command.arg(&file);
    command.stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let started = command.spawn();
    let mut child = started.map_err(|error| format!("no browser opens: `{OPENER}`: {error}"))?;
    // Nobody waits for a browser; its end is only taken notice of.
    std::thread::spawn(move || child.wait());
    Ok(())
}

/// Writes the file that leads to an address. A file of another person of this name is not written.
fn leads(file: &Path, url: &str) -> std::io::Result<PathBuf> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = std::fs::OpenOptions::new();
    let mut open = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?;
    writeln!(
        open,
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<meta http-equiv=\"refresh\" content=\"0;url={url}\">\n\
         <title>Steersman</title>\n<a href=\"{url}\">Open the console</a>"
    )?;
    Ok(file.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_file_that_leads_to_the_console_is_its_owner_s_alone() {
        let folder = std::env::temp_dir().join(format!("steersman-opens-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let url = address("http://127.0.0.1:7410", Some("abc"));
        assert_eq!(url, "http://127.0.0.1:7410/#c=abc");
        for _ in 0..2 {
            let file = leads(&folder.join(FILE), &url).unwrap();
            let mode = std::fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains(&format!("url={url}\"")), "{text}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
