//! `answer`: answers a question, or gives a secret that was asked for.

use crate::cli::{Acting, Global};
use crate::commands::act::{Target, by};
use crate::commands::run::standard_input;
use crate::commands::there::There;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use steersman::Act;
use steersman::runtime::pending::PendingKind;
use steersman_client::{Answer, Given};

pub(crate) const LISTED: &str = "Answer a question";

/// Answer a question.
#[derive(Debug, clap::Args)]
pub(crate) struct AnswerArgs {
    /// The session.
    session: String,
    /// The question, if several are open, and the answer.
    #[arg(required = true, num_args = 1..=2, value_name = "[QUESTION] TEXT")]
    rest: Vec<String>,
    #[command(flatten)]
    act: Acting,
}

pub(crate) async fn run(
    args: AnswerArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let (question, text) = match args.rest.as_slice() {
        [text] => (None, text.clone()),
        [question, text] => (Some(question.as_str()), text.clone()),
        _ => return Err(CommandError::usage("an answer is one text")),
    };
    // Other users of this machine can read a secret on the command line, but not on standard input.
    let text = if text == "-" {
        standard_input()?.trim_end_matches(['\r', '\n']).to_owned()
    } else {
        text
    };
    let kinds = &[PendingKind::Question, PendingKind::Input];
    if let Some(there) = There::find(&args.session, global, &args.act.own, false).await? {
        let pending = there.pending(question, kinds, "question").await?;
        let (id, questions) = (pending.id().to_string(), there.remote.client.questions());
        let answer = Answer {
            role: args.act.role.clone(),
            text: Some(text),
            option: None,
        };
        let given = Given::default();
        let receipt = questions
            .answer(there.id(), &id, &answer, &given)
            .await?
            .receipt()?;
        return there.report(&receipt, printer);
    }
    let target = Target::find(&args.session, global, &args.act.own.drive).await?;
    let pending = target
        .pending(question, kinds, "question", &args.act)
        .await?;
    let act = Act::answer(pending.id(), &text, by(&args.act));
    target.deliver(act, &args.act.own, printer).await
}
