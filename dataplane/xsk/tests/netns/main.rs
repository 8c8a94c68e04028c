//! Ports on real veths, in network namespaces of their own. They need root, `ip` and `ethtool`.

mod forwarding;
mod lab;
mod life;
mod pressure;
