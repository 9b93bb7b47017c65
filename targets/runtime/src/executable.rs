//! Packages inside of another program: on its memory, its streams, its context.
//!
//! An [`Executable`] is a package whose code is loaded. [`Executable::specialize`] fits it to the shapes of a call, once
//! for each; a [`Specialization`] launches. A launch allocates nothing, waits for nothing and checks what can change
//! between two calls with equal shapes: addresses, that outputs overlap nothing, the stream.
//!
//! **CUDA graphs.** A launch on a stream that is captured becomes nodes of the graph. Every capture has buffers of its
//! own (the package's intermediate results and constants), which live as long as the specialization: keep it while the
//! graph is replayed. **Streams.** Launches on different streams have different buffers too, and may overlap. A stream
//! that is destroyed with work pending must be waited for before another is created: its handle, and so its buffers, may
//! be taken again.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axe_package::{DType, Instance, Memory, Package, TensorType};

use crate::device::Device;
use crate::error::RuntimeError;
use crate::foreign::{Current, Relaxed, Stream};
use crate::loaded::{Code, Loaded};
use crate::workspace::Workspace;

/// The shapes of a call, and the dimensions that it gives by name.
type Shapes = (Vec<Vec<u64>>, BTreeMap<String, i64>);

/// A package whose code is loaded, for calls from any thread.
pub struct Executable {
    loaded: Arc<Loaded>,
    specializations: Mutex<HashMap<Shapes, Arc<Specialization>>>,
}

/// An executable for one set of shapes.
pub struct Specialization {
    loaded: Arc<Loaded>,
    instance: Instance,
    inputs: usize,
    outputs: usize,
    workspaces: Mutex<BTreeMap<(Stream, Option<u64>), Workspace>>,
}

/// What a poisoned lock guards is whole: whoever panicked held it while launching, and launches start from addresses.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Executable {
    /// Loads a package's code on a device.
    ///
    /// # Errors
    /// As [`Loaded::new`].
    pub fn new(device: &Device, package: Package, code: Code) -> Result<Self, RuntimeError> {
        let _current = Current::new(device.context())?;
        // Modules may be loaded while another thread captures.
        let _relaxed = Relaxed::new()?;
        Ok(Self {
            loaded: Arc::new(Loaded::new(device, package, code)?),
            specializations: Mutex::default(),
        })
    }

    /// The package.
    #[must_use]
    pub fn package(&self) -> &Package {
        self.loaded.package()
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.loaded.device()
    }

    /// The executable for inputs of these shapes (in the manifest's order) and `dims`, the symbols that no input defines.
    /// It is made once for each and kept.
    ///
    /// # Errors
    /// Shapes that do not fit the package, or have no concrete form.
    pub fn specialize(
        &self,
        shapes: &[&[u64]],
        dims: &BTreeMap<String, i64>,
    ) -> Result<Arc<Specialization>, RuntimeError> {
        let key = (
            shapes.iter().map(|shape| shape.to_vec()).collect(),
            dims.clone(),
        );
        if let Some(known) = lock(&self.specializations).get(&key) {
            return Ok(known.clone());
        }
        let made = Arc::new(Specialization::new(&self.loaded, shapes, dims)?);
        let mut all = lock(&self.specializations);
        Ok(all.entry(key).or_insert(made).clone())
    }
}

impl Specialization {
    fn new(
        loaded: &Arc<Loaded>,
        shapes: &[&[u64]],
        dims: &BTreeMap<String, i64>,
    ) -> Result<Self, RuntimeError> {
        let manifest = loaded.package().manifest();
        let (inputs, outputs) = (manifest.inputs.len(), manifest.outputs.len());
        if shapes.len() != inputs {
            let got = shapes.len();
            return Err(RuntimeError::Usage(format!(
                "`{}`: expected {inputs} inputs, got {got}",
                manifest.name
            )));
        }
        let given = manifest.inputs.iter().zip(shapes);
        let given = given.map(|(spec, shape)| {
            let ty = TensorType {
                dtype: spec.dtype,
                shape: shape.to_vec(),
            };
            (spec.name.clone(), ty)
        });
        let sm_count = loaded.device().properties().sm_count;
        let env = manifest.bind(&given.collect(), dims, sm_count)?;
        Ok(Self {
            loaded: loaded.clone(),
            instance: manifest.instantiate(&env)?,
            inputs,
            outputs,
            workspaces: Mutex::default(),
        })
    }

    /// Name, type and shape of each output.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, DType, &[u64])> {
        let outputs = self.instance.memory.iter().skip(self.inputs);
        let outputs = outputs.take(self.outputs);
        outputs.map(|memory| (memory.name.as_str(), memory.dtype, memory.shape.as_slice()))
    }

    /// Puts the package's steps on a stream of the caller's, without waiting: `inputs` and `outputs` are the addresses of
    /// dense row-major tensors, in the manifest's order.
    ///
    /// # Errors
    /// Too few or too many addresses, a null one, one that a kernel needs better aligned, an output that overlaps an
    /// input or another output; what the driver refuses.
    ///
    /// # Safety
    /// Each address is of device memory of this device that holds the tensor of its shape and lives until the stream has
    /// run the steps; the stream is one of the device's context and live.
    pub unsafe fn launch(
        &self,
        inputs: &[u64],
        outputs: &[u64],
        stream: Stream,
    ) -> Result<(), RuntimeError> {
        self.check(inputs, outputs)?;
        let _current = Current::new(self.loaded.device().context())?;
        let given = self.inputs + self.outputs;
        // Without buffers of its own, a launch leaves nothing behind that another stream could see.
        let key = match self.instance.memory.len() > given {
            // SAFETY: by this function's contract.
            true => (stream, unsafe { stream.capture() }?),
            false => (Stream::default(), None),
        };
        let mut workspaces = lock(&self.workspaces);
        let workspace = match workspaces.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                place.insert(Workspace::new(&self.loaded, &self.instance, given)?)
            }
        };
        let addresses = inputs.iter().chain(outputs).copied();
        // SAFETY: by this function's contract, and the workspace's own memory.
        unsafe { workspace.launch(&self.loaded, &self.instance, addresses, stream) }
    }

    fn check(&self, inputs: &[u64], outputs: &[u64]) -> Result<(), RuntimeError> {
        let counts = [
            ("inputs", self.inputs, inputs.len()),
            ("outputs", self.outputs, outputs.len()),
        ];
        for (what, want, got) in counts {
            if want != got {
                return Err(RuntimeError::Usage(format!(
                    "expected the addresses of {want} {what}, got {got}"
                )));
            }
        }
        let given = self.instance.memory.iter();
        let given = given.zip(inputs.iter().chain(outputs));
        for (at, (memory, address)) in given.clone().enumerate() {
            let problem = |problem: String| RuntimeError::Memory {
                memory: memory.name.clone(),
                problem,
            };
            if memory.bytes > 0 && *address == 0 {
                return Err(problem("the address is null".into()));
            }
            if address.checked_add(memory.bytes).is_none() {
                return Err(problem(format!("there is no memory at {address:#x}")));
            }
            if at < self.inputs {
                continue;
            }
            let mut before = given.clone().take(at);
            if let Some((other, _)) =
                before.find(|(other, start)| overlap((memory, *address), (other, **start)))
            {
                return Err(problem(format!("it overlaps `{}`", other.name)));
            }
        }
        Ok(())
    }
}

/// Whether two memories share a byte. Sums fit: they were checked in order.
fn overlap((a, at): (&Memory, u64), (b, bt): (&Memory, u64)) -> bool {
    a.bytes > 0 && b.bytes > 0 && at < bt.saturating_add(b.bytes) && bt < at.saturating_add(a.bytes)
}
