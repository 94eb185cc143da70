package tracker_test

import (
	"strings"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// TestJobBeginsWithWhatIsKnown checks that a job knows earlier records of its workloads, unless its spec forbids it.
func TestJobBeginsWithWhatIsKnown(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	first := spec("conv", "pool")
	first.Tasks[0].DefaultDigest = records.Digest([]byte("a"))
	job := f.submit("r1", first)
	if p := job.GetProgress()[0]; p.GetKnownTrials() != 0 {
		t.Errorf("the first job knows of %v", p)
	}
	lease := f.mustLease(f.tuner()).GetLease()
	f.propose(lease, 0, 0, "a", "b", "c")
	f.reportBuild(f.buildReport(f.mustLease(f.builder()), "b"))
	work := f.mustLease(f.runner())
	for i, latency := range []float64{0.002, 0.001} {
		f.report(work.GetLease(), ok(work.GetMeasure().GetCandidates()[i], latency))
	}

	known := f.submit("r2", first).GetProgress()[0]
	if known.GetKnownTrials() != 3 || known.GetKnownBestSeconds() != 0.001 || known.GetKnownDefaultSeconds() != 0.002 {
		t.Errorf("the second job knows of %v", known)
	}
	if p := f.submit("r2", first).GetProgress()[1]; p.GetKnownTrials() != 0 {
		t.Errorf("a workload that was not measured is known: %v", p)
	}
	clean := spec("conv")
	clean.NoTransfer = true
	if p := f.submit("r3", clean).GetProgress()[0]; p.GetKnownTrials() != 0 || p.GetKnownBestSeconds() != 0 {
		t.Errorf("a clean run knows of %v", p)
	}
}

func TestFirstMessageOfEachErrorIsKept(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("r1", spec("conv"))
	lease := f.mustLease(f.tuner()).GetLease()
	f.propose(lease, 0, 0, "a", "b", "c")
	f.reportBuild(f.buildReport(f.mustLease(f.builder()), "b"))
	work := f.mustLease(f.runner())
	for i, message := range []string{strings.Repeat("é", 400), "the second crash"} {
		m := crashed(work.GetMeasure().GetCandidates()[i])
		m.Message = message
		f.report(work.GetLease(), m)
	}
	p := f.job(job.GetId()).GetProgress()[0]
	if got := p.GetMessages()["ERROR_CLASS_CRASH"]; got != strings.Repeat("é", 250)+"…" || p.GetErrors()["ERROR_CLASS_CRASH"] != 2 {
		t.Errorf("the crashes said %q", got)
	}
	if got := p.GetMessages()[tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR.String()]; got == "" {
		t.Error("the compiler's message is lost")
	}
}
