//! What [`#[xdplab::test]`](macro@crate::test) stands on: a lab for a test, and the policy on skips.
//!
//! A runner shows a skipped test as passed. So a missing ability is a failure unless `XDPLAB_MAY_SKIP` names it
//! (`XDPLAB_MAY_SKIP=root,pktgen`), and every skip is written to `target/xdplab-skips`, which CI prints.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

use crate::{
    Lab,
    host::ability::{self, State},
    topology,
    xdp::XdpMode,
};

/// Runs a test with an ephemeral lab of its own, its programs attached as `up` would attach them.
///
/// # Panics
/// Where the topology is wrong or the lab can't be brought up: a test fails then.
pub fn with_lab(path: &str, text: &str, test: impl FnOnce(&mut Lab)) {
    if !has("root") {
        return;
    }
    let topology = topology::parse(Path::new(path), text).unwrap_or_else(|errors| panic!("{errors}"));
    let mut lab = Lab::new(&topology).unwrap_or_else(|error| panic!("{}", crate::host::describe(path, &error)));
    lab.install(None, XdpMode::Native, true).unwrap_or_else(|error| panic!("{}", crate::host::describe(path, &error)));
    test(&mut lab);
    lab.down().unwrap_or_else(|error| panic!("{}", crate::host::describe(path, &error)));
}

/// Whether the host has an ability that a test needs. `false`: the test is to end; the skip is on record.
///
/// # Panics
/// Where the host lacks it and `XDPLAB_MAY_SKIP` does not name it, and where `name` is none that `xdplab doctor` shows.
pub fn has(name: &str) -> bool {
    let missing = match name {
        "root" => !crate::host::is_root(),
        // A name that nothing has would never be missing, and the test would run without what it needs.
        _ => match ability::all().iter().find(|ability| ability.name == name) {
            Some(ability) => ability.state == State::Missing,
            None => panic!("`{name}` is no ability that `xdplab doctor` knows"),
        },
    };
    if missing {
        lacks(name);
    }
    !missing
}

/// Ends a test for what the host was found to lack, by a trial of the test's own: writes the skip down.
///
/// # Panics
/// Where `XDPLAB_MAY_SKIP` does not name it.
pub fn lacks(name: &str) {
    let allowed = std::env::var("XDPLAB_MAY_SKIP").unwrap_or_default();
    assert!(
        allowed.split(',').any(|allowed| allowed.trim() == name),
        "this host lacks {name}, which the test needs; XDPLAB_MAY_SKIP={name} allows to skip it"
    );
    skip(name);
}

/// Writes a skip down.
fn skip(name: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    eprintln!("skipped: {test} needs {name}");
    let file = skips_file();
    let written = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
        let mut file = OpenOptions::new().create(true).append(true).open(&file)?;
        writeln!(file, "{test}: {name}")
    });
    if let Err(error) = written {
        panic!("write the skip to {}: {error}", file.display());
    }
}

fn skips_file() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    target.join("xdplab-skips")
}

/// Runs an async test to its end, on a runtime of its own.
///
/// # Panics
/// Where no runtime can be made.
pub fn block_on<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap_or_else(|error| panic!("make a runtime: {error}")).block_on(test)
}
