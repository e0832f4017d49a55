//! Whether hops are additive: on veth the price of a hop is the difference of two chains, which means something only if a
//! hop costs the same behind one hop as behind three.
//!
//! ```text
//! gen:tx0 -- n1:in0  n1:out0 -- n2:in0  …  n4:out0 -- n5:in0
//! ```
//!
//! The chain ends where a program that drops is put in the place of one that redirects: the same program wherever it is
//! put, so that where its code lies falls out of every difference. Where the redirecting programs lie does not, and they
//! are loaded anew again and again.

use std::{path::Path, time::Instant};

use super::{CompareError, ERROR};
use crate::{
    host::lock::HostLock,
    lab::{Held, Lab, LabError, Spare, Wanted, wanted},
    measure::{interval::median, stats::hodges_lehmann::hodges_lehmann},
    program::Padding,
    program::watch::EventSet,
    record::compare::Additivity,
    run::{
        Progress, RunOptions,
        pricing::{Clock, Window},
    },
    topology::{self, Builtin, ProgramBody, ProgramId, Topology},
    traffic::Stop,
    xdp::XdpMode,
};

/// Hops of the longest chain.
const HOPS: usize = 4;
/// By how much the second, third and fourth hop may differ, in nanoseconds.
pub const TOLERANCE: f64 = 0.5;
/// Frames of a window: about a millisecond.
const FRAMES: u64 = 2_560;
/// Rounds over all chains, forwards and backwards, in a reload.
const ROUNDS: usize = 6;
/// Instructions of the padding, at most.
const PADDING_MOST: usize = 2_000;

/// Prices chains of none to four hops for so many seconds. The host must not be locked by the caller.
///
/// # Errors
/// Where the lab can't be brought up.
pub fn run(seconds: f64, seed: u64, stop: &Stop, progress: &dyn Progress) -> Result<Option<Additivity>, CompareError> {
    let _alone = HostLock::exclusive(&mut |holder| progress.waiting(holder)).map_err(LabError::from)?;
    progress.step("additivity of hops");
    let mut dice = fastrand::Rng::with_seed(seed);
    let mut chains = Chains::new()?;
    let began = Instant::now();
    let mut reloads = Vec::new();
    while began.elapsed().as_secs_f64() < seconds && !stop.is_asked() {
        chains.load(&mut dice)?;
        reloads.extend(chains.measure(stop)?);
    }
    chains.down()?;
    Ok(judge(&reloads))
}

/// What follows from the costs of hops, a list a reload: the first hop, the second, and so on.
///
/// The second and those after it are held against each other, by their differences in the same reload. They hold if the
/// interval of every difference lies within [`TOLERANCE`], and don't if one lies outside; else it is undecided. `None`
/// without a reload.
fn judge(reloads: &[[f64; HOPS]]) -> Option<Additivity> {
    let of = |n: usize| -> Vec<f64> { reloads.iter().map(|hops| hops[n]).collect() };
    let estimates: Vec<_> = (1..HOPS).map(|n| hodges_lehmann(&of(n), 1.0 - ERROR)).collect::<Option<_>>()?;
    let pairs = (1..HOPS).flat_map(|a| (a + 1..HOPS).map(move |b| (a, b)));
    let differences: Vec<_> = pairs
        .map(|(a, b)| {
            let between: Vec<f64> = reloads.iter().map(|hops| hops[b] - hops[a]).collect();
            hodges_lehmann(&between, 1.0 - ERROR)
        })
        .collect::<Option<_>>()?;
    let outside = differences.iter().any(|of| of.low > TOLERANCE || of.high < -TOLERANCE);
    let inside = differences.iter().all(|of| of.low >= -TOLERANCE && of.high <= TOLERANCE);
    Some(Additivity {
        hops_ns: estimates.iter().map(|of| of.value).collect(),
        ci: estimates.iter().map(|of| [of.low, of.high].map(|end| Some(end).filter(|end| end.is_finite()))).collect(),
        holds: if outside { Some(false) } else { inside.then_some(true) },
        reloads: reloads.len() as u64,
    })
}

/// The chain, up, with what is put into it.
struct Chains {
    /// Before the lab: links go before the ports that they are at.
    hops: Vec<Held>,
    end: Held,
    spare: Spare,
    wanted: Vec<Wanted>,
    window: Window,
    lab: Lab,
}

impl Chains {
    fn new() -> Result<Self, LabError> {
        let topology = topology();
        let mut lab = Lab::new(&topology)?;
        lab.watch(EventSet::Errors)?;
        let scenario = &topology.scenarios[0];
        lab.install(Some(scenario), XdpMode::Native, false)?;
        let wanted = wanted(&topology, Some(scenario), XdpMode::Native, false);
        let spare = lab.spare_ports(HOPS as u32 + 1)?;
        let drop = Wanted { body: ProgramBody::of(Builtin::Drop), ..wanted[HOPS].clone() };
        let end = lab.hold(&drop, &spare, HOPS as u32)?;
        lab.put(ProgramId(HOPS), &end)?;
        let window = Window::new(&lab, &topology, scenario, &RunOptions::default())?.with(FRAMES, Clock::Source);
        Ok(Self { hops: Vec::new(), end, spare, wanted, window, lab })
    }

    fn down(self) -> Result<(), LabError> {
        let Self { hops, end, spare, lab, .. } = self;
        // Links go before the ports that they are at.
        drop((hops, end, spare));
        lab.down().map(drop)
    }

    /// Loads the redirecting programs anew, in random order, with padding of random size between them.
    fn load(&mut self, dice: &mut fastrand::Rng) -> Result<(), LabError> {
        if self.hops.is_empty() {
            for (n, wanted) in self.wanted[..HOPS].iter().enumerate() {
                self.hops.push(self.lab.hold(wanted, &self.spare, n as u32)?);
            }
        }
        let mut order: Vec<usize> = (0..HOPS).collect();
        dice.shuffle(&mut order);
        let mut padding = Vec::new();
        for n in order {
            padding.push(Padding::load(dice.usize(1..PADDING_MOST))?);
            self.lab.hold_instead(&self.wanted[n], &mut self.hops[n])?;
            self.lab.put(ProgramId(n), &self.hops[n])?;
        }
        Ok(())
    }

    /// The cost of each hop; `None` where a stop was asked for, or a chain could not be timed.
    fn measure(&mut self, stop: &Stop) -> Result<Option<[f64; HOPS]>, LabError> {
        let mut windows: [Vec<f64>; HOPS + 1] = Default::default();
        for round in 0..ROUNDS {
            for n in 0..=HOPS {
                let hops = if round % 2 == 0 { n } else { HOPS - n };
                if hops < HOPS {
                    self.lab.put(ProgramId(hops), &self.end)?;
                }
                let (ns, _) = self.window.measure(&mut self.lab, stop)?;
                if hops < HOPS {
                    self.lab.put(ProgramId(hops), &self.hops[hops])?;
                }
                if stop.is_asked() {
                    return Ok(None);
                }
                windows[hops].extend(ns);
            }
        }
        let costs: Option<Vec<f64>> = windows.iter().map(|of| median(of).map(|of| of.value)).collect();
        let Some(costs) = costs else { return Ok(None) };
        let mut hops = [0.0; HOPS];
        for (hop, pair) in hops.iter_mut().zip(costs.windows(2)) {
            *hop = pair[1] - pair[0];
        }
        Ok(Some(hops))
    }
}

fn topology() -> Topology {
    let mut text = String::from("name = \"additivity\"\n[nodes.gen]\n");
    for n in 1..=HOPS + 1 {
        let before = if n == 1 { "gen:tx0".to_owned() } else { format!("n{}:out0", n - 1) };
        text += &format!("[nodes.n{n}]\n[[links]]\nkind = \"veth\"\nends = [\"{before}\", \"n{n}:in0\"]\n");
    }
    for n in 1..=HOPS {
        text += &format!(
            "[programs.hop{n}]\nbuiltin = \"redirect_map\"\nattach = [\"n{n}:in0\"]\nmaps.tx_ports = [\"n{n}:out0\"]\n"
        );
    }
    text += &format!(
        "[programs.last]\nbuiltin = \"drop\"\nattach = [\"n{0}:in0\"]\n[[scenarios]]\nname = \"chain\"\n\
         traffic = {{ from = \"gen:tx0\", frame-bytes = 64, frames = 1000 }}\nexpect = {{ drop = [\"n{0}:in0\"] }}\n",
        HOPS + 1
    );
    match topology::parse(Path::new("additivity.toml"), &text) {
        Ok(topology) => topology,
        Err(diagnostics) => unreachable!("the lab's own topology is sound: {diagnostics}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reloads(hops: [f64; HOPS], noise: f64, count: usize) -> Vec<[f64; HOPS]> {
        let mut dice = fastrand::Rng::with_seed(3);
        (0..count).map(|_| hops.map(|ns| ns + noise * (dice.f64() - 0.5))).collect()
    }

    #[test]
    fn the_chain_is_a_sound_topology() {
        let topology = topology();
        assert_eq!((topology.programs.len(), topology.links.len()), (HOPS + 1, HOPS + 1));
    }

    #[test]
    fn equal_hops_hold_whatever_the_first_costs() {
        let of = judge(&reloads([120.0, 88.0, 88.1, 88.2], 1.0, 60)).unwrap();
        assert_eq!((of.holds, of.reloads), (Some(true), 60), "{of:?}");
        assert!((of.hops_ns[0] - 88.0).abs() < 0.3, "{of:?}");
    }

    #[test]
    fn a_dear_hop_is_found_and_noise_is_undecided() {
        assert_eq!(judge(&reloads([96.0, 88.0, 88.0, 90.0], 1.0, 60)).unwrap().holds, Some(false));
        assert_eq!(judge(&reloads([96.0, 88.0, 88.0, 88.0], 30.0, 8)).unwrap().holds, None);
        assert_eq!(judge(&reloads([96.0, 88.0, 88.0, 95.0], 0.0, 3)).unwrap().holds, None, "three reloads say nothing");
        assert_eq!(judge(&[]), None);
    }

    proptest! {
        #[test]
        fn a_constant_added_to_all_hops_changes_nothing(by in -50.0..50.0, noise in 0.0..5.0) {
            let plain = judge(&reloads([90.0, 88.0, 88.2, 88.4], noise, 30)).unwrap();
            let shifted = judge(&reloads([90.0 + by, 88.0 + by, 88.2 + by, 88.4 + by], noise, 30)).unwrap();
            prop_assert_eq!(plain.holds, shifted.holds);
        }
    }
}
