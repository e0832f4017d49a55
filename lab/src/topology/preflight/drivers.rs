//! What the drivers that a topology asks for can't do of what it asks of them.

use super::{DRIVERS, Preflight, Warning, WarningKind};
use crate::{
    drivers::{self, Answer, Driver, Knowledge, Xmit},
    topology::{
        diagnostic::{Diagnostic, Span},
        model::{Engine, LinkKind, PortId, ProgramId, ProgramSource, Topology},
        suggest,
    },
    xdp::XdpMode,
};

/// What goes wrong on NICs of the drivers that the cables ask for, in the order of the file. Where veth pairs stand in for
/// them, it doesn't.
pub fn driver_warnings(topology: &Topology) -> Vec<Warning> {
    let mut preflight = Preflight::new(topology);
    for (index, link) in topology.links.iter().enumerate() {
        let LinkKind::Cable(nic) = &link.kind else { continue };
        let Some(name) = &nic.driver else { continue };
        match drivers::known(name) {
            Some(driver) => {
                for port in &link.ends {
                    preflight.driver(*port, driver, &Knowledge { driver: Some(driver), ..Knowledge::default() });
                }
            }
            None if !DRIVERS.contains(&name.as_str()) => {
                let span = topology.spans.drivers.get(index).cloned().flatten().unwrap_or_default();
                preflight.unknown_driver(name, link.ends.first().copied(), span);
            }
            None => {}
        }
    }
    preflight.sorted()
}

/// What goes wrong on the NICs that ports are made of, by what is known of them and what they say themselves.
pub fn nic_warnings(topology: &Topology, nic_at: &dyn Fn(PortId) -> Option<Knowledge>) -> Vec<Warning> {
    let mut preflight = Preflight::new(topology);
    for port in (0..topology.ports.len()).map(PortId) {
        let Some(knowledge) = nic_at(port) else { continue };
        if let Some(driver) = knowledge.driver {
            preflight.driver(port, driver, &knowledge);
        }
    }
    preflight.sorted()
}

impl WarningKind {
    /// Whether nothing of a run can come of it: the kernel refuses, or no frame is sent.
    pub fn is_fatal(self) -> bool {
        matches!(self, Self::DriverHasNoNative | Self::DriverCantSend | Self::DriverMtu)
    }
}

impl Preflight<'_> {
    fn driver(&mut self, port: PortId, driver: &Driver, knowledge: &Knowledge) {
        self.native(port, driver, knowledge);
        self.target(port, driver);
        self.sender(port, driver);
        self.queues(port, driver);
    }

    fn unknown_driver(&mut self, name: &str, port: Option<PortId>, span: Span) {
        let known = DRIVERS.into_iter().chain(drivers::all().map(|driver| driver.name));
        let help = suggest::nearest(name, known).map_or_else(
            || "name the driver as `ethtool -i` does".to_owned(),
            |nearest| format!("did you mean `{nearest}`?"),
        );
        let message = format!("nothing is known of a driver `{name}`, which this cable asks for");
        self.warn(
            WarningKind::UnknownDriver,
            port,
            Diagnostic::warning(span, message).label("unknown driver").help(help),
        );
    }

    /// Native programs at a port: whether the driver runs them, and at this MTU.
    fn native(&mut self, port: PortId, driver: &Driver, knowledge: &Knowledge) {
        let topology = self.topology;
        let native = self.any_native();
        for (index, program) in topology.programs.iter().enumerate() {
            let Some(place) = program.attach.iter().position(|at| *at == port) else { continue };
            if program.mode == Some(XdpMode::Generic) || program.mode.is_none() && !native {
                continue;
            }
            let spans = topology.spans.programs.get(index);
            let span = spans.and_then(|spans| spans.attach.get(place)).cloned().unwrap_or_default();
            let (name, port_name) = (&program.name, topology.port_name(port));
            if matches!(knowledge.native(), Answer::No(_)) {
                let lacks = match (driver.native, knowledge.kernel) {
                    (Some(since), Some(kernel)) if kernel < since => {
                        format!("{} has native XDP since Linux {since}, and this is {kernel}", driver.name)
                    }
                    (Some(_), _) => {
                        format!("the NIC says that it has no native XDP, though its driver {} has", driver.name)
                    }
                    (None, _) => format!("{} has no native XDP", driver.name),
                };
                let diagnostic =
                    Diagnostic::warning(span, format!("{lacks}: `{name}` can't be attached to `{port_name}` there"))
                        .label("native, on a driver without")
                        .help(format!("give `{name}` mode = \"generic\", or the scenarios modes = [\"generic\"]"));
                self.warn(WarningKind::DriverHasNoNative, Some(port), diagnostic);
                continue;
            }
            let mtu = topology.ports[port.0].mtu;
            let Some(most) = driver.native_mtu.filter(|most| mtu > *most) else { continue };
            let may_declare = driver.frags.is_some() && matches!(program.body.source, ProgramSource::Object { .. });
            let unless = if may_declare { ", unless the program declares fragments" } else { "" };
            let diagnostic = Diagnostic::warning(
                topology.spans.mtu.get(port.0).cloned().flatten().unwrap_or(span),
                format!(
                    "an MTU of {mtu} at `{port_name}` is too large for the native program `{name}` on {}{unless}",
                    driver.name
                ),
            )
            .label(format!("more than {most}"))
            .help(format!("set the MTU to {most} or less, or give `{name}` mode = \"generic\""));
            self.warn(WarningKind::DriverMtu, Some(port), diagnostic);
        }
    }

    /// Whether any run attaches native programs where the file leaves the mode open.
    fn any_native(&self) -> bool {
        let scenarios = &self.topology.scenarios;
        scenarios.is_empty() || scenarios.iter().any(|scenario| scenario.modes.contains(&XdpMode::Native))
    }

    /// The MTU of a port and the most at which the driver takes the program that redirected frames need there, where it is
    /// over that.
    fn over_program_mtu(&self, port: PortId, driver: &Driver) -> Option<(u32, u32)> {
        let mtu = self.topology.ports[port.0].mtu;
        let most = driver.native_mtu.filter(|most| mtu > *most)?;
        // A program of the file's own there is warned of by itself.
        let has_own = self.topology.program_at(port).is_some_and(|(_, program)| program.mode != Some(XdpMode::Generic));
        (driver.xmit == Xmit::WithProgram && !has_own).then_some((mtu, most))
    }

    /// Why a driver transmits no XDP frames at a port, and what would help; drivers that want a program of their own there get
    /// one: the lab attaches one that passes everything.
    fn cant_transmit(&self, port: PortId, driver: &Driver) -> Option<(String, String)> {
        if driver.xmit == Xmit::Never {
            return Some(("has no ndo_xdp_xmit".to_owned(), "ask for another driver".to_owned()));
        }
        let (mtu, most) = self.over_program_mtu(port, driver)?;
        Some((
            format!(
                "transmits redirected frames only with a native program on it, and takes one at an MTU of {most} at most, not {mtu}"
            ),
            format!("set the MTU to {most} or less"),
        ))
    }

    /// Native redirects to a port: whether the driver takes them.
    fn target(&mut self, port: PortId, driver: &Driver) {
        let Some((span, program)) = self.redirects_to(port) else { return };
        let topology = self.topology;
        let name = topology.port_name(port);
        let Some((why, fix)) = self.cant_transmit(port, driver) else { return };
        let diagnostic = Diagnostic::warning(
            span,
            format!(
                "frames that `{program}` redirects to `{name}` in native mode are lost on {}, which {why}",
                driver.name
            ),
        )
        .label("frames vanish here")
        .help(format!("use modes = [\"generic\"], or {fix}"));
        self.warn(WarningKind::DriverIsNoTarget, Some(port), diagnostic);
    }

    /// The engine `live` sends as a redirect does.
    fn sender(&mut self, port: PortId, driver: &Driver) {
        let Some((why, fix)) = self.cant_transmit(port, driver) else { return };
        let spans = &self.topology.spans.scenarios;
        let sends = |n: &usize| {
            let traffic = &self.topology.scenarios[*n].traffic;
            traffic.from == port && matches!(traffic.engine, Engine::Live { .. })
        };
        let Some(scenario) = (0..self.topology.scenarios.len()).find(sends) else { return };
        let span = spans.get(scenario).map(|spans| spans.from.clone()).unwrap_or_default();
        let name = self.topology.port_name(port);
        let diagnostic = Diagnostic::warning(
            span,
            format!("the engine `live` can't send from `{name}` on {}, which {why}", driver.name),
        )
        .label("nothing leaves here")
        .help(format!("use engine = \"packet\", or {fix}"));
        self.warn(WarningKind::DriverCantSend, Some(port), diagnostic);
    }

    /// Drivers that transmit XDP frames on CPUs below their queue count alone: who sends, and who redirects, must be one.
    fn queues(&mut self, port: PortId, driver: &Driver) {
        if !driver.queue_per_cpu {
            return;
        }
        let topology = self.topology;
        let (name, queues) = (topology.port_name(port), topology.ports[port.0].queues);
        for (n, scenario) in topology.scenarios.iter().enumerate() {
            let spans = topology.spans.scenarios.get(n);
            let traffic = &scenario.traffic;
            if traffic.from == port && traffic.senders > queues {
                let senders = traffic.senders;
                let diagnostic = Diagnostic::warning(
                    spans.map(|spans| spans.from.clone()).unwrap_or_default(),
                    format!(
                        "{senders} CPUs send at `{name}`, which has {queues} queues: {} transmits XDP frames on CPUs below that \
                         number alone",
                        driver.name
                    ),
                )
                .label("more senders than queues")
                .help(format!("set queues = {senders} at `{name}`, or senders = {queues}"));
                self.warn(WarningKind::SendersShareQueues, Some(port), diagnostic);
            }
        }
        let Some((span, program)) = self.redirects_to(port) else { return };
        let receives = topology.programs.iter().filter(|p| p.name == program).flat_map(|p| p.attach.iter());
        for receives in receives.copied().collect::<Vec<_>>() {
            let cpus = &topology.ports[receives.0].irq_cpus;
            let beyond = cpus.iter().find(|cpu| **cpu >= queues);
            let receiver = topology.port_name(receives);
            if cpus.is_empty() && self.is_cable(receives) {
                let diagnostic = Diagnostic::warning(
                    span.clone(),
                    format!(
                        "`{receiver}` receives on whichever CPUs its interrupts go to, and {} transmits the frames that it \
                         redirects to `{name}`, which has {queues} queue{}, on CPUs below that number alone",
                        driver.name,
                        if queues == 1 { "" } else { "s" }
                    ),
                )
                .label("frames may vanish here")
                .help(format!("give `{receiver}` irq-cpus = [0]"));
                self.warn(WarningKind::CpuBeyondQueues, Some(port), diagnostic);
            }
            let Some(beyond) = beyond else { continue };
            let diagnostic = Diagnostic::warning(
                span.clone(),
                format!(
                    "`{receiver}` receives on CPU {beyond}, and frames that it redirects to `{name}`, which has {queues} queues, \
                     are lost there: {} transmits XDP frames on CPUs below that number alone",
                    driver.name
                ),
            )
            .label("frames vanish here")
            .help(format!("give `{receiver}` irq-cpus below {queues}, or `{name}` queues = {}", beyond + 1));
            self.warn(WarningKind::CpuBeyondQueues, Some(port), diagnostic);
        }
    }

    /// The first place at which a native program, or one that stands in for it, redirects to a port; with its name.
    fn redirects_to(&self, port: PortId) -> Option<(Span, String)> {
        let topology = self.topology;
        let native = |mode: Option<XdpMode>, modes: &[XdpMode]| match mode {
            Some(mode) => mode == XdpMode::Native,
            None => modes.contains(&XdpMode::Native),
        };
        let all: Vec<XdpMode> = topology.scenarios.iter().flat_map(|scenario| scenario.modes.clone()).collect();
        let own_modes = if all.is_empty() { vec![XdpMode::Native] } else { all };
        let own = topology.programs.iter().enumerate().map(|(n, program)| {
            let native = native(program.mode, &own_modes) && !self.is_told_of(ProgramId(n), &program.body, None);
            (program, &program.body, topology.spans.programs.get(n), native)
        });
        let instead = topology.scenarios.iter().enumerate().flat_map(|(n, scenario)| {
            scenario.programs.iter().enumerate().map(move |(k, (id, body))| {
                let program = &topology.programs[id.0];
                let spans = topology.spans.scenarios.get(n).and_then(|spans| spans.programs.get(k));
                let native = native(program.mode, &scenario.modes) && !self.is_told_of(*id, body, Some(scenario));
                (program, body, spans, native)
            })
        });
        own.chain(instead).find_map(|(program, body, spans, native)| {
            let redirects = native && body.ports().contains(&port);
            let span = spans.and_then(|spans| spans.targets.iter().find(|(target, _)| *target == port));
            redirects.then(|| (span.map(|(_, span)| span.clone()).unwrap_or_default(), program.name.clone()))
        })
    }

    fn is_cable(&self, port: PortId) -> bool {
        matches!(self.topology.links[self.topology.ports[port.0].link.0].kind, LinkKind::Cable(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        drivers::Kernel,
        topology::{parse, preflight::render},
        xdp::XdpFeatures,
    };

    fn warned(driver: &str, more: &str) -> String {
        let text = format!(
            r#"name = "t"
[nodes.gen]
[nodes.dut]
[nodes.a]
[[links]]
kind = "cable"
ends = ["gen:tx0", "dut:rx0"]
nic = {{ driver = "i40e" }}
[[links]]
kind = "cable"
ends = ["dut:out0", "a:in0"]
nic = {{ driver = "{driver}" }}
{more}
[programs.forward]
builtin = "redirect_map"
attach = ["dut:rx0"]
maps.tx_ports = ["dut:out0"]
[programs.sink]
builtin = "sink"
attach = ["a:in0"]
[[scenarios]]
name = "forward"
traffic = {{ from = "gen:tx0", frames = 1000 }}
expect = {{ deliver = ["a:in0"] }}
"#
        );
        let topology = parse("t.toml".as_ref(), &text).unwrap_or_else(|wrong| panic!("{wrong}"));
        let warnings = driver_warnings(&topology);
        if warnings.is_empty() {
            return String::new();
        }
        render(&topology, &warnings).to_string()
    }

    #[test]
    fn a_driver_without_ndo_xdp_xmit_is_no_target() {
        insta::assert_snapshot!(warned("mlx4_en", ""));
    }

    #[test]
    fn a_driver_without_native_mode_runs_no_native_program() {
        insta::assert_snapshot!(warned("e1000e", ""));
    }

    #[test]
    fn each_drivers_own_mtu_binds() {
        let shown = warned("igc", "mtu = 2000\n[programs.taker]\nbuiltin = \"pass\"\nattach = [\"dut:out0\"]");
        assert!(shown.contains("too large for the native program `sink` on igc"), "{shown}");
        assert!(!shown.contains("frames vanish"), "{shown}");
    }

    #[test]
    fn a_driver_that_can_do_it_all_gives_no_warning() {
        assert_eq!(warned("ice", ""), "");
    }

    #[test]
    fn a_sender_needs_an_mtu_at_which_its_driver_takes_a_program() {
        let topology = |mtu: u32| {
            let text = format!(
                r#"name = "t"
[nodes.gen]
[nodes.dut]
[[links]]
kind = "cable"
ends = ["gen:tx0", "dut:rx0"]
nic = {{ driver = "igc" }}
mtu = {mtu}
[programs.sink]
builtin = "sink"
attach = ["dut:rx0"]
mode = "generic"
[[scenarios]]
name = "sink"
modes = ["generic"]
traffic = {{ from = "gen:tx0", frames = 1000 }}
expect = {{ deliver = ["dut:rx0"] }}
"#
            );
            parse("t.toml".as_ref(), &text).unwrap_or_else(|wrong| panic!("{wrong}"))
        };
        assert_eq!(driver_warnings(&topology(1500)).len(), 0);
        let large = topology(2000);
        insta::assert_snapshot!(render(&large, &driver_warnings(&large)).to_string());
    }

    #[test]
    fn what_a_nic_says_and_the_kernels_age_count_where_nics_are_known() {
        let topology = parse("t.toml".as_ref(), TEXT).unwrap_or_else(|wrong| panic!("{wrong}"));
        let shown = |knowledge: Knowledge| {
            let warnings =
                nic_warnings(&topology, &|port| (topology.port_name(port) == "dut:rx0").then_some(knowledge));
            assert!(warnings.iter().all(|warning| warning.kind.is_fatal()), "{warnings:?}");
            warnings.into_iter().map(|warning| warning.diagnostic.message).collect::<Vec<_>>().join("\n")
        };
        let young = Knowledge { driver: drivers::known("vmxnet3"), kernel: Some(Kernel(6, 6)), ..Knowledge::default() };
        assert_eq!(shown(young), "");
        insta::assert_snapshot!(shown(Knowledge { kernel: Some(Kernel(6, 1)), ..young }), @"vmxnet3 has native XDP since Linux 6.6, and this is 6.1: `mine` can't be attached to `dut:rx0` there");
        insta::assert_snapshot!(shown(Knowledge { probe: Some(XdpFeatures(0)), ..young }), @"the NIC says that it has no native XDP, though its driver vmxnet3 has: `mine` can't be attached to `dut:rx0` there");
    }

    const TEXT: &str = r#"name = "t"
[nodes.gen]
[nodes.dut]
[[links]]
kind = "cable"
ends = ["gen:tx0", "dut:rx0"]
[programs.mine]
builtin = "sink"
attach = ["dut:rx0"]
[[scenarios]]
name = "s"
traffic = { from = "gen:tx0", frames = 1000 }
expect = { deliver = ["dut:rx0"] }
"#;

    #[test]
    fn a_mistyped_driver_is_recognised() {
        let shown = warned("mlx5_cor", "");
        assert!(shown.contains("did you mean `mlx5_core`?"), "{shown}");
        assert!(
            shown.contains("nic = { driver = \"mlx5_cor\" }\n   |                  ^^^^^^^^^^ unknown driver"),
            "{shown}"
        );
    }

    #[test]
    fn where_a_driver_has_a_queue_for_each_cpu_senders_and_receivers_must_be_one() {
        let text = |ports: &str, senders: u32| {
            format!(
                r#"name = "t"
[nodes.gen.ports.tx0]
queues = 2
[nodes.dut.ports]
{ports}
[nodes.a.ports.in0]
queues = 2
[[links]]
kind = "cable"
ends = ["gen:tx0", "dut:rx0"]
nic = {{ driver = "i40e" }}
[[links]]
kind = "cable"
ends = ["dut:out0", "a:in0"]
nic = {{ driver = "i40e" }}
[programs.forward]
builtin = "redirect_map"
attach = ["dut:rx0"]
maps.tx_ports = ["dut:out0"]
[programs.taker]
builtin = "pass"
attach = ["dut:out0"]
[programs.sink]
builtin = "sink"
attach = ["a:in0"]
[[scenarios]]
name = "forward"
traffic = {{ from = "gen:tx0", flows = 8, senders = {senders}, frames = 1000 }}
expect = {{ deliver = ["a:in0"] }}
"#
            )
        };
        let shown = |ports: &str, senders| {
            let topology = parse("t.toml".as_ref(), &text(ports, senders)).unwrap_or_else(|wrong| panic!("{wrong}"));
            let warnings = driver_warnings(&topology);
            if warnings.is_empty() { String::new() } else { render(&topology, &warnings).to_string() }
        };
        assert_eq!(shown("rx0 = { queues = 2, irq-cpus = [0, 1] }\nout0 = { queues = 2 }", 2), "");
        insta::assert_snapshot!(shown("rx0 = { queues = 2, irq-cpus = [1, 5] }\nout0 = { queues = 2 }", 4));
    }
}
