package records_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// named formats records for comparison.
func named(rs []*tilthv1.Record) (names []string) {
	for _, r := range rs {
		target, owner := records.SplitTarget(r.GetTarget())
		names = append(names, fmt.Sprintf("%s %s of %q at %d", target, r.GetWorkload(), owner, r.GetMeasurement().GetAt().GetSeconds()))
	}
	return names
}

// Private records form groups with bests of their own, visible only under their owner's name.
func privateRecordsAreMetByTheirOwnersName(t *testing.T, k storeKind) {
	folder := k.folder(t)
	s := k.opened(t, folder)
	cpu, gpu := records.Private("cpu", "ana"), records.Private("gpu", "ana")
	storetest.Add(t, s,
		storetest.Record("cpu", "conv", 1, 0.3), storetest.Record(cpu, "conv", 2, 0.1), storetest.Record(cpu, "pool", 3, 0.2), storetest.Record(gpu, "conv", 4, 0.4),
		storetest.Record(records.Private("cpu", "an"), "conv", 5, 0.01), storetest.Record(records.Private("cpu", "anab"), "conv", 6, 0.02))
	for range 2 {
		for target, want := range map[string][]string{
			"": {`cpu conv of "" at 1`}, "cpu": {`cpu conv of "" at 1`}, "gpu": nil,
			cpu: {`cpu conv of "ana" at 2`, `cpu pool of "ana" at 3`}, gpu: {`gpu conv of "ana" at 4`},
			records.Private("", "ana"): {`cpu conv of "ana" at 2`, `cpu pool of "ana" at 3`, `gpu conv of "ana" at 4`},
			records.Private("", "a"):   nil,
			records.Private("", "an"):  {`cpu conv of "an" at 5`},
		} {
			slices.Sort(want)
			list := named(storetest.List(t, s, target, ""))
			if slices.Sort(list); !slices.Equal(list, want) {
				t.Errorf("the list of %q is %q, want %q", target, list, want)
			}
			var best []string
			for after, first := "", true; first || after != ""; first = false {
				page, next, err := s.BestPage(target, after, 1, 1<<20)
				if err != nil {
					t.Fatal(err)
				}
				best, after = append(best, named(page)...), next
			}
			if slices.Sort(best); !slices.Equal(best, want) {
				t.Errorf("the best of %q are %q, want %q", target, best, want)
			}
			groups, _, err := s.GroupPage(target, "", 100)
			if err != nil || len(groups) != len(want) {
				t.Errorf("the groups of %q are %q, %v", target, groups, err)
			}
		}
		for target, want := range map[string]float64{"cpu": 0.3, cpu: 0.1} {
			best, err := s.BestAllowed(target, records.Digest([]byte("conv")), "")
			if err != nil || best.GetMeasurement().GetLatencySeconds() != want {
				t.Errorf("the best of %q is %v, %v", target, best, err)
			}
			known, err := s.Known(target, records.Digest([]byte("conv")), "", "", 10)
			if err != nil || known.Trials != 1 || known.Best.GetLatencySeconds() != want {
				t.Errorf("of %q %+v is known, %v", target, known, err)
			}
		}
		s = k.reopened(t, s, folder)
	}
	if _, _, err := s.Import(t.Context(), func() (*tilthv1.Record, error) { return storetest.Record(cpu, "conv", 7, 0.1), nil }); !errors.Is(err, records.ErrInvalid) {
		t.Errorf("a private record is imported: %v", err)
	}
	if removed, kept, err := s.Prune(t.Context(), records.PruneOptions{KeepBest: 1}); removed != 0 || kept != 6 || err != nil {
		t.Errorf("a prune of all keeps %d records and removes %d, %v", kept, removed, err)
	}
}

func aJobSaysWhetherItIsPrivate(t *testing.T, k storeKind) {
	folder := k.folder(t)
	s := k.opened(t, folder)
	conv := []byte("conv")
	tasks := []*tilthv1.TaskSpec{{Name: "a", WorkloadDigest: records.Digest(conv), Workload: conv}}
	w := &records.Write{}
	for id, spec := range map[string]*tilthv1.JobSpec{
		"job-1": {Name: "net", Owner: "ana", Private: true, Priority: 3, Tasks: tasks},
		"job-2": {Name: "net", Owner: "ana", Tasks: tasks},
	} {
		key := records.RequestKey("ana", id)
		w.PutNew(id, key, records.EncodeJob(spec, make([]*tilthv1.TaskProgress, len(spec.GetTasks()))))
		w.PutJob(storetest.JobRow(id, running, key))
	}
	commit(t, s, w)
	for range 2 {
		for id, private := range map[string]bool{"job-1": true, "job-2": false} {
			owner, err := s.JobOwner(id)
			if err != nil || owner != (records.Owner{Name: "ana", Private: private}) {
				t.Errorf("%s is %+v's, %v", id, owner, err)
			}
			if job, err := s.Job(id); err != nil || job.GetSpec().GetPrivate() != private {
				t.Errorf("%s is %v, %v", id, job.GetSpec(), err)
			}
		}
		s = k.reopened(t, s, folder)
	}
}

// A page of visible jobs is filled across jobs of others, and never ends at one of those.
func jobsThatSomebodySeesComeInPages(t *testing.T, k storeKind) {
	s := fresh(t, k)
	w := &records.Write{}
	for i := range 12 {
		id := fmt.Sprintf("job-%08d", i)
		key := records.RequestKey("ana", id)
		spec := &tilthv1.JobSpec{Name: "net", Owner: "ana", Private: i%4 != 0}
		w.PutNew(id, key, records.EncodeJob(spec, nil))
		w.PutJob(storetest.JobRow(id, running, key))
	}
	commit(t, s, w)
	for most, want := range map[int][][]string{
		1:   {{"job-00000008"}, {"job-00000004"}, {"job-00000000"}},
		2:   {{"job-00000008", "job-00000004"}, {"job-00000000"}},
		100: {{"job-00000008", "job-00000004", "job-00000000"}},
	} {
		q := records.JobQuery{Max: most, MaxBytes: 1 << 20, Sees: func(o records.Owner) bool { return !o.Private }}
		for _, ids := range want {
			jobs, next, err := s.Jobs(q)
			var got []string
			for _, j := range jobs {
				got = append(got, j.GetId())
			}
			if err != nil || !slices.Equal(got, ids) || next != "" && next != ids[len(ids)-1] {
				t.Errorf("%d at a time: %v, next %q, %v, want %v", most, got, next, err, ids)
			}
			q.Before = next
		}
	}
	few := records.JobQuery{Max: 10, MaxBytes: 1, Sees: func(o records.Owner) bool { return !o.Private }}
	if jobs, next, err := s.Jobs(few); err != nil || len(jobs) != 1 || next != jobs[0].GetId() {
		t.Errorf("a page of few bytes has %d jobs, %q, %v", len(jobs), next, err)
	}
}

// A look-up that skips many invisible jobs may end with an empty page from which the next continues. No page names an
// invisible job, and no visible job is missed.
func aPageEndsAmongJobsThatNobodySees(t *testing.T, k storeKind) {
	s := fresh(t, k)
	w := &records.Write{}
	const generations = 3 // each has a job of every number
	for i := range 30 {
		id := fmt.Sprintf("job-%08d-life%c", i/generations, 'a'+i%generations)
		owner := records.Owner{Name: "ana", Private: i%10 != 0}
		key := records.RequestKey("ana", id)
		w.PutNew(id, key, records.EncodeJob(&tilthv1.JobSpec{Owner: owner.Name, Private: owner.Private}, nil))
		row := storetest.JobRow(id, running, key)
		if i%2 == 0 { // the others have rows of an earlier version
			row.Owner = owner.Row()
		}
		w.PutJob(row)
	}
	commit(t, s, w)
	want := []string{"job-00000006-lifec", "job-00000003-lifeb", "job-00000000-lifea"}
	for _, maxSeen := range []int{1, 2, 3, 5, 8, 100} {
		q := records.JobQuery{Max: 10, MaxBytes: 1 << 20, MaxSeen: maxSeen, Sees: func(o records.Owner) bool { return !o.Private }}
		var got []string
		pages := 0
		for first := true; first || q.Before != ""; first = false {
			jobs, next, err := s.Jobs(q)
			if err != nil {
				t.Fatal(err)
			}
			for _, j := range jobs {
				got = append(got, j.GetId())
			}
			if stored, err := s.Job(next); err == nil && stored.GetSpec().GetPrivate() {
				t.Errorf("of %d jobs at a time, a page ends at %s", maxSeen, next)
			}
			q.Before = next
			if pages++; pages > 30 {
				t.Fatalf("%d jobs at a time come in more than %d pages", maxSeen, pages)
			}
		}
		if !slices.Equal(got, want) || maxSeen <= 8 && pages < 3 {
			t.Errorf("%d jobs at a time are %v in %d pages, want %v", maxSeen, got, pages, want)
		}
	}
}
