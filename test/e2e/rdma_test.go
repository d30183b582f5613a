package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// The largest image goes through the lambda twice: by RDMA into its memory, and by λ-RPC. Both are grey as the formula says.
func TestRDMAImage(t *testing.T) {
	i := up(t)
	i.run("deploy", "lambdas/image_transformer", "--target", "nic")
	const side = 4096
	pixels, want := make([]byte, 4*side*side), make([]byte, side*side)
	for k := range want {
		r, g, b := k*7>>3, k*13>>5, k>>9
		pixels[4*k], pixels[4*k+1], pixels[4*k+2] = byte(r), byte(g), byte(b)
		want[k] = byte((77*int(byte(r)) + 150*int(byte(g)) + 29*int(byte(b)) + 128) >> 8)
	}
	raw, handle := filepath.Join(t.TempDir(), "image.rgba"), filepath.Join(t.TempDir(), "handle")
	write(t, raw, string(pixels))
	const fetch = 2
	i.run("rdma", "write", "image_transformer", raw, "--packets-method", "1", "--out", handle)
	h, err := os.ReadFile(handle)
	if err != nil || len(h) != 8 {
		t.Fatalf("handle %x, %v", h, err)
	}
	f := i.describe("image_transformer")
	c, err := lambdanic.Dial(f.Endpoint.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for what, r := range map[string]lambdanic.Request{
		"RDMA": {Workload: f.Workload, Method: fetch, Body: h}, "λ-RPC": {Workload: f.Workload, Body: pixels},
	} {
		answer, err := c.Call(t.Context(), r)
		if err != nil || answer.Status != api.StatusOK || !bytes.Equal(answer.Body, want) {
			t.Errorf("by %s: status %d, %d bytes, %v", what, answer.Status, len(answer.Body), err)
		}
	}
}

// What `rdma` manages is the function's, and its namespace's.
func TestRDMACommands(t *testing.T) {
	i := up(t)
	i.run("deploy", "lambdas/image_transformer", "--target", "nic")
	i.run("deploy", "lambdas/web_server", "--target", "nic", "--namespace", "other")
	region := query[api.Region](i, "rdma", "region", "add", "image_transformer", "--length", "4KiB", "--method", "1")
	if list := query[[]api.Region](i, "rdma", "region", "list", "image_transformer"); len(list) != 1 || list[0] != region || region.Length != 4096 {
		t.Errorf("regions %+v, made %+v", list, region)
	}
	key := fmt.Sprintf("%#x", region.RKey)
	qp := query[api.QueuePair](i, "rdma", "qp", "add", "image_transformer", "--peer", "192.0.2.7", "--peer-qpn", "0x11", "--psn", "0xabcdef", "--icrc", "trust", "--receive", key)
	number := fmt.Sprintf("%#x", qp.QPN)
	if list := query[[]api.QueuePair](i, "rdma", "qp", "list", "image_transformer"); len(list) != 1 || list[0] != qp || qp.NextPSN != 0xabcdef {
		t.Errorf("queue pairs %+v, made %+v", list, qp)
	}
	i.refused("the lambda has no memory for regions: set message.regions", "rdma", "region", "add", "web_server.other")
	i.refused("mtu: 4096 is not a power of two from 256 to 1024", "rdma", "qp", "add", "image_transformer", "--peer", "192.0.2.7", "--peer-qpn", "1", "--mtu", "4096")
	i.refused("no such queue pair", "rdma", "qp", "remove", "web_server.other", number)
	i.refused("no such function", "rdma", "region", "list", "image_transformer.other")
	i.run("rdma", "qp", "remove", "image_transformer", number)
	i.run("rdma", "region", "remove", "image_transformer", key)
	i.refused("no such region", "rdma", "region", "remove", "image_transformer", key)
	i.run("rdma", "qp", "add", "image_transformer", "--peer", "192.0.2.7", "--peer-qpn", "1")
	i.run("remove", "image_transformer")
	i.run("deploy", "lambdas/image_transformer", "--target", "nic")
	if list := query[[]api.QueuePair](i, "rdma", "qp", "list", "image_transformer"); len(list) != 0 {
		t.Errorf("queue pairs of the lambda before: %+v", list)
	}
	i.run("deploy", "lambdas/image_transformer", "--target", "process")
	i.refused("target process has no rdma/regions", "rdma", "region", "list", "image_transformer")
}
