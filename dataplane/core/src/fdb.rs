//! Which port a station lies behind (SPEC 7): learning, ageing, look-up, shared by all workers.
//!
//! An entry is one 64-bit word, so a reader sees all of it or none: a port can't be read beside a
//! MAC it didn't belong to. Address and VLAN take 60 bits; they fit beside the port because a
//! bijection scatters them first, and a word stands only in the four buckets that start at
//! the one its high bits name: those bits are known from the place. What is compared is therefore
//! the whole address, never a hash of it.
//!
//! Writers change words by CAS only. Two that learn one station at the same instant may put it
//! into two slots; each looks over the reach after its CAS, so at least one sees both and takes
//! one of them away. When a station was last seen stands in a word beside; it decides about expiry
//! only and never goes back.

use crate::ids::PortId;
use crate::sync::atomic::{fence, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::units::{Nanos, Time};
use crossbeam::utils::CachePadded;
use holdfast_wire::MacAddr;
use std::fmt;
use thiserror::Error;

#[cfg(all(test, loom))]
mod interleavings;
mod word;
use word::{Key, Scatter, Word};

/// Slots of a bucket: one cache line of words; fewer where loom has to look at each load.
const SLOTS: usize = if cfg!(loom) { 2 } else { 8 };
/// Buckets in which an entry may stand, counted from its own.
const REACH: usize = 4;
/// Fewest and most entries that a table can have.
const CAPACITY: core::ops::RangeInclusive<usize> = SLOTS << 6..=1 << 20;

/// What learning found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learn {
    /// The station was known behind this port.
    Known,
    /// It was unknown.
    New,
    /// It was known behind another port and has moved.
    Moved,
    /// No slot in reach is free; nothing was learned, and no live entry gave way.
    Full,
    /// A static entry names another port, or the source is a group address.
    Refused,
}

/// Why a static entry can't be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FdbError {
    /// A group address.
    #[error("{mac} is a group address; a static entry names one station")]
    Group {
        /// The address.
        mac: MacAddr,
    },
    /// All slots in reach are taken.
    #[error(
        "no free slot for {mac} among {len} of {capacity} entries; make the table larger or \
         remove entries"
    )]
    Full {
        /// The address.
        mac: MacAddr,
        /// Entries in the table.
        len: usize,
        /// Entries it can have.
        capacity: usize,
    },
}

/// One entry, as `show fdb` lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdbEntry {
    /// The station.
    pub mac: MacAddr,
    /// Its VLAN, 0 where VLANs aren't looked at.
    pub vlan: u16,
    /// The port it lies behind.
    pub port: PortId,
    /// Made by the operator: doesn't age and doesn't move.
    pub is_static: bool,
    /// How long ago it was seen, in whole seconds; 0 for a static entry.
    pub age: Nanos,
}

#[derive(Default)]
struct Bucket {
    words: [AtomicU64; SLOTS],
    /// When the slot's station was last seen, in seconds.
    seen: [AtomicU32; SLOTS],
}

/// An entry as a writer found it.
struct Found<'a> {
    at: &'a AtomicU64,
    seen: &'a AtomicU32,
    word: Word,
}

impl Found<'_> {
    /// Puts `new` where the entry stood; `false` if it isn't there any more.
    fn replace(&self, new: Word) -> bool {
        let (old, new) = (self.word.0, new.0);
        self.at.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn is_expired(&self, now: u32, ageing: u32) -> bool {
        !self.word.is_static() && now.saturating_sub(self.seen.load(Ordering::Relaxed)) > ageing
    }

    #[inline]
    fn refresh(&self, now: u32) {
        if self.seen.load(Ordering::Relaxed) != now {
            self.seen.fetch_max(now, Ordering::Relaxed);
        }
    }
}

/// How an attempt to insert ended.
enum Inserted {
    Done,
    /// Another writer changed the slot: look again.
    Raced,
    Full,
}

/// The forwarding database: fixed size, lock-free, several writers.
pub struct Fdb {
    buckets: Box<[CachePadded<Bucket>]>,
    scatter: Scatter,
    ageing: u32,
    len: AtomicUsize,
    swept: AtomicUsize,
}

impl fmt::Debug for Fdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fdb").field("len", &self.len()).finish_non_exhaustive()
    }
}

const fn seconds(time: Time) -> u32 {
    (time.0 / 1_000_000_000) as u32
}

impl Fdb {
    /// A table for `capacity` stations, rounded up to a power of two between 512 and 2^20.
    ///
    /// A station is forgotten `ageing` after its last frame, up to 1 s later. `seed` scatters the
    /// entries: a sender that doesn't know it can't aim at the slots of another station.
    pub fn new(capacity: usize, ageing: Nanos, seed: u64) -> Self {
        let capacity = capacity.clamp(*CAPACITY.start(), *CAPACITY.end()).next_power_of_two();
        let buckets = capacity / SLOTS;
        Self {
            buckets: (0..buckets).map(|_| CachePadded::default()).collect(),
            scatter: Scatter::new(seed, buckets.ilog2()),
            ageing: ageing.0.div_ceil(1_000_000_000).min(u64::from(u32::MAX)) as u32,
            len: AtomicUsize::new(0),
            swept: AtomicUsize::new(0),
        }
    }

    /// Entries it can hold.
    pub fn capacity(&self) -> usize {
        self.buckets.len() * SLOTS
    }

    /// Entries it holds, those included that have expired and were not swept yet.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Whether it holds no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A frame from `mac` in `vlan` came in at `port`. A station moves at once; the usual case,
    /// known and seen this second, only reads.
    #[inline]
    pub fn learn(&self, mac: MacAddr, vlan: u16, port: PortId, now: Time) -> Learn {
        if mac.is_multicast() {
            return Learn::Refused;
        }
        let (key, now) = (self.scatter.key(mac, vlan), seconds(now));
        // Each turn but the last means that another writer got ahead: lock-free.
        loop {
            let Some(found) = self.find(key) else {
                match self.insert(key, port, false, now) {
                    Inserted::Done => return Learn::New,
                    Inserted::Full => return Learn::Full,
                    Inserted::Raced => continue,
                }
            };
            let expired = found.is_expired(now, self.ageing);
            let moves = found.word.port() != port;
            if moves && found.word.is_static() {
                return Learn::Refused;
            }
            if moves && !found.replace(found.word.moved_to(port)) {
                continue;
            }
            // After the move: the old port must not be seen fresh.
            found.refresh(now);
            return match (expired, moves) {
                (true, _) => Learn::New,
                (false, true) => Learn::Moved,
                (false, false) => Learn::Known,
            };
        }
    }

    /// The port that `mac` lies behind in `vlan`; `None` if it isn't known, or expired.
    #[inline]
    pub fn lookup(&self, mac: MacAddr, vlan: u16, now: Time) -> Option<PortId> {
        let found = self.find(self.scatter.key(mac, vlan))?;
        (!found.is_expired(seconds(now), self.ageing)).then(|| found.word.port())
    }

    /// Nails a station to a port: it neither ages nor moves. Replaces what was known of it.
    ///
    /// # Errors
    /// A group address, or no free slot in reach.
    pub fn add_static(
        &self,
        mac: MacAddr,
        vlan: u16,
        port: PortId,
        now: Time,
    ) -> Result<(), FdbError> {
        if mac.is_multicast() {
            return Err(FdbError::Group { mac });
        }
        let key = self.scatter.key(mac, vlan);
        loop {
            if let Some(found) = self.find(key) {
                if found.replace(found.word.moved_to(port).made_static()) {
                    return Ok(());
                }
                continue;
            }
            match self.insert(key, port, true, seconds(now)) {
                Inserted::Done => return Ok(()),
                Inserted::Full => {
                    let (len, capacity) = (self.len(), self.capacity());
                    return Err(FdbError::Full { mac, len, capacity });
                }
                Inserted::Raced => {}
            }
        }
    }

    /// Removes a station, static or learned. `false` if it wasn't there.
    pub fn remove(&self, mac: MacAddr, vlan: u16) -> bool {
        let key = self.scatter.key(mac, vlan);
        while let Some(found) = self.find(key) {
            if self.clear(&found) {
                return true;
            }
        }
        false
    }

    /// Forgets what was learned behind `port`: its link went down. Static entries stay.
    /// Returns how many were forgotten.
    pub fn flush_port(&self, port: PortId) -> usize {
        let learned = |found: &Found<'_>| !found.word.is_static() && found.word.port() == port;
        self.all().filter(|(_, found)| learned(found) && self.clear(found)).count()
    }

    /// Clears all entries of a port that is removed, static ones too. Returns how many.
    pub fn forget_port(&self, port: PortId) -> usize {
        self.all().filter(|(_, found)| found.word.port() == port && self.clear(found)).count()
    }

    /// Clears expired entries out of the next `budget` slots, round and round over calls.
    /// Returns how many it cleared.
    pub fn sweep(&self, now: Time, budget: usize) -> usize {
        let (now, buckets) = (seconds(now), self.buckets.len());
        let count = budget.div_ceil(SLOTS).min(buckets);
        let start = self.swept.fetch_add(count, Ordering::Relaxed);
        let swept = (0..count).flat_map(|step| self.bucket((start + step) % buckets));
        swept.filter(|found| found.is_expired(now, self.ageing) && self.clear(found)).count()
    }

    /// All entries that haven't expired, in no order that means anything. What changes meanwhile
    /// may be in it or not.
    pub fn iter(&self, now: Time) -> impl Iterator<Item = FdbEntry> + '_ {
        let now = seconds(now);
        let live = self.all().filter(move |(_, found)| !found.is_expired(now, self.ageing));
        live.map(move |(bucket, Found { seen, word, .. })| {
            let home = (bucket + self.buckets.len() - word.distance()) % self.buckets.len();
            let (mac, vlan) = self.scatter.station(home, word.rest());
            let age = match word.is_static() {
                true => 0,
                false => u64::from(now.saturating_sub(seen.load(Ordering::Relaxed))),
            };
            let age = Nanos(age * 1_000_000_000);
            FdbEntry { mac, vlan, port: word.port(), is_static: word.is_static(), age }
        })
    }

    /// The buckets in which `key` may stand, each with its distance from the first.
    #[inline]
    fn reach(&self, key: Key) -> impl Iterator<Item = (usize, &Bucket)> {
        let mask = self.buckets.len() - 1;
        (0..REACH).map(move |distance| (distance, &*self.buckets[(key.home + distance) & mask]))
    }

    /// The first entry of `key`. Nearly all stand in their own bucket.
    #[inline]
    fn find(&self, key: Key) -> Option<Found<'_>> {
        let home = &self.buckets[key.home & (self.buckets.len() - 1)];
        Self::find_in(home, key, 0).or_else(|| self.find_further(key))
    }

    #[inline(never)]
    fn find_further(&self, key: Key) -> Option<Found<'_>> {
        self.reach(key).skip(1).find_map(|(distance, bucket)| Self::find_in(bucket, key, distance))
    }

    #[inline(always)]
    fn find_in(bucket: &Bucket, key: Key, distance: usize) -> Option<Found<'_>> {
        bucket.words.iter().zip(&bucket.seen).find_map(|(at, seen)| {
            let word = Word(at.load(Ordering::Acquire));
            word.is_of(key, distance).then_some(Found { at, seen, word })
        })
    }

    /// Puts an entry that wasn't found into the first free slot in reach. Where there is none, an
    /// expired one gives way, and the next attempt finds its slot.
    fn insert(&self, key: Key, port: PortId, is_static: bool, now: u32) -> Inserted {
        let mut expired = None;
        for (distance, bucket) in self.reach(key) {
            for (at, seen) in bucket.words.iter().zip(&bucket.seen) {
                let found = Found { at, seen, word: Word(at.load(Ordering::Acquire)) };
                if found.word.is_free() {
                    // Before the word shows, so that nobody finds it expired.
                    seen.fetch_max(now, Ordering::Relaxed);
                    if !found.replace(Word::new(key, distance, port, is_static)) {
                        return Inserted::Raced;
                    }
                    self.len.fetch_add(1, Ordering::Relaxed);
                    self.keep_one(key);
                    return Inserted::Done;
                }
                if expired.is_none() && found.is_expired(now, self.ageing) {
                    expired = Some(found);
                }
            }
        }
        match expired {
            Some(found) => {
                self.clear(&found);
                Inserted::Raced
            }
            None => Inserted::Full,
        }
    }

    /// Clears all entries of `key` but one: the static one, else the first in reach. Called after
    /// an insertion: of two writers that inserted at once, the later one at least sees both.
    fn keep_one(&self, key: Key) {
        // Between this writer's word and its view of the other's: one of two sees both.
        fence(Ordering::SeqCst);
        loop {
            let mut kept: Option<Found<'_>> = None;
            let mut surplus = None;
            for (distance, bucket) in self.reach(key) {
                for (at, seen) in bucket.words.iter().zip(&bucket.seen) {
                    let found = Found { at, seen, word: Word(at.load(Ordering::Acquire)) };
                    if !found.word.is_of(key, distance) {
                        continue;
                    }
                    let better = kept
                        .as_ref()
                        .is_none_or(|kept| found.word.is_static() && !kept.word.is_static());
                    surplus = if better { kept.replace(found).or(surplus) } else { Some(found) };
                }
            }
            let Some(surplus) = surplus else { return };
            self.clear(&surplus);
        }
    }

    /// Frees the slot of an entry; `false` if it isn't there any more.
    fn clear(&self, found: &Found<'_>) -> bool {
        let cleared = found.replace(Word::FREE);
        if cleared {
            self.len.fetch_sub(1, Ordering::Relaxed);
        }
        cleared
    }

    fn bucket(&self, index: usize) -> impl Iterator<Item = Found<'_>> {
        let bucket = &self.buckets[index];
        bucket.words.iter().zip(&bucket.seen).filter_map(|(at, seen)| {
            let word = Word(at.load(Ordering::Acquire));
            (!word.is_free()).then_some(Found { at, seen, word })
        })
    }

    fn all(&self) -> impl Iterator<Item = (usize, Found<'_>)> {
        (0..self.buckets.len())
            .flat_map(|index| self.bucket(index).map(move |found| (index, found)))
    }
}
