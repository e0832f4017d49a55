//! The file as it is written: every key, its type and its place, before any check.
//!
//! The JSON Schema is generated from these types, so that a doc comment here is what an editor shows.

use super::{
    model::{Builtin, DevMapKind, Fallback, FlowMap, Touch},
    read::{List, Names, RawRates, RawValue, table, words},
};
use crate::xdp::XdpMode;

/// Least MTU that a link may have, in bytes.
pub(crate) const MTU_LEAST: i64 = 68;
/// Largest MTU that a link may have, in bytes.
pub(crate) const MTU_MOST: i64 = 65_535;
/// Most queues of a port: the kernel's own bound on a veth.
pub(crate) const QUEUES_MOST: i64 = 4096;
/// Most flows of a scenario.
pub(crate) const FLOWS_MOST: i64 = 65_536;
/// Most frames a live-frames batch may have.
pub(crate) const BATCH_MOST: i64 = 256;
/// Most senders of a scenario.
pub(crate) const SENDERS_MOST: i64 = 64;
/// Least frame, in bytes with the FCS.
pub(crate) const FRAME_LEAST: i64 = 64;
/// Largest frame, in bytes with the FCS: the largest MTU, the Ethernet header and the FCS.
pub(crate) const FRAME_MOST: i64 = MTU_MOST + 14 + 4;
/// Most slots of a built-in's devmap.
pub(crate) const ENTRIES_MOST: i64 = 65_536;

/// Most copies that `dispatcher` may have attached; no kernel's dispatcher holds as many.
pub(crate) const DISPATCHER_MOST: i64 = 256;
/// Longest queue of a cpumap: the kernel's limit.
pub(crate) const QUEUE_MOST: i64 = 16_384;

/// Most steps of extra work.
pub(crate) const EXTRA_MOST: i64 = 1_000;

/// Most traits that the built-in `traits` writes.
pub(crate) const TRAITS_MOST: i64 = 8;
/// Least descriptors of a ring.
pub(crate) const RING_LEAST: i64 = 8;
/// Most descriptors of a ring: its memory is twice as many pages at most.
pub(crate) const RING_MOST: i64 = 32_768;

/// A port, written `node:port`.
pub(crate) type PortText = String;

table! {
    /// A lab of xdplab: nodes, what joins them, XDP programs, and scenarios that say what must hold.
    struct RawTopology as "Topology"("the file") needs ["name"] {
        /// The lab's name: `[a-z0-9][a-z0-9_-]{0,31}`.
        #[schemars(regex(pattern = "^[a-z0-9][a-z0-9_-]{0,31}$"))]
        name: String,
        /// One sentence on what the lab shows.
        about: String,
        /// Nodes by name: each is a network namespace.
        nodes: Names<RawNode>,
        /// What joins the nodes' ports. A port exists by being an end of a link.
        links: List<RawLink>,
        /// XDP programs by name.
        programs: Names<RawProgram>,
        /// What is sent, and what must happen to it.
        scenarios: List<RawScenario>,
    }
}

table! {
    /// A node: a network namespace.
    struct RawNode as "Node"("a node") needs [] {
        /// Settings of ports that need more than their link says, by the port's name.
        ports: Names<RawPort>,
    }
}

table! {
    /// A port's own settings.
    struct RawPort as "Port"("a port") needs [] {
        /// MTU in bytes; the link's unless given.
        #[schemars(range(min = MTU_LEAST, max = MTU_MOST))]
        mtu: i64,
        /// MAC address; a locally administered one unless given.
        mac: String,
        /// Addresses with prefix lengths, such as `192.0.2.1/24`; from the benchmarking ranges unless given.
        addresses: List<String>,
        /// Whether GRO is switched on; as the kernel has it unless given (off on veth).
        gro: bool,
        /// Number of receive and of transmit queues; 1 unless given.
        #[schemars(range(min = 1, max = QUEUES_MOST))]
        queues: i64,
        /// Ring sizes of a NIC; a veth pair that stands in for it has none.
        rings: RawRings,
        /// Offloads by ethtool's name and the state wanted, such as `tso = false`.
        offloads: Names<bool>,
        /// CPUs that a NIC's interrupts are pinned to, in turn; a veth pair that stands in for it has none.
        irq_cpus: List<i64>,
    }
}

table! {
    /// Ring sizes in descriptors.
    struct RawRings as "Rings"("ring sizes") needs [] {
        /// Receive descriptors.
        rx: i64,
        /// Transmit descriptors.
        tx: i64,
    }
}

table! {
    /// What joins ports.
    struct RawLink as "Link"("a link") needs ["kind", "ends"] {
        /// What the link is.
        kind: LinkWord,
        /// The ports joined, `node:port` each: two, or for a bridge two and more.
        ends: List<PortText>,
        /// MTU in bytes of the link's ports; 1500 unless given.
        #[schemars(range(min = MTU_LEAST, max = MTU_MOST))]
        mtu: i64,
        /// What a cable asks of its NICs: requirements only.
        nic: RawNic,
    }
}

/// What a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkWord {
    Veth,
    Cable,
    Bridge,
}

words! {
    /// `veth`: a veth pair; `cable`: two physical ports, or a veth pair where the host has none;
    /// `bridge`: a Linux bridge with a veth pair to each end.
    LinkWord as "LinkKind", "link kind": {
        "veth" => LinkWord::Veth,
        "cable" => LinkWord::Cable,
        "bridge" => LinkWord::Bridge,
    } later {}
}

table! {
    /// What a cable asks of its NICs. What is machine-specific stands in the host's inventory, not here.
    struct RawNic as "Nic"("NIC requirements") needs [] {
        /// Driver name, such as `i40e`.
        driver: String,
        /// PCI address, such as `0000:03:00.0`.
        pci: String,
        /// A label of the host's inventory.
        label: String,
        /// Least link speed in Mbit/s.
        #[schemars(range(min = 1))]
        speed: i64,
    }
}

table! {
    /// An XDP program and where it is attached.
    struct RawProgram as "Program"("a program") needs ["attach"] {
        /// A built-in program; or give `object`.
        builtin: Builtin,
        /// An ELF object file, relative to this file.
        object: String,
        /// The program in the object; needed where it has several.
        program: String,
        /// The ports that it is attached to.
        attach: List<PortText>,
        /// The mode that it is always attached in; else the scenario's, and native for `up`.
        mode: XdpMode,
        /// Map contents by the map's name. A built-in that redirects takes its targets from `tx_ports`.
        maps: Names<RawValue>,
        /// Overrides of an object's global data, by symbol name.
        globals: Names<RawValue>,
        /// The program on a devmap's way out: `pass` or `drop` for a built-in, else a program of the object.
        egress: String,
        /// Options of the built-ins.
        options: RawOptions,
    }
}

table! {
    /// What stands in for a program in one scenario, attached where that is.
    struct RawBody as "Body"("what stands in for a program") needs [] {
        /// A built-in program; or give `object`.
        builtin: Builtin,
        /// An ELF object file, relative to this file.
        object: String,
        /// The program in the object; needed where it has several.
        program: String,
        /// Map contents by the map's name. A built-in that redirects takes its targets from `tx_ports`.
        maps: Names<RawValue>,
        /// Overrides of an object's global data, by symbol name.
        globals: Names<RawValue>,
        /// The program on a devmap's way out: `pass` or `drop` for a built-in, else a program of the object.
        egress: String,
        /// Options of the built-ins.
        options: RawOptions,
    }
}

words! {
    /// A built-in program.
    Builtin as "Builtin", "built-in program": {
        "drop" => Builtin::Drop,
        "pass" => Builtin::Pass,
        "tx" => Builtin::Tx,
        "redirect_map" => Builtin::RedirectMap,
        "broadcast" => Builtin::Broadcast,
        "sink" => Builtin::Sink,
        "dispatcher" => Builtin::Dispatcher,
        "cpumap" => Builtin::Cpumap,
        "flow" => Builtin::Flow,
        "traits" => Builtin::Traits,
        "xsk" => Builtin::Xsk,
    } later {
        "source" => "leave it out: the engine `live` loads it by itself",
        "watch" => "leave it out: every run watches the tracepoints by itself",
    }
}

words! {
    /// How a program is attached: in the driver (`native`) or in the stack (`generic`).
    XdpMode as "Mode", "mode": {
        "native" => XdpMode::Native,
        "generic" => XdpMode::Generic,
    } later {
        "offload" => "use `native`; programs on the NIC itself are not supported",
    }
}

table! {
    /// Options of the built-in programs.
    struct RawOptions as "Options"("options") needs [] {
        /// What drop, pass and tx do with the frame's bytes before their verdict; nothing unless given.
        touch: Touch,
        /// The kind of devmap that `redirect_map` and `broadcast` use; `devmap` unless given.
        map: DevMapKind,
        /// The devmap's size; as many slots as targets unless given.
        #[schemars(range(min = 1, max = ENTRIES_MOST))]
        max_entries: i64,
        /// Whether broadcast leaves out the port that the frame came in by.
        exclude_ingress: bool,
        /// Whether broadcast may have one target only, with which it never clones.
        single_target: bool,
        /// How many programs are attached when `dispatcher` is, itself the last: with more than the kernel's dispatcher
        /// holds it is called through a pointer. 1 unless given.
        #[schemars(range(min = 1, max = DISPATCHER_MOST))]
        entries: i64,
        /// The kind of map that `flow` looks up in; `hash` unless given.
        lookup: FlowMap,
        /// Key length of `flow` in bytes; 16 unless given.
        key_bytes: i64,
        /// Whether the lookups of `flow` find nothing.
        miss: bool,
        /// The CPU that `cpumap` hands frames to; the lowest that does not send unless given.
        #[schemars(range(min = 0))]
        cpu: i64,
        /// Frames that `cpumap` may have waiting; 2048 unless given.
        #[schemars(range(min = 1, max = QUEUE_MOST))]
        queue: i64,
        /// Steps of work that only cost time, which drop, pass, tx and `redirect_map` spend on each frame: a known
        /// slowdown, by which a comparison shows that it finds one. 0 unless given.
        #[schemars(range(min = 0, max = EXTRA_MOST))]
        extra: i64,
        /// How many traits `traits` writes; 1 unless given.
        #[schemars(range(min = 1, max = TRAITS_MOST))]
        traits: i64,
        /// Length of each trait in bytes: 2, 4 or 8; 4 unless given.
        #[schemars(extend("enum" = [2, 4, 8]))]
        trait_bytes: i64,
        /// Descriptors of each socket's receive ring of `xsk`, a power of two; 2048 unless given.
        #[schemars(range(min = RING_LEAST, max = RING_MOST))]
        ring: i64,
        /// The receive queues that get a socket of `xsk`; all of the port's unless given.
        queues: List<i64>,
        /// What `xsk` does with a frame that comes by a queue without a socket: `drop` unless given.
        fallback: Fallback,
    }
}

words! {
    /// The kind of map that flows are looked up in.
    FlowMap as "FlowMap", "map kind": {
        "hash" => FlowMap::Hash,
        "lru_hash" => FlowMap::LruHash,
        "array" => FlowMap::Array,
        "none" => FlowMap::None,
    } later {}
}

words! {
    /// What a program does with the frame's bytes.
    Touch as "Touch", "touch level": {
        "none" => Touch::None,
        "read" => Touch::Read,
        "swap-macs" => Touch::SwapMacs,
    } later {}
}

words! {
    /// What becomes of a frame that no socket takes.
    Fallback as "Fallback", "fallback": {
        "drop" => Fallback::Drop,
        "pass" => Fallback::Pass,
    } later {}
}

words! {
    /// The devmap's kind.
    DevMapKind as "DevMapKind", "map kind": {
        "devmap" => DevMapKind::Devmap,
        "devmap_hash" => DevMapKind::DevmapHash,
    } later {}
}

table! {
    /// Traffic, an expectation, and perhaps a performance threshold.
    struct RawScenario as "Scenario"("a scenario") needs ["name", "traffic", "expect"] {
        /// The scenario's name, unique in the file.
        name: String,
        /// The modes that it is run in; `native` unless given.
        modes: List<XdpMode>,
        /// What stands in for programs of the file, by their names.
        programs: Names<RawBody>,
        /// What is sent.
        traffic: RawTraffic,
        /// What must happen to it.
        expect: RawExpect,
        /// Thresholds. Without it nothing is priced.
        perf: RawPerf,
    }
}

table! {
    /// What is sent.
    struct RawTraffic as "Traffic"("traffic") needs ["from"] {
        /// The port that sends, `node:port`.
        from: PortText,
        /// What sends; `live` unless given.
        engine: EngineWord,
        /// IP version, 4 or 6; 4 unless given.
        #[schemars(extend("enum" = [4, 6]))]
        ip: i64,
        /// Number of flows, taken in turn; 1 unless given.
        #[schemars(range(min = 1, max = FLOWS_MOST))]
        flows: i64,
        /// Frame size with the 4-byte FCS: 64 is 60 bytes in memory. The smallest that fits unless given.
        #[schemars(range(min = FRAME_LEAST, max = FRAME_MOST))]
        frame_bytes: i64,
        /// How many frames; or give `duration`.
        #[schemars(range(min = 1))]
        frames: i64,
        /// How long, such as `2s` or `500ms`; or give `frames`.
        duration: String,
        /// Frames a batch of the engine `live`; 64 unless given.
        #[schemars(range(min = 1, max = BATCH_MOST))]
        batch: i64,
        /// From how many CPUs the engine `live` sends at once; 1 unless given. They share the flows.
        #[schemars(range(min = 1, max = SENDERS_MOST))]
        senders: i64,
    }
}

/// What sends frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineWord {
    Live,
    Packet,
    Xsk,
}

words! {
    /// `live`: the rate engine (live frames of BPF_PROG_RUN); `packet`: single frames through AF_PACKET;
    /// `xsk`: an AF_XDP socket's transmit ring.
    EngineWord as "Engine", "engine": {
        "live" => EngineWord::Live,
        "packet" => EngineWord::Packet,
        "xsk" => EngineWord::Xsk,
    } later {
        "pktgen" => "use `live`",
    }
}

table! {
    /// What must happen to the frames.
    struct RawExpect as "Expect"("expectations") needs [] {
        /// Ports at which the frames arrive.
        deliver: List<PortText>,
        /// Ports whose program drops every frame that arrives.
        drop: List<PortText>,
        /// Frames that may be lost, at most; 0 unless given. Above 0, frames are sent whether an `xsk` keeps up or not.
        #[schemars(range(min = 0))]
        lost: i64,
        /// Clones that must be made in all, exactly; not checked unless given.
        #[schemars(range(min = 0))]
        clones: i64,
        /// Whether, in native mode, nothing is expected behind a target of the broadcast that takes no XDP frames then
        /// (no `ndo_xdp_xmit`), as the device says when the scenario runs: the kernel skips such a target. `clones` counts
        /// all targets, and is lowered by the same share. `false` unless given.
        skip_unable: bool,
    }
}

table! {
    /// Performance thresholds.
    struct RawPerf as "Perf"("thresholds") needs [] {
        /// Least rate in million packets a second, by the receiving port's driver.
        min_mpps: Names<RawRates>,
        /// Most nanoseconds a packet over the accepted baseline, whose programs are run again beside these.
        budget_ns: f64,
        /// Most cost as a multiple of another scenario's, in the same mode and run.
        max_ratio: RawRatio,
    }
}

table! {
    /// A least rate and what it is for.
    struct RawRate as "Rate"("a rate") needs ["mpps"] {
        /// Least rate in million packets a second.
        mpps: f64,
        /// The link's speed in Mbit/s that it is for; any unless given.
        #[schemars(range(min = 1))]
        speed: i64,
        /// A part of the name of the CPU model that it is for, as /proc/cpuinfo has it; any unless given.
        cpu: String,
    }
}

table! {
    /// A bound on the cost as a multiple of another scenario's.
    struct RawRatio as "Ratio"("a ratio") needs ["of", "value"] {
        /// The other scenario's name.
        of: String,
        /// The largest ratio allowed.
        value: f64,
    }
}
