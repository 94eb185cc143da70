package simulate

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/records/registry"
)

// Options describe a farm and its faults. Devices, Jobs and Time are required; see SetDefaults for the others.
type Options struct {
	// Devices is the number of runners, Builders and Tuners those of the other agents.
	Devices, Builders, Tuners int
	// Jobs are open at any time: when one has its trials the next is submitted.
	Jobs int
	// Tasks is the number of tasks of a job, out of a pool of so many Workloads.
	Tasks, Workloads int
	// Trials is how many a job has over all its tasks.
	Trials int
	// Batch is how many candidates are proposed together, and InFlight how many batches of a job are under way at
	// most.
	Batch, InFlight int
	// TraceBytes is the size of a candidate's trace, Samples how many times are measured of one that works.
	TraceBytes, Samples int
	// Rate bounds the candidates proposed in a second over all jobs; 0 = as many as the tracker takes.
	Rate float64
	// Time is how long is measured, after all agents have joined and Warmup has passed.
	Time, Warmup time.Duration
	// BuildTime is the mean time of a batch at a builder, TrialTime that of a candidate on a device. Single times vary
	// between half and twice as much.
	BuildTime, TrialTime time.Duration
	// ReportInterval is how long a device holds back results to report them together.
	ReportInterval time.Duration
	// Connections is how many connections the agents share; 0 = each has its own.
	Connections int
	Failures    Failures
	Seed        uint64
	// Store is the address of a PostgreSQL database that nothing has used yet; empty = the records are in a file.
	Store string
	// Trackers serve the database side by side, which has so many Shards; 0 trackers = 1, 0 shards = one for each.
	Trackers, Shards int
	// Records is how many the store has before the farm begins.
	Records int
	// Dir keeps the trackers' data; it must be empty or absent, or hold what an earlier run made.
	Dir string
	// Tracker is the command line that serves a tracker; see ServeTracker.
	Tracker []string
	// HTTP is where the first tracker's pages are: host:port; empty = at any port of the loopback.
	HTTP string
	// Logger receives log messages; nil discards them.
	Logger *slog.Logger
}

// Failures say how often things go wrong; all but MeanLife and Kills are probabilities.
type Failures struct {
	// Build and Crash are those of a candidate, at the builder and on the device.
	Build, Crash float64
	// Infra is that of a whole lease, through no fault of its candidates.
	Infra float64
	// LostAnswers is that of a call which takes effect and whose answer never comes.
	LostAnswers float64
	// MeanLife is the mean life of an agent, after which it vanishes or is drained, and returns under its
	// name. 0 means forever.
	MeanLife time.Duration
	// Kills is how many times a tracker, of several any of them, is killed and started again while all are measured.
	Kills int
}

const (
	// batchesInFlight over all jobs are enough for a thousand batches a second at the times of a real farm.
	batchesInFlight = 1600
	// mostInFlight is the tracker's limit per job.
	leastInFlight, mostInFlight = 16, 64
)

// SetDefaults sets unset options.
func (o *Options) SetDefaults() {
	set := func(value *int, fallback int) {
		if *value == 0 {
			*value = fallback
		}
	}
	set(&o.Builders, max(2, o.Devices/100))
	set(&o.Tuners, max(1, o.Jobs/16))
	set(&o.Tasks, 20)
	set(&o.Workloads, 1000)
	set(&o.Trials, 20000)
	set(&o.Batch, wire.BatchCandidates)
	set(&o.InFlight, min(mostInFlight, max(leastInFlight, batchesInFlight/max(1, o.Jobs))))
	set(&o.TraceBytes, 300)
	set(&o.Samples, 8)
	if o.ReportInterval == 0 {
		o.ReportInterval = time.Second
	}
	set(&o.Trackers, 1)
	set(&o.Shards, o.Trackers)
	if o.Connections == 0 || o.Connections > o.agents() {
		o.Connections = o.agents()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

func (o *Options) agents() int { return o.Devices + o.Builders + o.Tuners }

// Check validates the options.
func (o *Options) Check() error {
	if o.Devices < 1 {
		return fmt.Errorf("devices is %d: at least 1 is needed", o.Devices)
	}
	if o.Jobs < 1 {
		return fmt.Errorf("jobs is %d: at least 1 is needed", o.Jobs)
	}
	for _, n := range []int{o.Builders, o.Tuners, o.Tasks, o.Workloads, o.Trials, o.Batch, o.InFlight, o.TraceBytes, o.Samples, o.Connections, o.Records, o.Failures.Kills, o.Trackers, o.Shards} {
		if n < 0 {
			return errors.New("a number is negative")
		}
	}
	for _, d := range []time.Duration{o.Warmup, o.BuildTime, o.TrialTime, o.ReportInterval, o.Failures.MeanLife} {
		if d < 0 {
			return errors.New("a time is negative")
		}
	}
	for _, p := range []float64{o.Failures.Build, o.Failures.Crash, o.Failures.Infra, o.Failures.LostAnswers} {
		if !(p >= 0 && p < 1) {
			return fmt.Errorf("a probability is %v, not from 0 to less than 1", p)
		}
	}
	if o.Time <= 0 {
		return errors.New("time is not positive")
	}
	if !(o.Rate >= 0) {
		return fmt.Errorf("the rate is %v: want a positive number, or 0", o.Rate)
	}
	return o.checkStore()
}

// checkStore validates the store and its servers.
func (o *Options) checkStore() error {
	if o.Store == "" {
		if o.Trackers > 1 || o.Shards > 1 {
			return errors.New("a file has one tracker and one shard: name a database for more (store)")
		}
		return nil
	}
	kind, err := registry.Of(o.Store)
	if err != nil {
		return err
	}
	if kind.Shard == nil {
		return errors.New("the store is neither empty (a file) nor the address of a database")
	}
	if o.Shards > wire.MostShards {
		return fmt.Errorf("shards is %d: at most %d are possible", o.Shards, wire.MostShards)
	}
	if o.Trackers > o.Shards {
		return fmt.Errorf("trackers is %d and shards %d: each tracker needs one at least", o.Trackers, o.Shards)
	}
	return nil
}
