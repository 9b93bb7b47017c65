//! The tensor maps of a launch: what `--axe-lower-schedules` says that a kernel's last parameters describe.

use axe_package::{
    Arg, Expr, L2Promotion, MemRef, Param, ParamKind, Swizzle, TensorMapDType, TensorMapType,
};
use axe_passes::ir::{Op, attribute};
use axe_passes::{PassError, PassResult};
use axe_toolchain::Memory;
use melior::ir::attribute::StringAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, AttributeLike};
use mlir_sys as sys;

/// Bytes that strides of a tensor map are multiples of (CUDA driver API, cuTensorMapEncodeTiled): what one of no elements has.
const LEAST_STRIDE: i64 = 16;

/// The parameters and arguments of a launch's tensor maps, in order; `argument` gives what an operand is.
pub(crate) fn tensor_maps<'c, 'a>(
    launch: Op<'c>,
    argument: impl Fn(usize) -> Option<&'a Memory>,
    scalar: impl Fn(usize) -> Option<&'a Expr>,
) -> PassResult<'c, Vec<(Param, Arg)>> {
    let Ok(maps) = launch.attribute("tensor_maps") else {
        return Ok(Vec::new());
    };
    let wrong = || {
        PassError::new(
            launch.location(),
            "expected tensor_maps = [{source, offset, type, extents, strides, box, swizzle}], as --axe-lower-schedules writes them",
        )
    };
    let maps = attribute::elements(maps).ok_or_else(wrong)?;
    let of = |(number, map): (usize, Attribute<'c>)| {
        let map = Entry(map);
        let source = map
            .integer("source")
            .and_then(|at| usize::try_from(at).ok());
        let source = source.and_then(&argument).ok_or_else(wrong)?;
        let arg = map.arg(source, &scalar).ok_or_else(wrong)?;
        let kind = ParamKind::TensorMap {
            access: source.access,
            map: map.r#type().ok_or_else(wrong)?,
        };
        let name = format!("map{number}");
        Ok((Param { name, kind }, arg))
    };
    maps.into_iter().enumerate().map(of).collect()
}

/// One map's dictionary.
#[derive(Clone, Copy)]
struct Entry<'c>(Attribute<'c>);

impl<'c> Entry<'c> {
    fn get(self, name: &str) -> Option<Attribute<'c>> {
        // SAFETY: the kind is checked before an entry is looked up; an absent one is null.
        unsafe {
            if !sys::mlirAttributeIsADictionary(self.0.to_raw()) {
                return None;
            }
            let name = melior::StringRef::new(name).to_raw();
            Attribute::from_option_raw(sys::mlirDictionaryAttrGetElementByName(
                self.0.to_raw(),
                name,
            ))
        }
    }

    fn integer(self, name: &str) -> Option<i64> {
        self.get(name).and_then(attribute::integer)
    }

    fn integers(self, name: &str) -> Option<Vec<i64>> {
        let all = self.get(name).and_then(attribute::elements)?;
        all.into_iter().map(attribute::integer).collect()
    }

    fn text(self, name: &str) -> Option<String> {
        let text = StringAttribute::try_from(self.get(name)?).ok()?;
        Some(text.value().to_owned())
    }

    /// What the kernel was compiled for.
    fn r#type(self) -> Option<TensorMapType> {
        let extents = self.integers("box")?.into_iter();
        let extents = extents.map(|extent| u32::try_from(extent).ok());
        let mut map = TensorMapType::new(
            dtype(&self.text("type")?)?,
            extents.collect::<Option<Vec<_>>>()?,
        );
        map.swizzle = match self.text("swizzle")?.as_str() {
            "none" => Swizzle::None,
            "32B" => Swizzle::B32,
            "64B" => Swizzle::B64,
            "128B" => Swizzle::B128,
            _ => return None,
        };
        // A line at a time: with two, products that are bound by memory take 2 to 6% longer, and those whose rows begin
        // inside a line up to 20% (docs/performance.md, "What brought it about").
        map.l2_promotion = L2Promotion::B128;
        Some(map)
    }

    /// The arguments that extents or strides are, where there are any.
    fn sizes<'a>(
        self,
        name: &str,
        scalar: &impl Fn(usize) -> Option<&'a Expr>,
    ) -> Option<Vec<Option<Expr>>> {
        let numbers = self.integers(name).unwrap_or_default().into_iter();
        let of = |number: i64| match number {
            -1 => Some(None),
            number => scalar(usize::try_from(number).ok()?).cloned().map(Some),
        };
        numbers.map(of).collect()
    }

    /// The memory that a launch passes.
    fn arg<'a>(self, source: &Memory, scalar: &impl Fn(usize) -> Option<&'a Expr>) -> Option<Arg> {
        let own = |all: &[Option<Expr>], at: usize| all.get(at).cloned().flatten();
        let (of_extents, of_strides) = (
            self.sizes("extent_arguments", scalar)?,
            self.sizes("stride_arguments", scalar)?,
        );
        let extents = self.integers("extents")?.into_iter().enumerate();
        let extent = |(at, value)| {
            own(&of_extents, at).map_or_else(
                || match value {
                    -1 => source.leading.clone(),
                    known => Expr::Const(known),
                },
                // A map has no empty dimension: a kernel leaves what is not there alone.
                |extent| extent.max(1),
            )
        };
        let bytes = i64::try_from(dtype(&self.text("type")?)?.bytes()).ok()?;
        let strides = self.integers("strides")?.into_iter().enumerate();
        // Of the innermost dimension there is no stride.
        let stride = |(at, value)| match own(&of_strides, at + 1) {
            Some(elements) => elements.mul(bytes).max(LEAST_STRIDE),
            None => Expr::Const(value),
        };
        Some(Arg::Tensor {
            at: MemRef {
                name: source.name.clone(),
                offset_bytes: Expr::Const(self.integer("offset").unwrap_or(0)),
            },
            dims: extents.map(extent).collect(),
            strides_bytes: strides.map(stride).collect(),
        })
    }
}

/// The element type that a map has for one of MLIR: what is copied are bits.
fn dtype(element: &str) -> Option<TensorMapDType> {
    Some(match element {
        "f16" => TensorMapDType::F16,
        "bf16" => TensorMapDType::BF16,
        "f32" => TensorMapDType::F32,
        "f64" => TensorMapDType::F64,
        "i16" => TensorMapDType::U16,
        "i32" => TensorMapDType::I32,
        "i64" => TensorMapDType::I64,
        "i8" | "i1" => TensorMapDType::U8,
        float8 if float8.starts_with("f8") => TensorMapDType::U8,
        _ => return None,
    })
}
