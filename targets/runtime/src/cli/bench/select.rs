//! Which GEMMs to measure with which packages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use axe_package::DType;
use clap::Args;

use crate::bench::case::Case;
use crate::bench::packages::{self, Candidate};
use crate::bench::problem::Scaling;
use crate::bench::suite::Suite;
use crate::error::RuntimeError;

/// What to measure.
#[derive(Debug, Clone, Default, Args)]
pub struct Selection {
    /// A case: M,N,K,DTYPE[,nt|nn[,PACKAGE...]]. DTYPE is f16, bf16, e4m3-tensor, e4m3-row or e4m3-block
    /// (bf16 out); nt means C = A * W^T. Without packages only cuBLASLt is measured
    #[arg(long = "case", value_name = "CASE")]
    pub cases: Vec<Case>,
    /// A file with one case on each line; packages are relative to its folder
    #[arg(long, value_name = "FILE")]
    pub list: Option<PathBuf>,
    /// A named set of shapes, C = A * W^T
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SUITE")]
    pub suite: Vec<Suite>,
    /// Measure only cases of suites whose label has this text, for example `down` or `Qwen3`
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// A folder of packages: each is a candidate for every case that it computes. Without a case, list or
    /// suite, the packages' own sizes are measured
    #[arg(long, value_name = "DIR")]
    pub packages: Vec<PathBuf>,
    /// Leave out packages whose path ends with this
    #[arg(long, value_name = "PATH")]
    pub skip: Vec<String>,
}

/// The cases, and what is to be said about packages that are not used.
#[derive(Debug, Default, PartialEq)]
pub struct Selected {
    /// The cases with their candidates.
    pub cases: Vec<Case>,
    /// The rivals' names; every case has each of them, in this order.
    pub rivals: Vec<String>,
    /// Packages that compute no GEMM, or none of the cases.
    pub notes: Vec<String>,
}

impl Selection {
    /// Finds the cases; suites come in each of `types`.
    ///
    /// # Errors
    /// A list or folder that cannot be read, or nothing to measure.
    pub fn select(&self, types: &[(DType, Scaling)]) -> Result<Selected, RuntimeError> {
        let mut cases = self.cases.clone();
        if let Some(list) = &self.list {
            cases.extend(read_list(list)?);
        }
        for suite in &self.suite {
            let all = types.iter().flat_map(|(d, s)| suite.cases(*d, *s));
            let only = |c: &Case| self.only.as_ref().is_none_or(|o| c.label.contains(o));
            cases.extend(all.filter(only));
        }
        let (mut found, mut notes) = (Vec::new(), Vec::new());
        for folder in &self.packages {
            let (candidates, others) = packages::scan(folder)?;
            found.extend(candidates);
            notes.extend(others);
        }
        let own = cases.is_empty() && self.suite.is_empty();
        let mut selected = join(cases, found, own);
        // Last, so that leaving out a package changes no case's number.
        for case in &mut selected.cases {
            case.candidates.retain(|c| !self.skipped(c));
        }
        selected.notes.splice(0..0, notes);
        if selected.cases.is_empty() {
            let mut what = "no cases; give --case, --list, --suite or --packages".to_owned();
            for note in &selected.notes {
                what = format!("{what}\n  {note}");
            }
            return Err(RuntimeError::Usage(what));
        }
        Ok(selected)
    }

    pub(super) fn skipped(&self, path: &Path) -> bool {
        self.skip.iter().any(|s| path.ends_with(s))
    }
}

/// Gives every case its candidates; with `own`, candidates of constant sizes are cases themselves.
fn join(mut cases: Vec<Case>, found: Vec<Candidate>, own: bool) -> Selected {
    if own {
        for candidate in &found {
            let gemm = candidate.interface.gemm;
            if gemm.m == 0 || gemm.n == 0 || gemm.k == 0 {
                continue;
            }
            if !cases.iter().any(|c| c.gemm == gemm) {
                cases.push(Case {
                    gemm,
                    label: String::new(),
                    candidates: Vec::new(),
                    rivals: Vec::new(),
                });
            }
        }
    }
    let mut unused: BTreeSet<&Path> = found.iter().map(|c| c.path.as_path()).collect();
    for case in &mut cases {
        for candidate in &found {
            let fits = match own {
                true => candidate.interface.computes(&case.gemm),
                false => candidate.fits(&case.gemm),
            };
            if fits {
                case.candidates.push(candidate.path.clone());
                unused.remove(candidate.path.as_path());
            }
        }
    }
    let note = |path: &Path| format!("{}: computes none of the cases", path.display());
    Selected {
        notes: unused.into_iter().map(note).collect(),
        rivals: Vec::new(),
        cases,
    }
}

fn read_list(list: &Path) -> Result<Vec<Case>, RuntimeError> {
    let text = std::fs::read_to_string(list).map_err(|error| RuntimeError::File {
        path: list.display().to_string(),
        error,
    })?;
    let dir = list.parent().unwrap_or(Path::new(""));
    let lines = text.lines().enumerate();
    let mut cases = Vec::new();
    for (i, line) in lines.filter(|(_, l)| !l.trim().is_empty() && !l.trim().starts_with('#')) {
        let at = |e| RuntimeError::Usage(format!("{}:{}: {e}", list.display(), i + 1));
        let mut case: Case = line.trim().parse().map_err(at)?;
        for package in &mut case.candidates {
            *package = dir.join(&*package);
        }
        cases.push(case);
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::packages::Interface;

    const F16: (DType, Scaling) = (DType::F16, Scaling::None);

    fn candidate(path: &str, case: &str, m: u64) -> Candidate {
        let mut gemm = case.parse::<Case>().unwrap().gemm;
        gemm.m = m;
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
    fn suites_come_in_every_type() {
        let selection = Selection {
            suite: vec![Suite::Llm],
            only: Some("Qwen3-8B".into()),
            ..Selection::default()
        };
        let bf16 = (DType::BF16, Scaling::None);
        let cases = selection.select(&[F16, bf16]).unwrap().cases;
        let names: Vec<String> = cases.iter().map(|c| c.gemm.to_string()).collect();
        assert_eq!(names.len(), 4);
        assert_eq!(names[0], "8192x24576x4096 f16 nt");
        assert_eq!(names[3], "8192x4096x12288 bf16 nt");
    }

    #[test]
    fn candidates_find_their_cases() {
        let cases: Vec<Case> = ["64,128,256,f16", "65,128,256,f16", "64,256,256,f16,nn"]
            .map(|c| c.parse().unwrap())
            .into();
        let found = vec![
            candidate("fixed", "1,128,256,f16", 64),
            candidate("dynamic", "1,128,256,f16", 0),
            candidate("square", "1,256,256,f16", 64),
            candidate("other", "1,128,256,bf16", 64),
        ];
        let selected = join(cases, found.clone(), false);
        let of = |i: usize| selected.cases[i].candidates.clone();
        assert_eq!(of(0), [PathBuf::from("fixed"), "dynamic".into()]);
        assert_eq!(of(1), [PathBuf::from("dynamic")]);
        assert_eq!(of(2), [PathBuf::from("square")]);
        assert_eq!(selected.notes, ["other: computes none of the cases"]);
        let own = join(vec![], found, true);
        assert_eq!(own.cases.len(), 3, "{own:?}");
        assert_eq!(own.cases[0].candidates.len(), 2);
    }

    #[test]
    fn lists_are_read_and_nothing_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("cases.txt");
        std::fs::write(&list, "# two\n8,8,8,f16\n\n16,8,8,bf16,nt,a.axe,b.axe\n").unwrap();
        let selection = Selection {
            list: Some(list.clone()),
            skip: vec!["a.axe".into()],
            ..Selection::default()
        };
        let cases = selection.select(&[F16]).unwrap().cases;
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[1].candidates, [dir.path().join("b.axe")]);
        std::fs::write(&list, "8,8,8,f16\n8,8\n").unwrap();
        let error = selection.select(&[F16]).unwrap_err().to_string();
        assert!(error.contains("cases.txt:2: `8,8`: too short"), "{error}");
        let nothing = Selection::default().select(&[F16]).unwrap_err();
        assert!(nothing.to_string().contains("no cases"));
    }
}
