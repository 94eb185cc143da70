package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/wire"
)

const doctorLong = `Check whether this machine meets the needs of tuning, and what disturbs measurements.

Each check is well, has a cost, prevents tuning, or is unknown on this machine. Problems
are listed with their cost and remedy. Nothing is changed. The exit status is 1 if
something prevents tuning.`

func newDoctor(a *app) *cobra.Command {
	var compiler string
	var log logFlag
	var busy machineFlags
	c := &cobra.Command{
		Use: "doctor", Short: "Check whether this machine is suitable for tuning", Long: doctorLong,
		Example: "  tilth doctor\n  tilth doctor --json | jq '.[] | select(.state != \"well\")'",
	}
	compilerFlag(c, &compiler)
	a.tableFlags(c)
	log.add(c, slog.LevelWarn)
	busy.add(c, "this machine")
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		machine := farm.Doctor{Root: os.DirFS("/"), Compiler: compiler}
		machine.Data, machine.NoData = dataDir()
		machine.Lock, machine.NoLock = busy.lock(log.logger(a.stderr), nil)
		if errors.Is(machine.NoLock, hostlock.ErrInUse) {
			return machine.NoLock
		}
		findings, err := machine.Examine(ctx)
		if err != nil {
			return err
		}
		if err := a.show(findings, func(w io.Writer) error { return writeFindings(w, findings) }); err != nil {
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

func newHealth(a *app) *cobra.Command {
	var addr string
	var live bool
	var timeout time.Duration
	var proof certs.ClientConfig
	c := &cobra.Command{
		Use: "health", Short: "Check the health of a service",
		Long: `Check the health of a service that serves HTTP: a tracker, or an agent with --http.

A tracker is ready if it can write and its disk has space. An agent is ready if a
tracker answers it. The exit status is 0 if the service is ready, and 1, with the
reason, if it is not.`,
		Example: `  tilth health                                 # the tracker on this machine
  tilth health --http 127.0.0.1:9192           # an agent
  tilth health --http localhost:9191 --tls-ca certs/ca.crt
  tilth health --live                          # only that it answers`,
	}
	c.Flags().StringVar(&addr, "http", defaultHTTP, "`address` that it serves HTTP on: host:port or unix:PATH")
	c.Flags().BoolVar(&live, "live", false, "check only that it is alive, not that it is ready")
	c.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "how long to wait for the answer")
	atLeast(c, 1, "timeout")
	c.Flags().StringVar(&proof.CA, "tls-ca", "", "`file` of the authorities that sign its certificate, or system; enables TLS")
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		var side *tls.Config
		if proof.CA != "" {
			var err error
			if side, err = proof.Config(); err != nil {
				return err
			}
		}
		path := wire.ReadyPath
		if live {
			path = wire.LivePath
		}
		if err := wire.AskHealth(ctx, addr, path, side); err != nil {
			return err
		}
		fmt.Fprintln(a.stdout, "ok")
		return nil
	})
}
