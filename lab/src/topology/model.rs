//! The checked topology: plain data, every reference resolved, every default filled in.
//!
//! Nothing here touches a kernel. Indices ([`NodeId`], [`PortId`], …) point into the vectors of the [`Topology`]
//! that they come from, so a model is cheap to clone and can't dangle.

use std::{collections::BTreeMap, net::IpAddr, path::PathBuf, time::Duration};

use crate::{
    topology::{Mac, Spans},
    xdp::XdpMode,
};

/// Index of a node in [`Topology::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// Index of a port in [`Topology::ports`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub usize);

/// Index of a link in [`Topology::links`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub usize);

/// Index of a program in [`Topology::programs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramId(pub usize);

/// Index of a scenario in [`Topology::scenarios`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScenarioId(pub usize);

/// A topology file that passed every check.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// The lab's name, `[a-z0-9][a-z0-9_-]{0,31}`.
    pub name: String,
    /// One sentence on what the lab shows.
    pub about: String,
    /// The file, as it was given.
    pub path: PathBuf,
    /// Nodes, in the file's order.
    pub nodes: Vec<Node>,
    /// Ports of all nodes: link by link, in the order of their ends.
    pub ports: Vec<Port>,
    /// Links, in the file's order.
    pub links: Vec<Link>,
    /// Programs, in the file's order.
    pub programs: Vec<Program>,
    /// Scenarios, in the file's order.
    pub scenarios: Vec<Scenario>,
    /// Where in the file all this stands.
    pub spans: Spans,
}

/// A node: one network namespace.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The node's name, `[a-z0-9][a-z0-9_-]{0,31}`.
    pub name: String,
}

/// A node's network interface.
#[derive(Debug, Clone, PartialEq)]
pub struct Port {
    /// The node that it belongs to.
    pub node: NodeId,
    /// The interface's name in that node, 1 to 15 bytes.
    pub name: String,
    /// The link that it is an end of.
    pub link: LinkId,
    /// Its MAC address, locally administered unless the file gives one.
    pub mac: Mac,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Its addresses with prefix lengths; from the benchmarking ranges unless the file gives some.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Whether GRO is switched on (`None`: as the kernel has it, off on veth).
    pub gro: Option<bool>,
    /// Number of receive and of transmit queues.
    pub queues: u32,
    /// Ring sizes in descriptors, where the file gives them (NICs only).
    pub rings: Option<Rings>,
    /// Offloads by ethtool's name (`tx-checksum-ip-generic`, `tso`, …) and the state wanted.
    pub offloads: BTreeMap<String, bool>,
    /// CPUs that the port's interrupts are pinned to (NICs only); empty: untouched.
    pub irq_cpus: Vec<u32>,
}

/// Ring sizes in descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rings {
    /// Receive descriptors.
    pub rx: Option<u32>,
    /// Transmit descriptors.
    pub tx: Option<u32>,
}

/// What joins ports.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Veth, cable or bridge.
    pub kind: LinkKind,
    /// The ports joined: two, or for a bridge two and more.
    pub ends: Vec<PortId>,
    /// MTU in bytes that the link's ports take unless they have their own.
    pub mtu: u32,
}

/// How ports are joined.
#[derive(Debug, Clone, PartialEq)]
pub enum LinkKind {
    /// A veth pair.
    Veth,
    /// A cable between two physical ports, for which a veth pair stands in where the host has none.
    Cable(NicRequirement),
    /// A Linux bridge in a namespace of its own; a veth pair leads to each end.
    Bridge,
}

/// What a cable asks of its NICs. Requirements only; nothing that names one machine's wiring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NicRequirement {
    /// Driver name, such as `i40e`.
    pub driver: Option<String>,
    /// PCI address, such as `0000:03:00.0`.
    pub pci: Option<String>,
    /// A label of the host inventory.
    pub label: Option<String>,
    /// Least link speed in Mbit/s.
    pub speed: Option<u32>,
}

/// A program and where it is attached.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The program's name in the file.
    pub name: String,
    /// Ports that it is attached to.
    pub attach: Vec<PortId>,
    /// The mode that the file fixes for it; `None`: the scenario's, or native for `up`.
    pub mode: Option<XdpMode>,
    /// What is loaded.
    pub body: ProgramBody,
}

/// What is loaded for a program: the part that a scenario may put another in place of.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramBody {
    /// A built-in, or an object file.
    pub source: ProgramSource,
    /// Map contents by map name.
    pub maps: BTreeMap<String, MapContents>,
    /// Overrides of global data by symbol name.
    pub globals: BTreeMap<String, Datum>,
    /// The program that runs on a devmap's way out: `pass` or `drop` for a built-in, else a program of the object.
    pub egress: Option<String>,
    /// Options of the built-ins.
    pub options: Options,
}

impl ProgramBody {
    /// A built-in as it is without any setting.
    pub fn of(builtin: Builtin) -> Self {
        Self {
            source: ProgramSource::Builtin(builtin),
            maps: BTreeMap::new(),
            globals: BTreeMap::new(),
            egress: None,
            options: Options::default(),
        }
    }
}

/// Where a program's code comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramSource {
    /// A built-in.
    Builtin(Builtin),
    /// An ELF object.
    Object {
        /// The file; relative paths were resolved against the topology file's folder.
        path: PathBuf,
        /// The program in it; `None` where it has only one.
        program: Option<String>,
    },
}

/// The built-in programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Builtin {
    /// Counts and drops.
    Drop,
    /// Counts and passes to the stack.
    Pass,
    /// Counts, swaps the MACs and sends back.
    Tx,
    /// Redirects through a devmap; with several targets, by flow.
    RedirectMap,
    /// Redirects to every slot of a devmap.
    Broadcast,
    /// Checks the marker, counts and drops: the end of a path.
    Sink,
    /// Only drops; so many copies of it hold entries in the kernel's dispatcher meanwhile.
    Dispatcher,
    /// Hands frames to another CPU, whose kernel makes socket buffers of them.
    Cpumap,
    /// Looks a flow up, then redirects or drops.
    Flow,
    /// Writes traits in front of the frame, then redirects or passes.
    Traits,
    /// Redirects to `AF_XDP` sockets, one a receive queue, from which the lab takes the frames: the end of a path.
    Xsk,
}

/// Options of the built-in programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What the program does with the frame's bytes.
    pub touch: Touch,
    /// The devmap's kind.
    pub map: DevMapKind,
    /// The devmap's size; `None`: as many slots as targets.
    pub max_entries: Option<u32>,
    /// Broadcast only: `BPF_F_EXCLUDE_INGRESS`.
    pub exclude_ingress: bool,
    /// Dispatcher only: programs that are attached, itself the last of them: with more than the kernel's dispatcher holds
    /// it is called through a pointer.
    pub entries: u32,
    /// Flow only: what is looked up, and where.
    pub lookup: Lookup,
    /// Cpumap only: the CPU; `None`: the lowest that is not the sender's.
    pub cpu: Option<u32>,
    /// Cpumap only: frames that the CPU's queue holds.
    pub queue: u32,
    /// Drop, pass, tx and `redirect_map` only: steps of work that only cost time, a known slowdown.
    pub extra: u32,
    /// Traits only: how many, and how long each is, in bytes.
    pub traits: (u32, u32),
    /// Xsk only.
    pub xsk: XskOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            touch: Touch::default(),
            map: DevMapKind::default(),
            max_entries: None,
            exclude_ingress: false,
            entries: 1,
            lookup: Lookup::default(),
            cpu: None,
            queue: 2048,
            extra: 0,
            traits: (1, 4),
            xsk: XskOptions::default(),
        }
    }
}

/// A flow lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookup {
    /// The map's kind.
    pub map: FlowMap,
    /// Key length in bytes; an array has no key but an index.
    pub key_bytes: u32,
    /// Whether no lookup is to find its flow.
    pub miss: bool,
}

impl Default for Lookup {
    fn default() -> Self {
        Self { map: FlowMap::Hash, key_bytes: 16, miss: false }
    }
}

/// The kind of map that flows are looked up in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FlowMap {
    /// `BPF_MAP_TYPE_HASH`.
    Hash,
    /// `BPF_MAP_TYPE_LRU_HASH`.
    LruHash,
    /// `BPF_MAP_TYPE_ARRAY`.
    Array,
    /// None: the frame's flow is read, and nothing is looked up.
    None,
}

/// Largest frame in bytes, without FCS, that an `AF_XDP` socket's memory holds: a page less the kernel's headroom of
/// 256 bytes.
pub const XSK_FRAME_MOST: u32 = 4096 - 256;

/// Options of the built-in `xsk`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct XskOptions {
    /// Descriptors of each socket's receive ring, a power of two; `None`: 2,048.
    pub ring: Option<u32>,
    /// The queues that get a socket; `None`: all that the port has.
    pub queues: Option<Vec<u32>>,
    /// What becomes of a frame that comes by a queue without one.
    pub fallback: Fallback,
}

/// What becomes of a frame that no `AF_XDP` socket takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fallback {
    /// It is dropped.
    #[default]
    Drop,
    /// It goes to the stack.
    Pass,
}

/// What a program does with the frame's bytes before its verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Touch {
    /// Nothing.
    #[default]
    None,
    /// Reads the Ethernet header.
    Read,
    /// Swaps the two MAC addresses.
    SwapMacs,
}

/// The devmap's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DevMapKind {
    /// `BPF_MAP_TYPE_DEVMAP`.
    #[default]
    Devmap,
    /// `BPF_MAP_TYPE_DEVMAP_HASH`.
    DevmapHash,
}

/// What a map is filled with.
#[derive(Debug, Clone, PartialEq)]
pub enum MapContents {
    /// Values by position: slot 0, 1, 2, …
    List(Vec<Datum>),
    /// Values by key, in the file's order.
    Table(Vec<(Datum, Datum)>),
}

/// One value of a map or a global.
#[derive(Debug, Clone, PartialEq)]
pub enum Datum {
    /// A port: its ifindex in its node.
    Port(PortId),
    /// An integer, little-endian in as many bytes as the place has.
    Integer(i64),
    /// A truth value, one byte.
    Bool(bool),
    /// A floating-point number, 4 or 8 bytes as the place has.
    Float(f64),
    /// Bytes as they are: a hexadecimal `0x…` text, an IP address or a MAC address, in network order.
    Bytes(Vec<u8>),
    /// Several, one after the other.
    List(Vec<Datum>),
}

/// Traffic, an expectation, and perhaps a performance threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The scenario's name, unique in the file.
    pub name: String,
    /// The modes that it is run in.
    pub modes: Vec<XdpMode>,
    /// Bodies that stand in for programs of the file, attached where those are.
    pub programs: Vec<(ProgramId, ProgramBody)>,
    /// What is sent.
    pub traffic: Traffic,
    /// What must happen to it.
    pub expect: Expect,
    /// Thresholds; `None`: nothing is priced.
    pub perf: Option<Perf>,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// The port that sends.
    pub from: PortId,
    /// What sends.
    pub engine: Engine,
    /// IP version.
    pub ip: IpVersion,
    /// Number of flows (UDP source ports), taken in turn.
    pub flows: u32,
    /// From how many CPUs frames are sent at once; they share the flows.
    pub senders: u32,
    /// Frame size with the 4-byte FCS: 64 is 60 bytes in memory.
    pub frame_bytes: u32,
    /// How much is sent.
    pub amount: Amount,
}

/// What sends the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// `BPF_PROG_RUN` live frames, this many a batch (1 to 256).
    Live {
        /// Frames a batch.
        batch: u32,
    },
    /// `AF_PACKET` through pnet.
    Packet,
    /// `AF_XDP`: an `AF_XDP` socket's transmit ring.
    Xsk,
}

/// IP version of the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// How much is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// This many frames.
    Frames(u64),
    /// As many as go in this time.
    Duration(Duration),
}

/// What must happen to the frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expect {
    /// Ports at which frames arrive: each gets every frame (`broadcast`), or they share them.
    pub deliver: Vec<PortId>,
    /// Ports whose program drops every frame that arrives.
    pub drop: Vec<PortId>,
    /// Frames that may be lost, at most; 0 unless given.
    pub lost: u64,
    /// Clones that must be made, exactly; `None`: not checked.
    pub clones: Option<u64>,
    /// Whether nothing is expected behind targets of the broadcast that the kernel skips in native mode.
    pub skip_unable: bool,
}

/// Performance thresholds.
#[derive(Debug, Clone, PartialEq)]
pub struct Perf {
    /// Least rates by the driver of the receiving port; of several, the first that fits binds.
    pub min_mpps: BTreeMap<String, Vec<MinRate>>,
    /// Most nanoseconds a packet over the accepted baseline.
    pub budget_ns: Option<f64>,
    /// Most cost as a multiple of another scenario's, in the same mode and run.
    pub max_ratio: Option<MaxRatio>,
}

/// A least rate and what it is for.
#[derive(Debug, Clone, PartialEq)]
pub struct MinRate {
    /// Least rate in Mpps.
    pub mpps: f64,
    /// The link's speed in Mbit/s; `None`: any.
    pub speed: Option<u32>,
    /// A part of the CPU model's name; `None`: any.
    pub cpu: Option<String>,
}

impl MinRate {
    /// Whether it is for a port of this link speed, if it has one, on this CPU.
    pub fn fits(&self, speed: Option<u32>, cpu: &str) -> bool {
        self.speed.is_none_or(|wanted| speed == Some(wanted))
            && self.cpu.as_ref().is_none_or(|part| cpu.to_lowercase().contains(&part.to_lowercase()))
    }

    /// Whether it is for everything that another one is for.
    pub fn covers(&self, other: &Self) -> bool {
        let cpu = self.cpu.as_ref().map(|part| part.to_lowercase());
        (self.speed.is_none() || self.speed == other.speed)
            && cpu.is_none_or(|part| other.cpu.as_ref().is_some_and(|other| other.to_lowercase().contains(&part)))
    }
}

/// A bound on the cost as a multiple of another scenario's.
#[derive(Debug, Clone, PartialEq)]
pub struct MaxRatio {
    /// The other scenario.
    pub of: ScenarioId,
    /// The largest ratio allowed.
    pub value: f64,
}
