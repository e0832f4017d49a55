//! Telling duplicates and late frames from new ones: a sliding window over a flow's sequence numbers.
//!
//! The window is kept in whole 64-bit words, so that it remembers the last 961 to 1,024 numbers. The same code runs in
//! the sink and under property tests.

use crate::records::{FlowWindow, WINDOW};

/// Words of a window.
pub const WORDS: u64 = WINDOW as u64 / 64;

/// What a sequence number is to a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Younger than every one before.
    New,
    /// Seen before.
    Duplicate,
    /// Older than a younger one that came first; or so old that it can't be told from a duplicate.
    Late,
}

impl FlowWindow {
    /// A window that has seen nothing.
    pub const EMPTY: Self = Self { next: 0, seen: [0; WORDS as usize] };

    /// Notes a sequence number.
    #[inline(always)]
    pub fn note(&mut self, sequence: u32) -> Arrival {
        let sequence = u64::from(sequence);
        let (word, bit) = (sequence >> 6, 1u64 << (sequence & 63));
        let slot = (word & (WORDS - 1)) as usize;
        if sequence < self.next {
            let newest = (self.next - 1) >> 6;
            if word + WORDS <= newest {
                return Arrival::Late;
            }
            if self.seen[slot] & bit != 0 {
                return Arrival::Duplicate;
            }
            self.seen[slot] |= bit;
            return Arrival::Late;
        }
        if sequence == self.next {
            // The common case: the next in line. A word is entered at its first bit.
            if sequence & 63 == 0 {
                self.seen[slot] = 0;
            }
        } else if self.next == 0 {
            self.seen[slot] = 0;
        } else {
            // A gap: every word between the newest and this one is entered.
            let newest = (self.next - 1) >> 6;
            let mut step = 1;
            while step <= WORDS {
                if newest + step > word {
                    break;
                }
                self.seen[((newest + step) & (WORDS - 1)) as usize] = 0;
                step += 1;
            }
        }
        self.seen[slot] |= bit;
        self.next = sequence + 1;
        Arrival::New
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_in_order_are_new() {
        let mut window = FlowWindow::EMPTY;
        assert!((0..10_000).all(|n| window.note(n) == Arrival::New));
        assert_eq!(window.note(9_999), Arrival::Duplicate);
        assert_eq!(window.note(9_100), Arrival::Duplicate, "within the window");
        assert_eq!(window.note(1), Arrival::Late, "beyond it: can't be told");
    }

    #[test]
    fn a_flow_may_start_anywhere_and_jump() {
        let mut window = FlowWindow::EMPTY;
        assert_eq!(window.note(5_000_000), Arrival::New);
        assert_eq!(window.note(5_000_000), Arrival::Duplicate);
        assert_eq!(window.note(4_999_999), Arrival::Late);
        assert_eq!(window.note(9_000_000), Arrival::New);
        assert_eq!(window.note(9_000_001), Arrival::New);
        assert_eq!(window.note(8_999_999), Arrival::Late);
        assert_eq!(window.note(8_999_999), Arrival::Duplicate);
    }

    proptest! {
        /// Against a set of everything seen, for numbers that never fall out of the window.
        #[test]
        fn the_window_agrees_with_a_set(start in 0u32..1_000_000, steps in prop::collection::vec((any::<bool>(), 0u32..900), 1..400)) {
            let (mut window, mut seen, mut next) = (FlowWindow::EMPTY, HashSet::from([start]), start + 1);
            prop_assert_eq!(window.note(start), Arrival::New);
            for (back, by) in steps {
                let sequence = if back { next.saturating_sub(by) } else { next.saturating_add(by % 40) };
                let expected = if !seen.insert(sequence) {
                    Arrival::Duplicate
                } else if sequence < next {
                    Arrival::Late
                } else {
                    Arrival::New
                };
                prop_assert_eq!(window.note(sequence), expected, "{} after {}", sequence, next);
                next = next.max(sequence + 1);
            }
        }

        #[test]
        fn nothing_new_is_called_a_duplicate(numbers in prop::collection::vec(any::<u32>(), 1..200)) {
            let (mut window, mut seen) = (FlowWindow::EMPTY, HashSet::new());
            for n in numbers {
                let arrival = window.note(n);
                prop_assert!(!(arrival == Arrival::Duplicate && seen.insert(n)));
                seen.insert(n);
            }
        }
    }
}
