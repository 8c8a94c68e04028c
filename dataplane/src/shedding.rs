//! What the XDP programs may drop under receive pressure: lossy frames only (SPEC 4.3).

use holdfast_core::profile::{PortSpec, ProfileSpec, Trust};
use holdfast_xsk::{LosslessMap, LosslessWriter};
use std::io;

/// The XDP programs of all ports, in the order of the ports' ids.
#[derive(Default)]
pub(crate) struct Shedding(Vec<Option<LosslessWriter>>);

impl Shedding {
    pub(crate) fn new(writers: impl Iterator<Item = LosslessWriter>) -> Self {
        Self(writers.map(Some).collect())
    }

    /// Another program serves a port from now on, or none; its next [`follow`](Self::follow) tells
    /// it.
    pub(crate) fn replace(&mut self, number: usize, writer: Option<LosslessWriter>) {
        if self.0.len() <= number {
            self.0.resize(number + 1, None);
        }
        self.0.get_mut(number).into_iter().for_each(|place| place.clone_from(&writer));
    }

    /// Before `new` takes over from `old`: no frame is shed that is lossless in either.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn widen(&self, old: &ProfileSpec, new: &ProfileSpec) -> io::Result<()> {
        let ports = old.ports.iter().zip(&new.ports);
        self.0.iter().zip(ports).try_for_each(|(writer, (old, new))| match writer {
            Some(writer) => writer.set(lossless_map(new).or(lossless_map(old))),
            None => Ok(()),
        })
    }

    /// What `profile` says, and nothing more.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn follow(&self, profile: &ProfileSpec) -> io::Result<()> {
        let mut ports = self.0.iter().zip(&profile.ports);
        ports.try_for_each(|(writer, port)| match writer {
            Some(writer) => writer.set(lossless_map(port)),
            None => Ok(()),
        })
    }
}

/// What the XDP program spares under receive pressure (SPEC 4.3).
pub(crate) fn lossless_map(spec: &PortSpec) -> LosslessMap {
    let maps = &spec.maps;
    let lossless = |cos| spec.pgs[maps.cos_to_pg[cos]].lossless;
    let bits = |set: u64, (n, hit): (u8, bool)| set | u64::from(hit) << n;
    let dscp = maps.dscp_to_cos.iter().map(|(dscp, cos)| (dscp.number(), lossless(*cos)));
    let pcp = maps.pcp_to_cos.iter().map(|(pcp, cos)| (pcp.number(), lossless(*cos)));
    LosslessMap {
        trust: match maps.trust {
            Trust::Dscp => holdfast_xsk::Trust::Dscp,
            Trust::Pcp => holdfast_xsk::Trust::Pcp,
            Trust::Port => holdfast_xsk::Trust::Port,
        },
        dscp: dscp.fold(0, bits),
        pcp: pcp.fold(0, bits) as u8,
        rest: lossless(maps.default_cos),
    }
}
