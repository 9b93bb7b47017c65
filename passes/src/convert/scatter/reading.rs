//! What the columns of a scatter's indices say of its dimensions.

use super::coordinates::{Coordinate, alone, coordinate, numbers};
use super::given::Given;
use super::radix::{Digit, Radix};
use super::{Data, Dim, Scatter, boxed};
use crate::convert::unsupported;
use crate::error::PassResult;
use crate::fuse::reshape::reshape;
use crate::ir::{Builder, DYNAMIC, Val};

impl<'c> Scatter<'c> {
    /// Reads the columns of indices.
    ///
    /// # Errors
    /// For more than 2^31 updates, and when building fails.
    pub(super) fn of(builder: &Builder<'c>, given: &Given<'c>) -> PassResult<'c, Self> {
        let op = given.op;
        let count = builder.tensor_of(given.indices)?.shape;
        let count = count.first().copied().unwrap_or(DYNAMIC);
        if count > i64::from(i32::MAX) {
            return Err(unsupported(op, "expected fewer than 2^31 updates"));
        }
        let mut columns = (0i64..)
            .take(given.mapped.len())
            .map(|at| coordinate(builder, given.indices, at))
            .collect::<PassResult<'c, Vec<_>>>()?;
        let radix = Radix::of(
            count,
            columns.iter().flat_map(|column| match column {
                Coordinate::Fixed(_) => Vec::new(),
                Coordinate::Digit(digit) => vec![*digit],
                Coordinate::Data(_, digits) => digits.clone(),
            }),
        );
        let whole = Radix::of(count, []).ok_or_else(|| unsupported(op, "expected updates"))?;
        if radix.is_none() {
            for (at, column) in (0i64..).zip(&mut columns) {
                let whole = vec![Digit::whole(count)];
                *column = Coordinate::Data(numbers(builder, given.indices, at)?, whole);
            }
        }
        let radix = radix.unwrap_or(whole);
        let mut read = Reading {
            builder,
            given,
            radix: &radix,
            shape: builder.tensor_of(given.original)?.shape,
            roles: Vec::new(),
            data: Vec::new(),
        };
        for (column, role) in columns.into_iter().enumerate() {
            read.column(column, role)?;
        }
        read.find_all()?;
        read.scatter()
    }
}

/// Columns of indices as they are read.
struct Reading<'a, 'c> {
    builder: &'a Builder<'c>,
    given: &'a Given<'c>,
    radix: &'a Radix,
    /// The tensor's extents.
    shape: Vec<i64>,
    /// Of each column, what its dimension says, and the part of the dimension.
    roles: Vec<(Dim, [i64; 2])>,
    data: Vec<Data<'c>>,
}

impl<'c> Reading<'_, 'c> {
    fn extent(&self, column: usize) -> i64 {
        let dim = self.given.mapped.get(column);
        dim.and_then(|dim| self.shape.get(*dim))
            .copied()
            .unwrap_or(1)
    }

    fn column(&mut self, column: usize, role: Coordinate<'c>) -> PassResult<'c> {
        let extent = self.extent(column);
        // A part of a tensor is one of static extents.
        let takes = |own: i64| own == extent || !self.shape.contains(&DYNAMIC);
        match role {
            Coordinate::Fixed(own) if (0..extent).contains(&own) && takes(1) => {
                self.roles.push((Dim::One, [own, 1]));
                Ok(())
            }
            Coordinate::Fixed(_) => self.as_data(column),
            Coordinate::Digit(digit) => {
                let fits = (1..=extent).contains(&digit.extent) && takes(digit.extent);
                let parts = self.radix.parts(digit).filter(|_| fits);
                let dim = match parts.map(|parts| parts.collect::<Vec<_>>()).as_deref() {
                    Some([]) => Dim::One,
                    Some(&[own]) => Dim::Digit(own),
                    _ => return self.as_data(column),
                };
                if dim != Dim::One && self.roles.iter().any(|role| role.0 == dim) {
                    return self.as_data(column);
                }
                self.roles.push((dim, [0, digit.extent]));
                Ok(())
            }
            Coordinate::Data(tensor, digits) => {
                let parts = digits.into_iter().map(|digit| self.radix.parts(digit));
                let parts: Option<Vec<_>> = parts.collect();
                let all: Option<Vec<_>> = parts.map(|all| all.into_iter().flatten().collect());
                let is_once = |all: &Vec<usize>| {
                    let mut once = all.clone();
                    once.sort_unstable();
                    once.dedup();
                    once.len() == all.len()
                };
                match all.filter(is_once) {
                    Some(all) => self.data(column, tensor, all),
                    None => self.as_data(column),
                }
            }
        }
    }

    /// A column as data, whatever it is.
    fn as_data(&mut self, column: usize) -> PassResult<'c> {
        let at = i64::try_from(column).unwrap_or(i64::MAX);
        let tensor = numbers(self.builder, self.given.indices, at)?;
        let all = (0..self.radix.extents().len()).collect();
        self.data(column, tensor, all)
    }

    fn data(&mut self, column: usize, tensor: Val<'c>, digits: Vec<usize>) -> PassResult<'c> {
        let extents = self.radix.extents();
        let shape: Vec<_> = digits
            .iter()
            .filter_map(|own| extents.get(*own).copied())
            .collect();
        let dynamic = shape.contains(&DYNAMIC);
        let leading = dynamic
            .then(|| self.builder.extent(self.given.indices, 0))
            .transpose()?;
        let dim = self.given.mapped.get(column).copied().unwrap_or(0);
        self.roles.push((Dim::Data, [0, self.extent(column)]));
        self.data.push(Data {
            tensor: reshape(self.builder, tensor, &shape, leading)?,
            digits,
            dim,
        });
        Ok(())
    }

    /// Has indices of data for each digit that no dimension says.
    fn find_all(&mut self) -> PassResult<'c> {
        let said = |own: &usize| self.roles.iter().any(|role| role.0 == Dim::Digit(*own));
        let read = |own: &usize| self.data.iter().any(|data| data.digits.contains(own));
        if (0..self.radix.extents().len()).all(|own| said(&own) || read(&own)) {
            return Ok(());
        }
        let roles = std::mem::take(&mut self.roles);
        let mut data = std::mem::take(&mut self.data).into_iter();
        let is_data = |role: &(Dim, _)| role.0 == Dim::Data;
        let again = roles.iter().position(is_data).unwrap_or(0);
        for (column, role) in roles.into_iter().enumerate() {
            let own = is_data(&role).then(|| data.next()).flatten();
            if column == again {
                self.as_data(column)?;
                continue;
            }
            self.roles.push(role);
            self.data.extend(own);
        }
        Ok(())
    }

    fn scatter(self) -> PassResult<'c, Scatter<'c>> {
        let Self {
            builder,
            given,
            radix,
            shape,
            roles,
            data,
        } = self;
        let digits = radix.extents();
        let (mut dims, mut part, mut windows) = (Vec::new(), Vec::new(), Vec::new());
        for (at, extent) in shape.iter().enumerate() {
            let column = given.mapped.iter().position(|own| *own == at);
            let role = column.and_then(|column| roles.get(column)).copied();
            let (dim, own) = role.unwrap_or((Dim::Window, [0, *extent]));
            if role.is_none() {
                windows.push(*extent);
            }
            dims.push(dim);
            part.push(own);
        }
        let whole = part.iter().zip(&shape).all(|(own, all)| own[1] == *all);
        let original = match whole {
            true => given.original,
            false => slice(builder, given.original, &part)?,
        };
        let updates = match alone(builder, given.updates)? {
            Some(alone) => alone,
            None => given.updates,
        };
        let of_updates = [digits.clone(), windows].concat();
        let leading = digits
            .contains(&DYNAMIC)
            .then(|| builder.extent(given.indices, 0))
            .transpose()?;
        Ok(Scatter {
            op: given.op,
            updates: reshape(builder, updates, &of_updates, leading)?,
            digits,
            original,
            part,
            dims,
            data,
        })
    }
}

/// A part of a tensor.
fn slice<'c>(builder: &Builder<'c>, tensor: Val<'c>, part: &[[i64; 2]]) -> PassResult<'c, Val<'c>> {
    let sizes: Vec<_> = part.iter().map(|own| own[1]).collect();
    let r#type = builder.tensor(&sizes, builder.tensor_of(tensor)?.element)?;
    let attributes = boxed(builder, part, 1)?;
    builder.value("tensor.extract_slice", &[tensor], r#type, &attributes)
}
