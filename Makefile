# SPDX-License-Identifier: Apache-2.0

# Everything that is done to this project. `make` lists it.

TOOLS   := go tool -modfile=$(CURDIR)/internal/tools/go.mod
BIN     := bin/otelcol-governor
CONFIG  ?= testdata/gateway.yaml
SOURCES := $(shell git ls-files -co --exclude-standard -- '*.go' ':!*_test.go' ':!test' ':!benchmarks') go.mod go.sum builder-config.yaml
PACKAGES = $$(go list ./... | grep -v /_build)

# Each fuzz target, as package:name, for FUZZTIME each.
FUZZTIME ?= 10s

.DEFAULT_GOAL := help
.PHONY: help run build build-all test stories stories-v2 demo lint generate check-generated bench fuzz clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' Makefile

run: build ## Build the collector and start the gateway on CONFIG (testdata/gateway.yaml)
	@echo "==> starting $(BIN) on $(CONFIG); end it with ctrl-c"
	@exec $(BIN) --config $(CONFIG)

build: $(BIN) ## Build the collector with ocb into bin/

$(BIN): $(SOURCES)
	@echo "==> building $@ with ocb from builder-config.yaml (the first time takes minutes)"
	@CGO_ENABLED=0 $(TOOLS) builder --config builder-config.yaml --skip-strict-versioning=false
	@mkdir -p bin && cp _build/otelcol-governor $@
	@echo "==> built $@"

bin/telemetrygen: internal/tools/go.mod
	@echo "==> building $@, a load generator for the stories"
	@mkdir -p bin && go build -C internal/tools -o $(CURDIR)/$@ github.com/open-telemetry/opentelemetry-collector-contrib/cmd/telemetrygen

build-all: ## Compile both components for every platform they support
	@for p in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do \
		echo "==> compiling for $$p"; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build ./extension/... ./processor/... || exit 1; \
	done

test: build bin/telemetrygen ## Run all tests and the short stories over the built collector, with the race detector
	@echo "==> testing"
	@$(TOOLS) gotestsum --format pkgname-and-test-fails -- -race -timeout 15m ./...

stories: build bin/telemetrygen ## Run the long stories too; prints what they measured
	@echo "==> stories over $(BIN)"
	@CGO_ENABLED=0 go test -count=1 -tags stories -timeout 90m -v ./test/...

stories-v2: build ## Run the short stories of cgroup v2 in a virtual machine
	@test/vm/prepare.sh
	@echo "==> stories over $(BIN) in a virtual machine"
	@CGO_ENABLED=0 go test -count=1 -tags stories -short -timeout 30m -v -run V2 ./test

demo: build ## Show in a minute what the governor promises, beside memory_limiter under the same load
	@go run ./test/demo -collector $(BIN)

lint: ## Format check, go vet and staticcheck
	@echo "==> gofumpt"; out=$$($(TOOLS) gofumpt -l $$(git ls-files '*.go' ':!*generated_*')); test -z "$$out" || { echo "$$out"; exit 1; }
	@echo "==> go vet"; go vet ./... && go vet -tags stories ./test/... && go -C benchmarks vet ./...
	@echo "==> staticcheck"; $(TOOLS) staticcheck ./...

generate: ## Generate code and docs from metadata.yaml
	@echo "==> generating"; go generate ./extension/... ./processor/...

check-generated: generate ## Fail if what is generated differs from what is committed
	@git diff --exit-code -- extension processor

bench: ## Print costs beside those of peers, measured in one run
	@echo "==> benchmarks"; go -C benchmarks run ./ratios

fuzz: ## Fuzz every parser for FUZZTIME each
	@for f in $$(grep -rl '^func Fuzz' --include=*_test.go . | sort); do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\).*/\1/p' $$f); do \
			echo "==> fuzzing $$name in $$(dirname $$f)"; \
			go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $$(dirname $$f) || exit 1; \
		done; \
	done

clean: ## Remove what was built
	rm -rf bin _build .cache
