package backend

import (
	"errors"

	"github.com/lambdanic/lambdanic/api"
)

// Handover says what a revision takes over from the one that it supersedes.
type Handover struct {
	Keep    bool      // its kept objects
	Migrate Migration // its migrated object
}

// Migration says how a migrated object is taken over.
type Migration int

// The migrations.
const (
	MigrateNothing Migration = iota // one of the revisions has none
	MigrateAsIs                     // the type is the same in both
	MigrateByCall                   // the next revision's function fills its object from the old one
)

// HandOver decides by the layouts what next takes over from old, or says why it cannot.
func HandOver(old, next api.Layouts) (h Handover, err error) {
	if old.Kept != "" && next.Kept != "" {
		if old.Kept != next.Kept {
			return h, errors.New("its kept objects differ from those of the running revision in name, order or type: restore them, or remove the lambda first to start anew")
		}
		h.Keep = true
	}
	switch {
	case old.Migrated == "" || next.Migrated == "" && next.From == "":
	case old.Migrated == next.Migrated:
		h.Migrate = MigrateAsIs
	case old.Migrated == next.From:
		h.Migrate = MigrateByCall
	case next.From == "":
		return h, errors.New("its migrated object has another type than that of the running revision: add a LAMBDA_MIGRATE() that takes the old type, or remove the lambda first to start anew")
	default:
		return h, errors.New("its LAMBDA_MIGRATE() takes another type than the migrated object of the running revision has: spell that type, or remove the lambda first to start anew")
	}
	return h, nil
}
