//! The axes and memory spaces of a NeuronCore (Trainium/Inferentia2 Architecture Guide for NKI).

use axe_dialect::vocabulary::{
    AxisDeclaration, AxisKind, declare_axis, declare_space, declare_space_of,
};

/// Declares the vocabulary to the dialect: `P` counts partitions, `F` elements in one, `bank` the banks of PSUM, of 512
/// elements of f32 each.
pub(crate) fn declare() {
    for axis in ["P", "F", "bank"] {
        declare_axis(
            axis,
            AxisDeclaration {
                kind: AxisKind::Memory,
                parent: None,
            },
        );
    }
    declare_space("hbm");
    declare_space_of("sbuf", &["P", "F"]);
    declare_space_of("psum", &["P", "F", "bank"]);
}
