//! From headers to CoS (SPEC 2). There is one classifier, and it is here (DESIGN law 10).

use crate::ids::{Cos, Dscp, Pcp};
use crate::profile::{ClassMaps, Trust};
use holdfast_wire::Headers;

/// The CoS of a frame by the port's trust and maps (SPEC 2.2, 2.3).
///
/// `Dscp` falls back to PCP for what isn't IP, PCP to the default for what has no tag; a tag with
/// VID 0 is a tag.
#[inline]
pub fn classify(maps: &ClassMaps, headers: &Headers) -> Cos {
    match maps.trust {
        Trust::Dscp => match dscp(headers) {
            Some(dscp) => maps.dscp_to_cos[dscp],
            None => by_pcp(maps, headers),
        },
        Trust::Pcp => by_pcp(maps, headers),
        Trust::Port => maps.default_cos,
    }
}

/// The DSCP that the frame carries, `None` if it isn't IP.
#[inline]
pub fn dscp(headers: &Headers) -> Option<Dscp> {
    headers.l3.ip().and_then(|ip| Dscp::new(ip.dscp))
}

/// The PCP of the outer tag, `None` if there is no tag.
#[inline]
pub fn pcp(headers: &Headers) -> Option<Pcp> {
    headers.outer.and_then(|tag| Pcp::new(tag.pcp))
}

#[inline]
fn by_pcp(maps: &ClassMaps, headers: &Headers) -> Cos {
    pcp(headers).map_or(maps.default_cos, |pcp| maps.pcp_to_cos[pcp])
}
