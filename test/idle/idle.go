// Package idle is a module of a NIC that does nothing: an example of all that a module needs.
package idle

import "github.com/lambdanic/lambdanic/internal/nic/module"

// Module is one NIC's.
type Module struct{ module.Base }

var _ module.Module = (*Module)(nil)
