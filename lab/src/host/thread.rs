//! The lab thread: the only thread that ever enters a namespace.
//!
//! A worker of a runtime that entered a namespace and did not return would poison every later task on it, and threads
//! of a blocking pool keep the namespace that they started in. So each lab has one thread of its own, which enters,
//! opens or attaches what must be opened or attached in there, and leaves. Sockets keep the namespace that they were
//! opened in, so that one runtime, on this thread, drives the sockets of all nodes at once.

use std::{
    any::Any,
    future::Future,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::mpsc::{Sender, channel},
    thread::JoinHandle,
};

use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};

use super::{HostError, netns::Netns};

type Job = Box<dyn FnOnce(&Inside) + Send>;

/// A lab's own thread. Signals are blocked on it: a signal would cut a run of live frames short.
#[derive(Debug)]
pub struct LabThread {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// Proof of being on the lab thread, with what only that thread has. Can't leave it.
#[derive(Debug)]
pub struct Inside {
    home: Netns,
    runtime: tokio::runtime::Runtime,
    // Neither Send nor Sync: entering a namespace is a matter of one thread.
    on_this_thread: PhantomData<*const ()>,
}

impl LabThread {
    /// Starts the thread, in the namespace of the caller.
    ///
    /// # Errors
    /// Where the kernel has no thread, or no event queue, left.
    pub fn start(name: &str) -> Result<Self, HostError> {
        let (jobs, queue) = channel::<Job>();
        let (started, ready) = channel();
        // The kernel shows 15 bytes of a thread's name.
        let short: String = name.chars().filter(|c| *c != '\0').take(15).collect();
        let thread = std::thread::Builder::new()
            .name(short)
            .spawn(move || {
                let inside = match Inside::new() {
                    Ok(inside) => inside,
                    Err(error) => {
                        // The receiver waits for this one message.
                        let _ = started.send(Err(error));
                        return;
                    }
                };
                let _ = started.send(Ok(()));
                for job in queue {
                    job(&inside);
                }
            })
            .map_err(|source| HostError::system("start the lab thread", source))?;
        match ready.recv() {
            Ok(Ok(())) => Ok(Self { jobs: Some(jobs), thread: Some(thread) }),
            Ok(Err(error)) => Err(error),
            Err(_) => {
                Err(HostError::system("start the lab thread", std::io::Error::from(std::io::ErrorKind::BrokenPipe)))
            }
        }
    }

    /// Runs work on the thread and waits for it; the work may borrow from the caller.
    ///
    /// # Panics
    /// With the work's own panic. The thread is back in its home namespace by then and goes on.
    pub fn run<R: Send>(&self, work: impl FnOnce(&Inside) -> R + Send) -> R {
        let (answer, result) = channel::<Result<R, Box<dyn Any + Send>>>();
        let job: Box<dyn FnOnce(&Inside) + Send + '_> = Box::new(move |inside| {
            // Sending fails only if the caller is gone, and it waits below.
            let _ = answer.send(catch_unwind(AssertUnwindSafe(|| work(inside))));
        });
        // SAFETY: only the lifetime is changed. The job runs, and is dropped, before `recv` below returns: it either
        // sends its answer, or is dropped unrun with its sender, and both wake `recv`. Nothing that it borrows can end
        // before that, because this function does not return before.
        let job: Job = unsafe { std::mem::transmute::<Box<dyn FnOnce(&Inside) + Send + '_>, Job>(job) };
        let sent = self.jobs.as_ref().expect("present until dropped").send(job);
        assert!(sent.is_ok(), "the lab thread has ended");
        match result.recv() {
            Ok(Ok(value)) => value,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(error) => panic!("the lab thread ended while it worked: {error}"),
        }
    }
}

impl Drop for LabThread {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // A panic of a job was resumed on its caller already.
            let _ = thread.join();
        }
    }
}

impl Inside {
    fn new() -> Result<Self, HostError> {
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&SigSet::all()), None)
            .map_err(|errno| HostError::system("block signals on the lab thread", errno))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .map_err(|source| HostError::system("start the lab's runtime", source))?;
        Ok(Self { home: Netns::current()?, runtime, on_this_thread: PhantomData })
    }

    /// The namespace that the thread lives in.
    pub fn home(&self) -> &Netns {
        &self.home
    }

    /// Runs work in a namespace and comes back, also if it panics.
    ///
    /// # Errors
    /// Where the namespace can't be entered.
    ///
    /// # Panics
    /// Where the thread can't come back: going on in the wrong namespace would change what it must not.
    pub fn enter<R>(&self, netns: &Netns, work: impl FnOnce() -> R) -> Result<R, HostError> {
        netns.enter()?;
        let _back = Back { home: &self.home };
        Ok(work())
    }

    /// Drives a future, and with it the netlink connections that were opened here.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Makes the runtime the current one, for sockets that are opened in `work`.
    pub(super) fn with_runtime<R>(&self, work: impl FnOnce() -> R) -> R {
        let _guard = self.runtime.enter();
        work()
    }

    /// Lets a task run whenever this thread drives a future.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.spawn(task));
    }
}

/// Comes back home when dropped.
struct Back<'a> {
    home: &'a Netns,
}

impl Drop for Back<'_> {
    fn drop(&mut self) {
        self.home.enter().expect("return to the home namespace");
    }
}
