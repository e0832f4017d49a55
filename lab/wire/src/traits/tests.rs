//! The operations against a plain model, and the arithmetic against loops.

use std::ops::RangeInclusive;

use proptest::prelude::*;

use super::{
    model::{Model, Op, sequence},
    *,
};

/// Runs operations on a store and the model, and compares every answer and every byte.
fn compare<M: Mover>(capacity: usize, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut memory = vec![0xa5; capacity];
    let mut area = Area::new(&mut memory, 0).unwrap();
    let mut model = Model::new(capacity);
    prop_assert_eq!(get(&area, 0), Err(Error::Absent));
    init(&mut area).unwrap();
    for op in ops {
        let answer = match *op {
            Op::Get { key } => get(&area, key).map(|value| (value.length, value.bits)),
            Op::Set { key, length, bits } => set::<M, _>(&mut area, key, length, bits).map(|()| (0, 0)),
            Op::Delete { key } => delete::<M, _>(&mut area, key).map(|()| (0, 0)),
            Op::Trim => trim::<M, _>(&mut area).map(|spare| (spare, 0)),
            Op::Next { from } => check(&area).map(|header| header.next(from).map_or((0, 0), |key| (1, u64::from(key)))),
        };
        prop_assert_eq!(answer, model.run(op), "{:?}", op);
        let layout = model.layout();
        prop_assert_eq!(&area.bytes()[..layout.len()], layout);
        prop_assert_eq!(area.room(), model.room());
    }
    Ok(())
}

/// From room for one small value to that of a live frame, and to more than any packet has.
const CAPACITIES: [usize; 5] = [20, 32, 100, 216, 528];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn any_sequence_of_operations_does_what_the_model_does(
        capacity in prop::sample::select(CAPACITIES.to_vec()),
        length in 0usize..=64,
        seed: u64,
    ) {
        let ops = sequence(seed, length);
        compare::<Words>(capacity, &ops)?;
        compare::<Bytes>(capacity, &ops)?;
    }

    #[test]
    fn the_arithmetic_of_the_header_agrees_with_loops(high: u64, low: u64, key in 0u8..64, length in prop::sample::select(vec![0usize, 2, 4, 8])) {
        let header = Header { high, low };
        let lengths = |keys: RangeInclusive<u8>| -> usize {
            keys.map(|k| [0, 2, 4, 8][((high >> k & 1) << 1 | low >> k & 1) as usize]).sum()
        };
        prop_assert_eq!(header.total(), 16 + lengths(0..=63));
        prop_assert_eq!(header.end(key), 16 + lengths(0..=key));
        prop_assert_eq!(header.length(key), lengths(key..=key));
        prop_assert_eq!(header.offset(key) + header.length(key), header.end(key));
        let other = header.with(key, length);
        prop_assert_eq!(other.length(key), length);
        prop_assert_eq!(other.with(key, header.length(key)), header);
        prop_assert!(header.keys().eq((0..64).filter(|k| (high | low) >> k & 1 == 1)));
    }
}

#[test]
fn the_largest_header_is_counted_in_full() {
    // Also what memory full of ones looks like, which must not pass for an empty set of traits.
    let full = Header { high: u64::MAX, low: u64::MAX };
    assert_eq!((full.total(), full.end(63), full.offset(63)), (528, 528, 520));
    let mut ones = [0xff; 216];
    assert_eq!(check(&Area::new(&mut ones, 216).unwrap()), Err(Error::Broken));
}

fn assert_moves<M: Mover>(from: usize, to: usize, length: usize) {
    let ordered: Vec<u8> = (0..=255).collect();
    let mut memory = ordered.clone();
    let mut area = Area::new(&mut memory, 256).unwrap();
    if to > from { M::up(&mut area, from, to, length) } else { M::down(&mut area, from, to, length) }.unwrap();
    let mut expected = ordered;
    expected.copy_within(from..from + length, to);
    assert_eq!(memory, expected, "{length} bytes from {from} to {to}");
}

#[test]
fn both_movers_move_like_memmove_at_every_length_and_distance() {
    for length in (0..=192).step_by(2) {
        for distance in 0..=40 {
            assert_moves::<Words>(3, 3 + distance, length);
            assert_moves::<Bytes>(3, 3 + distance, length);
            assert_moves::<Words>(3 + distance, 3, length);
            assert_moves::<Bytes>(3 + distance, 3, length);
        }
    }
}

#[test]
fn what_can_t_be_done_is_said_and_changes_nothing() {
    let mut memory = [0; 28];
    let mut area = Area::new(&mut memory, 0).unwrap();
    assert_eq!(set::<Words, _>(&mut area, 1, 2, 0), Err(Error::Absent));
    init(&mut area).unwrap();
    assert_eq!(set::<Words, _>(&mut area, 64, 2, 0), Err(Error::BadKey { key: 64 }));
    assert_eq!(set::<Words, _>(&mut area, 1, 3, 0), Err(Error::BadLength { length: 3 }));
    assert_eq!(set::<Words, _>(&mut area, 1, 0, 0), Err(Error::BadLength { length: 0 }));
    assert_eq!(get(&area, 1), Err(Error::NoValue { key: 1 }));
    assert_eq!(delete::<Words, _>(&mut area, 1), Err(Error::NoValue { key: 1 }));
    set::<Words, _>(&mut area, 1, 8, 0x0102_0304_0506_0708).unwrap();
    let before = area.bytes().to_vec();
    assert_eq!(set::<Words, _>(&mut area, 0, 8, 0), Err(Error::NoRoom { asked: 32, room: 24 }));
    assert_eq!(area.bytes(), before);
    // What is missing may still fit where less is asked.
    set::<Words, _>(&mut area, 0, 4, 0x090a_0b0c).unwrap();
    assert_eq!(area.bytes()[16..], [0x0c, 0x0b, 0x0a, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
}

#[test]
fn metadata_that_is_cut_is_broken() {
    let mut memory = [0; 64];
    let mut area = Area::new(&mut memory, 0).unwrap();
    init(&mut area).unwrap();
    set::<Words, _>(&mut area, 9, 8, 1).unwrap();
    let mut cut = area.bytes()[..20].to_vec();
    let mut area = Area::new(&mut cut, 20).unwrap();
    assert_eq!(check(&area), Err(Error::Broken));
    assert_eq!(get(&area, 9), Err(Error::Broken));
    assert_eq!(set::<Words, _>(&mut area, 3, 2, 1), Err(Error::Broken));
    assert_eq!(Header::read(&Area::new(&mut cut, 12).unwrap()), Err(Error::Broken));
}
