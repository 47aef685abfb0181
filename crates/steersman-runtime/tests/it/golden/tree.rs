//! Parses the output of derived `Debug` implementations into names and values, for any type.

/// A value in the output of `{:?}`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// A number, a truth value, a variant without fields.
    Word(String),
    /// A text, without its quotes and escapes.
    Text(String),
    /// A struct or a variant with named fields.
    Struct(String, Vec<(String, Node)>),
    /// A tuple (its name is empty), a newtype, or a variant with fields that have no names.
    Tuple(String, Vec<Node>),
    /// A list or a set.
    List(Vec<Node>),
    /// A map.
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// Parses the output of `{:?}`.
    ///
    /// # Panics
    /// If the text has another form than derived implementations write.
    pub(super) fn parse(text: &str) -> Self {
        let mut parser = Parser { rest: text };
        let node = parser.node();
        parser.space();
        assert!(parser.rest.is_empty(), "{:?} is left over", parser.rest);
        node
    }

    /// Returns true for values that mean "not set". Such fields are left out, so a new field that is not set changes no
    /// rendering.
    pub(super) fn is_unset(&self) -> bool {
        match self {
            Self::Word(word) => ["None", "false", "0"].contains(&&**word),
            Self::Text(text) => text.is_empty(),
            Self::List(list) => list.is_empty(),
            Self::Map(map) => map.is_empty(),
            Self::Tuple(name, parts) => {
                let newtype = name != "Some" && parts.len() == 1;
                newtype && parts[0] == Self::Word("0".into())
            }
            Self::Struct(..) => false,
        }
    }

    /// Returns the bytes of a hash, if the node is a list of 16 or 32 bytes.
    pub(super) fn hash(&self) -> Option<Vec<u8>> {
        let Self::List(list) = self else { return None };
        if ![16, 32].contains(&list.len()) {
            return None;
        }
        let byte = |node: &Self| match node {
            Self::Word(word) => word.parse().ok(),
            _ => None,
        };
        list.iter().map(byte).collect()
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Consumes the token if it comes next.
    fn takes(&mut self, token: &str) -> bool {
        self.space();
        let after = self.rest.strip_prefix(token);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn expects(&mut self, token: &str) {
        assert!(self.takes(token), "no {token:?} before {:?}", self.rest);
    }

    fn node(&mut self) -> Node {
        self.space();
        match self.rest.chars().next() {
            Some('"') => Node::Text(self.text()),
            Some('[') => {
                self.expects("[");
                Node::List(self.nodes("]"))
            }
            Some('{') => self.braces(),
            Some('(') => {
                self.expects("(");
                Node::Tuple(String::new(), self.nodes(")"))
            }
            _ => self.named(),
        }
    }

    /// Parses nodes up to the closing token.
    fn nodes(&mut self, end: &str) -> Vec<Node> {
        let mut nodes = Vec::new();
        while !self.takes(end) {
            nodes.push(self.node());
            self.takes(",");
        }
        nodes
    }

    /// Parses a map or a set.
    fn braces(&mut self) -> Node {
        self.expects("{");
        let (mut map, mut set) = (Vec::new(), Vec::new());
        while !self.takes("}") {
            let key = self.node();
            if self.takes(":") {
                map.push((key, self.node()));
            } else {
                set.push(key);
            }
            self.takes(",");
        }
        if set.is_empty() {
            Node::Map(map)
        } else {
            Node::List(set)
        }
    }

    fn word(&mut self) -> String {
        self.space();
        let end = |c: char| c.is_whitespace() || "(){}[],:\"".contains(c);
        let at = self.rest.find(end).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(at);
        assert!(!word.is_empty(), "no word before {:?}", self.rest);
        self.rest = rest;
        word.to_owned()
    }

    fn named(&mut self) -> Node {
        let name = self.word();
        if self.rest.starts_with('(') {
            self.expects("(");
            return Node::Tuple(name, self.nodes(")"));
        }
        if !self.rest.starts_with(" {") {
            return Node::Word(name);
        }
        self.expects("{");
        let mut fields = Vec::new();
        while !self.takes("}") {
            if self.takes("..") {
                continue;
            }
            let field = self.word();
            self.expects(":");
            fields.push((field, self.node()));
            self.takes(",");
        }
        Node::Struct(name, fields)
    }

    fn text(&mut self) -> String {
        self.expects("\"");
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return text;
                }
                '\\' => match chars.next().expect("an escape is whole").1 {
                    'n' => text.push('\n'),
                    'r' => text.push('\r'),
                    't' => text.push('\t'),
                    '0' => text.push('\0'),
                    'u' => {
                        let digits = chars.by_ref().map(|(_, c)| c).skip(1);
                        let digits: String = digits.take_while(|c| *c != '}').collect();
                        let code = u32::from_str_radix(&digits, 16).unwrap();
                        text.push(char::from_u32(code).unwrap());
                    }
                    same => text.push(same),
                },
                c => text.push(c),
            }
        }
        panic!("a text without an end: {text}");
    }
}

#[test]
fn debug_output_is_parsed() {
    #[derive(Debug)]
    #[expect(dead_code, reason = "only `Debug` reads the fields")]
    enum Any {
        Unit,
        Two(u8, Option<i64>),
        Named { text: &'static str, list: Vec<Any> },
    }
    let list = vec![Any::Unit, Any::Two(1, Some(-2)), Any::Two(0, None)];
    let named = Any::Named {
        text: "a \"b\"\n\u{1b}{}: [c]",
        list,
    };
    let word = |word: &str| Node::Word(word.into());
    let some = Node::Tuple("Some".into(), vec![word("-2")]);
    let list = Node::List(vec![
        word("Unit"),
        Node::Tuple("Two".into(), vec![word("1"), some]),
        Node::Tuple("Two".into(), vec![word("0"), word("None")]),
    ]);
    let fields = vec![
        ("text".into(), Node::Text("a \"b\"\n\u{1b}{}: [c]".into())),
        ("list".into(), list),
    ];
    let parsed = Node::parse(&format!("{named:?}"));
    assert_eq!(parsed, Node::Struct("Named".into(), fields));
    let map = std::collections::BTreeMap::from([((1, "x"), [2; 3])]);
    let key = Node::Tuple(String::new(), vec![word("1"), Node::Text("x".into())]);
    let value = Node::List(vec![word("2"); 3]);
    assert_eq!(
        Node::parse(&format!("{map:?}")),
        Node::Map(vec![(key, value)])
    );
}
