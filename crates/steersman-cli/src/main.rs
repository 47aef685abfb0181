//! The program `steersman`.

mod address;
mod asked;
mod attach;
mod cli;
mod clock;
mod commands;
mod error;
mod filter;
mod locate;
mod place;
mod play;
mod printer;
mod prompt;
mod service;
mod step;
mod store;
mod tell;
mod words;

use clap::FromArgMatches;
use cli::{Cli, Command};
use error::{CommandError, Exit};
use printer::{Printer, bold, here, red};
use std::process::ExitCode;

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
            let ended = dispatch(cli, &printer).await;
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

async fn dispatch(cli: Cli, printer: &Printer) -> Result<Exit, CommandError> {
    let Cli { global, command } = cli;
    let global = &global;
    match command {
        Command::Demo => commands::demo::run(global, printer),
        Command::New(args) => commands::new::run(args, printer),
        Command::Check(args) => Box::pin(commands::check::run(args, printer)).await,
        Command::Run(args) => Box::pin(commands::run::run(args, global, printer)).await,
        Command::Sessions(args) => commands::sessions::run(args, global, printer).await,
        Command::Show(args) => commands::show::run(args, global, printer).await,
        Command::Log(args) => commands::log::run(args, global, printer).await,
        Command::Context(args) => commands::context::run(args, global, printer).await,
        Command::Effects(args) => commands::effects::run(args, global, printer).await,
        Command::Graph(args) => Box::pin(commands::graph::run(args, global, printer)).await,
        Command::Why(args) => Box::pin(commands::why::run(args, global, printer)).await,
        Command::Artifacts(args) => Box::pin(commands::artifacts::run(args, global, printer)).await,
        Command::Memory(args) => Box::pin(commands::memory::run(args, global, printer)).await,
        Command::Pending(args) => commands::pending::run(args, global, printer).await,
        Command::Send(args) => Box::pin(commands::send::run(args, global, printer)).await,
        Command::Answer(args) => Box::pin(commands::answer::run(args, global, printer)).await,
        Command::Approve(args) => Box::pin(commands::approve::run(args, global, printer)).await,
        Command::Reject(args) => Box::pin(commands::reject::run(args, global, printer)).await,
        Command::Resolve(args) => Box::pin(commands::resolve::run(args, global, printer)).await,
        Command::Cancel(args) => Box::pin(commands::cancel::run(args, global, printer)).await,
        Command::Pause(args) => Box::pin(commands::orders::pause(args, global, printer)).await,
        Command::Resume(args) => Box::pin(commands::orders::resume(args, global, printer)).await,
        Command::Hold(args) => Box::pin(commands::orders::hold(args, global, printer)).await,
        Command::Release(args) => Box::pin(commands::orders::release(args, global, printer)).await,
        Command::Retry(args) => Box::pin(commands::orders::retry(args, global, printer)).await,
        Command::Rerun(args) => Box::pin(commands::rerun::run(args, global, printer)).await,
        Command::Export(args) => commands::export::run(args, global, printer).await,
        Command::Diff(args) => commands::diff::run(args, global, printer).await,
        Command::Fork(args) => Box::pin(commands::fork::run(args, global, printer)).await,
        Command::Join(args) => Box::pin(commands::join::run(args, global, printer)).await,
        Command::Adopt(args) => Box::pin(commands::adopt::run(args, global, printer)).await,
        Command::Rewind(args) => Box::pin(commands::rewind::run(args, global, printer)).await,
        Command::Search(args) => Box::pin(commands::search::run(*args, global, printer)).await,
        Command::Import(args) => commands::import::run(args, printer),
        Command::Migrate(args) => Box::pin(commands::migrate::run(args, global, printer)).await,
        Command::Gc(args) => commands::gc::run(args, global, printer).await,
        Command::Fsck(args) => Box::pin(commands::fsck::run(args, global, printer)).await,
        Command::Backup(args) => commands::backup::run(args, global, printer).await,
        Command::Erase(args) => Box::pin(commands::erase::run(args, global, printer)).await,
        Command::Doctor(args) => Box::pin(commands::doctor::run(args, global, printer)).await,
        Command::Completions(args) => commands::completions::run(args, printer),
        Command::Test(args) => Box::pin(commands::test::run(args, global, printer)).await,
        Command::Schema => commands::schema::run(printer),
        Command::Explain(args) => commands::explain::run(args, printer),
        Command::ExampleService(args) => commands::example_service::run(args, printer).await,
    }
}
