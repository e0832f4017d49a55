//! The topology file: what ships, what is refused and how, and what is warned of.

mod addresses;
mod mutations;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use xdplab::topology::{Diagnostics, LoadError, graph, json_schema_text, load, preflight};

/// TOML files of a folder, by name.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

/// What is wrong with one of the cases.
fn wrong(case: &str) -> Diagnostics {
    let path = format!("tests/plain/cases/{case}.toml");
    match load(path.as_ref()) {
        Ok(_) => panic!("{path} passes its checks"),
        Err(LoadError::Invalid(diagnostics)) => *diagnostics,
        Err(error) => panic!("{error}"),
    }
}

macro_rules! cases {
    ($($test:ident: $case:literal,)*) => {
        $(
            #[test]
            fn $test() {
                insta::assert_snapshot!($case, wrong($case));
            }
        )*

        const CASES: &[&str] = &[$($case),*];
    };
}

cases! {
    ten_errors_are_shown_at_once: "ten-errors",
    an_unknown_key_gets_a_suggestion: "unknown-keys",
    names_that_the_kernel_or_bpffs_refuses_are_refused: "names",
    what_is_named_twice_shows_both_places: "named-twice",
    a_table_or_key_given_twice_shows_both_places: "given-twice",
    an_mtu_is_checked_against_native_mode: "mtu-against-mode",
    a_frame_is_checked_against_every_mtu_on_its_way: "frame-over-mtu",
    a_frame_needs_room_for_the_marker: "no-room-for-the-marker",
    a_name_that_nothing_has_gets_a_suggestion: "dangling",
    what_comes_later_is_refused_and_never_ignored: "not-yet",
    addresses_and_macs_are_checked: "addresses",
    links_are_checked: "links",
    programs_are_checked: "programs",
    af_xdp_sockets_are_checked: "xsk",
    targets_and_clones_are_checked: "targets",
    numbers_that_mean_nothing_are_refused: "numbers",
    senders_each_need_a_flow: "senders",
    rates_that_never_bind_are_refused: "rates",
    an_expectation_that_can_not_hold_is_refused: "expectations",
    targets_are_skipped_by_a_native_broadcast_alone: "skip-unable",
    a_mode_is_checked_against_programs_and_queues: "modes",
    broken_syntax_hides_no_error_elsewhere: "syntax",
    one_mistake_is_one_error: "follow-ons",
    a_wrong_type_is_named: "types",
    the_right_form_is_told: "right-forms",
    what_is_not_toml_is_shown_in_part: "not-toml",
}

#[test]
fn every_case_is_tried() {
    let tried: BTreeSet<_> = CASES.iter().map(|case| (*case).to_owned()).chain(["warnings".to_owned()]).collect();
    let there: BTreeSet<_> =
        files("tests/plain/cases").iter().map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(tried, there);
}

#[test]
fn the_ten_errors_are_ten() {
    assert_eq!(wrong("ten-errors").items.len(), 10);
}

#[test]
fn every_topology_that_ships_passes_its_checks_without_a_warning() {
    let files = files("topologies");
    assert_eq!(files.len(), 11);
    for file in files {
        let topology = load(&file).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Some(topology.name.as_str()), file.file_stem().unwrap().to_str());
        let warnings = preflight::warnings(&topology);
        assert!(warnings.is_empty(), "{}", preflight::render(&topology, &warnings));
    }
}

#[test]
fn every_topology_that_ships_has_its_picture_schema_and_a_ratio_that_binds() {
    for file in files("topologies") {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("#:schema ../lab/topology.schema.json\n"), "{}", file.display());
        assert!(text.contains("# ") && text.contains("+--"), "{}", file.display());
        let topology = load(&file).unwrap();
        let perfs: Vec<_> = topology.scenarios.iter().filter_map(|scenario| scenario.perf.as_ref()).collect();
        assert!(perfs.iter().any(|perf| perf.max_ratio.is_some()), "{}", file.display());
        assert!(perfs.iter().any(|perf| perf.min_mpps.contains_key("veth")), "{}", file.display());
    }
}

#[test]
fn what_loads_and_goes_wrong_later_is_warned_of() {
    let topology = load("tests/plain/cases/warnings.toml".as_ref()).unwrap();
    insta::assert_snapshot!(preflight::render(&topology, &preflight::warnings(&topology)));
}

#[test]
fn the_committed_schema_is_what_the_types_say() {
    let committed = std::fs::read_to_string("lab/topology.schema.json").unwrap_or_default();
    assert!(
        committed == json_schema_text(),
        "lab/topology.schema.json is stale: run `cargo run -- schema > lab/topology.schema.json`"
    );
}

#[test]
fn a_topology_is_drawn_in_three_ways() {
    let topology = load("topologies/i40e-veth.toml".as_ref()).unwrap();
    insta::assert_snapshot!("mermaid", graph::mermaid(&topology));
    insta::assert_snapshot!("dot", graph::dot(&topology));
    insta::assert_snapshot!("svg", graph::svg(&topology));
}

#[test]
fn a_bridge_is_drawn_as_a_hub() {
    let topology = load("tests/plain/cases/warnings.toml".as_ref()).unwrap();
    assert!(graph::mermaid(&topology).contains("b3{{\"bridge\"}}"));
    assert!(graph::dot(&topology).contains("b3 [label=\"bridge\", shape=hexagon]"));
    let svg = graph::svg(&topology);
    assert!(svg.contains(">bridge</text>") && svg.contains(">veth, MTU 9000</text>"), "{svg}");
}

#[test]
fn a_file_that_is_not_there_too_large_or_not_text_is_an_error_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lab.toml");
    assert!(matches!(load(&path), Err(LoadError::Read { .. })));
    assert!(matches!(load(folder.path()), Err(LoadError::Read { .. })));
    assert!(matches!(load("/dev/zero".as_ref()), Err(LoadError::TooLarge { .. })));
    std::fs::write(&path, b"name = \"a\"\nabout = \"\xc3\xa9\xff\"\n").unwrap();
    assert!(matches!(load(&path), Err(LoadError::NotUtf8 { line: 2, column: 11, .. })));
}
