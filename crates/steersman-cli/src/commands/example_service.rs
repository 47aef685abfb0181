//! `example-service NAME`: runs the service that an example calls, as a separate process, on a port or on standard input
//! and output.

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use crate::service;
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
    // These services use standard input and output; this process does nothing else.
    let streams = || (std::io::stdin().lock(), std::io::stdout().lock());
    match args.name.as_str() {
        "research" => {
            let (input, output) = streams();
            service::mcp::serve(&service::research::Notes(&args.notes), input, output)?;
            return Ok(Exit::Answered);
        }
        "pdf" => {
            let (input, output) = streams();
            service::mcp::serve(&service::pdf::Pdf, input, output)?;
            return Ok(Exit::Answered);
        }
        _ => {}
    }
    let routes = match args.name.as_str() {
        "bank" => service::bank::routes(args.book)?,
        "support" => service::support::routes(args.stall, args.book)?,
        "invoice" => service::invoice::routes(args.faulty, args.book)?,
        other => {
            return Err(
                CommandError::usage(format!("no example has a service named `{other}`"))
                    .hint("there are: bank, invoice, pdf, research, support"),
            );
        }
    };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", args.port))
        .await
        .map_err(|e| {
            CommandError::usage(format!("port {} on loopback cannot be had: {e}", args.port))
                .hint("--port 0 takes a free one")
        })?;
    let address = listener.local_addr()?;
    printer.data(format!("http://{address}"))?;
    let stop = async {
        // Without a signal handler, the service runs until it is killed, which is fine.
        let _ = tokio::signal::ctrl_c().await;
    };
    axum::serve(listener, routes)
        .with_graceful_shutdown(stop)
        .await?;
    Ok(Exit::Answered)
}
