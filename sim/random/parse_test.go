package random

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/sim/event"
)

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "times")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestParseTime(t *testing.T) {
	const us = event.Microsecond
	for text, want := range map[string]Time{
		"1us": Fixed(us), "250ns": Fixed(us / 4), "fixed:0": Fixed(0), "exponential:2us": Exponential(2 * us),
		"bimodal:1us,100us,0.01":                            Bimodal{Short: us, Long: 100 * us, P: 0.01},
		"file:" + write(t, "# measured\n1us\n\n 1500ns \n"): Samples{us, 3 * us / 2},
	} {
		if got, err := ParseTime(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                   `distribution "": "" is not a time with a unit: write 800ns or 1.5us`,
		"soon":                               `"soon" is not a time`,
		"-1us":                               "is not between 0 and 10s",
		"fixed:NaN":                          `"NaN" is not a time`,
		"250":                                `"250" is not a time with a unit`,
		"file:" + write(t, "1us\n250\n"):     `line 2: "250" is not a time with a unit`,
		"file:" + write(t, "NaN\n"):          `line 1: "NaN" is not a time`,
		"fixed:1h":                           "is not between 0 and 10s",
		"normal:1us":                         "it has to be TIME, fixed:TIME,",
		"bimodal:1us":                        "it has to be bimodal:SHORT,LONG,SHARE-OF-LONG",
		"bimodal:1us,2us,1.5":                `the share of long ones, "1.5", is not between 0 and 1`,
		"bimodal:1us,2us,NaN":                "is not between 0 and 1",
		"bimodal:x,2us,0":                    `"x" is not a time`,
		"file:/no/such":                      "no such file",
		"file:" + write(t, "#\n"):            "the file has no times",
		"file:" + write(t, "1us\nfoo\n"):     `line 2: "foo" is not a time`,
		"file:" + write(t, "1us,2us\n3us"):   `line 1: "1us,2us" is not a time`,
		"file:" + filepath.Dir(write(t, "")): "is a directory",
	} {
		if got, err := ParseTime(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want %s", text, got, err, want)
		}
	}
}

// Whatever is written, it is refused, or never gives a time outside of what one may be.
func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"1us", "exponential:1us", "bimodal:1us,2us,0.5", "fixed:1e300ns", "bimodal:,,", ":", "1e-400s", "0x1p-3us"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.HasPrefix(s, "file:") {
			return
		}
		d, err := ParseTime(s)
		if err != nil {
			return
		}
		r := New(1, 0)
		for range 10 {
			if x := d.Sample(r); x < 0 || x > 50*maxTime {
				t.Errorf("%q gave %d", s, x)
			}
		}
	})
}
