//! A running switch of a lab.

use crate::lab::plan::SwitchPlan;
use crate::netns::Netns;
use crate::process::{Niceness, Process};
use crate::wait::wait_for;
use crate::{binaries, LabError};
use holdfast_api::client::{Client, ClientError};
use holdfast_api::message::{
    Call, EcnReply, EcnStatus, Edge, Event, EventKind, Events, EventsReply, Occurrence, PfcPort,
    PfcReply, PgFilter, PgReply, PgStatus, Ping, PongReply, PortFilter, PortName, PortStatus,
    PortsReply, QueueFilter, QueueReply, QueueStatus, Trace, TraceReply,
};
use nix::sys::signal::Signal;
use serde::de::DeserializeOwned;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// Until it answers: memory, sockets, links.
const BOOT: Duration = Duration::from_secs(30);
/// It drains for up to a second (SPEC 14); the rest is the machine's.
const SHUTDOWN: Duration = Duration::from_secs(15);

/// A running switch. Dropping it kills it.
#[derive(Debug)]
pub struct Switch {
    name: String,
    config: PathBuf,
    socket: PathBuf,
    client: Client,
    process: Process,
}

impl Switch {
    /// Writes its files, starts it in `netns` and waits until it answers.
    pub(crate) fn start(plan: &SwitchPlan, netns: &Netns, folder: &Path) -> Result<Self, LabError> {
        let socket = folder.join(format!("{}.sock", plan.name));
        let config = folder.join(format!("{}.toml", plan.name));
        let profile = plan.profile.write(&plan.name, folder)?;
        fs::write(&config, plan.toml(netns.name(), &socket, &profile))
            .map_err(|source| LabError::File { path: config.clone(), source })?;
        let (process, client) = start_process(&plan.name, &config, &socket)?;
        let name = plan.name.clone();
        Ok(Self { name, config, socket, client, process })
    }

    /// Ends it as an operator would, and starts it again from its files.
    ///
    /// # Errors
    /// [`LabError`] if it doesn't come up.
    pub fn restart(&mut self) -> Result<(), LabError> {
        self.stop()?;
        self.start_again()
    }

    /// Starts it again from its files, after it has ended or was killed.
    ///
    /// # Errors
    /// [`LabError`] if it doesn't come up.
    pub fn start_again(&mut self) -> Result<(), LabError> {
        (self.process, self.client) = start_process(&self.name, &self.config, &self.socket)?;
        Ok(())
    }

    /// Its own file.
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// Its profile's file.
    pub fn profile_file(&self) -> PathBuf {
        self.config.with_extension("profile.toml")
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its control socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Runs the command line on it and waits for its end.
    ///
    /// # Errors
    /// [`LabError::NoBinary`], [`LabError::Start`].
    pub fn cli(&self, arguments: &[&str]) -> Result<Output, LabError> {
        let program = binaries::find(binaries::CLI)?;
        let mut command = Command::new(&program);
        command.env("HOLDFAST_SOCKET", &self.socket).args(arguments);
        let started = command.output();
        started.map_err(|source| LabError::Start { program: program.display().to_string(), source })
    }

    /// Its process.
    pub const fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Ends it as an operator would and insists on exit code 0.
    pub(crate) fn stop(&mut self) -> Result<(), LabError> {
        self.process.signal(Signal::SIGTERM);
        self.process.wait_for_success(SHUTDOWN)
    }

    /// Any call.
    ///
    /// # Errors
    /// [`LabError::Control`].
    pub fn call<T: DeserializeOwned>(&mut self, call: Call) -> Result<T, LabError> {
        Ok(self.client.call(call)?)
    }

    /// All its ports.
    ///
    /// # Errors
    /// [`LabError::Control`].
    pub fn ports(&mut self) -> Result<PortsReply, LabError> {
        self.call(Call::ShowPorts(PortFilter::default()))
    }

    /// One port.
    ///
    /// # Errors
    /// [`LabError::Control`].
    pub fn port(&mut self, port: &str) -> Result<PortStatus, LabError> {
        let reply: PortsReply = self.call(Call::ShowPorts(filter(port)))?;
        one(reply.ports, "port", port)
    }

    /// One PG.
    ///
    /// # Errors
    /// [`LabError::Control`].
    pub fn pg(&mut self, port: &str, pg: u8) -> Result<PgStatus, LabError> {
        let wanted = PgFilter { port: Some(port.to_owned()), pg: Some(pg) };
        let reply: PgReply = self.call(Call::ShowPg(wanted))?;
        one(reply.pgs, "PG of port", port)
    }

    /// One egress queue.
    ///
    /// # Errors
    /// [`LabError::Control`].
    pub fn queue(&mut self, port: &str, queue: u8) -> Result<QueueStatus, LabError> {
        let wanted = QueueFilter { port: Some(port.to_owned()), queue: Some(queue) };
        let reply: QueueReply = self.call(Call::ShowQueue(wanted))?;
        one(reply.queues, "queue of port", port)
    }

    /// Marking of one egress queue.
    ///
    /// # Errors
    /// [`LabError::Control`].
    pub fn ecn(&mut self, port: &str, queue: u8) -> Result<EcnStatus, LabError> {
        let wanted = QueueFilter { port: Some(port.to_owned()), queue: Some(queue) };
        let reply: EcnReply = self.call(Call::ShowEcn(wanted))?;
        one(reply.queues, "queue of port", port)
    }

    /// PFC of one port.
    ///
    /// # Errors
    /// [`LabError::Control`].
    pub fn pfc(&mut self, port: &str) -> Result<PfcPort, LabError> {
        let reply: PfcReply = self.call(Call::ShowPfc(filter(port)))?;
        one(reply.ports, "port", port)
    }

    /// What is in its journal, oldest first.
    ///
    /// # Errors
    /// [`LabError::Control`].
    pub fn journal(&mut self) -> Result<Vec<Occurrence>, LabError> {
        let (mut all, mut since) = (Vec::new(), None);
        loop {
            let page: EventsReply =
                self.call(Call::Events(Events { since, ..Events::default() }))?;
            if page.entries.is_empty() {
                return Ok(all);
            }
            all.extend(page.entries.into_iter().map(|entry| entry.what));
            since = Some(page.next);
        }
    }

    /// Stops a port's egress.
    ///
    /// # Errors
    /// [`LabError::Control`].
    pub fn hold(&mut self, port: &str) -> Result<(), LabError> {
        self.call(Call::PortHold(PortName { port: port.to_owned() })).map(|_: serde_json::Value| ())
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// [`LabError::Control`].
    pub fn release(&mut self, port: &str) -> Result<(), LabError> {
        self.call(Call::PortRelease(PortName { port: port.to_owned() }))
            .map(|_: serde_json::Value| ())
    }

    /// The edges of one PG since the start, oldest first.
    ///
    /// # Errors
    /// [`LabError::Control`].
    pub fn edges(&mut self, port: &str, pg: u8) -> Result<Vec<EdgeRecord>, LabError> {
        let mut edges = Vec::new();
        let mut since = None;
        loop {
            let kinds = Some(vec![EventKind::Edge]);
            let trace = Trace { since, kinds, port: Some(port.to_owned()), ..Trace::default() };
            let reply: TraceReply = self.call(Call::Trace(trace))?;
            if reply.events.is_empty() {
                return Ok(edges);
            }
            let page = reply.events.iter().filter_map(EdgeRecord::of);
            edges.extend(page.filter(|edge| edge.pg == pg));
            since = Some(reply.next);
        }
    }
}

/// An edge of a PG with its account after it, cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeRecord {
    /// When, ns of the switch's clock.
    pub time_ns: u64,
    /// The PG.
    pub pg: u8,
    /// Which way.
    pub edge: Edge,
    /// What decided it.
    pub cause: String,
    /// Guaranteed in use.
    pub guaranteed: u32,
    /// Service in use.
    pub service: u32,
    /// Headroom in use.
    pub headroom: u32,
    /// The limit then.
    pub limit: u32,
    /// The resume level then.
    pub resume: u32,
}

impl EdgeRecord {
    fn of(event: &Event) -> Option<Self> {
        let Event::Edge {
            time_ns,
            pg,
            edge,
            cause,
            guaranteed,
            service,
            headroom,
            limit,
            resume,
            ..
        } = event
        else {
            return None;
        };
        Some(Self {
            time_ns: *time_ns,
            pg: *pg,
            edge: *edge,
            cause: cause.clone(),
            guaranteed: *guaranteed,
            service: *service,
            headroom: *headroom,
            limit: *limit,
            resume: *resume,
        })
    }
}

fn filter(port: &str) -> PortFilter {
    PortFilter { port: Some(port.to_owned()) }
}

fn one<T>(all: Vec<T>, kind: &'static str, name: &str) -> Result<T, LabError> {
    let unknown = LabError::Unknown { kind, name: name.to_owned() };
    all.into_iter().next().ok_or(unknown)
}

fn start_process(name: &str, config: &Path, socket: &Path) -> Result<(Process, Client), LabError> {
    let mut command = Command::new(binaries::find(binaries::DATAPLANE)?);
    command.arg(config);
    let folder = config.parent().unwrap_or(Path::new("."));
    let mut process = Process::start(name, Niceness::Switch, &command, folder)?;
    let what = format!("switch {name} doesn't answer");
    let client = wait_for(&what, BOOT, || {
        if process.status()?.is_some() {
            process.wait_for_success(Duration::ZERO)?;
        }
        // The socket is there before the switch is: only an answer says that it is up.
        let answered = Client::connect(socket)
            .and_then(|mut client| client.call::<PongReply>(Call::Ping(Ping {})).map(|_| client));
        match answered {
            Ok(client) => Ok(Some(client)),
            Err(ClientError::Unreachable { .. } | ClientError::Broken { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    })?;
    Ok((process, client))
}
