//! Where buffers are: bytes of SBUF and banks of PSUM, shared by buffers whose lifetimes are apart.
//!
//! A buffer lives from where it is made to its last use; a use in a loop that it is made outside of reaches to the end of
//! that loop. Copies that take turns live as long as the loop around them, while that fits, else in an iteration alone:
//! semaphores keep what shares bytes in order, and loads overlap less. Buffers share memory only where they must: each has
//! bytes of its own while those suffice.

use crate::facts::chip::Chip;
use crate::facts::memory::PSUM_BYTES;
use crate::program::{Place, Program, Role, Space, Statement};
use crate::rules::buffer::copy_bytes;
use std::fmt;

/// Alignment of a buffer in SBUF, in bytes: that of the widest vector access (A2, DVE fast modes work on aligned words).
const SBUF_ALIGNMENT: i64 = 32;

/// Memory that does not hold what a program needs at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoesNotFit {
    /// Which memory.
    pub space: Space,
    /// Bytes a partition that there are.
    pub room: i64,
    /// The buffer that found no place.
    pub buffer: String,
    /// What lives at the same time, the largest first: names and bytes a partition.
    pub holders: Vec<(String, i64)>,
}

impl fmt::Display for DoesNotFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: i64 = self.holders.iter().map(|(_, bytes)| bytes).sum();
        write!(
            f,
            "'{}' does not fit {}: {} bytes a partition, {all} are needed at once:",
            self.buffer, self.space, self.room
        )?;
        for (name, bytes) in self.holders.iter().take(5) {
            write!(f, " '{name}' {bytes},")?;
        }
        match self.holders.len().saturating_sub(5) {
            0 => write!(f, " all told"),
            more => write!(f, " and {more} more"),
        }
    }
}

impl std::error::Error for DoesNotFit {}

/// One buffer to place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its name, for messages.
    pub name: String,
    /// Bytes a partition, all copies together.
    pub bytes: i64,
    /// The first and the last statement that it lives at.
    pub live: (usize, usize),
    /// Its first byte, where that is given.
    pub fixed: Option<i64>,
}

impl Request {
    fn meets(&self, other: &Self) -> bool {
        self.live.0 <= other.live.1 && other.live.0 <= self.live.1
    }
}

/// Places every local buffer of a well-formed program.
///
/// # Errors
/// The buffer that finds no place, with the largest of those that live at the same time.
pub fn place(program: &Program, chip: &Chip) -> Result<Vec<Option<Place>>, DoesNotFit> {
    let lifetimes = [lifetimes(program, true), lifetimes(program, false)];
    let mut places: Vec<Option<Place>> =
        program.buffers.iter().map(|buffer| buffer.place).collect();
    for (space, room, unit) in [
        (Space::Sbuf, chip.sbuf_bytes, SBUF_ALIGNMENT),
        (Space::Psum, PSUM_BYTES, crate::facts::memory::BANK_BYTES),
    ] {
        let members: Vec<usize> = program
            .with_role(Role::Local)
            .filter(|(_, buffer)| buffer.space == space)
            .map(|(index, _)| index)
            .collect();
        let requests = |lifetimes: &[(usize, usize)]| -> Vec<Request> {
            let request = |index: &usize| {
                let buffer = &program.buffers[*index];
                Request {
                    name: buffer.name.clone(),
                    bytes: copy_bytes(buffer).saturating_mul(buffer.copies),
                    live: lifetimes[*index],
                    fixed: buffer.place.map(|place| place.byte),
                }
            };
            members.iter().map(request).collect()
        };
        let [long, requests] = [&lifetimes[0], &lifetimes[1]].map(|live| requests(live));
        let found = assign(&long, room, unit).or_else(|_| assign(&requests, room, unit));
        let bytes = found.map_err(|unplaced| DoesNotFit {
            space,
            room,
            buffer: requests[unplaced].name.clone(),
            holders: holders(&requests, unplaced),
        })?;
        for (index, byte) in members.iter().zip(bytes) {
            let partition = places[*index].map_or(0, |place| place.partition);
            places[*index] = Some(Place { partition, byte });
        }
    }
    Ok(places)
}

/// What lives together with one request, the largest first.
fn holders(requests: &[Request], unplaced: usize) -> Vec<(String, i64)> {
    let mut holders: Vec<_> = requests
        .iter()
        .filter(|request| request.meets(&requests[unplaced]))
        .map(|request| (request.name.clone(), request.bytes))
        .collect();
    holders.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    holders
}

/// The first byte of each request, a multiple of `unit`, so that requests that live together do not meet. First one after
/// the other; if that is too much, the largest first, each at the lowest place that is free while it lives.
///
/// # Errors
/// The number of a request that finds no place.
pub fn assign(requests: &[Request], room: i64, unit: i64) -> Result<Vec<i64>, usize> {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    if let Ok(places) = first_fit(requests, &order, room, unit, false) {
        return Ok(places);
    }
    order.sort_by_key(|index| std::cmp::Reverse(requests[*index].bytes));
    first_fit(requests, &order, room, unit, true)
}

fn first_fit(
    requests: &[Request],
    order: &[usize],
    room: i64,
    unit: i64,
    share: bool,
) -> Result<Vec<i64>, usize> {
    let mut places: Vec<Option<i64>> = requests.iter().map(|request| request.fixed).collect();
    for &index in order {
        if places[index].is_some() {
            continue;
        }
        let request = &requests[index];
        let mut taken: Vec<(i64, i64)> = requests
            .iter()
            .zip(&places)
            .filter(|(other, _)| !share || other.meets(request))
            .filter_map(|(other, place)| place.map(|begin| (begin, begin + other.bytes)))
            .collect();
        taken.sort_unstable();
        let mut at = 0i64;
        for (begin, end) in taken {
            if at + request.bytes <= begin {
                break;
            }
            at = at.max(end + (unit - end.rem_euclid(unit)) % unit);
        }
        if at + request.bytes > room {
            return Err(index);
        }
        places[index] = Some(at);
    }
    Ok(places.into_iter().map(Option::unwrap_or_default).collect())
}

/// The first and last statement at which each buffer lives, statements being counted in order, loops twice. `turns` is
/// whether copies that take turns live as long as the loop around them.
fn lifetimes(program: &Program, turns: bool) -> Vec<(usize, usize)> {
    let mut walk = Lifetimes {
        program,
        position: 0,
        made: vec![None; program.buffers.len()],
        live: vec![(0, 0); program.buffers.len()],
        loops: Vec::new(),
        rotating: Vec::new(),
    };
    walk.body(&program.body);
    for (buffer, span) in walk.rotating.into_iter().filter(|_| turns) {
        walk.live[buffer] = span;
    }
    walk.live
}

struct Lifetimes<'a> {
    program: &'a Program,
    position: usize,
    /// The depth of loops at which a buffer was made.
    made: Vec<Option<usize>>,
    live: Vec<(usize, usize)>,
    /// For each open loop: where it began, the buffers from outside that are used in it, and the copies made in it.
    loops: Vec<(usize, Vec<usize>, Vec<usize>)>,
    rotating: Vec<(usize, (usize, usize))>,
}

impl Lifetimes<'_> {
    fn body(&mut self, body: &[Statement]) {
        for statement in body {
            self.position += 1;
            match statement {
                Statement::Comment(_) => {}
                Statement::Alloc(buffer) => self.make(*buffer),
                Statement::Instruction(instruction) => {
                    for operand in instruction.op.operands() {
                        self.use_of(operand.view.buffer);
                    }
                }
                Statement::Loop(inner) => {
                    self.loops.push((self.position, Vec::new(), Vec::new()));
                    self.body(&inner.body);
                    self.position += 1;
                    let (begin, used, copies) = self.loops.pop().unwrap_or_default();
                    for buffer in used {
                        self.live[buffer].1 = self.position;
                    }
                    let span = (begin, self.position);
                    self.rotating
                        .extend(copies.into_iter().map(|buffer| (buffer, span)));
                }
            }
        }
    }

    fn make(&mut self, buffer: usize) {
        self.made[buffer] = Some(self.loops.len());
        self.live[buffer] = (self.position, self.position);
        if let Some((_, _, copies)) = self.loops.last_mut()
            && self.program.buffers[buffer].copies > 1
        {
            copies.push(buffer);
        }
    }

    fn use_of(&mut self, buffer: usize) {
        let Some(depth) = self.made[buffer] else {
            return;
        };
        self.live[buffer].1 = self.position;
        // The loops that the buffer was made outside of keep it to their ends.
        if let Some((_, used, _)) = self.loops.get_mut(depth)
            && !used.contains(&buffer)
        {
            used.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::TRN1;
    use crate::program::{Builder, Function};
    use axe_package::DType;
    use proptest::prelude::*;

    fn request(bytes: i64, live: (usize, usize), fixed: Option<i64>) -> Request {
        Request {
            name: format!("{bytes}"),
            bytes,
            live,
            fixed,
        }
    }

    #[test]
    fn shares_only_where_it_must() {
        let apart = [request(64, (0, 1), None), request(64, (2, 3), None)];
        assert_eq!(assign(&apart, 128, 32), Ok(vec![0, 64]));
        assert_eq!(assign(&apart, 64, 32), Ok(vec![0, 0]));
        let together = [request(64, (0, 2), None), request(64, (2, 3), None)];
        assert_eq!(assign(&together, 127, 32), Err(1));
    }

    #[test]
    fn says_who_holds_the_memory() {
        let mut b = Builder::new("k", "trn1");
        let tile = |b: &mut Builder, name, elements| {
            b.tile(name, Space::Sbuf, &[128, elements], DType::BF16, 2)
        };
        let small = tile(&mut b, "small", 1 << 10);
        let large = tile(&mut b, "large", 40 << 10);
        let last = tile(&mut b, "last", 8 << 10);
        for tile in [&small, &large, &last] {
            b.memset(tile.all(), 0.0);
        }
        let message = place(&b.finish(), &TRN1).unwrap_err().to_string();
        assert_eq!(
            message,
            "'last' does not fit sbuf: 180224 bytes a partition, 200704 are needed at once: 'large' 163840, \
             'last' 32768, 'small' 4096, all told"
        );
    }

    #[test]
    fn a_buffer_lives_through_the_loop_that_uses_it() {
        let mut b = Builder::new("k", "trn1");
        let outer = b.tile("outer", Space::Psum, &[128, 512], DType::F32, 1);
        b.repeat("i", 0, 2, 1, |b, _| {
            let inner = b.tile("inner", Space::Psum, &[128, 512], DType::F32, 6);
            b.activation(inner.all(), outer.all(), Function::Exp, None, 1.0, None);
            let last = b.tile("last", Space::Psum, &[128, 512], DType::F32, 1);
            b.copy(last.all(), inner.all());
        });
        let places = place(&b.finish(), &TRN1).unwrap();
        let bytes: Vec<_> = places.iter().map(|p| p.unwrap().byte).collect();
        assert_eq!(bytes, [0, 2048, 14336]);
    }

    proptest! {
        /// What lives together never meets, in memory either.
        #[test]
        fn places_do_not_meet(spans in prop::collection::vec((1i64..40, 0usize..12, 0usize..6), 1..16), room in 20i64..200) {
            let requests: Vec<_> = spans.iter().map(|(bytes, begin, length)| request(*bytes, (*begin, begin + length), None)).collect();
            if let Ok(places) = assign(&requests, room, 4) {
                for (i, a) in requests.iter().enumerate() {
                    prop_assert!(places[i] % 4 == 0 && places[i] >= 0 && places[i] + a.bytes <= room);
                    for (j, b) in requests.iter().enumerate().skip(i + 1) {
                        let apart = places[i] + a.bytes <= places[j] || places[j] + b.bytes <= places[i];
                        prop_assert!(apart || !a.meets(b), "{a:?} at {} and {b:?} at {}", places[i], places[j]);
                    }
                }
            }
        }
    }
}
