//! The definition, its values, models, servers and events.

use super::{
    Builder, CallStyle, Class, Context, Counted, FileKind, Grade, Hook, Json, Keys, Limits, Map,
    Names, OnSpent, Per, Plain, Recorded, Refresh, Render, Serialize, ServerClass, SignsIn, Span,
    Test, Type, data, keys, method, section, short,
};

keys! {
    Builder = "File" {
        "One line for lists." describe "description" text;
        "Other files of this format, merged into this one." import "import" texts;
        "Zone of `now`, of `until` and of dates." timezone "timezone" text;
        "Plain values, `config.NAME`." config "config" map_into(Config);
        "Handles, usable in transport fields only." secret "secrets" map_into(Secret);
        "Models by name." model "models" map_into(Model);
        "A model of `models`, by whose `/v1/embeddings` passages are found: those of `knowledge`, `notes` and `relevant`." embeddings "embeddings" text;
        "Whose memory the built-in set `memory` saves to and searches: a scope, or a scope and how long." memory "memory" into(Memory);
        "Shared data of the entry agent's instance." state "state" map_into(Type);
        "Messages from outside that are not chat." event "events" map_into(Event);
        "Times at which sessions begin, once `steersman schedule` has put them into the store." schedule "schedules" map_into(Schedule);
        "How long the sessions are kept." sessions "sessions" into(Sessions);
        "What the model calls of several sessions may use together in a period." budget "budgets" map_into(Budget);
        "What a session is found by, over `state`, `answer`, and `args` if every session begins with the same agent: an event gives them by `start: { args: .. }`." label "labels" map_text;
        "What a session came to, as named values; over the same names as `labels`." outcome "outcome" map_text;
        "MCP servers; their tools are called `SERVER.TOOL` here." mcp "mcp" map_into(Mcp);
        "Who gets the first message." entry "entry" into(Names);
        "For the whole session." limits "limits" into(Limits);
        "Default for all model-driven agents." context "context" into(Context);
        "Reserved: answers of tools as they came; rendered requests. Nothing is kept yet." record "record" words(Recorded);
        "The engine's own sentences, by key; each a text, or texts by `state.language`; or a file of them. The keys stand under Sentences." sentence "texts" map_data;
        "The engine's own sentences, by key; each a text, or texts by `state.language`; or a file of them. The keys stand under Sentences." texts_file "texts" text;
        "Offline tests; never part of the digest." test "tests" map_into(Test);
        "What `--grade` measures; never part of the digest." grade "grades" map_into(Grade);
    }
}

keys! {
    Hook = "Hook" {
        "Around whose life." agents "agents" into(Names);
        "At one moment." timeout "timeout" span;
    }
}

section! {
    /// A memory.
    Memory = "Memory" short(scope: text) {
        "Sessions with the same scope share what they remember: text and `{{ .. }}`, seen from the entry. Where a value is unset, nothing is saved or found." scope "scope" text;
        "How long what is saved is kept." keep "keep" span;
    }
}

section! {
    /// A config value.
    Config = "Config" short(default: any) {
        "What it is; a value of the environment is read as this." ty "type" word(Plain);
        "Environment variable." env "env" text;
        "Used when the variable is unset; without it the variable is required." default "default" data;
        "Read at each use in a transport field, outside the digest." live "live" flag;
        "Clients of the server may set it. Otherwise only who runs the program may." clients "clients" flag;
    }
}

section! {
    /// A secret.
    Secret = "Secret" {
        "Environment variable." env "env" text;
        "Content of a file, last newline cut." file "file" text;
        "Unset renders as an absent header or field." optional "optional" flag;
    }
}

section! {
    /// A model.
    Model = "Model" short(provider: text) {
        "Wire and place." provider "provider" text;
        "Name at the provider; a template over `config`." model "model" text;
        "Base address." url "url" text;
        "A secret." key "key" text;
        "Sampling temperature." temperature "temperature" number;
        "Longest answer." max_tokens "max_tokens" whole;
        "Tokens that a request and its answer may have together. At 70 % of it contexts are compacted." window "window" whole;
        "Sent as they are." param "params" map_data;
        "Models that are asked in its place, in this order, when it cannot answer." fallback "fallback" texts;
        "What is done while its place does not answer." retry "retry" into(ModelRetry);
        "How tools are told and called." calls "calls" word(CallStyle);
        "Which files of messages the model gets: `image` (PNG, JPEG, GIF, WebP), `pdf`. Each follows its message as a part of its own." takes "takes" into(Takes);
        "How often it is asked at most: `5/s`, `100/min`, `100/min, 40000 tokens/min`. All sessions of a process share one limiter per provider and key." rate "rate" text;
        "What a million tokens cost." price "price" into(Price);
    }
}

section! {
    /// The files of messages that a model gets.
    Takes = "Takes" short(kinds: word FileKind) {
        "Kinds of files: `image` (PNG, JPEG, GIF, WebP), `pdf`." kinds "kinds" words(FileKind);
        "Size of a file at most. In place of a larger one the model reads why it is not shown. All files of a request have 20 MiB together; the newest come first." largest "largest" text;
        "Told in place of a file of another kind, with `name`, `media` and `bytes`." instead "instead" text;
    }
}

section! {
    /// Reaction to a model that does not answer.
    ModelRetry = "ModelRetry" {
        "How long a call waits for a place that does not answer: the session is parked. `0s`: the call fails." outage "for" span;
        "Attempts of one call at most, one after the other, before it waits or fails." times "times" whole;
    }
}

section! {
    /// A price. A kind of input without a price of its own costs as much as plain input. For reads of the cache this is at least
    /// the provider's price, for writes to it this may be less.
    Price = "Price" {
        "A million tokens in." input "input" number;
        "The same where the provider had cached them." cached "cached" number;
        "The same where the provider was asked to keep them." cache_write "cache_write" number;
        "A million tokens out." output "output" number;
    }
}

section! {
    /// An MCP server.
    Mcp = "Mcp" {
        "Streamable HTTP." url "url" text;
        "Standard input and output: program and arguments, no shell." command "command" texts;
        "With `url`. Secrets resolve here." header "headers" map_text;
        "With `url`. The server wants a sign-in (OAuth 2.1): of a `person` or of the `program`, or more about it." oauth "oauth" into(OAuth);
        "With `command`. Secrets resolve here, not in the vector." env "env" map_text;
        "Which tools are taken; `*` matches." tools "tools" texts;
        "Class of its tools; `annotations` trusts the server's own hints." effect "effect" word(ServerClass);
        "Class by tool, before `effect`." effect_of "effects" map_word(Class);
        "How calls and results look, by tool." render "render" map_into(Render);
        "Whether a changed list of tools is taken over." refresh "refresh" word(Refresh);
        "Of its start, until it has greeted." start_timeout "start_timeout" span;
        "Of one attempt of a call, once it has greeted." timeout "timeout" span;
        "Further attempts of a call at most." retry "retry" whole;
        "Replaces one of an imported file." overrides "override" flag;
    }
}

section! {
    /// A sign-in at an MCP server.
    OAuth = "OAuth" short(by: word SignsIn) {
        "Who signs in: a `person`, with `steersman login SERVER`; or the `program`, by its secret or its key (client credentials)." by "by" word(SignsIn);
        "Id under which the program is registered at the authorization server." client_id "client_id" text;
        "A secret: that of the registration." client_secret "client_secret" text;
        "A secret: a private key in PEM (PKCS #8; RSA, P-256 or P-384), whose signature stands in for `client_secret`." key "key" text;
        "Address of the authorization server at which the program is registered. No other one gets the secret." issuer "issuer" text;
        "Address (`https://`) of a document that describes the program. It is the id where the authorization server takes such ids." client_metadata "client_metadata" text;
        "The scopes that are asked for, and no others." scopes "scopes" texts;
    }
}

section! {
    /// An event.
    Event = "Event" {
        "The payload." field "fields" map_into(Type);
        "Each id is accepted once." id "id" text;
        "Key of the session that it belongs to." session "session" text;
        "How long one that no wait took is kept." keep "keep" span;
        "Opens a session." start "start" into(Start);
    }
}

section! {
    /// A schedule.
    Schedule = "Schedule" {
        "A span of at least `1s`: sessions begin at its multiples since 1970 UTC. `1h` is every full hour." every "every" span;
        "Minute, hour, day of the month, month, day of the week: `30 6 * * 1-5`. Also `L`, `15W`, `MON#1` and `@daily`." cron "cron" text;
        "A single time on the clock of the zone: `2026-12-24 18:00`. If it is past when `steersman schedule` stores it, no session begins." at "at" text;
        "Zone in which `cron` and `at` are read, and in which `schedule` tells the time." timezone "timezone" text;
        "Opens the session. Templates see `schedule`: `name`, `date`, `time`, `weekday`, `iso` of the time that was due, and `missed`, the number of times before it that began no session." start "start" into(Start);
    }
}

section! {
    /// The time for which sessions are kept.
    Sessions = "Sessions" {
        "A span of at least `1m`: so long after its end a session is erased, as `steersman erase` does it, by a process that drives all. A session that works or waits has not ended." keep "keep" span;
    }
}

section! {
    /// A budget that sessions share. What a call may use at most is drawn from the store before the call, and what it did not use is
    /// given back after it.
    Budget = "Budget" {
        "What is counted: the calls of all sessions of the `network`; or the calls under the API `key` that a call uses, in all networks of a store that declare a budget of this name." of "of" word(Counted);
        "Instead of `of`: a label. Each of its values has the budget by itself, in all networks of a store that declare a budget of this name. Sessions without the label are not counted." label "label" text;
        "Money in one period, in the currency of the prices. The price of every model must be known." cost "cost" number;
        "Tokens in one period, in and out." tokens "tokens" whole;
        "Model calls in one period." calls "calls" whole;
        "The period: a full hour, a day from midnight on, a week from Monday on, a month from its first day on." per "per" word(Per);
        "Zone of midnight." timezone "timezone" text;
        "What a call does that does not fit any more: it waits for the end of the period, or until a person lets it through (`approve`); or it fails with the code `limit`." then "then" word(OnSpent);
    }
}

section! {
    /// The start by an event or a schedule.
    Start = "Start" {
        "Who begins." agent "agent" text;
        "Arguments for the agent's parameters." arg "args" map_data;
        "The first message." message "message" text;
    }
}
