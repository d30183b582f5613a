// Package fused has the four lambdas of the λ-NIC paper's figure 9: two key-value clients, a web server, an image transformer.
package fused

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
)

// Names are the names of the lambdas, in the order of Sources.
var Names = []string{"kv_client", "sessions", "web_server", "image_transformer"}

// The second key-value client is the first with another service, and a spec of its own.
const sessionsSpec = `name: sessions
targets: [nic, process]
entry: kv_client
limits:
  memory: 4KiB
  time: 50us
services:
  - name: memcached
    protocol: memcached
    address: host:11211
    timeout: 100ms
  - name: sessions
    protocol: memcached
    address: host:11212
    timeout: 100ms
`

// Sources packs them, from the directory that has the bundled lambdas.
func Sources(lambdas string) (sources [][]byte, err error) {
	for _, name := range Names {
		dir := filepath.Join(lambdas, name)
		pack := compiler.PackSource
		if name == "sessions" {
			dir, pack = filepath.Join(lambdas, "kv_client"), sessions
		}
		source, err := pack(dir)
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		sources = append(sources, source)
	}
	return sources, nil
}

func sessions(client string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(client, "kv_client.c"))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "lambdanic-sessions-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, data := range map[string][]byte{
		"sessions.c": bytes.ReplaceAll(text, []byte("SERVICE(memcached)"), []byte("SERVICE(sessions)")), api.SpecFile: []byte(sessionsSpec),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	return compiler.PackSource(dir)
}
