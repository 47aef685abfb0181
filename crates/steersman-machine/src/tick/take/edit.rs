//! Edits of state by a person.

use crate::stored::by::By;
use crate::stored::commit::{Admission, Admitted};
use crate::stored::outcome::NewWrite;
use crate::tick::Tick;
use crate::tick::effect::Until;
use crate::tick::take::Taken;

impl Tick<'_> {
    /// Takes a person's edit of state.
    pub(crate) fn take_edit(&mut self, writes: &[NewWrite], by: &By) -> Taken {
        let Some(writer) = self.snapshot.top() else {
            return Err(Until::refused("the session has not begun"));
        };
        if writes.is_empty() {
            return Err(Until::refused("there is nothing to edit"));
        }
        let writes = self.edits(writer, writes, by)?;
        self.admit(Admission {
            kind: Admitted::Edited,
            id: None,
            message: None,
            by: Some(by.clone()),
            body: None,
        });
        for write in writes {
            self.edit(write);
        }
        Ok(())
    }
}
