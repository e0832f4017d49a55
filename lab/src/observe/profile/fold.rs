//! From addresses to names: which samples are of the work, and what they add up to.

use std::collections::{BTreeMap, HashMap};

use super::symbols::Symbols;
use crate::{
    host::perf::{RawStack, Samples},
    record::profile::{Profile, ProfileRow, ProfileStack, SymbolKind},
};

/// The functions under which the kernel handles packets for whoever sent them, whatever thread is interrupted for it.
const PACKET_WORK: [&str; 4] = ["net_rx_action", "napi_threaded_poll", "run_ksoftirqd", "cpu_map_kthread_run"];
/// What all of user code is called: its symbols are not looked up.
const USER: &str = "user code [user]";

/// Whose time a sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Work,
    Idle,
    Elsewhere,
}

/// A stack by name, the outermost caller first, and the kind of its innermost function.
fn name(stack: &RawStack, symbols: &Symbols) -> (Vec<String>, SymbolKind) {
    if stack.in_user {
        return (vec![USER.to_owned()], SymbolKind::User);
    }
    let mut kind = SymbolKind::Kernel;
    let mut names: Vec<String> = Vec::with_capacity(stack.kernel.len());
    for (n, &address) in stack.kernel.iter().enumerate() {
        // All but the first are return addresses: the call is before them, and may be its function's last instruction.
        let symbol = symbols.at(if n == 0 { address } else { address - 1 });
        if n == 0 {
            kind = symbol.kind;
        }
        names.push(symbol.name.to_owned());
    }
    names.reverse();
    (names, kind)
}

fn whose(stack: &RawStack, names: &[String], threads: &[u32]) -> Whose {
    let bare = |name: &String| name.split(['.', ' ']).next().is_some_and(|name| PACKET_WORK.contains(&name));
    if names.iter().any(bare) {
        Whose::Work
    } else if stack.thread == 0 {
        Whose::Idle
    } else if threads.is_empty() || threads.contains(&stack.thread) {
        Whose::Work
    } else {
        Whose::Elsewhere
    }
}

/// Adds samples up; the clock, the CPU and the notes are the caller's to say.
pub(super) fn fold(samples: &Samples, symbols: &Symbols, threads: &[u32]) -> Profile {
    let mut profile = Profile { lost: samples.lost, throttled: samples.throttled, ..Profile::default() };
    let mut rows: HashMap<(String, SymbolKind), u64> = HashMap::new();
    // Ordered, so that equal samples make equal profiles.
    let mut stacks: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for (stack, &count) in &samples.stacks {
        let (names, kind) = name(stack, symbols);
        match whose(stack, &names, threads) {
            Whose::Idle => profile.idle += count,
            Whose::Elsewhere => profile.elsewhere += count,
            Whose::Work => {
                profile.samples += count;
                if let Some(innermost) = names.last() {
                    *rows.entry((innermost.clone(), kind)).or_default() += count;
                }
                *stacks.entry(names).or_default() += count;
            }
        }
    }
    let all = profile.samples.max(1) as f64;
    profile.rows = rows
        .into_iter()
        .map(|((symbol, kind), samples)| ProfileRow { symbol, kind, samples, percent: 100.0 * samples as f64 / all })
        .collect();
    profile.rows.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.symbol.cmp(&b.symbol)));
    profile.stacks = stacks.into_iter().map(|(stack, samples)| ProfileStack { stack, samples }).collect();
    profile.stacks.sort_by_key(|stack| std::cmp::Reverse(stack.samples));
    profile
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::program::jited::JitedFunction;

    const BASE: u64 = 0xffff_ffff_8100_0000;
    const PROGRAM: u64 = 0xffff_ffff_c000_0000;

    fn symbols() -> Symbols {
        let names = ["veth_poll", "net_rx_action.isra.0", "do_idle", "bpf_test_run_xdp_live"];
        let text: String =
            names.iter().enumerate().map(|(n, name)| format!("{:x} t {name}\n", BASE + 0x100 * n as u64)).collect();
        let function = JitedFunction { name: "xdp_sink".to_owned(), addresses: PROGRAM..PROGRAM + 64, program: 1 };
        Symbols::new(&text, &[function]).unwrap()
    }

    fn stack(thread: u32, kernel: &[u64]) -> RawStack {
        RawStack { thread, in_user: kernel.is_empty(), kernel: kernel.to_vec() }
    }

    fn samples(stacks: impl IntoIterator<Item = (RawStack, u64)>) -> Samples {
        Samples { stacks: stacks.into_iter().collect(), ..Samples::default() }
    }

    #[test]
    fn work_is_what_the_threads_do_and_what_the_kernel_does_with_packets() {
        let (poll, softirq, idle, live) = (BASE, BASE + 0x110, BASE + 0x210, BASE + 0x310);
        let samples = samples([
            (stack(7, &[PROGRAM, poll + 0x20, softirq, live]), 5),
            (stack(7, &[PROGRAM + 8, poll + 0x30, softirq, live]), 2),
            (stack(7, &[]), 1),
            // Packets, handled in an interrupt of the idle task, and of somebody else.
            (stack(0, &[poll, softirq, idle]), 3),
            (stack(9, &[poll, softirq]), 1),
            (stack(0, &[idle]), 40),
            (stack(9, &[live]), 20),
            (stack(9, &[]), 10),
        ]);
        let profile = fold(&samples, &symbols(), &[7]);
        assert_eq!((profile.samples, profile.idle, profile.elsewhere), (12, 40, 30));
        let rows: Vec<String> =
            profile.rows.iter().map(|r| format!("{} {:?} {} {:.1}", r.symbol, r.kind, r.samples, r.percent)).collect();
        insta::assert_snapshot!(rows.join("\n"), @"
        xdp_sink [bpf] Bpf 7 58.3
        veth_poll Kernel 4 33.3
        user code [user] User 1 8.3
        ");
        let stacks: Vec<String> =
            profile.stacks.iter().map(|s| format!("{} {}", s.stack.join(";"), s.samples)).collect();
        insta::assert_snapshot!(stacks.join("\n"), @"
        bpf_test_run_xdp_live;net_rx_action.isra.0;veth_poll;xdp_sink [bpf] 7
        do_idle;net_rx_action.isra.0;veth_poll 3
        net_rx_action.isra.0;veth_poll 1
        user code [user] 1
        ");
    }

    #[test]
    fn without_threads_everything_but_idle_is_work() {
        let samples = samples([(stack(7, &[BASE]), 1), (stack(9, &[BASE]), 2), (stack(0, &[BASE + 0x200]), 4)]);
        let profile = fold(&samples, &symbols(), &[]);
        assert_eq!((profile.samples, profile.idle, profile.elsewhere), (3, 4, 0));
    }

    #[test]
    fn a_call_that_is_its_functions_last_instruction_is_still_its_callers() {
        let samples = samples([(stack(7, &[PROGRAM, BASE + 0x100]), 1)]);
        assert_eq!(fold(&samples, &symbols(), &[]).stacks[0].stack, ["veth_poll", "xdp_sink [bpf]"]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_made_up(
            counts in prop::collection::vec((0_u32..4, 0_u64..0x400, 0_u64..0x400, 1_u64..1000), 0..40),
        ) {
            let mut taken = Samples::default();
            let mut all = 0;
            for (thread, a, b, count) in counts {
                *taken.stacks.entry(stack(thread, &[BASE + a, BASE + b])).or_default() += count;
                all += count;
            }
            let profile = fold(&taken, &symbols(), &[1, 2]);
            prop_assert_eq!(profile.samples + profile.idle + profile.elsewhere, all);
            prop_assert_eq!(profile.rows.iter().map(|row| row.samples).sum::<u64>(), profile.samples);
            prop_assert_eq!(profile.stacks.iter().map(|stack| stack.samples).sum::<u64>(), profile.samples);
            let percent: f64 = profile.rows.iter().map(|row| row.percent).sum();
            prop_assert!(profile.samples == 0 || (percent - 100.0).abs() < 1e-6);
        }
    }
}
