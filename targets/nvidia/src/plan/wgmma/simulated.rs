//! Plans run: their inline PTX in a kernel by hand, on random data, in the simulator, which reads
//! descriptors with a decoder of its own.

use super::cases::*;
use super::*;
use crate::facts::wgmma::{Accumulator, Element, Major, Swizzle};
use axe_layout::Axis;
use axe_sim::units::float::{Format, Round};
use axe_sim::{Arg, Device, Launch, Module, Options, Simulator};
use std::fmt::Write as _;

/// Bytes between the tiles of A and B are a multiple of this.
const ALIGNMENT: usize = 1024;

fn at(x: i64) -> usize {
    usize::try_from(x).unwrap()
}

/// A small integer that every type holds, and so do sums of a few hundred products.
fn value(state: &mut u64, unsigned: bool) -> i64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    let value = i64::try_from(*state >> 40).unwrap() % 5;
    if unsigned { value } else { value - 2 }
}

fn encode(element: Element, value: i64) -> Vec<u8> {
    let float = |format: Format, bytes: usize| {
        let bits = format.from_f64(value as f64, Round::Nearest, false);
        bits.to_le_bytes()[..bytes].to_vec()
    };
    match element {
        Element::F16 => float(Format::F16, 2),
        Element::Bf16 => float(Format::Bf16, 2),
        Element::Tf32 => (value as f32).to_le_bytes().to_vec(),
        Element::E4m3 => float(Format::E4m3, 1),
        Element::E5m2 => float(Format::E5m2, 1),
        Element::S8 | Element::U8 => vec![value.to_le_bytes()[0]],
    }
}

/// One accumulator of a 32-bit word that holds `packed`.
fn accumulator(d: Accumulator, value: i64) -> u32 {
    match d {
        Accumulator::F16 => {
            u32::try_from(Format::F16.from_f64(value as f64, Round::Nearest, false)).unwrap()
        }
        Accumulator::F32 => (value as f32).to_bits(),
        Accumulator::S32 => i32::try_from(value).unwrap() as u32,
    }
}

struct Run<'a> {
    product: Product<'a>,
    plan: WgmmaPlan,
    start: Start,
}

/// Values by row and column of K.
type Values = Vec<Vec<i64>>;

fn values(rows: i64, columns: i64, element: Element, state: &mut u64) -> Values {
    let unsigned = element == Element::U8;
    let mut row = || (0..columns).map(|_| value(state, unsigned)).collect();
    (0..rows).map(|_| row()).collect()
}

/// The bytes of a tile in shared memory.
fn image(matrix: &Matrix<'_>, element: Element, values: &Values) -> Vec<u8> {
    let mut image = Vec::new();
    for x in 0..matrix.layout.size() {
        let [i, j] = [x / matrix.shape[1], x % matrix.shape[1]].map(at);
        let value = if matrix.k_first {
            values[j][i]
        } else {
            values[i][j]
        };
        let place = matrix.layout.origin(x).unwrap().get(Axis::M);
        let place = matrix
            .layout
            .swizzle()
            .map_or(place, |swizzle| swizzle.apply(place));
        let place = at(place * element.bytes());
        let bytes = encode(element, value);
        image.resize(image.len().max(place + bytes.len()), 0);
        image[place..place + bytes.len()].copy_from_slice(&bytes);
    }
    image.resize(image.len().next_multiple_of(ALIGNMENT), 0);
    image
}

/// The text with its operands by name.
fn substituted(inline: &Inline, names: &[String]) -> String {
    let operands = inline.constraints.split(',').count() - 1;
    assert_eq!(operands, names.len(), "{}", inline.constraints);
    let mut text = inline.text.clone();
    for (number, name) in names.iter().enumerate().rev() {
        text = text.replace(&format!("${number}"), name);
    }
    assert!(!text.contains('$'));
    text
}

/// Code that leaves in `%d0` the address of the thread's row of a parameter.
fn thread_row(name: &str, words: usize) -> String {
    format!(
        "ld.param.u64 %d0, [{name}]; mul.wide.u32 %d2, %r0, {}; add.u64 %d0, %d0, %d2;\n",
        4 * words
    )
}

/// Code that leaves a descriptor in `%d{to}`.
fn descriptor(s: &mut String, shared: &Shared, base: usize, to: usize) {
    writeln!(s, "mov.u32 %r4, tile; add.u32 %r4, %r4, {base};").unwrap();
    for Term {
        divisor,
        modulus,
        bytes,
    } in &shared.terms
    {
        writeln!(
            s,
            "div.u32 %r5, %r1, {divisor}; rem.u32 %r5, %r5, {modulus}; mad.lo.u32 %r4, %r5, {bytes}, %r4;"
        )
        .unwrap();
    }
    writeln!(
        s,
        "shr.u32 %r4, %r4, 4; cvt.u64.u32 %d{to}, %r4; or.b64 %d{to}, %d{to}, {};",
        shared.strides.descriptor(0)
    )
    .unwrap();
}

impl Run<'_> {
    fn threads(&self) -> usize {
        at(self.product.d.threads())
    }

    /// Registers of A in each 32-bit word, over all blocks.
    fn a_words(&self) -> Vec<Vec<i64>> {
        self.plan.block(Start::Keep).a_words
    }

    fn kernel(&self, bytes: usize, b_at: usize) -> String {
        let (threads, words) = (self.threads(), self.plan.accumulators().len());
        let kind = if self.product.types.d == Accumulator::F32 {
            "f32"
        } else {
            "b32"
        };
        let a_words = self.a_words();
        let mut s = format!(
            ".version 9.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 tile[];
.visible .entry k(.param .u64 image, .param .u64 a, .param .u64 start, .param .u64 out)
.reqntid {threads}, 1, 1
{{
.reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .{kind} %o<{words}>; .reg .b32 %w<{}>;
mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 7; mul.lo.u32 %r2, %r0, 4;
ld.param.u64 %d0, [image];
copy: setp.ge.u32 %p0, %r2, {bytes}; @%p0 bra copied;
cvt.u64.u32 %d2, %r2; add.u64 %d2, %d0, %d2; ld.global.b32 %r3, [%d2];
mov.u32 %r4, tile; add.u32 %r4, %r4, %r2; st.shared.b32 [%r4], %r3;
add.u32 %r2, %r2, {}; bra copy;
copied: fence.proxy.async.shared::cta; bar.sync 0;
",
            a_words.len().max(1),
            4 * threads
        );
        let mut load = |name: &str, register: &str, kind: &str, count: usize| {
            writeln!(s, "{}", thread_row(name, count)).unwrap();
            for i in 0..count {
                writeln!(s, "ld.global.{kind} %{register}{i}, [%d0+{}];", 4 * i).unwrap();
            }
        };
        load("a", "w", "b32", a_words.len());
        load("start", "o", kind, words);
        let mut body = String::new();
        if let Source::Shared(shared) = &self.plan.a {
            descriptor(&mut body, shared, 0, 4);
        }
        descriptor(&mut body, &self.plan.b, b_at, 5);
        let outputs: Vec<_> = (0..words).map(|i| format!("%o{i}")).collect();
        let block = self.plan.block(self.start);
        let mut names = outputs.clone();
        if !block.zeroed {
            names.extend(outputs);
        }
        match &self.plan.a {
            Source::Shared(_) => names.push("%d4".to_string()),
            Source::Registers => names.extend((0..a_words.len()).map(|word| format!("%w{word}"))),
        }
        names.push("%d5".to_string());
        writeln!(body, "{}", substituted(&block, &names)).unwrap();
        writeln!(body, "wgmma.wait_group.sync.aligned 0;").unwrap();
        s.push_str(&body);
        let mut end = thread_row("out", words);
        for i in 0..words {
            writeln!(end, "st.global.{kind} [%d0+{}], %o{i};", 4 * i).unwrap();
        }
        s + &end + "ret;\n}\n"
    }

    /// The 32-bit words of a register tensor, thread by thread.
    fn words(
        &self,
        fragment: &Fragment,
        words: &[Vec<i64>],
        bits: u32,
        encode: impl Fn(i64, i64) -> u32,
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        for thread in 0..fragment.threads() {
            for word in words {
                let mut packed = 0;
                for (part, &register) in (0..).zip(word) {
                    let index = fragment.index(thread, register).unwrap();
                    packed |= encode(index[0], index[1]) << (bits * part);
                }
                bytes.extend(packed.to_le_bytes());
            }
        }
        bytes
    }

    /// What the simulator computes and what the sums are, as the words of the accumulators.
    fn outcome(&self, seed: u64) -> (Vec<u8>, Vec<u8>) {
        let Product { types, a, b, d } = &self.product;
        let [m, n] = *d.shape() else { panic!("rank") };
        let k = types.k() * i64::try_from(self.plan.steps).unwrap();
        let mut state = 0x9e37_79b9_7f4a_7c15 ^ (seed + 1);
        let (a_values, b_values) = (
            values(m, k, types.a, &mut state),
            values(n, k, types.b, &mut state),
        );
        let starts = values(m, n, Element::S8, &mut state);
        let mut shared = match a {
            Operand::Shared(matrix) => image(matrix, types.a, &a_values),
            Operand::Registers(_) => Vec::new(),
        };
        let b_at = shared.len();
        shared.extend(image(b, types.b, &b_values));
        let a_words = match a {
            Operand::Registers(fragment) => {
                let bits = u32::try_from(8 * types.a.bytes()).unwrap();
                self.words(fragment, &self.a_words(), bits, |m, k| {
                    let mut bytes = encode(types.a, a_values[at(m)][at(k)]);
                    bytes.resize(4, 0);
                    u32::from_le_bytes(bytes.try_into().unwrap())
                })
            }
            Operand::Shared(_) => vec![0; 4],
        };
        let words = self.plan.accumulators();
        let bits = if types.d == Accumulator::F16 { 16 } else { 0 };
        let start = self.words(d, &words, bits, |m, n| {
            accumulator(types.d, starts[at(m)][at(n)])
        });
        let keeps = self.start == Start::Keep;
        let expected = self.words(d, &words, bits, |m, n| {
            let products = a_values[at(m)]
                .iter()
                .zip(&b_values[at(n)])
                .map(|(a, b)| a * b);
            let before = if keeps { starts[at(m)][at(n)] } else { 0 };
            accumulator(types.d, products.sum::<i64>() + before)
        });
        let text = self.kernel(shared.len(), b_at);
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut device = Device::new();
        let mut give = |name: &str, bytes: &[u8]| {
            let address = device.alloc(name, bytes.len() as u64).unwrap();
            device.copy_in(address, bytes).unwrap();
            address
        };
        let given = [
            give("image", &shared),
            give("a", &a_words),
            give("start", &start),
            give("out", &vec![0; expected.len()]),
        ];
        let mut launch = Launch::new(
            "k",
            1,
            u32::try_from(self.threads()).unwrap(),
            given.map(Arg::Ptr).to_vec(),
        );
        launch.smem = shared.len() as u64;
        let options = Options {
            seed,
            ..Options::default()
        };
        let report = Simulator::new(options)
            .run(&mut device, &module, &launch)
            .unwrap();
        assert!(report.findings.is_empty(), "{}", report.findings[0]);
        let mut out = vec![0; expected.len()];
        device.copy_out(given[3], &mut out).unwrap();
        (out, expected)
    }
}

/// Runs a product with both kinds of start.
fn right(product: Product<'_>) -> WgmmaPlan {
    let plan = WgmmaPlan::new(&product).unwrap();
    for (seed, start) in (0..).zip([Start::Zero, Start::Keep]) {
        let run = Run {
            product,
            plan: plan.clone(),
            start,
        };
        let (got, expected) = run.outcome(seed);
        assert!(got == expected, "{start:?}:\n{plan}");
    }
    plan
}

fn shared_product(types: Types, a: &Memory, b: &Memory, d: &Fragment) -> WgmmaPlan {
    right(Product {
        types,
        a: Operand::Shared(a.matrix()),
        b: b.matrix(),
        d,
    })
}

#[test]
fn every_swizzle_by_rows_of_k() {
    for (swizzle, n) in [
        (Swizzle::B128, 64),
        (Swizzle::B64, 24),
        (Swizzle::B32, 8),
        (Swizzle::None, 16),
    ] {
        let a = Memory::swizzled(Major::K, swizzle, 64, 128, 2);
        let b = Memory::swizzled(Major::K, swizzle, n, 128, 2);
        shared_product(F16, &a, &b, &accumulators(64, n, [1, 1]));
    }
}

#[test]
fn every_swizzle_by_rows_of_m_and_n() {
    for swizzle in Swizzle::ALL {
        let a = Memory::swizzled(Major::Mn, swizzle, 128, 32, 2);
        let b = Memory::swizzled(Major::Mn, swizzle, 128, 32, 2);
        shared_product(BF16, &a, &b, &accumulators(128, 128, [2, 1]));
    }
}

#[test]
fn the_widest_instruction_and_two_blocks() {
    let a = Memory::swizzled(Major::K, Swizzle::B128, 128, 64, 2);
    let b = Memory::swizzled(Major::K, Swizzle::B128, 256, 64, 2);
    let plan = shared_product(BF16, &a, &b, &accumulators(128, 256, [2, 1]));
    assert_eq!(plan.atom.n, 256);
    let a = Memory::swizzled(Major::K, Swizzle::B128, 128, 64, 2);
    let b = Memory::swizzled(Major::Mn, Swizzle::B128, 64, 64, 2);
    let plan = shared_product(F16, &a, &b, &accumulators(128, 64, [1, 1]));
    assert_eq!(plan.instructions.len(), 8);
}

#[test]
fn other_types() {
    for types in [HALF, TF32, E4M3, S8] {
        let (k, bytes) = (4 * types.k(), types.a.bytes());
        let a = Memory::swizzled(Major::K, Swizzle::B128, 64, k, bytes);
        let b = Memory::swizzled(Major::K, Swizzle::B64, 32, k, bytes);
        shared_product(types, &a, &b, &accumulators(64, 32, [1, 1]));
    }
    let mixed = [
        (Element::E5m2, Element::E4m3, Accumulator::F16),
        (Element::U8, Element::S8, Accumulator::S32),
    ];
    for (a, b, d) in mixed {
        let tile = |rows| Memory::swizzled(Major::K, Swizzle::B32, rows, 64, 1);
        shared_product(
            Types { a, b, d },
            &tile(64),
            &tile(48),
            &accumulators(64, 48, [1, 1]),
        );
    }
}

#[test]
fn grids_stages_and_gaps() {
    // Warpgroups split m and n; B's rows fall into two boxes with a gap; A is the third stage of a ring.
    let a = Memory::of("Sw<2,3,3> o S[(128, 32) : (32, 1)] + 8192", 128, 32);
    let b = Memory::of("Sw<2,3,3> o S[(2, 32, 32) : (2048, 32, 1)]", 64, 32);
    let plan = shared_product(F16, &a, &b, &accumulators(128, 64, [2, 2]));
    assert_eq!((plan.atom.n, plan.b.warpgroup(3)), (32, 4096));
    // Core matrices in column order, and narrower instructions.
    let a = Memory::of("S[(8, 8, 4, 8) : (64, 8, 512, 1)]", 64, 32);
    let b = Memory::of("S[(3, 16, 32) : (4096, 32, 1)]", 48, 32);
    assert!(
        plan_of(&a, &b, 48).is_err(),
        "rows of 64 bytes without a swizzle"
    );
    let b = Memory::of("S[(3, 2, 8, 4, 8) : (4096, 64, 8, 128, 1)]", 48, 32);
    let plan = shared_product(F16, &a, &b, &accumulators(64, 48, [1, 1]));
    assert_eq!((plan.atom.n, plan.instructions.len()), (16, 6));
}

fn plan_of(a: &Memory, b: &Memory, n: i64) -> Result<WgmmaPlan, Decline> {
    super::cases::plan(F16, a, b, &accumulators(64, n, [1, 1]))
}

#[test]
fn a_from_registers() {
    for types in [BF16, TF32, E4M3, S8] {
        let k = 2 * types.k();
        let a = registers_of_a(types, 128, k, [2, 1]);
        let d = accumulators(128, 32, [2, 1]);
        let b = Memory::swizzled(Major::K, Swizzle::B64, 32, k, types.a.bytes());
        right(Product {
            types,
            a: Operand::Registers(&a),
            b: b.matrix(),
            d: &d,
        });
    }
    let a = registers_of_a(F16, 128, 64, [1, 2]);
    let d = accumulators(128, 128, [1, 2]);
    let b = Memory::swizzled(Major::Mn, Swizzle::B128, 128, 64, 2);
    right(Product {
        types: F16,
        a: Operand::Registers(&a),
        b: b.matrix(),
        d: &d,
    });
}

#[test]
fn a_wrong_stride_gives_wrong_sums() {
    let a = Memory::swizzled(Major::K, Swizzle::B128, 64, 64, 2);
    let b = Memory::swizzled(Major::K, Swizzle::B128, 64, 64, 2);
    let d = accumulators(64, 64, [1, 1]);
    let product = Product {
        types: F16,
        a: Operand::Shared(a.matrix()),
        b: b.matrix(),
        d: &d,
    };
    let mut plan = WgmmaPlan::new(&product).unwrap();
    plan.b.strides.stride = 512;
    let run = Run {
        product,
        plan,
        start: Start::Zero,
    };
    let (got, expected) = run.outcome(0);
    assert!(got != expected);
}
