//! The built-in objects, and what of a topology's options goes into their globals and map sizes.

use xdplab_wire::flow;

use super::{LoadContext, ProgramError, object};
use crate::topology::{Builtin, Datum, DevMapKind, Fallback, FlowMap, Lookup, MapContents, ProgramBody, Touch};

/// The objects, as `ci/build-programs` builds them.
pub(super) mod objects {
    macro_rules! object {
        ($name:ident, $file:literal) => {
            pub(in crate::program) static $name: &[u8] =
                include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/objects/", $file));
        };
    }
    object!(BROADCAST, "broadcast.o");
    object!(CLONES, "clones.o");
    object!(CPUMAP, "cpumap.o");
    object!(DISPATCHER, "dispatcher.o");
    object!(EXTACK, "extack.o");
    object!(FLOW, "flow.o");
    object!(PEEK, "peek.o");
    object!(REDIRECT_MAP, "redirect_map.o");
    object!(SINK, "sink.o");
    object!(SOURCE, "source.o");
    object!(TRAITS, "traits.o");
    object!(TRAITS_BENCH, "traits_bench.o");
    object!(VERDICT, "verdict.o");
    object!(WATCH, "watch.o");
    object!(XSK, "xsk.o");
}

/// A built-in, ready to be loaded.
pub(super) struct Prepared {
    /// The object, its globals set.
    pub(super) data: Vec<u8>,
    /// The program in it.
    pub(super) program: &'static str,
    /// Map sizes.
    pub(super) max_entries: Vec<(&'static str, u32)>,
    /// The map that takes the targets.
    pub(super) targets: Option<&'static str>,
    /// The second program, where one is asked for: on a devmap's way out, or on a cpumap's CPU.
    pub(super) egress: Option<&'static str>,
    /// What else its maps are filled with.
    pub(super) filling: Filling,
}

/// What a built-in's maps are filled with beside its targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filling {
    /// Nothing.
    Nothing,
    /// So many flows, spread over so many targets, in a map whose keys are so long.
    Flows {
        /// The map.
        map: &'static str,
        /// Key length in bytes.
        key_bytes: u32,
        /// Number of flows.
        flows: u32,
        /// Number of targets, at least 1.
        targets: u32,
    },
    /// One CPU and the length of its queue.
    Cpu {
        /// The CPU.
        cpu: u32,
        /// Frames.
        queue: u32,
    },
}

/// The maps of `flow` by key length: hash, LRU hash and program.
const FLOW_MAPS: [(&str, &str, &str); flow::LENGTHS.len()] = [
    ("flows_hash_4", "flows_lru_4", "xdp_flow_4"),
    ("flows_hash_6", "flows_lru_6", "xdp_flow_6"),
    ("flows_hash_8", "flows_lru_8", "xdp_flow_8"),
    ("flows_hash_12", "flows_lru_12", "xdp_flow_12"),
    ("flows_hash_13", "flows_lru_13", "xdp_flow_13"),
    ("flows_hash_16", "flows_lru_16", "xdp_flow_16"),
    ("flows_hash_20", "flows_lru_20", "xdp_flow_20"),
    ("flows_hash_24", "flows_lru_24", "xdp_flow_24"),
    ("flows_hash_28", "flows_lru_28", "xdp_flow_28"),
    ("flows_hash_32", "flows_lru_32", "xdp_flow_32"),
    ("flows_hash_37", "flows_lru_37", "xdp_flow_37"),
    ("flows_hash_40", "flows_lru_40", "xdp_flow_40"),
    ("flows_hash_48", "flows_lru_48", "xdp_flow_48"),
    ("flows_hash_56", "flows_lru_56", "xdp_flow_56"),
    ("flows_hash_64", "flows_lru_64", "xdp_flow_64"),
];

/// Sets the globals of an object of the lab.
pub(super) fn with_globals(object: &'static [u8], globals: &[(&str, &[u8])]) -> Result<Vec<u8>, ProgramError> {
    let mut data = object.to_vec();
    for (name, value) in globals {
        object::patch(&mut data, name, value).ok_or_else(|| ProgramError::Load {
            object: "a built-in".to_owned(),
            reason: format!(
                "it has no global \"{name}\" of {} bytes: fixtures/objects and the library differ",
                value.len()
            ),
        })?;
    }
    Ok(data)
}

/// What a kind of built-in adds to what all have.
struct Draft {
    object: &'static [u8],
    program: &'static str,
    globals: Vec<(&'static str, Vec<u8>)>,
    max_entries: Vec<(&'static str, u32)>,
    targets: Option<&'static str>,
    has_second: bool,
    filling: Filling,
}

impl Draft {
    fn new(object: &'static [u8], program: &'static str) -> Self {
        Self {
            object,
            program,
            globals: Vec::new(),
            max_entries: Vec::new(),
            targets: None,
            has_second: false,
            filling: Filling::Nothing,
        }
    }
}

/// The built-in that a body asks for.
pub(super) fn prepare(builtin: Builtin, body: &ProgramBody, cx: &LoadContext<'_>) -> Result<Prepared, ProgramError> {
    let mut draft = match builtin {
        Builtin::Drop | Builtin::Pass | Builtin::Tx => verdict(builtin, body),
        // Bare, it is the least program that there is; to be accounted for, it must count.
        Builtin::Dispatcher if cx.counting => verdict(Builtin::Drop, body),
        Builtin::Dispatcher => Draft::new(objects::DISPATCHER, "xdp_dispatcher"),
        Builtin::Sink => sink(cx),
        Builtin::RedirectMap | Builtin::Broadcast => redirect(builtin, body, cx)?,
        Builtin::Cpumap => cpumap(body, cx)?,
        Builtin::Flow => flow_lookup(body, cx)?,
        Builtin::Traits => traits(body),
        Builtin::Xsk => xsk(body, cx),
    };
    if draft.object != objects::DISPATCHER {
        draft.globals.push(("INSTANCE", cx.instance.to_ne_bytes().to_vec()));
        draft.globals.push(("COUNTING", vec![u8::from(cx.counting)]));
        draft.max_entries.push(("ports", cx.slots.max(1)));
    }
    let globals: Vec<(&str, &[u8])> = draft.globals.iter().map(|(name, value)| (*name, value.as_slice())).collect();
    let egress = match body.egress.as_deref() {
        Some("drop") => Some("egress_drop"),
        Some(_) => Some("egress_pass"),
        None => None,
    };
    Ok(Prepared {
        data: with_globals(draft.object, &globals)?,
        program: draft.program,
        max_entries: draft.max_entries,
        targets: draft.targets,
        egress: egress.filter(|_| draft.has_second),
        filling: draft.filling,
    })
}

/// How many slots the targets take.
pub(crate) fn slots_of(body: &ProgramBody) -> u32 {
    match body.maps.get("tx_ports") {
        Some(MapContents::List(list)) => list.len() as u32,
        // A table may leave slots empty: the largest key counts.
        Some(MapContents::Table(table)) => {
            let key = |key: &Datum| match key {
                Datum::Integer(key) => u32::try_from(*key).ok(),
                _ => None,
            };
            table.iter().filter_map(|(k, _)| key(k)).max().map_or(0, |most| most.saturating_add(1))
        }
        None => 0,
    }
}

fn verdict(builtin: Builtin, body: &ProgramBody) -> Draft {
    let mut draft = Draft::new(
        objects::VERDICT,
        match builtin {
            Builtin::Pass => "xdp_pass",
            Builtin::Tx => "xdp_tx",
            _ => "xdp_drop",
        },
    );
    let touch = match (builtin, body.options.touch) {
        // A frame that goes back goes to whom it came from.
        (Builtin::Tx, Touch::None) | (_, Touch::SwapMacs) => 2,
        (_, Touch::Read) => 1,
        (_, Touch::None) => 0,
    };
    draft.globals.push(("TOUCH", vec![touch]));
    draft.globals.push(("EXTRA", body.options.extra.to_ne_bytes().to_vec()));
    draft
}

fn sink(cx: &LoadContext<'_>) -> Draft {
    let mut draft = Draft::new(objects::SINK, "xdp_sink");
    let flows = cx.flows.max(1);
    draft.globals.push(("FLOWS", flows.to_ne_bytes().to_vec()));
    draft.max_entries.extend([("flows", cx.slots.max(1).saturating_mul(flows)), ("laps", cx.slots.max(1))]);
    draft
}

fn redirect(builtin: Builtin, body: &ProgramBody, cx: &LoadContext<'_>) -> Result<Draft, ProgramError> {
    let targets = slots_of(body);
    let is_hash = body.options.map == DevMapKind::DevmapHash;
    let mut draft = if builtin == Builtin::RedirectMap {
        let mut draft = Draft::new(objects::REDIRECT_MAP, "xdp_redirect_map");
        draft.globals.push(("TARGETS", targets.max(1).to_ne_bytes().to_vec()));
        draft.globals.push(("EXTRA", body.options.extra.to_ne_bytes().to_vec()));
        draft
    } else {
        let mut draft = Draft::new(objects::BROADCAST, "xdp_broadcast");
        draft.globals.push(("EXCLUDE_INGRESS", vec![u8::from(body.options.exclude_ingress)]));
        draft
    };
    draft.globals.push(("HASH", vec![u8::from(is_hash)]));
    let (map, other) = if is_hash { ("tx_ports_hash", "tx_ports") } else { ("tx_ports", "tx_ports_hash") };
    let size = body.options.max_entries.unwrap_or(targets).max(1);
    if size < targets {
        return Err(ProgramError::Value {
            place: "maps.tx_ports".to_owned(),
            reason: format!("{targets} targets, and the map holds {size}: raise max-entries or leave it out"),
        });
    }
    // The loader's settings are kept from one load to the next: the other map goes back to its own size.
    draft.max_entries.extend([(map, size), (other, 1), ("egress", cx.slots.max(1))]);
    draft.targets = Some(map);
    draft.has_second = true;
    Ok(draft)
}

fn cpumap(body: &ProgramBody, cx: &LoadContext<'_>) -> Result<Draft, ProgramError> {
    let mut draft = Draft::new(objects::CPUMAP, "xdp_cpumap");
    let cpu = body.options.cpu.unwrap_or_else(spare_cpu);
    let cpus = aya::util::nr_cpus().unwrap_or(1) as u32;
    if cpu >= cpus {
        return Err(ProgramError::Value {
            place: "options.cpu".to_owned(),
            reason: format!("this host has no CPU {cpu}: it has 0 to {}", cpus - 1),
        });
    }
    draft.globals.push(("CPU", cpu.to_ne_bytes().to_vec()));
    // The map's keys are CPUs.
    draft.max_entries.extend([("egress", cx.slots.max(1)), ("cpus", cpu + 1)]);
    draft.has_second = true;
    draft.filling = Filling::Cpu { cpu, queue: body.options.queue };
    Ok(draft)
}

/// The lowest CPU that does not send: the lab's thread sends from the highest that it may use.
fn spare_cpu() -> u32 {
    let sender = crate::traffic::cpu::sender();
    let cpus = aya::util::nr_cpus().unwrap_or(1) as u32;
    (0..cpus).find(|cpu| *cpu != sender).unwrap_or(0)
}

fn flow_lookup(body: &ProgramBody, cx: &LoadContext<'_>) -> Result<Draft, ProgramError> {
    let Lookup { map, key_bytes, miss } = body.options.lookup;
    let Some(n) = flow::LENGTHS.iter().position(|length| *length == key_bytes as usize) else {
        let lengths: Vec<String> = flow::LENGTHS.iter().map(ToString::to_string).collect();
        return Err(ProgramError::Value {
            place: "key-bytes".to_owned(),
            reason: format!(
                "the built-in `flow` has no program for keys of {key_bytes} bytes: use one of {}",
                lengths.join(", ")
            ),
        });
    };
    let (hash, lru, program) = FLOW_MAPS[n];
    let targets = slots_of(body);
    let mut draft = Draft::new(objects::FLOW, program);
    // Numbers that no entry has: flows are counted from 0, and there are fewer than 2^30.
    let shift: u32 = if miss { 1 << 30 } else { 0 };
    draft.globals.extend([
        ("KIND", vec![map as u8]),
        ("REDIRECT", vec![u8::from(targets > 0)]),
        ("SHIFT", shift.to_ne_bytes().to_vec()),
    ]);
    // The loader's settings are kept from one load to the next: the maps that are not used are small again.
    draft.max_entries.extend(FLOW_MAPS.iter().flat_map(|(hash, lru, _)| [(*hash, 1), (*lru, 1)]));
    draft.max_entries.extend([("flows_array", 1), ("tx_ports", targets.max(1))]);
    let flows = cx.flows.max(1);
    let most = body.options.max_entries.unwrap_or(flows).max(flows);
    let used = match map {
        FlowMap::Hash => Some((hash, most, key_bytes)),
        // An LRU map keeps free entries on each CPU, and evicts before it is full.
        FlowMap::LruHash => Some((lru, most.saturating_mul(2).max(1024), key_bytes)),
        FlowMap::Array => Some(("flows_array", most, 4)),
        FlowMap::None => None,
    };
    if let Some((map, size, key_bytes)) = used {
        draft.max_entries.push((map, size));
        draft.filling = Filling::Flows { map, key_bytes, flows, targets: targets.max(1) };
    }
    draft.targets = Some("tx_ports").filter(|_| targets > 0);
    Ok(draft)
}

fn xsk(body: &ProgramBody, cx: &LoadContext<'_>) -> Draft {
    let mut draft = Draft::new(objects::XSK, "xdp_xsk");
    let queues = cx.queues.max(1);
    // XDP_PASS and XDP_DROP.
    let fallback: u32 = if body.options.xsk.fallback == Fallback::Pass { 2 } else { 1 };
    draft.globals.extend([("QUEUES", queues.to_ne_bytes().to_vec()), ("FALLBACK", fallback.to_ne_bytes().to_vec())]);
    let slots = cx.slots.max(1);
    draft.max_entries.extend([("unclaimed", slots), ("xsks", slots.saturating_mul(queues))]);
    draft
}

/// `traits`: so many values under keys that are spread over the 64, all of one length.
fn traits(body: &ProgramBody) -> Draft {
    let (count, length) = body.options.traits;
    let count = count.min(TRAITS_MOST);
    let mut draft = Draft::new(objects::TRAITS, "xdp_traits_set");
    let (mut keys, mut lengths, mut bits) = (vec![0; 8], vec![0; 8], Vec::new());
    for n in 0..TRAITS_MOST {
        if n < count {
            keys[n as usize] = (n * 7) as u8;
            lengths[n as usize] = length as u8;
        }
        bits.extend((0x0123_4567_89ab_cdef_u64.rotate_left(n) & (u64::MAX >> (64 - 8 * length.min(8)))).to_ne_bytes());
    }
    let targets = slots_of(body);
    draft.globals.extend([
        ("TRAITS", count.to_ne_bytes().to_vec()),
        ("TRAIT_KEYS", keys),
        ("TRAIT_LENGTHS", lengths),
        ("TRAIT_BITS", bits),
        // To the port, or to the stack.
        ("TO", vec![if targets > 0 { 2 } else { 0 }]),
    ]);
    draft.max_entries.extend([("tx_ports", targets.max(1)), ("cpus", 1)]);
    draft.targets = Some("tx_ports").filter(|_| targets > 0);
    draft
}

/// Most traits that the built-in writes.
pub(super) const TRAITS_MOST: u32 = 8;
