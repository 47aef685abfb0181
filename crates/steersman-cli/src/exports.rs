//! Spans and metrics of the sessions that this process drives, for the collector that the environment names.

#[cfg(feature = "otel")]
pub(crate) use with_otel::{Exporter, Exports};
#[cfg(not(feature = "otel"))]
pub(crate) use without_otel::{Exporter, Exports};

#[cfg(feature = "otel")]
mod with_otel {
    use crate::error::CommandError;
    use crate::printer::{Printer, yellow};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::Duration;
    use steersman::adapters::otel;
    use steersman::{Setup, Steersman};
    use tokio::task::JoinHandle;
    use tokio::time::timeout;
    use tokio_util::sync::CancellationToken;

    /// Time that the end of a command waits for the collector.
    const FLUSH: Duration = Duration::from_secs(5);
    /// The variable of the conventions by which texts are sent, too.
    const TEXTS: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

    /// An exporter, if the environment names a collector.
    pub(crate) struct Exporter(Option<otel::Exporter>);

    impl Exporter {
        pub(crate) fn of_environment() -> Result<Self, CommandError> {
            let env = steersman::runtime::process_env();
            let target = otel::target(&env).map_err(|error| {
                CommandError::usage(error.to_string())
                    .hint("without OTEL_EXPORTER_OTLP_ENDPOINT nothing is sent")
            })?;
            let with_texts = env(TEXTS).is_some_and(|value| value.eq_ignore_ascii_case("true"));
            let exporter = target.map(|target| otel::Exporter::new(target.with_texts(with_texts)));
            Ok(Self(exporter))
        }

        /// Adds the tap of the exporter, if there is one.
        pub(crate) fn taps(&self, setup: Setup) -> Setup {
            let Some(exporter) = &self.0 else {
                return setup;
            };
            let setup = setup.tap(exporter.feed());
            // Servers are told of spans only if these are sent.
            if exporter.has_spans() {
                setup.traced()
            } else {
                setup
            }
        }
    }

    /// The exporters that run.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Exports(Arc<Mutex<Vec<Running>>>);

    #[derive(Debug)]
    struct Running(CancellationToken, JoinHandle<()>);

    impl Exports {
        /// Begins to send the spans and metrics of the sessions that are driven here.
        pub(crate) fn begin(&self, exporter: Exporter, of: &Steersman, printer: Printer) {
            let Some(exporter) = exporter.0 else { return };
            let (stop, engine) = (CancellationToken::new(), of.engine().clone());
            let told = move |what: String| printer.complain(yellow(&what));
            let running = tokio::spawn(exporter.run(engine, stop.clone(), told));
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(Running(stop, running));
        }

        /// Sends what is left, and ends the exporters.
        pub(crate) async fn flush(&self) {
            let all = {
                let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::take(&mut *all)
            };
            for Running(stop, running) in all {
                stop.cancel();
                // An export of the sessions has what was not sent.
                let _ = timeout(FLUSH, running).await;
            }
        }
    }
}

#[cfg(not(feature = "otel"))]
mod without_otel {
    use crate::error::CommandError;
    use crate::printer::Printer;
    use steersman::{Setup, Steersman};

    /// This program was built without an exporter.
    pub(crate) struct Exporter;

    impl Exporter {
        #[expect(clippy::unnecessary_wraps, reason = "it may fail with the feature")]
        pub(crate) fn of_environment() -> Result<Self, CommandError> {
            Ok(Self)
        }

        #[expect(clippy::unused_self, reason = "it has a tap with the feature")]
        pub(crate) fn taps(&self, setup: Setup) -> Setup {
            setup
        }
    }

    #[derive(Clone, Debug, Default)]
    pub(crate) struct Exports;

    impl Exports {
        #[expect(clippy::unused_self, reason = "it runs exporters with the feature")]
        pub(crate) fn begin(&self, _exporter: Exporter, _of: &Steersman, _printer: Printer) {}

        #[expect(
            clippy::unused_async,
            reason = "it sends what is left with the feature"
        )]
        pub(crate) async fn flush(&self) {}
    }
}
