package compiler

import (
	"path/filepath"
	"slices"
	"testing"
)

// rewritten are sources that the passes rewrite heavily: calls, recursion, floating point, memory, loops.
func rewritten(t *testing.T) map[string][]byte {
	t.Helper()
	sources := map[string][]byte{}
	for _, dir := range []string{
		"ordinary/testdata/addresses", "ordinary/testdata/crowded", "ordinary/testdata/faults", "ordinary/testdata/functions",
		"ordinary/testdata/ordered", "ordinary/testdata/pointers", "ordinary/testdata/products", "ordinary/testdata/recursion",
		"ordinary/testdata/remainder", "ordinary/testdata/varying", "ordinary/testdata/wide", "corpus/binary_tree", "corpus/calculator",
		"corpus/fft_double", "corpus/json_parse", "corpus/lz4", "corpus/merge_sort", "corpus/quick_sort", "corpus/trie",
		"../lambdas/kv_client",
	} {
		source, err := PackSource(dir)
		if err != nil {
			t.Fatal(err)
		}
		sources[filepath.Base(dir)] = source
	}
	return sources
}

// LLVM verifies each pass's output, with the debug information. Leftovers of a block that a pass took apart may turn up in any other block.
func TestEachPassMakesWhatLLVMTakes(t *testing.T) {
	each := func(command []string) []string { return append(slices.Clip(command), "-Xclang", "-llvm-verify-each") }
	for name, source := range rewritten(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := emit(t.Context(), source, each, around{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// The compiler's addresses differ from run to run, and do not show in its output.
func TestAddressesDoNotShow(t *testing.T) {
	sources := rewritten(t)
	for _, name := range []string{"calculator", "fft_double", "recursion", "trie"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var first string
			for range 3 {
				a, err := BuildSource(t.Context(), sources[name], Options{})
				if err != nil {
					t.Fatal(err)
				}
				if first == "" {
					first = a.Digest
				}
				if a.BPF == nil || a.Digest != first {
					t.Errorf("got %s, and before %s", a.Digest, first)
				}
			}
		})
	}
}
