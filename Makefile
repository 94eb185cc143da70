# Everything here works in a fresh clone on Debian 12 with Go, make and git; what else is needed is installed.

GO ?= go
# Without this folder's path in them, compiled packages serve all clones of a machine.
export GOFLAGS := $(GOFLAGS) -trimpath
# Nothing needs cgo but the race detector. Programs and tests share compiled packages.
export CGO_ENABLED := 0
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)

.PHONY: help build demo docs tutorials dist dist-check test test-all fresh test-deploy test-service onnxruntime test-onnxruntime test-java python check-python test-python race soak mutate conformance conformance-boards test-bare farm-boards farm-bare fuzz-boards fuzz-kernels fuzz-graphs chaos bench bench-operators bench-scale lint generate clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 24

build: ## build bin/tilth
	$(GO) build -ldflags '-X main.version=$(VERSION) -X main.commit=$(COMMIT)' -o bin/tilth ./cmd/tilth

demo: ## tune ResNet-18 on this machine for two minutes, compile it, run it
	@scripts/packages.sh demo
	@$(MAKE) --no-print-directory build
	@scripts/demo.sh

docs: ## the documentation as a site in site/, with the reference made from the code; its links are checked
	@scripts/packages.sh docs
	@$(MAKE) --no-print-directory build
	cd lab/docs && $(GO) run . reference -tilth ../../bin/tilth -root ../.. -out ../../.tools/docs
	hugo --quiet --source lab/docs/site --destination $(CURDIR)/site --cleanDestinationDir
	cd lab/docs && $(GO) run . links ../../site ../..

TUTORIALS ?= docs/tutorials/*.md
tutorials: ## run the commands of the tutorials, in empty folders; TUTORIALS=docs/tutorials/pytorch.md
	@scripts/packages.sh tutorials
	@$(MAKE) --no-print-directory build
	cd lab/release && $(GO) run . -root ../.. -out ../../.tools/release -arch $$($(GO) env GOARCH)
	cd lab/docs && $(GO) run . tutorials -root ../.. $(abspath $(wildcard $(TUTORIALS)))

ARCH ?= amd64,arm64,riscv64
KEY ?=
dist: ## make a release of this commit in dist/: archives, Debian packages, an image; ARCH=amd64 KEY=tilth.key
	@key=$${KEY:+$$(realpath -- "$$KEY")} && password=$${PASSWORD_FILE:+$$(realpath -- "$$PASSWORD_FILE")} && \
	cd lab/release && $(GO) run . -root ../.. -out ../../dist -arch $(ARCH) -key "$$key" -password-file "$$password"

dist-check: ## make it in two other folders, too, and see that all files are the same, and that they work; ARCH=amd64
	@scripts/packages.sh test dist
	@scripts/dist-check.sh $(ARCH)

# Bounds a hang of one package; on a busy machine packages take several times as long as on an idle one.
TIMEOUT ?= 45m
test: ## install what the tests need and run the quick tier: every package, in minutes
	@scripts/packages.sh test
	@scripts/test.sh -short -vet=off -timeout $(TIMEOUT) ./...

test-all: ## the slow tier: campaigns, emulators, deployments, releases, the site; hours. ONLY='conformance python'
	@scripts/packages.sh test docs bare dist
	@scripts/slow.sh $(or $(ONLY),all)

fresh: ## README's two commands in a minimal Debian with Go, make and git, as root; COMMANDS=test
	@scripts/packages.sh fresh
	@COMMANDS="$(COMMANDS)" scripts/fresh.sh

test-deploy: ## check deploy/ and docker-compose.yml, and run the farms that they describe in containers, as root
	@scripts/packages.sh test
	cd lab/deploy && $(GO) test -count=1 ./...

test-service: ## make an emulated machine with systemd a device by deploy/install-runner.sh; update, reboot and remove it, as root
	@scripts/packages.sh demo service
	@scripts/test-service.sh

python: ## the Python package as a wheel in dist/, without any package registry
	@/usr/bin/python3 python/backend.py dist

check-python: ## test the Python package with numpy and grpcio
	@scripts/packages.sh test
	@$(MAKE) --no-print-directory build
	@scripts/python.sh

test-python: ## the same, its style and types, and models of PyTorch, tuned and compared with PyTorch
	@scripts/packages.sh test python
	@$(MAKE) --no-print-directory build
	@scripts/python.sh
	@scripts/python.sh style
	@scripts/python.sh torch

onnxruntime: ## build the execution provider for ONNX Runtime, bin/libtilth_onnxruntime.so; ORT_INCLUDE=FOLDER of its headers
	@scripts/packages.sh peers
	@scripts/onnxruntime.sh

test-onnxruntime: ## test it in ONNX Runtime, and time a run with and without it; RUNS=30
	@scripts/packages.sh test bench peers python
	@$(MAKE) --no-print-directory build
	@scripts/onnxruntime.sh test

test-java: ## run a package from Java, and compare its outputs; JAVA=COMMAND of a JDK 22 or newer
	@scripts/packages.sh test
	@$(MAKE) --no-print-directory build
	@scripts/java.sh

race: ## the quick tier of the packages with concurrency, under the race detector
	@scripts/packages.sh test
	@scripts/test.sh -short -race -vet=off -timeout $(TIMEOUT) $$(scripts/concurrent.sh)

RUNS ?= 10
soak: ## the quick tier again and again beside two busy loops; RUNS=10 SOAK='-race ./tracker'
	@scripts/packages.sh test
	scripts/soak.sh $(RUNS) $(SOAK)

mutate: ## break one promise after the other, and see whether its test notices; MUTATE='-only lease'
	@scripts/packages.sh test
	$(GO) run ./lab mutate $(MUTATE)

SEED ?= 1
OPENCL ?= 1
conformance: ## all ONNX backend test cases on the simulated GPU; on OpenCL one of OPENCL=1, which SEED=1 chooses
	@scripts/packages.sh test
	@$(MAKE) --no-print-directory build
	@scripts/conformance.sh $(OPENCL) $(SEED)

conformance-boards: ## all ONNX backend test cases for boards, under emulators; BOARDS='riscv64 arm32 arm64 neoverse-v1 a64fx'
	@scripts/packages.sh test
	@$(MAKE) --no-print-directory build
	@scripts/boards.sh $(BOARDS)

test-bare: ## C source of small models for microcontrollers, built by clang and gcc and run under emulators of boards
	@scripts/packages.sh test bare
	$(GO) test -count=1 -v -run 'TestBoards|TestSource|TestLibrary' ./compiler/aot ./compiler/backend/board
	$(GO) test -count=1 -v ./runner/boards
	$(GO) test -count=1 -v -run 'Board' ./runner

farm-boards: ## a farm tunes a model on emulated boards, and their packages are compared; BOARDS='riscv64 arm32 arm64 neoverse-v1'
	@scripts/packages.sh test
	@$(MAKE) --no-print-directory build
	@scripts/farm-boards.sh $(BOARDS)

farm-bare: ## a farm tunes a model on emulated boards without an operating system; BOARDS='mps2-an500 mps3-an547 riscv32-virt'
	@scripts/packages.sh test bare
	@$(MAKE) --no-print-directory build
	@scripts/farm-bare.sh $(BOARDS)

STREAMS ?= 100000
fuzz-boards: ## spoilt streams of boards, and spoilt modules for them, under sanitizers; STREAMS=100000 SEED=1
	@scripts/packages.sh test
	$(GO) test ./compiler/backend/board -run Hostile -count=1 -timeout 0 -v -hostile-rounds $(STREAMS) -hostile-seed $(SEED)

PAIRS ?= 10000
fuzz-kernels: ## random workloads with random schedules on the simulated GPU; PAIRS=10000 SEED=1
	@scripts/packages.sh test
	$(GO) test ./compiler/backend/gpusim -run '^TestEveryPointIsRight$$' -count=1 -timeout 0 -v -pairs $(PAIRS) -rapid.seed=$(SEED)

GRAPHS ?= 2000
fuzz-graphs: ## random models with random schedules against ONNX Runtime; GRAPHS=2000 SEED=1
	@scripts/packages.sh test bench
	@scripts/ort.sh
	$(GO) test ./lab/graphfuzz -run TestRandom -timeout 0 -v -graphs $(GRAPHS) -seed $(SEED) -ort $(CURDIR)/.tools/ort -keep $(CURDIR)/.tools/graphs

ROUNDS ?= 200
SHARDED ?= 200
REAL ?= 10
FARMS ?= 20
chaos: ## faults against farms of real processes, power cuts too, and whether promises hold; ROUNDS=200 SHARDED=200 REAL=10 FARMS=20 SEED=1
	@scripts/packages.sh test
	$(GO) test ./lab/chaos -run 'TestPromisesHold|TestPowerCut' -timeout 0 -v -seed $(SEED) -rounds $(ROUNDS) -limit 3h -real $(REAL) -cuts 30 \
		-farms $(FARMS) -shard-rounds $(SHARDED) -side-by-side 4 -keep $(CURDIR)/.tools/chaos
	$(GO) test ./tracker -run TestTrackersThatShareADatabaseOutliveFaults -timeout 0 -v -args -shard-seed $(SEED) -shard-faults $(ROUNDS)

bench: ## tune all built-in models and compare them with ONNX Runtime
	@scripts/packages.sh bench peers
	@$(MAKE) --no-print-directory build
	@lab/bench/run.sh
	@lab/bench/run.sh decoding
	@lab/bench/run.sh fast
	@lab/bench/run.sh quantised

OPERATORS ?= -set library,blocks -batch 1
bench-operators: ## single operators against the machine's limits, and in turns with oneDNN and ggml; OPERATORS='-set ansor'
	@scripts/packages.sh demo peers
	@peers=$$(scripts/peers.sh) && set -x && $(GO) run ./lab operators -version "$$(scripts/version.sh)" -peers "$$peers" $(OPERATORS)

bench-scale: ## what a result costs the tracker, over devices and records: docs/scale.svg
	ulimit -n $$(ulimit -H -n) && $(GO) run ./lab scale -out docs/scale.svg $(SCALE)

lint: ## gofmt, golangci-lint, buf
	@scripts/lint.sh

generate: ## generate code and descriptors from proto/
	@scripts/packages.sh test
	$(GO) generate ./proto/...

clean: ## remove what was built
	rm -rf bin dist site .tools
