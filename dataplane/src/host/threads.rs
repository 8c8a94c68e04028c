//! How the kernel schedules a worker's thread: proc_pid_stat(5), sched_getaffinity(2).

use nix::sched::{sched_getaffinity, CpuSet};
use nix::unistd::Pid;

/// How a thread is scheduled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scheduling {
    /// Cores it may run on; empty where the kernel doesn't say.
    pub(crate) cpus: Vec<u32>,
    /// The policy by the names of sched(7).
    pub(crate) policy: &'static str,
    /// Real-time priority, 0 for none.
    pub(crate) priority: u32,
}

/// How the thread `tid` of this process is scheduled; 0 for one that hasn't begun.
pub(crate) fn scheduling(tid: i32) -> Scheduling {
    let unknown = Scheduling { policy: "unknown", ..Scheduling::default() };
    if tid == 0 {
        return unknown;
    }
    let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap_or_default();
    let Some((priority, policy)) = policy(&text) else { return unknown };
    let cpus = sched_getaffinity(Pid::from_raw(tid)).map_or_else(|_| Vec::new(), members);
    Scheduling { cpus, policy, priority }
}

fn members(set: CpuSet) -> Vec<u32> {
    let all = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false));
    all.filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

/// Fields 40 and 41 of the kernel's line: real-time priority and policy.
fn policy(stat: &str) -> Option<(u32, &'static str)> {
    // The second field is the thread's name in brackets, whatever is in it; the third follows.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(37);
    let priority = fields.next()?.parse().ok()?;
    let name = match fields.next()? {
        "0" => "other",
        "1" => "fifo",
        "2" => "rr",
        "3" => "batch",
        "5" => "idle",
        "6" => "deadline",
        _ => "unknown",
    };
    Some((priority, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_and_policy_are_read_whatever_the_thread_is_called() {
        let line = |rest: &str| format!("7 (a) b)) S{} {rest} 0 0\n", " 1".repeat(36));
        assert_eq!(policy(&line("50 1")), Some((50, "fifo")));
        assert_eq!(policy(&line("0 6")), Some((0, "deadline")));
        assert_eq!(policy(&line("0 77")), Some((0, "unknown")));
        assert_eq!((policy(""), policy("7 (a) S 1")), (None, None));
    }

    /// The cores of a thread that pins itself are those that it chose.
    #[test]
    fn a_pinned_thread_has_one_core() {
        let pinned = std::thread::spawn(|| {
            let tid = nix::unistd::gettid();
            let before = scheduling(tid.as_raw());
            let core = before.cpus[0] as usize;
            let mut set = CpuSet::new();
            set.set(core).unwrap();
            nix::sched::sched_setaffinity(tid, &set).unwrap();
            (core, before, scheduling(tid.as_raw()))
        });
        let (core, before, after) = pinned.join().unwrap();
        assert_ne!(before.policy, "unknown", "{before:?}");
        assert_eq!(after, Scheduling { cpus: vec![core as u32], ..before });
        assert_eq!(scheduling(0).policy, "unknown");
    }
}
