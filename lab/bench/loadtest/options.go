package loadtest

import (
	"errors"
	"fmt"
	"time"

	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/wire"
)

// Options describes a farm and its faults. Devices, Jobs and Time are required. SetDefaults sets the others.
type Options struct {
	// Devices, Builders and Tuners are the numbers of agents of each kind.
	Devices, Builders, Tuners int
	// Jobs is the number of open jobs. When one has its trials, the next is submitted.
	Jobs int
	// Tasks is the number of tasks of a job, from a pool of Workloads workloads.
	Tasks, Workloads int
	// Trials is the number of trials of a job over all its tasks.
	Trials int
	// Batch is the number of candidates per proposal. InFlight is the maximum number of batches of a job in progress.
	Batch, InFlight int
	// TraceBytes is the size of a candidate's trace, Samples the number of samples of a successful one.
	TraceBytes, Samples int
	// Rate limits the candidates proposed per second over all jobs; 0 means unlimited.
	Rate float64
	// Time is the duration of the measurement, after all agents have joined and Warmup has passed.
	Time, Warmup time.Duration
	// BuildTime is the mean time of a batch on a builder, TrialTime that of a candidate on a device. Individual times
	// vary between half and twice the mean.
	BuildTime, TrialTime time.Duration
	// ReportInterval is how long a device collects results before it reports them.
	ReportInterval time.Duration
	// Connections is the number of connections that the agents share; 0 means one each.
	Connections int
	Failures    Failures
	Seed        uint64
	// Store is the address of an empty PostgreSQL database; empty means a file.
	Store string
	// Trackers is the number of trackers that share the database (0 = 1), Shards its number of shards (0 = one each).
	Trackers, Shards int
	// Records is the number of records in the store at the start.
	Records int
	// Dir holds the trackers' data. It must be empty, absent, or from an earlier run. "" means a temporary folder.
	Dir string
	// HTTP is the listen address of a single tracker's pages. By default, it is any port of the loopback interface.
	HTTP string
	// Launcher is an optional command prefix of the trackers, such as taskset -c 0,1.
	Launcher []string
	// Tracker is the command line of a tracker; see ServeTracker. By default, it is this program with TrackerCommand.
	Tracker []string
}

// Failures holds failure rates. All but MeanLife and Kills are probabilities.
type Failures struct {
	// Build and Crash are per candidate, on the builder and on the device.
	Build, Crash float64
	// Infra is per lease, and not caused by its candidates.
	Infra float64
	// LostAnswers is per call: the call takes effect, but its answer is lost.
	LostAnswers float64
	// MeanLife is the mean life of an agent, after which it vanishes or is drained, and returns under its
	// name. 0 means forever.
	MeanLife time.Duration
	// Kills is the number of times that a tracker is killed and restarted during the measurement.
	Kills int
}

const (
	// batchesInFlight over all jobs suffice for a thousand batches per second with realistic times.
	batchesInFlight = 1600
	// maxInFlight is the tracker's limit per job.
	minInFlight, maxInFlight = 16, 64
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
	set(&o.InFlight, min(maxInFlight, max(minInFlight, batchesInFlight/max(1, o.Jobs))))
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
	kind, err := farm.StoreKindOf(o.Store)
	if err != nil {
		return err
	}
	if kind.Shard == nil {
		return errors.New("the store is neither empty (a file) nor the address of a database")
	}
	if o.Shards > wire.MaxShards {
		return fmt.Errorf("shards is %d: at most %d are possible", o.Shards, wire.MaxShards)
	}
	if o.Trackers > o.Shards {
		return fmt.Errorf("trackers is %d and shards %d: each tracker needs one at least", o.Trackers, o.Shards)
	}
	return nil
}
