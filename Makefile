# Two commands on a fresh Debian machine with the Rust toolchain: `make run` and `make test`.
# They install what they need through tools/setup.sh, and say so.

CARGO ?= cargo
WAYFARE = target/release/wayfare

.PHONY: run test check lint fmt fuzz build setup clean

run: build
	$(WAYFARE) run first

build: setup
	$(CARGO) build --release --locked -p cli

setup:
	@tools/setup.sh

# Everything that CI runs.
test: setup lint check fuzz

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# With CI set, tests/determinism.rs asks the released command for the same fingerprint.
check: build
	CI=1 $(CARGO) test --workspace --locked --no-fail-fast

# Seconds for all fuzz targets together.
FUZZ_SECONDS ?= 60
fuzz:
	fuzz/run.sh $(FUZZ_SECONDS)

clean:
	$(CARGO) clean
