package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
)

// buildRow identifies a build of the program.
type buildRow struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"`
	GoVersion string `json:"go_version"`
	Platform  string `json:"platform"`
	// LoadsPackages is false for a static build, which cannot run packages on processors.
	LoadsPackages bool `json:"loads_packages"`
}

// thisBuild describes this program.
func thisBuild() buildRow {
	return buildRow{
		Version: version, Commit: cmp.Or(commit, stampedCommit(), "unknown"), GoVersion: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, LoadsPackages: aot.Loads,
	}
}

// stampedCommit returns the commit recorded by the go command, as a fallback for the linker's.
func stampedCommit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

func (b buildRow) String() string {
	kind := ""
	if !b.LoadsPackages {
		kind = ", static"
	}
	return fmt.Sprintf("tilth version %s (commit %.12s, %s, %s%s)", b.Version, b.Commit, b.GoVersion, b.Platform, kind)
}

func newVersion(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print the version, its commit, and what it was built with and for",
		Example: "  tilth version\n  tilth version --json",
		Args:    cobra.NoArgs,
	}
	jsonFlag(c, &asJSON)
	return a.leaf(c, func(context.Context, []string) error {
		if asJSON {
			return writeJSON(a.stdout, thisBuild())
		}
		_, err := io.WriteString(a.stdout, thisBuild().String()+"\n")
		return err
	})
}
