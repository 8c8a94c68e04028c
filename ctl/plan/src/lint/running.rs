//! The profile that a running switch has in force, with what only a running switch shows.

use super::{host, Options, Report, Subject};
use crate::resolve::HeadroomTerm;
use holdfast_api::doc::Finding;
use holdfast_api::message::{
    HeadroomNeed, Histogram, HostPort, HostReply, PfcReply, PortStatus, PortsReply, ProfileReply,
    WorkerStatus,
};
use holdfast_core::ids::PgId;
use holdfast_core::profile::ProfileSpec;
use holdfast_core::units::{Cells, FrameLen};

/// What a running switch answers about itself.
#[derive(Clone, Copy, Debug)]
pub struct Running<'a> {
    /// `show_profile`: with every change by `set` since it was loaded.
    pub profile: &'a ProfileReply,
    /// `show_ports`.
    pub ports: &'a PortsReply,
    /// `show_host`.
    pub host: &'a HostReply,
    /// `show_pfc`, one answer a port: the histogram of an answer is that of its ports.
    pub pfc: &'a [PfcReply],
}

impl<'a> Running<'a> {
    pub(super) fn port(&self, name: &str) -> Option<&'a PortStatus> {
        self.ports.ports.iter().find(|port| port.port == name)
    }

    pub(super) fn host(&self, name: &str) -> Option<&'a HostPort> {
        self.host.ports.iter().find(|port| port.port == name)
    }

    pub(super) fn worker(&self, number: u8) -> Option<&'a WorkerStatus> {
        self.ports.workers.iter().find(|worker| worker.worker == number)
    }

    /// Reaction times of one port.
    pub(super) fn reaction(&self, name: &str) -> Option<&'a Histogram> {
        let its = |reply: &&PfcReply| matches!(&reply.ports[..], [port] if port.port == name);
        self.pfc.iter().find(its).map(|reply| &reply.xoff_reaction)
    }
}

impl From<&HeadroomTerm> for HeadroomNeed {
    fn from(term: &HeadroomTerm) -> Self {
        Self {
            port: term.port.clone(),
            pg: term.pg,
            need: term.need.0,
            smallest_need: term.smallest_need.0,
            terms: term.terms.clone(),
        }
    }
}

/// Lints the profile that a switch has in force by every check of a file and by
/// those of a running switch: H and P10.
///
/// # Errors
/// A value of the profile that this release doesn't know, by its key.
pub fn running(running: &Running<'_>, options: Options) -> Result<Report, Finding> {
    let spec = running.profile.spec()?;
    let names: Vec<String> = running.profile.ports.iter().map(|port| port.port.clone()).collect();
    let need = running.profile.need.as_ref();
    let needs = need.map_or(&[][..], |need| &need.formula);
    let smallest = need.map_or(crate::resolve::SMALLEST_LOSSLESS, |n| n.smallest_lossless_frame);
    let terms: Vec<HeadroomTerm> =
        needs.iter().filter_map(|need| term(need, &spec, &names)).collect();
    let subject = Subject {
        spec: &spec,
        names: &names,
        terms: &terms,
        smallest: FrameLen(smallest),
        rx_ring: running.ports.ports.iter().map(|port| port.rx_ring).max(),
        queues_at_once: options.queues_at_once.max(1),
    };
    let mut found = subject.find();
    host::check(&subject, running, &mut found);
    Ok(Report::new(found))
}

/// A need beside the Headroom of now; `None` of a PG that is lossless no more.
fn term(need: &HeadroomNeed, spec: &ProfileSpec, names: &[String]) -> Option<HeadroomTerm> {
    let port = spec.ports.get(names.iter().position(|name| *name == need.port)?)?;
    let account = Some(port.pgs[PgId::new(need.pg)?]).filter(|account| account.lossless)?;
    Some(HeadroomTerm {
        port: need.port.clone(),
        pg: need.pg,
        need: Cells(need.need),
        smallest_need: Cells(need.smallest_need),
        headroom: account.headroom,
        terms: need.terms.clone(),
    })
}
