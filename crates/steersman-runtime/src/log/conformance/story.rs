//! An invented log of a session, for checks that need real lines.

use std::collections::BTreeMap;
use steersman_machine::stored::by::By;
use steersman_machine::stored::codec;
use steersman_machine::stored::codec::Hash;
use steersman_machine::stored::commit::{
    Commit, Kind, LedgerEntry, LogLine, Made, Opening, Push, Text,
};
use steersman_machine::stored::ids::{Body, Id, Line, Time};
use steersman_machine::stored::interaction::{Cause, End, Interaction, Origin};

/// The salt of all sessions of the suite.
pub const SALT: [u8; 16] = [42; 16];

/// Makes lines of a session with their bytes: `lines` lines on `main`, each with a text. If `forked` is a line, also makes a branch
/// with half as many lines that is forked at that line. From then on its lines alternate with those of `main`.
pub fn story(lines: u64, forked: Option<u64>) -> Vec<(LogLine, Vec<u8>)> {
    let mut writer = Writer::default();
    let mut left = lines;
    let mut on_branch = 0;
    while left > 0 {
        writer.interact(Id::MAIN);
        left -= 1;
        let main = lines - left;
        if let Some(at) = forked
            && main >= at
            && on_branch < lines / 2
        {
            on_branch += 1;
            if on_branch == 1 {
                writer.fork(Line(at));
            } else {
                writer.interact(writer.branch());
            }
        }
    }
    writer.lines
}

#[derive(Default)]
struct Writer {
    lines: Vec<(LogLine, Vec<u8>)>,
    /// For each branch: its last line, and the number of pushes on its path.
    heads: BTreeMap<Id, (Line, u64)>,
    hashes: BTreeMap<Line, Hash>,
    forked: Option<Id>,
}

const ROOT: Line = Line(1);

impl Writer {
    fn branch(&self) -> Id {
        self.forked.unwrap_or(Id::MAIN)
    }

    fn next(&self) -> Line {
        self.lines.last().map_or(ROOT, |(line, _)| line.n.next())
    }

    /// Writes, alternately, a message or the end of a turn.
    fn interact(&mut self, branch: Id) {
        let n = self.next();
        let (prev, count) = self.heads.get(&branch).copied().unwrap_or_default();
        let root = Id::new(ROOT, 0);
        let body = Body::new(n, 0);
        let what = if count % 2 == 0 {
            Interaction::UserMessage {
                from: Origin::Outside(By::default()),
                body,
            }
        } else {
            Interaction::Finished {
                end: End::Turn,
                cause: Cause::Answer,
                body: Some(body),
                code: None,
                writes: Vec::new(),
            }
        };
        let made = (n == ROOT).then(|| Made {
            agent: root,
            def: "desk".into(),
            kind: Kind::Model,
            parent: None,
            named: None,
            mode: None,
            state: Vec::new(),
        });
        let commit = Commit {
            parent: prev,
            made: made.into_iter().collect(),
            pushes: vec![Push {
                agent: root,
                prev,
                what,
            }],
            ..Commit::default()
        };
        self.write(LogLine {
            n,
            at: Time(1_000 + n.0 as i64),
            prev,
            branch,
            commit: Some(commit),
            ledger: Vec::new(),
            bodies: vec![Text::Here(format!("text {n} on {branch}").into())],
        });
    }

    fn fork(&mut self, at: Line) {
        let n = self.next();
        let branch = Id::new(n, 0);
        self.forked = Some(branch);
        let commit = Commit {
            parent: at,
            opening: Some(Opening {
                scope: None,
                dry: false,
                label: None,
                of: None,
            }),
            ..Commit::default()
        };
        let count = self.lines.iter().filter(|(l, _)| l.n <= at).count();
        self.heads.insert(branch, (at, count as u64));
        self.write(LogLine {
            n,
            at: Time(1_000 + n.0 as i64),
            prev: at,
            branch,
            commit: Some(commit),
            ledger: vec![LedgerEntry::Opened {
                branch,
                from: Id::MAIN,
                at,
            }],
            bodies: Vec::new(),
        });
        // The opening pushed nothing, so it does not count.
        self.heads.insert(branch, (n, count as u64));
    }

    fn write(&mut self, line: LogLine) {
        let before = self.hashes.get(&line.prev).copied().unwrap_or_default();
        let (bytes, hash) = codec::encode(&line, &before, &SALT);
        self.hashes.insert(line.n, hash);
        let count = self.heads.get(&line.branch).map_or(0, |(_, count)| *count);
        self.heads.insert(line.branch, (line.n, count + 1));
        self.lines.push((line, bytes));
    }
}
