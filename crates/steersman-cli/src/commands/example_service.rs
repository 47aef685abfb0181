//! `example-service NAME`: runs the service that an example calls, as a separate process, on a port or on standard input
//! and output.

use crate::cli::ExampleService;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use crate::service;

pub(crate) async fn run(args: ExampleService, printer: &Printer) -> Result<Exit, CommandError> {
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
