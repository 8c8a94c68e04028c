//! What is read of a switch before it is judged. Each call is a barrier of its own: what is still
//! under way may move between two of them, what has been counted doesn't go back.

use crate::cli::Target;
use crate::connect::connect;
use crate::CommandError;
use holdfast_api::message::{
    BufferReply, Call, EcnReply, EcnStatus, PgFilter, PgReply, PgStatus, PortFilter, PortStatus,
    PortsReply, ProfileReply, QueueFilter, QueueReply, QueueStatus, ShowBuffer, ShowProfile,
};

/// A switch as it was seen.
pub(super) struct Sight {
    pub(super) ports: Vec<PortStatus>,
    pub(super) pgs: Vec<PgStatus>,
    pub(super) queues: Vec<QueueStatus>,
    pub(super) ecn: Vec<EcnStatus>,
    pub(super) buffer: BufferReply,
    /// Name and SHA-256 of the profile in force.
    pub(super) profile: (String, String),
}

impl Sight {
    /// Asks the switch that `target` means.
    pub(super) fn take(target: &Target) -> Result<Self, CommandError> {
        let mut client = connect(target)?;
        let profile: ProfileReply = client.call(Call::ShowProfile(ShowProfile {}))?;
        let ports: PortsReply = client.call(Call::ShowPorts(PortFilter::default()))?;
        let pgs: PgReply = client.call(Call::ShowPg(PgFilter::default()))?;
        let queues: QueueReply = client.call(Call::ShowQueue(QueueFilter::default()))?;
        let ecn: EcnReply = client.call(Call::ShowEcn(QueueFilter::default()))?;
        Ok(Self {
            ports: ports.ports,
            pgs: pgs.pgs,
            queues: queues.queues,
            ecn: ecn.queues,
            buffer: client.call(Call::ShowBuffer(ShowBuffer {}))?,
            profile: (profile.name, profile.sha256),
        })
    }

    /// The names of all ports.
    pub(super) fn port_names(&self) -> String {
        self.ports.iter().map(|port| port.port.as_str()).collect::<Vec<_>>().join(", ")
    }
}
