//! Micro-benchmarks: each measures one thing that XDP's performance work argues about, and holds it against the
//! published figures.
//!
//! | file | measures |
//! |---|---|
//! | `dispatcher` | one run of a program by the number of programs attached, and where the dispatcher ends |
//! | `drop` | dropping frames, by mode, touch and queues |
//! | `broadcast` | copies, clones and what each further clone costs |
//! | `flow` | flow lookups |
//! | `redirect` | `redirect_map` to one port |
//! | `traits` | operations on traits |
//! | `survival` | where traits survive, and how much room they have |
//! | `rig` | the lab that path prices are taken on |
//! | `layout` | the dispatcher's code, computed |

pub mod broadcast;
pub mod dispatcher;
pub mod drop;
pub mod flow;
pub mod layout;
pub mod redirect;
mod rig;
mod survival;
pub mod traits;

use std::time::{Duration, Instant};

use rig::{PathSpec, Rig};

use crate::{
    lab::LabError,
    measure::{fingerprint, interval},
    observe::profile::{Sampler, SamplerOptions},
    record::{
        Check, Fingerprint, Verdict,
        bench::{BENCH_SCHEMA, Bench, BenchReport, Nanoseconds, PathProfile},
    },
    run::{Progress, checks},
    traffic::cpu::Pinned,
};

/// What a caller may choose of a benchmark that has no choices of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct PathOptions {
    /// Whether two of the paths are profiled.
    pub profile: bool,
    /// Whether fewer rounds and windows will do: wider intervals, the same checks.
    pub quick: bool,
}

/// A benchmark at work: its start and what it collects on the way.
#[derive(Debug)]
struct Running {
    started: jiff::Timestamp,
    checks: Vec<Check>,
    notes: Vec<String>,
    profiles: Vec<PathProfile>,
    /// The rigs' part of the fingerprint.
    rigs: Fingerprint,
}

impl Running {
    fn start() -> Self {
        Self {
            started: jiff::Timestamp::now(),
            checks: Vec::new(),
            notes: Vec::new(),
            profiles: Vec::new(),
            rigs: Fingerprint::default(),
        }
    }

    /// Records what a rig is made of, as it is before anything is attached.
    fn made_of(&mut self, rig: &Rig) -> Result<(), LabError> {
        self.rigs.0.extend(rig.fingerprint()?.0);
        Ok(())
    }

    /// Notes a check: `measured` against `limit`, both in words.
    fn check(&mut self, what: &str, limit: impl Into<String>, measured: impl Into<String>, ok: bool) {
        self.checks.push(Check {
            what: what.to_owned(),
            limit: limit.into(),
            measured: measured.into(),
            ok,
            undecided: false,
        });
    }

    /// Profiles paths, each with its name and its cost, a second each. After everything is priced: samples cost time.
    fn profile(
        &mut self,
        rig: &mut Rig,
        paths: &[(String, PathSpec, f64)],
        progress: &dyn Progress,
    ) -> Result<(), LabError> {
        progress.step("profile");
        for (name, path, ns) in paths {
            let profile = rig.profile(path)?;
            self.profiles.push(PathProfile { name: name.clone(), ns: *ns, profile });
        }
        Ok(())
    }

    /// Profiles a loop of runs on this thread's CPU for a second.
    fn profile_loop(
        &mut self,
        name: &str,
        ns: f64,
        mut run: impl FnMut() -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let threads = vec![nix::unistd::gettid().as_raw().unsigned_abs()];
        let pinned =
            Pinned::here().map_err(|errno| LabError::Send { port: "a program".to_owned(), source: errno.into() })?;
        let sampler = Sampler::start(pinned.cpu, SamplerOptions { threads, ..SamplerOptions::default() })?;
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until {
            run()?;
        }
        let profile = sampler.stop()?;
        self.profiles.push(PathProfile { name: name.to_owned(), ns, profile });
        Ok(())
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    fn finish(self, bench: Bench) -> BenchReport {
        let verdict = if self.checks.is_empty() { Verdict::Pass } else { checks::verdict(&self.checks) };
        let mut fingerprint = fingerprint::of_host();
        fingerprint.0.extend(self.rigs.0);
        BenchReport {
            schema: BENCH_SCHEMA.to_owned(),
            started: self.started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            fingerprint,
            seconds: jiff::Timestamp::now().duration_since(self.started).as_secs_f64(),
            bench,
            checks: self.checks,
            verdict,
            notes: self.notes,
            profiles: self.profiles,
        }
    }
}

/// The median of some values and its 90 % interval; zero of none.
fn median(values: &[f64]) -> Nanoseconds {
    interval::median(values)
        .map_or(Nanoseconds { ns: 0.0, ci: [0.0, 0.0] }, |e| Nanoseconds { ns: e.value, ci: [e.low, e.high] })
}
