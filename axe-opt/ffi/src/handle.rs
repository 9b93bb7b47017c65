//! Objects that C holds by handles. A handle names an object and is no address: one that was freed, or is of another
//! kind, is found out without touching memory, and no value is given out twice.

use crate::failure::Failure;
use std::any::Any;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

/// What C sees of an object: a pointer to this is a handle.
#[repr(C)]
pub struct Opaque<T> {
    private: [u8; 0],
    of: PhantomData<T>,
}

/// An object that C can hold.
pub(crate) trait Object: Any + Send + Sync {
    /// Its type in `axe.h`.
    const NAME: &'static str;
}

struct Entry {
    name: &'static str,
    object: Arc<dyn Any + Send + Sync>,
}

static OBJECTS: LazyLock<RwLock<HashMap<usize, Entry>>> = LazyLock::new(RwLock::default);
/// Handles differ by this, so that they look aligned.
const STEP: usize = 16;
static NEXT: AtomicUsize = AtomicUsize::new(STEP);

/// A handle for an object, which lives until [`free`].
pub(crate) fn new<T: Object>(object: T) -> *mut Opaque<T> {
    let handle = NEXT.fetch_add(STEP, Ordering::Relaxed);
    let entry = Entry {
        name: T::NAME,
        object: Arc::new(object),
    };
    let mut all = OBJECTS.write().unwrap_or_else(PoisonError::into_inner);
    all.insert(handle, entry);
    std::ptr::without_provenance_mut(handle)
}

/// The object of a handle; `what` names the argument.
///
/// # Errors
/// Null, a handle that was freed or never was one, and one of another kind.
pub(crate) fn get<T: Object>(handle: *const Opaque<T>, what: &str) -> Result<Arc<T>, Failure> {
    if handle.is_null() {
        return Err(Failure::argument(format!("`{what}` is NULL")));
    }
    let all = OBJECTS.read().unwrap_or_else(PoisonError::into_inner);
    let entry = all.get(&handle.addr()).ok_or_else(|| {
        Failure::argument(format!(
            "`{what}` is no {} that is alive: it was freed, or never made",
            T::NAME
        ))
    })?;
    Arc::clone(&entry.object).downcast().map_err(|_| {
        Failure::argument(format!(
            "`{what}`: expected {}, got {}",
            T::NAME,
            entry.name
        ))
    })
}

/// The object of a handle, for functions that have no other way to say so than to give nothing.
pub(crate) fn find<T: Object>(handle: *const Opaque<T>) -> Option<Arc<T>> {
    get(handle, "").ok()
}

/// Frees an object; does nothing for what is no handle of its kind.
pub(crate) fn free<T: Object>(handle: *const Opaque<T>) {
    let mut all = OBJECTS.write().unwrap_or_else(PoisonError::into_inner);
    let own = |entry: &Entry| entry.object.is::<T>();
    let freed = match all.get(&handle.addr()).is_some_and(own) {
        true => all.remove(&handle.addr()),
        false => None,
    };
    // What an object holds is dropped without the lock.
    drop(all);
    drop(freed);
}
