//! No command opens a connection that neither the definition, nor a flag, nor the environment names. The commands and the examples
//! run in a network of their own, whose only way out ends in nothing, and what they send and open is counted.

use crate::docs::blocks;
use crate::world::{World, examples};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

/// Makes the network: a loopback, and a link to nowhere with the route to everything.
const NETWORK: &str = "set -e
sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
ip link set lo up
ip link add away type veth peer name nowhere
ip link set away arp off
ip link set away up
ip link set nowhere up
ip addr add 10.0.0.2/24 dev away
ip route add default dev away
set +e
opened() { awk '$1 == \"Tcp:\" && $6 != \"ActiveOpens\" { print $6 }' /proc/net/snmp; }
sent() { awk '$1 == \"away:\" { print $11 }' /proc/net/dev; }
";

const DESK: &str = "name: desk
tools:
  look: { description: Looks., parameters: { what: string }, effect: read, command: [echo, \"{{ args.what }}\"] }
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, approve: true, command: [echo, paid] }
agents:
  desk: { system: You settle., tools: [look, pay, memory] }
tests:
  looks: { script: { desk: [ { call: { look: { what: tea } } }, Tea. ] }, tools: { look: [ tea ] }, steps: [ { say: Look. } ], expect: [ { answer: Tea. } ] }
";

const SCRIPT: &str = "desk: [ { call: { look: { what: tea } } }, Tea., { call: { pay: { cents: 5 } } }, Paid., More., Still more. ]\n";

/// A line for each command; some are refused, which must open nothing either.
pub(crate) const COMMANDS: &[&str] = &[
    "demo",
    "new other",
    "new third --from Answers.",
    "check .",
    "run --input Look.",
    "run --script-all script.yaml --input Look.",
    "sessions",
    "show last",
    "log last",
    "context last",
    "effects last",
    "graph .",
    "why last",
    "artifacts last",
    "memory",
    "send last Pay. --script-all script.yaml",
    "pending",
    "approve last --script-all script.yaml",
    "answer last yes",
    "reject last",
    "resolve last --fail",
    "edit last --state balance=1",
    "hold last pay",
    "release last pay",
    "pause last",
    "resume last --script-all script.yaml",
    "retry last",
    "fork last --label b --say On. --script-all script.yaml",
    "join last main b --script-all script.yaml",
    "diff last:main last:b",
    "adopt last:b",
    "rewind last @2",
    "rerun last --definition steersman.yaml",
    "rerun last --live",
    "search last --method best_of --n 2 --score 1 --script-all script.yaml",
    "cancel last",
    "test .",
    "test . --grade",
    "simulate . --seeds 2",
    "import agents.json",
    "export last",
    "migrate --where status=answered --config limits.calls=9",
    "gc",
    "schedule",
    "schedule steersman.yaml",
    "timeline last",
    "top",
    "fsck",
    "backup copy.db",
    "key",
    "key rotate",
    "doctor",
    "schema",
    "lsp",
    "login",
    "mcp",
    "explain E001",
    "completions bash",
    "ui --print",
    "serve --listen 127.0.0.1:0",
    "token new",
    "token list",
    "erase last --yes",
];

/// Runs commands in a network of their own, after `first` of the shell, each for at most so many seconds. Returns a row for each: connections opened, packets sent, and the command.
fn counted(world: &World, first: &str, seconds: u64, commands: &[&str]) -> Vec<(u64, u64, String)> {
    let mut script = format!("{NETWORK}{first}");
    for typed in commands {
        let row = format!(
            "timeout {seconds} steersman {typed} >/dev/null 2>&1\necho \"$(opened) $(sent)\"\n"
        );
        script.push_str(&row);
    }
    let ours = world.command(&[]);
    let apart = "exec unshare $([ \"$(id -u)\" = 0 ] || echo --map-root-user) --net sh -c \"$0\"";
    let ran = Command::new("sh")
        .args(["-c", apart, &script])
        .current_dir(&world.folder)
        .env_clear()
        .envs(
            ours.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    let rows: Vec<(u64, u64)> = text
        .lines()
        .map(|line| {
            let (opened, sent) = line.split_once(' ').unwrap();
            (opened.parse().unwrap(), sent.parse().unwrap())
        })
        .collect();
    assert_eq!(
        rows.len(),
        commands.len(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let before = std::iter::once((0, 0)).chain(rows.clone());
    let each = rows.iter().zip(before).zip(commands);
    each.map(|((row, before), typed)| (row.0 - before.0, row.1 - before.1, (*typed).to_owned()))
        .collect()
}

pub(crate) fn desk() -> World {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", SCRIPT);
    world
}

#[test]
fn no_command_opens_a_connection_that_nothing_names() {
    let world = desk();
    let help = world.run(&["--help"]).out;
    let listed = help.lines().filter_map(|line| line.strip_prefix("  "));
    let listed = listed.filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
    let listed: BTreeSet<_> = listed
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let run: BTreeSet<_> = COMMANDS
        .iter()
        .filter_map(|typed| typed.split(' ').next())
        .collect();
    assert_eq!(run, listed, "each command is run");
    for (opened, sent, typed) in counted(&world, "", 60, COMMANDS) {
        assert_eq!(sent, 0, "{typed}: nothing leaves this machine");
        // The demo talks to a service that it starts itself, and `doctor` looks for servers of models on this machine.
        let may = ["demo", "doctor"].contains(&&*typed);
        assert_eq!(opened > 0, may, "{typed} opened {opened}");
    }
}

/// The count is not zero where a definition names a server, so the test above can fail.
#[test]
fn a_connection_that_a_definition_names_is_counted() {
    let world = desk();
    world.write(
        "away.yaml",
        "name: away\nmodels: { default: { url: \"http://10.9.9.9/v1\", model: m } }\nagents: { a: { system: s } }\n",
    );
    let [(opened, sent, _)] = &counted(&world, "", 2, &["run away.yaml --input Hi "])[..] else {
        panic!("one command");
    };
    assert!(*opened > 0 && *sent > 0, "{opened} {sent}");
}

/// Runs the commands that the README of each example shows. Its definition names the service that it calls, or none.
#[test]
fn no_example_opens_a_connection_that_its_definition_does_not_name() {
    let folders = std::fs::read_dir(examples()).unwrap();
    let folders = folders.map(|entry| entry.unwrap().path());
    let mut connected = 0;
    for folder in folders.filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let world = World::example(name);
        let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
        let blocks = blocks(&readme);
        let lines = blocks.iter().flat_map(|block| block.text.lines());
        let typed = lines.map(|line| line.strip_prefix("$ ").unwrap_or(line));
        let typed: Vec<&str> = typed
            .filter_map(|line| line.strip_prefix("steersman "))
            .collect();
        let is_service = |typed: &&&str| typed.starts_with("example-service");
        // Without a script, `run` looks for servers of models on this machine, because no model is named.
        let asks_a_model = |typed: &str| {
            typed.starts_with("run ")
                && !typed.contains(" --script-all ")
                && !typed.contains(" --resume ")
        };
        let shown = typed.iter().filter(|typed| !is_service(typed));
        let shown: Vec<&str> = shown
            .copied()
            .filter(|typed| !asks_a_model(typed))
            .collect();
        assert!(shown.len() > 1, "the README of {name} shows commands");
        // A service says where it listens as soon as it does.
        let first = typed.iter().find(is_service).map_or_else(String::new, |service| {
            format!("mkfifo up\nsteersman {service} >up 2>/dev/null &\nread at <up\ntrap 'kill $!' EXIT\n")
        });
        let rows = counted(&world, &first, 60, &shown);
        let definition = std::fs::read_to_string(folder.join("steersman.yaml")).unwrap();
        let names_one = definition.contains("http://127.0.0.1");
        for (opened, sent, typed) in &rows {
            assert_eq!(*sent, 0, "{name}: {typed}: nothing leaves this machine");
            assert!(*opened == 0 || names_one, "{name}: {typed} opened {opened}");
        }
        connected += usize::from(rows.iter().any(|row| row.0 > 0));
    }
    assert_eq!(connected, 3, "three examples call a service of their own");
}
