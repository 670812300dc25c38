package scenarios

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Load reads the files *.json of a directory, in the order of their names.
func Load(dir string) ([]*Scenario, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no scenario files (*.json) in %s", dir)
	}
	var all []*Scenario
	var errs []error
	for _, name := range names {
		s, err := read(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		all = append(all, s)
	}
	return all, errors.Join(errs...)
}

func read(name string) (*Scenario, error) {
	document, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return Decode(document)
}

// Decode reads one file. Fields that it does not know are errors: what they mean
// would be left out. It keeps document.
func Decode(document []byte) (*Scenario, error) {
	s := &Scenario{document: document}
	if err := json.Unmarshal(document, s, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	return s, s.validate()
}

// Fixed returns the scenario with Expected.AfterFix applied, and its results as
// the expected ones. It returns nil if the file knows no fix.
func (s *Scenario) Fixed() (*Scenario, error) {
	fix := s.Expected.AfterFix
	if fix == nil {
		return nil, nil
	}
	document := s.document
	for _, change := range fix.Patch {
		var err error
		if document, err = set(document, change); err != nil {
			return nil, fmt.Errorf("patch: %w", err)
		}
	}
	fixed, err := Decode(document)
	if err != nil {
		return nil, fmt.Errorf("after the patch: %w", err)
	}
	fixed.Expected.Results, fixed.Expected.AfterFix = fix.Results, nil
	return fixed, nil
}
