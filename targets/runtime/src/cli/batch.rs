//! `axe-run batch LIST`: many cases in one process.
//!
//! Cases run in a worker process, all in one as long as nothing breaks. A kernel that faults loses
//! the CUDA context for good and one that hangs never returns; then the worker is replaced and the
//! next case goes on, so one bad kernel costs one failure.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use clap::{Args, Parser};
use serde::{Deserialize, Serialize};

use super::run::RunArgs;
use super::{DeviceArgs, print_json, say};
use crate::error::{RuntimeError, exit_code};
use crate::loaded::Loaded;
use crate::run::{Job, Outcome, Request};

/// The arguments.
#[derive(Debug, Args)]
pub struct BatchArgs {
    /// A file with the arguments of one run on each line, quoted as in a shell; files are relative
    /// to the list's folder; empty lines and lines that start with # are skipped
    list: PathBuf,
    /// Give up on a case after so many seconds
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    timeout: u64,
    /// Print only failures and the summary
    #[arg(long, short)]
    quiet: bool,
    /// Print one line of JSON for each case instead of a table
    #[arg(long)]
    json: bool,
    /// Run as the worker, from this case on
    #[arg(long, hide = true, value_name = "INDEX")]
    worker_from: Option<usize>,
}

/// One case of a list.
#[derive(Debug)]
struct Case {
    line: usize,
    text: String,
    request: Result<Request, String>,
}

/// What the worker reports of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    index: usize,
    passed: bool,
    /// The largest norm error of its outputs, where something was expected.
    norm_error: Option<f64>,
    median_us: Option<f64>,
    /// Why it failed.
    message: Option<String>,
    /// The worker ends after this line.
    fatal: bool,
}

impl Line {
    fn failed(index: usize, message: String, fatal: bool) -> Self {
        Line {
            index,
            passed: false,
            norm_error: None,
            median_us: None,
            message: Some(message),
            fatal,
        }
    }
}

#[derive(Parser)]
#[command(no_binary_name = true)]
struct LineArgs {
    #[command(flatten)]
    run: RunArgs,
}

/// Reads a list. A line that makes no sense becomes a case that fails.
fn parse(text: &str, dir: &Path) -> Vec<Case> {
    let lines = text.lines().enumerate().map(|(i, l)| (i + 1, l.trim()));
    let lines = lines.filter(|(_, l)| !l.is_empty() && !l.starts_with('#'));
    let request = |l: &str| {
        let words = shlex::split(l).ok_or("its quotes do not match")?;
        let args = LineArgs::try_parse_from(words).map_err(|e| e.to_string())?;
        args.run.request(dir).map_err(|e| e.to_string())
    };
    lines
        .map(|(line, l)| Case {
            line,
            text: l.to_owned(),
            request: request(l),
        })
        .collect()
}

/// Runs a list, as the parent or as its worker.
///
/// # Errors
/// A list that cannot be read, no usable GPU.
pub fn main(args: &BatchArgs, device: DeviceArgs) -> Result<u8, RuntimeError> {
    let text = std::fs::read_to_string(&args.list).map_err(|error| RuntimeError::File {
        path: args.list.display().to_string(),
        error,
    })?;
    let cases = parse(&text, args.list.parent().unwrap_or(Path::new("")));
    match args.worker_from {
        Some(from) => worker(&cases, from, device),
        None => supervise(args, &cases, device),
    }
}

fn worker(cases: &[Case], from: usize, device: DeviceArgs) -> Result<u8, RuntimeError> {
    let device = device.open()?;
    let mut loaded: Option<(PathBuf, Loaded)> = None;
    for (index, case) in cases.iter().enumerate().skip(from) {
        let result = match &case.request {
            Ok(request) => one(request, &device, &mut loaded),
            Err(message) => Err(RuntimeError::Usage(message.clone())),
        };
        let line = report(index, result);
        print_json(&line);
        if line.fatal {
            return Ok(exit_code::CUDA);
        }
    }
    Ok(exit_code::OK)
}

/// Runs one case; consecutive cases of one package share its loaded code.
fn one(
    request: &Request,
    device: &crate::device::Device,
    loaded: &mut Option<(PathBuf, Loaded)>,
) -> Result<Outcome, RuntimeError> {
    let reusable = matches!(loaded, Some((path, _)) if *path == request.package)
        && request.code == Default::default();
    if !reusable {
        *loaded = None;
        let job = Job::new(request.clone())?;
        let code = job.load(device)?;
        let outcome = job.run(&code);
        if request.code == Default::default() {
            *loaded = Some((request.package.clone(), code));
        }
        return outcome;
    }
    match loaded {
        Some((_, code)) => Job::with_package(code.package().clone(), request.clone())?.run(code),
        None => Err(RuntimeError::Usage("no package is loaded".into())),
    }
}

fn report(index: usize, result: Result<Outcome, RuntimeError>) -> Line {
    match result {
        Ok(outcome) => {
            let reports = outcome.outputs.iter().filter_map(|o| o.report.as_ref());
            let norm_error = reports.map(|r| r.norm_rel).reduce(f64::max);
            let describe = |o: &crate::run::OutputResult| match &o.report {
                Some(report) => format!("output {}: {report}", o.name),
                None => format!("output {}: {} elements never written", o.name, o.unwritten),
            };
            let message = (!outcome.passed).then(|| {
                outcome
                    .outputs
                    .iter()
                    .map(describe)
                    .collect::<Vec<_>>()
                    .join("; ")
            });
            let median_us = outcome.times.map(|t| t.median_us);
            Line {
                index,
                passed: outcome.passed,
                norm_error,
                median_us,
                message,
                fatal: false,
            }
        }
        Err(error) => Line::failed(index, error.to_string(), error.is_fatal()),
    }
}

struct Worker {
    child: Child,
    lines: Receiver<Line>,
}

impl Worker {
    fn start(args: &BatchArgs, from: usize, device: DeviceArgs) -> Result<Self, RuntimeError> {
        let failed = |error| RuntimeError::File {
            path: "axe-run's worker".into(),
            error,
        };
        let mut child = Command::new(std::env::current_exe().map_err(failed)?)
            .args([
                "batch",
                "--worker-from",
                &from.to_string(),
                "--device",
                &device.device.to_string(),
            ])
            .arg(&args.list)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (sender, lines) = channel();
        if let Some(out) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    if let Ok(line) = serde_json::from_str(&line)
                        && sender.send(line).is_err()
                    {
                        break;
                    }
                }
            });
        }
        Ok(Worker { child, lines })
    }

    /// What the worker reports of a case, or that it reports nothing; `None` if it has no GPU, without
    /// which no case can run, and has said why.
    fn line(&mut self, index: usize, seconds: u64) -> Option<Line> {
        let why = match self.lines.recv_timeout(Duration::from_secs(seconds)) {
            Ok(line) => return Some(line),
            Err(why) => why,
        };
        let done = self.child.wait_timeout_code();
        let code = done.or_else(|| self.stop());
        if code == Some(i32::from(exit_code::NO_DEVICE)) {
            return None;
        }
        let message = match why {
            RecvTimeoutError::Timeout => format!("no result after {seconds} seconds"),
            RecvTimeoutError::Disconnected => format!("the process died (exit code {code:?})"),
        };
        Some(Line::failed(index, message, true))
    }

    fn stop(&mut self) -> Option<i32> {
        let _ = self.child.kill();
        self.child.wait().ok().and_then(|s| s.code())
    }
}

fn supervise(args: &BatchArgs, cases: &[Case], device: DeviceArgs) -> Result<u8, RuntimeError> {
    let (mut next, mut passed) = (0, 0);
    let mut worker: Option<Worker> = None;
    while let Some(case) = cases.get(next) {
        let current = match &mut worker {
            Some(worker) => worker,
            None => worker.insert(Worker::start(args, next, device)?),
        };
        let Some(line) = current.line(next, args.timeout) else {
            return Ok(exit_code::NO_DEVICE);
        };
        if line.fatal
            && let Some(mut old) = worker.take()
        {
            old.stop();
        }
        passed += usize::from(line.passed);
        next += 1;
        show(args, case, &line);
    }
    if let Some(mut worker) = worker {
        let _ = worker.child.wait();
        worker.stop();
    }
    let failed = cases.len() - passed;
    say(format_args!("{passed} passed, {failed} failed"));
    Ok(if failed == 0 {
        exit_code::OK
    } else {
        exit_code::WRONG
    })
}

/// A child's exit code, if it ends by itself within a second.
trait ExitSoon {
    fn wait_timeout_code(&mut self) -> Option<i32>;
}

impl ExitSoon for Child {
    fn wait_timeout_code(&mut self) -> Option<i32> {
        for _ in 0..100 {
            if let Ok(Some(status)) = self.try_wait() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

fn show(args: &BatchArgs, case: &Case, line: &Line) {
    if args.json {
        let mut value = serde_json::json!({ "line": case.line, "case": case.text });
        if let (Some(map), Ok(serde_json::Value::Object(more))) =
            (value.as_object_mut(), serde_json::to_value(line))
        {
            map.extend(more);
        }
        print_json(&value);
        return;
    }
    if args.quiet && line.passed {
        return;
    }
    let verdict = if line.passed { "ok  " } else { "FAIL" };
    let error = line
        .norm_error
        .map_or("-".to_owned(), |e| format!("{e:.1e}"));
    let time = line
        .median_us
        .map_or("-".to_owned(), |t| format!("{t:.1} us"));
    say(format_args!(
        "{verdict} {error:>8} {time:>12}  {}:{} {}",
        args.list.display(),
        case.line,
        case.text
    ));
    if let Some(message) = &line.message {
        say(format_args!("     {}", message.replace('\n', "\n     ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_parse_with_comments_quotes_and_bad_lines() {
        let text =
            "# sweep\n\np.axe --dim M=3\n'my p.axe' --expect C=c.npy\np.axe --nonsense\n\"open\n";
        let cases = parse(text, Path::new("lists"));
        assert_eq!(
            cases.iter().map(|c| c.line).collect::<Vec<_>>(),
            [3, 4, 5, 6]
        );
        let request = cases[0].request.as_ref().unwrap();
        assert_eq!(request.package, Path::new("lists/p.axe"));
        assert_eq!(request.dims.get("M"), Some(&3));
        let request = cases[1].request.as_ref().unwrap();
        assert_eq!(request.package, Path::new("lists/my p.axe"));
        assert_eq!(
            request.expect,
            [("C".to_owned(), PathBuf::from("lists/c.npy"))]
        );
        assert!(
            cases[2]
                .request
                .as_ref()
                .unwrap_err()
                .contains("--nonsense")
        );
        assert!(cases[3].request.as_ref().unwrap_err().contains("quotes"));
    }

    #[test]
    fn worker_lines_round_trip() {
        let error = RuntimeError::Cuda {
            doing: "x".into(),
            error: "y".into(),
            fatal: true,
        };
        let line = report(3, Err(error));
        assert!(line.fatal && !line.passed);
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
    }
}
