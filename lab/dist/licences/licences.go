package licences

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Text is a file of a module that must be distributed with a program: a licence or a notice.
type Text struct {
	Name string
	Data []byte
}

var (
	legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)
	notes = regexp.MustCompile(`(?i)^(notice|patents)|[.-]docs$`) // licences of documentation do not apply to programs
	blank = regexp.MustCompile(`[\s*#/>]+`)
)

// kinds lists known licences by characteristic sentences, most specific first.
var kinds = []struct {
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

// Permissive lists the permitted licences of modules.
var Permissive = []string{"Apache-2.0", "BSD-3-Clause", "BSD-2-Clause", "ISC", "MIT", "CC0-1.0", "Unlicense"}

// Identify returns the SPDX expression of a licence text, which may combine several licences.
func Identify(text []byte) (string, error) {
	words := strings.ToLower(blank.ReplaceAllString(string(text), " "))
	var ids []string
	for _, k := range kinds {
		all := true
		for _, s := range k.sentences {
			all = all && strings.Contains(words, s)
		}
		if all && !(k.id == "BSD-2-Clause" && strings.Contains(strings.Join(ids, " "), "BSD")) {
			ids = append(ids, k.id)
		}
	}
	if ids == nil {
		return "", fmt.Errorf("unknown licence: add it to lab/dist/licences, if it is permissive")
	}
	return strings.Join(ids, " AND "), nil
}

// OfFolder returns the licence of the module in a folder, as an SPDX expression, and its texts.
func OfFolder(dir string) (id string, texts []Text, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", nil, err
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() || !legal.MatchString(e.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", nil, err
		}
		texts = append(texts, Text{e.Name(), data})
		if notes.MatchString(e.Name()) {
			continue
		}
		one, err := Identify(data)
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
