//! Diagnostics E04xx, W04xx and N04xx: effects, people, behaviour of sessions.

use super::{Diagnostic, Place};

type At = Option<Place>;

impl Diagnostic {
    pub(crate) fn no_user(at: At, event: &str, declared: At) -> Self {
        Self::new(
            "E0401",
            at,
            "`user` is nobody where a session begins by an event or a schedule",
        )
        .also(declared, format!("`{event}` may begin one"))
        .help("name a person: `by: NAME`, with `agents: { NAME: { person: { role: .. } } }`")
    }
    pub(crate) fn probe_class(at: At, tool: &str, class: &str) -> Self {
        Self::new(
            "E0402",
            at,
            format!("a probe only looks, but `{tool}` is {class}"),
        )
        .help("a probe is a tool with `effect: pure` or `effect: read`")
    }
    pub(crate) fn ahead_class(at: At, tool: &str, class: &str) -> Self {
        Self::new(
            "E0411",
            at,
            format!("what runs ahead of every turn only looks, but `{tool}` is {class}"),
        )
        .help("`before` takes tools with `effect: pure` or `effect: read`")
    }
    pub(crate) fn reach_class(at: At, tool: &str, why: &str) -> Self {
        Self::new(
            "E0408",
            at,
            format!("what reaches a person is repeated under its key and gets no arguments, but `{tool}` {why}"),
        )
        .help("a tool with `effect: idempotent` without parameters, which reads `question` and `person`")
    }
    pub(crate) fn chooser_class(at: At, tool: &str, does: &str) -> Self {
        Self::new(
            "E0403",
            at,
            format!("who chooses among branches only looks, but `{tool}` {does}"),
        )
        .help("name a tool with `effect: pure` or `effect: read` that runs, an agent or a person")
    }
    pub(crate) fn no_join(at: At, text: &str, why: &str) -> Self {
        Self::new(
            "E0470",
            at,
            format!("`{text}` does not say when branches are joined: {why}"),
        )
        .help("`all`, `any`, how many must end, or `done >= 2`, `failed == 0 and open == 0`")
    }
    pub(crate) fn wide_join(at: At, n: u32, most: u32) -> Self {
        Self::new(
            "E0471",
            at,
            format!("{n} branches are to end, and at most {most} are forked"),
        )
        .help("a smaller number at `join`, or a larger one at `max`")
    }
    pub(crate) fn no_judge(at: At, name: &str, does: &str) -> Self {
        Self::new(
            "E0440",
            at,
            format!("who judges branches answers a number and only looks, but `{name}` {does}"),
        )
        .help(
            "name a tool with `effect: pure` or `effect: read` that runs, or an agent with a model",
        )
    }
    pub(crate) fn no_worth(at: At, kind: &str) -> Self {
        Self::new(
            "E0441",
            at,
            format!("what a branch is worth is a number, or true or false, not {kind}"),
        )
        .help("`calls.NAME.ok`, `state.NAME == 24`, `0 if answer is none else 1`")
    }
    pub(crate) fn wide_search(at: At, key: &str, most: u32) -> Self {
        Self::new(
            "E0442",
            at,
            format!("`{key}` is too large for a search: at most {most}"),
        )
        .help("each branch calls a model at least once")
    }
    pub(crate) fn little_budget(at: At, calls: u64, n: u32) -> Self {
        Self::new(
            "W0440",
            at,
            format!(
                "{n} branches are wanted and {calls} model calls allowed: not all of them begin"
            ),
        )
        .note("when the budget is used up the best so far is taken")
    }
    pub(crate) fn leaves(at: At, tool: &str, class: &str, tool_at: At) -> Self {
        Self::new(
            "W0441",
            at,
            format!("a branch of this search ends where it calls `{tool}`: that is {class}, and branches are dry"),
        )
        .also(tool_at, "declared here")
        .note("the branch is judged as it stands there; if it is adopted, the call is made then")
        .help("`simulate:` at the tool, or `effects: live` at the search")
    }
    pub(crate) fn no_description(at: At, what: &str, name: &str, by: At) -> Self {
        Self::new(
            "W0405",
            at,
            format!("the {what} `{name}` needs a description: a model chooses it"),
        )
        .also(by, "offered here")
    }
    pub(crate) fn secret_needs_ask(at: At, name: &str) -> Self {
        Self::new(
            "E0404",
            at,
            format!("nobody can give the secret `{name}`: a model never sees one"),
        )
        .help("`ask:` is the question to the person")
    }
    pub(crate) fn no_effect_class(at: At, tool: &str, get: bool) -> Self {
        let diagnostic = Self::new(
            "W0401",
            at,
            format!("`{tool}` has no effect class, so it counts as unsafe"),
        );
        if get {
            diagnostic.label("a GET is usually `effect: read`")
        } else {
            diagnostic.label("`effect: read`, `idempotent` or `unsafe` says what it does")
        }
    }
    pub(crate) fn many_writers<'a>(
        at: At,
        state: &str,
        writers: impl ExactSizeIterator<Item = &'a str>,
        other: At,
    ) -> Self {
        let more = writers.len().saturating_sub(2);
        let told: Vec<String> = writers.take(2).map(|name| format!("`{name}`")).collect();
        let (who, all, other_is) = match more {
            0 => (told.join(" and "), "both", "the other one"),
            _ => (
                format!("{} and {more} more", told.join(", ")),
                "all",
                "another one",
            ),
        };
        let what = format!("{who} {all} write `state.{state}` and can be open together");
        Self::new("W0402", at, what).also(other, other_is).note(
            "the one that stands later in the answer wins; `reduce:` at the state says otherwise",
        )
    }
    pub(crate) fn open_permission(
        at: At,
        tool: &str,
        entry: &str,
        guard: &str,
        fix: Option<(Place, String)>,
    ) -> Self {
        let what = format!("anybody may open the guard of `{tool}`: `{guard}`");
        let diagnostic = Self::new("W0411", at, what).note(format!(
            "nothing before `{tool}` sets `state.{entry}`: a person does, with `steersman edit`"
        ));
        match fix {
            Some((at, with)) => diagnostic.patch("say who may", Some(at), with),
            None => diagnostic.help("`by: NAME` at the entry names the people who may edit it"),
        }
    }
    pub(crate) fn unseen_file(at: At, file: &str, agent: &str) -> Self {
        Self::new(
            "W0413",
            at,
            format!("`{agent}` cannot look into the file `{file}`: its model takes no files, and it has no tools"),
        )
        .note("its message names the file, and that is all that it learns of it")
        .help("`takes: [image, pdf]` at the model, if it takes them; or `tools: [artifacts]` at the agent")
    }
    pub(crate) fn no_last_rule(at: At) -> Self {
        Self::new("W0403", at, "the last rule has a condition")
            .note("where no rule holds, the session finishes with the cause `no_rule`")
            .help("end with `- { to: finish }`")
    }
    pub(crate) fn nobody_to_choose(at: At, key: &str) -> Self {
        Self::new(
            "E0412",
            at,
            format!("`{key}` is empty: there is nobody to choose"),
        )
        .help("name at least one")
    }
    pub(crate) fn role_twice(at: At, role: &str) -> Self {
        Self::new(
            "E0413",
            at,
            format!("two speakers of this state play `{role}`"),
        )
        .help("an agent that speaks twice has two roles: `{ agent: NAME, role: ROLE }`")
    }
    pub(crate) fn unfit_reviewer(at: At, agent: &str, why: &str) -> Self {
        Self::new("E0430", at, format!("`{agent}` cannot judge: it {why}"))
            .help("a reviewer is model-driven, takes `draft` or `message` (of a call also `tool`, `args`, `result`), and has no `output` or one with `accept: boolean` and `revise: optional string`")
    }
    pub(crate) fn reviewers_circle(at: At, agent: &str) -> Self {
        Self::new(
            "E0431",
            at,
            format!("`{agent}` judges what judges it: its own judgements would be judged for ever"),
        )
        .help("take `reflect` away from the reviewer, or from a tool that it calls")
    }
    pub(crate) fn reflect_with_then(at: At, tool: &str) -> Self {
        Self::new(
            "E0432",
            at,
            format!("`{tool}` is followed by another tool, with no model turn between: nobody can make it again"),
        )
        .help("put `reflect` at the tool that follows")
    }
    pub(crate) fn never_left(at: At, state: &str) -> Self {
        Self::new(
            "W0406",
            at,
            format!("nothing leads out of the state `{state}`"),
        )
        .note("its speakers go on until a limit ends the route")
        .help("give it `exits`: `when`, `judge` or `after_messages`")
    }
    pub(crate) fn exit_of_no_tool(at: At, tool: &str, mode: Option<&str>) -> Self {
        let within = mode.map_or_else(
            || "is offered in none of the modes".to_owned(),
            |mode| format!("is not offered in the mode `{mode}`"),
        );
        Self::new(
            "E0420",
            at,
            format!("`{tool}` {within}, so this exit never fires"),
        )
        .help("offer it there (`tools`), or name what is offered")
    }
    pub(crate) fn leads_to_itself(at: At, mode: &str) -> Self {
        Self::new(
            "E0421",
            at,
            format!("this exit of `{mode}` leads to `{mode}`"),
        )
        .help("leave it out: where no exit fires, the mode stays as it is")
    }
    pub(crate) fn says_no_mode(at: At, mode: &str, agent: &str, modes: &str) -> Self {
        Self::new(
            "E0422",
            at,
            format!("`{agent}` is offered this tool and has no mode `{mode}`"),
        )
        .help(format!(
            "its modes are {modes}; a template may tell them apart"
        ))
    }
    pub(crate) fn mode_never_in_force(at: At, mode: &str) -> Self {
        Self::new("W0420", at, format!("nothing leads to the mode `{mode}`"))
            .help("let an exit lead `to` it, or `start` in it")
    }
    pub(crate) fn mode_without_end(at: At, mode: &str, tool: &str) -> Self {
        Self::new(
            "W0421",
            at,
            format!(
                "in the mode `{mode}` the model must call `{tool}`, and nothing leads out of it"
            ),
        )
        .note("it goes on until a limit ends it")
        .help("give the mode `exits`, or leave the model a choice")
    }
    pub(crate) fn secret_within(at: At, name: &str) -> Self {
        Self::new("E0316", at, format!("`{name}` holds a secret within an object or a list"))
            .note("a secret is asked for, sealed and opened by its own name; within something else it would lie in clear")
            .help("give it a name of its own")
    }
    pub(crate) fn never_entered(at: At, state: &str) -> Self {
        Self::new("W0409", at, format!("nothing leads to the state `{state}`"))
            .help("let an exit lead `to` it, or `start` with it")
    }
    pub(crate) fn never_fires(at: At, by: At) -> Self {
        let diagnostic = Self::new("W0407", at, "this exit never fires");
        match by {
            Some(_) => diagnostic.also(by, "this one always fires before it"),
            None => diagnostic.note("`false` never holds"),
        }
    }
    pub(crate) fn holds_again(at: At, members: &[steersman_machine::stored::ids::Name]) -> Self {
        let names: Vec<String> = members.iter().map(|name| format!("`{name}`")).collect();
        let (names, have) = match &names[..] {
            [one] => (one.clone(), "has"),
            _ => (names.join(", "), "have"),
        };
        Self::new("W0410", at, format!("this rule holds again when {names} {have} answered"))
            .note("nothing that it reads changes then, and the same choice over equal values ends the route as a failure")
            .help("put `{ when: route.count > 0, to: finish }` before it, or let the rule read what the answer changes (`route.last`, state)")
    }
    pub(crate) fn never_done(at: At, task: &str, why: &str) -> Self {
        Self::new(
            "W0408",
            at,
            format!("the task `{task}` can never be done: {why}"),
        )
        .help("let a tool of its agent write what `done` reads (`set`), or leave `done` out: its agent says so")
    }
    pub(crate) fn task_circle(at: At, circle: &str) -> Self {
        Self::new("E0409", at, format!("tasks wait for each other: {circle}"))
            .help("let one of them begin without the others")
    }
    pub(crate) fn nobody_opens(at: At, person: &str) -> Self {
        Self::new(
            "E0410",
            at,
            format!("of two speakers one is a person, `{person}`, and nothing is said to them at the start"),
        )
        .help("let the other one begin, with words: `begin: { speaker: .., say: .. }`")
    }
    pub(crate) fn never_reached(at: At, by: At) -> Self {
        Self::new("W0404", at, "this rule is never reached").also(by, "this one always holds")
    }
    pub(crate) fn never_finishes(at: At) -> Self {
        Self::new(
            "E0405",
            at,
            "an agent that must always call a tool never comes to an end",
        )
        .help("offer it `finish` among its tools")
    }
    pub(crate) fn asked_twice(at: At, person: &str) -> Self {
        Self::new(
            "E0407",
            at,
            format!("`{person}` is asked twice in this line of approvers"),
        )
        .help("name somebody else, or give more time")
    }
    pub(crate) fn moving_tools(at: At) -> Self {
        Self::new("N0401", at, "the list of tools changes with this")
            .note("each change breaks the prefix that the provider has cached")
    }
    pub(crate) fn dynamic_prefix(at: At, path: &str) -> Self {
        Self::new(
            "N0402",
            at,
            format!("`{path}` changes, and it stands in front of the history"),
        )
        .note("each change breaks the prefix that the provider has cached")
        .help("put volatile facts into `context: { now: .. }`")
    }
    pub(crate) fn dynamic_history(at: At, path: &str) -> Self {
        Self::new(
            "N0402",
            at,
            format!("`{path}` changes with each call, and so does the whole history with it"),
        )
        .note("each change breaks the prefix that the provider has cached")
        .help("put volatile facts into `context: { now: .. }`")
    }
    pub(crate) fn left_out(at: At, path: &str) -> Self {
        Self::new(
            "N0403",
            at,
            format!("this is left out while `{path}` is none"),
        )
    }
    pub(crate) fn call_fails(at: At, of: &str, path: &str, why: &str) -> Self {
        let what = format!("calls of `{of}` fail while `{path}` is none");
        Self::new("W0412", at, what)
            .note(why.to_owned())
            .help("give it a value (`or` in the template, or a default where it is declared), or let `requires` say when the call may be made")
    }
    pub(crate) fn no_price(at: At, model: &str, why: &str, limit: At) -> Self {
        Self::new(
            "E0406",
            at,
            format!("money is limited, and nobody knows what the model `{model}` costs"),
        )
        .also(limit, "limited here")
        .note(why.to_owned())
        .help("give the model a price: `price: { input: 0.25, output: 2 }`, for a million tokens each; 0 where it is free")
    }
    pub(crate) fn never_too_late(at: At) -> Self {
        Self::new("W0451", at, "this never happens: no time is set")
            .help("`timeout:` beside it says how long is waited, such as `timeout: 4h`")
    }
    pub(crate) fn single_braces(at: At, meant: &str) -> Self {
        Self::new("W0453", at.clone(), "single braces are plain text").patch(
            "a value stands in two braces",
            at,
            format!("{{{{ {meant} }}}}"),
        )
    }
    pub(crate) fn keeps_nothing(at: At) -> Self {
        Self::new("W0455", at, "this keeps nothing yet")
            .note("the log has what models saw, and `steersman context` renders each request again")
            .help("leave it out")
    }
    pub(crate) fn template_as_text(at: At, instead: &str) -> Self {
        Self::new("W0454", at.clone(), "a description is plain text: nothing fills this in")
            .note("a description is the same in every request, so that providers can cache it")
            .patch("say it without a value; what changes belongs into `system`, `context: { now: .. }` or a result", at, instead)
    }
    pub(crate) fn key_written_out(at: At) -> Self {
        Self::new("W0452", at, "this looks like a key, and who reads the file can use it")
            .note("logs and copies of the definition keep what stands in it")
            .help("`secrets: { NAME: { env: VARIABLE } }`, and `\"{{ secrets.NAME }}\"` here; if the key was shared, replace it")
    }
}
