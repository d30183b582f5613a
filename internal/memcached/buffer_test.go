package memcached

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestReceiveBuffer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to look into another user's process")
	}
	s, err := Start(t.Context(), loopback)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if err := s.ReceiveBuffer(3 << 20); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ss", "-uanmH", fmt.Sprintf("sport = :%d", s.Port)).Output()
	if err != nil {
		t.Fatal(err)
	}
	const twice = "rb6291456" // the kernel doubles what is asked for (socket(7), SO_RCVBUF)
	if all, large := strings.Count(string(out), "skmem:"), strings.Count(string(out), twice); all == 0 || large != all {
		t.Errorf("%d of %d sockets have %s:\n%s", large, all, twice, out)
	}
}
