//! Keys of tests, and of their steps and expectations.

use super::kinds::{
    Any, Expr, Flag, List, Many, Map, Millis, Name, Or, Path, Real, Template, Text, Whole, Word,
    words,
};
use super::section;
use super::tool::Then;
use crate::test::Resolve;

words! {
    /// The run that a test must equal.
    enum SameAs: Undisturbed = "undisturbed";
}

words! {
    Resolve: Done = "done", NotPerformed = "not_performed", Fail = "fail";
}

/// Answers, or outcomes, by name and in order.
pub(crate) type Answers<'a> = Map<'a, List<'a, Any<'a>>>;

section! {
    /// A scripted answer that is not a text. Scripts are data, so the checks of shapes do not see it.
    Answer<'a>: "Answer", "a scripted answer" {
        text: Template<'a>, "The text.";
        call: Many<'a, Map<'a, Any<'a>>>, "Calls: `TOOL: arguments`.", names Callable;
        output: Any<'a>, "A structured answer.";
        accept: Flag<'a> = false, "A reviewer accepts.";
        revise: Text<'a>, "A reviewer asks for this change.";
        error: Text<'a>, "The call fails with this code.";
        any: List<'a, Any<'a>>, "One of these answers is drawn.";
        weights: List<'a, Real<'a>>, "How likely each answer of `any` is.";
    }

    /// The outcome of a tool, unless it is the result itself.
    Outcome<'a>: "Outcome", "an outcome" {
        error: Text<'a>, "It did not happen: the code.";
        message: Text<'a>, "With `error`: what the model sees.";
        unknown: Flag<'a> = false, "Nobody knows whether it happened.";
        after: Millis<'a>, "How long it takes.";
        result: Any<'a>, "The result.";
        artifacts: Map<'a, Text<'a>>, "With a result: the artifacts that it makes, by name.";
    }
}

section! {
    /// A grade.
    Grade<'a>: "Grade", "a grade" {
        that: Expr<'a>, "Holds: an expression over `state`, `calls`, `answer`, `outcome`.";
        value: Expr<'a>, "Equals what is expected: an expression over the same names.";
        is: Any<'a>, "What `value` is in every case.",
            with ["value"] "a grade without `value`";
        expected: Map<'a, Any<'a>>, "What `value` is by case: the name of a test, or the id of a recorded session (at least its first 6 characters). Other cases are not measured.",
            with ["value"] "a grade without `value`";
        rubric: Text<'a>, "What a judge finds to be met, who reads the session.";
        judge: Name<'a> | "a model alone", "The judge: an agent of the definition, whose `output` has `fields` with `pass: boolean`.",
            with ["rubric"] "a grade without `rubric`", names Agent;
        model: Name<'a> | "`default`", "The model of a judge that is no agent.",
            with ["rubric"] "a grade without `rubric`", names Model;
        cases: List<'a, Text<'a>> | "all", "Only these cases: names of tests, ids of recorded sessions.";
    }
    exactly one of &["that", "value", "rubric"];
}

section! {
    /// A test.
    Test<'a>: "Test", "a test" {
        entry: Name<'a> | "the file's", "Who is talked to.", names Agent;
        seed: Whole<'a, 0> = 1, "Of the session.";
        script: Or<Answers<'a>, Path<'a>> | "the recording", "Answers by agent.", names Agent;
        tools: Answers<'a>, "Outcomes of tools, in order.", names Tool;
        memory: List<'a, Remembered<'a>> | "nothing",
            "What is in memory before the first step. A test has a memory of its own.";
        history: List<'a, Any<'a>> | "nothing",
            "A conversation that was held elsewhere and precedes the session: chat messages with `role` and `content`.";
        steps: List<'a, Step<'a>>, "What happens.";
        expect: List<'a, Expect<'a>>, "At the end.";
    }

    /// A memory that exists before a test begins.
    Remembered<'a>: "Remembered", "what a test begins with in memory" {
        name: Text<'a>, required "Its name.";
        content: Text<'a>, required "Its text.";
        scope: Text<'a> | "the network's name", "Whose it is.";
        tags: List<'a, Text<'a>>, "Words it is found by.";
        rating: Whole<'a, 1>, "From 1 to 5, as a person's.";
    }

    /// A step.
    Step<'a>: "Step", "a step" {
        say: Text<'a>, "A message.";
        at: Text<'a> | "current", "A branch.",
            with ["say", "answer", "approve", "reject", "resolve", "interrupt", "cancel"] "a step that does nothing on a branch";
        state: Map<'a, Any<'a>>, "Entries of state that a person sets: with `say` for that message, else now. `none` unsets one.", names State;
        event: Map<'a, Any<'a>>, "`NAME: fields`.", names Event;
        answer: Text<'a>, "To the open question.";
        approve: Text<'a>, "The tool.", names Callable;
        reject: Text<'a>, "The tool.", names Callable;
        edit: Map<'a, Any<'a>>, "With `approve`: changed arguments.",
            with ["approve"] "a step without `approve`";
        repeat: Flag<'a> = false, "With `approve`: it does again what was done before, and the person says so.",
            with ["approve"] "a step without `approve`";
        resolve: Map<'a, Word<'a, Resolve>>, "A doubt: `TOOL: done`.", names Callable;
        role: Text<'a>, "Who does it.",
            with ["say", "state", "answer", "approve", "reject", "resolve", "interrupt", "cancel"] "a step that nobody in particular does", names Role;
        refused: Flag<'a> = false, "This step must be refused.";
        interrupt: Text<'a>, "A message that cancels the open exchange.";
        cancel: Text<'a>, "A call's tool, an agent, a branch, or `session`.", names Callable;
        fork: Text<'a>, "The branch to fork.";
        seen as "as": Text<'a>, "Name of the new branch.",
            with ["fork", "rewind"] "a step without `fork` or `rewind`";
        from: Text<'a> | "head", "A line, or a tool: the first line of the branch that closed a call of it well, `TOOL#2` the second.",
            with ["fork", "rewind"] "a step without `fork` or `rewind`", names Callable;
        rewind: Text<'a>, "The branch to rewind.";
        adopt: Text<'a>, "A branch.";
        join: List<'a, Text<'a>>, "A person's join of these branches.";
        on: Or<Whole<'a, 1>, Expr<'a>> | "all", "With `join`: when it is over, as `join` of `fork`.",
            with ["join"] "a step without `join`";
        then: Then<'a>, "With `join`: the tool that follows.",
            with ["join"] "a step without `join`";
        script: Answers<'a>, "From here on.", names Agent;
        advance: Millis<'a>, "The clock.";
        kill: Text<'a>, "`random`, or a line.";
        resume: Flag<'a> = false, "After a kill.";
        expect: List<'a, Expect<'a>>, "Here.";
    }
    at_most one of &["event", "answer", "approve", "reject", "resolve", "interrupt", "cancel", "fork", "rewind", "adopt", "join", "advance", "kill", "resume"];

    /// An expectation.
    Expect<'a>: "Expect", "an expectation" {
        stack: Text<'a>, "An agent.", names Agent;
        speakers: Text<'a>, "A routed agent.", names Agent;
        modes: Text<'a>, "An agent.", names Agent;
        states: Text<'a>, "An agent whose `net` names its states: those that it entered, in order.", names Agent;
        model_calls: Text<'a>, "An agent, or `all`.", names Agent;
        offered: Text<'a>, "An agent: the tools of each of its model calls, a list of lists.", names Agent;
        saw: Text<'a>, "An agent: texts that stood in what its model was sent.", names Agent;
        unseen: Text<'a>, "An agent: texts that did not stand there.", names Agent;
        call: Whole<'a, 1> | "the last", "With `saw`, `unseen`: which of the agent's model calls, from 1.",
            with ["saw", "unseen"] "an expectation without `saw` or `unseen`";
        is: Any<'a>, "What the stack, list or number is.",
            with ["stack", "speakers", "modes", "states", "model_calls", "offered", "saw", "unseen"] "this expectation";
        answer: Text<'a>, "The answer.";
        that: Expr<'a>, "Over `state`, `calls`, `outcome`.";
        branches: Whole<'a, 0>, "How many there are.";
        open: List<'a, Text<'a>>,
            "What waits: `approval TOOL`, `input TOOL`, `doubt TOOL`, `repeat TOOL`, `question PERSON`, `event EVENT`, `budget`.", names Open;
        same_as: Word<'a, SameAs>, "As without `kill` and `resume`.";
    }
}
