//! Group testing: items are tried in pools, and from what each pool shows follows which item shows
//! what. Knows nothing of settings and of what a trial is.

use std::collections::{BTreeMap, BTreeSet};

/// Pools as the bits of a number.
type PoolBits = u128;

/// In how many pools each item is.
const WEIGHT: u32 = 5;
/// Nothing is said of an item that is in fewer pools.
const SURE: u32 = 3;

/// Pools that were tried.
pub(super) struct Pools<T> {
    /// The pools of each item.
    items: BTreeMap<usize, PoolBits>,
    /// The pools that showed each thing.
    shown: BTreeMap<T, PoolBits>,
    count: u32,
}

/// What pools tell of items.
pub(super) struct Decoded<T> {
    /// Which item shows what: no other one can have shown it.
    pub shown: Vec<(usize, T)>,
    /// Items of which the pools do not tell enough: each of them may have shown something that the
    /// others can have shown too.
    pub open: BTreeSet<usize>,
}

/// What is known of items and of the things that they show.
pub(super) trait Knowledge<T> {
    /// Whether an item is known to show this.
    fn knows(&self, item: usize, thing: &T) -> bool;

    /// Whether all that an item shows is known.
    fn is_settled(&self, item: usize) -> bool;

    /// Whether an item that shows the one shows the other too.
    fn includes(&self, one: &T, other: &T) -> bool;

    /// Whether a pool that shows the one cannot show the other, whatever is in it.
    fn hides(&self, one: &T, other: &T) -> bool;
}

impl<T: Clone + Ord> Pools<T> {
    pub(super) fn new() -> Self {
        Self { items: BTreeMap::new(), shown: BTreeMap::new(), count: 0 }
    }

    /// Adds a pool with what it showed. One more than there are bits for is left out.
    pub(super) fn add(&mut self, items: impl Iterator<Item = usize>, shown: BTreeSet<T>) {
        let Some(bit) = PoolBits::from(1u8).checked_shl(self.count) else { return };
        self.count += 1;
        for item in items {
            *self.items.entry(item).or_default() |= bit;
        }
        for thing in shown {
            *self.shown.entry(thing).or_default() |= bit;
        }
    }

    /// What follows from the pools. What few pools show is decoded first: it tells most.
    pub(super) fn decode(&self, knowledge: &impl Knowledge<T>) -> Decoded<T> {
        let mut decoded: Decoded<T> = Decoded { shown: Vec::new(), open: BTreeSet::new() };
        let mut things: Vec<(&T, PoolBits)> = self.shown.iter().map(|(thing, bits)| (thing, *bits)).collect();
        things.sort_by_key(|(_, bits)| bits.count_ones());
        for (thing, bits) in &things {
            let is_known = |item: usize| {
                let mut new = decoded.shown.iter().filter(|(known, _)| *known == item);
                knowledge.knows(item, thing) || new.any(|(_, other)| knowledge.includes(other, thing))
            };
            let explained = union(self.items.iter().filter(|(item, _)| is_known(**item)).map(|(_, pools)| *pools));
            let unexplained = bits & !explained;
            if unexplained == 0 {
                continue;
            }
            let hidden = union(things.iter().filter(|(other, _)| knowledge.hides(other, thing)).map(|(_, bits)| *bits));
            let may_show = |item: usize, pools: PoolBits| {
                pools & !(bits | hidden) == 0 && pools & unexplained != 0 && !is_known(item)
            };
            let candidates: Vec<(usize, PoolBits)> = self
                .items
                .iter()
                .map(|(item, pools)| (*item, *pools))
                .filter(|(item, pools)| may_show(*item, *pools) && !knowledge.is_settled(*item))
                .collect();
            match candidates[..] {
                [(item, pools)] if unexplained & !pools == 0 && pools.count_ones() >= SURE => {
                    decoded.shown.push((item, (*thing).clone()));
                }
                _ => decoded.open.extend(candidates.into_iter().map(|(item, _)| item)),
            }
        }
        decoded
    }
}

fn union(bits: impl Iterator<Item = PoolBits>) -> PoolBits {
    bits.fold(0, |all, bits| all | bits)
}

/// Pools of so many items: each item is in some, no two items in the same ones, and few in most of
/// the same ones.
pub(super) fn design(items: usize) -> Vec<Vec<usize>> {
    let pools = (items.max(2).ilog2() + 1) * 2 + 10;
    let words = words(pools, items);
    let members = |pool: u32| (0..items).filter(|item| words[*item] >> pool & 1 == 1).collect();
    (0..pools).map(members).collect()
}

/// So many words with WEIGHT of `length` bits set, no two the same, those first that share the
/// fewest bits.
fn words(length: u32, count: usize) -> Vec<u32> {
    let all: Vec<u32> = (0..1u32 << length).filter(|word| word.count_ones() == WEIGHT).collect();
    // Neighbours in this order have much in common, so it is gone through in large steps.
    let step = (1..all.len()).map(|more| all.len() * 5 / 8 + more).find(|step| gcd(*step, all.len()) == 1).unwrap_or(1);
    let mixed: Vec<u32> = (0..all.len()).map(|at| all[at * step % all.len()]).collect();
    let mut chosen: Vec<u32> = Vec::new();
    for shared in 1..WEIGHT {
        for word in &mixed {
            if chosen.len() < count && chosen.iter().all(|other| (other & word).count_ones() <= shared) {
                chosen.push(*word);
            }
        }
    }
    chosen
}

fn gcd(left: usize, right: usize) -> usize {
    if right == 0 { left } else { gcd(right, left % right) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which items show which numbers.
    struct Truth(BTreeMap<usize, BTreeSet<u32>>);

    impl Knowledge<u32> for Truth {
        fn knows(&self, _: usize, _: &u32) -> bool {
            false
        }

        fn is_settled(&self, _: usize) -> bool {
            false
        }

        fn includes(&self, one: &u32, other: &u32) -> bool {
            one == other
        }

        fn hides(&self, _: &u32, _: &u32) -> bool {
            false
        }
    }

    fn decode(items: usize, truth: &Truth) -> Decoded<u32> {
        let mut pools = Pools::new();
        for pool in design(items) {
            let shown = pool.iter().filter_map(|item| truth.0.get(item)).flatten().copied().collect();
            pools.add(pool.into_iter(), shown);
        }
        pools.decode(truth)
    }

    #[test]
    fn what_one_item_shows_is_told_from_few_pools() {
        let truth = Truth((0..100).filter(|item| item % 3 != 0).map(|item| (item, [item as u32].into())).collect());
        let decoded = decode(100, &truth);
        assert_eq!(design(100).len(), 24);
        assert!(decoded.open.is_empty(), "{:?}", decoded.open);
        assert_eq!(decoded.shown.len(), truth.0.len());
        assert!(decoded.shown.iter().all(|(item, thing)| truth.0[item].contains(thing)));
    }

    #[test]
    fn items_that_show_the_same_are_open() {
        let truth = Truth([(3, [7].into()), (50, [7, 9].into())].into());
        let decoded = decode(100, &truth);
        assert_eq!(decoded.shown, [(50, 9)]);
        assert!(decoded.open.contains(&3) && decoded.open.contains(&50) && decoded.open.len() < 10);
    }

    #[test]
    fn any_number_of_items_has_its_pools() {
        for items in 0..40 {
            let pools = design(items);
            let of = |item: usize| pools.iter().filter(|pool| pool.contains(&item)).count();
            assert!((0..items).all(|item| of(item) > 0), "{items}");
        }
    }
}
