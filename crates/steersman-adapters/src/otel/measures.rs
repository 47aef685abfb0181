//! Metrics of attempts as OTLP messages: durations and tokens, by the GenAI conventions.

use super::form::{nanos, pair, resource, scope, text};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1 as otlp;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use prost::Message as _;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use steersman_machine::stored::ids::Time;
use steersman_runtime::tap::{Attempted, Worked};
use steersman_views::spans::CONVENTIONS;

/// Upper bounds of durations, in seconds, as the conventions advise.
const SECONDS: [f64; 14] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
/// Maximum number of points of a metric. What comes with further attributes is counted in one more point, as the specification of the
/// metrics SDK says.
const POINTS: usize = 2_000;
/// Maximum number of bytes of an attribute.
const VALUE: usize = 128;

const INFERENCE: Metric = Metric {
    name: "gen_ai.client.inference.duration",
    unit: "s",
    about: "Duration of attempts of model calls",
};
const FIRST: Metric = Metric {
    name: "gen_ai.client.inference.time_to_first_chunk",
    unit: "s",
    about: "Time from the beginning of an attempt of a model call to its first streamed piece",
};
const INPUT: Metric = Metric {
    name: "gen_ai.client.inference.usage.input_tokens",
    unit: "{token}",
    about: "Input tokens, with those that were cached",
};
const CACHED: Metric = Metric {
    name: "gen_ai.client.inference.usage.cache_read.input_tokens",
    unit: "{token}",
    about: "Input tokens that the provider had cached",
};
const OUTPUT: Metric = Metric {
    name: "gen_ai.client.inference.usage.output_tokens",
    unit: "{token}",
    about: "Output tokens",
};
const TOOL: Metric = Metric {
    name: "gen_ai.execute_tool.duration",
    unit: "s",
    about: "Duration of attempts of tools",
};

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Metric {
    name: &'static str,
    unit: &'static str,
    about: &'static str,
}

type Attributes = Vec<(&'static str, String)>;

/// Durations and sums since the process began.
#[derive(Debug, Default)]
pub(super) struct Measures {
    durations: Mutex<Points<Durations>>,
    sums: Mutex<Points<u64>>,
}

/// The points of metrics, by their attributes.
type Points<P> = BTreeMap<Metric, BTreeMap<Attributes, P>>;

#[derive(Clone, Debug, Default)]
struct Durations {
    counts: [u64; SECONDS.len() + 1],
    sum: f64,
    bounds: Option<(f64, f64)>,
}

impl Durations {
    fn add(&mut self, seconds: f64) {
        let bucket = SECONDS.partition_point(|bound| *bound < seconds);
        self.counts[bucket] += 1;
        self.sum += seconds;
        let (least, most) = self.bounds.unwrap_or((seconds, seconds));
        self.bounds = Some((least.min(seconds), most.max(seconds)));
    }
}

/// Returns the point with these attributes, or the one for all attributes that are too many.
fn point<P: Default>(points: &mut Points<P>, metric: Metric, attributes: Attributes) -> &mut P {
    let of = points.entry(metric).or_default();
    let is_full = of.len() >= POINTS && !of.contains_key(&attributes);
    let attributes = if is_full { Vec::new() } else { attributes };
    of.entry(attributes).or_default()
}

fn short(value: &str) -> String {
    value[..value.floor_char_boundary(VALUE)].to_owned()
}

impl Measures {
    /// Measures an attempt.
    pub(super) fn add(&self, of: &Attempted<'_>) {
        let millis = of.began.until(of.ended);
        let error = (of.outcome != "done" && of.outcome != "parked")
            .then(|| ("error.type", short(of.code.unwrap_or(of.outcome))));
        match of.what {
            Worked::Model(label) => {
                let (provider, model) = label.split_once('/').unwrap_or((label, label));
                let attributes = vec![
                    ("gen_ai.operation.name", "chat".to_owned()),
                    ("gen_ai.provider.name", short(provider)),
                    ("gen_ai.request.model", short(model)),
                ];
                let ended: Attributes = attributes.iter().cloned().chain(error).collect();
                // For a model the limiter's part is within the time.
                self.took(INFERENCE, ended, millis.saturating_sub(of.waited));
                let Some(usage) = of.usage else { return };
                if let Some(first) = usage.first {
                    self.took(FIRST, attributes.clone(), first);
                }
                for (metric, tokens) in [
                    (INPUT, usage.input),
                    (CACHED, usage.cached),
                    (OUTPUT, usage.output),
                ] {
                    // Providers do not say of what kind the tokens are.
                    let modality = ("gen_ai.token.modality", "unknown".to_owned());
                    let attributes = attributes.iter().cloned().chain([modality]);
                    self.counts(metric, attributes.collect(), tokens);
                }
            }
            Worked::Tool(tool) => {
                let attributes = [
                    ("gen_ai.operation.name", "execute_tool".to_owned()),
                    ("gen_ai.tool.name", short(tool)),
                ];
                self.took(TOOL, attributes.into_iter().chain(error).collect(), millis);
            }
        }
    }

    fn took(&self, metric: Metric, attributes: Attributes, millis: u64) {
        let mut all = self
            .durations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        point(&mut all, metric, attributes).add(millis as f64 / 1_000.0);
    }

    fn counts(&self, metric: Metric, attributes: Attributes, more: u64) {
        let mut all = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = point(&mut all, metric, attributes);
        *sum = sum.saturating_add(more);
    }

    /// Returns everything that was measured as a message in protobuf. `None` if that is nothing. `instance` tells these sums from those of other
    /// processes. `during`: the beginning of the sums, and now.
    pub(super) fn protobuf(
        &self,
        service: &str,
        instance: &str,
        during: (Time, Time),
    ) -> Option<Vec<u8>> {
        let metrics = self.told(during);
        if metrics.is_empty() {
            return None;
        }
        let mut resource = resource(service);
        let instance = pair("service.instance.id", text(instance));
        resource.attributes.push(instance);
        let message = ExportMetricsServiceRequest {
            resource_metrics: vec![otlp::ResourceMetrics {
                resource: Some(resource),
                schema_url: CONVENTIONS.to_owned(),
                scope_metrics: vec![otlp::ScopeMetrics {
                    scope: Some(scope()),
                    schema_url: CONVENTIONS.to_owned(),
                    metrics,
                }],
            }],
        };
        Some(message.encode_to_vec())
    }

    fn told(&self, (began, now): (Time, Time)) -> Vec<otlp::Metric> {
        let temporality = otlp::AggregationTemporality::Cumulative as i32;
        let told = |metric: &Metric, data: Data| otlp::Metric {
            name: metric.name.to_owned(),
            description: metric.about.to_owned(),
            unit: metric.unit.to_owned(),
            data: Some(data),
            ..otlp::Metric::default()
        };
        let mut all = Vec::new();
        let durations = self
            .durations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (metric, points) in &*durations {
            let points = points
                .iter()
                .map(|(attributes, of)| otlp::HistogramDataPoint {
                    attributes: pairs(attributes),
                    start_time_unix_nano: nanos(began),
                    time_unix_nano: nanos(now),
                    count: of.counts.iter().sum(),
                    sum: Some(of.sum),
                    bucket_counts: of.counts.to_vec(),
                    explicit_bounds: SECONDS.to_vec(),
                    min: of.bounds.map(|(least, _)| least),
                    max: of.bounds.map(|(_, most)| most),
                    ..otlp::HistogramDataPoint::default()
                });
            let data = Data::Histogram(otlp::Histogram {
                data_points: points.collect(),
                aggregation_temporality: temporality,
            });
            all.push(told(metric, data));
        }
        drop(durations);
        let sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        for (metric, points) in &*sums {
            let points = points
                .iter()
                .map(|(attributes, sum)| otlp::NumberDataPoint {
                    attributes: pairs(attributes),
                    start_time_unix_nano: nanos(began),
                    time_unix_nano: nanos(now),
                    value: Some(Number::AsInt(i64::try_from(*sum).unwrap_or(i64::MAX))),
                    ..otlp::NumberDataPoint::default()
                });
            let data = Data::Sum(otlp::Sum {
                data_points: points.collect(),
                aggregation_temporality: temporality,
                is_monotonic: true,
            });
            all.push(told(metric, data));
        }
        all
    }
}

/// Converts attributes. The point for all attributes that are too many has none, and says so.
fn pairs(attributes: &Attributes) -> Vec<KeyValue> {
    if attributes.is_empty() {
        return vec![pair("otel.metric.overflow", Value::BoolValue(true))];
    }
    let pairs = attributes.iter();
    pairs.map(|(name, value)| pair(name, text(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use steersman_machine::stored::commit::Usage;
    use steersman_machine::stored::ids::{Id, Line, Name};
    use steersman_runtime::store::SessionId;

    const DURING: (Time, Time) = (Time(1_000), Time(9_000));

    struct Attempt {
        what: Worked,
        millis: u64,
        outcome: &'static str,
        code: Option<&'static str>,
        usage: Option<Usage>,
    }

    impl Attempt {
        fn of(what: Worked, millis: u64) -> Self {
            Self {
                what,
                millis,
                outcome: "done",
                code: None,
                usage: None,
            }
        }

        fn add(&self, to: &Measures, waited: u64) {
            to.add(&Attempted {
                session: &SessionId::from("s"),
                definition: &Name::from("desk"),
                effect: Id::new(Line(2), 1),
                attempt: 1,
                what: &self.what,
                began: Time(0),
                ended: Time(0).plus(self.millis),
                waited,
                outcome: self.outcome,
                code: self.code,
                usage: self.usage.as_ref(),
            });
        }
    }

    fn named<'a>(all: &'a [otlp::Metric], name: &str) -> &'a Data {
        let found = all.iter().find(|metric| metric.name == name);
        found.and_then(|metric| metric.data.as_ref()).unwrap()
    }

    fn has(attributes: &[KeyValue], name: &str, value: &str) -> bool {
        attributes.contains(&pair(name, text(value)))
    }

    #[test]
    fn attempts_of_models_are_durations_and_tokens() {
        let measures = Measures::default();
        assert_eq!(measures.protobuf("desk", "1", DURING), None);
        let model = Worked::Model("openai/m-1".into());
        let usage = Usage {
            input: 70,
            cached: 30,
            output: 5,
            first: Some(90),
            ..Usage::default()
        };
        let good = Attempt {
            usage: Some(usage),
            ..Attempt::of(model.clone(), 1_000)
        };
        good.add(&measures, 800);
        good.add(&measures, 0);
        let bad = Attempt {
            outcome: "failed",
            code: Some("timeout"),
            ..Attempt::of(model, 100_000)
        };
        bad.add(&measures, 0);
        let all = measures.told(DURING);
        let Data::Histogram(durations) = named(&all, INFERENCE.name) else {
            panic!("{all:?}")
        };
        let [good, bad] = &durations.data_points[..] else {
            panic!("{durations:?}")
        };
        assert_eq!((good.count, good.sum), (2, Some(1.2)));
        assert_eq!((good.min, good.max), (Some(0.2), Some(1.0)));
        assert_eq!(good.bucket_counts[5], 1, "0.2 s are at most 0.32 s");
        assert_eq!(good.bucket_counts[7], 1, "1 s is at most 1.28 s");
        assert!(has(&good.attributes, "gen_ai.provider.name", "openai"));
        assert!(has(&good.attributes, "gen_ai.request.model", "m-1"));
        assert_eq!(bad.bucket_counts.last(), Some(&1), "{bad:?}");
        assert!(has(&bad.attributes, "error.type", "timeout"));
        assert_eq!(good.start_time_unix_nano, 1_000_000_000);
        assert_eq!(good.time_unix_nano, 9_000_000_000);
        let sum = |metric: Metric| match named(&all, metric.name) {
            Data::Sum(sum) => sum.data_points[0].value,
            other => panic!("{other:?}"),
        };
        assert_eq!(sum(INPUT), Some(Number::AsInt(140)));
        assert_eq!(sum(CACHED), Some(Number::AsInt(60)));
        assert_eq!(sum(OUTPUT), Some(Number::AsInt(10)));
        let bytes = measures.protobuf("desk", "1", DURING).unwrap();
        let decoded = ExportMetricsServiceRequest::decode(&bytes[..]).unwrap();
        let decoded = &decoded.resource_metrics[0].scope_metrics[0];
        assert_eq!(decoded.metrics, all);
    }

    #[test]
    fn points_are_bounded_and_the_rest_is_counted_in_one() {
        let measures = Measures::default();
        for n in 0..POINTS + 5 {
            Attempt::of(Worked::Tool(format!("tool_{n}").into()), 3).add(&measures, 0);
        }
        let all = measures.told(DURING);
        let Data::Histogram(durations) = named(&all, TOOL.name) else {
            panic!("{all:?}")
        };
        assert_eq!(durations.data_points.len(), POINTS + 1);
        let rest = &durations.data_points[0];
        assert_eq!(rest.count, 5);
        let told = pair("otel.metric.overflow", Value::BoolValue(true));
        assert_eq!(rest.attributes, [told]);
    }
}
