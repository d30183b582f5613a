package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lambdanic/lambdanic/internal/backend"
)

// stateFile is where a process leaves its state for the one that replaces it, in the directory of the record.
const stateFile = "state"

// handover says in lambda-host's words what a revision takes over.
func handover(h backend.Handover) string {
	var words strings.Builder
	if h.Keep {
		words.WriteString(" keep")
	}
	switch h.Migrate {
	case backend.MigrateAsIs:
		words.WriteString(" as-is")
	case backend.MigrateByCall:
		words.WriteString(" by-call")
	}
	return words.String()
}

// save has the serving process write its state to a file, if words say that any is taken over, and completes the words for
// the process that replaces it. Later changes to the state are lost.
func (in *instance) save(ctx context.Context, words string) (string, error) {
	if words == "" || !in.serving() {
		return "", nil
	}
	path := filepath.Join(in.dir, stateFile)
	if err := writeFile(path, nil, userOf(in.dir)); err != nil {
		return "", err
	}
	if err := os.Chmod(path, 0o660); err != nil {
		return "", err
	}
	if _, err := control(ctx, in.socket(), "save %s", stateFile); err != nil {
		return "", fmt.Errorf("save the state of the running revision: %w", err)
	}
	return words + " from=" + stateFile, nil
}
