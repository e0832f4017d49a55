//! Traits in the kernel: the operations against the model, and each program on a real path.

#[path = "../../../lab/wire/src/traits/model.rs"]
mod model;

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    path::Path,
    time::{Duration, Instant},
};

use pnet::datalink::{self, Channel, Config, NetworkInterface};

use model::{Model, Op, sequence};
use xdplab::{
    program::{ProgramError, Traits, TraitsBench, TraitsProgram, TraitsSpec, TraitsTarget, TraitsWork, XdpLink},
    xdp::XdpMode,
};
use xdplab_wire::traits::{
    self, Area, Words,
    script::{Answer, Step, op},
    seen::{self, Seen},
};

use super::{
    frames::template,
    net::{INSTANCE, in_namespace, port, source, veth},
};

/// Whether the verifier takes the traits: that of 6.1 gives up on their loops after 8192 branches ("the sequence of 8193
/// jumps is too complex"), that of 6.12 does not.
pub(crate) fn verifier_takes_traits() -> bool {
    let takes = once_a_boot("takes-traits", || match Traits::load(&TraitsSpec::default(), &[TraitsProgram::Set]) {
        Err(ProgramError::Rejected { tail, .. }) => !tail.contains("too complex"),
        _ => true,
    });
    if !takes {
        xdplab::testing::lacks("traits");
    }
    takes
}

/// An answer that lasts as long as the kernel runs: each test is a process of its own, and on an emulated machine the
/// verifier takes half a minute for its no.
fn once_a_boot(question: &str, ask: impl FnOnce() -> bool) -> bool {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{question}-{}", boot.trim()));
    let mut file = File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    // Whoever comes second waits for the first one's answer.
    file.lock().unwrap();
    let mut answer = String::new();
    file.read_to_string(&mut answer).unwrap();
    if answer.is_empty() {
        answer = ask().to_string();
        file.write_all(answer.as_bytes()).unwrap();
    }
    answer == "true"
}

fn step(of: &Op) -> Step {
    match *of {
        Op::Get { key } => Step::new(op::GET, key, 0, 0),
        Op::Set { key, length, bits } => Step::new(op::SET, key, length as u16, bits),
        Op::Delete { key } => Step::new(op::DELETE, key, 0, 0),
        Op::Trim => Step::new(op::TRIM, 0, 0, 0),
        Op::Next { from } => Step::new(op::NEXT, from, 0, 0),
    }
}

#[test]
fn any_sequence_of_operations_does_in_the_kernel_what_the_model_does() {
    if !verifier_takes_traits() {
        return;
    }
    for by_bytes in [false, true] {
        let programs = [TraitsProgram::Script, TraitsProgram::Capacity];
        let traits = Traits::load(&TraitsSpec { by_bytes, ..TraitsSpec::default() }, &programs).unwrap();
        let capacity = traits.probe_capacity().unwrap();
        let mut full = 0;
        for seed in 0..10_000 {
            let ops = sequence(seed, (seed % 65) as usize);
            let mut model = Model::new(capacity);
            let expected: Vec<Answer> = ops.iter().map(|op| Answer::of(model.run(op))).collect();
            let (answers, metadata) = traits.run_script(&ops.iter().map(step).collect::<Vec<_>>()).unwrap();
            assert_eq!(answers, expected, "seed {seed}: {ops:?}");
            let layout = model.layout();
            assert_eq!(metadata[..layout.len()], layout, "seed {seed}: {ops:?}");
            assert_eq!(metadata.len(), model.room(), "seed {seed}: {ops:?}");
            full += expected.iter().filter(|answer| answer.status == 4).count();
        }
        assert!(full > 100, "the metadata was full {full} times only");
    }
}

const FRAMES: u32 = 640;

/// Loads programs, and sends frames to port 1 once they are attached as `attach` says.
fn on_a_path<R>(
    spec: &TraitsSpec<'_>,
    programs: &[TraitsProgram],
    attach: impl FnOnce(&mut Traits) -> Vec<XdpLink> + Send,
    look: impl FnOnce(&Traits) -> R + Send,
) -> R
where
    R: Send,
{
    in_namespace(|| {
        (0..2).for_each(veth);
        let spec = TraitsSpec { instance: INSTANCE, ..*spec };
        let mut traits = Traits::load(&spec, programs).unwrap_or_else(|error| panic!("{error}"));
        let _links = attach(&mut traits);
        source(&template(false, 60), 1, 0).run(FRAMES, 64).unwrap();
        look(&traits)
    })
}

fn attached(traits: &Traits, program: TraitsProgram, slot: u32) -> XdpLink {
    traits.attach(program, port(slot), XdpMode::Native).unwrap_or_else(|error| panic!("{error}"))
}

/// What was found, once all frames are there: a cpumap hands them on in its own time.
fn found(traits: &Traits, place: usize, slot: usize) -> Seen {
    let patience = Instant::now();
    loop {
        let found = traits.seen(place, slot).unwrap();
        if found.frames >= u64::from(FRAMES) || patience.elapsed() > Duration::from_secs(5) {
            assert_eq!(found.frames, u64::from(FRAMES), "place {place}: {found:?}");
            assert_eq!(found.frames, found.intact + found.changed + found.absent + found.broken);
            return found;
        }
        std::thread::yield_now();
    }
}

#[test]
fn traits_are_read_back_where_they_were_written_also_after_the_head_was_moved() {
    if !verifier_takes_traits() {
        return;
    }
    for move_head in [false, true] {
        let spec = TraitsSpec { to: TraitsTarget::Drop, move_head, ..TraitsSpec::default() };
        let attach = |traits: &mut Traits| vec![attached(traits, TraitsProgram::Set, 1)];
        let found = on_a_path(&spec, &[TraitsProgram::Set], attach, |traits| found(traits, seen::SET, 1));
        assert_eq!(found.intact, u64::from(FRAMES), "{found:?}");
    }
}

#[test]
fn traits_are_looked_at_at_traffic_control() {
    if !verifier_takes_traits() {
        return;
    }
    let attach = |traits: &mut Traits| {
        traits.attach_tc("p1").unwrap_or_else(|error| panic!("{error}"));
        vec![attached(traits, TraitsProgram::Set, 1)]
    };
    let found = on_a_path(&TraitsSpec::default(), &[TraitsProgram::Set], attach, |traits| found(traits, seen::TC, 1));
    assert_eq!(found.intact, u64::from(FRAMES), "{found:?}");
}

#[test]
fn traits_are_looked_at_behind_a_devmap() {
    if !verifier_takes_traits() {
        return;
    }
    let spec = TraitsSpec { to: TraitsTarget::Port, verdict: 1, ..TraitsSpec::default() };
    for (egress, receive, place) in [
        (TraitsProgram::CheckDevmap, TraitsProgram::Check, seen::XDP),
        (TraitsProgram::WriteDevmap, TraitsProgram::Write, seen::WRITE),
    ] {
        let attach = |traits: &mut Traits| {
            traits.set_port(port(2), Some(egress)).unwrap_or_else(|error| panic!("{error}"));
            vec![attached(traits, TraitsProgram::Set, 1), attached(traits, receive, 3)]
        };
        on_a_path(&spec, &[TraitsProgram::Set, egress, receive], attach, |traits| {
            println!("egress {:?}", found(traits, seen::DEVMAP, 2));
            println!("receive {:?}", found(traits, place, 3));
        });
    }
}

#[test]
fn traits_are_looked_at_behind_a_cpumap() {
    if !verifier_takes_traits() {
        return;
    }
    let spec = TraitsSpec { to: TraitsTarget::Cpu, ..TraitsSpec::default() };
    let attach = |traits: &mut Traits| {
        traits.set_cpu(2048, Some(TraitsProgram::CheckCpumap)).unwrap_or_else(|error| panic!("{error}"));
        vec![attached(traits, TraitsProgram::Set, 1)]
    };
    on_a_path(&spec, &[TraitsProgram::Set, TraitsProgram::CheckCpumap], attach, |traits| {
        println!("cpumap {:?}", found(traits, seen::CPUMAP, 1));
    });
}

/// Sends frames out of port 0 as a stack would: a port in generic mode takes no redirected ones.
fn send_packets() {
    let interface = NetworkInterface {
        name: "p0".into(),
        description: String::new(),
        index: port(0),
        mac: None,
        ips: vec![],
        flags: 0,
    };
    let Ok(Channel::Ethernet(mut sender, _)) = datalink::channel(&interface, Config::default()) else {
        panic!("no packet socket");
    };
    let mut sent = 0;
    while sent < FRAMES {
        // Until a device that has just come up has a queue, and while that is full, frames are refused.
        sent += u32::from(sender.send_to(&template(false, 60), None).is_some_and(|sent| sent.is_ok()));
    }
}

#[test]
fn how_far_metadata_grows_is_asked_on_the_path() {
    for mode in [XdpMode::Native, XdpMode::Generic] {
        in_namespace(|| {
            veth(0);
            let spec = TraitsSpec { verdict: 1, ..TraitsSpec::default() };
            let traits = Traits::load(&spec, &[TraitsProgram::Capacity]).unwrap_or_else(|error| panic!("{error}"));
            let _link = traits.attach(TraitsProgram::Capacity, port(1), mode).unwrap_or_else(|error| panic!("{error}"));
            if mode == XdpMode::Native {
                source(&template(false, 60), 1, 0).run(FRAMES, 64).unwrap();
            } else {
                send_packets();
            }
            let deadline = Instant::now() + Duration::from_secs(5);
            let mut seen = traits.capacity().unwrap();
            while seen.1 == 0 && Instant::now() < deadline {
                seen = traits.capacity().unwrap();
            }
            println!("{mode:?}: {} bytes, asked {} frames", seen.0, seen.1);
            assert!(seen.0 >= 32 && seen.0.is_multiple_of(4), "{mode:?}: {seen:?}");
        });
    }
}

#[test]
fn the_measured_operations_do_what_they_are_measured_for() {
    if !verifier_takes_traits() {
        return;
    }
    let mut bench = TraitsBench::load().unwrap_or_else(|error| panic!("{error}"));
    let mut memory = [0; 64];
    let mut area = Area::new(&mut memory, 0).unwrap();
    traits::init(&mut area).unwrap();
    for key in 0..5 {
        traits::set::<Words, _>(&mut area, key, 8, u64::from(key)).unwrap();
    }
    let before = area.bytes().to_vec();
    let mut after = |work, key| bench.run(work, &before, (key, 32), 8).unwrap().1;
    assert_eq!(after(TraitsWork::Get, 3), before);
    // The last of eight turns writes its number, 7.
    let mut expected = before.clone();
    expected[16 + 24..][..8].copy_from_slice(&7u64.to_le_bytes());
    assert_eq!(after(TraitsWork::Set, 3), expected);
    // Shorter and longer by turns: as long as before at the end, and what lies behind is where it was.
    for work in [TraitsWork::UpdateByWords, TraitsWork::UpdateByBytes] {
        let turned = after(work, 0);
        assert_eq!((&turned[..16], &turned[24..]), (&before[..16], &before[24..]), "{work:?}");
        assert_ne!(turned, [0; 56]);
    }
    // Up and down again: the 8 bytes that were behind are overwritten.
    for work in [TraitsWork::MoveByWords, TraitsWork::MoveByBytes] {
        assert_eq!(after(work, 0)[..48], before[..48], "{work:?}");
        assert_eq!(after(work, 0)[48..], before[40..48], "{work:?}");
    }
    // The header is put back, what lay behind has moved eight times.
    assert_eq!(after(TraitsWork::Delete, 0)[..16], before[..16]);
    assert_ne!(after(TraitsWork::Delete, 0), before);
}
