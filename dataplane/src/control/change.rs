//! Calls that change the running switch: all of it or nothing, and logged with who asked.

use super::dispatch::{is_transparent, reply, Answer};
use super::Console;
use crate::report::{Choice, HEADROOM_POOL};
use holdfast_api::log_lines::logged;
use holdfast_api::message::{
    Apply, By, Call, Done, ErrorBody, ErrorCode, FdbAdd, FdbDel, SetReply, WatermarkFilter,
};
use holdfast_core::fdb::FdbError;
use holdfast_core::ids::{PgId, PoolId, PortId};
use holdfast_core::io::PortIo;
use holdfast_core::port::Port;
use holdfast_core::profile::Profile;
use holdfast_core::worker::Worker;
use holdfast_plan::edit::{set_pg, set_wred, Edit};
use holdfast_plan::PlanError;
use holdfast_wire::MacAddr;
use std::sync::Arc;
use std::time::Instant;

impl<P: PortIo + 'static> Console<P> {
    /// Makes a change, and logs it with the peer's credentials (SPEC 11), in the journal too.
    pub(super) fn change(&mut self, call: &Call, peer: By) -> Answer {
        let answer = self.try_change(call);
        if let Call::Apply(Apply { dry_run: false, .. }) = call {
            self.published.count(|done| match answer {
                Ok(_) => done.applies_accepted += 1,
                Err(_) => done.applies_refused += 1,
            });
        }
        let text = serde_json::to_string(call).unwrap_or_else(|_| call.name().to_owned());
        let text = logged(&text);
        match &answer {
            Ok(value) => {
                log::info!("{text} by {peer}: done");
                let made = self.made(call, value, peer);
                made.into_iter().for_each(|what| self.record(what));
            }
            Err(error) => {
                // Whoever may use the socket may not fill the disk by it.
                let line = self.refusals.line((call.name(), error.code), Instant::now());
                let Some(left_out) = line else { return answer };
                if left_out > 0 {
                    let name = call.name();
                    log::info!("{left_out} more calls {name} were refused in the same way");
                }
                log::info!("{text} by {peer}: refused: {}", logged(&error.to_string()));
                let refused = self.refused(call, error, peer, left_out);
                refused.into_iter().for_each(|what| self.record(what));
            }
        }
        answer
    }

    fn try_change(&mut self, call: &Call) -> Answer {
        match call {
            Call::WatermarkClear(filter) => self.clear_watermarks(filter),
            Call::PortHold(name) => self.hold(&name.port, true),
            Call::PortRelease(name) => self.hold(&name.port, false),
            Call::PortAdd(add) => self.port_add(add),
            Call::PortRemove(name) => self.port_remove(&name.port),
            Call::Preflight(call) => self.preflight(call),
            Call::FdbAdd(entry) => self.fdb_add(entry),
            Call::FdbDel(entry) => self.fdb_del(entry),
            Call::Apply(apply) => self.apply(apply),
            Call::SetPg(set) => {
                let names = self.board.port_names();
                let (spec, terms) = (self.board.profile.spec(), &self.board.headroom_terms);
                self.set(set_pg(spec, &names, terms, set))
            }
            Call::SetWred(set) => {
                let names = self.board.port_names();
                self.set(set_wred(self.board.profile.spec(), &names, set))
            }
            other => {
                let body = ErrorBody::new(ErrorCode::UnknownCall, "this call changes nothing");
                Err(body.at(other.name()))
            }
        }
    }

    fn hold(&self, name: &str, hold: bool) -> Answer {
        let port = self.port(name)?;
        let owners = self.order(move |worker| worker.hold(port, hold))?;
        if owners.contains(&true) {
            return reply(&Done {});
        }
        let body = ErrorBody::new(ErrorCode::Unavailable, "no worker owns the port now");
        Err(body.at("port").value(name).fix("try again when `show_ports` says it is up"))
    }

    fn clear_watermarks(&self, filter: &WatermarkFilter) -> Answer {
        let (only, query) = self.watermark_query(filter)?;
        let queues = query.queues.clone();
        self.order(move |worker| {
            let ids: Vec<PortId> = worker.ports().iter().map(Port::id).collect();
            for id in ids.into_iter().filter(|id| only.is_none_or(|only| only == *id)) {
                let Some(port) = worker.port_mut(id) else { continue };
                match &queues {
                    Choice::None => {}
                    Choice::One(queue) => port.clear_queue_watermark(*queue),
                    Choice::All => port.clear_watermarks(),
                }
            }
        })?;
        let mmu = &self.board.shared.mmu;
        let ports = self.board.topology.ports().map(|(port, _)| port);
        for port in ports.filter(|port| only.is_none_or(|only| only == *port)) {
            let pgs = PgId::all().filter(|pg| query.pgs.has(pg));
            pgs.for_each(|pg| mmu.clear_pg_watermarks(port, pg));
        }
        let pools = self.board.profile.spec().pools.iter().enumerate();
        for (number, _) in pools.filter(|(_, (name, _))| query.pools.has(name)) {
            if let Some(pool) = PoolId::new(number as u8) {
                mmu.clear_pool_watermark(pool);
            }
        }
        if query.pools.has(&HEADROOM_POOL.to_owned()) {
            mmu.clear_headroom_pool_watermark();
        }
        if query.pools == Choice::All {
            mmu.clear_egress_watermark();
        }
        reply(&Done {})
    }

    fn station(&self, mac: &str) -> Result<MacAddr, ErrorBody> {
        mac.parse::<MacAddr>().map_err(|error| {
            ErrorBody::new(ErrorCode::BadArgument, error.to_string())
                .at("mac")
                .value(mac)
                .fix("write six groups of two hex digits: 02:00:00:00:00:01")
        })
    }

    /// The VLAN that an FDB entry is of; 0 where the switch is transparent.
    fn vlan(&self, vlan: Option<u16>) -> Result<u16, ErrorBody> {
        let refused = |message, fix| {
            let body = ErrorBody::new(ErrorCode::BadArgument, message).at("vlan").fix(fix);
            match vlan {
                Some(vlan) => body.value(vlan).limit(4094),
                None => body,
            }
        };
        match (vlan, is_transparent(&self.board.topology)) {
            (None, true) => Ok(0),
            (Some(vlan @ 1..=4094), false) => Ok(vlan),
            (Some(_), true) => Err(refused("the switch doesn't look at VLANs", "leave `vlan` out")),
            (Some(_), false) => Err(refused("there is no such VLAN", "use 1 to 4094")),
            (None, false) => Err(refused("the switch is VLAN-aware", "add `vlan`")),
        }
    }

    fn fdb_add(&self, entry: &FdbAdd) -> Answer {
        let port = self.port(&entry.port)?;
        let mac = self.station(&entry.mac)?;
        let vlan = self.vlan(entry.vlan)?;
        let refused = |message: String, fix: &str| {
            Err(ErrorBody::new(ErrorCode::Refused, message).at("port").value(&entry.port).fix(fix))
        };
        let topology = &self.board.topology;
        if let Some(peer) = topology.place(port).and_then(|place| place.wire_peer) {
            let peer = self.board.port_name(peer);
            return refused(format!("the port is wired to {peer}"), "use a port without `wire`");
        }
        if !topology.in_vlan(port, vlan) {
            return refused(format!("the port is not in VLAN {vlan}"), "use a member of the VLAN");
        }
        self.barrier()?;
        let added = self.board.shared.fdb.add_static(mac, vlan, port, self.now());
        added.map_err(|error| {
            let fix = match error {
                FdbError::Group { .. } => "use the address of one station",
                FdbError::Full { .. } => "remove entries, or raise fdb.size and restart",
            };
            let text = error.to_string();
            let message = text.split("; ").next().unwrap_or(&text);
            ErrorBody::new(ErrorCode::Refused, message).at("mac").value(mac).fix(fix)
        })?;
        // A step that looked the station up before has ended now.
        self.barrier()?;
        reply(&Done {})
    }

    fn fdb_del(&self, entry: &FdbDel) -> Answer {
        let mac = self.station(&entry.mac)?;
        let vlan = self.vlan(entry.vlan)?;
        self.barrier()?;
        if !self.board.shared.fdb.remove(mac, vlan) {
            let body = ErrorBody::new(ErrorCode::Refused, "there is no such entry");
            return Err(body.at("mac").value(mac).fix("see `show_fdb`"));
        }
        self.barrier()?;
        reply(&Done {})
    }

    fn set(&mut self, edit: Result<Edit, PlanError>) -> Answer {
        let edit = edit?;
        if edit.spec == *self.board.profile.spec() {
            self.barrier()?;
        } else {
            let profile = edit.profile(self.generation + 1)?;
            self.adopt(Arc::new(profile))?;
        }
        let generation = self.board.profile.generation();
        reply(&SetReply { generation, changed: edit.changed })
    }

    /// Puts a profile into force at all workers, or at none.
    pub(super) fn adopt(&mut self, profile: Arc<Profile>) -> Result<(), ErrorBody> {
        let clock = self.clock;
        let order = |profile: &Arc<Profile>| {
            let profile = Arc::clone(profile);
            move |worker: &mut Worker<P>| {
                worker.adopt(Arc::clone(&profile), clock());
            }
        };
        // A number is given once: what was tried and taken back is not mistaken for what is next.
        self.generation = profile.generation();
        if let Err(error) = self.order(order(&profile)) {
            // Those that have it go back; the silent one finds the orders in this sequence.
            let _ = self.workers.ask_all(order(&self.board.profile));
            return Err(error);
        }
        self.board.shared.mmu.settle(profile.generation());
        self.board.profile = profile;
        self.published.follow(&self.board);
        // An edge that one worker's adoption made is sent by the port's owner in its next step:
        // this one wakes it.
        self.barrier()
    }
}
