package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Sentences of licences, wrapped and indented as in modules.
const (
	mitText = "MIT License\n\nPermission is hereby granted, free of\n   charge, to any person\n" +
		"The above copyright notice and this permission notice shall be included in all copies"
	bsd2Text = "* Redistribution and use in source and binary forms, with or\n * without modification"
	bsd3Text = bsd2Text + "\nto endorse or promote products derived from"
)

func TestIdentifyLicence(t *testing.T) {
	apache, err := os.ReadFile(filepath.Join("..", "..", "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		string(apache): "Apache-2.0", mitText: "MIT", bsd2Text: "BSD-2-Clause", bsd3Text: "BSD-3-Clause", bsd3Text + "\n\n" + mitText: "BSD-3-Clause AND MIT",
	} {
		if got, err := identifyLicence([]byte(text)); err != nil || got != want {
			t.Errorf("%.30q is %s, %v; want %s", text, got, err, want)
		}
	}
	if id, err := identifyLicence([]byte("All rights reserved.")); err == nil {
		t.Errorf("an unknown text is %s", id)
	}
}

func TestModuleLicence(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("NOTICE", "of somebody")
	if _, _, err := moduleLicence(dir); err == nil || !strings.Contains(err.Error(), "no file of a licence") {
		t.Errorf("a notice alone: %v", err)
	}
	write("LICENSE-MIT.txt", mitText)
	if id, texts, err := moduleLicence(dir); err != nil || id != "MIT" || len(texts) != 2 {
		t.Errorf("%s, %d texts, %v", id, len(texts), err)
	}
	write("COPYING", "All rights reserved.")
	if _, _, err := moduleLicence(dir); err == nil {
		t.Error("an unknown licence is taken")
	}
}
