//! What several senders cost together.

use xdplab::{
    run::{RunOptions, Silent, run},
    traffic::{Stop, cpu},
};

use crate::senders::shared;

#[test]
fn the_rates_of_two_senders_add_up() {
    if !xdplab::testing::has("root") || cpu::usable().len() < 2 {
        return;
    }
    let price = |senders| {
        let report = run(&shared(senders), &RunOptions::default(), &Stop::default(), &Silent).unwrap();
        let native = &report.scenarios[0];
        let told = native.notes.iter().any(|note| note.contains("clocks of 2 senders"));
        assert_eq!(told, senders == 2, "{:?}", native.notes);
        native.cost.as_ref().map(|cost| cost.ns).unwrap()
    };
    let (one, two) = (price(1), price(2));
    // On a machine of their own it is half; a neighbour may have some of it.
    assert!(two < 0.9 * one, "{one:.1} ns with one, {two:.1} ns with two");
}
