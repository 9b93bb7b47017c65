//! Which operators were bound to which schedules, for which element types, and which knobs their plans had.

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

/// The knobs of the plans that were chosen, in an explanation of a module, each as `plan knob = value : type`, the type being that of
/// the product's operands; tiles are left out, which are as many as there are products.
#[must_use]
pub fn knobs(log: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut element = "";
    for line in log.lines() {
        if line.starts_with("plan ") {
            element = line.rsplit_once(" of ").map_or("", |(_, element)| element);
        }
        let plan = line
            .split_once(" clocks predicted")
            .and_then(|(_, plan)| plan.trim().strip_prefix('{')?.strip_suffix('}'));
        for (key, value) in entries(plan.unwrap_or_default()) {
            if key != "tile" {
                found.push(format!("plan {key} = {value} : {element}"));
            }
        }
    }
    found
}

/// The entries of a dictionary of numbers, texts and arrays of numbers, their values without types and quotes.
fn entries(plan: &str) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for piece in plan.split(", ") {
        match (piece.split_once(" = "), found.last_mut()) {
            (Some((key, value)), _) => {
                let value = value.split(" : i64").next().unwrap_or(value);
                found.push((key, value.replace("array<i64: ", "")));
            }
            (None, Some((_, value))) => *value += &format!(" {piece}"),
            (None, None) => {}
        }
    }
    for (_, value) in &mut found {
        value.retain(|at| at != '"' && at != '>');
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
    use super::{chosen, knobs, missing};
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

    #[test]
    fn a_plan_that_was_chosen_shows_its_knobs_and_no_other_does() {
        let log = "plan @main_0_gemm: 13 x 192 x 304 of i8\n  from: axe.plan\n        \
                   6601 clocks predicted  {mainloop = \"wgmma\", tile = array<i64: 128, 32, 128>, stages = 3 : i64, cluster = array<i64: 1, 2>, swap_ab = true}\n        \
                   2133 clocks instead     {mainloop = \"mma\", stages = 5 : i64}";
        let used = knobs(log);
        assert_eq!(
            used,
            [
                "plan mainloop = wgmma : i8",
                "plan stages = 3 : i8",
                "plan cluster = 1 2 : i8",
                "plan swap_ab = true : i8"
            ]
        );
        let used: BTreeSet<_> = used.iter().collect();
        let required = "plan cluster = 1 2\nplan cluster = 2 1\nplan stages = 3 : f16";
        assert_eq!(
            missing(required, &used),
            ["plan cluster = 2 1", "plan stages = 3 : f16"]
        );
    }
}
