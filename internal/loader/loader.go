package loader

import (
	"os"
	"path/filepath"
	"strings"
)

const configuration = "/etc/ld.so.conf"

// Folders are those that the machine's owner has added to the loader's own, such as that of CUDA, in the order of
// /etc/ld.so.conf and the files that it includes (ldconfig(8)). There are none where there is no such file.
func Folders() []string { return read(configuration) }

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

func read(path string) []string {
	r := reader{seen: map[string]bool{}}
	r.file(path)
	return r.folders
}

// reader collects folders. Files may include each other, so it reads each once.
type reader struct {
	seen    map[string]bool
	folders []string
}

func (r *reader) file(path string) {
	text, err := os.ReadFile(path)
	if err != nil || r.seen[path] {
		return // as the loader's own tools do, without what cannot be read
	}
	r.seen[path] = true
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if patterns := strings.Fields(line); len(patterns) > 1 && patterns[0] == "include" {
			r.include(filepath.Dir(path), patterns[1:])
		} else if filepath.IsAbs(line) {
			r.folders = append(r.folders, filepath.Clean(line))
		}
	}
}

func (r *reader) include(dir string, patterns []string) {
	for _, pattern := range patterns {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(dir, pattern)
		}
		files, _ := filepath.Glob(pattern) // none for a bad pattern
		for _, path := range files {
			r.file(path)
		}
	}
}
