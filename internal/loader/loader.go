package loader

import (
	"os"
	"path/filepath"
	"strings"
)

const (
	configuration = "/etc/ld.so.conf"
	// mostDepth bounds files that include each other.
	mostDepth = 8
)

// Folders are those that the machine's owner has added to the loader's own, such as that of CUDA, in the order of
// /etc/ld.so.conf and the files that it includes (ldconfig(8)). There are none where there is no such file.
func Folders() []string { return read(configuration, nil, 0) }

// Find is the path of a library in the first of these folders that has it; empty where none has.
func Find(soname string) string { return find(Folders(), soname) }

func find(folders []string, soname string) string {
	for _, dir := range folders {
		path := filepath.Join(dir, soname)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// read adds the folders that a file names.
func read(path string, list []string, depth int) []string {
	text, err := os.ReadFile(path)
	if err != nil || depth == mostDepth {
		return list // as the loader's own tools do, without what cannot be read
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if patterns := strings.Fields(line); len(patterns) > 1 && patterns[0] == "include" {
			list = include(filepath.Dir(path), patterns[1:], list, depth+1)
		} else if filepath.IsAbs(line) {
			list = append(list, filepath.Clean(line))
		}
	}
	return list
}

func include(dir string, patterns, list []string, depth int) []string {
	for _, pattern := range patterns {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(dir, pattern)
		}
		files, _ := filepath.Glob(pattern) // none for a bad pattern
		for _, path := range files {
			list = read(path, list, depth)
		}
	}
	return list
}
