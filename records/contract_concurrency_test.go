package records_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// writesAreStoredInTheOrderOfTheCommits runs many writers that each update a row of their own repeatedly.
func writesAreStoredInTheOrderOfTheCommits(t *testing.T, k storeKind) {
	s := fresh(t, k)
	const writers = 8
	rounds := storetest.QuickOr(20, 100)
	var told [writers][]int
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() {
			var last *records.Pending
			for round := range rounds {
				w := &records.Write{}
				w.PutAgent(&tilthv1.Agent{Spec: &tilthv1.AgentSpec{Name: fmt.Sprint(n)}, Session: fmt.Sprint(round)})
				w.OnCommitted(func() { told[n] = append(told[n], round) })
				last = s.Commit(w)
			}
			if err := last.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for n := range writers {
		for round, at := range told[n] {
			if at != round {
				t.Fatalf("writer %d was told of round %d as the %dth", n, at, round)
			}
		}
		if len(told[n]) != rounds {
			t.Errorf("writer %d was told of %d rounds", n, len(told[n]))
		}
	}
	err := s.Agents(func(a *tilthv1.Agent) {
		if a.GetSession() != fmt.Sprint(rounds-1) {
			t.Errorf("agent %s is of round %s", a.GetSpec().GetName(), a.GetSession())
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// readersSeeWholeWrites makes every write add an event and count it in the job's row.
func readersSeeWholeWrites(t *testing.T, k storeKind) {
	s := fresh(t, k)
	w := &records.Write{}
	storetest.PutNew(w, "job", "ana", "r")
	commit(t, s, w)
	rounds := storetest.QuickOr(15, 50)
	written := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				if err := lookAtWhole(s); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-written:
					return
				default:
				}
			}
		})
	}
	for round := range uint64(rounds) {
		w := &records.Write{}
		row := storetest.JobRow("job", running, nil)
		row.Proposals = round + 2
		w.PutJob(row)
		w.AddRecord(storetest.Record("cpu", "conv", int64(round), 1/float64(round+1)))
		w.AppendEvent("job", &tilthv1.JobEvent{Sequence: round + 2, Event: &tilthv1.JobEvent_State{State: &tilthv1.JobStateChanged{}}})
		commit(t, s, w)
	}
	close(written)
	readers.Wait()
	if best, err := s.BestAllowed("cpu", records.Digest([]byte("conv")), ""); err != nil || best.GetMeasurement().GetLatencySeconds() != 1/float64(rounds) {
		t.Errorf("the best is %v, %v", best, err)
	}
}

// lookAtWhole compares a job's row with its events and records. Each look-up sees one instant, and later look-ups
// never see an earlier one.
func lookAtWhole(s records.Store) error {
	open, err := s.OpenJobs()
	if err != nil || len(open) != 1 {
		return fmt.Errorf("%d jobs are open: %w", len(open), err)
	}
	count := open[0].LastSequence
	if p := open[0].Row.GetProposals(); p != count && count > 1 {
		return fmt.Errorf("the row counts %d, and there are %d events", p, count)
	}
	events, err := s.Events("job", 1, 1<<20)
	if err != nil || uint64(len(events)) < count {
		return fmt.Errorf("%d events are read of %d: %w", len(events), count, err)
	}
	known, err := s.Known("cpu", records.Digest([]byte("conv")), "", "", 1<<20)
	if err != nil || known.Trials < len(events)-1 {
		return fmt.Errorf("%d records are known after %d events: %w", known.Trials, len(events), err)
	}
	return nil
}

func aStoreThatIsClosedTakesNothing(t *testing.T, k storeKind) {
	s := fresh(t, k)
	w := &records.Write{}
	w.AddRecord(storetest.Record("cpu", "conv", 1, 1))
	under := s.Commit(w)
	if err := errors.Join(s.Close(), under.Wait(t.Context())); err != nil {
		t.Errorf("what was handed in before: %v", err)
	}
	if err := s.Commit(&records.Write{}).Wait(t.Context()); !errors.Is(err, records.ErrClosed) {
		t.Errorf("a commit afterwards: %v", err)
	}
}

func generationHasAUniqueName(t *testing.T, k storeKind) {
	folder := k.folder(t)
	generations := map[string]bool{}
	for range 3 {
		s := k.opened(t, folder)
		if generations[s.Generation()] || !records.IsGeneration(s.Generation()) {
			t.Errorf("a life is called %q, after %v", s.Generation(), generations)
		}
		generations[s.Generation()] = true
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
