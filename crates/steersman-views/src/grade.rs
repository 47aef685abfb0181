//! Measurements of sessions by grades, their rates, and their comparison with a baseline: what is better, and what is worse.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the form of baseline files.
pub const VERSION: u64 = 1;

/// The chance that a comparison finds any grade worse although nothing changed.
pub const LEVEL: f64 = 0.05;

/// One session, measured by one grade.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Graded {
    /// The grade.
    pub grade: String,
    /// The test, or the recorded session.
    pub case: String,
    /// The result.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The cost of the judge, in millionths of the currency of the prices.
    #[serde(skip)]
    pub micros: u64,
}

/// The result of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "why")]
pub enum Verdict {
    /// The session meets the grade; with the reason of the judge, if one judged.
    Passed(Option<String>),
    /// It does not, for this reason.
    Failed(String),
    /// The grade could not be measured, for this reason.
    Unknown(String),
}

/// The number of measurements that passed, out of all. In JSON it is a text: `9/10`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Measurements that passed.
    pub passed: u64,
    /// All measurements.
    pub of: u64,
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.passed, self.of)
    }
}

impl Serialize for Rate {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let parts = text.split_once('/');
        let rate = parts.and_then(|(passed, of)| {
            Some(Self {
                passed: passed.parse().ok()?,
                of: of.parse().ok()?,
            })
        });
        rate.filter(|rate| rate.passed <= rate.of).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "`{text}` is not of the form PASSED/ALL, such as 9/10"
            ))
        })
    }
}

impl Rate {
    fn and(self, other: Self) -> Self {
        Self {
            passed: self.passed.saturating_add(other.passed),
            of: self.of.saturating_add(other.of),
        }
    }

    /// Returns the share that passed; 0 if nothing was measured.
    pub fn share(self) -> f64 {
        if self.of == 0 {
            return 0.0;
        }
        self.passed as f64 / self.of as f64
    }

    /// Returns the 95 % interval of Wilson for the share, which holds for small numbers and for shares near 0 and 1.
    pub fn interval(self) -> (f64, f64) {
        const Z: f64 = 1.959_963_984_540_054;
        if self.of == 0 {
            return (0.0, 1.0);
        }
        let (n, share) = (self.of as f64, self.share());
        let middle = share + Z * Z / (2.0 * n);
        let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        let all = 1.0 + Z * Z / n;
        (
            ((middle - half) / all).max(0.0),
            ((middle + half) / all).min(1.0),
        )
    }
}

/// The measurements of one grade, by case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// The grade as the definition declares it. Null for the expectations of tests.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub grade: serde_json::Value,
    /// The rates by case.
    pub cases: BTreeMap<String, Rate>,
}

impl Measured {
    /// Returns the rate over all cases.
    pub fn rate(&self) -> Rate {
        self.cases
            .values()
            .fold(Rate::default(), |all, one| all.and(*one))
    }
}

/// All measurements of a run. A baseline file holds one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// The version of this form: [`VERSION`].
    pub steersman_baseline: u64,
    /// The name of the network.
    pub network: String,
    /// The measurements by grade.
    pub grades: BTreeMap<String, Measured>,
}

impl Baseline {
    /// Returns a baseline without measurements.
    pub fn new(network: &str) -> Self {
        Self {
            steersman_baseline: VERSION,
            network: network.to_owned(),
            grades: BTreeMap::new(),
        }
    }

    /// Adds a measurement. `written` is the grade as the definition declares it. What could not be measured is not counted.
    pub fn add(&mut self, graded: &Graded, written: &serde_json::Value) {
        let measured = self.grades.entry(graded.grade.clone()).or_default();
        measured.grade = written.clone();
        let passed = match graded.verdict {
            Verdict::Passed(_) => 1,
            Verdict::Failed(_) => 0,
            Verdict::Unknown(_) => return,
        };
        let rate = measured.cases.entry(graded.case.clone()).or_default();
        *rate = rate.and(Rate { passed, of: 1 });
    }

    /// Reads a baseline file.
    ///
    /// # Errors
    /// A sentence: it is no such file, or of a newer version.
    pub fn read(text: &str) -> Result<Self, String> {
        let json: serde_json::Value =
            serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
        match json["steersman_baseline"].as_u64() {
            Some(VERSION) => {}
            Some(other) => {
                return Err(format!(
                    "it has version {other}; this program reads {VERSION}"
                ));
            }
            None => {
                return Err(
                    "it is not a baseline: the key `steersman_baseline` is missing".to_owned(),
                );
            }
        }
        serde_json::from_value(json).map_err(|e| e.to_string())
    }

    /// Writes a baseline file: one line for each case, in the order of names.
    pub fn write(&self) -> String {
        format!("{:#}\n", serde_json::to_value(self).unwrap_or_default())
    }
}

/// The relation of a grade to its baseline.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Against {
    /// More passed, and chance alone would hardly do that.
    Better,
    /// More passed; it may be chance.
    Higher,
    /// As many passed.
    Same,
    /// Fewer passed; it may be chance.
    Lower,
    /// Fewer passed, and chance alone would hardly do that.
    Worse,
    /// The baseline has no such grade, or none of the cases.
    New,
    /// The grade is declared otherwise than in the baseline.
    Changed,
    /// The baseline has it, and the definition does not declare it.
    Gone,
}

impl Against {
    /// Returns its word, as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Higher => "higher",
            Self::Same => "same",
            Self::Lower => "lower",
            Self::Worse => "worse",
            Self::New => "new",
            Self::Changed => "changed",
            Self::Gone => "gone",
        }
    }

    /// Returns true if this is a reason not to accept a change: the grade is worse, or nobody can tell.
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Worse | Self::Changed | Self::Gone)
    }
}

/// The comparison of one grade with its baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The grade.
    pub grade: String,
    /// The rate of the baseline, in the cases that both have.
    pub was: Rate,
    /// The rate of this run, in the same cases.
    pub is: Rate,
    /// The result.
    pub against: Against,
    /// The chance that as few (or, for more, as many) pass if nothing changed.
    pub chance: Option<f64>,
    /// True if so few measurements could not show that a grade is worse, even if none had passed.
    pub too_few: bool,
}

/// Compares measurements with a baseline, grade by grade. `declared` are the grades of the definition, measured or not.
///
/// Only cases that both have are compared, each with itself: a case that never passed says nothing about a change. Under the
/// assumption that nothing changed, the passes of a case are spread over its runs of both sides by chance. The sum over the cases
/// then has a known distribution, and `chance` is its tail. With one run for each case and side, this is the exact test of McNemar;
/// with one case, that of Fisher. Over several grades the level is kept by the method of Holm.
pub fn compare(was: &Baseline, is: &Baseline, declared: &[String]) -> Vec<Compared> {
    let mut all = Vec::new();
    // For each grade that is compared, the least chance that it can come to.
    let mut least = Vec::new();
    for name in declared {
        let found = (was.grades.get(name), is.grades.get(name));
        let mut compared = Compared {
            grade: name.clone(),
            was: Rate::default(),
            is: found.1.map(Measured::rate).unwrap_or_default(),
            against: Against::New,
            chance: None,
            too_few: false,
        };
        match found {
            (_, None) => continue,
            (Some(old), Some(new)) if old.grade != new.grade => {
                compared.was = old.rate();
                compared.against = Against::Changed;
            }
            (Some(old), Some(new)) => {
                let both = new.cases.iter();
                let both = both.filter_map(|(case, is)| Some((*old.cases.get(case)?, *is)));
                let both: Vec<(Rate, Rate)> = both.collect();
                if !both.is_empty() {
                    compared.was = both
                        .iter()
                        .fold(Rate::default(), |all, (was, _)| all.and(*was));
                    compared.is = both
                        .iter()
                        .fold(Rate::default(), |all, (_, is)| all.and(*is));
                    let spread = Spread::of(&both);
                    let mean = spread.mean();
                    let passed = compared.is.passed;
                    (compared.against, compared.chance) = if (passed as f64) < mean - 1e-9 {
                        (Against::Lower, Some(spread.at_most(passed)))
                    } else if (passed as f64) > mean + 1e-9 {
                        (Against::Higher, Some(spread.at_least(passed)))
                    } else {
                        (Against::Same, None)
                    };
                    least.push((all.len(), Spread::of_failure(&both)));
                }
            }
            (None, Some(_)) => {}
        }
        all.push(compared);
    }
    let level = LEVEL / least.len().max(1) as f64;
    for (at, chance) in least {
        all[at].too_few = chance > level;
    }
    let gone = was
        .grades
        .iter()
        .filter(|(name, _)| !declared.contains(name));
    all.extend(gone.map(|(name, old)| Compared {
        grade: name.clone(),
        was: old.rate(),
        is: Rate::default(),
        against: Against::Gone,
        chance: None,
        too_few: false,
    }));
    for (less, more) in [
        (Against::Lower, Against::Worse),
        (Against::Higher, Against::Better),
    ] {
        holm(&mut all, less, more);
    }
    all
}

/// Decides which of the grades that changed in one direction did so beyond chance.
fn holm(all: &mut [Compared], less: Against, more: Against) {
    let compared = all
        .iter()
        .filter(|one| one.chance.is_some() || one.against == Against::Same);
    let mut left = compared.count();
    let mut order: Vec<usize> = (0..all.len()).filter(|k| all[*k].against == less).collect();
    let chance = |one: &Compared| one.chance.unwrap_or(1.0);
    order.sort_by(|a, b| chance(&all[*a]).total_cmp(&chance(&all[*b])));
    for k in order {
        if chance(&all[k]) > LEVEL / left.max(1) as f64 {
            break;
        }
        all[k].against = more;
        left -= 1;
    }
}

/// The distribution of the number of passes of this run, if nothing changed.
struct Spread {
    /// The least number of passes.
    least: u64,
    /// The probability of each number, from the least on.
    chances: Vec<f64>,
}

impl Spread {
    /// Returns the distribution for cases with these rates in the baseline and in this run. The time grows with the square of the
    /// number of runs.
    fn of(cases: &[(Rate, Rate)]) -> Self {
        let most = cases
            .iter()
            .map(|(was, is)| was.of + is.of)
            .max()
            .unwrap_or(0);
        let logs = log_factorials(most);
        let mut all = Self {
            least: 0,
            chances: vec![1.0],
        };
        for (was, is) in cases {
            let passed = was.passed + is.passed;
            let least = passed.saturating_sub(was.of);
            let most = passed.min(is.of);
            let choose =
                |n: u64, k: u64| logs[n as usize] - logs[k as usize] - logs[(n - k) as usize];
            let all_ways = choose(was.of + is.of, passed);
            let chances: Vec<f64> = (least..=most)
                .map(|k| (choose(is.of, k) + choose(was.of, passed - k) - all_ways).exp())
                .collect();
            let mut sum = vec![0.0; all.chances.len() + chances.len() - 1];
            for (i, a) in all.chances.iter().enumerate() {
                for (j, b) in chances.iter().enumerate() {
                    sum[i + j] += a * b;
                }
            }
            all.least += least;
            all.chances = sum;
        }
        all
    }

    /// Returns the chance that none passes in this run, if nothing changed and none did: the least that a comparison can find.
    fn of_failure(cases: &[(Rate, Rate)]) -> f64 {
        let none: Vec<(Rate, Rate)> = cases
            .iter()
            .map(|(was, is)| {
                (
                    *was,
                    Rate {
                        passed: 0,
                        of: is.of,
                    },
                )
            })
            .collect();
        Self::of(&none).at_most(0)
    }

    fn mean(&self) -> f64 {
        let sum = self
            .chances
            .iter()
            .enumerate()
            .map(|(k, chance)| k as f64 * chance);
        self.least as f64 + sum.sum::<f64>()
    }

    fn at_most(&self, n: u64) -> f64 {
        let to = n.saturating_sub(self.least) as usize;
        self.chances.iter().take(to + 1).sum::<f64>().min(1.0)
    }

    fn at_least(&self, n: u64) -> f64 {
        let from = n.saturating_sub(self.least) as usize;
        self.chances.iter().skip(from).sum::<f64>().min(1.0)
    }
}

/// Returns the logarithms of the factorials of 0 to `n`.
fn log_factorials(n: u64) -> Vec<f64> {
    let mut logs = vec![0.0];
    for k in 1..=n {
        logs.push(logs[k as usize - 1] + (k as f64).ln());
    }
    logs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(passed: u64, of: u64) -> Rate {
        Rate { passed, of }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-4
    }

    /// The values are those of published tables of Wilson's interval.
    #[test]
    fn the_interval_is_that_of_wilson() {
        for (passed, of, least, most) in [
            (0, 10, 0.0, 0.2775),
            (10, 10, 0.7225, 1.0),
            (5, 10, 0.2366, 0.7634),
            (81, 263, 0.2553, 0.3662),
        ] {
            let (a, b) = rate(passed, of).interval();
            assert!(near(a, least) && near(b, most), "{passed}/{of}: {a} to {b}");
        }
        assert_eq!(rate(0, 0).interval(), (0.0, 1.0));
    }

    #[test]
    fn one_case_is_compared_as_fisher_does_and_single_runs_as_mcnemar_does() {
        // Fisher: 5/5 against 0/5 is 1 of C(10, 5).
        let one = Spread::of(&[(rate(5, 5), rate(0, 5))]);
        assert!((one.at_most(0) - 1.0 / 252.0).abs() < 1e-12);
        // McNemar: of 6 cases that differ, all differ in one direction; those that agree say nothing.
        let mut cases = vec![(rate(1, 1), rate(0, 1)); 6];
        cases.extend(vec![(rate(1, 1), rate(1, 1)); 20]);
        cases.extend(vec![(rate(0, 1), rate(0, 1)); 20]);
        let spread = Spread::of(&cases);
        assert!((spread.at_most(20) - 1.0 / 64.0).abs() < 1e-12);
        assert!((spread.mean() - 23.0).abs() < 1e-9);
    }

    fn baseline(grade: &str, cases: &[(u64, u64)]) -> Baseline {
        let mut made = Baseline::new("n");
        let cases = cases.iter().enumerate();
        let cases = cases.map(|(k, (passed, of))| (format!("c{k}"), rate(*passed, *of)));
        let measured = Measured {
            grade: grade.into(),
            cases: cases.collect(),
        };
        made.grades.insert("g".into(), measured);
        made
    }

    fn against(was: &Baseline, is: &Baseline) -> (Against, bool) {
        let compared = compare(was, is, &["g".to_owned()]);
        (compared[0].against, compared[0].too_few)
    }

    #[test]
    fn what_may_be_chance_is_not_called_worse() {
        let was = baseline("x", &[(9, 10), (2, 10)]);
        assert_eq!(against(&was, &was), (Against::Same, false));
        assert_eq!(
            against(&was, &baseline("x", &[(8, 10), (2, 10)])).0,
            Against::Lower
        );
        assert_eq!(
            against(&was, &baseline("x", &[(2, 10), (2, 10)])).0,
            Against::Worse
        );
        assert_eq!(
            against(&was, &baseline("x", &[(10, 10), (9, 10)])).0,
            Against::Better
        );
        assert_eq!(
            against(&was, &baseline("y", &[(9, 10), (2, 10)])).0,
            Against::Changed
        );
        let few = baseline("x", &[(1, 1), (1, 1), (1, 1)]);
        let none = baseline("x", &[(0, 1), (0, 1), (0, 1)]);
        assert_eq!(
            against(&few, &none),
            (Against::Lower, true),
            "3 runs cannot show it"
        );
        // Cases are compared with themselves: a new case that fails makes nothing worse.
        let more = baseline("x", &[(9, 10), (2, 10), (0, 10)]);
        assert_eq!(against(&was, &more).0, Against::Same);
        let gone = compare(&was, &was, &[]);
        assert_eq!(gone[0].against, Against::Gone);
    }

    /// With many grades, one of them looks worse by chance; the level holds for all together.
    #[test]
    fn many_grades_do_not_make_a_false_alarm_likelier() {
        let names: Vec<String> = (0..10).map(|k| format!("g{k}")).collect();
        let (mut was, mut is) = (Baseline::new("n"), Baseline::new("n"));
        for (k, name) in names.iter().enumerate() {
            let all = |rate| Measured {
                grade: "x".into(),
                cases: BTreeMap::from([("c".to_owned(), rate)]),
            };
            was.grades.insert(name.clone(), all(rate(5, 5)));
            let now = if k == 0 { rate(1, 5) } else { rate(5, 5) };
            is.grades.insert(name.clone(), all(now));
        }
        let alone = compare(&was, &is, &names[..1]);
        assert_eq!(alone[0].against, Against::Worse);
        let among = compare(&was, &is, &names);
        assert_eq!(among[0].against, Against::Lower);
    }

    #[test]
    fn a_baseline_is_read_as_it_was_written_and_other_files_are_refused() {
        let made = baseline("x", &[(9, 10)]);
        let text = made.write();
        assert!(text.contains("        \"c0\": \"9/10\"\n"), "{text}");
        assert_eq!(Baseline::read(&text).unwrap(), made);
        for (wrong, why) in [
            (
                "{}",
                "it is not a baseline: the key `steersman_baseline` is missing",
            ),
            (
                "nothing",
                "it is not JSON: expected ident at line 1 column 2",
            ),
            (
                &*text.replace(": 1,", ": 2,"),
                "it has version 2; this program reads 1",
            ),
            (
                &*text.replace("9/10", "11/10"),
                "`11/10` is not of the form PASSED/ALL, such as 9/10",
            ),
        ] {
            assert_eq!(Baseline::read(wrong).unwrap_err(), why);
        }
    }
}
