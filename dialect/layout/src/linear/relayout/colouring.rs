//! Edge colouring of bipartite multigraphs: the rounds of a general relayout.

/// No edge.
const NONE: u32 = u32::MAX;

/// Colours `edges` between `left` and `right` vertices so that the edges of a vertex differ, with as
/// many colours as the largest degree (König's theorem): each edge takes a colour that is free on both
/// sides; if there is none, one that is free on its left, after the alternating path that begins with it
/// on the right is flipped.
pub(in crate::linear) fn colour(edges: &[(usize, usize)], left: usize, right: usize) -> Vec<usize> {
    let mut degree = vec![0_usize; left + right];
    for &(l, r) in edges {
        degree[l] += 1;
        degree[left + r] += 1;
    }
    let colours = degree.iter().copied().max().unwrap_or(0);
    let mut state = Colouring {
        edges,
        left,
        colours,
        words: colours.div_ceil(64),
        edge_at: vec![NONE; (left + right) * colours],
        free: vec![0; (left + right) * colours.div_ceil(64)],
        colour_of: vec![0; edges.len()],
        path: Vec::new(),
    };
    for vertex in 0..left + right {
        for colour in 0..colours {
            state.set(vertex, colour, NONE);
        }
    }
    for (edge, &(l, r)) in edges.iter().enumerate() {
        let (a, b) = (l, left + r);
        let colour = state.free_colour(a, Some(b)).unwrap_or_else(|| {
            let (on_a, on_b) = (state.free_colour(a, None), state.free_colour(b, None));
            // Both vertices have fewer edges so far than there are colours.
            let (on_a, on_b) = (on_a.unwrap_or(0), on_b.unwrap_or(0));
            state.flip(b, on_a, on_b);
            on_a
        });
        state.give(edge, colour);
    }
    state.colour_of
}

struct Colouring<'a> {
    edges: &'a [(usize, usize)],
    left: usize,
    colours: usize,
    /// Words of 64 colours a vertex.
    words: usize,
    /// The edge of each colour, a vertex after the other.
    edge_at: Vec<u32>,
    /// A bit for each colour that no edge of the vertex has.
    free: Vec<u64>,
    colour_of: Vec<usize>,
    path: Vec<usize>,
}

impl Colouring<'_> {
    fn set(&mut self, vertex: usize, colour: usize, edge: u32) {
        self.edge_at[vertex * self.colours + colour] = edge;
        let word = &mut self.free[vertex * self.words + colour / 64];
        let bit = 1 << (colour % 64);
        *word = if edge == NONE {
            *word | bit
        } else {
            *word & !bit
        };
    }

    /// The first colour that is free on a vertex, and on another one if that is given.
    fn free_colour(&self, a: usize, b: Option<usize>) -> Option<usize> {
        let of = |vertex: usize| &self.free[vertex * self.words..(vertex + 1) * self.words];
        let other = of(b.unwrap_or(a));
        let both = of(a).iter().zip(other).map(|(x, y)| x & y).enumerate();
        let mut some = both.filter(|(_, word)| *word != 0);
        some.next()
            .map(|(at, word)| at * 64 + word.trailing_zeros() as usize)
    }

    fn give(&mut self, edge: usize, colour: usize) {
        let (l, r) = self.edges[edge];
        self.colour_of[edge] = colour;
        // Fewer edges than the entries of a table, which are a million at most.
        self.set(l, colour, edge as u32);
        self.set(self.left + r, colour, edge as u32);
    }

    /// Exchanges the colours `taken` and `wanted` along the path that leaves `start` by `taken`. It never
    /// ends in the other vertex of the new edge, whose colour `taken` is free, as the graph is bipartite.
    fn flip(&mut self, start: usize, taken: usize, wanted: usize) {
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        let (mut vertex, mut colour) = (start, taken);
        loop {
            let edge = self.edge_at[vertex * self.colours + colour];
            if edge == NONE {
                break;
            }
            path.push(edge as usize);
            let (l, r) = self.edges[edge as usize];
            vertex = if vertex == l { self.left + r } else { l };
            colour = if colour == taken { wanted } else { taken };
        }
        for &edge in &path {
            let (l, r) = self.edges[edge];
            let old = self.colour_of[edge];
            self.set(l, old, NONE);
            self.set(self.left + r, old, NONE);
        }
        for &edge in &path {
            let old = self.colour_of[edge];
            self.give(edge, if old == taken { wanted } else { taken });
        }
        self.path = path;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn colours_are_proper_and_few(
            edges in prop::collection::vec((0_usize..6, 0_usize..6), 0..60),
        ) {
            let colours = colour(&edges, 6, 6);
            let degree = |v: usize, right: bool| {
                edges.iter().filter(|e| (if right { e.1 } else { e.0 }) == v).count()
            };
            let largest = (0..6).flat_map(|v| [degree(v, false), degree(v, true)]).max().unwrap();
            for (i, a) in edges.iter().enumerate() {
                prop_assert!(colours[i] < largest);
                for (j, b) in edges.iter().enumerate().take(i) {
                    if a.0 == b.0 || a.1 == b.1 {
                        prop_assert_ne!(colours[i], colours[j]);
                    }
                }
            }
        }
    }
}
