//! Addresses and keys of Azure OpenAI, which serves chat completions in two forms. The form with `/openai/v1` names the deployment in
//! the body. The older one names it in the path, and a dated version of the interface in the query.

use crate::wire::{based, endpoint as below};
use reqwest::{RequestBuilder, Url};

/// Name of the version in the query.
const VERSION: &str = "api-version";
/// Folder of the deployments in the older form.
const DEPLOYMENTS: &str = "/deployments/";

/// Parses the address of a resource, or of an endpoint below it. The older form is taken if the address has a dated version.
pub(super) fn base(url: &str) -> Result<Url, String> {
    let mut url = based(url, "/openai")?;
    let path = url.path();
    let end = ["/chat/completions", "/embeddings"];
    let cut = end.into_iter().find_map(|end| path.strip_suffix(end));
    let path = cut.unwrap_or(path).to_owned();
    let path = if is_dated(&url) {
        path.strip_suffix("/v1").unwrap_or(&path).to_owned()
    } else if path.ends_with("/openai") {
        format!("{path}/v1")
    } else {
        path
    };
    if path.contains(DEPLOYMENTS) && !is_dated(&url) {
        return Err(format!(
            "an address with `{DEPLOYMENTS}` needs a version: add `?{VERSION}=` with a date, or end the address with `/openai/v1`"
        ));
    }
    url.set_path(&path);
    Ok(url)
}

/// Returns the address of an endpoint for a deployment.
pub(super) fn endpoint(base: &Url, deployment: &str, path: &str) -> Url {
    if is_dated(base) && !base.path().contains(DEPLOYMENTS) {
        return below(base, &format!("deployments/{deployment}/{path}"));
    }
    below(base, path)
}

/// Returns true if an address has a version with a date: `preview` and `latest` belong to the form with `/openai/v1`.
fn is_dated(url: &Url) -> bool {
    let mut query = url.query_pairs();
    query.any(|(key, value)| key == VERSION && value.starts_with(|c: char| c.is_ascii_digit()))
}

/// Adds the key, or a token of Entra, to a request.
pub(super) fn authorized(post: RequestBuilder, key: &str) -> RequestBuilder {
    // A token is a JSON Web Token: its first part is an object in base64, and it has three parts. A key has no point.
    if key.starts_with("eyJ") && key.split('.').count() == 3 {
        return post.bearer_auth(key);
    }
    post.header("api-key", key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_an_address_lead_to_the_deployment() {
        let site = "https://r.openai.azure.com";
        let of = |url: &str| endpoint(&base(url).unwrap(), "gpt", "chat/completions");
        let new = format!("{site}/openai/v1/chat/completions");
        for form in [
            "",
            "/",
            "/openai",
            "/openai/v1",
            "/openai/v1/chat/completions",
        ] {
            assert_eq!(of(&format!("{site}{form}")).as_str(), new, "{form}");
        }
        let preview = of(&format!("{site}/openai/v1?api-version=preview"));
        assert_eq!(preview.as_str(), format!("{new}?api-version=preview"));
        let dated = "?api-version=2024-10-21";
        let old = format!("{site}/openai/deployments/gpt/chat/completions{dated}");
        let full = "/openai/deployments/gpt/chat/completions";
        for form in [
            "",
            "/",
            "/openai",
            "/openai/v1",
            "/openai/deployments/gpt",
            full,
        ] {
            assert_eq!(of(&format!("{site}{form}{dated}")).as_str(), old, "{form}");
        }
        let refused = base(&format!("{site}/openai/deployments/gpt")).unwrap_err();
        assert!(refused.contains("api-version"), "{refused}");
        let behind = of("https://gateway.example/team/openai");
        assert_eq!(
            behind.as_str(),
            "https://gateway.example/team/openai/v1/chat/completions"
        );
    }
}
