package loader

import (
	"os"
	"path/filepath"
	"strings"
)

const configuration = "/etc/ld.so.conf"

// Folders returns the folders added to the loader's defaults, such as that of CUDA, in the order of
// /etc/ld.so.conf and its included files (ldconfig(8)). It returns none if the file does not exist.
func Folders() []string { return read(configuration) }

// Find returns the path of a library in the first of these folders that contains it, or "".
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

// reader collects folders. It reads each file once, because files may include each other.
type reader struct {
	seen    map[string]bool
	folders []string
}

func (r *reader) file(path string) {
	text, err := os.ReadFile(path)
	if err != nil || r.seen[path] {
		return // unreadable files are ignored, as by the loader's own tools
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
