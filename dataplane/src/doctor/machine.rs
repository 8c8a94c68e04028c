//! What the machine and this process are, as the kernel tells it.

use holdfast_xsk::{probe_bpf, probe_socket};
use nix::sys::resource::{getrlimit, Resource, RLIM_INFINITY};
use nix::unistd::Group;
use std::fs;

/// Everything that is judged.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// The kernel's release.
    pub(crate) kernel: String,
    /// Effective capabilities of this process, by their bit (capabilities(7)).
    pub(crate) capabilities: u64,
    /// How much memory may be locked, bytes; `None` without limit.
    pub(crate) memlock: Option<u64>,
    /// Whether an AF_XDP socket can be made.
    pub(crate) socket: Result<(), String>,
    /// Whether an XDP program can be loaded.
    pub(crate) bpf: Result<bool, String>,
    /// `kernel.unprivileged_bpf_disabled`.
    pub(crate) unprivileged_bpf: Option<String>,
    /// Whether the kernel describes its types.
    pub(crate) btf: bool,
    /// Memory that can be had, bytes.
    pub(crate) available: Option<u64>,
    /// Cores that this process may use.
    pub(crate) cores: usize,
    /// Cores that the scheduler leaves alone, as the kernel lists them.
    pub(crate) isolated: String,
    /// What chooses the first core's clock.
    pub(crate) governor: Option<String>,
    /// Whether group `holdfast` exists.
    pub(crate) group: bool,
}

impl Machine {
    /// This one.
    pub(crate) fn read() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let memlock = getrlimit(Resource::RLIMIT_MEMLOCK).map_or(0, |(soft, _)| soft);
        Self {
            kernel: word("/proc/sys/kernel/osrelease").unwrap_or_default(),
            capabilities: capabilities(&status),
            memlock: (memlock != RLIM_INFINITY).then_some(memlock),
            socket: probe_socket().map_err(|error| error.to_string()),
            bpf: probe_bpf(),
            unprivileged_bpf: word("/proc/sys/kernel/unprivileged_bpf_disabled"),
            btf: fs::exists("/sys/kernel/btf/vmlinux").unwrap_or(false),
            available: available(&memory),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            isolated: word("/sys/devices/system/cpu/isolated").unwrap_or_default(),
            governor: word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            group: matches!(Group::from_name(crate::control::GROUP), Ok(Some(_))),
        }
    }
}

/// The first line of a file of the kernel's.
fn word(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}

/// `CapEff` of proc_pid_status(5); none where it isn't told.
fn capabilities(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

/// `MemAvailable` of proc_meminfo(5), bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        assert_eq!(capabilities("Name:\tx\nCapEff:\t000001ffffffffff\n"), 0x1ff_ffff_ffff);
        assert_eq!((capabilities(""), capabilities("CapEff:\tzz\n")), (0, 0));
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
        assert_eq!((available(""), available("MemAvailable: x kB\n")), (None, None));
        assert!(available("MemAvailable: 18446744073709551615 kB\n").is_none());
    }
}
