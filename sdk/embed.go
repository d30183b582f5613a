// Package sdk carries the headers that a lambda's author includes. The compiler hands them to its sandbox, so that an
// installed lambdanic needs no files of its own beside it.
package sdk

import "embed"

// Headers holds the headers, and lambda.ld, the linker script for the host.
//
//go:embed *.h lambda.ld
var Headers embed.FS
