//! The part of a model call that all protocols share: tools for models without native ones, the text that people see, and checks of the
//! answer. A protocol only exchanges one request for one answer.

use super::{mend_names, missed, stamped};
use crate::structured::{self, Style};
use steersman_machine::context::Request;
use steersman_machine::network::{CallStyle, ToolChoice};
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::Boxed;
use steersman_runtime::model::{ModelCall, Sink};

/// Exchanges one request for one answer.
pub(crate) trait Exchange: Sync {
    /// Sends a request of this call. The request is the one of the call, or the same with its tools in words.
    fn exchange<'a>(
        &'a self,
        call: &'a ModelCall,
        request: &'a Request,
        sink: &'a dyn Sink,
    ) -> Boxed<'a, Result<Answer, Failure>>;
}

/// Returns the style in which a request calls tools at a server that always has native ones; `None` is native.
pub(crate) fn style_of(request: &Request) -> Option<Style> {
    match request.calls {
        CallStyle::Auto | CallStyle::Native => None,
        CallStyle::Structured => Some(Style::Structured),
        CallStyle::Text => Some(Style::Text),
    }
}

/// Sends the request with native tools, or in this style, and returns the answer in the neutral form.
pub(crate) async fn answer(
    server: &dyn Exchange,
    call: &ModelCall,
    style: Option<Style>,
    label: Name,
    sink: &dyn Sink,
) -> Result<Answer, Failure> {
    let told = style.map(|style| structured::tell(&call.request, style));
    let request = told.as_ref().unwrap_or(&call.request);
    // A constrained answer streams as JSON; people should see the text in it.
    let constrained = style == Some(Style::Structured)
        && structured::tools(&call.request).next().is_some()
        && call.request.choice != ToolChoice::None;
    let answer = if constrained {
        let peek = structured::Peek::new(sink);
        server.exchange(call, request, &peek).await?
    } else {
        server.exchange(call, request, sink).await?
    };
    let mut answer = match style {
        Some(style) => structured::read(answer, &call.request, style),
        None => answer,
    };
    mend_names(&call.request, &mut answer);
    if answer.misfit.is_none() {
        answer.misfit = missed(&call.request, &answer);
    }
    Ok(stamped(answer, call, label))
}
