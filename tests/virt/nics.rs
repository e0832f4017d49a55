//! The inventory in namespaces that were made for it: routes, stacked devices, programs, what devices say of XDP.

use std::{
    fs::{self, File},
    process::{Child, Command},
};

use xdplab::{
    drivers::{Answer, From},
    host::nics::{Inventory, Nic, Refusal, inventory},
    program::{Traits, TraitsSpec},
    topology::Builtin,
    xdp::XdpFeatures,
};

use crate::program::{
    frames::template,
    net::{self, attach, builtin, loaded, source},
    traits::verifier_takes_traits,
};

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    assert!(status.expect("ip").success(), "ip {arguments}");
}

/// Runs `work` in a namespace of its own with a pair `p0`, `p1`.
fn with_a_pair<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("these tests need root");
            ip("link add p0 type veth peer name p1");
            work()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("kill");
    }
}

fn nic<'a>(inventory: &'a Inventory, name: &str) -> &'a Nic {
    inventory.nics.iter().find(|nic| nic.name == name).unwrap_or_else(|| panic!("{name} is not there: {inventory:#?}"))
}

#[test]
fn a_bridges_default_route_is_that_of_its_ports_too() {
    with_a_pair(|| {
        for command in [
            "link add br0 type bridge",
            "link set p0 master br0",
            "address add 192.0.2.1/24 dev br0",
            "link set p0 up",
            "link set p1 up",
            "link set br0 up",
        ] {
            ip(command);
        }
        let before = inventory().unwrap();
        assert_eq!(nic(&before, "p0").master.as_deref(), Some("br0"));
        assert!(!nic(&before, "p0").default_v4 && !nic(&before, "p0").default_v6);
        assert_eq!(nic(&before, "p0").refusal, Some(Refusal::NotANic));
        assert_eq!(nic(&before, "br0").addresses[0].ip, "192.0.2.1".parse::<std::net::IpAddr>().unwrap());

        ip("route add default via 192.0.2.254");
        let after = inventory().unwrap();
        for name in ["br0", "p0"] {
            assert_eq!(nic(&after, name).refusal, Some(Refusal::DefaultRoute { of: "IPv4" }), "{name}");
        }
        assert_eq!(nic(&after, "p1").refusal, Some(Refusal::NotANic));
    });
}

#[test]
fn a_default_route_of_any_table_counts() {
    with_a_pair(|| {
        for command in [
            "address add 192.0.2.1/24 dev p0",
            "address add 2001:db8::1/64 dev p0 nodad",
            "link set p0 up",
            "link set p1 up",
            "route add default via 192.0.2.254 table 77",
            "-6 route add default via 2001:db8::2 table 78",
        ] {
            ip(command);
        }
        let found = inventory().unwrap();
        assert_eq!(nic(&found, "p0").refusal, Some(Refusal::DefaultRoute { of: "IPv4 and IPv6" }));
    });
}

#[test]
fn what_stands_on_a_device_is_named() {
    with_a_pair(|| {
        ip("link add link p0 name p0-over type macvlan");
        ip("link property add dev p0 altname a-rather-long-name-of-p0");
        let found = inventory().unwrap();
        assert_eq!(nic(&found, "p0").uppers, ["p0-over"]);
        assert_eq!(nic(&found, "p0").alt_names, ["a-rather-long-name-of-p0"]);
    });
}

#[test]
fn what_stands_on_a_device_from_another_namespace_is_named_with_a_way_there() {
    with_a_pair(|| {
        let other = Ended(Command::new("unshare").args(["--net", "sleep", "60"]).spawn().expect("unshare"));
        let own = fs::read_link("/proc/thread-self/ns/net").unwrap();
        let theirs = format!("/proc/{}/ns/net", other.0.id());
        while fs::read_link(&theirs).is_ok_and(|netns| netns == own) {
            std::thread::yield_now();
        }
        for (name, upper) in [("p0", "p0-over"), ("p1", "p1-over")] {
            ip(&format!("link add link {name} name {upper} type macvlan"));
            ip(&format!("link set {upper} netns {}", other.0.id()));
        }
        let found = inventory().unwrap();
        drop(other);
        for (name, upper) in [("p0", "p0-over"), ("p1", "p1-over")] {
            let [above] = nic(&found, name).uppers_elsewhere.as_slice() else { panic!("{found:#?}") };
            assert_eq!((above.name.as_str(), above.netns.to_str().unwrap()), (upper, theirs.as_str()));
            assert_eq!(nic(&found, name).uppers, [""; 0]);
        }
    });
}

#[test]
fn a_program_for_traffic_control_without_a_qdisc_is_seen() {
    // Where it doesn't, there is no TCX either.
    if !verifier_takes_traits() {
        return;
    }
    with_a_pair(|| {
        let mut traits = Traits::load(&TraitsSpec::default(), &[]).unwrap();
        traits.attach_tc("p0").unwrap();
        let during = inventory().unwrap();
        assert_eq!((nic(&during, "p0").tcx_programs.len(), nic(&during, "p0").qdiscs.len()), (1, 0));
        assert_eq!(nic(&during, "p1").tcx_programs, [0; 0]);
        drop(traits);
        assert_eq!(nic(&inventory().unwrap(), "p0").tcx_programs, [0; 0]);
    });
}

/// Frames that a device has received, by its own count.
fn received(name: &str) -> u64 {
    let output = Command::new("ip").args(["-j", "-s", "link", "show", "dev", name]).output().expect("ip");
    let links: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON of ip");
    links[0]["stats64"]["rx"]["packets"].as_u64().unwrap_or_else(|| panic!("no count of {name}: {links}"))
}

/// Whether frames get there is tried; since 6.3 the device tells it as well, and must tell what was found.
#[test]
fn a_veth_is_a_target_once_its_peer_has_a_program() {
    const FRAMES: u32 = 64;
    net::in_namespace(|| {
        net::veth(0);
        let source = source(&template(false, 60), 1, 0);
        let before = inventory().unwrap();
        source.run(FRAMES, FRAMES).unwrap();
        assert_eq!(received("p1"), 0);
        let known = nic(&before, "p0").knowledge(before.kernel);
        match nic(&before, "p0").xdp_features {
            Some(told) => {
                assert!(told.has(XdpFeatures::BASIC | XdpFeatures::REDIRECT) && !told.has(XdpFeatures::NDO_XMIT));
                assert_eq!(known.xmit(), Answer::No(From::Probe));
            }
            // It depends on the peer, of which the record of drivers knows nothing.
            None => assert_eq!((known.native(), known.xmit()), (Answer::Yes(From::Driver), Answer::Unknown)),
        }

        let drop_all = loaded(&builtin(Builtin::Drop), 2, 1);
        let link = attach(&drop_all, 1);
        source.run(FRAMES, FRAMES).unwrap();
        assert_eq!(drop_all.counters().unwrap().unwrap()[1].ours, u64::from(FRAMES));
        let during = inventory().unwrap();
        assert!(nic(&during, "p0").xdp_features.is_none_or(|told| told.has(XdpFeatures::NDO_XMIT)));
        assert!(nic(&during, "p1").native_program.is_some());
        for name in ["p0", "p1"] {
            assert_eq!(nic(&during, name).knowledge(during.kernel).differences(), [], "{name}");
        }

        drop(link);
        let after = inventory().unwrap();
        assert_eq!(nic(&after, "p1").native_program, None);
        assert_eq!(nic(&after, "p0").xdp_features, nic(&before, "p0").xdp_features);
    });
}

/// Kernels tell what devices can do since 6.3: an inventory that asks wrongly would find nothing anywhere.
#[test]
fn devices_tell_their_xdp_features_where_the_kernel_asks_them() {
    with_a_pair(|| {
        let found = inventory().unwrap();
        assert_eq!(nic(&found, "p0").xdp_features.is_some(), crate::kernel::version() >= (6, 3));
    });
}

#[test]
fn a_device_that_only_has_a_nics_name_is_not_that_nic() {
    let host = inventory().unwrap();
    let Some(real) = host.nics.iter().find(|nic| nic.pci.is_some()) else { return };
    let name = real.name.clone();
    with_a_pair(|| {
        // The tests' /sys is still the host's.
        ip(&format!("link set p0 name {name}"));
        let found = inventory().unwrap();
        assert_eq!(nic(&found, &name).pci, None);
        assert_eq!(nic(&found, &name).driver, "veth");
    });
}

#[test]
fn cables_are_not_looked_for_where_no_nic_may_be_taken() {
    let host = inventory().unwrap();
    if host.nics.iter().any(|nic| nic.refusal.is_none()) {
        // It would be taken: that is for the tests that ask for NICs.
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_xdplab")).args(["nics", "--discover"]).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{words}");
    assert!(words.contains("no NIC of this host may be taken"), "{words}");
    for nic in host.nics.iter().filter(|nic| nic.pci.is_some()) {
        assert!(words.contains(&format!("{} ({})", nic.name, nic.pci.as_ref().unwrap())), "{words}");
        assert!(words.contains(&nic.refusal.as_ref().unwrap().to_string()), "{words}");
    }
    assert_eq!(inventory().unwrap().nics, host.nics);
}

#[test]
fn a_lease_of_a_process_that_died_before_it_wrote_the_nic_down_is_collected() {
    let folder = tempfile::tempdir().unwrap();
    let locks = folder.path().join(".locks");
    fs::create_dir(&locks).unwrap();
    let [dead, held] = ["nic-ffff:99:00.0", "nic-ffff:99:00.1"].map(|name| locks.join(name));
    fs::write(&dead, "gone@1").unwrap();
    fs::write(&held, "gone@2").unwrap();
    let holder = File::open(&held).unwrap();
    holder.lock().unwrap();
    let gc = || {
        let status = Command::new(env!("CARGO_BIN_EXE_xdplab")).arg("gc").env("XDPLAB_RUN_DIR", folder.path()).status();
        assert!(status.unwrap().success());
    };
    gc();
    assert_eq!((dead.exists(), held.exists()), (false, true), "a lease that a process holds is let be");
    drop(holder);
    gc();
    assert!(!held.exists());
}
