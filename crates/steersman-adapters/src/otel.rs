//! Spans and metrics in the OpenTelemetry protocol (OTLP): spans as a file of a finished session, and both sent while sessions run.
//!
//! A file and what is sent have the same spans with the same ids, because both come from [`Tracer`](steersman_views::spans::Tracer), which derives them from lines.

mod form;
mod live;
mod measures;
mod target;

pub use form::{json, protobuf};
pub use live::{Exporter, Feed};
pub use target::{Target, TargetError, service, target};
