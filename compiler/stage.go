package compiler

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/match"
	"github.com/lambdanic/lambdanic/compiler/p4"
	"github.com/lambdanic/lambdanic/compiler/sandbox"
)

// A lambda with its own match stage (spec key p4) is a program on whole packets: its unit is generated from the P4 program and its rules,
// and includes the author's C.

// undefinedPrimitive is clang's message about a primitive action without a function.
var undefinedPrimitive = regexp.MustCompile(`function '(\w+)' has internal linkage but is not defined`)

// Stage is a match stage: the generated code, and how the stage was reduced.
type Stage struct {
	Code  match.Code
	Steps []match.Step
	Text  string // the reduced stage, for readers

	Warnings []Diagnostic
}

// BuildStage makes the match stage of a spec that has one. If P4 or rules are at fault, the error is an *Error.
func BuildStage(spec api.Spec, files []sandbox.File) (Stage, error) {
	lambda := match.Lambda{Uses: match.Uses{}}
	if spec.Source != "" {
		lambda.Source = path.Join(lambdaDir, spec.Source)
	}
	for _, f := range files {
		if ext := path.Ext(f.Path); ext == ".c" || ext == ".h" {
			lambda.Uses.Add(string(f.Data))
		}
	}
	open := func(name string) ([]byte, error) {
		for _, f := range files {
			if f.Path == name {
				return f.Data, nil
			}
		}
		return nil, fs.ErrNotExist
	}
	program, err := p4.Parse(path.Clean(spec.P4), open)
	if err != nil {
		return Stage{}, stageError(spec, err)
	}
	var warnings []Diagnostic
	if spec.Rules != "" {
		rules, err := open(path.Clean(spec.Rules))
		if err != nil {
			return Stage{}, fmt.Errorf("%w: %s: rules: there is no file %q beside it", ErrSource, api.SpecFile, spec.Rules)
		}
		unknown, err := p4.ReadRules(path.Clean(spec.Rules), rules, program)
		if spec.LenientRules {
			warnings, unknown = faults("warning", unknown), nil
		}
		if err := errors.Join(unknown, err); err != nil {
			return Stage{}, stageError(spec, err)
		}
	}
	steps := match.Reduce(program, lambda.Uses)
	code, err := match.Emit(program, lambda)
	if err != nil {
		return Stage{}, stageError(spec, err)
	}
	return Stage{Code: code, Steps: steps, Text: program.String(), Warnings: warnings}, nil
}

// StageOf makes the match stage of a packed source; nil if it has none.
func StageOf(source []byte) (*Stage, error) {
	files, err := readSource(source)
	if err != nil {
		return nil, err
	}
	spec, err := findSpec(files)
	if err != nil || spec.P4 == "" {
		return nil, err
	}
	stage, err := BuildStage(spec, files)
	return &stage, err
}

// stageError turns errors of package p4 into an *Error, and returns all others.
func stageError(spec api.Spec, err error) error {
	list := faults("error", err)
	if list == nil {
		return fmt.Errorf("lambda %s: %w", spec.Name, err)
	}
	return &Error{Lambda: spec.Name, Diagnostics: list}
}

// faults finds each *p4.Error in a joined error.
func faults(severity string, err error) (list []Diagnostic) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			list = append(list, faults(severity, err)...)
		}
		return list
	}
	var at *p4.Error
	if errors.As(err, &at) {
		list = append(list, Diagnostic{File: at.File, Line: at.Line, Column: at.Column, Severity: severity, Message: at.Message})
	}
	return list
}

// stageFiles are the unit of a match stage, and the headers that it and the author's C include.
func stageFiles(stage Stage) []sandbox.File {
	out := []sandbox.File{
		{Path: unitFile, Data: stage.Code.Unit}, {Path: path.Join(sdkDir, match.HeaderFile), Data: stage.Code.Header},
	}
	sdkFiles, _ := headers()
	for _, f := range sdkFiles {
		if dir, name := path.Split(f.Path); path.Base(dir) == "pif" { // for the author's #include
			out = append(out, sandbox.File{Path: path.Join(sdkDir, name), Data: f.Data})
		}
	}
	return out
}

// unitFiles are the file that is compiled, and what it needs besides the SDK and the author's files.
func unitFiles(spec api.Spec, files []sandbox.File) (unitAndHeaders []sandbox.File, warnings []Diagnostic, err error) {
	if spec.P4 == "" {
		return []sandbox.File{{Path: unitFile, Data: unit(spec)}}, nil, nil
	}
	stage, err := BuildStage(spec, files)
	if err != nil {
		return nil, nil, err
	}
	return stageFiles(stage), stage.Warnings, nil
}

// inspectFor inspects an object file by the rules for its spec.
func inspectFor(spec api.Spec, object []byte) (Contents, error) {
	if spec.P4 != "" {
		return InspectStage(object)
	}
	return Inspect(object)
}
