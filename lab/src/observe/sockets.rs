//! What was lost at a port's `AF_XDP` sockets.

use xdplab_wire::records::PortCounters;

use super::{causes::Loss, reading::SocketReading};

/// The lab's own frames that were lost at a port's sockets. `program`: what the program there saw; `passes`: it hands
/// frames of a queue without a socket to the stack.
pub(super) fn losses(program: &PortCounters, sockets: &SocketReading, passes: bool) -> [(Loss, u64); 4] {
    let SocketReading { received, unclaimed, ring_full, fill_empty, other } = sockets;
    // The kernel does not tell whose frames it dropped: those of other origin that the program saw and nobody got.
    let mut foreign = program.foreign.saturating_sub(received.foreign + unclaimed.foreign);
    let mut own = |frames: u64| {
        let others = foreign.min(frames);
        foreign -= others;
        frames - others
    };
    let left = if passes { 0 } else { unclaimed.ours + unclaimed.corrupted };
    [
        (Loss::SocketRing, own(*ring_full)),
        (Loss::SocketFill, own(*fill_empty)),
        (Loss::Socket, own(*other)),
        (Loss::NoSocket, left),
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What became of a frame.
    #[derive(Debug, Clone, Copy)]
    enum Fate {
        Received,
        Unclaimed,
        RingFull,
        FillEmpty,
        Other,
    }

    fn fate() -> impl Strategy<Value = Fate> {
        prop::sample::select(vec![Fate::Received, Fate::Unclaimed, Fate::RingFull, Fate::FillEmpty, Fate::Other])
    }

    proptest! {
        /// Whatever becomes of whose frames: as many are lost as were the lab's and did not arrive.
        #[test]
        fn every_frame_of_the_lab_arrives_or_is_lost_once(
            frames in prop::collection::vec((0u8..3, fate()), 0..200),
            passes: bool,
        ) {
            let count = |counters: &mut PortCounters, whose: u8| match whose {
                0 => counters.ours += 1,
                1 => counters.corrupted += 1,
                _ => counters.foreign += 1,
            };
            let (mut program, mut sockets) = (PortCounters::default(), SocketReading::default());
            let mut lost = 0;
            for (whose, fate) in frames {
                count(&mut program, whose);
                match fate {
                    Fate::Received => count(&mut sockets.received, whose),
                    Fate::Unclaimed => count(&mut sockets.unclaimed, whose),
                    Fate::RingFull => sockets.ring_full += 1,
                    Fate::FillEmpty => sockets.fill_empty += 1,
                    Fate::Other => sockets.other += 1,
                }
                let arrives = matches!(fate, Fate::Received) || passes && matches!(fate, Fate::Unclaimed);
                lost += u64::from(whose < 2 && !arrives);
            }
            let told: u64 = losses(&program, &sockets, passes).iter().map(|(_, frames)| frames).sum();
            prop_assert_eq!(told, lost);
        }
    }
}
