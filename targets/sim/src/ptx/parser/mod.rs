//! Recursive-descent parser of PTX (PTX ISA, chapters 4, 5 and 11).

mod declarations;
mod statements;

use super::PtxError;
use super::ast::{Module, Space};
use super::lexer::{Tok, Token, tokens};

/// Nesting of scopes that is still parsed; deeper text is refused, not recursed into.
const MAX_DEPTH: u32 = 64;

pub(super) struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    depth: u32,
}

type Parsed<T> = Result<T, PtxError>;

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Parsed<Self> {
        Ok(Self {
            tokens: tokens(text)?,
            at: 0,
            depth: 0,
        })
    }

    fn token(&self, ahead: usize) -> Token<'a> {
        let end = Token {
            kind: Tok::End,
            line: 0,
            column: 0,
        };
        self.tokens
            .get(self.at + ahead)
            .or(self.tokens.last())
            .copied()
            .unwrap_or(end)
    }

    fn peek(&self) -> Tok<'a> {
        self.token(0).kind
    }

    fn next(&mut self) -> Tok<'a> {
        let kind = self.peek();
        self.at += 1;
        kind
    }

    fn error(&self, message: impl Into<String>) -> PtxError {
        let Token { line, column, .. } = self.token(0);
        PtxError {
            line,
            column,
            message: message.into(),
            unsupported: false,
        }
    }

    fn unexpected(&self, wanted: &str) -> PtxError {
        let found = match self.peek() {
            Tok::Word(w) => format!("`{w}`"),
            Tok::Dot(d) => format!("`.{d}`"),
            Tok::Int(n) => format!("`{n}`"),
            Tok::F32(_) | Tok::F64(_) => "a float".into(),
            Tok::Str(_) => "a string".into(),
            Tok::Punct(c) => format!("`{}`", char::from(c)),
            Tok::End => "the end of the text".into(),
        };
        self.error(format!("expected {wanted}, found {found}"))
    }

    fn accept(&mut self, c: u8) -> bool {
        let yes = self.peek() == Tok::Punct(c);
        if yes {
            self.at += 1;
        }
        yes
    }

    fn accept_dot(&mut self, word: &str) -> bool {
        let yes = self.peek() == Tok::Dot(word);
        if yes {
            self.at += 1;
        }
        yes
    }

    fn expect(&mut self, c: u8) -> Parsed<()> {
        if self.accept(c) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{}`", char::from(c))))
        }
    }

    fn word(&mut self, what: &str) -> Parsed<&'a str> {
        match self.peek() {
            Tok::Word(w) => {
                self.at += 1;
                Ok(w)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    fn int(&mut self, what: &str) -> Parsed<u64> {
        match self.peek() {
            Tok::Int(n) => {
                self.at += 1;
                Ok(n)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    pub(super) fn module(mut self) -> Parsed<Module> {
        let mut module = Module::default();
        loop {
            match self.peek() {
                Tok::End => return Ok(module),
                Tok::Punct(b';') => self.at += 1,
                Tok::Dot("version") => {
                    self.at += 1;
                    module.version = self.version()?;
                }
                Tok::Dot("target") => {
                    self.at += 1;
                    module.target = self.word("a target such as `sm_90a`")?.into();
                    while self.accept(b',') {
                        self.word("a target option")?;
                    }
                }
                Tok::Dot("address_size") => {
                    self.at += 1;
                    if self.int("an address size")? != 64 {
                        return Err(self.error("only 64-bit addresses are supported"));
                    }
                }
                Tok::Dot("file") => module.files.push(self.file()?),
                Tok::Dot("section") => {
                    let strings = self.section()?;
                    module.strings.extend(strings);
                }
                Tok::Dot("pragma") => self.pragma()?,
                Tok::Dot("alias") => module.aliases.push(self.alias()?),
                _ => self.declaration(&mut module)?,
            }
        }
    }

    fn version(&mut self) -> Parsed<(u32, u32)> {
        match self.next() {
            Tok::F64(bits) => {
                let tenths = (f64::from_bits(bits) * 10.0).round() as u32;
                Ok((tenths / 10, tenths % 10))
            }
            Tok::Int(n) => Ok((n as u32, 0)),
            _ => {
                self.at -= 1;
                Err(self.unexpected("a version such as `9.0`"))
            }
        }
    }

    /// `.alias name, function;`
    fn alias(&mut self) -> Parsed<(String, String)> {
        self.at += 1;
        let alias = self.word("a function's other name")?.to_string();
        self.expect(b',')?;
        let function = self.word("a function's name")?.to_string();
        self.expect(b';')?;
        Ok((alias, function))
    }

    fn file(&mut self) -> Parsed<(u32, String)> {
        self.at += 1;
        let number = self.int("a file number")? as u32;
        let Tok::Str(name) = self.next() else {
            self.at -= 1;
            return Err(self.unexpected("a file name"));
        };
        while self.accept(b',') {
            self.int("a time stamp or size")?;
        }
        Ok((number, name.into()))
    }

    /// Debug sections carry nothing that execution needs; `.debug_str` has the names of inlined functions,
    /// which are returned by label.
    fn section(&mut self) -> Parsed<Vec<(String, String)>> {
        while !matches!(self.peek(), Tok::Punct(b'{') | Tok::End) {
            self.at += 1;
        }
        self.expect(b'{')?;
        let mut open = 1;
        let mut strings: Vec<(String, Vec<u8>)> = Vec::new();
        while open > 0 {
            match self.next() {
                Tok::Punct(b'{') => open += 1,
                Tok::Punct(b'}') => open -= 1,
                Tok::Word(label) if self.peek() == Tok::Punct(b':') => {
                    strings.push((label.into(), Vec::new()));
                }
                Tok::Int(byte) => {
                    if let Some((_, bytes)) = strings.last_mut() {
                        bytes.push(byte as u8);
                    }
                }
                Tok::End => return Err(self.error("section is not closed")),
                _ => {}
            }
        }
        let text = |bytes: &[u8]| {
            let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        Ok(strings
            .iter()
            .map(|(label, bytes)| (label.clone(), text(bytes)))
            .collect())
    }

    fn pragma(&mut self) -> Parsed<()> {
        while self.peek() != Tok::Punct(b';') {
            if self.peek() == Tok::End {
                return Err(self.unexpected("`;`"));
            }
            self.at += 1;
        }
        self.expect(b';')
    }

    fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            Err(self.error("scopes are nested too deeply"))
        } else {
            Ok(())
        }
    }
}

fn space(name: &str) -> Space {
    match name {
        "global" => Space::Global,
        "shared" => Space::Shared,
        "const" => Space::Const,
        "local" => Space::Local,
        "param" => Space::Param,
        _ => Space::Reg,
    }
}

/// Size in bytes of a fundamental type (PTX ISA 5.2), `None` if `ty` is none.
pub(crate) fn type_bytes(ty: &str) -> Option<u64> {
    Some(match ty {
        "b8" | "u8" | "s8" | "e4m3" | "e5m2" | "pred" => 1,
        "b16" | "u16" | "s16" | "f16" | "bf16" | "e4m3x2" | "e5m2x2" => 2,
        "b32" | "u32" | "s32" | "f32" | "f16x2" | "bf16x2" | "tf32" | "u16x2" | "s16x2" => 4,
        "b64" | "u64" | "s64" | "f64" | "f32x2" => 8,
        "b128" => 16,
        _ => return None,
    })
}
