//! How conditions, values and lines name what stands in the arenas of a tree.

use std::num::NonZeroU32;

macro_rules! arena_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU32);

        impl $name {
            pub(crate) fn new(index: usize) -> Self {
                Self(u32::try_from(index).map_or(NonZeroU32::MAX, |index| NonZeroU32::MIN.saturating_add(index)))
            }

            /// The position in the tree's arena.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }
    };
}

arena_id!(
    /// A symbol of one tree.
    SymbolId
);
arena_id!(
    /// A menu node of one tree.
    NodeId
);
arena_id!(
    /// A choice of one tree.
    ChoiceId
);
