//! The profiling phase: each case once more, with the same bare programs as it was priced with, while its CPU is sampled.
//!
//! Never while pricing: a sample costs microseconds.

use std::time::Duration;

use super::{Case, Progress, RunOptions, pricing::Window};
use crate::{
    lab::{Lab, LabError},
    observe::profile::{Sampler, SamplerOptions},
    record::profile::Profile,
    topology::{Amount, Scenario, ScenarioId, Topology},
    traffic::{Stop, cpu},
    xdp::XdpMode,
};

/// How long a case is sampled: some ten thousand samples, a few tenths of a percent of error for the largest shares.
const TIME: Duration = Duration::from_secs(1);
/// Traffic before: caches and the branch predictor are cold after a change of programs.
const WARM_UP: Duration = Duration::from_millis(20);

/// Profiles the cases that were priced.
pub(super) fn run(
    lab: &mut Lab,
    cases: &mut [Case],
    wanted: &[usize],
    options: &RunOptions,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<(), LabError> {
    let topology = lab.topology().clone();
    for (n, &case) in wanted.iter().enumerate() {
        if stop.is_asked() {
            return Ok(());
        }
        progress.frames(n as u64, wanted.len() as u64);
        let case = &mut cases[case];
        case.profile = Some(of_scenario(lab, &topology, case.scenario, case.mode, options, TIME, stop)?);
    }
    Ok(())
}

/// Profiles one scenario in one mode for some time.
pub(super) fn of_scenario(
    lab: &mut Lab,
    topology: &Topology,
    id: ScenarioId,
    mode: XdpMode,
    options: &RunOptions,
    time: Duration,
    stop: &Stop,
) -> Result<Profile, LabError> {
    profile_scenario(lab, &topology.scenarios[id.0], mode, options, time, stop)
}

/// The same for any scenario of the lab's ports.
pub(crate) fn profile_scenario(
    lab: &mut Lab,
    scenario: &Scenario,
    mode: XdpMode,
    options: &RunOptions,
    time: Duration,
    stop: &Stop,
) -> Result<Profile, LabError> {
    lab.install(Some(scenario), mode, false)?;
    let topology = lab.topology().clone();
    let window = Window::new(lab, &topology, scenario, options)?;
    window.send(lab, Amount::Duration(WARM_UP), stop)?;
    let (thread, cpu) = lab.thread().run(|_| (nix::unistd::gettid(), cpu::sender()));
    let threads = vec![thread.as_raw().unsigned_abs()];
    let sampler = Sampler::start(cpu as usize, SamplerOptions { threads, ..SamplerOptions::default() })?;
    window.send(lab, Amount::Duration(time), stop)?;
    Ok(sampler.stop()?)
}
