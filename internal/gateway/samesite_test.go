package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A browser has the credentials, and any page may have it send requests. What manages functions is refused to pages of others.
func TestPagesOfOtherSitesManageNothing(t *testing.T) {
	m := &fakeManager{}
	g := New(Config{Manager: m, Credentials: Credentials{"u", "p"}})
	const deploy = `{"service":"web","image":"i"}`
	for _, change := range []struct{ method, path, body string }{
		{"POST", "/system/functions", deploy},
		{"PUT", "/system/functions", `{"service":"echo","image":"i"}`},
		{"DELETE", "/system/functions", `{"functionName":"echo"}`},
		{"POST", "/system/fused", `{"functions":[` + deploy + `]}`},
		{"POST", "/system/artifacts", "tar"},
		{"PUT", "/system/function/echo/objects/flag", "ab"},
		{"POST", "/system/function/echo/rdma/regions", `{"length":"4KiB"}`},
		{"DELETE", "/system/function/echo/rdma/queue-pairs/0x401", ""},
	} {
		json := strings.HasPrefix(change.body, "{")
		for _, tc := range []struct {
			from    string
			headers []string
			refused int // 0 where it is not
		}{
			{"faas-cli", []string{"Content-Type", "application/json"}, 0},
			{"an older faas-cli", nil, 0},
			{"a page of this host", []string{"Content-Type", "application/json; charset=utf-8", "Sec-Fetch-Site", "same-origin", "Origin", "http://example.com"}, 0},
			{"the address bar", []string{"Sec-Fetch-Site", "none"}, 0},
			{"another site", []string{"Content-Type", "text/plain", "Sec-Fetch-Site", "cross-site", "Origin", "http://evil.example"}, 403},
			{"another port", []string{"Content-Type", "application/json", "Sec-Fetch-Site", "same-site"}, 403},
			{"another site, without a type", []string{"Sec-Fetch-Site", "cross-site"}, 403},
			{"another site, in an old browser", []string{"Content-Type", "text/plain", "Origin", "http://evil.example"}, 403},
			{"a sandboxed page in an old browser", []string{"Origin", "null"}, 403},
			{"a form", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
			{"text", []string{"Content-Type", "text/plain"}, 415},
			{"a type that is none", []string{"Content-Type", ";"}, 415},
		} {
			if tc.refused == http.StatusUnsupportedMediaType && !json {
				continue
			}
			*m = fakeManager{}
			r, _ := http.NewRequestWithContext(t.Context(), "GET", "/", nil)
			r.SetBasicAuth("u", "p")
			got := do(t, g.Public(), change.method, change.path, change.body, append(tc.headers, "Authorization", r.Header.Get("Authorization"))...)
			said, _ := io.ReadAll(got.Body)
			switch {
			case tc.refused == 0 && got.StatusCode >= 300, tc.refused != 0 && got.StatusCode != tc.refused:
				t.Errorf("%s %s from %s: %d %s", change.method, change.path, tc.from, got.StatusCode, said)
			case tc.refused != 0 && (m.deployed.Name != "" || m.removed != ""):
				t.Errorf("%s %s from %s was refused and done", change.method, change.path, tc.from)
			}
		}
	}
}
