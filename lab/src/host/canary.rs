//! A frame that says which port it came out of: proof that two ports are cabled together.
//!
//! It is of the ethertype that IEEE 802 sets apart for experiments (0x88b5), so that no stack answers it.

use std::{
    io,
    time::{Duration, Instant},
};

use pnet::datalink::{
    Channel, DataLinkReceiver, DataLinkSender, NetworkInterface,
    linux::{self, Config},
};

use super::HostError;
use crate::topology::Mac;

/// `ETHERTYPE_IEEE_LOCAL1`.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// Smallest Ethernet frame in memory, without FCS.
const FRAME: usize = 60;
/// Bytes of the two MAC addresses and the ethertype.
const HEADER: usize = 14;

/// A socket at one port, in the namespace that it was opened in.
pub struct Canary {
    port: String,
    mac: Mac,
    sender: Box<dyn DataLinkSender>,
    receiver: Box<dyn DataLinkReceiver>,
}

impl std::fmt::Debug for Canary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canary").field("port", &self.port).finish_non_exhaustive()
    }
}

/// What came in within some milliseconds.
enum Came {
    /// A frame that holds a word.
    Word(u64),
    /// Somebody else's frame.
    Other,
    /// No frame.
    Nothing,
}

impl Canary {
    /// Opens a socket at a device of the namespace that the thread is in. `port` is what errors call it.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn open(port: &str, name: &str, ifindex: u32, mac: Mac) -> Result<Self, HostError> {
        let interface = NetworkInterface {
            name: name.to_owned(),
            description: String::new(),
            index: ifindex,
            mac: None,
            ips: Vec::new(),
            flags: 0,
        };
        let config = Config { read_timeout: Some(Duration::from_millis(5)), ..Config::default() };
        let failed = |source| HostError::system(format!("open a packet socket at {port}"), source);
        match linux::channel(&interface, config).map_err(failed)? {
            Channel::Ethernet(sender, receiver) => Ok(Self { port: port.to_owned(), mac, sender, receiver }),
            _ => Err(failed(io::Error::from(io::ErrorKind::Unsupported))),
        }
    }

    /// Sends a frame that holds a word, to one address or to all.
    ///
    /// # Errors
    /// Where the kernel does not take it.
    pub fn send(&mut self, to: Option<Mac>, word: u64) -> Result<(), HostError> {
        let failed = |source| HostError::system(format!("send a frame from {}", self.port), source);
        match self.sender.send_to(&frame(to, self.mac, word), None) {
            Some(Ok(())) => Ok(()),
            Some(Err(source)) => Err(failed(source)),
            None => Err(failed(io::Error::from(io::ErrorKind::WriteZero))),
        }
    }

    /// The words that came in until a deadline, or until one of them is the one that is waited for.
    ///
    /// # Errors
    /// Where the socket fails, as it does when its device goes.
    pub fn receive(&mut self, until: Instant, wanted: Option<u64>) -> Result<Vec<u64>, HostError> {
        let mut words = Vec::new();
        while Instant::now() < until {
            if let Came::Word(word) = self.next()? {
                words.push(word);
            }
            if wanted.is_some_and(|wanted| words.contains(&wanted)) {
                break;
            }
        }
        Ok(words)
    }

    /// The words that came in already, read until none is left, or a deadline.
    ///
    /// # Errors
    /// As [`Canary::receive`].
    pub fn waiting(&mut self, until: Instant) -> Result<Vec<u64>, HostError> {
        let mut words = Vec::new();
        while Instant::now() < until {
            match self.next()? {
                Came::Word(word) => words.push(word),
                Came::Other => {}
                Came::Nothing => break,
            }
        }
        Ok(words)
    }

    fn next(&mut self) -> Result<Came, HostError> {
        match self.receiver.next() {
            Ok(frame) => Ok(word(frame).map_or(Came::Other, Came::Word)),
            Err(error) if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) => {
                Ok(Came::Nothing)
            }
            Err(source) => Err(HostError::system(format!("receive at {}", self.port), source)),
        }
    }
}

fn frame(to: Option<Mac>, from: Mac, word: u64) -> [u8; FRAME] {
    let mut frame = [0; FRAME];
    frame[..6].copy_from_slice(&to.map_or([0xff; 6], |mac| mac.0));
    frame[6..12].copy_from_slice(&from.0);
    frame[12..HEADER].copy_from_slice(&ETHERTYPE);
    frame[HEADER..HEADER + 8].copy_from_slice(b"xdplab\0\0");
    frame[HEADER + 8..HEADER + 16].copy_from_slice(&word.to_be_bytes());
    frame
}

/// The word of a frame that a lab sent, possibly longer than it was.
fn word(frame: &[u8]) -> Option<u64> {
    let payload = frame.get(HEADER..HEADER + 16)?;
    let is_ours = frame.get(12..HEADER) == Some(&ETHERTYPE) && payload.starts_with(b"xdplab\0\0");
    is_ours.then(|| payload[8..].try_into().ok().map(u64::from_be_bytes)).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_word_arrives_as_it_was_sent(value: u64, from: [u8; 6], to: [u8; 6], further in 0usize..20) {
            let mut sent = frame(Some(Mac(to)), Mac(from), value).to_vec();
            sent.resize(FRAME + further, 0);
            prop_assert_eq!(word(&sent), Some(value));
        }

        #[test]
        fn other_frames_hold_no_word(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(word(&bytes), None);
        }
    }
}
