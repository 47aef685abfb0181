//! `example-service NAME`: runs the service that an example calls, as a separate process, on a port or on standard input
//! and output.

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use std::path::PathBuf;

/// Serve what an example calls, on loopback.
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct ExampleServiceArgs {
    /// Which example.
    name: String,
    /// Port on loopback; 0 takes a free one. The address is printed once it listens.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The first refund is booked but never answered: what a slow bank looks like from here.
    #[arg(long)]
    stall: bool,
    /// Break the connection on some postings of `invoice`: after booking those that end with 7, and once before booking those
    /// that end with 8.
    #[arg(long)]
    faulty: bool,
    /// Book what comes in in this file, so that it outlives the service.
    #[arg(long, value_name = "FILE")]
    book: Option<PathBuf>,
    /// The folder of notes of `research`, which speaks MCP on standard input and output.
    #[arg(long, value_name = "FOLDER", default_value = "notes")]
    notes: PathBuf,
}

pub(crate) async fn run(
    args: ExampleServiceArgs,
    _global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    serve(args, printer).await
}

#[cfg(feature = "examples")]
async fn serve(args: ExampleServiceArgs, printer: &Printer) -> Result<Exit, CommandError> {
    use steersman_examples::{NAMES, Options, Service, StartError};
    let options = Options {
        port: args.port,
        stall: args.stall,
        faulty: args.faulty,
        book: args.book,
        notes: args.notes,
    };
    let started = Service::start(&args.name, options).await;
    let service = started.map_err(|error| match error {
        StartError::Io(error) => error.into(),
        StartError::Unknown(_) => {
            let names = NAMES.join(", ");
            CommandError::usage(error.to_string()).hint(format!("there are: {names}"))
        }
        StartError::Port { .. } => {
            CommandError::usage(error.to_string()).hint("--port 0 takes a free one")
        }
    })?;
    if let Some(address) = service.address() {
        printer.data(format!("http://{address}"))?;
    }
    service.serve().await?;
    Ok(Exit::Answered)
}

#[cfg(not(feature = "examples"))]
async fn serve(_args: ExampleServiceArgs, _printer: &Printer) -> Result<Exit, CommandError> {
    Err(left_out())
}

/// Returns the error of a program that was built without the feature `examples`.
pub(crate) fn left_out() -> CommandError {
    CommandError::usage("this program was built without the services of the examples")
        .hint("build it with its default features")
}
