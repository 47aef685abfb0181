//! The documents: every definition in them compiles, and the transcripts of the guides are what the program prints.

use crate::readme::{transcript_is_true, transcript_is_true_in_any_order};
use crate::world::{self, Service, World};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steersman::views::remedy::{self, Part};
use steersman_definition::{Files, Severity, compile, compile_with_tests};
use steersman_machine::stored::codes::{Code, FailureCode};
use steersman_testkit::case;

/// A block of code in a document: the text after its fence, its lines, and the number of its first line.
pub(crate) struct Block {
    pub(crate) fence: String,
    pub(crate) text: String,
    pub(crate) line: usize,
    /// The name of a file at the end of the prose before it: `` .. `steersman.yaml`: ``
    pub(crate) file: Option<String>,
}

pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let (mut inside, mut prose) = (false, "");
    for (i, line) in page.lines().enumerate() {
        if let Some(fence) = line.strip_prefix("```") {
            inside = !inside;
            if inside {
                found.push(Block {
                    fence: fence.to_owned(),
                    text: String::new(),
                    line: i + 2,
                    file: named(prose),
                });
            }
            prose = "";
        } else if inside {
            let block = found.last_mut().expect("a fence came first");
            block.text.push_str(line);
            block.text.push('\n');
        } else if !line.trim().is_empty() {
            prose = line;
        }
    }
    assert!(!inside, "a block has no end");
    found
}

fn named(prose: &str) -> Option<String> {
    let before = prose.trim_end().strip_suffix("`:")?;
    let (_, path) = before.rsplit_once('`')?;
    Some(path.to_owned())
}

fn pages() -> Vec<PathBuf> {
    let root = world::root();
    let mut pages = vec![root.join("README.md"), root.join("SECURITY.md")];
    pages.extend(world::files(&root.join("docs")));
    pages.retain(|page| page.extension().is_some_and(|e| e == "md"));
    pages
}

fn shown(page: &Path) -> String {
    let page = page.strip_prefix(world::root()).unwrap_or(page);
    page.display().to_string()
}

#[test]
fn every_definition_in_a_document_compiles_and_nothing_is_warned_of() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for page in pages() {
        for block in blocks(&std::fs::read_to_string(&page).unwrap()) {
            if block.fence != "yaml" || !block.text.starts_with("steersman: 1\n") {
                continue;
            }
            seen += 1;
            let (network, found) = compile(&Files::new("steersman.yaml", block.text.as_str()));
            let errors: Vec<String> = found
                .iter()
                .filter(|d| d.severity != Severity::Note)
                .map(|d| d.render(false))
                .collect();
            if network.is_none() || !errors.is_empty() {
                wrong.push(format!(
                    "{}:{}\n{}",
                    shown(&page),
                    block.line,
                    errors.join("\n")
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(
        seen >= 5,
        "the README and the guide hold definitions, not {seen}"
    );
}

/// Each YAML block of these guides is a complete definition, unless it is for a named file.
#[test]
fn every_piece_of_a_guide_compiles() {
    for (guide, least) in [("models", 5), ("artifacts", 3), ("knowledge", 3)] {
        let path = world::root().join(format!("docs/guides/{guide}.md"));
        let pieces = blocks(&std::fs::read_to_string(path).unwrap());
        // A block for a named file may be a part of a definition, or something else.
        let pieces = pieces
            .iter()
            .filter(|b| b.fence == "yaml" && b.file.is_none());
        let pieces: Vec<&Block> = pieces.collect();
        assert!(pieces.len() >= least, "{guide}: {}", pieces.len());
        for piece in pieces {
            let (network, found) = compile(&Files::new("steersman.yaml", piece.text.as_str()));
            let found: Vec<String> = found.iter().map(|d| d.render(false)).collect();
            assert!(
                network.is_some(),
                "{guide}, line {}\n{}",
                piece.line,
                found.join("\n")
            );
        }
    }
}

#[test]
fn every_test_of_a_definition_in_the_concepts_holds() {
    let mut ran = 0;
    let mut failures = Vec::new();
    for page in world::files(&world::root().join("docs/concepts")) {
        for block in blocks(&std::fs::read_to_string(&page).unwrap()) {
            if block.fence != "yaml" || !block.text.starts_with("steersman: 1\n") {
                continue;
            }
            let files = Files::new("steersman.yaml", block.text.as_str());
            let (compiled, _) = compile_with_tests(&files, None);
            let compiled = compiled.expect("it compiles: another test says why not");
            let network = Arc::new(compiled.network);
            for (name, test) in &compiled.tests {
                ran += 1;
                let found = match case::run(network.clone(), test) {
                    Ok(ran) => ran.failures,
                    Err(fault) => vec![fault.0],
                };
                failures.extend(
                    found
                        .into_iter()
                        .map(|f| format!("{}, {name}: {f}", shown(&page))),
                );
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(ran >= 10, "every router's page has tests, not {ran}");
}

#[test]
fn every_link_of_a_document_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for (_, rest) in text
            .match_indices("](")
            .map(|(at, _)| text.split_at(at + 2))
        {
            let link = rest.split([')', '#']).next().unwrap_or_default();
            let elsewhere = link.is_empty() || link.contains("://");
            if !elsewhere && !page.parent().unwrap().join(link).exists() {
                broken.push(format!("{}: {link}", shown(&page)));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// A newcomer finds only what the README and the list of documents name: all pages and examples.
#[test]
fn each_page_and_example_is_named_where_newcomers_look() {
    let read = |path: &str| std::fs::read_to_string(world::root().join(path)).unwrap();
    let readme = read("README.md");
    let mut missing = Vec::new();
    let list = read("docs/README.md");
    for folder in ["concepts", "guides", "reference"] {
        for page in std::fs::read_dir(world::root().join("docs").join(folder)).unwrap() {
            let page = page.unwrap().file_name().into_string().unwrap();
            let link = format!("({folder}/{page}");
            let is_page = Path::new(&page).extension().is_some_and(|e| e == "md");
            if is_page && !list.contains(&link) {
                missing.push(format!("docs/README.md: {folder}/{page}"));
            }
        }
    }
    for example in std::fs::read_dir(world::root().join("examples")).unwrap() {
        let name = example.unwrap().file_name().into_string().unwrap();
        if !readme.contains(&format!("(examples/{name}/README.md)")) {
            missing.push(format!("README.md: the example {name}"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_guide_to_a_first_definition_is_true() {
    let mut world = World::new();
    let _shop = Service::support(&mut world, false);
    let guide = world::root().join("docs/guides/first-definition.md");
    transcript_is_true(&guide, &world);
}

#[test]
fn the_guide_to_operating_is_true() {
    let world = World::new();
    let guide = world::root().join("docs/guides/operating.md");
    transcript_is_true(&guide, &world);
}

#[test]
fn the_guide_to_grading_is_true() {
    let guide = world::root().join("docs/guides/grading.md");
    transcript_is_true(&guide, &World::new());
}

#[test]
fn the_guide_to_artifacts_is_true() {
    let guide = world::root().join("docs/guides/artifacts.md");
    transcript_is_true(&guide, &World::new());
}

#[test]
fn the_guide_to_knowledge_is_true() {
    let guide = world::root().join("docs/guides/knowledge.md");
    transcript_is_true(&guide, &World::new());
}

#[test]
fn the_guide_to_simulation_is_true() {
    let guide = world::root().join("docs/guides/simulation.md");
    transcript_is_true(&guide, &World::new());
}

#[test]
fn the_guide_to_testing_is_true() {
    let guide = world::root().join("docs/guides/testing.md");
    transcript_is_true(&guide, &World::new());
}

#[test]
fn the_guide_to_parallel_agents_is_true() {
    let guide = world::root().join("docs/guides/parallel.md");
    transcript_is_true_in_any_order(&guide, &World::new());
}

#[test]
fn the_guide_to_tools_is_true() {
    let guide = world::root().join("docs/guides/tools.md");
    transcript_is_true(&guide, &World::new());
}

#[test]
fn the_guide_to_people_is_true() {
    let guide = world::root().join("docs/guides/people.md");
    transcript_is_true(&guide, &World::new());
}

#[test]
fn the_guide_to_models_is_true() {
    let guide = world::root().join("docs/guides/models.md");
    transcript_is_true(&guide, &World::new());
}

/// `scripts/killed-refund.sh` needs Python and a network, so it is run by hand. `killed.rs` has our half of it.
#[test]
fn the_definition_of_the_killed_refund_is_sound() {
    let folder = world::root().join("scripts/killed-refund");
    let checked = World::new().run(&["check", folder.to_str().unwrap()]);
    assert_eq!(checked.code, Some(0), "{}", checked.out);
    assert!(!checked.out.contains("warning"), "{}", checked.out);
}

#[test]
fn the_picture_of_the_readme_is_what_the_program_draws() {
    let world = World::example("support");
    let drawn = world.run(&["graph", "support", "--format", "svg"]).out;
    let kept = world::root().join("docs/pictures/support.svg");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|v| v == "always") {
        std::fs::write(&kept, &drawn).unwrap();
    }
    let kept = std::fs::read_to_string(kept).unwrap();
    assert!(kept.trim_end() == drawn.trim_end(), "INSTA_UPDATE=always");
}

#[test]
fn the_guide_to_patterns_is_true() {
    let guide = world::root().join("docs/guides/patterns.md");
    transcript_is_true(&guide, &World::new());
}

/// A person who looks for the code of a stop finds its cause and its remedy.
#[test]
fn every_code_of_a_stop_has_a_remedy() {
    let codes = FailureCode::ALL.iter().map(|code| code.text());
    let named = Code::ALL.iter().filter(|code| code.may_be_caught_by_name());
    let codes = codes.chain(named.map(|code| code.text()));
    let missing: Vec<&str> = codes
        .filter(|code| remedy::of(code).next().is_none())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The tables of the guide to troubleshooting are those of the program. `UPDATE=1` writes them.
#[test]
fn the_guide_to_troubleshooting_has_the_remedies_of_the_program() {
    let file = world::root().join("docs/guides/troubleshooting.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let mut wanted = page.clone();
    for part in Part::ALL {
        let heading = match part {
            Part::Model => "## A model call failed\n",
            Part::Limit => "## A limit was reached\n",
            Part::Call => "## A call of a tool failed\n",
        };
        let section = wanted.find(heading).expect(heading);
        let head = "| code | cause | remedy |\n|---|---|---|\n";
        let start = section + wanted[section..].find(head).expect(head) + head.len();
        let end = start + wanted[start..].find("\n\n").unwrap_or(0) + 1;
        let end = if wanted[start..].starts_with('\n') {
            start
        } else {
            end
        };
        wanted.replace_range(start..end, &remedy::table(part));
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, wanted).unwrap();
    } else {
        assert_eq!(page, wanted);
    }
}

#[test]
fn the_guide_to_mcp_servers_is_what_happens() {
    let world = World::example("research");
    transcript_is_true(&world::root().join("docs/guides/mcp.md"), &world);
}
