//! Whose a netdev is (SPEC 9): a second switch on it is refused clearly, a program of ours that was
//! left over is replaced, somebody else's never. How a switch lets go of it at SIGTERM (SPEC 14).

use holdfast_e2e::process::run;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{binaries, in_lab, Lab, LabError, LabPlan, TestResult};
use nix::sys::signal::Signal;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(20);
const MAC_CONTROL: [&str; 2] = ["--ethertype", "0x8808"];

/// What a start of the switch file says, of one that must fail.
fn refused(config: &PathBuf) -> Result<String, LabError> {
    let program = binaries::find(binaries::DATAPLANE)?;
    let output = Command::new(&program)
        .arg(config)
        .output()
        .map_err(|source| LabError::Start { program: program.display().to_string(), source })?;
    assert_eq!(output.status.code(), Some(1));
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

fn end(lab: &mut Lab) -> TestResult {
    let process = lab.switch("sw")?.process();
    process.signal(Signal::SIGTERM);
    Ok(process.wait_for_success(SOON)?)
}

/// Another switch, with a name, a socket and a folder of its own, on the same netdevs.
#[test]
fn a_second_switch_on_a_netdev_is_refused_and_the_first_notices_nothing() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let config = lab.switch("sw")?.config().to_path_buf();
        let text = fs::read_to_string(&config)?;
        let text = text.replace("name = \"sw\"", "name = \"other\"");
        let text = text.replace("sw.sock", "other.sock").replace("sw.state", "other.state");
        let other = config.with_file_name("other.toml");
        fs::write(&other, text)?;
        let receiver = lab.endpoint("h2", &["receive"])?;
        let flow = "dscp=26,qp=0x11,size=1024,rate=100M";
        let sender = lab.send("h1", "h2", &[flow], &["--seconds", "300", "--speed", "1G"])?;
        for _ in 0..3 {
            let said = refused(&other)?;
            assert!(said.contains("h1: in use by another holdfast"), "{said}");
            assert!(said.contains("stop that one first"), "{said}");
        }
        let sent = sender.stop()?;
        std::thread::sleep(Duration::from_millis(200));
        let received = receiver.stop()?;
        assert_eq!((&received["received"], &received["lost"]), (&sent["sent"], &0.into()));
        Ok(())
    })
}

/// Attaches an XDP program of this name to a port, as `ip` does it: it stays until it is taken off.
fn attach(lab: &Lab, name: &str) -> TestResult {
    let source = lab.folder().join("program.c");
    let text = format!(
        "__attribute__((section(\"xdp\"), used)) int {name}(void *ctx) {{ return 2; }}\n\
         char _license[] __attribute__((section(\"license\"), used)) = \"GPL\";\n"
    );
    fs::write(&source, text)?;
    let object = source.with_extension("o").display().to_string();
    let source = source.display().to_string();
    run(Command::new("clang").args(["-O2", "-g", "-target", "bpf", "-c", &source, "-o", &object]))?;
    let words = ["link", "set", "dev", "h1", "xdpdrv", "obj", &object, "sec", "xdp"];
    run(lab.netns("sw")?.ip().args(words))?;
    Ok(())
}

fn program(lab: &Lab) -> Result<String, LabError> {
    let words = ["-d", "-o", "link", "show", "dev", "h1"];
    run(lab.netns("sw")?.ip().args(words))
}

#[test]
fn somebody_elses_program_is_named_and_stays_and_a_left_over_is_replaced() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        end(lab)?;
        let config = lab.switch("sw")?.config().to_path_buf();
        attach(lab, "stranger")?;
        let said = refused(&config)?;
        assert!(said.contains("`stranger`") && said.contains("isn't ours"), "{said}");
        assert!(program(lab)?.contains("stranger"), "it stays");
        run(lab.netns("sw")?.ip().args(["link", "set", "dev", "h1", "xdpdrv", "off"]))?;
        attach(lab, "holdfast_rx")?;
        lab.switch("sw")?.start_again()?;
        let log = lab.switch("sw")?.process().log_tail();
        assert!(log.contains("h1: replaced a left-over XDP program of ours"), "{log}");
        Ok(())
    })
}

/// Frames wait behind a hold when the switch ends: the sender is let go, frames that still can are
/// sent for a second at most, and the exit code is 0.
#[test]
fn sigterm_lets_every_peer_go_and_drains_for_a_second_at_most() -> TestResult {
    in_lab(&LabPlan::star(3), |lab| {
        assert!(lab.settings("h1", "eth0")?.contains("tx-checksumming: off"));
        lab.switch("sw")?.hold("h3")?;
        let seen = lab.capture("h1", &MAC_CONTROL)?;
        let flow = "dscp=26,qp=0x12,size=1024,rate=400M,count=4000";
        let sender = lab.send("h1", "h3", &[flow], &["--speed", "1G"])?;
        let switch = lab.switch("sw")?;
        wait_for("h1 isn't paused", SOON, || Ok(switch.pg("h1", 3)?.xoff.then_some(())))?;
        let start = Instant::now();
        end(lab)?;
        // One second, and what the machine adds.
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        let frames = seen.stop()?;
        let last = frames.last().ok_or("h1 was never paused")?;
        assert_eq!(last.bytes[18..34], [0; 16], "the last frame is an XON");
        let log = lab.switch("sw")?.process().log_tail();
        assert!(log.contains("drained after") && log.contains("link settings are back"), "{log}");
        assert!(lab.settings("h1", "eth0")?.contains("tx-checksumming: on"));
        drop(sender);
        Ok(lab.switch("sw")?.start_again()?)
    })
}
