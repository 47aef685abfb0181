//! Spans for tracing tools, in the OpenTelemetry protocol (OTLP): as a file of a finished session, and sent while sessions run.
//!
//! Both have the same spans with the same ids, because both come from [`Tracer`](steersman_views::spans::Tracer), which derives them from lines.

mod form;
mod live;

pub use form::{json, protobuf};
pub use live::{Exporter, Feed, Target, TargetError, service, target};
