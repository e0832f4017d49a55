//! A lab that is up: its namespaces, its programs, its observer, owned in the order in which they are dropped.

mod cabling;
pub mod discovery;
mod error;
pub mod inspect;
mod install;
mod instance;
pub(crate) mod load;
mod network;
mod pace;
pub mod persistent;
mod placement;
mod reading;
mod receiver;
mod sources;
mod spare;

use std::path::{Path, PathBuf};

use xdplab_wire::records::{Laps, PortCounters};

pub use cabling::{CableNic, Cabling, LentPort, NicChoice};
pub use error::LabError;
pub use install::{Anchor, Held, Installed, Site, Wanted, wanted};
pub use instance::Instance;
pub use network::{Network, Place, bridge_netns_name, ifindex, netns_name};
pub use pace::Pace;
pub(crate) use pace::WaitFor;
pub use placement::cpu_remarks;
pub use receiver::Receiver;
pub use sources::SourceKey;
pub(crate) use sources::Sources;
pub use spare::Spare;

use crate::{
    drivers::Knowledge,
    host::{
        bpffs::BpfFs,
        journal::{Journal, Kind},
        netlink::LinkInfo,
        netns::Netns,
        thread::LabThread,
    },
    observe::reading::Reading,
    program::{PortCounter, Watch, WatchSpec, watch::EventSet},
    topology::{Builtin, PortId, ProgramId, Scenario, Topology},
    xdp::XdpMode,
};

/// An ephemeral lab: everything in it is held by file descriptors, so that nothing is left when its process dies.
///
/// Fields are dropped in order: what sends, what watches, what is attached, what it is attached to, the record of it.
#[derive(Debug)]
pub struct Lab {
    sources: Option<Sources>,
    watch: Option<Watch>,
    installed: Vec<Installed>,
    spare: Option<spare::Spare>,
    network: Network,
    bpffs: BpfFs,
    journal: Option<Journal>,
    topology: Topology,
    cabling: Cabling,
    instance: Instance,
    log_dir: PathBuf,
    /// Sequence numbers below this one were used: a sink remembers them.
    next_sequence: u32,
    thread: LabThread,
}

impl Lab {
    /// Brings up an ephemeral instance of a topology, without programs.
    ///
    /// # Errors
    /// Where the host refuses a namespace, a link or a setting. What was made until then is gone again.
    pub fn new(topology: &Topology) -> Result<Self, LabError> {
        Self::on(topology, &Cabling::default())
    }

    /// The same with cables that may be made of NICs.
    ///
    /// # Errors
    /// As [`Lab::new`], and where a NIC can't be lent, has no carrier, or is not cabled to where it should be. NICs that
    /// were lent until then are given back.
    pub fn on(topology: &Topology, cabling: &Cabling) -> Result<Self, LabError> {
        let instance = Instance::ephemeral(&topology.name);
        let thread = LabThread::start(&format!("lab {}", instance.tag.as_deref().unwrap_or_default()))?;
        let journal = Journal::create(&instance.to_string(), &instance.to_string(), Kind::Ephemeral)?;
        let built = thread.run(|inside| -> Result<_, LabError> {
            let network = network::build(inside, topology, &instance, &journal, cabling)?;
            network.set_bridge_gro(inside, topology)?;
            Ok((network, BpfFs::detached()?))
        });
        let (network, bpffs) = match built {
            Ok(built) => built,
            Err(error) => {
                // Its namespaces go with their descriptors, the sockets of this thread's runtime among them; NICs fall out
                // of them, and are put back as they were.
                drop(thread);
                return Err(match journal.undo() {
                    Ok(_) => error,
                    Err(left) => LabError::HalfUp { source: Box::new(error), left: left.to_string() },
                });
            }
        };
        Ok(Self {
            sources: None,
            watch: None,
            installed: Vec::new(),
            spare: None,
            network,
            bpffs,
            journal: Some(journal),
            topology: topology.clone(),
            cabling: cabling.clone(),
            instance,
            log_dir: std::env::temp_dir(),
            next_sequence: 0,
            thread,
        })
    }

    /// The topology.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Which instance this is.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// What is attached now, in the file's order.
    pub fn installed(&self) -> &[Installed] {
        &self.installed
    }

    /// Attaches what a scenario wants in one mode, or the file's own programs without one, and detaches the rest.
    ///
    /// # Errors
    /// Where a program can't be loaded, filled or attached.
    pub fn install(&mut self, scenario: Option<&Scenario>, mode: XdpMode, counting: bool) -> Result<(), LabError> {
        let wanted = install::wanted(&self.topology, scenario, mode, counting);
        let pins = self.bpffs.path();
        let site = Site {
            topology: &self.topology,
            network: &self.network,
            instance: self.instance.number,
            pin_dir: Some(&pins),
            log_dir: Some(&self.log_dir),
        };
        let installed = &mut self.installed;
        self.thread.run(|inside| install::install(inside, site, installed, wanted))?;
        if !self.network.lent.is_empty() {
            // Attaching makes many NICs start anew.
            let ports: Vec<PortId> = self.network.lent.iter().map(|lent| lent.port).collect();
            let (topology, network) = (&self.topology, &self.network);
            self.thread.run(|inside| cabling::wait_for_carrier(inside, topology, network, &ports))?;
        }
        self.watch_cpumaps()
    }

    fn site<'a>(&'a self, pins: &'a Path) -> Site<'a> {
        Site {
            topology: &self.topology,
            network: &self.network,
            instance: self.instance.number,
            pin_dir: Some(pins),
            log_dir: Some(&self.log_dir),
        }
    }

    /// Loads a program that can be put in the place of one that is attached now, and holds it ready at a spare port.
    pub(crate) fn hold(&self, wanted: &Wanted, spare: &Spare, pair: u32) -> Result<Held, LabError> {
        let pins = self.bpffs.path();
        let site = self.site(&pins);
        self.thread.run(|inside| install::hold(inside, site, wanted, (spare, pair)))
    }

    /// Loads a program in the place of one that was held ready until now.
    pub(crate) fn hold_instead(&self, wanted: &Wanted, held: &mut Held) -> Result<(), LabError> {
        let pins = self.bpffs.path();
        let site = self.site(&pins);
        self.thread.run(|inside| install::hold_instead(inside, site, wanted, held))
    }

    /// Has what is installed for some programs keep its entries in the dispatcher, from a spare pair on.
    pub(crate) fn anchor(&self, programs: &[ProgramId], spare: &Spare, pair: u32) -> Result<Vec<Anchor>, LabError> {
        let chosen: Vec<&Installed> =
            self.installed.iter().filter(|have| programs.contains(&have.wanted.program)).collect();
        self.thread.run(|inside| {
            (pair..).zip(chosen).map(|(pair, have)| install::anchor(inside, have, (spare, pair))).collect()
        })
    }

    /// Puts a program that is held ready in the place of one that is attached: microseconds, under traffic.
    pub(crate) fn put(&self, program: ProgramId, held: &Held) -> Result<(), LabError> {
        self.installed.iter().filter(|have| have.wanted.program == program).try_for_each(|have| have.put(held))
    }

    /// Puts the attached programs back into their own places.
    pub(crate) fn restore(&self) -> Result<(), LabError> {
        self.installed.iter().try_for_each(Installed::restore)
    }

    /// Pairs of spare ports.
    pub(crate) fn spare_ports(&self, pairs: u32) -> Result<Spare, LabError> {
        self.thread.run(|inside| Spare::new(inside, pairs))
    }

    /// Tells the observer of the cpumaps that are in use now.
    fn watch_cpumaps(&mut self) -> Result<(), LabError> {
        let Some(watch) = &mut self.watch else { return Ok(()) };
        let cpumaps: Vec<(u32, u32)> = self
            .installed
            .iter()
            .filter(|have| have.wanted.body.builtin() == Some(Builtin::Cpumap))
            .filter_map(|have| Some((have.program.cpumap_id()?, have.links.first()?.0.0 as u32)))
            .collect();
        Ok(watch.watch_cpumaps(&cpumaps)?)
    }

    /// Starts to watch the kernel's events at this lab's ports.
    ///
    /// # Errors
    /// Where the tracepoints can't be attached.
    pub fn watch(&mut self, events: EventSet) -> Result<(), LabError> {
        // The old one first: two would count twice.
        self.watch = None;
        let mut watch = Watch::load(&WatchSpec {
            instance: self.instance.number,
            events,
            devices: (self.topology.ports.len() + self.topology.nodes.len()) as u32,
        })?;
        reading::register(&mut watch, &self.topology, &self.network)?;
        self.watch = Some(watch);
        self.watch_cpumaps()
    }

    /// Watches what a price needs: errors, and over NICs whether the receiver is saturated.
    pub(crate) fn watch_prices(&mut self) -> Result<(), LabError> {
        self.watch(if self.network.lent.is_empty() { EventSet::Errors } else { EventSet::Polls })
    }

    /// Reads all counters. Meant for when traffic is at rest.
    ///
    /// # Errors
    /// Where a map or a device can't be read.
    pub fn read(&self) -> Result<Reading, LabError> {
        let (topology, network, installed) = (&self.topology, &self.network, &self.installed);
        let watch = self.watch.as_ref();
        self.thread.run(|inside| reading::read(inside, topology, network, installed, watch))
    }

    /// Runs work on the lab's thread, inside a node.
    ///
    /// # Errors
    /// Where the thread can't enter or leave the namespace.
    pub fn in_node<R: Send>(&self, port: PortId, work: impl FnOnce() -> R + Send) -> Result<R, LabError> {
        let netns = &self.network.at(&self.topology, port).netns;
        self.thread.run(|inside| inside.enter(netns, work)).map_err(LabError::from)
    }

    /// Brings a port up or takes it down, as a test of a broken link wants it.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn set_port_up(&self, port: PortId, up: bool) -> Result<(), LabError> {
        let netlink = &self.network.at(&self.topology, port).netlink;
        self.thread.run(|inside| {
            inside.block_on(async {
                if up { netlink.set_up(ifindex(port)).await } else { netlink.set_down(ifindex(port)).await }
            })
        })?;
        Ok(())
    }

    /// Sets a port's MTU in bytes, as a test of one that does not fit wants it.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn set_port_mtu(&self, port: PortId, mtu: u32) -> Result<(), LabError> {
        let netlink = &self.network.at(&self.topology, port).netlink;
        self.thread.run(|inside| inside.block_on(netlink.set_mtu(ifindex(port), mtu)))?;
        Ok(())
    }

    /// Removes a port's device, and with a veth its peer's, as a test of a port that goes away wants it.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn remove_port(&self, port: PortId) -> Result<(), LabError> {
        let netlink = &self.network.at(&self.topology, port).netlink;
        self.thread.run(|inside| inside.block_on(netlink.delete_link(ifindex(port))))?;
        Ok(())
    }

    /// Takes the lab down; returns what there is to say of NICs that were given back. Dropping it does the same, but keeps
    /// errors to itself.
    ///
    /// # Errors
    /// Where a NIC can't be given back, or the journal not be removed; all else goes with its file descriptors.
    pub fn down(mut self) -> Result<Vec<String>, LabError> {
        let said = self.return_nics()?;
        if let Some(journal) = self.journal.take() {
            journal.finish()?;
        }
        Ok(said)
    }

    /// Gives the NICs back, if there are any: programs first, so that none of them is attached any more.
    fn return_nics(&mut self) -> Result<Vec<String>, LabError> {
        if self.network.lent.is_empty() {
            return Ok(Vec::new());
        }
        (self.sources, self.watch) = (None, None);
        self.installed.clear();
        self.spare = None;
        let network = &mut self.network;
        self.thread.run(|inside| cabling::give_back(inside, network)).map_err(|left| {
            // The journal stays: `gc` tries again.
            self.journal = None;
            LabError::NotReturned { left }
        })
    }

    /// The NICs that are ports, with what there is to say of them.
    pub fn lent(&self) -> &[LentPort] {
        &self.network.lent
    }

    pub(crate) fn thread(&self) -> &LabThread {
        &self.thread
    }

    /// The namespace of a port.
    pub(crate) fn netns_of(&self, port: PortId) -> &Netns {
        &self.network.at(&self.topology, port).netns
    }

    /// What is attached to a port.
    pub(crate) fn installed_at(&self, port: PortId) -> Option<&Installed> {
        self.installed.iter().find(|have| have.links.iter().any(|(at, _)| *at == port))
    }

    /// Whether a port is a NIC, and not a veth's end.
    pub(crate) fn is_nic(&self, port: PortId) -> bool {
        self.network.lent.iter().any(|lent| lent.port == port)
    }

    /// What its cables are made of.
    pub(crate) fn cabling(&self) -> &Cabling {
        &self.cabling
    }

    /// What the program at a port counted, where it is one of the lab's, or what its sockets received.
    pub(crate) fn counters_at(&self, port: PortId) -> Result<PortCounters, LabError> {
        match self.installed_at(port) {
            Some(have) if !have.receivers.is_empty() => Ok(reading::received(have, port)),
            Some(have) => Ok(have.program.counters_at(port.0 as u32)?),
            None => Ok(PortCounters::default()),
        }
    }

    /// What the kernel dropped at a port's `AF_XDP` sockets since they were opened, in frames.
    pub(crate) fn socket_drops_at(&self, port: PortId) -> Result<u64, LabError> {
        let receivers = self.installed.iter().flat_map(|have| &have.receivers).filter(|receiver| receiver.port == port);
        receivers.map(|receiver| Ok(receiver.drops()?.total())).sum()
    }

    /// Whether no frame waits in a socket for its receiver.
    pub(crate) fn sockets_are_empty(&self) -> Result<bool, LabError> {
        for receiver in self.installed.iter().flat_map(|have| &have.receivers) {
            if !receiver.tap().is_drained()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// When the last laps at a port began; `None` where no program there keeps that.
    pub(crate) fn laps_at(&self, port: PortId) -> Result<Option<Laps>, LabError> {
        match self.installed_at(port) {
            Some(have) if have.receivers.is_empty() => Ok(have.program.laps_at(port.0 as u32)?),
            _ => Ok(None),
        }
    }

    /// What the program at a port counts of the lab's frames, to be read while they come; `None` where none does.
    pub(crate) fn port_counter(&self, port: PortId) -> Result<Option<PortCounter>, LabError> {
        match self.installed_at(port) {
            Some(have) => Ok(have.program.port_counter(port.0 as u32)?),
            None => Ok(None),
        }
    }

    /// Sets the counters of the program at a port to zero.
    pub(crate) fn reset_counters_at(&self, port: PortId) -> Result<(), LabError> {
        match self.installed_at(port) {
            Some(have) => {
                have.receivers.iter().filter(|receiver| receiver.port == port).for_each(Receiver::reset);
                Ok(have.program.reset_counters_at(port.0 as u32)?)
            }
            None => Ok(()),
        }
    }

    /// The devices of all ports as they are now, by slot.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn port_states(&self) -> Result<Vec<LinkInfo>, LabError> {
        let (topology, network) = (&self.topology, &self.network);
        self.thread.run(|inside| reading::port_states(inside, topology, network))
    }

    /// What is known of a port's device as it is now: some drivers take XDP frames only while programs are attached.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn knowledge(&self, port: PortId) -> Result<Knowledge, LabError> {
        let (topology, network) = (&self.topology, &self.network);
        self.thread.run(|inside| reading::knowledge(inside, topology, network, port))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.return_nics().is_err() {
            return;
        }
        if let Some(journal) = self.journal.take() {
            // Nothing of an ephemeral lab outlives its file descriptors but this file, which `gc` removes as well.
            drop(journal.finish());
        }
    }
}
