//! `holdfast show …`: one call, one or a few tables.

use crate::cli::{OnPort, OnQueue, Show, Target};
use crate::connect::{answer, connect, decode};
use crate::print;
use crate::CommandError;
use holdfast_api::message::{
    Call, FdbEntry, FdbReply, PgFilter, PortFilter, QueueFilter, ShowBuffer, ShowFdb, ShowProfile,
};
use serde_json::json;

mod account;
mod pfc;
mod port;
mod profile;

/// Shows what was asked for.
pub(crate) fn show(target: &Target, what: &Show) -> Result<(), CommandError> {
    match what {
        Show::Ports(on) => answer(target, Call::ShowPorts(on.into()), port::ports),
        Show::Classify(on) => answer(target, Call::ShowClassify(on.into()), port::classify),
        Show::Pg { port, pg } => {
            let filter = PgFilter { port: port.clone(), pg: *pg };
            answer(target, Call::ShowPg(filter), account::pgs)
        }
        Show::Queue(on) => answer(target, Call::ShowQueue(on.into()), account::queues),
        Show::Pfc(on) => answer(target, Call::ShowPfc(on.into()), pfc::pfc),
        Show::Ecn(on) => answer(target, Call::ShowEcn(on.into()), account::ecn),
        Show::Buffer => answer(target, Call::ShowBuffer(ShowBuffer {}), account::buffer),
        Show::Fdb { port, vlan } => fdb(target, port.as_deref(), *vlan),
        Show::Profile => answer(target, Call::ShowProfile(ShowProfile {}), profile::profile),
    }
}

impl From<&OnPort> for PortFilter {
    fn from(on: &OnPort) -> Self {
        Self { port: on.port.clone() }
    }
}

impl From<&OnQueue> for QueueFilter {
    fn from(on: &OnQueue) -> Self {
        Self { port: on.port.clone(), queue: on.queue }
    }
}

/// All pages; as JSON they are one object, as if the answer had had no limit.
fn fdb(target: &Target, port: Option<&str>, vlan: Option<u16>) -> Result<(), CommandError> {
    let mut client = connect(target)?;
    let mut entries: Vec<FdbEntry> = Vec::new();
    let mut from = None;
    loop {
        let page = ShowFdb { port: port.map(str::to_owned), vlan, from, max: None };
        let value = client.call_raw(Call::ShowFdb(page))?;
        let mut reply: FdbReply = decode(&client, "show_fdb", value)?;
        entries.append(&mut reply.entries);
        from = reply.next;
        if from.is_none() {
            reply.entries = entries;
            let text = if target.json { format!("{}\n", json!(reply)) } else { port::fdb(&reply) };
            return Ok(print(&text)?);
        }
    }
}
