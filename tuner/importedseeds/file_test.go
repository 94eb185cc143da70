package importedseeds

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/filesystem"
)

func tilings(columns ...int64) (list []searchspace.Tiling) {
	for _, c := range columns {
		list = append(list, searchspace.Tiling{Channels: 16, Columns: c})
	}
	return list
}

func TestSeedsOfALogComeBeforeOlderOnes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "tilth.db.seeds")
	add := func(want int, e ...Entry) {
		t.Helper()
		if fresh, err := Add(path, e); err != nil || fresh != want {
			t.Errorf("%d are new, want %d: %v", fresh, want, err)
		}
	}
	one := Entry{Operator: "dense 1x512 -> 1000", From: "autotvm", Anchors: []string{"a"}, Tilings: tilings(1, 2, 3)}
	add(3, one)
	add(0, one)
	one.Tilings = tilings(9, 2, 4, 5, 6, 7, 8)
	add(9, one, Entry{Operator: "other", From: "ansor", Anchors: []string{"b", "c"}, Tilings: tilings(1)}, Entry{Operator: "other", From: "ansor", Anchors: []string{"a"}, Tilings: tilings(2, 40)})
	f, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.entries) != 3 || !slices.Equal(f.entries[0].Tilings, tilings(9, 2, 4, 5, 6, 7, 8, 1)) || len(f.at["c"]) != 1 || len(f.at["a"]) != 2 {
		t.Errorf("there are %+v", f.entries)
	}
}

// TestLogsInMemoryAreWhatAFileHas compares logs added one after another with one file.
func TestLogsInMemoryAreWhatAFileHas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seeds")
	logs := [][]Entry{
		{{Operator: "x", From: "autotvm", Anchors: []string{"a"}, Tilings: tilings(1, 2)}, {Operator: "y", From: "ansor", Anchors: []string{"a"}, Tilings: tilings(3)}},
		{{Operator: "x", From: "autotvm", Anchors: []string{"a"}, Tilings: tilings(4, 2)}, {Operator: "z", From: "ansor", Anchors: []string{"b"}, Tilings: tilings(5)}},
	}
	for _, log := range logs {
		if _, err := Add(path, log); err != nil {
			t.Fatal(err)
		}
	}
	read, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if made := New(logs...); !reflect.DeepEqual(made, read) || !slices.Equal(made.Entries()[0].Tilings, tilings(4, 2, 1)) {
		t.Errorf("made %+v, read %+v", made, read)
	}
}

func TestFileIsWrittenByOneProcessAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seeds")
	lock, err := filesystem.TryLock(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Add(path, nil); err == nil || !strings.Contains(err.Error(), "try again when that has ended") {
		t.Errorf("meanwhile: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := Add(path, nil); err != nil {
		t.Error(err)
	}
}

func TestDamagedFileIsAnError(t *testing.T) {
	const head = `{"format":"tilth-seeds","version":1}` + "\n"
	for text, want := range map[string]string{
		"{}\n": "line 1 is not the header of a file of seeds",
		`{"format":"tilth-seeds","version":2}` + "\n": "it has version 2, and this tilth knows version 1",
		head + "{": "line 2: it is damaged: unexpected EOF",
		head + `{"operator":"x","from":"ansor","anchors":["a"],"tilings":[]}`:      "line 2: it is damaged: it has 1 anchors and 0 tilings",
		head + `{"anchors":["a"],"tilings":[{"channels":0}]}`:                      "line 2: it is damaged: a tiling has no channels",
		head + `{"anchors":["a"],"tilings":[{"channels":1,"rows":-1}]}`:            "line 2: it is damaged: -1 of a tiling is not from 0 to 1048576",
		head + `{"anchors":["a"],"tilings":[{"channels":1,"outside":"sideways"}]}`: `line 2: it is damaged: "sideways" is not an order of a tiling`,
		head + strings.Repeat("x", maxLine+1):                                      "token too long",
	} {
		path := filepath.Join(t.TempDir(), "seeds")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "remove the file, and import the logs again") {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

func TestSeedsAreThePointsOfEachTaskOfTheirOperator(t *testing.T) {
	o, err := Convolution([]int64{1, 64, 56, 56}, []int64{64, 64, 3, 3}, Window{[2]int64{1, 1}, [2]int64{1, 1}, [4]int64{1, 1, 1, 1}, 1})
	if err != nil {
		t.Fatal(err)
	}
	anchors, err := o.Anchors()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "seeds")
	if _, err := Add(path, []Entry{{Operator: o.String(), From: "autotvm", Anchors: anchors, Tilings: []searchspace.Tiling{{Channels: 32, Columns: 7, Rows: 1}, {Channels: 32, Columns: 7, Rows: 1, Unroll: 1}}}}); err != nil {
		t.Fatal(err)
	}
	f, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := modelzoo.Build("resnet-18", modelzoo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(m, frontend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	machine, err := target.Parse("x86-64-v4", 1)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, task := range p.Tasks {
		points := f.Points(task.Workload, machine, schedule.Default)
		if strings.Contains(task.Name, "1x56x56x64 k3x3 -> 64") != (len(points) > 0) {
			t.Errorf("%s has the seeds %q", task.Name, points)
		}
		for _, point := range points {
			if found++; !strings.Contains(point, "tv=2 tw=7 th=1") {
				t.Errorf("%s has the seed %s", task.Name, point)
			}
		}
	}
	if found < 2 {
		t.Errorf("%d seeds were found", found)
	}
	if (*File)(nil).Points(p.Tasks[0].Workload, machine, schedule.Default) != nil {
		t.Error("no file has seeds")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"format":"tilth-seeds","version":1}` + "\n" + `{"operator":"x","from":"ansor","anchors":["a"],"tilings":[{"channels":16,"outside":"channels"}]}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		seeds, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		var b strings.Builder
		if err := seeds.write(&b); err != nil {
			t.Fatal(err)
		}
		if again, err := Parse(strings.NewReader(b.String())); err != nil || len(again.entries) != len(seeds.entries) {
			t.Errorf("it is read back as %v, %v", again, err)
		}
	})
}
