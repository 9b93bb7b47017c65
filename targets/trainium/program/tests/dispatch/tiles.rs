//! Tensors in buffers, by layouts: what lies where, from the definition of a layout alone, and kernels around one operator
//! that load images of its buffers, poisoned where nothing lies, and store them.

use axe_layout::{Axis, Coord, Iter, Layout};
use axe_package::DType;
use axe_trn::dispatch::Region;
use axe_trn::program::build::Tile;
use axe_trn::program::{Builder, Program, Space};
use axe_trn::rules;
use axe_trn::run::{execute, memory};

/// What no operator writes.
pub const POISON: f32 = -1024.0;

/// Numbers that look random and are the same each time.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, count: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count
    }

    pub fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// Once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.below(at + 1));
        }
    }

    /// Small integers, exact in every type and sum.
    pub fn values(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.below(7) as f32 - 3.0).collect()
    }
}

pub fn p() -> Axis {
    Axis::new("P").unwrap()
}

pub fn f() -> Axis {
    Axis::new("F").unwrap()
}

/// A digit of a dimension: its extent, and partitions that it moves by; none on elements.
pub type Digit = (i64, Option<i64>);

/// A tensor, its buffer's extents, and what it holds.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub space: Space,
    pub dtype: DType,
    pub shape: Vec<i64>,
    pub layout: Layout,
    pub start: (i64, i64),
    pub buffer: Vec<i64>,
    pub valid: Option<Vec<i64>>,
}

impl Tensor {
    /// Digits of each dimension as a layout: elements in some order, with gaps.
    pub fn new(
        random: &mut Random,
        space: Space,
        dtype: DType,
        dims: &[Vec<Digit>],
        start: (i64, i64),
    ) -> Self {
        let flat: Vec<Digit> = dims.iter().flatten().copied().collect();
        let mut order: Vec<usize> = (0..flat.len()).filter(|at| flat[*at].1.is_none()).collect();
        order.reverse();
        if random.once_in(3) {
            random.shuffle(&mut order);
        }
        let mut strides = vec![0; flat.len()];
        let mut stride = 1;
        for at in order {
            strides[at] = stride;
            stride = stride * flat[at].0 + i64::from(random.once_in(8)) * 3;
        }
        let elements = if space == Space::Hbm { Axis::M } else { f() };
        let (mut iters, mut low, mut high) = (Vec::new(), 0, 0);
        for ((extent, partition), stride) in flat.iter().zip(&strides) {
            match partition {
                None => iters.push(Iter::new(*extent, *stride, elements)),
                Some(step) => {
                    iters.push(Iter::new(*extent, *step, p()));
                    low += (step * (extent - 1)).min(0);
                    high += (step * (extent - 1)).max(0);
                }
            }
        }
        let offset = Coord::from_terms([(p(), -low)]).unwrap();
        let layout = Layout::new(iters, [], offset, None).unwrap();
        let partitions = start.0 + high - low + 1;
        Self {
            space,
            dtype,
            shape: dims
                .iter()
                .map(|dim| dim.iter().map(|digit| digit.0).product())
                .collect(),
            layout,
            start,
            buffer: match space {
                Space::Hbm => vec![start.1 + stride],
                _ => vec![partitions, start.1 + stride],
            },
            valid: None,
        }
    }

    /// Whether its buffer fits its memory.
    pub fn fits(&self) -> bool {
        let bytes = self.buffer.last().unwrap() * self.dtype.bytes() as i64;
        match self.space {
            Space::Hbm => true,
            Space::Sbuf => self.buffer[0] <= 128 && bytes <= 40_000,
            Space::Psum => self.buffer[0] <= 128 && bytes <= 8192,
        }
    }

    pub fn region(&self, buffer: usize) -> Region {
        Region {
            partition: self.start.0.into(),
            free: self.start.1.into(),
            valid: self.valid.clone(),
            ..Region::new(buffer, &self.shape, self.layout.clone())
        }
    }

    /// Where an index lies: partitions and elements, from the definition.
    pub fn places(&self, index: &[i64]) -> Vec<(i64, i64)> {
        let mut flat = 0;
        for (index, extent) in index.iter().zip(&self.shape) {
            flat = flat * extent + index;
        }
        let mut place = (self.start.0 + self.layout.offset().get(p()), self.start.1);
        place.1 += self.layout.offset().get(f());
        let step = |place: &mut (i64, i64), iter: &Iter, digit: i64| {
            if iter.axis == p() {
                place.0 += digit * iter.stride;
            } else {
                place.1 += digit * iter.stride;
            }
        };
        for iter in self.layout.shard().iter().rev() {
            step(&mut place, iter, flat % iter.extent);
            flat /= iter.extent;
        }
        let mut places = vec![place];
        for iter in self.layout.replica() {
            places = (places.iter())
                .flat_map(|place| {
                    (0..iter.extent).map(move |digit| {
                        let mut place = *place;
                        step(&mut place, iter, digit);
                        place
                    })
                })
                .collect();
        }
        places
    }

    fn cell(&self, place: (i64, i64)) -> usize {
        match self.space {
            Space::Hbm => place.1 as usize,
            _ => (place.0 * self.buffer[1] + place.1) as usize,
        }
    }

    /// The image of its buffer with values at its indices, and poison elsewhere.
    pub fn image(&self, value: &dyn Fn(&[i64]) -> f32) -> Vec<f32> {
        let count: i64 = self.buffer.iter().product();
        let mut image = vec![POISON; count as usize];
        each(self.valid.as_deref().unwrap_or(&self.shape), &mut |index| {
            for place in self.places(index) {
                image[self.cell(place)] = value(index);
            }
        });
        image
    }

    /// Its values, in row-major order of a shape.
    pub fn random(&self, random: &mut Random) -> Vec<f32> {
        random.values(self.shape.iter().product::<i64>() as usize)
    }

    /// An index in row-major order.
    pub fn flat(&self, index: &[i64]) -> usize {
        let flat = index.iter().zip(&self.shape);
        flat.fold(0, |flat, (index, extent)| {
            flat * *extent as usize + *index as usize
        })
    }
}

/// Calls `visit` with every index of a shape.
pub fn each(shape: &[i64], visit: &mut dyn FnMut(&[i64])) {
    let count: i64 = shape.iter().product();
    let mut index = vec![0; shape.len()];
    for flat in 0..count {
        let mut rest = flat;
        for (index, extent) in index.iter_mut().zip(shape).rev() {
            *index = rest % extent;
            rest /= extent;
        }
        visit(&index);
    }
}

/// A kernel around an operator: images in, the operator, the image of the first tensor out.
pub struct Kernel {
    pub b: Builder,
    pub regions: Vec<Region>,
    tiles: Vec<Tile>,
    output: Tile,
}

impl Kernel {
    /// Tensors whose images are loaded. The first one is the operator's result.
    pub fn new(chip: &str, tensors: &[Tensor]) -> Self {
        let mut b = Builder::new("kernel", chip);
        let images: Vec<Tile> = (tensors.iter().enumerate())
            .map(|(at, t)| b.input(&format!("image{at}"), &t.buffer, t.dtype))
            .collect();
        let output = b.output("out", &tensors[0].buffer, tensors[0].dtype);
        let mut tiles = Vec::new();
        for (at, (tensor, image)) in tensors.iter().zip(&images).enumerate() {
            let tile = match (tensor.space, at) {
                (Space::Hbm, 0) => {
                    b.dma_copy(output.all(), image.all());
                    output.clone()
                }
                (Space::Hbm, _) => image.clone(),
                (space, _) => {
                    let name = format!("t{at}");
                    let tile = b.tile(&name, Space::Sbuf, &tensor.buffer, tensor.dtype, 1);
                    b.dma_copy(tile.all(), image.all());
                    match space {
                        Space::Psum => {
                            let sums = b.tile("sums", Space::Psum, &tensor.buffer, tensor.dtype, 1);
                            b.copy(sums.all(), tile.all());
                            sums
                        }
                        _ => tile,
                    }
                }
            };
            tiles.push(tile);
        }
        let regions = (tensors.iter().zip(&tiles)).map(|(t, tile)| t.region(tile.buffer()));
        Self {
            regions: regions.collect(),
            b,
            tiles,
            output,
        }
    }

    /// The kernel, with what the operator wrote stored.
    pub fn finish(mut self, tensors: &[Tensor]) -> Program {
        match tensors[0].space {
            Space::Hbm => {}
            Space::Sbuf => self.b.dma_copy(self.output.all(), self.tiles[0].all()),
            Space::Psum => {
                let back =
                    self.b
                        .tile("back", Space::Sbuf, &tensors[0].buffer, tensors[0].dtype, 1);
                self.b.copy(back.all(), self.tiles[0].all());
                self.b.dma_copy(self.output.all(), back.all());
            }
        }
        self.b.finish()
    }
}

/// Executes a kernel and compares the image of the result, all of it: what is expected at its indices, poison elsewhere.
pub fn compare(
    program: &Program,
    tensors: &[Tensor],
    images: &[Vec<f32>],
    expected: &[f32],
    near: f32,
    what: &dyn Fn() -> String,
) {
    assert_eq!(rules::check(program), [], "{}", what());
    let inputs: Vec<Vec<u8>> = (tensors.iter().zip(images))
        .map(|(tensor, image)| memory::encode(tensor.dtype, image))
        .collect();
    let outcome = execute(program, &inputs).unwrap_or_else(|error| panic!("{}: {error}", what()));
    assert!(
        outcome.findings.is_empty(),
        "{}: {}",
        what(),
        outcome.findings[0]
    );
    let got = memory::decode(tensors[0].dtype, &outcome.outputs[0]);
    for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
        let close = (got - expected).abs() <= near * expected.abs().max(1.0);
        assert!(close, "{}: at {at}: got {got}, expected {expected}", what());
    }
}
