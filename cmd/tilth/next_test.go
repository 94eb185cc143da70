package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func TestNextCommandRepeatsTheLookupFlags(t *testing.T) {
	c := newTune(&app{stdout: io.Discard, stderr: io.Discard})
	err := c.ParseFlags([]string{"--trials", "9", "--threads", "2", "--records", "my records.db", "--numerics", "fast"})
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[string]map[string]string{"models/a.onnx": {"data": "1x3", "batch": "1"}}
	got := nextCommands([]string{"models/a.onnx", stdio, "it's.onnx", "a.onnx", "it's.onnx"}, c.Flags(), shapes, nil)
	const flags = " --numerics=fast '--records=my records.db' --threads=2"
	want := []string{
		"tilth compile models/a.onnx -o a.tar --shape=batch=1 --shape=data=1x3" + flags,
		`tilth compile 'it'\''s.onnx' -o 'it'\''s.tar'` + flags,
		"tilth compile a.onnx -o a-2.tar" + flags,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

func TestNextCommandIsForTheDeviceThatWasTunedFor(t *testing.T) {
	named, err := registry.Target("x86-64-v2", 3)
	if err != nil {
		t.Fatal(err)
	}
	own := named.Clone()
	own.CPU.Model = "Board 7"
	for _, c := range []struct {
		name           string
		device         *target.Target
		want, describe string
	}{
		{"a preset", named, "--threads=3 --target=x86-64-v2", ""},
		{
			"a board", own, "--threads=3 --target=" + own.DeviceClass() + ".json",
			`tilth devices list --json --tracker=farm:9190 | jq 'first(.[].classes[] | select(.class == "` + own.DeviceClass() +
				`") | .target)' > ` + own.DeviceClass() + ".json",
		},
	} {
		flags := newTune(&app{stdout: io.Discard, stderr: io.Discard})
		if err := flags.ParseFlags([]string{"--tracker", "farm:9190", "--device", "rack=3"}); err != nil {
			t.Fatal(err)
		}
		spec := &tilthv1.JobSpec{Target: &tilthv1.TargetSpec{
			Descriptor_: c.device.WithToolchain("clang-19.1.7").Encode(), DeviceClass: c.device.DeviceClass(),
		}}
		words, describe, err := deviceFlags(spec, flags.Flags())
		if got := strings.Join(words, " "); err != nil || got != c.want || describe != c.describe {
			t.Errorf("%s: %s, %s, %v\nwant %s, %s", c.name, got, describe, err, c.want, c.describe)
		}
	}
}

func TestNextCommandNamesTheCompilerOfTheFarm(t *testing.T) {
	bin := t.TempDir()
	for name, version := range map[string]string{"clang-19": "clang version 19.1.7", "gcc-12": "gcc (Debian 12.2.0) 12.2.0", "gcc": "gcc (Debian 13.1.0) 13.1.0"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho '"+version+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	t.Setenv(toolchain.Variable, "")
	for _, c := range []struct {
		farm, compiler string
		found          bool
	}{{"clang-19.1.7", "", true}, {"gcc-12.2.0", "gcc-12", true}, {"gcc-13.1.0", "gcc", true}, {"gcc-14.1.0", "gcc-14", false}, {"clang-19.1.8", "clang-19", false}} {
		if compiler, found := compilerNamed(t.Context(), c.farm); compiler != c.compiler || found != c.found {
			t.Errorf("%s: --compiler %q, %t, want %q, %t", c.farm, compiler, found, c.compiler, c.found)
		}
	}
	t.Setenv(toolchain.Variable, "gcc-12") // the default of the flag
	if compiler, found := compilerNamed(t.Context(), "gcc-12.2.0"); compiler != "" || !found {
		t.Errorf("--compiler %q, %t", compiler, found)
	}
	if compiler, found := compilerNamed(t.Context(), "clang-19.1.7"); compiler != "clang-19" || !found {
		t.Errorf("--compiler %q, %t", compiler, found)
	}
}

func TestCompileAcceptsTheFlagsOfNextCommands(t *testing.T) {
	a := &app{stdout: io.Discard, stderr: io.Discard}
	for _, name := range append([]string{"shape"}, compileFlags...) {
		if newTune(a).Flags().Lookup(name) == nil || newCompile(a).Flags().Lookup(name) == nil {
			t.Errorf("--%s is not a flag of both", name)
		}
	}
}
