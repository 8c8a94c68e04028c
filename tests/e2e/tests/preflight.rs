//! `holdfast preflight`: PFC that gets through, and NICs that keep it (SPEC 9). A cable that loses
//! MAC control plays the NIC.

use holdfast_api::message::Peer;
use holdfast_e2e::cable::{Cable, Way};
use holdfast_e2e::frames::pfc;
use holdfast_e2e::long::slice_or;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, PortPlan, SwitchPlan, TestResult};
use serde_json::Value;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

/// Exit code, answer, and what was said beside it.
fn preflight(lab: &mut Lab, arguments: &[&str]) -> Result<(Option<i32>, Value, String), LabError> {
    let arguments = [&["--json", "preflight"], arguments].concat();
    let output = lab.switch("sw")?.cli(&arguments)?;
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status.code(), answer, said))
}

/// `sends` and `receives` of each port.
fn states(answer: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let ports = answer["ports"].as_array().cloned().unwrap_or_default();
    let of = |port: &Value| {
        let state = |way: &str| text(&port[way]["state"]);
        (text(&port["port"]), state("sends"), state("receives"))
    };
    ports.iter().map(of).collect()
}

fn expected(ports: [(&str, &str, &str); 2]) -> Vec<(String, String, String)> {
    ports.map(|(port, tx, rx)| (port.to_owned(), tx.to_owned(), rx.to_owned())).to_vec()
}

/// No PG of any port was charged or paused, and no frame was forwarded.
fn assert_undisturbed(lab: &mut Lab, ports: &[&str]) -> TestResult {
    for port in ports {
        let switch = lab.switch("sw")?;
        for priority in switch.pfc(port)?.priorities {
            let (out, heard) = (priority.transmitted, priority.received);
            assert_eq!((out.xoff, out.refresh, heard.xoff, heard.paused_ns), (0, 0, 0, 0));
        }
        assert_eq!(switch.port(port)?.tx_frames, 0, "{port}");
        assert_eq!(switch.pg(port, 0)?.watermark.persistent.service, 0, "{port}");
    }
    Ok(())
}

/// Two ports of one switch, joined directly.
#[test]
fn two_ports_that_are_joined_work() -> TestResult {
    let switch = SwitchPlan::new("sw")
        .port(PortPlan::link("a", "sw", "b"))
        .port(PortPlan::link("b", "sw", "a"))
        .port(PortPlan::host(1))
        .workers(2);
    in_lab(&LabPlan::of(vec![switch]), |lab| {
        let elsewhere = lab.capture("h1", &[])?;
        let (code, answer, said) = preflight(lab, &["a", "--peer", "b"])?;
        assert_eq!(code, Some(0), "{answer} {said}");
        let works = [("a", "works", "works"), ("b", "works", "works")];
        assert_eq!(states(&answer), expected(works));
        let ways = answer["sent"].as_array().ok_or("nothing sent")?;
        assert_eq!(ways.len(), 2);
        for way in ways {
            for kind in ["link", "unknown_opcode", "empty_vector", "resume"] {
                assert_eq!(way["frames"][kind], serde_json::json!({"sent": 3, "arrived": 3}));
            }
        }
        assert!(said.contains("sends 12 frames"), "it says what it does: {said}");
        assert_eq!(answer["ports"][0]["driver"], "veth");
        assert_undisturbed(lab, &["a", "b"])?;
        assert_eq!(elsewhere.stop()?, [], "nothing goes anywhere else");
        // Again, and for people.
        let output = lab.switch("sw")?.cli(&["preflight", "b", "--peer", "a"])?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("arrived link 3/3"), "{text}");
        Ok(())
    })
}

fn is_mac_control(frame: &[u8]) -> bool {
    frame[12..14] == [0x88, 0x08]
}

/// h1 and h2 are the ends of the cable between the ports h1 and h2.
fn joined(
    lab: &Lab,
    keeps: impl Fn(Way, &[u8]) -> bool + Send + 'static,
) -> Result<Cable, LabError> {
    Cable::join(lab.host("h1")?, lab.host("h2")?, keeps)
}

/// All MAC control, PFC alone, or only PFC that names a priority; one way or the other: each is
/// found, and the way that works is said to.
#[test]
fn a_nic_that_keeps_pfc_is_found_one_way_or_the_other() -> TestResult {
    type Kept = fn(&[u8]) -> bool;
    let kinds: [(Kept, [u64; 3]); 3] = [
        (is_mac_control, [0, 0, 0]),
        (|frame| is_mac_control(frame) && frame[14..16] == [1, 1], [3, 0, 0]),
        (|frame| is_mac_control(frame) && frame[14..16] == [1, 1] && frame[17] != 0, [3, 3, 0]),
    ];
    let both = &[Way::There, Way::Back][..];
    let ways = slice_or([both, &both[..1], &both[1..]], [both; 3]);
    for ((kept, arrived), ways) in kinds.into_iter().zip(ways) {
        for bad in ways.iter().copied() {
            in_lab(&LabPlan::star(3), |lab| {
                let _cable = joined(lab, move |way, frame| way == bad && kept(frame))?;
                let (code, answer, said) = preflight(lab, &["h1", "--peer", "h2"])?;
                assert_eq!(code, Some(1), "{answer} {said}");
                let states = states(&answer);
                let lost = match bad {
                    Way::There => [("h1", "lost", "works"), ("h2", "works", "lost")],
                    Way::Back => [("h1", "works", "lost"), ("h2", "lost", "works")],
                };
                assert_eq!(states, expected(lost), "{answer}");
                let frames = &answer["sent"][usize::from(bad == Way::Back)]["frames"];
                let counts = ["unknown_opcode", "empty_vector", "resume"];
                assert_eq!(counts.map(|kind| frames[kind]["arrived"].as_u64()), arrived.map(Some));
                assert_eq!(frames["link"]["arrived"], 3);
                assert_undisturbed(lab, &["h1", "h2"])
            })?;
        }
    }
    Ok(())
}

/// PFC from elsewhere reaches h2, ours from h1 doesn't: h1 swallows it. It is no cable at all that
/// nothing comes through.
#[test]
fn what_came_from_elsewhere_tells_which_end_it_is() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let (code, answer, _) = preflight(lab, &["h1", "--peer", "h2"])?;
        let unknown = [("h1", "cant_tell", "cant_tell"), ("h2", "cant_tell", "cant_tell")];
        assert_eq!((code, states(&answer)), (Some(1), expected(unknown)), "{answer}");
        lab.inject("h2", &[pfc(2, 1 << 7, &[0; 8])])?;
        let _cable = joined(lab, |way, frame| way == Way::There && is_mac_control(frame))?;
        let (code, answer, said) = preflight(lab, &["h1", "--peer", "h2"])?;
        let swallowed = [("h1", "swallowed_on_tx", "works"), ("h2", "works", "works")];
        assert_eq!((code, states(&answer)), (Some(1), expected(swallowed)), "{answer} {said}");
        assert!(said.contains("h1 sends: swallowed on TX"), "{said}");
        Ok(())
    })
}

/// One port and a host: what the host did tells, and nothing is sent.
#[test]
fn a_port_by_itself_goes_by_what_its_peer_did() -> TestResult {
    let slow = PortPlan::host(2).speed("400M");
    let plan = LabPlan::of(vec![SwitchPlan::new("sw").port(PortPlan::host(1)).port(slow)]);
    in_lab(&plan, |lab| {
        let capture = lab.capture("h1", &["--ethertype", "0x8808"])?;
        let (code, answer, said) = preflight(lab, &["h1"])?;
        assert_eq!(code, Some(1), "{answer}");
        assert_eq!(states(&answer)[0].1, "cant_tell");
        assert!(said.contains("sends nothing"), "{said}");
        assert_eq!(capture.stop()?, []);
        // The host pauses us, and obeys us.
        lab.inject("h1", &[pfc(1, 1 << 3, &[0; 8])])?;
        let flow = ["dscp=26,size=1024,rate=max"];
        let sender = lab.send("h1", "h2", &flow, &["--seconds", "120"])?;
        lab.switch("sw")?.hold("h2")?;
        wait_for("the host isn't seen to obey", SOON, || {
            Ok((lab.switch("sw")?.port("h1")?.peer == Peer::Obeys).then_some(()))
        })?;
        lab.switch("sw")?.release("h2")?;
        let (code, answer, said) = preflight(lab, &["h1", "--wait", "5"])?;
        let works = vec![("h1".to_owned(), "works".to_owned(), "works".to_owned())];
        assert_eq!((code, states(&answer)), (Some(0), works), "{answer} {said}");
        // Ports that carry traffic are left alone.
        let (code, answer, said) = preflight(lab, &["h1", "--peer", "h2"])?;
        assert_eq!((code, answer), (Some(1), Value::Null), "{said}");
        assert!(said.contains("carries traffic") && said.contains("--force"), "{said}");
        sender.stop()?;
        Ok(())
    })
}

/// With --force under lossless traffic in both directions: no frame of it is lost.
#[test]
fn forced_under_lossless_traffic_nothing_is_lost() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let receiver = lab.endpoint("h2", &["receive"])?;
        let flow = ["dscp=26,qp=0x11,size=1024,rate=200M"];
        let sender = lab.send("h1", "h2", &flow, &["--seconds", "120"])?;
        for _ in 0..slice_or(2, 5) {
            let (_, answer, said) = preflight(lab, &["h1", "--peer", "h2", "--force"])?;
            assert_eq!(answer["sent"][0]["frames"]["link"]["sent"], 3, "{answer} {said}");
        }
        let sent = sender.stop()?;
        std::thread::sleep(Duration::from_millis(300));
        let received = receiver.stop()?;
        assert_eq!((&received["received"], &received["lost"]), (&sent["sent"], &0.into()));
        assert!(sent["sent"].as_u64() > Some(10_000), "{sent}");
        assert_eq!(lab.switch("sw")?.port("h1")?.lossless_violations, 0);
        Ok(())
    })
}

#[test]
fn exit_codes_tell_usage_and_unreachable_apart() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        assert_eq!(preflight(lab, &["h1", "--peer", "h1"])?.0, Some(2));
        assert_eq!(preflight(lab, &["h1", "--force"])?.0, Some(2));
        assert_eq!(preflight(lab, &["nobody"])?.0, Some(1));
        let nowhere = lab.folder().join("nowhere.sock");
        let nowhere = nowhere.to_string_lossy().into_owned();
        assert_eq!(preflight(lab, &["h1", "--socket", &nowhere])?.0, Some(3));
        Ok(())
    })
}
