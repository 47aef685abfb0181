//! Refuses sources that nest too deep, before a tree is built. minijinja's parser recurses into each nested part and limits that
//! for brackets and blocks only. To build, walk or drop a tree that is too deep would exhaust the stack.

use super::parse::DEPTH;
use minijinja::machinery::Token;

/// Maximum number of tokens in one `{{ }}` or expression. No token opens more than one level, so this bounds the depth.
const TOKENS: usize = 2_000;
/// Maximum number of open brackets, together with the signs and words that wait for their operand.
const OPEN: usize = 3 * DEPTH;

pub(super) fn too_deep() -> String {
    format!("nested more than {DEPTH} deep")
}

/// Upper bound of the parser's recursion depth at a token.
#[derive(Default)]
pub(super) struct Nesting {
    /// Tokens since the last `{{`, `{%` or text.
    tokens: usize,
    /// Open blocks, each with the number of its `{% elif %}`. For the parser each `elif` is an `if` within the branch before.
    blocks: Vec<usize>,
    /// Number of open blocks, plus the number of their `{% elif %}`.
    nested: usize,
    /// For the level outside of all brackets, and for each open bracket: the number of `not`, `-` and `else` in the current
    /// element. The parser recurses at each of them until the element ends.
    waiting: Vec<usize>,
    /// Number of open brackets and of all waiting signs and words.
    open: usize,
    /// True if an operand has just ended, so a `-` that follows is a subtraction.
    operand: bool,
    /// True if the token is the first word of a statement.
    keyword: bool,
}

impl Nesting {
    /// Counts the next token. An error says that the source is nested too deep, or that an expression is too long.
    pub(super) fn token(&mut self, token: &Token<'_>) -> Result<(), String> {
        match token {
            Token::TemplateData(_) | Token::VariableStart | Token::BlockStart => {
                self.tokens = 0;
                self.open = 0;
                self.waiting.clear();
                self.operand = false;
            }
            _ => self.tokens += 1,
        }
        if self.tokens > TOKENS {
            return Err(format!(
                "one expression has more than {TOKENS} words and signs"
            ));
        }
        if std::mem::replace(&mut self.keyword, matches!(token, Token::BlockStart)) {
            if let Token::Ident(word) = token {
                self.statement(word);
            }
        } else {
            self.part(token);
        }
        // One level more, because a block at the last level may be empty.
        if self.nested > DEPTH + 1 || self.open > OPEN {
            return Err(too_deep());
        }
        Ok(())
    }

    fn statement(&mut self, word: &str) {
        match word {
            // `set` opens a block only if no `=` follows. That is not known yet, so `set` never counts as a level.
            "if" | "for" | "with" | "filter" | "autoescape" | "block" | "macro" | "call" => {
                self.blocks.push(0);
                self.nested += 1;
            }
            "elif" => {
                if let Some(elifs) = self.blocks.last_mut() {
                    *elifs += 1;
                    self.nested += 1;
                }
            }
            "endset" => {}
            _ if word.starts_with("end") => {
                let elifs = self.blocks.pop();
                self.nested = self
                    .nested
                    .saturating_sub(elifs.map_or(0, |elifs| elifs + 1));
            }
            _ => {}
        }
    }

    fn part(&mut self, token: &Token<'_>) {
        if self.waiting.is_empty() {
            self.waiting.push(0);
        }
        let ends_operand = match token {
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => {
                self.waiting.push(0);
                self.open += 1;
                false
            }
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                let inside = self.waiting.pop().unwrap_or(0);
                self.open = self.open.saturating_sub(inside + 1);
                true
            }
            Token::Comma | Token::Colon | Token::Assign => {
                if let Some(waiting) = self.waiting.last_mut() {
                    self.open = self.open.saturating_sub(*waiting);
                    *waiting = 0;
                }
                false
            }
            Token::Ident("not" | "else") => self.waits(),
            Token::Minus if !self.operand => self.waits(),
            Token::Ident("and" | "or" | "if" | "in" | "is") => false,
            Token::Ident(_)
            | Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_) => true,
            _ => false,
        };
        self.operand = ends_operand;
    }

    fn waits(&mut self) -> bool {
        if let Some(waiting) = self.waiting.last_mut() {
            *waiting += 1;
            self.open += 1;
        }
        false
    }
}
