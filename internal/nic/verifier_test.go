package nic

import (
	"errors"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
)

// A loop over the payload without a constant bound is what authors write first; Linux 6.18 answers it without a log.
func TestLoopWithoutBoundIsExplained(t *testing.T) {
	const source = `#include <lambda.h>
int turn(EXTRACTED_HEADERS_T *h, MATCH_DATA_T *m)
{
	for (uint32_t i = 0; i < m->payload_len; i++) {
		uint8_t *p = payload(h, i, 1);
		if (!p)
			return RETURN_FAULT;
		*p ^= 32;
	}
	return lambda_reply(h, 0, m->payload_len);
}
`
	a, err := buildFiles(map[string][]byte{"turn.c": []byte(source), api.SpecFile: []byte("name: turn\n")})
	if err != nil {
		t.Fatal(err)
	}
	n := newTestNIC(t)
	err = n.Deploy(t.Context(), deployment(a, workloads["web"], 1))
	if err == nil {
		t.Skip("this kernel loads it")
	}
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "bound") {
		t.Errorf("it says %v", err)
	}
}
