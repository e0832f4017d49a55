//! Whether a receiver was saturated: only then is what it received what it can receive.
//!
//! A rate that is measured over a NIC is the smallest of four: what the generator makes, what the line carries, what the
//! receiver takes, and where it sends on, what its target takes. It is the receiver's where its CPUs had no time left, its
//! polls were full, the line was not, and more arrived than it took. Tools that leave this open have published line rates
//! and generators' limits as costs of XDP.

use crate::record::Saturation;

/// Largest share of the time that a receiving CPU may have been idle: the kernel's accounting is no finer.
const IDLE_MOST: f64 = 0.01;
/// Least share of polls that used up their budget.
const FULL_LEAST: f64 = 0.95;
/// Largest share of the line's rate.
const LINE_MOST: f64 = 0.98;
/// Least that was sent beyond what was received, as a share of it.
const HEADROOM_LEAST: f64 = 0.02;

/// What was seen of a receiver. What depends on time was read while frames kept coming; what does not, before the first
/// frame and behind the last.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// How long it was looked at while frames kept coming, in seconds.
    pub seconds: f64,
    /// Frames received in that time, by the kernel's count of its polls.
    pub received: u64,
    /// Frames that were received in all.
    pub all: u64,
    /// Frames that the generator put on the line, in all.
    pub sent: u64,
    /// Frames that the receiver's NIC had no buffer for, in all.
    pub missed: u64,
    /// Polls that received something.
    pub polls: u64,
    /// Polls that used up their budget.
    pub full: u64,
    /// CPUs that received, and the share of the time that each was idle.
    pub cpus: Vec<(usize, f64)>,
}

impl Evidence {
    /// Two stretches of time as one.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let seconds = self.seconds + other.seconds;
        let share = |of: &Self, cpu: usize| {
            let idle = of.cpus.iter().find(|(at, _)| *at == cpu).map(|(_, idle)| *idle);
            // It received nothing in the other: what it did then says nothing of how it receives.
            idle.map(|idle| (idle * of.seconds, of.seconds))
        };
        let mut cpus: Vec<usize> = self.cpus.iter().chain(&other.cpus).map(|(cpu, _)| *cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let idle = |cpu: usize| {
            let (idle, of) = [share(self, cpu), share(other, cpu)]
                .into_iter()
                .flatten()
                .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            (cpu, if of > 0.0 { idle / of } else { 0.0 })
        };
        Self {
            seconds,
            received: self.received + other.received,
            all: self.all + other.all,
            sent: self.sent + other.sent,
            missed: self.missed + other.missed,
            polls: self.polls + other.polls,
            full: self.full + other.full,
            cpus: cpus.into_iter().map(idle).collect(),
        }
    }
}

/// The most frames of a size that a link carries, in Mpps: each has a preamble of 8 bytes and a gap of 12 besides (IEEE
/// 802.3, clauses 3 and 4). `speed` in Mbit/s, `frame_bytes` with the FCS.
pub fn line_mpps(speed: u32, frame_bytes: u32) -> f64 {
    f64::from(speed) / (8.0 * f64::from(frame_bytes + 20))
}

/// Judges what was seen; `line_mpps`: the link's limit, where the link has one.
pub fn judge(seen: &Evidence, line_mpps: Option<f64>) -> Saturation {
    let rate = |frames: u64| if seen.seconds > 0.0 { frames as f64 / seen.seconds / 1e6 } else { 0.0 };
    let received_mpps = rate(seen.received);
    let full_polls = if seen.polls > 0 { seen.full as f64 / seen.polls as f64 } else { 0.0 };
    let beyond = seen.missed.max(seen.sent.saturating_sub(seen.all));
    let mut lacks = Vec::new();
    if seen.received == 0 {
        lacks.push("nothing was received".to_owned());
    } else {
        for (cpu, idle) in seen.cpus.iter().filter(|(_, idle)| *idle > IDLE_MOST) {
            lacks.push(format!("CPU {cpu}, which receives, was idle for {:.0} % of the time", (idle * 100.0).max(1.0)));
        }
        if seen.polls == 0 {
            lacks.push(
                "its driver does not tell NAPI of frames that XDP takes, so that nobody knows who polled".to_owned(),
            );
        } else if full_polls < FULL_LEAST {
            lacks.push(format!("{:.0} % of its polls were full", full_polls * 100.0));
        }
        if let Some(line) = line_mpps.filter(|line| received_mpps > LINE_MOST * line) {
            lacks.push(format!("the line carries no more than {line:.2} Mpps, and {received_mpps:.2} arrived"));
        }
        if (beyond as f64) < HEADROOM_LEAST * seen.all as f64 {
            lacks.push("it took all that was sent: the generator has no headroom".to_owned());
        }
    }
    Saturation {
        proven: lacks.is_empty(),
        lacks,
        received_mpps,
        sent_mpps: if seen.all > 0 { received_mpps * seen.sent as f64 / seen.all as f64 } else { 0.0 },
        missed: seen.missed,
        full_polls,
        cpus: seen.cpus.iter().map(|(cpu, _)| *cpu as u32).collect(),
        idle: seen.cpus.iter().map(|(_, idle)| *idle).fold(0.0, f64::max),
        line_mpps,
    }
}

/// In one line: what shows it, or what is lacking.
pub fn in_words(of: &Saturation) -> String {
    if !of.proven {
        return format!("the receiver was not shown to be saturated: {}", of.lacks.join("; "));
    }
    let cpus: Vec<String> = of.cpus.iter().map(u32::to_string).collect();
    let line = of.line_mpps.map_or_else(
        || "its link tells no speed".to_owned(),
        |line| format!("{:.0} % of the line's rate", of.received_mpps / line * 100.0),
    );
    format!(
        "the receiver was saturated: CPU {} idle {:.1} %, {:.1} % of its polls full, {line}, {} frames missed",
        cpus.join(", "),
        of.idle * 100.0,
        of.full_polls * 100.0,
        crate::report::thousands(of.missed)
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A receiver at its limit of 10 Mpps, on a 40 Gbit/s link.
    fn saturated() -> Evidence {
        Evidence {
            seconds: 1.0,
            received: 10_000_000,
            all: 10_000_000,
            sent: 14_000_000,
            missed: 4_000_000,
            polls: 156_250,
            full: 156_250,
            cpus: vec![(3, 0.0)],
        }
    }

    #[test]
    fn the_line_carries_what_everybody_knows() {
        assert!((line_mpps(10_000, 64) - 14.880_952).abs() < 1e-6);
        assert!((line_mpps(1_000, 1518) - 0.081_274).abs() < 1e-6);
    }

    #[test]
    fn each_condition_is_needed() {
        let line = Some(line_mpps(40_000, 64));
        assert!(judge(&saturated(), line).proven);
        // A link without a speed has no limit of its own.
        assert!(judge(&saturated(), None).proven);
        let lacks = |seen: Evidence, line| {
            let of = judge(&seen, line);
            assert!(!of.proven);
            in_words(&of)
        };
        insta::assert_snapshot!(
            [
                lacks(Evidence { cpus: vec![(3, 0.0), (4, 0.31)], ..saturated() }, line),
                lacks(Evidence { full: 100_000, ..saturated() }, line),
                lacks(Evidence { polls: 0, full: 0, cpus: Vec::new(), ..saturated() }, line),
                lacks(saturated(), Some(10.1)),
                lacks(Evidence { sent: 10_000_000, missed: 0, ..saturated() }, line),
                lacks(Evidence::default(), line),
                in_words(&judge(&saturated(), line)),
                in_words(&judge(&saturated(), None)),
            ]
            .join("\n"),
            @"
        the receiver was not shown to be saturated: CPU 4, which receives, was idle for 31 % of the time
        the receiver was not shown to be saturated: 64 % of its polls were full
        the receiver was not shown to be saturated: its driver does not tell NAPI of frames that XDP takes, so that nobody knows who polled
        the receiver was not shown to be saturated: the line carries no more than 10.10 Mpps, and 10.00 arrived
        the receiver was not shown to be saturated: it took all that was sent: the generator has no headroom
        the receiver was not shown to be saturated: nothing was received
        the receiver was saturated: CPU 3 idle 0.0 %, 100.0 % of its polls full, 17 % of the line's rate, 4,000,000 frames missed
        the receiver was saturated: CPU 3 idle 0.0 %, 100.0 % of its polls full, its link tells no speed, 4,000,000 frames missed
        "
        );
        // Either count shows the headroom: not every NIC tells what it missed.
        assert!(judge(&Evidence { missed: 0, ..saturated() }, line).proven);
        assert!(judge(&Evidence { sent: 0, ..saturated() }, line).proven);
    }

    proptest! {
        #[test]
        fn stretches_of_time_add_up(
            a in (0.1f64..10.0, 0u64..1000, 0.0f64..1.0), b in (0.1f64..10.0, 0u64..1000, 0.0f64..1.0),
        ) {
            let of = |(seconds, received, idle): (f64, u64, f64)| {
                Evidence { seconds, received, cpus: vec![(1, idle)], ..Evidence::default() }
            };
            let sum = of(a).plus(&of(b));
            prop_assert_eq!(sum.received, a.1 + b.1);
            prop_assert!((sum.cpus[0].1 - (a.0 * a.2 + b.0 * b.2) / (a.0 + b.0)).abs() < 1e-9);
            let nothing = of(a).plus(&Evidence::default());
            prop_assert!((nothing.cpus[0].1 - a.2).abs() < 1e-12 && nothing.received == a.1);
        }
    }
}
