# SPDX-License-Identifier: Apache-2.0
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.DELETE_ON_ERROR:
.NOTPARALLEL:

GOTESTSUM := go run gotest.tools/gotestsum@v1.13.0
# With the flags of the build, so that both share what is compiled.
GOLANGCI := CGO_ENABLED=0 GOFLAGS=-trimpath go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# How bpf2go compiles for BPF.
export BPF2GO_CC := clang-19
export BPF2GO_CFLAGS := -O2 -g -Wall -Werror -Wno-address-of-packed-member -mcpu=v3 -I/usr/include/$(shell uname -m)-linux-gnu

PREFIX ?= /usr/local
FUZZ_SECONDS ?= 600
OPERATIONS ?= 5000000
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

C_FILES = $(wildcard $(shell git ls-files --cached --others --exclude-standard "*.c" "*.h" "*.cpp"))
GENERATORS = $(shell git grep -l "^//go:generate" -- "*.go")
GENERATED = $(shell git grep -lE '^(//|/\*|--|#) (Code generated|Generated) ')

.PHONY: build deps generate check-generated demo test test-kernels lint format fuzz linearizable bench clients install uninstall clean help

build: build/.generated ## Build build/lambdanic, build/lambdanic-bench, build/lambda-host, build/pacer, the compiler's plugin and the C client
	tools/deps -n
	$(MAKE) -C host
	$(MAKE) -C client/c CC=clang-19
	$(MAKE) -j$(shell nproc) -C compiler/passes
	CGO_ENABLED=0 go build -trimpath -ldflags "-X main.commit=$$(git rev-parse HEAD)" -o build/ ./cmd/...

deps: ## Install the Debian packages that build, tests and demo need
	tools/deps

# BPF objects are built here and embedded; the Go files that describe them are committed.
build/.generated: $(C_FILES) $(GENERATORS) api/wire.go
	tools/deps -n
	go generate ./...
	mkdir -p build && touch $@

generate: ## Build the BPF objects and rewrite the generated files
	rm -f build/.generated
	$(MAKE) build/.generated

check-generated: ## Fail if a generated file is not what its source says
	mkdir -p build
	sha256sum $(GENERATED) >build/generated.sum
	$(MAKE) generate
	sha256sum --check --quiet build/generated.sum

demo: deps build ## Run the three lambdas on the NIC and as processes, and compare
	$(SUDO) build/lambdanic demo

test: deps build ## Run every test; the last line counts them
	$(GOTESTSUM) --format pkgname --jsonfile build/test.json --post-run-command tools/count --raw-command -- tools/gotest

test-kernels: deps build ## Run the main tests on Debian's kernels, in virtual machines
	tools/kernels

lint: deps check-generated ## Check the style of Go and C and that generated files are fresh
	clang-format-19 --dry-run --Werror $(C_FILES)
	$(GOLANGCI) run

format: ## Format Go and C
	clang-format-19 -i $(C_FILES)
	$(GOLANGCI) fmt

fuzz: deps build ## Fuzz all that reads bytes from outside, FUZZ_SECONDS in all
	tools/fuzz $(FUZZ_SECONDS)

linearizable: deps build ## Check OPERATIONS operations of memcached and its cache for linearizability, with random numbers
	go test -count=1 -timeout 0 -v -run '^TestLinearizable$$' ./ikernels/memcached -operations $(OPERATIONS) -seed 0

bench: deps build clients ## Run every benchmark suite
	$(SUDO) build/lambdanic-bench

clients: ## Build what benchmarks run of the Node.js client, and install their CoAP server; their tests do so themselves
	$(MAKE) -C client/node
	$(MAKE) -C ikernels/coapjwt/testdata/node

install: build ## Install below PREFIX (/usr/local)
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/bin build/lambdanic
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/libexec/lambdanic build/lambda-host build/pacer
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/libexec/lambdanic build/liblambda_passes.so

uninstall: ## Remove what install put below PREFIX; instances stay: `lambdanic down --purge` removes one
	rm -f $(DESTDIR)$(PREFIX)/bin/lambdanic
	rm -rf $(DESTDIR)$(PREFIX)/libexec/lambdanic

clean: ## Remove what was built
	rm -rf build
	git clean -fdXq -- '*.o'

help: ## Say what the targets do
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' Makefile | expand -t 18
