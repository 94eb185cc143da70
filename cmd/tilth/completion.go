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
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/runner/boards"
)

// completeWithin bounds a completion that asks a tracker, because a user is waiting.
const completeWithin = 2 * time.Second

type completer = cobra.CompletionFunc

// fileNames maps the arguments in usage lines to file extensions. The shell completes other files.
var fileNames = map[string][]string{
	"MODEL.onnx": {"onnx", "onnx.gz"}, "model": {"onnx", "onnx.gz"},
	"PACKAGE.tar": {"tar"}, "BASELINE.tar": {"tar"}, "package": {"tar"},
	"FILE.jsonl": {"jsonl", "jsonl.gz"},
	".npz":       {"npz"},
}

// completeAll sets up completion of arguments and flag values, for a command and its subcommands.
func completeAll(c *cobra.Command) {
	if _, wanted, takes := strings.Cut(c.Use, " "); takes && c.ValidArgsFunction == nil && c.ValidArgs == nil {
		c.ValidArgsFunction = arguments(wanted)
	} else if c.ValidArgs == nil && !c.HasSubCommands() {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if complete := flagCompleter(f); complete != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, complete) // it fails if the flag already has a completion
		}
	})
	for _, sub := range c.Commands() {
		completeAll(sub)
	}
}

// arguments completes the arguments of a usage line. The last one repeats if it ends in dots.
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

// flagCompleter returns the completer of a flag's values, or nil for files, which the shell completes.
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

// oneOf completes one of some values, or the last element of a list.
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

// targetNames completes the name or an alias of a target, or a file.
func targetNames(_ *cobra.Command, _ []string, begin string) (known []string, _ cobra.ShellCompDirective) {
	for _, t := range registry.Targets() {
		for _, name := range append([]string{t.Name}, t.Aliases...) {
			if strings.HasPrefix(name, begin) {
				known = append(known, cobra.CompletionWithDesc(name, t.Description))
			}
		}
	}
	return known, cobra.ShellCompDirectiveDefault
}

// without omits arguments given before.
func without(complete completer, given []string) completer {
	return func(c *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
		found, directive := complete(c, args, begin)
		return slices.DeleteFunc(found, func(one string) bool {
			word, _, _ := strings.Cut(one, "\t")
			return slices.Contains(given, word)
		}), directive
	}
}

// jobIDs completes job ids, newest first, with names and states.
func jobIDs(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return askTracker(c, func(ctx context.Context, tracker *client.Client) (found []string, err error) {
		all, _, err := tracker.ListJobs(ctx, client.JobFilter{})
		for _, j := range all {
			found = append(found, cobra.CompletionWithDesc(j.GetId(), j.GetSpec().GetName()+", "+wire.JobState(j.GetState())))
		}
		return found, err
	}, cobra.ShellCompDirectiveKeepOrder)
}

// deviceNames completes device names, with their states.
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

// askTracker completes with data of the command's tracker, or not at all if it does not answer.
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

// trackerOf returns a client of the tracker that the flags of a command name.
func trackerOf(c *cobra.Command) (*client.Client, error) {
	text := func(name string) string { value, _ := c.Flags().GetString(name); return value }
	flags := trackerFlags{addr: text("tracker"), callerFlags: callerFlags{certs.Proof{TokenFile: text("token-file")}}}
	flags.proof.TLS.CA, flags.proof.TLS.Cert, flags.proof.TLS.Key = text("tls-ca"), text("tls-cert"), text("tls-key")
	if flags.addr == "" {
		return nil, errors.New("no tracker is named: give --tracker, or set TILTH_TRACKER")
	}
	return flags.dial(slog.New(slog.DiscardHandler))
}
