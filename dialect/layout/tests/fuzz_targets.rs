//! The fuzz targets of `fuzz/`, for a while, on random bytes and on damaged examples.

mod fuzz;

use std::time::Duration;

use arbtest::arbtest;

fn target(run: fn(&[u8]), budget: u64) {
    arbtest(|u| {
        let length = u.arbitrary_len::<u8>()?;
        run(u.bytes(length)?);
        Ok(())
    })
    .budget(Duration::from_millis(budget));
}

/// Random bytes rarely parse: examples with some bytes exchanged get deeper.
fn damaged(run: fn(&[u8]), examples: &[&str]) {
    arbtest(|u| {
        let mut bytes = u.choose(examples)?.as_bytes().to_vec();
        for _ in 0..u.int_in_range(0..=4)? {
            let at = u.int_in_range(0..=bytes.len() - 1)?;
            let by = *u.choose(b"0123456789-+,:()[]@SRwo<>?\"{}x \xff")?;
            match u.int_in_range(0..=2)? {
                0 => bytes[at] = by,
                1 => bytes.insert(at, by),
                _ if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => {}
            }
        }
        run(&bytes);
        Ok(())
    })
    .budget(Duration::from_millis(400));
}

#[test]
fn text() {
    target(fuzz::text, 200);
    damaged(
        fuzz::text,
        &[
            "Sw<3,4,3> o S[(8, 2) : (4@lane, 1)] + R[2 : 4@warp] - 5@\"a b\"",
            "S[(?, 64)]",
            "S[] + R[(9223372036854775807, 2) : (-1, 0)]",
        ],
    );
}

#[test]
fn json() {
    target(fuzz::json, 200);
    let layout: axe_layout::Layout = "Sw<3,4,3> o S[(8, 2) : (4@lane, 1)] + R[2 : 4@warp] + 5"
        .parse()
        .unwrap();
    damaged(fuzz::json, &[&serde_json::to_string(&layout).unwrap()]);
}

#[test]
fn cute() {
    target(fuzz::cute, 200);
    damaged(
        fuzz::cute,
        &[
            "((2,2),(4,(2,3))):((1,4),(8,(2,_0)))",
            "Sw<3,4,3> o 0 o (8,64):(64,1)",
            "((4,8),2)",
        ],
    );
}

#[test]
fn sharding() {
    target(fuzz::sharding, 200);
    damaged(
        fuzz::sharding,
        &[
            "[Shard(0), Replicate(), Partial(\"sum\")]",
            "P(('x', 'y'), None)",
            "S0RS1",
            "#sdy.sharding<@mesh, [{\"x\"}, {\"y\":(2)2, ?}], replicated={\"z\"}>",
            "[[0, 1], [1]]",
        ],
    );
}

#[test]
fn operations() {
    target(fuzz::operations, 3000);
}

#[test]
fn bridges() {
    target(fuzz::bridges, 2000);
}
