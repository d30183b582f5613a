// Package bpf carries the layouts that the NIC program shares with lambdas. C files in this folder need a
// `//go:build ignore` line, because a Go package without cgo may hold headers but no C sources.
package bpf

import "embed"

// Headers holds the headers that sdk/lambda.h includes.
//
//go:embed layout.h rpc_wire.h
var Headers embed.FS
