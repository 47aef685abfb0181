//! Secrets and the key that seals them.

use crate::tools::{env, network};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use steersman_adapters::secrets::{KeyError, Opened, Rotation, rotate, sealer};
use steersman_machine::values::expression::{Names, Template};
use steersman_runtime::seal::{KeyId, Sealer};
use steersman_runtime::secrets::SecretError;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("steersman-secrets-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn secrets_and_live_values_are_read_at_each_use() {
    let folder = Folder::new("read");
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::write(folder.0.join("password"), "pass word\n").unwrap();
    let network = network(
        "secrets: { a: { env: A }, b: { file: password }, c: { env: C, optional: true } }\n\
         config: { url: { type: string, env: URL, live: true, default: home }, n: { type: integer, default: 3 } }\n\
         agents: { x: { system: Hi. } }",
    );
    let text = |names: &[(&str, &str)]| {
        let inner = Names::from_json(json!({ "config": { "n": 3 } }));
        let scope = Opened::new(inner, &network, &env(names), &folder.0)?;
        let template =
            "{{ secrets.a }}|{{ secrets.b }}|{{ secrets.c }}|{{ config.url }}|{{ config.n }}";
        Ok::<_, SecretError>(Template::parse(template).unwrap().render(&scope).unwrap())
    };
    assert_eq!(
        text(&[("A", "1"), ("URL", "there")]).unwrap(),
        "1|pass word||there|3"
    );
    std::fs::write(folder.0.join("password"), "changed").unwrap();
    assert_eq!(
        text(&[("A", "2"), ("C", "c")]).unwrap(),
        "2|changed|c|home|3"
    );
    let error = text(&[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "secret `a` is not set: set the environment variable A"
    );
    std::fs::remove_file(folder.0.join("password")).unwrap();
    let error = text(&[("A", "1")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "secret `b` is not set: set the file password"
    );
}

#[test]
fn a_secret_that_is_no_plain_file_is_refused_at_once() {
    let folder = Folder::new("pipe");
    std::fs::create_dir_all(&folder.0).unwrap();
    let pipe = std::process::Command::new("mkfifo")
        .arg(folder.0.join("pipe"))
        .status();
    assert!(pipe.unwrap().success());
    std::fs::write(folder.0.join("large"), "x".repeat((64 << 10) + 1)).unwrap();
    for (file, why) in [
        (
            "pipe",
            "`pipe` cannot be read: it is a pipe and no plain file",
        ),
        (
            "/dev/zero",
            "`/dev/zero` cannot be read: it is a device and no plain file",
        ),
        ("large", "`large` cannot be read: it is larger than 64 KiB"),
    ] {
        let network = network(&format!(
            "secrets: {{ a: {{ file: {file} }} }}\nagents: {{ x: {{ system: Hi. }} }}"
        ));
        let opened = Opened::new(Names::from_json(json!({})), &network, &env(&[]), &folder.0);
        let error = opened.err().expect("it is refused").to_string();
        assert_eq!(error, format!("secret `a`: {why}"));
    }
}

/// The keys of a sealer that is found in a folder, the one that seals first.
fn keys(folder: &Folder, of: &[(&str, &str)]) -> Result<Vec<KeyId>, KeyError> {
    Ok(sealer(&folder.0, &env(of))?.keys().collect())
}

#[test]
fn the_sealing_key_is_made_once_and_is_for_its_owner_alone() {
    let folder = Folder::new("key");
    let made = std::thread::scope(|scope| {
        let makers = (0..8)
            .map(|_| scope.spawn(|| sealer(&folder.0, &env(&[])).unwrap()))
            .collect::<Vec<_>>();
        makers
            .into_iter()
            .map(|maker| maker.join().unwrap())
            .collect::<Vec<_>>()
    });
    let sealed = made[0].seal_text("x");
    for one in &made {
        let opened = one.open_text(&sealed);
        assert_eq!(opened.unwrap().as_str(), "x", "of several makers one wins");
    }
    let file = folder.0.join("key");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        std::fs::read_dir(&folder.0).unwrap().count(),
        1,
        "nothing is left beside it"
    );
    let known: Vec<KeyId> = made[0].keys().collect();
    assert_eq!(known.len(), 1);
    assert_eq!(keys(&folder, &[]).unwrap(), known);

    let other: Vec<KeyId> = Sealer::new(&[0xab; 32]).keys().collect();
    let digits = "ab".repeat(32);
    assert_eq!(
        keys(&folder, &[("STEERSMAN_KEY", &digits)]).unwrap(),
        other,
        "the variable goes before the file"
    );
    let wrong = keys(&folder, &[("STEERSMAN_KEY", "short")]);
    assert!(matches!(wrong, Err(KeyError::Variable)));

    // A new key goes before the old one, which still opens.
    let old = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{digits}\n{old}\n")).unwrap();
    let both = sealer(&folder.0, &env(&[])).unwrap();
    assert_eq!(both.keys().collect::<Vec<_>>(), [other, known].concat());
    assert_eq!(both.open_text(&sealed).unwrap().as_str(), "x");
    assert!(made[0].open_text(&both.seal_text("y")).is_err());

    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(
        keys(&folder, &[]),
        Err(KeyError::Open { mode: 0o644, .. })
    ));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    for damaged in [
        "not a key".to_owned(),
        String::new(),
        format!("{old}\n{}", &digits[1..]),
        format!("{old}\n").repeat(9),
        format!("{old}{}{old}", " ".repeat(5000)),
    ] {
        std::fs::write(&file, &damaged).unwrap();
        assert!(
            matches!(keys(&folder, &[]), Err(KeyError::Damaged(_))),
            "never replaced in silence: {damaged}"
        );
    }
}

#[test]
fn keys_that_are_exchanged_at_the_same_time_are_all_kept() {
    let folder = Folder::new("rotate");
    let none = rotate(&folder.0, &env(&[]), &Rotation::New);
    assert!(matches!(none, Err(KeyError::NoneYet(_))));
    let sealed = sealer(&folder.0, &env(&[])).unwrap().seal_text("x");
    let at = &folder.0;
    std::thread::scope(|scope| {
        for how in [Rotation::New, Rotation::Prepare]
            .into_iter()
            .cycle()
            .take(7)
        {
            scope.spawn(move || rotate(at, &env(&[]), &how).unwrap());
        }
    });
    let full = rotate(&folder.0, &env(&[]), &Rotation::New);
    assert!(matches!(full, Err(KeyError::Full(_))));
    let now = keys(&folder, &[]).unwrap();
    assert_eq!(now.len(), 8);
    assert_eq!(
        sealer(&folder.0, &env(&[]))
            .unwrap()
            .open_text(&sealed)
            .unwrap()
            .as_str(),
        "x"
    );
    let last = now[7].to_string();
    let turned = rotate(&folder.0, &env(&[]), &Rotation::To(last)).unwrap();
    assert_eq!(
        turned.keys().collect::<Vec<_>>(),
        [&now[7..], &now[..7]].concat()
    );
    assert_eq!(
        std::fs::read_dir(&folder.0).unwrap().count(),
        1,
        "nothing is left beside it"
    );
}
