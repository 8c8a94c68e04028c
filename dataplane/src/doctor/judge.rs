//! What the machine's facts mean for a switch. Pure.

use super::machine::Machine;
use super::Needs;
use holdfast_api::doctor::{Condition, Health};

/// A kernel's version, major and minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kernel(u32, u32);

/// The oldest kernel that a switch runs on (SPEC 11).
const FLOOR: Kernel = Kernel(5, 15);
/// The oldest whose AF_XDP has frames of several fragments: MTUs beyond a page.
pub(crate) const FRAGMENTS: Kernel = Kernel(6, 6);
/// The oldest whose veth stops a host instead of dropping: what `host_gate` is built on.
const HOST_GATE: Kernel = Kernel(6, 16);

/// Capabilities by their bit, with what they are needed for.
const CAPABILITIES: [(u32, &str, Health, &str); 6] = [
    (12, "cap-net-admin", Health::Missing, "links, offloads and XDP programs are set up with it"),
    (13, "cap-net-raw", Health::Missing, "AF_XDP sockets are made with it"),
    (21, "cap-sys-admin", Health::Missing, "network namespaces are entered and made with it"),
    (39, "cap-bpf", Health::Missing, "XDP programs and their maps are loaded with it"),
    (14, "cap-ipc-lock", Health::Degraded, "frame memory beyond RLIMIT_MEMLOCK is locked with it"),
    (23, "cap-sys-nice", Health::Degraded, "workers can be put before other programs with it"),
];
const SYS_ADMIN: u32 = 21;
const BPF: u32 = 39;
const IPC_LOCK: u32 = 14;

impl Kernel {
    /// From a release such as `6.1.0-18-amd64`; 0.0 where it is none.
    pub(crate) fn parse(release: &str) -> Self {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
        Self(next(), next())
    }
}

/// Judges all of the machine.
pub(crate) fn judge(machine: &Machine, needs: Option<&Needs>) -> Vec<Condition> {
    let mut all = kernel(&machine.kernel);
    all.extend(rights(machine));
    all.push(memlock(machine, needs));
    all.push(socket(machine));
    all.push(bpf(machine));
    all.push(btf(machine));
    all.push(memory(machine, needs));
    all.push(cores(machine, needs));
    all.extend(hints(machine));
    all
}

fn kernel(release: &str) -> Vec<Condition> {
    let have = Kernel::parse(release);
    let at_least = |id: &str, floor: Kernel, below: Health, why: &str| {
        let Kernel(major, minor) = floor;
        let fix = format!("boot Linux {major}.{minor} or later");
        let state = if have >= floor { Health::Ok } else { below };
        let what = format!("Linux {release}; from {major}.{minor} on");
        let found = Condition::new(id, state, what, why);
        if state == Health::Ok {
            found
        } else {
            found.fix(fix)
        }
    };
    vec![
        at_least("kernel", FLOOR, Health::Missing, "AF_XDP with all that a switch uses"),
        at_least(
            "kernel-jumbo",
            FRAGMENTS,
            Health::Degraded,
            "frames that don't fit into a page come in fragments; without, such an MTU is refused",
        ),
        at_least(
            "kernel-host-gate",
            HOST_GATE,
            Health::Degraded,
            "host_gate needs a veth that stops its host; this release refuses host_gate anyhow",
        ),
    ]
}

fn has(machine: &Machine, bit: u32) -> bool {
    machine.capabilities & (1 << bit) != 0
}

fn rights(machine: &Machine) -> Vec<Condition> {
    let one = |(bit, id, without, why): (u32, &str, Health, &str)| {
        let name = id.replace('-', "_").to_uppercase();
        // CAP_SYS_ADMIN includes CAP_BPF (capabilities(7)).
        if has(machine, bit) || bit == BPF && has(machine, SYS_ADMIN) {
            return Condition::new(id, Health::Ok, format!("this process has {name}"), why);
        }
        let what = format!("this process doesn't have {name}");
        let fix = format!("run as root, or give the switch {name}");
        Condition::new(id, without, what, why).fix(fix)
    };
    CAPABILITIES.into_iter().map(one).collect()
}

fn memlock(machine: &Machine, needs: Option<&Needs>) -> Condition {
    let why = "frame memory is locked; it must fit, or CAP_IPC_LOCK lifts the limit";
    let found = |state, what: String| Condition::new("memlock", state, what, why);
    let fix = "give the switch CAP_IPC_LOCK, or raise the limit (ulimit -l, LimitMEMLOCK=)";
    match (machine.memlock, needs) {
        _ if has(machine, IPC_LOCK) => {
            found(Health::Ok, "CAP_IPC_LOCK: no limit applies".to_owned())
        }
        (None, _) => found(Health::Ok, "RLIMIT_MEMLOCK is unlimited".to_owned()),
        (Some(limit), Some(needs)) if limit >= needs.memory => {
            let what = format!("RLIMIT_MEMLOCK {}, needed {}", mib(limit), mib(needs.memory));
            found(Health::Ok, what)
        }
        (Some(limit), Some(needs)) => {
            let what = format!("RLIMIT_MEMLOCK {}, needed {}", mib(limit), mib(needs.memory));
            found(Health::Missing, what).fix(fix)
        }
        (Some(limit), None) => {
            found(Health::Degraded, format!("RLIMIT_MEMLOCK {}", mib(limit))).fix(fix)
        }
    }
}

fn socket(machine: &Machine) -> Condition {
    let why = "every port is bound to AF_XDP sockets";
    match &machine.socket {
        Ok(()) => Condition::new("af-xdp", Health::Ok, "an AF_XDP socket can be made", why),
        Err(error) => {
            let what = format!("an AF_XDP socket can't be made: {error}");
            let fix = "a kernel with CONFIG_XDP_SOCKETS, CAP_NET_RAW, no filter in the container";
            Condition::new("af-xdp", Health::Missing, what, why).fix(fix)
        }
    }
}

fn bpf(machine: &Machine) -> Condition {
    let why = "the XDP program of each port is loaded by the bpf system call";
    let policy = machine.unprivileged_bpf.as_deref().unwrap_or("unknown");
    let policy = format!("unprivileged_bpf_disabled is {policy}");
    let fix = "CAP_BPF or CAP_SYS_ADMIN, no filter in the container, CONFIG_BPF_SYSCALL";
    let (state, what) = match &machine.bpf {
        Ok(true) => (Health::Ok, "an XDP program can be loaded".to_owned()),
        Ok(false) => (Health::Missing, "an XDP program can't be loaded".to_owned()),
        Err(error) => (Health::Missing, format!("an XDP program can't be loaded: {error}")),
    };
    let found = Condition::new("bpf", state, format!("{what}; {policy}"), why);
    if state == Health::Ok {
        found
    } else {
        found.fix(fix)
    }
}

fn btf(machine: &Machine) -> Condition {
    let why = "tools that look into the kernel read its types there; the switch itself doesn't";
    if machine.btf {
        return Condition::new("btf", Health::Ok, "the kernel describes its types", why);
    }
    Condition::new("btf", Health::Degraded, "no /sys/kernel/btf/vmlinux", why)
        .fix("a kernel with CONFIG_DEBUG_INFO_BTF, if such tools are wanted")
}

fn memory(machine: &Machine, needs: Option<&Needs>) -> Condition {
    let why = "every cell has memory behind it from the start, so nothing is refused later";
    let have = machine.available.map_or_else(|| "unknown".to_owned(), mib);
    let found = |state, what| Condition::new("memory", state, what, why);
    match (machine.available, needs) {
        (_, None) => found(Health::Ok, format!("{have} available; see --switch for the need")),
        (Some(bytes), Some(needs)) if bytes < needs.memory => {
            let what = format!("{have} available, needed {}", mib(needs.memory));
            found(Health::Missing, what)
                .fix("free memory, lower buffer or pools of the profile, rings.rx or workers")
        }
        (_, Some(needs)) => {
            found(Health::Ok, format!("{have} available, needed {}", mib(needs.memory)))
        }
    }
}

fn cores(machine: &Machine, needs: Option<&Needs>) -> Condition {
    let why = "a worker that waits for a core is late, and a late worker loses frames";
    let cores = machine.cores;
    let found = |state, what| Condition::new("cores", state, what, why);
    match needs {
        Some(needs) if needs.workers > cores => {
            found(Health::Degraded, format!("{cores} cores for {} workers", needs.workers))
                .fix("lower workers in the switch file")
        }
        Some(needs) => found(Health::Ok, format!("{cores} cores for {} workers", needs.workers)),
        None if cores < 2 => found(Health::Degraded, "one core".to_owned())
            .fix("give the switch a core that hosts and other programs don't use"),
        None => found(Health::Ok, format!("{cores} cores")),
    }
}

/// What would make it better; nothing is wrong without.
fn hints(machine: &Machine) -> [Condition; 2] {
    let why = "on a core of its own a worker is never late because of others";
    let isolated = match machine.isolated.as_str() {
        "" => Condition::new("isolated-cores", Health::Ok, "none", why)
            .fix("for lossless at speed: boot with isolcpus= for the workers' cores"),
        cores => Condition::new("isolated-cores", Health::Ok, format!("cores {cores}"), why),
    };
    let why = "a core that has to speed up first is late for the first frames of a burst";
    let governor = match machine.governor.as_deref() {
        None => Condition::new("governor", Health::Ok, "the kernel doesn't choose the clock", why),
        Some("performance") => Condition::new("governor", Health::Ok, "performance", why),
        Some(other) => Condition::new("governor", Health::Ok, other, why)
            .fix("for short reaction times: cpupower frequency-set -g performance"),
    };
    [isolated, governor]
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests;
