//! `kill -9` of a switch: it can't put the link settings back, its next start does. Each test ends
//! with a switch that ends in order, and [`in_lab`] checks that all settings are as they were
//! before the first start.

use holdfast_e2e::netns::{self, connect, Netns, VethEnd, HOST_IFNAME};
use holdfast_e2e::process::{run, Niceness, Process};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{binaries, in_lab, Lab, LabError, LabPlan, PortPlan, SwitchPlan, TestResult};
use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(20);
const SAID: &str = "link settings left by a switch that was killed are put back: ";

/// Two hosts; the switch changes the MTU of its ports as well.
fn plan() -> LabPlan {
    let port = |n| PortPlan::host(n).with("mtu = 1400");
    LabPlan::of(vec![SwitchPlan::new("sw").port(port(1)).port(port(2))])
}

/// Where the switch keeps what it has to put back.
fn kept(lab: &mut Lab) -> Result<PathBuf, LabError> {
    Ok(lab.switch("sw")?.socket().with_extension("state").join("links.json"))
}

fn kill(lab: &mut Lab) -> TestResult {
    let process = lab.switch("sw")?.process();
    process.signal(Signal::SIGKILL);
    process.wait(SOON)?;
    Ok(())
}

fn end(lab: &mut Lab) -> TestResult {
    let process = lab.switch("sw")?.process();
    process.signal(Signal::SIGTERM);
    Ok(process.wait_for_success(SOON)?)
}

/// Starts the switch's process beside the lab's: one that may end at any time.
fn start(lab: &mut Lab, name: &str) -> Result<Process, LabError> {
    let mut command = Command::new(binaries::find(binaries::DATAPLANE)?);
    command.arg(lab.switch("sw")?.config());
    Process::start(name, Niceness::Switch, &command, lab.folder())
}

/// What a switch may change, at its ports and at the hosts behind them.
fn settings(lab: &Lab) -> Result<Vec<String>, LabError> {
    let netdevs = ["h1", "h2"].into_iter().flat_map(|host| [("sw", host), (host, HOST_IFNAME)]);
    netdevs.map(|(owner, ifname)| lab.settings(owner, ifname)).collect()
}

/// That the settings of a switch that runs or ran stay: MTU, offloads of a port and of its peer.
fn assert_changed(lab: &Lab, host: &str) -> TestResult {
    let (port, peer) = (lab.settings("sw", host)?, lab.settings(host, HOST_IFNAME)?);
    assert!(port.contains("mtu: Some(\"1400\")"), "{port}");
    assert!(port.contains("tx-vlan-offload: off"), "{port}");
    assert!(peer.contains("tx-checksumming: off"), "{peer}");
    Ok(())
}

#[test]
fn the_next_start_begins_from_what_was_before_the_first() -> TestResult {
    in_lab(&plan(), |lab| {
        let file = kept(lab)?;
        // A second instance is refused before it reads the file.
        let text = fs::read(&file)?;
        let before = settings(lab)?;
        let second = Command::new(binaries::find(binaries::DATAPLANE)?)
            .arg(lab.switch("sw")?.config())
            .output()?;
        assert_eq!(second.status.code(), Some(1));
        assert_eq!((fs::read(&file)?, settings(lab)?), (text, before));
        for _ in 0..2 {
            kill(lab)?;
            assert_changed(lab, "h1")?;
            assert_changed(lab, "h2")?;
            assert!(file.exists(), "what to put back is kept");
            lab.switch("sw")?.start_again()?;
            let log = lab.switch("sw")?.process().log_tail();
            let said = log.lines().find(|line| line.contains(SAID)).unwrap_or_default();
            for part in ["-sw/h1: ", "-h2/eth0: ", "tx-checksum-ip-generic on", "mtu 1500"] {
                assert!(said.contains(part), "{part} in {log}");
            }
            assert!(log.contains("mtu 1500 -> 1400"), "the original: {log}");
        }
        end(lab)?;
        assert!(!file.exists(), "nothing is left to put back");
        Ok(())
    })
}

/// A netdev of four queues that is down, its peer in a namespace without a name. The process by
/// which that one was found is gone at the next start, another one is in it.
#[test]
fn queues_link_state_and_a_peer_in_a_namespace_without_a_name() -> TestResult {
    in_lab(&plan(), |lab| {
        end(lab)?;
        let config = lab.switch("sw")?.config().to_path_buf();
        let text = fs::read_to_string(&config)?;
        let port = text.replace("ifname = \"h1\"\n", "ifname = \"q1\"\nqueues = 2\n");
        fs::write(&config, port)?;
        let sleep = |name: &str, program: &str, argument: &str| {
            let mut command = Command::new(program);
            command.args([argument, "--", "sleep", "600"]);
            Process::start(name, Niceness::Host, &command, lab.folder())
        };
        let first = sleep("first", "unshare", "--net")?;
        let there = format!("/proc/{}/ns/net", first.pid());
        let own = fs::metadata("/proc/self/ns/net")?.ino();
        wait_for("no namespace of its own", SOON, || {
            Ok(fs::metadata(&there).is_ok_and(|file| file.ino() != own).then_some(()))
        })?;
        let other = sleep("other", "nsenter", &format!("--net={there}"))?;
        let inode = fs::metadata(&there)?.ino();
        let other_there = format!("/proc/{}/ns/net", other.pid());
        wait_for("not in the same namespace", SOON, || {
            Ok(fs::metadata(&other_there).is_ok_and(|file| file.ino() == inode).then_some(()))
        })?;
        let sw = format!("--net={}/{}", netns::FOLDER, lab.netns("sw")?.name());
        let inside = |there: &str, line: &str| {
            run(Command::new("nsenter").args([there, "--"]).args(line.split(' ')))
        };
        // XDP wants no more sending queues at one end than receiving ones at the other.
        let (four, one) = ("numtxqueues 4 numrxqueues 4", "numtxqueues 1 numrxqueues 4");
        let pid = first.pid();
        inside(&sw, &format!("ip link add q1 {four} type veth peer q2 {one} netns {pid}"))?;
        let other = format!("--net={other_there}");
        inside(&other, "ip link set q2 up")?;
        let settings = || -> Result<Vec<String>, LabError> {
            let near = ["ethtool -k q1", "ethtool -l q1"].map(|line| inside(&sw, line));
            let mut all = near.into_iter().collect::<Result<Vec<_>, _>>()?;
            all.push(inside(&other, "ethtool -k q2")?);
            let link = inside(&sw, "ip -o link show q1")?;
            let flags = link.split(['<', '>']).nth(1).unwrap_or_default();
            all.push(format!("up {}", flags.split(',').any(|flag| flag == "UP")));
            all.push(format!("mtu 1500 {}", link.contains("mtu 1500 ")));
            Ok(all)
        };
        let before = settings()?;
        lab.switch("sw")?.start_again()?;
        kill(lab)?;
        let killed = settings()?;
        assert_ne!(killed[..3], before[..3]);
        assert_eq!((before[3].as_str(), killed[3].as_str()), ("up false", "up true"));
        // The pid of the first one's path is nobody's from here on.
        drop(first);
        lab.switch("sw")?.start_again()?;
        let log = lab.switch("sw")?.process().log_tail();
        assert!(log.contains("q2: tx-checksum") && log.contains("channels 4 -> 2"), "{log}");
        end(lab)?;
        assert_eq!(settings()?, before);
        inside(&sw, "ip link del q1").map(drop)?;
        Ok(())
    })
}

/// Removes the second host with its link, without or with another one of the same names and
/// addresses in its place.
fn remove_h2(lab: &Lab, renew: bool) -> TestResult {
    let name = lab.host("h2")?.name().to_owned();
    run(lab.netns("sw")?.ip().args(["link", "del", "h2"]))?;
    Netns::remove(&name)?;
    if renew {
        make_h2(lab, &name)?;
    }
    Ok(())
}

fn make_h2(lab: &Lab, name: &str) -> TestResult {
    let host = Netns::create(name)?;
    let mac = holdfast_e2e::frames::host_mac(2).to_string();
    let near = VethEnd { netns: lab.netns("sw")?, ifname: "h2", mac: "02:00:00:00:01:02" };
    connect([near, VethEnd { netns: &host, ifname: HOST_IFNAME, mac: &mac }], 1500)?;
    // The lab removes it: it has the name.
    std::mem::forget(host);
    Ok(())
}

/// A host that went with its link between the two: the rest is put back, even if the start then
/// fails, and the netdev that came in its place isn't touched.
#[test]
fn a_netns_removed_meanwhile_needs_nothing() -> TestResult {
    in_lab(&plan(), |lab| {
        let file = kept(lab)?;
        kill(lab)?;
        let name = lab.host("h2")?.name().to_owned();
        remove_h2(lab, false)?;
        let mut failed = start(lab, "without-h2")?;
        assert_eq!(failed.wait(SOON)?.code(), Some(1), "{}", failed.log_tail());
        let log = failed.log_tail();
        assert!(log.contains(SAID) && log.contains("no such netdev"), "{log}");
        assert!(!file.exists(), "{log}");
        let port = lab.settings("sw", "h1")?;
        assert!(port.contains("mtu: Some(\"1500\")") && port.contains("tx-vlan-offload: on"));
        let peer = lab.settings("h1", HOST_IFNAME)?;
        assert!(peer.contains("tx-checksumming: on"), "{peer}");
        make_h2(lab, &name)?;
        lab.switch("sw")?.start_again()?;
        let log = lab.switch("sw")?.process().log_tail();
        assert!(!log.contains("left by a switch that was killed"), "{log}");
        kill(lab)?;
        remove_h2(lab, true)?;
        // What the operator wants of the new one.
        let offload = |lab: &Lab, value: &str| -> TestResult {
            let words = ["-K", HOST_IFNAME, "tx", value];
            run(lab.host("h2")?.command("ethtool").args(words))?;
            Ok(())
        };
        offload(lab, "off")?;
        lab.switch("sw")?.start_again()?;
        let log = lab.switch("sw")?.process().log_tail();
        let said = log.lines().find(|line| line.contains(SAID)).unwrap_or_default();
        assert!(said.contains("-sw/h1: ") && !said.contains("h2"), "{log}");
        end(lab)?;
        let peer = lab.settings("h2", HOST_IFNAME)?;
        assert!(peer.contains("tx-checksumming: off"), "{peer}");
        offload(lab, "on")
    })
}

/// Which version of the file there is.
fn version(file: &Path) -> Option<(u64, u64)> {
    fs::metadata(file).ok().map(|file| (file.ino(), file.len()))
}

/// Looks without a pause until the file has changed `times` times, or the time is over.
fn wait_for_changes(file: &Path, times: usize, within: Duration) -> usize {
    let (start, mut last, mut seen) = (Instant::now(), version(file), 0);
    while seen < times && start.elapsed() < within {
        let now = version(file);
        if now != last {
            (last, seen) = (now, seen + 1);
        }
    }
    seen
}

/// Kills at the writes of the file and at times between, in the boot, in what it puts back first
/// and in the end. An original that gets lost once is lost for good, so the end tells of each.
#[test]
fn killed_at_any_time_of_boot_and_end_no_original_is_lost() -> TestResult {
    in_lab(&plan(), |lab| {
        let file = kept(lab)?;
        end(lab)?;
        let start_of_boot = Instant::now();
        lab.switch("sw")?.start_again()?;
        let boot = start_of_boot.elapsed();
        let (mut unfinished, mut at_end) = (0, 0);
        kill(lab)?;
        for round in 0..20usize {
            let mut process = start(lab, &format!("round-{round}"))?;
            match round % 4 {
                0 | 1 => drop(wait_for_changes(&file, 1 + round / 2, SOON / 20)),
                2 => std::thread::sleep(boot.mul_f64(round as f64 / 20.0)),
                _ => {
                    wait_for("not up", SOON, || {
                        Ok(process.log_tail().contains("] forwarding").then_some(()))
                    })?;
                    process.signal(Signal::SIGTERM);
                    at_end += wait_for_changes(&file, 1, SOON);
                }
            }
            process.signal(Signal::SIGKILL);
            process.wait(SOON)?;
            let log = process.log_tail();
            unfinished += u32::from(log.contains(SAID) && !log.contains("] forwarding"));
            assert!(!log.contains("can't be put back"), "{log}");
        }
        assert!(unfinished > 0 && at_end > 0, "{unfinished} in the boot, {at_end} at the end");
        lab.switch("sw")?.start_again()?;
        Ok(())
    })
}

/// Neither a file that nobody can read nor a folder that can't be written keeps a switch down.
#[test]
fn a_broken_file_or_folder_is_a_warning() -> TestResult {
    in_lab(&plan(), |lab| {
        let file = kept(lab)?;
        end(lab)?;
        fs::write(&file, "{\"about\": \"links")?;
        lab.switch("sw")?.start_again()?;
        let log = lab.switch("sw")?.process().log_tail();
        assert!(log.contains("links.json: EOF while parsing"), "{log}");
        assert!(file.with_extension("json.broken").exists(), "{log}");
        end(lab)?;
        let config = lab.switch("sw")?.config().to_path_buf();
        let text = fs::read_to_string(&config)?;
        let state = file.parent().unwrap_or(&file).display().to_string();
        fs::write(&config, text.replace(&state, "/proc/no-such-folder"))?;
        lab.switch("sw")?.start_again()?;
        let log = lab.switch("sw")?.process().log_tail();
        let warning = "link settings are not kept for a start after a kill: /proc/no-such-folder: ";
        assert_eq!(log.matches(warning).count(), 1, "{log}");
        Ok(())
    })
}
