//! Keys of the file, its values and events.

use super::agent::{Agent, Context, Limits};
use super::kinds::{
    Any, Data, Expr, Few, Flag, List, Long, Many, Map, Millis, Money, Name, Names, Or, Path, Rate,
    Real, Size, Template, Text, Type, Whole, Word, Words, each, words,
};
use super::section;
use super::test::{Grade, Test};
use super::tool::{Render, Tool};
use crate::hosted::PROVIDERS;
use crate::source::Key;
use steersman_machine::network::budget::{OnSpent, Per};
use steersman_machine::network::{
    AUTO, CallStyle, FileKind, LOCAL, ModelRetry as Retry, Provider, SCRIPTED,
};
use steersman_machine::stored::bounds::SHOWN_FILE;
use steersman_machine::stored::interaction::Class;

words! {
    /// Data that is stored in addition to the log.
    enum Recorded: Raw = "raw", Requests = "requests";
    /// Type of a config value.
    enum Plain: String = "string", Integer = "integer", Number = "number", Boolean = "boolean";
    /// Class of the tools of a server.
    enum ServerClass: Pure = "pure", Read = "read", Idempotent = "idempotent", Unsafe = "unsafe", Annotations = "annotations";
    /// The calls that a budget counts.
    enum Counted: Network = "network", Key = "key";
    /// The one who signs in at a server.
    enum SignsIn: Person = "person", Program = "program";
    /// Handling of a changed list of tools.
    enum Refresh: Pinned = "pinned", Follow = "follow";
}

/// A word for a provider.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProviderWord(&'static str);

impl Words for ProviderWord {
    const WORDS: &'static [(&'static str, bool)] = PROVIDERS;
    fn of(word: &str) -> Option<Self> {
        let mut built = Self::WORDS.iter().filter(|(_, built)| *built);
        built
            .find(|(known, _)| *known == word)
            .map(|(known, _)| Self(known))
    }
    fn word(self) -> &'static str {
        self.0
    }
}

impl ProviderWord {
    /// Returns the provider that the word means.
    pub(crate) fn provider(self) -> Provider {
        match self.0 {
            AUTO => Provider::Auto,
            LOCAL => Provider::Local,
            SCRIPTED => Provider::Scripted,
            name => Provider::Named(name.into()),
        }
    }
}

words! {
    Per: Hour = "hour", Day = "day", Week = "week", Month = "month";
    OnSpent: Wait = "wait", Fail = "fail";
    FileKind: Image = "image", Pdf = "pdf";
    CallStyle: Auto = "auto", Native = "native", Structured = "structured", Text = "text";
}

section! {
    /// A definition.
    File<'a>: "File", "a definition" {
        steersman: Whole<'a, 0> | "1", "Version of the format: 1.";
        name: Text<'a> | "file or folder name", "Name of the network.";
        description: Text<'a>, "One line for lists.";
        import: List<'a, Path<'a>>, "Other files of this format, merged into this one.";
        timezone: Text<'a> = "UTC".to_owned(), "Zone of `now`, of `until` and of dates.";
        config: Names<'a, Config<'a>>, "Plain values, `config.NAME`.", declares Config;
        secrets: Names<'a, Secret<'a>>, "Handles, usable in transport fields only.", declares Secret;
        models: Names<'a, Model<'a>> | "default: auto", "Models by name.", declares Model;
        embeddings: Name<'a> | "full text alone",
            "A model of `models`, by whose `/v1/embeddings` passages are found: those of `knowledge`, `notes` and `relevant`.", names Model;
        memory: Memory<'a> | "the network's name, for ever",
            "Whose memory the built-in set `memory` saves to and searches: a scope, or a scope and how long.";
        state: Names<'a, Type<'a>>, "Shared data of the entry agent's instance.", declares State;
        events: Names<'a, Event<'a>>, "Messages from outside that are not chat.", declares Event;
        schedules: Names<'a, Schedule<'a>>, "Times at which sessions begin, once `steersman schedule` has put them into the store.";
        sessions: Sessions<'a>, "How long the sessions are kept.";
        budgets: Names<'a, Budget<'a>>, "What the model calls of several sessions may use together in a period.";
        labels: Map<'a, Template<'a>>, "What a session is found by, over `state`, `answer`, and `args` if every session begins with the same agent: an event gives them by `start: { args: .. }`.";
        outcome: Map<'a, Expr<'a>>, "What a session came to, as named values; over the same names as `labels`.", declares Outcome;
        mcp: Names<'a, Mcp<'a>>, "MCP servers; their tools are called `SERVER.TOOL` here.", declares Server;
        tools: Names<'a, Tool<'a>>, "Tools.", declares Tool;
        agents: Names<'a, Agent<'a>> | "required", "Agents.", declares Agent;
        hooks: Names<'a, Hook<'a>>, "Hooks in Rust around the life of agents, asked in this order.";
        entry: Many<'a, Name<'a>> | "the only agent that no other names", "Who gets the first message.", names Agent;
        limits: Limits<'a> | "see Limits", "For the whole session.";
        context: Context<'a>, "Default for all model-driven agents.";
        record: List<'a, Word<'a, Recorded>> = Vec::new(), "Reserved: answers of tools as they came; rendered requests. Nothing is kept yet.";
        texts: Or<Path<'a>, Map<'a, Or<Template<'a>, Map<'a, Template<'a>>>>> | "built in, English",
            "The engine's own sentences, by key; each a text, or texts by `state.language`; or a file of them. The keys stand under Sentences.";
        tests: Map<'a, Test<'a>>, "Offline tests; never part of the digest.";
        grades: Map<'a, Grade<'a>>, "What `--grade` measures; never part of the digest.";
    }

    /// A hook.
    Hook<'a>: "Hook", "a hook"; ordered {
        native: Or<Whole<'a, 0>, Text<'a>>, required "In Rust, registered under this name; its version.";
        agents: Many<'a, Name<'a>> | "all", "Around whose life.", names Agent;
        timeout: Millis<'a> = 1_000, "At one moment.";
    }

    /// A memory.
    Memory<'a>: "Memory", "a memory", short [Long<Self>, Template<'a>] scope {
        scope: Template<'a> | "the network's name",
            "Sessions with the same scope share what they remember: text and `{{ .. }}`, seen from the entry. Where a value is unset, nothing is saved or found.";
        keep: Millis<'a> | "for ever", "How long what is saved is kept.";
    }

    /// A config value.
    Config<'a>: "Config", "a config value", short [Long<Self>, Any<'a>] default {
        ty as "type": Word<'a, Plain> | "string, or the type of `default`",
            "What it is; a value of the environment is read as this.";
        env: Text<'a>, "Environment variable.";
        default: Any<'a>, "Used when the variable is unset; without it the variable is required.";
        live: Flag<'a> = false, "Read at each use in a transport field, outside the digest.";
        clients: Flag<'a> = false, "Clients of the server may set it. Otherwise only who runs the program may.";
    }

    /// A secret.
    Secret<'a>: "Secret", "a secret" {
        env: Text<'a>, "Environment variable.";
        file: Text<'a>, "Content of a file, last newline cut.";
        optional: Flag<'a> = false, "Unset renders as an absent header or field.";
    }
    exactly one of &["env", "file"];

    /// A model.
    Model<'a>: "Model", "a model", short [Long<Self>, Word<'a, ProviderWord>] provider {
        provider: Word<'a, ProviderWord> = ProviderWord(AUTO), "Wire and place.";
        model: Template<'a>, "Name at the provider; a template over `config`.";
        url: Template<'a> | "the provider's", "Base address.";
        key: Template<'a> | "by provider", "A secret.";
        temperature: Real<'a> | "the provider's", "Sampling temperature.";
        max_tokens: Whole<'a, 1> | "the provider's", "Longest answer.";
        window: Whole<'a, 1> | "as known of the model",
            "Tokens that a request and its answer may have together. At 70 % of it contexts are compacted.";
        params: Map<'a, Any<'a>>, "Sent as they are.";
        fallback: List<'a, Name<'a>>, "Models that are asked in its place, in this order, when it cannot answer.", names Model;
        retry: ModelRetry<'a> | "tried 5 times, then waited for 24 h", "What is done while its place does not answer.";
        calls: Word<'a, CallStyle> = CallStyle::default(), "How tools are told and called.";
        takes: Takes<'a> | "nothing: a message names its files",
            "Which files of messages the model gets: `image` (PNG, JPEG, GIF, WebP), `pdf`. Each follows its message as a part of its own.";
        rate: Rate<'a, true> | "none",
            "How often it is asked at most: `5/s`, `100/min`, `100/min, 40000 tokens/min`. All sessions of a process share one limiter per provider and key.";
        price: Price<'a> | "of the built-in table, where the provider's own address is asked", "What a million tokens cost.";
    }

    /// The files of messages that a model gets.
    Takes<'a>: "Takes", "what a model takes", short [Many<'a, Word<'a, FileKind>>, Long<Self>] kinds {
        kinds: Many<'a, Word<'a, FileKind>> | "none", "Kinds of files: `image` (PNG, JPEG, GIF, WebP), `pdf`.";
        largest: Size<'a> = SHOWN_FILE,
            "Size of a file at most. In place of a larger one the model reads why it is not shown. All files of a request have 20 MiB together; the newest come first.";
        instead: Template<'a> | "nothing: the message names the file",
            "Told in place of a file of another kind, with `name`, `media` and `bytes`.";
    }

    /// Reaction to a model that does not answer.
    ModelRetry<'a>: "ModelRetry", "what is done while a model does not answer" {
        outage as "for": Millis<'a> = Retry::default().outage,
            "How long a call waits for a place that does not answer: the session is parked. `0s`: the call fails.";
        times: Few<'a, 1> = Retry::default().times,
            "Attempts of one call at most, one after the other, before it waits or fails.";
    }

    /// A price. A kind of input without a price of its own costs as much as plain input. For reads of the cache this is at least
    /// the provider's price, for writes to it this may be less.
    Price<'a>: "Price", "a price" {
        input: Money<'a>, required "A million tokens in.";
        cached: Money<'a> | "as `input`", "The same where the provider had cached them.";
        cache_write: Money<'a> | "as `input`", "The same where the provider was asked to keep them.";
        output: Money<'a>, required "A million tokens out.";
    }

    /// An MCP server.
    Mcp<'a>: "Mcp", "an MCP server" {
        url: Template<'a>, "Streamable HTTP.";
        command: List<'a, Template<'a>>, "Standard input and output: program and arguments, no shell.";
        headers: Map<'a, Template<'a>>, "With `url`. Secrets resolve here.",
            with ["url"] "an MCP server without `url`";
        oauth: OAuth<'a> | "no sign-in",
            "With `url`. The server wants a sign-in (OAuth 2.1): of a `person` or of the `program`, or more about it.",
            with ["url"] "an MCP server without `url`";
        env: Map<'a, Template<'a>>, "With `command`. Secrets resolve here, not in the vector.",
            with ["command"] "an MCP server without `command`";
        tools: List<'a, Text<'a>> | "all", "Which tools are taken; `*` matches.";
        effect: Word<'a, ServerClass> = ServerClass::Unsafe,
            "Class of its tools; `annotations` trusts the server's own hints.";
        effects: Map<'a, Word<'a, Class>>, "Class by tool, before `effect`.";
        render: Map<'a, Render<'a>>, "How calls and results look, by tool.";
        refresh: Word<'a, Refresh> = Refresh::Pinned, "Whether a changed list of tools is taken over.";
        start_timeout: Millis<'a> = 30_000, "Of its start, until it has greeted.";
        timeout: Millis<'a> = 60_000, "Of one attempt of a call, once it has greeted.";
        retry: Few<'a, 0> = 4, "Further attempts of a call at most.";
        overrides as "override": Flag<'a> = false, "Replaces one of an imported file.";
    }
    exactly one of &["url", "command"];

    /// A sign-in at an MCP server.
    OAuth<'a>: "OAuth", "a sign-in", short [Word<'a, SignsIn>, Long<Self>] by {
        by: Word<'a, SignsIn> = SignsIn::Person,
            "Who signs in: a `person`, with `steersman login SERVER`; or the `program`, by its secret or its key (client credentials).";
        client_id: Template<'a> | "`client_metadata`, or the program is registered at the first sign-in",
            "Id under which the program is registered at the authorization server.";
        client_secret: Template<'a>, "A secret: that of the registration.",
            with ["client_id"] "a sign-in without `client_id`";
        key: Template<'a>, "A secret: a private key in PEM (PKCS #8; RSA, P-256 or P-384), whose signature stands in for `client_secret`.",
            with ["client_id"] "a sign-in without `client_id`";
        issuer: Template<'a> | "the first one that the server names",
            "Address of the authorization server at which the program is registered. No other one gets the secret.",
            with ["client_id"] "a sign-in without `client_id`";
        client_metadata: Template<'a>,
            "Address (`https://`) of a document that describes the program. It is the id where the authorization server takes such ids.";
        scopes: List<'a, Text<'a>> | "those that the server names", "The scopes that are asked for, and no others.";
    }
    at_most one of &["client_secret", "key"];

    /// An event.
    Event<'a>: "Event", "an event" {
        fields: Names<'a, Type<'a>>, required "The payload.", declares Field;
        id: Template<'a>, required "Each id is accepted once.";
        session: Template<'a>, "Key of the session that it belongs to.";
        keep: Millis<'a> = 30 * 86_400_000, "How long one that no wait took is kept.";
        start: Start<'a>, "Opens a session.";
    }

    /// A schedule.
    Schedule<'a>: "Schedule", "a schedule" {
        every: Millis<'a>, "A span of at least `1s`: sessions begin at its multiples since 1970 UTC. `1h` is every full hour.";
        cron: Text<'a>, "Minute, hour, day of the month, month, day of the week: `30 6 * * 1-5`. Also `L`, `15W`, `MON#1` and `@daily`.";
        at: Text<'a>, "A single time on the clock of the zone: `2026-12-24 18:00`. If it is past when `steersman schedule` stores it, no session begins.";
        timezone: Text<'a> | "that of the definition", "Zone in which `cron` and `at` are read, and in which `schedule` tells the time.";
        start: Start<'a>, required "Opens the session. Templates see `schedule`: `name`, `date`, `time`, `weekday`, `iso` of the time that was due, and `missed`, the number of times before it that began no session.";
    }
    exactly one of &["every", "cron", "at"];

    /// The time for which sessions are kept.
    Sessions<'a>: "Sessions", "the rule for sessions" {
        keep: Millis<'a> | "for ever",
            "A span of at least `1m`: so long after its end a session is erased, as `steersman erase` does it, by a process that drives all. A session that works or waits has not ended.";
    }

    /// A budget that sessions share. What a call may use at most is drawn from the store before the call, and what it did not use is
    /// given back after it.
    Budget<'a>: "Budget", "a budget" {
        of: Word<'a, Counted> = Counted::Network,
            "What is counted: the calls of all sessions of the `network`; or the calls under the API `key` that a call uses, in all networks of a store that declare a budget of this name.";
        label: Text<'a>,
            "Instead of `of`: a label. Each of its values has the budget by itself, in all networks of a store that declare a budget of this name. Sessions without the label are not counted.";
        cost: Money<'a>, "Money in one period, in the currency of the prices. The price of every model must be known.";
        tokens: Whole<'a, 1>, "Tokens in one period, in and out.";
        calls: Whole<'a, 1>, "Model calls in one period.";
        per: Word<'a, Per> = Per::Day, "The period: a full hour, a day from midnight on, a week from Monday on, a month from its first day on.";
        timezone: Text<'a> | "that of the definition", "Zone of midnight.";
        then: Word<'a, OnSpent> = OnSpent::Wait,
            "What a call does that does not fit any more: it waits for the end of the period, or until a person lets it through (`approve`); or it fails with the code `limit`.";
    }
    at_most one of &["of", "label"];

    /// The start by an event or a schedule.
    Start<'a>: "Start", "the start of a session" {
        agent: Name<'a> | "entry", "Who begins.", names Agent;
        args: Map<'a, Data<'a>>, "Arguments for the agent's parameters.";
        message: Template<'a>, "The first message.";
    }
}

impl<'a> File<'a> {
    /// Returns the tool of a name.
    pub(crate) fn tool(self, name: &str) -> Option<Tool<'a>> {
        self.tools()?.get(name)
    }
    /// Returns the agent or person of a name.
    pub(crate) fn agent(self, name: &str) -> Option<Agent<'a>> {
        self.agents()?.get(name)
    }
    /// Returns all state entries: those of the file, then those of its agents.
    pub(crate) fn all_state(self) -> impl Iterator<Item = (&'a Key, Type<'a>)> {
        let own = each(self.agents()).flat_map(|(_, agent)| each(agent.state()));
        each(self.state()).chain(own)
    }
}
