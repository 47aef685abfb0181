//! State: checks of writes against their types, the scope of a write, and its recorded form.

use crate::network::AgentDef;
use crate::stored::bounds::{self, VALUE, VALUES};
use crate::stored::by::By;
use crate::stored::ids::{Id, Name};
use crate::stored::interaction::{Reduce, Write};
use crate::stored::outcome::NewWrite;
use crate::tick::Tick;
use crate::tick::effect::Until;
use crate::values::near::near;
use crate::values::types::{Expiry, Misfit, Type, TypeKind, in_clear, misfit};
use crate::view::mapping::{TOO_DEEP, reduced_misfit};
use crate::view::{declares, is_secret, rating};
use serde_json::Value as Json;

/// Maximum number of characters of a value that a message shows.
const SHOWN: usize = 60;

/// A write that fits. Its value is not among the line's texts yet.
struct Fits<'a> {
    scope: Id,
    name: Name,
    value: Option<(&'a Json, String)>,
    reduce: Reduce,
    expires: Option<u64>,
}

impl Tick<'_> {
    /// Returns the writes in their recorded form, with their values among this line's texts, or the first misfit. Writes that
    /// fitted when they were mapped are checked again, because the writer's state may have changed since.
    pub(crate) fn writes(&mut self, writer: Id, new: &[NewWrite]) -> Result<Vec<Write>, Misfit> {
        let (fit, bytes) = self.all_fit(writer, new)?;
        self.texts.count_values(bytes);
        let write = |fits: Fits<'_>| Write {
            scope: fits.scope,
            name: fits.name,
            value: fits.value.map(|(_, text)| self.body(text)),
            reduce: fits.reduce,
            expires: fits.expires,
        };
        Ok(fit.into_iter().map(write).collect())
    }

    /// Checks that these writes fit together. Returns the first misfit otherwise.
    pub(crate) fn may_write(&self, writer: Id, new: &[NewWrite]) -> Result<(), Misfit> {
        self.all_fit(writer, new).map(|_| ())
    }

    /// Returns the writes that fit, and the bytes of their values.
    fn all_fit<'w>(
        &self,
        writer: Id,
        new: &'w [NewWrite],
    ) -> Result<(Vec<Fits<'w>>, usize), Misfit> {
        let mut fit: Vec<Fits<'w>> = Vec::with_capacity(new.len());
        let mut bytes = 0;
        for write in new {
            let path = format!("state.{}", write.name);
            let found = self.fits(writer, write, &fit);
            let found = found.map_err(|misfit| misfit.under(&path))?;
            bytes += found.value.as_ref().map_or(0, |(_, text)| text.len());
            if !self.texts.have_room(bytes) {
                let why = format!("and what else is written have over {} KiB", VALUES >> 10);
                return Err(Misfit { path, why });
            }
            fit.push(found);
        }
        Ok((fit, bytes))
    }

    /// Checks one write. `earlier` are the writes before it that take effect together with it.
    fn fits<'w>(
        &self,
        writer: Id,
        write: &'w NewWrite,
        earlier: &[Fits<'w>],
    ) -> Result<Fits<'w>, Misfit> {
        if rating::is_rating(&write.name) {
            return self.rating_fits(write);
        }
        let Some((scope, ty)) = declares(&self.cx(), &self.snapshot, writer, &write.name) else {
            return Err(Misfit::new("is not declared here"));
        };
        let name = Name::from(&*write.name);
        let value = write.value.as_ref().filter(|v| !v.is_null());
        let found = match value {
            Some(value) => reduced_misfit(ty, value),
            None => misfit(ty, &Json::Null),
        };
        if let Some(found) = found {
            return Err(found);
        }
        let value = match value {
            None => None,
            Some(value) if bounds::is_too_deep(value) => {
                return Err(Misfit::new(TOO_DEEP));
            }
            Some(value) => Some((value, value.to_string())),
        };
        if let Some((value, text)) = &value {
            if text.len() > VALUE {
                return Err(Misfit::new(format!("has more than {} KiB", VALUE >> 10)));
            }
            let earlier = earlier
                .iter()
                .filter(|f| f.scope == scope && f.name == name);
            let earlier = earlier.filter_map(|f| Some(f.value.as_ref()?.0));
            let waiting = self.snapshot.waiting_for(scope, &name).map(|v| &*v.0);
            let stored = self.snapshot.cell(scope, &name).map(|cell| &*cell.value.0);
            let others: Vec<&Json> = stored.into_iter().chain(waiting).chain(earlier).collect();
            joined_fits(ty, value, &others).map_err(Misfit::new)?;
        }
        Ok(Fits {
            scope,
            name,
            value,
            reduce: ty.reduce,
            expires: match ty.expires {
                Some(Expiry::After(span)) => Some(span),
                Some(Expiry::Answer) | None => None,
            },
        })
    }

    /// Checks a rating, which is a write to an undeclared entry.
    fn rating_fits<'w>(&self, write: &'w NewWrite) -> Result<Fits<'w>, Misfit> {
        let value = write.value.as_ref().filter(|v| !v.is_null());
        let (scope, name) = rating::place(&self.snapshot, &write.name, value)?;
        let value = value.map(|value| (value, value.to_string()));
        if value.as_ref().is_some_and(|(_, text)| text.len() > VALUE) {
            return Err(Misfit::new(format!("has more than {} KiB", VALUE >> 10)));
        }
        Ok(Fits {
            scope,
            name,
            value,
            reduce: Reduce::Last,
            expires: None,
        })
    }

    /// Returns the defaults of the state that an agent declares, as writes into its own scope.
    pub(crate) fn defaults(&mut self, scope: Id, def: &AgentDef) -> Vec<Write> {
        let mut writes = Vec::new();
        for (name, ty) in &def.state {
            if let Some(default) = &ty.default {
                writes.push(Write {
                    scope,
                    name: name.clone(),
                    value: Some(self.texts.default_of(&def.name, name, default)),
                    reduce: Reduce::Last,
                    // A default never expires; it replaces a value that expired.
                    expires: None,
                });
            }
        }
        writes
    }

    /// Returns the writes that end the entries of an agent's own scope that last for one answer: each gets its default again, or
    /// is unset.
    pub(crate) fn of_answer(&mut self, scope: Id, def: &AgentDef) -> Vec<Write> {
        let mut writes = Vec::new();
        for (name, ty) in &def.state {
            if ty.expires != Some(Expiry::Answer) {
                continue;
            }
            let now = self.snapshot.cell(scope, name).map(|cell| &*cell.value.0);
            if now == ty.default.as_ref() {
                continue;
            }
            let default = ty.default.as_ref();
            writes.push(Write {
                scope,
                name: name.clone(),
                value: default.map(|default| self.texts.default_of(&def.name, name, default)),
                reduce: Reduce::Last,
                expires: None,
            });
        }
        writes
    }

    /// Returns the writes of a person's edit, checked against the declared types and the people who may edit.
    pub(crate) fn edits(
        &mut self,
        writer: Id,
        writes: &[NewWrite],
        by: &By,
    ) -> Result<Vec<Write>, Until> {
        let refused = |why: String| Until::Refused(why.into());
        for write in writes {
            let may = self.may_edit(writer, &write.name, by);
            may.map_err(refused)?;
            let declared = declares(&self.cx(), &self.snapshot, writer, &write.name);
            let clear = write.value.as_ref().zip(declared);
            let clear = clear.and_then(|(value, (_, ty))| in_clear(ty, value));
            if let Some(misfit) = clear {
                let place = format!("state.{}", write.name);
                return Err(refused(misfit.under(&place).to_string()));
            }
        }
        let fit = self.writes(writer, writes);
        fit.map_err(|misfit| refused(self.edit_unfit(writer, writes, &misfit)))
    }

    /// Checks that a person may edit an entry: it names nobody under `by`, or this role. Otherwise returns why not.
    fn may_edit(&self, writer: Id, name: &str, by: &By) -> Result<(), String> {
        if rating::is_rating(name) {
            return Ok(());
        }
        let Some((_, ty)) = declares(&self.cx(), &self.snapshot, writer, name) else {
            let names = self.view(writer).state_names();
            let near = near(name, names.iter().map(|name| &**name));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let all = match &names[..] {
                [] => "the session has no state".to_owned(),
                names => format!("there is: {}", names.join(", ")),
            };
            return Err(format!("state has no entry `{name}`{near} ({all})"));
        };
        let roles = ty.by.iter().map(|name| {
            let person = self.network.people.get(name);
            person.map_or(name, |person| &person.role)
        });
        if ty.by.is_empty() || roles.clone().any(|role| *role == by.role) {
            return Ok(());
        }
        let roles: Vec<String> = roles.map(|role| format!("`{role}`")).collect();
        Err(format!(
            "only {} may edit `state.{name}`, not `{}`: `by` of the entry names who may",
            roles.join(" or "),
            by.role
        ))
    }

    /// Returns why a write of a person does not fit: the entry, the value, and what the entry takes.
    fn edit_unfit(&self, writer: Id, writes: &[NewWrite], misfit: &Misfit) -> String {
        let found = writes.iter().find_map(|write| {
            let rest = misfit.path.strip_prefix("state.")?;
            let rest = rest.strip_prefix(&*write.name)?;
            (rest.is_empty() || rest.starts_with(['.', '['])).then_some((write, rest))
        });
        let Some((write, rest)) = found else {
            return misfit.to_string();
        };
        let name = &write.name;
        let declared = declares(&self.cx(), &self.snapshot, writer, name).map(|(_, ty)| ty);
        let value = write.value.as_ref().unwrap_or(&Json::Null);
        let shown = match value {
            _ if declared.is_some_and(is_secret) => "that".to_owned(),
            Json::Null => "none".to_owned(),
            value => bounds::beginning(&value.to_string(), SHOWN).into_owned(),
        };
        let part = match rest {
            "" => "it".to_owned(),
            rest => format!("`state.{name}{rest}`"),
        };
        let takes_text = |ty: &Type| matches!(ty.kind, TypeKind::String { .. });
        let is_plain = value.is_number() || value.is_boolean();
        let fix = if declared.is_some_and(takes_text) && is_plain {
            format!("; as text it is \"{shown}\"")
        } else {
            String::new()
        };
        format!(
            "`state.{name}` cannot be {shown}: {part} {}{fix}",
            misfit.why
        )
    }

    /// Returns the writes that reset an instance's scope: entries with a default get it, all others are unset.
    pub(crate) fn fresh(&mut self, scope: Id, def: &AgentDef) -> Vec<Write> {
        let mut writes = self.defaults(scope, def);
        for (name, ty) in &def.state {
            if ty.default.is_none() && self.snapshot.cell(scope, name).is_some() {
                writes.push(Write {
                    scope,
                    name: name.clone(),
                    value: None,
                    reduce: Reduce::Last,
                    expires: None,
                });
            }
        }
        writes
    }
}

/// Checks that a value may be joined with `others`: the stored value, values that wait until their exchange closes, and values
/// written together with it. The order in which they are joined is not known yet, so all of them must fit together.
fn joined_fits(ty: &Type, value: &Json, others: &[&Json]) -> Result<(), String> {
    let all = || others.iter().copied().chain([value]);
    match ty.reduce {
        Reduce::Last | Reduce::Max => Ok(()),
        Reduce::Append | Reduce::Merge => {
            // The 2 bytes are the brackets of a list around one element.
            let bytes: usize = all().map(|value| bounds::size(value) + 2).sum();
            if !others.is_empty() && bytes > VALUE {
                return Err(format!("would have more than {} KiB", VALUE >> 10));
            }
            Ok(())
        }
        Reduce::Sum => {
            let whole = all().filter_map(Json::as_number);
            let whole = whole
                .filter_map(serde_json::Number::as_i128)
                .map(i128::unsigned_abs);
            let fraction: f64 = all().filter_map(Json::as_f64).map(f64::abs).sum();
            // A single number that is too large is not a sum yet, but the next write would make it one.
            if whole.sum::<u128>() > i64::MAX as u128 || !fraction.is_finite() {
                return Err("would be larger than a number can be".to_owned());
            }
            Ok(())
        }
    }
}
