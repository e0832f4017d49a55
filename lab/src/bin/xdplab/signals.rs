//! SIGINT, SIGTERM and SIGHUP ask a run to stop: it settles its account and takes its lab down by itself.

use std::{
    io,
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};
use xdplab::traffic::Stop;

/// A stop that signals ask for. The second signal ends the process at once: the kernel takes an ephemeral lab away.
///
/// # Errors
/// Where the handlers can't be installed.
pub(crate) fn stop_on_signals() -> io::Result<Stop> {
    let stop = Stop::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag still down.
        flag::register_conditional_shutdown(signal, 130, stop.flag())?;
        flag::register(signal, stop.flag())?;
    }
    Ok(stop)
}

/// Delays SIGINT, SIGTERM and SIGHUP while a change that must be whole is made; returns whether one came.
///
/// # Errors
/// Where the handlers can't be installed.
pub(crate) fn delayed() -> io::Result<Delayed> {
    let came = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::clone(&came))?;
    }
    Ok(Delayed(came))
}

/// Signals that are held back.
#[derive(Debug)]
pub(crate) struct Delayed(Arc<AtomicBool>);

impl Delayed {
    /// Whether one came.
    pub(crate) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
