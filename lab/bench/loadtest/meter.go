package loadtest

import (
	"slices"
	"sync"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// meter times calls while it is open.
//
// A lease's latency starts when both the agent's call and the call that created the work have arrived. It ends when
// the agent has the answer, so it includes the other call's sync to disk. Work that returned to its queue is not
// counted, because the time of its return is unknown. A result's latency is that of the call that reports it.
type meter struct {
	mu    sync.Mutex
	open  bool
	ready map[string]time.Time // by the first candidate's digest: submission of work
	lease []time.Duration
	// Latencies of calls that report results, and of all calls.
	result []time.Duration
	calls  int
}

func newMeter() *meter { return &meter{ready: map[string]time.Time{}} }

// sends notes the start of a call.
func (m *meter) sends(request any, at time.Time) {
	switch r := request.(type) {
	case *tilthv1.ProposeBatchRequest:
		m.note(r.GetCandidates()[0].GetDigest(), at)
	case *tilthv1.ReportBuildRequest:
		for _, o := range r.GetOutcomes() {
			if o.GetError() == tilthv1.ErrorClass_ERROR_CLASS_NONE {
				m.note(o.GetCandidate(), at)
				return
			}
		}
	}
}

func (m *meter) note(digest string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready[digest] = at
}

// received notes the answer of a call.
func (m *meter) received(request, response any, began, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	switch r := response.(type) {
	case *tilthv1.LeaseWorkResponse:
		m.leased(r, began, now)
	case *tilthv1.ReportMeasurementsResponse:
		if m.open {
			m.result = append(m.result, now.Sub(began))
		}
	}
}

func (m *meter) leased(r *tilthv1.LeaseWorkResponse, began, now time.Time) {
	candidates := r.GetBuild().GetCandidates()
	if candidates == nil {
		candidates = r.GetMeasure().GetCandidates()
	}
	if len(candidates) == 0 {
		return
	}
	ready, known := m.ready[candidates[0].GetDigest()]
	delete(m.ready, candidates[0].GetDigest())
	if !known || !m.open {
		return
	}
	if ready.After(began) {
		began = ready
	}
	m.lease = append(m.lease, now.Sub(began))
}

// begin opens the meter.
func (m *meter) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open, m.calls = true, 0
}

// end closes the meter. It returns the number of calls answered since it was opened, and the latencies of leases and
// reports.
func (m *meter) end() (calls int, leases, reports []time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open = false
	return m.calls, m.lease, m.result
}

// quantile returns the quantile of the times in seconds, or 0.
func quantile(times []time.Duration, part float64) float64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	at := min(int(part*float64(len(times))), len(times)-1)
	return times[at].Seconds()
}
