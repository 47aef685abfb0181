//! Networks: built from YAML, from Rust, or from both, and checked as a whole.

use crate::build::{Declared, Keys, Limits};
use crate::error::{DefinitionError, Error};
use crate::hooks::Hook;
use crate::read;
use crate::states::States;
use crate::tool::Tool;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steersman_definition::{self as definition, Files, Node, Severity};
use steersman_machine::network as checked;
use steersman_machine::network::Source;
use steersman_machine::network::nets::{self, Natives, Net, RouteView, Router, states as rules};
use steersman_machine::stored::interaction::Choice;
use steersman_machine::values::types::{Parameters, Type, TypeKind};

/// A checked definition with the tools in Rust that it names. Clones share it.
#[derive(Clone, Debug)]
pub struct Network {
    checked: Arc<checked::Network>,
    tests: Arc<BTreeMap<String, definition::test::Test>>,
    grades: Arc<BTreeMap<String, definition::grade::Grade>>,
    tools: Arc<BTreeMap<String, Tool>>,
    warnings: Arc<[definition::Diagnostic]>,
    folder: Option<PathBuf>,
    file: Option<String>,
}

impl Network {
    /// Returns the network with wrappers that ask each net and router in Rust twice per decision, and add differing answers to
    /// `found`.
    pub(crate) fn asked_twice(&self, found: &crate::nets::Found) -> Self {
        let natives = crate::nets::twice(&self.checked.natives, found);
        let checked = checked::Network {
            natives,
            ..(*self.checked).clone()
        };
        Self {
            checked: Arc::new(checked),
            ..self.clone()
        }
    }

    /// Returns the network with another checked form.
    pub(crate) fn with_checked(&self, checked: checked::Network) -> Self {
        Self {
            checked: Arc::new(checked),
            ..self.clone()
        }
    }

    /// Returns this network with another checked form and its tests.
    pub(crate) fn with_compiled(&self, compiled: definition::Compiled) -> Self {
        Self {
            tests: Arc::new(compiled.tests),
            grades: Arc::new(compiled.grades),
            ..self.with_checked(compiled.network)
        }
    }

    /// Returns the network that a session is bound to, without tools in Rust.
    pub(crate) fn bound(
        checked: Arc<checked::Network>,
        folder: Option<PathBuf>,
        file: Option<String>,
    ) -> Self {
        Self {
            checked,
            tests: Arc::default(),
            grades: Arc::default(),
            tools: Arc::default(),
            warnings: Arc::default(),
            folder,
            file,
        }
    }

    /// Reads a definition from a file, or from a folder with a `steersman.yaml`.
    ///
    /// # Errors
    /// [`Error::Read`] if a file cannot be read. Errors *in* the files are reported by [`Builder::build`].
    pub fn from_path(path: impl AsRef<Path>) -> Result<Builder, Error> {
        let path = path.as_ref();
        let folder = if path.is_dir() {
            Some(path)
        } else {
            path.parent()
        };
        let mut builder = Builder::of(Written::Files(read::definition(path)?));
        let file = path.file_name().filter(|_| !path.is_dir());
        builder.file = file
            .map(|file| file.to_string_lossy().into_owned())
            .filter(|file| file != read::MAIN);
        builder.folder = folder.map(|folder| {
            let folder = if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            };
            folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
        });
        Ok(builder)
    }

    /// Starts a network from a definition in one text.
    pub fn from_yaml(text: impl Into<Arc<str>>) -> Builder {
        Builder::of(Written::Files(Files::new(read::MAIN, text)))
    }

    /// Starts a definition in Rust, which is lowered into the same checked form.
    pub fn builder(name: &str) -> Builder {
        let mut keys = Map::new();
        keys.insert("steersman".into(), 1.into());
        keys.insert("name".into(), name.into());
        Builder::of(Written::Keys(keys))
    }

    /// Returns the name of the network.
    pub fn name(&self) -> &str {
        &self.checked.name
    }

    /// Returns the checked form of the definition.
    pub fn checked(&self) -> &Arc<checked::Network> {
        &self.checked
    }

    /// Returns warnings and notes. The network can run, but somebody should read them.
    pub fn warnings(&self) -> &[definition::Diagnostic] {
        &self.warnings
    }

    /// Returns the names of its tests, for [`testing::run`](crate::testing::run).
    pub fn tests(&self) -> impl Iterator<Item = &str> {
        self.tests.keys().map(|name| &**name)
    }

    /// Returns a test by name.
    pub(crate) fn test(&self, name: &str) -> Option<&definition::test::Test> {
        self.tests.get(name)
    }

    /// Returns its grades by name, for [`grading`](crate::grading).
    pub fn grades(&self) -> &BTreeMap<String, definition::grade::Grade> {
        &self.grades
    }

    /// Returns the folder that it was read from, in which its commands run.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Returns the name of its main file in that folder, if that is not `steersman.yaml`.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.tools.values()
    }
}

/// The source of a definition: files, or keys that were set in Rust.
#[derive(Debug, Clone)]
enum Written {
    Files(Files),
    Keys(Map<String, Json>),
}

/// A network that is not checked yet.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    written: Written,
    tools: Vec<Tool>,
    natives: Natives,
    /// Nets of states by name.
    states: Vec<(String, rules::States)>,
    /// Names of nets and routers that were registered more than once.
    twice: Vec<String>,
    /// Keys that were set in Rust on a definition that was read from text.
    misplaced: Vec<String>,
    /// Files that were given in Rust: paths and texts.
    texts: Vec<(String, Arc<str>)>,
    folder: Option<PathBuf>,
    file: Option<String>,
}

impl Builder {
    fn of(written: Written) -> Self {
        Self {
            written,
            tools: Vec::new(),
            natives: Natives::default(),
            states: Vec::new(),
            twice: Vec::new(),
            misplaced: Vec::new(),
            texts: Vec::new(),
            folder: None,
            file: None,
        }
    }

    /// Adds a tool in Rust. A YAML definition must declare it: `parse_pdf: { native: 3, parameters: {..} }`.
    pub fn tool(mut self, tool: Tool) -> Self {
        if let Written::Keys(keys) = &mut self.written {
            let mut entry = tool.keys.clone();
            entry.insert("native".into(), tool.version.as_str().into());
            let effect = entry.entry("effect");
            effect.or_insert_with(|| tool.class.word().into());
            let parameters = entry.entry("parameters");
            parameters.or_insert_with(|| schema_path(&tool.name).into());
            insert(keys, "tools", &tool.name, Json::Object(entry));
        }
        self.tools.push(tool);
        self
    }

    /// Adds a net in Rust, under the name that agents give as their `net`. A net decides what each answer of the model
    /// becomes: a thought, the next question to it, calls, the answer. It is asked again whenever a session is loaded, so
    /// it must be a pure function of its arguments: no clock, no I/O, no memory of its own.
    ///
    /// A session is bound to the version and continues only where that version is registered.
    ///
    /// ```
    /// use steersman::machine::network::nets::{Event, Net, NetView, Step};
    /// use steersman::{Network, Steersman, Turn};
    ///
    /// /// Draft, check, answer.
    /// struct Checked;
    ///
    /// impl Net for Checked {
    ///     fn version(&self) -> String {
    ///         "1".to_owned()
    ///     }
    ///     fn next(&self, view: &NetView<'_>, event: &Event<'_>) -> Step {
    ///         match event {
    ///             Event::Answered(answer) if !answer.asks.is_empty() => Step::Take,      // its calls are opened
    ///             Event::Answered(_) => match view.steps() {
    ///                 0 => Step::Next("Check that: is each number right?".to_owned()),
    ///                 1 => Step::Next("Now answer.".to_owned()),
    ///                 _ => Step::Take,
    ///             },
    ///             _ => Step::Think,
    ///         }
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), steersman::Error> {
    /// let network = Network::from_yaml("agents: { clerk: { system: You reckon., net: checked } }")
    ///     .net("checked", Checked)
    ///     .build()?;
    /// let script = "clerk: [ It is 41., One is missing., It is 42. ]";
    /// let session = Steersman::options().script_all(script).in_memory().start(&network).await?;
    /// let Turn::Answer(answer) = session.ask("How much is it?").await? else { panic!("it answers") };
    /// assert_eq!(answer.text(), "It is 42.");
    /// # Ok(())
    /// # }
    /// ```
    pub fn net(mut self, name: &str, net: impl Net + 'static) -> Self {
        if self.natives.nets.contains_key(name) {
            self.twice.push(format!("the net `{name}`"));
        }
        self.natives.nets.insert(name.into(), crate::nets::net(net));
        self
    }

    /// Adds the [states](crate::State) of an agent, as the net of this name. Their work is added as tools: a YAML definition must declare
    /// each: `measure: { native: 1, effect: read, parameters: {..} }`.
    pub fn states(self, net: &str, states: States) -> Self {
        let (rules, tools) = states.parts();
        let known = tools.into_iter().fold(self, Self::tool);
        let mut built = known.net(net, rules.clone());
        built.states.push((net.to_owned(), rules));
        built
    }

    /// Adds a hook in Rust. A YAML definition must declare it: `hooks: { redact: { native: 1 } }`. A session of the definition runs only
    /// where the hook is registered in that version. [`hook`](crate::hook) has an example.
    pub fn hook(mut self, hook: Hook) -> Self {
        if let Written::Keys(keys) = &mut self.written {
            let mut entry = hook.keys.clone();
            entry.insert("native".into(), hook.version.as_str().into());
            insert(keys, "hooks", &hook.name, Json::Object(entry));
        }
        if self.natives.hooks.contains_key(&*hook.name) {
            self.twice.push(format!("the hook `{}`", hook.name));
        }
        let registered = hook.registered();
        self.natives.hooks.insert(hook.name.into(), registered);
        self
    }

    /// Adds a router in Rust for an agent with `route: { native: VERSION }`. It chooses who acts next. It is asked once for
    /// each decision, and the decision is recorded with what the router read.
    pub fn router(mut self, agent: &str, router: impl Router + 'static) -> Self {
        if self.natives.routers.contains_key(agent) {
            self.twice.push(format!("the router of `{agent}`"));
        }
        let router = crate::nets::router(router);
        self.natives.routers.insert(agent.into(), router);
        self
    }

    /// Adds a closure as the router of an agent with `route: { native: VERSION }`; `version` must be that version.
    ///
    /// ```
    /// use steersman::machine::stored::interaction::Choice;
    /// use steersman::{Network, Steersman, Turn};
    ///
    /// const DEFINITION: &str = r#"
    /// state: { plan: optional string }
    /// tools: { note: { description: Notes the plan., parameters: { text: string }, set: { plan: "{{ args.text }}" } } }
    /// agents:
    ///   planner: { description: Plans., system: You plan., tools: [note], turns: once }
    ///   editor: { description: Edits., system: "The plan is {{ state.plan }}." }
    ///   coder: { route: { native: 1 } }
    /// entry: coder
    /// "#;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), steersman::Error> {
    /// let network = Network::from_yaml(DEFINITION)
    ///     .route("coder", 1, |view| {
    ///         let plan: Option<String> = view.state("plan")?;
    ///         Ok(match (plan, view.last()) {
    ///             (None, _) => Choice::to("planner"),
    ///             (Some(_), Some((last, _))) if last == "editor" => Choice::Finish,
    ///             (Some(_), _) => Choice::to("editor"),
    ///         })
    ///     })
    ///     .build()?;
    /// let script = "{ planner: [ { call: { note: { text: mend it } } } ], editor: [ Mended. ] }";
    /// let session = Steersman::options().script_all(script).in_memory().start(&network).await?;
    /// let Turn::Answer(answer) = session.ask("It is broken.").await? else { panic!("it answers") };
    /// assert_eq!(answer.text(), "Mended.");
    /// # Ok(())
    /// # }
    /// ```
    pub fn route<F>(self, agent: &str, version: impl ToString, route: F) -> Self
    where
        F: Fn(&RouteView<'_>) -> Result<Choice, String> + Send + Sync + 'static,
    {
        let version = version.to_string();
        self.router(agent, crate::nets::Closure { version, route })
    }

    /// Adds an agent to a network that is built in Rust.
    pub fn agent(self, agent: Agent) -> Self {
        self.entry_of("agents", &agent.name, Json::Object(agent.keys))
    }
    /// Adds a tool that is declared alone: a request, a command, a wait, or writes of state ([`declare`](crate::declare)).
    pub fn declare(self, tool: Declared) -> Self {
        let (name, keys) = tool.into_parts();
        self.entry_of("tools", &name, Json::Object(keys))
    }
    /// Adds a text file that the definition names by its path: an imported definition, a prompt, a JSON Schema, sentences.
    pub fn file(mut self, path: &str, text: impl Into<Arc<str>>) -> Self {
        self.texts.push((path.to_owned(), text.into()));
        self
    }
    /// Sets any key of the definition format's *File*. [`build`](Self::build) refuses keys that are set on a network from YAML.
    pub fn key(mut self, key: &str, value: impl Into<Json>) -> Self {
        match &mut self.written {
            Written::Keys(keys) => {
                keys.insert(key.to_owned(), value.into());
            }
            Written::Files(_) => self.misplaced.push(format!("`{key}`")),
        }
        self
    }

    fn entry_of(mut self, map: &str, name: &str, value: Json) -> Self {
        match &mut self.written {
            Written::Keys(keys) => insert(keys, map, name, value),
            Written::Files(_) => self.misplaced.push(format!("`{name}` of `{map}`")),
        }
        self
    }

    /// Checks the definition and everything that is registered.
    ///
    /// # Errors
    /// All errors together, not only the first. Tools, nets, routers and hooks are checked only if the definition compiles.
    pub fn build(self) -> Result<Network, DefinitionError> {
        let (compiled, diagnostics) = match self.written {
            Written::Files(mut files) => {
                for (path, text) in self.texts {
                    files.add(path, text);
                }
                definition::compile_with_tests(&files, None)
            }
            Written::Keys(keys) => {
                let mut files = Files::default();
                for tool in &self.tools {
                    files.add(schema_path(&tool.name), tool.schema.to_string());
                }
                for (path, text) in self.texts {
                    files.add(path, text);
                }
                let root = Node::json(&Json::Object(keys));
                definition::compile_with_tests(&files, Some(root))
            }
        };
        let (network, beside) = compiled
            .map(|compiled| (compiled.network, (compiled.tests, compiled.grades)))
            .unzip();
        let (tests, grades) = beside.unwrap_or_default();
        let failed = diagnostics.iter().any(|d| d.severity == Severity::Error);
        let mut problems = Vec::new();
        if let Some(network) = &network {
            for tool in &self.tools {
                fits(network, tool, &mut problems);
            }
            natives_fit(network, &self.natives, &mut problems);
            hooks_fit(network, &self.natives, &mut problems);
        }
        for (net, states) in &self.states {
            states_fit(net, states, &mut problems);
        }
        twice(&self.tools, &mut problems);
        problems.extend(
            self.twice
                .iter()
                .map(|what| format!("{what} is registered twice")),
        );
        problems.extend(self.misplaced.iter().map(|key| {
            format!(
                "{key} is set in Rust on a definition that was read from text: set it in the text"
            )
        }));
        let network = network.map(|network| checked::Network {
            natives: self.natives,
            ..network
        });
        match network {
            Some(network) if !failed && problems.is_empty() => Ok(Network {
                checked: Arc::new(network),
                tests: Arc::new(tests),
                grades: Arc::new(grades),
                tools: Arc::new(
                    self.tools
                        .into_iter()
                        .map(|t| (t.name.clone(), t))
                        .collect(),
                ),
                warnings: diagnostics.into(),
                folder: self.folder,
                file: self.file,
            }),
            _ => Err(DefinitionError {
                diagnostics,
                in_rust: problems,
            }),
        }
    }
}

fn insert(keys: &mut Map<String, Json>, map: &str, name: &str, value: Json) {
    let entries = keys.entry(map).or_insert_with(|| Json::Object(Map::new()));
    if let Json::Object(entries) = entries {
        entries.insert(name.to_owned(), value);
    }
}

/// Returns the path under which the schema of a tool's argument is compiled, as if it were a file.
fn schema_path(tool: &str) -> String {
    format!("schemas/{tool}.json")
}

fn twice(tools: &[Tool], problems: &mut Vec<String>) {
    for (i, tool) in tools.iter().enumerate() {
        if tools[..i].iter().any(|t| t.name == tool.name) {
            problems.push(format!("tool `{}` is registered twice", tool.name));
        }
    }
}

/// Compares a tool that is registered in Rust with its declaration in the definition.
fn fits(network: &checked::Network, tool: &Tool, problems: &mut Vec<String>) {
    let name = &tool.name;
    let Some(declared) = network.tools.get(name.as_str()) else {
        problems.push(format!(
            "tool `{name}` is registered in Rust and not declared: add `{name}: {{ native: {} }}` under `tools:`",
            tool.version
        ));
        return;
    };
    match &declared.source {
        Source::Native { version } if *version == tool.version => {}
        Source::Native { version } => problems.push(format!(
            "tool `{name}` is declared as `native: {version}` and registered as version {}",
            tool.version
        )),
        _ => problems.push(format!(
            "tool `{name}` is registered in Rust and declared as something else: say `native: {}` there",
            tool.version
        )),
    }
    if tool.class_given && declared.effect != tool.class {
        problems.push(format!(
            "tool `{name}` is declared as `effect: {}` and registered as {}",
            declared.effect.word(),
            tool.class.word()
        ));
    }
    if let Parameters::Fields(fields) = &declared.parameters {
        parameters_fit(name, fields, &tool.schema, problems);
    }
}

/// Compares nets and routers in Rust with those that the definition names. A net that it does not name is not a fault: it
/// may belong to another definition of the program.
fn natives_fit(network: &checked::Network, natives: &Natives, problems: &mut Vec<String>) {
    for name in network.nets_in_rust() {
        if !natives.nets.contains_key(name) {
            let mut known: Vec<&str> = nets::built_in().collect();
            known.extend(natives.nets.keys().map(|known| &**known));
            problems.push(format!(
                "an agent names the net `{name}`, and there are {}: register it with `Builder::net`",
                known.join(", ")
            ));
        }
    }
    for (agent, version) in network.routers_in_rust() {
        match natives.routers.get(agent) {
            Some(router) if router.version() == version => {}
            Some(router) => problems.push(format!(
                "the router of `{agent}` is declared as `native: {version}` and registered as version {}",
                router.version()
            )),
            None => problems.push(format!(
                "agent `{agent}` is routed in Rust: register its router with `Builder::router`"
            )),
        }
    }
    for agent in natives.routers.keys() {
        if !network.routers_in_rust().contains_key(agent) {
            problems.push(format!(
                "a router is registered for `{agent}`, which no definition routes with `native`"
            ));
        }
    }
}

/// Compares hooks in Rust with those that the definition declares.
fn hooks_fit(network: &checked::Network, natives: &Natives, problems: &mut Vec<String>) {
    for hook in &network.hooks {
        let name = &hook.name;
        match natives.hooks.get(name) {
            Some(native) if native.version() == hook.version => {}
            Some(native) => problems.push(format!(
                "the hook `{name}` is declared as `native: {}` and registered as version {}",
                hook.version,
                native.version()
            )),
            None => problems.push(format!(
                "the hook `{name}` is declared and not registered: register it with `Builder::hook`"
            )),
        }
    }
    for (name, native) in &natives.hooks {
        if !network.hooks.iter().any(|hook| hook.name == *name) {
            problems.push(format!(
                "the hook `{name}` is registered in Rust and not declared: add `{name}: {{ native: {} }}` under `hooks:`",
                native.version()
            ));
        }
    }
}

/// Checks the names of the states of a net.
fn states_fit(net: &str, states: &rules::States, problems: &mut Vec<String>) {
    let names: Vec<&str> = states.names().collect();
    if names.is_empty() {
        problems.push(format!("the net `{net}` has no states"));
    }
    for (n, name) in names.iter().enumerate() {
        if names[..n].contains(name) {
            problems.push(format!("the net `{net}` has two states `{name}`"));
        }
    }
    if let Some(last) = states.last()
        && !names.contains(&last)
    {
        problems.push(format!(
            "the last state of the net `{net}` is `{last}`, and its states are {}",
            names.join(", ")
        ));
    }
}

/// Compares the names of parameters, and whether each is required. Finer differences are found when the argument is parsed.
fn parameters_fit(
    name: &str,
    fields: &[(Arc<str>, Type)],
    schema: &Json,
    problems: &mut Vec<String>,
) {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required: Vec<&str> = schema["required"]
        .as_array()
        .map(|names| names.iter().filter_map(Json::as_str).collect())
        .unwrap_or_default();
    for (field, ty) in fields {
        if !properties.contains_key(&**field) && schema["additionalProperties"] == json!(false) {
            problems.push(format!(
                "tool `{name}` is declared with a parameter `{field}`, which its argument in Rust refuses"
            ));
        }
        if required.contains(&&**field) && ty.optional && ty.default.is_none() {
            problems.push(format!(
                "parameter `{field}` of tool `{name}` is optional where it is declared and required in Rust"
            ));
        }
        if let Some(wanted) = properties.get(&**field).and_then(|p| p["type"].as_str())
            && let Some(given) = json_type(&ty.kind)
            && wanted != given
            && !(wanted == "number" && given == "integer")
        {
            problems.push(format!(
                "parameter `{field}` of tool `{name}` is declared as {given}, in Rust it is {wanted}"
            ));
        }
    }
    for field in required {
        if !fields.iter().any(|(declared, _)| **declared == *field) {
            problems.push(format!(
                "tool `{name}` needs a parameter `{field}` in Rust that is not declared"
            ));
        }
    }
}

fn json_type(kind: &TypeKind) -> Option<&'static str> {
    match kind {
        TypeKind::String { .. } | TypeKind::Enum(_) | TypeKind::Secret => Some("string"),
        TypeKind::Integer { .. } => Some("integer"),
        TypeKind::Number { .. } => Some("number"),
        TypeKind::Boolean => Some("boolean"),
        TypeKind::List(_) => Some("array"),
        TypeKind::Fields(_) | TypeKind::Object => Some("object"),
        TypeKind::Any | TypeKind::Artifact | TypeKind::Schema(_) => None,
    }
}

/// An agent of a network that is built in Rust. Created by [`agent`].
#[derive(Debug, Clone)]
#[must_use = "an agent does nothing until it is added to a network"]
pub struct Agent {
    name: String,
    keys: Map<String, Json>,
}

/// Creates an agent of this name.
///
/// ```
/// use steersman::agent;
///
/// let desk = agent("desk").system("You answer questions.").tools(["search"]).model_calls(12);
/// # let _ = desk;
/// ```
pub fn agent(name: &str) -> Agent {
    Agent {
        name: name.to_owned(),
        keys: Map::new(),
    }
}

impl Agent {
    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Limits the model calls for one answer. After that, it answers without tools.
    pub fn model_calls(self, max: u32) -> Self {
        self.limits(Limits::new().model_calls(max))
    }
    /// Sets any key of the definition format's *Agent*.
    pub fn key(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.keys.insert(key.to_owned(), value.into());
        self
    }
}

impl Keys for Agent {
    fn put(self, key: &'static str, value: Json) -> Self {
        self.key(key, value)
    }
    fn at(&mut self, key: &'static str) -> Option<&mut Json> {
        self.keys.get_mut(key)
    }
}

impl Keys for Builder {
    fn put(self, key: &'static str, value: Json) -> Self {
        self.key(key, value)
    }
    fn at(&mut self, key: &'static str) -> Option<&mut Json> {
        match &mut self.written {
            Written::Keys(keys) => keys.get_mut(key),
            Written::Files(_) => None,
        }
    }
}
