//! Other people's packages beside ours.

use std::path::PathBuf;

use clap::Args;

use super::select::{Selected, Selection};
use crate::bench::case::Rival;
use crate::bench::packages::{self, Candidate};
use crate::error::RuntimeError;

/// Whom else to measure.
#[derive(Debug, Clone, Default, Args)]
pub struct RivalArgs {
    /// A folder of somebody else's packages, for example `triton=DIR`: the fastest right one takes turns with
    /// ours and cuBLASLt's, and the ratio of its time to ours is a column. May be given again, also for a name
    /// with more folders
    #[arg(long = "rival", value_name = "NAME=DIR")]
    rivals: Vec<Folder>,
}

/// A rival's folder.
#[derive(Debug, Clone, PartialEq)]
struct Folder {
    name: String,
    path: PathBuf,
}

impl std::str::FromStr for Folder {
    type Err = String;

    /// Parses `NAME=DIR`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = text
            .split_once('=')
            .ok_or("expected NAME=DIR, for example triton=baselines/triton")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 16 || !name.chars().all(plain) {
            return Err("a name is 1 to 16 letters, digits, `-`, `_` or `.`".into());
        }
        if ["ours", "cublaslt"].contains(&name.to_ascii_lowercase().as_str()) {
            return Err(format!("`{name}` is the name of another side"));
        }
        if path.is_empty() {
            return Err("there is no folder behind `=`".into());
        }
        Ok(Folder {
            name: name.into(),
            path: path.into(),
        })
    }
}

impl RivalArgs {
    /// Gives every case the packages of each rival that compute it.
    ///
    /// # Errors
    /// A folder that cannot be read, or without a package for any of the cases.
    pub(super) fn join(&self, selected: &mut Selected, by: &Selection) -> Result<(), RuntimeError> {
        for Folder { name, path } in &self.rivals {
            let (found, others) = packages::scan(path)?;
            add(selected, name, &found, by);
            let none = selected.cases.iter().all(|case| {
                let mine = case.rivals.iter().find(|r| r.name == *name);
                mine.is_none_or(|r| r.candidates.is_empty())
            });
            if none {
                let folder = path.display();
                let mut what = format!("--rival {name}: no package in {folder} computes a case");
                others.iter().for_each(|o| what = format!("{what}\n  {o}"));
                return Err(RuntimeError::Usage(what));
            }
            let note = |other: &String| format!("{name}: {other}");
            selected.notes.extend(others.iter().map(note));
        }
        Ok(())
    }
}

fn add(selected: &mut Selected, name: &str, found: &[Candidate], by: &Selection) {
    if !selected.rivals.iter().any(|n| n == name) {
        selected.rivals.push(name.to_owned());
        for case in &mut selected.cases {
            case.rivals.push(Rival {
                name: name.to_owned(),
                candidates: Vec::new(),
            });
        }
    }
    for case in &mut selected.cases {
        let fitting = found.iter().filter(|c| c.fits(&case.gemm));
        let paths = fitting.map(|c| c.path.clone()).filter(|p| !by.skipped(p));
        if let Some(rival) = case.rivals.iter_mut().find(|r| r.name == name) {
            rival.candidates.extend(paths);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::case::Case;
    use crate::bench::packages::Interface;

    #[test]
    fn folders_have_names() {
        let folder: Folder = "triton=a/b=c".parse().unwrap();
        assert_eq!(
            (folder.name.as_str(), folder.path),
            ("triton", "a/b=c".into())
        );
        for (bad, why) in [
            ("triton", "NAME=DIR"),
            ("=dir", "a name is"),
            ("two words=dir", "a name is"),
            ("a-name-that-is-too-long=dir", "a name is"),
            ("Ours=dir", "another side"),
            ("cuBLASLt=dir", "another side"),
            ("triton=", "no folder"),
        ] {
            let error = bad.parse::<Folder>().unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    fn candidate(path: &str, case: &str) -> Candidate {
        let gemm = case.parse::<Case>().unwrap().gemm;
        Candidate {
            path: path.into(),
            plan: path.into(),
            chip: "sm_90a".into(),
            interface: Interface {
                gemm,
                square: gemm.n == gemm.k,
                roles: vec![],
            },
        }
    }

    #[test]
    fn every_case_has_every_rival() {
        let cases = ["64,128,256,f16", "64,256,256,f16,nn"].map(|c| c.parse().unwrap());
        let mut selected = Selected {
            cases: cases.into(),
            ..Selected::default()
        };
        let mut dynamic = candidate("t/all.axe", "64,1,1,f16");
        (dynamic.interface.gemm.n, dynamic.interface.gemm.k) = (0, 0);
        dynamic.interface.square = false;
        let by = Selection {
            skip: vec!["slow.axe".into()],
            ..Selection::default()
        };
        let slow = candidate("t/slow.axe", "64,128,256,f16");
        add(&mut selected, "triton", &[dynamic, slow], &by);
        let square = candidate("u/square.axe", "64,256,256,f16");
        add(&mut selected, "triton", &[square], &by);
        add(&mut selected, "other", &[], &by);
        assert_eq!(selected.rivals, ["triton", "other"]);
        let of = |case: usize, rival: usize| selected.cases[case].rivals[rival].candidates.clone();
        assert_eq!(of(0, 0), [PathBuf::from("t/all.axe")]);
        assert_eq!(of(1, 0), [PathBuf::from("u/square.axe")]);
        assert!(of(0, 1).is_empty() && of(1, 1).is_empty());
    }

    #[test]
    fn a_folder_without_a_fitting_package_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let args = RivalArgs {
            rivals: vec![Folder {
                name: "triton".into(),
                path: dir.path().into(),
            }],
        };
        let mut selected = Selected {
            cases: vec!["64,128,256,f16".parse().unwrap()],
            ..Selected::default()
        };
        let error = args.join(&mut selected, &Selection::default()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("--rival triton: no package in"), "{text}");
    }
}
