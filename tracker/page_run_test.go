package tracker_test

import (
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// TestARunShowsItsPackagesSideBySide, each against the first, with which it was timed in turns.
func TestARunShowsItsPackagesSideBySide(t *testing.T) {
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
