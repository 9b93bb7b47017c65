//! Declarations: functions, parameters and variables with their initial values (PTX ISA 5.4, 11.1).

use super::super::ast::{Function, Init, Module, Space, Variable};
use super::super::lexer::Tok;
use super::{Parsed, Parser, space, type_bytes};

impl Parser<'_> {
    pub(super) fn declaration(&mut self, module: &mut Module) -> Parsed<()> {
        let mut external = false;
        loop {
            match self.peek() {
                Tok::Dot("visible" | "weak" | "common") => self.at += 1,
                Tok::Dot("extern") => {
                    external = true;
                    self.at += 1;
                }
                Tok::Dot("entry") => {
                    self.at += 1;
                    let function = self.function(true)?;
                    module.functions.push(function);
                    return Ok(());
                }
                Tok::Dot("func") => {
                    self.at += 1;
                    let function = self.function(false)?;
                    module.functions.push(function);
                    return Ok(());
                }
                Tok::Dot("global" | "const" | "shared" | "local") => {
                    self.variables(external, &mut module.variables)?;
                    return Ok(());
                }
                _ => return Err(self.unexpected("a variable, `.func` or `.entry`")),
            }
        }
    }

    pub(super) fn function(&mut self, entry: bool) -> Parsed<Function> {
        let line = self.token(0).line;
        if self.peek() == Tok::Dot("attribute") {
            self.at += 1;
            self.skip_parens()?;
        }
        let returns = if self.peek() == Tok::Punct(b'(') {
            self.params()?
        } else {
            Vec::new()
        };
        let name = self.word("a function's name")?.to_string();
        let params = if self.peek() == Tok::Punct(b'(') {
            self.params()?
        } else {
            Vec::new()
        };
        let directives = self.directives()?;
        let body = if self.accept(b'{') {
            Some(self.body()?)
        } else {
            None
        };
        self.accept(b';');
        Ok(Function {
            name,
            entry,
            returns,
            params,
            directives,
            body,
            line,
        })
    }

    pub(super) fn skip_parens(&mut self) -> Parsed<()> {
        self.expect(b'(')?;
        while !self.accept(b')') {
            if self.next() == Tok::End {
                return Err(self.unexpected("`)`"));
            }
        }
        Ok(())
    }

    pub(super) fn directives(&mut self) -> Parsed<Vec<(String, Vec<u64>)>> {
        let mut all = Vec::new();
        while let Tok::Dot(name) = self.peek() {
            if name == "pragma" {
                self.pragma()?;
                continue;
            }
            self.at += 1;
            let mut values = Vec::new();
            while let Tok::Int(n) = self.peek() {
                self.at += 1;
                values.push(n);
                self.accept(b',');
            }
            all.push((name.to_string(), values));
        }
        Ok(all)
    }

    pub(super) fn params(&mut self) -> Parsed<Vec<Variable>> {
        self.expect(b'(')?;
        let mut all = Vec::new();
        while !self.accept(b')') {
            if !matches!(self.peek(), Tok::Dot("param" | "reg")) {
                return Err(self.unexpected("`.param`"));
            }
            all.push(self.variable_head(false)?);
            if !self.accept(b',') && self.peek() != Tok::Punct(b')') {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
        Ok(all)
    }

    pub(super) fn variables(&mut self, external: bool, into: &mut Vec<Variable>) -> Parsed<()> {
        let first = self.variable_head(external)?;
        let mut pattern = first.clone();
        into.push(first);
        while self.accept(b',') {
            pattern.name = self.word("a variable's name")?.to_string();
            (pattern.count, pattern.init) = (Some(1), Vec::new());
            self.array_and_init(&mut pattern)?;
            into.push(pattern.clone());
        }
        self.expect(b';')
    }

    /// `.space .align n .type name[dims] = init`, without the closing `;`.
    pub(super) fn variable_head(&mut self, external: bool) -> Parsed<Variable> {
        let mut variable = Variable {
            space: Space::Generic,
            align: 0,
            ty: String::new(),
            element: 0,
            count: Some(1),
            name: String::new(),
            init: Vec::new(),
            external,
        };
        let mut pointer = false;
        let mut vector = 1;
        while let Tok::Dot(part) = self.peek() {
            self.at += 1;
            match part {
                "ptr" => pointer = true,
                "global" | "shared" | "const" | "local" | "param" | "reg" => {
                    if !pointer {
                        variable.space = space(part);
                    }
                }
                "align" => {
                    let align = self.int("an alignment")?;
                    if !pointer {
                        variable.align = align;
                    }
                }
                "attribute" => self.skip_parens()?,
                "v2" => vector = 2,
                "v4" => vector = 4,
                "v8" => vector = 8,
                "noreturn" => {}
                ty => {
                    variable.element = type_bytes(ty).ok_or_else(|| {
                        self.at -= 1;
                        self.unexpected("a type")
                    })?;
                    variable.ty = ty.into();
                }
            }
        }
        variable.element *= vector;
        variable.name = self.word("a variable's name")?.to_string();
        self.array_and_init(&mut variable)?;
        variable.align = variable.align.max(variable.element.max(1));
        if !variable.align.is_power_of_two() {
            return Err(self.error(format!("alignment {} is no power of two", variable.align)));
        }
        Ok(variable)
    }

    pub(super) fn array_and_init(&mut self, variable: &mut Variable) -> Parsed<()> {
        while self.accept(b'[') {
            if self.accept(b']') {
                variable.count = None;
                continue;
            }
            let extent = self.int("an array's extent")?;
            let count = variable
                .count
                .unwrap_or(1)
                .checked_mul(extent)
                .filter(|&n| n < 1 << 40);
            variable.count = Some(count.ok_or_else(|| self.error("array is too large"))?);
            self.expect(b']')?;
        }
        if self.accept(b'=') {
            self.init(variable)?;
            if variable.count.is_none() {
                variable.count = Some(variable.init.len() as u64);
            }
        }
        Ok(())
    }

    pub(super) fn init(&mut self, variable: &mut Variable) -> Parsed<()> {
        if self.accept(b'{') {
            self.enter()?;
            while !self.accept(b'}') {
                self.init(variable)?;
                if !self.accept(b',') && self.peek() != Tok::Punct(b'}') {
                    return Err(self.unexpected("`,` or `}`"));
                }
            }
            self.depth -= 1;
            return Ok(());
        }
        let negative = self.accept(b'-');
        let value = match self.next() {
            Tok::Int(n) if self.peek() == Tok::Punct(b'(') => {
                self.at += 1;
                let mut address = self.init_address()?;
                self.expect(b')')?;
                if let Init::Address { mask, .. } = &mut address {
                    *mask = Some(n);
                }
                address
            }
            Tok::Int(n) => Init::Bits(if negative { n.wrapping_neg() } else { n }),
            Tok::F32(bits) => Init::Bits(u64::from(bits)),
            Tok::F64(bits) => {
                let value = if negative {
                    -f64::from_bits(bits)
                } else {
                    f64::from_bits(bits)
                };
                Init::Bits(if variable.ty == "f32" {
                    u64::from((value as f32).to_bits())
                } else {
                    value.to_bits()
                })
            }
            _ => {
                self.at -= 1;
                self.init_address()?
            }
        };
        variable.init.push(value);
        Ok(())
    }

    pub(super) fn init_address(&mut self) -> Parsed<Init> {
        let mut name = self.word("an initial value")?;
        let generic = name == "generic" && self.accept(b'(');
        if generic {
            name = self.word("a symbol")?;
            self.expect(b')')?;
        }
        let offset = self.plus_offset()?;
        Ok(Init::Address {
            name: name.into(),
            offset,
            generic,
            mask: None,
        })
    }
}
