package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// What --config-check prints has every flag that the service has, and means the same when it is the configuration file.
func TestEveryFlagOfAServiceIsASetting(t *testing.T) {
	for _, service := range []string{"tracker", "tuner", "builder", "runner"} {
		c, _, err := newRoot(&app{}).Find([]string{service})
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !slices.Contains([]string{"config", "config-check", "help"}, f.Name) {
				want = append(want, f.Name)
			}
		})
		first := checkConfig(t, service, "")
		if got := slices.Sorted(maps.Keys(first)); !slices.Equal(got, want) {
			t.Errorf("%s: settings are %v, flags %v", service, got, want)
		}
		if again := checkConfig(t, service, marshal(t, first)); !reflect.DeepEqual(again, first) {
			t.Errorf("%s: settings %v became %v", service, first, again)
		}
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkConfig is what --config-check prints for a file.
func checkConfig(t *testing.T, service, file string) map[string]any {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if status := run([]string{service, "--config", path, "--config-check"}, strings.NewReader(""), &stdout, &stderr); status != exitDone {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	settings := map[string]any{}
	if err := yaml.Unmarshal(stdout.Bytes(), &settings); err != nil {
		t.Fatal(err)
	}
	return settings
}
