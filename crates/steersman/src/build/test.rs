//! Tests and grades.

use super::{
    Count, Json, Keys, Map, Resolve, SameAs, Serialize, Span, Then, data, keys, method, section,
};

section! {
    /// A grade.
    Grade = "Grade" {
        "Holds: an expression over `state`, `calls`, `answer`, `outcome`." that "that" text;
        "Equals what is expected: an expression over the same names." value "value" text;
        "What `value` is in every case." is "is" data;
        "What `value` is by case: the name of a test, or the id of a recorded session (at least its first 6 characters). Other cases are not measured." expected "expected" map_data;
        "What a judge finds to be met, who reads the session." rubric "rubric" text;
        "The judge: an agent of the definition, whose `output` has `fields` with `pass: boolean`." judge "judge" text;
        "The model of a judge that is no agent." model "model" text;
        "Only these cases: names of tests, ids of recorded sessions." cases "cases" texts;
    }
}

section! {
    /// A test.
    Test = "Test" {
        "Who is talked to." entry "entry" text;
        "Of the session." seed "seed" whole;
        "Answers by agent." script "script" map_data;
        "Answers by agent." script_file "script" text;
        "Outcomes of tools, in order." tools "tools" map_data;
        "What is in memory before the first step. A test has a memory of its own." memory "memory" list(Remembered);
        "A conversation that was held elsewhere and precedes the session: chat messages with `role` and `content`." history "history" data;
        "What happens." steps "steps" list(Step);
        "At the end." expect "expect" list(Expect);
    }
}

section! {
    /// A memory that exists before a test begins.
    Remembered = "Remembered" {
        "Its name." name "name" text;
        "Its text." content "content" text;
        "Whose it is." scope "scope" text;
        "Words it is found by." tags "tags" texts;
        "From 1 to 5, as a person's." rating "rating" whole;
    }
}

section! {
    /// A step.
    Step = "Step" {
        "A message." say "say" text;
        "A branch." at "at" text;
        "Entries of state that a person sets: with `say` for that message, else now. `none` unsets one." state "state" map_data;
        "`NAME: fields`." event "event" map_data;
        "To the open question." answer "answer" text;
        "The tool." approve "approve" text;
        "The tool." reject "reject" text;
        "With `approve`: changed arguments." edit "edit" map_data;
        "With `approve`: it does again what was done before, and the person says so." repeat "repeat" flag;
        "A doubt: `TOOL: done`." resolve "resolve" map_word(Resolve);
        "Who does it." role "role" text;
        "This step must be refused." refused "refused" flag;
        "A message that cancels the open exchange." interrupt "interrupt" text;
        "A call's tool, an agent, a branch, or `session`." cancel "cancel" text;
        "The branch to fork." fork "fork" text;
        "Name of the new branch." seen "as" text;
        "A line, or a tool: the first line of the branch that closed a call of it well, `TOOL#2` the second." from "from" text;
        "The branch to rewind." rewind "rewind" text;
        "A branch." adopt "adopt" text;
        "A person's join of these branches." join "join" texts;
        "With `join`: when it is over, as `join` of `fork`." on "on" into(Count);
        "With `join`: the tool that follows." then "then" into(Then);
        "From here on." script "script" map_data;
        "The clock." advance "advance" span;
        "`random`, or a line." kill "kill" text;
        "After a kill." resume "resume" flag;
        "Here." expect "expect" list(Expect);
    }
}

section! {
    /// An expectation.
    Expect = "Expect" {
        "An agent." stack "stack" text;
        "A routed agent." speakers "speakers" text;
        "An agent." modes "modes" text;
        "An agent whose `net` names its states: those that it entered, in order." states "states" text;
        "An agent, or `all`." model_calls "model_calls" text;
        "An agent: the tools of each of its model calls, a list of lists." offered "offered" text;
        "An agent: texts that stood in what its model was sent." saw "saw" text;
        "An agent: texts that did not stand there." unseen "unseen" text;
        "With `saw`, `unseen`: which of the agent's model calls, from 1." call "call" whole;
        "What the stack, list or number is." is "is" data;
        "The answer." answer "answer" text;
        "Over `state`, `calls`, `outcome`." that "that" text;
        "How many there are." branches "branches" whole;
        "What waits: `approval TOOL`, `input TOOL`, `doubt TOOL`, `repeat TOOL`, `question PERSON`, `event EVENT`, `budget`." open "open" texts;
        "As without `kill` and `resume`." same_as "same_as" word(SameAs);
    }
}
