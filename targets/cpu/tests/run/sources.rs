//! Where modules are from, and how places in them are written.

use axe_dialect::{Source, place};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, Location};

#[test]
fn modules_are_located_in_their_file() {
    let context = Context::new();
    let text = "\n  module @m {}";
    let named = Source {
        name: "some/m.mlir",
        text,
    };
    let module = named.parse(&context).unwrap();
    assert_eq!(place(module.as_operation().location()), "some/m.mlir:2:3");
    let module = Source::from(text).parse(&context).unwrap();
    assert_eq!(place(module.as_operation().location()), "-:2:3");
    assert!(Source::from("module {").parse(&context).is_none());
    assert!(Source::from("module {}\0").parse(&context).is_none());
}

#[test]
fn places_are_found_inside_other_locations() {
    let context = Context::new();
    let unknown = Location::unknown(&context);
    let file = Location::new(&context, "a.mlir", 3, 5);
    let named = Location::name(&context, "x", file);
    let unit = Attribute::unit(&context);
    for location in [
        file,
        named,
        Location::call_site(named, unknown),
        Location::fused(&context, &[unknown, named], unit),
    ] {
        assert_eq!(place(location), "a.mlir:3:5");
    }
    assert_eq!(place(unknown), "loc(unknown)");
}

#[test]
fn diagnostics_and_their_notes_name_the_file() {
    let text = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = math.exp %x : tensor<5xf32>
  return %y : tensor<5xf32>
}";
    let name = "models/f.mlir";
    let error = axe_cpu::Program::compile(Source { name, text }, "f").err();
    let said = error.unwrap().to_string();
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(
        lines[1].starts_with("models/f.mlir:2:17: error: use of value '%x'"),
        "{said}"
    );
    assert!(
        lines[2].starts_with("models/f.mlir:1:14: note: prior use"),
        "{said}"
    );
}
