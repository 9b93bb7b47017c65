//! `ldmatrix`, `stmatrix` and `movmatrix`: 8x8 tiles between shared memory and the lanes of a warp
//! (PTX ISA 9.7.14.5.15 to 9.7.14.5.17).
//!
//! Lane `8i + r` gives the address of row `r` of matrix `i`. Without `.trans`, lane `4r + c` holds
//! elements `2c` and `2c + 1` of row `r`; with `.trans` it holds those of column `r`.

use super::Bytes;
use super::mma::Warp;
use crate::fault::Fault;

/// Shapes of one matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// `.m8n8` of 16-bit elements.
    M8n8,
    /// `.m16n16` of 8-bit elements, always transposed; two registers a lane.
    M16n16,
    /// `.m8n16` of 8-bit elements unpacked from 6 or 4 bits.
    M8n16,
    /// `stmatrix` `.m16n8` of 8-bit elements, always transposed.
    M16n8,
}

/// How elements lie in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// As in registers (`.b16`, `.b8`).
    Plain,
    /// `.b8x16.b6x16_p32`: 16 six-bit elements in 12 bytes, then 4 bytes of padding.
    SixBits,
    /// `.b8x16.b4x16_p64`: 16 four-bit elements in 8 bytes, then 8 bytes of padding.
    FourBits,
}

/// One `ldmatrix` or `stmatrix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixMove {
    /// Shape of each matrix.
    pub shape: Shape,
    /// Matrices: 1, 2 or 4.
    pub count: usize,
    /// `.trans`.
    pub trans: bool,
    /// Packing in memory.
    pub source: Source,
}

/// Bytes of a row in shared memory, for every shape.
const ROW_BYTES: usize = 16;

impl MatrixMove {
    /// Registers a lane.
    #[must_use]
    pub const fn registers(&self) -> usize {
        match self.shape {
            Shape::M16n16 => 2 * self.count,
            _ => self.count,
        }
    }

    const fn rows(&self) -> usize {
        match self.shape {
            Shape::M16n16 => 16,
            _ => 8,
        }
    }

    fn check(&self, load: bool) -> Result<(), Fault> {
        let ok = match self.shape {
            Shape::M8n8 => matches!(self.count, 1 | 2 | 4) && self.source == Source::Plain,
            Shape::M16n16 => load && matches!(self.count, 1 | 2) && self.trans,
            Shape::M8n16 => {
                load && matches!(self.count, 1 | 2 | 4)
                    && !self.trans
                    && self.source != Source::Plain
            }
            Shape::M16n8 => {
                !load
                    && matches!(self.count, 1 | 2 | 4)
                    && self.trans
                    && self.source == Source::Plain
            }
        };
        if ok {
            Ok(())
        } else {
            Err(Fault::Unsupported(format!("matrix move {self:?}")))
        }
    }

    /// Lanes whose address is used, in order of matrix and row.
    #[must_use]
    pub const fn addresses_used(&self) -> usize {
        match self.shape {
            Shape::M16n16 => 16 * self.count,
            _ => 8 * self.count,
        }
    }

    /// `ldmatrix`: `addresses` are shared-memory offsets, lane by lane.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] for a form that PTX does not define, [`Fault::Misaligned`] for a row
    /// that is not 16-byte aligned, and what `memory` reports.
    pub fn load(
        &self,
        memory: &mut dyn Bytes,
        addresses: &Warp<u64>,
    ) -> Result<Vec<Warp<u32>>, Fault> {
        self.check(true)?;
        let mut registers = vec![[0u32; 32]; self.registers()];
        for matrix in 0..self.count {
            let mut rows = [[0u8; ROW_BYTES]; 16];
            for (r, row) in rows.iter_mut().enumerate().take(self.rows()) {
                let lane = (matrix * self.rows() + r) % 32;
                self.load_row(memory, addresses[lane], row)?;
            }
            self.distribute(matrix, &rows, &mut registers);
        }
        Ok(registers)
    }

    fn load_row(
        &self,
        memory: &mut dyn Bytes,
        address: u64,
        row: &mut [u8; ROW_BYTES],
    ) -> Result<(), Fault> {
        aligned(address)?;
        let (bits, bytes) = match self.source {
            Source::Plain => return memory.read(address, row),
            Source::SixBits => (6, 12),
            Source::FourBits => (4, 8),
        };
        let mut packed = [0u8; ROW_BYTES];
        memory.read(address, &mut packed[..bytes])?;
        let word = u128::from_le_bytes(packed);
        for (i, out) in row.iter_mut().enumerate() {
            *out = (word >> (i * bits)) as u8 & ((1 << bits) - 1);
        }
        Ok(())
    }

    fn distribute(&self, matrix: usize, rows: &[[u8; ROW_BYTES]; 16], out: &mut [Warp<u32>]) {
        if self.shape == Shape::M16n16 {
            // Column r (r + 8 in the second register), four elements along the rows.
            for half in 0..2 {
                out[2 * matrix + half] = std::array::from_fn(|lane| {
                    let (column, first) = (lane / 4 + 8 * half, 4 * (lane % 4));
                    u32::from_le_bytes(std::array::from_fn(|i| rows[first + i][column]))
                });
            }
            return;
        }
        if !self.trans {
            let words = rows.iter().flat_map(|row| row.as_chunks::<4>().0);
            for (word, bytes) in out[matrix].iter_mut().zip(words) {
                *word = u32::from_le_bytes(*bytes);
            }
            return;
        }
        out[matrix] = std::array::from_fn(|lane| {
            let (r, c) = (lane / 4, lane % 4);
            u32::from_le_bytes(std::array::from_fn(|i| rows[2 * c + i / 2][2 * r + i % 2]))
        });
    }

    /// `stmatrix`: writes the registers to the rows that `addresses` name.
    ///
    /// # Errors
    /// As [`MatrixMove::load`]; [`Fault::Invalid`] if the number of registers is not
    /// [`MatrixMove::registers`].
    pub fn store(
        &self,
        memory: &mut dyn Bytes,
        addresses: &Warp<u64>,
        registers: &[Warp<u32>],
    ) -> Result<(), Fault> {
        self.check(false)?;
        if registers.len() != self.registers() {
            return Err(Fault::Invalid(format!(
                "stmatrix takes {} registers, got {}",
                self.registers(),
                registers.len()
            )));
        }
        for (matrix, register) in registers.iter().enumerate() {
            let rows = match self.shape {
                Shape::M16n8 => collect_bytes(register),
                _ => collect_halves(register, self.trans),
            };
            for (r, row) in rows.iter().enumerate() {
                let address = addresses[(matrix * 8 + r) % 32];
                aligned(address)?;
                memory.write(address, row)?;
            }
        }
        Ok(())
    }
}

fn aligned(address: u64) -> Result<(), Fault> {
    if address.is_multiple_of(ROW_BYTES as u64) {
        Ok(())
    } else {
        Err(Fault::Misaligned {
            addr: address,
            align: ROW_BYTES as u64,
        })
    }
}

fn collect_halves(register: &Warp<u32>, trans: bool) -> [[u8; ROW_BYTES]; 8] {
    let mut rows = [[0; ROW_BYTES]; 8];
    for (lane, word) in register.iter().enumerate() {
        let (r, c) = (lane / 4, lane % 4);
        for i in 0..2 {
            let half = ((word >> (16 * i)) as u16).to_le_bytes();
            let (row, column) = if trans {
                (2 * c + i, r)
            } else {
                (r, 2 * c + i)
            };
            rows[row][2 * column..2 * column + 2].copy_from_slice(&half);
        }
    }
    rows
}

/// `.m16n8.trans.b8`: lane `4r + c` holds four elements of column `r`, rows `4c` to `4c + 3` of a
/// 16 x 8 matrix that memory keeps as 8 rows of 16, one for each column.
fn collect_bytes(register: &Warp<u32>) -> [[u8; ROW_BYTES]; 8] {
    let mut rows = [[0; ROW_BYTES]; 8];
    for (lane, word) in register.iter().enumerate() {
        let (r, c) = (lane / 4, lane % 4);
        rows[r][4 * c..4 * c + 4].copy_from_slice(&word.to_le_bytes());
    }
    rows
}

/// `movmatrix.sync.aligned.m8n8.trans.b16`.
#[must_use]
pub fn movmatrix(register: &Warp<u32>) -> Warp<u32> {
    let rows = collect_halves(register, true);
    std::array::from_fn(|lane| {
        let (r, c) = (lane / 4, lane % 4);
        let b = &rows[r][4 * c..4 * c + 4];
        u32::from_le_bytes([b[0], b[1], b[2], b[3]])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::testing::Flat;

    fn halves(shape: Shape, count: usize, trans: bool) -> MatrixMove {
        MatrixMove {
            shape,
            count,
            trans,
            source: Source::Plain,
        }
    }

    /// Element (matrix, row, column) has the value 64 * matrix + 8 * row + column.
    fn numbered() -> Flat {
        let mut m = Flat::new(4096);
        for i in 0..256u16 {
            m.0[usize::from(i) * 2..][..2].copy_from_slice(&i.to_le_bytes());
        }
        m
    }

    #[test]
    fn m8n8_loads_rows_or_columns() {
        let addresses: Warp<u64> = std::array::from_fn(|lane| lane as u64 * 16);
        for count in [1, 2, 4] {
            for trans in [false, true] {
                let op = halves(Shape::M8n8, count, trans);
                let regs = op.load(&mut numbered(), &addresses).unwrap();
                for (matrix, reg) in regs.iter().enumerate() {
                    for (lane, word) in reg.iter().enumerate() {
                        for i in 0..2 {
                            let (fixed, moving) = (lane / 4, 2 * (lane % 4) + i);
                            let want = 64 * matrix
                                + if trans {
                                    8 * moving + fixed
                                } else {
                                    8 * fixed + moving
                                };
                            assert_eq!((word >> (16 * i)) & 0xffff, want as u32);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn stores_undo_loads() {
        let addresses: Warp<u64> = std::array::from_fn(|lane| lane as u64 * 16);
        for trans in [false, true] {
            let op = halves(Shape::M8n8, 4, trans);
            let regs = op.load(&mut numbered(), &addresses).unwrap();
            let mut out = Flat::new(4096);
            op.store(&mut out, &addresses, &regs).unwrap();
            assert_eq!(out.0[..512], numbered().0[..512]);
        }
    }

    #[test]
    fn movmatrix_transposes() {
        let a: Warp<u32> = std::array::from_fn(|lane| {
            let first = 8 * (lane / 4) + 2 * (lane % 4);
            (first | (first + 1) << 16) as u32
        });
        for (lane, word) in movmatrix(&a).iter().enumerate() {
            let (r, c) = (lane / 4, 2 * (lane % 4));
            assert_eq!(word & 0xffff, (8 * c + r) as u32);
            assert_eq!(word >> 16, (8 * (c + 1) + r) as u32);
        }
    }

    #[test]
    fn narrow_elements_unpack() {
        let mut m = Flat::new(1024);
        for row in 0..8 {
            let mut word = 0u128;
            for i in 0..16 {
                word |= ((row * 16 + i) as u128 & 0x3f) << (6 * i);
            }
            m.0[row * 16..][..16].copy_from_slice(&word.to_le_bytes());
        }
        let op = MatrixMove {
            shape: Shape::M8n16,
            count: 1,
            trans: false,
            source: Source::SixBits,
        };
        let addresses: Warp<u64> = std::array::from_fn(|lane| (lane as u64 % 8) * 16);
        let regs = op.load(&mut m, &addresses).unwrap();
        for (lane, word) in regs[0].iter().enumerate() {
            for i in 0..4 {
                let want = (lane / 4 * 16 + 4 * (lane % 4) + i) & 0x3f;
                assert_eq!((word >> (8 * i)) & 0xff, want as u32);
            }
        }
    }

    #[test]
    fn b8_transposes() {
        let mut m = Flat::new(1024);
        for i in 0..256 {
            m.0[i] = i as u8;
        }
        let addresses: Warp<u64> = std::array::from_fn(|lane| (lane as u64 % 16) * 16);
        let regs = halves(Shape::M16n16, 1, true)
            .load(&mut m, &addresses)
            .unwrap();
        for (half, reg) in regs.iter().enumerate() {
            for (lane, word) in reg.iter().enumerate() {
                for i in 0..4 {
                    let (column, row) = (lane / 4 + 8 * half, 4 * (lane % 4) + i);
                    assert_eq!((word >> (8 * i)) & 0xff, (16 * row + column) as u32);
                }
            }
        }
    }

    #[test]
    fn faults() {
        let op = halves(Shape::M8n8, 1, false);
        let misaligned = op.load(&mut Flat::new(64), &[8; 32]);
        assert_eq!(misaligned, Err(Fault::Misaligned { addr: 8, align: 16 }));
        assert!(matches!(
            op.load(&mut Flat::new(64), &[1 << 40; 32]),
            Err(Fault::OutOfBounds { .. })
        ));
        let op = halves(Shape::M8n8, 3, false);
        assert!(matches!(
            op.load(&mut Flat::new(64), &[0; 32]),
            Err(Fault::Unsupported(_))
        ));
        let op = halves(Shape::M8n8, 2, false);
        assert!(matches!(
            op.store(&mut Flat::new(64), &[0; 32], &[]),
            Err(Fault::Invalid(_))
        ));
    }
}
