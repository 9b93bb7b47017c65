//! Text that MLIR 22's parser does not survive, found before it reads it.
//!
//! A few custom forms end the process where they should give an error, in every program that parses MLIR:
//!
//! | form | what MLIR does |
//! | --- | --- |
//! | `permutation` or `dimensions` of `linalg.transpose`, `reduce` and `broadcast` that is no list of integers | reads a null attribute after its diagnostic (`parseDenseI64ArrayAttr`, LinalgOps.cpp) |
//! | an iterator type of `linalg.generic` that is no string | casts it to one (`GenericOp::parse`) |
//! | `from_elements` of a type with far more elements than operands | makes a vector of that many types |
//! | `array<index: 1>` | asks `index` for its width (`DenseArrayAttr`'s parser takes it beside integers and floats) |
//! | brackets thousands deep | recurses until the stack ends |
//!
//! Nothing that parses is refused: each check is on what the parser goes on to require, and the depth on what fits on a
//! thread's stack.

mod lexer;

use lexer::{Lexer, Token};
use std::cell::OnceCell;
use std::collections::HashMap;

/// How deep brackets may be. Clang's limit (`-fbracket-depth`) is 256; MLIR's parser needs up to 4 KiB of stack for each, and
/// threads have 2 MiB.
const DEPTH: usize = 400;

/// What bytecode, which is no text, starts with.
const BYTECODE: &[u8] = b"ML\xefR";

/// Why a text is not given to the parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The byte of the text where it is wrong.
    pub at: usize,
    /// What was expected, and of what.
    pub message: String,
}

impl Refusal {
    /// The line and column in the text, from 1.
    #[must_use]
    pub fn line_and_column(&self, text: &[u8]) -> (usize, usize) {
        let before = text.get(..self.at).unwrap_or(text);
        let start = before
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        let line = before.iter().filter(|&&byte| byte == b'\n').count();
        (line + 1, before.len() - start + 1)
    }
}

/// What in a text MLIR's parser would not survive; `None` where it reads it, or says itself what is wrong.
#[must_use]
pub fn refusal(text: &[u8]) -> Option<Refusal> {
    if text.starts_with(BYTECODE) {
        return None;
    }
    let source = Text {
        text,
        aliases: OnceCell::new(),
    };
    let mut open = Vec::new();
    let mut lexer = Lexer::new(text);
    while let Some((at, token)) = lexer.next() {
        let refused = match token {
            Token::Word(b"array") => source.array(lexer),
            Token::Word(name) => source.operation(name, lexer),
            Token::Sign(sign) => nest(&mut open, sign).then(|| Refusal {
                at,
                message: format!("expected brackets at most {DEPTH} deep"),
            }),
            _ => None,
        };
        if refused.is_some() {
            return refused;
        }
    }
    None
}

/// Counts a bracket; whether it is too deep. A closing bracket closes all up to its like, so that a `<` which was none is
/// forgotten.
fn nest(open: &mut Vec<u8>, sign: u8) -> bool {
    let opening = match sign {
        b'(' | b'[' | b'{' | b'<' => {
            open.push(sign);
            return open.len() > DEPTH;
        }
        b')' => b'(',
        b']' => b'[',
        b'}' => b'{',
        b'>' => b'<',
        _ => return false,
    };
    // A `>` closes only what is next to it: it may be no bracket.
    let found = match opening {
        b'<' => open
            .last()
            .filter(|&&last| last == b'<')
            .map(|_| open.len() - 1),
        _ => open.iter().rposition(|&other| other == opening),
    };
    if let Some(found) = found {
        open.truncate(found);
    }
    false
}

/// A text and the aliases that it defines.
struct Text<'a> {
    text: &'a [u8],
    aliases: OnceCell<HashMap<&'a [u8], Lexer<'a>>>,
}

impl<'a> Text<'a> {
    /// What is wrong with an operation in its custom form, `rest` being what follows its name.
    fn operation(&self, name: &'a [u8], rest: Lexer<'a>) -> Option<Refusal> {
        match name {
            b"linalg.transpose" => list(rest, b"permutation"),
            b"linalg.reduce" | b"linalg.broadcast" => list(rest, b"dimensions"),
            b"linalg.generic" => self.iterators(rest),
            b"tensor.from_elements" | b"vector.from_elements" => self.elements(rest),
            _ => None,
        }
    }

    /// What follows, or what its definition says where it is an alias.
    fn resolved(&self, mut rest: Lexer<'a>) -> Lexer<'a> {
        let mut followed = 0;
        while let Some((_, Token::Alias(name))) = rest.clone().next() {
            let aliases = self.aliases();
            match aliases.get(name) {
                // Those that go in circles are the parser's.
                Some(&definition) if followed <= aliases.len() => rest = definition,
                _ => break,
            }
            followed += 1;
        }
        rest
    }

    /// What follows the `=` of each alias.
    fn aliases(&self) -> &HashMap<&'a [u8], Lexer<'a>> {
        self.aliases.get_or_init(|| {
            let mut lexer = Lexer::new(self.text);
            let mut found = HashMap::new();
            while let Some((_, token)) = lexer.next() {
                let mut after = lexer;
                if let (Token::Alias(name), Some((_, Token::Sign(b'=')))) = (token, after.next()) {
                    found.insert(name, after);
                }
            }
            found
        })
    }

    /// The type of the elements of an `array<i64: 1, 2>`.
    fn array(&self, mut rest: Lexer<'a>) -> Option<Refusal> {
        rest.next()
            .filter(|&(_, token)| token == Token::Sign(b'<'))?;
        let at = rest.clone().next()?.0;
        let (_, element) = self.resolved(rest).next()?;
        (element == Token::Word(b"index")).then(|| Refusal {
            at,
            message: "expected integer or float type, got: 'index'".into(),
        })
    }

    /// The iterator types of a `linalg.generic`: strings.
    fn iterators(&self, rest: Lexer<'a>) -> Option<Refusal> {
        let mut lexer = self.resolved(rest);
        let mut depth = 0;
        while let Some((_, token)) = lexer.next() {
            depth = depth_after(depth, token)?;
            let key = matches!(
                token,
                Token::Word(b"iterator_types") | Token::Text(b"\"iterator_types\"")
            );
            if depth == 1 && key {
                return self.strings(lexer);
            }
            if depth == 0 {
                return None;
            }
        }
        None
    }

    /// The list of strings after a `=`.
    fn strings(&self, mut lexer: Lexer<'a>) -> Option<Refusal> {
        lexer
            .next()
            .filter(|&(_, token)| token == Token::Sign(b'='))?;
        let mut items = self.resolved(lexer);
        items
            .next()
            .filter(|&(_, token)| token == Token::Sign(b'['))?;
        loop {
            let value = self.resolved(items).next();
            let (at, token) = items.next()?;
            match (token, value) {
                (Token::Sign(b']'), _) => return None,
                (Token::Sign(b','), _) | (_, Some((_, Token::Text(_)))) => {}
                _ => {
                    return Some(Refusal {
                        at,
                        message:
                            "custom op 'linalg.generic' expected iterator types that are strings"
                                .into(),
                    });
                }
            }
        }
    }

    /// The type of a `from_elements`: it has an operand for each element, and so no more than the text has bytes.
    fn elements(&self, mut lexer: Lexer<'a>) -> Option<Refusal> {
        let mut depth = 0;
        for (_, token) in lexer.by_ref() {
            depth = depth_after(depth, token)?;
            match token {
                Token::Sign(b':') if depth == 0 => break,
                Token::Word(name) if depth == 0 && name.contains(&b'.') => return None,
                _ => {}
            }
        }
        let at = lexer.clone().next()?.0;
        let mut r#type = self.resolved(lexer);
        r#type.next()?;
        r#type
            .next()
            .filter(|&(_, token)| token == Token::Sign(b'<'))?;
        let Some((_, Token::Number(sizes))) = r#type.next() else {
            return None;
        };
        let limit = self.text.len() as u128;
        (count(sizes) > limit).then(|| Refusal {
            at,
            message:
                "custom op 'from_elements' expected a type of as many elements as it has operands"
                    .into(),
        })
    }
}

/// The elements of `4x8xf32`, at most 2^128 - 1; sizes after one that is no number are not counted.
fn count(sizes: &[u8]) -> u128 {
    let sizes = sizes.split(|&byte| byte == b'x').map_while(|size| {
        let size = std::str::from_utf8(size)
            .ok()
            .filter(|size| !size.is_empty())?;
        let digits = size.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| size.parse::<u128>().unwrap_or(u128::MAX))
    });
    let sizes: Vec<_> = sizes.collect();
    match sizes.contains(&0) {
        true => 0,
        false => sizes
            .iter()
            .fold(1, |product: u128, &size| product.saturating_mul(size)),
    }
}

/// How deep a token leaves brackets; `None` where it closes one that was not opened.
fn depth_after(depth: usize, token: Token<'_>) -> Option<usize> {
    match token {
        Token::Sign(b'(' | b'[' | b'{' | b'<') => Some(depth + 1),
        Token::Sign(b')' | b']' | b'}' | b'>') => depth.checked_sub(1),
        _ => Some(depth),
    }
}

/// The list of integers after a keyword of an operation and a `=`.
fn list(mut lexer: Lexer<'_>, keyword: &[u8]) -> Option<Refusal> {
    let mut depth = 0;
    loop {
        let (_, token) = lexer.next()?;
        depth = depth_after(depth, token)?;
        match token {
            Token::Word(name) if depth == 0 && name == keyword => break,
            Token::Word(name) if depth == 0 && name.contains(&b'.') => return None,
            _ => {}
        }
    }
    lexer
        .next()
        .filter(|&(_, token)| token == Token::Sign(b'='))?;
    let wrong = integers(&mut lexer)?;
    Some(Refusal {
        at: wrong,
        message: format!(
            "expected a list of integers for '{}'",
            String::from_utf8_lossy(keyword)
        ),
    })
}

/// Where what follows is no `[1, 0]`.
fn integers(lexer: &mut Lexer<'_>) -> Option<usize> {
    let mut after = 0;
    let mut next = || {
        let token = lexer.next();
        after = token.map_or(after, |(at, _)| at);
        (after, token.map(|(_, token)| token))
    };
    let (at, token) = next();
    if token != Some(Token::Sign(b'[')) {
        return Some(at);
    }
    let (mut at, mut token) = next();
    if token == Some(Token::Sign(b']')) {
        return None;
    }
    loop {
        if token == Some(Token::Sign(b'-')) {
            (at, token) = next();
        }
        if !token.is_some_and(is_integer) {
            return Some(at);
        }
        match next() {
            (_, Some(Token::Sign(b']'))) => return None,
            (_, Some(Token::Sign(b','))) => (at, token) = next(),
            (at, _) => return Some(at),
        }
    }
}

/// Whether a token is an integer of 64 bits for sure: no dimension has more digits.
fn is_integer(token: Token<'_>) -> bool {
    let Token::Number(text) = token else {
        return false;
    };
    match text.strip_prefix(b"0x") {
        Some(digits) => (1..16).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit),
        None => text.len() < 19 && text.iter().all(u8::is_ascii_digit),
    }
}

#[cfg(test)]
mod tests;
