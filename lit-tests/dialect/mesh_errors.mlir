// RUN: axe-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{(M1) expected distinct axes, got 'a' twice}}
axe.mesh @pod(a = 4, a = 8)

// -----

// expected-error @+1 {{(M1) expected a size of at least 1 on axis 'a', got 0}}
axe.mesh @pod(a = 0)

// -----

// expected-error @+1 {{(M1) expected at least one axis}}
axe.mesh @pod()

// -----

// expected-error @+1 {{(M1) expected as many axis names as sizes, got 1 and 2}}
"axe.mesh"() <{sym_name = "pod", axes = ["a"], sizes = array<i64: 2, 4>}> : () -> ()
