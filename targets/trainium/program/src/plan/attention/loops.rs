//! Items that repeat, each a fixed way further on, as loops.

use super::schedule::Item;

/// Items of a loop's body at most: those of a block of keys of both streams, or of two.
const MOST_ITEMS: usize = 24;

/// One item, or several of them in a loop with what they move by each time.
#[derive(Debug, PartialEq)]
pub(super) enum Node {
    One(Item),
    Loop(i64, Vec<(Item, [i64; 3])>),
}

/// The items in loops.
pub(super) fn loops(items: &[Item]) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut at = 0;
    while at < items.len() {
        let rest = &items[at..];
        let most = MOST_ITEMS.min(rest.len() / 2);
        // The longest stretch, of the shortest body.
        let best = (1..=most)
            .map(|period| (period * repeats(rest, period), std::cmp::Reverse(period)))
            .max();
        match best {
            Some((length, std::cmp::Reverse(period))) if length > period => {
                let body = (0..period).filter_map(|item| {
                    let (one, next) = (rest[item], rest[item + period]);
                    Some((one, moved(&one, &next)?))
                });
                nodes.push(Node::Loop((length / period) as i64, body.collect()));
                at += length;
            }
            _ => {
                nodes.push(Node::One(rest[0]));
                at += 1;
            }
        }
    }
    nodes
}

/// How many times the first items of some repeat.
fn repeats(items: &[Item], period: usize) -> usize {
    let mut moves = Vec::with_capacity(period);
    for item in 0..period {
        match moved(&items[item], &items[item + period]) {
            Some(by) => moves.push(by),
            None => return 1,
        }
    }
    let times = items
        .chunks_exact(period)
        .skip(1)
        .zip(items.chunks_exact(period));
    let alike = times.take_while(|(next, body)| {
        let mut pairs = body.iter().zip(next.iter()).zip(&moves);
        pairs.all(|((one, next), by)| moved(one, next) == Some(*by))
    });
    1 + alike.count()
}

/// How far on an item is that is like another.
fn moved(one: &Item, next: &Item) -> Option<[i64; 3]> {
    let alike = Item {
        at: one.at,
        ..*next
    } == *one;
    let by = [0, 1, 2].map(|dim| next.at[dim] - one.at[dim]);
    alike.then_some(by)
}

#[cfg(test)]
mod tests {
    use super::super::schedule::Work;
    use super::*;

    #[test]
    fn what_repeats_is_a_loop() {
        let item = |work, block| Item {
            work,
            queries: 512,
            visible: 512,
            at: [0, 0, block],
        };
        let largest = |tile| Work::Largest {
            tile,
            keys: 512,
            diagonal: false,
        };
        let mut items = vec![item(Work::Negate, 0)];
        for block in 0..5 {
            items.extend([item(largest(0), block), item(largest(1), 7 - block)]);
        }
        items.push(item(Work::Row, 0));
        let body = vec![
            (item(largest(0), 0), [0, 0, 1]),
            (item(largest(1), 7), [0, 0, -1]),
        ];
        let expected = vec![
            Node::One(item(Work::Negate, 0)),
            Node::Loop(5, body),
            Node::One(item(Work::Row, 0)),
        ];
        assert_eq!(loops(&items), expected);
    }
}
