package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/access/caller"
	"github.com/tilth-dev/tilth/internal/wire/names"
	"github.com/tilth-dev/tilth/runner/boards"
	"github.com/tilth-dev/tilth/tuner"
)

// completeWithin bounds how long a tracker is asked for what a shell completes: somebody waits at a key.
const completeWithin = 2 * time.Second

type completer = cobra.CompletionFunc

// flagValues are the flags that take one of a few words, or several with commas between.
var flagValues = map[string][]string{
	"dump":      {"graph", "ir", "source"},
	"log-level": {"debug", "info", "warn", "error"},
	"numerics":  {"strict", "default", "fast"},
	"role":      {"read-only", "client", "agent", "admin"},
	"sandbox":   {"required", "best-effort", "off"},
	"state":     {"reading", "queued", "running", "paused", "done", "failed", "cancelled"},
	"storage":   {"bfloat16", "float16", "float32"},
	"tuner":     tuner.Names(),
	"weights":   {"float", "int8", "int4"},
}

// fileNames are the ends of files by what stands for them in the line on usage of a command or a flag; others are
// completed by the shell.
var fileNames = map[string][]string{
	"MODEL.onnx": {"onnx", "onnx.gz"}, "model": {"onnx", "onnx.gz"},
	"PACKAGE.tar": {"tar"}, "package": {"tar"},
	"FILE.jsonl": {"jsonl", "jsonl.gz"},
	".npz":       {"npz"},
}

// completeAll has a shell complete arguments and the values of flags, for a command and those below it.
func completeAll(c *cobra.Command) {
	if _, wanted, takes := strings.Cut(c.Use, " "); takes && c.ValidArgsFunction == nil && c.ValidArgs == nil {
		c.ValidArgsFunction = arguments(wanted)
	} else if c.ValidArgs == nil && !c.HasSubCommands() {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if complete := flagCompleter(f); complete != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, complete) // it fails for one that has another already
		}
	})
	for _, sub := range c.Commands() {
		completeAll(sub)
	}
}

// arguments completes what the line on usage tells of: one word for each argument, the last of them for all that
// follow where it ends in dots.
func arguments(wanted string) completer {
	words := strings.Fields(wanted)
	last := words[len(words)-1]
	repeats := strings.HasSuffix(strings.TrimSuffix(last, "]"), "...")
	return func(c *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
		at := len(args)
		if repeats {
			at = min(at, len(words)-1)
		}
		if at >= len(words) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		switch word := strings.Trim(words[at], "[].="); word {
		case "JOB":
			return without(jobIDs, args)(c, args, begin)
		case "BOARD":
			return boards.Names(), cobra.ShellCompDirectiveDefault // or a file
		case "DEVICE":
			return deviceNames(c, args, begin)
		case "NAME", "ID", "BATCH":
			return nil, cobra.ShellCompDirectiveNoFileComp
		case "DIR":
			return nil, cobra.ShellCompDirectiveFilterDirs
		default:
			return files(word)
		}
	}
}

func files(word string) ([]string, cobra.ShellCompDirective) {
	if ends := fileNames[word]; ends != nil {
		return ends, cobra.ShellCompDirectiveFilterFileExt
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// flagCompleter completes the values of a flag; nil leaves them to the shell, which takes them for files.
func flagCompleter(f *pflag.Flag) completer {
	if values := flagValues[f.Name]; values != nil {
		return oneOf(f, values)
	}
	kind, _ := pflag.UnquoteUsage(f)
	switch {
	case f.Name == "target" && kind == "file":
		return targetNames
	case f.Name == "device":
		return deviceNames
	case kind == "folder":
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
	case fileNames[kind] != nil:
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) { return files(kind) }
	case kind == "file" || kind == "command" || kind == "interpreter":
		return nil
	}
	return cobra.NoFileCompletions
}

// oneOf completes one of some words, or, in a list, the last one of it.
func oneOf(f *pflag.Flag, values []string) completer {
	_, list := f.Value.(pflag.SliceValue)
	return func(_ *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
		before := ""
		if i := strings.LastIndexByte(begin, ','); list && i >= 0 {
			before = begin[:i+1]
		}
		var all []string
		for _, v := range values {
			if strings.HasPrefix(before+v, begin) {
				all = append(all, before+v)
			}
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// targetNames completes a target's name, which may be a file's.
func targetNames(_ *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
	known := append(append(target.Names(), "cuda", "opencl", "gpu-sim", "reference"), target.Boards()...)
	known = slices.DeleteFunc(known, func(name string) bool { return !strings.HasPrefix(name, begin) })
	return known, cobra.ShellCompDirectiveDefault
}

// without leaves out what was given already.
func without(complete completer, given []string) completer {
	return func(c *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
		found, directive := complete(c, args, begin)
		return slices.DeleteFunc(found, func(one string) bool {
			word, _, _ := strings.Cut(one, "\t")
			return slices.Contains(given, word)
		}), directive
	}
}

// jobIDs completes the ids of jobs, newest first, with their names and states.
func jobIDs(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return askTracker(c, func(ctx context.Context, tracker *client.Client) (found []string, err error) {
		all, _, err := tracker.ListJobs(ctx, client.JobFilter{})
		for _, j := range all {
			found = append(found, cobra.CompletionWithDesc(j.GetId(), j.GetSpec().GetName()+", "+names.JobState(j.GetState())))
		}
		return found, err
	}, cobra.ShellCompDirectiveKeepOrder)
}

// deviceNames completes the names of devices, with their states.
func deviceNames(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return askTracker(c, func(ctx context.Context, tracker *client.Client) (found []string, err error) {
		all, err := tracker.Devices(ctx)
		for _, d := range all {
			row := newDeviceRow(d)
			found = append(found, cobra.CompletionWithDesc(row.Device, row.status()))
		}
		return found, err
	}, cobra.ShellCompDirectiveDefault)
}

// askTracker has the tracker of a command complete something. One that does not answer completes nothing.
func askTracker(c *cobra.Command, question func(context.Context, *client.Client) ([]string, error), directive cobra.ShellCompDirective) ([]string, cobra.ShellCompDirective) {
	directive |= cobra.ShellCompDirectiveNoFileComp
	if err := fromEnvironment(c); err != nil {
		return nil, directive
	}
	tracker, err := trackerOf(c)
	if err != nil {
		cobra.CompErrorln(err.Error())
		return nil, directive
	}
	defer tracker.Close()
	ctx, cancel := context.WithTimeout(c.Context(), completeWithin)
	defer cancel()
	found, err := question(ctx, tracker)
	if err != nil {
		cobra.CompErrorln(err.Error())
		return nil, directive
	}
	return found, directive
}

// trackerOf is the tracker that the flags of a command name.
func trackerOf(c *cobra.Command) (*client.Client, error) {
	text := func(name string) string { value, _ := c.Flags().GetString(name); return value }
	flags := trackerFlags{addr: text("tracker"), proof: caller.Proof{TokenFile: text("token-file")}}
	flags.proof.TLS.CA, flags.proof.TLS.Cert, flags.proof.TLS.Key = text("tls-ca"), text("tls-cert"), text("tls-key")
	if flags.addr == "" {
		return nil, errors.New("no tracker is named: give --tracker, or set TILTH_TRACKER")
	}
	return flags.dial(slog.New(slog.DiscardHandler))
}
