//! The folder of a definition and its sessions: secrets and files are read from the folder in which a session was
//! started.

use std::path::PathBuf;
use steersman::{By, Network, Steersman, Turn};

/// The text of both definitions. Their folders have different secrets and files.
const TEXT: &str = r#"
name: place
secrets: { pin: { file: pin.txt } }
tools:
  look:
    description: Looks.
    command: [sh, -c, 'printf "%s, " "$PIN" | tr a-z A-Z; cat where.txt']
    env: { PIN: "{{ secrets.pin }}" }
    effect: read
    approve: { by: user }
agents: { main: { system: You look., tools: [look] } }
"#;

const SCRIPT: &str = "main: [{ call: { look: {} } }, \"{{ request.last }}\"]";

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("steersman-folder-{}", std::process::id()));
        for name in ["here", "there"] {
            let place = folder.join(name);
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("steersman.yaml"), TEXT).unwrap();
            std::fs::write(place.join("pin.txt"), format!("pin-{name}\n")).unwrap();
            std::fs::write(place.join("where.txt"), name).unwrap();
        }
        Self(folder)
    }

    async fn process(&self) -> Steersman {
        let setup = Steersman::options().script_all(SCRIPT);
        setup.open(self.0.join("sessions.db")).await.unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn two_folders_with_the_same_text_are_two_places_also_after_a_restart() {
    let folder = Folder::new();
    let mut begun = Vec::new();
    {
        let steersman = folder.process().await;
        for name in ["here", "there"] {
            let network = Network::from_path(folder.0.join(name)).unwrap();
            let network = network.build().unwrap();
            let session = steersman.start(&network).await.unwrap();
            let Turn::Asks(questions) = session.ask("Look.").await.unwrap() else {
                panic!("it is to be approved");
            };
            begun.push((name, session.id().to_owned(), questions));
        }
        steersman.engine().stop().await;
    }
    let steersman = folder.process().await;
    for (name, id, questions) in &begun {
        let session = steersman.session(id).await.unwrap();
        session.approve(&questions[0], By::user()).await.unwrap();
        let Turn::Answer(answer) = session.settled().await.unwrap() else {
            panic!("it ends");
        };
        // each command had the secret and the file of its own folder
        let both = format!("PIN-{}, {name}", name.to_uppercase());
        assert_eq!(answer.to_string(), both);
    }
}
