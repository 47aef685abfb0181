//! Grades of sessions as a table, and their comparison with a baseline file.

use crate::cli::{Drive, Grading};
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::printer::{Printer, dim, green, red, yellow};
use crate::words::{count, line, money, table};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::path::Path;
use steersman::grading::{EXPECT, Judges};
use steersman::views::grade::{
    Against, Baseline, Compared, Graded, Measured, Rate, Verdict, compare,
};
use steersman::{Network, Steersman};

/// Most reasons that are shown for one grade.
const REASONS: usize = 3;

/// The measurements of a command.
pub(crate) struct Sheet<'a> {
    network: &'a Network,
    was: Option<Baseline>,
    is: Baseline,
    /// Measurements that did not pass or could not be made, in order.
    wrong: Vec<Graded>,
    micros: u64,
}

impl<'a> Sheet<'a> {
    /// Begins a sheet. The baseline is read now, so that nothing runs in vain.
    pub(crate) fn new(network: &'a Network, args: &Grading) -> Result<Self, CommandError> {
        let was = match &args.baseline {
            Some(file) => Some(read(file, network)?),
            None => None,
        };
        if let Some(file) = &args.save_baseline {
            let folder = file
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            if file.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
                let what = format!(
                    "--save-baseline: `{}` cannot be written",
                    locate::shown(file)
                );
                return Err(CommandError::usage(what).hint("name a file in a folder that exists"));
            }
        }
        Ok(Self {
            network,
            was,
            is: Baseline::new(network.name()),
            wrong: Vec::new(),
            micros: 0,
        })
    }

    /// Adds measurements; with `--json` each is printed.
    pub(crate) fn add(&mut self, all: Vec<Graded>, printer: &Printer) -> Result<(), CommandError> {
        for graded in all {
            let declared = self.network.grades().get(&graded.grade);
            let written = declared.map_or(Json::Null, |grade| grade.written.clone());
            self.is.add(&graded, &written);
            self.micros += graded.micros;
            if printer.is_json() {
                printer.view(&graded)?;
            }
            if !matches!(graded.verdict, Verdict::Passed(_)) {
                self.wrong.push(graded);
            }
        }
        Ok(())
    }

    /// Prints the rates and the comparison, writes the baseline, and returns the exit code.
    pub(crate) fn finish(self, args: &Grading, printer: &Printer) -> Result<Exit, CommandError> {
        let mut declared: Vec<String> = self.network.grades().keys().cloned().collect();
        // Reruns have no expectations of their own.
        if self.is.grades.contains_key(EXPECT) {
            declared.insert(0, EXPECT.to_owned());
        }
        let compared = self
            .was
            .as_ref()
            .map(|was| compare(was, &self.is, &declared));
        if printer.is_json() {
            self.document(&declared, compared.as_deref(), printer)?;
        } else {
            self.print(&declared, compared.as_deref(), printer)?;
        }
        if let Some(file) = &args.save_baseline {
            std::fs::write(file, self.is.write()).map_err(|e| locate::unwritten(file, &e))?;
            printer.talk(format!("{} is the baseline now.", locate::shown(file)));
        }
        let unknown = self.unknown(None);
        let bad = compared.iter().flatten().any(|one| one.against.is_bad());
        Ok(if bad || unknown > 0 {
            Exit::Differs
        } else {
            Exit::Answered
        })
    }

    /// Returns what was measured, in the form of a baseline file.
    pub(crate) fn measured(&self) -> String {
        self.is.write()
    }

    /// Returns the number of measurements that could not be made, of one grade or of all.
    fn unknown(&self, grade: Option<&str>) -> u64 {
        let wrong = self
            .wrong
            .iter()
            .filter(|one| grade.is_none_or(|grade| one.grade == grade));
        wrong
            .filter(|one| matches!(one.verdict, Verdict::Unknown(_)))
            .count() as u64
    }

    fn rate(&self, grade: &str) -> Rate {
        let measured = self.is.grades.get(grade);
        measured.map(Measured::rate).unwrap_or_default()
    }

    fn document(
        &self,
        declared: &[String],
        compared: Option<&[Compared]>,
        printer: &Printer,
    ) -> Result<(), CommandError> {
        let grade = |name: &String| {
            let rate = self.rate(name);
            let (least, most) = rate.interval();
            json!({
                "grade": name,
                "passed": rate.passed,
                "of": rate.of,
                "rate": rate.share(),
                "interval": [least, most],
                "unknown": self.unknown(Some(name)),
            })
        };
        let grades: Vec<Json> = declared.iter().map(grade).collect();
        printer.json(&json!({
            "grades": grades,
            "compared": compared,
            "cost": self.micros as f64 / 1e6,
        }))
    }

    fn print(
        &self,
        declared: &[String],
        compared: Option<&[Compared]>,
        printer: &Printer,
    ) -> Result<(), CommandError> {
        let mut heading = vec!["GRADE", "PASSED", "RATE", "95 % INTERVAL"];
        if compared.is_some() {
            heading.extend(["BASELINE", "AGAINST IT"]);
        }
        let found = |name: &str| {
            compared
                .into_iter()
                .flatten()
                .find(|one| one.grade == *name)
        };
        let gone = compared
            .into_iter()
            .flatten()
            .filter(|one| one.against == Against::Gone);
        let names = declared.iter().chain(gone.map(|one| &one.grade));
        let rows: Vec<Vec<String>> = names
            .map(|name| {
                let rate = self.rate(name);
                let (least, most) = rate.interval();
                let mut row = vec![name.clone()];
                if rate.of == 0 {
                    row.extend(["-".to_owned(), "-".to_owned(), "-".to_owned()]);
                } else {
                    row.push(rate.to_string());
                    row.push(format!("{:.2}", rate.share()));
                    row.push(format!("{least:.2} to {most:.2}"));
                }
                if compared.is_some() {
                    let one = found(name);
                    let was = one.filter(|one| one.was.of > 0);
                    row.push(was.map_or_else(|| "-".to_owned(), |one| one.was.to_string()));
                    row.push(one.map_or_else(|| "-".to_owned(), |one| stand(one, rate)));
                }
                row
            })
            .collect();
        for (i, row) in table(&heading, &rows).into_iter().enumerate() {
            printer.data(if i == 0 { dim(&row) } else { row })?;
        }
        for name in declared {
            self.reasons(name, printer)?;
        }
        let Some(compared) = compared else {
            printer.talk(dim("There is nothing to compare with: --save-baseline FILE keeps this, --baseline FILE compares with it."));
            return Ok(());
        };
        self.sum(compared, printer);
        Ok(())
    }

    /// Prints the first reasons for which a grade was not passed or not measured.
    fn reasons(&self, grade: &str, printer: &Printer) -> Result<(), CommandError> {
        let wrong: Vec<&Graded> = self.wrong.iter().filter(|one| one.grade == grade).collect();
        for one in wrong.iter().take(REASONS) {
            let (word, why) = match &one.verdict {
                Verdict::Failed(why) => (yellow("failed"), why),
                Verdict::Unknown(why) => (red("not measured"), why),
                Verdict::Passed(_) => continue,
            };
            printer.data(format!("{grade}, {}: {word}: {}", one.case, line(why, 200)))?;
        }
        if wrong.len() > REASONS {
            let more = wrong.len() - REASONS;
            printer.data(dim(&format!("{grade}: {more} more; --json prints all")))?;
        }
        Ok(())
    }

    fn sum(&self, compared: &[Compared], printer: &Printer) {
        let few: Vec<&str> = compared
            .iter()
            .filter(|one| one.too_few && one.was.passed > 0)
            .map(|one| &*one.grade)
            .collect();
        if !few.is_empty() {
            printer.complain(yellow(&format!(
                "too few runs to find a loss in: {}. Even if none had passed, it could be chance.",
                few.join(", ")
            )));
        }
        let named = |against: Against| {
            let found = compared.iter().filter(|one| one.against == against);
            found.map(|one| &*one.grade).collect::<Vec<_>>().join(", ")
        };
        let told = [
            (named(Against::Worse), "worse"),
            (
                named(Against::Changed),
                "declared otherwise than in the baseline, and not compared",
            ),
            (
                named(Against::Gone),
                "in the baseline, and not declared any more",
            ),
        ];
        let mut bad: Vec<String> = told
            .iter()
            .filter(|(names, _)| !names.is_empty())
            .map(|(names, what)| format!("{names}: {what}"))
            .collect();
        let unknown = self.unknown(None);
        if unknown > 0 {
            bad.push(format!(
                "{} could not be made",
                count(unknown, "measurement")
            ));
        }
        let cost = match self.micros {
            0 => String::new(),
            micros => format!(" Judges: {}.", money(micros)),
        };
        if bad.is_empty() {
            printer.talk(format!("{}{cost}", green("No grade is worse.")));
        } else {
            printer.talk(format!("{}.{cost}", red(&bad.join("; "))));
        }
    }
}

/// Describes how a grade stands to its baseline. `rate` is that of all cases, of which the baseline may lack some.
fn stand(one: &Compared, rate: Rate) -> String {
    let mut text = one.against.word().to_owned();
    if let Some(chance) = one.chance {
        text = match one.against {
            Against::Lower | Against::Higher => {
                format!("{text}, may be chance ({})", probability(chance))
            }
            _ => format!("{text} (chance {})", probability(chance)),
        };
    }
    let common = one.against != Against::New
        && one.against != Against::Changed
        && one.against != Against::Gone;
    if common && one.is != rate {
        // Writing to a string cannot fail.
        let _ = write!(text, ", in the common cases {}", one.is);
    }
    text
}

fn probability(chance: f64) -> String {
    if chance < 0.001 {
        "below 0.001".to_owned()
    } else {
        format!("{chance:.3}")
    }
}

/// Reads a baseline of this network.
fn read(file: &Path, network: &Network) -> Result<Baseline, CommandError> {
    let shown = locate::shown(file);
    let text = std::fs::read_to_string(file).map_err(|e| {
        let what = format!("the baseline `{shown}` cannot be read: {e}");
        CommandError::usage(what).hint(format!("--save-baseline {shown} makes one"))
    })?;
    let was = Baseline::read(&text)
        .map_err(|why| CommandError::usage(format!("the baseline `{shown}`: {why}")))?;
    if was.network != network.name() {
        return Err(CommandError::usage(format!(
            "the baseline `{shown}` is of `{}`, and this is `{}`",
            was.network,
            network.name()
        )));
    }
    Ok(was)
}

/// Returns the judges of reruns: the script answers where it has `judge#GRADE`; otherwise models are asked, unless the script
/// answers for all models.
pub(crate) fn judges(drive: &Drive) -> Result<Judges, CommandError> {
    let judges = match drive.script.as_ref().or(drive.script_all.as_ref()) {
        None => Judges::default(),
        Some(file) => {
            let shown = locate::shown(file);
            let text = std::fs::read_to_string(file).map_err(|e| {
                CommandError::usage(format!("the script `{shown}` cannot be read: {e}"))
            })?;
            Judges::scripted(&text)?
        }
    };
    Ok(if drive.script_all.is_some() {
        judges
    } else {
        judges.asked(Steersman::options().in_memory())
    })
}

/// Refuses a definition without grades.
pub(crate) fn required(network: &Network) -> Result<(), CommandError> {
    if network.grades().is_empty() {
        let what = format!("`{}` has no grades", network.name());
        return Err(CommandError::usage(what)
            .hint("grades are under `grades:`, in the definition or in tests/*.yaml next to it"));
    }
    Ok(())
}
