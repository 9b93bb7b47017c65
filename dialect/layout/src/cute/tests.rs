//! CuTe operations: the examples of the notes, and results of NVIDIA's CuTe.

use serde::Deserialize;

use super::*;
use crate::axis::Axis;
use crate::error::{Kind, Result};
use crate::layout::Layout;
use crate::swizzle::Swizzle;

fn lay(text: &str) -> CuteLayout {
    text.parse().unwrap()
}

fn shown(layout: Result<CuteLayout>) -> String {
    layout.map_or_else(|e| e.kind().name().to_owned(), |l| l.to_string())
}

fn tiler(texts: &[&str]) -> Tiler {
    Tiler::Tuple(texts.iter().map(|t| Tiler::Layout(lay(t))).collect())
}

/// A result of NVIDIA's CuTe DSL 4.8.1, recorded once.
#[derive(Deserialize)]
struct Golden {
    op: String,
    a: CuteLayout,
    b: Option<CuteLayout>,
    tiler: Option<Tiler>,
    cotarget: Option<i64>,
    profile: Option<Nest>,
    result: CuteLayout,
}

fn run(g: &Golden) -> Result<CuteLayout> {
    let tiler = g.tiler.clone().unwrap_or(Tiler::Keep);
    let other = match &tiler {
        Tiler::Layout(b) => b.clone(),
        _ => g.b.clone().unwrap_or_else(|| lay("1:0")),
    };
    match g.op.as_str() {
        "coalesce" => coalesce_by_mode(&g.a, g.profile.as_ref().unwrap_or(&Nest::Int(1))),
        "composition" => composition(&g.a, &other),
        "composition_by_mode" => composition_by_mode(&g.a, &tiler),
        "complement" => complement(&g.a, g.cotarget.unwrap()),
        "right_inverse" => right_inverse(&g.a),
        "left_inverse" => left_inverse(&g.a),
        "logical_divide" => logical_divide(&g.a, &tiler),
        "zipped_divide" => zipped_divide(&g.a, &tiler),
        "tiled_divide" => tiled_divide(&g.a, &tiler),
        "flat_divide" => flat_divide(&g.a, &tiler),
        "logical_product" => logical_product(&g.a, &tiler),
        "zipped_product" => zipped_product(&g.a, &tiler),
        "tiled_product" => tiled_product(&g.a, &tiler),
        "flat_product" => flat_product(&g.a, &tiler),
        "blocked_product" => blocked_product(&g.a, &other),
        // These answers are of a version that merged the modes of each pair.
        "raked_product" => raked_product(&g.a, &other).and_then(|raked| {
            let pairs = vec![Nest::Int(1); raked.rank()];
            coalesce_by_mode(&raked, &Nest::Tuple(pairs))
        }),
        op => panic!("unknown operation {op}"),
    }
}

#[test]
fn agrees_with_nvidia() {
    for line in include_str!("golden.jsonl").lines() {
        let golden: Golden = serde_json::from_str(line).unwrap();
        assert_eq!(shown(run(&golden)), golden.result.to_string(), "{line}");
    }
}

#[test]
fn notation_round_trips() {
    for text in [
        "(4,(2,3)):(3,(1,12))",
        "8:1",
        "((2),()):((0),())",
        "(2,-0):(1,1)",
    ] {
        let Ok(layout) = text.parse::<CuteLayout>() else {
            assert_eq!(text, "(2,-0):(1,1)");
            continue;
        };
        assert_eq!(layout.to_string(), text);
    }
    assert_eq!(lay("(_8,9)").to_string(), "(8,9):(1,8)");
    assert_eq!(
        lay(" ( _3 , 5 ) : ( -2 , _1 ) ").to_string(),
        "(3,5):(-2,1)"
    );
    for bad in [
        "",
        "(",
        "(4",
        "4:",
        "(4,2):(1)",
        "4:1 x",
        "(4,,2)",
        "0:1",
        "9999999999999999999",
    ] {
        assert!(bad.parse::<CuteLayout>().is_err(), "{bad}");
    }
    assert!("(".repeat(100_000).parse::<CuteLayout>().is_err());
    assert_eq!(
        "(4294967296,4294967296):(0,0)"
            .parse::<CuteLayout>()
            .unwrap_err()
            .kind(),
        Kind::Overflow
    );
}

/// The examples of the notes, and of CuTe's documentation that they quote.
#[test]
fn examples_of_the_notes() {
    let g = lay("(8,9):(1,1)");
    assert_eq!((g.size(), g.cosize()), (72, 16));
    let composed = |a, b| shown(composition(&lay(a), &lay(b)));
    assert_eq!(composed("20:2", "(5,4):(4,1)"), "(5,4):(8,2)");
    assert_eq!(
        composed("(10,2):(16,4)", "(5,4):(1,5)"),
        "(5,(2,2)):(16,(80,4))"
    );
    assert_eq!(
        composed("(6,2):(8,2)", "(4,3):(3,1)"),
        "((2,2),3):((24,2),8)"
    );
    let by_mode: Tiler = serde_json::from_str("[3, 8]").unwrap();
    let a = lay("(12,(4,8)):(59,(13,1))");
    assert_eq!(
        shown(composition_by_mode(&a, &by_mode)),
        "(3,(4,2)):(59,(13,1))"
    );
    // A = (4,2,3):(2,1,8), B = 4:2, complement (2,3):(1,8) of B in 24.
    assert_eq!(shown(complement(&lay("4:2"), 24)), "(2,3):(1,8)");
    let divided = logical_divide(&lay("(4,2,3):(2,1,8)"), &Tiler::Layout(lay("4:2")));
    assert_eq!(shown(divided), "((2,2),(2,3)):((4,1),(2,8))");
    let a = lay("(9,(4,8)):(59,(13,1))");
    let t = tiler(&["3:3", "(2,4):(1,8)"]);
    let logical = "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))";
    assert_eq!(shown(logical_divide(&a, &t)), logical);
    let zipped = "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))";
    assert_eq!(shown(zipped_divide(&a, &t)), zipped);
    assert_eq!(
        shown(tiled_divide(&a, &t)),
        "((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))"
    );
    assert_eq!(
        shown(flat_divide(&a, &t)),
        "(3,(2,4),3,(2,2)):(177,(13,2),59,(26,1))"
    );
    let (a, b) = (lay("(2,5):(5,1)"), lay("(3,4):(1,3)"));
    let t = tiler(&["3:5", "4:6"]);
    let blocked = "((2,3),(5,4)):((5,10),(1,30))";
    assert_eq!(shown(blocked_product(&a, &b)), blocked);
    assert_eq!(shown(logical_product(&a, &t)), blocked);
    assert_eq!(
        shown(zipped_product(&a, &t)),
        "((2,5),(3,4)):((5,1),(10,30))"
    );
    assert_eq!(shown(tiled_product(&a, &t)), "((2,5),3,4):((5,1),10,30)");
    assert_eq!(
        shown(raked_product(&a, &b)),
        "((3,2),(4,5)):((10,5),(30,1))"
    );
}

#[test]
fn coalesce_cases_of_the_notes() {
    for (from, to) in [
        ("(4,1):(3,7)", "4:3"),
        ("(1,4):(7,3)", "4:3"),
        ("(4,2):(3,12)", "8:3"),
        ("(4,2):(3,5)", "(4,2):(3,5)"),
        ("(2,(1,6)):(1,(6,2))", "12:1"),
        ("((2,3),(4)):((0,0),(0))", "24:0"),
        ("(1,1):(5,5)", "1:0"),
    ] {
        assert_eq!(coalesce(&lay(from)).to_string(), to);
    }
    let by_mode = coalesce_by_mode(&lay("(2,(1,6)):(1,(6,2))"), &"(1,1)".parse().unwrap());
    assert_eq!(shown(by_mode), "(2,6):(1,2)");
    assert!(coalesce_by_mode(&lay("4:1"), &"(1,1)".parse().unwrap()).is_err());
    assert_eq!(filter(&lay("(2,4,3):(0,1,0)")).to_string(), "4:1");
}

/// Questions that CuTe answers wrongly (it truncates) have no answer here.
#[test]
fn no_truncated_compositions() {
    for (a, b) in [
        ("(4,2):(1,6)", "4:3"),
        ("(2,2):(1,10)", "(2,2):(1,1)"),
        ("(4,2):(1,6)", "6:1"),
        ("(6,2):(1,100)", "4:2"),
    ] {
        assert_eq!(shown(composition(&lay(a), &lay(b))), "none", "{a} o {b}");
    }
    assert_eq!(shown(complement(&lay("(2,4):(3,4)"), 25)), "none");
}

/// Padding stays uncovered, in complements and in products; divisions leave nothing out.
#[test]
fn padded_layouts_repeat() {
    let padded = lay("(32,8):(1,33)");
    assert_eq!(shown(complement(&padded, 264)), "1:0");
    assert_eq!(shown(complement(&padded, 1000)), "4:264");
    assert_eq!(shown(complement(&lay("(2,2):(3,8)"), 32)), "(3,2):(1,16)");
    assert_eq!(
        shown(blocked_product(&padded, &lay("(2,2):(1,2)"))),
        "((32,2),(8,2)):((1,264),(33,528))"
    );
    assert_eq!(
        shown(logical_product(&padded, &Tiler::Layout(lay("3:1")))),
        "((32,8),3):((1,33),264)"
    );
    assert_eq!(
        shown(logical_divide(
            &lay("512:1"),
            &Tiler::Layout(lay("(2,2):(1,3)"))
        )),
        "none"
    );
    for (a, n) in [
        ("(32,8):(1,33)", 700),
        ("(2,2):(3,8)", 50),
        ("(3,4,2):(2,7,100)", 400),
    ] {
        let (a, rest) = (lay(a), complement(&lay(a), n).unwrap());
        let sums: std::collections::BTreeSet<i64> = (0..a.size())
            .flat_map(|i| (0..rest.size()).map(move |j| (i, j)))
            .map(|(i, j)| a.apply(i).unwrap() + rest.apply(j).unwrap())
            .collect();
        assert_eq!(sums.len() as i64, a.size() * rest.size(), "{a}");
        assert!(sums.last().unwrap() + 1 >= n.min(a.cosize()), "{a}");
    }
}

/// Questions that CuTe refuses although a layout answers them.
#[test]
fn compositions_beyond_cute() {
    for (a, b, result) in [
        // A stride-0 mode: every second step advances the next mode.
        ("(2,8):(0,1)", "4:3", "(2,2):(1,3)"),
        // Only two steps are taken, and the second one is in the next mode.
        ("(3,4):(1,7)", "2:4", "2:8"),
        // The boundary of b's modes is not one of the result's.
        ("(3,2):(1,10)", "(2,3):(1,2)", "(3,2):(1,10)"),
        ("(2,4):(5,1)", "((1,2),1):((1,0),3)", "((1,2),1):((1,0),2)"),
    ] {
        assert_eq!(shown(composition(&lay(a), &lay(b))), result, "{a} o {b}");
    }
}

#[test]
fn large_extents_stay_closed_form() {
    let a = lay("(1073741824,1048576):(1,2147483648)");
    let b = lay("(4096,1048576):(262144,1073741824)");
    assert_eq!(
        shown(composition(&a, &b)),
        "(4096,1048576):(262144,2147483648)"
    );
    let uneven = composition(&lay("(1048577,8):(1,4194304)"), &lay("2097152:3"));
    assert_eq!(uneven.unwrap_err().kind(), Kind::Unsupported);
    let much = composition(&lay("(4,2):(1,4611686018427387904)"), &lay("4:4"));
    assert_eq!(much.unwrap_err().kind(), Kind::Overflow);
}

#[test]
fn swizzled_layouts() {
    let text = "Sw<3,4,3> o 0 o (8,64):(64,1)";
    let composed: ComposedLayout = text.parse().unwrap();
    assert_eq!(composed.to_string(), text);
    let short: ComposedLayout = "S<3,4,3> o (8,64):(64,1)".parse().unwrap();
    assert_eq!(short, composed);
    let outer: ComposedLayout = "Sw<2,0,-3> o 5 o 32:1".parse().unwrap();
    assert!(!outer.swizzle.inner() && outer.offset == 5);
    for bad in [
        "Sw<3,4",
        "Sw<3,4,1> o 0 o 8:1",
        "Sw<-1,4,3> o 8:1",
        "Sw<3,4,3> 8:1",
        "Sw<1,1,99999999999> o 8:1",
    ] {
        assert!(bad.parse::<ComposedLayout>().is_err(), "{bad}");
    }
    let tile = composed
        .map(|l| zipped_divide(l, &tiler(&["8:1", "8:1"])))
        .unwrap();
    for c in 0..512 {
        let address = tile.layout.apply(c).unwrap();
        assert_eq!(tile.apply(c).unwrap(), tile.swizzle.apply(address));
    }
    let part = composed.composition(&lay("(8,2):(1,16)")).unwrap();
    assert_eq!(part.layout.to_string(), "(8,2):(64,2)");
}

#[test]
fn inverse_of_a_swizzled_layout() {
    let composed: ComposedLayout = "Sw<3,0,3> o (8,8):(8,1)".parse().unwrap();
    let (inverse, swizzle) = composed.right_inverse().unwrap();
    for i in 0..64 {
        let back = inverse.apply(swizzle.apply(i)).unwrap();
        assert_eq!(composed.apply(back).unwrap(), i);
    }
    assert!(
        "Sw<3,0,3> o 1 o (8,8):(8,1)"
            .parse::<ComposedLayout>()
            .unwrap()
            .right_inverse()
            .is_err()
    );
    assert!(
        "Sw<3,0,3> o 8:1"
            .parse::<ComposedLayout>()
            .unwrap()
            .right_inverse()
            .is_err()
    );
}

#[test]
fn a_swizzle_moves_out_of_a_layout() {
    let inner = Swizzle::new(2, 0, 3, true).unwrap();
    let scaled = ComposedLayout::from_inner_swizzle(&lay("32:4"), inner).unwrap();
    assert_eq!(scaled.to_string(), "Sw<2,2,3> o 0 o 32:4");
    let turned = ComposedLayout::from_inner_swizzle(&lay("(8,8):(8,1)"), inner).unwrap();
    assert_eq!(turned.to_string(), "Sw<2,0,-3> o 0 o (8,8):(8,1)");
    let broken = ComposedLayout::from_inner_swizzle(&lay("(2,16):(16,1)"), inner);
    assert_eq!(broken.unwrap_err().kind(), Kind::None);
}

fn axe(text: &str) -> (Layout, Vec<i64>) {
    to_axe(&text.parse().unwrap(), Axis::M).unwrap()
}

#[test]
fn bridges_to_axe_and_back() {
    let text = "Sw<2,1,3> o 3 o ((2,4),(8)):((8,16),(1))";
    let (layout, shape) = axe(text);
    assert_eq!(shape, [8, 8]);
    let back = from_axe(&layout, &shape).unwrap();
    assert_eq!(back.to_string(), "Sw<2,1,3> o 3 o (8,8):(8,1)");
    assert_eq!(
        shown(from_axe(&layout, &[4, 16]).map(|c| c.layout)),
        "(4,16):(16,1)"
    );
    assert_eq!(
        shown(from_axe(&layout, &[3, 5]).map(|c| c.layout)),
        "invalid"
    );
    let (three, _) = axe("Sw<0,4,3> o ((3,2),5):((10,7),2)");
    assert_eq!(from_axe(&three, &[15, 2]).unwrap_err().kind(), Kind::None);
    let lane = Axis::new("lane").unwrap();
    let two = Layout::from_shard([
        crate::Iter::new(4, 1, lane),
        crate::Iter::new(4, 1, Axis::M),
    ]);
    assert_eq!(
        from_axe_linear(&two.unwrap()).unwrap_err().kind(),
        Kind::None
    );
    let copies = Layout::row_major(&[4])
        .unwrap()
        .with_replica([crate::Iter::new(2, 4, Axis::M)]);
    assert_eq!(
        from_axe_linear(&copies.unwrap()).unwrap_err().kind(),
        Kind::None
    );
    assert!(to_axe(&text.parse().unwrap(), lane).is_err());
}

/// Blocks with padding inside: the copies begin beyond it.
#[test]
fn copies_of_padded_blocks_do_not_overlap() {
    for (a, b) in [
        ("(4,1,2):(6,1,2)", "(2,1,1):(2,6,8)"),
        ("(3,2,3):(8,3,33)", "(2):(3)"),
        ("(32,8):(1,33)", "(2,2):(1,2)"),
    ] {
        let (a, b): (CuteLayout, CuteLayout) = (a.parse().unwrap(), b.parse().unwrap());
        for product in [blocked_product, raked_product] {
            let whole = product(&a, &b).unwrap();
            let mut all: Vec<i64> = (0..whole.size()).map(|i| whole.apply(i).unwrap()).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len() as i64, a.size() * b.size(), "{a} {b}: {whole}");
        }
    }
}
