package gateway

import (
	"strings"
	"testing"
)

func TestNamespaces(t *testing.T) {
	h := newGateway(t).Private()
	const unset = `{"name":"tenant","number":2,"quota":{},"use":{"lambdas":0,"memory":0}}` + "\n"
	const badLimit = "is not a limit: write a whole number from 0 on, or null for no limit"
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string // a part of the answer
	}{
		{"GET", "/system/namespaces", "", 200, `["default","tenant"]` + "\n"}, // as OpenFaaS
		{"GET", "/system/namespaces/details", "", 200, `"name":"tenant","number":2,"quota":{},"use":{"lambdas":0,"memory":0},"over":["too much"],"stats":{"requests":3,`},
		{"GET", "/system/namespaces/nosuch", "", 404, ""},
		{"GET", "/system/namespace/tenant", "", 200, unset},
		{"GET", "/system/namespace/nosuch", "", 404, `{"error":"no such namespace: nosuch"}` + "\n"},
		{"PATCH", "/system/namespace/tenant/quota", `{"lambdas":10,"memory":67108864}`, 200, `"quota":{"lambdas":10,"memory":67108864}`},
		{"PATCH", "/system/namespace/tenant/quota", `{"lambdas":0}`, 200, `"quota":{"lambdas":0,"memory":67108864}`}, // what it lacks stays
		{"PATCH", "/system/namespace/tenant/quota", `{"lambdas":null}`, 200, `"quota":{"memory":67108864}`},
		{"PATCH", "/system/namespace/tenant/quota", `{}`, 200, `"quota":{"memory":67108864}`},
		{"PATCH", "/system/namespace/tenant/quota", `{"memory":null}`, 200, unset},
		{"PATCH", "/system/namespace/tenant/quota", `{"lambdas":-1}`, 400, "-1 " + badLimit},
		{"PATCH", "/system/namespace/tenant/quota", `{"lambdas":1.5}`, 400, "1.5 " + badLimit},
		{"PATCH", "/system/namespace/tenant/quota", `{"memory":"64MiB"}`, 400, badLimit},
		{"PATCH", "/system/namespace/tenant/quota", `{"lambdas":18446744073709551616}`, 400, badLimit},
		{"PATCH", "/system/namespace/tenant/quota", `{"request":1}`, 400, `unknown field`},
		{"PATCH", "/system/namespace/tenant/quota", ``, 400, "read the body"},
		{"GET", "/system/namespace/tenant", "", 200, unset}, // which changed nothing
		{"POST", "/system/namespace/tenant/keys", "", 201, `{"number":1,"key":"lnk1:tenant:1:AAAAAAAAAAAAAAAAAAAAAA"}`},
		{"DELETE", "/system/namespace/tenant/keys/1", "", 204, ""},
		{"DELETE", "/system/namespace/tenant/keys/2", "", 404, "no such key: namespace tenant has no key 2"},
		{"DELETE", "/system/namespace/tenant/keys/x", "", 400, `\"x\" is not the number of a key`},
		{"PUT", "/system/namespace/tenant/tags", `{"required":true}`, 200, `"keys":{"required":true,`},
		{"PUT", "/system/namespace/tenant/tags", `{"require":true}`, 400, "unknown field"},
		{"PUT", "/system/namespace/tenant/tags", `{}`, 400, `write {\"required\": true} or {\"required\": false}`},
		{"PUT", "/system/namespace/tenant/tags", `{"required":null}`, 400, "does not say whether tags are required"},
		{"PUT", "/system/namespace/tenant/tags", `{"required":false}`, 200, `"keys":{"required":false,`},
		{"POST", "/system/namespace/tenant/networks", `{"network":"vlan:100"}`, 201, `"networks":["vlan:100"]`},
		{"POST", "/system/namespace/tenant/networks", `{"network":"vxlan:5001"}`, 201, `"networks":["vlan:100","vxlan:5001"]`},
		{"POST", "/system/namespace/tenant/networks", `{"network":"vlan:100"}`, 409, "network vlan:100 is in use"},
		{"POST", "/system/namespace/tenant/networks", `{"network":"vlan:4095"}`, 400, "the ID of a vlan is a number from 1 to 4094"},
		{"POST", "/system/namespace/tenant/networks", `{"network":100}`, 400, "read the body"},
		{"POST", "/system/namespace/tenant/networks", `{}`, 400, `no network: name one, as {\"network\": \"vlan:100\"}`},
		{"DELETE", "/system/namespace/tenant/networks/vlan:100", "", 200, `"networks":["vxlan:5001"]`},
		{"DELETE", "/system/namespace/tenant/networks/vlan%3A100", "", 404, "no such network: namespace tenant has no network vlan:100"},
		{"DELETE", "/system/namespace/tenant/networks/100", "", 400, "give it as vlan:ID or vxlan:ID"},
		{"DELETE", "/system/namespace/tenant", "", 204, ""},
		{"DELETE", "/system/namespace/busy", "", 409, `{"error":"namespace busy is in use"}` + "\n"},
		{"DELETE", "/system/namespace/nosuch", "", 404, `{"error":"no such namespace"}` + "\n"},
	} {
		answer := do(t, h, c.method, c.path, c.body)
		if body := bodyOf(t, answer); answer.StatusCode != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s %s: %d %q, want %d %q", c.method, c.path, c.body, answer.StatusCode, body, c.status, c.want)
		}
	}
}
