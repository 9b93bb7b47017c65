//! `axe sim PACKAGE` on packages for Trainium: the launches one after the other on memory in HBM, every documented rule
//! enforced, and how long the engines are busy.

use crate::reference;
use axe_package::{
    BufferInit, ConcreteArg, ConcreteStep, Instance, POISON, Package, ParamKind, Place,
    Role as MemoryRole, Tensor, TensorType, Unwritten,
};
use axe_runtime::RuntimeError;
use axe_runtime::run::Job;
use axe_trn::facts::chip::Engine;
use axe_trn::program::{Program, Role};
use axe_trn::{run, time};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};

/// What `axe sim` was asked.
pub struct Asked {
    /// Compare with the CPU reference.
    pub check: bool,
    /// Say how long each engine is busy.
    pub stats: bool,
    /// Print JSON.
    pub json: bool,
}

/// A package on the simulator.
struct Machine<'a> {
    package: &'a Package,
    programs: HashMap<String, Program>,
    instance: Instance,
    memory: Vec<Vec<u8>>,
    timings: HashMap<String, time::Timing>,
    findings: Vec<(String, String)>,
    seconds: f64,
    launches: Vec<String>,
}

fn wrong(message: impl Into<String>) -> RuntimeError {
    RuntimeError::Usage(message.into())
}

/// The kernels of a package's files, by name.
fn programs(package: &Package) -> Result<HashMap<String, Program>, RuntimeError> {
    let mut programs = HashMap::new();
    for kernel in &package.manifest().kernels {
        let Some(file) = &kernel.program else {
            return Err(wrong(format!("kernel `{}` has no program", kernel.name)));
        };
        let text = package.file(file).unwrap_or_default();
        let all: Vec<Program> =
            serde_json::from_slice(text).map_err(|error| wrong(format!("{file}: {error}")))?;
        programs.extend(
            all.into_iter()
                .map(|program| (program.name.clone(), program)),
        );
        if !programs.contains_key(&kernel.symbol) {
            return Err(wrong(format!(
                "{file}: there is no kernel `{}`",
                kernel.symbol
            )));
        }
    }
    Ok(programs)
}

/// Simulates and prints the outcome; the exit code says whether all was well.
///
/// # Errors
/// A package or an argument that is wrong.
pub fn main(job: &mut Job, asked: &Asked) -> Result<u8, RuntimeError> {
    let inputs = job.inputs(1)?;
    if asked.check && job.package().manifest().source.is_some() {
        reference::expect(job, &inputs)?;
    }
    let mut machine = Machine::new(job, &inputs)?;
    machine.run()?;
    let mut passed = machine.findings.is_empty();
    let mut outputs = Vec::new();
    for spec in &job.package().manifest().outputs {
        let tensor = machine.output(&spec.name)?;
        let result = job.judge(spec, &tensor, &Unwritten::by_pattern(&tensor))?;
        passed &= result.passed();
        outputs.push((result.to_string(), json!(result)));
    }
    match asked.json {
        true => println!("{}", machine.as_json(passed, &outputs)),
        false => machine.print(asked, &outputs),
    }
    Ok(u8::from(!passed))
}

impl<'a> Machine<'a> {
    fn new(job: &'a Job, inputs: &BTreeMap<String, Tensor>) -> Result<Self, RuntimeError> {
        let package = job.package();
        let manifest = package.manifest();
        let typed = |(name, tensor): (&String, &Tensor)| {
            let of = TensorType {
                dtype: tensor.dtype(),
                shape: tensor.shape().to_vec(),
            };
            (name.clone(), of)
        };
        let types = inputs.iter().map(typed).collect();
        let env = manifest
            .bind(&types, job.dims(), 1)
            .map_err(|error| wrong(error.to_string()))?;
        let instance = manifest
            .instantiate(&env)
            .map_err(|error| wrong(error.to_string()))?;
        let mut memory = Vec::new();
        for piece in &instance.memory {
            let bytes = usize::try_from(piece.bytes).map_err(|_| wrong("memory is too large"))?;
            let content = match &piece.role {
                MemoryRole::Input => inputs
                    .get(&piece.name)
                    .map(|tensor| tensor.bytes().to_vec()),
                MemoryRole::Buffer(BufferInit::Zero | BufferInit::ZeroOnLoad) => {
                    Some(vec![0; bytes])
                }
                MemoryRole::Buffer(BufferInit::Data { file }) => {
                    Some(package.file(file).unwrap_or_default().to_vec())
                }
                MemoryRole::Output | MemoryRole::Buffer(BufferInit::Undefined) => {
                    Some(vec![POISON; bytes])
                }
            };
            let content = content.filter(|content| content.len() == bytes);
            memory.push(
                content
                    .ok_or_else(|| wrong(format!("`{}`: expected {bytes} bytes", piece.name)))?,
            );
        }
        Ok(Self {
            package,
            programs: programs(package)?,
            instance,
            memory,
            timings: HashMap::new(),
            findings: Vec::new(),
            seconds: 0.0,
            launches: Vec::new(),
        })
    }

    fn run(&mut self) -> Result<(), RuntimeError> {
        for step in self.instance.steps.clone() {
            match step {
                ConcreteStep::Fill { to, bytes, value } => {
                    self.write(to, &vec![value; usize::try_from(bytes).unwrap_or(0)])?;
                }
                ConcreteStep::Copy { from, to, bytes } => {
                    let bytes = self.read(from, usize::try_from(bytes).unwrap_or(usize::MAX))?;
                    self.write(to, &bytes)?;
                }
                ConcreteStep::Launch { kernel, args, .. } => self.launch(kernel, &args)?,
            }
        }
        Ok(())
    }

    fn read(&self, from: Place, bytes: usize) -> Result<Vec<u8>, RuntimeError> {
        let begin = usize::try_from(from.offset).unwrap_or(usize::MAX);
        let memory = self.memory.get(from.memory);
        let part = memory.and_then(|memory| memory.get(begin..begin.checked_add(bytes)?));
        part.map(<[u8]>::to_vec)
            .ok_or_else(|| wrong("a step of the package reads outside of its memory"))
    }

    fn write(&mut self, to: Place, bytes: &[u8]) -> Result<(), RuntimeError> {
        let begin = usize::try_from(to.offset).unwrap_or(usize::MAX);
        let memory = self.memory.get_mut(to.memory);
        let part = memory.and_then(|memory| memory.get_mut(begin..begin.checked_add(bytes.len())?));
        part.map(|part| part.copy_from_slice(bytes))
            .ok_or_else(|| wrong("a step of the package writes outside of its memory"))
    }

    fn launch(&mut self, number: usize, args: &[ConcreteArg]) -> Result<(), RuntimeError> {
        let kernel = &self.package.manifest().kernels[number];
        let program = self.programs[&kernel.symbol].clone();
        let mut places = Vec::new();
        for (param, arg) in kernel.params.iter().zip(args) {
            match (&param.kind, arg) {
                (ParamKind::Pointer { .. }, ConcreteArg::Address(place)) => places.push(*place),
                _ => {
                    return Err(wrong(format!(
                        "kernel `{}`: expected tensors as arguments",
                        kernel.name
                    )));
                }
            }
        }
        let arguments = program
            .buffers
            .iter()
            .filter(|buffer| buffer.role != Role::Local);
        if arguments.clone().count() != places.len() {
            return Err(wrong(format!(
                "kernel `{}`: its program has other arguments",
                kernel.name
            )));
        }
        let sized: Vec<_> = arguments
            .map(|buffer| (buffer.role, buffer.bytes()))
            .zip(places)
            .collect();
        let mut inputs = Vec::new();
        for ((role, bytes), place) in &sized {
            if *role == Role::Input {
                inputs.push(self.read(*place, usize::try_from(*bytes).unwrap_or(usize::MAX))?);
            }
        }
        let name = kernel.name.clone();
        let outcome =
            run::execute(&program, &inputs).map_err(|error| wrong(format!("{name}: {error}")))?;
        let found = outcome
            .findings
            .iter()
            .map(|finding| (name.clone(), finding.to_string()));
        self.findings.extend(found);
        let results = sized.iter().filter(|((role, _), _)| *role == Role::Output);
        for ((_, place), bytes) in results.zip(&outcome.outputs) {
            self.write(*place, bytes)?;
        }
        if !self.timings.contains_key(&name) {
            let timing =
                time::simulate(&program).map_err(|error| wrong(format!("{name}: {error}")))?;
            self.timings.insert(name.clone(), timing);
        }
        self.seconds += self.timings[&name].seconds;
        self.launches.push(name);
        Ok(())
    }

    fn output(&self, name: &str) -> Result<Tensor, RuntimeError> {
        let found = self.instance.find(name).and_then(|at| {
            let memory = self.instance.memory.get(at)?;
            Some((memory, self.memory.get(at)?))
        });
        let (memory, bytes) = found.ok_or_else(|| wrong(format!("there is no output `{name}`")))?;
        Tensor::new(memory.dtype, memory.shape.clone(), bytes.clone())
            .map_err(|error| wrong(error.to_string()))
    }

    fn as_json(&self, passed: bool, outputs: &[(String, serde_json::Value)]) -> serde_json::Value {
        let kernel = |name: &String| {
            let timing = &self.timings[name];
            let busy: BTreeMap<_, _> = (Engine::ALL.iter())
                .zip(timing.busy)
                .map(|(engine, busy)| (engine.name(), busy))
                .collect();
            json!({"kernel": name, "seconds": timing.seconds, "busy": busy})
        };
        json!({
            "passed": passed,
            "seconds": self.seconds,
            "launches": self.launches.iter().map(kernel).collect::<Vec<_>>(),
            "findings": self.findings.iter().map(|(kernel, finding)| format!("{kernel}: {finding}")).collect::<Vec<_>>(),
            "outputs": outputs.iter().map(|(_, value)| value).collect::<Vec<_>>(),
        })
    }

    fn print(&self, asked: &Asked, outputs: &[(String, serde_json::Value)]) {
        for (kernel, finding) in &self.findings {
            println!("{kernel}: {finding}");
        }
        if asked.stats {
            for name in &self.launches {
                println!("{name}\n{}", self.timings[name]);
            }
        }
        for (output, _) in outputs {
            println!("{output}");
        }
        println!(
            "{} launches, {:.1} us in the model",
            self.launches.len(),
            self.seconds * 1e6
        );
    }
}
