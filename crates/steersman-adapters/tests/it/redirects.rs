//! Redirects: a server that answers with one may have done the call, so a redirect is followed only where doing the call
//! again does no harm.

use crate::listener::{Listener, Reply};
use crate::tools::{env, network, run, run_of_t, shown};
use serde_json::json;
use steersman_adapters::http::HttpTools;

/// Calls the tool `t` of this class and method once. Returns the outcome, and the number of requests.
async fn call(class: &str, method: &str, more: &str, replies: Vec<Reply>) -> (String, usize) {
    let server = Listener::new(replies).await;
    let network = network(&format!(
        r#"
config: {{ base: {{ type: string, env: BASE, live: true }} }}
agents: {{ a: {{ system: Do., tools: [t] }} }}
tools:
  t: {{ description: Does it., effect: {class}, http: {{ method: {method}, url: "{{{{ config.base }}}}/pay"{more} }} }}
"#
    ));
    let run_of = run_of_t(&network, json!({}), &env(&[("BASE", &server.url)]));
    let raw = run(&HttpTools::default(), &run_of).await;
    (shown(&raw), server.requests().len())
}

fn to(status: u16, place: &str) -> Reply {
    Reply::with(status, &[("location", place)], "")
}

fn ok() -> Reply {
    Reply::json(200, r#"{"ok":true}"#)
}

fn gone() -> Reply {
    Reply::with(404, &[], "")
}

#[tokio::test]
async fn a_redirect_of_a_call_that_must_not_be_repeated_is_in_doubt() {
    for class in ["unsafe", "idempotent"] {
        for method in ["GET", "HEAD", "POST", "DELETE"] {
            for status in [301, 302, 303, 307, 308] {
                // The second place gets no request, whatever it would answer.
                for second in [gone(), to(status, "/pay"), ok()] {
                    let replies = vec![to(status, "/receipt"), second];
                    let (told, asked) = call(class, method, "", replies).await;
                    let what = format!("{class} {method} {status}: {told}");
                    assert!(
                        told.starts_with(&format!("unknown: http_{status}")),
                        "{what}"
                    );
                    assert!(!told.contains(" again "), "{what}");
                    assert_eq!(asked, 1, "{what}");
                }
            }
        }
    }
}

#[tokio::test]
async fn what_a_redirect_says_may_be_declared() {
    for (outcome, expected) in [
        ("done", "done: null"),
        ("not_performed", "not performed: http_303"),
    ] {
        let more = format!(", outcomes: {{ 303: {outcome} }}");
        let (told, asked) = call("unsafe", "GET", &more, vec![to(303, "/receipt")]).await;
        assert!(told.starts_with(expected), "{told}");
        assert_eq!(asked, 1);
    }
}

#[tokio::test]
async fn what_reads_is_led_to_where_it_is() {
    for class in ["pure", "read"] {
        let (told, asked) = call(class, "GET", "", vec![to(307, "/there"), ok()]).await;
        assert_eq!((&*told, asked), (r#"done: {"ok":true}"#, 2));
        // A second place that fails does no harm: the call may be made again.
        let (told, asked) = call(class, "GET", "", vec![to(303, "/there"), gone()]).await;
        assert!(told.starts_with("not performed: http_404"), "{told}");
        assert_eq!(asked, 2);
        // A body is sent to one place only.
        let (told, asked) = call(class, "POST", "", vec![to(307, "/there"), ok()]).await;
        assert!(told.starts_with("unknown: http_307"), "{told}");
        assert_eq!(asked, 1);
    }
}
