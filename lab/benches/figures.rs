//! The figures on speed, each as a ratio of two things measured in turn in one run. As root:
//!
//! ```text
//! cargo bench --bench figures
//! ```
//!
//! `ip` (iproute2) is what bring-up is compared with; without it that part is left out, and says so.

use std::{
    fmt::Write as _,
    fs,
    net::IpAddr,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use nix::sys::resource::{UsageWho, getrusage};
use xdplab::{
    Lab,
    lab::SourceKey,
    topology::{self, Amount, Builtin, ProgramSource, Topology},
    traffic::{
        Stop,
        frames::FrameSpec,
        live::{self, Live},
        packet::{self, PacketTraffic},
    },
    xdp::XdpMode,
};

const ROUNDS: usize = 7;
const STAR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/topologies/star-100.toml");
const BATCH: u32 = 64;

/// gen:tx0 -- dut:rx0, where a bare program drops; the bare redirect program that is compared with holds a spare port.
const CHAIN: &str = r#"
name = "figures"
[nodes.gen]
[nodes.dut]
[nodes.spare]
[[links]]
kind = "veth"
ends = ["gen:tx0", "dut:rx0"]
[[links]]
kind = "veth"
ends = ["gen:sp0", "spare:sp1"]
[programs.drop]
builtin = "drop"
attach = ["dut:rx0"]
[programs.bare]
builtin = "redirect_map"
attach = ["gen:sp0"]
maps.tx_ports = ["gen:tx0"]
"#;

fn main() {
    if !xdplab::host::is_root() {
        println!("these figures need root: labs are namespaces");
        return;
    }
    bring_up();
    engines();
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn must(command: &mut Command) {
    let status = command.stdout(Stdio::null()).status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

/// star-100 up and down: the whole process, against `ip`.
fn bring_up() {
    let xdplab = env!("CARGO_BIN_EXE_xdplab");
    let star = topology::load(Path::new(STAR)).unwrap_or_else(|error| panic!("{error}"));
    let scripts = tempfile::tempdir().expect("a directory");
    write_scripts(&star, scripts.path());
    let have_ip = Command::new("ip").arg("-V").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    let (mut ours, mut theirs) = ([vec![], vec![]], [vec![], vec![]]);
    for _ in 0..ROUNDS {
        ours[0].push(timed(|| must(Command::new(xdplab).args(["up", STAR]))));
        ours[1].push(timed(|| must(Command::new(xdplab).args(["down", "star-100"]))));
        settle();
        if have_ip {
            theirs[0].push(timed(|| {
                for node in &star.nodes {
                    must(Command::new("ip").args(["netns", "add", &format!("ipbatch.{}", node.name)]));
                }
                // The hub first, since it makes the links: the leaves' scripts find them there.
                let hub = |node: &&topology::Node| node.name == "dut";
                for node in star.nodes.iter().filter(hub).chain(star.nodes.iter().filter(|node| !hub(node))) {
                    let script = scripts.path().join(&node.name);
                    must(Command::new("ip").args(["-n", &format!("ipbatch.{}", node.name), "-batch"]).arg(script));
                }
            }));
            theirs[1].push(timed(|| {
                for node in &star.nodes {
                    must(Command::new("ip").args(["netns", "del", &format!("ipbatch.{}", node.name)]));
                }
            }));
            settle();
        }
    }
    let [up, down] = ours.map(median);
    println!("star-100: 100 namespaces, 99 veth pairs, addresses, neighbours; xdplab attaches 99 programs besides");
    println!("  xdplab up                 {:8.1} ms    xdplab down   {:8.1} ms", up * 1e3, down * 1e3);
    if have_ip {
        let [theirs_up, theirs_down] = theirs.map(median);
        println!(
            "  ip netns add, ip -batch   {:8.1} ms    ip netns del  {:8.1} ms",
            theirs_up * 1e3,
            theirs_down * 1e3
        );
        println!("  ratio                     {:8.2}       ratio         {:8.2}", up / theirs_up, down / theirs_down);
    } else {
        println!("  `ip` is not installed: nothing to compare with");
    }
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0, |usage| usage.max_rss());
    println!("  peak memory of any of these processes: {:.1} MiB", peak as f64 / 1024.0);
}

/// Gives the kernel time to take namespaces away: that goes on in the background, at the cost of whoever comes next.
fn settle() {
    std::thread::sleep(Duration::from_millis(700));
}

/// One `ip -batch` script a namespace, that makes what xdplab makes of the topology.
fn write_scripts(star: &Topology, dir: &Path) {
    let mut scripts = vec![String::from("link set lo up\n"); star.nodes.len()];
    for link in &star.links {
        let [a, b] = link.ends[..] else { panic!("a star has links of two ends") };
        let (pa, pb) = (&star.ports[a.0], &star.ports[b.0]);
        // Made from the end whose namespace comes later, so that scripts can run one after the other: the hub's.
        let (near, far) = if star.nodes[pa.node.0].name == "dut" { (pa, pb) } else { (pb, pa) };
        let _ = writeln!(
            scripts[near.node.0],
            "link add {} address {} type veth peer name {} address {} netns ipbatch.{}",
            near.name, near.mac, far.name, far.mac, star.nodes[far.node.0].name
        );
        // The far end has no name of its own before its namespace's script runs.
        for (port, other) in [(near, far), (far, near)] {
            let script = &mut scripts[port.node.0];
            let _ = writeln!(script, "link set {} up arp off", port.name);
            for (address, prefix) in &port.addresses {
                let _ = writeln!(script, "address add {address}/{prefix} dev {}", port.name);
            }
            for (address, _) in &other.addresses {
                let _ =
                    writeln!(script, "neigh replace {address} lladdr {} dev {} nud permanent", other.mac, port.name);
            }
        }
    }
    for (node, script) in star.nodes.iter().zip(scripts) {
        fs::write(dir.join(&node.name), script).expect("write a script");
    }
}

/// Million frames a second of each engine, veth to `XDP_DROP`, on one CPU.
fn engines() {
    let topology = topology::parse(Path::new("figures.toml"), CHAIN).unwrap_or_else(|errors| panic!("{errors}"));
    let mut lab = Lab::new(&topology).expect("the lab comes up");
    lab.install(None, XdpMode::Native, false).expect("the programs are attached");
    let from = topology.find_port("gen:tx0").expect("a port");
    let to = topology.find_port("dut:rx0").expect("a port");
    let address = |port: topology::PortId| -> IpAddr { topology.ports[port.0].addresses[0].0 };
    let spec = FrameSpec {
        source_mac: topology.ports[from.0].mac,
        destination_mac: topology.ports[to.0].mac,
        source: address(from),
        destination: address(to),
        frame_bytes: 64,
        instance: lab.instance().number,
    };
    let template = spec.frame(0, 0, 0).expect("a frame");
    let stop = Stop::default();
    let quiet = |_| {};
    let names = [
        "live, no marker",
        "live, sequence in each, time in every 16th",
        "bare redirect program",
        "packet (pnet), no marker",
    ];
    let mut rates: [Vec<f64>; 4] = Default::default();
    for round in 0..ROUNDS {
        let mut order = [0, 1, 2, 3];
        if round % 2 == 1 {
            order.reverse();
        }
        for engine in order {
            let frames: u64 = if engine == 3 { 200_000 } else { 2_000_000 };
            let key = SourceKey { from, template: template.clone(), flows: 1, marker: engine == 1, senders: 1 };
            let send = |lab: &mut Lab, frames: u64| match engine {
                0 | 1 => live::send(lab, &Live::new(&key, Amount::Frames(frames), BATCH, &stop)).expect("frames go"),
                2 => {
                    let bare = ProgramSource::Builtin(Builtin::RedirectMap);
                    let have = lab.installed().iter().find(|have| have.wanted.body.source == bare).expect("attached");
                    lab.in_node(from, || {
                        let _pinned = xdplab::traffic::cpu::Pinned::here().expect("a CPU");
                        have.program.run_live(&template, frames as u32, BATCH).expect("frames go");
                    })
                    .expect("the node is there");
                    frames
                }
                _ => {
                    let traffic =
                        PacketTraffic { from, spec: spec.clone(), flows: 1, first_sequence: 0, marker: false };
                    packet::send(lab, &traffic, Amount::Frames(frames), None, &stop, &quiet).expect("frames go")
                }
            };
            // Loading and warming up is not measured.
            send(&mut lab, 20_000);
            let seconds = timed(|| assert_eq!(send(&mut lab, frames), frames));
            rates[engine].push(frames as f64 / seconds / 1e6);
        }
    }
    let medians = rates.map(median);
    println!("engines, one CPU, veth to XDP_DROP, batch {BATCH}, 64-byte frames");
    for (name, rate) in names.iter().zip(medians) {
        println!(
            "  {name:42} {rate:7.3} Mpps   {:6.2} times packet   {:5.2} of bare",
            rate / medians[3],
            rate / medians[2]
        );
    }
    lab.down().expect("the lab goes down");
}
