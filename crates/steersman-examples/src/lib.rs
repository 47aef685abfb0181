//! The services that the examples call. They are small processes of their own: some listen on loopback, some use standard input
//! and output. The program runs them: `steersman example-service NAME`.

mod bank;
mod book;
mod invoice;
mod mcp;
mod pdf;
mod research;
mod support;

use crate::book::Book;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::net::TcpListener;

/// The names of the services.
pub const NAMES: [&str; 5] = ["bank", "invoice", "pdf", "research", "support"];

/// Options of a service. Each service uses some of them.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Port on loopback; 0 takes a free one.
    pub port: u16,
    /// `support` books the first refund and never answers it.
    pub stall: bool,
    /// `invoice` breaks the connection on some postings.
    pub faulty: bool,
    /// File of the book of `bank`, `invoice` and `support`. With a file, the book survives a restart of the service.
    pub book: Option<PathBuf>,
    /// Folder of the notes of `research`.
    pub notes: PathBuf,
}

/// The reason why a service did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no service of this name.
    #[error("no example has a service named `{0}`")]
    Unknown(String),
    /// The port is in use, or not permitted.
    #[error("the service cannot listen on port {port} on loopback: {error}")]
    Port {
        /// The port that was asked for.
        port: u16,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The book cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// A service that was started. It answers requests while [`Self::serve`] runs.
pub struct Service(Kind);

enum Kind {
    Http {
        listener: TcpListener,
        address: SocketAddr,
        routes: axum::Router,
    },
    Notes(PathBuf),
    Pdf,
}

impl Service {
    /// Starts a service. One that uses HTTP listens when this returns.
    pub async fn start(name: &str, options: Options) -> Result<Self, StartError> {
        let book = || Book::open(options.book);
        let routes = match name {
            "research" => return Ok(Self(Kind::Notes(options.notes))),
            "pdf" => return Ok(Self(Kind::Pdf)),
            "bank" => bank::routes(book()?),
            "support" => support::routes(options.stall, book()?),
            "invoice" => invoice::routes(options.faulty, book()?),
            other => return Err(StartError::Unknown(other.to_owned())),
        };
        let port = options.port;
        let listener = TcpListener::bind(("127.0.0.1", port)).await;
        let listener = listener.map_err(|error| StartError::Port { port, error })?;
        let address = listener.local_addr()?;
        Ok(Self(Kind::Http {
            listener,
            address,
            routes,
        }))
    }

    /// Returns the address at which the service listens; `None` means that it uses standard input and output.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.0 {
            Kind::Http { address, .. } => Some(*address),
            Kind::Notes(_) | Kind::Pdf => None,
        }
    }

    /// Answers requests until Ctrl-C, or until standard input ends.
    pub async fn serve(self) -> std::io::Result<()> {
        // A service on standard input and output blocks its thread; its process does nothing else.
        let streams = || (std::io::stdin().lock(), std::io::stdout().lock());
        match self.0 {
            Kind::Notes(folder) => {
                let (input, output) = streams();
                mcp::serve(&research::Notes(&folder), input, output)
            }
            Kind::Pdf => {
                let (input, output) = streams();
                mcp::serve(&pdf::Pdf, input, output)
            }
            Kind::Http {
                listener, routes, ..
            } => {
                let stop = async {
                    // Without a signal handler, the service runs until it is killed, which is fine.
                    let _ = tokio::signal::ctrl_c().await;
                };
                axum::serve(listener, routes)
                    .with_graceful_shutdown(stop)
                    .await
            }
        }
    }
}

/// Maximum size in bytes of a file that a service reads.
const LARGEST: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_name_is_a_service() {
        for name in NAMES {
            let started = Service::start(name, Options::default()).await;
            assert!(started.is_ok(), "{name}");
        }
        let unknown = Service::start("shop", Options::default()).await;
        assert!(matches!(unknown, Err(StartError::Unknown(name)) if name == "shop"));
    }

    #[tokio::test]
    async fn a_line_of_a_book_that_is_no_entry_is_an_error() {
        let file = std::env::temp_dir().join(format!("steersman-book-{}", std::process::id()));
        std::fs::write(&file, "{\"id\":\"r-1\"}\n{\"id\":\n").unwrap();
        let options = Options {
            book: Some(file.clone()),
            ..Options::default()
        };
        let started = Service::start("support", options).await;
        std::fs::remove_file(&file).unwrap();
        let error = started.err().unwrap().to_string();
        assert!(
            error.starts_with(&format!("{}:2: ", file.display())),
            "{error}"
        );
    }
}
