//! A network namespace with veth pairs for one test.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
    time::{Duration, Instant},
};

use xdplab::{
    host::bpffs::BpfFs,
    program::{LoadContext, Source, SourceSpec, XdpLink, XdpProgram, load},
    topology::{Builtin, Datum, MapContents, Options, PortId, ProgramBody, ProgramSource},
    traffic::{cpu::Pinned, live::unhurried_batches},
    xdp::XdpMode,
};
use xdplab_wire::records::IFINDEX_BASE;

/// The instance of the tests' frames.
pub(super) const INSTANCE: u16 = 0x5e1f;

/// Runs `work` on a thread of its own, in a namespace of its own; the namespace goes with the thread.
pub(crate) fn in_namespace<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("these tests need root");
            ip("link set lo up");
            work()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs `ip` in the thread's namespace.
pub(super) fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("ip");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Makes veth pair number `n`: ports `2n` and `2n + 1`, interfaces `p{2n}` and `p{2n+1}`, both up and quiet.
pub(crate) fn veth(n: u32) {
    let (a, b) = (2 * n, 2 * n + 1);
    ip(&format!("link add p{a} index {} type veth peer name p{b} index {}", port(a), port(b)));
    for end in [a, b] {
        ip(&format!("link set p{end} addrgenmode none"));
        ip(&format!("link set p{end} arp off up"));
    }
}

/// The interface index of a port.
pub(super) fn port(slot: u32) -> u32 {
    IFINDEX_BASE + slot
}

/// A built-in as a topology file would have it without options.
pub(crate) fn builtin(builtin: Builtin) -> ProgramBody {
    ProgramBody {
        source: ProgramSource::Builtin(builtin),
        maps: [].into(),
        globals: [].into(),
        egress: None,
        options: Options::default(),
    }
}

/// A built-in that sends to ports.
pub(super) fn to_ports(which: Builtin, ports: &[usize]) -> ProgramBody {
    let ports = ports.iter().map(|port| Datum::Port(PortId(*port))).collect();
    ProgramBody { maps: [("tx_ports".to_owned(), MapContents::List(ports))].into(), ..builtin(which) }
}

/// Loads a body for a lab of so many ports and flows, and fills its maps.
pub(crate) fn loaded(body: &ProgramBody, slots: u32, flows: u32) -> XdpProgram {
    let mut program = load(body, &context(slots, flows)).unwrap_or_else(|error| panic!("{error}"));
    program.fill_maps().unwrap_or_else(|error| panic!("{error}"));
    program
}

/// A BPF file system of this process's own, for objects that pin maps by name.
fn pins() -> &'static Path {
    static PINS: LazyLock<(BpfFs, PathBuf)> = LazyLock::new(|| {
        let bpffs = BpfFs::detached().unwrap_or_else(|error| panic!("{error}"));
        let path = bpffs.path();
        (bpffs, path)
    });
    &PINS.1
}

/// A context for a lab of so many ports and flows.
pub(super) fn context(slots: u32, flows: u32) -> LoadContext<'static> {
    LoadContext {
        name: "tested",
        instance: INSTANCE,
        slots,
        flows,
        queues: 1,
        counting: true,
        pin_dir: Some(pins()),
        log_dir: None,
        ifindex: &|id| port(id.0 as u32),
    }
}

/// Attaches in native mode.
pub(crate) fn attach(program: &XdpProgram, slot: u32) -> XdpLink {
    program.attach(port(slot), XdpMode::Native).unwrap_or_else(|error| panic!("{error}"))
}

/// A source of so many flows that sends out of a port.
pub(crate) fn source(template: &[u8], flows: u32, target: u32) -> Source {
    let spec = SourceSpec { instance: INSTANCE, flows, first_flow: 0, template, marker: true, stamp_every: 16 };
    let mut source = Source::load(&spec).unwrap_or_else(|error| panic!("{error}"));
    source.set_target(port(target)).unwrap_or_else(|error| panic!("{error}"));
    source
}

/// Sends so many frames as a lab does: from one CPU, whose stamps alone the counters then hold, and on an old kernel few at
/// a time, until that many are `counted`, which counts those of earlier calls too.
pub(super) fn send(source: &Source, frames: u32, counted: impl Fn() -> u64) {
    const BATCH: u32 = 64;
    let _pinned = Pinned::here().unwrap();
    let chunk = unhurried_batches().map_or(frames, |batches| batches * BATCH);
    let mut made = 0;
    while made < frames {
        let before = counted();
        let now = chunk.min(frames - made);
        source.run(now, BATCH).unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        while counted() < before + u64::from(now) && Instant::now() < deadline {
            std::thread::yield_now();
        }
        made += now;
    }
}
