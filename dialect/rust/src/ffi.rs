//! The C API of dialect/capi/include/axe-c/Axe.h.

use mlir_sys::{
    MlirAttribute, MlirContext, MlirDialectHandle, MlirLocation, MlirModule, MlirStringRef,
    MlirType,
};

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LayoutIter {
    pub extent: i64,
    pub stride: i64,
    pub axis: MlirStringRef,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LayoutOffset {
    pub axis: MlirStringRef,
    pub value: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct LayoutSwizzle {
    pub bits: i64,
    pub base: i64,
    pub shift: i64,
}

unsafe extern "C" {
    pub(crate) fn mlirGetDialectHandle__axe__() -> MlirDialectHandle;
    pub(crate) fn mlirGetDialectHandle__axe_tm_tensor__() -> MlirDialectHandle;
    pub(crate) fn axeModuleCreateParse(
        context: MlirContext,
        module: MlirStringRef,
        name: MlirStringRef,
    ) -> MlirModule;
    pub(crate) fn axeLayoutAttrGet(
        location: MlirLocation,
        shard_count: isize,
        shard: *const LayoutIter,
        replica_count: isize,
        replica: *const LayoutIter,
        offset_count: isize,
        offsets: *const LayoutOffset,
        swizzle: *const LayoutSwizzle,
    ) -> MlirAttribute;
    pub(crate) fn axeAttributeIsALayout(attribute: MlirAttribute) -> bool;
    pub(crate) fn axeLayoutAttrGetShardCount(layout: MlirAttribute) -> isize;
    pub(crate) fn axeLayoutAttrGetShard(layout: MlirAttribute, index: isize) -> LayoutIter;
    pub(crate) fn axeLayoutAttrGetReplicaCount(layout: MlirAttribute) -> isize;
    pub(crate) fn axeLayoutAttrGetReplica(layout: MlirAttribute, index: isize) -> LayoutIter;
    pub(crate) fn axeLayoutAttrGetOffsetCount(layout: MlirAttribute) -> isize;
    pub(crate) fn axeLayoutAttrGetOffset(layout: MlirAttribute, index: isize) -> LayoutOffset;
    pub(crate) fn axeLayoutAttrGetSwizzle(
        layout: MlirAttribute,
        swizzle: *mut LayoutSwizzle,
    ) -> bool;
    pub(crate) fn axeSpaceAttrGet(location: MlirLocation, name: MlirStringRef) -> MlirAttribute;
    pub(crate) fn axeAttributeIsASpace(attribute: MlirAttribute) -> bool;
    pub(crate) fn axeSpaceAttrGetName(space: MlirAttribute) -> MlirStringRef;
    pub(crate) fn axeCombinerAttrGet(context: MlirContext, combiner: u32) -> MlirAttribute;
    pub(crate) fn axeAttributeIsACombiner(attribute: MlirAttribute) -> bool;
    pub(crate) fn axeCombinerAttrGetValue(combiner: MlirAttribute) -> u32;
    pub(crate) fn axeLevelAttrGet(context: MlirContext, level: u32) -> MlirAttribute;
    pub(crate) fn axeAttributeIsALevel(attribute: MlirAttribute) -> bool;
    pub(crate) fn axeLevelAttrGetValue(level: MlirAttribute) -> u32;
    pub(crate) fn axeRasterOrderAttrGet(context: MlirContext, order: u32) -> MlirAttribute;
    pub(crate) fn axeAttributeIsARasterOrder(attribute: MlirAttribute) -> bool;
    pub(crate) fn axeRasterOrderAttrGetValue(order: MlirAttribute) -> u32;
    pub(crate) fn axePipelineTypeGet(context: MlirContext) -> MlirType;
    pub(crate) fn axeSlotTypeGet(context: MlirContext) -> MlirType;
    pub(crate) fn axeTokenTypeGet(context: MlirContext) -> MlirType;
}
