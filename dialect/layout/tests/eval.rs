//! The evaluator's golden answers, and random requests judged by the oracle.

use axe_layout::tools::answer;
use axe_layout::{Layout, generate, oracle};
use proptest::prelude::*;
use serde_json::{Value, json};

fn ask(op: &str, inputs: Value) -> Value {
    let line = json!({"id": "q", "op": op, "inputs": inputs}).to_string();
    let reply: Value = serde_json::from_str(&answer(&line).unwrap()).unwrap();
    assert_eq!(reply["id"], "q");
    reply
}

fn result(op: &str, inputs: Value) -> Value {
    let reply = ask(op, inputs);
    assert!(reply.get("error").is_none(), "{op}: {reply}");
    reply["result"].clone()
}

fn kind(op: &str, inputs: Value) -> String {
    let reply = ask(op, inputs);
    assert!(
        !reply["error"]["message"].as_str().unwrap_or("").is_empty(),
        "{op}: {reply}"
    );
    reply["error"]["kind"].as_str().unwrap().to_owned()
}

/// The paper's figure 2A.
fn fragment() -> Value {
    json!({
        "shard": [[8, 4, "lane"], [2, 1, "warp"], [4, 1, "lane"], [2, 1, "reg"]],
        "replica": [[2, 4, "warp"]], "offset": {"warp": 5}, "swizzle": null
    })
}

fn strided(iters: Value) -> Value {
    json!({"shard": iters, "replica": [], "offset": {}, "swizzle": null})
}

#[test]
fn golden_layout_operations() {
    let cases = [
        (
            "canonicalize",
            json!({"layout": strided(json!([[4, 8, "m"], [8, 1, "m"], [1, 3, "x"]]))}),
            json!({"layout": strided(json!([[32, 1, "m"]]))}),
        ),
        (
            "equal",
            json!({"a": strided(json!([[32, 1, "m"]])), "b": strided(json!([[4, 8, "m"], [8, 1, "m"]]))}),
            json!({"value": true}),
        ),
        (
            "size",
            json!({"layout": fragment(), "axis": null}),
            json!({"value": 128}),
        ),
        (
            "span",
            json!({"layout": fragment(), "axis": "warp"}),
            json!({"value": 6}),
        ),
        (
            "span",
            json!({"layout": fragment(), "axis": "absent"}),
            json!({"value": 1}),
        ),
        (
            "admits",
            json!({"layout": fragment(), "shape": [8, 16]}),
            json!({"value": true}),
        ),
        (
            "admits",
            json!({"layout": fragment(), "shape": [8, 15]}),
            json!({"value": false}),
        ),
        (
            "apply",
            json!({"layout": fragment(), "shape": [8, 16], "coords": [[2, 9]]}),
            json!({"points": [[{"warp": 6, "lane": 8, "reg": 1}, {"warp": 10, "lane": 8, "reg": 1}]]}),
        ),
        (
            "invert",
            json!({"layout": fragment(), "points": [{"warp": 10, "lane": 8, "reg": 1}, {"warp": 0}]}),
            json!({"indices": [[41], []]}),
        ),
        (
            "group",
            json!({"layout": strided(json!([[32, 1, "m"]])), "shape": [4, 8]}),
            json!({"layout": strided(json!([[4, 8, "m"], [8, 1, "m"]])), "seps": [0, 1, 2]}),
        ),
        (
            "group_many",
            json!({"layout": strided(json!([[32, 1, "m"]])), "shapes": [[4, 8], [8, 4]]}),
            json!({"layout": strided(json!([[4, 8, "m"], [2, 4, "m"], [4, 1, "m"]])),
                "seps": [[0, 1, 3], [0, 2, 3]]}),
        ),
        (
            "permute_groups",
            json!({"layout": strided(json!([[4, 8, "m"], [8, 1, "m"]])), "seps": [0, 1, 2], "perm": [1, 0]}),
            json!({"layout": strided(json!([[8, 1, "m"], [4, 8, "m"]]))}),
        ),
        (
            "swizzle_apply",
            json!({"swizzle": {"per_element": 0, "swizzle_len": 2, "atom_len": 2, "inner": true}, "values": [0, 5, 13]}),
            json!({"values": [0, 4, 14]}),
        ),
    ];
    for (op, inputs, want) in cases {
        assert_eq!(result(op, inputs), want, "{op}");
    }
}

#[test]
fn golden_cute_and_linear_operations() {
    let l = |shape: Value, stride: Value| json!({"shape": shape, "stride": stride});
    let row = l(json!([5, 4]), json!([4, 1]));
    let cases = [
        ("cute_size", json!({"a": row}), json!({"value": 20})),
        ("cute_cosize", json!({"a": row}), json!({"value": 20})),
        (
            "cute_apply",
            json!({"a": row, "indices": [0, 1, 5]}),
            json!({"values": [0, 4, 1]}),
        ),
        (
            "cute_coalesce",
            json!({"a": l(json!([2, [1, 6]]), json!([1, [6, 2]]))}),
            l(json!(12), json!(1)),
        ),
        (
            "cute_composition",
            json!({"a": l(json!(20), json!(2)), "b": row}),
            l(json!([5, 4]), json!([8, 2])),
        ),
        (
            "cute_complement",
            json!({"a": l(json!(4), json!(2)), "cotarget": 24}),
            l(json!([2, 3]), json!([1, 8])),
        ),
        (
            "cute_logical_divide",
            json!({"a": l(json!([4, 2, 3]), json!([2, 1, 8])), "tiler": l(json!(4), json!(2))}),
            l(json!([[2, 2], [2, 3]]), json!([[4, 1], [2, 8]])),
        ),
        (
            "cute_logical_product",
            json!({"a": l(json!([2, 2]), json!([4, 1])), "tiler": l(json!(6), json!(1))}),
            l(json!([[2, 2], [2, 3]]), json!([[4, 1], [2, 8]])),
        ),
        (
            "linear_swizzle",
            json!({"swizzle": {"per_element": 0, "swizzle_len": 2, "atom_len": 2, "inner": true}, "bits": 4}),
            json!({"columns": [1, 2, 5, 10]}),
        ),
        (
            "linear_compose",
            json!({"a": [2, 1], "b": [3, 1]}),
            json!({"columns": [3, 2]}),
        ),
        (
            "linear_inverse",
            json!({"columns": [1, 3]}),
            json!({"columns": [1, 3]}),
        ),
        (
            "linear_rank",
            json!({"columns": [1, 1, 2]}),
            json!({"value": 2}),
        ),
        (
            "linear_convert",
            json!({"src": [1, 2], "dst": [2, 1]}),
            json!({"columns": [2, 1]}),
        ),
        (
            "linear_apply",
            json!({"reg": [1], "lane": [2, 4], "points": [[3, 1]]}),
            json!({"values": [7]}),
        ),
        (
            "linear_from_layout",
            json!({"layout": strided(json!([[4, 1, "lane"], [2, 1, "reg"]]))}),
            json!({"columns": {"lane": [0, 1, 2], "reg": [1, 0, 0]}}),
        ),
    ];
    for (op, inputs, want) in cases {
        assert_eq!(result(op, inputs), want, "{op}");
    }
    let same = json!({"reg": [1], "lane": [2, 4]});
    let steps = result(
        "warp_shuffle",
        json!({"src": same, "dst": same, "elem_bits": 32}),
    );
    let shuffles = steps["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|step| step["op"] == "shfl");
    assert_eq!(shuffles.count(), 0);
}

#[test]
fn golden_errors() {
    let huge = strided(json!([[1i64 << 62, 4, "m"]]));
    let cases = [
        ("size", json!({"layout": huge}), "overflow"),
        (
            "size",
            json!({"layout": strided(json!([[0, 1, "m"]]))}),
            "invalid",
        ),
        ("size", json!({}), "invalid"),
        ("size", json!({"layout": 3}), "invalid"),
        (
            "apply",
            json!({"layout": fragment(), "shape": [8, 16], "coords": [[8, 0]]}),
            "invalid",
        ),
        (
            "apply",
            json!({"layout": fragment(), "shape": [8, 15], "coords": []}),
            "invalid",
        ),
        (
            "group",
            json!({"layout": fragment(), "shape": [3, 5]}),
            "invalid",
        ),
        (
            "group",
            json!({"layout": strided(json!([[2, 5, "m"], [3, 1, "m"]])), "shape": [3, 2]}),
            "none",
        ),
        (
            "permute_groups",
            json!({"layout": fragment(), "seps": [0, 9], "perm": [0]}),
            "invalid",
        ),
        ("linear_inverse", json!({"columns": [1, 1]}), "none"),
        (
            "linear_apply",
            json!({"reg": [1], "lane": [], "points": [[1, 0]]}),
            "invalid",
        ),
        (
            "cute_size",
            json!({"a": {"shape": [2, 3], "stride": [1]}}),
            "invalid",
        ),
        (
            "cute_apply",
            json!({"a": {"shape": 2, "stride": 1}, "indices": [-1]}),
            "invalid",
        ),
        ("no_such_operation", json!({}), "unsupported"),
    ];
    for (op, inputs, want) in cases {
        assert_eq!(kind(op, inputs.clone()), want, "{op} {inputs}");
    }
}

#[test]
fn malformed_lines_are_answered_and_the_stream_goes_on() {
    let lines = "nonsense\n\n{\"id\": \"a\", \"op\": \"size\"\n[]\n{\"id\": 7}\n\
                 {\"id\":\"b\",\"op\":\"linear_rank\",\"inputs\":{\"columns\":[1]}}";
    let mut out = Vec::new();
    axe_layout::tools::serve(lines.as_bytes(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let replies: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<Value> = replies.iter().map(|reply| reply["id"].clone()).collect();
    assert_eq!(
        ids,
        [Value::Null, json!("a"), Value::Null, json!(7), json!("b")]
    );
    assert!(
        replies[..4]
            .iter()
            .all(|reply| reply["error"]["kind"] == "invalid")
    );
    assert_eq!(replies[4]["result"], json!({"value": 1}));
}

#[test]
fn a_swizzle_takes_the_conflicts_out_of_a_column() {
    let coords: Vec<[i64; 2]> = (0..8).map(|row| [row, 0]).collect();
    let ask = |swizzle: Value| {
        let layout = json!({"shard": [[8, 64, "m"], [64, 1, "m"]], "replica": [], "offset": {}, "swizzle": swizzle});
        result(
            "bank_ways",
            json!({"layout": layout, "shape": [8, 64], "coords": coords, "elem_bytes": 2}),
        )
    };
    assert_eq!(ask(Value::Null), json!({"value": 8}));
    let swizzle = json!({"per_element": 3, "swizzle_len": 3, "atom_len": 3, "inner": true});
    assert_eq!(ask(swizzle), json!({"value": 1}));
}

fn read(result: &Value) -> Layout {
    serde_json::from_value(result["layout"].clone()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn answers_agree_with_the_oracle(
        a in prop::collection::vec(any::<u8>(), 0..64),
        b in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let (layout, other) = (generate::layout(&a), generate::layout(&b));
        prop_assume!(layout.size() <= 512 && other.size() <= 512);
        let canonical = read(&result("canonicalize", json!({"layout": layout})));
        prop_assert!(oracle::same(&canonical, &layout));
        let equal = result("equal", json!({"a": layout, "b": other}));
        prop_assert_eq!(equal["value"].as_bool(), Some(oracle::same(&layout, &other)));
        let equal = result("equal", json!({"a": layout, "b": canonical}));
        prop_assert_eq!(equal["value"].as_bool(), Some(true));
    }

    #[test]
    fn no_line_panics(line in ".{0,80}") {
        let _ = answer(&line);
        let _ = answer(&format!("{{\"id\":1,\"op\":\"size\",\"inputs\":{{\"layout\":{line}}}}}"));
    }
}

#[test]
fn golden_analyses() {
    let rows = |text: &str| json!(text.parse::<Layout>().unwrap());
    let tile = rows("Sw<3,3,3> o S[(128, 64) : (64, 1)]");
    let plain = rows("S[(128, 64) : (64, 1)]");
    let read = rows("S[(8, 8) : (1@lane, 1@reg)]");
    assert_eq!(
        result("alias", json!({"layout": rows("S[(4, 10) : (8, 1)]")})),
        json!({"injective": false, "witness": {"first": 8, "second": 10, "point": {"m": 8}}})
    );
    assert_eq!(
        result("alias", json!({"layout": tile})),
        json!({"injective": true, "witness": null})
    );
    assert_eq!(
        result(
            "overlap",
            json!({"a": rows("S[4 : 2]"), "b": rows("S[4 : 3] + 1")})
        ),
        json!({"overlap": true, "witness": {"first": 2, "second": 1, "point": {"m": 4}}})
    );
    assert_eq!(
        result(
            "intersect",
            json!({"a": rows("S[8 : 2] + 1"), "b": rows("S[8 : 3]")})
        ),
        json!({"layout": rows("S[3 : 6] + 3")})
    );
    assert_eq!(
        kind(
            "intersect",
            json!({"a": rows("S[8 : 2]"), "b": rows("S[8 : 2] + 1")})
        ),
        "none"
    );
    assert_eq!(
        result(
            "vector_width",
            json!({"layout": tile, "shape": [128, 64], "elem_bits": 16})
        ),
        json!({"elements": 8, "bytes": 16, "alignment": 16})
    );
    let access = |layout: &Value| {
        json!({"layout": layout, "shape": [128, 64], "elem_bytes": 2, "threads": read,
               "region": [[8, 16], [16, 24]]})
    };
    let banks = result("bank_conflicts", access(&plain));
    assert_eq!(
        (&banks["passes"], &banks["conflicts"]),
        (&json!(8), &json!(7))
    );
    assert_eq!(
        result("bank_conflicts", access(&tile))["conflicts"],
        json!(0)
    );
    assert_eq!(
        result("coalescing", access(&plain)),
        json!({"sectors": 8, "minimum": 4, "bytes": 128, "efficiency": 0.5, "accesses": 1,
               "bytes_per_lane": 16})
    );
    let bytes = json!({"bytes": 4, "addresses": [0, 128, null, 256]});
    assert_eq!(result("bank_conflicts", bytes)["passes"], json!(3));
    let choice = result(
        "choose_swizzle",
        json!({"layout": plain, "shape": [128, 64], "elem_bytes": 2, "accesses": [
            {"threads": read, "region": [[0, 8], [0, 8]]},
            {"coords": [[0, 0], [0, 2], [0, 4]], "vector": 2},
        ]}),
    );
    assert_eq!(
        (&choice["notation"], &choice["free"]),
        (&json!("Sw<3,3,3>"), &json!(true))
    );
    for (op, bad) in [
        ("bank_conflicts", json!({})),
        ("bank_conflicts", json!({"bytes": 3, "addresses": [0]})),
        (
            "coalescing",
            json!({"layout": plain, "shape": [128, 64], "elem_bytes": 2}),
        ),
        (
            "choose_swizzle",
            json!({"layout": plain, "shape": [128, 64], "elem_bytes": 2, "accesses": []}),
        ),
    ] {
        assert_eq!(kind(op, bad), "invalid", "{op}");
    }
}

#[test]
fn dynamic_extents_and_open_ranges() {
    let rows = |text: &str| json!(text.parse::<Layout>().unwrap());
    let any = rows("S[(?, 8) : (8, 1)]");
    let slice = |region: Value| {
        ask(
            "slice",
            json!({"layout": any, "shape": ["?", 8], "region": region}),
        )
    };
    assert_eq!(
        slice(json!([[2, "?"], [0, 4]]))["result"],
        json!({"layout": rows("S[(?, 4) : (8, 1)] + 16")})
    );
    assert_eq!(
        slice(json!([[2, 6], [4, 8]]))["result"],
        json!({"layout": rows("S[(4, 4) : (8, 1)] + 20")})
    );
    assert_eq!(
        slice(json!([[2, "?"], [0, "?"]]))["error"]["kind"],
        "invalid"
    );
    assert_eq!(slice(json!([["?", 3], [0, 4]]))["error"]["kind"], "invalid");
    assert_eq!(
        slice(json!([[0, 9223372036854775808_u64], [0, 4]]))["error"]["kind"],
        "overflow"
    );
    assert_eq!(slice(json!([[2, "x"], [0, 4]]))["error"]["kind"], "invalid");
    assert_eq!(
        result("admits", json!({"layout": any, "shape": ["?", 4]})),
        json!({"value": true})
    );
    assert_eq!(
        result("group", json!({"layout": any, "shape": ["?", 4]}))["seps"],
        json!([0, 2, 3])
    );
    let tiled = json!({"outer": any, "outer_shape": ["?", 8], "inner": rows("S[(2, 2) : (2, 1)]"),
        "inner_shape": [2, 2]});
    assert_eq!(
        result("tile", tiled),
        json!({"layout": rows("S[(?, 2, 8, 2) : (32, 2, 4, 1)]")})
    );
    assert_eq!(
        result(
            "vector_width",
            json!({"layout": any, "shape": ["?", 8], "elem_bits": 16})
        )["bytes"],
        json!(16)
    );
    assert_eq!(kind("size", json!({"layout": any})), "unsupported");
    assert_eq!(
        kind("group", json!({"layout": any, "shape": [i64::MIN, 8]})),
        "invalid"
    );
}

#[test]
fn covers_of_boxes_without_a_slice() {
    let rows = "S[(4, 4) : (32, 1)]".parse::<Layout>().unwrap();
    let cover = json!({"layout": rows, "shape": [16], "region": [[3, 9]]});
    assert_eq!(kind("slice", cover.clone()), "none");
    let boxes = result("slice_cover", cover);
    let shown: Vec<String> = boxes["boxes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| format!("{} {}", part["region"], read(part).canonicalize()))
        .collect();
    assert_eq!(
        shown,
        [
            "[[3,4]] S[] + 3",
            "[[4,7]] S[3 : 1] + 32",
            "[[7,9]] S[2 : 29] + 35"
        ]
    );
}

/// The inner layout may have the axes that a rule makes of the tiled one's already; the answer tiles to the
/// layouts that come with it.
#[test]
fn tiles_are_found_after_splitting_or_fusing_axes() {
    let split = json!({"axis": "tid", "outer": "warp", "inner": "lane", "extent": 32});
    let fuse = json!({"warp": ["tid", 32], "lane": ["tid", 1]});
    let warps = json!([[2, 1, "warp"], [32, 1, "lane"], [4, 1, "m"]]);
    for (tiled, inner, rule) in [
        (
            json!([[64, 1, "tid"], [4, 1, "m"]]),
            "lane",
            json!({"split": split}),
        ),
        (warps, "tid", json!({"fuse": fuse})),
    ] {
        let inner = strided(json!([[32, 1, inner], [4, 1, "m"]]));
        let mut asked = json!({
            "tiled": strided(tiled), "tiled_shape": [64, 4], "inner": inner, "inner_shape": [32, 4]
        });
        assert_eq!(kind("tile_of", asked.clone()), "none");
        let (name, rule) = rule.as_object().unwrap().iter().next().unwrap();
        asked[name] = rule.clone();
        let found = result("tile_of", asked);
        let again = json!({
            "outer": found["layout"], "outer_shape": [2, 1], "inner": found["inner"], "inner_shape": [32, 4]
        });
        let both = json!({"a": result("tile", again)["layout"], "b": found["tiled"]});
        assert_eq!(result("equal", both), json!({"value": true}));
    }
}
