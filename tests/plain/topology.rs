//! The topology file.

use std::path::{Path, PathBuf};

use xdplab::topology::{LoadError, load};

fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("topologies");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_topology_that_ships_passes_its_checks() {
    let files = shipped();
    assert_eq!(files.len(), 7);
    for file in files {
        match load(&file) {
            Ok(topology) => assert_eq!(Some(topology.name.as_str()), file.file_stem().unwrap().to_str()),
            Err(LoadError::Invalid(diagnostics)) => panic!("{diagnostics}"),
            Err(error) => panic!("{error}"),
        }
    }
}
