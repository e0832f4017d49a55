//! `redirect_map` to one port: by mode, kind of map and egress program, and what a hop costs.

use std::collections::BTreeMap;

use super::{
    PathOptions, Running, median,
    rig::{PathSpec, Rig, RigSpec, builtin},
};
use crate::{
    host::lock::HostLock,
    lab::LabError,
    published,
    record::bench::{Bench, BenchReport, PathRow, RedirectFindings, Rows},
    run::Progress,
    topology::{Builtin, DevMapKind, Options},
    traffic::Stop,
    xdp::XdpMode,
};

/// Frames of a window.
const WINDOW: u64 = 6_400;
/// Rounds and windows.
const ROUNDS: (usize, usize) = (6, 6);
/// Frames by which the account is settled.
const FRAMES: u64 = 6_400;

/// Runs the benchmark; with profiles of a native redirect and of the path without it, if they are asked for.
///
/// # Errors
/// Where the ports can't be made, or a program can't be loaded or attached.
pub fn run(options: &PathOptions, stop: &Stop, progress: &dyn Progress) -> Result<BenchReport, LabError> {
    let _alone = HostLock::exclusive(&mut |holder| progress.waiting(holder))?;
    let mut running = Running::start();
    let mut rig = Rig::new(&RigSpec { name: "redirect", quick: options.quick, ..RigSpec::default() }, stop)?;
    running.made_of(&rig)?;
    let drop = || builtin(Builtin::Drop, Options::default());
    let mut names = Vec::new();
    let mut pairs = Vec::new();
    for mode in [XdpMode::Native, XdpMode::Generic] {
        for (map, name) in [(DevMapKind::Devmap, "devmap"), (DevMapKind::DevmapHash, "devmap_hash")] {
            for egress in [false, true] {
                let mut body = rig.to_outs(Builtin::RedirectMap, Options { map, ..Options::default() }, 1);
                body.egress = egress.then(|| "pass".to_owned());
                names.push(if egress { format!("{name}, egress program") } else { name.to_owned() });
                let path = PathSpec::new(body, Some(drop()), mode);
                pairs.push((path, PathSpec::new(drop(), Some(drop()), mode)));
            }
        }
    }
    progress.step("account");
    let mut balanced = 0;
    for (path, _) in &pairs {
        let ledger = rig.settle(path, FRAMES)?.ledger;
        let (_, dropped) = ledger.ends();
        balanced += usize::from(ledger.is_balanced() && ledger.lost() == 0 && dropped == FRAMES);
    }
    progress.step("price");
    let total = (pairs.len() * ROUNDS.0) as u64;
    let measured = rig.rounds_against(&pairs, ROUNDS, WINDOW, &|n| progress.frames(n as u64, total))?;
    let rows: Vec<PathRow> = pairs
        .iter()
        .zip(names)
        .zip(&measured)
        .map(|(((path, _), detail), measured)| PathRow {
            test: "redirect_map".to_owned(),
            mode: path.mode,
            queues: 1,
            detail,
            cost: measured.cost(),
            mpps: measured.cost().mpps(),
        })
        .collect();
    if options.profile {
        let (path, base) = &pairs[0];
        let paths = [
            ("drop, native".to_owned(), base.clone(), median(&measured[0].base).ns),
            ("redirect_map, native".to_owned(), path.clone(), measured[0].cost().ns),
        ];
        running.profile(&mut rig, &paths, progress)?;
    }
    let hop_ns: BTreeMap<XdpMode, _> =
        pairs.iter().zip(&measured).rev().map(|((path, _), measured)| (path.mode, median(&measured.over()))).collect();
    running.check(
        "every frame arrives behind the target",
        format!("{} paths", pairs.len()),
        format!("{balanced} paths"),
        balanced == pairs.len(),
    );
    running.note("costs are of veth to veth, a program that drops behind it, generator included");
    running.note("a hop is the path less the same frames dropped where they first arrive, measured beside each other");
    let published = published::redirect();
    Ok(running.finish(Bench::Redirect(Rows { rows, published, findings: RedirectFindings { hop_ns } })))
}
