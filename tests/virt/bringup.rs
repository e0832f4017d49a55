//! Bring-up: what the file says of nodes and links is what the kernel has, the links are quiet, and the kernel's own words
//! reach the user.

use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use pnet::datalink::{
    Channel, NetworkInterface,
    linux::{self, Config},
};
use xdplab::{
    Lab,
    host::{HostError, ethtool::Ethtool, netlink::Netlink, netns::Netns, thread::LabThread},
    testing::with_lab,
    topology::PortId,
};

const LAB: &str = r#"
name = "bringup"
[nodes.a.ports.x]
mtu = 2000
mac = "02:00:00:00:00:0a"
addresses = ["10.9.8.1/24", "fd00::1/64"]
queues = 2
gro = true
offloads = { tso = false }
[nodes.b.ports.y]
mtu = 2000
queues = 2
[[links]]
kind = "veth"
ends = ["a:x", "b:y"]
"#;

fn port(lab: &Lab, name: &str) -> PortId {
    lab.topology().find_port(name).expect("the test's own port")
}

#[test]
fn ports_are_as_the_file_has_them() {
    with_lab("bringup.toml", LAB, |lab| {
        let x = port(lab, "a:x");
        let link = &lab.port_states().unwrap()[x.0];
        assert_eq!((link.name.as_str(), link.mtu, link.rx_queues, link.tx_queues), ("x", 2000, 2, 2));
        assert_eq!(link.mac, [2, 0, 0, 0, 0, 0x0a]);
        assert!(link.up && link.carrier);
        let (gro, tso, addresses, neighbours) = lab
            .in_node(x, || {
                let ethtool = Ethtool::open().unwrap();
                let features = ethtool.features("x").unwrap();
                let tso = features.iter().find(|(name, _)| name == "tx-tcp-segmentation").unwrap().1;
                let addresses: Vec<String> = getifaddrs()
                    .unwrap()
                    .filter(|entry| entry.interface_name == "x")
                    .filter_map(|entry| entry.address.map(|address| address.to_string()))
                    .collect();
                let neighbours = std::fs::read_to_string("/proc/thread-self/net/arp").unwrap();
                (ethtool.gro("x").unwrap(), tso, addresses.join(" "), neighbours)
            })
            .unwrap();
        assert!(gro && !tso);
        assert!(addresses.contains("10.9.8.1") && addresses.contains("fd00::1"), "{addresses}");
        // No link-local address: nothing of the stack's own is sent from one.
        assert!(!addresses.contains("fe80"), "{addresses}");
        // 0x6: complete and permanent.
        assert!(neighbours.lines().any(|line| line.starts_with("10.9.8.") && line.contains("0x6")), "{neighbours}");
    });
}

#[test]
fn a_new_link_is_quiet() {
    with_lab("bringup.toml", LAB, |lab| {
        let interface = |name: &str, index| NetworkInterface {
            name: name.into(),
            description: String::new(),
            index,
            mac: None,
            ips: Vec::new(),
            flags: 0,
        };
        let open = |lab: &Lab, at: &str, name: &str, index| {
            let config = Config { read_timeout: Some(Duration::from_millis(100)), ..Config::default() };
            match lab.in_node(port(lab, at), || linux::channel(&interface(name, index), config)).unwrap().unwrap() {
                Channel::Ethernet(sender, receiver) => (sender, receiver),
                _ => panic!("no Ethernet channel"),
            }
        };
        let (mut sender, _keep) = open(lab, "a:x", "x", 1000);
        let (_sender, mut receiver) = open(lab, "b:y", "y", 1001);
        // Duplicate detection, router solicitations and group reports all come within a second of coming up.
        let until = Instant::now() + Duration::from_millis(1_500);
        while Instant::now() < until {
            if let Ok(frame) = receiver.next() {
                panic!("somebody speaks: {frame:02x?}");
            }
        }
        // The positive control: a frame that is sent is seen.
        sender.send_to(&[[0xff; 12].as_slice(), &[0x88, 0xb5], &[1; 50]].concat(), None).unwrap().unwrap();
        let deadline = Instant::now() + Duration::from_secs(2);
        while receiver.next().is_err() {
            assert!(Instant::now() < deadline, "the control frame was not seen");
        }
    });
}

#[test]
fn an_offload_that_a_port_lacks_is_named_with_those_that_it_has() {
    let text = LAB.replace("tso = false", "warp = true").replace("name = \"bringup\"", "name = \"nowarp\"");
    let topology = xdplab::topology::parse(std::path::Path::new("t.toml"), &text).unwrap();
    let error = Lab::new(&topology).expect_err("there is no such offload").to_string();
    assert!(error.contains("x has no offload \"warp\"") && error.contains("tx-tcp-segmentation"), "{error}");
    // A lab that did not come up leaves no journal either.
    let left = xdplab::host::journal::list().unwrap();
    let dead = |entry: &xdplab::host::journal::Entry| entry.name.starts_with("nowarp@") && !entry.at_work;
    assert!(!left.iter().any(dead), "{left:?}");
}

#[test]
fn the_kernels_own_words_reach_the_user() {
    let thread = LabThread::start("words").unwrap();
    let error = thread.run(|inside| -> Result<(), HostError> {
        let netns = Netns::create(inside)?;
        let netlink = Netlink::open(inside, &netns)?;
        inside.block_on(async {
            netlink.add_bridge("one", 10, 1500).await?;
            netlink.add_bridge("two", 11, 1500).await?;
            netlink.set_master(10, 11).await
        })
    });
    let error = error.expect_err("a bridge takes no bridge");
    assert_eq!(error.errno(), Some(libc::ELOOP));
    assert!(error.to_string().contains("Can not enslave a bridge to a bridge"), "{error}");
}

#[test]
fn the_lab_thread_survives_a_panic_and_is_back_home() {
    let thread = LabThread::start("panics").unwrap();
    let home = thread.run(|inside| inside.home().inode());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        thread.run(|inside| {
            let netns = Netns::create(inside).unwrap();
            inside.enter(&netns, || panic!("in there")).unwrap()
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(thread.run(|_| Netns::current().unwrap().inode()), home);
    // And it may borrow.
    let mut seen = 0;
    thread.run(|_| seen += 1);
    assert_eq!(seen, 1);
}
