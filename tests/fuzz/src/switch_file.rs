//! `switch.toml`: what a switch boots from (SPEC 9, 10).

use crate::profile::check_error;
use holdfast_api::doc::Source;
use holdfast_api::switch_doc::{is_name, parse_mac, SwitchDoc};
use holdfast_core::units::Cells;
use holdfast_plan::SwitchFacts;
use holdfast_xsk::{chunks_needed, Layout, PortNeed, RingSizes};
use std::collections::HashSet;
use std::path::Path;

/// Reads a switch file. What is wrong has a place and a remedy; what is right can be laid out.
pub fn target(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let source = Source::new("fuzz.toml", text);
    let doc = match SwitchDoc::load(&source) {
        Ok(doc) => doc,
        Err(error) => return check_error(&error, text),
    };
    let names = doc.port_names();
    assert!(is_name(&doc.name) && names.iter().all(|name| is_name(name)), "{names:?}");
    let different: HashSet<&String> = names.iter().collect();
    assert_eq!(different.len(), names.len(), "two ports of one name");
    assert!((1..=holdfast_core::ids::MAX_PORTS).contains(&names.len()), "{} ports", names.len());
    let facts = SwitchFacts::new(&doc, |_| 1500);
    assert_eq!(facts.names(), names);
    assert!(doc.socket_path().is_absolute() || doc.socket.is_some());
    assert!(!doc.state_path().as_os_str().is_empty());
    assert!(!doc.profile_path(Path::new("/etc/holdfast/fuzz.toml")).as_os_str().is_empty());
    let rings = RingSizes {
        rx: doc.rings.rx,
        fill: doc.rings.rx,
        tx: doc.rings.tx,
        completion: doc.rings.tx,
    };
    let need = |queues: Option<u32>| PortNeed { queues: queues.unwrap_or(1).max(1), rings };
    let needs: Vec<PortNeed> = doc.ports.iter().map(|port| need(port.queues)).collect();
    let each = chunks_needed(Cells(4096), Cells(doc.fdb.flood_limit), &needs);
    // Too much memory is refused by name, never wrapped.
    if let Ok(layout) = Layout::new(vec![u32::try_from(each).unwrap_or(u32::MAX); 1]) {
        assert!(u64::from(layout.chunks()) >= 4096, "{each} chunks");
    }
    let _ = parse_mac(&doc.name);
}
