package sandbox

import (
	"os"
	"path/filepath"
	"strings"
)

const loaderConfiguration = "/etc/ld.so.conf"

// libraryFolders returns the folders added to the loader's defaults, such as that of CUDA, in the order of
// /etc/ld.so.conf and its included files (ldconfig(8)). It returns none if the file does not exist.
func libraryFolders() []string { return loaderFolders(loaderConfiguration) }

// FindLibrary returns the path of a library in the first of these folders that contains it, or "".
func FindLibrary(soname string) string { return findLibrary(libraryFolders(), soname) }

func findLibrary(folders []string, soname string) string {
	for _, dir := range folders {
		path := filepath.Join(dir, soname)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

func loaderFolders(path string) []string {
	r := loaderReader{seen: map[string]bool{}}
	r.file(path)
	return r.folders
}

// loaderReader collects folders. It reads each file once, because files may include each other.
type loaderReader struct {
	seen    map[string]bool
	folders []string
}

func (r *loaderReader) file(path string) {
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

func (r *loaderReader) include(dir string, patterns []string) {
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
