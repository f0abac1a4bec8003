# Two commands on a fresh Debian machine with Rust: `make run` needs a C compiler and nothing else, `make test` more. What is
# missing is named, and installed if root asks (tools/setup.sh).

CARGO ?= cargo
WAYFARE = target/release/wayfare
# cargo starts its own jobs: it must not look for the job server of a `make --jobs` that did not hand it over.
FREE = env -u MAKEFLAGS -u MFLAGS
# A phase with an estimate for two cores, in seconds, and its progress.
PHASE = @tools/phase.sh
# The tests that a busy host made inconclusive: a line for each (tools/measured.sh).
export WAYFARE_INCONCLUSIVE ?= $(CURDIR)/target/inconclusive
# The phases that failed: a line for each (tools/phase.sh).
export WAYFARE_FAILED ?= $(CURDIR)/target/failed

.PHONY: run test check lint fuzz reproduce build setup setup-test clean all-lanes lane-that-waits lane-that-computes lane-that-fuzzes conformance \
	released reproduce-default reproduce-full load moves moves-linux handoffs drops sctp-rate evidence dist bench \
	agree hunt hunt-linux

# Two scenarios in virtual time and then with real daemons and real packets: a handoff under UDP, a download under TCP.
# Then the comparison of all protocols.
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
	$(PHASE) "release build (only what changed)" 200 $(CARGO) build --release --locked -p cli

setup:
	@tools/setup.sh run

setup-test:
	@tools/setup.sh test

# Everything that CI runs. The tests of runs on Linux mostly wait for packets, so they are built first. Then three lanes run in
# parallel: that one, all that computes, and the fuzzing. All use one build, with debug assertions: the release is not built. A
# lane's output appears step by step as each step ends; its progress appears at once. Where one step fails, make names it and its
# lane ends; the others continue. The last lines are the steps that failed, and the tests that were inconclusive.
test: setup-test
	@tools/summary.sh $(MAKE) --no-print-directory all-lanes

all-lanes:
	$(PHASE) "build of the tests of runs on Linux" 240 tools/run_test.sh build linux
	@exec 9>&2; $(MAKE) --no-print-directory --jobs=3 --output-sync=line --keep-going lane-that-waits lane-that-computes lane-that-fuzzes

# What is in no hurry: a lab's daemons run before everything else that wants a processor. A build gives its processor up in the
# instant in which one of them wakes; tests that have time limits of their own keep a small share.
CALM = $(FREE) nice -n 19
IDLE = $(FREE) chrt --idle 0

lane-that-waits lane-that-computes: WAYFARE = target/debug/wayfare

lane-that-waits:
	$(PHASE) "tests of runs on Linux" 450 $(FREE) tools/run_test.sh run linux
	$(EXPERIMENTS)
	$(AGREEMENT)

lane-that-computes:
	$(PHASE) "format" 10 $(IDLE) $(CARGO) fmt --all --check
	$(PHASE) "lints" 180 $(IDLE) $(CARGO) clippy --workspace --all-targets --locked --jobs 1 -- -D warnings
	$(PHASE) "build of all other tests" 200 $(IDLE) $(CARGO) test --workspace --locked --no-run --jobs 1
	$(PHASE) "all other tests" 200 $(CALM) sh -c 'RUST_TEST_THREADS=1 $(CARGO) test --workspace --locked --no-fail-fast --lib --bins `tools/tests_besides.py linux`'
	$(PHASE) "hunt" 60 $(IDLE) $(WAYFARE) hunt --seeds 100 --known docs/hunt-known.toml
	$(PHASE) "the hunt's self-test" 20 $(IDLE) $(WAYFARE) hunt --self-test

# Fuzz targets are built in a separate folder, so that they wait for no lock of the others; the examples in the documentation need
# little of it.
lane-that-fuzzes:
	$(PHASE) "fuzz build" 120 $(IDLE) fuzz/run.sh build
	$(PHASE) "fuzz" 60 $(IDLE) fuzz/run.sh $(FUZZ_SECONDS)
	$(PHASE) "documentation tests" 120 $(IDLE) $(CARGO) test --workspace --locked --no-fail-fast --doc --jobs 1

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

check:
	$(CARGO) test --workspace --locked --no-fail-fast

# Seconds for all fuzz targets together.
FUZZ_SECONDS ?= 40
fuzz:
	fuzz/run.sh $(FUZZ_SECONDS)

# Every experiment on both backends, in its short form; then what must break it. `make test` breaks it in the simulator only:
# on Linux a broken course takes as long as a whole one, and is repeated.
BREAK_ON = both
lane-that-waits: BREAK_ON = sim
define EXPERIMENTS
$(PHASE) "experiments" 550 tools/measured.sh $(WAYFARE) reproduce --quick --on both
$(PHASE) "the experiments' self-tests" 60 $(WAYFARE) reproduce --quick --self-test --on $(BREAK_ON)
$(PHASE) "comparison" 470 tools/measured.sh $(WAYFARE) compare --quick --on both
$(PHASE) "the comparison's self-test" 30 $(WAYFARE) compare --self-test
endef

# Both backends at the same eight phases. `make agree` is the whole of it.
AGREEMENT = $(PHASE) "agreement of both backends" 75 tools/measured.sh $(WAYFARE) agree first --runs 8 --linux-runs 8

reproduce: build
	$(EXPERIMENTS)

# --- longer ones -------------------------------------------------------------------------------------------------------

# Both backends' distributions: five scenarios and every leg of compare, about an hour. WHAT names others.
agree: build
	$(WAYFARE) agree $(WHAT)

# Fifty runs on both backends agree, and ten each of the download, of SIGMA and of Indirect TCP: about seventeen minutes.
conformance: build
	tools/conformance.sh 50
	tools/conformance.sh 10 mobile-ip/download --set cell.1.station_queue=200 --set cell.2.station_queue=200 \
		--set bulk-client.start=3.9s --set bulk-server.bytes=400000
	tools/conformance.sh 10 sigma/handoff
	tools/conformance.sh 10 indirect-tcp/handoff-time

# Random scenarios of every protocol, judged from outside the roles; what is violated is shrunk and written to runs/hunt.
HUNT_SEEDS ?= 10000
HUNT_LINUX_SEEDS ?= 200
HUNT_BASE ?= 1
hunt: build
	$(WAYFARE) hunt --seeds $(HUNT_SEEDS) --seed $(HUNT_BASE) --known docs/hunt-known.toml

# Smaller scenarios on Linux, 4 at a time: an hour; as root.
hunt-linux: build
	$(WAYFARE) hunt --on linux --seeds $(HUNT_LINUX_SEEDS) --seed $(HUNT_BASE)

# A home agent with ten thousand registrations a second beside beacons, killed in the middle of it; as root.
load: setup-test
	$(CARGO) test --release --locked -p cli --test linux -- --ignored --nocapture ten_thousand_registrations

# A hundred thousand packets dropped at known places on Linux, and each found where it was dropped: two minutes; as root.
drops: setup-test
	$(CARGO) test --release --locked -p cli --test linux -- --ignored --nocapture a_hundred_thousand_drops

# Our SCTP to usrsctp beside usrsctp to itself, over a bare veth and over 2 Mb/s: a minute and a half.
sctp-rate: setup-test
	$(CARGO) test --release --locked -p cli --test linux -- --ignored --nocapture half_of_the_rate_of_usrsctp

# The simulator's TCP beside smoltcp's, ns-3's and the kernel's, with what each comparison came to: four minutes.
evidence: setup-test
	$(CARGO) test --locked -p tcp --test connection -- --nocapture cross_check::
	$(CARGO) test --locked -p house-tests --test house -- --nocapture --test-threads=1 evidence::
	$(CARGO) test --locked -p cli --test linux -- --include-ignored --nocapture --test-threads=1 evidence

# The command as it is handed out, target/dist/wayfare: optimized across crates and by a profile, for which it is built twice. Ten
# minutes.
dist: setup
	tools/dist.sh

# The release build does the same run as the tests' build, to the last byte.
released: build
	$(CARGO) test --locked -p house-tests --test house -- --ignored the_released_command

# How fast that is, beside ns-3: nine runs of each in turn. It fails where a ratio is below what is claimed.
bench: setup-test dist
	tools/bench.py

# About three minutes, more where the machine disturbs runs.
reproduce-default: build
	$(WAYFARE) reproduce --on both

# The papers' own counts and times; it prints its estimate first.
reproduce-full: build
	$(WAYFARE) reproduce --full --on both

# One live TCP connection moves a thousand times: in the simulator (a minute), and between kernels (some ten minutes).
moves: moves-linux
	$(CARGO) test --locked -p house-tests --test house -- --ignored --nocapture a_thousand_times_in_the_simulator

moves-linux:
	$(CARGO) test --locked -p house-tests --test house -- --ignored --nocapture a_thousand_times_between_kernels

# A host that downloads through Indirect TCP's routers goes from router to router a hundred times: two and a half minutes.
handoffs: setup-test
	$(CARGO) test --release --locked -p cli --test linux -- --ignored --nocapture a_hundred_handoffs

clean:
	$(CARGO) clean
