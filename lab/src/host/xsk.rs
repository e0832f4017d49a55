//! `AF_XDP` sockets, one a receive queue: their memory, their rings, and what the kernel counts of them.
//!
//! The crate `xdp` has the rings. Its packets are raw pointers into the socket's memory (UMEM), and a socket must be
//! closed before that goes; both are kept in here. Frames come and go as byte slices.
//!
//! A driver that can shares the memory with the NIC (zero-copy); all others, veth among them, copy each frame once.

use std::{
    io,
    os::fd::{AsRawFd, RawFd},
    sync::Arc,
    time::{Duration, Instant},
};

use xdp::{
    RingConfigBuilder, Rings, Umem,
    nic::NicIndex,
    slab::{HeapSlab, Slab as _},
    socket::{BindFlags, PollTimeout, SocketError, XdpSocket, XdpSocketBuilder},
    umem::{FrameSize, UmemCfgBuilder},
};

use super::HostError;
use crate::topology::XSK_FRAME_MOST;

/// Descriptors of a ring unless asked otherwise, as in the kernel's own samples.
pub const RING: u32 = 2048;

/// Frames that are taken at once.
pub const BATCH: usize = 64;

/// `XDP_PACKET_HEADROOM`: the kernel keeps it free before each frame.
const HEADROOM: u32 = 256;

/// The kernel lets go of a closed socket's queue in its own time, from a work queue.
const REBIND: Duration = Duration::from_secs(2);

/// Where a socket is bound, and how large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XskSpec {
    /// The interface's index in the calling thread's namespace.
    pub ifindex: u32,
    /// The queue.
    pub queue: u32,
    /// Descriptors of its ring, a power of two.
    pub ring: u32,
    /// Largest frame in bytes, without FCS; up to [`XSK_FRAME_MOST`].
    pub frame_bytes: u32,
}

/// What the kernel dropped at a socket, in frames since it was bound (`XDP_STATISTICS`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct XskDrops {
    /// The receive ring was full: the receiver takes frames too slowly.
    pub ring_full: u64,
    /// The fill ring was empty: the receiver gives frames' memory back too slowly.
    pub fill_empty: u64,
    /// For any other reason, a frame larger than the memory of one for instance.
    pub other: u64,
}

impl XskDrops {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.ring_full + self.fill_empty + self.other
    }

    /// The sum of two sockets' drops.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            ring_full: self.ring_full + other.ring_full,
            fill_empty: self.fill_empty + other.fill_empty,
            other: self.other + other.other,
        }
    }
}

/// A bound socket, apart from its rings: may be looked at while another thread receives.
pub struct XskSocket {
    socket: XdpSocket,
    spec: XskSpec,
    zero_copy: bool,
}

impl std::fmt::Debug for XskSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("XskSocket")
            .field("spec", &self.spec)
            .field("zero_copy", &self.zero_copy)
            .finish_non_exhaustive()
    }
}

impl AsRawFd for XskSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.raw_fd()
    }
}

impl XskSocket {
    /// Whether NIC and socket share their memory, or the kernel copies each frame.
    pub fn zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Where it is bound.
    pub fn spec(&self) -> &XskSpec {
        &self.spec
    }

    /// Whether frames wait in the receive ring.
    ///
    /// # Errors
    /// Where the kernel refuses to tell.
    pub fn has_frames(&self) -> io::Result<bool> {
        self.wait(Duration::ZERO)
    }

    /// Waits for frames in the receive ring, whole milliseconds at most; whether there are some.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn wait(&self, most: Duration) -> io::Result<bool> {
        self.socket.poll_read(PollTimeout::new(Some(most)))
    }

    /// What the kernel dropped here.
    ///
    /// # Errors
    /// Where the kernel refuses to tell.
    pub fn drops(&self) -> Result<XskDrops, HostError> {
        let failed = |error| failure("read the statistics of", &self.spec, error);
        let seen = self.socket.statistics().map_err(failed)?;
        // In copy mode a frame without memory counts in both.
        let fill_empty = seen.rx_fill_ring_empty_descs.min(seen.rx_dropped);
        Ok(XskDrops { ring_full: seen.rx_ring_full, fill_empty, other: seen.rx_dropped - fill_empty })
    }
}

/// The parts of a socket, in the order in which they must go: the kernel uses the memory until the socket is closed.
/// Where somebody still looks at the socket then, the kernel uses the memory's pages, which it has pinned, not what has
/// come in their place.
struct Parts {
    rings: Rings,
    socket: Arc<XskSocket>,
    umem: Umem,
}

impl Parts {
    /// Opens and binds a socket. `receives`: it has a receive ring, else a transmit ring.
    fn open(spec: XskSpec, receives: bool) -> Result<Self, HostError> {
        let deadline = Instant::now() + REBIND;
        loop {
            match Self::bind(spec, receives) {
                Err(SocketError::Bind(error))
                    if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline =>
                {
                    std::thread::sleep(Duration::from_millis(1));
                }
                outcome => return outcome.map_err(|error| failure("bind", &spec, error)),
            }
        }
    }

    fn bind(spec: XskSpec, receives: bool) -> Result<Self, SocketError> {
        let invalid = |reason: String| SocketError::SocketCreation(io::Error::new(io::ErrorKind::InvalidInput, reason));
        if spec.frame_bytes > XSK_FRAME_MOST {
            return Err(invalid(format!("a frame of {} bytes is over {XSK_FRAME_MOST}", spec.frame_bytes)));
        }
        let small = spec.frame_bytes <= 2048 - HEADROOM;
        // Twice as many frames as the receive ring holds: it is the ring that overflows, not the memory that runs out.
        let frames = spec.ring.saturating_mul(if receives { 2 } else { 1 });
        let umem = UmemCfgBuilder {
            frame_size: if small { FrameSize::TwoK } else { FrameSize::FourK },
            frame_count: frames,
            ..UmemCfgBuilder::default()
        };
        let rings = RingConfigBuilder {
            rx_count: if receives { spec.ring } else { 0 },
            tx_count: if receives { 0 } else { spec.ring },
            // The kernel wants both, also where one is never used.
            fill_count: frames,
            completion_count: spec.ring,
        };
        let umem = umem.build().map_err(|error| invalid(error.to_string()))?;
        let rings = rings.build().map_err(|error| invalid(error.to_string()))?;
        let mut umem = Umem::map(umem).map_err(SocketError::SocketCreation)?;
        let mut builder = XdpSocketBuilder::new()?;
        let (mut rings, flags): (Rings, BindFlags) = builder.build_rings(&umem, rings)?;
        if receives {
            // SAFETY: the memory outlives the socket: `Self` drops it last.
            unsafe { rings.fill_ring.enqueue(&mut umem, frames as usize) };
        }
        // Without a wish the kernel takes zero-copy where the driver has it, and copies elsewhere.
        let socket = builder.bind(NicIndex::new(spec.ifindex), spec.queue, flags)?;
        let zero_copy = is_zero_copy(&socket).map_err(SocketError::SocketCreation)?;
        Ok(Self { rings, socket: Arc::new(XskSocket { socket, spec, zero_copy }), umem })
    }
}

/// A socket that receives.
pub struct XskReceiver {
    parts: Parts,
    taken: HeapSlab,
}

// SAFETY: what keeps it from being sent are the raw pointers of `taken`. They point into the memory that is sent with
// them, and `receive` leaves none behind.
unsafe impl Send for XskReceiver {}

impl std::fmt::Debug for XskReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("XskReceiver").field(&self.parts.socket).finish()
    }
}

impl XskReceiver {
    /// Opens a socket and gives the kernel memory for twice as many frames as its ring holds. To be called in the
    /// interface's namespace; the socket stays in it.
    ///
    /// # Errors
    /// Where there is no such interface or queue, the queue has a socket, or the kernel refuses the memory.
    pub fn open(spec: XskSpec) -> Result<Self, HostError> {
        Ok(Self { parts: Parts::open(spec, true)?, taken: HeapSlab::with_capacity(BATCH) })
    }

    /// The socket, to be put into an XSKMAP or looked at.
    pub fn socket(&self) -> &Arc<XskSocket> {
        &self.parts.socket
    }

    /// Takes up to [`BATCH`] frames, and gives their memory back to the kernel; how many there were.
    pub fn receive(&mut self, mut each: impl FnMut(&[u8])) -> usize {
        let Parts { rings, umem, .. } = &mut self.parts;
        let Some(rx) = &mut rings.rx_ring else { return 0 };
        // SAFETY: the frames are used up below, before this function returns, and the memory lives longer.
        let count = unsafe { rx.recv(umem, &mut self.taken) };
        while let Some(packet) = self.taken.pop_back() {
            each(&packet);
            umem.free_packet(packet);
        }
        // A full fill ring takes nothing, and what is left over goes with the next batch.
        // SAFETY: the memory outlives the socket: `Parts` drops it last.
        unsafe { rings.fill_ring.enqueue(umem, count) };
        count
    }
}

/// A socket that sends.
pub struct XskSender {
    parts: Parts,
    ready: HeapSlab,
    pushed: u64,
    completed: u64,
}

// SAFETY: as for `XskReceiver`: the pointers of `ready` point into the memory that is sent with them.
unsafe impl Send for XskSender {}

impl std::fmt::Debug for XskSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("XskSender").field(&self.parts.socket).field(&self.completed).finish()
    }
}

impl XskSender {
    /// Opens a socket. To be called in the interface's namespace; the socket stays in it.
    ///
    /// # Errors
    /// Where there is no such interface or queue, the queue has a socket, or the kernel refuses the memory.
    pub fn open(spec: XskSpec) -> Result<Self, HostError> {
        Ok(Self { parts: Parts::open(spec, false)?, ready: HeapSlab::with_capacity(BATCH), pushed: 0, completed: 0 })
    }

    /// The socket.
    pub fn socket(&self) -> &Arc<XskSocket> {
        &self.parts.socket
    }

    /// Frames that the kernel is done with: handed to the driver, or freed on the way there.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Frames that were put into the memory, and that the kernel is not done with.
    pub fn outstanding(&self) -> u64 {
        self.pushed - self.completed
    }

    /// Puts a frame, without FCS, at the end of the next batch; `false` where there is no room until [`Self::flush`].
    ///
    /// # Errors
    /// Where the frame is larger than the socket was opened for.
    pub fn push(&mut self, frame: &[u8]) -> io::Result<bool> {
        if self.ready.available() == 0 {
            return Ok(false);
        }
        // SAFETY: the packet goes into `ready` and from there into the ring, or back; all of them end before the memory.
        let Some(mut packet) = (unsafe { self.parts.umem.alloc() }) else { return Ok(false) };
        let fits = packet.append(frame).is_ok();
        if !fits {
            self.parts.umem.free_packet(packet);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the frame is too large for the socket's memory"));
        }
        if let Some(packet) = self.ready.push_front(packet) {
            self.parts.umem.free_packet(packet);
            return Ok(false);
        }
        self.pushed += 1;
        Ok(true)
    }

    /// Hands the batch to the kernel, lets it send, and takes back the memory of what it is done with.
    ///
    /// In copy mode one call of this sends up to 32 frames; see [`Self::outstanding`].
    ///
    /// # Errors
    /// Where the kernel refuses to send, the device being down for instance.
    pub fn flush(&mut self) -> io::Result<()> {
        let Parts { rings, umem, socket } = &mut self.parts;
        if let Some(tx) = &mut rings.tx_ring {
            // SAFETY: the memory outlives the socket: `Parts` drops it last.
            unsafe { tx.send(&mut self.ready) };
        }
        let kicked = kick(socket.as_raw_fd());
        let frames = umem.capacity();
        self.completed += rings.completion_ring.dequeue(umem, frames) as u64;
        kicked
    }
}

/// Lets the kernel send what is in the transmit ring.
fn kick(socket: RawFd) -> io::Result<()> {
    // SAFETY: no memory is handed over: neither data nor an address.
    let sent = unsafe { libc::sendto(socket, std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
    if sent >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // A batch was sent and more is left (EAGAIN), the driver or the memory was full for now (EAGAIN, ENOBUFS), a
        // frame was freed on the way out (EBUSY), which the observer sees: all is well with the socket.
        Some(libc::EAGAIN | libc::ENOBUFS | libc::EBUSY | libc::EINTR) => Ok(()),
        _ => Err(error),
    }
}

fn is_zero_copy(socket: &XdpSocket) -> io::Result<bool> {
    let mut options = libc::xdp_options { flags: 0 };
    let mut length = size_of::<libc::xdp_options>() as libc::socklen_t;
    // SAFETY: both pointers are to locals that outlive the call, and the length is the first one's.
    let result = unsafe {
        libc::getsockopt(socket.raw_fd(), libc::SOL_XDP, libc::XDP_OPTIONS, (&raw mut options).cast(), &raw mut length)
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

/// The kernel's monotonic clock in nanoseconds: the one that programs read.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local. This clock can't be missing, so that the call can't fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn failure(what: &str, spec: &XskSpec, error: SocketError) -> HostError {
    let (SocketError::SocketCreation(source)
    | SocketError::Bind(source)
    | SocketError::SetSockOpt { inner: source, .. }
    | SocketError::GetSockOpt { inner: source, .. }
    | SocketError::RingMap { inner: source, .. }) = error;
    let why = match source.raw_os_error() {
        Some(libc::EBUSY) => " (the queue has another socket)",
        Some(libc::EINVAL) => " (is there such a queue?)",
        Some(libc::ENODEV) => " (there is no such device in this namespace)",
        Some(libc::ENOBUFS | libc::ENOMEM) => " (no memory that could be locked: raise RLIMIT_MEMLOCK)",
        _ => "",
    };
    HostError::system(
        format!("{what} an AF_XDP socket at queue {} of device {}{why}", spec.queue, spec.ifindex),
        source,
    )
}
