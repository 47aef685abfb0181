//! Texts cut into passages: paragraphs under their headings, joined while they are short.

/// Maximum number of bytes of joined paragraphs.
const JOINED: usize = 800;
/// Maximum number of characters of a passage.
const LONGEST: usize = 1_200;

/// Maximum number of characters of a heading, and of all headings above a passage together: files may have headings of any
/// length.
const TITLE: usize = 80;

/// A passage of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// The headings above the passage, the outermost first, joined by ` > `.
    pub(super) heading: String,
    /// The text of the passage, without its headings.
    pub(super) text: String,
}

/// Splits a text into passages. If `markdown` is set, lines that begin with `#` are headings, and code blocks are not split at blank
/// lines.
pub(super) fn passages(text: &str, markdown: bool) -> Vec<Passage> {
    let mut cut = Cut::default();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let bare = line.trim_start();
        let marks = ["```", "~~~"].into_iter().find(|m| bare.starts_with(m));
        match (fence, marks) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, Some(mark)) if markdown => fence = Some(mark),
            _ => {}
        }
        match heading(line).filter(|_| markdown && fence.is_none()) {
            Some((depth, title)) => cut.under(depth, title),
            // Blank lines in a code block end no paragraph.
            None if bare.is_empty() && fence.is_none() => cut.paragraph_ends(),
            None => cut.line(line),
        }
    }
    cut.passage_ends();
    cut.done
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let depth = line.bytes().take_while(|b| *b == b'#').count();
    let title = line.get(depth..)?;
    let is_heading = (1..=6).contains(&depth) && title.starts_with([' ', '\t']);
    is_heading.then(|| (depth, title.trim().trim_end_matches('#').trim_end()))
}

#[derive(Default)]
struct Cut {
    headings: Vec<(usize, String)>,
    paragraph: String,
    passage: String,
    done: Vec<Passage>,
}

impl Cut {
    fn under(&mut self, depth: usize, title: &str) {
        self.passage_ends();
        self.headings.retain(|(known, _)| *known < depth);
        self.headings.push((depth, shortened(title)));
    }

    fn line(&mut self, line: &str) {
        if !self.paragraph.is_empty() {
            self.paragraph.push('\n');
        }
        self.paragraph.push_str(line);
    }

    fn paragraph_ends(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        if paragraph.trim().is_empty() {
            return;
        }
        if !self.passage.is_empty() && self.passage.len() + paragraph.len() > JOINED {
            self.push();
        }
        if !self.passage.is_empty() {
            self.passage.push('\n');
        }
        self.passage.push_str(&paragraph);
    }

    fn passage_ends(&mut self) {
        self.paragraph_ends();
        self.push();
    }

    fn push(&mut self) {
        let passage = std::mem::take(&mut self.passage);
        let titles: Vec<&str> = self.headings.iter().map(|(_, title)| &**title).collect();
        let heading = shortened(&titles.join(" > "));
        let mut rest = passage.trim_end();
        while !rest.trim().is_empty() {
            let (piece, behind) = rest.split_at(end_of_piece(rest));
            self.done.push(Passage {
                heading: heading.clone(),
                text: piece.trim_end().to_owned(),
            });
            rest = behind.trim_start();
        }
    }
}

/// Cuts a title to the maximum length, and replaces double quotes, because it is shown in them.
fn shortened(title: &str) -> String {
    let mut short: String = title.chars().take(TITLE).collect();
    if short.len() < title.len() {
        short.push_str("..");
    }
    short.replace('"', "'")
}

/// Returns where to cut a text that is longer than a passage: after a sentence, otherwise at a space, otherwise anywhere.
fn end_of_piece(text: &str) -> usize {
    let Some((most, _)) = text.char_indices().nth(LONGEST) else {
        return text.len();
    };
    let head = &text[..most];
    let half = most / 2;
    let sentence = [". ", "! ", "? ", ".\n", "。"];
    let ends = sentence
        .iter()
        .filter_map(|end| Some(head.rfind(end)? + end.len()));
    ends.max()
        .filter(|at| *at > half)
        .or_else(|| head.rfind(char::is_whitespace).filter(|at| *at > half))
        .unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, markdown: bool) -> Vec<(String, String)> {
        let all = passages(text, markdown).into_iter();
        all.map(|p| (p.heading, p.text)).collect()
    }

    #[test]
    fn paragraphs_are_under_their_headings() {
        let text = "Before.\n\n# Shop\n\nOpen.\n\nAlways.\n## Returns ##\nThirty days.\n```\n# no heading\n\nx\n```\n# Prices\n#5 is no heading";
        let found = shown(text, true);
        let wanted = [
            ("", "Before."),
            ("Shop", "Open.\nAlways."),
            (
                "Shop > Returns",
                "Thirty days.\n```\n# no heading\n\nx\n```",
            ),
            ("Prices", "#5 is no heading"),
        ];
        assert_eq!(found, wanted.map(|(h, t)| (h.to_owned(), t.to_owned())));
        assert_eq!(
            shown("# x\ny", false),
            [(String::new(), "# x\ny".to_owned())]
        );
        assert!(shown(" \n\n# Alone\n", true).is_empty());
        let long = format!("# {}\n## a \"b\"\nx", "h".repeat(200_000));
        let wanted = format!("{}..", "h".repeat(TITLE));
        assert_eq!(shown(&long, true), [(wanted, "x".to_owned())]);
        assert_eq!(shown("# a \"b\"\nx", true)[0].0, "a 'b'");
    }

    #[test]
    fn long_texts_are_cut_and_nothing_is_lost() {
        let sentence = "Where the grain is kept nobody knows. ";
        for text in [sentence.repeat(100), "ä".repeat(5_000), "x ".repeat(3_000)] {
            let found = passages(&text, true);
            assert!(found.len() > 2);
            assert!(found.iter().all(|p| p.text.chars().count() <= LONGEST));
            let bare = |text: &str| text.replace(char::is_whitespace, "");
            let again: String = found.iter().map(|p| bare(&p.text)).collect();
            assert_eq!(again, bare(&text));
        }
    }
}
