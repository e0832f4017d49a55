//! Traits in the kernel: the operations against the model, and each program on a real path.

#[path = "../../../lab/wire/src/traits/model.rs"]
mod model;

use model::{Model, Op, sequence};
use xdplab::program::{Traits, TraitsProgram, TraitsSpec};
use xdplab_wire::traits::script::{Answer, Step, op};

fn step(of: &Op) -> Step {
    match *of {
        Op::Get { key } => Step::new(op::GET, key, 0, 0),
        Op::Set { key, length, bits } => Step::new(op::SET, key, length as u16, bits),
        Op::Delete { key } => Step::new(op::DELETE, key, 0, 0),
        Op::Trim => Step::new(op::TRIM, 0, 0, 0),
        Op::Next { from } => Step::new(op::NEXT, from, 0, 0),
    }
}

#[test]
fn any_sequence_of_operations_does_in_the_kernel_what_the_model_does() {
    for by_bytes in [false, true] {
        let programs = [TraitsProgram::Script, TraitsProgram::Capacity];
        let traits = Traits::load(&TraitsSpec { by_bytes, ..TraitsSpec::default() }, &programs).unwrap();
        let capacity = traits.probe_capacity().unwrap();
        let mut full = 0;
        for seed in 0..10_000 {
            let ops = sequence(seed, (seed % 65) as usize);
            let mut model = Model::new(capacity);
            let expected: Vec<Answer> = ops.iter().map(|op| Answer::of(model.run(op))).collect();
            let (answers, metadata) = traits.run_script(&ops.iter().map(step).collect::<Vec<_>>()).unwrap();
            assert_eq!(answers, expected, "seed {seed}: {ops:?}");
            let layout = model.layout();
            assert_eq!(metadata[..layout.len()], layout, "seed {seed}: {ops:?}");
            assert_eq!(metadata.len(), model.room(), "seed {seed}: {ops:?}");
            full += expected.iter().filter(|answer| answer.status == 4).count();
        }
        assert!(full > 100, "the metadata was full {full} times only");
    }
}

#[test]
fn costs() {
    let costs = xdplab::bench::traits::measure(&xdplab::bench::traits::TraitsPlan::default()).unwrap();
    println!("capacity {}, empty {:?}", costs.capacity, costs.empty);
    for cost in &costs.costs {
        println!(
            "{:50} {:6.2} [{:6.2} {:6.2}] ns {:6.2} [{:6.2} {:6.2}] calls",
            cost.operation.to_string(),
            cost.ns.value,
            cost.ns.low,
            cost.ns.high,
            cost.calls.value,
            cost.calls.low,
            cost.calls.high
        );
    }
}
