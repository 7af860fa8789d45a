# Everything is done from here; `make help` tells what there is.

PREFIX     ?= /usr/local
SYSCONFDIR ?= /etc
# Where the sidecar looks for strategies unless its configuration says otherwise.
LIBEXECDIR ?= /usr/libexec
DESTDIR    ?=
# Where Python looks for libraries below PREFIX, if it does.
PYTHONDIR  ?= $(shell $(firstword $(wildcard /usr/bin/python3) python3) -c 'import site; print(([p for p in site.getsitepackages() if p.startswith("$(PREFIX)/lib")] + ["$(PREFIX)/lib/python3/dist-packages"])[0])' \
	2>/dev/null || echo $(PREFIX)/lib/python3/dist-packages)
UNITDIR    ?= $(PREFIX)/lib/systemd/system
# What install takes the executables from.
BIN        ?= bin

# Tests on a real Slurm wait more than they compute: four packages at a time do well on
# two cores.
PACKAGES    ?= ./...
# What takes longest begins first, so that none of it is left to run alone at the end.
LONGEST     := ./adapter/trials/e2e ./adapter/sidecar/controller ./adapter/trials/crash ./slurmctl/slurmsim
# What these test has one goroutine, or several that share nothing. The race detector finds nothing there and takes seven
# times as long, so make test uses it for some storms only, which run at once.
SERIAL      := ./planner/... ./adapter/job/measured ./plugins/builtin ./adapter/cmd/evosim ./adapter/internal/english ./adapter/lab/...
ATONCE      := -run '^(TestStorms|TestTwoHosts|TestTwoClusters)$$' ./adapter/lab/simulate -args -storm.seeds 4 -two.seeds 2 -clusters.seeds 2
RACE        ?= -race
TESTFLAGS   ?= $(RACE) -p 4 -timeout 70m
# What tells of a failure in go test's output: the logs of daemons that follow it can be thousands of lines.
FAILURE     := '^ *--- FAIL|^FAIL|^panic:|^[[:space:]]+(Test|Fuzz|Example)[^ ]* \([0-9hms.]*\)$$|WARNING: DATA RACE|^ +[a-z0-9_]+_test\.go:[0-9]+: '
FUZZTIME    ?= 10s
BENCH       ?= .
DEMOFLAGS   ?=
PLAYFLAGS   ?=
MATRIXFLAGS ?=
LOADFLAGS   ?=
LIVE        ?= TestHour|TestESP
LIVEFLAGS   ?=
SITESFLAGS  ?=
ATTACK      ?=
# What the sidecar of make crash and make hostile runs as: root, slurm (SlurmUser), or operator.
ACCOUNT     ?= root
OBSERVEFLAGS ?=
SEEDS       ?= 20
SEED        ?= 1

SOURCES := adapter planner plugins slurmctl
STRATEGIES := $(filter-out strategytest,$(notdir $(wildcard plugins/cmd/*)))

VERSION := $(shell contrib/packages/version)
GO_LDFLAGS = -X main.linked=$(VERSION) $(LINKFLAGS)
# Further flags of Go's build; packages have some. LDFLAGS is the C library's.
BUILDFLAGS ?=
LINKFLAGS  ?=

GOLANGCI_LINT := bin/tools/golangci-lint-v2.15.0

# The program runs here, for whatever machine the commands are built.
COMPLETIONS = GOOS= GOARCH= go run -buildvcs=false ./adapter/internal/completions $(BIN)/completions

.PHONY: build
build: build-deps ## build all commands into bin/, strategies into bin/strategies/, shell completions into bin/completions/ (the default)
	go build -buildvcs=false $(BUILDFLAGS) -ldflags '$(GO_LDFLAGS)' -o $(BIN)/ ./adapter/cmd/... ./adapter/trials/demo/evosdemo ./plugins/cmd/strategytest
	go build -buildvcs=false $(BUILDFLAGS) -ldflags '$(GO_LDFLAGS)' -o $(BIN)/strategies/ $(STRATEGIES:%=./plugins/cmd/%)
	$(COMPLETIONS)
	$(MAKE) -s -C contrib/c OUT=$(CURDIR)/bin/c

.PHONY: proto
proto: ## regenerate the code of the contract of strategies (needs protoc)
	go generate ./plugins/strategypb

.PHONY: demo
demo: deps build ## boot a private Slurm and show evolving jobs on it (DEMOFLAGS=--drive=companion)
	bin/evosdemo $(DEMOFLAGS)

.PHONY: play
play: deps build ## a private Slurm with the sidecar, and a shell in it (PLAYFLAGS=--site=archer2)
	@bin/evosdemo shell $(PLAYFLAGS)

.PHONY: test
test: deps lint ## lint and run every test, those on a real Slurm too, with the race detector where anything runs at once
ifeq ($(PACKAGES),./...)
	go test -vet=off -timeout 30m $(SERIAL)
	go test -vet=off $(RACE) -timeout 30m $(ATONCE)
	@echo 'go test -vet=off $(TESTFLAGS) # all other packages'
	@mkdir -p $(BIN)
	@{ go test -vet=off $(TESTFLAGS) $(LONGEST) $(filter-out $(shell go list $(SERIAL)),$(shell go list ./...)) 2>&1; echo $$? > $(BIN)/test.status; } | tee $(BIN)/test.log
	@test "$$(cat $(BIN)/test.status)" = 0 || { printf '\nfailed, of all that stands above and in $(BIN)/test.log:\n'; grep -E $(FAILURE) $(BIN)/test.log | cut -c1-300 | tail -n 50; exit 1; }
else
	go test -vet=off $(TESTFLAGS) $(PACKAGES)
endif

# Packages whose tests need no Slurm and little time.
PURE := ./planner/... ./adapter/internal/... ./adapter/job/measured ./adapter/job/request ./adapter/show/chart ./adapter/show/display ./adapter/sidecar/core/... \
	./adapter/sidecar/codec ./adapter/sidecar/recorder

# Without the race detector, so that linters and tests share one build.
.PHONY: check
check: RACE =
check: lint ## format, vet, lint, test pure packages, play all histories and 20 storms (two minutes)
	go test $(PURE)
	GOGC=400 go test -run '^(TestHistories|TestHistoriesAtRest|TestStorms)$$' ./adapter/lab/simulate -args -storm.seeds 20 -storm.seed $(SEED)

.PHONY: commits
commits: ## check the messages of new commits (.ci/commits; as a hook: git config core.hooksPath .ci/hooks)
	@.ci/commits

# The race detector's build of the packages serves the linters too: cgo's sqlite
# is compiled once. Composites are golangci-lint's: tables of steps in tests are short.
.PHONY: lint
lint: build-deps $(GOLANGCI_LINT) ## gofmt, go vet and golangci-lint
	@files=$$(gofmt -l $(SOURCES)); \
	if [ -n "$$files" ]; then echo "run gofmt on:" >&2; echo "$$files" >&2; exit 1; fi
	go vet $(RACE) -composites=false ./...
	GOFLAGS="$(GOFLAGS) $(RACE)" $(GOLANGCI_LINT) run ./...

$(GOLANGCI_LINT):
	GOBIN=$(CURDIR)/bin/tools go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
	mv bin/tools/golangci-lint $@

.PHONY: crash
crash: deps ## kill the sidecar at every numbered point of every scenario, and slurmctld beside a backup, on a real Slurm (half an hour; ACCOUNT=root, slurm, or operator)
	go test -run 'TestCrashPoints|TestBackup' -v -count=1 -parallel 4 -timeout 180m ./adapter/trials/crash -crash.full -crash.account=$(ACCOUNT)

.PHONY: takeover
takeover: deps ## kill, stop, and cut off the sidecar that acts, beside one on another host, in the middle of starts, growths, and shrinks, by merging and by companions (20 minutes)
	go test -run 'TestTakeover$$' -v -count=1 -timeout 60m ./adapter/trials/crash -takeovers=20

.PHONY: faults
faults: deps ## run every scenario while Slurm's commands fail at random (SEEDS=20 runs from SEED=1 on)
	go test -run 'TestFaults' -v -count=1 -parallel 4 -timeout 180m ./adapter/trials/crash -crash.seeds $(SEEDS) -crash.seed $(SEED)

.PHONY: simtest
simtest: build-deps ## play storms in virtual time: chance against the sidecar (SEEDS=20 from SEED=1 on)
	GOGC=400 go test -run '^TestStorms$$' -v -count=1 -timeout 180m ./adapter/lab/simulate -args -storm.seeds $(SEEDS) -storm.seed $(SEED)

.PHONY: mutants
mutants: build-deps ## put small faults into the core: histories and storms must find each
	GOGC=400 go test -run '^TestMutants$$' -v -count=1 -timeout 60m ./adapter/lab/simulate -args -mutants

.PHONY: fidelity
fidelity: deps ## record again what a real Slurm makes of random workloads, for the model to match (two hours)
	go test -tags fidelity -run '^TestFidelityRecord$$' -v -count=1 -p 1 -timeout 180m ./slurmctl/slurmsim ./adapter/trials/fidelity

.PHONY: live
live: deps ## play a trace's hour and the benchmark ESP on a real Slurm with the sidecar, beside the model (three quarters of an hour; LIVE=TestHour; LIVE=TestGrowDelay: growths on demand, by what they may cost others, seven minutes)
	go test -tags live -run '^($(LIVE))$$' -v -count=1 -timeout 180m ./adapter/trials/live $(if $(LIVEFLAGS),-args $(LIVEFLAGS))

.PHONY: planned
planned: deps ## measure how close to their planned starts stock jobs start, beside squeue --start (eight minutes; PLANNEDFLAGS=-planned.before=FOLDER of an earlier evoslurmd)
	go test -tags planned -run '^TestPlanned$$' -v -count=1 -timeout 60m ./adapter/trials/planned -args -planned.for=5m $(PLANNEDFLAGS)

.PHONY: science
science: ## run an AMR code on a full cluster in four ways: planned, on demand, rigid at peak, a job per step, over two streams of other jobs; figures, a page, and tables in bin/science (half an hour; SCIENCEFLAGS=-science.seeds=1,2,3)
	@.ci/deps science
	nice go test -tags science -run '^TestScience$$' -v -count=1 -timeout 300m ./adapter/trials/science -args -science.out='$(CURDIR)/bin/science' $(SCIENCEFLAGS)

.PHONY: archives
archives: build-deps ## hold the traces' reader and the baselines to real traces (TRACES=FOLDER of the Parallel Workloads Archive's)
	go test -tags archives -run 'Archives$$' -v -count=1 ./adapter/lab/trace ./adapter/lab/sim -args -traces '$(abspath $(TRACES))'
	mkdir -p bin && go build -o bin/evosim ./adapter/cmd/evosim
	test ! -e '$(TRACES)/lublin-256.swf' || { cd adapter/trials/live/testdata && \
		PATH="$(CURDIR)/bin:$$PATH" sh hour.sh '$(abspath $(TRACES))/lublin-256.swf' | cmp - hour.json; }

# Chromium is 110 MB, with which make deps need not wait.
AXE = bin/tools/axe-4.14.1.min.js
.PHONY: browser
browser: deps ## look at pages in headless Chromium (SHOTS=FOLDER for pictures of them)
	@.ci/deps browser
	@test -e '$(AXE)' || { mkdir -p bin/tools && cd bin/tools && npm pack --silent axe-core@4.14.1 && tar xzf axe-core-4.14.1.tgz package/axe.min.js && mv package/axe.min.js axe-4.14.1.min.js && rm -r package axe-core-4.14.1.tgz; } || \
		{ echo "make browser: npm is needed once, to fetch axe-core (or AXE=FILE)" >&2; exit 1; }
	$(if $(SHOTS),@mkdir -p '$(SHOTS)')
	go test -tags browser -run 'Browser$$' -v -count=1 -p 1 -timeout 30m ./adapter/lab/report ./adapter/lab/observed ./adapter/show/web ./adapter/trials/e2e -args -axe '$(abspath $(AXE))' $(if $(SHOTS),-shots '$(abspath $(SHOTS))')

.PHONY: bench
bench: deps ## run the benchmarks (BENCH=regexp, PACKAGES=./planner/...)
	go test -run '^$$' -bench '$(BENCH)' -benchmem -p 1 $(PACKAGES)

.PHONY: fuzz
fuzz: build-deps ## fuzz every parser for a short while (FUZZTIME=10s)
	@for package in $$(go list $(PACKAGES)); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
		done; \
	done

.PHONY: matrix
matrix: deps ## try every operation on Debian's Slurm 20.11 to 26.05 (MATRIXFLAGS=--only=24.11, --accounts, --full)
	go run ./adapter/trials/matrix/evosmatrix $(MATRIXFLAGS)

.PHONY: sites
sites: deps ## run evolving jobs on the configurations of real sites, with a table (SITESFLAGS=-sites.out=slurmctl/MATRIX.md)
	go test -run '^TestSites$$' -v -count=1 -timeout 60m ./adapter/trials/sites -args -sites.all -sites.root $(CURDIR) $(SITESFLAGS)

.PHONY: hostile
hostile: deps ## an ordinary user attacks the sidecar of a private Slurm, one attack after another (15 minutes; ATTACK=impostor, ACCOUNT=root, slurm, or operator)
	go test -run '^TestHostile$$/$(ATTACK)' -v -count=1 -timeout 60m ./adapter/trials/hostile -args -hostile.all -hostile.account=$(ACCOUNT)

.PHONY: load
load: deps ## put the sidecar under load for a quarter of an hour: 1,000 real nodes, 11,000 jobs
	nice go run ./adapter/trials/load $(LOADFLAGS)

.PHONY: latency
latency: deps ## measure what an application waits for when it grows, in every drive mode, and a stock job when malleable ones give way (8 minutes)
	go run ./adapter/trials/latency $(LATENCYFLAGS)

.PHONY: observe
observe: deps ## a sidecar without rights observes a mixed workload on a private Slurm, which is then played in the model (half an hour; OBSERVEFLAGS=-observe.for=5m)
	nice go test -run '^TestObserve$$' -v -count=1 -timeout 180m ./adapter/trials/observe -args -observe.for=30m -observe.out='$(CURDIR)/bin/observed' $(OBSERVEFLAGS)

HELM := bin/tools/helm-v4.3.1

.PHONY: chart
chart: build-deps $(HELM) ## lint the Helm chart, render it as in testdata, and refuse bad values (CHARTFLAGS=-rewrite)
	$(HELM) lint --strict contrib/helm/evoslurm
	go test -count=1 ./adapter/trials/chart -args -chart.helm='$(abspath $(HELM))' $(CHARTFLAGS)

$(HELM):
	GOBIN=$(CURDIR)/bin/tools go install helm.sh/helm/v4/cmd/helm@v4.3.1
	mv bin/tools/helm $@

GOVULNCHECK := bin/tools/govulncheck-v1.8.0

.PHONY: vuln
vuln: build-deps $(GOVULNCHECK) ## look for known vulnerabilities, where Go's database of them can be reached
	$(GOVULNCHECK) ./...

$(GOVULNCHECK):
	GOBIN=$(CURDIR)/bin/tools go install golang.org/x/vuln/cmd/govulncheck@v1.8.0
	mv bin/tools/govulncheck $@

NFPM := bin/tools/nfpm-v2.44.1
# The folder that packages are made in.
DIST ?= dist

.PHONY: packages
packages: build-deps $(NFPM) ## make deb and rpm packages, SBOM and checksums in dist/
	contrib/packages/build $(NFPM) $(DIST)

.PHONY: try-packages
try-packages: packages ## make and try the packages: lintian, rpmlint, byte-equal builds; install, start, upgrade, remove in a clean root
	@.ci/deps && .ci/deps packages
	contrib/packages/try $(DIST) $(NFPM)

.PHONY: image
image: packages ## make an OCI image of the sidecar in dist/, without an engine or a registry (SUITE=trixie for Slurm 24.11)
	@.ci/deps packages
	contrib/image/build $(DIST) $(SUITE)

.PHONY: try-image
try-image: deps image ## make the image, and have its sidecar drive a job beside a private Slurm
	go test -count=1 ./adapter/trials/image -args -image.archive='$(abspath $(DIST))/evoslurm-image.tar'

.PHONY: try-docs
try-docs: build ## type what the pages of docs/evolve say, with the packages in a clean root, and tell how long it takes
	@.ci/deps packages
	contrib/packages/try-docs $(DIST)

$(NFPM):
	GOBIN=$(CURDIR)/bin/tools go install github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.44.1
	mv bin/tools/nfpm $@

# root, who installs, need not have Go.
$(BIN)/evoslurmd:
	$(MAKE) build

$(BIN)/completions:
	$(COMPLETIONS)

SHARE := $(DESTDIR)$(PREFIX)/share

.PHONY: install
install: | $(BIN)/evoslurmd $(BIN)/completions ## install commands, strategies, man pages, unit, completions and configuration (DESTDIR, PREFIX, SYSCONFDIR)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(SYSCONFDIR)/evoslurm
	install $(addprefix $(BIN)/,evosbatch evosqueue evosacct evosctl evosrun evosim evostop strategytest) $(DESTDIR)$(PREFIX)/bin
	ln -sf evosctl $(DESTDIR)$(PREFIX)/bin/evolaunch
	install $(BIN)/evoslurmd $(DESTDIR)$(PREFIX)/sbin
	install -d $(DESTDIR)$(LIBEXECDIR)/evoslurm/strategies
	install $(STRATEGIES:%=$(BIN)/strategies/%) $(DESTDIR)$(LIBEXECDIR)/evoslurm/strategies
	for page in $(wildcard contrib/man/*.[1358]); do \
		install -D -m 644 $$page $(SHARE)/man/man$${page##*.}/$${page##*/} || exit 1; \
	done
	install -d $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	install -m 644 contrib/completions/bash/* $(BIN)/completions/bash/* $(SHARE)/bash-completion/completions
	install -m 644 contrib/completions/zsh/* $(BIN)/completions/zsh/* $(SHARE)/zsh/site-functions
	install -m 644 contrib/completions/fish/* $(BIN)/completions/fish/* $(SHARE)/fish/vendor_completions.d
	install -d $(DESTDIR)$(UNITDIR)
	for unit in $(wildcard contrib/systemd/*.service contrib/systemd/*.socket contrib/systemd/*.timer); do \
		sed 's|^ExecStart=/usr/local/|ExecStart=$(PREFIX)/|' $$unit >$(DESTDIR)$(UNITDIR)/$${unit##*/} && \
		chmod 644 $(DESTDIR)$(UNITDIR)/$${unit##*/} || exit 1; \
	done
	install -D -m 644 contrib/systemd/observe.conf $(SHARE)/evoslurm/observe.conf
	install -D -m 644 contrib/systemd/root.conf $(SHARE)/evoslurm/root.conf
	install -D -m 644 contrib/sysusers/evoslurm.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d/evoslurm.conf
	install -d $(DESTDIR)$(PYTHONDIR)/evoslurm
	install -m 644 contrib/python/evoslurm/*.py contrib/python/evoslurm/py.typed $(DESTDIR)$(PYTHONDIR)/evoslurm
	rm -f $(DESTDIR)$(PYTHONDIR)/evoslurm.py # what it was before
	$(MAKE) -C contrib/c install OUT='$(abspath $(BIN))/c' PREFIX='$(PREFIX)' DESTDIR='$(abspath $(DESTDIR))' VERSION='$(VERSION)'
	for file in $$(cd contrib/examples && find . -name '*.md' -o -name '*.sh' -o -name '*.py' -o -name '*.c' -o -name '*.lmp' -o -name '*.mdp' -o -name '*.R' -o -path './*/case/*' -type f -o -name '*.png' -o -name Snakefile); do \
		install -D -m 644 contrib/examples/$$file $(SHARE)/doc/evoslurm/examples/$$file || exit 1; \
	done
	install -D -m 644 contrib/job_submit.lua $(SHARE)/evoslurm/job_submit.lua
	install -d $(SHARE)/evoslurm/prometheus
	install -m 644 contrib/prometheus/* $(SHARE)/evoslurm/prometheus
	install -D -m 644 contrib/RIGHTS.md $(SHARE)/doc/evoslurm/RIGHTS.md
	install -D -m 644 configs/evoslurm.yaml $(SHARE)/doc/evoslurm/evoslurm.yaml
	test -e $(DESTDIR)$(SYSCONFDIR)/evoslurm/evoslurm.yaml || \
		install -m 644 configs/evoslurm.yaml $(DESTDIR)$(SYSCONFDIR)/evoslurm/evoslurm.yaml

.PHONY: deps
deps: ## install the Debian packages that are missing: Slurm, MUNGE, MariaDB, a C compiler
	@.ci/deps

# What a build alone needs.
.PHONY: build-deps
build-deps:
	@.ci/deps build

.PHONY: examples
examples: build-deps ## run all of contrib/examples on private Slurm clusters (installs Dask, Open MPI, MPICH, p4est, PyTorch, PETSc, Snakemake, GNU parallel, LAMMPS, GROMACS, OpenFOAM, Work Queue, R)
	@.ci/deps examples
	go test -tags examples -run '^TestExamples' -v -count=1 -p 1 -timeout 30m ./adapter/trials/e2e ./adapter/trials/sites

.PHONY: clean
clean: ## remove what was built
	rm -rf bin $(DIST)

.PHONY: help
help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
