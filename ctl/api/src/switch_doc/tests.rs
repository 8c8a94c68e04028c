use super::*;

const TWO: &str = r#"
name = "lab"
profile = "profile.toml"
[[port]]
name = "h1"
ifname = "veth1"
speed = "1G"
[[port]]
name = "h2"
netns = "b"
ifname = "veth1"
speed = "1G"
"#;

fn load(text: &str) -> Result<SwitchDoc, DocError> {
    SwitchDoc::load(&Source::new("switch.toml", text))
}

fn refused(text: &str, key: &str, line: usize) -> DocError {
    let error = load(text).unwrap_err();
    assert_eq!((error.finding.key.as_str(), error.line), (key, Some(line)), "{error}");
    error
}

#[test]
fn a_short_file_gets_the_documented_defaults() {
    let doc = load(TWO).unwrap();
    assert_eq!(doc.socket_path(), Path::new("/run/holdfast/lab.sock"));
    assert_eq!(
        doc.profile_path(Path::new("/etc/holdfast/lab.toml")),
        Path::new("/etc/holdfast/profile.toml")
    );
    assert_eq!(doc.workers, Workers::Auto);
    assert_eq!(doc.fdb.ageing, Span(Nanos::millis(300_000)));
    assert!(doc.ports.iter().all(|port| port.zero_copy && port.xdp == XdpDoc::Auto));
}

#[test]
fn speeds_above_25g_need_leave() {
    let fast = TWO.replacen("\"1G\"", "\"100G\"", 1);
    let error = refused(&fast, "port.h1.speed", 7);
    assert_eq!(error.finding.value.as_deref(), Some("100G"));
    assert_eq!(error.finding.limit.as_deref(), Some("25G"));
    let allowed = fast.replacen("\"100G\"", "\"100G\"\nallow_slow_refresh = true", 1);
    assert!(load(&allowed).is_ok());
}

#[test]
fn names_and_netdevs_are_unique() {
    refused(&TWO.replace("\"h2\"", "\"h1\""), "port.h1.name", 5);
    refused(&TWO.replace("netns = \"b\"\n", ""), "port.h2.ifname", 10);
    refused(&TWO.replace("\"lab\"", "\"la b\""), "name", 2);
}

#[test]
fn wires_are_mutual() {
    let one = TWO.replacen("speed = \"1G\"", "speed = \"1G\"\nwire = \"h2\"", 1);
    refused(&one, "port.h1.wire", 8);
    assert!(load(&format!("{one}wire = \"h1\"\n")).is_ok());
    refused(&format!("{TWO}wire = \"h3\"\n"), "port.h2.wire", 13);
}

#[test]
fn ranges_are_held() {
    refused(&format!("workers = 17\n{TWO}"), "workers", 1);
    refused(&format!("{TWO}[rings]\nrx = 3000\n"), "rings.rx", 14);
    refused(&format!("{TWO}mtu = 16358\n"), "port.h2.mtu", 13);
    refused(&format!("{TWO}vlans = [1]\n"), "port.h2.vlans", 13);
    let aware = format!("{TWO}vlans = [4095]\n[fdb]\nvlan_aware = true\n");
    refused(&aware, "port.h2.vlans", 13);
}

#[test]
fn a_host_gate_is_refused_by_name() {
    let error = refused(&format!("{TWO}host_gate = \"gate\"\n"), "port.h2.host_gate", 13);
    assert!(error.finding.message.contains("isn't offered"), "{error}");
    assert!(load(&format!("{TWO}host_gate = \"off\"\n")).is_ok());
}

#[test]
fn static_entries_are_checked() {
    let with = |entry: &str| format!("{TWO}[[fdb.static]]\n{entry}\n");
    assert!(load(&with("mac = \"02:00:00:00:00:01\"\nport = \"h1\"")).is_ok());
    refused(&with("mac = \"02:00:00:00:00\"\nport = \"h1\""), "fdb.static.0.mac", 14);
    refused(&with("mac = \"01:00:00:00:00:01\"\nport = \"h1\""), "fdb.static.0.mac", 14);
    refused(&with("mac = \"02:00:00:00:00:01\"\nport = \"h9\""), "fdb.static.0.port", 15);
    refused(&with("mac = \"02:00:00:00:00:01\"\nport = \"h1\"\nvlan = 3"), "fdb.static.0.vlan", 16);
}
