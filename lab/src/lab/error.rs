//! Why a lab could not be brought up or run.

use crate::{
    host::HostError, host::journal::JournalError, host::lend::LendError, host::matching::NoFit,
    observe::profile::SymbolError, program::ProgramError, traffic::frames::FrameError, xdp::XdpMode,
};

/// Why a lab could not be brought up or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The host refused.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The journal could not be written, or the name is taken.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A program could not be loaded or read.
    #[error(transparent)]
    Program(Box<ProgramError>),
    /// A program could not be attached.
    #[error("attach \"{program}\" to {port} ({mode})")]
    Attach {
        /// The program's name in the file.
        program: String,
        /// The port, as `node:port`.
        port: String,
        /// The mode asked for.
        mode: XdpMode,
        /// Why.
        source: Box<ProgramError>,
    },
    /// A profile has no names.
    #[error(transparent)]
    Symbols(#[from] SymbolError),
    /// A frame could not be made.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Frames could not be sent.
    #[error("send frames from {port}")]
    Send {
        /// The port, as `node:port`.
        port: String,
        /// Why.
        source: std::io::Error,
    },
    /// A lab that stays has no process that could receive.
    #[error(
        "program \"{program}\" is the built-in xsk, whose sockets end with the process that receives from them: \
         use `xdplab run`, or give `up` another program there"
    )]
    NoReceiver {
        /// The program's name in the file.
        program: String,
    },
    /// No lab of that name is up.
    #[error("no lab \"{lab}\" is up: `xdplab ls` shows those that are")]
    NotUp {
        /// The name.
        lab: String,
    },
    /// What is known of a lab could not be read or written.
    #[error("read or write the lab's state {}", path.display())]
    State {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A lab has no node of that name.
    #[error("lab \"{lab}\" has no node \"{node}\": it has {nodes}")]
    NoNode {
        /// The lab.
        lab: String,
        /// The name.
        node: String,
        /// The nodes that it has.
        nodes: String,
    },
    /// A namespace that the lab needs exists, and is somebody else's.
    #[error(
        "namespace {name} exists already, and is not this lab's: remove it with `ip netns del {name}`, or give the topology another name"
    )]
    NamespaceTaken {
        /// The namespace.
        name: String,
    },
    /// A topology has no scenario of that name.
    #[error("no scenario \"{scenario}\": there is {present}")]
    NoScenario {
        /// The name.
        scenario: String,
        /// The scenarios that it has.
        present: String,
    },
    /// No NIC of this host may be taken.
    #[error("no NIC of this host may be taken, so that none can be asked what it is cabled to{}", not_taken.iter().map(|nic| format!("\n  {nic}")).collect::<String>())]
    NoFreeNic {
        /// Each with the reason.
        not_taken: Vec<String>,
    },
    /// No NICs of this host fit.
    #[error(transparent)]
    NoFit(#[from] NoFit),
    /// A NIC could not be lent.
    #[error(transparent)]
    Lend(Box<LendError>),
    /// A NIC's link does not come up.
    #[error(
        "{port}, which is NIC {nic}, has no carrier after {seconds} s: plug its cable in, or look at what is at the cable's other end"
    )]
    NoCarrier {
        /// The port, as `node:port`.
        port: String,
        /// The NIC.
        nic: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A NIC vanished.
    #[error("{port} is gone: its NIC was unplugged, or its driver unbound, while the lab was up")]
    PortGone {
        /// The port, as `node:port`.
        port: String,
    },
    /// Interrupts could not be given to the CPUs that a port asks for.
    #[error("give the interrupts of {port}, which is NIC {nic}, to its irq-cpus")]
    IrqCpus {
        /// The port, as `node:port`.
        port: String,
        /// The NIC.
        nic: String,
        /// Why.
        source: Box<HostError>,
    },
    /// Interrupts are to go to a CPU that this host does not have.
    #[error("{port} asks for irq-cpus = [{cpu}], and this host's CPUs are {online}: name one of those")]
    NoSuchCpu {
        /// The port, as `node:port`.
        port: String,
        /// The CPU.
        cpu: u32,
        /// The CPUs that are online, as the kernel lists them.
        online: String,
    },
    /// More senders than CPUs.
    #[error(
        "{senders} senders at {port} take as many CPUs, of which {cpus} may send{}: lower traffic.senders{}",
        below.map_or_else(String::new, |below| format!(" (its driver sends from those below its {below} queues alone)")),
        if below.is_some() { ", or give the port more queues" } else { "" }
    )]
    TooFewCpus {
        /// The port, as `node:port`.
        port: String,
        /// Senders asked for.
        senders: u32,
        /// CPUs that there are for them.
        cpus: usize,
        /// The queues of the port, where the driver sends from the CPUs below that number alone.
        below: Option<u32>,
    },
    /// Two ports are not cabled as the host file says.
    #[error(
        "no frame from {from}, which is NIC {from_nic}, arrives at {to}, which is NIC {to_nic}: are they cabled together? \
         The host file says so: correct its [[cables]], or look after the cable"
    )]
    NoCanary {
        /// The sending port.
        from: String,
        /// Its NIC.
        from_nic: String,
        /// The port that should have received.
        to: String,
        /// Its NIC.
        to_nic: String,
    },
    /// NICs are not as they were.
    #[error("not every NIC could be given back: {}. `xdplab gc` tries again", left.join("; "))]
    NotReturned {
        /// What is left.
        left: Vec<String>,
    },
    /// Bringing up failed, and what was made until then could not all be taken back.
    #[error("bring up failed, and not all of it could be taken back ({left}): `xdplab gc` tries again")]
    HalfUp {
        /// Why bringing up failed.
        source: Box<LabError>,
        /// What is left.
        left: String,
    },
}

impl LabError {
    /// Whether the file, the arguments or an object are at fault, rather than the host.
    pub fn is_of_the_input(&self) -> bool {
        match self {
            Self::Program(error) | Self::Attach { source: error, .. } => error.is_of_the_input(),
            Self::Journal(error) => {
                matches!(error, JournalError::Taken { .. } | JournalError::Busy { .. } | JournalError::Unknown { .. })
            }
            Self::Frame(_)
            | Self::NotUp { .. }
            | Self::NoNode { .. }
            | Self::NoReceiver { .. }
            | Self::NoScenario { .. }
            | Self::NamespaceTaken { .. } => true,
            Self::Host(error) => matches!(error, HostError::NoFeature { .. }),
            Self::HalfUp { source, .. } => source.is_of_the_input(),
            _ => false,
        }
    }
}

impl From<LendError> for LabError {
    fn from(error: LendError) -> Self {
        Self::Lend(Box::new(error))
    }
}

impl From<ProgramError> for LabError {
    fn from(error: ProgramError) -> Self {
        Self::Program(Box::new(error))
    }
}
