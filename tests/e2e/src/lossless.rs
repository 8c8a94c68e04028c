//! What a test must show before it says "lossless" (SPEC 14): the path was exercised, and nothing
//! of it is missing.

use crate::{Lab, LabError};
use serde_json::Value;
use std::path::PathBuf;

/// A PG's account of being lossless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// XOFF edges.
    pub xoff: u64,
    /// XON edges.
    pub xon: u64,
    /// Headroom's high watermark, cells.
    pub headroom: u32,
    /// Lossless frames lost, by the PG's and its port's counters.
    pub violations: u64,
    /// Frames that the kernel lost before the switch saw them.
    pub overrun: u64,
}

/// Reads the evidence of a PG of switch `sw`.
///
/// # Errors
/// [`LabError::Control`], [`LabError::Unknown`].
pub fn evidence(lab: &mut Lab, port: &str, pg: u8) -> Result<Evidence, LabError> {
    let switch = lab.switch("sw")?;
    let (pg, port) = (switch.pg(port, pg)?, switch.port(port)?);
    Ok(Evidence {
        xoff: pg.xoff_edges,
        xon: pg.xon_edges,
        headroom: pg.watermark.persistent.headroom,
        violations: pg.lossless_violations + port.lossless_violations,
        overrun: port.receive_overrun,
    })
}

/// Fails unless the PG was paused, resumed and used its Headroom, and lost nothing.
///
/// # Errors
/// As [`evidence`]; [`LabError::Content`] with what is missing.
pub fn assert_exercised(lab: &mut Lab, port: &str, pg: u8) -> Result<(), LabError> {
    let found = evidence(lab, port, pg)?;
    let Evidence { xoff, xon, headroom, violations, overrun } = found;
    if xoff > 0 && xon > 0 && headroom > 0 && violations == 0 && overrun == 0 {
        return Ok(());
    }
    let path = PathBuf::from(format!("{port} pg {pg}"));
    Err(LabError::Content { path, why: format!("not shown to be lossless: {found:?}") })
}

/// Fails unless each flow of the sender's report has arrived whole: the receiver expects the PSN
/// that the sender would send next, and nothing was lost or came twice.
///
/// # Errors
/// [`LabError::Content`] with the flow that differs.
pub fn assert_same_psn(sent: &Value, received: &Value) -> Result<(), LabError> {
    let content = |why: String| LabError::Content { path: PathBuf::from("reports"), why };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let flows = list(&sent["flows_sent"]);
    if flows.is_empty() {
        return Err(content(format!("no flow was sent: {sent}")));
    }
    for flow in flows {
        let same = |arrived: &Value| arrived["qp"] == flow["qp"];
        let arrived = list(&received["flows_received"]).into_iter().find(same).unwrap_or_default();
        let nothing = |key: &str| arrived[key] == 0;
        let whole = arrived["next_psn"] == flow["next_psn"]
            && arrived["received"] == flow["sent"]
            && nothing("lost")
            && nothing("duplicates");
        if !whole {
            return Err(content(format!("sent {flow}, arrived {arrived}")));
        }
    }
    Ok(())
}
