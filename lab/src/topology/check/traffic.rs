//! What a scenario sends.

use std::time::Duration;

use super::{Checker, LIVE_MOST, address::MTU_LEAST_V6};
use crate::topology::{
    diagnostic::{Diagnostic, Span},
    model::{Amount, Engine, IpVersion, PortId, Traffic, XSK_FRAME_MOST},
    read::At,
    schema::{BATCH_MOST, EngineWord, FLOWS_MOST, FRAME_LEAST, FRAME_MOST, RawTraffic, SENDERS_MOST},
};

/// Frames a batch of live frames unless the file says otherwise.
const BATCH: u32 = 64;

/// Longest that a scenario may send.
const DURATION_MOST: Duration = Duration::from_hours(24);

/// Bytes of an Ethernet frame that are not in its IP packet: header and FCS.
pub(super) const ETHERNET: u32 = 14 + 4;

impl Checker<'_> {
    /// What is sent, or `None` where the sender is not known.
    pub(super) fn check_traffic(&mut self, At { value: raw, span }: &At<RawTraffic>) -> Option<Traffic> {
        let from = raw.from.given().and_then(|from| self.port(from));
        let engine_word = raw.engine.given().map_or(EngineWord::Live, |engine| engine.value);
        let batch = self.in_range(&raw.batch, "a batch", 1..=BATCH_MOST).unwrap_or(BATCH);
        let fixed = match engine_word {
            EngineWord::Live => None,
            EngineWord::Packet => Some("the engine `packet` sends one frame at a time"),
            EngineWord::Xsk => Some("the kernel sends 32 frames of the engine `xsk` at a time"),
        };
        if let Some((batch, fixed)) = raw.batch.given().zip(fixed) {
            self.report(
                Diagnostic::error(batch.span.clone(), fixed)
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
        let flows = self.in_range(&raw.flows, "a number of flows", 1..=FLOWS_MOST);
        let senders = self.check_senders(raw, engine_word, flows);
        let flows = flows.unwrap_or(1);
        let frame_bytes = self.check_frame(raw, ip, engine_word, from);
        let amount = self.check_amount(raw, span);
        let from = from?;
        self.check_sender(raw, from, ip);
        Some(Traffic {
            from,
            engine: match engine_word {
                EngineWord::Live => Engine::Live { batch },
                EngineWord::Packet => Engine::Packet,
                EngineWord::Xsk => Engine::Xsk,
            },
            ip,
            flows,
            senders,
            frame_bytes,
            amount,
        })
    }

    /// From how many CPUs frames are sent: each needs a flow of its own, or frames of one would overtake each other.
    fn check_senders(&mut self, raw: &RawTraffic, engine: EngineWord, flows: Option<u32>) -> u32 {
        let Some(senders) = self.in_range(&raw.senders, "a number of senders", 1..=SENDERS_MOST) else { return 1 };
        let span = raw.senders.given().map(|at| at.span.clone()).unwrap_or_default();
        if engine != EngineWord::Live && senders > 1 {
            self.report(
                Diagnostic::error(span, "only the engine `live` sends from several CPUs")
                    .label("more than one sender")
                    .help("leave `senders` out, or use engine = \"live\""),
            );
            return 1;
        }
        let flows = flows.or(raw.flows.is_absent().then_some(1));
        if let Some(flows) = flows.filter(|flows| senders > *flows) {
            let mut diagnostic = Diagnostic::error(
                span,
                format!(
                    "{senders} senders need {senders} flows: frames of one flow that two CPUs send overtake each other"
                ),
            )
            .label("more senders than flows")
            .help(format!("set flows = {senders} or more"));
            if let Some(flows) = raw.flows.given() {
                diagnostic = diagnostic.related(flows.span.clone(), "the flows");
            }
            self.report(diagnostic);
            return flows;
        }
        senders
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
        if engine == EngineWord::Xsk && bytes - 4 > XSK_FRAME_MOST {
            self.report(
                Diagnostic::error(
                    span,
                    format!(
                        "a {bytes}-byte frame is {} bytes in memory, and an AF_XDP socket holds up to {XSK_FRAME_MOST}",
                        bytes - 4
                    ),
                )
                .label("too large for the engine `xsk`")
                .help(format!("set frame-bytes = {} or less, or use engine = \"packet\"", XSK_FRAME_MOST + 4)),
            );
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
}

/// Least frame, in bytes with the FCS, that has room for the marker.
fn least_frame(ip: IpVersion) -> u32 {
    match ip {
        IpVersion::V4 => FRAME_LEAST as u32,
        IpVersion::V6 => ETHERNET + 40 + 8 + xdplab_wire::marker::LEN as u32,
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
