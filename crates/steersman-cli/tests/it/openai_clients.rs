//! The guide to serving with OpenAI's own client (`scripts/openai-clients.sh`).

use crate::docs::blocks;
use crate::served::{Served, provider};
use crate::world::{self, World};
use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "needs the clients: STEERSMAN_OPENAI=$(scripts/openai-clients.sh)"]
fn the_program_of_the_guide_gets_the_question() {
    provider();
    let world = World::new();
    let guide = std::fs::read_to_string(world::root().join("docs/guides/serving.md")).unwrap();
    let all = blocks(&guide);
    for block in all.iter().filter(|block| block.fence == "yaml") {
        world.write(block.file.as_ref().unwrap(), &block.text);
    }
    let served = Served::start(&world);
    let program = all.iter().find(|block| block.fence == "python").unwrap();
    let place = std::env::var("STEERSMAN_OPENAI").expect("the folder of the clients");
    let out = Command::new(Path::new(&place).join("python/bin/python"))
        .args([
            "-c",
            &program.text.replace("http://127.0.0.1:7410", &served.at),
        ])
        .current_dir(&world.folder)
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&out.stdout);
    let wrong = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{told}\n{wrong}");
    let page = format!("It is decided at: {}/#/s/", served.at);
    assert!(told.contains(&page), "{told}");
}
