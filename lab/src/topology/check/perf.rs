//! Thresholds.

use std::collections::{BTreeMap, HashMap};

use super::Checker;
use crate::{
    topology::{
        diagnostic::{Diagnostic, Span},
        model::{MaxRatio, Perf, ScenarioId},
        read::At,
        schema::{EngineWord, RawRatio, RawScenario},
        suggest,
    },
    xdp::XdpMode,
};

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
            if let Some(rate) = self.positive(value, "a rate") {
                min_mpps.insert(driver.value.clone(), rate);
            }
        }
        let budget_ns = self.positive(&perf.value.budget_ns, "a budget");
        let ratio = perf.value.max_ratio.given();
        let max_ratio = ratio.and_then(|ratio| self.check_ratio(&ratio.value, id, all, names, modes));
        Some(Perf { min_mpps, budget_ns, max_ratio })
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
