package compiler

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bpf"
	"github.com/lambdanic/lambdanic/compiler/sandbox"
	"github.com/lambdanic/lambdanic/sdk"
	"github.com/lambdanic/lambdanic/sdk/pif"
)

// Paths in the sandbox. They are constants, so that no path of the host gets into an object file.
const (
	lambdaDir = "/lambda"
	sdkDir    = "/sdk"
	unitFile  = "/unit.c"

	linkerScript = sdkDir + "/lambda.ld"
)

// unit is the file that is compiled. It includes the author's source under its own name, so that messages and debug information carry the
// author's lines. The prototype before it gives the entry internal linkage even if the author did not (C11 6.2.2p5), so that it is
// inlined into the SDK's program.
func unit(spec api.Spec) []byte {
	var b strings.Builder
	define := func(name string, value any) { fmt.Fprintf(&b, "#define %s %v\n", name, value) }
	define("LAMBDA_ENTRY", spec.Entry)
	define("LAMBDA_MESSAGE_MAX", uint64(spec.Message.Max))
	define("LAMBDA_LIMITS_MEMORY", uint64(spec.Limits.Memory))
	records, _ := spec.Message.Records()
	define("LAMBDA_IN_FLIGHT", records)
	if spec.Message.Mode == api.ModeAssemble {
		define("LAMBDA_ASSEMBLE", 1)
	}
	if len(spec.Services) > 0 {
		define("LAMBDA_CALLS", 1)
	}
	for i, service := range spec.Services {
		define("SERVICE_"+service.Name, i)
	}
	fmt.Fprintf(&b, "#include \"lambda.h\"\n")
	fmt.Fprintf(&b, "static __always_inline int %s(EXTRACTED_HEADERS_T *, MATCH_DATA_T *);\n", spec.Entry)
	fmt.Fprintf(&b, "#include \"%s\"\n", path.Join(lambdaDir, spec.Source))
	fmt.Fprintf(&b, "#include \"lambda_entry.h\"\n")
	return []byte(b.String())
}

// headers returns the SDK as files in the sandbox, and its digest.
var headers = sync.OnceValues(func() ([]sandbox.File, digest.Digest) {
	var files []sandbox.File
	sum := sha256.New()
	for _, tree := range []struct {
		dir   string
		files embed.FS
	}{{"", sdk.Headers}, {"", bpf.Headers}, {"pif", pif.Headers}} {
		entries, err := tree.files.ReadDir(".")
		if err != nil {
			panic(err) // the directory is embedded
		}
		for _, e := range entries {
			data, err := tree.files.ReadFile(e.Name())
			if err != nil {
				panic(err) // the file is embedded
			}
			files = append(files, sandbox.File{Path: path.Join(sdkDir, tree.dir, e.Name()), Data: data})
			fmt.Fprintf(sum, "%s %d\n%s", e.Name(), len(data), data)
		}
	}
	return files, digest.NewDigest(digest.SHA256, sum)
})
