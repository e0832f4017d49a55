//! SIGINT, SIGTERM and SIGHUP ask a run to stop: it settles its account and takes its lab down by itself.

use std::{
    io,
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
    iterator::Signals,
};
use xdplab::traffic::Stop;

/// How soon a second signal still counts as the first: `timeout`, for one, signals a process and then its group.
const SAME: Duration = Duration::from_millis(500);

/// A stop that signals ask for. Another signal later on ends the process at once: the kernel takes an ephemeral lab away.
///
/// # Errors
/// Where the handlers can't be installed.
pub(crate) fn stop_on_signals() -> io::Result<Stop> {
    let stop = Stop::default();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let asked = stop.clone();
    thread::Builder::new().name("signals".into()).spawn(move || {
        let mut first: Option<Instant> = None;
        for _ in signals.forever() {
            if first.is_some_and(|first| first.elapsed() > SAME) {
                std::process::exit(130);
            }
            first.get_or_insert_with(Instant::now);
            asked.ask();
        }
    })?;
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
