//! What one stream needs to run a specialization: the package's own buffers, and the steps' arguments.

use axe_package::{BufferInit, Instance, Memory, Role};

use crate::device::DeviceMemory;
use crate::error::RuntimeError;
use crate::foreign::{Relaxed, Stream};
use crate::loaded::Loaded;
use crate::step::Step;

/// Buffers and steps.
pub(crate) struct Workspace {
    /// The address of each memory of the instance: those of the caller's as they were last given.
    addresses: Vec<u64>,
    /// The package's own, in the instance's order behind the caller's.
    _buffers: Vec<DeviceMemory>,
    /// Address and bytes of what starts every run as zeros.
    zeroed: Vec<(u64, usize)>,
    /// None before the first launch.
    steps: Vec<Step>,
}

impl Workspace {
    /// Allocates and fills the buffers; waits for the copies. `given` are the memories that the caller brings.
    ///
    /// # Errors
    /// Out of memory, or the driver's.
    pub(crate) fn new(
        loaded: &Loaded,
        instance: &Instance,
        given: usize,
    ) -> Result<Self, RuntimeError> {
        let own = instance.memory.get(given..).unwrap_or_default();
        let mut workspace = Self {
            addresses: vec![0; given],
            _buffers: Vec::new(),
            zeroed: Vec::new(),
            steps: Vec::new(),
        };
        if own.is_empty() {
            return Ok(workspace);
        }
        // A workspace may be made while the caller's stream is captured.
        let _relaxed = Relaxed::new()?;
        for memory in own {
            let buffer = filled(loaded, memory)?;
            workspace.addresses.push(buffer.address());
            if memory.role == Role::Buffer(BufferInit::Zero) {
                workspace
                    .zeroed
                    .push((buffer.address(), memory.bytes as usize));
            }
            workspace._buffers.push(buffer);
        }
        let device = loaded.device();
        device.synchronize(|| "filling the package's buffers".into())?;
        Ok(workspace)
    }

    /// Puts all steps on a stream, with the caller's memory at these addresses.
    ///
    /// # Errors
    /// An address that a kernel does not take, a launch that the driver refuses.
    ///
    /// # Safety
    /// As [`Step::enqueue`].
    pub(crate) unsafe fn launch(
        &mut self,
        loaded: &Loaded,
        instance: &Instance,
        given: impl Iterator<Item = u64>,
        stream: Stream,
    ) -> Result<(), RuntimeError> {
        self.bind(loaded, instance, given)?;
        for (address, bytes) in &self.zeroed {
            let zero = Step::Fill {
                address: *address,
                bytes: *bytes,
                value: 0,
            };
            // SAFETY: a buffer of this workspace.
            unsafe { zero.enqueue(stream.raw()) }?;
        }
        // SAFETY: by this function's contract.
        let mut steps = self.steps.iter();
        steps.try_for_each(|step| unsafe { step.enqueue(stream.raw()) })
    }

    fn bind(
        &mut self,
        loaded: &Loaded,
        instance: &Instance,
        given: impl Iterator<Item = u64>,
    ) -> Result<(), RuntimeError> {
        let mut moved = false;
        for (known, address) in self.addresses.iter_mut().zip(given) {
            moved |= *known != address;
            *known = address;
        }
        if self.steps.len() != instance.steps.len() {
            let steps = instance.steps.iter();
            let steps = steps.map(|step| Step::new(loaded, &self.addresses, step));
            self.steps = steps.collect::<Result<_, _>>()?;
        } else if moved {
            let bound = self.rebind(loaded, instance);
            if bound.is_err() {
                // Half of the steps have other addresses: the next launch starts anew.
                self.steps.clear();
            }
            return bound;
        }
        Ok(())
    }

    fn rebind(&mut self, loaded: &Loaded, instance: &Instance) -> Result<(), RuntimeError> {
        let mut pairs = self.steps.iter_mut().zip(&instance.steps);
        pairs.try_for_each(|(step, concrete)| step.rebind(loaded, &self.addresses, concrete))
    }
}

/// A buffer of the package with what it holds before the first run.
fn filled(loaded: &Loaded, memory: &Memory) -> Result<DeviceMemory, RuntimeError> {
    let buffer = DeviceMemory::new(loaded.device(), &memory.name, memory.bytes, memory.align)?;
    match &memory.role {
        Role::Buffer(BufferInit::Data { file }) => {
            buffer.upload(loaded.package().file(file).unwrap_or_default())?;
        }
        Role::Buffer(BufferInit::ZeroOnLoad) => buffer.fill(0)?,
        _ => {}
    }
    Ok(buffer)
}
