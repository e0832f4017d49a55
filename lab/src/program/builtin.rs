//! The built-in objects, and what of a topology's options goes into their globals and map sizes.

use xdplab_wire::flow;

use super::{LoadContext, ProgramError, object};
use crate::topology::{Builtin, Datum, DevMapKind, FlowMap, MapContents, ProgramBody, Touch};

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
    object!(VERDICT, "verdict.o");
    object!(WATCH, "watch.o");
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

/// The lowest CPU that does not send: the lab's thread sends from the highest that it may use.
fn spare_cpu() -> u32 {
    let sender = crate::traffic::cpu::sender();
    let cpus = aya::util::nr_cpus().unwrap_or(1) as u32;
    (0..cpus).find(|cpu| *cpu != sender).unwrap_or(0)
}

/// The built-in that a body asks for.
pub(super) fn prepare(builtin: Builtin, body: &ProgramBody, cx: &LoadContext<'_>) -> Result<Prepared, ProgramError> {
    let instance = cx.instance.to_ne_bytes();
    let counting = [u8::from(cx.counting)];
    let mut globals: Vec<(&str, &[u8])> = vec![("INSTANCE", &instance), ("COUNTING", &counting)];
    let slots = cx.slots.max(1);
    let mut max_entries = vec![("ports", slots)];

    let touch = [match (builtin, body.options.touch) {
        // A frame that goes back goes to whom it came from.
        (Builtin::Tx, Touch::None) | (_, Touch::SwapMacs) => 2,
        (_, Touch::Read) => 1,
        (_, Touch::None) => 0,
    }];
    let targets = match body.maps.get("tx_ports") {
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
    };
    let targets_bytes = targets.max(1).to_ne_bytes();
    let hash = [u8::from(body.options.map == DevMapKind::DevmapHash)];
    let exclude = [u8::from(body.options.exclude_ingress)];
    let flows = cx.flows.max(1).to_ne_bytes();
    let mut devmap = None;

    let lookup = body.options.lookup;
    let length = flow::LENGTHS.iter().position(|length| *length == lookup.key_bytes as usize);
    let (flow_hash, flow_lru, flow_program) = match length {
        Some(n) => FLOW_MAPS[n],
        None if builtin == Builtin::Flow => {
            let lengths: Vec<String> = flow::LENGTHS.iter().map(ToString::to_string).collect();
            return Err(ProgramError::Value {
                place: "key-bytes".to_owned(),
                reason: format!(
                    "the built-in `flow` has no program for keys of {} bytes: use one of {}",
                    lookup.key_bytes,
                    lengths.join(", ")
                ),
            });
        }
        None => FLOW_MAPS[0],
    };
    let (kind, redirecting) = ([lookup.map as u8], [u8::from(targets > 0)]);
    // Numbers that no entry has: flows are counted from 0, and there are fewer than 2^30.
    let shift = if lookup.miss { 1u32 << 30 } else { 0 }.to_ne_bytes();
    let mut filling = Filling::Nothing;

    let (object, program) = match builtin {
        Builtin::Drop => (objects::VERDICT, "xdp_drop"),
        Builtin::Pass => (objects::VERDICT, "xdp_pass"),
        Builtin::Tx => (objects::VERDICT, "xdp_tx"),
        Builtin::Sink => (objects::SINK, "xdp_sink"),
        Builtin::RedirectMap => (objects::REDIRECT_MAP, "xdp_redirect_map"),
        Builtin::Broadcast => (objects::BROADCAST, "xdp_broadcast"),
        // Bare, it is the least program that there is; to be accounted for, it must count.
        Builtin::Dispatcher if cx.counting => (objects::VERDICT, "xdp_drop"),
        Builtin::Dispatcher => (objects::DISPATCHER, "xdp_dispatcher"),
        Builtin::Cpumap => (objects::CPUMAP, "xdp_cpumap"),
        Builtin::Flow => (objects::FLOW, flow_program),
        Builtin::Traits => {
            return Err(ProgramError::Load { object: "traits".to_owned(), reason: "not there".to_owned() });
        }
    };
    match builtin {
        Builtin::Drop | Builtin::Pass | Builtin::Tx => globals.push(("TOUCH", &touch)),
        Builtin::Dispatcher if cx.counting => globals.push(("TOUCH", &touch)),
        Builtin::Dispatcher => {
            globals.clear();
            max_entries.clear();
        }
        Builtin::Cpumap => {
            let cpu = body.options.cpu.unwrap_or_else(spare_cpu);
            max_entries.push(("egress", slots));
            filling = Filling::Cpu { cpu, queue: body.options.queue };
        }
        Builtin::Flow => {
            globals.extend([("KIND", &kind[..]), ("REDIRECT", &redirecting), ("SHIFT", &shift)]);
            // The loader's settings are kept from one load to the next: the maps that are not used are small again.
            max_entries.extend(FLOW_MAPS.iter().flat_map(|(hash, lru, _)| [(*hash, 1), (*lru, 1)]));
            max_entries.extend([("flows_array", 1), ("tx_ports", targets.max(1))]);
            let most = body.options.max_entries.unwrap_or(cx.flows).max(cx.flows);
            let map = match lookup.map {
                FlowMap::Hash => Some((flow_hash, most, lookup.key_bytes)),
                // An LRU map keeps free entries on each CPU, and evicts before it is full.
                FlowMap::LruHash => Some((flow_lru, most.saturating_mul(2).max(1024), lookup.key_bytes)),
                FlowMap::Array => Some(("flows_array", most, 4)),
                FlowMap::None => None,
            };
            if let Some((map, size, key_bytes)) = map {
                max_entries.push((map, size));
                filling = Filling::Flows { map, key_bytes, flows: cx.flows.max(1), targets: targets.max(1) };
            }
            devmap = Some("tx_ports").filter(|_| targets > 0);
        }
        Builtin::Traits => {
            devmap = Some("tx_ports").filter(|_| targets > 0);
        }
        Builtin::Sink => {
            globals.push(("FLOWS", &flows));
            max_entries.push(("flows", slots.saturating_mul(cx.flows.max(1))));
        }
        Builtin::RedirectMap | Builtin::Broadcast => {
            globals.push(("HASH", &hash));
            if builtin == Builtin::RedirectMap {
                globals.push(("TARGETS", &targets_bytes));
            } else {
                globals.push(("EXCLUDE_INGRESS", &exclude));
            }
            let map = if hash[0] == 0 { "tx_ports" } else { "tx_ports_hash" };
            let size = body.options.max_entries.unwrap_or(targets).max(1);
            if size < targets {
                return Err(ProgramError::Value {
                    place: "maps.tx_ports".to_owned(),
                    reason: format!("{targets} targets, and the map holds {size}: raise max-entries or leave it out"),
                });
            }
            // The loader's settings are kept from one load to the next: the other map goes back to its own size.
            let other = if hash[0] == 0 { "tx_ports_hash" } else { "tx_ports" };
            max_entries.extend([(map, size), (other, 1), ("egress", slots)]);
            devmap = Some(map);
        }
    }
    let egress = match body.egress.as_deref() {
        Some("drop") => Some("egress_drop"),
        Some(_) => Some("egress_pass"),
        None => None,
    };
    Ok(Prepared {
        data: with_globals(object, &globals)?,
        program,
        max_entries,
        targets: devmap,
        egress: egress.filter(|_| devmap.is_some() || builtin == Builtin::Cpumap),
        filling,
    })
}
