// Package sdk carries the headers that a lambda's author includes. The compiler hands them to its sandbox, so that an
// installed lambdanic needs no files of its own beside it.
package sdk

import "embed"

// Headers holds sdk/*.h.
//
//go:embed *.h
var Headers embed.FS
