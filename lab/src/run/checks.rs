//! The checks of a scenario: what the file expects, held against the ledger and the cost. No kernel calls here.

use std::collections::BTreeMap;

use crate::{
    measure::interval::ratio,
    record::{Check, Cost, Ledger, Saturation, Verdict},
    report::thousands,
    run::able::LeftOut,
    topology::{Builtin, Expect, Perf, PortId, ProgramBody, ProgramSource, Topology},
};

/// What correctness is checked against.
#[derive(Debug)]
pub struct Correctness<'a> {
    /// The topology, for the ports' names.
    pub topology: &'a Topology,
    /// What the scenario expects.
    pub expect: &'a Expect,
    /// Where nothing is expected, though the file does.
    pub left_out: &'a [LeftOut],
    /// Whether every target gets every frame, rather than the targets sharing them.
    pub each: bool,
    /// The settled account.
    pub ledger: &'a Ledger,
    /// Clones made.
    pub clones: u64,
}

/// Whether every port of `expect.deliver` gets every frame: a broadcast is in use, or clones are expected.
pub fn each_gets_all<'a>(expect: &Expect, bodies: impl IntoIterator<Item = &'a ProgramBody>) -> bool {
    expect.clones.is_some_and(|clones| clones > 0)
        || bodies.into_iter().any(|body| body.source == ProgramSource::Builtin(Builtin::Broadcast))
}

fn exactly(what: impl Into<String>, limit: u64, measured: u64) -> Check {
    check(what, frames(limit), frames(measured), limit == measured)
}

fn check(what: impl Into<String>, limit: String, measured: String, ok: bool) -> Check {
    Check { what: what.into(), limit, measured, ok, undecided: false }
}

fn frames(n: u64) -> String {
    if n == 1 { "1 frame".to_owned() } else { format!("{} frames", thousands(n)) }
}

/// The checks of the correctness phase, in the order in which a reader wants them.
pub fn correctness(case: &Correctness<'_>) -> Vec<Check> {
    let Correctness { topology, expect, ledger, .. } = case;
    let offered = ledger.offered;
    let mut checks = vec![check("offered", "at least 1 frame".to_owned(), frames(offered), offered > 0)];
    let least = offered.saturating_sub(expect.lost);
    let name = |port: &PortId| topology.port_name(*port);
    let delivered = |port: &PortId| ledger.delivered.get(&name(port)).copied().unwrap_or(0);
    let dropped = |port: &PortId| -> u64 {
        let at = name(port);
        ledger.dropped.iter().filter(|d| d.by_verdict && d.at == at).map(|d| d.frames).sum()
    };
    let reach = |what: String, measured: u64, limit: u64| {
        if expect.lost == 0 {
            exactly(what, limit, measured)
        } else {
            check(what, format!("at least {}", frames(least)), frames(measured), measured >= least && measured <= limit)
        }
    };

    if case.each {
        checks.extend(expect.deliver.iter().map(|p| reach(format!("deliver {}", name(p)), delivered(p), offered)));
        checks.extend(expect.drop.iter().map(|p| reach(format!("drop {}", name(p)), dropped(p), offered)));
    } else if !(expect.deliver.is_empty() && expect.drop.is_empty()) {
        let ends: u64 =
            expect.deliver.iter().map(delivered).sum::<u64>() + expect.drop.iter().map(dropped).sum::<u64>();
        let mut words = Vec::new();
        for (word, ports) in [("deliver", &expect.deliver), ("drop", &expect.drop)] {
            if !ports.is_empty() {
                let list = match ports.as_slice() {
                    [first, .., last] if ports.len() > 4 => {
                        format!("{} … {} ({} ports)", name(first), name(last), ports.len())
                    }
                    some => some.iter().map(name).collect::<Vec<_>>().join(", "),
                };
                words.push(format!("{word} {list}"));
            }
        }
        checks.push(reach(words.join(" and "), ends, offered));
    }
    let expected_at = |ports: &[PortId], at: &str| ports.iter().any(|p| name(p) == at);
    let left_out: Vec<String> = case.left_out.iter().map(|out| name(&out.port)).collect();
    for out in case.left_out {
        let (at, target) = (name(&out.port), name(&out.target));
        let (word, measured) = if out.drop { ("drop", dropped(&out.port)) } else { ("deliver", delivered(&out.port)) };
        checks.push(exactly(format!("{word} {at} (left out: {target} takes no XDP frames)"), 0, measured));
    }
    for (at, n) in
        ledger.delivered.iter().filter(|(at, n)| **n > 0 && !expected_at(&expect.deliver, at) && !left_out.contains(at))
    {
        checks.push(exactly(format!("deliver {at} (not expected)"), 0, *n));
    }
    let unexpected = |at: &String| !expected_at(&expect.drop, at) && !left_out.contains(at);
    for d in ledger.dropped.iter().filter(|d| d.by_verdict && unexpected(&d.at)) {
        checks.push(exactly(format!("drop {} (not expected: {})", d.at, d.reason), 0, d.frames));
    }
    checks.push(check(
        "lost",
        format!("at most {}", frames(expect.lost)),
        frames(ledger.lost()),
        ledger.lost() <= expect.lost,
    ));
    if let Some(clones) = expect.clones {
        let (limit, measured) = (format!("{} clones", thousands(clones)), format!("{} clones", thousands(case.clones)));
        checks.push(check("clones", limit, measured, clones == case.clones));
    }
    for (what, n) in
        [("duplicated", ledger.duplicated), ("reordered", ledger.reordered), ("corrupted", ledger.corrupted)]
    {
        checks.push(exactly(what, 0, n));
    }
    let unaccounted = ledger.unaccounted;
    checks.push(check("unaccounted", "0 frames".to_owned(), format!("{unaccounted} frames"), unaccounted == 0));
    checks
}

/// The check against an accepted baseline: where it alone fails, a scenario has regressed.
pub const BUDGET: &str = "budget-ns";

/// The port that a scenario's traffic arrives at first: what `min-mpps` binds by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receiver {
    /// Its driver.
    pub driver: String,
    /// Its speed in Mbit/s, where it has one.
    pub speed: Option<u32>,
    /// The CPU model's name.
    pub cpu: String,
}

impl Receiver {
    /// What `min-mpps` asks of it; `None` where it does not name the driver, or nothing fits.
    fn least(&self, perf: &Perf) -> Option<f64> {
        let rates = perf.min_mpps.get(&self.driver)?;
        rates.iter().find(|rate| rate.fits(self.speed, &self.cpu)).map(|rate| rate.mpps)
    }

    /// Why `min-mpps` binds to nothing, though it names the driver.
    pub fn unbound(&self, perf: &Perf) -> Option<String> {
        let speed = self.speed.map_or_else(|| "a link without a speed".to_owned(), |speed| format!("{speed} Mbit/s"));
        let Self { driver, cpu, .. } = self;
        let why = || format!("min-mpps {driver} is not checked: no rate in the file is for {speed} and the CPU {cpu}");
        (perf.min_mpps.contains_key(&self.driver) && self.least(perf).is_none()).then(why)
    }
}

/// A cost, and whether it is the receiver's.
#[derive(Debug, Clone)]
pub struct Priced {
    /// The cost.
    pub cost: Cost,
    /// Whether the receiver was saturated, where frames cross a NIC.
    pub saturation: Option<Saturation>,
    /// Whether the processor is an emulated one.
    pub emulated: bool,
}

/// Why nothing that was measured on an emulated processor decides anything.
pub(super) const EMULATED: &str = "the processor is emulated, and its prices mean nothing";

impl Priced {
    /// Why the cost decides nothing: it may be the generator's or the line's and not the receiver's, or is no processor's.
    fn open(&self) -> Option<&'static str> {
        let unproven = self.saturation.as_ref().is_some_and(|saturation| !saturation.proven);
        match (self.emulated, unproven) {
            (true, _) => Some(EMULATED),
            (false, true) => Some("the receiver was not shown to be saturated"),
            (false, false) => None,
        }
    }
}

/// A check of a cost that decides nothing is undecided, whatever was measured.
fn unless_open(mut check: Check, of: &[&Priced]) -> Check {
    if let Some(why) = of.iter().find_map(|priced| priced.open()) {
        check.ok = false;
        check.undecided = true;
        check.measured += "; ";
        check.measured += why;
    }
    check
}

/// The limit of a budget, in words.
pub(super) fn over_baseline(budget: f64) -> String {
    format!("at most {budget} ns over the baseline")
}

/// What a price is checked against.
#[derive(Debug)]
pub struct Pricing<'a> {
    /// The thresholds.
    pub perf: &'a Perf,
    /// What the scenario costs.
    pub priced: &'a Priced,
    /// What receives.
    pub receiver: &'a Receiver,
    /// Costs in the same mode by scenario name, of the scenarios that were priced.
    pub others: &'a BTreeMap<String, Priced>,
    /// The topology, for the scenarios' names.
    pub topology: &'a Topology,
}

/// The checks of the pricing phase. A threshold inside the interval is undecided, not failed.
pub fn pricing(case: &Pricing<'_>) -> Vec<Check> {
    let mut checks = Vec::new();
    let Pricing { perf, priced, receiver, .. } = case;
    let cost = &priced.cost;
    if let Some(least) = receiver.least(perf) {
        let (low, high) = (1000.0 / cost.ci[1], 1000.0 / cost.ci[0]);
        let check = Check {
            what: format!("min-mpps {}", receiver.driver),
            limit: format!("at least {least} Mpps"),
            measured: format!("{:.3} Mpps, between {low:.3} and {high:.3}", cost.mpps),
            ok: low >= least,
            undecided: (low..=high).contains(&least) && low < least,
        };
        checks.push(unless_open(check, &[priced]));
    }
    if let Some(bound) = &perf.max_ratio {
        let of = &case.topology.scenarios[bound.of.0].name;
        let limit = format!("at most {} times", bound.value);
        let what = format!("max-ratio of {of}");
        checks.push(match case.others.get(of) {
            Some(other) => {
                let r = ratio(cost, &other.cost);
                let check = Check {
                    what,
                    limit,
                    measured: format!("{:.3} times, between {:.3} and {:.3}", r.value, r.low, r.high),
                    ok: r.high <= bound.value,
                    undecided: r.low <= bound.value && r.high > bound.value,
                };
                unless_open(check, &[priced, other])
            }
            None => {
                Check { what, limit, measured: "the other scenario has no cost".to_owned(), ok: false, undecided: true }
            }
        });
    }
    checks
}

/// The checks of a scenario that could not be priced: no window could be timed. None holds, and none fails.
pub fn unpriced(perf: &Perf, receiver: &Receiver) -> Vec<Check> {
    let limits = [
        receiver.least(perf).map(|least| (format!("min-mpps {}", receiver.driver), format!("at least {least} Mpps"))),
        perf.max_ratio.as_ref().map(|bound| ("max-ratio".to_owned(), format!("at most {} times", bound.value))),
        perf.budget_ns.map(|budget| (BUDGET.to_owned(), over_baseline(budget))),
    ];
    let open = |(what, limit)| {
        let measured = "no window could be timed: no frame arrived".to_owned();
        Check { what, limit, measured, ok: false, undecided: true }
    };
    limits.into_iter().flatten().map(open).collect()
}

/// The verdict of some checks: a failed one fails, an undecided one leaves it open.
pub fn verdict(checks: &[Check]) -> Verdict {
    let failed = |c: &&Check| !c.ok && !c.undecided;
    if checks.iter().filter(failed).any(|c| c.what != BUDGET) {
        Verdict::Fail
    } else if checks.iter().any(|c| failed(&c)) {
        Verdict::Regressed
    } else if checks.iter().any(|c| c.undecided) {
        Verdict::Inconclusive
    } else {
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        measure::saturation::{Evidence, judge},
        topology::MinRate,
    };

    fn rate(mpps: f64, speed: Option<u32>, cpu: Option<&str>) -> MinRate {
        MinRate { mpps, speed, cpu: cpu.map(str::to_owned) }
    }

    fn receiver(speed: Option<u32>, cpu: &str) -> Receiver {
        Receiver { driver: "i40e".to_owned(), speed, cpu: cpu.to_owned() }
    }

    #[test]
    fn of_several_rates_the_first_that_fits_binds() {
        let rates =
            vec![rate(12.0, Some(40_000), Some("EPYC")), rate(11.0, Some(40_000), None), rate(9.0, None, Some("xeon"))];
        let perf = Perf { min_mpps: [("i40e".to_owned(), rates)].into(), budget_ns: None, max_ratio: None };
        let least = |speed, cpu| receiver(speed, cpu).least(&perf);
        assert_eq!(least(Some(40_000), "AMD EPYC 9354"), Some(12.0));
        assert_eq!(least(Some(40_000), "Intel(R) Xeon(R)"), Some(11.0));
        assert_eq!(least(Some(10_000), "Intel(R) Xeon(R)"), Some(9.0));
        assert_eq!(least(None, "Intel(R) Xeon(R)"), Some(9.0));
        let none = receiver(Some(10_000), "AMD EPYC 9354");
        assert_eq!(none.least(&perf), None);
        insta::assert_snapshot!(none.unbound(&perf).unwrap(), @"min-mpps i40e is not checked: no rate in the file is for 10000 Mbit/s and the CPU AMD EPYC 9354");
        let other = Receiver { driver: "veth".to_owned(), ..none };
        assert_eq!((other.least(&perf), other.unbound(&perf)), (None, None));
    }

    #[test]
    fn a_rate_covers_what_has_all_of_its_conditions_and_perhaps_more() {
        assert!(rate(1.0, None, None).covers(&rate(2.0, Some(1), Some("x"))));
        assert!(rate(1.0, None, Some("epyc")).covers(&rate(2.0, Some(1), Some("EPYC 9"))));
        assert!(!rate(1.0, Some(1), None).covers(&rate(2.0, None, None)));
        assert!(!rate(1.0, None, Some("EPYC 9")).covers(&rate(2.0, None, Some("EPYC"))));
        assert!(!rate(1.0, Some(1), None).covers(&rate(2.0, Some(2), None)));
    }

    #[test]
    fn a_threshold_is_undecided_where_the_receiver_was_not_saturated() {
        let topology = crate::topology::parse("t.toml".as_ref(), TEXT).unwrap();
        let cost = Cost { ns: 100.0, ci: [99.0, 101.0], mpps: 10.0, windows: vec![100.0] };
        let seen = |cpus| Evidence {
            seconds: 1.0,
            received: 10_000_000,
            all: 10_000_000,
            sent: 12_000_000,
            missed: 2_000_000,
            polls: 200_000,
            full: 200_000,
            cpus,
        };
        let priced = |idle: Option<f64>, emulated: bool| Priced {
            cost: cost.clone(),
            saturation: idle.map(|idle| judge(&seen(vec![(0, idle)]), None)),
            emulated,
        };
        let shown_on = |emulated: bool, one: Option<f64>, other: Option<f64>| {
            let others = [("a".to_owned(), priced(one, emulated)), ("b".to_owned(), priced(other, emulated))].into();
            let scenario = &topology.scenarios[0];
            let (Some(perf), Some(priced)) = (&scenario.perf, BTreeMap::get(&others, "a")) else { panic!() };
            let receiver = receiver(None, "any");
            let checks = pricing(&Pricing { perf, priced, receiver: &receiver, others: &others, topology: &topology });
            (checks.iter().map(|check| (check.ok, check.undecided)).collect::<Vec<_>>(), verdict(&checks))
        };
        let shown = |one, other| shown_on(false, one, other);
        let (holds, open) = ((true, false), (false, true));
        assert_eq!(shown_on(true, None, None), (vec![open, open], Verdict::Inconclusive));
        // On veth nobody asks.
        assert_eq!(shown(None, None), (vec![holds, holds], Verdict::Pass));
        assert_eq!(shown(Some(0.0), Some(0.0)), (vec![holds, holds], Verdict::Pass));
        assert_eq!(shown(Some(0.5), Some(0.0)), (vec![open, open], Verdict::Inconclusive));
        // A ratio rests on both.
        assert_eq!(shown(Some(0.0), Some(0.5)), (vec![holds, open], Verdict::Inconclusive));
    }

    #[test]
    fn a_threshold_is_undecided_where_nothing_could_be_timed() {
        let topology = crate::topology::parse("t.toml".as_ref(), TEXT).unwrap();
        let perf = topology.scenarios[0].perf.as_ref().unwrap();
        let checks = unpriced(perf, &receiver(None, "any"));
        assert_eq!(checks.iter().map(|check| check.what.as_str()).collect::<Vec<_>>(), ["min-mpps i40e", "max-ratio"]);
        assert_eq!(verdict(&checks), Verdict::Inconclusive);
        assert_eq!(unpriced(&Perf { max_ratio: None, ..perf.clone() }, &Receiver::default()), []);
    }

    const TEXT: &str = r#"
name = "t"
[nodes.gen]
[nodes.dut]
[[links]]
kind = "cable"
ends = ["gen:tx0", "dut:rx0"]
[programs.drop]
builtin = "drop"
attach = ["dut:rx0"]
[[scenarios]]
name = "a"
traffic = { from = "gen:tx0", frames = 10 }
expect = { drop = ["dut:rx0"] }
perf = { min-mpps = { i40e = 9.0 }, max-ratio = { of = "b", value = 2.0 } }
[[scenarios]]
name = "b"
traffic = { from = "gen:tx0", frames = 10 }
expect = { drop = ["dut:rx0"] }
"#;
}
