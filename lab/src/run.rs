//! Running a topology: every scenario in every mode, its correctness first, then its price, then the verdict.

pub mod able;
mod budgets;
pub mod checks;
pub(crate) mod correctness;
pub(crate) mod facts;
pub(crate) mod pricing;
pub(crate) mod profiling;
mod stream;

use std::{collections::BTreeMap, time::Duration};

use crate::{
    baseline,
    host::{hypervisor, lock::HostLock},
    lab::{Cabling, Lab, LabError, NicChoice, cpu_remarks},
    observe::ledger::Settled,
    program::watch::EventSet,
    published,
    record::{Check, Cost, LinkRecord, REPORT_SCHEMA, Report, Saturation, ScenarioRecord, Verdict, profile::Profile},
    topology::{Amount, Engine, HostFile, Link, ProgramSource, Scenario, ScenarioId, Topology},
    traffic::Stop,
    xdp::XdpMode,
};

/// What a caller may change of a run without touching the file.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Only scenarios of these names; all of them where empty.
    pub only: Vec<String>,
    /// Frames of the correctness phase, in place of the file's.
    pub frames: Option<u64>,
    /// Batch of the `live` engine, in place of the file's.
    pub batch: Option<u32>,
    /// Leaves pricing out.
    pub no_pricing: bool,
    /// Where accepted baselines are, against which `budget-ns` binds; `None`: it binds against nothing.
    pub baselines: Option<std::path::PathBuf>,
    /// Whether a baseline of another fingerprint will do.
    pub across: bool,
    /// Profiles each priced case, after all of them were priced.
    pub profile: bool,
    /// What cables may be made of.
    pub nics: NicChoice,
    /// Which NICs the host's owner offers.
    pub host: HostFile,
}

/// Hears how a run goes on. Every method may be called from the lab's thread.
pub trait Progress: Sync {
    /// A step begins.
    fn step(&self, what: &str);
    /// So many frames of so many were made (0: unknown).
    fn frames(&self, made: u64, of: u64);
    /// Another lab holds the host for pricing, or is at work while this one wants to price.
    fn waiting(&self, what: &str);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _: &str) {}
    fn frames(&self, _: u64, _: u64) {}
    fn waiting(&self, _: &str) {}
}

/// One scenario in one mode, on its way to a record.
struct Case {
    scenario: ScenarioId,
    mode: XdpMode,
    settled: Settled,
    notes: Vec<String>,
    checks: Vec<Check>,
    cost: Option<Cost>,
    saturation: Option<Saturation>,
    /// Whether pricing was over before a stop was asked for.
    priced: bool,
    profile: Option<Profile>,
}

/// Brings a topology up, runs it, and takes it down.
///
/// A stop that is asked for in mid-run ends the traffic, and what was sent until then is settled as usual; scenarios
/// that were not begun are left out of the report.
///
/// # Errors
/// Where the lab can't be brought up, or a program can't be loaded or attached.
pub fn run(
    topology: &Topology,
    options: &RunOptions,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Report, LabError> {
    let started = jiff::Timestamp::now();
    let shared = HostLock::shared(&mut |holder| progress.waiting(holder))?;
    progress.step("bring up");
    let cabling = Cabling::choose(topology, options.nics, &options.host)?;
    let mut lab = Lab::on(topology, &cabling)?;
    let ports = facts::of_ports(&lab)?;
    lab.watch(if has_users_program(topology) { EventSet::All } else { EventSet::Own })?;
    let placed = cpu_remarks(topology, &cabling)?;
    let mut cases = Vec::new();
    for (n, scenario) in topology.scenarios.iter().enumerate() {
        if !options.only.is_empty() && !options.only.contains(&scenario.name) {
            continue;
        }
        for &mode in &scenario.modes {
            if stop.is_asked() {
                break;
            }
            progress.step(&format!("{} ({mode})", scenario.name));
            cases.push(correctness::run(&mut lab, ScenarioId(n), mode, options, stop, progress)?);
        }
    }
    let wanted = pricing::wanted(topology, &cases);
    if !wanted.is_empty() && !options.no_pricing && !stop.is_asked() {
        // Attaching anywhere rewrites kernel text, so that a price is taken while no other lab is at work.
        drop(shared);
        let _alone = HostLock::exclusive(&mut |holder| progress.waiting(holder))?;
        progress.step("price");
        lab.watch_prices()?;
        pricing::run(&mut lab, &mut cases, &wanted, options, stop, progress)?;
        if options.profile {
            progress.step("profile");
            profiling::run(&mut lab, &mut cases, &wanted, options, stop, progress)?;
        }
    }
    progress.step("take down");
    let mut remarks: Vec<String> = cabling.notes.clone();
    remarks.extend(lab.lent().iter().flat_map(|lent| lent.loan.notes.clone()));
    remarks.extend(placed);
    remarks.extend(lab.down()?);
    let mut fingerprint = facts::fingerprint(topology, options);
    fingerprint.0.extend(ports.0);
    // The lab is gone, and its lock with it: the comparison has one of its own.
    if !options.no_pricing && !stop.is_asked() {
        budgets::check(topology, &mut cases, &fingerprint, (options, &cabling), stop, progress)?;
    }
    let cpu = fingerprint.0.get("cpu").cloned().unwrap_or_default();
    let scenarios = judge(topology, cases, options, &cabling, &cpu);
    Ok(Report {
        topology: Some(baseline::record(topology)),
        schema: REPORT_SCHEMA.to_owned(),
        lab: topology.name.clone(),
        about: topology.about.clone(),
        started: started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        fingerprint,
        links: cabling.links(topology),
        notes: remarks,
        scenarios,
    })
}

/// Whether a program of the file, or one that a scenario puts in its place, is not the lab's.
fn has_users_program(topology: &Topology) -> bool {
    let bodies = topology.programs.iter().map(|p| &p.body);
    let instead = topology.scenarios.iter().flat_map(|s| s.programs.iter().map(|(_, body)| body));
    bodies.chain(instead).any(|body| matches!(body.source, ProgramSource::Object { .. }))
}

/// Runs one scenario of a lab that is up, in one mode: correctness only.
///
/// # Errors
/// Where there is no such scenario, or a program can't be loaded or attached.
pub fn scenario(lab: &mut Lab, name: &str, mode: XdpMode, options: &RunOptions) -> Result<ScenarioRecord, LabError> {
    let topology = lab.topology().clone();
    let id = find(&topology, name)?;
    lab.watch(if has_users_program(&topology) { EventSet::All } else { EventSet::Own })?;
    let case = correctness::run(lab, id, mode, options, &Stop::default(), &Silent)?;
    let mut records = judge(&topology, vec![case], options, &Cabling::default(), "");
    Ok(records.remove(0))
}

/// Profiles one scenario of a lab that is up, in one mode, with bare programs, as they are priced.
///
/// # Errors
/// Where there is no such scenario, a program can't be loaded or attached, or the kernel refuses to sample.
pub fn profile(
    lab: &mut Lab,
    name: &str,
    mode: XdpMode,
    options: &RunOptions,
    time: Duration,
) -> Result<Profile, LabError> {
    let topology = lab.topology().clone();
    let id = find(&topology, name)?;
    profiling::of_scenario(lab, &topology, id, mode, options, time, &Stop::default())
}

fn find(topology: &Topology, name: &str) -> Result<ScenarioId, LabError> {
    topology.scenario(name).ok_or_else(|| LabError::NoScenario {
        scenario: name.to_owned(),
        present: topology.scenarios.iter().map(|s| s.name.clone()).collect::<Vec<_>>().join(", "),
    })
}

/// The port that a scenario's traffic arrives at first.
fn receiver(topology: &Topology, scenario: &Scenario, cabling: &Cabling, cpu: &str) -> checks::Receiver {
    let peer = topology.peer(scenario.traffic.from);
    let nic = peer.and_then(|peer| cabling.nic_at(topology, peer));
    checks::Receiver {
        driver: nic.map_or_else(|| "veth".to_owned(), |nic| nic.driver.clone()),
        speed: nic.and_then(|nic| nic.speed),
        cpu: cpu.to_owned(),
    }
}

/// Holds the costs against the thresholds and gives each case its verdict.
fn judge(
    topology: &Topology,
    cases: Vec<Case>,
    options: &RunOptions,
    cabling: &Cabling,
    cpu: &str,
) -> Vec<ScenarioRecord> {
    let emulated = hypervisor::is_emulated();
    let mut costs: BTreeMap<XdpMode, BTreeMap<String, checks::Priced>> = BTreeMap::new();
    for case in &cases {
        if let Some(cost) = &case.cost {
            let name = topology.scenarios[case.scenario.0].name.clone();
            let priced = checks::Priced { cost: cost.clone(), saturation: case.saturation.clone(), emulated };
            costs.entry(case.mode).or_default().insert(name, priced);
        }
    }
    let none = BTreeMap::new();
    let links = cabling.links(topology);
    cases
        .into_iter()
        .map(|mut case| {
            let scenario = &topology.scenarios[case.scenario.0];
            if let Some(perf) = scenario.perf.as_ref().filter(|_| case.priced) {
                let others = costs.get(&case.mode).unwrap_or(&none);
                let receiver = receiver(topology, scenario, cabling, cpu);
                case.checks.extend(match others.get(&scenario.name) {
                    Some(priced) => {
                        checks::pricing(&checks::Pricing { perf, priced, receiver: &receiver, others, topology })
                    }
                    None => checks::unpriced(perf, &receiver),
                });
                case.notes.extend(receiver.unbound(perf).filter(|_| case.cost.is_some()));
                let of = perf.max_ratio.as_ref().map(|bound| &topology.scenarios[bound.of.0].name);
                if let Some(of) = of.filter(|of| !options.only.is_empty() && !options.only.contains(of)) {
                    case.checks.retain(|check| !check.what.starts_with("max-ratio"));
                    case.notes.push(format!("max-ratio is not checked: \"{of}\" was not selected"));
                }
            }
            let verdict = checks::verdict(&case.checks);
            let failed: Vec<&str> = case.checks.iter().filter(|c| !c.ok).map(|c| c.what.as_str()).collect();
            let reason = (verdict != Verdict::Pass).then(|| reason(&case, &failed));
            let mut notes = case.settled.notes;
            notes.extend(case.notes);
            let published = published::of_scenario(&scenario.name, case.mode, &crossed(topology, scenario, &links));
            ScenarioRecord {
                name: scenario.name.clone(),
                published_mpps: published.map(|(low, high)| [low, high]),
                mode: case.mode,
                verdict,
                reason,
                notes,
                ledger: case.settled.ledger,
                clones: case.settled.clones,
                cost: case.cost,
                saturation: case.saturation,
                profile: case.profile,
                checks: case.checks,
            }
        })
        .collect()
}

/// Those of a topology's links that a scenario's frames cross.
fn crossed(topology: &Topology, scenario: &Scenario, links: &[LinkRecord]) -> Vec<LinkRecord> {
    let walk = topology.walk(scenario);
    let meets = |link: &Link| link.ends.iter().any(|end| walk.meets(*end));
    topology.links.iter().zip(links).filter(|(link, _)| meets(link)).map(|(_, record)| record.clone()).collect()
}

/// Why a case did not pass: where nothing was sent that says more than the checks that follow from it.
fn reason(case: &Case, failed: &[&str]) -> String {
    let ledger = &case.settled.ledger;
    if ledger.offered == 0 {
        return "no frame was sent: the source made none".to_owned();
    }
    let largest = ledger.dropped.iter().filter(|d| !d.by_verdict).max_by_key(|d| d.frames);
    match largest {
        Some(loss) => {
            let cause = loss.cause.as_deref().map_or_else(String::new, |cause| format!(": {cause}"));
            format!("{}; {} frames lost at {}, {}{cause}", failed.join(", "), loss.frames, loss.at, loss.reason)
        }
        None => failed.join(", "),
    }
}

/// The amount and the engine of a scenario, with what the caller changed.
fn amount_and_engine(options: &RunOptions, amount: Amount, engine: Engine) -> (Amount, Engine) {
    let amount = options.frames.map_or(amount, Amount::Frames);
    let engine = match (engine, options.batch) {
        (Engine::Live { .. }, Some(batch)) => Engine::Live { batch },
        (engine, _) => engine,
    };
    (amount, engine)
}
