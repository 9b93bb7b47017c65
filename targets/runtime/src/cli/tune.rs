//! `axe-run tune`: the fastest of several packages for each shape, into the database of plans.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use axe_package::{DType, Tuned, TunedDb};
use clap::Args;

use super::bench::{MeasureArgs, Selection, end_if_hanging};
use super::{DeviceArgs, say};
use crate::bench::case::Case;
use crate::bench::document::Row;
use crate::bench::problem::{Gemm, Scaling};
use crate::error::{RuntimeError, exit_code};

/// The arguments.
#[derive(Debug, Args)]
#[command(
    after_help = "A candidate's plan is the manifest's `candidate`, else the file's name. The database is JSON Lines, one shape a line, \
sorted: {\"chip\", \"op\", \"dtype\", \"layout\", \"m\", \"n\", \"k\", \"plan\", \"time_us\", \"ratio\", \"device\"}; \
new measurements replace those of the same shape, others stay."
)]
pub struct TuneArgs {
    /// The GEMMs and their candidates
    #[command(flatten)]
    pub selection: Selection,
    /// The element types of suites: f16, bf16, e4m3-tensor, e4m3-row, e4m3-block
    #[arg(long, value_delimiter = ',', default_values = ["f16", "bf16"], value_parser = crate::bench::case::element)]
    dtype: Vec<(DType, Scaling)>,
    /// The database to put the best plans into
    #[arg(long, value_name = "FILE", required = true)]
    pub out: Option<PathBuf>,
    /// Leave out cases that the database has already
    #[arg(long)]
    resume: bool,
    /// Begin with the case of this number; what the program starts itself again with
    #[arg(long, hide = true, default_value_t = 0, overrides_with = "from")]
    from: usize,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Tunes. The database is written after each shape. A candidate that takes the device down loses
/// nothing but itself: the program starts again without it, at the same case.
///
/// # Errors
/// Cases that make no sense, a database that cannot be read or written, no GPU, no cuBLASLt.
pub fn main(args: &TuneArgs, device: DeviceArgs) -> Result<u8, RuntimeError> {
    let mut selected = args.selection.select(&args.dtype)?;
    let out = args.out.as_deref();
    let out = out.ok_or_else(|| RuntimeError::Usage("--out FILE is missing".into()))?;
    let mut db = args.database()?;
    let mut numbers: Vec<usize> = (0..selected.cases.len()).collect();
    numbers.retain(|i| {
        selected
            .cases
            .get(*i)
            .is_some_and(|case| args.wants(*i, case, &db))
    });
    let all = std::mem::take(&mut selected.cases);
    selected.cases = numbers
        .iter()
        .filter_map(|i| all.get(*i).cloned())
        .collect();
    if selected.cases.is_empty() && (args.resume || args.from > 0) {
        say("nothing left to tune");
        return Ok(exit_code::OK);
    }
    if selected.cases.is_empty() {
        let mut what = "nothing to tune: no case has a candidate".to_owned();
        selected
            .notes
            .iter()
            .for_each(|n| what = format!("{what}\n  {n}"));
        return Err(RuntimeError::Usage(what));
    }
    let device = device.open()?;
    let name = device.properties().name.clone();
    let measured = args.measure.run(&selected, &device, |row| {
        if let Some(entry) = entry(row, &name) {
            db.insert(entry);
            db.write(out).map_err(failed(out))?;
        }
        Ok(())
    })?;
    if let Some(RuntimeError::Candidate { package, .. }) = &measured.fatal {
        let done = measured.document.rows.len() + measured.document.failures.len() - 1;
        let from = numbers.get(done).copied().unwrap_or(0);
        return Err(start_again(package, from));
    }
    let code = args.measure.finish(&measured)?;
    end_if_hanging(&device, code);
    Ok(code)
}

impl TuneArgs {
    fn database(&self) -> Result<TunedDb, RuntimeError> {
        match &self.out {
            Some(out) => TunedDb::read(out).map_err(failed(out)),
            None => Ok(TunedDb::default()),
        }
    }

    /// The GEMMs of the cases, lists and suites that are named and not to be left out, whatever candidates
    /// there are; each once.
    ///
    /// # Errors
    /// A list or a database that cannot be read.
    pub fn gemms(&self) -> Result<Vec<Gemm>, RuntimeError> {
        let named = Selection {
            packages: Vec::new(),
            ..self.selection.clone()
        };
        if named.cases.is_empty() && named.list.is_none() && named.suite.is_empty() {
            return Ok(Vec::new());
        }
        let db = self.database()?;
        let mut gemms: Vec<Gemm> = Vec::new();
        for case in named.select(&self.dtype)?.cases {
            if !(gemms.contains(&case.gemm) || self.resume && has(&db, &case)) {
                gemms.push(case.gemm);
            }
        }
        Ok(gemms)
    }

    fn wants(&self, number: usize, case: &Case, db: &TunedDb) -> bool {
        let tuned = self.resume && has(db, case);
        number >= self.from && !case.candidates.is_empty() && !tuned
    }
}

/// Whether the database has an entry for the case, on any chip.
fn has(db: &TunedDb, case: &Case) -> bool {
    db.entries()
        .any(|entry| entry.key == case.gemm.tuned_key(&entry.key.chip))
}

/// Replaces this process, whose device is lost, by one that leaves out `package` and begins with
/// case `from`. Returns only if that fails.
fn start_again(package: &str, from: usize) -> RuntimeError {
    use std::os::unix::process::CommandExt;
    eprintln!("starting again without {package}");
    let failed = |error| RuntimeError::File {
        path: "this program".into(),
        error,
    };
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return failed(error),
    };
    let again = ["--skip", package, "--from", &from.to_string()].map(OsString::from);
    let args = std::env::args_os().skip(1).chain(again);
    failed(std::process::Command::new(program).args(args).exec())
}

fn failed(path: &Path) -> impl Fn(axe_package::TunedError) -> RuntimeError + '_ {
    move |error| RuntimeError::Tuned {
        path: path.display().to_string(),
        error,
    }
}

/// The entry of the fastest candidate of a row.
fn entry(row: &Row, device: &str) -> Option<Tuned> {
    let (ours, winner, gemm) = (row.ours.as_ref()?, row.winner()?, &row.gemm);
    // Four digits: the rest is noise, and would change lines for nothing.
    let round = |v: f64| {
        let scale = 10f64.powi(3 - v.abs().log10().floor() as i32);
        (v * scale).round() / scale
    };
    Some(Tuned {
        key: gemm.tuned_key(&winner.chip),
        plan: ours.plan.clone(),
        time_us: round(ours.times.median_us),
        ratio: ours.ratio.map(round),
        device: device.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::document::Verdict;
    use crate::bench::document::tests::row;

    #[test]
    fn the_fastest_candidate_is_an_entry() {
        let mut good = row(1.051_234, Verdict::Right);
        if let Some(ours) = &mut good.ours {
            ours.times.median_us = 123.456_789;
        }
        let got = entry(&good, "GPU").unwrap();
        assert_eq!(
            (got.plan.as_str(), got.key.chip.as_str()),
            ("{tile}", "sm_90a")
        );
        assert_eq!((got.time_us, got.ratio), (123.5, Some(1.051)));
        assert_eq!((got.key.m, got.key.n, got.key.k), (8192, 4096, 4096));
        let mut db = TunedDb::default();
        db.insert(got);
        assert_eq!(TunedDb::parse(&db.text()).unwrap(), db);
        assert_eq!(entry(&row(1.0, Verdict::Wrong), "GPU"), None);
    }
}
