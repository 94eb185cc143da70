package aot

import (
	"encoding/json"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
)

// TestLatenciesOfOlderPackagesAreRead: their manifests use another name.
func TestLatenciesOfOlderPackagesAreRead(t *testing.T) {
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"latency_s", "latency_seconds"} {
		text, err := json.Marshal(map[string]any{"format": closedFormat, "target": machine, "tasks": []any{map[string]any{"name": "a", name: 0.5}}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := DecodeManifest(text)
		if err != nil || m.Tasks[0].LatencySeconds != 0.5 || m.Tasks[0].FormerLatencySeconds != 0 {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}
