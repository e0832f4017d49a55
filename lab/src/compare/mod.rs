//! Comparing two topologies, turn by turn, with a verdict in nanoseconds.
//!
//! ```text
//! a reload: padding, program A, padding, program B (or B first), each held ready at a spare port
//!   a block: windows A B B A, or B A A B; programs swapped by link updates
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `mod` | which scenarios stand beside each other, when there is enough, the report |
//! | `pairing` | two topologies beside each other |
//! | `reload` | one reload of one row: its programs, its blocks, what disturbed them |
//! | `two_labs` | the same for topologies of different structure, each in a lab of its own |
//! | `source` | what is compared: topologies, objects, values of a global |
//! | `reports` | two reports, which are numbers of two runs |
//! | `numbers` | the prices that a stored report holds |
//! | `kernels` | two kernels, boot by boot |
//! | `additivity` | whether a hop costs the same wherever it is |
//! | `calibrate` | the noise floor, and proof that a known slowdown is found |

pub mod additivity;
pub mod calibrate;
pub mod kernels;
mod numbers;
pub mod pairing;
mod reload;
mod reports;
pub mod source;
mod two_labs;

use std::time::Instant;

use pairing::{PairedRow, Pairing, PairingError};
use reload::{Reloaded, RowUnderTest};
pub use reports::{ReportsError, of_reports};
use two_labs::{TwoLabs, TwoLabsRow};

use crate::{
    host::lock::HostLock,
    lab::{Cabling, Lab, LabError},
    measure::{
        interval::median,
        saturation::in_words,
        stats::{
            decide::{Aim, Budget, BudgetError, DecideError, Decision, Row, Verdict, decide_rows},
            floor::noise_floor,
            hodges_lehmann::hodges_lehmann,
            looks::{Plan, PlanError},
        },
    },
    record::compare::{COMPARE_SCHEMA, CompareReport, CompareRow, CompareVerdict},
    record::{Fingerprint, LinkRecord, Saturation},
    run::{Progress, RunOptions, facts},
    traffic::Stop,
    xdp::XdpMode,
};

/// What a caller may choose.
#[derive(Debug, Clone)]
pub struct CompareOptions {
    /// What `b` may cost more, in nanoseconds a packet; `None`: the comparison only reports.
    pub budget: Option<f64>,
    /// Whether `b` may not be faster by more than the budget either.
    pub within: bool,
    /// Only scenarios of these names; all of them where empty.
    pub only: Vec<String>,
    /// Longest measuring, in seconds.
    pub seconds: f64,
    /// Most reloads; the looks are planned up to there.
    pub reloads: usize,
    /// Blocks a reload.
    pub blocks: usize,
    /// Where all random orders and paddings start from; `None`: from the clock.
    pub seed: Option<u64>,
    /// Whether programs are loaded anew. Without, the comparison is one of two places in memory: a negative control.
    pub reload: bool,
    /// Whether the noise floor is measured first, and a budget below it refused.
    pub floor: bool,
    /// Which cables are made of which NICs.
    pub cabling: Cabling,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self {
            budget: None,
            within: false,
            only: Vec::new(),
            seconds: 60.0,
            reloads: 256,
            blocks: 12,
            seed: None,
            reload: true,
            floor: true,
            cabling: Cabling::default(),
        }
    }
}

/// Reloads after which there is a look.
const LOOKS: [usize; 11] = [6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192];
/// Fewest reloads of which anything can be said.
pub const FEWEST_RELOADS: usize = 6;
/// Reloads of the A/A comparison that gives the floor.
const FLOOR_RELOADS: usize = 8;
/// The intervals' level: 90 %.
const ERROR: f64 = 0.10;

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The two don't stand beside each other.
    #[error(transparent)]
    Pairing(#[from] PairingError),
    /// The budget is none.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The looks can't be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The differences can't be judged.
    #[error(transparent)]
    Decide(#[from] DecideError),
    /// Too little is asked for.
    #[error(
        "{found} reloads are too few: an interval of 90 % takes {FEWEST_RELOADS} at least. Windows of one load say where its code lay, not what it costs"
    )]
    TooFew {
        /// Reloads asked for.
        found: usize,
    },
    /// The host's NICs are there once.
    #[error(
        "two topologies of different structure are two labs side by side, and the same NICs can't be in both: compare them \
         with --nics virtual, or run each by itself and compare the reports"
    )]
    TwoLabsOnNics,
    /// Too few boots.
    #[error("{found} boots of each kernel are too few: an interval of 90 % takes {} at least", kernels::FEWEST_PAIRS)]
    TooFewBoots {
        /// Boots of each.
        found: usize,
    },
    /// A boot did something else.
    #[error("a report of `xdplab {verb}` came from a boot: kernels are compared by `run` and `bench`")]
    NotARun {
        /// What made it.
        verb: &'static str,
    },
    /// No boot priced anything.
    #[error("nothing was priced under both kernels: give a scenario `perf`, such as `perf = {{ }}`")]
    NothingPriced,
    /// No window could be timed.
    #[error("\"{scenario}\" could not be timed: {frames} frames of a window did not arrive")]
    Untimed {
        /// The scenario.
        scenario: String,
        /// Frames that were lost.
        frames: u64,
    },
    /// The lab could not be brought up or run.
    #[error(transparent)]
    Lab(#[from] LabError),
}

impl CompareError {
    /// Whether the files or the arguments are at fault, rather than the host.
    pub fn is_of_the_input(&self) -> bool {
        match self {
            Self::Lab(error) => error.is_of_the_input(),
            Self::Untimed { .. } => false,
            _ => true,
        }
    }
}

/// Differences of a row, as they come.
#[derive(Debug, Clone, Default)]
struct Measured {
    differences: Vec<f64>,
    a: Vec<f64>,
    b: Vec<f64>,
    blocks: u64,
    redrawn: u64,
    seconds: f64,
}

/// Compares two topologies: scenarios of the same name, mode by mode.
///
/// # Errors
/// Where they don't stand beside each other, the budget is below the noise floor, or the lab can't be brought up.
pub fn run(
    pairing: &Pairing,
    options: &CompareOptions,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<CompareReport, CompareError> {
    let started = jiff::Timestamp::now();
    if options.reloads < FEWEST_RELOADS {
        return Err(CompareError::TooFew { found: options.reloads });
    }
    let rows = pairing.rows(&options.only)?;
    let seed = options.seed.unwrap_or_else(|| started.as_nanosecond() as u64);
    let mut dice = fastrand::Rng::with_seed(seed);
    let _alone = HostLock::exclusive(&mut |holder| progress.waiting(holder)).map_err(LabError::from)?;
    let free = Instant::now();
    let mut first = None;
    progress.step("bring up");
    let compared: Vec<(String, XdpMode)> = rows.iter().map(|row| (row.a.name.clone(), row.mode)).collect();
    let (mut rig, ports) = Rig::new(pairing, rows.clone(), &options.cabling)?;
    let floor_ns = if options.floor {
        progress.step("noise floor");
        let reloads = rig.floor(pairing, &rows[0], &mut dice, stop)?;
        first = reloads.first().map(|of| of.began);
        let differences: Vec<f64> = reloads.iter().map(|of| of.difference).collect();
        // A floor of a few reloads, as it will be after as many as are planned: intervals narrow by the root of their number.
        let scale = (FLOOR_RELOADS as f64 / options.reloads as f64).sqrt();
        noise_floor(&differences, 1.0 - ERROR).map(|floor| floor.ns * scale).filter(|ns| ns.is_finite())
    } else {
        None
    };
    let aim = if options.within { Aim::Within } else { Aim::AtMost };
    let budget = options.budget.map(|ns| Budget::new(ns, aim, floor_ns)).transpose()?;
    let plan = plan(options.reloads, compared.len())?;
    let mut measured = vec![Measured::default(); compared.len()];
    let began = Instant::now();
    let mut decisions = None;
    let mut reloads = 0;
    while reloads < options.reloads && !stop.is_asked() && began.elapsed().as_secs_f64() < options.seconds {
        progress.step("reloads");
        progress.frames(reloads as u64, options.reloads as u64);
        let mut order: Vec<usize> = (0..compared.len()).collect();
        dice.shuffle(&mut order);
        for row in order {
            let at = Instant::now();
            let Some(of) = rig.measure(row, options, &mut dice, stop)? else { continue };
            first.get_or_insert(of.began);
            let into = &mut measured[row];
            into.differences.push(of.difference);
            into.a.extend(of.a);
            into.b.extend(of.b);
            into.blocks += of.blocks;
            into.redrawn += of.redrawn;
            into.seconds += at.elapsed().as_secs_f64();
        }
        reloads = measured.iter().map(|m| m.differences.len()).min().unwrap_or(0);
        if let Some(budget) = budget
            && plan.looks().iter().any(|look| look.reloads == reloads)
        {
            let now = judge(&measured, reloads, budget, &plan)?;
            let open = now.iter().any(|decision| matches!(decision.verdict, Verdict::More { .. }));
            decisions = Some(now);
            if !open {
                break;
            }
        }
    }
    let saturations = rig.saturations();
    let returned = rig.down()?;
    if let Some(budget) = budget
        && reloads >= FEWEST_RELOADS
        && !plan.looks().iter().any(|look| look.reloads == reloads)
    {
        // Time ran out between two looks: what is left of the error is spent here.
        let plan = plan.ended_at(reloads);
        decisions = Some(judge(&measured, reloads, budget, &plan)?);
    }
    let mut notes = options.cabling.notes.clone();
    notes.extend(remarks(reloads, options));
    notes.extend(returned);
    notes.extend(pairing.notes.iter().cloned());
    let mut rows: Vec<CompareRow> = compared
        .iter()
        .zip(&measured)
        .enumerate()
        .map(|(n, (row, m))| record(row, m, decisions.as_ref().and_then(|d| d.get(n)), options))
        .collect();
    for (row, saturation) in rows.iter_mut().zip(saturations) {
        let Some(saturation) = saturation else { continue };
        notes.push(format!("{} ({}): {}", row.name, row.mode, in_words(&saturation)));
        if !saturation.proven {
            // Two programs behind a generator that is too slow for either cost the same.
            row.verdict = CompareVerdict::Inconclusive;
        }
    }
    Ok(CompareReport {
        schema: COMPARE_SCHEMA.to_owned(),
        started: started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        fingerprint: fingerprint(pairing, &compared, ports),
        a: pairing.a_name.clone(),
        b: pairing.b_name.clone(),
        links: of_both([&pairing.a, &pairing.b].map(|side| options.cabling.links(side))),
        differs: Vec::new(),
        interleaved: true,
        seed,
        rows,
        floor_ns,
        lead_ms: first.map(|first| first.duration_since(free).as_secs_f64() * 1e3),
        notes,
    })
}

/// The links of both sides, those that are alike once.
fn of_both([mut links, of_b]: [Vec<LinkRecord>; 2]) -> Vec<LinkRecord> {
    let differ: Vec<LinkRecord> = of_b.into_iter().filter(|link| !links.contains(link)).collect();
    links.extend(differ);
    links
}

/// What is to be said of a comparison as a whole.
fn remarks(reloads: usize, options: &CompareOptions) -> Vec<String> {
    let mut notes = Vec::new();
    if reloads < FEWEST_RELOADS {
        notes.push(format!("{reloads} reloads in the time given: too few for an interval"));
    }
    if options.budget.is_none() {
        notes.push("no budget was given: the comparison reports, and judges nothing slower".to_owned());
    }
    if !options.reload {
        notes.push(
            "programs were not loaded anew: this compares two places in memory as much as two programs".to_owned(),
        );
    }
    notes
}

/// What must be equal for two comparisons to be comparable. Read at the end: it takes longer than bringing a lab up.
fn fingerprint(pairing: &Pairing, rows: &[(String, XdpMode)], [a, b]: [Fingerprint; 2]) -> Fingerprint {
    let options = RunOptions { only: rows.iter().map(|(name, _)| name.clone()).collect(), ..RunOptions::default() };
    let mut all = facts::fingerprint(&pairing.a, &options);
    all.0.extend(a.0);
    let mut of_b = facts::of_scenarios(&pairing.b, &options);
    of_b.0.retain(|name, _| name.starts_with("map "));
    of_b.0.extend(b.0);
    // What both have alike stands once.
    for (name, value) in of_b.0 {
        if all.0.get(&name) != Some(&value) {
            all.0.insert(format!("{name} (b)"), value);
        }
    }
    all
}

/// The looks up to so many reloads.
fn plan(reloads: usize, rows: usize) -> Result<Plan, PlanError> {
    let mut looks: Vec<usize> = LOOKS.into_iter().filter(|look| *look < reloads).collect();
    looks.push(reloads);
    Plan::new(ERROR, &looks, rows)
}

/// What rows are measured in.
enum Rig {
    /// One lab, at whose ports programs are swapped.
    One(Box<Lab>, Vec<RowUnderTest>),
    /// Two labs, where the structures differ.
    Two(Box<TwoLabs>, Vec<TwoLabsRow>),
}

impl Rig {
    /// Brings up what it takes. Returns it with the ports' part of the fingerprint, of either side's lab: it is read before
    /// anything is attached.
    fn new(
        pairing: &Pairing,
        rows: Vec<PairedRow>,
        cabling: &Cabling,
    ) -> Result<(Self, [Fingerprint; 2]), CompareError> {
        let only = rows.len() == 1;
        if pairing.differs_in.is_empty() {
            let mut lab = Lab::on(&pairing.a, cabling)?;
            let ports = facts::of_ports(&lab)?;
            lab.watch_prices()?;
            let rows = rows.into_iter().map(|row| RowUnderTest::new(&lab, pairing, row, only));
            let rows = rows.collect::<Result<_, _>>()?;
            return Ok((Self::One(Box::new(lab), rows), [ports, Fingerprint::default()]));
        }
        if !cabling.cables.is_empty() {
            return Err(CompareError::TwoLabsOnNics);
        }
        let labs = TwoLabs::new(&pairing.a, &pairing.b)?;
        let [a, b] = labs.both();
        let ports = [facts::of_ports(a)?, facts::of_ports(b)?];
        let rows = rows.into_iter().map(|row| labs.row(pairing, row, only)).collect::<Result<_, _>>()?;
        Ok((Self::Two(Box::new(labs), rows), ports))
    }

    fn measure(
        &mut self,
        row: usize,
        options: &CompareOptions,
        dice: &mut fastrand::Rng,
        stop: &Stop,
    ) -> Result<Option<Reloaded>, CompareError> {
        match self {
            Self::One(lab, rows) => reload::measure(lab, &mut rows[row], options, dice, stop),
            Self::Two(labs, rows) => labs.measure(&mut rows[row], options, dice, stop),
        }
    }

    /// An A/A comparison of the first row: two labs are compared with two labs of the baseline.
    fn floor(
        &mut self,
        pairing: &Pairing,
        row: &PairedRow,
        dice: &mut fastrand::Rng,
        stop: &Stop,
    ) -> Result<Vec<Reloaded>, CompareError> {
        let options = CompareOptions::default();
        let mut reloads = Vec::new();
        match self {
            Self::One(lab, rows) => {
                rows[0].same(true);
                for _ in 0..FLOOR_RELOADS {
                    reloads.extend(reload::measure(lab, &mut rows[0], &options, dice, stop)?);
                }
                rows[0].same(false);
            }
            Self::Two(..) => {
                let same = Pairing { b: pairing.a.clone(), ..pairing.clone() };
                let row = PairedRow { b: row.a.clone(), ..row.clone() };
                let mut labs = TwoLabs::new(&same.a, &same.b)?;
                let mut row = labs.row(&same, row, true)?;
                for _ in 0..FLOOR_RELOADS {
                    reloads.extend(labs.measure(&mut row, &options, dice, stop)?);
                }
                drop(row);
                labs.down()?;
            }
        }
        Ok(reloads)
    }

    /// Whether each row's receiver was saturated; `None` where frames cross no NIC.
    fn saturations(&self) -> Vec<Option<Saturation>> {
        match self {
            Self::One(lab, rows) => rows.iter().map(|row| row.saturation(lab)).collect(),
            Self::Two(_, rows) => rows.iter().map(|_| None).collect(),
        }
    }

    fn down(self) -> Result<Vec<String>, LabError> {
        match self {
            Self::One(lab, rows) => {
                drop(rows);
                let mut notes: Vec<String> = lab.lent().iter().flat_map(|lent| lent.loan.notes.clone()).collect();
                notes.extend(lab.down()?);
                Ok(notes)
            }
            Self::Two(labs, rows) => {
                drop(rows);
                labs.down()
            }
        }
    }
}

fn judge(measured: &[Measured], reloads: usize, budget: Budget, plan: &Plan) -> Result<Vec<Decision>, DecideError> {
    let rows: Vec<Row<'_>> = measured.iter().map(|m| Row { differences: &m.differences[..reloads], budget }).collect();
    decide_rows(&rows, plan)
}

fn record(
    (name, mode): &(String, XdpMode),
    m: &Measured,
    decision: Option<&Decision>,
    options: &CompareOptions,
) -> CompareRow {
    let estimate =
        decision.and_then(|decision| decision.estimate).or_else(|| hodges_lehmann(&m.differences, 1.0 - ERROR));
    let ci = estimate.map_or([None; 2], |e| [e.low, e.high].map(|end| Some(end).filter(|end| end.is_finite())));
    let middle = |windows: &[f64]| median(windows).map_or(f64::NAN, |estimate| estimate.value);
    CompareRow {
        name: name.clone(),
        mode: *mode,
        a_ns: middle(&m.a),
        b_ns: middle(&m.b),
        delta_ns: estimate.map_or(f64::NAN, |estimate| estimate.value),
        ci,
        budget_ns: options.budget,
        verdict: verdict_of(decision, ci, options.budget),
        blocks: m.blocks,
        redrawn: m.redrawn,
        reloads: m.differences.len() as u64,
        seconds: m.seconds,
        differences: m.differences.clone(),
    }
}

/// The verdict on a row: without a budget nothing is judged slower.
fn verdict_of(decision: Option<&Decision>, ci: [Option<f64>; 2], budget: Option<f64>) -> CompareVerdict {
    let improved = decision.map_or_else(|| ci[1].is_some_and(|high| high < 0.0), |decision| decision.improved);
    match (budget, decision.map(|decision| &decision.verdict)) {
        (_, Some(Verdict::Regressed | Verdict::Different)) => CompareVerdict::Regressed,
        (_, Some(Verdict::Ok)) | (None, _) if improved => CompareVerdict::Improved,
        (_, Some(Verdict::Ok)) => CompareVerdict::Ok,
        (None, _) if ci[0].is_some() && ci[1].is_some() => CompareVerdict::Ok,
        _ => CompareVerdict::Inconclusive,
    }
}
