package tracker_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// wantPage checks that a page contains some texts, lacks others, and escapes hostile ones.
func wantPage(t testing.TB, pages http.Handler, target string, wants, lacks []string) {
	t.Helper()
	w := get(pages, target)
	text := w.Body.String()
	if w.Code != http.StatusOK || strings.Contains(text, hostile) || strings.Contains(text, "<script>") {
		t.Errorf("%s: %d, or something is not escaped\n%s", target, w.Code, text)
	}
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q\n%s", target, want, text)
		}
	}
	for _, lack := range lacks {
		if strings.Contains(text, lack) {
			t.Errorf("%s has %q\n%s", target, lack, text)
		}
	}
}

// labelledRunner joins as a runner of a rack.
func (f *trackerFarm) labelledRunner(name, rack, class string) string {
	f.Helper()
	s := agentSpec(name, tilthv1.AgentKind_AGENT_KIND_RUNNER)
	s.Labels, s.DeviceClasses[0].Name = map[string]string{"rack": rack}, class
	return must[*tilthv1.JoinResponse](f)(f.agents.Join(f.Context(), &tilthv1.JoinRequest{Spec: s})).GetSession()
}

// TestTaskShowsItsKnobsItsNeighboursAndItsLimit checks that the page combines data of tuners, clients and runners.
func TestTaskShowsItsKnobsItsNeighboursAndItsLimit(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	s := spec("conv")
	s.Owner = "o"
	s.Budget = &tilthv1.Budget{Trials: 8, Time: seconds(3600)}
	s.Tasks[0].PeakSeconds, s.Tasks[0].ByteSeconds = 2e-4, 5e-4
	s.Tasks[0].DefaultDigest = records.Digest([]byte("first"))
	id := f.submit("r", s).GetId()
	tuner, builder, runner := f.tuner(), f.builder(), f.labelledRunner("board", "3", "x86")
	f.labelledRunner("other", "30", "arm")
	proposed := candidates("first", "near", "far", "odd", "failed", "hostile")
	for i, origin := range []string{"tile=4 unroll=1", "tile=8 unroll=1", "tile=16 unroll=2", "no knobs", "tile=8 unroll=9", hostile + "=1 tile=8"} {
		proposed[i].Origin = []byte(origin)
	}
	lease := f.mustLease(tuner).GetLease()
	must[*tilthv1.ProposeBatchResponse](t)(f.search.ProposeBatch(t.Context(), &tilthv1.ProposeBatchRequest{Lease: lease, Candidates: proposed}))
	f.reportBuild(f.buildReport(f.mustLease(builder), "failed"))
	work := f.mustLease(runner)
	pages := f.tracker.HTTPHandler()
	wantPage(t, pages, "/device?name=board", []string{"It measures conv of", ">resnet18</a>"}, []string{"<svg"})
	wantPage(t, pages, "/devices", []string{">conv</a>", "rack=30"}, nil)
	left := work.GetMeasure().GetCandidates()
	for i, latency := range []float64{4e-3, 1e-3, 3e-3, 5e-3, 6e-3} {
		f.report(work.GetLease(), ok(left[i], latency))
	}
	wantPage(t, pages, "/jobs/"+id+"/tasks/0", []string{
		">1.00 ms<", "<dt>tile <b>8</b>", "limit of memory</span> <b>500 µs</b>", "of limit</span> <b>50 % bytes</b>", "Neighbours of the best",
		`<td class="name">tile<td class="n">8<td class="n">4<td class="n">0<td class="n">4.00 ms<td class="n">4.00x`,
		`<td class="name">unroll<td class="n">1<td class="n">9<td class="n">4<td class="n bad">compile_error<td class="n">-`,
		"tilth tasks MODEL --dump source",
	}, []string{`<td class="n">16<`})
	wantPage(t, pages, "/jobs/"+id, []string{"50 % bytes", "the machine's limit", "4.00x"}, nil)
	wantPage(t, pages, "/jobs?label=rack%3D3", []string{"<td class=\"n\">1.00 ms<td class=\"n\">4.00x", ">resnet18<"}, nil)
	for _, label := range []string{"rack%3D30", "rack%3D", "nothing", url.QueryEscape(hostile)} {
		wantPage(t, pages, "/jobs?label="+label, []string{"No jobs."}, nil)
	}
}

// TestListTellsTheTimeLeftAndWhatAJobWaitsFor uses a job without progress.
func TestListTellsTheTimeLeftAndWhatAJobWaitsFor(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	s := spec("conv")
	s.Budget = &tilthv1.Budget{Time: seconds(3600)}
	f.submit("r", s)
	wantPage(t, f.tracker.HTTPHandler(), "/jobs", []string{">1:00:00<", "no device of class x86 is joined"}, nil)
	wantPage(t, f.tracker.HTTPHandler(), "/", []string{"resnet18 is waiting: no device of class x86", "pending: ",
		`<a href="https://github.com/tilth-dev/tilth/blob/main/docs/operations.md#tilthjobscannotrun" title="What to do">TilthJobsCannotRun</a>`}, nil)
}

// TestDevicesAreGroupedByLabel checks that numeric values are in order, and that each device has a tile.
func TestDevicesAreGroupedByLabel(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	for i := range 12 {
		f.labelledRunner(fmt.Sprintf("board %02d "+hostile, i), fmt.Sprint(2+i%2*8), "x86")
	}
	f.labelledRunner("odd", hostile, "x86")
	f.join("bare", tilthv1.AgentKind_AGENT_KIND_RUNNER)
	pages := f.tracker.HTTPHandler()
	wantPage(t, pages, "/devices?view=board", []string{"<b>14</b> devices", "rack=2 ", "rack=10 ", "6 idle", "rack=none"}, nil)
	text := get(pages, "/devices?view=board").Body.String()
	if n := strings.Count(text, `<a class="tile idle"`); n != 14 || strings.Index(text, "rack=2 ") > strings.Index(text, "rack=10 ") {
		t.Errorf("there are %d tiles, or the shelves have another order\n%s", n, text)
	}
	wantPage(t, pages, "/devices?view=board&label=rack%3D2", []string{"<b>6</b> devices"}, []string{"rack=10 "})
	wantPage(t, pages, "/devices?view=board&by=nothing", []string{"nothing=none"}, nil)
	wantPage(t, pages, "/devices?label=rack%3D2", []string{"board 00"}, []string{"board 01"})
}

// TestDeviceShowsHowItsCalibrationsWent checks the charts of drift and of the hottest sensor's temperature.
func TestDeviceShowsHowItsCalibrationsWent(t *testing.T) {
	c := newClock()
	f := newFarm(t, tracker.Config{Now: c.now})
	session := f.calibratingRunner().GetSession()
	pages := f.tracker.HTTPHandler()
	for i := range 60 {
		c.forward(time.Minute)
		report := &tilthv1.CalibrationReport{Kernels: "k", Surroundings: &tilthv1.Surroundings{Temperatures: []*tilthv1.Temperature{
			{Sensor: "cool", Celsius: 20}, {Sensor: hostile, Celsius: 50 + float64(i%10)},
		}}}
		for range 5 {
			report.ComputeSeconds, report.MemorySeconds = append(report.ComputeSeconds, 2e-3), append(report.MemorySeconds, 8e-3)
		}
		must[*tilthv1.ReportCalibrationResponse](t)(wired{f}.client().ReportCalibration(t.Context(),
			&tilthv1.ReportCalibrationRequest{Session: session, Report: report}))
		f.heartbeat(session)
	}
	wantPage(t, pages, "/device?name=runner", []string{"Drift: by how much", "0.0 %", "hottest sensor", "59 °C"}, nil)
	for i := range 2 {
		got := device(t, wired{f}, "runner").GetCalibration().GetCourse()
		if n := len(got.GetAtSeconds()); n != 48 || len(got.GetDrift()) != n || len(got.GetCelsius()) != n || got.GetCelsius()[n-1] != 59 {
			t.Errorf("the course is %v after %d restarts", got, i)
		}
		f.restart()
	}
	listed := must[*tilthv1.ListDevicesResponse](t)(wired{f}.client().ListDevices(t.Context(), &tilthv1.ListDevicesRequest{}))
	if listed.GetDevices()[0].GetCalibration().GetCourse() != nil {
		t.Error("a list has courses")
	}
}
