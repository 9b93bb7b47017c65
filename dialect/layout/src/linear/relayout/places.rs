//! Where the elements of a table are, by dense numbers.

use super::table::Table;

/// Elements above this many times the registers are numbered by search.
const SPARSE: u64 = 8;

/// The elements of a table, numbered, and the lanes that hold each with the register in each.
pub(super) struct Places {
    /// The elements in ascending order, unless the element is its own number.
    sorted: Option<Vec<u64>>,
    /// Where the places of each number begin, and the end of the last.
    starts: Vec<usize>,
    places: Vec<(usize, usize)>,
}

impl Places {
    pub(super) fn new(src: &Table) -> Self {
        let entries: u64 = src.iter().map(|regs| regs.len() as u64).sum();
        let largest = src.iter().flatten().flatten().copied().max();
        let sorted = largest.filter(|&l| l > entries * SPARSE).map(|_| {
            let mut all: Vec<u64> = src.iter().flatten().flatten().copied().collect();
            all.sort_unstable();
            all.dedup();
            all
        });
        let count = match (&sorted, largest) {
            (Some(sorted), _) => sorted.len(),
            (None, Some(largest)) => largest as usize + 1,
            (None, None) => 0,
        };
        let mut table = Self {
            sorted,
            starts: vec![0; count + 1],
            places: Vec::new(),
        };
        table.fill(src);
        table
    }

    /// Counts the places of each element, then puts them side by side: one a lane, in the order of lanes.
    fn fill(&mut self, src: &Table) {
        let mut held: Vec<(usize, usize, usize)> = Vec::new();
        // The lane that each number was last seen in.
        let mut seen = vec![usize::MAX; self.count()];
        for (lane, regs) in src.iter().enumerate() {
            for (register, element) in regs.iter().enumerate() {
                let Some(number) = element.and_then(|e| self.index(e)) else {
                    continue;
                };
                if seen[number] != lane {
                    seen[number] = lane;
                    self.starts[number + 1] += 1;
                    held.push((number, lane, register));
                }
            }
        }
        for number in 1..self.starts.len() {
            self.starts[number] += self.starts[number - 1];
        }
        let mut next = self.starts.clone();
        self.places = vec![(0, 0); held.len()];
        for (number, lane, register) in held {
            self.places[next[number]] = (lane, register);
            next[number] += 1;
        }
    }

    /// How many numbers there are.
    pub(super) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of an element that the table holds.
    pub(super) fn number(&self, element: u64) -> Option<usize> {
        self.index(element).filter(|&n| !self.of(n).is_empty())
    }

    /// The number that an element would have.
    fn index(&self, element: u64) -> Option<usize> {
        match &self.sorted {
            Some(sorted) => sorted.binary_search(&element).ok(),
            None => usize::try_from(element).ok().filter(|&n| n < self.count()),
        }
    }

    /// The lanes that hold an element, ascending, and its first register in each.
    pub(super) fn of(&self, number: usize) -> &[(usize, usize)] {
        let ends = self.starts.get(number).zip(self.starts.get(number + 1));
        ends.and_then(|(&begin, &end)| self.places.get(begin..end))
            .unwrap_or_default()
    }
}

/// A small number beside each element, cleared at no cost.
pub(super) struct Marks {
    round: usize,
    marks: Vec<(usize, usize)>,
}

impl Marks {
    pub(super) fn new(count: usize) -> Self {
        Self {
            round: 1,
            marks: vec![(0, 0); count],
        }
    }

    pub(super) fn clear(&mut self) {
        self.round += 1;
    }

    pub(super) fn set(&mut self, number: usize, mark: usize) {
        if let Some(slot) = self.marks.get_mut(number) {
            *slot = (self.round, mark);
        }
    }

    pub(super) fn get(&self, number: usize) -> Option<usize> {
        let &(round, mark) = self.marks.get(number)?;
        (round == self.round).then_some(mark)
    }
}
