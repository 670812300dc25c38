# Any Go from 1.21 fetches the toolchain that go.mod names.
export GOTOOLCHAIN := auto

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
# The tag adds the tests that run Kafka clients in a testing/synctest bubble. It also makes franz-go's mutexes
# visible to the bubble; `make integration` runs the client with its ordinary ones.
TEST_TAGS := synctests
ALL_TAGS := synctests,integration,flink,lowwater_s3,lowwater_gcs,lowwater_azure

PKG ?= ./...
BENCH ?= .
COUNT ?= 6
BUDGET ?= 2m
FAULTS ?= 12
SEEDS ?= 2000

.DEFAULT_GOAL := help
.PHONY: help build vet lint test integration objectstores recovery chaos flinkwhy demo bench fuzz-flink web web-test cover clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/lowwater, static
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/lowwater ./cmd/lowwater

vet: ## gofmt, and go vet on all build tags
	@unformatted=$$("$$(go env GOROOT)/bin/gofmt" -l .) || exit 1; \
	if [ -n "$$unformatted" ]; then echo "not gofmt-ed (run gofmt -w on them):"; echo "$$unformatted"; exit 1; fi
	go vet -tags $(ALL_TAGS) ./...

lint: vet ## vet, and the style rules of internal/lint
	go test ./internal/lint

test: vet ## vet, and all tests that need nothing but Go, with the race detector (PKG=./...)
	go test -race -timeout 30m -tags $(TEST_TAGS) $(PKG)

integration: ## the tests against a real Apache Kafka, object stores, and lowwater why on jobs of a real Flink; started and stopped here (KAFKA_PORT=19092)
	test/integration/run.sh
	test/objectstores/run.sh
	test/flinkwhy/run.sh

recovery: ## random interruptions of jobs in virtual time, many more than test runs (SEEDS=2000)
	go test -tags $(TEST_TAGS) -count 1 ./test/recovery -seeds $(SEEDS) -kafkaseeds $$(($(SEEDS) / 10))

chaos: ## a job on a real Kafka, disturbed FAULTS times: killed, frozen, cut off, its disk full, its checkpoints damaged (FAULTS=12; SEED=)
	go run ./test/chaos -faults $(FAULTS) $(if $(SEED),-seed $(SEED))

objectstores: ## the second part of integration alone: checkpoints on servers of the protocols of S3, Google and Azure
	test/objectstores/run.sh

flinkwhy: ## the third part of integration alone
	test/flinkwhy/run.sh

demo: ## watch a job on an embedded broker stall and flow (SCENARIO=union; SCENARIO=--help lists them)
	go run ./cmd/lowwater demo $(SCENARIO)

bench: ## benchmarks, for benchstat (PKG=./... BENCH=. COUNT=6)
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PKG)

fuzz-flink: ## random cases on lowwater and on a real Flink until BUDGET is used up (BUDGET=2m)
	LOWWATER_FUZZ_BUDGET=$(BUDGET) go test -tags flink -count 1 -timeout 0 ./test/fuzzflink/...

web: ## build the Web UI into web/dist, which is committed (Node 20.19)
	cd web && npm ci && npm run build

web-test: build ## whether web/dist is up to date; the Web UI's tests, in Chromium (CHROMIUM=/usr/bin/chromium)
	web/check.sh
	cd web && npm ci && npm test && LOWWATER=$(CURDIR)/bin/lowwater npm run e2e

cover: ## test coverage in build/cover.html (PKG=./...)
	@mkdir -p build
	go test -tags $(TEST_TAGS) -coverprofile build/cover.out -coverpkg ./... $(PKG)
	go tool cover -html build/cover.out -o build/cover.html
	go tool cover -func build/cover.out | tail -n 1

clean: ## remove what was built here; fetched Kafka and Flink stay in the user's cache
	rm -rf bin build
