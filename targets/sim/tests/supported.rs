//! The table of supported instructions in `docs/sim.md` is true: every mnemonic that it names decodes
//! in at least one form, and every form here belongs to a family of the table.

use axe_sim::{Arg, Device, FindingKind, Launch, Module, SimError, Simulator};

fn decodes(line: &str) -> Result<(), String> {
    match module(line)?.unsupported().next() {
        Some(error) => Err(format!("{line}: {error}")),
        None => Ok(()),
    }
}

fn module(line: &str) -> Result<Module, String> {
    let text = format!(
        ".version 9.0\n.target sm_90a\n.address_size 64\n.func f() {{ ret; }}\n.entry k(.param .align 64 .b8 m[128])\n{{
.reg .pred p, q; .reg .b16 h, i; .reg .b32 a, b, c, d; .reg .b64 x, y, z; .reg .b128 w, v; .reg .f32 f0, f1; .reg .f64 g0, g1;
.shared .align 16 .b8 s[64];\nlist: .branchtargets end;\n{line}\nend: ret;\n}}"
    );
    Module::parse(&text).map_err(|e| format!("{line}: {e}"))
}

const FORMS: &str = "
add.s32 a, b, c; | add.cc.u32 a, b, c; | addc.u32 a, b, c; | sub.s64 x, y, z; | subc.u32 a, b, c; | mul.wide.u32 x, a, b; | mul.hi.s64 x, y, z;
mad.lo.s32 a, b, c, d; | madc.hi.u32 a, b, c, d; | mul24.lo.s32 a, b, c; | mad24.lo.u32 a, b, c, d; | sad.u32 a, b, c, d; | div.s32 a, b, c;
rem.u64 x, y, z; | abs.s32 a, b; | neg.s16 h, i; | min.u32 a, b, c; | max.s64 x, y, z; | popc.b64 a, x; | clz.b32 a, b; | bfind.u32 a, b;
brev.b32 a, b; | bfe.s32 a, b, c, d; | bfi.b64 x, y, z, a, b; | bmsk.clamp.b32 a, b, c; | szext.wrap.s32 a, b, c; | dp4a.u32.s32 a, b, c, d;
dp2a.lo.s32.u32 a, b, c, d; | and.b32 a, b, c; | or.pred p, q, p; | xor.b64 x, y, z; | not.b32 a, b; | cnot.b32 a, b; | lop3.b32 a, b, c, d, 0x96;
shl.b64 x, y, a; | shr.s16 h, i, a; | shf.l.wrap.b32 a, b, c, d; | prmt.b32.f4e a, b, c, d; | fma.rn.ftz.sat.f32 f0, f0, f1, f0; | rcp.approx.ftz.f32 f0, f1;
sqrt.rn.f64 g0, g1; | rsqrt.approx.f32 f0, f1; | copysign.f32 f0, f1, f0; | testp.finite.f32 p, f0; | ex2.approx.ftz.f32 f0, f1; | ex2.approx.ftz.bf16x2 a, b;
lg2.approx.f32 f0, f1; | sin.approx.f32 f0, f1; | cos.approx.f32 f0, f1; | tanh.approx.f16x2 a, b; | fma.rn.bf16x2 a, b, c, d; | add.rz.f64 g0, g1, g0;
add.rn.f32x2 x, y, z; | mov.b64 {a, b}, x; | mov.b32 a, {h, i}; | cvt.rn.bf16x2.f32 a, f0, f1; | cvt.rn.satfinite.e4m3x2.f32 h, f0, f1; | cvt.rn.f16x2.e5m2x2 a, h;
cvta.to.global.u64 x, y; | selp.f32 f0, f0, f1, p; | slct.b32.s32 a, b, c, d; | set.lt.u32.f32 a, f0, f1; | setp.eq.and.s32 p|q, a, b, p; | setp.gt.or.ftz.f16x2 p|q, a, b, !p; | set.lt.bf16x2.bf16x2 a, b, c; | isspacep.shared p, x;
mapa.shared::cluster.u32 a, b, c; | getctarank.shared::cluster.u32 a, b; | createpolicy.fractional.L2::evict_first.b64 x, 1.0; | ld.global.nc.L1::no_allocate.v4.b32 {a, b, c, d}, [x];
ldu.global.u32 a, [x]; | st.release.gpu.global.u32 [x], a; | st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [a], b, [c];
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [a], b, [c];
atom.acq_rel.gpu.global.cas.b64 x, [y], z, x; | red.global.add.noftz.bf16x2 [x], a; | prefetch.global.L2 [x]; | cp.async.cg.shared.global.L2::128B [a], [x], 16;
cp.async.commit_group; | cp.async.wait_group 1; | cp.async.mbarrier.arrive.noinc.shared.b64 [a]; | cp.async.bulk.commit_group; | cp.async.bulk.wait_group.read 0;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [a], [x], b, [c]; | cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [x], [a], b;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [a], [x, {b, c}], [d], h, y;
cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [x, {a, b, c}], [d]; | cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [x, {a}], [d];
@!p bra.uni end; | brx.idx a, list; | call.uni f; | ret; | exit; | trap; | brkpt; | nanosleep.u32 20; | shfl.sync.bfly.b32 a|p, b, 1, 31, -1; | vote.sync.ballot.b32 a, p, -1;
match.all.sync.b64 a|p, x, -1; | redux.sync.min.s32 a, b, -1; | activemask.b32 a; | elect.sync a|p, -1; | bar.warp.sync -1; | bar.sync 1, 64; | barrier.cta.red.and.pred p, 0, q;
barrier.cluster.arrive.relaxed.aligned; | barrier.cluster.wait.acquire.aligned; | fence.acq_rel.gpu; | membar.gl; | fence.proxy.async.shared::cta; | fence.mbarrier_init.release.cluster;
mbarrier.init.shared::cta.b64 [a], 1; | mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 x, [a], b; | mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [a], b, 0x989680;
griddepcontrol.wait; | setmaxnreg.inc.sync.aligned.u32 232; | ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {a, b, c, d}, [a]; | stmatrix.sync.aligned.m8n8.x2.shared.b16 [a], {b, c};
movmatrix.sync.aligned.m8n8.trans.b16 a, b; | mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {a, b, c, d}, {a, b, c, d}, {a, b}, {a, b, c, d};
wgmma.fence.sync.aligned; | wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {a, b, c, d}, x, y, p, 1, 1, 0, 1; | wgmma.commit_group.sync.aligned; | wgmma.wait_group.sync.aligned 0;
mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e2m1.f32.ue8m0 {f0, f0, f1, f1}, {a, b, c, d}, {a, b}, {f0, f0, f1, f1}, a, {0, 1}, b, {h, i};
mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 {f0, f0, f1, f1}, {a, b, c, d}, {a, b}, {f0, f0, f1, f1}, a, {0, 1}, b, {0, 0};
mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e3m2.e2m3.f16 {a, b}, {a, b, c, d}, {a, b}, {c, d};
mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 {a, b, c, d}, {a, b, c, d}, {a, b, c, d}, {a, b, c, d}, a, 1;
mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.satfinite.s32.u8.s8.s32 {a, b, c, d}, {a, b, c, d}, {a, b, c, d}, {a, b, c, d}, b, 0x0;
wmma.load.a.sync.aligned.row.m8n8k32.shared.s4 {a}, [b], 32; | wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32.satfinite {a, b}, {c}, {d}, {a, b};
wmma.store.d.sync.aligned.col.m8n8k32.global.s32 [x], {a, b}; | wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {a, b}, {c}, {d}, {a, b};
max.NaN.f32 f0, f0, f1, f1; | min.s32 a, b, c, d; | fma.rz.f64 g0, g0, g1, g0; | cvt.pack.sat.u8.s32.b32 a, b, c, d; | vadd.u32.u32.s32.sat.add a, b.b1, c.h0, d;
vabsdiff4.u32.u32.u32.add a, b, c, d; | vsub2.s32.s32.s32.sat a, b, c, d; | vsub.s32.s32.s32.sat a, b, c; | vmax.u32.u32.u32 a, b, c; | vavrg2.s32.s32.s32 a, b, c, d; | vabsdiff.u32.s32.s32 a, b, c; | vmin.s32.u32.s32.max a, b.h1, c, d; | vmax4.u32.u32.u32 a, b, c, d; | vadd4.u32.u32.u32.add a.b20, b.b3217, c.b4567, d;
vshr.u32.u32.u32.wrap a, b, c; | vavrg4.u32.u32.u32 a, b, c, d; | vshl.u32.u32.u32.clamp.add a, b, c, d; | mov.b128 w, {x, y}; | mov.b128 {x, y}, v; | ld.global.b128 w, [x]; | st.relaxed.gpu.global.b128 [x], w;
atom.relaxed.gpu.global.cas.b128 w, [x], v, w; | tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [a], 1, b; | tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [x], [y], 128; | mov.u32 a, %envreg2;
alloca.u64 x, y, 16; | stacksave.u64 x; | stackrestore.u64 x; | vset.u32.s32.lt.add a, b.h1, c, d; | vset2.s32.s32.ge a, b, c, d; | vset4.u32.u32.ne a, b, c, d; | vmad.u32.u32.s32.sat.shr15 a, b.b2, c, d; | vsub.s32.s32.s32.sat a.h1, b, c, d; | redux.sync.max.abs.NaN.f32 f0, f1, -1;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [a], 64; | tcgen05.dealloc.cta_group::2.sync.aligned.b32 a, b; | tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
tcgen05.mma.cta_group::1.kind::tf32.collector::a::use [a], [b], y, c, {a, b, c, d}, p, 3; | tcgen05.mma.cta_group::2.kind::i8 [a+4], x, y, c, p;
tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [a], x, y, c, [b], [d], p; | tcgen05.cp.cta_group::2.64x128b.warpx2::01_23 [a], x;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [x], h; | tcgen05.fence::before_thread_sync;
tcgen05.ld.sync.aligned.16x256b.x1.pack::16b.b32 {a, b, c, d}, [a]; | tcgen05.st.sync.aligned.16x32bx2.x1.b32 [a], 2, {b}; | tcgen05.wait::ld.sync.aligned; | tcgen05.ld.red.sync.aligned.32x32b.x2.max.abs.NaN.f32 {a, b}, c, [d];
";

fn forms() -> impl Iterator<Item = &'static str> {
    FORMS.split(['|', '\n']).map(str::trim)
}

/// Lines and bars separate forms, but pairs `a|p` hold a bar too: such forms are joined again.
fn joined() -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for part in forms().filter(|p| !p.is_empty()) {
        match all.last_mut() {
            Some(last) if !last.ends_with(';') => {
                last.push('|');
                last.push_str(part);
            }
            _ => all.push(part.to_string()),
        }
    }
    all
}

#[test]
fn every_form_decodes() {
    let errors: Vec<String> = joined()
        .iter()
        .filter_map(|form| decodes(form).err())
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn every_instruction_of_the_table_has_a_form() {
    let docs = include_str!("../../../docs/sim.md");
    let table = docs.split("<!-- supported -->").nth(1).unwrap();
    let table = table.split("Not supported").next().unwrap();
    let forms = joined();
    let words = table
        .split('`')
        .skip(1)
        .step_by(2)
        .flat_map(str::split_whitespace);
    for word in words.filter(|w| w.starts_with(|c: char| c.is_ascii_lowercase())) {
        let name = word.trim_end_matches(".*");
        let types = ["f32", "f64", "f16", "bf16", "f32x2", "fma.f64"];
        let base = name.split('.').next().unwrap();
        let known = forms.iter().any(|f| {
            let op = f
                .split_whitespace()
                .find(|w| !w.starts_with('@'))
                .unwrap_or("");
            op.split('.').next().map(|o| o.trim_end_matches(';')) == Some(base)
        });
        assert!(
            known || types.contains(&name),
            "`{word}` has no form in this test"
        );
    }
}

/// Instructions that are not executed do not refuse their module: the kernel that reaches one stops.
#[test]
fn what_the_table_excludes_stops_the_kernel_by_name() {
    for line in [
        "min.xorsign.abs.f32 f0, f0, f1;",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0 {f0, f0, f1, f1}, {a, b, c, d}, {a, b}, {f0, f0, f1, f1}, a, {0, 1}, b, {0, 0};",
        "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {a, b, c, d}, {a, b, c, d}, {a, b, c, d}, {a, b, c, d}, a, 2;",
        "wmma.load.a.sync.aligned.row.m8n8k4.shared.f16 {a}, [b];",
        "tcgen05.shift.cta_group::1.down [a];",
        "tcgen05.mma.sp.cta_group::1.kind::f16 [a], x, y, [b], c, p;",
        "tex.2d.v4.f32.f32 {f0}, [x, {f1}];",
        "mov.u32 a, %pm0;",
        "vadd4.u32.u32.u32.add a, b.b3219, c, d;",
        "add.u32 a, -b, c;",
    ] {
        let module = module(line).unwrap();
        let errors: Vec<String> = module.unsupported().map(ToString::to_string).collect();
        let name = line.split(['.', ' ']).next().unwrap();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].contains("line 10"), "{errors:?}");
        let run = |threads| {
            let mut launch = Launch::new("k", 1, threads, vec![Arg::Bytes(vec![0; 128])]);
            launch.smem = 64;
            Simulator::default().run(&mut Device::new(), &module, &launch)
        };
        let Err(SimError::Fault(fault, _)) = run(32) else {
            panic!("`{line}` runs");
        };
        assert_eq!(fault.kind, FindingKind::Unsupported, "{fault}");
        assert!(fault.to_string().contains(name), "{fault}");
        // A branch around it is enough.
        let skipped = format!("setp.eq.u32 p, a, a; @p bra.uni end; {line}");
        let skipped = self::module(&skipped).unwrap();
        let launch = Launch::new("k", 1, 32, vec![Arg::Bytes(vec![0; 128])]);
        Simulator::default()
            .run(&mut Device::new(), &skipped, &launch)
            .unwrap();
    }
    assert!(module("add.u32 a, b, undefined;").is_err());
    assert!(module("bra nowhere;").is_err());
}
