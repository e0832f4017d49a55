//! Which programs are attached now, and how to get from there to those that a scenario wants.
//!
//! Attaching takes tens of milliseconds (the kernel rewrites its XDP dispatcher and waits for readers), so what a
//! scenario wants and is there already stays.

use std::path::Path;

use super::{
    LabError,
    network::{Network, ifindex},
    receiver::{Receiver, Telling},
};
use crate::{
    host::{
        HostError,
        ethtool::Ethtool,
        thread::Inside,
        xsk::{self, XskReceiver, XskSpec},
    },
    program::{LoadContext, XdpLink, XdpProgram, load},
    topology::{Builtin, PortId, ProgramBody, ProgramId, Scenario, Topology},
    xdp::XdpMode,
};

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;

/// One program as a scenario wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Which program of the file.
    pub program: ProgramId,
    /// What is loaded for it.
    pub body: ProgramBody,
    /// How it is attached.
    pub mode: XdpMode,
    /// Whether it counts marked frames, or is bare, as it is priced.
    pub counting: bool,
    /// Number of flows that a sink can tell apart.
    pub flows: u32,
}

/// A program that is loaded and attached.
#[derive(Debug)]
pub struct Installed {
    /// What was wanted.
    pub wanted: Wanted,
    /// Its links, by port. Before the program: a link is dropped first.
    pub links: Vec<(PortId, XdpLink)>,
    /// What receives from the sockets of a built-in `xsk`.
    pub receivers: Vec<Receiver>,
    /// The loaded program.
    pub program: XdpProgram,
}

/// What a scenario wants in one mode. The mode is that of the programs under test; a sink stays native, in which it
/// sees frames of either kind, unless the file fixes its mode.
pub fn wanted(topology: &Topology, scenario: Option<&Scenario>, mode: XdpMode, counting: bool) -> Vec<Wanted> {
    let flows = scenario.map_or(1, |s| s.traffic.flows);
    topology
        .programs
        .iter()
        .enumerate()
        .map(|(n, program)| {
            let body = scenario.map_or(&program.body, |s| topology.body_in(s, ProgramId(n))).clone();
            let helper = body.builtin() == Some(Builtin::Sink);
            let default = if helper { XdpMode::Native } else { mode };
            let mode = program.mode.unwrap_or(default);
            Wanted { program: ProgramId(n), body, mode, counting, flows }
        })
        .collect()
}

/// Everything that installing needs beside the programs.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// The topology.
    pub topology: &'a Topology,
    /// Its namespaces.
    pub network: &'a Network,
    /// The number in the markers.
    pub instance: u16,
    /// Where maps pinned by name go.
    pub pin_dir: Option<&'a Path>,
    /// Where the verifier's whole log goes.
    pub log_dir: Option<&'a Path>,
}

/// Detaches what is not wanted and attaches what is missing.
///
/// # Errors
/// Where a program can't be loaded, filled or attached; what was attached before stays in `installed`.
pub(super) fn install(
    inside: &Inside,
    site: Site<'_>,
    installed: &mut Vec<Installed>,
    wanted: Vec<Wanted>,
) -> Result<(), LabError> {
    installed.retain(|have| wanted.contains(&have.wanted));
    for want in wanted {
        if !installed.iter().any(|have| have.wanted == want) {
            installed.push(attach(inside, site, want)?);
        }
    }
    // In the file's order, whatever was attached first.
    installed.sort_by_key(|have| have.wanted.program);
    Ok(())
}

fn attach(inside: &Inside, site: Site<'_>, wanted: Wanted) -> Result<Installed, LabError> {
    let Site { topology, network, .. } = site;
    let spec = topology.program(wanted.program);
    let mut program = load(
        &wanted.body,
        &LoadContext {
            name: &spec.name,
            instance: site.instance,
            slots: topology.ports.len() as u32,
            flows: wanted.flows,
            queues: queues(topology, &spec.attach),
            counting: wanted.counting,
            pin_dir: site.pin_dir,
            log_dir: site.log_dir,
            ifindex: &|port| ifindex(port),
        },
    )?;
    // A devmap resolves its ports in the namespace that it is filled from: the targets', which is the program's too.
    let home = wanted.body.ports().first().or(spec.attach.first()).copied();
    match home {
        Some(port) => inside.enter(&network.at(topology, port).netns, || program.fill_maps())??,
        None => program.fill_maps()?,
    }
    let receivers = open_sockets(inside, site, &wanted, &spec.attach, &mut program)?;
    let mut links = Vec::with_capacity(spec.attach.len());
    for port in &spec.attach {
        let place = network.at(topology, *port);
        let port_spec = &topology.ports[port.0];
        let link = inside.enter(&place.netns, || -> Result<XdpLink, LabError> {
            if port_spec.gro.is_none() {
                set_polling(&port_spec.name, wanted.mode)?;
            }
            program.attach(ifindex(*port), wanted.mode).map_err(|source| LabError::Attach {
                program: spec.name.clone(),
                port: topology.port_name(*port),
                mode: wanted.mode,
                source: Box::new(source),
            })
        })??;
        links.push((*port, link));
    }
    Ok(Installed { wanted, links, receivers, program })
}

/// Most receive queues of some ports.
fn queues(topology: &Topology, ports: &[PortId]) -> u32 {
    ports.iter().map(|port| topology.ports[port.0].queues).max().unwrap_or(1)
}

/// Opens the sockets of a built-in `xsk`, one a queue of each port, and starts to receive from them.
fn open_sockets(
    inside: &Inside,
    site: Site<'_>,
    wanted: &Wanted,
    attach: &[PortId],
    program: &mut XdpProgram,
) -> Result<Vec<Receiver>, LabError> {
    let Site { topology, network, instance, .. } = site;
    let mut receivers = Vec::new();
    if wanted.body.builtin() != Some(Builtin::Xsk) {
        return Ok(receivers);
    }
    let options = &wanted.body.options.xsk;
    let most = queues(topology, attach);
    let telling = Telling { instance, flows: wanted.flows, counting: wanted.counting };
    for port in attach {
        let spec = &topology.ports[port.0];
        let queues = options.queues.clone().unwrap_or_else(|| (0..spec.queues).collect());
        for queue in queues {
            let socket = XskSpec {
                ifindex: ifindex(*port),
                queue,
                ring: options.ring.unwrap_or(xsk::RING),
                frame_bytes: spec.mtu + ETHERNET,
            };
            let netns = &network.at(topology, *port).netns;
            let socket = inside.enter(netns, || XskReceiver::open(socket))??;
            let receiver = Receiver::start(*port, socket, telling, receivers.len())?;
            program.set_socket(port.0 as u32, most, queue, &receiver)?;
            receivers.push(receiver);
        }
    }
    Ok(receivers)
}

/// A generic program sees redirected frames only where its port polls, which takes GRO; a native one polls itself.
fn set_polling(port: &str, mode: XdpMode) -> Result<(), HostError> {
    Ethtool::open()?.set_gro(port, mode == XdpMode::Generic)
}
