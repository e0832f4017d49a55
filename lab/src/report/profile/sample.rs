//! Profiles made by hand, for tests of the renderers.

use crate::record::profile::{Profile, ProfileRow, ProfileStack, SymbolKind};

/// A profile of some stacks; the samples of a stack are its innermost function's.
pub(super) fn of(stacks: &[(&str, u64)]) -> Profile {
    let mut profile = Profile {
        clock: "cpu-clock".to_owned(),
        frequency_hz: 9_973,
        cpu: 1,
        samples: stacks.iter().map(|(_, samples)| samples).sum(),
        idle: 3,
        ..Profile::default()
    };
    for &(stack, samples) in stacks {
        let stack: Vec<String> = stack.split(';').map(str::to_owned).collect();
        let symbol = stack.last().cloned().unwrap_or_default();
        let percent = 100.0 * samples as f64 / profile.samples as f64;
        if let Some(row) = profile.rows.iter_mut().find(|row| row.symbol == symbol) {
            (row.samples, row.percent) = (row.samples + samples, row.percent + percent);
        } else {
            let kind = if symbol.ends_with("[bpf]") { SymbolKind::Bpf } else { SymbolKind::Kernel };
            profile.rows.push(ProfileRow { symbol, kind, samples, percent });
        }
        profile.stacks.push(ProfileStack { stack, samples });
    }
    profile.rows.sort_by_key(|row| std::cmp::Reverse(row.samples));
    profile
}

/// A redirect with few functions.
pub(super) fn redirect() -> Profile {
    of(&[
        ("bpf_test_run_xdp_live;net_rx_action;veth_poll;veth_xdp_rcv", 420),
        ("bpf_test_run_xdp_live;net_rx_action;veth_poll;veth_xdp_rcv;xdp_redirect_map [bpf]", 210),
        ("bpf_test_run_xdp_live;net_rx_action;veth_poll;veth_xdp_rcv;xdp_sink [bpf]", 150),
        ("bpf_test_run_xdp_live;xdp_source [bpf]", 120),
        ("bpf_test_run_xdp_live;net_rx_action;veth_poll", 100),
    ])
}
