package jobclient

import (
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/schedule"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/importedseeds"
)

// log returns a log of AutoTVM with schedules of the first task of an MLP.
func log(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../importedseeds/testdata/autotvm.log")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// seedsOfLog returns the seeds in the log.
func seedsOfLog(t *testing.T) *importedseeds.File {
	t.Helper()
	l, err := importedseeds.ReadLog(strings.NewReader(string(log(t))), importedseeds.AutoTVM)
	if err != nil {
		t.Fatal(err)
	}
	return importedseeds.New(l.Entries)
}

// TestReaderJoinsModelsLikeTheCompiler covers weights, shared tasks and seeds.
func TestReaderJoinsModelsLikeTheCompiler(t *testing.T) {
	whole, open := built(t, modelzoo.Options{}), built(t, modelzoo.Options{Open: true})
	three := map[string][]int64{"batch": {3}}
	asked := func(m *tilthv1.ModelSpec) *tilthv1.ModelSpec {
		m.Others = []*tilthv1.OtherModel{
			{Name: "three", Shapes: map[string]*tilthv1.Extents{"batch": {Extents: []int64{3}}}},
			{To: []string{whole.Graph.Nodes[1].Outputs[0]}},
		}
		return m
	}
	part, err := whole.Part(nil, []string{whole.Graph.Nodes[1].Outputs[0]})
	if err != nil {
		t.Fatal(err)
	}
	sources := func(weights ...float64) []Source {
		return []Source{{Model: whole, Weight: weights[0]}, {Model: open, Shapes: three, Weight: weights[1]}, {Model: part, Weight: weights[2]}}
	}
	weighed := asked(&tilthv1.ModelSpec{Weight: 3})
	weighed.Others[1].Weight = 0.5
	for name, c := range map[string]struct {
		model      *tilthv1.ModelSpec
		weights    []float64
		listed     string
		noTransfer bool
		seeded     bool
	}{
		"with weights": {model: weighed, weights: []float64{3, 0, 0.5}},
		"with weights of tasks": {
			model:   asked(&tilthv1.ModelSpec{TaskWeights: []*tilthv1.TaskWeight{{Weight: 7, Tasks: "relu"}, {Weight: 0.25, Tasks: "3"}}}),
			weights: []float64{1, 1, 1}, listed: "7 relu\n0.25 3",
		},
		"with seeds": {
			model:   asked(&tilthv1.ModelSpec{Seeds: []*tilthv1.SeedFile{{Format: tilthv1.SeedFormat_SEED_FORMAT_AUTOTVM}}}),
			weights: []float64{1, 1, 1}, seeded: true,
		},
		"with seeds that are not used": {
			model:   asked(&tilthv1.ModelSpec{Seeds: []*tilthv1.SeedFile{{Format: tilthv1.SeedFormat_SEED_FORMAT_AUTOTVM}}}),
			weights: []float64{1, 1, 1}, noTransfer: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := work(t, c.model, "strict")
			w.Job.Spec.NoTransfer = c.noTransfer
			contents := [][]byte{whole.Encode(), open.Encode(), whole.Encode()}
			if c.model.GetSeeds() != nil {
				contents = append(contents, log(t))
			}
			got := readWork(t, newReader(t, "serves", 0, 0), given(t, w, contents...), w, c.seeded)
			if got.GetFailure() != "" {
				t.Fatal(got.GetFailure())
			}
			o, err := Models(sources(c.weights...), schedule.Strict, 0)(machine(t))
			if err != nil {
				t.Fatal(err)
			}
			if c.listed != "" {
				if o.Tasks, err = WeighByList(o.Tasks, strings.NewReader(c.listed)); err != nil {
					t.Fatal(err)
				}
			}
			options := Options{NoTransfer: c.noTransfer, Seeds: seedsOfLog(t)}
			if c.model.GetSeeds() == nil {
				options.Seeds = nil
			}
			want := SpecFor(o, options, &client.Device{Target: machine(t).WithToolchain("clang-19.1.7")})
			if !proto.Equal(got, &tilthv1.ReportModelRequest{Target: want.GetTarget(), Tasks: want.GetTasks()}) {
				t.Errorf("got %v, want %v, %v", got, want.GetTarget(), want.GetTasks())
			}
			if is := len(got.GetTasks()[0].GetSeeds()) > 0; is != c.seeded {
				t.Errorf("the seeds are %q", got.GetTasks()[0].GetSeeds())
			}
		})
	}
}

// TestErrorsNameTheModelOrTheSeeds checks that errors name the job's field.
func TestErrorsNameTheModelOrTheSeeds(t *testing.T) {
	whole := built(t, modelzoo.Options{}).Encode()
	for name, c := range map[string]struct {
		model *tilthv1.ModelSpec
		with  []byte
		want  string
	}{
		"another that is garbage": {&tilthv1.ModelSpec{Others: []*tilthv1.OtherModel{{}}}, []byte("no model"), "model net: others[0]: read model from the artifact: "},
		"another by its name":     {&tilthv1.ModelSpec{Others: []*tilthv1.OtherModel{{Name: "b"}}}, []byte("no model"), "model net: b: read model from the artifact: "},
		"a log of no seeds": {
			&tilthv1.ModelSpec{Seeds: []*tilthv1.SeedFile{{Format: tilthv1.SeedFormat_SEED_FORMAT_ANSOR}}}, log(t),
			"model net: seeds[0]: none of the log's 15 lines is a seed",
		},
		"an empty log": {
			&tilthv1.ModelSpec{Seeds: []*tilthv1.SeedFile{{Format: tilthv1.SeedFormat_SEED_FORMAT_ANSOR}}}, nil, "seeds[0]: the log has no lines",
		},
		"no file of seeds": {
			&tilthv1.ModelSpec{Seeds: []*tilthv1.SeedFile{{Format: tilthv1.SeedFormat_SEED_FORMAT_TILTH}}}, log(t), "seeds[0]: line 1 is not the header",
		},
		"a task of two weights": {
			&tilthv1.ModelSpec{TaskWeights: []*tilthv1.TaskWeight{{Weight: 1, Tasks: "relu"}, {Weight: 2, Tasks: "0"}}}, nil,
			"task_weights[1]: task 0 (dense+relu 1x784 -> 256) has a weight already",
		},
	} {
		t.Run(name, func(t *testing.T) {
			contents := [][]byte{whole}
			if len(c.model.GetOthers())+len(c.model.GetSeeds()) > 0 {
				contents = append(contents, c.with)
			}
			w := work(t, c.model, "")
			got := readWork(t, newReader(t, "serves", 0, 0), given(t, w, contents...), w, false)
			if !strings.Contains(got.GetFailure(), c.want) {
				t.Errorf("it says %q, want %q", got.GetFailure(), c.want)
			}
		})
	}
}
