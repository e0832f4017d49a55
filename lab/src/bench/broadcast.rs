//! `redirect_map` and broadcast to one to eight ports: every copy accounted for, every clone counted, each further clone
//! priced.
//!
//! The matrix: which program, how many targets, which mode, which kind of map, with or without an egress program, and
//! what runs behind the targets. Ports are made once; programs are swapped under them by link updates. First every cell
//! is settled with programs that count, then all are priced with bare ones, forwards and backwards.

use std::collections::BTreeMap;

use super::{
    Running, median,
    rig::{PathSpec, Rig, RigSpec, builtin, less, over},
};
use crate::{
    host::lock::HostLock,
    lab::LabError,
    program::clones::{BY_CALLS, BY_PAGES, CloneCounter},
    published,
    record::bench::{
        Bench, BenchReport, BroadcastFindings, CloneCost, MatrixRow, Nanoseconds, Rows, SizeRow, SkippedRow,
    },
    run::Progress,
    topology::{Builtin, DevMapKind, Options, ProgramBody},
    traffic::{Stop, cpu},
    xdp::XdpMode,
};

/// What a caller may choose.
#[derive(Debug, Clone)]
pub struct BroadcastOptions {
    /// Most targets, 2 to [`MOST_TARGETS`].
    pub targets: u32,
    /// Only these inner programs; all of them where empty.
    pub inner: Vec<Inner>,
    /// The size of the maps; `None`: as many slots as targets.
    pub max_entries: Option<u32>,
    /// Whether fewer rounds and windows will do.
    pub quick: bool,
    /// Whether a redirect to one target and a broadcast to two are profiled.
    pub profile: bool,
}

impl Default for BroadcastOptions {
    fn default() -> Self {
        Self { targets: MOST_TARGETS, inner: Vec::new(), max_entries: None, quick: false, profile: false }
    }
}

/// Most targets of the matrix.
pub const MOST_TARGETS: u32 = 8;

/// What runs at the ports behind the targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Inner {
    /// No program: the port polls by GRO, and its stack takes the frame.
    Nothing,
    /// A program that passes the frame to the stack.
    Pass,
    /// A program that drops it.
    Drop,
}

impl Inner {
    /// All of them, in the order of the matrix.
    pub const ALL: [Self; 3] = [Self::Nothing, Self::Pass, Self::Drop];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Pass => "pass",
            Self::Drop => "drop",
        }
    }

    fn body(self) -> Option<ProgramBody> {
        let which = match self {
            Self::Nothing => return None,
            Self::Pass => Builtin::Pass,
            Self::Drop => Builtin::Drop,
        };
        Some(builtin(which, Options::default()))
    }
}

/// Frames of a cell's correctness phase, a multiple of every number of targets.
const FRAMES: u64 = 840;
/// Frames of a window.
const WINDOW: u64 = 3_200;
/// Rounds over the cells, forwards and backwards, and windows of a cell in each.
const ROUNDS: (usize, usize) = (2, 5);
/// The same for the few paths that everything is held against.
const BASE_ROUNDS: (usize, usize) = (6, 8);
/// Sizes of maps that a broadcast to one target walks.
const SIZES: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// A cell before it is measured.
#[derive(Debug, Clone)]
struct Cell {
    test: &'static str,
    mode: XdpMode,
    map: DevMapKind,
    targets: u32,
    egress: bool,
    inner: Inner,
    path: PathSpec,
    max_entries: u32,
}

/// Runs the benchmark.
///
/// # Errors
/// Where the ports can't be made, or a program can't be loaded or attached.
pub fn run(options: &BroadcastOptions, stop: &Stop, progress: &dyn Progress) -> Result<BenchReport, LabError> {
    let _alone = HostLock::exclusive(&mut |holder| progress.waiting(holder))?;
    let mut running = Running::start();
    let wanted: Vec<Inner> =
        Inner::ALL.into_iter().filter(|inner| options.inner.is_empty() || options.inner.contains(inner)).collect();
    let mut rows = Vec::new();
    let mut clone_ns = Vec::new();
    let mut methods = Methods::default();
    // With programs behind the targets, and without: the same ports can't be both.
    for with_program in [true, false] {
        let inner: Vec<Inner> = wanted.iter().copied().filter(|i| (*i != Inner::Nothing) == with_program).collect();
        if inner.is_empty() || stop.is_asked() {
            continue;
        }
        progress.step("ports");
        let (targets, quick) = (options.targets, options.quick);
        let spec = RigSpec { name: "broadcast", targets, inner: with_program, quick, ..RigSpec::default() };
        let mut rig = Rig::new(&spec, stop)?;
        running.made_of(&rig)?;
        for inner in inner {
            for mode in [XdpMode::Native, XdpMode::Generic] {
                progress.step(&format!("{mode}, {} behind the targets", inner.name()));
                let cells = cells(&rig, options, mode, inner);
                let measured = matrix(&mut rig, &cells, &mut methods, stop, progress)?;
                rows.extend(measured.iter().map(|(row, _)| row.clone()));
                steps(&cells, &measured, &mut clone_ns);
            }
        }
    }
    progress.step("hops and map sizes");
    let base = base(options.quick, stop, progress)?;
    progress.step("targets that take nothing");
    let skipped = skipped(stop)?;
    for cost in &mut clone_ns {
        let none = Nanoseconds { ns: 0.0, ci: [0.0, 0.0] };
        let hop = base.hop_ns.get(&cost.mode).copied().unwrap_or(none);
        let slot = base.slot_ns.get("devmap").copied().unwrap_or(none);
        cost.clone_ns = less(less(cost.step_ns, hop), slot);
    }
    if options.profile {
        profile(&mut running, &rows, stop, progress)?;
    }
    let findings = BroadcastFindings {
        clone_methods: methods.sentences(),
        hop_ns: base.hop_ns,
        slot_ns: base.slot_ns,
        clone_ns,
        sizes: base.sizes,
        skipped,
    };
    check(&mut running, &rows, &methods, &findings);
    running.note("every path is veth to veth; the published rows were measured on i40e and mlx4, which nothing here stands in for but the code path");
    running.note("a clone is the step from k to k+1 targets, less a hop (redirect and drop over drop) and a map slot");
    Ok(running.finish(Bench::Broadcast(Rows { rows, published: published::redirect(), findings })))
}

/// Profiles a redirect to one target and a broadcast to two, native, with a program that drops behind them.
fn profile(running: &mut Running, rows: &[MatrixRow], stop: &Stop, progress: &dyn Progress) -> Result<(), LabError> {
    let mut rig = Rig::new(&RigSpec { name: "broadcast", targets: 2, ..RigSpec::default() }, stop)?;
    let path = |which: Builtin, targets: u32, name: &str| {
        let row = rows.iter().find(|row| {
            let is = row.test == name && row.targets == targets && row.mode == XdpMode::Native && row.inner == "drop";
            is && row.map == "devmap" && row.egress == "none"
        });
        let spec = PathSpec::new(rig.to_outs(which, Options::default(), targets), Inner::Drop.body(), XdpMode::Native);
        (format!("{name} to {targets}, native"), spec, row.map_or(f64::NAN, |row| row.cost.ns))
    };
    let paths = [path(Builtin::RedirectMap, 1, "redirect_map"), path(Builtin::Broadcast, 2, "broadcast")];
    running.profile(&mut rig, &paths, progress)
}

/// All cells of one mode and inner program.
fn cells(rig: &Rig, options: &BroadcastOptions, mode: XdpMode, inner: Inner) -> Vec<Cell> {
    let mut cells = Vec::new();
    for map in [DevMapKind::Devmap, DevMapKind::DevmapHash] {
        for egress in [false, true] {
            for (test, which, exclude_ingress) in [
                ("redirect_map", Builtin::RedirectMap, false),
                ("broadcast", Builtin::Broadcast, false),
                ("broadcast, ingress excluded", Builtin::Broadcast, true),
            ] {
                for targets in 1..=options.targets {
                    let max_entries = options.max_entries.unwrap_or(targets);
                    let opts = Options { map, exclude_ingress, max_entries: Some(max_entries), ..Options::default() };
                    let mut outer = rig.to_outs(which, opts, targets);
                    outer.egress = egress.then(|| "pass".to_owned());
                    let mut path = PathSpec::new(outer, inner.body(), mode);
                    // Several targets of a redirect_map share the flows.
                    path.flows = if which == Builtin::RedirectMap { targets } else { 1 };
                    cells.push(Cell { test, mode, map, targets, egress, inner, path, max_entries });
                }
            }
        }
    }
    cells
}

/// Settles and prices the cells.
fn matrix(
    rig: &mut Rig,
    cells: &[Cell],
    methods: &mut Methods,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Vec<(MatrixRow, Vec<f64>)>, LabError> {
    let counter = CloneCounter::start(cpu::sender())?;
    let total = cells.len() * (1 + ROUNDS.0);
    let mut rows = Vec::new();
    for (n, cell) in cells.iter().enumerate() {
        if stop.is_asked() {
            break;
        }
        progress.frames(n as u64, total as u64);
        rows.push(settle(rig, cell, &counter, methods)?);
    }
    drop(counter);
    let paths: Vec<PathSpec> = cells.iter().map(|cell| cell.path.clone()).collect();
    let heard = |n: usize| progress.frames((cells.len() + n) as u64, total as u64);
    let windows = rig.rounds(&paths, ROUNDS, WINDOW, &heard)?;
    Ok(rows
        .into_iter()
        .zip(windows)
        .map(|(mut row, windows)| {
            row.cost = median(&windows);
            row.mpps = row.cost.mpps();
            (row, windows)
        })
        .collect())
}

/// Sends a cell's frames with programs that count.
fn settle(rig: &mut Rig, cell: &Cell, counter: &CloneCounter, methods: &mut Methods) -> Result<MatrixRow, LabError> {
    let before = counter.counts()?;
    let settled = rig.settle(&cell.path, FRAMES)?;
    let mut clones = BTreeMap::from([(COPIES.to_owned(), settled.clones)]);
    // Generic mode clones socket buffers, not frames: no page, and another function.
    if cell.mode == XdpMode::Native {
        for (method, after) in counter.counts()? {
            clones.insert(method.to_owned(), after - before.get(method).copied().unwrap_or(0));
        }
    }
    let ledger = &settled.ledger;
    // A program that drops at `sink:in0` ends a frame there as well as a delivery does.
    let arrived = |n: u32| {
        let port = format!("sink:in{n}");
        let dropped = ledger.dropped.iter().filter(|d| d.by_verdict && d.at == port).map(|d| d.frames).sum::<u64>();
        ledger.delivered.get(&port).copied().unwrap_or(0) + dropped
    };
    let row = MatrixRow {
        test: cell.test.to_owned(),
        mode: cell.mode,
        map: match cell.map {
            DevMapKind::Devmap => "devmap",
            DevMapKind::DevmapHash => "devmap_hash",
        }
        .to_owned(),
        max_entries: cell.max_entries,
        targets: cell.targets,
        egress: if cell.egress { "pass" } else { "none" }.to_owned(),
        inner: cell.inner.name().to_owned(),
        clones_at_all: cell.test != "redirect_map" && cell.targets > 1,
        offered: ledger.offered,
        delivered: (0..cell.targets).map(arrived).collect(),
        clones,
        unaccounted: ledger.unaccounted,
        cost: Nanoseconds { ns: 0.0, ci: [0.0, 0.0] },
        mpps: 0.0,
    };
    methods.see(&row, ledger.lost());
    Ok(row)
}

/// The name of the way of counting by the copies that were sent.
const COPIES: &str = "copies sent";

impl MatrixRow {
    /// Copies that each target must get.
    fn expected_copies(&self) -> u64 {
        if self.test == "redirect_map" { self.offered / u64::from(self.targets) } else { self.offered }
    }

    /// Clones that must be made.
    fn expected_clones(&self) -> u64 {
        if self.test == "redirect_map" { 0 } else { self.offered * u64::from(self.targets - 1) }
    }
}

/// What was wrong with the cells, and how the ways of counting agree.
#[derive(Debug, Default)]
struct Methods {
    native: u64,
    frames: u64,
    by_method: BTreeMap<String, (u64, u64)>,
    wrong_copies: Vec<String>,
    wrong_clones: Vec<String>,
    unaccounted: Vec<String>,
    lost: u64,
    cells: u64,
}

impl Methods {
    fn see(&mut self, row: &MatrixRow, lost: u64) {
        let cell = || {
            format!(
                "{} to {} ({}, {}, egress {}, inner {})",
                row.test, row.targets, row.mode, row.map, row.egress, row.inner
            )
        };
        self.cells += 1;
        self.lost += lost;
        self.frames += row.offered;
        self.native += u64::from(row.mode == XdpMode::Native);
        if row.delivered.iter().any(|copies| *copies != row.expected_copies()) {
            self.wrong_copies.push(format!("{}: {:?} of {}", cell(), row.delivered, row.expected_copies()));
        }
        if row.unaccounted != 0 {
            self.unaccounted.push(format!("{}: {}", cell(), row.unaccounted));
        }
        for (method, clones) in &row.clones {
            let (right, all) = self.by_method.entry(method.clone()).or_default();
            *all += 1;
            if *clones == row.expected_clones() {
                *right += 1;
            } else {
                self.wrong_clones.push(format!("{}: {clones} by {method}, not {}", cell(), row.expected_clones()));
            }
        }
    }

    fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> = self
            .by_method
            .iter()
            .map(|(method, (right, all))| format!("clones by {method}: as expected in {right} of {all} cells"))
            .collect();
        if !self.by_method.contains_key(BY_CALLS) {
            sentences.push(format!(
                "this kernel lets no program hook xdpf_clone: native clones are counted by {BY_PAGES} and by {COPIES}"
            ));
        }
        sentences.push(format!("generic clones are counted by {COPIES}: socket buffers share their pages"));
        sentences
    }
}

/// The steps from k to k + 1 targets, for the plain broadcast in an array without an egress program.
fn steps(cells: &[Cell], measured: &[(MatrixRow, Vec<f64>)], costs: &mut Vec<CloneCost>) {
    let plain: Vec<(&MatrixRow, &Vec<f64>)> = cells
        .iter()
        .zip(measured)
        .filter(|(cell, _)| cell.test == "broadcast" && cell.map == DevMapKind::Devmap && !cell.egress)
        .map(|(_, (row, windows))| (row, windows))
        .collect();
    for pair in plain.windows(2) {
        let [(from, a), (_, b)] = pair else { continue };
        let step_ns = over(b, a);
        costs.push(CloneCost {
            mode: from.mode,
            inner: from.inner.clone(),
            from: from.targets,
            step_ns,
            clone_ns: step_ns,
        });
    }
}

/// What the matrix is held against.
struct Base {
    hop_ns: BTreeMap<XdpMode, Nanoseconds>,
    slot_ns: BTreeMap<String, Nanoseconds>,
    sizes: Vec<SizeRow>,
}

fn base(quick: bool, stop: &Stop, progress: &dyn Progress) -> Result<Base, LabError> {
    let mut rig = Rig::new(&RigSpec { name: "hops", quick, ..RigSpec::default() }, stop)?;
    let drop = || Some(builtin(Builtin::Drop, Options::default()));
    let mut hop_ns = BTreeMap::new();
    for mode in [XdpMode::Native, XdpMode::Generic] {
        let direct = PathSpec::new(builtin(Builtin::Drop, Options::default()), drop(), mode);
        let redirect = PathSpec::new(rig.to_outs(Builtin::RedirectMap, Options::default(), 1), drop(), mode);
        let windows = rig.rounds(&[direct, redirect], BASE_ROUNDS, WINDOW, &|_| ())?;
        hop_ns.insert(mode, over(&windows[1], &windows[0]));
    }
    let mut slot_ns = BTreeMap::new();
    let mut sizes = Vec::new();
    for (map, name) in [(DevMapKind::Devmap, "devmap"), (DevMapKind::DevmapHash, "devmap_hash")] {
        let redirect = rig.to_outs(Builtin::RedirectMap, Options { map, ..Options::default() }, 1);
        let mut paths = vec![PathSpec::new(redirect, drop(), XdpMode::Native)];
        for size in SIZES {
            let options = Options { map, max_entries: Some(size), ..Options::default() };
            let body = rig.to_outs(Builtin::Broadcast, options, 1);
            paths.push(PathSpec::new(body, drop(), XdpMode::Native));
        }
        let heard = |n: usize| progress.frames(n as u64, (4 * (SIZES.len() + 1)) as u64);
        let windows = rig.rounds(&paths, (4, 5), WINDOW, &heard)?;
        for (size, of_size) in SIZES.into_iter().zip(&windows[1..]) {
            sizes.push(SizeRow {
                map: name.to_owned(),
                max_entries: size,
                cost: median(of_size),
                over_redirect_ns: over(of_size, &windows[0]),
            });
        }
        // From the smallest map to the largest, by slot: single steps are smaller than the noise.
        let slots = f64::from(SIZES[SIZES.len() - 1] - SIZES[0]);
        let walk = over(&windows[SIZES.len()], &windows[1]);
        let [low, high] = walk.ci.map(|end| end / slots);
        slot_ns.insert(name.to_owned(), Nanoseconds { ns: walk.ns / slots, ci: [low, high] });
    }
    Ok(Base { hop_ns, slot_ns, sizes })
}

/// Broadcasts to three targets of which one can't take the frame.
fn skipped(stop: &Stop) -> Result<Vec<SkippedRow>, LabError> {
    let spec = RigSpec { name: "skipped", targets: 3, deaf: true, ..RigSpec::default() };
    let mut rig = Rig::new(&spec, stop)?;
    let mut rows = Vec::new();
    for mode in [XdpMode::Native, XdpMode::Generic] {
        for target in ["down", "MTU too small", "nothing polls behind it", "the port that the frame came by, excluded"]
        {
            let exclude_ingress = target.starts_with("the port");
            let mut outer = rig.to_outs(Builtin::Broadcast, Options { exclude_ingress, ..Options::default() }, 3);
            let names: Vec<&str> = match target {
                "nothing polls behind it" => vec!["dut:out0", "dut:deaf", "dut:out2"],
                _ if exclude_ingress => vec!["dut:out0", "dut:rx0", "dut:out2"],
                _ => vec!["dut:out0", "dut:out1", "dut:out2"],
            };
            let ports = names.iter().map(|name| crate::topology::Datum::Port(rig.port(name))).collect();
            outer.maps.insert("tx_ports".to_owned(), crate::topology::MapContents::List(ports));
            let mut path = PathSpec::new(outer, Some(builtin(Builtin::Drop, Options::default())), mode);
            path.frame_bytes = 128;
            let out1 = rig.port("dut:out1");
            match target {
                "down" => rig.lab().set_port_up(out1, false)?,
                "MTU too small" => rig.lab().set_port_mtu(out1, 80)?,
                _ => {}
            }
            let settled = rig.settle(&path, FRAMES);
            match target {
                "down" => rig.lab().set_port_up(out1, true)?,
                "MTU too small" => rig.lab().set_port_mtu(out1, 1500)?,
                _ => {}
            }
            let settled = settled?;
            rows.push(SkippedRow { target: target.to_owned(), mode, ledger: settled.ledger, clones: settled.clones });
        }
    }
    Ok(rows)
}

fn check(running: &mut Running, rows: &[MatrixRow], methods: &Methods, findings: &BroadcastFindings) {
    let few = |wrong: &[String]| match wrong {
        [] => "all".to_owned(),
        [first, ..] => format!("all but {}: {first}", wrong.len()),
    };
    let cells = rows.len();
    running.check(
        "every target gets its copies",
        format!("{cells} cells"),
        few(&methods.wrong_copies),
        methods.wrong_copies.is_empty() && cells > 0,
    );
    running.check(
        "one clone fewer than targets a frame",
        format!("{cells} cells, by every way of counting"),
        few(&methods.wrong_clones),
        methods.wrong_clones.is_empty() && cells > 0,
    );
    running.check(
        "nothing unaccounted",
        format!("{cells} cells"),
        few(&methods.unaccounted),
        methods.unaccounted.is_empty() && cells > 0,
    );
    let unbalanced = findings.skipped.iter().filter(|row| row.ledger.unaccounted != 0).count();
    running.check(
        "nothing unaccounted where a target takes nothing",
        format!("{} ledgers", findings.skipped.len()),
        if unbalanced == 0 { "all".to_owned() } else { format!("all but {unbalanced}") },
        unbalanced == 0,
    );
}
