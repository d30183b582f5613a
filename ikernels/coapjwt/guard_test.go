package coapjwt

import (
	"strings"
	"testing"
)

func TestSmoke(t *testing.T) {
	b := newBench(t, 1)
	token := sign(t, b.secrets[0], claims)
	t.Log(strings.LastIndex(token, "."), token)
	b.expect("a token", b.with(token), GuardCjVerdictCJ_PASSED)
	b.expect("a forged token", b.with(token[:len(token)-3]+"AAA"), GuardCjVerdictCJ_FORGED)
	for range 3 {
		_, d, err := b.objects.CjGuard.Benchmark(frame(t, client, server, port, b.with(token)), 200000, nil)
		t.Log(d, err)
	}
}
