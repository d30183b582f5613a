// Package artifact keeps compiled lambdas. An artifact is an OCI image: a manifest, the lambda's api.Manifest as its
// config, and a layer for each object and for the source. It is named by the digest of its manifest, so that equal builds are
// one artifact, and whatever copies OCI images copies lambdas.
package artifact

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/lambdanic/lambdanic/api"
)

// Media types of an artifact, its config and its layers.
const (
	Type       = "application/vnd.lambdanic.lambda.v1"
	TypeConfig = "application/vnd.lambdanic.lambda.config.v1+json"
	TypeSource = "application/vnd.lambdanic.lambda.source.v1.tar"
	TypeBPF    = "application/vnd.lambdanic.lambda.bpf.v1.elf"
	TypeNative = "application/vnd.lambdanic.lambda.native.v1.elf"
)

// maxBlob bounds each blob that is read.
const maxBlob = 64 << 20

var (
	// ErrNotFound says that the store has no artifact of that digest.
	ErrNotFound = errors.New("artifact not found")
	// ErrBroken says that the store's content under a digest was changed, or is not an artifact.
	ErrBroken = errors.New("artifact is broken: build it again")
	// ErrNoObject says that an artifact has no object for a target.
	ErrNoObject = errors.New("the lambda is not built for")
)

// Artifact is one compiled lambda with all its targets. An object file or library is nil if the spec does not list its target, or if the
// compiler refused it.
type Artifact struct {
	Digest   string // of the OCI manifest
	Manifest api.Manifest
	Source   []byte // tar of the lambda's directory
	BPF      []byte // ELF object for target nic
	Native   []byte // shared library for all other targets
}

// Object returns the object file or library for a target. If there is none, the error wraps ErrNoObject and says why.
func (a *Artifact) Object(t api.Target) ([]byte, error) {
	object := a.Native
	if t == api.TargetNIC {
		object = a.BPF
	}
	if object != nil && slices.Contains(a.Manifest.Spec.Targets, t) {
		return object, nil
	}
	for _, r := range a.Manifest.Refused {
		if r.Target == t {
			return nil, fmt.Errorf("%w %s: %s", ErrNoObject, t, r.Reason)
		}
	}
	return nil, fmt.Errorf("%w %s: the spec's targets have no %s among them: add it", ErrNoObject, t, t)
}

// Summary is what the author of a lambda is told of a; log holds the compiler's warnings.
func (a *Artifact) Summary(log string) *api.Artifact {
	m := a.Manifest
	return &api.Artifact{Image: m.Spec.Name + "@" + a.Digest, Spec: m.Spec, Log: log, Refused: m.Refused}
}

// Memory is what the lambda takes of a namespace's quota, in bytes: its maps, as its manifest counts them, and its code, that of the program
// for the NIC or, where it is not built for the NIC, of its library.
func (a *Artifact) Memory() uint64 {
	object := a.BPF
	if object == nil {
		object = a.Native
	}
	return a.Manifest.Memory + codeOf(object)
}

// codeOf is the size of all code in an object file or library. What cannot be read counts as a whole.
func codeOf(object []byte) (code uint64) {
	file, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return uint64(len(object))
	}
	for _, s := range file.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 {
			code += s.Size
		}
	}
	return code
}

// DigestOf is the second half of an image, NAME@sha256:..., and names its artifact in a store.
func DigestOf(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

// Seal fills in the digests of a's layers, and its own.
func (a *Artifact) Seal() error {
	_, err := a.encode()
	return err
}

// layer is one layer of an artifact, and its entry in the config.
type layer struct {
	mediaType string
	data      *[]byte
	file      *api.File
}

func (a *Artifact) layers() []layer {
	return []layer{
		{TypeSource, &a.Source, &a.Manifest.Source},
		{TypeBPF, &a.BPF, &a.Manifest.BPF},
		{TypeNative, &a.Native, &a.Manifest.Native},
	}
}

// encode seals a and returns its blobs, the OCI manifest last.
func (a *Artifact) encode() ([][]byte, error) {
	var blobs [][]byte
	manifest := ispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: schemaVersion}, MediaType: ispec.MediaTypeImageManifest, ArtifactType: Type,
		Annotations: map[string]string{ispec.AnnotationTitle: a.Manifest.Spec.Name},
	}
	for _, l := range a.layers() {
		*l.file = api.File{}
		if *l.data == nil {
			continue
		}
		d := describe(l.mediaType, *l.data)
		*l.file = api.File{Digest: d.Digest.String(), Size: d.Size}
		manifest.Layers = append(manifest.Layers, d)
		blobs = append(blobs, *l.data)
	}
	config, err := json.Marshal(a.Manifest)
	if err != nil {
		return nil, fmt.Errorf("encode artifact: %w", err)
	}
	manifest.Config = describe(TypeConfig, config)
	encoded, err := json.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("encode artifact: %w", err)
	}
	a.Digest = digest.FromBytes(encoded).String()
	return append(blobs, config, encoded), nil
}

func describe(mediaType string, data []byte) ispec.Descriptor {
	return ispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
}

// decode is the inverse of encode. It gets each blob from fetch, which checks it against its descriptor.
func decode(encoded []byte, fetch func(ispec.Descriptor) ([]byte, error)) (*Artifact, error) {
	a, layers, err := decodeManifest(encoded, fetch)
	if err != nil {
		return nil, err
	}
	return a, a.decodeLayers(layers, fetch)
}

// decodeManifest fetches the manifest, and says where the layers are.
func decodeManifest(encoded []byte, fetch func(ispec.Descriptor) ([]byte, error)) (*Artifact, []ispec.Descriptor, error) {
	var manifest ispec.Manifest
	if err := unmarshal(encoded, &manifest); err != nil {
		return nil, nil, fmt.Errorf("%w: manifest: %w", ErrBroken, err)
	}
	if manifest.ArtifactType != Type || manifest.Config.MediaType != TypeConfig {
		return nil, nil, fmt.Errorf("%w: it is a %q with config %q, not a lambda", ErrBroken, manifest.ArtifactType, manifest.Config.MediaType)
	}
	config, err := fetch(manifest.Config)
	if err != nil {
		return nil, nil, err
	}
	a := &Artifact{Digest: digest.FromBytes(encoded).String()}
	if err := unmarshal(config, &a.Manifest); err != nil {
		return nil, nil, fmt.Errorf("%w: config: %w", ErrBroken, err)
	}
	if err := a.Manifest.Spec.Validate(); err != nil {
		return nil, nil, fmt.Errorf("%w: spec: %w", ErrBroken, err)
	}
	return a, manifest.Layers, nil
}

// decodeLayers fetches the layers, which must be those of the config, in its order.
func (a *Artifact) decodeLayers(found []ispec.Descriptor, fetch func(ispec.Descriptor) ([]byte, error)) error {
	for _, l := range a.layers() {
		if *l.file == (api.File{}) {
			continue
		}
		if len(found) == 0 || found[0].MediaType != l.mediaType ||
			found[0].Digest.String() != l.file.Digest || found[0].Size != l.file.Size {
			return fmt.Errorf("%w: the config names a %s that is not among the layers", ErrBroken, l.mediaType)
		}
		data, err := fetch(found[0])
		if err != nil {
			return err
		}
		*l.data, found = data, found[1:]
	}
	if len(found) > 0 {
		return fmt.Errorf("%w: the config does not name its %q", ErrBroken, found[0].MediaType)
	}
	return nil
}

// unmarshal decodes one JSON value and refuses unknown fields.
func unmarshal(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}
