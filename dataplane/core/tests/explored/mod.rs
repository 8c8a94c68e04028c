//! How many executions the explorer has seen, and that it finds a fault that is put into the code.
#![allow(dead_code)] // Each test file uses a part.

use holdfast_core::explorer::{seed, Fault};
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};

// Loom runs a model's threads on the test's own thread.
std::thread_local! {
    static MODELS: Cell<u64> = const { Cell::new(0) };
    static EXECUTIONS: Cell<u64> = const { Cell::new(0) };
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Counts the executions of one model: each is another order of its threads' operations, or another
/// value that the memory model lets a load return.
#[derive(Clone)]
pub(crate) struct Tally(Arc<AtomicU64>);

impl Tally {
    /// One more model.
    pub(crate) fn begin() -> Self {
        MODELS.set(MODELS.get() + 1);
        Self(Arc::default())
    }

    /// At the beginning of each execution.
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        EXECUTIONS.set(EXECUTIONS.get() + 1);
    }

    pub(crate) fn executions(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Explores one model to its end; prints and returns how many executions there were.
///
/// `bound` is how often a thread may be preempted, `None` for any number of times.
pub(crate) fn explore(
    name: &str,
    bound: Option<usize>,
    model: impl Fn() + Send + Sync + 'static,
) -> u64 {
    let tally = Tally::begin();
    let counter = tally.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = bound;
    builder.check(move || {
        counter.count();
        model();
    });
    println!("{name}: {} executions", tally.executions());
    assert!(tally.executions() > 1, "the explorer has seen no interleaving");
    tally.executions()
}

/// With `fault` in the code the models must fail, with `symptom`; says after how many executions.
pub(crate) fn finds(fault: Fault, symptom: &str, explored: impl FnOnce()) {
    fails(&format!("{fault:?}"), Some(fault), symptom, explored);
}

/// The models must fail, with `symptom`.
pub(crate) fn fails(name: &str, fault: Option<Fault>, symptom: &str, explored: impl FnOnce()) {
    expect_quietly();
    let before = (MODELS.get(), EXECUTIONS.get());
    seed(fault);
    EXPECTED.set(true);
    let found = catch_unwind(AssertUnwindSafe(explored));
    EXPECTED.set(false);
    seed(None);
    let panic = found.expect_err("the explorer must find the fault");
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    assert!(text.contains(symptom), "found something else: {text}");
    let (models, executions) = (MODELS.get() - before.0, EXECUTIONS.get() - before.1);
    println!("{name}: found in model {models}, execution {executions}: {text}");
}

/// A panic that is expected doesn't print where it came from.
fn expect_quietly() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !EXPECTED.get() {
                usual(panic);
            }
        }));
    });
}
