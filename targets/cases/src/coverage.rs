//! Which operators were bound to which schedules, for which element types.

use std::collections::BTreeSet;

/// The decisions in an explanation of a module, each as `operator -> schedule : types`: the types are those of the operator's line
/// in the module, each once, in order.
#[must_use]
pub fn chosen(log: &str, module: &str) -> Vec<String> {
    let lines: Vec<_> = module.lines().collect();
    let decisions = log
        .lines()
        .filter_map(|line| line.trim().split_once("    loc"));
    decisions
        .map(|(decision, place)| {
            let line = line_of(place).and_then(|number| lines.get(number.checked_sub(1)?));
            match line
                .map(|line| elements(line))
                .filter(|types| !types.is_empty())
            {
                Some(types) => format!("{decision} : {}", types.join(", ")),
                None => decision.to_owned(),
            }
        })
        .collect()
}

/// The line of `("file":3:5)`.
fn line_of(place: &str) -> Option<usize> {
    let mut parts = place.trim_end_matches(')').rsplitn(3, ':');
    parts.nth(1)?.parse().ok()
}

/// The element types of the tensors and memory in a line.
fn elements(line: &str) -> Vec<&str> {
    const TYPES: [&str; 12] = [
        "f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2", "i1", "i8", "i16", "i32", "i64", "index",
    ];
    let mut found = Vec::new();
    for piece in line.split('x').skip(1) {
        let end = piece
            .find(|at: char| !at.is_ascii_alphanumeric())
            .unwrap_or(piece.len());
        let name = piece.get(..end).unwrap_or_default();
        if TYPES.contains(&name) && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// Lines of `required` that no decision meets: a line without types is met by any.
#[must_use]
pub fn missing<'a>(required: &'a str, used: &BTreeSet<&String>) -> Vec<&'a str> {
    let meets = |line: &str, used: &str| {
        used == line || used.split(" : ").next().is_some_and(|pair| pair == line)
    };
    required
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter(|line| !used.iter().any(|used| meets(line, used)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{chosen, missing};
    use std::collections::BTreeSet;

    #[test]
    fn decisions_have_the_types_of_their_lines() {
        let module = "axe.kernel @k() {\n  %a = axe.cast %x : tensor<8x4xf32, #l> -> tensor<8x4xf16, #l>\n  axe.barrier\n}";
        let log = "kernel @k\n  axe.cast -> cvt    loc(\"-\":2:8)\n    | one\n  axe.barrier -> bar.sync    loc(\"-\":3:3)";
        let used = chosen(log, module);
        assert_eq!(
            used,
            ["axe.cast -> cvt : f32, f16", "axe.barrier -> bar.sync"]
        );
        let used: BTreeSet<_> = used.iter().collect();
        let required = "# what there is\naxe.cast -> cvt\naxe.cast -> cvt : f32, f16\naxe.cast -> cvt : f32\naxe.copy -> ld";
        assert_eq!(
            missing(required, &used),
            ["axe.cast -> cvt : f32", "axe.copy -> ld"]
        );
    }
}
