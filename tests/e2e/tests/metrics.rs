//! Counters of a running switch as others read them: over HTTP, by a real Prometheus, across
//! clears, kills and restarts (SPEC 11, faults 35 and 36 of the public reports).

#![allow(clippy::panic)] // A missing series fails the test.

use holdfast_api::message::{Call, WatermarkFilter};
use holdfast_e2e::lab::daemon::{get, Answer};
use holdfast_e2e::process::{run, Niceness, Process};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Daemon, Lab, LabError, LabPlan, Samples, TestResult};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
/// How long h3 takes nothing, so that its senders are paused on any machine.
const HELD: Duration = Duration::from_millis(300);

fn rules() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus/holdfast.rules.yml")
}

/// Lossless frames from h1 and h2 to h3 for a second, with a pause in it; all arrive.
fn incast(lab: &mut Lab) -> TestResult {
    let receiver = lab.endpoint("h3", &["receive"])?;
    let mut senders = Vec::new();
    for (host, qp) in [("h1", 0x11), ("h2", 0x12)] {
        let flow = format!("dscp=26,qp={qp},size=1024,rate=300M");
        senders.push(lab.send(host, "h3", &[&flow], &["--seconds", "1", "--speed", "1G"])?);
    }
    std::thread::sleep(HELD);
    let switch = lab.switch("sw")?;
    switch.hold("h3")?;
    std::thread::sleep(HELD);
    switch.release("h3")?;
    for sender in senders {
        sender.report(SOON)?;
    }
    let received = receiver.stop()?;
    assert_eq!(received["lost"], 0, "{received}");
    Ok(())
}

fn value(samples: &Samples, series: &str) -> f64 {
    *samples.get(series).unwrap_or_else(|| panic!("no series {series}"))
}

/// Waits until the page shows what the switch itself says of h1: blocks are 10 to 50 ms old.
fn settled(lab: &mut Lab, daemon: &Daemon) -> Result<Samples, LabError> {
    let frames = lab.switch("sw")?.port("h1")?.rx_frames as f64;
    let series = "holdfast_port_received_frames_total{port=\"h1\"}";
    wait_for("the page doesn't follow the switch", SOON, || {
        let samples = daemon.metrics()?;
        Ok((samples.get(series) == Some(&frames)).then_some(samples))
    })
}

#[test]
fn the_page_says_what_the_switch_says() -> TestResult {
    in_lab(&LabPlan::star(3), |lab| {
        let daemon = lab.daemon("sw", &[])?;
        incast(lab)?;
        let samples = settled(lab, &daemon)?;
        let switch = lab.switch("sw")?;
        for port in ["h1", "h2", "h3"] {
            let (told, pfc) = (switch.port(port)?, switch.pfc(port)?);
            let pg = switch.pg(port, 3)?;
            let of = |name: &str| value(&samples, &format!("holdfast_{name}{{port=\"{port}\"}}"));
            assert_eq!(of("port_transmitted_bytes_total"), told.tx_bytes as f64);
            assert_eq!(of("lossless_violations_total"), 0.0);
            assert_eq!(of("port_up"), 1.0);
            let labels = format!("port=\"{port}\",priority=\"3\"");
            let sent = |kind: &str| {
                let series =
                    format!("holdfast_pfc_transmitted_frames_total{{{labels},kind=\"{kind}\"}}");
                value(&samples, &series)
            };
            let transmitted = &pfc.priorities[3].transmitted;
            assert_eq!(sent("xoff"), transmitted.xoff as f64);
            assert_eq!(sent("xon"), transmitted.xon as f64);
            assert!(port == "h3" || transmitted.xoff > 0, "{port} was never paused");
            let mark = format!(
                "holdfast_pg_watermark_cells{{port=\"{port}\",pg=\"3\",segment=\"headroom\"}}"
            );
            assert_eq!(value(&samples, &mark), f64::from(pg.watermark.persistent.headroom));
        }
        let marked =
            value(&samples, "holdfast_queue_ecn_marked_frames_total{port=\"h3\",queue=\"3\"}");
        assert_eq!(marked, switch.ecn("h3", 3)?.marked as f64);
        assert!(marked > 0.0);
        assert!(value(&samples, "holdfast_data_age_seconds") < 5.0);
        Ok(())
    })
}

/// A clear is for whoever clears; a restart has its own start time; nothing is ever negative.
#[test]
fn counters_never_go_back_but_by_a_restart() -> TestResult {
    in_lab(&LabPlan::star(3), |lab| {
        let daemon = lab.daemon("sw", &[])?;
        incast(lab)?;
        let before = settled(lab, &daemon)?;
        let clear = Call::WatermarkClear(WatermarkFilter::default());
        lab.switch("sw")?.call::<Value>(clear)?;
        assert_eq!(lab.switch("sw")?.pg("h1", 3)?.watermark.user.service, 0);
        incast(lab)?;
        let after = settled(lab, &daemon)?;
        let goes_back = |old: &Samples, new: &Samples| {
            let counters = old.iter().filter(|(series, _)| {
                series.split('{').next().is_some_and(|name| name.ends_with("_total"))
            });
            let less = counters.filter(|(series, value)| new.get(*series) < Some(value));
            less.map(|(series, _)| series.clone()).collect::<Vec<_>>()
        };
        assert_eq!(goes_back(&before, &after), Vec::<String>::new());
        // Not of Headroom: a host that obeys at once needs none of it.
        let mark = "holdfast_pg_watermark_cells{port=\"h1\",pg=\"3\",segment=\"service\"}";
        assert!(value(&before, mark) > 0.0 && after[mark] >= before[mark], "cleared for all");

        // The switch is killed: the page stays, and says so.
        lab.switch("sw")?.process().signal(Signal::SIGKILL);
        let gone = wait_for("the page doesn't say that the switch is gone", SOON, || {
            let samples = daemon.metrics()?;
            Ok((samples["holdfast_up"] == 0.0).then_some(samples))
        })?;
        assert_eq!(goes_back(&after, &gone), Vec::<String>::new());
        let older = wait_for("its age stands still", SOON, || {
            let samples = daemon.metrics()?;
            Ok((samples["holdfast_data_age_seconds"] > 1.0).then_some(samples))
        })?;
        assert_eq!(older.len(), gone.len());

        lab.switch("sw")?.start_again()?;
        let again = wait_for("the daemon doesn't find the new switch", SOON, || {
            let samples = daemon.metrics()?;
            Ok((samples["holdfast_up"] == 1.0).then_some(samples))
        })?;
        assert!(again.values().all(|value| *value >= 0.0));
        let started = "holdfast_start_time_seconds";
        assert!(again[started] > after[started], "the start time is the old one");
        let frames = "holdfast_port_received_frames_total{port=\"h1\"}";
        assert!(again[frames] < after[frames], "counters of the old switch");
        assert_eq!(again.len(), after.len(), "a restart made or lost a series");
        Ok(())
    })
}

/// A Prometheus of the distribution beside the daemon.
struct Prometheus {
    process: Process,
    netns: String,
}

impl Prometheus {
    const ADDRESS: &'static str = "127.0.0.1:9090";

    fn start(lab: &Lab, daemon: &Daemon) -> Result<Self, LabError> {
        let (folder, netns) = (lab.folder(), lab.switch_netns("sw")?);
        let config = folder.join("prometheus.yml");
        let text = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: [{:?}]\n\
             scrape_configs:\n\
             - job_name: holdfast\n  \
               static_configs: [{{targets: [\"{}\"]}}]\n",
            rules(),
            daemon.address()
        );
        fs::write(&config, text)
            .map_err(|source| LabError::File { path: config.clone(), source })?;
        let mut command = netns.command("prometheus");
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.join("tsdb").display()));
        command.arg(format!("--web.listen-address={}", Self::ADDRESS));
        let process = Process::start("prometheus", Niceness::Other, &command, folder)?;
        Ok(Self { process, netns: netns.name().to_owned() })
    }

    fn ask(&self, path: &str) -> Result<Option<Value>, LabError> {
        let url = format!("http://{}{path}", Self::ADDRESS);
        let answer = holdfast_e2e::lab::daemon::inside(&self.netns, || get(&url));
        // It isn't up yet.
        let Ok(Answer { status: 200, body }) = answer else { return Ok(None) };
        Ok(serde_json::from_str(&body).ok())
    }

    /// The value of an expression that has one series.
    fn query(&self, expression: &str) -> Result<Option<f64>, LabError> {
        let query: String = expression
            .bytes()
            .map(|byte| match byte.is_ascii_alphanumeric() {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02X}"),
            })
            .collect();
        let answer = self.ask(&format!("/api/v1/query?query={query}"))?;
        let value = answer
            .and_then(|answer| answer.pointer("/data/result/0/value/1")?.as_str()?.parse().ok());
        Ok(value)
    }
}

#[test]
fn a_real_prometheus_scrapes_the_switch() -> TestResult {
    in_lab(&LabPlan::star(3), |lab| {
        let daemon = lab.daemon("sw", &[])?;
        let mut prometheus = Prometheus::start(lab, &daemon)?;
        wait_for("Prometheus doesn't scrape", SOON, || {
            Ok((prometheus.query("up{job=\"holdfast\"}")? == Some(1.0)).then_some(()))
        })?;
        incast(lab)?;
        let shown = settled(lab, &daemon)?;
        let xoff = "holdfast_pfc_transmitted_frames_total\
                    {port=\"h1\",priority=\"3\",kind=\"xoff\"}";
        wait_for("Prometheus doesn't have what the page shows", SOON, || {
            Ok((prometheus.query(xoff)? == shown.get(xoff).copied()).then_some(()))
        })?;
        assert!(shown[xoff] > 0.0);
        // Every series of the page is one of Prometheus', and no more.
        let count = prometheus.query("count({__name__=~\"holdfast_.*\"})")?;
        assert_eq!(count, Some(shown.len() as f64));
        let targets = prometheus.ask("/api/v1/targets")?.unwrap_or_default();
        let target = &targets["data"]["activeTargets"][0];
        assert_eq!((&target["health"], &target["lastError"]), (&"up".into(), &"".into()));
        // The rules of the baseline come round once a minute, these each second.
        let health = wait_for("an alert isn't evaluated", SOON, || {
            let rules = prometheus.ask("/api/v1/rules")?.unwrap_or_default();
            let groups = rules["data"]["groups"].as_array().cloned().unwrap_or_default();
            let alerts = groups.iter().find(|group| group["name"] == "holdfast");
            let alerts = alerts.and_then(|group| group["rules"].as_array().cloned());
            let health = alerts.unwrap_or_default().into_iter().map(|rule| rule["health"].clone());
            let health: Vec<Value> = health.collect();
            Ok((!health.iter().any(|health| health == "unknown")).then_some(health))
        })?;
        assert!(health.len() >= 7 && health.iter().all(|health| health == "ok"), "{health:?}");
        assert_eq!(prometheus.query("increase(holdfast_lossless_violations_total[1m]) > 0")?, None);
        prometheus.process.signal(Signal::SIGTERM);
        Ok(prometheus.process.wait_for_success(SOON)?)
    })
}

/// System calls that the workers of a process make within a time, as strace counts them.
fn worker_calls(pid: u32, span: Duration) -> Result<u64, LabError> {
    let failed = |source| LabError::File { path: PathBuf::from("/proc"), source };
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).map_err(failed)?;
    let mut line = Command::new("timeout");
    line.args(["--signal=INT", &span.as_secs().to_string(), "strace", "-c", "-U", "calls,name"]);
    for task in tasks.flatten() {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if name.starts_with("worker") {
            line.arg("-p").arg(task.file_name());
        }
    }
    let output = line.stdin(Stdio::null()).output().map_err(failed)?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let total = text.lines().find(|line| line.trim_end().ends_with("total"));
    let total = total.and_then(|line| line.split_whitespace().next()?.parse().ok());
    total.ok_or_else(|| LabError::Content { path: PathBuf::from("strace"), why: text })
}

/// A hundred scrapes a second, and the workers make as many system calls as with none: an idle
/// switch, for there each one shows.
#[test]
fn a_scrape_costs_the_workers_no_system_call() -> TestResult {
    const SPAN: Duration = Duration::from_secs(3);
    in_lab(&LabPlan::star(2), |lab| {
        let daemon = lab.daemon("sw", &[])?;
        let pid = lab.switch("sw")?.process().pid();
        let alone = worker_calls(pid, SPAN)?;
        let stop = std::sync::atomic::AtomicBool::new(false);
        let (scrapes, watched) = std::thread::scope(|scope| {
            let scraper = scope.spawn(|| -> Result<u64, LabError> {
                let mut scrapes = 0;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    daemon.metrics()?;
                    scrapes += 1;
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(scrapes)
            });
            let watched = worker_calls(pid, SPAN);
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            (scraper.join(), watched)
        });
        let scrapes = scrapes.unwrap_or(Ok(0))?;
        let watched = watched?;
        println!("{alone} calls alone, {watched} while scraped {scrapes} times");
        assert!(scrapes > 100, "only {scrapes} scrapes");
        // One call for every tenth scrape would be twice as many as an idle worker makes.
        assert!(watched < alone + alone / 4 + 20, "{alone} alone, {watched} watched");
        // The same with the control socket's calls: that the count would show them.
        let asked = std::thread::scope(|scope| {
            let counted = scope.spawn(|| worker_calls(pid, SPAN));
            let begin = std::time::Instant::now();
            while begin.elapsed() < SPAN {
                lab.switch("sw")?.port("h1")?;
                std::thread::sleep(Duration::from_millis(5));
            }
            counted.join().unwrap_or(Ok(0))
        })?;
        println!("{asked} while asked");
        assert!(asked > 2 * watched, "{watched} watched, {asked} asked");
        Ok(())
    })
}

/// Names in the rules are those of the page (also `promtool check rules`).
#[test]
fn the_rules_name_metrics_that_exist() -> TestResult {
    let folder = rules().parent().map(Path::to_path_buf).unwrap_or_default();
    let promtool =
        |arguments: &[&str]| run(Command::new("promtool").args(arguments).current_dir(&folder));
    promtool(&["check", "rules", "holdfast.rules.yml"])?;
    promtool(&["check", "config", "prometheus.yml"])?;
    promtool(&["test", "rules", "holdfast.rules.test.yml"])?;
    let known = include_str!("../../fixtures/metrics.txt");
    let text = fs::read_to_string(rules())?;
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let mut seen = 0;
    for word in words.filter(|word| word.starts_with("holdfast_")) {
        assert!(known.lines().any(|line| line == word), "{word} is no metric");
        seen += 1;
    }
    assert!(seen > 10, "{seen}");
    Ok(())
}
