package tuner

import (
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func right(seconds float64) *tilthv1.Measurement {
	return &tilthv1.Measurement{Error: tilthv1.ErrorClass_ERROR_CLASS_NONE, LatencySeconds: seconds}
}

func failing(class tilthv1.ErrorClass, message string) *tilthv1.Measurement {
	return &tilthv1.Measurement{Error: class, Message: message}
}

// try adds n trials to a task.
func (t *task) try(n int, outcome func() *tilthv1.Measurement) {
	t.proposed += n
	for range n {
		t.record(outcome())
	}
}

// steady returns a task with the same latency in every trial.
func steady(weight, seconds float64, trials int) *task {
	t := newTask(0, nil, weight, known{})
	t.try(trials, func() *tilthv1.Measurement { return right(seconds) })
	return t
}

func TestHeavyTasksGetMoreTrials(t *testing.T) {
	light, heavy := newTask(0, nil, 1, known{}), newTask(1, nil, 4, known{})
	s := &scheduler{tasks: []*task{light, heavy}}
	latency := map[*task]float64{light: 1e-3, heavy: 1e-3}
	for range 60 {
		chosen := s.next()
		chosen.try(8, func() *tilthv1.Measurement {
			latency[chosen] *= 0.98 // endless progress
			return right(latency[chosen])
		})
	}
	if heavy.recorded <= light.recorded {
		t.Errorf("the task with four times the weight got %d trials, the other %d", heavy.recorded, light.recorded)
	}
}

func TestTaskThatStillGetsFasterIsChosen(t *testing.T) {
	flat, falling := steady(1, 1e-3, 64), newTask(1, nil, 1, known{})
	latency := 3e-3
	falling.try(64, func() *tilthv1.Measurement {
		latency *= 0.98
		return right(max(latency, 1e-3))
	})
	if s := (&scheduler{tasks: []*task{flat, falling}}); s.next() != falling {
		t.Error("the task that makes no progress was chosen")
	}
}

func TestTaskAtTheMachinesLimitYields(t *testing.T) {
	done, open := steady(1, 1e-3, 16), steady(1, 1e-3, 16)
	done.limit, open.limit = 0.98e-3, 0.3e-3
	if s := (&scheduler{tasks: []*task{done, open}}); s.next() != open {
		t.Error("the task at its limit was chosen")
	}
}

func TestTaskConverges(t *testing.T) {
	stuck := steady(1, 1e-3, patience+1)
	if s := (&scheduler{tasks: []*task{stuck}}); !stuck.converged() || s.next() != nil {
		t.Error("it is still tried")
	}
	late := steady(1, 1e-3, 4*patience)
	late.try(1, func() *tilthv1.Measurement { return right(0.9e-3) })
	late.try(patience, func() *tilthv1.Measurement { return right(1e-3) })
	if late.converged() {
		t.Error("a task whose last progress took long was given up as early")
	}
}

// TestWorkloadThatIsKnownIsOnlyConfirmed checks that trials of earlier jobs without progress count.
func TestWorkloadThatIsKnownIsOnlyConfirmed(t *testing.T) {
	latencies := []float64{2e-3, 0, 1e-3}
	for range 2 * patience {
		latencies = append(latencies, 1.1e-3)
	}
	again := newTask(0, nil, 1, newKnown(latencies))
	if again.converged() {
		t.Error("it converged without a trial")
	}
	again.try(firstBatch, func() *tilthv1.Measurement { return right(1.001e-3) })
	if !again.converged() {
		t.Errorf("after %d trials it is not confirmed", firstBatch)
	}
}

// TestUnconfirmedWorkloadsAreTunedAgain checks that earlier trials do not count if their best is slower now, and that
// improvements on its present latency count as progress.
func TestUnconfirmedWorkloadsAreTunedAgain(t *testing.T) {
	again := newTask(0, nil, 1, known{trials: 300, best: 1e-3, stale: 200})
	again.try(firstBatch, func() *tilthv1.Measurement { return right(1.04e-3) })
	if again.converged() {
		t.Error("it has converged")
	}
	again.try(patience, func() *tilthv1.Measurement { return right(1.02e-3) })
	if again.converged() || again.stale >= patience {
		t.Errorf("%d trials without progress", again.stale)
	}
	again.try(1, func() *tilthv1.Measurement { return right(1.02e-3) })
	if !again.converged() {
		t.Error("it goes on for ever")
	}
}

func TestTaskThatOnlyFailsDoesNotStarveTheOthers(t *testing.T) {
	bad, good := newTask(0, nil, 1, known{}), newTask(1, nil, 1, known{})
	s := &scheduler{tasks: []*task{bad, good}}
	latency := 1.0
	for range 40 {
		chosen := s.next()
		chosen.try(16, func() *tilthv1.Measurement {
			if chosen == bad {
				return failing(tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR, "does not compile")
			}
			latency *= 0.98
			return right(latency)
		})
	}
	if bad.proposed != maxFailures {
		t.Errorf("%d trials were spent on the task that fails, want %d", bad.proposed, maxFailures)
	}
}

func TestTaskWaitsForItsFirstResults(t *testing.T) {
	pending, measured := newTask(0, nil, 100, known{}), steady(1, 1e-6, 16)
	pending.proposed = 16
	if s := (&scheduler{tasks: []*task{pending, measured}}); s.next() != measured {
		t.Error("a second batch was given before the first one's results")
	}
}

func TestFailuresAreReportedByClass(t *testing.T) {
	bad := newTask(0, nil, 1, known{})
	bad.try(2, func() *tilthv1.Measurement { return failing(tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT, "off by one") })
	bad.try(1, func() *tilthv1.Measurement {
		return failing(tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR, "no such register")
	})
	const want = "1 compile_error, the first said: no such register; 2 wrong_result, the first said: off by one"
	if got := bad.failures.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJobWithoutProgressStopsEarly(t *testing.T) {
	j := &job{budget: &tilthv1.Budget{EarlyStop: 10}, scheduler: scheduler{tasks: []*task{newTask(0, nil, 1, known{})}}}
	for k := range 12 {
		if j.stopped() != (k > 10) {
			t.Fatalf("after %d trials: stopped is %v", k, j.stopped())
		}
		j.tasks[0].record(right(1e-3))
		j.progressed(k == 0)
	}
}

// TestCheapTrialsComeFirst uses two tasks of equal expected benefit. The one whose trials take a quarter of the time
// must get more of them.
func TestCheapTrialsComeFirst(t *testing.T) {
	cheap, dear := newTask(0, nil, 1, known{}), newTask(1, nil, 1, known{})
	s := &scheduler{tasks: []*task{dear, cheap}}
	latency := map[*task]float64{cheap: 1e-3, dear: 1e-3}
	seconds := map[*task]float64{cheap: 0.02, dear: 0.08}
	for range 60 {
		chosen := s.next()
		chosen.try(8, func() *tilthv1.Measurement {
			latency[chosen] *= 0.98 // endless progress
			m := right(latency[chosen])
			m.BuildSeconds, m.RunSeconds = seconds[chosen]*0.75, seconds[chosen]*0.25
			return m
		})
	}
	if cheap.recorded <= dear.recorded || dear.recorded == 0 {
		t.Errorf("%d cheap trials and %d dear ones, want more cheap ones and some of both", cheap.recorded, dear.recorded)
	}
}
