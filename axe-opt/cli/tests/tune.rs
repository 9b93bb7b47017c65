//! `axe tune` up to the point where it needs a GPU.
#![cfg(feature = "compiler")]

use axe_package::Package;
use std::path::Path;
use std::process::Command;

/// Runs `axe tune`: exit code, standard output and standard error.
fn tune(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_axe"))
        .arg("tune")
        .args(arguments)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// The plans of a folder's packages, in the order of their names.
fn plans(folder: &Path) -> Vec<(String, String)> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let plan = |name: String| {
        let package = Package::open(folder.join(&name)).unwrap();
        (name, package.manifest().candidate.clone().unwrap())
    };
    names.into_iter().map(plan).collect()
}

#[test]
fn candidates_of_a_case_are_packages_with_plans() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("packages");
    let name = folder.to_str().unwrap();
    let case = "512,512,256,f16,nn";
    let (code, said) = tune(&["--case", case, "--candidates", "3", "--packages", name]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("3 of 3 candidates for 1 shapes"), "{said}");
    let plans = plans(&folder);
    assert_eq!(plans.len(), 3);
    assert_eq!(plans[0].0, "512x512x256-f16-nn-00.axe");
    assert!(
        plans
            .iter()
            .all(|(_, plan)| plan.starts_with("{mainloop = "))
    );
    assert!(plans[0].1 != plans[1].1 && plans[1].1 != plans[2].1);
    // What was compiled is timed by another process, which finds no such GPU.
    let out = dir.path().join("plans.json");
    let timing = ["--out", out.to_str().unwrap(), "--device", "99"];
    let (code, said) = tune(&[&["--case", case, "--candidates", "1"], &timing[..]].concat());
    assert_eq!(code, Some(4), "{said}");
    assert!(
        said.contains("1 of 1 candidates") && said.contains("GPU"),
        "{said}"
    );
    let (code, said) = tune(&[&["--packages", name], &timing[..]].concat());
    assert_eq!(code, Some(4), "{said}");
    assert!(!said.contains("candidates for"), "{said}");
}

#[test]
fn products_of_modules_are_tuned() {
    let dir = tempfile::tempdir().unwrap();
    let module = dir.path().join("m.mlir");
    let text = "func.func @f(%a: tensor<64x128xbf16>, %w: tensor<128x256xbf16>, %c: tensor<64x256xf32>) -> tensor<64x256xf32> {
      %p = linalg.matmul ins(%a, %w : tensor<64x128xbf16>, tensor<128x256xbf16>) outs(%c : tensor<64x256xf32>) -> tensor<64x256xf32>
      return %p : tensor<64x256xf32>
    }";
    std::fs::write(&module, text).unwrap();
    let folder = dir.path().join("packages");
    let (module, folder_name) = (module.to_str().unwrap(), folder.to_str().unwrap());
    let (code, said) = tune(&[module, "--candidates", "1", "--packages", folder_name]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(plans(&folder)[0].0, "64x256x128-bf16-nn-00.axe");
    std::fs::write(module, "func.func").unwrap();
    let (code, said) = tune(&[module, "--packages", folder_name]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("m.mlir"), "{said}");
}

#[test]
fn what_cannot_be_compiled_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    let (code, said) = tune(&["--case", "128,128,128,e4m3-tensor", "--packages", folder]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("no kernels to choose from"), "{said}");
    let (code, said) = tune(&[
        "--case",
        "128,128,128,f16",
        "--candidates",
        "0",
        "--packages",
        folder,
    ]);
    assert_eq!(code, Some(2), "{said}");
    let (code, said) = tune(&["--case", "128,128,128,f16"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--packages"), "{said}");
}
