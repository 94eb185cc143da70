package main

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

var (
	// licenceFile matches the names of files that must accompany a program. nonLicenceFile matches the ones that do
	// not license it: notices, patents, and the licences of documentation. licenceFiller matches text between two
	// words.
	licenceFile    = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)
	nonLicenceFile = regexp.MustCompile(`(?i)^(notice|patents)|[.-]docs$`)
	licenceFiller  = regexp.MustCompile(`[\s*#/>]+`)
)

// knownLicences maps SPDX identifiers to characteristic sentences, most specific first.
var knownLicences = []struct {
	id        string
	sentences []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0", "grant of patent license"}},
	{"MPL-2.0", []string{"mozilla public license", "2.0"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "endorse or promote products derived"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}},
	{"ISC", []string{"permission to use, copy, modify, and", "distribute this software for any purpose with or without fee is hereby granted"}},
	{"MIT", []string{"permission is hereby granted, free of charge", "the above copyright notice and this permission notice shall be included"}},
	{"CC0-1.0", []string{"cc0 1.0 universal"}},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}},
}

// permissiveLicences lists the licences that modules may have.
var permissiveLicences = []string{"Apache-2.0", "BSD-3-Clause", "BSD-2-Clause", "ISC", "MIT", "CC0-1.0", "Unlicense"}

// identifyLicence returns the SPDX expression of a licence text, which may combine several licences.
func identifyLicence(text []byte) (string, error) {
	words := strings.ToLower(licenceFiller.ReplaceAllString(string(text), " "))
	var ids []string
	for _, k := range knownLicences {
		all := true
		for _, s := range k.sentences {
			all = all && strings.Contains(words, s)
		}
		if all && !(k.id == "BSD-2-Clause" && strings.Contains(strings.Join(ids, " "), "BSD")) {
			ids = append(ids, k.id)
		}
	}
	if ids == nil {
		return "", fmt.Errorf("unknown licence: add it to lab/release/licences.go, if it is permissive")
	}
	return strings.Join(ids, " AND "), nil
}

// moduleLicence returns the licence of the module in a folder, as an SPDX expression, and its texts.
func moduleLicence(dir string) (id string, texts []file, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", nil, err
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", nil, err
		}
		texts = append(texts, file{Name: e.Name(), Mode: 0o644, Data: data})
		if nonLicenceFile.MatchString(e.Name()) {
			continue
		}
		one, err := identifyLicence(data)
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", filepath.Join(dir, e.Name()), err)
		}
		ids = append(ids, one)
	}
	if ids == nil {
		return "", nil, fmt.Errorf("%s has no file of a licence", dir)
	}
	return strings.Join(ids, " AND "), texts, nil
}

// module is a Go module that a program contains.
type module struct {
	Path, Version string
	// Sum is the module's line in go.sum, or empty for the standard library.
	Sum string
	// Licence is an SPDX expression.
	Licence string
	// Texts are the licences and notices that must accompany the program.
	Texts []file
}

// standardLibrary is the path of Go's standard library in lists of modules.
const standardLibrary = "stdlib"

// programModules returns the modules of a Go program, sorted by path. They include the standard library, but not the
// module of the program itself, whose folder is root. An unknown licence is an error, so that every release is
// reviewed.
func programModules(ctx context.Context, program, root string) ([]module, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	dirs, err := moduleFolders(ctx, root, info.Deps)
	if err != nil {
		return nil, err
	}
	goroot, err := goEnv(ctx, "GOROOT")
	if err != nil {
		return nil, err
	}
	modules := []module{{Path: standardLibrary, Version: strings.TrimPrefix(info.GoVersion, "go")}}
	dirs[standardLibrary] = goroot
	for _, d := range info.Deps {
		if d.Replace != nil {
			return nil, fmt.Errorf("%s is replaced by %s: a release uses only modules that anyone can fetch", d.Path, d.Replace.Path)
		}
		modules = append(modules, module{Path: d.Path, Version: d.Version, Sum: d.Sum})
	}
	for i := range modules {
		m := &modules[i]
		if m.Licence, m.Texts, err = moduleLicence(dirs[m.Path]); err != nil {
			return nil, fmt.Errorf("licence of %s: %w", m.Path, err)
		}
		for _, id := range strings.Split(m.Licence, " AND ") {
			if !slices.Contains(permissiveLicences, id) {
				return nil, fmt.Errorf("%s has the licence %s, which is not permissive", m.Path, m.Licence)
			}
		}
	}
	slices.SortFunc(modules, func(a, b module) int { return cmp.Compare(a.Path, b.Path) })
	return modules, nil
}

// moduleFolders returns the folders of modules in the module cache, by path.
func moduleFolders(ctx context.Context, root string, modules []*debug.Module) (map[string]string, error) {
	dirs := map[string]string{}
	if len(modules) == 0 {
		return dirs, nil
	}
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		args = append(args, m.Path+"@"+m.Version)
	}
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go mod download: %w", said(err))
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return dirs, nil
		} else if err != nil {
			return nil, fmt.Errorf("go mod download: %w", err)
		}
		dirs[m.Path] = m.Dir
	}
}

func goEnv(ctx context.Context, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", name).Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, said(err))
	}
	return strings.TrimSpace(string(out)), nil
}
