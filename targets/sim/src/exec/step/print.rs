//! `printf`'s formats.

use crate::fault::Fault;

/// What a conversion takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Argument {
    /// A number of so many bytes.
    Number(u64),
    /// The address of a string.
    Text,
}

/// Width or precision that is still accepted: a kernel's text is not trusted with memory.
const WIDEST: usize = 4096;

#[derive(Debug, Clone, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    long: bool,
    short: u32,
}

impl Spec {
    /// Pads a number's digits behind its sign or prefix, or any text.
    fn pad(&self, sign: &str, body: &str, number: bool) -> String {
        let fill = self.width.saturating_sub(sign.len() + body.len());
        if self.left {
            format!("{sign}{body}{:fill$}", "")
        } else if self.zero && number {
            format!("{sign}{}{body}", "0".repeat(fill))
        } else {
            format!("{:fill$}{sign}{body}", "")
        }
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (.., true) => " ",
            _ => "",
        }
    }

    fn digits(&self, digits: String) -> String {
        let missing = self.precision.unwrap_or(1).saturating_sub(digits.len());
        "0".repeat(missing) + &digits
    }

    fn signed(&self, value: u64) -> String {
        let value = match (self.long, self.short) {
            (true, _) => value as i64,
            (_, 0) => i64::from(value as i32),
            (_, 1) => i64::from(value as i16),
            _ => i64::from(value as i8),
        };
        let digits = self.digits(value.unsigned_abs().to_string());
        self.pad(self.sign(value < 0), &digits, self.precision.is_none())
    }

    fn unsigned(&self, kind: char, value: u64) -> String {
        let value = match (self.long, self.short) {
            (true, _) => value,
            (_, 0) => value & 0xffff_ffff,
            (_, 1) => value & 0xffff,
            _ => value & 0xff,
        };
        let (prefix, digits) = match kind {
            'x' => ("0x", format!("{value:x}")),
            'X' => ("0X", format!("{value:X}")),
            'o' => ("0", format!("{value:o}")),
            _ => ("", value.to_string()),
        };
        let prefix = if self.alternate && value != 0 {
            prefix
        } else {
            ""
        };
        self.pad(prefix, &self.digits(digits), self.precision.is_none())
    }

    fn float(&self, kind: char, value: f64) -> String {
        let magnitude = value.abs();
        let sign = self.sign(value.is_sign_negative() && !value.is_nan());
        let precision = self.precision.unwrap_or(6);
        let body = match kind.to_ascii_lowercase() {
            _ if magnitude.is_nan() => "nan".into(),
            _ if magnitude.is_infinite() => "inf".into(),
            'f' => format!("{magnitude:.precision$}"),
            'e' => exponential(magnitude, precision),
            _ => general(magnitude, precision.max(1), self.alternate),
        };
        let body = if kind.is_ascii_uppercase() {
            body.to_uppercase()
        } else {
            body
        };
        self.pad(sign, &body, magnitude.is_finite())
    }
}

/// C writes at least two digits of the exponent, and its sign.
fn exponential(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// `%g`: the shorter of the two others (C17 7.21.6.1).
fn general(value: f64, precision: usize, keep_zeros: bool) -> String {
    let scientific = exponential(value, precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
    let power: i32 = exponent.parse().unwrap_or(0);
    let strip = |text: &str| {
        if keep_zeros || !text.contains('.') {
            return text.to_string();
        }
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    };
    if power < -4 || power >= precision as i32 {
        return format!("{}e{exponent}", strip(mantissa));
    }
    let digits = (precision as i32 - 1 - power).max(0) as usize;
    strip(&format!("{value:.digits$}"))
}

type Next<'a> = &'a mut dyn FnMut(Argument) -> Result<(u64, String), Fault>;

/// Formats as C's `printf`; `next` gives the arguments: a number, or a string with its address.
pub(super) fn format(
    pattern: &str,
    mut next: impl FnMut(Argument) -> Result<(u64, String), Fault>,
) -> Result<String, Fault> {
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c == '%' {
            out.push_str(&conversion(&mut chars, &mut next)?);
        } else {
            out.push(c);
        }
    }
    Ok(out)
}

/// What follows a `%`: flags, width, precision, length, and the conversion.
fn conversion(chars: &mut std::str::Chars<'_>, next: Next<'_>) -> Result<String, Fault> {
    let mut spec = Spec::default();
    let mut precise = false;
    for c in chars.by_ref() {
        match c {
            '-' => spec.left = true,
            '+' => spec.plus = true,
            ' ' => spec.space = true,
            '#' => spec.alternate = true,
            '0' if !precise && spec.width == 0 => spec.zero = true,
            '0'..='9' => {
                let field = if precise {
                    spec.precision.get_or_insert(0)
                } else {
                    &mut spec.width
                };
                *field = (*field * 10 + c as usize - '0' as usize).min(WIDEST);
            }
            '*' => {
                let value = next(Argument::Number(4))?.0 as i32;
                if precise {
                    spec.precision = usize::try_from(value).ok().map(|p| p.min(WIDEST));
                } else {
                    spec.left |= value < 0;
                    spec.width = (value.unsigned_abs() as usize).min(WIDEST);
                }
            }
            '.' => {
                precise = true;
                spec.precision = Some(0);
            }
            'l' | 'j' | 'z' | 't' => spec.long = true,
            'h' => spec.short += 1,
            kind => return convert(&spec, kind, next),
        }
    }
    Ok("%".into())
}

fn convert(spec: &Spec, kind: char, next: Next<'_>) -> Result<String, Fault> {
    let bytes = if spec.long { 8 } else { 4 };
    Ok(match kind {
        '%' => "%".into(),
        'd' | 'i' => spec.signed(next(Argument::Number(bytes))?.0),
        'u' | 'x' | 'X' | 'o' => spec.unsigned(kind, next(Argument::Number(bytes))?.0),
        'c' => {
            let c = char::from(next(Argument::Number(4))?.0 as u8);
            spec.pad("", &c.to_string(), false)
        }
        'p' => spec.pad("0x", &format!("{:x}", next(Argument::Number(8))?.0), false),
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
            spec.float(kind, f64::from_bits(next(Argument::Number(8))?.0))
        }
        's' => {
            let text = next(Argument::Text)?.1;
            let length = spec.precision.unwrap_or(usize::MAX);
            let cut: String = text.chars().take(length).collect();
            spec.pad("", &cut, false)
        }
        other => format!("%{other}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pattern: &str, values: &[u64]) -> String {
        let mut values = values.iter();
        let next = |_| Ok((values.next().copied().unwrap_or(0), "text".to_string()));
        format(pattern, next).unwrap()
    }

    /// What glibc prints.
    #[test]
    fn formats_are_those_of_c() {
        let minus = u64::from((-42i32) as u32);
        let six = [minus, minus, minus, minus, 7, 7];
        assert_eq!(
            of("%d|%5d|%-5d|%05d|%+d|%.4d", &six),
            "-42|  -42|-42  |-0042|+7|0007"
        );
        assert_eq!(
            of(
                "%u %x %#X %o %lld %hhu",
                &[minus, 255, 255, 8, u64::MAX, 511]
            ),
            "4294967254 ff 0XFF 10 -1 255"
        );
        let f = |v: f64| v.to_bits();
        assert_eq!(
            of(
                "%f %.2f|%8.3f|%-8.1f|%08.2f",
                &[f(1.5), f(2.375), f(-1.0), f(9.96), f(-3.25)]
            ),
            "1.500000 2.38|  -1.000|10.0    |-0003.25"
        );
        assert_eq!(
            of(
                "%e %.1E %g %g %g %G",
                &[f(12345.678), f(0.00012), f(1e5), f(1e6), f(1e-4), f(1e-5)]
            ),
            "1.234568e+04 1.2E-04 100000 1e+06 0.0001 1E-05"
        );
        assert_eq!(of("%s|%6s|%.2s|%c%%", &[0, 0, 0, 65]), "text|  text|te|A%");
        assert_eq!(of("%f %F", &[f(f64::INFINITY), f(f64::NAN)]), "inf NAN");
        assert_eq!(of("100%", &[]), "100%");
    }
}
