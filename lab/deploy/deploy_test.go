// Package deploy checks deploy/ and docker-compose.yml with the libraries of the programs that read them, and runs
// the services of docker-compose.yml with runc. It is a separate module, to keep those libraries out of the program's
// dependencies.
package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// root is the repository's root.
const root = "../.."

var documentRow = regexp.MustCompile("(?m)^\\| `(tilth_[a-z_]+)` \\| (\\w+) \\|")

// documented returns the names of the series in docs/metrics.md, and of those that Prometheus and Go add.
func documented(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{"up": true, "process_resident_memory_bytes": true}
	for _, m := range documentRow.FindAllStringSubmatch(string(text), -1) {
		if m[2] != "histogram" {
			names[m[1]] = true
			continue
		}
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			names[m[1]+part] = true
		}
	}
	return names
}
