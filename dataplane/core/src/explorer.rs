//! What the loom explorer sees of accounts and pools, and the faults it must be able to find.
//!
//! Everything here is empty and constant outside `cfg(loom)`: production code is free of it.

/// A known race, put back into the code to prove that the explorer would find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(loom), allow(unreachable_pub))]
pub enum Fault {
    /// A refusal sets XOFF and charges Headroom in two steps.
    TwoSteps,
    /// A release looks at the exit rule before it returns cells to the pool.
    ExitBeforeReturn,
    /// Whoever sets XOFF doesn't read the limit again.
    NoSecondLook,
    /// A refusal is final although the account was read long before the pool.
    TornRefusal,
    /// A release of a PG that may move to another pool doesn't hold the move up.
    Unregistered,
    /// A charge looks at the account and then writes it, instead of a compare-and-swap.
    CheckThenCharge,
    /// A worker whose compare-and-swap of the XOFF bit was beaten reports an edge all the same.
    DoubleEdge,
    /// A word is put into a ring without the Release that publishes it.
    RelaxedPublish,
    /// A worker announces its sleep without a fence before it looks once more.
    MissingFence,
}

#[cfg(not(loom))]
mod switch {
    /// Whether `fault` is put into the code: never outside the explorer.
    #[inline]
    pub(crate) const fn seeded(_fault: super::Fault) -> bool {
        false
    }

    #[inline]
    pub(crate) const fn note<T>(_place: &T, _value: u64) {}
}

#[cfg(loom)]
mod switch {
    use super::Fault;
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;

    type Observer = Box<dyn FnMut()>;

    // Loom runs all threads of a model on the test's own thread, one at a time, and switches only
    // at its atomics: what follows one is atomic with it, and sees the latest value of each.
    std::thread_local! {
        static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
        static VALUES: RefCell<BTreeMap<usize, u64>> = const { RefCell::new(BTreeMap::new()) };
        static OBSERVER: RefCell<Option<Observer>> = const { RefCell::new(None) };
    }

    /// Puts a fault into the code that this test thread explores, or takes it out.
    pub fn seed(fault: Option<Fault>) {
        FAULT.set(fault);
    }

    /// Starts one execution: nothing was written yet.
    pub fn begin() {
        OBSERVER.set(None);
        VALUES.with_borrow_mut(BTreeMap::clear);
    }

    /// From here on `observer` runs after each change of an account or a pool.
    pub fn watch(observer: impl FnMut() + 'static) {
        OBSERVER.set(Some(Box::new(observer)));
    }

    /// Ends the watch.
    pub fn unwatch() {
        OBSERVER.set(None);
    }

    pub(crate) fn seeded(fault: Fault) -> bool {
        FAULT.get() == Some(fault)
    }

    /// The latest value of an atomic, without being an event for the explorer.
    pub(crate) fn value<T>(place: &T) -> u64 {
        let at = core::ptr::from_ref(place).addr();
        VALUES.with_borrow(|values| values.get(&at).copied().unwrap_or(0))
    }

    pub(crate) fn note<T>(place: &T, value: u64) {
        let at = core::ptr::from_ref(place).addr();
        VALUES.with_borrow_mut(|values| values.insert(at, value));
        let observer = OBSERVER.take();
        if let Some(mut observer) = observer {
            observer();
            OBSERVER.set(Some(observer));
        }
    }
}

#[cfg(loom)]
pub use switch::{begin, seed, unwatch, watch};

#[cfg(loom)]
pub(crate) use switch::value;
pub(crate) use switch::{note, seeded};
