//! The catalog: provider, address, key and price of each model of a definition.

use crate::listener::{Listener, Reply};
use crate::request::{call_of, request, user};
use crate::tools::{env, network};
use std::path::Path;
use std::sync::{Arc, Mutex};
use steersman_adapters::catalog::Catalog;
use steersman_adapters::wire::Quiet;
use steersman_runtime::model::{BoundModel, Models};
use tokio_util::sync::CancellationToken;

const LIST: &str = r#"{"object":"list","data":[{"id":"nomic-embed-text"},{"id":"smollm2"}]}"#;

async fn resolve(catalog: &Catalog, models: &str, vars: &[(&str, &str)]) -> String {
    let network = network(&format!(
        "{models}\nsecrets: {{ key: {{ env: KEY, optional: true }} }}\n\
         config: {{ url: {{ type: string, env: URL, live: true, default: none }} }}\nagents: {{ a: {{ system: Hi. }} }}"
    ));
    match catalog.resolve(&network, &env(vars), Path::new(".")).await {
        Ok(bound) => bound
            .iter()
            .map(|b| {
                let key = b.key_env.as_deref().unwrap_or("-");
                let url = b.url.as_deref().unwrap_or("-");
                format!(
                    "{} = {} {} at {url} with {key}",
                    b.name,
                    b.provider,
                    b.model.as_deref().unwrap_or("-")
                )
            })
            .collect::<Vec<_>>()
            .join("; "),
        Err(error) => error.to_string(),
    }
}

/// A catalog that looks for servers at these addresses, and the sentences that it reports.
fn catalog(local: impl IntoIterator<Item = String>) -> (Catalog, Arc<Mutex<Vec<String>>>) {
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = said.clone();
    let catalog = Catalog::default().with_local(local);
    (
        catalog.heard_by(move |sentence| heard.lock().unwrap().push(sentence.to_owned())),
        said,
    )
}

/// An address that nobody listens on.
async fn nobody() -> String {
    let server = Listener::new(Vec::new()).await;
    format!("{}/v1", server.url)
}

#[tokio::test]
async fn anthropic_is_found_by_its_key_or_its_address() {
    let (catalog, said) = catalog([nobody().await]);
    let key = ("ANTHROPIC_API_KEY", "sk-ant");
    let official = "default = anthropic claude-haiku-4-5 at https://api.anthropic.com/v1 with ANTHROPIC_API_KEY";
    assert_eq!(resolve(&catalog, "", &[key]).await, official);
    assert_eq!(
        *said.lock().unwrap(),
        [
            "model `default`: claude-haiku-4-5 at https://api.anthropic.com/v1 (ANTHROPIC_API_KEY is set)"
        ]
    );
    let models = "models: { default: anthropic }";
    assert_eq!(resolve(&catalog, models, &[key]).await, official);
    let got = resolve(&catalog, models, &[("OPENAI_API_KEY", "sk")]).await;
    assert_eq!(
        got,
        "model `default`: provider `anthropic` needs a key: set ANTHROPIC_API_KEY"
    );
    let got = resolve(&catalog, "", &[key, ("OPENAI_API_KEY", "sk")]).await;
    assert!(got.starts_with("default = responses"), "{got}");

    let server = Listener::new(vec![Reply::json(200, LIST)]).await;
    let got = resolve(
        &catalog,
        models,
        &[key, ("ANTHROPIC_BASE_URL", &server.url)],
    )
    .await;
    assert_eq!(
        got,
        format!(
            "default = anthropic smollm2 at {} with ANTHROPIC_API_KEY",
            server.url
        )
    );
    assert_eq!(server.request().header("x-api-key"), Some("sk-ant"));
    assert_eq!(
        server.request().header("anthropic-version"),
        Some("2023-06-01")
    );

    let text = include_str!("messages/text.sse");
    let server = Listener::new(vec![Reply::json(200, LIST), Reply::stream(&[text])]).await;
    let models = format!(
        "models: {{ default: {{ provider: anthropic, url: \"{}\" }} }}",
        server.url
    );
    assert_eq!(
        resolve(&catalog, &models, &[]).await,
        "default = anthropic smollm2 at - with -"
    );
    let bound = BoundModel {
        name: "default".into(),
        provider: "anthropic".into(),
        model: Some("smollm2".into()),
        url: Some(server.url.clone()),
        ..BoundModel::default()
    };
    let model = catalog.model(&bound).unwrap();
    let call = call_of(request(vec![user("Hi")]), None);
    let answer = model
        .call(&call, &Quiet, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(answer.text.as_deref(), Some("Hello, ä"));
    assert_eq!(server.requests()[1].line, "POST /v1/messages HTTP/1.1");
}

#[tokio::test]
async fn auto_takes_a_key_first() {
    let (catalog, said) = catalog([nobody().await]);
    let got = resolve(&catalog, "", &[("OPENAI_API_KEY", "sk")]).await;
    assert_eq!(
        got,
        "default = responses gpt-6-luna at https://api.openai.com/v1 with OPENAI_API_KEY"
    );
    assert_eq!(
        *said.lock().unwrap(),
        ["model `default`: gpt-6-luna at https://api.openai.com/v1 (OPENAI_API_KEY is set)"]
    );

    let server = Listener::new(vec![Reply::json(200, LIST)]).await;
    let vars = [("OPENAI_API_KEY", "sk-1"), ("OPENAI_BASE_URL", &server.url)];
    let got = resolve(&catalog, "", &vars).await;
    assert_eq!(
        got,
        format!(
            "default = compatible smollm2 at {} with OPENAI_API_KEY",
            server.url
        )
    );
    assert_eq!(server.request().line, "GET /v1/models HTTP/1.1");
    assert_eq!(
        server.request().header("authorization"),
        Some("Bearer sk-1")
    );

    // A server that needs no key.
    let server = Listener::new(vec![
        Reply::json(200, LIST),
        Reply::with(404, &[], ""),
        Reply::with(404, &[], ""),
    ])
    .await;
    let got = resolve(&catalog, "", &[("OPENAI_BASE_URL", &server.url)]).await;
    assert_eq!(
        got,
        format!("default = compatible smollm2 at {} with -", server.url)
    );
    assert_eq!(server.requests()[0].header("authorization"), None);

    // The address is stored with the session, so it must hold no secret.
    let vars = [
        ("OPENAI_API_KEY", "sk-1"),
        ("OPENAI_BASE_URL", "https://me:pw@proxy.example/v1"),
    ];
    let got = resolve(&catalog, "", &vars).await;
    assert!(
        got.contains("it would be stored") && !got.contains("pw@"),
        "{got}"
    );

    // A key of the definition goes before the key of the environment, and is not bound.
    let models = "models: { default: { key: \"{{ secrets.key }}\", model: gpt-5 } }";
    let got = resolve(&catalog, models, &[("KEY", "k"), ("OPENAI_API_KEY", "sk")]).await;
    assert_eq!(
        got,
        "default = responses gpt-5 at https://api.openai.com/v1 with -"
    );
    let got = resolve(&catalog, models, &[("OPENAI_API_KEY", "sk")]).await;
    assert!(got.contains("its `key` is empty. Set "), "{got}");
}

/// An address at a provider's own site is that provider, wherever it is set, and nothing is asked there.
#[tokio::test]
async fn the_address_of_a_provider_is_that_provider() {
    let (catalog, _) = catalog([nobody().await]);
    let key = ("OPENAI_API_KEY", "sk");
    for url in ["https://api.openai.com/v1", "https://api.openai.com"] {
        let models = format!("models: {{ default: {{ url: \"{url}\" }} }}");
        assert_eq!(
            resolve(&catalog, &models, &[key]).await,
            "default = responses gpt-6-luna at - with OPENAI_API_KEY"
        );
        assert_eq!(
            resolve(&catalog, &models, &[]).await,
            "model `default`: provider `responses` needs a key: set OPENAI_API_KEY"
        );
        let base = ("OPENAI_BASE_URL", url);
        assert_eq!(
            resolve(&catalog, "", &[key, base]).await,
            format!("default = responses gpt-6-luna at {url} with OPENAI_API_KEY")
        );
        let got = resolve(&catalog, "", &[base]).await;
        assert!(got.contains("OPENAI_API_KEY is not set"), "{got}");
    }
}

/// A live value may change after the session began, so the key in the environment is not for the address that it gives.
#[tokio::test]
async fn the_key_of_a_provider_is_not_sent_to_an_address_that_may_change() {
    let (catalog, _) = catalog([nobody().await]);
    let models =
        |more: &str| format!("models: {{ default: {{ url: \"{{{{ config.url }}}}\"{more} }} }}");
    let vars = [
        ("OPENAI_API_KEY", "sk"),
        ("URL", "https://api.openai.com/v1"),
    ];
    assert_eq!(
        resolve(&catalog, &models(""), &vars).await,
        "model `default`: its `url` may change while the session runs, and OPENAI_API_KEY is sent to a fixed address only; \
         give the model a `key`, or the `url` a value that is not live"
    );
    assert_eq!(
        resolve(&catalog, &models(", key: own"), &vars).await,
        "default = responses gpt-6-luna at - with -"
    );
    let kept = network(
        "config: { url: { type: string, env: URL } }\nmodels: { default: { url: \"{{ config.url }}\" } }\n\
         agents: { a: { system: Hi. } }",
    );
    let bound = catalog.resolve(&kept, &env(&vars), Path::new(".")).await;
    assert_eq!(bound.unwrap()[0].key_env.as_deref(), Some("OPENAI_API_KEY"));
}

#[tokio::test]
async fn a_model_that_nobody_calls_need_not_be_there() {
    let catalog = Catalog::default().with_local([nobody().await]);
    let network = network(
        "models: { other: { url: \"http://127.0.0.1:9\", model: m, calls: structured } }\n\
         agents: { a: { system: Hi., model: other } }",
    );
    let bound = catalog
        .resolve(&network, &env(&[]), Path::new("."))
        .await
        .unwrap();
    let names = bound.iter().map(|bound| &*bound.name).collect::<Vec<_>>();
    assert_eq!(names, ["other"]);
}

#[tokio::test]
async fn the_key_of_a_model_is_found_beside_its_definition() {
    let folder = std::env::temp_dir().join(format!("steersman-catalog-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("key.txt"), "sk-1\n").unwrap();
    let network = network(
        "models: { default: { provider: openai, model: m, key: \"{{ secrets.key }}\" } }\n\
         secrets: { key: { file: key.txt } }\nagents: { a: { system: Hi. } }",
    );
    let catalog = Catalog::default();
    let elsewhere = Path::new(".");
    let missing = catalog.resolve(&network, &env(&[]), elsewhere).await;
    assert_eq!(
        missing.unwrap_err().to_string(),
        "model `default`: secret `key` is not set: set the file key.txt"
    );
    let bound = catalog.resolve(&network, &env(&[]), &folder).await;
    assert_eq!(bound.unwrap()[0].model.as_deref(), Some("m"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn local_looks_for_servers_here_in_order() {
    let silent = r#"{"chat_template":"x","chat_template_caps":{"supports_tools":false}}"#;
    let other = Listener::new(vec![Reply::with(404, &[], "")]).await;
    let server = Listener::new(vec![Reply::json(200, LIST), Reply::json(200, silent)]).await;
    let local = [
        nobody().await,
        format!("{}/v1", other.url),
        format!("{}/v1", server.url),
    ];
    let places = local.each_ref().map(|url| {
        url.trim_start_matches("http://")
            .trim_end_matches("/v1")
            .to_owned()
    });
    let (catalog, said) = catalog(local.clone());
    let got = resolve(
        &catalog,
        "models: { default: local }",
        &[("OPENAI_API_KEY", "k")],
    )
    .await;
    assert_eq!(
        got,
        format!("default = compatible smollm2 at {} with -", local[2])
    );
    assert_eq!(
        *said.lock().unwrap(),
        [
            format!(
                "model `default`: smollm2 at {} ({}: nothing answers; {}: status 404 for its list of models; {} answers)",
                local[2], places[0], places[1], places[2]
            ),
            format!(
                "model `default`: llama.cpp at {} says that smollm2 has no tools of its own; they are told in the prompt and \
                 called by structured output",
                places[2]
            ),
        ]
    );
}

#[tokio::test]
async fn gemini_and_responses_are_found_by_their_keys() {
    let (catalog, _) = catalog([nobody().await]);
    let gemini = ("GEMINI_API_KEY", "k");
    let official = "default = gemini gemini-3.8-flash at https://generativelanguage.googleapis.com/v1beta with GEMINI_API_KEY";
    assert_eq!(resolve(&catalog, "", &[gemini]).await, official);
    let models = "models: { default: gemini }";
    assert_eq!(resolve(&catalog, models, &[gemini]).await, official);
    // Elsewhere the first model of the list is taken; its name comes with a folder.
    let list = r#"{"models":[{"name":"models/text-embedding"},{"name":"models/gemini-3"}]}"#;
    let server = Listener::new(vec![Reply::json(200, list)]).await;
    let base = ("GOOGLE_GEMINI_BASE_URL", &*server.url);
    assert_eq!(
        resolve(&catalog, models, &[gemini, base]).await,
        format!(
            "default = gemini gemini-3 at {} with GEMINI_API_KEY",
            server.url
        )
    );
    assert_eq!(server.request().header("x-goog-api-key"), Some("k"));
    let models = "models: { default: { provider: responses, model: gpt-5 } }";
    let got = resolve(&catalog, models, &[("OPENAI_API_KEY", "sk")]).await;
    let official = "default = responses gpt-5 at https://api.openai.com/v1 with OPENAI_API_KEY";
    assert_eq!(got, official);
    // A key of OpenAI leads `auto` there, and goes before the others.
    let got = resolve(&catalog, "", &[("OPENAI_API_KEY", "sk"), gemini]).await;
    assert!(got.starts_with("default = responses"), "{got}");
}

/// A provider, more keys of its model, and the variables that are set.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

#[tokio::test]
async fn clouds_are_found_by_their_credentials_and_addresses() {
    let (catalog, _) = catalog([nobody().await]);
    let azure = [
        ("AZURE_OPENAI_API_KEY", "k"),
        ("AZURE_OPENAI_ENDPOINT", "https://r.openai.azure.com"),
        ("OPENAI_API_VERSION", "2024-10-21"),
    ];
    let token = ("AZURE_OPENAI_AD_TOKEN", "t");
    let vertex = [
        ("GOOGLE_APPLICATION_CREDENTIALS", "/run/account.json"),
        ("GOOGLE_CLOUD_PROJECT", "p"),
        ("GOOGLE_CLOUD_LOCATION", "europe-west1"),
    ];
    let keys = [
        ("AWS_ACCESS_KEY_ID", "AKID"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "eu-central-1"),
    ];
    let local = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "http://127.0.0.1:9");
    let api_key = ("AWS_BEARER_TOKEN_BEDROCK", "b");
    let of = async |provider: &str, rest: &str, vars: &[(&str, &str)]| {
        let models = format!("models: {{ default: {{ provider: {provider}{rest} }} }}");
        resolve(&catalog, &models, vars).await
    };
    let named = ", model: m";
    let mut got = String::new();
    let cases: [Case<'_>; 18] = [
        ("azure", named, &azure),
        ("azure", named, &azure[..2]),
        ("azure", named, &[azure[1], token]),
        ("azure", named, &azure[..1]),
        ("azure", "", &azure),
        ("azure", ", model: m, key: own", &azure[1..]),
        ("vertex", named, &vertex),
        ("vertex", named, &vertex[..2]),
        (
            "vertex",
            named,
            &[("CLOUDSDK_AUTH_ACCESS_TOKEN", "ya29"), vertex[1]],
        ),
        ("vertex", named, &vertex[..1]),
        ("vertex", named, &vertex[1..]),
        ("bedrock", named, &keys),
        ("bedrock", named, &[keys[0], keys[1], keys[2], local]),
        ("bedrock", named, &[keys[0], keys[1], keys[2], api_key]),
        ("bedrock", named, &keys[..2]),
        ("bedrock", named, &keys[1..]),
        ("bedrock", ", model: m, key: \"\"", &keys),
        (
            "bedrock",
            named,
            &[
                keys[0],
                keys[1],
                keys[2],
                (local.0, "http://u:p@127.0.0.1:9"),
            ],
        ),
    ];
    for (provider, rest, vars) in cases {
        let names: Vec<&str> = vars.iter().map(|(name, _)| *name).collect();
        let found = of(provider, rest, vars).await;
        got += &[provider, rest, ", ", &names.join(" "), "\n  ", &found, "\n"].concat();
    }
    insta::assert_snapshot!(got);
}

/// Several variables are one key.
#[tokio::test]
async fn a_key_of_several_variables_is_read_from_them() {
    let bound = |vars: &str| BoundModel {
        key_env: Some(vars.to_owned()),
        ..BoundModel::default()
    };
    let env = env(&[
        ("ID", "id"),
        ("SECRET", "secret\n"),
        ("TOKEN", "token"),
        ("ACCOUNT", "{ a b }"),
    ]);
    for (vars, key) in [
        ("ID SECRET TOKEN", Some("id secret token")),
        ("ID SECRET NONE", Some("id secret")),
        ("NONE SECRET", None),
        ("ACCOUNT", Some("{ a b }")),
    ] {
        assert_eq!(bound(vars).key(&env).as_deref(), key, "{vars}");
    }
    assert_eq!(BoundModel::default().key(&env), None);
}

#[tokio::test]
async fn nothing_usable_says_what_was_looked_for() {
    let server = Listener::new(vec![Reply::json(200, LIST)]).await;
    let local = [nobody().await, format!("{}/v1", server.url)];
    let catalog = Catalog::default().with_local(local.clone());
    let auto = resolve(
        &catalog,
        "models: { default: { model: qwen } }",
        &[("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")],
    )
    .await;
    let models = "models: { default: { provider: local, model: qwen } }";
    let local_one = resolve(&catalog, models, &[]).await;
    let got = format!("{auto}\n{local_one}");
    let ports = local.each_ref().map(|url| {
        url.trim_end_matches("/v1")
            .rsplit(':')
            .next()
            .unwrap()
            .to_owned()
    });
    let got = got.replace(&ports[0], "PORT1").replace(&ports[1], "PORT2");
    insta::assert_snapshot!(got);
}

#[tokio::test]
async fn an_address_in_the_definition_goes_before_everything() {
    let server = Listener::new(vec![
        Reply::json(200, LIST),
        Reply::with(404, &[], ""),
        Reply::with(404, &[], ""),
    ])
    .await;
    let catalog = Catalog::default().with_local([nobody().await]);
    let models = "models: { default: { url: \"{{ config.url }}\", key: \"{{ secrets.key }}\" } }";
    let vars = [
        ("URL", server.url.as_str()),
        ("KEY", "k-1"),
        ("OPENAI_API_KEY", "sk"),
    ];
    let got = resolve(&catalog, models, &vars).await;
    // The address is a template of the definition, so it is rendered at each call and not bound.
    assert_eq!(got, "default = compatible smollm2 at - with -");
    assert_eq!(
        server.requests()[0].header("authorization"),
        Some("Bearer k-1")
    );

    let named = "models: { default: { provider: compatible, url: \"http://127.0.0.1:9\", model: m, calls: structured } }";
    assert_eq!(
        resolve(&catalog, named, &[]).await,
        "default = compatible m at - with -"
    );
    let without = "models: { default: { provider: openai, model: gpt-5 } }";
    let got = resolve(&catalog, without, &[]).await;
    assert_eq!(
        got,
        "model `default`: provider `openai` needs a key: set OPENAI_API_KEY"
    );
}

#[tokio::test]
async fn a_bound_model_can_be_called() {
    let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = Listener::new(vec![Reply::stream(&[stream])]).await;
    let bound = BoundModel {
        name: "default".into(),
        provider: "compatible".into(),
        model: Some("smollm2".to_owned()),
        url: Some(server.url.clone()),
        ..BoundModel::default()
    };
    let catalog = Catalog::default();
    let model = catalog.model(&bound).unwrap();
    assert_eq!(&*model.label(), "compatible/smollm2");
    let call = call_of(request(vec![user("Hi")]), None);
    let answer = model.call(&call, &Quiet, &CancellationToken::new()).await;
    assert_eq!(answer.unwrap().text.as_deref(), Some("Hi"));
    let refused = |provider: &str| {
        let bound = BoundModel {
            provider: provider.into(),
            ..bound.clone()
        };
        catalog.model(&bound).err().unwrap().to_string()
    };
    assert_eq!(
        refused("oracle"),
        "model `default`: this version has no provider `oracle`"
    );
    assert!(refused("scripted").contains("none was given"));
    let none = resolve(&Catalog::default(), "models: { default: scripted }", &[]).await;
    assert!(none.contains("none was given"), "{none}");
}

/// The table of prices holds for the providers' own addresses. A server on this machine costs nothing, and the price of any
/// other server is unknown.
#[tokio::test]
async fn what_a_model_costs_is_known_where_its_provider_is_asked() {
    let list = || Reply::json(200, LIST);
    let server = Listener::new(vec![list(), list()]).await;
    let (catalog, _) = catalog([format!("{}/v1", server.url)]);
    let elsewhere = format!("{}/v1", server.url);
    let price = async |models: &str, vars: &[(&str, &str)]| {
        let network = network(&format!("{models}\nagents: {{ a: {{ system: Hi. }} }}"));
        let bound = catalog.resolve(&network, &env(vars), Path::new(".")).await;
        let price = bound.unwrap()[0].price;
        price.map(|price| [price.input, price.cached, price.cache_write, price.output])
    };
    let openai = [("OPENAI_API_KEY", "sk")];
    let cheap = Some([100_000, 10_000, 100_000, 500_000]);
    assert_eq!(price("", &openai).await, cheap);
    let before = Some([250_000, 25_000, 250_000, 2_000_000]);
    let dated = "models: { default: { provider: openai, model: gpt-5-mini-2025-08-07 } }";
    assert_eq!(price(dated, &openai).await, before);
    let newer = "models: { default: { provider: openai, model: gpt-99 } }";
    assert_eq!(price(newer, &openai).await, None);
    let named = "models: { default: { model: gpt-5-mini } }";
    let proxied = [("OPENAI_API_KEY", "sk"), ("OPENAI_BASE_URL", &*elsewhere)];
    assert_eq!(price(named, &proxied).await, None);
    let home = [openai[0], ("OPENAI_BASE_URL", "https://api.openai.com")];
    assert_eq!(price("", &home).await, cheap);
    let anthropic = [("ANTHROPIC_API_KEY", "sk-ant")];
    assert_eq!(
        price("", &anthropic).await,
        Some([1_000_000, 100_000, 1_250_000, 5_000_000])
    );
    assert_eq!(price("models: { default: local }", &[]).await, Some([0; 4]));
}

/// A fallback is resolved when a session begins, not when it is needed.
#[tokio::test]
async fn a_model_that_stands_in_has_to_be_there() {
    let (catalog, _) = catalog([nobody().await]);
    let models = "models: { default: { provider: openai, fallback: [spare] }, spare: anthropic }";
    let got = resolve(&catalog, models, &[("OPENAI_API_KEY", "sk")]).await;
    assert_eq!(
        got,
        "model `spare`: provider `anthropic` needs a key: set ANTHROPIC_API_KEY"
    );
}

/// A model that no agent uses to which the entry leads may be missing.
#[tokio::test]
async fn only_what_an_entry_leads_to_is_needed() {
    let definition = "
models: { default: scripted, here: { url: \"http://127.0.0.1:1/v1\", model: m } }
agents:
  tells: { system: S. }
  leads: { system: S., model: here, tools: [helps] }
  helps: { description: H., system: S., model: here }
  asks:  { system: S., model: here, tools: [other] }
  other: { description: O., system: S. }
entry: [tells, leads, asks]
";
    let network = network(definition);
    let bound = async |entry: &str| {
        let begun = network.beginning_with(&entry.into());
        let catalog = Catalog::default();
        let bound = catalog.resolve(&begun, &env(&[]), Path::new(".")).await;
        bound.map(|bound| {
            bound
                .iter()
                .map(|model| model.name.to_string())
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(bound("leads").await.unwrap(), ["here"]);
    assert!(bound("tells").await.is_err());
    assert!(
        bound("asks").await.is_err(),
        "the agent that it calls needs the scripted model"
    );
}

#[test]
fn the_variables_of_all_keys_are_documented() {
    let page = include_str!("../../../../docs/reference/environment.md");
    for key in Catalog::keys() {
        assert!(page.contains(&format!("`{key}`")), "{key}");
    }
}
