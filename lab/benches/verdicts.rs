//! How often a verdict is right, and how soon. As root, on a host with nothing else to do:
//!
//! ```text
//! cargo bench --bench verdicts                            every figure, about 50 minutes
//! cargo bench --bench verdicts -- --runs 10               the same with 10 comparisons each
//! cargo bench --bench verdicts -- equal zero --seed 7     two of them
//! ```
//!
//! | figure | what is compared | what must come out |
//! |---|---|---|
//! | `width` | a program with itself for 30 s | the half-width of the 90 % interval |
//! | `lead` | the same, many times | how long until the first timed window |
//! | `equal` | the same against a budget of 1 ns | never `regressed` |
//! | `zero` | the same against a budget of 0 ns | `regressed` in 5 % of them at most |
//! | `places` | the same without loading programs anew: a negative control | more often |
//! | `small` | a program with 4 steps of extra work, about 1 ns, against a budget of 0.5 ns | `regressed` |
//! | `large` | one with 11 steps, about 3.4 ns, against the same | `regressed` |
//!
//! What a slowdown costs is itself measured first, in one comparison of a fixed length: those that stop as soon as they
//! are sure are biased. All of it is on the path of two hops, gen -> `redirect_map` -> sink, native, by the sink's clock.

use std::path::Path;

use xdplab::{
    compare::{self, CompareOptions, pairing::Pairing},
    record::compare::{CompareReport, CompareVerdict},
    run::Silent,
    topology::{self, Topology},
    traffic::Stop,
};

/// Steps of extra work of the two slowdowns.
const SMALL: u32 = 4;
const LARGE: u32 = 11;
/// One-sided error of a verdict, over all of its looks.
const NOMINAL: f64 = 0.05;

fn main() {
    if !xdplab::host::is_root() {
        println!("these figures need root: labs are namespaces");
        return;
    }
    let arguments = Arguments::read();
    println!(
        "{:<8} {:>5} {:>10} {:>5} {:>13}  cost in ns, seconds a comparison",
        "figure", "runs", "regressed", "ok", "inconclusive"
    );
    for figure in ["width", "lead", "equal", "zero", "places", "small", "large"] {
        if arguments.figures.is_empty() || arguments.figures.iter().any(|wanted| wanted == figure) {
            arguments.figure(figure);
        }
    }
}

/// What the command line says.
struct Arguments {
    figures: Vec<String>,
    runs: Option<usize>,
    seed: u64,
}

impl Arguments {
    fn read() -> Self {
        let mut all = Self { figures: Vec::new(), runs: None, seed: 1 };
        let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
        while let Some(word) = words.next() {
            let mut number =
                || words.next().and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{word} takes a number"));
            match word.as_str() {
                "--runs" => all.runs = Some(number() as usize),
                "--seed" => all.seed = number(),
                _ => all.figures.push(word),
            }
        }
        all
    }

    fn figure(&self, figure: &str) {
        let base = CompareOptions { floor: false, ..CompareOptions::default() };
        let against = |budget| CompareOptions { budget: Some(budget), ..base.clone() };
        // As many reloads as there are time for: without an end, an A/A comparison against 0 looks until it is tired.
        let zero = CompareOptions { reloads: 48, ..against(0.0) };
        match figure {
            "width" => self.width(&CompareOptions { reloads: 1000, seconds: 30.0, ..base }),
            "lead" => self.lead(&CompareOptions { reloads: compare::FEWEST_RELOADS, ..base }),
            "equal" => self.count(figure, 200, 0, &against(1.0)),
            "zero" => {
                self.count(figure, 200, 0, &zero);
                let runs = self.runs.unwrap_or(200) as f64;
                let sampling = 1.645 * (NOMINAL * (1.0 - NOMINAL) / runs).sqrt();
                println!(
                    "{:<8} at most {:.0} % and 1.645 standard errors: {:.0}",
                    "",
                    NOMINAL * 100.0,
                    (NOMINAL + sampling) * runs
                );
            }
            "places" => self.count(figure, 200, 0, &CompareOptions { reload: false, ..zero }),
            "small" => self.slowdown(figure, SMALL, &against(0.5)),
            _ => self.slowdown(figure, LARGE, &against(0.5)),
        }
    }

    fn slowdown(&self, figure: &str, extra: u32, options: &CompareOptions) {
        let fixed = CompareOptions { budget: None, reloads: 200, seconds: 30.0, ..options.clone() };
        let row = &compare(extra, &fixed, self.seed).rows[0];
        let [low, high] = row.ci.map(|end| end.unwrap_or(f64::NAN));
        println!("{figure:<8} {extra} steps cost {:.2} ns ({low:.2} to {high:.2})", row.delta_ns);
        self.count(figure, 100, extra, options);
    }

    fn width(&self, options: &CompareOptions) {
        let report = compare(0, options, self.seed);
        let row = &report.rows[0];
        let [low, high] = row.ci.map(|end| end.unwrap_or(f64::NAN));
        println!(
            "width    half-width {:.3} ns ({low:.3} to {high:.3}) after {} reloads in {:.1} s, at {:.1} ns a packet",
            (high - low) / 2.0,
            row.reloads,
            row.seconds,
            row.a_ns
        );
    }

    fn lead(&self, options: &CompareOptions) {
        let mut leads: Vec<f64> =
            (0..self.runs.unwrap_or(20) as u64).filter_map(|n| compare(0, options, self.seed + n).lead_ms).collect();
        leads.sort_by(f64::total_cmp);
        println!(
            "lead     {} comparisons: first timed window after {:.0} ms in the median, {:.0} ms at most",
            leads.len(),
            leads[leads.len() / 2],
            leads[leads.len() - 1]
        );
    }

    fn count(&self, figure: &str, runs: usize, extra: u32, options: &CompareOptions) {
        let runs = self.runs.unwrap_or(runs);
        let reports: Vec<CompareReport> =
            (0..runs as u64).map(|n| compare(extra, options, self.seed.wrapping_mul(1_000_003) + n)).collect();
        let verdicts = |wanted: &[CompareVerdict]| {
            reports.iter().filter(|report| wanted.contains(&report.rows[0].verdict)).count()
        };
        let sorted = |of: &dyn Fn(&CompareReport) -> f64| {
            let mut values: Vec<f64> = reports.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let cost = sorted(&|report| report.rows[0].delta_ns);
        let seconds = sorted(&|report| report.rows[0].seconds);
        let middle = |values: &[f64]| values[values.len() / 2];
        println!(
            "{figure:<8} {runs:>5} {:>10} {:>5} {:>13}  {:.2} ns, {:.1} s, {:.1} s at most",
            verdicts(&[CompareVerdict::Regressed]),
            verdicts(&[CompareVerdict::Ok, CompareVerdict::Improved]),
            verdicts(&[CompareVerdict::Inconclusive]),
            middle(&cost),
            middle(&seconds),
            seconds[seconds.len() - 1]
        );
    }
}

/// One comparison, in a lab of its own.
fn compare(extra: u32, options: &CompareOptions, seed: u64) -> CompareReport {
    let pairing = Pairing::new(path(0), path(extra), "a".to_owned(), "b".to_owned());
    let options = CompareOptions { seed: Some(seed), ..options.clone() };
    compare::run(&pairing, &options, &Stop::default(), &Silent).unwrap_or_else(|error| panic!("seed {seed}: {error}"))
}

/// ```text
/// gen:tx0 -- dut:rx0 (redirect_map)  dut:out0 -- sink:in0 (sink)
/// ```
fn path(extra: u32) -> Topology {
    let text = format!(
        "name = \"verdicts\"\n[nodes.gen]\n[nodes.dut]\n[nodes.sink]\n\
         [[links]]\nkind = \"veth\"\nends = [\"gen:tx0\", \"dut:rx0\"]\n\
         [[links]]\nkind = \"veth\"\nends = [\"dut:out0\", \"sink:in0\"]\n\
         [programs.redirect]\nbuiltin = \"redirect_map\"\nattach = [\"dut:rx0\"]\n\
         maps.tx_ports = [\"dut:out0\"]\noptions.extra = {extra}\n\
         [programs.sink]\nbuiltin = \"sink\"\nattach = [\"sink:in0\"]\n\
         [[scenarios]]\nname = \"redirect\"\ntraffic = {{ from = \"gen:tx0\", frame-bytes = 64, frames = 1000 }}\n\
         expect = {{ deliver = [\"sink:in0\"], lost = 0 }}\n"
    );
    topology::parse(Path::new("verdicts.toml"), &text).unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
}
