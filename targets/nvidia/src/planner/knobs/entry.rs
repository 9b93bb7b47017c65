//! Entries of a plan as data, and the text in which `axe.plan` and the database of tuned plans have them:
//! `{mainloop = "wgmma", tile = array<i64: 128, 256, 64>, stages = 4 : i64, swap_ab = true}`.

use axe_passes::ir::attribute;
use melior::ir::Attribute;
use melior::ir::attribute::DictionaryAttribute;
use std::fmt;

/// The value of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// `"wgmma"`.
    Text(String),
    /// `true`.
    Flag(bool),
    /// `4 : i64`.
    Number(i64),
    /// `array<i64: 128, 256, 64>`.
    Numbers(Vec<i64>),
}

/// Entries by key, in the order in which they are written.
pub type Entries = Vec<(String, Entry)>;

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Number(number) => write!(f, "{number} : i64"),
            Self::Numbers(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(i64::to_string).collect();
                write!(f, "array<i64: {}>", numbers.join(", "))
            }
        }
    }
}

impl Entry {
    /// The entry that an attribute is; `None` for one that no plan has.
    #[must_use]
    pub fn of(value: Attribute<'_>) -> Option<Self> {
        if let Some(text) = attribute::text(value) {
            return Some(Self::Text(text.to_owned()));
        }
        // `true` is an integer of one bit.
        if let Some(flag) = attribute::flag(value) {
            return Some(Self::Flag(flag));
        }
        let numbers = || attribute::read_i64s(value).map(Self::Numbers);
        attribute::integer(value).map(Self::Number).or_else(numbers)
    }
}

/// The entries of a dictionary; those that no plan has by their text, which is the error of their key.
#[must_use]
pub fn entries(plan: DictionaryAttribute<'_>) -> Vec<(String, Result<Entry, String>)> {
    (0..plan.len())
        .filter_map(|at| plan.element(at).ok())
        .map(|(key, value)| {
            let key = key.as_string_ref().as_str().unwrap_or_default().to_owned();
            (key, Entry::of(value).ok_or_else(|| value.to_string()))
        })
        .collect()
}

/// Reads the text of a dictionary.
///
/// # Errors
/// What was expected, and what is there.
pub fn parse(text: &str) -> Result<Entries, String> {
    let mut rest = Text { rest: text };
    let mut found = Entries::new();
    rest.expect("{")?;
    while !rest.takes("}") {
        if !found.is_empty() {
            rest.expect(",")?;
        }
        let key = rest.word()?.to_owned();
        rest.expect("=")?;
        found.push((key, rest.entry()?));
    }
    match rest.rest.trim() {
        "" => Ok(found),
        more => Err(format!(
            "expected nothing after the dictionary, got '{more}'"
        )),
    }
}

/// Text that is read from its start.
struct Text<'a> {
    rest: &'a str,
}

impl<'a> Text<'a> {
    /// Whether `token` is next; then it is read.
    fn takes(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        rest.map(|rest| self.rest = rest).is_some()
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        match self.takes(token) {
            true => Ok(()),
            false => Err(format!(
                "expected '{token}' at '{}'",
                self.rest.trim_start()
            )),
        }
    }

    /// The longest start of which all characters are `of` something.
    fn run(&mut self, of: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest.find(|c| !of(c)).unwrap_or(rest.len());
        let (run, rest) = rest.split_at(end);
        self.rest = rest;
        run
    }

    fn word(&mut self) -> Result<&'a str, String> {
        match self.run(|c| c.is_ascii_alphanumeric() || c == '_') {
            "" => Err(format!("expected a word at '{}'", self.rest)),
            word => Ok(word),
        }
    }

    fn number(&mut self) -> Result<i64, String> {
        let digits = self.run(|c| c.is_ascii_digit() || c == '-');
        let wrong = |_| format!("expected a number at '{digits}{}'", self.rest);
        digits.parse().map_err(wrong)
    }

    fn entry(&mut self) -> Result<Entry, String> {
        if self.takes("\"") {
            let (text, rest) = self
                .rest
                .split_once('"')
                .ok_or("expected '\"' at the end")?;
            self.rest = rest;
            return Ok(Entry::Text(text.to_owned()));
        }
        if self.takes("array") {
            return self.numbers();
        }
        for flag in [true, false] {
            if self.takes(&flag.to_string()) {
                return Ok(Entry::Flag(flag));
            }
        }
        let number = self.number()?;
        if self.takes(":") {
            self.expect("i64")?;
        }
        Ok(Entry::Number(number))
    }

    /// `<i64: 1, 2>`, after its `array`.
    fn numbers(&mut self) -> Result<Entry, String> {
        self.expect("<")?;
        self.expect("i64")?;
        let mut numbers = Vec::new();
        while !self.takes(">") {
            self.expect(if numbers.is_empty() { ":" } else { "," })?;
            numbers.push(self.number()?);
        }
        Ok(Entry::Numbers(numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_dictionary_is_read() {
        let text = "{mainloop = \"wgmma\", tile = array<i64: 128, -2>, stages = 4 : i64, n = 5, swap_ab = true}";
        let number = Entry::Number;
        let expected = [
            ("mainloop", Entry::Text("wgmma".to_owned())),
            ("tile", Entry::Numbers(vec![128, -2])),
            ("stages", number(4)),
            ("n", number(5)),
            ("swap_ab", Entry::Flag(true)),
        ];
        let expected: Entries = expected
            .into_iter()
            .map(|(key, entry)| (key.to_owned(), entry))
            .collect();
        assert_eq!(parse(text), Ok(expected));
        assert_eq!(parse(" { } "), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_dictionary_says_why() {
        for (text, why) in [
            ("[1, 2]", "expected '{' at '[1, 2]'"),
            (
                "{a = 1} b",
                "expected nothing after the dictionary, got 'b'",
            ),
            ("{a = 1 b = 2}", "expected ',' at 'b = 2}'"),
            ("{a = array<i32: 1>}", "expected 'i64' at 'i32: 1>}'"),
            ("{a = x}", "expected a number at 'x}'"),
            (
                "{a = 99999999999999999999}",
                "expected a number at '99999999999999999999}'",
            ),
            ("{a = \"b", "expected '\"' at the end"),
            ("{= 1}", "expected a word at '= 1}'"),
        ] {
            assert_eq!(parse(text), Err(why.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn junk_is_an_error_and_no_crash(text in "[{}a-z =:,<>\"0-9-]{0,40}") {
            let _ = parse(&text);
        }
    }
}
