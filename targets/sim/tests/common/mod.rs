//! Helpers of the integration tests: buffers in, kernel, buffers out.
#![allow(dead_code, reason = "each test binary uses a part")]

use axe_sim::{
    Arg, Device, Finding, FindingKind, Launch, Module, Options, RunReport, SimError, Simulator,
};

pub fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

pub fn to_words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
        .collect()
}

pub fn to_floats(bytes: &[u8]) -> Vec<f32> {
    to_words(bytes).into_iter().map(f32::from_bits).collect()
}

/// What a kernel is given.
pub enum Given {
    In(Vec<u8>),
    Out(usize),
    Value(Arg),
}

pub struct Outcome {
    pub report: RunReport,
    pub buffers: Vec<Vec<u8>>,
}

pub fn launch(
    ptx: &str,
    options: Options,
    mut launch: Launch,
    given: Vec<Given>,
) -> Result<Outcome, SimError> {
    let module = Module::parse(ptx)?;
    let mut device = Device::new();
    let mut buffers = Vec::new();
    for (i, g) in given.into_iter().enumerate() {
        let name = format!("arg{i}");
        launch.args.push(match g {
            Given::In(bytes) => {
                let at = device.alloc(&name, bytes.len() as u64).unwrap();
                device.copy_in(at, &bytes).unwrap();
                buffers.push((at, bytes.len()));
                Arg::Ptr(at)
            }
            Given::Out(n) => {
                let at = device.alloc(&name, n as u64).unwrap();
                buffers.push((at, n));
                Arg::Ptr(at)
            }
            Given::Value(arg) => arg,
        });
    }
    let report = Simulator::new(options).run(&mut device, &module, &launch)?;
    let read = |(at, n): (u64, usize)| {
        let mut out = vec![0; n];
        device.copy_out(at, &mut out).unwrap();
        out
    };
    Ok(Outcome {
        report,
        buffers: buffers.into_iter().map(read).collect(),
    })
}

/// Runs with several schedules; nothing may be found.
pub fn clean(ptx: &str, start: &Launch, given: impl Fn() -> Vec<Given>) -> Vec<Vec<u8>> {
    let mut first: Option<Vec<Vec<u8>>> = None;
    for seed in 0..4 {
        let options = Options {
            seed,
            ..Options::default()
        };
        let outcome = launch(ptx, options, start.clone(), given())
            .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert!(
            outcome.report.findings.is_empty(),
            "seed {seed}: {}",
            outcome.report.findings[0]
        );
        if let Some(first) = &first {
            assert_eq!(first, &outcome.buffers, "seed {seed} gives another result");
        }
        first = Some(outcome.buffers);
    }
    let unchecked = Options {
        checks: false,
        ..Options::default()
    };
    let outcome = launch(ptx, unchecked, start.clone(), given()).unwrap();
    assert_eq!(first.as_ref(), Some(&outcome.buffers));
    outcome.buffers
}

/// All findings of a run, the one that ended it included.
pub fn findings(ptx: &str, start: &Launch, given: Vec<Given>, seed: u64) -> Vec<Finding> {
    let options = Options {
        seed,
        max_warp_instructions: 1 << 20,
        ..Options::default()
    };
    match launch(ptx, options, start.clone(), given) {
        Ok(outcome) => outcome.report.findings,
        Err(SimError::Fault(fault, mut earlier)) => {
            earlier.push(*fault);
            earlier
        }
        Err(other) => panic!("{other}"),
    }
}

pub fn kinds(findings: &[Finding]) -> Vec<FindingKind> {
    findings.iter().map(|f| f.kind).collect()
}

/// Runs `body` with `%r0 = a[tid]`, `%r1 = b[tid]`, `%r2 = c[tid]`; `%r9` goes to the output.
pub fn eval(body: &str, a: &[u32], b: &[u32], c: &[u32]) -> Vec<u32> {
    let n = a.len();
    let ptx = format!(
        ".version 8.6\n.target sm_90a\n.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 out)
{{
.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<30>; .reg .b64 %d<30>; .reg .f32 %f<9>; .reg .f64 %g<9>;
mov.u32 %r20, %tid.x; mul.wide.u32 %d0, %r20, 4;
ld.param.u64 %d1, [a]; add.s64 %d1, %d1, %d0; ld.global.u32 %r0, [%d1];
ld.param.u64 %d2, [b]; add.s64 %d2, %d2, %d0; ld.global.u32 %r1, [%d2];
ld.param.u64 %d3, [c]; add.s64 %d3, %d3, %d0; ld.global.u32 %r2, [%d3];
mov.b32 %f0, %r0; mov.b32 %f1, %r1; mov.b32 %f2, %r2;
{body}
ld.param.u64 %d4, [out]; add.s64 %d4, %d4, %d0; st.global.u32 [%d4], %r9;
ret;
}}"
    );
    let out = clean(&ptx, &Launch::new("k", 1, n as u32, vec![]), || {
        vec![
            Given::In(words(a)),
            Given::In(words(b)),
            Given::In(words(c)),
            Given::Out(4 * n),
        ]
    });
    to_words(&out[3])
}
