//! Who a request says it is for. A browser that was led here by a name which an attacker's DNS
//! answers with our address sends that name as `Host`; one that runs an attacker's page sends its
//! `Origin`. Neither is ours, so neither gets through.

use std::net::{IpAddr, Ipv6Addr};

/// Which hosts are this daemon's.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostPolicy {
    names: Vec<String>,
}

impl HostPolicy {
    /// `names` are those given by `--host`, beside addresses and `localhost`.
    pub(crate) fn new(names: &[String]) -> Self {
        Self { names: names.iter().map(|name| plain(name)).collect() }
    }

    /// Whether `authority`, a host with or without a port, is this daemon: the address `local`
    /// that the connection came to, a loopback address, `localhost`, or one of the names. Any port
    /// will do: it is another one behind `ssh -L`.
    pub(crate) fn allows(&self, authority: &str, local: IpAddr) -> bool {
        match parse(authority) {
            Some(Host::Address(address)) => {
                let address = address.to_canonical();
                address.is_loopback() || address == local.to_canonical()
            }
            Some(Host::Name(name)) => name == "localhost" || self.names.contains(&name),
            None => false,
        }
    }
}

/// Whether `origin` is the page that this host itself served: `http://` and the same authority
/// (RFC 6454 7).
pub(crate) fn is_same_origin(origin: &str, host: &str) -> bool {
    origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(host))
}

#[derive(Debug, PartialEq, Eq)]
enum Host {
    Address(IpAddr),
    Name(String),
}

/// Names are the same in capitals and with the root's dot.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn parse(authority: &str) -> Option<Host> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            (Host::Address(address.parse::<Ipv6Addr>().ok()?.into()), port)
        }
        None => {
            let end = authority.find(':').unwrap_or(authority.len());
            let (name, port) = authority.split_at(end);
            let host = match name.parse() {
                Ok(address) => Host::Address(IpAddr::V4(address)),
                Err(_) => Host::Name(plain(name)),
            };
            (host, port)
        }
    };
    let is_port = |port: &str| port.is_empty() || is_number(port) && port.parse::<u16>().is_ok();
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(host)
}

/// Digits alone: `parse` would take a sign, too.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_ours_localhost_and_given_names_are_meant_for_us() {
        let policy = HostPolicy::new(&["Switch.Example.".to_owned()]);
        let here: IpAddr = "192.0.2.7".parse().unwrap();
        for host in [
            "127.0.0.1",
            "127.0.0.1:9468",
            "127.8.9.1:1",
            "[::1]",
            "[::1]:9468",
            "[::ffff:127.0.0.1]:80",
            "localhost",
            "LocalHost:9468",
            "localhost.:9468",
            "localhost:",
            "192.0.2.7",
            "192.0.2.7:9468",
            "switch.example",
            "SWITCH.example.:80",
        ] {
            assert!(policy.allows(host, here), "{host}");
        }
        for host in [
            "",
            ":9468",
            "evil.example",
            "evil.example:9468",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.0.2.8",
            "0.0.0.0",
            "[::]",
            "[::1",
            "::1",
            "[::1]9468",
            "[127.0.0.1]",
            "localhost:70000",
            "localhost:+80",
            "localhost:80:80",
            "user@localhost",
            "localhost/",
            "127.1",
            "2130706433",
            "0x7f.0.0.1",
            "switch",
        ] {
            assert!(!policy.allows(host, here), "{host}");
        }
        let mapped: IpAddr = "::ffff:192.0.2.7".parse().unwrap();
        assert!(policy.allows("192.0.2.7", mapped), "a listener of both families");
    }

    #[test]
    fn only_the_page_of_the_same_host_and_port_is_of_the_same_origin() {
        assert!(is_same_origin("http://localhost:9468", "localhost:9468"));
        assert!(is_same_origin("http://LOCALHOST:9468", "localhost:9468"));
        for origin in ["http://localhost:8000", "https://localhost:9468", "null", "", "http://"] {
            assert!(!is_same_origin(origin, "localhost:9468"), "{origin}");
        }
    }
}
