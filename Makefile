# Two commands on a fresh Debian machine with the Rust toolchain: `make run` and `make test`.
# They install what they need through tools/setup.sh, and say so.

CARGO ?= cargo
WAYFARE = target/release/wayfare

.PHONY: run test check lint fuzz reproduce build setup clean lane-that-waits lane-that-computes conformance \
	reproduce-default reproduce-full load moves moves-linux handoffs drops sctp-rate evidence dist bench

# Two scenarios in virtual time and then with real daemons and real packets: a handoff under UDP, a download under TCP.
# Then the table by which one chooses.
run: build
	$(WAYFARE) run first
	@echo
	$(WAYFARE) run first --on linux
	@echo
	$(WAYFARE) run mobile-ip/download
	@echo
	$(WAYFARE) run mobile-ip/download --on linux
	@echo
	$(WAYFARE) compare --quick

# The library that `wayfare exec` preloads is built with it, into target/release/deps.
build: setup
	$(CARGO) build --release --locked -p cli

setup:
	@tools/setup.sh

# Everything that CI runs: lint, build, check, fuzz and reproduce. What is left when the tests are built mostly waits for
# packets, or computes; these two go side by side, those runs first that a busy machine disturbs least, and what they do not need
# is built on one processor meanwhile. What a step prints appears when it ends, and is whole. Where one fails, make names it and
# its lane ends; the other goes on.
test: setup lint
	$(CARGO) test --workspace --locked --no-run
	fuzz/run.sh build
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=line --keep-going lane-that-waits lane-that-computes

# Whatever is in no hurry: a lab's daemons are run before everything else that wants a processor.
CALM = nice -n 19
# What is about to happen, as it prints nothing until it has.
SAY = @echo "`date +%T` $@:"

lane-that-waits:
	$(SAY) the tests of runs on Linux
	$(CARGO) test --workspace --locked --test linux
	$(SAY) reproduce and compare, as soon as they are built
	$(CARGO) build --release --locked -p cli
	$(REPRODUCE)

lane-that-computes:
	$(SAY) the command as users have it
	$(CALM) $(CARGO) build --release --locked -p cli --jobs 1
	$(SAY) all tests but those of runs on Linux
	others=`tools/tests_besides.py linux` && $(CALM) $(CARGO) test --workspace --locked --no-fail-fast --lib --bins $$others
	$(CALM) $(CARGO) test --workspace --locked --no-fail-fast --doc
	$(SAY) fuzz
	$(CALM) fuzz/run.sh $(FUZZ_SECONDS)

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

check:
	$(CARGO) test --workspace --locked --no-fail-fast

# Seconds for all fuzz targets together.
FUZZ_SECONDS ?= 40
fuzz:
	fuzz/run.sh $(FUZZ_SECONDS)

# Every experiment that has landed, in both worlds, in its short form; then what must break it.
define REPRODUCE
tools/measured.sh $(WAYFARE) reproduce --quick --on both
$(WAYFARE) reproduce --quick --self-test
tools/measured.sh $(WAYFARE) compare --quick --on both
$(WAYFARE) compare --self-test
endef

reproduce: build
	$(REPRODUCE)

# --- longer ones -------------------------------------------------------------------------------------------------------

# Fifty runs in both worlds agree, and ten each of the download, of SIGMA and of Indirect TCP: about seventeen minutes.
conformance: build
	tools/conformance.sh 50
	tools/conformance.sh 10 mobile-ip/download
	tools/conformance.sh 10 sigma/handoff
	tools/conformance.sh 10 indirect-tcp/handoff-time

# A home agent with ten thousand registrations a second beside beacons, killed in the middle of it; as root.
load: setup
	$(CARGO) test --release --locked -p cli --test linux -- --ignored --nocapture ten_thousand_registrations

# A hundred thousand packets dropped at known places on Linux, and each found where it was dropped: two minutes; as root.
drops: setup
	$(CARGO) test --release --locked -p cli --test linux -- --ignored --nocapture a_hundred_thousand_drops

# Our SCTP to usrsctp beside usrsctp to itself, over a bare veth and over 2 Mb/s: a minute and a half.
sctp-rate: setup
	$(CARGO) test --release --locked -p cli --test linux -- --ignored --nocapture half_of_the_rate_of_usrsctp

# The simulator's TCP beside smoltcp's, ns-3's and the kernel's, with what each comparison came to: four minutes.
evidence: setup
	$(CARGO) test --locked -p tcp --test cross_check -- --nocapture
	$(CARGO) test --locked -p house-tests --test evidence -- --nocapture --test-threads=1
	$(CARGO) test --locked -p cli --test linux -- --include-ignored --nocapture --test-threads=1 evidence

# The command as it is handed out, target/dist/wayfare: optimized across crates and by a profile, for which it is built twice. Ten
# minutes.
dist: setup
	tools/dist.sh

# How fast that is, beside ns-3: nine runs of each in turn. It fails where a ratio is below what is claimed.
bench: dist
	tools/bench.py

# About three minutes, more where the machine disturbs runs.
reproduce-default: build
	$(WAYFARE) reproduce --on both

# The papers' own counts and times; it prints its estimate first.
reproduce-full: build
	$(WAYFARE) reproduce --full --on both

# One live TCP connection moves a thousand times: in the simulator (a minute), and between kernels (some ten minutes).
moves: moves-linux
	$(CARGO) test --locked -p house-tests --test moves -- --ignored --nocapture a_thousand_times_in_the_simulator

moves-linux:
	$(CARGO) test --locked -p house-tests --test moves -- --ignored --nocapture a_thousand_times_between_kernels

# A host that downloads through Indirect TCP's routers goes from router to router a hundred times: two and a half minutes.
handoffs: setup
	$(CARGO) test --release --locked -p cli --test linux -- --ignored --nocapture a_hundred_handoffs

clean:
	$(CARGO) clean
