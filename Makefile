# `make demo` and `make test` set up all that they need, on a machine with only git, make and Python >= 3.11.
# Every step asks what is already there, so the second time it is quiet and quick.
.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-all lint format bench wheel clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 18

setup:  ## system packages and .venv, for running and testing
	@scripts/setup test
	@scripts/venv test

build:  ## the stoker command and the Python extension, in build/release
	@scripts/setup demo
	@scripts/venv demo
	@scripts/build-web
	@scripts/build release stoker_cli _native

demo: build  ## what Stoker does, shown on real leaves in about five minutes
	@.venv/bin/python scripts/demo

test: setup  ## everything that must hold before a change lands, under 15 minutes on two cores
	@.venv/bin/python scripts/test

test-all: setup  ## test, and what takes longer: kills, the wheel, older torch, a minute of each fuzz target
	@.venv/bin/python scripts/test --all

lint: setup  ## format, clang-tidy, layers, ruff, mypy
	@scripts/build-web
	@scripts/build release
	@.venv/bin/python scripts/lint

format:  ## rewrite the sources in the house style
	@.venv/bin/python scripts/lint --fix

bench: setup build  ## the figures of bench/RESULTS.md on this machine
	@scripts/bench

wheel: setup  ## dist/*.whl, which Ubuntu 22.04 and newer load
	@scripts/wheel

clean:  ## remove what was built; .venv stays
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache
	@rm -f python/stoker/_native*.so
