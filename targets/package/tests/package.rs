//! Packages on disk, and manifests that must be refused.

mod common;

use std::fs;

use axe_package::*;
use common::{files, manifest};
use proptest::prelude::*;

fn package() -> Package {
    Package::new(manifest(), files()).unwrap()
}

#[test]
fn both_forms_round_trip_and_replace_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let (file, folder) = (dir.path().join("p.axe"), dir.path().join("p"));
    for _ in 0..2 {
        package().write_file(&file).unwrap();
        package().write_dir(&folder).unwrap();
        assert_eq!(Package::open(&file).unwrap(), package());
        assert_eq!(Package::open(&folder).unwrap(), package());
    }
    let left: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "no temporary files stay behind: {left:?}");
}

#[test]
fn the_same_package_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = |name: &str| {
        let path = dir.path().join(name);
        package().write_file(&path).unwrap();
        fs::read(path).unwrap()
    };
    assert_eq!(bytes("a"), bytes("b"));
}

#[test]
fn other_peoples_files_are_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let notes = dir.path().join("notes.txt");
    fs::write(&notes, "do not lose me, I am longer than a name").unwrap();
    assert!(matches!(
        package().write_file(&notes),
        Err(PackageError::Occupied(_))
    ));
    assert!(matches!(
        package().write_dir(dir.path()),
        Err(PackageError::Occupied(_))
    ));
    assert!(matches!(
        package().write_file(dir.path()),
        Err(PackageError::Occupied(_))
    ));
    assert!(fs::read_to_string(&notes).unwrap().starts_with("do not"));
    assert!(matches!(
        package().write_file(dir.path().join("no/such/p")),
        Err(PackageError::Io { .. })
    ));
}

#[test]
fn bytes_in_memory_are_those_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.axe");
    package().write_file(&path).unwrap();
    let bytes = package().to_bytes().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(Package::from_bytes(&bytes).unwrap(), package());
    for cut in 0..bytes.len() - 1024 {
        assert!(Package::from_bytes(&bytes[..cut]).is_err(), "{cut}");
    }
    let error = Package::from_bytes(b"not a tar file at all").unwrap_err();
    assert_eq!(
        error.to_string(),
        "package in memory: not a kernel package: it does not start with a manifest"
    );
}

#[test]
fn a_cut_off_file_is_an_error_at_every_length() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.axe");
    package().write_file(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    let end_of_data = whole.len() - 1024;
    for n in (0..end_of_data).step_by(97) {
        fs::write(&path, &whole[..n]).unwrap();
        assert!(
            Package::open(&path).is_err(),
            "cut at {n} of {}",
            whole.len()
        );
    }
}

#[test]
fn damage_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("p");
    let damaged = |change: &dyn Fn()| {
        package().write_dir(&folder).unwrap();
        change();
        Package::open(&folder).unwrap_err().to_string()
    };
    let cubin = folder.join("code/gemm.cubin");
    let text = |from: &str, to: &str| {
        let json = fs::read_to_string(folder.join(MANIFEST_FILE)).unwrap();
        assert!(json.contains(from), "{from}");
        fs::write(folder.join(MANIFEST_FILE), json.replacen(from, to, 1)).unwrap();
    };
    assert!(damaged(&|| fs::remove_file(&cubin).unwrap()).contains("`code/gemm.cubin` is missing"));
    assert!(
        damaged(&|| fs::write(&cubin, [0x7F]).unwrap())
            .contains("has 1 bytes, its manifest says 7")
    );
    assert!(damaged(&|| fs::write(&cubin, [0; 7]).unwrap()).contains("hash"));
    assert!(damaged(&|| text("\"version\": 1", "\"version\": 9")).contains("version 9"));
    assert!(damaged(&|| text("\"kernels\"", "\"kernals\"")).contains("kernals"));
    assert!(damaged(&|| text("\"code/gemm.cubin\": {", "\"../gemm.cubin\": {")).contains("name"));
    assert!(
        damaged(&|| fs::write(folder.join(MANIFEST_FILE), "{").unwrap()).contains("manifest.json")
    );
    let none = Package::open(dir.path()).unwrap_err().to_string();
    assert!(none.contains("not a kernel package"), "{none}");
    assert!(matches!(
        Package::open(dir.path().join("none")),
        Err(PackageError::Io { .. })
    ));
}

#[test]
fn constants_fill_their_shape() {
    let mut short = files();
    short.insert("data/w.bin".into(), vec![0; 255]);
    let error = Package::new(manifest(), short).unwrap_err();
    assert!(
        matches!(
            error,
            PackageError::ConstantSize {
                want: 256,
                got: 255,
                ..
            }
        ),
        "{error}"
    );
    let mut extra = files();
    extra.insert("spare".into(), vec![]);
    assert!(matches!(
        Package::new(manifest(), extra),
        Err(PackageError::UnlistedFile(_))
    ));
}

/// The message of validating the sample after a change.
fn invalid(change: impl FnOnce(&mut Manifest)) -> String {
    let mut m = manifest();
    m.validate().unwrap();
    change(&mut m);
    m.validate().expect_err("must be refused").to_string()
}

fn launch(m: &mut Manifest) -> &mut Launch {
    m.steps
        .iter_mut()
        .find_map(|s| {
            if let Step::Launch(l) = s {
                Some(l)
            } else {
                None
            }
        })
        .unwrap()
}

#[test]
fn references_must_resolve() {
    assert!(invalid(|m| launch(m).kernel = "gem".into()).contains("no kernel is named `gem`"));
    assert!(invalid(|m| launch(m).grid[0] = Expr::sym("K")).contains("undeclared symbol `K`"));
    assert!(
        invalid(|m| launch(m).args[1] = Arg::Memory(MemRef::start_of("X"))).contains("named `X`")
    );
    assert!(
        invalid(|m| m.symbols[0].from = Some(DimRef {
            input: "A".into(),
            dim: 2
        }))
        .contains("no dimension 2")
    );
    assert!(
        invalid(|m| m.symbols[0].from = Some(DimRef {
            input: "A".into(),
            dim: 1
        }))
        .contains("is `64`")
    );
    assert!(invalid(|m| m.inputs[0].shape[0] = Expr::sym("M").mul(2)).contains("dimension"));
    assert!(invalid(|m| drop(m.steps.pop())).contains("no step writes it"));
}

#[test]
fn kinds_and_counts_must_fit() {
    let error = invalid(|m| launch(m).args[1] = Arg::Int(1.into()));
    assert_eq!(
        error,
        "steps[1].args[1] (kernel `gemm`, parameter `w`): expected memory for a pointer, got an integer"
    );
    assert!(invalid(|m| launch(m).args[3] = Arg::Float(1.0)).contains("number of type i32"));
    assert!(invalid(|m| launch(m).args[4] = Arg::Float(f64::NAN)).contains("finite"));
    assert!(invalid(|m| drop(launch(m).args.pop())).contains("5 parameters, got 4 arguments"));
    assert!(
        invalid(|m| launch(m).args[2] = Arg::Memory(MemRef::start_of("W"))).contains("is written")
    );
    assert!(
        invalid(|m| launch(m).args[2] = Arg::Memory(MemRef::start_of("A"))).contains("is written")
    );
    let tensor = Arg::Tensor {
        at: MemRef::start_of("A"),
        dims: vec![64.into()],
        strides_bytes: vec![],
    };
    assert!(invalid(|m| launch(m).args[0] = tensor).contains("rank 2"));
}

#[test]
fn hardware_bounds_hold() {
    assert!(invalid(|m| m.kernels[0].block = [1024, 2, 1]).contains("1024 threads"));
    assert!(invalid(|m| m.kernels[0].block = [u32::MAX, u32::MAX, 2]).contains("1024 threads"));
    assert!(invalid(|m| m.kernels[0].block = [0, 1, 1]).contains("1024 threads"));
    assert!(invalid(|m| m.kernels[0].cluster = Some([17, 1, 1])).contains("16 blocks"));
    assert!(invalid(|m| m.buffers[0].align = 24).contains("power of two"));
    assert!(
        invalid(|m| {
            let kind = ParamKind::Scalar {
                ty: ScalarType::I64,
            };
            let more = (0..5000).map(|i| Param {
                name: format!("p{i}"),
                kind: kind.clone(),
            });
            m.kernels[0].params.extend(more);
        })
        .contains("32764 bytes")
    );
}

#[test]
fn names_are_plain() {
    for bad in ["", "a b", "../x", "$x", "ä", "x\n"] {
        assert!(!invalid(|m| m.name = bad.into()).is_empty());
    }
    for bad in ["/etc/passwd", "../x", "a//b", "manifest.json", ".x"] {
        assert!(!invalid(|m| m.kernels[0].cubin = Some(bad.into())).is_empty());
    }
    assert!(invalid(|m| m.outputs[0].name = "A".into()).contains("two pieces of memory"));
    assert!(invalid(|m| m.source_sha256 = "x".into()).contains("SHA-256"));
    let deep = (0..100).fold(Expr::sym("M"), |e, _| e.add(1));
    assert!(invalid(|m| m.outputs[0].shape[0] = deep).contains("deep"));
}

proptest! {
    /// Replacing any token of the JSON by hostile ones gives an error or a valid manifest.
    #[test]
    fn hostile_json_never_panics(at in 0usize..4000, with in prop::sample::select(vec![
        "-1", "0", "1e308", "9223372036854775807", "null", "\"M\"", "{}", "[]", "{\"mul\":[\"M\",9223372036854775807]}",
    ])) {
        let json = serde_json::to_string(&manifest()).unwrap();
        let starts: Vec<usize> = json.match_indices([':', ',', '[']).map(|(i, _)| i + 1).collect();
        let start = starts[at % starts.len()];
        let end = json[start..].find([',', ']', '}']).map_or(json.len(), |e| start + e);
        let changed = format!("{}{with}{}", &json[..start], &json[end..]);
        if let Ok(m) = serde_json::from_str::<Manifest>(&changed)
            && m.validate().is_ok()
        {
            let mut env = Env::with_sm_count(132);
            m.symbols.iter().for_each(|s| env.set(&s.name, s.min));
            let _ = m.instantiate(&env);
        }
    }
}
