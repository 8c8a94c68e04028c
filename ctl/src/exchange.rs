//! `holdfast import` and `holdfast export`: profiles from and to other systems' files.

use crate::cli::exchange::{ExportArguments, ImportArguments, PortArgument};
use crate::cli::Target;
use crate::{print, CommandError};
use holdfast_api::doc::{Finding, Source};
use holdfast_api::message::ErrorBody;
use holdfast_api::profile_doc::ProfileDoc;
use holdfast_api::switch_doc::{PortDoc, SwitchDoc};
use holdfast_core::units::{CellSize, Cells};
use holdfast_plan::export::{export as export_plan, ExportInput};
use holdfast_plan::import::{
    import as import_text, AssumedMarks, Format, ImportOptions, Imported, PgLookup, MAX_INPUT,
};
use holdfast_plan::{resolve, PortFacts, SwitchFacts};
use serde_json::{json, Value};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where profiles lie (SPEC 11).
const PROFILE_FOLDER: &str = "/etc/holdfast/profiles";
/// The MTU of a port for which the switch file has none: the netdev may be elsewhere.
const DEFAULT_MTU: u16 = 1_500;

/// What is wrong with a document or another system's file.
#[derive(Debug)]
pub(crate) struct Refusal {
    file: String,
    line: Option<usize>,
    findings: Vec<Finding>,
}

impl Refusal {
    fn of(path: &Path, findings: Vec<Finding>) -> CommandError {
        let file = path.display().to_string();
        CommandError::Document(Self { file, line: None, findings })
    }

    /// As JSON: every finding with its file in front of its place.
    pub(crate) fn bodies(&self) -> Vec<ErrorBody> {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        let body = |finding: &Finding| {
            let place = format!("{}{line}: {}", self.file, finding.key);
            ErrorBody::from(finding.clone()).at(place)
        };
        self.findings.iter().map(body).collect()
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        for (number, finding) in self.findings.iter().enumerate() {
            let lead = if number == 0 { "" } else { "\nholdfast: " };
            write!(f, "{lead}{}{line}: {finding}", self.file)?;
        }
        Ok(())
    }
}

impl From<holdfast_api::doc::DocError> for CommandError {
    fn from(error: holdfast_api::doc::DocError) -> Self {
        let (file, line, findings) = (error.file, error.line, vec![*error.finding]);
        Self::Document(Refusal { file, line, findings })
    }
}

/// Reads a text of at most [`MAX_INPUT`] bytes.
fn read(path: &Path) -> Result<String, CommandError> {
    let unreadable = |error: std::io::Error| {
        let message = format!("can't be read: {error}");
        Refusal::of(path, vec![Finding::new("file", message, "check path and rights")])
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_INPUT as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > MAX_INPUT {
        let finding = Finding::new("file", "is too large", "import the tables of QoS alone");
        let finding = finding.numbers(format!("more than {MAX_INPUT}"), MAX_INPUT);
        return Err(Refusal::of(path, vec![finding]));
    }
    String::from_utf8(bytes).map_err(|_| {
        let finding = Finding::new("file", "isn't UTF-8", "convert it");
        Refusal::of(path, vec![finding])
    })
}

/// Writes `text` to the file or, without one, to the standard output.
fn write(text: &str, to: Option<&PathBuf>) -> Result<(), CommandError> {
    match to {
        Some(path) => std::fs::write(path, text).map_err(CommandError::Output),
        None => Ok(print(text)?),
    }
}

/// `holdfast import`
pub(crate) fn import(target: &Target, arguments: &ImportArguments) -> Result<(), CommandError> {
    let path = &arguments.file;
    let text = read(path)?;
    let format = arguments.from.map(Format::from).or_else(|| Format::guess(&text));
    let Some(format) = format else {
        let name = path.display();
        let message = format!("{name}: what it is written in isn't clear; say so by --from");
        return Err(CommandError::Usage(message));
    };
    let options = options(arguments)?;
    let refused = |finding: Finding| Refusal::of(path, vec![finding]);
    let imported = import_text(&text, format, &options).map_err(refused)?;
    planned(&imported).map_err(refused)?;
    let toml = imported.doc.to_toml().map_err(|error| {
        refused(Finding::new("profile", error.to_string(), "report this as a bug"))
    })?;
    if target.json {
        if arguments.output.is_some() {
            write(&toml, arguments.output.as_ref())?;
        }
        let refusal = Refusal {
            file: path.display().to_string(),
            line: None,
            findings: imported.refused.clone(),
        };
        let answer = json!({
            "profile": without_nulls(json!(imported.doc)),
            "notes": imported.notes,
            "refused": refusal.bodies(),
        });
        print(&format!("{answer}\n"))?;
    } else {
        for note in &imported.notes {
            eprintln!("note: {note}");
        }
        write(&toml, arguments.output.as_ref())?;
    }
    if imported.refused.is_empty() {
        return Ok(());
    }
    let refusal =
        Refusal { file: path.display().to_string(), line: None, findings: imported.refused };
    Err(CommandError::Partly(refusal))
}

fn options(arguments: &ImportArguments) -> Result<ImportOptions, CommandError> {
    let stem = arguments.file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = arguments.profile.clone().or(stem).unwrap_or_default();
    let cell = CellSize::new(arguments.cell_bytes).ok_or_else(|| {
        let bytes = arguments.cell_bytes;
        CommandError::Usage(format!("--cell-bytes {bytes} is out of range; use 64..4096"))
    })?;
    let lookup = match &arguments.pg_lookup {
        Some(path) => {
            let text = read(path)?;
            let table = PgLookup::parse(&text);
            Some(table.map_err(|finding| Refusal::of(path, vec![finding]))?)
        }
        None => None,
    };
    let given = arguments.headroom.zip(arguments.xon);
    Ok(ImportOptions {
        cell,
        cells: arguments.cells.map(Cells),
        assumed: given
            .map(|(headroom, xon)| AssumedMarks { headroom: Cells(headroom), xon: Cells(xon) }),
        lookup,
        speed: arguments.speed.map(|rate| rate.0),
        cable: arguments.cable.clone(),
        ports: arguments.ports,
        ..ImportOptions::new(name)
    })
}

/// Holds the profile against the ports that the file names, as apply would.
fn planned(imported: &Imported) -> Result<(), Finding> {
    if imported.ports.is_empty() {
        return Ok(());
    }
    let plan = resolve(&imported.doc, &imported.facts()).map_err(Finding::from)?;
    plan.profile(1).map_err(Finding::from)?;
    Ok(())
}

/// JSON in which keys that are absent stay absent.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// `holdfast export`
pub(crate) fn export(target: &Target, arguments: &ExportArguments) -> Result<(), CommandError> {
    let path = profile_path(&arguments.profile);
    let source = Source::read(&path)?;
    let doc = ProfileDoc::load(&source)?;
    let mut notes = Vec::new();
    let facts = match &arguments.switch {
        Some(path) => switch_facts(path, &mut notes)?,
        None => port_facts(&arguments.port),
    };
    let plan = resolve(&doc, &facts).map_err(|error| source.locate(error.into()))?;
    plan.profile(1).map_err(|error| source.locate(error.into()))?;
    let cable = arguments.cable.as_deref();
    let input = ExportInput { doc: &doc, plan: &plan, facts: &facts, cable };
    let exported = export_plan(&input, arguments.to.into());
    let exported = exported.map_err(|findings| Refusal::of(&path, findings))?;
    notes.extend(exported.notes);
    if target.json {
        if arguments.output.is_some() {
            write(&exported.text, arguments.output.as_ref())?;
        }
        return Ok(print(&format!("{}\n", json!({ "text": exported.text, "notes": notes })))?);
    }
    for note in &notes {
        eprintln!("note: {note}");
    }
    write(&exported.text, arguments.output.as_ref())
}

/// A bare name means a file in the profile folder; anything else is a path.
fn profile_path(profile: &str) -> PathBuf {
    if profile.contains(['/', '.']) {
        return PathBuf::from(profile);
    }
    Path::new(PROFILE_FOLDER).join(format!("{profile}.toml"))
}

fn switch_facts(path: &Path, notes: &mut Vec<String>) -> Result<SwitchFacts, CommandError> {
    let doc = SwitchDoc::load(&Source::read(path)?)?;
    let mut without = |port: &PortDoc| {
        let name = &port.name;
        notes.push(format!("port {name} has no mtu in {}: {DEFAULT_MTU}", path.display()));
        DEFAULT_MTU
    };
    Ok(SwitchFacts::new(&doc, &mut without))
}

fn port_facts(ports: &[PortArgument]) -> SwitchFacts {
    let port = |port: &PortArgument| PortFacts {
        name: port.name.clone(),
        speed: port.speed.0,
        mtu: port.mtu,
        trust: None,
        link_pause: false,
    };
    SwitchFacts {
        ports: ports.iter().map(port).collect(),
        flood_limit: 1_024,
        rx_ring: 2_048,
        spare_ports: 0,
    }
}
