//! What does not compile or does not fit is an error that says where and why; nothing ends the process.

use axe_cpu::{CpuError, Program, launch};
use axe_package::{DType, Tensor};

const DOUBLE: &str = "func.func @double(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %y = axe.map ins(%x : tensor<?x4xf32>) -> tensor<?x4xf32> {
    ^bb0(%u: f32):
        %v = arith.addf %u, %u : f32
        axe.yield %v : f32
    }
    return %y : tensor<?x4xf32>
}";

fn ones(dtype: DType, shape: &[u64]) -> Tensor {
    let count: u64 = shape.iter().product();
    Tensor::from_f64(dtype, shape.to_vec(), (0..count).map(|_| 1.0)).unwrap()
}

fn message(error: CpuError) -> String {
    error.to_string()
}

#[test]
fn inputs_that_do_not_fit() {
    let program = Program::compile(DOUBLE, "double").unwrap();
    let fail = |inputs: &[Tensor]| message(program.run(inputs).unwrap_err());
    assert_eq!(fail(&[]), "'double' takes 1 inputs, got 0");
    assert_eq!(
        fail(&[ones(DType::F16, &[2, 4])]),
        "'double': input 0 is tensor<?x4xf32>, got tensor<2x4xf16>"
    );
    assert_eq!(
        fail(&[ones(DType::F32, &[2, 5])]),
        "'double': input 0 is tensor<?x4xf32>, got tensor<2x5xf32>"
    );
    for rows in [0, 1, 3] {
        let got = program.run(&[ones(DType::F32, &[rows, 4])]).unwrap();
        assert_eq!(got[0].shape(), [rows, 4]);
        assert!(got[0].iter_f64().all(|value| value == 2.0));
    }
}

#[test]
fn instructions_that_the_host_has_not() {
    // LLVM ends the process where a backend cannot select an instruction.
    let text = "func.func @lane(%x: tensor<4xf32>) -> (tensor<4xf32>, i32) {
        %lane = nvvm.read.ptx.sreg.laneid : i32
        return %x, %lane : tensor<4xf32>, i32
    }";
    for _ in 0..2 {
        let error = message(Program::compile(text, "lane").err().unwrap());
        let expected = "-:1:1: error: LLVM makes no machine code of 'lane' for this host: Cannot select: intrinsic";
        assert!(error.starts_with(expected), "{error}");
    }
    // The process compiles as before.
    assert!(Program::compile(DOUBLE, "double").is_ok());
}

#[test]
fn names_and_types_that_are_not_there() {
    let fail = |text: &str, name: &str| message(Program::compile(text, name).err().unwrap());
    assert_eq!(
        fail(DOUBLE, "triple"),
        "no function 'triple' in the module; it has: double"
    );
    assert!(fail("func.func @f(", "f").starts_with("the module does not parse:\n-:1:"));
    assert!(fail("func.func @f() {\0", "f").contains("NUL"));
    assert!(
        fail("func.func @f(%x: tensor<*xf32>) { return }", "f")
            .contains("argument 0 has type tensor<*xf32>: expected a ranked tensor")
    );
    assert!(fail("func.func @f(%x: tensor<4xi7>) { return }", "f").contains("tensor<4xi7>"));
    let error = launch(DOUBLE, "double", [1, 1, 1], &[]).unwrap_err();
    assert_eq!(
        message(error),
        "no axe.kernel 'double' in the module; it has: none"
    );
    let error = launch(DOUBLE, "double", [0, 1, 1], &[]).unwrap_err();
    assert_eq!(error, CpuError::Grid([0, 1, 1]));
}

#[test]
fn what_has_no_meaning_on_the_host_is_located() {
    let text = "axe.kernel @k(%x: memref<8xf32>) threads(32) {
  %t = gpu.thread_id x
  axe.return
}";
    let error = launch(text, "k", [1, 1, 1], &[ones(DType::F32, &[8])]).unwrap_err();
    let text = message(error);
    assert!(
        text.contains("-:2:8: error: 'gpu.thread_id' has no meaning on the CPU target"),
        "{text}"
    );
}

#[test]
fn a_function_that_is_declared_alone_has_no_code() {
    let text = "func.func private @outside(tensor<4xf32>) -> tensor<4xf32>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = call @outside(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}";
    let error = Program::compile(text, "f").err().unwrap();
    assert_eq!(
        message(error),
        "no machine code for 'f': declared and not defined: outside"
    );
}

#[test]
fn an_assertion_that_fails_is_an_error() {
    let text = "func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %m = tensor.dim %y, %c0 : tensor<?xf32>
  %s = arith.cmpi eq, %n, %m : index
  cf.assert %s, \"mismatched size for broadcast\"
  %z = axe.map ins(%x, %y : tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    axe.yield %w : f32
  }
  return %z : tensor<?xf32>
}";
    let program = Program::compile(text, "f").unwrap();
    let (two, three) = (ones(DType::F32, &[2]), ones(DType::F32, &[3]));
    let error = program.run(&[two.clone(), three]).err().unwrap();
    assert_eq!(
        message(error),
        "assertion failed in 'f': mismatched size for broadcast"
    );
    assert!(program.run(&[two.clone(), two]).is_ok());
}
