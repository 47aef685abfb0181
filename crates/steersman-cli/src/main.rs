//! The program `steersman`.

mod address;
mod asked;
mod attach;
mod browser;
mod cli;
mod clock;
mod commands;
mod error;
mod exports;
mod grading;
mod locate;
mod place;
mod play;
mod printer;
mod prompt;
mod remote;
mod source;
mod step;
mod store;
mod tell;
mod words;

use clap::FromArgMatches;
use cli::Cli;
use error::CommandError;
use printer::{Printer, bold, here, red};
use std::process::ExitCode;

/// A step allocates often; the allocators of glibc and above all of musl are slower.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let parsed = cli::command()
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output, usage errors to standard error; clap chooses.
            let error = error::without_globals(error);
            printer::wrong_use(&error);
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let printer = Printer::new(&cli.global);
    let ended = runtime().and_then(|runtime| {
        let driven = cli.global.driven.clone();
        let ended = runtime.block_on(async {
            let ended = cli.command.run(&cli.global, &printer).await;
            let let_go = driven.let_go(&printer).await;
            // If both fail, the command's own error is reported, because that is the work that did not happen.
            ended.and_then(|exit| let_go.map(|()| exit))
        });
        // Only a prompt on a blocked thread may still run; nothing depends on it.
        runtime.shutdown_background();
        ended
    });
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            complain(&printer, &error);
            error.exit.into()
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    // A file size limit (`ulimit -f`) is reported like a full disk. Without a handler, the signal SIGXFSZ would end the
    // program silently.
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        const SIGXFSZ: i32 = 25;
        let _within = runtime.enter();
        drop(signal(SignalKind::from_raw(SIGXFSZ))?);
    }
    Ok(runtime)
}

fn complain(printer: &Printer, error: &CommandError) {
    if error.message.is_empty() {
        return;
    }
    printer.complain(format!("{} {}", red("error:"), error.message));
    for hint in &error.hints {
        printer.complain(format!("{} {}", bold("hint:"), here(hint)));
    }
}
