//! ethtool settings of a netdev of the calling thread's namespace, by ioctl.

use nix::libc;
use nix::sys::socket::{socket, AddressFamily, SockFlag, SockType};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

const GSET: u32 = 0x01;
const GDRVINFO: u32 = 0x03;
const GPAUSEPARAM: u32 = 0x12;
const SPAUSEPARAM: u32 = 0x13;
const GSTRINGS: u32 = 0x1b;
const GSSET_INFO: u32 = 0x37;
const GFEATURES: u32 = 0x3a;
const SFEATURES: u32 = 0x3b;
const GCHANNELS: u32 = 0x3c;
const SCHANNELS: u32 = 0x3d;
/// The set of feature names (`ETH_SS_FEATURES`).
const FEATURE_NAMES: u32 = 4;
/// Bytes of a name in a string set (`ETH_GSTRING_LEN`).
const NAME_BYTES: usize = 32;
/// Words of `struct ethtool_drvinfo`.
const DRVINFO_WORDS: usize = 49;

/// A netdev's settings.
pub(crate) struct Ethtool {
    socket: OwnedFd,
    name: [libc::c_char; libc::IFNAMSIZ],
}

/// One offload of a netdev.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Feature {
    pub(crate) name: String,
    pub(crate) index: usize,
    /// Whether it can be switched.
    pub(crate) available: bool,
    pub(crate) active: bool,
}

/// How many queues a netdev has and may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Channels {
    pub(crate) max_rx: u32,
    pub(crate) max_combined: u32,
    pub(crate) rx: u32,
    pub(crate) tx: u32,
    pub(crate) other: u32,
    pub(crate) combined: u32,
}

impl Channels {
    /// Queues that frames can come in on.
    pub(crate) fn receiving(self) -> u32 {
        self.rx + self.combined
    }
}

/// 802.3x settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) autoneg: bool,
    pub(crate) rx: bool,
    pub(crate) tx: bool,
}

impl Ethtool {
    pub(crate) fn open(ifname: &str) -> io::Result<Self> {
        let mut name = [0; libc::IFNAMSIZ];
        if ifname.len() >= name.len() {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        name.iter_mut().zip(ifname.bytes()).for_each(|(to, from)| *to = from as libc::c_char);
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Inet, SockType::Datagram, flags, None)?;
        Ok(Self { socket, name })
    }

    /// Does a command whose structure is made of 32-bit words, the first being the command.
    ///
    /// # Safety
    /// `words` is as long as the structure that the kernel reads and writes for this command.
    unsafe fn call(&self, words: &mut [u32]) -> io::Result<()> {
        let data = words.as_mut_ptr().cast::<libc::c_char>();
        let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_data: data };
        let mut request = libc::ifreq { ifr_name: self.name, ifr_ifru };
        // SAFETY: `request` names the netdev and points to `words`, whose length the caller
        // vouches for; both live until the call returns.
        let done = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL, &mut request) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// The driver's name.
    pub(crate) fn driver(&self) -> io::Result<String> {
        let mut words = [0; DRVINFO_WORDS];
        words[0] = GDRVINFO;
        // SAFETY: `struct ethtool_drvinfo` has 196 bytes.
        unsafe { self.call(&mut words)? };
        Ok(text(&words[1..9]))
    }

    /// The link's speed, Mbit/s; `None` where the driver doesn't know it.
    pub(crate) fn speed(&self) -> io::Result<Option<u32>> {
        let mut words = [GSET, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        // SAFETY: `struct ethtool_cmd` has eleven words.
        unsafe { self.call(&mut words)? };
        // Its lower half is the first half of the fourth word, its upper half that of the eighth.
        let half = |word: u32| {
            let [a, b, ..] = word.to_ne_bytes();
            u32::from(u16::from_ne_bytes([a, b]))
        };
        let speed = half(words[7]) << 16 | half(words[3]);
        Ok((speed != 0 && speed != u32::MAX && speed != u32::from(u16::MAX)).then_some(speed))
    }

    /// Queue counts.
    pub(crate) fn channels(&self) -> io::Result<Channels> {
        let mut words = [GCHANNELS, 0, 0, 0, 0, 0, 0, 0, 0];
        // SAFETY: `struct ethtool_channels` has nine words.
        unsafe { self.call(&mut words)? };
        let [_, max_rx, _, _, max_combined, rx, tx, other, combined] = words;
        Ok(Channels { max_rx, max_combined, rx, tx, other, combined })
    }

    /// Sets the four counts of `channels`.
    pub(crate) fn set_channels(&self, channels: Channels) -> io::Result<()> {
        let Channels { rx, tx, other, combined, .. } = channels;
        let mut words = [SCHANNELS, 0, 0, 0, 0, rx, tx, other, combined];
        // SAFETY: as for `channels`.
        unsafe { self.call(&mut words) }
    }

    /// 802.3x settings.
    pub(crate) fn pause(&self) -> io::Result<Pause> {
        let mut words = [GPAUSEPARAM, 0, 0, 0];
        // SAFETY: `struct ethtool_pauseparam` has four words.
        unsafe { self.call(&mut words)? };
        let [_, autoneg, rx, tx] = words.map(|word| word != 0);
        Ok(Pause { autoneg, rx, tx })
    }

    /// Changes the 802.3x settings.
    pub(crate) fn set_pause(&self, pause: Pause) -> io::Result<()> {
        let [autoneg, rx, tx] = [pause.autoneg, pause.rx, pause.tx].map(u32::from);
        let mut words = [SPAUSEPARAM, autoneg, rx, tx];
        // SAFETY: as for `pause`.
        unsafe { self.call(&mut words) }
    }

    /// Every offload by name.
    pub(crate) fn features(&self) -> io::Result<Vec<Feature>> {
        let names = self.feature_names()?;
        let blocks = names.len().div_ceil(32);
        let mut words = vec![0; 2 + 4 * blocks];
        (words[0], words[1]) = (GFEATURES, blocks as u32);
        // SAFETY: `struct ethtool_gfeatures` has two words and four for each block it announces.
        unsafe { self.call(&mut words)? };
        let bit = |index: usize, field: usize| {
            let word = words.get(2 + 4 * (index / 32) + field).copied().unwrap_or(0);
            word & (1 << (index % 32)) != 0
        };
        let feature = |(index, name)| Feature {
            name,
            index,
            available: bit(index, 0) && !bit(index, 3),
            active: bit(index, 2),
        };
        Ok(names.into_iter().enumerate().map(feature).collect())
    }

    fn feature_names(&self) -> io::Result<Vec<String>> {
        let mut info = [GSSET_INFO, 0, 1 << FEATURE_NAMES, 0, 0];
        // SAFETY: `struct ethtool_sset_info` has four words and one for each set asked for.
        unsafe { self.call(&mut info)? };
        let count = info[4] as usize;
        let mut words = vec![0; 3 + count * NAME_BYTES / 4];
        (words[0], words[1], words[2]) = (GSTRINGS, FEATURE_NAMES, count as u32);
        // SAFETY: `struct ethtool_gstrings` has three words and 32 bytes for each string; the
        // count of this set is a constant of the running kernel.
        unsafe { self.call(&mut words)? };
        Ok(words[3..].chunks(NAME_BYTES / 4).map(text).collect())
    }

    /// Switches offloads, all or none of them known to the kernel by these indexes.
    pub(crate) fn switch(&self, features: &[Feature], on: bool) -> io::Result<()> {
        let Some(last) = features.iter().map(|f| f.index).max() else {
            return Ok(());
        };
        let known = self.feature_names()?.len();
        let blocks = known.max(last + 1).div_ceil(32);
        let mut words = vec![0; 2 + 2 * blocks];
        (words[0], words[1]) = (SFEATURES, blocks as u32);
        for feature in features {
            let bit = 1 << (feature.index % 32);
            let at = 2 + 2 * (feature.index / 32);
            words[at] |= bit;
            words[at + 1] |= if on { bit } else { 0 };
        }
        // SAFETY: `struct ethtool_sfeatures` has two words and two for each block it announces.
        unsafe { self.call(&mut words) }
    }
}

/// A zero-terminated string in words.
fn text(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
    let name: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_features_by_name() {
        let lo = Ethtool::open("lo").unwrap();
        let features = lo.features().unwrap();
        assert!(features.iter().any(|f| f.name == "tx-scatter-gather" && f.active));
        assert!(lo.channels().is_err() || lo.channels().is_ok_and(|c| c.receiving() > 0));
    }

    #[test]
    fn an_overlong_name_is_no_device() {
        let error = Ethtool::open("a-name-of-sixteen").err().unwrap();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
