//! The built-in objects, and what of a topology's options goes into their globals and map sizes.

use super::{LoadContext, ProgramError, object};
use crate::topology::{Builtin, Datum, DevMapKind, Fallback, MapContents, ProgramBody, Touch};

/// The objects, as `ci/build-programs` builds them.
pub(super) mod objects {
    macro_rules! object {
        ($name:ident, $file:literal) => {
            pub(in crate::program) static $name: &[u8] =
                include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/objects/", $file));
        };
    }
    object!(BROADCAST, "broadcast.o");
    object!(EXTACK, "extack.o");
    object!(REDIRECT_MAP, "redirect_map.o");
    object!(SINK, "sink.o");
    object!(SOURCE, "source.o");
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
    /// The egress program, where one is asked for.
    pub(super) egress: Option<&'static str>,
}

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
    let queues = cx.queues.max(1).to_ne_bytes();
    // XDP_DROP and XDP_PASS.
    let fallback = if body.options.xsk.fallback == Fallback::Pass { 2u32 } else { 1 }.to_ne_bytes();
    let mut devmap = None;

    let (object, program) = match builtin {
        Builtin::Drop => (objects::VERDICT, "xdp_drop"),
        Builtin::Pass => (objects::VERDICT, "xdp_pass"),
        Builtin::Tx => (objects::VERDICT, "xdp_tx"),
        Builtin::Sink => (objects::SINK, "xdp_sink"),
        Builtin::RedirectMap => (objects::REDIRECT_MAP, "xdp_redirect_map"),
        Builtin::Broadcast => (objects::BROADCAST, "xdp_broadcast"),
        Builtin::Xsk => (objects::XSK, "xdp_xsk"),
    };
    match builtin {
        Builtin::Drop | Builtin::Pass | Builtin::Tx => globals.push(("TOUCH", &touch)),
        Builtin::Sink => {
            globals.push(("FLOWS", &flows));
            max_entries.push(("flows", slots.saturating_mul(cx.flows.max(1))));
        }
        Builtin::Xsk => {
            globals.extend([("QUEUES", queues.as_slice()), ("FALLBACK", &fallback)]);
            max_entries.extend([("unclaimed", slots), ("xsks", slots.saturating_mul(cx.queues.max(1)))]);
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
        egress: egress.filter(|_| devmap.is_some()),
    })
}
