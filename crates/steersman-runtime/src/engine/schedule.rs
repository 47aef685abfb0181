//! Schedules: puts those of a network into the store, and begins the sessions that are due.

use crate::engine::{Engine, EngineError, StartOptions, natives};
use crate::inbox::Occasion;
use crate::store::{Schedule, ScheduleId, SessionId, StoreCode, StoreError, bounds, session_id};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_definition::schedule::{between, last, next};
use steersman_machine::network::Network;
use steersman_machine::network::schedule::ScheduleDef;
use steersman_machine::stored::ids::{Digest, Name, Time, hex, unhex};
use steersman_machine::values::expression::Names;
use steersman_machine::view::moment;

/// Maximum number of due schedules that are read in one step.
const DUE: usize = 1_024;

/// Time after which a session that could not begin is tried again, in milliseconds.
const AGAIN: u64 = 60_000;

/// Data that a process needs to begin the sessions of a schedule. It is stored as a blob; its hash is the digest of the schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Hash of the definition's stored source, in hexadecimal digits.
    pub source: String,
    /// Folder of the definition.
    pub folder: Option<String>,
    /// File of the definition in that folder, if it is not `steersman.yaml`.
    pub file: Option<String>,
    /// The rule of its times, as definitions write it.
    pub rule: String,
    /// The time zone.
    pub timezone: String,
}

/// A session that a schedule began.
pub(crate) struct Begun {
    pub(crate) session: SessionId,
    pub(crate) occasion: Occasion,
}

/// The schedules that one process looks after.
#[derive(Default)]
pub(crate) struct Watch {
    /// Schedules whose session could not begin, with the time of the next try.
    failed: BTreeMap<ScheduleId, Time>,
}

impl Watch {
    /// Begins the sessions that are due. Returns the next time at which one may be due.
    pub(crate) async fn look(
        &mut self,
        engine: &Engine,
        told: impl Fn(ScheduleId, Result<Begun, EngineError>),
    ) -> Result<Option<Time>, EngineError> {
        let now = engine.clock().now();
        let mut soonest: Option<Time> = None;
        let found = engine.store().schedules(Some(Time(i64::MAX)), DUE).await?;
        for schedule in found {
            let Some(at) = schedule.next else { continue };
            let again = self.failed.get(&schedule.id).copied();
            let at = again.map_or(at, |again| again.max(at));
            if at > now {
                soonest = Some(soonest.map_or(at, |soonest| soonest.min(at)));
                continue;
            }
            self.failed.remove(&schedule.id);
            match engine.begin_due(&schedule, now).await {
                Ok(Some(begun)) => told(schedule.id, Ok(begun)),
                Ok(None) => {}
                Err(EngineError::Store(error @ StoreError::Io { .. })) => return Err(error.into()),
                Err(error) => {
                    self.failed.insert(schedule.id.clone(), now.plus(AGAIN));
                    told(schedule.id, Err(error));
                }
            }
        }
        Ok(soonest)
    }
}

impl Engine {
    /// Puts the schedules of a network into the store, in place of those that it had there, and returns them. A schedule whose
    /// times are the same goes on; any other one begins with its next time after now.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn schedule(
        &self,
        network: &Arc<Network>,
        folder: Option<String>,
        file: Option<String>,
    ) -> Result<Vec<Schedule>, EngineError> {
        self.register(network);
        let store = self.store();
        let source: Arc<[u8]> = network.source.as_bytes().into();
        let source_hash = *blake3::hash(&source).as_bytes();
        store.put_blob(source_hash, source).await?;
        self.remember((source_hash, None), network.clone());
        let before = self.schedules_of(&network.name).await?;
        for old in &before {
            if !network.schedules.contains_key(&old.id.name) {
                store.drop_schedule(&old.id).await?;
            }
        }
        let mut kept = Vec::new();
        for (name, def) in &network.schedules {
            let id = ScheduleId {
                tenant: "".into(),
                network: network.name.clone(),
                name: name.clone(),
            };
            bounds::schedule(&id)?;
            let plan = Plan {
                source: hex(&source_hash),
                folder: folder.clone(),
                file: file.clone(),
                rule: def.times.rule.to_string(),
                timezone: def.times.timezone.clone(),
            };
            let bytes: Arc<[u8]> = serde_json::to_vec(&plan).expect("a plan is JSON").into();
            let digest = *blake3::hash(&bytes).as_bytes();
            store.put_blob(digest, bytes).await?;
            let old = before.iter().find(|old| old.id == id);
            let goes_on = match old {
                Some(old) => self
                    .plan(old)
                    .await?
                    .is_some_and(|old| (&old.rule, &old.timezone) == (&plan.rule, &plan.timezone)),
                None => false,
            };
            let (last, missed) = old.map_or((None, 0), |old| (old.last, old.missed));
            let first = || next(&def.times, self.clock().now());
            let schedule = Schedule {
                id,
                digest,
                next: old.filter(|_| goes_on).map_or_else(first, |old| old.next),
                last,
                missed,
            };
            store.put_schedule(schedule.clone()).await?;
            kept.push(schedule);
        }
        Ok(kept)
    }

    /// Deletes the schedules of a network from the store. Its sessions go on. Returns their number.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn unschedule(&self, network: &str) -> Result<usize, EngineError> {
        let mut dropped = 0;
        for schedule in self.schedules_of(network).await? {
            dropped += usize::from(self.store().drop_schedule(&schedule.id).await?);
        }
        Ok(dropped)
    }

    /// Returns what the store knows of a schedule in addition. `None` if a newer version of this program put it there.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn plan(&self, schedule: &Schedule) -> Result<Option<Plan>, EngineError> {
        let bytes = self.store().blob(&schedule.digest).await?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    async fn schedules_of(&self, network: &str) -> Result<Vec<Schedule>, EngineError> {
        let mut all = self.store().schedules(None, usize::MAX).await?;
        all.retain(|schedule| schedule.id.tenant.is_empty() && *schedule.id.network == *network);
        Ok(all)
    }

    /// Begins the session of the last occurrence that is due, and moves the schedule on. Earlier ones are missed. Returns `None` if
    /// another process did it, or this one lacks what the network needs.
    async fn begin_due(
        &self,
        schedule: &Schedule,
        now: Time,
    ) -> Result<Option<Begun>, EngineError> {
        let Some(first) = schedule.next else {
            return Ok(None);
        };
        let id = &schedule.id;
        let unfit = |why: &str| {
            let ScheduleId { network, name, .. } = id;
            EngineError::Refused(format!("schedule `{name}` of `{network}`: {why}"))
        };
        let plan = self.plan(schedule).await?;
        let plan = plan.ok_or_else(|| unfit("this version cannot read it"))?;
        let source = unhex(&plan.source).and_then(|hash| hash.try_into().ok());
        let source = source.ok_or_else(|| unfit("its definition has no hash"))?;
        let network = self.bound_network(&"".into(), &source, None).await;
        let network = network.map_err(|error| match error {
            EngineError::Definition { why, .. } => unfit(&why),
            other => other,
        })?;
        if !self.can(&natives::needs(&network)) {
            return Ok(None);
        }
        let def = network.schedules.get(&id.name);
        let def = def.ok_or_else(|| unfit("its definition has no such schedule"))?;
        let due = last(&def.times, now).unwrap_or(first).max(first);
        let missed = between(&def.times, first, due);
        // The process that moves it first counts what was missed.
        if due > first
            && !self
                .store()
                .move_schedule(id, first, Some(due), missed)
                .await?
        {
            return Ok(None);
        }
        let occasion = Occasion {
            schedule: id.name.clone(),
            due,
            missed: u32::try_from(missed).unwrap_or(u32::MAX),
        };
        let options = options(id, def, &plan, &occasion).map_err(|why| unfit(&why))?;
        let begun = match self.create(network.clone(), options).await {
            Ok(session) => Some(Begun { session, occasion }),
            // The id of a session follows from its occurrence.
            Err(EngineError::Store(StoreError::Conflict(_))) => None,
            Err(error) => return Err(error),
        };
        self.store()
            .move_schedule(id, due, next(&def.times, due), 0)
            .await?;
        Ok(begun)
    }
}

/// Returns the options of the session of an occurrence. The error says why it has none.
fn options(
    id: &ScheduleId,
    def: &ScheduleDef,
    plan: &Plan,
    occasion: &Occasion,
) -> Result<StartOptions, String> {
    let mut schedule = moment(occasion.due, &def.times.timezone);
    schedule["name"] = (*id.name).into();
    schedule["missed"] = occasion.missed.into();
    let names = Names::from_json(json!({ "schedule": schedule }));
    let mut args = Map::new();
    for (parameter, data) in &def.start.args {
        let value = data.eval(&names).map_err(|error| error.to_string())?;
        args.insert(parameter.to_string(), value);
    }
    let say = def.start.message.as_ref();
    let say = say.map(|message| message.render(&names)).transpose();
    let ScheduleId {
        tenant,
        network,
        name,
    } = id;
    let known = format!("schedule\0{tenant}\0{network}\0{name}\0{}", occasion.due.0);
    let digest = Digest::of(known.as_bytes());
    let bytes = digest.0.first_chunk().expect("a digest has 16 bytes");
    Ok(StartOptions {
        id: Some(session_id(StoreCode::ALONE, bytes)),
        message_id: Some(Name::from(format!(
            "{network} schedule {name} {}",
            occasion.due.0
        ))),
        agent: def.start.agent.clone(),
        args: (!args.is_empty()).then_some(Json::Object(args)),
        say: say.map_err(|error| error.to_string())?,
        folder: plan.folder.clone(),
        file: plan.file.clone(),
        occasion: Some(occasion.clone()),
        ..StartOptions::default()
    })
}
