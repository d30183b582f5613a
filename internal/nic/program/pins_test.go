package program

import (
	"os"
	"path/filepath"
	"testing"
)

// The directory is made, whenever another NIC takes down the one above.
func TestMakePins(t *testing.T) {
	above := filepath.Join(t.TempDir(), "lambdanic")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = RemovePinDir(above) // if it is empty
			}
		}
	}()
	for range 2000 {
		dir := filepath.Join(above, "default")
		if err := makePins(dir); err != nil {
			t.Error(err)
			break
		}
		if err := os.Remove(dir); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	<-stopped
}
