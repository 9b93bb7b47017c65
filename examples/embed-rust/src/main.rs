//! A compiler of one's own: it builds a module with melior, hands it to Axe, reads what was decided, and runs the kernels in
//! the simulator.

use axe_compile::{Options, compile_module};
use axe_context::{ModuleError, Source, context, parse, run_passes};
use axe_package::{DType, Tensor};
use axe_sim::{Options as SimOptions, Simulator, package::run_package};
use melior::Context;
use melior::ir::Module;
use std::collections::BTreeMap;
use std::error::Error;

/// What the front end of this compiler would build: `relu(x + y)` on tensors of any number of rows.
fn front_end(context: &Context) -> Result<Module<'_>, ModuleError> {
    let source = Source {
        name: "relu_sum.mlir",
        text: "#map = affine_map<(i, j) -> (i, j)>
         func.func @relu_sum(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
           %c0 = arith.constant 0 : index
           %zero = arith.constant 0.0 : f32
           %m = tensor.dim %x, %c0 : tensor<?x64xf32>
           %e = tensor.empty(%m) : tensor<?x64xf32>
           %r = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = [\"parallel\", \"parallel\"]}
               ins(%x, %y : tensor<?x64xf32>, tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
           ^bb0(%a: f32, %b: f32, %o: f32):
             %s = arith.addf %a, %b : f32
             %p = arith.maximumf %s, %zero : f32
             linalg.yield %p : f32
           } -> tensor<?x64xf32>
           return %r : tensor<?x64xf32>
         }",
    };
    parse(context, source)
}

/// The module with its kernels, before schedules are chosen: where a compiler with ideas of its own about them would go on.
fn scheduled(context: &Context) -> Result<String, ModuleError> {
    let mut module = front_end(context)?;
    let pipeline = "canonicalize,axe-nvidia{target=sm_90a until=scheduled}";
    run_passes(context, &mut module, pipeline)?;
    Ok(module.as_operation().to_string())
}

fn floats(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    // Any context will do, as long as it knows the module's dialects; this one knows all of them and Axe's.
    let context = context();
    let kernels = scheduled(&context)?.matches("axe.kernel @").count();
    println!("kernels: {kernels}");
    let module = front_end(&context)?;
    let options = Options {
        assemble: false,
        ..Options::for_target("sm_90a")
    };
    let compiled = compile_module(&module, "relu_sum", options)?;
    for decision in &compiled.decisions {
        println!("{}: {}", decision.place, decision.message);
    }
    // A package is bytes: write them where the program that launches it will find them.
    let bytes = compiled.package.to_bytes()?;
    println!("{} bytes", bytes.len());

    let rows = 33;
    let x: Vec<f32> = (0..rows * 64).map(|i| i as f32 * 0.5 - 300.0).collect();
    let y: Vec<f32> = (0..rows * 64).map(|i| (i % 7) as f32).collect();
    let tensor =
        |values: &[f32]| Tensor::new(DType::F32, vec![rows, 64], floats(values.iter().copied()));
    let inputs = BTreeMap::from([
        ("arg0".to_owned(), tensor(&x)?),
        ("arg1".to_owned(), tensor(&y)?),
    ]);
    let simulator = Simulator {
        options: SimOptions::default(),
    };
    let run = run_package(&compiled.package, &inputs, &BTreeMap::new(), &simulator)?;
    let (_, output) = run.outputs.first_key_value().ok_or("no output")?;
    let want = floats(x.iter().zip(&y).map(|(a, b)| (a + b).max(0.0)));
    if output.tensor.bytes() != want {
        return Err("the kernel computes something else".into());
    }
    println!("the kernel computes relu(x + y)");
    Ok(())
}
