//! The end of a run: what was left over, and its measurement by grades.

use super::{Run, told};
use crate::grading::{Case, Judges, grade};
use steersman_views::grade::{Graded, Verdict};

impl Run<'_> {
    /// Returns the calls that the script did not answer, and all answers and outcomes that were not used.
    pub(super) fn left_over(&self) -> Vec<String> {
        let mut failures = self.stage.models.missed();
        for (key, n) in self.stage.models.left_over() {
            failures.push(format!(
                "the script has {n} more for `{key}` than was asked for"
            ));
        }
        for (tool, n) in self.stage.tools.left_over() {
            let outcomes = match n {
                1 => "1 more outcome than was wanted".to_owned(),
                n => format!("{n} more outcomes than were wanted"),
            };
            failures.push(format!("`{tool}` has {outcomes}"));
        }
        failures
    }

    /// Measures the session by the grades of the definition, as it is on disk. If none began, no grade passes.
    pub(in crate::testing) async fn graded(
        &self,
        name: &str,
        judges: &Judges,
    ) -> Result<Vec<Graded>, String> {
        let case = Case::Test(name);
        let Some(id) = &self.id else {
            let grades = self.network.grades().iter();
            let grades = grades.filter(|(_, grade)| grade.is_of(case));
            let failed = |(grade, _): (&String, _)| Graded {
                grade: grade.clone(),
                case: name.to_owned(),
                verdict: Verdict::Failed("no session began".to_owned()),
                micros: 0,
            };
            return Ok(grades.map(failed).collect());
        };
        let reader = self.stage.process(self.network);
        let graded = grade(reader.engine(), id, case, self.network, judges).await;
        graded.map_err(told)
    }
}
