package api

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
)

// StackFile is the usual name of a file that lists several functions.
const StackFile = "stack.yml"

// StackFunction is one function of a stack file.
type StackFunction struct {
	Name string
	Dir  string // of the lambda, relative to the working directory or absolute
}

// stack has the shape of OpenFaaS's stack.yml, so that one file can serve both. What only OpenFaaS acts on is foreign.
type stack struct {
	Version       foreign                  `yaml:"version"`
	Provider      foreign                  `yaml:"provider"`
	Functions     map[string]stackFunction `yaml:"functions"`
	Configuration foreign                  `yaml:"configuration"`
}

type stackFunction struct {
	Lang            string  `yaml:"lang"`
	Handler         string  `yaml:"handler"`
	Image           foreign `yaml:"image"`
	RegistryAuth    foreign `yaml:"registry_auth"`
	FProcess        foreign `yaml:"fprocess"`
	Environment     foreign `yaml:"environment"`
	EnvironmentFile foreign `yaml:"environment_file"`
	Secrets         foreign `yaml:"secrets"`
	SkipBuild       foreign `yaml:"skip_build"`
	Constraints     foreign `yaml:"constraints"`
	Labels          foreign `yaml:"labels"`
	Annotations     foreign `yaml:"annotations"`
	Limits          foreign `yaml:"limits"`
	Requests        foreign `yaml:"requests"`
	ReadOnlyRoot    foreign `yaml:"readonly_root_filesystem"`
	BuildOptions    foreign `yaml:"build_options"`
	BuildArgs       foreign `yaml:"build_args"`
	BuildSecrets    foreign `yaml:"build_secrets"`
	BuildConfig     foreign `yaml:"build_config"`
	Platforms       foreign `yaml:"platforms"`
	Namespace       foreign `yaml:"namespace"`
}

// foreign is a value that is allowed and not looked at.
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

// ParseStack is ReadStack of a file whose content is at hand.
func ParseStack(path string, data []byte) ([]StackFunction, error) {
	var s stack
	if err := decodeStrict(path, data, &s); err != nil {
		return nil, err
	}
	if len(s.Functions) == 0 {
		return nil, fmt.Errorf("%s: functions: there are none: list at least one", path)
	}
	var list []StackFunction
	for _, name := range slices.Sorted(maps.Keys(s.Functions)) {
		f := s.Functions[name]
		if !nameRE.MatchString(name) {
			return nil, fmt.Errorf("%s: functions: %q is not a lambda name", path, name)
		}
		if f.Lang != "lambda" {
			return nil, fmt.Errorf("%s: functions.%s.lang: %q is not supported: use \"lambda\"", path, name, f.Lang)
		}
		if f.Handler == "" {
			return nil, fmt.Errorf("%s: functions.%s.handler: missing: name the lambda's directory", path, name)
		}
		dir := f.Handler
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(path), dir)
		}
		list = append(list, StackFunction{Name: name, Dir: dir})
	}
	return list, nil
}
