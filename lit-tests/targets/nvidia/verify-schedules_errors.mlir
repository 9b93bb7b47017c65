// RUN: axe-opt %s --axe-verify-schedules -split-input-file -verify-diagnostics
// RUN: axe-opt %s --axe-lower-schedules -split-input-file -verify-diagnostics

// Plans that someone wrote, and that do not do what the layouts say. This one does.
#row = #axe.layout<S[(128, 4) : (1@thread, 1@reg)]>
axe.kernel @right(%x: memref<512xf32>) threads(128) attributes {plan = {chip = "sm_90a", shared_bytes = 0}} {
  %v = axe.copy %x schedule = "ld.vector" {plan = {offsets = [0], thread = ["(t / 1 mod 128) * 4"], width = 4}} : memref<512xf32> -> tensor<512xf32, #row>
  axe.return
}

// -----

// expected-error @below {{expected a kernel with plan = {chip, ...}: run --axe-dispatch-schedules first}}
axe.kernel @undispatched(%x: memref<512xf32>) threads(128) {
  axe.return
}

// -----

axe.kernel @one(%x: memref<512xf32>) threads(128) attributes {plan = {chip = "sm_90a", shared_bytes = 0}} {
  axe.return
}
// expected-error @below {{the kernel's plans are for sm_80, and sm_90a is compiled for}}
axe.kernel @another_chip(%x: memref<512xf32>) threads(128) attributes {plan = {chip = "sm_80", shared_bytes = 0}} {
  axe.return
}

// -----

#row = #axe.layout<S[(128, 4) : (1@thread, 1@reg)]>
axe.kernel @unplanned(%x: memref<512xf32>) threads(128) attributes {plan = {chip = "sm_90a", shared_bytes = 0}} {
  // expected-error @below {{'axe.copy' has no plan: expected a kernel that --axe-dispatch-schedules has been through}}
  %v = axe.copy %x schedule = "ld.vector" : memref<512xf32> -> tensor<512xf32, #row>
  axe.return
}

// -----

#row = #axe.layout<S[(128, 4) : (1@thread, 1@reg)]>
axe.kernel @unknown_schedule(%x: memref<512xf32>) threads(128) attributes {plan = {chip = "sm_90a", shared_bytes = 0}} {
  // expected-error @below {{'axe.copy' has no schedule "ld.warp" on sm_90a: expected one of ldmatrix, ld.funnel, ld.vector, ld.scalar}}
  %v = axe.copy %x schedule = "ld.warp" {plan = {registers = 4}} : memref<512xf32> -> tensor<512xf32, #row>
  axe.return
}

// -----

#row = #axe.layout<S[(128, 4) : (1@thread, 1@reg)]>
axe.kernel @missing_field(%x: memref<512xf32>) threads(128) attributes {plan = {chip = "sm_90a", shared_bytes = 0}} {
  // expected-error @below {{the plan "ld.vector" of this 'axe.copy' is wrong: missing field `width`}}
  %v = axe.copy %x schedule = "ld.vector" {plan = {offsets = [0], thread = ["(t / 1 mod 128) * 4"]}} : memref<512xf32> -> tensor<512xf32, #row>
  axe.return
}

// -----

#row = #axe.layout<S[(128, 4) : (1@thread, 1@reg)]>
axe.kernel @unknown_field(%x: memref<512xf32>) threads(128) attributes {plan = {chip = "sm_90a", shared_bytes = 0}} {
  // expected-error @below {{unknown field `warps`, expected one of `width`, `thread`, `offsets`}}
  %v = axe.copy %x schedule = "ld.vector" {plan = {offsets = [0], thread = ["(t / 1 mod 128) * 4"], width = 4, warps = 4}} : memref<512xf32> -> tensor<512xf32, #row>
  axe.return
}

// -----

#row = #axe.layout<S[(128, 4) : (1@thread, 1@reg)]>
axe.kernel @other_kind(%x: memref<512xf32>) threads(128) attributes {plan = {chip = "sm_90a", shared_bytes = 0}} {
  // expected-error @below {{the plan "ld.vector" of this 'axe.copy' is wrong: width: invalid type: string "4", expected i64}}
  %v = axe.copy %x schedule = "ld.vector" {plan = {offsets = [0], thread = ["(t / 1 mod 128) * 4"], width = "4"}} : memref<512xf32> -> tensor<512xf32, #row>
  axe.return
}

// -----

// The plan of a tensor of 256 elements.
#row = #axe.layout<S[(128, 4) : (1@thread, 1@reg)]>
axe.kernel @another_shape(%x: memref<512xf32>) threads(128) attributes {plan = {chip = "sm_90a", shared_bytes = 0}} {
  // expected-error @below {{the plan "ld.vector" of this 'axe.copy' is wrong: the accesses move 2 registers of 4}}
  %v = axe.copy %x schedule = "ld.vector" {plan = {offsets = [0], thread = ["(t / 1 mod 128) * 2"], width = 2}} : memref<512xf32> -> tensor<512xf32, #row>
  axe.return
}

// -----

#row = #axe.layout<S[(128, 4) : (1@thread, 1@reg)]>
axe.kernel @other_elements(%x: memref<512xf32>) threads(128) attributes {plan = {chip = "sm_90a", shared_bytes = 0}} {
  // expected-error @below {{is wrong: element 4 lives at 4 and thread 1 would access 8}}
  %v = axe.copy %x schedule = "ld.vector" {plan = {offsets = [0], thread = ["(t / 1 mod 128) * 8"], width = 4}} : memref<512xf32> -> tensor<512xf32, #row>
  axe.return
}

// -----

// Rows of 2 bytes' alignment take no vectors, whatever the addresses are.
#row = #axe.layout<S[(128, 4) : (1@thread, 1@reg)]>
axe.kernel @too_wide(%x: memref<512xf32, strided<[1], offset: 1>>) threads(128) attributes {plan = {chip = "sm_90a", shared_bytes = 0}} {
  // expected-error @below {{is wrong: accesses of 4 elements: expected a part of 1}}
  %v = axe.copy %x schedule = "ld.vector" {plan = {offsets = [1], thread = ["(t / 1 mod 128) * 4"], width = 4}} : memref<512xf32, strided<[1], offset: 1>> -> tensor<512xf32, #row>
  axe.return
}

// -----

#row = #axe.layout<S[(128, 4) : (1@thread, 1@reg)]>
axe.kernel @no_digit(%x: memref<512xf32>) threads(128) attributes {plan = {chip = "sm_90a", shared_bytes = 0}} {
  // expected-error @below {{is wrong: thread[0]: expected "(t / 4 mod 8) * 64", got "(t / 0 mod 128) * 4"}}
  %v = axe.copy %x schedule = "ld.vector" {plan = {offsets = [0], thread = ["(t / 0 mod 128) * 4"], width = 4}} : memref<512xf32> -> tensor<512xf32, #row>
  axe.return
}

// -----

// expected-error @below {{the plan of this 'axe.kernel' is wrong: expected 2048 bytes of shared memory, got 1024}}
axe.kernel @other_bytes(%x: memref<512xf32>) threads(128) attributes {plan = {chip = "sm_90a", shared_bytes = 1024}} {
  %s = axe.alloc {plan = {first = 0, bytes = 2048}} : memref<512xf32, #axe.space<shared>>
  axe.return
}

// -----

// expected-error @below {{storage 0 and 1 share bytes, and no barrier separates their lifetimes}}
axe.kernel @overlapping(%x: memref<512xf32>) threads(128) attributes {plan = {chip = "sm_90a", shared_bytes = 2048}} {
  %s = axe.alloc {plan = {first = 0, bytes = 2048}} : memref<512xf32, #axe.space<shared>>
  %t = axe.alloc {plan = {first = 0, bytes = 2048}} : memref<512xf32, #axe.space<shared>>
  axe.return
}

// -----

axe.kernel @unplaced(%x: memref<512xf32>) threads(128) attributes {plan = {chip = "sm_90a", shared_bytes = 2048}} {
  // expected-error @below {{'axe.alloc' has no plan}}
  %s = axe.alloc : memref<512xf32, #axe.space<shared>>
  axe.return
}

// -----

// A chip's name is not enough: this one has no wgmma.
#tile = #axe.layout<Sw<3, 3, 3> o S[(64, 64) : (64, 1)]>
#sums = #axe.layout<S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
axe.kernel @edited_chip(%c: memref<64x64xf16>) threads(128) attributes {plan = {chip = "sm_80", shared_bytes = 16384}} {
  %a = axe.alloc {plan = {first = 0, bytes = 8192}} : memref<64x64xf16, #tile, #axe.space<shared>>
  %b = axe.alloc {plan = {first = 8192, bytes = 8192}} : memref<64x64xf16, #tile, #axe.space<shared>>
  // expected-error @below {{the plan "wgmma" of this 'axe.gemm' is wrong: sm_80 has no wgmma}}
  %p = axe.gemm async %a, %b schedule = "wgmma" {plan = {a = {shared = {strides = {leading = 16, major = "k", stride = 1024, swizzle = "128B"}}}, atom = {n = 64, types = {a = "f16", b = "f16", d = "f32"}}, b = {strides = {leading = 16, major = "k", stride = 1024, swizzle = "128B"}}, instructions = [], registers = 32, steps = 4}, trans_b} : memref<64x64xf16, #tile, #axe.space<shared>>, memref<64x64xf16, #tile, #axe.space<shared>> -> tensor<64x64xf32, #sums>
  axe.return
}

// -----

// A step of k twice, and another not at all.
#tile = #axe.layout<Sw<1, 3, 3> o S[(64, 16) : (16, 1)]>
#sums = #axe.layout<S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
axe.kernel @other_registers(%c: memref<64x64xf16>) threads(128) attributes {plan = {chip = "sm_90a", shared_bytes = 4096}} {
  %a = axe.alloc {plan = {first = 0, bytes = 2048}} : memref<64x16xf16, #tile, #axe.space<shared>>
  %b = axe.alloc {plan = {first = 2048, bytes = 2048}} : memref<64x16xf16, #tile, #axe.space<shared>>
  // expected-error @below {{is wrong: a register of D is not in one instruction of each step}}
  %p = axe.gemm async %a, %b schedule = "wgmma" {plan = {a = {shared = {strides = {leading = 16, major = "k", stride = 256, swizzle = "32B"}}}, atom = {n = 64, types = {a = "f16", b = "f16", d = "f32"}}, b = {strides = {leading = 16, major = "k", stride = 256, swizzle = "32B"}}, instructions = [{k = 0, a = {offset = 0}, b = 0, d = "S[32 : 0]"}], registers = 32, steps = 1}, trans_b} : memref<64x16xf16, #tile, #axe.space<shared>>, memref<64x16xf16, #tile, #axe.space<shared>> -> tensor<64x64xf32, #sums>
  axe.return
}
