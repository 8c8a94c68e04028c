//! What will have to be put back is noted before it is changed, and until it is back: looked at
//! from where it is noted, a kill at any moment.

use crate::lab::{sh, Lab};
use holdfast_xsk::{open_port, put_back, Layout, Memory, Original, Setting, UndoLog};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Whether a setting is at its original now. Run by whoever keeps the log.
fn is_original(original: &Original) -> bool {
    let (netns, ifname) = (&original.netdev.netns.name, &original.netdev.ifname);
    let ethtool = |what: &str| sh(&format!("ip netns exec {netns} ethtool {what} {ifname}"));
    let link = || sh(&format!("ip -n {netns} -o link show {ifname}"));
    match &original.was {
        Setting::Offload(name) => {
            // ethtool has short names for some.
            let shown = ethtool("-k");
            let known = match name.as_str() {
                "rx-vlan-hw-parse" => "rx-vlan-offload",
                "tx-vlan-hw-insert" => "tx-vlan-offload",
                other => other,
            };
            let line = shown.lines().find(|line| line.trim().starts_with(&format!("{known}:")));
            assert!(line.is_some(), "{known} in {shown}");
            line.is_some_and(|line| line.contains(": on"))
        }
        Setting::Channels { combined, rx, .. } => {
            let shown = ethtool("-l");
            let now = shown.split("Current").nth(1).unwrap();
            let count = |kind: &str| {
                let line = now.lines().find_map(|line| line.strip_prefix(kind));
                line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
            };
            (count("RX:"), count("Combined:")) == (*rx, *combined)
        }
        Setting::Mtu(mtu) => link().contains(&format!(" mtu {mtu} ")),
        Setting::AdminDown => !link().split('>').next().unwrap().contains(",UP"),
        // A veth has none.
        Setting::Pause { .. } => false,
    }
}

#[test]
fn every_setting_is_noted_before_it_changes_and_until_it_is_back() {
    let lab = Lab::new(1, "numrxqueues 4 numtxqueues 1");
    sh(&format!("ip -n {} link set p0 down", lab.switch));
    let seen: Arc<Mutex<Vec<Vec<Original>>>> = Arc::default();
    let (kept, wrong) = (Arc::clone(&seen), Arc::new(Mutex::new(Vec::new())));
    let found = Arc::clone(&wrong);
    let undo = UndoLog::new(Vec::new(), move |now: &[Original]| {
        let mut seen = kept.lock().unwrap();
        let before = seen.last().cloned().unwrap_or_default();
        let new = now.iter().filter(|original| !before.contains(original));
        let gone = before.iter().filter(|original| !now.contains(original));
        // Both ways it is so when it enters the log and when it leaves it.
        let changed = new.chain(gone).filter(|original| !is_original(original));
        found.lock().unwrap().extend(changed.map(Original::to_string));
        seen.push(now.to_vec());
    });
    let mut config = lab.config(0, 256);
    (config.mtu, config.queues, config.undo) = (Some(3000), Some(2), undo);
    let memory = Memory::new(&Layout::even(2048, 1).unwrap()).unwrap().0;
    let (port, guard) = open_port(&memory, &config).unwrap();
    let all = seen.lock().unwrap().last().cloned().unwrap();
    assert!(all.iter().all(|original| !is_original(original)), "all of it is changed now");
    let kinds = |wanted: fn(&Setting) -> bool| all.iter().filter(|one| wanted(&one.was)).count();
    assert!(kinds(|was| matches!(was, Setting::Offload(_))) >= 4, "{all:?}");
    assert_eq!(kinds(|was| matches!(was, Setting::Channels { .. })), 1, "{all:?}");
    assert_eq!(kinds(|was| matches!(was, Setting::Mtu(1500))), 1, "{all:?}");
    assert_eq!(kinds(|was| matches!(was, Setting::AdminDown)), 1, "{all:?}");
    assert!(all.iter().any(|original| original.netdev.ifname == "h0"), "{all:?}");
    assert_eq!(guard.status().changes.len(), all.len());
    drop((port, guard));
    assert_eq!(seen.lock().unwrap().last().unwrap(), &[]);
    assert!(wrong.lock().unwrap().is_empty(), "{wrong:?}");
    // And once more, as the start after a kill that came before the file was removed.
    let again = put_back(all);
    assert_eq!((again.done.len(), again.gone.len(), again.failed.len()), (0, 0, 0), "{again:?}");
}

/// The kernel lets go of a queue some time after its socket was closed, and refuses other channels
/// until then.
#[test]
fn channels_are_put_back_when_a_queue_is_let_go_late() {
    let lab = Lab::new(1, "numrxqueues 4 numtxqueues 1");
    let noted: Arc<Mutex<Vec<Original>>> = Arc::default();
    let kept = Arc::clone(&noted);
    let undo =
        UndoLog::new(Vec::new(), move |now: &[Original]| *kept.lock().unwrap() = now.to_vec());
    let mut config = lab.config(0, 256);
    (config.queues, config.undo) = (Some(2), undo);
    let memory = Memory::new(&Layout::even(2048, 1).unwrap()).unwrap().0;
    let (port, guard) = open_port(&memory, &config).unwrap();
    let held: Vec<OwnedFd> = port.fds().map(|fd| fd.try_clone_to_owned().unwrap()).collect();
    drop(port);
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        drop(held);
    });
    drop(guard);
    late.join().unwrap();
    let left: Vec<_> = noted.lock().unwrap().iter().map(Original::to_string).collect();
    assert_eq!(left, Vec::<String>::new());
}
