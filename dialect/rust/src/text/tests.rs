use super::{DEPTH, refusal};
use proptest::prelude::*;

fn refused(text: &str) -> Option<(usize, usize)> {
    refusal(text.as_bytes()).map(|refusal| refusal.line_and_column(text.as_bytes()))
}

const TRANSPOSE: &str =
    "%0 = linalg.transpose ins(%a : tensor<4x5xf32>) outs(%b : tensor<5x4xf32>)";
const REDUCE: &str =
    "%0 = linalg.reduce { arith.addf {fastmath = #arith.fastmath<none>} } ins(%a : tensor<4x5xf32>)
  outs(%b : tensor<4xf32>)";

#[test]
fn lists_of_dimensions_are_integers() {
    for good in ["[1, 0]", "[]", "[-1, 0x1]", "[ 1 // one\n , 0 ]"] {
        assert_eq!(
            refused(&format!("{TRANSPOSE} permutation = {good}")),
            None,
            "{good}"
        );
        assert_eq!(
            refused(&format!("{REDUCE} dimensions = {good} {{a = 1}}")),
            None,
            "{good}"
        );
    }
    let bad = [
        "[x]",
        "[1, ]",
        "[1 0]",
        "1",
        "[99999999999999999999]",
        "[1.5]",
        "[%a]",
        "[1, 0",
        "",
        "[1,\n é]",
        "{}",
    ];
    for bad in bad {
        assert!(
            refused(&format!("{TRANSPOSE} permutation = {bad}")).is_some(),
            "{bad}"
        );
        assert!(
            refused(&format!("{REDUCE} dimensions = {bad}")).is_some(),
            "{bad}"
        );
        let broadcast = TRANSPOSE.replace("transpose", "broadcast");
        assert!(
            refused(&format!("{broadcast} dimensions = {bad}")).is_some(),
            "{bad}"
        );
    }
    assert_eq!(
        refused(&format!("{REDUCE} dimensions = [y]")),
        Some((2, 42))
    );
}

#[test]
fn what_is_no_custom_form_is_the_parsers() {
    let others = [
        format!("// {TRANSPOSE} permutation = [x]"),
        format!("%c = f.g {{a = \"{TRANSPOSE} permutation = [x]\"}}"),
        "\"linalg.transpose\"(%a, %b) <{permutation = x}> : () -> ()".to_owned(),
        format!("{TRANSPOSE}\n%1 = f.g permutation = x"),
        "%0 = linalg.reduce ins(%a : t) outs(%b : t {dimensions = x})".to_owned(),
    ];
    for text in others {
        assert_eq!(refused(&text), None, "{text}");
    }
}

#[test]
fn arrays_have_elements_with_a_width() {
    let good = [
        "#a = array<i64: 1, 2>",
        "#a = array<i1>",
        "!t = f32\n#a = array<!t: 1.0>",
        "#a = \"array<index: 1>\" // array<index: 1>",
        "func.func @array(%index: index)",
        "%0 = f.array <index>",
    ];
    for good in good {
        assert_eq!(refused(good), None, "{good}");
    }
    assert_eq!(refused("#a = array<index: 1>"), Some((1, 12)));
    assert_eq!(
        refused("module attributes {\na.b = array <index>}"),
        Some((2, 14))
    );
    assert_eq!(refused("#a = array<!t: 1>\n!t = index"), Some((1, 12)));
    let aliases = "!u = index\n!t = !u\n#a = array<!t: 1>";
    assert_eq!(refused(aliases), Some((3, 12)));
    assert_eq!(refused("!u = !t\n!t = !u\n#a = array<!t: 1>"), None);
}

#[test]
fn iterator_types_are_strings() {
    let good = [
        "%0 = linalg.generic {indexing_maps = [#m, #m], iterator_types = [\"parallel\", \"reduction\"]} ins(%a : t)",
        "#p = \"parallel\"\n linalg.generic {iterator_types = [#p]} ins(%a : t)",
        "#t = {iterator_types = [\"parallel\"], doc = 3}\n linalg.generic #t ins(%a : t) {iterator_types = [3]}",
        "#t = [\"parallel\"]\n linalg.generic {\"iterator_types\" = #t}",
        "\"linalg.generic\"() {iterator_types = [#linalg.iterator_type<parallel>]} : () -> ()",
        "linalg.generic {iterator_types = []}",
        "linalg.generic {a = {iterator_types = [3]}, iterator_types = [\"parallel\"]}",
    ];
    for good in good {
        assert_eq!(refused(good), None, "{good}");
    }
    let bad = [
        "%0 = linalg.generic {iterator_types = [3]} ins(%a : t)",
        "#p = 3\n linalg.generic {iterator_types = [\"parallel\", #p]} ins(%a : t)",
        "#t = {iterator_types = [parallel]}\n linalg.generic #t ins(%a : t)",
        "linalg.generic {iterator_types = [#linalg.iterator_type<parallel>]}",
    ];
    for bad in bad {
        assert!(refused(bad).is_some(), "{bad}");
    }
}

#[test]
fn from_elements_has_an_operand_for_each() {
    let good = [
        "%0 = tensor.from_elements %a, %b {x = 1 : i64} : tensor<2xf32>",
        "%0 = tensor.from_elements : tensor<0x4294967296xf32>",
        "!t = tensor<2xf32> %0 = tensor.from_elements %a, %b : !t",
        "%0 = tensor.from_elements %a : tensor<?xf32>",
        "%0 = tensor.from_elements %a : tensor<f32>",
        "%0 = vector.from_elements %a : vector<[4]xf32>",
    ];
    for good in good {
        assert_eq!(refused(good), None, "{good}");
    }
    let bad = [
        "%0 = tensor.from_elements %a : tensor<4294967296xf32>",
        "%0 = vector.from_elements %a : vector<65536x65536xf32>",
        "%0 = tensor.from_elements %a : tensor<99999999999999999999999999999999999999999999xf32>",
        "!t = tensor<4294967296xf32> %0 = tensor.from_elements %a : !t",
    ];
    for bad in bad {
        assert!(refused(bad).is_some(), "{bad}");
    }
}

#[test]
fn brackets_have_a_depth() {
    let nested = |open: &str, close: &str, times| open.repeat(times) + &close.repeat(times);
    for (open, close) in [("(", ")"), ("[", "]"), ("{", "}"), ("tuple<", ">")] {
        assert_eq!(refused(&nested(open, close, DEPTH)), None, "{open}");
        assert!(refused(&nested(open, close, DEPTH + 1)).is_some(), "{open}");
    }
    assert!(refused(&nested("{[", "]}", DEPTH / 2 + 1)).is_some());
    // One after the other is not deep, nor is what is a comparison.
    assert_eq!(refused(&"({})".repeat(10_000)), None);
    assert_eq!(refused(&"(d0 < 1) -> (d0 >= 2)".repeat(10_000)), None);
}

proptest! {
    #[test]
    fn any_text_is_looked_at(text in "(linalg\\.(transpose|reduce|generic)|tensor\\.from_elements|[#!%\"\\\\=:,x0-9<>(){}\\[\\] \n-]|permutation|dimensions|iterator_types|tensor|é){0,60}") {
        if let Some(refusal) = refusal(text.as_bytes()) {
            prop_assert!(refusal.at <= text.len());
        }
    }
}
