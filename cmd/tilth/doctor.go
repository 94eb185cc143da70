package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/humanize"
)

const doctorLong = `Check whether this machine meets the needs of tuning, and what disturbs measurements.

Each check is well, has a cost, prevents tuning, or is unknown on this machine. Problems
are listed with their cost and remedy. Nothing is changed. The exit status is 1 if
something prevents tuning.`

func newDoctor(a *app) *cobra.Command {
	var compiler string
	var asJSON bool
	var log logFlag
	c := &cobra.Command{
		Use: "doctor", Short: "Check whether this machine is suitable for tuning", Long: doctorLong,
		Example: "  tilth doctor\n  tilth doctor --json | jq '.[] | select(.state != \"well\")'",
		Args:    cobra.NoArgs,
	}
	compilerFlag(c, &compiler)
	tableFlags(a, c, &asJSON)
	log.add(c, slog.LevelWarn)
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		machine := farm.Doctor{Root: os.DirFS("/"), Compiler: compiler}
		machine.Data, machine.NoData = dataDir()
		machine.Lock, machine.NoLock = hostlock.Announced(log.logger(a.stderr))
		findings, err := machine.Examine(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			err = writeJSON(a.stdout, findings)
		} else {
			err = writeFindings(a.stdout, findings)
		}
		if err != nil {
			return err
		}
		return farm.CannotTune(findings)
	})
}

// writeFindings writes all findings as a table, followed by the problems in sentences.
func writeFindings(w io.Writer, findings []farm.Finding) error {
	table := humanize.NewTable("CHECK", "STATE", "FOUND").States("STATE").Whole("CHECK", "STATE", "FOUND")
	for _, f := range findings {
		table.Row(f.Check, string(f.State), f.Found)
	}
	if err := table.Write(w); err != nil {
		return err
	}
	for _, f := range findings {
		if f.Cost == "" && f.Remedy == "" {
			continue
		}
		lines := fmt.Sprintf("\n%s: %s\n", f.Check, cmp.Or(f.Cost, string(f.State)))
		if f.Remedy != "" {
			lines += "  remedy: " + f.Remedy + "\n"
		}
		if _, err := io.WriteString(w, lines); err != nil {
			return err
		}
	}
	return nil
}
