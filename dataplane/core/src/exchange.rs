//! Ports that come and go under a running worker (SPEC 9): a link that goes down and comes up,
//! rings that are taken away and given anew, whole ports that are added and removed.
//!
//! Everything slow is left to others. A worker neither opens nor closes rings: it is handed a port
//! that is open, hands one over to be closed, and takes back what was in it.

use crate::context::{Context, EdgeCount, Slots};
use crate::drop::DropReason;
use crate::egress;
use crate::ids::{PerPg, PortId};
use crate::ingress;
use crate::io::{FramePool, PortIo, Remains};
use crate::pause;
use crate::port::Port;
use crate::topology::Topology;
use crate::units::Time;
use crate::watch;
use crate::worker::Worker;
use holdfast_wire::MacAddr;
use std::sync::Arc;

/// A port's link went up or down: going down, what waits is dropped, its stations are forgotten,
/// and the peer's pauses with them.
pub(crate) fn follow<P: PortIo>(port: &mut Port<P>, context: &mut Context<P::Pool>, up: bool) {
    port.up = up;
    if !up {
        ingress::give_up_late(port, context, DropReason::PortDown);
        egress::flush(port, context, DropReason::PortDown);
        context.shared.fdb.flush_port(port.id);
        port.receiver.forget(context.now);
        watch::give_up(port, context, None);
        port.peer.forget();
    }
    port.sender.forget(context.now);
}

impl<P: PortIo> Worker<P> {
    /// Takes a port's rings away, to be closed on another thread: the port is down from now on,
    /// with the rings `closed` in their place. Frames that were being sent stay charged until
    /// [`give_back`](Self::give_back). `None`, and nothing done, if this worker doesn't own the
    /// port.
    pub fn detach(&mut self, id: PortId, closed: P, now: Time) -> Option<P> {
        self.context.now = now;
        let slot = self.context.slots.of(id)?;
        let port = self.ports.get_mut(slot)?;
        if port.up {
            follow(port, &mut self.context, false);
        }
        Some(std::mem::replace(&mut port.io, closed))
    }

    /// Takes back what a port's closed rings still had: memory goes home, cells of frames that were
    /// being sent are released, losses are counted. Memory is taken back by any worker, the rest
    /// only by the port's owner, which counts frames in the rings as sent.
    pub fn give_back(&mut self, id: PortId, remains: Remains, now: Time) {
        self.context.now = now;
        let Remains { chunks, tokens, losses } = remains;
        for chunk in chunks {
            self.context.pool.take_back(chunk);
        }
        self.count_losses(id, losses);
        let slot = self.context.slots.of(id);
        let Some(port) = slot.and_then(|slot| self.ports.get_mut(slot)) else { return };
        egress::land(port, &mut self.context, tokens.into_iter());
        port.losses = Default::default();
    }

    /// Gives a port new rings, and the address that its netdev has now. It comes up when they say
    /// so, at the next step.
    ///
    /// # Errors
    /// The rings again, if this worker doesn't own the port.
    pub fn attach(&mut self, id: PortId, io: P, mac: MacAddr) -> Result<(), P> {
        let slot = self.context.slots.of(id);
        let Some(port) = slot.and_then(|slot| self.ports.get_mut(slot)) else { return Err(io) };
        port.late.hold(io.rx_ring());
        port.io = io;
        port.mac = mac;
        Ok(())
    }

    /// Takes a port over that was not there, its queues and rings with it.
    pub fn insert(&mut self, port: Port<P>) {
        self.ports.push(port);
        self.context.slots = Slots::new(self.ports.iter().map(Port::id));
    }

    /// Ends a port: its peer is let go where the link is up, what waits in it is dropped. What it
    /// sent to others goes on there. Then its rings are to be closed, and given back here. `None`
    /// if this worker doesn't own it.
    pub fn remove(&mut self, id: PortId, now: Time) -> Option<Port<P>> {
        self.context.now = now;
        let slot = self.context.slots.of(id)?;
        let port = self.ports.get_mut(slot)?;
        port.sender.release_all();
        pause::send(port, &mut self.context);
        follow(port, &mut self.context, false);
        let port = self.ports.remove(slot);
        self.context.slots = Slots::new(self.ports.iter().map(Port::id));
        Some(port)
    }

    /// Takes the cells and the memory back of frames that a removed port was sending.
    pub fn take_back(&mut self, mut port: Port<P>, remains: Remains, now: Time) -> Port<P> {
        self.context.now = now;
        for chunk in remains.chunks {
            self.context.pool.take_back(chunk);
        }
        egress::land(&mut port, &mut self.context, remains.tokens.into_iter());
        port
    }

    /// Takes over who owns which port from now on.
    pub fn follow_topology(&mut self, topology: Arc<Topology>) {
        self.context.topology = topology;
    }

    /// Forgets the edges that it won on a port's PGs: the number is given to another port.
    pub fn forget_edges(&mut self, port: PortId) {
        self.context.edges[port] = PerPg::from_fn(|_| EdgeCount::default());
    }
}
