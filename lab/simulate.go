package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/lab/bench/loadtest"
)

const simulateLong = `Put load on a tracker, and report what it sustains.

The tracker runs in a process of its own, over a real records file and real loopback
connections. Only the work of the agents is simulated: they wait as long as building
and measuring would take, fail as often, vanish and come back. At the end the tracker
is killed, and what it acknowledged is compared with the file.

With --store the records are in a real PostgreSQL database, which must be empty, and
--trackers processes serve its --shards side by side. Agents find the shards as those
of a real farm do. Each shard has as many of the jobs, of eight owners of its own.

Tuners propose batches of --batch candidates; a device reports their results together,
at most once a second, as a runner does. The latency of a lease counts from when both
the work and the agent are there until the agent has the lease, on disk.`

func newSimulate() *cobra.Command {
	var o loadtest.Options
	var asJSON bool
	var details, launcher string
	c := &cobra.Command{
		Use: "simulate", Short: "Load-test a tracker with simulated agents", Long: simulateLong,
		Example: `  lab simulate --devices 10000 --jobs 100 --time 60s
  lab simulate --devices 1000 --jobs 50 --rate 5000 --mean-life 1m --kills 3 --lost-answers 0.001
  createdb load && lab simulate --devices 1000 --jobs 50 --rate 2000 \
    --store postgres:///load --trackers 2 --shards 4`,
		Args: cobra.NoArgs,
	}
	simulateFlags(c, &o)
	jsonFlag(c, &asJSON)
	c.Flags().StringVar(&details, "details", "", "JSON `file` for everything that was observed")
	c.Flags().StringVar(&o.HTTP, "http", "", "`address` of the pages of a single tracker (default any port)")
	c.Flags().StringVar(&launcher, "launcher", "", "`command` that prepares something and becomes the tracker, e.g. 'taskset -c 0,1'")
	_ = c.MarkFlagRequired("devices") // the flag exists
	_ = c.MarkFlagRequired("jobs")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o.Launcher = strings.Fields(launcher)
		seen, err := loadtest.Run(c.Context(), o)
		if err != nil {
			return err
		}
		if details != "" {
			if err := filesystem.WriteFile(details, func(w io.Writer) error { return writeJSON(w, seen) }); err != nil {
				return err
			}
		}
		if asJSON {
			return writeJSON(c.OutOrStdout(), seen.Report)
		}
		return writeSimulation(c.OutOrStdout(), seen)
	}
	return c
}

func simulateFlags(c *cobra.Command, o *loadtest.Options) {
	f := c.Flags()
	f.IntVar(&o.Devices, "devices", 0, "devices: `number` of runners")
	f.IntVar(&o.Jobs, "jobs", 0, "`number` of jobs that are open at any time")
	f.DurationVar(&o.Time, "time", time.Minute, "how long to measure")
	f.DurationVar(&o.Warmup, "warmup", 5*time.Second, "how long to wait before measuring, once all agents have joined")
	f.Float64Var(&o.Rate, "rate", 21000, "candidates proposed in a second; 0 = as many as the tracker takes")
	f.IntVar(&o.Builders, "builders", 0, "`number` of builders, of 16 slots each (default one per 100 devices, at least 2)")
	f.IntVar(&o.Tuners, "tuners", 0, "`number` of tuners (default one per 16 jobs)")
	f.IntVar(&o.Tasks, "tasks", 0, "tasks of a job (default 20)")
	f.IntVar(&o.Workloads, "workloads", 0, "distinct workloads of all tasks (default 1000)")
	f.IntVar(&o.Trials, "trials", 0, "trials of a job (default 20000)")
	f.IntVar(&o.Batch, "batch", 0, "candidates proposed together (default 32, as a tuner's)")
	f.IntVar(&o.InFlight, "in-flight", 0, "batches of a job under way at most (default 16 to 64, 1600 over all jobs)")
	f.DurationVar(&o.BuildTime, "build-time", 500*time.Millisecond, "mean time to build a batch")
	f.DurationVar(&o.TrialTime, "trial-time", 30*time.Millisecond, "mean time to measure a candidate")
	f.IntVar(&o.Connections, "connections", 0, "connections that the agents share, to each tracker (default one each)")
	f.Float64Var(&o.Failures.Build, "build-failures", 0.03, "share of candidates that do not compile")
	f.Float64Var(&o.Failures.Crash, "crashes", 0.02, "share of candidates that crash on the device")
	f.Float64Var(&o.Failures.Infra, "infra-failures", 0.001, "share of leases that fail through no fault of the candidates")
	f.Float64Var(&o.Failures.LostAnswers, "lost-answers", 0, "share of calls whose answer never comes")
	f.DurationVar(&o.Failures.MeanLife, "mean-life", 10*time.Minute, "how long an agent lives until it vanishes or is drained, and comes back; 0 = for ever")
	f.IntVar(&o.Failures.Kills, "kills", 0, "how often to kill and restart the tracker, or any of several, while measuring")
	f.StringVar(&o.Store, "store", "", "`address` of an empty PostgreSQL database for the records, as postgres://USER@HOST:PORT/DATABASE (default a file)")
	f.IntVar(&o.Trackers, "trackers", 0, "`number` of trackers side by side on the database (default 1)")
	f.IntVar(&o.Shards, "shards", 0, "`number` of the database's shards (default one for each tracker)")
	f.IntVar(&o.Records, "records", 0, "records to fill the file or the database with beforehand")
	f.StringVar(&o.Dir, "data", "", "`folder` for the tracker's data, which is kept (default a temporary one)")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the failures and times")
}

func writeSimulation(w io.Writer, d *loadtest.Details) error {
	table := humanize.NewTable("WHAT", ">VALUE", "")
	row := func(what, format string, value any, note string) { table.Row(what, fmt.Sprintf(format, value), note) }
	row("devices", "%d", d.Devices, fmt.Sprintf("and %d other agents, over %d connections to each tracker", d.Agents-d.Devices, d.Connections))
	row("results/s", "%.0f", d.ResultsPerSecond, fmt.Sprintf("%d in %.1f s, %.1f in a report", d.Results, d.Seconds, d.ResultsPerReport))
	row("lease p50, ms", "%.2f", 1e3*d.LeaseP50, "")
	row("lease p99, ms", "%.2f", 1e3*d.LeaseP99, fmt.Sprintf("of %d leases", d.Leases))
	row("result p99, ms", "%.2f", 1e3*d.ResultP99, "")
	row("memory", "%s", humanize.Bytes(d.RSSBytes), fmt.Sprintf("at most; %s of it not the mapped file at the end", humanize.Bytes(d.RSSAnonymousBytes)))
	if d.Database == nil {
		row("fsyncs/s", "%.0f", d.FsyncsPerSecond, "")
	}
	row("tracker's CPU, us a result", "%.1f", 1e6*d.TrackerCPUSeconds, fmt.Sprintf("%.2f processors busy, %.0f calls/s", d.TrackerLoad, d.CallsPerSecond))
	row("agents' CPU, us a result", "%.1f", 1e6*d.AgentsCPUSeconds, "on the same machine")
	if d.Database != nil {
		if d.Database.CPUSeconds > 0 {
			row("database's CPU, us a result", "%.1f", 1e6*d.Database.CPUSeconds, "on the same machine")
		}
		row("transactions a result", "%.3f", d.Database.Transactions, "")
	}
	for i, t := range d.Trackers {
		row(fmt.Sprintf("tracker %d, results/s", i+1), "%.0f", t.ResultsPerSecond, fmt.Sprintf("in %s at most", humanize.Bytes(t.RSSBytes)))
	}
	row("restart, s", "%.2f", d.RestartSeconds, fmt.Sprintf("with %s of records", humanize.Bytes(d.FileBytes)))
	row("lost", "%d", d.Lost, "")
	row("duplicated", "%d", d.Duplicated, "")
	return table.Write(w)
}

// newSimulateTracker serves a tracker until its standard input ends.
func newSimulateTracker() *cobra.Command {
	return &cobra.Command{
		Use: loadtest.TrackerCommand, Short: "Serve a simulation's tracker", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return loadtest.ServeTracker(c.Context(), os.Stdin, os.Stdout)
		},
	}
}
