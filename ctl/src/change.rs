//! Commands that change something, and watermarks.

use crate::cli::WatermarkScope;
use crate::cli::{Fdb, Port, Set, SetPgArguments, SetWredArguments, Target, Watermark};
use crate::connect::answer;
use crate::layout::table;
use crate::CommandError;
use holdfast_api::doc::Source;
use holdfast_api::message::{
    Apply, ApplyReply, Call, Done, FdbAdd, FdbDel, PortName, SetPg, SetReply, SetWred,
    WatermarkFilter, WatermarkReply,
};
use std::path::Path;

fn done(_: &Done) -> String {
    "done\n".to_owned()
}

/// `holdfast port …`
pub(crate) fn port(target: &Target, what: Port) -> Result<(), CommandError> {
    let call = match what {
        Port::Hold { port } => Call::PortHold(PortName { port }),
        Port::Release { port } => Call::PortRelease(PortName { port }),
        Port::Add(arguments) => Call::PortAdd(arguments.into()),
        Port::Remove { port } => Call::PortRemove(PortName { port }),
    };
    answer(target, call, done)
}

/// `holdfast fdb …`
pub(crate) fn fdb(target: &Target, what: Fdb) -> Result<(), CommandError> {
    let call = match what {
        Fdb::Add { mac, port, vlan } => Call::FdbAdd(FdbAdd { mac, vlan, port }),
        Fdb::Del { mac, vlan } => Call::FdbDel(FdbDel { mac, vlan }),
    };
    answer(target, call, done)
}

/// `holdfast apply …`
pub(crate) fn apply(target: &Target, file: &Path, dry_run: bool) -> Result<(), CommandError> {
    let source = Source::read(file)?;
    let profile = source.text().to_owned();
    let call = Call::Apply(Apply { profile, file: Some(source.file().to_owned()), dry_run });
    answer(target, call, applied)
}

fn applied(reply: &ApplyReply) -> String {
    let mut lines = reply.changed.clone();
    if lines.is_empty() {
        lines.push("nothing changes: these thresholds are in force already".to_owned());
    }
    lines.extend(reply.notes.iter().map(|note| format!("note: {note}")));
    if let Some(why) = &reply.not_kept {
        lines.push(format!("warning: not kept for the next start: {why}"));
    }
    let state = if reply.applied { "in force" } else { "dry run, nothing was changed; in force" };
    let generation = reply.generation;
    lines
        .push(format!("profile {} {}; {state}: generation {generation}", reply.name, reply.sha256));
    lines.join("\n") + "\n"
}

/// `holdfast set …`
pub(crate) fn set(target: &Target, what: Set) -> Result<(), CommandError> {
    let call = match what {
        Set::Pg(arguments) => Call::SetPg(set_pg(arguments)),
        Set::Wred(arguments) => Call::SetWred(set_wred(arguments)),
    };
    answer(target, call, |reply: &SetReply| {
        let changed = match reply.changed.as_slice() {
            [] => "nothing to change, all was so already".to_owned(),
            lines => lines.join("\n"),
        };
        format!("{changed}\nprofile generation {}\n", reply.generation)
    })
}

fn set_pg(arguments: SetPgArguments) -> SetPg {
    SetPg {
        port: arguments.port,
        pg: arguments.pg,
        xoff: arguments.xoff,
        xon: arguments.xon,
        xon_mode: arguments.xon_mode.map(Into::into),
        xon_floor: arguments.xon_floor,
        headroom: arguments.headroom,
        guaranteed: arguments.guaranteed,
        limit: arguments.limit,
        alpha: arguments.alpha,
    }
}

fn set_wred(arguments: SetWredArguments) -> SetWred {
    SetWred {
        port: arguments.port,
        queue: arguments.queue,
        off: arguments.off,
        kmin: arguments.kmin,
        kmax: arguments.kmax,
        pmax: arguments.pmax,
        mark_at: arguments.mark_at.map(Into::into),
        not_ect: arguments.not_ect.map(Into::into),
        ewma_weight: arguments.ewma_weight,
    }
}

/// `holdfast watermark …`
pub(crate) fn watermark(target: &Target, what: Watermark) -> Result<(), CommandError> {
    let filter = |scope: WatermarkScope| {
        let WatermarkScope { port, pg, queue, pool } = scope;
        WatermarkFilter { port, pg, queue, pool }
    };
    match what {
        Watermark::Show(scope) => answer(target, Call::WatermarkShow(filter(scope)), watermarks),
        Watermark::Clear(scope) => answer(target, Call::WatermarkClear(filter(scope)), done),
    }
}

fn watermarks(reply: &WatermarkReply) -> String {
    let mut out = table(["what", "which", "segment", "since clear", "since start"], 3);
    for pg in &reply.pgs {
        let which = format!("{} pg {}", pg.port, pg.pg);
        let (user, all) = (pg.watermark.user, pg.watermark.persistent);
        let segments = [
            ("guaranteed", user.guaranteed, all.guaranteed),
            ("service", user.service, all.service),
            ("headroom", user.headroom, all.headroom),
        ];
        for (segment, user, all) in segments {
            out.add_row(["PG", &which, segment, &user.to_string(), &all.to_string()]);
        }
    }
    for queue in &reply.queues {
        let which = format!("{} queue {}", queue.port, queue.queue);
        let (user, all) = (queue.watermark.user, queue.watermark.persistent);
        out.add_row(["queue", &which, "-", &user.to_string(), &all.to_string()]);
    }
    for pool in &reply.pools {
        let (user, all) = (pool.watermark.user, pool.watermark.persistent);
        out.add_row(["pool", &pool.pool, "lent", &user.to_string(), &all.to_string()]);
    }
    format!("High watermarks, cells\n{out}\n")
}
