//! `holdfast lint --live`: what a running switch has in force, and what the machine does to it.

use super::{Linted, PortShown};
use crate::cli::lint::LintArguments;
use crate::cli::Target;
use crate::connect::connect;
use crate::CommandError;
use holdfast_api::client::Client;
use holdfast_api::message::{
    Call, HostReply, PfcReply, Ping, PongReply, PortFilter, PortsReply, ProfileReply, ShowProfile,
};
use holdfast_plan::lint::{self, Options, Running};
use holdfast_plan::PlanError;

/// What was asked of the switch.
struct Answers {
    name: String,
    profile: ProfileReply,
    ports: PortsReply,
    host: HostReply,
    pfc: Vec<PfcReply>,
}

fn ask(client: &mut Client) -> Result<Answers, CommandError> {
    let all = || PortFilter { port: None };
    let pong: PongReply = client.call(Call::Ping(Ping {}))?;
    let profile: ProfileReply = client.call(Call::ShowProfile(ShowProfile {}))?;
    let ports: PortsReply = client.call(Call::ShowPorts(all()))?;
    let mut host = HostReply { ports: Vec::new(), workers: Vec::new() };
    let mut pfc = Vec::new();
    // Port by port: each has the whole second to be read in, and a histogram of its own.
    for port in &profile.ports {
        let one = || PortFilter { port: Some(port.port.clone()) };
        let below: HostReply = client.call(Call::ShowHost(one()))?;
        host.ports.extend(below.ports);
        host.workers = below.workers;
        pfc.push(client.call(Call::ShowPfc(one()))?);
    }
    Ok(Answers { name: pong.name, profile, ports, host, pfc })
}

/// Asks the switch and judges its answers.
pub(super) fn live(target: &Target, arguments: &LintArguments) -> Result<Linted, CommandError> {
    let Answers { name, profile, ports, host, pfc } = ask(&mut connect(target)?)?;
    let running = Running { profile: &profile, ports: &ports, host: &host, pfc: &pfc };
    let options = Options { queues_at_once: arguments.queues_at_once };
    let mut report = lint::running(&running, options).map_err(PlanError::from)?;
    report = report.merged_live(profile.ports.len());
    if arguments.all {
        report = report.unfolded();
    }
    let shown = profile.ports.iter().map(|port| PortShown {
        name: port.port.clone(),
        speed_bits_per_second: port.speed_bits_per_second,
        mtu: port.mtu,
    });
    let shown = shown.collect();
    let mut linted =
        Linted::new(format!("switch {name}"), Some(profile.name), shown, false, report);
    let unread = host.ports.into_iter().filter_map(|port| Some((port.port, port.unread?)));
    linted.unread = unread.map(|(port, why)| format!("port {port}: {why}")).collect();
    Ok(linted)
}
