//! What cables are made of: NICs of this host where its owner offers some that fit, and veth pairs where not.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use super::{
    Instance, LabError, Network,
    network::{Place, ifindex},
    persistent,
};
use crate::{
    drivers::Knowledge,
    host::{
        HostError,
        canary::Canary,
        ethtool::Ethtool,
        journal::Journal,
        lend::{self, Loan, PortSettings},
        matching::{self, NoFit},
        netlink::LinkInfo,
        nics,
        thread::Inside,
    },
    program::{LoadContext, XdpLink, XdpProgram, load},
    record::LinkRecord,
    topology::{
        Builtin, Engine, HostFile, LinkId, LinkKind, PortId, ProgramBody, Scenario, Topology,
        preflight::{self, Warning},
    },
    traffic::cpu,
    xdp::XdpMode,
};

/// How often a link that has no carrier yet is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// Frames that are sent to prove a cable, and how long each is waited for: a switch between may learn slowly.
const CANARIES: u32 = 20;
const CANARY_WAIT: Duration = Duration::from_millis(100);

/// Descriptors of a receive ring whose driver does not tell.
pub(super) const RING: u32 = 128;

/// What cables may be made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NicChoice {
    /// NICs, where the host file has cables that fit all of a topology's; veth pairs where not.
    Auto,
    /// Veth pairs.
    #[default]
    Virtual,
    /// NICs, or an error.
    Physical,
}

/// A NIC that stands at an end of a cable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CableNic {
    /// Its PCI address.
    pub pci: String,
    /// Its name on the host.
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// What is known of it.
    pub knowledge: Knowledge,
    /// Its speed in Mbit/s, where it has one.
    pub speed: Option<u32>,
    /// Its NUMA node, where the host has several.
    pub numa: Option<u32>,
}

/// Which cables of a topology are made of which NICs; all others are veth pairs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cabling {
    /// The cables, with the NIC at either end.
    pub cables: Vec<(LinkId, [CableNic; 2])>,
    /// What is to be said of the choice.
    pub notes: Vec<String>,
}

impl Cabling {
    /// Chooses. A lab takes only NICs whose cables the host file names: their owner offers them by that.
    ///
    /// # Errors
    /// Where NICs are asked for and none fit, or the inventory can't be read.
    pub fn choose(topology: &Topology, choice: NicChoice, host: &HostFile) -> Result<Self, LabError> {
        let requirements = matching::requirements(topology);
        if requirements.is_empty() || choice == NicChoice::Virtual {
            return Ok(Self::default());
        }
        if choice == NicChoice::Auto && host.cables.is_empty() {
            return Ok(Self::default());
        }
        let inventory = nics::inventory()?;
        let assignment = match matching::assign(&requirements, &inventory.nics, host) {
            Ok(assignment) => assignment,
            Err(mut no_fit) => {
                no_fit.add_lent(&inventory.lent);
                if choice == NicChoice::Physical {
                    return Err(LabError::NoFit(no_fit));
                }
                return Ok(Self { cables: Vec::new(), notes: vec![stand_ins(&no_fit)] });
            }
        };
        let links = topology.links.iter().enumerate().filter(|(_, link)| matches!(link.kind, LinkKind::Cable(_)));
        let nic = |index: usize| {
            let nic = &inventory.nics[index];
            CableNic {
                knowledge: nic.knowledge(inventory.kernel),
                pci: nic.pci.clone().unwrap_or_default(),
                name: nic.name.clone(),
                driver: nic.driver.clone(),
                speed: nic.speed,
                numa: nic.numa,
            }
        };
        let cables = links.zip(assignment).map(|((link, _), pair)| (LinkId(link), pair.map(nic))).collect();
        let chosen = Self { cables, notes: Vec::new() };
        chosen.examine(topology)?;
        Ok(chosen)
    }

    /// Whether the host has what the ports that are NICs ask for, before anything of it is changed.
    fn examine(&self, topology: &Topology) -> Result<(), LabError> {
        let ethtool = Ethtool::open()?;
        let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default().trim().to_owned();
        let cpus = cpu::list(&online);
        for (link, nics) in &self.cables {
            for (port, nic) in topology.links[link.0].ends.iter().zip(nics) {
                let (wanted, name) = (&topology.ports[port.0], topology.port_name(*port));
                for feature in wanted.offloads.keys() {
                    ethtool
                        .has_feature(&nic.name, feature)
                        .map_err(|error| error.at(&format!("{name}, which is NIC {},", nic.name)))?;
                }
                let missing = |cpu: &&u32| !cpus.is_empty() && !cpus.contains(&(**cpu as usize));
                if let Some(cpu) = wanted.irq_cpus.iter().find(missing) {
                    return Err(LabError::NoSuchCpu { port: name, cpu: *cpu, online });
                }
            }
        }
        Ok(())
    }

    /// Whether a link is made of NICs.
    pub fn is_of_nics(&self, link: LinkId) -> bool {
        self.cables.iter().any(|(cable, _)| *cable == link)
    }

    /// The NIC that a port is, if it is one.
    pub fn nic_at(&self, topology: &Topology, port: PortId) -> Option<&CableNic> {
        let (link, nics) = self.cables.iter().find(|(link, _)| *link == topology.ports[port.0].link)?;
        let end = topology.links[link.0].ends.iter().position(|end| *end == port)?;
        nics.get(end)
    }

    /// What goes wrong on the NICs that were chosen.
    pub fn warnings(&self, topology: &Topology) -> Vec<Warning> {
        preflight::nic_warnings(topology, &|port| self.nic_at(topology, port).map(|nic| nic.knowledge))
    }

    /// What the links of a topology are made of.
    pub fn links(&self, topology: &Topology) -> Vec<LinkRecord> {
        let record = |(n, link): (usize, &crate::topology::Link)| {
            let nics = self.cables.iter().find(|(id, _)| id.0 == n).map(|(_, nics)| nics);
            let (kind, made_of, stands_in_for) = match (&link.kind, nics) {
                (LinkKind::Veth, _) => ("veth", "veth".to_owned(), None),
                (LinkKind::Bridge, _) => ("bridge", "bridge".to_owned(), None),
                (LinkKind::Cable(_), Some([a, b])) if a.driver == b.driver => ("cable", a.driver.clone(), None),
                (LinkKind::Cable(_), Some([a, b])) => ("cable", format!("{} and {}", a.driver, b.driver), None),
                (LinkKind::Cable(nic), None) => {
                    let asked = nic.driver.clone().or_else(|| nic.label.clone()).or_else(|| nic.pci.clone());
                    ("cable", "veth".to_owned(), Some(asked.unwrap_or_else(|| "a physical NIC".to_owned())))
                }
            };
            LinkRecord {
                ends: link.ends.iter().map(|end| topology.port_name(*end)).collect(),
                kind: kind.to_owned(),
                made_of,
                nics: nics.map(|nics| nics.each_ref().map(|nic| format!("{} ({})", nic.name, nic.pci)).to_vec()),
                stands_in_for,
            }
        };
        topology.links.iter().enumerate().map(record).collect()
    }
}

/// Why cables are veth pairs though the host file has some, in one line.
fn stand_ins(no_fit: &NoFit) -> String {
    let cables: Vec<&str> = no_fit.unfit.iter().map(|unfit| unfit.cable.as_str()).collect();
    format!(
        "veth pairs stand in for all cables: no NICs of this host fit {}. `--nics physical` says which requirement each NIC failed",
        cables.join(", ")
    )
}

/// A NIC of the host that is a port of the lab.
#[derive(Debug)]
pub struct LentPort {
    /// The port.
    pub port: PortId,
    /// What has to be given back.
    pub loan: Loan,
    /// A program that passes everything, where the file has none: many drivers take redirected frames only with one.
    keeper: Option<(XdpLink, XdpProgram)>,
}

impl LentPort {
    /// The kernel's id of the program that keeps it ready, where the file has none.
    pub(super) fn keeper_id(&self) -> Option<u32> {
        self.keeper.as_ref().map(|(_, program)| program.id())
    }
}

/// Lends the NICs of all cables, brings them up, and proves that they are cabled together.
pub(super) fn lend(
    inside: &Inside,
    topology: &Topology,
    network: &mut Network,
    instance: &Instance,
    journal: &Journal,
    cabling: &Cabling,
) -> Result<(), LabError> {
    let lab = instance.to_string();
    for (link, nics) in &cabling.cables {
        for (port, nic) in topology.links[link.0].ends.iter().zip(nics) {
            let spec = &topology.ports[port.0];
            let wanted = PortSettings {
                port: topology.port_name(*port),
                nic: &nic.name,
                driver: nic.driver.clone(),
                name: &spec.name,
                ifindex: ifindex(*port),
                mac: spec.mac,
                mtu: spec.mtu,
                queues: spec.queues,
                rings: spec.rings,
                irq_cpus: &spec.irq_cpus,
            };
            let Place { netns, netlink } = network.at(topology, *port);
            let loan = lend::take(inside, &nic.pci, &wanted, (netns, netlink), &lab, journal)?;
            network.lent.push(LentPort { port: *port, loan, keeper: None });
        }
    }
    for lent in &network.lent {
        inside.block_on(network.finish(topology, lent.port))?;
        lend::set_affinity(&lent.loan.borrowed.pci, &topology.ports[lent.port.0].irq_cpus).map_err(|source| {
            LabError::IrqCpus {
                port: topology.port_name(lent.port),
                nic: lent.loan.borrowed.name.clone(),
                source: Box::new(source),
            }
        })?;
    }
    let ports: Vec<PortId> = network.lent.iter().map(|lent| lent.port).collect();
    wait_for_carrier(inside, topology, network, &ports)?;
    for (link, _) in &cabling.cables {
        if let &[a, b] = topology.links[link.0].ends.as_slice() {
            prove(inside, topology, network, a, b)?;
            prove(inside, topology, network, b, a)?;
        }
    }
    Ok(())
}

/// Attaches a program that passes everything to each NIC at which the file has none. A driver that refuses is let be.
pub(super) fn open(
    inside: &Inside,
    topology: &Topology,
    network: &mut Network,
    instance: &Instance,
) -> Result<(), LabError> {
    let free: Vec<usize> =
        (0..network.lent.len()).filter(|n| topology.program_at(network.lent[*n].port).is_none()).collect();
    for n in free {
        let port = network.lent[n].port;
        let body = ProgramBody::of(Builtin::Pass);
        let program = load(
            &body,
            &LoadContext {
                name: "pass",
                instance: instance.number,
                slots: topology.ports.len() as u32,
                flows: 1,
                queues: topology.ports[port.0].queues,
                counting: false,
                pin_dir: None,
                log_dir: None,
                ifindex: &|port| ifindex(port),
            },
        )?;
        let netns = &network.at(topology, port).netns;
        match inside.enter(netns, || program.attach(ifindex(port), XdpMode::Native))? {
            Ok(link) => network.lent[n].keeper = Some((link, program)),
            Err(error) if is_redirected_to(topology, port) => network.lent[n].loan.notes.push(format!(
                "{}: no program keeps it ready for redirected frames: {}",
                topology.port_name(port),
                crate::host::describe("attach", &error)
            )),
            Err(_) => {}
        }
    }
    let ports: Vec<PortId> = network.lent.iter().map(|lent| lent.port).collect();
    wait_for_carrier(inside, topology, network, &ports)
}

/// Whether frames are redirected to a port, by a program or by the engine `live`; of a file without scenarios nobody knows.
fn is_redirected_to(topology: &Topology, port: PortId) -> bool {
    let sends = |scenario: &Scenario| {
        scenario.traffic.from == port && matches!(scenario.traffic.engine, Engine::Live { .. })
            || scenario.programs.iter().any(|(_, body)| body.ports().contains(&port))
    };
    topology.scenarios.is_empty()
        || topology.scenarios.iter().any(sends)
        || topology.programs.iter().any(|program| program.body.ports().contains(&port))
}

/// Pins the links of those programs, so that they stay with the lab.
pub(super) fn pin_keepers(topology: &Topology, network: &Network, bpf: &Path) -> Result<(), LabError> {
    for lent in &network.lent {
        let Some((link, _)) = &lent.keeper else { continue };
        let folder = bpf.join("open");
        fs::create_dir_all(&folder).map_err(|source| LabError::State { path: folder.clone(), source })?;
        link.pin(&folder.join(persistent::link_name(topology, lent.port)))?;
    }
    Ok(())
}

/// Waits until NICs have a carrier: attaching a program makes many drivers start anew.
pub(super) fn wait_for_carrier(
    inside: &Inside,
    topology: &Topology,
    network: &Network,
    ports: &[PortId],
) -> Result<(), LabError> {
    let deadline = Instant::now() + lend::CARRIER;
    for port in ports {
        let netlink = &network.at(topology, *port).netlink;
        loop {
            let links: Vec<LinkInfo> = inside.block_on(netlink.links())?;
            match links.iter().find(|link| link.index == ifindex(*port)) {
                None => return Err(LabError::PortGone { port: topology.port_name(*port) }),
                Some(link) if link.carrier && link.running => break,
                Some(_) if Instant::now() >= deadline => {
                    return Err(LabError::NoCarrier {
                        port: topology.port_name(*port),
                        nic: network.lent_name(*port),
                        seconds: lend::CARRIER.as_secs(),
                    });
                }
                Some(_) => std::thread::sleep(LOOK),
            }
        }
    }
    Ok(())
}

/// Sends a frame from one port until it is seen at the other.
fn prove(inside: &Inside, topology: &Topology, network: &Network, from: PortId, to: PortId) -> Result<(), LabError> {
    let open = |port: PortId| {
        let spec = &topology.ports[port.0];
        let place = network.at(topology, port);
        inside.enter(&place.netns, || Canary::open(&topology.port_name(port), &spec.name, ifindex(port), spec.mac))?
    };
    let (mut sender, mut receiver) = (open(from)?, open(to)?);
    let word = u64::from(std::process::id()) << 32 | (from.0 as u64) << 16 | to.0 as u64;
    let mac = topology.ports[to.0].mac;
    for _ in 0..CANARIES {
        sender.send(Some(mac), word)?;
        if receiver.receive(Instant::now() + CANARY_WAIT, Some(word))?.contains(&word) {
            return Ok(());
        }
    }
    Err(LabError::NoCanary {
        from: topology.port_name(from),
        from_nic: network.lent_name(from),
        to: topology.port_name(to),
        to_nic: network.lent_name(to),
    })
}

/// Gives all NICs back. Programs must be detached by then.
///
/// # Errors
/// What could not be put back, in words.
pub(super) fn give_back(inside: &Inside, network: &mut Network) -> Result<Vec<String>, Vec<String>> {
    let lent = std::mem::take(&mut network.lent);
    let places: Vec<lend::Place<'_>> =
        network.nodes.iter().map(|place| lend::Place { netns: &place.netns, netlink: &place.netlink }).collect();
    let (mut words, mut failed) = (Vec::new(), Vec::new());
    for LentPort { loan, keeper, .. } in lent.into_iter().rev() {
        drop(keeper);
        match loan.give_back(inside, &places) {
            Ok(said) => words.extend(said),
            Err(said) => failed.extend(said),
        }
    }
    if failed.is_empty() { Ok(words) } else { Err(failed) }
}

/// Descriptors of the smallest ring on the way to a lent port: its receive ring, and the transmit ring of the NIC at the other
/// end, which is empty only once that NIC has been told so. `None` where no driver tells.
pub(super) fn ring(
    inside: &Inside,
    topology: &Topology,
    network: &Network,
    port: PortId,
) -> Result<Option<u32>, HostError> {
    let rings = |port: PortId| -> Result<Option<[u32; 2]>, HostError> {
        let name = &topology.ports[port.0].name;
        let settings =
            inside.enter(&network.at(topology, port).netns, || Ethtool::open().map(|e| e.settings(name)))??;
        Ok(settings.rings)
    };
    let receive = rings(port)?.map(|[rx, _]| rx);
    let transmit = topology.peer(port).map(rings).transpose()?.flatten().map(|[_, tx]| tx);
    Ok(receive.into_iter().chain(transmit).filter(|ring| *ring > 0).min())
}
