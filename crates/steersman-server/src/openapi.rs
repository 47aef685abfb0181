//! The OpenAPI document, made from the routes.

use crate::problem::Document;
use crate::{Limits, routes};
use axum::body::Bytes;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder,
};
use utoipa::{IntoResponses, ToSchema};

/// Returns the OpenAPI document (version 3.1) of the server, as JSON.
pub fn document() -> serde_json::Value {
    let (_, document) = routes::all(&Limits::default()).split_for_parts();
    serde_json::to_value(document).expect("the document is JSON")
}

/// Returns the text of the document. It is made once: anybody may ask for it, and making it takes longer than most requests.
pub(crate) fn text() -> Bytes {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());
    TEXT.clone()
}

/// Returns the parts of the document that belong to no route.
pub(crate) fn base() -> OpenApi {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
    let bearer = bearer.description(Some("A token that `steersman token new` made: `stm_...`"));
    let mut components = ComponentsBuilder::new();
    components = components.security_scheme("token", SecurityScheme::Http(bearer.build()));
    let mut schemas = vec![(
        Document::name().into_owned(),
        <Document as utoipa::PartialSchema>::schema(),
    )];
    <Document as ToSchema>::schemas(&mut schemas);
    for (name, schema) in schemas {
        components = components.schema(name, schema);
    }
    let info = InfoBuilder::new()
        .title("Steersman")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT));
    let mut document = OpenApi::new(info.build(), utoipa::openapi::Paths::new());
    document.components = Some(components.build());
    document.security = Some(vec![SecurityRequirement::new("token", [""; 0])]);
    document
}

/// The text at the head of the document.
const ABOUT: &str = "Sessions of a Steersman store over HTTP. Each request names a token. What a token does not see is answered \
    like what does not exist. Bodies with unknown fields are refused. Kinds and fields of answers may be added: ignore what you \
    do not know. Errors are problem documents (RFC 9457).";

/// The problems that every route may answer.
pub(crate) struct Problems;

/// The answer of a route that tells events as they come. Without a schema: OpenAPI 3.1 describes a body as a whole, which a stream is not.
pub(crate) struct Events;

impl IntoResponses for Events {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let response = ResponseBuilder::new()
            .description("The events, one after the other")
            .content("text/event-stream", ContentBuilder::new().build());
        BTreeMap::from([("200".to_owned(), response.build().into())])
    }
}

impl IntoResponses for Problems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let schema = Ref::from_schema_name(Document::name());
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let response = ResponseBuilder::new()
            .description("The reason why the request was not carried out")
            .content("application/problem+json", content);
        BTreeMap::from([("default".to_owned(), response.build().into())])
    }
}
