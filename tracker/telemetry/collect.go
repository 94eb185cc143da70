package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/wire"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
	"github.com/tilth-dev/tilth/tracker/state"
)

// collector exports metrics that are computed from a snapshot of the state on demand.
type collector[S any] struct {
	snapshot func() S
	metrics  []metric[S]
}

// metric is a metric of a snapshot. collect passes each of its series to emit. A scrape reports its error.
type metric[S any] struct {
	desc    *prometheus.Desc
	kind    prometheus.ValueType
	collect func(of S, emit emitFunc) error
}

type emitFunc func(value float64, labels ...string)

// Describe implements prometheus.Collector.
func (c *collector[S]) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector[S]) Collect(ch chan<- prometheus.Metric) {
	of := c.snapshot()
	for _, m := range c.metrics {
		err := m.collect(of, func(value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
		})
		if err != nil {
			ch <- prometheus.NewInvalidMetric(m.desc, err)
		}
	}
}

// desc describes a metric of the tracker.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tilth_tracker_"+name, help, labels, nil)
}

// gauge returns a gauge of the tracker with a single series.
func gauge[S any](name, help string, value func(of S) float64) metric[S] {
	return gauges(name, help, nil, func(of S, emit emitFunc) { emit(value(of)) })
}

// gauges returns a gauge of the tracker with labels.
func gauges[S any](name, help string, labels []string, collect func(of S, emit emitFunc)) metric[S] {
	return metric[S]{desc(name, help, labels...), prometheus.GaugeValue, func(of S, emit emitFunc) error {
		collect(of, emit)
		return nil
	}}
}

// counted returns the metric as a counter.
func (m metric[S]) counted() metric[S] {
	m.kind = prometheus.CounterValue
	return m
}

// figures are those of the state machine, with the owners that have metrics.
type figures struct {
	state.Figures
	owners []string
}

func newStateCollector(from Sources) prometheus.Collector {
	snapshot := func() figures {
		f := from.State()
		return figures{f, greatest(f.Owners, func(u policy.Usage) int { return u.Jobs })}
	}
	ofOwner := func(name, help string, value func(policy.Usage) int64) metric[figures] {
		return gauges("owner_"+name, help, []string{"owner"}, func(f figures, emit emitFunc) {
			for _, owner := range f.owners {
				emit(float64(value(f.Owners[owner])), owner)
			}
		})
	}
	return &collector[figures]{snapshot, []metric[figures]{
		gauges("queue_depth", "Work waiting for an agent, by kind and class of agent.", []string{"kind", "class"}, func(f figures, emit emitFunc) {
			for _, need := range greatest(f.Queues, func(n int) int { return n }) {
				emit(float64(f.Queues[need]), wire.AgentKind(need.Kind), need.Class)
			}
		}),
		by("open_jobs", "Jobs that have not ended, by state.", "state", wire.JobState, func(f figures) map[tilthv1.JobState]int { return f.Jobs }),
		by("batches", "Batches in progress, by stage.", "stage",
			func(s storev1.Stage) string { return strings.ToLower(strings.TrimPrefix(s.String(), "STAGE_")) },
			func(f figures) map[storev1.Stage]int { return f.Batches }),
		by("waiting_jobs", "Jobs without progress, by reason.", "reason", wire.WaitReason,
			func(f figures) map[tilthv1.WaitReason]int { return f.Reasons }),
		gauges("agents", "Known agents, by kind and state.", []string{"kind", "state"}, func(f figures, emit emitFunc) {
			for a, n := range f.Agents {
				emit(float64(n), wire.AgentKind(a.Kind), wire.AgentState(a.State))
			}
		}),
		ofOwner("jobs", "Jobs that have not ended, by owner.", func(u policy.Usage) int64 { return int64(u.Jobs) }),
		ofOwner("trials", "Maximum number of trials of open jobs, by owner.", func(u policy.Usage) int64 { return int64(u.Trials) }),
		ofOwner("artifact_bytes", "Artifacts of batches that wait for a runner or are leased by one, by owner.",
			func(u policy.Usage) int64 { return u.ArtifactBytes }),
		gauge("leases", "Current leases.", func(f figures) float64 { return float64(f.Leases) }),
		gauge("retries_waiting", "Failed work waiting for a retry.", func(f figures) float64 { return float64(f.Retries) }),
		gauge("outage_silent_agents", "Silent agents during an outage; 0 without an outage.", func(f figures) float64 { return float64(f.Silent) }),
		gauge("spec_bytes", "Job specifications in memory.", func(f figures) float64 { return float64(f.SpecBytes) }),
		gauge("candidate_bytes", "Candidates in memory.", func(f figures) float64 { return float64(f.CandidateBytes) }),
		gauge("ended_jobs", "Retained ended jobs.", func(f figures) float64 { return float64(f.Ended) }),
		gauge("ended_jobs_bytes", "Stored size of retained ended jobs, without records.", func(f figures) float64 { return float64(f.EndedBytes) }),
		gauge("waiting_agents", "Waiting requests for work.", func(f figures) float64 { return float64(f.Waiters) }),
		gauge("watch_streams", "Open event streams.", func(figures) float64 { return float64(from.Streams()) }),
	}}
}

// by returns a gauge of counts by a value with a name.
func by[K comparable](name, help, label string, nameOf func(K) string, counts func(figures) map[K]int) metric[figures] {
	return gauges(name, help, []string{label}, func(f figures, emit emitFunc) {
		for k, n := range counts(f) {
			emit(float64(n), nameOf(k))
		}
	})
}

// maxSeries bounds the owners and classes with individual metrics; those with the most jobs or waiting work come
// first. Clients choose the names, so their number must be bounded.
const maxSeries = 1000

// greatest returns the keys with the largest values, at most maxSeries.
func greatest[K comparable, V any](of map[K]V, size func(V) int) []K {
	keys := slices.Collect(maps.Keys(of))
	if len(keys) > maxSeries {
		slices.SortFunc(keys, func(a, b K) int { return cmp.Compare(size(of[b]), size(of[a])) })
		keys = keys[:maxSeries]
	}
	return keys
}

// shownJobs bounds the jobs with individual metrics. The oldest open jobs come first.
const shownJobs = 200

// newJobCollector returns the progress of open jobs. Ended jobs have no metrics, which bounds the number of series.
func newJobCollector(s Sources) prometheus.Collector {
	ofJob := func(name, help string, value func(j state.JobFigures) (v float64, known bool)) metric[[]state.JobFigures] {
		return gauges("job_"+name, help, []string{"job", "name"}, func(jobs []state.JobFigures, emit emitFunc) {
			for _, j := range jobs {
				if v, known := value(j); known {
					emit(v, j.ID, j.Name)
				}
			}
		})
	}
	return &collector[[]state.JobFigures]{func() []state.JobFigures { return s.Jobs(shownJobs) }, []metric[[]state.JobFigures]{
		ofJob("best_seconds", "Latency of an open job's model with the best schedules so far; absent until every task has a schedule.",
			func(j state.JobFigures) (float64, bool) { return j.BestSeconds, j.Without == 0 }),
		ofJob("trials", "Trials recorded of an open job.",
			func(j state.JobFigures) (float64, bool) { return float64(j.Trials), true }),
		ofJob("tasks_without_best", "Tasks of an open job without a verified trial.",
			func(j state.JobFigures) (float64, bool) { return float64(j.Without), true }),
	}}
}

// shownDevices bounds the devices with individual metrics. Those with the largest drift come first.
const shownDevices = 100

// deviceFigures is the state of devices and their calibrations.
type deviceFigures struct {
	states   map[tilthv1.DeviceState]int
	warned   int
	furthest []state.DeviceFigures
}

func newDeviceCollector(s Sources) prometheus.Collector {
	ofDevice := func(name, help string, value func(state.DeviceFigures) float64) metric[deviceFigures] {
		return gauges("device_"+name, help, []string{"device"}, func(f deviceFigures, emit emitFunc) {
			for _, d := range f.furthest {
				emit(value(d), d.Name)
			}
		})
	}
	return &collector[deviceFigures]{func() (f deviceFigures) {
		f.states, f.warned, f.furthest = s.Devices(shownDevices)
		return f
	}, []metric[deviceFigures]{
		gauges("devices", "Known devices, by state.", []string{"state"}, func(f deviceFigures, emit emitFunc) {
			for number := range tilthv1.DeviceState_name {
				if state := tilthv1.DeviceState(number); state != tilthv1.DeviceState_DEVICE_STATE_UNSPECIFIED {
					emit(float64(f.states[state]), wire.DeviceState(state))
				}
			}
		}),
		gauge("warned_devices", "Devices that measure badly but still get work, as the only ones of their class.",
			func(f deviceFigures) float64 { return float64(f.warned) }),
		ofDevice("drift_ratio",
			"Slowdown of a device at its last calibration, relative to its reference: 0.04 is 4 %. Only of devices that drifted most.",
			func(d state.DeviceFigures) float64 { return d.Drift }),
		ofDevice("noise_ratio", "Standard deviation of the same calibration's samples, relative to their median.",
			func(d state.DeviceFigures) float64 { return d.Noise }),
	}}
}

// flag converts a boolean to a gauge value.
func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// newStoreCollector returns metrics of what the tracker has on disk.
func newStoreCollector(from Sources) prometheus.Collector {
	byReason := func(name, help string, counts func(artifact.Stats) map[string]int64) metric[artifact.Stats] {
		return gauges(name, help, []string{"reason"}, func(s artifact.Stats, emit emitFunc) {
			for why, n := range counts(s) {
				emit(float64(n), why)
			}
		}).counted()
	}
	c := &collector[artifact.Stats]{from.Artifacts, []metric[artifact.Stats]{
		gauge("store_size_bytes", "Size of the records file.", func(artifact.Stats) float64 { return float64(from.Store.SizeBytes()) }),
		gauge("store_away", "1 if the database server is unavailable.",
			func(artifact.Stats) float64 { return flag(from.Remote != nil && from.Remote.Unavailable() != nil) }),
		gauge("artifacts_away", "1 if the object store of artifacts is unavailable.", func(s artifact.Stats) float64 { return flag(s.Away) }),
		gauge("artifacts_size_bytes", "Size of artifacts, including unfinished uploads.", func(s artifact.Stats) float64 { return float64(s.UsedBytes) }),
		gauge("artifacts_files", "Stored artifacts.", func(s artifact.Stats) float64 { return float64(s.Files) }),
		gauge("artifacts_uploads", "Unfinished uploads, in progress or interrupted.", func(s artifact.Stats) float64 { return float64(s.Uploads) }),
		gauge("artifacts_unfinished_bytes", "Size of unfinished uploads.", func(s artifact.Stats) float64 { return float64(s.UnfinishedBytes) }),
		gauge("artifacts_checked_bytes_total", "Size of artifacts whose digests were verified.",
			func(s artifact.Stats) float64 { return float64(s.CheckedBytes) }).counted(),
		gauge("artifacts_unchecked_seconds", "Time since the oldest verification of an artifact.",
			func(s artifact.Stats) float64 { return max(time.Since(s.OldestCheck), 0).Seconds() }),
		byReason("artifacts_dropped_total", "Artifacts and parts of uploads that were dropped, by reason.",
			func(s artifact.Stats) map[string]int64 { return s.Dropped }),
		byReason("artifacts_refused_total", "Uploads refused for lack of space or by the limit of their identity, by reason.",
			func(s artifact.Stats) map[string]int64 { return s.Refused }),
		{desc("disk_free_bytes", "Free disk space of the records file or of the artifacts, whichever is less."), prometheus.GaugeValue,
			func(_ artifact.Stats, emit emitFunc) error {
				free, err := from.FreeBytes()
				if err == nil {
					emit(float64(free))
				}
				return err
			}},
	}}
	if file := from.File; file != nil {
		c.metrics = append(c.metrics,
			gauge("store_reusable_bytes", "Free pages within the records file.", func(artifact.Stats) float64 { return float64(file.FreeBytes()) }),
			gauge("store_damaged_rows_total", "Damaged rows found in the records file.",
				func(artifact.Stats) float64 { return float64(file.Damaged()) }).counted())
	}
	return c
}
