//! The promises of intervals and verdicts, kept or broken over thousands of made-up comparisons.
//!
//! Each test prints what it found: `cargo nextest run simulated --no-capture`.

use super::{
    blocks::Orders,
    decide::{Aim, Budget, Decision, Row, Verdict, decide, decide_rows},
    hodges_lehmann::hodges_lehmann,
    looks::{Plan, STANDARD},
    noise::Noise,
    signed_rank::{at_most, critical},
};

/// A kind of noise, by name.
type Kind<'a> = (&'a str, &'a dyn Fn(&mut Noise) -> f64);

/// Differences that are symmetric around 0.
const SYMMETRIC: [Kind<'static>; 5] = [
    ("normal, sd 0.5", &|noise| 0.5 * noise.normal()),
    ("exponential, paired", &|noise| noise.exponential() - noise.exponential()),
    ("lognormal, paired", &|noise| noise.normal().exp() - noise.normal().exp()),
    ("placement of either side", &|noise| noise.placement(0.3) - noise.placement(0.3) + 0.1 * noise.normal()),
    ("heavy tails", &|noise| 0.3 * noise.normal() / noise.uniform()),
];

/// A distribution, by its quantiles.
type Quantiles = fn(f64) -> f64;

/// Differences that are not symmetric, by their quantiles.
const SKEWED: [(&str, Quantiles); 4] = [
    ("exponential", |p| -(1.0 - p).ln()),
    ("log-logistic", |p| (p / (1.0 - p)).powf(0.35)),
    ("placement of the candidate, 20 %", |p| placement_of_one_side(p, 0.20)),
    // Half the Walsh averages are of two reloads without the jump, half are not: nothing is harder to find the middle of.
    ("placement of the candidate, 29 %", |p| placement_of_one_side(p, 0.29)),
];

fn placement_of_one_side(p: f64, share: f64) -> f64 {
    let (jump, within) = if p < 1.0 - share { (0.0, p / (1.0 - share)) } else { (1.0, (p - 1.0 + share) / share) };
    jump + 0.1 * (within - 0.5)
}

/// What the Hodges-Lehmann estimate estimates where the noise is skewed, from its quantiles.
fn pseudomedian(quantile: Quantiles) -> f64 {
    let steps = 600;
    let values: Vec<f64> = (0..steps).map(|i| quantile((f64::from(i) + 0.5) / f64::from(steps))).collect();
    hodges_lehmann(&values, 0.5).unwrap().value
}

/// Four standard errors of a share that is found in so many runs.
fn sampling_error(share: f64, runs: usize) -> f64 {
    4.0 * (share * (1.0 - share) / runs as f64).sqrt()
}

fn share_of(runs: usize, mut holds: impl FnMut() -> bool) -> f64 {
    (0..runs).filter(|_| holds()).count() as f64 / runs as f64
}

/// How often the 90 % interval of `n` differences holds `centre`.
fn coverage(kind: &str, runs: usize, n: usize, centre: f64, mut difference: impl FnMut() -> f64) -> f64 {
    let found = share_of(runs, || {
        let differences: Vec<f64> = (0..n).map(|_| difference()).collect();
        hodges_lehmann(&differences, 0.90).is_some_and(|interval| interval.low <= centre && centre <= interval.high)
    });
    println!("coverage of 90 %, {kind}, n = {n}: {:.1} % of {runs}", 100.0 * found);
    found
}

fn exact_coverage(n: usize) -> f64 {
    1.0 - 2.0 * at_most(n, critical(n, 0.05).unwrap())
}

/// Decides a comparison whose reloads differ as drawn.
fn decided(budget: f64, plan: &Plan, mut difference: impl FnMut() -> f64) -> Decision {
    let budget = Budget::new(budget, Aim::AtMost, None).unwrap();
    let differences: Vec<f64> = (0..plan.last()).map(|_| difference()).collect();
    decide(&differences, budget, plan).unwrap()
}

#[test]
fn on_normal_noise_the_interval_is_within_one_percent_of_nominal() {
    let mut noise = Noise::seeded(12);
    let found = coverage("normal", 12_000, 20, 0.0, || noise.normal());
    assert!((found - 0.90).abs() < 0.01, "{found}");
}

#[test]
fn on_symmetric_noise_the_interval_holds_what_it_says() {
    let mut noise = Noise::seeded(11);
    for (n, runs) in [(5, 2000), (8, 2000), (16, 2000), (24, 1000)] {
        let exact = exact_coverage(n);
        // The steps of the statistic make small samples hold more, never less.
        assert!(exact >= 0.90 && (n < 12 || exact < 0.91), "n = {n}: {exact}");
        for (kind, draw) in SYMMETRIC {
            let found = coverage(kind, runs, n, 0.3, || 0.3 + draw(&mut noise));
            assert!((found - exact).abs() < sampling_error(exact, runs), "{kind}, n = {n}: {found}, not {exact}");
        }
    }
}

#[test]
fn on_skewed_noise_the_interval_holds_nearly_what_it_says() {
    let mut noise = Noise::seeded(13);
    // The median of a gamma distribution of shape 2, halved.
    assert!((pseudomedian(SKEWED[0].1) - 0.8392).abs() < 1e-3);
    for (kind, quantile) in SKEWED {
        let centre = pseudomedian(quantile);
        for (n, runs) in [(8, 2500), (16, 2500), (32, 1000)] {
            let found = coverage(kind, runs, n, centre, || quantile(noise.uniform()));
            assert!(found > 0.85 - sampling_error(0.85, runs) / 2.0, "{kind}, n = {n}: {found}");
        }
    }
}

#[test]
fn drift_does_not_reach_the_interval() {
    let mut noise = Noise::seeded(14);
    let mut orders = Orders::seeded(14);
    for n in [8, 16] {
        let (runs, exact) = (1000, exact_coverage(n));
        let found = coverage("drifting blocks", runs, n, 1.0, || noise.drifting_reload(1.0, &mut orders));
        assert!((found - exact).abs() < sampling_error(exact, runs), "n = {n}: {found}, not {exact}");
    }
}

#[test]
fn wrong_verdicts_are_as_rare_as_planned() {
    let mut noise = Noise::seeded(15);
    let short = Plan::new(0.10, &STANDARD[..6], 1).unwrap();
    let errs = |kind: &str, each: f64, plan: &Plan, runs: usize, draw: &mut dyn FnMut() -> f64| {
        // What costs just its budget is decided wrongly most often: A/A at a budget of 0, and any cost at that budget.
        let verdicts: Vec<Verdict> = (0..runs).map(|_| decided(0.0, plan, &mut *draw).verdict).collect();
        let share = |of: Verdict| verdicts.iter().filter(|verdict| **verdict == of).count() as f64 / runs as f64;
        let (regressed, ok) = (share(Verdict::Regressed), share(Verdict::Ok));
        let with_budget = share_of(runs / 2, || decided(1.0, plan, &mut *draw).verdict == Verdict::Regressed);
        println!(
            "errors, A/A, {kind}, {} looks: budget 0: {:.1} % above, {:.1} % below; budget 1: {:.1} % above; of {runs}",
            plan.looks().len(),
            100.0 * regressed,
            100.0 * ok,
            100.0 * with_budget,
        );
        assert!(regressed.max(ok) <= each + sampling_error(each, runs), "{kind}: {regressed} and {ok}");
        assert!(regressed + ok <= 0.10 + sampling_error(0.10, runs), "{kind}: {regressed} and {ok}");
        assert!(with_budget <= 0.05, "{kind}: {with_budget}");
    };
    errs("normal, sd 0.5", 0.05, &Plan::standard(1).unwrap(), 1200, &mut || 0.5 * noise.normal());
    for (kind, draw) in SYMMETRIC.into_iter().skip(1) {
        errs(kind, 0.05, &short, 800, &mut || draw(&mut noise));
    }
    let mut noise = Noise::seeded(151);
    let mut orders = Orders::seeded(151);
    errs("drifting blocks", 0.05, &short, 400, &mut || noise.drifting_reload(0.0, &mut orders));
    let centre = pseudomedian(SKEWED[0].1);
    // Of skewed noise one direction takes more than its half of the error, the other less.
    errs("skewed exponential", 0.065, &short, 800, &mut || SKEWED[0].1(noise.uniform()) - centre);
}

#[test]
fn a_slowdown_is_found() {
    let mut noise = Noise::seeded(16);
    let plan = Plan::standard(1).unwrap();
    // (cost, budget, verdict, nearly always by so many reloads)
    let cases = [
        (1.07, 0.5, Verdict::Regressed, 24),
        (0.0, 1.0, Verdict::Ok, 12),
        (2.5, 0.5, Verdict::Regressed, 6),
        (-3.0, 0.0, Verdict::Ok, 6),
    ];
    for (cost, budget, verdict, by) in cases {
        let (runs, mut reloads) = (1000, Vec::new());
        let found = share_of(runs, || {
            let decision = decided(budget, &plan, || cost + 0.5 * noise.normal());
            reloads.push(decision.reloads);
            decision.verdict == verdict
        });
        reloads.sort_unstable();
        let (median, most) = (reloads[runs / 2], reloads[runs * 95 / 100]);
        let found_percent = 100.0 * found;
        println!(
            "power, cost {cost}, budget {budget}: {found_percent:.1} % {verdict:?}, half by {median}, 95 % by {most}"
        );
        assert!(found >= 0.95, "{found}");
        assert!(most <= by, "{most}");
    }
}

#[test]
fn without_reloads_it_errs() {
    // One load: its placement is in all blocks alike, and more blocks only make the wrong value look sure.
    let (runs, plan) = (500, Plan::standard(1).unwrap());
    let mut noise = Noise::seeded(17);
    let of_one_load = share_of(runs, || {
        let placed = 0.5 * noise.normal();
        decided(0.0, &plan, || placed + 0.1 * noise.normal()).verdict != Verdict::Inconclusive
    });
    let reloaded = share_of(runs, || {
        decided(0.0, &plan, || 0.5 * noise.normal() + 0.1 * noise.normal()).verdict != Verdict::Inconclusive
    });
    println!("errors, A/A, budget 0: {:.1} % of one load, {:.1} % reloaded", 100.0 * of_one_load, 100.0 * reloaded);
    assert!(of_one_load > 0.5 && reloaded < 0.10 + sampling_error(0.10, runs), "{of_one_load} and {reloaded}");
}

#[test]
fn without_a_plan_it_errs() {
    let runs = 500;
    let mut noise = Noise::seeded(18);
    let found = share_of(runs, || {
        let differences: Vec<f64> = (0..32).map(|_| noise.normal()).collect();
        STANDARD[..6].iter().any(|n| {
            let interval = hodges_lehmann(&differences[..*n], 0.90).unwrap();
            interval.low > 0.0 || interval.high < 0.0
        })
    });
    println!("errors, A/A, budget 0, the 90 % interval read at each of 6 looks: {:.1} %", 100.0 * found);
    assert!(found > 0.20, "{found}");
}

#[test]
fn several_rows_err_no_more_than_one() {
    let runs = 400;
    let budget = Budget::new(1.0, Aim::AtMost, None).unwrap();
    let plan = Plan::new(0.10, &[8, 12, 16, 24], 4).unwrap();
    let mut noise = Noise::seeded(19);
    for shared in [0.0, 0.4] {
        let (mut regressed, mut ok) = (0_usize, 0_usize);
        for _ in 0..runs {
            let mut rows = vec![Vec::new(); 4];
            for _ in 0..plan.last() {
                let common = shared * noise.normal();
                for row in &mut rows {
                    row.push(1.0 + common + 0.3 * noise.normal());
                }
            }
            let rows: Vec<Row<'_>> = rows.iter().map(|differences| Row { differences, budget }).collect();
            let decisions = decide_rows(&rows, &plan).unwrap();
            regressed += usize::from(decisions.iter().any(|d| d.verdict == Verdict::Regressed));
            ok += usize::from(decisions.iter().any(|d| d.verdict == Verdict::Ok));
        }
        let (regressed, ok) = (regressed as f64 / runs as f64, ok as f64 / runs as f64);
        println!(
            "errors, 4 rows, sd shared {shared}: any above {:.1} %, any below {:.1} %",
            100.0 * regressed,
            100.0 * ok
        );
        let most = 0.05 + sampling_error(0.05, runs);
        assert!(regressed <= most && ok <= most, "{regressed} and {ok}");
    }
}
