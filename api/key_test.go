package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// A key's text can be read back, and nothing else takes a key's place.
func TestParseKey(t *testing.T) {
	want := Key{Namespace: "tenant", Number: 7, Secret: [SecretLen]byte([]byte("0123456789abcdef"))}
	text, err := want.MarshalText()
	if err != nil || string(text) != "lnk1:tenant:7:MDEyMzQ1Njc4OWFiY2RlZg" {
		t.Fatalf("%s, %v", text, err)
	}
	if got, err := ParseKey(" " + string(text) + "\n"); err != nil || got != want {
		t.Errorf("read %v (%v)", got, err)
	}
	for _, bad := range []string{
		"", "lnk1", "lnk2:tenant:7:MDEyMzQ1Njc4OWFiY2RlZg", "lnk1::7:MDEyMzQ1Njc4OWFiY2RlZg", "lnk1:tenant:0:MDEyMzQ1Njc4OWFiY2RlZg",
		"lnk1:tenant:-1:MDEyMzQ1Njc4OWFiY2RlZg", "lnk1:tenant:4294967296:MDEyMzQ1Njc4OWFiY2RlZg", "lnk1:tenant:7:MDEyMzQ1Njc4OWFiY2Rl",
		"lnk1:tenant:7:MDEyMzQ1Njc4OWFiY2RlZh", "lnk1:tenant:7:MDEyMzQ1Njc4OWFiY2RlZg==", "lnk1:tenant:7:MDEyMzQ1Njc4OWFiY2RlZmc", "lnk1:tenant:7:!", string(text) + ":",
	} {
		if k, err := ParseKey(bad); !errors.Is(err, ErrKey) || k != (Key{}) {
			t.Errorf("%q is %v (%v)", bad, k, err)
		} else if strings.Contains(err.Error(), "MDEy") {
			t.Errorf("the error shows the text: %v", err)
		}
	}
}

// A key is shown by its name, unless its text is asked for.
func TestKeyIsNotShown(t *testing.T) {
	k := Key{Namespace: "tenant", Number: 7, Secret: [SecretLen]byte([]byte("0123456789abcdef"))}
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("", "key", k, "pointer", &k)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("", "key", k, "pointer", &k)
	fmt.Fprintf(&out, "%v %+v %#v %s %q %v", k, k, k, k, k, &k)
	if base := base64.RawURLEncoding.EncodeToString(k.Secret[:]); strings.Contains(out.String(), base) || strings.Contains(out.String(), "012345") || strings.Contains(out.String(), "48 49") {
		t.Errorf("a secret is shown: %s", &out)
	}
	if n := strings.Count(out.String(), "key 7 of namespace tenant"); n != 10 {
		t.Errorf("named %d times: %s", n, &out)
	}
	if raw, err := json.Marshal(NewKey{Number: 7, Key: k}); err != nil || !strings.Contains(string(raw), `"key":"lnk1:tenant:7:MDEy`) {
		t.Errorf("%s (%v)", raw, err)
	}
}
