//! What machine code calls that libm and libc do not have everywhere.

use crate::assertion;
use half::{bf16, f16};

/// A half-precision result where the C ABI returns it: in the low bits of a vector register, as an f32's are.
fn low(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits))
}

extern "C" fn f32_to_bf16(value: f32) -> f32 {
    low(bf16::from_f32(value).to_bits())
}

extern "C" fn f64_to_bf16(value: f64) -> f32 {
    low(bf16::from_f64(value).to_bits())
}

extern "C" fn f32_to_f16(value: f32) -> f32 {
    low(f16::from_f32(value).to_bits())
}

extern "C" fn f64_to_f16(value: f64) -> f32 {
    low(f16::from_f64(value).to_bits())
}

extern "C" fn f16_to_f32(value: f32) -> f32 {
    // The argument, too, is in the low bits of its register; those above are undefined.
    f16::from_bits((value.to_bits() & 0xFFFF) as u16).to_f32()
}

/// A memref of any rank as MLIR passes it: the rank and a descriptor.
#[repr(C)]
struct Unranked {
    rank: i64,
    descriptor: *const i64,
}

impl Unranked {
    /// Address of the first element, sizes and strides.
    ///
    /// # Safety
    /// The descriptor is one of a memref of this rank, alive for `'a`, with elements of `bytes` bytes.
    unsafe fn parts<'a>(&self, bytes: i64) -> (*mut u8, &'a [i64], &'a [i64]) {
        let rank = usize::try_from(self.rank).unwrap_or(0);
        // SAFETY: a descriptor has two pointers, an offset, and as many sizes and strides as the rank.
        let words = unsafe { std::slice::from_raw_parts(self.descriptor, 3 + 2 * rank) };
        let start = words[1].wrapping_add(words[2].wrapping_mul(bytes));
        (
            start as usize as *mut u8,
            &words[3..3 + rank],
            &words[3 + rank..],
        )
    }
}

/// Copies a memref to another of its shape; what `memref.copy` calls where either is not contiguous (MLIR,
/// ExecutionEngine/CRunnerUtils).
///
/// # Safety
/// Both are live memrefs of one shape with elements of `bytes` bytes.
unsafe extern "C" fn memref_copy(bytes: i64, from: *const Unranked, to: *const Unranked) {
    // SAFETY: promised by the caller.
    let ((from, sizes, steps), (to, _, into)) =
        unsafe { ((*from).parts(bytes), (*to).parts(bytes)) };
    let total: i64 = sizes.iter().product();
    let size = usize::try_from(bytes).unwrap_or(0);
    for element in 0..total {
        let (mut rest, mut read, mut written) = (element, 0_i64, 0_i64);
        for ((extent, step), place) in sizes.iter().zip(steps).zip(into).rev() {
            read += rest % extent * step;
            written += rest % extent * place;
            rest /= extent;
        }
        // SAFETY: the indices are inside the shape.
        unsafe {
            std::ptr::copy(
                from.wrapping_offset((read * bytes) as isize),
                to.wrapping_offset((written * bytes) as isize),
                size,
            );
        }
    }
}

unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut u8;
}

/// `malloc` whose memory is poisoned: what a module reads before it writes it is no number that anything computes, and
/// results that nothing wrote show.
extern "C" fn poisoned_malloc(bytes: usize) -> *mut u8 {
    // SAFETY: what malloc gives has so many bytes, or is null.
    unsafe {
        let memory = malloc(bytes);
        if !memory.is_null() {
            memory.write_bytes(axe_package::POISON, bytes);
        }
        memory
    }
}

/// Names and addresses.
pub(crate) fn all() -> Vec<(String, *mut ())> {
    let failed = assertion::fail as extern "C-unwind" fn(i64);
    let mut symbols = vec![
        (
            "__truncsfbf2".to_owned(),
            f32_to_bf16 as extern "C" fn(f32) -> f32 as *mut (),
        ),
        (
            "__truncdfbf2".to_owned(),
            f64_to_bf16 as extern "C" fn(f64) -> f32 as *mut (),
        ),
        (
            "__truncsfhf2".to_owned(),
            f32_to_f16 as extern "C" fn(f32) -> f32 as *mut (),
        ),
        (
            "__truncdfhf2".to_owned(),
            f64_to_f16 as extern "C" fn(f64) -> f32 as *mut (),
        ),
        (
            "__extendhfsf2".to_owned(),
            f16_to_f32 as extern "C" fn(f32) -> f32 as *mut (),
        ),
    ];
    let copy = memref_copy as unsafe extern "C" fn(i64, *const Unranked, *const Unranked);
    symbols.push(("memrefCopy".to_owned(), copy as *mut ()));
    let allocate = poisoned_malloc as extern "C" fn(usize) -> *mut u8;
    symbols.push(("malloc".to_owned(), allocate as *mut ()));
    // The passes may call a function through the wrapper of its C interface.
    symbols.push((assertion::SYMBOL.to_owned(), failed as *mut ()));
    symbols.push((
        format!("_mlir_ciface_{}", assertion::SYMBOL),
        failed as *mut (),
    ));
    symbols
}
