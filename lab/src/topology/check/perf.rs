//! Thresholds.

use std::collections::{BTreeMap, HashMap};

use super::Checker;
use crate::{
    topology::{
        diagnostic::{Diagnostic, Span},
        model::{MaxRatio, MinRate, Perf, ScenarioId},
        read::{At, Field, RawRates},
        schema::{EngineWord, RawRatio, RawScenario},
        suggest,
    },
    xdp::XdpMode,
};

/// Rate, in million packets a second, at which the fastest link (800 Gbit/s) is full of the smallest frames: 64 bytes, a
/// preamble of 8 and a gap of 12.
const MPPS_MOST: f64 = 800e3 / (8.0 * (64.0 + 8.0 + 12.0));

impl Checker<'_> {
    /// Checks a scenario's thresholds.
    pub(super) fn check_perf(
        &mut self,
        raw: &RawScenario,
        id: ScenarioId,
        all: &[At<RawScenario>],
        names: &HashMap<&str, (ScenarioId, Span)>,
        modes: &[Vec<XdpMode>],
        engine: Option<EngineWord>,
    ) -> Option<Perf> {
        let perf = raw.perf.given()?;
        if engine == Some(EngineWord::Packet) {
            self.report(
                Diagnostic::error(
                    perf.span.clone(),
                    "the engine `packet` is for correctness: what it costs is its own",
                )
                .label("thresholds here")
                .help("use engine = \"live\", or leave `perf` out"),
            );
        }
        let mut min_mpps = BTreeMap::new();
        for (driver, value) in perf.value.min_mpps.given().map(|at| at.value.entries.as_slice()).unwrap_or_default() {
            let rates = value.given().map(|rates| self.check_rates(rates)).unwrap_or_default();
            if !rates.is_empty() {
                min_mpps.insert(driver.value.clone(), rates);
            }
        }
        let budget_ns = self.positive(&perf.value.budget_ns, "a budget");
        let ratio = perf.value.max_ratio.given();
        let max_ratio = ratio.and_then(|ratio| self.check_ratio(&ratio.value, id, all, names, modes));
        Some(Perf { min_mpps, budget_ns, max_ratio })
    }

    /// The rates of one driver: each must be reached by some port.
    fn check_rates(&mut self, raw: &At<RawRates>) -> Vec<MinRate> {
        let list = &raw.value.0;
        if list.items.is_empty() && !list.bad {
            self.report(
                Diagnostic::error(raw.span.clone(), "a list of no rates binds nothing")
                    .label("empty")
                    .help("give a rate, such as 9.0, or [{ mpps = 9.0, speed = 10_000 }]"),
            );
        }
        let mut rates: Vec<(MinRate, Span)> = Vec::new();
        for at in &list.items {
            let mpps = self.positive(&at.value.mpps, "a rate").and_then(|mpps| self.within_reach(mpps, &at.value.mpps));
            let speed = at.value.speed.given().and_then(|speed| {
                let fits = u32::try_from(speed.value).ok().filter(|speed| *speed > 0);
                if fits.is_none() {
                    self.report(
                        Diagnostic::error(speed.span.clone(), format!("{} Mbit/s is no link speed", speed.value))
                            .label("no speed")
                            .help("give it in Mbit/s: 10_000 is 10 Gbit/s"),
                    );
                }
                fits
            });
            let cpu = at.value.cpu.given().map(|cpu| (cpu.value.trim().to_owned(), cpu.span.clone()));
            if let Some((_, span)) = cpu.as_ref().filter(|(text, _)| text.is_empty()) {
                self.report(
                    Diagnostic::error(span.clone(), "every CPU model's name has an empty part")
                        .label("empty")
                        .help("give a part of the name, such as \"EPYC\", or leave `cpu` out"),
                );
            }
            // What is wrong with it may be what it is for.
            let wrong = self.found.iter().any(|found| at.span.contains(&found.span.start));
            let Some(mpps) = mpps.filter(|_| !wrong) else { continue };
            let rate = MinRate { mpps, speed, cpu: cpu.map(|(text, _)| text) };
            if let Some((_, first)) = rates.iter().find(|(before, _)| before.covers(&rate)) {
                self.report(
                    Diagnostic::error(
                        at.span.clone(),
                        "this rate never binds: one before it is for all that it is for",
                    )
                    .label("never reached")
                    .related(first.clone(), "this one binds")
                    .help("put the one with more conditions first"),
                );
                continue;
            }
            rates.push((rate, at.span.clone()));
        }
        rates.into_iter().map(|(rate, _)| rate).collect()
    }

    /// A rate that some link carries, or `None`, reported.
    fn within_reach(&mut self, mpps: f64, field: &Field<f64>) -> Option<f64> {
        if mpps <= MPPS_MOST {
            return Some(mpps);
        }
        let at = field.given()?;
        // What is far beyond counts packets, not millions of them.
        let help = if mpps >= 1e4 {
            format!("Mpps are millions: write {}", mpps / 1e6)
        } else {
            "give what this machine is to reach, in million packets a second".to_owned()
        };
        self.report(
            Diagnostic::error(
                at.span.clone(),
                format!(
                    "a rate of {mpps} Mpps is never reached: 800 Gbit/s, the fastest link, carry {MPPS_MOST:.0} of the smallest frames"
                ),
            )
            .label("never reached")
            .help(help),
        );
        None
    }

    fn check_ratio(
        &mut self,
        raw: &RawRatio,
        id: ScenarioId,
        all: &[At<RawScenario>],
        names: &HashMap<&str, (ScenarioId, Span)>,
        modes: &[Vec<XdpMode>],
    ) -> Option<MaxRatio> {
        let value = self.positive(&raw.value, "a ratio");
        let of = raw.of.given()?;
        let Some((other, _)) = names.get(of.value.as_str()) else {
            // A scenario that could not be read may be the one that is meant.
            let unread = self.raw.scenarios.given().is_none_or(|list| list.value.bad)
                || all.iter().any(|at| at.value.name.given().is_none());
            if !unread {
                let mut known: Vec<_> = names.keys().copied().collect();
                known.sort_unstable();
                let help = suggest::did_you_mean(&of.value, "the scenarios are", known);
                self.report_fit(
                    Diagnostic::error(of.span.clone(), format!("there is no scenario `{}`", of.value))
                        .label("unknown scenario")
                        .maybe_help(help),
                );
            }
            return None;
        };
        let wrong = if *other == id {
            Some(("a scenario's ratio to itself is always 1".to_owned(), "name another scenario"))
        } else if !modes[other.0].iter().any(|mode| modes[id.0].contains(mode)) {
            Some((
                format!("`{}` runs in no mode that this scenario runs in, so that nothing is compared", of.value),
                "give both a mode in common",
            ))
        } else {
            let engine = all[other.0].value.traffic.given().and_then(|traffic| traffic.value.engine.given());
            engine.filter(|engine| engine.value == EngineWord::Packet).map(|_| {
                (format!("`{}` uses the engine `packet`, which is not priced", of.value), "name one that uses `live`")
            })
        };
        if let Some((message, help)) = wrong {
            self.report_fit(Diagnostic::error(of.span.clone(), message).label("compared with this").help(help));
            return None;
        }
        Some(MaxRatio { of: *other, value: value? })
    }
}
