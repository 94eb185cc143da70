package runner

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// dialogue is a harness's output for two kernels, line by line.
const dialogue = `{"event":"start","index":-1}
{"event":"workload","args":[{"name":"y","elements":2,"bytes":8,"dtype":1,"role":2,"tolerance":0.001,"rounding":0}]}
{"event":"calibration","seconds":0.0006,"patience_seconds":0.25}
{"event":"load","index":0}
{"event":"module","kernels":["a","b"],"modules":[0,0]}
{"event":"start","index":0}
{"event":"ran","index":0,"growth":1}
{"event":"ran","index":0,"growth":1}
{"event":"outcome","index":0,"kernel":"a","status":"ok","message":"","run_seconds":0.01,"samples":[0.001,0.002]}
{"event":"start","index":1}
{"event":"fault","index":1,"message":"Segmentation fault"}
{"event":"calibration","seconds":0.0006,"patience_seconds":0.25}
{"event":"done"}
{"event":"error","message":"no memory"}
{"event":"timeout","index":1,"message":"runs longer than 2 s of the board's clock"}
{"event":"lost","index":-1,"message":"the board answers no longer"}
{"event":"outcome","index":0,"kernel":"a","status":"overrun","message":"writes 4 bytes past the end of y","run_seconds":0.01,"samples":[]}
{"event":"outcome","index":1,"kernel":"b","status":"wrong","message":"","run_seconds":1e308,"samples":[]}
`

// says returns a process that has ended after some output.
func says(t *testing.T, text []byte) *process {
	t.Helper()
	report, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	hear, words, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, f := range []*os.File{report, words, hear} {
			_ = f.Close() // pipes without buffered data
		}
	})
	secret := secretPrefix()
	var said bytes.Buffer
	for line := range bytes.Lines(text) {
		said.WriteString(secret)
		said.Write(line)
	}
	go func() {
		_, _ = write.Write(said.Bytes()) // fails when reading stops
		_ = write.Close()
	}()
	return &process{report: report, commands: words, events: newEventReader(report, secret)}
}

// follows processes output as the measurement of one object.
func follows(t *testing.T, text []byte, finalists bool) (*measurement, error) {
	t.Helper()
	r := &results{resultsHeader: resultsHeader{Exams: 1, Group: 1, Workload: Workload{
		Args: []Arg{{Name: "y", Elements: 2, Bytes: 8, DType: 1, Role: Output, Tolerance: 1e-3}}}}, free: func() error { return nil }}
	r.slots = make([]byte, r.SlotBytes()*(practiceSets+1))
	memory, err := NewMemory()
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	j, err := newJudge(r, memory, 1)
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan{Candidates: []string{"a.so"}, Alike: true, Finalists: finalists, Calibration: &Calibration{},
		Limits: Limits{Load: time.Minute, Candidate: time.Minute, Reference: time.Minute}}
	m := &measurement{plan: plan, results: r, judge: j, current: -1, loading: -1, report: func(Outcome) {}}
	return m, m.follow(t.Context(), says(t, text))
}

// TestHarnessThatDoesNotReadIsGarbled is a regression test: a harness that requested input and did not read it
// blocked its runner forever.
func TestHarnessThatDoesNotReadIsGarbled(t *testing.T) {
	asks := strings.Join(strings.SplitAfter(dialogue, "\n")[:6], "") + strings.Repeat(`{"event":"ran","index":0,"growth":1}`+"\n", 5000)
	if _, err := follows(t, []byte(asks), false); !errors.Is(err, errGarbled) {
		t.Errorf("got %v", err)
	}
}

// TestHarnessOfAnOlderBuilderTellsOneTolerance checks that it applies to all outputs.
func TestHarnessOfAnOlderBuilderTellsOneTolerance(t *testing.T) {
	older := `{"event":"workload","tolerance":0.001,"args":[{"name":"y","elements":2,"bytes":8,"dtype":1,"role":2}]}` + "\n"
	w, err := says(t, []byte(older)).workload(time.Minute)
	if err != nil || len(w.Args) != 1 || w.Args[0].Tolerance != 1e-3 || w.Args[0].Rounding != 0 {
		t.Errorf("the workload is %+v, %v", w, err)
	}
}

// FuzzReport processes the report of a harness with events in any order. Every candidate with a result must have a
// verdict.
func FuzzReport(f *testing.F) {
	f.Add([]byte(dialogue), false)
	f.Add([]byte(dialogue), true)
	f.Add([]byte(strings.Replace(dialogue, `[0,0]`, `[0,7]`, 1)), false)
	f.Add([]byte(strings.ReplaceAll(dialogue, `"index":0`, `"index":-9`)), true)
	f.Add([]byte("{}\n{\n\"\n"), false)
	f.Add([]byte(`{"event":"workload","tolerance":0,"args":[{"bytes":-1}]}`), false)
	f.Fuzz(func(t *testing.T, text []byte, finalists bool) {
		if len(text) > 16<<10 {
			return
		}
		m, err := follows(t, text, finalists)
		if err == nil {
			t.Fatal("it never ends")
		}
		for k, o := range m.outcomes {
			if o == nil || o.Error != none {
				continue
			}
			if v := m.judge.verdicts[k]; v == nil || v.asked < minVerdicts || v.wrong != "" || len(o.Samples) == 0 || !(median(o) > 0) {
				t.Errorf("kernel %d is right by %+v: %v", k, v, o)
			}
		}
	})
}

// TestReportIsFollowed checks a valid report, because FuzzReport would also pass if all were refused.
func TestReportIsFollowed(t *testing.T) {
	m, err := follows(t, []byte(dialogue), false)
	var fault *faultError
	if !errors.As(err, &fault) || m.outcomes[0] == nil || m.outcomes[0].Error != none || m.current != 1 {
		t.Errorf("%v after %v", err, m.outcomes)
	}
	if _, err := follows(t, []byte(strings.Replace(dialogue, `"ran","index":0`, `"ran","index":1`, 1)), false); !errors.Is(err, errGarbled) {
		t.Errorf("who is not running ran: %v", err)
	}
	if _, err := follows(t, []byte(strings.Join(strings.SplitAfter(dialogue, "\n")[:9], "")), false); !errors.Is(err, io.EOF) {
		t.Errorf("it ends with %v", err)
	}
}

// FuzzResults checks files of results: an accepted file has every set, and trailing data is ignored.
func FuzzResults(f *testing.F) {
	good := append([]byte(nil), resultsMagic...)
	header := `{"args":[{"name":"y","elements":1,"bytes":4,"dtype":1,"role":2,"tolerance":0,"rounding":0}],"seed":1,"reference":"r","exams":1,"group":1}`
	good = append(append(good, byte(len(header)), 0, 0, 0, 0, 0, 0, 0), header...)
	good = append(good, make([]byte, -len(good)&(resultsAlign-1)+4*64)...)
	f.Add(good)
	f.Add(bytes.Replace(good, []byte(`"exams":1`), []byte(`"exams":9`), 1))
	f.Add(bytes.Replace(good, []byte(`"group":1`), []byte(`"group":0`), 1))
	f.Add(good[:30])
	f.Add(append(append([]byte(nil), resultsMagic...), 255, 255, 255, 255, 255, 255, 255, 255))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := &results{}
		if !r.parse(text) {
			if bytes.Equal(text, good) {
				t.Fatal("good results are refused")
			}
			return
		}
		for k := range practiceSets + r.Exams {
			if len(r.set(k)) != int(r.SlotBytes()) {
				t.Errorf("set %d has %d bytes", k, len(r.set(k)))
			}
		}
	})
}
