# The few commands that people type. Each target is one script in tools/; `make help` lists them.
#
#   PROFILE=release   build with optimisation (dev by default: what the tests use)
#   JOBS=N            parallel jobs (all cores by default)

SHELL := /bin/bash
export PROFILE ?= dev
.DEFAULT_GOAL := help
.PHONY: help deps build demo test unit lit lit-stock capi python lint docs site wheel plugin install dist bench format clean

help: ## list these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 20

deps: ## install what is missing: LLVM/MLIR 22.1, ptxas, nvdisasm, numpy
	@tools/setup.sh

build: deps ## build axe-opt, axe and axe-run
	@tools/build.sh

demo: deps ## an MLP from PyTorch: decisions, machine code, a run, a picture
	@tools/demo.sh

test: deps ## every test: Rust, lit through axe-opt and through mlir-opt, the C API, Python
	@tools/test.sh

unit: deps ## the Rust tests alone
	@tools/test.sh rust

lit: deps ## the lit tests alone, through axe-opt
	@tools/test.sh lit

lit-stock: deps ## the lit tests alone, through a stock mlir-opt with the plugin
	@tools/test.sh stock

capi: deps ## the C API's tests and the CMake package alone
	@tools/test.sh capi

python: deps ## the Python package's tests alone, from a wheel, and the snippets of docs/
	@tools/test.sh python

lint: deps ## formatting, clippy, generated docs, house rules
	@tools/lint.sh

docs: deps ## write docs/ from ODS and Passes.td
	@tools/docs.sh

site: deps ## the documentation as a site: build/site
	@tools/site.sh

wheel: deps ## the Python package: build/wheels
	@tools/wheel.sh

plugin: deps ## one shared library for a stock mlir-opt: build/lib/libAxePlugin.so
	@tools/plugin.sh

install: deps ## install libraries, headers, drivers and man pages: PREFIX=DIR
	@tools/install.sh "$(PREFIX)"

dist: deps ## a Debian package and a tarball, in build/dist
	@tools/dist.sh

bench: deps ## time the drivers and, where there is a GPU, the kernels
	@tools/bench.sh

format: deps ## rewrite Rust and C++ in the house style
	@tools/lint.sh --fix

clean: ## remove what was built (not .deps)
	rm -rf build target
