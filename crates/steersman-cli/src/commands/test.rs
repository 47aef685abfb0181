//! `test`: runs the tests of a definition, offline; with `--grade` it measures them.

use crate::cli::{Global, Grading};
use crate::commands::check;
use crate::error::{CommandError, Exit};
use crate::grading::Sheet;
use crate::locate;
use crate::place::Place;
use crate::printer::{Printer, bold, dim, green, red};
use crate::words::{count, money, span};
use futures::stream::{self, StreamExt as _};
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;
use steersman::grading::Judges;
use steersman::{Network, Steersman, testing};

pub(crate) const LISTED: &str = "Run the tests of a definition, offline";

/// Run the tests of a definition, offline. Exit code 8 if one fails.
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// A definition, or a folder with a steersman.yaml.
    #[arg(default_value = ".")]
    definition: PathBuf,
    /// Only tests whose name contains this.
    #[arg(long, short)]
    name: Option<String>,
    /// Run each test twice: what comes out otherwise the second time is a failure.
    #[arg(long, conflicts_with = "grade")]
    replay: bool,
    /// Run commands and requests of class `pure` and `read` for real where a test gives no outcomes for them.
    #[arg(long)]
    real: bool,
    #[command(flatten)]
    grading: Grading,
    /// With --grade: run each test so many times. Each run has a seed of its own.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "grade", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// With --grade: ask the models of the definition, and judges, instead of the scripts. Tools keep the outcomes of the tests.
    #[arg(long, requires = "grade")]
    live: bool,
    /// Write the results into this file, as JUnit XML.
    #[arg(long, value_name = "FILE", conflicts_with = "grade")]
    junit: Option<PathBuf>,
    /// Make a test of this session instead, which holds; print it.
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["name", "replay", "real", "junit", "grade"])]
    record: Option<String>,
    /// Write the recorded test into this file: tests/NAME.yaml. Overwrites nothing.
    #[arg(long, value_name = "FILE", requires = "record")]
    out: Option<PathBuf>,
}

pub(crate) async fn run(
    args: TestArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if let Some(session) = &args.record {
        return record(session, args.out.as_deref(), global, printer).await;
    }
    let network = match check::required(&args.definition, printer) {
        Ok(network) => network,
        Err(error) => {
            if let Some(file) = &args.junit {
                let suite = args.definition.display().to_string();
                let wrong = Broken {
                    name: "definition".to_owned(),
                    why: wrong(&args.definition, &error),
                };
                write(file, &junit(&suite, &[], &[wrong]))?;
            }
            return Err(error);
        }
    };
    let broken = broken(&network);
    let names: Vec<String> = network
        .tests()
        .filter(|name| args.name.as_ref().is_none_or(|part| name.contains(part)))
        .map(str::to_owned)
        .collect();
    if names.is_empty() && broken.is_empty() {
        let error = CommandError::usage(match &args.name {
            Some(part) => format!(
                "`{}` has no test whose name contains `{part}`",
                network.name()
            ),
            None => format!("`{}` has no tests", network.name()),
        });
        return Err(
            error.hint("tests are under `tests:`, or in tests/*.yaml next to the definition")
        );
    }
    if args.grading.grade {
        return graded(&args, &network, &names, &broken, printer).await;
    }
    let (mut failed, began) = (0, Instant::now());
    let mut ran = Vec::new();
    for name in &names {
        let begun = Instant::now();
        let how = testing::How {
            twice: args.replay,
            real: args.real,
            live: false,
        };
        let report = testing::run_as(&network, name, how).await;
        let passed = report.failures.is_empty();
        failed += u64::from(!passed);
        ran.push((report.clone(), begun.elapsed().as_secs_f64()));
        if printer.is_json() {
            printer.json(&json!({
                "test": report.name,
                "passed": passed,
                "failures": report.failures,
                "lines": report.lines,
                "model_calls": report.model_calls,
                "real": report.real,
            }))?;
            continue;
        }
        if passed && printer.is_quiet() {
            continue;
        }
        let word = if passed {
            green("ok    ")
        } else {
            red("failed")
        };
        let sizes = count(report.model_calls, "model call");
        printer.data(format!("{word}  {name}   {}", dim(&sizes)))?;
        for failure in &report.failures {
            for row in failure.lines() {
                printer.data(format!("        {row}"))?;
            }
        }
    }
    for file in &broken {
        if printer.is_json() {
            printer.json(&json!({
                "test": file.name,
                "passed": false,
                "failures": [file.why],
                "lines": 0,
                "model_calls": 0,
                "real": {},
            }))?;
            continue;
        }
        printer.data(format!("{}  {}", red("broken"), file.name))?;
    }
    if let Some(file) = &args.junit {
        write(file, &junit(network.name(), &ran, &broken))?;
    }
    let took = span(i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX));
    let sum = format!("{} in {took}", count(names.len() as u64, "test"));
    let (told, exit) = if !broken.is_empty() {
        let files = count(broken.len() as u64, "file");
        let files = bold(&red(&format!("{files} of tests with errors")));
        (format!("{sum}, {failed} failed, {files}"), Exit::Definition)
    } else if failed == 0 {
        let told = format!("{sum}, all passed. {}", outside(&ran));
        (green(&told), Exit::Answered)
    } else {
        let failed = bold(&red(&format!("{failed} failed")));
        (format!("{sum}, {failed}. {}", outside(&ran)), Exit::Differs)
    };
    if printer.is_quiet() && !printer.is_json() {
        printer.data(told)?;
    } else {
        printer.talk(told);
    }
    Ok(exit)
}

/// Runs tests that are asked at the same time, if models are asked.
const ASKED_AT_ONCE: usize = 4;

/// Runs tests several times, and measures each run by the grades.
async fn graded(
    args: &TestArgs,
    network: &Network,
    names: &[String],
    broken: &[Broken],
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let mut sheet = Sheet::new(network, &args.grading)?;
    let how = testing::How {
        twice: false,
        real: args.real,
        live: args.live,
    };
    let judges = if args.live {
        Judges::default().asked(Steersman::options().in_memory())
    } else {
        Judges::default()
    };
    let jobs = names
        .iter()
        .flat_map(|name| (0..u64::from(args.runs)).map(move |run| (name, run)));
    let runs = jobs.map(|(name, run)| testing::run_graded(network, name, how, run, &judges));
    let at_once = if args.live { ASKED_AT_ONCE } else { 1 };
    let mut running = stream::iter(runs).buffered(at_once);
    let total = names.len() * args.runs as usize;
    let (mut n, mut micros, mut ran) = (0, 0, Vec::new());
    while let Some((report, graded)) = running.next().await {
        n += 1;
        micros += report.micros;
        if args.live {
            printer.talk(dim(&format!("{n}/{total}  {}", report.name)));
        }
        ran.push((report, 0.0));
        sheet.add(graded, printer)?;
    }
    drop(running);
    let exit = sheet.finish(&args.grading, printer)?;
    printer.talk(if args.live {
        let cost = money(micros);
        format!("{}, with models: {cost}.", count(total as u64, "run"))
    } else {
        format!("{}. {}", count(total as u64, "run"), outside(&ran))
    });
    if broken.is_empty() {
        return Ok(exit);
    }
    for file in broken {
        printer.complain(format!("{}  {}", red("broken"), file.name));
    }
    Ok(Exit::Definition)
}

/// Describes what was called outside of this process.
fn outside(ran: &[(testing::Report, f64)]) -> String {
    let mut real = std::collections::BTreeMap::<&str, u64>::new();
    for (tool, n) in ran.iter().flat_map(|(report, _)| &report.real) {
        *real.entry(tool).or_default() += n;
    }
    if real.is_empty() {
        return "No model was asked, nothing outside was changed.".to_owned();
    }
    let times = |n: u64| match n {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    };
    let tools = real.into_iter();
    let tools: Vec<String> = tools
        .map(|(tool, n)| format!("{tool} {}", times(n)))
        .collect();
    format!("No model was asked. For real ran: {}.", tools.join(", "))
}

/// A test file that cannot be run, or a definition with errors.
struct Broken {
    name: String,
    why: String,
}

/// Returns the test files with errors; their tests are not part of the network.
fn broken(network: &Network) -> Vec<Broken> {
    let mut files = std::collections::BTreeMap::<String, Vec<String>>::new();
    for wrong in network.warnings().iter().filter(|wrong| wrong.left_out) {
        let file = wrong.at.as_ref().map_or("tests", |at| &*at.path);
        let told = files.entry(file.to_owned()).or_default();
        told.push(wrong.to_string());
    }
    let file = |(name, told): (String, Vec<String>)| Broken {
        name,
        why: told.join("\n"),
    };
    files.into_iter().map(file).collect()
}

/// Returns the errors of a definition as text. They were printed already.
fn wrong(definition: &std::path::Path, error: &CommandError) -> String {
    match check::load(definition) {
        Err(check::Refused::Wrong(wrong)) => {
            let found = wrong.diagnostics.iter().filter(|found| found.is_error());
            let mut told: Vec<String> = found.map(ToString::to_string).collect();
            told.extend(wrong.in_rust.iter().cloned());
            told.join("\n")
        }
        _ => error.to_string(),
    }
}

fn write(file: &std::path::Path, text: &str) -> Result<(), CommandError> {
    std::fs::write(file, text).map_err(|e| locate::unwritten(file, &e))
}

/// Makes a test from a session.
async fn record(
    session: &str,
    out: Option<&std::path::Path>,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let place = Place::to_look(global).await?;
    let address = crate::address::Address::parse(session)?;
    let (seen, at) = place.inspect(&address).await?;
    let info = seen.info;
    let short = place.short(&info.id).await?;
    if address.branch.is_some() && seen.branches[at].id != seen.current || address.line.is_some() {
        let what = format!("a test is of a whole session: `{session}` is a part of one");
        return Err(CommandError::usage(what).hint(format!(
            "`steersman test --record {short}` takes all of it, with its branches"
        )));
    }
    let name = format!("session_{short}");
    let test = Box::pin(place.steersman.record_test(&info.id, &name)).await?;
    let Some(out) = out else {
        printer.whole(test.trim_end())?;
        return Ok(Exit::Answered);
    };
    write_new(out, &test)?;
    printer.talk(format!(
        "{} holds the test `{name}`, which passes.",
        locate::shown(out)
    ));
    Ok(Exit::Answered)
}

/// Writes a file that does not exist yet.
pub(crate) fn write_new(out: &std::path::Path, text: &str) -> Result<(), CommandError> {
    use std::io::Write as _;
    let failed = |e: std::io::Error| locate::unwritten(out, &e);
    let mut file = std::fs::File::create_new(out).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

/// Renders the results in the JUnit format, for continuous integration.
fn junit(suite: &str, ran: &[(testing::Report, f64)], broken: &[Broken]) -> String {
    use std::fmt::Write as _;
    let failed = ran
        .iter()
        .filter(|(report, _)| !report.failures.is_empty())
        .count();
    let time: f64 = ran.iter().map(|(_, seconds)| seconds).sum();
    let (suite, n, errors) = (escaped(suite), ran.len() + broken.len(), broken.len());
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        xml,
        "  <testsuite name=\"{suite}\" tests=\"{n}\" failures=\"{failed}\" errors=\"{errors}\" time=\"{time:.3}\">"
    );
    for (report, seconds) in ran {
        let name = escaped(&report.name);
        let _ = write!(
            xml,
            "    <testcase classname=\"{suite}\" name=\"{name}\" time=\"{seconds:.3}\""
        );
        if report.failures.is_empty() {
            xml.push_str("/>\n");
            continue;
        }
        let first = report
            .failures
            .first()
            .map_or("", |text| text.lines().next().unwrap_or(""));
        let _ = writeln!(
            xml,
            ">\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
            escaped(first),
            escaped(&report.failures.join("\n"))
        );
    }
    for file in broken {
        let first = file.why.lines().next().unwrap_or("");
        let _ = writeln!(
            xml,
            "    <testcase classname=\"{suite}\" name=\"{}\" time=\"0.000\">\n      <error message=\"{}\">{}</error>\n    </testcase>",
            escaped(&file.name),
            escaped(first),
            escaped(&file.why)
        );
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// Escapes a text for XML. Characters that XML does not allow become question marks.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => out.push('?'),
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_texts_are_escaped_for_xml() {
        let report = testing::Report {
            name: "a<b".into(),
            failures: vec!["\"x\" & 'y' ]]> \u{1b}[31m\nmore".into()],
            ..testing::Report::default()
        };
        let broken = Broken {
            name: "tests/x.yaml".into(),
            why: "a < b\nmore".into(),
        };
        let ran = [(report, 0.5), (testing::Report::default(), 0.25)];
        let xml = junit("s&t", &ran, &[broken]);
        assert!(xml.contains("<testsuite name=\"s&amp;t\" tests=\"3\" failures=\"1\" errors=\"1\" time=\"0.750\">"), "{xml}");
        assert!(
            xml.contains("<error message=\"a &lt; b\">a &lt; b\nmore</error>"),
            "{xml}"
        );
        assert!(xml.contains("name=\"a&lt;b\""), "{xml}");
        assert!(
            xml.contains(">&quot;x&quot; &amp; &apos;y&apos; ]]&gt; ?[31m\nmore</failure>"),
            "{xml}"
        );
    }
}
