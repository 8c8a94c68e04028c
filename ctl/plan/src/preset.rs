//! The named sets of map defaults (SPEC 2.4).

use holdfast_api::profile_doc::MapBase;

/// One set.
pub(crate) struct Preset {
    /// DSCP -> CoS where the set names one.
    pub dscp: &'static [(u8, u8)],
    /// CoS of every other DSCP.
    pub dscp_default: u8,
    /// PCP -> CoS.
    pub pcp: [u8; 8],
    /// CoS -> PG.
    pub pg: [u8; 8],
    /// CoS -> queue.
    pub queue: [u8; 8],
    /// PGs, and with them priorities and queues, that are lossless.
    pub lossless: &'static [u8],
    /// Queues that are strict.
    pub strict: &'static [u8],
}

const IDENTITY: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// The family's default: CS3..AF33 and what lies between are lossless, CNPs are strict.
const AC5P: Preset = Preset {
    dscp: &[(24, 3), (25, 3), (26, 3), (27, 3), (28, 3), (29, 3), (30, 3), (31, 3), (48, 6)],
    dscp_default: 0,
    pcp: IDENTITY,
    pg: [0, 0, 0, 3, 0, 0, 0, 0],
    queue: [0, 0, 0, 3, 0, 0, 6, 0],
    lossless: &[3],
    strict: &[6],
};

/// The AZURE maps of SONiC's default QoS template; PCP as its storage backend has it.
const AZURE: Preset = Preset {
    dscp: &[(3, 3), (4, 4), (5, 2), (8, 0), (46, 5), (48, 6)],
    dscp_default: 1,
    pcp: [1, 0, 2, 3, 4, 5, 6, 7],
    pg: [0, 0, 0, 3, 4, 0, 0, 7],
    queue: IDENTITY,
    lossless: &[3, 4],
    strict: &[7],
};

/// What NIC vendors' RoCE guides ask for: DSCP 24 or 26 for data, 48 for CNPs.
const NVIDIA: Preset = Preset { dscp: &[(24, 3), (26, 3), (48, 6)], ..AC5P };

/// The set of that name.
pub(crate) const fn preset(base: MapBase) -> &'static Preset {
    match base {
        MapBase::Ac5p => &AC5P,
        MapBase::Azure => &AZURE,
        MapBase::Nvidia => &NVIDIA,
    }
}
