//! Between C's arguments and Rust's: texts, arrays, places for results.

use crate::failure::Failure;
use crate::handle::{self, Object, Opaque};
use std::ffi::{CStr, CString, c_char};

/// More dimensions than a tensor or a layout has; a larger rank is a mistake, such as a negative number.
pub(crate) const MAX_RANK: usize = 64;
/// More elements than an array of arguments has.
pub(crate) const MAX_ITEMS: usize = 1 << 16;
/// More bytes than a module or a package has.
const MAX_BYTES: usize = 1 << 40;

/// A text that C can read; a NUL in it is replaced.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// A pointer that C reads, null for none.
pub(crate) fn view<T>(pointer: Option<*const T>) -> *const T {
    pointer.unwrap_or(std::ptr::null())
}

/// An array of the caller's.
///
/// # Errors
/// Null where there are elements, too many elements, misaligned elements.
///
/// # Safety
/// `data` is null or valid for `count` elements as long as `'a`.
pub(crate) unsafe fn array<'a, T>(
    data: *const T,
    count: usize,
    most: usize,
    what: &str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Failure::argument(format!(
            "`{what}` is NULL and has {count} elements"
        )));
    }
    if count > most {
        return Err(Failure::argument(format!(
            "`{what}`: expected at most {most} elements, got {count}"
        )));
    }
    if !data.is_aligned() {
        return Err(Failure::argument(format!("`{what}` is misaligned")));
    }
    // SAFETY: promised by the caller; null, alignment and size are checked.
    Ok(unsafe { std::slice::from_raw_parts(data, count) })
}

/// Bytes of the caller's.
///
/// # Errors
/// As [`array`].
///
/// # Safety
/// As [`array`].
pub(crate) unsafe fn bytes<'a>(
    data: *const u8,
    size: usize,
    what: &str,
) -> Result<&'a [u8], Failure> {
    // SAFETY: promised by the caller.
    unsafe { array(data, size, MAX_BYTES, what) }
}

/// A text of the caller's, by its length.
///
/// # Errors
/// As [`array`]; what is not UTF-8.
///
/// # Safety
/// As [`array`].
pub(crate) unsafe fn text<'a>(
    data: *const c_char,
    length: usize,
    what: &str,
) -> Result<&'a str, Failure> {
    // SAFETY: promised by the caller.
    let bytes = unsafe { bytes(data.cast(), length, what)? };
    utf8(bytes, what)
}

fn utf8<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str, Failure> {
    std::str::from_utf8(bytes)
        .map_err(|error| Failure::argument(format!("`{what}` is not UTF-8: {error}")))
}

/// A text of the caller's that a NUL ends, `None` for null.
///
/// # Errors
/// What is not UTF-8.
///
/// # Safety
/// `data` is null or ends in a NUL, and lives as long as `'a`.
pub(crate) unsafe fn option<'a>(
    data: *const c_char,
    what: &str,
) -> Result<Option<&'a str>, Failure> {
    if data.is_null() {
        return Ok(None);
    }
    // SAFETY: promised by the caller.
    let text = unsafe { CStr::from_ptr(data) };
    utf8(text.to_bytes(), what).map(Some)
}

/// Writes a result to the caller's place.
///
/// # Errors
/// Null.
///
/// # Safety
/// `place` is null or has room for a `T`.
pub(crate) unsafe fn give<T>(place: *mut T, value: T, what: &str) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::argument(format!("`{what}` is NULL")));
    }
    // SAFETY: promised by the caller.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// Makes an object, and writes its handle to the caller's place, which holds null where it fails.
///
/// # Errors
/// Null, and those of `made`.
///
/// # Safety
/// `place` is null or has room for a handle.
pub(crate) unsafe fn give_new<T: Object>(
    place: *mut *mut Opaque<T>,
    what: &str,
    made: impl FnOnce() -> Result<T, Failure>,
) -> Result<(), Failure> {
    // SAFETY: promised by the caller.
    unsafe {
        give(place, std::ptr::null_mut(), what)?;
        give(place, handle::new(made()?), what)
    }
}

/// The options of a call: the caller's, whose first member is their size, or the defaults for null.
///
/// # Errors
/// A size that is not that of the options.
///
/// # Safety
/// `options` is null or points to a `size_t` that says how many bytes are valid.
pub(crate) unsafe fn options<T: Copy>(
    options: *const T,
    defaults: T,
    what: &str,
) -> Result<T, Failure> {
    if options.is_null() {
        return Ok(defaults);
    }
    // SAFETY: promised by the caller.
    let size = unsafe { options.cast::<usize>().read_unaligned() };
    if size != size_of::<T>() {
        return Err(Failure::argument(format!(
            "`{what}->struct_size`: expected {}, got {size}: set it to sizeof(*{what}), with the axe.h of this library",
            size_of::<T>()
        )));
    }
    // SAFETY: promised by the caller.
    Ok(unsafe { options.read_unaligned() })
}

/// Text of the library's; as an object, `axe_text`.
#[derive(Debug)]
pub struct Text(pub(crate) CString);

impl Object for Text {
    const NAME: &'static str = "axe_text";
}

/// The characters of a text, which a NUL ends; null for what is no text.
#[unsafe(no_mangle)]
pub extern "C" fn axe_text_data(text: *const Opaque<Text>) -> *const c_char {
    view(handle::find(text).map(|text| text.0.as_ptr()))
}

/// The length of a text in bytes; 0 for what is no text.
#[unsafe(no_mangle)]
pub extern "C" fn axe_text_length(text: *const Opaque<Text>) -> usize {
    handle::find(text).map_or(0, |text| text.0.count_bytes())
}

/// Frees a text.
#[unsafe(no_mangle)]
pub extern "C" fn axe_text_free(text: *mut Opaque<Text>) {
    handle::free(text.cast_const());
}
