package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestArchivesAreReproducible(t *testing.T) {
	files := []file{
		{Name: "b/program", Mode: 0o755, Data: []byte("program")}, {Name: "a", Mode: 0o644, Data: []byte("text")},
		{Name: "b/c/d", Mode: 0o600, Data: []byte("deep")}, {Name: "var", Mode: 0o700, Folder: true, Owner: 7},
	}
	first, err := tarGz("./", files, noon)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(files)
	second, err := tarGz("./", files, noon.In(time.FixedZone("elsewhere", 3600)).Add(time.Millisecond))
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the same files in another order give other bytes: %v", err)
	}
}

func TestBadFileNamesAreRefused(t *testing.T) {
	for _, names := range [][]string{{""}, {"/etc"}, {"../a"}, {".."}, {"a/../b"}, {"a/"}, {"a", "a"}, {"a", "a/b"}} {
		var files []file
		for _, name := range names {
			files = append(files, file{Name: name})
		}
		if _, err := tarGz("", files, noon); err == nil {
			t.Errorf("files named %s are taken", strings.Join(names, ", "))
		}
	}
}
