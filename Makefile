# Targets for Debian with Rust. `make run` also needs a C compiler, and `make test` more. tools/setup.sh names missing packages, and
# installs them if the user is root.

CARGO ?= cargo
WAYFARE = target/release/wayfare
# cargo starts its own jobs. Without these variables it does not search for the job server of `make --jobs`.
FREE = env -u MAKEFLAGS -u MFLAGS
# Runs a phase, and reports its progress. The number is an estimate for two cores, in seconds.
PHASE = @tools/phase.sh
# The file for tests that were inconclusive because of a busy host, one per line (tools/measured.sh).
export WAYFARE_INCONCLUSIVE ?= $(CURDIR)/target/inconclusive
# The file for failed phases, one per line (tools/phase.sh).
export WAYFARE_FAILED ?= $(CURDIR)/target/failed

.PHONY: run test check lint fuzz reproduce build setup setup-test clean all-lanes tests-on-linux lane-that-reproduces lane-that-compares \
	lane-that-computes lane-that-fuzzes conformance \
	released reproduce-default reproduce-full load moves moves-linux handoffs drops sctp-rate evidence dist bench \
	agree hunt hunt-linux mip-peers registrations fragments kept-packets binding-cache soak-mobile-ip handoff-costs

# Runs two scenarios in the simulator and with real daemons: a handoff with UDP, and a download with TCP. Then it compares all
# protocols.
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

# The build includes the library that `wayfare exec` preloads, in target/release/deps.
build: setup
	$(PHASE) "release build (only what changed)" 200 $(CARGO) build --release --locked -p cli

setup:
	@tools/setup.sh run

setup-test:
	@tools/setup.sh test

# Everything that CI runs. The tests of runs on Linux mostly wait for packets, so they are built first. Then lanes run in parallel: these
# tests, and after them the experiments and the comparison; computations; fuzzing. All use one build with debug assertions; there is no
# release build. The output of a step appears when the step has ended; its progress appears at once. After a failed step its lane
# continues. The last lines are the failed steps (tools/summary.sh makes them a failure) and the inconclusive tests.
test: setup-test
	@tools/summary.sh $(MAKE) --no-print-directory all-lanes

all-lanes:
	$(PHASE) "build of the tests of runs on Linux" 240 tools/run_test.sh build linux
	@exec 9>&2; $(MAKE) --no-print-directory --jobs=4 --output-sync=line --ignore-errors lane-that-reproduces lane-that-compares \
		lane-that-computes lane-that-fuzzes

# The threads of the tests of runs on Linux are more than their places (crates/cli/tests/linux/common.rs), because some wait for a place.
# Priorities for computations: the daemons of a lab run first. A build (IDLE) yields its processor as soon as a daemon wakes. Tests
# with time limits (CALM) keep a small share of the processor.
CALM = $(FREE) nice -n 19
IDLE = $(FREE) chrt --idle 0

lane-that-reproduces lane-that-compares lane-that-computes: WAYFARE = target/debug/wayfare

tests-on-linux:
	$(PHASE) "tests of runs on Linux" 440 $(FREE) RUST_TEST_THREADS=6 tools/run_test.sh run linux

lane-that-reproduces: tests-on-linux
	$(REPRODUCE)

lane-that-compares: tests-on-linux
	$(COMPARE)
	$(AGREEMENT)

lane-that-computes:
	$(PHASE) "format" 10 $(IDLE) $(CARGO) fmt --all --check
	$(PHASE) "lints" 180 $(IDLE) $(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(PHASE) "build of all other tests" 200 $(IDLE) $(CARGO) test --workspace --locked --no-run
	$(PHASE) "all other tests" 200 $(CALM) sh -c 'RUST_TEST_THREADS=2 $(CARGO) test --workspace --locked --no-fail-fast --lib --bins `tools/tests_besides.py linux`'
	$(PHASE) "hunt" 60 $(IDLE) $(WAYFARE) hunt --seeds 100 --known docs/hunt-known.toml
	$(PHASE) "the hunt's self-test" 20 $(IDLE) $(WAYFARE) hunt --self-test

# Fuzz targets are built in a separate folder, so that they do not wait for cargo's lock. Documentation tests hold it for a short time.
# Less optimized, the targets are built in half the time, which is longer than they run here.
lane-that-fuzzes: export CARGO_PROFILE_RELEASE_OPT_LEVEL = 1
lane-that-fuzzes: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS = 16
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

# Each experiment on both backends, in its short form, and then its self-test, which must break each must-hold. `make test` runs the
# self-test in the simulator only: on Linux a broken run takes as long as a valid one, and is repeated.
BREAK_ON = both
lane-that-reproduces: BREAK_ON = sim
# How long experiments may run on Linux in `make test`, in seconds without repeated runs. If all of them take longer, the commit
# decides which of them run; in the simulator all of them run.
LINUX_SECONDS ?= 160
TURN = $(shell echo $$((0x$$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0))))
lane-that-reproduces: SHARE = --linux-seconds $(LINUX_SECONDS) --turn $(TURN)
define REPRODUCE
$(PHASE) "experiments" 300 tools/measured.sh $(WAYFARE) reproduce --quick --on both $(SHARE)
$(PHASE) "the experiments' self-tests" 60 $(WAYFARE) reproduce --quick --self-test --on $(BREAK_ON)
endef
define COMPARE
$(PHASE) "comparison" 470 tools/measured.sh $(WAYFARE) compare --quick --on both
$(PHASE) "the comparison's self-test" 30 $(WAYFARE) compare --self-test
endef

# Compares both backends at the same eight phases. `make agree` is the complete comparison.
AGREEMENT = $(PHASE) "agreement of both backends" 75 tools/measured.sh $(WAYFARE) agree first --runs 8 --linux-runs 8

reproduce: build
	$(REPRODUCE)
	$(COMPARE)

# --- longer targets ----------------------------------------------------------------------------------------------------

# Compares the distributions of both backends: five scenarios and each leg of compare, about an hour. WHAT names other scenarios.
agree: build
	$(WAYFARE) agree $(WHAT)

# Compares fifty runs of both backends, and ten runs each of the download, of SIGMA and of Indirect TCP: about seventeen minutes.
conformance: build
	tools/conformance.sh 50
	tools/conformance.sh 10 mobile-ip/download --set cell.1.station_queue=200 --set cell.2.station_queue=200 \
		--set bulk-client.start=3.9s --set bulk-server.bytes=400000
	tools/conformance.sh 10 sigma/handoff
	tools/conformance.sh 10 indirect-tcp/handoff-time

# Random scenarios of each protocol, checked from outside the roles. Violations are shrunk and written to runs/hunt.
HUNT_SEEDS ?= 10000
HUNT_LINUX_SEEDS ?= 200
HUNT_BASE ?= 1
hunt: build
	$(WAYFARE) hunt --seeds $(HUNT_SEEDS) --seed $(HUNT_BASE) --known docs/hunt-known.toml

# Smaller scenarios on Linux, 4 at a time: an hour, as root.
hunt-linux: build
	$(WAYFARE) hunt --on linux --seeds $(HUNT_LINUX_SEEDS) --seed $(HUNT_BASE)

# A home agent with ten thousand registrations per second and beacons, which is killed meanwhile; as root.
load: setup-test
	$(CARGO) test --release --locked -p cli --test linux -- --ignored --nocapture ten_thousand_registrations

# Mobile IP with programs of others: agents and a mobile node of scapy, tshark and scapy as decoders of each message, kernels as
# correspondent and router (ping, iptables, iperf3), and dnsmasq as the DHCP server. Two minutes, as root; `make test` runs them too.
mip-peers: setup-test
	$(CARGO) test --locked -p cli --test linux -- --nocapture --test-threads=1 mip_peers:: dhcp::

# The time of a registration through both agents: one each second, a hundred times.
registrations: setup-test
	$(CARGO) test --release --locked -p cli --test linux -- --ignored --nocapture a_hundred_registrations_through_both_agents

# The cost of cutting packets that do not fit a tunnel: half a minute, as root.
fragments: setup-test
	$(CARGO) test --release --locked -p daemon --lib -- --ignored --nocapture --test-threads=1 \
		cutting_packets_at_a_tunnel

# The cost of keeping packets for visitors: of the role alone, and of a foreign agent that forwards by its daemon and in the kernel. Five
# minutes with the build, as root.
kept-packets: setup-test
	$(CARGO) test --release --locked -p cli --test linux -- --ignored --nocapture keeping_in_the_kernel_costs
	$(CARGO) test --release --locked -p mobile-ip --test roles -- --ignored --nocapture keeping_packets

# A correspondent's cache with 100 000 entries compared with one entry, and 10 000 Updates: half a minute.
binding-cache: setup-test
	$(CARGO) test --release --locked -p mobile-ip --test roles -- --ignored --nocapture --test-threads=1 bindings::

# A hundred thousand packets are dropped at known places on Linux. The ledger must find each of them: two minutes, as root.
drops: setup-test
	$(CARGO) test --release --locked -p cli --test linux -- --ignored --nocapture a_hundred_thousand_drops

# The rate of our SCTP to usrsctp, compared with usrsctp to itself, over a bare veth and over 2 Mb/s: 90 seconds.
sctp-rate: setup-test
	$(CARGO) test --release --locked -p cli --test linux -- --ignored --nocapture half_of_the_rate_of_usrsctp

# Compares the simulator's TCP with smoltcp, ns-3 and the kernel, and prints the results: four minutes.
evidence: setup-test
	$(CARGO) test --locked -p tcp --test connection -- --nocapture cross_check::
	$(CARGO) test --locked -p house-tests --test house -- --nocapture --test-threads=1 evidence::
	$(CARGO) test --locked -p cli --test linux -- --include-ignored --nocapture --test-threads=1 evidence

# The release artifact, target/dist/wayfare. It is optimized across crates and with a profile, so it is built twice: ten minutes.
dist: setup
	tools/dist.sh

# The release build does the same run as the tests' build, to the last byte.
released: build
	$(CARGO) test --locked -p house-tests --test house -- --ignored the_released_command

# Compares the speed of the release artifact with ns-3: nine runs of each in turn. As root, it also measures what a frame costs a daemon
# with 10 and with 10 000 sockets. It fails if a ratio misses its limit.
bench: setup-test dist
	tools/bench.py

# About three minutes, more on a busy machine.
reproduce-default: build
	$(WAYFARE) reproduce --on both

# With the counts and times of the papers. It first prints an estimate of its duration.
reproduce-full: build
	$(WAYFARE) reproduce --full --on both

# One live TCP connection moves a thousand times, in the simulator (one minute) and between kernels (ten minutes).
moves: moves-linux
	$(CARGO) test --locked -p house-tests --test house -- --ignored --nocapture a_thousand_times_in_the_simulator

moves-linux:
	$(CARGO) test --locked -p house-tests --test house -- --ignored --nocapture a_thousand_times_between_kernels

# A host that downloads by Indirect TCP moves from router to router a hundred times: 150 seconds.
handoffs: setup-test
	$(CARGO) test --release --locked -p cli --test linux -- --ignored --nocapture a_hundred_handoffs

# A mobile node moves a thousand times, one move every 2 s, under TCP in both directions, and agents crash every 100 s: in the
# simulator (minutes), and between kernels (34 minutes, as root).
soak-mobile-ip: setup-test
	$(CARGO) test --release --locked -p house-tests --test house -- --ignored --nocapture many_handoffs::soak
	$(CARGO) test --release --locked -p cli --test linux -- --ignored --nocapture mobile_ip_soak

# What a handoff of Mobile IP costs in a network of 1 ms, in a thousand moves each: lost packets, and stalls of a download. Minutes, in
# the simulator.
handoff-costs:
	$(CARGO) test --release --locked -p house-tests --test house -- --ignored --nocapture --test-threads=1 many_handoffs::lan

clean:
	$(CARGO) clean
