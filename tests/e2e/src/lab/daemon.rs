//! `holdfastd` beside a switch of a lab, and what it says over HTTP.

use crate::netns::{Netns, FOLDER};
use crate::process::{Niceness, Process};
use crate::wait::wait_for;
use crate::{binaries, LabError};
use nix::sched::{setns, CloneFlags};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Until it serves.
const START: Duration = Duration::from_secs(20);
/// One request and its answer.
const REQUEST: Duration = Duration::from_secs(20);

/// The samples of a metrics page: series to value.
pub type Samples = BTreeMap<String, f64>;

/// A running daemon. Dropping it kills it.
#[derive(Debug)]
pub struct Daemon {
    process: Process,
    netns: String,
    address: SocketAddr,
}

/// An HTTP answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: String,
}

impl Daemon {
    /// Starts it in `netns` without a single capability, and waits until it serves.
    pub(crate) fn start(
        name: &str,
        netns: &Netns,
        socket: &Path,
        more: &[&str],
        folder: &Path,
    ) -> Result<Self, LabError> {
        let port_file = folder.join(format!("{name}.port"));
        let _ = fs::remove_file(&port_file);
        let mut command = netns.command("setpriv");
        command.args(["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--"]);
        command.arg(binaries::find(binaries::DAEMON)?);
        command.arg("--socket").arg(socket).args(["--listen", "127.0.0.1:0"]);
        command.arg("--port-file").arg(&port_file).args(more);
        let mut process = Process::start(name, Niceness::Other, &command, folder)?;
        let port = wait_for("the daemon doesn't serve", START, || {
            if process.status()?.is_some() {
                process.wait_for_success(Duration::ZERO)?;
            }
            Ok(fs::read_to_string(&port_file).ok().and_then(|text| text.trim().parse().ok()))
        })?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok(Self { process, netns: netns.name().to_owned(), address })
    }

    /// Its process.
    pub const fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Where it serves, within its namespace.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs `body` on a thread of the daemon's namespace.
    ///
    /// # Errors
    /// [`LabError::File`], and what `body` says.
    pub fn inside<T: Send>(
        &self,
        body: impl FnOnce() -> Result<T, LabError> + Send,
    ) -> Result<T, LabError> {
        inside(&self.netns, body)
    }

    /// `GET path`.
    ///
    /// # Errors
    /// [`LabError::Http`].
    pub fn get(&self, path: &str) -> Result<Answer, LabError> {
        let url = format!("http://{}{path}", self.address);
        self.inside(|| get(&url))
    }

    /// `POST path` with a JSON body.
    ///
    /// # Errors
    /// [`LabError::Http`].
    pub fn post(&self, path: &str, body: &Value) -> Result<Answer, LabError> {
        let url = format!("http://{}{path}", self.address);
        self.inside(|| {
            let request = agent().post(&url).content_type("application/json");
            answer(&url, request.send(body.to_string()))
        })
    }

    /// Waits until its page says that the switch is up: it serves before it has reached it.
    ///
    /// # Errors
    /// [`LabError::Late`] after 20 s.
    pub fn wait_until_up(&self) -> Result<(), LabError> {
        wait_for("holdfast_up stays 0", START, || {
            Ok((self.metrics()?.get("holdfast_up") == Some(&1.0)).then_some(()))
        })
    }

    /// The samples of `/metrics`.
    ///
    /// # Errors
    /// [`LabError::Http`], also for a page that isn't one.
    pub fn metrics(&self) -> Result<Samples, LabError> {
        let Answer { status, body } = self.get("/metrics")?;
        let wrong = |why: String| LabError::Http { url: "/metrics".to_owned(), why };
        if status != 200 {
            return Err(wrong(format!("{status}: {body}")));
        }
        let samples = body.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            Some((series.to_owned(), value.parse().ok()?))
        });
        samples.collect::<Option<Samples>>().ok_or_else(|| wrong("a line is no sample".to_owned()))
    }
}

/// Runs `body` on a thread in the network namespace of this name.
///
/// # Errors
/// [`LabError::File`], and what `body` says.
pub fn inside<T: Send>(
    netns: &str,
    body: impl FnOnce() -> Result<T, LabError> + Send,
) -> Result<T, LabError> {
    let path = PathBuf::from(FOLDER).join(netns);
    let entered = || {
        let failed = |source| LabError::File { path: path.clone(), source };
        let file = File::open(&path).map_err(failed)?;
        setns(file, CloneFlags::CLONE_NEWNET).map_err(|errno| failed(errno.into()))?;
        body()
    };
    thread::scope(|scope| match scope.spawn(entered).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// `GET url` on this thread.
///
/// # Errors
/// [`LabError::Http`].
pub fn get(url: &str) -> Result<Answer, LabError> {
    answer(url, agent().get(url).call())
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder();
    config.timeout_global(Some(REQUEST)).http_status_as_error(false).build().into()
}

type Response = ureq::http::Response<ureq::Body>;

fn answer(url: &str, response: Result<Response, ureq::Error>) -> Result<Answer, LabError> {
    let failed =
        |error: ureq::Error| LabError::Http { url: url.to_owned(), why: error.to_string() };
    let mut response = response.map_err(failed)?;
    let body = response.body_mut().read_to_string().map_err(failed)?;
    Ok(Answer { status: response.status().as_u16(), body })
}
