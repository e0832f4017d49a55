//! Attaching: by link or not at all, what a refusal says, swapping in place.

use xdplab::{
    program::{ProgramError, XdpLink},
    topology::Builtin,
    xdp::XdpMode::{Generic, Native},
};

use crate::kernel;

use super::{
    frames::template,
    net::{attach, builtin, in_namespace, ip, loaded, port, send, source, veth},
};

/// The message of a refused attach in native mode to port 0.
fn refused() -> String {
    let program = loaded(&builtin(Builtin::Drop), 4, 1);
    let message = program.attach(port(0), Native).expect_err("the attach is refused").to_string();
    message.split(" (the kernel says").next().expect("a split has a first part").to_owned()
}

#[test]
fn a_peer_with_a_large_mtu_is_named_with_the_kernel_s_words() {
    in_namespace(|| {
        veth(0);
        ip("link set p1 mtu 9000");
        insta::assert_snapshot!(refused());
        let program = loaded(&builtin(Builtin::Drop), 4, 1);
        let message = program.attach(port(0), Native).unwrap_err().to_string();
        // Kernels before 6.6 keep their words to themselves.
        assert!(
            message.contains("(the kernel says: veth: Peer MTU is too large to set XDP)") || kernel::version() < (6, 6),
            "{message}"
        );
    });
}

#[test]
fn too_few_queues_are_named() {
    in_namespace(|| {
        ip("link add p1 index 1001 numtxqueues 2 type veth peer name p0 index 1000 numrxqueues 1");
        insta::assert_snapshot!(refused());
    });
}

#[test]
fn a_device_without_native_xdp_is_named() {
    in_namespace(|| {
        ip("link add p0 index 1000 type bridge");
        insta::assert_snapshot!(refused());
    });
}

#[test]
fn a_program_that_is_there_already_is_named() {
    in_namespace(|| {
        veth(0);
        let first = loaded(&builtin(Builtin::Drop), 4, 1);
        let link = first.attach(port(0), Native).unwrap();
        insta::assert_snapshot!(refused());
        drop(link);
        let _link = first.attach(port(0), Generic).unwrap();
        insta::assert_snapshot!(refused());
    });
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    in_namespace(|| insta::assert_snapshot!(refused()));
}

#[test]
fn a_swap_in_place_loses_no_frame() {
    in_namespace(|| {
        veth(0);
        let programs = [Builtin::Drop, Builtin::Sink].map(|which| loaded(&builtin(which), 2, 1));
        let link: XdpLink = attach(&programs[0], 1);
        let source = source(&template(false, 60), 1, 0);
        let seen = || programs.each_ref().map(|program| program.counters().unwrap().unwrap()[1].ours);
        for turn in 0..20 {
            link.update(&programs[turn % 2]).unwrap();
            send(&source, 640, || seen().iter().sum());
        }
        assert_eq!(seen(), [6_400, 6_400]);
    });
}

#[test]
fn dropping_a_link_detaches() {
    in_namespace(|| {
        veth(0);
        let program = loaded(&builtin(Builtin::Drop), 2, 1);
        for _ in 0..2 {
            drop(attach(&program, 1));
        }
        let _in_the_other_mode = program.attach(port(1), Generic).unwrap();
    });
}

#[test]
fn a_devmap_refuses_an_interface_that_is_not_there() {
    in_namespace(|| {
        let body = super::net::to_ports(Builtin::RedirectMap, &[2]);
        let mut program = xdplab::program::load(&body, &super::net::context(4, 1)).unwrap();
        let error = program.fill_maps().expect_err("there is no port 2");
        assert!(matches!(error, ProgramError::System { .. }), "{error:?}");
        insta::assert_snapshot!(error);
    });
}
