//! The command `xdplab`: one small file a verb, each a thin layer over the library.

mod accept;
mod bench;
mod check;
mod cli;
mod compare;
mod discover;
mod doctor;
mod down;
mod exec;
mod failure;
mod gc;
mod graph;
mod history;
mod inspect;
mod kernels;
mod ls;
mod nics;
mod output;
mod profiles;
mod progress;
mod report;
mod run;
mod schema;
mod shell;
mod signals;
mod up;
mod vm;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{
    cli::{Cli, Verb},
    failure::Failure,
};

fn main() -> ExitCode {
    failure::install_panic_hook();
    let cli = Cli::parse();
    let result = match cli.verb {
        Verb::Check(args) => check::check(&args),
        Verb::Up(args) => up::up(&args),
        Verb::Down(args) => down::down(&args),
        Verb::Ls(args) => ls::ls(&args),
        Verb::Inspect(args) => inspect::inspect(&args),
        Verb::Exec(args) => exec::exec(&args),
        Verb::Run(args) => run::run(&args),
        Verb::Bench(args) => bench::bench(&args),
        Verb::Accept(args) => accept::accept(&args),
        Verb::Compare(args) => compare::compare(&args),
        Verb::Calibrate(args) => compare::calibrate(&args),
        Verb::Report(args) => report::report(&args),
        Verb::History(args) => history::history(&args),
        Verb::Graph(args) => graph::graph(&args),
        Verb::Nics(args) => nics::nics(&args),
        Verb::Doctor(args) => doctor::doctor(&args),
        Verb::Vm(args) => vm::vm(&args),
        Verb::Gc(args) => gc::gc(&args),
        Verb::Schema => schema::schema(),
        Verb::Completions(args) => shell::completions(&args),
        Verb::Man => shell::man(),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(Failure::BrokenPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.exit_code())
        }
    }
}
