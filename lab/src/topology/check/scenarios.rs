//! Scenarios: traffic, expectations and thresholds.

use std::{collections::HashMap, time::Duration};

use super::{Checker, LIVE_MOST, address::MTU_LEAST_V6, path::PathSpans};
use crate::{
    topology::{
        diagnostic::{Diagnostic, Span},
        model::{Amount, Engine, Expect, IpVersion, PortId, ProgramBody, ProgramId, Scenario, ScenarioId, Traffic},
        read::{At, Field},
        schema::{BATCH_MOST, EngineWord, FLOWS_MOST, FRAME_LEAST, FRAME_MOST, RawExpect, RawScenario, RawTraffic},
        spans::{ProgramSpans, ScenarioSpans},
        suggest,
    },
    xdp::XdpMode,
};

/// Frames a batch of live frames unless the file says otherwise.
const BATCH: u32 = 64;

/// Longest that a scenario may send.
const DURATION_MOST: Duration = Duration::from_hours(24);

/// Bytes of an Ethernet frame that are not in its IP packet: header and FCS.
pub(super) const ETHERNET: u32 = 14 + 4;

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
                spans.push(ProgramSpans { name: name.span.clone(), attach: Vec::new(), targets });
            }
        }
        (bodies, spans, sound && self.found.len() == found_before)
    }

    /// What is sent, or `None` where the sender is not known.
    fn check_traffic(&mut self, At { value: raw, span }: &'a At<RawTraffic>) -> Option<Traffic> {
        let from = raw.from.given().and_then(|from| self.port(from));
        let engine_word = raw.engine.given().map_or(EngineWord::Live, |engine| engine.value);
        let batch = self.in_range(&raw.batch, "a batch", 1..=BATCH_MOST).unwrap_or(BATCH);
        if let Some(batch) = raw.batch.given().filter(|_| engine_word == EngineWord::Packet) {
            self.report(
                Diagnostic::error(batch.span.clone(), "the engine `packet` sends one frame at a time")
                    .label("only for the engine `live`")
                    .help("leave `batch` out, or use engine = \"live\""),
            );
        }
        let ip = match raw.ip.given() {
            Some(ip) if ip.value == 6 => IpVersion::V6,
            Some(ip) if ip.value != 4 => {
                self.report(
                    Diagnostic::error(ip.span.clone(), format!("there is no IP version {}", ip.value))
                        .label("not an IP version")
                        .help("give 4 or 6"),
                );
                IpVersion::V4
            }
            _ => IpVersion::V4,
        };
        let flows = self.in_range(&raw.flows, "a number of flows", 1..=FLOWS_MOST).unwrap_or(1);
        let frame_bytes = self.check_frame(raw, ip, engine_word, from);
        let amount = self.check_amount(raw, span);
        let from = from?;
        self.check_sender(raw, from, ip);
        Some(Traffic {
            from,
            engine: match engine_word {
                EngineWord::Live => Engine::Live { batch },
                EngineWord::Packet => Engine::Packet,
            },
            ip,
            flows,
            frame_bytes,
            amount,
        })
    }

    fn check_frame(&mut self, raw: &RawTraffic, ip: IpVersion, engine: EngineWord, from: Option<PortId>) -> u32 {
        let least = least_frame(ip);
        let Some(bytes) = self.in_range(&raw.frame_bytes, "a frame size", FRAME_LEAST..=FRAME_MOST) else {
            return least;
        };
        let span = raw.frame_bytes.given().map(|at| at.span.clone()).unwrap_or_default();
        if bytes < least {
            self.report(
                Diagnostic::error(
                    span,
                    format!(
                        "a {bytes}-byte IPv6 frame has no room for the marker by which the lab knows its own frames"
                    ),
                )
                .label(format!("less than {least}"))
                .help(format!(
                    "set frame-bytes = {least} or more (Ethernet 14, IPv6 40, UDP 8, marker 16, FCS 4), or use ip = 4"
                )),
            );
            return least;
        }
        if let Some(port) = from.filter(|port| bytes - ETHERNET > self.draft.ports[port.0].mtu) {
            let mtu = self.draft.ports[port.0].mtu;
            let name = self.draft.port_name(port);
            let mut diagnostic = Diagnostic::error(
                span,
                format!(
                    "a {bytes}-byte frame holds {} bytes of IP, and `{name}` sends no more than its MTU of {mtu}",
                    bytes - ETHERNET
                ),
            )
            .label("over the MTU")
            .help(format!(
                "set frame-bytes = {} or less, or mtu = {} or more",
                mtu + ETHERNET,
                bytes - ETHERNET
            ));
            if let Some(at) = self.draft.spans.mtu[port.0].clone() {
                diagnostic = diagnostic.related(at, "the MTU");
            }
            self.report(diagnostic);
            return least;
        }
        if engine == EngineWord::Live && bytes - 4 > LIVE_MOST {
            self.report(
                Diagnostic::error(
                    span,
                    format!("a {bytes}-byte frame is {} bytes in memory, and the kernel takes live frames up to {LIVE_MOST}", bytes - 4),
                )
                .label("too large for the engine `live`")
                .help(format!("set frame-bytes = {} or less, or use engine = \"packet\"", LIVE_MOST + 4)),
            );
            return least;
        }
        bytes
    }

    fn check_amount(&mut self, raw: &RawTraffic, span: &Span) -> Amount {
        match (raw.frames.given(), raw.duration.given()) {
            (Some(frames), Some(duration)) => {
                self.report(
                    Diagnostic::error(
                        duration.span.clone(),
                        "traffic ends after so many frames or so much time, not both",
                    )
                    .label("a duration here")
                    .related(frames.span.clone(), "a number of frames here")
                    .help("keep one of the two"),
                );
            }
            (Some(frames), None) => {
                if let Ok(count @ 1..) = u64::try_from(frames.value) {
                    return Amount::Frames(count);
                }
                self.report(
                    Diagnostic::error(frames.span.clone(), format!("{} frames prove nothing", frames.value))
                        .label("no traffic")
                        .help("give 1 or more"),
                );
            }
            (None, Some(duration)) => match parse_duration(&duration.value) {
                Some(time) if !time.is_zero() && time <= DURATION_MOST => return Amount::Duration(time),
                _ => self.report(
                    Diagnostic::error(duration.span.clone(), format!("`{}` is not a duration", duration.value))
                        .label("not above zero and at most 24h")
                        .help("write a number and a unit (us, ms, s, m, h), such as 2s or 500ms"),
                ),
            },
            (None, None) if raw.frames.is_absent() && raw.duration.is_absent() => self.report_fit(
                Diagnostic::error(span.clone(), "nothing says how much is sent")
                    .label("neither `frames` nor `duration`")
                    .help("add frames = 1_000_000, or duration = \"2s\""),
            ),
            (None, None) => {}
        }
        Amount::Frames(1)
    }

    fn check_sender(&mut self, raw: &RawTraffic, from: PortId, ip: IpVersion) {
        let port = &self.draft.ports[from.0];
        let has = |v6: bool| port.addresses.iter().any(|(address, _)| address.is_ipv6() == v6);
        if has(ip == IpVersion::V6) {
            return;
        }
        let (name, mtu) = (self.draft.port_name(from), port.mtu);
        let at = raw.ip.given().map_or_else(|| raw.from.given().map(|at| at.span.clone()), |ip| Some(ip.span.clone()));
        let (version, help) = match ip {
            IpVersion::V6 if mtu < MTU_LEAST_V6 => {
                ("IPv6", format!("IPv6 needs an MTU of {MTU_LEAST_V6}, and the port has {mtu}"))
            }
            IpVersion::V6 => ("IPv6", "give the port an IPv6 address too, or leave `addresses` out".to_owned()),
            IpVersion::V4 => ("IPv4", "give the port an IPv4 address too, or leave `addresses` out".to_owned()),
        };
        // An address of the port may be among those that were reported.
        let wrong_addresses = self.found.iter().any(|found| found.label == "not a port's address");
        if !wrong_addresses {
            self.report_fit(
                Diagnostic::error(at.unwrap_or_default(), format!("`{name}` has no {version} address to send from"))
                    .label(format!("{version} frames"))
                    .help(help),
            );
        }
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
        (Expect { deliver, drop, lost, clones }, (deliver_spans, drop_spans))
    }
}

/// Least frame, in bytes with the FCS, that has room for the marker.
fn least_frame(ip: IpVersion) -> u32 {
    match ip {
        IpVersion::V4 => FRAME_LEAST as u32,
        IpVersion::V6 => ETHERNET + 40 + 8 + xdplab_wire::marker::LEN as u32,
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

/// A number and a unit.
fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit.trim_start() {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(parse_duration("2s"), Some(Duration::from_secs(2)));
        assert_eq!(parse_duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(parse_duration("1.5 s"), Some(Duration::from_millis(1500)));
        for wrong in ["", "2", "s", "-1s", "2 weeks", "1.2.3s", "é"] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_least_frame_has_room_for_the_marker() {
        assert_eq!((least_frame(IpVersion::V4), least_frame(IpVersion::V6)), (64, 82));
    }
}
