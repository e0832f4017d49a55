//! Progress on a terminal; nothing elsewhere, but for a wait that a user must know of.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use xdplab::run::Progress;

/// A bar on standard error.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    lab: String,
}

impl Bar {
    /// A bar for a lab, hidden where standard error is no terminal.
    pub(crate) fn new(lab: &str) -> Self {
        let bar = ProgressBar::no_length();
        if !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {wide_bar:.cyan/blue} {human_pos}/{human_len}")
        {
            bar.set_style(style);
        }
        Self { bar, lab: lab.to_owned() }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn step(&self, what: &str) {
        self.bar.set_message(format!("{}: {what}", self.lab));
        self.bar.tick();
    }

    fn frames(&self, made: u64, of: u64) {
        if of > 0 {
            self.bar.set_length(of);
        }
        self.bar.set_position(made);
    }

    fn waiting(&self, what: &str) {
        // Also where no terminal is: a job that stands still must say why.
        self.bar.suspend(|| eprintln!("{}: waiting: {what}", self.lab));
    }
}
