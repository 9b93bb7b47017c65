//! Running a package once: inputs from files or random, outputs checked and saved, times taken.

use std::collections::BTreeMap;
use std::path::PathBuf;

use axe_package::{
    DType, Env, Package, Random, Report, Tensor, TensorSpec, TensorType, Tolerance, Unwritten,
    compare_written, npy,
};
use serde::Serialize;

use crate::device::Device;
use crate::error::RuntimeError;
use crate::loaded::{Code, Loaded};
use crate::prepared::Prepared;
use crate::timing::{Times, elapsed_us, rotating_sets};

/// Where an input's elements come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A `.npy` file.
    File(PathBuf),
    /// Random numbers: the seed and, if not the usual one, the range.
    Random {
        /// The seed.
        seed: u64,
        /// The lowest value and the bound above.
        range: Option<(f64, f64)>,
    },
}

impl std::str::FromStr for Source {
    type Err = String;

    /// Parses `random:SEED`, `random:SEED:LOW:HIGH` or a file name.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix("random") else {
            return Ok(Source::File(text.into()));
        };
        let bad = || format!("`{text}`: expected random:SEED, random:SEED:LOW:HIGH or a .npy file");
        let parts: Vec<&str> = rest.split(':').skip(1).collect();
        match (rest, parts.as_slice()) {
            ("", _) => Ok(Source::Random {
                seed: 0,
                range: None,
            }),
            (_, [seed]) => Ok(Source::Random {
                seed: seed.parse().map_err(|_| bad())?,
                range: None,
            }),
            (_, [seed, low, high]) => {
                let number = |s: &str| s.parse::<f64>().ok().filter(|v| v.is_finite());
                let range = number(low)
                    .zip(number(high))
                    .filter(|(l, h)| l < h)
                    .ok_or_else(bad)?;
                Ok(Source::Random {
                    seed: seed.parse().map_err(|_| bad())?,
                    range: Some(range),
                })
            }
            // A file whose name happens to start with the word.
            _ if !rest.starts_with(':') => Ok(Source::File(text.into())),
            _ => Err(bad()),
        }
    }
}

/// What to run and what to do with the results.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The package.
    pub package: PathBuf,
    /// Inputs by name. Input number i that is not named is random with seed i.
    pub inputs: Vec<(String, Source)>,
    /// Dimensions by name.
    pub dims: BTreeMap<String, i64>,
    /// Expected outputs by name.
    pub expect: Vec<(String, PathBuf)>,
    /// A folder that outputs are written to as `NAME.npy`.
    pub out: Option<PathBuf>,
    /// How often to time; 0 for not at all.
    pub repeat: usize,
    /// Which code to load.
    pub code: Code,
    /// Bounds other than the policy's.
    pub tolerance: Option<Tolerance>,
}

/// How one output came out.
#[derive(Debug, Clone, Serialize)]
pub struct OutputResult {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: axe_package::DType,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Elements that nothing wrote.
    pub unwritten: usize,
    /// The comparison, where something was expected.
    pub report: Option<Report>,
}

impl OutputResult {
    /// True if the output is written and, where something is expected, as expected.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.unwritten == 0 && self.report.as_ref().is_none_or(Report::passed)
    }
}

impl std::fmt::Display for OutputResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "output {} {} {:?}: ", self.name, self.dtype, self.shape)?;
        match &self.report {
            Some(report) => report.fmt(f),
            None if self.unwritten > 0 => {
                write!(f, "WRONG: {} elements never written", self.unwritten)
            }
            None => f.write_str("written, nothing expected"),
        }
    }
}

/// How a run came out.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// The package's function.
    pub name: String,
    /// True if every output is written and as expected.
    pub passed: bool,
    /// The symbols' values.
    pub dims: BTreeMap<String, i64>,
    /// The outputs.
    pub outputs: Vec<OutputResult>,
    /// True if the driver compiled PTX.
    pub via_ptx: bool,
    /// Times of a whole run of the package, if asked for.
    pub times: Option<Times>,
}

/// A request whose files are read and whose arguments fit: all that can be checked without a GPU.
pub struct Job {
    package: Package,
    given: BTreeMap<String, Tensor>,
    random: BTreeMap<String, (u64, Option<(f64, f64)>)>,
    expect: BTreeMap<String, Tensor>,
    request: Request,
}

impl Job {
    /// Reads the package and the files of a request and checks the arguments.
    ///
    /// # Errors
    /// Anything missing, damaged or of another type or shape than the package says.
    pub fn new(request: Request) -> Result<Self, RuntimeError> {
        let package = Package::open(&request.package)?;
        Self::with_package(package, request)
    }

    /// As [`Job::new`] with a package already read.
    ///
    /// # Errors
    /// As [`Job::new`].
    pub fn with_package(package: Package, request: Request) -> Result<Self, RuntimeError> {
        let manifest = package.manifest();
        let find = |specs: &[TensorSpec], what: &str, name: &str| {
            let known: Vec<&str> = specs.iter().map(|t| t.name.as_str()).collect();
            let unknown = || {
                format!(
                    "there is no {what} `{name}`; there are: {}",
                    known.join(", ")
                )
            };
            specs
                .iter()
                .find(|t| t.name == name)
                .cloned()
                .ok_or_else(|| RuntimeError::Usage(unknown()))
        };
        let (mut given, mut random, mut expect) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (i, spec) in manifest.inputs.iter().enumerate() {
            random.insert(spec.name.clone(), (i as u64, None));
        }
        for (name, source) in &request.inputs {
            let spec = find(&manifest.inputs, "input", name)?;
            match source {
                Source::File(path) => {
                    given.insert(name.clone(), npy::read_as(path, spec.dtype)?);
                }
                Source::Random { seed, range } => {
                    random.insert(name.clone(), (*seed, *range));
                }
            }
        }
        for (name, path) in &request.expect {
            let spec = find(&manifest.outputs, "output", name)?;
            // A reference may be more precise than the output.
            let tensor = npy::read_as(path, spec.dtype).or_else(|_| npy::read(path))?;
            expect.insert(name.clone(), tensor);
        }
        let job = Job {
            package,
            given,
            random,
            expect,
            request,
        };
        let env = job.env(1)?;
        job.package.manifest().instantiate(&env)?;
        Ok(job)
    }

    /// The package.
    #[must_use]
    pub fn package(&self) -> &Package {
        &self.package
    }

    /// Expects `tensor` as the output `name`, unless the request says what to expect of it.
    pub fn expect(&mut self, name: &str, tensor: Tensor) {
        self.expect.entry(name.to_owned()).or_insert(tensor);
    }

    /// Whether something is expected of the output `name`.
    #[must_use]
    pub fn expects(&self, name: &str) -> bool {
        self.expect.contains_key(name)
    }

    /// What is expected of the output `name`.
    #[must_use]
    pub fn expected(&self, name: &str) -> Option<&Tensor> {
        self.expect.get(name)
    }

    /// The bounds that an output of this type is held to.
    #[must_use]
    pub fn tolerance(&self, dtype: DType) -> Tolerance {
        let given = self.request.tolerance;
        given.unwrap_or_else(|| Tolerance::for_dtype(dtype))
    }

    /// Whether something is expected of every output.
    #[must_use]
    pub fn expects_all(&self) -> bool {
        let outputs = &self.package.manifest().outputs;
        outputs.iter().all(|output| self.expects(&output.name))
    }

    /// The dimensions that the request gives by name.
    #[must_use]
    pub fn dims(&self) -> &BTreeMap<String, i64> {
        &self.request.dims
    }

    /// All inputs by name, for a device of `sm_count` multiprocessors.
    ///
    /// # Errors
    /// As [`Job::new`].
    pub fn inputs(&self, sm_count: u32) -> Result<BTreeMap<String, Tensor>, RuntimeError> {
        let instance = self.package.manifest().instantiate(&self.env(sm_count)?)?;
        let specs = self.package.manifest().inputs.iter().zip(&instance.memory);
        specs
            .map(|(spec, memory)| Ok((spec.name.clone(), self.input(spec, &memory.shape)?)))
            .collect()
    }

    fn env(&self, sm_count: u32) -> Result<Env, RuntimeError> {
        let ty = |t: &Tensor| TensorType {
            dtype: t.dtype(),
            shape: t.shape().to_vec(),
        };
        let given = self
            .given
            .iter()
            .map(|(name, t)| (name.clone(), ty(t)))
            .collect();
        Ok(self
            .package
            .manifest()
            .bind(&given, &self.request.dims, sm_count)?)
    }

    fn input(&self, spec: &TensorSpec, shape: &[u64]) -> Result<Tensor, RuntimeError> {
        if let Some(tensor) = self.given.get(&spec.name) {
            return Ok(tensor.clone());
        }
        let (seed, range) = self.random.get(&spec.name).copied().unwrap_or_default();
        let mut random = Random::for_dtype(spec.dtype, seed);
        if let Some((low, high)) = range {
            (random.low, random.high) = (low, high);
        }
        Ok(Tensor::random(spec.dtype, shape.to_vec(), random)?)
    }

    /// Loads the package's code on a device.
    ///
    /// # Errors
    /// As [`Loaded::new`].
    pub fn load(&self, device: &Device) -> Result<Loaded, RuntimeError> {
        Loaded::new(device, self.package.clone(), self.request.code)
    }

    /// Runs on a loaded package (which must be this job's).
    ///
    /// # Errors
    /// Whatever fails; a wrong result is no error but an [`Outcome`] that did not pass.
    pub fn run(&self, loaded: &Loaded) -> Result<Outcome, RuntimeError> {
        let env = self.env(loaded.device().properties().sm_count)?;
        let prepared = self.prepare(loaded, &env)?;
        let (first, unwritten) = Unwritten::of_runs(|poison| self.results(&prepared, poison))?;
        let mut outputs = Vec::new();
        let specs = self.package.manifest().outputs.iter();
        for ((spec, got), unwritten) in specs.zip(&first).zip(&unwritten) {
            outputs.push(self.judge(spec, got, unwritten)?);
        }
        let times = if self.request.repeat > 0 {
            Some(self.time(loaded, &env, prepared)?)
        } else {
            None
        };
        Ok(Outcome {
            name: self.package.manifest().name.clone(),
            passed: outputs.iter().all(OutputResult::passed),
            dims: env.iter().map(|(k, v)| (k.to_owned(), v)).collect(),
            outputs,
            via_ptx: loaded.via_ptx(),
            times: times.flatten(),
        })
    }

    fn prepare<'a>(&self, loaded: &'a Loaded, env: &Env) -> Result<Prepared<'a>, RuntimeError> {
        let prepared = Prepared::new(loaded, env)?;
        for (i, spec) in self.package.manifest().inputs.iter().enumerate() {
            let shape = prepared
                .instance()
                .memory
                .get(i)
                .map(|m| m.shape.clone())
                .unwrap_or_default();
            let tensor = self.input(spec, &shape)?;
            if let Some(memory) = prepared.memory(&spec.name) {
                memory.upload(tensor.bytes())?;
            }
        }
        Ok(prepared)
    }

    /// The outputs of a run on memory poisoned with this byte, in the manifest's order.
    fn results(&self, prepared: &Prepared<'_>, poison: u8) -> Result<Vec<Tensor>, RuntimeError> {
        prepared.poison_with(poison)?;
        prepared.run_step_by_step()?;
        prepared.check_guards()?;
        let specs = self.package.manifest().outputs.iter();
        specs.map(|spec| downloaded(prepared, spec)).collect()
    }

    /// Saves one output where the request says so and compares it with what is expected;
    /// `unwritten` is what nothing wrote of it.
    ///
    /// # Errors
    /// A file that cannot be written, an expectation of another shape.
    pub fn judge(
        &self,
        spec: &TensorSpec,
        got: &Tensor,
        unwritten: &Unwritten,
    ) -> Result<OutputResult, RuntimeError> {
        if let Some(dir) = &self.request.out {
            std::fs::create_dir_all(dir).map_err(|error| RuntimeError::File {
                path: dir.display().to_string(),
                error,
            })?;
            npy::write(dir.join(format!("{}.npy", spec.name)), got)?;
        }
        let report = match self.expect.get(&spec.name) {
            None => None,
            Some(want) => {
                let tolerance = self.tolerance(spec.dtype);
                let report = compare_written(got, want, tolerance, unwritten);
                Some(report.map_err(|error| RuntimeError::Compare {
                    output: spec.name.clone(),
                    error,
                })?)
            }
        };
        Ok(OutputResult {
            name: spec.name.clone(),
            dtype: spec.dtype,
            shape: got.shape().to_vec(),
            unwritten: unwritten.count(),
            report,
        })
    }

    /// Times whole runs, rotating over sets of memory that together exceed the L2 cache.
    fn time(
        &self,
        loaded: &Loaded,
        env: &Env,
        first: Prepared<'_>,
    ) -> Result<Option<Times>, RuntimeError> {
        let device = loaded.device();
        let bytes = first.instance().memory.iter().map(|m| m.bytes).sum();
        let mut sets = vec![first];
        while sets.len() < rotating_sets(bytes, device.properties().l2_bytes) {
            sets.push(self.prepare(loaded, env)?);
        }
        let run = |i: usize| sets.get(i % sets.len()).map_or(Ok(()), Prepared::launch);
        let warm_up = sets.len().max(3);
        elapsed_us(device, 0, warm_up, run)?;
        let mut samples = Vec::new();
        for i in 0..self.request.repeat {
            samples.push(elapsed_us(device, warm_up + i, 1, run)?);
        }
        Ok(Times::of(samples))
    }
}

/// What an output holds.
fn downloaded(prepared: &Prepared<'_>, spec: &TensorSpec) -> Result<Tensor, RuntimeError> {
    let missing = || RuntimeError::Usage(format!("there is no output `{}`", spec.name));
    let memory = prepared.memory(&spec.name).ok_or_else(missing)?;
    let index = prepared.instance().find(&spec.name).ok_or_else(missing)?;
    let shape = prepared.instance().memory.get(index);
    let shape = shape.map(|m| m.shape.clone()).unwrap_or_default();
    Ok(Tensor::new(spec.dtype, shape, memory.download()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_parse() {
        let parse = |s: &str| s.parse::<Source>();
        assert_eq!(parse("a.npy"), Ok(Source::File("a.npy".into())));
        assert_eq!(parse("random.npy"), Ok(Source::File("random.npy".into())));
        assert_eq!(
            parse("random"),
            Ok(Source::Random {
                seed: 0,
                range: None
            })
        );
        assert_eq!(
            parse("random:7"),
            Ok(Source::Random {
                seed: 7,
                range: None
            })
        );
        assert_eq!(
            parse("random:7:-1:2"),
            Ok(Source::Random {
                seed: 7,
                range: Some((-1.0, 2.0))
            })
        );
        for bad in [
            "random:",
            "random:x",
            "random:1:2",
            "random:1:2:1",
            "random:1:nan:2",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
