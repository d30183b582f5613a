package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

const kvSpec = `# a lambda that asks memcached
name: kv-client
source: src/kv.c
targets: [nic]
limits:
  memory: 4MiB
  time: 50us
services:
  - name: memcached
    protocol: memcached
    address: host:11211
`

func TestParseSpec(t *testing.T) {
	got, err := ParseSpec("lambda.yml", []byte(kvSpec))
	if err != nil {
		t.Fatal(err)
	}
	want := Spec{
		Name: "kv-client", Source: "src/kv.c", Entry: "kv_client", Targets: []Target{TargetNIC},
		Message: MessageSpec{Mode: ModePacket, Max: RPCMaxPayload},
		Limits:  LimitsSpec{Memory: 4 << 20, Time: Duration(50 * time.Microsecond)},
		Services: []ServiceSpec{{
			Name: "memcached", Protocol: "memcached", Address: "host:11211", Timeout: Duration(100 * time.Millisecond),
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Without a limit in the spec, messages of mode assemble come on top of a lambda's default memory.
func TestMemoryPaysForMessages(t *testing.T) {
	for message, want := range map[string]Bytes{
		"mode: packet":   1 << 20,
		"mode: stream":   1 << 20,
		"mode: assemble": 7 << 20, // 64 messages of 64 KiB and a packet: 4.1 MiB, and a third of that
		"mode: assemble, max: 1KiB, in_flight: 1":             2 << 20,
		"mode: assemble, max: 64MiB, in_flight: 4096":         MaxMemory,
		"mode: assemble, max: 1MiB, in_flight: 4, regions: 4": 12 << 20,
	} {
		s, err := ParseSpec("lambda.yml", []byte("name: a\nmessage: {"+message+"}\n"))
		if err != nil || s.Limits.Memory != want {
			t.Errorf("%s: %d bytes, want %d (%v)", message, s.Limits.Memory, want, err)
		}
	}
}

func TestParseSpecP4(t *testing.T) {
	s, err := ParseSpec("lambda.yml", []byte("name: web\np4: match/web.p4\nrules: match/web.p4cfg\n"))
	if err != nil {
		t.Fatal(err)
	}
	if s.P4 != "match/web.p4" || s.Rules != "match/web.p4cfg" || s.Source != "web.c" {
		t.Errorf("p4 %q, rules %q, source %q", s.P4, s.Rules, s.Source)
	}
	if s.Limits.Time != Duration(10*time.Millisecond) {
		t.Errorf("time %v, want 10ms", time.Duration(s.Limits.Time))
	}
	if len(s.Targets) != 1 || s.Targets[0] != TargetNIC {
		t.Errorf("targets %v, want the NIC alone", s.Targets)
	}
}

func TestParseSpecRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ yaml, want string }{
		"unknown field":         {"name: a\ncolour: red\n", "lambda.yml:2:1: unknown field \"colour\": use one of name, source, entry"},
		"unknown nested field":  {"name: a\nlimits:\n  memory: 1MiB\n  cpu: 1\n", "lambda.yml:4:3: unknown field \"cpu\": use one of memory, time"},
		"unknown in list":       {"name: a\nservices:\n  - name: x\n    port: 1\n", "lambda.yml:4:5: unknown field \"port\": use one of name, protocol"},
		"flow style":            {"{name: a, limits: {ram: 1}}", "lambda.yml:1:20: unknown field \"ram\""},
		"twice":                 {"name: a\nname: b\n", "lambda.yml:2:1: "},
		"wrong type":            {"name: [a]\n", "lambda.yml:1:7: "},
		"wrong size":            {"name: a\nlimits:\n  memory: lots\n", "lambda.yml:3:11: limits.memory: \"lots\" is not a size: write it as 4096, 64KiB"},
		"wrong duration":        {"name: a\nlimits:\n  time: 7\n", "lambda.yml:3:9: limits.time: \"7\" is not a duration: write it as 100us, 20ms or 5s"},
		"wrong truth":           {"name: a\nonce: maybe\n", "lambda.yml:2:7: once: \"maybe\" is not true or false"},
		"half a number":         {"name: a\nmessage: {mode: stream, in_flight: 1.5}\n", "lambda.yml:2:36: message.in_flight: \"1.5\" is not a whole number"},
		"no mapping in a field": {"name: a\nlimits: 5\n", "lambda.yml:2:9: limits: \"5\" is not a mapping: write FIELD: VALUE, with one of the fields memory, time"},
		"out of range in list":  {"name: a\nservices:\n  - {name: s, protocol: raw, retries: 99, address: host:1}\n", "lambda.yml:3:39: services[0].retries: 99 is not between 0 and 10"},
		"second target":         {"name: a\ntargets:\n  - nic\n  - gpu\n", "lambda.yml:4:5: targets[1]: \"gpu\" is not a target: use \"nic\" or \"process\""},
		"left out":              {"services:\n  - protocol: raw\n    address: host:1\nname: a\n", "lambda.yml:2:5: services[0].name: \"\" is not a C identifier"},
		"max of one packet":     {"name: a\nmessage:\n  max: 64KiB\n", "lambda.yml:3:8: message.max: 64KiB has no effect in mode \"packet\", whose messages have up to 1408 bytes: leave it out, or set message.mode to"},
		"in flight by packet":   {"name: a\nmessage:\n  mode: packet\n  in_flight: 8\n", "lambda.yml:4:14: message.in_flight: 8 has no effect"},
		"time-out by packet":    {"name: a\nmessage: {timeout: 1s}\n", "lambda.yml:2:20: message.timeout: 1s has no effect"},
		"bad name":              {"name: Web\n", "lambda.yml:1:7: name: \"Web\" is not a lambda name"},
		"source elsewhere":      {"name: a\nsource: ../b.c\n", "lambda.yml:2:9: source: \"../b.c\" leaves the lambda's directory"},
		"p4 elsewhere":          {"name: a\np4: /etc/a.p4\n", "lambda.yml:2:5: p4: \"/etc/a.p4\" leaves the lambda's directory"},
		"rules elsewhere":       {"name: a\np4: a.p4\nrules: ../a.p4cfg\n", "lambda.yml:3:8: rules: \"../a.p4cfg\" leaves the lambda's directory"},
		"rules without p4":      {"name: a\nrules: a.p4cfg\n", "lambda.yml:2:8: rules: there is no p4 program"},
		"p4 as a process":       {"name: a\np4: a.p4\ntargets: [process]\n", "lambda.yml:3:10: targets: a p4 program works on whole packets"},
		"once of a stream":      {"name: a\nonce: true\nmessage:\n  mode: stream\n", "lambda.yml:2:7: once: in message mode"},
		"once of a match stage": {"name: a\np4: a.p4\nonce: true\n", "lambda.yml:3:7: once: a p4 program"},
		"once on a card":        {"name: a\nonce: true\noffload: true\n", "lambda.yml:2:7: once: a card"},
		"p4 by messages":        {"name: a\np4: a.p4\nmessage:\n  mode: stream\n", "lambda.yml:4:9: message.mode: a p4 program"},
		"faults of nobody":      {"name: a\nbreaker: {requests: 5}\n", "lambda.yml:2:10: breaker.fault_percent: 0 is not between 1 and 100"},
		"too many faults":       {"name: a\nbreaker:\n  fault_percent: 101\n", "lambda.yml:3:18: breaker.fault_percent: 101 is not between 1 and 100"},
		"nowhere to go":         {"name: a\ntargets: [nic]\nbreaker: {fault_percent: 5}\n", "lambda.yml:3:10: breaker: there is no target after \"nic\""},
		"no list":               {"name: a\ntargets: nic\n", "lambda.yml:2:10: targets: \"nic\" is not a list: write [nic]"},
		"tab":                   {"name: a\nlimits:\n\tmemory: 1MiB\n", "lambda.yml:3:1: a tab: "},
		"no mapping":            {"- name: a\n", "lambda.yml:1:1: "},
		"empty":                 {"", "lambda.yml: "},
		"two documents":         {"name: a\n---\nname: b\n", "2 YAML documents"},
		"not YAML":              {"name: a\n\t\x01: [", "lambda.yml:"},
		"tag":                   {"name: a\ntargets: !!set {nic: }\n", "lambda.yml:2:10: tags, anchors"},
		"merge":                 {"name: a\n<<: {source: b}\n", "lambda.yml:2:1: tags, anchors"},
		"too big":               {"name: a #" + strings.Repeat("x", maxSpecFile), "exceed the maximum"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSpec("lambda.yml", []byte(tc.yaml))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

// Whatever field has a value of another kind, the error says where, which field, what was found and what is allowed, in the words of a
// spec and not of Go.
func TestParseSpecTellsEveryWrongValueAlike(t *testing.T) {
	fields := 0
	specFields("", "", reflect.TypeFor[Spec](), func(field, before string, kind reflect.Type) {
		fields++
		values := map[string]string{"[[a]]": "a list", "{a: b}": "a mapping"}
		switch kind {
		case reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[Bytes](), reflect.TypeFor[Duration]():
			values["wrong"] = `"wrong"`
		}
		for value, found := range values {
			text := before + value + strings.Repeat("}", strings.Count(before, "{")-strings.Count(before, "}")) + "\n"
			text = strings.ReplaceAll(text, "[{", "\n - {") // a sequence has no bracket to close
			_, err := ParseSpec("lambda.yml", []byte(text))
			var at *FileError
			if !errors.As(err, &at) {
				t.Errorf("%s: got %v", text, err)
				continue
			}
			line, column := 1+strings.Count(text, "\n")-1, strings.LastIndex(text, value)-strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")
			if kind.Kind() == reflect.Slice && value == "[[a]]" { // the list's element is wrong
				column, field = column+1, field+"[0]"
			}
			if at.Line != line || at.Column != column {
				t.Errorf("%s: got %d:%d, want %d:%d", text, at.Line, at.Column, line, column)
			}
			if want := fmt.Sprintf("%s: %s is not ", field, found); !strings.HasPrefix(at.Err.Error(), want) {
				t.Errorf("%s: got %v, want %s", text, at, want)
			}
			field = strings.TrimSuffix(field, "[0]")
			for _, word := range []string{"api.", "unmarshal", "struct", "bool", "uint", "string"} {
				if strings.Contains(err.Error(), word) {
					t.Errorf("%s: Go's word %q in %v", text, word, err)
				}
			}
		}
	})
	if fields < 25 {
		t.Errorf("tried %d fields only", fields)
	}
}

// specFields calls f with each field of a spec that is not a mapping, its path, and the YAML that leads to its value.
func specFields(path, before string, t reflect.Type, f func(field, before string, kind reflect.Type)) {
	for i, name := range fieldsOf(t) {
		kind := t.Field(i).Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		field, lead := path+name, before+name+": "
		switch {
		case kind.Kind() == reflect.Struct:
			specFields(field+".", lead+"{", kind, f)
		case kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct:
			specFields(field+"[0].", lead+"[{", kind.Elem(), f)
		default:
			f(field, lead, kind)
		}
	}
}

func TestParseStack(t *testing.T) {
	const text = `version: 1.0
provider:
  name: openfaas
  gateway: http://127.0.0.1:8080
functions:
  web:
    lang: lambda
    handler: ./web_server
    image: example/web:latest
    annotations: {topic: a}
    environment:
      greeting: hello
  abs:
    handler: /srv/abs
  built:
    lang: python3
    image: web@sha256:0
    namespace: tenant
    labels: {team: a}
`
	got, err := ParseStack("apps/stack.yml", []byte(text))
	want := []StackFunction{
		{Name: "abs", Dir: "/srv/abs"},
		{Name: "built", Image: "web@sha256:0", Namespace: "tenant", Labels: map[string]string{"team": "a"}},
		{
			Name: "web", Dir: "apps/web_server", Annotations: map[string]string{"topic": "a"},
			Environment: map[string]string{"greeting": "hello"},
		},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestParseStackRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ yaml, want string }{
		"unknown field":  {"functions:\n  a:\n    lang: lambda\n    handlr: ./a\n", "stack.yml:4:5: unknown field \"handlr\": use one of lang, handler"},
		"unknown at top": {"function:\n  a: {}\n", "stack.yml:1:1: unknown field \"function\""},
		"other language": {"functions:\n  a:\n    lang: python3\n    handler: ./a\n", "functions.a: lang: \"python3\" is not supported"},
		"no handler":     {"functions:\n  a:\n    lang: lambda\n", "functions.a: handler: missing"},
		"bad name":       {"functions:\n  A/B:\n    lang: lambda\n    handler: ./a\n", "\"A/B\" is not a lambda name"},
		"none":           {"version: 1.0\n", "there are none"},
		"nothing":        {"", "stack.yml: is empty"},
		"no YAML":        {"functions: [", "stack.yml:1:"},
		"alias":          {"functions: &a [*a]\n", "anchors"},
		"too big":        {"functions: {} #" + strings.Repeat("x", maxSpecFile), "exceed the maximum"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseStack("stack.yml", []byte(tc.yaml))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

// An accepted spec is valid, and stays the same when it is written and read again, as YAML and as JSON.
func FuzzParseSpec(f *testing.F) {
	f.Add([]byte(kvSpec))
	f.Add([]byte("name: a\nmessage: {mode: assemble, max: 1MiB, in_flight: 3, timeout: 1s}\n"))
	f.Add([]byte("name: &a x\nentry: *a\n<<: {source: b}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSpec("lambda.yml", data)
		if err != nil {
			return
		}
		written, err := yaml.Marshal(s)
		if err != nil {
			t.Fatalf("write: %v", err)
		}
		again, err := ParseSpec("lambda.yml", written)
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Errorf("read again as YAML:\n%s\n%+v\n%+v\n%v", written, s, again, err)
		}
		inJSON, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back Spec
		decoder := json.NewDecoder(bytes.NewReader(inJSON))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&back); err != nil || !reflect.DeepEqual(s, back.Default()) {
			t.Errorf("read again as JSON: %+v\n%+v\n%v", s, back, err)
		}
	})
}

func FuzzParseStack(f *testing.F) {
	f.Add([]byte("functions: {a: {lang: lambda, handler: ./a}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := ParseStack("stack.yml", data)
		if err == nil && len(list) == 0 {
			t.Error("accepted a stack without functions")
		}
	})
}

func TestParseExamples(t *testing.T) {
	list, err := ParseExamples("examples.yml", []byte("- name: a\n  method: 3\n  request: hi\n  reply_hex: 00ff\n- name: b\n  status: 2\n"))
	if err != nil || len(list) != 2 || list[0].Method != 3 {
		t.Fatalf("got %+v, %v", list, err)
	}
	if err := list[0].Check(StatusOK, []byte{0, 255}); err != nil {
		t.Errorf("right reply: %v", err)
	}
	if list[0].Check(StatusOK, []byte{0}) == nil || list[0].Check(StatusFailed, []byte{0, 255}) == nil || list[1].Check(StatusOK, nil) == nil {
		t.Error("a wrong reply passed")
	}
	for text, want := range map[string]string{
		"- name: a\n  request: x\n  request_hex: 00\n": "request and request_hex exclude each other",
		"- name: a\n  reply_hex: 0g\n":                 "reply_hex: encoding/hex",
		"- name: a\n  answer: x\n":                     "examples.yml:2:3: unknown field \"answer\": use one of name, method",
		"name: a\n":                                    "examples.yml:1:",
	} {
		if _, err := ParseExamples("examples.yml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
