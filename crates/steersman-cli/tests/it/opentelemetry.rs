//! Spans and metrics of the built program: what an export shows, that a collector gets the same, and that the protocol's own decoder
//! (`scripts/opentelemetry-proto.sh`) reads both.

use crate::docs::blocks;
use crate::world::{self, World};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

/// The definition and the script of the guide.
fn of_the_guide() -> (String, World) {
    let page = std::fs::read_to_string(world::root().join("docs/guides/tracing.md")).unwrap();
    let world = World::new();
    let found = blocks(&page);
    let yaml: Vec<_> = found.iter().filter(|block| block.fence == "yaml").collect();
    world.write("steersman.yaml", &yaml[0].text);
    world.write("script.yaml", &yaml[1].text);
    let tree = found.iter().find(|block| block.fence == "text").unwrap();
    (tree.text.clone(), world)
}

fn runs(world: &World) {
    let args = [
        "run",
        "--script-all",
        "script.yaml",
        "--input",
        "My kettle is broken.",
    ];
    let ran = world.run(&args);
    assert_eq!(ran.code, Some(5), "{ran:?}");
}

fn approves(world: &World) {
    let ran = world.run(&["approve", "last", "--as", "supervisor"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn exported(world: &World, more: &[&str]) -> Vec<Json> {
    let ran = world.run(&[&["export", "last", "--form", "otlp"], more].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let message: Json = serde_json::from_str(&ran.out).unwrap();
    let spans = &message["resourceSpans"][0]["scopeSpans"][0]["spans"];
    spans.as_array().unwrap().clone()
}

fn text<'a>(span: &'a Json, field: &str) -> &'a str {
    span[field].as_str().unwrap()
}

/// The names of spans, each below its parent, in the order in which they began.
fn tree(spans: &[Json]) -> String {
    fn below(spans: &[Json], parent: &str, depth: usize, shown: &mut String) {
        let mut here: Vec<&Json> = (spans.iter())
            .filter(|span| text(span, "parentSpanId") == parent)
            .collect();
        here.sort_by_key(|span| text(span, "startTimeUnixNano").parse::<u64>().unwrap());
        for span in here {
            writeln!(shown, "{}{}", "  ".repeat(depth), text(span, "name")).unwrap();
            below(spans, text(span, "spanId"), depth + 1, shown);
        }
    }
    let mut shown = String::new();
    below(spans, "", 0, &mut shown);
    shown
}

fn ids(spans: &[Json]) -> BTreeSet<(String, String)> {
    let ids = spans
        .iter()
        .map(|span| (text(span, "traceId").into(), text(span, "spanId").into()));
    ids.collect()
}

#[test]
fn the_guide_shows_the_spans_of_its_session() {
    let (shown, world) = of_the_guide();
    runs(&world);
    let waiting = exported(&world, &[]);
    approves(&world);
    let spans = exported(&world, &[]);
    assert_eq!(tree(&spans), shown);
    assert_eq!(spans, exported(&world, &[]), "an export can be made again");
    assert!(
        ids(&waiting).is_subset(&ids(&spans)),
        "what was told stays true"
    );
    let traces: BTreeSet<&str> = spans.iter().map(|span| text(span, "traceId")).collect();
    assert_eq!(traces.len(), 1, "a turn over two processes is one trace");
}

#[test]
fn texts_are_exported_only_on_demand() {
    let (_, world) = of_the_guide();
    runs(&world);
    approves(&world);
    let without = Json::from(exported(&world, &[])).to_string();
    let with = Json::from(exported(&world, &["--trace-content"])).to_string();
    for said in [
        "My kettle is broken",
        "on their way",
        "3990",
        "You settle complaints",
    ] {
        assert!(!without.contains(said), "{said}");
        assert!(with.contains(said), "{said} is not in {with}");
    }
}

/// A collector that keeps the bodies of requests.
struct Collector {
    at: String,
    bodies: mpsc::Receiver<(String, Vec<u8>)>,
}

impl Collector {
    /// Answers each of the first requests for spans with one of these statuses, and all others with 200.
    fn start(statuses: Vec<u16>) -> Self {
        Self::answering(statuses, 200)
    }

    /// Answers all requests for metrics with this status.
    fn answering(statuses: Vec<u16>, metrics: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = format!("http://{}", listener.local_addr().unwrap());
        let (to, bodies) = mpsc::sync_channel(1_024);
        thread::spawn(move || {
            let mut statuses = statuses.into_iter();
            for stream in listener.incoming().flatten() {
                let mut next = || statuses.next().unwrap_or(200);
                if let Some((request, 200)) = answer(stream, &mut next, metrics)
                    && to.send(request).is_err()
                {
                    return;
                }
            }
        });
        Self { at, bodies }
    }
}

/// Reads a request and answers it; one for spans with the next status. Returns its first line and its body, and the status.
fn answer(
    stream: TcpStream,
    next: &mut impl FnMut() -> u16,
    metrics: u16,
) -> Option<((String, Vec<u8>), u16)> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut len) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            len = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; len];
    reader.read_exact(&mut body).ok()?;
    let status = if first.contains("/v1/traces") {
        next()
    } else {
        metrics
    };
    let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    reader.get_mut().write_all(answer.as_bytes()).ok()?;
    Some(((first.trim().to_owned(), body), status))
}

/// Runs the session of the guide with a collector. Returns the spans and the metrics that the collector got.
fn collected(world: &mut World, collector: &Collector) -> [Vec<Vec<u8>>; 2] {
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.at);
    runs(world);
    approves(world);
    let requests: Vec<(String, Vec<u8>)> = collector.bodies.try_iter().collect();
    let sent = ["POST /v1/traces HTTP/1.1", "POST /v1/metrics HTTP/1.1"].map(|first| {
        let of = requests.iter().filter(|request| request.0 == first);
        of.map(|(_, body)| body.clone()).collect::<Vec<_>>()
    });
    assert!(
        sent.iter().all(|sent| !sent.is_empty()),
        "something was not sent"
    );
    assert_eq!(sent[0].len() + sent[1].len(), requests.len());
    sent
}

/// Bytes of a message hold an id as it is.
fn holds(body: &[u8], id: &str) -> bool {
    let id = steersman_machine::stored::ids::unhex(id).unwrap();
    body.windows(id.len()).any(|window| window == id)
}

#[test]
fn a_collector_gets_the_spans_that_an_export_shows() {
    let (_, mut world) = of_the_guide();
    let collector = Collector::start(Vec::new());
    let [bodies, metrics] = collected(&mut world, &collector);
    for (_, span) in ids(&exported(&world, &[])) {
        let count = bodies.iter().filter(|body| holds(body, &span)).count();
        assert!(count >= 1, "{span} was not sent");
    }
    for said in ["My kettle is broken", "3990"] {
        let is_there = |body: &Vec<u8>| body.windows(said.len()).any(|w| w == said.as_bytes());
        let mut all = bodies.iter().chain(&metrics);
        assert!(!all.any(is_there), "{said} was sent");
    }
}

#[test]
fn a_session_does_not_need_its_collector() {
    let (shown, mut world) = of_the_guide();
    // Nobody listens there.
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    runs(&world);
    approves(&world);
    assert_eq!(tree(&exported(&world, &[])), shown);
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", "nowhere");
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Again."]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{ran:?}");
}

#[test]
fn a_collector_that_takes_no_metrics_is_told_of_once_and_gets_the_spans() {
    let (_, mut world) = of_the_guide();
    let collector = Collector::answering(Vec::new(), 404);
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.at);
    let args = ["run", "--script-all", "script.yaml", "--input", "Hi."];
    let ran = world.run(&args);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let told = "OTEL_METRICS_EXPORTER=none sends none";
    assert_eq!(ran.err.matches(told).count(), 1, "{ran:?}");
    let sent: Vec<_> = collector.bodies.try_iter().collect();
    assert!(!sent.is_empty());
    assert!(sent.iter().all(|(first, _)| first.contains("/v1/traces")));
    world.set("OTEL_METRICS_EXPORTER", "none");
    let ran = world.run(&args);
    assert!(!ran.err.contains("metrics"), "{ran:?}");
}

#[test]
fn metrics_are_shown_at_an_address_of_their_own() {
    let (_, world) = of_the_guide();
    runs(&world);
    let args = [
        "serve",
        "--json",
        "--quiet",
        "--listen",
        "127.0.0.1:0",
        "--metrics",
        "127.0.0.1:0",
    ];
    let mut child = (world.command(&args).stdout(Stdio::piped()))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    let first: Json = serde_json::from_str(&first).unwrap();
    let at = first["metrics"].as_str().unwrap();
    let address = at
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/metrics")
        .unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    for row in [
        "content-type: application/openmetrics-text",
        "steersman_sessions{status=\"waits\"} 1",
        "steersman_questions{kind=\"approval\",role=\"supervisor\"} 1",
        "# TYPE steersman_lines counter",
        "steersman_lines_total ",
        "# TYPE steersman_sync_seconds histogram",
        "# EOF",
    ] {
        assert!(page.contains(row), "{row} is not in\n{page}");
    }
}

/// Decodes OTLP/JSON of standard input, and protobuf of the files that are named, with the classes that the protocol's authors generate.
/// Prints each span once: trace, id, parent, name, attributes.
const DECODE: &str = r#"
import base64, json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

def bytes_for_json(node):
    # OTLP/JSON has ids in hexadecimal digits, where the JSON of protobuf has base 64.
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("traceId", "spanId", "parentSpanId"):
                node[key] = base64.b64encode(bytes.fromhex(value)).decode()
            else:
                bytes_for_json(value)
    elif isinstance(node, list):
        for value in node:
            bytes_for_json(value)

messages = []
for line in sys.stdin:
    document = json.loads(line)
    bytes_for_json(document)
    messages.append(json_format.ParseDict(document, ExportTraceServiceRequest()))
for name in sys.argv[1:]:
    message = ExportTraceServiceRequest()
    message.ParseFromString(open(name, "rb").read())
    messages.append(message)
for message in messages:
    for resource in message.resource_spans:
        assert resource.schema_url.endswith("/gen-ai/0.1.0"), resource.schema_url
        for scope in resource.scope_spans:
            for span in scope.spans:
                assert span.end_time_unix_nano >= span.start_time_unix_nano > 0
                assert len(span.trace_id) == 16 and len(span.span_id) == 8
                print(json.dumps({
                    "trace": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex(),
                    "name": span.name, "attributes": sorted(pair.key for pair in span.attributes),
                }))
"#;

fn decoded(json: &str, files: &[&Path]) -> Vec<Json> {
    decoded_by(DECODE, json, files)
}

fn decoded_by(program: &str, json: &str, files: &[&Path]) -> Vec<Json> {
    let place = std::env::var("STEERSMAN_OPENTELEMETRY").expect("the folder of the protocol");
    let mut child = Command::new(Path::new(&place).join("bin/python"))
        .args(["-B", "-c", program])
        .args(files)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(json.as_bytes())
        .unwrap();
    let out = child.wait_with_output().unwrap();
    let wrong = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{wrong}");
    let lines = String::from_utf8(out.stdout).unwrap();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Every parent exists, and no attribute holds a text.
fn law(spans: &[Json]) {
    let known: BTreeSet<(&str, &str)> = (spans.iter())
        .map(|span| (text(span, "trace"), text(span, "id")))
        .collect();
    for span in spans {
        let parent = text(span, "parent");
        let is_there = parent.is_empty() || known.contains(&(text(span, "trace"), parent));
        assert!(is_there, "{span}");
        let attributes = span["attributes"].to_string();
        for content in [
            "messages",
            "arguments",
            "instructions",
            "definitions",
            ".result",
        ] {
            assert!(!attributes.contains(content), "{span}");
        }
    }
}

#[test]
#[ignore = "needs the OpenTelemetry protocol: STEERSMAN_OPENTELEMETRY=$(scripts/opentelemetry-proto.sh)"]
fn the_protocol_s_own_decoder_reads_every_export() {
    for example in ["support", "bank", "react", "debate", "planner"] {
        let world = World::example(example);
        let script = world.folder.join(example).join("script.yaml");
        if !script.exists() {
            continue;
        }
        world.run(&[
            "run",
            example,
            "--script-all",
            script.to_str().unwrap(),
            "--input",
            "Hello.",
        ]);
        let ran = world.run(&["export", "--where", "tokens>=0", "--form", "otlp"]);
        law(&decoded(&ran.out, &[]));
    }
    let (_, world) = of_the_guide();
    runs(&world);
    approves(&world);
    let ran = world.run(&["export", "last", "--form", "otlp"]);
    let spans = decoded(&ran.out, &[]);
    law(&spans);
    assert_eq!(spans.len(), exported(&world, &[]).len());
    let names: BTreeSet<&str> = spans.iter().map(|span| text(span, "name")).collect();
    assert!(names.contains("execute_tool refund"), "{names:?}");
}

#[test]
#[ignore = "needs the OpenTelemetry protocol: STEERSMAN_OPENTELEMETRY=$(scripts/opentelemetry-proto.sh)"]
fn the_protocol_s_own_decoder_reads_what_a_collector_gets() {
    let (_, mut world) = of_the_guide();
    // The collector is overloaded at first.
    let collector = Collector::start(vec![503]);
    let [bodies, _] = collected(&mut world, &collector);
    let mut files = Vec::new();
    for (n, body) in bodies.iter().enumerate() {
        let file = world.folder.join(format!("{n}.pb"));
        std::fs::write(&file, body).unwrap();
        files.push(file);
    }
    let files: Vec<&Path> = files.iter().map(|file| &**file).collect();
    let sent = decoded("", &files);
    let ran = world.run(&["export", "last", "--form", "otlp"]);
    let exported = decoded(&ran.out, &[]);
    let by_id = |spans: &[Json]| -> BTreeMap<String, Json> {
        let named = spans
            .iter()
            .map(|span| (text(span, "id").to_owned(), span.clone()));
        named.collect()
    };
    assert_eq!(by_id(&sent), by_id(&exported), "the same spans");
    law(&sent);
}

/// Decodes messages of metrics in the files that are named. Prints each point: metric, unit, what it counts, attributes.
const DECODE_METRICS: &str = r#"
import json, sys
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

for name in sys.argv[1:]:
    message = ExportMetricsServiceRequest()
    message.ParseFromString(open(name, "rb").read())
    for resource in message.resource_metrics:
        about = {pair.key for pair in resource.resource.attributes}
        assert about == {"service.name", "service.version", "service.instance.id"}, about
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                data = getattr(metric, metric.WhichOneof("data"))
                assert data.aggregation_temporality == 2, "cumulative"
                for point in data.data_points:
                    assert point.time_unix_nano >= point.start_time_unix_nano > 0
                    if hasattr(point, "bucket_counts"):
                        assert sum(point.bucket_counts) == point.count
                        assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
                        count = point.count
                    else:
                        assert data.is_monotonic
                        count = point.as_int
                    attributes = {pair.key: pair.value.string_value for pair in point.attributes}
                    print(json.dumps({"metric": metric.name, "unit": metric.unit, "count": count, "attributes": attributes}))
"#;

#[test]
#[ignore = "needs the OpenTelemetry protocol: STEERSMAN_OPENTELEMETRY=$(scripts/opentelemetry-proto.sh)"]
fn the_protocol_s_own_decoder_reads_the_metrics() {
    let (_, mut world) = of_the_guide();
    let collector = Collector::start(Vec::new());
    let [_, metrics] = collected(&mut world, &collector);
    let mut points = Vec::new();
    for (n, body) in metrics.iter().enumerate() {
        let file = world.folder.join(format!("{n}.pb"));
        std::fs::write(&file, body).unwrap();
        points.extend(decoded_by(DECODE_METRICS, "", &[&file]));
    }
    let count = |metric: &str, attribute: [&str; 2]| -> u64 {
        let found = points.iter().filter(|point| {
            point["metric"] == metric && point["attributes"][attribute[0]] == attribute[1]
        });
        found.map(|point| point["count"].as_u64().unwrap()).sum()
    };
    // Each of the two processes reports what it did.
    let duration = "gen_ai.client.inference.duration";
    assert_eq!(
        count(duration, ["gen_ai.operation.name", "chat"]),
        3,
        "{points:?}"
    );
    let tools = "gen_ai.execute_tool.duration";
    assert_eq!(
        count(tools, ["gen_ai.tool.name", "find_order"]),
        1,
        "{points:?}"
    );
    assert_eq!(
        count(tools, ["gen_ai.tool.name", "refund"]),
        1,
        "{points:?}"
    );
    let tokens = "gen_ai.client.inference.usage.input_tokens";
    assert!(
        count(tokens, ["gen_ai.token.modality", "unknown"]) > 0,
        "{points:?}"
    );
}
