//! Spans as OTLP messages.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1 as otlp;
use prost::Message as _;
use serde_json::Value as Json;
use steersman_machine::stored::ids::Time;
use steersman_runtime::trace::SpanKind;
use steersman_views::spans::{CONVENTIONS, Span};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Nanoseconds of a millisecond, in which lines have their times.
const NANOS: u64 = 1_000_000;

/// Returns spans as OTLP/JSON, one document on one line: the form of files that collectors read. `service` names the program.
#[must_use]
pub fn json(spans: &[Span], service: &str) -> String {
    serde_json::to_string(&request(spans, service)).expect("a message of OTLP is JSON")
}

/// Returns spans as an OTLP message in protobuf: the body of a request to a collector. `service` names the program.
#[must_use]
pub fn protobuf(spans: &[Span], service: &str) -> Vec<u8> {
    request(spans, service).encode_to_vec()
}

/// Describes the program.
pub(super) fn resource(service: &str) -> Resource {
    Resource {
        attributes: vec![
            pair("service.name", text(service)),
            pair("service.version", text(VERSION)),
        ],
        ..Resource::default()
    }
}

/// Names this library as the one that observes.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "steersman".to_owned(),
        version: VERSION.to_owned(),
        ..InstrumentationScope::default()
    }
}

fn request(spans: &[Span], service: &str) -> ExportTraceServiceRequest {
    let of_scope = otlp::ScopeSpans {
        scope: Some(scope()),
        spans: spans.iter().map(span).collect(),
        schema_url: CONVENTIONS.to_owned(),
    };
    ExportTraceServiceRequest {
        resource_spans: vec![otlp::ResourceSpans {
            resource: Some(resource(service)),
            scope_spans: vec![of_scope],
            schema_url: CONVENTIONS.to_owned(),
        }],
    }
}

fn span(of: &Span) -> otlp::Span {
    let kind = match of.kind {
        SpanKind::Model => otlp::span::SpanKind::Client,
        _ => otlp::span::SpanKind::Internal,
    };
    let mut attributes: Vec<KeyValue> = (of.attributes.iter())
        .filter_map(|(name, value)| Some(pair(name, any(value)?)))
        .collect();
    if of.is_open {
        attributes.push(pair("steersman.open", Value::BoolValue(true)));
    }
    let status = of.error.as_ref().map(|code| {
        attributes.push(pair("error.type", text(code)));
        otlp::Status {
            message: code.to_string(),
            code: otlp::status::StatusCode::Error as i32,
        }
    });
    let links = of.links.iter().map(|link| otlp::span::Link {
        trace_id: link.trace.0.to_vec(),
        span_id: link.span.0.to_vec(),
        flags: u32::from(link.is_sampled),
        ..otlp::span::Link::default()
    });
    otlp::Span {
        trace_id: of.trace.0.to_vec(),
        span_id: of.id.0.to_vec(),
        parent_span_id: of.parent.map_or_else(Vec::new, |parent| parent.0.to_vec()),
        flags: 1,
        name: of.name.clone(),
        kind: kind as i32,
        start_time_unix_nano: nanos(of.from),
        end_time_unix_nano: nanos(of.to),
        attributes,
        links: links.collect(),
        status: Some(status.unwrap_or_default()),
        ..otlp::Span::default()
    }
}

pub(super) fn nanos(at: Time) -> u64 {
    u64::try_from(at.0).unwrap_or(0).saturating_mul(NANOS)
}

pub(super) fn pair(name: &str, value: Value) -> KeyValue {
    KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

pub(super) fn text(text: &str) -> Value {
    Value::StringValue(text.to_owned())
}

/// Converts the value of an attribute. `None` if it has no form in OTLP, as null.
fn any(value: &Json) -> Option<Value> {
    Some(match value {
        Json::Null => return None,
        Json::Bool(is) => Value::BoolValue(*is),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::IntValue(whole),
            None => Value::DoubleValue(number.as_f64()?),
        },
        Json::String(of) => text(of),
        Json::Array(all) => Value::ArrayValue(ArrayValue {
            values: (all.iter())
                .map(|one| AnyValue { value: any(one) })
                .collect(),
        }),
        Json::Object(_) => text(&value.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use steersman_machine::stored::ids::{Id, Line};
    use steersman_runtime::trace::{SpanId, TraceId, TraceParent};

    fn one() -> Span {
        let trace = TraceId::of("s", 1, Line(2));
        let id = SpanId::of(trace, SpanKind::Model, Id::MAIN, Id::new(Line(3), 1));
        let root = SpanId::of(trace, SpanKind::Turn, Id::MAIN, Id::new(Line(2), 0));
        Span {
            trace,
            id,
            parent: Some(root),
            kind: SpanKind::Model,
            name: "chat m".into(),
            from: Time(1_000),
            to: Time(1_250),
            is_open: false,
            error: Some("timeout".into()),
            attributes: vec![
                ("gen_ai.usage.input_tokens", json!(7)),
                ("gen_ai.request.temperature", json!(0.5)),
                ("gen_ai.request.stream", json!(true)),
                ("gen_ai.response.finish_reasons", json!(["stop"])),
                ("steersman.prefix_broke", Json::Null),
            ],
            links: vec![TraceParent {
                trace,
                span: root,
                is_sampled: true,
            }],
        }
    }

    #[test]
    fn json_has_ids_in_hexadecimal_and_times_as_texts() {
        let span = one();
        let shown: Json = serde_json::from_str(&json(std::slice::from_ref(&span), "desk")).unwrap();
        let of = &shown["resourceSpans"][0];
        assert_eq!(of["schemaUrl"], CONVENTIONS);
        assert_eq!(
            of["resource"]["attributes"][0]["value"]["stringValue"],
            "desk"
        );
        let shown = &of["scopeSpans"][0]["spans"][0];
        assert_eq!(shown["traceId"], span.trace.to_string());
        assert_eq!(shown["spanId"], span.id.to_string());
        assert_eq!(shown["parentSpanId"], span.parent.unwrap().to_string());
        assert_eq!(shown["startTimeUnixNano"], "1000000000");
        assert_eq!(shown["endTimeUnixNano"], "1250000000");
        assert_eq!(shown["kind"], 3);
        assert_eq!(shown["status"]["code"], 2);
        let value = |name: &str| {
            let all = shown["attributes"].as_array().unwrap();
            let found = all.iter().find(|pair| pair["key"] == name);
            found.map(|pair| pair["value"].clone())
        };
        assert_eq!(
            value("gen_ai.usage.input_tokens"),
            Some(json!({ "intValue": "7" }))
        );
        assert_eq!(
            value("gen_ai.request.temperature"),
            Some(json!({ "doubleValue": 0.5 }))
        );
        assert_eq!(
            value("gen_ai.request.stream"),
            Some(json!({ "boolValue": true }))
        );
        assert_eq!(
            value("error.type"),
            Some(json!({ "stringValue": "timeout" }))
        );
        assert_eq!(value("steersman.prefix_broke"), None);
        assert_eq!(
            shown["links"][0]["spanId"],
            span.parent.unwrap().to_string()
        );
    }

    #[test]
    fn protobuf_and_json_are_the_same_message() {
        let bytes = protobuf(&[one()], "desk");
        let decoded = ExportTraceServiceRequest::decode(&bytes[..]).unwrap();
        assert_eq!(decoded, request(&[one()], "desk"));
        let read: ExportTraceServiceRequest =
            serde_json::from_str(&json(&[one()], "desk")).unwrap();
        assert_eq!(read, decoded);
    }
}
