//! Scenarios: traffic, expectations and thresholds.

use std::collections::HashMap;

use super::{Checker, path::PathSpans};
use crate::{
    topology::{
        diagnostic::{Diagnostic, Span},
        model::{Expect, ProgramBody, ProgramId, Scenario, ScenarioId},
        read::{At, Field},
        schema::{RawExpect, RawScenario},
        spans::{ProgramSpans, ScenarioSpans},
        suggest,
    },
    xdp::XdpMode,
};

impl<'a> Checker<'a> {
    /// Checks all scenarios.
    pub(super) fn check_scenarios(&mut self) {
        let raw = self.raw;
        let scenarios = raw.scenarios.given().map(|list| list.value.items.as_slice()).unwrap_or_default();
        let mut names: HashMap<&str, (ScenarioId, Span)> = HashMap::new();
        for (index, at) in scenarios.iter().enumerate() {
            let Some(name) = at.value.name.given() else { continue };
            if name.value.trim().is_empty() || name.value.chars().any(char::is_control) || name.value.len() > 100 {
                self.report(
                    Diagnostic::error(name.span.clone(), "a scenario's name is 1 to 100 printable characters")
                        .label("not a name")
                        .help("say in a few words what is tried, such as \"redirect veth->veth\""),
                );
            }
            if let Some((_, first)) = names.get(name.value.as_str()) {
                let diagnostic =
                    Diagnostic::error(name.span.clone(), format!("two scenarios are named `{}`", name.value))
                        .label("again here")
                        .related(first.clone(), "first here")
                        .help("give each a name of its own");
                self.report(diagnostic);
            } else {
                names.insert(&name.value, (ScenarioId(index), name.span.clone()));
            }
        }
        let modes: Vec<_> = scenarios.iter().map(|at| modes_of(&at.value)).collect();
        for (index, at) in scenarios.iter().enumerate() {
            self.check_scenario(at, ScenarioId(index), scenarios, &names, &modes);
        }
    }

    fn check_scenario(
        &mut self,
        At { value: raw, span }: &'a At<RawScenario>,
        id: ScenarioId,
        all: &'a [At<RawScenario>],
        names: &HashMap<&str, (ScenarioId, Span)>,
        modes: &[Vec<XdpMode>],
    ) {
        self.check_modes(raw);
        let (programs, program_spans, sound) = self.check_stand_ins(raw);
        let traffic = raw.traffic.given().map(|traffic| (self.check_traffic(traffic), traffic));
        let (expect, expect_spans) = raw.expect.given().map(|expect| self.check_expect(expect)).unwrap_or_default();
        let engine = traffic.as_ref().and_then(|(_, raw)| raw.value.engine.given()).map(|engine| engine.value);
        let perf = self.check_perf(raw, id, all, names, modes, engine);
        let name = raw.name.given();
        let Some((Some(traffic), At { value: raw_traffic, span: traffic_span })) = traffic else {
            return;
        };
        let spans = ScenarioSpans {
            name: name.map_or_else(|| span.clone(), |name| name.span.clone()),
            from: raw_traffic.from.given().map(|from| from.span.clone()).unwrap_or_default(),
            batch: raw_traffic.batch.given().map(|batch| batch.span.clone()),
            frame_bytes: raw_traffic
                .frame_bytes
                .given()
                .map_or_else(|| traffic_span.clone(), |frame_bytes| frame_bytes.span.clone()),
            deliver: expect_spans.0,
            drop: expect_spans.1,
            clones: raw.expect.given().and_then(|expect| Some(expect.value.clones.given()?.span.clone())),
            skip_unable: raw.expect.given().and_then(|expect| Some(expect.value.skip_unable.given()?.span.clone())),
            modes: raw
                .modes
                .given()
                .map(|list| list.value.items.iter().map(|at| at.span.clone()).collect())
                .unwrap_or_default(),
            programs: program_spans,
            drivers: raw
                .perf
                .given()
                .and_then(|perf| perf.value.min_mpps.given())
                .map(|names| {
                    names.value.entries.iter().map(|(name, _)| (name.value.clone(), name.span.clone())).collect()
                })
                .unwrap_or_default(),
        };
        let scenario = Scenario {
            name: name.map(|name| name.value.clone()).unwrap_or_default(),
            modes: modes[id.0].clone(),
            programs,
            traffic,
            expect,
            perf,
        };
        let given_lost =
            raw.expect.given().and_then(|expect| expect.value.lost.given()).is_some_and(|lost| lost.value > 0);
        if sound {
            self.check_xsk_sender(&scenario, &spans.from);
        }
        if sound && raw.expect.given().is_some() {
            self.check_path(&scenario, &PathSpans { scenario: &spans, may_lose: given_lost });
        }
        self.draft.spans.scenarios.push(spans);
        self.draft.scenarios.push(scenario);
    }

    fn check_modes(&mut self, raw: &RawScenario) {
        let Some(list) = raw.modes.given() else { return };
        if list.value.items.is_empty() && !list.value.bad {
            self.report(
                Diagnostic::error(list.span.clone(), "a scenario without modes never runs")
                    .label("empty")
                    .help("name \"native\", \"generic\" or both"),
            );
        }
        for (index, at) in list.value.items.iter().enumerate() {
            if let Some(first) = list.value.items[..index].iter().find(|first| first.value == at.value) {
                let diagnostic = Diagnostic::error(at.span.clone(), format!("mode `{}` is named twice", at.value))
                    .label("again here")
                    .related(first.span.clone(), "first here")
                    .help("name it once");
                self.report(diagnostic);
            }
        }
    }

    /// Bodies that stand in for programs, their places, and whether all are what the file says.
    fn check_stand_ins(&mut self, raw: &'a RawScenario) -> (Vec<(ProgramId, ProgramBody)>, Vec<ProgramSpans>, bool) {
        let (mut bodies, mut spans) = (Vec::new(), Vec::new());
        let mut sound = !raw.programs.is_bad();
        let found_before = self.found.len();
        for (name, value) in raw.programs.given().map(|names| names.value.entries.as_slice()).unwrap_or_default() {
            let Some(id) = self.programs.get(name.value.as_str()).copied() else {
                sound = false;
                if self.raw.programs.is_bad() {
                    continue;
                }
                let mut known: Vec<_> = self.programs.keys().copied().collect();
                known.sort_unstable();
                let help = suggest::did_you_mean(&name.value, "the programs are", known);
                self.report_fit(
                    Diagnostic::error(
                        name.span.clone(),
                        format!("there is no program `{}` to stand in for", name.value),
                    )
                    .label("unknown program")
                    .help(format!("add the program: [programs.{}]", name.value))
                    .maybe_help(help),
                );
                continue;
            };
            let Some(At { value, span }) = value.given() else {
                sound = false;
                continue;
            };
            let attach = self.draft.programs[id.0].attach.clone();
            let (body, targets) = self.check_body(&value.into(), &name.value, span, &attach);
            sound &= body.is_some();
            if let Some(body) = body {
                bodies.push((id, body));
                let object = value.object.given().map(|object| object.span.clone());
                spans.push(ProgramSpans { name: name.span.clone(), object, attach: Vec::new(), targets });
            }
        }
        (bodies, spans, sound && self.found.len() == found_before)
    }

    /// Expectations, with the places of `deliver` and `drop`.
    fn check_expect(&mut self, At { value: raw, span }: &'a At<RawExpect>) -> (Expect, (Vec<Span>, Vec<Span>)) {
        let (deliver, deliver_spans): (Vec<_>, Vec<_>) = self.ports(&raw.deliver).into_iter().unzip();
        let (drop, drop_spans): (Vec<_>, Vec<_>) = self.ports(&raw.drop).into_iter().unzip();
        for (port, drop_span) in drop.iter().zip(&drop_spans) {
            if let Some(at) = deliver.iter().position(|other| other == port) {
                let name = self.draft.port_name(*port);
                let diagnostic = Diagnostic::error(
                    drop_span.clone(),
                    format!("a frame can't be both delivered and dropped at `{name}`"),
                )
                .label("dropped here")
                .related(deliver_spans[at].clone(), "delivered here")
                .help("keep one of the two");
                self.report(diagnostic);
            }
        }
        let nothing = |field: &Field<_>| match field {
            Field::Absent => true,
            Field::Bad => false,
            Field::Given(at) => {
                let list: &crate::topology::read::List<String> = &at.value;
                list.items.is_empty() && !list.bad
            }
        };
        if nothing(&raw.deliver) && nothing(&raw.drop) && raw.lost.is_absent() {
            self.report_fit(
                Diagnostic::error(span.clone(), "this scenario expects nothing, so that nothing could fail")
                    .label("neither `deliver`, `drop` nor `lost`")
                    .help("say where the frames end: deliver = [\"sink:in0\"], or drop = [\"dut:rx0\"]"),
            );
        }
        let mut count = |field: &Field<i64>, what: &str| {
            let at = field.given()?;
            let count = u64::try_from(at.value).ok();
            if count.is_none() {
                self.report(
                    Diagnostic::error(at.span.clone(), format!("{what} can't be {}", at.value))
                        .label("below zero")
                        .help("give 0 or more"),
                );
            }
            count
        };
        let lost = count(&raw.lost, "the number of lost frames").unwrap_or(0);
        let clones = count(&raw.clones, "the number of clones");
        let skip_unable = raw.skip_unable.given().is_some_and(|at| at.value);
        (Expect { deliver, drop, lost, clones, skip_unable }, (deliver_spans, drop_spans))
    }
}

/// The modes of a scenario: native unless it names some.
fn modes_of(raw: &RawScenario) -> Vec<XdpMode> {
    match &raw.modes {
        Field::Absent => vec![XdpMode::Native],
        Field::Bad => vec![XdpMode::Native, XdpMode::Generic],
        Field::Given(list) => list.value.items.iter().map(|at| at.value).collect(),
    }
}
