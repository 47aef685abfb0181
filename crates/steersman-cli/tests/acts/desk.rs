//! The definition that the campaign runs, with tools of every class, and the messages that make the model call them.

use crate::plan::Random;
use crate::server::What;
use std::fmt::Write;

/// Least amount of a payment that needs an approval.
pub(crate) const DEAR: u64 = 100_000;

/// Percentage of calls that repeat an earlier call, and of forks and searches whose branch is live.
pub(crate) const SAME: u64 = 30;

/// A desk with a sub-agent. All its requests go to the server on this port.
pub(crate) fn definition(port: u16) -> String {
    DEFINITION.replace("PORT", &port.to_string())
}

const DEFINITION: &str = r#"steersman: 1
name: desk
config: { limit: { type: integer, default: 10 } }
state: { paid: { type: integer, default: 0 } }
models:
  default: { provider: compatible, url: "http://127.0.0.1:PORT/v1", model: scripted, calls: native, max_tokens: 200, window: 100000 }
limits: { tokens: { max: 900000000 } }
events: { arrived: { fields: { to: string, cents: integer, nr: string }, id: "{{ event.nr }}" } }
tools:
  pay:
    description: Pays. Somebody approves large amounts, and may change them.
    parameters: { to: string, cents: integer }
    effect: unsafe
    simulate: pretended
    approve: { when: args.cents >= 100000, by: clerk, edit: [cents] }
    http: { method: POST, url: "http://127.0.0.1:PORT/tool/pay", json: "{{ args }}" }
    set: { paid: "{{ state.paid + args.cents }}" }
  wire:
    description: Pays, and can be looked up.
    parameters: { to: string, cents: integer }
    effect: unsafe
    simulate: pretended
    http: { method: POST, url: "http://127.0.0.1:PORT/tool/wire", json: "{{ args }}" }
    on_doubt: { probe: wired, args: { to: "{{ args.to }}", cents: "{{ args.cents }}" }, done: result.there == true, else: not_performed }
  wired:
    description: Looks up whether it was paid.
    parameters: { to: string, cents: integer }
    effect: read
    http: { url: "http://127.0.0.1:PORT/done", query: { tool: wire, to: "{{ args.to }}", cents: "{{ args.cents }}" } }
  charge:
    description: Charges. Whoever is in doubt is told so.
    parameters: { to: string, cents: integer }
    effect: unsafe
    on_doubt: fail
    http: { method: POST, url: "http://127.0.0.1:PORT/tool/charge", json: "{{ args }}" }
  mail:
    description: Sends a mail, once under its key.
    parameters: { to: string, cents: integer }
    effect: idempotent
    retry: 1
    simulate: pretended
    http: { method: POST, url: "http://127.0.0.1:PORT/tool/mail", json: "{{ args }}" }
  goods:
    description: Waits for goods.
    parameters: { to: string, cents: integer }
    wait: { event: arrived, match: { to: "{{ args.to }}", cents: "{{ args.cents }}" } }
  nap:
    description: Waits.
    wait: { time: 400ms }
  big:
    description: Reads much.
    effect: read
    http: { url: "http://127.0.0.1:PORT/big" }
agents:
  clerk: { person: { role: clerk } }
  helper: { description: Helps., system: You help., tools: [pay, mail, big] }
  desk: { system: "You settle, up to {{ config.limit }}.", tools: [pay, wire, charge, mail, goods, nap, big, helper, fork] }
entry: desk
"#;

/// Draws the steps of messages. Each call has an amount that no call had before, unless it repeats an earlier call.
#[derive(Default)]
pub(crate) struct Wishes {
    last: u64,
    /// Calls that were asked for, of all sessions.
    asked: Vec<What>,
}

impl Wishes {
    /// The steps of a message for this session.
    pub(crate) fn steps(&mut self, session: usize, random: &mut Random) -> String {
        let mut text = String::new();
        for at in 0..=random.below(3) {
            let space = if at == 0 { "" } else { " " };
            let step = match random.below(14) {
                13 => "nap".to_owned(),
                12 => format!("goods:s{session}:{}", self.amount(false)),
                0..=5 => self.call(session, random),
                6 | 7 => format!(
                    "{}+{}",
                    self.call(session, random),
                    self.call(session, random)
                ),
                8 => format!("big+{}", self.call(session, random)),
                9 | 10 => {
                    let (one, other) = (self.helped(session, random), self.helped(session, random));
                    format!("help({one},{other})")
                }
                _ => {
                    let (one, other) = (self.call(session, random), self.call(session, random));
                    format!("fork({one}|{other},big)")
                }
            };
            let _ = write!(text, "{space}{step}");
        }
        text
    }

    fn call(&mut self, session: usize, random: &mut Random) -> String {
        let tool = match random.below(10) {
            0..=4 => "pay",
            5 | 6 => "wire",
            7 => "charge",
            _ => "mail",
        };
        self.with_args(tool, session, random)
    }

    fn helped(&mut self, session: usize, random: &mut Random) -> String {
        match random.below(5) {
            0..=2 => self.with_args("pay", session, random),
            3 => self.with_args("mail", session, random),
            _ => "big".to_owned(),
        }
    }

    fn with_args(&mut self, tool: &str, session: usize, random: &mut Random) -> String {
        let to = format!("s{session}");
        let same: Vec<What> = self
            .asked
            .iter()
            .filter(|known| known.to == to && known.tool == tool)
            .cloned()
            .collect();
        if let (Some(before), true) = (random.of(&same), random.percent(SAME)) {
            return format!("{tool}:{to}:{}", before.cents);
        }
        let cents = self.amount(tool == "pay" && random.percent(45));
        self.asked.push(What {
            tool: tool.to_owned(),
            to: to.clone(),
            cents,
        });
        format!("{tool}:{to}:{cents}")
    }

    /// An amount that no call had before; a large one needs an approval.
    pub(crate) fn amount(&mut self, dear: bool) -> u64 {
        self.last += 1;
        self.last + if dear { DEAR } else { 0 }
    }

    /// An amount that was asked for, or a new one.
    pub(crate) fn other_amount(&mut self, random: &mut Random) -> u64 {
        let asked: Vec<u64> = self.asked.iter().map(|what| what.cents).collect();
        match random.of(&asked) {
            Some(before) if random.percent(50) => *before,
            _ => {
                let dear = random.percent(30);
                self.amount(dear)
            }
        }
    }
}
