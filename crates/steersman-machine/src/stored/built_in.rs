//! The only list of the built-in tools. All code that reserves, offers, lowers or recognises their names uses it.

use crate::stored::interaction::Class;

/// Generates the enum, the list of all tools and the look-ups from one table: variant, name, the set under `tools:` that offers
/// the tool, its class, and its description. The set is `None` for tools that a router gives its members.
macro_rules! built_in {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $set:expr, $class:ident, $about:literal;)*) => {
        /// A built-in tool.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum BuiltIn {
            $($(#[$doc])* $variant,)*
        }

        impl BuiltIn {
            /// All built-in tools.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the name of the tool in calls and in `calls.NAME`. No definition may give this name to a tool of its own.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the set under `tools:` that offers this tool. `None` if a router offers it to its members.
            pub const fn set(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => $set,)*
                }
            }

            /// Returns the effect class of the tool. Tools that read or write documents and memories are not `pure`, because
            /// these may change at any time.
            pub const fn class(self) -> Class {
                match self {
                    $(Self::$variant => Class::$class,)*
                }
            }

            /// Returns the description that models see.
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $about,)*
                }
            }
        }
    };
}

built_in! {
    /// `finish(result)`: ends the task.
    Finish = "finish", Some("finish"), Pure,
        "End the task with this result.";
    /// `ask(question, options?)`: asks the user and waits for the answer.
    AskUser = "ask", Some("ask"), Pure,
        "Ask the user a question and wait for the answer.";
    /// `todo_add(text)`: adds an entry to the to-do list.
    TodoAdd = "todo_add", Some("todo"), Pure,
        "Add an item to the to-do list.";
    /// `todo_complete(id, result)`: marks an entry as done.
    TodoComplete = "todo_complete", Some("todo"), Pure,
        "Mark an item of the to-do list as done, with its result.";
    /// `todo_cancel(id, reason)`: marks an entry as cancelled.
    TodoCancel = "todo_cancel", Some("todo"), Pure,
        "Cancel an item of the to-do list, with the reason.";
    /// `todo_update(id, text)`: changes the text of an entry.
    TodoUpdate = "todo_update", Some("todo"), Pure,
        "Change the text of an item of the to-do list.";
    /// `fork(instructions)`: opens branches.
    Fork = "fork", Some("fork"), Pure,
        "Try several ways at once: one branch of yourself for each instruction. Gives their results.";
    /// `artifact_write(name, content, media_type?)`: writes a version of an artifact.
    ArtifactWrite = "artifact_write", Some("artifacts"), Pure,
        "Keep a text as a new version of an artifact: a report, code, data. The user sees it at once.";
    /// `artifact_read(name, version?, from?, lines?)`: reads lines of an artifact.
    ArtifactRead = "artifact_read", Some("artifacts"), Pure,
        "Read an artifact by its lines: 200 from the first, where nothing else is said.";
    /// `artifact_list()`: lists artifacts.
    ArtifactList = "artifact_list", Some("artifacts"), Pure,
        "List the artifacts: names, versions, media types, sizes, ratings, how they begin.";
    /// `artifact_search(query)`: searches artifacts.
    ArtifactSearch = "artifact_search", Some("artifacts"), Pure,
        "Find artifacts by words: the best first, with the lines that have them.";
    /// `artifact_rate(name, rating, reason?, version?)`: rates an artifact.
    ArtifactRate = "artifact_rate", Some("artifacts"), Pure,
        "Say how good an artifact is. What is rated well is found first.";
    /// `memory_save(name, content?, artifact?, tags?, replaces?)`: saves a memory, which may stand in the place of others.
    MemorySave = "memory_save", Some("memory"), Idempotent,
        "Remember something for later conversations: a text, or an artifact as it is now. One of the two. `replaces`: the numbers of memories that say the same, or what is no longer true; they are not found any more.";
    /// `memory_search(query?, most?)`: searches memories, or lists the newest.
    MemorySearch = "memory_search", Some("memory"), Read,
        "Find what earlier conversations remembered, by words: the best first.";
    /// `memory_read(id, from?, lines?)`: reads lines of a memory.
    MemoryRead = "memory_read", Some("memory"), Read,
        "Read all of a memory by its lines: 200 from the first, where nothing else is said.";
    /// `memory_rate(id, rating, reason?)`: rates a memory.
    MemoryRate = "memory_rate", Some("memory"), Idempotent,
        "Say how good a memory is. What is rated well is found first.";
    /// `notes_search(query, source?, most?)`: searches the full text of the transcript and of the agent's documents.
    NotesSearch = "notes_search", Some("notes"), Read,
        "Find passages of this conversation and of the attached documents by their words.";
    /// `done(result?)`: ends the task that a concierge gave the agent.
    Done = "done", None, Pure,
        "Say that the task is done, with what came of it.";
    /// `need_help(request)`: gives the floor back to the concierge.
    NeedHelp = "need_help", None, Pure,
        "Give the floor back: the user wants something else, or this is not yours to do.";
    /// `handoff(to, reason)`: passes the floor to another member.
    Handoff = "handoff", None, Pure,
        "Hand the conversation over to somebody else.";
}

impl BuiltIn {
    /// Returns the built-in tool of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tool| tool.name() == name)
    }

    /// Returns the tools of a set under `tools:`. Empty if there is no such set.
    pub fn of_set(set: &str) -> Vec<Self> {
        let all = Self::ALL.iter().copied();
        all.filter(|tool| tool.set() == Some(set)).collect()
    }

    /// Returns the names of all sets under `tools:`.
    pub fn sets() -> Vec<&'static str> {
        let mut sets: Vec<&'static str> = Self::ALL.iter().filter_map(|tool| tool.set()).collect();
        sets.dedup();
        sets
    }

    /// Returns true if the name is that of a built-in tool or set. A definition may not give it to anything else.
    pub fn reserves(name: &str) -> bool {
        let mut all = Self::ALL.iter();
        all.any(|tool| tool.name() == name || tool.set() == Some(name))
    }

    /// Returns true for the tools of the to-do list. Their calls do not count as work.
    pub(crate) fn takes_notes(self) -> bool {
        matches!(
            self,
            Self::TodoAdd | Self::TodoComplete | Self::TodoCancel | Self::TodoUpdate
        )
    }

    /// Returns true if a call of the tool ends the task or passes the floor.
    pub(crate) fn ends(self) -> bool {
        self == Self::Finish || self.passes_floor()
    }

    /// Returns true if a call of the tool ends the task for which the agent has the floor, or passes the floor to another
    /// agent.
    pub fn passes_floor(self) -> bool {
        matches!(self, Self::Done | Self::NeedHelp | Self::Handoff)
    }
}
