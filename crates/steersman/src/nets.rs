//! Wrappers around nets and routers in Rust: a panic becomes an outcome.

use serde_json::Value as Json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use steersman_machine::network::hooks::{At, Hook};
use steersman_machine::network::nets::{Event, Natives, Net, NetView, RouteView, Router, Step};
use steersman_machine::stored::commit::Moment;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::interaction::Choice;

/// Catches panics of a net or router, so that the session's driver continues.
pub(crate) struct Caught<T>(pub(crate) T);

impl<T: Net> Net for Caught<T> {
    fn version(&self) -> String {
        self.0.version()
    }

    fn next(&self, view: &NetView<'_>, event: &Event<'_>) -> Step {
        let next = catch_unwind(AssertUnwindSafe(|| self.0.next(view, event)));
        next.unwrap_or_else(|panic| Step::Fail(crate::tool::panic_message(panic)))
    }
}

impl<T: Router> Router for Caught<T> {
    fn version(&self) -> String {
        self.0.version()
    }

    fn route(&self, view: &RouteView<'_>) -> Result<Choice, String> {
        let chosen = catch_unwind(AssertUnwindSafe(|| self.0.route(view)));
        chosen.unwrap_or_else(|panic| Err(crate::tool::panic_message(panic)))
    }
}

/// Wraps a net for registration.
pub(crate) fn net(net: impl Net + 'static) -> Arc<dyn Net> {
    Arc::new(Caught(net))
}

/// Wraps a router for registration.
pub(crate) fn router(router: impl Router + 'static) -> Arc<dyn Router> {
    Arc::new(Caught(router))
}

/// A closure with a version, as a router.
pub(crate) struct Closure<F> {
    pub(crate) version: String,
    pub(crate) route: F,
}

impl<F> Router for Closure<F>
where
    F: Fn(&RouteView<'_>) -> Result<Choice, String> + Send + Sync,
{
    fn version(&self) -> String {
        self.version.clone()
    }

    fn route(&self, view: &RouteView<'_>) -> Result<Choice, String> {
        (self.route)(view)
    }
}

/// Faults found by asking the same question twice.
pub(crate) type Found = Arc<Mutex<Vec<String>>>;

/// Asks everything twice over the same view, and records where the answers differ.
struct Twice<T: ?Sized> {
    name: Name,
    inner: Arc<T>,
    found: Found,
}

impl<T: ?Sized> Twice<T> {
    fn compare<A: PartialEq + std::fmt::Debug>(&self, what: &str, first: A, second: &A) -> A {
        if first != *second {
            let fault = format!(
                "the {what} `{}` is not pure: over the same view it answered {first:?}, then {second:?}",
                self.name
            );
            let mut found = self
                .found
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            found.push(fault);
        }
        first
    }
}

impl Router for Twice<dyn Router> {
    fn version(&self) -> String {
        self.inner.version()
    }

    fn route(&self, view: &RouteView<'_>) -> Result<Choice, String> {
        let (first, second) = (self.inner.route(view), self.inner.route(view));
        self.compare("router of", first, &second)
    }
}

impl Net for Twice<dyn Net> {
    fn version(&self) -> String {
        self.inner.version()
    }

    fn next(&self, view: &NetView<'_>, event: &Event<'_>) -> Step {
        let (first, second) = (self.inner.next(view, event), self.inner.next(view, event));
        self.compare("net", first, &second)
    }
}

impl Hook for Twice<dyn Hook> {
    fn version(&self) -> String {
        self.inner.version()
    }

    fn moments(&self) -> &[Moment] {
        self.inner.moments()
    }

    fn run(&self, at: &At, timeout: u64, value: Json) -> Result<Json, String> {
        let first = self.inner.run(at, timeout, value.clone());
        let second = self.inner.run(at, timeout, value);
        self.compare("hook", first, &second)
    }
}

/// Wraps all nets, routers and hooks so that each is asked twice.
pub(crate) fn twice(natives: &Natives, found: &Found) -> Natives {
    fn each<T: ?Sized>(name: &Name, inner: &Arc<T>, found: &Found) -> (Name, Arc<Twice<T>>) {
        let twice = Twice {
            name: name.clone(),
            inner: inner.clone(),
            found: found.clone(),
        };
        (name.clone(), Arc::new(twice))
    }
    let mut out = Natives::default();
    for (name, net) in &natives.nets {
        let (name, net) = each(name, net, found);
        out.nets.insert(name, net);
    }
    for (name, router) in &natives.routers {
        let (name, router) = each(name, router, found);
        out.routers.insert(name, router);
    }
    for (name, hook) in &natives.hooks {
        let (name, hook) = each(name, hook, found);
        out.hooks.insert(name, hook);
    }
    out
}
