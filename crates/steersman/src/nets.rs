//! States in Rust, on their way into a network: what panics is an outcome.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use steersman_machine::interaction::Choice;
use steersman_machine::nets::{Event, Net, NetView, RouteView, Router, Step};

/// Whatever the code of others does, a session's driver goes on.
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

/// As it is registered.
pub(crate) fn net(net: impl Net + 'static) -> Arc<dyn Net> {
    Arc::new(Caught(net))
}

/// As it is registered.
pub(crate) fn router(router: impl Router + 'static) -> Arc<dyn Router> {
    Arc::new(Caught(router))
}
