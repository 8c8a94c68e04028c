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

#[test]
fn names_and_paths_that_no_system_call_takes_are_refused() {
    for ifname in ["a\\u0000b", "a\\tb", "a:b", "..", ""] {
        refused(&TWO.replacen("veth1", ifname, 1), "port.h1.ifname", 6);
    }
    for netns in ["..", ".", "a\\u0000b", "/run/netns/"] {
        refused(
            &TWO.replace("\"b\"", &format!("{netns:?}").replace("\\\\", "\\")),
            "port.h2.netns",
            10,
        );
    }
    for path in ["", "/", "..", "a\\u0000b"] {
        for key in ["socket", "state"] {
            refused(&format!("{key} = \"{path}\"\n{TWO}"), key, 1);
        }
        refused(&TWO.replace("profile.toml", path), "profile", 3);
    }
}

#[test]
fn a_station_has_one_static_entry() {
    let entry = |mac: &str, port: &str, vlan: &str| {
        format!("[[fdb.static]]\nmac = \"{mac}\"\nport = \"{port}\"\n{vlan}\n")
    };
    let (mac, other) = ("02:00:00:00:00:01", "02-00-00-00-00-01");
    let twice = format!("{TWO}{}{}", entry(mac, "h1", ""), entry(other, "h2", ""));
    let error = refused(&twice, "fdb.static.1.mac", 18);
    assert!(error.finding.message.contains("behind port \"h1\""), "{error}");
    let aware = |second| {
        let first = entry(mac, "h1", "vlan = 5");
        format!("{TWO}[fdb]\nvlan_aware = true\n{first}{}", entry(mac, "h2", second))
    };
    assert!(load(&aware("vlan = 6")).is_ok());
    let error = refused(&aware("vlan = 5"), "fdb.static.1.mac", 20);
    assert!(error.finding.message.contains("of VLAN 5"), "{error}");
}

#[test]
fn a_table_has_the_size_that_the_file_says() {
    let sized = |size: u32| load(&format!("{TWO}[fdb]\nsize = {size}\n"));
    assert!(sized(512).is_ok() && sized(1 << 20).is_ok());
    let error = sized(1000).unwrap_err();
    assert_eq!((error.finding.key.as_str(), error.finding.fix.as_str()), ("fdb.size", "use 1024"));
    assert_eq!(sized(16).unwrap_err().finding.limit.as_deref(), Some("512..1048576"));
}

#[test]
fn the_limits_of_ageing_are_times() {
    let error = refused(&format!("{TWO}[fdb]\nageing = \"0s\"\n"), "fdb.ageing", 14);
    assert_eq!(error.finding.value.as_deref(), Some("0ns"));
    assert_eq!(error.finding.limit.as_deref(), Some("1s..1000000s"));
}
