//! How counters become 64-bit words and come back, and what tells two layouts apart.

use holdfast_core::counters::Traffic;
use holdfast_core::drop::{DropCounters, DropReason};
use holdfast_core::ids::{PerDscp, PerPcp, PerPg, PerPriority, PerQueue};

/// Something of a fixed number of words.
pub trait Words: Sized {
    /// How many.
    const COUNT: usize;

    /// Hands its words to `into`, in order.
    fn put<F: FnMut(u64)>(&self, into: &mut F);

    /// Makes one of the next words of `from`.
    fn take<F: FnMut() -> u64>(from: &mut F) -> Self;

    /// One of the words of a copy; what is missing is 0.
    fn from_words(words: &[u64]) -> Self {
        let mut words = words.iter().copied();
        Self::take(&mut || words.next().unwrap_or_default())
    }
}

impl Words for u64 {
    const COUNT: usize = 1;

    #[inline]
    fn put<F: FnMut(u64)>(&self, into: &mut F) {
        into(*self);
    }

    #[inline]
    fn take<F: FnMut() -> u64>(from: &mut F) -> Self {
        from()
    }
}

impl Words for bool {
    const COUNT: usize = 1;

    #[inline]
    fn put<F: FnMut(u64)>(&self, into: &mut F) {
        into(u64::from(*self));
    }

    #[inline]
    fn take<F: FnMut() -> u64>(from: &mut F) -> Self {
        from() != 0
    }
}

impl<T: Words, const N: usize> Words for [T; N] {
    const COUNT: usize = N * T::COUNT;

    #[inline]
    fn put<F: FnMut(u64)>(&self, into: &mut F) {
        self.iter().for_each(|item| item.put(into));
    }

    #[inline]
    fn take<F: FnMut() -> u64>(from: &mut F) -> Self {
        core::array::from_fn(|_| T::take(from))
    }
}

macro_rules! table_words {
    ($($table:ident $entries:literal)*) => {$(
        impl<T: Words> Words for $table<T> {
            const COUNT: usize = $entries * T::COUNT;

            #[inline]
            fn put<F: FnMut(u64)>(&self, into: &mut F) {
                self.0.put(into);
            }

            #[inline]
            fn take<F: FnMut() -> u64>(from: &mut F) -> Self {
                Self(<[T; $entries]>::take(from))
            }
        }
    )*};
}

table_words!(PerPg 8 PerQueue 8 PerPriority 8 PerPcp 8 PerDscp 64);

impl Words for Traffic {
    const COUNT: usize = 2;

    #[inline]
    fn put<F: FnMut(u64)>(&self, into: &mut F) {
        [self.frames, self.bytes].put(into);
    }

    #[inline]
    fn take<F: FnMut() -> u64>(from: &mut F) -> Self {
        let [frames, bytes] = <[u64; 2]>::take(from);
        Self { frames, bytes }
    }
}

impl Words for DropCounters {
    const COUNT: usize = DropReason::COUNT;

    #[inline]
    fn put<F: FnMut(u64)>(&self, into: &mut F) {
        self.iter().for_each(|(_, count)| into(count));
    }

    #[inline]
    fn take<F: FnMut() -> u64>(from: &mut F) -> Self {
        let mut counters = Self::default();
        for reason in DropReason::ALL {
            counters.add(*reason, from());
        }
        counters
    }
}

/// Defines structs of words, and the text of their definitions: two programs with the same text
/// and the same counts read each other's words.
macro_rules! blocks {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$fdoc:meta])* $field:ident: $kind:ty,)*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, PartialEq, Eq)]
            pub struct $name {
                $($(#[$fdoc])* pub $field: $kind,)*
            }

            impl $crate::words::Words for $name {
                const COUNT: usize = 0 $(+ <$kind as $crate::words::Words>::COUNT)*;

                #[inline]
                fn put<F: FnMut(u64)>(&self, into: &mut F) {
                    $($crate::words::Words::put(&self.$field, into);)*
                }

                #[inline]
                fn take<F: FnMut() -> u64>(from: &mut F) -> Self {
                    Self { $($field: $crate::words::Words::take(from),)* }
                }
            }
        )*

        /// All definitions as text, with the number of words of each.
        pub(crate) const DEFINITIONS: &[(&str, usize)] = &[$((
            stringify!($name $($field: $kind,)*),
            <$name as $crate::words::Words>::COUNT,
        ),)*];
    };
}

pub(crate) use blocks;

/// FNV-1a of a text and a number, onto what was hashed before.
pub(crate) const fn fingerprint(mut hash: u64, text: &str, number: usize) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(PRIME);
        at += 1;
    }
    (hash ^ number as u64).wrapping_mul(PRIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<T: Words + PartialEq + std::fmt::Debug>(value: &T) {
        let mut words = Vec::new();
        value.put(&mut |word| words.push(word));
        assert_eq!(words.len(), T::COUNT);
        assert_eq!(T::from_words(&words), *value);
    }

    #[test]
    fn everything_comes_back_as_it_was() {
        let mut drops = DropCounters::default();
        for (n, reason) in (1..).zip(DropReason::ALL) {
            drops.add(*reason, n);
        }
        there_and_back(&PerPg::from_fn(|pg| [u64::from(pg.number()), u64::MAX]));
        there_and_back(&[true, false]);
        there_and_back(&[Traffic { frames: 3, bytes: 1 << 40 }; 2]);
        there_and_back(&drops);
    }

    #[test]
    fn a_field_more_and_a_field_elsewhere_are_other_layouts() {
        let of = |text, number| fingerprint(0, text, number);
        assert_ne!(of("Port up: u64, held: u64,", 2), of("Port held: u64, up: u64,", 2));
        assert_ne!(of("Port drops: DropCounters,", 16), of("Port drops: DropCounters,", 17));
    }
}
