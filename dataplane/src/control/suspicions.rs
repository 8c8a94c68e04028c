//! Suspected deadlocks in the journal (SPEC 8), from the words in which port owners leave them.

use super::{Console, Moment};
use holdfast_api::message::Occurrence;
use holdfast_core::ids::{PgId, PortId};
use holdfast_core::io::PortIo;
use holdfast_core::topology::PortSet;
use holdfast_core::units::Time;

/// How far the suspicions of one port have been told: how many, and of which PGs, one bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ToldSuspicions {
    total: u64,
    pgs: u8,
}

impl<P: PortIo + 'static> Console<P> {
    /// Writes down suspicions that began or ended since it last looked.
    pub(super) fn notice_suspicions(&mut self) {
        let ports: Vec<PortId> = self.board.topology.ports().map(|(port, _)| port).collect();
        self.witness.suspicions.resize(ports.len(), ToldSuspicions::default());
        for (number, id) in ports.into_iter().enumerate() {
            let total = self.lost(id, |losses| &losses.suspicions);
            let pgs = self.lost(id, |losses| &losses.suspected) as u8;
            let Some(told) = self.witness.suspicions.get_mut(number) else { continue };
            let before = core::mem::replace(told, ToldSuspicions { total, pgs });
            let port = self.board.port_name(id);
            let mut ended = before.pgs & !pgs;
            if total > before.total {
                // One that was over before anybody looked is told of, too, with its end.
                let last = self.lost(id, |losses| &losses.last_suspected) as u8;
                ended |= last & !pgs;
                let at = Time(self.lost(id, |losses| &losses.last_suspicion_ns));
                let waits_for = PortSet(self.lost(id, |losses| &losses.waited_for));
                let what = Occurrence::DeadlockSuspected {
                    port: port.clone(),
                    pgs: numbers(last),
                    waits_for: waits_for.iter().map(|port| self.board.port_name(port)).collect(),
                    total,
                };
                self.record_at(Moment::now(self.now()).back_to(at), what);
            }
            if ended != 0 {
                self.record(Occurrence::DeadlockResolved { port, pgs: numbers(ended) });
            }
        }
    }
}

fn numbers(pgs: u8) -> Vec<u8> {
    PgId::all().map(PgId::number).filter(|pg| pgs & 1 << pg != 0).collect()
}
