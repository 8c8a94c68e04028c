//! The demonstration as a stranger runs it: what it must show, and that nothing of it stays.

use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{LabError, TestResult};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const DEMO: &str = env!("CARGO_BIN_EXE_holdfast-demo");
/// Ten seconds of traffic, and a machine that does much else.
const ONCE: Duration = Duration::from_secs(120);

/// A running demo, with a folder for temporary files of its own. Dropping it kills it.
struct Demo {
    child: Child,
    folder: TempDir,
}

impl Demo {
    fn start(arguments: &[&str]) -> std::io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let output = fs::File::create(folder.path().join("output"))?;
        Self::start_in(folder, arguments, output.into())
    }

    /// With another standard output than the file that [`Self::output`] reads.
    fn start_into(arguments: &[&str], output: Stdio) -> std::io::Result<Self> {
        Self::start_in(tempfile::tempdir()?, arguments, output)
    }

    fn start_in(folder: TempDir, arguments: &[&str], output: Stdio) -> std::io::Result<Self> {
        let temporary = folder.path().join("tmp");
        fs::create_dir(&temporary)?;
        let child = Command::new(DEMO)
            .args(arguments)
            .current_dir(folder.path())
            .env("TMPDIR", temporary)
            .stdin(Stdio::null())
            .stdout(output)
            .spawn()?;
        Ok(Self { child, folder })
    }

    fn output(&self) -> String {
        fs::read_to_string(self.folder.path().join("output")).unwrap_or_default()
    }

    fn wait(&mut self, within: Duration) -> Result<i32, LabError> {
        let source = |source| LabError::Start { program: DEMO.to_owned(), source };
        let status =
            wait_for("the demo still runs", within, || self.child.try_wait().map_err(source))?;
        Ok(status.code().unwrap_or(-1))
    }

    fn assert_nothing_is_left(&self) {
        let namespaces = fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let prefix = format!("holdfast-demo-{}", self.child.id());
        let left: Vec<_> = namespaces
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with(&prefix))
            .collect();
        assert!(left.is_empty(), "network namespaces: {left:?}");
        let temporary = self.folder.path().join("tmp");
        assert_eq!(fs::read_dir(&temporary).map(Iterator::count).unwrap_or(0), 0, "files");
        let processes = processes_with(&temporary);
        assert!(processes.is_empty(), "processes: {processes:?}");
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processes whose environment has this folder: the demo's children inherited it.
fn processes_with(temporary: &Path) -> Vec<String> {
    let needle = temporary.to_string_lossy().into_owned();
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.map(|entry| entry.path())
        .filter(|path| {
            let environment = fs::read(path.join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&needle)
        })
        .map(|path| fs::read_to_string(path.join("comm")).unwrap_or_default())
        .collect()
}

fn number(report: &Value, path: &str) -> Result<u64, String> {
    let number = report.pointer(path).and_then(Value::as_u64);
    number.ok_or_else(|| format!("no number {path} in {report}"))
}

#[test]
fn demo_once_is_lossless_and_leaves_nothing() -> TestResult {
    let mut demo = Demo::start(&["--once", "--json", "r.json"])?;
    let code = demo.wait(ONCE)?;
    assert_eq!(code, 0, "{}", demo.output());
    let report: Value =
        serde_json::from_str(&fs::read_to_string(demo.folder.path().join("r.json"))?)?;
    let keys: Vec<_> = report.as_object().map(|o| o.keys().cloned().collect()).unwrap_or_default();
    assert_eq!(
        keys,
        [
            "profile",
            "lossless",
            "lossy",
            "pfc",
            "ecn",
            "pg",
            "lossless_violations",
            "flows",
            "missed_by_receiver",
            "longest_gap_ns",
            "stall_survived_ns",
            "ok",
            "faults"
        ]
    );
    assert_eq!((&report["ok"], &report["faults"]), (&true.into(), &Value::Array(Vec::new())));
    assert_eq!(number(&report, "/missed_by_receiver")?, 0);
    assert!(number(&report, "/longest_gap_ns")? > 0);
    assert!(demo.output().contains("demo: as it must be: 0 of "), "{}", demo.output());
    assert_eq!(report["profile"], "veth-lab-1g");
    assert!(number(&report, "/lossless/sent")? > 0);
    assert_eq!(number(&report, "/lossless/sent")?, number(&report, "/lossless/received")?);
    assert_eq!(number(&report, "/lossless/lost")?, 0);
    assert!(number(&report, "/lossless/goodput_bps")? > 0);
    assert!(number(&report, "/lossy/lost")? > 0);
    for kind in ["xoff", "refresh", "xon"] {
        assert!(number(&report, &format!("/pfc/{kind}"))? > 0, "{kind}: {report}");
    }
    assert!(number(&report, "/ecn/marked")? > 0);
    let headroom = number(&report, "/pg/headroom_peak_cells")?;
    assert!(headroom > 0 && headroom <= number(&report, "/pg/headroom_cells")?, "{report}");
    assert!(number(&report, "/pg/service_peak_cells")? >= number(&report, "/pg/xoff_cells")?);
    assert_eq!(number(&report, "/lossless_violations")?, 0);
    let flows = report["flows"].as_array().cloned().unwrap_or_default();
    assert_eq!(flows.len(), 4);
    for flow in flows.iter().filter(|flow| flow["class"] == "lossless") {
        assert_eq!(flow["lossless"], true, "{flow}");
        assert_eq!(flow["psn_sent"], flow["psn_received"]);
        let next = flow["psn_sent"].as_u64().map(|sent| sent % (1 << 24));
        assert_eq!(next, flow["next_psn"].as_u64());
    }
    demo.assert_nothing_is_left();
    Ok(())
}

#[test]
fn ctrl_c_leaves_nothing_behind() -> TestResult {
    ends_in_order_at(Signal::SIGINT)
}

/// A terminal that is closed.
#[test]
fn a_hangup_leaves_nothing_behind() -> TestResult {
    ends_in_order_at(Signal::SIGHUP)
}

fn ends_in_order_at(signal: Signal) -> TestResult {
    let mut demo = Demo::start(&["--json", "r.json"])?;
    let figures = |line: &str| line.trim_start().starts_with(|first: char| first.is_ascii_digit());
    wait_for("no progress is printed", ONCE, || {
        Ok(demo.output().lines().any(figures).then_some(()))
    })?;
    assert!(demo.output().contains(" show pg\n"), "how to look inside: {}", demo.output());
    assert!(!processes_with(&demo.folder.path().join("tmp")).is_empty());
    kill(Pid::from_raw(i32::try_from(demo.child.id())?), signal)?;
    let code = demo.wait(ONCE)?;
    assert!(demo.output().contains("lossless violations"), "no table: {}", demo.output());
    let report: Value =
        serde_json::from_str(&fs::read_to_string(demo.folder.path().join("r.json"))?)?;
    // A machine that stalls may lose frames: then this run must say so too.
    let lossless = number(&report, "/lossless/lost")? == 0;
    assert!(lossless || report["ok"] == false, "{report}");
    assert_eq!(code, i32::from(report["ok"] == false), "{}", demo.output());
    let verdict = if code == 0 { "lossless frames lost; the rest is judged" } else { "NOT as it" };
    assert!(demo.output().contains(verdict), "{}", demo.output());
    demo.assert_nothing_is_left();
    Ok(())
}

#[test]
fn what_a_killed_demo_left_is_removed_by_the_next_one() -> TestResult {
    let mut killed = Demo::start(&[])?;
    let prefix = format!("holdfast-demo-{}-", killed.child.id());
    let namespaces = || {
        let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(&prefix)).count()
    };
    wait_for("no namespaces", ONCE, || Ok((namespaces() == 4).then_some(())))?;
    killed.child.kill()?;
    killed.child.wait()?;
    assert_eq!(namespaces(), 4, "nobody could clean up");
    let mut demo = Demo::start(&[])?;
    wait_for("still there", ONCE, || Ok((namespaces() == 0).then_some(())))?;
    kill(Pid::from_raw(i32::try_from(demo.child.id())?), Signal::SIGINT)?;
    demo.wait(ONCE)?;
    let said = format!("demo: removed netns {prefix}sw");
    assert!(demo.output().contains(&said), "{}", demo.output());
    demo.assert_nothing_is_left();
    Ok(())
}

#[test]
fn a_reader_that_goes_ends_the_demo_in_order() -> TestResult {
    let mut demo = Demo::start_into(&[], Stdio::piped())?;
    drop(demo.child.stdout.take());
    let code = demo.wait(ONCE)?;
    assert!(code == 0 || code == 1, "no panic: {code}");
    demo.assert_nothing_is_left();
    Ok(())
}
