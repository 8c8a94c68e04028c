//! Ports on real veths, in network namespaces of their own. They need root, `ip` and `ethtool`.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod forwarding;
mod lab;
mod life;
mod pressure;
mod undo;
