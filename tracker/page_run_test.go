package tracker_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"testing"

	"github.com/tilth-dev/tilth/compiler/aot"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// TestRunShowsItsPackagesSideBySide checks that each package is compared with the first, which was timed in turns
// with it.
func TestRunShowsItsPackagesSideBySide(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	s := f.runSpec("")
	s.Run.Packages = append(s.Run.Packages, &tilthv1.RunPackage{Name: hostile, Artifact: f.upload("another")})
	id := f.submit("r", s).GetId()
	pages := f.tracker.HTTPHandler()
	wantPage(t, pages, "/jobs/"+id, []string{"m.tar", "Against the first"}, []string{"<h2>Tasks"})
	first, second := make([]float64, 9), make([]float64, 9)
	for i := range first {
		first[i], second[i] = 3e-3, 1.5e-3
	}
	report := result(f.mustLease(f.able("board")).GetLease())
	report.Result.Packages = []*tilthv1.PackageResult{{SamplesSeconds: first}, {SamplesSeconds: second}}
	f.reportRun(report)
	wantPage(t, pages, "/jobs/"+id, []string{"3.00 ms<td></tr>", "1.50 ms<td>2.00x (2.00–2.00): faster", "ran on</span> board"}, nil)
	wantPage(t, pages, "/compare?a="+id+"&b="+id, []string{"2.00x"}, []string{"<h2>Tasks"})
}

// packageOf returns a package with a manifest that follows another member.
func packageOf(t *testing.T, m any) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, member := range []struct {
		name string
		data []byte
	}{{"model.so", make([]byte, 3<<20)}, {"manifest.json", must[[]byte](t)(json.Marshal(m))}} {
		err := w.WriteHeader(&tar.Header{Name: member.name, Size: int64(len(member.data)), Mode: 0o644, Format: tar.FormatGNU})
		if err == nil {
			_, err = w.Write(member.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestComparedPackagesShowWhatIsInThem checks that only callers with access to the packages see their contents.
func TestComparedPackagesShowWhatIsInThem(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	members := []aot.Member{{Name: "model.so", SizeBytes: 3 << 20}}
	kernel := func(workload, trace string, seconds float64) aot.TaskInfo {
		return aot.TaskInfo{Name: "kernel of " + workload, Workload: workload, Trace: trace, Origin: "tuned", LatencySeconds: seconds}
	}
	first := packageOf(t, &aot.Manifest{Model: "net", WeightsBytes: 1 << 20, Members: members, Tasks: []aot.TaskInfo{
		kernel("conv", "split 4", 1e-3), kernel("pool", "vectorize <8>", 2e-3), kernel("only here", "", 0),
	}})
	second := packageOf(t, &aot.Manifest{Model: "net", WeightsBytes: 2 << 20, Members: members, Tasks: []aot.TaskInfo{
		kernel("pool", "vectorize <8>", 3e-3), kernel("conv", "split 8", 4e-3),
	}})
	s := f.runSpec("")
	s.Run.Packages = []*tilthv1.RunPackage{{Name: "a.tar", Artifact: f.upload(first)}, {Name: "b.tar", Artifact: f.upload(second)}}
	id := f.submit("r", s).GetId()
	pages := f.tracker.HTTPHandler()
	wantPage(t, pages, "/compare?a="+id+"&b="+id, []string{
		`a.tar<th class="n">b.tar`, `weights<td class="n">1.00 MiB<td class="n">2.00 MiB`, `model.so<td class="n">3.00 MiB`,
		`kernel of conv<td>tuned<td class="n">1.00 ms<td>tuned<td class="n">4.00 ms<td><details>`, "split 4", "split 8",
		`kernel of pool<td>tuned<td class="n">2.00 ms<td>tuned<td class="n">3.00 ms<td>the same`, `kernel of only here<td>tuned`, "none",
	}, []string{"vectorize"})
	s.Run.Packages[1] = &tilthv1.RunPackage{Name: "c.tar", Artifact: f.upload("no package")}
	other := f.submit("s", s).GetId()
	wantPage(t, pages, "/compare?a="+other+"&b="+other, []string{"What is in c.tar is not shown: it is not a package."}, []string{"<h2>Kernels"})
}

// TestComparedPackagesThatListTooMuchAreNotShown checks the bounds on uploaded manifests.
func TestComparedPackagesThatListTooMuchAreNotShown(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	s := f.runSpec("")
	s.Run.Packages = nil
	for name, manifest := range map[string]any{
		"a.tar": map[string]any{"tasks": make([]struct{}, 1_000_000)}, "b.tar": map[string]any{"members": make([]struct{}, 1_000_000)},
	} {
		s.Run.Packages = append(s.Run.Packages, &tilthv1.RunPackage{Name: name, Artifact: f.upload(packageOf(t, manifest))})
	}
	id := f.submit("r", s).GetId()
	wantPage(t, f.tracker.HTTPHandler(), "/compare?a="+id+"&b="+id, []string{
		"What is in a.tar is not shown: its manifest.json has more than 16384 tasks",
		"What is in b.tar is not shown: its manifest.json has more than 1024 members",
	}, []string{"<h2>Kernels"})
}
