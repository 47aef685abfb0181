//! `new NAME --from TEXT`: a model drafts the definition, and mends it until `check` finds nothing.

use crate::cli::model_set;
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::printer::{Printer, bold, dim, green, yellow};
use crate::words::{count, money};
use serde::Deserialize;
use serde_json::json;
use std::path::Path;
use steersman::build::Type;
use steersman::{Network, Session, Steersman, Turn, agent};
use steersman_definition::{Diagnostic, Severity};

/// Drafts at most: the first one, and those that mend it.
const DRAFTS: u32 = 6;

/// The instructions of the agent that drafts, around the reference of the format and an example.
const DRAFTER: &str = include_str!("drafter.md");

/// An answer of the drafter.
#[derive(Deserialize)]
struct Draft {
    /// The definition with its tests, as YAML.
    definition: String,
    /// Points that the wish leaves open, each with the decision of the draft.
    open: Vec<String>,
}

/// A draft, and what `check` says of it.
struct Checked {
    draft: Draft,
    found: Vec<Diagnostic>,
    tests: usize,
}

impl Checked {
    fn of(draft: Draft) -> Self {
        match Network::from_yaml(draft.definition.as_str()).build() {
            Ok(network) => Self {
                found: network.warnings().to_vec(),
                tests: network.tests().count(),
                draft,
            },
            Err(wrong) => Self {
                found: wrong.diagnostics,
                tests: 0,
                draft,
            },
        }
    }

    /// Returns the faults that the drafter has to mend. Notes are no faults.
    fn faults(&self) -> Vec<&Diagnostic> {
        let found = self.found.iter();
        found
            .filter(|wrong| wrong.severity != Severity::Note)
            .collect()
    }

    fn has_errors(&self) -> bool {
        self.found.iter().any(Diagnostic::is_error)
    }
}

/// Drafts a definition into a folder that does not exist yet.
pub(super) async fn draft(
    name: &str,
    wish: &str,
    model: Option<&str>,
    script: Option<&Path>,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let steersman = asking(script, printer);
    let mut network = drafter()?;
    if let Some(model) = model {
        network = network.with_set(&[model_set(model)])?;
    }
    let session = steersman.start(&network).await?;
    let wish = format!("The network is called `{name}`. It should do this:\n\n{wish}");
    let mut checked = Checked::of(next(&session, &wish).await?);
    let mut drafts = 1;
    while !checked.faults().is_empty() && drafts < DRAFTS {
        let faults = checked.faults();
        printer.talk(dim(&format!(
            "draft {drafts}: {}",
            count(faults.len() as u64, "fault")
        )));
        let told: Vec<String> = faults.iter().map(|wrong| wrong.render(false)).collect();
        let told = format!(
            "`steersman check` says this of it. Mend it, and give the whole definition again.\n\n{}",
            told.join("\n\n")
        );
        checked = Checked::of(next(&session, &told).await?);
        drafts += 1;
    }
    let info = steersman.info(session.id()).await?;
    session.stop().await;
    let folder = Path::new(name);
    std::fs::create_dir_all(folder)?;
    let file = folder.join("steersman.yaml");
    let text = format!("{}\n", checked.draft.definition.trim_end());
    std::fs::write(&file, text).map_err(|e| locate::unwritten(&file, &e))?;
    tell(name, &checked, drafts, info.state.micros, printer)?;
    Ok(if checked.has_errors() {
        Exit::Definition
    } else {
        Exit::Answered
    })
}

/// Returns the network of the agent that drafts.
fn drafter() -> Result<Network, steersman::Error> {
    let example = include_str!("steersman.yaml").replace("NAME", "desk");
    let output = Type::new()
        .field("definition", "string")
        .field("open", Type::new().items("string"));
    let network = Network::builder("drafter")
        .config("reference", steersman_definition::reference())
        .config("example", example)
        .agent(agent("drafter").system(DRAFTER).output(output))
        .build()?;
    Ok(network)
}

/// Returns what asks the model: a store in memory, since nothing of the draft's making is kept.
fn asking(script: Option<&Path>, printer: &Printer) -> Steersman {
    let printer = printer.clone();
    let setup = Steersman::options().heard_by(move |sentence| printer.talk(dim(sentence)));
    match script {
        Some(script) => setup.script_all_file(script),
        None => setup,
    }
    .in_memory()
}

/// Asks for a draft.
async fn next(session: &Session, text: &str) -> Result<Draft, CommandError> {
    match session.ask(text).await? {
        Turn::Answer(answer) => answer
            .parse()
            .map_err(|e| CommandError::new(Exit::Failed, format!("the model gave no draft: {e}"))),
        Turn::Stopped(stop) => {
            let what = format!("the model gave no draft: {stop}");
            Err(CommandError::new(Exit::Failed, what)
                .hint("without --from, `steersman new` writes a definition to start from"))
        }
        Turn::Asks(_) | Turn::Waits(_) => Err(CommandError::new(
            Exit::Waits,
            "the model does not answer; nothing was written",
        )),
    }
}

fn tell(
    name: &str,
    checked: &Checked,
    drafts: u32,
    micros: u64,
    printer: &Printer,
) -> Result<(), CommandError> {
    if printer.is_json() {
        let faults: Vec<String> = checked.faults().iter().map(ToString::to_string).collect();
        return printer.json(&json!({
            "folder": name,
            "files": ["steersman.yaml"],
            "drafts": drafts,
            "faults": faults,
            "open": checked.draft.open,
            "cost": micros as f64 / 1e6,
        }));
    }
    let file = format!("{name}/steersman.yaml");
    let made = format!(
        "{file}: {}, {}",
        count(u64::from(drafts), "draft"),
        money(micros)
    );
    if checked.faults().is_empty() {
        printer.talk(green(&format!("{made}. `check` finds nothing wrong.")));
    } else {
        printer.talk(yellow(&format!("{made}. These are left to mend:")));
        for wrong in checked.faults() {
            printer.excerpt(wrong.render(false));
        }
    }
    if !checked.draft.open.is_empty() {
        printer.data("Left open by what you wrote, and decided like this:")?;
        for open in &checked.draft.open {
            printer.data(format!("  {}", crate::words::line(open, 300)))?;
        }
    }
    let test = if checked.tests > 0 {
        " && steersman test"
    } else {
        ""
    };
    printer.talk(format!(
        "Read it before you run it.  Next:  {}",
        bold(&format!("cd {name} && steersman check{test}"))
    ));
    Ok(())
}
