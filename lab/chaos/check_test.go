package chaos

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestCheckerSeesEachPromiseBroken modifies the journals of a fault-free round. The checker must find each
// violation.
func TestCheckerSeesEachPromiseBroken(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: builds the farm's program and runs it to its end")
	}
	dir := t.TempDir()
	result, err := Round{Seed: 1, Dir: dir, Binary: buildProgram(t), calm: true}.Run(t.Context())
	if err != nil || len(result.Violations) > 0 {
		t.Fatalf("the round without faults: %v, %v", err, result)
	}
	if result.Executions == 0 || result.Cancelled+result.Failed+result.DeadLetters+result.Undecided > 0 {
		t.Errorf("the round without faults: %+v", result.Verdict)
	}
	data := keptData(dir)
	// Client events are not needed here.
	jobs := map[string][]*tilthv1.JobEvent{"job-00000001": nil, "job-00000002": nil, "job-00000003": nil}
	for name, c := range map[string]struct {
		method string
		change func(*entry)
		want   string
	}{
		"a job is lost":         {tilthv1.JobService_SubmitJob_FullMethodName, inRequest(`"request-`, `"other-`), "was acknowledged as job"},
		"a candidate is lost":   {tilthv1.SearchService_ProposeBatch_FullMethodName, inRequest(`"digest":"`, `"digest":"x`), "was acknowledged as trial"},
		"a batch is lost":       {tilthv1.SearchService_ProposeBatch_FullMethodName, inAnswer(`"batchId":"`, `"batchId":"x`), "is not in the log as proposed"},
		"an artifact is lost":   {tilthv1.BuildService_ReportBuild_FullMethodName, inRequest(`"role":"candidates","digest":"`, `"role":"candidates","digest":"xx`), "artifact was acknowledged"},
		"a measurement is lost": {tilthv1.MeasureService_ReportMeasurements_FullMethodName, inRequest(`"latencySeconds":`, `"latencySeconds":1`), "and is recorded as"},
		"refused, yet recorded": {tilthv1.MeasureService_ReportMeasurements_FullMethodName, refuse, "which no accepted report says"},
		// On a busy machine, a delivered lease may have been lost without a trace. An accepted report proves its
		// lease.
		"a lease in two hands": {tilthv1.MeasureService_ReportMeasurements_FullMethodName, inRequest(`"attempt":2`, `"attempt":9`), "was in two hands at once"},
		"leased once more":     {tilthv1.MeasureService_ReportMeasurements_FullMethodName, inRequest(`"attempt":2`, `"attempt":1`), "under attempt 1 and leased again as attempt 2"},
	} {
		journals := t.TempDir()
		tamper(t, filepath.Join(dir, journalsName), journals, c.method, c.change)
		v, err := check(farmData{data: data}, journals, jobs)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(strings.Join(v.Violations, "\n"), c.want) {
			t.Errorf("%s: found %v", name, first(v.Violations, 5))
		}
	}
}

// inRequest returns a change that replaces text in requests, inAnswer one for answers.
func inRequest(old, now string) func(*entry) {
	return func(e *entry) { e.Request = json.RawMessage(strings.Replace(string(e.Request), old, now, 1)) }
}

func inAnswer(old, now string) func(*entry) {
	return func(e *entry) { e.Answer = json.RawMessage(strings.Replace(string(e.Answer), old, now, 1)) }
}

// refuse turns an answer into a refusal.
func refuse(e *entry) {
	if e.Answer != nil {
		e.Answer, e.Code, e.Reason = nil, "FailedPrecondition", wire.ReasonStaleLease
	}
}

// tamper copies journals and changes the first suitable call of a method. It skips unanswered calls, which a busy
// machine produces, because their outcome is unknown.
func tamper(t *testing.T, from, to, method string, change func(*entry)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(from, "*.journal"))
	if err != nil {
		t.Fatal(err)
	}
	changed := false
	for _, path := range paths {
		entries, err := readJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		type id struct {
			life int
			call uint64
		}
		answered := map[id]bool{}
		for _, e := range entries {
			answered[id{e.Life, e.Call}] = e.Answer != nil
		}
		var out []byte
		for _, e := range entries {
			before := marshal(t, e)
			if e.Method == method && !changed && answered[id{e.Life, e.Call}] {
				change(&e)
			}
			line := marshal(t, e)
			changed = changed || string(line) != string(before)
			out = append(append(out, line...), '\n')
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !changed {
		t.Errorf("no call of %s could be changed", method)
	}
}

func marshal(t *testing.T, e entry) []byte {
	t.Helper()
	if len(e.Request) == 0 {
		e.Request = nil
	}
	if len(e.Answer) == 0 {
		e.Answer = nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return line
}
