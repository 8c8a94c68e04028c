//! What is known of drivers of netdevs.

/// What AF_XDP gets of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Support {
    /// XDP in the driver, sockets share its memory.
    ZeroCopy,
    /// XDP in the driver, frames are copied.
    Native,
    /// Nothing is known: generic XDP works with every netdev.
    Unknown,
}

/// Drivers whose XDP sockets need no copy.
const ZERO_COPY: [&str; 6] = ["mlx5_core", "i40e", "ice", "ixgbe", "igc", "stmmac"];
/// Drivers with XDP, and frames copied.
const NATIVE: [&str; 12] = [
    "veth",
    "tun",
    "bnxt_en",
    "ena",
    "nfp",
    "qede",
    "sfc",
    "mlx4_en",
    "mvneta",
    "mvpp2",
    "hv_netvsc",
    "vmxnet3",
];
/// Drivers that report a speed where there is no wire: a constant.
const NO_WIRE: [&str; 3] = ["veth", "tun", "dummy"];

/// What is known of a driver.
pub(super) fn support(driver: &str) -> Support {
    if ZERO_COPY.contains(&driver) {
        Support::ZeroCopy
    } else if NATIVE.contains(&driver) {
        Support::Native
    } else {
        Support::Unknown
    }
}

/// Whether the speed that it reports is that of a wire (SPEC 1: a veth has none of its own).
pub(crate) fn has_a_wire(driver: &str) -> bool {
    !NO_WIRE.contains(&driver)
}
