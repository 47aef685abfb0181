//! graph-flow 0.8: tasks model <-> tool, FlowRunner (load, run one task, save).
//!
//! stores: none   Graph::execute_session on a live Session, nothing saved
//!       | memory InMemorySessionStorage through FlowRunner
//!       | sqlite a SessionStorage over rusqlite written here (the crate ships only PostgreSQL):
//!                one row per session with the whole Session as JSON, WAL, synchronous=FULL
//! Chat history has only user/assistant/system text, so a tool call is kept as JSON text in an
//! assistant message and a tool result as a user message.
use async_trait::async_trait;
use graph_flow::fanout::FanOutTask;
use graph_flow::*;
use peers_rust::*;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type R<T> = graph_flow::Result<T>;

struct SqliteStorage(Mutex<Connection>);
impl SqliteStorage {
    fn open(p: &std::path::Path) -> Self {
        let c = Connection::open(p).unwrap();
        c.execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
             CREATE TABLE IF NOT EXISTS sessions(id TEXT PRIMARY KEY, version INTEGER NOT NULL, data TEXT NOT NULL)",
        )
        .unwrap();
        SqliteStorage(Mutex::new(c))
    }
}
fn serr(e: impl std::fmt::Display) -> GraphError {
    GraphError::StorageError(e.to_string())
}
#[async_trait]
impl SessionStorage for SqliteStorage {
    async fn save(&self, mut s: Session) -> R<()> {
        let old = s.version as i64;
        s.version += 1;
        let data = serde_json::to_string(&s).map_err(serr)?;
        let c = self.0.lock().unwrap();
        let n = c
            .prepare_cached(
                "INSERT INTO sessions VALUES(?1, ?2, ?3) ON CONFLICT(id) DO UPDATE
                 SET version = excluded.version, data = excluded.data WHERE version = ?4",
            )
            .and_then(|mut q| q.execute(params![s.id, s.version as i64, data, old]))
            .map_err(serr)?;
        if n == 0 {
            Err(GraphError::SessionConflict(s.id))
        } else {
            Ok(())
        }
    }
    async fn get(&self, id: &str) -> R<Option<Session>> {
        let row: Option<String> = {
            let c = self.0.lock().unwrap();
            c.prepare_cached("SELECT data FROM sessions WHERE id = ?1")
                .and_then(|mut q| q.query_row([id], |r| r.get(0)).optional())
                .map_err(serr)?
        };
        row.map(|d| serde_json::from_str(&d).map_err(serr))
            .transpose()
    }
    async fn delete(&self, id: &str) -> R<()> {
        self.0
            .lock()
            .unwrap()
            .execute("DELETE FROM sessions WHERE id = ?1", [id])
            .map_err(serr)?;
        Ok(())
    }
}

fn tool_call_json(k: usize) -> Value {
    json!([{"id": format!("call_{k:06}"), "type": "function",
            "function": {"name": "lookup", "arguments": tool_args(k)}}])
}

struct Http {
    client: reqwest::Client,
    url: String,
    system: String,
    tools: Value,
}
impl Http {
    fn new(url: &str) -> Self {
        Http {
            client: reqwest::Client::new(),
            url: format!("{url}/chat/completions"),
            system: system_text(),
            tools: json!([{"type": "function", "function": {"name": "lookup", "description": "Look a key up.",
                "parameters": {"type": "object", "properties": {"key": {"type": "string"}, "n": {"type": "integer"}},
                               "required": ["key", "n"]}}}]),
        }
    }
    async fn infer(
        &self,
        turns: usize,
        history: &[(MessageRole, String)],
    ) -> std::result::Result<Reply, reqwest::Error> {
        let mut messages = vec![json!({"role": "system", "content": self.system})];
        messages.extend(history.iter().map(|(r, c)| {
            let mut m = Map::new();
            m.insert(
                "role".into(),
                if matches!(r, MessageRole::Assistant) {
                    "assistant"
                } else {
                    "user"
                }
                .into(),
            );
            m.insert("content".into(), c.as_str().into());
            Value::Object(m)
        }));
        let v: Value = self
            .client
            .post(&self.url)
            .bearer_auth("x")
            .json(&json!({"model": format!("stub-{turns}"), "messages": messages, "tools": self.tools}))
            .send()
            .await?
            .json()
            .await?;
        let m = &v["choices"][0]["message"];
        Ok(match m["tool_calls"][0]["function"]["arguments"].as_str() {
            Some(a) => Reply::Tool(
                serde_json::from_str::<Value>(a).unwrap()["n"]
                    .as_u64()
                    .unwrap() as usize,
            ),
            None => Reply::Final(m["content"].as_str().unwrap_or("").to_string()),
        })
    }
}

struct ModelTask {
    turns: usize,
    http: Option<Arc<Http>>,
}
#[async_trait]
impl Task for ModelTask {
    fn id(&self) -> &str {
        "model"
    }
    async fn run(&self, ctx: Context) -> R<TaskResult> {
        let reply = match &self.http {
            Some(h) => {
                let hist: Vec<_> = ctx
                    .get_all_messages()
                    .into_iter()
                    .map(|m| (m.role, m.content))
                    .collect();
                h.infer(self.turns, &hist).await.map_err(serr)?
            }
            None => {
                let last = ctx.get_last_messages(1);
                decide(&last[0].content, self.turns)
            }
        };
        match reply {
            Reply::Tool(k) => {
                ctx.add_assistant_message(tool_call_json(k).to_string());
                ctx.set("call", k)?;
                ctx.set("next", "tool")?;
                Ok(TaskResult::new(None, NextAction::Continue))
            }
            Reply::Final(t) => {
                ctx.add_assistant_message(t.clone());
                Ok(TaskResult::new(Some(t), NextAction::WaitForInput))
            }
        }
    }
}

struct ToolTask;
#[async_trait]
impl Task for ToolTask {
    fn id(&self) -> &str {
        "tool"
    }
    async fn run(&self, ctx: Context) -> R<TaskResult> {
        let k: usize = ctx.get("call").ok_or_else(|| serr("no call"))?;
        ctx.add_user_message(tool_result(k));
        Ok(TaskResult::new(None, NextAction::Continue))
    }
}

fn graph(turns: usize, http: Option<Arc<Http>>) -> Arc<Graph> {
    Arc::new(
        GraphBuilder::new("bench")
            .add_task(Arc::new(ModelTask { turns, http }))
            .add_task(Arc::new(ToolTask))
            .add_edge("model", "tool")
            .add_edge("tool", "model")
            .set_start_task("model")
            .build()
            .unwrap(),
    )
}

fn new_session(sid: &str) -> Session {
    let mut s = Session::new_from_task(sid.to_string(), "model");
    s.context = Context::with_max_chat_messages(1_000_000);
    s
}

/// Runs a live session until it waits for input.
async fn drive(g: &Graph, s: &mut Session) -> R<String> {
    loop {
        let r = g.execute_session(s).await?;
        if matches!(r.status, ExecutionStatus::WaitingForInput) {
            return Ok(r.response.unwrap_or_default());
        }
    }
}

struct Bench {
    graph: Arc<Graph>,
    storage: Option<Arc<dyn SessionStorage>>,
    live: Mutex<Option<Session>>,
}
impl Bench {
    async fn run_loop(&self, sid: String, i: usize) -> R<String> {
        let Some(st) = &self.storage else {
            let mut s = new_session(&sid);
            s.context.add_user_message(user_text(i));
            return drive(&self.graph, &mut s).await;
        };
        let s = st.get(&sid).await?.unwrap_or_else(|| new_session(&sid));
        s.context.add_user_message(user_text(i));
        st.save(s).await?;
        let runner = FlowRunner::new(self.graph.clone(), st.clone());
        loop {
            let r = runner.run(&sid).await?;
            if matches!(r.status, ExecutionStatus::WaitingForInput) {
                return Ok(r.response.unwrap_or_default());
            }
        }
    }
    async fn chat(&self, i: usize) -> R<String> {
        if self.storage.is_some() {
            return self.run_loop("s0".into(), i).await;
        }
        let mut s = self
            .live
            .lock()
            .unwrap()
            .take()
            .unwrap_or_else(|| new_session("s0"));
        s.context.add_user_message(user_text(i));
        let t = drive(&self.graph, &mut s).await?;
        *self.live.lock().unwrap() = Some(s);
        Ok(t)
    }
}

/// W4 child: a sub-agent's whole loop inside one task (FanOutTask children are single units of work).
struct Sub(String, usize, usize);
#[async_trait]
impl Task for Sub {
    fn id(&self) -> &str {
        &self.0
    }
    async fn run(&self, _ctx: Context) -> R<TaskResult> {
        let mut s = new_session(&self.0);
        s.context.add_user_message(user_text(self.1));
        let t = drive(&graph(self.2, None), &mut s).await?;
        ok(&t);
        Ok(TaskResult::new(Some(t), NextAction::End))
    }
}
struct Plain(&'static str, NextAction);
#[async_trait]
impl Task for Plain {
    fn id(&self) -> &str {
        self.0
    }
    async fn run(&self, ctx: Context) -> R<TaskResult> {
        let Reply::Final(t) = decide(&user_text(0), 1) else {
            unreachable!()
        };
        ctx.add_assistant_message(t.clone());
        Ok(TaskResult::new(Some(t), self.1.clone()))
    }
}

fn ok(t: &str) {
    assert!(t.starts_with("Answer "), "wrong final answer: {t}");
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let a = args();
    let own = a.dir.is_none();
    let dir = a.dir.clone().unwrap_or_else(data_dir);
    std::fs::create_dir_all(&dir).unwrap();
    let imported = ms_since_spawn();
    let http = (!a.url.is_empty()).then(|| Arc::new(Http::new(&a.url)));
    let mut out = Map::new();
    for (k, v) in [
        ("peer", json!("graph-flow")),
        ("store", json!(a.store)),
        ("w", json!(a.w)),
        ("n", json!(a.n)),
    ] {
        out.insert(k.into(), v);
    }
    let open =
        |turns: usize| {
            Arc::new(Bench {
                graph: graph(turns, http.clone()),
                storage: match a.store.as_str() {
                    "none" => None,
                    "memory" => {
                        Some(Arc::new(InMemorySessionStorage::new()) as Arc<dyn SessionStorage>)
                    }
                    "sqlite" => Some(Arc::new(SqliteStorage::open(&dir.join("gf.db")))
                        as Arc<dyn SessionStorage>),
                    x => panic!("unknown store {x}"),
                },
                live: Mutex::new(None),
            })
        };
    async fn many(b: Arc<Bench>, n: usize) {
        let hs: Vec<_> = (0..n)
            .map(|i| {
                let b = b.clone();
                tokio::spawn(async move { b.run_loop(format!("s{i}"), i).await.unwrap() })
            })
            .collect();
        for h in hs {
            ok(&h.await.unwrap());
        }
    }
    let (m, turns, steps, r);
    match a.w.as_str() {
        "W1" => {
            let b = open(a.n);
            m = Meter::new();
            ok(&b.run_loop("s0".into(), 0).await.unwrap());
            r = m.read();
            (turns, steps) = (a.n, 2 * a.n - 1);
        }
        "W2" => {
            let b = open(10);
            m = Meter::new();
            many(b, a.n).await;
            r = m.read();
            (turns, steps) = (a.n * 10, a.n * 19);
        }
        "W3" => {
            let b = open(1);
            let marks: Vec<usize> = [100, 500, 1000, 2000]
                .into_iter()
                .filter(|x| *x <= a.n)
                .collect();
            let win = |k: usize| {
                if k < a.n {
                    (k - 25, k + 25)
                } else {
                    (k - 50, k)
                }
            };
            m = Meter::new();
            let mut lo = (Instant::now(), 0.0);
            for i in 1..=a.n {
                for &k in &marks {
                    if i == win(k).0 + 1 {
                        lo = (Instant::now(), m.read().cpu);
                    }
                }
                ok(&b.chat(i).await.unwrap());
                for &k in &marks {
                    if i == win(k).1 {
                        out.insert(
                            format!("turn{k}_wall_ms"),
                            json!(round(lo.0.elapsed().as_secs_f64() / 50.0 * 1e3, 3)),
                        );
                        out.insert(
                            format!("turn{k}_cpu_ms"),
                            json!(round((m.read().cpu - lo.1) / 50.0 * 1e3, 3)),
                        );
                    }
                }
            }
            r = m.read();
            (turns, steps) = (a.n, a.n);
        }
        "W4" => {
            let b = open(3);
            let subs: Vec<Arc<dyn Task>> = (0..a.n)
                .map(|i| Arc::new(Sub(format!("sub{i}"), i, 3)) as Arc<dyn Task>)
                .collect();
            let g = Arc::new(
                GraphBuilder::new("fan")
                    .add_task(Arc::new(Plain("plan", NextAction::Continue)))
                    .add_task(FanOutTask::new("fan", subs))
                    .add_task(Arc::new(Plain("join", NextAction::WaitForInput)))
                    .add_edge("plan", "fan")
                    .add_edge("fan", "join")
                    .set_start_task("plan")
                    .build()
                    .unwrap(),
            );
            m = Meter::new();
            let mut s = Session::new_from_task("p0".into(), "plan");
            s.context.add_user_message(user_text(0));
            match &b.storage {
                None => ok(&drive(&g, &mut s).await.unwrap()),
                Some(st) => {
                    st.save(s).await.unwrap();
                    let runner = FlowRunner::new(g, st.clone());
                    loop {
                        let x = runner.run("p0").await.unwrap();
                        if matches!(x.status, ExecutionStatus::WaitingForInput) {
                            ok(&x.response.unwrap());
                            break;
                        }
                    }
                }
            }
            r = m.read();
            turns = 3 * a.n + 2;
            steps = turns + 2 * a.n;
        }
        "W5" | "W6" => {
            m = Meter::new();
            let b = open(1);
            ok(&b.chat(a.n + 1).await.unwrap());
            r = m.read();
            out.insert("import_ms".into(), json!(imported.map(|v| round(v, 1))));
            out.insert("inproc_ms".into(), json!(round(r.wall * 1e3, 2)));
            out.insert(
                "proc_ms".into(),
                json!(ms_since_spawn().map(|v| round(v, 1))),
            );
            out.insert("total_cpu_s".into(), json!(round(rusage_cpu(), 3)));
            (turns, steps) = (1, 1);
        }
        "W7" | "W7c" => {
            let (n, per) = if a.w == "W7" { (1, 200) } else { (64, 20) };
            let b = open(per);
            m = Meter::new();
            many(b, n).await;
            r = m.read();
            (turns, steps) = (n * per, n * (2 * per - 1));
        }
        x => panic!("unknown workload {x}"),
    }
    for (k, v) in [
        ("turns", json!(turns)),
        ("steps", json!(steps)),
        ("wall_s", json!(round(r.wall, 4))),
        ("cpu_s", json!(round(r.cpu, 4))),
        ("turns_per_s", json!(round(turns as f64 / r.wall, 1))),
        ("steps_per_s", json!(round(steps as f64 / r.wall, 1))),
        (
            "cpu_s_per_1k_steps",
            json!(round(r.cpu / steps as f64 * 1e3, 4)),
        ),
        ("peak_rss_mib", json!(vm_hwm_mib())),
    ] {
        out.insert(k.into(), v);
    }
    if a.store != "none" && !matches!(a.w.as_str(), "W5" | "W6") {
        let b = dir_bytes(&dir);
        out.insert("disk_bytes".into(), json!(b));
        out.insert(
            "disk_bytes_per_step".into(),
            json!(round(b as f64 / steps as f64, 1)),
        );
        out.insert(
            "written_bytes_per_step".into(),
            json!(round(r.wbytes as f64 / steps as f64, 1)),
        );
    }
    println!("{}", Value::Object(out));
    if own {
        std::fs::remove_dir_all(&dir).ok();
    }
}
