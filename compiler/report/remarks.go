package report

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"

	"github.com/lambdanic/lambdanic/compiler"
)

// A Remark is a pass's note about its work. Which fields are set depends on its kind: see the package's comment.
type Remark struct {
	Kind         string `json:"kind"`
	Step         string `json:"step,omitempty"`
	Instructions int    `json:"instructions,omitempty"`
	Object       string `json:"object,omitempty"`
	Size         uint64 `json:"size,omitempty"`
	Where        string `json:"where,omitempty"`
	Why          string `json:"why,omitempty"`
	Hint         string `json:"hint,omitempty"`
	State        string `json:"state,omitempty"`
	Cost         uint64 `json:"cost,omitempty"`
	Function     string `json:"function,omitempty"`
	File         string `json:"file,omitempty"`
	Line         int    `json:"line,omitempty"`
}

// at is the author's line; "" if it is not known.
func (m Remark) at() string {
	if m.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", m.File, m.Line)
}

// readRemarks reads the remarks of an object file, if it has some.
func readRemarks(object []byte) ([]Remark, error) {
	file, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("read remarks: %w", err)
	}
	section := file.Section(compiler.RemarkSection)
	if section == nil {
		return nil, nil
	}
	data, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("read remarks: %w", err)
	}
	return parseRemarks(data), nil
}

// parseRemarks skips lines that are not remarks.
func parseRemarks(data []byte) (remarks []Remark) {
	for line := range bytes.Lines(bytes.ReplaceAll(data, []byte{0}, []byte{'\n'})) {
		var m Remark
		if json.Unmarshal(line, &m) == nil && m.Kind != "" {
			remarks = append(remarks, m)
		}
	}
	return remarks
}
