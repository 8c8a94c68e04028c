//! `holdfast lint`: the linter of the crate `plan` over files, for which no switch is asked, or
//! over a running switch.

use crate::cli::lint::LintArguments;
use crate::cli::Target;
use crate::{print, CommandError};
use holdfast_api::amount::rate_text;
use holdfast_api::doc::{DocError, Source};
use holdfast_api::profile_doc::ProfileDoc;
use holdfast_api::switch_doc::{FdbDoc, RingsDoc, SwitchDoc};
use holdfast_plan::lint::{self, End, LintFinding, Options, Report, Severity};
use holdfast_plan::{PlanError, PortFacts, SwitchFacts};
use serde::Serialize;
use std::path::PathBuf;

mod live;

/// What was found in one file.
#[derive(Serialize)]
struct Linted {
    file: String,
    /// The profile's name; none if it can't be read.
    profile: Option<String>,
    /// The ports it was planned for.
    ports: Vec<PortShown>,
    /// Whether no switch file says that there are such ports.
    assumed: bool,
    errors: usize,
    warnings: usize,
    info: usize,
    findings: Vec<LintFinding>,
    /// What a running switch couldn't be asked, one sentence each: it isn't judged.
    unread: Vec<String>,
}

#[derive(Serialize)]
struct PortShown {
    name: String,
    speed_bits_per_second: u64,
    mtu: u16,
}

/// A profile that could be read.
struct Read {
    source: Source,
    doc: ProfileDoc,
    facts: SwitchFacts,
}

/// `holdfast lint …`
pub(crate) fn lint(target: &Target, arguments: &LintArguments) -> Result<(), CommandError> {
    if arguments.live {
        return tell(target, &[live::live(target, arguments)?]);
    }
    let switch = arguments.switch.as_ref();
    let switch = switch.map(|path| SwitchDoc::load(&Source::read(path)?)).transpose()?;
    let peer = match &arguments.peer {
        Some(path) => Some(read(path.clone(), None, arguments)?),
        None => None,
    };
    let mut files = arguments.files.clone();
    if let (true, Some(switch), Some(path)) = (files.is_empty(), &switch, &arguments.switch) {
        files.push(switch.profile_path(path));
    }
    let mut all = Vec::new();
    for file in files {
        let name = file.display().to_string();
        let linted = match read(file, switch.as_ref(), arguments) {
            Ok(read) => one(&read, peer.as_ref(), switch.is_none(), arguments)?,
            Err(error) => {
                let (profile, ports) = (None, Vec::new());
                Linted::new(name, profile, ports, switch.is_none(), lint::unreadable(error))
            }
        };
        all.push(linted);
    }
    tell(target, &all)
}

fn tell(target: &Target, all: &[Linted]) -> Result<(), CommandError> {
    let errors: usize = all.iter().map(|linted| linted.errors).sum();
    print(&match target.json {
        true => format!("{}\n", serde_json::json!({ "files": all })),
        false => all.iter().map(text).collect(),
    })?;
    match errors {
        0 => Ok(()),
        errors => Err(CommandError::Found(format!("{} found", count(errors, "error")))),
    }
}

fn read(
    path: PathBuf,
    switch: Option<&SwitchDoc>,
    arguments: &LintArguments,
) -> Result<Read, DocError> {
    let source = Source::read(&path)?;
    let doc = ProfileDoc::load(&source)?;
    let facts = match switch {
        Some(switch) => SwitchFacts::new(switch, |_| arguments.mtu),
        None => assumed(&doc, arguments),
    };
    Ok(Read { source, doc, facts })
}

/// Ports for a profile that no switch file goes with: those that it names, then p1, p2, ...
fn assumed(doc: &ProfileDoc, arguments: &LintArguments) -> SwitchFacts {
    let mut names: Vec<String> = doc.ports.keys().cloned().collect();
    let wanted = usize::from(arguments.ports).max(names.len());
    for name in (1..=wanted).map(|number| format!("p{number}")) {
        if names.len() < wanted && !names.contains(&name) {
            names.push(name);
        }
    }
    let port = |name| PortFacts {
        name,
        speed: arguments.speed.0,
        mtu: arguments.mtu,
        trust: None,
        link_pause: false,
    };
    SwitchFacts {
        ports: names.into_iter().map(port).collect(),
        flood_limit: FdbDoc::default().flood_limit,
        rx_ring: RingsDoc::default().rx,
        spare_ports: 0,
    }
}

fn one(
    read: &Read,
    peer: Option<&Read>,
    assumed: bool,
    arguments: &LintArguments,
) -> Result<Linted, CommandError> {
    let options = Options { queues_at_once: arguments.queues_at_once };
    let mut report = lint::profile(&read.doc, &read.facts, options);
    if let Some(peer) = peer {
        report = report.and(links(read, peer, arguments)?);
    }
    report = report.merged(&read.source, read.facts.ports.len());
    if arguments.all {
        report = report.unfolded();
    }
    let shown = |port: &PortFacts| PortShown {
        name: port.name.clone(),
        speed_bits_per_second: port.speed.bits_per_second(),
        mtu: port.mtu,
    };
    let ports = read.facts.ports.iter().map(shown).collect();
    let (file, profile) = (read.source.file().to_owned(), Some(read.doc.name.clone()));
    Ok(Linted::new(file, profile, ports, assumed, report))
}

fn links(own: &Read, peer: &Read, arguments: &LintArguments) -> Result<Report, CommandError> {
    let mut ends: Vec<_> =
        arguments.link.iter().map(|(one, other)| (Some(one), Some(other))).collect();
    if ends.is_empty() {
        ends.push((None, None));
    }
    let mut report = Report::default();
    for (port, peer_port) in ends {
        let own = End { doc: &own.doc, facts: &own.facts, port: port.map(String::as_str) };
        let other = End { doc: &peer.doc, facts: &peer.facts, port: peer_port.map(String::as_str) };
        let found = lint::link(own, other).map_err(|error| match error {
            PlanError::UnknownPort { .. } => CommandError::Usage(format!("--link: {error}")),
            error => peer.source.locate(error.into()).into(),
        })?;
        report = report.and(found);
    }
    Ok(report)
}

impl Linted {
    fn new(
        file: String,
        profile: Option<String>,
        ports: Vec<PortShown>,
        assumed: bool,
        report: Report,
    ) -> Self {
        let [errors, warnings, info] = [Severity::Error, Severity::Warning, Severity::Info]
            .map(|severity| report.count(severity));
        let findings = report.findings().to_vec();
        let unread = Vec::new();
        Self { file, profile, ports, assumed, errors, warnings, info, findings, unread }
    }

    /// Its ports in few words: `16 ports (p1 .. p16), 10G, MTU 1500`.
    fn ports(&self) -> String {
        let names = match self.ports.as_slice() {
            [] => return "no ports".to_owned(),
            [one] => one.name.clone(),
            [one, other] => format!("{}, {}", one.name, other.name),
            [first, .., last] => format!("{} .. {}", first.name, last.name),
        };
        let mut kinds: Vec<String> = Vec::new();
        for port in &self.ports {
            let kind = format!("{}, MTU {}", rate_text(port.speed_bits_per_second), port.mtu);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        format!("{} ({names}), {}", count(self.ports.len(), "port"), kinds.join("; "))
    }
}

fn count(number: usize, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {word}{plural}")
}

fn text(linted: &Linted) -> String {
    let mut out = linted.file.clone();
    if let Some(profile) = &linted.profile {
        let assumed = if linted.assumed { "assumed: " } else { "" };
        out.push_str(&format!(": profile {profile}, {assumed}{}", linted.ports()));
    }
    out.push('\n');
    for finding in &linted.findings {
        out.push_str(&finding_text(finding, linted.ports.len()));
    }
    for unread in &linted.unread {
        out.push_str(&format!("  not judged: {unread}\n"));
    }
    let (errors, warnings) = (count(linted.errors, "error"), count(linted.warnings, "warning"));
    out.push_str(&format!("{errors}, {warnings}, {} info\n", linted.info));
    out
}

fn finding_text(finding: &LintFinding, ports: usize) -> String {
    let what = &finding.what;
    let mut out = format!("  {} {} ", finding.severity, finding.id);
    match finding.line {
        Some(line) => out.push_str(&format!("line {line}, {}", what.key)),
        None => out.push_str(&what.key),
    }
    // A key of one port names it; one of all ports is the shared key.
    if finding.ports.len() > 1 && finding.ports.len() < ports {
        out.push_str(&format!(" (and of {})", finding.ports[1..].join(", ")));
    }
    out.push_str(&format!(": {}", what.message));
    match (&what.value, &what.limit) {
        (Some(value), Some(limit)) => out.push_str(&format!(" ({value}, limit: {limit})\n")),
        _ => out.push('\n'),
    }
    out.push_str(&format!("      why: {}\n      fix: {}\n", finding.id.why(), what.fix));
    if !finding.implied.is_empty() {
        let implied: Vec<&str> = finding.implied.iter().map(|effect| effect.id.name()).collect();
        out.push_str(&format!("      implies: {} (--all shows them)\n", implied.join(", ")));
    }
    out
}
