//! The guide to front ends with AG-UI's own client (`scripts/agui-client.sh`).

use crate::docs::blocks;
use crate::served::{Served, provider};
use crate::world::{self, World};
use std::process::Command;

#[test]
#[ignore = "needs the client: STEERSMAN_AGUI=$(scripts/agui-client.sh)"]
fn the_program_of_the_guide_changes_the_amount() {
    provider();
    let world = World::new();
    let guide = std::fs::read_to_string(world::root().join("docs/guides/front-ends.md")).unwrap();
    let all = blocks(&guide);
    for block in all.iter().filter(|block| block.fence == "yaml") {
        world.write(block.file.as_ref().unwrap(), &block.text);
    }
    let served = Served::start(&world);
    let program = all.iter().find(|block| block.fence == "js").unwrap();
    let program = program.text.replace("http://127.0.0.1:7410", &served.at);
    world.write("page.mjs", &program);
    let place = std::env::var("STEERSMAN_AGUI").expect("the folder of the client");
    // Modules are looked for in the folder of the program.
    let modules = std::path::Path::new(&place).join("node_modules");
    std::os::unix::fs::symlink(modules, world.folder.join("node_modules")).unwrap();
    let out = Command::new("node")
        .arg("page.mjs")
        .current_dir(&world.folder)
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&out.stdout);
    let wrong = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{told}\n{wrong}");
    assert!(
        told.contains("editedArgs") && told.ends_with("It is sent.\n"),
        "{told}"
    );
}
