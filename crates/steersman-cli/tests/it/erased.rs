//! `erase --subject`, `--tenant` and `--where`: all that is meant is in no file afterwards, and nothing of others goes.

use crate::world::World;
use serde_json::json;
use steersman::runtime::store::{Conversation, ScheduleId, Webhook, WebhookId};
use steersman::{Network, Scope, StartOptions, Steersman};
use steersman_machine::stored::ids::{Line, Time};

const DESK: &str = r"
name: desk
labels: { said: '{{ answer }}' }
outcome: { noted: answer }
events: { note: { fields: { order: string, text: string }, id: '{{ event.order }}' } }
schedules: { daily: { every: 1d, start: { message: Look. } } }
tools:
  await_note:
    description: Waits.
    parameters: { order: string }
    wait: { event: note, match: { order: '{{ args.order }}' } }
agents: { desk: { system: You note., tools: [memory, artifacts, await_note] } }
";

/// Each person has a secret. All have the same picture.
const SCRIPT: &str = r#"
desk:
  - call: { memory_save: { name: PLANTED, content: "PLANTED, remembered." } }
  - call: { artifact_write: { name: own.md, content: "PLANTED, written." } }
  - call: { artifact_write: { name: all.md, content: "The same for all: 4711." } }
  - PLANTED, said.
"#;

fn scope(tenant: &str, subject: &str) -> Scope {
    Scope {
        tenant: tenant.into(),
        subject: Some(subject.into()),
    }
}

/// Puts everything that a person may have into the store: a session with a long text, a memory, artifacts, an event, the head of
/// a conversation.
async fn moves_in(world: &World, of: Scope, planted: &str) -> String {
    let script = SCRIPT.replace("PLANTED", planted);
    let file = world.folder.join(".steersman/sessions.db");
    let whole = Steersman::options().script_all(script).open(file).await;
    let whole = whole.unwrap();
    let own = whole.scoped(of.clone());
    let network = Network::from_yaml(DESK).build().unwrap();
    let options = StartOptions {
        say: Some(format!("{planted} is long. ").repeat(4_000)),
        ..StartOptions::default()
    };
    let session = own.start_with(&network, options).await.unwrap();
    assert!(session.settled().await.unwrap().answer().is_some());
    let payload = json!({ "order": planted.len().to_string(), "text": planted });
    own.post(&network, "note", &payload).await.unwrap();
    let store = whole.engine().store();
    let head = Conversation {
        tenant: of.tenant.clone(),
        digest: [planted.len() as u8; 32],
        session: session.id().into(),
        line: Line(1),
        at: Time(1),
    };
    store.put_conversation(head).await.unwrap();
    let id = session.id().to_owned();
    session.stop().await;
    whole.stop().await;
    id
}

/// Puts a webhook and the schedules of the definition into the store, for a tenant.
async fn opens(world: &World, tenant: &str) {
    let file = world.folder.join(".steersman/sessions.db");
    let whole = Steersman::options().open(file).await.unwrap();
    let hook = Webhook {
        id: WebhookId {
            tenant: tenant.into(),
            name: "crm".into(),
        },
        url: "https://crm.example/ann-webhook".into(),
        kinds: Vec::new(),
        only: None,
        secrets: Vec::new(),
        made: Time(1),
        failing: None,
    };
    let store = whole.engine().store();
    assert!(store.put_webhook(hook).await.unwrap());
    let network = Network::from_yaml(DESK).build().unwrap();
    let daily = whole.schedule(&network).await.unwrap().remove(0);
    let id = ScheduleId {
        tenant: tenant.into(),
        ..daily.id.clone()
    };
    let own = steersman::runtime::store::Schedule { id, ..daily };
    assert!(store.put_schedule(own).await.unwrap());
    whole.stop().await;
}

/// Returns the files of the store that hold a text.
fn files_with(world: &World, text: &str) -> Vec<String> {
    let folder = std::fs::read_dir(world.folder.join(".steersman")).unwrap();
    let mut found = Vec::new();
    for file in folder.map(Result::unwrap) {
        let bytes = std::fs::read(file.path()).unwrap_or_default();
        if bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
        {
            found.push(file.file_name().into_string().unwrap());
        }
    }
    found
}

fn is_here(world: &World, text: &str) -> bool {
    !files_with(world, text).is_empty()
}

#[tokio::test]
async fn what_a_person_said_is_in_no_file_and_what_others_said_is() {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    let ann = moves_in(&world, scope("acme", "ann"), "ann-planted").await;
    let bob = moves_in(&world, scope("acme", "bob"), "bob-planted-2").await;
    let far = moves_in(&world, scope("other", "ann"), "far-planted-34").await;
    let args = ["token", "new", "--tenant", "acme", "--subject", "ann"];
    let token = world.run(&[&args[..], &["--note", "ann-note"]].concat());
    assert_eq!(token.code, Some(0), "{token:?}");
    let token = token.out.trim().to_owned();
    let name = token.trim_start_matches("stm_").split('_').next().unwrap();
    assert!(is_here(&world, name) && is_here(&world, "ann-planted"));

    let erase = ["erase", "--tenant", "acme", "--subject", "ann"];
    let (code, told) = world.json(&erase);
    assert_eq!((code, &told["erased"]), (Some(0), &json!(false)), "{told}");
    assert_eq!(told["sessions"], json!([ann]));
    let told = world.run(&erase);
    for part in [
        "1 session, ",
        " texts, 1 memory, 1 event, 1 token, 1 head of a conversation of subject `ann` of tenant `acme` would be erased, for good.",
        "steersman erase --subject ann --tenant acme --yes",
    ] {
        assert!(told.err.contains(part), "{part}: {told:?}");
    }
    assert!(is_here(&world, "ann-planted"), "it was only told");

    let done = world.run(&[&erase[..], &["--yes"]].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    for part in [
        "Everything still verifies",
        "1 content stays, because another session or a memory has the same.",
        "Copies of the store (backups) still hold all of it.",
    ] {
        assert!(done.err.contains(part), "{part}: {done:?}");
    }
    for gone in ["ann-planted", "ann-note", name] {
        assert_eq!(files_with(&world, gone), [""; 0], "{gone}");
    }
    for here in ["bob-planted-2", "far-planted-34", "The same for all: 4711."] {
        assert!(is_here(&world, here), "{here}");
    }
    assert_eq!(world.run(&["fsck"]).code, Some(0));
    let shown = world.run(&["show", &ann]);
    assert!(shown.out.contains("[erased]"), "{shown:?}");
    for other in [&bob, &far] {
        let shown = world.run(&["show", other]);
        assert!(shown.out.contains("planted"), "{shown:?}");
    }
    let (code, again) = world.json(&[&erase[..], &["--yes"]].concat());
    assert_eq!((code, &again["texts"]), (Some(0), &json!(0)), "{again}");
    assert_eq!(again["left"], json!([]));
}

#[tokio::test]
async fn a_tenant_goes_with_its_webhooks_and_schedules() {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    moves_in(&world, scope("acme", "ann"), "ann-planted").await;
    moves_in(&world, scope("other", "ann"), "far-planted-34").await;
    opens(&world, "acme").await;
    let (code, told) = world.json(&["erase", "--tenant", "acme", "--yes"]);
    assert_eq!(code, Some(0), "{told}");
    for (what, number) in [
        ("webhooks", 1),
        ("schedules", 1),
        ("events", 1),
        ("memories", 1),
    ] {
        assert_eq!(told[what], number, "{what}: {told}");
    }
    for gone in ["ann-planted", "ann-webhook"] {
        assert_eq!(files_with(&world, gone), [""; 0], "{gone}");
    }
    assert!(is_here(&world, "far-planted-34"));
    let schedules = world.json_lines(&["schedule"]);
    assert_eq!(schedules.len(), 1, "that of the store without a tenant");
}

/// A session that waits is named and stays; everything else goes, and the command ends with 1.
#[test]
fn all_that_match_are_erased_except_what_is_open() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: desk\nagents: { desk: { system: You ask., tools: [ask] } }\n",
    );
    let run = |script: &str, input: &str, code| {
        world.write("script.yaml", script);
        let ran = world.run(&["run", "--input", input, "--script-all", "script.yaml"]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
    };
    run("desk: [ Seen planted-one. ]", "I am planted-one.", 0);
    let rerun = world.run(&["rerun", "last"]);
    assert_eq!(rerun.code, Some(0), "{rerun:?}");
    run(
        "desk: [ { call: { ask: { question: planted-two? } } }, So. ]",
        "I am planted-two.",
        5,
    );
    let (code, told) = world.json(&["erase", "--where", "network = desk"]);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(told["left"][0]["status"], "open", "{told}");
    let erase = ["erase", "--where", "network = desk", "--yes"];
    let (code, told) = world.json(&erase);
    assert_eq!(code, Some(1), "{told}");
    assert_eq!(told["sessions"].as_array().unwrap().len(), 2, "{told}");
    assert_eq!(files_with(&world, "planted-one"), [""; 0]);
    assert!(is_here(&world, "planted-two"));
    assert_eq!(world.run(&["cancel", "last"]).code, Some(0));
    let done = world.run(&erase);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(files_with(&world, "planted-two"), [""; 0]);
    let none = world.run(&["erase", "--where", "network = nobody", "--yes"]);
    assert_eq!(none.code, Some(0), "{none:?}");
    for args in [
        &["erase"][..],
        &["erase", "last", "--subject", "ann"],
        &["erase", "--subject", "ann", "--where", "network = desk"],
        &["erase", "--subject", "ann", "--memory"],
        &["erase", "--subject", "ann", "--effect", "2.1"],
        &["erase", "--tenant", ""],
        &["erase", "--where", "colour = red"],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(2), "{args:?} {ran:?}");
    }
}

/// The definition says how long sessions are kept; lists say when each goes, and the process that drives all says how many went.
#[test]
fn a_session_goes_after_its_time_and_lists_say_when() {
    const DAY: i64 = 86_400_000;
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: desk\nsessions: { keep: 90d }\nagents: { desk: { system: You note. } }\n",
    );
    world.write("script.yaml", "desk: [ Noted planted-one. ]\n");
    let now = jiff::Timestamp::now().as_millisecond();
    world.write("clock", &now.to_string());
    let checked = world.run(&["check"]);
    assert!(
        checked
            .out
            .contains("sessions    erased 90 d after their end"),
        "{checked:?}"
    );
    let args = ["--clock", "clock", "--script-all", "script.yaml"];
    let ran = world.run(&[&["run", "--input", "I am planted-one."][..], &args].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let listed = world.run(&["sessions"]);
    assert!(listed.out.contains("erased in 90 d"), "{listed:?}");
    let at = jiff::Timestamp::from_millisecond(now + 90 * DAY).unwrap();
    for look in [&["sessions"][..], &["show", "last"]] {
        let (_, document) = world.json(look);
        assert_eq!(document["erased_at"], at.to_string(), "{document}");
    }
    let shown = world.run(&["show", "last"]);
    let told = "erased in 90 d, as its definition says (sessions: { keep: .. })";
    assert!(shown.out.contains(told), "{shown:?}");

    let all = [&["run", "--all", "--until-idle"][..], &args].concat();
    let ran = world.run(&all);
    assert!(!ran.err.contains("Erased"), "{ran:?}");
    assert!(is_here(&world, "planted-one"));
    world.write("clock", &(now + 90 * DAY).to_string());
    let ran = world.run(&all);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = "Erased 1 session: the time for which their definition keeps them is over.";
    assert!(ran.err.contains(told), "{ran:?}");
    assert_eq!(files_with(&world, "planted-one"), [""; 0]);
    let (_, document) = world.json(&["show", "last"]);
    assert_eq!(document["erased_at"], json!(null), "{document}");
    let again = world.json_lines(&all);
    assert!(
        again.iter().all(|told| told["status"] != "erased"),
        "{again:?}"
    );
    assert_eq!(world.run(&["fsck"]).code, Some(0));
}
