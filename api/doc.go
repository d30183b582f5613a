// Package api holds the public types of λ-NIC: the λ-RPC header, function specs, the artifact manifest and the bodies of
// the HTTP API. It imports nothing else of this module.
package api

//go:generate go run ./genheader -o ../bpf/rpc_wire.h
//go:generate go run ./genheader -o ../tools/wireshark/lambda_rpc_wire.lua
//go:generate go run ./genheader -o ../client/python/src/lambdanic/wire.py
//go:generate go run ./genheader -o ../client/node/src/wire.ts
