//! Codes of results and ends that the engine itself reads.

/// Code of a result whose arguments or writes did not fit a type. A refusal with this code counts as a correction.
pub const MISFIT: &str = "misfit";

/// Code of a call that a limit keeps from running.
pub const LIMIT: &str = "limit";

/// The judge has no objection.
pub const ACCEPT: &str = "accept";

/// The subject must be revised; the text says how.
pub const REVISE: &str = "revise";

/// A judgement or a decision of a model could not be used. A draft or result is then accepted.
pub(crate) const UNUSABLE: &str = "unusable";

/// The subject was sent back as often as allowed.
pub const ROUNDS: &str = "rounds";
