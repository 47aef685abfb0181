//! Workload text, the stub model's rule, and the meter. Mirrors py/common.py.
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const FILL: &str = "the quick brown fox jumps over the lazy dog ";

pub fn pad(s: &str, n: usize) -> String {
    let mut out = String::with_capacity(n + FILL.len());
    out.push_str(s);
    while out.len() < n {
        out.push_str(FILL);
    }
    out.truncate(n);
    out
}
pub fn system_text() -> String {
    pad(
        "You are a careful research agent. Use the lookup tool. ",
        400,
    )
}
pub fn user_text(i: usize) -> String {
    pad(&format!("Request {i:06}: "), 200)
}
pub fn answer_text(i: usize) -> String {
    pad(&format!("Answer {i:06}: "), 200)
}
pub fn tool_result(n: usize) -> String {
    pad(&format!("result {n:06}: "), 300)
}
pub fn tool_args(n: usize) -> String {
    format!("{{\"key\":\"k{n:06}\",\"n\":{n}}}")
}

pub enum Reply {
    Tool(usize),
    Final(String),
}

/// The stub model. Looks at the last message only.
pub fn decide(last: &str, turns: usize) -> Reply {
    let (k, ans) = if last.starts_with("result ") {
        let k = last[7..13].parse::<usize>().unwrap() + 1;
        (k, k)
    } else {
        (0, last.get(8..14).and_then(|s| s.parse().ok()).unwrap_or(0))
    };
    if k + 1 < turns {
        Reply::Tool(k)
    } else {
        Reply::Final(answer_text(ans))
    }
}

/// CPU seconds of the whole process since its start.
pub fn rusage_cpu() -> f64 {
    unsafe {
        let mut u: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut u);
        u.ru_utime.tv_sec as f64
            + u.ru_stime.tv_sec as f64
            + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) as f64 / 1e6
    }
}

pub fn vm_hwm_mib() -> f64 {
    let s = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for l in s.lines() {
        if let Some(v) = l.strip_prefix("VmHWM:") {
            let kb: f64 = v
                .trim()
                .trim_end_matches(" kB")
                .trim()
                .parse()
                .unwrap_or(0.0);
            return (kb / 1024.0 * 10.0).round() / 10.0;
        }
    }
    0.0
}

fn write_bytes() -> u64 {
    let s = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    s.lines()
        .find_map(|l| l.strip_prefix("write_bytes: "))
        .and_then(|v| v.trim().parse().ok())
        .unwrap_or(0)
}

pub struct Meter {
    t: Instant,
    cpu: f64,
    wb: u64,
}
#[derive(Clone, Copy)]
pub struct Reading {
    pub wall: f64,
    pub cpu: f64,
    pub wbytes: u64,
}
impl Meter {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Meter {
            wb: write_bytes(),
            cpu: rusage_cpu(),
            t: Instant::now(),
        }
    }
    pub fn read(&self) -> Reading {
        Reading {
            wall: self.t.elapsed().as_secs_f64(),
            cpu: rusage_cpu() - self.cpu,
            wbytes: write_bytes() - self.wb,
        }
    }
}

/// Milliseconds since the driver started this process (BENCH_T0, epoch seconds).
pub fn ms_since_spawn() -> Option<f64> {
    let t0: f64 = std::env::var("BENCH_T0").ok()?.parse().ok()?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64();
    Some((now - t0) * 1e3)
}

pub fn dir_bytes(dir: &std::path::Path) -> u64 {
    std::fs::read_dir(dir)
        .map(|it| {
            it.flatten()
                .filter(|e| !e.file_name().to_string_lossy().ends_with("-shm"))
                .filter_map(|e| e.metadata().ok())
                .filter(|m| m.is_file())
                .map(|m| m.len())
                .sum()
        })
        .unwrap_or(0)
}

pub fn data_dir() -> std::path::PathBuf {
    let base =
        std::env::var("BENCH_DATA").unwrap_or_else(|_| std::env::temp_dir().display().to_string());
    let d = std::path::PathBuf::from(base).join(format!("rs-{}", std::process::id()));
    std::fs::create_dir_all(&d).unwrap();
    d
}

pub struct Args {
    pub w: String,
    pub n: usize,
    pub store: String,
    pub dir: Option<std::path::PathBuf>,
    pub url: String,
}
pub fn args() -> Args {
    let mut a = Args {
        w: String::new(),
        n: 0,
        store: "none".into(),
        dir: None,
        url: String::new(),
    };
    let mut it = std::env::args().skip(1);
    let mut pos = 0;
    while let Some(x) = it.next() {
        match x.as_str() {
            "--store" => a.store = it.next().unwrap(),
            "--dir" => a.dir = Some(it.next().unwrap().into()),
            "--url" => a.url = it.next().unwrap(),
            _ => {
                if pos == 0 {
                    a.w = x
                } else {
                    a.n = x.parse().unwrap()
                }
                pos += 1;
            }
        }
    }
    a
}

pub fn round(v: f64, d: i32) -> f64 {
    let m = 10f64.powi(d);
    (v * m).round() / m
}
