//! Ports that are added to a running switch and removed from it (SPEC 9, fault 36 of the public
//! reports): in the middle of a pause, under load of others, again and again.

use holdfast_api::message::{
    BufferReply, Call, Occurrence, PortState, ProfileReply, ShowBuffer, ShowProfile,
};
use holdfast_e2e::process::run;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Daemon, Lab, LabError, LabPlan, SwitchPlan, TestResult};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
const MAC_CONTROL: [&str; 2] = ["--ethertype", "0x8808"];
const CYCLES: u32 = 30;

fn plan(workers: u32, spare: u32) -> LabPlan {
    LabPlan::of(vec![SwitchPlan::star("sw", 4).workers(workers).spare_ports(spare)])
}

fn buffer(lab: &mut Lab) -> Result<BufferReply, LabError> {
    lab.switch("sw")?.call(Call::ShowBuffer(ShowBuffer {}))
}

/// Runs the command line on the switch; what it says where it is refused.
fn cli(lab: &mut Lab, words: &[&str]) -> Result<Result<(), String>, LabError> {
    let output = lab.switch("sw")?.cli(words)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(if output.status.success() { Ok(()) } else { Err(said) })
}

fn add(lab: &mut Lab, name: &str, ifname: &str) -> Result<Result<(), String>, LabError> {
    let netns = lab.netns("sw")?.name().to_owned();
    cli(lab, &["port", "add", name, "--ifname", ifname, "--netns", &netns, "--speed", "1G"])
}

fn remove(lab: &mut Lab, name: &str) -> Result<Result<(), String>, LabError> {
    cli(lab, &["port", "remove", name])
}

/// What h4 sends arrives at h3, all of it.
fn assert_forwards(lab: &mut Lab) -> TestResult {
    let receiver = lab.endpoint("h3", &["receive"])?;
    let flow = "dscp=26,qp=0x13,size=1024,rate=200M,count=5000";
    let sent = lab.send("h4", "h3", &[flow], &["--speed", "1G"])?.report(SOON)?;
    std::thread::sleep(Duration::from_millis(200));
    let received = receiver.stop()?;
    assert_eq!((&sent["sent"], &received["received"]), (&5000.into(), &5000.into()));
    Ok(())
}

/// Nothing is charged, and each chunk is free or in a receiving ring.
fn assert_clean(lab: &mut Lab) -> TestResult {
    wait_for("cells or chunks don't come back", SOON, || {
        let now = buffer(lab)?;
        let idle = now.pools.iter().all(|pool| pool.lent == 0) && now.egress.lent == 0;
        Ok((idle && now.frame_chunks == 0).then_some(()))
    })?;
    Ok(())
}

/// h4 is paused because of h3, when first h4 and then h3 is removed, in the middle of it. h4 is let
/// go; h1 and h2 notice nothing; both come back under other names.
fn in_the_middle_of_a_pause(workers: u32) -> TestResult {
    in_lab(&plan(workers, 0), |lab| {
        let receiver = lab.endpoint("h2", &["receive"])?;
        let steady = "dscp=26,qp=0x11,size=1024,rate=120M";
        let steady = lab.send("h1", "h2", &[steady], &["--seconds", "300", "--speed", "1G"])?;
        lab.switch("sw")?.hold("h3")?;
        let seen = lab.capture("h4", &MAC_CONTROL)?;
        let flow = "dscp=26,qp=0x12,size=1024,rate=400M";
        let sender = lab.send("h4", "h3", &[flow], &["--seconds", "300", "--speed", "1G"])?;
        let switch = lab.switch("sw")?;
        wait_for("h4 isn't paused", SOON, || Ok(switch.pg("h4", 3)?.xoff.then_some(())))?;
        remove(lab, "h4")??;
        std::thread::sleep(Duration::from_millis(100));
        let frames = seen.stop()?;
        let last = frames.last().ok_or("h4 was never paused")?;
        assert_eq!(last.bytes[18..34], [0; 16], "the last frame to h4 is an XON");
        assert!(frames.iter().any(|frame| frame.bytes[18..34] != [0; 16]));
        drop(sender);
        // Its frames wait in h3's queue: its place isn't free before they have gone.
        let refused = add(lab, "early", "h4")?;
        assert!(refused.as_ref().is_err_and(|why| why.contains("still wait")), "{refused:?}");
        remove(lab, "h3")??;
        let left: Vec<_> = lab.switch("sw")?.ports()?.ports.into_iter().map(|p| p.port).collect();
        assert_eq!(left, ["h1", "h2"]);
        wait_for("cells don't come back", SOON, || {
            let now = buffer(lab)?;
            Ok((now.frame_chunks < 200).then_some(()))
        })?;
        assert!(remove(lab, "h3")?.is_err_and(|why| why.contains("no such port")));
        add(lab, "north", "h3")??;
        add(lab, "south", "h4")??;
        assert_forwards(lab)?;
        let sent = steady.stop()?;
        std::thread::sleep(Duration::from_millis(200));
        let received = receiver.stop()?;
        assert_eq!((&received["received"], &received["lost"]), (&sent["sent"], &0.into()));
        assert_clean(lab)?;
        for port in lab.switch("sw")?.ports()?.ports {
            assert_eq!((port.lossless_violations, port.state), (0, PortState::Up), "{}", port.port);
        }
        let journal = lab.switch("sw")?.journal()?;
        let added = |what: &&Occurrence| matches!(what, Occurrence::PortAdded { .. });
        let removed = |what: &&Occurrence| matches!(what, Occurrence::PortRemoved { .. });
        assert_eq!(journal.iter().filter(added).count(), 2);
        assert_eq!(journal.iter().filter(removed).count(), 2);
        Ok(())
    })
}

#[test]
fn a_port_is_removed_in_the_middle_of_a_pause_one_worker() -> TestResult {
    in_the_middle_of_a_pause(1)
}

#[test]
fn a_port_is_removed_in_the_middle_of_a_pause_two_workers() -> TestResult {
    in_the_middle_of_a_pause(2)
}

/// The memory has parts for as many ports as the switch file says, and says so where it hasn't.
#[test]
fn spare_ports_are_what_can_be_added() -> TestResult {
    in_lab(&plan(1, 1), |lab| {
        let ip = |lab: &Lab, words: &str| run(lab.netns("sw")?.ip().args(words.split(' ')));
        for n in [5, 6] {
            let one = "numtxqueues 1 numrxqueues 1";
            let peer = format!("type veth peer name q{n} {one}");
            ip(lab, &format!("link add p{n} mtu 1500 {one} {peer}"))?;
            ip(lab, &format!("link set q{n} up"))?;
        }
        let profile = |lab: &mut Lab| -> Result<ProfileReply, LabError> {
            lab.switch("sw")?.call(Call::ShowProfile(ShowProfile {}))
        };
        let (before, left_over) = (profile(lab)?, buffer(lab)?.ingress.left_over);
        assert_eq!(before.ports.len(), 4);
        let part = 36 + 3072;
        assert!(left_over >= part, "{left_over} cells are left for one port of {part}");
        add(lab, "p5", "p5")??;
        let now = profile(lab)?;
        assert_eq!((now.ports.len(), now.total), (5, before.total));
        assert_eq!(buffer(lab)?.ingress.left_over, left_over - part);
        let full = add(lab, "p6", "p6")?.err().unwrap_or_default();
        assert!(full.contains("no place is left") && full.contains("spare_ports"), "{full}");
        let again = add(lab, "p5", "p6")?.err().unwrap_or_default();
        assert!(again.contains("p5"), "{again}");
        remove(lab, "p5")??;
        assert_eq!(buffer(lab)?.ingress.left_over, left_over);
        let missing = add(lab, "p7", "p7")?.err().unwrap_or_default();
        assert!(missing.contains("no such netdev"), "{missing}");
        add(lab, "p6", "p6")??;
        remove(lab, "p6")??;
        assert_eq!(profile(lab)?.sha256, before.sha256);
        // The profile may change meanwhile, with and without it.
        let text = std::fs::read_to_string(lab.switch("sw")?.profile_file())?;
        let path = lab.folder().join("other.toml");
        std::fs::write(&path, text.replace("xoff = 4096", "xoff = 4000"))?;
        let file = path.display().to_string();
        add(lab, "p5", "p5")??;
        cli(lab, &["apply", &file])??;
        let pg = lab.switch("sw")?.pg("p5", 3)?;
        assert_eq!(pg.thresholds.xoff, Some(4000));
        remove(lab, "p5")??;
        ip(lab, "link del p5")?;
        ip(lab, "link del p6")?;
        Ok(())
    })
}

/// Lines of the page that have a value.
fn series(daemon: &Daemon) -> Result<Vec<(String, String)>, LabError> {
    let page = daemon.get("/metrics")?.body;
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let split = |line: &str| line.rsplit_once(' ').map(|(n, v)| (n.to_owned(), v.to_owned()));
    Ok(lines.filter_map(split).collect())
}

/// Series of a removed port go, and those of one that comes begin at 0 (fault 36).
#[test]
fn the_page_has_as_many_series_after_many_cycles() -> TestResult {
    in_lab(&plan(2, 0), |lab| {
        let daemon = lab.daemon("sw", &[])?;
        wait_for("the daemon hasn't the switch", SOON, || {
            Ok(series(&daemon)?.iter().any(|(n, v)| n == "holdfast_up" && v == "1").then_some(()))
        })?;
        assert_forwards(lab)?;
        let count = |daemon: &Daemon| -> Result<(usize, usize), LabError> {
            let all = series(daemon)?;
            let of_h4 = all.iter().filter(|(name, _)| name.contains("port=\"h4\"")).count();
            Ok((all.len(), of_h4))
        };
        let (all, of_h4) = count(&daemon)?;
        assert!(of_h4 > 100, "{of_h4}");
        for cycle in 0..CYCLES {
            remove(lab, "h4")??;
            if cycle % 10 == 0 {
                assert_eq!(count(&daemon)?, (all - of_h4, 0));
            }
            add(lab, "h4", "h4")??;
        }
        assert_eq!(count(&daemon)?, (all, of_h4));
        let value = |name: &str| -> Result<f64, LabError> {
            let found = series(&daemon)?.into_iter().find(|(series, _)| series == name);
            Ok(found.and_then(|(_, value)| value.parse().ok()).unwrap_or(f64::NAN))
        };
        let received = "holdfast_port_received_frames_total{port=\"h4\"}";
        assert_eq!(value(received)?.to_string(), "0", "it begins anew");
        let start =
            |port: &str| value(&format!("holdfast_port_start_time_seconds{{port=\"{port}\"}}"));
        assert!(start("h4")? > start("h3")?);
        assert_forwards(lab)?;
        wait_for("it isn't counted", SOON, || Ok((value(received)? >= 5000.0).then_some(())))?;
        assert_clean(lab)
    })
}
