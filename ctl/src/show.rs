//! `holdfast show …`: one call, one or a few tables.

use crate::cli::{OnPort, OnQueue, Show, Target};
use crate::connect::{answer, connect, decode};
use crate::print;
use crate::CommandError;
use holdfast_api::client::ClientError;
use holdfast_api::message::{
    Call, ErrorBody, ErrorCode, FdbEntry, FdbReply, PgFilter, PortFilter, ProfileReply,
    QueueFilter, ShowBuffer, ShowFdb, ShowProfile,
};
use serde_json::json;

mod account;
mod host;
mod pfc;
mod port;
mod profile;

/// Shows what was asked for.
pub(crate) fn show(target: &Target, what: &Show) -> Result<(), CommandError> {
    match what {
        Show::Ports { on, notes } => {
            answer(target, Call::ShowPorts(on.into()), |reply| port::ports(reply, *notes))
        }
        Show::Classify(on) => answer(target, Call::ShowClassify(on.into()), port::classify),
        Show::Pg { port, pg } => {
            let filter = PgFilter { port: port.clone(), pg: *pg };
            answer(target, Call::ShowPg(filter), account::pgs)
        }
        Show::Queue(on) => answer(target, Call::ShowQueue(on.into()), account::queues),
        Show::Pfc(on) => answer(target, Call::ShowPfc(on.into()), pfc::pfc),
        Show::Watchdog(on) => answer(target, Call::ShowWatchdog(on.into()), pfc::watchdog),
        Show::Ecn(on) => answer(target, Call::ShowEcn(on.into()), account::ecn),
        Show::Buffer => answer(target, Call::ShowBuffer(ShowBuffer {}), account::buffer),
        Show::Fdb { port, vlan } => fdb(target, port.as_deref(), *vlan),
        Show::Host(on) => answer(target, Call::ShowHost(on.into()), host::host),
        Show::Profile(on) => show_profile(target, on.port.as_deref()),
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

/// The profile in force, or what one port has of it.
fn show_profile(target: &Target, port: Option<&str>) -> Result<(), CommandError> {
    let Some(port) = port else {
        return answer(target, Call::ShowProfile(ShowProfile {}), profile::profile);
    };
    let mut client = connect(target)?;
    let value = client.call_raw(Call::ShowProfile(ShowProfile {}))?;
    let mut reply: ProfileReply = decode(&client, "show_profile", value)?;
    let names: Vec<String> = reply.ports.iter().map(|entry| entry.port.clone()).collect();
    reply.ports.retain(|entry| entry.port == port);
    if reply.ports.is_empty() {
        let body = ErrorBody::new(ErrorCode::UnknownPort, format!("there is no port {port:?}"));
        let body = body.at("port").fix(format!("use one of {}", names.join(", ")));
        return Err(ClientError::Refused(body).into());
    }
    let text = if target.json { format!("{}\n", json!(reply)) } else { profile::profile(&reply) };
    Ok(print(&text)?)
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
