//! Verdicts in nanoseconds: equal programs are equal, known slowdowns are found. `cargo bench --bench verdicts` counts how
//! often, with as many comparisons as that takes.

use xdplab::{
    compare::{CompareOptions, pairing::Pairing},
    lab::Cabling,
    record::compare::{CompareReport, CompareRow, CompareVerdict},
    run::Silent,
    topology::{self, Topology},
    traffic::Stop,
};

/// A path with a program that drops, after some steps of work that only cost time.
fn dropping(extra: u32) -> Topology {
    let text = format!(
        "name = \"compared\"\n[nodes.gen]\n[nodes.dut]\n[[links]]\nkind = \"veth\"\nends = [\"gen:tx0\", \"dut:rx0\"]\n\
         [programs.dut]\nbuiltin = \"drop\"\nattach = [\"dut:rx0\"]\noptions.extra = {extra}\n\
         [[scenarios]]\nname = \"drop\"\nmodes = [\"native\", \"generic\"]\n\
         traffic = {{ from = \"gen:tx0\", frame-bytes = 64, frames = 1000 }}\nexpect = {{ drop = [\"dut:rx0\"] }}\n"
    );
    topology::parse("compared.toml".as_ref(), &text).unwrap()
}

#[test]
fn a_program_is_as_fast_as_itself_and_a_known_slowdown_is_found() {
    if !xdplab::testing::has("root") {
        return;
    }
    let compare = |extra: u32, budget: f64| {
        let pairing = Pairing::new(dropping(0), dropping(extra), "a".to_owned(), "b".to_owned());
        let options = CompareOptions {
            budget: Some(budget),
            reloads: 16,
            blocks: 4,
            floor: false,
            seed: Some(7),
            ..CompareOptions::default()
        };
        xdplab::compare::run(&pairing, &options, &Stop::default(), &Silent).unwrap()
    };
    // Two hundred steps take a good hundred nanoseconds: whatever the machine is busy with, they show.
    let slower = compare(300, 20.0);
    assert_eq!(slower.rows.len(), 2);
    for row in &slower.rows {
        assert_eq!(row.verdict, CompareVerdict::Regressed, "{row:#?}");
        assert!(row.delta_ns > 20.0 && row.reloads >= 6 && row.blocks >= row.reloads, "{row:#?}");
    }
    let faster = Pairing::new(dropping(300), dropping(0), "a".to_owned(), "b".to_owned());
    let options =
        CompareOptions { budget: Some(1.0), reloads: 16, blocks: 4, floor: false, ..CompareOptions::default() };
    let faster = xdplab::compare::run(&faster, &options, &Stop::default(), &Silent).unwrap();
    assert!(faster.rows.iter().all(|row| row.verdict == CompareVerdict::Improved), "{:#?}", faster.rows);
    // An interval misses nothing once in a while, by what it promises: equal programs are within the budget, and it may
    // be that one of them seems to be better by some noise.
    let same = compare(0, 200.0);
    for row in &same.rows {
        assert!(matches!(row.verdict, CompareVerdict::Ok | CompareVerdict::Improved), "{row:#?}");
        assert!(row.delta_ns.abs() < 50.0, "{row:#?}");
    }
    assert_eq!((same.seed, same.interleaved), (7, true));
    let few = CompareOptions { reloads: 1, ..CompareOptions::default() };
    let pairing = Pairing::new(dropping(0), dropping(0), "a".to_owned(), "b".to_owned());
    let error = xdplab::compare::run(&pairing, &few, &Stop::default(), &Silent).unwrap_err();
    assert!(error.is_of_the_input(), "{error}");
    insta::assert_snapshot!(error, @"1 reloads are too few: an interval of 90 % takes 6 at least. Windows of one load say where its code lay, not what it costs");
}

#[test]
fn a_budget_below_the_noise_floor_is_refused() {
    if !xdplab::testing::has("root") {
        return;
    }
    let pairing = Pairing::new(dropping(0), dropping(0), "a".to_owned(), "b".to_owned());
    let options = CompareOptions { budget: Some(1e-6), ..CompareOptions::default() };
    let error = xdplab::compare::run(&pairing, &options, &Stop::default(), &Silent).unwrap_err();
    assert!(error.is_of_the_input() && error.to_string().contains("below the noise floor"), "{error}");
}

/// Two hops, by the sink's clock: a program that redirects, after some steps of work that only cost time.
fn redirecting(extra: u32) -> Topology {
    let text = format!(
        "name = \"verdicts\"\n[nodes.gen]\n[nodes.dut]\n[nodes.sink]\n\
         [[links]]\nkind = \"veth\"\nends = [\"gen:tx0\", \"dut:rx0\"]\n\
         [[links]]\nkind = \"veth\"\nends = [\"dut:out0\", \"sink:in0\"]\n\
         [programs.redirect]\nbuiltin = \"redirect_map\"\nattach = [\"dut:rx0\"]\n\
         maps.tx_ports = [\"dut:out0\"]\noptions.extra = {extra}\n\
         [programs.sink]\nbuiltin = \"sink\"\nattach = [\"sink:in0\"]\n\
         [[scenarios]]\nname = \"redirect\"\ntraffic = {{ from = \"gen:tx0\", frame-bytes = 64, frames = 1000 }}\n\
         expect = {{ deliver = [\"sink:in0\"], lost = 0 }}\n"
    );
    topology::parse("verdicts.toml".as_ref(), &text).unwrap()
}

/// A comparison of the bare program with one that takes some steps more.
fn against(extra: u32, options: CompareOptions) -> CompareReport {
    let pairing = Pairing::new(redirecting(0), redirecting(extra), "a".to_owned(), "b".to_owned());
    let options = CompareOptions { floor: false, ..options };
    xdplab::compare::run(&pairing, &options, &Stop::default(), &Silent).unwrap()
}

fn rows(extra: u32, runs: u64, budget: f64, seconds: f64) -> Vec<CompareRow> {
    let one = |seed| {
        let options = CompareOptions { budget: Some(budget), seed: Some(seed), seconds, ..CompareOptions::default() };
        against(extra, options).rows.remove(0)
    };
    (0..runs).map(one).collect()
}

#[test]
fn of_equal_programs_none_is_regressed_against_a_nanosecond() {
    if !xdplab::testing::has("root") {
        return;
    }
    let rows = rows(0, 5, 1.0, 3.0);
    assert!(rows.iter().all(|row| row.verdict != CompareVerdict::Regressed), "{rows:#?}");
    assert!(rows.iter().all(|row| row.reloads >= 6), "{rows:#?}");
}

#[test]
fn three_nanoseconds_more_are_found_every_time() {
    if !xdplab::testing::has("root") {
        return;
    }
    let rows = rows(11, 5, 0.5, 60.0);
    assert!(rows.iter().all(|row| row.verdict == CompareVerdict::Regressed), "{rows:#?}");
}

#[test]
fn an_interval_narrows_within_seconds() {
    if !xdplab::testing::has("root") {
        return;
    }
    let report = against(0, CompareOptions { seconds: 4.0, ..CompareOptions::default() });
    let row = &report.rows[0];
    let (Some(low), Some(high)) = (row.ci[0], row.ci[1]) else { panic!("{row:#?}") };
    println!("{low:.3} to {high:.3} ns after {} reloads in {:.1} s", row.reloads, row.seconds);
    assert!((high - low) / 2.0 < 4.0 && report.lead_ms.is_some(), "{report:#?}");
}

#[test]
fn without_loading_anew_the_same_programs_stay_where_they_are() {
    if !xdplab::testing::has("root") {
        return;
    }
    let kept = CompareOptions { reload: false, reloads: 6, ..CompareOptions::default() };
    let report = against(0, kept);
    assert_eq!(report.rows[0].reloads, 6);
    assert!(report.notes.iter().any(|note| note.starts_with("programs were not loaded anew")), "{:?}", report.notes);
}

#[test]
fn what_the_cables_were_made_of_is_in_the_report() {
    if !xdplab::testing::has("root") {
        return;
    }
    let text = "name = \"cabled\"\n[nodes.gen]\n[nodes.dut]\n\
                [[links]]\nkind = \"cable\"\nends = [\"gen:tx0\", \"dut:rx0\"]\nnic = { driver = \"i40e\" }\n\
                [programs.dut]\nbuiltin = \"drop\"\nattach = [\"dut:rx0\"]\n\
                [[scenarios]]\nname = \"drop\"\ntraffic = { from = \"gen:tx0\", frame-bytes = 64, frames = 1000 }\n\
                expect = { drop = [\"dut:rx0\"] }\n";
    let side = || topology::parse("cabled.toml".as_ref(), text).unwrap();
    let pairing = Pairing::new(side(), side(), "a".to_owned(), "b".to_owned());
    let note = "veth pairs stand in for all cables: no NICs fit";
    let cabling = Cabling { notes: vec![note.to_owned()], ..Cabling::default() };
    let options = CompareOptions { reloads: 6, blocks: 1, floor: false, cabling, ..CompareOptions::default() };
    let report = xdplab::compare::run(&pairing, &options, &Stop::default(), &Silent).unwrap();
    let [cable] = report.links.as_slice() else { panic!("{:?}", report.links) };
    assert_eq!((cable.made_of.as_str(), cable.stands_in_for.as_deref()), ("veth", Some("i40e")));
    assert!(report.notes.iter().any(|said| said == note), "{:?}", report.notes);
}

#[test]
fn a_second_hop_costs_more_though_it_takes_another_lab() {
    if !xdplab::testing::has("root") {
        return;
    }
    // The same sender, traffic and scenario; the candidate has a node, a link and a program more.
    let mut one = dropping(0);
    one.scenarios[0].name = "redirect".to_owned();
    let pairing = Pairing::new(one, redirecting(0), "one".to_owned(), "two".to_owned());
    assert_eq!(pairing.differs_in, ["nodes", "links and ports", "names and places of programs"]);
    let options = CompareOptions { budget: Some(5.0), reloads: 16, blocks: 4, ..CompareOptions::default() };
    let report = xdplab::compare::run(&pairing, &options, &Stop::default(), &Silent).unwrap();
    let [row] = report.rows.as_slice() else { panic!("{report:#?}") };
    assert_eq!(row.verdict, CompareVerdict::Regressed, "{row:#?}");
    assert!(row.delta_ns > 5.0 && row.reloads >= 6 && report.floor_ns.is_some(), "{report:#?}");
    assert!(report.notes.iter().any(|note| note.contains("differ in nodes, links and ports")), "{:?}", report.notes);
    assert_eq!(report.fingerprint.0["port * driver"], "veth");
    // The first is in both labs.
    assert_eq!(report.links.len(), 2, "{:?}", report.links);
    println!("{:.1} ns more ({:.1} to {:.1}), floor {:?}", row.delta_ns, row.a_ns, row.b_ns, report.floor_ns);
}
