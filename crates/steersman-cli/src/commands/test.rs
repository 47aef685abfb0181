//! `test`: the tests of a definition, offline.

use crate::cli::{Global, Test};
use crate::commands::check;
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::place::Place;
use crate::printer::{Printer, bold, dim, green, red};
use crate::words::{count, span};
use serde_json::json;
use std::time::Instant;
use steersman::testing;

pub(crate) async fn run(
    args: Test,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if let Some(session) = &args.record {
        return record(session, args.out.as_deref(), global, printer).await;
    }
    let network = check::required(&args.definition, printer)?;
    let names: Vec<String> = network
        .checked()
        .tests
        .keys()
        .filter(|name| args.name.as_ref().is_none_or(|part| name.contains(part)))
        .cloned()
        .collect();
    if names.is_empty() {
        let error = CommandError::usage(match &args.name {
            Some(part) => format!(
                "`{}` has no test whose name contains `{part}`",
                network.name()
            ),
            None => format!("`{}` has no tests", network.name()),
        });
        return Err(
            error.hint("they stand under `tests:`, or in tests/*.yaml beside the definition")
        );
    }
    let (mut failed, began) = (0, Instant::now());
    let mut ran = Vec::new();
    for name in &names {
        let begun = Instant::now();
        let report = if args.replay {
            testing::replay(&network, name).await
        } else {
            testing::run(&network, name).await
        };
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
            }))?;
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
    if let Some(file) = &args.junit {
        let xml = junit(network.name(), &ran);
        std::fs::write(file, xml)
            .map_err(|e| CommandError::usage(format!("`{}`: {e}", file.display())))?;
    }
    let took = span(i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX));
    let sum = format!("{} in {took}", count(names.len() as u64, "test"));
    if failed == 0 {
        printer.talk(green(&format!(
            "{sum}, all passed. No model was asked, nothing outside was changed."
        )));
        return Ok(Exit::Answered);
    }
    printer.talk(format!(
        "{sum}, {}",
        bold(&red(&format!("{failed} failed")))
    ));
    Ok(Exit::Differs)
}

/// Makes a test of a session.
async fn record(
    session: &str,
    out: Option<&std::path::Path>,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let place = Place::to_look(global).await?;
    let address = crate::address::Address::parse(session)?;
    let info = place.session(&address.session).await?;
    let name = format!("session_{}", place.short(&info.id).await?);
    let test = Box::pin(place.steersman.record_test(&info.id, &name)).await?;
    let Some(out) = out else {
        printer.data(test.trim_end())?;
        return Ok(Exit::Answered);
    };
    write_new(out, &test)?;
    printer.talk(format!(
        "{} holds the test `{name}`, which passes.",
        locate::shown(out)
    ));
    Ok(Exit::Answered)
}

/// Writes a file that is not there yet.
pub(crate) fn write_new(out: &std::path::Path, text: &str) -> Result<(), CommandError> {
    use std::io::Write as _;
    let failed = |e: std::io::Error| CommandError::usage(format!("`{}`: {e}", out.display()));
    let mut file = std::fs::File::create_new(out).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

/// Results as continuous integration reads them.
fn junit(suite: &str, ran: &[(testing::Report, f64)]) -> String {
    use std::fmt::Write as _;
    let failed = ran
        .iter()
        .filter(|(report, _)| !report.failures.is_empty())
        .count();
    let time: f64 = ran.iter().map(|(_, seconds)| seconds).sum();
    let (suite, n) = (escaped(suite), ran.len());
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    // writing to a text cannot fail
    let _ = writeln!(
        xml,
        "  <testsuite name=\"{suite}\" tests=\"{n}\" failures=\"{failed}\" errors=\"0\" time=\"{time:.3}\">"
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
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// A text inside XML. What XML cannot hold at all reads as a question mark.
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
    fn whatever_a_failure_says_is_text_inside_xml() {
        let report = testing::Report {
            name: "a<b".into(),
            failures: vec!["\"x\" & 'y' ]]> \u{1b}[31m\nmore".into()],
            ..testing::Report::default()
        };
        let xml = junit("s&t", &[(report, 0.5), (testing::Report::default(), 0.25)]);
        assert!(xml.contains("<testsuite name=\"s&amp;t\" tests=\"2\" failures=\"1\" errors=\"0\" time=\"0.750\">"), "{xml}");
        assert!(xml.contains("name=\"a&lt;b\""), "{xml}");
        assert!(
            xml.contains(">&quot;x&quot; &amp; &apos;y&apos; ]]&gt; ?[31m\nmore</failure>"),
            "{xml}"
        );
    }
}
