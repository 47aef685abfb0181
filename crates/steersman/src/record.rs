//! Regression tests, training trajectories and differences of recorded sessions.

mod yaml;

use crate::testing::Report;
use crate::{Error, Network, Steersman};
use serde_json::{Value as Json, json};
use steersman_machine::stored::ids::Id;
use steersman_runtime::engine::{BranchView, Inspection};
use steersman_views::diff::{Diff, Side, compare};
use steersman_views::record::{Block, Recorded};

impl Steersman {
    /// Makes a regression test of a session, in the form of a test file: the answers of its models, the outcomes of its
    /// tools, what people did, and the result. The test is run first; if it fails, it is refused with the failures. Values
    /// of secrets that the session knows are replaced by `(secret)`.
    ///
    /// # Errors
    /// [`Error::Refused`] if a test cannot express what happened (doubts, cancels, decisions of routing models, searches),
    /// or if the recorded outcome of a tool differs from what its raw answer would give.
    pub async fn record_test(&self, id: &str, name: &str) -> Result<String, Error> {
        let read = Recorded::read(self.engine(), id).await?;
        let read = read.with_artifacts(self.engine()).await?.masked();
        let test = read.test()?;
        let mut document = json!({ "tests": { name: test } });
        let network = self.definition_of(id, &[]).await?;
        let report = tried(&network, name, &document).await?;
        if report.failures.is_empty() {
            // A test file without `name` belongs to the main definition of its folder.
            if read.seen().values.file.is_some() {
                document["name"] = network.name().into();
            }
            let missed = read.known().misses().map(|why| format!("# {why}\n"));
            return Ok(format!(
                "# Recorded from session {id}.\n{}{}",
                missed.unwrap_or_default(),
                yaml::document(&document)
            ));
        }
        let mapped = read.mapped(&document["tests"][name]);
        let failures = report.failures.join("; ");
        if mapped.is_empty() {
            return Err(Error::Refused(format!(
                "a test of it would not hold: {failures}"
            )));
        }
        // The failures are a consequence of the mapped results.
        Err(Error::Refused(format!(
            "a test of it would not hold: of {} the log holds what models saw, and not the raw answer, from which `result`, `set`, \
             `then` or `on_error` made it. Write the test by hand, with the raw answers under `tools:`. What failed without them: {failures}",
            mapped.join(", ")
        )))
    }

    /// Returns what each agent was shown, called and answered, with one block for each model call (the schema is
    /// `docs/reference/trajectories.md`). `reward` returns the value of a branch; `None` means that it is unknown. Values
    /// of secrets that the session knows are replaced by `(secret)`.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn trajectories(
        &self,
        id: &str,
        reward: impl Fn(&Inspection, &BranchView) -> Option<f64>,
    ) -> Result<Vec<Block>, Error> {
        Ok(Recorded::read(self.engine(), id)
            .await?
            .trajectories(reward))
    }

    /// Compares two branches of one session or of two. `None` means the current branch. The comparison uses the stored
    /// texts; in the result, values of secrets that either session knows are replaced by `(secret)`.
    ///
    /// # Errors
    /// Of kind [`NotFound`](crate::ErrorKind::NotFound) if there is no such session; [`Error::Refused`] if there is no such
    /// branch.
    pub async fn diff(&self, a: (&str, Option<Id>), b: (&str, Option<Id>)) -> Result<Diff, Error> {
        let a = self.side(a).await?;
        let b = self.side(b).await?;
        Ok(compare(&a, &b))
    }

    async fn side(&self, (id, branch): (&str, Option<Id>)) -> Result<Side, Error> {
        let side = Side::read(self.engine(), id, branch).await?;
        side.ok_or_else(|| {
            let branch = branch.map_or_else(|| "current".to_owned(), |branch| branch.to_string());
            Error::Refused(format!("session `{id}` has no branch {branch}"))
        })
    }
}

/// Runs the test `name` of this document under the definition.
async fn tried(network: &Network, name: &str, document: &Json) -> Result<Report, Error> {
    let mut stored: Json = serde_json::from_str(&network.checked().source)
        .map_err(|e| Error::Refused(format!("the definition cannot be read: {e}")))?;
    stored["definition"]["tests"] = document["tests"].clone();
    let made = steersman_definition::compile_stored(&stored.to_string());
    let mut made = made.map_err(Error::Refused)?;
    made.network.natives = network.checked().natives.clone();
    Ok(Box::pin(crate::testing::run(&network.with_compiled(made), name)).await)
}
