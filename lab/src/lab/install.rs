//! Which programs are attached now, and how to get from there to those that a scenario wants.
//!
//! Attaching takes tens of milliseconds (the kernel rewrites its XDP dispatcher and waits for readers), so what a
//! scenario wants and is there already stays.

use std::path::Path;

use super::{
    LabError, Spare,
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
    program::{LoadContext, XdpLink, XdpProgram, load, load_trivial},
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
    /// Copies that hold entries of the kernel's dispatcher meanwhile, on ports of their own.
    pub copies: Option<Copies>,
}

/// Programs that are attached where no frame comes by.
#[derive(Debug)]
pub struct Copies {
    // Links first, then programs, then ports.
    links: Vec<XdpLink>,
    programs: Vec<XdpProgram>,
    spare: Spare,
}

impl Copies {
    fn attach(inside: &Inside, copies: u32) -> Result<Self, LabError> {
        let mut all = Self { links: Vec::new(), programs: Vec::new(), spare: Spare::new(inside, copies)? };
        for n in 0..copies {
            let program = load_trivial()?;
            let link = inside.enter(all.spare.netns(), || program.attach(Spare::ifindex(n), XdpMode::Native))??;
            all.links.push(link);
            all.programs.push(program);
        }
        Ok(all)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.programs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }
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
    let (kept, mut replaced): (Vec<_>, Vec<_>) =
        std::mem::take(installed).into_iter().partition(|have| wanted.contains(&have.wanted));
    *installed = kept;
    // What stays attached nowhere goes first: two programs can't be at one port.
    let is_swapped = |have: &Installed| wanted.iter().any(|want| have.can_become(want));
    replaced.retain(is_swapped);
    for want in wanted {
        if installed.iter().any(|have| have.wanted == want) {
            continue;
        }
        let old = replaced.iter().position(|have| have.can_become(&want)).map(|n| replaced.swap_remove(n));
        installed.push(match old {
            Some(old) => swap(inside, site, old, want)?,
            None => attach(inside, site, want)?,
        });
    }
    // In the file's order, whatever was attached first.
    installed.sort_by_key(|have| have.wanted.program);
    Ok(())
}

impl Installed {
    /// Whether another program can be put into its links: attached at the same ports in the same way.
    fn can_become(&self, wanted: &Wanted) -> bool {
        // Copies come first, and the dispatcher gives an entry that a link update frees to the program that it brings.
        let has_copies = |wanted: &Wanted| wanted.body.builtin() == Some(Builtin::Dispatcher);
        // Sockets are opened before their program is attached.
        let has_sockets = |wanted: &Wanted| wanted.body.builtin() == Some(Builtin::Xsk);
        self.wanted.program == wanted.program
            && self.wanted.mode == wanted.mode
            && !has_sockets(wanted)
            && !has_sockets(&self.wanted)
            && !has_copies(wanted)
            && !has_copies(&self.wanted)
    }
}

/// Puts another program into the links of one that is attached: no port is without one in between, and GRO stays.
fn swap(inside: &Inside, site: Site<'_>, old: Installed, wanted: Wanted) -> Result<Installed, LabError> {
    let program = prepare(inside, site, &wanted)?;
    for (_, link) in &old.links {
        link.update(&program)?;
    }
    Ok(Installed { wanted, links: old.links, receivers: Vec::new(), program, copies: None })
}

/// Loads what is wanted, fills its maps, and attaches it to a pair of spare ports, so that it holds its entry in the
/// kernel's dispatcher: putting it into a link, or taking it out again, then takes microseconds.
pub(super) fn hold(
    inside: &Inside,
    site: Site<'_>,
    wanted: &Wanted,
    (spare, pair): (&Spare, u32),
) -> Result<Held, LabError> {
    let program = prepare(inside, site, wanted)?;
    let link = inside.enter(spare.netns(), || program.attach(Spare::ifindex(pair), XdpMode::Native))??;
    Ok(Held { link, program })
}

/// The same in the place of a program that was held until now: one change of the dispatcher instead of two.
pub(super) fn hold_instead(inside: &Inside, site: Site<'_>, wanted: &Wanted, held: &mut Held) -> Result<(), LabError> {
    let program = prepare(inside, site, wanted)?;
    held.link.update(&program)?;
    held.program = program;
    Ok(())
}

/// Attaches a program that is installed to a pair of spare ports as well, for the same reason.
pub(super) fn anchor(inside: &Inside, have: &Installed, (spare, pair): (&Spare, u32)) -> Result<Anchor, LabError> {
    let link = inside.enter(spare.netns(), || have.program.attach(Spare::ifindex(pair), XdpMode::Native))??;
    Ok(Anchor { _link: link })
}

/// Keeps an installed program's entry in the kernel's dispatcher while another one is in its place.
#[derive(Debug)]
pub struct Anchor {
    _link: XdpLink,
}

/// A program that is loaded, and attached to a spare port.
#[derive(Debug)]
pub struct Held {
    // Before the program: a link is dropped first.
    link: XdpLink,
    program: XdpProgram,
}

impl Installed {
    /// Puts another program into the links, until [`Self::restore`].
    pub(super) fn put(&self, held: &Held) -> Result<(), LabError> {
        Ok(self.links.iter().try_for_each(|(_, link)| link.update(&held.program))?)
    }

    /// Puts its own program back.
    pub(super) fn restore(&self) -> Result<(), LabError> {
        Ok(self.links.iter().try_for_each(|(_, link)| link.update(&self.program))?)
    }
}

/// Copies that hold entries of the kernel's dispatcher. Their number matters to what a run costs, not to where frames go.
fn copies_for(inside: &Inside, wanted: &Wanted) -> Result<Option<Copies>, LabError> {
    let is_dispatcher = wanted.body.builtin() == Some(Builtin::Dispatcher) && !wanted.counting;
    let more = if is_dispatcher { wanted.body.options.entries.saturating_sub(1) } else { 0 };
    if more > 0 { Copies::attach(inside, more).map(Some) } else { Ok(None) }
}

/// Loads a program and fills its maps.
fn prepare(inside: &Inside, site: Site<'_>, wanted: &Wanted) -> Result<XdpProgram, LabError> {
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
    Ok(program)
}

fn attach(inside: &Inside, site: Site<'_>, wanted: Wanted) -> Result<Installed, LabError> {
    let Site { topology, network, .. } = site;
    let spec = topology.program(wanted.program);
    let copies = copies_for(inside, &wanted)?;
    let mut program = prepare(inside, site, &wanted)?;
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
    Ok(Installed { wanted, links, receivers, program, copies })
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
