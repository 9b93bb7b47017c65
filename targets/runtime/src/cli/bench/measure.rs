//! Measuring all cases: the options, the table as it grows, and what is written.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;

use super::super::{print_json, say};
use super::select::Selected;
use crate::bench::document::{Document, METHOD, RivalSummary, Row};
use crate::bench::gemm::{Bench, Options};
use crate::bench::plot;
use crate::bench::table::{footer, header, line, notes};
use crate::device::Device;
use crate::error::{RuntimeError, exit_code};

/// How to measure and where to put it.
#[derive(Debug, Clone, Args)]
pub struct MeasureArgs {
    /// Seconds for all cases together, set-up and checks included; divided evenly
    #[arg(long, value_name = "SECONDS", conflicts_with = "ms")]
    budget: Option<f64>,
    /// Milliseconds for each case, set-up and checks included
    #[arg(long, default_value_t = 5000, value_name = "MS")]
    ms: u64,
    /// Turns of the fastest of each side at most; the median of their ratios counts
    #[arg(long, default_value_t = 31, value_name = "N")]
    pairs: usize,
    /// How many of cuBLASLt's proposals to try; the fastest counts
    #[arg(long, default_value_t = 16, value_name = "N")]
    proposals: usize,
    /// cuBLASLt promotes sums of 8-bit products to f32 as it goes (its FAST_ACCUM is off); block scales
    /// always do
    #[arg(long)]
    precise: bool,
    /// Seconds that one run of a candidate may take before it is said to hang
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS")]
    patience: f64,
    /// Write everything that was measured as JSON, every ten seconds and in the end; `-` is standard output, in the
    /// end and without the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the ratios as SVG
    #[arg(long, value_name = "FILE.svg", value_parser = svg)]
    plot: Option<PathBuf>,
}

/// The name of an SVG file.
fn svg(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    match path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("svg"))
    {
        true => Ok(path),
        false => Err("expected a name that ends with .svg".to_owned()),
    }
}

/// After so long what was measured is written anew, for a run that somebody ends.
const SAVED_EACH: Duration = Duration::from_secs(10);

/// What came of all cases.
pub(crate) struct Measured {
    pub document: Document,
    /// An error after which nothing runs on the device.
    pub fatal: Option<RuntimeError>,
}

impl MeasureArgs {
    fn options(&self, left: usize, start: Instant) -> Result<Options, RuntimeError> {
        let seconds = |s: f64| {
            Duration::try_from_secs_f64(s)
                .map_err(|_| RuntimeError::Usage(format!("{s} is no number of seconds")))
        };
        let budget = match self.budget {
            Some(all) => seconds(all)?.saturating_sub(start.elapsed()) / left.max(1) as u32,
            None => Duration::from_millis(self.ms),
        };
        Ok(Options {
            budget,
            pairs: self.pairs,
            proposals: self.proposals.clamp(1, 1000),
            precise: self.precise,
            patience: seconds(self.patience)?,
        })
    }

    /// Measures the cases in order and calls `done` after each.
    pub(crate) fn run(
        &self,
        selected: &Selected,
        device: &Device,
        mut done: impl FnMut(&Row) -> Result<(), RuntimeError>,
    ) -> Result<Measured, RuntimeError> {
        let start = Instant::now();
        self.options(1, start)?;
        let bench = Bench::new(device)?;
        let table = !self.to_stdout();
        let mut document = self.empty_document(selected, &bench, device);
        if table {
            announce(selected, &document);
        }
        let mut fatal = None;
        let mut saved = Instant::now();
        for (i, case) in selected.cases.iter().enumerate() {
            let options = self.options(selected.cases.len() - i, start)?;
            match bench.measure(case, &options) {
                Ok(row) => {
                    if table {
                        say(line(&row));
                        notes(&row).for_each(say);
                    }
                    done(&row)?;
                    document.rows.push(row);
                    if saved.elapsed() >= SAVED_EACH {
                        document.summarise();
                        self.save(&document)?;
                        saved = Instant::now();
                    }
                }
                Err(error) => {
                    let failure = format!("{}: {error}", case.gemm);
                    eprintln!("{failure}");
                    document.failures.push(failure);
                    if error.is_fatal() {
                        advise(&error);
                        fatal = Some(error);
                        break;
                    }
                }
            }
        }
        document.summarise();
        Ok(Measured { document, fatal })
    }

    /// What is measured, without a row yet.
    fn empty_document(&self, selected: &Selected, bench: &Bench, device: &Device) -> Document {
        let rival = |name: &String| RivalSummary {
            name: name.clone(),
            summary: None,
        };
        Document {
            device: device.properties().clone(),
            cublaslt_version: Some(bench.cublaslt_version()),
            method: METHOD,
            precise: self.precise,
            summary: None,
            rivals: selected.rivals.iter().map(rival).collect(),
            rows: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Writes the document to its file, whole or not at all; to a pipe or a device as it is.
    fn save(&self, document: &Document) -> Result<(), RuntimeError> {
        let Some(path) = self.json.as_ref().filter(|_| !self.to_stdout()) else {
            return Ok(());
        };
        let text = serde_json::to_string_pretty(document)
            .map_err(|e| RuntimeError::Usage(e.to_string()))?;
        if path.exists() && !path.is_file() {
            return write(path, text.as_bytes());
        }
        let unfinished = path.with_added_extension("unfinished");
        write(&unfinished, text.as_bytes())?;
        std::fs::rename(&unfinished, path).map_err(|error| at(path, error))
    }

    fn to_stdout(&self) -> bool {
        self.json.as_ref().is_some_and(|p| p.as_os_str() == "-")
    }

    /// Writes the files, prints the last line and returns the exit code.
    pub(crate) fn finish(&self, measured: &Measured) -> Result<u8, RuntimeError> {
        let document = &measured.document;
        if self.to_stdout() {
            print_json(document);
        } else {
            footer(document).into_iter().for_each(say);
        }
        self.save(document)?;
        if let Some(path) = &self.plot {
            write(path, plot::of(document).svg().as_bytes())?;
        }
        let code = match (&measured.fatal, document.good()) {
            (Some(error), _) => error.exit_code(),
            (None, true) => exit_code::OK,
            (None, false) => exit_code::WRONG,
        };
        Ok(code)
    }
}

/// The head of the table.
fn announce(selected: &Selected, document: &Document) {
    let notes = selected.notes.iter();
    notes.for_each(|note| say(format_args!("note: {note}")));
    let (name, version) = (&document.device.name, document.cublaslt_version);
    let version = version.unwrap_or_default();
    say(format_args!("{name}, cuBLASLt {version}; TFLOP/s"));
    say(header(&selected.rivals));
}

/// What to do about a candidate after which nothing runs.
fn advise(error: &RuntimeError) {
    if let RuntimeError::Candidate { package, .. } = error {
        eprintln!("leave it out with --skip {package}");
    }
}

fn write(path: &PathBuf, bytes: &[u8]) -> Result<(), RuntimeError> {
    std::fs::write(path, bytes).map_err(|error| at(path, error))
}

fn at(path: &Path, error: std::io::Error) -> RuntimeError {
    RuntimeError::File {
        path: path.display().to_string(),
        error,
    }
}
