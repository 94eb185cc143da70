package replay

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// newSet returns a set of a small product: two correct candidates and an incorrect one.
func newSet(t testing.TB) *Set {
	t.Helper()
	a, b := expr.NewInput("a", array.Float32, 8, 16), expr.NewConstant("b", array.Float32, 16, 24)
	c := expr.ReduceOver("c", expr.Sum, []int64{8, 24}, []int64{16}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(a.At(i[0], r[0]), b.At(r[0], i[1]))
	})
	w, err := expr.NewWorkload([]*expr.Tensor{c})
	if err != nil {
		t.Fatal(err)
	}
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	h := Header{Task: "product", Model: "made-up", Workload: w, Target: machine, Numerics: schedule.Strict,
		Values: map[string][]int64{"tv": {1, 2}, "tw": {2, 4}}}
	return &Set{Header: h, Points: []Point{
		{Origin: "tv=1 tw=2", Samples: []float64{2e-6, 3e-6, 4e-6, 5e-6}},
		{Origin: "tv=2 tw=4", Samples: []float64{1e-6}},
		{Origin: "tv=2 tw=2", Error: "crash", Message: "ended by segmentation fault"},
	}}
}

func written(t testing.TB, s *Set) (path string, data []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "product"+Suffix)
	if err := Write(path, s); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, data
}

func TestSetIsReadAsItWasWritten(t *testing.T) {
	want := newSet(t)
	path, _ := written(t, want)
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Points, want.Points) || got.Task != want.Task || got.Model != want.Model || got.Numerics != want.Numerics {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if got.Workload.Text() != want.Workload.Text() || got.Target.Fingerprint() != want.Target.Fingerprint() {
		t.Error("the workload or the target changed")
	}
	for knob, values := range want.Values {
		if !reflect.DeepEqual(got.Values[knob], values) {
			t.Errorf("knob %s has %v, want %v", knob, got.Values[knob], values)
		}
	}
}

func TestLatencyIsTheLowerQuartile(t *testing.T) {
	s := newSet(t)
	for k, want := range []float64{2.75e-6, 1e-6, 0} {
		if got := s.Points[k].LatencySeconds(); got != want {
			t.Errorf("%s: %g s, want %g", s.Points[k].Origin, got, want)
		}
	}
	if got := s.Best(); got != 1e-6 {
		t.Errorf("best %g s, want 1e-6", got)
	}
}

func TestCandidatesAreDistinctSchedulesWithinTheValues(t *testing.T) {
	s, err := newSet(t).Space()
	if err != nil {
		t.Fatal(err)
	}
	digests := map[string]bool{}
	list := Candidates(s, 0)
	for _, c := range list {
		if digests[c.Digest] {
			t.Errorf("%s appears twice", c.Origin)
		}
		digests[c.Digest] = true
		if !strings.Contains(c.Origin, "tv=1 ") && !strings.Contains(c.Origin, "tv=2 ") {
			t.Errorf("%s is not of the set", c.Origin)
		}
	}
	if few := Candidates(s, 3); len(list) <= 3 || len(few) != 3 {
		t.Errorf("%d candidates, %d of at most 3", len(list), len(few))
	}
}

// packed compresses the text of a set's file.
func packed(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpacked(t testing.TB, data []byte) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBrokenSetSaysWhatIsWrong(t *testing.T) {
	_, data := written(t, newSet(t))
	text := unpacked(t, data)
	lines := strings.SplitAfter(text, "\n")
	for name, c := range map[string]struct {
		data    []byte
		message string
	}{
		"empty":            {nil, "not a recorded set"},
		"text":             {[]byte(text), "not a recorded set"},
		"cut while packed": {data[:len(data)-20], "cut short"},
		"without its end":  {packed(t, strings.Join(lines[:3], "")), "cut short"},
		"cut in a line":    {packed(t, text[:len(text)-5]), "line 5"},
		"other header":     {packed(t, strings.Replace(text, "set 1", "set 9", 1)), "first line"},
		"a line is gone":   {packed(t, lines[0]+strings.Join(lines[2:], "")), "the trailer says 3 candidates after 2"},
		"more behind":      {packed(t, text+lines[1]), "the trailer says 3 candidates after 3"},
		"negative sample":  {packed(t, strings.Replace(text, "[0.000001]", "[-1]", 1)), "line 3: a candidate has a sample that is not positive"},
		"nothing measured": {packed(t, lines[0]+"{}\n"), "line 2: a candidate has neither samples nor an error"},
		"another workload": {packed(t, strings.Replace(text, "tilth-workload", "tilth-wurkload", 1)), "its workload"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x"+Suffix)
			if err := os.WriteFile(path, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Read(path)
			if err == nil || !strings.Contains(err.Error(), c.message) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want one line with %q and the file", err, c.message)
			}
		})
	}
}

func TestFolderIsReadByName(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a"} {
		s := newSet(t)
		s.Task = name
		if err := Write(filepath.Join(dir, name+Suffix), s); err != nil {
			t.Fatal(err)
		}
	}
	sets, err := ReadAll([]string{dir, filepath.Join(dir, "b"+Suffix)})
	if err != nil || len(sets) != 3 || sets[0].Task != "a" || sets[1].Task != "b" || sets[2].Task != "b" {
		t.Errorf("%d sets, %v", len(sets), err)
	}
	if _, err := ReadAll([]string{t.TempDir()}); err == nil || !strings.Contains(err.Error(), "go run ./lab record") {
		t.Errorf("%v, want the command that makes sets", err)
	}
}

func FuzzRead(f *testing.F) {
	_, data := written(f, newSet(f))
	text := unpacked(f, data)
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add("{}\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "x"+Suffix)
		if err := os.WriteFile(path, packed(t, text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Read(path)
		if err != nil {
			return
		}
		for k := range s.Points {
			if l := s.Points[k].LatencySeconds(); l < 0 {
				t.Errorf("latency %g", l)
			}
		}
	})
}

// TestRecordingsOfTheSameCandidatesArePooled covers a disturbance in one recording and an overall slower machine.
func TestRecordingsOfTheSameCandidatesArePooled(t *testing.T) {
	first, second, part := newSet(t), newSet(t), newSet(t)
	first.Sampled, second.Sampled = true, true
	first.Points = []Point{
		{Origin: "a", Samples: []float64{1, 1}}, {Origin: "b", Samples: []float64{2, 2}}, {Origin: "disturbed", Samples: []float64{9, 9}},
		{Origin: "failed once", Error: "timeout"}, {Origin: "failed twice", Error: "crash"},
	}
	second.Points = []Point{
		{Origin: "a", Samples: []float64{2}}, {Origin: "b", Samples: []float64{4}}, {Origin: "disturbed", Samples: []float64{6, 6}},
		{Origin: "failed once", Samples: []float64{8}}, {Origin: "failed twice", Error: "crash"}, {Origin: "new", Samples: []float64{10}},
	}
	got := Pool([]*Set{first, part, second, part})
	if len(got) != 3 || got[1] != part || got[2] != part {
		t.Fatalf("%d sets, want one sample and two sets as they are", len(got))
	}
	want := []Point{
		{Origin: "a", Samples: []float64{1, 1, 1}}, {Origin: "b", Samples: []float64{2, 2, 2}}, {Origin: "disturbed", Samples: []float64{9, 9, 3, 3}},
		{Origin: "failed once", Samples: []float64{4}}, {Origin: "failed twice", Error: "crash"}, {Origin: "new", Samples: []float64{5}},
	}
	if !reflect.DeepEqual(got[0].Points, want) {
		t.Errorf("got %+v, want %+v", got[0].Points, want)
	}
	if len(first.Points) != 5 || len(first.Points[0].Samples) != 2 {
		t.Errorf("what was pooled was changed: %+v", first.Points)
	}
}
