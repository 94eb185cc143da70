package main

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// TestEveryFlagOfAServiceIsASetting checks that the output of --config-check has all flags of the service and is
// equivalent as a configuration file.
func TestEveryFlagOfAServiceIsASetting(t *testing.T) {
	for _, service := range []string{"tracker", "tuner", "builder", "runner"} {
		c, _, err := newRoot(&app{}).Find([]string{service})
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !slices.Contains([]string{"config", "config-check", "help", "help-all"}, f.Name) {
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

// reached returns the tracker that a command line uses.
func reached(t *testing.T, args ...string) string {
	t.Helper()
	c, rest, err := newRoot(&app{}).Find(args)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.ParseFlags(rest), c.ValidateFlagGroups(), fromEnvironment(c)); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return c.Flags().Lookup("tracker").Value.String()
}

// TestEveryCommandHonoursTheTrackerVariable is a regression test: 'tilth tune' ran locally although the environment
// named a farm.
func TestEveryCommandHonoursTheTrackerVariable(t *testing.T) {
	t.Setenv("TILTH_TRACKER", "farm:9190")
	called := 0
	var walk func(c *cobra.Command, path []string)
	walk = func(c *cobra.Command, path []string) {
		if f := c.Flags(); f.Lookup("tracker") != nil && f.Lookup("config") == nil {
			called++
			for flag, want := range map[string]string{"": "farm:9190", "--tracker=": "", "--tracker=other:1": "other:1"} {
				if got := reached(t, append(slices.Clone(path), flag)...); got != want {
					t.Errorf("tilth %s %s calls %q, want %q", strings.Join(path, " "), flag, got, want)
				}
			}
		}
		for _, sub := range c.Commands() {
			walk(sub, append(slices.Clone(path), sub.Name()))
		}
	}
	walk(newRoot(&app{}), nil)
	if called < 20 {
		t.Errorf("%d commands call a tracker", called)
	}
}

func TestLocalFlagsOverrideTheTrackerVariable(t *testing.T) {
	t.Setenv("TILTH_TRACKER", "farm:9190")
	for _, line := range []string{
		"tune m.onnx --records r.db", "tune m.onnx --target x86-64-v3", "tune m.onnx --sandbox off", "compile m.onnx --untuned",
		"compile m.onnx --records r.db", "records list --records r.db", "records prune --records r.db",
	} {
		if got := reached(t, strings.Fields(line)...); got != "" {
			t.Errorf("tilth %s calls %s", line, got)
		}
	}
	if got := reached(t, strings.Fields("tune m.onnx --device rack=3")...); got != "farm:9190" {
		t.Errorf("a job for a farm's device is for the tracker %q", got)
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

// checkConfig returns the output of --config-check for a file.
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
