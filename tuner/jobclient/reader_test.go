package jobclient

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/sandbox"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// TestMain lets this binary act as the process that reads models. The name that it is started with selects its
// behaviour.
func TestMain(m *testing.M) {
	if role := roles[os.Args[0]]; role != nil {
		role()
		return
	}
	os.Exit(m.Run())
}

// roles lists the behaviours of the process.
var roles = map[string]func(){
	"serves": func() {
		if err := ServeModelReader(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	},
	"exits":  func() { os.Exit(3) },
	"panics": func() { panic("the model's fault") },
	"hangs":  func() { time.Sleep(time.Hour) },
	"lies":   func() { fmt.Print("no report") },
	"hoards": func() {
		go limitMemory(64 << 20)
		var all [][]byte
		for {
			all = append(all, bytes.Repeat([]byte{1}, 1<<20))
			runtime.KeepAlive(all)
		}
	},
}

// readWork reads a job's models in a process or, in the quick tier unless apart is set, in this one: most of the time
// goes to starting a process.
func readWork(t *testing.T, r *ModelReader, files ModelFiles, w *tilthv1.ModelWork, apart bool) *tilthv1.ReportModelRequest {
	t.Helper()
	if testing.Short() && !apart {
		spec, err := read(files, w)
		if err != nil {
			return r.failure(w, err.Error())
		}
		return &tilthv1.ReportModelRequest{Target: spec.GetTarget(), Tasks: spec.GetTasks()}
	}
	report, err := r.Read(t.Context(), files, w)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// newReader returns a reader with processes of a role.
func newReader(t *testing.T, role string, limit time.Duration, memoryBytes int64) *ModelReader {
	t.Helper()
	box, err := sandbox.Open(sandbox.BestEffort, filepath.Join(t.TempDir(), "sandbox"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	server := sandbox.Server{Args: []string{role}, Sandbox: box, Scratch: t.TempDir()}
	return &ModelReader{Server: server, Time: limit, MemoryBytes: memoryBytes}
}

func machine(t *testing.T) *target.Target {
	t.Helper()
	m, err := target.Parse("x86-64-v3", 2)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// work returns the work of a model with options.
func work(t *testing.T, m *tilthv1.ModelSpec, numerics string) *tilthv1.ModelWork {
	t.Helper()
	device := machine(t)
	return &tilthv1.ModelWork{
		Job:         &tilthv1.Job{Spec: &tilthv1.JobSpec{Name: "net", Tuner: "gbdt", Numerics: numerics, Model: m}},
		DeviceClass: &tilthv1.DeviceClass{Name: device.DeviceClass(), Descriptor_: device.Encode()},
		Toolchains:  []string{"gcc-12.2.0", "clang-19.1.7"},
	}
}

func built(t *testing.T, o modelzoo.Options) *onnx.Model {
	t.Helper()
	m, err := modelzoo.Build("mlp", o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// file writes bytes to a file that other users can read.
func file(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "artifact")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// given returns the files of a job: its model and optionally other models and seeds, in order.
func given(t *testing.T, w *tilthv1.ModelWork, contents ...[]byte) ModelFiles {
	t.Helper()
	files, m := ModelFiles{}, w.GetJob().GetSpec().GetModel()
	for i, content := range contents {
		ref := &tilthv1.ArtifactRef{Digest: records.Digest(content)}
		files[ref.GetDigest()] = file(t, content)
		switch others := len(m.GetOthers()); {
		case i == 0:
			m.File = ref
		case i <= others:
			m.Others[i-1].File = ref
		default:
			m.Seeds[i-1-others].File = ref
		}
	}
	return files
}

// TestReaderFindsTheTasksOfTheCompiler covers all options of the model.
func TestReaderFindsTheTasksOfTheCompiler(t *testing.T) {
	r := newReader(t, "serves", 0, 1<<30)
	for name, c := range map[string]struct {
		asked    *tilthv1.ModelSpec
		numerics string
		bits     int64
		source   Source
		picked   string
	}{
		"a model as it is": {asked: &tilthv1.ModelSpec{}},
		"some of its tasks": {
			asked: &tilthv1.ModelSpec{Tasks: "1,dense"}, picked: "1,dense",
		},
		"weights in integers": {asked: &tilthv1.ModelSpec{WeightBits: 8}, bits: 8},
		"fast numerics":       {asked: &tilthv1.ModelSpec{}, numerics: "fast"},
		"a fixed extent": {
			asked:  &tilthv1.ModelSpec{Shapes: map[string]*tilthv1.Extents{"batch": {Extents: []int64{3}}}},
			source: Source{Shapes: map[string][]int64{"batch": {3}}},
		},
		"an open extent": {
			asked:  &tilthv1.ModelSpec{Open: map[string]*tilthv1.ExtentBounds{"batch": {Least: 1, Most: 8, Caps: []int64{2}}}},
			source: Source{Open: map[string]frontend.Bounds{"batch": {Min: 1, Max: 8, Caps: []int64{2}}}},
		},
		"extents in steps and by others": {
			asked: &tilthv1.ModelSpec{
				Open:    map[string]*tilthv1.ExtentBounds{"images": {Least: 4, Most: 8, Step: 4}},
				Derived: map[string]string{"batch": "images/2"},
			},
			source: Source{Open: map[string]frontend.Bounds{"images": {Min: 4, Max: 8, Step: 4}}, Derived: map[string]string{"batch": "images/2"}},
		},
		"an open extent of which it is known what is frequent": {
			asked:  &tilthv1.ModelSpec{Open: map[string]*tilthv1.ExtentBounds{"batch": {Least: 1, Most: 64, Frequencies: map[int64]float64{3: 9, 17: 1}}}},
			source: Source{Open: map[string]frontend.Bounds{"batch": {Min: 1, Max: 64, Frequencies: map[int64]float64{3: 9, 17: 1}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := built(t, modelzoo.Options{Open: c.source.Shapes != nil || c.source.Open != nil})
			w := work(t, c.asked, c.numerics)
			got := readWork(t, r, given(t, w, m.Encode()), w, name == "some of its tasks")
			if got.GetFailure() != "" {
				t.Fatal(got.GetFailure())
			}
			numerics, err := schedule.ParseNumerics(c.numerics)
			if err != nil {
				t.Fatal(err)
			}
			c.source.Name, c.source.Model = "net", m
			o, err := Models([]Source{c.source}, numerics, c.bits)(machine(t))
			if err != nil {
				t.Fatal(err)
			}
			if o.Tasks, err = Select(o.Tasks, c.picked); err != nil {
				t.Fatal(err)
			}
			want := SpecFor(o, Options{Numerics: numerics}, &client.Device{Target: machine(t).WithToolchain("clang-19.1.7")})
			if !proto.Equal(got, &tilthv1.ReportModelRequest{Target: want.GetTarget(), Tasks: want.GetTasks()}) {
				t.Errorf("got %v, want %v, %v", got, want.GetTarget(), want.GetTasks())
			}
		})
	}
}

func zipped(t *testing.T, content io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(z, content)
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestReaderReportsWhyAModelCannotBeTuned in one line, which names the model but no local file.
func TestReaderReportsWhyAModelCannotBeTuned(t *testing.T) {
	whole := built(t, modelzoo.Options{}).Encode()
	huge := built(t, modelzoo.Options{})
	huge.Graph.Inputs[0].Shape[0].Value = 1 << 50
	r := newReader(t, "serves", 0, 128<<20)
	for name, c := range map[string]struct {
		file  []byte
		model *tilthv1.ModelSpec
		want  string
	}{
		"garbage":         {file: []byte("no model"), want: "read model from the artifact: "},
		"nothing":         {file: nil, want: "read model from the artifact: "},
		"cut short":       {file: whole[:len(whole)/2], want: "read model from the artifact: "},
		"huge extents":    {file: huge.Encode(), want: ""},
		"a bomb":          {file: zipped(t, io.LimitReader(zeros{}, 256<<20)), want: "takes more than 128 MiB of memory to read"},
		"no such input":   {file: whole, model: &tilthv1.ModelSpec{Shapes: map[string]*tilthv1.Extents{"nowhere": {Extents: []int64{1}}}}, want: "nowhere"},
		"no such task":    {file: whole, model: &tilthv1.ModelSpec{Tasks: "77"}, want: `no task is "77"`},
		"no such storage": {file: whole, model: &tilthv1.ModelSpec{Storage: "float8"}, want: "storage float8: want bfloat16"},
		"no such value":   {file: whole, model: &tilthv1.ModelSpec{To: []string{"nowhere"}}, want: "nowhere"},
		"open and unknown": {
			file: whole, model: &tilthv1.ModelSpec{Open: map[string]*tilthv1.ExtentBounds{"n": {Least: 1, Most: 1 << 60}}}, want: "n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if raced && name == "a bomb" {
				t.Skip("the race detector runs out of memory before the program knows")
			}
			if c.model == nil {
				c.model = &tilthv1.ModelSpec{}
			}
			w := work(t, c.model, "")
			files := given(t, w, c.file)
			got := readWork(t, r, files, w, name == "a bomb" || name == "garbage")
			said := got.GetFailure()
			if !strings.HasPrefix(said, "model net: ") || !strings.Contains(said, c.want) || strings.Contains(said, files[c.model.GetFile().GetDigest()]) || strings.Contains(said, "\n") {
				t.Errorf("it says %q, want %q in it", said, c.want)
			}
			if len(got.GetTasks()) > 0 {
				t.Errorf("it has tasks %v", got.GetTasks())
			}
		})
	}
}

// zeros is endless.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestCrashOfTheReaderFailsTheModel(t *testing.T) {
	for role, want := range map[string]string{
		"exits":  "reading it crashes: exits with status 3",
		"panics": "reading it crashes: exits with status 2 panic: the model's fault",
		"hangs":  "takes longer than 1s: submit a smaller model",
		"lies":   "reading it crashes: there is no answer",
		"hoards": "takes more than 64 MiB of memory to read",
	} {
		t.Run(role, func(t *testing.T) {
			limit := time.Duration(0)
			if role == "hangs" {
				limit = time.Second
			}
			w := work(t, &tilthv1.ModelSpec{}, "")
			got, err := newReader(t, role, limit, 64<<20).Read(t.Context(), given(t, w, nil), w)
			if err != nil || !strings.Contains(got.GetFailure(), want) || got.GetInfraMessage() != "" {
				t.Errorf("got %v, %v, want %q", got, err, want)
			}
		})
	}
}

func TestReaderEndsWithItsContext(t *testing.T) {
	gone := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
	w := work(t, &tilthv1.ModelSpec{}, "")
	_, err := newReader(t, "hangs", 0, 0).Read(ctx, given(t, w, nil), w)
	if !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestTryStartsAReader(t *testing.T) {
	if err := newReader(t, "serves", 0, 0).Try(t.Context()); err != nil {
		t.Error(err)
	}
	if err := newReader(t, "exits", 0, 0).Try(t.Context()); err == nil {
		t.Error("a process that serves nothing will do")
	}
}

// TestTasksThatATrackerRefusesAreAFailure checks that oversized tasks, and devices without a toolchain, fail the
// model.
func TestTasksThatATrackerRefusesAreAFailure(t *testing.T) {
	r := newReader(t, "serves", 0, 0)
	w := work(t, &tilthv1.ModelSpec{}, "")
	many := &tilthv1.ReportModelRequest{Target: &tilthv1.TargetSpec{}}
	for range 5000 {
		many.Tasks = append(many.Tasks, &tilthv1.TaskSpec{Name: "t"})
	}
	said, err := proto.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.report(w, said); !strings.Contains(got.GetFailure(), "its tasks are too many or too large: tasks: ") {
		t.Errorf("5000 tasks are %v", got.GetFailure())
	}
	w.Toolchains = nil
	got, err := r.Read(t.Context(), given(t, w, built(t, modelzoo.Options{}).Encode()), w)
	if err != nil || !strings.Contains(got.GetFailure(), "compiles for device class") {
		t.Errorf("without a toolchain: %v, %v", got, err)
	}
	w.DeviceClass.Descriptor_ = []byte("{")
	got, err = r.Read(t.Context(), given(t, w, built(t, modelzoo.Options{}).Encode()), w)
	if err != nil || !strings.Contains(got.GetFailure(), "device class") {
		t.Errorf("a device that nobody understands: %v, %v", got, err)
	}
}
