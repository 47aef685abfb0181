//! Resolution of model names of a definition. `auto` looks for a key or an address in the environment, `local` for a server on this
//! computer. Both report their choice; if they find nothing they report where they looked.

use crate::capabilities::Known;
use crate::providers::{At, COMPATIBLE, Cloud, Home, LOCAL, Provider, homes, named};
use crate::secrets::Opened;
use crate::transport::{Clients, Redirects, body};
use crate::wire::{Timeouts, base_url, endpoint};
use reqwest::Url;
use serde_json::Value as Json;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use steersman_definition::hosted;
use steersman_machine::network::{self, CallStyle, Config, ModelDef, Network};
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::{Names, Template};
use steersman_machine::values::price::Price;
use steersman_runtime::model::{BoundModel, Model, Models, ModelsError};
use steersman_runtime::{Boxed, Env, bind};

/// Error for scripted models: a script is resolved before this catalog.
const NO_SCRIPT: &str = "it answers from a script, and none was given: --script FILE";
/// Time limit for a server to list its models.
const PATIENCE: Duration = Duration::from_secs(3);
/// Maximum number of bytes of such a list.
const LIST_MAX: usize = 4 << 20;
/// Maximum number of models that are kept open for the sessions to come. A session keeps those that it uses.
const OPEN_MAX: usize = 1_024;
/// Number of sentences that are remembered, so that they are not reported again.
const SAID_MAX: usize = 1_024;

/// Catalog of the models of all known providers, and of every server that speaks the protocol of one of them.
pub struct Catalog {
    clients: Clients,
    /// Reports of servers about themselves; all models share them.
    known: Arc<Known>,
    local: Vec<String>,
    /// Listener that was set by [`Catalog::heard_by`].
    hears: Box<dyn Fn(&str) + Send + Sync>,
    /// Models by provider, address and name. A model keeps its connections and the facts learned about its server.
    open: Mutex<BTreeMap<[String; 3], Arc<dyn Model>>>,
    /// The last [`SAID_MAX`] sentences that were reported, oldest first.
    said: Mutex<VecDeque<String>>,
}

impl Default for Catalog {
    fn default() -> Self {
        Self {
            clients: Clients::new(Duration::from_secs(2), Redirects::Never),
            known: Arc::default(),
            local: LOCAL.map(|(_, url)| url.to_owned()).to_vec(),
            hears: Box::new(|_| {}),
            open: Mutex::default(),
            said: Mutex::default(),
        }
    }
}

impl Catalog {
    /// Returns the environment variables of the providers' keys, in the order in which `auto` tries them.
    pub fn keys() -> impl Iterator<Item = &'static str> {
        tried().map(|(_, home)| home.key)
    }

    /// Sets the base addresses where `local` looks for servers on this computer, in order.
    pub fn with_local(self, local: impl IntoIterator<Item = String>) -> Self {
        Self {
            local: local.into_iter().collect(),
            ..self
        }
    }

    /// Sets a listener for decisions and findings, one sentence each: the model that `auto` or `local` took and why, and capabilities that
    /// a server lacks. By default there is none. A sentence that is among the last 1024 is not reported again.
    pub fn heard_by(self, hears: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            hears: Box::new(hears),
            ..self
        }
    }

    fn say(&self, sentence: String) {
        {
            let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            if said.contains(&sentence) {
                return;
            }
            if said.len() == SAID_MAX {
                said.pop_front();
            }
            said.push_back(sentence.clone());
        }
        // Without the lock: the listener may use this catalog.
        (self.hears)(&sentence);
    }

    async fn bind(
        &self,
        name: &Name,
        def: &ModelDef,
        network: &Network,
        (env, folder): (&Env, &Path),
    ) -> Result<BoundModel, ModelsError> {
        let look = Look {
            catalog: self,
            name,
            def,
            network,
            env,
            folder,
        };
        let provider = match &def.provider {
            network::Provider::Scripted => return Err(look.error(NO_SCRIPT)),
            network::Provider::Auto => match &def.url {
                Some(url) => return look.at_url(url, look.named(COMPATIBLE)?).await,
                None => return look.auto().await,
            },
            network::Provider::Local => return look.local().await,
            network::Provider::Named(name) => look.named(name)?,
        };
        if let (Some(cloud), None) = (&provider.cloud, &def.url) {
            return look.in_cloud(provider, cloud);
        }
        match (&provider.home, &def.url) {
            // A provider with `elsewhere` serves only its own address, so its key is always needed. Servers at other addresses
            // belong to the other provider.
            (Some(home), url) if url.is_none() || home.elsewhere.is_some() => {
                look.hosted(provider, home).await
            }
            (_, Some(url)) => look.at_url(url, provider).await,
            (_, None) => Err(look.error(format!("provider `{}` needs a `url`", provider.name))),
        }
    }
}

impl Catalog {
    /// Returns the address that a bound model is asked at: the one that is bound, otherwise the one that the definition's template
    /// gives with the present values of the environment. It may contain secrets.
    ///
    /// # Errors
    /// The template cannot be rendered here.
    pub fn address(
        &self,
        bound: &BoundModel,
        network: &Network,
        env: &Env,
        folder: &Path,
    ) -> Result<Option<String>, ModelsError> {
        let def = network.models.get(&bound.name);
        let template = def.and_then(|def| Some((def, def.url.as_ref()?)));
        let Some((def, template)) = template.filter(|_| bound.url.is_none()) else {
            return Ok(bound.url.clone());
        };
        let look = Look {
            catalog: self,
            name: &bound.name,
            def,
            network,
            env,
            folder,
        };
        look.render(template).map(Some)
    }
}

impl Models for Catalog {
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        env: &'a Env,
        folder: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>> {
        Box::pin(async move {
            let mut bound = Vec::new();
            let used = network.used_models();
            for (name, def) in &network.models {
                match self.bind(name, def, network, (env, folder)).await {
                    Ok(found) => bound.push(found),
                    Err(error) if used.contains(name) => return Err(error),
                    // A model that no agent calls need not be available: every network has a model `default`, used or not.
                    Err(_) => {}
                }
            }
            Ok(bound)
        })
    }

    fn model(&self, bound: &BoundModel) -> Result<Arc<dyn Model>, ModelsError> {
        let error = |message: String| ModelsError {
            name: bound.name.clone(),
            message,
        };
        if *bound.provider == *network::SCRIPTED {
            return Err(error(NO_SCRIPT.to_owned()));
        }
        let provider = named(&bound.provider).ok_or_else(|| error(unknown(&bound.provider)))?;
        let model = bound.model.clone().unwrap_or_default();
        let url = bound.url.clone().unwrap_or_default();
        let key = [bound.provider.to_string(), url.clone(), model.clone()];
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= OPEN_MAX && !open.contains_key(&key) {
            open.pop_first();
        }
        let opened = open.entry(key).or_insert_with(|| {
            let at = At {
                label: format!("{}/{model}", bound.provider).into(),
                url,
                model,
                timeouts: Timeouts::default(),
            };
            (provider.open)(at, &self.known)
        });
        Ok(opened.clone())
    }
}

fn unknown(provider: &str) -> String {
    format!("this version has no provider `{provider}`")
}

/// Resolution of one name.
struct Look<'a> {
    catalog: &'a Catalog,
    name: &'a Name,
    def: &'a ModelDef,
    network: &'a Network,
    env: &'a Env,
    folder: &'a Path,
}

impl Look<'_> {
    fn error(&self, message: impl Into<String>) -> ModelsError {
        ModelsError {
            name: self.name.clone(),
            message: message.into(),
        }
    }

    fn named(&self, provider: &str) -> Result<&'static Provider, ModelsError> {
        named(provider).ok_or_else(|| self.error(unknown(provider)))
    }

    fn bound(&self, provider: &str) -> BoundModel {
        BoundModel {
            name: self.name.clone(),
            provider: provider.into(),
            model: self.def.named().map(str::to_owned),
            ..BoundModel::default()
        }
    }

    fn var(&self, name: &str) -> Option<String> {
        (self.env)(name).filter(|value| !value.trim().is_empty())
    }

    /// Renders a template with the present values of the environment.
    fn render(&self, template: &Template) -> Result<String, ModelsError> {
        let names = self.config(|_| true);
        let scope = Opened::new(names, self.network, self.env, self.folder);
        let scope = scope.map_err(|error| self.error(error.to_string()))?;
        template
            .render(&scope)
            .map_err(|error| self.error(error.to_string()))
    }

    /// Returns true if an address that a template gave is the same in every call: it depends on nothing but values that the
    /// session keeps from its start.
    fn is_fixed(&self, template: &Template, url: &str) -> bool {
        let kept = self.config(|declared| !declared.live);
        template.render(&kept).is_ok_and(|again| again == url)
    }

    /// Returns the present values of the config entries that pass the test.
    fn config(&self, test: impl Fn(&Config) -> bool) -> Names {
        let mut config = serde_json::Map::new();
        for (name, declared) in &self.network.config {
            if let (true, Ok(value)) = (test(declared), bind::read(name, declared, self.env)) {
                config.insert(name.to_string(), value);
            }
        }
        let mut names = serde_json::Map::new();
        names.insert("config".to_owned(), Json::Object(config));
        Names::from_json(Json::Object(names))
    }

    /// Returns, as text for people, the setting that gives the key; `None` if there is no key.
    fn key(&self, home: &Home) -> Result<Option<String>, ModelsError> {
        Ok(match &self.def.key {
            Some(template) if !self.render(template)?.trim().is_empty() => {
                Some("its `key` is set".to_owned())
            }
            Some(_) => None,
            None => self.var(home.key).map(|_| format!("{} is set", home.key)),
        })
    }

    /// Resolves a model of a provider with an address of its own. The key is needed.
    async fn hosted(
        &self,
        provider: &'static Provider,
        home: &Home,
    ) -> Result<BoundModel, ModelsError> {
        let why = self.key(home)?;
        let why = why.ok_or_else(|| {
            let provider = provider.name;
            match self.def.key {
                Some(_) => self.error(format!(
                    "provider `{provider}` needs a key, and its `key` is empty"
                )),
                None => self.error(format!(
                    "provider `{provider}` needs a key: set {}",
                    home.key
                )),
            }
        })?;
        let from_env = self.var(home.base);
        let url = match (&self.def.url, from_env) {
            (Some(_), _) => None,
            (None, None) => Some(home.url.to_owned()),
            (None, Some(url)) => Some(self.storable(home, url)?),
        };
        let elsewhere = url.as_deref().filter(|url| !home.has(url));
        let speaks = match home.elsewhere.filter(|_| elsewhere.is_some()) {
            Some(other) => self.named(other)?,
            None => provider,
        };
        let mut bound = self.bound(speaks.name);
        if self.def.key.is_none() {
            bound.key_env = Some(home.key.to_owned());
        }
        if bound.model.is_none() {
            bound.model = Some(match elsewhere {
                Some(url) => self.first_model(url, speaks, Some(home)).await?,
                None => home.model.to_owned(),
            });
        }
        if elsewhere.is_none() && self.def.url.is_none() {
            let model = bound.model.as_deref().unwrap_or_default();
            bound.price = hosted::price(provider.name, model);
        }
        bound.url = url;
        self.say_taken(&bound, &why);
        Ok(bound)
    }

    /// Resolves a model of a cloud, whose address and credentials are in the environment. `key` replaces the credentials.
    fn in_cloud(&self, provider: &Provider, cloud: &Cloud) -> Result<BoundModel, ModelsError> {
        let (name, mut bound) = (provider.name, self.bound(provider.name));
        if bound.model.is_none() {
            return Err(self.error(format!(
                "provider `{name}` has no default model: name one with `model`"
            )));
        }
        match &self.def.key {
            Some(template) if self.render(template)?.trim().is_empty() => {
                return Err(self.error(format!(
                    "provider `{name}` needs a key, and its `key` is empty"
                )));
            }
            Some(_) => {}
            None => {
                let is_set = |var: &&str| self.var(var).is_some();
                let found = cloud
                    .keys
                    .iter()
                    .find(|keys| keys.needed.iter().all(is_set));
                let found = found.ok_or_else(|| {
                    let ways = cloud.keys.iter().map(|keys| keys.needed.join(" and "));
                    let ways: Vec<String> = ways.collect();
                    self.error(format!(
                        "provider `{name}` needs credentials: set {}",
                        ways.join(", or ")
                    ))
                })?;
                let vars: Vec<&str> = found.needed.iter().copied().chain(found.also).collect();
                bound.key_env = Some(vars.join(" "));
            }
        }
        let url = (cloud.address)(&|var| self.var(var))
            .map_err(|why| self.error(format!("provider `{name}` needs an address: {why}")))?;
        let base = base_url(&url).map_err(|why| self.error(why))?;
        if base.password().is_some() || !base.username().is_empty() {
            return Err(self.error(
                "the address in the environment holds a user or password, and it would be stored with the session",
            ));
        }
        let model = bound.model.as_deref().unwrap_or_default();
        bound.price = hosted::price(name, model);
        bound.url = Some(url);
        Ok(bound)
    }

    /// Checks that an address may be stored with the session: it must not contain a password or key.
    fn storable(&self, home: &Home, url: String) -> Result<String, ModelsError> {
        let base_var = home.base;
        let base = base_url(&url).map_err(|why| self.error(format!("{base_var}: {why}")))?;
        if base.password().is_some() || !base.username().is_empty() || base.query().is_some() {
            return Err(self.error(format!(
                "{base_var} holds a user, password or query, and it would be stored with the session; give the \
                 model a `url` with a secret in it instead"
            )));
        }
        Ok(url)
    }

    /// Resolves a model whose address the definition gives.
    async fn at_url(
        &self,
        template: &Template,
        provider: &'static Provider,
    ) -> Result<BoundModel, ModelsError> {
        let url = self.render(template)?;
        // The address may be the site of another provider, which lists this one for servers at other addresses (`elsewhere`).
        let owner =
            homes().find(|(_, home)| home.elsewhere == Some(provider.name) && home.has(&url));
        if let Some((owner, home)) = owner {
            let auto = matches!(self.def.provider, network::Provider::Auto);
            let owner = match home.auto.filter(|_| auto) {
                Some(taken) => self.named(taken)?,
                None => owner,
            };
            if self.def.key.is_none() && !self.is_fixed(template, &url) {
                return Err(self.error(format!(
                    "its `url` may change while the session runs, and {} is sent to a fixed address only; give the model a `key`, \
                     or the `url` a value that is not live",
                    home.key
                )));
            }
            return self.hosted(owner, home).await;
        }
        let mut bound = self.bound(provider.name);
        if bound.model.is_none() {
            bound.model = Some(self.first_model(&url, provider, None).await?);
        }
        if provider.reports {
            self.say_tools(&url, bound.model.as_deref().unwrap_or_default())
                .await;
        }
        Ok(bound)
    }

    async fn auto(&self) -> Result<BoundModel, ModelsError> {
        let mut looked = Vec::new();
        // If the model has a `key`, it is for the first provider, so no other is tried.
        let tried_max = if self.def.key.is_some() {
            1
        } else {
            usize::MAX
        };
        for (provider, home) in tried().take(tried_max) {
            if self.key(home)?.is_some() {
                return self.hosted(provider, home).await;
            }
            let elsewhere = self.var(home.base).filter(|url| !home.has(url));
            if let (Some(other), Some(url)) = (home.elsewhere, elsewhere) {
                return self.without_key(self.named(other)?, home, url).await;
            }
            looked.push(match self.def.key {
                Some(_) => "its `key` is empty".to_owned(),
                None => format!("{} is not set", home.key),
            });
        }
        let keys: Vec<&str> = tried().map(|(_, home)| home.key).collect();
        let bases = tried().filter(|(_, home)| home.elsewhere.is_some());
        let bases: Vec<&str> = bases.map(|(_, home)| home.base).collect();
        Err(self.error(format!(
            "`auto` found nothing to talk to: {}. Set {}, or {} to a server's address, take a server of models on this computer \
             ({}) with --model local, give the model a `url`, or take a script with --script-all FILE",
            looked.join("; "),
            keys.join(" or "),
            bases.join(" or "),
            local_names(),
        )))
    }

    /// Looks for a server of models on this computer.
    async fn local(&self) -> Result<BoundModel, ModelsError> {
        let mut looked = Vec::new();
        let compatible = self.named(COMPATIBLE)?;
        for url in &self.catalog.local {
            let place = url.trim_start_matches("http://").trim_end_matches("/v1");
            let models = match self.list(url, None, compatible).await {
                Ok(models) => models,
                Err(why) => {
                    looked.push(format!("{place}: {why}"));
                    continue;
                }
            };
            let wanted = self.def.named();
            let taken = models
                .into_iter()
                .find(|model| wanted.map_or(!model.contains("embed"), |wanted| model == wanted));
            let Some(model) = taken else {
                let wanted = wanted.unwrap_or("any chat model");
                looked.push(format!("{place} answers, but does not serve `{wanted}`"));
                continue;
            };
            let bound = BoundModel {
                model: Some(model.clone()),
                url: Some(url.clone()),
                // A server on this computer costs no money.
                price: Some(Price::default()),
                ..self.bound(compatible.name)
            };
            looked.push(format!("{place} answers"));
            self.say_taken(&bound, &looked.join("; "));
            self.say_tools(url, &model).await;
            return Ok(bound);
        }
        Err(self.error(format!(
            "`local` found no server of models on this computer: {}. Start one ({}), or give the model the `url` of another",
            looked.join("; "),
            local_names(),
        )))
    }

    /// Resolves an address from the environment without a key: a server that needs none, like those on this computer.
    async fn without_key(
        &self,
        provider: &Provider,
        home: &Home,
        url: String,
    ) -> Result<BoundModel, ModelsError> {
        let url = self.storable(home, url)?;
        let mut bound = self.bound(provider.name);
        let model = match bound.model.take() {
            Some(model) => model,
            None => self.first_model(&url, provider, None).await?,
        };
        bound.model = Some(model.clone());
        bound.url = Some(url.clone());
        self.say_taken(&bound, &format!("{} is set, without a key", home.base));
        if provider.reports {
            self.say_tools(&url, &model).await;
        }
        Ok(bound)
    }

    /// Returns the first model in a server's list that is not for embeddings, judged by its name. `home`: the provider whose key
    /// in the environment is for that server.
    async fn first_model(
        &self,
        url: &str,
        provider: &Provider,
        home: Option<&Home>,
    ) -> Result<String, ModelsError> {
        let key = match &self.def.key {
            Some(template) => Some(self.render(template)?),
            None => home
                .filter(|_| self.def.url.is_none())
                .and_then(|home| self.var(home.key)),
        };
        let shown = base_url(url).map_or_else(|_| url.to_owned(), |url| url.to_string());
        match self.list(url, key.as_deref(), provider).await {
            Ok(models) => models
                .into_iter()
                .find(|model| !model.contains("embed"))
                .ok_or_else(|| {
                    self.error(format!(
                        "{shown} lists no chat model; name one with `model`"
                    ))
                }),
            Err(why) => Err(self.error(format!(
                "{shown}: {why}; name the model with `model` or start the server"
            ))),
        }
    }

    /// Returns the names of the models that a server lists. The error says, as text for people, why there is no list.
    async fn list(
        &self,
        url: &str,
        key: Option<&str>,
        provider: &Provider,
    ) -> Result<Vec<String>, String> {
        let base = base_url(url)?;
        let client = self.catalog.clients.of(&base)?;
        let get = (provider.list)(client.get(endpoint(&base, "models")), key);
        let reading = async {
            let mut response = get.send().await.map_err(|error| {
                if error.is_connect() {
                    "nothing answers".to_owned()
                } else {
                    "no proper answer".to_owned()
                }
            })?;
            if !response.status().is_success() {
                return Err(format!(
                    "status {} for its list of models",
                    response.status().as_u16()
                ));
            }
            let bytes = body(&mut response, LIST_MAX).await;
            let bytes = bytes.map_err(|_| "its list of models ended early".to_owned())?;
            let list = serde_json::from_slice::<Json>(&bytes).unwrap_or_default();
            let list = list.get("data").or_else(|| list.get("models"));
            let list = list.and_then(Json::as_array);
            let list = list.ok_or("it answers, but gives no list of models".to_owned())?;
            let ids = list.iter().filter_map(|model| {
                // Gemini has names with their folder.
                let name = model.get("id").or_else(|| model.get("name"))?.as_str()?;
                Some(name.strip_prefix("models/").unwrap_or(name).to_owned())
            });
            Ok(ids.collect())
        };
        let patient = tokio::time::timeout(PATIENCE, reading).await;
        patient.unwrap_or_else(|_| Err("no answer in time".to_owned()))
    }

    fn say_taken(&self, bound: &BoundModel, why: &str) {
        let found = [network::Provider::Auto, network::Provider::Local];
        if found.contains(&self.def.provider) {
            let model = bound.model.as_deref().unwrap_or("its model");
            let at = bound
                .url
                .as_deref()
                .map(|url| format!(" at {url}"))
                .unwrap_or_default();
            self.catalog
                .say(format!("model `{}`: {model}{at} ({why})", self.name));
        }
    }

    /// Reports a model without native tools, since its server may drop them silently.
    async fn say_tools(&self, url: &str, model: &str) {
        if matches!(self.def.calls, CallStyle::Structured | CallStyle::Text) {
            return;
        }
        let Ok(base) = base_url(url) else { return };
        let found = self
            .catalog
            .known
            .of(&self.catalog.clients, &base, model)
            .await;
        if found.tools == Some(false) {
            let server = found.server.unwrap_or("the server");
            let what = match self.def.calls {
                CallStyle::Native => "with `calls: native` it drops them silently",
                CallStyle::Auto | CallStyle::Structured | CallStyle::Text => {
                    "they are told in the prompt and called by structured output"
                }
            };
            let place = place(&base);
            self.catalog.say(format!(
                "model `{}`: {server} at {place} says that {model} has no tools of its own; {what}",
                self.name
            ));
        }
    }
}

/// Returns the providers that `auto` takes, with their addresses, in the order in which it tries them.
fn tried() -> impl Iterator<Item = (&'static Provider, &'static Home)> {
    homes().filter_map(|(_, home)| Some((named(home.auto?)?, home)))
}

/// The servers on this computer that are known, as text for people.
fn local_names() -> String {
    LOCAL.map(|(name, _)| name).join(", ")
}

fn place(base: &Url) -> String {
    base.host_str()
        .map_or_else(String::new, |host| match base.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_listener_may_use_the_catalog_and_hears_each_sentence_once() {
        let (place, count) = (Arc::new(OnceLock::new()), Arc::new(AtomicUsize::new(0)));
        let (found, counted) = (Arc::clone(&place), Arc::clone(&count));
        let catalog = Arc::new(Catalog::default().heard_by(move |_| {
            let catalog: &Arc<Catalog> = found.get().expect("set before anything is said");
            // A lock would fail here, not block the test.
            assert!(catalog.said.try_lock().is_ok());
            counted.fetch_add(1, Ordering::Relaxed);
        }));
        place.set(catalog.clone()).ok().expect("set once");
        for n in 0..2 * SAID_MAX {
            catalog.say(n.to_string());
            catalog.say(n.to_string());
        }
        assert_eq!(count.load(Ordering::Relaxed), 2 * SAID_MAX);
        assert_eq!(catalog.said.lock().unwrap().len(), SAID_MAX);
    }
}
