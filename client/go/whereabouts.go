package lambdanic

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/singleflight"
)

// errMoved ends an attempt at an address that the function has left.
var errMoved = errors.New("the function has moved")

// A whereabouts is where a call by a function's name is under way. It asks the directory again without holding up the call's packets:
// a directory that is down costs nothing. nil is for a call by workload ID, which never moves.
type whereabouts struct {
	directory *Directory
	name      string
	known     *Function                  // where the call is
	answer    <-chan singleflight.Result // of the directory, once asked

	moved   time.Time // if the function has moved: when the last packet got through
	resends int       // at all addresses
}

// begin has x, an attempt at another address, go on with the time that the call has left.
func (w *whereabouts) begin(x *exchange, epoch time.Time) {
	if w != nil && !w.moved.IsZero() {
		x.moved = w.moved.Sub(epoch)
		w.moved = time.Time{}
	}
}

func (w *whereabouts) end(x *exchange, epoch time.Time, err error) {
	if w == nil {
		return
	}
	w.answer = nil
	w.resends += int(x.resent)
	if err == errMoved {
		w.moved = epoch.Add(x.moved)
	}
}

// ask begins to ask, unless the directory has been asked since. It reports whether the function is known to have moved.
func (w *whereabouts) ask() bool {
	d := w.directory
	d.mu.Lock()
	known := d.known[w.name]
	d.mu.Unlock()
	if known != nil && known != w.known {
		return w.take(singleflight.Result{Val: known})
	}
	w.answer = d.asking.DoChan(w.name, func() (any, error) { // for all calls that ask: none of their contexts ends it
		return d.find(context.Background(), w.name, known)
	})
	return false
}

func (w *whereabouts) answers() <-chan singleflight.Result {
	if w == nil {
		return nil
	}
	return w.answer
}

// take reports whether the directory says that the function has moved.
func (w *whereabouts) take(answer singleflight.Result) bool {
	w.answer = nil
	f, _ := answer.Val.(*Function)
	if answer.Err != nil || f == nil {
		return false
	}
	was := w.known
	w.known = f
	return f.Endpoint != was.Endpoint || f.Workload != was.Workload
}
