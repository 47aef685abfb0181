//! Work that goes on after its request was answered. It lives in this process: after its death a job is lost, and what it stored
//! stays.

use crate::caller::Caller;
use crate::problem::{Code, Problem};
use serde::Serialize;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use steersman::Scope;
use steersman::machine::stored::ids::Name;
use steersman::runtime::inbox::random_id;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

/// Maximum number of jobs that are remembered. Those that are over are forgotten first, the oldest before others.
const KEPT: usize = 500;
/// Maximum number of jobs that run.
const RUNNING: usize = 16;
/// Maximum number of jobs of one token that run.
const RUNNING_EACH: usize = 4;
/// Number of characters of each half of a job's id.
const HALF: usize = 16;

/// The state of a job.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = JobState)]
pub(crate) enum Stands {
    /// It goes on.
    Running,
    /// It is done.
    Done,
    /// It ended by an error.
    Failed,
    /// It was stopped before it was done.
    Stopped,
    /// The process that it was in is gone.
    Lost,
}

/// A job.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Job)]
pub(crate) struct View {
    /// The id of the job.
    pub(crate) job: String,
    /// Its state.
    pub(crate) state: Stands,
    /// The session that it is about, if the job is not lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// Differences of its runs to the session: paths of the definition, and fields of the request such as `say`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) changed: Vec<String>,
    /// Number of its runs that are done.
    pub(crate) done: usize,
    /// Number of its runs.
    pub(crate) of: usize,
    /// The results of these runs: the session of the rerun, and how it differs.
    #[schema(value_type = Vec<Object>)]
    pub(crate) runs: Vec<Value>,
    /// The problem by which it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) error: Option<Value>,
}

/// A job of this process.
#[derive(Debug)]
pub(crate) struct Job {
    scope: Scope,
    token: Name,
    /// The digest of the request, by which a repetition is recognised.
    request: blake3::Hash,
    pub(crate) stop: CancellationToken,
    /// Cancelled once the job is over.
    over: CancellationToken,
    view: Mutex<View>,
}

impl Job {
    fn lock(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the job as clients see it, once it is over or the client waited as long as it wants.
    pub(crate) async fn view(&self, wait: Option<Duration>) -> View {
        if let Some(wait) = wait {
            let over = tokio::time::timeout(wait, self.over.cancelled());
            // The state says if it is over.
            let _ = over.await;
        }
        self.lock().clone()
    }

    fn is_running(&self) -> bool {
        self.lock().state == Stands::Running
    }

    /// Adds the result of a run.
    pub(crate) fn ran(&self, run: Value) {
        let mut view = self.lock();
        view.runs.push(run);
        view.done += 1;
    }

    /// Ends the job.
    pub(crate) fn ends(&self, state: Stands, error: Option<&Problem>) {
        let mut view = self.lock();
        view.state = state;
        view.error = error.map(|problem| serde_json::to_value(problem).unwrap_or_default());
        self.over.cancel();
    }
}

/// The jobs of this process, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Jobs(Mutex<VecDeque<Arc<Job>>>);

/// A job that was begun.
pub(crate) enum Begun {
    /// It is new: somebody has to do its work.
    New(Arc<Job>),
    /// The same request began it before.
    Known(Arc<Job>),
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Job>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: &str) -> Option<Arc<Job>> {
        let jobs = self.lock();
        jobs.iter().find(|job| job.lock().job == id).cloned()
    }
}

impl Caller {
    /// Begins a job about a session, or finds the one that the same request began under its idempotency key.
    pub(crate) async fn begin_job(
        &self,
        key: Option<&str>,
        session: &str,
        request: blake3::Hash,
        (changed, of): (Vec<String>, usize),
    ) -> Result<Begun, Problem> {
        let id = self.job_id(key, session).await?;
        let mut jobs = self.server.jobs().lock();
        if let Some(known) = jobs.iter().find(|job| job.lock().job == id) {
            if known.request == request {
                return Ok(Begun::Known(known.clone()));
            }
            let why = "the idempotency key was used for another request; nothing was done";
            return Err(Problem::new(Code::Repeated, why)
                .help("send what says something else under a key of its own"));
        }
        let running = || jobs.iter().filter(|job| job.is_running());
        if running().count() >= RUNNING {
            let why = format!("{RUNNING} jobs run already");
            return Err(Problem::new(Code::Rate, why).help("wait until one of them is over"));
        }
        let is_own = |job: &&Arc<Job>| job.token == self.token.name;
        if running().filter(is_own).count() >= RUNNING_EACH {
            let why = format!("a token may have {RUNNING_EACH} jobs that run");
            return Err(Problem::new(Code::Rate, why).help("wait until one of them is over"));
        }
        if jobs.len() >= KEPT
            && let Some(over) = jobs.iter().position(|job| !job.is_running())
        {
            jobs.remove(over);
        }
        let job = Arc::new(Job {
            scope: self.token.scope.clone(),
            token: self.token.name.clone(),
            request,
            stop: self.server.stopping().child_token(),
            over: CancellationToken::new(),
            view: Mutex::new(View {
                job: id,
                state: Stands::Running,
                session: Some(session.to_owned()),
                changed,
                done: 0,
                of,
                runs: Vec::new(),
                error: None,
            }),
        });
        jobs.push_back(job.clone());
        Ok(Begun::New(job))
    }

    /// Returns the id of a new job. Its second half follows from the first, the store, the tenant and the subject, so another process
    /// knows a lost job from one that never was.
    async fn job_id(&self, key: Option<&str>, session: &str) -> Result<String, Problem> {
        let first = match key {
            Some(key) => {
                let digest = self.keyed("job", &format!("{session} {key}")).await?;
                digest.to_hex()[..HALF].to_owned()
            }
            None => blake3::hash(random_id().as_bytes()).to_hex()[..HALF].to_owned(),
        };
        let second = self.second(&first).await?;
        Ok(first + &second)
    }

    async fn second(&self, first: &str) -> Result<String, Problem> {
        Ok(self.keyed("job id", first).await?.to_hex()[..HALF].to_owned())
    }

    /// Returns a job that the token sees.
    pub(crate) async fn job(&self, id: &str) -> Result<Option<Arc<Job>>, Problem> {
        if let Some(job) = self.server.jobs().find(id)
            && self.token.scope.includes(&job.scope)
        {
            return Ok(Some(job));
        }
        let (first, second) = id.split_at_checked(HALF).unwrap_or_default();
        if !second.is_empty() && self.second(first).await? == second {
            return Ok(None);
        }
        let why = "there is no such job";
        Err(Problem::new(Code::Job, why).help("jobs live in the process that was asked"))
    }
}

/// Returns what is known of a lost job.
pub(crate) fn lost(id: &str) -> View {
    View {
        job: id.to_owned(),
        state: Stands::Lost,
        session: None,
        changed: Vec::new(),
        done: 0,
        of: 0,
        runs: Vec::new(),
        error: None,
    }
}
