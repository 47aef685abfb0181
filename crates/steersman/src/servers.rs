//! The MCP servers of a network: their tools, and sign-ins at those that want one (`oauth` of a server).

use crate::{Error, Network, Scope, Steersman};
use std::collections::BTreeMap;
use std::path::Path;
use steersman_adapters::mcp::{SignIn, SignedIn};
use steersman_runtime::engine::EngineError;
use steersman_runtime::servers::{self, Answer};
use steersman_runtime::toolset::ServerAsk;

impl Steersman {
    /// Asks all MCP servers of a network concurrently. Each answer lists the server's tools that the network uses, or says
    /// why they cannot be known. No session is written; a server process that is not running is started.
    ///
    /// # Errors
    /// [`Error::Engine`] if a `config` value is missing.
    pub async fn servers(&self, network: &Network) -> Result<Vec<Answer>, Error> {
        let folder = network.folder().unwrap_or(Path::new("."));
        let config = BTreeMap::new();
        let answers = servers::look(self.engine(), network.checked(), &config, folder).await;
        Ok(answers.map_err(EngineError::Bind)?)
    }

    /// Begins the sign-in of a person at a server of a network. The person opens [`SignIn::address`], and is sent back to `redirect`, where
    /// your program waits; [`SignIn::finish`] gets that request and stores the tokens, sealed. Only sessions of exactly this tenant and
    /// subject use them: `Scope::default()` for sessions without both.
    ///
    /// ```no_run
    /// # async fn example(steersman: steersman::Steersman, network: steersman::Network) -> Result<(), steersman::Error> {
    /// use steersman::{Error, Scope};
    ///
    /// let ada = Scope { tenant: "acme".into(), subject: Some("ada".into()) };
    /// let sign_in = steersman.sign_in(&network, "books", &ada, "https://desk.example.com/signed-in").await?;
    /// println!("{}", sign_in.address());
    /// // The path and the query of the request that came to the address above.
    /// let came = "/signed-in?code=4711&state=81x";
    /// sign_in.finish(came).await.map_err(Error::Refused)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`]: nobody can sign in there; the text says why. [`Error::Engine`] if a `config` value is missing.
    pub async fn sign_in(
        &self,
        network: &Network,
        server: &str,
        of: &Scope,
        redirect: &str,
    ) -> Result<SignIn, Error> {
        let ask = self.request(network, server, of)?;
        let begun = self.mcp.sign_in(&ask, redirect).await;
        begun.map_err(Error::Refused)
    }

    /// Returns the sign-ins of a tenant and subject at the servers of a network that want one, by name. Nobody is asked.
    ///
    /// # Errors
    /// [`Error::Refused`]: one cannot be read; the text says why. [`Error::Engine`] if a `config` value is missing.
    pub async fn signed_in(&self, network: &Network, of: &Scope) -> Result<Vec<SignedIn>, Error> {
        let mut all = Vec::new();
        for (name, server) in &network.checked().mcp {
            if server.oauth().is_some() {
                let ask = self.request(network, name, of)?;
                all.extend(self.mcp.signed_in(&ask).await.map_err(Error::Refused)?);
            }
        }
        Ok(all)
    }

    /// Signs out at a server: the tokens of this tenant and subject are deleted, and given back if the authorization server takes them.
    /// Returns false if nobody had signed in, and the reason why the tokens may still be worth something, if they may.
    ///
    /// # Errors
    /// [`Error::Refused`]: they cannot be deleted; the text says why. [`Error::Engine`] if a `config` value is missing.
    pub async fn sign_out(
        &self,
        network: &Network,
        server: &str,
        of: &Scope,
    ) -> Result<(bool, Option<String>), Error> {
        let ask = self.request(network, server, of)?;
        self.mcp.sign_out(&ask).await.map_err(Error::Refused)
    }

    fn request(&self, network: &Network, server: &str, of: &Scope) -> Result<ServerAsk, Error> {
        let engine = self.engine();
        if engine.scope().is_some_and(|own| !own.includes(of)) {
            return Err(Error::Refused(
                "this is of another tenant or subject".to_owned(),
            ));
        }
        let folder = network.folder().unwrap_or(Path::new("."));
        let ask = servers::request(engine, network.checked(), folder, server, of);
        let ask = ask.map_err(EngineError::Bind)?;
        ask.ok_or_else(|| {
            let known: Vec<&str> = network.checked().mcp.keys().map(|name| &**name).collect();
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            Error::Refused(format!(
                "the definition has no MCP server `{server}`; it has {known}"
            ))
        })
    }
}
