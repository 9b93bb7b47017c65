//! Tokens of MLIR's text, as far as brackets, names and numbers go (the LangRef, "Common syntax").

/// A token. What a token of MLIR is made of may be several here: `->` is one, `4x8xf32` is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A keyword or the name of an operation or type: `linalg.reduce`, `ins`.
    Word(&'a [u8]),
    /// `#name` or `!name`, with its sign.
    Alias(&'a [u8]),
    /// Digits, and what follows them without a space.
    Number(&'a [u8]),
    /// A string, with its quotes.
    Text(&'a [u8]),
    /// Another name: `%value`, `@symbol`, `^block`.
    Other,
    /// One character, or `->`, `>=` and `<=`, which are no brackets, as a `-`.
    Sign(u8),
}

/// Where in a text the next token is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// What follows while `take` says so.
    fn run(&mut self, take: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&take) {
            self.at += 1;
        }
    }

    /// Goes over spaces and comments.
    fn skip(&mut self) {
        loop {
            self.run(|byte| byte.is_ascii_whitespace());
            let rest = self.text.get(self.at..).unwrap_or_default();
            if !rest.starts_with(b"//") {
                return;
            }
            self.run(|byte| byte != b'\n');
        }
    }

    /// Goes over a string after its first quote; one that no quote ends is as long as its line.
    fn string(&mut self) {
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if matches!(byte, b'"' | b'\n') {
                return;
            }
        }
    }
}

impl<'a> Iterator for Lexer<'a> {
    /// The token and where it starts.
    type Item = (usize, Token<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip();
        let start = self.at;
        let first = self.peek()?;
        self.at += 1;
        let token: fn(&'a [u8]) -> Token<'a> = match first {
            b'"' => {
                self.string();
                Token::Text
            }
            b'#' | b'!' => {
                self.run(in_word);
                Token::Alias
            }
            b'%' | b'^' | b'@' => {
                self.run(|byte| in_word(byte) || byte == b'-');
                |_| Token::Other
            }
            b'0'..=b'9' => {
                self.run(in_word);
                Token::Number
            }
            _ if in_word(first) => {
                self.run(in_word);
                Token::Word
            }
            b'-' | b'>' | b'<' => {
                let pair = (first, self.peek());
                let whole = matches!(pair, (b'-', Some(b'>')) | (b'<' | b'>', Some(b'=')));
                self.at += usize::from(whole);
                match whole {
                    true => |_| Token::Sign(b'-'),
                    false => |text| Token::Sign(text.first().copied().unwrap_or_default()),
                }
            }
            _ => |text| Token::Sign(text.first().copied().unwrap_or_default()),
        };
        let end = self.at.min(self.text.len());
        Some((start, token(self.text.get(start..end)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Lexer, Token};

    #[test]
    fn strings_and_comments_hold_no_words() {
        let text = b"%a = f.g \"x \\\" // y\" // z\n #t 4x8xf32 -> -1 >= !u";
        let tokens: Vec<_> = Lexer::new(text).map(|(_, token)| token).collect();
        let expected = [
            Token::Other,
            Token::Sign(b'='),
            Token::Word(b"f.g"),
            Token::Text(b"\"x \\\" // y\""),
            Token::Alias(b"#t"),
            Token::Number(b"4x8xf32"),
            Token::Sign(b'-'),
            Token::Sign(b'-'),
            Token::Number(b"1"),
            Token::Sign(b'-'),
            Token::Alias(b"!u"),
        ];
        assert_eq!(tokens, expected);
    }
}
