//! Made-up measurements for the tests, reproducibly.

use super::blocks::{Block, Order, Orders, Side, Window, reload};

/// Draws noise.
pub(super) struct Noise {
    generator: fastrand::Rng,
}

impl Noise {
    pub(super) fn seeded(seed: u64) -> Self {
        Self { generator: fastrand::Rng::with_seed(seed) }
    }

    /// Uniform in (0, 1).
    pub(super) fn uniform(&mut self) -> f64 {
        // Never 0, whose logarithm is infinite.
        1.0 - self.generator.f64()
    }

    /// Standard normal, after Box and Muller.
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Exponential of mean 1.
    pub(super) fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// Where code landed in memory: 1 ns more, or nothing.
    pub(super) fn placement(&mut self, probability: f64) -> f64 {
        if self.uniform() < probability { 1.0 } else { 0.0 }
    }

    /// The difference of a reload of four blocks, measured while the cost drifts and wanders.
    ///
    /// A window costs 50 ns and 2 ns a window more or less than the one before it, the same through a reload; each side
    /// has a placement of its own; one window in twenty is disturbed.
    pub(super) fn drifting_reload(&mut self, delta: f64, orders: &mut Orders) -> f64 {
        let slope = 2.0 * self.normal();
        let placed = [0.5 * self.normal(), 0.5 * self.normal() + delta];
        let (mut base, mut blocks) = (50.0, Vec::new());
        for order in orders.draw(4) {
            blocks.push(self.drifting_block(order, placed, slope, &mut base));
        }
        reload(&blocks).difference.unwrap_or_else(|| self.drifting_reload(delta, orders))
    }

    fn drifting_block(&mut self, order: Order, placed: [f64; 2], slope: f64, base: &mut f64) -> Block {
        let windows = order.sides().map(|side| {
            *base += slope + 0.1 * self.normal();
            let disturbed = self.uniform() < 0.05;
            let extra = if disturbed { 20.0 * self.exponential() } else { 0.0 };
            let of_side = if side == Side::Baseline { placed[0] } else { placed[1] };
            Window { ns: *base + of_side + 0.3 * self.normal() + extra, disturbed }
        });
        Block { order, windows }
    }
}
