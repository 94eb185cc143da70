package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/internal/wire"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
	"github.com/tilth-dev/tilth/tracker/state"
)

// maxSeries bounds the owners and classes with individual metrics; those with the most jobs or waiting work come
// first. Clients choose the names, so their number must be bounded.
const maxSeries = 1000

// newStateCollector returns the collector of the figures of the state machine.
func newStateCollector(from Sources) prometheus.Collector {
	type F = state.Figures
	type emitter = func(value float64, labels ...string)
	byOwner := func(name, help string, value func(policy.Usage) float64) family[F] {
		return gauges(name, help, []string{"owner"}, func(f F, emit emitter) {
			for _, owner := range greatest(f.Owners, func(u policy.Usage) int { return u.Jobs }) {
				emit(value(f.Owners[owner]), owner)
			}
		})
	}
	return &collector[F]{from.State, []family[F]{
		gauge("leases", "Current leases.", func(f F) float64 { return float64(f.Leases) }),
		gauge("retries_waiting", "Failed work waiting for a retry.", func(f F) float64 { return float64(f.Retries) }),
		gauge("outage_silent_agents", "Silent agents during an outage; 0 without an outage.", func(f F) float64 { return float64(f.Silent) }),
		gauge("spec_bytes", "Job specifications in memory.", func(f F) float64 { return float64(f.SpecBytes) }),
		gauge("candidate_bytes", "Candidates in memory.", func(f F) float64 { return float64(f.CandidateBytes) }),
		gauge("ended_jobs", "Retained ended jobs.", func(f F) float64 { return float64(f.Ended) }),
		gauge("ended_jobs_bytes", "Stored size of retained ended jobs, without records.", func(f F) float64 { return float64(f.EndedBytes) }),
		gauge("waiting_agents", "Waiting requests for work.", func(f F) float64 { return float64(f.Waiters) }),
		gauge("watch_streams", "Open event streams.", func(F) float64 { return float64(from.Streams()) }),
		byOwner("owner_jobs", "Jobs that have not ended, by owner.", func(u policy.Usage) float64 { return float64(u.Jobs) }),
		byOwner("owner_trials", "Maximum number of trials of open jobs, by owner.", func(u policy.Usage) float64 { return float64(u.Trials) }),
		byOwner("owner_artifact_bytes", "Artifacts of batches that wait for a runner or are leased by one, by owner.",
			func(u policy.Usage) float64 { return float64(u.ArtifactBytes) }),
		gauges("queue_depth", "Work waiting for an agent, by kind and class of agent.", []string{"kind", "class"}, func(f F, emit emitter) {
			for _, need := range greatest(f.Queues, func(n int) int { return n }) {
				emit(float64(f.Queues[need]), wire.AgentKind(need.Kind), need.Class)
			}
		}),
		gauges("agents", "Known agents, by kind and state.", []string{"kind", "state"}, func(f F, emit emitter) {
			for a, n := range f.Agents {
				emit(float64(n), wire.AgentKind(a.Kind), wire.AgentState(a.State))
			}
		}),
		gauges("open_jobs", "Jobs that have not ended, by state.", []string{"state"}, each(func(f F) map[tilthv1.JobState]int { return f.Jobs }, wire.JobState)),
		gauges("waiting_jobs", "Jobs without progress, by reason.", []string{"reason"}, each(func(f F) map[tilthv1.WaitReason]int { return f.Reasons }, wire.WaitReason)),
		gauges("batches", "Batches in progress, by stage.", []string{"stage"}, each(func(f F) map[storev1.Stage]int { return f.Batches }, stageName)),
	}}
}

// each emits the counts of a map with the names of its keys.
func each[F any, K comparable, N int | int64](counts func(F) map[K]N, name func(K) string) func(F, func(float64, ...string)) {
	return func(f F, emit func(float64, ...string)) {
		for key, n := range counts(f) {
			emit(float64(n), name(key))
		}
	}
}

// greatest returns the keys with the largest values, at most maxSeries.
func greatest[K comparable, V any](of map[K]V, size func(V) int) []K {
	keys := slices.Collect(maps.Keys(of))
	if len(keys) > maxSeries {
		slices.SortFunc(keys, func(a, b K) int { return cmp.Compare(size(of[b]), size(of[a])) })
		keys = keys[:maxSeries]
	}
	return keys
}

func stageName(s storev1.Stage) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "STAGE_"))
}
