use std::collections::BTreeMap;
use xdplab::{run::*, topology::*, traffic::Stop, xdp::XdpMode};
fn port(node: usize, name: &str, link: usize, n: u8) -> Port {
    Port {
        node: NodeId(node),
        name: name.into(),
        link: LinkId(link),
        mac: Mac([2, 0x78, 0x64, 0, link as u8, n]),
        mtu: 1500,
        addresses: vec![
            (format!("198.18.{link}.{}", n + 1).parse().unwrap(), 30),
            (format!("2001:2:0:{link}::{}", n + 1).parse().unwrap(), 64),
        ],
        gro: None,
        queues: 1,
        rings: None,
        offloads: BTreeMap::new(),
        irq_cpus: vec![],
    }
}
fn body(b: Builtin, targets: &[usize]) -> ProgramBody {
    let mut maps = BTreeMap::new();
    if !targets.is_empty() {
        maps.insert("tx_ports".into(), MapContents::List(targets.iter().map(|t| Datum::Port(PortId(*t))).collect()));
    }
    ProgramBody {
        source: ProgramSource::Builtin(b),
        maps,
        globals: BTreeMap::new(),
        egress: None,
        options: Options { touch: Touch::None, map: DevMapKind::Devmap, max_entries: None, exclude_ingress: false },
    }
}
fn main() {
    let frames: u64 = std::env::args().nth(1).map_or(1_000_000, |a| a.parse().unwrap());
    let n: usize = std::env::args().nth(2).map_or(1, |a| a.parse().unwrap());
    let mut nodes = vec![Node { name: "gen".into() }, Node { name: "dut".into() }];
    let mut ports = vec![port(0, "tx0", 0, 0), port(1, "rx0", 0, 1)];
    let mut links = vec![Link { kind: LinkKind::Veth, ends: vec![PortId(0), PortId(1)], mtu: 1500 }];
    let mut targets = vec![];
    let mut sinks = vec![];
    for i in 0..n {
        nodes.push(Node { name: format!("sink{i}") });
        ports.push(port(1, &format!("out{i}"), i + 1, 0));
        ports.push(port(2 + i, "in0", i + 1, 1));
        links.push(Link { kind: LinkKind::Veth, ends: vec![PortId(2 + 2 * i), PortId(3 + 2 * i)], mtu: 1500 });
        targets.push(2 + 2 * i);
        sinks.push(PortId(3 + 2 * i));
    }
    let b = if n > 1 { Builtin::Broadcast } else { Builtin::RedirectMap };
    let traffic = Traffic {
        from: PortId(0),
        engine: Engine::Live { batch: 64 },
        ip: IpVersion::V4,
        flows: 1,
        frame_bytes: 64,
        amount: Amount::Frames(frames),
    };
    let modes = vec![XdpMode::Generic, XdpMode::Native];
    let t = Topology {
        name: "scratch".into(),
        about: "x".into(),
        path: "x.toml".into(),
        nodes,
        ports,
        links,
        programs: vec![
            Program { name: "redirect".into(), attach: vec![PortId(1)], mode: None, body: body(b, &targets) },
            Program { name: "sink".into(), attach: sinks.clone(), mode: None, body: body(Builtin::Sink, &[]) },
        ],
        scenarios: vec![
            Scenario {
                name: "redirect".into(),
                modes: modes.clone(),
                programs: vec![],
                traffic: traffic.clone(),
                expect: Expect { deliver: sinks, drop: vec![], lost: 0, clones: Some((n as u64 - 1) * frames) },
                perf: Some(Perf {
                    min_mpps: [("veth".into(), 0.5)].into(),
                    budget_ns: None,
                    max_ratio: Some(MaxRatio { of: ScenarioId(1), value: 3.0 }),
                }),
            },
            Scenario {
                name: "drop".into(),
                modes,
                programs: vec![(ProgramId(0), body(Builtin::Drop, &[]))],
                traffic,
                expect: Expect { deliver: vec![], drop: vec![PortId(1)], lost: 0, clones: None },
                perf: None,
            },
        ],
    };
    let r = run(&t, &RunOptions::default(), &Stop::default(), &Silent);
    match r {
        Ok(mut r) => {
            for s in &mut r.scenarios {
                if let Some(c) = &mut s.cost {
                    c.windows.clear();
                }
            }
            r.fingerprint.0.clear();
            println!("{}", serde_json::to_string_pretty(&r).unwrap())
        }
        Err(e) => {
            let mut e: &dyn std::error::Error = &e;
            println!("ERR {e}");
            while let Some(s) = e.source() {
                println!("  {s}");
                e = s;
            }
        }
    }
}
