//! NICs, lent to a lab and given back.
//!
//! ```text
//! lease ─▶ still free? ─▶ journal: what it was like ─▶ down, into the node, settings ─▶ up ─▶ carrier ─▶ canary
//!                                      │
//! down, the end of a run, an error, gc ┴▶ find it, wherever it is ─▶ settings, name, home, up ─▶ lease
//! ```
//!
//! A NIC is known by its PCI address and by nothing else: its name is another one in the lab, and the kernel gives it one
//! of its own where it falls out of a namespace that is gone. Everything that is needed to give it back stands in the
//! journal before anything of it is changed.
//!
//! | file | owns |
//! |---|---|
//! | `lease` | one lab a NIC |
//! | `borrowed` | what a NIC is like, to be put back |
//! | `take` | from the host into a node |
//! | `give_back` | from wherever it is to where it was |

mod borrowed;
mod give_back;
mod lease;
mod take;

use std::{net::IpAddr, time::Duration};

pub use borrowed::Borrowed;
pub(crate) use give_back::{Place, give_back};
pub use lease::Lease;
pub(crate) use take::set_affinity;
pub use take::{Loan, PortSettings, take};

use super::{HostError, journal::JournalError, nics::Refusal};

/// How long a link may take from up to a carrier: negotiating, and a driver's reset before that.
pub const CARRIER: Duration = Duration::from_secs(15);

/// Why a NIC could not be lent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LendError {
    /// No lab may take it, as it is now.
    #[error("NIC {nic} ({pci}) may not be taken: {refusal}{}", refusal.fix(nic).map(|fix| format!(". To free it: {fix}")).unwrap_or_default())]
    Refused {
        /// Its name.
        nic: String,
        /// Its PCI address.
        pci: String,
        /// Why.
        refusal: Box<Refusal>,
    },
    /// It is not there any more.
    #[error("there is no NIC at {pci}: it was there when the topology's cables were matched, and is gone")]
    Gone {
        /// Its PCI address.
        pci: String,
    },
    /// It can't be as the file wants it.
    #[error("NIC {nic} ({pci}) can't be what port {port} asks for")]
    Setting {
        /// Its name.
        nic: String,
        /// Its PCI address.
        pci: String,
        /// The port, as `node:port`.
        port: String,
        /// What was tried, and what the driver said.
        source: Box<HostError>,
    },
    /// The host refused.
    #[error("lend NIC {nic} ({pci})")]
    Host {
        /// Its name.
        nic: String,
        /// Its PCI address.
        pci: String,
        /// Why.
        source: Box<HostError>,
    },
    /// It could not be written down, and so nothing was changed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// An address that a NIC had.
pub type Had = (IpAddr, u8);
