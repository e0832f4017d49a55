//! What a lost frame looks like to the kernel, what causes it, and what to do about it.
//!
//! The table was tried on Linux 6.18, 6.12 and 6.1, native and generic. Since 6.3 a redirect asks the device's features, and
//! says `EOPNOTSUPP` where it takes no frames; before, the device is handed them all the same, and refuses with `ENXIO`:
//! seen as `xdp_devmap_xmit` where its driver has `ndo_xdp_xmit`, as veth, and as `xdp_redirect_err` where it has not.

use nix::errno::Errno;

/// Where and how frames were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// `xdp_redirect_err` with this errno (negative).
    Redirect(i32),
    /// `xdp_devmap_xmit` reported drops with this errno (negative), or 0.
    Devmap(i32),
    /// `xdp_bulk_tx` reported drops with this errno (negative), or 0: `XDP_TX` found no room or no taker.
    BulkTx(i32),
    /// `xdp_exception` for this action.
    Exception(u32),
    /// `kfree_skb` on the way out, by the number of its reason.
    Freed(u32),
    /// `xdp_cpumap_enqueue` reported drops: the other CPU's queue was full.
    Cpumap,
    /// A broadcast found no target that could take the frame.
    NoTarget,
    /// The receive ring of an `AF_XDP` socket was full.
    SocketRing,
    /// The fill ring of an `AF_XDP` socket was empty.
    SocketFill,
    /// An `AF_XDP` socket dropped the frame for another reason.
    Socket,
    /// The frame's queue has no `AF_XDP` socket.
    NoSocket,
    /// The NIC had no buffer for the frame.
    Missed,
}

/// What the lab knows of the port that the frames were sent to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// The port, as `node:port`.
    pub port: String,
    /// Whether it is administratively up.
    pub up: bool,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Whether it is a NIC, whose frames wait in a ring of its own; a veth puts them into its peer's.
    pub nic: bool,
    /// The other end of its link, where it has one.
    pub peer: Option<Peer>,
}

/// What the lab knows of the other end of a link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Peer {
    /// The port, as `node:port`.
    pub port: String,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether a native program or GRO makes it poll (NAPI), without which a veth takes no redirected frames.
    pub polls: bool,
}

/// A reason in the ledger's words, a cause, and a fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Short and stable: scripts match on it.
    pub reason: String,
    /// What causes it.
    pub cause: Option<String>,
    /// What to do.
    pub fix: Option<String>,
}

/// The errno's name, such as `EOPNOTSUPP`, of a negative or positive number.
pub fn errno_name(code: i32) -> String {
    match Errno::from_raw(code.abs()) {
        Errno::UnknownErrno => format!("errno {}", code.abs()),
        // The same number on Linux; the kernel's trace and the table say the first.
        errno => format!("{errno:?}").replace("ENOTSUP", "EOPNOTSUPP").replace("EOPEOPNOTSUPP", "EOPNOTSUPP"),
    }
}

fn action_name(action: u32) -> &'static str {
    match action {
        0 => "XDP_ABORTED",
        1 => "XDP_DROP",
        2 => "XDP_PASS",
        3 => "XDP_TX",
        4 => "XDP_REDIRECT",
        _ => "an unknown action",
    }
}

/// Explains a loss by what the lab knows of the target.
///
/// `reason_name` gives the running kernel's name of an skb drop reason.
pub fn explain(loss: Loss, target: Option<&Target>, reason_name: &dyn Fn(u32) -> Option<String>) -> Explanation {
    let port = target.map_or("the target", |t| t.port.as_str());
    let peer = target.and_then(|t| t.peer.as_ref());
    let peer_port = peer.map_or("its peer", |p| p.port.as_str());
    let (reason, cause, fix) = match loss {
        Loss::Redirect(code) => {
            let reason = format!("redirect: {}", errno_name(code));
            let (cause, fix) = redirect(code, target, port, peer, peer_port);
            (reason, cause, fix)
        }
        Loss::Devmap(0) if target.is_some_and(|target| target.nic) => (
            "devmap: ring full".to_owned(),
            Some(format!("the transmit ring of {port} had no room for the burst: the NIC did not send as fast")),
            Some(format!("send smaller batches (traffic.batch), or give {port} a larger ring (rings.tx)")),
        ),
        Loss::Devmap(0) => (
            "devmap: ring full".to_owned(),
            Some(format!("the ring of {peer_port} had no room for the burst that {port} sent")),
            Some("send smaller batches (64 on a ring of 256), or give the receiver a CPU of its own".to_owned()),
        ),
        Loss::Devmap(code) => {
            let reason = format!("devmap: {}", errno_name(code));
            let (cause, fix) = unable(code, target, port, peer, peer_port);
            (reason, cause, fix)
        }
        Loss::BulkTx(code) => {
            let name = if code == 0 { "ring full".to_owned() } else { errno_name(code) };
            let (cause, fix) = if code == 0 {
                let whose = if target.is_some_and(|target| target.nic) { port } else { peer_port };
                (Some(format!("the ring of {whose} had no room")), Some("send smaller batches".to_owned()))
            } else {
                unable(code, target, port, peer, peer_port)
            };
            (format!("tx: {name}"), cause, fix)
        }
        Loss::Exception(0) => (
            "exception: XDP_ABORTED".to_owned(),
            Some("the program returned XDP_ABORTED, or redirected into an empty map slot".to_owned()),
            Some("check that the map has an entry for every key that the program uses".to_owned()),
        ),
        Loss::Exception(action) => (
            format!("exception: {}", action_name(action)),
            Some(format!("the driver could not carry out {}", action_name(action))),
            None,
        ),
        Loss::Freed(number) => {
            let name = reason_name(number).unwrap_or_else(|| format!("reason {number}"));
            let (cause, fix) = freed(&name, target, port, peer, peer_port);
            (format!("skb: {name}"), cause, fix)
        }
        Loss::Cpumap => (
            "cpumap: queue full".to_owned(),
            Some("the other CPU did not keep up, and its queue had no room left".to_owned()),
            Some("send slower, or give the queue more room: options.queue (at most 16384)".to_owned()),
        ),
        Loss::SocketRing | Loss::SocketFill | Loss::Socket | Loss::NoSocket => socket(loss, port),
        Loss::Missed => (
            "nic: missed".to_owned(),
            Some(format!("the NIC of {port} had no buffer for the frame: its receiver did not keep up")),
            Some(format!("send more slowly, or give {port} larger rings (rings.rx) or more queues")),
        ),
        Loss::NoTarget => (
            "broadcast: no target".to_owned(),
            Some("no port of the map could take the frame: down, too small an MTU, or no ndo_xdp_xmit".to_owned()),
            Some("bring the targets up and give their peers a program or GRO".to_owned()),
        ),
    };
    Explanation { reason, cause, fix }
}

/// Explains a loss at the `AF_XDP` sockets of a port.
fn socket(loss: Loss, port: &str) -> (String, Option<String>, Option<String>) {
    let (reason, cause, fix) = match loss {
        Loss::SocketRing => (
            "xsk: rx ring full",
            format!("frames came to {port} faster than they were taken from its AF_XDP socket"),
            "send more slowly, give the receiver a CPU of its own, or raise options.ring",
        ),
        Loss::SocketFill => (
            "xsk: fill ring empty",
            format!("the receiver at {port} had given the kernel no memory for the frame"),
            "send more slowly, give the receiver a CPU of its own, or raise options.ring",
        ),
        Loss::NoSocket => (
            "xsk: no socket",
            format!("the frame came to {port} by a queue that has no AF_XDP socket"),
            "name the queue in options.queues, or set options.fallback = \"pass\"",
        ),
        _ => (
            "xsk: dropped",
            format!("the AF_XDP socket of {port} could not take the frame, which is larger than the memory of one"),
            "lower the MTU of the port and of its peer, or send smaller frames",
        ),
    };
    (reason.to_owned(), Some(cause), Some(fix.to_owned()))
}

type CauseAndFix = (Option<String>, Option<String>);

fn redirect(code: i32, target: Option<&Target>, port: &str, peer: Option<&Peer>, peer_port: &str) -> CauseAndFix {
    match Errno::from_raw(code.abs()) {
        Errno::ENETDOWN => (Some(format!("{port} is down")), Some(format!("bring {port} up"))),
        Errno::EMSGSIZE => (
            Some(format!("the frame is larger than the MTU of {port}{}", mtu(target))),
            Some(format!("raise the MTU of {port} and of its peer, or send smaller frames")),
        ),
        Errno::EINVAL => (
            Some("the map's entry is gone or of the wrong kind".to_owned()),
            Some("fill the map with ports of the node that the program runs in".to_owned()),
        ),
        _ => unable(code, target, port, peer, peer_port),
    }
}

/// The target's device takes no redirected frames, or its peer does not.
fn unable(code: i32, target: Option<&Target>, port: &str, peer: Option<&Peer>, peer_port: &str) -> CauseAndFix {
    let errno = Errno::from_raw(code.abs());
    if !matches!(errno, Errno::EOPNOTSUPP | Errno::ENXIO) {
        return (None, None);
    }
    match peer {
        Some(peer) if !peer.up => {
            (Some(format!("{peer_port}, the peer of {port}, is down")), Some(format!("bring {peer_port} up")))
        }
        Some(peer) if !peer.polls => (
            Some(format!(
                "{peer_port}, the peer of {port}, has no program and no GRO, so that it takes no redirected frames"
            )),
            Some(format!("attach a program to {peer_port}, or set gro = true on it")),
        ),
        _ if target.is_some_and(|t| !t.up) => (Some(format!("{port} is down")), Some(format!("bring {port} up"))),
        _ => (
            Some(format!(
                "{port} takes no redirected frames: its driver lacks ndo_xdp_xmit, or wants a program loaded on it"
            )),
            Some(format!("attach a program to {port}, or redirect to a port whose driver has ndo_xdp_xmit")),
        ),
    }
}

fn freed(name: &str, target: Option<&Target>, port: &str, peer: Option<&Peer>, peer_port: &str) -> CauseAndFix {
    if target.is_some_and(|t| !t.up) {
        return (Some(format!("{port} is down")), Some(format!("bring {port} up")));
    }
    if peer.is_some_and(|p| !p.up) {
        return (Some(format!("{peer_port}, the peer of {port}, is down")), Some(format!("bring {peer_port} up")));
    }
    match name {
        "FULL_RING" | "NOT_SPECIFIED" => (
            Some(format!("the kernel freed the frame on its way out of {port}; a full ring looks like this")),
            Some("send more slowly, or in smaller batches".to_owned()),
        ),
        "PKT_TOO_BIG" => (
            Some(format!("the frame is larger than the MTU of {port}{}", mtu(target))),
            Some(format!("raise the MTU of {port}, or send smaller frames")),
        ),
        _ => (None, None),
    }
}

fn mtu(target: Option<&Target>) -> String {
    target.map_or_else(String::new, |t| format!(" ({} bytes)", t.mtu))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(up: bool, peer_up: bool, polls: bool) -> Target {
        let peer = Some(Peer { port: "sink:in0".into(), up: peer_up, polls });
        Target { port: "dut:out0".into(), up, mtu: 1500, nic: false, peer }
    }

    #[test]
    fn each_row_of_the_table_has_a_cause_and_a_fix() {
        let names = |n| (n == 2).then(|| "NOT_SPECIFIED".to_owned());
        let rows = [
            (Loss::Redirect(-libc::EOPNOTSUPP), target(true, true, false)),
            (Loss::Redirect(-libc::ENXIO), target(true, true, false)),
            (Loss::Redirect(-libc::ENETDOWN), target(false, true, true)),
            (Loss::Redirect(-libc::EMSGSIZE), target(true, true, true)),
            (Loss::Redirect(-libc::EOPNOTSUPP), target(true, true, true)),
            (Loss::Devmap(-libc::ENXIO), target(true, false, true)),
            (Loss::Devmap(0), target(true, true, true)),
            (Loss::BulkTx(0), target(true, true, true)),
            (Loss::Exception(0), target(true, true, true)),
            (Loss::Freed(2), target(true, false, true)),
            (Loss::Freed(2), target(true, true, true)),
            (Loss::NoTarget, target(true, true, true)),
            (Loss::SocketRing, target(true, true, true)),
            (Loss::SocketFill, target(true, true, true)),
            (Loss::Socket, target(true, true, true)),
            (Loss::NoSocket, target(true, true, true)),
        ];
        let text: Vec<String> = rows
            .iter()
            .map(|(loss, target)| {
                let e = explain(*loss, Some(target), &names);
                format!("{}\n  cause: {}\n  fix: {}", e.reason, e.cause.unwrap(), e.fix.unwrap())
            })
            .collect();
        insta::assert_snapshot!(text.join("\n"));
    }

    #[test]
    fn an_unknown_errno_is_shown_by_number() {
        assert_eq!(errno_name(-9999), "errno 9999");
        assert_eq!(errno_name(-95), "EOPNOTSUPP");
    }
}
