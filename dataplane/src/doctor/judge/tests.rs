use super::*;

/// A machine on which all is well.
fn good() -> Machine {
    Machine {
        kernel: "6.18.0-1-amd64".to_owned(),
        capabilities: u64::MAX,
        memlock: Some(8 << 20),
        socket: Ok(()),
        bpf: Ok(true),
        unprivileged_bpf: Some("2".to_owned()),
        btf: true,
        available: Some(1 << 30),
        cores: 4,
        isolated: "2-3".to_owned(),
        governor: Some("performance".to_owned()),
        group: true,
    }
}

fn needs(memory: u64, workers: usize) -> Needs {
    Needs { memory, workers }
}

/// What isn't well, as `id state`.
fn wrong(machine: &Machine, needs: Option<&Needs>) -> Vec<String> {
    let all = judge(machine, needs).into_iter().filter(|found| found.state != Health::Ok);
    all.map(|found| format!("{} {}", found.id, found.state.name())).collect()
}

#[test]
fn a_good_machine_has_nothing_to_say() {
    assert_eq!(wrong(&good(), None), [""; 0]);
    assert_eq!(wrong(&good(), Some(&needs(1 << 30, 4))), [""; 0]);
    assert!(judge(&good(), None).iter().all(|found| found.fix.is_none()));
}

#[test]
fn kernels_are_held_to_each_floor() {
    let at = |release: &str| wrong(&Machine { kernel: release.to_owned(), ..good() }, None);
    assert_eq!(at("6.16.0"), [""; 0]);
    assert_eq!(at("6.15.11-rc1"), ["kernel-host-gate degraded"]);
    assert_eq!(at("6.6"), ["kernel-host-gate degraded"]);
    assert_eq!(at("6.5.9"), ["kernel-jumbo degraded", "kernel-host-gate degraded"]);
    assert_eq!(at("5.15.0-91-generic"), ["kernel-jumbo degraded", "kernel-host-gate degraded"]);
    let old = ["kernel missing", "kernel-jumbo degraded", "kernel-host-gate degraded"];
    for release in ["5.14.21", "4.19", "", "x"] {
        assert_eq!(at(release), old, "{release:?}");
    }
    assert_eq!(at("10.0"), [""; 0], "a version is no text");
}

#[test]
fn each_capability_is_missed_by_name() {
    let without = |bits: &[u32]| {
        let capabilities = bits.iter().fold(u64::MAX, |all, bit| all & !(1 << bit));
        wrong(&Machine { capabilities, ..good() }, None)
    };
    assert_eq!(without(&[12]), ["cap-net-admin missing"]);
    assert_eq!(without(&[13]), ["cap-net-raw missing"]);
    assert_eq!(without(&[39]), [""; 0], "CAP_SYS_ADMIN includes it");
    assert_eq!(without(&[21]), ["cap-sys-admin missing"]);
    assert_eq!(without(&[21, 39]), ["cap-sys-admin missing", "cap-bpf missing"]);
    assert_eq!(without(&[14]), ["cap-ipc-lock degraded", "memlock degraded"]);
    assert_eq!(without(&[23]), ["cap-sys-nice degraded"]);
}

#[test]
fn memory_must_fit_to_the_byte() {
    let no_lock = !(1 << IPC_LOCK);
    let locked = Machine { capabilities: no_lock, ..good() };
    assert_eq!(wrong(&locked, Some(&needs(8 << 20, 1))), ["cap-ipc-lock degraded"]);
    assert_eq!(
        wrong(&locked, Some(&needs((8 << 20) + 1, 1))),
        ["cap-ipc-lock degraded", "memlock missing"]
    );
    let unlimited = Machine { memlock: None, ..locked };
    assert_eq!(wrong(&unlimited, Some(&needs(1 << 30, 1))), ["cap-ipc-lock degraded"]);
    assert_eq!(wrong(&good(), Some(&needs((1 << 30) + 1, 1))), ["memory missing"]);
    let untold = Machine { available: None, ..good() };
    assert_eq!(wrong(&untold, Some(&needs(1 << 30, 1))), [""; 0]);
}

#[test]
fn what_cannot_be_made_is_missing_and_what_is_slow_is_degraded() {
    let refused = || "Operation not permitted (os error 1)".to_owned();
    assert_eq!(wrong(&Machine { socket: Err(refused()), ..good() }, None), ["af-xdp missing"]);
    assert_eq!(wrong(&Machine { bpf: Ok(false), ..good() }, None), ["bpf missing"]);
    assert_eq!(wrong(&Machine { bpf: Err(refused()), ..good() }, None), ["bpf missing"]);
    assert_eq!(wrong(&Machine { btf: false, ..good() }, None), ["btf degraded"]);
    assert_eq!(wrong(&good(), Some(&needs(0, 5))), ["cores degraded"]);
    assert_eq!(wrong(&Machine { cores: 1, ..good() }, None), ["cores degraded"]);
    let slow = Machine { isolated: String::new(), governor: Some("powersave".into()), ..good() };
    assert_eq!(wrong(&slow, None), [""; 0], "hints are no faults");
    assert_eq!(judge(&slow, None).iter().filter(|found| found.fix.is_some()).count(), 2);
}
