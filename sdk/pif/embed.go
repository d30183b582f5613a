// Package pif carries the headers that the Micro-C of a P4 program includes, and those around its match stage.
package pif

import "embed"

// Headers holds the headers.
//
//go:embed *.h
var Headers embed.FS
