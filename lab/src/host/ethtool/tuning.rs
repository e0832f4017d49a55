//! Settings of a NIC that can be changed and put back: queues, rings, coalescing, pause, offloads, where received frames
//! are spread to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Ethtool;
use crate::host::HostError;

const GCOALESCE: u32 = 0x0e;
const SCOALESCE: u32 = 0x0f;
const GRINGPARAM: u32 = 0x10;
const SRINGPARAM: u32 = 0x11;
const GPAUSEPARAM: u32 = 0x12;
const SPAUSEPARAM: u32 = 0x13;
const GRXFHINDIR: u32 = 0x38;
const SRXFHINDIR: u32 = 0x39;
const GCHANNELS: u32 = 0x3c;
const SCHANNELS: u32 = 0x3d;
/// Words of struct `ethtool_coalesce`, and those of adaptive receiving and sending in it.
const COALESCE: usize = 23;
const ADAPTIVE: [usize; 2] = [10, 11];
/// Largest indirection table that is read, in entries.
const INDIRECTION_MOST: usize = 4096;

/// A NIC's settings; `None` where its driver has no such thing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuning {
    /// Queues: receiving only, sending only, for both.
    pub queues: Option<[u32; 3]>,
    /// Ring sizes in descriptors: receiving, sending.
    pub rings: Option<[u32; 2]>,
    /// Interrupt coalescing, as struct `ethtool_coalesce` has it behind its command.
    pub coalescing: Option<Vec<u32>>,
    /// Pause frames: negotiated, receiving, sending.
    pub pause: Option<[bool; 3]>,
    /// Offloads by the kernel's name.
    pub offloads: BTreeMap<String, bool>,
    /// The queue of each hash of received frames.
    pub indirection: Option<Vec<u32>>,
}

impl Ethtool {
    /// A NIC's settings as they are. What the driver does not have, or does not tell, is left out.
    pub fn tuning(&self, port: &str) -> Tuning {
        let settings = self.settings(port);
        Tuning {
            queues: settings.queues,
            rings: settings.rings,
            coalescing: self.numbers::<COALESCE>(port, GCOALESCE, "read coalescing").ok().map(|n| n[1..].to_vec()),
            pause: settings.pause,
            offloads: self
                .features(port)
                .unwrap_or_default()
                .into_iter()
                .filter(|(name, _)| !name.is_empty())
                .collect(),
            indirection: self.indirection(port).ok().filter(|table| !table.is_empty()),
        }
    }

    /// Puts settings in place, those that differ. Returns what could not be: each with what the driver said.
    pub fn restore(&self, port: &str, wanted: &Tuning) -> Vec<HostError> {
        let mut failed = Vec::new();
        let mut keep = |result: Result<(), HostError>| failed.extend(result.err());
        let now = self.tuning(port);
        if let Some(queues) = wanted.queues.filter(|queues| now.queues != Some(*queues)) {
            keep(self.set_queues(port, queues));
        }
        if let Some(rings) = wanted.rings.filter(|rings| now.rings != Some(*rings)) {
            keep(self.set_rings(port, rings));
        }
        if let Some(coalescing) = wanted.coalescing.as_ref().filter(|wanted| now.coalescing.as_ref() != Some(wanted)) {
            keep(self.set_coalescing(port, coalescing));
        }
        if let Some(pause) = wanted.pause.filter(|pause| now.pause != Some(*pause)) {
            keep(self.set_pause(port, pause));
        }
        keep(self.restore_offloads(port, &wanted.offloads));
        // As the driver spreads them by itself where another number of queues has changed the table's meaning.
        let table = self.indirection(port).ok();
        if let Some(wanted) =
            wanted.indirection.as_ref().filter(|wanted| table.as_ref().is_some_and(|now| now != *wanted))
        {
            keep(self.set_indirection(port, wanted));
        }
        failed
    }

    /// Offloads depend on each other, so that one can be switched only once another is: they are tried in rounds.
    fn restore_offloads(&self, port: &str, wanted: &BTreeMap<String, bool>) -> Result<(), HostError> {
        let mut last = Ok(());
        for _ in 0..3 {
            let now = self.features(port)?;
            let differ: Vec<(&String, bool)> = now
                .iter()
                .filter_map(|(name, on)| Some((name, *wanted.get(name)?)).filter(|(_, wanted)| wanted != on))
                .collect();
            if differ.is_empty() {
                return Ok(());
            }
            // All of them, whether one is refused or not.
            let refused: Vec<HostError> =
                differ.into_iter().filter_map(|(name, on)| self.set_feature(port, name, on).err()).collect();
            last = refused.into_iter().next().map_or(Ok(()), Err);
        }
        last
    }

    /// Sets the numbers of queues: receiving only, sending only, for both.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn set_queues(&self, port: &str, [rx, tx, both]: [u32; 3]) -> Result<(), HostError> {
        let mut channels = self.numbers::<9>(port, GCHANNELS, "read queues")?;
        (channels[0], channels[5], channels[6], channels[8]) = (SCHANNELS, rx, tx, both);
        self.call(port, &format!("set {rx} + {tx} + {both} queues"), channels.as_mut_ptr().cast())
    }

    /// Sets ring sizes in descriptors: receiving, sending.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn set_rings(&self, port: &str, [rx, tx]: [u32; 2]) -> Result<(), HostError> {
        let mut rings = self.numbers::<9>(port, GRINGPARAM, "read rings")?;
        (rings[0], rings[5], rings[8]) = (SRINGPARAM, rx, tx);
        self.call(port, &format!("set rings of {rx} and {tx} descriptors"), rings.as_mut_ptr().cast())
    }

    /// Sets coalescing, as struct `ethtool_coalesce` has it behind its command.
    ///
    /// # Errors
    /// Where the driver refuses.
    fn set_coalescing(&self, port: &str, words: &[u32]) -> Result<(), HostError> {
        let mut all = [0; COALESCE];
        for (to, from) in all[1..].iter_mut().zip(words) {
            *to = *from;
        }
        all[0] = SCOALESCE;
        self.call(port, "set coalescing", all.as_mut_ptr().cast())
    }

    /// Has interrupts come at a fixed rate. A driver without an adaptive one has nothing to do.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn set_adaptive_off(&self, port: &str) -> Result<(), HostError> {
        let Ok(mut words) = self.numbers::<COALESCE>(port, GCOALESCE, "read coalescing") else { return Ok(()) };
        if ADAPTIVE.iter().all(|n| words[*n] == 0) {
            return Ok(());
        }
        for n in ADAPTIVE {
            words[n] = 0;
        }
        self.set_coalescing(port, &words[1..])
    }

    /// Sets pause frames: negotiated, receiving, sending.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn set_pause(&self, port: &str, [negotiated, rx, tx]: [bool; 3]) -> Result<(), HostError> {
        let mut words = [SPAUSEPARAM, u32::from(negotiated), u32::from(rx), u32::from(tx)];
        self.call(port, "set pause frames", words.as_mut_ptr().cast())
    }

    /// Switches pause frames off, where the driver has any.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn set_pause_off(&self, port: &str) -> Result<(), HostError> {
        match self.numbers::<4>(port, GPAUSEPARAM, "read pause frames") {
            Ok([_, negotiated, rx, tx]) if (negotiated, rx, tx) != (0, 0, 0) => self.set_pause(port, [false; 3]),
            _ => Ok(()),
        }
    }

    /// The queue of each hash of received frames.
    ///
    /// # Errors
    /// Where the driver has no such table.
    pub fn indirection(&self, port: &str) -> Result<Vec<u32>, HostError> {
        // struct ethtool_rxfh_indir: command, size, then as many entries. A size of 0 asks for the size.
        let mut head = [GRXFHINDIR, 0];
        self.call(port, "read the indirection table's size", head.as_mut_ptr().cast())?;
        let size = (head[1] as usize).min(INDIRECTION_MOST);
        let mut table = vec![0; 2 + size];
        (table[0], table[1]) = (GRXFHINDIR, size as u32);
        self.call(port, "read the indirection table", table.as_mut_ptr().cast())?;
        Ok(table.split_off(2))
    }

    /// Sets the queue of each hash; an empty table is the driver's own choice.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn set_indirection(&self, port: &str, table: &[u32]) -> Result<(), HostError> {
        let mut words = vec![SRXFHINDIR, table.len() as u32];
        words.extend(table);
        self.call(port, "set the indirection table", words.as_mut_ptr().cast())
    }
}
