// Softmax attention of two heads of 64 elements, 256 queries and 1024 keys, as operators on tiles whose layouts say where their
// elements are: FlashAttention's loop over blocks of keys, with a maximum, a sum and an output that are rescaled as it goes.
//
//   axe explain examples/trainium/attention_tiles.mlir --target trn1       # which instructions, and why not others
//   axe compile examples/trainium/attention_tiles.mlir --target trn1 --emit nki -o -
//   axe compile examples/trainium/attention_tiles.mlir --target trn1 -o attention.axe && axe sim attention.axe --check --stats
//
// Queries and keys are [elements, places] of a head, so that both have what is summed up on their partitions; values are
// [places, elements]. What a value of L1 is, in SBUF or PSUM, and what a loop carries, follows from the text.

#q      = #axe.layout<S[(64, 128) : (1@P, 1@F)]>
#k      = #axe.layout<S[(64, 512) : (1@P, 1@F)]>
// A query is a partition: a row of scores lies in it, and so do its maximum and its sum.
#scores = #axe.layout<S[(128, 512) : (1@P, 1@F)]>
#row    = #axe.layout<S[128 : 1@P]>
// Key n is on partition n mod 128, of the weights and of the values: the order in which the second product sums them up.
#keys_q = #axe.layout<S[(4, 128, 128) : (128@F, 1@P, 1@F)]>
#v      = #axe.layout<S[(4, 128, 64) : (64@F, 1@P, 1@F)]>
#o      = #axe.layout<S[(128, 64) : (1@P, 1@F)]>

axe.kernel @attention(%Q: memref<2x64x256xbf16>, %K: memref<2x64x1024xbf16>, %V: memref<2x1024x64xbf16>, %O: memref<2x256x64xbf16>) threads(1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %heads = arith.constant 2 : index
  %queries = arith.constant 256 : index
  %keys = arith.constant 1024 : index
  // 1 / sqrt(64), and a number below all scores.
  %scale = arith.constant 0.125 : f32
  %minus = arith.constant -0.125 : f32
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -1.0e30 : f32
  scf.for %h = %c0 to %heads step %c1 {
    scf.for %m = %c0 to %queries step %c128 {
      %q_box = axe.slice %Q[%h, %c0, %m] : memref<2x64x256xbf16> to memref<64x128xbf16, strided<[256, 1]>>
      %q = axe.copy %q_box {trn.name = "q"} : memref<64x128xbf16, strided<[256, 1]>> -> tensor<64x128xbf16, #q>
      %m0 = axe.fill %lowest : f32 -> tensor<128xf32, #row>
      %l0 = axe.fill %zero : f32 -> tensor<128xf32, #row>
      %o0 = axe.fill %zero : f32 -> tensor<128x64xf32, #o>
      %done:3 = scf.for %n = %c0 to %keys step %c512 iter_args(%before = %m0, %l = %l0, %o = %o0)
          -> (tensor<128xf32, #row>, tensor<128xf32, #row>, tensor<128x64xf32, #o>) {
        %k_box = axe.slice %K[%h, %c0, %n] : memref<2x64x1024xbf16> to memref<64x512xbf16, strided<[1024, 1]>>
        %k = axe.copy %k_box {trn.name = "k"} : memref<64x512xbf16, strided<[1024, 1]>> -> tensor<64x512xbf16, #k>
        %v_box = axe.slice %V[%h, %n, %c0] : memref<2x1024x64xbf16> to memref<512x64xbf16, strided<[64, 1]>>
        %v = axe.copy %v_box {trn.name = "v"} : memref<512x64xbf16, strided<[64, 1]>> -> tensor<512x64xbf16, #v>

        // The scores, and the largest of each query so far.
        %s = axe.gemm %q, %k {trans_a, trn.name = "s"} : tensor<64x128xbf16, #q>, tensor<64x512xbf16, #k> -> tensor<128x512xf32, #scores>
        %most = axe.reduce <max> %s dims [1] : tensor<128x512xf32, #scores> -> tensor<128xf32, #row>
        %after = axe.map ins(%before, %most : tensor<128xf32, #row>, tensor<128xf32, #row>) -> tensor<128xf32, #row> {
        ^bb0(%a: f32, %b: f32):
          %x = arith.maximumf %a, %b : f32
          axe.yield %x : f32
        }

        // The weights, and their sum: one instruction of the scalar engine, from PSUM.
        %bias = axe.map ins(%after : tensor<128xf32, #row>) -> tensor<128xf32, #row> {
        ^bb0(%a: f32):
          %x = arith.mulf %a, %minus : f32
          axe.yield %x : f32
        }
        %bias_wide = axe.broadcast %bias dims [1] : tensor<128xf32, #row> -> tensor<128x512xf32, #scores>
        %p = axe.map ins(%s, %bias_wide : tensor<128x512xf32, #scores>, tensor<128x512xf32, #scores>) -> tensor<128x512xf32, #scores> {
        ^bb0(%a: f32, %b: f32):
          %scaled = arith.mulf %a, %scale : f32
          %x = arith.addf %scaled, %b : f32
          %e = math.exp %x : f32
          axe.yield %e : f32
        }
        %weights = axe.cast %p {trn.name = "weights"} : tensor<128x512xf32, #scores> -> tensor<128x512xbf16, #scores>
        %sum = axe.reduce <add> %p dims [1] : tensor<128x512xf32, #scores> -> tensor<128xf32, #row>

        // Keys have to lie on partitions: the layouts demand a transpose.
        %turned = axe.transpose %weights [1, 0] : tensor<128x512xbf16, #scores> -> tensor<512x128xbf16, #keys_q>
        %pv = axe.gemm %turned, %v {trans_a, trn.name = "pv"} : tensor<512x128xbf16, #keys_q>, tensor<512x64xbf16, #v> -> tensor<128x64xf32, #o>

        // What there was before counts less by the exponential of the difference of the maxima.
        %alpha = axe.map ins(%before, %bias : tensor<128xf32, #row>, tensor<128xf32, #row>) -> tensor<128xf32, #row> {
        ^bb0(%a: f32, %b: f32):
          %scaled = arith.mulf %a, %scale : f32
          %x = arith.addf %scaled, %b : f32
          %e = math.exp %x : f32
          axe.yield %e : f32
        }
        %l_after = axe.map ins(%l, %alpha, %sum : tensor<128xf32, #row>, tensor<128xf32, #row>, tensor<128xf32, #row>) -> tensor<128xf32, #row> {
        ^bb0(%a: f32, %b: f32, %c: f32):
          %x = arith.mulf %a, %b : f32
          %y = arith.addf %x, %c : f32
          axe.yield %y : f32
        }
        %alpha_wide = axe.broadcast %alpha dims [1] : tensor<128xf32, #row> -> tensor<128x64xf32, #o>
        %o_after = axe.map ins(%o, %alpha_wide, %pv : tensor<128x64xf32, #o>, tensor<128x64xf32, #o>, tensor<128x64xf32, #o>) -> tensor<128x64xf32, #o> {
        ^bb0(%a: f32, %b: f32, %c: f32):
          %x = arith.mulf %a, %b : f32
          %y = arith.addf %x, %c : f32
          axe.yield %y : f32
        }
        scf.yield %after, %l_after, %o_after : tensor<128xf32, #row>, tensor<128xf32, #row>, tensor<128x64xf32, #o>
      } {trn.index = "n"}
      %inverse = axe.map ins(%done#1 : tensor<128xf32, #row>) -> tensor<128xf32, #row> {
      ^bb0(%a: f32):
        %x = arith.divf %one, %a : f32
        axe.yield %x : f32
      }
      %inverse_wide = axe.broadcast %inverse dims [1] : tensor<128xf32, #row> -> tensor<128x64xf32, #o>
      %result = axe.map ins(%done#2, %inverse_wide : tensor<128x64xf32, #o>, tensor<128x64xf32, #o>) -> tensor<128x64xbf16, #o> {
      ^bb0(%a: f32, %b: f32):
        %x = arith.mulf %a, %b : f32
        %y = arith.truncf %x : f32 to bf16
        axe.yield %y : bf16
      }
      %o_box = axe.slice %O[%h, %m, %c0] : memref<2x256x64xbf16> to memref<128x64xbf16, strided<[64, 1]>>
      axe.copy %result to %o_box : tensor<128x64xbf16, #o> to memref<128x64xbf16, strided<[64, 1]>>
    } {trn.index = "m"}
  } {trn.index = "h"}
  axe.return
}

func.func @main(%q: tensor<2x64x256xbf16>, %k: tensor<2x64x1024xbf16>, %v: tensor<2x1024x64xbf16>) -> tensor<2x256x64xbf16> {
  %c1 = arith.constant 1 : index
  %empty = tensor.empty() : tensor<2x256x64xbf16>
  %o = axe.launch @attention grid(%c1, %c1, %c1) ins(%q, %k, %v : tensor<2x64x256xbf16>, tensor<2x64x1024xbf16>, tensor<2x1024x64xbf16>) outs(%empty : tensor<2x256x64xbf16>) -> tensor<2x256x64xbf16>
  return %o : tensor<2x256x64xbf16>
}
