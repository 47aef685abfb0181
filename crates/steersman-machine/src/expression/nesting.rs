//! What is refused before a tree is built. minijinja's parser calls itself for each part that stands inside another, and
//! counts that for brackets and blocks alone; building, walking or dropping a tree that is too deep exhausts the stack.

use super::parse::DEPTH;
use minijinja::machinery::Token;

/// More tokens than this in one `{{ }}` or expression are refused: none of them opens more than one level.
const TOKENS: usize = 2_000;
/// Open brackets, and before each of them the signs and words that wait for what is in it.
const OPEN: usize = 3 * DEPTH;

pub(super) fn too_deep() -> String {
    format!("nested more than {DEPTH} deep")
}

/// How deep the parser is at a token, never less than it really is.
#[derive(Default)]
pub(super) struct Nesting {
    /// Tokens since the last `{{`, `{%` or text.
    tokens: usize,
    /// Blocks that are open, each with the number of its `{% elif %}`: the parser takes each for an `if` in the one before.
    blocks: Vec<usize>,
    /// All of them.
    nested: usize,
    /// For each open bracket, and outside of all: the `not`, `-` and `else` of the element that is being read. The parser
    /// is inside each of them until the element ends.
    waiting: Vec<usize>,
    /// All of them, and the brackets.
    open: usize,
    /// Whether an operand has just ended, so that `-` takes from it.
    operand: bool,
    /// This is a statement, whose first word comes next.
    keyword: bool,
}

impl Nesting {
    /// Takes the next token. The error says what is too deep.
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
        // A block at the last level may still be empty.
        if self.nested > DEPTH + 1 || self.open > OPEN {
            return Err(too_deep());
        }
        Ok(())
    }

    fn statement(&mut self, word: &str) {
        match word {
            // `set` opens a block only without `=`, which comes later; what it holds counts as if it did not.
            "if" | "for" | "with" | "filter" | "autoescape" | "block" | "macro" | "call" => {
                self.blocks.push(0);
                self.nested += 1;
            }
            "elif" => {
                if let Some(chain) = self.blocks.last_mut() {
                    *chain += 1;
                    self.nested += 1;
                }
            }
            "endset" => {}
            _ if word.starts_with("end") => {
                let chain = self.blocks.pop();
                self.nested = self
                    .nested
                    .saturating_sub(chain.map_or(0, |chain| chain + 1));
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
