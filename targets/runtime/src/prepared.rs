//! A loaded package with memory and arguments, ready to launch again and again.

use std::collections::BTreeMap;
use std::sync::Arc;

use axe_package::{BufferInit, Env, Instance, POISON, Role};

use crate::device::DeviceMemory;
use crate::error::RuntimeError;
use crate::loaded::Loaded;
use crate::step::Step;

/// One set of memory for a package and the steps that use it.
pub struct Prepared<'a> {
    loaded: &'a Loaded,
    instance: Instance,
    memory: Vec<Arc<DeviceMemory>>,
    steps: Vec<Step>,
}

impl<'a> Prepared<'a> {
    /// Allocates memory for the values of `env`, loads constants and encodes arguments. Inputs
    /// and outputs are poisoned.
    ///
    /// # Errors
    /// Numbers that do not fit, out of memory, tensor maps that the driver refuses.
    pub fn new(loaded: &'a Loaded, env: &Env) -> Result<Self, RuntimeError> {
        Self::sharing(loaded, env, &BTreeMap::new())
    }

    /// As [`Prepared::new`], with inputs and outputs in memory of the caller, by name. Shared memory
    /// is left as it is.
    ///
    /// # Errors
    /// As [`Prepared::new`]; shared memory that is too small or not aligned enough.
    pub fn sharing(
        loaded: &'a Loaded,
        env: &Env,
        shared: &BTreeMap<String, Arc<DeviceMemory>>,
    ) -> Result<Self, RuntimeError> {
        let instance = loaded.package().manifest().instantiate(env)?;
        let mut memory = Vec::new();
        for m in &instance.memory {
            if let Some(given) = shared.get(&m.name) {
                if given.bytes() < m.bytes || !given.address().is_multiple_of(m.align) {
                    let (have, want) = (given.bytes(), m.bytes);
                    return Err(RuntimeError::Usage(format!(
                        "`{}` needs {want} bytes aligned to {}, it is given {have}",
                        m.name, m.align
                    )));
                }
                memory.push(given.clone());
                continue;
            }
            let device_memory = DeviceMemory::new(loaded.device(), &m.name, m.bytes, m.align)?;
            match &m.role {
                Role::Buffer(BufferInit::Data { file }) => {
                    device_memory.upload(loaded.package().file(file).unwrap_or_default())?;
                }
                Role::Buffer(BufferInit::ZeroOnLoad) => device_memory.fill(0)?,
                _ => device_memory.fill(POISON)?,
            }
            memory.push(Arc::new(device_memory));
        }
        let addresses: Vec<u64> = memory.iter().map(|m| m.address()).collect();
        let steps = instance.steps.iter();
        let steps = steps.map(|step| Step::new(loaded, &addresses, step));
        let steps = steps.collect::<Result<_, _>>()?;
        Ok(Prepared {
            loaded,
            instance,
            memory,
            steps,
        })
    }

    /// The concrete sizes.
    #[must_use]
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// The memory of that name.
    #[must_use]
    pub fn memory(&self, name: &str) -> Option<&DeviceMemory> {
        self.memory.get(self.instance.find(name)?).map(Arc::as_ref)
    }

    /// Poisons outputs and undefined buffers, so that what a run leaves unwritten shows.
    ///
    /// # Errors
    /// The driver's.
    pub fn poison(&self) -> Result<(), RuntimeError> {
        self.poison_with(POISON)
    }

    /// [`Self::poison`] with another byte.
    ///
    /// # Errors
    /// The driver's.
    pub fn poison_with(&self, byte: u8) -> Result<(), RuntimeError> {
        for (m, device) in self.instance.memory.iter().zip(&self.memory) {
            if matches!(m.role, Role::Output | Role::Buffer(BufferInit::Undefined)) {
                device.fill(byte)?;
            }
        }
        Ok(())
    }

    /// Puts all steps on the stream, without waiting.
    ///
    /// # Errors
    /// A launch that the driver refuses.
    pub fn launch(&self) -> Result<(), RuntimeError> {
        self.zero()?;
        self.steps.iter().try_for_each(|step| self.enqueue(step))
    }

    /// Runs all steps and waits after each, so that an error names the kernel it came from.
    ///
    /// # Errors
    /// A launch that the driver refuses, or a kernel that faults.
    pub fn run_step_by_step(&self) -> Result<(), RuntimeError> {
        self.zero()?;
        for (i, step) in self.steps.iter().enumerate() {
            self.enqueue(step)?;
            let device = self.loaded.device();
            device.synchronize(|| step.describe(i))?;
        }
        Ok(())
    }

    /// Zeroes the buffers that start every run as zeros.
    fn zero(&self) -> Result<(), RuntimeError> {
        let pairs = self.instance.memory.iter().zip(&self.memory);
        let zeros = pairs.filter(|(m, _)| m.role == Role::Buffer(BufferInit::Zero));
        zeros.into_iter().try_for_each(|(_, device)| device.fill(0))
    }

    fn enqueue(&self, step: &Step) -> Result<(), RuntimeError> {
        // SAFETY: the memory of the steps is this value's, and the stream is its device's.
        unsafe { step.enqueue(self.loaded.device().stream().cu_stream()) }
    }

    /// Checks that nothing was written outside any memory.
    ///
    /// # Errors
    /// The memory whose neighbourhood changed.
    pub fn check_guards(&self) -> Result<(), RuntimeError> {
        let pairs = self.instance.memory.iter().zip(&self.memory);
        pairs
            .into_iter()
            .try_for_each(|(m, device)| device.check_guards(&m.name))
    }
}
