//! Bodies: statements, instructions and their operands (PTX ISA 4.3, 4.5, 6).

use super::super::ast::{Inst, Loc, Operand, Stmt};
use super::super::lexer::{Tok, Token};
use super::{Parsed, Parser, type_bytes};

impl Parser<'_> {
    /// Statements up to and with the closing brace.
    pub(super) fn body(&mut self) -> Parsed<Vec<Stmt>> {
        self.enter()?;
        let mut stmts = Vec::new();
        while !self.accept(b'}') {
            self.statement(&mut stmts)?;
        }
        self.depth -= 1;
        Ok(stmts)
    }

    pub(super) fn statement(&mut self, stmts: &mut Vec<Stmt>) -> Parsed<()> {
        match self.peek() {
            Tok::Punct(b';') => self.at += 1,
            Tok::Punct(b'{') => {
                self.at += 1;
                stmts.push(Stmt::Block(self.body()?));
            }
            Tok::Dot("reg") => self.registers(stmts)?,
            Tok::Dot("loc") => self.loc(stmts)?,
            Tok::Dot("pragma") => self.pragma()?,
            Tok::Dot("file") => {
                self.file()?;
            }
            Tok::Dot("section") => {
                self.section()?;
            }
            Tok::Dot("local" | "shared" | "param" | "global" | "const") => {
                let mut all = Vec::new();
                self.variables(false, &mut all)?;
                stmts.extend(all.into_iter().map(Stmt::Variable));
            }
            Tok::Word(name) if self.token(1).kind == Tok::Punct(b':') => {
                let line = self.token(0).line;
                self.at += 2;
                self.label(name, line, stmts)?;
            }
            Tok::Word(_) | Tok::Punct(b'@') => stmts.push(Stmt::Inst(self.instruction()?)),
            _ => return Err(self.unexpected("an instruction, a label or a declaration")),
        }
        Ok(())
    }

    pub(super) fn label(&mut self, name: &str, line: u32, stmts: &mut Vec<Stmt>) -> Parsed<()> {
        if self.accept_dot("branchtargets") || self.accept_dot("calltargets") {
            let mut names = vec![self.word("a label")?.to_string()];
            while self.accept(b',') {
                names.push(self.word("a label")?.to_string());
            }
            self.expect(b';')?;
            stmts.push(Stmt::Targets(name.into(), names));
        } else if self.accept_dot("callprototype") {
            if self.peek() == Tok::Punct(b'(') {
                self.params()?;
            }
            self.word("`_`")?;
            if self.peek() == Tok::Punct(b'(') {
                self.params()?;
            }
            self.directives()?;
            self.expect(b';')?;
            stmts.push(Stmt::Prototype);
        } else {
            stmts.push(Stmt::Label(name.into(), line));
        }
        Ok(())
    }

    pub(super) fn registers(&mut self, stmts: &mut Vec<Stmt>) -> Parsed<()> {
        self.at += 1;
        let mut ty = "";
        while let Tok::Dot(part) = self.peek() {
            self.at += 1;
            if matches!(part, "v2" | "v4") {
                return Err(self.error("vector registers are not supported"));
            }
            ty = part;
        }
        if ty != "pred" && type_bytes(ty).is_none() {
            return Err(self.unexpected("a register type"));
        }
        loop {
            let name = self.word("a register's name")?.to_string();
            let mut count = None;
            if self.accept(b'<') {
                let n = self.int("a number of registers")?;
                if n > 1 << 20 {
                    return Err(self.error("more than 2^20 registers"));
                }
                count = Some(n as u32);
                self.expect(b'>')?;
            }
            stmts.push(Stmt::Reg {
                ty: ty.into(),
                name,
                count,
            });
            if !self.accept(b',') {
                return self.expect(b';');
            }
        }
    }

    pub(super) fn loc(&mut self, stmts: &mut Vec<Stmt>) -> Parsed<()> {
        self.at += 1;
        let file = self.int("a file number")? as u32;
        let line = self.int("a line")? as u32;
        let column = self.int("a column")? as u32;
        let (mut function, mut inlined_at) = (None, None);
        // `, function_name label {+ n}, inlined_at file line column`
        while self.accept(b',') {
            match self.word("`function_name` or `inlined_at`")? {
                "function_name" => {
                    function = Some(self.word("a label")?.to_string());
                    self.plus_offset()?;
                }
                "inlined_at" => {
                    let file = self.int("a file number")? as u32;
                    let line = self.int("a line")? as u32;
                    inlined_at = Some((file, line, self.int("a column")? as u32));
                }
                _ => {
                    self.at -= 1;
                    return Err(self.unexpected("`function_name` or `inlined_at`"));
                }
            }
        }
        stmts.push(Stmt::Loc(Loc {
            place: (file, line, column),
            inlined: function.zip(inlined_at),
        }));
        Ok(())
    }

    pub(super) fn instruction(&mut self) -> Parsed<Inst> {
        let Token { line, column, .. } = self.token(0);
        let guard = if self.accept(b'@') {
            let negated = self.accept(b'!');
            Some((self.word("a predicate")?.to_string(), negated))
        } else {
            None
        };
        let mut op = vec![self.word("an instruction")?.to_string()];
        while let Tok::Dot(part) = self.peek() {
            self.at += 1;
            op.push(part.to_string());
        }
        let mut operands = Vec::new();
        while !self.accept(b';') {
            operands.push(self.operand()?);
            if !self.accept(b',') && self.peek() != Tok::Punct(b';') {
                return Err(self.unexpected("`,` or `;`"));
            }
        }
        Ok(Inst {
            guard,
            op,
            operands,
            line,
            column,
        })
    }

    pub(super) fn operand(&mut self) -> Parsed<Operand> {
        let first = self.simple_operand()?;
        if self.accept(b'|') {
            let second = self.simple_operand()?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        Ok(first)
    }

    pub(super) fn list(&mut self, close: u8) -> Parsed<Vec<Operand>> {
        self.enter()?;
        let mut all = Vec::new();
        while !self.accept(close) {
            all.push(self.operand()?);
            if !self.accept(b',') && self.peek() != Tok::Punct(close) {
                return Err(self.unexpected(&format!("`,` or `{}`", char::from(close))));
            }
        }
        self.depth -= 1;
        Ok(all)
    }

    pub(super) fn simple_operand(&mut self) -> Parsed<Operand> {
        match self.peek() {
            Tok::Punct(b'{') => {
                self.at += 1;
                Ok(Operand::Vector(self.list(b'}')?))
            }
            Tok::Punct(b'(') => {
                self.at += 1;
                Ok(Operand::List(self.list(b')')?))
            }
            Tok::Punct(b'[') => {
                self.at += 1;
                self.memory()
            }
            Tok::Punct(b'!') => {
                self.at += 1;
                Ok(Operand::Not(self.word("a predicate")?.into()))
            }
            Tok::Punct(b'-') => {
                self.at += 1;
                match self.next() {
                    Tok::Int(n) => Ok(Operand::Int(n.wrapping_neg())),
                    Tok::F32(bits) => Ok(Operand::F32(bits ^ 1 << 31)),
                    Tok::F64(bits) => Ok(Operand::F64(bits ^ 1 << 63)),
                    _ => {
                        self.at -= 1;
                        match self.named_operand()? {
                            Operand::Name(name) => Ok(Operand::Minus(name)),
                            _ => Err(self.unexpected("a number or a register")),
                        }
                    }
                }
            }
            Tok::Int(n) => {
                self.at += 1;
                Ok(Operand::Int(n))
            }
            Tok::F32(bits) => {
                self.at += 1;
                Ok(Operand::F32(bits))
            }
            Tok::F64(bits) => {
                self.at += 1;
                Ok(Operand::F64(bits))
            }
            Tok::Word("_") => {
                self.at += 1;
                Ok(Operand::Sink)
            }
            Tok::Word(_) => self.named_operand(),
            _ => Err(self.unexpected("an operand")),
        }
    }

    pub(super) fn named_operand(&mut self) -> Parsed<Operand> {
        let mut name = self.word("an operand")?.to_string();
        while let Tok::Dot(part) = self.peek() {
            self.at += 1;
            name.push('.');
            name.push_str(part);
        }
        match self.plus_offset()? {
            0 => Ok(Operand::Name(name)),
            offset => Ok(Operand::Offset(name, offset)),
        }
    }

    /// Zero or more `+n`, `-n`, `+-n`.
    pub(super) fn plus_offset(&mut self) -> Parsed<i64> {
        let mut offset = 0i64;
        loop {
            let negative = match self.peek() {
                Tok::Punct(b'+') => {
                    self.at += 1;
                    self.accept(b'-')
                }
                Tok::Punct(b'-') => {
                    self.at += 1;
                    true
                }
                _ => return Ok(offset),
            };
            let n = self.int("an offset")? as i64;
            offset = offset.wrapping_add(if negative { n.wrapping_neg() } else { n });
        }
    }

    pub(super) fn memory(&mut self) -> Parsed<Operand> {
        let (base, offset) = match self.operand()? {
            Operand::Offset(name, offset) => (Operand::Name(name), offset),
            other => (other, 0),
        };
        let offset = offset.wrapping_add(self.plus_offset()?);
        let mut more = Vec::new();
        while self.accept(b',') {
            more.push(self.operand()?);
        }
        self.expect(b']')?;
        Ok(Operand::Memory(Box::new(base), offset, more))
    }
}
