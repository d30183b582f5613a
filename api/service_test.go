package api

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

func serviceSpec(t *testing.T, service string) (ServiceSpec, error) {
	t.Helper()
	s, err := ParseSpec("lambda.yml", []byte("name: a\nservices:\n  - {name: s, "+service+"}\n"))
	if err != nil {
		return ServiceSpec{}, err
	}
	return s.Services[0], nil
}

func TestServiceSpec(t *testing.T) {
	got, err := serviceSpec(t, "protocol: raw, addresses: ['192.0.2.7:53', '[2001:db8::1]:53', 'host:53'], weights: [1, 2, 1000], timeout: 5ms, retries: 10, id: {at: 2, bytes: 4}")
	want := ServiceSpec{
		Name: "s", Protocol: ProtocolRaw, Addresses: []string{"192.0.2.7:53", "[2001:db8::1]:53", "host:53"}, Weights: []int{1, 2, 1000},
		Timeout: Duration(5 * time.Millisecond), Retries: 10, ID: &ServiceID{At: 2, Bytes: 4},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestServiceSpecRefuses(t *testing.T) {
	for service, want := range map[string]string{
		"protocol: tcp, address: 'host:1'": "services[0].protocol: \"tcp\" is unknown",
		"protocol: raw":                    "services[0].address: is missing",
		"protocol: raw, address: 'host:1', addresses: ['host:2']":                               "services[0].addresses: there is an address, too",
		"protocol: raw, addresses: ['host:1', 'host:1']":                                        "services[0].addresses: host:1 stands twice",
		"protocol: raw, addresses: ['host:1', 'example.com:1']":                                 "\"example.com:1\" is not IP:PORT or host:PORT",
		"protocol: raw, address: 'host:0'":                                                      "\"host:0\" has no valid port",
		"protocol: raw, addresses: ['host:1', 'host:2'], weights: [1]":                          "services[0].weights: 1 weights are not one for each of 2",
		"protocol: raw, addresses: ['host:1', 'host:2'], weights: [1, 0]":                       "services[0].weights: 0 is not between 1 and 1000",
		"protocol: raw, address: 'host:1', weights: [1]":                                        "services[0].weights: 1 weights are not one for each of 0",
		"protocol: raw, address: 'host:1', retries: 11":                                         "services[0].retries: 11 is not between 0 and 10",
		"protocol: raw, address: 'host:1', retries: -1":                                         "services[0].retries: -1 is not between 0 and 10",
		"protocol: raw, address: 'host:1', id: {bytes: 3}":                                      "services[0].id.bytes: 3 is not 2, 4 or 8",
		"protocol: raw, address: 'host:1', id: {at: 1405, bytes: 4}":                            "services[0].id.at: 1405 is not between 0 and 1404",
		"protocol: raw, address: 'host:1', id: {at: -1, bytes: 4}":                              "services[0].id.at: -1 is not between 0 and 1404",
		"protocol: memcached, address: 'host:1', id: {bytes: 2}":                                "services[0].id: protocol \"memcached\" has a request ID of its own",
		"protocol: raw, addresses: [" + strings.TrimSuffix(many("'host:%d', ", 33), ", ") + "]": "services: 33 addresses exceed the maximum of 32",
	} {
		if _, err := serviceSpec(t, service); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", service, err, want)
		}
	}
}

func many(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i+1)
	}
	return b.String()
}

// The command line names other servers.
func TestServiceAt(t *testing.T) {
	s := ServiceSpec{Name: "s", Addresses: []string{"host:1", "host:2"}, Weights: []int{1, 2}}
	for addresses, want := range map[string]ServiceSpec{
		"host:3":               {Name: "s", Address: "host:3"},
		" host:3 host:4 ":      {Name: "s", Addresses: []string{"host:3", "host:4"}, Weights: []int{1, 2}},
		"host:3 host:4 host:5": {Name: "s", Addresses: []string{"host:3", "host:4", "host:5"}},
	} {
		if got := s.At(addresses); !reflect.DeepEqual(got, want) {
			t.Errorf("at %q: got %+v, want %+v", addresses, got, want)
		}
	}
}

// The guide's services are valid.
func TestGuidesServices(t *testing.T) {
	guide, err := os.ReadFile("../docs/lambdas.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(guide), "\nservices:\n")
	services, _, found := strings.Cut(rest, "\noffload:")
	if !found {
		t.Fatal("the guide has no services")
	}
	s, err := ParseSpec("lambda.yml", []byte("name: a\nservices:\n"+services))
	if err != nil || len(s.Services) != 2 || s.Services[1].ID.Bytes != 2 || len(s.Services[1].Servers()) != 2 {
		t.Errorf("got %+v, %v", s.Services, err)
	}
}
