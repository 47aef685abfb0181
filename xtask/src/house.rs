//! `cargo xtask house`: prints the sizes of the parts and their dependencies. It sets no limits;
//! a number that grew needs a reason.

use crate::tidy::{LOG, QUESTIONS};
use crate::{api, graph, rooms};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Structs whose fields are counted, by crate.
const WATCHED: &[(&str, &str)] = &[
    ("steersman-runtime", "Driver"),
    ("steersman-machine", "Tick"),
    ("steersman-machine", "Agent"),
];
/// A doc comment with at most this many characters only repeats the item's name.
const SHORT: usize = 14;

/// Counts of one source file.
#[derive(Default)]
struct Source {
    crate_name: String,
    /// Path of the file, from the root of the repository.
    path: String,
    /// Numbers of lines with code, without blank lines, comments and tests.
    code: BTreeSet<usize>,
    /// First lines of doc comments.
    docs: Vec<String>,
    /// Names of [`LOG`] that occur before `::` in the file.
    log: BTreeSet<String>,
    /// Number of fields of each struct that the file declares.
    fields: BTreeMap<String, usize>,
    /// Number of `node.get("..")`: fields read by name.
    by_name: usize,
    /// Number of `Ok(Ok(` and `Ok(Err(`.
    doubled: usize,
    /// Texts of constants that end with `/`: prefixes of names.
    prefixes: BTreeSet<String>,
}

type Row = [String; 2];

/// Prints the table.
pub(crate) fn print(root: &Path) -> Result<(), String> {
    let sources = sources(root)?;
    let crates: BTreeSet<&str> = sources.iter().map(|s| s.crate_name.as_str()).collect();
    let mut rows = sizes(&sources, &crates);
    rows.extend(patterns(&sources)?);
    rows.extend(comments(&sources));
    for name in crates {
        rows.extend(folders(root, name)?);
    }
    for (name, unused) in api::unused(root)? {
        rows.push([
            format!("{name}: public functions and constants that nobody else uses"),
            format!("{}: {unused:?}", unused.len()),
        ]);
    }
    let width = rows.iter().map(|row| row[0].len()).max().unwrap_or(0);
    for [what, value] in rows {
        crate::say(&format!("{what:width$}  {value}"));
    }
    Ok(())
}

fn sizes(sources: &[Source], crates: &BTreeSet<&str>) -> Vec<Row> {
    let counted = |is_counted: &dyn Fn(&Source) -> bool| {
        let of = sources.iter().filter(|s| is_counted(s));
        of.fold((0, 0), |(files, lines), s| {
            (files + 1, lines + s.code.len())
        })
    };
    let (files, lines) = counted(&|_| true);
    let mut rows = vec![["all: code lines, files".into(), format!("{lines}, {files}")]];
    for name in crates {
        let (files, lines) = counted(&|s| s.crate_name == *name);
        rows.push([
            format!("{name}: code lines, files"),
            format!("{lines}, {files}"),
        ]);
    }
    for name in crates {
        let (files, lines) = counted(&|s| s.crate_name == *name && !s.log.is_empty());
        rows.push([
            format!("{name}: files that name an entry of the log, their lines"),
            format!("{files}, {lines}"),
        ]);
    }
    rows
}

fn patterns(sources: &[Source]) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (crate_name, name) in WATCHED {
        let fields = sources
            .iter()
            .filter(|s| s.crate_name == *crate_name)
            .find_map(|s| s.fields.get(*name))
            .ok_or_else(|| format!("{crate_name} has no struct {name}"))?;
        rows.push([format!("fields of `{name}`"), fields.to_string()]);
    }
    let by_name: usize = sources.iter().map(|s| s.by_name).sum();
    rows.push([
        "fields that are read by name, `node.get(\"..\")`".into(),
        by_name.to_string(),
    ]);
    let driver = sources.iter().filter(|s| s.path.contains("/driver"));
    let doubled: usize = driver.map(|s| s.doubled).sum();
    rows.push(["doubled results in the driver".into(), doubled.to_string()]);
    let prefixes: BTreeSet<&String> = sources.iter().flat_map(|s| &s.prefixes).collect();
    rows.push([
        "prefixes of names".into(),
        format!("{}: {prefixes:?}", prefixes.len()),
    ]);
    Ok(rows)
}

fn folders(root: &Path, name: &str) -> Result<Vec<Row>, String> {
    let graph = graph::of_crate(root, name)?;
    let cycle = graph.cycles().first().map_or(0, BTreeSet::len);
    let mut rows = vec![[
        format!("{name}: folders, of these in the largest cycle"),
        format!("{}, {cycle}", graph.folders().len()),
    ]];
    if let Some((_, order)) = rooms::ROOMS.iter().find(|(of, _)| *of == name) {
        rows.push([
            format!("{name}: uses against the order of its rooms"),
            rooms::against(&graph, name, order).len().to_string(),
        ]);
    }
    Ok(rows)
}

fn comments(sources: &[Source]) -> [Row; 3] {
    let docs: Vec<&str> = sources
        .iter()
        .flat_map(|s| s.docs.iter().map(String::as_str))
        .collect();
    let asks = docs
        .iter()
        .filter(|text| {
            let first = text.split(|c: char| !c.is_alphabetic()).next();
            first.is_some_and(|word| QUESTIONS.contains(&word))
        })
        .count();
    let short = docs
        .iter()
        .filter(|text| text.chars().count() <= SHORT)
        .count();
    let share = 100.0 * asks as f64 / docs.len().max(1) as f64;
    [
        ["doc comments".into(), docs.len().to_string()],
        [
            "of these begin with a question word".into(),
            format!("{asks}, {share:.1} %"),
        ],
        [
            format!("of these have at most {SHORT} characters"),
            short.to_string(),
        ],
    ]
}

fn sources(root: &Path) -> Result<Vec<Source>, String> {
    let mut all = Vec::new();
    for path in crate::tidy::tracked(root) {
        let mut parts = Path::new(&path).components();
        let in_src = parts.next().is_some_and(|p| p.as_os_str() == "crates");
        let crate_name = parts.next();
        let src = parts.next().is_some_and(|p| p.as_os_str() == "src");
        let (true, Some(crate_name), true) = (in_src, crate_name, src) else {
            continue;
        };
        let file = Path::new(&path);
        if file.extension().is_none_or(|e| e != "rs") || graph::is_of_tests(file) {
            continue;
        }
        let text = fs::read_to_string(root.join(file)).map_err(|e| format!("{path}: {e}"))?;
        let tokens: TokenStream = text.parse().map_err(|e| format!("{path}: {e}"))?;
        let mut source = Source {
            crate_name: crate_name.as_os_str().to_string_lossy().into_owned(),
            path: path.clone(),
            ..Source::default()
        };
        source.read(tokens);
        all.push(source);
    }
    Ok(all)
}

impl Source {
    fn read(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        let mut in_docs = false;
        while at < tokens.len() {
            if let Some((name, text, length)) = attribute(&tokens[at..]) {
                match (name.as_str(), text) {
                    ("doc", Some(text)) => {
                        if !in_docs {
                            self.docs.push(text);
                        }
                        in_docs = true;
                        at += length;
                    }
                    ("cfg(test)", _) => {
                        at += length;
                        at += item_length(&tokens[at..]);
                        in_docs = false;
                    }
                    _ => {
                        for token in &tokens[at..at + length] {
                            self.lines(token);
                        }
                        in_docs = false;
                        at += length;
                    }
                }
                continue;
            }
            in_docs = false;
            self.patterns(&tokens[at..]);
            self.lines(&tokens[at]);
            if let TokenTree::Group(group) = &tokens[at] {
                self.read(group.stream());
            }
            at += 1;
        }
    }

    /// Records the lines of a token; for a group, those of its delimiters.
    fn lines(&mut self, token: &TokenTree) {
        match token {
            TokenTree::Group(group) => {
                self.code.insert(group.span_open().start().line);
                self.code.insert(group.span_close().end().line);
            }
            other => {
                let span = other.span();
                self.code.extend(span.start().line..=span.end().line);
            }
        }
    }

    /// Counts the pattern that begins at the first token, if there is one.
    fn patterns(&mut self, tokens: &[TokenTree]) {
        match tokens {
            [
                TokenTree::Ident(name),
                TokenTree::Punct(a),
                TokenTree::Punct(b),
                ..,
            ] if a.as_char() == ':' && a.spacing() == Spacing::Joint && b.as_char() == ':' => {
                let name = name.to_string();
                if LOG.contains(&name.as_str()) {
                    self.log.insert(name);
                }
            }
            [TokenTree::Ident(word), TokenTree::Ident(name), ..] if *word == "struct" => {
                let body = tokens.iter().take_while(|t| !ends(t)).count();
                if let Some(TokenTree::Group(group)) = tokens.get(body) {
                    self.fields.insert(name.to_string(), fields(group.stream()));
                }
            }
            [
                TokenTree::Ident(name),
                TokenTree::Punct(dot),
                TokenTree::Ident(get),
                TokenTree::Group(args),
                ..,
            ] if *name == "node" && dot.as_char() == '.' && *get == "get" => {
                let text = args.stream().to_string();
                self.by_name += usize::from(text.starts_with('"'));
            }
            [TokenTree::Ident(ok), TokenTree::Group(args), ..] if *ok == "Ok" => {
                let text = args.stream().to_string().replace(' ', "");
                self.doubled += usize::from(text.starts_with("Ok(") || text.starts_with("Err("));
            }
            [TokenTree::Ident(word), ..] if *word == "const" => {
                let text: Vec<String> = tokens
                    .iter()
                    .take_while(|t| !matches!(t, TokenTree::Punct(p) if p.as_char() == ';'))
                    .map(ToString::to_string)
                    .collect();
                if let Some(last) = text.last()
                    && last.ends_with("/\"")
                    && !last.contains(' ')
                    && last.chars().nth(1).is_some_and(char::is_alphabetic)
                {
                    self.prefixes.insert(last.clone());
                }
            }
            _ => {}
        }
    }
}

/// Parses an attribute at the beginning of the tokens. Returns its name (for `cfg(test)` the whole attribute), the text if it
/// is a doc comment, and the number of its tokens.
fn attribute(tokens: &[TokenTree]) -> Option<(String, Option<String>, usize)> {
    let TokenTree::Punct(hash) = tokens.first()? else {
        return None;
    };
    if hash.as_char() != '#' {
        return None;
    }
    let inner = matches!(tokens.get(1), Some(TokenTree::Punct(p)) if p.as_char() == '!');
    let length = if inner { 3 } else { 2 };
    let TokenTree::Group(group) = tokens.get(length - 1)? else {
        return None;
    };
    if group.delimiter() != Delimiter::Bracket {
        return None;
    }
    let text = group.stream().to_string().replace(' ', "");
    if text == "cfg(test)" {
        return Some((text, None, length));
    }
    let mut inside = group.stream().into_iter();
    let name = inside.next()?.to_string();
    let literal = inside.nth(1).map(|token| {
        let text = token.to_string();
        let text = text.trim_start_matches('r').trim_matches('#');
        text.trim_matches('"').trim().to_owned()
    });
    Some((name, literal, length))
}

/// Returns the number of tokens of the item at the beginning, attributes included.
fn item_length(tokens: &[TokenTree]) -> usize {
    let mut at = 0;
    while let Some((_, _, length)) = attribute(&tokens[at..]) {
        at += length;
    }
    let rest = tokens[at..].iter().take_while(|t| !ends(t)).count();
    (at + rest + 1).min(tokens.len())
}

/// Returns true for a token that ends an item: its body, or a semicolon.
fn ends(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    }
}

/// Returns the tokens without items under `cfg(test)`.
pub(crate) fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        match attribute(&tokens[at..]) {
            Some((name, _, length)) if name == "cfg(test)" => {
                at += length;
                at += item_length(&tokens[at..]);
            }
            _ => {
                kept.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    kept
}

/// Returns true if the `>` at `at` belongs to `->` or `=>`.
fn arrow(tokens: &[TokenTree], at: usize) -> bool {
    let before = at.checked_sub(1).map(|b| &tokens[b]);
    matches!(before, Some(TokenTree::Punct(p)) if ['-', '='].contains(&p.as_char()))
}

/// Counts the fields in the body of a struct: identifiers before a single colon, outside generic arguments.
fn fields(body: TokenStream) -> usize {
    let tokens: Vec<TokenTree> = body.into_iter().collect();
    let mut depth = 0_i32;
    let mut count = 0;
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Punct(punct) = token else {
            continue;
        };
        match punct.as_char() {
            '<' => depth += 1,
            '>' if !arrow(&tokens, at) => depth -= 1,
            ':' if depth == 0 && punct.spacing() == Spacing::Alone => {
                let before = at.checked_sub(1).map(|b| &tokens[b]);
                count += usize::from(matches!(before, Some(TokenTree::Ident(_))));
            }
            _ => {}
        }
    }
    count
}
