//! Pre-flight: what loads without an error, and then goes wrong in the kernel.
//!
//! Told from the file alone; what this host can't do is another matter.

mod drivers;

use std::collections::BTreeSet;

pub use drivers::{driver_warnings, nic_warnings};

use super::{
    NATIVE_MTU_MOST,
    diagnostic::{Diagnostic, Diagnostics, Span},
    model::{Builtin, Engine, LinkKind, PortId, ProgramBody, ProgramId, Scenario, Topology},
    spans::ScenarioSpans,
    suggest,
    walk::Walk,
};
use crate::{drivers as records, xdp::XdpMode};

/// Frames that a veth's ring holds.
pub(crate) const VETH_RING: u32 = 256;

/// Drivers with native XDP, by the name that ethtool gives them.
const DRIVERS: [&str; 30] = [
    "atlantic",
    "bnxt_en",
    "cpsw",
    "dpaa2-eth",
    "ena",
    "fec",
    "fsl_enetc",
    "gve",
    "hv_netvsc",
    "i40e",
    "ice",
    "idpf",
    "igb",
    "igc",
    "ixgbe",
    "ixgbevf",
    "mana",
    "mlx4_en",
    "mlx5_core",
    "mvneta",
    "mvpp2",
    "netdevsim",
    "nfp",
    "qede",
    "sfc",
    "stmmac",
    "tun",
    "veth",
    "virtio_net",
    "vmxnet3",
];

/// What will go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// A native redirect into a veth whose peer takes no XDP frames: each is lost.
    PeerTakesNoFrames,
    /// A generic program on a veth port with GRO off: live frames pass it by.
    GenericWithoutGro,
    /// A batch of more than a quarter of the smallest ring: bursts overflow it now and then.
    LargeBatch,
    /// Frames are expected at a port where nothing counts them.
    NoSink,
    /// A native object program where the MTU asks for fragments.
    NeedsFragments,
    /// A threshold, or a cable, for a driver that no NIC has.
    UnknownDriver,
    /// A native program on a driver that runs none, or a threshold for one.
    DriverHasNoNative,
    /// A native redirect to a NIC whose driver does not take it.
    DriverIsNoTarget,
    /// The engine `live` on a NIC whose driver can't send so.
    DriverCantSend,
    /// An MTU over what the driver takes with a native program.
    DriverMtu,
    /// More senders than queues, where each sender should have one.
    SendersShareQueues,
    /// A port that receives on a CPU on which its target's driver can't transmit.
    CpuBeyondQueues,
}

/// A warning: what will go wrong, why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Which kind.
    pub kind: WarningKind,
    /// The port that it is about, where it is about one.
    pub port: Option<PortId>,
    /// Place, message (with the cause) and fix.
    pub diagnostic: Diagnostic,
}

/// What a topology that passed its checks will do other than it says, in the order of the file.
pub fn warnings(topology: &Topology) -> Vec<Warning> {
    let mut preflight = Preflight::new(topology);
    for (index, scenario) in topology.scenarios.iter().enumerate() {
        let spans = topology.spans.scenarios.get(index).cloned().unwrap_or_default();
        preflight.scenario(scenario, &spans);
    }
    preflight.programs();
    preflight.sorted()
}

/// Warnings as they are shown, with their source lines.
pub fn render(topology: &Topology, warnings: &[Warning]) -> Diagnostics {
    let items = warnings.iter().map(|warning| warning.diagnostic.clone()).collect();
    Diagnostics::new(&topology.path, &topology.spans.text, items)
}

struct Preflight<'t> {
    topology: &'t Topology,
    found: Vec<Warning>,
    /// Each kind is told once a port.
    seen: BTreeSet<(WarningKind, PortId)>,
}

impl<'t> Preflight<'t> {
    fn new(topology: &'t Topology) -> Self {
        Self { topology, found: Vec::new(), seen: BTreeSet::new() }
    }

    /// What was found, in the order of the file.
    fn sorted(mut self) -> Vec<Warning> {
        self.found.sort_by_key(|warning| warning.diagnostic.span.start);
        self.found
    }

    fn warn(&mut self, kind: WarningKind, port: Option<PortId>, diagnostic: Diagnostic) {
        if port.is_none_or(|port| self.seen.insert((kind, port))) {
            self.found.push(Warning { kind, port, diagnostic });
        }
    }

    fn scenario(&mut self, scenario: &Scenario, spans: &ScenarioSpans) {
        let walk = self.topology.walk(scenario);
        for id in &walk.programs {
            let replaced = scenario.programs.iter().position(|(program, _)| program == id);
            let targets = match replaced {
                Some(index) => spans.programs.get(index),
                None => self.topology.spans.programs.get(id.0),
            };
            let targets = targets.map(|spans| spans.targets.clone()).unwrap_or_default();
            self.redirect(*id, self.topology.body_in(scenario, *id), Some(scenario), &targets);
        }
        if let Engine::Live { batch } = scenario.traffic.engine {
            self.batch(batch, spans, &walk);
            self.generic_without_gro(scenario, &walk);
            self.senders(scenario, spans, &walk);
        }
        for (index, port) in scenario.expect.deliver.iter().enumerate() {
            if self.topology.program_at(*port).is_none() {
                let name = self.topology.port_name(*port);
                let span = spans.deliver.get(index).cloned().unwrap_or_default();
                let diagnostic = Diagnostic::warning(
                    span,
                    format!("frames are expected at `{name}`, where no program counts them or checks their markers"),
                )
                .label("no sink here")
                .help(format!("attach one: builtin = \"sink\", attach = [\"{name}\"]"));
                self.warn(WarningKind::NoSink, Some(*port), diagnostic);
            }
        }
        for (driver, span) in &spans.drivers {
            if records::known(driver).is_some_and(|known| known.native.is_none()) {
                self.threshold_without_native(driver, span, scenario);
                continue;
            }
            if DRIVERS.contains(&driver.as_str()) {
                continue;
            }
            let help = suggest::nearest(driver, DRIVERS).map_or_else(
                || "name the driver as `ethtool -i` does".to_owned(),
                |nearest| format!("did you mean `{nearest}`?"),
            );
            let diagnostic = Diagnostic::warning(
                span.clone(),
                format!("no driver known to have XDP is named `{driver}`, so that this threshold may never bind"),
            )
            .label("unknown driver")
            .help(help);
            self.warn(WarningKind::UnknownDriver, None, diagnostic);
        }
    }

    /// A threshold for a driver that runs no native program.
    fn threshold_without_native(&mut self, driver: &str, span: &Span, scenario: &Scenario) {
        let (binds, fix) = match scenario.modes.as_slice() {
            [XdpMode::Generic] => return,
            modes if modes.contains(&XdpMode::Generic) => {
                ("binds in generic mode alone", "keep it for that mode, or leave it out")
            }
            _ => ("can't bind in native mode", "run the scenario with modes = [\"generic\"], or leave it out"),
        };
        let diagnostic =
            Diagnostic::warning(span.clone(), format!("`{driver}` has no native XDP, so that this threshold {binds}"))
                .label("no native XDP")
                .help(fix);
        self.warn(WarningKind::DriverHasNoNative, None, diagnostic);
    }

    /// Programs of their own, apart from any scenario: `up` attaches them native.
    fn programs(&mut self) {
        for (index, program) in self.topology.programs.iter().enumerate() {
            let id = ProgramId(index);
            let spans = self.topology.spans.programs.get(index).cloned().unwrap_or_default();
            self.redirect(id, &program.body, None, &spans.targets);
            if program.body.builtin().is_none() && program.mode != Some(XdpMode::Generic) {
                for (port, span) in program.attach.iter().zip(&spans.attach) {
                    self.fragments(*port, span, &program.name);
                }
            }
        }
    }

    /// A native redirect needs NAPI at the target's peer: a native program there, or GRO.
    fn redirect(&mut self, id: ProgramId, body: &ProgramBody, scenario: Option<&Scenario>, targets: &[(PortId, Span)]) {
        let program = &self.topology.programs[id.0];
        if self.is_told_of(id, body, scenario) {
            return;
        }
        let modes = match (program.mode, scenario) {
            (Some(mode), _) => vec![mode],
            (None, Some(scenario)) => scenario.modes.clone(),
            (None, None) => vec![XdpMode::Native],
        };
        if !modes.contains(&XdpMode::Native) {
            return;
        }
        for target in body.ports() {
            let span = targets.iter().find(|(port, _)| *port == target).map(|(_, span)| span.clone());
            let name = self.topology.port_name(target);
            let (why, fix) = match self.topology.peer(target) {
                Some(peer) => {
                    let there = self.topology.program_at(peer);
                    let native = there.is_some_and(|(_, program)| program.mode != Some(XdpMode::Generic));
                    if native || self.topology.ports[peer.0].gro == Some(true) {
                        continue;
                    }
                    let (node, peer_name) =
                        (&self.topology.nodes[self.topology.ports[peer.0].node.0].name, self.topology.port_name(peer));
                    let port = &self.topology.ports[peer.0].name;
                    let what = if there.is_some() { "no native program and no GRO" } else { "no program and no GRO" };
                    (
                        format!("its peer `{peer_name}` has {what}"),
                        format!(
                            "attach one there (builtin = \"sink\", attach = [\"{peer_name}\"]), or set gro = true in \
                             [nodes.{node}.ports.{port}]"
                        ),
                    )
                }
                None if self.topology.links[self.topology.ports[target.0].link.0].kind == LinkKind::Bridge => (
                    "its peer is a port of a bridge, which runs no program".to_owned(),
                    "use modes = [\"generic\"], or a veth link in place of the bridge".to_owned(),
                ),
                None => continue,
            };
            let diagnostic = Diagnostic::warning(
                span.unwrap_or_default(),
                format!(
                    "frames that `{}` redirects to `{name}` in native mode are lost (EOPNOTSUPP): {why}",
                    program.name
                ),
            )
            .label("frames vanish here")
            .help(fix);
            self.warn(WarningKind::PeerTakesNoFrames, Some(target), diagnostic);
        }
    }

    /// Whether the file says that a broadcast's targets may be skipped: in that scenario, or in all that run the program
    /// itself in native mode.
    fn is_told_of(&self, id: ProgramId, body: &ProgramBody, scenario: Option<&Scenario>) -> bool {
        let runs = |scenario: &&Scenario| {
            scenario.modes.contains(&XdpMode::Native)
                && self.topology.walk(scenario).programs.contains(&id)
                && !scenario.programs.iter().any(|(replaced, _)| *replaced == id)
        };
        let scenarios: Vec<&Scenario> = match scenario {
            Some(scenario) => vec![scenario],
            None => self.topology.scenarios.iter().filter(runs).collect(),
        };
        let told = !scenarios.is_empty() && scenarios.iter().all(|scenario| scenario.expect.skip_unable);
        told && body.builtin() == Some(Builtin::Broadcast)
    }

    /// On veth a sender's frames go through the ring of the queue that its CPU's number falls on.
    fn senders(&mut self, scenario: &Scenario, spans: &ScenarioSpans, walk: &Walk) {
        let senders = scenario.traffic.senders;
        let few = |port: &&PortId| self.topology.ports[port.0].queues < senders;
        let Some(port) = walk.arrivals.iter().find(few).copied() else { return };
        let (name, queues) = (self.topology.port_name(port), self.topology.ports[port.0].queues);
        let plural = if queues == 1 { "" } else { "s" };
        let diagnostic = Diagnostic::warning(
            spans.from.clone(),
            format!(
                "{senders} CPUs send, and `{name}` has {queues} queue{plural}: they wait for each other there, so that rates say \
                 little, and its ring overflows while they are priced"
            ),
        )
        .label("more senders than queues")
        .help(format!("set queues = {senders} at every port on the way"));
        self.warn(WarningKind::SendersShareQueues, Some(port), diagnostic);
    }

    fn batch(&mut self, batch: u32, spans: &ScenarioSpans, walk: &Walk) {
        if batch <= VETH_RING / 4 || walk.arrivals.is_empty() {
            return;
        }
        let diagnostic = Diagnostic::warning(
            spans.batch.clone().unwrap_or_default(),
            format!(
                "a batch of {batch} is more than a quarter of a veth's ring of {VETH_RING}: when a softirq is put off, \
                 the ring overflows and frames are lost"
            ),
        )
        .label(format!("more than {}", VETH_RING / 4))
        .help(format!("set batch = {}, or expect some to be lost", VETH_RING / 4));
        self.warn(WarningKind::LargeBatch, None, diagnostic);
    }

    /// Live frames skip generic programs unless GRO makes the driver build socket buffers from its NAPI poll.
    fn generic_without_gro(&mut self, scenario: &Scenario, walk: &Walk) {
        for port in &walk.arrivals {
            let Some((id, program)) = self.topology.program_at(*port) else { continue };
            let generic = match program.mode {
                Some(mode) => mode == XdpMode::Generic,
                // A sink whose mode is open takes the one in which it sees the frames.
                None if self.topology.body_in(scenario, id).builtin() == Some(Builtin::Sink) => false,
                None => scenario.modes.contains(&XdpMode::Generic),
            };
            let gro_at = self.topology.spans.gro.get(port.0).cloned().flatten();
            if !generic || self.topology.ports[port.0].gro != Some(false) {
                continue;
            }
            let name = self.topology.port_name(*port);
            let diagnostic = Diagnostic::warning(
                gro_at.unwrap_or_default(),
                format!(
                    "the program `{}` at `{name}` sees none of the live frames in generic mode: on a veth they reach \
                     it only with GRO on",
                    program.name
                ),
            )
            .label("GRO is off")
            .help("set gro = true or leave it out, use engine = \"packet\", or modes = [\"native\"]");
            self.warn(WarningKind::GenericWithoutGro, Some(*port), diagnostic);
        }
    }

    fn fragments(&mut self, port: PortId, span: &Span, program: &str) {
        let link = &self.topology.links[self.topology.ports[port.0].link.0];
        let mtu = self.topology.peer(port).map_or(link.mtu, |peer| self.topology.ports[peer.0].mtu);
        if mtu <= NATIVE_MTU_MOST {
            return;
        }
        let name = self.topology.port_name(port);
        let diagnostic = Diagnostic::warning(
            span.clone(),
            format!(
                "the other end of `{name}` has an MTU of {mtu}, more than {NATIVE_MTU_MOST}: `{program}` attaches there \
                 only if it declares fragments"
            ),
        )
        .label("native, behind a large MTU")
        .help("put the program into the section `xdp.frags`, or lower the MTU");
        self.warn(WarningKind::NeedsFragments, Some(port), diagnostic);
    }
}
