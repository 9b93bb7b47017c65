//! Splits PTX text into tokens (PTX ISA, chapter 4 "Syntax").

use super::PtxError;

/// One token's kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Tok<'a> {
    /// Identifier, opcode, register or label: `add`, `%r1`, `$L__BB0_1`.
    Word(&'a str),
    /// A dotted part without its dot: `.b32` gives `b32`, `.shared::cta` gives `shared::cta`.
    Dot(&'a str),
    /// Integer literal.
    Int(u64),
    /// `0fXXXXXXXX`, the bits.
    F32(u32),
    /// `0dXXXXXXXXXXXXXXXX` or a decimal literal, the bits.
    F64(u64),
    /// String literal without quotes.
    Str(&'a str),
    /// One punctuation character.
    Punct(u8),
    /// End of text.
    End,
}

/// A token and where it starts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub kind: Tok<'a>,
    pub line: u32,
    pub column: u32,
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
}

/// All tokens of `text`, the last one being [`Tok::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, PtxError> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
        line_start: 0,
    };
    let mut all = Vec::with_capacity(text.len() / 4);
    loop {
        lexer.skip_blank()?;
        let (line, column) = (lexer.line, (lexer.at - lexer.line_start + 1) as u32);
        let kind = lexer.next_kind()?;
        all.push(Token { kind, line, column });
        if kind == Tok::End {
            return Ok(all);
        }
    }
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'$'
}

impl<'a> Lexer<'a> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text
            .as_bytes()
            .get(self.at + ahead)
            .copied()
            .unwrap_or(0)
    }

    fn error(&self, message: impl Into<String>) -> PtxError {
        PtxError {
            line: self.line,
            column: (self.at - self.line_start + 1) as u32,
            message: message.into(),
            unsupported: false,
        }
    }

    fn slice(&self, from: usize) -> &'a str {
        self.text.get(from..self.at).unwrap_or("")
    }

    fn newline(&mut self) {
        self.at += 1;
        self.line += 1;
        self.line_start = self.at;
    }

    fn skip_blank(&mut self) -> Result<(), PtxError> {
        while self.at < self.text.len() {
            match (self.peek(0), self.peek(1)) {
                (b'\n', _) => self.newline(),
                (b' ' | b'\t' | b'\r' | 0, _) => self.at += 1,
                (b'/', b'/') => self.skip_line(),
                (b'/', b'*') => {
                    let open = self.error("comment is not closed");
                    while (self.peek(0), self.peek(1)) != (b'*', b'/') {
                        match self.peek(0) {
                            _ if self.at >= self.text.len() => return Err(open),
                            b'\n' => self.newline(),
                            _ => self.at += 1,
                        }
                    }
                    self.at += 2;
                }
                // A leading `#` line is left by preprocessors: it says a file and line, nothing else.
                (b'#', _) => self.skip_line(),
                _ => break,
            }
        }
        Ok(())
    }

    fn skip_line(&mut self) {
        while self.at < self.text.len() && self.peek(0) != b'\n' {
            self.at += 1;
        }
    }

    fn next_kind(&mut self) -> Result<Tok<'a>, PtxError> {
        let c = self.peek(0);
        if self.at >= self.text.len() {
            return Ok(Tok::End);
        }
        let from = self.at;
        if c.is_ascii_digit() {
            return self.number();
        }
        if c.is_ascii_alphabetic() || matches!(c, b'_' | b'$' | b'%') {
            self.at += 1;
            while is_word(self.peek(0)) {
                self.at += 1;
            }
            let word = self.slice(from);
            if word == "%" {
                return Ok(Tok::Punct(b'%'));
            }
            return Ok(Tok::Word(word));
        }
        if c == b'.' && is_word(self.peek(1)) {
            self.at += 1;
            self.dotted();
            return Ok(Tok::Dot(self.slice(from + 1)));
        }
        if c == b'"' {
            return self.string();
        }
        if c.is_ascii() {
            self.at += 1;
            return Ok(Tok::Punct(c));
        }
        Err(self.error("a character outside ASCII is no PTX"))
    }

    fn dotted(&mut self) {
        while is_word(self.peek(0))
            || (self.peek(0) == b':' && self.peek(1) == b':' && is_word(self.peek(2)))
        {
            self.at += if self.peek(0) == b':' { 2 } else { 1 };
        }
    }

    fn string(&mut self) -> Result<Tok<'a>, PtxError> {
        let open = self.error("string is not closed");
        self.at += 1;
        let from = self.at;
        while self.peek(0) != b'"' {
            if self.at >= self.text.len() || self.peek(0) == b'\n' {
                return Err(open);
            }
            self.at += 1;
        }
        let text = self.slice(from);
        self.at += 1;
        Ok(Tok::Str(text))
    }

    fn number(&mut self) -> Result<Tok<'a>, PtxError> {
        let from = self.at;
        let radix = match (self.peek(0), self.peek(1)) {
            (b'0', b'f' | b'F') => return self.float_bits(8).map(|bits| Tok::F32(bits as u32)),
            (b'0', b'd' | b'D') => return self.float_bits(16).map(Tok::F64),
            (b'0', b'x' | b'X') => 16,
            (b'0', b'b' | b'B') => 2,
            (b'0', b'0'..=b'7') => 8,
            _ => 10,
        };
        if radix == 16 || radix == 2 {
            self.at += 2;
        }
        let digits = self.at;
        while self.peek(0).is_ascii_digit() || (radix == 16 && self.peek(0).is_ascii_hexdigit()) {
            self.at += 1;
        }
        let fraction = self.peek(0) == b'.' && self.peek(1).is_ascii_digit();
        if radix != 16 && radix != 2 && (fraction || matches!(self.peek(0), b'e' | b'E')) {
            return self.decimal(from);
        }
        let value = u64::from_str_radix(self.slice(digits), radix)
            .map_err(|error| self.error(format!("bad integer literal: {error}")))?;
        if self.peek(0) == b'U' {
            self.at += 1;
        }
        Ok(Tok::Int(value))
    }

    fn decimal(&mut self, from: usize) -> Result<Tok<'a>, PtxError> {
        if self.peek(0) == b'.' {
            self.at += 1;
            while self.peek(0).is_ascii_digit() {
                self.at += 1;
            }
        }
        if matches!(self.peek(0), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(0), b'+' | b'-') {
                self.at += 1;
            }
            while self.peek(0).is_ascii_digit() {
                self.at += 1;
            }
        }
        let value: f64 = self
            .slice(from)
            .parse()
            .map_err(|error| self.error(format!("bad float literal: {error}")))?;
        Ok(Tok::F64(value.to_bits()))
    }

    fn float_bits(&mut self, digits: usize) -> Result<u64, PtxError> {
        self.at += 2;
        let from = self.at;
        while self.peek(0).is_ascii_hexdigit() && self.at - from < digits {
            self.at += 1;
        }
        if self.at - from != digits {
            return Err(self.error(format!("a float's bits take {digits} hexadecimal digits")));
        }
        u64::from_str_radix(self.slice(from), 16).map_err(|error| self.error(error.to_string()))
    }
}
