//! The one list of the tools that come with the engine. Names are reserved, offered, lowered and recognised by it.

/// Makes the type, the list of all and the look-ups from one table: variant, name, and the set under `tools:` that offers
/// it (none for what a router gives its members).
macro_rules! built_in {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $set:expr;)*) => {
        /// Tools that come with the engine.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum BuiltIn {
            $($(#[$doc])* $variant,)*
        }

        impl BuiltIn {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name under which calls and `calls.NAME` know it. No definition may give it to a tool of its own.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The word under `tools:` that offers it, alone or with others; none where a router offers it.
            pub const fn set(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => $set,)*
                }
            }
        }
    };
}

built_in! {
    /// `finish(result)`.
    Finish = "finish", Some("finish");
    /// `ask(question, options?)`: asks `user`.
    AskUser = "ask", Some("ask");
    /// `todo_add(text)`.
    TodoAdd = "todo_add", Some("todo");
    /// `todo_complete(id, result)`.
    TodoComplete = "todo_complete", Some("todo");
    /// `todo_cancel(id, reason)`.
    TodoCancel = "todo_cancel", Some("todo");
    /// `todo_update(id, text)`.
    TodoUpdate = "todo_update", Some("todo");
    /// `fork(instructions)`.
    Fork = "fork", Some("fork");
    /// `artifact_write(name, content, media_type?)`.
    ArtifactWrite = "artifact_write", Some("artifacts");
    /// `artifact_read(name, version?, from?, lines?)`.
    ArtifactRead = "artifact_read", Some("artifacts");
    /// `artifact_list()`.
    ArtifactList = "artifact_list", Some("artifacts");
    /// `artifact_search(query)`.
    ArtifactSearch = "artifact_search", Some("artifacts");
    /// `artifact_rate(name, rating, reason?, version?)`.
    ArtifactRate = "artifact_rate", Some("artifacts");
    /// `memory_save(name, content?, artifact?, tags?)`.
    MemorySave = "memory_save", Some("memory");
    /// `memory_search(query, most?)`.
    MemorySearch = "memory_search", Some("memory");
    /// `memory_read(id, from?, lines?)`.
    MemoryRead = "memory_read", Some("memory");
    /// `memory_rate(id, rating, reason?)`.
    MemoryRate = "memory_rate", Some("memory");
    /// `notes_search(query, source?, most?)`: full text over the transcript and the agent's documents.
    NotesSearch = "notes_search", Some("notes");
    /// `done(result?)`: the task of a desk is done.
    Done = "done", None;
    /// `need_help(request)`: gives the floor of a desk back.
    NeedHelp = "need_help", None;
    /// `handoff(to, reason)`: passes the floor on.
    Handoff = "handoff", None;
}

impl BuiltIn {
    /// The built-in tool of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tool| tool.name() == name)
    }

    /// The tools that a word under `tools:` stands for; none where it is no such word.
    pub fn of_set(set: &str) -> Vec<Self> {
        let all = Self::ALL.iter().copied();
        all.filter(|tool| tool.set() == Some(set)).collect()
    }

    /// The words under `tools:` that stand for built-in tools.
    pub fn sets() -> Vec<&'static str> {
        let mut sets: Vec<&'static str> = Self::ALL.iter().filter_map(|tool| tool.set()).collect();
        sets.dedup();
        sets
    }

    /// Whether a name is that of a built-in tool or set, so that nothing else in a definition may have it.
    pub fn reserves(name: &str) -> bool {
        let mut all = Self::ALL.iter();
        all.any(|tool| tool.name() == name || tool.set() == Some(name))
    }

    /// Whether it takes down what is to be done: its calls are notes, and not what was done.
    pub(crate) fn takes_notes(self) -> bool {
        matches!(
            self,
            Self::TodoAdd | Self::TodoComplete | Self::TodoCancel | Self::TodoUpdate
        )
    }

    /// Whether it ends the task or passes the floor on.
    pub(crate) fn ends(self) -> bool {
        self == Self::Finish || self.passes_floor()
    }

    /// Whether it ends what the floor was given for, or gives the floor to somebody else.
    pub fn passes_floor(self) -> bool {
        matches!(self, Self::Done | Self::NeedHelp | Self::Handoff)
    }
}
