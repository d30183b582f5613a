package api

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
)

// StackFile is the usual name of a file that lists several functions.
const StackFile = "stack.yml"

// StackFunction is one function of a stack file: a lambda's directory, or an image that is already built.
type StackFunction struct {
	Name        string
	Dir         string // of the lambda, relative to the working directory or absolute; "" where Image is set
	Image       string
	Namespace   string
	Environment map[string]string
	Labels      map[string]string
	Annotations map[string]string
}

// stack has the shape of OpenFaaS's stack.yml, so that one file can serve both. Fields that only OpenFaaS uses are foreign.
type stack struct {
	Version       foreign                  `yaml:"version"`
	Provider      foreign                  `yaml:"provider"`
	Functions     map[string]stackFunction `yaml:"functions"`
	Configuration foreign                  `yaml:"configuration"`
}

type stackFunction struct {
	Lang            string            `yaml:"lang"`
	Handler         string            `yaml:"handler"`
	Image           string            `yaml:"image"` // beside a handler, OpenFaaS's name for the image that it builds
	RegistryAuth    foreign           `yaml:"registry_auth"`
	FProcess        foreign           `yaml:"fprocess"`
	Environment     map[string]string `yaml:"environment"`
	EnvironmentFile foreign           `yaml:"environment_file"`
	Secrets         foreign           `yaml:"secrets"`
	SkipBuild       foreign           `yaml:"skip_build"`
	Constraints     foreign           `yaml:"constraints"`
	Labels          map[string]string `yaml:"labels"`
	Annotations     map[string]string `yaml:"annotations"`
	Limits          foreign           `yaml:"limits"`
	Requests        foreign           `yaml:"requests"`
	ReadOnlyRoot    foreign           `yaml:"readonly_root_filesystem"`
	BuildOptions    foreign           `yaml:"build_options"`
	BuildArgs       foreign           `yaml:"build_args"`
	BuildSecrets    foreign           `yaml:"build_secrets"`
	BuildConfig     foreign           `yaml:"build_config"`
	Platforms       foreign           `yaml:"platforms"`
	Namespace       string            `yaml:"namespace"`
}

// foreign is a value that is allowed and ignored.
type foreign struct{}

// UnmarshalYAML decodes nothing.
func (foreign) UnmarshalYAML(func(any) error) error { return nil }

// ReadStack reads the stack file at path and returns its functions by name. Their directories are relative to the file's.
func ReadStack(path string) ([]StackFunction, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, fmt.Errorf("read stack: %w", err)
	}
	return ParseStack(path, data)
}

// ParseStack is ReadStack for the content of a file.
func ParseStack(path string, data []byte) ([]StackFunction, error) {
	var s stack
	if _, err := decodeStrict(path, data, &s); err != nil {
		return nil, err
	}
	if len(s.Functions) == 0 {
		return nil, fmt.Errorf("%s: functions: there are none: list at least one", path)
	}
	var list []StackFunction
	for _, name := range slices.Sorted(maps.Keys(s.Functions)) {
		f, err := s.Functions[name].function(path, name)
		if err != nil {
			return nil, fmt.Errorf("%s: functions.%s: %w", path, name, err)
		}
		list = append(list, f)
	}
	return list, nil
}

// function checks an entry of the stack file at path.
func (s stackFunction) function(path, name string) (StackFunction, error) {
	f := StackFunction{
		Name: name, Namespace: s.Namespace, Environment: s.Environment, Labels: s.Labels, Annotations: s.Annotations,
	}
	switch {
	case !nameRE.MatchString(name):
		return f, fmt.Errorf("%q is not a lambda name", name)
	case s.Handler == "" && s.Image == "":
		return f, errors.New("handler: missing: name the lambda's directory, or give an image that is built")
	case s.Handler == "":
		f.Image = s.Image
		return f, nil
	case s.Lang != "" && s.Lang != "lambda":
		return f, fmt.Errorf("lang: %q is not supported: use \"lambda\"", s.Lang)
	}
	f.Dir = s.Handler
	if !filepath.IsAbs(f.Dir) {
		f.Dir = filepath.Join(filepath.Dir(path), f.Dir)
	}
	return f, nil
}
