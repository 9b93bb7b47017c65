//! What a picture says of its cells: their labels, their owners, the copies and gaps of a layout.

use super::{Colouring, Grid};
use crate::Axis;

impl Grid {
    /// Axes with coordinates that hold nothing, or below 0: `reg 0..6, 3 of 7 unused`.
    #[must_use]
    pub fn gaps_text(&self) -> Option<String> {
        let odd = self.extents.iter().filter(|e| e.holes > 0 || e.low < 0);
        let words: Vec<String> = odd
            .map(|e| {
                let mut words = format!("{} {}..{}", e.axis, e.low, e.high);
                if e.holes > 0 {
                    let span = e.high.saturating_sub(e.low).saturating_add(1);
                    words += &format!(", {} of {span} unused", e.holes);
                }
                if e.low < 0 {
                    words += ", below 0";
                }
                words
            })
            .collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// The names of what [`Grid::key`] lists.
    #[must_use]
    pub fn key_names(&self) -> Vec<String> {
        match self.colouring {
            Colouring::Bank { .. } => vec!["bank".into()],
            Colouring::Owner if self.owners == 0 => {
                vec![self.axes.first().map_or("m", |axis| axis.name()).into()]
            }
            Colouring::Owner => self
                .axes
                .iter()
                .take(self.owners)
                .map(ToString::to_string)
                .collect(),
        }
    }

    /// The innermost owner's coordinate alone, with those of its copies where they are few.
    #[must_use]
    pub fn short_label(&self, row: usize, col: usize) -> String {
        if self.is_hole(row, col) {
            return String::new();
        }
        let names = self.key_names();
        let key = self.key(row, col);
        let (Some(value), Some(name)) = (key.last(), names.last()) else {
            return String::new();
        };
        if matches!(self.colouring, Colouring::Bank { .. }) || self.owners == 0 {
            return self.label(row, col).0;
        }
        let at = key.len() - 1;
        let short = short(name, &names_of(&self.axes));
        let mut values: Vec<i64> = self
            .copies
            .iter()
            .filter_map(|copy| copy.get(at))
            .map(|moved| value + moved)
            .collect();
        values.sort_unstable();
        values.dedup();
        if self.owners == 1 && (2..=4).contains(&values.len()) {
            let words: Vec<String> = values.iter().map(|v| format!("{short}{v}")).collect();
            return words.join(" ");
        }
        format!("{short}{value}")
    }

    /// `2 copies: +0, +4@warp`; the list is left out where it is long.
    #[must_use]
    pub fn copies_text(&self) -> String {
        let count = self.copy_count;
        if count > 4 {
            return format!("{count} copies");
        }
        let words = |copy: &Vec<i64>| {
            let moved = copy.iter().zip(&self.axes).filter(|(v, _)| **v != 0);
            let words: Vec<String> = moved.map(|(v, axis)| format!("{v:+}@{axis}")).collect();
            if words.is_empty() {
                "+0".to_owned()
            } else {
                words.join(" ")
            }
        };
        let list: Vec<String> = self.copies.iter().map(words).collect();
        format!("{count} copies: {}", list.join(", "))
    }

    /// What is written into a cell: the owner's coordinates, then the place inside it.
    #[must_use]
    pub fn label(&self, row: usize, col: usize) -> (String, String) {
        if self.is_hole(row, col) {
            return (String::new(), String::new());
        }
        let key = self.key(row, col);
        let point = self.point(row, col);
        match self.colouring {
            Colouring::Bank { .. } => (
                key.iter().map(i64::to_string).collect(),
                self.memory(point).to_string(),
            ),
            Colouring::Owner if self.owners == 0 => (
                point
                    .iter()
                    .map(i64::to_string)
                    .collect::<Vec<_>>()
                    .join(","),
                String::new(),
            ),
            Colouring::Owner => {
                let places: Vec<String> = self
                    .axes
                    .iter()
                    .skip(self.owners)
                    .map(ToString::to_string)
                    .collect();
                let rest = point.get(self.owners..).unwrap_or(&[]);
                let owner = if self.owners == 1 {
                    self.short_label(row, col)
                } else {
                    self.words(&key, &self.key_names())
                };
                (owner, self.words(rest, &places))
            }
        }
    }

    /// `T3 r1`: coordinates on the axes of these names.
    fn words(&self, values: &[i64], names: &[String]) -> String {
        let axes = names_of(&self.axes);
        let word = |(v, n): (&i64, &String)| format!("{}{v}", short(n, &axes));
        let words: Vec<String> = values.iter().zip(names).map(word).collect();
        words.join(" ")
    }

    /// Row numbers; with more than two dimensions, the coordinates on all but the last.
    pub(crate) fn row_name(&self, row: usize) -> String {
        if let Some(number) = self.row_numbers.get(row) {
            return number.to_string();
        }
        if self.shape.len() <= 2 {
            return row.to_string();
        }
        let mut rest = i64::try_from(row).unwrap_or(0);
        let mut at = Vec::new();
        for n in self.shape.iter().rev().skip(1) {
            at.push((rest % n).to_string());
            rest /= n;
        }
        at.reverse();
        at.join(",")
    }
}

fn names_of(axes: &[Axis]) -> Vec<String> {
    axes.iter().map(ToString::to_string).collect()
}

/// The shortest prefix of a name that no other axis shares; lanes are `T`, as NVIDIA draws them.
#[must_use]
pub fn short(name: &str, all: &[String]) -> String {
    let others: Vec<&String> = all.iter().filter(|other| *other != name).collect();
    if name == "lane" && !others.iter().any(|other| other.starts_with('T')) {
        return "T".into();
    }
    for len in 1..=name.chars().count() {
        let prefix: String = name.chars().take(len).collect();
        if !others.iter().any(|other| other.starts_with(&prefix)) {
            return prefix;
        }
    }
    name.into()
}
