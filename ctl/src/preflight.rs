//! `holdfast preflight`: whether PFC gets through a port's NIC both ways (SPEC 9), by real frames
//! between two ports that are joined by a cable, or by what the peer of one port did.

mod judge;

use crate::cli::preflight::PreflightArguments;
use crate::cli::Target;
use crate::connect::connect;
use crate::layout::prose_table;
use crate::{print, CommandError};
use holdfast_api::client::Client;
use holdfast_api::message::{
    Call, HostReply, PfcPort, PfcReply, PortFilter, PortStatus, PortsReply, Preflight,
    PreflightKind, PreflightReply,
};
use holdfast_api::nics::{known, Nic};
use judge::{alone, Before, Count, Run, State, Verdict, BUSY};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Frames of each kind, each way.
const FRAMES: u8 = 3;
/// How long a port is looked at for traffic.
const LOOK: Duration = Duration::from_millis(500);
/// How long frames are waited for.
const ARRIVAL: Duration = Duration::from_secs(2);
/// How often is looked.
const PAUSE: Duration = Duration::from_millis(20);

/// One port in the answer.
#[derive(Debug, Serialize)]
struct Found {
    port: String,
    driver: Option<String>,
    /// What is known of its driver's NICs.
    known: Option<String>,
    /// PFC that the switch sends.
    sends: Verdict,
    /// PFC that comes.
    receives: Verdict,
}

/// The frames of one way in the answer.
#[derive(Debug, Serialize)]
struct Sent {
    from: String,
    to: String,
    frames: BTreeMap<PreflightKind, Count>,
}

/// What the switch says of one port.
struct Sight {
    status: PortStatus,
    pfc: PfcPort,
    driver: Option<String>,
}

/// Looks, says what it will do, does it, and says what follows.
pub(crate) fn preflight(
    target: &Target,
    arguments: &PreflightArguments,
) -> Result<(), CommandError> {
    let mut client = connect(target)?;
    let port = Sight::take(&mut client, &arguments.port)?;
    let (ports, sent) = match &arguments.peer {
        None => (vec![by_itself(&mut client, port, arguments.wait)?], Vec::new()),
        Some(peer) if *peer == arguments.port => {
            let message =
                format!("--peer {peer} is the port itself: name the one at the other end");
            return Err(CommandError::Usage(message));
        }
        Some(peer) => {
            let peer = Sight::take(&mut client, peer)?;
            if !arguments.force {
                refuse_if_busy(&mut client, [&port, &peer])?;
            }
            between(&mut client, [&port, &peer])?
        }
    };
    let text = match target.json {
        true => format!("{}\n", json!({ "ports": ports, "sent": sent })),
        false => text(&ports, &sent),
    };
    print(&text)?;
    let states = ports.iter().flat_map(|port| {
        [(&port.port, "sends", port.sends.state), (&port.port, "receives", port.receives.state)]
    });
    let bad = states.filter(|(_, _, state)| *state != State::Works);
    let bad: Vec<String> =
        bad.map(|(port, way, state)| format!("{port} {way}: {}", state.name())).collect();
    match bad.is_empty() {
        true => Ok(()),
        false => Err(CommandError::Found(format!("not shown to work: {}", bad.join(", ")))),
    }
}

impl Sight {
    fn take(client: &mut Client, port: &str) -> Result<Self, CommandError> {
        let filter = || PortFilter { port: Some(port.to_owned()) };
        let host: HostReply = client.call(Call::ShowHost(filter()))?;
        let netdev = host.ports.into_iter().next().and_then(|port| port.netdev);
        let driver = netdev.map(|netdev| netdev.driver);
        Ok(Self { status: status(client, port)?, pfc: pfc(client, port)?, driver })
    }

    fn name(&self) -> &str {
        &self.status.port
    }

    fn nic(&self) -> Option<&'static Nic> {
        self.driver.as_deref().and_then(known)
    }

    fn before(&self) -> Before {
        Before { heard: heard(&self.pfc), peer: self.status.peer, nic: self.nic() }
    }

    fn found(&self, sends: Verdict, receives: Verdict) -> Found {
        let known = self.nic().map(|nic| {
            let (sends, receives) = (nic.sends.name(), nic.receives.name());
            format!("sent {sends}, received {receives}: {}", nic.note)
        });
        let (port, driver) = (self.name().to_owned(), self.driver.clone());
        Found { port, driver, known, sends, receives }
    }
}

fn status(client: &mut Client, port: &str) -> Result<PortStatus, CommandError> {
    let filter = PortFilter { port: Some(port.to_owned()) };
    let reply: PortsReply = client.call(Call::ShowPorts(filter))?;
    reply.ports.into_iter().next().ok_or_else(|| gone(port))
}

fn pfc(client: &mut Client, port: &str) -> Result<PfcPort, CommandError> {
    let filter = PortFilter { port: Some(port.to_owned()) };
    let reply: PfcReply = client.call(Call::ShowPfc(filter))?;
    reply.ports.into_iter().next().ok_or_else(|| gone(port))
}

fn gone(port: &str) -> CommandError {
    CommandError::Found(format!("port {port} is gone; see holdfast show ports"))
}

/// Frames with PFC's opcode that the port has received, whatever they say.
fn heard(pfc: &PfcPort) -> u64 {
    let of = |priority: &holdfast_api::message::PfcPriority| {
        priority.received.xoff + priority.received.refresh + priority.received.xon
    };
    pfc.priorities.iter().map(of).sum::<u64>() + invalid(pfc, "empty_vector")
}

fn invalid(pfc: &PfcPort, kind: &str) -> u64 {
    pfc.invalid.get(kind).copied().unwrap_or_default()
}

/// What is seen of a port alone; nothing is sent.
fn by_itself(client: &mut Client, mut port: Sight, wait: u64) -> Result<Found, CommandError> {
    eprintln!("preflight: looks at what the peer of {} did; sends nothing", port.name());
    let end = Instant::now() + Duration::from_secs(wait);
    while heard(&port.pfc) == 0 && Instant::now() < end {
        sleep(PAUSE);
        let name = port.name().to_owned();
        port.pfc = pfc(client, &name)?;
    }
    let (sends, receives) = alone(port.name(), port.before(), wait);
    Ok(port.found(sends, receives))
}

/// A port that carries traffic is left alone: the frames go ahead of data.
fn refuse_if_busy(client: &mut Client, ports: [&Sight; 2]) -> Result<(), CommandError> {
    let frames = |status: &PortStatus| status.rx_frames + status.tx_frames;
    let mut before = Vec::new();
    for port in ports {
        before.push(frames(&status(client, port.name())?));
    }
    sleep(LOOK);
    for (port, before) in ports.into_iter().zip(before) {
        let moved = frames(&status(client, port.name())?).saturating_sub(before);
        if moved > BUSY {
            let (name, span) = (port.name(), LOOK.as_millis());
            return Err(CommandError::Found(format!(
                "port {name} carries traffic: {moved} frames within {span}ms, at most {BUSY}; \
                 stop it, or use --force"
            )));
        }
    }
    Ok(())
}

/// A priority without PFC at either port, for a PFC frame that can end no pause.
fn free_priority(ports: [&Sight; 2]) -> Option<u8> {
    let free = |number: &u8| {
        let of = |port: &Sight| port.pfc.priorities.get(usize::from(*number)).map(|p| p.enabled);
        ports.iter().all(|port| of(port) == Some(false))
    };
    (0..8).rev().find(free)
}

type Both = (Vec<Found>, Vec<Sent>);

/// Frames both ways.
fn between(client: &mut Client, ports: [&Sight; 2]) -> Result<Both, CommandError> {
    let priority = free_priority(ports);
    let mut kinds = vec![PreflightKind::UnknownOpcode, PreflightKind::EmptyVector];
    kinds.extend(priority.map(|_| PreflightKind::Resume));
    // A wire carries whatever isn't MAC control on to its other end.
    if ports.iter().all(|port| port.status.wire.is_none()) {
        kinds.insert(0, PreflightKind::Link);
    }
    let [one, other] = ports.map(Sight::name);
    let all = kinds.len() * usize::from(FRAMES);
    eprintln!(
        "preflight: sends {all} frames of 60 bytes from {one} to {other} and {all} back; none of \
         them pauses anybody"
    );
    let mut sent = Vec::new();
    let mut verdicts = Vec::new();
    for [from, to] in [[ports[0], ports[1]], [ports[1], ports[0]]] {
        let counts = send_and_count(client, [from, to], &kinds, priority)?;
        let (from, to) = ((from.name(), from.before()), (to.name(), to.before()));
        let names = (from.0.to_owned(), to.0.to_owned());
        let run = Run { from, to, counts };
        verdicts.push(run.verdicts());
        sent.push(Sent { from: names.0, to: names.1, frames: run.counts });
    }
    let mut found = Vec::new();
    if let [there, back] = verdicts.as_slice() {
        found.push(ports[0].found(there.0.clone(), back.1.clone()));
        found.push(ports[1].found(back.0.clone(), there.1.clone()));
    }
    Ok((found, sent))
}

/// Sends the frames of each kind and waits for them at the other port.
fn send_and_count(
    client: &mut Client,
    [from, to]: [&Sight; 2],
    kinds: &[PreflightKind],
    priority: Option<u8>,
) -> Result<BTreeMap<PreflightKind, Count>, CommandError> {
    let before = counted(client, to.name(), kinds, priority)?;
    let mut counts = BTreeMap::new();
    for kind in kinds {
        let priority = priority.filter(|_| *kind == PreflightKind::Resume);
        let port = from.name().to_owned();
        let frames = Preflight { port, kind: *kind, frames: FRAMES, priority };
        let reply: PreflightReply = client.call(Call::Preflight(frames))?;
        counts.insert(*kind, Count { sent: reply.sent.into(), arrived: 0 });
    }
    let end = Instant::now() + ARRIVAL;
    loop {
        let now = counted(client, to.name(), kinds, priority)?;
        for (kind, count) in &mut counts {
            let of = |counted: &BTreeMap<_, u64>| counted.get(kind).copied().unwrap_or_default();
            count.arrived = of(&now).saturating_sub(of(&before)).min(count.sent);
        }
        let all = counts.values().all(|count| count.arrived == count.sent);
        if all || Instant::now() >= end {
            return Ok(counts);
        }
        sleep(PAUSE);
    }
}

/// What a port has counted of each kind.
fn counted(
    client: &mut Client,
    port: &str,
    kinds: &[PreflightKind],
    priority: Option<u8>,
) -> Result<BTreeMap<PreflightKind, u64>, CommandError> {
    let (status, pfc) = (status(client, port)?, pfc(client, port)?);
    let of = |kind: &PreflightKind| match kind {
        PreflightKind::Link => status.drops.get("reserved_group").copied().unwrap_or_default(),
        PreflightKind::UnknownOpcode => invalid(&pfc, "unknown_opcode"),
        PreflightKind::EmptyVector => invalid(&pfc, "empty_vector"),
        PreflightKind::Resume => {
            let of = |number: u8| pfc.priorities.get(usize::from(number));
            priority.and_then(of).map_or(0, |priority| priority.received.xon)
        }
    };
    Ok(kinds.iter().map(|kind| (*kind, of(kind))).collect())
}

fn text(ports: &[Found], sent: &[Sent]) -> String {
    let mut text = String::new();
    for way in sent {
        let frames = way.frames.iter().map(|(kind, count)| {
            let kind = serde_json::to_value(kind).unwrap_or_default();
            format!("{} {}/{}", kind.as_str().unwrap_or_default(), count.arrived, count.sent)
        });
        let frames: Vec<String> = frames.collect();
        text += &format!("{} -> {}: arrived {}\n", way.from, way.to, frames.join(", "));
    }
    let mut out = prose_table(["port", "way", "PFC", "how it is known"], 3..4);
    for port in ports {
        for (way, verdict) in [("sends", &port.sends), ("receives", &port.receives)] {
            out.add_row([port.port.as_str(), way, verdict.state.name(), &verdict.why]);
        }
    }
    text += &format!("{out}\n");
    for port in ports {
        let driver = port.driver.as_deref().unwrap_or("unknown");
        let known = port.known.as_deref().unwrap_or("nothing is known of its NICs");
        text += &format!("{} (driver {driver}): {known}\n", port.port);
    }
    text
}
