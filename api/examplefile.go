package api

import (
	"bytes"
	"encoding/hex"
	"fmt"
)

// ExamplesFile is the name of the file of examples in a lambda's directory.
const ExamplesFile = "examples.yml"

// Example is one request and the reply that a lambda has to give. Bytes are text, or hexadecimal.
type Example struct {
	Name       string `yaml:"name"`
	Method     uint32 `yaml:"method,omitempty"`
	Request    string `yaml:"request,omitempty"`
	RequestHex string `yaml:"request_hex,omitempty"`
	Status     Status `yaml:"status,omitempty"`
	Reply      string `yaml:"reply,omitempty"`
	ReplyHex   string `yaml:"reply_hex,omitempty"`
}

// ReadExamples reads the examples at path.
func ReadExamples(path string) ([]Example, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, fmt.Errorf("read examples: %w", err)
	}
	return ParseExamples(path, data)
}

// ParseExamples is ReadExamples for the content of a file.
func ParseExamples(path string, data []byte) ([]Example, error) {
	var list []Example
	if _, err := decodeStrict(path, data, &list); err != nil {
		return nil, err
	}
	for i, e := range list {
		for _, field := range []struct{ name, text, hex string }{
			{"request", e.Request, e.RequestHex}, {"reply", e.Reply, e.ReplyHex},
		} {
			if field.text != "" && field.hex != "" {
				return nil, fmt.Errorf("%s: example %d (%s): %s and %s_hex exclude each other", path, i+1, e.Name, field.name, field.name)
			}
			if _, err := hex.DecodeString(field.hex); err != nil {
				return nil, fmt.Errorf("%s: example %d (%s): %s_hex: %w", path, i+1, e.Name, field.name, err)
			}
		}
	}
	return list, nil
}

// RequestBytes returns what the example asks.
func (e Example) RequestBytes() []byte { return textOrHex(e.Request, e.RequestHex) }

// Check reports how a reply differs from what the example wants.
func (e Example) Check(status Status, reply []byte) error {
	if status != e.Status {
		return fmt.Errorf("status is %d instead of %d", status, e.Status)
	}
	if want := textOrHex(e.Reply, e.ReplyHex); !bytes.Equal(reply, want) {
		return fmt.Errorf("reply is %q instead of %q", reply, want)
	}
	return nil
}

func textOrHex(text, inHex string) []byte {
	if inHex == "" {
		return []byte(text)
	}
	data, _ := hex.DecodeString(inHex) // ParseExamples checked it
	return data
}
