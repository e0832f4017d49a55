//! Blocks of four windows, A B B A or B A A B, and the one difference that a reload's blocks give.
//!
//! Within a block a drift that is linear in time adds equally to both sides and cancels; a curved one has opposite signs
//! in the two orders, which are drawn in equal numbers. A difference of a reload is the median of its blocks: half of
//! them may be off without moving it far.

use crate::measure::interval::median;

/// The order of the windows in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Baseline, candidate, candidate, baseline.
    Abba,
    /// Candidate, baseline, baseline, candidate.
    Baab,
}

/// What a window measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// A: what is compared with.
    Baseline,
    /// B: what is judged.
    Candidate,
}

impl Order {
    /// The sides of the four windows, in time.
    pub fn sides(self) -> [Side; 4] {
        use Side::{Baseline as A, Candidate as B};
        match self {
            Self::Abba => [A, B, B, A],
            Self::Baab => [B, A, A, B],
        }
    }
}

/// Draws the orders of blocks, reproducibly: the same seed gives the same orders, with the same version of the generator.
#[derive(Debug, Clone)]
pub struct Orders {
    seed: u64,
    generator: fastrand::Rng,
}

impl Orders {
    /// A drawer that starts from `seed`, which belongs in the record.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, generator: fastrand::Rng::with_seed(seed) }
    }

    /// The seed that it started from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The orders of a reload's blocks: both orders equally often, or one once more where `blocks` is odd.
    pub fn draw(&mut self, blocks: usize) -> Vec<Order> {
        let more = if self.generator.bool() { Order::Abba } else { Order::Baab };
        let fewer = if more == Order::Abba { Order::Baab } else { Order::Abba };
        let mut orders: Vec<Order> = (0..blocks).map(|i| if i % 2 == 0 { more } else { fewer }).collect();
        self.generator.shuffle(&mut orders);
        orders
    }
}

/// One timed stretch of traffic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Its cost, in nanoseconds a packet.
    pub ns: f64,
    /// Whether something else ran on the CPU meanwhile (an interrupt, steal, a migration), so that it says nothing.
    pub disturbed: bool,
}

/// Four windows in their order in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// Which windows are the candidate's.
    pub order: Order,
    /// The windows, the earliest first.
    pub windows: [Window; 4],
}

impl Block {
    /// Candidate minus baseline, in nanoseconds a packet; `None` where a window was disturbed or is not a finite number.
    ///
    /// Without one of its windows a block no longer cancels drift, so that the whole block is left out.
    pub fn difference(&self) -> Option<f64> {
        if self.windows.iter().any(|window| window.disturbed || !window.ns.is_finite()) {
            return None;
        }
        let sum = |side: Side| -> f64 {
            let windows = self.windows.iter().zip(self.order.sides());
            windows.filter(|(_, of)| *of == side).map(|(window, _)| window.ns).sum()
        };
        Some((sum(Side::Candidate) - sum(Side::Baseline)) / 2.0)
    }
}

/// What one reload says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reload {
    /// Candidate minus baseline, in nanoseconds a packet: the median of its blocks. `None` where all were disturbed.
    pub difference: Option<f64>,
    /// The blocks that it rests on.
    pub used: usize,
    /// The blocks that were left out.
    pub disturbed: usize,
}

/// The difference of a reload from its blocks.
pub fn reload(blocks: &[Block]) -> Reload {
    let differences: Vec<f64> = blocks.iter().filter_map(Block::difference).collect();
    Reload {
        difference: median(&differences).map(|estimate| estimate.value),
        used: differences.len(),
        disturbed: blocks.len() - differences.len(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A block at `start`, whose windows cost `base`, with `delta` more for the candidate and a cost that drifts.
    fn block(order: Order, base: f64, delta: f64, drift: impl Fn(f64) -> f64) -> Block {
        let mut time = 0.0;
        let windows = order.sides().map(|side| {
            let ns = base + drift(time) + if side == Side::Candidate { delta } else { 0.0 };
            time += 1.0;
            Window { ns, disturbed: false }
        });
        Block { order, windows }
    }

    fn disturbed(mut block: Block, window: usize) -> Block {
        block.windows[window] = Window { ns: 1e6, disturbed: true };
        block
    }

    #[test]
    fn a_curved_drift_cancels_between_the_orders() {
        let curved = |time: f64| time * time;
        let one = block(Order::Abba, 50.0, 2.0, curved).difference().unwrap();
        let other = block(Order::Baab, 50.0, 2.0, curved).difference().unwrap();
        assert!((one - 2.0).abs() > 1.0, "alone it does not: {one}");
        assert!((f64::midpoint(one, other) - 2.0).abs() < 1e-9, "{one} and {other}");
    }

    #[test]
    fn disturbed_blocks_are_left_out_and_counted() {
        let calm = block(Order::Abba, 50.0, 2.0, |_| 0.0);
        let found = reload(&[disturbed(calm, 0), calm, disturbed(calm, 3)]);
        assert_eq!(found, Reload { difference: Some(2.0), used: 1, disturbed: 2 });
        assert_eq!(reload(&[disturbed(calm, 1)]), Reload { difference: None, used: 0, disturbed: 1 });
        assert_eq!(reload(&[]), Reload { difference: None, used: 0, disturbed: 0 });
    }

    #[test]
    fn a_window_without_a_number_is_as_disturbed() {
        let mut broken = block(Order::Baab, 50.0, 2.0, |_| 0.0);
        broken.windows[2].ns = f64::NAN;
        assert_eq!(broken.difference(), None);
    }

    #[test]
    fn a_disturbance_that_nobody_saw_hardly_moves_a_reload() {
        let calm = block(Order::Abba, 50.0, 2.0, |_| 0.0);
        let mut wild = calm;
        wild.windows[1].ns = 1e6;
        assert_eq!(reload(&[calm, wild, calm]).difference, Some(2.0));
    }

    #[test]
    fn the_seed_gives_the_orders() {
        let draw = |seed| {
            let mut orders = Orders::seeded(seed);
            assert_eq!(orders.seed(), seed);
            (0..20).flat_map(|_| orders.draw(5)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn each_place_has_each_order_about_as_often() {
        let mut orders = Orders::seeded(1);
        let mut abba = [0; 5];
        for _ in 0..4000 {
            for (place, order) in orders.draw(5).into_iter().enumerate() {
                abba[place] += usize::from(order == Order::Abba);
            }
        }
        // Five standard deviations of 4000 coins: 158.
        assert!(abba.iter().all(|count| count.abs_diff(2000) < 158), "{abba:?}");
    }

    proptest! {
        #[test]
        fn a_linear_drift_cancels(
            abba: bool, base in 1.0f64..500.0, delta in -50.0f64..50.0, slope in -10.0f64..10.0,
        ) {
            let order = if abba { Order::Abba } else { Order::Baab };
            let found = block(order, base, delta, |time| slope * time).difference().unwrap();
            prop_assert!((found - delta).abs() < 1e-9, "{}", found);
        }

        #[test]
        fn orders_are_balanced(seed: u64, blocks in 0usize..40) {
            let orders = Orders::seeded(seed).draw(blocks);
            let abba = orders.iter().filter(|order| **order == Order::Abba).count();
            prop_assert_eq!(orders.len(), blocks);
            prop_assert!(abba.abs_diff(blocks - abba) <= 1);
        }
    }
}
