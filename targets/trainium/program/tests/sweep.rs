//! A sweep of random kernels: products of any order, elementwise values and reductions of any size, with tails. Each is
//! right and breaks no rule, or is declined with its reason; none is wrong.

mod values;

use axe_package::DType;
use axe_trn::facts::chip::CHIPS;
use axe_trn::plan::graph::{Graph, Id, Kind};
use axe_trn::plan::relayout::Relayout;
use axe_trn::plan::{Declined, Fused, Matmul, Order, rows};
use axe_trn::program::{Alu, Function};
use axe_trn::rules;
use axe_trn::run::execute;
use values::{F32, compare, products};

/// Cases of each family.
const CASES: u64 = 500;
const SIZES: [i64; 16] = [
    1, 2, 17, 31, 32, 33, 64, 96, 100, 127, 128, 129, 160, 200, 257, 300,
];
const FLOATS: [DType; 3] = [DType::F32, DType::BF16, DType::F16];

/// Numbers that look random and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// A value of others, whose size stays in bounds: what grows goes through tanh.
fn grown(graph: &mut Graph, random: &mut Random, known: &[Id]) -> Id {
    let (a, b) = (random.of(known), random.of(known));
    let number = graph.number([0.5, -1.25, 2.0][random.below(3)]);
    match random.below(9) {
        0 => graph.binary(Alu::Add, a, b, F32),
        1 => graph.binary(Alu::Subtract, number, a, F32),
        2 => graph.binary(Alu::Maximum, a, b, F32),
        3 => graph.binary(Alu::Multiply, a, number, F32),
        4 => graph.apply(Function::Sigmoid, a, F32),
        5 => {
            let small = graph.apply(Function::Tanh, a, F32);
            graph.apply(Function::Exp, small, F32)
        }
        6 => {
            let small = graph.apply(Function::Tanh, b, F32);
            graph.binary(Alu::Multiply, a, small, F32)
        }
        7 => {
            let large = graph.binary(Alu::Greater, known[0], number, DType::Bool);
            graph.select(large, a, b, F32)
        }
        _ => {
            let small = graph.apply(Function::Tanh, b, F32);
            let square = graph.binary(Alu::Multiply, small, small, F32);
            let one = graph.number(1.0);
            let divisor = graph.binary(Alu::Add, square, one, F32);
            graph.divide(a, divisor, F32)
        }
    }
}

/// How near a result of a type is to the exact one, for values of some tens.
fn near(dtype: DType) -> f64 {
    match dtype {
        DType::BF16 => 1e-2,
        DType::F16 => 2e-3,
        _ => 1e-4,
    }
}

fn values_case(random: &mut Random) -> (Graph, f64) {
    let columns = match random.below(8) {
        0 => 5000,
        _ => random.of(&SIZES),
    };
    let mut graph = Graph::new(random.of(&SIZES), columns);
    let dtype = random.of(&FLOATS);
    let mut known = vec![graph.input("x", Kind::Full, dtype)];
    for (name, kind) in [("r", Kind::Row), ("c", Kind::Column), ("y", Kind::Full)] {
        if random.coin() {
            let dtype = random.of(&FLOATS);
            known.push(graph.input(name, kind, dtype));
        }
    }
    for _ in 0..1 + random.below(6) {
        let value = match random.below(4) {
            0 => {
                let op = random.of(&[Alu::Add, Alu::Maximum, Alu::Minimum]);
                let of = random.of(&known);
                let small = graph.apply(Function::Tanh, of, F32);
                let whole = graph.reduce(op, small, F32);
                let mean = graph.number(1.0 / columns as f64);
                match op {
                    Alu::Add => graph.binary(Alu::Multiply, whole, mean, F32),
                    _ => whole,
                }
            }
            _ => grown(&mut graph, random, &known),
        };
        known.push(value);
    }
    let last = known[known.len() - 1];
    let kind = match graph.kind(last) {
        Kind::Number => Kind::Full,
        kind if random.coin() => kind,
        _ => Kind::Full,
    };
    let dtype = random.of(&FLOATS);
    let stored = graph.cast(last, dtype);
    graph.output("out", kind, dtype, stored);
    (graph, near(dtype))
}

#[test]
fn values_and_reductions_are_right_or_declined() {
    let mut declined = 0;
    for seed in 0..CASES {
        let mut random = Random(seed);
        let (graph, near) = values_case(&mut random);
        let chip = random.of(&CHIPS);
        match rows::plan(&graph, "kernel", chip.name) {
            Ok(program) => compare(&graph, &program, &[], &[], near),
            Err(Declined::DoesNotFit(why)) => {
                assert!(why.contains("does not fit"), "{seed}: {why}");
                declined += 1;
            }
            Err(Declined::Invalid(why)) => panic!("{seed}: {why}"),
        }
    }
    println!("{CASES} kernels of rows, {declined} declined");
    assert!(declined * 20 <= CASES, "{declined} declined");
}

#[test]
fn products_are_right() {
    for seed in 0..CASES {
        let mut random = Random(seed ^ 0x5eed);
        let sizes = [0; 3].map(|_| random.of(&SIZES));
        let [m, _, n] = sizes;
        let batch = random.of(&[1, 1, 1, 2, 3]);
        let shared = [0; 2].map(|_| batch > 1 && random.coin());
        let turned = [0; 2].map(|_| random.coin());
        let (inputs, output) = (random.of(&FLOATS), random.of(&FLOATS));
        let mut graph = Graph::new(batch * m, n);
        let mut known = vec![graph.product()];
        for (name, kind) in [
            ("bias", Kind::Column),
            ("scale", Kind::Row),
            ("other", Kind::Full),
        ] {
            if random.below(3) == 0 {
                known.push(graph.input(name, kind, F32));
                let value = grown(&mut graph, &mut random, &known);
                known.push(value);
            }
        }
        // What is stored is of the product.
        let last = known[known.len() - 1];
        let sum = graph.binary(Alu::Add, known[0], last, F32);
        let stored = graph.cast(sum, output);
        graph.output("out", Kind::Full, output, stored);
        let order = |minor: bool| if minor { Order::KMinor } else { Order::KMajor };
        let fused = Fused {
            matmul: Matmul {
                sizes,
                lhs: order(!turned[0]),
                rhs: order(turned[1]),
                inputs,
                output,
            },
            batch,
            shared,
            graph,
        };
        let (operands, product) = products(sizes, batch, shared, turned, inputs);
        let program = fused.plan("kernel", random.of(&CHIPS).name).unwrap();
        compare(
            &fused.graph,
            &program,
            &operands,
            &product,
            near(output).max(1e-3),
        );
    }
}

/// Permutations and repetitions of up to six dimensions: each element is that of its place, or there are too many dimensions.
#[test]
fn copies_are_right_or_declined() {
    let mut declined = 0;
    for seed in 0..CASES {
        let mut random = Random(seed ^ 0xc091);
        let mut from: Vec<i64> = (0..1 + random.below(5))
            .map(|_| random.of(&[1, 2, 3, 4, 7]))
            .collect();
        let at = random.below(from.len());
        from[at] = random.of(&[1, 16, 33, 130]);
        let mut dims: Vec<Result<usize, i64>> = (0..from.len()).map(Ok).collect();
        for at in (1..dims.len()).rev() {
            dims.swap(at, random.below(at + 1));
        }
        if random.coin() {
            dims.insert(random.below(dims.len() + 1), Err(random.of(&[2, 4, 9])));
        }
        let relayout = Relayout {
            from: from.clone(),
            dims: dims.clone(),
            dtype: random.of(&FLOATS),
        };
        let program = match relayout.plan("kernel", random.of(&CHIPS).name) {
            Ok(program) => program,
            Err(why) => {
                assert!(
                    why.to_string().contains("a transfer's pattern has"),
                    "{why}"
                );
                assert!(dims.len() > 5, "{relayout:?}: {why}");
                declined += 1;
                continue;
            }
        };
        assert_eq!(rules::check(&program), []);
        let size = relayout.dtype.bytes();
        let count: i64 = from.iter().product();
        let given: Vec<u8> = (0..count as usize * size)
            .map(|at| (at * 7 + at / 251) as u8)
            .collect();
        let outcome = execute(&program, std::slice::from_ref(&given)).unwrap();
        assert!(
            outcome.findings.is_empty(),
            "{relayout:?}: {}",
            outcome.findings[0]
        );
        assert_eq!(
            outcome.outputs[0],
            moved(&from, &dims, &given, size),
            "{relayout:?}"
        );
    }
    println!("{CASES} copies, {declined} declined");
    assert!(declined * 5 <= CASES, "{declined} declined");
}

/// The elements of a tensor in the order of others' dimensions.
fn moved(from: &[i64], dims: &[Result<usize, i64>], given: &[u8], size: usize) -> Vec<u8> {
    let extents: Vec<i64> = (dims.iter())
        .map(|dim| dim.map_or_else(|extent| extent, |of| from[of]))
        .collect();
    let count: i64 = extents.iter().product();
    let mut all = Vec::new();
    for flat in 0..count {
        let (mut rest, mut place) = (flat, vec![0; from.len()]);
        for (dim, extent) in dims.iter().zip(&extents).rev() {
            if let Ok(of) = dim {
                place[*of] = rest % extent;
            }
            rest /= extent;
        }
        let at = place
            .iter()
            .zip(from)
            .fold(0, |at, (index, extent)| at * extent + index);
        let begin = at as usize * size;
        all.extend_from_slice(&given[begin..begin + size]);
    }
    all
}
