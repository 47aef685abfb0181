//! Messages of failures are shortened, and a service may repeat in them what it was sent. Wherever a text is cut, by us or
//! on the way, no part of a secret is left.

use crate::azure::azure;
use crate::bedrock::bedrock;
use crate::gemini::{gemini, vertex};
use crate::listener::{Frame, Listener, Reply};
use crate::messages::messages;
use crate::request::{Seen, call_of, chat, request, user};
use crate::responses::responses;
use crate::tools::{env, network, run, run_of_t, shown};
use serde_json::{Value as Json, json};
use std::fmt::Debug;
use steersman_adapters::command::CommandTools;
use steersman_adapters::http::HttpTools;
use steersman_machine::view::mapping::Raw;
use steersman_runtime::model::{Embed, Model, Transport};
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-SECRET-0123456789-\"ABCDEFGHIJ\"-klmnopqrst-END";

/// Checks that no four characters in a row of the key are in the text, plain or as JSON.
pub(crate) fn tells_nothing_of(key: &str, told: &str, what: impl Debug) {
    let escaped = Json::from(key).to_string();
    for form in [key, &escaped[1..escaped.len() - 1]] {
        for part in form.as_bytes().windows(4) {
            let part = std::str::from_utf8(part).unwrap();
            assert!(
                !told.contains(part),
                "{what:?}: `{part}` of the key in {told}"
            );
        }
    }
}

/// A text with the key after this many bytes.
fn around(before: usize) -> String {
    format!("{}{KEY}{}", ".".repeat(before), "~".repeat(4_000))
}

/// Positions around a cut.
fn near(cut: usize) -> impl Iterator<Item = usize> {
    (cut - 90..cut + 10).step_by(3)
}

async fn fails(model: &dyn Model) -> String {
    let call = call_of(request(vec![user("Hi")]), Some(KEY));
    let (seen, cancel) = (Seen::default(), CancellationToken::new());
    let answer = model.call(&call, &seen, &cancel).await;
    answer.unwrap_err().message
}

#[tokio::test]
async fn a_failure_of_a_model_tells_no_part_of_its_key() {
    let event = |text: &str| format!("data: {text}\n\n");
    let error = |text: String| json!({ "error": { "message": text } }).to_string();
    for before in near(2_000) {
        let text = around(before);
        let said = error(text.clone());
        let replies = vec![
            Reply::with(500, &[], &text),
            Reply::json(400, &said),
            Reply::stream(&[&event(&text)]),
            Reply::stream(&[&event(&said)]),
            Reply::json(200, &text),
            Reply::with(
                200,
                &[("content-type", "text/html")],
                around(before - 1_820),
            ),
            // The server itself stops in the middle.
            Reply::with(500, &[], &text[..before + before % 40]),
        ];
        for reply in replies {
            let server = Listener::new(vec![reply; 8]).await;
            let url = &server.url;
            let openai = chat(url);
            let models: [Box<dyn Model>; 7] = [
                Box::new(chat(url)),
                Box::new(messages(url)),
                Box::new(responses(url)),
                Box::new(gemini(url)),
                Box::new(vertex(url)),
                Box::new(azure(url)),
                Box::new(bedrock(url)),
            ];
            for model in models {
                let told = fails(&*model).await;
                tells_nothing_of(KEY, &told, before);
                assert!(told.len() < 2_010, "{told}");
            }
            let embed = Embed {
                texts: vec!["Hi".into()],
                transport: Transport {
                    key: Some(KEY.to_owned()),
                    ..Transport::default()
                },
            };
            let told = openai.embed(&embed).await.unwrap_err().message;
            tells_nothing_of(KEY, &told, before);
            assert!(told.len() < 2_010, "{told}");
        }
    }
}

#[tokio::test]
async fn a_failure_over_http_tells_no_part_of_a_secret() {
    let network = network(
        r#"
config: { base: { type: string, env: BASE, live: true } }
secrets: { token: { env: TOKEN } }
agents: { a: { system: Do., tools: [t] } }
tools:
  t: { description: Does it., effect: read, http: { url: "{{ config.base }}/", headers: { x: "{{ secrets.token }}" } } }
"#,
    );
    let escaped = |before: usize| Json::from(around(before)).to_string();
    // Also after the last byte that is read: all before it is secret, and takes little room once it is replaced.
    let many = |before: usize| ".".repeat(before) + &KEY.repeat(2_000);
    let bodies = near(2_000).flat_map(|before| [around(before), escaped(before)]);
    for body in bodies.chain((0..50).map(many)) {
        for frame in [None, Some(Frame::Cut)] {
            let mut reply = Reply::with(404, &[], &body);
            reply.0.extend(frame);
            let server = Listener::new(vec![reply]).await;
            let run_of = run_of_t(
                &network,
                json!({}),
                &env(&[("BASE", &server.url), ("TOKEN", KEY)]),
            );
            let told = shown(&run(&HttpTools::default(), &run_of).await);
            assert!(told.starts_with("not performed: http_404"), "{told}");
            tells_nothing_of(KEY, &told, body.len());
        }
    }
}

async fn program(script: &str) -> Raw {
    let command = serde_json::to_string(&["sh", "-c", script]).unwrap();
    let network = network(&format!(
        r#"
secrets: {{ token: {{ env: TOKEN }} }}
agents: {{ a: {{ system: Do., tools: [t] }} }}
tools:
  t: {{ description: Does it., effect: read, command: {command}, env: {{ TOKEN: "{{{{ secrets.token }}}}" }} }}
"#
    ));
    let run_of = run_of_t(&network, json!({}), &env(&[("TOKEN", KEY)]));
    run(&CommandTools::default(), &run_of).await
}

#[tokio::test]
async fn the_last_words_of_a_program_tell_no_part_of_a_secret() {
    let fill = |n: usize, with: char| format!("head -c {n} /dev/zero | tr '\\0' '{with}' >&2; ");
    let say = "printf %s \"$TOKEN\" >&2; ";
    // The text is cut at the bound of what is shown, or of what is kept.
    for behind in near(2_000).chain(near(4_000)) {
        let script = fill(3_000, '.') + say + &fill(behind, '~') + "exit 3";
        let told = shown(&program(&script).await);
        assert!(told.contains("exit code 3: ..."), "{told}");
        tells_nothing_of(KEY, &told, behind);
    }
    // The output ends in the middle of the key.
    for len in (4..KEY.len()).step_by(5) {
        let told = shown(&program(&format!("printf %.{len}s \"$TOKEN\" >&2; exit 3")).await);
        tells_nothing_of(KEY, &told, len);
    }
}

#[tokio::test]
async fn an_output_that_is_not_kept_whole_ends_with_no_part_of_a_secret() {
    for len in [4, 20, KEY.len() - 1] {
        let before = (8 << 20) - len;
        let script =
            format!("head -c {before} /dev/zero | tr '\\0' '.'; printf '%s and more' \"$TOKEN\"");
        let Raw::Made { result, made, .. } = program(&script).await else {
            panic!("it is kept as an artifact");
        };
        assert_eq!(made[0].bytes.len(), before);
        let all = before + KEY.len() + " and more".len();
        let told = format!("(it printed {all} bytes, more than are kept: the first {before} are ");
        assert!(result.to_string().contains(&told), "{result}");
    }
    // The part that is shown of it is cut, too.
    for before in near(2_048) {
        let script = format!(
            "head -c {before} /dev/zero | tr '\\0' '.'; printf '%s\\377' \"$TOKEN\"; head -c 2000 /dev/zero | tr '\\0' '~'"
        );
        let Raw::Made { result, .. } = program(&script).await else {
            panic!("it is kept as an artifact");
        };
        tells_nothing_of(KEY, &result.to_string(), before);
    }
}
