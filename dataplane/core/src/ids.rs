//! Identities with checked constructors, and tables that only their own id can index (DESIGN 3).

use core::fmt;
use core::ops::{Index, IndexMut};

/// Ports a switch can have: the descriptor keeps 6 bits for one.
pub const MAX_PORTS: usize = 64;
/// Workers a switch can have.
pub const MAX_WORKERS: usize = 16;
/// Named Service pools on the ingress side.
pub const MAX_POOLS: usize = 8;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $count:expr, $table:ident, $(#[$tdoc:meta])*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u8);

        impl $name {
            /// How many there are.
            pub const COUNT: usize = $count;

            /// The id with this number, `None` if it is out of range.
            #[inline]
            pub const fn new(n: u8) -> Option<Self> {
                if (n as usize) < Self::COUNT { Some(Self(n)) } else { None }
            }

            /// The low bits of `n`, for fields that are as wide as the id.
            #[inline]
            pub const fn from_bits(n: u8) -> Self {
                Self(n % Self::COUNT as u8)
            }

            /// As an index.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// As a number.
            #[inline]
            pub const fn number(self) -> u8 {
                self.0
            }

            /// All of them in order.
            pub fn all() -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
                (0..Self::COUNT as u8).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        $(#[$tdoc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $table<T>(pub [T; $count]);

        impl<T> $table<T> {
            /// A table whose entries come from their id.
            pub fn from_fn(mut make: impl FnMut($name) -> T) -> Self {
                Self(core::array::from_fn(|i| make($name(i as u8))))
            }

            /// Entries with their ids.
            pub fn iter(&self) -> impl Iterator<Item = ($name, &T)> {
                $name::all().zip(self.0.iter())
            }

            /// Entries with their ids, to change.
            pub fn iter_mut(&mut self) -> impl Iterator<Item = ($name, &mut T)> {
                $name::all().zip(self.0.iter_mut())
            }
        }

        impl<T: Default> Default for $table<T> {
            fn default() -> Self {
                Self::from_fn(|_| T::default())
            }
        }

        impl<T> Index<$name> for $table<T> {
            type Output = T;
            #[inline]
            fn index(&self, id: $name) -> &T {
                &self.0[id.index()]
            }
        }

        impl<T> IndexMut<$name> for $table<T> {
            #[inline]
            fn index_mut(&mut self, id: $name) -> &mut T {
                &mut self.0[id.index()]
            }
        }
    };
}

id!(/** Priority group of an ingress port, 0..7. */ PgId, 8, PerPg, /** One entry a PG. */);
id!(/** Class of service, 0..7. */ Cos, 8, PerCos, /** One entry a CoS. */);
id!(/** Egress queue of a port, 0..7. */ QueueId, 8, PerQueue, /** One entry a queue. */);
id!(/** PFC priority: a bit of the class-enable vector. */ Priority, 8, PerPriority,
    /** One entry a priority. */);
id!(/** 802.1Q priority code point, 0..7. */ Pcp, 8, PerPcp, /** One entry a PCP. */);
id!(/** Differentiated services code point, 0..63. */ Dscp, 64, PerDscp, /** One entry a DSCP. */);

/// A port of the switch, numbered in the order of its configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(u8);

impl PortId {
    /// The port with this number, `None` from [`MAX_PORTS`] on.
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < MAX_PORTS {
            Some(Self(n))
        } else {
            None
        }
    }

    /// The low six bits.
    #[inline]
    pub const fn from_bits(n: u8) -> Self {
        Self(n % MAX_PORTS as u8)
    }

    /// As an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// As a number.
    #[inline]
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One entry a port, sized at boot to [`MAX_PORTS`] so that every `PortId` has an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerPort<T>(Vec<T>);

impl<T> PerPort<T> {
    /// A table whose entries come from their port.
    pub fn from_fn(mut make: impl FnMut(PortId) -> T) -> Self {
        Self((0..MAX_PORTS as u8).map(|n| make(PortId(n))).collect())
    }

    /// Entries with their ports.
    pub fn iter(&self) -> impl Iterator<Item = (PortId, &T)> {
        self.0.iter().enumerate().map(|(n, entry)| (PortId(n as u8), entry))
    }
}

impl<T: Default> Default for PerPort<T> {
    fn default() -> Self {
        Self::from_fn(|_| T::default())
    }
}

impl<T> Index<PortId> for PerPort<T> {
    type Output = T;
    #[inline]
    fn index(&self, id: PortId) -> &T {
        &self.0[id.index()]
    }
}

impl<T> IndexMut<PortId> for PerPort<T> {
    #[inline]
    fn index_mut(&mut self, id: PortId) -> &mut T {
        &mut self.0[id.index()]
    }
}

/// A Service pool of the ingress view (SPEC 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(u8);

impl PoolId {
    /// The pool with this number, `None` from [`MAX_POOLS`] on.
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < MAX_POOLS {
            Some(Self(n))
        } else {
            None
        }
    }

    /// As an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A worker thread's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(u8);

impl WorkerId {
    /// The worker with this number, `None` from [`MAX_WORKERS`] on.
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < MAX_WORKERS {
            Some(Self(n))
        } else {
            None
        }
    }

    /// As an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of PFC priorities, one bit each as in the class-enable vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PrioritySet(pub u8);

impl PrioritySet {
    /// No priority.
    pub const EMPTY: Self = Self(0);

    /// Only this one.
    pub const fn only(priority: Priority) -> Self {
        Self(1 << priority.0)
    }

    /// Whether `priority` is in the set.
    #[inline]
    pub const fn contains(self, priority: Priority) -> bool {
        self.0 & (1 << priority.0) != 0
    }

    /// With `priority` added.
    #[must_use]
    pub const fn with(self, priority: Priority) -> Self {
        Self(self.0 | (1 << priority.0))
    }

    /// Those in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those in either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether none is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its members in order.
    pub fn iter(self) -> impl Iterator<Item = Priority> {
        Priority::all().filter(move |p| self.contains(*p))
    }
}

/// A set of egress queues, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QueueSet(pub u8);

impl QueueSet {
    /// No queue.
    pub const EMPTY: Self = Self(0);

    /// Only this one.
    pub const fn only(queue: QueueId) -> Self {
        Self(1 << queue.0)
    }

    /// Whether `queue` is in the set.
    #[inline]
    pub const fn contains(self, queue: QueueId) -> bool {
        self.0 & (1 << queue.0) != 0
    }

    /// Those in either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether none is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its members in order.
    pub fn iter(self) -> impl Iterator<Item = QueueId> {
        QueueId::all().filter(move |q| self.contains(*q))
    }
}
