//! All interleavings of a queue that moves and of the owner of a PG who compares, explored by loom.

use super::*;
use loom::sync::Arc;
use loom::thread;

const CELLS: Cells = Cells(4);

fn egress() -> PortId {
    PortId::from_bits(1)
}

/// The cells of one PG in stuck queues, and its account.
struct Pg {
    stuck: StuckPg,
    account: AtomicU32,
}

impl Pg {
    /// One frame, that stands in a stuck queue.
    fn with_one_that_stands() -> Self {
        let pg = Self { stuck: StuckPg::default(), account: AtomicU32::new(CELLS.0) };
        pg.stuck.add(egress(), Share::whole(CELLS));
        pg
    }

    fn charge(&self) {
        self.account.fetch_add(CELLS.0, Ordering::SeqCst);
    }

    fn release(&self) {
        self.account.fetch_sub(CELLS.0, Ordering::SeqCst);
    }

    fn all(&self) -> Option<AllStuck> {
        self.stuck.all(|| Cells(self.account.load(Ordering::SeqCst)))
    }
}

/// The frame that stood leaves while the PG is charged one that goes elsewhere: as many cells in
/// the account as were counted, but other ones.
#[test]
fn a_frame_elsewhere_is_never_taken_for_one_that_stood() {
    loom::model(|| {
        let pg = Arc::new(Pg::with_one_that_stands());
        let other = {
            let pg = Arc::clone(&pg);
            thread::spawn(move || {
                pg.stuck.moved(egress(), Share::whole(CELLS), true);
                pg.release();
            })
        };
        pg.charge();
        assert_eq!(pg.all(), None);
        other.join().unwrap();
        assert_eq!(pg.all(), None);
    });
}

/// What is told while nobody charges is told of a queue that stood at that instant: its move is
/// seen afterwards.
#[test]
fn a_suspicion_is_told_before_the_move_or_not_at_all() {
    loom::model(|| {
        let pg = Arc::new(Pg::with_one_that_stands());
        let other = {
            let pg = Arc::clone(&pg);
            thread::spawn(move || {
                pg.stuck.moved(egress(), Share::whole(CELLS), true);
                pg.release();
            })
        };
        let told = pg.all();
        other.join().unwrap();
        if let Some(told) = told {
            assert_eq!(told.ports, PortSet::only(egress()));
            assert_ne!(pg.stuck.moves.load(Ordering::SeqCst), told.moves, "it ends");
        }
        assert_eq!(pg.all(), None);
    });
}

/// A second frame comes to stand while the owner compares: it is all, or not yet.
#[test]
fn what_comes_to_stand_is_counted_once() {
    loom::model(|| {
        let pg = Arc::new(Pg::with_one_that_stands());
        pg.charge();
        let other = {
            let pg = Arc::clone(&pg);
            thread::spawn(move || pg.stuck.add(PortId::from_bits(2), Share::whole(CELLS)))
        };
        let told = pg.all();
        other.join().unwrap();
        let both = PortSet::only(egress()).or(PortSet::only(PortId::from_bits(2)));
        assert!(told.is_none_or(|told| told.ports == both), "{told:?}");
        assert_eq!(pg.all().map(|told| told.ports), Some(both));
    });
}
