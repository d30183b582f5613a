package e2e

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
)

// A request waits for the host, which writes image and flag by the command line, and reads the result.
func TestObjects(t *testing.T) {
	i := up(t)
	i.run("deploy", "compiler/p4/testdata/image_transformer")
	const port, side = 4369, 256
	nic := i.describe("image_transformer").Endpoint.Addr()
	conn, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: nic.AsSlice(), Port: port})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(make([]byte, 20)); err != nil {
		t.Fatal(err)
	}
	requests := func() uint64 {
		var stats []api.FunctionStats
		if err := json.Unmarshal(i.run("stats", "--json"), &stats); err != nil || len(stats) != 1 {
			t.Fatalf("%+v, %v", stats, err)
		}
		return stats[0].Requests
	}
	for end := time.Now().Add(patience); requests() == 0; {
		if time.Now().After(end) {
			t.Fatal("the request does not wait")
		}
	}

	i.refused("no such object: imaeg: the lambda has image, image_ready, result, result_ready", "object", "write", "image_transformer", "imaeg", "1")
	i.refused("wrong size: object image: 1 bytes for an object of 262144", "object", "write", "image_transformer", "image", "hex:00")
	i.refused("object image has 262144 bytes: give them with --file", "object", "write", "image_transformer", "image", "1")
	i.refused("256 does not fit into the 1 bytes of image_ready", "object", "write", "image_transformer", "image_ready", "256")
	i.refused("no such function: default/nothing", "object", "list", "nothing")

	image := make([]byte, 4*side*side)
	for k := range image {
		image[k] = byte(k * 7)
	}
	raw, grey := filepath.Join(t.TempDir(), "image.raw"), filepath.Join(t.TempDir(), "grey.raw")
	write(t, raw, string(image))
	i.run("object", "write", "image_transformer", "image", "--file", raw)
	i.run("object", "write", "image_transformer", "image_ready", "0x1")
	answer := make([]byte, 64)
	n, err := conn.Read(answer)
	if err != nil || n != 20 || !bytes.Equal(answer[4:8], []byte{0, 0, 1, 0}) {
		t.Fatalf("answer %x, %v", answer[:n], err)
	}
	if out := i.run("object", "read", "image_transformer", "result_ready"); strings.TrimSpace(string(out)) != "1" {
		t.Errorf("result_ready is %q", out)
	}
	i.run("object", "read", "image_transformer", "result", "--out", grey)
	got, err := os.ReadFile(grey)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, side*side)
	for k := range want {
		want[k] = byte((int(image[4*k]) + int(image[4*k+1]) + int(image[4*k+2])) / 3)
	}
	if !bytes.Equal(got, want) {
		t.Error("the result is not the grey image")
	}
	var list []api.Object
	if err := json.Unmarshal(i.run("object", "list", "image_transformer", "--json"), &list); err != nil || len(list) != 4 || list[0] != (api.Object{Name: "image", Size: 4 * side * side}) {
		t.Errorf("objects %+v, %v", list, err)
	}
}

// Any lambda's objects on the NIC can be reached; a process keeps its own.
func TestObjectsOfOtherLambdas(t *testing.T) {
	i := up(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "lambda.yml"), "name: answer\n")
	write(t, filepath.Join(dir, "answer.c"), strings.Replace(strings.Replace(goodSource, "int bad", "volatile uint32_t answer_len = 3;\n\nint answer", 1),
		"match_data->payload_len", "answer_len", 1))
	i.run("deploy", dir, "--target", "nic")
	if got := i.run("object", "read", "answer", "answer_len"); strings.TrimSpace(string(got)) != "3" {
		t.Errorf("read %q", got)
	}
	i.run("object", "write", "answer", "answer_len", "5")
	if got := i.run("invoke", "answer", "--data", "12345678"); string(got) != "12345" {
		t.Errorf("answer %q, want 5 bytes of it", got)
	}
	i.run("deploy", dir, "--target", "process")
	i.refused("target process keeps objects to itself", "object", "list", "answer")
}
