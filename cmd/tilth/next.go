package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// compileFlags lists the flags of tune that compile needs to find the tuned schedules. --shape is handled
// separately, because each model has its own.
var compileFlags = []string{
	"from", "to", "kernels", "objective", "target", "threads", "numerics", "storage", "weights", "records", "compiler", "cost-model",
	"tracker", "tls-ca", "tls-cert", "tls-key", "token-file",
}

// trackerFlagNames lists those of them that connect to a tracker.
var trackerFlagNames = []string{"tracker", "tls-ca", "tls-cert", "tls-key", "token-file"}

// nextCommands returns the commands that compile models after tuning with these flags, each with its shapes.
// A model from standard input has no command. device holds additional flags that identify the target.
func nextCommands(paths []string, flags *pflag.FlagSet, shapes map[string]map[string]string, device []string) (commands []string) {
	seen, outputs := map[string]bool{}, map[string]bool{}
	for _, path := range paths {
		if path == stdio || seen[path] {
			continue
		}
		seen[path] = true
		words := []string{"tilth compile", shellWord(path), "-o", shellWord(ownOutput(path, outputs))}
		for _, name := range slices.Sorted(maps.Keys(shapes[path])) {
			words = append(words, shellWord("--shape="+name+"="+shapes[path][name]))
		}
		words = append(words, givenWords(flags, compileFlags)...)
		commands = append(commands, strings.Join(append(words, device...), " "))
	}
	return commands
}

// ownOutput returns a package name that no other model uses.
func ownOutput(path string, taken map[string]bool) string {
	name := modelName(path)
	output := name + ".tar"
	for n := 2; taken[output]; n++ {
		output = fmt.Sprintf("%s-%d.tar", name, n)
	}
	taken[output] = true
	return output
}

// givenWords returns the given ones among some flags as shell words.
func givenWords(flags *pflag.FlagSet, names []string) (words []string) {
	flags.Visit(func(f *pflag.Flag) {
		if !slices.Contains(names, f.Name) {
			return
		}
		list, several := f.Value.(pflag.SliceValue)
		if several {
			for _, value := range list.GetSlice() {
				words = append(words, shellWord("--"+f.Name+"="+value))
			}
		} else {
			words = append(words, shellWord("--"+f.Name+"="+f.Value.String()))
		}
	})
	return words
}

// deviceFlags returns the flags with which compile targets the device of a farm's job, and the command that
// writes the file named in them. describe is empty if the device has a named target or equals this machine.
func deviceFlags(spec *tilthv1.JobSpec, flags *pflag.FlagSet) (words []string, describe string, err error) {
	t, err := target.Decode(spec.GetTarget().GetDescriptor_())
	if err != nil {
		return nil, "", err
	}
	if !flags.Changed("threads") {
		words = append(words, "--threads="+strconv.Itoa(t.Threads()))
	}
	if t.Objective != "" && !flags.Changed("objective") {
		words = append(words, "--objective="+t.Objective)
	}
	switch name, found := targetName(t.WithObjective("")); {
	case found && name == target.Here:
		return words, "", nil
	case found:
		return append(words, shellWord("--target="+name)), "", nil
	}
	class := spec.GetTarget().GetDeviceClass()
	file := filepath.Base(class) + ".json"
	list := append([]string{"tilth devices list --json"}, givenWords(flags, trackerFlagNames)...)
	pick := fmt.Sprintf("first(.[].classes[] | select(.class == %q) | .target)", class)
	describe = strings.Join(list, " ") + " | jq " + shellWord(pick) + " > " + shellWord(file)
	return append(words, shellWord("--target="+file)), describe, nil
}

// compilerNamed returns the value of --compiler for a toolchain: "" if it is the default, and a guess if this machine
// lacks it.
func compilerNamed(ctx context.Context, toolchainName string) (compiler string, found bool) {
	compilerName, _, _ := strings.Cut(toolchainName, "+")
	family, version, _ := strings.Cut(compilerName, "-")
	major, _, _ := strings.Cut(version, ".")
	guess := family + "-" + major
	for _, compiler := range []string{os.Getenv(toolchain.Variable), guess, family} {
		tc, err := toolchain.Find(ctx, compiler)
		if err != nil || !slices.Contains(tc.Names(), toolchainName) {
			continue
		}
		if compiler == os.Getenv(toolchain.Variable) {
			compiler = "" // the default of the flag
		}
		return compiler, true
	}
	return guess, false
}

// hereNames returns the values of --target for this machine and its further core classes.
func hereNames() []string {
	names := []string{target.Here}
	classes, _ := target.Classes() // empty for an unsupported machine
	for k := 1; k < len(classes); k++ {
		names = append(names, fmt.Sprintf("%s:%d", target.Here, k))
	}
	return names
}

// targetName returns the value of --target for a target. found is false if only a file describes it.
func targetName(t *target.Target) (name string, found bool) {
	wanted := t.WithToolchain("").Fingerprint()
	names := hereNames()
	for _, t := range registry.Targets() {
		names = append(names, t.Name)
	}
	for _, name := range names {
		named, err := registry.Target(name, t.Threads())
		if err == nil && named.WithToolchain("").Fingerprint() == wanted {
			return name, true
		}
	}
	return "", false
}

// shellWord quotes text for a shell if necessary.
func shellWord(text string) string {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%"
	if text != "" && strings.Trim(text, harmless) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
