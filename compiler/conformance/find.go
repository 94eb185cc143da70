package conformance

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// modelFile is the file that marks a directory as a test case.
const modelFile = "model.onnx"

// Location is a test case on disk.
type Location struct {
	// Name is the case's path below the searched directory, or its base name if it is that directory.
	Name string `json:"name"`
	// Dir is the directory with model.onnx and test_data_set_*.
	Dir string `json:"dir"`
}

// Find returns the cases at or below directories, in path order within each. A directory without cases is an error.
func Find(dirs ...string) ([]Location, error) {
	var found []Location
	for _, dir := range dirs {
		before := len(found)
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Name() != modelFile {
				return err
			}
			found = append(found, location(dir, filepath.Dir(path)))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("finding test cases: %w", err)
		}
		if len(found) == before {
			if _, err := os.Stat(dir); err != nil {
				return nil, fmt.Errorf("finding test cases: %w", err)
			}
			return nil, fmt.Errorf("no test case in %s: a case is a folder with %s and test_data_set_0", dir, modelFile)
		}
	}
	return found, nil
}

func location(root, dir string) Location {
	name, err := filepath.Rel(root, dir)
	if err != nil || name == "." {
		if absolute, err := filepath.Abs(dir); err == nil {
			dir = absolute
		}
		name = filepath.Base(dir)
	}
	return Location{Name: strings.TrimPrefix(filepath.ToSlash(name), "./"), Dir: dir}
}
