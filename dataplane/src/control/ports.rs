//! Ports that come and go: what the keeper of ports asks, `port add` and `port remove`.

use super::dispatch::{reply, Answer};
use super::Console;
use crate::ports::{KeeperOrder, PortCall};
use crate::report::PortFacts;
use crossbeam::channel::{bounded, Receiver, RecvTimeoutError, Sender};
use holdfast_api::amount::{CellAmount, TotalAmount};
use holdfast_api::message::{Done, ErrorBody, ErrorCode, PortAdd};
use holdfast_api::switch_doc::{PortDoc, SwitchDoc};
use holdfast_core::ids::{PgId, PortId, WorkerId};
use holdfast_core::io::PortIo;
use holdfast_core::profile::{PortSpec, Profile, ProfileSpec};
use holdfast_core::topology::{PortPlace, Topology};
use holdfast_core::units::Cells;
use holdfast_plan::{resolve, PlanError, ProfilePlan, SwitchFacts};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a port may take to be opened or closed before the call fails; hundreds of milliseconds
/// are usual.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the keeper's questions are looked at while it is waited for.
const LOOK: Duration = Duration::from_millis(2);

/// The control thread's dealings with the keeper of ports.
pub(crate) struct PortDesk {
    /// Where the keeper asks.
    pub(crate) calls: Receiver<PortCall>,
    /// Where it takes orders.
    pub(crate) keeper: Sender<KeeperOrder>,
    /// The switch file, with the ports that there are now.
    pub(crate) switch: SwitchDoc,
    /// Places for ports beyond those of the switch file.
    pub(crate) spare: u32,
    /// The port that is being added.
    pub(crate) adding: Option<(usize, PortDoc)>,
}

impl PortDesk {
    /// Of the switch that this file describes.
    pub(crate) fn new(
        calls: Receiver<PortCall>,
        keeper: Sender<KeeperOrder>,
        switch: SwitchDoc,
    ) -> Self {
        Self { calls, keeper, spare: switch.spare_ports, switch, adding: None }
    }

    /// A port is no more, nor are its static FDB entries.
    fn forget(&mut self, name: &str) {
        self.switch.ports.retain(|port| port.name != name);
        self.switch.fdb.statics.retain(|entry| entry.port != name);
    }
}

/// In words for people.
type Why = String;

impl<P: PortIo + 'static> Console<P> {
    /// Answers what the keeper of ports has asked.
    pub(super) fn serve_ports(&mut self) {
        while let Ok(call) = self.desk.calls.try_recv() {
            let PortCall::Opened { number, mtu, facts, lossless, answer } = call;
            let adding = self.desk.adding.take_if(|(place, _)| *place == number);
            let fits = match adding {
                Some((_, doc)) => self.take_in(number, &doc, mtu),
                None => self.follow_mtu(number, mtu),
            };
            let fits = fits.and_then(|()| {
                let shedding = &mut self.applying.shedding;
                if lossless.is_some() {
                    shedding.replace(number, lossless);
                }
                let told = shedding.follow(self.board.profile.spec());
                told.map_err(|error| format!("its XDP program can't be told: {error}"))
            });
            if fits.is_ok() {
                self.know(number, *facts);
            }
            // The keeper waits.
            let _ = answer.send(fits.map(|()| Arc::clone(&self.board.profile)));
        }
    }

    /// A port is there as `facts` say from now on.
    fn know(&mut self, number: usize, facts: PortFacts) {
        let now = self.now();
        if let Some(place) = self.board.ports.get_mut(number) {
            let since = place.as_ref().map_or(now, |before| before.since);
            *place = Some(PortFacts { since, ..facts });
            self.published.follow(&self.board);
        }
    }

    /// Puts the running profile into force with another MTU at one port, if it fits: its largest
    /// frame and what may be in its TX ring. All else stays as it was set, also since the profile
    /// was applied.
    fn follow_mtu(&mut self, number: usize, mtu: u16) -> Result<(), Why> {
        let mut facts = self.applying.facts.clone();
        let port = facts.ports.get_mut(number).filter(|port| !port.is_vacant());
        let port = port.ok_or("there is no such port any more")?;
        if std::mem::replace(&mut port.mtu, mtu) == mtu {
            return Ok(());
        }
        let refused = |why: &str| format!("the profile doesn't fit MTU {mtu}: {why}");
        let plan = self.replan(&facts).map_err(|why| refused(&why))?;
        let mut spec = self.board.profile.spec().clone();
        let both = plan.spec().ports.get(number).zip(spec.ports.get_mut(number));
        let (planned, running) = both.ok_or("the profile doesn't have the port")?;
        (running.mtu, running.tx_inflight) = (planned.mtu, planned.tx_inflight);
        self.put_in(spec).map_err(|why| refused(&why))?;
        self.applying.facts = facts;
        Ok(())
    }

    /// Plans the profile in force for other ports.
    fn replan(&self, facts: &SwitchFacts) -> Result<ProfilePlan, Why> {
        let mut document = self.applying.document.clone();
        // What it says of ports that aren't there counts when they are.
        document.ports.retain(|name, _| facts.ports.iter().any(|port| port.name == *name));
        let total = self.board.profile.spec().total;
        document.buffer.total = TotalAmount::Of(CellAmount::Cells(total.0));
        resolve(&document, facts).map_err(|error| error.to_string())
    }

    fn put_in(&mut self, spec: ProfileSpec) -> Result<(), Why> {
        let next = Profile::new(self.generation + 1, spec);
        let next = next.map_err(|error| PlanError::from(error).to_string())?;
        self.adopt(Arc::new(next)).map_err(|error| error.to_string())
    }

    /// The profile and the topology have a port more from now on.
    fn take_in(&mut self, number: usize, doc: &PortDoc, mtu: u16) -> Result<(), Why> {
        let mut facts = self.applying.facts.clone();
        let place = facts.ports.get_mut(number).ok_or("there is no such place")?;
        *place = holdfast_plan::PortFacts {
            name: doc.name.clone(),
            speed: doc.speed.0,
            mtu,
            trust: doc.trust.map(Into::into),
            link_pause: doc.link_pause,
        };
        let id = PortId::from_bits(number as u8);
        self.begin_anew(id)?;
        let plan = self.replan(&facts)?;
        self.splice(number, &plan)?;
        let owner = WorkerId::new((number % self.workers.count()) as u8).unwrap_or_default();
        let place = PortPlace {
            owner,
            wire_peer: None,
            vlans: doc.vlans.clone(),
            pvid: doc.pvid.unwrap_or(1),
        };
        self.place_port(id, Some(place)).map_err(|error| error.to_string())?;
        self.applying.facts = facts;
        self.desk.switch.ports.push(doc.clone());
        Ok(())
    }

    /// The running profile with what the plan has at one place.
    fn splice(&mut self, number: usize, plan: &ProfilePlan) -> Result<(), Why> {
        let mut spec = self.board.profile.spec().clone();
        let both = plan.spec().ports.get(number).zip(spec.ports.get_mut(number));
        let (planned, running) = both.ok_or("the profile doesn't have the place")?;
        running.clone_from(planned);
        spec.egress_shared = plan.spec().egress_shared;
        self.put_in(spec)?;
        self.board.headroom_terms = plan.headroom_terms().to_vec();
        Ok(())
    }

    /// What is counted by a port's number, and not by the port, begins at 0 again.
    fn begin_anew(&mut self, id: PortId) -> Result<(), Why> {
        self.order(move |worker| worker.forget_edges(id)).map_err(|error| error.to_string())?;
        self.board.shared.mmu.forget_watermarks(id);
        for (stats, _) in &self.board.threads {
            stats.losses[id].forget();
        }
        self.witness.forget(id.index());
        Ok(())
    }

    fn place_port(&mut self, id: PortId, place: Option<PortPlace>) -> Result<(), ErrorBody> {
        let topology: Arc<Topology> = Arc::new(self.board.topology.with(id, place));
        let next = Arc::clone(&topology);
        self.order(move |worker| worker.follow_topology(Arc::clone(&next)))?;
        self.board.topology = topology;
        Ok(())
    }

    /// `port add`: the keeper opens the port, and asks on its way whether it fits.
    pub(super) fn port_add(&mut self, add: &PortAdd) -> Answer {
        let doc = PortDoc::from(add);
        self.desk.switch.check_with(&doc)?;
        let number = self.free_place()?;
        self.desk.adding = Some((number, doc.clone()));
        let done =
            self.have_keeper(|answer| KeeperOrder::Add { number, doc: Box::new(doc), answer });
        self.desk.adding = None;
        done.map_err(|why| {
            let body = ErrorBody::new(ErrorCode::Refused, why).at("port").value(&add.port);
            body.fix("mend that; where cells are missing, raise spare_ports and restart")
        })?;
        reply(&Done {})
    }

    /// A place that no port has and that no frame is charged to any more.
    fn free_place(&self) -> Result<usize, ErrorBody> {
        let vacant = || (0..self.board.ports.len()).filter(|n| self.board.facts(*n).is_none());
        if let Some(number) = vacant().find(|number| self.is_empty(*number)) {
            return Ok(number);
        }
        let (message, fix) = match vacant().next() {
            Some(_) => {
                ("frames of a port that was removed still wait at others", "try again in a while")
            }
            None => (
                "no place is left for a port more",
                "remove a port, or raise spare_ports in the switch file and restart",
            ),
        };
        let (have, most) = (self.board.ports.iter().flatten().count(), self.board.ports.len());
        let body = ErrorBody::new(ErrorCode::Refused, message).at("spare_ports");
        Err(body.value(have + 1).limit(format!("{most} ports, {} spare", self.desk.spare)).fix(fix))
    }

    fn is_empty(&self, number: usize) -> bool {
        let (mmu, profile) = (&self.board.shared.mmu, &self.board.profile);
        let id = PortId::from_bits(number as u8);
        PgId::all().all(|pg| {
            let now = mmu.pg(profile, id, pg);
            [now.guaranteed, now.service, now.headroom] == [Cells::ZERO; 3]
        })
    }

    /// `port remove`: nothing is sent to it any more, the keeper ends it, and nobody knows it.
    pub(super) fn port_remove(&mut self, name: &str) -> Answer {
        let id = self.port(name)?;
        let place = self.board.topology.place(id).cloned();
        if let Some(peer) = place.as_ref().and_then(|place| place.wire_peer) {
            let message = format!("the port is wired to {}", self.board.port_name(peer));
            let body = ErrorBody::new(ErrorCode::Refused, message).at("port").value(name);
            return Err(body.fix("take both ends out of the switch file and restart"));
        }
        self.place_port(id, None)?;
        let number = id.index();
        let done = self.have_keeper(|answer| KeeperOrder::Remove { number, answer });
        if let Err(why) = done {
            self.place_port(id, place)?;
            let body = ErrorBody::new(ErrorCode::Unavailable, why).at("port").value(name);
            return Err(body.fix("try again"));
        }
        self.board.shared.fdb.forget_port(id);
        self.vacate(number)?;
        reply(&Done {})
    }

    /// Nobody knows a port any more that is closed, and what was reserved to it is free.
    fn vacate(&mut self, number: usize) -> Result<(), ErrorBody> {
        let Some(facts) = self.board.ports.get_mut(number).and_then(Option::take) else {
            return Ok(());
        };
        self.published.follow(&self.board);
        self.applying.shedding.replace(number, None);
        self.desk.forget(&facts.name);
        if let Some(place) = self.applying.facts.ports.get_mut(number) {
            *place = holdfast_plan::PortFacts::vacant();
        }
        let unfit = |why| ErrorBody::new(ErrorCode::Unavailable, why);
        match self.replan(&self.applying.facts.clone()) {
            Ok(plan) => self.splice(number, &plan).map_err(unfit),
            // What doesn't fit is of other ports: the place is free nevertheless.
            Err(_) => {
                let mut spec = self.board.profile.spec().clone();
                spec.ports.get_mut(number).into_iter().for_each(|p| *p = PortSpec::vacant());
                self.put_in(spec).map_err(unfit)
            }
        }
    }

    /// Has the keeper do something, and answers its questions meanwhile.
    fn have_keeper(
        &mut self,
        order: impl FnOnce(Sender<Result<(), Why>>) -> KeeperOrder,
    ) -> Result<(), Why> {
        let ended = || "the switch ends".to_owned();
        let (answer, answered) = bounded(1);
        self.desk.keeper.send(order(answer)).map_err(|_| ended())?;
        let patience = Instant::now() + PATIENCE;
        loop {
            self.serve_ports();
            match answered.recv_timeout(LOOK) {
                Ok(done) => return done,
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
                Err(RecvTimeoutError::Timeout) if Instant::now() > patience => {
                    let seconds = PATIENCE.as_secs();
                    return Err(format!("not done within {seconds} s; the kernel may hold it"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}
