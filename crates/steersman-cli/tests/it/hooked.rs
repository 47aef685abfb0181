//! `context` over a session of a program with hooks: what was sent, and what it was before.

use crate::world::World;
use steersman::{Network, Steersman, TextOf, Turn, hook};

const DEFINITION: &str = "
steersman: 1
name: desk
agents: { desk: { system: You settle complaints. } }
hooks: { redact: { native: 1 } }
";

/// A program with a hook makes a session in a store. Its next owner may be another program.
async fn made(store: &std::path::Path) {
    let redact = hook("redact", 1).before_model(|_, request| {
        for said in request.texts_mut().filter(|said| said.of() == TextOf::User) {
            said.text = said.text.replace("4111 1111", "[card]");
        }
        request.add("Be brief.");
        Ok(())
    });
    let network = Network::from_yaml(DEFINITION).hook(redact).build();
    let steersman = Steersman::options().script_all("desk: [ We pay it back. ]");
    let steersman = steersman.open(store).await.expect("a store");
    let session = steersman.start(&network.expect("sound")).await;
    let session = session.expect("it begins");
    let turn = session.ask("You charged 4111 1111 twice.").await;
    assert!(matches!(turn, Ok(Turn::Answer(_))), "{turn:?}");
    steersman.stop().await;
}

#[test]
fn context_shows_what_was_sent_beside_what_it_was_before() {
    let world = World::new();
    let store = world.folder.join("hooked.db");
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    runtime.block_on(made(&store));
    let look = ["context", "last", "--store", store.to_str().expect("text")];
    let shown = world.run(&look);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let lines: Vec<&str> = shown.out.lines().map(str::trim).collect();
    let at = |text: &str| {
        let found = lines.iter().position(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("{text}: {}", shown.out))
    };
    let sent = at("You charged [card] twice.");
    let before = at("before hook `redact`");
    let unedited = at("You charged 4111 1111 twice.");
    assert!(sent < before && before <= unedited, "{}", shown.out);
    assert!(
        at("Be brief.") < at("added by hook `redact`"),
        "{}",
        shown.out
    );
    assert!(shown.all().contains("As it was sent"), "{shown:?}");
    let (_, json) = world.json(&look);
    let segments = json["segments"].as_array().expect("a list");
    let hooked: Vec<_> = segments
        .iter()
        .filter(|segment| !segment["hooked"].is_null())
        .collect();
    assert_eq!(hooked.len(), 2, "{json}");
    assert!(
        hooked[0]["hooked"]["unedited"]
            .to_string()
            .contains("4111 1111"),
        "{json}"
    );
    assert!(hooked[1]["hooked"]["unedited"].is_null(), "{json}");
}
